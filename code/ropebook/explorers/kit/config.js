// Explains what a config.json says about positions: parses the text, extracts its facts, and derives further ones. The
// rules of ropebook.explain arrive as data. The Python modules with the same names work the same way, and both are
// tested on the same cases.

import { fill, isGiven, isTrue, numberText, quantity, shortText, withCommas } from "./language.js";

const own = (table, key) => (Object.hasOwn(table, key) ? table[key] : undefined);
const isDict = (found) => typeof found === "object" && found !== null && !Array.isArray(found);
const first = (...found) => found.find(isGiven) ?? null;
const facts = (...sources) => Object.assign(Object.create(null), ...sources);

function byCodePoints(one, other) {
  const [a, b] = [one, other].map((text) => [...text].map((letter) => letter.codePointAt(0)));
  const at = a.findIndex((point, k) => point !== b[k]);
  return at < 0 ? a.length - b.length : at >= b.length ? 1 : a[at] - b[at];
}

const keysOf = (given) => Object.keys(given).sort(byCodePoints);

// ---- The text ----

// Parses the text as a dictionary. Throws an Error whose message begins with the name of the problem.
export function parsedConfig(text, { limits }) {
  if ([...text].length > limits.characters) {
    throw new Error(`too-long: the text has more than ${withCommas(String(limits.characters))} characters`);
  }
  const begun = text.replace(/^[ \t\r\n\ufeff]+/, "");
  if (!begun) throw new Error("empty: the text is empty");
  if (!begun.startsWith("{")) throw new Error("not-json: the text is not JSON, which begins with {");
  if (bracketDepth(text) > limits.depth) {
    throw new Error(`too-deep: the brackets are nested more than ${limits.depth} deep`);
  }
  try {
    return JSON.parse(text.replace(/^\ufeff+/, ""));
  } catch {
    throw new Error("not-json: the text begins like JSON, but has a mistake in it");
  }
}

function bracketDepth(text) {
  let [depth, deepest] = [0, 0];
  for (const [one] of text.matchAll(/"(?:[^"\\]|\\[^])*"?|[[\]{}]/g)) {
    if (one === "[" || one === "{") deepest = Math.max(deepest, (depth += 1));
    else if (one === "]" || one === "}") depth -= 1;
  }
  return deepest;
}

// ---- Values ----

function fits(found, { is, least, most }, rules) {
  const whole = (one, low, high) => Number.isInteger(one) && low <= one && one <= high;
  if (is === "whole") return whole(found, least, most);
  if (is === "number") return Number.isFinite(found) && least < found && found <= most;
  if (is === "switch") return typeof found === "boolean";
  if (is === "text") return typeof found === "string";
  if (!Array.isArray(found) || found.length > rules.widest) return false;
  if (is === "texts") return found.every((one) => typeof one === "string");
  return found.every((one) => (is === "numbers" ? Number.isFinite(one) : whole(one, 0, rules.largest)));
}

function gotInWords(found) {
  if (found === null || typeof found === "boolean") return String(found);
  if (typeof found === "string") return `the text “${shortText(found)}”`;
  if (Array.isArray(found)) return `a list of ${found.length}`;
  if (typeof found === "object") return "a dictionary";
  return Number.isFinite(found) ? numberText(found, 6) : "a number that is too large";
}

function say(reading, name, told) {
  const [level, sentence] = reading.rules.always[name];
  reading.findings.push([level, name, fill(sentence, told)]);
}

function badValue(reading, key, how, found) {
  say(reading, "bad-value", { key, allowed: fill(reading.rules.values[how.is], how), got: gotInWords(found) });
  reading.stopped = true;
}

// Extracts the requested facts from a file. A fact is null if it is missing from the file or has an invalid value.
function take(reading, given, wanted, names = {}, strict = /** @type {string[]} */ ([])) {
  const taken = facts();
  for (const [fact, how] of Object.entries(wanted)) {
    const key = own(names, fact) ?? how.key;
    const found = own(given, key);
    const isNull = found === null && (!how.null || strict.includes(fact));
    const refused = isNull || (isGiven(found) && !fits(found, how, reading.rules));
    if (refused) badValue(reading, key, how, found);
    taken[fact] = refused ? null : found ?? null;
  }
  return taken;
}

// ---- The file ----

