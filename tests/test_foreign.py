"""Test that everything we patch in other packages still exists.

If a change in the theme, in Sphinx or in an extension breaks a patch, a test named after that patch fails. Otherwise we
would notice only when a page looked odd.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest
import sphinxcontrib.katex
from bs4 import BeautifulSoup, Tag
from sphinx.application import Sphinx
from sphinx.highlighting import PygmentsBridge
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx_external_toc.collectors import TocTreeCollectorWithStyles

from tests.scripts import extension
from tests.together import together
from tools import bundle
from tools.paths import BOOK

finding, shell, wrapping = map(extension, ("finding", "shell", "wrapping"))

PYDATA, BOOK_THEME = "pydata_sphinx_theme/theme/pydata_sphinx_theme", "sphinx_book_theme/theme/sphinx_book_theme"
# Each patch, the file that it changes, and the text that it looks for in the file. {{ … }} is part of the template
# itself.
PATCHES = {
    "icons as a font": (
        f"{PYDATA}/static/styles/pydata-sphinx-theme.css",
        "vendor/fontawesome/webfonts/fa-solid-900.woff2",
    ),
    "the theme's block of style sheets": (f"{PYDATA}/layout.html", "{%- block css %}"),
    "the theme's block of search scripts": (f"{PYDATA}/layout.html", "{%- block extrahead %}"),
    "the theme's block of scripts": (f"{PYDATA}/layout.html", "{%- block scripts_end %}{{ _webpack.body_post() }}"),
    "Sphinx's block of scripts": ("sphinx/themes/basic/layout.html", "{%- block scripts %}\n    {{- script() }}"),
    "tags that come first": ("sphinx/themes/basic/layout.html", "    {{- metatags }}\n    {%- block htmltitle %}"),
    "names that may be broken": ("sphinx/writers/html5.py", "if self.protect_literal_text:"),
    "code with long lines": ("sphinx/highlighting.py", "self.formatter = self.html_formatter"),
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
    assert wanted in text(name), (
        f"{patch}: {name} has no {wanted!r} any more; look at layout.html, tools/bundle.py and shell.py"
    )


def test_what_the_bundle_looks_for_is_what_the_theme_writes():
    assert f"{bundle.FONT}.woff2" in PATCHES["icons as a font"][1]
    assert bundle.MEASURED.search(text(f"{PYDATA}/static/scripts/pydata-sphinx-theme.js"))
    loaded = re.findall(r"_static/([\w/-]+\.(?:css|js))", text(f"{PYDATA}/static/webpack-macros.html"))
    assert list(dict.fromkeys(loaded)) == [*bundle.THEME_SHEETS, "scripts/fontawesome.js", *bundle.THEME_SCRIPTS]


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
extensions = ["myst_nb", "sphinx_design", "sphinx_thebe", "sphinx_togglebutton", *{more}]
html_theme = "sphinx_book_theme"
python_maximum_signature_line_length = 20
templates_path = {templates}
html_theme_options = {{"logo": {{"text": "Book"}}}}
"""
PAGE = """# Page

| | b |
| --- | --- |
| 1 | 2 |

```python
x = 1
```

```{code-block} text
:class: output
a        b
c        d
e        f
```

```{py:function} turned_by(first: int, second: int) -> int
```
"""
FORMULA = '```{raw} html\n<span class="katex">x</span>\n```\n'
PAGES = {
    "index": PAGE,
    "seen": f"# Page\n\n{FORMULA}",
    "folded": f"# Page\n\n```{{raw}} html\n<details>\n```\n\n{FORMULA}\n```{{raw}} html\n</details>\n```\n",
}


class Site:
    """A built site.

    texts: the HTML of each page, and ``text`` that of the first.
    assets: the names or texts of the scripts and style sheets that the first page would load.
    written: the names of all files.
    """

    def __init__(self, folder: Path, search: bool, templates: Sequence[str] = (), more: Sequence[str] = ()) -> None:
        (folder / "conf.py").write_text(CONF.format(templates=[*templates], more=[*more]), encoding="utf-8")
        for name, page in PAGES.items():
            (folder / f"{name}.md").write_text(page, encoding="utf-8")
        self.assets: list[str] = []
        with patch_docutils(), docutils_namespace():  # otherwise later builds of this process lack their parsers
            app = Sphinx(folder, folder, folder / "out", folder / "read", "html", status=None, warning=None)
            app.connect("html-page-context", self._note, priority=899)  # just before `shell.drop_unused`
            if not search:
                finding.leave_out_whole_pages(app)
            app.build()
        self.texts = {name: (Path(app.outdir) / f"{name}.html").read_text(encoding="utf-8") for name in PAGES}
        self.text = self.texts["index"]
        self.written = {path.name for path in Path(app.outdir).iterdir()}

    def _note(self, app, pagename, templatename, context, doctree):
        if pagename == "index":
            files = [*context["script_files"], *context["css_files"]]
            self.assets = [f"{getattr(one, 'filename', one)} {one.attributes.get('body', '')[:60]}" for one in files]


