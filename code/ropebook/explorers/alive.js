// The small model reads a text in the browser. The figure shows how many bits each byte costs and which bytes a head
// attends to.

import { dials, HEAD_DIM, METHODS, LONGEST_TEXT, READ, TRAINED, WITH_FACTOR } from "./alive.py";
import { invFreq } from "./kit/rope.js";
import { keptByIndex, keptByTurns } from "./kit/yarn.js";
import { selfExtendGroup, yarnFactor } from "./kit/methods.js";
import { count, exact, grouped, percent } from "./kit/text.js";
import { html, put, redrawn, setText, svg } from "./kit/elements.js";
import { axis, inColour, lined, NARROW, niceStep, scale, textWidth, titled } from "./kit/drawing.js";
import { across, hand, ofDial } from "./kit/hand.js";
import { levels, pathOf } from "./kit/intervals.js";
import { styled } from "./kit/legend.js";
import { glider } from "./kit/gliding.js";
import { panels } from "./kit/panels.js";
import { evenly, play } from "./kit/play.js";
import { MODEL } from "./kit/model.js";
import { loadWeights, startWorker } from "./kit/worker.js";
import { explorer } from "./kit/mount.js";

const TRAINED_BASE = 10000;
const SMOOTH = 16; // the curve is a moving average over this many bytes
const [ALPHA, BETA] = [1, 32];

// ---- What the model reads, and how ----

const encode = (text) => Array.from(new TextEncoder().encode(text));
const isOwn = ({ own }) => encode(own).length > 1; // a shorter text leaves no byte to predict

function bytesOf(values) {
  return encode(isOwn(values) ? values.own : READ[values.text]).slice(0, values.length + 1);
}

const mixed = (theta, s, kept) => theta.map((one, i) => ((1 - kept[i]) * one) / s + kept[i] * one);

// Divides the frequencies by powers of s, from s⁰ for the first to s¹ for the last.
const divided = (theta, s) => theta.map((one, i) => one * s ** (-i / (theta.length - 1)));

// The frequencies for each method, in radians per position. (scaleOf returns the factors on the scores.)
const FREQUENCIES = {
  linear: (theta, { factor }) => theta.map((one) => one / factor),
  ntk: (theta, { factor }) => divided(theta, factor),
  dynamic_ntk: (theta, _, places) => divided(theta, Math.max(1, places / TRAINED)),
  ntk_by_parts: (theta, { factor }) => mixed(theta, factor, keptByTurns(theta, TRAINED, ALPHA, BETA)),
  yarn: (theta, { factor, base }) => mixed(theta, factor, keptByIndex(theta, TRAINED, base, ALPHA, BETA)),
};

// YaRN multiplies both queries and keys, so its factor appears squared in a score. Log-n multiplies only the queries.
function scaleOf({ method, factor }, places) {
  return Array.from({ length: places }, (_, m) => {
    if (method === "yarn") return yarnFactor(factor) ** 2;
    return method === "log_n" ? Math.max(1, Math.log(m + 1) / Math.log(TRAINED)) : 1;
  });
}

// The distance beyond which queries and keys get new positions, and the lists of these new positions. The lists are
// empty if the method keeps all positions.
function farOf({ method, factor }, places) {
  const all = Array.from({ length: places }, (_, m) => m);
  if (method === "rerope") {
    return { window: TRAINED / 2, farQuery: all.map(() => TRAINED / 2), farKey: all.map(() => 0) };
  }
  if (method !== "self_extend") return { window: 0, farQuery: [], farKey: [] };
  const window = TRAINED / 4;
  const group = selfExtendGroup(TRAINED, window, Math.ceil(factor * TRAINED));
  return {
    window, farQuery: all.map((m) => Math.floor(m / group) + window - Math.floor(window / group)),
    farKey: all.map((m) => Math.floor(m / group)),
  };
}

const textKey = (values) => JSON.stringify(bytesOf(values));
const hasFactor = ({ method }) => WITH_FACTOR.includes(method);

function readKey(values) {
  return JSON.stringify([textKey(values), values.method, hasFactor(values) ? values.factor : 0, values.base]);
}

