// Drawing tools shared by the figures: canvas, scales, axes, paths.

import { mix } from "./colours.js";
import { redrawn, svg } from "./elements.js";
import { hundredths } from "./rope.js";

// A stage narrower than this, in px, is laid out as on a phone.
export const NARROW = 520;

// Resizes the canvas to width × height CSS pixels, and keeps it sharp on high-density screens. Returns its context,
// cleared and with default settings. (The canvas is reused if its size stays the same.)
export function fitCanvas(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  const size = { width: Math.round(width * density), height: Math.round(height * density) };
  const context = canvas.getContext("2d");
  if (canvas.width === size.width && canvas.height === size.height) context.reset();
  else Object.assign(canvas, size);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}

// Paints an image of columns × rows cells, stretched to fill a rectangle of the canvas. levelOf(column, row), from 0 to
// 1, blends the two colours.
let unscaled;

export function paintCells(context, /** @type {number[]} */ [x, y, width, height], columns, rows, colours, levelOf) {
  const palette = Array.from({ length: 256 }, (_, level) => [...mix(colours[0], colours[1], level / 255), 255]);
  const image = new ImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const colour = palette[Math.round(255 * levelOf(column, row))];
      for (let channel = 0; channel < 4; channel += 1, at += 1) image.data[at] = colour[channel];
    }
  }
  unscaled ??= new OffscreenCanvas(columns, rows);
  Object.assign(unscaled, { width: columns, height: rows });
  unscaled.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(unscaled, x, y, width, height);
}

const widths = new Map();

let ruler;

export function textWidth(text, size, weight = 400) {
  const font = `${weight} ${size}px system-ui, sans-serif`;
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    ruler ??= document.createElement("canvas").getContext("2d");
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

// The first of the texts that is no wider than the room, or the last one.
export function fitting(texts, room, size = 12, weight = 400) {
  return texts.find((text) => textWidth(text, size, weight) <= room) ?? texts.at(-1);
}

// Returns a function that maps a value to a coordinate, on a linear or a logarithmic axis.
export function scale(/** @type {number[]} */ [from, to], /** @type {number[]} */ [start, end], log = false) {
  const at = log ? (value) => Math.log(value / from) / Math.log(to / from) : (value) => (value - from) / (to - from);
  return (value) => start + (end - start) * at(value);
}

// A title with a note below it. The note has one or more parts, and says what is shown.
export function titled(x, y, title, ...note) {
  return [svg("text", { x, y: y + 14, "font-size": 14, "font-weight": 600 }, title),
    svg("text", { x, y: y + 33, "font-size": 12, class: "rb-quiet" }, ...note)];
}

// Half the width of a framed label. Framed labels mark things that can be dragged.
export function pillHalf(text) {
  return textWidth(text, 13, 600) / 2 + 8;
}

// Covers a part of the picture that would give the answer away. The cover is visible while a question that hides curves
// waits for the reader to try it.
export function cover([left, top, right, bottom]) {
  return svg("rect", { x: left, y: top, width: right - left, height: bottom - top, class: "rb-covers",
    visibility: "hidden" });
}

export function pill(middle, y, text) {
  const half = pillHalf(text);
  return [
    svg("rect", { x: middle - half, y: y - 11, width: 2 * half, height: 22, rx: 11,
      style: "fill: var(--rb-paper); stroke: var(--rb-ink); stroke-width: 1.5" }),
    svg("text", { x: middle, y: y + 4.5, "font-size": 13, "font-weight": 600, "text-anchor": "middle" }, text),
  ];
}

// An axis of pair indices along the bottom of a plot, with the pairs at x(0), x(1), …
export function pairAxis(x, pairs, /** @type {number[]} */ [from, to], floor) {
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  const step = niceStep(Math.max(1, pairs - 1), (to - from) / 60);
  axis(bottom, "bottom", x, Array.from({ length: Math.ceil(pairs / step) }, (_, k) => k * step));
  return [bottom, svg("text", {
    x: (from + to) / 2, y: floor + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
  }, "pair i")];
}

// Packs `count` squares into an area [left, top, width, height]. They are as large as possible but at most `most` wide,
// in rows of equal length with a gap below each row. Returns the size of a square, and a function that returns the
// centre of the i-th one.
export function packCells(count, [left, top, width, height], gap, most = 96) {
  let cell = Math.min(most, width);
  const rowsFor = (size) => Math.ceil(count / Math.floor(width / size));
  while (cell > 1 && rowsFor(cell) * (cell + gap) > height) cell -= 1;
  const columns = Math.ceil(count / rowsFor(cell));
  const pitch = Math.min(cell * 1.25, width / columns);
  const centre = (i) => [left + (i % columns + 0.5) * pitch,
    top + (Math.floor(i / columns) + 0.5) * cell + Math.floor(i / columns) * gap];
  return { cell, centre };
}

// The style of an SVG text in the theme colour with this name.
export function inColour(name) {
  return { style: `fill: var(--rb-${name})` };
}

// An outline in the colour of the paper, which keeps a text readable where it crosses a line.
export const OUTLINED = {
  "stroke-width": 4, "stroke-linejoin": "round", "paint-order": "stroke", stroke: "var(--rb-paper)",
};

// The style attribute of a line in the theme colour with this name. `more` is additional CSS.
export function lined(colour, width, more = "") {
  return { style: `fill: none; stroke: var(--rb-${colour}); stroke-width: ${width}; stroke-linecap: round; ${more}` };
}

// The path of an arrow with an open head, from one point to another. Short arrows have a smaller head.
export function arrowPath(/** @type {number[]} */ [x1, y1], /** @type {number[]} */ [x2, y2], head = 10) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const length = Math.hypot(dx, dy);
  if (length === 0) return "";
  const size = Math.min(head, length / 2) / length;
  const side = (turn) => {
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    return `${hundredths(x2 - size * (cos * dx - sin * dy))},${hundredths(y2 - size * (sin * dx + cos * dy))}`;
  };
  const tip = `${hundredths(x2)},${hundredths(y2)}`;
  return `M${hundredths(x1)},${hundredths(y1)}L${tip}M${side(0.45)}L${tip}L${side(-0.45)}`;
}

