// Queries and aggregates.

import { equal } from "../harness.js";

const cities = {
  amsterdam: { name: "Amsterdam", people: 900, tags: ["canal", "bike"], country: "nl", capital: true },
  berlin: { name: "Berlin", people: 3600, tags: ["bike", "club"], country: "de", capital: true },
  delft: { name: "Delft", people: 100, tags: ["canal"], country: "nl" },
  essen: { name: "Essen", people: 580, tags: [], country: "de" },
  ghent: { name: "Ghent", people: 260, tags: ["canal", "club"], country: "be", mayor: null },
  hull: { name: "Hull", people: 260.5, country: "uk", rating: NaN },
};

async function fill(t) {
  const batch = t.f.writeBatch(t.db);
  for (const [id, city] of Object.entries(cities)) batch.set(t.doc(id), city);
  await batch.commit();
}

const first = ["amsterdam", "berlin", "delft", "essen", "ghent", "hull"];

export const queries = [
  ["filters", async (t) => {
    const { f } = t;
    await fill(t);
    const find = async (...constraints) =>
      (await f.getDocs(f.query(t.collection(), ...constraints))).docs.map((document) => document.id);
    const w = f.where;
    equal(await find(), first);
    equal(await find(w("country", "==", "nl")), ["amsterdam", "delft"]);
    equal(await find(w("country", "!=", "nl")), ["ghent", "berlin", "essen", "hull"]);
    equal(await find(w("people", "<", 260.5)), ["delft", "ghent"]);
    equal(await find(w("people", "<=", 260.5)), ["delft", "ghent", "hull"]);
    equal(await find(w("people", ">", 580)), ["amsterdam", "berlin"]);
    equal(await find(w("people", ">=", 260), w("people", "<", 900)), ["ghent", "hull", "essen"]);
    equal(await find(w("tags", "array-contains", "canal")), ["amsterdam", "delft", "ghent"]);
    equal(await find(w("tags", "array-contains-any", ["club", "none"])), ["berlin", "ghent"]);
    equal(await find(w("country", "in", ["uk", "be"])), ["ghent", "hull"]);
    equal(await find(w("country", "not-in", ["nl", "de"])), ["ghent", "hull"]);
    equal(await find(w("mayor", "==", null)), ["ghent"]);
    equal(await find(w("rating", "==", NaN)), ["hull"]);
    equal(await find(w("country", "==", "nl"), w("capital", "==", true)), ["amsterdam"]);
    equal(await find(w(f.documentId(), ">=", "essen"), w(f.documentId(), "<", "hull")), ["essen", "ghent"]);
    equal(await find(w(f.documentId(), "in", ["hull", "delft", "nowhere"])), ["delft", "hull"]);
  }],
  ["AND within OR", async (t) => {
    const { f } = t;
    await fill(t);
    const filter = f.or(
      f.and(f.where("country", "==", "nl"), f.where("people", "<", 500)), f.where("tags", "array-contains", "club"));
    const found = await f.getDocs(f.query(t.collection(), filter));
    equal(found.docs.map((document) => document.id), ["delft", "ghent", "berlin"]);
  }],
  ["order, limit, cursors", async (t) => {
    const { f } = t;
    await fill(t);
    const find = async (...constraints) =>
      (await f.getDocs(f.query(t.collection(), ...constraints))).docs.map((document) => document.id);
    const byPeople = ["delft", "ghent", "hull", "essen", "amsterdam", "berlin"];
    equal(await find(f.orderBy("people")), byPeople);
    equal(await find(f.orderBy("people", "desc")), [...byPeople].reverse());
    equal(await find(f.orderBy("country"), f.orderBy("people", "desc")),
      ["ghent", "berlin", "essen", "amsterdam", "delft", "hull"]);
    equal(await find(f.orderBy("people"), f.limit(2)), ["delft", "ghent"]);
    equal(await find(f.orderBy("people"), f.limitToLast(2)), ["amsterdam", "berlin"]);
    equal(await find(f.orderBy("people"), f.startAt(260.5), f.endAt(900)), ["hull", "essen", "amsterdam"]);
    equal(await find(f.orderBy("people"), f.startAfter(260.5), f.endBefore(900)), ["essen"]);
    const essen = await f.getDoc(t.doc("essen"));
    equal(await find(f.orderBy("people"), f.startAfter(essen)), ["amsterdam", "berlin"]);
    equal(await find(f.orderBy("people"), f.endAt(essen), f.limit(10)), byPeople.slice(0, 4));
  }],
  ["collection groups", async (t) => {
    const { f } = t;
    const group = `group-${t.id}`;
    for (const parent of ["a", "b", "c"]) await f.setDoc(t.doc(`${parent}/${group}/one`), { parent, n: 1 });
    await f.setDoc(f.doc(t.db, `${group}/top`), { parent: "", n: 2 });
    const found = await f.getDocs(f.collectionGroup(t.client(), group));
    equal(found.docs.map((document) => document.get("parent")).sort(), ["", "a", "b", "c"]);
  }],
  ["aggregates", async (t) => {
    const { f } = t;
    await fill(t);
    const counted = await f.getCountFromServer(f.query(t.collection(), f.where("country", "==", "nl")));
    equal(counted.data(), { count: 2 });
    const result = await f.getAggregateFromServer(f.query(t.collection(), f.where("people", "<=", 260)), {
      all: f.count(), sum: f.sum("people"), average: f.average("people"),
    });
    equal(result.data(), { all: 2, sum: 360, average: 180 });
    const none = f.query(t.collection(), f.where("people", "<", 0));
    equal((await f.getAggregateFromServer(none, { average: f.average("people") })).data(), { average: null });
  }],
];
