// Documents in columns: collections, documents of a collection, fields of a document, and so on to the right.

import { listen } from "./live.js";
import * as rest from "./rest.js";
import { RowList } from "./rows.js";
import { attempt, choices, counted, dialog, empty, field, fill, h, notify, short, visible } from "./ui.js";
import { askValue } from "./value-editor.js";
import {
  elementsOf,
  fieldPath,
  fieldsFromLine,
  fieldsOf,
  kindOf,
  lastSegment,
  lineOf,
  parentPath,
  pathOf,
  readJSON,
  same,
  textOf,
  vectorOf,
} from "./values.js";

/** @typedef {import("./values.js").Document} Document */
/** @typedef {import("./values.js").Value} Value */
/** @typedef {import("./app.js").App} App */

const pageSize = 300;
/** Pages that a column keeps; those far from what is seen are read again. */
const pagesKept = 12;
const rowHeight = 30;
/** Time for which a list rests before its rows are listened to. */
const listenMilliseconds = 100;

/**
 * @param {App} app
 * @param {URLSearchParams} parameters
 */
export function dataView(app, parameters) {
  const place = h("div.columns", { role: "region", "aria-label": "Columns" });
  /** @type {{key: string, element: HTMLElement, select: (id: string|null) => void, close: () => void}[]} */
  let columns = [];

  /**
   * Shows a path; columns that it has in common with the last one stay.
   * @param {string} path
   */
  function show(path) {
    const segments = path === "" ? [] : path.split("/");
    const wanted = [""].concat(segments.map((_, index) => segments.slice(0, index + 1).join("/")));
    let common = 0;
    while (common < columns.length && common < wanted.length && columns[common].key === wanted[common]) common += 1;
    for (const column of columns.splice(common)) { column.close(); column.element.remove(); }
    for (const key of wanted.slice(common)) {
      const column = makeColumn(app, key);
      columns.push(column);
      place.append(column.element);
    }
    columns.forEach((column, index) => column.select(segments[index] ?? null));
    requestAnimationFrame(() => { place.scrollLeft = place.scrollWidth; });
  }

  show(parameters.get("path") ?? "");
  return {
    element: h("div.view.view-data", {}, breadcrumbs(app, parameters.get("path") ?? ""), place),
    /** @param {URLSearchParams} next */
    update(next) {
      const path = next.get("path") ?? "";
      place.previousElementSibling?.replaceWith(breadcrumbs(app, path));
      show(path);
    },
    close() { for (const column of columns) column.close(); },
  };
}

/**
 * @param {App} app
 * @param {string} path
 */
function breadcrumbs(app, path) {
  const segments = path === "" ? [] : path.split("/");
  const input = /** @type {HTMLInputElement} */ (h("input.path-input", {
    type: "text", "aria-label": "Path", placeholder: "Path: users/ada", spellcheck: "false",
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Enter") app.openPath(input.value.trim().replace(/^\/|\/$/g, ""));
    } }));
  const link = (/** @type {string} */ text, /** @type {string} */ target) => h("a", {
    href: app.link("data", { path: target }),
  }, short(text, 40));
  return h("nav.breadcrumbs", { "aria-label": "Path" },
    link("Collections", ""),
    segments.map((segment, index) => [
      h("span.slash", { "aria-hidden": "true" }, "/"), link(segment, segments.slice(0, index + 1).join("/")),
    ]),
    h("span.grow", {}),
    input,
  );
}

/**
 * @param {App} app
 * @param {string} path empty, of a collection, or of a document
 */
function makeColumn(app, path) {
  if (path === "") return collectionsColumn(app);
  return path.split("/").length % 2 ? documentsColumn(app, path) : documentColumn(app, path);
}

/**
 * @param {string} title
 * @param {any[]} actions
 * @param {any} subtitle
 */
function columnHead(title, actions, subtitle) {
  return h("header.column-head", {},
    h("div.column-title", {}, h("h2", { title: visible(title) }, short(title, 60)), subtitle),
    h("div.actions", {}, actions),
  );
}

/**
 * @param {string} word
 * @param {string} label
 * @param {() => void} run
 */
function smallButton(word, label, run) {
  return h("button.small", { type: "button", title: label, "aria-label": label, onclick: run }, word);
}

// Collections.

/** @param {App} app */
function collectionsColumn(app) {
  const list = h("div.list", { role: "list" });
  const reload = () => attempt(async () => {
    const ids = await rest.listCollections(`${app.database}/documents`);
    fill(
      list,
      ids.map((id) => collectionLink(app, id, "")),
      ids.length
        ? null
        : empty(
          "This database has no collections yet.",
          h("button.primary", { type: "button", onclick: () => app.go("start") }, "Load the sample"),
        ),
    );
    mark();
  });
  /** @type {string|null} */
  let chosen = null;
  const mark = () => {
    for (const item of list.querySelectorAll("[data-id]")) item.toggleAttribute(
      "aria-current", item.getAttribute("data-id") === chosen,
    );
  };
  const element = h("section.column", { "aria-label": "Collections" },
    columnHead(
      "Collections",
      [
        smallButton("+", "Add a document to a new collection", () => addDocument(app, null)),
        smallButton("↻", "Read again", reload),
      ],
      null,
    ),
    h("div.column-body", {}, list),
  );
  reload();
  return { key: "", element, select(/** @type {string|null} */ id) { chosen = id; mark(); }, close() {} };
}

/**
 * @param {App} app
 * @param {string} id
 * @param {string} parent
 */
