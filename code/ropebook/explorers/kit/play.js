// Animation that starts when the reader presses Play.

import { html, setText } from "./elements.js";
import { same } from "./mount.js";

const LONGEST = 0.1; // the maximum number of seconds between two frames, so that the figure doesn't jump after a delay

// Returns an `advance` that raises a whole number evenly. most(values): where it ends; pace(values): steps per second.
export const evenly = (trait, most, pace) => (values, seconds) => (values[trait] >= most(values) ? null
  : { [trait]: Math.min(most(values), values[trait] + Math.floor(pace(values) * seconds)) });

// Adds a Play button to the figure's tools.
//   advance(values, seconds)  the dials after this many seconds, { trait: value }; null at the end of the animation
//   again                     optional: the dials from which to start over if Play is pressed at the end
//   rewinds                   whether Play always starts over, unless the reader has paused just before
//   ended                     optional: called when the animation stops
//   step                      the number of seconds by which one press advances for readers who prefer reduced motion
//   stepName                  the button's name for these readers
// The animation stops when the reader moves a dial, when the figure is scrolled out of view, and at the end. While it
// plays, whatever has the class rb-ahead is hidden. Returns a function that says whether it is playing.
export function play(app, /** @type {Record<string, any>} */ options) {
  const { advance, again = {}, rewinds, ended, step = 1, stepName = "Step" } = options;
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const button = app.tools.appendChild(html("button", { type: "button", class: "rb-button" }));
  let run = null; // while it plays: the values at the start, the seconds since then, and the dials it has set
  let left = null; // the dials at which the animation last stopped
  const atEnd = () => advance(app.values(), 1e-3) === null;
  const name = () => setText(button, run ? "Pause" : calm.matches ? stepName : "Play");
  const mark = (on) => button.closest(".rb").classList.toggle("rb-playing", on);
  const stop = () => {
    if (!run) return name();
    run.over.abort();
    run = null;
    left = app.dials();
    name();
    mark(false);
    return ended?.();
  };
  const tick = () => requestAnimationFrame(() => button.dispatchEvent(new Event("frame")));

  app.listen(button, "click", () => {
    if (run) return stop();
    if (atEnd() || (rewinds && !(left && same(app.dials(), left)))) app.change(again);
    if (calm.matches) {
      const next = advance(app.values(), step);
      if (next) app.change(next);
      left = app.dials();
      return undefined;
    }
    const over = new AbortController();
    run = { start: app.values(), shown: app.dials(), seconds: 0, last: performance.now(), over };
    document.addEventListener("visibilitychange", stop, { signal: over.signal });
    const sight = new IntersectionObserver((seen) => seen.at(-1).isIntersecting || stop());
    sight.observe(button.closest(".rb").querySelector(".rb-stage"));
    over.signal.addEventListener("abort", () => sight.disconnect());
    name();
    mark(true);
    tick();
    return undefined;
  });
  // Each frame is an event, so that its running time is measured like that of any other event, and so that it stops
  // with the figure.
  app.listen(button, "frame", () => {
    if (!run) return;
    const now = performance.now();
    run.seconds += Math.min(LONGEST, (now - run.last) / 1000);
    run.last = now;
    const next = same(app.dials(), run.shown) && !atEnd() && advance(run.start, run.seconds);
    if (!next) {
      stop();
      return;
    }
    // The position stays the same for several frames, and only the first of these has to be drawn.
    if (!same({ ...run.shown, ...next }, run.shown)) app.change(next, true);
    run.shown = app.dials();
    tick();
  });
  app.listen(calm, "change", stop);
  name();
  return () => run !== null;
}

// Plays the dial "position" from its current value to `most`, at `pace` positions per second.
export function playPositions(app, most, pace) {
  play(app, {
    advance: ({ position }, seconds) => (position === most ? null
      : { position: Math.min(most, position + Math.floor(pace * seconds)) }),
    again: { position: 0 },
    step: 1 / pace,
  });
}
