// The other builds of the SDK: compat and lite.

import * as lite from "/sdk/firebase-firestore-lite.js";
import { initializeApp } from "/sdk/firebase-app.js";
import { equal, port, settings, until } from "../harness.js";

export function script(source) {
  return new Promise((resolve, reject) => {
    const element = Object.assign(document.createElement("script"), { src: source, onload: resolve, onerror: reject });
    document.head.append(element);
  });
}

export const builds = [
  ["the example page in two windows", async (t) => {
    const address = `/tasks/index.html?${new URLSearchParams({ sdk: "/sdk", port })}`;
    const windows = [window.open(address), window.open(address)];
    t.closers.push(() => windows.forEach((page) => page.close()));
    const rows = (page) => [...page.document.querySelectorAll("li")].map((row) => row.innerText.split("\n")[0].trim());
    const show = (texts) => Promise.all(windows.map((page) => until(`a window shows ${texts}`, () =>
      page.document.getElementById("state")?.textContent === "Live" && String(rows(page)) === String(texts))));
    const [first, second] = windows;
    await show([]);
    for (const title of ["one", "two <b>é😀</b>"]) {
      first.document.getElementById("title").value = title;
      first.document.getElementById("add").requestSubmit();
    }
    await show(["one", "two <b>é😀</b>"]);
    second.document.querySelector("li input").click();
    await until("it is done", () => first.document.querySelector("li").classList.contains("done"));
    first.document.getElementById("clear").click();
    await show(["two <b>é😀</b>"]);
    second.document.querySelector("li button").click();
    await show([]);
  }],
  ["compat", async (t) => {
    await script("/sdk/firebase-app-compat.js");
    await script("/sdk/firebase-firestore-compat.js");
    const firestore = window.firebase.initializeApp({ projectId: settings.project, apiKey: "a" }).firestore();
    firestore.useEmulator("localhost", port);
    t.closers.push(() => firestore.terminate());
    const collection = firestore.collection(t.id);
    const seen = [];
    t.closers.push(collection.orderBy("n").onSnapshot((snapshot) => seen.push(snapshot.docs.map((d) => d.get("n")))));
    await collection.doc("a").set({ n: 1, time: window.firebase.firestore.FieldValue.serverTimestamp() });
    await t.f.setDoc(t.doc("b"), { n: 2 });
    await until("both are seen", () => String(seen.at(-1)) === "1,2");
    await firestore.runTransaction(async (transaction) => {
      const found = await transaction.get(collection.doc("a"));
      transaction.update(found.ref, { n: found.get("n") + 10 });
    });
    await until("the change is seen", () => String(seen.at(-1)) === "2,11");
    equal((await collection.where("n", ">", 2).get()).size, 1);
  }],
  ["lite", async (t) => {
    const db = lite.initializeFirestore(
      initializeApp({ projectId: settings.project, apiKey: "a" }, `lite-${t.id}`), {});
    lite.connectFirestoreEmulator(db, "localhost", port);
    await lite.setDoc(lite.doc(db, t.id, "a"), { n: 1 });
    await lite.updateDoc(lite.doc(db, t.id, "a"), { n: lite.increment(1) });
    equal((await lite.getDoc(lite.doc(db, t.id, "a"))).data(), { n: 2 });
    equal((await lite.getDocs(lite.query(lite.collection(db, t.id), lite.where("n", "==", 2)))).size, 1);
    equal((await t.f.getDoc(t.doc("a"))).data(), { n: 2 });
  }],
];
