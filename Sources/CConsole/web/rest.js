// Requests of the console: the session, REST, administrative methods, and what the views show.

/** @typedef {import("./values.js").Document} Document */
/** @typedef {import("./values.js").Value} Value */

/** An answer that is an error. */
export class APIError extends Error {
  /**
   * @param {number} code of HTTP
   * @param {string} status such as NOT_FOUND
   * @param {string} message
   */
  constructor(code, status, message) {
    super(message || status);
    this.code = code;
    this.status = status;
  }
}

/** What requests show. The token is in the memory of this page alone. */
const session = { mode: "open", /** @type {string|null} */ token: null, endsAt: Infinity };

/**
 * Called when the server wants a credential.
 * @type {() => void}
 */
let onRefused = () => {};

/** @param {() => void} listener */
export function whenRefused(listener) { onRefused = listener; }

/** The field Authorization; null without one. */
export function authorization() { return session.token === null ? null : `Bearer ${session.token}`; }

export function mode() { return session.mode; }

/** When the token ends, in milliseconds since 1970; Infinity without one. */
export function sessionEnd() { return session.endsAt; }

/**
 * Begins a session.
 * @param {string|null} credential an API key or a token of an admin; null on a server that asks for none
 */
export async function begin(credential) {
  const answer = await request(
    "POST", "/console/session", undefined, credential ? { Authorization: `Bearer ${credential}` } : {},
  );
  session.mode = answer.mode;
  session.token = answer.token ?? (answer.mode === "emulator" ? "owner" : null);
  session.endsAt = answer.expiresIn ? Date.now() + answer.expiresIn * 1000 : Infinity;
}

export function end() {
  session.token = null;
  session.endsAt = Infinity;
}

/**
 * A member of a message as JSON has it: JavaScript writes a zero without its sign.
 * @param {string} _
 * @param {any} member
 */
function withSign(_, member) { return Object.is(member, -0) ? "-0.0" : member; }

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string,string>} [headers]
 * @param {AbortSignal} [signal]
 */
async function send(method, path, body, headers, signal) {
  /** @type {Record<string, string>} */
  const fields = { "X-Goog-Api-Client": "hearth-console", ...headers };
  const shown = authorization();
  if (shown && !fields.Authorization) fields.Authorization = shown;
  return fetch(
    path,
    {
      method,
      headers: fields,
      body: body === undefined ? undefined : JSON.stringify(body, withSign),
      credentials: "omit",
      cache: "no-store",
      signal,
    },
  );
}

/**
 * @param {string} method
 * @param {string} path
 * @param {any} [body]
 * @param {Record<string,string>} [headers]
 * @param {AbortSignal} [signal]
 */
async function request(method, path, body, headers, signal) {
  let response;
  try {
    response = await send(method, path, body, headers, signal);
  } catch (error) {
    if (/** @type {any} */ (error).name === "AbortError") throw error;
    throw new APIError(0, "UNAVAILABLE", "The server cannot be reached.");
  }
  const text = await response.text();
  if (!response.ok) throw failure(response.status, text);
  return text === "" ? {} : JSON.parse(text);
}

/**
 * @param {number} code
 * @param {string} text
 */
function failure(code, text) {
  let error;
  try {
    const json = JSON.parse(text);
    error = (Array.isArray(json) ? json[json.length - 1] : json).error;
  } catch { /* Not JSON. */ }
  if (code === 401 && session.token !== null) { end(); onRefused(); }
  return new APIError(
    code, error?.status ?? "UNKNOWN", error?.message ?? (text.trim() || `The server answered ${code}.`),
  );
}

/** @param {string} name */
function encoded(name) { return name.split("/").map(encodeURIComponent).join("/"); }

/**
 * @param {string} name of a document or a parent
 * @param {string} [verb]
 */
function address(name, verb = "") { return `/v1/${encoded(name)}${verb}`; }

/** @param {Record<string, any>} parameters */
function queryText(parameters) {
  const query = new URLSearchParams({ prettyPrint: "false" });
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== undefined && value !== null) query.append(name, String(value));
  }
  return `?${query}`;
}

// Documents.

