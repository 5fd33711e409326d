// The measured grid: bits per byte at each position, or what is found again at each distance, with every method.

import { CHOSEN, dials, METHODS, MOST_TEXT, PLAIN, RUNS, SCHEMES, WINDOW } from "./measured.py";
import { exact, percent } from "./kit/text.js";
import { html, put, redrawn, svg } from "./kit/elements.js";
import { axis, lined, scale, titled } from "./kit/drawing.js";
import { hand, stopKeys } from "./kit/hand.js";
import { apartText, levels, pathOf, range, signed, stepOf, whisker } from "./kit/intervals.js";
import { legend, LEGEND, legendRows, LEGEND_ROW, styled } from "./kit/legend.js";
import { panels } from "./kit/panels.js";
import { explorer } from "./kit/mount.js";
import { describe, idleNote, nameOf, readings, valueHere } from "./words/measured.js";

function keyOf(run, method, factor, tuned) {
  return [run, method, factor, tuned && "tuned"].filter(Boolean).join("/");
}

// The cell that the dials ask for; if there is none, that without fine-tuning, without the factor, without the method.
function chosenKey({ run, method, factor, tuned, measured }) {
  return [tuned && keyOf(run, method, factor, true), keyOf(run, method, factor), keyOf(run, method), keyOf(run, "none")]
    .find((key) => key in measured.cells);
}

// The numbers that can be chosen from, `measured`, come beside the dials: compact() in measured.py says what they are.
function compute(dials) {
  const { position, measured } = dials;
  const { cells, edges, bands, distances, asked, windowed } = measured;
  const schemes = dials.run === "schemes";
  const run = schemes ? RUNS[0] : dials.run;
  const against = keyOf(run, "none");
  const chosen = schemes ? against : chosenKey(dials);
  const trained = Object.keys(SCHEMES).map((scheme) => keyOf(`${scheme}-0`, "none")).filter((key) => key in cells);
  const lines = schemes ? trained : [...new Set([chosen, against])];
  const parts = chosen.split("/");
  const factor = parts.length > 2 ? Number(parts[2]) : 0;
  const tuned = parts.at(-1) === "tuned";
  const effects = {
    method: !schemes && parts[1] === dials.method, factor: factor > 0, tuned: !schemes && tuned === dials.tuned,
  };
  const k = edges.findIndex((edge) => edge >= position) - 1;
  const shown = lines.map((key) => cells[key]);
  const here = shown.map(({ bits }) => bits[k]);
  const base = cells[against].bits[k];
  const isOther = (_, i) => lines[i] !== against;
  const others = shown.filter(isOther);
  const ratio = (distance) => Math.max(distance / position, position / distance);
  return {
    lines,
    against, // what they are compared with
    factor, // of the chosen one; 0: none
    tuned,
    idle: Object.keys(effects).filter((name) => !effects[name]), // dials without effect
    at: edges.slice(1).map((stop, i) => Math.sqrt((edges[i] + 1) * stop)), // the middles of the bins
    curves: shown.map(({ bits }) => bits),
    here,
    bytes: [edges[k] + 1, edges[k + 1]], // of the bin where the figure is read
    hereApart: here.filter(isOther).map((value) => (value === null ? null : value - base)),
    spread: shown[0].error, // of each band, over files
    apart: others.map((cell) => cell.apart), // for each band, paired over files
    apartError: others.map((cell) => cell.apartError),
    decided: others.map((cell) => cell.decided), // more than two standard errors, the same sign, in both seeds
    window: windowed[run].bits,
    windowApart: windowed[run].apart,
    band: bands.findIndex(([, stop]) => position <= stop),
    far: shown.map(({ far }) => far), // given back at each distance, in the long texts
    farError: shown.map(({ far }) => far.map((share, d) => {
      return share === null ? null : Math.sqrt((share * (1 - share)) / asked[d]);
    })),
    near: shown.map(({ near }) => near), // and in those of the trained length
    distance: distances.reduce((best, one, d) => (ratio(one) < ratio(distances[best]) ? d : best), 0),
  };
}

// ---- On the page ----

const LEFT = 46;

