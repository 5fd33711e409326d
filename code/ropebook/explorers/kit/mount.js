// Places a figure on the page.

import { formatDial, keepWithin, parseDial, present, wanted } from "./dials.js";
import { readAddress, readDials, writeAddress } from "./address.js";
import { readTheme, watchTheme } from "./colours.js";
import { html, put, redrawn, setText, unbroken } from "./elements.js";
import { knob } from "./knobs.js";
import { asking } from "./asking.js";
import { isMet, settingsOf } from "./steps.js";
import { STYLE } from "./style.js";
import { takeaway } from "./takeaway.js";
import { joined } from "./text.js";

// In ms: the minimum time between two updates of the description while a figure plays. It is also how long the dials
// must be idle before the address is updated.
const PAUSE = 250;

const SHORT = 16; // the number of characters in a readout's value that is kept in one line
const NUMBERED = /(\p{L}+ [−+]?[\d.,]*\d%?(?: to [−+]?[\d.,]*\d%?)?)/u; // as in “seeds 1.61 to 1.83”, in a readout
const MOST = 600; // the maximum height of a picture, in px, until the figure is on the page

// spec:
//   title, note          what the figure is, and what to do with it; note may be a function of the initial values
//   dials                the dials as the figure's Python file declares them, see parseDial
//   typed                optional: how the dials of kind "text" are parsed, { trait: { parse, format } }
//   beside(context)      optional: values that come from the model but have no dial, { values(), stop() }: values() are
//                        added to the dials' values; the whole object is app.beside
//   settle(values)       optional: corrects and returns values that depend on one another in other ways than `within`
//   compute(values)      plain data in, plain data out: no page, no state; the tests compare it with Python's
//   units                optional: the units of what compute returns, for the CSV file: { name: unit }
//   build(stage, app)    creates the elements once and returns draw({ data, values, width, most, theme, jump }), which
//                        is called at every change; the picture may be `width` wide and `most` high for any dials; jump
//                        says that nothing should glide (because the width or the theme has changed)
//   idle(data, values)   optional: the dials that currently have no effect, and why: { trait: reason }
//   stats(data, values)  a list of [name, value, remark], shown in large type under the figure
//   describe(data, values)  one or two sentences that say what can be seen now, without repeating the numbers above
//                        them; both are also read out
// app: change({ trait: value }, passing), listen(node, event, handler), values(), dials(), which are the values without
// those of `beside`, alt; tools, the row for the picture's buttons, because the stage is only for the picture; below,
// for text under the figure; redraw(), for a figure that keeps some state besides its dials
/** @param {Record<string, any>} spec */
export function explorer({ typed = {}, units = {}, ...given }) {
  /** @type {Record<string, any>} */
  const labels = Object.fromEntries(given.dials.map(({ trait, label }) => [trait, label]));
  const dials = given.dials.map((dial) => ({
    ...dial, ...typed[dial.trait], ...(dial.within && { within: { ...dial.within, label: labels[dial.within.dial] } }),
  }));
  const settle = (values) => (given.settle ?? ((one) => one))(keepWithin(dials, values));
  const { compute } = given;
  const whole = { ...given, dials, units, settle };
  return { compute, settle, dials, units, render: (context) => mount(whole, context) };
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
  const work = []; // for each event that caused a drawing: milliseconds from the event to the end of the drawing
  const beside = spec.beside?.({ model, page });
  const state = dialState(spec, model, beside);
  const count = { draws: 0 };
  let data;
  const listen = (node, type, handler) => {
    node.addEventListener(type, timed(handler, work, count), { signal: stop.signal });
  };
  const app = appOf(model, beside, state, listen, {
    knobs: () => knobs, say: (...words) => frame.say(...words), redraw: (...how) => redraw(...how),
  });
  const frame = frameOf(spec, app, page);
  frame.foot.append(takeaway(spec, app, frame.stage, page, () => data));
  el.replaceChildren(frame.root);
  const knobs = knobsOf(dials, app, frame);
  const draw = spec.build(frame.stage, app);
  app.below.hidden = app.below.children.length === 0;
  const telling = teller(spec, knobs, frame, count, page, app);
  const around = { theme: readTheme(frame.root), width: 0, most: 0 };
  let look = () => {}; // called after each drawing; checks whether the page's question has been answered

  // passing: the only dials that have changed, if this is one of many redraws in quick succession.
  function redraw(jump = false, passing = /** @type {string[] | false} */ (false)) {
    const values = app.values();
    data = spec.compute(values);
    around.width = Math.floor(frame.stage.clientWidth) || 640; // 640 until the figure is on the page
    around.most = frame.height.clientHeight || MOST;
    const { width, most, theme } = around;
    // Update the dials first: setting a slider forces a layout, which is cheapest before the picture changes.
    const waits = telling.show(data, values, passing);
    draw({ data, values, width, most, theme, jump });
    count.draws += 1;
    telling.later(() => data, waits);
    look();
  }

  const deaf = followModel(model, dials, state, redraw);
  const blind = followPage(frame, around, redraw);
  const open = (entries) => openAt(spec, app, frame, entries);
  followAddress(page, stop.signal, open);
  if (!count.draws) redraw(true);
  const met = (goal) => isMet(goal, dials, app.values(), data);
  const begin = (settings) => {
    const wide = frame.more.open;
    open(settingsOf(settings));
    frame.more.open = wide;
  };
  const reveal = () => { // scrollIntoView would also leave space for the page's own padding
    const tabs = tabsFit(frame, app.tabs);
    const by = (tabs ? app.tabs : frame.work).getBoundingClientRect().top - edgeOf(frame);
    if (!inSight(frame) || (tabs && by < 0)) window.scrollBy(0, by);
  };
  el.ropebook = {
    work, data: () => data, values: app.values, begin, reveal, isMet: met,
    ask: (steps, told) => {
      const setting = () => JSON.stringify(dials.map(({ trait }) => model.get(trait)));
      const front = (traits) => placeKnobs(dials, knobs, frame, traits);
      look = asking(steps, { root: frame.root, place: frame.side, begin, front, reveal, met, setting }, told);
    },
  };
  return () => {
    stop.abort();
    beside?.stop?.();
    for (const end of [blind, telling.stop, deaf]) end();
  };
}

