// The contribution of distance alone to the scores of a published model, how it changes if some pairs are slowed down,
// and the losses that were measured then.

import { BEYOND, BLOCK, dials, REACH, STEP, TRAINED, WEIGHTS, WITHIN } from "./penalty.py";
import { exact, grouped } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, fitting, inColour, levelsOf, lined, scale, textWidth, titled } from "./kit/drawing.js";
import { across } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";
import { panels } from "./kit/panels.js";

const PLACES = Array.from({ length: REACH / STEP + 1 }, (_, k) => k * STEP);

// The mean score at a distance, for pairs with these frequencies.
function scoreAt({ real, imag }, rates, distance) {
  return rates.reduce((sum, rate, i) => {
    return sum + real[i] * Math.cos(rate * distance) - imag[i] * Math.sin(rate * distance);
  }, 0);
}

// The mean loss over a range of positions.
function lossIn(losses, [start, stop]) {
  const blocks = losses.slice(start / BLOCK, stop / BLOCK);
  return blocks.reduce((sum, loss) => sum + loss, 0) / blocks.length;
}

// The numbers in `bias` are passed with the dials; load() in penalty.py describes them.
function compute({ first, last, factor, distance, bias }) {
  const [from, to] = first <= last ? [first, last] : [last, first];
  const slowed = bias.theta.map((rate, i) => (i >= from && i <= to ? rate / factor : rate));
  const [plain, changed] = [bias.theta, slowed].map((rates) => PLACES.map((place) => scoreAt(bias, rates, place)));
  const lowest = (curve) => PLACES[curve.indexOf(Math.min(...curve))];
  const losses = bias.losses[factor === 1 ? "" : `${from}-${to}/${factor}`] ?? null;
  const bands = (found) => found && [WITHIN, BEYOND].map((band) => lossIn(found, band));
  return {
    from,
    to,
    plain, // the mean score at every distance
    changed,
    plainHere: scoreAt(bias, bias.theta, distance),
    changedHere: scoreAt(bias, slowed, distance),
    plainLowest: lowest(plain), // the distance at which the score is lowest
    changedLowest: lowest(changed),
    losses, // the loss of each block of tokens, or null if it wasn't measured
    plainLosses: bias.losses[""],
    loss: bands(losses), // the losses measured within and beyond the trained length
    plainLoss: bands(bias.losses[""]),
  };
}

// ---- On the page ----

const [LEFT, TOP] = [46, 78];
const RIGHT = 14; // px to the right of a panel
const LINE = 15; // px

function build(stage, app) {
  const panelAt = panels(app, ["Mean score", "Loss"]);
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  let ends = [LEFT, LEFT + 1];
  const showPad = across(app, pad, dials.find((dial) => dial.trait === "distance"), {
    label: "Distance in the picture",
    ends: () => ends,
    valueAt: (share) => Math.round((share * REACH) / STEP) * STEP,
    finely: false,
  });

  return ({ data, values, width, most }) => {
    const only = panelAt(width);
    const split = only === null ? Math.round(0.58 * width) : 0; // where the right panel begins
    const scores = plotOf(0, split || width, most, [...data.plain, ...data.changed], REACH);
    const measured = Object.values(values.bias.losses).flat();
    const losses = plotOf(split, width, most, measured, BLOCK * data.plainLosses.length);
    ends = scores.ends;
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    redrawn(picture, () => [
      ...(only === 1 ? [] : scorePanel(scores, data, values)),
      ...(only === 0 ? [] : lossPanel(losses, data, values)),
    ]);
    pad.hidden = only === 1;
    showPad([ends[0], TOP, ends[1] - ends[0], scores.floor - TOP]);
  };
}

// The place of a panel between two edges of the picture.
function plotOf(edge, right, most, values, reach) {
  const ends = [edge + (edge ? LEFT - 14 : LEFT), right - RIGHT];
  const [floor, levels] = [most - 44, levelsOf(values)];
  return {
    edge, floor, levels, ends, reach,
    x: scale([0, reach], ends),
    y: scale([levels[0], levels.at(-1)], [floor, TOP]),
  };
}

