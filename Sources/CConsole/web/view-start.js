// The first page: how clients reach this server, whether they have, a sample, and what is wrong.

import * as rest from "./rest.js";
import { attempt, copy, counted, fill, h, heading, notify } from "./ui.js";

/** @typedef {import("./app.js").App} App */

/** @type {Record<string, {title: string, code: (host: string, project: string, isSecure: boolean) => string}>} */
const clients = {
  web: { title: "Web", code: (host, project) => `import { initializeApp } from "firebase/app";
import { connectFirestoreEmulator, getFirestore } from "firebase/firestore";

const db = getFirestore(initializeApp({ projectId: "${project}", apiKey: "any" }));
connectFirestoreEmulator(db, "${host.split(":")[0]}", ${host.split(":")[1] ?? 443});` },
  python: { title: "Python", code: (host, project) => `# pip install google-cloud-firestore
import os
os.environ["FIRESTORE_EMULATOR_HOST"] = "${host}"

from google.cloud import firestore
db = firestore.Client(project="${project}")
db.collection("books").document("dune").set({"title": "Dune", "year": 1965})` },
  node: { title: "Node.js", code: (host, project) => `// npm install @google-cloud/firestore
process.env.FIRESTORE_EMULATOR_HOST = "${host}";
const { Firestore } = require("@google-cloud/firestore");

const db = new Firestore({ projectId: "${project}" });
await db.doc("books/dune").set({ title: "Dune", year: 1965 });` },
  swift: { title: "Swift", code: (host, project) => `import FirebaseCore
import FirebaseFirestore

let options = FirebaseOptions(googleAppID: "app", gcmSenderID: "1")
options.projectID = "${project}"
FirebaseApp.configure(options: options)
let settings = FirestoreSettings()
settings.host = "${host}"
settings.isSSLEnabled = false
Firestore.firestore().settings = settings` },
  rest: { title: "REST", code: (host, project, isSecure) => `address=${isSecure ? "https" : "http"}://${host}
curl "$address/v1/projects/${project}/databases/(default)/documents/books?documentId=dune" \\
  -d '{"fields": {"title": {"stringValue": "Dune"}, "year": {"integerValue": "1965"}}}'` },
};

/** @param {App} app */
export function startView(app) {
  const host = location.host;
  const project = app.database.split("/")[1];
  const lights = new Map();
  const code = h("code", {});
  const tabs = Object.entries(clients).map(([name, client]) => {
    const light = h("i.dot", {});
    const words = h("small", {}, "no call yet");
    lights.set(name, { light, words });
    return h("button.tab", {
      type: "button",
      role: "tab",
      id: `client-${name}`,
      "aria-controls": "snippet",
      onclick: () => choose(name),
      onkeydown: (/** @type {KeyboardEvent} */ event) => tabKey(event),
    }, light, h("span", {}, client.title), words);
  });
  const problems = h("div", {});
  const databases = h("div.list", {});

  /** @param {string} name */
  function choose(name) {
    fill(code, clients[name].code(host, project, location.protocol === "https:"));
    Object.keys(clients).forEach((each, index) => {
      tabs[index].setAttribute("aria-selected", String(each === name));
      tabs[index].tabIndex = each === name ? 0 : -1;
    });
  }

  /** @param {KeyboardEvent} event */
  function tabKey(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const at = (tabs.indexOf(/** @type {any} */ (event.currentTarget)) + step + tabs.length) % tabs.length;
    choose(Object.keys(clients)[at]);
    tabs[at].focus();
  }

  async function refresh() {
    const state = await app.refreshState();
    for (const [name, { light, words }] of lights) {
      const calls = state.clients[name] ?? 0;
      light.classList.toggle("good", calls > 0);
      words.textContent = calls ? "has called" : "no call yet";
    }
    const notes = [];
    if (state.problem) notes.push(h("p.problem", {}, `The server does not take work: ${state.problem}.`));
    if (state.mode === "insecure") notes.push(
      h("p.problem", {}, "The server runs with --insecure: everyone who reaches it may do everything."),
    );
    if (state.mode === "closed" && !state.hasRules) notes.push(
      h("p.problem", {},
        "The server is closed and has no rules: only principals reach documents. ",
        h("a", { href: app.link("rules") }, "Write rules"),
      ),
    );
    fill(problems, notes.length ? notes : h("p.fine", {}, h("i.dot.good", {}), "Nothing is wrong."));
    fill(databases, state.databases.map((/** @type {string} */ name) => h("a.item", {
      href: `#/data?${new URLSearchParams({ db: name })}`,
    }, h("span.item-text", {},
      name.replace("projects/", "").replace("/databases/", " / "),
    ), h("span.chevron", { "aria-hidden": "true" }, "›"))),
      state.databases.length
        ? null
        : h("p.hint", {}, "No database has documents yet. A database begins with its first document."));
  }

  const sample = h("button.primary", { type: "button", onclick: () => attempt(async () => {
    sample.setAttribute("disabled", "");
    await loadSample(app.database);
    notify("The sample is loaded: authors and books.");
    app.go("data", { path: "books" });
  }).finally(() => sample.removeAttribute("disabled")) }, "Load the sample");

  choose("web");
  attempt(refresh);
  const timer = setInterval(() => attempt(refresh), 2_000);
  return {
    element: h("div.view.view-start", {}, heading("Start"),
      h("div.grid-two", {},
        h("section.card.wide", { "aria-label": "Connect" }, h("h2", {},
          "Connect to ", h("code.address", {}, host),
        ), h("div.tabs", { role: "tablist", "aria-label": "Clients" }, tabs),
          h("div.snippet", { id: "snippet", role: "tabpanel", tabindex: 0 },
            h("pre", {}, code),
            h("button.small", { type: "button", onclick: () => copy(code.textContent ?? "") }, "Copy"),
          ),
          h("p.hint", {}, "A light turns green when the first call of such a client comes.")),
        h("section.card", { "aria-label": "State" }, h("h2", {}, "What is wrong"), problems),
        h("section.card", { "aria-label": "Databases" }, h("h2", {}, "Databases"), databases),
        h("section.card", { "aria-label": "Sample" },
          h("h2", {}, "A sample"),
          h("p", {},
            "Twelve books and their authors, with references, arrays, maps, times, a place and reviews below the "
              + "books. It is stored in the database that is chosen above.",
          ),
          sample,
        ))),
    close() { clearInterval(timer); },
  };
}

