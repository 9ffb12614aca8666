// The editor of one value: its type, its text, and what another writer has made of it meanwhile.

import { choices, dialog, field, fill, h, select, short } from "./ui.js";
import { editableText, kindOf, kinds, parse, same, textOf } from "./values.js";

/** @typedef {import("./values.js").Value} Value */

const hints = {
  integer: "64 bits",
  double: "a number, NaN, Infinity or -Infinity",
  timestamp: "2026-01-31T12:00:00.123456+01:00; without a zone it is UTC",
  reference: "users/ada, or a full name",
  "geo point": "latitude, longitude in degrees",
  bytes: "hexadecimal digits",
  vector: "numbers, separated by commas",
  array: "JSON as in JSON lines", map: "JSON as in JSON lines",
};

/** The text that a new value of a type begins with. */
const beginnings = { boolean: "true", array: "[]", map: "{}", integer: "0", double: "0.0", "geo point": "0, 0" };

/**
 * Asks for a value.
 * @param {object} options
 * @param {string} options.title
 * @param {string} options.database
 * @param {Value|null} options.value null for a new one
 * @param {boolean} [options.asksName] whether a name is asked for
 * @param {(changed: (theirs: Value|null) => void) => () => void} [options.watch] tells of values that others write;
 *   returns what ends it
 * @returns {Promise<{name: string, value: Value}|null>}
 */
export function askValue(options) {
  let kind = options.value ? kindOf(options.value) : "string";
  let stop = () => {};
  const result = dialog(options.title, (close) => {
    const name = /** @type {HTMLInputElement} */ (h("input", {
      type: "text", autocomplete: "off", spellcheck: "false",
    }));
    const type = select(kinds, kind, { onchange: () => changeKind(type.value) });
    const place = h("div", {});
    const problem = h("p.problem", { role: "alert" });
    const conflict = h("div", {});
    /** @type {HTMLTextAreaElement|HTMLSelectElement} */
    let input = control(options.value ? editableText(options.value, options.database) : "");

    /** @param {string} text */
    function control(text) {
      if (kind === "boolean") {
        const element = select(["true", "false"], text === "false" ? "false" : "true");
        fill(place, field("Value", element));
        return element;
      }
      const rows = kind === "map" || kind === "array" ? 10 : kind === "string" ? 5 : 2;
      const element = /** @type {HTMLTextAreaElement} */ (h("textarea", {
        rows,
        spellcheck: "false",
        disabled: kind === "null",
        onkeydown: (/** @type {KeyboardEvent} */ event) => {
          if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) save();
        },
      }));
      element.value = kind === "null" ? "null" : text;
      fill(place, field("Value", element, /** @type {any} */ (hints)[kind]));
      return element;
    }

    /** @param {string} next */
    function changeKind(next) {
      const text = input.value;
      kind = next;
      let kept = text;
      try { parse(kind, text, options.database); } catch { kept = /** @type {any} */ (beginnings)[kind] ?? ""; }
      input = control(kept);
    }

    function save() {
      const outcome = read();
      if (outcome) close(outcome);
    }

    function read() {
      try {
        if (options.asksName && name.value === "") throw new Error("The field needs a name.");
        return { name: name.value, value: parse(kind, input.value, options.database) };
      } catch (error) {
        problem.textContent = /** @type {Error} */ (error).message;
        return undefined;
      }
    }

    stop = options.watch?.((theirs) => {
      if (theirs === null
        ? options.value === null
        : options.value !== null && same(theirs, options.value)) return fill(conflict);
      fill(conflict, h("div.conflict", { role: "alert" }, h("strong", {},
        "Someone has changed this value while you edit it.",
      ),
        h("dl", {},
          h("dt", {}, "It was"),
          h("dd", {}, options.value ? short(textOf(options.value)) : "not there"),
          h("dt", {}, "It is now"),
          h("dd", {}, theirs ? short(textOf(theirs)) : "deleted"),
        ),
        h("div.choices", {},
          h("button", { type: "button", onclick: () => close(null) }, "Keep theirs"),
          h("button.primary", { type: "button", onclick: save }, "Write mine"),
        )));
    }) ?? stop;

    return h("div.form", {},
      options.asksName && field("Name", name),
      field("Type", type),
      place,
      problem,
      conflict,
      choices(close, "Save", read),
    );
  });
  return result.finally(() => stop());
}
