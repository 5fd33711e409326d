// The score of one query with the same key at every position of a text. The score falls and oscillates with distance.

import { CLOSE, dials, FIGURES, MOST_COLUMNS, MOST_SAMPLES, NEAR, SPOTS } from "./distance.py";
import { countMaxima, evenEdges, fourierSums, invFreq, lastCall, minMaxBand, normals } from "./kit/rope.js";
import { count, exact, grouped, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { hand, ofDial } from "./kit/hand.js";
import { evenly, play } from "./kit/play.js";
import { presets } from "./kit/presets.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, fitCanvas, lined, niceStep, OUTLINED, scale, textWidth, titled } from "./kit/drawing.js";
import { explorer } from "./kit/mount.js";

// The coefficients a and b of the score, which is Σ a_i cos Δθ_i + b_i sin Δθ_i.
const lastWaves = lastCall((vectors, draw, dim) => {
  const pairs = dim / 2;
  const [a, b] = [new Float64Array(pairs), new Float64Array(pairs)];
  if (vectors === "ones" || vectors === "slow") return { a: a.fill(2, vectors === "slow" ? pairs >> 1 : 0), b };
  const q = normals(`distance query ${draw}`, dim);
  const k = vectors === "same" ? q : normals(`distance key ${draw}`, dim);
  for (let i = 0, j = 0; i < pairs; i += 1, j += 2) {
    a[i] = q[j] * k[j] + q[j + 1] * k[j + 1];
    b[i] = q[j] * k[j + 1] - q[j + 1] * k[j];
  }
  return { a, b };
});

// Shifts waves by `shift`: the new value at Δ is the old value at Δ − shift.
function shifted(theta, { a, b }, shift) {
  const out = { a: new Float64Array(theta.length), b: new Float64Array(theta.length) };
  for (let i = 0; i < theta.length; i += 1) {
    const cos = Math.cos(theta[i] * shift);
    const sin = Math.sin(theta[i] * shift);
    out.a[i] = a[i] * cos - b[i] * sin;
    out.b[i] = a[i] * sin + b[i] * cos;
  }
  return out;
}

// The keys for which scores are computed, and their scores. Short texts use all keys. Longer texts use the keys closest
// to the query, and eight more from each column.
function sampleScores({ base, dim, query, length, vectors, draw }) {
  const theta = invFreq(dim, base);
  const waves = lastWaves(vectors, draw, dim);
  const all = length <= MOST_SAMPLES;
  const count = all ? length : NEAR;
  const first = Math.min(Math.max(0, query - count / 2), length - count); // 0 if all keys are used
  const left = first > 0 ? query - first + 1 : length;
  const right = first + count < length ? first + count - query : length;
  const per = all ? 1 : Math.ceil(length / MOST_COLUMNS);
  const columns = Math.ceil(length / per);
  const offsets = all ? [] : [...CLOSE, ...SPOTS.map((spot) => Math.floor(per * spot))];
  const keys = new Int32Array(count + offsets.length * columns);
  const scores = new Float64Array(keys.length);
  let size = 0;
  const add = (found, start, step) => { // the last column may be shorter than the others
    for (let k = 0, key = start; k < found.length && key < length; k += 1, key += step) {
      keys[size] = key;
      scores[size] = found[k];
      size += 1;
    }
  };
  add(fourierSums(theta, [waves], query - first, -1, count)[0], first, 1);
  if (!all) {
    const far = fourierSums(theta, offsets.map((offset) => shifted(theta, waves, offset)), query, -per, columns);
    far.forEach((found, j) => add(found, offsets[j], per));
  }
  return { per, columns, reach: Math.min(left, right), keys: keys.subarray(0, size), scores: scores.subarray(0, size) };
}

// The key closest to the query whose score is at most `level`, or −1 if there is none. If two are equally close, the
// earlier one is chosen.
function nearest({ keys, scores }, query, level) {
  let best = -1;
  let distance = Infinity;
  for (let k = 0; k < keys.length; k += 1) {
    if (scores[k] > level) continue;
    const away = Math.abs(keys[k] - query);
    if (away < distance || (away === distance && keys[k] < best)) [best, distance] = [keys[k], away];
  }
  return best;
}

function compute(dials) {
  const { query, dim, vectors, draw } = dials;
  const samples = sampleScores(dials);
  const { per, columns, keys, scores, reach } = samples;
  const low = new Float64Array(columns).fill(Infinity);
  const high = new Float64Array(columns).fill(-Infinity);
  let least = Infinity;
  for (let k = 0; k < keys.length; k += 1) {
    const column = Math.floor(keys[k] / per);
    const score = scores[k];
    if (score < low[column]) low[column] = score;
    if (score > high[column]) high[column] = score;
    if (score < least) least = score;
  }
  const { a, b } = lastWaves(vectors, draw, dim);
  const size = a.map((one, i) => Math.hypot(one, b[i]));
  const whole = size.reduce((sum, one) => sum + one, 0);
  return {
    per, // the number of keys per column; if it is 1, no score is left out
    reach, // up to this distance from the query, no score is left out
    low,
    high,
    home: a.reduce((sum, one) => sum + one, 0), // the score at the query's own position
    least,
    leastAt: nearest(samples, query, least + 1e-9 * whole),
    negativeAt: nearest(samples, query, -Number.MIN_VALUE),
    maxima: per === 1 ? countMaxima(low) : -1,
    swing: Math.sqrt(size.reduce((sum, one) => sum + one * one, 0) / 2),
  };
}

// ---- On the page ----

const TOP = 74;
const UNDER = 42; // space below the axis
const LEFT = 46;
const SECONDS = 10; // the playback time for the whole text

function build(stage, app) {
  play(app, {
    advance: evenly("query", ({ length }) => length - 1, ({ length }) => length / SECONDS),
    again: { query: 0 },
  });
  const settings = FIGURES.map((figure) => {
    const name = `d = ${figure.dim}, L = ${grouped(figure.length)}, m = ${grouped(figure.query)}`;
    return [name, { ...figure, base: 1e4, vectors: "ones" }];
  });
  const showFigure = presets(app, "Six published figures", "A published figure …", settings);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, pad));
  let right;
  const dial = dials.find(({ trait }) => trait === "query");
  const limits = ({ length }) => [0, length - 1];
  const showPad = hand(app, pad, {
    label: "Query position in the picture",
    area: true,
    cursor: "ew-resize",
    at(x) {
      const [least, most] = limits(app.values());
      const place = Math.round(((x - LEFT) / (right - LEFT)) * most);
      return { query: Math.min(most, Math.max(least, place)) };
    },
    ...ofDial(app, dial, { limits, text: ({ query }) => `m = ${grouped(query)}` }),
  });

  return ({ data, values, width, most, theme }) => {
    showFigure(values);
    const height = Math.min(most, 500);
    const floor = height - UNDER;
    right = width - 8;
    const { levels, y } = upright(data, floor);
    // Waves of the same speed never get out of step. And if no score is negative, the text doesn't reach far enough.
    const fewest = values.vectors === "slow" ? 4 : 2;
    const swing = values.base > 1 && values.dim > fewest && data.negativeAt >= 0 ? data.swing : Infinity;
    const x = scale([0, values.length - 1], [LEFT, right]);
    const context = fitCanvas(canvas, width, height);
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    paintLevels(context, paints, [LEFT, right], levels, y, swing, floor);
    paintScores(context, paints, [LEFT, right], x, y, data, values.length, floor);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    redrawn(picture, () => [...names(width, data, values), ...axes(x, y, levels, values, right, floor),
      ...marks(x, y, { ...data, swing }, values.query, right, floor)]);
    showPad([LEFT, TOP - 24, right - LEFT, floor - TOP + 24]);
  };
}