// The functions and elements that a figure's script and its dials may use.
function appOf(model, beside, state, listen, { knobs, say, redraw }) {
  const app = {
    alt: model.get("alt"),
    beside,
    tabs: html("div", { class: "rb-tabs" }),
    tools: html("div", { class: "rb-tools" }),
    below: html("div", { class: "rb-below" }),
    initial: state.values(),
    values: state.values,
    dials: state.held,
    // passing: this is one of many changes in quick succession, as in an animation, so the text may be updated later.
    change(partial, passing = false) {
      state.ask(partial);
      for (const trait of Object.keys(partial)) knobs()[trait]?.refuse("");
      say("");
      redraw(false, passing && Object.keys(partial));
    },
    enter: (dial, text) => enter(app, knobs(), say, dial, text),
    // Called when the rejected text has been removed from the dial's field.
    forgive: (dial) => knobs()[dial.trait].refuse(""),
    listen,
    redraw: () => redraw(),
  };
  return app;
}

// The values of the dials, kept in the model.
function dialState({ dials, settle: settled }, model, beside) {
  let batch = false;
  const held = () => Object.fromEntries(dials.map(({ trait }) => [trait, model.get(trait)]));
  const settle = (values) => ({ ...settled(values), ...beside?.values() });
  // The value that was last requested for each dial. A dial has this value, or the closest one that the other dials
  // allow. If it was adjusted, it returns to the requested value as soon as the others allow that.
  let asked = wanted(dials, held());
  return {
    held,
    values: () => settle(held()),
    ask(partial) {
      asked = wanted(dials, { ...asked, ...partial });
      const values = settle(asked);
      batch = true; // draw only once, even if several traits change
      for (const { trait } of dials) if (!same(values[trait], model.get(trait))) model.set(trait, values[trait]);
      batch = false;
      model.save_changes();
    },
    // Whether the model changed a dial by itself. If so, the new value counts as the requested one.
    heard(trait) {
      if (!batch) asked[trait] = model.get(trait);
      return !batch;
    },
  };
}

// Applies typed text. Returns true if the dial accepts it. Otherwise the dial keeps its value, and the page explains
// why.
function enter(app, knobs, say, dial, text) {
  const values = app.values();
  let value;
  try {
    value = parseDial(present(dial, values), text, values);
  } catch (refusal) {
    const reason = `${refusal.message}. Still ${formatDial(dial, values[dial.trait])}.`;
    knobs[dial.trait].refuse(reason);
    say(`${dial.label}: ${reason}`, false);
    return false;
  }
  app.change({ [dial.trait]: value });
  return true;
}

// Wraps a handler so that its running time is recorded if it caused a redraw.
function timed(handler, work, count) {
  return (event) => {
    const [start, before] = [performance.now(), count.draws];
    handler(event);
    if (count.draws > before) work.push(performance.now() - start);
    if (work.length > 2000) work.splice(0, 1000);
  };
}

