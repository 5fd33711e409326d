// The controls for the dials.

import { count } from "./text.js";
import { formatDial, fromSlider, limitsOf, nudge, present, toSlider } from "./dials.js";
import { html, put, setText } from "./elements.js";

// A dial with its limits, which are visible while it has focus, and with space for an error message below its field.
export function knob(dial, id, app) {
  const { box, field, show } = KINDS[dial.kind](dial, id, app);
  const limits = html("span", { class: "rb-limits", id: `${id}-limits` });
  const why = html("span", { class: "rb-why", id: `${id}-why` });
  box.append(why, limits);
  return {
    box,
    // idle: the reason why the dial currently has no effect, if any.
    show(values, idle) {
      const now = present(dial, values);
      setText(limits, idle || limitsOf(now));
      put(box, { class: idle ? "rb-dial rb-idle" : "rb-dial" });
      show(values[dial.trait], now);
    },
    // Shows why the typed text is rejected. "" clears the message.
    refuse(reason) {
      setText(why, reason);
      const described = reason ? `${id}-why ${id}-limits` : `${id}-limits`;
      const typed = ["number", "text"].includes(dial.kind);
      if (typed) put(field, { "aria-invalid": String(reason !== ""), "aria-describedby": described });
    },
  };
}

export function resetButton(dial, app) {
  const button = html("button", { type: "button", class: "rb-button rb-reset" }, "↺");
  app.listen(button, "click", () => app.change({ [dial.trait]: app.initial[dial.trait] }));
  return {
    button,
    show(value) {
      const home = formatDial(dial, app.initial[dial.trait]);
      put(button, {
        "aria-label": `Reset ${dial.label} to ${home}`,
        title: `Reset to ${home}`,
        "aria-disabled": formatDial(dial, value) === home,
      });
    },
  };
}

const [THUMB, CATCH] = [20, 5]; // the width of a slider's thumb, and how close to a stop a drag must end, both in px

// A line on the slider for each stop, as a CSS background.
function stopMarks(dial) {
  return (dial.stops ?? []).map((stop) => {
    const share = toSlider(dial, stop) / 1000;
    const left = `calc(${100 * share}% + ${(1 - 2 * share) * (THUMB / 2 - 1)}px)`; // the thumb's centre stays inside
    return `linear-gradient(var(--rb-muted), var(--rb-muted)) ${left} 50% / 2px 14px no-repeat`;
  }).join(", ");
}

export function numberDial(dial, id, app) {
  const describedby = { "aria-describedby": `${id}-limits` };
  const field = html("input", {
    id, class: "rb-number", type: "text", autocomplete: "off", inputmode: dial.whole ? "numeric" : "decimal",
    ...describedby,
  });
  const slider = html("input", { type: "range", min: 0, max: 1000, step: "any", ...describedby });
  slider.setAttribute("aria-label", `${dial.label}, slider`);
  const reset = resetButton(dial, app);
  let now = dial;
  let typing = false; // The figure may be redrawn while the reader types, and half-typed text must not be lost.
  const current = () => app.values()[dial.trait];
  const turn = (value) => {
    typing = false;
    app.change({ [dial.trait]: value });
  };
  const show = (value, allowed = now) => {
    now = allowed;
    const text = formatDial(dial, value);
    if (!typing && field.value !== text) field.value = text;
    const at = String(toSlider(now, value));
    if (slider.value !== at) slider.value = at;
    put(slider, { "aria-valuetext": text, ...(dial.stops && { style: `background: ${stopMarks(now)}` }) });
    reset.show(value);
  };
  const keys = (allowed, finely = false) => (event) => {
    if (!allowed.includes(event.key)) return;
    event.preventDefault();
    turn(nudge(now, current(), event.key, finely));
  };
  app.listen(field, "input", () => (typing = true));
  app.listen(field, "change", () => {
    typing = false;
    app.enter(dial, field.value) || show(current());
  });
  app.listen(field, "blur", () => {
    typing = false;
    show(current());
  });
  app.listen(field, "keydown", ({ key }) => {
    if (key !== "Escape") return;
    typing = false;
    app.forgive(dial);
    show(current());
  });
  app.listen(field, "keydown", keys(["ArrowUp", "ArrowDown", "PageUp", "PageDown"], true));
  // A thumb that begins to scroll the page on the slider has already moved it.
  let before = NaN;
  app.listen(slider, "pointerdown", () => (before = current()));
  app.listen(slider, "pointercancel", () => turn(before));
  const near = () => (1000 * CATCH) / (slider.clientWidth || Infinity);
  app.listen(slider, "input", () => turn(fromSlider(now, Number(slider.value), near())));
  app.listen(slider, "keydown", keys(["ArrowUp", "ArrowDown", "ArrowLeft", "ArrowRight", "PageUp", "PageDown"]));
  const box = html("div", { class: "rb-dial" }, html("label", { for: id }, dial.label), field, reset.button, slider);
  return { box, field, show };
}