// The axis of scores. It includes 0, and extends in whole steps beyond the smallest and the largest score.
function upright({ low, high }, floor) {
  let [least, greatest] = [0, 0];
  for (const value of low) if (value < least) least = value;
  for (const value of high) if (value > greatest) greatest = value;
  const step = niceStep(greatest - least, 5);
  const [from, to] = [Math.floor(least / step), Math.max(1, Math.ceil(greatest / step))];
  const levels = Array.from({ length: to - from + 1 }, (_, k) => (from + k) * step);
  return { levels, y: scale([levels[0], levels.at(-1)], [floor, TOP]) };
}

function paintLevels(context, paints, [from, to], levels, y, swing, floor) {
  const line = (level, colour, dash) => {
    context.beginPath();
    context.moveTo(from, y(level));
    context.lineTo(to, y(level));
    context.setLineDash(dash);
    context.strokeStyle = colour;
    context.stroke();
  };
  context.lineWidth = 1;
  for (const level of levels) line(level, level ? paints.grid : paints.muted, []);
  for (const level of [-swing, swing]) if (y(level) >= TOP && y(level) <= floor) line(level, paints.muted, [6, 5]);
  context.setLineDash([]);
}

// Paints the curve, or a band if several keys share a pixel. It is blue above 0 and orange below.
function paintScores(context, paints, [from, to], x, y, { per, low, high }, length, floor) {
  const pixels = Math.round(to - from);
  const edges = evenEdges(low.length, Math.min(low.length, pixels));
  const bands = { low: minMaxBand(low, edges).low, high: minMaxBand(high, edges).high };
  const places = bands.low.map((_, k) => x(Math.min(length - 1, ((edges[k] + edges[k + 1]) * per - 1) / 2)));
  const outline = new Path2D();
  bands.high.forEach((value, k) => outline.lineTo(places[k], y(value)));
  for (let k = places.length - 1; k >= 0; k -= 1) outline.lineTo(places[k], y(bands.low[k]));
  context.lineJoin = "round";
  context.lineWidth = 1.5;
  for (const [colour, edge, top, bottom] of [["1", bands.high, TOP - 2, y(0)], ["2", bands.low, y(0), floor + 2]]) {
    context.save();
    context.beginPath();
    context.rect(from - 2, top, to - from + 4, bottom - top);
    context.clip();
    context.fillStyle = paints[colour];
    context.strokeStyle = paints[colour];
    context.beginPath();
    context.moveTo(places[0], y(0));
    edge.forEach((value, k) => context.lineTo(places[k], y(value)));
    context.lineTo(places.at(-1), y(0));
    context.globalAlpha = 0.2;
    context.fill();
    context.globalAlpha = 1;
    context.stroke(outline);
    if (low.length > pixels || per > 1) context.fill(outline);
    context.restore();
  }
}

