// The vector q = (1, 2, 3, …, d) rotated to a position: one pair in its plane, and all pairs as small dials.

import { dials, FINE, MOST_POSITION, SPAN, TRAIL } from "./turn.py";
import { cosSinGrid, hundredths, invFreq, turnedOn } from "./kit/rope.js";
import { allOf, capital, count, exact, grouped, lowered, tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import {
  arrowPath, axis, circlePath, inColour, lined, niceStep, packCells, scale, textWidth, titled,
} from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { hand, ofDial } from "./kit/hand.js";
import { stepButtons } from "./kit/knobs.js";
import { panels } from "./kit/panels.js";
import { playPositions } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

// Both coordinates of the pair (x, y) at the `count` positions start, start + step, …
function turnedPair(theta, /** @type {ArrayLike<number>} */ { 0: x, 1: y }, start, step, count) {
  const { cos, sin } = cosSinGrid(theta, start, step, count);
  return [cos.map((c, k) => x * c - y * sin[k]), cos.map((c, k) => x * sin[k] + y * c)];
}

function compute({ position, base, dim, pair }) {
  const theta = invFreq(dim, base);
  const angles = theta.map((one) => position * one);
  const start = Float64Array.from({ length: dim }, (_, entry) => entry + 1);
  const turned = new Float64Array(dim);
  angles.forEach((angle, i) => {
    const [x, y, cos, sin] = [start[2 * i], start[2 * i + 1], Math.cos(angle), Math.sin(angle)];
    turned[2 * i] = x * cos - y * sin;
    turned[2 * i + 1] = x * sin + y * cos;
  });
  const both = [2 * pair, 2 * pair + 2];
  const [cos, sin] = [Math.cos(angles[pair]), Math.sin(angles[pair])];
  const whole = Math.floor(position); // while the arrow glides, the position is between two whole ones
  const trailStart = Math.max(0, whole - TRAIL + 1);
  const [xs, ys] = turnedPair(theta[pair], start.subarray(...both), trailStart, 1, whole - trailStart + 1);
  const first = Math.max(0, position - SPAN / 2);
  return {
    angles, // each pair's angle, counted from position 0
    young: angles.filter((angle) => angle < 2 * Math.PI).length, // the number of pairs without a full turn
    start,
    turned,
    matrix: [cos, -sin, sin, cos], // row by row
    before: Math.hypot(...start.subarray(...both)),
    after: Math.hypot(...turned.subarray(...both)),
    trailStart,
    trail: Array.from(xs).flatMap((x, k) => [x, ys[k]]),
    first,
    waves: turnedPair(theta[pair], start.subarray(...both), first, 1 / FINE, SPAN * FINE + 1),
  };
}

// ---- On the page ----

const PLANE = 320;
const PRODUCT = 312; // width of the matrix and the two pairs next to it
const TOP = 48; // top of the plane
const LEAST_WIDTH = 242; // the least width of the plane's titles
const LOW = 150; // the least height of the row of small dials
const WAVES_TOP = 202;
const WAVES_END = 318;
const EIGHTH = { dim: 4, base: 1.62114, pair: 1, position: 1 }; // with base 16/π², pair 1 rotates by π/4 per position
const PACE = 5; // speed in positions per second
const GLIDE = 1000 / PACE; // the time, in ms, in which the arrow reaches a position nearby, as during playback
const NEARBY = 4; // over more positions, the fastest arrow would only flicker
const ENTRIES = ["1", "ink"]; // the colours of a pair's two entries

function build(stage, app) {
  const steps = stepButtons(app, "position", "position", () => [0, MOST_POSITION]);
  const eighth = html("button", { type: "button", class: "rb-button" }, "π/4 per position");
  app.listen(eighth, "click", () => app.change(EIGHTH));
  const shown = panels(app, ["One pair", "Coordinates", "All pairs"], { least: 400, across: 600 });
  playPositions(app, MOST_POSITION, PACE);
  app.tools.append(steps.row, eighth);
  const glide = glider(app, { takes: GLIDE, nearby: NEARBY });
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const plane = buildPlane();
  const product = svg("g");
  const waves = buildWaves();
  const small = buildDials();
  picture.append(plane.group, product, waves.group, small.group);
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, handle));
  let arrow; // { centre, tip, angle }: the pair's arrow in the picture
  const grip = hand(app, handle, {
    label: "The arrow of the pair",
    place: () => arrow.tip,
    at(x, y) {
      const { position, base, dim, pair } = app.values();
      const by = Math.atan2(arrow.centre[1] - y, x - arrow.centre[0]) - arrow.angle;
      return { position: turnedOn(position, base ** ((-2 * pair) / dim), by, MOST_POSITION) };
    },
    ...ofDial(app, dials.find(({ trait }) => trait === "position")),
  });
  let centres = []; // the centres of the small dials
  app.listen(small.group, "click", (event) => {
    const box = picture.getBoundingClientRect();
    const away = centres.map(([x, y]) => Math.hypot(x - (event.clientX - box.left), y - (event.clientY - box.top)));
    app.change({ pair: away.indexOf(Math.min(...away)) });
  });

  return ({ data, values, width, most, jump }) => {
    steps.show();
    const panel = shown(width, most);
    const wide = panel === null;
    const size = Math.min(PLANE, wide ? Math.min(width - PRODUCT - 28, most - LOW - TOP) : Math.min(width, most - TOP));
    // wavesEnd: the bottom of the waves without their axis; above: the bottom of the plane, the waves and the axis
    const wavesEnd = wide ? Math.min(WAVES_END, TOP + size - 10) : TOP + size - 26;
    const above = wide ? Math.max(TOP + size, wavesEnd + 26) : 0;
    const height = wide ? Math.min(most, above + 210) : TOP + size;
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    [[plane.group], [product, waves.group], [small.group]].forEach((groups, i) => {
      for (const group of groups) put(group, { display: wide || i === panel ? "inline" : "none" });
    });
    handle.hidden = !wide && panel !== 0;
    const left = wide ? Math.max(size, LEAST_WIDTH) + 28 : 0;
    if (wide || panel === 1) drawProduct(product, [left, 0], data, values);
    glide([values.position], jump, ([position]) => {
      const now = position === values.position ? data : compute({ ...values, position });
      if (wide || panel === 0) {
        arrow = drawPlane(plane, (wide ? size : width) / 2, size, data, now, values);
        grip([arrow.tip[0] - 22, arrow.tip[1] - 22, 44, 44]);
      }
      if (wide || panel === 1) {
        const wavesTop = wide ? Math.min(WAVES_TOP, wavesEnd - 50) : WAVES_TOP;
        drawWaves(waves, [left, wavesTop, width - left, wavesEnd - wavesTop], now, { ...values, position });
      }
      if (wide || panel === 2) {
        const top = wide ? Math.min(above + 36, height - LOW + 26) : 0;
        centres = drawDials(small, top, [0, top + 46, width, height - top - 46], now, values);
      }
    });
  };
}

