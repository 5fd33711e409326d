// What a reader can export from a figure: a link to its settings, the picture as SVG or PNG, and its data as CSV.

import { formatDial } from "./dials.js";
import { writeAddress } from "./address.js";
import { html, setText, svg } from "./elements.js";

const MARGIN = 16; // px of background around the picture
const DENSITY = 2; // a PNG has at least this many pixels per CSS pixel

const INHERITED = ["fill", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "font-family", "font-size", "font-weight", "font-variant-numeric", "letter-spacing", "text-anchor", "visibility",
  "paint-order"];
const OWN = {
  opacity: "1", "fill-opacity": "1", "stroke-opacity": "1", "stop-color": "rgb(0, 0, 0)", "stop-opacity": "1",
};

// Copies a drawing, with the page's styles written into each element, so that the copy doesn't depend on the page.
function standing(node) {
  const look = getComputedStyle(node);
  if (look.display === "none") return null;
  const copy = node.cloneNode(false);
  const outside = node.localName === "svg" ? null : getComputedStyle(node.parentNode);
  const told = [...INHERITED.filter((name) => look.getPropertyValue(name) !== outside?.getPropertyValue(name)),
    ...Object.keys(OWN).filter((name) => look.getPropertyValue(name) !== OWN[name])];
  for (const { name, value } of [...copy.attributes]) {
    if (/^(aria-|data-|class$|style$|role$|tabindex$)/.test(name) || value.includes("var(")) copy.removeAttribute(name);
  }
  if (told.length) copy.setAttribute("style", told.map((name) => `${name}:${look.getPropertyValue(name)}`).join(";"));
  if (node.style.transform) copy.setAttribute("transform", look.transform);
  for (const child of node.childNodes) {
    const made = child.nodeType === 1 ? standing(child) : child.cloneNode();
    if (made) copy.append(made);
  }
  return copy;
}

// Converts a word or an HTML box on the stage to SVG.
function boxed(node, place) {
  const look = getComputedStyle(node);
  const [x, y, width, height] = place(node.getBoundingClientRect());
  const border = parseFloat(look.borderTopWidth);
  const made = [];
  if (border || !/, 0\)$|transparent/.test(look.backgroundColor)) {
    made.push(svg("rect", { x, y, width, height, rx: parseFloat(look.borderTopLeftRadius) || 0,
      style: `fill:${look.backgroundColor};stroke:${look.borderTopColor};stroke-width:${border}` }));
  }
  const style = [`fill:${look.color}`, ...["font-size", "font-weight", "font-family"].map((name) => {
    return `${name}:${look.getPropertyValue(name)}`;
  })].join(";");
  const range = document.createRange();
  for (const child of [...node.childNodes].filter(({ nodeType }) => nodeType === 3)) {
    for (const { 0: word, index } of child.data.matchAll(/\S+/g)) { // word by word, because lines may break in between
      range.setStart(child, index);
      range.setEnd(child, index + word.length);
      const [left, top, , high] = place(range.getBoundingClientRect());
      made.push(svg("text", { x: left, y: top + 0.78 * high, style }, word));
    }
  }
  return made;
}

// The first non-transparent background colour of an element or its ancestors.
function paperBehind(node) {
  for (let one = node; one; one = one.parentElement) {
    const colour = getComputedStyle(one).backgroundColor;
    if (!/, 0\)$|transparent/.test(colour)) return colour;
  }
  return "rgb(255, 255, 255)";
}

