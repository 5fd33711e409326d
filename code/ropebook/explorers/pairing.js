// The channels of a query and a key in interleaved or half-split order. The figure shows which entries the rotation
// treats as pairs, and the effect on the score.

import { BASE, dials, MOST_POSITION } from "./pairing.py";
import { dot, invFreq, normals } from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { html, moveTo, put, svg } from "./kit/elements.js";
import { axis, levelsOf, scale, textWidth, titled } from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { across } from "./kit/hand.js";
import { explorer } from "./kit/mount.js";
import { named } from "./kit/naming.js";
import { panels } from "./kit/panels.js";

// The channel at each index of the half-split order: 0, 2, 4, … and then 1, 3, 5, …
function halfOrder(dim) {
  return Array.from({ length: dim }, (_, place) => (place < dim / 2 ? 2 * place : 2 * place - dim + 1));
}

// The indices that the rotation treats as pair 0, 1, …
function pairsOf(dim, layout) {
  return Array.from({ length: dim / 2 }, (_, i) => (layout === "half" ? [i, i + dim / 2] : [2 * i, 2 * i + 1]));
}

// The vector after rotating each pair counter-clockwise by position · θ_i.
function rotated(x, position, theta, pairs) {
  const out = new Float64Array(x.length);
  pairs.forEach(([one, other], i) => {
    const [c, s] = [Math.cos(position * theta[i]), Math.sin(position * theta[i])];
    out[one] = c * x[one] - s * x[other];
    out[other] = s * x[one] + c * x[other];
  });
  return out;
}

function compute({ permute_q: permuteQ, permute_k: permuteK, pairing, dim, m, n }) {
  const theta = invFreq(dim, BASE);
  const [q, k] = [normals("pairing q", dim), normals("pairing k", dim)];
  const scoresOf = (query, key, pairs) => {
    const turned = rotated(query, m, theta, pairs);
    return Array.from({ length: MOST_POSITION + 1 }, (_, at) => dot(turned, rotated(key, at, theta, pairs)));
  };
  const typed = Array.from({ length: dim }, (_, channel) => channel);
  const [qChannels, kChannels] = [permuteQ, permuteK].map((permute) => (permute ? halfOrder(dim) : typed));
  const [storedQ, storedK] = [qChannels.map((channel) => q[channel]), kChannels.map((channel) => k[channel])];
  const links = pairsOf(dim, pairing);
  const scores = scoresOf(storedQ, storedK, links);
  const references = scoresOf(q, k, pairsOf(dim, "interleaved"));
  return {
    qChannels, // the channel at each index
    kChannels,
    q: storedQ,
    k: storedK,
    links, // the indices that the rotation treats as pairs
    scores, // for keys at 0 … MOST_POSITION
    references, // the same scores with both vectors and the rotation interleaved
    score: scores[n],
    reference: references[n],
    difference: scores.reduce((most, score, at) => Math.max(most, Math.abs(score - references[at])), 0),
  };
}

// Finds the rotation's pairs that are true pairs of q, those that are true pairs of k, and the indices at which q and k
// contain the same channel.
function fits({ qChannels, kChannels, links }) {
  const whole = (channels) => links.map(([one, other]) => channels[one] >> 1 === channels[other] >> 1);
  const products = qChannels.map((channel, at) => channel === kChannels[at]);
  return { q: whole(qChannels), k: whole(kChannels), products };
}

// ---- On the page ----

const CELL = 36; // height of a cell
const GLIDE = 300; // how long the score takes to another curve, in ms

// Heights for a figure with the available height `most`: where the rows of q and k begin, where the arcs under k end,
// where the first line of the verdicts is, and the total height. If `most` is small, the gaps shrink, but not so far
// that the arcs reach the words. If it is very small, the arcs are also flatter: `rise` is their relative height.
function rowsOf(most) {
  const low = Math.min(1, Math.max(0, (374 - most) / 35));
  const flat = Math.min(1, Math.max(0, (339 - most) / 76));
  const q = 106 - 9 * low - 28 * flat;
  const k = q + CELL + 54 - 14 * low - 14 * flat;
  const arcs = k + CELL + 58 - 4 * low - 28 * flat;
  return { q, k, arcs, rise: 1 - 0.55 * flat, words: arcs + 28 - 6 * flat, end: arcs + 84 - 8 * low - 6 * flat };
}

