// The elements of a figure, made and changed.

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

// While a group is drawn anew: what stood in it, by tag, and what was made for it since.
let redrawing = null;
const lastMade = new WeakMap();

// Makes what make() returns the content of a group. What html() and svg() return meanwhile are the nodes that they made
// for the group before, as far as there are any, with other attributes and texts: that costs a fraction of new ones,
// and nothing where nothing changes. So nobody else may hold these nodes, or listen to them.
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
  if (children.length) setChildren(node, children); // else whoever filled it before fills it again
  return node;
}

// The node's children, in this order; texts among them are changed in place.
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

// Sets what differs from the last time: attributes that stay cost next to nothing. null takes one away.
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

// A small line of text beside a drawing, in the colour that stands back.
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
