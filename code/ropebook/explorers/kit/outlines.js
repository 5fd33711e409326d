// Curves that are blue above 0 and orange below, stored as outlines { at, low, high }. At each x in `at`, the outline
// extends from `low` to `high`. If both are the same list, the outline is a line.

import { evenEdges, minMaxBand } from "./rope.js";

const MOST_BUCKETS = 360; // for curves with more samples than pixels

// The outline of evenly spaced samples: a line, or a band if several samples share a pixel.
export function outlineOf(values, pixels) {
  const count = values.length;
  if (count <= pixels) {
    const line = Array.from(values);
    return { at: line.map((_, k) => k), low: line, high: line };
  }
  const edges = evenEdges(count, Math.min(pixels, MOST_BUCKETS));
  const band = minMaxBand(values, edges);
  return { at: band.low.map((_, b) => (edges[b] + edges[b + 1] - 1) / 2), ...band };
}

// Paints an outline of positive and negative values, blue above zero and orange below. `middle` is the coordinate of
// zero. `left` is the coordinate of x = 0, and `pitch` the width of one unit of x in pixels. `unit` is the height of
// one unit of a value in pixels.
export function paintOutline(context, { at, low, high }, [left, pitch], [middle, unit]) {
  const last = at.length - 1;
  const line = low === high;
  const across = at.map((place) => left + place * pitch);
  context.save();
  context.translate(0, middle); // the colours also meet at this height
  context.beginPath();
  context.moveTo(across[0], 0);
  for (let k = 0; k <= last; k += 1) context.lineTo(across[k], -unit * (line ? high[k] : Math.max(0, high[k])));
  context.lineTo(across[last], 0);
  for (let k = last; k >= 0 && !line; k -= 1) context.lineTo(across[k], -unit * Math.min(0, low[k]));
  const alpha = context.globalAlpha;
  context.globalAlpha = alpha * 0.25;
  context.fill();
  context.globalAlpha = alpha;
  context.beginPath();
  for (let k = 0; k <= last; k += 1) context.lineTo(across[k], -unit * high[k]);
  for (let k = last; k >= 0 && !line; k -= 1) context.lineTo(across[k], -unit * low[k]);
  context.stroke();
  if (!line) context.fill();
  context.restore();
}

// Sets the outlines' colours, with an abrupt change at 0.
export function setPaints(context, paints) {
  const signs = context.createLinearGradient(0, -1, 0, 1);
  for (const [at, name] of [[0, "1"], [0.5, "1"], [0.5, "2"], [1, "2"]]) signs.addColorStop(at, paints[name]);
  context.fillStyle = signs;
  context.strokeStyle = signs;
  context.lineJoin = "round";
}
