// Batches and transactions.

import { check, equal, fails } from "../harness.js";

export const transactions = [
  ["a batch of 500", async (t) => {
    const { f } = t;
    const batch = f.writeBatch(t.db);
    for (let n = 0; n < 500; n++) batch.set(t.doc(`d${n}`), { n });
    await batch.commit();
    equal((await f.getCountFromServer(t.collection())).data().count, 500);
  }],
  ["a batch is atomic", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("a"), { n: 1 });
    const batch = f.writeBatch(t.db).set(t.doc("a"), { n: 2 }).delete(t.doc("b")).update(t.doc("missing"), { n: 3 });
    await fails("not-found", batch.commit());
    equal((await f.getDocFromServer(t.doc("a"))).data(), { n: 1 });
  }],
  ["contended transactions count exactly", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("counter"), { n: 0 });
    const add = (db) => f.runTransaction(db, async (transaction) => {
      const found = await transaction.get(t.doc("counter", db));
      transaction.update(found.ref, { n: found.get("n") + 1 });
    }, { maxAttempts: 30 });
    const clients = [t.db, t.client(), t.client(), t.client()];
    await Promise.all(clients.map(async (db) => {
      for (let round = 0; round < 5; round++) await add(db);
    }));
    equal((await f.getDocFromServer(t.doc("counter"))).get("n"), 20);
  }],
  ["a transaction that fails changes nothing", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("a"), { n: 1 });
    const failure = f.runTransaction(t.db, async (transaction) => {
      await transaction.get(t.doc("a"));
      transaction.set(t.doc("a"), { n: 2 });
      throw Object.assign(new Error("given up"), { code: "given-up" });
    });
    await fails("given-up", failure);
    await fails("not-found", f.runTransaction(t.db, async (transaction) => {
      transaction.set(t.doc("a"), { n: 3 });
      transaction.update(t.doc("missing"), { n: 4 });
    }));
    equal((await f.getDocFromServer(t.doc("a"))).data(), { n: 1 });
  }],
  ["a transaction reads what is missing, and creates it once", async (t) => {
    const { f } = t;
    const create = (db) => f.runTransaction(db, async (transaction) => {
      const found = await transaction.get(t.doc("once", db));
      if (found.exists()) return false;
      transaction.set(found.ref, { by: "one" });
      return true;
    }, { maxAttempts: 20 });
    const made = await Promise.all([create(t.db), create(t.client()), create(t.client())]);
    check(made.filter(Boolean).length === 1, `one of ${made} creates it`);
  }],
];
