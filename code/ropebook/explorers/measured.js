// The second experiment: for each method, the bits per byte at each position, or the records found at each distance.

import {
  CHOSEN, dials, FOLLOWING, LAST, LONGER, MOST_TEXT, PLAIN, ROPE, SCHEMES, START,
} from "./measured.py";
import { grouped, percent } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, cover, lined, scale, textWidth, titled } from "./kit/drawing.js";
import { hand, stopKeys } from "./kit/hand.js";
import { apartText, levels, pathOf, range, signed, stepOf, whisker } from "./kit/intervals.js";
import { legend, LEGEND, legendRows, LEGEND_ROW, styled } from "./kit/legend.js";
import { named } from "./kit/naming.js";
import { panels } from "./kit/panels.js";
import { explorer } from "./kit/mount.js";
import { describe, idleNote, nameOf, noteOf, readings, valueHere } from "./words/measured.js";

function keyOf(run, method, factor, tuned) {
  return [run, method, factor, tuned && "tuned"].filter(Boolean).join("/");
}

// The cell for the dials. If it doesn't exist, tries the cell without fine-tuning, then without a factor, then without
// a method.
function chosenKey({ method, factor, tuned, measured }) {
  return [tuned && keyOf(LONGER, method, factor, true), keyOf(LONGER, method, factor), keyOf(LONGER, method), LONGER]
    .find((key) => key in measured.cells);
}

// The rows of `count` numbers in a text that packed() in measured.py has produced.
function unpacked(text, count) {
  const found = text.match(/.../g).map((digits) => (digits === "---" ? null : parseInt(digits, 36) / 1000));
  return Array.from({ length: found.length / count }, (_, row) => found.slice(row * count, (row + 1) * count));
}

// The mean of each column. It is null if a row is missing a value.
function meanOf(rows) {
  return rows[0].map((_, k) => (rows.some((row) => row[k] === null) ? null
    : rows.reduce((sum, row) => sum + row[k], 0) / rows.length));
}

// `measured` is the data to choose from, and is passed with the dials; compact() in measured.py describes it.
function compute(dials) {
  const { position, measured, text } = dials;
  const { cells, edges, bands, distances, length } = measured;
  const schemes = dials.run === "schemes";
  const against = schemes ? ROPE : LONGER;
  const chosen = schemes ? ROPE : chosenKey(dials);
  const lines = schemes ? Object.keys(SCHEMES) : [...new Set([chosen, against])];
  const [, method = "none", s, further] = chosen.split("/");
  const lineFactor = Number(s ?? 0);
  const lineTuned = further === "tuned";
  const loss = dials.show === "loss";
  const effects = {
    text: loss,
    method: !schemes && method === dials.method,
    factor: lineFactor > 0,
    tuned: !schemes && lineTuned === dials.tuned,
  };
  const k = edges.findIndex((edge) => edge >= position) - 1;
  const shown = lines.map((key) => cells[key]);
  const seeds = shown.map((cell) => unpacked(cell[text], edges.length - 1));
  const means = seeds.map(meanOf);
  const here = means.map((mean) => mean[k]);
  const others = shown.filter((_, i) => lines[i] !== against).map(({ apart }) => apart[text]);
  const last = schemes ? null : measured.last[lineTuned ? chosen : LONGER];
  const lastBits = last && unpacked(last[text], edges.length - 1)[0];
  const task = loss ? "retrieval" : dials.show;
  const [farSeeds, nearSeeds] = ["far", "near"].map((which) => {
    return shown.map((cell) => unpacked(cell[task][which], distances.length));
  });
  const ratio = (distance) => Math.max(distance / position, position / distance);
  return {
    lines,
    against, // the line with which the others are compared
    lineFactor, // the factor of the chosen line, or 0 if its method takes none
    lineTuned, // whether the model of the chosen line was fine-tuned
    follows: method.startsWith(FOLLOWING), // whether the method adapts to the text’s length
    idle: Object.keys(effects).filter((name) => !effects[name]), // the dials that currently have no effect
    at: edges.slice(1).map((stop, i) => Math.sqrt((edges[i] + 1) * stop)), // the centres of the windows
    seeds, // the bits in each window, by line and seed
    means,
    here,
    hereSeeds: seeds.map((rows) => rows.map((row) => row[k])),
    window: k, // the index of the window for which the figure shows values
    bytes: [edges[k] + 1, edges[k + 1]], // the first and the last byte of this window
    hereApart: here.filter((_, i) => lines[i] !== against)
      .map((value) => (value === null ? null : value - here[lines.indexOf(against)])),
    // for each band, and each line other than `against`: the mean and its interval or, for a scheme, the difference for
    // each seed
    apart: others,
    last: lastBits && lastBits.map((bits, i) => (edges[i] < length ? null : bits)), // bits with only the last L bytes
    lastApart: last && bands.map(([start], b) => (start < length ? null : last.apart[text][b])),
    band: bands.findIndex(([, stop]) => position <= stop),
    far: farSeeds.map(meanOf), // the share found at each distance in long texts
    farSeeds,
    near: nearSeeds.map(meanOf), // the same share in texts of the trained length
    nearSeeds,
    distance: distances.reduce((best, one, d) => (ratio(one) < ratio(distances[best]) ? d : best), 0),
  };
}

