// What every interactive figure shares: dials, address, theme, layout, drawing. The last part of the script, the figure
// itself, ends in `export default explorer({ … })`; see explorer() at the end for what it has to say.

// ---- Dials as text and back (no page needed) ----

// A dial is { trait, kind, label, note } and, by kind:
//   "number": min, max; whole, and then step; log (equal ratios on the slider); below, above, between: reasons why not
//   "switch": nothing more
//   "choice": options, a list of texts; names, what the page calls them, if it calls them otherwise
//   "text":   parse(text, values) → value, or an Error that says why not; format(value) → text
function parseDial(dial, text, values) {
  if (dial.kind === "text") return dial.parse(text, values);
  if (dial.kind === "switch") {
    if (text !== "on" && text !== "off") throw new Error(`“${text}” is neither on nor off`);
    return text === "on";
  }
  if (dial.kind === "choice") {
    if (!dial.options.includes(text)) throw new Error(`“${text}” is none of ${dial.options.join(", ")}`);
    return text;
  }
  const value = /^\s*[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?\s*$/i.test(text) ? Number(text) : NaN;
  if (Number.isNaN(value)) throw new Error(`“${text}” is not a number`);
  if (dial.whole && !Number.isInteger(value)) throw new Error(`${text.trim()} is not a whole number`);
  if (value < dial.min) throw new Error(`${text.trim()} is less than ${dial.min}${because(dial.below)}`);
  if (value > dial.max) throw new Error(`${text.trim()} is more than ${dial.max}${because(dial.above)}`);
  if (snap(dial, value) !== value) {
    const some = [0, 1, 2].map((k) => dial.min + k * dial.step).join(", ");
    throw new Error(`${text.trim()} is not one of ${some}, …${because(dial.between)}`);
  }
  return value;
}

function because(reason) {
  return reason ? ` (${reason})` : "";
}

function formatDial(dial, value) {
  if (dial.kind === "choice") return value;
  if (dial.kind === "text") return dial.format(value);
  if (dial.kind === "switch") return value ? "on" : "off";
  return String(value);
}

function limitsOf(dial) {
  const range = dial.kind === "number" ? `${dial.whole ? "whole numbers, " : ""}${dial.min} to ${dial.max}. ` : "";
  return range.charAt(0).toUpperCase() + range.slice(1) + (dial.note ?? "");
}

// The nearest value that the dial can take.
function snap(dial, value) {
  const inside = Math.min(dial.max, Math.max(dial.min, value));
  const step = dial.step ?? 1;
  return dial.whole ? dial.min + Math.round((inside - dial.min) / step) * step : inside;
}

// Sliders run from 0 to 1000, evenly or by equal ratios (of the value plus one, where the dial begins at 0).
function toSlider(dial, value) {
  const { min, max } = dial;
  const more = min === 0 ? 1 : 0;
  if (dial.log) return (1000 * Math.log((value + more) / (min + more))) / Math.log((max + more) / (min + more));
  return (1000 * (value - min)) / (max - min);
}

function fromSlider(dial, at) {
  const { min, max } = dial;
  const more = min === 0 ? 1 : 0;
  const value = dial.log ? (min + more) * ((max + more) / (min + more)) ** (at / 1000) - more
    : min + ((max - min) * at) / 1000;
  return snap(dial, dial.whole ? value : Number(value.toPrecision(3)));
}

// One step of the keyboard: an arrow is one step, or a hundredth of the slider; a page is a factor 2, or a tenth.
function nudge(dial, value, key) {
  const sign = ["ArrowRight", "ArrowUp", "PageUp"].includes(key) ? 1 : -1;
  const page = key.startsWith("Page");
  if (page && dial.log) return snap(dial, value ? value * 2 ** sign : sign);
  if (!page && dial.whole) return snap(dial, value + sign * (dial.step ?? 1));
  return fromSlider(dial, Math.min(1000, Math.max(0, toSlider(dial, value) + sign * (page ? 100 : 10))));
}

// ---- The address: #key.trait=text&key.trait=text, shared by all figures of a page (no page needed) ----

function readAddress(hash, key) {
  return hash.slice(1).split("&").filter((entry) => entry.startsWith(`${key}.`) && entry.includes("=")).map((entry) => {
    const cut = entry.indexOf("=");
    const text = entry.slice(cut + 1).replaceAll("+", " ");
    try {
      return [entry.slice(key.length + 1, cut), decodeURIComponent(text)];
    } catch { // a stray % sign
      return [entry.slice(key.length + 1, cut), text];
    }
  });
}

// The new fragment: this figure's entries replaced, the other figures' kept, "" if nothing is left.
function writeAddress(hash, key, entries) {
  const others = hash.slice(1).split("&").filter((entry) => entry.includes("=") && !entry.startsWith(`${key}.`));
  const own = entries.map(([trait, text]) => {
    return `${key}.${trait}=${encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%2C", ",")}`;
  });
  const all = [...others, ...own];
  return all.length ? `#${all.join("&")}` : "";
}

// The dials as an address's entries have them, what it leaves out as it was; and what it has wrong. They are not
// settled yet: dials that depend on one another must all be read before one of them may give way.
function readDials(dials, initial, entries) {
  const asked = new Map(entries);
  const refusals = [...asked.keys()].filter((trait) => dials.every((dial) => dial.trait !== trait))
    .map((trait) => `This figure has no dial “${trait}”.`);
  const values = { ...initial };
  for (const dial of dials.filter(({ trait }) => asked.has(trait))) {
    try {
      values[dial.trait] = parseDial(dial, asked.get(dial.trait), values);
    } catch (refusal) {
      refusals.push(`${dial.label}, as the address has it: ${refusal.message}.`);
    }
  }
  return { values, refusals };
}

// ---- Numbers for readers ----

// Three significant digits; very small and very large numbers as 1.23 × 10⁻⁴.
function tidy(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e-3 && size < 1e5) return value.toPrecision(size >= 100 ? Math.ceil(Math.log10(size + 1)) : 3)
    .replace("-", "−");
  const [mantissa, exponent] = value.toExponential(1).replace("-", "−").split("e");
  const raised = [...exponent.replace("+", "").replace("−", "-")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  return `${mantissa} × 10${raised.join("")}`;
}

// 12 → ₁₂
function lowered(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
}

// 1 place, 2 places
function count(number, noun) {
  return `${number} ${noun}${number === 1 ? "" : "s"}`;
}

// So many decimals, with a minus sign that is as wide as a plus.
function exact(value, decimals = 3) {
  return value.toFixed(decimals).replace("-", "−");
}

// ---- Elements ----

function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  put(node, attributes);
  node.append(...children);
  return node;
}