function readFile(config, rules) {
  const partName = rules.parts.find((name) => isDict(own(config, name)) && Object.keys(config[name]).length) ?? null;
  const part = partName ? config[partName] : config;
  const kind = own(part, "model_type") ?? own(config, "model_type");
  const family = typeof kind === "string" ? own(rules.families, kind) ?? {} : {};
  /** @type {any} */
  const reading = { rules, findings: [], stopped: false, tables: [] };
  const strict = family.split ? ["rope_part", "still_part"] : "head_dim" in family ? ["given_head_dim"] : [];
  const found = facts({ part_name: partName }, take(reading, part, rules.facts, family.keys, strict));
  reading.facts = found;
  if (found.model_type === null && typeof config.model_type === "string") found.model_type = config.model_type;
  found.stranger = found.model_type === null ? null : own(rules.strangers, found.model_type) ?? null;
  if (["alibi", "absolute"].includes(found.scheme) || found.alibi) {
    found.stranger = found.alibi || found.scheme === "alibi" ? "ALiBi" : "absolute positions";
  }
  Object.assign(found, following(found, family));
  unknownKeys(reading, part, family);
  if (found.stranger === null) reading.tables = tablesOf(reading, part, family);
  return reading;
}

function unknownKeys(reading, part, family) {
  const { rules } = reading;
  const proper = Object.entries(rules.facts).map(([fact, { key }]) => [fact, key]);
  const names = { ...Object.fromEntries(proper), ...family.keys };
  const known = new Set([...Object.values(names), ...rules.ropeKeys, ...rules.elsewhere, ...rules.parts]);
  const others = new Map(Object.entries(rules.facts).map(([fact, { key }]) => [key, fact]));
  for (const one of Object.values(rules.families)) {
    for (const [fact, key] of Object.entries(one.keys ?? {})) others.set(key, fact);
  }
  const unknown = [];
  for (const key of keysOf(part).filter((one) => !known.has(one))) {
    const fact = others.get(key);
    if (fact && Object.keys(family).length) say(reading, "other-name", { key: shortText(key), proper: names[fact] });
    else unknown.push(shortText(key));
  }
  if (unknown.length) say(reading, "unknown-key", { keys: unknown });
}

// Derives further facts about the whole file.
function following(found, family) {
  const { width, heads, layers } = found;
  const quotient = width && heads ? Math.floor(width / heads) : null;
  const headDim = family.split ? found.rope_part : first(found.given_head_dim, family.head_dim ?? quotient);
  const off = Boolean(family.switched) && found.use_window !== true;
  let window = off ? null : first(found.given_window, family.window);
  if (family.chunked) window = found.chunk;
  const types = layerTypes(found, family, window);
  const rotating = rotatingLayers(found, family, types);
  const windowed = types ? types.filter((one) => ["sliding_attention", "chunked_attention"].includes(one)).length
    : window === null ? 0 : family.windowed ? layers : null;
  const parts = isGiven(found.rope_part) && isGiven(found.still_part) ? found.rope_part + found.still_part : null;
  return {
    known_family: Object.keys(family).length > 0,
    family: family.name ?? found.model_type,
    layout: family.split && found.interleave === false ? "half" : family.layout ?? null,
    head_dim: headDim,
    whole_head: first(parts, headDim),
    window,
    assumed_original: family.original ?? null,
    window_off: off,
    types,
    windowed_layers: windowed,
    rotating_layers: rotating,
    still_layers: rotating === null || layers === null ? null : layers - rotating,
    every_layer: rotating !== null && rotating === layers,
    cache_off: found.cache === false,
  };
}

function stillEvery(found, family) {
  return "still_every" in family ? first(found.no_rope_every, family.still_every) : null;
}

function layerTypes(found, family, window) {
  if (found.layer_types !== null) return found.layer_types;
  if (found.layers === null) return null;
  const each = (typeOf) => Array.from({ length: found.layers }, (_, i) => typeOf(i));
  if ("full_every" in family) {
    const every = first(found.full_every, family.full_every);
    return each((i) => ((i + 1) % every ? "sliding_attention" : "full_attention"));
  }
  const still = stillEvery(found, family);
  if (family.chunked && still) return each((i) => ((i + 1) % still ? "chunked_attention" : "full_attention"));
  if (family.switched && window !== null && found.window_from !== null) {
    return each((i) => (i >= found.window_from ? "sliding_attention" : "full_attention"));
  }
  return null;
}

function rotatingLayers(found, family, types) {
  const { layers, no_rope_layers: listed } = found;
  if (layers === null || !Object.keys(family).length) return null;
  if ("still_every" in family) {
    if (listed?.length) return listed.slice(0, layers).filter((one) => one > 0).length;
    return layers - Math.floor(layers / stillEvery(found, family));
  }
  if ("rotating" in family) return types && types.filter((one) => one === family.rotating).length;
  return layers;
}

