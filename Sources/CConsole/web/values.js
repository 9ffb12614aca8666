// Values of documents in the JSON of REST, such as {"integerValue": "5"}: their types, their texts, and back.

/** @typedef {Record<string, any>} Value one member, whose name says the type */
/** @typedef {{name: string, fields?: Record<string, Value>, createTime?: string, updateTime?: string}} Document */

/** Types in the order in which the editor offers them. */
export const kinds = [
  "string",
  "integer",
  "double",
  "boolean",
  "null",
  "timestamp",
  "reference",
  "geo point",
  "bytes",
  "vector",
  "array",
  "map",
];

/**
 * @param {Value} value
 * @returns {string} one of `kinds`
 */
export function kindOf(value) {
  if ("stringValue" in value) return "string";
  if ("integerValue" in value) return "integer";
  if ("doubleValue" in value) return "double";
  if ("booleanValue" in value) return "boolean";
  if ("timestampValue" in value) return "timestamp";
  if ("referenceValue" in value) return "reference";
  if ("geoPointValue" in value) return "geo point";
  if ("bytesValue" in value) return "bytes";
  if ("arrayValue" in value) return "array";
  if ("mapValue" in value) return vectorOf(value) ? "vector" : "map";
  return "null";
}

/**
 * The numbers of a vector; null for any other value.
 * @param {Value} value
 * @returns {Value[]|null}
 */
export function vectorOf(value) {
  const fields = value.mapValue?.fields;
  if (fields?.__type__?.stringValue !== "__vector__") return null;
  return fields.value?.arrayValue?.values ?? [];
}

/** @param {Value} value */
export function elementsOf(value) { return /** @type {Value[]} */ (value.arrayValue?.values ?? []); }

/** @param {Value} value */
export function fieldsOf(value) { return /** @type {Record<string, Value>} */ (value.mapValue?.fields ?? {}); }

/**
 * The first elements of a list as text.
 * @template T
 * @param {T[]} elements
 * @param {number} max
 * @param {(element: T) => string} text
 */
function first(elements, max, text) {
  return elements.slice(0, max).map(text).join(", ") + (elements.length > max ? ", …" : "");
}

/**
 * A value as text of one line.
 * @param {Value} value
 * @param {number} [max]
 * @returns {string}
 */
export function textOf(value, max = 200) {
  switch (kindOf(value)) {
    case "string": return value.stringValue.length > max ? value.stringValue.slice(0, max) + "…" : value.stringValue;
    case "integer": return String(value.integerValue);
    case "double": return doubleText(value.doubleValue);
    case "boolean": return String(value.booleanValue);
    case "timestamp": return value.timestampValue;
    case "reference": return pathOf(value.referenceValue);
    case "geo point": return `${value.geoPointValue.latitude ?? 0}, ${value.geoPointValue.longitude ?? 0}`;
    case "bytes": return hexOf(value.bytesValue ?? "", max);
    case "vector": return `[${first(vectorOf(value) ?? [], 8, numberText)}]`;
    case "array": return `[${first(elementsOf(value), 12, (element) => textOf(element, 24))}]`.slice(0, max);
    case "map": return `{${first(
      Object.entries(fieldsOf(value)), 8, ([name, member]) => `${name.slice(0, 24)}: ${textOf(member, 24)}`,
    )}}`.slice(0, max);
    default: return "null";
  }
}

/**
 * A double with a point, so that it does not look like an integer.
 * @param {number|string} value
 */
function doubleText(value) {
  const text = numberText({ doubleValue: value });
  return /^-?\d+$/.test(text) ? text + ".0" : text;
}

/** @param {Value} value */
function numberText(value) {
  const number = value.doubleValue ?? value.integerValue;
  return Object.is(number, -0) ? "-0.0" : String(number);
}

/**
 * What a person edits: the whole value, which `parse` reads.
 * @param {Value} value
 * @param {string} database in which the value is
 */
export function editableText(value, database) {
  switch (kindOf(value)) {
    case "string": return value.stringValue;
    case "reference": return referenceText(value.referenceValue, database);
    case "bytes": return hexOf(value.bytesValue ?? "", Infinity);
    case "vector": return (vectorOf(value) ?? []).map(numberText).join(", ");
    case "array": return writeJSON(toLine(value), 2);
    case "map": return writeJSON(toLine(value), 2);
    default: return textOf(value, Infinity);
  }
}

