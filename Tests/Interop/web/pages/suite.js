// Runs all cases one after the other, then measures.

import { only, report, runCase, wantsLatency } from "./harness.js";
import { measure } from "./latency.js";
import { documents } from "./cases/documents.js";
import { queries } from "./cases/queries.js";
import { transactions } from "./cases/transactions.js";
import { listeners } from "./cases/listeners.js";
import { offline } from "./cases/offline.js";
import { restarts } from "./cases/restarts.js";
import { load } from "./cases/load.js";
import { builds } from "./cases/builds.js";
import { tabs } from "./cases/tabs.js";
import { signin } from "./cases/signin.js";

window.addEventListener("error", (event) => report({ kind: "error", text: event.message }));
window.addEventListener("unhandledrejection", (event) => report({ kind: "error", text: String(event.reason) }));

const groups = { documents, queries, transactions, listeners, offline, load, builds, tabs, signin, restarts };
if (!wantsLatency) {
  for (const [group, cases] of Object.entries(groups)) {
    for (const [name, body, options = {}] of cases) await runCase(group, name, body, options);
  }
}
if (only.source === "(?:)") await measure();
await report({ kind: "done" });
