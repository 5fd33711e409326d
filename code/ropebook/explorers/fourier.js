// The score as a function of distance: one wave per pair, all in phase at the distance that the key is made for, and
// the products of the pairs at one distance, adding up to the score.

import { COLUMNS, dials, FINE_SAMPLES, MOST_ROWS } from "./fourier.py";
import { cosSinGrid, evenEdges, fourierSum, hundredths, invFreq, lastCall, minMaxBand, normals } from "./kit/rope.js";
import { count, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { html, put, svg } from "./kit/elements.js";
import { axis, fitCanvas, inColour, niceStep, scale, textWidth, titled } from "./kit/drawing.js";
import { explorer } from "./kit/mount.js";

const MOST_BUCKETS = 360; // of curves with more samples than pixels

// |q_i|² of every pair: ones for draw 0, else random numbers.
const lastSizes = lastCall((draw, dim) => {
  const q = draw === 0 ? new Float64Array(dim).fill(1) : normals(`fourier ${draw}`, dim);
  return Float64Array.from({ length: dim / 2 }, (_, i) => q[2 * i] ** 2 + q[2 * i + 1] ** 2);
});

// The pairs that are drawn as waves: all, or the middle one of each of MOST_ROWS parts of the same length.
function spread(pairs) {
  const count = Math.min(pairs, MOST_ROWS);
  return Array.from({ length: count }, (_, k) => Math.floor(((2 * k + 1) * pairs) / (2 * count)));
}

// The wave of a pair at the ends of all columns.
function waveAt(theta, size, peak, span) {
  return cosSinGrid(theta, -peak, span / COLUMNS, COLUMNS + 1).cos.map((value) => size * value);
}

// Seen from the peak, every wave is |q_i|² cos xθ_i, the same on both sides: the sum of the first `summed` for
// x = 0 … span, with `fine` samples to a step.
const lastSum = lastCall((span, base, dim, summed, draw) => {
  const fine = span > FINE_SAMPLES ? 1 : 1 << (31 - Math.clz32(FINE_SAMPLES / span)); // a power of 2: no rounding
  const a = lastSizes(draw, dim).subarray(0, summed);
  const steps = invFreq(dim, base).subarray(0, summed).map((one) => one / fine);
  return { fine, sum: fourierSum(steps, a, new Float64Array(a.length), 0, span * fine + 1) };
});

function compute({ peak, distance, span, base, dim, summed, draw }) {
  const theta = invFreq(dim, base);
  const size = lastSizes(draw, dim);
  const shown = spread(size.length);
  const products = Array.from(theta, (one, i) => size[i] * Math.cos((distance - peak) * one));
  const total = (values) => values.slice(0, summed).reduce((sum, value) => sum + value, 0);
  const { fine, sum } = lastSum(span, base, dim, summed, draw);
  const crest = peak * fine;
  const fromZero = new Float64Array(sum.length);
  fromZero.set(sum.subarray(1, crest + 1));
  fromZero.subarray(0, crest).reverse();
  fromZero.set(sum.subarray(0, sum.length - crest), crest);
  return {
    shown,
    size: Array.from(size), // the height of each pair's wave
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
    products, // of each pair at the distance
    score: total(products),
    highest: total(size), // at the peak
    waves: shown.map((i) => waveAt(theta[i], size[i], peak, span)), // of the pairs shown, at the ends of all columns
    fine, // samples of the sum per step
    total: fromZero,
  };
}

// ---- On the page ----

const TOP = 74; // of the waves
const FLOOR = TOP + 320;
const SUM_TOP = FLOOR + 50;
const SUM_FLOOR = SUM_TOP + 132;
const HEIGHT = SUM_FLOOR + 42;

function build(stage, { alt, change, listen, values }) {
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": alt, style: "position: absolute; inset: 0" });
  const help = "Distance: left and right to move along the waves, Enter to put the peak here";
  const pad = html("div", { role: "slider", tabindex: 0, "aria-label": help, "aria-valuemin": 0 });
  stage.append(html("div", { style: "position: relative" }, canvas, picture, pad));
  const go = (distance) => change({ distance: Math.min(values().span, Math.max(0, Math.round(distance))) });
  const follow = (event) => {
    const box = pad.getBoundingClientRect();
    go(((event.clientX - box.left) / box.width) * values().span);
  };
  listen(pad, "pointerdown", (event) => {
    if (event.button !== 0) return;
    pad.setPointerCapture(event.pointerId);
    follow(event);
  });
  listen(pad, "pointermove", (event) => pad.hasPointerCapture(event.pointerId) && follow(event));
  listen(pad, "dblclick", () => change({ peak: values().distance }));
  listen(pad, "keydown", (event) => {
    const { distance, span } = values();
    const page = Math.max(1, Math.round(span / 16));
    const goal = {
      ArrowLeft: distance - 1, ArrowDown: distance - 1, ArrowRight: distance + 1, ArrowUp: distance + 1,
      PageDown: distance - page, PageUp: distance + page, Home: 0, End: span,
    }[event.key];
    if (goal === undefined && event.key !== "Enter") return;
    event.preventDefault();
    if (goal === undefined) change({ peak: distance });
    else go(goal);
  });

  const groups = [0, 1, 2].map(() => picture.appendChild(svg("g")));
  const [showLengths, showAxes] = [lengths, axes].map((make, k) => {
    return lastCall((...given) => groups[k].replaceChildren(...make(...given))); // they seldom change
  });

  return ({ data, values: dials, width, theme }) => {
    const wide = width >= 620;
    const from = wide ? 62 : 46;
    const to = Math.round(wide ? width * 0.66 : width * 0.64);
    const numbers = wide && data.shown.length === data.size.length; // a number beside each bar
    const place = {
      wide, width, from, to, numbers,
      left: to + (wide ? 34 : 18), // of the bars
      right: width - (numbers ? 52 : 2),
      x: scale([0, dials.span], [from, to]),
      pitch: (FLOOR - TOP) / data.shown.length,
    };
    const whole = data.size.reduce((sum, one) => sum + one, 0);
    const low = lowest(data, dials) / whole; // as a share of the sum of all waves, in steps that seldom change
    const range = [-Math.max(1, Math.ceil(-4 * low - 1e-9)) / 4, 1].map((share) => share * whole);
    place.y = scale(range, [SUM_FLOOR, SUM_TOP]);
    place.across = scale(range, [place.left, place.right]);
    const context = fitCanvas(canvas, width, HEIGHT);
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    paintCurves(context, paints, place, data, dials);
    put(picture, { width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}` });
    showLengths(place, data.shown.map((i) => data.wavelengths[i]));
    showAxes(place, range, dials.span);
    groups[2].replaceChildren(...names(place, data, dials), ...bars(place, data, dials), ...parts(place, data, dials));
    put(pad, {
      style: `position: absolute; left: ${from}px; top: ${TOP}px; width: ${to - from}px; cursor: ew-resize; `
        + `height: ${SUM_FLOOR - TOP}px; touch-action: pan-y`,
      "aria-valuenow": dials.distance, "aria-valuemax": dials.span,
      "aria-valuetext": `Δ = ${dials.distance}, score ${tidy(data.score)}`,
    });
  };
}

// The lowest that the sum comes, along the curve or on the way through the pairs.
function lowest({ products, total }, { summed }) {
  let least = 0;
  for (const value of total) if (value < least) least = value;
  for (let i = 0, sum = 0; i < products.length && i < summed; i += 1) {
    sum += products[i];
    if (sum < least) least = sum;
  }
  return least;
}

// A length of 6 or more in few characters.
function short(length) {
  return length < 1e5 ? tidy(length) : length.toExponential(1).replace("e+", "e");
}

function quietText(x, y, text, more = {}) {
  return svg("text", { x, y, "font-size": 12, class: "rb-quiet", ...more }, text);
}

function stroke(colour, more = "") {
  return { style: `fill: none; stroke: var(--rb-${colour}); ${more}` };
}

// A wave as a line with 16 to 64 points to a period; or where a period has fewer than 16 columns, as the band that it
// fills, in parts of two columns. Its crests lie at `peak` and every `period` columns from there.
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

// The curve of the sum, from samples at even distances: a line, or where samples share a pixel a band.
function sumOutline(values, pixels) {
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
function paintOutline(context, { at, low, high }, [left, pitch], [middle, unit]) {
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

function paintCurves(context, paints, place, data, { peak, distance, span, summed }) {
  const { from, to, x, y, pitch } = place;
  const most = Math.max(...data.shown.map((i) => data.size[i]));
  const reach = pitch / 2 - 2;
  const signs = context.createLinearGradient(0, -1, 0, 1); // a step at 0
  for (const [at, name] of [[0, "pos"], [0.5, "pos"], [0.5, "neg"], [1, "neg"]]) signs.addColorStop(at, paints[name]);
  context.fillStyle = signs;
  context.strokeStyle = signs;
  context.lineJoin = "round";
  context.lineWidth = 1.25;
  const column = span / COLUMNS;
  data.shown.forEach((i, k) => {
    const outline = waveOutline(data.waves[k], data.size[i], peak / column, data.wavelengths[i] / column);
    context.globalAlpha = i < summed ? 1 : 0.3;
    paintOutline(context, outline, [from, (to - from) / COLUMNS], [TOP + (k + 0.5) * pitch, reach / most]);
  });
  context.globalAlpha = 1;
  context.lineWidth = 1.5;
  const sum = sumOutline(data.total, Math.round(to - from));
  paintOutline(context, sum, [from, (to - from) / (data.total.length - 1)], [y(0), y(0) - y(1)]);

  context.strokeStyle = paints.ink;
  context.fillStyle = paints.ink;
  for (const [top, bottom] of [[TOP - 4, FLOOR], [SUM_TOP - 6, SUM_FLOOR]]) {
    context.setLineDash([2, 4]);
    context.beginPath();
    context.moveTo(x(peak), top);
    context.lineTo(x(peak), bottom);
    context.stroke();
    context.setLineDash([]);
    context.fillRect(x(distance) - 0.75, top, 1.5, bottom - top);
  }
  const dotAt = (middle, value, radius) => {
    context.fillStyle = value < 0 ? paints.neg : paints.pos;
    context.strokeStyle = paints.zero;
    context.beginPath();
    context.arc(x(distance), middle, radius, 0, 2 * Math.PI);
    context.stroke();
    context.fill();
  };
  data.shown.filter((i) => i < summed).forEach((i, k) => {
    dotAt(TOP + (k + 0.5) * pitch - (data.products[i] / most) * reach, data.products[i], 3.5);
  });
  dotAt(y(data.score), data.score, 5);
}

// The wavelengths on the left.
function lengths({ wide, from, pitch }, shown) {
  const place = { "text-anchor": "end" };
  return [quietText(from - 8, TOP - 10, wide ? "length λ" : "λ", place),
    ...shown.map((one, k) => quietText(from - 8, TOP + (k + 0.5) * pitch + 4, short(one), place))];
}

// Titles, and what the upright lines are.
function names({ wide, width, from, to, x, left }, data, { peak, distance, summed }) {
  const pairs = data.size.length;
  const sum = Math.min(summed, pairs);
  const which = data.shown.length < pairs ? `${data.shown.length} of ${pairs}, fast to slow` : "Fast to slow";
  const all = pairs === 1 ? "one pair" : sum === pairs ? `all ${pairs}` : `the first ${sum} of ${pairs}`;
  const coloured = (text, colour) => svg("tspan", inColour(colour), text);
  const full = `The products at Δ = ${distance}`;
  const heading = titled(left, 0, textWidth(full, 14, 600) < width - left ? full : `At Δ = ${distance}`, "");
  heading[1].append(...(wide ? [coloured("Blue adds", "pos"), ", ", coloured("orange takes away", "neg")]
    : [coloured("adds", "pos"), ", ", coloured("takes", "neg")]));
  const half = textWidth("peak", 12) / 2;
  const at = Math.min(to - half, Math.max(from + half, x(peak)));
  return [
    ...titled(0, 0, wide ? "One wave for each pair of dimensions" : "One wave for each pair",
      wide ? `${which}; every one has a crest at Δ = ${peak}` : which),
    ...heading,
    quietText(at, TOP - 10, "peak", { "text-anchor": "middle" }),
    svg("text", { x: 0, y: FLOOR + 30, "font-size": 14, "font-weight": 600 },
      wide ? `The score: the sum of ${all}` : `Sum of ${all}: the score`),
  ];
}

// The product of each pair as a bar that begins where the one before it ended; the last ends at the score.
function bars(/** @type {any} */ { across, right, numbers }, { products, score }, { summed }) {
  const pitch = (FLOOR - TOP) / products.length;
  const thick = pitch < 4 ? pitch : Math.min(14, pitch * 0.6);
  const drawn = { pos: "", neg: "" };
  let line = `M${across(0)},${TOP}`;
  let sum = 0;
  products.slice(0, summed).forEach((product, i) => {
    const middle = TOP + (i + 0.5) * pitch;
    const [start, end] = [hundredths(across(sum)), hundredths(across(sum + product))];
    drawn[product < 0 ? "neg" : "pos"] += `M${start},${hundredths(middle - thick / 2)}H${end}v${hundredths(thick)}`
      + `H${start}Z`;
    line += `V${hundredths(middle)}H${end}`;
    sum += product;
  });
  return [
    svg("line", { x1: across(0), x2: across(0), y1: TOP - 4, y2: FLOOR, ...stroke("muted") }),
    svg("path", { d: `${line}V${FLOOR}`, ...stroke("grid") }),
    ...["pos", "neg"].map((name) => svg("path", { d: drawn[name], class: "rb-bars", ...inColour(name) })),
    svg("path", { d: `M${across(score).toFixed(2)},${FLOOR}l-5,8h10Z`, style: "fill: var(--rb-ink)" }),
    ...(numbers ? products.map((product, i) => svg("text", {
      x: right + 8, y: TOP + (i + 0.5) * pitch + 4, "font-size": 12,
      ...inColour(i >= summed ? "grid" : product < 0 ? "neg" : "pos"),
    }, `${product < 0 ? "−" : "+"}${Math.abs(product).toFixed(2)}`)) : []),
  ];
}

// What adds, what takes away and what is left, upright beside the curve and on its scale.
function parts(/** @type {any} */ { left, width, y }, { products, score }, { summed }) {
  const [adds, takes] = sides(products.slice(0, summed));
  const step = (width - 2 - left) / 3;
  const wide = Math.min(34, step * 0.7);
  const small = step < 40 && { "font-size": 11 };
  const look = (k) => ({ "text-anchor": "middle", ...small, ...(k === 2 && { class: "" }) });
  return [[0, adds, "pos", "adds"], [adds, score, "neg", "takes"], [0, score, score < 0 ? "neg" : "pos", "score"]]
    .flatMap(([start, end, colour, name], k) => {
      const middle = left + (k + 0.5) * step;
      const [top, bottom] = [Math.min(y(start), y(end)), Math.max(y(start), y(end))];
      const number = k === 1 ? -takes : end;
      return [
        svg("rect", { x: middle - wide / 2, width: wide, y: top, height: bottom - top,
          style: `fill: var(--rb-${colour})`, ...(k < 2 && { opacity: 0.55 }) }),
        quietText(middle, top - 5, tidyShort(number), look(k)),
        quietText(middle, SUM_FLOOR + 19, name, look(k)),
      ];
    });
}

function sides(products) {
  return [1, -1].map((sign) => products.reduce((sum, one) => sum + Math.max(0, sign * one), 0));
}

function tidyShort(value) {
  return (Math.abs(value) >= 100 ? value.toFixed(0) : value.toFixed(1)).replace("-", "−");
}

function axes({ from, to, left, width }, [low, high], span) {
  const x = scale([0, span], [from, to]);
  const y = scale([low, high], [SUM_FLOOR, SUM_TOP]);
  const [up, across] = [svg("g", { transform: `translate(${from} 0)` }),
    svg("g", { transform: `translate(0 ${SUM_FLOOR})` })];
  const step = niceStep(high - low, 4);
  const levels = Array.from({ length: Math.floor(high / step) - Math.ceil(low / step) + 1 }, (_, k) => {
    return (Math.ceil(low / step) + k) * step;
  });
  axis(up, "left", y, levels, (level) => String(level).replace("-", "−"));
  const wide = niceStep(span, (to - from) / 60);
  axis(across, "bottom", x, Array.from({ length: Math.floor(span / wide) + 1 }, (_, k) => k * wide));
  return [
    svg("path", { d: `M${from},${SUM_FLOOR}H${to}`, ...stroke("muted") }),
    svg("path", { d: `M${from},${y(0)}H${to}M${left},${y(0)}H${width - 2}`, ...stroke("grid") }),
    up, across, quietText((from + to) / 2, SUM_FLOOR + 36, "distance Δ = m − n", { "text-anchor": "middle" }),
  ];
}

function describe({ products, score, highest }, { peak, distance, summed }) {
  const used = products.slice(0, summed);
  const [adds, takes] = sides(used);
  const adding = used.filter((one) => one >= 0).length;
  const [pairs, taking] = [used.length, used.length - adding];
  const key = `The key is the query turned by ${count(peak, "place")}: at Δ = ${peak} every wave has its `
    + `crest, and the score is as high as it can be, ${tidy(highest)}. `;
  if (distance === peak) return `${key}Here nothing is taken away: every pair adds all it has.`;
  return `${key}At Δ = ${distance}, ${adding} of ${pairs} pairs ${adding === 1 ? "adds" : "add"} ${tidy(adds)}, `
    + `${taking} ${taking === 1 ? "takes" : "take"} ${tidy(takes)} away, and ${tidy(score)} is left.`;
}

export default explorer({
  title: "The score, one wave for each pair",
  note: "Drag along the waves to choose a distance Δ. A double click, or Enter, puts the peak there.",
  dials,
  compute,
  build,
  stats: ({ products, score, highest }, { distance, summed }) => [
    [`Score at Δ = ${distance}`, tidy(score)],
    ["At the peak", tidy(highest), "Σ |qᵢ|²"],
    ["Pairs that add", String(products.slice(0, summed).filter((one) => one >= 0).length),
      `of ${Math.min(summed, products.length)}`],
  ],
  describe,
});
