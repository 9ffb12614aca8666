// A client of WebChannel (docs/web.md): one stream of an RPC over many HTTP requests.
//
//     send() ──► POST, one at a time, with all messages that wait
//     GET    ──► frames `length\nJSON`, each with numbered arrays; an array that has come before is dropped
//
// A request that breaks is made again with the number of the last array; the server keeps what is not acknowledged.

const path = "/google.firestore.v1.Firestore/Listen/channel";
const attemptsMax = 5;

/** Cuts a growing text into the frames of a back channel. */
export class FrameReader {
  #text = "";

  /**
   * @param {string} text
   * @returns {any[][]} the arrays of all frames that are complete
   */
  take(text) {
    this.#text += text;
    const arrays = [];
    for (;;) {
      const end = this.#text.indexOf("\n");
      if (end < 0) return arrays;
      const length = Number(this.#text.slice(0, end));
      if (!Number.isInteger(length) || length < 0) throw new Error("The stream is malformed.");
      if (this.#text.length < end + 1 + length) return arrays;
      arrays.push(...JSON.parse(this.#text.slice(end + 1, end + 1 + length)));
      this.#text = this.#text.slice(end + 1 + length);
    }
  }
}

/**
 * @typedef {{status: string, message: string}} Failure
 * @typedef {{onMessage: (message: any) => void, onEnd: (error: Failure|null) => void}} Handler
 */

export class WebChannel {
  #parameters;
  #headers;
  /** @type {Handler} */
  #handler;
  #fetch;
  /** @type {string|null} */
  #session = null;
  #requests = Math.floor(Math.random() * 100_000);
  #sent = 0;
  #received = 0;
  /** @type {any[]} */
  #waiting = [];
  #isSending = false;
  #isOver = false;
  #abort = new AbortController();

  /**
   * @param {string} database `projects/P/databases/D`
   * @param {Record<string, string>} headers of the requests
   * @param {Handler} handler `onEnd` is called once, unless the channel is closed
   * @param {typeof fetch} [fetching] for tests
   */
  constructor(database, headers, handler, fetching = (...parameters) => fetch(...parameters)) {
    this.#parameters = { VER: "8", database };
    this.#headers = headers;
    this.#handler = handler;
    this.#fetch = fetching;
  }

  /** @param {any} message */
  send(message) {
    this.#waiting.push(message);
    this.#flush();
  }

  close() {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#abort.abort();
    if (this.#session) this.#request("POST", { SID: this.#session, TYPE: "terminate" }, "", false).catch(() => {});
  }

  /** @param {{status: string, message: string}|null} error */
  #end(error) {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#abort.abort();
    this.#handler.onEnd(error);
  }

  /**
   * @param {string} method
   * @param {Record<string, string>} parameters
   * @param {string} [body]
   * @param {boolean} [canEnd]
   */
  #request(method, parameters, body, canEnd = true) {
    const query = new URLSearchParams({
      ...this.#parameters, ...parameters, zx: Math.random().toString(36).slice(2),
    });
    const headers = {
      ...this.#headers, ...(body === undefined ? {} : { "Content-Type": "application/x-www-form-urlencoded" }),
    };
    return this.#fetch(
      `${path}?${query}`,
      {
        method,
        headers,
        body,
        credentials: "omit",
        cache: "no-store",
        signal: canEnd ? this.#abort.signal : undefined,
        keepalive: !canEnd,
      },
    );
  }

  /** Sends what waits, after what is under way has been received. */
  async #flush() {
    if (this.#isSending || this.#isOver || !this.#waiting.length) return;
    this.#isSending = true;
    const messages = this.#waiting.splice(0, 500);
    const form = new URLSearchParams({ count: String(messages.length), ofs: String(this.#sent) });
    messages.forEach((message, index) => form.set(`req${index}___data__`, JSON.stringify(message)));
    this.#sent += messages.length;
    const answer = await this.#repeated(() => this.#post(form.toString()));
    this.#isSending = false;
    if (answer === null) return;
    if (!this.#session) {
      const [[, [, session]]] = new FrameReader().take(answer);
      this.#session = session;
      this.#receive();
    }
    this.#flush();
  }

  /** @param {string} body */
  async #post(body) {
    const parameters = { RID: String(this.#requests++), CVER: "22" };
    /** @type {Record<string, string>} */
    const more = this.#session ? { SID: this.#session, AID: String(this.#received) } : {};
    const response = await this.#request("POST", { ...parameters, ...more }, body);
    const text = await response.text();
    if (!response.ok) { this.#refused(response.status, text); return null; }
    return text;
  }

  /**
   * @param {number} code
   * @param {string} text
   */
  #refused(code, text) {
    const status = code === 401
      ? "UNAUTHENTICATED"
      : code === 403
        ? "PERMISSION_DENIED"
        : code === 400 && !text.includes("Unknown SID") ? "INVALID_ARGUMENT" : "UNAVAILABLE";
    this.#end({ status, message: text.trim() });
  }

  /**
   * Makes a request again that has broken off.
   * @template T
   * @param {() => Promise<T>} work
   * @returns {Promise<T|null>}
   */
  async #repeated(work) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await work();
      } catch (error) {
        if (this.#isOver) return null;
        if (attempt >= attemptsMax) {
          this.#end({ status: "UNAVAILABLE", message: "The server cannot be reached." });
          return null;
        }
        await new Promise((resolve) => setTimeout(resolve, 200 * 2 ** attempt));
      }
    }
  }

  /** Reads back channels, one after the other. */
  async #receive() {
    while (!this.#isOver) {
      await this.#repeated(async () => {
        const response = await this.#request(
          "GET",
          {
            RID: "rpc",
            SID: /** @type {string} */ (this.#session),
            AID: String(this.#received),
            CI: "0",
            TYPE: "xmlhttp",
          },
        );
        if (!response.ok || !response.body) return this.#refused(response.status, await response.text());
        const reader = response.body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
        const frames = new FrameReader();
        for (;;) {
          const { value, done } = await reader.read();
          if (done) return;
          for (const [number, payload] of frames.take(value)) this.#take(number, payload);
        }
      });
    }
  }

  /**
   * @param {number} number
   * @param {any} payload
   */
  #take(number, payload) {
    if (number <= this.#received || this.#isOver) return;
    this.#received = number;
    const [first] = payload;
    if (first === "noop") return;
    if (first === "close" || first === "stop") return this.#end(null);
    const error = (Array.isArray(first) ? first[0] : first)?.error;
    if (error) return this.#end(error);
    this.#handler.onMessage(first);
  }
}