function collectionLink(app, id, parent) {
  const path = parent ? `${parent}/${id}` : id;
  return h("a.item", { role: "listitem", "data-id": id, href: app.link("data", { path }), title: visible(id) },
    h("span.item-text", {}, short(id, 60)), h("span.chevron", { "aria-hidden": "true" }, "›"),
  );
}

// Documents.

/** The names of a collection in pages, in their order. Pages far away are dropped and read again. */
class NamePages {
  /** @typedef {{id: string, isMissing: boolean}} Entry */
  /** @typedef {{token: string|undefined, next: string|undefined, entries: Entry[]|null, size: number}} Page */
  /** @type {Page[]} */
  pages = [];
  /**
   * The entries of a page by their ids, made when one is looked for.
   * @type {WeakMap<Entry[], Map<string, Entry>>}
   */
  #byID = new WeakMap();
  isComplete = false;
  isLoading = false;

  /**
   * @param {string} parent
   * @param {string} collection
   * @param {string} prefix
   */
  constructor(parent, collection, prefix) {
    this.parent = parent;
    this.collection = collection;
    this.prefix = prefix;
  }

  get count() { return this.pages.reduce((sum, page) => sum + page.size, 0); }

  /**
   * Reads the next page.
   * @returns {Promise<boolean>} whether one has come
   */
  async loadNext() {
    if (this.isComplete || this.isLoading) return false;
    this.isLoading = true;
    try {
      const last = this.pages[this.pages.length - 1];
      const token = last ? last.next : undefined;
      const { entries, next } = await this.#read(token);
      this.pages.push({ token, entries, size: entries.length, next });
      this.isComplete = !next;
      return true;
    } finally {
      this.isLoading = false;
    }
  }

  /** @param {string|undefined} token */
  async #read(token) {
    if (this.prefix) return this.#readPrefix(token);
    const answer = await rest.listDocuments(
      this.parent, this.collection, { pageSize, pageToken: token, showMissing: true, mask: "__name__" },
    );
    const entries = (answer.documents ?? []).map((document) => ({
      id: lastSegment(document.name), isMissing: !document.createTime,
    }));
    return { entries, next: answer.nextPageToken };
  }

  /** @param {string|undefined} token the last name of the page before */
  async #readPrefix(token) {
    const name = { fieldPath: "__name__" };
    const base = `${this.parent}/${this.collection}/`;
    /** @type {any} */
    const query = { from: [
      { collectionId: this.collection },
    ], select: { fields: [name] }, orderBy: [{ field: name }], limit: pageSize,
      where: { compositeFilter: { op: "AND", filters: [
        { fieldFilter: { field: name, op: "GREATER_THAN_OR_EQUAL", value: { referenceValue: base + this.prefix } } },
        {
          fieldFilter: { field: name, op: "LESS_THAN", value: { referenceValue: `${base}${this.prefix}\u{10ffff}` } },
        }] } } };
    if (token) query.startAt = { values: [{ referenceValue: token }], before: false };
    const { documents } = await rest.runQuery(this.parent, query);
    const next = documents.length === pageSize ? documents[documents.length - 1].name : undefined;
    return { entries: documents.map((document) => ({ id: lastSegment(document.name), isMissing: false })), next };
  }

  /**
   * The page of an index and the place in it.
   * @param {number} index
   */
  place(index) {
    for (let at = 0; at < this.pages.length; at += 1) {
      if (index < this.pages[at].size) return { page: at, offset: index };
      index -= this.pages[at].size;
    }
    return null;
  }

  /** @param {number} index */
  entry(index) {
    const place = this.place(index);
    return place ? this.pages[place.page].entries?.[place.offset] ?? null : null;
  }

  /**
   * Keeps the pages about one, reads those of them that were dropped.
   * @param {number} center
   * @returns {Promise<boolean>} whether rows have come
   */
  async keep(center) {
    let hasCome = false;
    for (let at = 0; at < this.pages.length; at += 1) {
      const page = this.pages[at];
      if (Math.abs(at - center) > pagesKept / 2) page.entries = null;
      else if (page.entries === null && Math.abs(at - center) <= 1) {
        page.entries = (await this.#read(page.token)).entries;
        page.size = page.entries.length;
        hasCome = true;
      }
    }
    return hasCome;
  }

  /**
   * Puts a name into its place, or takes it away.
   * @param {string} id
   * @param {boolean} exists
   * @returns {boolean} whether the list has changed
   */
  apply(id, exists) {
    for (const [at, page] of this.pages.entries()) {
      if (!page.entries) continue;
      const byID = this.#index(page.entries);
      const found = byID.get(id);
      if (found) {
        if (exists && !found.isMissing) return false;
        if (exists) found.isMissing = false;
        else {
          byID.delete(id);
          page.entries.splice(page.entries.indexOf(found), 1);
          page.size -= 1;
        }
        return true;
      }
      const last = page.entries[page.entries.length - 1];
      const isHere = last ? compareIDs(id, last.id) < 0 : at === this.pages.length - 1;
      if (exists && (isHere || (at === this.pages.length - 1 && this.isComplete))) {
        const position = page.entries.findIndex((entry) => compareIDs(id, entry.id) < 0);
        const entry = { id, isMissing: false };
        byID.set(id, entry);
        page.entries.splice(position < 0 ? page.entries.length : position, 0, entry);
        page.size += 1;
        return true;
      }
    }
    return false;
  }

  /**
   * Takes away names of a page and the next one that no document has.
   * @param {number} page
   * @param {Set<string>} ids those of the documents from the beginning of the page on, the first `2 * pageSize` at most
   * @returns {boolean} whether the list has changed
   */
  keepOnly(page, ids) {
    const end = ids.size < 2 * pageSize ? null : [...ids].reduce((a, b) => compareIDs(a, b) < 0 ? b : a);
    const gone = this.pages.slice(page, page + 2).flatMap(({ entries }) => entries ?? []).filter(
      ({ id, isMissing }) => !isMissing && !ids.has(id) && (end === null || compareIDs(id, end) < 0),
    );
    for (const { id } of gone) this.apply(id, false);
    return gone.length > 0;
  }

  /** @param {Entry[]} entries of a page */
  #index(entries) {
    let byID = this.#byID.get(entries);
    if (!byID) {
      byID = new Map(entries.map((entry) => [entry.id, entry]));
      this.#byID.set(entries, byID);
    }
    return byID;
  }
}

