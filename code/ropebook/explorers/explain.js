// What a config.json says about positions, in words and as a plot of each pair's wavelength against the two lengths.

import { dials, EXAMPLES, LONGEST_CONFIG, RULES } from "./explain.py";
import { explained } from "./kit/explained.js";
import { capital, count, grouped, tidy } from "./kit/text.js";
import { html, put, redrawn, svg, unbroken } from "./kit/elements.js";
import { axis, inColour, lined, OUTLINED, pairAxis, pill, pillHalf, scale, textWidth, titled } from "./kit/drawing.js";
import { lastCall } from "./kit/rope.js";
import { explorer } from "./kit/mount.js";

const read = lastCall((text, length) => explained(text, RULES, length));

function compute({ config, example, length, second }) {
  const { error, words, tables, findings, snippets } = read(config.trim() ? config : EXAMPLES[example],
    length < 2 ? null : length);
  const at = second && tables.length > 1 ? 1 : 0;
  const empty = { name: "", facts: {}, words: [], plain: [], long: [], turned: [], beyond: [] };
  const { name, facts, words: ofTable, plain, long, turned, beyond } = tables[at] ?? empty;
  return {
    error,
    words: [...words, ...ofTable],
    findings,
    snippets,
    kinds: tables.length, // the number of kinds of layers, each of which has its own frequencies
    name,
    plain, // θ before scaling
    long, // θ at the target length
    turned, // whether each pair completes a turn within the trained length
    beyond, // by how many radians each pair exceeds its training angles
    fresh: facts.new_pairs ?? null, // the number of pairs that meet new angles
    near: facts.near ?? null, // the trained length, or the window
    far: facts.far ?? null, // the target length, or the window
  };
}

// ---- On the page ----

const SHORTEST = 4; // the start of the axis, unless a length is shorter
const TOP = 56;
const STATES = { // names and colours
  turned: ["completes a turn", "1"],
  kept: ["no turn, no new angle", "muted"],
  fresh: ["meets new angles", "2"],
  unknown: ["angles unknown", "ink"],
};

function stateOf({ turned, beyond, plain }, i) {
  if (!turned.length) return "unknown";
  return turned[i] ? "turned" : beyond[i] > plain[i] ? "fresh" : "kept";
}

const moved = ({ plain, long }, i) => Math.abs(long[i] / plain[i] - 1) > 1e-6;

// Draws the wavelengths of the pairs that rotate.
function dotsOf(data) {
  const wave = (theta) => (2 * Math.PI) / theta;
  return data.long.flatMap((one, i) => (one > 0 ? [{
    i, state: stateOf(data, i), wave: wave(one), before: wave(data.plain[i]), moved: moved(data, i),
  }] : []));
}

function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  stage.append(picture);
  const told = html("div", { class: "rb-told" });
  app.below.append(told);
  return ({ data, width, most }) => {
    const height = Math.min(most, 440);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    redrawn(picture, () => (data.long.length ? drawn(data, width, height) : nothing(data, width, height)));
    redrawn(told, () => wordsOf(data));
  };
}

function nothing({ error, kinds }, width, height) {
  const said = error ? "This text cannot be read." : kinds ? "The frequencies are unknown." : "Nothing rotates.";
  const [from, to, floor, top] = [52, width - 10, height - 44, TOP];
  return [...titled(0, 0, "Wavelength of each pair", "Nothing to draw"),
    ...ground(scale([SHORTEST, 2e6], [floor, top], true), [1, 2, 3, 4, 5, 6], from, to),
    svg("path", { d: `M${from},${floor}H${to}`, ...lined("muted", 1) }),
    svg("text", { x: (from + to) / 2, y: (top + floor) / 2, "font-size": 14, "text-anchor": "middle" }, said)];
}

// Draws the axis and grid lines at the powers of ten.
function ground(y, powers, from, to) {
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", y, powers.map((power) => 10 ** power), (value) => tidyPower(value));
  const d = powers.map((power) => `M${from},${y(10 ** power).toFixed(1)}H${to}`).join("");
  return [svg("path", { d, ...lined("grid", 1) }), left];
}

