// A query and a key move through a text at a fixed distance, with RoPE and with an added sinusoidal encoding.

import { dials, SHIFTS } from "./lock.py";
import { cosSinGrid, dot, fourierSum, hundredths, invFreq, lastCall, normals, sinusoidalEncoding } from "./kit/rope.js";
import { allOf, exact, grouped, lowered, tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import {
  arrowPath, axis, circlePath, fitting, inColour, levelsOf, lined, niceStep, OUTLINED, scale, titled,
} from "./kit/drawing.js";
import { across } from "./kit/hand.js";
import { stepButtons } from "./kit/knobs.js";
import { explorer } from "./kit/mount.js";
import { panels } from "./kit/panels.js";
import { evenly, play } from "./kit/play.js";

const lastVectors = lastCall((dim, draw) => {
  return { q: normals(`lock query ${draw}`, dim), k: normals(`lock key ${draw}`, dim) };
});

// R_m x
function rotate(x, position, theta) {
  return x.map((value, entry) => {
    const angle = position * theta[entry >> 1];
    return entry % 2 ? x[entry - 1] * Math.sin(angle) + value * Math.cos(angle)
      : value * Math.cos(angle) - x[entry + 1] * Math.sin(angle);
  });
}

// x + PE_m
function addedTo(x, position, dim, base) {
  const code = sinusoidalEncoding(position, dim, base);
  return x.map((value, entry) => value + code[entry]);
}

// ⟨R_{m+t} q, R_{n+t} k⟩ for every shift t. Both vectors are rotated from scratch at each shift.
function ropeScores(q, k, m, n, theta) {
  const total = new Float64Array(SHIFTS);
  const [atM, atN] = [0, 1].map(() => ({ cos: new Float64Array(SHIFTS), sin: new Float64Array(SHIFTS) }));
  theta.forEach((one, i) => {
    cosSinGrid(one, m, 1, SHIFTS, atM.cos, atM.sin);
    cosSinGrid(one, n, 1, SHIFTS, atN.cos, atN.sin);
    const [qx, qy, kx, ky] = [q[2 * i], q[2 * i + 1], k[2 * i], k[2 * i + 1]];
    for (let t = 0; t < SHIFTS; t += 1) {
      total[t] += (qx * atM.cos[t] - qy * atM.sin[t]) * (kx * atN.cos[t] - ky * atN.sin[t])
        + (qx * atM.sin[t] + qy * atM.cos[t]) * (kx * atN.sin[t] + ky * atN.cos[t]);
    }
  });
  return total;
}

// ⟨q + PE_{m+t}, k + PE_{n+t}⟩ for every shift t. It has four terms. q·k and PE·PE don't change with the shift. In
// q·PE_{n+t} and k·PE_{m+t}, each pair contributes a wave: x sin θ(n + t) + y cos θ(n + t) is (x sin θn + y cos θn) cos
// θt and so on.
function addedScores(q, k, m, n, dim, base) {
  const theta = invFreq(dim, base);
  const [atM, atN] = [sinusoidalEncoding(m, dim, base), sinusoidalEncoding(n, dim, base)];
  const a = theta.map((_, i) => dot([q[2 * i], q[2 * i + 1], k[2 * i], k[2 * i + 1]],
    [atN[2 * i], atN[2 * i + 1], atM[2 * i], atM[2 * i + 1]]));
  const b = theta.map((_, i) => dot([q[2 * i], -q[2 * i + 1], k[2 * i], -k[2 * i + 1]],
    [atN[2 * i + 1], atN[2 * i], atM[2 * i + 1], atM[2 * i]]));
  const level = dot(q, k) + dot(atM, atN);
  return fourierSum(theta, a, b, 0, SHIFTS).map((value) => value + level);
}

const lastCurves = lastCall((m, n, dim, base, draw) => {
  const { q, k } = lastVectors(dim, draw);
  return {
    ropeCurve: ropeScores(q, k, m, n, invFreq(dim, base)),
    addedCurve: addedScores(q, k, m, n, dim, base),
  };
});

function compute({ m, n, shift, base, dim, pair, draw }) {
  const { q, k } = lastVectors(dim, draw);
  const theta = invFreq(dim, base);
  const [turnedQ, turnedK] = [rotate(q, m + shift, theta), rotate(k, n + shift, theta)];
  const [summedQ, summedK] = [addedTo(q, m + shift, dim, base), addedTo(k, n + shift, dim, base)];
  const ofPair = (x) => x.subarray(2 * pair, 2 * pair + 2);
  return {
    rope: dot(turnedQ, turnedK), // scores over all pairs at the shift; names in …Home: at shift 0
    ropeHome: dot(rotate(q, m, theta), rotate(k, n, theta)),
    added: dot(summedQ, summedK),
    addedHome: dot(addedTo(q, m, dim, base), addedTo(k, n, dim, base)),
    ...lastCurves(m, n, dim, base, draw),
    bare: [...ofPair(q), ...ofPair(k)], // x and y of the query, then x and y of the key
    turned: [...ofPair(turnedQ), ...ofPair(turnedK)],
    summed: [...ofPair(summedQ), ...ofPair(summedK)],
  };
}

// ---- On the page ----

const TOP = 48; // top of the planes
const UNDER = 8; // space below the planes
const INK = { query: "3", key: "4" };
const PACE = 12; // speed in positions per second

function build(stage, app) {
  const shown = panels(app, ["Score", "One pair"], { least: 500 });
  play(app, {
    advance: evenly("shift", () => SHIFTS - 1, () => PACE),
    again: { shift: 0 },
    step: 1 / PACE,
  });
  const steps = stepButtons(app, "shift", "position", () => [0, SHIFTS - 1]);
  app.tools.append(steps.row);
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const [turned, summed] = [buildPlane(), buildPlane()];
  const curves = buildCurves();
  picture.append(turned.group, summed.group, curves.group);
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, handle));
  let area; // the area of the curves
  const grip = across(app, handle, dials.find(({ trait }) => trait === "shift"), {
    label: "Shift of query and key",
    ends: () => [area[0], area[0] + area[2]],
  });
  return ({ data, values, width, most }) => {
    steps.show();
    const only = shown(width, most);
    const wide = only === null;
    const right = Math.floor(width / 2) + (wide ? 20 : 6);
    const size = Math.min(wide ? 262 : 320, width - right, most - TOP - UNDER - (wide ? 52 + 140 : 0));
    const { bare } = data;
    const reaches = [turnedReach(bare), summedReach(bare)];
    const sides = reaches.flatMap((one) => [one.right - one.left, one.up - one.down]);
    const unit = (size - 44) / Math.max(...sides);
    const top = wide ? TOP + size + UNDER + 52 : 52;
    const height = wide ? Math.min(most, top + 184) : most;
    area = [46, top, width - 54, height - top - 44];
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    for (const plane of [turned, summed]) put(plane.group, { display: wide || only === 1 ? "inline" : "none" });
    put(curves.group, { display: wide || only === 0 ? "inline" : "none" });
    handle.hidden = only === 1;
    if (wide || only === 1) {
      drawPlane(turned, [0, size, unit], reaches[0], bare, data.turned, values, false);
      drawPlane(summed, [right, size, unit], reaches[1], bare, data.summed, values, true);
    }
    if (wide || only === 0) {
      drawCurves(curves, area, data, values);
      grip([area[0] - 8, area[1] - 8, area[2] + 16, area[3] + 16]);
    }
  };
}

