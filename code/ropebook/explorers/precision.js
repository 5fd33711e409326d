// Tables of cosines and sines at neighbouring positions, both exact and computed with rounding. The rounding matches
// PyTorch's bit for bit.

import { dials, MOST_FIRST } from "./precision.py";
import { cosSinGrid, evenEdges, invFreq, lastCall } from "./kit/rope.js";
import { grouped, tidy } from "./kit/text.js";
import { divergingTable, mix } from "./kit/colours.js";
import { snap } from "./kit/dials.js";
import { html, put, quietText, redrawn, svg } from "./kit/elements.js";
import { axis, fitCanvas, fitting, niceStep, paintCells, scale, titled } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

const oneFloat = new Float32Array(1);
const itsBits = new Uint32Array(oneFloat.buffer);

// bfloat16 is the upper half of a float32, rounded to nearest, ties to even. A carry from the lower half into the upper
// half is correct. A result beyond the largest finite number becomes infinite without special treatment.
function toBfloat16(value) {
  oneFloat[0] = value;
  if (value !== value) return value; // the rounding below would change NaN
  itsBits[0] = (itsBits[0] + 0x7fff + ((itsBits[0] >>> 16) & 1)) & 0xffff0000;
  return oneFloat[0];
}

// Rounds to float16 via float32, as PyTorch does. Numbers with exponent e are 2^(e − 10) apart; below 2^−14 the spacing
// doesn't decrease any further. float64 numbers near `shift` have the same spacing, so adding `shift` to a value and
// subtracting it again rounds the value to that spacing.
function toFloat16(value) {
  oneFloat[0] = value;
  const exponent = Math.max(-14, ((itsBits[0] >>> 23) & 0xff) - 127);
  if (exponent > 15) return value === value ? Math.sign(value) * Infinity : value;
  const shift = 1.5 * 2 ** (exponent + 42);
  const rounded = oneFloat[0] + shift - shift;
  return Math.abs(rounded) > 65504 ? Math.sign(rounded) * Infinity : rounded;
}

const ROUND = { float64: (value) => value, float32: Math.fround, bfloat16: toBfloat16, float16: toFloat16 };

// The 16-bit types have so few numbers that we compute the cosine and sine of each number only once, and store them
// rounded (NaN: not computed yet). SPARE is the number of trailing bits of such a number that are always 0 in float32.
// The other bits are the index of its cosine and sine. Angles are never negative.
const SPARE = { bfloat16: 16, float16: 13 };
const waves = {};

function wavesOf(dtype) {
  if (!(dtype in SPARE)) return null;
  const empty = () => new Float32Array(2 ** (31 - SPARE[dtype])).fill(NaN);
  return (waves[dtype] ??= { spare: SPARE[dtype], cos: empty(), sin: empty() });
}

function placeOf({ spare, cos, sin }, angle, round) {
  oneFloat[0] = angle;
  const place = itsBits[0] >>> spare;
  if (cos[place] !== cos[place]) {
    cos[place] = round(Math.cos(angle));
    sin[place] = round(Math.sin(angle));
  }
  return place;
}

// Both tables, with a row for each position: first the cosines, then the sines. Rows for non-finite positions remain 0.
function tables(dtype, rounded, first, count, dim, base) {
  const round = ROUND[dtype];
  const all = rounded === "everything" && dtype !== "float64"; // whether the angles are rounded as well
  const roundPosition = all || rounded === "positions" ? round : ROUND.float64;
  const used = Array.from({ length: count }, (_, p) => roundPosition(first + p));
  const pairs = dim / 2;
  const [exact, cells] = [new Float64Array(count * dim), new Float64Array(count * dim)];
  const [cos, sin] = [new Float64Array(count), new Float64Array(count)];
  const regular = used.every((position, p) => position === first + p);
  const few = all && wavesOf(dtype);
  invFreq(dim, base).forEach((theta, i) => {
    cosSinGrid(theta, first, 1, count, cos, sin);
    for (let p = 0, at = i; p < count; p += 1, at += dim) {
      exact[at] = cos[p];
      exact[at + pairs] = sin[p];
    }
    const turns = all || rounded === "frequencies" ? round(theta) : theta;
    if (regular && !all && turns !== theta) cosSinGrid(turns, first, 1, count, cos, sin);
    for (let p = 0, at = i; p < count && Number.isFinite(used[p]); p += 1, at += dim) {
      if (used[p] === used[p - 1]) {
        cells[at] = cells[at - dim];
        cells[at + pairs] = cells[at - dim + pairs];
      } else if (few) {
        const place = placeOf(few, round(used[p] * turns), round);
        cells[at] = few.cos[place];
        cells[at + pairs] = few.sin[place];
      } else {
        const angle = all ? round(used[p] * turns) : used[p] * turns;
        cells[at] = round(regular && !all ? cos[p] : Math.cos(angle));
        cells[at + pairs] = round(regular && !all ? sin[p] : Math.sin(angle));
      }
    }
  });
  return { exact, cells, used };
}

