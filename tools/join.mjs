// A script and all that it imports, as one that a browser runs over file:// too: the file's path in, the script out.

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