// The elements around a picture.
function frameOf(spec, app, page) {
  const stage = html("div", { class: "rb-stage" });
  const stats = html("dl", { class: "rb-stats" });
  const summary = html("p", { class: "rb-summary" });
  const panel = html("div", { class: "rb-dials" });
  const further = html("div", { class: "rb-dials" });
  const more = html("details", { class: "rb-more" }, html("summary", {}, "More dials"), further);
  const says = html("p", { class: "rb-says", role: "status", "aria-live": "polite" });
  const spoken = html("p", { class: "rb-hidden", "aria-live": "polite" });
  const asked = html("div", { class: "rb-dials rb-asked" }); // the dials that the page's question is about
  const height = html("div", { class: "rb-height" });
  const words = html("div", { class: "rb-words-all" }, stats, summary, says, spoken);
  const foot = html("div", { class: "rb-foot" }, app.below);
  const note = typeof spec.note === "string" ? spec.note : spec.note(app.initial);
  const side = html("div", { class: "rb-side" }, asked, app.tools, panel, more);
  const see = html("div", { class: "rb-see" }, stage, words);
  const work = html("div", { class: "rb-work" }, see, side);
  const look = { class: page ? "rb rb-paged" : "rb", role: "group", "aria-label": `Explorer: ${spec.title}` };
  const root = html("div", look,
    html("div", { class: "rb-body" },
      html("p", { class: "rb-title" }, spec.title), html("p", { class: "rb-note" }, note),
      app.tabs, work, foot), height);
  // The reason why a dial rejects a value is shown under its field; here it is only read out.
  const say = (text, seen = true) => {
    setText(says, text);
    put(says, { class: seen ? "rb-says" : "rb-says rb-hidden" });
  };
  return {
    root, work, see, stage, side, words, stats, summary, asked, panel, further, more, spoken, foot, height, say,
  };
}

// The controls for the dials. Those essential to the figure are visible from the start.
function knobsOf(dials, app, frame) {
  const prefix = `rb${Math.random().toString(36).slice(2, 8)}`;
  const knobs = Object.fromEntries(dials.map((dial) => [dial.trait, knob(dial, `${prefix}-${dial.trait}`, app)]));
  placeKnobs(dials, knobs, frame, []);
  return knobs;
}

// Puts the dials that the page's question is about next to it, and the others in their usual places.
function placeKnobs(dials, knobs, { asked, panel, further, more }, front) {
  for (const dial of dials) {
    (front.includes(dial.trait) ? asked : dial.more ? further : panel).append(knobs[dial.trait].box);
  }
  more.hidden = further.children.length === 0;
}

function edgeOf({ work }) {
  return parseFloat(getComputedStyle(work).scrollMarginBlockStart) || 0;
}

// Whether a wide card has tabs, and the window is high enough for them, the picture, the words, the question and the
// dials in question.
function tabsFit(frame, tabs) {
  const { work, see, side, asked } = frame;
  const [row, { top }] = [tabs.getBoundingClientRect(), work.getBoundingClientRect()];
  // The height is 0 in a narrow card. We don't use the place, because the picture stays in view while the page scrolls.
  const { height } = see.getBoundingClientRect();
  const beside = [side.querySelector(".rb-try"), asked].map((node) => node?.getBoundingClientRect());
  const tall = Math.max(parseFloat(getComputedStyle(work).paddingBlockStart) + height,
    ...beside.filter((box) => box?.height).map(({ bottom }) => bottom - top));
  return row.height > 0 && height > 0 && edgeOf(frame) + top - row.top + tall <= innerHeight;
}

// Whether the picture, the words, the question and the dials in question are all within the window. None may be hidden
// by whatever covers the window's upper edge, or by the picture or the words, which stay in place when the page
// scrolls.
function inSight(frame) {
  const { stage, words, side, asked } = frame;
  const edge = edgeOf(frame);
  return [stage, words, asked, side.querySelector(".rb-try")].every((node) => {
    const box = node.getBoundingClientRect();
    const hidden = [stage, words].some((over) => over !== node && overlap(box, over.getBoundingClientRect()));
    return box.height === 0 || (box.top >= edge && box.bottom <= innerHeight && !hidden);
  });
}

function overlap(one, other) {
  return one.top < other.bottom && other.top < one.bottom && one.left < other.right && other.left < one.right;
}