@pytest.fixture(scope="module")
def small(tmp_path_factory) -> Site:
    return Site(tmp_path_factory.mktemp("small"), search=True)


def set_up_ours(app: Sphinx) -> None:
    app.set_translator("html", shell.Writer)
    app.connect("html-page-context", shell.drop_unused, priority=900)
    wrapping.setup(app)


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Site:
    """The site with the book's layout, and with its code written as on the book's pages."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setitem(sys.modules, "ours", SimpleNamespace(setup=set_up_ours))
        patched.setattr(PygmentsBridge, "html_formatter", PygmentsBridge.html_formatter)
        return Site(tmp_path_factory.mktemp("ours"), search=True, templates=[str(BOOK / "_templates")], more=["ours"])


@together("kind", shell.UNUSED.pattern.split("|"))
def test_scripts_and_styles_that_are_left_out_are_loaded_otherwise(small, kind):
    assert [one for one in small.assets if kind in one]


def test_a_signature_with_a_line_for_each_parameter_is_a_list(small):
    found = shell.SIGNATURE.findall(small.text)
    assert len(found) == 1
    assert found[0].count("<dd>") == 2


def test_an_empty_column_heading_is_a_heading(small):
    assert shell.EMPTY_HEADING in small.text


def head(text: str) -> Tag:
    return BeautifulSoup(text, "html.parser").head


def told(tag: Tag) -> str:
    return (
        f"{tag.name} {tag.get('name') or ' '.join(tag.get('rel', ())) or tag.get('src', '').partition('?')[0]}".strip()
    )


def test_the_head_has_only_what_our_layout_replaces_or_repeats(small):
    assert {told(tag) for tag in head(small.text).find_all(["meta", "link", "script", "noscript"])} == {
        "meta",  # the charset
        "meta viewport",
        "script",
        "noscript",
        "link stylesheet",
        "link preload",
        *(f"script _static/{one}.js" for one in ("scripts/fontawesome", "searchtools", "language_data")),
        "script searchindex.js",
        *(f"script _static/{one}.js" for one in ("documentation_options", "doctools", "sphinx_highlight")),
        *(
            f"script _static/{one}.js"
            for one in ("togglebutton", "design-tabs", "sphinx-thebe", "scripts/sphinx-book-theme")
        ),
        *(f"link {one}" for one in ("index", "search")),
        *(f"meta docsearch:{one}" for one in ("language", "version")),
    }
    assert 'dataset.theme = localStorage.getItem("theme") || "' in small.text


def test_our_pages_load_one_style_sheet_and_one_script(small, ours):
    assert [tag["href"] for tag in BeautifulSoup(ours.text, "html.parser").select("link[rel=stylesheet]")] == [
        "_static/book.css?v="
    ]
    assert re.findall(r'<script[^>]*\bsrc="[^>]*>', ours.text) == ['<script defer src="_static/book.js?v=">']
    for needless in ("DOCUMENTATION_OPTIONS", '<link rel="preload"', 'getItem("theme")'):
        assert needless not in ours.text
    assert [small.text.count('name="viewport"'), ours.text.count('name="viewport"')] == [3, 1]


def test_the_bundle_has_what_the_pages_loaded_otherwise(ours):
    bundled = {*shell.loaded["css_files"], *shell.loaded["script_files"]}
    wanted = {one.split()[0].removeprefix("_static/") for one in ours.assets if one.startswith("_static/")}
    assert bundled == {one for one in wanted if not shell.UNUSED.search(one)}
    assert {"pygments.css", "styles/sphinx-book-theme.css", "scripts/sphinx-book-theme.js", "doctools.js"} <= bundled


def test_the_look_is_known_before_any_file_has_come(ours):
    assert "prefers-color-scheme" in ours.text[: ours.text.index('<link rel="stylesheet"')]


@together(("name", "asked"), [("index", False), ("seen", True), ("folded", False)])
def test_fonts_of_formulas_that_are_seen_at_once_are_asked_for_at_once(ours, name, asked):
    first = str(head(ours.texts[name])).partition("</script>")[0]
    assert "`_static/${name}.woff2`" in first
    assert ('"fonts/literata-400-normal"' in first, '"katex/fonts/KaTeX_Main-Regular"' in first) == (True, asked)


def test_a_name_may_be_broken_after_an_underscore(small, ours):
    assert '<span class="pre">turned_by</span>' in small.text
    assert '<span class="pre">turned_<wbr>by</span>' in ours.text


def test_code_is_written_by_our_formatter_which_gets_its_option(small, ours):
    code, printed = BeautifulSoup(ours.text, "html.parser").select("div.highlight > pre")
    assert [code.get_text(), printed["class"]] == ["x = 1\n", ["in-columns"]]
    assert not BeautifulSoup(small.text, "html.parser").select("pre.in-columns")


def test_sphinx_writes_no_index_if_it_is_told_not_to(small, tmp_path):
    index = {"searchindex.js", "search.html"}
    assert index <= small.written
    assert not index & Site(tmp_path, search=False).written
