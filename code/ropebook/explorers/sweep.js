// The score of equal vectors as a function of distance: small panels for ten bases, and a large one for the base that
// the reader chooses.

import { BASES, dials, MOST_LENGTH, NEAR } from "./sweep.py";
import {
  cosSinGrid, countMaxima, fourierSum, fourierSums, invFreq, lastCall, minMaxBand, unfolded,
} from "./kit/rope.js";
import { exact, grouped } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { snap } from "./kit/dials.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, cover, fitCanvas, inColour, OUTLINED, scale, textWidth, titled } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { panels } from "./kit/panels.js";
import { play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

// Σ cos Δθ_i divided by d/2. The first distances are 0 … 127. Each further octave has the distances 64 … 127 multiplied
// by the next power of 2. As in fourierSums, we compute in blocks, here of 16 distances A ± B. For the next octave we
// double A and B. This doubles the angles, so we need not compute any further cosines.
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

// Doubles the angles from index `from` on: cos 2α = 1 − 2 sin² α, sin 2α = 2 sin α cos α.
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

// The first distance at which the curve is below ½. If there is none, the result is −1. All distances count, not only
// the displayed ones. We search ranges that double in length, because most curves soon fall below ½.
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

// The chosen base's curve in steps of an eighth: points [distance, value]. Straight lines between the first whole
// distances would hide its shape.
const firstPart = lastCall((base, dim, length) => {
  const theta = invFreq(dim, base);
  const waves = [{ a: theta.map(() => 1), b: theta.map(() => 0) }];
  const [sums] = fourierSums(theta, waves, 1, 1 / 8, 8 * Math.min(24, length - 2) + 1);
  return Array.from(sums, (sum, k) => [1 + k / 8, sum / theta.length]);
});

function compute({ base, dim, length }) {
  const shown = DISTANCES.filter((distance) => distance < length).length;
  const distances = DISTANCES.slice(0, shown);
  const ten = lastCurves(dim);
  const values = lastKernel(base, dim, length);
  let leastAt = 0;
  for (let k = 1; k < length; k += 1) if (values[k] < values[leastAt]) leastAt = k;
  return {
    distances, // the distances at which the ten curves are sampled
    curves: ten.map(({ curve }) => curve.subarray(0, shown)),
    halves: ten.map(({ half }) => (half < length ? half : -1)), // the distance at which each curve is first below ½
    values, // the curve of the chosen base, at every distance
    belowHalf: values.findIndex((value) => value < 0.5),
    firstNegative: values.findIndex((value) => value < 0),
    least: values[leastAt],
    leastAt,
    maxima: countMaxima(values),
    mean: values.reduce((sum, value) => sum + value, 0) / length,
  };
}

// ---- On the page ----

const TOP = 56; // top of the large curve, below its title
const UNDER = 42; // space below the large curve for its axis
const HEAD = 46; // space above the ten panels for their title
const NAME = 22; // space above each of the ten panels for its name
const WIDE = 620; // from this width on, the ten panels are in rows of five, and below the large curve
const PACE = 1.5; // while the figure plays, the base grows tenfold in this many seconds

// b = 10⁴, b = 5·10⁴, b = 500
function baseName(base) {
  const exponent = Math.floor(Math.log10(base) + 1e-9);
  const leading = Number((base / 10 ** exponent).toPrecision(6));
  if (exponent < 3 || leading % 1) return `b = ${grouped(base)}`;
  const raised = [...String(exponent)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("");
  return `b = ${leading === 1 ? "" : `${leading}·`}10${raised}`;
}

// The rectangles [left, top, width, height] of ten equal panels, in rows of five or two, within [top, bottom].
function tenBoxes(width, top, bottom) {
  const columns = width >= WIDE ? 5 : 2;
  const rows = Math.ceil(BASES.length / columns);
  const gap = columns === 5 ? 10 : 6;
  const across = (width - (columns - 1) * gap) / columns;
  const tall = (bottom - top - (rows - 1) * gap) / rows;
  return BASES.map((_, k) => {
    return [(k % columns) * (across + gap), top + Math.floor(k / columns) * (tall + gap), across, tall];
  });
}

// The base for which the curve first falls below ½ at this distance, interpolated on a logarithmic scale between the
// ten bases.
function baseFor(distance, halves) {
  const reach = halves.map((half) => (half < 0 ? MOST_LENGTH : half));
  const k = reach.findIndex((half) => half >= distance);
  if (k <= 0) return k < 0 ? BASES.at(-1) : BASES[0];
  const share = Math.log(distance / reach[k - 1]) / Math.log(reach[k] / reach[k - 1]);
  return BASES[k - 1] * (BASES[k] / BASES[k - 1]) ** share;
}

function build(stage, app) {
  const dial = dials.find(({ trait }) => trait === "base");
  play(app, {
    advance: ({ base }, seconds) => (base >= BASES.at(-1) ? null
      : { base: snap(dial, Number(Math.min(BASES.at(-1), base * 10 ** (seconds / PACE)).toPrecision(3))) }),
    again: { base: BASES[0] },
  });
  const panelAt = panels(app, ["The chosen base", "Ten bases"], { least: 440, across: WIDE });
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const buttons = BASES.map((base) => {
    const button = html("button", { type: "button", class: "rb-button", "aria-label": `Choose base ${grouped(base)}` });
    app.listen(button, "click", () => app.change({ base }));
    return button;
  });
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, ...buttons, handle));
  const groups = [0, 1, 2, 3].map(() => picture.appendChild(svg("g")));
  const [showNames, showAxes, showBases, showMarks] = [names, axes, baseNames, markNames].map((make, k) => {
    return lastCall((...given) => redrawn(groups[k], () => make(...given))); // redrawn only when the arguments change
  });
  const [wholeOf, smallOf, sampledOf] = [0, 1, 2].map(() => lastCall(pixelsOf));
  let drawn; // { main, values, halves, place }: the large curve and where it falls below ½, as drawn last
  const showHandle = hand(app, handle, {
    label: "The base, by where its score falls below half",
    cursor: "ew-resize",
    place: () => drawn.place,
    at(x) {
      const { main: [left, , width], length } = drawn;
      const distance = (length - 1) ** Math.min(1, Math.max(0, (x - left) / width));
      return { base: snap(dial, Number(baseFor(Math.max(1, distance), lastCurves(drawn.dim).map(({ half }) => half))
        .toPrecision(3))) };
    },
    ...ofDial(app, dial),
  });

  return ({ data, values: { base, dim, length }, width, most, theme }) => {
    const panel = panelAt(width, most);
    const floor = panel === null ? Math.round(most * 0.4) : most - UNDER;
    const tenTop = panel === null ? floor + UNDER + 20 : 0;
    const main = [46, TOP, width - 54, floor - TOP];
    const boxes = tenBoxes(width, tenTop + HEAD, most);
    const context = fitCanvas(canvas, width, most);
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    const bandOf = (values, { at, edges, resolved }) => ({ at, resolved, ...minMaxBand(values, edges) });
    const half = data.belowHalf < 0 ? length - 1 : data.belowHalf; // where the ring is
    const y = scale([-1, 1], [main[1] + main[3], main[1]]);
    const x = scale([1, length - 1], [main[0], main[0] + main[2]], true);
    drawn = { main, length, dim, place: [x(half), y(data.values[half])] };
    if (panel !== 1) {
      const big = paintPanel(context, paints, main, length);
      big.frame([-1, 0, 0.5, 1]);
      big.mark(data.belowHalf, 0.5, "ink");
      big.mark(data.firstNegative, 0, "2");
      big.curve(bandOf(data.values, wholeOf(false, main[2], length)), "1", 1.5, 1, firstPart(base, dim, length));
      big.knob(drawn.place);
      showHandle([drawn.place[0] - 22, drawn.place[1] - 22, 44, 44]);
    } else put(handle, { style: "display: none" });
    const inner = boxes[0][2] - 16;
    const chosenBand = bandOf(data.values, smallOf(false, inner, length));
    const shared = sampledOf(true, inner, length);
    boxes.forEach(([left, top, across, tall], k) => {
      if (panel === 0) return put(buttons[k], { style: "display: none" });
      const chosen = BASES[k] === base;
      const small = paintPanel(context, paints, [left + 8, top + NAME, inner, tall - NAME - 5], length);
      small.frame([-1, 0, 1]);
      if (!chosen) small.curve(chosenBand, "muted", 1, 0.35);
      small.mark(data.halves[k], 0.5, "ink");
      small.curve(bandOf(data.curves[k], shared), "1", 1.25);
      return put(buttons[k], {
        "aria-pressed": chosen,
        style: `position: absolute; left: ${left}px; top: ${top}px; width: ${across}px; height: ${tall}px; padding: 0; `
          + `border-color: var(--rb-${chosen ? "1" : "grid"})`,
      });
    });
    showNames(width, base, panel === null ? [0, tenTop] : panel ? [-1, 0] : [0, -1]);
    showAxes(main, length, panel !== 1);
    showMarks(main, length, panel === 1 ? {} : data);
    showBases(panel === 0 ? [] : boxes, base, data.halves);
  };
}