// Describes in numbers and words what the figure shows, and decides when to update the description.
function teller(spec, knobs, { stats, summary, spoken }, count, page, app) {
  let told = 0; // the time of the last update
  let timers = [];
  function tell(data) {
    told = performance.now();
    const values = app.values();
    const idle = spec.idle?.(data, values) ?? {};
    for (const { trait } of spec.dials) knobs[trait].show(values, idle[trait]);
    redrawn(stats, () => spec.stats(data, values).map(([name, value, remark = ""]) => {
      const look = `${value}`.length <= SHORT ? { class: "rb-short" } : {};
      const gap = remark && remark.length <= 6 ? "\u00a0" : " "; // a unit stays with its number
      return html("div", {}, html("dt", {}, name), " ",
        html("dd", {}, html("span", look, value), gap, html("small", {}, ...unbroken(remark, NUMBERED))));
    }));
    setText(summary, joined(spec.describe(data, values)));
  }
  return {
    // Updates everything or, if the last full update was only a moment ago, just the dials in `passing`. Returns
    // whether the rest is postponed.
    show(data, values, passing) {
      const waits = passing && performance.now() - told < PAUSE;
      if (waits) for (const trait of passing) knobs[trait].show(values);
      else tell(data);
      return waits;
    },
    // Work that is postponed until the dials have been idle for a while. Otherwise screen readers would announce every
    // value that a slider passes, and browsers would reject hundreds of address changes.
    later(data, waits) {
      timers.forEach(clearTimeout);
      timers = [setTimeout(() => setText(spoken, count.draws > 1 ? allWords(stats, summary) : ""), 2 * PAUSE),
        setTimeout(() => saveAddress(spec.dials, app, page), PAUSE),
        ...(waits ? [setTimeout(() => tell(data()), PAUSE)] : [])];
    },
    stop: () => timers.forEach(clearTimeout),
  };
}

// The readouts, followed by the sentence.
function allWords(stats, summary) {
  const numbers = [...stats.children].map(({ firstChild, lastChild }) => {
    return `${firstChild.textContent}: ${lastChild.textContent.trim()}.`;
  });
  return [...numbers, summary.textContent].join(" ");
}

function saveAddress(dials, app, page) {
  if (!page) return;
  const values = app.values();
  const entries = dials.map((dial) => [dial.trait, formatDial(dial, values[dial.trait]),
    formatDial(dial, app.initial[dial.trait])]);
  const turned = entries.filter(([, text, home]) => text !== home);
  if (!turned.length && !readAddress(location.hash, page.key).length) return; // keep the address of a heading
  const hash = writeAddress(location.hash, page.key, turned);
  if (hash !== location.hash) history.replaceState(history.state, "", hash || location.href.split("#")[0]);
}

// Sets the dials that the address specifies.
function openAt({ dials }, app, { say, more }, entries) {
  const { values, refusals } = readDials(dials, app.initial, entries);
  app.change(values); // this settles them
  say(refusals.join(" "));
  if (dials.some(({ more: further, trait }) => further && !same(values[trait], app.initial[trait]))) more.open = true;
}

// Redraws whenever the model changes by itself. Returns a function that stops this.
function followModel(model, dials, state, redraw) {
  const heard = dials.map(({ trait }) => [`change:${trait}`, () => state.heard(trait) && redraw()]);
  for (const [event, listener] of heard) model.on(event, listener);
  return () => {
    for (const [event, listener] of heard) model.off(event, listener);
  };
}

// Redraws whenever the page's theme, the stage's width or the space for the picture changes. Returns a function that
// stops this.
function followPage({ root, stage, height }, around, redraw) {
  const stopTheme = watchTheme(() => {
    const now = readTheme(root);
    if (same(now, around.theme)) return;
    around.theme = now;
    redraw(true);
  });
  let frame = 0;
  const resize = new ResizeObserver(() => {
    cancelAnimationFrame(frame); // wait for the next frame, as drawing changes the height and triggers this again
    frame = requestAnimationFrame(() => {
      if (Math.floor(stage.clientWidth) === around.width && height.clientHeight === around.most) return;
      around.theme = readTheme(root); // the figure may have been added to the page only now
      redraw(true);
    });
  });
  resize.observe(stage);
  resize.observe(height);
  return () => {
    stopTheme();
    resize.disconnect();
    cancelAnimationFrame(frame);
  };
}

// Sets this figure's dials whenever the page's address specifies some. Any other address, such as a heading's, leaves
// the figure as it is.
function followAddress(page, signal, open) {
  const follow = () => page && readAddress(location.hash, page.key).length
    && open(readAddress(location.hash, page.key));
  window.addEventListener("hashchange", follow, { signal });
  follow();
}

export function same(a, b) {
  return JSON.stringify(a) === JSON.stringify(b);
}
