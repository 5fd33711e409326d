// The wavelengths of all pairs relative to the length of the training texts, and how each method changes them.

import { dials, METHODS, SHORTEST } from "./ladder.py";
import { invFreq, turnedPairs } from "./kit/rope.js";
import { allOf, capital, exact, grouped, tidy } from "./kit/text.js";
import { snap } from "./kit/dials.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, inColour, lined, pairAxis, pill, pillHalf, scale, titled } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { styled } from "./kit/legend.js";
import { named } from "./kit/naming.js";
import { panels } from "./kit/panels.js";
import { presets } from "./kit/presets.js";
import { keptByIndex, keptByTurns } from "./kit/yarn.js";
import { explorer } from "./kit/mount.js";

const MODELS = [ // name, base, dim, trained length
  ["Llama 2", 10000, 128, 4096],
  ["Llama 3", 500000, 128, 8192],
  ["Qwen2.5", 1000000, 128, 32768],
  ["GPT-NeoX", 10000, 24, 2048],
];

// The factor by which each method stretches each wavelength. The factor is 1 for a pair that is kept, and s for one
// that is interpolated.
const STRETCH = {
  linear: (theta, { factor }) => theta.map(() => factor),
  ntk: (theta, { factor }) => theta.map((_, i) => factor ** (i / (theta.length - 1))),
  ntk_by_parts: (theta, { trained_length, factor, alpha, beta }) => {
    return keptByTurns(theta, trained_length, alpha, beta).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
  yarn: (theta, { base, trained_length, factor, alpha, beta }) => {
    return keptByIndex(theta, trained_length, base, alpha, beta).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
  llama3: (theta, { trained_length, factor }) => {
    return keptByTurns(theta, trained_length, 1, 4).map((kept) => 1 / ((1 - kept) / factor + kept));
  },
};

function compute(dials) {
  const { base, dim, trained_length, factor } = dials;
  const theta = Array.from(invFreq(dim, base));
  const target = Math.floor(trained_length * factor); // L′
  const turned = turnedPairs(theta, trained_length);
  const overshoot = (stretch) => theta.slice(turned).reduce((most, one, k) => {
    return Math.max(most, (target - 1) * (one / stretch[turned + k]) - (trained_length - 1) * one);
  }, 0);
  const shown = Object.keys(METHODS).filter((name) => dials[name]);
  const stretch = shown.map((name) => STRETCH[name](theta, dials));
  return {
    target,
    wavelengths: theta.map((one) => (2 * Math.PI) / one),
    turned, // the number of pairs that complete a turn within L
    beyond: overshoot(theta.map(() => 1)), // the largest excess over a training angle, without any method
    shown,
    stretch, // λ′/λ of each pair, for each method shown
    left: stretch.map(overshoot), // the largest excess with each method
  };
}

// ---- On the page ----

const GLIDE = 400; // the time, in ms, in which a method that was switched on stretches the wavelengths

function build(stage, app) {
  const settings = MODELS.map(([name, base, dim, trained_length]) => [name, { base, dim, trained_length }]);
  const showModel = presets(app, "A published model’s settings", "A model’s settings …", settings);
  const panelAt = panels(app, ["Wavelengths", "Stretch"], { least: 330 });
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const handles = { trained_length: html("div"), factor: html("div") };
  stage.append(html("div", { style: "position: relative" }, picture, ...Object.values(handles)));
  let plot;
  let longest = 0; // the end of the axis, which stays the same while the reader drags one of its lines
  for (const node of Object.values(handles)) {
    app.listen(node, "pointerdown", () => (longest = plot.longest));
    app.listen(node, "lostpointercapture", () => {
      longest = 0;
      app.redraw();
    });
  }
  const heightOf = ({ trained_length, factor }, trait) => {
    return plot.y(trait === "factor" ? Math.floor(trained_length * factor) : trained_length);
  };
  const grips = Object.keys(handles).map((trait) => hand(app, handles[trait], {
    label: trait === "factor" ? "Target length L′, by the factor" : "Trained length L",
    cursor: "ns-resize",
    place: (values) => [0, heightOf(values, trait)],
    at(_, y) {
      const share = Math.min(1, Math.max(0, (plot.floor - y) / (plot.floor - plot.top)));
      const length = SHORTEST * (plot.longest / SHORTEST) ** share;
      const value = trait === "factor" ? Number((length / app.values().trained_length).toPrecision(3)) : length;
      return { [trait]: snap(dials.find((one) => one.trait === trait), value) };
    },
    ...ofDial(app, dials.find((one) => one.trait === trait), { finely: false }),
  }));
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  let now; // what was drawn last, { data, values, width, most }
  let run = { before: [], since: -Infinity }; // the methods that were on before the last switch, and its time
  const paint = ({ data: made, values, width, most }) => {
    const share = Math.min(1, (performance.now() - run.since) / GLIDE);
    const grown = (name) => (run.before.includes(name) ? 1 : share);
    const stretch = made.stretch.map((by, k) => by.map((one) => one ** grown(made.shown[k])));
    const data = { ...made, stretch };
    const panel = panelAt(width, most);
    const top = 50;
    const room = panel === null && data.shown.length > 0 ? 158 * Math.max(...data.shown.map(grown)) : 0;
    const low = room > 110; // whether the stretch is drawn below the wavelengths
    const lowFloor = most - 42;
    const floor = lowFloor - room;
    const lowTop = panel === 1 ? top + 4 : floor + 44;
    const pairs = data.wavelengths.length;
    const end = longest || 1.5 * Math.max(data.target, data.wavelengths.at(-1) * values.factor);
    plot = {
      width, top, floor, lowTop, lowFloor, pairs, longest: end, from: 46, to: width - 10,
      upper: panel !== 1, lower: low || panel === 1,
      x: scale([-0.5, pairs - 0.5], [46, width - 10]),
      y: scale([SHORTEST, end], [floor, top], true),
      below: scale([1, Math.max(values.factor, 1.25)], [lowFloor, lowTop], true),
    };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    redrawn(picture, () => [...(plot.upper ? ladder(plot, data, values) : []),
      ...(plot.lower ? stretches(plot, data, values) : []),
      svg("path", { d: level(plot, lowFloor), ...lined("muted", 1) }),
      ...pairAxis(plot.x, pairs, [plot.from, plot.to], lowFloor)]);
    const marks = lengthMarks(plot, data, values);
    Object.keys(handles).forEach((trait, k) => {
      if (plot.upper) grips[k]([marks[k].at - 6, marks[k].y - 14, marks[k].width + 12, 28]);
      else put(handles[trait], { style: "display: none" });
    });
    if (share < 1) requestAnimationFrame(() => picture.dispatchEvent(new Event("frame")));
  };
  app.listen(picture, "frame", () => paint(now)); // an event, so that it stops with the figure
  return ({ jump, ...what }) => {
    const before = now?.data.shown ?? what.data.shown;
    const more = what.data.shown.some((name) => !before.includes(name));
    if (jump || calm.matches) run.since = -Infinity;
    else if (more) run = { before, since: performance.now() };
    now = what;
    showModel(what.values);
    paint(now);
  };
}

// The methods' names beside their curves. A curve is given by its height at each pair.
function names({ from, to, x }, shown, curves, [upper, lower], taken) {
  const items = curves.map((heights, k) => {
    const { title: name = "", look } = METHODS[shown[k]] ?? {};
    return { name, look, points: heights.map((height, i) => [x(i), height]) };
  });
  return named(items, [from, upper, to, lower], taken);
}

function heading({ wavelengths, turned }) {
  const [pairs, young] = [wavelengths.length, wavelengths.length - turned];
  return titled(0, 0, "Wavelength of each pair, in tokens",
    young ? svg("tspan", inColour("2"), "Orange: no full turn within L")
      : `${capital(allOf(pairs, "pair"))} complete a turn within L`);
}

// Labels for L and L′, which the reader can drag. They are side by side if there isn't enough room for each above its
// line.
function lengthMarks({ from, y }, { target }, { trained_length }) {
  const width = (text) => 2 * pillHalf(text);
  const [known, wanted] = [`L = ${grouped(trained_length)}`, `L′ = ${grouped(target)}`];
  const near = Math.abs(y(trained_length) - y(target)) < 24;
  return [
    { text: known, at: from + 8, y: y(trained_length), width: width(known) },
    { text: wanted, at: from + 8 + (near ? width(known) + 14 : 0), y: y(target), width: width(wanted) },
  ];
}

function level({ from, to }, height) {
  return `M${from},${height.toFixed(1)}H${to}`;
}

// The shaded area behind the pairs that don't complete a turn within L.
function young({ pairs, x, to }, { turned }, [upper, lower]) {
  if (turned === pairs) return [];
  return [svg("rect", { x: x(turned - 0.5), width: to - x(turned - 0.5), y: upper, height: lower - upper,
    style: "fill: var(--rb-2); opacity: 0.08" })];
}

function curve({ x }, heights) {
  return `M${heights.map((height, i) => `${x(i).toFixed(1)},${height.toFixed(1)}`).join("L")}`;
}

function ladder(plot, data, dials) {
  const { from, top, floor, pairs, longest, lower, x, y } = plot;
  const { wavelengths, turned, shown, stretch } = data;
  const powers = Array.from({ length: Math.ceil(Math.log10(longest)) - 1 }, (_, k) => k + 1);
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", y, powers.map((power) => 10 ** power), powerOfTen);
  const size = Math.max(3, Math.min(8, ((x(pairs - 1) - x(0)) / pairs) * 0.7));
  const dots = (colour, start, end) => svg("path", {
    d: wavelengths.slice(start, end).map((wave, k) => `M${x(start + k).toFixed(1)},${y(wave).toFixed(1)}h0`).join(""),
    ...lined(colour, size),
  });
  const lines = [[dials.trained_length, ""], [data.target, "6 4"]];
  const curves = stretch.map((by) => by.map((one, i) => y(wavelengths[i] * one)));
  const levels = lines.map(([length]) => wavelengths.map(() => y(length)));
  const marks = lengthMarks(plot, data, dials);
  const taken = marks.map((mark) => ({ x: mark.at, y: mark.y + 4.5, width: mark.width }));
  return [
    ...heading(data), ...young(plot, data, [top, floor]),
    svg("path", { d: powers.map((power) => level(plot, y(10 ** power))).join(""), ...lined("grid", 1) }),
    left,
    ...lines.map(([length, dashes]) => svg("path", { d: level(plot, y(length)), ...styled(["ink", 1.5, dashes]) })),
    ...shown.map((name, k) => svg("path", { d: curve(plot, curves[k]), ...styled(METHODS[name].look) })),
    dots("1", 0, turned), dots("2", turned, pairs),
    ...((lower && shown.length > 2) || dials.factor === 1 ? []
      : names(plot, shown, [...curves, wavelengths.map(y), ...(lower ? levels : [])], [top, floor], taken)),
    ...marks.flatMap((mark) => pill(mark.at + mark.width / 2, mark.y, mark.text)),
  ];
}

// Draws the factor by which each method stretches each pair.
function stretches(plot, data, { factor }) {
  const { upper, from, to, lowTop, lowFloor, below } = plot;
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", below, factor > 1 ? [1, factor] : [1], (by) => tidyFactor(by));
  const none = data.shown.length && factor > 1 ? [] : [svg("text", {
    x: (from + to) / 2, y: (lowTop + lowFloor) / 2, "font-size": 13, "text-anchor": "middle", class: "rb-quiet",
  }, data.shown.length ? "With s = 1, no method changes a pair." : "No method is switched on.")];
  const heading = upper ? [svg("text", { x: 0, y: lowTop - 14, "font-size": 14, "font-weight": 600 }, "Stretch λ′/λ")]
    : titled(0, 0, "Stretch λ′/λ", "How much each method slows each pair down");
  const curves = data.stretch.map((by) => by.map(below));
  return [
    ...heading,
    ...young(plot, data, [lowTop - 6, lowFloor]),
    svg("path", { d: [below(1), below(factor)].map((height) => level(plot, height)).join(""), ...lined("grid", 1) }),
    left, ...none,
    ...data.shown.map((name, k) => svg("path", { d: curve(plot, curves[k]), ...styled(METHODS[name].look) })),
    ...(factor > 1 ? names(plot, data.shown, curves, [lowTop - 8, lowFloor]) : []),
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

// Formats the angle by which a pair exceeds its training angles, in radians.
function radians(angle) {
  if (angle > 0 && angle < 0.0005) return "under 0.001";
  return angle > 0 && angle < 1 ? exact(angle) : tidy(angle);
}

function describe({ target, wavelengths, turned, beyond, shown, left }, { trained_length }) {
  const [pairs, young] = [wavelengths.length, wavelengths.length - turned];
  if (!young) {
    return `${capital(allOf(pairs, "pair"))} complete a turn within L = ${grouped(trained_length)}: they have been `
      + "at every angle, so a longer text brings no new ones.";
  }
  const start = `${young} of ${pairs} pairs ${young === 1 ? "has" : "have"} not completed a turn within `
    + `L = ${grouped(trained_length)}. At L′ = ${grouped(target)} `;
  if (!beyond) return `${start}no angle is new, because L′ equals L.`;
  const methods = shown.map((name, k) => `${radians(left[k])}${k ? "" : " radians"} with ${METHODS[name].title}`);
  const list = methods.length > 1 ? `, ${methods.slice(0, -1).join(", ")} and ${methods.at(-1)}`
    : methods.map((only) => `, and ${only}`).join("");
  return `${start}the angles go up to ${radians(beyond)} radians beyond those in training if no method is used${list}.`;
}

export default explorer({
  title: "The wavelength ladder",
  note: "Drag L and L′. More methods are under “More dials”.",
  dials,
  compute,
  units: { target: "tokens", wavelengths: "tokens", beyond: "radians", left: "radians" },
  build,
  idle: (_, { ntk_by_parts, yarn }) => {
    const why = "No effect here: neither NTK-by-parts nor YaRN is switched on.";
    return ntk_by_parts || yarn ? {} : { alpha: why, beta: why };
  },
  stats: () => [],
  describe,
});
