// A map of all heads of a published model. For the chosen head, it also shows the share of each pair in the lengths of
// queries and keys, and the attention weight by distance.

import { BAND, dials, EDGES, HEADS, LAYERS, MEASURES, NATS, WEIGHTS } from "./heads.py";
import { exact, percent } from "./kit/text.js";
import { html, put, quietText, redrawn, svg } from "./kit/elements.js";
import { axis, fitting, inColour, lined, NARROW, scale, titled } from "./kit/drawing.js";
import { hand } from "./kit/hand.js";
import { panels } from "./kit/panels.js";
import { explorer } from "./kit/mount.js";

const FAST = 16; // the number of pairs that count as fast

// The numbers in `found` are passed with the dials; load() in heads.py describes them.
function compute({ measure, layer, head, found }) {
  const at = (layer - 1) * HEADS + head - 1;
  const shares = found.shares[at].map((share) => share / 1000);
  const values = (name, unit) => ["mean", "low", "high"].map((side) => found[name][side][at] / unit);
  return {
    levels: found[measure].mean.map((value) => value / (measure === "entropy" ? NATS : 1000)), // layer by layer
    shares, // of each pair
    weights: found.weights[at].map((weight) => weight / 1000), // of the first token, and then by distance
    first: values("first", 1000), // mean, lowest and highest value in the four texts
    previous: values("previous", 1000),
    entropy: values("entropy", 100), // in nats
    fast: shares.slice(0, FAST).reduce((sum, share) => sum + share, 0), // the share of the fast half of the pairs
    longest: shares.indexOf(Math.max(...shares)),
  };
}

// ---- On the page ----

const [LEFT, RIGHT] = [42, 10];
const HEADING = 54; // above a panel
const AXIS = 38; // below it
const GAP = 8; // between the rows of panels
const SHADES = 24;
const LEAST = 330; // the height that both rows of panels need

function build(stage, app) {
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  const panelFor = panels(app, ["All heads", "One head"], { least: LEAST, across: 0 });
  let map;
  const showPad = hand(app, pad, {
    area: true,
    label: ({ layer, head }) => `Layer ${layer}, head ${head}. Arrow keys go to the heads beside it`,
    at(x, y) {
      const [left, top, width, height] = map;
      const cell = (share, count) => Math.min(count, Math.max(1, 1 + Math.floor(share * count)));
      return { layer: cell((x - left) / width, LAYERS), head: cell((y - top) / height, HEADS) };
    },
    keys: (key) => moved(key, app.values()),
  });

  return ({ data, values, width, most }) => {
    const shown = panelFor(width, most);
    const plot = layoutOf(width, most, shown);
    map = plot.map;
    put(picture, { width, height: plot.height, viewBox: `0 0 ${width} ${plot.height}` });
    redrawn(picture, () => [
      ...(shown === 1 ? [] : drawMap(plot, data, values)),
      ...(shown === 0 ? [] : [...drawShares(plot, data, values), ...drawWeights(plot, data)]),
    ]);
    showPad(shown === 1 ? [0, 0, 0, 0] : map);
    put(pad, { hidden: shown === 1 ? "" : null });
  };
}

// The dials after a key press on the map, or null if the map doesn't use this key.
function moved(key, { layer, head }) {
  const [across, down] = {
    ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1],
    Home: [-LAYERS, 0], End: [LAYERS, 0], PageUp: [0, -HEADS], PageDown: [0, HEADS],
  }[key] ?? [];
  if (across === undefined) return null;
  const within = (value, most) => Math.min(most, Math.max(1, value));
  return { layer: within(layer + across, LAYERS), head: within(head + down, HEADS) };
}

