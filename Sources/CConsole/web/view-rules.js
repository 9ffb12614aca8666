// Security rules: an editor with messages in place, cases with their verdicts and the lines that decided, the history.

import * as rest from "./rest.js";
import { paint } from "./rules-colours.js";
import { attempt, choices, dialog, field, fill, h, heading, notify, select, short } from "./ui.js";

/** @typedef {import("./app.js").App} App */

const beginning = `rules_version = '2';
service cloud.firestore {
  match /databases/{database}/documents {
    match /users/{user} {
      allow read, write: if request.auth.uid == user;
    }
  }
}
`;

const firstCases = `document users/ada {"name": "Ada"}
user ada {}
allow get users/ada
user ben {}
deny update users/ada {"name": "Ben"}
`;

/** @param {App} app */
export function rulesView(app) {
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea.code-input", {
    spellcheck: "false",
    wrap: "off",
    "aria-label": "Rules",
    oninput: changed,
    onscroll: () => {
      gutter.scrollTop = colours.scrollTop = text.scrollTop;
      colours.scrollLeft = text.scrollLeft;
    },
    onkeydown: insertTab,
  }));
  const colours = h("pre.code-colours", { "aria-hidden": "true" });
  const gutter = h("div.gutter", { "aria-hidden": "true" });
  const messages = h("div.messages", { role: "status" });
  const cases = /** @type {HTMLTextAreaElement} */ (h("textarea", {
    rows: 8, spellcheck: "false", wrap: "off", "aria-label": "Cases", oninput: later,
  }));
  const verdicts = h("div", {});
  const history = h("div", {});
  const force = h("p.hint", {}, "…");
  let timer = 0;

  function changed() {
    paint(colours, text);
    later();
  }

  function later() {
    clearTimeout(timer);
    timer = window.setTimeout(() => attempt(check), 150);
  }

  /** @param {KeyboardEvent} event */
  function insertTab(event) {
    if (event.key !== "Tab" || event.shiftKey || event.ctrlKey) return;
    event.preventDefault();
    text.setRangeText("  ", text.selectionStart, text.selectionEnd, "end");
    changed();
  }

  async function check() {
    paint(colours, text);
    const answer = await rest.checkRules(text.value, cases.value);
    /** @type {Map<number, string>} */
    const marks = new Map();
    for (const one of coveredLines(answer.coverage)) marks.set(one, "covered");
    for (const one of answer.cases ?? []) for (const statement of one.statements) {
      if (statement.outcome === "failed") marks.set(statement.line, "failed");
    }
    for (const one of answer.diagnostics) marks.set(one.line, one.severity === "ERROR" ? "error" : "warning");
    showGutter(marks);
    fill(
      messages,
      answer.diagnostics.map((/** @type {any} */ one) => h(`button.message.${one.severity.toLowerCase()}`, {
        type: "button", onclick: () => goTo(one.line, one.column),
      }, h("b", {}, `${one.line}:${one.column}`), ` ${one.message}${one.remedy ? ` ${one.remedy}` : ""}`)),
      answer.diagnostics.length ? null : h("p.fine", {}, h("i.dot.good", {}), "The rules can be used."),
    );
    fill(
      verdicts,
      answer.casesError && h("p.problem", { role: "alert" }, answer.casesError),
      (answer.cases ?? []).map(verdictRow),
    );
  }

  /** @param {Map<number, string>} marks */
  function showGutter(marks) {
    const lines = text.value.split("\n").length;
    fill(
      gutter,
      Array.from({ length: lines }, (_, index) => h("div", { class: marks.get(index + 1) ?? "" }, String(index + 1))),
      h("div.gutter-end", {}),
    );
    gutter.scrollTop = text.scrollTop;
  }

  /** @param {any} one */
  function verdictRow(one) {
    const isRight = one.allowed === one.expected;
    const decided = one.statements.filter(
      (/** @type {any} */ statement) => one.allowed ? statement.outcome === "allowed" : true,
    );
    return h("div.verdict", {}, h(`span.badge.${isRight ? "created" : "deleted"}`, {},
      isRight ? "as expected" : "otherwise",
    ), h("code", {}, short(one.text, 100)), h("span", {}, one.allowed ? "allowed by " : "denied: "),
      decided.length
        ? decided.map((/** @type {any} */ statement) => h("button.link", {
          type: "button", onclick: () => goTo(statement.line, 1),
        }, `line ${statement.line}${outcomeText(statement)}`))
        : "no statement is about it");
  }

  /**
   * @param {number} line
   * @param {number} column
   */
  function goTo(line, column) {
    const lines = text.value.split("\n");
    const offset = lines.slice(0, line - 1).reduce((sum, one) => sum + one.length + 1, 0) + column - 1;
    text.focus();
    text.setSelectionRange(offset, offset + Math.max(1, lines[line - 1].length - column + 1));
    text.scrollTop = (line - 4) * parseFloat(getComputedStyle(text).lineHeight);
  }

  async function loadHistory() {
    const answer = await rest.admin("hearth.admin.v1.Admin/ListRules");
    const list = [...(answer.rules ?? [])].reverse();
    force.textContent = answer.file
      ? `The file ${answer.file} of --rules is in force.`
      : list.length ? `Number ${list[0].number} is in force.` : "No rules are in force.";
    fill(
      history,
      list.length
        ? list.map((rules, index) => h("div.list-row", {},
          h("b", {}, `Number ${rules.number}`),
          h("span", {}, new Date(Number(rules.timeMicroseconds) / 1000).toLocaleString()),
          h("span.hint", {}, `${rules.byteCount} bytes`),
          index === 0 && !answer.file && h("span.badge.created", {}, "in force"),
          h("button.small", { type: "button", onclick: () => load(rules.number) }, "Show"),
        ))
        : h("p.hint", {}, "No rules were applied."),
    );
    return list;
  }

  /** @param {string|number} number */
  async function load(number) {
    await attempt(async () => {
      text.value = (await rest.admin("hearth.admin.v1.Admin/GetRules", { number })).text;
      await check();
    });
  }

  async function apply() {
    const isOpen = rest.mode() === "open";
    const sure = await dialog(
      "Put these rules in force?",
      (close) => h("div.form", {},
        h("p", {}, "They hold for all databases at once and stay after a restart."),
        isOpen && h("p.problem", {},
          "The server is open. It will be closed: callers without a credential may do what the rules permit, and this "
            + "console will ask for the credential of an admin.",
        ),
        choices(close, "Apply", () => true, isOpen ? "danger" : "primary"),
      ),
    );
    if (!sure) return;
    await attempt(async () => {
      const answer = await rest.admin("hearth.admin.v1.Admin/ApplyRules", { text: text.value });
      notify(answer.changed ? `In force as number ${answer.rules.number}.` : "They are in force already.");
      await loadHistory();
    });
  }

  async function rollBack() {
    const sure = await dialog(
      "Roll back?",
      (close) => h("div.form", {},
        h("p", {}, "The rules that were in force before come back, with a new number."),
        choices(close, "Roll back", () => true, "danger"),
      ),
    );
    if (sure) await attempt(async () => {
      await rest.admin("hearth.admin.v1.Admin/RollbackRules");
      const list = await loadHistory();
      if (list[0]) await load(list[0].number);
    });
  }

  async function addCase() {
    const verb = select(["get", "list", "create", "update", "delete"]);
    const path = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", spellcheck: "false", placeholder: "users/ada",
    }));
    const user = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", spellcheck: "false", placeholder: "none",
    }));
    const body = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 3, spellcheck: "false" }));
    const made = await dialog(
      "Add a case",
      (close) => h("div.form", {},
        field("User", user, "the uid; empty for nobody"),
        field("Wants to", verb),
        field("Path", path),
        field("Fields after a write", body, "JSON"),
        choices(
          close,
          "Add",
          () => path.value
            ? caseText(user.value, verb.value, path.value, body.value)
            : undefined,
        ),
      ),
    );
    if (made) { cases.value += made; later(); }
  }

  text.value = beginning;
  cases.value = firstCases;
  attempt(async () => {
    const list = await loadHistory();
    if (list[0]) await load(list[0].number); else await check();
  });

  return {
    element: h("div.view.view-rules", {}, heading(
      "Rules",
      h("button", { type: "button", onclick: rollBack }, "Roll back"),
      h("button.primary", { type: "button", onclick: apply }, "Apply"),
    ), force,
      h("div.grid-rules", {}, h("section.card", { "aria-label": "Editor" },
        h("div.editor", {}, gutter, h("div.code-place", {}, colours, text)), messages,
      ),
        h("div.stack", {}, h("section.card", { "aria-label": "Playground" },
          h("div.card-head", {},
            h("h2", {}, "Cases"), h("button.small", { type: "button", onclick: addCase }, "+ Case"),
          ),
          h("p.hint", {},
            "As for ",
            h("code", {}, "hearth rules test"),
            ": documents, users, and what each may do. Nothing of the store is read.",
          ),
          cases,
          verdicts,
        ),
          h("section.card", { "aria-label": "History" }, h("h2", {}, "History"), history)))),
    close() { clearTimeout(timer); },
  };
}

/**
 * Lines with expressions that cases have evaluated.
 * @param {any} coverage
 * @returns {Set<number>}
 */
function coveredLines(coverage) {
  const lines = new Set();
  const walk = (/** @type {any} */ node) => {
    if (node.values?.length) lines.add(node.sourcePosition.line);
    for (const child of node.children ?? []) walk(child);
  };
  for (const node of coverage?.report ?? []) walk(node);
  return lines;
}

/**
 * What became of a statement, after its line.
 * @param {any} statement
 */
function outcomeText(statement) {
  if (statement.outcome === "failed") return ` failed: ${short(statement.message, 120)}`;
  return statement.outcome === "refused" ? " is false" : "";
}

/**
 * A case of `hearth rules test`.
 * @param {string} user
 * @param {string} verb
 * @param {string} path
 * @param {string} body JSON of the fields after a write
 */
function caseText(user, verb, path, body) {
  const fields = ["create", "update"].includes(verb) ? ` ${(body || "{}").replaceAll("\n", " ")}` : "";
  return `user ${user ? `${user} {}` : "none"}\nallow ${verb} ${path}${fields}\n`;
}