const mean = (values) => values.reduce((sum, one) => sum + one, 0) / values.length;
const means = (bits) => [bits.slice(0, TRAINED), bits.slice(TRAINED)].filter(({ length }) => length).map(mean);

// `result` is the model's latest result. `result.at` contains the dial values for which it was computed.
function compute(dials) {
  const { result } = dials;
  const bytes = bytesOf(dials);
  const places = bytes.length - 1;
  const theta = Array.from(invFreq(HEAD_DIM, dials.base));
  const { at, bits, plain } = result;
  const shown = bytesOf(at);
  const [chosen, looked] = [dials.byte, at.byte].map((one) => Math.min(one, shown.length - 1));
  return {
    bytes, // the bytes to read
    theta: FREQUENCIES[dials.method]?.(theta, dials, places) ?? theta,
    scale: scaleOf(dials, places), // the factor for each query's scores
    ...farOf(dials, places),
    fresh: readKey(dials) === readKey(at), // whether the entries below were computed for the current dials
    shown, // the bytes that the model has read
    bits,
    plain, // the bits that each byte costs the model as it was trained
    chosen, // the chosen byte, counted from 0; it is the last one that was read if the dial is beyond it
    looked, // the byte for which the next entry was computed
    row: result.row, // what a head attends to when it predicts that byte
    means: [means(bits), means(plain)], // the mean bits within L and, if the text is long enough, beyond L
  };
}

// ---- The model beside the page ----

function company({ model, page }) {
  let result = model.get("start");
  let worker;
  let loading;
  let wanted = ""; // the key of the latest request
  let known = ""; // the key of the text whose attention weights the worker can look up
  let id = 0;
  const listeners = [];
  const tell = (what) => listeners.forEach((one) => one(what));
  const lookOf = ({ layer, head, byte }, places) => [layer - 1, head - 1, Math.min(byte, places) - 1];
  const rowKey = (values) => JSON.stringify([readKey(values), values.layer, values.head, values.byte]);
  let asked = { values: null, data: null };

  function heard(message) {
    const { values, data } = asked;
    const { problem, share, aside, found, row } = message;
    if (problem) return failed(message);
    if (aside) {
      if (aside === textKey(result.at)) result = { ...result, plain: [...found.bits] };
    } else if (message.id !== id) return null; // a reply to an earlier dial setting
    else if (share !== undefined) return tell({ share });
    else if (found) {
      const [bits, top, shares] = [found.bits, found.top, found.share].map((some) => [...some]);
      const text = textKey(values);
      const plain = isPlain(values) ? bits : text === textKey(result.at) ? result.plain : [];
      known = readKey(values);
      result = { at: values, bits, top, share: shares, row: [...row], plain };
      if (!plain.length) worker.postMessage({ id, run: plainRun(data), aside: text });
    } else result = { ...result, at: values, row: [...row] };
    return tell({});
  }

  function failed({ message, problem = message }) {
    wanted = "";
    return tell({ problem });
  }

  const run = ({ bytes, theta, scale, window, farQuery, farKey }) => ({
    bytes, theta, scale, far: window ? { window, query: farQuery, key: farKey } : null,
  });
  const isPlain = ({ method, base }) => method === "none" && base === TRAINED_BASE;
  const plainRun = ({ bytes }) => ({
    bytes, theta: Array.from(invFreq(HEAD_DIM, TRAINED_BASE)), scale: bytes.map(() => 1), far: null,
  });

  async function ask(turned, data) {
    const values = { ...turned };
    delete values.result;
    const now = rowKey(values);
    if (now === wanted || (now === rowKey(result.at) && !wanted)) return;
    wanted = now;
    asked = { values, data };
    id += 1;
    tell(worker ? { share: 0 } : { fetching: true });
    try {
      loading ??= loadWeights({ model, page }).then((stored) => (worker = startWorker(MODEL, stored, heard)));
      await loading;
    } catch (error) {
      loading = undefined;
      failed(error);
      return;
    }
    if (wanted !== now) return;
    const look = lookOf(values, data.bytes.length - 1);
    if (known === readKey(values)) worker.postMessage({ id, look });
    else worker.postMessage({ id, run: run(data), look });
  }

  return {
    values: () => ({ result }),
    ask,
    listen: (one) => listeners.push(one),
    stop: () => worker?.terminate(),
  };
}

