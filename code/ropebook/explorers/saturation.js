// Why scores are divided by √d: without the division, the softmax picks a single key as vectors get longer.

import { dials, DRAWS, MEDIAN_DIMS, MOST_DIMS, MOST_KEYS } from "./saturation.py";
import { lastCall, normals, softmax, softmaxGradientNorm } from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { html, put, quietText, redrawn, svg } from "./kit/elements.js";
import { axis, inColour, lined, NARROW, OUTLINED, scale, textWidth, titled } from "./kit/drawing.js";
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
  const scores = scoresOf(draw, keys, dim, scaled);
  const weights = softmax(scores);
  return {
    scores,
    weights,
    gradient: gradientOf(weights, dim, scaled),
    medianDims: MEDIAN_DIMS,
    medianScaled: medians(keys).scaled,
    medianRaw: medians(keys).raw,
  };
}

// ---- On the page ----

const TOP = 40; // top of the bars
const POWERS = ["≤ 10⁻⁴", "10⁻³", "10⁻²", "10⁻¹"];
const LEAST = 1e-4; // smaller gradients are drawn at the lower edge

// Bars for the weights at one d. Beside them (on a narrow stage, below them) is the size of the gradient against d.
function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const [bars, curves] = [0, 1].map(() => picture.appendChild(svg("g")));
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, handle));
  let places;
  const grip = across(app, handle, dials.find(({ trait }) => trait === "dim"), {
    label: "Head dimension",
    ends: () => [places.left, places.right],
    valueAt: (share) => Math.round(MOST_DIMS ** share),
  });
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let last = app.initial;
  return ({ data, values, width, most, jump }) => {
    places = placesOf(width, most);
    const { height, left, right, top, floor } = places;
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    // The bars glide if other scores make a leap. When d grows, they move by small steps anyway.
    const leaps = !jump && !calm.matches && (values.scaled !== last.scaled || values.draw !== last.draw);
    const before = leaps ? lengthsOf(bars) : [];
    redrawn(bars, () => barsOf(places, data, values));
    if (leaps) glide(bars, before);
    redrawn(curves, () => curvesOf(places, data, values));
    grip([left - 8, top - 4, right - left + 14, floor - top + 8]);
    last = values;
  };
}

const barsIn = (group) => [...group.querySelectorAll(".rb-weight")];
const lengthsOf = (group) => barsIn(group).map((bar) => `${bar.getAttribute("width")}px`);

// Lets the bars grow or shrink from their lengths before to the present ones.
function glide(group, before) {
  const now = lengthsOf(group);
  barsIn(group).forEach((bar, n) => {
    if (n in before) bar.animate([{ width: before[n] }, { width: now[n] }], { duration: 350, easing: "ease-out" });
  });
}

// The edges of the bars' panel, and of the plot of the gradient.
function placesOf(width, most) {
  const wide = width >= NARROW;
  const height = Math.min(most, 420);
  const base = wide ? height - 42 : Math.round(0.38 * height); // where the bars' panel ends
  return {
    wide, height, base,
    start: 8,
    end: wide ? Math.round(0.54 * width) : width - 14,
    left: wide ? Math.round(0.54 * width) + 88 : 50,
    right: width - 8,
    head: wide ? 0 : base + 26, // top of the title above the plot
    top: wide ? 62 : base + 26 + 54,
    floor: height - 42,
  };
}

function barsOf({ wide, start, end, base }, { weights }, { dim, n_keys: keys, scaled }) {
  const x = scale([0, 1], [start, end]);
  const pitch = (base - TOP) / keys;
  const gap = Math.min(8, pitch * 0.2);
  const middle = (n) => TOP + (n + 0.5) * pitch;
  const winner = weights.indexOf(Math.max(...weights));
  const word = tidy(weights[winner]);
  const inside = x(weights[winner]) + 10 + textWidth(word, 13, 600) > end + 10;
  const over = inside && pitch - gap < 18; // there is no room for a word in the bar or next to it
  const bottom = svg("g", { transform: `translate(0 ${base})` });
  axis(bottom, "bottom", x, wide ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]);
  const upright = (share, colour, more = "") => svg("path", { d: `M${x(share)},${TOP}V${base}`,
    ...lined(colour, 1, `stroke-linecap: butt; ${more}`) });
  return [
    svg("text", { x: 0, y: 14, "font-size": 14, "font-weight": 600 }, `At d = ${dim}: the weight of each key`),
    upright(0.5, "grid"), upright(1, "grid"),
    ...weights.map((weight, n) => svg("rect", { class: "rb-weight", x: start, width: x(weight) - start,
      y: TOP + n * pitch + gap / 2, height: pitch - gap, rx: Math.min(3, pitch / 6),
      style: `fill: var(--rb-${scaled ? 1 : 2})` })),
    upright(1 / keys, "ink", "stroke-dasharray: 2 4"), upright(0, "muted"), bottom,
    quietText(x(1 / keys), TOP - 8, "equal weights", { "text-anchor": keys < 8 ? "middle" : "start" }),
    svg("text", { x: x(weights[winner]) + (inside ? -7 : 7), y: middle(winner) + (over ? -pitch / 2 - 3 : 4.5),
      "font-size": 13, "font-weight": 600, "text-anchor": inside ? "end" : "start",
      ...(inside && !over ? inColour("paper") : OUTLINED) }, word),
  ];
}

