// What the measured grid says in words and numbers.

import { METHODS, SCHEMES } from "../measured.py";
import { apartText } from "../kit/intervals.js";
import { capital, exact, percent } from "../kit/text.js";

export function nameOf({ run }, /** @type {any} */ { against, factor, tuned }, key) {
  const [trained, method] = key.split("/");
  if (run === "schemes") return SCHEMES[trained.slice(0, -2)][0];
  if (key === against) return "as trained";
  return `${METHODS[method]}${factor ? `, s = ${factor}` : ""}${tuned ? ", fine-tuned" : ""}`;
}

// What a line is where the figure is read.
export function valueHere({ show }, { here, far, near, distance }, k) {
  if (show === "loss") return here[k] === null ? "–" : exact(here[k], 2);
  return percent(far[k][distance] ?? near[k][distance]);
}

// Why a dial has no effect now.
export function idleNote(trait, { run, method, tuned }) {
  if (run === "schemes") return "No effect here: all schemes are shown as they were trained.";
  if (trait === "method") return `${capital(METHODS[method])} was not measured: shown as trained.`;
  if (trait === "factor") {
    return method === "none" ? "No effect here: the model as trained has no factor."
      : `No effect here: ${METHODS[method]} has no factor.`;
  }
  return tuned ? `There is no model fine-tuned with ${METHODS[method]}: shown without.` : "";
}

// Name, value and remark of what is in large type.
export function readings(dials, data) {
  const { show, run, measured } = dials;
  const { lines, here, window, band, bytes, distance, far, near } = data;
  const name = (k) => capital(nameOf(dials, data, lines[k]));
  const value = (k) => valueHere(dials, data, k);
  const [first, last] = bytes;
  if (show === "loss") {
    const where = first === last ? `bits, byte ${first}` : `bits, bytes ${first} to ${last}`;
    const [start, stop] = measured.bands[band];
    const windowed = [`Last ${measured.length} bytes only`, ...(start < measured.length ? ["–", "there is no more text"]
      : [exact(window[band], 2), `bits, bytes ${start + 1} to ${stop}`])];
    if (run !== "schemes") return [...lines.map((_, k) => [name(k), value(k), k ? "bits" : where]), windowed];
    const best = bestOf(here);
    return [[name(0), value(0), where], [`Fewest: ${nameOf(dials, data, lines[best])}`, value(best), "bits"], windowed];
  }
  const onlyNear = (k) => far[k][distance] === null && near[k][distance] !== null;
  const shown = (k) => (onlyNear(k) ? `in texts of ${measured.length}` : "");
  const chance = ["Guessing", percent(measured.chance), ""];
  if (run !== "schemes") return [...lines.map((_, k) => [name(k), value(k), shown(k)]), chance];
  const best = bestOf(far.map((one) => (one[distance] === null ? null : -one[distance])));
  return [[name(0), value(0), ""], [`Most: ${nameOf(dials, data, lines[best])}`, value(best), ""], chance];
}

// Which is least, of those there are.
function bestOf(values) {
  return values.reduce((best, one, k) => (one !== null && one < values[best] ? k : best), 0);
}

export function describe(data, dials) {
  const words = dials.show === "loss" ? describeLoss(data, dials) : describeRetrieval(data, dials);
  const unmet = data.idle.filter((trait) => dials.run !== "schemes" && trait !== "factor");
  return [words, ...unmet.map((trait) => idleNote(trait, dials))].join(" ");
}

function describeLoss(data, dials) {
  const { lines, here, hereApart, window, apart, apartError, decided, band } = data;
  const { position, measured } = dials;
  const [start, stop] = measured.bands[band];
  const times = position / measured.length;
  const where = `At byte ${position}, ${times <= 1 ? "within the trained length"
    : `${Number(times.toPrecision(2))} times the trained length`},`;
  const windowed = start < measured.length ? ""
    : `; with the last ${measured.length} bytes only it needs ${exact(window[band], 2)}`;
  if (dials.run === "schemes") {
    const known = here.flatMap((value, k) => (value === null ? [] : [[value, lines[k]]])).sort((a, b) => a[0] - b[0]);
    const [best, worst] = [known[0], known.at(-1)].map(([value, key]) => {
      return `those of ${nameOf(dials, data, key)}, ${exact(value, 2)}`;
    });
    const gone = lines.filter((_, k) => here[k] === null).map((key) => nameOf(dials, data, key));
    return `${where} the fewest bits are ${best}, the most ${worst}.`
      + `${gone.length ? ` Not there: ${gone.join(", ")}.` : ""}`;
  }
  if (lines.length === 1) return `${where} the model as trained needs ${exact(here[0], 2)} bits${windowed}.`;
  const name = nameOf(dials, data, lines[0]);
  if (here[0] === null) return `${where} ${name} was not measured.`;
  const more = `${exact(Math.abs(hereApart[0]), 2)} ${hereApart[0] < 0 ? "fewer" : "more"}`;
  const first = `${where} ${name} needs ${exact(here[0], 2)} bits, ${more} than the model as trained${windowed}.`;
  const [by, error] = [apart[0][band], apartError[0][band]];
  if (by === null) return first;
  const verdict = decided[0][band] ? "more than that, with the same sign, in both seeds"
    : Math.abs(by) + 2 * error <= dials.measured.margin ? "no difference, in this seed" : "undecided here";
  return `${first} Over bytes ${start + 1} to ${stop} the difference is ${apartText(by)} ± ${exact(2 * error)} `
    + `(two standard errors over files): ${verdict}.`;
}

function describeRetrieval({ lines, far, near, distance, ...data }, dials) {
  const { distances, length, chance } = dials.measured;
  const parts = lines.map((key, k) => {
    const [name, long, short] = [nameOf(dials, { lines, ...data }, key), far[k][distance], near[k][distance]];
    if (long !== null) return `${name}: ${percent(long)}`;
    return short === null ? `${name}: not asked` : `${name}: ${percent(short)} in texts of ${length}`;
  });
  return `Of the values planted ${distances[distance]} bytes before they are asked for, these shares are given back: `
    + `${parts.join("; ")}. Guessing finds ${percent(chance)}.`;
}
