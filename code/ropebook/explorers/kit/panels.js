// One panel of a picture at a time, where a narrow stage has no room for all.

import { NARROW } from "./drawing.js";
import { html, put } from "./elements.js";

// Puts a switch between the named panels into app.tools, to be seen on narrow stages only. What it returns is called by
// draw with the stage's width: the number of the panel to draw, null where all are drawn. It is no dial: the figure
// keeps which panel is shown, the address does not.
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
