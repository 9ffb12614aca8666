// Lines over time, drawn with SVG.

import { fill, h, vector } from "./ui.js";

const width = 330;
const height = 110;
const left = 54;
const bottom = 18;

/**
 * @typedef {{name: string, points: [number, number][]}} Series points are times in seconds and values
 */

/**
 * Draws series into an element.
 * @param {HTMLElement} place
 * @param {Series[]} series
 * @param {(value: number) => string} format
 */
export function draw(place, series, format) {
  const points = series.flatMap((one) => one.points);
  if (points.length < 2) return fill(place, h("p.chart-empty", {}, "Waiting for samples"));
  const times = points.map(([time]) => time);
  const [start, end] = [Math.min(...times), Math.max(...times)];
  const top = niceTop(Math.max(...points.map(([, value]) => value)));
  const x = (/** @type {number} */ time) => left + (time - start) / Math.max(end - start, 1) * (width - left - 4);
  const y = (/** @type {number} */ value) => 6 + (1 - value / top) * (height - bottom - 6);
  const latest = series.map((one) => `${one.name} ${format(one.points[one.points.length - 1]?.[1] ?? 0)}`).join(", ");
  const svg = vector(
    "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `Now: ${latest}`, class: "chart" },
  );
  const isFlat = points.every(([, value]) => value === 0);
  for (const share of isFlat ? [0] : [0, 0.5, 1]) {
    svg.append(vector("line", { x1: left, x2: width - 4, y1: y(top * share), y2: y(top * share), class: "grid" }));
    svg.append(
      vector(
        "text", { x: left - 6, y: y(top * share) + 3.5, class: "tick", "text-anchor": "end" }, format(top * share),
      ),
    );
  }
  for (const [time, anchor] of /** @type {[number, string][]} */ ([[start, "start"], [end, "end"]])) {
    svg.append(vector("text", { x: x(time), y: height - 4, class: "tick", "text-anchor": anchor }, clock(time)));
  }
  series.forEach((one, index) => {
    const place = (/** @type {[number, number]} */ [time, value]) => {
      return `${x(time).toFixed(1)} ${y(Math.min(value, top)).toFixed(1)}`;
    };
    const path = one.points.map((point, at) => `${at ? "L" : "M"}${place(point)}`).join("");
    const ends = [one.points[0], one.points[one.points.length - 1]];
    if (index === 0 && one.points.length > 1) svg.append(
      vector(
        "path",
        {
          d: `${path}L${x(ends[1][0]).toFixed(1)} ${y(0)}L${x(ends[0][0]).toFixed(1)} ${y(0)}Z`,
          class: "area",
        },
      ),
    );
    svg.append(vector("path", { d: path, class: `line line-${index}` }));
  });
  return fill(place, svg);
}

/** @param {number} seconds since 1970 */
function clock(seconds) { return new Date(seconds * 1000).toTimeString().slice(0, 8); }

/**
 * A round number that is not below a value.
 * @param {number} value
 */
function niceTop(value) {
  if (!(value > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(value));
  return /** @type {number} */ ([1, 2, 2.5, 5, 10].find((step) => step * power >= value)) * power;
}

/**
 * A box with a title, the values, and a place for the lines. The values are the present ones, or those of the time
 * under the pointer, or of the one that the arrow keys have chosen.
 * @param {string} title
 * @param {string[]} names
 */
export function chartBox(title, names) {
  const values = names.map((name, index) => h("span.legend", {},
    h(`i.swatch.swatch-${index}`, {}), names.length > 1 ? `${name} ` : "", h("b", {}, "–"),
  ));
  const moment = h("span.hint", { role: "status" });
  /** @type {Series[]} */
  let shown = [];
  let format = (/** @type {number} */ value) => String(value);
  /** The time that is looked at, in seconds; null is now. */
  let chosen = /** @type {number|null} */ (null);
  const place = h("div.chart-place", {
    tabindex: 0, role: "group", "aria-label": `${title}: the arrow keys go back in time`,
    onpointermove: (/** @type {PointerEvent} */ event) => choose(timeAt(place, shown, event.clientX)),
    onpointerleave: () => choose(null), onblur: () => choose(null),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!step || !shown[0]?.points.length) return;
      event.preventDefault();
      const points = shown[0].points;
      const at = chosen === null ? points.length - 1 : nearest(points, chosen);
      choose(points[Math.min(points.length - 1, Math.max(0, at + step))][0]);
    },
  });

  /** @param {number|null} time */
  function choose(time) {
    chosen = time;
    moment.textContent = time === null ? "" : clock(time);
    shown.forEach((one, index) => {
      const point = one.points[time === null ? one.points.length - 1 : nearest(one.points, time)];
      /** @type {HTMLElement} */ (values[index].querySelector("b")).textContent = point ? format(point[1]) : "–";
    });
    place.querySelector(".cross")?.remove();
    if (time !== null) place.querySelector("svg")?.append(cross(shown, time));
  }

  return {
    element: h("section.card.chart-card", { "aria-label": title },
      h("h3", {}, title, moment, h("span.legends", {}, values)), place,
    ),
    /**
     * @param {Series[]} series
     * @param {(value: number) => string} text
     */
    show(series, text) {
      [shown, format] = [series, text];
      draw(place, series, text);
      choose(chosen);
    },
  };
}

/**
 * The first and the last time of series, in seconds.
 * @param {Series[]} series
 */
function span(series) {
  const times = series.flatMap((one) => [one.points[0], one.points[one.points.length - 1]])
    .filter(Boolean).map(([time]) => time);
  return { start: Math.min(...times), end: Math.max(...times) };
}

/**
 * The time at a place of the screen; null without points.
 * @param {HTMLElement} place
 * @param {Series[]} series
 * @param {number} clientX
 */
function timeAt(place, series, clientX) {
  const svg = place.querySelector("svg");
  if (!svg || !series.some((one) => one.points.length)) return null;
  const box = svg.getBoundingClientRect();
  const { start, end } = span(series);
  const share = ((clientX - box.x) / box.width * width - left) / (width - left - 4);
  return start + Math.min(1, Math.max(0, share)) * (end - start);
}

/**
 * The index of the point that is nearest to a time.
 * @param {[number, number][]} points by time
 * @param {number} time
 */
function nearest(points, time) {
  let [low, high] = [0, points.length - 1];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] < time) low = middle + 1; else high = middle;
  }
  return low > 0 && time - points[low - 1][0] < points[low][0] - time ? low - 1 : low;
}

/**
 * The line at a time.
 * @param {Series[]} series
 * @param {number} time
 */
function cross(series, time) {
  const { start, end } = span(series);
  const x = left + (time - start) / Math.max(end - start, 1) * (width - left - 4);
  return vector("line", { x1: x, x2: x, y1: 6, y2: height - bottom, class: "cross" });
}
