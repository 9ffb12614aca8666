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
    const path = one.points.map(([time, value], at) => `${at ? "L" : "M"}${x(time).toFixed(1)} ${y(Math.min(value, top)).toFixed(1)}`).join("");
    if (index === 0 && one.points.length > 1) svg.append(
      vector(
        "path",
        {
          d: `${path}L${x(one.points[one.points.length - 1][0]).toFixed(1)} ${y(0)}L${x(one.points[0][0]).toFixed(1)} ${y(0)}Z`,
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
 * A box with a title, the present values, and a place for the lines.
 * @param {string} title
 * @param {string[]} names
 */
export function chartBox(title, names) {
  const values = names.map((name, index) => h("span.legend", {},
    h(`i.swatch.swatch-${index}`, {}), names.length > 1 ? `${name} ` : "", h("b", {}, "–"),
  ));
  const place = h("div.chart-place", {});
  return { element: h("section.card.chart-card", { "aria-label": title },
    h("h3", {}, title, h("span.legends", {}, values)), place,
  ),
    /**
     * @param {Series[]} series
     * @param {(value: number) => string} format
     */
    show(series, format) {
      draw(place, series, format);
      series.forEach((one, index) => {
        /** @type {HTMLElement} */ (values[index].querySelector("b")).textContent = one.points.length ? format(
          one.points[one.points.length - 1][1],
        ) : "–";
      });
    } };
}