const encoder = new TextEncoder();

/**
 * The order of ids: by their UTF-8 bytes.
 * @param {string} a
 * @param {string} b
 */
function compareIDs(a, b) {
  if (a === b) return 0;
  const [left, right] = [encoder.encode(a), encoder.encode(b)];
  const length = Math.min(left.length, right.length);
  for (let at = 0; at < length; at += 1) if (left[at] !== right[at]) return left[at] - right[at];
  return left.length - right.length;
}

/**
 * @param {App} app
 * @param {string} path of a collection
 */
function documentsColumn(app, path) {
  const collection = lastSegment(path);
  const parent = `${app.database}/documents${parentPath(path) ? "/" + parentPath(path) : ""}`;
  let pages = new NamePages(parent, collection, "");
  /** @type {string|null} */
  let chosen = null;
  let isOver = false;
  /** @type {() => void} */
  let stopListening = () => {};
  let listenedRange = "";
  let listenTimer = 0;
  /** @type {Map<string, number>} ids that have just changed */
  const changed = new Map();
  const subtitle = h("span.subtitle", {}, "…");
  const note = h("div", {});

  const rows = new RowList({
    rowHeight, label: `Documents of ${visible(collection)}`,
    render(index) {
      const entry = pages.entry(index);
      if (!entry) return h("div.row.waiting", { role: "option" }, "…");
      const row = h("div.row", {
        role: "option", "aria-selected": String(entry.id === chosen), title: visible(entry.id),
      }, h("span.item-text", { class: entry.isMissing ? "missing" : "" },
        short(entry.id, 80),
      ), entry.isMissing && h("small.tag", {}, "missing"), h("span.chevron", { "aria-hidden": "true" }, "›"));
      if ((changed.get(entry.id) ?? 0) > performance.now()) row.classList.add("flash");
      return row;
    },
    range: (start, end) => onRange(start, end),
    choose(index) {
      const entry = pages.entry(index);
      if (entry) app.go("data", { path: `${path}/${entry.id}` });
    },
  });

  /**
   * @param {number} start
   * @param {number} end
   */
  async function onRange(start, end) {
    if (isOver) return;
    if (!pages.isComplete && end + pageSize / 2 > pages.count) await load();
    if (pages.pages.length === 0) return;
    // An empty collection is listened to as well.
    const { page } = pages.place(start) ?? { page: 0 };
    if (await attempt(() => pages.keep(page))) show();
    // Not while the list is scrolled past.
    clearTimeout(listenTimer);
    listenTimer = window.setTimeout(() => listenTo(page), listenMilliseconds);
  }

  /** Shows what the pages have. */
  function show() {
    rows.setCount(pages.count);
    rows.refresh();
    fill(
      note,
      pages.count === 0 && pages.isComplete
        ? empty(pages.prefix ? "No document's id begins so." : "This collection is empty.")
        : null,
    );
  }

  async function load() {
    const own = pages;
    // What is shown asks for more: after a failure that waits until the list is scrolled.
    if (await attempt(() => own.loadNext()) && own === pages && !isOver) show();
  }

  /**
   * Listens to the documents of a page and the next one.
   * @param {number} page
   */
  function listenTo(page) {
    const first = pages.pages[page]?.entries?.[0];
    const end = pages.pages[page + 2]?.entries?.[0];
    const range = `${pages.prefix}|${page}|${page === 0 ? "" : first?.id}|${end?.id ?? ""}`;
    if (range === listenedRange || isOver) return;
    listenedRange = range;
    stopListening();
    const name = { fieldPath: "__name__" };
    const cursor = (/** @type {string} */ id) => ({
      values: [{ referenceValue: `${parent}/${collection}/${id}` }], before: true,
    });
    /** @type {any} */
    const structuredQuery = {
      from: [{ collectionId: collection }], select: { fields: [name] }, orderBy: [{ field: name }],
    };
    if (page > 0 && first) structuredQuery.startAt = cursor(first.id);
    if (end) structuredQuery.endAt = cursor(end.id);
    // Without an end more documents than those of the column may match: what comes first is enough.
    else if (!pages.isComplete) structuredQuery.limit = 2 * pageSize;
    let isFirst = true;
    stopListening = listen(app.database, { query: { parent, structuredQuery } }, {
      snapshot({ changes, isReset }) {
        // All documents have come. Some of the names that were read may be of documents that are gone.
        const isAll = isFirst || isReset;
        const ids = isAll ? changes.filter(({ document }) => document).map(({ name }) => lastSegment(name)) : [];
        let isOther = isAll && pages.keepOnly(page, new Set(ids));
        for (const { name: documentName, document } of changes) {
          const id = lastSegment(documentName);
          if (pages.prefix && !id.startsWith(pages.prefix)) continue;
          isOther = pages.apply(id, document !== null) || isOther;
          if (!isFirst) changed.set(id, performance.now() + 1_200);
        }
        if (changed.size > 2_000) changed.clear();
        if (isOther || !isFirst) {
          show();
          countLater();
        }
        isFirst = false;
      },
      failed: (error) => notify(error.message, "bad"),
    });
  }

  let isCounting = false;
  // Whether something has changed since the last count began.
  let isOutdated = false;
  async function countDocuments() {
    isCounting = true;
    isOutdated = false;
    const total = await attempt(() => rest.count(parent, { from: [{ collectionId: collection }] }));
    isCounting = false;
    if (total !== undefined) subtitle.textContent = counted(total, "document");
    if (isOutdated && !isOver) countLater();
  }
  function countLater() {
    isOutdated = true;
    if (isCounting) return;
    isCounting = true;
    setTimeout(countDocuments, 1_000);
  }

  function restart(/** @type {string} */ prefix) {
    pages = new NamePages(parent, collection, prefix);
    listenedRange = "";
    rows.setCount(0);
    rows.element.scrollTop = 0;
    load();
  }

  let timer = 0;
  const filter = /** @type {HTMLInputElement} */ (h("input.filter", {
    type: "search", placeholder: "Id begins with", "aria-label": "Id begins with", spellcheck: "false",
    oninput: () => { clearTimeout(timer); timer = window.setTimeout(() => restart(filter.value), 150); } }));
  const element = h("section.column", { "aria-label": `Collection ${visible(collection)}` },
    columnHead(collection, [smallButton(
      "+", "Add a document", () => addDocument(app, path),
    ), smallButton(
      "Query", "Query this collection", () => app.go("query", { q: `${collectionWord(path)} --limit 50` }),
    ),
      smallButton(
        "⋯", "Import, export, delete", () => collectionMenu(app, path, parent, collection),
      )], subtitle), h("div.column-tools", {}, filter), h("div.column-body", {}, rows.element, note));
  load();
  countDocuments();
  return {
    key: path, element,
    select(/** @type {string|null} */ id) { chosen = id; rows.refresh(); },
    close() { isOver = true; stopListening(); },
  };
}

