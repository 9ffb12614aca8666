// Colours of the text of security rules. The text itself is in a textarea above, whose letters are transparent.

import { fill, h } from "./ui.js";

/** Characters beyond which a text has no colours, so that typing stays fast. */
const charactersMax = 100_000;

const words = "rules_version|service|match|allow|if|return|function|let|true|false|null|in|is";
const comment = String.raw`\/\/[^\n]*|\/\*[\s\S]*?(?:\*\/|$)`;
const string = String.raw`'(?:[^'\\\n]|\\.)*'?|"(?:[^"\\\n]|\\.)*"?`;
const parts = new RegExp(
  `(?<comment>${comment})|(?<string>${string})|\\b(?<number>\\d+(?:\\.\\d+)?)\\b|\\b(?<word>${words})\\b`, "g",
);

/**
 * The parts of a text in their order, with the kind of each.
 * @param {string} text
 * @returns {{kind: string, text: string}[]}
 */
export function colouredParts(text) {
  const found = [];
  let end = 0;
  for (const match of text.matchAll(parts)) {
    const start = match.index ?? 0;
    if (start > end) found.push({ kind: "", text: text.slice(end, start) });
    const kind = Object.entries(match.groups ?? {}).find(([, part]) => part !== undefined)?.[0] ?? "";
    found.push({ kind, text: match[0] });
    end = start + match[0].length;
  }
  if (end < text.length) found.push({ kind: "", text: text.slice(end) });
  return found;
}

/**
 * Shows the colours of the text of an editor.
 * @param {HTMLElement} place below the editor
 * @param {HTMLTextAreaElement} editor
 */
export function paint(place, editor) {
  const text = editor.value;
  const isPlain = text.length > charactersMax;
  editor.classList.toggle("plain", isPlain);
  // A last line that is empty has a height too.
  fill(place, isPlain ? [] : colouredParts(text).map(({ kind, text: part }) => (
    kind ? h(`span.code-${kind}`, {}, part) : part
  )), "\n");
  place.scrollTop = editor.scrollTop;
  place.scrollLeft = editor.scrollLeft;
}