// The places [left, top, width, height] of the map and of the two bar charts.
function layoutOf(width, most, shown) {
  const free = most - HEADING - AXIS;
  const both = shown === null;
  const mapHeight = both ? Math.min(180, Math.round(0.42 * (free - HEADING - AXIS - GAP))) : Math.min(220, free);
  const top = both ? HEADING + mapHeight + AXIS + GAP + HEADING : HEADING;
  const barHeight = both ? Math.min(150, most - top - AXIS) : Math.min(220, free);
  const each = (width - 2 * LEFT - 2 * RIGHT) / 2;
  return {
    width,
    narrow: width < NARROW,
    map: [LEFT, HEADING, width - LEFT - RIGHT, mapHeight],
    shares: [LEFT, top, each, barHeight],
    weights: [width - RIGHT - each, top, each, barHeight],
    height: (shown === 0 ? HEADING + mapHeight : top + barHeight) + AXIS,
  };
}

function drawMap(/** @type {any} */ { map: [left, top, width, height] }, { levels }, { measure, layer, head }) {
  const [across, down] = [width / LAYERS, height / HEADS];
  const corner = (k) => [left + Math.floor(k / HEADS) * across, top + (k % HEADS) * down];
  const paths = Array.from({ length: SHADES + 1 }, () => []);
  levels.forEach((level, k) => {
    const [x, y] = corner(k);
    paths[Math.round(level * SHADES)].push(`M${(x + 0.5).toFixed(1)},${(y + 0.5).toFixed(1)}`
      + `h${(across - 1).toFixed(1)}v${(down - 1).toFixed(1)}h-${(across - 1).toFixed(1)}z`);
  });
  const [x, y] = corner((layer - 1) * HEADS + head - 1);
  const bottom = svg("g", { transform: `translate(0 ${top + height})` });
  const side = svg("g", { transform: `translate(${left} 0)` });
  axis(bottom, "bottom", (one) => left + (one - 0.5) * across, [1, 5, 10, 15, 20, 25, 30]);
  axis(side, "left", (one) => top + (one - 0.5) * down, [1, 5, 9]);
  const [none, all] = measure === "entropy" ? ["all to one token", "evenly to 1,024"]
    : [`nothing to the ${MEASURES[measure]}`, "all"];
  return [
    ...titled(0, 0, "All 270 heads", `faint: ${none}; blue: ${all}`),
    svg("rect", { x: left, y: top, width, height, style: "fill: var(--rb-1); fill-opacity: 0.06" }),
    ...paths.map((path, shade) => svg("path", {
      d: path.join(""), style: `fill: var(--rb-1); fill-opacity: ${(0.94 * shade / SHADES).toFixed(3)}`,
    })),
    svg("rect", { x: x - 0.5, y: y - 0.5, width: across + 1, height: down + 1, rx: 1.5, ...lined("ink", 2.5) }),
    bottom, side,
    quietText(left + width / 2, top + height + 33, "layer", { "text-anchor": "middle" }),
    svg("text", { transform: `translate(11 ${top + height / 2}) rotate(-90)`, "font-size": 12, class: "rb-quiet",
      "text-anchor": "middle" }, "head"),
  ];
}

// A bar chart of shares. The axis ends at 20, 50 or 100%.
function bars([left, top, width, height], values, places, barWidth) {
  const end = [0.2, 0.5, 1].find((one) => one >= Math.max(...values)) ?? 1;
  const levels = [0, end / 2, end];
  const floor = top + height;
  const y = scale([0, end], [floor, top]);
  const side = svg("g", { transform: `translate(${left} 0)` });
  axis(side, "left", y, levels, (level) => `${Math.round(100 * level)}${level ? "%" : ""}`);
  const path = values.map((value, k) => `M${(places[k] - barWidth / 2).toFixed(1)},${floor}`
    + `V${y(value).toFixed(1)}h${barWidth.toFixed(1)}V${floor}z`);
  return [
    svg("path", { d: levels.map((level) => `M${left},${y(level).toFixed(1)}h${width.toFixed(1)}`).join(""),
      ...lined("grid", 1) }),
    svg("path", { d: path.join(""), style: "fill: var(--rb-1)" }),
    side,
  ];
}

