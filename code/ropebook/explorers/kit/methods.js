// Quantities of context-extension methods that several figures need.

// YaRN's factor on cosines and sines when extending the context by s.
export function yarnFactor(s) {
  return 0.1 * Math.log(s) + 1;
}

// The length of the longest text that Self-Extend can handle with this group size.
export function selfExtendReach(length, window, group) {
  return Math.max(window, group * (length - window + Math.floor(window / group)));
}

// The smallest group size with which Self-Extend can handle the target length.
export function selfExtendGroup(length, window, target) {
  let group = 1;
  while (selfExtendReach(length, window, group) < target) group += 1;
  return group;
}
