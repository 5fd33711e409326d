// The styles of the interactive figures.

import { PALETTE } from "../../colours.py";

const variables = (form) => Object.entries(PALETTE)
  .map(([name, pair]) => `  --rb-${name}: ${form(name, pair)};`).join("\n");

// The page defines the --fig-… colours. A notebook doesn't define them, so it uses the light colours after the commas.
// The second block sets colours for the dark themes of JupyterLab, VS Code and Colab.
export const STYLE = `
.rb {
${variables((name, [light]) => `var(--fig-${name}, ${light})`)}
}
[data-jp-theme-light="false"] .rb, .vscode-dark .rb, html[theme="dark"] .rb {
${variables((_, [, dark]) => dark)}
}
.rb, .rb *, .rb *::before, .rb *::after { box-sizing: border-box; }
.rb {
  position: relative;
  container-type: inline-size;
  margin: 0;
  border: 1px solid var(--rb-grid);
  border-radius: 0.75rem;
  background: var(--rb-paper);
  color: var(--rb-ink);
  font: 400 0.9375rem/1.45 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  font-variant-numeric: tabular-nums;
  text-align: start;
  scroll-margin-top: 5rem;
}
.rb p, .rb ol { margin: 0; padding: 0; }
.rb-body { display: flow-root; padding: 0.75rem; }
.rb-title { font-size: 1.125rem; font-weight: 650; letter-spacing: -0.01em; }
.rb .rb-note, .rb-limits { color: var(--rb-muted); font-size: 0.8125rem; }
.rb-stage svg, .rb-stage canvas { display: block; max-width: 100%; }
.rb-stage svg { overflow: visible; }
.rb-stage text { font-family: inherit; fill: var(--rb-ink); }
.rb-stage .rb-quiet { fill: var(--rb-muted); }
.rb-hidden {
  position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap;
}

/* The picture, its numbers and its sentence stay in view while the reader scrolls past the dials, and beside them, in a
   wide card, stand the question and its dial. In a narrow card the picture stays at the top and the words at the
   bottom; between them pass the question, its dial and the other dials. The words come last, so no dial moves when they
   take more lines, and at the card's end the picture passes under them. --rb-top is the height of what covers the
   window's edge. */
.rb {
  --rb-room: 0.5rem;
  --rb-edge: calc(var(--rb-top, 0px) + var(--rb-room));
}
.rb-work { display: flex; flex-direction: column; gap: 0.5rem; scroll-margin-block-start: var(--rb-top, 0px); }
.rb-see, .rb-side { display: contents; }
.rb-stage {
  z-index: 1; inset-block-start: var(--rb-edge); margin-block-start: var(--rb-room);
  background: var(--rb-paper);
  box-shadow: -0.25rem 0 0 var(--rb-room) var(--rb-paper), 0.25rem 0 0 var(--rb-room) var(--rb-paper);
}
.rb-try { order: 1; }
.rb-tools, .rb-dials:not(.rb-asked), .rb-more { order: 2; }
.rb-words-all { order: 3; }
@media (min-height: 37.5rem) {
  @container (max-width: 32.5rem) {
    .rb-stage { position: sticky; }
    .rb-side :is(button, input, select) { scroll-margin-block: calc(var(--rb-edge) + min(28rem, 45svh)) 9rem; }
    .rb-words-all {
      position: sticky; z-index: 2; inset-block-end: 0; padding-block: 0.25rem; background: var(--rb-paper);
      box-shadow: -0.25rem 0 0 var(--rb-paper), 0.25rem 0 0 var(--rb-paper), 0 -1px 0 var(--rb-grid);
    }
  }
}
@media (min-height: 60rem) {
  @container (max-width: 47.99rem) { .rb-stage { position: sticky; } }
}
@container (min-width: 48rem) {
  .rb-work {
    display: grid; grid-template-columns: minmax(0, 1fr) clamp(15rem, 26cqi, 18rem);
    column-gap: clamp(1rem, 2cqi, 1.5rem); align-items: start; padding-block-start: var(--rb-room);
  }
  .rb-see { display: block; position: sticky; inset-block-start: var(--rb-edge); }
  .rb-side { display: flex; flex-direction: column; gap: 0.75rem; }
  .rb-stage.rb-stage { position: static; margin-block: 0 var(--rb-room); }
  /* Up to five lines. If they changed the height, the picture would move where the card's end pushes it up. */
  .rb-words-all { min-height: 6.625rem; }
  .rb-try { order: 0; }
}
@container (min-width: 52.51rem) {
  .rb-body { padding: 1rem 1.25rem; }
}

/* How high the picture may be. Its height has nothing to do with what is drawn, so that drawing does not change it. In
   a notebook, the window may be as high as the figure. */
.rb-height {
  --rb-least: clamp(200px, 62svh, 220px);
  position: absolute; inset-block-start: 0; width: 0; height: 600px; visibility: hidden;
}
@container (max-width: 34rem) { .rb-height { height: 400px; } }
.rb-paged .rb-height { height: clamp(var(--rb-least), 100svh - var(--rb-top, 0px) - 11.5rem, 600px); }
@container (max-width: 52.5rem) {
  .rb-paged .rb-height { height: clamp(var(--rb-least), 100svh - var(--rb-top, 0px) - 14.25rem, 600px); }
}
@container (max-width: 47.99rem) { .rb-paged .rb-height { height: clamp(var(--rb-least), 45svh, 600px); } }
@container (max-width: 34rem) { .rb-paged .rb-height { height: clamp(var(--rb-least), 40.2svh, 400px); } }

/* The figure's words. No dial is below them, so they may take more lines or fewer. */
.rb.rb .rb-stats {
  display: block; margin: 0; font-size: 0.8125rem; line-height: 1.25rem;
}
.rb-stats > div { display: inline; margin-inline-end: 1rem; }
.rb.rb .rb-stats :is(dt, dd) { display: inline; float: none; width: auto; margin: 0; padding: 0; }
.rb.rb .rb-stats dt { color: var(--rb-muted); font-weight: 400; }
.rb-stats dt, .rb-short { white-space: nowrap; }
.rb.rb .rb-stats dd { margin-inline-start: 0.125rem; font-size: 0.9375rem; font-weight: 650; }
.rb-stats small { color: var(--rb-muted); font-size: 0.8125rem; font-weight: 400; }
.rb-foot { margin-block-start: 0.75rem; padding-block-start: 0.5rem; border-block-start: 1px solid var(--rb-grid); }
.rb-below { max-width: 80ch; margin-block: 0.75rem; }
.rb.rb .rb-facts { display: grid; grid-template-columns: 7rem minmax(0, 1fr); gap: 0.375rem 0.75rem; margin: 0; }
.rb.rb .rb-facts :is(dt, dd) { float: none; width: auto; margin: 0; padding: 0; overflow-wrap: anywhere; }
.rb-facts dt { color: var(--rb-muted); font-weight: 400; }
.rb .rb-head { margin-block-start: 0.75rem; font-weight: 600; }
.rb-below pre { margin-block: 0.25rem; overflow-x: auto; }
@container (max-width: 32.5rem) {
  .rb.rb .rb-facts { grid-template-columns: minmax(0, 1fr); }
  .rb-below pre { white-space: pre-wrap; overflow-wrap: anywhere; }
}
.rb .rb-summary {
  max-width: 88ch; min-height: 2.8em; margin-block-start: 0.25rem; font-size: 0.875rem; line-height: 1.4;
}
.rb .rb-says { color: var(--rb-5); font-weight: 600; }
.rb .rb-says:empty { position: absolute; }

.rb-dials:empty { display: none; }
.rb-dials:not(:empty) {
  display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 15rem), 1fr)); gap: 0.375rem 2rem;
}
.rb-more > summary {
  display: flex; align-items: center; gap: 0.5rem; min-height: 2rem; margin-block-start: 0.25rem; font-weight: 600;
  cursor: pointer; list-style: none;
}
.rb-more > summary::-webkit-details-marker { display: none; }
.rb-more > summary::before { content: "▸"; width: 0.75em; }
.rb-more[open] > summary::before { content: "▾"; }
.rb-more > summary:hover { color: var(--rb-1); }
.rb-dial {
  position: relative;
  display: grid; grid-template-columns: 1fr auto auto; place-items: center stretch; place-content: start stretch;
  column-gap: 0.375rem;
}
.rb-dial > label, .rb-dial > .rb-label { font-weight: 600; font-size: 0.875rem; line-height: 1.25; }
.rb-dial > :is(.rb-why, .rb-list, input[type="range"], .rb-text, .rb-options) { grid-column: 1 / -1; }
.rb-dial > .rb-whole { grid-column: 1 / 3; }
/* As heavy as the others, since a lighter label may take fewer lines, which would move the dials below. */
.rb-idle > :is(label, .rb-label) { color: var(--rb-muted); }
/* The limits are drawn over what follows, so that nothing moves. They are for readers who type rather than drag. If a
   value is refused, the reason is shown instead. */
.rb-limits { display: none; }
.rb-dial:has(:focus-visible):not(:has([aria-invalid="true"])) > .rb-limits {
  display: block; position: absolute; z-index: 2; inset: calc(100% + 2px) 0 auto; padding: 0.375rem 0.625rem;
  border: 1px solid var(--rb-muted); border-radius: 0.5rem; background: var(--rb-paper); pointer-events: none;
}
.rb-why { color: var(--rb-5); font-size: 0.8125rem; font-weight: 600; }
.rb-why:empty { display: none; }

.rb :is(input, textarea, button, select) { font: inherit; font-variant-numeric: inherit; color: inherit; margin: 0; }
.rb :is(input, textarea, button, select, summary, .rb-hand):focus-visible {
  outline: 3px solid var(--rb-1); outline-offset: 2px;
}
.rb-text, .rb-number {
  min-height: 1.75rem;
  padding: 0.0625rem 0.5rem;
  border: 1px solid var(--rb-muted);
  border-radius: 0.375rem;
  background: transparent;
}
.rb-text { width: 100%; }
.rb textarea.rb-text { font-family: ui-monospace, monospace; font-size: 0.8125rem; resize: vertical; }
.rb .rb-number { width: 5.25rem; padding-inline: 0.25rem; font-size: 0.875rem; text-align: end; }
.rb :is(.rb-text, .rb-number)[aria-invalid="true"] { border-color: var(--rb-5); box-shadow: 0 0 0 1px var(--rb-5); }
.rb-button {
  min-height: 1.875rem;
  padding: 0.0625rem 0.625rem;
  border: 1px solid var(--rb-muted);
  border-radius: 0.375rem;
  background: transparent;
  cursor: pointer;
}
.rb-button:hover:not([aria-disabled="true"]) { border-color: var(--rb-1); color: var(--rb-1); }
.rb-button[aria-disabled="true"] { border-color: var(--rb-grid); color: var(--rb-muted); cursor: default; }
.rb-reset {
  width: 1.5rem; min-height: 1.75rem; padding: 0; border-color: transparent; font-size: 1rem; line-height: 1;
}
.rb-reset[aria-disabled="true"] { border-color: transparent; opacity: 0.55; }

.rb input[type="range"] { appearance: none; width: 100%; height: 1.5rem; background: none; cursor: pointer; }
.rb input[type="range"]::-webkit-slider-runnable-track { height: 4px; border-radius: 2px; background: var(--rb-muted); }
.rb input[type="range"]::-moz-range-track { height: 4px; border-radius: 2px; background: var(--rb-muted); }
.rb input[type="range"]::-webkit-slider-thumb {
  appearance: none; width: 20px; height: 20px; margin-block-start: -8px;
  border: 2px solid var(--rb-1); border-radius: 50%; background: var(--rb-paper);
}
.rb input[type="range"]::-moz-range-thumb {
  width: 16px; height: 16px; border: 2px solid var(--rb-1); border-radius: 50%; background: var(--rb-paper);
}
.rb input[type="range"]:active::-webkit-slider-thumb { background: var(--rb-1); }
.rb input[type="range"]:active::-moz-range-thumb { background: var(--rb-1); }
.rb-switch { display: flex; align-items: center; gap: 0.625rem; min-height: 1.875rem; cursor: pointer; }
.rb-switch input {
  appearance: none; flex: none; position: relative; width: 44px; height: 24px;
  border: 2px solid var(--rb-muted); border-radius: 12px; background: transparent; cursor: pointer;
}
.rb-switch input::after {
  content: ""; position: absolute; inset: 3px auto 3px 3px; width: 14px;
  border-radius: 50%; background: var(--rb-muted);
}
.rb-switch input:checked { border-color: var(--rb-1); background: var(--rb-1); }
.rb-switch input:checked::after { inset-inline-start: 23px; background: var(--rb-paper); }
@media (forced-colors: active) { .rb-switch input { appearance: auto; } }
.rb-options { display: flex; flex-wrap: wrap; gap: 0.25rem; margin-block-end: 0.25rem; }
.rb-option {
  position: relative; display: grid; place-items: center; min-height: 1.75rem; padding: 0 0.5rem;
  border: 1px solid var(--rb-muted); border-radius: 0.375rem; font-size: 0.875rem; cursor: pointer;
}
.rb-option input { appearance: none; position: absolute; inset: 0; border-radius: inherit; cursor: inherit; }
.rb-option:hover { border-color: var(--rb-1); }
.rb-option:has(:checked) { border-color: var(--rb-1); background: var(--rb-1); color: var(--rb-paper); }
@media (forced-colors: active) { .rb-option:has(:checked) { background: Highlight; color: HighlightText; } }
@media (prefers-reduced-motion: no-preference) {
  .rb-switch input::after { transition: inset-inline-start 0.15s; }
  .rb-moves:not(.rb-at-once) .rb-piece { transition: transform 0.35s cubic-bezier(0.3, 0.7, 0.2, 1); }
}
.rb .rb-words { display: flex; flex-wrap: wrap; gap: 0.5rem; margin-block: 0.5rem 0.75rem; list-style: none; }
.rb .rb-words li { margin: 0; }
.rb-word {
  min-height: 2.5rem; padding: 0.25rem 0.875rem; border: 1px solid var(--rb-muted); border-radius: 0.625rem;
  background: transparent; font-size: 1.0625rem; cursor: grab; touch-action: none; user-select: none;
}
.rb-word sub { color: var(--rb-muted); font-size: 0.75rem; line-height: 0; }
.rb-word:hover { border-color: var(--rb-1); }
.rb-word[aria-pressed="true"] { border-color: var(--rb-1); box-shadow: inset 0 0 0 1px var(--rb-1); }
.rb-words li:has(.rb-held) { position: relative; z-index: 1; }
.rb-word.rb-held { cursor: grabbing; background: var(--rb-1); color: var(--rb-paper); }
.rb-word.rb-held sub { color: inherit; }
.rb .rb-upright { position: absolute; display: block; margin: 0; }
.rb-upright li { height: var(--rb-row); padding-block-end: 4px; }
.rb-upright .rb-word {
  width: 100%; height: 100%; min-height: 0; padding: 0 0.375rem; font-size: 0.875rem; white-space: nowrap;
}
.rb-stage .rb-faint { opacity: 0.25; }
.rb-tools { display: flex; flex-wrap: wrap; gap: 0.375rem; }
.rb-tools:not(:has(> :not([hidden]))) { display: none; }
.rb-tabs:has(> :not([hidden])) { margin-block: 0.5rem 0.25rem; }
.rb-tools .rb-button { min-width: 2.75rem; }
.rb option { background: var(--rb-paper); color: var(--rb-ink); }
.rb-group { display: flex; flex-wrap: wrap; gap: 0.5rem; }
.rb-button[aria-pressed="true"] {
  border-color: var(--rb-1); box-shadow: inset 0 0 0 1px var(--rb-1); color: var(--rb-1);
}
.rb-panels:not([hidden]) { display: flex; flex: 1 0 100%; }
.rb-panels .rb-button { flex: auto; border-radius: 0; margin-inline-start: -1px; }
.rb-panels .rb-button:first-child { border-start-start-radius: 0.5rem; border-end-start-radius: 0.5rem; margin: 0; }
.rb-panels .rb-button:last-child { border-start-end-radius: 0.5rem; border-end-end-radius: 0.5rem; }
.rb-panels .rb-button[aria-pressed="true"] { background: var(--rb-1); color: var(--rb-paper); }
.rb-stage > svg + .rb-note { margin-block-start: 1rem; }

/* The page's question. What asks and what tells share one room, so that nothing moves when it is done. */
.rb-try {
  padding: 0.375rem 0.75rem 0.5rem;
  border: 1px solid var(--rb-grid); border-radius: 0.5rem; font-size: 0.875rem; line-height: 1.35;
}
.rb .rb-try-head { display: flex; flex-wrap: wrap; gap: 0 0.75rem; color: var(--rb-muted); font-size: 0.8125rem; }
.rb-try-mark { font-weight: 600; }
.rb-try[data-phase="done"] .rb-try-mark { color: var(--rb-3); }
.rb-try-question { margin-block: 0.125rem 0.375rem; font-weight: 600; }
.rb-try-both { display: grid; }
.rb-try-both > * { grid-area: 1 / 1; display: flex; flex-wrap: wrap; place-content: start; gap: 0.375rem 0.75rem; }
.rb-try-said { display: grid; flex: 1 1 20rem; }
.rb-try-said > * { grid-area: 1 / 1; }
.rb-try-room { visibility: hidden; }
@container (min-width: 32.51rem) and (max-width: 47.99rem) { .rb-try-row { margin-inline-start: auto; } }
.rb-try-both > [inert] { visibility: hidden; }
.rb-try-answers { display: flex; flex-wrap: wrap; gap: 0.375rem; }
.rb .rb-answer { min-height: 1.75rem; padding: 0.125rem 0.625rem; text-align: start; }
.rb-try-row { display: flex; flex-wrap: wrap; align-items: center; gap: 0 0.75rem; }
.rb .rb-try-quiet {
  min-height: 1.75rem; padding: 0; border: 0; background: transparent; color: var(--rb-muted); font-size: 0.8125rem;
  text-decoration: underline; text-decoration-color: var(--rb-grid); text-underline-offset: 0.2em; cursor: pointer;
}
.rb .rb-try-quiet:hover { color: var(--rb-1); text-decoration-color: currentcolor; }
.rb-try-said strong { font-weight: 650; }
@container (max-width: 32.5rem) {
  .rb .rb-try :is(.rb-answer, .rb-button, .rb-try-quiet) { min-height: 2.75rem; }
  .rb-try { position: relative; }
  /* Here stands the button for the next question. */
  .rb-try:is([data-phase="done"], [data-phase="shown"]) .rb-try-place { display: none; }
  .rb-try-row { position: absolute; inset: -0.375rem 0.75rem auto auto; }
  .rb .rb-try-row .rb-button { padding: 0; border: 0; color: var(--rb-1); font-size: 0.8125rem; font-weight: 600; }
  .rb-try-why, .rb .rb-summary { font-size: 0.8125rem; line-height: 1.35; }
  .rb .rb-stats { font-size: 0.75rem; line-height: 1.125rem; }
  .rb.rb .rb-stats dd { font-size: 0.875rem; }
  .rb-stats small { font-size: 0.75rem; }
}
@container (max-width: 47.99rem) {
  .rb-try-both > [inert], .rb-try-room { display: none; }
}
.rb-hides-words :is(.rb-stats, .rb-summary), .rb-hides-curves .rb-tells, .rb-playing .rb-ahead { visibility: hidden; }
.rb-covers { fill: var(--rb-paper); stroke: var(--rb-muted); stroke-dasharray: 2 4; rx: 4px; }
.rb-hides-curves .rb-covers { visibility: visible; }
.rb-hides-words .rb-words-all::before {
  content: "Numbers and explanation appear once you try it."; position: absolute; color: var(--rb-muted);
}

.rb-takeaway { display: flex; flex-wrap: wrap; gap: 0 0.25rem; margin: 0 -0.5rem; }
.rb-takeaway button {
  min-height: 2rem; padding: 0.125rem 0.5rem; border: 0; border-radius: 0.5rem; background: transparent;
  color: var(--rb-muted); font-size: 0.8125rem; cursor: pointer;
}
.rb-takeaway button:hover { color: var(--rb-1); text-decoration: underline; }
.rb-takeaway button:last-child { margin-inline-start: auto; }
`;
