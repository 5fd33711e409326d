// Reads numbers the way people write them: 10^4, 10⁴, 1e4, 10,000, 4k, pi/4, 2π. This file doesn't use the page.

const RAISED_DIGITS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const PLAIN_NUMBER = /(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?/yi;
const RAISED_TO = /\^([+-]?(?:\d+\.?\d*|\.\d+))/y;
const SIZES_OF_TEXT = { k: 1024, M: 1024 ** 2 };

// Returns the number that `text` denotes, or throws an Error that explains why it isn't one. In token counts (`whole`),
// 4k means 4 · 1024, as in model names. Elsewhere k is rejected, because it could also mean a thousand.
export function readNumber(text, whole = false) {
  const given = text.trim();
  const unclear = (why) => new Error(`“${given}” is unclear: ${why}`);
  const [, count, size] = /^(\d+) ?([kKmM])$/.exec(given) ?? [];
  if (size && whole && size in SIZES_OF_TEXT) return Number(count) * SIZES_OF_TEXT[size];
  if (size && whole) throw unclear("write k for 1,024 and M for 1,024²");
  if (size) throw unclear(`is ${size} a thousand or 1,024? Write the number out`);
  if (whole && /^\d{1,3}(\.\d{3})+$/.test(given)) throw unclear("write thousands with a comma or no separator");
  let plain = given;
  if (plain.includes(",")) {
    if (!/^[+−-]?\d{1,3}(,\d{3})+(\.\d+)?$/.test(plain)) throw unclear("a comma must come before three digits");
    plain = plain.replaceAll(",", "");
  }
  plain = plain.replaceAll("−", "-").replace(/[·×]/g, "*").replace(/π/g, "pi")
    .replace(new RegExp(`⁻?[${RAISED_DIGITS}]+`, "g"), (raised) => `^${[...raised].map(digitOf).join("")}`);
  if (/\/[^*/]*\d ?pi/.test(plain)) throw unclear("does the slash end before π?");
  const value = productOf(plain.replace(/(\d) ?pi/g, "$1*pi").replace(/ ?([*/^]) ?/g, "$1"));
  if (!given) throw new Error("Write a number");
  if (Number.isNaN(value)) throw new Error(`“${text}” is not a number`);
  return value;
}

function digitOf(sign) {
  return sign === "⁻" ? "-" : String(RAISED_DIGITS.indexOf(sign));
}

// Evaluates a product or quotient of numbers and π, possibly with powers, from left to right. Returns NaN for any other
// text.
function productOf(text) {
  const [, sign, rest] = /^([+-]?)(.*)$/.exec(text) ?? [];
  let at = 0;
  const read = (form) => {
    form.lastIndex = at;
    const found = form.exec(rest);
    if (found) at = form.lastIndex;
    return found;
  };
  let value = NaN;
  for (let how = "*", first = true; how; first = false) {
    const atom = read(/pi/yi) ? Math.PI : Number(read(PLAIN_NUMBER)?.[0] ?? NaN);
    const power = read(RAISED_TO);
    const factor = power ? atom ** Number(power[1]) : atom;
    value = first ? factor : how === "*" ? value * factor : value / factor;
    how = read(/[*/]/y)?.[0];
  }
  return at === rest.length && Number.isFinite(value) ? (sign === "-" ? -value : value) : NaN;
}