function curvesOf({ left, right, head, top, floor }, data, { dim, scaled }) {
  const { gradient, medianDims, medianScaled, medianRaw } = data;
  const x = scale([1, MOST_DIMS], [left, right], true);
  const power = scale([LEAST, 0.5], [floor, top], true);
  const y = (size) => power(Math.max(size, LEAST));
  const sideways = svg("g", { transform: `translate(0 ${floor})` });
  axis(sideways, "bottom", x, [1, 4, 16, 64, 256]);
  const up = svg("g", { transform: `translate(${left} 0)` });
  axis(up, "left", (n) => y(LEAST * 10 ** n), floor - top > 70 ? [0, 1, 2, 3] : [0, 2], (n) => POWERS[n]);
  const dots = (sizes, colour) => sizes.map((size, i) => svg("circle", { cx: x(medianDims[i]), cy: y(size), r: 3,
    ...inColour(colour) }));
  const level = (at, colour) => svg("path", { d: `M${left},${at}H${right}`, ...lined(colour, 1) });
  const end = textWidth("divided by √d", 13) + 4;
  const over = x(dim) > left + 4 && x(dim) < left + 8 + end; // the line that can be dragged would run through the names
  const start = over && x(dim) + 10 + end < right ? x(dim) + 10 : left + 8;
  const named = (at, colour, text) => svg("text", { x: start, y: at, "font-size": 13, ...OUTLINED,
    ...inColour(colour) }, text);
  const above = medianDims.findLastIndex((d) => x(d) < start + end);
  // Lower, if an orange dot would be in the way.
  const under = medianDims.map((d, i) => [x(d), y(medianRaw[i])]).filter(([at]) => at > start - 4 && at < start + end);
  let below = y(medianScaled[above]) + 18;
  while (below < floor - 8 && under.some(([, at]) => Math.abs(at - below + 4) < 12)) below += 4;
  return [
    ...titled(left - 50, head, "Size of the gradient", `small dots: median of ${DRAWS} draws`),
    ...[1, 2, 3].map((n) => level(y(LEAST * 10 ** n), "grid")), level(floor, "muted"),
    svg("path", { d: `M${x(dim)},${top - 4}V${floor}`, ...lined("ink", 1.5) }),
    ...dots(medianRaw, 2), ...dots(medianScaled, 1),
    named(y(Math.max(...medianRaw)) - 8, 2, "not divided"), named(below, 1, "divided by √d"),
    sideways, up, quietText((left + right) / 2, floor + 36, "head dimension d", { "text-anchor": "middle" }),
    svg("circle", { cx: x(dim), cy: y(gradient), r: 6.5,
      style: `fill: var(--rb-${scaled ? 1 : 2}); stroke: var(--rb-paper); stroke-width: 2.5` }),
  ];
}

function describe({ weights }, { dim, n_keys: keys, scaled }) {
  const most = Math.max(...weights);
  const how = scaled ? "division by √d" : "no division by √d";
  const end = most > 0.5 ? `one of ${keys} keys gets ${most > 0.95 ? "nearly all" : "most"} of the weight`
    : most < 2 / keys ? `${keys} keys share the weight` : `several of ${keys} keys share the weight`;
  return `With d = ${dim} and ${how}, ${end}.`;
}

export default explorer({
  title: "Why attention divides by √d",
  note: "A random query and random keys. Drag the vertical line to raise d, then switch the division on or off.",
  dials,
  compute,
  build,
  stats: ({ gradient }) => [["Size of the gradient", tidy(gradient), "with respect to q·k"]],
  describe,
});