/**
 * A value of a type from the text of a person. Throws an Error that says what is wrong.
 * @param {string} kind
 * @param {string} text
 * @param {string} database for references
 * @returns {Value}
 */
export function parse(kind, text, database) {
  const trimmed = text.trim();
  switch (kind) {
    case "string": return { stringValue: text };
    case "integer": return { integerValue: integerOf(trimmed) };
    case "double": return doubleValue(doubleOf(trimmed));
    case "boolean":
      if (trimmed !== "true" && trimmed !== "false") throw new Error("Write true or false.");
      return { booleanValue: trimmed === "true" };
    case "null": return { nullValue: null };
    case "timestamp": return { timestampValue: timestampOf(trimmed) };
    case "reference": return { referenceValue: nameOf(trimmed, database) };
    case "geo point": return { geoPointValue: geoPointOf(trimmed) };
    case "bytes": return { bytesValue: bytesOf(trimmed) };
    case "vector": return vectorValue(
      trimmed.replace(/^\[|\]$/g, "").split(",").map((part) => part.trim()).filter((part) => part !== "").map(doubleOf),
    );
    default: {
      const value = fromLine(readJSON(trimmed || (kind === "array" ? "[]" : "{}")), database);
      if (kindOf(value) !== kind) throw new Error(
        kind === "array" ? "Write a JSON list in brackets." : "Write a JSON object in braces.",
      );
      return value;
    }
  }
}

/** @param {string} text */
function integerOf(text) {
  if (!/^[+-]?\d{1,19}$/.test(text)) throw new Error("Write a whole number.");
  const number = BigInt(text);
  if (number !== BigInt.asIntN(64, number)) throw new Error("The number needs more than 64 bits.");
  return number.toString();
}

/** @param {string} text */
function doubleOf(text) {
  if (["NaN", "Infinity", "-Infinity"].includes(text)) return Number(text);
  if (!/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) throw new Error(
    "Write a number, NaN, Infinity or -Infinity.",
  );
  return finite(text);
}

/**
 * The double of a text that is a number.
 * @param {string} text
 */
function finite(text) {
  const number = Number(text);
  if (!Number.isFinite(number)) throw new Error(`${text} is too large for a double.`);
  return number;
}

/**
 * JSON has no other numbers than finite ones.
 * @param {number} number
 * @returns {Value}
 */
function doubleValue(number) { return { doubleValue: Number.isFinite(number) ? number : String(number) }; }

const timestampForm = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d)(:\d\d)?(\.\d{1,9})?\s*(Z|[+-]\d\d:\d\d)?$/i;

/**
 * A time with its zone, in UTC; fractions keep their nine digits.
 * @param {string} text
 */
function timestampOf(text) {
  const parts = timestampForm.exec(text);
  const moment = parts && new Date(`${parts[1]}T${parts[2]}${parts[3] ?? ":00"}${(parts[5] ?? "Z").toUpperCase()}`);
  // JavaScript takes the 30th of February for a day of March.
  const isDay = moment && !Number.isNaN(moment.getTime()) && new Date(parts[1]).toISOString().startsWith(parts[1]);
  if (!isDay) throw new Error(
    "Write a time such as 2026-01-31T12:00:00.5+01:00; without a zone it is UTC.",
  );
  return moment.toISOString().slice(0, 19) + (parts[4] ?? "") + "Z";
}

/** @param {string} text */
function geoPointOf(text) {
  const numbers = text.split(",").map((part) => Number(part.trim() === "" ? NaN : part));
  const [latitude, longitude] = numbers;
  if (numbers.length !== 2 || !(Math.abs(latitude) <= 90) || !(Math.abs(longitude) <= 180)) throw new Error(
    "Write latitude and longitude in degrees: 52.5, 13.4.",
  );
  return { latitude, longitude };
}

/**
 * Base64 from hexadecimal digits.
 * @param {string} text
 */
function bytesOf(text) {
  const digits = text.replace(/[\s:]/g, "");
  if (!/^([0-9a-fA-F]{2})*$/.test(digits)) throw new Error("Write hexadecimal digits, two for each byte.");
  let binary = "";
  for (let at = 0; at < digits.length; at += 2) binary += String.fromCharCode(parseInt(digits.slice(at, at + 2), 16));
  return btoa(binary);
}