// The coordinate range of a pair's tips. If the pair is rotated, the tips are on circles around the origin. If an
// encoding is added, they are on unit circles around the original tips. (The origin is always visible.)
function turnedReach(bare) {
  const radius = Math.max(Math.hypot(bare[0], bare[1]), Math.hypot(bare[2], bare[3]));
  return { left: -radius, right: radius, down: -radius, up: radius };
}

function summedReach([qx, qy, kx, ky]) {
  return { left: Math.min(0, qx - 1, kx - 1), right: Math.max(0, qx + 1, kx + 1), down: Math.min(0, qy - 1, ky - 1),
    up: Math.max(0, qy + 1, ky + 1) };
}

function buildPlane() {
  const plane = {
    titles: svg("g"),
    axes: svg("path", lined("grid", 1)),
    circles: svg("path", lined("grid", 1.5)),
    sector: svg("path", { style: "fill: var(--rb-ink); opacity: 0.08" }),
    arc: svg("path", lined("ink", 1.5)),
    bareQuery: svg("path", lined(INK.query, 2, "opacity: 0.4")),
    bareKey: svg("path", lined(INK.key, 2, "opacity: 0.4")),
    codes: svg("path", lined("muted", 1.5)),
    query: svg("path", lined(INK.query, 3)),
    key: svg("path", lined(INK.key, 3)),
    names: svg("g", { "font-size": 14, "font-weight": 700, "text-anchor": "middle", ...OUTLINED }),
  };
  return { ...plane, group: svg("g", {}, ...Object.values(plane)) };
}