function build(stage, app) {
  const panelAt = panels(app, ["Bits per byte", "Difference"]);
  const picture = svg("svg", { role: "img", "aria-label": app.alt });
  const pad = html("div");
  stage.append(html("div", { style: "position: relative" }, picture, pad));
  const readAt = (values) => {
    return values.show === "loss" ? values.position : values.measured.distances[compute(values).distance];
  };
  let placeAt; // the position, or the band's, at a place of the picture
  const showPad = hand(app, pad, {
    label: ({ show }) => (show === "loss" ? "Position in the picture" : "Distance in the picture"),
    area: true,
    cursor: "ew-resize",
    at: (x) => ({ position: placeAt(x) }),
    keys(key) {
      const { show, measured } = app.values();
      const goal = stopKeys(key, show === "loss" ? measured.edges.slice(1) : measured.distances,
        readAt(app.values()), [1, MOST_TEXT]);
      return goal && { position: goal };
    },
    value(values) {
      const now = readAt(values);
      const where = `${values.show === "loss" ? "byte" : "distance"} ${now}`;
      return { now, min: 1, max: MOST_TEXT, text: `${where}: ${readings(values, compute(values))[0].join(" ")}` };
    },
  });

  return ({ data, values, width, most }) => {
    const retrieval = values.show === "retrieval";
    const panel = panelAt(retrieval ? Infinity : width); // the other figure has one panel
    const [from, to] = [LEFT, width - 14];
    const wide = width >= 620;
    const top = LEGEND + rowsOf(values, width) * LEGEND_ROW + 18;
    const lowFloor = most - 44;
    const apart = panel === 1; // the differences alone
    const lowTop = apart ? top : lowFloor - 120;
    const both = !retrieval && panel === null; // one over the other, on one axis
    const floor = retrieval ? most - 42 : both ? lowTop - 62 : lowFloor;
    const x = scale([leastOf(values), MOST_TEXT], [from, to], true);
    const { bands } = values.measured;
    const columns = bands.map(([start, stop], b) => (both ? [x(Math.max(1, start)), x(stop)]
      : [b, b + 1].map((edge) => from + (edge * (to - from)) / bands.length)));
    const plot = { wide, both, from, to, top, floor, lowTop, lowFloor, x, columns };
    put(picture, { width, height: most, viewBox: `0 0 ${width} ${most}` });
    redrawn(picture, () => [
      ...(apart ? [] : titled(0, 0, ...titleOf(values, wide))), ...legend(legendOf(values, data), width),
      ...(apart ? [] : frame(plot, values, data, readAt(values))),
      ...(retrieval ? shares(plot, values, data) : apart ? [] : losses(plot, values, data)),
      ...(retrieval || panel === 0 ? [] : differences(plot, values, data, apart ? 0 : lowTop - 50)),
    ]);
    placeAt = (at) => {
      const share = Math.min(1, Math.max(0, (at - from) / (to - from)));
      if (apart) return bands[Math.min(bands.length - 1, Math.floor(share * bands.length))][1]; // the band's end
      const least = leastOf(values);
      return Math.round(least * (MOST_TEXT / least) ** share);
    };
    showPad(apart ? [from, lowTop, to - from, lowFloor - lowTop] : [from, top, to - from, floor - top]);
  };
}

// The axis begins here.
function leastOf({ show }) {
  return show === "retrieval" ? 16 : 1;
}

function titleOf({ show, measured }, wide) {
  if (show === "loss") {
    return ["Bits per byte at each position", wide ? "Lower is better. Shaded: ± one standard error over files"
      : "Lower is better. Shaded: ± standard error"];
  }
  return ["Planted values given back, by distance", wide
    ? `Filled: in texts of ${MOST_TEXT} bytes, ± two standard errors. Hollow: in texts of ${measured.length}`
    : `● texts of ${MOST_TEXT} bytes   ○ texts of ${measured.length}`];
}

// The names of the lines with their looks, and where they fall into too few rows, what they are here.
function legendOf(dials, data) {
  const last = dials.show === "loss" ? `last ${dials.measured.length} bytes only` : "guessing";
  return [...data.lines.map((key, k) => {
    const value = dials.run === "schemes" ? valueHere(dials, data, k) : "";
    return { name: nameOf(dials, data, key), look: lookOf(dials, data, key), value };
  }), { name: last, look: WINDOW, value: "" }];
}