// ---- Frequency tables ----

function tablesOf(reading, part, family) {
  const { rules, facts: found } = reading;
  const [scaling, parameters] = rules.ropeKeys.map((key) => {
    const given = own(part, key) ?? {};
    if (isDict(given)) return given;
    badValue(reading, key, { is: "dictionary" }, given);
    return {};
  });
  const [scales, has] = [scaling, parameters].map((one) => Object.keys(one).length > 0);
  Object.assign(found, { two_dictionaries: scales && has, mixed_by_layer: false });
  const [given, name] = scales ? [scaling, "rope_scaling"] : [parameters, "rope_parameters"];
  const nested = keysOf(given).filter((key) => isDict(given[key]));
  if ("local_base" in family) {
    const proper = nested.filter((key) => ["full_attention", "sliding_attention"].includes(key));
    found.mixed_by_layer = scales ? has || nested.length > 0 : proper.length !== Object.keys(parameters).length;
    const byType = scales ? { full_attention: scaling }
      : Object.fromEntries(proper.map((key) => [key, parameters[key]]));
    return ["full_attention", "sliding_attention"]
      .filter((key) => !found.types?.length || found.types.includes(key))
      .map((key) => tableFacts(reading, byType[key] ?? {}, name, family, key));
  }
  if (!nested.length) return [tableFacts(reading, given, name, family, null)];
  const types = Object.keys(family).length ? [] : found.types ?? [];
  const stray = keysOf(given).find((key) => !nested.includes(key) || !types.includes(key)) ?? null;
  return nested.map((key) => tableFacts(reading, given[key], name, family, key, stray));
}

function tableFacts(reading, given, dictionary, family, layers, stray = /** @type {string | null} */ (null)) {
  const { rules } = reading;
  const table = facts(reading.facts, take(reading, given, rules.tableFacts));
  const asked = first(table.rope_type, table.old_type, "default");
  const kind = own(family.renamed ?? {}, asked) ?? asked;
  const known = own(rules.kinds, kind);
  Object.assign(table, {
    layer_type: layers,
    part: stray === null ? layers : shortText(stray),
    stray_layers: stray !== null,
    kind,
    title: known?.title ?? null,
    types_differ: isGiven(table.rope_type) && isGiven(table.old_type) && table.rope_type !== table.old_type,
    type_not_taken: "only" in family && !family.only.includes(kind),
    dictionary,
    asks_head_dim: family.asks_head_dim ?? false,
    scaling_assumed: !Object.keys(given).length && (family.scaling ?? false),
  });
  ropeKeys(reading, given, dictionary, kind, family);
  Object.assign(table, baseAndShare(table, family, layers));
  Object.assign(table, lengthsOf(table, rules));
  Object.assign(table, ofKind(table));
  return Object.assign(table, unusualBase(table.base, family, layers));
}

function ropeKeys(reading, given, dictionary, kind, family) {
  const { kinds } = reading.rules;
  const known = own(kinds, kind);
  const everywhere = new Set(Object.values(kinds).flatMap(({ keys }) => keys));
  for (const key of keysOf(given)) {
    if (known && (known.keys.includes(key) || family.also?.includes(key))) continue;
    const told = { key: shortText(key), kind: shortText(kind), dictionary };
    if (everywhere.has(key)) {
      if (known && given[key] !== null) say(reading, "other-kind", told);
    } else if (!isDict(given[key])) say(reading, "unknown-rope-key", told);
  }
}

function baseAndShare(table, family, layers) {
  const local = layers === "sliding_attention" && "local_base" in family;
  const given = first(table.rope_base, local ? table.local_base : table.given_base);
  const told = first(table.rope_fraction, table.given_fraction);
  const unread = Object.keys(family).length > 0 && !family.shares && table.kind === "default";
  const fraction = unread ? 1 : first(told, family.fraction, 1);
  const turning = table.head_dim === null ? null : Math.floor(table.head_dim * fraction);
  const proportional = table.kind === "proportional";
  const rotary = proportional ? table.head_dim : turning;
  const half = turning === null ? null : turning / 2;
  return {
    base: first(given, local ? family.local_base : family.base),
    base_given: given !== null,
    fraction,
    share_unread: unread && told !== null && told !== 1,
    told_fraction: told,
    rotary_dim: rotary,
    rotating_pairs: proportional && half !== null ? Math.floor(half) : half,
    pairs: rotary === null ? null : rotary / 2,
  };
}

