"""The frame of the book's pages.

It consists of the files that each page loads, the line below the title, folded boxes, and the rule that pictures need
alternative text.
"""

from __future__ import annotations

import hashlib
import re
import socket
import subprocess
import time
from html import escape
from html.parser import HTMLParser
from pathlib import Path, PurePosixPath

import executed  # noqa: F401  (puts the repository's root on the path before tools is imported)
import sphinxcontrib.katex
from docutils import nodes
from formulas import with_minus
from sphinx.application import Sphinx
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.writers.html5 import HTML5Translator
from sphinx_design.dropdown import dropdown_main, dropdown_title
from unbroken import AS_TYPED, is_in

from tools import assets, bundle, execute, fonts, minutes, notebooks, takeaway, weights
from tools.paths import BOOK, ROOT

LOGGER = logging.getLogger(__name__)

# Files that Jupyter Book loads on every page. They are for features that this book doesn't use (live kernels, tabs,
# cards), or for ones that work here without a script (folded boxes are <details>), or they are options for Sphinx's
# own scripts, which never use them.
UNUSED = re.compile(r"thebe|toggle|design-tabs|sphinx-design|DOCUMENTATION_OPTIONS")
# This script isn't bundled with the others, because only pages with figures load it.
HOST = "explorer-host.js"
SIGNATURE = re.compile(r"<dl>\n((?:<dd>.*?</dd>\n)+)</dl>")
# A default value that is made for each instance; the second group is its type.
MADE = re.compile(r"(: ~?[\w.]*?\b(list|Mapping|dict)\b[^=:]*= )<factory>")
EMPTY_HEADING = '<th class="head"><p></p></th>'
MACHINERY = (BOOK / "_ext", BOOK / "_templates", ROOT / "tools")
ALT_LEAST = 20
DESCRIPTION = (60, 200)  # in characters


# -- what makes a page ------------------------------------------------------------------------------------------------


def machinery() -> str:
    """Return a hash of the code that converts sources to pages.

    It is a setting that Sphinx watches: when the hash changes, every page is read again.
    """
    files = sorted(
        path for folder in MACHINERY for path in folder.rglob("*") if path.suffix in (".py", ".mjs", ".html")
    )
    whole = hashlib.sha256()
    for path in files:
        whole.update(path.relative_to(ROOT).as_posix().encode() + path.read_bytes())
    return whole.hexdigest()


# -- what a page loads ------------------------------------------------------------------------------------------------


def prepare_assets(app: Sphinx, config: object) -> None:
    for names in loaded.values():
        names.clear()
    sphinxcontrib.katex.NODEJS_BINARY = assets.node()
    # On a busy machine, the default of five seconds isn't enough.
    sphinxcontrib.katex.STARTUP_TIMEOUT = sphinxcontrib.katex.RENDER_TIMEOUT = 60.0
    sphinxcontrib.katex.KaTeXServer.start_server_process = start_renderer
    config.html_static_path += [str(assets.ensure()), str(fonts.ensure())]
    config.html_extra_path.append(str(weights.ensure()))


def start_renderer(rundir: Path, timeout: float) -> tuple[subprocess.Popen, socket.socket]:
    """Start the process that renders the formulas, and connect to it.

    The Sphinx extension checks only that the socket exists. On a busy machine, however, the socket may exist before the
    process listens on it. On Windows, the extension does try to connect repeatedly, as this function does, but there it
    uses a network connection, on which each formula waits twice for 40 ms.
    """
    renderer = sphinxcontrib.katex.KaTeXServer
    address = rundir / "katex.sock"
    process = subprocess.Popen(
        renderer.build_command(socket=address), stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=rundir
    )
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    end = time.monotonic() + timeout
    while True:
        try:
            connection.connect(str(address))
            return process, connection
        except OSError as error:
            if time.monotonic() > end:
                process.kill()
                raise renderer.timeout_error(timeout) from error
            time.sleep(0.01)


loaded: dict[str, dict[str, None]] = {"css_files": {}, "script_files": {}}
"""The style sheets and scripts of the pages that were written, in order and relative to `_static`. They are bundled."""


