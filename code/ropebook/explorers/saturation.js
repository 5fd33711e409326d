// Why scores are divided by √d: without the division, the softmax picks a single key as vectors get longer.

import { dials, DRAWS, MEDIAN_DIMS, MOST_DIMS, MOST_KEYS } from "./saturation.py";
import { lastCall, minMaxBand, normals, softmax, softmaxGradientNorm } from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import {
  axis, bandPath, cover, fitCanvas, inColour, lined, NARROW, paintCells, scale, textWidth, titled,
} from "./kit/drawing.js";
import { across } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";

// For each draw and key: q·k over the first d numbers, at index d − 1. A shorter vector is the beginning of a longer
// one, so that small changes of the dial d have little effect. All of this is computed only once.
const products = lastCall(() => Array.from({ length: DRAWS }, (_, draw) => {
  const query = normals(`query ${draw}`, MOST_DIMS);
  return Array.from({ length: MOST_KEYS }, (__, n) => {
    let sum = 0;
    return normals(`key ${draw} ${n}`, MOST_DIMS).map((value, i) => (sum += value * query[i]));
  });
}));

const factorOf = (dim, scaled) => (scaled ? 1 / Math.sqrt(dim) : 1);

function scoresOf(draw, keys, dim, scaled) {
  return products()[draw].slice(0, keys).map((sums) => sums[dim - 1] * factorOf(dim, scaled));
}

// How strongly the weights respond to changes in the dot products q·k. By the chain rule, this includes the factor
// applied to q·k.
function gradientOf(weights, dim, scaled) {
  return softmaxGradientNorm(weights) * factorOf(dim, scaled);
}

// The results for one draw at every d.
const everyDim = lastCall((draw, keys, scaled) => {
  const weights = Array.from({ length: MOST_DIMS }, (_, i) => softmax(scoresOf(draw, keys, i + 1, scaled)));
  return { weights, gradient: weights.map((row, i) => gradientOf(row, i + 1, scaled)) };
});

