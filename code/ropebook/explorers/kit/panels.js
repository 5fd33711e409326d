// Shows one panel of a picture at a time if a narrow stage has no room for all of them.

import { NARROW } from "./drawing.js";
import { html, put } from "./elements.js";

// Adds buttons to app.tools that switch between the named panels; they are visible only on narrow stages. It returns a
// function that draw calls with the stage's width, and that gives the number of the panel to draw, or null for all
// panels. The switch is not a dial: the figure remembers the panel, but the address doesn't contain it.
export function panels(app, /** @type {string[]} */ names) {
  let chosen = 0;
  const buttons = names.map((name, i) => {
    const button = html("button", { type: "button", class: "rb-button" }, name);
    app.listen(button, "click", () => {
      chosen = i;
      app.redraw();
    });
    return button;
  });
  const row = html("div", { class: "rb-panels", role: "group", "aria-label": "What the picture shows" }, ...buttons);
  app.tools.append(row);
  return (width) => {
    row.hidden = width >= NARROW;
    buttons.forEach((button, i) => put(button, { "aria-pressed": String(i === chosen) }));
    return row.hidden ? null : chosen;
  };
}
