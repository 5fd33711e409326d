// Draws measured values with their intervals, on an axis with any range.

import { svg } from "./elements.js";
import { axis, lined } from "./drawing.js";
import { exact } from "./text.js";

export function pathOf(points) {
  return points.length ? `M${points.map(([x, y]) => `${x.toFixed(1)},${y.toFixed(1)}`).join("L")}` : "";
}

// Ticks on the left, with horizontal grid lines.
export function levels({ from, to }, y, ticks, format) {
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", y, ticks, format);
  return [svg("path", { d: ticks.map((tick) => `M${from},${y(tick).toFixed(1)}H${to}`).join(""), ...lined("grid", 1) }),
    left];
}

export function range(from, to, step = 1) {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, k) => from + k * step);
}

// A value with its interval: a filled disc, or a circle in the background colour.
export function whisker(x, y, low, high, colour, filled, radius = 4) {
  return [
    svg("path", { d: pathOf([[x, low], [x, high]]), ...lined(colour, 1.5) }),
    svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius,
      style: `fill: var(--rb-${filled ? colour : "paper"}); stroke: var(--rb-${colour}); stroke-width: 2` }),
  ];
}

// Formats a difference with its sign.
export function apartText(value) {
  return `${value > 0 ? "+" : ""}${exact(value)}`;
}

// The step size, 1, 2 or 5 times a power of ten, that divides the given size into at most about `most` steps.
export function stepOf(size, most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(size, 0.02) / most));
  return [1, 2, 5, 10].find((factor) => factor * power * most >= size) * power;
}

export function signed(value) {
  return `${value > 0 ? "+" : ""}${Number(value.toPrecision(10))}`.replace("-", "−");
}