/** @param {string} path */
function collectionWord(path) { return /^[A-Za-z0-9_./-]+$/.test(path) ? path : `'${path}'`; }

/**
 * @param {App} app
 * @param {string} path
 * @param {string} parent
 * @param {string} collection
 */
async function collectionMenu(app, path, parent, collection) {
  const chosen = await dialog(`Collection ${short(path, 60)}`, (close) => h("div.menu", {},
    h("button", { type: "button", onclick: () => close("export") }, "Export as JSON lines"),
    h("button", { type: "button", onclick: () => close("import") }, "Import JSON lines"),
    h("button.danger", { type: "button", onclick: () => close("delete") }, "Delete the collection"),
    h("button", { type: "button", onclick: () => close(null) }, "Cancel")));
  if (chosen === "export") exportCollection(app, path, parent, collection);
  if (chosen === "import") importCollection(app, path);
  if (chosen === "delete") deleteTree(app, path);
}

// A document.

/**
 * @param {App} app
 * @param {string} path of a document
 */
function documentColumn(app, path) {
  const name = `${app.database}/documents/${path}`;
  /** @type {Document|null|undefined} undefined before it is known */
  let current;
  /** @type {Set<string>} fields that are open */
  const open = new Set();
  /** @type {Set<(document: Document|null) => void>} */
  const watchers = new Set();
  let fieldsMax = 200;
  const collections = h("div.list", { role: "list" });
  const fields = h("div.fields", { role: "tree", "aria-label": "Fields" });
  const subtitle = h("span.subtitle", {});
  /** @type {string|null} */
  let chosen = null;

  async function loadCollections() {
    const ids = await attempt(() => rest.listCollections(name));
    fill(collections, (ids ?? []).map((id) => collectionLink(app, id, path)));
    mark();
  }
  const mark = () => {
    for (const item of collections.querySelectorAll("[data-id]")) item.toggleAttribute(
      "aria-current", item.getAttribute("data-id") === chosen,
    );
  };

  /**
   * @param {Document|null} next
   * @param {boolean} isFirst
   */
  function take(next, isFirst) {
    const before = current;
    current = next;
    for (const watcher of watchers) watcher(next);
    subtitle.textContent = next ? `updated ${timeText(next.updateTime)}` : "there is no document here";
    render(isFirst ? {} : before?.fields ?? {}, !isFirst);
  }

  /**
   * @param {Record<string, Value>} before
   * @param {boolean} flashes
   */
  function render(before, flashes) {
    const own = current?.fields ?? {};
    const names = Object.keys(own).sort();
    fill(fields, names.slice(0, fieldsMax).map((field) => {
      const row = fieldRow([field], own[field]);
      if (flashes && !same(before[field], own[field])) row.classList.add("flash");
      return row;
    }), names.length > fieldsMax && h("button", {
      type: "button", onclick: () => { fieldsMax += 500; render({}, false); },
    }, `Show more of ${counted(names.length, "field")}`),
      current === null
        ? empty(
          "There is no document with this name. It may have collections below it.",
          h("button.primary", { type: "button", onclick: () => addField() }, "Make it by its first field"),
        )
        : names.length ? null : empty("The document has no fields."));
  }

  /**
   * @param {(string|number)[]} steps
   * @param {Value} value
   * @returns {HTMLElement}
   */
  function fieldRow(steps, value) {
    const kind = kindOf(value);
    const key = JSON.stringify(steps);
    const isOpen = open.has(key);
    const isTree = kind === "map" || kind === "array";
    const label = typeof steps[steps.length - 1] === "number"
      ? `[${steps[steps.length - 1]}]`
      : short(String(steps[steps.length - 1]), 80);
    const toggle = () => {
      if (!open.delete(key)) open.add(key);
      render({}, false);
      /** @type {HTMLElement|null} */ (fields.querySelector(`[data-key="${CSS.escape(key)}"]`))?.focus();
    };
    const edit = () => isTree && kind === "map" ? toggle() : editField(steps, value);
    const size = kind === "map"
      ? counted(Object.keys(fieldsOf(value)).length, "field")
      : kind === "array" ? counted(elementsOf(value).length, "element") : "";
    const shown = kind === "reference" && value.referenceValue.startsWith(`${app.database}/documents/`)
      ? h("a.value.reference", { href: app.link("data", { path: pathOf(value.referenceValue) }) },
        short(textOf(value), 120),
      )
      : h("span.value", { class: kind.replace(" ", "-") },
        isTree
          ? size
          : kind === "string"
            ? h("span.text", {}, short(value.stringValue, 240))
            : kind === "vector"
              ? `${short(textOf(value))} (${counted((vectorOf(value) ?? []).length, "dimension")})`
              // A reference is to another database here.
              : short(kind === "reference" ? value.referenceValue : textOf(value, 240), 240),
      );
    const row = h("div.field-row", {},
      h("button.disclosure", {
        type: "button", hidden: !isTree, "aria-label": isOpen ? "Close" : "Open", onclick: toggle,
      }, isOpen ? "▾" : "▸"), h("span.spacer", { hidden: isTree }),
      h("span.name", {}, label), h("span.kind", {}, kind), shown,
      h("span.row-actions", {},
        smallButton("Edit", `Edit ${label}`, () => editField(steps, value)),
        isTree && smallButton("+", `Add to ${label}`, () => addField(steps, value)),
        smallButton("✕", `Delete ${label}`, () => deleteField(steps)),
      ));
    const node = h("div.field-node", {
      role: "treeitem",
      tabindex: 0,
      "data-key": key,
      "aria-label": `${label}, ${kind}`,
      "aria-expanded": isTree ? String(isOpen) : null,
      ondblclick: (/** @type {Event} */ event) => {
      event.stopPropagation();
      edit();
    },
      onkeydown: (/** @type {KeyboardEvent} */ event) => {
        if (event.target !== node) return;
        nodeKey(event, { toggle, edit, remove: () => deleteField(steps), isTree, isOpen });
      } }, row);
    if (isTree && isOpen) node.append(h("div.children", { role: "group" }, childRows(steps, value, kind)));
    return node;
  }

  /**
   * @param {(string|number)[]} steps
   * @param {Value} value
   * @param {string} kind
   */
  function childRows(steps, value, kind) {
    const members = fieldsOf(value);
    const children = kind === "map"
      ? Object.keys(members).sort().map((member) => /** @type {[string|number, Value]} */ ([member, members[member]]))
      : elementsOf(value).map((element, index) => /** @type {[string|number, Value]} */ ([index, element]));
    const shown = children.slice(0, fieldsMax).map(([step, child]) => fieldRow([...steps, step], child));
    return children.length > fieldsMax
      ? [
        ...shown,
        h("button", { type: "button", onclick: () => { fieldsMax += 500; render({}, false); } },
          `Show more of ${children.length.toLocaleString("en")}`,
        ),
      ]
      : shown;
  }

  /**
   * Tells of the values that others write to a field.
   * @param {(string|number)[]} steps
   */
  const watch = (steps) => (/** @type {(theirs: Value|null) => void} */ changed) => {
    const watcher = (/** @type {Document|null} */ document) => changed(
      document ? valueAt(document.fields ?? {}, steps) : null,
    );
    watchers.add(watcher);
    return () => { watchers.delete(watcher); };
  };

  /**
   * @param {(string|number)[]} steps
   * @param {Value} value
   */
  async function editField(steps, value) {
    const answer = await askValue({
      title: `Edit ${stepsText(steps)}`, database: app.database, value, watch: watch(steps),
    });
    if (answer) await write(steps, answer.value);
  }

  /**
   * @param {(string|number)[]} [steps] of a map or an array; the document without
   * @param {Value} [container]
   */
  async function addField(steps = [], container) {
    const isArray = container ? kindOf(container) === "array" : false;
    const answer = await askValue({
      title: isArray ? `Add to ${stepsText(steps)}` : "Add a field",
      database: app.database,
      value: null,
      asksName: !isArray,
    });
    if (!answer) return;
    open.add(JSON.stringify(steps));
    // The array may have become longer meanwhile.
    const end = isArray ? elementsOf(valueAt(current?.fields ?? {}, steps) ?? {}).length : 0;
    await write([...steps, isArray ? end : answer.name], answer.value);
  }

  /** @param {(string|number)[]} steps */
  async function deleteField(steps) {
    const before = valueAt(current?.fields ?? {}, steps);
    const sure = await dialog(
      `Delete ${stepsText(steps)}?`,
      (close) => h("div.form", {},
        h("p", {}, "The field and all below it will be gone."), choices(close, "Delete", () => true, "danger"),
      ),
    );
    if (!sure) return;
    // In an array another element may have this place now.
    if (!same(before, valueAt(current?.fields ?? {}, steps))) {
      return notify("Someone has changed this value meanwhile. Nothing was deleted.", "bad");
    }
    await write(steps, undefined);
  }

  /**
   * Writes one field. An array is written whole, so a write into one is refused if the document has changed.
   * @param {(string|number)[]} steps
   * @param {Value|undefined} value
   */
  async function write(steps, value) {
    const { mask, fields: changedFields } = change(current?.fields ?? {}, steps, value);
    const isInArray = steps.some((step) => typeof step === "number");
    await attempt(() => rest.commit(app.database, [{
      update: { name, fields: changedFields },
      updateMask: { fieldPaths: [fieldPath(mask)] },
      currentDocument: isInArray && current ? { updateTime: current.updateTime } : undefined,
    }]));
  }

  const stop = listen(app.database, { documents: { documents: [name] } }, {
    snapshot: (() => {
      let isFirst = true;
      return ({ changes, isReset }) => {
        const own = changes.find((change) => change.name === name);
        if (own || isFirst || isReset) take(own?.document ?? null, isFirst);
        isFirst = false;
      };
    })(),
    failed: (error) => { notify(error.message, "bad"); },
  });
  attempt(async () => {
    const found = await rest.getDocument(name);
    if (current === undefined) { take(found, true); }
  });
  loadCollections();

  const element = h("section.column.document", { "aria-label": `Document ${visible(lastSegment(path))}` },
    columnHead(
      lastSegment(path),
      [
        smallButton("+ Field", "Add a field", () => addField()),
        smallButton("⋯", "Duplicate, rename, export, delete", () => documentMenu(app, path, () => current ?? null)),
      ],
      subtitle,
    ),
    h("div.column-body.padded", {},
      h("div.section", {},
        h("h3", {},
          "Collections",
          smallButton("+", "Add a document to a new collection below", () => addDocument(app, null, path)),
        ),
        collections,
      ),
      h("div.section", {}, h("h3", {}, "Fields"), fields)));
  return { key: path, element, select(/** @type {string|null} */ id) { chosen = id; mark(); }, close() { stop(); } };
}

