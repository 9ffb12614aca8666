// Live queries for the views, by the SharedWorker of all tabs, or in this page where there are no such workers.

import { ListenHub } from "./listen-hub.js";
import { authorization } from "./rest.js";

/** @typedef {import("./listen-hub.js").Listener} Listener */

/** The only script that the page starts besides its modules. */
const scripts = /** @type {any} */ (window).trustedTypes?.createPolicy("hearth-console", {
  createScriptURL: (/** @type {string} */ url) => {
    if (url !== "/console/worker.js") throw new TypeError("not a script of the console");
    return url;
  },
});

/** @type {Map<number, Listener>} */
const listeners = new Map();
/**
 * What the worker was asked, by listener; it is asked again if the worker could not be loaded, or has ended the
 * listeners of this tab while it was asleep.
 * @type {Map<number, any>}
 */
const questions = new Map();
/**
 * Listeners that have had a snapshot, and those of them whose next one has all documents again.
 * @type {Set<number>}
 */
const told = new Set();
/** @type {Set<number>} */
let askedAgain = new Set();
let nextID = 1;
/** @type {MessagePort|null} */
let port = null;
/** @type {ListenHub|null} */
let own = null;

const retryMilliseconds = 1_000;

/** Connects with the worker, or makes a hub of this page. Once it is there, all questions are asked. */
function connect() {
  if (typeof SharedWorker === "undefined") { own = new ListenHub(); return; }
  const url = "/console/worker.js";
  const worker = new SharedWorker(scripts ? scripts.createScriptURL(url) : url, { type: "module", name: "hearth" });
  worker.onerror = () => {
    if (port === worker.port) setTimeout(connect, retryMilliseconds);
  };
  port = worker.port;
  port.onmessage = ({ data }) => {
    if (data.kind === "forgotten") return askAll();
    const listener = listeners.get(data.id);
    if (data.snapshot) {
      told.add(data.id);
      const isReset = askedAgain.delete(data.id) || data.snapshot.isReset;
      listener?.snapshot({ ...data.snapshot, isReset });
    } else { forget(data.id); listener?.failed(data.error); }
  };
  askAll();
}

function askAll() {
  askedAgain = new Set(told);
  port?.postMessage({ kind: "authorization", value: authorization() });
  for (const question of questions.values()) port?.postMessage(question);
}

/** @param {number} id of a listener */
function forget(id) {
  questions.delete(id);
  told.delete(id);
  askedAgain.delete(id);
  return listeners.delete(id);
}

const ping = () => port?.postMessage({ kind: "here" });
setInterval(ping, 15_000);
addEventListener("visibilitychange", ping);
addEventListener("pagehide", () => port?.postMessage({ kind: "close" }));
// A page that the browser brings back has no listeners any more.
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); });

/**
 * Listens to a query or to documents.
 * @param {string} database
 * @param {any} request `{query: {parent, structuredQuery}}` or `{documents: {documents}}`
 * @param {Listener} listener
 * @returns {() => void} ends it
 */
export function listen(database, request, listener) {
  if (!port && !own) connect();
  if (own) { own.authorization = authorization(); return own.listen(database, request, listener); }
  const id = nextID++;
  const question = { kind: "listen", id, database, request };
  listeners.set(id, listener);
  questions.set(id, question);
  port?.postMessage({ kind: "authorization", value: authorization() });
  port?.postMessage(question);
  return () => { if (forget(id)) port?.postMessage({ kind: "end", id }); };
}
