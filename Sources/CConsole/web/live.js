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
let nextID = 1;
/** @type {MessagePort|null} */
let port = null;
/** @type {ListenHub|null} */
let own = null;

function connect() {
  if (port || own) return;
  if (typeof SharedWorker === "undefined") { own = new ListenHub(); return; }
  const url = "/console/worker.js";
  port = new SharedWorker(scripts ? scripts.createScriptURL(url) : url, { type: "module", name: "hearth" }).port;
  port.onmessage = ({ data }) => {
    const listener = listeners.get(data.id);
    if (data.snapshot) listener?.snapshot(data.snapshot);
    else { listeners.delete(data.id); listener?.failed(data.error); }
  };
  setInterval(() => port?.postMessage({ kind: "here" }), 15_000);
  addEventListener("pagehide", () => port?.postMessage({ kind: "close" }));
}

/**
 * Listens to a query or to documents.
 * @param {string} database
 * @param {any} request `{query: {parent, structuredQuery}}` or `{documents: {documents}}`
 * @param {Listener} listener
 * @returns {() => void} ends it
 */
export function listen(database, request, listener) {
  connect();
  if (own) { own.authorization = authorization(); return own.listen(database, request, listener); }
  const id = nextID++;
  listeners.set(id, listener);
  port?.postMessage({ kind: "authorization", value: authorization() });
  port?.postMessage({ kind: "listen", id, database, request });
  return () => { if (listeners.delete(id)) port?.postMessage({ kind: "end", id }); };
}
