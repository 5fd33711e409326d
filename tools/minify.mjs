// Texts in, the same texts without comments and needless blanks out: {name: source} as JSON on stdin and stdout.
// A name says by its end what the text is. No name in a text changes: scripts of a page see one another's.

import { readFileSync } from "node:fs";
import { transform } from "esbuild";

const texts = JSON.parse(readFileSync(0, "utf8"));
const made = Object.entries(texts).map(async ([name, source]) => {
  const { code } = await transform(source, {
    loader: name.endsWith(".css") ? "css" : "js",
    minifyWhitespace: true,
    legalComments: "inline",
    charset: "utf8",
  });
  return [name, code];
});
process.stdout.write(JSON.stringify(Object.fromEntries(await Promise.all(made))));
