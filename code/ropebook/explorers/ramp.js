// YaRN's ramp from pairs that are kept to pairs that are interpolated, as defined in the paper and in the code.

import { dials } from "./ramp.py";
import { invFreq } from "./kit/rope.js";
import { count, exact } from "./kit/text.js";
import { snap } from "./kit/dials.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, lined, pairAxis, pill, pillHalf, scale, titled } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { named } from "./kit/naming.js";
import { panels } from "./kit/panels.js";
import { play } from "./kit/play.js";
import { keptByIndex, keptByTurns, pairAt, rampEnds } from "./kit/yarn.js";
import { explorer } from "./kit/mount.js";

function compute(dials) {
  const { alpha, beta, trained_length, base, dim, factor, truncate } = dials;
  const theta = Array.from(invFreq(dim, base));
  const interpolated = (kept) => kept.map((share) => 1 - share);
  const paper = interpolated(keptByTurns(theta, trained_length, alpha, beta));
  const code = interpolated(keptByIndex(theta, trained_length, base, alpha, beta, truncate));
  const [low, high] = rampEnds(dim, trained_length, base, alpha, beta, truncate);
  const mixed = (share) => share / factor + (1 - share); // the remaining share of a frequency
  const ratio = theta.map((_, i) => mixed(code[i]) / mixed(paper[i]));
  const apart = ratio.map((one) => Math.abs(Math.log(one)));
  const most = Math.max(...apart);
  return {
    paper, // the share by which each pair is interpolated in the paper
    code,
    low, // the pair indices at which the code's ramp begins and ends
    high,
    ratio, // the code's frequencies divided by the paper's
    largest: Math.exp(most),
    pair: apart.indexOf(most),
  };
}

// ---- On the page ----

const TOP = 86;
const ALIKE = 1.005; // frequencies that are closer than this count as equal
const LARGEST = 16; // the factor at the end of the animation
const SECONDS = 1.5; // playback time for the factor to double

function build(stage, app) {
  const panelAt = panels(app, ["Share of interpolation", "Code over paper"], { least: 330 });
  play(app, {
    advance: ({ factor }, seconds) => (factor >= LARGEST ? null
      : { factor: Math.min(LARGEST, Number((factor * 2 ** (seconds / SECONDS)).toPrecision(3))) }),
    again: { factor: 1 },
    step: SECONDS,
  });
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const handles = { beta: html("div"), alpha: html("div") };
  stage.append(html("div", { style: "position: relative" }, picture, ...Object.values(handles)));
  let plot;
  const grips = Object.keys(handles).map((trait) => {
    const dial = dials.find((one) => one.trait === trait);
    return hand(app, handles[trait], {
      label: dial.label,
      cursor: "ew-resize",
      place: (values) => [plot.x(pairOf(values, trait)), 0],
      at(x) {
        const { trained_length, base, dim } = app.values();
        const turns = (trained_length / (2 * Math.PI)) * base ** ((-2 * plot.pairAtX(x)) / dim);
        return { [trait]: snap(dial, Number(turns.toPrecision(3))) };
      },
      ...ofDial(app, dial),
    });
  });

  return ({ data, values, width, most }) => {
    const panel = panelAt(width, most);
    const pairs = data.paper.length;
    const [from, to] = [46, width - 10];
    const lowFloor = most - 42;
    const floor = panel === null ? most - 224 : lowFloor;
    const lowTop = panel === null ? most - 142 : 54;
    const [least, greatest] = [Math.min(...data.ratio), Math.max(...data.ratio)];
    const ticks = [1, 2, Math.max(4, largestTick(greatest))]; // seldom another axis, so that the curve itself grows
    if (least < 0.9) ticks.unshift(1 / largestTick(1 / least)); // else the axis ends just below 1, without a number
    plot = {
      width, from, to, floor, lowTop, lowFloor, pairs, ticks,
      x: scale([-0.5, pairs - 0.5], [from, to]),
      pairAtX: scale([from, to], [-0.5, pairs - 0.5]),
      y: scale([0, 1], [floor, TOP]),
      below: scale([Math.min(0.9, ticks[0]), ticks.at(-1)], [lowFloor, lowTop], true),
    };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    const marks = endMarks(plot, values);
    redrawn(picture, () => [...(panel === 1 ? [] : shares(plot, data, marks)),
      ...(panel === 0 ? [] : quotients(plot, data)), ...pairAxis(plot.x, pairs, [from, to], lowFloor)]);
    Object.keys(handles).forEach((trait, k) => {
      const { middle, half } = marks[k];
      if (panel !== 1) grips[k]([middle - half - 8, TOP - 36, 2 * half + 16, 30]);
      else put(handles[trait], { style: "display: none" });
    });
  };
}

// The index at which a pair completes β or α turns, clamped to the range of pairs.
function pairOf({ dim, trained_length, base, ...ends }, trait) {
  return Math.min(dim / 2 - 0.5, Math.max(-0.5, pairAt(ends[trait], dim, trained_length, base)));
}

