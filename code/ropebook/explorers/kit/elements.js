// Creates and updates the elements of a figure.

const SVG = "http://www.w3.org/2000/svg";
const TEXT_NODE = 3;

/** @returns {any} */
export function html(tag, attributes = {}, ...children) {
  return filled(spareNode(tag) ?? noted(document.createElement(tag)), attributes, children);
}

/** @returns {any} */
export function svg(tag, attributes = {}, ...children) {
  return filled(spareNode(tag) ?? noted(document.createElementNS(SVG, tag)), attributes, children);
}

// While a group is being redrawn: its old elements, grouped by tag, and the elements created for it so far.
let redrawing = null;
const lastMade = new WeakMap();

// Replaces a group's content with the result of make(). Meanwhile, html() and svg() reuse the nodes that they created
// for the group last time, with new attributes and texts. That is much cheaper than creating new nodes, and costs
// nothing for nodes that don't change. Other code must therefore not keep these nodes or listen to their events.
export function redrawn(group, make) {
  const outer = redrawing;
  redrawing = { before: lastMade.get(group) ?? {}, now: {} };
  try {
    setChildren(group, make());
    lastMade.set(group, redrawing.now);
  } finally {
    redrawing = outer;
  }
}

function spareNode(tag) {
  const node = redrawing?.before[tag]?.[redrawing.now[tag]?.length ?? 0];
  return node && noted(node);
}

function noted(node) {
  if (redrawing) (redrawing.now[node.localName] ??= []).push(node);
  return node;
}

function filled(node, attributes, children) {
  for (const name in lastPut.get(node)) if (!(name in attributes)) put(node, { [name]: null });
  put(node, attributes);
  if (children.length) setChildren(node, children); // otherwise, the caller that filled it before fills it again
  return node;
}

// Sets the node's children in this order. Text children are updated in place.
function setChildren(node, children) {
  const now = node.childNodes;
  children.forEach((child, k) => {
    const there = now[k];
    const text = typeof child !== "object";
    if (!text && there !== child) node.insertBefore(child, there ?? null);
    else if (text && there?.nodeType !== TEXT_NODE) node.insertBefore(document.createTextNode(child), there ?? null);
    else if (text && there.data !== String(child)) there.data = child;
  });
  while (now.length > children.length) node.lastChild.remove();
}

// Sets the attributes that differ from last time; unchanged ones cost almost nothing. null removes an attribute.
const lastPut = new WeakMap();

export function put(node, attributes) {
  let known = lastPut.get(node);
  if (!known) lastPut.set(node, (known = {}));
  for (const name in attributes) {
    const value = attributes[name];
    if (known[name] === value) continue;
    known[name] = value;
    if (value === null) node.removeAttribute(name);
    else node.setAttribute(name, value);
  }
}

// A text as parts. The group in the pattern is what must stay in one line.
export function unbroken(text, pattern) {
  return text.split(pattern).map((part, k) => (k % 2 ? html("span", { class: "rb-short" }, part) : part));
}

// A small line of text next to a drawing, in the muted colour.
export function quietText(x, y, text, more = {}) {
  return svg("text", { x, y, "font-size": 12, class: "rb-quiet", ...more }, text);
}

export function moveTo(node, x, y) {
  const transform = `translate(${x}px, ${y}px)`;
  if (node.style.transform !== transform) node.style.transform = transform;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
