// The small language model, written in plain loops. It takes bytes and returns the number of bits that each byte costs.

// The model's functions, beginning with the model itself. They must not use anything outside this list, because only
// their source is passed to a worker.
export const MODEL = [
  languageModel, weightsIn, sizesOf, readings, embedded, attended, fed, project, normed, rotatedRows, attentionOf,
  addMixed, costs,
];

// Builds a model from the stored weights: a safetensors file of int8 matrices with one scale per row.
export function languageModel(/** @type {ArrayBuffer} */ stored) {
  const model = sizesOf(weightsIn(stored));
  return {
    run: (what) => readings(model, what),
    // The attention weights of a head at position m of a text that has been read: one weight for each of the bytes 0 …
    // m.
    attention(scores, layer, head, m) {
      const row = new Float32Array(m + 1);
      attentionOf(scores[layer], model.headDim, model.dim, head, m, row);
      return row;
    },
  };
}

// The file's header, and a function that reads the weights with a given name.
function weightsIn(stored) {
  const headerSize = Number(new DataView(stored).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(stored, 8, headerSize)));
  const bytesOf = (name) => {
    const [from, to] = header[name].data_offsets;
    return stored.slice(8 + headerSize + from, 8 + headerSize + to);
  };
  const weightsOf = (name) => {
    if (header[name].dtype === "F32") return new Float32Array(bytesOf(name));
    const columns = header[name].shape[1];
    const steps = new Int8Array(bytesOf(name));
    const scales = new Float32Array(bytesOf(`${name}.scales`));
    const weights = new Float32Array(steps.length);
    for (let i = 0; i < weights.length; i += 1) weights[i] = steps[i] * scales[Math.floor(i / columns)];
    return weights;
  };
  return { header, weightsOf };
}

// The weights, arranged by their role in the model, and the model's sizes.
function sizesOf({ header, weightsOf }) {
  const heads = Number(header.__metadata__.n_heads);
  const dim = header["embedding.weight"].shape[1];
  const layers = [];
  while (`layers.${layers.length}.mlp_norm.weight` in header) {
    const of = (name) => weightsOf(`layers.${layers.length}.${name}.weight`);
    layers.push({
      norm: of("attention_norm"), mlpNorm: of("mlp_norm"),
      query: of("attention.q_proj"), key: of("attention.k_proj"), value: of("attention.v_proj"),
      out: of("attention.out_proj"), gate: of("mlp.gate_proj"), up: of("mlp.up_proj"), down: of("mlp.down_proj"),
    });
  }
  const [embedding, lastNorm] = [weightsOf("embedding.weight"), weightsOf("norm.weight")];
  return { heads, dim, headDim: dim / heads, hidden: layers[0].gate.length / dim, embedding, lastNorm, layers };
}

// A generator that reads a text. Several times a second it yields the share of the work that is done. It returns the
// bits of each byte except the first, the most likely byte at each position and its probability, and `scores`, which
// contains what attention() needs for each layer.
//   bytes; theta: radians per position for each pair; scale: a factor on each query's scores
//   far: null, or { window, query, key }: beyond the distance `window`, queries and keys have these positions
function* readings(model, { bytes, theta, scale, far }) {
  const { dim, hidden, layers } = model;
  const length = bytes.length - 1;
  const rows = 4 * Math.ceil(length / 4);
  const room = (width) => new Float32Array(rows * width);
  const [x, y, q, k, v, mixed] = Array.from({ length: 6 }, () => room(dim));
  const rooms = { length, rows, x, y, q, k, v, mixed, gate: room(hidden), up: room(hidden) };
  const kept = [];
  embedded(model, bytes, rooms);
  for (const layer of layers) {
    const begun = kept.length / layers.length;
    const passed = (share) => begun + share / layers.length;
    kept.push(yield* attended(model, layer, rooms, { theta, scale, far }, passed));
    yield* fed(model, layer, rooms, passed);
  }
  normed(x, model.lastNorm, y);
  const logits = room(256);
  project(y, 0, rows, model.embedding, dim, logits, 256);
  return { ...costs(logits, bytes), scores: kept };
}

// The embedding rows of all bytes except the last.
function embedded({ embedding, dim }, bytes, { length, x }) {
  for (let m = 0; m < length; m += 1) x.set(embedding.subarray(bytes[m] * dim, (bytes[m] + 1) * dim), m * dim);
}

// Adds a layer's attention to x. Yields the share of the work that is done, and returns what attention() needs.
function* attended({ heads, dim, headDim }, layer, rooms, { theta, scale, far }, passed) {
  const { length, rows, x, y, q, k, v, mixed } = rooms;
  normed(x, layer.norm, y);
  for (const [matrix, out] of [[layer.query, q], [layer.key, k], [layer.value, v]]) {
    project(y, 0, rows, matrix, dim, out, dim);
    yield passed(0.1);
  }
  const positions = Array.from({ length }, (_, m) => m);
  const turned = (from, places) => rotatedRows(from, places, theta, headDim, dim);
  const scores = {
    near: { query: turned(q, positions), key: turned(k, positions) },
    far: far && { query: turned(q, far.query), key: turned(k, far.key) },
    window: far?.window,
    scale,
  };
  const row = new Float64Array(length);
  mixed.fill(0);
  for (let m = 0; m < length; m += 1) {
    for (let head = 0; head < heads; head += 1) {
      attentionOf(scores, headDim, dim, head, m, row);
      addMixed(row, v, headDim, dim, head, m, mixed);
    }
    if (m % 64 === 63) yield passed(0.1 + (0.4 * m) / length);
  }
  project(mixed, 0, rows, layer.out, dim, y, dim);
  for (let i = 0; i < x.length; i += 1) x[i] += y[i];
  return scores;
}

