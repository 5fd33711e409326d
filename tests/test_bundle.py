"""Test that the site's single style sheet contains every rule that some page uses, and no other rules."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tools import assets, bundle

PAGE = """<html><head>
  <script>document.documentElement.dataset.theme = localStorage.getItem("theme") || "auto";</script>
  <script defer src="{up}_static/scripts/fontawesome.js?digest=1"></script>
  <link href="{up}_static/styles/first.css?digest=1" rel="stylesheet" />
  <link rel="preload" as="script" href="{up}_static/scripts/bootstrap.js" />
  <link rel="stylesheet" type="text/css" href="{up}_static/second.css?v=2" />
  <link rel="icon" href="{up}_static/favicon.svg" />
  <meta name="viewport" content="width=device-width" /><meta name="viewport" content="width=device-width" />
  <script src="{up}_static/some.js?v=3"></script>
  <script defer="defer" src="{up}_static/explorer-host.js"></script>
  <script>DOCUMENTATION_OPTIONS.pagename = 'page';</script>
  <script src="{up}_static/searchtools.js"></script>
  <script src="{up}searchindex.js"></script>
  <script src="{up}sections.js"></script>
  <script src="{up}_static/search.js"></script>
  <script type="application/vnd.jupyter.widget-state+json">{state}</script>