function scorePanel(plot, data, { distance, factor }) {
  return [
    ...titled(0, 0, plot.ends[1] < 330 ? "Mean score by distance" : "Mean score of all heads by distance",
      ...keys(factor, `${bandOf(data)} slowed by ${Number(factor.toPrecision(5))}`)),
    ...frame(plot, "distance"),
    ...curves(plot, data, distance),
  ];
}

// The names of the curves. If nothing is slowed, the two curves are the same.
function keys(factor, slowed) {
  if (factor === 1) return [svg("tspan", inColour("1"), "original, not slowed")];
  return [svg("tspan", inColour("muted"), "original"),
    ...(slowed ? [svg("tspan", { dx: 14, ...inColour("1") }, slowed)] : [])];
}

// The losses that were measured, or a sentence that says which ones were.
function lossPanel(plot, { losses, plainLosses }, { factor, bias }) {
  const { x, y, ends } = plot;
  const path = (found) => {
    return `M${found.map((loss, k) => `${x((k + 0.5) * BLOCK).toFixed(1)},${y(loss).toFixed(1)}`).join("L")}`;
  };
  const title = fitting(["Measured loss by position (nats)", "Loss by position (nats)"], ends[1] + RIGHT - plot.edge,
    14, 600);
  const said = losses ? [] : linesOf(unmeasured(bias.losses, factor), ends[1] - ends[0] - 4);
  return [
    ...titled(plot.edge, 0, title, ...keys(factor, losses && "slowed")),
    ...frame(plot, "position"),
    svg("path", { d: path(plainLosses), ...lined("muted", 1.75) }),
    ...(losses ? [svg("path", { d: path(losses), ...lined("1", 2.25) })] : []),
    ...said.flatMap((line, k) => [ // the lines of the axes aren't visible between the letters
      svg("rect", { x: ends[0] + 1, y: TOP + 1 + k * LINE, width: textWidth(line, 12) + 6, height: LINE + 1,
        style: "fill: var(--rb-paper)" }),
      svg("text", { x: ends[0] + 4, y: TOP + 13 + k * LINE, "font-size": 12, ...inColour("1") }, line),
    ]),
  ];
}

// Says which losses were measured, with the factor on the dial or, if there are none, with other factors.
function unmeasured(losses, factor) {
  const measured = Object.keys(losses).filter(Boolean).map((key) => key.split(/[-/]/).map(Number));
  const factors = [...new Set(measured.map(([, , by]) => by))].sort((a, b) => a - b);
  const start = "The loss with these pairs slowed was not measured.";
  if (!factors.includes(factor)) {
    return `${start} It was measured with ${factors.length > 1 ? "factors" : "a factor"} of ${listed(factors, "and")}.`;
  }
  const bands = measured.filter(([, , by]) => by === factor);
  const several = bands.filter(([a, b]) => a < b).map(([a, b]) => `${a}–${b}`);
  const single = bands.filter(([a, b]) => a === b).map(([a]) => a);
  const groups = [
    ...(several.length ? [`pairs ${several.join(", ")}`] : []),
    ...(single.length ? [`${single.length > 1 ? "for each of" : "pair"} ${runs(single).join(", ")} alone`] : []),
  ];
  return `${start} With a factor of ${factor}, it was measured for ${listed(groups, "and")}.`;
}

// 20, 21, 22, 25 → 20–22, 25
function runs(/** @type {number[]} */ numbers) {
  const starts = numbers.filter((one) => !numbers.includes(one - 1));
  return starts.map((start) => {
    const end = numbers.find((one) => one >= start && !numbers.includes(one + 1));
    return start === end ? String(start) : `${start}–${end}`;
  });
}

