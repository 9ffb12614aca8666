// What cases use: clients, tabs, waiting, and control of the server.

import * as app from "/sdk/firebase-app.js";
import * as f from "/sdk/firebase-firestore.js";

const parameters = new URLSearchParams(location.search);
export const port = Number(parameters.get("port"));
/// The port of a proxy that buffers responses.
export const proxyPort = Number(parameters.get("proxy"));
/// The port of a server with rules; 0 where there is none.
export const guardedPort = Number(parameters.get("guarded"));
export const only = new RegExp(parameters.get("only") ?? "");
/// Whether the server keeps documents over a restart.
export const isDurable = parameters.get("durable") === "1";
export const wantsLatency = parameters.get("latency") === "1";
const project = `web-${Date.now().toString(36)}`;
const caseMilliseconds = 60_000;

export const post = (path, body) => fetch(path, { method: "POST", body });
export const report = (value) => post("/report", JSON.stringify(value));

export function check(condition, text) {
  if (!condition) throw new Error(`not true: ${text}`);
}

export function equal(actual, expected, text = "values") {
  const [left, right] = [text_(actual), text_(expected)];
  if (left !== right) throw new Error(`${text}: ${left} is not ${right}`);
}

/// The text of a value with the names of maps sorted, and of Firestore's types.
function text_(value) {
  if (value === undefined) return "undefined";
  if (value === null) return "null";
  if (typeof value === "number") return Object.is(value, -0) ? "-0" : String(value);
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(text_).join()}]`;
  if (value instanceof f.Timestamp) return `time(${value.seconds}.${value.nanoseconds})`;
  if (value instanceof f.GeoPoint) return `place(${value.latitude},${value.longitude})`;
  if (value instanceof f.Bytes) return `bytes(${value.toBase64()})`;
  if (value instanceof f.DocumentReference) return `reference(${value.path})`;
  return `{${Object.keys(value).sort().map((key) => `${key}:${text_(value[key])}`).join()}}`;
}

export async function fails(code, promise) {
  try {
    await promise;
  } catch (error) {
    if (error.code === code) return error;
    throw new Error(`fails with ${error.code} (${error.message}), not with ${code}`);
  }
  throw new Error(`does not fail with ${code}`);
}

/// Waits until the function returns something true.
export async function until(what, condition, milliseconds = 30_000) {
  const end = performance.now() + milliseconds;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (performance.now() > end) throw new Error(`waited in vain until ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

/// The snapshots that a listener got.
export class Recorder {
  constructor(target, options = {}) {
    this.snapshots = [];
    this.errors = [];
    this.stop = f.onSnapshot(
      target, options, (snapshot) => this.snapshots.push(snapshot), (error) => this.errors.push(error));
  }

  get last() {
    return this.snapshots.at(-1);
  }

  until(what, condition) {
    return until(what, () => {
      if (this.errors.length > 0) throw this.errors[0];
      return this.last !== undefined && condition(this.last);
    });
  }

  /// The first snapshot of the server.
  current() {
    return this.until("the server's snapshot", (snapshot) => !snapshot.metadata.fromCache);
  }
}

/// Another tab with a client of its own.
class Tab {
  constructor(parameters) {
    this.window = window.open(`client.html?${new URLSearchParams({ project, port, ...parameters })}`);
  }

  ready() {
    return until("the tab is ready", () => this.window.run !== undefined);
  }

  /// Runs a function in the tab: it gets the SDK, the database and the arguments.
  async run(body, ...args) {
    return JSON.parse(await this.window.run(String(body), JSON.stringify(args)));
  }

  async reload() {
    this.window.run = undefined;
    this.window.location.reload();
    await this.ready();
  }

  close() {
    this.window.close();
  }
}

let counter = 0;

/// What one case has: a client, a collection that no other case uses, and what it opens, closed at its end.
export class Context {
  constructor() {
    this.id = `case${++counter}`;
    this.closers = [];
    this.f = f;
    this.db = this.client();
  }

  /// Another client, as if on another machine.
  client(settings = {}, database = "(default)", at = port) {
    const instance = app.initializeApp({ projectId: project, apiKey: "a" }, `app${++counter}`);
    const db = f.initializeFirestore(instance, settings, database);
    f.connectFirestoreEmulator(db, "localhost", at);
    this.closers.push(() => f.terminate(db));
    return db;
  }

  collection(db = this.db, name = this.id) {
    return f.collection(db, name);
  }

  doc(path, db = this.db) {
    return f.doc(db, `${this.id}/${path}`);
  }

  listen(target, options) {
    const recorder = new Recorder(target, options);
    this.closers.push(() => recorder.stop());
    return recorder;
  }

  async tab(parameters = {}) {
    const tab = new Tab(parameters);
    this.closers.push(() => tab.close());
    await tab.ready();
    return tab;
  }

  async close() {
    for (const close of this.closers.reverse()) {
      try {
        await Promise.race([close(), new Promise((resolve) => setTimeout(resolve, 2_000))]);
      } catch {}
    }
  }
}

export const settings = { project, port };

/// Why the server cannot run a case; undefined if it can.
function reasonAgainst({ needsDurability = false, needsRules = false }) {
  if (needsDurability && !isDurable) return "it keeps nothing over a restart";
  if (needsRules && !guardedPort) return "there is no such server with rules";
}

/// Runs one case and reports how it ended.
export async function runCase(group, name, body, options) {
  const title = `${group}: ${name}`;
  if (!only.test(title)) return;
  const reason = reasonAgainst(options);
  if (reason) return report({ kind: "case", group, name, passed: null, milliseconds: 0, text: reason });
  const started = performance.now();
  const context = new Context();
  let passed = true;
  let text = "";
  try {
    const late = new Promise((_, reject) => setTimeout(() => reject(new Error("takes too long")), caseMilliseconds));
    await Promise.race([body(context), late]);
  } catch (error) {
    passed = false;
    text = String(error?.message ?? error);
  }
  await context.close();
  await report({ kind: "case", group, name, passed, milliseconds: Math.round(performance.now() - started), text });
}
