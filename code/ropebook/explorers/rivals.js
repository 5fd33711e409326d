// The contribution of two schemes to a score, as a function of the key's position. There is a curve for each head, and
// one head is highlighted.

import { BUCKETS, BY_HEAD, dials, FARTHEST, SCHEMES, SPAN, TURNING, ZETA } from "./rivals.py";
import { fourierSum, hundredths, invFreq, lastCall } from "./kit/rope.js";
import { tidy } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, levelsOf, lined, OUTLINED, pill, pillHalf, scale, textWidth } from "./kit/drawing.js";
import { glider } from "./kit/gliding.js";
import { across } from "./kit/hand.js";
import { named } from "./kit/naming.js";
import { evenly, play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";

const OFFSETS = Array.from({ length: 2 * SPAN + 1 }, (_, k) => k - SPAN); // n − m

// ALiBi's slopes, 2^(−8h/H). If H is not a power of two, we take the slopes for P heads, where P is the largest power
// of two below H, and then every other slope for 2P heads.
function slopes(heads) {
  const power = 2 ** Math.floor(Math.log2(heads));
  return Array.from({ length: heads }, (_, k) => {
    return k < power ? 2 ** ((-8 * (k + 1)) / power) : 2 ** ((-8 * (2 * (k - power) + 1)) / (2 * power));
  });
}

// T5's bucket for a distance, on one side of the query.
function bucket(apart) {
  const side = BUCKETS / 2;
  const own = side / 2;
  if (apart < own) return apart;
  const share = Math.log(apart / own) / Math.log(FARTHEST / own);
  return Math.min(side - 1, own + Math.floor(share * (side - own)));
}

// For each distance, the one that represents its bucket. This is the middle of the bucket or, in the last bucket, its
// first distance.
const STAND_IN = (() => {
  const ends = [];
  for (let apart = 0; apart <= FARTHEST; apart += 1) {
    const range = (ends[bucket(apart)] ??= [apart, apart]);
    range[1] = apart;
  }
  ends.at(-1)[1] = ends.at(-1)[0];
  return OFFSETS.map((offset) => {
    const [least, greatest] = ends[bucket(Math.abs(offset))];
    return (least + greatest) / 2;
  });
})();

// Σ a_i cos Δθ_i + b_i sin Δθ_i at each offset, minus the same sum at 0; Δ = −offset.
function wave(theta, a, b) {
  const ahead = fourierSum(theta, a, b.map((one) => -one), 0, SPAN + 1); // Δ = 0, −1, −2 …
  const behind = fourierSum(theta, a, b, 0, SPAN + 1);
  return OFFSETS.map((offset) => (offset < 0 ? behind[-offset] : ahead[offset]) - behind[0]);
}

const CURVES = {
  none: () => [OFFSETS.map(() => 0)],
  alibi: ({ heads }) => slopes(heads).map((slope) => OFFSETS.map((offset) => -slope * Math.abs(offset))),
  signed: ({ heads }) => slopes(heads).map((slope) => OFFSETS.map((offset) => slope * offset)),
  t5: ({ heads }) => slopes(heads).map((slope) => STAND_IN.map((apart) => -slope * apart)),
  kerple: () => [OFFSETS.map((offset) => -Math.log(1 + Math.abs(offset)))],
  sandwich: ({ heads, dim, base }) => {
    const theta = invFreq(dim, base);
    const below = wave(theta, theta.map(() => 1), theta.map(() => 0));
    return slopes(heads).map((_, k) => below.map((value) => (value * heads) / (8 * (k + 1))));
  },
  xl: ({ dim, base }) => {
    const theta = invFreq(dim, base);
    const ones = theta.map(() => 1 / Math.sqrt(dim));
    return [wave(theta, ones, ones)];
  },
  rope: ({ dim, base }) => {
    const theta = invFreq(dim, base);
    return [wave(theta, theta.map(() => 2 / Math.sqrt(dim)), theta.map(() => 0))];
  },
  xpos: ({ dim, base }) => {
    const theta = invFreq(dim, base);
    const zeta = theta.map((_, i) => ((2 * i) / dim + ZETA.gamma) / (1 + ZETA.gamma));
    const sums = OFFSETS.map((offset) => {
      let sum = 0;
      for (let i = 0; i < theta.length; i += 1) {
        sum += zeta[i] ** (-offset / ZETA.scale) * Math.cos(offset * theta[i]);
      }
      return (2 * sum) / Math.sqrt(dim);
    });
    return [sums.map((sum) => sum - Math.sqrt(dim))];
  },
};

const [lastFirst, lastSecond] = [0, 1].map(() => lastCall((name, heads, dim, base) => {
  return CURVES[name]({ heads, dim, base });
}));

function compute({ first, second, head, heads, offset, base, dim }) {
  const rows = [lastFirst(first, heads, dim, base), lastSecond(second, heads, dim, base)];
  const chosen = rows.map((row) => row[row.length === 1 ? 0 : head - 1]);
  return {
    first: rows[0], // one row per head, or one for all heads, at n − m = −256 … 256
    second: rows[1],
    here: chosen.map((curve) => curve[offset + SPAN]), // the value of both schemes in the chosen head
    mirrored: chosen.map((curve) => curve[SPAN - offset]), // the value at the same distance on the other side
  };
}

// ---- On the page ----

const TOP = 56;
const UNDER = 44; // space below the axis
const LEFT = 44;
const SECONDS = 12; // the playback time from the first key to the last
const GLIDE = 300; // how long the axis takes to another range, in ms

function build(stage, app) {
  play(app, {
    advance: evenly("offset", () => SPAN, () => (2 * SPAN) / SECONDS),
    again: { offset: -SPAN },
    stepName: "Move the key",
  });
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  let ends = [LEFT, LEFT + 1];
  const showPad = across(app, pad, dials.find(({ trait }) => trait === "offset"), {
    label: "The key’s place in the picture",
    ends: () => ends,
    text: ({ offset }) => placeOf(offset),
  });
  const glide = glider(app, { takes: GLIDE, nearby: Infinity });
  return ({ data, values, width, most, jump }) => {
    const height = Math.min(most, 500);
    const floor = height - UNDER;
    ends = [LEFT, width - 12];
    const chosen = [data.first, data.second].map((rows) => rows[rows.length === 1 ? 0 : values.head - 1]);
    const levels = levelsOf(chosen.flat());
    put(picture, { width, height, viewBox: `0 0 ${width} ${height}` });
    glide([levels[0], levels.at(-1)], jump, (range) => {
      const plot = {
        width, floor, range, levels: levels.filter((level) => level >= range[0] && level <= range[1]), from: ends[0],
        to: ends[1], x: scale([-SPAN, SPAN], ends), y: scale(range, [floor, TOP]),
      };
      redrawn(picture, () => [...ground(plot), ...curves(plot, data, values), ...frame(plot),
        ...names(plot, chosen, values), ...reading(plot, data, values)]);
    });
    showPad([LEFT, TOP - 26, ends[1] - LEFT, floor - TOP + 26]);
  };
}

function placeOf(offset) {
  if (!offset) return "at the query";
  const far = Math.abs(offset);
  return `${far} token${far === 1 ? "" : "s"} ${offset < 0 ? "before" : "after"} the query`;
}

// Draws the shaded future and the grid lines.
function ground({ floor, from, to, levels, x, y }) {
  return [
    svg("rect", { x: x(0), y: TOP, width: to - x(0), height: floor - TOP,
      style: "fill: var(--rb-muted); opacity: 0.1" }),
    svg("path", { d: levels.map((level) => `M${from},${hundredths(y(level))}H${to}`).join(""), ...lined("grid", 1) }),
  ];
}

// The path of a curve. Points that lie on the straight line between their neighbours are left out. The path is clipped
// where it leaves the range of the axis.
function path({ x, y, range }, curve) {
  const corners = curve.map((value, k) => [OFFSETS[k], value]).filter(([, value], k) => {
    return k === 0 || k === curve.length - 1 || Math.abs(curve[k - 1] + curve[k + 1] - 2 * value) > 1e-9;
  });
  let drawn = "";
  let pen = false; // whether the line can be continued from the last point drawn
  for (let k = 1; k < corners.length; k += 1) {
    const [[at, value], [atNext, next]] = [corners[k - 1], corners[k]];
    const shares = range.map((level) => (level - value) / (next - value || 1e-12));
    const [start, stop] = [Math.max(0, Math.min(...shares)), Math.min(1, Math.max(...shares))];
    const point = (share) => {
      return `${hundredths(x(at + share * (atNext - at)))},${hundredths(y(value + share * (next - value)))}`;
    };
    if (start <= stop) drawn += `${pen && start === 0 ? "" : `M${point(start)}`}L${point(stop)}`;
    pen = start <= stop && stop === 1;
  }
  return drawn;
}

// Schemes that rotate queries and keys by their positions are blue, and their rivals are grey.
function coloursOf({ first, second }) {
  const rotates = [first, second].map((name) => name === "rope" || name === "xpos");
  const own = rotates[0] ? "1" : "muted";
  if (rotates[0] === rotates[1]) return [own, first === second ? own : "ink"];
  return rotates.map((one) => (one ? "1" : "muted"));
}

// Draws the chosen heads, highlighted, on top of the others.
function curves(plot, { first, second }, values) {
  const pale = [];
  const strong = [];
  const colours = coloursOf(values);
  [[first, colours[0]], [second, colours[1]]].forEach(([rows, colour]) => rows.forEach((curve, k) => {
    const chosen = rows.length === 1 || k === values.head - 1;
    const look = chosen ? lined(colour, 2.25, "stroke-linejoin: round")
      : { class: "rb-tells", ...lined(colour, 1, "opacity: 0.35") };
    (chosen ? strong : pale).push(svg("path", { d: path(plot, curve), ...look }));
  }));
  return [...pale, ...strong];
}

function frame({ width, floor, from, to, levels, x, y }) {
  const left = svg("g", { transform: `translate(${from} 0)` });
  const bottom = svg("g", { transform: `translate(0 ${floor})` });
  axis(left, "left", y, levels, (level) => String(level).replace("-", "−"));
  const step = width >= 620 ? 64 : 128;
  const ticks = Array.from({ length: (2 * SPAN) / step + 1 }, (_, k) => k * step - SPAN);
  axis(bottom, "bottom", x, ticks, (tick) => String(tick).replace("-", "−"));
  const name = width >= 420 ? "the key’s place, n − m = −Δ" : "n − m = −Δ";
  return [
    svg("text", { x: 0, y: 14, "font-size": 14, "font-weight": 600 }, "What the distance adds to the score"),
    svg("path", { d: `M${from},${hundredths(y(0))}H${to}`, ...lined("muted", 1) }), left, bottom,
    svg("text", { x: (from + to) / 2, y: floor + 37, "font-size": 12, "text-anchor": "middle",
      class: "rb-quiet" }, name),
  ];
}

// Whether a curve crosses a text.
function crosses(points, place) {
  return points.some(([x, y]) => x > place.x - 4 && x < place.x + place.width + 4 && Math.abs(y - place.y + 4) < 12);
}

// Names both curves, and the two sides of the query. The sides are named at the top of the plot, or at the bottom if a
// curve is at the top.
function names({ width, floor, from, to, x, y }, chosen, values) {
  const both = [values.first, values.second].map((name, k) => ({
    name: k && name === values.first ? "" : SCHEMES[name], look: [coloursOf(values)[k]],
    points: chosen[k].map((value, at) => [x(OFFSETS[at]), y(value)]),
  }));
  const future = `the future${width >= 620 ? ": a causal mask hides it" : ", masked"}`;
  const sides = [["the past", from + 8], [future, to - 8 - textWidth(future, 12)]].map(([text, left]) => {
    const place = { x: left, y: floor - 8, width: textWidth(text, 12) };
    const high = { ...place, y: TOP + 18 };
    return { text, place: both.some(({ points }) => crosses(points, high)) ? place : high };
  });
  return [
    ...sides.map(({ text, place }) => svg("text", { x: place.x, y: place.y, "font-size": 12, class: "rb-quiet",
      ...OUTLINED }, text)),
    ...named(both, [from + 6, TOP + 2, to - 2, floor - 2], sides.map(({ place }) => place)),
  ];
}

// Marks the offset at which values are shown.
function reading({ floor, from, to, x, y }, { here }, values) {
  const { offset } = values;
  const colours = coloursOf(values);
  const text = `n − m = ${String(offset).replace("-", "−")}`;
  const half = pillHalf(text);
  const middle = Math.min(to - half, Math.max(from + half, x(offset)));
  return [
    svg("path", { d: `M${hundredths(x(offset))},${TOP - 2}V${floor}`, ...lined("ink", 1.25, "stroke-dasharray: 1 5") }),
    ...here.map((value, k) => svg("circle", { cx: hundredths(x(offset)), cy: hundredths(y(value)), r: 5,
      style: `fill: var(--rb-${colours[k]}); stroke: var(--rb-paper); stroke-width: 1.5` })),
    ...pill(middle, TOP - 15, text),
  ];
}

function signed(value) {
  return `${value > 0 ? "+" : ""}${Math.abs(value) < 5e-4 ? "0" : tidy(value)}`;
}

// The value of each scheme, and its value at the same distance on the other side of the query.
function stats({ here, mirrored }, { first, second }) {
  return [first, second].slice(Number(first === second)).map((name, k) => [
    SCHEMES[name], signed(here[k]),
    Math.abs(here[k] - mirrored[k]) < 1e-9 ? "on both sides" : `${signed(mirrored[k])} on the other side`,
  ]);
}

function describe({ here }, { first, second, head, heads, offset }) {
  if (!offset) return "The key is at the query. Each curve is drawn relative to its value there, so it is at 0.";
  const each = first === second ? [first] : [first, second];
  const whose = each.map((name, k) => {
    const own = BY_HEAD.includes(name) ? ` (head ${head} of ${heads})` : "";
    const times = `${tidy(Math.exp(here[k]))} times`;
    const scheme = name === "none" ? "without a scheme" : `with ${SCHEMES[name]}${own}`;
    return k ? `${times} ${scheme}` : `${times} the weight of an equal key at the query ${scheme}`;
  });
  return `A key ${placeOf(offset)} gets ${whose.join(", and ")}.`;
}

export default explorer({
  title: "Two schemes on one axis",
  note: "Pick two schemes, and drag across the picture to read their values.",
  dials,
  compute,
  build,
  idle: (_, { first, second }) => {
    const has = (names) => [first, second].some((name) => names.includes(name));
    const waves = "Neither scheme has waves.";
    const alike = "In both schemes all heads are the same.";
    return {
      ...(!has(BY_HEAD) && { head: alike, heads: alike }),
      ...(!has(TURNING) && { base: waves, dim: waves }),
    };
  },
  stats,
  describe,
});