/**
 * @param {string} base64
 * @param {number} max bytes that are shown
 */
function hexOf(base64, max) {
  const binary = atob(base64.slice(0, max === Infinity ? undefined : 4 * Math.ceil(max / 3)));
  let text = "";
  for (let at = 0; at < Math.min(binary.length, max); at += 1) {
    text += binary.charCodeAt(at).toString(16).padStart(2, "0");
  }
  return text + (base64.length * 3 / 4 > max + 2 ? "…" : "");
}

/**
 * @param {number[]} numbers
 * @returns {Value}
 */
export function vectorValue(numbers) {
  return {
    mapValue: {
      fields: {
        __type__: { stringValue: "__vector__" },
        value: { arrayValue: { values: numbers.map(doubleValue) } },
      },
    },
  };
}

// Names and paths.

/**
 * The path below `documents` of a full name.
 * @param {string} name
 */
export function pathOf(name) {
  return name.startsWith("projects/") ? name.split("/").slice(5).join("/") : name;
}

/**
 * The full name of a path; a full name stays.
 * @param {string} path
 * @param {string} database
 */
export function nameOf(path, database) {
  if (path.startsWith("projects/")) return path;
  const segments = path.replace(/^\//, "").split("/");
  if (segments.length % 2 || segments.some((segment) => segment === "")) throw new Error(
    "Write the path of a document: users/ada.",
  );
  return `${database}/documents/${segments.join("/")}`;
}

/**
 * The text of a reference that `nameOf` reads: its path, or its full name where the path means another document.
 * @param {string} name
 * @param {string} database
 */
function referenceText(name, database) {
  const path = pathOf(name);
  return nameOf(path, database) === name ? path : name;
}

/** @param {string} path */
export function lastSegment(path) { return path.slice(path.lastIndexOf("/") + 1); }

/** @param {string} path */
export function parentPath(path) { return path.includes("/") ? path.slice(0, path.lastIndexOf("/")) : ""; }

/**
 * A field path as masks write it.
 * @param {string[]} segments
 */
export function fieldPath(segments) {
  return segments.map((segment) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(segment)
    ? segment
    : "`" + segment.replace(/[\\`]/g, "\\$&") + "`").join(".");
}

// JSON lines (docs/json-lines.md). Numbers keep their texts: those of JavaScript lose digits of integers, and 3.0.

/** An integer. */
class Digits { constructor(/** @type {string} */ text) { this.text = text; } }

/** A double. */
class Real {
  constructor(/** @type {number} */ value) { this.value = value; }

  get text() { return doubleText(this.value); }
}

/**
 * Puts texts in the place of the numbers of a JSON text, which is valid.
 * @param {string} json
 * @param {(number: string) => string} replacement
 */
function replaceNumbers(json, replacement) {
  // Strings are tokens too, because there may be digits in them.
  const tokens = /"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g;
  return json.replace(tokens, (token) => token.startsWith("\"") ? token : replacement(token));
}

/**
 * Reads JSON whose numbers keep their texts, so that 3 and 3.0 differ.
 * @param {string} text
 */
export function readJSON(text) {
  try {
    JSON.parse(text);
  } catch (error) {
    throw new Error(`This is not JSON: ${/** @type {Error} */ (error).message}`);
  }
  /** @type {string[]} */
  const numbers = [];
  const indexed = replaceNumbers(text, (number) => String(numbers.push(number) - 1));
  return JSON.parse(indexed, (_, value) => {
    if (typeof value !== "number") return value;
    const number = numbers[value];
    return /[.eE]/.test(number) ? new Real(finite(number)) : new Digits(number);
  });
}

/**
 * Writes what `toLine` and `readJSON` make.
 * @param {any} json
 * @param {number} [indent]
 */
export function writeJSON(json, indent) {
  /** @type {string[]} */
  const numbers = [];
  const indexed = JSON.stringify(
    json,
    (_, member) => member instanceof Digits || member instanceof Real ? numbers.push(member.text) - 1 : member,
    indent,
  );
  return replaceNumbers(indexed, (index) => numbers[Number(index)]);
}

/**
 * A value in the form of JSON lines.
 * @param {Value} value
 * @returns {any}
 */
export function toLine(value) {
  switch (kindOf(value)) {
    case "string": return value.stringValue;
    case "integer": return new Digits(String(value.integerValue));
    case "double": return typeof value.doubleValue === "string"
      ? { $double: value.doubleValue }
      : new Real(value.doubleValue);
    case "boolean": return value.booleanValue;
    case "timestamp": return { $timestamp: value.timestampValue };
    case "reference": return { $reference: value.referenceValue };
    case "geo point": return {
      $geoPoint: [new Real(value.geoPointValue.latitude ?? 0), new Real(value.geoPointValue.longitude ?? 0)],
    };
    case "bytes": return { $bytes: value.bytesValue ?? "" };
    case "vector": return {
      $vector: (vectorOf(value) ?? []).map((number) => toLine(doubleValue(Number(numberText(number))))),
    };
    case "array": return elementsOf(value).map(toLine);
    case "map": {
      const fields = fieldsOf(value);
      const names = Object.keys(fields).sort();
      const map = Object.fromEntries(names.map((name) => [name, toLine(fields[name])]));
      return names.length === 1 && names[0].startsWith("$") ? { $map: map } : map;
    }
    default: return null;
  }
}

/**
 * A value from the form of JSON lines, as `readJSON` reads it.
 * @param {any} json
 * @param {string} database
 * @returns {Value}
 */
export function fromLine(json, database) {
  if (json === null) return { nullValue: null };
  if (typeof json === "boolean") return { booleanValue: json };
  if (typeof json === "string") return { stringValue: json };
  if (json instanceof Digits) return { integerValue: integerOf(json.text) };
  if (json instanceof Real) return doubleValue(json.value);
  if (Array.isArray(json)) return { arrayValue: { values: json.map((element) => fromLine(element, database)) } };
  const names = Object.keys(json);
  if (names.length === 1 && names[0].startsWith("$")) return specialOf(names[0], json[names[0]], database);
  return { mapValue: { fields: fieldsFromLine(json, database) } };
}

/**
 * @param {Record<string, any>} json
 * @param {string} database
 */
export function fieldsFromLine(json, database) {
  return Object.fromEntries(Object.entries(json).map(([name, member]) => [name, fromLine(member, database)]));
}

/**
 * @param {string} name
 * @param {any} json
 * @param {string} database
 * @returns {Value}
 */
function specialOf(name, json, database) {
  const numbers = () => {
    if (!Array.isArray(json)) throw new Error(`Write the numbers of ${name} as a JSON list.`);
    return json.map((member) => Number(
      member instanceof Digits ? member.text : member instanceof Real ? member.value : member?.$double ?? NaN,
    ));
  };
  switch (name) {
    case "$double": return doubleValue(doubleOf(String(json)));
    case "$timestamp": return { timestampValue: timestampOf(String(json)) };
    case "$reference": return { referenceValue: nameOf(String(json), database) };
    case "$geoPoint": return { geoPointValue: geoPointOf(numbers().join(",")) };
    case "$bytes": return { bytesValue: String(json) };
    case "$vector": return vectorValue(numbers());
    case "$map":
      if (json?.constructor !== Object) throw new Error("Write the members of $map as a JSON object.");
      return { mapValue: { fields: fieldsFromLine(json, database) } };
    default: throw new Error(`${name} is not a form of JSON lines.`);
  }
}

/**
 * A document as a line of JSON lines.
 * @param {Document} document
 * @param {string} path relative to the collection; empty for a result that is no document
 */
export function lineOf(document, path) {
  const fields = document.fields ?? {};
  const entries = Object.keys(fields).sort().map((name) => [name, toLine(fields[name])]);
  return writeJSON(Object.fromEntries([...(path ? [["__name__", path]] : []), ...entries]));
}

/**
 * Whether two values are equal, of any depth.
 * @param {any} a
 * @param {any} b
 * @returns {boolean}
 */
export function same(a, b) {
  if (a === b) return true;
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return false;
  const names = Object.keys(a);
  return names.length === Object.keys(b).length
    && names.every((name) => Object.hasOwn(b, name) && same(a[name], b[name]));
}
