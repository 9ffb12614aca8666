// Indexes over several fields, expiry of documents, and backups.

import { backups } from "./backups.js";
import { makeIndex } from "./plan.js";
import * as rest from "./rest.js";
import { attempt, byteText, choices, counted, dialog, field, fill, h, heading, notify, select, short } from "./ui.js";
import { fieldsOf } from "./values.js";

/** @typedef {import("./app.js").App} App */

const service = "google.firestore.admin.v1.FirestoreAdmin";
/** The largest number of expired documents that is counted. */
const dueMax = 10_000;

/** @param {App} app */
export function indexesView(app) {
  const indexes = h("div", {});
  const expiry = h("div", {});
  const sizes = h("div", {});
  const backupsCard = backups();
  let isOver = false;

  async function refresh() {
    const group = `${app.database}/collectionGroups/-`;
    const [declared, fields, listed] = await Promise.all(
      [
        rest.admin(`${service}/ListIndexes`, { parent: group }),
        rest.admin(`${service}/ListFields`, { parent: group, filter: "ttlConfig:*" }).catch(() => ({})),
        rest.admin("hearth.admin.v1.Admin/ListIndexes", { database: app.database }),
      ],
    );
    showIndexes(declared.indexes ?? []);
    showSizes(listed.entries ?? []);
    const expiring = (fields.fields ?? []).filter((/** @type {any} */ one) => one.ttlConfig);
    const [waiting, state] = await Promise.all([
      Promise.all(expiring.map(waitingOf)), expiring.length ? rest.data("state") : {},
    ]);
    showExpiry(expiring, waiting, state);
  }

  /**
   * How many documents of a group have expired and are still there, and when the next one expires. Both are read from
   * the index over the field, so nothing is read before it is there.
   * @param {any} one a field
   * @returns {Promise<{due: number, next: string}|null>}
   */
  async function waitingOf(one) {
    if (one.ttlConfig.state !== "ACTIVE") return null;
    const parent = `${app.database}/documents`;
    const [group, path] = one.name.split("/collectionGroups/")[1].split("/fields/");
    const now = { timestampValue: new Date().toISOString() };
    const query = (/** @type {string} */ op) => ({
      from: [{ collectionId: group, allDescendants: true }],
      where: { fieldFilter: { field: { fieldPath: path }, op, value: now } },
    });
    const [totals, later] = await Promise.all([
      rest.runTotals(parent, query("LESS_THAN_OR_EQUAL"), [{ alias: "n", count: { upTo: String(dueMax) } }]),
      rest.runQuery(parent, {
        ...query("GREATER_THAN"), select: { fields: [{ fieldPath: path }] },
        orderBy: [{ field: { fieldPath: path } }], limit: 1,
      }),
    ]);
    // The document has this field alone, in maps if the path leads through some.
    /** @type {import("./values.js").Value|undefined} */
    let next = { mapValue: { fields: later.documents[0]?.fields ?? {} } };
    while (next?.mapValue) next = Object.values(fieldsOf(next))[0];
    return { due: Number(totals.n?.integerValue ?? 0), next: next?.timestampValue ?? "" };
  }

  /** @param {any[]} list */
  function showIndexes(list) {
    fill(
      indexes,
      list.length
        ? tableOf(
          ["Collection", "Scope", "Fields", "State", ""],
          list.map((index) => [
            collectionOf(index.name),
            index.queryScope === "COLLECTION_GROUP" ? "all of the id" : "each collection",
            h("code", {}, index.fields.map(fieldText).join(", ")),
            stateOf(index.state),
            h("button.small", {
              type: "button",
              "aria-label": `${ending(index)} the index of ${collectionOf(index.name)}`,
              onclick: () => remove(index),
            }, ending(index)),
          ]),
        )
        : h("p.hint", {}, "No index over several fields. Queries that would gain by one say so in their plan."),
    );
  }

  /**
   * @param {any[]} list
   * @param {({due: number, next: string}|null)[]} waiting of each
   * @param {any} state of the server
   */
  function showExpiry(list, waiting, state) {
    fill(
      expiry,
      list.length
        ? [tableOf(
          ["Collection", "Field", "State", "Expired, not deleted yet", "The next one expires", ""],
          list.map((one, index) => [
            collectionOf(one.name),
            h("code", {}, one.name.split("/fields/")[1]),
            stateOf(one.ttlConfig.state),
            dueText(waiting[index]),
            waiting[index]?.next || "–",
            h("button.small", {
              type: "button",
              "aria-label": `Stop the expiry of ${collectionOf(one.name)}`,
              onclick: () => setExpiry(one.name, false),
            }, "Stop"),
          ]),
        ), h("p.hint", {},
          `${counted(Number(state.documentsExpired ?? 0), "expired document")} deleted since the server started.`,
        )]
        : h("p.hint", {}, "Documents do not expire."),
    );
  }

  /** @param {any[]} list */
  function showSizes(list) {
    fill(
      sizes,
      list.length
        ? tableOf(
          ["State", "Entry", "Entries", "On disk", ""],
          list.map((one) => [
            stateOf(one.state),
            [h("code", {}, short(one.entry, 160)), one.failure ? h("p.problem", {}, one.failure) : ""],
            ...(one.state === "WANTED" ? wanted(one) : size(one)),
          ]),
        )
        : h("p.hint", {}, "Nothing is declared."),
    );
  }

  /**
   * An index that queries lacked.
   * @param {any} one
   */
  function wanted(one) {
    return [
      `lacked ${counted(Number(one.indexEntries ?? 0), "time")}`,
      "–",
      h("button.small", { type: "button", onclick: () => makeIndex(app, one.entry) }, "Make"),
    ];
  }

  /** @param {any} index */
  async function remove(index) {
    const sure = await dialog(
      "Delete the index?",
      (close) => h("div.form", {},
        h("p", {}, `${collectionOf(index.name)}: ${index.fields.map(fieldText).join(", ")}`),
        choices(close, "Delete", () => true, "danger"),
      ),
    );
    if (sure) await attempt(async () => {
      await rest.admin(`${service}/DeleteIndex`, { name: index.name });
      await refresh();
    });
  }

  /**
   * @param {string} name of a field
   * @param {boolean} isOn
   */
  async function setExpiry(name, isOn) {
    await attempt(async () => {
      await rest.admin(
        `${service}/UpdateField`, { field: { name, ...(isOn ? { ttlConfig: {} } : {}) }, updateMask: "ttlConfig" },
      );
      await refresh();
    });
  }

  async function addIndex() {
    const collection = /** @type {HTMLInputElement} */ (h("input", { type: "text", spellcheck: "false" }));
    const scope = select({ COLLECTION: "each collection of this id", COLLECTION_GROUP: "all of them together" });
    const fields = /** @type {HTMLTextAreaElement} */ (h("textarea", {
      rows: 4, spellcheck: "false", placeholder: "author\nyear desc\ntags contains",
    }));
    const problem = h("p.problem", { role: "alert" });
    const wanted = () => {
      const lines = fields.value.split("\n").map((line) => line.trim()).filter(Boolean);
      if (!collection.value || !lines.length) {
        problem.textContent = "A collection and its fields are needed.";
        return undefined;
      }
      return { collection: collection.value, queryScope: scope.value, fields: lines.map(fieldOf) };
    };
    const made = await dialog("Make an index", (close) => h("div.form", {},
      field("Collection id", collection),
      field("Serves", scope),
      field("Fields", fields, "One a line, then asc, desc or contains"),
      problem,
      choices(close, "Make", wanted),
    ));
    if (!made) return;
    await attempt(async () => {
      await rest.admin(
        `${service}/CreateIndex`,
        {
          parent: `${app.database}/collectionGroups/${made.collection}`,
          index: { queryScope: made.queryScope, fields: made.fields },
        },
      );
      notify("The index is being built.");
      await refresh();
    });
  }

  async function addExpiry() {
    const collection = /** @type {HTMLInputElement} */ (h("input", { type: "text", spellcheck: "false" }));
    const name = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", spellcheck: "false", placeholder: "expiresAt",
    }));
    const made = await dialog(
      "Let documents expire",
      (close) => h("div.form", {},
        field("Collection id", collection),
        field("Field with the time", name, "A document is deleted after the time in this field."),
        choices(
          close,
          "Start",
          () => collection.value && name.value
            ? `${app.database}/collectionGroups/${collection.value}/fields/${name.value}`
            : undefined,
        ),
      ),
    );
    if (made) await setExpiry(made, true);
  }

  async function loop() {
    if (isOver) return;
    await attempt(async () => { await Promise.all([refresh(), backupsCard.refresh()]); });
    if (!isOver) setTimeout(loop, 3_000);
  }
  loop();

  return {
    element: h("div.view", {}, heading(
      "Indexes", h("button.primary", { type: "button", onclick: addIndex }, "Make an index"),
    ),
      h("section.card", { "aria-label": "Indexes over several fields" }, h("h2", {}, "Over several fields"), indexes),
      h("section.card", { "aria-label": "Expiry" },
        h("div.card-head", {},
          h("h2", {}, "Expiry"), h("button.small", { type: "button", onclick: addExpiry }, "Let documents expire"),
        ),
        expiry,
      ),
      h("section.card", { "aria-label": "Declared" }, h("h2", {}, "All that is declared, with sizes"), sizes),
      backupsCard.element),
    close() { isOver = true; },
  };
}

