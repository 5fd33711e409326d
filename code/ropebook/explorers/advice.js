// Which method to use for a model with trained length L that has to read L′ tokens: one row for each permitted change.

import { CASES, dials, MODELS, MOST_BASE, NAMES } from "./advice.py";
import { hundredths, invFreq, turnedPairs } from "./kit/rope.js";
import { selfExtendGroup, selfExtendReach, yarnFactor } from "./kit/methods.js";
import { allOf, capital, exact, grouped, tidy } from "./kit/text.js";
import { snap } from "./kit/dials.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, lined, OUTLINED, pill, pillHalf, scale, textWidth } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { presets } from "./kit/presets.js";
import { explorer } from "./kit/mount.js";

function compute({ trained_length, target_length, base, dim }) {
  const target = Math.max(trained_length, target_length);
  const theta = Array.from(invFreq(dim, base));
  const last = theta.length - 1;
  const turned = turnedPairs(theta, trained_length);
  const scaled = target / trained_length;
  const needed = (target - 1) / (trained_length - 1);
  const least = turned > last ? 1 : needed ** (last / turned);
  const raised = (factor) => base * factor ** (dim / (dim - 2));
  const window = Math.max(1, Math.floor(trained_length / 2));
  const group = selfExtendGroup(trained_length, window, target);
  return {
    needed: target_length > trained_length, // if false, no method is needed
    young: theta.length - turned, // the number of pairs without a full turn within L
    scale: scaled, // s
    attention: yarnFactor(scaled), // YaRN's f
    window, // Self-Extend's window
    group,
    reach: selfExtendReach(trained_length, window, group),
    grown: raised(scaled), // dynamic NTK's base at L′
    left: theta.slice(turned).reduce((most, one, k) => { // the largest angle by which the pair still exceeds training
      const angle = ((target - 1) * one) / scaled ** ((turned + k) / last);
      return Math.max(most, angle - (trained_length - 1) * one);
    }, 0),
    least, // the smallest NTK factor with which no pair exceeds its training angles
    raised: raised(least), // the base for this factor
  };
}

// ---- On the page ----

const TOP = 58; // top of the first row
const UNDER = 42; // space below the axis
const TWO_LINES = 46; // rows that are lower than this have room for one line only

function build(stage, app) {
  const models = MODELS.map(([name, dim, base, trained_length]) => [name, { dim, base, trained_length }]);
  const showModel = presets(app, "A published model’s settings", "A model’s settings …", models);
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const buttons = Object.keys(CASES).map((may) => {
    const button = html("button", { type: "button", "aria-label": `${NAMES[may]}, ${CASES[may]}` });
    app.listen(button, "click", () => app.change({ may }));
    return button;
  });
  const handles = { trained_length: html("div"), target_length: html("div") };
  stage.append(html("div", { style: "position: relative" }, picture, ...buttons, ...Object.values(handles)));
  const told = html("div", { class: "rb-told" });
  app.below.append(told);
  let plot;
  let ends = null; // the ends of the axis, which stay the same while the reader drags a mark
  for (const node of Object.values(handles)) {
    app.listen(node, "pointerdown", () => (ends = plot.ends));
    app.listen(node, "lostpointercapture", () => {
      ends = null;
      app.redraw();
    });
  }
  const grips = Object.keys(handles).map((trait) => {
    const dial = dials.find((one) => one.trait === trait);
    return hand(app, handles[trait], {
      label: `${dial.label} in the picture`,
      cursor: "ew-resize",
      place: (values) => [plot.x(values[trait]), 0],
      at(x) {
        const share = Math.min(1, Math.max(0, (x - plot.from) / (plot.to - plot.from)));
        return { [trait]: snap(dial, Number((plot.ends[0] * (plot.ends[1] / plot.ends[0]) ** share).toPrecision(3))) };
      },
      ...ofDial(app, dial, { finely: false }),
    });
  });
  return ({ data, values, width, most }) => {
    showModel(values);
    plot = layout(values, width, most, ends);
    put(picture, { width, height: plot.height, viewBox: `0 0 ${width} ${plot.height}` });
    const rows = rowsOf(data, values);
    redrawn(picture, () => [...ground(plot, values), ...rows.flatMap((row, k) => rowOf(plot, row, values, k)),
      ...frame(plot, values)]);
    buttons.forEach((button, k) => put(button, {
      "aria-pressed": rows[k + 1].chosen,
      style: `position: absolute; left: 0; top: ${TOP + (k + 1) * plot.row}px; width: ${width}px; `
        + `height: ${plot.row}px; border: 0; background: none; cursor: pointer`,
    }));
    marksOf(plot, values).forEach(({ middle, half }, k) => grips[k]([middle - half - 4, 22, 2 * half + 8, 30]));
    const take = pasted(data, values);
    redrawn(told, () => (take ? [html("p", {}, take.where), html("pre", {}, html("code", {}, take.text))] : []));
  };
}