function listed(parts, word) {
  return parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} ${word} ${parts.at(-1)}`;
}

// Breaks a text into lines that fit into a width.
function linesOf(text, width) {
  return text.split(" ").reduce((lines, word) => {
    const longer = [...lines.slice(-1), word].join(" ");
    return textWidth(longer, 12) <= width ? [...lines.slice(0, -1), longer] : [...lines, word];
  }, /** @type {string[]} */ ([]));
}

function bandOf({ from, to }) {
  return from === to ? `pair ${from}` : `pairs ${from} to ${to}`;
}

function frame({ floor, levels, ends, reach, x, y }, what) {
  const [from, to] = ends;
  const left = svg("g", { transform: `translate(${from} 0)` });
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  axis(left, "left", y, levels, (level) => exact(level, 0));
  const ticks = [0, 4096, 8192, 12_288, 16_384].filter((tick) => tick <= reach);
  axis(bottom, "bottom", x, ticks, (tick) => (tick ? `${tick / 1024}k` : "0"));
  return [
    svg("path", { d: levels.map((level) => `M${from},${y(level).toFixed(1)}H${to}`).join(""), ...lined("grid", 1) }),
    left, bottom,
    svg("text", { x: (from + to) / 2, y: floor + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" },
      to - from < 220 ? `${what} (k: 1,024)` : `${what} in tokens (k: 1,024)`),
    svg("path", { d: `M${x(TRAINED).toFixed(1)},${TOP}V${floor}`, ...lined("2", 1.5) }),
    svg("text", { x: x(TRAINED), y: TOP - 8, "font-size": 12, "text-anchor": "middle", ...inColour("2") },
      "trained length"),
  ];
}

function curves({ x, y }, { plain, changed, plainHere, changedHere }, distance) {
  const path = (curve) => `M${curve.map((score, k) => `${x(PLACES[k]).toFixed(1)},${y(score).toFixed(1)}`).join("L")}`;
  const dot = (score, colour) => {
    return svg("circle", { cx: x(distance), cy: y(score), r: 5, style: `fill: var(--rb-${colour})` });
  };
  return [
    svg("path", { d: path(plain), ...lined("muted", 1.75) }), svg("path", { d: path(changed), ...lined("1", 2.25) }),
    dot(plainHere, "muted"), dot(changedHere, "1"),
  ];
}

function describe(data, { factor }) {
  const { plainLowest, changedLowest, plain, changed } = data;
  const back = (curve) => exact(curve.at(-1) - Math.min(...curve), 1);
  const rises = (where, curve) => (where === REACH ? "falls all the way"
    : `is lowest at ${grouped(where)} tokens, then rises by ${back(curve)}`);
  const original = `Originally, the mean score ${rises(plainLowest, plain)} up to ${grouped(REACH)}.`;
  return factor === 1 ? original : `${original} With ${bandOf(data)} slowed, it ${rises(changedLowest, changed)}.`;
}

function lossText(loss, plainLoss, k, factor) {
  return [exact(loss[k], 2), factor === 1 ? "nats" : `nats, originally ${exact(plainLoss[k], 2)}`];
}

export default explorer({
  title: "A penalty on distance, made of cosines",
  note: "Choose pairs to slow down, and drag across the scores to read them. The scores are computed from pieces of "
    + `1,024 tokens, and the losses were measured in a text of 12,288 tokens. The model has ${WEIGHTS}.`,
  dials,
  compute,
  units: {
    plainLowest: "tokens", changedLowest: "tokens", losses: "nats", plainLosses: "nats", loss: "nats",
    plainLoss: "nats",
  },
  build,
  stats: ({ plainHere, changedHere, loss, plainLoss }, { distance, factor }) => [
    [`Mean score at ${grouped(distance)}`, exact(changedHere, 1),
      factor === 1 ? "" : `originally ${exact(plainHere, 1)}`],
    ...(loss ? [["Loss up to 8,192", ...lossText(loss, plainLoss, 0, factor)],
      ["Loss from 9,216 on", ...lossText(loss, plainLoss, 1, factor)]]
      : [["Loss", "not measured"]]),
  ],
  describe,
  beside: ({ model }) => ({ values: () => ({ bias: model.get("bias") }) }),
});
