// Curves that are blue above 0 and orange below, as outlines { at, low, high }: how far down and up the curve comes at
// each place of `at`, a number. Where both are one list, it is a line.

import { evenEdges, minMaxBand } from "./rope.js";

const MOST_BUCKETS = 360; // of curves with more samples than pixels

// Of samples at even distances: a line, or where samples share a pixel a band.
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

// An outline around the height `middle`: blue above, orange below. Its places are multiples of `pitch` pixels from
// `left` on, its values of `unit` pixels.
export function paintOutline(context, { at, low, high }, [left, pitch], [middle, unit]) {
  const last = at.length - 1;
  const line = low === high;
  const across = at.map((place) => left + place * pitch);
  context.save();
  context.translate(0, middle); // where the colours meet, too
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

// The look of the outlines: a step from one colour to the other at 0.
export function setPaints(context, paints) {
  const signs = context.createLinearGradient(0, -1, 0, 1);
  for (const [at, name] of [[0, "1"], [0.5, "1"], [0.5, "2"], [1, "2"]]) signs.addColorStop(at, paints[name]);
  context.fillStyle = signs;
  context.strokeStyle = signs;
  context.lineJoin = "round";
}