// The first of 1.25, 1.5, 2, 3, 4, 6, 8, 12, … that is not less than `largest`.
function largestTick(largest) {
  const ticks = [1.25, 1.5, ...[1, 2, 3, 4, 5, 6, 7].flatMap((power) => [2 ** power, 1.5 * 2 ** power])];
  return ticks.find((tick) => tick >= largest);
}

function level({ from, to }, height) {
  return `M${from},${height.toFixed(1)}H${to}`;
}

function placesOf({ x }, heights) {
  return heights.map((height, i) => `${x(i).toFixed(1)},${height.toFixed(1)}`);
}

// Draws the two ramps between their ends.
function shares(plot, { paper, code }, marks) {
  const { from, to, floor, pairs, y } = plot;
  const words = ["paper: linear in turns", "code: linear in pairs"];
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", y, [0, 0.5, 1]);
  const size = Math.max(2.5, Math.min(7, ((to - from) / pairs) * 0.6));
  const ramp = (heights, colour) => {
    const places = placesOf(plot, heights.map(y));
    return [svg("path", { d: `M${places.join("L")}`, ...lined(colour, 2, "stroke-linejoin: round") }),
      svg("path", { d: places.map((place) => `M${place}h0`).join(""), ...lined(colour, size) })];
  };
  const curves = [paper, code].map((heights, k) => ({
    name: words[k], look: [["1", "muted"][k]], points: heights.map((height, i) => [plot.x(i), y(height)]),
  }));
  return [
    ...titled(0, 0, "Share of interpolation", ""),
    svg("path", { d: [0, 0.5, 1].map((share) => level(plot, y(share))).join(""), ...lined("grid", 1) }),
    svg("path", { d: level(plot, floor), ...lined("muted", 1) }), left,
    ...ends(marks, floor), ...ramp(code, "muted"), ...ramp(paper, "1"),
    ...named(curves, [from, TOP, to, floor], [], marks.map(({ at }) => at)),
  ];
}

// Draws the code's frequencies divided by the paper's.
function quotients(plot, { ratio, pair, largest }) {
  const { width, from, lowTop, lowFloor, ticks, x, below } = plot;
  const quotient = width >= 420 ? "The code’s frequencies over the paper’s" : "Frequencies: code over paper";
  const left = svg("g", { transform: `translate(${from} 0)` });
  axis(left, "left", below, ticks, (tick) => String(Number(tick.toPrecision(3))));
  return [
    ...titled(0, lowTop - 50, quotient,
      largest < ALIKE ? "They agree at every pair." : "At 1 they agree. The dot marks the largest gap."),
    svg("path", { d: ticks.map((tick) => level(plot, below(tick))).join(""), ...lined("grid", 1) }),
    svg("path", { d: level(plot, lowFloor), ...lined("muted", 1) }), left,
    svg("path", { d: `M${placesOf(plot, ratio.map(below)).join("L")}`, ...lined("ink", 2, "stroke-linejoin: round") }),
    ...(largest < ALIKE ? [] : [svg("circle", { cx: x(pair), cy: below(ratio[pair]), r: 5,
      style: "fill: var(--rb-ink)" })]),
  ];
}

// Labels for β and α above the pairs that complete that many turns, placed side by side: [β, α].
function endMarks({ width, x }, dials) {
  const [beta, alpha] = [["β", "beta"], ["α", "alpha"]].map(([name, trait]) => {
    const text = `${name}: ${count(dials[trait], "turn")}`;
    const at = x(pairOf(dials, trait));
    return { at, text, half: pillHalf(text), middle: at };
  });
  const gap = beta.half + alpha.half + 8;
  beta.middle = Math.max(beta.half, beta.middle);
  alpha.middle = Math.min(width - alpha.half, Math.max(alpha.middle, beta.middle + gap));
  beta.middle = Math.min(beta.middle, alpha.middle - gap);
  return [beta, alpha];
}

function ends(marks, floor) {
  return marks.flatMap(({ at, text, middle }) => [
    svg("path", { d: `M${at.toFixed(1)},${TOP - 10}V${floor}`, ...lined("muted", 1.5, "stroke-dasharray: 1 5") }),
    ...pill(middle, TOP - 21, text),
  ]);
}

function describe({ largest, pair, ratio, low, high }) {
  const end = (index) => String(Number(index.toFixed(2)));
  const last = ratio.length - 1;
  const past = `after the last pair, which is pair ${last}.`; // the code lets a ramp end there, as far as pair d − 1
  const ramp = low > last ? `The code’s ramp would begin at pair ${end(low)}, ${past}`
    : high > last ? `The code’s ramp begins at pair ${end(low)} and would end at pair ${end(high)}, ${past}`
      : `The code’s ramp rises from pair ${end(low)} to pair ${end(high)}.`;
  if (largest < ALIKE) return `${ramp} Its frequencies agree with the paper’s to within half a per cent.`;
  return `${ramp} The frequencies differ most at pair ${pair}, where the code’s is ${exact(ratio[pair], 2)} times `
    + "the paper’s.";
}

export default explorer({
  title: "YaRN’s ramp, paper against code",
  note: "Drag the ends of the ramp. Fast pairs (left) are kept, slow pairs interpolated, and pairs in between mixed.",
  dials,
  compute,
  build,
  stats: () => [],
  describe,
});
