// Settings that have a name: a list to choose from, among the figure's tools.

import { html } from "./elements.js";
import { same } from "./mount.js";

// label: what is chosen, read out; prompt: what stands there while the dials are at none of them; items: [name,
// settings]. Returns show(values), to be called at every drawing.
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