/**
 * @param {KeyboardEvent} event
 * @param {{toggle: () => void, edit: () => void, remove: () => void, isTree: boolean, isOpen: boolean}} node
 */
function nodeKey(event, node) {
  const nodes = /** @type {HTMLElement[]} */ ([
    ...(/** @type {HTMLElement} */ (event.target).closest(".fields")?.querySelectorAll("[role=treeitem]") ?? []),
  ]);
  const at = nodes.indexOf(/** @type {HTMLElement} */ (event.target));
  switch (event.key) {
    case "ArrowDown": nodes[at + 1]?.focus(); break;
    case "ArrowUp": nodes[at - 1]?.focus(); break;
    case "ArrowRight": if (node.isTree && !node.isOpen) node.toggle(); break;
    case "ArrowLeft": if (node.isTree && node.isOpen) node.toggle(); break;
    case "Enter": node.edit(); break;
    case "Delete": node.remove(); break;
    default: return;
  }
  event.preventDefault();
}

/** @param {(string|number)[]} steps */
function stepsText(steps) {
  return short(steps.map((step) => typeof step === "number" ? `[${step}]` : step).join("."), 60);
}

/**
 * @param {Record<string, Value>} fields
 * @param {(string|number)[]} steps
 * @returns {Value|null}
 */
