// The figure on the page.

import { formatDial, limitsOf, parseDial } from "./dials.js";
import { readAddress, readDials, writeAddress } from "./address.js";
import { readTheme, watchTheme } from "./colours.js";
import { NARROW } from "./drawing.js";
import { html, setText } from "./elements.js";
import { DIALS } from "./knobs.js";
import { STYLE } from "./style.js";

// How high a picture may be, in px, so that its dials fit beside or under it on one screen.
const MOST = { wide: 600, narrow: 400 };

// spec:
//   title, note          what it is, and what to do with it
//   dials                as its Python file declares them, see parseDial
//   typed                optional: how the dials of kind "text" are read, { trait: { parse, format } }
//   settle(values)       optional: repairs values that depend on one another, returns them
//   compute(values)      plain data in, plain data out: no page, no state; the tests compare it with Python's
//   build(stage, app)    makes the elements once, returns draw({ data, values, width, most, theme, jump }), called at
//                        every change; the picture may be `width` wide and `most` high, whatever the dials say; jump
//                        says that nothing should glide (a new width, a new theme)
//   stats(data, values)  list of [name, value, remark] in large type under the figure
//   describe(data, values)  one or two sentences: what is to be seen now; also read out
// app: change({ trait: value }), listen(node, event, handler), values(), alt; tools, the row for the picture's buttons,
// as the stage holds the picture only; redraw(), for what the figure keeps beside its dials
/** @param {Record<string, any>} spec */
export function explorer({ typed = {}, ...given }) {
  /** @type {Record<string, any>} */
  const whole = { ...given, dials: given.dials.map((dial) => ({ ...dial, ...typed[dial.trait] })) };
  const { compute, settle, dials } = whole;
  return { compute, settle, dials, render: (context) => mount(whole, context) };
}

export function installStyle() {
  const { head } = document;
  const style = head.querySelector("style[data-ropebook]") ?? head.appendChild(html("style", { "data-ropebook": "" }));
  setText(style, STYLE);
}

