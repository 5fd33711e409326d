// The small language in which the rules are written: conditions, and sentences that contain facts.
// ropebook.explain.language does the same in Python. A missing fact is undefined or null.

const MOST_ITEMS = 8; // the maximum number of items shown for a list in a file
const LONGEST_SHOWN = 60; // the maximum number of characters shown for a text in a file
const UNKNOWN = "unknown";

const COMPARED = {
  ">": (one, other) => one > other,
  ">=": (one, other) => one >= other,
  "<": (one, other) => one < other,
  "<=": (one, other) => one <= other,
  near: (one, other) => Math.abs(one - other) <= 1e-6 * Math.abs(other),
};

/** @type {Record<string, (condition: any[], facts: any) => boolean>} */
const CONDITIONS = {
  and: (rest, facts) => rest.every((one) => isTrue(one, facts)),
  or: (rest, facts) => rest.some((one) => isTrue(one, facts)),
  not: ([one], facts) => !isTrue(one, facts),
  given: (rest, facts) => rest.every((one) => isGiven(facts[one])),
  missing: (rest, facts) => rest.every((one) => !isGiven(facts[one])),
  among: ([fact, options], facts) => options.includes(facts[fact]),
};

export function isGiven(found) {
  return found !== undefined && found !== null;
}

// Whether a condition holds for the given facts.
export function isTrue(condition, facts) {
  if (typeof condition === "boolean") return condition;
  if (typeof condition === "string") return facts[condition] === true;
  const [word, ...rest] = condition;
  if (word in CONDITIONS) return CONDITIONS[word](rest, facts);
  const [left, right] = rest.map((one) => quantity(one, facts));
  return left !== null && right !== null && COMPARED[word](left, right);
}

// Evaluates an expression with the given facts. Returns null if it can't be evaluated.
export function quantity(expression, facts) {
  if (typeof expression === "string") return typeof facts[expression] === "number" ? facts[expression] : null;
  if (!Array.isArray(expression)) return expression;
  const [word, ...rest] = expression;
  if (word === "sum" || word === "count") {
    const items = facts[rest[0]];
    if (!Array.isArray(items)) return null;
    return word === "sum" ? items.reduce((sum, one) => sum + one, 0) : items.length;
  }
  const [left, right] = rest.map((one) => quantity(one, facts));
  if (left === null || right === null || (word !== "*" && right === 0)) return null;
  if (word === "*") return left * right;
  return word === "/" ? left / right : left % right;
}

// Inserts the facts into a sentence.
export function fill(sentence, facts) {
  return sentence.replace(/\{(\w+)(:code)?\}/g, (_, name, code) => (code ? codedFact : shownFact)(facts[name]));
}

// Formats a fact for readers; codedFact formats it for a line of code.
export function shownFact(found) {
  if (!Array.isArray(found)) return typeof found === "number" ? numberText(found, 4, true) : codedFact(found);
  return found.slice(0, MOST_ITEMS).map(shownFact).join(", ") + (found.length > MOST_ITEMS ? ", …" : "");
}

export function codedFact(found) {
  if (!isGiven(found)) return UNKNOWN;
  if (typeof found === "string") return shortText(found);
  if (Array.isArray(found)) return found.map(codedFact).join(", ");
  return typeof found === "number" ? numberText(found, 6) : String(found);
}

// A text from the file, shortened if necessary and without invisible characters.
export function shortText(text) {
  const letters = [...text];
  const plain = letters.slice(0, LONGEST_SHOWN).join("").replace(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Zs}]/gu, " ");
  return plain + (letters.length > LONGEST_SHOWN ? "…" : "");
}

export function withCommas(digits) {
  return digits.replace(/\B(?=(\d{3})+$)/g, ",");
}

// Formats a number with this many significant digits. Integers are not rounded.
export function numberText(found, digits, commas = false) {
  const size = Math.abs(found);
  const grouped = (text) => (commas ? withCommas(text) : text);
  if (size < 1e15 && Number.isInteger(found)) return grouped(String(found));
  const bare = (text) => (text.includes(".") ? text.replace(/0+$/, "").replace(/\.$/, "") : text);
  const power = Number(found.toExponential(6).split("e")[1]);
  if (power < -4 || power >= 15) {
    const [mantissa, exponent] = found.toExponential(digits - 1).split("e");
    return `${bare(mantissa)}e${Number(exponent)}`;
  }
  const [whole, ...rest] = found.toFixed(Math.max(0, digits - 1 - power)).split(".");
  return bare([grouped(whole), ...rest].join("."));
}
