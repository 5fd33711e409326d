// The binary digits of a position, which are square waves, and the pairs of its sinusoidal encoding, which are smooth.

import { BITS, dials, FINE_SAMPLES, MOST_POSITION, MOST_WAVES } from "./clocks.py";
import {
  cosSinGrid, evenEdges, invFreq, lastCall, minMaxBand, samplesPerStep, sinusoidalEncoding, turnedOn,
} from "./kit/rope.js";
import { exact, grouped, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, fitCanvas, inColour, niceStep, packCells, scale, titled } from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { hand, ofDial } from "./kit/hand.js";
import { stepButtons } from "./kit/knobs.js";
import { explorer } from "./kit/mount.js";
import { panels } from "./kit/panels.js";
import { playPositions } from "./kit/play.js";

// The pairs that are drawn as waves: all of them, or MOST_WAVES pairs spread evenly from the first to the last.
function spread(pairs) {
  if (pairs <= MOST_WAVES) return Array.from({ length: pairs }, (_, i) => i);
  return Array.from({ length: MOST_WAVES }, (_, k) => Math.floor((k * (pairs - 1)) / (MOST_WAVES - 1)));
}

// The rows for a window. Row j contains digit j of every position, and the sinusoid drawn inside it.
function digitWaves(start, span, first, fine) {
  const squares = Array.from({ length: BITS }, () => new Uint8Array(span));
  const bitWaves = squares.map((square, j) => {
    for (let k = 0; k < span; k += 1) square[k] = ((start + k) >> j) & 1;
    // The step is negative because −sin x = sin −x.
    return cosSinGrid((-2 * Math.PI) / 2 ** (j + 1), first + 0.5, 1 / fine, span * fine).sin;
  });
  return { squares, bitWaves };
}

const lastDigits = lastCall(digitWaves);

// The hands at a position, which need not be whole.
function handsAt({ position, base, dim }) {
  const turns = Array.from(invFreq(dim, base), (one) => (position * one) / (2 * Math.PI));
  return {
    turns, // each pair's angle in turns, counted from position 0
    encoding: sinusoidalEncoding(position, dim, base), // each pair's sine and cosine: its hand's tip
    young: turns.filter((turn) => turn < 1).length, // the number of pairs without a full turn
  };
}

function compute({ position, base, dim, span }) {
  const theta = invFreq(dim, base);
  const start = Math.max(0, position - Math.floor(span / 2));
  const fine = samplesPerStep(span, FINE_SAMPLES);
  const first = start - 0.5 + 0.5 / fine; // if `fine` is 1, the samples are at the positions themselves
  const shown = spread(theta.length);
  return {
    start, // the window's first position
    fine, // the number of samples per position
    shown,
    digits: Array.from({ length: BITS }, (_, j) => (position >> j) & 1),
    ...lastDigits(start, span, first, fine),
    waves: shown.map((i) => cosSinGrid(theta[i], first, 1 / fine, span * fine).sin),
    ...handsAt({ position, base, dim }),
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
  };
}

// ---- On the page ----

const TOP = 68; // top of the waves
const NAMES = 64; // width of the columns on either side of the waves
const VALUES = 50;
const PACE = 5; // speed in positions per second
const GLIDE = 1000 / PACE; // the time, in ms, in which the hands reach a position nearby, as during playback
const NEARBY = 4; // over more positions, the fastest hands would only flicker

