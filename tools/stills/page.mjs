// As much of a page as the explorers' scripts use: elements that remember, a canvas that writes down SVG, and the theme's
// colours. What a script calls that is not here is an error, so that no still lacks it without a word.

import { Recorder } from "./canvas.mjs";

class Text {
  nodeType = 3;

  constructor(data) {
    this.data = String(data);
  }

  get textContent() {
    return this.data;
  }

  remove() {
    leave(this);
  }
}

function leave(node) {
  node.parentNode?.childNodes.splice(node.parentNode.childNodes.indexOf(node), 1);
  node.parentNode = null;
}

class Element {
  constructor(name) {
    Object.assign(this, { localName: name, childNodes: [], parentNode: null, style: {}, known: new Map() });
  }

  get children() {
    return this.childNodes.filter((node) => node instanceof Element);
  }

  get classList() {
    return { add() {}, remove() {}, toggle() {}, contains: () => false };
  }

  setAttribute(name, value) {
    this.known.set(name, String(value));
  }

  getAttribute(name) {
    return this.known.get(name) ?? null;
  }

  removeAttribute(name) {
    this.known.delete(name);
  }

  append(...nodes) {
    for (const given of nodes) {
      const node = given instanceof Element || given instanceof Text ? given : new Text(given);
      leave(node);
      node.parentNode = this;
      this.childNodes.push(node);
    }
  }

  appendChild(node) {
    this.append(node);
    return node;
  }

  prepend(...nodes) {
    const rest = this.childNodes;
    this.childNodes = [];
    this.append(...nodes);
    this.childNodes.push(...rest);
  }

  insertBefore(node, before) {
    if (node === before) return node;
    leave(node);
    const rest = before ? this.childNodes.splice(this.childNodes.indexOf(before)) : [];
    this.append(node);
    this.childNodes.push(...rest);
    return node;
  }

  replaceChildren(...nodes) {
    for (const node of this.childNodes) node.parentNode = null;
    this.childNodes = [];
    this.append(...nodes);
  }

  remove() {
    leave(this);
  }

  before(...nodes) {
    for (const node of nodes) this.parentNode.insertBefore(node, this);
  }

  after(...nodes) {
    const [next] = this.parentNode.childNodes.slice(this.parentNode.childNodes.indexOf(this) + 1)
      .filter((node) => !nodes.includes(node));
    for (const node of nodes) this.parentNode.insertBefore(node, next);
  }

  get firstChild() {
    return this.childNodes[0] ?? null;
  }

  get lastChild() {
    return this.childNodes.at(-1) ?? null;
  }

  get textContent() {
    return this.childNodes.map((node) => node.textContent).join("");
  }

  set textContent(text) {
    this.replaceChildren(...(text === "" ? [] : [text]));
  }

  addEventListener() {}

  // Of selectors what is used: names and classes, and lists of them.
  querySelectorAll(selector) {
    const wanted = selector.split(/, ?/);
    const fits = (node) => wanted.some((one) => (one.startsWith(".")
      ? (node.getAttribute("class") ?? "").split(" ").includes(one.slice(1)) : node.localName === one));
    return this.children.flatMap((node) => [...(fits(node) ? [node] : []), ...node.querySelectorAll(selector)]);
  }

  querySelector(selector) {
    return this.querySelectorAll(selector)[0] ?? null;
  }
}

class Observer {
  observe() {}

  disconnect() {}
}

// Widths of a sans-serif's characters, roughly, as shares of its size.
export function textWidth(text, font) {
  const size = Number(/([\d.]+)px/.exec(font)[1]);
  const share = (c) => (/[il.,:;|' ]/.test(c) ? 0.29 : /[mwMW]/.test(c) ? 0.85 : /[A-Z]/.test(c) ? 0.67 : 0.556);
  const bold = /\b[67]00\b/.test(font) ? 1.2 : 1;
  return [...text].reduce((sum, c) => sum + share(c), 0) * size * bold;
}

// Makes the page the global one: stages are so wide, colours (name → #rrggbb) these.
export function openPage(width, colours) {
  const make = (name) => {
    const node = new Element(name);
    if (name === "canvas") node.getContext = () => (node.recorder ??= new Recorder(node, textWidth));
    if (name === "div") node.clientWidth = width;
    return node;
  };
  const rgb = (hex) => `rgb(${[1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16)).join(", ")})`;
  const document = {
    head: make("head"), body: make("body"), documentElement: make("html"), activeElement: null,
    createElement: make, createElementNS: (_, name) => make(name), createTextNode: (data) => new Text(data),
  };
  const still = () => 0;
  const page = {
    document,
    window: {
      devicePixelRatio: 1, addEventListener() {}, // nothing moves in a still
      matchMedia: (query) => ({ matches: /reduced-motion/.test(query), addEventListener() {}, removeEventListener() {} }),
    },
    ResizeObserver: Observer,
    MutationObserver: Observer,
    OffscreenCanvas: class {
      constructor() {
        this.getContext = () => (this.recorder ??= new Recorder(this, textWidth));
      }
    },
    location: { hash: "", href: "" },
    getComputedStyle: (node) => ({ color: rgb(colours[/--rb-(\w+)/.exec(node.style.color)[1]]) }),
    requestAnimationFrame: still, cancelAnimationFrame: still, setTimeout: still, clearTimeout: still,
    setInterval: still, clearInterval: still,
  };
  for (const [name, value] of Object.entries(page)) {
    Object.defineProperty(globalThis, name, { value, configurable: true, writable: true });
  }
  return document;
}
