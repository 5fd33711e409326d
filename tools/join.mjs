// Joins a script with everything that it imports, so that a browser can run it over file:// too. It takes the script's
// path as an argument, and writes the joined script to stdout.

import { build } from "esbuild";

const { outputFiles } = await build({
  entryPoints: [process.argv[2]],
  bundle: true,
  minify: true,
  format: "iife",
  charset: "utf8",
  write: false,
  logLevel: "error",
});
process.stdout.write(outputFiles[0].text);
