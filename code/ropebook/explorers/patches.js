// The scores between one image patch and all others, and which pairs depend on rows and which on columns.

import { dials, GOLDEN, SIDE } from "./patches.py";
import { hundredths, invFreq, lastCall } from "./kit/rope.js";
import { exact } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { inColour, textWidth } from "./kit/drawing.js";
import { hand } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";

// The axis on which each pair depends: 0 for rows, 1 for columns. If the axes are interleaved, they alternate as long
// as both have pairs left.
function axesOf(interleaved, rows, columns) {
  const left = [rows, columns];
  return Array.from({ length: rows + columns }, (_, i) => {
    const wanted = interleaved ? i % 2 : 0;
    const axis = left[wanted] ? wanted : 1 - wanted;
    left[axis] -= 1;
    return axis;
  });
}

// How far each pair rotates per row and per column, and the pair's axis: 0 for rows, 1 for columns, 2 for both.
function wavesOf({ form, base, dim, base_columns, dim_columns }) {
  if (form === "axial") {
    const [rows, columns] = [[...invFreq(dim, base)], [...invFreq(dim_columns, base_columns)]];
    return {
      rows: [...rows, ...columns.map(() => 0)],
      columns: [...rows.map(() => 0), ...columns],
      axes: [...rows.map(() => 0), ...columns.map(() => 1)],
    };
  }
  const theta = [...invFreq(dim + dim_columns, base)];
  if (form === "line") return { rows: theta.map((one) => SIDE * one), columns: theta, axes: theta.map(() => 2) };
  if (form === "mixed") {
    return {
      rows: theta.map((one, i) => one * Math.cos(GOLDEN * i)),
      columns: theta.map((one, i) => one * Math.sin(GOLDEN * i)),
      axes: theta.map(() => 2),
    };
  }
  const axes = axesOf(form === "interleaved", dim / 2, dim_columns / 2);
  return {
    rows: theta.map((one, i) => (axes[i] === 0 ? one : 0)),
    columns: theta.map((one, i) => (axes[i] === 1 ? one : 0)),
    axes,
  };
}

// The mean cosine for every shift by −15 … 15 rows and columns, row by row.
const STEPS = 2 * SIDE - 1;
const lastTable = lastCall((form, base, dim, base_columns, dim_columns) => {
  const { rows, columns } = wavesOf({ form, base, dim, base_columns, dim_columns });
  return Float64Array.from({ length: STEPS * STEPS }, (_, k) => {
    const [down, right] = [Math.floor(k / STEPS) - SIDE + 1, k % STEPS - SIDE + 1];
    let sum = 0;
    for (let i = 0; i < rows.length; i += 1) sum += Math.cos(rows[i] * down + columns[i] * right);
    return sum / rows.length;
  });
});

function compute(values) {
  const { form, base, dim, base_columns, dim_columns, row, column } = values;
  const table = lastTable(form, base, dim, base_columns, dim_columns);
  const at = (down, right) => table[(down + SIDE - 1) * STEPS + right + SIDE - 1];
  return {
    scores: Array.from({ length: SIDE * SIDE }, (_, k) => at(Math.floor(k / SIDE) - row, k % SIDE - column)),
    axes: wavesOf(values).axes,
    below: at(1, 0),
    beside: at(0, 1),
    slanted: [at(1, 1), at(1, -1)], // down and right, down and left
  };
}

// ---- On the page ----

const TOP = 46;
const UNDER = 60; // space below the map for the strip of pairs and its labels

function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  let map = { left: 0, side: 1 };
  const within = (place) => Math.min(SIDE - 1, Math.max(0, place));
  const patchAt = (x, y) => ({
    row: within(Math.floor(((y - TOP) / map.side) * SIDE)),
    column: within(Math.floor(((x - map.left) / map.side) * SIDE)),
  });
  const showPad = hand(app, pad, {
    area: true,
    cursor: "crosshair",
    label: ({ row, column }) => `The patch, row ${row}, column ${column}: arrow keys move it`,
    at: patchAt,
    keys(key) {
      const { row, column } = app.values();
      const goal = {
        ArrowUp: [row - 1, column], ArrowDown: [row + 1, column],
        ArrowLeft: [row, column - 1], ArrowRight: [row, column + 1],
        Home: [row, 0], End: [row, SIDE], PageUp: [0, column], PageDown: [SIDE, column],
      }[key];
      return goal ? { row: within(goal[0]), column: within(goal[1]) } : null;
    },
  });
  return ({ data, values, width, most }) => {
    const side = SIDE * Math.floor(Math.min(width, most - TOP - UNDER) / SIDE);
    map = { left: Math.floor((width - side) / 2), side };
    const height = Math.min(most, TOP + side + UNDER + SIDE);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    redrawn(picture, () => [
      ...head(width, values), ...cells(map, data), ...ring(map, values), ...strip(width, map, data),
    ]);
    showPad([map.left, TOP, side, side]);
  };
}

