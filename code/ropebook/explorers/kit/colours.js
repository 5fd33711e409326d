// The page's colours, and ways to blend them.

import { PALETTE } from "../../colours.py";
import { html } from "./elements.js";
import { lastCall } from "./rope.js";

export const COLOURS = Object.keys(PALETTE);

// Returns the theme's colours as [r, g, b], taken from the CSS variables that `el` inherits. An element that isn't on
// the page yet has no variables, so it gets those of the body. (JupyterLab, for example, renders cells before they come
// into view.)
export function readTheme(el) {
  const box = html("div", { class: "rb rb-hidden" });
  const probe = box.appendChild(html("span"));
  (el.isConnected ? el : document.body).append(box);
  const theme = {};
  for (const name of COLOURS) {
    probe.style.color = `var(--rb-${name})`;
    theme[name] = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3).map(Number);
  }
  box.remove();
  return theme;
}

// Calls `callback` when the page or the system switches between light and dark. Returns a function that ends the calls.
export function watchTheme(callback) {
  const names = ["data-theme", "theme", "class", "data-jp-theme-light", "data-vscode-theme-kind"];
  const observer = new MutationObserver(callback);
  for (const node of [document.documentElement, document.body]) observer.observe(node, { attributeFilter: names });
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  system.addEventListener("change", callback);
  return () => {
    observer.disconnect();
    system.removeEventListener("change", callback);
  };
}

export function mix(from, to, share) {
  return from.map((channel, i) => Math.round(channel + (to[i] - channel) * share));
}

// The colour for a value: orange at −1, the background colour at 0 and blue at 1. Values outside this range are
// clamped.
export function diverging(theme, value) {
  return mix(theme.paper, value < 0 ? theme["2"] : theme["1"], Math.min(1, Math.abs(value)));
}

// The same colours as a lookup table for −1 … 1, with index 128 + 127 · value, in the format of ImageData.
export const divergingTable = lastCall((theme) => Uint32Array.from({ length: 256 }, (_, level) => {
  const [r, g, b] = diverging(theme, (level - 128) / 127);
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}));

export function css(colour) {
  return `rgb(${colour.join(",")})`;
}

// Black or white, whichever is easier to read on the given colour. The contrast is at least 4.5 to 1 (WCAG 2, relative
// luminance).
export function readableOn(colour) {
  const [r, g, b] = colour.map((channel) => {
    const c = channel / 255;
    return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}