// The trained length and the target length, as far as the file specifies them.
function lengthsOf(table, rules) {
  const { kind, maximum, factor } = table;
  const given = first(table.file_original, table.rope_original, table.assumed_original);
  const original = rules.withOriginal.includes(kind) ? first(given, maximum) : kind === "dynamic" ? maximum : given;
  const trained = ["default", "proportional"].includes(kind) ? maximum : kind === "linear" ? given : original;
  let target = maximum;
  if (kind === "dynamic"
    || (["yarn", "linear"].includes(kind) && trained && maximum !== null && !(maximum > trained))) {
    target = quantity(["*", "factor", "trained"], { factor, trained });
  } else if (kind === "linear" && trained === null) target = null;
  return {
    original,
    original_given: given,
    trained,
    target: target === null ? null : Math.floor(target),
    implied: quantity(["/", "maximum", "original"], { maximum, original: given }),
    inverse: quantity(["/", 1, "factor"], table),
    shorter: quantity(["/", "maximum", "factor"], table),
    longer: quantity(["*", "maximum", "factor"], table),
  };
}

// The facts that only certain rope types require.
function ofKind(table) {
  const lists = [...(table.short_factors ?? []), ...(table.long_factors ?? [])];
  const [begin, end] = rampOf(table);
  return {
    fast: first(table.beta_fast, 32),
    slow: first(table.beta_slow, 1),
    one_mscale: (table.mscale === null) !== (table.mscale_all_dim === null),
    short_count: table.short_factors?.length ?? null,
    long_count: table.long_factors?.length ?? null,
    least_in_lists: lists.length ? lists.reduce((least, one) => Math.min(least, one)) : null,
    section_sum: quantity(["sum", "sections"], table),
    ramp_begin: begin,
    ramp_end: end,
  };
}

// The pair indices at which the ramp in YaRN's code begins and ends.
function rampOf({ original, base, rotary_dim: dim, kind, beta_fast, beta_slow, truncate }) {
  if (![original, base, dim].every(isGiven) || base <= 1 || kind !== "yarn") return [null, null];
  const at = (turns) => (dim * Math.log(original / (2 * Math.PI * turns))) / (2 * Math.log(base));
  const [begin, end] = [at(first(beta_fast, 32)), at(first(beta_slow, 1))];
  return truncate === false ? [Math.max(begin, 0), Math.min(end, dim - 1)]
    : [Math.max(Math.floor(begin), 0), Math.min(Math.ceil(end), dim - 1)];
}

function unusualBase(base, { usual = {} }, layers) {
  const known = Object.entries(usual);
  if (!known.length || base === null || layers === "sliding_attention") return { unusual_base: false, usual: null };
  return {
    unusual_base: known.every(([one]) => Number(one) !== base),
    usual: known.map(([one, who]) => `${withCommas(one)} (${who})`),
  };
}

// ---- Sentences and findings ----

function doubtsOf(reading, found, of) {
  const holding = reading.rules.doubts.filter((doubt) => doubt.of === of && isTrue(doubt.when, found));
  for (const { level, name, says } of holding) {
    const said = fill(says, found);
    const isNew = reading.findings.every(([, one, other]) => one !== name || other !== said);
    if (isNew) reading.findings.push([level, name, said]);
  }
  return holding.some(({ stops }) => stops);
}

export function sentences(table, found) {
  const said = new Map();
  for (const [subject, when, sentence] of table) {
    if (isTrue(when, found)) said.set(subject, [...(said.get(subject) ?? []), fill(sentence, found)]);
  }
  return [...said].map(([subject, parts]) => [subject, parts.join(" ")]);
}

// Reads a text, and derives all facts about its tables except those that have to be computed. `length` is the number of
// tokens that the reader asks about, or null.
export function readConfig(text, rules, length) {
  const reading = readFile(parsedConfig(text, rules), rules);
  const stops = [doubtsOf(reading, reading.facts, "file"), ...reading.tables.map((table) => {
    const windowed = table.layer_type === "sliding_attention"
      || (table.layer_type === null && table.layers !== null && table.windowed_layers === table.layers);
    Object.assign(table, { reach_window: windowed ? table.window : null, asked: length });
    if (length !== null) table.target = length;
    return doubtsOf(reading, table, "table");
  })];
  reading.stopped ||= stops.some(Boolean);
  return reading;
}
