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
 * What the worker was asked, by listener; it is asked again if the worker could not be loaded.
 * @type {Map<number, any>}
 */
const questions = new Map();
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
    const listener = listeners.get(data.id);
    if (data.snapshot) listener?.snapshot(data.snapshot);
    else { forget(data.id); listener?.failed(data.error); }
  };
  port.postMessage({ kind: "authorization", value: authorization() });
  for (const question of questions.values()) port.postMessage(question);
}

/** @param {number} id of a listener */
function forget(id) {
  questions.delete(id);
  return listeners.delete(id);
}

setInterval(() => port?.postMessage({ kind: "here" }), 15_000);
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
