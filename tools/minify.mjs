// Removes comments and unneeded white space from texts. They come as {name: source} in JSON on stdin, and go to stdout in
// the same form. The suffix of a name tells the kind of text. Names in scripts stay, because the scripts of a page use
// each other's.

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