function names(width, { per }, { vectors, draw }) {
  const whose = {
    ones: "All entries of the query and the key are 1.",
    same: `The key equals the query, which is random (draw ${draw}).`,
    random: `The query and the key are random (draw ${draw}).`,
    slow: "The entries are 1 in the slower half of the pairs.",
  }[vectors];
  const computed = CLOSE.length + SPOTS.length;
  const sampled = per > 1 && width >= 620 ? ` Of every ${grouped(per)} distant keys, ${computed} are computed.` : "";
  const which = width < 620 ? "Score with a key at each position" : "Score of the query with a key at each position";
  return titled(0, 0, which, whose + sampled);
}

function axes(x, y, levels, { length }, right, floor) {
  const [up, across] = [svg("g", { transform: `translate(${LEFT} 0)` }),
    svg("g", { transform: `translate(0 ${floor})` })];
  axis(up, "left", y, levels, (level) => exact(level, 0));
  const step = niceStep(length, (right - LEFT) / 80);
  const ticks = Array.from({ length: Math.ceil(length / step) }, (_, k) => k * step);
  axis(across, "bottom", x, ticks.filter((tick) => x(tick) + textWidth(String(tick), 12) / 2 <= right + 8));
  return [up, across, svg("text", {
    x: (LEFT + right) / 2, y: floor + 38, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
  }, "position n of the key")];
}

// A text beside a mark in the picture.
function beside(x, y, anchor, text) {
  return svg("text", { x, y, "font-size": 12, "font-weight": 600, "text-anchor": anchor, ...OUTLINED }, text);
}

