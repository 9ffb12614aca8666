// What runs, what it is made of, and the keys.

import { h, heading } from "./ui.js";

/** @param {import("./app.js").App} app */
export function aboutView(app) {
  const keys = [
    ["Ctrl-K", "commands, views, paths and queries"],
    ["Alt-1 … Alt-8", "the views"],
    ["↑ ↓ Home End", "in lists and fields"],
    ["→ ←", "open and close a map or an array"],
    ["Enter", "open a document, edit a field, run a query"],
    ["Delete", "delete the chosen field"],
    ["Ctrl-Enter", "save a value"],
  ];
  return { element: h("div.view", {}, heading("About"),
    h("section.card", { "aria-label": "Server" },
      h("h2", {}, `Hearth ${app.state.version ?? ""}`),
      h("dl.facts", {},
        [
          ["address", app.state.address], ["mode", app.state.mode],
        ].map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value ?? "–"))),
      ),
    ),
    h("section.card", { "aria-label": "Keys" },
      h("h2", {}, "Keys"),
      h("dl.keys", {}, keys.map(([key, meaning]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, meaning)])),
    ),
    h("section.card", { "aria-label": "Licences" },
      h("h2", {}, "Licences"),
      h("p", {},
        "The console is part of Hearth and has its licence. It contains no other library, and asks no other server "
          + "than this one for anything.",
      ),
    )) };
}
