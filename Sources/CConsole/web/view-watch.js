// What the server does: figures of the last hour, who listens, and the changes of documents as they are committed.

import { chartBox } from "./chart.js";
import * as rest from "./rest.js";
import { attempt, byteText, counted, durationText, fill, h, heading, short } from "./ui.js";
import { kindOf, same, textOf } from "./values.js";

/** @typedef {import("./app.js").App} App */

const number = (/** @type {number} */ value) => value >= 1000
  ? `${(value / 1000).toFixed(1)}k`
  : value >= 10 || Number.isInteger(value) ? String(Math.round(value)) : value.toFixed(1);

/** @type {{title: string, series: [string, string, "rate"|"level"][], format: (value: number) => string}[]} */
const charts = [
  {
    title: "Commits per second",
    series: [["commits", "commits", "rate"], ["documents", "documentsWritten", "rate"]],
    format: number,
  },
  { title: "Documents read per second", series: [["read", "documentsRead", "rate"]], format: number },
  { title: "Calls per second", series: [["calls", "calls", "rate"]], format: number },
  {
    title: "Time of a call",
    series: [["p99", "requestTail", "level"], ["median", "requestMedian", "level"]],
    format: durationText,
  },
  {
    title: "Time of a sync",
    series: [["p99", "syncTail", "level"], ["median", "syncMedian", "level"]],
    format: durationText,
  },
  { title: "Messages to listeners per second", series: [["messages", "listenMessages", "rate"]], format: number },
  {
    title: "Memory",
    series: [
      ["resident", "residentBytes", "level"],
      ["own", "anonymousBytes", "level"],
      ["memtable", "memtableBytes", "level"],
    ],
    format: byteText,
  },
  {
    title: "Store",
    series: [["runs", "runBytes", "level"], ["merges wait", "mergePendingBytes", "level"]],
    format: byteText,
  },
  {
    title: "Share of time in merges",
    series: [["merges", "mergeSeconds", "rate"]],
    format: (value) => `${Math.round(value * 100)} %`,
  },
];

/** @param {string} name of a database */
function databaseText(name) { return short(name.replace("projects/", "").replace("/databases/", " / "), 40); }