/**
 * Stores the sample in one commit.
 * @param {string} database
 */
async function loadSample(database) {
  const root = `${database}/documents`;
  const text = (/** @type {string} */ stringValue) => ({ stringValue });
  const number = (/** @type {number} */ value) => ({ integerValue: String(value) });
  /** @type {[string, string, number, string, number, number][]} */
  const authors = [
    ["herbert", "Frank Herbert", 1920, "Tacoma", 47.25, -122.44],
    ["leguin", "Ursula K. Le Guin", 1929, "Berkeley", 37.87, -122.27],
    ["lem", "Stanisław Lem", 1921, "Lwów", 49.84, 24.03],
    ["butler", "Octavia E. Butler", 1947, "Pasadena", 34.15, -118.14],
  ];
  /** @type {[string, string, string, number, string[], number][]} */
  const books = [[
    "dune", "Dune", "herbert", 1965, ["desert", "politics"], 4.6,
  ], [
    "dune-messiah", "Dune Messiah", "herbert", 1969, ["desert"], 4.1,
  ], [
    "left-hand", "The Left Hand of Darkness", "leguin", 1969, ["winter", "politics"], 4.5,
  ], ["dispossessed", "The Dispossessed", "leguin", 1974, ["utopia", "physics"], 4.4],
    [
      "earthsea", "A Wizard of Earthsea", "leguin", 1968, ["magic"], 4.2,
    ], [
      "lathe", "The Lathe of Heaven", "leguin", 1971, ["dreams"], 4.1,
    ], [
      "solaris", "Solaris", "lem", 1961, ["ocean", "contact"], 4.3,
    ], ["cyberiad", "The Cyberiad", "lem", 1965, ["robots", "humour"], 4.5],
    [
      "invincible", "The Invincible", "lem", 1964, ["robots"], 4.2,
    ], [
      "futurological", "The Futurological Congress", "lem", 1971, ["humour"], 4.1,
    ], [
      "kindred", "Kindred", "butler", 1979, ["history"], 4.4,
    ], ["sower", "Parable of the Sower", "butler", 1993, ["utopia", "climate"], 4.3]];
  const writes = authors.map(([id, name, born, place, latitude, longitude]) => ({
    update: {
      name: `${root}/authors/${id}`,
      fields: {
        name: text(name),
        born: number(born),
        birthplace: {
          mapValue: { fields: { city: text(place), location: { geoPointValue: { latitude, longitude } } } },
        },
      },
    },
  }));
  for (const [id, title, author, year, tags, stars] of books) {
    writes.push(
      /** @type {any} */ ({
        update: {
          name: `${root}/books/${id}`,
          fields: {
            title: text(title),
            year: number(year),
            author: { referenceValue: `${root}/authors/${author}` },
            tags: { arrayValue: { values: tags.map(text) } },
            stars: { doubleValue: stars },
            inPrint: { booleanValue: year > 1964 },
            added: { timestampValue: `2026-01-${String(writes.length + 1).padStart(2, "0")}T08:30:00.25Z` },
          },
        },
      }),
    );
  }
  for (const [id, who, stars] of [
    ["dune", "ada", 5], ["dune", "ben", 4], ["solaris", "ada", 5],
  ]) writes.push(
    /** @type {any} */ ({
      update: {
        name: `${root}/books/${id}/reviews/${who}`, fields: { stars: number(Number(stars)), by: text(String(who)) },
      },
    }),
  );
  await rest.commit(database, writes);
}