// ---- On the page ----

const LEFT = 46;

function build(stage, app) {
  const panelAt = panels(app, ["Bits per byte", "Difference"], { least: 400 });
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  const readAt = (values) => {
    return values.show === "loss" ? values.position : values.measured.distances[compute(values).distance];
  };
  let placeAt; // a function from a point in the picture to the position there, or to the end of its band
  const showPad = hand(app, pad, {
    label: ({ show }) => (show === "loss" ? "Position in the picture" : "Distance in the picture"),
    area: true,
    cursor: "ew-resize",
    at: (x) => ({ position: placeAt(x) }),
    keys(key) {
      const { show, measured } = app.values();
      const goal = stopKeys(key, show === "loss" ? measured.edges.slice(1) : measured.distances,
        readAt(app.values()), [START + 1, MOST_TEXT]);
      return goal && { position: goal };
    },
    value(values) {
      const now = readAt(values);
      const where = `${values.show === "loss" ? "byte" : "distance"} ${grouped(now)}`;
      return { now, min: START + 1, max: MOST_TEXT,
        text: `${where}: ${readings(values, compute(values))[0].join(" ")}` };
    },
  });

  return ({ data, values, width, most }) => {
    const task = values.show !== "loss";
    const above = LEGEND_ROW * rowsOf(values, width); // the height of the legend
    const panel = panelAt(...(task ? [Infinity] : [width, most - above])); // the figure for a task has only one panel
    const [from, to] = [LEFT, width - 14];
    const wide = width >= 620;
    const top = LEGEND + above + 18;
    const schemes = values.run === "schemes";
    const lowFloor = most - 44;
    const apart = panel === 1; // whether only the differences are shown
    const lowTop = apart ? top : lowFloor - 120;
    const both = !task && panel === null; // whether both are shown, one above the other, with a shared axis
    const floor = task ? most - 42 : both ? lowTop - 62 : lowFloor;
    const x = scale([START, MOST_TEXT], [from, to], true);
    const { bands } = values.measured;
    const columns = bands.map(([start, stop], b) => (both ? [x(Math.max(START, start)), x(stop)]
      : [b, b + 1].map((edge) => from + (edge * (to - from)) / bands.length)));
    const plot = { wide, both, from, to, top, floor, lowTop, lowFloor, x, columns };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    redrawn(picture, () => [
      ...(apart ? [] : titled(0, 0, ...titleOf(values, wide))),
      ...(schemes ? legend(itemsOf(values, data), width) : []),
      ...(apart ? [] : frame(plot, values, data, placeOf(values, data))),
      ...(task ? shares(plot, values, data) : apart ? [] : losses(plot, values, data)),
      ...(task || panel === 0 ? [] : differences(plot, values, data, apart ? 0 : lowTop - 50)),
    ]);
    placeAt = (at) => {
      const share = Math.min(1, Math.max(0, (at - from) / (to - from)));
      if (apart) return bands[Math.min(bands.length - 1, Math.floor(share * bands.length))][1]; // the end of the band
      return Math.max(START + 1, Math.round(START * (MOST_TEXT / START) ** share));
    };
    showPad(apart ? [from, lowTop, to - from, lowFloor - lowTop] : [from, top, to - from, floor - top]);
  };
}

// The coordinate of the line at which values are shown: the centre of the window, or the distance.
function placeOf({ show, measured }, { at, window, distance }) {
  return show === "loss" ? at[window] : measured.distances[distance];
}

