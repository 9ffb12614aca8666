// Queries as people write them, the words of `hearth query`:
//
//     books --where 'year >= 1922' --where 'tags array-contains novel' --order-by year:desc --limit 10

import { fieldPath, fromLine, nameOf, readJSON } from "./values.js";

/**
 * @typedef {{field: string, operator: string, value: string}} Condition
 * @typedef {object} QueryWords
 * @property {string} collection path of a collection, or an id with `group`
 * @property {boolean} group
 * @property {Condition[]} conditions
 * @property {string} orderBy
 * @property {string} limit
 * @property {string} offset
 * @property {string} select
 * @property {boolean} count
 * @property {string[]} sums
 * @property {string[]} averages
 */

export const operators = {
  "==": "EQUAL", "!=": "NOT_EQUAL", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUAL", ">": "GREATER_THAN",
  ">=": "GREATER_THAN_OR_EQUAL",
  in: "IN", "not-in": "NOT_IN", "array-contains": "ARRAY_CONTAINS", "array-contains-any": "ARRAY_CONTAINS_ANY",
};
const listOperators = new Set(["in", "not-in", "array-contains-any"]);

/**
 * @param {string} [collection]
 * @returns {QueryWords}
 */
export function emptyWords(collection = "") {
  return {
    collection,
    group: false,
    conditions: [],
    orderBy: "",
    limit: "",
    offset: "",
    select: "",
    count: false,
    sums: [],
    averages: [],
  };
}

/**
 * The words of a line as a shell cuts them.
 * @param {string} text
 */
export function cut(text) {
  /** @type {string[]} */
  const words = [];
  let word = "";
  let isWord = false;
  for (let at = 0; at < text.length; at += 1) {
    const character = text[at];
    if (character === "'" || character === '"') {
      const end = closing(text, at);
      word += character === "'" ? text.slice(at + 1, end) : text.slice(at + 1, end).replace(/\\(["\\$`])/g, "$1");
      at = end;
      isWord = true;
    } else if (character === "\\" && at + 1 < text.length) {
      word += text[++at];
      isWord = true;
    } else if (/\s/.test(character)) {
      if (isWord) words.push(word);
      word = "";
      isWord = false;
    } else {
      word += character;
      isWord = true;
    }
  }
  if (isWord) words.push(word);
  return words;
}

/**
 * @param {string} text
 * @param {number} start of a quote
 */
function closing(text, start) {
  for (let at = start + 1; at < text.length; at += 1) {
    if (text[at] === "\\" && text[start] === '"') at += 1;
    else if (text[at] === text[start]) return at;
  }
  throw new Error("A quote is not closed.");
}

/**
 * Reads a query. Throws an Error that says what is wrong.
 * @param {string} text
 * @returns {QueryWords}
 */
export function read(text) {
  const words = cut(text);
  if (words[0] === "hearth") words.shift();
  if (words[0] === "query") words.shift();
  const query = emptyWords();
  while (words.length) {
    const word = /** @type {string} */ (words.shift());
    if (!word.startsWith("--")) {
      if (query.collection === "") query.collection = word.replace(/^\/|\/$/g, "");
      else query.conditions.push(readCondition(word));
      continue;
    }
    const [flag, given] = word.includes("=")
      ? [word.slice(0, word.indexOf("=")), word.slice(word.indexOf("=") + 1)]
      : [word, undefined];
    if (flag === "--group") { query.group = true; continue; }
    if (flag === "--count") { query.count = true; continue; }
    const value = given ?? words.shift();
    if (value === undefined) throw new Error(`${flag} needs a value.`);
    readFlag(query, flag, value);
  }
  if (query.collection === "") throw new Error("Name a collection first: books --where 'year >= 1922'.");
  return query;
}

/**
 * @param {QueryWords} query
 * @param {string} flag
 * @param {string} value
 */
function readFlag(query, flag, value) {
  switch (flag) {
    case "--where": query.conditions.push(readCondition(value)); break;
    case "--order-by": query.orderBy = value; break;
    case "--limit": query.limit = value; break;
    case "--offset": query.offset = value; break;
    case "--select": query.select = value; break;
    case "--sum": query.sums.push(value); break;
    case "--avg": query.averages.push(value); break;
    default: throw new Error(
      `There is no ${flag}: --where, --order-by, --limit, --offset, --select, --group, --count, --sum, --avg.`,
    );
  }
}

/**
 * @param {string} text `FIELD OPERATOR VALUE`
 * @returns {Condition}
 */
function readCondition(text) {
  const field = /^\s*((?:`(?:[^`\\]|\\.)*`|[^\s=!<>`])+)\s*/.source;
  const operator = /(==|!=|<=|>=|<|>|=|not-in\b|in\b|array-contains-any\b|array-contains\b)\s*(.*)$/.source;
  const found = new RegExp(field + operator, "s").exec(text);
  if (!found || found[3].trim() === "") throw new Error(
    `"${text}" is not a condition: write FIELD OPERATOR VALUE, such as 'year >= 1922'.`,
  );
  return { field: found[1], operator: found[2] === "=" ? "==" : found[2], value: found[3].trim() };
}

/**
 * The text of a query.
 * @param {QueryWords} query
 */
export function write(query) {
  const words = [quoted(query.collection)];
  if (query.group) words.push("--group");
  for (const { field, operator, value } of query.conditions) words.push(
    "--where", quoted(`${field} ${operator} ${value}`),
  );
  if (query.orderBy) words.push("--order-by", quoted(query.orderBy));
  if (query.limit) words.push("--limit", query.limit);
  if (query.offset) words.push("--offset", query.offset);
  if (query.select) words.push("--select", quoted(query.select));
  if (query.count) words.push("--count");
  for (const sum of query.sums) words.push("--sum", quoted(sum));
  for (const average of query.averages) words.push("--avg", quoted(average));
  return words.join(" ");
}