// The stage as a single SVG, with drawings, images and words in their positions on the page's background.
export function pictureOf(stage, title) {
  const area = stage.getBoundingClientRect();
  const [width, height] = [area.width, area.height].map((size) => Math.ceil(size) + 2 * MARGIN);
  const place = (box) => [box.left - area.left + MARGIN, box.top - area.top + MARGIN, box.width, box.height];
  const picture = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height, viewBox: `0 0 ${width} ${height}` },
    svg("title", {}, title), svg("rect", { width, height, style: `fill:${paperBehind(stage)}` }));
  const add = (node) => {
    if (!node.checkVisibility({ checkVisibilityCSS: true }) || node.classList.contains("rb-hidden")) return;
    const [x, y, across, down] = place(node.getBoundingClientRect());
    if (node.localName === "canvas") {
      const href = node.toDataURL();
      picture.append(svg("image", { x, y, width: across, height: down, href, preserveAspectRatio: "none" }));
    } else if (node.localName === "svg") {
      const drawn = standing(node);
      for (const [name, value] of Object.entries({ x, y, width: across, height: down, overflow: "visible" })) {
        drawn.setAttribute(name, value);
      }
      picture.append(drawn);
    } else {
      picture.append(...boxed(node, place));
      for (const child of node.children) add(child);
    }
  };
  for (const child of stage.children) add(child);
  return { text: new XMLSerializer().serializeToString(picture), width, height };
}

async function asPixels({ text, width, height }) {
  const image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(text)}`;
  await image.decode();
  const density = Math.max(DENSITY, window.devicePixelRatio);
  const canvas = html("canvas", { width: Math.round(width * density), height: Math.round(height * density) });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

// The dials and all data of a figure, as lines of the form "name,index,value,unit". Indices of nested lists are joined
// with dots.
export function tableOf({ dials, units }, values, data) {
  const quoted = (text) => (/[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text);
  const lines = dials.map((dial) => [dial.trait, "", formatDial(dial, values[dial.trait]), dial.unit ?? ""]);
  const add = (name, index, value) => {
    if (value === null || typeof value !== "object") lines.push([name, index, String(value), units[name] ?? ""]);
    else for (const [key, one] of Object.entries(value)) add(name, index ? `${index}.${key}` : key, one);
  };
  for (const [name, value] of Object.entries(data)) add(name, "", value);
  return [["name", "index", "value", "unit"], ...lines].map((line) => `${line.map(quoted).join(",")}\n`).join("");
}

function save(name, content, type) {
  const url = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  html("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}

// The row of buttons. page: if given, the link contains its address; data(): returns the data currently drawn.
export function takeaway(spec, app, stage, page, data) {
  const { title, dials } = spec;
  const name = title.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-|-$/g, "");
  const link = () => {
    const texts = dials.map((dial) => [app.values(), app.initial].map((from) => formatDial(dial, from[dial.trait])));
    const turned = dials.flatMap(({ trait }, k) => (texts[k][0] === texts[k][1] ? [] : [[trait, texts[k][0]]]));
    return location.href.split("#")[0] + writeAddress("", page.key, turned);
  };
  /** @type {[string, string, (button: HTMLElement) => void][]} */
  const offers = [
    ["SVG", "Save the picture as SVG", () => save(`${name}.svg`, pictureOf(stage, title).text, "image/svg+xml")],
    ["PNG", "Save the picture as PNG", async () => save(`${name}.png`, await asPixels(pictureOf(stage, title)))],
    ["CSV", "Save the numbers as CSV", () => save(`${name}.csv`, tableOf(spec, app.values(), data()), "text/csv")],
    ["Reset all", "Reset all dials", () => app.change(app.initial)],
  ];
  if (page) {
    offers.unshift(["Copy link", "Copy link to this setting", async (button) => {
      const copied = await navigator.clipboard?.writeText(link()).then(() => true, () => false);
      setText(button, copied ? "Copied" : "See the address bar");
      setTimeout(() => setText(button, "Copy link"), 2000);
    }]);
  }
  const buttons = offers.map(([text, says, take]) => {
    const button = html("button", { type: "button", title: says }, text);
    app.listen(button, "click", () => take(button));
    return button;
  });
  return html("div", { class: "rb-takeaway", role: "group", "aria-label": "Take away" }, ...buttons);
}
