"""Reduce the size of the built pages. All pages share one style sheet, one script and one icon font. The style sheet
and the icon font contain only the rules and icons that are used. The script runs after the page has been parsed.
Comments and needless white space are removed.

By default, the theme makes every page load 0.4 MB of styles for features that this book doesn't use, a font of 1,400
icons, the search index and a dozen other files. PurgeCSS, esbuild and fontTools remove everything that isn't needed.
They work on the finished site, and running them again changes nothing.
"""

from __future__ import annotations

import hashlib
import json
import logging
import re
import subprocess
from pathlib import Path

from fontTools import subset

from tools import assets, fonts
from tools.paths import ROOT, write_whole

# fontTools logs every step, and other errors would be hard to find among these messages.
logging.getLogger("fontTools").setLevel(logging.WARNING)

SHEET, SCRIPT = "book.css", "book.js"
LINK = re.compile(r'[ \t]*<link\b[^>]*\brel="stylesheet"[^>]*>\n?')
# Matches markup to be removed: a script that draws icons (we use the icon font instead), preload hints for files that
# are no longer loaded, and Sphinx's own search scripts, which are replaced by the book's search.
NEEDLESS = re.compile(
    r'[ \t]*<script\b[^>]*scripts/fontawesome\.js[^>]*></script>\n?|[ \t]*<link\b[^>]*rel="preload"[^>]*>\n?'
    r'|[ \t]*<script\b[^>]*\bsrc="[^"]*(?:searchtools|language_data|searchindex)\.js[^>]*></script>\n?'
)
# Each of these scripts would block the page at the point where it is included. Only the search page needs the search
# scripts.
LOADED = re.compile(
    r'[ \t]*<script\b(?![^>]*explorer-host)[^>]*\bsrc="([^"?]*_static/)([^"?]+)[^"]*"[^>]*></script>\n?'
)
SEARCHES = re.compile(r'[ \t]*<script src="(?:[^"]*/)?(?:search|sections)\.js[^"]*"></script>\n?')
# These inline scripts set options for Sphinx's own scripts, which never use them.
SETTINGS = re.compile(r"[ \t]*<script>DOCUMENTATION_OPTIONS\.\w+ = [^<]*</script>\n?")
# The theme's script would measure these elements every time a page changes. In this book, page.js measures them
# instead.
MEASURED = re.compile(r'\["pre","\.nboutput[^\]]*\]\.join\(", "\)')
# If the page didn't set the theme itself, readers who haven't chosen one would get neither the light theme nor the dark
# one until the theme's script has run.
THEME = 'dataset.theme = localStorage.getItem("theme") || "auto"'
RESOLVED = """dataset.theme = ["light", "dark"].find((one) => one === localStorage.getItem("mode"))
      ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")"""
# Preload the text fonts on every page, and also the formula fonts if the page's first screen contains formulas.
# Otherwise, a browser would request fonts only after laying out the page. On pages opened from disk, font files would
# arrive too late. Such a page loads a style sheet that contains the fonts themselves (`fonts.from_disk`), and is shown
# as soon as the fonts have been read. The link to that style sheet has no quotation marks, so it isn't bundled with the
# other style sheets. Pages with a policy (`tools.publish`) are meant for a host, and their policy forbids the markup
# that this script would write.
TO_READ = ("fonts/literata-400-normal", "fonts/literata-600-normal")
OF_FORMULAS = ("katex/fonts/KaTeX_Main-Regular", "katex/fonts/KaTeX_Math-Italic")
PRELOAD = """<script>
    if (location.protocol !== "file:") for (const name of [{names}]) {
      const href = `{static}${name}.woff2`;
      document.head.append(Object.assign(document.createElement("link"), {
        rel: "preload", as: "font", type: "font/woff2", crossOrigin: "", href,
      }));
    } else if (!document.querySelector("meta[http-equiv=Content-Security-Policy]")) {
      document.write('<link rel=stylesheet href="{static}faces.css"><style>body > * { visibility: hidden }</style>');
      const waits = document.head.lastElementChild, show = () => waits.remove();
      addEventListener("DOMContentLoaded", () => document.body.offsetHeight && document.fonts.ready.then(show));
      setTimeout(show, 1500);
    }
  </script>"""
# Long names may be wrapped after an underscore, but nowhere else.
NAME = re.compile(r'<span class="pre">(?:[^<]|<wbr>)*')
VIEWPORT = re.compile(r'[ \t]*<meta name="viewport"[^>]*>\n?')
STATE = re.compile(r'(<script type="application/vnd\.jupyter\.widget-state\+json">)(.*?)(</script>)', re.DOTALL)
# Scripts add these classes only when a page is open, so the classes don't occur in the HTML files.
ADDED_BY_SCRIPTS = ["/^show/", "/^collaps/", "/^tooltip/", "/^modal/", "/^search/", "/^copybtn/", "/scrolled/", "/^o-/"]
FONT = "vendor/fontawesome/webfonts/fa-solid-900"


