// The console: its frame, its views, and the addresses of views.
//
//     #/data?db=projects/P/databases/D&path=users/ada      an address names a view and what it shows, never a token

import { openPalette, fits } from "./palette.js";
import * as rest from "./rest.js";
import { attempt, choices, dialog, field, fill, h, icon, select, short } from "./ui.js";
import { aboutView } from "./view-about.js";
import { dataView } from "./view-data.js";
import { indexesView } from "./view-indexes.js";
import { queryHistory, queryView } from "./view-query.js";
import { rulesView } from "./view-rules.js";
import { startView } from "./view-start.js";
import { timeView } from "./view-time.js";
import { watchView } from "./view-watch.js";

/** @typedef {{element: HTMLElement, update?: (parameters: URLSearchParams) => void, close?: () => void}} View */

const views = {
  start: { title: "Start", make: startView, key: "1" },
  data: { title: "Data", make: dataView, key: "2" },
  query: { title: "Query", make: queryView, key: "3" },
  watch: { title: "Watch", make: watchView, key: "4" },
  indexes: { title: "Indexes", make: indexesView, key: "5" },
  rules: { title: "Rules", make: rulesView, key: "6" },
  time: { title: "Time", make: timeView, key: "7" },
  about: { title: "About", make: aboutView, key: "8" },
};

const defaultDatabase = "projects/demo/databases/(default)";

