"""Check the explorers' scripts with ESLint and TypeScript: python -m tools.scripts."""

from __future__ import annotations

import subprocess
import sys

from tools import assets
from tools.paths import ROOT

ESLINT = ROOT / "node_modules" / "eslint" / "bin" / "eslint.js"
TSC = ROOT / "node_modules" / "typescript" / "bin" / "tsc"


def lint(name: str, text: str) -> str:
    """Return ESLint's report on `text`, checked as if it were the file `name`, or "" if there is nothing to report."""
    command = [assets.node(), str(ESLINT), "--stdin", "--stdin-filename", str(ROOT / name)]
    return subprocess.run(command, cwd=ROOT, input=text, capture_output=True, text=True, check=False).stdout


def main() -> int:
    assets.ensure()
    commands = [
        [ESLINT, "--max-warnings", "0", "code/ropebook/explorers", "book/_static", "book/_search", "tools/stills"],
        [TSC, "--project", "tsconfig.json"],
    ]
    running = [subprocess.Popen([assets.node(), *map(str, one)], cwd=ROOT) for one in commands]
    return max(each.wait() for each in running)


if __name__ == "__main__":
    sys.exit(main())
