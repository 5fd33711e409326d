// A clock hand for each pair: which of them make a full turn within a context, and how far the others come.

import { dials, MODELS, MOST_LENGTH } from "./bank.py";
import { invFreq } from "./kit/rope.js";
import { count, tidy } from "./kit/text.js";
import { css } from "./kit/colours.js";
import { html, put, svg } from "./kit/elements.js";
import { axis, fitCanvas, inColour, lined, packCells, scale, textWidth, titled } from "./kit/drawing.js";
import { stepButtons } from "./kit/knobs.js";
import { explorer } from "./kit/mount.js";

function compute({ position, base, dim, length }) {
  const theta = invFreq(dim, base);
  const turnsAt = (place) => Array.from(theta, (one) => (place * one) / (2 * Math.PI));
  const [turns, last] = [turnsAt(position), turnsAt(length - 1)];
  return {
    turns, // at the position
    last, // by the last position of the context
    tips: Array.from(theta).flatMap((one) => [Math.cos(position * one), Math.sin(position * one)]),
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
    turned: last.filter((turn) => turn >= 1).length, // within the context
    unseen: last.filter((turn, i) => isUnseen(turns[i], turn)).length, // at an angle that the context does not have
  };
}

function isUnseen(turn, last) {
  return last < 1 && turn % 1 > last;
}

// ---- On the page ----

function build(stage, app) {
  const models = MODELS.map(([name, dim, base, length]) => {
    const button = html("button", { type: "button", class: "rb-button" }, name);
    app.listen(button, "click", () => app.change({ dim, base, length }));
    return [button, { dim, base, length }];
  });
  const row = html("div", { class: "rb-tools", role: "group", "aria-label": "Settings of published models" },
    ...models.map(([button]) => button));
  const steps = stepButtons(app, "position", "position", () => [0, MOST_LENGTH]);
  const canvas = html("canvas", { "aria-hidden": "true" });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  stage.append(row, steps.row, html("div", { style: "position: relative" }, canvas, picture));

  return ({ data, values, width, theme }) => {
    steps.show();
    for (const [button, setting] of models) {
      const shown = Object.entries(setting).every(([trait, value]) => values[trait] === value);
      put(button, { "aria-pressed": shown, style: shown ? "border-color: var(--rb-1); color: var(--rb-1)" : "" });
    }
    const wide = width >= 620;
    const area = [0, 64, width, wide ? 280 : 360];
    const stripTop = area[1] + area[3] + 24;
    const height = stripTop + 148;
    const context = fitCanvas(canvas, width, height);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    const paints = Object.fromEntries(Object.entries(theme).map(([name, colour]) => [name, css(colour)]));
    picture.replaceChildren(...drawClocks(context, paints, area, data, values),
      ...drawStrip(context, paints, stripTop, width, data, values));
  };
}

// The hand begins at the right and turns counter-clockwise, as the pairs do. A hand that never completes a turn has a
// grey circle, and a sector as far as it comes within the context.
function drawClocks(context, paints, area, { turns, last, tips, turned, unseen }, { position, length }) {
  const pairs = turns.length;
  const named = pairs <= 16;
  const { cell, centre } = packCells(pairs, area, named ? 16 : 0);
  const radius = cell * 0.42;
  const thick = Math.max(1, Math.min(2.5, radius / 9));
  const colours = last.map((turn, i) => (turn >= 1 ? "1" : isUnseen(turns[i], turn) ? "4" : "2"));
  const path = (kind, add) => {
    context.beginPath();
    last.forEach((turn, i) => kind.includes(colours[i]) && add(i, ...centre(i)));
  };
  const circle = (i, x, y) => {
    context.moveTo(x + radius, y);
    context.arc(x, y, radius, 0, 2 * Math.PI);
  };
  context.lineWidth = thick;
  for (const [kind, colour] of [["1", "1"], ["24", "grid"]]) {
    path(kind, circle);
    context.strokeStyle = paints[colour];
    context.stroke();
  }
  path("24", (i, x, y) => {
    context.moveTo(x, y);
    context.arc(x, y, radius, 0, -2 * Math.PI * last[i], true);
    context.closePath();
  });
  context.fillStyle = paints["2"];
  context.globalAlpha = 0.25;
  context.fill();
  context.globalAlpha = 1;
  context.lineCap = "round";
  context.lineWidth = thick * 1.25;
  for (const colour of ["1", "2", "4"]) {
    path(colour, (i, x, y) => {
      context.moveTo(x, y);
      context.lineTo(x + 0.88 * radius * tips[2 * i], y - 0.88 * radius * tips[2 * i + 1]);
    });
    context.strokeStyle = paints[colour];
    context.stroke();
  }
  context.lineCap = "butt";
  const [title, note] = titled(0, 0, `The hands at position ${position}`, "");
  const slow = pairs - turned;
  if (slow) {
    note.append(svg("tspan", inColour("2"), "Orange"), `: no full turn within L = ${length}`);
    if (area[2] >= 620) note.append("; the sector is as far as it comes");
  } else note.append(`Every hand makes a full turn within L = ${length}`);
  const more = svg("text", { x: 0, y: 51, "font-size": 12, class: "rb-quiet" });
  if (unseen) more.append(svg("tspan", inColour("4"), "Violet"), ": at an angle that no position within L has");
  return [title, note, more, ...(named ? turns.map((turn, i) => svg("text", {
    x: centre(i)[0], y: centre(i)[1] + cell / 2 + 9, "font-size": 12, "text-anchor": "middle",
    ...(colours[i] === "1" ? { class: "rb-quiet" } : inColour(colours[i])),
  }, turnText(turn))) : [])];
}