function drawn(data, width, height) {
  const dots = dotsOf(data);
  const top = TOP;
  const [from, to, floor] = [52, width - 10, height - 44];
  const lengths = [["L", data.near], ["L′", data.far]].filter(([, one]) => one);
  const longest = 1.6 * Math.max(...dots.map(({ wave }) => wave), ...lengths.map(([, one]) => one), 100);
  const x = scale([-0.5, data.long.length - 0.5], [from, to]);
  const y = scale([Math.min(SHORTEST, ...lengths.map(([, one]) => one / 2)), longest], [floor, top], true);
  const powers = Array.from({ length: Math.floor(Math.log10(longest)) }, (_, k) => k + 1);
  const step = Math.ceil((18 * powers.length) / (floor - top));
  const shown = powers.filter((power) => power % step === 0);
  const size = Math.max(3, Math.min(8, (0.7 * (to - from)) / data.long.length));
  const level = (value) => `M${from},${y(value).toFixed(1)}H${to}`;
  const marks = marksOf(lengths, from, y);
  return [
    ...titled(0, 0, "Wavelength of each pair", "In tokens, with the lengths L and L′"),
    ...ground(y, shown, from, to),
    ...lengths.map(([name, one]) => svg("path", {
      d: level(one), ...lined("ink", 1.5, name === "L" ? "" : "stroke-dasharray: 6 4"),
    })),
    svg("path", {
      d: dots.filter((one) => one.moved).map(({ i, before, wave }) => {
        return `M${x(i).toFixed(1)},${y(before).toFixed(1)}V${y(wave).toFixed(1)}`;
      }).join(""),
      ...lined("muted", 1.5),
    }),
    ...Object.entries(STATES).map(([state, [, colour]]) => svg("path", {
      d: dots.filter((one) => one.state === state).map(({ i, wave }) => {
        return `M${x(i).toFixed(1)},${y(wave).toFixed(1)}h0`;
      }).join(""),
      ...lined(colour, size),
    })),
    ...names(dots, x, y, [from, to, floor], marks, lengths),
    ...marks.flatMap(({ middle, at, text }) => pill(middle, at, text)),
    ...pairAxis(x, data.long.length, [from, to], floor),
  ];
}

// The names of the pairs' states beside the dots: below those of the fast pairs, and above the others. The name of the
// thin lines is below their ends. A name moves away from the dots where another text or a length's line is in its way.
function names(dots, x, y, [from, to, floor], marks, lengths) {
  const taken = [
    ...marks.map(({ middle, at, text }) => [middle - pillHalf(text), middle + pillHalf(text), at - 12, at + 12]),
    ...lengths.map(([, one]) => [from, to, y(one) - 6, y(one) + 4]),
  ];
  const name = (text, colour, right, height, by) => {
    const width = textWidth(text, 12, 600);
    const left = Math.min(to - width, Math.max(from + 4, right - width));
    let base = Math.min(floor - 5, Math.max(TOP, height));
    const hits = () => taken.some(([a, b, high, low]) => left < b + 4 && a < left + width + 4 && base - 11 < low
      && high < base + 3);
    while (hits() && base + by > TOP - 8 && base + by < floor) base += by;
    taken.push([left, left + width, base - 11, base + 3]);
    return svg("text", { x: left, y: base, "font-size": 12, "font-weight": 600, ...OUTLINED, ...inColour(colour) },
      text);
  };
  const states = Object.entries(STATES).flatMap(([state, [text, colour]]) => {
    const some = dots.filter((one) => one.state === state);
    if (!some.length) return [];
    const { i, wave } = some[some.length >> 1];
    return state === "turned" ? [name(text, colour, x(i) + 12 + textWidth(text, 12, 600), y(wave) + 18, 8)]
      : [name(text, colour, x(i) - 10, y(wave) - 8, -8)];
  });
  const stretched = dots.filter((one) => one.moved && x(one.i) > to - 96);
  if (!stretched.length) return states;
  const lowest = Math.max(...stretched.map(({ before }) => y(before)));
  return [...states, name("before scaling", "muted", to, lowest + 16, 8)];
}

function tidyPower(value) {
  const power = Math.round(Math.log10(value));
  return power < 4 ? String(value) : `10${[...String(power)].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}`;
}

