// Steps that a page asks the reader to take with a figure: the settings at which a step begins, and whether its goal
// has been reached. None of the code here touches the DOM.

import { readAddress } from "./address.js";
import { formatDial } from "./dials.js";

// Converts "trait=text&trait=text" to entries like those returned by readAddress.
export function settingsOf(text) {
  return readAddress(`#.${text.replaceAll("&", "&.")}`, "");
}

// The settings in the first text, followed by those in the second. If both set a dial, the second one counts.
export function together(first, second) {
  const named = settingsOf(second).map(([trait]) => trait);
  const kept = first.split("&").filter((one) => one && !named.includes(one.split("=")[0]));
  return [...kept, second].filter(Boolean).join("&");
}

// true and false count as 1 and 0.
const counted = (value) => (typeof value === "boolean" ? Number(value) : value);

const CONDITION = /^(\w+)(>=|<=|!=|>|<|=)([^<>=!]+)$/;

// Whether the dials and the figure's computed numbers meet a goal such as "name>=number&name=text". The operators are
// >=, <=, >, <, = and !=.
export function isMet(goal, dials, values, data) {
  return goal.split("&").every((condition) => {
    const found = CONDITION.exec(condition);
    if (!found) throw new Error(`a goal must look like name>=number or name=text, got “${condition}”`);
    const [, name, sign, wanted] = found;
    const dial = dials.find(({ trait }) => trait === name);
    const value = dial ? values[name] : counted(data[name]);
    if (!dial && typeof value !== "number") throw new Error(`this figure has no dial and no number “${name}”`);
    if (sign === "=" || sign === "!=") {
      const same = dial ? formatDial(dial, value) === wanted : value === Number(wanted);
      return same === (sign === "=");
    }
    const more = value - Number(wanted);
    if (Number.isNaN(more)) throw new Error(`“${name}” or “${wanted}” is not a number, in “${condition}”`);
    return more === 0 ? sign.length === 2 : sign[0] === (more > 0 ? ">" : "<");
  });
}