/**
 * @param {string[]} heads
 * @param {any[][]} rows
 */
function tableOf(heads, rows) {
  return h("div.scroll", {},
    h("table.plain", {},
      h("thead", {},
        h("tr", {}, heads.map((head) => h("th", { scope: "col" }, head || h("span.visually-hidden", {}, "Actions")))),
      ),
      h("tbody", {}, rows.map((row) => h("tr", {}, row.map((cell) => h("td", {}, cell))))),
    ),
  );
}

/**
 * What ends an index.
 * @param {any} index
 */
function ending(index) { return ["CREATING", "NEEDS_REPAIR"].includes(index.state) ? "Cancel" : "Delete"; }

/** @param {any} one an index that exists */
function size(one) {
  return [
    `about ${Number(one.indexEntries ?? 0).toLocaleString("en")}`, byteText(Number(one.indexBytes ?? 0)), "",
  ];
}

/** @param {{due: number, next: string}|null} waiting */
function dueText(waiting) {
  if (!waiting) return "–";
  return waiting.due < dueMax ? waiting.due.toLocaleString("en") : `${dueMax.toLocaleString("en")} or more`;
}

/** @param {string} name */
function collectionOf(name) { return short(name.split("/collectionGroups/")[1].split("/")[0], 60); }

/** @param {any} part of an index */
function fieldText(part) {
  const word = part.vectorConfig
    ? `vector of ${counted(part.vectorConfig.dimension, "dimension")}`
    : part.arrayConfig ? "contains" : part.order === "DESCENDING" ? "desc" : "asc";
  return `${part.fieldPath} ${word}`;
}

/** @param {string} line */
function fieldOf(line) {
  const [fieldPath, word = "asc"] = line.split(/\s+/);
  if (word.startsWith("c")) return { fieldPath, arrayConfig: "CONTAINS" };
  return { fieldPath, order: word.startsWith("d") ? "DESCENDING" : "ASCENDING" };
}

/** @param {string} state */
function stateOf(state) {
  /** @type {Record<string, string>} */
  const dots = { READY: "good", ACTIVE: "good", FAILED: "bad", NEEDS_REPAIR: "bad" };
  return h("span.state", {}, h(`i.dot.${dots[state] ?? "busy"}`, {}), state.toLowerCase().replace("_", " "));
}
