// Formats numbers for readers.

// Formats a number with three significant digits. Very small and very large numbers are written as 1.23 × 10⁻⁴.
export function tidy(value) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e3 && size < 1e5) return grouped(Math.round(value));
  if (size >= 1e-3 && size < 1e5) return value.toPrecision(size >= 100 ? Math.ceil(Math.log10(size + 1)) : 3)
    .replace("-", "−");
  const [mantissa, exponent] = value.toExponential(1).replace("-", "−").split("e");
  const raised = [...exponent.replace("+", "").replace("−", "-")].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  return `${mantissa} × 10${raised.join("")}`;
}

// Keeps what belongs together in one line, as in “Δ = 2” and “4.4 × 10⁻¹⁶”.
export function joined(text) {
  return text.replace(/ ([=×]) (?=\S)/g, "\u00a0$1\u00a0");
}

// 131072 → 131,072; for whole numbers and limits of dials
export function grouped(number) {
  return number.toLocaleString("en-US", { maximumFractionDigits: 20 }).replace("-", "−");
}

// 12 → ₁₂
export function lowered(number) {
  return [...String(number)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
}

// 1 place, 2 places
export function count(number, noun) {
  return `${grouped(number)} ${noun}${number === 1 ? "" : "s"}`;
}

// the only pair, both pairs, all 3 pairs
export function allOf(number, noun) {
  return ["", `the only ${noun}`, `both ${noun}s`][number] || `all ${number} ${noun}s`;
}

// Formats a number with a fixed number of decimals, and with a minus sign as wide as a plus sign. Zero has no sign.
export function exact(value, decimals = 3) {
  return value.toFixed(decimals).replace(/^-(?=[0.]+$)/, "").replace("-", "−");
}

export function percent(share) {
  return share === null ? "–" : `${Math.round(100 * share)}%`;
}

export function capital(text) {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
