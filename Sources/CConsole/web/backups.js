// Backups: those that are there, the one that is being written, and the command for servers that write none.

import * as rest from "./rest.js";
import { attempt, byteText, durationText, fill, h, notify } from "./ui.js";

/** The card of backups. `refresh` asks the server how far it is. */
export function backups() {
  const body = h("div.form", {});
  const start = /** @type {HTMLButtonElement} */ (h("button.small", {
    type: "button", onclick: () => act("start"),
  }, "Start a backup"));
  const checkpoint = h("button.small", { type: "button", onclick: () => attempt(async () => {
    await rest.admin("hearth.admin.v1.Admin/Checkpoint");
    notify("Everything committed is in sorted runs.");
  }) }, "Write a checkpoint");
  /** The backup that was being written when the server was asked last. */
  let running = "";

  /** @param {"start"|"cancel"} action */
  async function act(action) {
    const answer = await attempt(() => rest.backup(action));
    if (answer) show(answer);
  }

  /** @param {any} answer */
  function show(answer) {
    start.hidden = answer.directory === null;
    start.disabled = Boolean(answer.running);
    if (running && !answer.running) {
      notify(answer.failure ?? `The backup ${running} is complete.`, answer.failure ? "bad" : "good");
    }
    running = answer.running?.name ?? "";
    if (answer.directory === null) return fill(body,
      h("p", {}, "The server writes backups into the directory that its flag --backup-directory names. Elsewhere:"),
      h("pre", {}, "hearth backup --data DIRECTORY TARGET"),
    );
    fill(body,
      h("p.hint", {}, "In ", h("code", {}, answer.directory), " on the machine of the server."),
      answer.running && progress(answer.running),
      answer.failure && h("p.problem", { role: "alert" }, answer.failure),
      answer.backups.length
        ? h("ul", {}, answer.backups.map((/** @type {any} */ one) => h("li", {}, h("code", {}, one.name))))
        : h("p.hint", {}, "No backup is there."),
    );
  }

  /** @param {any} one the backup that is being written */
  function progress(one) {
    const share = one.totalBytes ? Math.min(1, one.doneBytes / one.totalBytes) : 0;
    const seconds = Math.max(0, Date.now() / 1000 - one.sinceMicroseconds / 1e6);
    return h("div.progress-row", {},
      h("progress", { value: share, max: 1, "aria-label": `Progress of ${one.name}` }),
      h("span.hint", { role: "status" },
        `${one.name}: ${byteText(one.doneBytes)} of at most ${byteText(one.totalBytes)}, for ${durationText(seconds)}`,
      ),
      h("button.small", { type: "button", onclick: () => act("cancel") }, "Cancel the backup"),
    );
  }

  return {
    element: h("section.card", { "aria-label": "Backups" },
      h("div.card-head", {}, h("h2", {}, "Backups"), start, checkpoint), body,
    ),
    async refresh() { show(await rest.data("backups")); },
  };
}