function buildPlane() {
  const plane = {
    titles: svg("g"),
    axes: svg("path", lined("grid", 1)),
    circle: svg("circle", lined("grid", 1.5)),
    sector: svg("path", { style: "fill: var(--rb-1); opacity: 0.12" }),
    arc: svg("path", lined("1", 1.5)),
    across: svg("path", lined(ENTRIES[0], 1.5, "stroke-dasharray: 1 4")),
    up: svg("path", lined(ENTRIES[1], 1.5, "stroke-dasharray: 1 4")),
    trail: svg("g"),
    start: svg("path", lined("muted", 2)),
    arrow: svg("path", lined("1", 3)),
    labels: svg("g", { "font-size": 12, "text-anchor": "middle" }),
  };
  return { ...plane, group: svg("g", {}, ...Object.values(plane)) };
}

// Draws the arrow where it is `now`; its title is about the position that it reaches. Returns the arrow there.
function drawPlane(plane, middle, size, goal, now, { position, pair }) {
  const { angles, start, turned, before, trailStart, trail } = now;
  const centre = [middle, TOP + size / 2];
  const radius = size / 2 - Math.max(26, 9 + textWidth(grouped(position), 12, 700));
  const unit = radius / before;
  const place = (x, y, share = 1) => [centre[0] + share * x * unit, centre[1] - share * y * unit];
  const at = (angle, share = 1) => place(before * Math.cos(angle), before * Math.sin(angle), share);
  const text = (/** @type {number[]} */ [x, y]) => `${x.toFixed(2)},${y.toFixed(2)}`;
  const angle = angles[pair];
  const [x, y] = [turned[2 * pair], turned[2 * pair + 1]];
  const from = Math.atan2(start[2 * pair + 1], start[2 * pair]);
  redrawn(plane.titles, () => titled(0, 0, `Pair ${pair}: entries ${2 * pair} and ${2 * pair + 1}`,
    `${grouped(position)}θ${lowered(pair)} = ${tidy(goal.angles[pair])} rad = ${degrees(goal.angles[pair])}`));
  const reach = radius + 12;
  const across = `M${centre[0] - reach},${centre[1]}h${2 * reach}`;
  put(plane.axes, { d: `${across}M${centre[0]},${centre[1] - reach}v${2 * reach}` });
  put(plane.circle, { cx: centre[0], cy: centre[1], r: radius });

  // Only the part of the angle that remains after whole turns is visible.
  const left = angle % (2 * Math.PI);
  const bow = 0.36 * radius;
  const [began, ends] = [text(at(from, 0.36)), text(at(from + left, 0.36))];
  const bend = `${began}A${bow},${bow} 0 ${left > Math.PI ? 1 : 0} 0 ${ends}`;
  put(plane.sector, { d: `M${text(centre)}L${bend}Z` });
  put(plane.arc, { d: `${angle >= 2 * Math.PI ? circlePath(centre, bow) : ""}M${bend}` });

  const tip = place(x, y);
  put(plane.across, { d: `M${text(tip)}V${centre[1]}` });
  put(plane.up, { d: `M${text(tip)}H${centre[0]}` });
  put(plane.start, { d: arrowPath(centre, place(start[2 * pair], start[2 * pair + 1])) });
  put(plane.arrow, { d: arrowPath(centre, tip, 13) });
  const past = trail.length / 2;
  redrawn(plane.trail, () => Array.from({ length: past }, (_, k) => {
    const [cx, cy] = place(trail[2 * k], trail[2 * k + 1]);
    return svg("circle", { cx, cy, r: 4, style: `fill: var(--rb-1); opacity: ${((k + 4) / (past + 3)).toFixed(2)}` });
  }));

  // The most recent positions are labelled first, if there is room. Only the first and the last have long labels.
  const names = [[position, x, y, "font-weight: 700; fill: var(--rb-1)"],
    [0, start[2 * pair], start[2 * pair + 1], "fill: var(--rb-muted)"],
    ...Array.from({ length: position < 100 ? past : 0 }, (_, k) => {
      return [trailStart + k, trail[2 * k], trail[2 * k + 1], "fill: var(--rb-muted)"];
    }).reverse()];
  const taken = [];
  for (const [name, nameX, nameY, style] of names) {
    const wider = Math.max(0, textWidth(grouped(name), 12, 700) / 2 - 9) * Math.abs(nameX / before);
    const spot = place(nameX, nameY, 1 + (15 + wider) / radius);
    if (taken.some(([other]) => Math.hypot(other[0] - spot[0], other[1] - spot[1]) < 24)) continue;
    taken.push([spot, name, style]);
  }
  redrawn(plane.labels, () => taken.map(([spot, name, style]) => {
    return svg("text", { x: spot[0], y: spot[1] + 4, style }, grouped(name));
  }));
  const [goalX, goalY] = [goal.turned[2 * pair], goal.turned[2 * pair + 1]];
  return { centre, tip: place(goalX, goalY), angle: Math.atan2(goalY, goalX) };
}

