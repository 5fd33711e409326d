// Converts a dial's value to and from text and slider positions, and handles key presses. This file doesn't use the
// page.

import { readNumber } from "./numbers.js";
import { grouped } from "./text.js";

// A dial is { trait, kind, label, note }, with unit if its values have one, and further properties that depend on its
// kind:
//   "number": min, max; whole, with step if it is true; log, if its slider is logarithmic; below, above, between: the
//       reasons given for rejecting a value; within { dial, times, plus, follows }: the value is at most times · that
//       dial's value + plus, and with follows it stays there when that dial is raised; stops: values that the slider
//       marks and, when it is dragged close to one, takes
//   "switch": no other properties
//   "choice": options, a list of texts; names, the options' names on the page if they are different
//   "text":   parse(text, values) → value, or an Error that gives the reason; format(value) → text; lines, if the text
//             may have several lines
export function parseDial(dial, text, values) {
  if (dial.kind === "text") return dial.parse(text, values);
  if (dial.kind === "switch") {
    if (text !== "on" && text !== "off") throw new Error(`“${text}” is neither on nor off`);
    return text === "on";
  }
  if (dial.kind === "choice") {
    if (!dial.options.includes(text)) throw new Error(`“${text}” is not one of ${dial.options.join(", ")}`);
    return text;
  }
  const value = readNumber(text, dial.whole);
  if (dial.whole && !Number.isInteger(value)) throw new Error(`${text.trim()} is not a whole number`);
  if (value < dial.min) throw new Error(`${text.trim()} is less than ${grouped(dial.min)}${because(dial.below)}`);
  if (value > dial.max) throw new Error(`${text.trim()} is more than ${grouped(dial.max)}${because(dial.above)}`);
  if (snap(dial, value) !== value) {
    const some = [0, 1, 2].map((k) => dial.min + k * dial.step).join(", ");
    throw new Error(`${text.trim()} is not one of ${some}, …${because(dial.between)}`);
  }
  return value;
}

// Returns the dial with the limits that the current values of other dials impose.
export function present(dial, values) {
  if (!dial.within) return dial;
  const { dial: other, times, plus, label } = dial.within;
  const most = Math.max(dial.min, Math.floor(times * values[other] + plus));
  return most < dial.max ? { ...dial, max: most, above: `${label} is ${grouped(values[other])}` } : dial;
}

// Lowers values that exceed the limits imposed by other dials.
export function keepWithin(dials, values) {
  const kept = dials.filter((dial) => dial.within).map((dial) => {
    return [dial.trait, Math.min(values[dial.trait], present(dial, values).max)];
  });
  return { ...values, ...Object.fromEntries(kept) };
}

// If a dial follows its limit and is at this limit, the wanted value is the highest that the limit can ever allow.
export function wanted(dials, values) {
  const full = dials.filter((dial) => dial.within?.follows && values[dial.trait] >= present(dial, values).max);
  return { ...values, ...Object.fromEntries(full.map(({ trait, max }) => [trait, max])) };
}

function because(reason) {
  return reason ? ` (${reason})` : "";
}

export function formatDial(dial, value) {
  if (dial.kind === "choice") return value;
  if (dial.kind === "text") return dial.format(value);
  if (dial.kind === "switch") return value ? "on" : "off";
  return String(value);
}

export function limitsOf(dial) {
  const { kind, whole, min, max, note = "" } = dial;
  return kind === "number" ? `${whole ? "Whole numbers, " : ""}${grouped(min)} to ${grouped(max)}. ${note}` : note;
}

// Returns the closest value that the dial allows.
export function snap(dial, value) {
  const inside = Math.min(dial.max, Math.max(dial.min, value));
  const step = dial.step ?? 1;
  return dial.whole ? dial.min + Math.round((inside - dial.min) / step) * step : inside;
}

// Sliders run from 0 to 1000, on a linear or a logarithmic scale. (A logarithmic scale uses the value plus one if the
// dial begins at 0.)
export function toSlider(dial, value) {
  const { min, max } = dial;
  const more = min === 0 ? 1 : 0;
  if (min === max) return 0;
  if (dial.log) return (1000 * Math.log((value + more) / (min + more))) / Math.log((max + more) / (min + more));
  return (1000 * (value - min)) / (max - min);
}

// `near` is how far a stop may be from the slider's position and still be taken.
export function fromSlider(dial, at, near = 0) {
  const { min, max, stops = [] } = dial;
  const stop = stops.find((one) => Math.abs(toSlider(dial, one) - at) <= near);
  if (stop !== undefined) return stop;
  const more = min === 0 ? 1 : 0;
  const value = dial.log ? (min + more) * ((max + more) / (min + more)) ** (at / 1000) - more
    : min + ((max - min) * at) / 1000;
  return snap(dial, dial.whole ? value : Number(value.toPrecision(3)));
}

const MANY = 10_000; // with this many steps, a single one doesn't change the picture visibly

// The value after a key press. Page keys move by a factor of 2 or by a tenth of the slider. On a logarithmic slider, or
// one with very many steps, arrow keys move by a hundredth of it, so that the picture changes visibly, but at least by
// one step. On other sliders of whole numbers, in fields, and on most handles in pictures (`finely`), they move by one
// step.
export function nudge(dial, value, key, finely = false) {
  const sign = ["ArrowRight", "ArrowUp", "PageUp"].includes(key) ? 1 : -1;
  const page = key.startsWith("Page");
  if (page && dial.log) return snap(dial, value ? value * 2 ** sign : sign);
  const step = snap(dial, value + sign * (dial.step ?? 1));
  const few = !dial.log && (dial.max - dial.min) / (dial.step ?? 1) < MANY;
  if (!page && dial.whole && (finely || few)) return step;
  const far = fromSlider(dial, Math.min(1000, Math.max(0, toSlider(dial, value) + sign * (page ? 100 : 10))));
  return dial.whole && sign * (step - far) > 0 ? step : far;
}