// Sets what differs from the last time: attributes that stay cost next to nothing.
const lastPut = new WeakMap();
function put(node, attributes) {
  let known = lastPut.get(node);
  if (!known) lastPut.set(node, (known = {}));
  for (const name in attributes) {
    const value = attributes[name];
    if (known[name] !== value) node.setAttribute(name, (known[name] = value));
  }
}

function moveTo(node, x, y) {
  const transform = `translate(${x}px, ${y}px)`;
  if (node.style.transform !== transform) node.style.transform = transform;
}

function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// A canvas of width × height CSS pixels, sharp on dense screens; returns its context, cleared.
function fitCanvas(canvas, width, height) {
  const density = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * density);
  canvas.height = Math.round(height * density);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const context = canvas.getContext("2d");
  context.setTransform(density, 0, 0, density, 0, 0);
  return context;
}

// An image of columns × rows cells, stretched over a rectangle of the canvas: levelOf(column, row), 0 … 1, is a colour
// between the two given.
let unscaled;
function paintCells(context, [x, y, width, height], columns, rows, [from, to], levelOf) {
  const palette = Array.from({ length: 256 }, (_, level) => [...mix(from, to, level / 255), 255]);
  const image = new ImageData(columns, rows);
  for (let row = 0, at = 0; row < rows; row += 1) {
    for (let column = 0; column < columns; column += 1) {
      const colour = palette[Math.round(255 * levelOf(column, row))];
      for (let channel = 0; channel < 4; channel += 1, at += 1) image.data[at] = colour[channel];
    }
  }
  unscaled ??= new OffscreenCanvas(columns, rows);
  Object.assign(unscaled, { width: columns, height: rows });
  unscaled.getContext("2d").putImageData(image, 0, 0);
  context.imageSmoothingEnabled = false;
  context.drawImage(unscaled, x, y, width, height);
}

const widths = new Map();
let ruler;
function textWidth(text, size, weight = 400) {
  const font = `${weight} ${size}px system-ui, sans-serif`;
  const key = `${font} ${text}`;
  if (!widths.has(key)) {
    ruler ??= document.createElement("canvas").getContext("2d");
    ruler.font = font;
    widths.set(key, ruler.measureText(text).width);
  }
  return widths.get(key);
}

