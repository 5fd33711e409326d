// A query and a key as two arrows, each rotated by the position of its token in a text.

import { dials, KEY, QUERY, TOKENS, WORDS } from "./arrows.py";
import { invFreq } from "./kit/rope.js";
import { count, exact, tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { arrowPath, circlePath, inColour, lined, NARROW, OUTLINED, scale, textWidth } from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { hand, ofDial } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";
import { play } from "./kit/play.js";

function turned([x, y], angle) {
  const [cos, sin] = [Math.cos(angle), Math.sin(angle)];
  return [x * cos - y * sin, x * sin + y * cos];
}

function compute({ m, n, base, dim, pair }) {
  const theta = invFreq(dim, base)[pair];
  const [query, key] = [turned(QUERY, m * theta), turned(KEY, n * theta)];
  const [qx, qy, kx, ky] = [...query, ...key];
  const score = qx * kx + qy * ky;
  return {
    theta, // radians per position
    query, // x and y of the rotated query
    key,
    between: Math.atan2(Math.abs(kx * qy - ky * qx), score), // the angle between them, 0 … π
    score,
    distance: m - n,
  };
}

// ---- On the page ----

const INK = { query: "3", key: "4" };
const QUERY_LENGTH = Math.hypot(...QUERY);
const MOST_SCORE = QUERY_LENGTH * Math.hypot(...KEY);
const CHIP = 30; // height of a word
const SIDE = 26; // space on both sides of the row of tokens, in px
const PACE = 3; // speed in tokens per second
const GLIDE = 1000 / PACE; // the time, in ms, in which the arrows reach a position nearby, as during playback
const NEARBY = 8; // over more tokens, fast arrows would only flicker

function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const text = buildText();
  const plane = buildPlane();
  const numbers = svg("g");
  picture.append(text.group, plane.group, numbers);

  // Where both tokens were when the reader began to drag. Moves made with a dial or a link leave no trace.
  let before = app.initial;
  let last = app.initial;
  let taken = false;
  const grips = buildHands(app, { begin: () => (before = app.values()), move: () => (taken = true) });
  stage.append(html("div", { style: "position: relative" }, picture, ...grips.nodes));
  const glide = glider(app, { takes: GLIDE, nearby: NEARBY });
  play(app, {
    step: 1 / PACE,
    again: { m: app.initial.m, n: app.initial.n },
    advance({ m, n }, seconds) {
      const by = Math.min(Math.floor(seconds * PACE + 1e-9), TOKENS - 1 - Math.max(m, n));
      if (Math.max(m, n) === TOKENS - 1) return null;
      taken ||= by > 0;
      return { m: m + by, n: n + by };
    },
  });

  return ({ values, width, most, jump }) => {
    if (!taken && (values.m !== last.m || values.n !== last.n)) before = values;
    taken = false;
    last = values;
    const narrow = width < NARROW;
    const top = 2 * CHIP + (narrow ? 48 : 76); // top of the plane
    const low = narrow || most < 450; // whether the numbers are set in a smaller size
    const size = Math.min(most - top, width - (narrow ? 124 : 220), 400,
      Math.max(100, 2 * (most - top - (low ? 118 : 156)))); // the numbers beside the plane extend below it
    const left = narrow ? 0 : Math.max(0, (width - size - 260) / 2);
    // The numbers beside a small plane extend below it.
    const height = top + Math.max(size, size / 2 + (low ? 108 : 146) + 10);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    const was = { values: before, data: compute({ ...values, m: before.m, n: before.n }) };
    const gap = narrow ? 12 : 44;
    const column = [left + size + gap, top + size / 2, width - left - size - gap];
    glide([values.m, values.n], jump, ([m, n]) => {
      const now = { ...values, m, n };
      const data = compute(now);
      grips.show(width, drawText(text, width, now, was));
      drawPlane(plane, [left, top, size], data, now, was);
      redrawn(numbers, () => drawNumbers(column, low, data, moved(now, was) && was.data));
    });
  };
}

