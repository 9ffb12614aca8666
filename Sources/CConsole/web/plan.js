// Plans of queries, drawn: each operator is a box above its inputs, with what it gave out and how long it took.

import * as rest from "./rest.js";
import { attempt, counted, durationText, h, notify, short, vector } from "./ui.js";

/** @typedef {import("./app.js").App} App */

/**
 * An operator. The figures are there if the query was run.
 * @typedef {object} Operator
 * @property {number} depth the number of operators above it
 * @property {string} line
 * @property {number} [rows] that it gave out
 * @property {number} [entries] of an index that it read
 * @property {number} [ownNanoseconds] without the operators below it
 */

/**
 * The plan of an explained query, what it cost, and the index that it lacks.
 * @param {App} app
 * @param {any} answer
 */
export function planCard(app, answer) {
  const operators = operatorsOf(answer);
  const notes = (answer.tree ?? "").split("\n").slice(operators.length).filter((/** @type {string} */ line) => line);
  return h("section.card", { "aria-label": "Plan" },
    h("h2", {}, "Plan"),
    facts(answer),
    h("div.plan-place", { tabindex: 0, role: "region", "aria-label": "Operators" }, draw(operators)),
    notes.map((/** @type {string} */ note) => h("p.hint", {}, note)),
    answer.advice && h("div.advice", {},
      h("p", {}, "This index would make the query cheaper:"),
      h("pre", {}, answer.advice),
      h("button.primary", { type: "button", onclick: () => makeIndex(app, answer.advice) }, "Make this index"),
    ),
  );
}

/** @param {any} answer */
function facts(answer) {
  if (answer.durationNanoseconds === undefined) return null;
  const shown = [
    ["results", answer.resultsReturned],
    ["documents read", answer.documentsScanned],
    ["index entries read", answer.indexEntriesScanned],
    ["time", durationText(answer.durationNanoseconds / 1e9)],
  ];
  return h("dl.facts", {},
    shown.map(([name, value]) => h("div", {},
      h("dt", {}, name), h("dd", {}, typeof value === "number" ? value.toLocaleString("en") : value),
    )),
  );
}

/**
 * Makes an index.
 * @param {App} app
 * @param {string} advice an entry of firestore.indexes.json
 */
export async function makeIndex(app, advice) {
  await attempt(async () => {
    const entry = JSON.parse(advice);
    await rest.admin(
      "google.firestore.admin.v1.FirestoreAdmin/CreateIndex",
      {
        parent: `${app.database}/collectionGroups/${entry.collectionGroup}`,
        index: { queryScope: entry.queryScope, fields: entry.fields },
      },
    );
    notify("The index is being built.");
    app.go("indexes");
  });
}

/**
 * The operators of an answer: with figures if it has them, else the lines of its tree.
 * @param {any} answer
 * @returns {Operator[]}
 */
function operatorsOf(answer) {
  if (answer.operators?.length) return answer.operators;
  return (answer.tree ?? "").split("\n").filter((/** @type {string} */ line) => line.trim() !== "").map(
    (/** @type {string} */ line, /** @type {number} */ index) => {
      const indent = /^[ └─]*/.exec(line)?.[0].length ?? 0;
      return { depth: index === 0 ? 0 : indent / 3, line: line.slice(indent) };
    },
  );
}

const width = 760;
const boxHeight = 46;
const gap = 24;
const indent = 26;

/** @param {Operator[]} operators */
function draw(operators) {
  const total = operators.reduce((sum, one) => sum + (one.ownNanoseconds ?? 0), 0);
  const height = operators.length * (boxHeight + gap) - gap + 8;
  const svg = vector("svg", {
    viewBox: `0 0 ${width} ${Math.max(height, 10)}`, class: "plan", role: "img", "aria-label": spoken(operators),
  });
  operators.forEach((operator, index) => {
    const place = { x: 4 + operator.depth * indent, y: 4 + index * (boxHeight + gap) };
    const above = lastAbove(operators, index);
    if (above !== null) svg.append(...edge(place, 4 + above * (boxHeight + gap) + boxHeight, operator));
    svg.append(...box(operator, place, total));
  });
  return svg;
}

/**
 * The operator that an operator is an input of; null for the first.
 * @param {Operator[]} operators
 * @param {number} index
 */
function lastAbove(operators, index) {
  for (let other = index - 1; other >= 0; other -= 1) if (operators[other].depth < operators[index].depth) return other;
  return null;
}

/**
 * The line from a box to the one above it, with the rows that go up.
 * @param {{x: number, y: number}} place
 * @param {number} top where the box above ends
 * @param {Operator} operator
 */
function edge({ x, y }, top, operator) {
  const line = vector("path", { class: "plan-edge", d: `M${x + 14} ${y}V${top}` });
  if (operator.rows === undefined) return [line];
  return [line, vector("text", { x: x + 22, y: y - 8, class: "plan-rows" }, `↑ ${counted(operator.rows, "row")}`)];
}

/**
 * @param {Operator} operator
 * @param {{x: number, y: number}} place
 * @param {number} total time of all operators, in nanoseconds
 */
function box(operator, { x, y }, total) {
  const [name, ...rest] = operator.line.split(/\s(.*)/s);
  const boxWidth = width - x - 4;
  const parts = [vector("rect", { x, y, width: boxWidth, height: boxHeight, rx: 6, class: "plan-box" })];
  const own = operator.ownNanoseconds;
  if (own !== undefined) {
    const share = total > 0 ? own / total : 0;
    parts.push(
      vector("rect", { x, y: y + boxHeight - 4, width: boxWidth * share, height: 4, rx: 2, class: "plan-share" }),
      vector(
        "text", { x: x + boxWidth - 12, y: y + 18, class: "plan-time", "text-anchor": "end" },
        `${durationText(own / 1e9)} · ${Math.round(share * 100)} %`,
      ),
    );
    if (operator.entries) parts.push(vector(
      "text", { x: x + boxWidth - 12, y: y + 34, class: "plan-detail", "text-anchor": "end" },
      `${operator.entries.toLocaleString("en")} read`,
    ));
  }
  parts.push(
    vector("text", { x: x + 12, y: y + 18, class: "plan-name" }, short(name, 60)),
    vector("text", { x: x + 12, y: y + 34, class: "plan-detail" }, short(rest.join(" "), operator.entries ? 74 : 90)),
  );
  return parts;
}

/**
 * The plan for screen readers.
 * @param {Operator[]} operators
 */
function spoken(operators) {
  return `Plan: ${operators.map((one) => {
    if (one.rows === undefined) return one.line;
    return `${one.line}, ${counted(one.rows, "row")} in ${durationText((one.ownNanoseconds ?? 0) / 1e9)}`;
  }).join("; over: ")}`;
}
