"""Test that everything we patch in other packages still exists.

If a change in the theme, in Sphinx or in an extension breaks a patch, a test named after that patch fails. Otherwise we
would notice only when a page looked odd.
"""

from __future__ import annotations

import inspect
import re
from importlib.util import find_spec
from pathlib import Path

import pytest
import sphinxcontrib.katex
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

from tests.scripts import extension
from tests.together import together
from tools import bundle

finding, shell, wrapping = map(extension, ("finding", "shell", "wrapping"))

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
    "folded boxes": ("sphinx_design/dropdown.py", 'self.starttag(node, "details", **attributes)'),
    "the titles of folded boxes": ("sphinx_design/dropdown.py", 'self.starttag(node, "summary")'),
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


# --- What the packages write for a small site -------------------------------------------------------------------------

CONF = """
extensions = ["myst_nb", "sphinx_design", "sphinx_thebe", "sphinx_togglebutton"]
html_theme = "sphinx_book_theme"
python_maximum_signature_line_length = 20
"""
PAGE = """# Page

| | b |
| --- | --- |
| 1 | 2 |

```python
x = 1
```

```{py:function} turned(first: int, second: int) -> int
```
"""


class Site:
    """A built site with one page.

    text: the page's HTML.
    assets: the names or texts of the scripts and style sheets that it would load.
    written: the names of all files.
    """

    def __init__(self, folder: Path, search: bool) -> None:
        (folder / "conf.py").write_text(CONF, encoding="utf-8")
        (folder / "index.md").write_text(PAGE, encoding="utf-8")
        self.assets: list[str] = []
        with patch_docutils(), docutils_namespace():  # otherwise later builds of this process lack their parsers
            app = Sphinx(folder, folder, folder / "out", folder / "read", "html", status=None, warning=None)
            app.connect("html-page-context", self._note, priority=899)  # just before `shell.drop_unused`
            if not search:
                finding.leave_out_whole_pages(app)
            app.build()
        self.text = (Path(app.outdir) / "index.html").read_text(encoding="utf-8")
        self.written = {path.name for path in Path(app.outdir).iterdir()}

    def _note(self, app, pagename, templatename, context, doctree):
        if pagename == "index":
            files = [*context["script_files"], *context["css_files"]]
            self.assets = [f"{getattr(one, 'filename', one)} {one.attributes.get('body', '')[:60]}" for one in files]


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Site:
    return Site(tmp_path_factory.mktemp("small"), search=True)


@together("kind", shell.UNUSED.pattern.split("|"))
def test_scripts_and_styles_that_are_left_out_are_loaded_otherwise(small, kind):
    assert [one for one in small.assets if kind in one]


def test_a_signature_with_a_line_for_each_parameter_is_a_list(small):
    found = shell.SIGNATURE.findall(small.text)
    assert len(found) == 1
    assert found[0].count("<dd>") == 2


def test_an_empty_column_heading_is_a_heading(small):
    assert shell.EMPTY_HEADING in small.text


def test_a_code_block_is_a_pre_in_a_div(small):
    assert [re.sub("<.*?>", "", found[2]) for found in wrapping.BLOCK.findall(small.text)] == ["x = 1\n"]


def test_the_theme_writes_settings_for_the_scripts_of_sphinx(small):
    assert len(bundle.SETTINGS.findall(small.text)) == 2
    assert "DOCUMENTATION_OPTIONS." not in bundle.SETTINGS.sub("", small.text)


def test_sphinx_writes_no_index_if_it_is_told_not_to(small, tmp_path):
    index = {"searchindex.js", "search.html"}
    assert index <= small.written
    assert not index & Site(tmp_path, search=False).written
