// What several figures compute of the methods that lengthen a context.

// YaRN's factor on cosines and sines, at factor s.
export function yarnFactor(s) {
  return 0.1 * Math.log(s) + 1;
}

// How far Self-Extend reaches with a group.
export function selfExtendReach(length, window, group) {
  return Math.max(window, group * (length - window + Math.floor(window / group)));
}

// The smallest group with which it reaches so far.
export function selfExtendGroup(length, window, target) {
  let group = 1;
  while (selfExtendReach(length, window, group) < target) group += 1;
  return group;
}
