// The sinusoidal encoding as an image with one column per position. The curve below it shows how similar each position
// is to a reference position, as measured by the distance kernel Σ cos θ_i Δ divided by d/2.

import { dials, MOST_COLUMNS, MOST_DIMS } from "./heatmap.py";
import { cosSinGrid, evenEdges, fourierSum, invFreq, lastCall, minMaxBand } from "./kit/rope.js";
import { grouped, lowered, tidy } from "./kit/text.js";
import { css, diverging, divergingTable } from "./kit/colours.js";
import { html, put, redrawn, setText, svg } from "./kit/elements.js";
import { axis, bandPath, fitCanvas, fitting, NARROW, niceStep, scale, textWidth } from "./kit/drawing.js";
import { hand, ofDial } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";

// The share of its amplitude that a wave of frequency θ keeps if each value is replaced by a mean of its neighbours
// with weights cos²(πo/(4·per)), |o| < 2·per (a Hann window). A wave shorter than two columns keeps at most 3%. A
// plain mean over the column would keep up to 64%, which would look like a slower wave that doesn't exist.
function meanGain(theta, per) {
  if (per === 1) return 1;
  let kept = 0;
  let weights = 0;
  for (let o = per % 2 ? 0 : 0.5; o < 2 * per; o += 1) {
    const weight = (o ? 2 : 1) * Math.cos((Math.PI * o) / (4 * per)) ** 2; // counts both o and −o, but 0 only once
    kept += weight * Math.cos(theta * o);
    weights += weight;
  }
  return kept / weights;
}

// The image, row by row: sin mθ_i and cos mθ_i at the middle m of each column of `per` positions.
function encodingCells(theta, length, interleaved) {
  const per = Math.ceil(length / MOST_COLUMNS);
  const columns = Math.ceil(length / per);
  const rows = 2 * theta.length;
  const cells = new Float32Array(rows * columns);
  const [cos, sin] = [new Float64Array(columns), new Float64Array(columns)];
  theta.forEach((one, i) => {
    cosSinGrid(one, (per - 1) / 2, per, columns, cos, sin);
    const sinAt = (interleaved ? 2 * i : i) * columns;
    const cosAt = (interleaved ? 2 * i + 1 : theta.length + i) * columns;
    const gain = meanGain(one, per);
    for (let k = 0; k < columns; k += 1) {
      cells[sinAt + k] = gain * sin[k];
      cells[cosAt + k] = gain * cos[k];
    }
  });
  return { cells, rows, columns, per };
}

const lastCells = lastCall((dim, base, length, interleaved) => encodingCells(invFreq(dim, base), length, interleaved));
const lastKernel = lastCall((dim, base, count) => {
  const theta = invFreq(dim, base);
  return fourierSum(theta, theta.map(() => 1), theta.map(() => 0), 0, count);
});

function compute({ base, dim, length, reference, interleaved }) {
  const theta = invFreq(dim, base);
  const known = lastKernel(dim, base, 1024 * Math.ceil(length / 1024)); // for |Δ| < length; many lengths share it
  const kernel = new Float64Array(length);
  for (let m = 0; m < length; m += 1) kernel[m] = known[Math.abs(m - reference)] / theta.length;
  return {
    ...lastCells(dim, base, length, interleaved),
    kernel, // the kernel between every position and the reference
    wavelengths: Array.from(theta, (one) => (2 * Math.PI) / one),
    turned: theta.filter((one) => one * (length - 1) >= 2 * Math.PI).length, // the number of pairs that complete a turn
  };
}

// ---- On the page ----

const LEFT = 46;
const UNDER = 40; // space below the curve for its axis
const SAID = 38; // space for the description of what is under the cursor

// The edges of the image, of the curve, and of the whole figure, which has two lines of text at the bottom.
function layoutOf(width, most) {
  const [top, between, greatest, share] = width < NARROW ? [44, 50, 218, 0.6] : [50, 62, 388, 0.66];
  const rows = Math.max(60, Math.min(greatest, most - top - between - UNDER - SAID));
  const mapHeight = Math.round(share * rows);
  const [curveTop, curveHeight] = [top + mapHeight + between, rows - mapHeight];
  return { top, mapHeight, curveTop, floor: curveTop + curveHeight, height: curveTop + curveHeight + UNDER };
}