// ---- On the page ----

const LEFT = 40;
const LEVELS = 8; // the number of shades for a byte's background and for its colour
const [CHEAP, DEAR] = [2, 6]; // the numbers of bits at which a byte begins to redden, and at which it is red
const PACE = 80; // bytes per second
const [CELL, LINE] = [6.8, 14]; // the size of a character's cell, and of a row
const BETWEEN = 24; // between two columns of text
const TEXT_HEIGHT = 289; // if the picture also has the curve, and is high enough
const CURVE_HEIGHT = 125;
const STREAM = 1500; // how long the picture of a new result takes to grow, in ms

function build(stage, app) {
  const panelAt = panels(app, ["Bits", "Text"], { least: 380 });
  const says = html("p", { class: "rb-note", "aria-live": "polite", style: "min-height: 1.5em" });
  const playing = play(app, {
    advance: evenly("byte", () => plot.last, () => PACE),
    again: { byte: 1 },
    rewinds: true,
    ended: () => app.redraw(),
    step: 16 / PACE,
  });
  app.tools.append(says);
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pads = { curve: html("div"), text: html("div") };
  const glide = glider(app, { takes: STREAM, nearby: Infinity });
  let latest = { key: "", count: 0 }; // what has been read, and how many results there have been
  stage.append(html("div", { style: "position: relative" }, picture, ...Object.values(pads)));
  const byteDial = dials.find(({ trait }) => trait === "byte");
  let plot;
  const limits = () => [1, plot.last];
  const sayByte = (values) => `Byte ${grouped(values.byte)}`;
  const showCurve = across(app, pads.curve, byteDial, {
    label: "Chosen byte, by its position", ends: () => [plot.from, plot.to], limits, text: sayByte,
    valueAt: (share) => Math.min(plot.last, Math.max(1, Math.round(share * plot.last))),
  });
  const showText = hand(app, pads.text, {
    label: "Chosen byte, in the text", area: true,
    at(x, y) {
      return { byte: Math.min(plot.last, Math.max(1, plot.text.byteAt(x, y))) };
    },
    ...ofDial(app, byteDial, { limits, text: sayByte }),
  });
  app.beside.listen(({ share, problem, fetching }) => {
    setText(says, problem ? `The model can’t read: ${problem}.` : fetching ? "Fetching the model …"
      : share === undefined ? "" : `Reading … ${percent(share)}`);
    if (!problem && !fetching && share === undefined) app.redraw();
  });

  return ({ data, values, width, most, jump }) => {
    const panel = panelAt(width, most);
    const last = data.shown.length - 1;
    const textHead = panel === 1 ? 0 : Math.max(CURVE_HEIGHT + 102, most - 44 - TEXT_HEIGHT);
    const textTop = textHead + 44;
    plot = {
      from: LEFT, to: width - 12, top: 62,
      floor: panel === 0 ? most - 40 : textHead - 46,
      last, text: textIn([0, textTop, width, most - textTop], data),
    };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    const key = readKey(values.result.at);
    if (key !== latest.key) latest = { key, count: latest.count + 1 };
    glide([latest.count], jump, ([count]) => {
      const read = Math.round(last * Math.max(0, 1 - latest.count + count)); // the number of bytes that are drawn
      redrawn(picture, () => [
        ...(panel === 1 ? [] : curves(plot, data, values, width, read)),
        ...(panel === 0 ? [] : letters(plot, data, values, textHead, read)),
      ]);
    });
    pads.curve.hidden = panel === 1;
    pads.text.hidden = panel === 0;
    showCurve([plot.from, plot.top, plot.to - plot.from, Math.max(0, plot.floor - plot.top)]);
    showText([0, textTop, width, most - textTop]);
    if (!playing()) app.beside.ask(values, data);
  };
}