// As many rows as any setting of the other dials needs: nothing below moves.
function rowsOf({ show, run }, width) {
  const value = run !== "schemes" ? "" : show === "loss" ? "0.00" : "100 %";
  const names = run === "schemes" ? Object.values(SCHEMES).map(([name]) => name)
    : [`${METHODS.linear}, s = 16, fine-tuned`, "as trained"];
  return legendRows([...names.map((name) => ({ name, value })), { name: `last ${MOST_TEXT} bytes only` }], width);
}

function lookOf({ run }, { lines }, key) {
  if (run === "schemes") return SCHEMES[key.split("/")[0].slice(0, -2)][1];
  return key === lines[0] ? CHOSEN : PLAIN;
}

// The axis of positions, lines at L and s·L, and the line where the figure is read.
function frame({ wide, both, from, to, top, floor, lowTop, lowFloor, x }, dials, { factor }, here) {
  const { length } = dials.measured;
  const least = leastOf(dials);
  const powers = Array.from({ length: Math.log2(MOST_TEXT / least) + 1 }, (_, k) => least * 2 ** k);
  const end = both ? lowFloor : floor;
  const bottom = svg("g", { transform: `translate(0 ${end})` });
  axis(bottom, "bottom", x, powers.filter((_, k) => wide || k % 2 === 0));
  const lengths = [["L", length, ""], ...(factor ? [[`${factor} L`, factor * length, "6 4"]] : [])];
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
      svg("text", { x: x(position) + 3, y: top - 6, "font-size": 12, "text-anchor": "end" },
        wide ? `${name} = ${position}` : name),
    ]),
    svg("path", { d: upright(here), ...lined("ink", 1.5, "stroke-dasharray: 1 5") }),
  ];
}

// Bits at each position: all lines, the spread of the first, and the model with a window.
function losses(plot, dials, data) {
  const { top, floor, x } = plot;
  const { bands, length } = dials.measured;
  const known = [...data.curves.flat().filter((value) => value !== null), ...data.window];
  const [low, high] = [Math.floor(Math.min(...known)), Math.ceil(Math.max(...known))];
  const y = scale([low, high], [floor, top]);
  const points = (curve, /** @type {(at: number) => number} */ more = () => 0) => data.at.flatMap((at, k) => {
    return curve[k] === null ? [] : [[x(at), y(curve[k] + more(at))]];
  });
  const error = (at) => data.spread[bands.findIndex(([, stop]) => at <= stop)] ?? 0;
  const shade = [...points(data.curves[0], error), ...points(data.curves[0], (at) => -error(at)).reverse()];
  const here = data.here.flatMap((value, k) => (value === null ? [] : [svg("circle", {
    cx: x(dials.position), cy: y(value), r: 4.5,
    style: `fill: var(--rb-${lookOf(dials, data, data.lines[k])[0]}); stroke: var(--rb-zero); stroke-width: 2`,
  })]));
  const steps = bands.map(([start, stop], b) => { // within the first L bytes it is the model as trained
    return start < length ? "" : `M${x(start).toFixed(1)},${y(data.window[b]).toFixed(1)}H${x(stop).toFixed(1)}`;
  });
  return [
    ...levels(plot, y, range(low, high, Math.ceil((high - low) / 8))),
    svg("path", { d: shade.length ? `${pathOf(shade)}Z` : "", style: "fill: var(--rb-ink); opacity: 0.15" }),
    svg("path", { d: steps.join(""), ...styled(WINDOW) }),
    ...data.lines.map((key, k) => {
      return svg("path", { d: pathOf(points(data.curves[k])), ...styled(lookOf(dials, data, key)) });
    }).reverse(),
    ...here.reverse(),
  ];
}

