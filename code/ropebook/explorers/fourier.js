// The score as a function of distance. Each pair contributes a wave, and all waves are in phase at the distance for
// which the key was made. The figure also shows how the pairs' products at one distance add up to the score.

import { COLUMNS, dials, FINE_SAMPLES, MOST_ROWS } from "./fourier.py";
import { cosSinGrid, fourierSum, hundredths, invFreq, lastCall, normals, samplesPerStep } from "./kit/rope.js";
import { allOf, count, grouped, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { html, put, quietText, redrawn, svg } from "./kit/elements.js";
import {
  axis, fitCanvas, fitting, inColour, niceStep, pill, pillHalf, scale, textWidth, titled,
} from "./kit/drawing.js";
import { across } from "./kit/hand.js";
import { outlineOf, paintOutline, setPaints } from "./kit/outlines.js";
import { panels } from "./kit/panels.js";
import { evenly, play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

// |q_i|² for every pair. In draw 0, q consists of ones; in the other draws, it consists of random numbers.
const lastSizes = lastCall((draw, dim) => {
  const q = draw === 0 ? new Float64Array(dim).fill(1) : normals(`fourier ${draw}`, dim);
  return Float64Array.from({ length: dim / 2 }, (_, i) => q[2 * i] ** 2 + q[2 * i + 1] ** 2);
});

// The pairs that are drawn as waves: all of them, or the middle pair of each of MOST_ROWS equal-sized groups.
function spread(pairs) {
  const count = Math.min(pairs, MOST_ROWS);
  return Array.from({ length: count }, (_, k) => Math.floor(((2 * k + 1) * pairs) / (2 * count)));
}

// A pair's wave at the edges of all columns.
function waveAt(theta, size, peak, span) {
  return cosSinGrid(theta, -peak, span / COLUMNS, COLUMNS + 1).cos.map((value) => size * value);
}

// The sum of the first `summed` waves at the distances x = 0 … span from the peak, with `fine` samples per position.
// Each wave is |q_i|² cos xθ_i there, so the sum is symmetric.
const lastSum = lastCall((span, base, dim, summed, draw) => {
  const fine = samplesPerStep(span, FINE_SAMPLES);
  const a = lastSizes(draw, dim).subarray(0, summed);
  const steps = invFreq(dim, base).subarray(0, summed).map((one) => one / fine);
  return { fine, sum: fourierSum(steps, a, new Float64Array(a.length), 0, span * fine + 1) };
});

// The same sum, starting at distance 0.
const lastTotal = lastCall((peak, span, base, dim, summed, draw) => {
  const { fine, sum } = lastSum(span, base, dim, summed, draw);
  const crest = peak * fine;
  const fromZero = new Float64Array(sum.length);
  fromZero.set(sum.subarray(1, crest + 1));
  fromZero.subarray(0, crest).reverse();
  fromZero.set(sum.subarray(0, sum.length - crest), crest);
  return { fine, total: fromZero };
});

// The waves of the displayed pairs at the edges of all columns.
const lastWaves = lastCall((peak, span, base, dim, draw) => {
  const [theta, size] = [invFreq(dim, base), lastSizes(draw, dim)];
  return spread(size.length).map((i) => waveAt(theta[i], size[i], peak, span));
});

function compute({ peak, distance, span, base, dim, summed, draw }) {
  const theta = invFreq(dim, base);
  const size = lastSizes(draw, dim);
  const shown = spread(size.length);
  const products = Array.from(theta, (one, i) => size[i] * Math.cos((distance - peak) * one));
  const total = (values) => values.slice(0, summed).reduce((sum, value) => sum + value, 0);
  return {
    shown,
    size: Array.from(size), // the height of each pair's wave
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
    products, // each pair's product at the chosen distance
    score: total(products),
    highest: total(size), // the score at the peak
    waves: lastWaves(peak, span, base, dim, draw),
    ...lastTotal(peak, span, base, dim, summed, draw), // fine: the number of samples per position; total: the sum
  };
}

// ---- On the page ----

const HEAD = 74; // top of the waves, or of the sum if it is shown alone, with a title above it
const UNDER = 42; // space below an axis
const SECONDS = 12; // the playback time for the whole span

function build(stage, app) {
  play(app, {
    advance: evenly("distance", ({ span }) => span, ({ span }) => span / SECONDS),
    again: { distance: 0 },
  });
  const panelAt = panels(app, ["The waves", "Their sum"], { least: 540 });
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const [pad, crest] = [html("div"), html("div")];
  stage.append(html("div", { style: "position: relative" }, canvas, picture, pad, crest));
  let place;
  let drawn; // the data drawn last
  const handOf = (node, trait, label, more) => across(app, node, dials.find((dial) => dial.trait === trait), {
    label,
    ends: () => [place.from, place.to],
    limits: ({ span }) => [0, span],
    text: (values) => `Δ = ${grouped(values[trait])}, score ${tidy(trait === "peak" ? drawn.highest : drawn.score)}`,
    ...more,
  });
  const showPad = handOf(pad, "distance", "Distance in the picture");
  const showCrest = handOf(crest, "peak", "Peak in the picture", {
    area: false, place: ({ peak }) => [place.x(peak), 0],
  });

  const groups = [0, 1, 2].map(() => picture.appendChild(svg("g")));
  const [showLengths, showAxes] = [lengths, axes].map((make, k) => {
    return lastCall((...given) => redrawn(groups[k], () => make(...given))); // redrawn only when the arguments change
  });

  // The curves don't depend on the chosen distance.
  const showCurves = lastCall((_, __, values, theme) => {
    const context = fitCanvas(canvas, place.width, place.most);
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    if (place.panel !== 1) paintWaves(context, paints, place, drawn, values);
    if (place.panel !== 0) paintSum(context, paints, place, drawn);
  });

  return ({ data, values, width, most, theme }) => {
    drawn = data;
    const panel = panelAt(width, most);
    const wide = width >= 620;
    const from = wide ? 62 : 52;
    const to = Math.round(wide ? width * 0.66 : width * 0.64);
    const numbers = wide && data.shown.length === data.size.length; // whether each bar has its number beside it
    const floor = panel === null ? most - UNDER - 166 : most - UNDER; // lower edge of the waves
    place = {
      wide, width, most, from, to, numbers, panel, floor,
      top: HEAD,
      sumTop: panel === null ? floor + 46 : HEAD,
      sumFloor: most - UNDER,
      left: to + (wide ? 34 : 18), // left edge of the bars
      right: width - (numbers ? 52 : 6),
      x: scale([0, values.span], [from, to]),
      pitch: (floor - HEAD) / data.shown.length,
    };
    const whole = data.size.reduce((sum, one) => sum + one, 0);
    const low = lowest(data, values) / whole; // relative to the sum of all waves
    // The lower end of the range is rounded, so that it rarely changes.
    const range = [-Math.max(1, Math.ceil(-4 * low - 1e-9)) / 4, 1].map((share) => share * whole);
    place.y = scale(range, [place.sumFloor, place.sumTop]);
    place.across = scale(range, [place.left, place.right]);
    showCurves(place, range, { ...values, distance: 0 }, theme);
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    showLengths(place, panel === 1 ? null : data.shown.map((i) => data.wavelengths[i]));
    showAxes(place, range, values.span);
    redrawn(groups[2], () => [...marks(place, data, values), ...peakName(place, values),
      ...(panel === 1 ? [] : [...names(place, data, values), ...bars(place, data, values)]),
      ...(panel === 0 ? [] : [...sumName(place, data, values), ...parts(place, data, values)])]);
    showPad([from, HEAD, to - from, place.sumFloor - HEAD]);
    showCrest([place.x(values.peak) - 22, HEAD - 30, 44, 30]);
  };
}

// The lowest value of the sum along the curve, and of the partial sums over the pairs.
function lowest({ products, total }, { summed }) {
  let least = 0;
  for (const value of total) if (value < least) least = value;
  for (let i = 0, sum = 0; i < products.length && i < summed; i += 1) {
    sum += products[i];
    if (sum < least) least = sum;
  }
  return least;
}

// Formats a length of 6 or more in few characters.
function short(length) {
  return length < 1e5 ? tidy(length) : length.toExponential(1).replace("e+", "e");
}

function stroke(colour, more = "") {
  return { style: `fill: none; stroke: var(--rb-${colour}); ${more}` };
}

// Draws a wave as a line with 16 to 64 points per period. If a period has fewer than 16 columns, draws the band that
// the wave fills, in steps of two columns. There is a crest at `peak`, and another after every `period` columns.
function waveOutline(values, size, peak, period) {
  const at = [];
  const high = [];
  if (period >= 16) {
    const stride = Math.max(1, Math.floor(period / 32));
    for (let k = 0; k < COLUMNS + stride; k += stride) {
      at.push(Math.min(k, COLUMNS));
      high.push(values[at.at(-1)]);
    }
    return { at, low: high, high };
  }
  const low = [];
  const passes = (k, place) => Math.floor((k + 2 - place) / period) >= Math.ceil((k - place) / period);
  for (let k = 0; k < COLUMNS; k += 2) {
    at.push(k + 1);
    high.push(passes(k, peak) ? size : Math.max(values[k], values[k + 2]));
    low.push(passes(k, peak + period / 2) ? -size : Math.min(values[k], values[k + 2]));
  }
  return { at, low, high };
}

function paintWaves(context, paints, { from, to, pitch, top }, data, { peak, span, summed }) {
  setPaints(context, paints);
  context.lineWidth = 1.25;
  const column = span / COLUMNS;
  const unit = (pitch / 2 - 2) / Math.max(...data.shown.map((i) => data.size[i]));
  data.shown.forEach((i, k) => {
    const outline = waveOutline(data.waves[k], data.size[i], peak / column, data.wavelengths[i] / column);
    context.globalAlpha = i < summed ? 1 : 0.3;
    paintOutline(context, outline, [from, (to - from) / COLUMNS], [top + (k + 0.5) * pitch, unit]);
  });
  context.globalAlpha = 1;
}

function paintSum(context, paints, { from, to, y }, { total }) {
  setPaints(context, paints);
  context.lineWidth = 1.5;
  const sum = outlineOf(total, Math.round(to - from));
  paintOutline(context, sum, [from, (to - from) / (total.length - 1)], [y(0), y(0) - y(1)]);
}

// Draws what moves on top of the fixed curves: a dotted line at the peak, a line at the distance, and a dot on every
// curve.
function marks({ x, y, panel, pitch, floor, top, sumTop, sumFloor }, data, { peak, distance, summed }) {
  const upright = (from, to) => [
    svg("path", { d: `M${x(peak)},${from}V${to}`, ...stroke("ink", "stroke-width: 1.25; stroke-dasharray: 2 4") }),
    svg("path", { d: `M${x(distance)},${from}V${to}`, ...stroke("ink", "stroke-width: 1.5") }),
  ];
  const dot = (height, value, r) => svg("circle", { cx: x(distance), cy: hundredths(height), r, class: "rb-dot",
    style: `fill: var(--rb-${value < 0 ? "2" : "1"}); stroke: var(--rb-paper); paint-order: stroke` });
  const unit = (pitch / 2 - 2) / Math.max(...data.shown.map((i) => data.size[i]));
  const dots = data.shown.flatMap((i, k) => (i < summed
    ? [dot(top + (k + 0.5) * pitch - data.products[i] * unit, data.products[i], 3.5)] : []));
  return [
    ...(panel === 1 ? [] : [...upright(top - 4, floor), ...dots]),
    ...(panel === 0 ? [] : [...upright(sumTop - 6, sumFloor), dot(y(data.score), data.score, 5)]),
  ];
}

// Writes the wavelengths on the left.
function lengths({ wide, from, pitch, top }, shown) {
  if (!shown) return [];
  const place = { "text-anchor": "end" };
  return [quietText(from - 8, top - 10, wide ? "length λ" : "λ", place),
    ...shown.map((one, k) => quietText(from - 8, top + (k + 0.5) * pitch + 4, short(one), place))];
}

// Writes the titles of the waves and of the bars.
function names({ wide, width, left }, data, { distance }) {
  const pairs = data.size.length;
  const which = data.shown.length < pairs ? `${data.shown.length} of ${pairs}, fast to slow` : "Fast to slow";
  const coloured = (text, colour) => svg("tspan", inColour(colour), text);
  const [at, room] = [`Δ = ${grouped(distance)}`, width - left];
  const title = fitting([`The products at ${at}`, `At ${at}`, at], room, 14, 600);
  const [adds, takes] = fitting(["Blue adds, orange takes away", "adds, takes away", "adds, takes"], room).split(", ");
  return [
    ...titled(0, 0, wide ? "One wave for each pair of dimensions" : "One wave for each pair",
      which),
    ...titled(left, 0, title, coloured(adds, "1"), ", ", coloured(takes, "2")),
  ];
}

// Labels the dotted line.
function peakName({ from, to, x }, { peak }) {
  const half = pillHalf("peak");
  return pill(Math.min(to + 8 - half, Math.max(from - 4 + half, x(peak))), HEAD - 15, "peak");
}

function sumName({ wide, sumTop, panel }, { size }, { summed, distance }) {
  const pairs = size.length;
  const used = summed === pairs ? allOf(pairs, "pair")
    : `the ${summed === 1 ? "fastest" : `first ${summed}`} of ${pairs}${wide ? " pairs" : ""}`;
  if (panel === 1) return titled(0, 0, `Sum of ${used}: the score`, `The line is at Δ = ${grouped(distance)}`);
  return [svg("text", { x: 0, y: sumTop - 16, "font-size": 14, "font-weight": 600 },
    wide ? `Their sum, the score of ${used}` : `Sum of ${used}: the score`)];
}

// Draws each pair's product as a bar. Each bar begins where the previous one ends, and the last one ends at the score.
function bars(/** @type {any} */ { across, left, right, width, numbers, top, floor }, { products, score }, { summed }) {
  const pitch = (floor - top) / products.length;
  const thick = pitch < 4 ? pitch : Math.min(14, pitch * 0.6);
  const drawn = { 1: "", 2: "" }; // the path of all bars of each colour
  const total = tidyShort(score);
  const half = textWidth(total, 12) / 2;
  let line = `M${across(0)},${top}`;
  let sum = 0;
  products.slice(0, summed).forEach((product, i) => {
    const middle = top + (i + 0.5) * pitch;
    const [start, end] = [hundredths(across(sum)), hundredths(across(sum + product))];
    drawn[product < 0 ? "2" : "1"] += `M${start},${hundredths(middle - thick / 2)}H${end}v${hundredths(thick)}`
      + `H${start}Z`;
    line += `V${hundredths(middle)}H${end}`;
    sum += product;
  });
  return [
    svg("line", { x1: across(0), x2: across(0), y1: top - 4, y2: floor, ...stroke("muted") }),
    svg("path", { d: `${line}V${floor}`, ...stroke("grid") }),
    ...["1", "2"].map((name) => svg("path", { d: drawn[name], class: "rb-bars", ...inColour(name) })),
    svg("path", { d: `M${across(score).toFixed(2)},${floor}l-5,8h10Z`, style: "fill: var(--rb-ink)" }),
    quietText(across(0), top - 10, "0", { "text-anchor": "middle" }),
    quietText(Math.min(width - half, Math.max(left + half, across(score))), floor + 21, total,
      { "text-anchor": "middle" }),
    ...(numbers ? products.map((product, i) => svg("text", {
      x: right + 8, y: top + (i + 0.5) * pitch + 4, "font-size": 12,
      ...inColour(i >= summed ? "grid" : product < 0 ? "2" : "1"),
    }, `${product < 0 ? "−" : "+"}${Math.abs(product).toFixed(2)}`)) : []),
  ];
}

// Draws three bars beside the curve, on the same scale: the sum of the positive products, the sum of the negative ones,
// and the score.
function parts(/** @type {any} */ { left, width, y, sumFloor }, { products, score }, { summed }) {
  const [adds, takes] = sides(products.slice(0, summed));
  const step = (width - 2 - left) / 3;
  const wide = Math.min(34, step * 0.7);
  const small = step < 40 && { "font-size": 11 };
  const look = (k) => ({ "text-anchor": "middle", ...small, ...(k === 2 && { class: "" }) });
  return [[0, adds, "1", "adds"], [adds, score, "2", "takes"], [0, score, score < 0 ? "2" : "1", "score"]]
    .flatMap(([start, end, colour, name], k) => {
      const middle = left + (k + 0.5) * step;
      const [top, bottom] = [Math.min(y(start), y(end)), Math.max(y(start), y(end))];
      const number = k === 1 ? -takes : end;
      return [
        svg("rect", { x: middle - wide / 2, width: wide, y: top, height: bottom - top,
          style: `fill: var(--rb-${colour})`, ...(k < 2 && { opacity: 0.55 }) }),
        quietText(middle, top - 5, tidyShort(number), look(k)),
        quietText(middle, sumFloor + 19, name, look(k)),
      ];
    });
}

function sides(products) {
  return [1, -1].map((sign) => products.reduce((sum, one) => sum + Math.max(0, sign * one), 0));
}

function tidyShort(value) {
  return (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)).replace("-", "−");
}

function axes({ from, to, left, width, panel, sumTop, sumFloor }, [low, high], span) {
  const x = scale([0, span], [from, to]);
  const y = scale([low, high], [sumFloor, sumTop]);
  const [up, across] = [svg("g", { transform: `translate(${from} 0)` }),
    svg("g", { transform: `translate(0 ${sumFloor})` })];
  const step = niceStep(high - low, 4);
  const levels = Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, k) => {
    return (Math.ceil(low / step) + k) * step;
  });
  axis(up, "left", y, levels, (level) => String(level).replace("-", "−"));
  const wide = niceStep(span, (to - from) / 60);
  axis(across, "bottom", x, Array.from({ length: Math.floor(span / wide) + 1 }, (_, k) => k * wide));
  const name = quietText((from + to) / 2, sumFloor + 36, "distance Δ = m − n", { "text-anchor": "middle" });
  const axisOfDistances = [across, name];
  if (panel === 0) return axisOfDistances;
  return [
    svg("path", { d: `M${from},${sumFloor}H${to}`, ...stroke("muted") }),
    svg("path", { d: `M${from},${y(0)}H${to}M${left},${y(0)}H${width - 2}`, ...stroke("grid") }),
    up, ...axisOfDistances,
  ];
}

