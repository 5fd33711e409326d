// A cache of keys while the base grows with the text. Each key keeps the rotation that it received when it arrived.

import { dials, MOST_KEYS, TOP_ERROR } from "./timelapse.py";
import { hundredths, invFreq, lastCall } from "./kit/rope.js";
import { allOf, capital, count, exact, grouped, tidy } from "./kit/text.js";
import { css, mix } from "./kit/colours.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import {
  axis, fitCanvas, fitting, lined, niceStep, OUTLINED, packCells, scale, textWidth, titled,
} from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { stepButtons } from "./kit/knobs.js";
import { panels } from "./kit/panels.js";
import { evenly, play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

// The number by which dynamic NTK divides the last pair's frequency at a given length.
function effectiveScale(length, { trained_length, factor }) {
  return 1 + factor * (Math.max(1, length / trained_length) - 1);
}

function baseAt(length, dials) {
  return dials.base * effectiveScale(length, dials) ** (dials.dim / (dials.dim - 2));
}

// The positions 0 … length − 1, or MOST_KEYS of them, spread evenly from the first to the last.
function sampledKeys(length) {
  const size = Math.min(length, MOST_KEYS);
  return Array.from({ length: size }, (_, k) => Math.floor((k * (length - 1)) / Math.max(1, size - 1)));
}

function rms(values) {
  return Math.sqrt(values.reduce((sum, value) => sum + value * value, 0) / values.length);
}

// For each key n, the root mean square over pairs of |e^{iε} − 1| = 2 |sin ε/2|, where ε = n(θ_i(n) − θ_i(now)) is the
// angle by which the cached key is rotated too far. For random q and k this is the error of the score relative to its
// standard deviation.
function scoreErrors(keys, dials) {
  const theta = invFreq(dials.dim, dials.base);
  const pairs = theta.length;
  // The frequency of pair i is θ_i times the multiplier S^(−i/(pairs − 1)). Each pair's multiplier is therefore that of
  // the previous pair times S^(−1/(pairs − 1)).
  const step = (length) => effectiveScale(length, dials) ** (-1 / (pairs - 1));
  const now = new Float64Array(pairs);
  for (let i = 0, slower = 1, by = step(dials.length); i < pairs; i += 1, slower *= by) now[i] = slower;
  return keys.map((key) => {
    let [sum, slower] = [0, 1];
    const by = step(key + 1);
    for (let i = 0; i < pairs; i += 1, slower *= by) {
      const half = Math.sin((key * theta[i] * (slower - now[i])) / 2);
      sum += 4 * half * half;
    }
    return Math.sqrt(sum / pairs);
  });
}

function compute(dials) {
  const keys = sampledKeys(dials.length);
  const errors = scoreErrors(keys, dials);
  return {
    scale: effectiveScale(dials.length, dials),
    bases: Array.from({ length: dials.length }, (_, n) => baseAt(n + 1, dials)), // each token's base
    keys,
    errors, // the errors of the query's scores with these keys
    error: rms(errors),
  };
}

// ---- On the page ----

const CELLS = 50; // top of the tokens
const LEGEND = 30; // height of the legend below the tokens
const PLOT = 42; // space below the curve for the axis
const SECONDS = 8; // playback time for a text of the maximum length

function build(stage, app) {
  play(app, {
    advance: evenly("length", ({ room }) => room, ({ room }) => room / SECONDS),
    again: { length: 1 },
  });
  const steps = stepButtons(app, "length", "token", () => [1, app.values().room]);
  app.tools.append(steps.row);
  const panelAt = panels(app, ["The keys", "Their errors"], { least: 400 });
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const pad = html("div");
  const whole = html("div", {}, canvas, picture, pad);
  stage.append(whole);
  let lengthAt; // a function from a point in the picture to the text's length
  let error; // the error of the scores, as drawn last
  const showPad = hand(app, pad, {
    label: "Length of the text: left and right to take away or add a token",
    area: true,
    at: (x, y) => ({ length: Math.min(app.values().room, Math.max(1, lengthAt(x, y))) }),
    ...ofDial(app, dials.find(({ trait }) => trait === "length"), {
      limits: ({ room }) => [1, room],
      text: ({ length }) => `${count(length, "token")}, error ${written(error)}`,
    }),
  });

  let context;
  let painted; // the number of tokens that are painted as part of the text; −1: nothing has been painted
  const startTokens = lastCall((width, height) => {
    context = fitCanvas(canvas, width, height);
    painted = -1;
  });

  return ({ data, values, width, most, theme }) => {
    steps.show();
    error = data.error;
    const panel = panelAt(width, most);
    const height = Math.min(most, 560);
    const [cells, errors] = [panel !== 1, panel !== 0];
    const deep = panel === null ? Math.round(height * 0.34) : height - CELLS - LEGEND; // height of the tokens
    const head = panel === null ? CELLS + deep + LEGEND + 12 : 0; // top of the curve's title
    const packed = packCells(values.room, [0, CELLS, width, deep], 0);
    const highest = baseAt(values.room, values);
    const paints = lastPalette(theme);
    startTokens(width, height, panel, { ...values, length: 0 }, theme);
    if (cells) {
      const changed = painted < 0 ? [0, values.room]
        : [Math.min(painted, values.length), Math.max(painted, values.length)];
      paintTokens(context, packed, changed, data, values, highest, paints);
      painted = values.length;
    }
    const [from, to, floor, top] = [40, width - 14, height - PLOT, head + 54];
    const plot = {
      floor, from, to, top,
      x: scale([0, values.room - 1], [from, to]),
      y: scale([0, TOP_ERROR], [floor, top]),
    };
    put(whole, { style: `position: relative; height: ${height}px` });
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    redrawn(picture, () => [
      ...(cells ? [queryMark(packed, values), ...keyTitle(values),
        ...legend([width, CELLS + deep + 18], values, highest, paints)] : []),
      ...(errors ? [...errorTitle(head), ...curve(plot, data, values)] : []),
    ]);
    lengthAt = cells ? (x, y) => 1 + nearestCell(packed, values.room, x, y)
      : (x) => 1 + Math.round(((x - from) / (to - from)) * (values.room - 1));
    showPad(cells ? [0, CELLS, width, deep] : [from, top - 8, to - from, floor - top + 8]);
  };
}

// The index, among the first `many` cells, of the one closest to a point. We search for the row first.
function nearestCell({ centre }, many, x, y) {
  let [nearest, least] = [0, Infinity];
  for (let n = 0; n < many; n += 1) {
    const [cx, cy] = centre(n);
    const far = Math.abs(cy - y) * 1e4 + Math.abs(cx - x);
    if (far < least) [nearest, least] = [n, far];
  }
  return nearest;
}

// The colours for the trained base and for larger bases. The larger the base, the deeper the colour.
const lastPalette = lastCall((theme) => {
  const larger = Array.from({ length: 65 }, (_, k) => css(mix(theme.paper, theme["2"], 0.3 + (0.7 * k) / 64)));
  return {
    of(base, lowest, highest) {
      if (base === lowest) return this.trained;
      return larger[Math.round((64 * Math.log(base / lowest)) / Math.log(highest / lowest))];
    },
    trained: css(mix(theme.paper, theme["1"], 0.7)),
    empty: css(mix(theme.paper, theme.grid, 0.4)),
    larger,
  };
});

function gapOf(cell) {
  return cell >= 12 ? 2 : cell >= 4 ? 1 : 0.5;
}

// Paints the tokens in the half-open range; the others are left as they are.
function paintTokens(context, { cell, centre }, /** @type {number[]} */ range, { bases }, dials, highest, paints) {
  const side = cell - gapOf(cell);
  for (let n = range[0]; n < range[1]; n += 1) {
    const [x, y] = centre(n);
    context.fillStyle = n < dials.length ? paints.of(bases[n], dials.base, highest) : paints.empty;
    context.clearRect(x - side / 2, y - side / 2, side, side);
    context.fillRect(x - side / 2, y - side / 2, side, side);
  }
}

function queryMark({ cell, centre }, { length }) {
  const [x, y] = centre(length - 1);
  const edge = cell - gapOf(cell) + Math.max(1, gapOf(cell));
  return svg("rect", { x: x - edge / 2, y: y - edge / 2, width: edge, height: edge,
    style: "fill: none; stroke: var(--rb-ink); stroke-width: 2" });
}

function keyTitle({ length }) {
  return titled(0, 0, `Cached keys of a text of ${count(length, "token")}`, "The query is outlined");
}

function errorTitle(y) {
  return titled(0, y, "Error of the score with each key", "In units of the scores’ spread. √2: unrelated");
}

// Explains the colours.
function legend(/** @type {number[]} */ [width, y], { room, base, trained_length }, highest, paints) {
  const text = (x, words) => svg("text", { x, y, "font-size": 12, class: "rb-quiet" }, words);
  const first = `base ${tidy(base)}, up to L`;
  const second = 18 + textWidth(first, 12) + 12;
  const known = svg("rect", { x: 0, y: y - 11, width: 12, height: 12, style: `fill: ${paints.trained}` });
  if (room <= trained_length) return [known, text(18, first)];
  const shades = [0, 16, 32, 48, 64].map((k, at) => {
    return svg("rect", { x: second + 8 * at, y: y - 11, width: 8.5, height: 12, style: `fill: ${paints.larger[k]}` });
  });
  const last = [`then rising, to ${tidy(highest)} at token ${grouped(room)}`, `to ${tidy(highest)}`];
  return [known, text(18, first), ...shades, text(second + 47, fitting(last, width - second - 47))];
}

function curve({ from, to, floor, top, x, y }, { keys, errors }, { room, trained_length, length }) {
  const levels = [0, 1, Math.SQRT2];
  const left = svg("g", { transform: `translate(${from} 0)` });
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  axis(left, "left", y, levels, (error) => (error === Math.SQRT2 ? "√2" : String(error)));
  const step = niceStep(room, (to - from) / 60);
  axis(bottom, "bottom", x, Array.from({ length: Math.ceil(room / step) }, (_, k) => k * step));
  const upright = (position, name, style) => [
    svg("path", { d: `M${x(position).toFixed(1)},${top - 2}V${floor}`, ...style }),
    svg("text", {
      x: x(position) + (x(position) + 14 < to ? 5 : -5 - textWidth(name, 12)), y: top + 8, "font-size": 12,
      class: "rb-quiet", ...OUTLINED,
    }, name),
  ];
  const line = keys.map((key, k) => `${hundredths(x(key))},${hundredths(y(errors[k]))}`).join("L");
  return [
    svg("path", { d: levels.map((error) => `M${from},${y(error).toFixed(1)}H${to}`).join(""), ...lined("grid", 1) }),
    left, bottom,
    svg("path", { d: `M${from},${floor}H${to}`, ...lined("muted", 1) }),
    ...(trained_length < room ? upright(trained_length, "L", lined("muted", 1.5, "stroke-dasharray: 1 5")) : []),
    svg("path", { d: `M${line}`, ...lined("2", 2, "stroke-linejoin: round") }),
    svg("circle", { cx: x(length - 1), cy: floor, r: 5, style: "fill: var(--rb-ink)" }),
    svg("text", {
      x: (from + to) / 2, y: floor + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
    }, "position of the key"),
  ];
}

// Two decimals, or more if the error would look like 0.
function written(error) {
  return error && error < 0.005 ? tidy(error) : exact(error, 2);
}

function stats({ scale, error }, { length, trained_length }) {
  return [
    ["Error of the scores", written(error), "times their spread, for random q and k"],
    ["Scale", tidy(scale), ""],
    ["Bases in the cache", grouped(Math.max(1, length - trained_length + 1)), `for ${count(length, "token")}`],
  ];
}

function describe({ bases }, { length, trained_length, base }) {
  if (length <= trained_length) {
    const all = capital(allOf(length, "token"));
    const are = length === 1 ? " is" : ", including the query, are";
    return `${all}${are} rotated with the trained base, ${tidy(base)}, so every score is right.`;
  }
  const older = length - trained_length; // the number of keys whose base differs from the query's
  return `The query, token ${grouped(length)}, is rotated with base ${tidy(bases.at(-1))}, but the `
    + `${grouped(length - 1)} keys before it keep `
    + `${older === 1 ? "the trained base" : `${grouped(older)} older bases`}, so its scores are wrong.`;
}

export default explorer({
  title: "The key cache as the text grows",
  note: "Dynamic NTK raises the base with every token beyond L, but a cached key keeps the base it was rotated with. "
    + "Drag the end of the text.",
  dials,
  compute,
  units: { keys: "tokens" },
  build,
  stats,
  describe,
});