function valueAt(fields, steps) {
  /** @type {Value|undefined} */
  let value = { mapValue: { fields } };
  for (const step of steps) value = value && (typeof step === "number"
    ? elementsOf(value)[step]
    : fieldsOf(value)[step]);
  return value ?? null;
}

/**
 * The mask and the fields of a write that sets or deletes one value. A mask reaches into maps, not into arrays.
 * @param {Record<string, Value>} fields
 * @param {(string|number)[]} steps
 * @param {Value|undefined} value
 */
function change(fields, steps, value) {
  const firstNumber = steps.findIndex((step) => typeof step === "number");
  const mask = /** @type {string[]} */ (firstNumber < 0 ? steps : steps.slice(0, firstNumber));
  const rest = firstNumber < 0 ? [] : steps.slice(firstNumber);
  const changed = rest.length ? replaced(/** @type {Value} */ (valueAt(fields, mask)), rest, value) : value;
  if (changed === undefined) return { mask, fields: {} };
  /** @type {Record<string, Value>} */
  let nested = { [mask[mask.length - 1]]: changed };
  for (const segment of mask.slice(0, -1).reverse()) nested = { [segment]: { mapValue: { fields: nested } } };
  return { mask, fields: nested };
}

/**
 * A copy of a container in which one value is another.
 * @param {Value} container
 * @param {(string|number)[]} steps
 * @param {Value|undefined} value
 * @returns {Value}
 */
function replaced(container, [step, ...rest], value) {
  const inner = rest.length
    ? replaced(typeof step === "number" ? elementsOf(container)[step] : fieldsOf(container)[step], rest, value)
    : value;
  if (typeof step === "number") {
    const values = [...elementsOf(container)];
    if (inner === undefined) values.splice(step, 1);
    else values[step] = inner;
    return { arrayValue: { values } };
  }
  const members = { ...fieldsOf(container) };
  if (inner === undefined) delete members[step];
  else members[step] = inner;
  return { mapValue: { fields: members } };
}

