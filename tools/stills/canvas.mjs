// A canvas that writes down SVG: only what the explorers call; anything else throws.

import { deflateSync } from "node:zlib";

const short = (value) => String(Math.round(value * 10) / 10);

class Image {
  constructor(width, height) {
    Object.assign(this, { width, height, data: new Uint8ClampedArray(4 * width * height) });
  }
}

class Path {
  constructor() {
    this.d = "";
  }

  moveTo(x, y) {
    this.d += `M${short(x)},${short(y)}`;
  }

  lineTo(x, y) {
    this.d += `${this.d ? "L" : "M"}${short(x)},${short(y)}`;
  }

  closePath() {
    this.d += "Z";
  }

  rect(x, y, width, height) {
    this.d += `M${short(x)},${short(y)}h${short(width)}v${short(height)}h${short(-width)}Z`;
  }

  arc(x, y, radius, from, to, back = false) {
    const whole = Math.abs(to - from) >= 2 * Math.PI - 1e-9;
    const at = (angle) => `${short(x + radius * Math.cos(angle))},${short(y + radius * Math.sin(angle))}`;
    const size = `${short(radius)},${short(radius)} 0`;
    const start = at(from);
    if (!this.d.endsWith(`M${start}`)) this.d += `${this.d && !whole ? "L" : "M"}${start}`;
    if (whole) {
      const [across, up] = [-2 * radius * Math.cos(from), -2 * radius * Math.sin(from)];
      this.d += `a${size} 1 1 ${short(across)},${short(up)}a${size} 1 1 ${short(-across)},${short(-up)}`;
    } else {
      const swept = back ? from - to : to - from;
      this.d += `A${size} ${swept > Math.PI ? 1 : 0} ${back ? 0 : 1} ${at(to)}`;
    }
  }
}

Object.assign(globalThis, { ImageData: Image, Path2D: Path });

const FRESH = {
  fillStyle: "#000", strokeStyle: "#000", lineWidth: 1, globalAlpha: 1, lineCap: "butt", lineJoin: "miter",
  imageSmoothingEnabled: true, font: "13px sans-serif", textAlign: "start", textBaseline: "alphabetic",
};

export class Recorder {
  static pixel = 1; // how large a dot of a picture must be, at least

  constructor(canvas, measure) {
    Object.assign(this, { canvas, measure, out: [], saved: [], path: new Path() });
    this.#reset();
  }

  #reset() {
    Object.assign(this, FRESH, { dashes: [], shift: [0, 0], clipped: "" });
  }

  // The explorers call it once for each drawing, after the size is set, which clears.
  setTransform() {
    this.out = [];
    this.#reset();
  }

  save() {
    this.saved.push(Object.fromEntries([...Object.keys(FRESH), "dashes", "shift", "clipped"].map((k) => [k, this[k]])));
  }

  restore() {
    Object.assign(this, this.saved.pop());
  }

  translate(x, y) {
    this.shift = [this.shift[0] + x, this.shift[1] + y];
  }

  setLineDash(dashes) {
    this.dashes = dashes;
  }

  beginPath() {
    this.path = new Path();
  }

  moveTo(...to) {
    this.path.moveTo(...to);
  }

  lineTo(...to) {
    this.path.lineTo(...to);
  }

  closePath() {
    this.path.closePath();
  }

  rect(...box) {
    this.path.rect(...box);
  }

  arc(...how) {
    this.path.arc(...how);
  }

  clearRect() {}

  reset() {}

  #put(tag, attributes) {
    const [x, y] = this.shift;
    const moved = x || y ? ` transform="translate(${short(x)} ${short(y)})"` : "";
    this.out.push(`<${tag} ${attributes}${moved}${this.clipped && ` clip-path="url(#${this.clipped})"`}/>`);
  }

  clip() {
    this.clipped = newId();
    this.out.push(`<clipPath id="${this.clipped}"><path d="${this.path.d}"/></clipPath>`);
  }

  fill(path = this.path) {
    if (!path.d) return;
    const opacity = this.globalAlpha === 1 ? "" : `;fill-opacity:${this.globalAlpha}`;
    this.#put("path", `d="${path.d}" style="fill:${this.#paint(this.fillStyle)}${opacity}"`);
  }

  stroke(path = this.path) {
    if (!path.d) return;
    const more = [
      this.globalAlpha !== 1 && `stroke-opacity:${this.globalAlpha}`,
      this.lineCap !== "butt" && `stroke-linecap:${this.lineCap}`,
      this.lineJoin !== "miter" && `stroke-linejoin:${this.lineJoin}`,
      this.dashes.length && `stroke-dasharray:${this.dashes.join(" ")}`,
    ].filter(Boolean).map((one) => `;${one}`).join("");
    const line = `stroke:${this.#paint(this.strokeStyle)};stroke-width:${short(this.lineWidth)}`;
    this.#put("path", `d="${path.d}" style="fill:none;${line}${more}"`);
  }

  fillRect(...box) {
    const path = new Path();
    path.rect(...box);
    this.fill(path);
  }

  strokeRect(...box) {
    const path = new Path();
    path.rect(...box);
    this.stroke(path);
  }

  #paint(style) {
    return typeof style === "string" ? style : style.use(this);
  }

  createLinearGradient(x1, y1, x2, y2) {
    const stops = [];
    const id = newId();
    let written = false;
    return {
      addColorStop: (at, colour) => stops.push(`<stop offset="${at}" style="stop-color:${colour}"/>`),
      use(context) {
        const where = `gradientUnits="userSpaceOnUse" x1="${x1}" y1="${y1}" x2="${x2}" y2="${y2}"`;
        if (!written) context.out.push(`<linearGradient id="${id}" ${where}>${stops.join("")}</linearGradient>`);
        written = true;
        return `url(#${id})`;
      },
    };
  }

  measureText(text) {
    return { width: this.measure(text, this.font) };
  }

  createImageData(width, height) {
    return new Image(width, height);
  }

  putImageData(image) {
    this.canvas.image = image;
  }

  drawImage(source, ...box) {
    const { image } = source;
    const [sx, sy, sw, sh, x, y, width, height] = box.length === 8 ? box : [0, 0, image.width, image.height, ...box];
    const [columns, rows] = [[sw, width], [sh, height]].map(([has, shown]) => {
      return Math.min(Math.round(has), Math.ceil(shown / Recorder.pixel));
    });
    const pixels = new Uint8ClampedArray(4 * columns * rows);
    const edges = (from, size, count) => Array.from({ length: count + 1 }, (_, k) => from + Math.round((k * size) / count));
    const [across, down] = [edges(sx, sw, columns), edges(sy, sh, rows)];
    for (let row = 0, at = 0; row < rows; row += 1) {
      for (let column = 0; column < columns; column += 1, at += 4) {
        pixels.set(meanColour(image, across[column], across[column + 1], down[row], down[row + 1]), at);
      }
    }
    const look = this.imageSmoothingEnabled ? "" : ' style="image-rendering:pixelated"';
    const place = `x="${short(x)}" y="${short(y)}" width="${short(width)}" height="${short(height)}"`;
    const address = `data:image/png;base64,${png(columns, rows, pixels).toString("base64")}`;
    this.#put("image", `${place} preserveAspectRatio="none"${look} href="${address}"`);
  }
}

