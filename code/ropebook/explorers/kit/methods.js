// Quantities of the methods for longer contexts that several figures need.

// YaRN's factor on cosines and sines, for an extension by s.
export function yarnFactor(s) {
  return 0.1 * Math.log(s) + 1;
}

// The longest text that Self-Extend reaches with this group.
export function selfExtendReach(length, window, group) {
  return Math.max(window, group * (length - window + Math.floor(window / group)));
}

// The smallest group with which Self-Extend reaches the target.
export function selfExtendGroup(length, window, target) {
  let group = 1;
  while (selfExtendReach(length, window, group) < target) group += 1;
  return group;
}