function nameOf(at) {
  const turned = at.base === TRAINED_BASE ? "" : `, base ${at.base}`;
  if (at.method === "none" && turned) return `base ${at.base}`;
  return `${METHODS[at.method]}${hasFactor(at) ? `, s = ${Number(at.factor.toPrecision(4))}` : ""}${turned}`;
}

// The colour, width and dashes of the two curves. The first curve is the latest result. The second one is that of the
// model as it was trained, and is drawn only if it has been computed and differs from the first.
/** @type {[string, number, string][]} */
const LOOKS = [["1", 2, ""], ["muted", 1.75, "5 4"]];

function itemsOf({ bits, plain }, { result }) {
  const items = [nameOf(result.at), METHODS.none]
    .map((name, k) => ({ name, look: LOOKS[k], more: k ? { class: "rb-tells" } : {} }));
  return items.slice(0, plain.some((one, k) => one !== bits[k]) ? 2 : 1);
}

// A moving average over the most recent SMOOTH bytes.
function smoothed(bits) {
  let sum = 0;
  return bits.map((one, k) => {
    sum += one - (k < SMOOTH ? 0 : bits[k - SMOOTH]);
    return sum / Math.min(k + 1, SMOOTH);
  });
}

function curves(plot, data, { result }, width, read) {
  const { from, to, top, floor, last } = plot;
  const [own, plain] = [data.bits, data.plain].map(smoothed);
  const high = Math.max(4, Math.ceil(Math.max(...own, ...plain)));
  const x = scale([0, last], [from, to]);
  const y = scale([0, high], [floor, top]);
  const points = (some) => some.map((one, k) => [x(k + 1), y(one)]);
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  const step = niceStep(last, width < NARROW ? 4 : 8);
  axis(bottom, "bottom", x, Array.from({ length: Math.floor(last / step) + 1 }, (_, k) => k * step));
  const items = itemsOf(data, { result }).map((item, k) => ({ ...item, points: points([own, plain][k]) }));
  const limit = x(TRAINED);
  return [
    ...titled(0, 0, "Cost of each byte in bits", `Mean of ${SMOOTH} bytes. Lower is better`),
    bottom, ...levels(plot, y, Array.from({ length: Math.floor(high / 2) + 1 }, (_, k) => 2 * k)),
    ...(last < TRAINED ? [] : [svg("path", { d: `M${limit},${top}V${floor}`, ...lined("2", 1.5) }),
      svg("text", { x: limit - 4, y: top + 10, "font-size": 12, "text-anchor": "end" }, `L = ${TRAINED}`)]),
    ...byteNames(plot, x, read < last ? read : data.chosen),
    ...items.flatMap(({ points: whole, look, more }, k) => {
      const all = k ? whole : whole.slice(0, read); // the model as trained has been read before
      return [
        svg("path", { d: pathOf(all.slice(data.chosen - 1)), ...styled(look), class: `rb-ahead ${more.class ?? ""}` }),
        svg("path", { d: pathOf(all.slice(0, data.chosen)), ...styled(look), ...more }),
      ];
    }).reverse(),
    svg("path", { d: `M${x(read < last ? read : data.chosen)},${top}V${floor}`,
      ...lined("ink", 1.5, "stroke-dasharray: 1 5") }),
    ...items.map(({ name, look, more }, k) => svg("text", { // above the plot, which the curves fill
      x: to, y: top - 11 - 18 * k, "font-size": 12, "font-weight": 600, "text-anchor": "end",
      ...inColour(look[0]), ...more,
    }, name)),
  ];
}

// Names the axis of bytes, and the byte at the dotted line. If there is no room for both, only the byte is named.
function byteNames({ from, to, floor }, x, byte) {
  const name = (at, anchor, look, said) => {
    return svg("text", { x: at, y: floor + 34, "font-size": 12, "text-anchor": anchor, ...look }, said);
  };
  const said = `byte ${grouped(byte)}`;
  const half = textWidth(said, 12) / 2;
  const middle = Math.min(to - half, Math.max(from + half, x(byte)));
  const both = middle + half + 12 < to - textWidth("byte", 12);
  return [name(middle, "middle", {}, said), ...(both ? [name(to, "end", { class: "rb-quiet" }, "byte")] : [])];
}