/**
 * @param {string} name
 * @param {string} [readTime]
 * @returns {Promise<Document|null>} null if there is none
 */
export async function getDocument(name, readTime) {
  const database = name.split("/").slice(0, 4).join("/");
  const answer = await request(
    "POST", address(`${database}/documents`, ":batchGet") + "?prettyPrint=false", { documents: [name], readTime },
  );
  return answer.find((/** @type {any} */ one) => one.found)?.found ?? null;
}

/**
 * @param {string} parent
 * @param {string} collection
 * @param {{pageSize?: number, pageToken?: string, showMissing?: boolean, readTime?: string, mask?: string}} options
 * @returns {Promise<{documents?: Document[], nextPageToken?: string}>}
 */
export function listDocuments(parent, collection, { mask, ...options }) {
  const query = queryText({ ...options, "mask.fieldPaths": mask });
  return request("GET", `${address(parent)}/${encodeURIComponent(collection)}${query}`);
}

/**
 * All collections below a parent.
 * @param {string} parent
 * @param {string} [readTime]
 * @returns {Promise<string[]>}
 */
export async function listCollections(parent, readTime) {
  /** @type {string[]} */
  const ids = [];
  let pageToken;
  do {
    /** @type {any} */
    const answer = await request(
      "POST", address(parent, ":listCollectionIds") + "?prettyPrint=false", { pageSize: 1000, pageToken, readTime },
    );
    ids.push(...(answer.collectionIds ?? []));
    pageToken = answer.nextPageToken;
  } while (pageToken && ids.length < 10_000);
  return ids;
}

/**
 * Runs a query. Its documents come one by one as the server sends them.
 * @param {string} parent
 * @param {any} structuredQuery
 * @param {{readTime?: string, signal?: AbortSignal, each?: (document: Document) => void}} [options]
 * @returns {Promise<{documents: Document[], readTime: string}>}
 */
export async function runQuery(parent, structuredQuery, options = {}) {
  /** @type {Document[]} */
  const documents = [];
  let readTime = "";
  const body = { structuredQuery, readTime: options.readTime };
  for await (const event of streamed(address(parent, ":runQuery"), body, options.signal)) {
    readTime = event.readTime ?? readTime;
    if (!event.document) continue;
    documents.push(event.document);
    options.each?.(event.document);
  }
  return { documents, readTime };
}

/**
 * The message of a pipeline's text, or what is wrong with the text.
 * @param {string} text
 * @returns {Promise<{structuredPipeline?: any, problem?: string}>}
 */
export function readPipeline(text) { return request("POST", "/console/data/pipeline", { text }); }

/**
 * Runs a pipeline. Its results come one by one as the server sends them; those that are no documents have no name.
 * @param {string} database
 * @param {any} structuredPipeline
 * @param {(result: Document) => void} each
 * @param {AbortSignal} signal
 */
export async function runPipeline(database, structuredPipeline, each, signal) {
  const path = address(`${database}/documents`, ":executePipeline");
  for await (const event of streamed(path, { structuredPipeline }, signal)) (event.results ?? []).forEach(each);
}

/**
 * The messages of a call with many replies.
 * @param {string} path
 * @param {any} body
 * @param {AbortSignal} [signal]
 */
async function* streamed(path, body, signal) {
  const response = await send("POST", `${path}?alt=sse`, body, { "Content-Type": "application/json" }, signal);
  if (!response.ok || !response.body) throw failure(response.status, await response.text());
  for await (const event of events(response.body)) {
    if (event.error) throw new APIError(event.error.code, event.error.status, event.error.message);
    yield event;
  }
}

/**
 * The messages of a stream of server-sent events.
 * @param {ReadableStream<Uint8Array>} body
 */
async function* events(body) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\r\n\r\n");
    rest = /** @type {string} */ (parts.pop());
    for (const part of parts) if (part.startsWith("data: ")) yield JSON.parse(part.slice(6));
  }
}

/**
 * Totals over a query.
 * @param {string} parent
 * @param {any} structuredQuery
 * @param {any[]} aggregations
 * @param {string} [readTime]
 * @returns {Promise<Record<string, Value>>}
 */
