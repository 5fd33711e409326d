"""Test that everything we patch in other packages still exists.

If a change in the theme, in Sphinx or in an extension breaks a patch, a test named after that patch fails. Otherwise we
would notice only when a page looked odd.
"""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import sphinxcontrib.katex
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

from tests.together import together
from tools import bundle

PYDATA, BOOK_THEME = "pydata_sphinx_theme/theme/pydata_sphinx_theme", "sphinx_book_theme/theme/sphinx_book_theme"
# Each patch, the file that it changes, and the text that it looks for in the file. {{ … }} is part of the template
# itself.
PATCHES = {
    "the theme that is known before any script has come": (
        f"{PYDATA}/layout.html",
        'dataset.theme = localStorage.getItem("theme") || "{{ default_mode }}"',
    ),
    "icons as pictures": (f"{PYDATA}/static/webpack-macros.html", "_static/scripts/fontawesome.js"),
    "icons as a font": (
        f"{PYDATA}/static/styles/pydata-sphinx-theme.css",
        "vendor/fontawesome/webfonts/fa-solid-900.woff2",
    ),
    "preload hints": (f"{PYDATA}/static/webpack-macros.html", '<link rel="preload" as="script"'),
    "Sphinx's search on every page": (f"{PYDATA}/layout.html", "_static/searchtools.js"),
    "Sphinx's words on every page": (f"{PYDATA}/layout.html", "_static/language_data.js"),
    "Sphinx's index on every page": (f"{PYDATA}/layout.html", "searchindex.js"),
    "one viewport too many, by Sphinx": ("sphinx/themes/basic/layout.html", '<meta name="viewport"'),
    "one viewport too many, by the theme": (f"{PYDATA}/layout.html", '<meta name="viewport"'),
    "names that may be broken": ("sphinx/writers/html5.py", '<span class="pre">%s</span>'),
    "the label of a folded cell": ("myst_nb/sphinx_.py", '<summary aria-label="Toggle hidden content">'),
    "a list of citations": ("docutils/writers/_html_base.py", '<div role="list" class="citation-list">'),
    "a citation's role": ("docutils/writers/_html_base.py", 'role="doc-biblioentry"'),
    "the kernels' configuration": ("sphinx_thebe/__init__.py", '<script type="text/x-thebe-config">'),
    "the kernel's name": ("sphinx_thebe/__init__.py", "<script>kernelName = '"),
    "a grammar of addresses that nobody needs": ("jsonschema/_format.py", "from rfc3987_syntax import"),
}


def text(name: str) -> str:
    package, _, rest = name.partition("/")
    return (Path(find_spec(package).origin).parent / rest).read_text(encoding="utf-8")


@together("patch", PATCHES)
def test_what_is_patched_is_still_there(patch):
    name, wanted = PATCHES[patch]
    assert wanted in text(name), f"{patch}: {name} has no {wanted!r} any more; look at tools/bundle.py and shell.py"


def test_what_the_bundle_looks_for_is_what_the_theme_writes():
    written = PATCHES["the theme that is known before any script has come"][1]
    assert written.replace("{{ default_mode }}", "auto").removeprefix("document.documentElement.") == bundle.THEME
    assert f"{bundle.FONT}.woff2" in PATCHES["icons as a font"][1]
    head = text(f"{PYDATA}/static/webpack-macros.html") + text(f"{PYDATA}/layout.html")
    taken = [tag.strip() for tag in bundle.NEEDLESS.findall(head)]
    assert len(taken) == 6  # an icon font, two preload hints, and three search scripts
    assert bundle.MEASURED.search(text(f"{PYDATA}/static/scripts/pydata-sphinx-theme.js"))
    assert bundle.LOADED.search(text(f"{BOOK_THEME}/static/sbt-webpack-macros.html"))


@together(
    ("patched", "arguments"),
    [
        (TocTreeCollectorWithStyles.assign_section_numbers, ["self", "env"]),
        (sphinxcontrib.katex.KaTeXServer.build_command, ["socket", "port"]),
        (sphinxcontrib.katex.KaTeXServer.timeout_error, ["timeout"]),
    ],
)
def test_functions_that_are_replaced_or_called_take_what_they_took(patched, arguments):
    assert list(inspect.signature(patched).parameters) == arguments


def test_the_renderer_of_formulas_is_started_as_it_was():
    renderer = sphinxcontrib.katex
    source = inspect.getsource(renderer)
    assert re.search(r"start_server_process\(rundir, STARTUP_TIMEOUT\)", source)
    assert re.search(r"def start_server_process\(cls, rundir, timeout\)", source)
    for name in ("NODEJS_BINARY", "STARTUP_TIMEOUT", "RENDER_TIMEOUT"):
        assert hasattr(renderer, name), name