export class App {
  database = defaultDatabase;
  /** @type {any} what the server says of itself */
  state = {};
  #main = h("main.main", { id: "main", tabindex: "-1" });
  #links = new Map();
  #shown = "";
  /** @type {View|null} */
  #view = null;
  #chooser = /** @type {HTMLSelectElement} */ (select(
    [], undefined, { "aria-label": "Database", onchange: () => this.#chooseDatabase() },
  ));
  #status = h("span.status", {});

  /**
   * The address of a view.
   * @param {string} view
   * @param {Record<string, string>} [parameters]
   */
  link(view, parameters = {}) {
    return `#/${view}?${new URLSearchParams({ db: this.database, ...parameters })}`;
  }

  /**
   * @param {string} view
   * @param {Record<string, string>} [parameters]
   */
  go(view, parameters = {}) { location.hash = this.link(view, parameters); }

  /** @param {string} path of a collection or a document */
  openPath(path) { this.go("data", { path }); }

  async start() {
    document.body.replaceChildren(this.#frame());
    rest.whenRefused(() => this.#askToken("The session has ended."));
    addEventListener("hashchange", () => this.#route());
    addEventListener("keydown", (event) => this.#key(event));
    try {
      await rest.begin(null);
    } catch (error) {
      const refused = /** @type {import("./rest.js").APIError} */ (error);
      return this.#askToken(refused.code === 401 ? "" : refused.message);
    }
    await this.#enter();
  }

  async #enter() {
    const state = attempt(() => this.refreshState());
    // A view of documents whose address has the database needs nothing else of the server's state.
    if (!/^#\/(data|query)\?(.*&)?db=/.test(location.hash)) await state;
    await this.#route();
    await state;
  }

  /** Reads the server's state again. */
  async refreshState() {
    this.state = await rest.data("state");
    const names = new Set([...this.state.databases, this.database]);
    fill(
      this.#chooser,
      [...names].sort().map((name) => h("option", { value: name },
        short(name.replace(/^projects\//, "").replace("/databases/", " / "), 60),
      )),
      h("option", { value: "" }, "Another…"),
    );
    this.#chooser.value = this.database;
    fill(
      this.#status,
      h(`i.dot.${this.state.problem ? "bad" : "good"}`, {}),
      this.state.problem ? "has a problem" : this.state.mode,
    );
    this.#status.title = this.state.problem ?? `The server is ready. Its mode is ${this.state.mode}.`;
    return this.state;
  }

  #frame() {
    const links = Object.entries(views).map(([name, view]) => {
      const link = h("a.nav-link", { href: this.link(name), title: `Alt-${view.key}` },
        icon(name), h("span", {}, view.title),
      );
      this.#links.set(name, link);
      return link;
    });
    return h("div.frame", {},
      h("a.skip", {
        href: "#main", onclick: (/** @type {Event} */ event) => { event.preventDefault(); this.#main.focus(); },
      }, "Skip to the content"),
      h("div.sidebar", {}, h("a.brand", { href: "#/start" },
        h("span.flame", { "aria-hidden": "true" }), "Hearth",
      ), h("nav.nav", { "aria-label": "Views" }, links),
        h("div.sidebar-foot", {},
          this.#status,
          h("button.palette-button", { type: "button", onclick: () => this.palette() },
            "Commands", h("kbd", {}, "Ctrl K"),
          ),
        )),
      h("div.content", {},
        h("div.topbar", {}, h("label.database", {}, h("span", {}, "Database"), this.#chooser)), this.#main,
      ));
  }

  // Views.

  async #route() {
    const [, name = "", query = ""] = /^#\/(\w*)\??(.*)$/.exec(location.hash) ?? [];
    const view = /** @type {keyof typeof views} */ (name in views ? name : "start");
    const parameters = new URLSearchParams(query);
    const database = parameters.get("db");
    if (database && /^projects\/[^/]+\/databases\/[^/]+$/.test(database)) this.database = database;
    else if (!database && this.state.databases?.length && !this.state.databases.includes(this.database)) {
      this.database = this.state.databases[0];
    }
    this.#relink();
    const key = `${view} ${this.database}`;
    if (this.#view && this.#shown === key && this.#view.update) return this.#view.update(parameters);
    this.#view?.close?.();
    this.#shown = key;
    document.title = `${views[view].title} · Hearth`;
    this.#view = views[view].make(this, parameters);
    fill(this.#main, this.#view.element);
    for (const [each, link] of this.#links) link.toggleAttribute("aria-current", each === view);
  }

  /** Makes the view again. */
  again() {
    this.#shown = "";
    this.#route();
  }

  #relink() {
    for (const [name, link] of this.#links) link.setAttribute("href", this.link(name));
    if (this.#chooser.value !== this.database) {
      if (![...this.#chooser.options].some((option) => option.value === this.database)) this.#chooser.prepend(
        h("option", { value: this.database }, short(this.database, 60)),
      );
      this.#chooser.value = this.database;
    }
  }

  async #chooseDatabase() {
    let name = this.#chooser.value;
    if (name === "") {
      const input = /** @type {HTMLInputElement} */ (h("input", {
        type: "text", spellcheck: "false", placeholder: "demo",
      }));
      const typed = await dialog(
        "Open another database",
        (close) => h("div.form", {},
          field("Project, or project/database", input), choices(close, "Open", () => input.value.trim() || undefined),
        ),
      );
      if (!typed) { this.#chooser.value = this.database; return; }
      const [project, database = "(default)"] = typed.split("/");
      name = `projects/${project}/databases/${database}`;
    }
    this.database = name;
    const [, view = "start"] = /^#\/(\w+)/.exec(location.hash) ?? [];
    this.go(view === "about" ? "data" : view);
  }

  // The session.

  /** @param {string} reason */
  #askToken(reason) {
    this.#view?.close?.();
    this.#view = null;
    this.#shown = "";
    const input = /** @type {HTMLInputElement} */ (h("input", {
      type: "password", autocomplete: "off", spellcheck: "false", "aria-describedby": "token-hint",
    }));
    const problem = h("p.problem", { role: "alert" }, reason);
    const button = h("button.primary", { type: "submit" }, "Open the console");
    fill(this.#main, h("form.card.token-form", { onsubmit: async (/** @type {Event} */ event) => {
      event.preventDefault();
      try {
        await rest.begin(input.value.trim());
        input.value = "";
        await this.#enter();
      } catch (error) { problem.textContent = /** @type {Error} */ (error).message; }
    } }, h("h1", {},
      "This server is closed",
    ), h("p", {},
      "The console needs the credential of a principal that may administer the server.",
    ), field("API key or token", input),
      h("p.hint", { id: "token-hint" },
        "Make one with ",
        h("code", {}, "hearth token create operator --principals FILE --role admin --project '*' --api-key"),
        ". It is exchanged for a token of an hour that stays in the memory of this page.",
      ), problem, button));
    input.focus();
  }

  // The keyboard.

  /** @param {KeyboardEvent} event */
  #key(event) {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      this.palette();
    } else if (event.altKey && !event.ctrlKey) {
      const found = Object.entries(views).find(([, view]) => view.key === event.key);
      if (found) { event.preventDefault(); this.go(found[0]); }
    }
  }

  palette() {
    openPalette((text) => {
      const commands = Object.entries(views).map(([name, view]) => ({
        title: `Go to ${view.title}`, hint: `Alt-${view.key}`, run: () => this.go(name),
      }));
      commands.push({
        title: "Write a checkpoint",
        hint: "everything committed goes into a sorted run",
        run: () => attempt(() => rest.admin("hearth.admin.v1.Admin/Checkpoint")),
      });
      for (const query of queryHistory()) commands.push({
        title: query, hint: "query", run: () => this.go("query", { q: query }),
      });
      for (const name of this.state.databases ?? []) commands.push({
        title: name, hint: "database", run: () => { this.database = name; this.go("data"); },
      });
      const found = commands.filter((command) => fits(text, command.title));
      if (text.includes("--")) found.unshift({
        title: `Run ${text}`, hint: "query", run: () => this.go("query", { q: text }),
      });
      else if (text && !/\s/.test(text)) found.push({
        title: `Open ${text}`,
        hint: text.split("/").length % 2 ? "collection" : "document",
        run: () => this.openPath(text.replace(/^\/|\/$/g, "")),
      });
      return found;
    });
  }
}

new App().start();