function build(stage, app) {
  const shown = panels(app, ["Digits", "Sinusoids", "Hands"], { least: 520, first: 2 });
  playPositions(app, MOST_POSITION, PACE);
  const steps = stepButtons(app, "position", "position", () => [0, MOST_POSITION], "m");
  app.tools.append(steps.row);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const [still, hands] = [0, 1].map(() => picture.appendChild(svg("g")));
  const glide = glider(app, { takes: GLIDE, nearby: NEARBY });
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, handle));
  let clocks; // { area, cell, centre }: the layout of the hands
  let held = 0; // the hand that is being dragged
  const grip = hand(app, handle, {
    label: "The clock hands",
    area: true,
    at(x, y, event) {
      const { position, base, dim } = app.values();
      const away = (i) => Math.hypot(x - clocks.centre(i)[0], y - clocks.centre(i)[1]);
      if (event.type !== "pointermove") {
        held = Array.from({ length: dim / 2 }, (_, i) => i).reduce((best, i) => (away(i) < away(best) ? i : best), 0);
      }
      const [left, top] = clocks.centre(held);
      const theta = base ** ((-2 * held) / dim);
      return { position: turnedOn(position, theta, Math.atan2(x - left, top - y) - position * theta, MOST_POSITION) };
    },
    ...ofDial(app, dials.find(({ trait }) => trait === "position")),
  });

  return ({ data, values, width, most, theme, jump }) => {
    steps.show();
    const only = shown(width, most);
    const wide = only === null;
    const height = Math.min(most, 564);
    const floor = height - (wide ? 234 : 44); // lower edge of the waves
    const panel = wide ? (width - 40) / 2 : width;
    const context = fitCanvas(canvas, width, height);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    const top = wide ? floor + 60 : 0;
    const area = /** @type {[number, number, number, number]} */ ([0, top + 46, width, height - top - 46]);
    clocks = { area, ...packCells(values.dim / 2, area, values.dim <= 32 ? 16 : 0, wide ? 96 : 132) };
    const parts = [
      () => drawDigits(context, paints, { x: 0, width: panel, floor }, data, values),
      () => drawWaves(context, paints, { x: wide ? panel + 40 : 0, width: panel, floor }, data, values),
    ];
    redrawn(still, () => parts.flatMap((draw, i) => (wide || i === only ? draw() : [])));
    glide([values.position], jump, ([position]) => {
      const shows = wide || only === 2;
      if (shows) context.clearRect(0, top, width, height - top);
      redrawn(hands, () => (shows ? drawClocks(context, paints, top, clocks, handsAt({ ...values, position })) : []));
    });
    handle.hidden = !wide && only !== 2;
    grip(area);
  };
}

// Draws what both panels have in common: a title, columns of names and values, the axis, and a line at the position.
// panel.draw(k, x, y, buckets) draws row k; x(position) and y(−1 … 1) return pixel coordinates. panel.row(k) contains
// the row's name and value.
function drawPanel(context, paints, { x: left, width, floor: end }, { start, fine }, { position, span }, panel) {
  const { title, note, heads, rows } = panel;
  const [from, to] = [left + NAMES, left + width - VALUES];
  const x = scale([start - 0.5, start + span - 0.5], [from, to]);
  const pitch = (end - TOP) / rows;
  const middle = (k) => TOP + (k + 0.5) * pitch;
  const reach = Math.min(30, pitch) / 2 - 2.5;
  context.lineJoin = "bevel"; // the joins are too small to be visible
  context.save();
  context.beginPath();
  context.rect(from, TOP, to - from, end - TOP);
  context.clip();
  const samples = span * fine;
  const columns = Math.round(to - from);
  const edges = evenEdges(samples, samples > columns ? columns >> 1 : samples); // a bucket of a band is two pixels wide
  const places = edges.slice(1).map((edge, b) => x(start - 0.5 + (edges[b] + edge) / (2 * fine)));
  for (let k = 0; k < rows; k += 1) panel.draw(k, x, (value) => middle(k) - value * reach, { edges, places });
  context.restore();
  context.fillStyle = paints.ink;
  context.fillRect(x(position) - 0.75, TOP - 4, 1.5, end - TOP + 8);

  const floor = end + 4;
  const ticks = svg("g", { transform: `translate(0 ${floor})` });
  const step = niceStep(span, (to - from) / 48);
  const first = Math.ceil(start / step);
  const count = Math.ceil((start + span) / step) - first;
  axis(ticks, "bottom", x, Array.from({ length: count }, (_, k) => (first + k) * step));
  const both = Array.from({ length: rows }, (_, k) => panel.row(k));
  const quiet = { class: "rb-quiet" };
  return [
    ...titled(left, 0, title, note),
    svg("g", { "font-size": 12, "text-anchor": "end" },
      ...both.map(([name], k) => svg("text", { x: from - 8, y: middle(k) + 4, ...quiet }, name)),
      svg("text", { x: from - 8, y: TOP - 5, ...quiet }, heads[0])),
    svg("g", { "font-size": 13 },
      ...both.map(([, value, look], k) => svg("text", { x: to + 10, y: middle(k) + 5, ...look }, value)),
      svg("text", { x: to + 10, y: TOP - 5, "font-size": 12, ...quiet }, heads[1])),
    svg("text", { x: (from + to) / 2, y: floor + 36, "font-size": 12, "text-anchor": "middle", ...quiet }, "position"),
    svg("line", { x1: from, x2: to, y1: floor, y2: floor, style: "stroke: var(--rb-muted)" }), ticks,
  ];
}