function build(stage, app) {
  const shown = panels(app, ["Channels", "Score"], { across: 600, first: 1 });
  const picture = svg("svg", { role: "img", "aria-label": app.alt, class: "rb-moves" });
  const handle = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, handle));
  let box; // the box of the curves
  const grip = across(app, handle, dials.find(({ trait }) => trait === "n"), {
    label: "Position of the key",
    ends: () => [box.left, box.right],
  });
  let pieces; // the cells of q and k by channel, kept so that they can be animated
  const glide = glider(app, { takes: GLIDE, nearby: Infinity });
  const behind = svg("g");
  const channels = svg("g");
  const front = svg("g");
  // Highlights the pair under the pointer.
  const point = (event) => {
    const pair = event.type === "pointerleave" ? undefined : event.target.closest("[data-pair]")?.dataset.pair;
    for (const node of picture.querySelectorAll("[data-pair]")) {
      node.classList.toggle("rb-faint", pair !== undefined && node.dataset.pair !== pair);
    }
  };
  app.listen(picture, "pointerover", point);
  app.listen(picture, "pointerleave", point);
  picture.append(channels, front);

  return ({ data, values: now, width, most, jump }) => {
    const only = shown(width);
    const wide = only === null;
    const fresh = pieces?.[0].length !== now.dim;
    picture.classList.toggle("rb-at-once", jump || fresh);
    if (fresh) {
      pieces = ["q", "k"].map(() => Array.from({ length: now.dim }, (_, channel) => makeCell(channel, now.dim)));
      channels.replaceChildren(behind, ...pieces.flat());
    }
    const room = wide ? Math.round(width * 0.48) : width;
    const cell = Math.min(52, Math.floor((room - 26) / now.dim));
    const rows = rowsOf(most);
    const place = { left: 26, cell, room, rows, x: (at) => 26 + (at + 0.5) * cell };
    const start = wide ? room + 40 : 0;
    box = { title: start, left: start + 34, right: width - 8, top: 84, bottom: rows.end - 44 };
    put(picture, { width, height: rows.end, viewBox: `0 0 ${width} ${rows.end}` });
    put(channels, { display: only === 1 ? "none" : "inline" });
    behind.replaceChildren(...links(place, data), ...words(place, data, now));
    [data.qChannels, data.kChannels].forEach((stored, row) => stored.forEach((channel, at) => {
      const piece = pieces[row][channel];
      moveTo(piece, place.left + at * cell, row ? rows.k : rows.q);
      const [rect, number] = piece.children;
      put(rect, { width: cell - 2, height: CELL, x: 1, rx: Math.min(6, cell / 4) });
      put(number, { x: cell / 2, y: CELL / 2 + 5, "font-size": cell < 24 ? 11 : 14,
        visibility: cell < 17 ? "hidden" : "visible" });
    }));
    glide([...data.scores], jump || fresh, (scores) => {
      front.replaceChildren(...(only === 0 ? [] : curves(box, data, scores, now)));
    });
    handle.hidden = only === 0;
    grip([box.left - 8, box.top - 8, box.right - box.left + 16, box.bottom - box.top + 16]);
  };
}

// The two cells of a pair share a shade of blue. The first pair has the full colour; the slower a pair, the paler it
// is.
function makeCell(channel, dim) {
  const pair = channel >> 1;
  const share = pair ? Math.round(50 - (42 * (pair - 1)) / Math.max(1, dim / 2 - 2)) : 100;
  const fill = `color-mix(in srgb, var(--rb-1) ${share}%, var(--rb-paper))`;
  return svg("g", { class: "rb-piece", "data-pair": pair },
    svg("rect", { style: `fill: ${fill}; stroke: var(--rb-1)` }),
    svg("text", { "text-anchor": "middle", "font-weight": 600,
      style: `fill: var(--rb-${pair ? "ink" : "paper"})` }, String(channel)));
}

const WHOLE = "stroke: var(--rb-1); stroke-width: 2";
const BROKEN = "stroke: var(--rb-2); stroke-width: 1.5; stroke-dasharray: 3 4";

// Arcs over q and under k connect the channels that the rotation treats as a pair. Lines between q and k connect the
// channels that are multiplied. They are blue if the channels belong together; otherwise they are orange and dashed.
function links({ cell, rows, x }, data) {
  const good = fits(data);
  const ofPair = (whole, channel) => {
    return { "data-pair": whole ? channel >> 1 : "none", style: `fill: none; ${whole ? WHOLE : BROKEN}` };
  };
  const arcs = (channels, whole, y, away) => data.links.map(([one, other], i) => {
    const rise = Math.min(50, 12 + 0.3 * cell * (other - one)) * rows.rise * away;
    const d = `M${x(one)},${y}C${x(one)},${y + 1.33 * rise} ${x(other)},${y + 1.33 * rise} ${x(other)},${y}`;
    return svg("path", { d, class: "rb-arc", ...ofPair(whole[i], channels[one]) });
  });
  return [
    ...arcs(data.qChannels, good.q, rows.q, -1),
    ...arcs(data.kChannels, good.k, rows.k + CELL, 1),
    ...data.qChannels.map((channel, at) => svg("path", {
      d: `M${x(at)},${rows.q + CELL}V${rows.k}`, class: "rb-meets", ...ofPair(good.products[at], channel),
    })),
  ];
}