function titleOf({ show, run, measured }, wide) {
  if (show === "loss") {
    const seeds = run === "schemes" ? "Lines: means of three seeds. Dots: each seed, where you read"
      : "Thick: the mean of three seeds. Faint: each of them";
    return ["Bits per byte at each position", wide ? `Lower is better. ${seeds}`
      : `Lower is better. ${run === "schemes" ? "Dots" : "Faint"}: each seed`];
  }
  const title = show === "retrieval" ? "Records found, by distance" : "Right answers on order, by distance";
  return [title, wide
    ? `Filled: in texts of ${grouped(MOST_TEXT)} bytes. Hollow: in texts of ${measured.length}. `
      + "Dots: each of three seeds"
    : `● texts of ${grouped(MOST_TEXT)}   ○ of ${measured.length}   · each seed`];
}

// The name of the line with which the others are compared, or "" if there is none.
function referenceOf({ show, run, measured }) {
  if (show === "loss") return run === "schemes" ? "" : `last ${measured.length} bytes`;
  return show === "retrieval" ? "guessing" : "picking one at random";
}

// The names and styles of the lines and, for schemes, their values at the chosen position. The reference comes last.
function itemsOf(dials, data) {
  const reference = referenceOf(dials);
  return [...data.lines.map((key, k) => {
    const value = dials.run === "schemes" ? valueHere(dials, data, k) : "";
    return { name: nameOf(dials, data, key), look: lookOf(dials, data, key), value };
  }), ...(reference ? [{ name: reference, look: LAST, value: "" }] : [])];
}

// Two or three lines have their names beside them. Nine lines are too close for that, so they have a legend, which also
// shows their values.
function namesOf({ from, to, top, floor }, dials, data, points) {
  if (dials.run === "schemes") return [];
  const under = dials.show === "loss" ? 8 : 0; // a name may hang over the axis, so that it needn't cross its own curve
  return named(itemsOf(dials, data).map((item, k) => ({ ...item, points: points[k] })), [from, top, to, floor + under]);
}

// The largest number of rows that the legend needs for any values at the chosen position, so that nothing below it
// moves.
function rowsOf(dials, width) {
  if (dials.run !== "schemes") return 0;
  const value = dials.show === "loss" ? "0.00" : "100%";
  const names = [...Object.values(SCHEMES).map(([name]) => name), referenceOf(dials)].filter(Boolean);
  return legendRows(names.map((name) => ({ name, value })), width);
}

function lookOf({ run }, { lines }, key) {
  if (run === "schemes") return SCHEMES[key][1];
  return key === lines[0] ? CHOSEN : PLAIN;
}

// Draws the axis of positions, the lines at L and s·L, and the line at which values are shown.
function frame({ wide, both, from, to, top, floor, lowTop, lowFloor, x }, dials, { lineFactor }, here) {
  const { length } = dials.measured;
  const powers = Array.from({ length: Math.log2(MOST_TEXT / START) + 1 }, (_, k) => START * 2 ** k);
  const end = both ? lowFloor : floor;
  const bottom = svg("g", { transform: `translate(0 ${end})` });
  axis(bottom, "bottom", x, powers);
  const lengths = [["L", length, ""], ...(lineFactor ? [[`${lineFactor} L`, lineFactor * length, "6 4"]] : [])];
  // The label of the line at s·L begins there if it can, because readers mostly look at positions up to s·L.
  const labelOf = (text, right, at) => {
    const begins = right && at - 3 + textWidth(text, 12) <= to;
    return svg("text", { x: begins ? at - 3 : at + 3, y: top - 6, "font-size": 12,
      "text-anchor": begins ? "start" : "end" }, text);
  };
  const upright = (position) => {
    const at = x(position).toFixed(1);
    return `M${at},${top}V${floor}${both ? `M${at},${lowTop}V${lowFloor}` : ""}`;
  };
  return [
    bottom,
    svg("text", {
      x: (from + to) / 2, y: end + 38, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
    }, dials.show === "loss" ? "position in the text, bytes" : "distance, bytes"),
    ...lengths.flatMap(([name, position, dashes]) => [
      svg("path", { d: upright(position), ...styled(["muted", 1.5, dashes]) }),
      labelOf(wide ? `${name} = ${grouped(position)}` : name, name !== "L", x(position)),
    ]),
    svg("path", { d: upright(here), ...lined("ink", 1.5, "stroke-dasharray: 1 5") }),
  ];
}