// The path of a full circle.
export function circlePath(/** @type {number[]} */ [x, y], radius) {
  const [r, across] = [hundredths(radius), hundredths(2 * radius)];
  return `M${hundredths(x - radius)},${hundredths(y)}a${r},${r} 0 1 0 ${across},0a${r},${r} 0 1 0 -${across},0`;
}

// The smallest step size that divides the range into at most `most` steps. It is 1, 2 or 5 times a power of ten, and at
// least 1.
export function niceStep(range, most) {
  const power = 10 ** Math.floor(Math.log10(range / most));
  return Math.max(1, [1, 2, 5, 10].find((factor) => factor * power * most >= range) * power);
}

// The axis levels for a range that includes 0 and all values. The range is a whole number of steps, so that the axis
// stays the same if the values change only slightly.
export function levelsOf(values) {
  const [least, greatest] = [Math.min(0, ...values), Math.max(0, ...values)];
  const step = niceStep(greatest - least || 1, 4);
  const [from, to] = [Math.floor(least / step), Math.ceil(greatest / step)];
  return Array.from({ length: Math.max(1, to - from) + 1 }, (_, k) => (from + k) * step);
}

/** @typedef {(value: any) => string} Format */

// Draws tick marks and numbers along the bottom or the left, in their own group, which is placed at the axis.
export function axis(group, side, place, ticks, /** @type {Format} */ format = String) {
  redrawn(group, () => ticks.map((tick) => {
    const at = place(tick);
    const bottom = side === "bottom";
    const mark = bottom ? { x1: at, x2: at, y1: 0, y2: 5 } : { x1: -5, x2: 0, y1: at, y2: at };
    const where = bottom ? { x: at, y: 19, "text-anchor": "middle" } : { x: -9, y: at + 4, "text-anchor": "end" };
    return svg("g", {}, svg("line", { ...mark, style: "stroke: var(--rb-muted)" }),
      svg("text", { ...where, "font-size": 12, class: "rb-quiet" }, format(tick)));
  }));
}

// The path around a band that extends from low[b] to high[b] at xs[b]. If the two are equal, the band is only a line,
// so it also needs a stroke.
export function bandPath(xs, low, high) {
  const there = xs.map((x, b) => `${hundredths(x)},${hundredths(high[b])}`);
  const back = xs.map((x, b) => `${hundredths(x)},${hundredths(low[b])}`).reverse();
  return `M${there.join("L")}L${back.join("L")}Z`;
}