function words({ left, rows }, data, { pairing }) {
  const good = fits(data);
  const all = (list) => list.every(Boolean);
  const half = pairing === "half";
  const said = [
    [all(good.q), "The rotation keeps q’s pairs together", "The rotation tears q’s pairs apart"],
    [all(good.k), "The rotation keeps k’s pairs together", "The rotation tears k’s pairs apart"],
    [all(good.products), "Each channel of q meets its own in k", "Some channels of q meet others"],
  ];
  const name = (text, top) => svg("text", { x: 0, y: top + CELL / 2 + 5, "font-size": 15, "font-weight": 650 }, text);
  return [
    ...titled(0, 0, "Channels as stored, pairs as rotated",
      `Arcs: ${half ? "half-split" : "interleaved"} rotation. Lines: products.`),
    name("q", rows.q), name("k", rows.k),
    ...said.map(([right, yes, no], line) => svg("text", { x: left, y: rows.words + 22 * line, "font-size": 14,
      class: "rb-verdict", style: right ? "fill: var(--rb-1)" : "fill: var(--rb-2); font-weight: 600" },
    `${right ? "✓" : "✗"}  ${right ? yes : no}`)),
  ];
}

// The score with a key at every position. A thick grey line shows the reference, and a line on top of it the score in
// the chosen order.
function curves(/** @type {any} */ { title, left, right, top, bottom }, data, scores, { m, n }) {
  const { references, reference } = data;
  const levels = levelsOf([...data.scores, ...references]);
  const x = scale([0, MOST_POSITION], [left, right]);
  const y = scale([levels[0], levels.at(-1)], [bottom, top]);
  const path = (list) => `M${list.map((value, at) => `${x(at).toFixed(2)},${y(value).toFixed(2)}`).join("L")}`;
  const line = (colour, width, more = "") => ({
    style: `fill: none; stroke: var(--rb-${colour}); stroke-width: ${width}; stroke-linejoin: round; ${more}`,
  });
  const [up, across] = [svg("g", { transform: `translate(${left} 0)` }),
    svg("g", { transform: `translate(0 ${bottom})` })];
  axis(up, "left", y, levels, (level) => String(level).replace("-", "−"));
  axis(across, "bottom", x, [0, 16, 32, 48, 64]);
  const middle = { "font-size": 12, class: "rb-quiet", "text-anchor": "middle" };
  const points = (list) => list.map((value, at) => [x(at), y(value)]);
  const both = [{ name: "all interleaved", points: points(references), look: ["muted"] },
    { name: "as stored", points: points(scores), look: ["1"] }];
  const half = textWidth("n = m", 12) / 2;
  return [
    ...titled(title, 0, "Score", `q at position m = ${m}, k at position n`),
    svg("path", { d: `M${left},${bottom}H${right}`, ...line("muted", 1) }),
    svg("path", { d: `M${left},${y(0)}H${right}`, ...line("grid", 1) }),
    svg("path", { d: `M${x(m)},${top}V${bottom}`, ...line("ink", 1, "stroke-dasharray: 2 4") }),
    svg("text", { x: Math.min(right - half, Math.max(left + half, x(m))), y: top - 8, ...middle }, "n = m"),
    svg("path", { d: path(references), class: "rb-reference", ...line("muted", 7, "opacity: 0.4") }),
    svg("path", { d: path(scores), class: "rb-now", ...line("1", 2) }),
    svg("path", { d: `M${x(n)},${top}V${bottom}`, ...line("ink", 1.5) }),
    ...[[reference, "muted"], [scores[n], "1"]].map(([value, colour]) => svg("circle", { cx: x(n), cy: y(value), r: 5,
      style: `fill: var(--rb-${colour}); stroke: var(--rb-paper); stroke-width: 1.5` })),
    ...named(both, [left + 4, top, right, bottom], [], [x(m), x(n)]),
    up, across, svg("text", { x: (left + right) / 2, y: bottom + 36, ...middle }, "position n of the key"),
  ];
}

function describe(_, { permute_q: permuteQ, permute_k: permuteK, pairing }) {
  const [stored, taken] = [permuteQ, pairing === "half"].map((half) => (half ? "half-split" : "interleaved"));
  if (permuteQ !== permuteK) {
    return `Only ${permuteQ ? "q" : "k"} is permuted, so the scores are wrong whatever the rotation does, even at `
      + "n = m.";
  }
  if (stored === taken) {
    return `q, k and the rotation are all ${stored}, so both curves agree at every position of the key.`;
  }
  return `q and k are ${stored}, but the rotation is ${taken}. At n = m you can’t see the mistake, because there the `
    + "two rotations cancel; everywhere else the score is wrong.";
}

export default explorer({
  title: "Which channels make a pair?",
  note: "Permute q or k, or change the rotation, until the blue curve lies on the grey one. Two settings do it.",
  dials,
  compute,
  build,
  stats: ({ score, reference }, { n }) => [
    [`Score at n = ${n}, all interleaved`, tidy(reference)],
    ["As stored", tidy(score)],
  ],
  describe,
});