// Names the size of the score far away: above the curve, or just above the upper dashed line if “query” is there.
function farSize(y, { swing, high }, right, onLeft) {
  const size = `${right > 560 ? "typical size " : ""}far away: ± ${tidy(swing)}`;
  const span = textWidth(size, 12, 600);
  const from = onLeft ? LEFT + 4 : right - span;
  const indexAt = (place) => Math.round(((place - LEFT) / (right - LEFT)) * (high.length - 1));
  const crest = y(Math.max(swing, ...high.slice(indexAt(from), indexAt(from + span) + 1)));
  const line = y(swing) + (y(swing) < TOP + 8 ? 14 : -5);
  return beside(from, crest > TOP + 20 ? crest - 5 : line, "start", size);
}

// Marks the query, the lowest score, the closest key whose score is below 0, and the size of the score far away.
function marks(x, y, data, query, right, floor) {
  const { least, leastAt, negativeAt, swing } = data;
  const half = textWidth("query", 12) / 2;
  const at = Math.min(right - half, Math.max(LEFT + half, x(query)));
  const [lowest, first, zero] = [x(leastAt), x(negativeAt), y(0)];
  const onLeft = lowest > (LEFT + right) / 2; // whether the right half is taken by the mark of the lowest score
  const side = (place, height, gap, text) => { // to the right of a mark, or to its left if there is no room
    const fits = place + gap + textWidth(text, 12, 600) < right;
    return [fits ? place + gap : place - gap, height, fits ? "start" : "end", text];
  };
  const low = Math.min(floor - 6, y(least) + 4);
  const near = negativeAt >= 0 && Math.abs(first - lowest) < 160 && Math.abs(zero + 15 - low) < 16;
  const heights = { first: zero + 15, lowest: near ? low + (low < floor - 22 ? 16 : -32) : low };
  return [
    svg("path", { d: `M${x(query).toFixed(2)},${TOP - 6}V${floor}`, ...lined("ink", 1.5, "stroke-dasharray: 1 5") }),
    svg("text", { x: at, y: TOP - 10, "font-size": 12, "text-anchor": "middle" }, "query"),
    ...(negativeAt < 0 ? [] : [svg("path", {
      d: `M${first.toFixed(2)},${(zero + 2).toFixed(2)}l-5,9h10Z`, class: "rb-first",
      style: "fill: var(--rb-ink); stroke: var(--rb-paper)",
    }), beside(...side(first, heights.first, 9, "first below 0"))]),
    svg("circle", { cx: lowest, cy: y(least), r: 5.5,
      style: "fill: var(--rb-paper); stroke: var(--rb-ink); stroke-width: 2.5" }),
    beside(...side(lowest, heights.lowest, 11, "lowest")),
    ...(y(swing) < TOP ? [] : [farSize(y, data, right, onLeft)]),
  ];
}

function describe({ per, reach, home, least, leastAt, negativeAt, maxima }, { query, length, vectors }) {
  const [near, far] = [negativeAt, leastAt].map((key) => Math.abs(key - query));
  const sure = per === 1 || (negativeAt >= 0 && near < reach);
  const some = sure ? "It" : "Among the samples it";
  const seen = sure && per > 1 ? " among the samples" : "";
  const first = negativeAt < 0 ? `${some} is never negative`
    : `${some} first goes negative ${near === 0 ? "at the query itself" : `${count(near, "token")} away`}`;
  const lowest = far === 0 ? "at the query itself" : `${count(far, "token")} away`;
  const peaks = maxima < 0 ? ""
    : ` There ${maxima === 1 ? "is 1 local maximum" : `are ${maxima || "no"} local maxima`}.`;
  const sides = query === 0 || query === length - 1 ? ""
    : vectors === "random" ? " The two sides of the query differ, because q is not k."
      : " Equal distances on both sides give equal scores, because q = k.";
  return `At the query’s own position the score is ${tidy(home)}. `
    + `${first}. Its lowest value${seen} is ${tidy(least)}, ${lowest}.${peaks}${sides}`;
}

export default explorer({
  title: "The score against distance",
  note: "Drag across the picture to move the query. The menu holds the settings of six published figures.",
  dials,
  compute,
  units: { reach: "tokens", leastAt: "tokens", negativeAt: "tokens" },
  build,
  idle: (_, { vectors }) => (["same", "random"].includes(vectors) ? {}
    : { draw: "No effect here: neither query nor key is random." }),
  stats: () => [],
  describe,
});