/** @param {App} app */
export function watchView(app) {
  const boxes = charts.map((chart) => ({ chart, box: chartBox(chart.title, chart.series.map(([name]) => name)) }));
  const facts = h("dl.facts", {});
  const listeners = h("div", {});
  const reads = h("div", {});
  const changes = h("div", {});
  const path = /** @type {HTMLInputElement} */ (h("input", {
    type: "text",
    placeholder: "Path begins with",
    "aria-label": "Path begins with",
    spellcheck: "false",
    oninput: () => attempt(showChanges),
  }));
  const paused = /** @type {HTMLInputElement} */ (h("input", { type: "checkbox" }));
  let isOver = false;

  async function showCharts() {
    const history = await rest.data("history");
    const column = (/** @type {string} */ name) => history.names.indexOf(name);
    const time = column("time");
    for (const { chart, box } of boxes) {
      box.show(chart.series.map(([name, key, form]) => {
        const at = column(key);
        /** @type {[number, number][]} */
        const points = form === "level"
          ? history.samples.map((/** @type {number[]} */ sample) => [sample[time], sample[at]])
          : history.samples.slice(1).map((/** @type {number[]} */ sample, /** @type {number} */ index) => [
            sample[time],
            Math.max(
              0, sample[at] - history.samples[index][at],
            ) / Math.max(sample[time] - history.samples[index][time], 0.001),
          ]);
        return { name, points };
      }), chart.format);
    }
    const last = history.samples[history.samples.length - 1];
    if (!last) return;
    const levels = history.levelBytesWritten.map(
      (/** @type {number} */ bytes, /** @type {number} */ level) => bytes > 0 ? `L${level} ${byteText(bytes)}` : "",
    ).filter(Boolean);
    fill(
      facts,
      [
        ["listeners' streams", number(last[column("streamsOpen")])],
        ["runs", number(last[column("runs")])],
        ["checkpoints", number(last[column("checkpoints")])],
        ["merges", number(last[column("merges")])],
        ["superseded values kept", number(last[column("historyEntries")])],
        ["queue of commits", number(last[column("queuedRequests")])],
        ["written by level", levels.join(", ") || "none"],
      ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))),
    );
  }

  async function showListeners() {
    const answer = await rest.data("listeners");
    /** @type {any[]} */
    const all = answer.listeners;
    const rows = all.sort((a, b) => b.messages - a.messages).slice(0, 200);
    fill(listeners, rows.length ? h("div.scroll", {
      tabindex: 0, role: "region", "aria-label": "Table of listeners",
    }, h("table.plain", {}, h("thead", {},
      h("tr", {},
        [
          "Client", "Caller", "Database", "Listens to", "Messages", "Documents read", "In the last hour", "For",
        ].map((title) => h("th", { scope: "col" }, title)),
      ),
    ),
      h("tbody", {},
        rows.map((/** @type {any} */ row) => h("tr", {},
          h("td", {}, row.client),
          h("td", {}, row.caller || "–"),
          h("td", {}, databaseText(row.database)),
          h("td", {},
            row.targets.slice(0, 5).map((/** @type {string} */ target) => h("code.block", {}, short(target, 120))),
            row.targets.length > 5 && h("small", {}, `and ${row.targets.length - 5} more`),
          ),
          h("td.number", {}, row.messages.toLocaleString("en")),
          h("td.number", {}, row.documentsRead.toLocaleString("en")),
          h("td.number", {}, row.documentsLastHour.toLocaleString("en")),
          h("td.number", {}, durationText(Math.max(0, Date.now() / 1000 - row.sinceMicroseconds / 1e6))),
        )),
      ))) : h("p.hint", {}, "Nobody listens."));
  }

  async function showQueries() {
    const { queries } = await rest.data("queries");
    fill(reads, queries.length ? h("div.scroll", {
      tabindex: 0, role: "region", "aria-label": "Table of queries",
    }, h("table.plain", {},
      h("thead", {}, h("tr", {},
        ["Query", "Database", "Documents read", "Runs", "For each run"].map(
          (title) => h("th", { scope: "col" }, title),
        ),
      )),
      h("tbody", {}, queries.map((/** @type {any} */ row) => h("tr", {},
        h("td", {}, row.form ? h("code", {}, short(row.form, 300)) : "all others"),
        h("td", {}, databaseText(row.database)),
        h("td.number", {}, row.documents.toLocaleString("en")),
        h("td.number", {}, row.runs.toLocaleString("en")),
        h("td.number", {}, number(row.documents / row.runs)),
      ))),
    )) : h("p.hint", {}, "No query has run in the last hour."));
  }

  async function showChanges() {
    if (paused.checked) return;
    const answer = await rest.data("changes", path.value ? { path: path.value } : {});
    const since = new Date(answer.sinceMicroseconds / 1000).toLocaleTimeString();
    fill(changes, h("p.hint", {},
      `Changes since ${since}, the last ${answer.changesMax.toLocaleString("en")} at most. `
        + "The server keeps them in memory while this view is used, and ten minutes more.",
    ),
      answer.changes.map((/** @type {any} */ change) => changeRow(app, change)), answer.changes.length
        ? null
        : h("p.hint", {}, "No document has changed."));
  }

  async function refresh() {
    if (isOver) return;
    await attempt(async () => { await Promise.all([showCharts(), showQueries(), showListeners(), showChanges()]); });
    if (!isOver) setTimeout(refresh, 2_000);
  }
  refresh();

  return {
    element: h("div.view.view-watch", {}, heading(
      "Watch", h("span.hint", {}, "the last hour, a sample each 5 seconds"),
    ), h("div.charts", {},
      boxes.map(({ box }) => box.element),
    ), h("section.card", { "aria-label": "Figures" }, facts),
      h("section.card", { "aria-label": "Queries" },
        h("h2", {}, "Documents read by queries in the last hour"),
        h("p.hint", {}, "Queries that differ in values alone are one line. Those that read most are shown."),
        reads,
      ),
      h("section.card", { "aria-label": "Listeners" }, h("h2", {}, "Listeners"), listeners),
      h("section.card", { "aria-label": "Recent changes" },
        h("div.card-head", {}, h("h2", {}, "Recent changes"), path, h("label.check", {}, paused, "Pause")), changes,
      )),
    close() { isOver = true; },
  };
}

/**
 * One document before and after a commit.
 * @param {App} app
 * @param {any} change
 */
function changeRow(app, change) {
  const word = change.before === null ? "created" : change.after === null ? "deleted" : "updated";
  const time = new Date(Number(change.version) / 1000);
  return h("details.change", {}, h("summary", {},
    h("span.time", {}, `${time.toTimeString().slice(0, 8)}.${String(time.getMilliseconds()).padStart(3, "0")}`),
    h(`span.badge.${word}`, {}, word),
    h("code", {}, short(change.path, 100)),
    change.database !== app.database && h("small", {}, short(change.database, 60)),
  ),
    change.isCut
      ? h("p.hint", {}, "The document is larger than 64 KiB, so its fields are not kept.")
      : fieldDifference(change.before ?? {}, change.after ?? {}));
}

/**
 * The fields that differ, before and after.
 * @param {Record<string, any>} before
 * @param {Record<string, any>} after
 * @param {string[]} [titles] of the two columns
 */
export function fieldDifference(before, after, titles = ["Before", "After"]) {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
  const different = names.filter((name) => !same(before[name], after[name]));
  if (!different.length) return h("p.hint", {}, `No field differs; ${counted(names.length, "field")} in all.`);
  const cell = (/** @type {any} */ value, /** @type {string} */ kind) => h(`td.${kind}`, {},
    value ? [h("small.kind", {}, kindOf(value)), " ", short(textOf(value, 400), 400)] : h("span.absent", {}, "–"),
  );
  return h("div.scroll", {},
    h("table.plain.difference", {},
      h("thead", {}, h("tr", {}, ["Field", ...titles].map((title) => h("th", { scope: "col" }, title)))),
      h("tbody", {},
        different.map((name) => h("tr", {},
          h("th", { scope: "row" }, short(name, 60)), cell(before[name], "was"), cell(after[name], "is"),
        )),
      ),
    ),
  );
}
