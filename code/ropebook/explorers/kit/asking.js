// Asks a page's questions one at a time, in the figure's card. The card asks the question, the reader tries it, and
// then the card gives the reason.

import { settingsOf, together } from "./steps.js";
import { html, put, setText } from "./elements.js";

const ASKED = "Guess first";
const GUESSED = "Now try it";
const DONE = "✓ Done";
const SHOWN = "Shown";
const REST = 350; // a goal counts once the dials have rested there for this many milliseconds

// The response to a guess. Both answers are given as they are written on the page, as sentences or parts of a sentence.
export function verdict(guess, right) {
  const ended = (text) => (/[.?!]$/.test(text) ? text : `${text}.`);
  if (guess === null) return `The answer: ${ended(right)}`;
  if (guess === right) return `You said: ${ended(guess)} That is right.`;
  return `You said: ${ended(guess)} But: ${ended(right)}`;
}

// steps: for each step, the nodes of its question, its answers and its reason, and the index of the right answer.
// `start`, `show` and `goal` are texts. `hides` names what the figure hides until the reader has moved a dial. A guess
// alone uncovers nothing, so that the reader sees the answer only by trying it.
// figure: begin(settings) sets the dials; front(dials) puts the dials to be moved next to the question; reveal()
// scrolls until the whole step is visible; setting() returns the dials' setting as a text; met(goal) says whether a
// goal is met; root is the figure's element, which hides whatever would give the answer away; place is the element for
// the questions.
// told(at, guess) is called for each step that is answered, so that the page can keep it. Returns the function to call
// after each drawing.
export function asking(steps, figure, told) {
  const state = { at: 0, guess: null, phase: "asked", armed: false, touched: false, setting: figure.setting() };
  const parts = made();
  let resting = 0; // the timer that runs while a goal is met
  const step = () => steps[state.at];
  // The dials to be moved. None if the reader has to drag something in the picture.
  const drags = () => /\bdrag\b/i.test(textOf(step().question));
  const turned = () => (drags() ? [] : settingsOf(step().show).map(([trait]) => trait));

  function show() {
    const { phase, guess, at } = state;
    const over = phase === "done" || phase === "shown";
    const said = { asked: ASKED, guessed: GUESSED, done: DONE, shown: SHOWN }[phase];
    setText(parts.place, steps.length > 1 ? `Try this, ${at + 1} of ${steps.length}` : "Try this");
    setText(parts.mark, said);
    put(parts.root, { "data-phase": phase });
    [...parts.answers.children].forEach((button, k) => put(button, { "aria-pressed": String(k === guess) }));
    parts.asks.inert = over;
    parts.tells.inert = !over;
    parts.next.hidden = at === steps.length - 1;
    const hides = over || state.touched ? "" : step().hides;
    figure.root.classList.toggle("rb-hides-words", hides !== "");
    figure.root.classList.toggle("rb-hides-curves", hides === "curves");
  }

  function say() {
    const { answers, right, why } = step();
    const texts = answers.map((nodes) => textOf(nodes));
    const said = (at) => verdict(at === null ? null : texts[at], texts[right]);
    // The longest verdict reserves the space before and after the answer.
    const longest = [...answers.keys()].sort((a, b) => said(b).length - said(a).length)[0];
    [[parts.why, state.guess], [parts.room, longest]].forEach(([place, guess]) => {
      place.replaceChildren(html("strong", {}, said(guess)), " ", ...copies(why));
    });
  }

  function finish(phase) {
    state.phase = phase;
    say();
    show();
    parts.spoken.replaceChildren(...copies([...parts.why.childNodes]));
    told(state.at, state.guess);
  }

  function open(at) {
    Object.assign(state, { at, guess: null, phase: "asked", touched: false });
    parts.question.replaceChildren(...copies(step().question));
    parts.answers.replaceChildren(...step().answers.map((nodes, k) => {
      const button = html("button", { type: "button", class: "rb-button rb-answer" }, ...copies(nodes));
      button.addEventListener("click", () => {
        Object.assign(state, { guess: k, phase: "guessed" });
        show();
      });
      return button;
    }));
    say(); // its space is reserved from the start, so that nothing moves under the reader's hand when the goal is met
    figure.front(turned());
    state.armed = !figure.met(step().goal);
    parts.spoken.replaceChildren();
    show();
  }

  function setUp(settings) {
    figure.begin(settings);
    Object.assign(state, { touched: false, setting: figure.setting() });
    show();
    figure.reveal();
  }

  parts.setUp.addEventListener("click", () => setUp(step().start));
  parts.tell.addEventListener("click", () => {
    state.phase = "shown"; // must be set before the dials move, because the reader didn't move them
    figure.begin(together(step().start, step().show));
    finish("shown");
    figure.reveal();
    (parts.next.hidden ? parts.again : parts.next).focus({ preventScroll: true });
  });
  parts.again.addEventListener("click", () => {
    open(state.at);
    setUp(step().start);
    parts.answers.firstChild.focus({ preventScroll: true });
  });
  parts.next.addEventListener("click", () => {
    open(state.at + 1);
    setUp(step().start);
    parts.answers.firstChild.focus({ preventScroll: true });
  });
  open(0);
  figure.place.prepend(parts.root);

  return () => {
    const met = figure.met(step().goal);
    clearTimeout(resting);
    if (!met) state.armed = true;
    if (figure.setting() !== state.setting) {
      Object.assign(state, { touched: true, setting: figure.setting() });
      if (step().hides) show();
    }
    if (!met || !state.armed) return;
    resting = setTimeout(() => {
      const waits = state.phase === "asked" || state.phase === "guessed";
      if (waits && state.armed && figure.met(step().goal)) finish("done");
    }, REST);
  };
}

function made() {
  const place = html("span", { class: "rb-try-place" });
  const mark = html("span", { class: "rb-try-mark", role: "status" });
  const question = html("div", { class: "rb-try-question" });
  const answers = html("div", { class: "rb-try-answers", role: "group", "aria-label": "Your guess" });
  const quiet = (text) => html("button", { type: "button", class: "rb-try-quiet" }, text);
  const [setUp, tell, again] = [quiet("Set up"), quiet("Just show me"), quiet("Try it again")];
  const why = html("p", { class: "rb-try-why" });
  const room = html("p", { class: "rb-try-room" }); // an unseen text that reserves the space for the reason
  const next = html("button", { type: "button", class: "rb-button" }, "Next question");
  const asks = html("div", { class: "rb-try-asks" }, answers, html("div", { class: "rb-try-row" }, setUp, tell));
  const tells = html("div", { class: "rb-try-tells" }, html("div", { class: "rb-try-said" }, why, room),
    html("div", { class: "rb-try-row" }, next, again));
  const spoken = html("p", { class: "rb-hidden", "aria-live": "polite" });
  // A group rather than a landmark, because a page may have several.
  const root = html("div", { class: "rb-try", role: "group", "aria-label": "Try this" },
    html("p", { class: "rb-try-head" }, place, mark), question, html("div", { class: "rb-try-both" }, asks, tells),
    spoken);
  return { root, place, mark, question, answers, setUp, tell, again, why, room, next, asks, tells, spoken };
}

const copies = (nodes) => nodes.map((node) => node.cloneNode(true));
const textOf = (nodes) => nodes.map((node) => node.textContent).join("").trim();