// Writes each panel's base above it.
function baseNames(boxes, chosen, halves) {
  return boxes.flatMap(([left, top, width, height], k) => {
    const reach = halves[k] < 0 ? "" : `½ at ${grouped(halves[k])}`;
    const name = baseName(BASES[k]);
    const room = textWidth(name, 13, 600) + textWidth(reach, 12) + 24 < width;
    return [
      cover([left + 4, top + NAME - 3, left + width - 4, top + height - 4]),
      svg("text", { x: left + 8, y: top + 16, "font-size": 13, "font-weight": 600,
        ...(BASES[k] === chosen && inColour("1")) }, name),
      svg("text", { x: left + width - 8, y: top + 16, "font-size": 12, "text-anchor": "end",
        class: "rb-tells" },
        room ? reach : reach.slice("½ at ".length)),
    ];
  });
}

// Paints a panel with distances 1 … length − 1 on a logarithmic axis, and values −1 … 1.
function paintPanel(context, paints, /** @type {number[]} */ [left, top, width, height], length) {
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
    // Draws the curve as a line where its oscillations are distinguishable, and beyond that as the band that they fill.
    // `early` has points [distance, value] that replace the first part of the line.
    curve({ at, low, high, resolved }, colour, lineWidth, alpha = 1, early = []) {
      context.lineJoin = "round";
      context.lineWidth = lineWidth;
      context.fillStyle = paints[colour];
      context.strokeStyle = paints[colour];
      const [above, below] = [envelope(high, 1), envelope(low, -1)];
      context.globalAlpha = 0.45 * alpha;
      context.beginPath();
      for (let k = resolved; k < at.length; k += 1) context.lineTo(left + at[k], y(above[k]));
      for (let k = at.length - 1; k >= resolved; k -= 1) context.lineTo(left + at[k], y(below[k]));
      context.fill();
      context.globalAlpha = alpha;
      context.beginPath();
      for (const [distance, value] of early) context.lineTo(x(distance), y(value));
      for (let k = 0; k <= resolved && k < at.length; k += 1) {
        if (!early.length || left + at[k] > x(early.at(-1)[0])) context.lineTo(left + at[k], y(high[k]));
      }
      context.stroke();
      for (const edge of [above, below]) {
        context.beginPath();
        for (let k = resolved; k < at.length; k += 1) context.lineTo(left + at[k], y(edge[k]));
        context.stroke();
      }
      context.globalAlpha = 1;
    },
    knob([across, up]) {
      context.beginPath();
      context.arc(across, up, 7, 0, 2 * Math.PI);
      context.fillStyle = paints.paper;
      context.fill();
      context.strokeStyle = paints.ink;
      context.lineWidth = 2.5;
      context.stroke();
    },
  };
}

