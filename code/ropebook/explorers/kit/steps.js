// Steps that a page asks the reader to take with a figure: how one begins, and when its goal is met (no page needed).

import { readAddress } from "./address.js";
import { formatDial } from "./dials.js";

// "trait=text&trait=text" as the entries that readAddress finds.
export function settingsOf(text) {
  return readAddress(`#.${text.replaceAll("&", "&.")}`, "");
}

const CONDITION = /^(\w+)(>=|<=|!=|>|<|=)([^<>=!]+)$/;

// Whether "name>=number&name=text" (>=, <=, >, <, = or !=) holds, of dials and of numbers that the figure computes.
export function isMet(goal, dials, values, data) {
  return goal.split("&").every((condition) => {
    const found = CONDITION.exec(condition);
    if (!found) throw new Error(`a goal must look like name>=number or name=text, got “${condition}”`);
    const [, name, sign, wanted] = found;
    const dial = dials.find(({ trait }) => trait === name);
    const value = dial ? values[name] : data[name];
    if (!dial && typeof value !== "number") throw new Error(`this figure has no dial and no number “${name}”`);
    if (sign === "=" || sign === "!=") {
      const same = dial ? formatDial(dial, value) === wanted : value === Number(wanted);
      return same === (sign === "=");
    }
    const more = value - Number(wanted);
    if (Number.isNaN(more)) throw new Error(`“${name}” or “${wanted}” is no number, in “${condition}”`);
    return more === 0 ? sign.length === 2 : sign[0] === (more > 0 ? ">" : "<");
  });
}