// With a pointer or the keyboard, each word can be moved on its own, and the bar between them moves both.
function buildHands(app, { begin, move }) {
  let cell = 1;
  const nodes = [0, 1, 2].map(() => html("div"));
  const [mDial, nDial] = ["m", "n"].map((name) => dials.find(({ trait }) => trait === name));
  const both = ({ m, n }) => [Math.max(0, m - n), TOKENS - 1 - Math.max(0, n - m)]; // m’s limits while n moves along
  const make = (node, label, dial, limits, text, partial) => {
    for (const type of ["pointerdown", "focus"]) app.listen(node, type, begin);
    const { keys, value } = ofDial(app, dial, { limits, text });
    const follow = (next) => {
      if (next) move();
      return next && partial(next[dial.trait], app.values());
    };
    return hand(app, node, {
      label, value, keys: (key) => follow(keys(key)),
      place: (values) => [SIDE + cell * (values[dial.trait] + 0.5), 0],
      at(x) {
        const [least, most] = limits(app.values());
        const position = Math.floor((x - SIDE) / cell);
        return follow({ [dial.trait]: Math.min(most, Math.max(least, position)) });
      },
    });
  };
  const anywhere = () => [0, TOKENS - 1];
  const [query, key] = WORDS;
  const shows = [
    make(nodes[0], "Both words", mDial, both, ({ m, n }) => `“${query}” at ${m}, “${key}” at ${n}`,
      (to, { m, n }) => ({ m: to, n: n + to - m })),
    make(nodes[1], `“${query}”, the query`, mDial, anywhere, ({ m }) => `position ${m}`, (m) => ({ m })),
    make(nodes[2], `“${key}”, the key`, nDial, anywhere, ({ n }) => `position ${n}`, (n) => ({ n })),
  ];
  return {
    nodes,
    show(width, boxes) {
      cell = (width - 2 * SIDE) / TOKENS;
      shows.forEach((show, k) => show(boxes[k]));
    },
  };
}

function moved(values, was) {
  return values.m !== was.values.m || values.n !== was.values.n;
}

// ---- The text ----

function buildText() {
  const chip = (paint) => {
    const parts = {
      stem: svg("path", lined(paint, 2)),
      ghost: svg("rect", { rx: 8, height: CHIP, ...lined(paint, 1.5, "stroke-dasharray: 2 4; opacity: 0.6") }),
      box: svg("rect", { rx: 8, height: CHIP, style: `fill: var(--rb-${paint})` }),
      word: svg("text", { "font-size": 15, "font-weight": 650, "text-anchor": "middle", ...inColour("paper") }),
    };
    return { ...parts, group: svg("g", {}, ...Object.values(parts)) };
  };
  const text = {
    cells: svg("g", { style: "fill: var(--rb-grid)" }),
    between: svg("rect", { rx: 6, style: "fill: var(--rb-1); opacity: 0.22" }),
    ends: svg("g", { "font-size": 12, class: "rb-quiet" }),
  };
  const [query, key] = [chip(INK.query), chip(INK.key)];
  return { ...text, query, key, group: svg("g", {}, ...Object.values(text), query.group, key.group) };
}

// Draws the tokens in a row, with the query's word above its token and the key's word below, at positions that need not
// be whole. Returns the coordinates of both words and of the bar between them.
function drawText(text, width, { m, n }, was) {
  const cell = (width - 2 * SIDE) / TOKENS;
  const x = (position) => SIDE + cell * position;
  const thick = Math.min(20, cell - 2);
  const middle = CHIP + 12 + 10;
  redrawn(text.cells, () => Array.from({ length: TOKENS }, (_, position) => svg("rect", {
    x: x(position) + 1, y: middle - thick / 2, width: cell - 2, height: thick, rx: thick / 5,
  })));
  const [first, last] = [Math.min(m, n), Math.max(m, n)];
  const bar = [x(first) - 1, middle - 14, cell * (last - first + 1) + 2, 28];
  put(text.between, { x: bar[0], y: bar[1], width: bar[2], height: bar[3] });
  redrawn(text.ends, () => [svg("text", { x: 18, y: middle + 4, "text-anchor": "end", class: "rb-quiet" }, "0"),
    svg("text", { x: width - 20, y: middle + 4, class: "rb-quiet" }, String(TOKENS - 1))]);
  return [bar, drawChip(text.query, WORDS[0], m, was.values.m, [0, middle - 10], x, cell, width),
    drawChip(text.key, WORDS[1], n, was.values.n, [middle + 22, middle + 10], x, cell, width)];
}

