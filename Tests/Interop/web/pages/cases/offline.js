// Offline and back, and the cache that outlives a page.

import { check, equal } from "../harness.js";

export const offline = [
  ["pending writes are sent when the network is back", async (t) => {
    const { f } = t;
    const other = t.client();
    await f.setDoc(t.doc("a"), { n: 1 });
    const seen = t.listen(t.collection(), { includeMetadataChanges: true });
    await seen.current();
    await f.disableNetwork(t.db);
    await seen.until("it is from the cache", (snapshot) => snapshot.metadata.fromCache);
    let isWritten = false;
    const written = f.setDoc(t.doc("b"), { n: 2 }).then(() => (isWritten = true));
    f.updateDoc(t.doc("a"), { n: f.increment(5) });
    await seen.until("both are shown", (snapshot) => snapshot.size === 2 && snapshot.metadata.hasPendingWrites);
    equal((await f.getDocFromCache(t.doc("a"))).get("n"), 6);
    check(!(await f.getDoc(t.doc("b", other))).exists(), "the server does not have it");
    check(!isWritten, "the write waits");
    await f.enableNetwork(t.db);
    await written;
    await f.waitForPendingWrites(t.db);
    await seen.until("all is the server's", ({ metadata }) => !metadata.fromCache && !metadata.hasPendingWrites);
    equal((await f.getDocFromServer(t.doc("a", other))).get("n"), 6);
  }],
  ["changes of others while offline", async (t) => {
    const { f } = t;
    const other = t.client();
    for (const id of ["a", "b"]) await f.setDoc(t.doc(id), { n: 1 });
    const seen = t.listen(t.collection());
    await seen.current();
    await f.disableNetwork(t.db);
    await f.deleteDoc(t.doc("a", other));
    await f.setDoc(t.doc("b", other), { n: 2 });
    await f.setDoc(t.doc("c", other), { n: 3 });
    await f.enableNetwork(t.db);
    await seen.until("all changes", (snapshot) =>
      snapshot.docs.map((document) => `${document.id}${document.get("n")}`).join() === "b2,c3");
  }],
  ["a reload keeps documents and pending writes", async (t) => {
    const { f } = t;
    const tab = await t.tab({ cache: "persistent", project: `reload-${t.id}-${Date.now()}` });
    await tab.run(async (f, db, path) => {
      await f.setDoc(f.doc(db, path, "a"), { n: 1 });
      await f.getDoc(f.doc(db, path, "a"));
      await f.disableNetwork(db);
      f.setDoc(f.doc(db, path, "b"), { n: 2 });
      await f.getDocFromCache(f.doc(db, path, "b"));
    }, t.id);
    await tab.reload();
    equal(await tab.run(async (f, db, path) => (await f.getDocFromCache(f.doc(db, path, "a"))).get("n"), t.id), 1);
    const sent = await tab.run(async (f, db, path) => {
      await f.waitForPendingWrites(db);
      return (await f.getDocFromServer(f.doc(db, path, "b"))).get("n");
    }, t.id);
    equal(sent, 2);
  }],
  ["two tabs share one cache, also when the first is closed", async (t) => {
    const project = `tabs-${t.id}-${Date.now()}`;
    const first = await t.tab({ cache: "persistent", project });
    await first.run(async (f, db, path) => void (await f.setDoc(f.doc(db, path, "a"), { n: 1 })), t.id);
    const second = await t.tab({ cache: "persistent", project });
    await second.run((f, db, path) => new Promise((resolve) => {
      window.seen = [];
      f.onSnapshot(f.doc(db, path, "a"), (snapshot) => {
        window.seen.push(snapshot.get("n"));
        if (snapshot.get("n") === 1) resolve();
      });
    }), t.id);
    await first.run(async (f, db, path) => void (await f.setDoc(f.doc(db, path, "a"), { n: 2 })), t.id);
    const sees = (n) => second.run(async (f, db, n) => {
      while (window.seen.at(-1) !== n) await new Promise((resolve) => setTimeout(resolve, 10));
    }, n);
    await sees(2);
    first.close();
    await second.run(async (f, db, path) => void (await f.setDoc(f.doc(db, path, "a"), { n: 3 })), t.id);
    await sees(3);
    const third = await t.tab({ project });
    await third.run(async (f, db, path) => void (await f.setDoc(f.doc(db, path, "a"), { n: 4 })), t.id);
    await sees(4);
  }],
];