// An entry of the matrix. A small one has four decimals, so that its sign isn't lost.
function entryText(entry) {
  const size = Math.abs(entry);
  return exact(entry, size >= 5e-5 && size < 5e-4 ? 4 : 3);
}

function degrees(angle) {
  const size = (angle * 180) / Math.PI;
  return `${size >= 0.001 ? size.toFixed(size < 10 ? 3 : 1) : tidy(size)}°`;
}

// Draws the product: the 2 × 2 matrix multiplied by the pair at position 0 is the pair at m.
function drawProduct(group, /** @type {number[]} */ [left, top], { matrix, start, turned }, { position, pair }) {
  const entries = matrix.map(entryText);
  const size = entries.some((text) => text.length > 6) ? 14 : 16; // four decimals and a sign need room
  const column = (right, values, paint) => values.map((value, row) => svg("text", {
    x: right, y: top + 72 + 30 * row, "text-anchor": "end", "font-size": size, ...(paint ? inColour(paint[row]) : {}),
  }, value));
  const bracket = (from, to) => {
    const [high, low] = [top + 52, top + 110];
    return svg("path", { d: `M${from + 5},${high}H${from}V${low}H${from + 5}M${to - 5},${high}H${to}V${low}H${to - 5}`,
      ...lined("muted", 1.25) });
  };
  const decimals = Math.abs(turned[2 * pair]) + Math.abs(turned[2 * pair + 1]) < 100 ? 3 : 1;
  redrawn(group, () => [
    ...titled(left, top, `From position 0 to position ${grouped(position)}`,
      `Rows: cos and −sin, sin and cos of ${grouped(position)}θ${lowered(pair)}`),
    bracket(left, left + 146), ...column(left + 66, [entries[0], entries[2]]),
    ...column(left + 137, [entries[1], entries[3]]),
    bracket(left + 156, left + 202), ...column(left + 192, [start[2 * pair], start[2 * pair + 1]].map(String)),
    svg("text", { x: left + 215, y: top + 87, "text-anchor": "middle", "font-size": 16 }, "="),
    bracket(left + 228, left + PRODUCT),
    ...column(left + 302, [0, 1].map((row) => exact(turned[2 * pair + row], decimals)), ENTRIES),
  ]);
}

