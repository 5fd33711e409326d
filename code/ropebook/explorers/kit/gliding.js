// Draws what lies in between when positions change a little, so that the eye can follow.

import { html } from "./elements.js";

// Returns glide(to, jump, draw). It calls draw(positions) for every frame until the positions reach `to`, an array of
// numbers; those in between need not be whole. They jump at once if `jump` is true, if one of them changes by more than
// `nearby`, or if readers prefer reduced motion.
//   takes   how long a glide lasts, in ms
//   nearby  over longer ways, what turns fast would only flicker
export function glider(app, /** @type {{ takes: number, nearby: number }} */ { takes, nearby }) {
  const calm = window.matchMedia("(prefers-reduced-motion: reduce)");
  const clock = html("div"); // each frame is an event, so that it stops with the figure
  let shown = null; // the positions that are drawn
  let run = { from: [], to: [], since: 0, takes: 0, draw: (_) => {} };
  let waiting = false; // whether the next frame has been requested
  const frame = () => {
    const share = run.takes ? Math.min(1, (performance.now() - run.since) / run.takes) : 1;
    shown = run.to.map((to, k) => (share < 1 ? run.from[k] + (to - run.from[k]) * share : to));
    run.draw(shown);
    waiting = share < 1;
    if (waiting) requestAnimationFrame(() => clock.dispatchEvent(new Event("frame")));
  };
  app.listen(clock, "frame", frame);
  return (to, jump, draw) => {
    const now = performance.now();
    const moves = !jump && !calm.matches && shown && to.every((one, k) => Math.abs(one - shown[k]) <= nearby);
    // If positions follow one another quickly, as in a drag, each must be reached before the next.
    if (!moves) run = { from: to, to, since: now, takes: 0, draw };
    else if (to.every((one, k) => one === run.to[k])) run.draw = draw;
    else run = { from: shown, to, since: now, takes: Math.min(takes, now - run.since), draw };
    if (!moves || !waiting) frame();
  };
}
