// All listeners of a browser over one channel for each database.
//
// A listener gets whole snapshots: the changes since the last one, at one read time. When the channel is lost it is
// opened again, and each target continues at its resume token.

import { WebChannel } from "./webchannel.js";

/**
 * @typedef {{name: string, document: any}} Change
 * @typedef {{changes: Change[], isReset: boolean, isCurrent: boolean, readTime: string}} Snapshot
 *   `document` is null for one that was removed
 * @typedef {{status: string, message: string}} Failure
 * @typedef {{snapshot: (snapshot: Snapshot) => void, failed: (error: Failure) => void}} Listener
 */

class Target {
  /**
   * @param {any} request
   * @param {Listener} listener
   */
  constructor(request, listener) {
    this.request = request;
    this.listener = listener;
    // The token of the last snapshot, and one whose changes are not complete yet.
    this.resumeToken = "";
    this.nextToken = "";
    this.isCurrent = false;
    this.isTold = false;
    this.isReset = false;
    /** @type {Map<string, any>} */
    this.changes = new Map();
  }
}

/** The listeners of one database. */
class Stream {
  /** @type {Map<number, Target>} */
  targets = new Map();
  #nextID = 1;
  /** @type {WebChannel|null} */
  #channel = null;
  #failures = 0;

  /**
   * @param {string} database
   * @param {() => string|null} authorization
   * @param {typeof WebChannel} Channel
   */
  constructor(database, authorization, Channel) {
    this.database = database;
    this.authorization = authorization;
    this.Channel = Channel;
  }

  /**
   * @param {any} request
   * @param {Listener} listener
   * @returns {number}
   */
  add(request, listener) {
    const id = this.#nextID++;
    this.targets.set(id, new Target(request, listener));
    if (this.#channel) this.#ask(id);
    else this.#open();
    return id;
  }

  /** @param {number} id */
  remove(id) {
    if (!this.targets.delete(id)) return;
    if (this.targets.size) return this.#channel?.send({ database: this.database, removeTarget: id });
    this.#channel?.close();
    this.#channel = null;
  }

  #open() {
    const shown = this.authorization();
    /** @type {Record<string, string>} */
    const headers = { "X-Goog-Api-Client": "hearth-console" };
    if (shown) headers.Authorization = shown;
    const channel = new this.Channel(this.database, headers, {
      onMessage: (message) => { this.#failures = 0; this.#take(message); },
      onEnd: (error) => { if (this.#channel === channel) this.#lost(error); },
    });
    this.#channel = channel;
    for (const id of this.targets.keys()) this.#ask(id);
  }

  /** @param {number} id */
  #ask(id) {
    const target = /** @type {Target} */ (this.targets.get(id));
    const resume = target.resumeToken ? { resumeToken: target.resumeToken } : {};
    target.changes.clear();
    target.nextToken = target.resumeToken;
    target.isCurrent = false;
    target.isReset = target.isTold && !target.resumeToken;
    this.#channel?.send({ database: this.database, addTarget: { targetId: id, ...target.request, ...resume } });
  }

  /** @param {{status: string, message: string}|null} error */
  #lost(error) {
    this.#channel = null;
    if (error && ["UNAUTHENTICATED", "PERMISSION_DENIED", "INVALID_ARGUMENT"].includes(error.status)) {
      const lost = [...this.targets.values()];
      this.targets.clear();
      for (const target of lost) target.listener.failed(error);
      return;
    }
    this.#failures += 1;
    const wait = Math.min(200 * 2 ** this.#failures, 10_000);
    setTimeout(() => { if (!this.#channel && this.targets.size) this.#open(); }, wait);
  }

  /** @param {any} message a ListenResponse */
  #take(message) {
    if (message.targetChange) this.#targetChange(message.targetChange);
    else if (message.documentChange) this.#documentChange(message.documentChange);
    else if (message.documentDelete ?? message.documentRemove) {
      const removed = message.documentDelete ?? message.documentRemove;
      for (const id of removed.removedTargetIds ?? []) this.targets.get(id)?.changes.set(removed.document, null);
    }
  }

  /** @param {any} change */
  #documentChange(change) {
    for (const id of change.targetIds ?? []) this.targets.get(id)?.changes.set(change.document.name, change.document);
    for (const id of change.removedTargetIds ?? []) this.targets.get(id)?.changes.set(change.document.name, null);
  }

  /** @param {any} change */
  #targetChange(change) {
    const ids = change.targetIds ?? [];
    const targets = ids.length
      ? ids.map((/** @type {number} */ id) => this.targets.get(id)).filter(Boolean)
      : [...this.targets.values()];
    switch (change.targetChangeType) {
      case "REMOVE":
        for (const id of ids) {
          const target = this.targets.get(id);
          this.targets.delete(id);
          if (change.cause) target?.listener.failed({ status: "INVALID_ARGUMENT", message: change.cause.message });
        }
        return;
      case "CURRENT": for (const target of targets) target.isCurrent = true; break;
      case "RESET": for (const target of targets) {
        target.changes.clear();
        target.isReset = true;
        target.isCurrent = false;
      } break;
    }
    if (change.resumeToken) for (const target of targets) target.nextToken = change.resumeToken;
    if ((change.targetChangeType ?? "NO_CHANGE") === "NO_CHANGE" && !ids.length) this.#publish(change.readTime ?? "");
  }

  /**
   * Everything up to a read time has come.
   * @param {string} readTime
   */
  #publish(readTime) {
    for (const target of this.targets.values()) {
      if (!target.isCurrent) continue;
      target.resumeToken = target.nextToken;
      if (!target.changes.size && !target.isReset && target.isTold) continue;
      const changes = [...target.changes].map(([name, document]) => ({ name, document }));
      target.changes.clear();
      const isReset = target.isReset;
      target.isReset = false;
      target.isTold = true;
      target.listener.snapshot({ changes, isReset, isCurrent: true, readTime });
    }
  }
}

export class ListenHub {
  /** @type {Map<string, Stream>} */
  #streams = new Map();
  /** @type {string|null} */
  authorization = null;

  /** @param {typeof WebChannel} [Channel] for tests */
  constructor(Channel = WebChannel) { this.Channel = Channel; }

  /**
   * @param {string} database
   * @param {any} request `{query: ...}` or `{documents: ...}`
   * @param {Listener} listener
   * @returns {() => void} ends it
   */
  listen(database, request, listener) {
    let stream = this.#streams.get(database);
    if (!stream) {
      stream = new Stream(database, () => this.authorization, this.Channel);
      this.#streams.set(database, stream);
    }
    const own = stream;
    const id = own.add(request, listener);
    return () => own.remove(id);
  }
}