function layout({ trained_length, target_length }, width, most, held) {
  const wide = width >= 600;
  const height = Math.min(most, 460);
  const [least, greatest] = [Math.min(trained_length, target_length), Math.max(trained_length, target_length)];
  const ends = held ?? [least / 4, greatest * 4];
  const [from, to] = [wide ? 226 : 8, width - 12];
  return { wide, width, height, ends, from, to, floor: height - UNDER, row: (height - UNDER - TOP) / 6,
    x: scale(ends, [from, to], true) };
}

// Labels L and L′ in the picture: the shorter length to the left of its line, the longer one to the right.
function marksOf({ width, x }, { trained_length, target_length }) {
  const longer = target_length >= trained_length;
  const beside = Math.abs(x(target_length) - x(trained_length)) < 26 ? 3 : -10;
  const marks = [["L", trained_length, longer ? -1 : 1], ["L′", target_length, longer ? 1 : -1]];
  return marks.map(([name, length, side]) => {
    const text = `${name} = ${whole(length)}`;
    const half = pillHalf(text);
    return { text, half, middle: Math.min(width - half - 1, Math.max(half + 1, x(length) + side * (half + beside))) };
  });
}

// Whether the model needs no change because no pair meets new angles.
function stays({ needed, young }) {
  return !needed || !young;
}

// Returns the name, case, text and reach of each row. `open` says whether the method reaches even further.
function rowsOf(data, { trained_length: length, target_length: target, base, may }) {
  const { needed, young, scale: s, attention, window, group, reach, grown, raised } = data;
  const told = {
    cached: [`s = ${short(s)}, f = ${exact(attention)}`, target],
    tables: [`W = ${whole(window)}, G = ${whole(group)}: reaches ${whole(reach)}`, reach],
    short: [`base ${whole(grown)} at L′, grows with the text`, length, true],
    base: young ? [`${whole(Math.ceil(raised))} (${tidy(raised / base)} times as large)`, target]
      : ["as trained", length, true],
    trained: [`s = ${short(s)}, then trained on L′ tokens`, target],
  };
  const cases = Object.entries(told).map(([name, [text, end, open = false]]) => ({
    name: NAMES[name], when: CASES[name], chosen: !stays(data) && name === may, reach: needed ? end : 0, open,
    text: needed ? text : "not needed", falls: false,
  }));
  const known = !needed ? "L′ is within L" : young ? "beyond L, angles are new" : "no angle is new at any length";
  return [{ name: "No method", when: "nothing is changed", text: known, reach: length, open: !young,
    chosen: stays(data), falls: !stays(data) }, ...cases];
}

function ground({ from, to, floor, x }, { trained_length, target_length }) {
  return [svg("path", {
    d: [trained_length, target_length].map((one) => `M${hundredths(x(one))},52V${floor}`).join(""), ...lined("grid", 1),
  }), svg("path", { d: `M${from},${floor}H${to}`, ...lined("muted", 1) })];
}

function rowOf({ wide, width, from, to, row, x }, one, values, k) {
  const { name, when, text, reach, open, chosen, falls } = one;
  const top = TOP + k * row;
  const at = top + (wide ? 25 : 15);
  const low = !wide && row < TWO_LINES;
  const bar = wide ? at + 9 : low ? at + 5 : at + 23;
  const colour = falls ? "2" : chosen ? "1" : "muted";
  const word = (left, y, weight, said, look) => {
    return svg("text", { x: left, y, "font-size": 13, "font-weight": weight, ...look }, said);
  };
  const quiet = { class: "rb-quiet" };
  const end = hundredths(x(reach));
  const band = chosen ? [svg("rect", { x: 0, y: top + 1, width, height: row - 2, rx: 6,
    style: "fill: var(--rb-1); opacity: 0.1" })] : [];
  const lengths = [values.trained_length, values.target_length];
  return [
    ...band,
    svg("g", OUTLINED,
      word(8, at - (wide ? 2 : 0), 600, name),
      word(wide ? 8 : 16 + textWidth(name, 13, 600), at + (wide ? 16 : 0), 400, when, quiet),
      ...(low ? [] : [word(from, wide ? at : at + 16, chosen ? 600 : 400, text)])),
    ...(reach ? [svg("rect", { x: from, y: bar, width: hundredths(end - from), height: 8, rx: 2,
      style: `fill: var(--rb-${colour}); opacity: ${chosen || falls ? 1 : 0.6}` })] : []),
    ...(reach && open ? [svg("path", { d: `M${end + 8},${bar + 4}H${to}`,
      ...lined(colour, 3.5, "stroke-dasharray: 0 8") })] : []),
    svg("path", { d: lengths.map((one) => `M${hundredths(x(one))},${bar - 2}v12`).join(""), ...lined("ink", 1.5) }),
  ];
}