function drawShares({ narrow, shares: place }, { shares }, { layer, head }) {
  const [left, top, width, height] = place;
  const step = width / shares.length;
  const at = (pair) => left + (pair + 0.5) * step;
  const bottom = svg("g", { transform: `translate(0 ${top + height})` });
  axis(bottom, "bottom", at, narrow ? [0, 10, 20, 31] : [0, 5, 10, 15, 20, 25, 31]);
  const band = at((BAND[0] + BAND[1]) / 2);
  return [
    ...titled(0, top - HEADING, `Layer ${layer}, head ${head}`,
      fitting(["each pair’s share of query length × key length", "share of query length × key length",
        "share of each pair"], width + LEFT - 6)),
    svg("rect", { x: at(BAND[0] - 0.5), y: top, width: (BAND[1] - BAND[0] + 1) * step, height,
      style: "fill: var(--rb-2); fill-opacity: 0.22" }),
    ...bars(place, shares, shares.map((_, pair) => at(pair)), Math.max(1.5, step - 1)),
    svg("text", { x: band, y: top - 4, "font-size": 11, "text-anchor": "middle", ...inColour("2") },
      `${BAND[0]}–${BAND[1]}`),
    bottom,
    quietText(left + width / 2, top + height + 33, narrow ? "pair" : "pair, from the fastest",
      { "text-anchor": "middle" }),
  ];
}

function drawWeights({ narrow, weights: place }, { weights }) {
  const [left, top, width, height] = place;
  const gap = 10; // between the first token and the distances
  const step = (width - gap) / weights.length;
  const at = (k) => left + (k + 0.5) * step + (k ? gap : 0);
  const bottom = svg("g", { transform: `translate(0 ${top + height})` });
  const named = step < 16 ? [0, 2, 6, 10] : [0, 1, 2, 4, 6, 8, 10];
  axis(bottom, "bottom", at, named, (k) => (k ? String(EDGES[k - 1]) : "1st"));
  return [
    ...titled(left - LEFT, top - HEADING, "Its attention",
      narrow ? "by distance" : "to the 1st token, then by distance"),
    ...bars(place, weights, weights.map((_, k) => at(k)), step - 2),
    bottom,
    quietText(left + width / 2, top + height + 33, fitting(["distance in tokens (start of each bin)",
      "distance (start of each bin)", "distance"], width + 2 * RIGHT), { "text-anchor": "middle" }),
  ];
}

function describe({ fast, longest, shares }, { layer, head }) {
  return `In head ${head} of layer ${layer}, the fast half of the pairs, 0 to ${FAST - 1}, has ${percent(fast)} of the `
    + `lengths of queries and keys. Pair ${longest} alone has ${percent(shares[longest])}.`;
}

const TO = "–\u2060"; // the dash of a range, at which a line doesn't break

// A mean, and the range over the texts.
function ranged([mean, low, high]) {
  return [percent(mean), `${Math.round(100 * low)}${TO}${percent(high).replace(" ", "\u00A0")}`];
}

// The entropy, and how many equal weights would have as much.
function spreadOf({ entropy: [mean, low, high] }) {
  const equal = Math.max(1, Math.round(Math.exp(mean)));
  const like = equal === 1 ? "a single weight" : `${equal} equal weights`;
  return ["Entropy", exact(mean, 1), `${exact(low, 1)}${TO}${exact(high, 1)} nats, ≈ ${like}`];
}

export default explorer({
  title: "What do the heads of a real model look at?",
  note: "Click a head in the map, or use the arrow keys. Large numbers are means over four texts; small ones are "
    + `ranges. The model is SmolLM2-135M with ${WEIGHTS}.`,
  dials,
  compute,
  units: { entropy: "nats" },
  build,
  stats: (data) => [
    ["First token", ...ranged(data.first)],
    ["Previous token", ...ranged(data.previous)],
    spreadOf(data),
  ],
  describe,
  beside: ({ model }) => ({ values: () => ({ found: model.get("found") }) }),
});