// Paints the cells on the canvas `small`, with colours from a table. (The canvas is reused while its size stays the
// same, because creating one costs more than filling it.) If there are few cells, each is repeated over many pixels, so
// that smoothing leaves its edges sharp. If two rows share a pixel, the pixel shows their mean.
function paintMap(context, small, [x, y, width, height], { cells, rows, columns, per }, length, theme) {
  const palette = divergingTable(theme);
  const across = Math.max(1, Math.floor(MOST_COLUMNS / columns));
  const merged = rows > height * (window.devicePixelRatio || 1) ? 2 : 1;
  const lines = rows / merged;
  const down = Math.max(1, Math.floor(MOST_DIMS / rows));
  if (small.image?.width !== columns * across || small.image.height !== lines * down) {
    small.image = new ImageData(columns * across, lines * down);
    small.width = small.image.width;
    small.height = small.image.height;
  }
  const { image } = small;
  const pixels = new Uint32Array(image.data.buffer);
  const other = (merged - 1) * columns;
  for (let line = 0; line < lines; line += 1) {
    const start = line * down * image.width;
    const first = line * merged * columns;
    for (let k = 0; k < across; k += 1) {
      for (let from = first, at = start + k; from < first + columns; from += 1, at += across) {
        pixels[at] = palette[((cells[from] + cells[from + other]) * 63.5 + 128.5) | 0];
      }
    }
    for (let k = 1; k < down; k += 1) pixels.copyWithin(start + k * image.width, start, start + image.width);
  }
  small.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingQuality = "medium";
  const used = (image.width * length) / (columns * per); // the last column may extend beyond the last position
  context.drawImage(small, 0, 0, used, image.height, x, y, width, height);
}

// Converts an image row to an index into the vector; rowOfEntry is the inverse.
function entryOfRow(row, dim, interleaved) {
  if (interleaved) return row;
  return row < dim / 2 ? 2 * row : 2 * (row - dim / 2) + 1;
}

function rowOfEntry(entry, dim, interleaved) {
  if (interleaved) return entry;
  return entry % 2 ? dim / 2 + (entry - 1) / 2 : entry / 2;
}

function readOut({ position, entry }, { kernel }, { base, dim, reference }) {
  const pair = Math.floor(entry / 2);
  const angle = position * base ** ((-2 * pair) / dim);
  const [name, value] = entry % 2 ? ["cos", Math.cos(angle)] : ["sin", Math.sin(angle)];
  const [here, away] = [position, Math.abs(position - reference)].map(grouped);
  return `Position ${here}, entry ${entry}: ${name} ${here}θ${lowered(pair)} = ${tidy(value)}. `
    + `Similarity to ${grouped(reference)} (${away} away):\u00A0${tidy(kernel[position])}.`;
}

