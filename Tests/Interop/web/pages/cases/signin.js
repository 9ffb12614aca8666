// Users with tokens of the page, on a server with rules: each user reads and writes the collection with its own name.

import * as app from "/sdk/firebase-app.js";
import * as f from "/sdk/firebase-firestore.js";
import * as lite from "/sdk/firebase-firestore-lite.js";
import { check, equal, fails, guardedPort, post, until } from "../harness.js";
import { script } from "./builds.js";

/// A token that the server's issuer signs; valid for so many seconds.
const mint = async (uid, seconds = 3_600) => (await post("/mint", JSON.stringify({ uid, seconds }))).text();

/// A page with one client, whose tokens come from `ask`.
class Page {
  constructor(t, ask) {
    this.app = app.initializeApp({ projectId: "web", apiKey: "a" }, `${t.id}-${Math.random()}`);
    // The calls of the page's function, by what they were given.
    this.asked = [];
    this.ask = ask;
    this.ready = import(`http://localhost:${guardedPort}/hearth-auth.js`).then(({ provideTokens }) => {
      this.tokens = provideTokens(this.app, (forceRefresh) => {
        this.asked.push(forceRefresh);
        return this.ask(forceRefresh);
      });
    });
    this.db = f.initializeFirestore(this.app, { host: `localhost:${guardedPort}`, ssl: false });
    t.closers.push(() => f.terminate(this.db));
  }

  doc(path) {
    return f.doc(this.db, path);
  }
}

async function page(t, ask) {
  const made = new Page(t, ask);
  await made.ready;
  return made;
}

const cases = [
  ["own documents, and those of others", async (t) => {
    const alice = await page(t, () => mint("alice"));
    await f.setDoc(alice.doc("alice/a"), { n: 1 });
    equal((await f.getDoc(alice.doc("alice/a"))).data(), { n: 1 });
    await fails("permission-denied", f.getDoc(alice.doc("bob/a")));
    await fails("permission-denied", f.setDoc(alice.doc("bob/a"), { n: 1 }));
    await fails("permission-denied", f.getDocs(f.collection(alice.db, "bob")));
    await f.runTransaction(alice.db, async (transaction) => {
      const found = await transaction.get(alice.doc("alice/a"));
      transaction.update(found.ref, { n: found.get("n") + 1 });
    });
    equal((await f.getDocsFromServer(f.collection(alice.db, "alice"))).docs.map((d) => d.data()), [{ n: 2 }]);
    equal(alice.asked, [false], "the page's function was called once");
  }],
  ["nobody, then a user, then another one", async (t) => {
    let user = null;
    const { db, tokens } = await page(t, async () => user && mint(user));
    const at = (path) => f.doc(db, path);
    await fails("permission-denied", f.getDocFromServer(at("carol/a")));
    user = "carol";
    await tokens.changed();
    const seen = t.listen(f.collection(db, "carol"));
    await seen.current();
    await f.setDoc(at("carol/a"), { n: 1 });
    await seen.until("the document is there", (snapshot) => snapshot.size === 1);
    user = "dave";
    await tokens.changed();
    // The listener of the user before is denied.
    await until("the listener ends", () => seen.errors.length > 0);
    equal(seen.errors[0].code, "permission-denied");
    await f.setDoc(at("dave/a"), { n: 1 });
    await fails("permission-denied", f.getDocFromServer(at("carol/a")));
    user = null;
    await tokens.changed();
    await fails("permission-denied", f.getDocFromServer(at("dave/a")));
  }],
  ["a listener whose token expires continues", async (t) => {
    let seconds = 5;
    const erin = await page(t, () => mint("erin", seconds));
    const other = await page(t, () => mint("erin"));
    const seen = t.listen(f.collection(erin.db, "erin"));
    await seen.current();
    seconds = 3_600;
    const before = erin.asked.length;
    await until("the page is asked again", () => erin.asked.length > before);
    check(erin.asked.at(-1), "the page is asked for a new token");
    await f.setDoc(f.doc(other.db, "erin/a"), { n: 1 });
    await seen.until("the document is there", (snapshot) => snapshot.size === 1 && !snapshot.metadata.fromCache);
  }],
  ["a refused token is asked for again", async (t) => {
    const frank = await page(t, (forceRefresh) => mint("frank").then((token) => forceRefresh ? token : `${token}x`));
    const seen = t.listen(f.collection(frank.db, "frank"));
    await seen.until("the server's snapshot", (snapshot) => !snapshot.metadata.fromCache);
    equal(frank.asked, [false, true]);
  }],
  ["lite", async (t) => {
    const instance = app.initializeApp({ projectId: "web", apiKey: "a" }, t.id);
    const db = lite.initializeFirestore(instance, { host: `localhost:${guardedPort}`, ssl: false });
    const { provideTokens } = await import(`http://localhost:${guardedPort}/hearth-auth.js`);
    provideTokens(instance, () => mint("grace"));
    await lite.setDoc(lite.doc(db, "grace/a"), { n: 1 });
    equal((await lite.getDoc(lite.doc(db, "grace/a"))).data(), { n: 1 });
    await fails("permission-denied", lite.getDoc(lite.doc(db, "alice/a")));
  }],
  ["compat", async (t) => {
    if (!window.firebase?.firestore) {
      await script("/sdk/firebase-app-compat.js");
      await script("/sdk/firebase-firestore-compat.js");
    }
    const instance = window.firebase.initializeApp({ projectId: "web", apiKey: "a" }, t.id);
    const { provideTokens } = await import(`http://localhost:${guardedPort}/hearth-auth.js`);
    provideTokens(instance, () => mint("heidi"));
    const firestore = instance.firestore();
    firestore.settings({ host: `localhost:${guardedPort}`, ssl: false });
    t.closers.push(() => firestore.terminate());
    await firestore.doc("heidi/a").set({ n: 1 });
    equal((await firestore.doc("heidi/a").get({ source: "server" })).data(), { n: 1 });
    await fails("permission-denied", firestore.doc("alice/a").get());
  }],
];

export const signin = cases.map(([name, body]) => [name, body, { needsRules: true }]);
