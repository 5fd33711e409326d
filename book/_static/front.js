// The sentence on the front page, which readers can slide along the text. They can also choose words. _ext/front.py
// draws the sentence.
(() => {
  "use strict";

  const LAST = 999; // the last position to which the first token can move
  const RADIUS = 26;

  // The angle between two arrows whose directions differ by `apart` degrees: 0 to 180.
  function between(apart) {
    const turned = ((apart % 360) + 360) % 360;
    return Math.min(turned, 360 - turned);
  }

  // A sector between two directions, given in degrees counter-clockwise. It covers at most half of the circle.
  function sector(begin, end) {
    const at = (degrees) => {
      const angle = (degrees * Math.PI) / 180;
      return `${(RADIUS * Math.cos(angle)).toFixed(1)} ${(-RADIUS * Math.sin(angle)).toFixed(1)}`;
    };
    const counter = (((end - begin) % 360) + 360) % 360 <= 180;
    return `M0 0L${at(begin)}A${RADIUS} ${RADIUS} 0 0 ${counter ? 0 : 1} ${at(end)}Z`;
  }

  // The chosen words after a click on another word, which replaces the nearer of the two. The key comes before the
  // query.
  function chosen({ query, key }, at) {
    if (at === query || at === key) return { query, key };
    const pair = Math.abs(at - query) <= Math.abs(at - key) ? [at, key] : [query, at];
    return { query: Math.max(...pair), key: Math.min(...pair) };
  }

  if (typeof document === "undefined") {
    globalThis.front = { between, sector, chosen };
    return;
  }

  function open(stage) {
    const degrees = Number(stage.dataset.degrees);
    let pair = { query: Number(stage.dataset.query), key: Number(stage.dataset.key) };
    let start = Number(stage.dataset.start);
    let motion = 0;
    const line = stage.querySelector(".front-line");
    const tokens = [...line.children].map((given) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = given.className;
      button.append(...given.childNodes);
      given.replaceWith(button);
      return button;
    });
    const words = tokens.map((token) => token.querySelector("span").textContent);
    const rule = document.createElement("div");
    const told = { role: "slider", tabindex: "0", "aria-label": "Position of the sentence", "aria-valuemin": "0",
      "aria-valuemax": String(LAST) };
    for (const [name, value] of Object.entries(told)) rule.setAttribute(name, value);
    rule.className = "front-rule";
    line.append(rule);
    stage.classList.add("front-live");
    const picture = stage.querySelector(".front-pair");
    const [area, keyArrow, queryArrow] = picture.querySelectorAll("path");
    const output = stage.querySelector(".front-angle");
    const turn = (path, angle, scale) => (path.style.transform = `rotate(${-angle}deg) scale(${scale})`);

    function draw() {
      const whole = Math.round(start);
      const cell = line.clientWidth / tokens.length;
      line.style.setProperty("--front-cell", `${cell}px`);
      line.style.setProperty("--front-shift", `${cell / 2 - start * cell}px`);
      tokens.forEach((token, k) => {
        turn(token.querySelector("path"), degrees * (start + k), 1);
        token.querySelector("small").textContent = String(whole + k);
        token.classList.toggle("front-query", k === pair.query);
        token.classList.toggle("front-key", k === pair.key);
        token.setAttribute("aria-pressed", String(k === pair.query || k === pair.key));
      });
      const [begin, end] = [pair.key, pair.query].map((k) => degrees * (start + k));
      area.setAttribute("d", sector(begin, end));
      turn(keyArrow, begin, 2.2);
      turn(queryArrow, end, 2.2);
      const angle = `${between(end - begin)}°`;
      if (output.textContent !== angle) output.textContent = angle;
      picture.setAttribute("aria-label",
        `The arrows of ${words[pair.query]} and ${words[pair.key]}, ${between(end - begin)} degrees apart.`);
      rule.setAttribute("aria-valuenow", String(whole));
      rule.setAttribute("aria-valuetext", `first token at position ${whole}`);
    }

    function moveTo(value) {
      start = Math.min(LAST, Math.max(0, value));
      draw();
    }

    const still = () => window.matchMedia("(prefers-reduced-motion: reduce)").matches;

    function glide(to, duration) {
      cancelAnimationFrame(motion);
      if (still() || duration === 0) return moveTo(to);
      const [from, begun] = [start, performance.now()];
      const frame = (now) => {
        const share = Math.min(1, (now - begun) / duration);
        moveTo(from + (to - from) * share * share * (3 - 2 * share));
        if (share < 1) motion = requestAnimationFrame(frame);
      };
      motion = requestAnimationFrame(frame);
      return undefined;
    }

    let held = null;
    let dragged = false;
    line.addEventListener("pointerdown", (event) => {
      cancelAnimationFrame(motion);
      held = { x: event.clientX, start };
      dragged = false;
    });
    addEventListener("pointermove", (event) => {
      if (!held) return;
      const by = event.clientX - held.x;
      if (Math.abs(by) > 4) dragged = true;
      if (dragged) moveTo(held.start + (by * tokens.length) / line.clientWidth);
    });
    for (const name of ["pointerup", "pointercancel"]) {
      addEventListener(name, () => {
        if (held && dragged) glide(Math.round(start), 160);
        held = null;
      });
    }
    tokens.forEach((token, k) => token.addEventListener("click", () => {
      if (dragged) return;
      pair = chosen(pair, k);
      draw();
    }));
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 };
    rule.addEventListener("keydown", (event) => {
      const to = event.key === "Home" ? 0 : event.key === "End" ? LAST : Math.round(start) + (steps[event.key] ?? NaN);
      if (Number.isNaN(to)) return;
      event.preventDefault();
      glide(Math.min(LAST, Math.max(0, to)), 160);
    });
    new ResizeObserver(() => draw()).observe(line);
    draw();
    const untouched = () => held === null && start === Number(stage.dataset.start);
    if (!still()) setTimeout(() => untouched() && glide(start + 4, 2600), 700);
  }

  document.querySelectorAll(".front-stage").forEach(open); // this script is deferred, so the page has been parsed
})();
