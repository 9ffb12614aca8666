// Backups: those that are there, the one that is being written, and the command for servers that write none.

import * as rest from "./rest.js";
import { attempt, byteText, choices, dialog, durationText, field, fill, h, notify } from "./ui.js";

/**
 * A path as a word of a shell.
 * @param {string} path
 */
function quoted(path) { return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`; }

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
  /** What is shown. An answer that says the same leaves the focus where it is. */
  let shown = "";

  /**
   * @param {"start"|"cancel"|"remove"} action
   * @param {string} [name]
   */
  async function act(action, name) {
    const answer = await attempt(() => rest.backup(action, name));
    if (answer) show(answer);
  }

  /** @param {any} answer */
  function show(answer) {
    const text = JSON.stringify(answer);
    if (text === shown && !answer.running) return;
    shown = text;
    start.hidden = answer.directory === null;
    start.disabled = Boolean(answer.running || answer.removed);
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
      answer.removed && h("p.hint", { role: "status" }, `${answer.removed} is being removed.`),
      answer.failure && h("p.problem", { role: "alert" }, answer.failure),
      answer.backups.length
        ? h("ul.backups", {}, answer.backups.map((/** @type {any} */ one) => line(answer.directory, one.name)))
        : h("p.hint", {}, "No backup is there."),
    );
  }

  /**
   * @param {string} directory
   * @param {string} name
   */
  function line(directory, name) {
    return h("li", {}, h("code", {}, name), " ",
      h("button.small", {
        type: "button", "aria-label": `Restore ${name}`, onclick: () => explainRestore(`${directory}/${name}`),
      }, "Restore…"), " ",
      h("button.small", { type: "button", "aria-label": `Delete ${name}`, onclick: () => remove(name) }, "Delete…"),
    );
  }

  /**
   * The page names no directory of the server, so it restores nothing itself.
   * @param {string} path
   */
  function explainRestore(path) {
    return dialog("Restore a backup", (close) => h("div.form", {},
      h("p", {}, "A restore makes a new data directory, and a server serves it. On the machine of the server:"),
      h("pre", {}, `hearth restore --data NEW-DIRECTORY ${quoted(path)}\nhearth serve --data NEW-DIRECTORY`),
      h("p.hint", {}, "This server and its data stay as they are. Stop it first if the other one takes its port."),
      h("div.choices", {}, h("button", { type: "button", onclick: () => close(null) }, "Close")),
    ));
  }

  /** @param {string} name */
  async function remove(name) {
    const input = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", spellcheck: "false", autocomplete: "off",
    }));
    const sure = await dialog("Delete the backup?", (close) => h("div.form", {},
      h("p", {}, "It cannot be restored any more."),
      field("Type its name to confirm", input, name),
      choices(close, "Delete", () => input.value === name ? true : undefined, "danger"),
    ));
    if (sure) await act("remove", name);
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
