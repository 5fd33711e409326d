// What dividing by √d is for: without it the softmax of longer and longer vectors picks one key and stops learning.

import { dials, DRAWS, MEAN_DIMS, MOST_DIMS, MOST_KEYS } from "./saturation.py";
import { entropy, lastCall, minMaxBand, normals, softmax, softmaxGradientNorm } from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, bandPath, fitCanvas, paintCells, scale, textWidth } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";
import { panels } from "./kit/panels.js";

// For each draw and key: q·k over the first d numbers, at [d − 1]. Shorter vectors are the beginnings of longer ones,
// so that turning d changes little. Made once.
const products = lastCall(() => Array.from({ length: DRAWS }, (_, draw) => {
  const query = normals(`query ${draw}`, MOST_DIMS);
  return Array.from({ length: MOST_KEYS }, (__, n) => {
    let sum = 0;
    return normals(`key ${draw} ${n}`, MOST_DIMS).map((value, i) => (sum += value * query[i]));
  });
}));

function scoresOf(draw, keys, dim, scaled) {
  const factor = scaled ? 1 / Math.sqrt(dim) : 1;
  return products()[draw].slice(0, keys).map((sums) => sums[dim - 1] * factor);
}

// One draw at every d.
const everyDim = lastCall((draw, keys, scaled) => {
  const weights = Array.from({ length: MOST_DIMS }, (_, i) => softmax(scoresOf(draw, keys, i + 1, scaled)));
  return { weights, gradient: weights.map(softmaxGradientNorm) };
});

// All draws, at some d: the mean size of the gradient.
const means = lastCall((keys) => {
  const [scaled, raw] = [true, false].map((divided) => MEAN_DIMS.map((d) => {
    let sum = 0;
    for (let draw = 0; draw < DRAWS; draw += 1) sum += softmaxGradientNorm(softmax(scoresOf(draw, keys, d, divided)));
    return sum / DRAWS;
  }));
  return { scaled, raw };
});

function compute({ dim, n_keys: keys, draw, scaled }) {
  const every = everyDim(draw, keys, scaled);
  const weights = every.weights[dim - 1];
  return {
    scores: scoresOf(draw, keys, dim, scaled),
    weights,
    gradient: every.gradient[dim - 1],
    entropy: entropy(weights),
    everyDim: every.weights,
    everyGradient: every.gradient,
    meanDims: MEAN_DIMS,
    meanScaled: means(keys).scaled,
    meanRaw: means(keys).raw,
  };
}

function build(stage, app) {
  const shown = panels(app, ["One d", "Every d"]);
  const bars = svg("svg", { role: "img", "aria-label": app.alt });
  const canvas = html("canvas", { "aria-hidden": "true" });
  const curves = svg("svg", { "aria-hidden": "true", style: "position: absolute; inset: 0" }, svg("g"), svg("g"));
  const handle = html("div");
  const left = html("div", {}, bars);
  const right = html("div", { style: "position: relative" }, canvas, curves, handle);
  stage.append(html("div", { style: "display: flex; justify-content: space-between" }, left, right));
  let places;
  const grip = hand(app, handle, {
    label: "Head dimension",
    area: true,
    cursor: "ew-resize",
    at(x) {
      const share = Math.min(1, Math.max(0, (x - places.left) / places.columns));
      return { dim: Math.round(MOST_DIMS ** share) };
    },
    ...ofDial(app, dials.find(({ trait }) => trait === "dim")),
  });
  let painted = [];
  return ({ data, values, width, theme }) => {
    const only = shown(width);
    const wide = only === null;
    left.hidden = only === 1;
    right.hidden = only === 0;
    const barsWidth = wide ? Math.round(width * 0.42) : width;
    if (!left.hidden) drawBars(bars, barsWidth, data, values);
    if (right.hidden) return;
    places = placesOf(wide ? width - barsWidth - 48 : width);
    const now = [data.everyDim, places.width, theme];
    if (now.some((part, i) => part !== painted[i])) drawDims(canvas, curves, places, data, values, theme);
    painted = now;
    drawCursor(curves.lastChild, places, data, values);
    grip([places.left - 8, places.mapTop - 4, places.columns + 14, places.floor - places.mapTop + 8]);
  };
}