// The minimum (sign −1) or maximum (sign 1) of each value and its neighbours, smoothed. It shows the extent of
// oscillations that are too fast to draw. No value is outside, because each of the averaged extremes is as far out.
function envelope(values, sign) {
  const last = values.length - 1;
  const extremes = new Float64Array(last + 1);
  for (let k = 0; k <= last; k += 1) {
    let found = values[k];
    for (let j = Math.max(0, k - 2); j <= k + 2 && j <= last; j += 1) {
      if (sign * values[j] > sign * found) found = values[j];
    }
    extremes[k] = found;
  }
  return extremes.map((_, k) => {
    let sum = 0;
    for (let j = Math.max(0, k - 2); j <= k + 2 && j <= last; j += 1) sum += extremes[j];
    return sum / (Math.min(k, 2) + 1 + Math.min(last - k, 2));
  });
}

// Divides a curve's samples, from distance 1 on, among the pixels of a panel with this width. `edges` contains the
// index of each pixel's first sample and, at the end, the index after the last sample. `at` contains each pixel's
// coordinate. `resolved` is the index of the first pixel with several samples, or of the last pixel.
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
  const bounds = [...edges, k];
  const shared = bounds.findIndex((edge, b) => b > 0 && edge - bounds[b - 1] > 1);
  return { edges: bounds, at, resolved: shared < 0 ? at.length - 1 : Math.max(0, shared - 1) };
}