// A faint line for each seed.
function faint(look, paths) {
  return paths.map((d) => svg("path", { d, ...lined(look[0], 1, "opacity: 0.4") }));
}

// A dot for each seed at one position.
function dots(x, ys, colour, radius = 2) {
  return ys.map((y) => svg("circle", { cx: x.toFixed(1), cy: y.toFixed(1), r: radius,
    style: `fill: var(--rb-${colour}); opacity: 0.7` }));
}

// Draws the bits at each position for all lines and their seeds, and for the model that sees only the last L bytes.
function losses(plot, dials, data) {
  const { top, floor, x } = plot;
  const schemes = dials.run === "schemes";
  const known = [...data.seeds.flat(2), ...(data.last ?? [])].filter((value) => value !== null);
  const [low, high] = [Math.floor(Math.min(...known)), Math.ceil(Math.max(...known))];
  const y = scale([low, high], [floor, top]);
  const points = (curve) => data.at.flatMap((at, k) => (curve[k] === null ? [] : [[x(at), y(curve[k])]]));
  const path = (curve) => pathOf(points(curve));
  const look = (k) => lookOf(dials, data, data.lines[k]);
  const place = x(placeOf(dials, data));
  const here = data.here.flatMap((value, k) => (value === null ? [] : [
    ...(schemes ? dots(place + 2 * (k - (data.lines.length - 1) / 2), data.hereSeeds[k].map(y), look(k)[0]) : []),
    svg("circle", { cx: place, cy: y(value), r: schemes ? 3 : 4.5,
      style: `fill: var(--rb-${look(k)[0]}); stroke: var(--rb-paper); stroke-width: ${schemes ? 1 : 2}` }),
  ]));
  return [
    ...levels(plot, y, range(low, high, Math.ceil((high - low) / 8))),
    ...(schemes ? [] : data.seeds.flatMap((curves, k) => faint(look(k), curves.map(path))).reverse()),
    svg("path", { d: data.last ? path(data.last) : "", ...styled(LAST) }),
    ...data.means.map((curve, k) => svg("path", { d: path(curve), ...styled(look(k)) })).reverse(),
    cover([plot.from, top, x(dials.measured.length) - 3, floor]),
    ...here.reverse(),
    ...namesOf(plot, dials, data, [...data.means, data.last ?? []].map(points)),
  ];
}

// Draws the differences in each band. A method's difference has an interval, and is filled in if the interval excludes
// 0. For schemes, there is a dot for each seed.
function differences(plot, dials, data, head) {
  const { lines, against, apart, lastApart, band, follows } = data;
  const { wide, both, from, to, lowTop, lowFloor, columns } = plot;
  const { bands } = dials.measured;
  const schemes = dials.run === "schemes";
  const keys = lines.filter((key) => key !== against);
  const known = [0, ...apart.flat(2), ...(lastApart ?? [])].filter((value) => value !== null);
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const step = stepOf(most - least, 4);
  const low = Math.floor(least / step);
  const high = Math.max(low + 1, Math.ceil(most / step));
  const y = scale([low * step, high * step], [lowFloor, lowTop]);
  const middle = (b) => (columns[b][0] + columns[b][1]) / 2;
  const column = columns.at(-1)[1] - columns.at(-1)[0];
  const one = keys.length === 1 && apart[0]; // the method's differences
  const within = bands.findLastIndex(([, stop]) => stop <= dials.measured.length); // the last band within L
  const textOf = (b) => {
    const [mean, start, stop] = one[b];
    return `${apartText(mean)}${wide ? ` (${apartText(start)} to ${apartText(stop)})` : ""}`;
  };
  const title = `Difference from ${schemes ? "RoPE, base 10⁴" : "the model as trained"}`;
  const told = follows ? "; beyond L, texts end with the band" : " over seeds and files";
  const heading = titled(0, head, title, schemes
    ? `${wide ? "By band: a dot for each seed" : "● each seed"}, a ring for their mean`
    : `${wide ? `By band, with 95% intervals${told}` : "95% intervals"}. Filled: 0 lies outside`);
  const drawn = ([mean, start, stop], b) => {
    return whisker(middle(b), y(mean), y(start), y(stop), CHOSEN[0], start > 0 || stop < 0);
  };
  const scattered = (seeds, k, b) => {
    const at = middle(b) + ((k + 0.5) / keys.length - 0.5) * 0.8 * column;
    const colour = SCHEMES[keys[k]][1][0];
    const mean = seeds.reduce((sum, seed) => sum + seed, 0) / seeds.length;
    return [svg("circle", { cx: at.toFixed(1), cy: y(mean).toFixed(1), r: 4,
      style: `fill: none; stroke: var(--rb-${colour}); stroke-width: 1.5` }), ...dots(at, seeds.map(y), colour)];
  };
  return [
    ...heading,
    svg("rect", { x: columns[band][0], y: lowTop - 4, width: columns[band][1] - columns[band][0],
      height: lowFloor - lowTop + (both ? 4 : 8),
      style: "fill: var(--rb-ink); opacity: 0.06" }),
    ...levels(plot, y, range(low, high).map((k) => k * step), signed),
    svg("path", { d: `M${from},${y(0).toFixed(1)}H${to}`, ...lined("muted", 1) }),
    ...(both ? [] : [
      ...bands.map(([, stop], b) => svg("text", {
        x: middle(b), y: lowFloor + 19, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
      }, `to ${grouped(stop)}`)),
      ...(one ? bands.map((_, b) => svg("text", {
        x: middle(b), y: lowFloor + 39, "font-size": 12, "text-anchor": "middle", class: "rb-tells",
      }, textOf(b))) : [svg("text", {
        x: (from + to) / 2, y: lowFloor + 39, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
      }, "band of positions, bytes")]),
    ]),
    svg("path", { d: (lastApart ?? []).map((value, b) => {
      return value === null ? ""
        : `M${(middle(b) - 0.4 * column).toFixed(1)},${y(value).toFixed(1)}h${(0.8 * column).toFixed(1)}`;
    }).join(""), ...styled(LAST) }),
    ...apart.flatMap((rows, k) => rows.flatMap((row, b) => {
      if (row === null) return [];
      return schemes ? scattered(row, k, b) : drawn(row, b);
    })),
    cover([from, lowTop - 4, columns[within][1] - 3, lowFloor]),
  ];
}