const lastTables = lastCall(tables);

function compute({ dtype, rounded, first, count, dim, base }) {
  const { exact, cells, used } = lastTables(dtype, rounded, first, count, dim, base);
  const lost = used.filter((position) => !Number.isFinite(position)).length;
  const errors = new Float64Array(count);
  const fresh = new Uint8Array(count);
  for (let p = 0; p < count; p += 1) {
    const row = p * dim;
    for (let at = row; at < row + dim / 2 && p < count - lost; at += 1) {
      errors[p] = Math.max(errors[p], Math.abs(cells[at] - exact[at]));
    }
    fresh[p] = p === 0 || (used[p] !== used[p - 1]
      && cells.subarray(row, row + dim).some((value, i) => value !== cells[row - dim + i]));
  }
  return {
    exact,
    cells,
    used: used.map((position) => (Number.isFinite(position) ? position : 0)), // the positions used for the angles
    errors, // the largest error of any cosine at each position
    fresh, // whether a row differs from the one before
    different: fresh.subarray(0, count - lost).reduce((total, one) => total + one, 0),
    lost, // the number of positions beyond the range of float16, which come last
    error: errors.reduce((most, one) => Math.max(most, one), 0),
  };
}

// ---- On the page ----

const TOP = 62; // top of the pictures
const UNDER = 52; // space below the pictures for their names and the scale
const SECONDS = 1.5; // playback time for a position to double
const NAMES = 70; // width of a column of positions
const [LEAST_ERROR, MOST_ERROR] = [2 ** -30, 2]; // the limits of the logarithmic error scale
const DIGITS = { float64: 52, float32: 23, bfloat16: 7, float16: 10 }; // binary digits after the leading one

// Describes how far apart the numbers of the type are at a position.
function spacing(dtype, position) {
  const gap = 2 ** (Math.floor(Math.log2(position)) - DIGITS[dtype]);
  return gap < 1 ? tidy(gap) : grouped(gap);
}

function build(stage, app) {
  play(app, {
    advance: ({ first }, seconds) => (first >= MOST_FIRST ? null
      : { first: Math.min(MOST_FIRST, Math.floor((first + 1) * 2 ** (seconds / SECONDS)) - 1) }),
    again: { first: 0 },
    step: SECONDS,
  });
  const canvas = html("canvas", { "aria-hidden": "true" });
  const [small, small2, small3] = [html("canvas"), html("canvas"), html("canvas")];
  const picture = svg("svg", { role: "img", "aria-label": app.alt, style: "position: absolute; inset: 0" });
  const names = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, names));
  const groups = Array.from({ length: 4 }, () => picture.appendChild(svg("g")));
  const [showTitles, showFrames, showLevels] = [titles, frames, levels].map((make, k) => {
    return lastCall((...given) => redrawn(groups[k], () => make(...given))); // redrawn only when the arguments change
  });
  const dial = dials.find(({ trait }) => trait === "first");
  let row; // height of a row
  const showNames = hand(app, names, { // the table is dragged up and down like a long text
    label: "First position, at the table’s edge",
    cursor: "ns-resize",
    place: ({ first }) => [0, -first * row],
    at: (_, y) => ({ first: snap(dial, -y / row) }),
    ...ofDial(app, dial),
  });
  return ({ data, values, width, most, theme }) => {
    const wide = width >= 620;
    const between = wide ? NAMES + 8 : 10; // eight digits don't touch the left table
    const panel = Math.floor((width - NAMES - between - 26) / 3);
    const height = Math.min(most, 520);
    const tall = height - TOP - UNDER;
    row = tall / values.count;
    const right = NAMES + panel + between;
    const place = { wide, panel, tall, left: NAMES, right, errors: right + panel + 20 };
    const context = fitCanvas(canvas, width, height);
    context.imageSmoothingEnabled = false; // keep the cells' edges sharp
    const rows = values.count - data.lost;
    const { exact, cells } = data;
    const palette = divergingTable(theme);
    const shades = lastShades(theme);
    paintTable(context, small, [place.left, panel, tall], values, values.count, () => true, (from, to) => {
      return palette[((sumOf(exact, from, to) / (to - from)) * 127 + 128.5) | 0];
    });
    paintTable(context, small2, [place.right, panel, tall], values, rows, (one) => data.fresh[one], (from, to) => {
      return palette[((sumOf(cells, from, to) / (to - from)) * 127 + 128.5) | 0];
    });
    paintTable(context, small3, [place.errors, panel, tall], values, rows, () => true, (from, to) => {
      return shades[shadeOf(largestOff(cells, exact, from, to))];
    });
    paintScale(context, scaleOf(place), theme);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    showTitles(place, values.dtype, values.rounded);
    showFrames(place);
    showLevels(place);
    redrawn(groups[3], () => positions(place, data, values));
    showNames([0, TOP, NAMES - 6, tall]);
  };
}

