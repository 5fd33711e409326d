// A clock hand for each pair. The figure shows which hands complete a turn within a context, and how far the others
// get.

import { dials, MODELS, MOST_LENGTH } from "./bank.py";
import { invFreq } from "./kit/rope.js";
import { count, grouped } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { snap } from "./kit/dials.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, fitCanvas, inColour, lined, packCells, pill, pillHalf, scale, titled } from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { hand, ofDial } from "./kit/hand.js";
import { stepButtons } from "./kit/knobs.js";
import { explorer } from "./kit/mount.js";
import { play } from "./kit/play.js";
import { presets } from "./kit/presets.js";

function compute({ position, base, dim, length }) {
  const theta = invFreq(dim, base);
  const turnsAt = (place) => Array.from(theta, (one) => (place * one) / (2 * Math.PI));
  const [turns, last] = [turnsAt(position), turnsAt(length - 1)];
  return {
    turns, // each pair's angle at the position, in turns
    last, // each pair's angle at the context's last position, in turns
    tips: Array.from(theta).flatMap((one) => [Math.cos(position * one), Math.sin(position * one)]),
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
    turned: last.filter((turn) => turn >= 1).length, // the number of pairs that complete a turn within the context
    unseen: last.filter((turn, i) => isUnseen(turns[i], turn)).length, // the number of pairs that are at a new angle
  };
}

function isUnseen(turn, last) {
  return last < 1 && turn % 1 > last;
}

// ---- On the page ----

const LEAST = 4; // the shortest wavelength on the strip
const PACE = 0.25; // relative growth of the position per second during playback
const GLIDE = 250; // the duration, in ms, of the hands' rotation to a nearby position
const NEARBY = 16; // the hands rotate visibly over so many positions; over more, they would only flicker
const [HEAD, FOOT] = [44, 126]; // the space above the clocks, and the space for the strip below them

function build(stage, app) {
  play(app, {
    advance: ({ position }, seconds) => (position === MOST_LENGTH ? null
      : { position: Math.min(MOST_LENGTH, Math.floor((position + 8) * Math.exp(PACE * seconds)) - 8) }),
    again: { position: 0 },
    step: 1,
  });
  const steps = stepButtons(app, "position", "position", () => [0, MOST_LENGTH], "m");
  app.tools.append(steps.row);
  const models = MODELS.map(([name, dim, base, length]) => [name, { dim, base, length }]);
  const showModel = presets(app, "A published model’s settings", "A model’s settings …", models);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const handles = { position: html("div"), length: html("div") };
  stage.append(html("div", { style: "position: relative" }, canvas, picture, ...Object.values(handles)));
  let strip; // { from, to, floor, high }: the strip of wavelengths, which also shows positions
  const glide = glider(app, { takes: GLIDE, nearby: NEARBY });
  const xOf = (value) => stripScale(strip)(Math.min(strip.high, Math.max(LEAST, value)));
  const grips = Object.entries(handles).map(([trait, handle]) => {
    const dial = dials.find((one) => one.trait === trait);
    const low = trait === "position"; // the handle of the position is below the axis, and the one of L above it
    const place = (values) => [xOf(values[trait]), strip.floor + (low ? 36 : -56)];
    const show = hand(app, handle, {
      label: dial.label,
      cursor: "ew-resize",
      place,
      at(x) {
        const share = Math.min(1, Math.max(0, (x - strip.from) / (strip.to - strip.from)));
        return { [trait]: snap(dial, share ? LEAST * (strip.high / LEAST) ** share : 0) };
      },
      ...ofDial(app, dial, { finely: low }),
    });
    return () => {
      const [x, y] = place(app.values());
      show([Math.min(strip.to - 32, Math.max(strip.from - 12, x - 22)), y - 14, 44, 28]);
    };
  });

  return ({ data, values, width, most, theme, jump }) => {
    steps.show();
    showModel(values);
    const height = most;
    const high = 1.25 * Math.max(data.wavelengths.at(-1), MOST_LENGTH);
    strip = { from: 12, to: width - 12, floor: height - 52, high };
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    glide([values.position], jump, ([position]) => {
      const context = fitCanvas(canvas, width, height);
      const now = position === values.position ? data : compute({ ...values, position });
      redrawn(picture, () => [
        ...drawClocks(context, paints, [0, HEAD, width, height - HEAD - FOOT], now),
        ...drawStrip(context, paints, strip, data, values)]);
    });
    for (const show of grips) show();
  };
}

function stripScale({ from, to, high }) {
  return scale([LEAST, high], [from, to], true);
}

