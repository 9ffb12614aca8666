// Listeners: changes of others, metadata, latency compensation.

import { check, equal } from "../harness.js";

const values = (snapshot) => snapshot.docs.map((document) => document.get("n"));

export const listeners = [
  ["a document that another client creates, changes, deletes", async (t) => {
    const { f } = t;
    const other = t.client();
    const seen = t.listen(t.doc("a"));
    await seen.until("it is missing", (snapshot) => !snapshot.exists());
    await f.setDoc(t.doc("a", other), { n: 1 });
    await seen.until("it exists", (snapshot) => snapshot.get("n") === 1);
    await f.updateDoc(t.doc("a", other), { n: 2 });
    await seen.until("it has changed", (snapshot) => snapshot.get("n") === 2);
    await f.deleteDoc(t.doc("a", other));
    await seen.until("it is gone", (snapshot) => !snapshot.exists());
    equal(seen.snapshots.map((snapshot) => snapshot.get("n")), [undefined, 1, 2, undefined]);
  }],
  ["a query, with the kinds of changes", async (t) => {
    const { f } = t;
    const other = t.client();
    await f.setDoc(t.doc("a"), { n: 10 });
    await f.setDoc(t.doc("b"), { n: 20 });
    const seen = t.listen(f.query(t.collection(), f.where("n", ">=", 10), f.orderBy("n")));
    await seen.until("both", (snapshot) => snapshot.size === 2 && !snapshot.metadata.fromCache);
    await f.setDoc(t.doc("c", other), { n: 15 });
    await seen.until("three", (snapshot) => snapshot.size === 3);
    equal(values(seen.last), [10, 15, 20]);
    equal(seen.last.docChanges().map((change) => [change.type, change.oldIndex, change.newIndex]), [["added", -1, 1]]);
    await f.setDoc(t.doc("a", other), { n: 30 });
    await seen.until("a has moved", (snapshot) => snapshot.docs.at(-1).id === "a");
    equal(seen.last.docChanges().map((change) => [change.type, change.oldIndex, change.newIndex]), [["modified", 0, 2]]);
    await f.setDoc(t.doc("b", other), { n: 1 });
    await seen.until("b does not match", (snapshot) => snapshot.size === 2);
    equal(seen.last.docChanges().map((change) => [change.type, change.doc.id]), [["removed", "b"]]);
    await f.deleteDoc(t.doc("c", other));
    await seen.until("c is deleted", (snapshot) => snapshot.size === 1);
  }],
  ["a limited query fills up", async (t) => {
    const { f } = t;
    const other = t.client();
    for (let n = 0; n < 5; n++) await f.setDoc(t.doc(`d${n}`), { n });
    const seen = t.listen(f.query(t.collection(), f.orderBy("n"), f.limit(3)));
    await seen.until("the first three", (snapshot) => !snapshot.metadata.fromCache && snapshot.size === 3);
    await f.deleteDoc(t.doc("d1", other));
    await seen.until("the next one", (snapshot) => String(values(snapshot)) === "0,2,3");
    await f.setDoc(t.doc("new", other), { n: -1 });
    await seen.until("a new first one", (snapshot) => String(values(snapshot)) === "-1,0,2");
  }],
  ["a collection group", async (t) => {
    const { f } = t;
    const group = `group-${t.id}`;
    const other = t.client();
    const seen = t.listen(f.collectionGroup(t.db, group));
    await seen.current();
    await f.setDoc(f.doc(other, `${t.id}/a/${group}/one`), { n: 1 });
    await f.setDoc(f.doc(other, `${group}/two`), { n: 2 });
    await seen.until("both", (snapshot) => snapshot.size === 2);
  }],
  ["own writes show at once, pending and then not", async (t) => {
    const { f } = t;
    const seen = t.listen(t.doc("a"), { includeMetadataChanges: true });
    await seen.current();
    let isWritten = false;
    const written = f.setDoc(t.doc("a"), { n: 1, time: f.serverTimestamp() }).then(() => (isWritten = true));
    await seen.until("it shows", (snapshot) => snapshot.get("n") === 1);
    check(!isWritten, "it shows before the server has it");
    const shown = seen.snapshots.find((snapshot) => snapshot.get("n") === 1);
    check(shown.metadata.hasPendingWrites, "it is pending");
    equal(shown.get("time"), null);
    check(shown.get("time", { serverTimestamps: "estimate" }) instanceof f.Timestamp, "the time is estimated");
    await written;
    await seen.until("it is not pending", (snapshot) => !snapshot.metadata.hasPendingWrites);
    check(seen.last.get("time") instanceof f.Timestamp, "the time is the server's");
    equal((await f.getDocFromServer(t.doc("a"))).get("time"), seen.last.get("time"));
  }],
  ["a write that the server refuses is taken back", async (t) => {
    const { f } = t;
    const seen = t.listen(t.doc("a"));
    await seen.until("it is missing", (snapshot) => !snapshot.exists());
    await f.setDoc(t.doc("a"), { n: 1 });
    const other = t.client();
    await f.deleteDoc(t.doc("a", other));
    await f.updateDoc(t.doc("a"), { n: 2 }).catch((error) => equal(error.code, "not-found"));
    await seen.until("it is gone", (snapshot) => !snapshot.exists());
  }],
  ["what starts from the cache", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("a"), { n: 1 });
    const first = t.listen(t.collection(), { includeMetadataChanges: true });
    await first.current();
    const second = t.listen(t.collection(), { includeMetadataChanges: true });
    await second.current();
    equal(second.snapshots[0].size, 1, "documents of the second listener's first snapshot");
  }],
  ["listeners that have stopped get nothing", async (t) => {
    const { f } = t;
    const other = t.client();
    const stopped = t.listen(t.doc("a"));
    const going = t.listen(t.doc("b"));
    await stopped.current();
    await going.current();
    stopped.stop();
    const count = stopped.snapshots.length;
    await f.setDoc(t.doc("a", other), { n: 1 });
    await f.setDoc(t.doc("b", other), { n: 1 });
    await going.until("the other one", (snapshot) => snapshot.exists());
    equal(stopped.snapshots.length, count);
  }],
  ["another tab writes", async (t) => {
    const { f } = t;
    const tab = await t.tab();
    const seen = t.listen(t.collection());
    await seen.current();
    await tab.run(async (f, db, path) => {
      for (let n = 0; n < 20; n++) await f.setDoc(f.doc(db, path, `d${n}`), { n });
    }, t.id);
    await seen.until("all twenty", (snapshot) => snapshot.size === 20);
  }],
];
