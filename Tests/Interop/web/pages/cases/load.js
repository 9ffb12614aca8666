// Many listeners, many writes, large results, and polling.

import { check, equal, proxyPort } from "../harness.js";

export const load = [
  ["100 listeners", async (t) => {
    const { f } = t;
    const other = t.client();
    const seen = [...Array(100)].map((_, n) => t.listen(t.doc(`d${n}`)));
    await Promise.all(seen.map((recorder) => recorder.current()));
    const batch = f.writeBatch(other);
    for (let n = 0; n < 100; n++) batch.set(t.doc(`d${n}`, other), { n });
    await batch.commit();
    await Promise.all(seen.map((recorder, n) => recorder.until("its document", (snapshot) => snapshot.get("n") === n)));
  }],
  ["900 listeners at once", async (t) => {
    const { f } = t;
    const seen = [...Array(900)].map((_, n) => t.listen(t.doc(`d${n}`)));
    await Promise.all(seen.map((recorder) => recorder.current()));
    await f.setDoc(t.doc("d899", t.client()), { n: 1 });
    await seen[899].until("its document", (snapshot) => snapshot.exists());
  }],
  ["1,000 writes without waiting", async (t) => {
    const { f } = t;
    const writes = [];
    for (let n = 0; n < 1_000; n++) writes.push(f.setDoc(t.doc(`d${n}`), { n }));
    await Promise.all(writes);
    equal((await f.getCountFromServer(t.collection(t.client()))).data().count, 1_000);
  }],
  ["a result of 6 MB", async (t) => {
    const { f } = t;
    const text = "é😀x".repeat(10_000);
    await Promise.all([...Array(85)].map((_, n) => f.setDoc(t.doc(`d${n}`), { n, text })));
    const found = await f.getDocs(t.collection(t.client()));
    equal(found.size, 85);
    check(found.docs.every((document) => document.get("text") === text), "every text is the same");
  }],
  ["a proxy that buffers responses", async (t) => {
    const { f } = t;
    const db = t.client({}, "(default)", proxyPort);
    const seen = t.listen(t.collection(db));
    await seen.current();
    for (let n = 0; n < 3; n++) {
      await f.setDoc(t.doc(`d${n}`), { n });
      await seen.until("the next one", (snapshot) => snapshot.size === n + 1);
    }
    await f.setDoc(t.doc("own", db), {});
    equal((await f.getDocs(t.collection())).size, 4);
  }],
  ...[
    ["long polling forced", { experimentalForceLongPolling: true }],
    ["long polling forced, held for 5 s", {
      experimentalForceLongPolling: true, experimentalLongPollingOptions: { timeoutSeconds: 5 },
    }],
    ["streaming forced", { experimentalAutoDetectLongPolling: false }],
  ].map(([name, settings]) => [name, async (t) => {
    const { f } = t;
    const db = t.client(settings);
    const seen = t.listen(t.collection(db));
    await seen.current();
    for (let n = 0; n < 5; n++) {
      await f.setDoc(t.doc(`d${n}`), { n });
      await seen.until("the next one", (snapshot) => snapshot.size === n + 1);
      await f.updateDoc(t.doc(`d${n}`, db), { own: true });
    }
    // Longer than a hold.
    await new Promise((resolve) => setTimeout(resolve, settings.experimentalLongPollingOptions ? 6_000 : 0));
    await f.setDoc(t.doc("last"), {});
    await seen.until("the last one", (snapshot) => snapshot.size === 6);
  }]),
];
