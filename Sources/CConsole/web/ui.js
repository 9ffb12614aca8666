// Elements of the page. Everything that comes from documents becomes text nodes: no function here takes markup.

/**
 * Makes an element.
 * @param {string} tag such as `button.primary`, with classes after dots
 * @param {Record<string, any>} [properties] attributes; functions named `on...` are listeners; null and false are left
 *   out
 * @param {...(Node|string|number|null|undefined|false|Array<any>)} children
 * @returns {HTMLElement}
 */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name || "div");
  if (classes.length) element.className = classes.join(" ");
  for (const [key, value] of Object.entries(properties)) setProperty(element, key, value);
  append(element, children);
  return element;
}

/** Properties that are set as such; everything else is an attribute. */
const direct = new Set(["value", "checked", "disabled", "selected", "readOnly", "indeterminate", "hidden"]);

/**
 * @param {HTMLElement} element
 * @param {string} key
 * @param {any} value
 */
function setProperty(element, key, value) {
  if (value === null || value === undefined || value === false) return;
  if (typeof value === "function") element.addEventListener(key.slice(2), value);
  else if (key === "class") element.className = [element.className, value].filter(Boolean).join(" ");
  else if (direct.has(key)) /** @type {any} */ (element)[key] = value;
  else element.setAttribute(key, value === true ? "" : String(value));
}

/**
 * @param {Node} parent
 * @param {any} child
 */
function append(parent, child) {
  if (Array.isArray(child)) for (const each of child) append(parent, each);
  else if (child instanceof Node) parent.appendChild(child);
  else if (child !== null && child !== undefined && child !== false) parent.appendChild(
    document.createTextNode(String(child)),
  );
}

/**
 * Replaces what an element contains.
 * @param {Element} element
 * @param {...any} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
  return element;
}

/** @type {Record<string, string>} */
const shapes = {
  start: "M3 11.5 12 4l9 7.5M6 10v9h4v-5h4v5h4v-9",
  data: "M4 6c0-1.7 3.6-3 8-3s8 1.3 8 3-3.6 3-8 3-8-1.3-8-3zm0 0v12c0 1.7 3.6 3 8 3s8-1.3 8-3V6M4 12c0 1.7 3.6 3 8 3"
    + "s8-1.3 8-3",
  query: "M11 4a7 7 0 1 0 0 14 7 7 0 0 0 0-14zm5 12 5 5",
  watch: "M3 12h4l3-8 4 16 3-8h4",
  indexes: "M4 6h10M4 12h16M4 18h7",
  rules: "M12 3 4 6v6c0 4.5 3.4 7.8 8 9 4.6-1.2 8-4.5 8-9V6zM9 12l2 2 4-4",
  time: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 4v5l3 2",
  about: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zm0 8v5m0-9v.5",
};

/**
 * A small picture beside a word.
 * @param {string} name
 */
export function icon(name) {
  const svg = vector("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true" });
  svg.appendChild(vector("path", { d: shapes[name] ?? "" }));
  return svg;
}

/**
 * Makes an element of a drawing.
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {string} [text]
 */
export function vector(name, attributes = {}, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  if (text !== undefined) element.textContent = text;
  return element;
}

/**
 * A text with its invisible characters shown: control characters as pictures, characters that turn the direction of
 * text, and lone surrogates, by their numbers.
 * @param {string} text
 */
export function visible(text) {
  const hidden = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]|\p{Surrogate}/gu;
  return text.replace(hidden, (character) => {
    const code = character.codePointAt(0) ?? 0;
    return code < 0x20 ? String.fromCharCode(0x2400 + code) : `\\u{${code.toString(16)}}`;
  });
}

/**
 * A text of at most `max` characters.
 * @param {string} text
 * @param {number} [max]
 */
export function short(text, max = 120) {
  return text.length <= max ? visible(text) : visible(text.slice(0, max - 1)) + "…";
}

/**
 * @param {number} count
 * @param {string} noun in the singular
 */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