def bundle(site: Path) -> None:
    """Bundle the styles and scripts of all pages in `site`. Raises RuntimeError if PurgeCSS or esbuild fails, or if a
    page contains a character that none of the book's fonts has."""
    static = site / "_static"
    # The theme leaves some of its templates among the static files, so we skip that folder.
    found = sorted(path for path in site.rglob("*.html") if not path.is_relative_to(static))
    pages = {path: path.read_text(encoding="utf-8") for path in found}
    lacking = fonts.missing(pages.values())
    if lacking:
        raise RuntimeError(f"no font of the book has {' '.join(sorted(lacking))}: see tools/fonts.py")
    texts = {path: _light(path, text) for path, text in pages.items()}
    texts = _style(site, texts)
    texts = _script(static, texts)
    texts = _parts(texts)
    for path, text in texts.items():
        if text != pages[path]:
            write_whole(path, text)


def _light(path: Path, text: str) -> str:
    """Return the page's HTML without duplicates and unused parts, and with the theme and the fonts set up early."""
    if path.name == "search.html":
        text = SEARCHES.sub(lambda tag: tag[0].replace("<script ", "<script defer "), text)
    else:
        text = SEARCHES.sub("", text)
    text = SETTINGS.sub("", NEEDLESS.sub("", text)).replace(THEME, RESOLVED)
    text = NAME.sub(lambda name: name[0].replace("_<wbr>", "_").replace("_", "_<wbr>"), text)
    first = VIEWPORT.search(text)
    if not first:
        return text
    rest = VIEWPORT.sub("", text[first.end() :])
    static = re.search(r'href="([^"?]*_static/)', text)
    seen_at_once = rest.partition("<article")[2].partition("<details")[0]
    if static and 'rel: "preload"' not in rest:
        names = (*TO_READ, *(OF_FORMULAS if '<span class="katex' in seen_at_once else ()))
        listed = ", ".join(f'"{name}"' for name in names)
        rest = PRELOAD.replace("{static}", static[1]).replace("{names}", listed) + rest
    return text[: first.end()] + rest


def _style(site: Path, pages: dict[Path, str]) -> dict[Path, str]:
    """Write a single style sheet. Return the pages with a link to it instead of the links to their own style sheets."""
    static = site / "_static"
    sheets: list[str] = []
    for text in pages.values():
        for name in _sheets(text):
            if name not in sheets and name != SHEET:
                sheets.append(name)
    if not sheets:
        return pages
    style = _icons_in_use(static, _purge(site, joined(static, sheets)))
    # Text must remain readable while the fonts are loading.
    style = minified({SHEET: re.sub(r"font-display:\s*block", "font-display:swap", style)})[SHEET]
    write_whole(static / SHEET, style)
    target = f"{SHEET}?v={_version(style)}"
    return {path: _one_link(text, target) if _sheets(text) else text for path, text in pages.items()}


def _script(static: Path, pages: dict[Path, str]) -> dict[Path, str]:
    """Write a single script that contains the scripts of all pages in order. Return the pages with a link to that
    script, which runs once a page has been parsed."""
    names: list[str] = []
    for text in pages.values():
        names += [name for _, name in LOADED.findall(text) if name not in (*names, SCRIPT)]
    names = [name for name in names if not SEARCHES.search(f'<script src="{name}"></script>')]
    if not names:
        return pages
    # The semicolons keep an unfinished statement at the end of one file from continuing into the next file.
    whole = ";\n".join((static / name).read_text(encoding="utf-8") for name in names)
    script = minified({SCRIPT: MEASURED.sub('"pre.measured"', whole)})[SCRIPT]
    write_whole(static / SCRIPT, script)
    target = f"{SCRIPT}?v={_version(script)}"

    def one(text: str) -> str:
        first = LOADED.search(text)
        if not first:
            return text
        tag = f'  <script defer src="{first[1]}{target}"></script>\n'
        return text[: first.start()] + tag + LOADED.sub(_unless_searching, text[first.start() :])

    return {path: one(text) for path, text in pages.items()}


def _unless_searching(tag: re.Match) -> str:
    return tag[0] if tag[2] == "search.js" else ""


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


def _version(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _sheets(text: str) -> list[str]:
    """Return the names of the style sheets to which a page links, relative to _static."""
    found = [re.search(r'href="([^"?]*)', link) for link in LINK.findall(text)]
    return [match[1].split("_static/", 1)[1] for match in found if match and "_static/" in match[1]]


def _one_link(text: str, target: str) -> str:
    first = LINK.search(text)
    prefix = re.search(r'href="([^"?]*_static/)', first[0])[1]
    text = LINK.sub("", text)
    return text[: first.start()] + f'  <link rel="stylesheet" href="{prefix}{target}" />\n' + text[first.start() :]


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
    # Icons are written either as escape sequences or as literal characters from Unicode's private use area.
    characters = {int(code, 16) for code in re.findall(r"\\([ef][0-9a-f]{3})\b", style)}
    characters |= {ord(character) for character in style if 0xE000 <= ord(character) <= 0xF8FF}
    options = subset.Options(flavor="woff", layout_features=[], name_IDs=[], notdef_outline=True)
    font = subset.load_font(str(static / f"{FONT}.ttf"), options)
    cutter = subset.Subsetter(options)
    cutter.populate(unicodes=characters)
    cutter.subset(font)
    subset.save_font(font, str(static / f"{FONT}.book.woff"), options)
    whole = re.compile(rf'url\("?{FONT}\.woff2"?\) format\("woff2"\)')
    if not whole.search(style):
        raise RuntimeError(f"no style sheet of the theme names the icon font {FONT}.woff2 any more")
    return whole.sub(f'url("{FONT}.book.woff") format("woff")', style)
