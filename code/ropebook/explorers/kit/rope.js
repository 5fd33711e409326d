// The arithmetic of the interactive figures. This file only computes, and doesn't use the page. Angles are in radians,
// and everything is float64. The functions have the same names as in the Python modules.

// ---- Reproducible pseudorandom numbers ----

// FNV-1a, 32 bits: a hash of the text's UTF-8 bytes.
export function fnv1a(text) {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

// mulberry32: numbers in [0, 1). The k-th number depends only on seed + k·0x6d2b79f5.
export function uniforms(seed, count) {
  const out = new Float64Array(count);
  for (let k = 1; k <= count; k += 1) {
    const state = (seed + Math.imul(k, 0x6d2b79f5)) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    out[k - 1] = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  }
  return out;
}

// Standard normal numbers by Box–Muller. The same label always gives the same numbers, and a longer list begins with
// the numbers of a shorter one.
export function normals(label, count) {
  const flat = uniforms(fnv1a(label), count + (count % 2));
  const out = new Float64Array(count);
  for (let i = 0; i < count; i += 2) {
    const radius = Math.sqrt(-2 * Math.log(1 - flat[i])); // 1 − flat[i] is never 0
    const angle = 2 * Math.PI * flat[i + 1];
    out[i] = radius * Math.cos(angle);
    if (i + 1 < count) out[i + 1] = radius * Math.sin(angle);
  }
  return out;
}

export function wordVector(word, dim) {
  return normals(`word ${word}`, dim);
}

// A dim × dim matrix, row by row. Its entries have variance 1/dim, so on average it preserves the length of a vector.
export function weightMatrix(name, dim) {
  return normals(`weights ${name}`, dim * dim).map((value) => value / Math.sqrt(dim));
}

// A permutation of 0 … count − 1 (Fisher–Yates), determined by the seed.
export function permutation(count, seed) {
  const order = Array.from({ length: count }, (_, i) => i);
  const draws = uniforms(seed, count);
  for (let i = count - 1; i > 0; i -= 1) {
    const j = Math.floor(draws[i] * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

// Makes a function remember its last result, because most dial changes leave most of a figure unchanged. The arguments
// must be numbers, strings or booleans, and callers must not modify the result.
export function lastCall(compute) {
  let known;
  let result;
  return (...given) => {
    const asked = JSON.stringify(given);
    if (asked !== known) {
      result = compute(...given);
      known = asked;
    }
    return result;
  };
}

// Rounds coordinates to two decimals. The resulting text is shorter than that of toFixed, and faster to produce.
export function hundredths(value) {
  return Math.round(100 * value) / 100;
}

// ---- Positions and frequencies ----

// θ_i = base^(−2i/dim) for i = 0 … dim/2 − 1.
export function invFreq(dim, base) {
  return Float64Array.from({ length: dim / 2 }, (_, i) => base ** ((-2 * i) / dim));
}

// Cosine and sine of theta · (start + k·step) for k = 0 … count − 1, by the angle-sum formulas. One rotation by δ =
// theta·step takes four products, which is cheaper than a cosine. It is written as x − (αx + βy) with α = 2 sin²(δ/2)
// and β = sin δ, because cos δ would lose the digits of a small δ. Every 64th angle is computed from scratch, so that
// rounding errors accumulate over at most 63 rotations.
export function cosSinGrid(theta, start, step, count, cos = new Float64Array(count), sin = new Float64Array(count)) {
  const half = Math.sin((theta * step) / 2);
  const alpha = 2 * half * half;
  const beta = Math.sin(theta * step);
  let c = 0;
  let s = 0;
  for (let k = 0; k < count; k += 1) {
    if (k % 64 === 0) {
      const angle = theta * (start + k * step);
      c = Math.cos(angle);
      s = Math.sin(angle);
    } else {
      const turned = c - (alpha * c + beta * s);
      s -= alpha * s - beta * c;
      c = turned;
    }
    cos[k] = c;
    sin[k] = s;
  }
  return { cos, sin };
}

// Σ_i a_i cos θ_iΔ + b_i sin θ_iΔ for Δ = start … start + count − 1. If every a_i is 1 and every b_i is 0, this is the
// distance kernel.
export function fourierSum(theta, a, b, start, count) {
  return fourierSums(theta, [{ a, b }], start, 1, count)[0];
}

// Returns the sum of `fourierSum` for each of several waves { a, b }, but at Δ = start + k·step, in blocks of 64. We
// write Δ = A ± B, where A is the middle of a block. In (a cos θA + b sin θA) cos θB ± (b cos θA − a sin θA) sin θB,
// each product is used for two distances. Unlike in successive rotations, no product has to wait for another.
export function fourierSums(theta, waves, start, step, count) {
  const half = 32;
  const blocks = Math.ceil(count / (2 * half));
  const pair = (size) => ({ cos: new Float64Array(size), sin: new Float64Array(size) });
  const sums = waves.map(() => ({ even: new Float64Array(blocks * half), odd: new Float64Array(blocks * half) }));
  const [middle, middle2, factor, factor2] = [blocks, blocks, blocks, blocks].map(pair);
  const [place, place2] = [half, half].map(pair);
  const grids = (one, atMiddles, atPlaces) => {
    cosSinGrid(one, start + (half - 0.5) * step, 2 * half * step, blocks, atMiddles.cos, atMiddles.sin);
    cosSinGrid(one, step / 2, step, half, atPlaces.cos, atPlaces.sin);
  };
  for (let i = 0; i < theta.length; i += 2) {
    const single = i + 1 === theta.length;
    grids(theta[i], middle, place);
    if (!single) grids(theta[i + 1], middle2, place2);
    for (let w = 0; w < waves.length; w += 1) {
      const { a, b } = waves[w];
      weigh(middle, a[i], b[i], factor);
      weigh(middle2, single ? 0 : a[i + 1], single ? 0 : b[i + 1], factor2);
      addProducts(sums[w], factor, place, factor2, place2);
    }
  }
  return sums.map(({ even, odd }) => unfolded(even, odd, half).subarray(0, count));
}

export function weigh({ cos, sin }, a, b, out) {
  for (let k = 0; k < cos.length; k += 1) {
    out.cos[k] = a * cos[k] + b * sin[k];
    out.sin[k] = b * cos[k] - a * sin[k];
  }
}

// Adds two pairs at a time, so that the sums are read and written only half as often.
export function addProducts({ even, odd }, factor, { cos, sin }, factor2, { cos: cos2, sin: sin2 }) {
  for (let at = 0, k = 0; k < even.length; at += 1) {
    const [c, s, c2, s2] = [factor.cos[at], factor.sin[at], factor2.cos[at], factor2.sin[at]];
    for (let within = 0; within < cos.length; within += 1, k += 1) {
      even[k] += c * cos[within] + c2 * cos2[within];
      odd[k] += s * sin[within] + s2 * sin2[within];
    }
  }
}

// Combines the even and odd parts of a function into its values. In each block of 2·half values, these are even + odd
// after the middle and even − odd, mirrored, before it.
export function unfolded(even, odd, half) {
  const out = new Float64Array(2 * even.length);
  for (let middle = half, k = 0; middle < out.length; middle += 2 * half) {
    for (let within = 0; within < half; within += 1, k += 1) {
      out[middle + within] = even[k] + odd[k];
      out[middle - 1 - within] = even[k] - odd[k];
    }
  }
  return out;
}

// The sinusoidal vector of one position: sin(position·θ_i) at 2i, cos(position·θ_i) at 2i + 1.
export function sinusoidalEncoding(position, dim, base) {
  const out = new Float64Array(dim);
  invFreq(dim, base).forEach((theta, i) => {
    out[2 * i] = Math.sin(position * theta);
    out[2 * i + 1] = Math.cos(position * theta);
  });
  return out;
}

// ---- Attention ----

export function dot(a, b) {
  let sum = 0;
  for (let i = 0; i < a.length; i += 1) sum += a[i] * b[i];
  return sum;
}

// Multiplies the row vector x by a dim × dim matrix stored row by row.
export function times(x, matrix) {
  const out = new Float64Array(x.length);
  for (let i = 0; i < x.length; i += 1) {
    for (let j = 0; j < x.length; j += 1) out[j] += x[i] * matrix[i * x.length + j];
  }
  return out;
}

// −Infinity marks a hidden key. At least one key must be visible.
export function softmax(scores) {
  let highest = -Infinity;
  for (const score of scores) if (score > highest) highest = score;
  const powers = [];
  let total = 0;
  for (const score of scores) {
    const power = Math.exp(score - highest);
    powers.push(power);
    total += power;
  }
  for (let i = 0; i < powers.length; i += 1) powers[i] /= total;
  return powers;
}

// Takes lists of vectors and returns a row of weights for each query. If `causal`, query m sees only the keys n ≤ m.
export function attentionWeights(queries, keys, causal, scale) {
  return queries.map((q, m) => softmax(keys.map((k, n) => (causal && n > m ? -Infinity : dot(q, k) * scale))));
}

export function attentionOutputs(weights, values) {
  return weights.map((row) => {
    const out = new Float64Array(values[0].length);
    row.forEach((weight, n) => values[n].forEach((value, i) => { out[i] += weight * value; }));
    return out;
  });
}

// The Frobenius norm of diag(p) − p pᵀ, whose entries are p_i Σ_{j≠i} p_j on the diagonal and −p_i p_j elsewhere. We
// compute the sums over j≠i as running sums from both ends, because 1 − p_i loses digits when p_i is close to 1.
const after = []; // reused between calls, because allocating a new list would cost more than computing its sums
export function softmaxGradientNorm(p) {
  after[p.length - 1] = 0;
  for (let i = p.length - 2; i >= 0; i -= 1) after[i] = after[i + 1] + p[i + 1];
  let before = 0;
  let squaresBefore = 0;
  let total = 0;
  for (let i = 0; i < p.length; i += 1) {
    const square = p[i] * p[i];
    total += square * (before + after[i]) ** 2 + 2 * square * squaresBefore;
    before += p[i];
    squaresBefore += square;
  }
  return Math.sqrt(total);
}

// The number of values that are greater than the previous one and not less than the next one.
export function countMaxima(values) {
  let found = 0;
  for (let k = 1; k + 1 < values.length; k += 1) {
    if (values[k] > values[k - 1] && values[k] >= values[k + 1]) found += 1;
  }
  return found;
}

// ---- Fewer samples than positions ----

// Divides `count` positions into fewer buckets (for example, pixels). Bucket b covers edges[b] … edges[b + 1] − 1.
export function evenEdges(count, buckets) {
  return Array.from({ length: buckets + 1 }, (_, b) => Math.floor((b * count) / buckets));
}

// The minimum and maximum in each bucket. (A line through every tenth sample would show waves that don't exist.)
export function minMaxBand(values, edges) {
  const low = [];
  const high = [];
  for (let b = 0; b + 1 < edges.length; b += 1) {
    let least = values[edges[b]];
    let greatest = least;
    for (let k = edges[b] + 1; k < edges[b + 1]; k += 1) {
      if (values[k] < least) least = values[k];
      if (values[k] > greatest) greatest = values[k];
    }
    low.push(least);
    high.push(greatest);
  }
  return { low, high };
}

// Moves a hand, which rotates by theta per position, from `position` by this many radians, in whichever direction is
// shorter. Returns the closest integer position, 0 … most.
export function turnedOn(position, theta, radians, most) {
  const shorter = radians - 2 * Math.PI * Math.round(radians / (2 * Math.PI));
  return Math.min(most, Math.max(0, Math.round(position + shorter / theta)));
}

// The number of samples of a wave per position. The number is a power of 2, so coordinates are not rounded. A span
// above `fine` has one sample per position; a shorter span has about `fine` samples in total.
export function samplesPerStep(span, fine) {
  return span > fine ? 1 : 1 << (31 - Math.clz32(fine / span));
}

// The number of pairs that complete a turn within a length.
export function turnedPairs(theta, length) {
  const slow = theta.findIndex((one) => one * (length - 1) < 2 * Math.PI);
  return slow < 0 ? theta.length : slow;
}