// The median gradient size over all draws, at some values of d.
const medians = lastCall((keys) => {
  const [scaled, raw] = [true, false].map((divided) => MEDIAN_DIMS.map((d) => {
    const sizes = Array.from({ length: DRAWS },
      (_, draw) => gradientOf(softmax(scoresOf(draw, keys, d, divided)), d, divided)).sort((a, b) => a - b);
    return (sizes[DRAWS / 2 - 1] + sizes[DRAWS / 2]) / 2;
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
    everyDim: every.weights,
    everyGradient: every.gradient,
    medianDims: MEDIAN_DIMS,
    medianScaled: medians(keys).scaled,
    medianRaw: medians(keys).raw,
  };
}

// ---- On the page ----

const LEFT = 38;
const MAP_TOP = 46;
const POWERS = ["10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"];
const LEAST = 1e-4; // smaller gradients are drawn at the lower edge

// A picture of three parts with shared axes: a map of every key's weight at every d; beside it, bars for the weights at
// one d; and below it, the size of the gradient at every d.
function build(stage, app) {
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const [curves, bars, cursor] = [0, 1, 2].map(() => picture.appendChild(svg("g")));
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, handle));
  let places;
  const grip = across(app, handle, dials.find(({ trait }) => trait === "dim"), {
    label: "Head dimension",
    ends: () => [LEFT, LEFT + places.columns],
    valueAt: (share) => Math.round(MOST_DIMS ** share),
  });
  let painted = [];
  return ({ data, values, width, most, theme }) => {
    places = placesOf(width, most);
    put(picture, { width, height: places.height, viewBox: `0 0 ${width} ${places.height}` });
    const now = [data.everyDim, width, theme];
    if (now.some((part, i) => part !== painted[i])) drawDims(canvas, curves, places, data, values, theme);
    painted = now;
    redrawn(bars, () => barsOf(places, data, values));
    drawCursor(cursor, places, data, values);
    grip([LEFT - 8, MAP_TOP - 4, places.columns + 14, places.floor - MAP_TOP + 8]);
  };
}

// The layout of all parts: the map's columns and height, the bars to its right, and the curve's top and bottom.
function placesOf(width, most) {
  const wide = width >= NARROW;
  const height = Math.min(most, 480);
  const mapHeight = Math.round(height * (wide ? 0.42 : 0.36));
  const barsWidth = Math.round(width * (wide ? 0.3 : 0.34)) - 14;
  const columns = Math.round(width - LEFT - barsWidth - (wide ? 36 : 24));
  const [top, floor] = [MAP_TOP + mapHeight + 66, height - 42];
  return {
    width, wide, height, mapHeight, mapFloor: MAP_TOP + mapHeight, columns, top, floor, barsWidth,
    barsLeft: width - barsWidth - 10,
    x: scale([1, MOST_DIMS], [LEFT, LEFT + columns], true),
    y: (size) => scale([LEAST, 0.5], [floor, top], true)(Math.max(size, LEAST)),
  };
}

// The keys' weights at one d. Each is in the same row as its key in the map.
function barsOf({ wide, barsLeft, barsWidth, mapHeight, mapFloor }, { weights }, { dim, n_keys: keys, scaled }) {
  const x = scale([0, 1], [barsLeft, barsLeft + barsWidth]);
  const pitch = mapHeight / keys;
  const gap = Math.min(8, pitch * 0.2);
  const middle = (n) => MAP_TOP + (n + 0.5) * pitch;
  const winner = weights.indexOf(Math.max(...weights));
  const word = tidy(weights[winner]);
  const inside = x(weights[winner]) + 10 + textWidth(word, 13, 600) > barsLeft + barsWidth + 10;
  const over = inside && pitch - gap < 18; // there is no room for a word in the bar or next to it
  const across = svg("g", { transform: `translate(0 ${mapFloor})` });
  axis(across, "bottom", x, wide ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]);
  const upright = (share, colour, more = "") => svg("path", { d: `M${x(share)},${MAP_TOP}V${mapFloor}`,
    ...lined(colour, 1, `stroke-linecap: butt; ${more}`) });
  return [
    ...titled(barsLeft, 0, `At d = ${dim}`, wide ? "dotted: equal weights" : "dotted: equal"),
    upright(0.5, "grid"), upright(1, "grid"),
    ...weights.map((weight, n) => svg("rect", { class: "rb-weight", x: barsLeft, width: x(weight) - barsLeft,
      y: MAP_TOP + n * pitch + gap / 2, height: pitch - gap, rx: Math.min(3, pitch / 6),
      style: `fill: var(--rb-${scaled ? 1 : 2})` })),
    upright(1 / keys, "ink", "stroke-dasharray: 2 4"), upright(0, "muted"), across,
    svg("text", { x: x(weights[winner]) + (inside ? -7 : 7), y: middle(winner) + (over ? -pitch / 2 - 3 : 4.5),
      "font-size": 13, "font-weight": 600, "text-anchor": inside ? "end" : "start",
      ...(inside && !over ? inColour("paper")
        : { style: "paint-order: stroke; stroke: var(--rb-paper); stroke-width: 3" }) }, word),
  ];
}

