// Lists of any length: only the rows that are seen are elements.

import { h } from "./ui.js";

/** Rows above and below the visible ones. */
const margin = 8;

/**
 * @typedef {object} RowOptions
 * @property {number} rowHeight in pixels
 * @property {string} label for screen readers
 * @property {(index: number) => HTMLElement} render
 * @property {(start: number, end: number) => void} [range] told of the rows that are shown
 * @property {(index: number) => void} [choose] Enter, a click
 */

export class RowList {
  /** @param {RowOptions} options */
  constructor(options) {
    this.options = options;
    this.count = 0;
    this.active = -1;
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    this.inner = h("div.rows-inner", { role: "presentation" });
    this.element = h("div.rows", {
      tabindex: 0,
      role: "listbox",
      "aria-label": options.label,
      onscroll: () => this.#schedule(),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
    }, this.inner);
    this.isScheduled = false;
    new ResizeObserver(() => this.#schedule()).observe(this.element);
  }

  /** @param {number} count */
  setCount(count) {
    this.count = count;
    this.inner.style.height = `${count * this.options.rowHeight}px`;
    this.#schedule();
  }

  /** Makes all rows again. */
  refresh() {
    for (const row of this.shown.values()) row.remove();
    this.shown.clear();
    this.#schedule();
  }

  #schedule() {
    if (this.isScheduled) return;
    this.isScheduled = true;
    requestAnimationFrame(() => { this.isScheduled = false; this.#layOut(); });
  }

  #layOut() {
    const { rowHeight } = this.options;
    const { scrollTop, clientHeight } = this.element;
    const start = Math.max(0, Math.floor(scrollTop / rowHeight) - margin);
    const end = Math.min(this.count, Math.ceil((scrollTop + clientHeight) / rowHeight) + margin);
    for (const [index, row] of this.shown) {
      if (index < start || index >= end) { row.remove(); this.shown.delete(index); }
    }
    for (let index = start; index < end; index += 1) if (!this.shown.has(index)) this.#show(index);
    this.options.range?.(start, end);
  }

  /** @param {number} index */
  #show(index) {
    const row = this.options.render(index);
    row.style.transform = `translateY(${index * this.options.rowHeight}px)`;
    row.id ||= `row-${Math.random().toString(36).slice(2)}`;
    row.setAttribute("aria-setsize", String(this.count));
    row.setAttribute("aria-posinset", String(index + 1));
    if (index === this.active) row.classList.add("active");
    row.addEventListener("click", () => { this.setActive(index); this.options.choose?.(index); });
    this.shown.set(index, row);
    this.inner.append(row);
  }

  /** @param {number} index */
  setActive(index) {
    this.shown.get(this.active)?.classList.remove("active");
    this.active = index;
    const row = this.shown.get(index);
    row?.classList.add("active");
    if (row) this.element.setAttribute("aria-activedescendant", row.id);
  }

  /**
   * Scrolls so that a row is seen.
   * @param {number} index
   */
  reveal(index) {
    const { rowHeight } = this.options;
    const { scrollTop, clientHeight } = this.element;
    const [top, bottom] = [index * rowHeight, (index + 1) * rowHeight];
    if (top < scrollTop) this.element.scrollTop = top;
    else if (bottom > scrollTop + clientHeight) this.element.scrollTop = bottom - clientHeight;
    this.#layOut();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / this.options.rowHeight) - 1);
    const target = {
      ArrowDown: this.active + 1,
      ArrowUp: this.active - 1,
      Home: 0,
      End: this.count - 1,
      PageDown: this.active + page,
      PageUp: this.active - page,
    }[event.key];
    if (target !== undefined && this.count) {
      const index = Math.min(this.count - 1, Math.max(0, target));
      this.reveal(index);
      this.setActive(index);
      event.preventDefault();
    } else if (event.key === "Enter" && this.active >= 0) {
      this.options.choose?.(this.active);
      event.preventDefault();
    }
  }
}