function buildWaves() {
  const waves = {
    titles: svg("g"),
    levels: svg("path", lined("grid", 1)),
    up: svg("g"),
    across: svg("g"),
    marker: svg("path", lined("ink", 1.5)),
    curves: svg("g"),
  };
  return { ...waves, group: svg("g", {}, ...Object.values(waves)) };
}

// Draws both coordinates against the position.
function drawWaves(waves, /** @type {number[]} */ [left, high, width, tall], data, { position, pair }) {
  const { waves: curves, before, first, turned } = data;
  const [from, to, floor] = [left + 46, left + width - 8, high + tall];
  const x = scale([first, first + SPAN], [from, to]);
  const y = scale([-before, before], [floor, high]);
  redrawn(waves.titles, () => titled(left, high - 50, "Its two coordinates",
    ...ENTRIES.flatMap((paint, k) => [k ? " and " : "", svg("tspan", inColour(paint), `entry ${2 * pair + k}`)]),
    " at each position"));
  put(waves.levels, { d: [-before, 0, before].map((level) => `M${from},${y(level).toFixed(2)}H${to}`).join("") });
  put(waves.up, { transform: `translate(${from} 0)` });
  const decimals = Number.isInteger(before) || before > 100 ? 0 : before > 10 ? 1 : 2;
  axis(waves.up, "left", y, [-before, 0, before], (level) => exact(level, level && decimals));
  put(waves.across, { transform: `translate(0 ${floor})` });
  const step = niceStep(SPAN, (to - from) / 50);
  const ticks = Array.from({ length: Math.floor((first + SPAN) / step) + 1 }, (_, k) => k * step);
  const fits = (tick) => tick >= first && x(tick) + textWidth(String(tick), 12) / 2 <= left + width;
  axis(waves.across, "bottom", x, ticks.filter(fits));
  put(waves.marker, { d: `M${x(position)},${high - 4}V${floor + 4}` });
  redrawn(waves.curves, () => curves.flatMap((curve, k) => {
    const points = Array.from(curve, (value, at) => `${hundredths(x(first + at / FINE))},${hundredths(y(value))}`);
    return [svg("path", { d: `M${points.join("L")}`, ...lined(ENTRIES[k], 2) }),
      svg("circle", { cx: x(position), cy: y(turned[2 * pair + k]), r: 4.5, style: `fill: var(--rb-${ENTRIES[k]})` })];
  }));
}

// The colours of a ring, ahead of the hand and behind it, and of the hands, at the start and at the current position.
const RINGS = ["grid", "1"];
const HANDS = ["muted", "1"];

function buildDials() {
  const dials = {
    ground: svg("rect", { style: "fill: transparent; cursor: pointer" }),
    titles: svg("g"),
    rings: svg("g", {}, ...RINGS.map((paint) => svg("path", lined(paint, 1, "pointer-events: none")))),
    hands: svg("g", {}, ...HANDS.map((paint) => svg("path", lined(paint, 1, "pointer-events: none")))),
    chosen: svg("circle", lined("ink", 2, "pointer-events: none")),
    labels: svg("g", { "font-size": 12, "text-anchor": "middle", style: "pointer-events: none" }),
  };
  return { ...dials, group: svg("g", {}, ...Object.values(dials)) };
}