function build(stage, app) {
  const { alt, change, listen, values } = app;
  const canvas = html("canvas", { "aria-hidden": "true" });
  const small = html("canvas");
  const picture = svg("svg", { role: "img", "aria-label": alt, style: "position: absolute; inset: 0" });
  const help = "Cursor: left and right change the position, up and down the entry; Enter measures distances from here";
  const pad = html("div", { role: "slider", tabindex: 0, "aria-label": help, "aria-valuemin": 0 });
  const twoLines = "height: 2.9em; padding-block-start: 4px; font-size: 0.8125rem";
  const said = html("p", { class: "rb-readout", style: twoLines });
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, canvas, picture, pad, handle), said);
  const frame = buildFrame(picture);
  let cursor; // { position, entry }
  let shown;
  const place = ({ reference }) => [shown.x(reference + 0.5), shown.layout.floor + 15];
  const grip = hand(app, handle, {
    label: "Reference position",
    cursor: "ew-resize",
    place,
    at(x) {
      const { length } = values();
      const share = (x - LEFT) / (shown.x(length) - LEFT);
      return { reference: Math.min(length - 1, Math.max(0, Math.floor(share * length))) };
    },
    ...ofDial(app, dials.find(({ trait }) => trait === "reference"), { limits: ({ length }) => [0, length - 1] }),
  });

  const showCursor = () => {
    const { data, values: now, x, y, layout } = shown;
    const row = rowOfEntry(cursor.entry, now.dim, now.interleaved);
    const text = readOut(cursor, data, now);
    setText(said, text);
    put(pad, { "aria-valuenow": cursor.position, "aria-valuemax": now.length - 1, "aria-valuetext": text });
    const at = x(cursor.position + 0.5);
    put(frame.line, { d: acrossBoth(at, layout) });
    put(frame.ring, { cx: at, cy: layout.top + ((row + 0.5) / now.dim) * layout.mapHeight });
    put(frame.dot, { cx: at, cy: y(data.kernel[cursor.position]) });
  };
  const moveCursor = (position, entry) => {
    const { dim, length } = values();
    cursor = { position: Math.min(length - 1, Math.max(0, position)), entry: Math.min(dim - 1, Math.max(0, entry)) };
    showCursor();
  };
  const follow = (event) => {
    const { dim, length, interleaved } = values();
    const box = pad.getBoundingClientRect();
    const row = Math.floor(((event.clientY - box.top) / shown.layout.mapHeight) * dim);
    const position = Math.floor(((event.clientX - box.left) / box.width) * length);
    moveCursor(position, row < dim ? entryOfRow(Math.max(0, row), dim, interleaved) : cursor.entry);
  };
  listen(pad, "pointermove", follow);
  listen(pad, "pointerdown", follow);
  listen(pad, "click", (event) => event.pointerType !== "touch" && change({ reference: cursor.position }));
  listen(pad, "keydown", (event) => {
    const { dim, length, interleaved } = values();
    const { position, entry } = cursor;
    const row = rowOfEntry(entry, dim, interleaved);
    const inRow = (next) => entryOfRow(Math.min(dim - 1, Math.max(0, next)), dim, interleaved);
    const page = Math.max(1, Math.round(length / 16));
    const goal = {
      ArrowLeft: [position - 1, entry], ArrowRight: [position + 1, entry],
      ArrowUp: [position, inRow(row - 1)], ArrowDown: [position, inRow(row + 1)],
      PageDown: [position - page, entry], PageUp: [position + page, entry],
      Home: [0, entry], End: [length - 1, entry],
    }[event.key];
    if (!goal && event.key !== "Enter") return;
    event.preventDefault();
    if (goal) moveCursor(...goal);
    else change({ reference: position });
  });

  return ({ data, values: now, width, most, theme }) => {
    const plot = width - LEFT - 2;
    const { dim, length } = now;
    const layout = layoutOf(width, most);
    const { top, mapHeight, curveTop, floor, height } = layout;
    const x = scale([0, length], [LEFT, LEFT + plot]);
    const levels = levelsFor(data.kernel);
    const y = scale([levels[0], 1], [floor, curveTop]);
    const context = fitCanvas(canvas, width, height);
    paintMap(context, small, [LEFT, top, plot, mapHeight], data, length, theme);
    paintLegend(context, width - 104, theme);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    put(pad, { style: `position: absolute; left: ${LEFT}px; top: ${top}px; width: ${plot}px; cursor: crosshair; `
      + `height: ${floor - top}px; touch-action: pan-y` });
    shown = { data, values: now, x, y, layout };
    drawFrame(frame, width, plot, shown, levels);
    cursor ??= { position: Math.floor(length / 4), entry: 2 * Math.floor(dim / 8) };
    moveCursor(cursor.position, cursor.entry);
    const [middle, under] = place(now);
    grip([Math.min(middle - 22, width - 44), under - 14, 44, 28]);
  };
}