// Shows a byte as a single character.
function letterOf(byte) {
  if (byte === 10) return "↵";
  return byte > 31 && byte < 127 ? String.fromCharCode(byte) : "·";
}

// Breaks a text into rows, at its line breaks, and between two words if a row would become too long. Returns the row
// and the column of each byte. Spaces at the end of a row hang over.
function rowsOf(bytes, columns) {
  const blank = (byte) => byte === 32 || byte === 10;
  let [row, column] = [0, 0];
  return bytes.map((byte, k) => {
    if (!blank(byte)) {
      const end = k === 0 || blank(bytes[k - 1]) ? bytes.findIndex((one, n) => n > k && blank(one)) : k + 1;
      const length = (end < 0 ? bytes.length : end) - k;
      if (column === columns || (column > 0 && length <= columns && column + length > columns)) {
        [row, column] = [row + 1, 0];
      }
    }
    const place = [row, column];
    [row, column] = byte === 10 ? [row + 1, 0] : [row, Math.min(columns, column + 1)];
    return place;
  });
}

// Lays out the bytes in an area, in one or two columns of text. If the bytes don't all fit, only the rows around the
// chosen byte are shown. place(k) returns the upper left corner of a byte's cell, or null if it isn't shown.
function textIn([left, top, width, height], { shown, chosen }) {
  const flows = width < NARROW ? 1 : 2;
  const flow = (width - BETWEEN * (flows - 1)) / flows;
  const columns = Math.floor(flow / CELL) - 1; // a space may hang over
  const rows = rowsOf(shown, columns);
  const high = Math.max(1, Math.floor(height / LINE));
  const room = flows * high;
  const over = Math.max(0, rows.at(-1)[0] + 1 - room);
  const start = Math.min(over, Math.max(0, rows[chosen][0] - Math.floor(0.7 * room)));
  return {
    place(k) {
      const [row, column] = [rows[k][0] - start, rows[k][1]];
      if (row < 0 || row >= room) return null;
      return [left + Math.floor(row / high) * (flow + BETWEEN) + column * CELL, top + (row % high) * LINE];
    },
    byteAt(x, y) {
      const which = Math.min(flows - 1, Math.max(0, Math.floor((x - left) / (flow + BETWEEN))));
      const row = start + which * high + Math.min(high - 1, Math.max(0, Math.floor((y - top) / LINE)));
      const column = Math.floor((x - left - which * (flow + BETWEEN)) / CELL);
      return rows.findLastIndex(([r, c]) => r < row || (r === row && c <= column));
    },
  };
}

// In per cent. A pale red could hardly be told from the ink.
const reddened = (red) => Math.round(100 * Math.sqrt(red / LEVELS));

const level = (share) => Math.round(LEVELS * Math.min(1, Math.max(0, share)));

// The letters, a text element for each row. Costly letters are red, and letters after the chosen byte are hidden while
// the figure plays.
function written({ shown, chosen }, { place }, reds) {
  const rows = {};
  shown.forEach((byte, k) => {
    const at = place(k);
    if (!at || byte === 32 || byte === 10) return;
    const [x, y] = at;
    const [red, ahead] = [reds[k], k > chosen];
    const part = ((rows[y] ??= {})[`${red} ${ahead}`] ??= { red, ahead, xs: [], text: "" });
    part.xs.push((x + CELL / 2).toFixed(1));
    part.text += letterOf(byte);
  });
  return Object.entries(rows).map(([y, parts]) => svg("text", {
    y: (Number(y) + 0.75 * LINE).toFixed(1), "font-size": 11, "text-anchor": "middle",
    style: "font-family: ui-monospace, monospace",
  }, ...Object.values(parts).map(({ red, ahead, xs, text }) => svg("tspan", {
    x: xs.join(" "), ...(ahead ? { class: "rb-ahead" } : {}),
    ...(red ? { style: `fill: color-mix(in srgb, var(--rb-5) ${reddened(red)}%, var(--rb-ink))` } : {}),
  }, text))));
}