/** @param {string|undefined} time */
function timeText(time) { return time ? time.slice(0, 19).replace("T", " ") + " UTC" : ""; }

// Actions.

const idLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

function newID() {
  return [
    ...crypto.getRandomValues(new Uint8Array(40)),
  ].filter((byte) => byte < 248).slice(0, 20).map((byte) => idLetters[byte % 62]).join("");
}

/**
 * @param {App} app
 * @param {string|null} path of the collection; null asks for one
 * @param {string} [parent] of a new collection
 */
async function addDocument(app, path, parent = "") {
  const collection = /** @type {HTMLInputElement} */ (h("input", {
    type: "text", spellcheck: "false", value: path ?? "", readOnly: path !== null,
  }));
  const id = /** @type {HTMLInputElement} */ (h("input", { type: "text", spellcheck: "false", value: newID() }));
  const text = /** @type {HTMLTextAreaElement} */ (h("textarea", { rows: 8, spellcheck: "false" }));
  text.value = "{\n  \n}";
  const problem = h("p.problem", { role: "alert" });
  const made = await dialog("Add a document", (close) => h("div.form", {}, field(
    path === null ? "Id of the collection" : "Collection", collection,
  ), field("Document id", id), field(
    "Fields", text, "JSON as in JSON lines: {\"when\": {\"$timestamp\": \"2026-01-31T12:00:00Z\"}}",
  ), problem,
    choices(close, "Add", () => {
      try {
        if (!collection.value || !id.value || /\//.test(id.value)) throw new Error(
          "A collection and a document need ids without slashes.",
        );
        return {
          fields: fieldsFromLine(readJSON(text.value), app.database),
          collection: path ?? (parent ? `${parent}/` : "") + collection.value,
          id: id.value,
        };
      } catch (error) { problem.textContent = /** @type {Error} */ (error).message; return undefined; }
    })));
  if (!made) return;
  const target = `${made.collection}/${made.id}`;
  const done = await attempt(() => rest.commit(
    app.database,
    [
      {
        update: { name: `${app.database}/documents/${target}`, fields: made.fields },
        currentDocument: { exists: false },
      },
    ],
  ));
  if (done) app.go("data", { path: target });
}

/**
 * @param {App} app
 * @param {string} path
 * @param {() => Document|null} current
 */
async function documentMenu(app, path, current) {
  const chosen = await dialog(`Document ${short(path, 60)}`, (close) => h("div.menu", {},
    [
      "Duplicate", "Rename", "Copy the path", "Export as a JSON line", "As it was before",
    ].map((word) => h("button", { type: "button", onclick: () => close(word) }, word)),
    h("button.danger", { type: "button", onclick: () => close("Delete") }, "Delete the document"),
    h("button", { type: "button", onclick: () => close(null) }, "Cancel")));
  const document = current();
  if (chosen === "Delete") return deleteTree(app, path);
  if (chosen === "As it was before") return app.go("time", { path });
  if (chosen === "Copy the path") return navigator.clipboard.writeText(path).then(() => notify("Copied."));
  if (!chosen || !document) return;
  if (chosen === "Export as a JSON line") return download(
    `${lastSegment(path)}.jsonl`, [lineOf(document, lastSegment(path)) + "\n"],
  );
  const id = await askID(
    chosen === "Rename" ? "Rename the document" : "Duplicate the document",
    chosen === "Rename" ? lastSegment(path) : newID(),
    chosen === "Rename" ? "Collections below the document keep their place." : "",
  );
  if (!id || id === lastSegment(path)) return;
  const target = `${parentPath(path)}/${id}`;
  /** @type {any[]} */
  const writes = [
    {
      update: { name: `${app.database}/documents/${target}`, fields: document.fields ?? {} },
      currentDocument: { exists: false },
    },
  ];
  if (chosen === "Rename") writes.push({
    delete: document.name, currentDocument: { updateTime: document.updateTime },
  });
  if (await attempt(() => rest.commit(app.database, writes))) app.go("data", { path: target });
}

/**
 * @param {string} title
 * @param {string} id
 * @param {string} note
 */
function askID(title, id, note) {
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "text", spellcheck: "false", value: id }));
  return dialog(
    title,
    (close) => h("div.form", {},
      field("Document id", input, note),
      choices(close, "Save", () => input.value && !input.value.includes("/") ? input.value : undefined),
    ),
  );
}

/**
 * Deletes a document or a collection with all below it, after its path was typed.
 * @param {App} app
 * @param {string} path
 */
async function deleteTree(app, path) {
  const isDocument = path.split("/").length % 2 === 0;
  const root = `${app.database}/documents`;
  const progress = h("p", { role: "status" }, "Counting…");
  const input = /** @type {HTMLInputElement} */ (h(
    "input", { type: "text", spellcheck: "false", autocomplete: "off" },
  ));
  attempt(async () => {
    const total = await countTree(root, path, isDocument);
    progress.textContent = `${total} will be deleted${isDocument ? ", this one and all below it" : ""}.`;
  });
  const sure = await dialog(
    `Delete ${short(path, 60)}?`,
    (close) => h("div.form", {},
      progress,
      field("Type the path to confirm", input, visible(path)),
      choices(close, "Delete", () => input.value === path ? true : undefined, "danger"),
    ),
  );
  if (!sure) return;
  let deleted = 0;
  await attempt(async () => {
    const remove = async (/** @type {string[]} */ names) => {
      if (!names.length) return;
      const answer = await rest.batchWrite(app.database, names.map((name) => ({ delete: name })));
      const failed = answer.status?.find((status) => status.code);
      if (failed) throw new Error(failed.message);
      deleted += names.length;
      if (deleted % 5_000 < names.length) notify(`${deleted.toLocaleString("en")} deleted`);
    };
    if (isDocument) {
      for (;;) {
        const names = await rest.descendants(`${root}/${path}`);
        if (!names.length) break;
        await remove(names);
      }
      await remove([`${root}/${path}`]);
    } else {
      for (;;) {
        const names = await collectionNames(root, path);
        if (!names.length) break;
        for (const name of names) for (;;) {
          const below = await rest.descendants(name);
          if (!below.length) break;
          await remove(below);
        }
        await remove(names);
        if (names.length < pageSize) break;
      }
    }
    notify(`${counted(deleted, "document")} deleted.`);
  });
  app.go("data", { path: parentPath(path) });
}

