// The contribution of distance alone to the scores of a published model, and how it changes if some pairs are slowed
// down.

import { dials, REACH, STEP, TRAINED } from "./penalty.py";
import { exact } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, inColour, levelsOf, lined, NARROW, scale, titled } from "./kit/drawing.js";
import { across } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";

const PLACES = Array.from({ length: REACH / STEP + 1 }, (_, k) => k * STEP);

// The mean score at a distance, for pairs with these frequencies.
function scoreAt({ real, imag }, rates, distance) {
  return rates.reduce((sum, rate, i) => {
    return sum + real[i] * Math.cos(rate * distance) - imag[i] * Math.sin(rate * distance);
  }, 0);
}

// The numbers in `bias` are passed with the dials; load() in penalty.py describes them.
function compute({ first, last, factor, distance, bias }) {
  const [from, to] = first <= last ? [first, last] : [last, first];
  const slowed = bias.theta.map((rate, i) => (i >= from && i <= to ? rate / factor : rate));
  const [plain, changed] = [bias.theta, slowed].map((rates) => PLACES.map((place) => scoreAt(bias, rates, place)));
  const lowest = (curve) => PLACES[curve.indexOf(Math.min(...curve))];
  const measured = factor === 1 ? "" : factor === 2 ? `${from}-${to}` : null;
  return {
    from,
    to,
    plain, // the mean score at every distance
    changed,
    plainHere: scoreAt(bias, bias.theta, distance),
    changedHere: scoreAt(bias, slowed, distance),
    plainLowest: lowest(plain), // the distance at which the score is lowest
    changedLowest: lowest(changed),
    loss: bias.losses[measured] ?? null, // the losses measured within and beyond the trained length
    plainLoss: bias.losses[""],
  };
}

// ---- On the page ----

const [LEFT, TOP] = [46, 78];

function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  let ends = [LEFT, LEFT + 1];
  const showPad = across(app, pad, dials.find((dial) => dial.trait === "distance"), {
    label: "Distance in the picture",
    ends: () => ends,
    valueAt: (share) => Math.round((share * REACH) / STEP) * STEP,
  });

  return ({ data, values, width, most }) => {
    const floor = most - 44;
    ends = [LEFT, width - 14];
    const levels = levelsOf([...data.plain, ...data.changed]);
    const plot = {
      width, floor, levels, ends,
      x: scale([0, REACH], ends),
      y: scale([levels[0], levels.at(-1)], [floor, TOP]),
    };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    redrawn(picture, () => [...heading(plot, data, values), ...frame(plot), ...curves(plot, data, values)]);
    showPad([ends[0], TOP, ends[1] - ends[0], floor - TOP]);
  };
}

function bandOf({ from, to }) {
  return from === to ? `pair ${from}` : `pairs ${from}–${to}`;
}

function heading({ width }, data, { factor }) {
  const slowed = `${bandOf(data)} slowed by ${Number(factor.toPrecision(3))}`;
  return titled(0, 0, width < NARROW ? "Mean score by distance" : "Mean score of all heads by distance",
    svg("tspan", inColour("muted"), "original"), svg("tspan", { dx: 14, ...inColour("1") }, slowed));
}

function frame({ floor, levels, ends, x, y }) {
  const [from, to] = ends;
  const left = svg("g", { transform: `translate(${from} 0)` });
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  axis(left, "left", y, levels, (level) => exact(level, 0));
  axis(bottom, "bottom", x, [0, 4096, 8192, 12_288, 16_384], (tick) => (tick ? `${tick / 1024}k` : "0"));
  return [
    svg("path", { d: levels.map((level) => `M${from},${y(level).toFixed(1)}H${to}`).join(""), ...lined("grid", 1) }),
    left, bottom,
    svg("text", { x: (from + to) / 2, y: floor + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" },
      to - from < 400 ? "distance in tokens (k: 1,024)" : "distance between query and key, in tokens (k: 1,024)"),
    svg("path", { d: `M${x(TRAINED).toFixed(1)},${TOP}V${floor}`, ...lined("2", 1.5) }),
    svg("text", { x: x(TRAINED), y: TOP - 8, "font-size": 12, "text-anchor": "middle", ...inColour("2") },
      "trained length"),
  ];
}

function curves({ x, y }, { plain, changed, plainHere, changedHere }, { distance }) {
  const path = (curve) => `M${curve.map((score, k) => `${x(PLACES[k]).toFixed(1)},${y(score).toFixed(1)}`).join("L")}`;
  const dot = (score, colour) => {
    return svg("circle", { cx: x(distance), cy: y(score), r: 5, style: `fill: var(--rb-${colour})` });
  };
  return [
    svg("path", { d: path(plain), ...lined("muted", 1.75) }), svg("path", { d: path(changed), ...lined("1", 2.25) }),
    dot(plainHere, "muted"), dot(changedHere, "1"),
  ];
}

function describe(data, { distance, factor }) {
  const { plainHere, changedHere, plainLowest, changedLowest, plain, changed } = data;
  const here = `At distance ${distance} the mean score is ${exact(plainHere, 1)}`; // in the unchanged model
  const back = (curve) => exact(curve.at(-1) - Math.min(...curve), 1);
  const rises = (where, curve) => (where === REACH ? "it falls all the way"
    : `it is lowest at ${where} and then rises by ${back(curve)}`);
  if (factor === 1) return `${here}. No pair is slowed: ${rises(plainLowest, plain)}.`;
  return `${here}, and ${exact(changedHere, 1)} with ${bandOf(data)} slowed. Originally `
    + `${rises(plainLowest, plain)}; slowed, ${rises(changedLowest, changed)}.`;
}

function lossText(loss, plainLoss, k) {
  return [exact(loss[k], 2), `nats, originally ${exact(plainLoss[k], 2)}`];
}

export default explorer({
  title: "A penalty on distance, made of cosines",
  note: "Choose pairs and slow them down. Drag across the picture to read other distances. The curves are computed "
    + "from measurements in pieces of 1,024 tokens; the losses were measured in a text of 12,288 tokens.",
  dials,
  compute,
  build,
  stats: ({ plainHere, changedHere, loss, plainLoss }, { distance }) => [
    [`Mean score at ${distance}`, exact(changedHere, 1), `originally ${exact(plainHere, 1)}`],
    ...(loss ? [["Loss beyond 9,216", ...lossText(loss, plainLoss, 1)], ["Within", ...lossText(loss, plainLoss, 0)]]
      : [["Loss", "not measured"]]),
  ],
  describe,
  beside: ({ model }) => ({ values: () => ({ bias: model.get("bias") }) }),
});