function head(width, { row, column }) {
  const narrow = width < 420;
  const note = `The bluer, the higher${narrow ? ". Orange is" : " the score. Orange scores are"} below zero.`;
  const title = `Score with ${narrow ? "" : "the patch in "}row ${row}, column ${column}`;
  return [
    svg("text", { x: 0, y: 14, "font-size": 14, "font-weight": 600 }, title),
    svg("text", { x: 0, y: 33, "font-size": 12, class: "rb-quiet" }, note),
  ];
}

function cells({ left, side }, { scores }) {
  const cell = side / SIDE;
  return [
    ...scores.map((score, k) => svg("rect", {
      x: left + (k % SIDE) * cell, y: TOP + Math.floor(k / SIDE) * cell, width: cell, height: cell,
      style: `fill: var(--rb-${score < 0 ? "2" : "1"}); fill-opacity: ${hundredths(0.9 * Math.abs(score))}`,
    })),
    svg("rect", { x: left, y: TOP, width: side, height: side, style: "fill: none; stroke: var(--rb-grid)" }),
  ];
}

function ring({ left, side }, { row, column }) {
  const cell = side / SIDE;
  return [svg("circle", { cx: left + (column + 0.5) * cell, cy: TOP + (row + 0.5) * cell, r: 0.62 * cell,
    style: "fill: none; stroke: var(--rb-ink); stroke-width: 2" })];
}

// The pairs of each axis from fast to slow, in that axis's colour.
const NAMES = ["rows", "columns", "rows and columns"];
const AXES = ["1", "muted", "ink"];

function strip(width, { side }, { axes }) {
  const top = TOP + side + 16;
  const wide = width / axes.length;
  const bars = axes.map((axis, i) => svg("rect", {
    x: hundredths(i * wide), y: top, width: hundredths(Math.max(1, wide - (wide > 4 ? 1 : 0))), height: 18,
    style: `fill: var(--rb-${AXES[axis]})`,
  }));
  let x = 0;
  const words = ["Pairs encode:", ...new Set(axes)].map((axis) => {
    const text = typeof axis === "string" ? axis : NAMES[axis];
    const at = x;
    x += textWidth(text, 12, 600) + 14;
    const quiet = typeof axis === "string";
    const look = quiet ? { class: "rb-quiet" } : { "font-weight": 600, ...inColour(AXES[axis]) };
    return svg("text", { x: at, y: top + 38, "font-size": 12, ...look }, text);
  });
  return [...bars, ...words];
}

function shared(value) {
  return `${exact(100 * value, 0)}%`;
}

// Why the map looks as it does.
const SUM = "The score is the sum of a part for the rows and a part for the columns.";
const IN_LINE = "Each pair rotates in proportion to a patch’s number, and the number of the patch";
const WHY = {
  axial: SUM,
  sections: SUM,
  interleaved: SUM,
  mixed: "Each pair follows its own direction across the image.",
};

// In the last row and the last column, the neighbours are above and on the left. The opposite shift has the same score.
function neighbours({ below, beside }, { row, column }) {
  return [[`One row ${row < SIDE - 1 ? "down" : "up"}`, shared(below), "of the largest score"],
    [`One column ${column < SIDE - 1 ? "right" : "left"}`, shared(beside)]];
}

function describe({ slanted }, { form, row, column }) {
  const below = row < SIDE - 1;
  const where = below ? "below" : "above";
  const why = WHY[form] ?? `${IN_LINE} ${where} is ${below ? "larger" : "smaller"} by ${SIDE}.`;
  const [right, left] = [slanted[below ? 0 : 1], slanted[below ? 1 : 0]].map(shared);
  if (column % (SIDE - 1) === 0) return `${why} The diagonal neighbour ${where} scores ${column ? left : right}.`;
  return `${why} ${left === right ? `Both diagonal neighbours ${where} score ${right}.`
    : `The diagonal neighbours ${where} score ${left} on the left and ${right} on the right.`}`;
}

export default explorer({
  title: "One patch and all others",
  note: "Drag across the image, or use the arrow keys, to pick the patch to compare.",
  dials,
  compute,
  build,
  idle: (_, { form }) => (form === "axial" ? {} : { base_columns: "Only the axial form has a base for each axis." }),
  stats: neighbours,
  describe,
});
