// A server that is killed and started again under pages that listen and write.

import { check, equal, post } from "../harness.js";

const needsDurability = { needsDurability: true };

export const restarts = [
  ["a listener misses nothing and gets nothing twice", async (t) => {
    const { f } = t;
    const other = t.client();
    const seen = t.listen(f.query(t.collection(), f.orderBy("n")));
    const added = [];
    const stop = f.onSnapshot(f.query(t.collection()), (snapshot) => {
      for (const change of snapshot.docChanges()) added.push(`${change.type} ${change.doc.id}`);
    });
    await seen.current();
    for (let n = 0; n < 10; n++) await f.setDoc(t.doc(`d${n}`, other), { n });
    await seen.until("ten", (snapshot) => snapshot.size === 10);
    await post("/control", "kill");
    const late = [];
    for (let n = 10; n < 20; n++) late.push(f.setDoc(t.doc(`d${n}`, other), { n }));
    late.push(f.deleteDoc(t.doc("d0", other)));
    await post("/control", "start");
    await Promise.all(late);
    await seen.until("what was written meanwhile", (snapshot) =>
      snapshot.docs.map((document) => document.get("n")).join() === [...Array(19)].map((_, n) => n + 1).join());
    stop();
    const expected = [...Array(20)].map((_, n) => `added d${n}`).concat("removed d0").sort();
    equal([...added].sort(), expected);
  }, needsDurability],
  ["writes wait for the server, in order and once each", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("a"), { list: [], n: 0 });
    await post("/control", "kill");
    const writes = [];
    for (let n = 0; n < 30; n++) writes.push(f.updateDoc(t.doc("a"), { list: f.arrayUnion(n), n: f.increment(1) }));
    await post("/control", "start");
    await Promise.all(writes);
    equal((await f.getDoc(t.doc("a", t.client()))).data(), { list: [...Array(30)].map((_, n) => n), n: 30 });
  }, needsDurability],
  ["a kill in the middle of writes", async (t) => {
    const { f } = t;
    const writes = [];
    for (let n = 0; n < 300; n++) writes.push(f.setDoc(t.doc(`d${n}`), { n }));
    await Promise.race(writes);
    await post("/control", "kill");
    await post("/control", "start");
    await Promise.all(writes);
    const found = await f.getDocs(t.collection(t.client()));
    check(found.size === 300, `300 documents are there, not ${found.size}`);
  }, needsDurability],
];
