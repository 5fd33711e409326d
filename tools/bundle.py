"""Reduce the size of the built pages. All pages share one style sheet, one script and one icon font. The style sheet
and the icon font contain only the rules and icons that are used. Comments and needless white space are removed.

By default, the theme makes every page load 0.4 MB of styles for features that this book doesn't use, a font of 1,400
icons, the search index and a dozen other files. `book/_templates/layout.html` links to the book's own style sheet and
script instead. esbuild, PurgeCSS and fontTools make these from the finished site, and a second run changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

from fontTools import subset

from tools import assets, fonts
from tools.paths import ROOT, write_whole

# fontTools logs every step, and other errors would be hard to find among these messages.
logging.getLogger("fontTools").setLevel(logging.WARNING)

SHEET, SCRIPT = "book.css", "book.js"
# The theme's templates load these files besides those that extensions add.
THEME_SHEETS = ("styles/theme.css", "styles/pydata-sphinx-theme.css")
THEME_SCRIPTS = ("scripts/bootstrap.js", "scripts/pydata-sphinx-theme.js")
# Matches the links to the two files in `book/_templates/layout.html`, with or without a version.
LINKED = re.compile(r'(?<=_static/)(book\.css|book\.js)\?v=\w*(?=")')
# The theme's script would measure these elements every time a page changes. In this book, page.js measures them
# instead.
MEASURED = re.compile(r'\["pre","\.nboutput[^\]]*\]\.join\(", "\)')
STATE = re.compile(r'(<script type="application/vnd\.jupyter\.widget-state\+json">)(.*?)(</script>)', re.DOTALL)
# Scripts add these classes only when a page is open, so the classes don't occur in the HTML files.
ADDED_BY_SCRIPTS = ["/^show/", "/^collaps/", "/^tooltip/", "/^modal/", "/^search/", "/^copybtn/", "/scrolled/", "/^o-/"]
FONT = "vendor/fontawesome/webfonts/fa-solid-900"


def bundle(site: Path, sheets: Sequence[str], scripts: Sequence[str]) -> None:
    """Bundle the style sheets and scripts of the site, and link all pages to the result. The names of the files are
    relative to `_static`. If there are none, because no page has been written, the files of the last build stay. Raises
    RuntimeError if PurgeCSS or esbuild fails, or if a page contains a character that none of the book's fonts has."""
    static = site / "_static"
    # The theme leaves some of its templates among the static files, so we skip that folder.
    found = sorted(path for path in site.rglob("*.html") if not path.is_relative_to(static))
    pages = {path: path.read_text(encoding="utf-8") for path in found}
    lacking = fonts.missing(pages.values())
    if lacking:
        raise RuntimeError(f"no font of the book has {' '.join(sorted(lacking))}: see tools/fonts.py")
    texts = _parts(pages)
    if sheets and scripts:
        made = {SHEET: _style(site, sheets), SCRIPT: _script(static, scripts)}
        links = {name: f"{name}?v={hashlib.sha256(text.encode()).hexdigest()[:8]}" for name, text in made.items()}
        for name, text in made.items():
            write_whole(static / name, text)
        texts = {path: LINKED.sub(lambda link: links[link[1]], text) for path, text in texts.items()}
    for path, text in texts.items():
        if text != pages[path]:
            write_whole(path, text)


def _style(site: Path, sheets: Sequence[str]) -> str:
    """Return a single style sheet with the rules of these sheets that some page uses."""
    static = site / "_static"
    style = minified({SHEET: _purge(site, joined(static, [*THEME_SHEETS, *sheets]))})[SHEET]
    # Text must remain readable while the fonts are loading.
    return _icons_in_use(static, style).replace("font-display:block", "font-display:swap")


def _script(static: Path, scripts: Sequence[str]) -> str:
    """Return a single script that contains these scripts and those of the theme, in this order."""
    # The semicolons keep an unfinished statement at the end of one file from continuing into the next file.
    whole = ";\n".join((static / name).read_text(encoding="utf-8") for name in (*scripts, *THEME_SCRIPTS))
    return minified({SCRIPT: MEASURED.sub('"pre.measured"', whole)})[SCRIPT]


def _parts(pages: dict[Path, str]) -> dict[Path, str]:
    """Return the pages with minified explorer scripts."""
    states = {path: json.loads(found[2]) for path, text in pages.items() if (found := STATE.search(text))}
    sources = {source for state in states.values() for source in state.get("parts", {}).values()}
    small = minified({f"{k}.js": source for k, source in enumerate(sorted(sources))})
    made = {source: small[f"{k}.js"] for k, source in enumerate(sorted(sources))}
    result = dict(pages)
    for path, state in states.items():
        if "parts" in state:
            state["parts"] = {name: made[source] for name, source in state["parts"].items()}
            text = json.dumps(state).replace("</", "<\\/")
            result[path] = STATE.sub(lambda found, text=text: found[1] + text + found[3], pages[path], count=1)
    return result


def minified(texts: dict[str, str]) -> dict[str, str]:
    """Return the minified scripts and style sheets by name. The suffix of each name says which kind of file it is."""
    return json.loads(_esbuild("minify.mjs", texts)) if texts else {}


def joined(static: Path, names: list[str]) -> str:
    """Join style sheets from this folder into one, in the given order, including the sheets that they import. Addresses
    in the result are relative to the folder."""
    return _esbuild("sheets.mjs", {"static": str(static), "sheets": names})


def _esbuild(program: str, value: object) -> str:
    done = subprocess.run(
        [assets.node(), str(Path(__file__).with_name(program))],
        input=json.dumps(value),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"esbuild failed: {done.stderr}")
    return done.stdout


def _purge(site: Path, style: str) -> str:
    """Remove all style rules that no page or script can use."""
    source = site / "_static" / "book.whole.css"
    source.write_text(style, encoding="utf-8")
    program = ROOT / "node_modules" / "purgecss" / "bin" / "purgecss.js"
    command = [
        assets.node(),
        str(program),
        "--css",
        str(source),
        "--content",
        str(site / "*.html"),
        str(site / "*" / "*.html"),
    ]
    command += [str(site / "_static" / "**" / "*.js"), "--safelist", *ADDED_BY_SCRIPTS]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    source.unlink()
    if done.returncode != 0:
        raise RuntimeError(f"PurgeCSS failed: {done.stderr or done.stdout}")
    return json.loads(done.stdout)[0]["css"]


def _icons_in_use(static: Path, style: str) -> str:
    """Reduce the icon font to the characters that the styles use. Return the styles with a reference to the new
    file."""
    old = f'url({FONT}.woff2) format("woff2")'
    if old not in style:
        raise RuntimeError(f"no style sheet of the theme names the icon font {FONT}.woff2 any more")
    options = subset.Options(flavor="woff", layout_features=[], name_IDs=[], notdef_outline=True)
    font = subset.load_font(str(static / f"{FONT}.ttf"), options)
    cutter = subset.Subsetter(options)
    # Icons are in Unicode's private use area. esbuild has written them as characters, not as escape sequences.
    cutter.populate(unicodes=[ord(character) for character in style if 0xE000 <= ord(character) <= 0xF8FF])
    cutter.subset(font)
    subset.save_font(font, str(static / f"{FONT}.book.woff"), options)
    return style.replace(old, f'url({FONT}.book.woff) format("woff")')
