// The text and numbers of the figure with the measured results.

import { METHODS, MOST_TEXT, SCHEMES } from "../measured.py";
import { apartText } from "../kit/intervals.js";
import { capital, exact, grouped, percent } from "../kit/text.js";

// Explains what readers can do, and where the numbers come from.
export function noteOf({ measured: { device, date } }) {
  return `Drag across the picture to read other values. These are stored measurements (${device}, ${date}).`;
}

export function nameOf({ run }, /** @type {any} */ { against, lineFactor, lineTuned }, key) {
  if (run === "schemes") return SCHEMES[key][0];
  if (key === against) return "as trained";
  const method = METHODS[key.split("/")[1]];
  const more = [lineFactor && `s = ${lineFactor}`, lineTuned && "fine-tuned"].filter(Boolean).join(", ");
  if (!more) return method;
  return method.includes(")") ? method.replace(")", `, ${more})`) : `${method} (${more})`;
}

// The value of a line at the position or distance for which the figure shows values.
export function valueHere({ show }, { here, far, near, distance }, k) {
  if (show === "loss") return here[k] === null ? "–" : exact(here[k], 2);
  return percent(far[k][distance] ?? near[k][distance]);
}

// The range of the seeds' values, from the smallest to the largest.
function spread(values, /** @type {(value: number) => string} */ text) {
  if (values.includes(null)) return "";
  return `seeds ${text(Math.min(...values))} to ${text(Math.max(...values))}`;
}

// Explains why a dial currently has no effect.
export function idleNote(trait, { run, method, tuned }) {
  if (trait === "text") return "No effect here: records are planted in Python code.";
  if (run === "schemes") return "No effect here: all schemes are shown as they were trained.";
  if (trait === "method") return `${capital(METHODS[method])} was not tried, so this is the model as trained.`;
  if (trait === "factor") {
    return method === "none" ? "No effect here: the model as trained has no factor."
      : `No effect here: ${METHODS[method]} has no factor.`;
  }
  return tuned ? `No model was fine-tuned with ${METHODS[method]}, so this is the model without fine-tuning.` : "";
}

// The name, value and remark of each number shown in large type.
export function readings(dials, data) {
  const { show, run, measured } = dials;
  const { lines, here, hereSeeds, bytes, distance, far, farSeeds, near, nearSeeds, lineTuned } = data;
  const name = (k) => capital(nameOf(dials, data, lines[k]));
  const value = (k) => valueHere(dials, data, k);
  if (show === "loss") {
    const read = (k, title = name(k)) => {
      return [title, value(k), ["bits", spread(hereSeeds[k], (one) => exact(one, 2))].filter(Boolean).join(", ")];
    };
    if (run === "schemes") return [read(0), fewest(here), mostOf(here)].map((one) => (typeof one === "number"
      ? read(one, `${one === fewest(here) ? "Fewest" : "Most"}: ${nameOf(dials, data, lines[one])}`) : one));
    const bits = lastHere(data);
    const ends = bytes?.map(grouped).join(" to ");
    return [...lines.map((_, k) => read(k)), [`Last ${measured.length} bytes only`, ...(bits === null
      ? ["–", "the text is no longer than that so far"]
      : [exact(bits, 2), `bits${lineTuned ? ", fine-tuned" : ""}, bytes ${ends}`])]];
  }
  const read = (k, title = name(k)) => {
    const short = far[k][distance] === null;
    const seeds = spread((short ? nearSeeds : farSeeds)[k].map((row) => row[distance]), percent);
    return [title, value(k), [short && near[k][distance] !== null && `texts of ${measured.length}`, seeds]
      .filter(Boolean).join(", ")];
  };
  const chance = [show === "retrieval" ? "Guessing" : "Picking one at random", percent(measured.chance[show]), ""];
  if (run !== "schemes") return [...lines.map((_, k) => read(k)), chance];
  const best = mostOf(far.map((one) => one[distance]));
  return [read(0), read(best, `Most: ${nameOf(dials, data, lines[best])}`), chance];
}

// The index of the smallest value, ignoring missing ones. mostOf returns the index of the largest.
function fewest(values) {
  return values.reduce((best, one, k) => (one !== null && (values[best] === null || one < values[best]) ? k : best), 0);
}

function mostOf(values) {
  return values.reduce((best, one, k) => (one !== null && (values[best] === null || one > values[best]) ? k : best), 0);
}

function lastHere({ last, window }) {
  return last?.[window] ?? null;
}

export function describe(data, dials) {
  const words = dials.show === "loss" ? describeLoss(data, dials) : describeTask(data, dials);
  const unmet = data.idle.filter((trait) => dials.run !== "schemes" && ["method", "tuned"].includes(trait));
  return [words, ...unmet.map((trait) => idleNote(trait, dials))].join(" ");
}

function describeLoss(data, dials) {
  const { lines, here, hereApart, apart, band, follows } = data;
  const { position, measured } = dials;
  const [start, stop] = measured.bands[band];
  const times = position / measured.length;
  const where = `At byte ${grouped(position)}, ${times <= 1 ? "within the trained length"
    : `${Number(times.toPrecision(2))} times the trained length`},`;
  if (dials.run === "schemes") {
    const [best, worst] = [fewest(here), mostOf(here)].map((k) => {
      return `${nameOf(dials, data, lines[k])} (${exact(here[k], 2)})`;
    });
    const gone = lines.filter((_, k) => here[k] === null).map((key) => nameOf(dials, data, key));
    return `${where} the fewest and the most bits are those of ${best} and ${worst}, on average over three seeds.`
      + `${gone.length ? ` These schemes have no value here: ${gone.join(", ")}.` : ""}`;
  }
  if (lines.length === 1) return `${where} the model as trained needs ${exact(here[0], 2)} bits.`;
  const more = `${exact(Math.abs(hereApart[0]), 2)} ${hereApart[0] < 0 ? "fewer" : "more"}`;
  const [mean, low, high] = apart[0][band];
  const ends = follows && start >= measured.length;
  return `${where} ${nameOf(dials, data, lines[0])} needs ${more} bits than the model as trained.`
    + ` Over bytes ${grouped(start + 1)} to ${grouped(stop)}${ends ? " of texts that end there" : ""}, the difference `
    + `is ${apartText(mean)}. Its 95% interval, ${apartText(low)} to ${apartText(high)}, `
    + `${low > 0 || high < 0 ? "does not contain" : "contains"} 0.`
    + `${follows ? ` The method adapts to the length of the text. The curve shows texts of ${grouped(MOST_TEXT)} `
      + "bytes read at once; beyond L, the differences are for texts that end where their band ends." : ""}`;
}

function describeTask({ lines, far, near, distance, ...data }, dials) {
  const { distances, length, chance } = dials.measured;
  const parts = lines.map((key, k) => {
    const [name, long, short] = [nameOf(dials, { lines, ...data }, key), far[k][distance], near[k][distance]];
    if (long !== null) return `${name}: ${percent(long)}`;
    return short === null ? `${name}: not asked` : `${name}: ${percent(short)} in texts of ${length}`;
  });
  const back = distances[distance];
  return dials.show === "retrieval"
    ? `Of the records planted ${grouped(back)} bytes before the question, the models find these shares: `
      + `${parts.join("; ")}. Guessing finds ${percent(chance.retrieval)}.`
    : `Of two records, ${grouped(back)} and ${grouped(back / 2)} bytes back, the question asks for the first or the `
      + `last. These shares of the answers are right: ${parts.join("; ")}. Picking one at random is right `
      + `${percent(chance.order)} of the time.`;
}