// The top edge of a table row.
function rowTop(p, count, tall) {
  return TOP + (p / count) * tall;
}

// The position and width (left, top, width) of the strip that shows all shades, below the errors.
/** @returns {[number, number, number]} */
function scaleOf({ errors, panel, tall }) {
  return [errors, TOP + tall + 24, panel];
}

const lastImage = lastCall((width, height) => new ImageData(width, height));

// There are eight shades for each factor of 2 in the error, looked up by the upper bits of the error as a float32.
const SHADES = 8 * 31;
const TURN = 150; // the shade with the full colour, for errors of about 10⁻³; later shades approach the ink colour

function shadeOf(error) {
  oneFloat[0] = error;
  return Math.min(SHADES - 1, Math.max(0, (itsBits[0] >>> 20) - ((127 - 30) << 3)));
}

const lastShades = lastCall((theme) => Uint32Array.from({ length: SHADES }, (_, shade) => {
  const [r, g, b] = shade < TURN ? mix(theme.paper, theme["2"], shade / TURN)
    : mix(theme["2"], theme.ink, (shade - TURN) / (SHADES - 1 - TURN));
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}));

function paintScale(context, [left, top, width], theme) {
  const turn = (width * TURN) / SHADES;
  paintCells(context, [left, top, turn, 8], TURN, 1, [theme.paper, theme["2"]], (shade) => shade / TURN);
  paintCells(context, [left + turn, top, width - turn, 8], TURN, 1, [theme["2"], theme.ink], (shade) => shade / TURN);
}

function sumOf(values, from, to) {
  let sum = 0;
  for (let at = from; at < to; at += 1) sum += values[at];
  return sum;
}

function largestOff(values, wanted, from, to) {
  let most = 0;
  for (let at = from; at < to; at += 1) most = Math.max(most, Math.abs(values[at] - wanted[at]));
  return most;
}

// Paints the first rows of a table. paintOf(from, to) returns the colour of entries k with from ≤ k < to. A row that is
// not `fresh` is the same as the previous one. Columns that share a pixel are merged into one column, but cosines and
// sines are never merged.
function paintTable(context, small, [x, width, tall], { count, dim }, rows, fresh, paintOf) {
  if (!rows) return;
  const pairs = dim / 2;
  const edges = evenEdges(pairs, Math.min(pairs, Math.floor(width / 2)));
  const columns = edges.length - 1;
  const image = lastImage(2 * columns, rows);
  const pixels = new Uint32Array(image.data.buffer);
  for (let row = 0, at = 0; row < rows; row += 1) {
    if (!fresh(row)) {
      pixels.copyWithin(at, at - image.width, at);
      at += image.width;
      continue;
    }
    for (let from = row * dim; from < row * dim + dim; from += pairs) {
      for (let column = 0; column < columns; column += 1, at += 1) {
        pixels[at] = paintOf(from + edges[column], from + edges[column + 1]);
      }
    }
  }
  if (small.width !== image.width || small.height !== rows) Object.assign(small, { width: image.width, height: rows });
  small.getContext("2d").putImageData(image, 0, 0);
  context.drawImage(small, x, TOP, width, (rows / count) * tall);
}

function titles({ wide, panel, left, right, errors }, dtype, rounded) {
  const what = wide && ["frequencies", "positions"].includes(rounded) ? `${rounded}, result` : rounded;
  const room = wide ? Infinity : panel;
  return [
    ...titled(left, 0, "Exact", fitting(["blue above 0, orange below", "blue: above 0", "float64"], room)),
    ...titled(right, 0, dtype, fitting([`rounded: ${what}`, what], room)),
    ...titled(errors, 0, "Error", wide ? "of each entry" : "by entry"),
  ];
}