/** @param {string} word */
function quoted(word) {
  return /^[A-Za-z0-9_./:,@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}

// Messages.

/**
 * The request of a query.
 * @param {QueryWords} words
 * @param {string} database
 * @returns {{parent: string, query: any, aggregations: any[]}}
 */
export function compile(words, database) {
  const segments = words.collection.split("/");
  if (segments.some((segment) => segment === "")) throw new Error("A segment of the collection's path is empty.");
  if (words.group ? segments.length !== 1 : segments.length % 2 === 0) throw new Error(
    words.group
      ? "With --group name the id of collections, without slashes."
      : `${words.collection} is the path of a document: name a collection.`,
  );
  const collectionId = segments[segments.length - 1];
  const parent = `${database}/documents${segments.length > 1 ? "/" + segments.slice(0, -1).join("/") : ""}`;
  /** @type {any} */
  const query = { from: [{ collectionId, allDescendants: words.group }] };
  const filters = words.conditions.map((condition) => filterOf(condition, database, words));
  if (filters.length === 1) query.where = filters[0];
  if (filters.length > 1) query.where = { compositeFilter: { op: "AND", filters } };
  if (words.orderBy) query.orderBy = ordersOf(words.orderBy);
  if (words.limit) query.limit = wholeNumber("--limit", words.limit);
  if (words.offset) query.offset = wholeNumber("--offset", words.offset);
  if (words.select) query.select = {
    fields: splitFields(words.select).map((field) => ({ fieldPath: pathText(field) })),
  };
  /** @type {any[]} */
  const aggregations = [];
  if (words.count) aggregations.push({ alias: "count", count: {} });
  words.sums.forEach((field) => aggregations.push({
    alias: `sum ${field}`, sum: { field: { fieldPath: pathText(field) } },
  }));
  words.averages.forEach((field) => aggregations.push({
    alias: `avg ${field}`, avg: { field: { fieldPath: pathText(field) } },
  }));
  return { parent, query, aggregations };
}

/**
 * @param {string} flag
 * @param {string} text
 */
function wholeNumber(flag, text) {
  if (!/^\d{1,9}$/.test(text)) throw new Error(`${flag} needs a whole number.`);
  return Number(text);
}

/**
 * Fields with commas between, outside of backticks.
 * @param {string} text
 */
function splitFields(text) {
  return (text.match(/(?:`(?:[^`\\]|\\.)*`|[^,`])+/g) ?? []).map((part) => part.trim()).filter(Boolean);
}

/**
 * A field path; names with other characters than letters, digits and _ must be in backticks.
 * @param {string} text
 */
function pathText(text) {
  if (text.includes("`")) return text;
  return fieldPath(text.split("."));
}

/** @param {string} text */
function ordersOf(text) {
  return splitFields(text).map((part) => {
    const found = /^(.*?)(?:[:\s]\s*(asc|desc|ascending|descending))?$/i.exec(part);
    const direction = (found?.[2] ?? "asc").toLowerCase().startsWith("desc") ? "DESCENDING" : "ASCENDING";
    return { field: { fieldPath: pathText(/** @type {string} */ (found?.[1]).trim()) }, direction };
  });
}

/**
 * @param {Condition} condition
 * @param {string} database
 * @param {QueryWords} words
 */
function filterOf(condition, database, words) {
  const field = { fieldPath: pathText(condition.field) };
  const isList = listOperators.has(condition.operator);
  /** @type {any} */
  let value = isList ? listOf(condition.value, database) : valueOf(condition.value, database);
  if (condition.field === "__name__") value = namesOf(value, database, words);
  const unary = value.nullValue === null ? "NULL" : value.doubleValue === "NaN" ? "NAN" : null;
  if (unary && (condition.operator === "==" || condition.operator === "!=")) return {
    unaryFilter: { field, op: `IS_${condition.operator === "!=" ? "NOT_" : ""}${unary}` },
  };
  return { fieldFilter: { field, op: /** @type {any} */ (operators)[condition.operator], value } };
}

/**
 * @param {string} text
 * @param {string} database
 * @returns {import("./values.js").Value}
 */
function valueOf(text, database) {
  const isNumber = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/.test(text);
  if (["null", "true", "false"].includes(text) || /^["{[]/.test(text) || isNumber) {
    return fromLine(readJSON(text), database);
  }
  if (["NaN", "Infinity", "-Infinity"].includes(text)) return { doubleValue: text };
  if (text.startsWith("/")) return { referenceValue: nameOf(text, database) };
  if (/^\d{4}-\d\d-\d\dT\d\d:\d\d/.test(text)) return fromLine({ $timestamp: text }, database);
  return { stringValue: text };
}

/**
 * @param {string} text
 * @param {string} database
 */
function listOf(text, database) {
  if (text.startsWith("[")) return valueOf(text, database);
  return { arrayValue: { values: text.split(",").map((part) => valueOf(part.trim(), database)) } };
}

/**
 * What `__name__` is compared with: an id of the collection, or a path.
 * @param {any} value
 * @param {string} database
 * @param {QueryWords} words
 * @returns {any}
 */
function namesOf(value, database, words) {
  if (value.arrayValue) return {
    arrayValue: {
      values: value.arrayValue.values.map((/** @type {any} */ member) => namesOf(member, database, words)),
    },
  };
  if (value.integerValue !== undefined) value = { stringValue: String(value.integerValue) };
  if (value.stringValue === undefined) return value;
  const name = value.stringValue;
  return { referenceValue: nameOf(name.includes("/") ? name : `${words.collection}/${name}`, database) };
}