function drawChip(chip, word, position, was, [top, foot], x, cell, width) {
  const name = String(Math.round(position));
  const wide = textWidth(`${word}  ${name}`, 15, 650) + 24;
  const left = (at) => Math.min(width - wide, Math.max(0, x(at) + cell / 2 - wide / 2));
  const stemTop = top < foot ? top + CHIP : top;
  put(chip.stem, { d: `M${x(position) + cell / 2},${stemTop}V${foot}` });
  put(chip.box, { x: left(position), y: top, width: wide });
  put(chip.ghost, { x: left(was), y: top, width: wide, visibility: name === String(was) ? "hidden" : "visible" });
  put(chip.word, { x: left(position) + wide / 2, y: top + 20 });
  redrawn(chip.word, () => [`${word}  `, svg("tspan", { "font-weight": 400 }, name)]);
  return [left(position), top, wide, CHIP];
}

// ---- The plane ----

function buildPlane() {
  const plane = {
    circles: svg("path", lined("grid", 1.5)),
    axes: svg("path", lined("grid", 1)),
    places: svg("g"),
    sector: svg("path", { style: "fill: var(--rb-1); opacity: 0.14" }),
    arc: svg("path", lined("1", 2.5)),
    oldArc: svg("path", lined("1", 1.5, "stroke-dasharray: 1 4; opacity: 0.8")),
    oldKey: svg("path", lined(INK.key, 2.5, "opacity: 0.3")),
    oldQuery: svg("path", lined(INK.query, 2.5, "opacity: 0.3")),
    key: svg("path", lined(INK.key, 4)),
    query: svg("path", lined(INK.query, 4)),
    names: svg("g", { "font-size": 14, "font-weight": 650, "text-anchor": "middle",
      ...OUTLINED }), // k may be on the query's arrow
  };
  return { ...plane, group: svg("g", {}, ...Object.values(plane)) };
}

// Draws both arrows and, faintly, their previous directions. Also draws the angle between the arrows, and a dot
// for every direction that either arrow can have in this text.
function drawPlane(plane, [left, top, size], data, values, was) {
  const centre = [left + size / 2, top + size / 2];
  const unit = (size / 2 - 20) / QUERY_LENGTH;
  const place = (/** @type {number[]} */ [x, y]) => [centre[0] + x * unit, centre[1] - y * unit];
  put(plane.circles, { d: [QUERY, KEY].map((one) => circlePath(centre, Math.hypot(...one) * unit)).join("") });
  const reach = size / 2 - 8;
  const across = `M${centre[0] - reach},${centre[1]}h${2 * reach}`;
  put(plane.axes, { d: `${across}M${centre[0]},${centre[1] - reach}v${2 * reach}` });
  redrawn(plane.places, () => [[QUERY, INK.query], [KEY, INK.key]].flatMap(([one, paint]) => {
    return Array.from({ length: TOKENS }, (_, position) => {
      const [cx, cy] = place(turned(one, position * data.theta)).map((at) => at.toFixed(2));
      return svg("circle", { cx, cy, r: 2.5, style: `fill: var(--rb-${paint}); opacity: 0.4` });
    });
  }));
  const tips = [["q", data.query, INK.query], ["k", data.key, INK.key]];
  redrawn(plane.names, () => tips.map(([name, [x, y], paint]) => {
    const beyond = 1 + 13 / (Math.hypot(x, y) * unit);
    const [nameX, nameY] = place([x * beyond, y * beyond]);
    return svg("text", { x: nameX, y: nameY + 5, ...inColour(paint) }, name);
  }));
  put(plane.query, { d: arrowPath(centre, place(data.query), 15) });
  put(plane.key, { d: arrowPath(centre, place(data.key), 15) });
  const [arc, oldArc] = [data, was.data].map(({ query, key }) => bend(centre, size * 0.13, query, key));
  put(plane.arc, { d: `M${arc}` });
  put(plane.sector, { d: `M${centre.join(",")}L${arc}Z` });
  put(plane.oldArc, { d: moved(values, was) ? `M${oldArc}` : "" });
  put(plane.oldQuery, { d: values.m !== was.values.m ? arrowPath(centre, place(was.data.query), 15) : "" });
  put(plane.oldKey, { d: values.n !== was.values.n ? arrowPath(centre, place(was.data.key), 15) : "" });
}

