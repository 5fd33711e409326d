// A drop-down list of named settings in the figure's toolbar.

import { html } from "./elements.js";
import { same } from "./mount.js";

// label: the list's name for screen readers; prompt: the text shown while the dials match none of the settings; items:
// [name, settings]. Returns show(values), which must be called on every redraw.
export function presets(app, label, prompt, /** @type {any[][]} */ items) {
  const list = html("select", { class: "rb-button", "aria-label": label },
    ...[prompt, ...items.map(([name]) => name)].map((name) => html("option", {}, name)));
  app.listen(list, "change", () => {
    const [, settings] = items[list.selectedIndex - 1] ?? [];
    if (settings) app.change(settings);
    else app.redraw();
  });
  app.tools.append(list);
  return (values) => {
    list.selectedIndex = 1 + items.findIndex(([, settings]) => same({ ...values, ...settings }, values));
  };
}