// Draws a dial for each pair: its current direction, where it started, and a ring that shows how far it has turned.
// Returns the centres of the dials.
function drawDials(dials, top, area, { angles, start, turned, young }, { position, pair }) {
  const pairs = angles.length;
  const named = pairs <= 16;
  const { cell, centre } = packCells(pairs, area, named ? 16 : 0);
  const radius = cell * 0.42;
  const rings = ["", ""];
  const hands = ["", ""];
  const centres = Array.from(angles, (_, i) => centre(i));
  const text = (x, y) => `${hundredths(x)},${hundredths(y)}`;
  centres.forEach(([x, y], i) => {
    const length = Math.hypot(start[2 * i], start[2 * i + 1]);
    const [x0, y0, x1, y1] = [start[2 * i], start[2 * i + 1], turned[2 * i], turned[2 * i + 1]]
      .map((coordinate) => (coordinate * radius) / length);
    const old = angles[i] >= 2 * Math.PI;
    rings[old ? 1 : 0] += circlePath([x, y], radius);
    if (!old) {
      rings[1] += `M${text(x + x0, y - y0)}A${text(radius, radius)} 0 ${angles[i] > Math.PI ? 1 : 0} 0 `
        + `${text(x + x1, y - y1)}`;
    }
    hands[0] += `M${text(x, y)}L${text(x + 0.84 * x0, y - 0.84 * y0)}`;
    hands[1] += cell < 24 ? `M${text(x, y)}L${text(x + 0.84 * x1, y - 0.84 * y1)}`
      : arrowPath([x, y], [x + 0.84 * x1, y - 0.84 * y1], radius / 4);
  });
  const thick = Math.max(1, Math.min(2.5, radius / 9));
  dials.rings.childNodes.forEach((node, k) => put(node, { d: rings[k], "stroke-width": thick,
    style: lined(RINGS[k], thick).style }));
  dials.hands.childNodes.forEach((node, k) => put(node, { d: hands[k],
    style: lined(HANDS[k], k ? 1.25 * thick : Math.min(1, thick)).style }));
  put(dials.chosen, { cx: centres[pair][0], cy: centres[pair][1], r: radius + Math.max(2.5, thick) });
  put(dials.ground, { x: area[0], y: area[1], width: area[2], height: area[3] });
  redrawn(dials.titles, () => titled(area[0], top, `${capital(allOf(pairs, "pair"))} at position ${grouped(position)}`,
    (named ? "In radians. " : "")
      + (young ? "Full blue ring: at least one turn" : "Every pair has made a full turn")));
  redrawn(dials.labels, () => (named ? centres.map(([x, y], i) => svg("text", {
    x, y: y + cell / 2 + 10, class: "rb-quiet", ...(i === pair ? { "font-weight": 700, class: "" } : {}),
  }, shortAngle(angles[i]))) : []));
  return centres;
}

function shortAngle(angle) {
  if (angle === 0) return "0";
  if (angle < 0.005) return "< 0.01";
  return angle < 100 ? angle.toFixed(2) : grouped(Math.round(angle));
}

function describe({ angles, young }, { position, pair }) {
  const angle = angles[pair];
  const turns = Math.floor(angle / (2 * Math.PI));
  const far = turns ? `${count(turns, "full turn")} and ${degrees(angle - 2 * Math.PI * turns)} more` : degrees(angle);
  const others = young === 0 ? "Every pair has completed at least one turn"
    : young === angles.length ? "No pair has completed a turn yet"
    : `So far, ${young} of ${count(angles.length, "pair")} ${young === 1 ? "has" : "have"} not completed a turn`;
  return `At position ${grouped(position)}, pair ${pair} has been rotated counter-clockwise by ${far}. ${others}.`;
}

export default explorer({
  title: "A vector, rotated position by position",
  note: "The vector is (1, 2, 3, …, d). Drag its arrow or use the buttons. Click a small dial to choose its pair.",
  dials,
  compute,
  units: { angles: "radians", trailStart: "tokens", first: "tokens" },
  build,
  stats: ({ before, after }) => [["Length", exact(after, 6), `changed by ${tidy(after - before)}`]],
  describe,
});
