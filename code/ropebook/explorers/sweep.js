// The score of equal vectors against distance for ten bases side by side, and large for one base of choice.

import { BASES, dials, MOST_LENGTH, NEAR } from "./sweep.py";
import { cosSinGrid, fourierSum, invFreq, lastCall, minMaxBand, unfolded } from "./kit/rope.js";
import { count, exact, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { html, put, svg } from "./kit/elements.js";
import { axis, fitCanvas, inColour, scale, titled } from "./kit/drawing.js";
import { explorer } from "./kit/mount.js";

// Σ cos Δθ_i over d/2 at the distances 0 … 127, then in each octave at twice the distances of the one before. As in
// fourierSums in blocks, of 16 distances A ± B; and twice A and twice B are twice the angles, which need no further
// cosine.
function octaveCurve(dim, base, octaves) {
  const half = 8;
  const middles = NEAR / (2 * half);
  const size = (NEAR / 2) + octaves * (NEAR / 4);
  const [even, odd] = [new Float64Array(size), new Float64Array(size)];
  const [cosA, sinA] = [new Float64Array(middles), new Float64Array(middles)];
  const [cosB, sinB] = [new Float64Array(half), new Float64Array(half)];
  for (const theta of invFreq(dim, base)) {
    cosSinGrid(theta, half - 0.5, 2 * half, middles, cosA, sinA);
    cosSinGrid(theta, 0.5, 1, half, cosB, sinB);
    for (let k = 0, from = 0; k < size; from = middles / 2) {
      if (k) doubleAngles(cosA, sinA, from);
      if (k) doubleAngles(cosB, sinB, 0);
      for (let at = from; at < middles; at += 1) {
        const c = cosA[at];
        const s = sinA[at];
        for (let within = 0; within < half; within += 1, k += 1) {
          even[k] += c * cosB[within];
          odd[k] -= s * sinB[within];
        }
      }
    }
  }
  return unfolded(even, odd, half).map((sum) => sum / (dim / 2));
}

// From place `from` on: cos 2α = 1 − 2 sin² α, sin 2α = 2 sin α cos α.
function doubleAngles(cos, sin, from) {
  for (let k = from; k < cos.length; k += 1) {
    const s = sin[k];
    sin[k] *= 2 * cos[k];
    cos[k] = 1 - 2 * s * s;
  }
}

const OCTAVES = Math.log2(MOST_LENGTH / NEAR);
const lastCurves = lastCall((dim) => BASES.map((base) => {
  const curve = octaveCurve(dim, base, OCTAVES);
  return { curve, half: firstHalf(curve, dim, base) };
}));

// The first distance at which the curve is below ½, among all distances, not only those of the curve; −1 if there is
// none. In stretches that double: most curves are below it soon.
function firstHalf(curve, dim, base) {
  const early = curve.subarray(0, NEAR).findIndex((value) => value < 0.5);
  if (early >= 0) return early;
  const theta = invFreq(dim, base);
  for (let start = NEAR; start < MOST_LENGTH; start *= 2) {
    const sums = fourierSum(theta, theta.map(() => 1), theta.map(() => 0), start, start);
    const found = sums.findIndex((sum) => sum < 0.5 * theta.length);
    if (found >= 0) return start + found;
  }
  return -1;
}

const DISTANCES = Array.from({ length: NEAR + OCTAVES * (NEAR / 2) }, (_, k) => {
  return k < NEAR ? k : (NEAR / 2 + (k % (NEAR / 2))) * 2 ** (Math.floor(k / (NEAR / 2)) - 1);
});

const lastKernel = lastCall((base, dim, length) => {
  const theta = invFreq(dim, base);
  return fourierSum(theta, theta.map(() => 1), theta.map(() => 0), 0, length).map((sum) => sum / theta.length);
});

function countMaxima(values) {
  let found = 0;
  for (let k = 1; k + 1 < values.length; k += 1) {
    if (values[k] > values[k - 1] && values[k] >= values[k + 1]) found += 1;
  }
  return found;
}

function compute({ base, dim, length }) {
  const shown = DISTANCES.filter((distance) => distance < length).length;
  const distances = DISTANCES.slice(0, shown);
  const ten = lastCurves(dim);
  const values = lastKernel(base, dim, length);
  let leastAt = 0;
  for (let k = 1; k < length; k += 1) if (values[k] < values[leastAt]) leastAt = k;
  return {
    distances, // of the ten curves
    curves: ten.map(({ curve }) => curve.subarray(0, shown)),
    halves: ten.map(({ half }) => (half < length ? half : -1)), // first below ½
    values, // of the chosen base, at every distance
    belowHalf: values.findIndex((value) => value < 0.5),
    firstNegative: values.findIndex((value) => value < 0),
    least: values[leastAt],
    leastAt,
    maxima: countMaxima(values),
    mean: values.reduce((sum, value) => sum + value, 0) / length,
  };
}

// ---- On the page ----

const TOP = 66;
const TALL = 190;
const TEN_TOP = TOP + TALL + 56;

// b = 10⁴, b = 500
function baseName(base) {
  const exponent = Math.round(Math.log10(base));
  const raised = [...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return exponent >= 3 && base === 10 ** exponent ? `b = 10${raised}` : `b = ${base}`;
}

// Ten panels of the same size in rows of five or two: [left, top, width, height] of the k-th, and where they end.
function panels(width) {
  const columns = width >= 620 ? 5 : 2;
  const gap = width >= 620 ? 12 : 10;
  const across = (width - (columns - 1) * gap) / columns;
  const tall = width >= 620 ? 122 : 100;
  const boxes = BASES.map((_, k) => {
    return [(k % columns) * (across + gap), TEN_TOP + 52 + Math.floor(k / columns) * (tall + gap), across, tall];
  });
  return { boxes, bottom: boxes.at(-1)[1] + tall };
}

function build(stage, { alt, change, listen }) {
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": alt, style: "position: absolute; inset: 0" });
  const buttons = BASES.map((base) => {
    const button = html("button", { type: "button", class: "rb-button", "aria-label": `Choose base ${base}` });
    listen(button, "click", () => change({ base }));
    return button;
  });
  stage.append(html("div", { style: "position: relative" }, canvas, picture, ...buttons));
  const groups = [0, 1, 2].map(() => picture.appendChild(svg("g")));
  const [showNames, showAxes, showBases] = [names, axes, baseNames].map((make, k) => {
    return lastCall((...given) => groups[k].replaceChildren(...make(...given))); // they seldom change
  });
  const [wholeOf, smallOf, sampledOf] = [0, 1, 2].map(() => lastCall(pixelsOf));

  return ({ data, values: { base, dim, length }, width, theme }) => {
    const { boxes, bottom } = panels(width);
    const context = fitCanvas(canvas, width, bottom);
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    put(picture, { width, height: bottom, viewBox: `0 0 ${width} ${bottom}` });
    const main = [46, TOP, width - 54, TALL];
    const draw = (box) => paintPanel(context, paints, box, length);
    const big = draw(main);
    big.frame([-1, 0, 0.5, 1]);
    big.mark(data.belowHalf, 0.5, "2");
    big.mark(data.firstNegative, 0, "4");
    const bandOf = (values, pixels) => ({ at: pixels.at, ...minMaxBand(values, pixels.edges) });
    big.curve(bandOf(data.values, wholeOf(false, main[2], length)), "1", 1.5);
    const inner = boxes[0][2] - 16;
    const chosenBand = bandOf(data.values, smallOf(false, inner, length));
    const shared = sampledOf(true, inner, length);
    boxes.forEach(([left, top, across, tall], k) => {
      const chosen = BASES[k] === base;
      const small = draw([left + 8, top + 28, inner, tall - 36]);
      small.frame([-1, 0, 1]);
      if (!chosen) small.curve(chosenBand, "muted", 1, 0.35);
      small.mark(data.halves[k], 0.5, "2");
      small.curve(bandOf(data.curves[k], shared), "1", 1.25);
      put(buttons[k], {
        "aria-pressed": chosen,
        style: `position: absolute; left: ${left}px; top: ${top}px; width: ${across}px; height: ${tall}px; padding: 0; `
          + `border-color: var(--rb-${chosen ? "1); box-shadow: inset 0 0 0 1px var(--rb-1" : "grid"})`,
      });
    });
    showNames(width, base, dim);
    showAxes(main, length);
    showBases(boxes, base);
  };
}

// Over each of the ten panels its base.
function baseNames(boxes, chosen) {
  return boxes.map(([left, top], k) => svg("text", {
    x: left + 8, y: top + 19, "font-size": 13, "font-weight": 600, ...(BASES[k] === chosen && inColour("1")),
  }, baseName(BASES[k])));
}

// Distances 1 … length − 1 by equal ratios, values −1 … 1.
function paintPanel(context, paints, [left, top, width, height], length) {
  const x = scale([1, length - 1], [left, left + width], true);
  const y = scale([-1, 1], [top + height, top]);
  const line = (from, to, colour, lineWidth) => {
    context.beginPath();
    context.moveTo(...from);
    context.lineTo(...to);
    context.strokeStyle = colour;
    context.lineWidth = lineWidth;
    context.stroke();
  };
  return {
    frame(levels) {
      for (const level of levels) {
        line([left, y(level)], [left + width, y(level)], level ? paints.grid : paints.muted, 1);
      }
    },
    mark(place, level, colour) {
      if (place >= 0) line([x(place), y(level)], [x(place), top + height], paints[colour], 2);
    },
    curve({ at, low, high }, colour, lineWidth, alpha = 1) {
      context.beginPath();
      for (let k = 0; k < at.length; k += 1) context.lineTo(left + at[k], y(high[k]));
      for (let k = at.length - 1; k >= 0; k -= 1) context.lineTo(left + at[k], y(low[k]));
      context.globalAlpha = alpha;
      context.lineJoin = "round";
      context.lineWidth = lineWidth;
      context.fillStyle = paints[colour];
      context.strokeStyle = paints[colour];
      context.fill();
      context.stroke();
      context.globalAlpha = 1;
    },
  };
}

// What the samples of a curve in a panel of this width share, from distance 1 on: for each pixel its first sample, and
// at the end how many there are; and where that lies.
function pixelsOf(sampled, width, length) {
  const x = scale([1, length - 1], [0, width], true);
  const [edges, at] = [[], []];
  let k = 1;
  for (let pixel = -1; k < length; k += 1) {
    const distance = sampled ? DISTANCES[k] : k;
    if (!(distance < length)) break;
    const place = x(distance);
    if (Math.floor(place) === pixel) continue;
    pixel = Math.floor(place);
    edges.push(k);
    at.push(place);
  }
  return { edges: [...edges, k], at };
}

function names(width, base, dim) {
  const coloured = (text, colour) => svg("tspan", inColour(colour), text);
  const [title, note] = titled(0, 0, `The chosen base: ${baseName(base)}`, "");
  note.append(width < 620 ? "First " : `K(Δ)/K(0), d = ${dim}. First `, coloured("below ½", "2"), " and ",
    coloured("below 0", "4"));
  const [ten, tenNote] = titled(0, TEN_TOP, "Ten bases: choose one", "");
  tenNote.append(width < 620 ? "Grey: the chosen one. First " : "Blue: this base, grey: the chosen one. First ",
    coloured("below ½", "2"));
  return [title, note, ten, tenNote];
}

function axes([left, top, width, height], length) {
  const [up, across] = [svg("g", { transform: `translate(${left} 0)` }),
    svg("g", { transform: `translate(0 ${top + height})` })];
  axis(up, "left", scale([-1, 1], [top + height, top]), [-1, 0, 0.5, 1], (level) => {
    return level === 0.5 ? "½" : String(level).replace("-", "−");
  });
  const x = scale([1, length - 1], [left, left + width], true);
  axis(across, "bottom", x, [1, 10, 100, 1000].filter((tick) => tick < length));
  return [up, across, svg("text", {
    x: left + width / 2, y: top + height + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
  }, "distance Δ, by equal ratios")];
}

function describe({ belowHalf, firstNegative, maxima }, { base, dim, length }) {
  const half = belowHalf < 0 ? "stays above half of its peak" : `falls below half of its peak at Δ = ${belowHalf}`;
  const zero = firstNegative < 0 ? "is never negative" : `below 0 at Δ = ${firstNegative}`;
  const range = `at distances up to ${length - 1}`;
  const still = base === 1 ? " All pairs turn alike: one cosine, which does not fall at all." : "";
  return `With base ${base} and ${count(dim / 2, "pair")}, ${range}, the score ${half} and ${zero}. `
    + `On the way it has ${maxima === 1 ? "1 local maximum" : `${maxima} local maxima`}.${still}`;
}

export default explorer({
  title: "One base after the other",
  note: "Turn the base, or choose one of the ten. The larger it is, the farther the score reaches before it falls.",
  dials,
  compute,
  build,
  stats: ({ belowHalf, firstNegative, least, leastAt, mean }, { length }) => [
    ["First below ½", belowHalf < 0 ? "nowhere" : `Δ = ${belowHalf}`],
    ["First below 0", firstNegative < 0 ? "nowhere" : `Δ = ${firstNegative}`],
    ["Least", tidy(least), `at Δ = ${leastAt}`],
    ["Mean", exact(mean), `over Δ < ${length}`],
  ],
  describe,
});
