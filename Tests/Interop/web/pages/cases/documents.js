// Documents: every value type, and every kind of write.

import { check, equal, fails } from "../harness.js";

export const documents = [
  ["every value type", async (t) => {
    const { f } = t;
    const values = {
      null: null, yes: true, no: false, integer: 42, negative: -7, large: Number.MAX_SAFE_INTEGER, double: 1.5,
      tiny: 5e-324, huge: 1.7976931348623157e308, nan: NaN, infinity: Infinity, minus: -Infinity,
      text: "é😀 \u0000 \"quoted\" \\ \n \u2028", empty: "", bytes: f.Bytes.fromUint8Array(new Uint8Array([0, 255, 128])),
      noBytes: f.Bytes.fromUint8Array(new Uint8Array()), time: new f.Timestamp(1_700_000_000, 123_456_000),
      early: new f.Timestamp(-62_135_596_800, 0), place: new f.GeoPoint(-12.5, 179.25), reference: t.doc("other"),
      list: [1, "two", null, { three: [4] }], emptyList: [], map: { "a.b": 1, "with `": { deep: [{}] } }, emptyMap: {},
    };
    await f.setDoc(t.doc("a"), values);
    const other = t.client();
    equal((await f.getDoc(t.doc("a", other))).data(), values);
    const date = new Date(1_700_000_000_123);
    await f.setDoc(t.doc("b"), { date });
    equal((await f.getDoc(t.doc("b", other))).get("date").toMillis(), date.getTime());
  }],
  ["minus zero", async (t) => {
    const { f } = t;
    await f.setDoc(t.doc("a"), { n: -0 });
    equal((await f.getDoc(t.doc("a", t.client()))).data(), { n: -0 });
  }],
  ["set, merge, update, delete", async (t) => {
    const { f } = t;
    const document = t.doc("a");
    const read = async () => (await f.getDocFromServer(document)).data();
    await f.setDoc(document, { a: 1, b: { c: 2, d: 3 } });
    await f.setDoc(document, { b: { c: 4 } }, { merge: true });
    equal(await read(), { a: 1, b: { c: 4, d: 3 } });
    await f.setDoc(document, { a: 5, b: { d: 6 } }, { mergeFields: ["b.d"] });
    equal(await read(), { a: 1, b: { c: 4, d: 6 } });
    await f.updateDoc(document, { "b.c": f.deleteField(), e: [1] });
    equal(await read(), { a: 1, b: { d: 6 }, e: [1] });
    await f.updateDoc(document, new f.FieldPath("x.y"), 7, "a", 2);
    equal(await read(), { a: 2, b: { d: 6 }, e: [1], "x.y": 7 });
    await f.setDoc(document, { only: true });
    equal(await read(), { only: true });
    await f.deleteDoc(document);
    check(!(await f.getDocFromServer(document)).exists(), "the document is deleted");
    await f.deleteDoc(document);
  }],
  ["field transforms", async (t) => {
    const { f } = t;
    const document = t.doc("a");
    await f.setDoc(document, { n: 1, x: 0.5, list: [1, 2], time: f.serverTimestamp() });
    await f.updateDoc(document, {
      n: f.increment(41), x: f.increment(0.25), list: f.arrayUnion(2, 3), fresh: f.increment(2),
    });
    await f.updateDoc(document, { list: f.arrayRemove(1) });
    const data = (await f.getDocFromServer(document)).data();
    check(data.time instanceof f.Timestamp && Math.abs(data.time.toMillis() - Date.now()) < 60_000, "a server's time");
    delete data.time;
    equal(data, { n: 42, x: 0.75, list: [2, 3], fresh: 2 });
  }],
  ["automatic ids, subcollections, missing documents", async (t) => {
    const { f } = t;
    const added = await f.addDoc(t.collection(), { n: 1 });
    check(added.id.length === 20, "the id has 20 characters");
    await f.setDoc(f.doc(added, "sub/one"), { n: 2 });
    equal((await f.getDoc(f.doc(t.client(), added.path, "sub/one"))).data(), { n: 2 });
    const missing = await f.getDoc(t.doc("missing"));
    check(!missing.exists() && missing.data() === undefined && !missing.metadata.fromCache, "nothing is there");
    await f.setDoc(t.doc("ünïcode 😀 (1) %2F"), { n: 3 });
    equal((await f.getDocFromServer(t.doc("ünïcode 😀 (1) %2F"))).data(), { n: 3 });
  }],
  ["errors of writes, and writes after them", async (t) => {
    const { f } = t;
    const error = await fails("not-found", f.updateDoc(t.doc("missing"), { a: 1 }));
    check(error.message.includes("missing"), `the error names the document: ${error.message}`);
    const nested = { a: {} };
    let level = nested.a;
    for (let depth = 0; depth < 25; depth++) level = level.a = {};
    await fails("invalid-argument", f.setDoc(t.doc("deep"), nested));
    await f.setDoc(t.doc("after"), { n: 1 });
    equal((await f.getDocFromServer(t.doc("after"))).data(), { n: 1 });
  }],
  ["documents of 900 KB", async (t) => {
    const { f } = t;
    const text = "é😀".repeat(150_000);
    await f.setDoc(t.doc("a"), { text });
    check((await f.getDoc(t.doc("a", t.client()))).get("text") === text, "the text is the same");
  }],
  ["another database", async (t) => {
    const { f } = t;
    const other = t.client({}, "other");
    await f.setDoc(t.doc("a"), { where: "default" });
    await f.setDoc(t.doc("a", other), { where: "other" });
    equal((await f.getDoc(t.doc("a", t.client({}, "other")))).data(), { where: "other" });
    equal((await f.getDoc(t.doc("a", t.client()))).data(), { where: "default" });
  }],
];
