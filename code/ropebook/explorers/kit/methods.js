// Quantities of the context extension methods that several figures need.

// YaRN's factor for cosines and sines when extending by s.
export function yarnFactor(s) {
  return 0.1 * Math.log(s) + 1;
}

// The length of the longest text that Self-Extend can handle with this group.
export function selfExtendReach(length, window, group) {
  return Math.max(window, group * (length - window + Math.floor(window / group)));
}

// The smallest group with which Self-Extend can handle the target length.
export function selfExtendGroup(length, window, target) {
  let group = 1;
  while (selfExtendReach(length, window, group) < target) group += 1;
  return group;
}