// Draws the parts that don't change with d. If a column of pixels covers several values of d, the map shows their mean
// weights, and the curve becomes a band from the smallest to the largest value.
function drawDims(canvas, group, places, data, { n_keys: keys, scaled }, theme) {
  const { width, wide, height, mapHeight, mapFloor, top, floor, columns, x, y } = places;
  const here = scaled ? "1" : "2";
  const firstDims = Array.from({ length: columns + 1 }, (_, column) => Math.round(MOST_DIMS ** (column / columns)));
  const map = [LEFT, MAP_TOP, columns, mapHeight];
  paintCells(fitCanvas(canvas, width, height), map, columns, keys, [theme.paper, theme[here]], (column, key) => {
    const from = firstDims[column];
    const to = Math.max(from + 1, firstDims[column + 1]);
    let sum = 0;
    for (let d = from; d < to; d += 1) sum += data.everyDim[d - 1][key];
    return sum / (to - from);
  });

  const edges = [0]; // the values of d − 1 at which a new column of pixels begins
  for (let i = 1; i < MOST_DIMS; i += 1) if (Math.floor(x(i + 1)) > Math.floor(x(edges.at(-1) + 1))) edges.push(i);
  const { low, high } = minMaxBand(data.everyGradient, [...edges, MOST_DIMS]);
  const middles = edges.map((i, b) => (x(i + 1) + x(edges[b + 1] ?? MOST_DIMS)) / 2);
  const band = svg("path", { d: bandPath(middles, low.map(y), high.map(y)), "stroke-linejoin": "round",
    style: `fill: var(--rb-${here}); stroke: var(--rb-${here}); opacity: 0.35` });
  const dots = (values, colour) => values.map((value, i) => {
    return svg("circle", { cx: x(data.medianDims[i]), cy: y(value), r: 3, style: `fill: var(--rb-${colour})` });
  });
  const sideways = svg("g", { transform: `translate(0 ${floor})` });
  axis(sideways, "bottom", x, [1, 4, 16, 64, 256]);
  const up = svg("g", { transform: `translate(${LEFT} 0)` });
  const power = (n) => y(LEAST * 10 ** n);
  axis(up, "left", power, [0, 1, 2, 3], (n) => POWERS[n]);
  const level = (at, name) => {
    return svg("line", { x1: LEFT, x2: LEFT + columns, y1: at, y2: at, style: `stroke: var(--rb-${name})` });
  };
  redrawn(group, () => [
    ...titled(LEFT, 0, wide ? "Weights of the keys, for every d" : "Weights, every d", "a row for each key"),
    svg("rect", { x: LEFT, y: MAP_TOP, width: columns, height: mapHeight,
      style: "fill: none; stroke: var(--rb-grid)" }),
    ...titled(LEFT, mapFloor + 18, wide ? "How far weights move with q·k" : "Softmax gradient",
      wide ? "the size of the gradient; the line is this draw" : "for q·k; line: this draw"),
    ...legend(places),
    ...[1, 2, 3].map((n) => level(power(n), "grid")), level(floor, "muted"),
    band, ...dots(data.medianScaled, 1), ...dots(data.medianRaw, 2),
    cover([LEFT, MAP_TOP, LEFT + columns, mapFloor]),
    cover([LEFT - 4, Math.min(top, floor) - 4, LEFT + columns + 4, floor + 4]), sideways, up,
    svg("text", { x: LEFT + columns / 2, y: floor + 38, "text-anchor": "middle", "font-size": 12, class: "rb-quiet" },
      "head dimension d"),
  ]);
}

// Explains the dots, in the corner next to them.
function legend({ wide, barsLeft, top, floor }) {
  const line = (k, colour, text) => [
    svg("circle", { cx: barsLeft + 5, cy: (top + floor) / 2 - 10 + 24 * k, r: 3, ...inColour(colour) }),
    svg("text", { x: barsLeft + 18, y: (top + floor) / 2 - 6 + 24 * k, "font-size": 13, ...inColour(colour) }, text),
  ];
  const quiet = svg("text", { x: barsLeft, y: (top + floor) / 2 - 30, "font-size": 12, class: "rb-quiet" },
    wide ? `Dots: median of ${DRAWS}` : `dots: ${DRAWS} draws`);
  return [quiet, ...line(0, "1", "with 1/√d"), ...line(1, "2", "without")];
}

function drawCursor(group, { mapFloor, top, floor, x, y }, { gradient }, { dim, scaled }) {
  const line = (from, to) => svg("line", { x1: x(dim), x2: x(dim), y1: from, y2: to,
    style: "stroke: var(--rb-ink); stroke-width: 1.5" });
  redrawn(group, () => [line(MAP_TOP - 4, mapFloor + 4), line(top - 4, floor), svg("circle", { cx: x(dim),
    cy: y(gradient), r: 6.5,
    style: `fill: var(--rb-${scaled ? 1 : 2}); stroke: var(--rb-paper); stroke-width: 2.5` })]);
}

function describe({ weights }, { dim, n_keys: keys, scaled }) {
  const most = Math.max(...weights);
  const how = scaled ? "divided by √d" : "not divided by √d";
  const end = most > 0.95 ? `one of ${keys} keys gets nearly all of the weight`
    : most < 2 / keys ? `${keys} keys share the weight` : `several of ${keys} keys share the weight`;
  return `With d = ${dim}, ${end} when scores are ${how}.`;
}

export default explorer({
  title: "Why attention divides by √d",
  note: "A random query and random keys. Drag the vertical line to raise d, then switch the division on or off.",
  dials,
  compute,
  build,
  stats: ({ weights, gradient }) => [
    ["Largest weight", tidy(Math.max(...weights))],
    ["Size of the gradient", tidy(gradient), "with respect to q·k"],
  ],
  describe,
});