// value → place: even, or by equal ratios.
function scale([from, to], [start, end], log = false) {
  const at = log ? (value) => Math.log(value / from) / Math.log(to / from) : (value) => (value - from) / (to - from);
  return (value) => start + (end - start) * at(value);
}

// A title, and under it what it shows.
function titled(x, y, title, note) {
  return [svg("text", { x, y: y + 14, "font-size": 14, "font-weight": 600 }, title),
    svg("text", { x, y: y + 33, "font-size": 12, class: "rb-quiet" }, note)];
}

// Where count squares stand in an area [left, top, width, height], as large as fit but no larger than 96, in rows of
// equal length with a gap under each: the size of a square, and the centre of the i-th.
function packCells(count, [left, top, width, height], gap) {
  let cell = Math.min(96, width);
  const rowsFor = (size) => Math.ceil(count / Math.floor(width / size));
  while (rowsFor(cell) * (cell + gap) > height) cell -= 1;
  const columns = Math.ceil(count / rowsFor(cell));
  const pitch = Math.min(cell * 1.25, width / columns);
  const centre = (i) => [left + (i % columns + 0.5) * pitch,
    top + (Math.floor(i / columns) + 0.5) * cell + Math.floor(i / columns) * gap];
  return { cell, centre };
}

// The attribute of a text in the page's colour of that name.
function inColour(name) {
  return { style: `fill: var(--rb-${name})` };
}

// The attribute of a line in the page's colour of that name; more: further CSS.
function lined(colour, width, more = "") {
  return { style: `fill: none; stroke: var(--rb-${colour}); stroke-width: ${width}; stroke-linecap: round; ${more}` };
}

// A line from one place to another with an open head, as a path; the head is shorter on short arrows.
function arrowPath([x1, y1], [x2, y2], head = 10) {
  const [dx, dy] = [x2 - x1, y2 - y1];
  const length = Math.hypot(dx, dy);
  if (length === 0) return "";
  const size = Math.min(head, length / 2) / length;
  const side = (turn) => {
    const [cos, sin] = [Math.cos(turn), Math.sin(turn)];
    return `${(x2 - size * (cos * dx - sin * dy)).toFixed(2)},${(y2 - size * (sin * dx + cos * dy)).toFixed(2)}`;
  };
  const tip = `${x2.toFixed(2)},${y2.toFixed(2)}`;
  return `M${x1.toFixed(2)},${y1.toFixed(2)}L${tip}M${side(0.45)}L${tip}L${side(-0.45)}`;
}

// A whole circle as a path.
function circlePath([x, y], radius) {
  const [r, across] = [radius.toFixed(2), (2 * radius).toFixed(2)];
  return `M${(x - radius).toFixed(2)},${y.toFixed(2)}a${r},${r} 0 1 0 ${across},0a${r},${r} 0 1 0 -${across},0`;
}

// 1, 2 or 5 times a power of ten, so that at most about `most` steps fill the range; never less
// than 1.
function niceStep(range, most) {
  const power = 10 ** Math.floor(Math.log10(range / most));
  return Math.max(1, [1, 2, 5, 10].find((factor) => factor * power * most >= range) * power);
}

// Tick marks and numbers along the bottom or the left, into an empty group that stands at the axis.
function axis(group, side, place, ticks, format = String) {
  group.replaceChildren(...ticks.map((tick) => {
    const at = place(tick);
    const bottom = side === "bottom";
    const mark = bottom ? { x1: at, x2: at, y1: 0, y2: 5 } : { x1: -5, x2: 0, y1: at, y2: at };
    const where = bottom ? { x: at, y: 19, "text-anchor": "middle" } : { x: -9, y: at + 4, "text-anchor": "end" };
    return svg("g", {}, svg("line", { ...mark, style: "stroke: var(--rb-muted)" }),
      svg("text", { ...where, "font-size": 12, class: "rb-quiet" }, format(tick)));
  }));
}

// The path around a band: xs[b] with low[b] … high[b]. Where both are equal it is a line, so give it a stroke as well.
function bandPath(xs, low, high) {
  const there = xs.map((x, b) => `${x.toFixed(2)},${high[b].toFixed(2)}`);
  const back = xs.map((x, b) => `${x.toFixed(2)},${low[b].toFixed(2)}`).reverse();
  return `M${there.join("L")}L${back.join("L")}Z`;
}

// ---- Colours ----