// Adds a layer's feed-forward part to x, one block of rows at a time. Yields the share of the work that is done.
function* fed({ dim, hidden }, layer, { rows, x, y, gate, up, mixed }, passed) {
  const block = 64;
  normed(x, layer.mlpNorm, y);
  for (let r = 0; r < rows; r += block) {
    const last = Math.min(rows, r + block);
    project(y, r, last, layer.gate, dim, gate, hidden);
    project(y, r, last, layer.up, dim, up, hidden);
    for (let i = r * hidden; i < last * hidden; i += 1) gate[i] = (gate[i] / (1 + Math.exp(-gate[i]))) * up[i];
    project(gate, r, last, layer.down, hidden, mixed, dim);
    yield passed(0.5 + (0.5 * r) / rows);
  }
  for (let i = 0; i < x.length; i += 1) x[i] += mixed[i];
}

// Multiplies rows first … last − 1 of x by the matrix, and writes the result to out. Values are read once for every
// four rows and two columns.
function project(x, first, last, matrix, from, out, to) {
  for (let r = first; r < last; r += 4) {
    for (let o = 0; o < to; o += 2) {
      let [a0, a1, a2, a3, b0, b1, b2, b3] = [0, 0, 0, 0, 0, 0, 0, 0];
      for (let i = 0, at = r * from, w = o * from; i < from; i += 1, at += 1, w += 1) {
        const one = matrix[w];
        const other = matrix[w + from];
        const x0 = x[at];
        const x1 = x[at + from];
        const x2 = x[at + 2 * from];
        const x3 = x[at + 3 * from];
        a0 += one * x0;
        b0 += other * x0;
        a1 += one * x1;
        b1 += other * x1;
        a2 += one * x2;
        b2 += other * x2;
        a3 += one * x3;
        b3 += other * x3;
      }
      const at = r * to + o;
      out[at] = a0;
      out[at + 1] = b0;
      out[at + to] = a1;
      out[at + to + 1] = b1;
      out[at + 2 * to] = a2;
      out[at + 2 * to + 1] = b2;
      out[at + 3 * to] = a3;
      out[at + 3 * to + 1] = b3;
    }
  }
}

// Divides each row by its root mean square, and multiplies each column by its norm weight.
function normed(x, weights, out) {
  const dim = weights.length;
  for (let row = 0; row < x.length; row += dim) {
    let squares = 0;
    for (let i = 0; i < dim; i += 1) squares += x[row + i] * x[row + i];
    const factor = 1 / Math.sqrt(squares / dim + 1e-6);
    for (let i = 0; i < dim; i += 1) out[row + i] = x[row + i] * factor * weights[i];
  }
}

// Rotates entries i and i + pairs of every head in each row by pair i's angle at that row's position.
function rotatedRows(x, positions, theta, headDim, dim) {
  const pairs = headDim / 2;
  const out = new Float32Array(x.length);
  for (let row = 0; row < positions.length; row += 1) {
    for (let i = 0; i < pairs; i += 1) {
      const cos = Math.cos(positions[row] * theta[i]);
      const sin = Math.sin(positions[row] * theta[i]);
      for (let at = row * dim + i; at < (row + 1) * dim; at += headDim) {
        out[at] = x[at] * cos - x[at + pairs] * sin;
        out[at + pairs] = x[at + pairs] * cos + x[at] * sin;
      }
    }
  }
  return out;
}

// Writes one query's attention weights to `row`. They are the softmax of the scaled scores. The scores of distant keys
// use the rotation `far` if there is one, and all others use `near`.
function attentionOf({ near, far, window, scale }, headDim, dim, head, m, row) {
  const start = head * headDim;
  let highest = -Infinity;
  for (let n = 0; n <= m; n += 1) {
    const from = far && m - n >= window ? far : near;
    const query = from.query;
    const key = from.key;
    let score = 0;
    for (let i = 0, q = m * dim + start, k = n * dim + start; i < headDim; i += 1, q += 1, k += 1) {
      score += query[q] * key[k];
    }
    row[n] = (score * scale[m]) / Math.sqrt(headDim);
    if (row[n] > highest) highest = row[n];
  }
  let total = 0;
  for (let n = 0; n <= m; n += 1) {
    row[n] = Math.exp(row[n] - highest);
    total += row[n];
  }
  for (let n = 0; n <= m; n += 1) row[n] /= total;
}

// Adds a head's values, averaged with these weights, to one query's row.
function addMixed(weights, v, headDim, dim, head, m, mixed) {
  const [start, end] = [m * dim + head * headDim, m * dim + (head + 1) * headDim];
  for (let n = 0; n <= m; n += 1) {
    const weight = weights[n];
    for (let i = start, j = n * dim + head * headDim; i < end; i += 1, j += 1) mixed[i] += weight * v[j];
  }
}

// Computes from the logits how many bits each byte cost, and the most likely byte with its probability.
function costs(logits, bytes) {
  const length = bytes.length - 1;
  const [bits, top, share] = [new Float32Array(length), new Uint8Array(length), new Float32Array(length)];
  for (let m = 0; m < length; m += 1) {
    const here = logits.subarray(256 * m, 256 * (m + 1));
    for (let byte = 1; byte < 256; byte += 1) if (here[byte] > here[top[m]]) top[m] = byte;
    const total = here.reduce((sum, one) => sum + Math.exp(one - here[top[m]]), 0);
    share[m] = 1 / total;
    bits[m] = (Math.log(total) + here[top[m]] - here[bytes[m + 1]]) / Math.LN2;
  }
  return { bits, top, share };
}