def drop_unused(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    def used(asset: object) -> bool:
        attributes = getattr(asset, "attributes", {})
        start = attributes.get("body", "")[:60]  # the widget state is long and could contain any of these words
        return not UNUSED.search(f"{getattr(asset, 'filename', asset)} {start}")

    if context.get("title") == context.get("docstitle"):
        context["docstitle"] = ""  # otherwise the title of the first page would contain the book's name twice
    for kind, names in loaded.items():
        left = sorted((asset for asset in context[kind] if used(asset)), key=lambda asset: asset.priority)
        context[kind] = [asset for asset in left if not asset.filename or asset.filename.endswith(HOST)]
        names.update({asset.filename.removeprefix("_static/"): None for asset in left if asset not in context[kind]})
    # sphinx-thebe also writes its configuration into the body of the page.
    body = re.sub(r'<script type="text/x-thebe-config">.*?</script>', "", context.get("body", ""), flags=re.DOTALL)
    body = re.sub(r"<script>kernelName = .*?</script>", "", body)
    # Remove labels that hide visible text from screen readers. (Roles that browsers no longer support are removed
    # below.)
    body = body.replace('<summary aria-label="Toggle hidden content">', "<summary>")
    # Sphinx formats the lines of a signature as a definition list, although they aren't definitions.
    body = SIGNATURE.sub(lambda found: f'<span class="sig-lines">{found[1].replace("dd>", "span>")}</span>', body)
    # An empty column heading is not a heading.
    body = body.replace(EMPTY_HEADING, "<td></td>")
    body = body.replace('<div role="list" class="citation-list">', '<div class="citation-list">')
    context["body"] = body.replace(' role="doc-biblioentry"', "")


def with_empty_defaults(app: Sphinx, *parts: object) -> tuple[str | None, str | None]:
    """Write the default of a field that begins as an empty list or mapping as [] or {}. If Sphinx finds its usual name,
    ``<factory>``, it can't parse the signature."""
    *_, signature, result = parts
    text = MADE.sub(lambda found: found[1] + ("[]" if found[2] == "list" else "{}"), signature or "")
    return text or None, result


# -- names in code -----------------------------------------------------------------------------------------------------


class Writer(HTML5Translator):
    """Sphinx's writer of HTML, except that long names in code may be wrapped after an underscore, and nowhere else. It
    also leaves out docutils' viewport, because Sphinx's template writes one."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args)
        self.meta = [tag for tag in self.meta if 'name="viewport"' not in tag]

    def visit_Text(self, node: nodes.Text) -> None:
        start = len(self.body)
        super().visit_Text(node)
        if self.protect_literal_text and "whole" not in node.parent.get("classes", ()):
            self.body[start:] = [text.replace("_", "_<wbr>") for text in self.body[start:]]


# -- how a page describes itself to search engines --------------------------------------------------------------------


def description(doctree: nodes.document) -> str:
    """Return the description of a page for search engines.

    It consists of the title and as many sentences as fit in a search result. They are the first sentences of the first
    paragraph without formulas.
    """
    for paragraph in doctree.findall(nodes.paragraph):
        text = " ".join(paragraph.astext().split())
        if len(text) < DESCRIPTION[0] or next(paragraph.findall(nodes.math), None) is not None:
            continue
        # The first paragraphs of similar pages may begin with the same words, so the description begins with the title.
        title = doctree.next_node(nodes.title).astext().rstrip(".")
        room = DESCRIPTION[1] - len(title)
        while len(text) > room:
            *kept, _ = re.split(r"(?<=[.?!]) ", text)
            text = " ".join(kept) or text[: room - 2].rsplit(" ", 1)[0] + " …"
        return f"{title}{'' if title[-1] in '?!' else '.'} {text}"
    return ""


def describe(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    text = description(doctree) if doctree is not None else f"{context.get('title', '')}: {app.config.html_title}"
    context["metatags"] = f'{context.get("metatags", "")}<meta name="description" content="{escape(text)}" />'


# -- a chapter's first line -------------------------------------------------------------------------------------------


def exercises(doctree: nodes.document) -> nodes.section | None:
    """Return the section that contains the page's exercises, or None if there is none."""
    sections = doctree.findall(nodes.section)
    return next((one for one in sections if one.next_node(nodes.title).astext().startswith("Exercise")), None)


def add_first_line(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    path = ROOT / f"{docname}.md"
    title = next(iter(doctree.findall(nodes.title)), None)
    if app.builder.format != "html" or title is None or path not in execute.chapters():
        return
    name = PurePosixPath(docname).name
    asked = exercises(doctree)
    more = ""
    if asked is not None and not name.endswith("_exercises"):
        more = f'<span class="noprint">, plus <a href="#{asked["ids"][0]}">exercises</a></span>'
    folder = f"{app.builder.get_relative_uri(docname, 'index').rpartition('/')[0]}/notebooks"
    line = (
        f'<p class="chapter-line"><span class="on-paper">{escape(app.config.html_title)}: {docname}.html</span> '
        f"<span>{minutes.place(name)} min to read{more}</span> "
        f'<a class="noprint" href="{folder}/{name}.ipynb" download="{name}.ipynb">Download as a notebook</a> '
        f'<a class="noprint" href="{folder}/{takeaway.ZIP}">All notebooks and the package</a></p>'
    )
    section = title.parent
    # the front block stays at the top
    first = next((one for one in section if "front" in one.get("classes", ())), title)
    section.insert(section.index(first) + 1, nodes.raw("", line, format="html"))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Finish the site.

    Write the notebooks and the zip file to which each page links below its title, fill in the reading times, and reduce
    the size of the pages.
    """
    if exception is None and app.builder.format == "html":
        notebooks.write_beside(app, Path(app.outdir) / "notebooks")
        takeaway.pack(Path(app.outdir) / "notebooks")
        minutes.fill(Path(app.outdir) / "book")
        bundle.bundle(Path(app.outdir), *loaded.values())


# -- folded boxes -----------------------------------------------------------------------------------------------------


class FoldedBoxes(SphinxPostTransform):
    """Convert admonitions of the class `dropdown` to <details> elements.

    Readers can open these without a script and with the keyboard. They can also be opened for printing. The elements
    are sphinx-design's, but its directive `dropdown` is not used: it makes every box a card with an icon, which needs
    that package's style sheet. Elsewhere (in notebooks, and for other builders), the box stays an admonition.
    """

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for box in list(self.document.findall(nodes.Admonition)):
            if "dropdown" not in box["classes"]:
                continue
            title = box.next_node(nodes.title)
            title.parent.remove(title)
            classes = ["folded", *(name for name in box["classes"] if name != "dropdown")]
            box["classes"] = []  # otherwise docutils would copy the classes to the element that replaces the box
            summary = dropdown_title("", "", *title.children)
            box.replace_self(dropdown_main("", summary, *box.children, classes=classes))


# -- letters ----------------------------------------------------------------------------------------------------------

# Matches a single letter, optionally with a prime, as in *m* or *L*′, or a letter followed by a Greek one, as in *mθ*.
# Longer text between asterisks is usually an emphasised word.
LETTER = re.compile(r"(?:[A-Za-z]?[α-ωΑ-Ω]|[A-Za-z])′?")
LEANING = "fFHJKMNPTUVWXYZ"  # the letters that, slanted, reach into the space after them


class Letters(SphinxPostTransform):
    """Make single italic letters in prose look as they do in formulas, because they are names of variables."""

    default_priority = 200
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for node in self.document.findall(nodes.emphasis):
            if LETTER.fullmatch(node.astext()):
                node["classes"] += ["letter", *(["leaning"] if node.astext()[-1] in LEANING else [])]


class Minuses(SphinxPostTransform):
    """Replace hyphens before numbers with minus signs, for example in numbers that cells insert into the prose."""

    default_priority = 201
    formats = ("html",)

    def run(self, **kwargs: object) -> None:
        for text in list(self.document.findall(nodes.Text)):
            written = with_minus(text)
            if written != text and not is_in(text, AS_TYPED):
                text.parent.replace(text, nodes.Text(written))


# -- alternative text -------------------------------------------------------------------------------------------------


class _Pictures(HTMLParser):
    """Parser that collects the alternative text of every picture in a piece of HTML."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str | None]] = []
        self.inside = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag == "svg":
            self.inside += 1
        if values.get("aria-hidden") == "true" or (self.inside > 1 and tag == "svg"):
            return
        if tag == "svg":
            self.found.append((tag, values.get("aria-label")))
        elif tag == "img" and not self.inside:
            self.found.append((tag, values.get("alt")))

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg":
            self.inside -= 1


def alt_problem(text: str | None, uri: str = "") -> str | None:
    """Describe what is wrong with a picture's alternative text. Returns None if nothing is wrong."""
    text = (text or "").strip()
    if not text:
        return "has no alternative text"
    name = PurePosixPath(uri).name
    if re.fullmatch(r"\S+\.(png|svg|jpe?g|gif|webp)", text) or (name and text in (name, PurePosixPath(name).stem)):
        return f"has a file name as its alternative text: {text!r}"
    if len(text) < ALT_LEAST:
        return f"has an alternative text of {len(text)} characters, {text!r}; at least {ALT_LEAST} are asked for"
    return None


def check_alternative_text(app: Sphinx, doctree: nodes.document) -> None:
    docname = app.env.docname
    for image in doctree.findall(nodes.image):
        problem = alt_problem(image.get("alt"), image["uri"])
        if problem:
            LOGGER.warning(f"figure {image['uri']} {problem}", location=(docname, image.line), type="alt")
    for raw in doctree.findall(nodes.raw):
        if "html" not in raw.get("format", ""):
            continue
        parser = _Pictures()
        parser.feed(raw.astext())
        for tag, text in parser.found:
            problem = alt_problem(text)
            if problem:
                LOGGER.warning(f"<{tag}> {problem}", location=(docname, raw.line), type="alt")


def setup(app: Sphinx) -> dict:
    app.setup_extension("tools.notebooks")
    app.add_config_value("ropebook_machinery", machinery(), "env", str)
    app.set_translator("html", Writer)
    app.connect("config-inited", prepare_assets)
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-signature", with_empty_defaults)
    app.connect("html-page-context", drop_unused, priority=900)
    app.connect("html-page-context", describe)
    app.connect("doctree-resolved", add_first_line)
    app.connect("doctree-read", check_alternative_text)
    app.connect("build-finished", finish, priority=900)
    app.add_post_transform(FoldedBoxes)
    app.add_post_transform(Letters)
    app.add_post_transform(Minuses)
    app.add_js_file("page.js", defer="defer")
    app.add_js_file("guide.js", defer="defer")
    for name in (assets.PALETTE, fonts.STYLE, "theme.css", "tables.css", "explorers.css", "sheet.css", "print.css"):
        if name in (assets.PALETTE, fonts.STYLE) or (BOOK / "_static" / name).exists():
            app.add_css_file(name)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