export function mount(spec, { model, el, page }) {
  installStyle();
  const { dials } = spec;
  const stop = new AbortController();
  const work = []; // milliseconds from input event to end of drawing, one entry per event that drew
  let batch = false;
  let draws = 0;
  let timers = [];
  let data;

  const read = () => {
    const found = Object.fromEntries(dials.map(({ trait }) => [trait, model.get(trait)]));
    return spec.settle ? spec.settle(found) : found;
  };
  const app = {
    alt: model.get("alt"),
    tools: html("div", { class: "rb-tools" }),
    initial: read(),
    values: read,
    change(partial) {
      const before = read();
      const next = { ...before, ...partial };
      const settled = spec.settle ? spec.settle(next) : next;
      batch = true; // one drawing, however many traits change
      for (const { trait } of dials) if (!same(settled[trait], model.get(trait))) model.set(trait, settled[trait]);
      batch = false;
      model.save_changes();
      setText(says, "");
      redraw();
    },
    // What was typed: true if the dial took it; if not, the dial keeps its value and the page says why.
    enter(dial, text) {
      let value;
      try {
        value = parseDial(dial, text, read());
      } catch (refusal) {
        setText(says, `${dial.label}: ${refusal.message}. Still ${formatDial(dial, read()[dial.trait])}.`);
        return false;
      }
      app.change({ [dial.trait]: value });
      return true;
    },
    listen(node, type, handler) {
      const timed = (event) => {
        const start = performance.now();
        const before = draws;
        handler(event);
        if (draws > before) work.push(performance.now() - start);
        if (work.length > 2000) work.splice(0, 1000);
      };
      node.addEventListener(type, timed, { signal: stop.signal });
    },
    redraw: () => redraw(),
  };

  const stage = html("div", { class: "rb-stage" });
  const stats = html("dl", { class: "rb-stats" });
  const summary = html("p", { class: "rb-summary" });
  const panel = html("div", { class: "rb-dials" });
  const says = html("p", { class: "rb-says", role: "status", "aria-live": "polite" });
  const spoken = html("p", { class: "rb-hidden", "aria-live": "polite" });
  const root = html("div", { class: "rb", role: "group", "aria-label": `Explorer: ${spec.title}` },
    html("p", { class: "rb-title" }, spec.title), html("p", { class: "rb-note" }, spec.note),
    stage, app.tools, stats, summary, panel, says, spoken);
  el.replaceChildren(root);

  const prefix = `rb${Math.random().toString(36).slice(2, 8)}`;
  const knobs = dials.map((dial) => {
    const id = `${prefix}-${dial.trait}`;
    const knob = DIALS[dial.kind](dial, id, app);
    knob.box.append(html("span", { class: "rb-limits", id: `${id}-limits` }, limitsOf(dial)));
    panel.append(knob.box);
    return knob;
  });
  const draw = spec.build(stage, app);
  let theme = readTheme(root);
  let width = 0;

  function redraw(jump = false) {
    const values = read();
    data = spec.compute(values);
    width = Math.floor(stage.clientWidth) || 640; // 640 while the figure is not in the page yet
    draw({ data, values, width, most: width < NARROW ? MOST.narrow : MOST.wide, theme, jump });
    stats.replaceChildren(...spec.stats(data, values).map(([name, value, remark = ""]) => {
      return html("div", {}, html("dt", {}, name), html("dd", {}, `${value} `, html("small", {}, remark)));
    }));
    const text = spec.describe(data, values);
    setText(summary, text);
    knobs.forEach((knob, i) => knob.show(values[dials[i].trait]));
    draws += 1;
    timers.forEach(clearTimeout);
    // Later, when the hand rests: screen readers would read every value that a slider passes, and browsers refuse
    // hundreds of changes of the address.
    timers = [setTimeout(() => setText(spoken, draws > 1 ? text : ""), 500), setTimeout(saveAddress, 250)];
  }

  function saveAddress() {
    if (!page) return;
    const values = read();
    const entries = dials.map((dial) => [dial.trait, formatDial(dial, values[dial.trait]),
      formatDial(dial, app.initial[dial.trait])]);
    const turned = entries.filter(([, text, home]) => text !== home);
    if (!turned.length && !readAddress(location.hash, page.key).length) return; // a heading's address stays
    const hash = writeAddress(location.hash, page.key, turned);
    if (hash !== location.hash) history.replaceState(history.state, "", hash || location.href.split("#")[0]);
  }

  function loadAddress() {
    const { values, refusals } = readDials(dials, app.initial, readAddress(location.hash, page.key));
    app.change(values); // which settles them
    setText(says, refusals.join(" "));
  }

  const onModel = () => batch || redraw();
  for (const { trait } of dials) model.on(`change:${trait}`, onModel);
  const stopTheme = watchTheme(() => {
    const now = readTheme(root);
    if (same(now, theme)) return;
    theme = now;
    redraw(true);
  });
  let frame = 0;
  const resize = new ResizeObserver(() => {
    cancelAnimationFrame(frame); // in the next frame: drawing changes the height, which would come back here at once
    frame = requestAnimationFrame(() => Math.floor(stage.clientWidth) === width || redraw(true));
  });
  resize.observe(stage);
  // An address that does not speak of this figure (a heading's, say) leaves it alone.
  const followAddress = () => page && readAddress(location.hash, page.key).length && loadAddress();
  window.addEventListener("hashchange", followAddress, { signal: stop.signal });
  followAddress();
  if (!draws) redraw(true);
  el.ropebook = { work, data: () => data, values: read };

  return () => {
    stop.abort();
    stopTheme();
    resize.disconnect();
    cancelAnimationFrame(frame);
    timers.forEach(clearTimeout);
    for (const { trait } of dials) model.off(`change:${trait}`, onModel);
  };
}

export function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
