// Joins style sheets. It reads { static, sheets } from stdin: a site's folder of static files, and the names of style
// sheets in it. It writes one style sheet that contains them in this order, including their imports. Its addresses are
// relative to that folder.

import { readFileSync } from "node:fs";
import { isAbsolute, posix, relative, resolve } from "node:path";
import { build } from "esbuild";

const { static: folder, sheets } = JSON.parse(readFileSync(0, "utf8"));
// Files that a rule loads stay separate files, with addresses relative to the folder.
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
