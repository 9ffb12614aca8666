// Queries: a builder and a text that say the same, results as a table or JSON, totals, the plan, index advice.
// Pipelines are texts alone.

import { listen } from "./live.js";
import { planCard } from "./plan.js";
import * as words from "./query-text.js";
import * as rest from "./rest.js";
import { RowList } from "./rows.js";
import {
  attempt, choices, copy, counted, dialog, durationText, empty, field, fill, h, heading, select, short,
} from "./ui.js";
import { kindOf, lastSegment, lineOf, pathOf, textOf, toLine, writeJSON } from "./values.js";
import { download } from "./view-data.js";

/** @typedef {import("./app.js").App} App */
/** @typedef {import("./values.js").Document} Document */

const historyKey = "hearth.queries";
const historyMax = 40;
/** Documents that a result keeps in the page. */
const resultsMax = 20_000;

/**
 * The last queries of this browser, the newest first.
 * @returns {string[]}
 */
export function queryHistory() {
  try { return JSON.parse(localStorage.getItem(historyKey) ?? "[]"); } catch { return []; }
}

/**
 * Whether a text is stages of a pipeline, as `hearth query --pipeline` takes them, and no query in words.
 * @param {string} text
 */
function isPipeline(text) { return /^\s*[a-z_]+\s*\(/.test(text); }

/**
 * Whether a pipeline changes documents.
 * @param {any} structuredPipeline
 */
function writes(structuredPipeline) {
  return ["update", "delete"].includes(structuredPipeline.pipeline?.stages?.at(-1)?.name);
}

/** @param {string} text */
function remember(text) {
  localStorage.setItem(
    historyKey, JSON.stringify([text, ...queryHistory().filter((other) => other !== text)].slice(0, historyMax)),
  );
}

/**
 * @param {App} app
 * @param {URLSearchParams} parameters
 */
export function queryView(app, parameters) {
  /** @type {words.QueryWords} */
  let query = words.emptyWords();
  let abort = new AbortController();
  /** @type {() => void} */
  let stopListening = () => {};
  /** @type {Document[]} */
  let documents = [];
  let shape = "table";
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea.query-text", {
    rows: 2,
    spellcheck: "false",
    "aria-label": "Query as text",
    placeholder: "books --where 'year >= 1965' --order-by year:desc --limit 50",
    oninput: fromText,
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); run(); }
    } }));
  const problem = h("p.problem", { role: "alert" });
  const builder = h("div.builder", {});
  const summary = h("div.summary", { role: "status" });
  const results = h("div.results", {});
  const plan = h("div", {});
  const live = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox", onchange: () => run() }));

  function fromText() {
    if (isPipeline(text.value)) {
      problem.textContent = "";
      query = words.emptyWords();
      return fill(builder, h("p.hint", {}, "A pipeline. Its stages and functions are in docs/pipelines.md."));
    }
    try {
      query = words.read(text.value);
      problem.textContent = "";
      build();
    } catch (error) {
      const isEmpty = text.value.trim() === "";
      problem.textContent = isEmpty ? "" : /** @type {Error} */ (error).message;
      if (isEmpty) build();
    }
  }

  function toText() {
    text.value = query.collection ? words.write(query) : "";
    problem.textContent = "";
  }

  /** Shows the query in the builder. */
  function build() {
    /**
     * @param {string} label
     * @param {"collection"|"orderBy"|"limit"|"offset"|"select"} key
     * @param {string} placeholder
     */
    const input = (label, key, placeholder) => field(
      label,
      h("input", {
        type: "text",
        value: query[key],
        placeholder,
        spellcheck: "false",
        oninput: (/** @type {any} */ event) => { query[key] = event.target.value.trim(); toText(); },
      }),
    );
    const conditions = query.conditions.map((condition, index) => h("div.condition", {},
      h("input", {
        type: "text",
        "aria-label": "Field",
        placeholder: "field",
        value: condition.field,
        spellcheck: "false",
        oninput: (/** @type {any} */ event) => { condition.field = event.target.value; toText(); },
      }),
      select(
        Object.keys(words.operators),
        condition.operator,
        {
          "aria-label": "Operator",
          onchange: (/** @type {any} */ event) => { condition.operator = event.target.value; toText(); },
        },
      ),
      h("input", {
        type: "text",
        "aria-label": "Value",
        placeholder: "value",
        value: condition.value,
        spellcheck: "false",
        oninput: (/** @type {any} */ event) => { condition.value = event.target.value; toText(); },
      }),
      h("button.small", {
        type: "button",
        "aria-label": "Remove the condition",
        onclick: () => { query.conditions.splice(index, 1); toText(); build(); },
      }, "✕")));
    const check = (/** @type {string} */ label, /** @type {"group"|"count"} */ key) => h("label.check", {},
      h("input", {
        type: "checkbox",
        checked: query[key],
        onchange: (/** @type {any} */ event) => { query[key] = event.target.checked; toText(); },
      }),
      label,
    );
    fill(builder, h("div.builder-row", {},
      input("Collection", "collection", "books"), check("all collections of this id", "group"),
    ),
      h("div.builder-conditions", {},
        h("span.label", {}, "Where"),
        conditions,
        h("button.small", {
          type: "button",
          onclick: () => { query.conditions.push({ field: "", operator: "==", value: "" }); build(); },
        }, "+ Condition"),
      ),
      h("div.builder-row", {},
        input("Order by", "orderBy", "year:desc"),
        input("Limit", "limit", "none"),
        input("Offset", "offset", "0"),
        input("Select", "select", "all fields"),
        check("count alone", "count"),
      ));
  }

  /**
   * What the text asks for; null with the problem shown.
   * @returns {Promise<{parent: string, query: any, aggregations: any[], pipeline?: any}|null>}
   */
  async function compiled() {
    try {
      problem.textContent = "";
      if (!isPipeline(text.value)) {
        query = words.read(text.value);
        return words.compile(query, app.database);
      }
      const answer = await rest.readPipeline(text.value);
      if (answer.problem) throw new Error(answer.problem);
      return { parent: "", query: {}, aggregations: [], pipeline: answer.structuredPipeline };
    } catch (error) { problem.textContent = /** @type {Error} */ (error).message; return null; }
  }

  /**
   * Whether a pipeline may be run: one that writes is asked for each time.
   * @param {any} pipeline
   */
  async function mayRun(pipeline) {
    if (!pipeline || !writes(pipeline)) return true;
    return await dialog("Change documents", (close) => [
      h("p", {}, "This pipeline changes documents. The changes are one commit."),
      choices(close, "Run it", () => true, "danger"),
    ]) === true;
  }

  /** @param {boolean} [isOpening] the text comes from an address, which never writes */
  async function run(isOpening = false) {
    const request = await compiled();
    if (!request) return;
    if (isOpening && request.pipeline && writes(request.pipeline)) {
      return fill(summary, "This pipeline changes documents. It has not been run.");
    }
    if (!await mayRun(request.pipeline)) return;
    stopListening();
    abort.abort();
    abort = new AbortController();
    const own = abort;
    remember(text.value.trim());
    history.replaceState(null, "", app.link("query", { q: text.value.trim() }));
    fill(plan);
    documents = [];
    fill(summary, "Running…");
    const start = performance.now();
    try {
      if (request.aggregations.length) {
        const totals = await rest.runTotals(request.parent, request.query, request.aggregations);
        if (own.signal.aborted) return;
        fill(
          results,
          h("dl.totals", {},
            Object.entries(totals).map(([name, value]) => [h("dt", {}, name), h("dd", {}, textOf(value))]),
          ),
        );
        return fill(summary, `in ${durationText((performance.now() - start) / 1000)}`);
      }
      if (live.checked && request.pipeline) throw new Error("A pipeline is not live here. Clear Live to run it.");
      if (live.checked) return listenToResults(request);
      let isCut = false;
      const each = (/** @type {Document} */ document) => {
        documents.push(document);
        if (documents.length >= resultsMax) { isCut = true; own.abort(); }
      };
      try {
        if (request.pipeline) await rest.runPipeline(app.database, request.pipeline, each, own.signal);
        else await rest.runQuery(request.parent, request.query, { signal: own.signal, each });
      } catch (error) { if (!isCut) throw error; }
      if (own.signal.aborted && !isCut) return;
      showResults();
      const time = durationText((performance.now() - start) / 1000);
      const noun = request.pipeline ? "result" : "document";
      fill(summary, `${counted(documents.length, noun)}${isCut ? " (more are left out)" : ""} in ${time}`);
    } catch (error) {
      if (/** @type {any} */ (error).name === "AbortError") return;
      fill(summary);
      fill(results, h("p.problem", { role: "alert" }, /** @type {Error} */ (error).message));
    }
  }

  /** @param {{parent: string, query: any}} request */
  function listenToResults(request) {
    /** @type {Map<string, Document>} */
    const found = new Map();
    let isDue = false;
    stopListening = listen(app.database, { query: { parent: request.parent, structuredQuery: request.query } }, {
      snapshot({ changes, isReset }) {
        if (isReset) found.clear();
        for (const { name, document } of changes) {
          if (document) found.set(name, document); else found.delete(name);
        }
        if (isDue) return;
        isDue = true;
        requestAnimationFrame(() => {
          isDue = false;
          documents = sorted([...found.values()], request.query);
          showResults();
          fill(summary, h("i.dot.good", {}), `Live: ${counted(documents.length, "document")}`);
        });
      },
      failed(error) { fill(summary); fill(results, h("p.problem", { role: "alert" }, error.message)); },
    });
  }

  function showResults() {
    if (shape === "json") fill(
      results,
      h("pre.json", { tabindex: 0 },
        documents.slice(0, 500).map((document) => writeJSON(
          Object.fromEntries(
            [
              ...(document.name ? [["__name__", pathOf(document.name)]] : []),
              ...Object.entries(document.fields ?? {}).sort().map(([name, value]) => [name, toLine(value)]),
            ],
          ),
          2,
        )).join("\n"),
        documents.length > 500 ? "\n…" : "",
      ),
    );
    else fill(results, documents.length ? table(app, documents) : empty("No document matches."));
  }

  async function explain(/** @type {boolean} */ analyze) {
    const request = await compiled();
    if (!request || analyze && !await mayRun(request.pipeline)) return;
    const answer = await attempt(() => (request.pipeline
      ? rest.explainPipeline(app.database, request.pipeline, analyze)
      : rest.explain(request.parent, request.query, analyze, request.aggregations)));
    if (answer) fill(plan, planCard(app, answer));
  }

  function showHistory() {
    const entries = queryHistory();
    fill(
      plan,
      h("section.card", { "aria-label": "History" },
        h("h2", {}, "History"),
        entries.length
          ? h("div.list", {},
            entries.map((entry) => h("a.item", { href: app.link("query", { q: entry }) },
              h("code.item-text", {}, short(entry, 160)),
            )),
          )
          : h("p.hint", {}, "No query has been run in this browser."),
      ),
    );
  }

  const shapeButton = (/** @type {string} */ name, /** @type {string} */ title) => h("button.small", {
    type: "button",
    "aria-pressed": String(shape === name),
    onclick: (/** @type {any} */ event) => {
      shape = name;
      for (const button of event.target.parentElement.children) button.setAttribute(
        "aria-pressed", String(button === event.target),
      );
      showResults();
    },
  }, title);

  const element = h("div.view.view-query", {}, heading(
    "Query",
    h("button.small", { type: "button", onclick: showHistory }, "History"),
    h("button.small", { type: "button", onclick: () => copy(location.href) }, "Copy the link"),
  ),
    h("section.card", { "aria-label": "Query" }, text, problem, builder,
      h("div.query-actions", {}, h("button.primary", { type: "button", onclick: () => run() },
        "Run",
      ), h("button", { type: "button", onclick: () => explain(false) },
        "Explain",
      ), h("button", { type: "button", onclick: () => explain(true) },
        "Run and explain",
      ), h("label.check", {}, live, "Live"), h("span.grow", {}),
        h("span.segmented", { role: "group", "aria-label": "Form of the results" },
          shapeButton("table", "Table"), shapeButton("json", "JSON"),
        ), h("button.small", {
          type: "button",
          onclick: () => download(
            "results.jsonl", documents.map(
              (document) => lineOf(document, document.name && pathOf(document.name)) + "\n",
            ),
          ),
        }, "Export"))),
    plan, summary, results);

  /** @param {URLSearchParams} next */
  function take(next) {
    text.value = next.get("q") ?? "";
    build();
    fromText();
    fill(results);
    fill(summary);
    if (text.value) run(true);
  }
  take(parameters);
  return { element, update: take, close() { stopListening(); abort.abort(); } };
}

