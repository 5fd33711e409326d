// node still.mjs < [{ script, state, then }, …] > ["<svg …>", …]: each explorer's own drawing, at the state of its dials, as
// one SVG; with `then`, after it was opened at `state` and these traits were changed. Colours stay the page's. What is mixed
// from them, and pixels, is drawn twice, for light pages and for dark ones.

import { readFileSync } from "node:fs";
import { Recorder, forgetIds } from "./canvas.mjs";
import { openPage } from "./page.mjs";
import { slim } from "./slim.mjs";

const WIDTH = 740;
const FONT = "font:400 13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;font-variant-numeric:tabular-nums";
const LARGEST = 95_000; // characters; what is larger is drawn with fewer points
// How far, in pixels, a line may be from its points, and how large a dot of a picture is.
const FINENESS = [[0.15, 1], [0.3, 1], [0.6, 2], [1.2, 3]];
const LAYERS = ["svg", "canvas"];

const escape = (text) => text.replace(/&/g, "&amp;").replace(/</g, "&lt;");
const quote = (text) => escape(text).replace(/"/g, "&quot;");

// The script's own colours, for light and for dark pages, each with its name.
function themesOf(script) {
  const palette = Object.entries(JSON.parse(/^const PALETTE = (.*);$/m.exec(script)[1]));
  const [light, dark] = [0, 1].map((k) => Object.fromEntries(palette.map(([name, pair]) => [name, pair[k]])));
  return [light, dark].map((colours) => ({ colours, fallback: light }));
}

function hex(value) {
  return `#${value.toString(16).padStart(6, "0")}`;
}

// Colours by the names that the page has for them.
function named(text, { colours, fallback }) {
  const names = new Map(Object.entries(colours).map(([name, colour]) => [colour, name]));
  const variable = (name) => `var(--fig-${name},${fallback[name]})`;
  return text.replace(/rgb\((\d+), ?(\d+), ?(\d+)\)/g, (_, ...channels) => {
    const colour = hex(channels.slice(0, 3).reduce((sum, channel) => 256 * sum + Number(channel), 0));
    return names.has(colour) ? variable(names.get(colour)) : colour;
  }).replace(/var\(--rb-(\w+)\)/g, (_, name) => variable(name));
}

function svgText(node) {
  if (node.localName === undefined) return escape(node.textContent);
  const { class: look = "", ...rest } = Object.fromEntries(node.known);
  if (rest.visibility === "hidden" || rest.display === "none") return "";
  const styles = [rest.style ?? ""];
  const quiet = look.split(" ").includes("rb-quiet");
  if (node.localName === "text" && !/(^|;|\s)fill:/.test(styles[0]) && !rest.fill) {
    styles.unshift(`fill: var(--rb-${quiet ? "muted" : "ink"})`);
  } else if (quiet) styles.unshift("fill: var(--rb-muted)");
  if (node.style.transform) styles.push(`transform:${node.style.transform}`);
  const style = styles.filter(Boolean).join(";").replace(/\s*([:;])\s*/g, "$1").replace(/;+/g, ";").replace(/;$/, "");
  if (style) rest.style = style;
  const drawn = Object.entries(rest).filter(([name]) => !/^(aria-.*|data-.*|role|tabindex)$/.test(name));
  const attributes = drawn.map(([name, value]) => ` ${name}="${quote(value)}"`).join("");
  return `<${node.localName}${attributes}>${node.childNodes.map(svgText).join("")}</${node.localName}>`;
}

const pixels = (style, name) => Number(new RegExp(`(?:^|[; ])${name}: ?(-?[\\d.]+)px`).exec(style)?.[1] ?? NaN);

function widthOf(node) {
  const layer = LAYERS.includes(node.localName) ? node : node.querySelector("svg, canvas");
  return Number(layer.getAttribute("width") ?? layer.width ?? 0);
}

// What stands in the stage, { text, height, over }: layers of one box lie over one another, boxes under one another, or
// side by side in a row that says so. Buttons and words beside the drawing are left out.
function laidOut(node) {
  const style = node.getAttribute("style") ?? "";
  if (node.localName === "canvas") {
    return { text: node.recorder?.out.join("") ?? "", height: parseFloat(node.style.height) || 0 };
  }
  if (node.localName === "svg") {
    return { text: node.childNodes.map(svgText).join(""), height: Number(node.getAttribute("height") ?? 0), over: /absolute/.test(style) };
  }
  if (/position: ?absolute/.test(style)) { // a place to be touched: of a button with a border, the border
    const [x, y, width, height] = ["left", "top", "width", "height"].map((name) => pixels(style, name));
    const border = /border-color: var\(--rb-(\w+)\)/.exec(style)?.[1];
    const look = `fill:none;stroke:var(--rb-${border});stroke-width:${border === "1" ? 2 : 1}`;
    const frame = `<rect x="${x}" y="${y}" width="${width}" height="${height}" rx="8" style="${look}"/>`;
    return { text: node.localName === "button" && border ? frame : "", height: 0, over: true };
  }
  const drawn = node.children.filter((child) => LAYERS.includes(child.localName) || child.querySelector("svg, canvas")
    || /position: ?absolute/.test(child.getAttribute("style") ?? ""));
  if (/display: ?flex/.test(style)) {
    const gap = (WIDTH - drawn.reduce((sum, one) => sum + widthOf(one), 0)) / Math.max(1, drawn.length - 1);
    let x = 0;
    const made = drawn.map((one) => {
      const { text, height } = laidOut(one);
      const moved = `<g transform="translate(${x} 0)">${text}</g>`;
      x += widthOf(one) + gap;
      return { text: moved, height };
    });
    return { text: made.map(({ text }) => text).join(""), height: Math.max(0, ...made.map(({ height }) => height)) };
  }
  let y = 0;
  let most = 0;
  const texts = drawn.map((one) => {
    const { text, height, over } = laidOut(one);
    const at = y;
    if (!over) y += height;
    most = Math.max(most, (over ? 0 : at) + height);
    return at && text && !over ? `<g transform="translate(0 ${at})">${text}</g>` : text;
  });
  return { text: texts.join(""), height: most };
}

function drawn({ script, state, then = {} }, theme, near) {
  forgetIds();
  const document = openPage(WIDTH, theme.colours);
  const el = document.createElement("div");
  document.body.append(el);
  const values = structuredClone(state);
  const heard = new Map();
  const model = {
    get: (name) => values[name], set(name, value) { values[name] = value; }, on: (event, call) => heard.set(event, call),
    off() {}, save_changes() {},
  };
  scripts.get(script).render({ model, el });
  Object.assign(values, then);
  for (const name in then) heard.get(`change:${name}`)?.();
  const { text, height } = laidOut(el.querySelector(".rb-stage"));
  return { text: named(text.replace(/ d="([^"]+)"/g, (_, d) => ` d="${slim(d, near)}"`), theme), height };
}

// One text of two: where they differ they do so in a colour or in an image.
function both(light, dark) {
  if (light === dark) return light;
  const parts = /(<image [^>]*>|var\(--fig-[\w-]+,#[0-9a-f]{6}\)|#[0-9a-f]{6})/;
  const [one, other] = [light.split(parts), dark.split(parts)];
  if (one.length !== other.length) throw new Error("the drawings for light and for dark pages are not the same one");
  return one.map((text, i) => {
    if (text === other[i]) return text;
    if (text.startsWith("<image ")) {
      const marked = (one, more) => one.replace("<image ", `<image class="${more} `);
      return marked(text, 'on-light"') + marked(other[i], 'on-dark" display="none"');
    }
    if (!/^(#|var)/.test(text)) throw new Error(`the drawings for light and for dark pages differ: ${text.slice(0, 80)}`);
    return `light-dark(${text},${other[i]})`;
  }).join("");
}

// Areas that follow one another in the same colour become one.
function merged(text) {
  const area = /<path d="([^"]*[Zz])" style="(fill:(?!none)[^;"]*)"\/>/g;
  return text.replace(/(?:<path d="[^"]*[Zz]" style="fill:(?!none)[^;"]*"\/>){2,}/g, (run) => {
    const found = [];
    for (const [, d, style] of run.matchAll(area)) {
      if (found.at(-1)?.style === style) found.at(-1).d += d;
      else found.push({ d, style });
    }
    return found.map(({ d, style }) => `<path d="${d}" style="${style}"/>`).join("");
  });
}

const scripts = new Map();

async function still(job) {
  const { script, state } = job;
  const themes = themesOf(script);
  openPage(WIDTH, themes[0].colours);
  if (!scripts.has(script)) {
    scripts.set(script, (await import(`data:text/javascript,${encodeURIComponent(script)}`)).default);
  }
  for (const [near, pixel] of FINENESS) {
    Recorder.pixel = pixel;
    const [light, dark] = themes.map((theme) => drawn(job, theme, near));
    const height = Math.ceil(light.height);
    const picture = `<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="${quote(state.alt)}" width="${WIDTH}" `
      + `height="${height}" viewBox="0 0 ${WIDTH} ${height}" `
      + `style="display:block;max-width:100%;height:auto;overflow:visible;${FONT}">${merged(both(light.text, dark.text))}</svg>`;
    if (picture.length <= LARGEST || near === FINENESS.at(-1)[0]) return picture;
  }
}

const stills = [];
try {
  for (const job of JSON.parse(readFileSync(0, "utf8"))) stills.push(await still(job));
  process.stdout.write(JSON.stringify(stills));
} catch (error) { // not its stack, which names the whole script
  process.stderr.write(`${error.name}: ${error.message}\n`);
  process.exitCode = 1;
}