// The hand starts at the right and rotates counter-clockwise, as the pairs do. For a hand that never completes a turn,
// a sector shows how far it gets within the context. The clock is filled if the hand is beyond it.
function drawClocks(context, paints, area, { turns, last, tips, turned, unseen }) {
  const pairs = turns.length;
  const wide = area[2] >= 620;
  const named = pairs <= (wide || turns[0] < 1e4 ? 16 : 8); // more long numbers would touch
  const { cell, centre } = packCells(pairs, area, named ? 16 : 0);
  const radius = cell * 0.42;
  const thick = Math.max(1, Math.min(2.5, radius / 9));
  const [slow, fresh] = [last.map((turn) => turn < 1), last.map((turn, i) => isUnseen(turns[i], turn))];
  const path = (chosen, add) => {
    context.beginPath();
    last.forEach((_, i) => chosen(i) && add(i, ...centre(i)));
  };
  const circle = (i, x, y) => {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  };
  const hands = (i, x, y) => {
    context.moveTo(x, y);
    context.lineTo(x + 0.88 * radius * tips[2 * i], y - 0.88 * radius * tips[2 * i + 1]);
  };
  const stroke = (colour, chosen, add) => {
    path(chosen, add);
    context.strokeStyle = paints[colour];
    context.stroke();
  };
  context.lineWidth = thick;
  stroke("1", (i) => !slow[i], circle);
  stroke("grid", (i) => slow[i] && !fresh[i], circle);
  stroke("2", (i) => fresh[i], circle);
  context.fillStyle = paints["2"];
  context.fill();
  context.globalAlpha = 0.25;
  path((i) => slow[i] && !fresh[i], (i, x, y) => {
    context.moveTo(x, y);
    context.arc(x, y, radius, 0, -2 * Math.PI * last[i], true);
    context.closePath();
  });
  context.fill();
  context.globalAlpha = 1;
  context.lineCap = "round";
  context.lineWidth = thick * 1.25;
  stroke("1", (i) => !slow[i], hands);
  stroke("2", (i) => slow[i] && !fresh[i], hands);
  stroke("paper", (i) => fresh[i], hands);
  context.lineCap = "butt";
  const every = turned === pairs;
  const note = [named && (wide || every) && "Turns so far.",
    !every && (wide || !unseen) && "Sector: how far a hand gets within L.",
    unseen > 0 && "Filled: an angle that does not occur within L."].filter(Boolean).join(" ");
  return [...titled(0, 0, every ? "Every hand makes a full turn within L"
    : svg("tspan", inColour("2"), "Orange: no full turn within L"), note),
    ...(named ? turns.map((turn, i) => svg("text", {
      x: centre(i)[0], y: centre(i)[1] + cell / 2 + 9, "font-size": 12, "text-anchor": "middle",
      ...(slow[i] ? inColour("2") : { class: "rb-quiet" }),
    }, turnText(turn))) : [])];
}

function turnText(turn) {
  if (turn >= 10) return turn.toFixed(turn < 100 ? 1 : 0);
  return turn > 0 && turn < 0.005 ? "≈ 0" : turn.toFixed(2);
}

// The wavelengths on a logarithmic axis, with a line at the context's last position. The current position is marked
// below.
function drawStrip(context, paints, strip, { wavelengths, last }, { length, position }) {
  const { from, to, floor, high } = strip;
  const x = stripScale(strip);
  for (const young of [false, true]) {
    context.beginPath();
    wavelengths.forEach((one, i) => {
      if (last[i] < 1 !== young) return;
      context.moveTo(x(one), floor - 34);
      context.lineTo(x(one), floor - 6);
    });
    context.strokeStyle = paints[young ? "2" : "1"];
    context.lineWidth = wavelengths.length > 100 ? 1 : 1.5;
    context.stroke();
  }
  const within = (value) => x(Math.min(high, Math.max(LEAST, value)));
  const [atL, atM] = [within(length - 1), within(position)];
  const handle = (at, y, text) => {
    const half = pillHalf(text);
    return pill(Math.min(to + 12 - half, Math.max(from - 12 + half, at)), y, text);
  };
  const ticks = [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((tick) => tick < high);
  const across = svg("g", { transform: `translate(0 ${floor})` });
  axis(across, "bottom", x, ticks.filter((tick) => x(tick) < to - 6 && Math.abs(x(tick) - atM) > 14), tickText);
  return [
    svg("path", { d: `M${from},${floor}H${to}`, ...lined("muted", 1) }), across,
    svg("path", { d: `M${atL.toFixed(2)},${floor - 45}V${floor}`, ...lined("ink", 2) }),
    svg("path", { d: `M${atM.toFixed(2)},${floor - 38}V${floor + 24}`, ...lined("ink", 1.5, "stroke-dasharray: 1 4") }),
    svg("text", { ...(atM < (from + to) / 2 ? { x: to, "text-anchor": "end" } : { x: from }), y: floor + 41,
      "font-size": 12, class: "rb-quiet" }, to < 620 ? "positions per turn" : "positions per turn of each pair"),
    ...handle(atL, floor - 56, `L = ${grouped(length)}`), ...handle(atM, floor + 36, `m = ${grouped(position)}`),
  ];
}

function tickText(tick) {
  const exponent = Math.round(Math.log10(tick));
  return exponent < 3 ? String(tick) : `10${"⁰¹²³⁴⁵⁶⁷"[exponent]}`;
}

function describe({ turned, unseen, wavelengths }, { position, length }) {
  const pairs = wavelengths.length;
  const full = turned === pairs ? "Every hand makes a full turn"
    : turned === 0 ? "No hand makes a full turn"
      : `${turned} of ${pairs} hands ${turned === 1 ? "makes" : "make"} a full turn`;
  const beyond = position < length ? ""
    : unseen === 0 ? " The position is beyond the context, but no hand is at a new angle."
      : ` The position is beyond the context: ${count(unseen, "hand")} `
        + `${unseen === 1 ? "is at an angle" : "are at angles"} that no position within the context has.`;
  return `${full} within ${grouped(length)} positions.${beyond}`;
}

export default explorer({
  title: "A bank of clocks",
  note: "Each pair is a clock hand that starts out pointing right and rotates counter-clockwise by θᵢ per position. "
    + "Drag the labels L and m.",
  dials,
  compute,
  units: { turns: "turns", last: "turns", wavelengths: "tokens" },
  build,
  stats: () => [],
  describe,
});