// The axis levels, starting at the lowest one needed. (Encodings rarely point in opposite directions.)
function levelsFor(kernel) {
  const least = kernel.reduce((low, value) => Math.min(low, value), 1);
  return least < -0.5 ? [-1, 0, 1] : least < 0 ? [-0.5, 0, 0.5, 1] : [0, 0.5, 1];
}

function paintLegend(context, x, theme) {
  const gradient = context.createLinearGradient(x, 0, x + 80, 0);
  for (const at of [-1, 0, 1]) gradient.addColorStop((at + 1) / 2, css(diverging(theme, at)));
  context.fillStyle = gradient;
  context.fillRect(x, 3, 80, 12);
}

function buildFrame(picture) {
  const quiet = (attributes, text = "") => svg("text", { "font-size": 12, class: "rb-quiet", ...attributes }, text);
  const bold = (text) => svg("text", { "font-size": 14, "font-weight": 600 }, text);
  const stroke = (colour, more = "") => ({ style: `fill: none; stroke: var(--rb-${colour}); ${more}` });
  const frame = {
    title: bold("The encoding"),
    legend: svg("g", {}, quiet({ x: -7, y: 14, "text-anchor": "end" }, "−1"), quiet({ x: 87, y: 14 }, "1"),
      svg("rect", { y: 3, width: 80, height: 12, ...stroke("grid") })),
    subtitle: quiet({}),
    box: svg("rect", { x: LEFT, ...stroke("grid") }),
    halves: svg("line", { x1: LEFT, ...stroke("paper", "stroke-width: 2") }),
    rows: svg("g"),
    kernelTitle: bold("Similarity to a reference position"),
    kernelNote: quiet({}),
    levels: svg("g"),
    up: svg("g", { transform: `translate(${LEFT} 0)` }),
    across: svg("g"),
    name: quiet({ "text-anchor": "middle" }, "position m"),
    reference: svg("path", stroke("ink", "stroke-dasharray: 2 4")),
    band: svg("path", { "stroke-linejoin": "round", ...stroke("1", "stroke-width: 1.5; fill: var(--rb-1)") }),
    dots: svg("path", { "stroke-linecap": "round", ...stroke("1", "stroke-width: 5") }),
    line: svg("path", stroke("ink", "stroke-width: 1.5")),
    ring: svg("circle", { r: 6, ...stroke("ink", "stroke-width: 2") }),
    dot: svg("circle", { r: 6, ...stroke("paper", "stroke-width: 2.5; fill: var(--rb-1)") }),
    grip: svg("g", {}, svg("rect", {
      height: 22, rx: 11, ...stroke("ink", "stroke-width: 1.5; fill: var(--rb-paper)") }),
      svg("text", { "font-size": 12, "font-weight": 600, "text-anchor": "middle" })),
  };
  frame.title.setAttribute("y", 14);
  picture.append(...Object.values(frame));
  return frame;
}

// A vertical line at x through the image and the curve.
function acrossBoth(x, { top, mapHeight, curveTop, floor }) {
  return `M${x},${top - 5}V${top + mapHeight + 5}M${x},${curveTop - 5}V${floor}`;
}

