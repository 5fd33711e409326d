// The elements of a figure, made and changed.

export function html(tag, attributes = {}, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(node, attributes, children) {
  put(node, attributes);
  node.append(...children);
  return node;
}

// Sets what differs from the last time: attributes that stay cost next to nothing.
const lastPut = new WeakMap();

export function put(node, attributes) {
  let known = lastPut.get(node);
  if (!known) lastPut.set(node, (known = {}));
  for (const name in attributes) {
    const value = attributes[name];
    if (known[name] !== value) node.setAttribute(name, (known[name] = value));
  }
}

export function moveTo(node, x, y) {
  const transform = `translate(${x}px, ${y}px)`;
  if (node.style.transform !== transform) node.style.transform = transform;
}

export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}