function describe({ products }, { peak, distance, summed }) {
  const used = products.slice(0, summed);
  const adding = used.filter((one) => one >= 0).length;
  const [pairs, taking] = [used.length, used.length - adding];
  const key = `The key is the query rotated by ${count(peak, "token")}, so every wave has a crest at `
    + `Δ = ${grouped(peak)}.`;
  if (distance === peak) return key;
  const who = `${allOf(pairs, "pair")}${pairs === 1 ? " in the sum" : ""}`;
  const what = adding && taking ? `${adding} of ${pairs} pairs ${adding === 1 ? "adds" : "add"} to the score, and `
    + `${taking} ${taking === 1 ? "takes" : "take"} from it`
    : `${who} ${adding ? "add" : "take"}${pairs === 1 ? "s" : ""} ${adding ? "to" : "from"} the score`;
  return `${key} At Δ = ${grouped(distance)}, ${what}.`;
}

export default explorer({
  title: "The score, one wave for each pair",
  note: "Drag along the waves to choose a distance Δ. Drag “peak” to move the peak.",
  dials,
  compute,
  units: { wavelengths: "tokens" },
  build,
  stats: ({ score, highest }, { distance }) => [
    [`Score at Δ = ${grouped(distance)}`, tidy(score), `at the peak ${tidy(highest)}`],
  ],
  describe,
});
