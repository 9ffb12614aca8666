// The palette: every view and action by its name, documents by their paths. Ctrl-K, or Command-K.

import { fill, h, short } from "./ui.js";

/** @typedef {{title: string, hint?: string, run: () => void}} Command */

/**
 * Opens the palette.
 * @param {(text: string) => Command[]} commandsFor all that fit a text, the best first
 */
export function openPalette(commandsFor) {
  if (document.querySelector("dialog.palette")) return;
  /** @type {Command[]} */
  let commands = [];
  let active = 0;
  const list = h("div.palette-list", { role: "listbox", id: "palette-list", "aria-label": "Commands" });
  const input = /** @type {HTMLInputElement} */ (h("input", {
    type: "text",
    "aria-label": "Command or path",
    placeholder: "Go to a view, a path such as users/ada, or a query",
    role: "combobox",
    "aria-controls": "palette-list",
    "aria-expanded": "true",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => show(),
    onkeydown: key,
  }));
  const box = /** @type {HTMLDialogElement} */ (h("dialog.palette", {
    "aria-label": "Command palette",
    onclose: () => box.remove(),
    onclick: (/** @type {Event} */ event) => { if (event.target === box) box.close(); },
  }, input, list));

  function show() {
    commands = commandsFor(input.value.trim()).slice(0, 12);
    active = 0;
    fill(list, commands.map((command, index) => h("div.palette-item", {
      role: "option", id: `palette-${index}`, onclick: () => run(index),
    }, h("span", {}, short(command.title)), command.hint && h("small", {}, short(command.hint, 60)))),
      commands.length ? null : h("p.hint", {}, "Nothing fits."));
    mark();
  }

  function mark() {
    [...list.children].forEach((item, index) => item.setAttribute("aria-selected", String(index === active)));
    input.setAttribute("aria-activedescendant", `palette-${active}`);
    list.children[active]?.scrollIntoView({ block: "nearest" });
  }

  /** @param {number} index */
  function run(index) {
    const command = commands[index];
    box.close();
    command?.run();
  }

  /** @param {KeyboardEvent} event */
  function key(event) {
    if (event.key === "ArrowDown") active = Math.min(active + 1, commands.length - 1);
    else if (event.key === "ArrowUp") active = Math.max(active - 1, 0);
    else if (event.key === "Enter") return run(active);
    else return;
    event.preventDefault();
    mark();
  }

  document.body.append(box);
  box.showModal();
  show();
}

/**
 * Whether all letters of a pattern occur in a text in their order.
 * @param {string} pattern
 * @param {string} text
 */
export function fits(pattern, text) {
  let at = 0;
  const lower = text.toLowerCase();
  for (const letter of pattern.toLowerCase()) {
    at = lower.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}
