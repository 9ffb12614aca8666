// The past: a document or the results of a query as they were at a time, and what differs from now.

import * as words from "./query-text.js";
import * as rest from "./rest.js";
import { attempt, counted, field, fill, h, heading, short } from "./ui.js";
import { lastSegment, pathOf, same } from "./values.js";
import { fieldDifference } from "./view-watch.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./values.js").Document} Document */

/** Documents of a query that are compared. */
const documentsMax = 1_000;

/**
 * @param {App} app
 * @param {URLSearchParams} parameters
 */
export function timeView(app, parameters) {
  const what = /** @type {HTMLInputElement} */ (h("input", {
    type: "text",
    spellcheck: "false",
    value: parameters.get("path") ?? parameters.get("q") ?? "",
    placeholder: "users/ada, or books --where 'year >= 1965'",
    oninput: later,
  }));
  const slider = /** @type {HTMLInputElement} */ (h("input.slider", {
    type: "range", min: "0", max: "1000", value: "1000", "aria-label": "Time", oninput: later,
  }));
  const moment = h("output.moment", {});
  const range = h("p.hint", {});
  const result = h("div", { role: "status" });
  let bounds = { oldest: 0, now: 0 };
  let timer = 0;
  let asked = 0;

  function later() {
    moment.textContent = timeText(chosen());
    clearTimeout(timer);
    timer = window.setTimeout(() => attempt(show), 120);
  }

  /** In microseconds since 1970. */
  function chosen() { return Math.round(bounds.oldest + (bounds.now - bounds.oldest) * Number(slider.value) / 1000); }

  async function loadBounds() {
    const state = await rest.data("state");
    bounds = {
      now: state.nowMicroseconds, oldest: Math.max(state.oldestMicroseconds, state.nowMicroseconds - 3_600_000_000),
    };
    range.textContent = `Readable from ${timeText(bounds.oldest)} on: `
      + "the store keeps its history for the time of --retention.";
    moment.textContent = timeText(chosen());
  }

  async function show() {
    const own = ++asked;
    const text = what.value.trim();
    if (!text) return fill(result, h("p.hint", {}, "Name a document, a collection or a query."));
    const seconds = new Date(chosen() / 1000).toISOString().slice(0, 19);
    const readTime = `${seconds}.${String(chosen() % 1_000_000).padStart(6, "0")}Z`;
    const isDocument = !text.includes(" ") && text.split("/").length % 2 === 0;
    const [then, now] = isDocument
      ? await Promise.all([readOne(text, readTime), readOne(text)])
      : await Promise.all([readQuery(text, readTime), readQuery(text)]);
    if (own === asked) fill(result, difference(then, now));
  }

  /**
   * @param {string} path
   * @param {string} [readTime]
   * @returns {Promise<Map<string, Document>>}
   */
  async function readOne(path, readTime) {
    const document = await rest.getDocument(`${app.database}/documents/${path.replace(/^\//, "")}`, readTime);
    return new Map(document ? [[document.name, document]] : []);
  }

  /**
   * @param {string} text
   * @param {string} [readTime]
   * @returns {Promise<Map<string, Document>>}
   */
  async function readQuery(text, readTime) {
    const { parent, query } = words.compile(words.read(text), app.database);
    query.limit = Math.min(query.limit ?? documentsMax, documentsMax);
    const { documents } = await rest.runQuery(parent, query, { readTime });
    return new Map(documents.map((document) => [document.name, document]));
  }

  /**
   * @param {Map<string, Document>} then
   * @param {Map<string, Document>} now
   */
  function difference(then, now) {
    const names = [...new Set([...then.keys(), ...now.keys()])];
    const different = names.filter((name) => !same(then.get(name)?.fields, now.get(name)?.fields));
    return h("section.card", {
      "aria-label": "Differences",
    }, h("h2", {},
      different.length
        ? `${counted(different.length, "document")} of ${names.length} `
          + `${different.length === 1 ? "differs" : "differ"} from now`
        : names.length ? `The same as now: ${counted(names.length, "document")}` : "Nothing then, and nothing now.",
    ),
      different.slice(0, 200).map((name) => {
        const [was, is] = [then.get(name), now.get(name)];
        return h("details.change", { open: different.length === 1 },
          h("summary", {},
            h(`span.badge.${!was ? "created" : !is ? "deleted" : "updated"}`, {},
              !was ? "created since" : !is ? "deleted since" : "changed since",
            ),
            h("a", { href: app.link("data", { path: pathOf(name) }) }, short(lastSegment(name), 80)),
          ),
          fieldDifference(was?.fields ?? {}, is?.fields ?? {}, ["Then", "Now"]),
        );
      }));
  }

  attempt(async () => { await loadBounds(); slider.value = parameters.has("path") ? "0" : "1000"; later(); });
  return {
    element: h("div.view.view-time", {}, heading(
      "Time",
      h("button", { type: "button", onclick: () => attempt(async () => { await loadBounds(); later(); }) },
        "Now again",
      ),
    ),
      h("section.card", { "aria-label": "Moment" },
        field("Document, collection or query", what), h("div.slider-row", {}, slider, moment), range,
      ), result),
    close() { clearTimeout(timer); },
  };
}

/** @param {number} microseconds */
function timeText(microseconds) {
  const time = new Date(microseconds / 1000);
  return `${time.toISOString().slice(0, 10)} ${time.toISOString().slice(11, 23)} UTC`;
}
