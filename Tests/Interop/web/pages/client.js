// A page of its own with one client; the suite opens it in another tab and runs functions in it.

import * as app from "/sdk/firebase-app.js";
import * as f from "/sdk/firebase-firestore.js";

const parameters = new URLSearchParams(location.search);
const settings = {};
if (parameters.get("cache") === "persistent") {
  settings.localCache = f.persistentLocalCache({ tabManager: f.persistentMultipleTabManager() });
}
const db = f.initializeFirestore(app.initializeApp({ projectId: parameters.get("project"), apiKey: "a" }), settings);
f.connectFirestoreEmulator(db, "localhost", Number(parameters.get("port")));

/// Runs a function, given as its text, with the SDK, the database and JSON arguments.
window.run = async (text, args) =>
  JSON.stringify(await (0, eval)(`(${text})`)(f, db, ...JSON.parse(args))) ?? "null";
