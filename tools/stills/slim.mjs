// Paths of straight lines with fewer points, none of those left out farther than `near` from the line, written as steps of
// one decimal; other paths as they are.
export function slim(d, near = 0.15) {
  if (!/^(M-?[\d.]+[, ]-?[\d.]+(L-?[\d.]+[, ]-?[\d.]+)+Z?)+$/.test(d)) return d;
  return d.split("M").slice(1).map((part) => {
    const closed = part.endsWith("Z");
    const points = part.replace("Z", "").split("L").map((place) => place.split(/[, ]/).map(Number));
    let [u, v] = [0, 0];
    const text = kept(points, near).map((k, i) => {
      const [x, y] = points[k].map((c) => Math.round(10 * c));
      const step = `${(x - u) / 10}${y < v ? "" : ","}${(y - v) / 10}`;
      [u, v] = [x, y];
      return i === 0 ? `M${step}` : i === 1 ? `l${step}` : `${step.startsWith("-") ? "" : ","}${step}`;
    }).join("");
    return text + (closed ? "Z" : "");
  }).join("");
}

// Douglas and Peucker: the ends, the point farthest from the line between them, and so on in both halves.
function kept(points, near) {
  const keep = new Set([0, points.length - 1]);
  const open = [[0, points.length - 1]];
  while (open.length) {
    const [from, to] = open.pop();
    const [[x1, y1], [x2, y2]] = [points[from], points[to]];
    const length = Math.hypot(x2 - x1, y2 - y1);
    let [most, at] = [near, -1];
    for (let k = from + 1; k < to; k += 1) {
      const [x, y] = points[k];
      const off = length ? Math.abs((x2 - x1) * (y1 - y) - (x1 - x) * (y2 - y1)) / length : Math.hypot(x - x1, y - y1);
      if (off > most) [most, at] = [off, k];
    }
    if (at > 0) {
      keep.add(at);
      open.push([from, at], [at, to]);
    }
  }
  return [...keep].sort((a, b) => a - b);
}