function heading(text, y = 13) {
  return svg("text", { y, "font-size": 14, "font-weight": 600 }, text);
}

function drawBars(picture, width, { weights }, { dim, n_keys: keys, scaled }) {
  const [left, top, floor] = [38, 44, 306];
  const y = scale([0, 1], [floor, top]);
  const pitch = (width - left) / keys;
  const gap = Math.min(8, pitch * 0.2);
  const ticks = svg("g", { transform: `translate(${left} 0)` });
  axis(ticks, "left", y, [0, 0.5, 1]);
  const level = (share, style) => svg("line", { x1: left, x2: width, y1: y(share), y2: y(share), style });
  const winner = weights.indexOf(Math.max(...weights));
  const [x, word] = [left + (winner + 0.5) * pitch, tidy(weights[winner])];
  const half = textWidth(word, 13, 600) / 2 + 2;
  put(picture, { width, height: 350, viewBox: `0 0 ${width} 350` });
  redrawn(picture, () => [
    heading(`Weights of the ${keys} keys at d = ${dim}`),
    level(0.5, "stroke: var(--rb-grid)"), level(1, "stroke: var(--rb-grid)"),
    ...weights.map((weight, n) => svg("rect", {
      x: left + n * pitch + gap / 2, width: pitch - gap, y: y(weight), height: floor - y(weight),
      rx: Math.min(3, pitch / 6), style: `fill: var(--rb-${scaled ? 1 : 2})`,
    })),
    level(0, "stroke: var(--rb-muted)"),
    level(1 / keys, "stroke: var(--rb-ink); stroke-dasharray: 2 4"),
    svg("text", { x: Math.min(width - half, Math.max(left + half, x)), y: y(weights[winner]) - 7, "font-size": 13,
      "text-anchor": "middle", "font-weight": 600 }, word),
    ticks,
    caption((left + width) / 2, floor + 38, "keys (dotted: all alike)"),
  ]);
}

function caption(x, y, text) {
  return svg("text", { x, y, "text-anchor": "middle", "font-size": 12, class: "rb-quiet" }, text);
}

// Where things stand in the two panels over d.
function placesOf(width) {
  const [left, mapTop, mapHeight, top, floor] = [38, 26, 104, 204, 306];
  const columns = Math.round(width - 6 - left);
  const x = scale([1, MOST_DIMS], [left, left + columns], true);
  const y = scale([0, 0.5], [floor, top]);
  return { width, left, mapTop, mapHeight, top, floor, columns, x, y };
}