function turnText(turn) {
  if (turn >= 1000) return turn.toFixed(0);
  return turn > 0 && turn < 0.005 ? "< 0.01" : turn.toFixed(2);
}

// The wavelengths by equal ratios, with a line at the last position of the context.
function drawStrip(context, paints, top, width, { wavelengths, last }, { length }) {
  const [from, to] = [8, width - 8];
  const high = 1.25 * Math.max(wavelengths.at(-1), length, 64);
  const x = scale([4, high], [from, to], true);
  const floor = top + 104;
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
  const at = x(Math.max(4, length - 1));
  const label = `L = ${length}`;
  const half = textWidth(label, 13, 600) / 2;
  const ticks = [10, 100, 1e3, 1e4, 1e5, 1e6, 1e7].filter((tick) => tick < high);
  const across = svg("g", { transform: `translate(0 ${floor})` });
  axis(across, "bottom", x, ticks.filter((tick) => x(tick) < to - 12), tickText);
  return [
    ...titled(0, top, "Wavelengths: one mark for each pair", ""),
    svg("path", { d: `M${from},${floor}H${to}`, ...lined("muted", 1) }), across,
    svg("path", { d: `M${at.toFixed(2)},${floor - 44}V${floor}`, ...lined("ink", 2) }),
    svg("text", { x: Math.min(to - half, Math.max(from + half, at)), y: floor - 50, "font-size": 13, "font-weight": 600,
      "text-anchor": "middle" }, label),
    svg("text", { x: width / 2, y: floor + 38, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" },
      "positions for one turn, by equal ratios"),
  ];
}

function tickText(tick) {
  const exponent = Math.round(Math.log10(tick));
  return exponent < 3 ? String(tick) : `10${"⁰¹²³⁴⁵⁶⁷"[exponent]}`;
}

function describe({ turned, unseen, wavelengths }, { position, length }) {
  const pairs = wavelengths.length;
  const full = turned === pairs ? "Every hand makes a full turn"
    : turned === 0 ? "No hand makes a full turn" : `${turned} of ${pairs} hands make a full turn`;
  const slowest = `The slowest needs ${tidy(wavelengths.at(-1))} positions for one.`;
  const beyond = position < length ? ""
    : unseen === 0 ? " The position lies beyond the context, but no hand is at an angle that is new."
      : ` The position lies beyond the context: ${count(unseen, "hand")} ${unseen === 1 ? "is" : "are"} at an angle `
        + "that no position within it has.";
  return `${full} within ${length} positions. ${slowest}${beyond}`;
}

export default explorer({
  title: "A bank of clocks",
  note: "Each pair is a hand that begins at the right and turns counter-clockwise by θᵢ per position. "
    + "The buttons set dim, base and context of published models.",
  dials,
  compute,
  build,
  stats: ({ turned, unseen, wavelengths }) => [
    ["Full turn within L", String(turned), `of ${wavelengths.length}`],
    ["Never by L", String(wavelengths.length - turned)],
    ["Slowest hand", tidy(wavelengths.at(-1)), "positions a turn"],
    ["New angles", String(unseen), "at this position"],
  ],
  describe,
});
