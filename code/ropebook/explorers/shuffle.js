// Readers shuffle the words of a sentence. The outputs of self-attention move with the words, unless self-attention can
// see their positions.

import { BASE, dials, LONGEST_WORD, MOST_WORDS, WIDTH } from "./shuffle.py";
import {
  attentionOutputs, attentionWeights, lastCall, permutation, sinusoidalEncoding, times, weightMatrix, wordVector,
} from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { css, diverging, mix, readableOn } from "./kit/colours.js";
import { html, moveTo, put, setText, svg } from "./kit/elements.js";
import { textWidth } from "./kit/drawing.js";
import { explorer, same } from "./kit/mount.js";
import { panels } from "./kit/panels.js";

function splitWords(text) {
  return text.split(/[ \t\r\n]+/).filter((word) => word);
}

function parseWords(text) {
  const words = splitWords(text);
  if (!words.length) throw new Error("a sentence needs at least one word");
  if (words.length > MOST_WORDS) throw new Error(`${words.length} words are more than ${MOST_WORDS}`);
  const long = words.find((word) => [...word].length > LONGEST_WORD);
  if (long) throw new Error(`“${long}” is longer than ${LONGEST_WORD} characters`);
  return words.join(" ");
}

function isOrder(order, count) {
  return order.length === count && [...order].sort((a, b) => a - b).every((value, i) => value === i);
}

function parseOrder(text, { words }) {
  const count = splitWords(words).length;
  const order = text.split(/[ ,]+/).filter((part) => part).map((part) => (/^\d+$/.test(part) ? Number(part) : NaN));
  if (!isOrder(order, count)) {
    throw new Error(count === 1 ? "one word has only one order, 0" : `it must contain each of 0 to ${count - 1} once`);
  }
  return order;
}

const projections = lastCall(() => ["q", "k", "v"].map((name) => weightMatrix(name, WIDTH)));

// A self-attention head over the words at the given positions.
function attend(words, position, causal) {
  const inputs = words.map((word, place) => {
    const signal = position ? sinusoidalEncoding(place, WIDTH, BASE) : new Float64Array(WIDTH);
    return wordVector(word, WIDTH).map((value, i) => value + signal[i]);
  });
  const [queries, keys, values] = projections().map((matrix) => inputs.map((x) => times(x, matrix)));
  const weights = attentionWeights(queries, keys, causal, 1 / Math.sqrt(WIDTH));
  return { weights, outputs: attentionOutputs(weights, values) };
}

function compute({ words, order, position, causal }) {
  const typed = splitWords(words);
  const now = order.map((from) => typed[from]);
  const before = attend(typed, position, causal);
  const after = attend(now, position, causal);
  const gap = (a, b) => a.reduce((most, value, i) => Math.max(most, Math.abs(value - b[i])), 0);
  const changes = order.map((from, place) => gap(after.outputs[place], before.outputs[from]));
  const moved = order.map((from) => order.map((n) => before.weights[from][n]));
  return {
    words: now,
    weights: after.weights,
    outputs: after.outputs.map((row) => [...row]),
    typedOutputs: before.outputs.map((row) => [...row]),
    changes, // the change in each word's output: the largest difference in any entry
    change: Math.max(...changes),
    weightChange: Math.max(...moved.map((row, place) => gap(after.weights[place], row))),
  };
}

const NUMBERS = 96; // width of the last column
const ROW = 80; // the maximum height of a row on a narrow stage
const NOTE = 38; // height of the two lines below the picture
const SHELF = [11, 43]; // above the picture on a wide stage: the space around the words, and the height of a line
const HEAD = 44; // space above the rows on a narrow stage

