// { static, sheets } on stdin: a site's folder of static files and the style sheets in it, by name. Out: one style sheet
// with theirs in this order, imports and all, in which addresses are relative to that folder.

import { readFileSync } from "node:fs";
import { isAbsolute, posix, relative, resolve } from "node:path";
import { build } from "esbuild";

const { static: folder, sheets } = JSON.parse(readFileSync(0, "utf8"));
// What a rule asks for stays a file of its own, named from the folder.
const beside = {
  name: "beside",
  setup: (made) => made.onResolve({ filter: /./ }, ({ kind, path, resolveDir }) => {
    if (kind !== "url-token" || /^(data:|#|https?:)/.test(path) || isAbsolute(path)) return undefined;
    const [, file, rest] = /^([^?#]*)(.*)$/.exec(path);
    return { path: relative(folder, resolve(resolveDir, file)).split("\\").join(posix.sep) + rest, external: true };
  }),
};
const { outputFiles } = await build({
  stdin: { contents: sheets.map((name) => `@import "./${name}";`).join("\n"), resolveDir: folder, loader: "css" },
  bundle: true, write: false, charset: "utf8", legalComments: "inline", plugins: [beside], logLevel: "error",
});
process.stdout.write(outputFiles[0].text);
