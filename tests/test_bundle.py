"""Test that the site's single style sheet contains every rule that some page uses, and no other rules."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from pathlib import Path

import pytest

from tools import assets, bundle

SHEETS, SCRIPTS = ["second.css"], ["some.js", "last.js"]
PAGE = """<html><head>
  <link rel="stylesheet" href="{up}_static/book.css?v=" />
  <script defer src="{up}_static/book.js?v="></script>
  <script defer="defer" src="{up}_static/explorer-host.js"></script>
  <script type="application/vnd.jupyter.widget-state+json">{state}</script>
</head><body><p class="used">text</p></body></html>"""
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
    (static / "scripts").mkdir()
    (static / "styles" / "theme.css").write_text(
        '@import "../basic.css";\n.used { background: url("../images/a.png#x") } .unused { color: red }\n'
        '@font-face { font-family: F; src: url(../vendor/fontawesome/webfonts/fa-solid-900.woff2) format("woff2") }\n'
        '.used::before { content: "\\f00d"; font-family: F }\n'
    )
    (static / "basic.css").write_text("p { margin: 1px }\n")
    (static / "styles" / "pydata-sphinx-theme.css").write_text("")
    (static / "second.css").write_text(".used { color: blue } .made-by-script { color: green }\n")
    (static / "some.js").write_text('// why\nelement.classList.add("made-by-script")')
    (static / "last.js").write_text('(function () { "it  stays"; })()')
    for name in bundle.THEME_SCRIPTS:
        (static / name).write_text(f'"{name}"')
    (static / "template.html").write_text('<link rel="stylesheet" href="_static/not/there.css" />')
    import pydata_sphinx_theme

    theme = Path(pydata_sphinx_theme.__file__).parent / "theme" / "pydata_sphinx_theme" / "static"
    shutil.copytree(theme / "vendor", static / "vendor")
    (tmp_path / "book").mkdir()
    (tmp_path / "index.html").write_text(PAGE.format(up="", state=STATE))
    (tmp_path / "book" / "page.html").write_text(PAGE.format(up="../", state=STATE))
    return tmp_path


def test_one_sheet_with_what_is_used(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    style = (site / "_static" / "book.css").read_text()
    assert "unused" not in style
    for kept in ("margin:1px", "color:blue", "made-by-script", "url(images/a.png#x)", "fa-solid-900.book.woff"):
        assert kept in style
    assert style.index("margin") < style.index("background") < style.index("blue"), "the cascade's order is kept"
    font = site / "_static" / "vendor" / "fontawesome" / "webfonts" / "fa-solid-900.book.woff"
    assert 0 < font.stat().st_size < 5_000


def test_a_theme_without_its_icon_font_ends_the_build(site):
    sheet = site / "_static" / "styles" / "theme.css"
    sheet.write_text(sheet.read_text().replace("fa-solid-900", "fa-sharp-900"))
    with pytest.raises(RuntimeError, match="no style sheet of the theme names the icon font vendor/fontawesome"):
        bundle.bundle(site, SHEETS, SCRIPTS)


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


def test_pages_link_to_both_files_in_their_present_version(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    for path, up in ((site / "index.html", ""), (site / "book" / "page.html", "../")):
        for name in ("book.css", "book.js"):
            digest = hashlib.sha256((site / "_static" / name).read_bytes()).hexdigest()[:8]
            assert path.read_text().count(f'"{up}_static/{name}?v={digest}"') == 1


def test_files_of_the_last_build_stay_if_no_page_was_written(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    bundle.bundle(site, [], [])
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


def test_a_letter_that_no_font_has_ends_the_build(site):
    page = site / "book" / "page.html"
    page.write_text(page.read_text().replace("<body>", "<body><p>θ and ж</p>"))
    with pytest.raises(RuntimeError, match="no font of the book has ж"):
        bundle.bundle(site, SHEETS, SCRIPTS)


def test_a_second_run_changes_nothing(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    before = {path: path.read_bytes() for path in site.rglob("*") if path.is_file()}
    bundle.bundle(site, SHEETS, SCRIPTS)
    assert {path: path.read_bytes() for path in site.rglob("*") if path.is_file()} == before


def test_a_page_that_was_written_again_joins_the_others(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    (site / "book" / "page.html").write_text(
        PAGE.format(up="../", state=STATE).replace('class="used"', 'class="unused"')
    )
    bundle.bundle(site, SHEETS, SCRIPTS)
    style = (site / "_static" / "book.css").read_text()
    assert "color:red" in style
    links = {
        path.read_text().split("book.css?v=")[1][:8] for path in (site / "index.html", site / "book" / "page.html")
    }
    assert len(links) == 1


def test_one_script_in_the_order_of_the_page_and_without_comments(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    script = (site / "_static" / "book.js").read_text()
    assert "why" not in script
    places = [script.index(text) for text in ("element.classList", "it  stays", *bundle.THEME_SCRIPTS)]
    assert places == sorted(places)


def test_what_an_explorer_runs_loses_its_comments_and_nothing_else(site):
    bundle.bundle(site, SHEETS, SCRIPTS)
    text = (site / "index.html").read_text()
    (state,) = re.findall(r"widget-state\+json\">(.*?)</script>", text)
    parts = json.loads(state)["parts"]
    assert parts == {"a.js": "const first=`a  b`;\n", "b.js": "export default first=>{return 1};\n"}


def test_a_script_that_is_none_is_told():
    with pytest.raises(RuntimeError, match="esbuild"):
        bundle.minified({"a.js": "const ="})