/**
 * Documents in the order of a query.
 * @param {Document[]} documents
 * @param {any} query
 */
function sorted(documents, query) {
  const orders = (query.orderBy ?? []).map((/** @type {any} */ order) => ({
    path: order.field.fieldPath, sign: order.direction === "DESCENDING" ? -1 : 1,
  }));
  const key = (/** @type {Document} */ document, /** @type {string} */ path) => {
    const value = document.fields?.[path];
    if (!value) return null;
    return kindOf(value) === "integer" || kindOf(value) === "double" ? Number(textOf(value)) : textOf(value);
  };
  return documents.sort((a, b) => {
    for (const { path, sign } of orders) {
      if (path === "__name__") return sign * (a.name < b.name ? -1 : 1);
      const [left, right] = [key(a, path), key(b, path)];
      if (left !== right) return sign * ((left ?? "") < (right ?? "") ? -1 : 1);
    }
    return a.name < b.name ? -1 : 1;
  });
}

// Results.

const columnsMax = 12;

/**
 * @param {App} app
 * @param {Document[]} documents
 */
function table(app, documents) {
  /** @type {Map<string, number>} */
  const names = new Map();
  for (const document of documents.slice(0, 500)) for (const name of Object.keys(document.fields ?? {})) names.set(
    name, (names.get(name) ?? 0) + 1,
  );
  const byUse = [...names].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  const columns = byUse.slice(0, columnsMax).map(([name]) => name);
  const rows = new RowList({ rowHeight: 30, label: "Results", render(index) {
    const document = documents[index];
    return h("div.row.table-row", { role: "option" }, h("span.cell.id", {}, document.name
      ? h("a", { href: app.link("data", { path: pathOf(document.name) }) }, short(lastSegment(document.name), 60))
      : `${index + 1}`,
    ), columns.map((name) => {
      const value = document.fields?.[name];
      return h("span.cell", { class: value ? kindOf(value).replace(" ", "-") : "absent" },
        value ? short(textOf(value, 80), 80) : "–",
      );
    }));
  }, choose(index) {
    if (documents[index].name) app.go("data", { path: pathOf(documents[index].name) });
  } });
  rows.setCount(documents.length);
  const hidden = names.size - columns.length;
  const box = h("div.table", {},
    h("div.table-head", { "aria-hidden": "true" },
      h("span.cell.id", {}, "document"), columns.map((name) => h("span.cell", {}, short(name, 40))),
    ),
    rows.element,
  );
  // Few results leave no empty space below them.
  box.style.height = `min(62vh, ${documents.length * 30 + 46}px)`;
  rows.element.addEventListener(
    "scroll", () => { /** @type {HTMLElement} */ (box.firstElementChild).scrollLeft = rows.element.scrollLeft; },
  );
  return [box, hidden > 0 && h("p.hint", {}, `${counted(hidden, "more field")} in JSON.`)];
}