export function switchDial(dial, id, app) {
  const box = html("input", { type: "checkbox", role: "switch", "aria-describedby": `${id}-limits` });
  const reset = resetButton(dial, app);
  app.listen(box, "change", () => app.change({ [dial.trait]: box.checked }));
  const label = html("label", { class: "rb-switch rb-whole" }, box, html("span", { class: "rb-label" }, dial.label));
  return {
    box: html("div", { class: "rb-dial" }, label, reset.button),
    field: box,
    show(value) {
      box.checked = value;
      reset.show(value);
    },
  };
}

// A row of buttons, exactly one of which is pressed. Arrow keys move between them, as with radio buttons.
export function choiceDial(dial, id, app) {
  const reset = resetButton(dial, app);
  const buttons = dial.options.map((option, k) => {
    const button = html("input", { type: "radio", name: id, value: option });
    app.listen(button, "change", () => app.change({ [dial.trait]: option }));
    return [button, html("label", { class: "rb-option" }, button, html("span", {}, dial.names?.[k] ?? option))];
  });
  const group = html("div", {
    class: "rb-options", role: "radiogroup", "aria-labelledby": `${id}-label`, "aria-describedby": `${id}-limits`,
  }, ...buttons.map(([, label]) => label));
  return {
    box: html("div", { class: "rb-dial" }, html("span", { class: "rb-label rb-whole", id: `${id}-label` }, dial.label),
      reset.button, group),
    field: group,
    show(value) {
      for (const [button] of buttons) button.checked = button.value === value;
      reset.show(value);
    },
  };
}

// A drop-down list, for options that need more than one or two rows of buttons.
export function listDial(dial, id, app) {
  const reset = resetButton(dial, app);
  const options = dial.options.map((option, k) => html("option", { value: option }, dial.names?.[k] ?? option));
  const field = html("select", { id, class: "rb-button rb-list", "aria-describedby": `${id}-limits` }, ...options);
  app.listen(field, "change", () => app.change({ [dial.trait]: field.value }));
  return {
    box: html("div", { class: "rb-dial" },
      html("label", { class: "rb-whole", for: id }, dial.label), reset.button, field),
    field,
    show(value) {
      field.selectedIndex = dial.options.indexOf(value);
      reset.show(value);
    },
  };
}

// A text field that takes effect on every keystroke. Invalid text remains until the reader leaves the field.
export function textDial(dial, id, app) {
  const look = { id, class: "rb-text", autocomplete: "off", spellcheck: "false", "aria-describedby": `${id}-limits` };
  const field = dial.lines ? html("textarea", { ...look, rows: 4 }) : html("input", { ...look, type: "text" });
  const reset = resetButton(dial, app);
  const settle = () => {
    field.value = formatDial(dial, app.values()[dial.trait]);
  };
  app.listen(field, "input", () => app.enter(dial, field.value));
  app.listen(field, "blur", () => {
    settle();
    app.forgive(dial);
  });
  const label = html("label", { class: "rb-whole", for: id }, dial.label);
  return {
    box: html("div", { class: "rb-dial" }, label, reset.button, field),
    field,
    show(value) {
      if (document.activeElement !== field) settle();
      reset.show(value);
    },
  };
}

const MOST_BUTTONS = 6;
const KINDS = {
  number: numberDial, switch: switchDial, text: textDial,
  choice: (dial, ...more) => (dial.options.length > MOST_BUTTONS ? listDial : choiceDial)(dial, ...more),
};

// A row of buttons that change a whole-number dial within limits()[0] … limits()[1]. `noun` names what is counted.
// `letter` names the dial if it is not beside the buttons.
export function stepButtons({ change, listen, values }, trait, noun, limits, letter = "") {
  const within = (value) => Math.min(limits()[1], Math.max(limits()[0], value));
  const steps = [-16, -1, 1, 16].map((by) => {
    const name = `${count(Math.abs(by), noun)} ${by < 0 ? "back" : "forward"}`;
    const look = { type: "button", class: "rb-button", "aria-label": name };
    const button = html("button", look, `${by < 0 ? "−" : "+"}${Math.abs(by)}`);
    listen(button, "click", () => change({ [trait]: within(values()[trait] + by) }));
    return [button, by];
  });
  return {
    row: html("div", { class: "rb-group", ...(letter && { style: "align-items: center; gap: 0.25rem" }) },
      ...(letter ? [html("strong", { "aria-hidden": "true" }, letter)] : []), ...steps.map(([button]) => button)),
    show() {
      const value = values()[trait];
      for (const [button, by] of steps) put(button, { "aria-disabled": value === within(value + Math.sign(by)) });
    },
  };
}