</head><body><p class="used">text</p><script defer src="{up}_static/last.js?digest=1"></script></body></html>"""
PARTS = {
    "a.js": "// for people </script>\nconst first = `a  b`;\n",
    "b.js": "export default (first) => {  return 1; };\n",
}
STATE = json.dumps({"state": {}, "parts": PARTS}).replace("</", "<\\/")


@pytest.fixture
def site(tmp_path: Path) -> Path:
    assets.ensure()
    static = tmp_path / "_static"
    (static / "styles").mkdir(parents=True)
    (static / "styles" / "first.css").write_text(
        '@import "../basic.css";\n.used { background: url("../images/a.png#x") } .unused { color: red }\n'
        '@font-face { font-family: F; src: url(../vendor/fontawesome/webfonts/fa-solid-900.woff2) format("woff2") }\n'
        '.used::before { content: "\\f00d"; font-family: F }\n'
    )
    (static / "basic.css").write_text("p { margin: 1px }\n")
    (static / "second.css").write_text(".used { color: blue } .made-by-script { color: green }\n")
    (static / "some.js").write_text('// why\nelement.classList.add("made-by-script")')
    (static / "last.js").write_text('(function () { "it  stays"; })()')
    (static / "template.html").write_text('<link rel="stylesheet" href="_static/not/there.css" />')
    import pydata_sphinx_theme

    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    shutil.copytree(theme / "vendor", static / "vendor")
    (tmp_path / "book").mkdir()
    (tmp_path / "search.html").write_text(PAGE.format(up="", state=STATE))
    (tmp_path / "index.html").write_text(PAGE.format(up="", state=STATE))
    (tmp_path / "book" / "page.html").write_text(PAGE.format(up="../", state=STATE))
    return tmp_path


def test_one_sheet_with_what_is_used(site):
    bundle.bundle(site)
    style = (site / "_static" / "book.css").read_text()
    assert "unused" not in style
    for kept in ("margin:1px", "color:blue", "made-by-script", "url(images/a.png#x)", "fa-solid-900.book.woff"):
        assert kept in style
    assert style.index("margin") < style.index("background") < style.index("blue"), "the cascade's order is kept"
    font = site / "_static" / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.book.woff"
    assert 0 < font.stat().st_size < 5_000


def test_a_theme_without_its_icon_font_ends_the_build(site):
    sheet = site / "_static" / "styles" / "first.css"
    sheet.write_text(sheet.read_text().replace("fa-solid-900", "fa-sharp-900"))
    with pytest.raises(RuntimeError, match="no style sheet of the theme names the icon font vendor/fontawesome"):
        bundle.bundle(site)


@pytest.mark.parametrize(
    ("rule", "address"),
    [
        ("url(../images/a.png)", "images/a.png"),
        ("url('../images/a-b.svg?v=1#x')", "images/a-b.svg?v=1#x"),
        ("url(b.woff2?#iefix)", "styles/b.woff2?#iefix"),
        ("url(data:image/png;base64,AA==)", "data:image/png;base64,AA=="),
        ("url(#filter)", "#filter"),
    ],
)
def test_addresses_in_a_sheet_are_those_of_the_folder(tmp_path, rule, address):
    (tmp_path / "styles").mkdir()
    (tmp_path / "styles" / "own.css").write_text(f'@import url("../basic.css");\n.a {{ background: {rule} }}')
    (tmp_path / "basic.css").write_text(".b { background: url(images/b.png) }")
    style = bundle.joined(tmp_path, ["styles/own.css"])
    assert re.findall(r'url\("?(.*?)"?\)', style) == ["images/b.png", address]


def test_pages_link_to_it_once_and_load_nothing_needless(site):
    bundle.bundle(site)
    for path, up in ((site / "index.html", ""), (site / "book" / "page.html", "../")):
        text = path.read_text()
        assert text.count('rel="stylesheet"') == 1
        assert f'href="{up}_static/book.css?v=' in text
        assert "fontawesome.js" not in text
        assert '<link rel="preload"' not in text
        assert 'rel="icon"' in text


def test_the_look_is_known_before_any_file_has_come(site):
    bundle.bundle(site)
    text = (site / "index.html").read_text()
    assert '"auto"' not in text
    assert "prefers-color-scheme" in text[: text.index("<link")]


@pytest.mark.parametrize(
    ("article", "asked"),
    [
        ('<span class="katex">x</span>', True),
        ('<details><span class="katex">x</span></details>', False),
        ("no formula", False),
    ],
)
def test_fonts_of_formulas_that_are_seen_at_once_are_asked_for_at_once(site, article, asked):
    page = site / "book" / "page.html"
    page.write_text(PAGE.format(up="../", state=STATE).replace("<body>", f"<body><article>{article}</article>"))
    bundle.bundle(site)
    head, body = page.read_text().split("<body>")
    assert head.count('rel: "preload"') == 1
    assert "`../_static/${name}.woff2`" in head
    assert ('"fonts/literata-400-normal"' in head, '"katex/fonts/KaTeX_Main-Regular"' in head) == (True, asked)
    assert "preload" not in body


def test_a_letter_that_no_font_has_ends_the_build(site):
    page = site / "book" / "page.html"
    page.write_text(page.read_text().replace("<body>", "<body><p>θ and ж</p>"))
    with pytest.raises(RuntimeError, match="no font of the book has ж"):
        bundle.bundle(site)


def test_a_name_may_be_broken_after_an_underscore(site):
    page = site / "book" / "page.html"
    code = '<code><span class="pre">shift_matrix_of</span></code>'
    page.write_text(page.read_text().replace("<body>", f"<body>{code}"))
    for _ in range(2):
        bundle.bundle(site)
        assert '<span class="pre">shift_<wbr>matrix_<wbr>of</span>' in page.read_text()


def test_a_second_run_changes_nothing(site):
    bundle.bundle(site)
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    bundle.bundle(site)
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


def test_a_page_that_was_written_again_joins_the_others(site):
    bundle.bundle(site)
    (site / "book" / "page.html").write_text(
        PAGE.format(up="../", state=STATE).replace('class="used"', 'class="unused"')
    )
    bundle.bundle(site)
    style = (site / "_static" / "book.css").read_text()
    assert "color:red" in style
    links = {
        path.read_text().split("book.css?v=")[1][:8] for path in (site / "index.html", site / "book" / "page.html")
    }
    assert len(links) == 1


def test_one_script_in_the_order_of_the_page_and_nothing_waits_for_it(site):
    bundle.bundle(site)
    script = (site / "_static" / "book.js").read_text()
    assert "why" not in script
    assert "element.classList" in script.partition("it  stays")[0]
    for path in (site / "index.html", site / "book" / "page.html"):
        tags = re.findall(r"<script[^>]*\bsrc=[^>]*>", path.read_text())
        assert ["book.js" in tag for tag in tags] == [True, False]
        assert all("defer" in tag for tag in tags)
        assert "DOCUMENTATION_OPTIONS" not in path.read_text()
        assert path.read_text().count("viewport") == 1


def test_only_the_page_that_searches_loads_the_index(site):
    bundle.bundle(site)
    tags = re.findall(r"<script[^>]*\bsrc=[^>]*>", (site / "search.html").read_text())
    assert [re.search(r"([\w-]+)\.js", tag)[1] for tag in tags] == [
        "book",
        "explorer-host",
        "sections",
        "search",
    ]
    assert all("defer" in tag for tag in tags)
    other = (site / "book" / "page.html").read_text()
    assert not re.search("sections|search", other.partition("</head>")[0])


def test_what_an_explorer_runs_loses_its_comments_and_nothing_else(site):
    bundle.bundle(site)
    text = (site / "index.html").read_text()
    (state,) = re.findall(r"widget-state\+json\">(.*?)</script>", text)
    parts = json.loads(state)["parts"]
    assert parts == {"a.js": "const first=`a  b`;\n", "b.js": "export default first=>{return 1};\n"}


def test_a_script_that_is_none_is_told():
    with pytest.raises(RuntimeError, match="esbuild"):
        bundle.minified({"a.js": "const ="})
