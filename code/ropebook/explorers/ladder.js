// The wavelengths of all pairs against the length of the texts in training, and what each method makes of them.

import { dials, METHODS, SHORTEST } from "./ladder.py";
import { invFreq } from "./kit/rope.js";
import { count, exact, tidy } from "./kit/text.js";
import { html, put, svg } from "./kit/elements.js";
import { axis, inColour, lined, niceStep, scale, textWidth, titled } from "./kit/drawing.js";
import { explorer } from "./kit/mount.js";

const MODELS = [ // name, base, dim, trained length
  ["Llama 2", 10000, 128, 4096],
  ["Llama 3", 500000, 128, 8192],
  ["Qwen2.5", 1000000, 128, 32768],
  ["GPT-NeoX", 10000, 24, 2048],
];

// How much of each pair is kept, 0 to 1: linear in its turns within L, as YaRN's paper has it.
function keptByTurns(theta, length, alpha, beta) {
  return theta.map((one) => Math.min(1, Math.max(0, ((one * length) / (2 * Math.PI) - alpha) / (beta - alpha))));
}

// The same, linear in the pair's index from where it turns β times to where it turns α times, as YaRN's code has it.
function keptByIndex(theta, base, length, alpha, beta) {
  const dim = 2 * theta.length;
  const at = (turns) => (dim * Math.log(length / (2 * Math.PI * turns))) / (2 * Math.log(base));
  const low = Math.max(0, Math.floor(at(beta)));
  const high = Math.min(dim - 1, Math.ceil(at(alpha)));
  return theta.map((_, i) => 1 - Math.min(1, Math.max(0, (i - low) / (high - low))));
}