// The arc from the key's direction to the query's direction, centred at the origin.
function bend(centre, radius, [qx, qy], [kx, ky]) {
  const counterClockwise = kx * qy - ky * qx > 0;
  const on = (x, y) => {
    const share = radius / Math.hypot(x, y);
    return `${(centre[0] + share * x).toFixed(2)},${(centre[1] - share * y).toFixed(2)}`;
  };
  return `${on(kx, ky)}A${radius},${radius} 0 0 ${counterClockwise ? 0 : 1} ${on(qx, qy)}`;
}

// ---- Angle and score ----

function drawNumbers(/** @type {number[]} */ [left, middle, width], low, data, before) {
  const large = low ? 30 : 44;
  const across = Math.min(width, 200);
  const block = (y, name, show, paint) => [
    svg("text", { x: left, y: y - large - 6, "font-size": low ? 12 : 14, "font-weight": 600 }, name),
    svg("text", { x: left, y, "font-size": large, "font-weight": 650, ...inColour(paint) }, show(data)),
    svg("text", { x: left, y: y + 20, "font-size": 12, class: "rb-quiet" },
      !before ? "" : show(before) === show(data) ? "as before" : `before: ${show(before)}`),
  ];
  const place = scale([-MOST_SCORE, MOST_SCORE], [left + 8, left + across - 8]);
  const under = middle + (low ? 108 : 146);
  return [
    ...block(middle - 32, "Angle between", ({ between }) => degrees(between), "1"),
    ...block(middle + (low ? 64 : 88), "Score", ({ score }) => exact(score, 2), "ink"),
    svg("path", { d: `M${place(-MOST_SCORE)},${under}H${place(MOST_SCORE)}M${place(0)},${under - 5}v10`,
      ...lined("grid", 2) }),
    svg("text", { x: place(0), y: under - 9, "font-size": 12, "text-anchor": "middle", class: "rb-quiet" }, "0"),
    ...(before ? [svg("circle", { cx: place(before.score), cy: under, r: 8,
      ...lined("ink", 1.5, "stroke-dasharray: 1 3") })] : []),
    svg("circle", { cx: place(data.score), cy: under, r: 6, style: "fill: var(--rb-ink)" }),
  ];
}

function degrees(angle) {
  return `${exact((angle * 180) / Math.PI, 1)}°`;
}

function describe({ between, score, distance }) {
  const [query, key] = WORDS;
  const far = distance ? `is ${count(Math.abs(distance), "token")} ${distance < 0 ? "before" : "after"}`
    : "is at the same position as";
  return `“${query}” ${far} “${key}”. The angle between the arrows is ${degrees(between)}, and the score is `
    + `${exact(score, 2)}.`;
}

export default explorer({
  title: "Two tokens, two arrows",
  note: "Drag a word, or drag the bar between the words to slide both. Dots: an arrow’s direction at each position.",
  dials,
  compute,
  units: { theta: "radians per token", between: "radians", distance: "tokens" },
  build,
  stats: ({ theta }) => [["Rotation per token", tidy((theta * 180) / Math.PI), "degrees"]],
  describe,
});