function frame(plot, values) {
  const { from, to, floor, ends, x } = plot;
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  const [first, last] = [Math.ceil(Math.log2(ends[0])), Math.floor(Math.log2(ends[1]))];
  const step = Math.ceil((64 * Math.log2(ends[1] / ends[0])) / (to - from));
  const ticks = Array.from({ length: Math.floor((last - first) / step) + 1 }, (_, k) => 2 ** (first + k * step));
  axis(bottom, "bottom", x, ticks.filter((tick) => x(tick) >= from + 16 && x(tick) <= to - 22), whole);
  return [
    svg("text", { x: 0, y: 14, "font-size": 14, "font-weight": 600 }, "How far each method reaches"),
    ...marksOf(plot, values).flatMap(({ middle, text }) => pill(middle, 37, text)), bottom,
    svg("text", { x: (from + to) / 2, y: floor + 37, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" },
      "length in tokens"),
  ];
}

// Formats a number without decimals, or as a power of ten if it would be too long to read.
function whole(value) {
  return value < 1e9 ? grouped(Math.round(value)) : tidy(value);
}

function short(value) {
  return value < 1000 ? String(Number(value.toPrecision(4))) : whole(value);
}

// Formats the angle by which a pair exceeds its training angles.
function radians(angle) {
  return angle > 0 && angle < 0.0005 ? "less than 0.001" : tidy(angle);
}

// Returns the recommendation for the chosen case. The row and the text to paste have the settings.
const TAKE = {
  cached: () => "Use YaRN. Its frequencies stay the same while the text grows, so cached keys stay correct.",
  tables: () => "Use Self-Extend. It keeps near distances exact and shortens far ones, so no angle is new up to its "
    + "reach.",
  short: ({ left }) => "Use dynamic NTK, and cache unrotated keys. Texts up to L stay as they are; at L′, angles still "
    + `go ${radians(left)} radians beyond those in training.`,
  base: ({ raised }, { base }) => {
    const far = raised > MOST_BASE
      ? ` It is above those of the models in the list, which are at most ${whole(MOST_BASE)}.` : "";
    return `Set the base to ${whole(Math.ceil(raised))} (${tidy(raised / base)} times the trained one): no smaller `
      + `whole number keeps every pair within its trained angles.${far}`;
  },
  trained: () => "Use YaRN, then train the model further on texts of length L′.",
};

// What to paste for the chosen case, and where; null if nothing is needed. Methods that transformers doesn't have are
// installed in the loaded model.
function pasted(data, { trained_length, base, may }) {
  if (stays(data)) return null;
  const { scale: factor, window, group, raised } = data;
  const config = (rope_type, more) => ({
    where: "In the model’s config.json (transformers 5):",
    text: `"rope_parameters": ${JSON.stringify({ rope_type, ...more }, null, 2)}`,
  });
  const call = (name, options) => ({
    where: "For a model that transformers has loaded:",
    text: `from ropebook.extrapolation import install, make\n\ninstall(model, make("${name}", ${options}))`,
  });
  const yarn = config("yarn", { rope_theta: base, factor, original_max_position_embeddings: trained_length });
  return {
    cached: yarn,
    trained: yarn,
    base: config("default", { rope_theta: Math.ceil(raised) }),
    tables: call("self_extend", `window=${window}, group=${group}`),
    short: call("dynamic_ntk", `trained_length=${trained_length}`),
  }[may];
}

function describe(data, values) {
  const { trained_length, target_length, dim, may } = values;
  const { needed, young } = data;
  const within = `L = ${whole(trained_length)}`;
  if (!needed) return `Nothing is needed: L′ = ${whole(target_length)} is no longer than ${within}.`;
  if (young) return TAKE[may](data, values);
  return `${capital(allOf(dim / 2, "pair"))} complete a turn within ${within}: no angle is new at L′, so the `
    + "angles give no reason to change anything.";
}

export default explorer({
  title: "Which method fits your numbers",
  note: "Which model? Pick one, or drag L. How long should it read? Drag L′. What can you do to it? Click a row. The "
    + "setting to paste is below.",
  dials,
  compute,
  units: { window: "tokens", reach: "tokens", left: "radians" },
  build,
  idle: (data) => (stays(data) ? { may: "No angle is new, so nothing is needed." } : {}),
  stats: ({ young }, { dim }) => [["Pairs without a full turn within L", String(young), `of ${dim / 2}`]],
  describe,
});
