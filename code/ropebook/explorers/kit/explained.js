// The frequencies that a configuration specifies, what they mean for its pairs, and code snippets that use its numbers.
// The Python modules frequencies, report and snippets in ropebook.explain do the same.

import { fill, isGiven, isTrue, quantity, shortText } from "./language.js";
import { readConfig, sentences } from "./config.js";
import { invFreq } from "./rope.js";
import { keptByTurns } from "./yarn.js";

const LEVELS = ["wrong", "suspicious", "unknown"]; // the levels of findings, in reporting order
const NEARLY = 1e-9; // angles count as equal if they differ by at most this share

const divided = (theta, by) => theta.map((one, i) => one / by(i));
const mixed = (theta, factor, kept) => theta.map((one, i) => ((1 - kept[i]) / factor + kept[i]) * one);

// θ for short texts and for the target length, and the factor on cosines and sines.
/** @type {Record<string, (theta: number[], table: any) => { short: number[], long: number[], onCos?: number }>} */
const SCALED = {
  default: (theta) => ({ short: theta, long: theta }),
  linear(theta, { factor }) {
    const long = divided(theta, () => factor);
    return { short: long, long };
  },
  dynamic(theta, { factor, target, original }) {
    const scale = 1 + factor * (Math.max(1, (target ?? original) / original) - 1);
    return { short: theta, long: divided(theta, (i) => scale ** (i / (theta.length - 1))) };
  },
  yarn(theta, { factor, ramp_begin: begin, ramp_end: end, attention_factor, mscale, mscale_all_dim }) {
    const span = end === begin ? 0.001 : end - begin;
    const kept = theta.map((_, i) => 1 - Math.min(1, Math.max(0, (i - begin) / span)));
    const long = mixed(theta, factor, kept);
    const weighted = (weight) => 0.1 * weight * Math.log(factor) + 1;
    const both = isGiven(mscale) && isGiven(mscale_all_dim);
    return { short: long, long,
      onCos: attention_factor ?? (both ? weighted(mscale) / weighted(mscale_all_dim) : weighted(1)) };
  },
  llama3(theta, { factor, original, low, high }) {
    const long = mixed(theta, factor, keptByTurns(theta, original, low, high));
    return { short: long, long };
  },
  longrope(theta, { factor, original, maximum, target, short_factors, long_factors, attention_factor }) {
    const short = divided(theta, (i) => short_factors[i]);
    const far = (target ?? original) > original;
    const growth = Math.log(factor ?? maximum / original) / Math.log(original);
    return { short, long: far ? divided(theta, (i) => long_factors[i]) : short,
      onCos: attention_factor ?? Math.sqrt(1 + growth) };
  },
  proportional(theta, { factor, rotating_pairs: rotating }) {
    const long = theta.map((one, i) => (i < rotating ? one / (factor ?? 1) : 0));
    return { short: long, long };
  },
};

function frequenciesOf(table) {
  const theta = Array.from(invFreq(table.rotary_dim, table.base));
  const { short, long, onCos = 1 } = SCALED[table.kind](theta, table);
  const still = table.kind === "proportional" ? table.rotating_pairs : theta.length;
  return { plain: theta.map((one, i) => (i < still ? one : 0)), short, long, onCos };
}

// For each pair: whether it completes a turn within the trained length, and by how much it exceeds its training angles
// at the target length.
function pairsOf({ trained, target, reach_window: window }, { plain, long }) {
  const number = (some) => some.filter(Boolean).length;
  const stretches = plain.map((one, i) => one / long[i]).filter((_, i) => long[i] > 0);
  const known = {
    shortest: (2 * Math.PI) / long[0],
    longest: (2 * Math.PI) / Math.min(...long.filter((one) => one > 0)),
    largest_stretch: Math.max(...stretches),
    stretched_pairs: number(stretches.map((one) => one > 1 + 1e-6)),
    still_pairs: number(plain.map((one) => one === 0)),
  };
  if (!isGiven(trained) || !isGiven(target)) {
    return { turned: [], beyond: [], counts: { ...known, turned_pairs: null, new_pairs: null, kept_pairs: null } };
  }
  const [near, far] = [trained, target].map((length) => Math.min(length, window || Infinity));
  const turned = plain.map((one) => one * (near - 1) >= 2 * Math.PI);
  const beyond = plain.map((one, i) => {
    const before = (near - 1) * one;
    const more = (far - 1) * long[i] - before;
    return turned[i] || more <= NEARLY * before ? 0 : more;
  });
  const [turnedPairs, newPairs] = [turned, beyond.map((one, i) => one > plain[i])].map(number);
  const most = Math.max(...beyond);
  const counts = {
    ...known,
    turned_pairs: turnedPairs,
    new_pairs: newPairs,
    kept_pairs: turned.length - turnedPairs - newPairs - known.still_pairs,
    most_beyond: most,
    most_pair: most ? beyond.indexOf(most) : null,
    near,
    far,
  };
  return { turned, beyond, counts };
}

function explainedTable(table, rules, stopped) {
  table.stopped = stopped;
  const empty = { plain: [], short: [], long: [], onCos: null };
  const found = stopped ? empty : frequenciesOf(table);
  const { turned, beyond, counts } = stopped ? { turned: [], beyond: [], counts: {} } : pairsOf(table, found);
  Object.assign(table, counts, { on_cos: found.onCos });
  const name = table.layer_type === null ? "All layers" : `Layers of type ${shortText(table.layer_type)}`;
  return { name, facts: table, words: sentences(rules.ofTable, table), ...found, turned, beyond };
}

function snippetsOf(table, { snippets }) {
  const { trained, asked, rotary_dim: dim, base, maximum } = table;
  const wanted = asked ?? quantity(["*", 4, "trained"], table);
  const extend = quantity(["/", "wanted", "trained"], { wanted, trained });
  const raises = extend !== null && extend > 1 && isGiven(base) && isGiven(dim) && dim > 2;
  const all = Object.assign(Object.create(null), table, {
    by_layer: table.layer_type !== null,
    wanted,
    extend,
    inverse_extend: quantity(["/", 1, "extend"], { extend }),
    served: asked === null || asked > (table.target ?? 0) ? maximum : asked,
    raised_base: raises ? Number((base * extend ** (dim / (dim - 2))).toPrecision(5)) : null,
  });
  return snippets.filter(({ when }) => isTrue(when, all)).map((one) => {
    return Object.fromEntries(["title", "code", "note", "checked"].map((name) => [name, fill(one[name], all)]));
  });
}

// Explains a text. Returns either an error or sentences, tables, findings and snippets.
export function explained(text, rules, length = /** @type {number | null} */ (null)) {
  let reading;
  try {
    reading = readConfig(text, rules, length);
  } catch (error) {
    return { error: error.message, words: [], tables: [], findings: [], snippets: [] };
  }
  const tables = reading.tables.map((table) => explainedTable(table, rules, reading.stopped));
  return {
    error: "",
    words: sentences(rules.ofFile, reading.facts),
    tables,
    findings: LEVELS.flatMap((level) => reading.findings.filter(([one]) => one === level)),
    snippets: tables.length ? snippetsOf(tables[0].facts, rules) : [],
  };
}