/**
 * @param {string} root
 * @param {string} path
 * @returns {Promise<string[]>}
 */
async function collectionNames(root, path) {
  const parent = parentPath(path) ? `${root}/${parentPath(path)}` : root;
  const answer = await rest.listDocuments(
    parent, lastSegment(path), { pageSize, showMissing: true, mask: "__name__" },
  );
  return (answer.documents ?? []).map((document) => document.name);
}

/**
 * @param {string} root
 * @param {string} path
 * @param {boolean} isDocument
 */
async function countTree(root, path, isDocument) {
  if (!isDocument) {
    const parent = parentPath(path) ? `${root}/${parentPath(path)}` : root;
    const count = await rest.count(parent, { from: [{ collectionId: lastSegment(path) }] });
    return `${counted(count, "document")} of the collection, and all below them,`;
  }
  const below = await rest.descendants(`${root}/${path}`, undefined, 10_000);
  return below.length === 10_000 ? "More than 10,000 documents" : counted(below.length + 1, "document");
}

/**
 * @param {App} app
 * @param {string} path
 * @param {string} parent
 * @param {string} collection
 */
async function exportCollection(app, path, parent, collection) {
  const bar = progressDialog(`Export ${short(path, 40)}`);
  await attempt(async () => {
    /** @type {string[]} */
    const lines = [];
    await rest.runQuery(parent, {
      from: [{ collectionId: collection }], orderBy: [{ field: { fieldPath: "__name__" } }],
    }, { signal: bar.signal,
      each(document) {
        lines.push(lineOf(document, lastSegment(document.name)) + "\n");
        if (lines.length % 500 === 0) bar.show(`${lines.length.toLocaleString("en")} documents`);
      } });
    download(`${collection}.jsonl`, lines);
    notify(`${counted(lines.length, "document")} exported.`);
  });
  bar.close();
}

/**
 * @param {App} app
 * @param {string} path
 */
function importCollection(app, path) {
  const input = /** @type {HTMLInputElement} */ (h("input", {
    type: "file",
    accept: ".jsonl,.ndjson,.json,text/plain",
    onchange: () => input.files?.[0] && importFile(app, path, input.files[0]),
  }));
  input.click();
}

/** What one request of an import has: a server takes requests of 10 MiB. */
const importMax = { documents: 500, characters: 1 << 20 };

/**
 * Stores the lines of a file.
 * @param {App} app
 * @param {string} path of the collection
 * @param {Blob} file
 */
export async function importFile(app, path, file) {
  const bar = progressDialog(`Import into ${short(path, 40)}`);
  await attempt(async () => {
    const lines = (await file.text()).split("\n");
    let stored = 0;
    /** @type {any[]} */
    let writes = [];
    let characters = 0;
    const flush = async () => {
      if (!writes.length) return;
      const answer = await rest.batchWrite(app.database, writes);
      const failed = answer.status?.find((status) => status.code);
      if (failed) throw new Error(`${stored} documents are stored; then: ${failed.message}`);
      stored += writes.length;
      writes = [];
      characters = 0;
      bar.show(`${stored.toLocaleString("en")} of ${lines.length.toLocaleString("en")} lines`);
    };
    for (const [index, line] of lines.entries()) {
      if (bar.signal.aborted) throw new DOMException("", "AbortError");
      if (line.trim() === "") continue;
      try {
        const { __name__: id, ...members } = readJSON(line);
        writes.push({
          update: {
            name: `${app.database}/documents/${path}/${typeof id === "string" ? id : newID()}`,
            fields: fieldsFromLine(members, app.database),
          },
        });
      } catch (error) { throw new Error(`Line ${index + 1}: ${/** @type {Error} */ (error).message}`); }
      characters += line.length;
      if (writes.length === importMax.documents || characters > importMax.characters) await flush();
    }
    await flush();
    notify(`${counted(stored, "document")} imported.`);
  });
  bar.close();
}

/** @param {string} title */
function progressDialog(title) {
  const abort = new AbortController();
  const text = h("p", { role: "status" }, "…");
  let close = (/** @type {any} */ _) => {};
  dialog(
    title,
    (closing) => {
      close = closing;
      return h("div.form", {},
        text,
        h("div.choices", {},
          h("button", { type: "button", onclick: () => { abort.abort(); closing(null); } }, "Stop"),
        ),
      );
    },
  );
  return {
    signal: abort.signal, show(/** @type {string} */ words) { text.textContent = words; }, close() { close(null); },
  };
}

/**
 * @param {string} name
 * @param {string[]} parts
 */
export function download(name, parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" }));
  const anchor = /** @type {HTMLAnchorElement} */ (h("a", { href: url, download: name }));
  anchor.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