// Ids of one still; who puts it into a page makes them the page's own.
let ids = 0;
export function newId() {
  ids += 1;
  return `still-${ids}`;
}

export function forgetIds() {
  ids = 0;
}

// The mean of a box of pixels, in steps that the eye hardly sees and that make a small picture.
function meanColour({ width, data }, left, right, top, bottom) {
  const sums = [0, 0, 0, 0];
  for (let y = top; y < bottom; y += 1) {
    for (let x = left; x < right; x += 1) {
      for (let channel = 0; channel < 4; channel += 1) sums[channel] += data[4 * (y * width + x) + channel];
    }
  }
  const count = (right - left) * (bottom - top);
  return sums.map((sum) => Math.min(255, 8 * Math.round(sum / count / 8)));
}

const CRC = Uint32Array.from({ length: 256 }, (_, n) => {
  let c = n;
  for (let k = 0; k < 8; k += 1) c = c & 1 ? 0xedb88320 ^ (c >>> 1) : c >>> 1;
  return c >>> 0;
});

function chunk(type, body) {
  const all = Buffer.concat([Buffer.from(type), body]);
  let c = 0xffffffff;
  for (const byte of all) c = CRC[(c ^ byte) & 255] ^ (c >>> 8);
  const out = Buffer.alloc(all.length + 8);
  out.writeUInt32BE(body.length, 0);
  all.copy(out, 4);
  out.writeUInt32BE((c ^ 0xffffffff) >>> 0, all.length + 4);
  return out;
}

// A PNG of a palette where 256 colours suffice.
function png(width, height, rgba) {
  const pixels = new Uint32Array(rgba.buffer, rgba.byteOffset, width * height);
  const palette = new Map();
  for (const pixel of pixels) {
    if (!palette.has(pixel)) palette.set(pixel, palette.size);
    if (palette.size > 256) break;
  }
  const indexed = palette.size <= 256;
  const line = indexed ? width : 4 * width;
  const raw = Buffer.alloc((line + 1) * height);
  for (let y = 0; y < height; y += 1) {
    const at = y * (line + 1) + 1;
    if (indexed) for (let x = 0; x < width; x += 1) raw[at + x] = palette.get(pixels[y * width + x]);
    else Buffer.from(rgba.buffer, rgba.byteOffset + y * line, line).copy(raw, at);
  }
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  head.set([8, indexed ? 3 : 6, 0, 0, 0], 8);
  const colours = Buffer.from([...palette.keys()].flatMap((pixel) => [pixel & 255, (pixel >> 8) & 255, (pixel >> 16) & 255]));
  return Buffer.concat([
    Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", head), ...(indexed ? [chunk("PLTE", colours)] : []),
    chunk("IDAT", deflateSync(raw, { level: 9 })), chunk("IEND", Buffer.alloc(0)),
  ]);
}