function build(stage, app) {
  const shown = panels(app, ["Weights", "Outputs"], { across: 600, first: 1 });
  const shelf = buildShelf(app);
  const picture = svg("svg", { role: "img", class: "rb-moves" });
  const legend = html("p", { class: "rb-note", style: "min-height: 2.9em" }); // room for two lines
  stage.append(html("div", { style: "position: relative" }, shelf.list, picture), legend);
  let pieces;
  return ({ data, values: { words, order, causal }, width, most, theme, jump }) => {
    const typed = splitWords(words);
    const count = typed.length;
    const panel = shown(width, most);
    const wide = panel === null;
    const row = wide ? 0 : Math.min(ROW, Math.floor((most - HEAD - 44) / count)); // the words form a column
    const shelfWidth = wide ? 0 : Math.ceil(Math.max(...typed.map((word) => textWidth(word, 14)))) + 30;
    const picked = shelf.show(typed, order, jump, wide ? null : [HEAD, row, shelfWidth]);
    picture.classList.toggle("rb-at-once", jump || pieces?.count !== count);
    if (pieces?.count !== count) {
      pieces = makePieces(count);
      picture.replaceChildren(pieces.group);
    }

    const longest = Math.ceil(Math.max(...typed.map((word) => textWidth(word, 14, 600) + 8)));
    const labels = wide ? Math.max(34, longest + 12) : shelfWidth + 8;
    const across = Math.floor(((wide ? 0.48 * width : width) - labels) / count);
    const shelfHeight = SHELF[0] + SHELF[1] * linesOf(typed, width);
    const low = (top) => Math.floor((most - NOTE - shelfHeight - top - 4) / count);
    const below = (top) => (wide ? Math.min(56, across, low(top)) : Math.min(ROW, across));
    const slanted = 38 + Math.round(longest * Math.sin((38 * Math.PI) / 180)); // space above the rows for slanted words
    const turn = wide && longest > below(52) && below(slanted) >= 24 ? -38 : 0; // closer together, they would overlap
    const top = !wide ? HEAD : turn ? slanted : 52;
    const cell = below(top);
    const pitch = wide ? cell : row;
    const left = wide ? Math.max(200, labels + count * cell + 32) : labels; // left edge of the strips
    const square = Math.min(26, Math.floor((width - left - NUMBERS) / WIDTH));
    const height = wide ? top + count * pitch + 4 : Math.max(top + count * pitch + 4, most - NOTE);
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}`, "aria-label": app.alt });
    put(pieces.weights, { display: panel === 1 ? "none" : "inline" });
    put(pieces.outputs, { display: panel === 0 ? "none" : "inline" });
    moveTo(pieces.weightsTitle, 0, 13);
    moveTo(pieces.outputsTitle, wide ? left : 0, 13);
    moveTo(pieces.changesTitle, left + WIDTH * square + 12, top - 8);

    const strongest = Math.max(...data.typedOutputs.flat().map(Math.abs));
    const small = cell < 36;
    order.forEach((from, place) => {
      const y = top + place * pitch;
      const mark = from === picked ? "font-weight: 650; fill: var(--rb-1)" : "";
      const label = (group) => setLabel(group, typed[from], from, { style: mark, "font-size": 14 });
      put(pieces.rows[from], { display: wide ? "inline" : "none" });
      label(pieces.rows[from]);
      moveTo(pieces.rows[from], labels - 10, y + cell / 2 + 5);
      label(pieces.columns[from]);
      if (!turn && longest > cell) setText(pieces.columns[from].firstChild.firstChild, "");
      put(pieces.columns[from].firstChild, { "text-anchor": turn ? "start" : "middle", transform: `rotate(${turn})` });
      moveTo(pieces.columns[from], labels + (place + 0.5) * cell, top - 9);
      order.forEach((key, column) => {
        const piece = pieces.cells[from][key];
        const weight = data.weights[place][column];
        const hidden = causal && column > place;
        const fill = mix(theme.paper, theme["1"], weight ** 0.75);
        const [box, text] = piece.children;
        put(box, { width: cell - 2, height: pitch - 2, fill: hidden ? "none" : css(fill),
          "stroke-dasharray": hidden ? "3 3" : "none" });
        put(text, { x: cell / 2 - 1, y: pitch / 2 + 3.5, "font-size": small ? 11 : 13,
          style: `fill: ${hidden ? "var(--rb-muted)" : readableOn(fill)}` });
        setText(text, hidden ? "–" : small ? weight.toFixed(2).replace(/^0|\.00$/, "") : weight.toFixed(2));
        moveTo(piece, labels + column * cell, y);
      });

      const strip = pieces.strips[from];
      const bar = Math.min(17, Math.floor((pitch - 8) / 2));
      moveTo(strip, left, y + (pitch - 2 * bar - 3) / 2);
      for (let i = 0; i < WIDTH; i += 1) {
        [data.outputs[place][i], data.typedOutputs[from][i]].forEach((value, row) => {
          put(strip.children[2 * i + row], { x: i * square, y: row * (bar + 2), width: square - 1, height: bar,
            fill: css(diverging(theme, value / strongest)) });
        });
      }
      const said = strip.lastChild;
      put(said, { x: WIDTH * square + 12, y: bar + 6,
        style: data.changes[place] > 1e-9 ? "font-weight: 650" : "" });
      setText(said, tidy(data.changes[place]));
    });
    const strips = `the ${WIDTH} numbers of a word’s output, now (above) and in the sentence as typed (below). `
      + `Orange is negative and blue is positive; both are strongest at ±${tidy(strongest)}.`;
    setText(legend, { 0: "Small numbers: each word’s place as typed.",
      1: `Above: now. Below: as typed. Orange is negative, blue positive, strongest at ±${tidy(strongest)}.` }[panel]
      ?? `Small numbers: each word’s place as typed. Strips: ${strips}`);
  };
}

function setLabel(group, word, place, attributes) {
  const [text] = group.children;
  setText(text.firstChild, word);
  setText(text.lastChild, String(place));
  put(text, attributes);
}

function makePieces(count) {
  const all = Array.from({ length: count }, (_, i) => i);
  const piece = (...children) => svg("g", { class: "rb-piece" }, ...children);
  const title = (text) => svg("text", { "font-weight": 600, "font-size": 14 }, text);
  const label = (anchor) => piece(svg("text", { "text-anchor": anchor }, svg("tspan"),
    svg("tspan", { "font-size": 11, dy: 3, class: "rb-quiet" })));
  const cell = () => svg("g", { class: "rb-piece rb-cell" }, svg("rect", { rx: 4, style: "stroke: var(--rb-grid)" }),
    svg("text", { "text-anchor": "middle" }));
  const strip = () => {
    const bars = Array.from({ length: 2 * WIDTH }, () => svg("rect", { rx: 2 }));
    return piece(...bars, svg("text", { "font-size": 13 }));
  };
  const rows = all.map(() => label("end"));
  const columns = all.map(() => label("middle"));
  const cells = all.map(() => all.map(cell));
  const strips = all.map(strip);
  const weightsTitle = title("Who attends to whom");
  const outputsTitle = title("The output of each word");
  const changesTitle = svg("text", { "font-size": 12, class: "rb-quiet" }, "change");
  const weights = svg("g", {}, weightsTitle, ...cells.flat(), ...rows, ...columns);
  const outputs = svg("g", {}, outputsTitle, changesTitle, ...strips);
  const group = svg("g", {}, weights, outputs);
  return { count, rows, columns, cells, strips, weightsTitle, outputsTitle, changesTitle, weights, outputs, group };
}

// The number of lines that the words fill when they are laid out within this width. Each word also needs room for its
// frame and a gap.
function linesOf(typed, width) {
  const widths = typed.map((word) => Math.ceil(textWidth(word, 14)) + 38);
  let [lines, used] = [1, 0];
  for (const one of widths) [lines, used] = used + one > width ? [lines + 1, one] : [lines, used + one];
  return lines;
}

// The words as buttons, which readers move by dragging, with the arrow keys, or with the toolbar buttons. They form
// lines above the picture or, on a narrow stage, label its rows.
function buildShelf({ change, listen, values, tools }) {
  const list = html("ol", { class: "rb-words", "aria-label": "The words, in the order that attention sees them" });
  const button = (text, name = text) => {
    return html("button", { type: "button", class: "rb-button", ...(name !== text && { "aria-label": name }) }, text);
  };
  const [left, right] = [button(""), button("")];
  const shuffle = button("Shuffle");
  const home = button("As typed");
  tools.append(html("div", { class: "rb-group" }, left, right, shuffle, home));
  let chips = [];
  let picked = 0;
  let held = null;
  let upright = false;
  let shuffles = 0;

  // Moves the word that was typed at index `from` to `place`.
  const take = (from, place) => {
    const { order } = values();
    const rest = order.filter((one) => one !== from);
    const next = [...rest.slice(0, Math.max(0, place)), from, ...rest.slice(Math.max(0, place))];
    picked = from;
    change({ order: next });
  };
  const step = (from, by) => take(from, values().order.indexOf(from) + by);
  listen(left, "click", () => step(picked, -1));
  listen(right, "click", () => step(picked, 1));
  listen(home, "click", () => change({ order: [...values().order].sort((a, b) => a - b) }));
  listen(shuffle, "click", () => {
    const { order } = values();
    let next = order;
    while (order.length > 1 && same(next, order)) next = permutation(order.length, (shuffles += 1));
    change({ order: next });
  });

  const chip = (from) => {
    const node = html("button", { type: "button", class: "rb-word" }, html("span"),
      html("span", { class: "rb-hidden" }, ", typed at place "), html("sub", {}, String(from)));
    listen(node, "click", () => { picked = from; change({}); });
    listen(node, "keydown", (event) => {
      const { order } = values();
      const place = order.indexOf(from);
      const goal = {
        ArrowLeft: place - 1, ArrowUp: place - 1, ArrowRight: place + 1, ArrowDown: place + 1, Home: 0,
        End: order.length - 1,
      }[event.key];
      if (goal === undefined) return;
      event.preventDefault();
      take(from, goal);
    });
    listen(node, "pointerdown", (event) => {
      if (event.button !== 0) return;
      held = { from, pointer: event.pointerId };
      node.setPointerCapture(event.pointerId);
    });
    listen(node, "pointermove", (event) => {
      if (held?.pointer !== event.pointerId) return;
      node.classList.add("rb-held");
      const place = placeUnder(event, from);
      if (place !== values().order.indexOf(from)) take(from, place);
    });
    for (const end of ["pointerup", "pointercancel"]) {
      listen(node, end, () => {
        held = null;
        node.classList.remove("rb-held");
      });
    }
    return html("li", {}, node);
  };

  // The number of other words that precede the pointer: those in a line above, and those further left in the same line.
  const placeUnder = (event, from) => {
    const box = list.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    return values().order.filter((other) => other !== from).filter((other) => {
      const { offsetLeft, offsetTop, offsetWidth, offsetHeight } = chips[other].firstChild;
      if (upright) return offsetTop + offsetHeight / 2 < y; // the list is a positioned element in this case
      const [dx, dy] = [offsetLeft - list.offsetLeft, offsetTop - list.offsetTop];
      return dy + offsetHeight < y || (dy <= y && dx + offsetWidth / 2 < x);
    }).length;
  };

  const show = (typed, order, jump, column) => {
    upright = column !== null;
    list.classList.toggle("rb-upright", upright);
    if (column) put(list, { style: `top: ${column[0]}px; width: ${column[2]}px; --rb-row: ${column[1]}px` });
    else put(list, { style: "" });
    [[left, ["left", "←"], ["up", "↑"]], [right, ["right", "→"], ["down", "↓"]]].forEach(([node, ...names]) => {
      const [name, sign] = names[Number(upright)];
      put(node, { "aria-label": `Move the picked word ${name}` });
      setText(node, sign);
    });
    if (chips.length !== typed.length) {
      picked = Math.min(picked, typed.length - 1);
      chips = typed.map((_, from) => chip(from));
      list.replaceChildren(...order.map((from) => chips[from]));
    }
    arrange(list, order.map((from) => chips[from]), chips[held?.from ?? picked], jump);
    order.forEach((from) => {
      const node = chips[from].firstChild;
      setText(node.firstChild, typed[from]);
      put(node, { "aria-pressed": String(from === picked) });
    });
    const place = order.indexOf(picked);
    put(left, { "aria-disabled": place === 0 });
    put(right, { "aria-disabled": place === order.length - 1 });
    put(shuffle, { "aria-disabled": order.length === 1 });
    put(home, { "aria-disabled": order.every((from, i) => from === i) });
    return picked;
  };
  return { list, show };
}

// Puts the items in order without ever removing `kept` from the list, because it would lose focus and the pointer.
// The items glide to their new positions unless the reader prefers reduced motion.
function arrange(list, items, kept, jump) {
  if (items.every((item, i) => item === list.children[i])) return;
  const glide = !jump && !window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const before = glide && items.map((item) => [item.offsetLeft, item.offsetTop]);
  const at = items.indexOf(kept);
  kept.before(...items.slice(0, at));
  kept.after(...items.slice(at + 1));
  if (glide) requestAnimationFrame(() => { // by then the browser has laid out the list; measuring now would force that
    const by = items.map((item, i) => [before[i][0] - item.offsetLeft, before[i][1] - item.offsetTop]);
    items.forEach((item, i) => {
      const [x, y] = by[i];
      if (x || y) item.animate([{ transform: `translate(${x}px, ${y}px)` }, { transform: "none" }], 200);
    });
  });
}

function describe({ change: most, changes, weightChange, words }, { order, position, causal }) {
  if (order.length === 1) return "A single word attends only to itself. Type more words, and move them.";
  if (order.every((from, i) => from === i)) {
    return "The words are in the order you typed. Move one, and watch its row, its column and its strip.";
  }
  const now = `Now: “${words.join(" ")}”. `;
  if (most < 1e-9) {
    const rest = weightChange < 1e-9 ? "and nothing else changed" : "although attention weights changed";
    return `${now}Every output moved with its word, ${rest}`
      + `${most ? `: no number in any output differs by more than ${tidy(most)}, which is rounding` : ""}.`;
  }
  const causes = [position && "each word carries the signal of its new place", causal
    && "some words now see other words before them"].filter(Boolean).join(", and ");
  return `${now}The outputs did more than move: “${words[changes.indexOf(most)]}” changed most, by ${tidy(most)}. `
    + `${causes.charAt(0).toUpperCase() + causes.slice(1)}.`;
}

export default explorer({
  title: "Shuffle the words",
  note: "Drag a word, or pick one and move it with the arrow keys or the buttons.",
  dials,
  typed: {
    words: { parse: parseWords, format: (words) => words },
    order: { parse: parseOrder, format: (order) => order.join(",") },
  },
  settle(values) {
    const count = splitWords(values.words).length;
    return isOrder(values.order, count) ? values : { ...values, order: Array.from({ length: count }, (_, i) => i) };
  },
  compute,
  build,
  stats: (data) => [
    ["Largest change of an output", tidy(data.change)],
    ["Largest change of an attention weight", tidy(data.weightChange)],
  ],
  describe,
});