// Writes titles above the large curve and the ten panels, if they are visible.
function names(width, base, [main, ten]) {
  const texts = [];
  if (main >= 0) {
    texts.push(...titled(0, main, `The chosen base: ${baseName(base)}`,
      `The score as a share of its peak${width < WIDE - 180 ? "" : ". Filled: swings too fast to draw"}`));
  }
  if (ten >= 0) {
    texts.push(...titled(0, ten, "Ten bases: choose one",
      width < WIDE ? "Grey: the chosen base. " : "Blue: this base. Grey: the chosen base. ",
      svg("tspan", inColour("ink"), "Line: first below ½")));
  }
  return texts;
}

// Names the two marks of the large curve beside their lines, in two rows, so that neither name can hide the other. If
// the curve doesn't fall below ½, the ring waits at the right edge, and its name is below it.
function markNames([left, top, width, height], length, { belowHalf, firstNegative }) {
  const x = scale([1, length - 1], [left, left + width], true);
  const half = belowHalf < 0 ? ["not yet below ½", length - 1, "ink", 0.75 * height - 22]
    : ["first below ½", belowHalf, "ink", 24];
  return [half, ["first below 0", firstNegative, "2", 7]].flatMap(([text, distance, colour, up]) => {
    if (!(distance >= 0)) return [];
    const fits = x(distance) + 6 + textWidth(text, 12, 600) < left + width;
    return [svg("text", { x: x(distance) + (fits ? 6 : -6), y: top + height - up, "font-size": 12, "font-weight": 600,
      "text-anchor": fits ? "start" : "end", ...OUTLINED, ...inColour(colour) }, text)];
  });
}

function axes([left, top, width, height], length, shown) {
  if (!shown) return [];
  const [up, across] = [svg("g", { transform: `translate(${left} 0)` }),
    svg("g", { transform: `translate(0 ${top + height})` })];
  axis(up, "left", scale([-1, 1], [top + height, top]), [-1, 0, 0.5, 1], (level) => {
    return level === 0.5 ? "½" : String(level).replace("-", "−");
  });
  const x = scale([1, length - 1], [left, left + width], true);
  axis(across, "bottom", x, [1, 10, 100, 1000].filter((tick) => tick < length));
  return [up, across, svg("text", {
    x: left + width / 2, y: top + height + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
  }, "distance Δ in tokens, logarithmic")];
}

function describe({ belowHalf, firstNegative, mean }, { base, dim, length }) {
  const half = belowHalf < 0 ? "stays above half of its peak"
    : `first falls below half of its peak at Δ = ${grouped(belowHalf)}`;
  const zero = firstNegative < 0 ? "is never negative" : `below 0 at Δ = ${grouped(firstNegative)}`;
  const still = dim === 2 ? " There is only one pair, so the score is a single cosine at any base." : base > 1 ? ""
    : " All pairs rotate at the same speed, so the score is a single cosine, which never dies down.";
  return `At distances up to ${grouped(length - 1)}, the score ${half} and ${zero}. `
    + `On average it is ${Math.abs(mean) < 5e-4 ? `${mean ? "about " : ""}0` : `${exact(mean)} of its peak`}.${still}`;
}

export default explorer({
  title: "One base after another",
  note: "The ring marks where the score first falls below half of its peak. Drag it, or pick one of the ten bases.",
  dials,
  compute,
  units: {
    distances: "tokens", halves: "tokens", belowHalf: "tokens", firstNegative: "tokens", leastAt: "tokens",
  },
  build,
  stats: () => [],
  describe,
});
