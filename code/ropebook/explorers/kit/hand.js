// Lets readers move things in the picture with a pointer or the keyboard.

import { nudge } from "./dials.js";
import { put } from "./elements.js";

const KEYS = ["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp", "PageDown", "PageUp", "Home", "End"];

// Turns an empty HTML element into a draggable handle. It lies over the picture and is a child of the picture's
// container. It can't be part of the SVG, because the SVG is a single image, whose parts can't get focus or a name.
//   at(x, y, event)  the dials for a pointer position, in pixels from the container's upper left corner; null: no
//                    change
//   keys(key)        the dials after a key press; null leaves the key to the page
//   label            the handle's name: a text, or label(values)
//   value(values)    for a handle that sets one number: { now, min, max, text }, which makes the handle a slider;
//                    without it, the handle only has a label
//   area             true: a wide area, on which a thumb may also scroll the page by moving up or down
//   place(values)    optional, for a small handle: its position [x, y], so that it doesn't jump to the pointer
//   cursor           optional
// Returns show([left, top, width, height]), which must be called on every redraw.
export function hand(app, node, /** @type {Record<string, any>} */ options) {
  const { at, keys, label, value, area = false, place, cursor = area ? "pointer" : "grab" } = options;
  let held = null; // where the drag began, its offset from the handle's position, and whether the handle has moved
  const follow = (event) => {
    const box = node.parentElement.getBoundingClientRect();
    const next = at(event.clientX - box.left - held.off[0], event.clientY - box.top - held.off[1], event);
    held.followed = true;
    if (next) app.change(next);
  };
  const thumb = (event) => area && event.pointerType === "touch";
  // A thumb that moves up or down rather than sideways is probably about to scroll.
  const sideways = ({ clientX: x, clientY: y }) => Math.abs(x - held.from[0]) > Math.max(6, Math.abs(y - held.from[1]));

  app.listen(node, "pointerdown", (event) => {
    if (event.button !== 0) return;
    node.setPointerCapture(event.pointerId);
    const box = node.parentElement.getBoundingClientRect();
    const [x, y] = place?.(app.values()) ?? [event.clientX - box.left, event.clientY - box.top];
    held = {
      from: [event.clientX, event.clientY],
      off: [event.clientX - box.left - x, event.clientY - box.top - y],
      followed: false,
    };
    if (!place && !thumb(event)) follow(event);
  });
  app.listen(node, "pointermove", (event) => {
    if (!held || !node.hasPointerCapture(event.pointerId)) return;
    if (!thumb(event) || held.followed || sideways(event)) follow(event);
  });
  app.listen(node, "pointerup", (event) => {
    if (held && !held.followed && thumb(event)) follow(event); // a tap
    held = null;
  });
  app.listen(node, "pointercancel", () => (held = null));
  app.listen(node, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const next = keys(event.key);
    if (!next) return;
    event.preventDefault();
    app.change(next);
  });

  return ([left, top, width, height]) => {
    const values = app.values();
    const told = value?.(values);
    put(node, {
      class: "rb-hand", tabindex: 0, role: told ? "slider" : "application",
      "aria-label": typeof label === "string" ? label : label(values),
      ...(told && { "aria-valuenow": told.now, "aria-valuemin": told.min, "aria-valuemax": told.max,
        "aria-valuetext": told.text }),
      style: `position: absolute; left: ${left}px; top: ${top}px; width: ${width}px; height: ${height}px; `
        + `cursor: ${cursor}; touch-action: ${area ? "pan-y" : "none"}`,
    });
  };
}

// The keys and the value of a handle for one dial. Arrow and page keys work as in the dial's field, or as on its slider
// if `finely` is false; Home and End go to the current limits. limits(values) returns [smallest, largest] if they
// differ from the dial's own limits. text(values) returns the value as screen readers announce it.
export function ofDial(app, dial, /** @type {Record<string, any>} */ options = {}) {
  const { limits = () => [dial.min, dial.max], text, finely = true } = options;
  const now = (values) => values[dial.trait];
  return {
    keys(key) {
      if (!KEYS.includes(key)) return null;
      const [min, max] = limits(app.values());
      const allowed = { ...dial, min, max };
      const goal = key === "Home" ? min : key === "End" ? max : nudge(allowed, now(app.values()), key, finely);
      return { [dial.trait]: Math.min(max, Math.max(min, goal)) };
    },
    value(values) {
      const [min, max] = limits(values);
      return { now: now(values), min, max, text: text?.(values) ?? `${dial.label}: ${now(values)}` };
    },
  };
}

// A handle that covers a wide area of the picture and sets a dial by its horizontal position. ends() returns [left,
// right] in pixels. valueAt(share) returns the dial's value at a given fraction, from 0 to 1, of the way from left to
// right. limits returns the current limits.
export function across(app, node, dial, /** @type {Record<string, any>} */ options) {
  const { ends, limits = () => [dial.min, dial.max], valueAt, text, finely, ...more } = options;
  const evenly = (share) => {
    const [min, max] = limits(app.values());
    return Math.round(min + share * (max - min));
  };
  return hand(app, node, {
    area: true,
    cursor: "ew-resize",
    at(x) {
      const [left, right] = ends();
      return { [dial.trait]: (valueAt ?? evenly)(Math.min(1, Math.max(0, (x - left) / (right - left)))) };
    },
    ...ofDial(app, dial, { limits, text, finely }),
    ...more,
  });
}

// Returns the value that a key selects, within the limits: the next of several stops or, for page keys, half or double
// the value. null leaves the key to the page.
export function stopKeys(key, /** @type {number[]} */ stops, now, [least, most]) {
  if (!KEYS.includes(key)) return null;
  const [before, after] = [stops.findLast((stop) => stop < now), stops.find((stop) => stop > now)];
  return {
    ArrowLeft: before, ArrowDown: before, ArrowRight: after, ArrowUp: after,
    PageDown: Math.max(least, Math.round(now / 2)), PageUp: Math.min(most, now * 2), Home: stops[0], End: stops.at(-1),
  }[key] ?? now;
}
