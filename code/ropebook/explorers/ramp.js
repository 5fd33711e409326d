// YaRN's ramp from pairs that are kept to pairs that are interpolated: as the paper writes it, and as the code has it.

import { dials, LEAST_ALPHA, LEAST_BETA, MOST_ALPHA, MOST_BETA } from "./ramp.py";
import { invFreq } from "./kit/rope.js";
import { count, exact } from "./kit/text.js";
import { html, put, svg } from "./kit/elements.js";
import { axis, inColour, lined, niceStep, scale, textWidth, titled } from "./kit/drawing.js";
import { explorer } from "./kit/mount.js";

// The pair index, a fraction, at which a pair turns so often in L.
function pairAt(turns, { dim, base, trained_length }) {
  return (dim * Math.log(trained_length / (2 * Math.PI * turns))) / (2 * Math.log(base));
}

function within(value) {
  return Math.min(1, Math.max(0, value));
}

function compute(dials) {
  const { alpha, beta, trained_length, base, dim, factor, truncate } = dials;
  const theta = Array.from(invFreq(dim, base));
  const paper = theta.map((one) => 1 - within(((one * trained_length) / (2 * Math.PI) - alpha) / (beta - alpha)));
  let [low, high] = [pairAt(beta, dials), pairAt(alpha, dials)];
  if (truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
  [low, high] = [Math.max(0, low), Math.min(dim - 1, high)];
  const code = theta.map((_, i) => within((i - low) / (high - low)));
  const mixed = (share) => share / factor + (1 - share); // of a frequency, what is left of it
  const ratio = theta.map((_, i) => mixed(code[i]) / mixed(paper[i]));
  const apart = ratio.map((one) => Math.abs(Math.log(one)));
  const most = Math.max(...apart);
  const mixes = (shares) => shares.filter((share) => share > 0 && share < 1).length;
  return {
    paper, // the share of interpolation of each pair
    code,
    low, // pair indices where the code's ramp begins and ends
    high,
    paperMixes: mixes(paper),
    codeMixes: mixes(code),
    ratio, // the code's frequencies over the paper's
    largest: Math.exp(most),
    pair: apart.indexOf(most),
  };
}

// ---- On the page ----

const TOP = 86;

function build(stage, { alt, change, listen, values }) {
  const picture = svg("svg", { role: "img", "aria-label": alt });
  // The ends of the ramp can be drawn with the pointer; keys have their dials.
  const pad = html("div", { "aria-hidden": "true" });
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  let held; // the end that the pointer has
  let plot;
  const pull = (event) => {
    const dials = values();
    const index = plot.pairAtX(event.clientX - pad.getBoundingClientRect().left + plot.from);
    const far = (turns) => Math.abs(index - pairAt(turns, dials));
    held ??= far(dials.alpha) < far(dials.beta) ? "alpha" : "beta";
    const turns = (dials.trained_length / (2 * Math.PI)) * dials.base ** ((-2 * index) / dials.dim);
    const [least, most] = held === "alpha" ? [LEAST_ALPHA, MOST_ALPHA] : [LEAST_BETA, MOST_BETA];
    change({ [held]: Number(Math.min(most, Math.max(least, turns)).toPrecision(3)) });
  };
  listen(pad, "pointerdown", (event) => {
    if (event.button !== 0) return;
    pad.setPointerCapture(event.pointerId);
    held = undefined;
    pull(event);
  });
  listen(pad, "pointermove", (event) => pad.hasPointerCapture(event.pointerId) && pull(event));

  return ({ data, values: dials, width }) => {
    const wide = width >= 620;
    const pairs = data.paper.length;
    const [from, to] = [46, width - 10];
    const floor = TOP + (wide ? 220 : 190);
    const lowTop = floor + 92;
    const lowFloor = lowTop + (wide ? 120 : 104);
    const height = lowFloor + 42;
    const [least, greatest] = [Math.min(...data.ratio), Math.max(...data.ratio)];
    const ticks = [1, largestTick(greatest)];
    if (least < 0.9) ticks.unshift(1 / largestTick(1 / least)); // else the axis ends a little below 1, without a number
    plot = {
      width, from, to, floor, lowTop, lowFloor, pairs, ticks,
      x: scale([-0.5, pairs - 0.5], [from, to]),
      pairAtX: scale([from, to], [-0.5, pairs - 0.5]),
      y: scale([0, 1], [floor, TOP]),
      below: scale([Math.min(0.9, ticks[0]), ticks.at(-1)], [lowFloor, lowTop], true),
    };
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    picture.replaceChildren(...titles(plot, data), ...axes(plot), ...ends(plot, dials), ...curves(plot, data));
    put(pad, {
      style: `position: absolute; left: ${from}px; top: ${TOP - 24}px; width: ${to - from}px; cursor: ew-resize; `
        + `height: ${floor - TOP + 24}px; touch-action: pan-y`,
    });
  };
}

// The first of 1.25, 1.5, 2, 3, 4, 6, 8, 12, … that is not less.
function largestTick(largest) {
  const ticks = [1.25, 1.5, ...[1, 2, 3, 4, 5, 6, 7].flatMap((power) => [2 ** power, 1.5 * 2 ** power])];
  return ticks.find((tick) => tick >= largest);
}

function titles({ lowTop, width }, { largest, pair }) {
  const [title, note] = titled(0, 0, "Share of interpolation", "");
  const words = width >= 420 ? ["the paper’s ramp, linear in turns", "the code’s ramp, linear in pairs"]
    : ["paper: linear in turns", "code: linear in pairs"];
  note.append(svg("tspan", inColour("1"), words[0]), svg("tspan", { dx: 14, ...inColour("2") }, words[1]));
  const quotient = width >= 420 ? "The code’s frequencies over the paper’s" : "Frequencies: code over paper";
  const most = `Largest factor between them: ${exact(largest, 2)}, at pair ${pair}`;
  return [title, note, ...titled(0, lowTop - 54, quotient, most)];
}

function axes({ from, to, floor, lowFloor, pairs, ticks, x, y, below }) {
  const [left, lower, bottom] = [[from, 0], [from, 0], [0, lowFloor]].map(([dx, dy]) => {
    return svg("g", { transform: `translate(${dx} ${dy})` });
  });
  axis(left, "left", y, [0, 0.5, 1]);
  axis(lower, "left", below, ticks, (tick) => String(Number(tick.toPrecision(3))));
  const step = niceStep(Math.max(1, pairs - 1), (to - from) / 60);
  axis(bottom, "bottom", x, Array.from({ length: Math.ceil(pairs / step) }, (_, k) => k * step));
  const heights = [y(0), y(0.5), y(1), ...ticks.map(below)];
  return [
    svg("path", { d: heights.map((height) => `M${from},${height.toFixed(1)}H${to}`).join(""), ...lined("grid", 1) }),
    svg("path", { d: `M${from},${floor}H${to}M${from},${lowFloor}H${to}`, ...lined("muted", 1) }),
    left, lower, bottom,
    svg("text", {
      x: (from + to) / 2, y: lowFloor + 36, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
    }, "pair i"),
  ];
}

// Upright lines where a pair turns β and α times, as far as there is such a pair; their names side by side.
function ends({ width, floor, pairs, x }, dials) {
  const named = [["β", dials.beta], ["α", dials.alpha]].map(([name, turns]) => {
    const at = x(Math.min(pairs - 0.5, Math.max(-0.5, pairAt(turns, dials))));
    const text = `${name}: ${count(turns, "turn")}`;
    return { at, text, half: textWidth(text, 12) / 2, middle: at };
  });
  const [beta, alpha] = named;
  const gap = beta.half + alpha.half + 10;
  beta.middle = Math.max(beta.half, beta.middle);
  alpha.middle = Math.min(width - alpha.half, Math.max(alpha.middle, beta.middle + gap));
  beta.middle = Math.min(beta.middle, alpha.middle - gap);
  return named.flatMap(({ at, text, middle }) => [
    svg("path", { d: `M${at.toFixed(1)},${TOP - 10}V${floor}`, ...lined("muted", 1.5, "stroke-dasharray: 1 5") }),
    svg("path", { d: `M${at.toFixed(1)},${TOP - 4}h0`, ...lined("ink", 10) }),
    svg("text", { x: middle, y: TOP - 16, "font-size": 12, "text-anchor": "middle" }, text),
  ]);
}

function curves({ pairs, from, to, x, y, below }, { paper, code, ratio, pair }) {
  const points = (heights) => heights.map((height, i) => `${x(i).toFixed(1)},${height.toFixed(1)}`);
  const size = Math.max(2.5, Math.min(7, ((to - from) / pairs) * 0.6));
  const ramp = (shares, colour) => {
    const places = points(shares.map(y));
    return [svg("path", { d: `M${places.join("L")}`, ...lined(colour, 2, "stroke-linejoin: round") }),
      svg("path", { d: places.map((place) => `M${place}h0`).join(""), ...lined(colour, size) })];
  };
  return [
    ...ramp(code, "2"), ...ramp(paper, "1"),
    svg("path", { d: `M${points(ratio.map(below)).join("L")}`, ...lined("ink", 2, "stroke-linejoin: round") }),
    svg("circle", { cx: x(pair), cy: below(ratio[pair]), r: 5, style: "fill: var(--rb-ink)" }),
  ];
}

function describe({ largest, pair, ratio, low, high }) {
  const end = (index) => String(Number(index.toFixed(2)));
  const ramp = `The code’s ramp rises from pair ${end(low)} to pair ${end(high)}.`;
  if (largest < 1.005) return `${ramp} Its frequencies and the paper’s are the same to within half a per cent.`;
  return `${ramp} The two are furthest apart at pair ${pair}, where the code’s frequency is ${exact(ratio[pair], 2)} `
    + "times the paper’s.";
}

export default explorer({
  title: "YaRN’s ramp, paper against code",
  note: "Drag the ends of the ramp. Fast pairs, on the left, are kept, slow ones interpolated, those between mixed.",
  dials,
  compute,
  build,
  stats: ({ largest, pair, paperMixes, codeMixes }) => [
    ["Largest factor between them", exact(largest, 2), `at pair ${pair}`],
    ["Mixed by the paper", String(paperMixes), paperMixes === 1 ? "pair" : "pairs"],
    ["Mixed by the code", String(codeMixes), codeMixes === 1 ? "pair" : "pairs"],
  ],
  describe,
});