// The differences band by band, with two standard errors; filled where both seeds say the same.
function differences(plot, dials, { lines, against, apart, apartError, decided, windowApart, band, ...data }, head) {
  const { wide, both, from, to, lowTop, lowFloor, columns } = plot;
  const { bands, length } = dials.measured;
  const keys = lines.filter((key) => key !== against);
  const ends = apart.flatMap((ones, k) => ones.flatMap((one, b) => {
    return one === null ? [] : [one - 2 * apartError[k][b], one + 2 * apartError[k][b]];
  }));
  const known = [0, ...windowApart, ...ends];
  const [least, most] = [Math.min(...known), Math.max(...known)];
  const step = stepOf(most - least, 4);
  const low = Math.floor(least / step);
  const high = Math.max(low + 1, Math.ceil(most / step));
  const y = scale([low * step, high * step], [lowFloor, lowTop]);
  const middle = (b) => (columns[b][0] + columns[b][1]) / 2;
  const column = columns.at(-1)[1] - columns.at(-1)[0];
  const look = (key) => lookOf(dials, { lines, ...data }, key)[0];
  const textOf = (b) => (apart[0][b] === null ? "–"
    : `${apartText(apart[0][b])}${wide ? ` ± ${exact(2 * apartError[0][b])}` : ""}`);
  const title = dials.run === "schemes" ? "Difference to RoPE, base 10⁴"
    : `Difference to the model as trained${both && keys.length ? `: ${textOf(band)}` : ""}`;
  const heading = titled(0, head, title, wide
    ? "By band, ± two standard errors. ● more than that, with the same sign, in both seeds"
    : "± two standard errors. ● beyond in both seeds");
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
      }, `to ${stop}`)),
      ...(keys.length === 1 ? bands.map((_, b) => svg("text", {
        x: middle(b), y: lowFloor + 39, "font-size": 12, "text-anchor": "middle",
        "font-weight": decided[0][b] ? 600 : 400,
      }, textOf(b))) : [svg("text", {
        x: (from + to) / 2, y: lowFloor + 39, "font-size": 12, "text-anchor": "middle", class: "rb-quiet",
      }, "band of positions, bytes")]),
    ]),
    svg("path", { d: windowApart.map((one, b) => {
      return bands[b][0] < length ? ""
        : `M${(middle(b) - 0.4 * column).toFixed(1)},${y(one).toFixed(1)}h${(0.8 * column).toFixed(1)}`;
    }).join(""), ...styled(WINDOW) }),
    ...keys.flatMap((key, k) => apart[k].flatMap((one, b) => (one === null ? []
      : whisker(middle(b) + ((k + 0.5) / keys.length - 0.5) * 0.7 * column, y(one),
        y(one - 2 * apartError[k][b]), y(one + 2 * apartError[k][b]), look(key), decided[k][b],
        keys.length > 1 ? 3 : 4)))),
  ];
}

// Shares given back at each distance: in the long texts as lines, in those of the trained length as rings.
function shares(plot, dials, { lines, far, farError, near }) {
  const { from, to, top, floor, x } = plot;
  const { distances, chance } = dials.measured;
  const y = scale([0, 1], [floor, top]);
  const drawn = lines.map((key, k) => {
    const look = lookOf(dials, { lines }, key);
    const places = distances.map(x);
    const known = (some) => distances.flatMap((_, d) => (some[k][d] === null ? [] : [d]));
    const rings = known(near).map((d) => [d, near[k][d], 0, false]);
    const discs = known(far).map((d) => [d, far[k][d], 2 * farError[k][d], true]);
    return [
      svg("path", { d: pathOf(discs.map(([d, share]) => [places[d], y(share)])), ...styled(look) }),
      ...[...rings, ...discs].flatMap(([d, share, off, filled]) => {
        return whisker(places[d], y(share), y(Math.max(0, share - off)), y(Math.min(1, share + off)), look[0], filled);
      }),
    ];
  });
  return [
    ...levels(plot, y, [0, 0.25, 0.5, 0.75, 1], percent),
    svg("path", { d: `M${from},${y(chance).toFixed(1)}H${to}`, ...styled(WINDOW) }),
    ...drawn.reverse().flat(),
  ];
}

export default explorer({
  title: "The measured grid",
  note: "Drag across the picture to read it elsewhere. All numbers were measured; none is computed here.",
  dials,
  compute,
  build,
  idle: (data, dials) => Object.fromEntries(data.idle.map((trait) => [trait, idleNote(trait, dials)])),
  stats: (data, dials) => readings(dials, data),
  describe,
  beside: ({ model }) => ({ values: () => ({ measured: model.get("measured") }) }),
});