// Draws a curve from samples. If several samples share a pixel, draws the band between their minimum and their maximum.
function drawCurve(context, samples, { edges, places: at }, y, colour, filled) {
  const { low, high } = minMaxBand(samples, edges);
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  if (filled) { // fill the area above the middle
    context.globalAlpha = 0.25;
    context.beginPath();
    context.moveTo(at[0], y(0));
    high.forEach((value, b) => context.lineTo(at[b], y(Math.max(0, value))));
    context.lineTo(at.at(-1), y(0));
    context.fill();
    context.globalAlpha = 1;
  }
  context.beginPath();
  high.forEach((value, b) => context.lineTo(at[b], y(value)));
  if (samples.length > at.length) {
    for (let b = at.length - 1; b >= 0; b -= 1) context.lineTo(at[b], y(low[b]));
    context.fill();
  }
  context.stroke();
}

// If there is room, draws each 1 as a block and outlines the digits. Otherwise fills the whole row at half the opacity.
function drawSquares(context, squares, period, start, x, y, colour) {
  const narrow = x(period) - x(0) < 8;
  const line = new Path2D();
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1.25;
  context.beginPath();
  if (narrow) context.rect(x(start - 0.5), y(1), x(squares.length) - x(0), y(-1) - y(1));
  for (let k = 0, end = 0; k < squares.length && !narrow; k = end) {
    while (end < squares.length && squares[end] === squares[k]) end += 1;
    const [left, right] = [x(start + k - 0.5), x(start + end - 0.5)];
    if (squares[k]) context.rect(left, y(1), right - left, y(-1) - y(1));
    line.lineTo(left, y(2 * squares[k] - 1));
    line.lineTo(right, y(2 * squares[k] - 1));
  }
  context.globalAlpha = narrow ? 0.15 : 0.3;
  context.fill();
  context.globalAlpha = 1;
  context.stroke(line);
}

// The number of digits that the window needs. All further digits would be 0.
function digitsOf(last) {
  return Math.max(4, last.toString(2).length);
}

function drawDigits(context, paints, box, data, dials) {
  const { start, digits, squares, bitWaves } = data;
  return drawPanel(context, paints, box, data, dials, {
    title: `Binary digits: ${dials.position.toString(2)}`,
    note: "Square waves, and the sinusoid inside each",
    heads: ["period", "digit"],
    rows: digitsOf(start + dials.span - 1),
    draw(j, x, y, buckets) {
      drawSquares(context, squares[j], 2 ** (j + 1), start, x, y, paints.muted);
      drawCurve(context, bitWaves[j], buckets, y, paints["1"], false);
    },
    row: (j) => [grouped(2 ** (j + 1)), String(digits[j]), digits[j] ? { "font-weight": 600 } : { class: "rb-quiet" }],
  });
}