// Draws frames around the pictures and labels their halves.
function frames({ left, right, errors, panel, tall }) {
  const bottom = TOP + tall;
  return [left, right, errors].flatMap((x) => [
    svg("rect", { x, y: TOP, width: panel, height: tall, style: "fill: none; stroke: var(--rb-grid)" }),
    svg("path", { d: `M${x + panel / 2},${TOP}V${bottom}`, style: "stroke: var(--rb-paper); stroke-width: 2" }),
    .../** @type {[string, number][]} */ ([["cos", 0.25], ["sin", 0.75]]).map(([name, share]) => {
      return quietText(x + share * panel, bottom + 19, name, { "text-anchor": "middle" });
    }),
    ...(x === errors ? [] : [quietText(x + panel / 2, bottom + 37, "fast to slow", { "text-anchor": "middle" })]),
  ]);
}

// Writes positions beside the exact table. Beside the rounded table, the first row of each run of equal rows is
// labelled with the position to which it was rounded. Also covers rows whose positions are no longer finite numbers.
function positions({ wide, left, right, errors, panel, tall }, { used, fresh, lost }, { first, count }) {
  const y = (p) => rowTop(p, count, tall);
  const step = Math.max(1, niceStep(count, 8));
  const start = Math.ceil(first / step) * step;
  const ticks = [];
  for (let m = start; m < first + count; m += step) ticks.push(m);
  const middle = (p) => y(p + 0.5) + 4;
  const merged = fresh.includes(0);
  const runs = [];
  let free = 0; // where the free space below the last number begins
  for (let p = 0; wide && p < count - lost; p += 1) {
    if (merged ? !fresh[p] || middle(p) < free : (first + p) % step) continue;
    runs.push(p);
    free = middle(p) + 15;
  }
  const place = (x, p, text) => quietText(x - 8, middle(p), text, { "text-anchor": "end" });
  return [
    quietText(left - 8, TOP - 8, "position", { "text-anchor": "end" }),
    ...(wide ? [quietText(right - 8, TOP - 8, "as used", { "text-anchor": "end" })] : []),
    ...ticks.map((m) => place(left, m - first, String(m))),
    ...runs.map((p) => place(right, p, String(used[p]))),
    ...(lost ? [
      ...[errors, right].map((x) => svg("rect", { x, y: y(count - lost), width: panel,
        height: y(count) - y(count - lost), style: "fill: var(--rb-grid)" })),
      svg("text", { x: right + panel / 2, y: (y(count - lost) + y(count)) / 2 + 5, "font-size": 14,
        "text-anchor": "middle" }, wide ? "not a number" : "NaN"),
    ] : []),
  ];
}

// Explains the shades of the errors.
function levels(place) {
  const [left, top, width] = scaleOf(place);
  const at = scale([LEAST_ERROR, MOST_ERROR], [left, left + width], true);
  const bottom = svg("g", { transform: `translate(0 ${top + 8})` });
  const names = { 1e-8: "10⁻⁸", 1e-4: "10⁻⁴", 1: "1" };
  axis(bottom, "bottom", at, place.wide ? [1e-8, 1e-4, 1] : [1e-8, 1], (value) => names[value]);
  return [bottom];
}

function stats({ different, lost, error }, { count }) {
  return [
    ["Different rows", String(different), `of ${count}`],
    ["Largest error of a cosine", ...(lost === count ? ["–"] : [tidy(error), "of at most 2"])],
  ];
}

function describe({ different, lost, used }, { dtype, rounded, first, count, dim, base }) {
  const gone = lost ? `From position ${grouped(first + count - lost)} on, float16 represents the positions as `
    + "infinity, which has no cosine: the result is not a number. " : "";
  const last = first + count - lost - 1; // the last position that is a finite number
  const shared = different === count - lost ? "" : used[0] === used[last - first]
    ? `, so positions ${grouped(first)} to ${grouped(last)} all become ${grouped(used[0])} and share one row`
    : ", so neighbouring positions share rows";
  const near = lost === count ? ""
    : `Near ${grouped(last)}, ${dtype} numbers are ${spacing(dtype, last)} apart${shared}.`;
  return (gone + ({
    result: "Only the finished cosine is rounded, so the error does not grow with the position.",
    frequencies: invFreq(dim, base).every((theta) => ROUND[dtype](theta) === theta)
      ? `All frequencies θᵢ are ${dtype} numbers, so rounding does not change them.`
      : "The error of θᵢ is multiplied by the position, so the angle’s error grows with it.",
  }[rounded] ?? near)).trim();
}

export default explorer({
  title: "What rounding does to the tables",
  note: "One row per position. Raise the position: at large positions, neighbouring rows merge.",
  dials,
  compute,
  units: { used: "tokens" },
  build,
  stats,
  describe,
});
