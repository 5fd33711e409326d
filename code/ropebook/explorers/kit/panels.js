// Shows a picture's panels one at a time if the stage is too narrow or too low for all of them.

import { NARROW } from "./drawing.js";
import { html, put } from "./elements.js";

// Adds buttons to app.tabs that switch between the named panels. They are only visible on stages narrower than `across`
// or shorter than `least`, the height that all panels need together. Returns a function that `draw` calls with the
// stage's width and height; its result is the index of the panel to draw, or null for all panels. The panel `first` is
// shown first. The switch is not a dial: the figure remembers the panel, but the address doesn't contain it.
export function panels(app, /** @type {string[]} */ names, { least = 0, across = NARROW, first = 0 } = {}) {
  let chosen = first;
  const buttons = names.map((name, i) => {
    const button = html("button", { type: "button", class: "rb-button" }, name);
    app.listen(button, "click", () => {
      chosen = i;
      app.redraw();
    });
    return button;
  });
  const row = html("div", { class: "rb-panels", role: "group", "aria-label": "What the picture shows" }, ...buttons);
  app.tabs.append(row);
  return (width, most = Infinity) => {
    row.hidden = width >= across && most >= least;
    buttons.forEach((button, i) => put(button, { "aria-pressed": String(i === chosen) }));
    return row.hidden ? null : chosen;
  };
}