// Labels the lines of the two lengths. The labels are side by side if the lines are too close to each other. If the
// lengths are equal, there is only one label.
function marksOf(lengths, from, y) {
  const named = lengths.length === 2 && lengths[0][1] === lengths[1][1] ? [["L = L′", lengths[0][1]]] : lengths;
  let end = from + 6;
  return named.map(([name, one], k) => {
    const text = `${name} = ${grouped(one)}`;
    const near = k > 0 && Math.abs(y(one) - y(named[0][1])) < 26;
    const start = near ? end + 8 : from + 6;
    end = start + 2 * pillHalf(text);
    return { text, at: y(one), middle: start + pillHalf(text) };
  });
}

const OPTION = /(--[a-z][a-z-]*)/; // browsers would break a line after each of its hyphens

// The description in words, the findings, and the code snippets.
function wordsOf({ error, words, findings, snippets }) {
  if (error) return []; // the sentence below the picture gives the reason
  const list = (entries) => html("dl", { class: "rb-facts" },
    ...entries.flatMap(([name, said]) => [html("dt", {}, name), html("dd", {}, said)]));
  return [
    list(words),
    html("p", { class: "rb-head" }, findings.length ? "What looks odd" : "Nothing wrong or suspicious was found."),
    ...(findings.length ? [list(findings.map(([level, , said]) => [level, said]))] : []),
    ...(snippets.length ? [html("details", {}, html("summary", {}, "How to load, convert and extend it"),
      ...snippets.flatMap(({ title, code, note, checked }) => [
        html("p", { class: "rb-head" }, title),
        ...(code ? [html("pre", { tabindex: 0 }, html("code", {}, ...unbroken(code, OPTION)))] : []),
        html("p", {}, ...unbroken(note, OPTION)), html("p", { class: "rb-note" }, checked),
      ]))] : []),
  ];
}

function describe({ error, kinds, name, plain, long, near, far, turned, beyond, fresh, findings }) {
  if (error) return `The text cannot be read: ${error.replace(/^[a-z-]+: /, "")}.`; // without the error's name
  if (!kinds) return "Nothing rotates in this model.";
  const said = (sentence) => (kinds > 1 ? `${name}: ${sentence}` : capital(sentence));
  const odd = findings.length ? ` ${count(findings.length, "remark")} below.` : "";
  if (!long.length) return `${said("the file does not determine the frequencies.")}${odd}`;
  if (near === null) return `${said("without the lengths, it is unknown which pairs meet new angles.")}${odd}`;
  const known = turned.filter(Boolean).length;
  const scaled = long.some((_, i) => moved({ plain, long }, i));
  const whole = `${scaled ? "before scaling, " : ""}${known} of ${count(long.length, "pair")} `
    + `${known === 1 ? "completes" : "complete"} a turn within L`;
  const who = fresh ? `${count(fresh, "pair")} ${fresh === 1 ? "meets" : "meet"} new angles, by up to `
    + `${tidy(Math.max(...beyond))} radians` : "no pair meets a new angle";
  return `${said(`${whole}. In a text of ${grouped(far)} tokens, ${who}.`)}${odd}`;
}

function parseConfig(text) {
  const { length } = [...text];
  const [has, most] = [length, LONGEST_CONFIG].map(grouped);
  if (length > LONGEST_CONFIG) throw new Error(`this has ${has} characters, more than ${most}`);
  return text.replace(/\p{Cs}/gu, "\ufffd"); // a lone surrogate isn't allowed in a URL
}

export default explorer({
  title: "What a configuration says",
  note: "Paste a config.json or pick an example. Nothing leaves this page.",
  dials,
  typed: { config: { parse: parseConfig, format: (text) => text } },
  compute,
  units: {
    plain: "radians per token", long: "radians per token", beyond: "radians", near: "tokens", far: "tokens",
  },
  build,
  idle: ({ kinds }, { config }) => ({
    ...(config.trim() ? { example: "No effect here: the figure explains your own file." } : {}),
    ...(kinds > 1 ? {} : { second: "No effect here: the file has one kind of layer." }),
  }),
  stats: () => [],
  describe,
});
