// Places the name of each curve beside it.

import { svg } from "./elements.js";
import { inColour, OUTLINED, textWidth } from "./drawing.js";

const SIZE = 12;
const HIGH = 15; // the height of a line of text
const GAP = 4; // the distance between a name and its curve
const STEP = 4; // the distance between the places that are tried
const ASIDE = 3; // the distance, in steps, between a name and a steep curve beside it
const NEAR = 12; // within this distance, a name could be mistaken for that of another curve
// The costs of placing a name: for each point of a curve that the name hides, for each point of another curve nearby,
// for each other name that is covered, for each upright line that the name crosses, and for each pixel by which the
// named curve rises or falls along the name.
const [HIDES, NEARS, COVERS, CROSSES, SLOPES] = [30, 2, 1000, 25, 0.2];

// The heights of a curve every STEP pixels from `left` to `right`. A height is null where the curve isn't drawn.
function sampled(points, left, right) {
  let k = 0;
  return Array.from({ length: Math.floor((right - left) / STEP) + 1 }, (_, at) => {
    const x = left + at * STEP;
    while (k < points.length - 2 && points[k + 1][0] < x) k += 1;
    if (points.length < 2 || x < points[0][0] || x > points.at(-1)[0]) return null;
    const [[x1, y1], [x2, y2]] = [points[k], points[k + 1]];
    return y1 + ((y2 - y1) * (x - x1)) / (x2 - x1 || 1);
  });
}

// The best place for each name within the area [left, top, right, bottom], as { x, y, width }. It is above, below or
// beside its own curve, and as far to the right as possible without hiding a curve or a name. Curves are { name, points
// }, with points from left to right. The place is null for a curve without a name or without room for it. `taken`
// contains the places of other texts in the picture; their y is the baseline. `uprights` contains the positions of
// upright lines.
export function namePlaces(curves, room, taken = [], /** @type {number[]} */ uprights = []) {
  const [left, top, right, bottom] = room;
  const lines = curves.map(({ points }) => sampled(points, left, right));
  const placed = [...taken];
  return curves.map(({ name }, own) => {
    const width = textWidth(name, SIZE, 600);
    const cells = Math.ceil(width / STEP);
    let best = null;
    if (!name) return best;
    for (let start = 0; start + cells < lines[own].length; start += 1) {
      const over = lines.map((line) => line.slice(start, start + cells + 1).filter((y) => y !== null));
      const [high, low] = [Math.min(...over[own]), Math.max(...over[own])];
      const beside = [start - ASIDE, start + cells + ASIDE].map((at) => (lines[own][at] ?? NaN) + 4).filter(isFinite);
      const heights = [...(over[own].length > cells ? [high - GAP, low + GAP + HIGH - 3] : []), ...beside];
      for (const [k, y] of heights.entries()) {
        const [from, to] = [y - HIGH + 3, y + 3];
        if (from < top || to > bottom) continue;
        const x = left + start * STEP;
        const within = (some, more) => some.flat().filter((at) => at > from - more && at < to + more).length;
        const clash = placed.filter((other) => x < other.x + other.width + 8 && other.x < x + width + 8
          && Math.abs(y - other.y) < 1.6 * HIGH).length;
        const crossed = uprights.filter((at) => at > x - 4 && at < x + width + 4).length;
        const cost = CROSSES * crossed + HIDES * within(over, 2)
          + NEARS * within(over.toSpliced(own, 1), NEAR) + COVERS * clash
          + (k < heights.length - beside.length ? (low - high) * SLOPES : 0) - start * 0.05;
        if (!best || cost < best.cost) best = { x, y, width, cost };
      }
    }
    if (best) placed.push(best);
    return best;
  });
}

// The names in their curves' colours. `more` contains further attributes for a curve's name.
export function named(curves, room, taken, uprights) {
  return namePlaces(curves, room, taken, uprights).flatMap((place, k) => (place ? [svg("text", {
    x: place.x.toFixed(1), y: place.y.toFixed(1), "font-size": SIZE, "font-weight": 600, ...inColour(curves[k].look[0]),
    ...OUTLINED, ...curves[k].more,
  }, curves[k].name)] : []));
}
