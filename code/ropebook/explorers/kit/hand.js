// What the picture shows, moved in it, by pointer and by keys.

import { nudge } from "./dials.js";
import { put } from "./elements.js";

const KEYS = ["ArrowLeft", "ArrowDown", "ArrowRight", "ArrowUp", "PageDown", "PageUp", "Home", "End"];

// Makes an empty HTML element that lies over the picture, a child of the picture's own box, what the hand takes hold
// of. Not within the SVG: that is one image, and what is in an image cannot be focused by name.
//   at(x, y, event)  the dials for the pointer's place, in pixels from the box's upper left corner; null: none of them
//   keys(key)        the dials for a key; null: the key is left to the page
//   label            what it is called: a text, or label(values)
//   value(values)    where it is one number: { now, min, max, text }, and it is a slider; else it is told by its label
//   area             true: a wide area, which a thumb may cross upwards or downwards to scroll the page
//   place(values)    of a small handle, optional: where it is, [x, y], so that it does not jump under the pointer
//   cursor           optional
// Returns show([left, top, width, height]), to be called at every drawing.
export function hand(app, node, /** @type {Record<string, any>} */ options) {
  const { at, keys, label, value, area = false, place, cursor = area ? "pointer" : "grab" } = options;
  let held = null; // where the pointer took it, how far from the handle's own place, and whether it has followed since
  const follow = (event) => {
    const box = node.parentElement.getBoundingClientRect();
    const next = at(event.clientX - box.left - held.off[0], event.clientY - box.top - held.off[1], event);
    held.followed = true;
    if (next) app.change(next);
  };
  const thumb = (event) => area && event.pointerType === "touch";
  // A thumb that goes rather up or down than across is about to scroll.
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

// Keys and value of a hand that turns one dial: arrows and pages do what they do on the dial's slider, Home and End go
// to the limits that hold now. limits(values) → [least, greatest], if other than the dial's own; text(values): what is
// said.
export function ofDial(app, dial, /** @type {Record<string, any>} */ options = {}) {
  const { limits = () => [dial.min, dial.max], text } = options;
  const now = (values) => values[dial.trait];
  return {
    keys(key) {
      if (!KEYS.includes(key)) return null;
      const [min, max] = limits(app.values());
      const goal = key === "Home" ? min : key === "End" ? max : nudge(dial, now(app.values()), key);
      return { [dial.trait]: Math.min(max, Math.max(min, goal)) };
    },
    value(values) {
      const [min, max] = limits(values);
      return { now: now(values), min, max, text: text?.(values) ?? `${dial.label}: ${now(values)}` };
    },
  };
}

// A hand over a wide area of the picture that turns a dial by where it is across: valueAt(share) is the dial's value at
// a share, 0 … 1, of ends() = [left, right], pixels; limits: those that hold now.
export function across(app, node, dial, /** @type {Record<string, any>} */ options) {
  const { ends, limits = () => [dial.min, dial.max], valueAt, text, ...more } = options;
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
    ...ofDial(app, dial, { limits, ...(text && { text }) }),
    ...more,
  });
}

// Where a key leads from a value to the next of several stops; page keys halve and double it, within the limits. null:
// the key is left to the page.
export function stopKeys(key, /** @type {number[]} */ stops, now, [least, most]) {
  if (!KEYS.includes(key)) return null;
  const [before, after] = [stops.findLast((stop) => stop < now), stops.find((stop) => stop > now)];
  return {
    ArrowLeft: before, ArrowDown: before, ArrowRight: after, ArrowUp: after,
    PageDown: Math.max(least, Math.round(now / 2)), PageUp: Math.min(most, now * 2), Home: stops[0], End: stops.at(-1),
  }[key] ?? now;
}