// Draws the pair's query and key at the shift, on top of the same vectors without a position. Circles show all points
// that the tips can reach when an encoding is added, or when the vectors are rotated.
function drawPlane(plane, [left, size, unit], reach, bare, now, { m, n, shift, pair }, summed) {
  const centre = [left + size / 2 - (unit * (reach.left + reach.right)) / 2,
    TOP + size / 2 + (unit * (reach.down + reach.up)) / 2];
  const place = (x, y) => [centre[0] + x * unit, centre[1] - y * unit];
  const halves = (both) => [both.slice(0, 2), both.slice(2)];
  const [[bareQuery, bareKey], [query, key]] = [halves(bare), halves(now)];
  const [atM, atN] = [lowered(m + shift), lowered(n + shift)];
  redrawn(plane.titles, () => (summed
    ? titled(left, 0, svg("tspan", inColour("muted"), `Sinusoidal, pair ${pair}`),
      `q + PE${atM} and k + PE${atN}`)
    : titled(left, 0, svg("tspan", inColour("1"), `RoPE, pair ${pair}`), `R${atM}q and R${atN}k`)));
  put(plane.axes, { d: `M${left + 8},${centre[1]}h${size - 16}M${centre[0]},${TOP + 8}v${size - 16}` });
  put(plane.circles, { d: summed ? circlePath(place(...bareQuery), unit) + circlePath(place(...bareKey), unit)
    : circlePath(centre, Math.hypot(...query) * unit) + circlePath(centre, Math.hypot(...key) * unit) });
  put(plane.bareQuery, { d: arrowPath(centre, place(...bareQuery), 9) });
  put(plane.bareKey, { d: arrowPath(centre, place(...bareKey), 9) });
  const code = (tail, tip) => `M${place(...tail)}L${place(...tip)}`;
  put(plane.codes, { d: summed ? code(bareQuery, query) + code(bareKey, key) : "" });
  put(plane.query, { d: arrowPath(centre, place(...query), 11) });
  put(plane.key, { d: arrowPath(centre, place(...key), 11) });

  const between = angleBetween(query, key);
  const from = Math.atan2(key[1], key[0]);
  const bow = Math.min(size * 0.14, 34);
  const onBow = (angle) => {
    return `${(centre[0] + bow * Math.cos(angle)).toFixed(2)},${(centre[1] - bow * Math.sin(angle)).toFixed(2)}`;
  };
  const bend = `${onBow(from)}A${bow},${bow} 0 0 ${between > 0 ? 0 : 1} ${onBow(from + between)}`;
  put(plane.arc, { d: `M${bend}` });
  put(plane.sector, { d: `M${centre.join(",")}L${bend}Z` });

  const spots = [["q", query, INK.query], ["k", key, INK.key]].map(([name, [x, y], paint]) => {
    const length = Math.hypot(x, y) || 1;
    const [tipX, tipY] = place(x, y);
    return [name, tipX + (12 * x) / length, tipY - (12 * y) / length, paint];
  });
  if (Math.hypot(spots[0][1] - spots[1][1], spots[0][2] - spots[1][2]) < 16) { // write one name above the other
    const lower = spots[0][2] > spots[1][2] ? 0 : 1;
    spots[lower][2] = spots[1 - lower][2] + 16;
  }
  redrawn(plane.names, () => spots.map(([name, x, y, paint]) => {
    return svg("text", { x, y: y + 5, ...inColour(paint) }, name);
  }));
}

// The angle from the key to the query, counter-clockwise, between −π and π.
function angleBetween([qx, qy], [kx, ky]) {
  return Math.atan2(kx * qy - ky * qx, kx * qx + ky * qy);
}