const COLOURS = ["ink", "muted", "grid", "zero", "pos", "neg", "1", "2", "3", "4", "5", "6"];

// The theme's colours as [r, g, b], from the CSS variables that hold for el.
function readTheme(el) {
  const probe = el.appendChild(html("span", { class: "rb-hidden" }));
  const theme = {};
  for (const name of COLOURS) {
    probe.style.color = `var(--rb-${name})`;
    theme[name] = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
  probe.remove();
  return theme;
}

// Calls back when the page or the system changes between light and dark; returns what stops it.
function watchTheme(callback) {
  const names = ["data-theme", "theme", "class", "data-jp-theme-light", "data-vscode-theme-kind"];
  const observer = new MutationObserver(callback);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributeFilter: names });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", callback);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", callback);
  };
}

function mix(from, to, share) {
  return from.map((channel, i) => Math.round(channel + (to[i] - channel) * share));
}

// From theme.neg over theme.zero to theme.pos for −1 … 1; beyond that the colour stays.
function diverging(theme, value) {
  return mix(theme.zero, value < 0 ? theme.neg : theme.pos, Math.min(1, Math.abs(value)));
}

function css(colour) {
  return `rgb(${colour.join(",")})`;
}

// Black or white, whichever is read more easily on the colour: never less than 4.5 to 1 (WCAG 2, relative luminance).
function readableOn(colour) {
  const [r, g, b] = colour.map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

// ---- Dials on the page ----

function resetButton(dial, app) {
  const button = html("button", { type: "button", class: "rb-button rb-reset" }, "↺");
  app.listen(button, "click", () => app.change({ [dial.trait]: app.initial[dial.trait] }));
  return {
    button,
    show(value) {
      const home = formatDial(dial, app.initial[dial.trait]);
      put(button, {
        "aria-label": `Reset ${dial.label} to ${home}`,
        title: `Reset to ${home}`,
        "aria-disabled": formatDial(dial, value) === home,
      });
    },
  };
}

function numberDial(dial, id, app) {
  const describedby = { "aria-describedby": `${id}-limits` };
  const field = html("input", {
    id, class: "rb-number", type: "text", autocomplete: "off", inputmode: dial.whole ? "numeric" : "decimal",
    ...describedby,
  });
  const slider = html("input", { type: "range", min: 0, max: 1000, step: "any", ...describedby });
  slider.setAttribute("aria-label", `${dial.label}, slider`);
  const reset = resetButton(dial, app);
  const current = () => app.values()[dial.trait];
  const turn = (value) => app.change({ [dial.trait]: value });
  const show = (value) => {
    field.value = formatDial(dial, value);
    slider.value = toSlider(dial, value);
    slider.setAttribute("aria-valuetext", field.value);
    reset.show(value);
  };
  const keys = (allowed) => (event) => {
    if (!allowed.includes(event.key)) return;
    event.preventDefault();
    turn(nudge(dial, current(), event.key));
  };
  app.listen(field, "change", () => app.enter(dial, field.value) || show(current()));
  app.listen(field, "keydown", keys(["ArrowUp", "ArrowDown", "PageUp", "PageDown"]));
  app.listen(slider, "input", () => turn(fromSlider(dial, Number(slider.value))));
  app.listen(slider, "keydown", keys(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"]));
  const box = html("div", { class: "rb-dial" }, html("label", { for: id }, dial.label), field, reset.button, slider);
  return { box, show };
}

function switchDial(dial, id, app) {
  const box = html("input", { type: "checkbox", role: "switch", "aria-describedby": `${id}-limits` });
  const reset = resetButton(dial, app);
  app.listen(box, "change", () => app.change({ [dial.trait]: box.checked }));
  const label = html("label", { class: "rb-switch rb-whole" }, box, html("span", { class: "rb-label" }, dial.label));
  return {
    box: html("div", { class: "rb-dial" }, label, reset.button),
    show(value) {
      box.checked = value;
      reset.show(value);
    },
  };
}

// Buttons of which one is pressed; the arrow keys go from one to the next, as between all radio buttons.
function choiceDial(dial, id, app) {
  const reset = resetButton(dial, app);
  const buttons = dial.options.map((option, k) => {
    const button = html("input", { type: "radio", name: id, value: option });
    app.listen(button, "change", () => app.change({ [dial.trait]: option }));
    return [button, html("label", { class: "rb-option" }, button, html("span", {}, dial.names?.[k] ?? option))];
  });
  const group = html("div", {
    class: "rb-options", role: "radiogroup", "aria-labelledby": `${id}-label`, "aria-describedby": `${id}-limits`,
  }, ...buttons.map(([, label]) => label));
  return {
    box: html("div", { class: "rb-dial" }, html("span", { class: "rb-label rb-whole", id: `${id}-label` }, dial.label),
      reset.button, group),
    show(value) {
      for (const [button] of buttons) button.checked = button.value === value;
      reset.show(value);
    },
  };
}

// Takes effect with every key; what is not allowed is left standing until the reader leaves the field.
function textDial(dial, id, app) {
  const field = html("input", {
    id, class: "rb-text", type: "text", autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-limits`,
  });
  const reset = resetButton(dial, app);
  const settle = () => {
    field.value = formatDial(dial, app.values()[dial.trait]);
    field.setAttribute("aria-invalid", "false");
  };
  app.listen(field, "input", () => field.setAttribute("aria-invalid", String(!app.enter(dial, field.value))));
  app.listen(field, "blur", settle);
  const label = html("label", { class: "rb-whole", for: id }, dial.label);
  return {
    box: html("div", { class: "rb-dial" }, label, reset.button, field),
    show(value) {
      if (document.activeElement !== field) settle();
      reset.show(value);
    },
  };
}

const DIALS = { number: numberDial, switch: switchDial, choice: choiceDial, text: textDial };

// A row of buttons that move a whole-number dial by so many of its noun, from limits()[0] to limits()[1].
function stepButtons({ change, listen, values }, trait, noun, limits) {
  const within = (value) => Math.min(limits()[1], Math.max(limits()[0], value));
  const steps = [-16, -1, 1, 16].map((by) => {
    const name = `${count(Math.abs(by), noun)} ${by < 0 ? "back" : "on"}`;
    const look = { type: "button", class: "rb-button", "aria-label": name };
    const button = html("button", look, `${by < 0 ? "−" : "+"}${Math.abs(by)}`);
    listen(button, "click", () => change({ [trait]: within(values()[trait] + by) }));
    return [button, by];
  });
  return {
    row: html("div", { class: "rb-tools", style: "margin-block-end: 1.25rem" }, ...steps.map(([button]) => button)),
    show() {
      const value = values()[trait];
      for (const [button, by] of steps) put(button, { "aria-disabled": value === within(value + Math.sign(by)) });
    },
  };
}

// ---- The figure on the page ----

// spec:
//   title, note          what it is, and what to do with it
//   dials                see parseDial
//   settle(values)       optional: repairs values that depend on one another, returns them
//   compute(values)      plain data in, plain data out: no page, no state; the tests compare it with Python's
//   build(stage, app)    makes the elements once, returns draw({ data, values, width, theme, jump }), called at every
//                        change; jump says that nothing should glide (a new width, a new theme)
//   stats(data, values)  list of [name, value, remark] in large type under the figure
//   describe(data, values)  one or two sentences: what is to be seen now; also read out
// app: change({ trait: value }), listen(node, event, handler), values(), alt
function explorer(spec) {
  return { compute: spec.compute, dials: spec.dials, render: (context) => mount(spec, context) };
}

function installStyle() {
  const { head } = document;
  const style = head.querySelector("style[data-ropebook]") ?? head.appendChild(html("style", { "data-ropebook": "" }));
  setText(style, STYLE);
}

function mount(spec, { model, el, page }) {
  installStyle();
  const { dials } = spec;
  const stop = new AbortController();
  const work = []; // milliseconds from input event to end of drawing, one entry per event that drew
  let batch = false;
  let draws = 0;
  let timers = [];
  let data;

  const read = () => {
    const found = Object.fromEntries(dials.map(({ trait }) => [trait, model.get(trait)]));
    return spec.settle ? spec.settle(found) : found;
  };
  const app = {
    alt: model.get("alt"),
    initial: read(),
    values: read,
    change(partial) {
      const before = read();
      const next = { ...before, ...partial };
      const settled = spec.settle ? spec.settle(next) : next;
      batch = true; // one drawing, however many traits change
      for (const { trait } of dials) if (!same(settled[trait], model.get(trait))) model.set(trait, settled[trait]);
      batch = false;
      model.save_changes();
      setText(says, "");
      redraw();
    },
    // What was typed: true if the dial took it; if not, the dial keeps its value and the page says why.
    enter(dial, text) {
      let value;
      try {
        value = parseDial(dial, text, read());
      } catch (refusal) {
        setText(says, `${dial.label}: ${refusal.message}. Still ${formatDial(dial, read()[dial.trait])}.`);
        return false;
      }
      app.change({ [dial.trait]: value });
      return true;
    },
    listen(node, type, handler) {
      const timed = (event) => {
        const start = performance.now();
        const before = draws;
        handler(event);
        if (draws > before) work.push(performance.now() - start);
        if (work.length > 2000) work.splice(0, 1000);
      };
      node.addEventListener(type, timed, { signal: stop.signal });
    },
  };

  const stage = html("div", { class: "rb-stage" });
  const stats = html("dl", { class: "rb-stats" });
  const summary = html("p", { class: "rb-summary" });
  const panel = html("div", { class: "rb-dials" });
  const says = html("p", { class: "rb-says", role: "status", "aria-live": "polite" });
  const spoken = html("p", { class: "rb-hidden", "aria-live": "polite" });
  const root = html("div", { class: "rb", role: "group", "aria-label": `Explorer: ${spec.title}` },
    html("p", { class: "rb-title" }, spec.title), html("p", { class: "rb-note" }, spec.note),
    stage, stats, summary, panel, says, spoken);
  el.replaceChildren(root);

  const prefix = `rb${Math.random().toString(36).slice(2, 8)}`;
  const knobs = dials.map((dial) => {
    const id = `${prefix}-${dial.trait}`;
    const knob = DIALS[dial.kind](dial, id, app);
    knob.box.append(html("span", { class: "rb-limits", id: `${id}-limits` }, limitsOf(dial)));
    panel.append(knob.box);
    return knob;
  });
  const draw = spec.build(stage, app);
  let theme = readTheme(root);
  let width = 0;

  function redraw(jump = false) {
    const values = read();
    data = spec.compute(values);
    width = Math.floor(stage.clientWidth) || 640; // 640 while the figure is not in the page yet
    draw({ data, values, width, theme, jump });
    stats.replaceChildren(...spec.stats(data, values).map(([name, value, remark = ""]) => {
      return html("div", {}, html("dt", {}, name), html("dd", {}, `${value} `, html("small", {}, remark)));
    }));
    const text = spec.describe(data, values);
    setText(summary, text);
    knobs.forEach((knob, i) => knob.show(values[dials[i].trait]));
    draws += 1;
    timers.forEach(clearTimeout);
    // Later, when the hand rests: screen readers would read every value that a slider passes, and browsers refuse
    // hundreds of changes of the address.
    timers = [setTimeout(() => setText(spoken, draws > 1 ? text : ""), 500), setTimeout(saveAddress, 250)];
  }

  function saveAddress() {
    if (!page) return;
    const values = read();
    const entries = dials.map((dial) => [dial.trait, formatDial(dial, values[dial.trait]),
      formatDial(dial, app.initial[dial.trait])]);
    const turned = entries.filter(([, text, home]) => text !== home);
    if (!turned.length && !readAddress(location.hash, page.key).length) return; // a heading's address stays
    const hash = writeAddress(location.hash, page.key, turned);
    if (hash !== location.hash) history.replaceState(history.state, "", hash || location.href.split("#")[0]);
  }

  function loadAddress() {
    const { values, refusals } = readDials(dials, app.initial, readAddress(location.hash, page.key));
    app.change(values); // which settles them
    setText(says, refusals.join(" "));
  }

  const onModel = () => batch || redraw();
  for (const { trait } of dials) model.on(`change:${trait}`, onModel);
  const stopTheme = watchTheme(() => {
    const now = readTheme(root);
    if (same(now, theme)) return;
    theme = now;
    redraw(true);
  });
  let frame = 0;
  const resize = new ResizeObserver(() => {
    cancelAnimationFrame(frame); // in the next frame: drawing changes the height, which would come back here at once
    frame = requestAnimationFrame(() => Math.floor(stage.clientWidth) === width || redraw(true));
  });
  resize.observe(stage);
  // An address that does not speak of this figure (a heading's, say) leaves it alone.
  const followAddress = () => page && readAddress(location.hash, page.key).length && loadAddress();
  window.addEventListener("hashchange", followAddress, { signal: stop.signal });
  followAddress();
  if (!draws) redraw(true);
  el.ropebook = { work, data: () => data, values: read };

  return () => {
    stop.abort();
    stopTheme();
    resize.disconnect();
    cancelAnimationFrame(frame);
    timers.forEach(clearTimeout);
    for (const { trait } of dials) model.off(`change:${trait}`, onModel);
  };
}

function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