// By how much each method stretches each wavelength: 1 keeps, s interpolates.
const STRETCH = {
  linear: (theta, { factor }) => theta.map(() => factor),
  ntk: (theta, { factor }) => theta.map((_, i) => factor ** (i / (theta.length - 1))),
  ntk_by_parts: (theta, { trained_length, factor, alpha, beta }) => {
    return keptByTurns(theta, trained_length, alpha, beta).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
  yarn: (theta, { base, trained_length, factor, alpha, beta }) => {
    return keptByIndex(theta, base, trained_length, alpha, beta).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
  llama3: (theta, { trained_length, factor }) => {
    return keptByTurns(theta, trained_length, 1, 4).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
};

function compute(dials) {
  const { base, dim, trained_length, factor } = dials;
  const theta = Array.from(invFreq(dim, base));
  const target = Math.floor(trained_length * factor); // L′
  const slow = theta.findIndex((one) => one * (trained_length - 1) < 2 * Math.PI);
  const turned = slow < 0 ? theta.length : slow;
  const overshoot = (stretch) => theta.slice(turned).reduce((most, one, k) => {
    return Math.max(most, (target - 1) * (one / stretch[turned + k]) - (trained_length - 1) * one);
  }, 0);
  const shown = Object.keys(METHODS).filter((name) => dials[name]);
  const stretch = shown.map((name) => STRETCH[name](theta, dials));
  return {
    target,
    wavelengths: theta.map((one) => (2 * Math.PI) / one),
    turned, // pairs that complete a turn within L
    beyond: overshoot(theta.map(() => 1)), // the largest angle beyond those of training, without a method
    shown,
    stretch, // of each method shown: λ′/λ of each pair
    left: stretch.map(overshoot), // and the largest angle beyond
  };
}

// ---- On the page ----

const LEGEND = 58; // where the names of the methods begin
const ROW = 20;

function build(stage, { alt, change, listen, values }) {
  const models = MODELS.map(([name, base, dim, trained_length]) => {
    const button = html("button", { type: "button", class: "rb-button" }, name);
    listen(button, "click", () => change({ base, dim, trained_length }));
    const chosen = (now) => now.base === base && now.dim === dim && now.trained_length === trained_length;
    return { button, chosen };
  });
  const tools = html("div", {
    class: "rb-tools", role: "group", "aria-label": "Base, dimension and trained length of",
    style: "margin-block-end: 1.25rem",
  }, ...models.map(({ button }) => button));
  const picture = svg("svg", { role: "img", "aria-label": alt });
  stage.append(tools, picture);
  return ({ data, width }) => {
    const dials = values();
    for (const { button, chosen } of models) {
      const now = chosen(dials);
      put(button, { "aria-pressed": now, style: now ? "border-color: var(--rb-1); color: var(--rb-1)" : "" });
    }
    const wide = width >= 620;
    const rows = places(Object.keys(METHODS), width).at(-1).row + 1; // as many as all methods need: nothing jumps
    const top = LEGEND + rows * ROW + 10;
    const floor = top + (wide ? 290 : 250);
    const lowTop = floor + 62;
    const lowFloor = lowTop + (wide ? 96 : 84);
    const height = lowFloor + 42;
    const pairs = data.wavelengths.length;
    const longest = 1.5 * Math.max(data.target, data.wavelengths.at(-1) * dials.factor);
    const plot = {
      wide, width, top, floor, lowTop, lowFloor, pairs, longest, from: 46, to: width - 10,
      x: scale([-0.5, pairs - 0.5], [46, width - 10]),
      y: scale([SHORTEST, longest], [floor, top], true),
      below: scale([1, Math.max(dials.factor, 1.25)], [lowFloor, lowTop], true),
    };
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    picture.replaceChildren(...names(plot, data), ...grids(plot, data, dials), ...curves(plot, data));
  };
}

// Where the names of the methods stand: as many in a row as fit.
function places(shown, width) {
  let [x, row] = [0, 0];
  return shown.map((name) => {
    const needs = 38 + textWidth(METHODS[name].title, 12);
    if (x && x + needs > width) [x, row] = [0, row + 1];
    const place = { name, x, row };
    x += needs + 22;
    return place;
  });
}

function styled([colour, width, dashes]) {
  return lined(colour, width, `stroke-linejoin: round; ${dashes && `stroke-dasharray: ${dashes}`}`);
}

function names({ width }, { shown, wavelengths, turned }) {
  const [pairs, young] = [wavelengths.length, wavelengths.length - turned];
  const [title, note] = titled(0, 0, "Wavelength of each pair", "");
  note.append(...(young ? [svg("tspan", inColour("2"), "Orange: no full turn within L"), `, ${young} of ${pairs} pairs`]
    : [`Each of ${pairs} pairs completes a turn within L`]));
  return [title, note, ...places(shown, width).flatMap(({ name, x, row }) => [
    svg("path", { d: `M${x + 2},${LEGEND + row * ROW - 4}h26`, ...styled(METHODS[name].look) }),
    svg("text", { x: x + 36, y: LEGEND + row * ROW, "font-size": 12 }, METHODS[name].title),
  ])];
}

const HALO = "paint-order: stroke; stroke: var(--rb-zero); stroke-width: 4; stroke-linejoin: round";

function grids(plot, { target, turned }, { trained_length, factor }) {
  const { from, to, top, floor, lowTop, lowFloor, pairs, longest, x, y, below } = plot;
  const slow = turned < pairs ? [[top, floor], [lowTop - 6, lowFloor]].map(([upper, lower]) => svg("rect", {
    x: x(turned - 0.5), width: to - x(turned - 0.5), y: upper, height: lower - upper,
    style: "fill: var(--rb-2); opacity: 0.08",
  })) : [];
  const powers = Array.from({ length: Math.ceil(Math.log10(longest)) - 1 }, (_, k) => k + 1);
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", y, powers.map((power) => 10 ** power), powerOfTen);
  const lower = svg("g", { transform: `translate(${from} 0)` });
  axis(lower, "left", below, factor > 1 ? [1, factor] : [1], (by) => tidyFactor(by));
  const bottom = svg("g", { transform: `translate(0 ${lowFloor})` });
  const step = niceStep(Math.max(1, pairs - 1), (to - from) / 60);
  axis(bottom, "bottom", x, Array.from({ length: Math.ceil(pairs / step) }, (_, k) => k * step));
  const across = (height) => `M${from},${height.toFixed(1)}H${to}`;
  const lengths = [["L′", target, "6 4"], ["L", trained_length, ""]].flatMap(([name, place, dashes]) => {
    const line = svg("path", { d: across(y(place)), ...styled(["muted", 1.5, dashes]) });
    const apart = name === "L" || y(trained_length) - y(place) > 18;
    if (!apart) return [line];
    return [line, svg("text", { x: from + 6, y: y(place) - 5, "font-size": 12, style: HALO }, `${name} = ${place}`)];
  });
  const levels = [...powers.map((power) => y(10 ** power)), below(1), below(factor)];
  const middle = { x: (from + to) / 2, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" };
  return [
    ...slow,
    svg("path", { d: levels.map(across).join(""), ...lined("grid", 1) }),
    left, lower, bottom, ...lengths,
    svg("path", { d: across(lowFloor), ...lined("muted", 1) }),
    svg("text", { x: 0, y: lowTop - 18, "font-size": 14, "font-weight": 600 }, "Stretch λ′/λ"),
    svg("text", { ...middle, y: lowFloor + 36 }, "pair i"),
  ];
}

function curves({ pairs, x, y, below }, { wavelengths, turned, shown, stretch }) {
  const path = (heights) => `M${heights.map((height, i) => `${x(i).toFixed(1)},${height.toFixed(1)}`).join("L")}`;
  const size = Math.max(3, Math.min(8, ((x(pairs - 1) - x(0)) / pairs) * 0.7));
  const dots = (colour, from, to) => svg("path", {
    d: wavelengths.slice(from, to).map((wave, k) => `M${x(from + k).toFixed(1)},${y(wave).toFixed(1)}h0`).join(""),
    ...lined(colour, size),
  });
  return [
    ...shown.flatMap((name, k) => [
      svg("path", { d: path(stretch[k].map((by, i) => y(wavelengths[i] * by))), ...styled(METHODS[name].look) }),
      svg("path", { d: path(stretch[k].map(below)), ...styled(METHODS[name].look) }),
    ]),
    dots("1", 0, turned),
    dots("2", turned, pairs),
  ];
}

// 10, 100, 1000, 10⁴, …
function powerOfTen(value) {
  const power = Math.round(Math.log10(value));
  return power < 4 ? String(value) : `10${"⁰¹²³⁴⁵⁶⁷⁸⁹"[power]}`;
}

function tidyFactor(value) {
  return String(Number(value.toPrecision(3)));
}

// An angle beyond those of training, in radians.
function radians(angle) {
  if (angle > 0 && angle < 0.0005) return "< 0.001";
  return angle > 0 && angle < 1 ? exact(angle) : tidy(angle);
}

function describe({ target, wavelengths, turned, beyond, shown, left }, { trained_length }) {
  const [pairs, young] = [wavelengths.length, wavelengths.length - turned];
  if (!young) {
    return `Each of ${pairs} pairs completes a turn within L = ${trained_length}: it has shown all its angles, and a `
      + "longer text brings no new ones.";
  }
  const start = `${young} of ${pairs} pairs ${young === 1 ? "has" : "have"} not completed a turn within `
    + `L = ${trained_length}. At L′ = ${target} `;
  if (!beyond) return `${start}no angle is new, for L′ is L.`;
  const methods = shown.map((name, k) => `${radians(left[k])} with ${METHODS[name].title}`);
  const list = methods.length > 1 ? `${methods.slice(0, -1).join(", ")} and ${methods.at(-1)}` : methods.join("");
  const now = `${start}the angles go ${radians(beyond)} radians beyond those of training as the model is`;
  return list ? `${now}; ${list}.` : `${now}.`;
}

export default explorer({
  title: "The wavelength ladder",
  note: "Pairs above the line L never completed a turn in training. Switch on methods to see what they make of them.",
  dials,
  compute,
  build,
  stats: ({ wavelengths, turned, beyond, shown, left }) => [
    ["Never turned within L", String(wavelengths.length - turned), `of ${count(wavelengths.length, "pair")}`],
    ["New angles as it is", radians(beyond), "radians"],
    ...shown.map((name, k) => [`with ${METHODS[name].title}`, radians(left[k]), "radians"]),
  ],
  describe,
});
