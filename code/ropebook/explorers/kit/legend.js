// A legend above a plot: the names of the lines, and their styles [colour, width, dashes].

import { svg } from "./elements.js";
import { lined, textWidth } from "./drawing.js";

export const LEGEND = 58; // top of the legend
export const LEGEND_ROW = 20;

// The attribute that gives a line this style.
export function styled([colour, width, dashes]) {
  return lined(colour, width, `stroke-linejoin: round; ${dashes && `stroke-dasharray: ${dashes}`}`);
}

// The positions of the items { name, look, value }, with as many items per row as fit. `value` is written in bold after
// the name.
function placed(items, width) {
  let [x, row] = [0, 0];
  return items.map(({ name, look, value }) => {
    const needs = 36 + textWidth(name, 12) + (value ? 6 + textWidth(value, 12, 600) : 0);
    if (x && x + needs > width) [x, row] = [0, row + 1];
    const found = { name, look, value, x, row };
    x += needs + 22;
    return found;
  });
}

// The number of rows that the items need.
export function legendRows(items, width) {
  return items.length ? placed(items, width).at(-1).row + 1 : 0;
}

export function legend(items, width) {
  return placed(items, width).flatMap(({ name, look, value, x, row }) => {
    const y = LEGEND + row * LEGEND_ROW;
    return [svg("path", { d: `M${x + 2},${y - 4}h26`, ...styled(look) }),
      svg("text", { x: x + 36, y, "font-size": 12 }, name,
        ...(value ? [svg("tspan", { "font-weight": 600, dx: 6 }, value)] : []))];
  });
}