function buildCurves() {
  const curves = {
    titles: svg("g"),
    levels: svg("path", lined("grid", 1)),
    up: svg("g"),
    across: svg("g"),
    name: svg("text", { "font-size": 12, "text-anchor": "middle", class: "rb-quiet" }, "shift t of both positions"),
    added: svg("path", { class: "rb-tells", ...lined("muted", 2, "stroke-linejoin: round") }),
    rope: svg("path", { class: "rb-tells", ...lined("1", 2.5) }),
    marker: svg("path", lined("ink", 1.5)),
    dots: svg("g", { class: "rb-tells" }),
    later: svg("text", { class: "rb-covers", visibility: "hidden", "font-size": 12, "text-anchor": "middle",
      style: "fill: var(--rb-muted); stroke: none" }, "The scores appear once you guess or slide."),
  };
  return { ...curves, group: svg("g", {}, ...Object.values(curves)) };
}

function drawCurves(curves, [from, high, width, tall], { rope, added, ropeCurve, addedCurve }, { shift, dim }) {
  const [to, floor] = [from + width, high + tall];
  const levels = levelsOf([...ropeCurve, ...addedCurve]);
  const x = scale([0, SHIFTS - 1], [from, to]);
  const y = scale([levels[0], levels.at(-1)], [floor, high]);
  const name = `Score ${dim === 2 ? "of" : "over"} ${allOf(dim / 2, "pair")}`;
  const [rotated, summed] = fitting(["RoPE ⟨Rₘ₊ₜq, Rₙ₊ₜk⟩ and sinusoidal ⟨q + PEₘ₊ₜ, k + PEₙ₊ₜ⟩",
    "RoPE ⟨Rq, Rk⟩ and sinusoidal ⟨q + PE, k + PE⟩"], to).split(" and ");
  redrawn(curves.titles, () => titled(0, high - 52, name, svg("tspan", inColour("1"), rotated), " and ",
    svg("tspan", inColour("muted"), summed)));
  put(curves.levels, { d: levels.map((level) => `M${from},${y(level).toFixed(2)}H${to}`).join("") });
  put(curves.up, { transform: `translate(${from} 0)` });
  axis(curves.up, "left", y, levels, (level) => exact(level, 0));
  put(curves.across, { transform: `translate(0 ${floor})` });
  const tick = niceStep(SHIFTS, (to - from) / 60);
  axis(curves.across, "bottom", x, Array.from({ length: Math.ceil(SHIFTS / tick) }, (_, k) => k * tick));
  put(curves.name, { x: (from + to) / 2, y: floor + 38 });
  put(curves.later, { x: (from + to) / 2, y: high + tall / 2 });
  const point = (value, t) => `${hundredths(x(t))},${hundredths(y(value))}`;
  const path = (scores) => `M${Array.from(scores, point).join("L")}`;
  put(curves.added, { d: path(addedCurve) });
  put(curves.rope, { d: path(ropeCurve) });
  put(curves.marker, { d: `M${x(shift)},${high - 5}V${floor + 5}` });
  redrawn(curves.dots, () => [[rope, "1"], [added, "muted"]].map(([value, paint]) => svg("circle", {
    cx: x(shift), cy: y(value), r: 5.5, style: `fill: var(--rb-${paint}); stroke: var(--rb-paper); stroke-width: 2`,
  })));
}

function describe({ addedCurve }, { m, n, shift }) {
  const [least, most] = [Math.min(...addedCurve), Math.max(...addedCurve)];
  return `The query is at ${grouped(m + shift)} and the key at ${grouped(n + shift)}, so their distance is `
    + `${grouped(m - n)}. RoPE’s score is the same at every shift, while the sinusoidal score ranges `
    + `from ${exact(least, 2)} to ${exact(most, 2)}.`;
}

// How much a score has changed since shift 0.
function since(change) {
  if (change === 0) return "unchanged";
  if (Math.abs(change) < 1e-9) return "changed only by rounding";
  return `${change > 0 ? "+" : ""}${tidy(change)} since t = 0`;
}

export default explorer({
  title: "Query and key, locked together",
  note: "Drag the vertical line to slide query and key together. Pale arrows: q and k without a position. "
    + "Thin lines: the added encodings.",
  dials,
  compute,
  build,
  stats: ({ rope, ropeHome, added, addedHome }) => [
    ["RoPE’s score", exact(rope), since(rope - ropeHome)],
    ["Sinusoidal score", exact(added), since(added - addedHome)],
  ],
  describe,
});