export async function runTotals(parent, structuredQuery, aggregations, readTime) {
  const answer = await request(
    "POST",
    address(parent, ":runAggregationQuery") + "?prettyPrint=false",
    { structuredAggregationQuery: { structuredQuery, aggregations }, readTime },
  );
  return answer[0]?.result?.aggregateFields ?? {};
}

/**
 * The number of documents of a query.
 * @param {string} parent
 * @param {any} structuredQuery
 * @param {string} [readTime]
 */
export async function count(parent, structuredQuery, readTime) {
  return Number(
    (await runTotals(parent, structuredQuery, [{ alias: "n", count: {} }], readTime)).n?.integerValue ?? 0,
  );
}

/**
 * @param {string} database
 * @param {any[]} writes
 */
export function commit(database, writes) {
  return request("POST", address(`${database}/documents`, ":commit") + "?prettyPrint=false", { writes });
}

/**
 * Writes that stand alone; those that fail are counted.
 * @param {string} database
 * @param {any[]} writes
 * @returns {Promise<{status?: {code?: number, message?: string}[]}>}
 */
export function batchWrite(database, writes) {
  return request("POST", address(`${database}/documents`, ":batchWrite") + "?prettyPrint=false", { writes });
}

/**
 * Every document below a parent, in pages: names alone.
 * @param {string} parent
 * @param {string} [after] a name
 * @param {number} [limit]
 * @returns {Promise<string[]>}
 */
export async function descendants(parent, after, limit = 500) {
  /** @type {any} */
  const query = {
    from: [{ allDescendants: true }],
    select: { fields: [{ fieldPath: "__name__" }] },
    orderBy: [{ field: { fieldPath: "__name__" } }],
    limit,
  };
  if (after) query.startAt = { values: [{ referenceValue: after }], before: false };
  return (await runQuery(parent, query)).documents.map((document) => document.name);
}

// The server.

/**
 * An administrative method.
 * @param {string} method such as hearth.admin.v1.Admin/ListRules
 * @param {any} [body]
 * @returns {Promise<any>}
 */
export function admin(method, body = {}) { return request("POST", `/console/rpc/${method}`, body); }

/**
 * What a view shows.
 * @param {string} name
 * @param {Record<string, any>} [parameters]
 * @returns {Promise<any>}
 */
export function data(name, parameters = {}) {
  return request("GET", `/console/data/${name}?${new URLSearchParams(parameters)}`);
}

/**
 * Starts or cancels a backup, or removes one.
 * @param {"start"|"cancel"|"remove"} action
 * @param {string} [name] of the backup that is removed
 * @returns {Promise<any>}
 */
export function backup(action, name) { return request("POST", "/console/data/backups", { action, name }); }

/**
 * Messages about rules and their verdicts.
 * @param {string} text
 * @param {string} [cases]
 * @returns {Promise<any>}
 */
export function checkRules(text, cases) { return request("POST", "/console/data/rules", { text, cases }); }

/**
 * The plan of a query.
 * @param {string} parent
 * @param {any} structuredQuery
 * @param {boolean} analyze
 * @param {any[]} aggregations
 * @returns {Promise<any>}
 */
export function explain(parent, structuredQuery, analyze, aggregations = []) {
  const explainOptions = { analyze };
  if (!aggregations.length) return admin(
    "google.firestore.v1.Firestore/RunQuery", { parent, structuredQuery, explainOptions },
  );
  return admin(
    "google.firestore.v1.Firestore/RunAggregationQuery",
    { parent, structuredAggregationQuery: { structuredQuery, aggregations }, explainOptions },
  );
}

/**
 * The plan of a pipeline.
 * @param {string} database
 * @param {any} structuredPipeline
 * @param {boolean} analyze
 * @returns {Promise<any>}
 */
export function explainPipeline(database, structuredPipeline, analyze) {
  const mode = { stringValue: analyze ? "analyze" : "explain" };
  return admin("google.firestore.v1.Firestore/ExecutePipeline", {
    database,
    structuredPipeline: { ...structuredPipeline, options: { explain_options: { mapValue: { fields: { mode } } } } },
  });
}