function letters({ text, last }, data, { result: { at } }, head, read) {
  const most = Math.max(...data.row);
  const grounds = Array.from({ length: LEVELS }, () => "");
  if (read === last) data.row.forEach((weight, k) => { // the frame runs ahead of them while the picture grows
    const [shade, place] = [level(Math.sqrt(weight / most)), text.place(k)];
    if (shade && place) grounds[shade - 1] += `M${place[0].toFixed(1)},${place[1]}h${CELL}v${LINE}h-${CELL}z`;
  });
  const reds = [0, ...smoothed(data.bits)].map((bits, k) => (k > read ? 0 : level((bits - CHEAP) / (DEAR - CHEAP))));
  const [here, end] = [text.place(read < last ? read : data.chosen), last > TRAINED && text.place(TRAINED)];
  return [
    ...titled(0, head, "The text, red where it is costly",
      `Blue: what layer ${at.layer}, head ${at.head} attends to from the frame`),
    svg("g", { class: "rb-ahead" }, ...grounds.map((d, shade) => {
      return svg("path", { d, style: `fill: var(--rb-1); opacity: ${0.08 * (shade + 1)}` });
    })),
    ...written(data, text, reds),
    ...(here ? [svg("rect", { x: here[0], y: here[1], width: CELL, height: LINE, ...lined("ink", 1.75) })] : []),
    ...(end ? [svg("path", { d: `M${end[0]},${end[1]}v${LINE}`, ...lined("2", 3) })] : []),
  ];
}

const quoted = (byte) => (byte === 10 ? "a line break" : byte === 32 ? "a space" : `“${letterOf(byte)}”`);

function stats({ means: [[within, beyond], [plainWithin, plain]], chosen, bits, shown }, { result }) {
  const guessed = `likeliest: ${quoted(result.top[chosen - 1])}, ${percent(result.share[chosen - 1])}`;
  const against = (bar) => (nameOf(result.at) === METHODS.none ? "bits per byte"
    : `bits; as trained ${bar === undefined ? "…" : exact(bar, 2)}`);
  return [
    ["Within L", exact(within, 2), against(plainWithin)],
    ["Beyond L", beyond === undefined ? "–" : exact(beyond, 2),
      beyond === undefined ? "the text is too short" : against(plain)],
    [`Byte ${grouped(chosen)}, ${quoted(shown[chosen])}`, exact(bits[chosen - 1], 2), `bits; ${guessed}`],
  ];
}

function describe({ means: [[, beyond]], row, shown, looked, fresh }, { result }) {
  if (!fresh) return "The model has not read the text at these settings yet.";
  const most = row.indexOf(Math.max(...row));
  const attends = `Layer ${result.at.layer}, head ${result.at.head} attends most to ${quoted(shown[most])}, `
    + `${count(looked - most, "byte")} back: ${percent(row[most])}.`;
  return `${beyond === undefined ? "The text doesn’t go beyond the trained length. " : ""}${attends}`;
}

function parseOwn(text) {
  const size = new TextEncoder().encode(text).length;
  const [has, most] = [size, LONGEST_TEXT + 1].map(grouped);
  if (size > LONGEST_TEXT + 1) throw new Error(`this has ${has} bytes, more than ${most}`);
  return text;
}

export default explorer({
  title: "Watch the model read",
  note: "The model runs in this page. Turn a dial or type your own text; your first change loads the model (0.7 MB).",
  dials,
  typed: { own: { parse: parseOwn, format: (text) => text } },
  compute,
  units: { theta: "radians per byte", window: "bytes", bits: "bits", plain: "bits", means: "bits per byte" },
  build,
  idle: (_, values) => ({
    ...(hasFactor(values) ? {} : { factor: `No effect here: ${METHODS[values.method]} has no factor.` }),
    ...(!isOwn(values) ? {} : { text: "No effect here: the model reads your own text." }),
  }),
  stats,
  describe,
  beside: company,
});