function drawWaves(context, paints, box, data, dials) {
  const { shown, waves, turns, encoding, wavelengths } = data;
  const which = shown.length < turns.length ? `${shown.length} of ${turns.length} pairs` : "Every pair";
  return drawPanel(context, paints, box, data, dials, {
    title: "Sinusoids: sin mθᵢ",
    note: `${which}, fast to slow`,
    heads: ["period λ", "value"],
    rows: shown.length,
    draw(k, x, y, buckets) {
      drawCurve(context, waves[k], buckets, y, paints["1"], true);
      context.beginPath();
      context.arc(x(dials.position), y(encoding[2 * shown[k]]), 3.5, 0, 2 * Math.PI);
      context.fill();
    },
    row(k) {
      return [tidy(wavelengths[shown[k]]), exact(encoding[2 * shown[k]], 2), inColour("1")];
    },
  });
}

// Draws one clock per pair. The hand starts at the top and turns clockwise, so its tip is at (sin, cos). A ring shows
// how far the hand has turned since position 0.
function drawClocks(context, paints, top, { area, cell, centre }, { turns, encoding, young }) {
  const pairs = turns.length;
  const named = pairs <= 16;
  const radius = cell * 0.42;
  const path = (draw, colour, lineWidth) => {
    context.beginPath();
    turns.forEach((turn, i) => draw(turn, i, ...centre(i)));
    context.strokeStyle = colour;
    context.lineWidth = lineWidth;
    context.stroke();
  };
  const thick = Math.max(1, Math.min(2.5, radius / 9));
  path((turn, i, x, y) => {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  }, paints.grid, thick);
  const sweep = (from) => (turn, i, x, y) => {
    context.moveTo(x, y - from);
    context.arc(x, y, radius, -Math.PI / 2, -Math.PI / 2 + 2 * Math.PI * Math.min(1, turn));
  };
  path(sweep(radius), paints["1"], thick);
  context.beginPath();
  turns.forEach((turn, i) => sweep(0)(turn, i, ...centre(i)));
  context.fillStyle = paints["1"];
  context.globalAlpha = 0.12;
  context.fill();
  context.globalAlpha = 1;
  context.lineCap = "round";
  path((turn, i, x, y) => {
    context.moveTo(x, y);
    context.lineTo(x + 0.84 * radius * encoding[2 * i], y - 0.84 * radius * encoding[2 * i + 1]);
  }, paints["1"], thick * 1.25);
  context.lineCap = "butt";
  const turn = named ? "one" : "one turn so far";
  const note = `${named ? "Turns so far. " : ""}${young ? "Open ring: less than" : "Every hand: at least"} ${turn}`;
  return [
    ...titled(area[0], top, "Clock hands: tips at (sin, cos)", note),
    ...(named ? turns.map((turn, i) => svg("text", {
      x: centre(i)[0], y: centre(i)[1] + cell / 2 + 9, "font-size": 12, "text-anchor": "middle",
      class: "rb-quiet",
    }, turnText(turn))) : []),
  ];
}

function turnText(turn) {
  return turn > 0 && turn < 0.005 ? "< 0.01" : turn.toFixed(2);
}

function describe({ turns, young }, { position }) {
  const pairs = turns.length;
  const full = young === 0 ? "every hand has completed a turn" : young === pairs ? "no hand has completed a turn"
    : `the slowest ${young === 1 ? "hand has" : `${young} of ${pairs} hands have`} not completed a turn yet`;
  return `At position ${grouped(position)}, ${full}.`;
}

export default explorer({
  title: "Binary digits, clock hands, sinusoids",
  note: "Step through the positions. Fast digits flip often and slow digits rarely, but hands and waves change "
    + "smoothly.",
  dials,
  compute,
  units: { start: "tokens", turns: "turns", wavelengths: "tokens" },
  build,
  stats: ({ wavelengths }) => [
    ["Fastest turn", tidy(wavelengths[0]), "positions"],
    ["Slowest turn", tidy(wavelengths.at(-1)), "positions"],
  ],
  describe,
});
