// YaRN's ramp from pairs that are kept to pairs that are interpolated, as defined in its paper and in its code.

function within(value) {
  return Math.min(1, Math.max(0, value));
}

// The pair index at which a pair would complete this many turns within a length. It is usually fractional.
export function pairAt(turns, dim, length, base) {
  return (dim * Math.log(length / (2 * Math.PI * turns))) / (2 * Math.log(base));
}

// How much of each frequency is kept, from 0 to 1. In the paper, this is linear in the pair's turns within the length.
export function keptByTurns(theta, length, alpha, beta) {
  return theta.map((one) => within(((one * length) / (2 * Math.PI) - alpha) / (beta - alpha)));
}

// The pair indices at which the code's ramp begins and ends. Pairs complete β turns at the first and α turns at the
// second. `truncate` rounds both outwards.
export function rampEnds(dim, length, base, alpha, beta, truncate = true) {
  let [low, high] = [pairAt(beta, dim, length, base), pairAt(alpha, dim, length, base)];
  if (truncate) [low, high] = [Math.floor(low), Math.ceil(high)];
  return [Math.max(0, low), Math.min(dim - 1, high)];
}

// How much of each frequency is kept. In the code, this is linear in the pair's index between the ends of the ramp.
export function keptByIndex(theta, length, base, alpha, beta, truncate = true) {
  const [low, high] = rampEnds(2 * theta.length, length, base, alpha, beta, truncate);
  return theta.map((_, i) => 1 - within((i - low) / (high - low)));
}