// What stays when only d is turned. Where one column of pixels holds several d, the map shows their mean and the curve
// becomes the band from least to greatest.
function drawDims(canvas, picture, places, data, { n_keys: keys, scaled }, theme) {
  const { width, left, mapTop, mapHeight, top, floor, columns, x, y } = places;
  const here = scaled ? "1" : "2";
  const firstDims = Array.from({ length: columns + 1 }, (_, column) => Math.round(MOST_DIMS ** (column / columns)));
  const map = [left, mapTop, columns, mapHeight];
  paintCells(fitCanvas(canvas, width, 350), map, columns, keys, [theme.zero, theme[here]], (column, key) => {
    const from = firstDims[column];
    const to = Math.max(from + 1, firstDims[column + 1]);
    let sum = 0;
    for (let d = from; d < to; d += 1) sum += data.everyDim[d - 1][key];
    return sum / (to - from);
  });

  const edges = [0]; // where a new column of pixels begins, as d − 1
  for (let i = 1; i < MOST_DIMS; i += 1) if (Math.floor(x(i + 1)) > Math.floor(x(edges.at(-1) + 1))) edges.push(i);
  const { low, high } = minMaxBand(data.everyGradient, [...edges, MOST_DIMS]);
  const middles = edges.map((i, b) => (x(i + 1) + x(edges[b + 1] ?? MOST_DIMS)) / 2);
  const band = svg("path", { d: bandPath(middles, low.map(y), high.map(y)), "stroke-linejoin": "round",
    style: `fill: var(--rb-${here}); stroke: var(--rb-${here}); opacity: 0.3` });
  const dots = (values, colour) => values.map((value, i) => {
    return svg("circle", { cx: x(data.meanDims[i]), cy: y(value), r: 3, style: `fill: var(--rb-${colour})` });
  });
  const across = svg("g", { transform: `translate(0 ${floor})` });
  axis(across, "bottom", x, [1, 4, 16, 64, 256]);
  const up = svg("g", { transform: `translate(${left} 0)` });
  axis(up, "left", y, [0, 0.25, 0.5]);
  const level = (at, name) => {
    return svg("line", { x1: left, x2: left + columns, y1: at, y2: at, style: `stroke: var(--rb-${name})` });
  };
  const part = (colour, text) => svg("tspan", { style: `fill: var(--rb-${colour})`, "font-weight": 600 }, text);
  put(picture, { width, height: 350, viewBox: `0 0 ${width} 350` });
  redrawn(picture.firstChild, () => [
    heading("Weights for every d, by key"),
    svg("rect", { x: left, y: mapTop, width: columns, height: mapHeight, style: "fill: none; stroke: var(--rb-grid)" }),
    heading("Size of the softmax gradient", top - 40),
    svg("text", { y: top - 21, "font-size": 12, class: "rb-quiet" }, `Mean of ${DRAWS} draws `,
      part(1, "with 1/√d"), " and ", part(2, "without")),
    level(y(0.25), "grid"), level(top, "grid"), level(floor, "muted"),
    band, ...dots(data.meanScaled, 1), ...dots(data.meanRaw, 2), across, up,
    caption((left + width) / 2, floor + 38, "head dimension d"),
  ]);
}

function drawCursor(group, { mapTop, mapHeight, top, floor, x, y }, { gradient }, { dim, scaled }) {
  const line = (from, to) => svg("line", { x1: x(dim), x2: x(dim), y1: from, y2: to,
    style: "stroke: var(--rb-ink); stroke-width: 1.5" });
  redrawn(group, () => [line(mapTop - 4, mapTop + mapHeight + 4), line(top - 4, floor), svg("circle", { cx: x(dim),
    cy: y(gradient), r: 6.5, style: `fill: var(--rb-${scaled ? 1 : 2}); stroke: var(--rb-zero); stroke-width: 2.5` })]);
}

function describe({ weights, gradient }, { dim, n_keys: keys, scaled }) {
  const most = Math.max(...weights);
  const how = scaled ? "divided by √d" : "not divided by √d";
  const end = most > 0.95 ? "One key takes nearly everything, and there is little left to learn from."
    : most < 2 / keys ? "The keys share the weight." : "Several keys share the weight.";
  return `Scores of ${keys} keys with d = ${dim}, ${how}: the strongest key gets ${tidy(most)} of the weight and the `
    + `size of the gradient is ${tidy(gradient)}. ${end}`;
}

export default explorer({
  title: "Why attention divides by √d",
  note: "A random query and random keys, every number standard normal. "
    + "Drag the upright line to turn d up, then take the division away.",
  dials,
  compute,
  build,
  stats: ({ weights, gradient, entropy: nats }, { n_keys: keys }) => [
    ["Largest weight", tidy(Math.max(...weights))],
    ["Size of the gradient", tidy(gradient), "of at most 0.5"],
    ["Entropy", tidy(nats), `nats, of at most ${tidy(Math.log(keys))}`],
  ],
  describe,
});