// Draws the share of right answers at each distance: lines for long texts, with rings next to them for texts of the
// trained length.
function shares(plot, dials, data) {
  const { from, to, top, floor, x } = plot;
  const { distances, chance } = dials.measured;
  const schemes = dials.run === "schemes";
  const y = scale([0, 1], [floor, top]);
  const places = distances.map(x);
  const points = (k) => places.flatMap((place, d) => (data.far[k][d] === null ? [] : [[place, y(data.far[k][d])]]));
  const guess = y(chance[dials.show]);
  const drawn = data.lines.map((key, k) => {
    const look = lookOf(dials, data, key);
    const marks = (means, seeds, aside, filled) => places.flatMap((place, d) => {
      if (means[k][d] === null) return [];
      const at = place + aside;
      const apart = schemes ? 2 * (k - (data.lines.length - 1) / 2) : 0;
      return [
        ...(!schemes || (filled && d === data.distance)
          ? dots(at + apart, seeds[k].map((row) => y(row[d])), look[0]) : []),
        ...whisker(at, y(means[k][d]), y(means[k][d]), y(means[k][d]), look[0], filled, schemes ? 3 : 4),
      ];
    });
    return [svg("path", { d: pathOf(points(k)), ...styled(look) }), ...marks(data.near, data.nearSeeds, -8, false),
      ...marks(data.far, data.farSeeds, 0, true)];
  });
  return [
    ...levels(plot, y, [0, 0.25, 0.5, 0.75, 1], percent),
    svg("path", { d: `M${from},${guess.toFixed(1)}H${to}`, ...styled(LAST) }),
    ...drawn.reverse().flat(),
    ...namesOf(plot, dials, data, [...data.lines.map((_, k) => points(k)), [[from, guess], [to, guess]]]),
  ];
}

export default explorer({
  title: "The measurements",
  note: noteOf,
  dials,
  compute,
  units: {
    at: "bytes", bytes: "bytes", seeds: "bits per byte", means: "bits per byte", here: "bits per byte",
    hereSeeds: "bits per byte", hereApart: "bits per byte", apart: "bits per byte", last: "bits per byte",
    lastApart: "bits per byte",
  },
  build,
  idle: (data, dials) => Object.fromEntries(data.idle.map((trait) => [trait, idleNote(trait, dials)])),
  stats: (data, dials) => readings(dials, data),
  describe,
  beside: ({ model }) => ({ values: () => ({ measured: model.get("measured") }) }),
});
