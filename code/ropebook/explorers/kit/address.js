// The fragment of the address, #key.trait=text&key.trait=text, which all figures on a page share. This file doesn't use
// the page.

import { parseDial } from "./dials.js";

export function readAddress(hash, key) {
  return hash.slice(1).split("&").filter((entry) => entry.startsWith(`${key}.`) && entry.includes("=")).map((entry) => {
    const cut = entry.indexOf("=");
    const text = entry.slice(cut + 1).replaceAll("+", " ");
    try {
      return [entry.slice(key.length + 1, cut), decodeURIComponent(text)];
    } catch { // ignore a stray % sign
      return [entry.slice(key.length + 1, cut), text];
    }
  });
}

// Returns the new fragment. This figure's entries are replaced, and those of other figures kept. Returns "" if no
// entries are left.
export function writeAddress(hash, key, entries) {
  const others = hash.slice(1).split("&").filter((entry) => entry.includes("=") && !entry.startsWith(`${key}.`));
  const own = entries.map(([trait, text]) => {
    return `${key}.${trait}=${encodeURIComponent(text).replaceAll("%20", "+").replaceAll("%2C", ",")}`;
  });
  const all = [...others, ...own];
  return all.length ? `#${all.join("&")}` : "";
}

// Reads the dials' values from the entries of an address, with defaults for missing dials, and collects errors. The
// values are not settled yet: dials that depend on one another must all be read before any of them is adjusted.
export function readDials(dials, initial, entries) {
  const asked = new Map(entries);
  const refusals = [...asked.keys()].filter((trait) => dials.every((dial) => dial.trait !== trait))
    .map((trait) => `This figure has no dial “${trait}”.`);
  const values = { ...initial };
  for (const dial of dials.filter(({ trait }) => asked.has(trait))) {
    try {
      values[dial.trait] = parseDial(dial, asked.get(dial.trait), values);
    } catch (refusal) {
      refusals.push(`${dial.label} in the address: ${refusal.message}.`);
    }
  }
  return { values, refusals };
}