/** @param {number} bytes */
export function byteText(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (bytes >= 1024 && unit < units.length - 1) { bytes /= 1024; unit += 1; }
  return `${unit === 0 || bytes >= 100 ? Math.round(bytes) : bytes.toFixed(1)} ${units[unit]}`;
}

/** @param {number} seconds */
export function durationText(seconds) {
  if (seconds === 0) return "0";
  if (seconds < 1e-3) return `${Math.round(seconds * 1e6)} µs`;
  if (seconds < 1) return `${(seconds * 1e3).toFixed(seconds < 0.01 ? 2 : 1)} ms`;
  return `${seconds.toFixed(1)} s`;
}

const announcer = h("div.visually-hidden", { role: "status", "aria-live": "polite" });
const toasts = h("div.toasts", {});

/**
 * Tells of something that has happened.
 * @param {string} text
 * @param {"good"|"bad"} [kind]
 */
export function notify(text, kind = "good") {
  if (!toasts.isConnected) document.body.append(toasts, announcer);
  const toast = h(`div.toast.${kind}`, {}, short(text, 400));
  toasts.append(toast);
  announcer.textContent = text;
  setTimeout(() => toast.remove(), kind === "bad" ? 9_000 : 3_500);
}

/**
 * Runs work and tells of its error.
 * @template T
 * @param {() => Promise<T>} work
 * @returns {Promise<T|undefined>}
 */
export async function attempt(work) {
  try {
    return await work();
  } catch (error) {
    if (/** @type {any} */ (error)?.name !== "AbortError") notify(/** @type {Error} */ (error).message, "bad");
    return undefined;
  }
}

/**
 * Shows a dialog and waits for its end.
 * @template T
 * @param {string} title
 * @param {(close: (value: T|null) => void) => any} content makes what it shows
 * @returns {Promise<T|null>} null if it was dismissed
 */
export function dialog(title, content) {
  return new Promise((resolve) => {
    const box = /** @type {HTMLDialogElement} */ (h("dialog.dialog", { "aria-label": title }));
    let result = /** @type {any} */ (null);
    const close = (/** @type {any} */ value) => { result = value; box.close(); };
    append(box, [h("h2", {}, title), content(close)]);
    box.addEventListener("close", () => { box.remove(); resolve(result); });
    document.body.append(box);
    box.showModal();
    /** @type {HTMLElement|null} */ (box.querySelector("[autofocus],input,textarea,select,button"))?.focus();
  });
}

/**
 * Buttons at the end of a dialog.
 * @param {(value: any) => void} close
 * @param {string} word
 * @param {() => any} value
 * @param {string} [kind]
 */
export function choices(close, word, value, kind = "primary") {
  return h("div.choices", {}, h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
    h(`button.${kind}`, {
      type: "button", onclick: () => { const result = value(); if (result !== undefined) close(result); },
    }, word));
}

/**
 * A labelled control.
 * @param {string} label
 * @param {HTMLElement} control
 * @param {string} [hint]
 */
export function field(label, control, hint) {
  return h("label.field", {}, h("span", {}, label), control, hint && h("small", {}, hint));
}

/**
 * @param {Record<string,string>|string[]} options
 * @param {string} [chosen]
 * @param {Record<string, any>} [properties]
 */
export function select(options, chosen, properties = {}) {
  const pairs = Array.isArray(options) ? options.map((option) => [option, option]) : Object.entries(options);
  const element = /** @type {HTMLSelectElement} */ (h("select", properties,
    pairs.map(([value, text]) => h("option", { value }, text)),
  ));
  if (chosen !== undefined) element.value = chosen;
  return element;
}

/**
 * Shows a head line of a view, with what stands at its right.
 * @param {string} title
 * @param {...any} actions
 */
export function heading(title, ...actions) {
  return h("header.heading", {}, h("h1", {}, title), h("div.actions", {}, actions));
}

/**
 * @param {string} text
 * @param {any} [action]
 */
export function empty(text, action) {
  return h("div.empty", {}, h("p", {}, text), action);
}

/**
 * Copies a text.
 * @param {string} text
 */
export async function copy(text) {
  await attempt(async () => { await navigator.clipboard.writeText(text); notify("Copied."); });
}