function drawFrame(frame, width, plot, { data, values, x, y, layout }, levels) {
  const { per, kernel } = data;
  const { dim, length, reference, interleaved } = values;
  const { top, mapHeight, curveTop, floor } = layout;
  const right = LEFT + plot;
  put(frame.legend, { transform: `translate(${width - 104} 0)` });
  const order = interleaved ? "alternating sines and cosines" : "sines, then cosines";
  const blends = per === 1 ? "" : `Columns blend ${4 * per - (per % 2)} positions, so fast waves fade.`;
  const both = `Rows: ${order}. ${blends}`;
  setText(frame.subtitle, fitting(blends ? [both, blends] : [both], width));
  put(frame.subtitle, { y: top - 14 });
  put(frame.kernelTitle, { y: curveTop - 30 });
  put(frame.kernelNote, { y: curveTop - 12 });
  put(frame.box, { y: top, width: plot, height: mapHeight });
  put(frame.halves, { x2: right, y1: top + mapHeight / 2, y2: top + mapHeight / 2,
    visibility: interleaved ? "hidden" : "visible" });
  const marks = interleaved ? [[0, 0], [1, dim - 1]]
    : [[0, 0], [0.5, dim - 2], [0.5, 1], [1, dim - 1]];
  const named = interleaved ? [[0.5, "entry"]] : [[0.25, "sines"], [0.75, "cosines"]];
  const place = (share) => top + share * mapHeight;
  redrawn(frame.rows, () => [
    ...marks.map(([share, entry], k) => svg("text", {
      x: LEFT - 8, y: place(share) + (k % 2 ? -2 : 11), "font-size": 12, "text-anchor": "end", class: "rb-quiet",
    }, String(entry))),
    ...named.map(([share, name]) => svg("text", {
      transform: `translate(${LEFT - 35} ${place(share)}) rotate(-90)`,
      "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
    }, name)),
  ]);
  setText(frame.kernelNote, fitting([`Product of the two encodings, divided by d/2 = ${dim / 2}`,
    `Product of encodings, divided by ${dim / 2}`], width));
  redrawn(frame.levels, () => levels.map((level) => svg("line", {
    x1: LEFT, x2: right, y1: y(level), y2: y(level), style: `stroke: var(--rb-${level ? "grid" : "muted"})`,
  })));
  axis(frame.up, "left", y, levels, (level) => String(level).replace("-", "−"));
  const step = niceStep(length, plot / 90);
  const ticks = Array.from({ length: Math.ceil(length / step) }, (_, k) => k * step);
  const at = x(reference + 0.5);
  const wide = textWidth(String(reference), 12, 600) + 16;
  const middle = Math.min(width - wide / 2, at);
  const fits = (m) => x(m + 0.5) + textWidth(String(m), 12) / 2 <= width
    && Math.abs(x(m + 0.5) - middle) > (wide + textWidth(String(m), 12)) / 2 + 2;
  put(frame.across, { transform: `translate(0 ${floor})` });
  axis(frame.across, "bottom", (m) => x(m + 0.5), ticks.filter(fits));
  put(frame.name, { x: (LEFT + right) / 2, y: floor + 38 });
  put(frame.reference, { d: acrossBoth(at, layout) });
  const [pill, number] = frame.grip.children;
  put(pill, { x: middle - wide / 2, y: floor + 3, width: wide });
  put(number, { x: middle, y: floor + 18 });
  setText(number, String(reference));

  const edges = evenEdges(length, Math.min(length, Math.floor(plot)));
  const { low, high } = minMaxBand(kernel, edges);
  const places = low.map((_, b) => x((edges[b] + edges[b + 1]) / 2));
  put(frame.band, { d: bandPath(places, low.map(y), high.map(y)) });
  put(frame.dots, { d: length <= 64 ? places.map((at, m) => `M${at},${y(kernel[m])}h0`).join("") : "" });
}

function describe({ kernel }, { length, reference }) {
  if (length === 1) return "With a single position there is no distance to measure.";
  let lowest = 0;
  for (let m = 1; m < length; m += 1) if (kernel[m] < kernel[lowest]) lowest = m;
  const next = kernel[reference + 1] ?? kernel[reference - 1];
  const far = Math.abs(lowest - reference); // the curve is symmetric, so two positions may be this far away
  return `The similarity to position ${grouped(reference)} is ${tidy(next)} one position away`
    + `${far > 1 ? `. It is lowest ${grouped(far)} positions away, at ${tidy(kernel[lowest])}` : ""}.`;
}

export default explorer({
  title: "The encoding, and what it says about distance",
  note: "Point at the picture or use the arrow keys to read an entry. Click or press Enter to measure "
    + "distances from there.",
  dials,
  compute,
  units: { wavelengths: "tokens" },
  build,
  stats: ({ wavelengths, turned }, { dim }) => [
    ["Longest wavelength", tidy(wavelengths.at(-1)), "positions"],
    ["Pairs with a full turn", String(turned), `of ${dim / 2}`],
  ],
  describe,
});
