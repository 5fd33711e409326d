"""Tests of what publishing adds to a small site: content policies with hashes, and full addresses if (and only if) the
site has an address."""

from __future__ import annotations

import base64
import hashlib
import re
import zipfile
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_notebook

from tools import first_cell, publish
from tools.wheel import ensure

PAGE = """<html><head>
<meta charset="utf-8" />
<meta name="description" content="Says &quot;what&quot; it is." />
<title>1. Attention — The Book</title>
<script>first()</script><script type="application/json">{"not": "run"}</script>
<noscript><style>.a { b: c }</style></noscript>
<script src="_static/book.js"></script></head><body>Text.</body></html>"""
EXPLORED = PAGE.replace("_static/book.js", "../_static/explorer-host.js").replace("<body>", '<body style="margin: 0">')
GONE = '<meta charset="utf-8"><meta http-equiv="refresh" content="0; url=one.html">'


@pytest.fixture
def html(tmp_path) -> Path:
    folder = tmp_path / "html"
    for name in ("book", "notebooks", "_static"):
        (folder / name).mkdir(parents=True)
    (folder / "book" / "one.html").write_text(PAGE)
    (folder / "book" / "two.html").write_text(EXPLORED)
    (folder / "book" / "gone.html").write_text(GONE)
    (folder / "404.html").write_text(PAGE)
    (folder / "_static" / "webpack-macros.html").write_text("<script>never()</script>")
    (folder / ".ropebook-built-from").write_text("x")
    notebook = new_notebook(cells=first_cell.first_cells("One"), metadata={"title": "One"})
    for k, cell in enumerate(notebook.cells):
        cell.id = f"cell-{k}"
    nbformat.write(notebook, folder / "notebooks" / "one.ipynb")
    return folder


def sha(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def test_scripts_and_styles_in_a_page_are_allowed_by_their_hash_and_nothing_more_than_it_needs(html, tmp_path):
    out = publish.publish(html, tmp_path / "out")
    found = {
        name: re.search(r'Security-Policy" content="([^"]*)"', (out / "book" / f"{name}.html").read_text())[1]
        for name in ("one", "two", "gone")
    }
    assert found["one"] == (
        f"default-src 'none'; script-src 'self' {sha('first()')}; style-src 'self' {sha('.a { b: c }')}; "
        "img-src 'self' data:; font-src 'self'; base-uri 'none'; form-action 'self'"
    )
    # a host may show the 404 page at any address, so that page finds the root by itself
    assert "base-uri 'self'" in (out / "404.html").read_text()
    assert (
        f"script-src 'self' blob: {sha('first()')}; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:"
        in (found["two"])
    )
    assert "worker-src blob:" in found["two"]
    assert "sha256" not in found["gone"]
    assert "style-src 'self'; " in found["gone"]
    sent = (out / "_headers").read_text()
    assert sent.startswith("/*\n  Content-Security-Policy: default-src 'none'; script-src 'self' blob: 'sha256-")
    assert (out / ".nojekyll").exists()
    assert not (out / ".ropebook-built-from").exists()
    assert not (out / "_static" / "webpack-macros.html").exists()


def test_without_an_address_no_page_names_one(html, tmp_path):
    out = publish.publish(html, tmp_path / "out")
    assert not (out / "sitemap.xml").exists()
    for path in out.rglob("*.html"):
        assert not re.search("canonical|og:|https?://", path.read_text())
    assert (out / "notebooks" / "one.ipynb").read_bytes() == (html / "notebooks" / "one.ipynb").read_bytes()


def test_with_an_address_pages_previews_sitemap_and_notebooks_name_it(html, tmp_path):
    out = publish.publish(html, tmp_path / "out", "https://example.org/b/")
    text = (out / "book" / "one.html").read_text()
    for part in (
        '<link rel="canonical" href="https://example.org/b/book/one.html">',
        '<meta property="og:title" content="1. Attention">',
        '<meta property="og:description" content="Says &quot;what&quot; it is.">',
        '<meta property="og:image" content="https://example.org/b/_static/preview.png">',
    ):
        assert part in text
    assert (out / publish.PREVIEW).is_file()
    places = re.findall("<loc>(.*?)</loc>", (out / "sitemap.xml").read_text())
    assert places == ["https://example.org/b/book/one.html", "https://example.org/b/book/two.html"]
    assert "canonical" not in (out / "404.html").read_text()
    assert "canonical" not in (out / "book" / "gone.html").read_text()
    notebook = nbformat.read(out / "notebooks" / "one.ipynb", as_version=4)
    assert f'address="https://example.org/b/notebooks/{ensure().name}"' in notebook.cells[1].source
    assert [cell.id for cell in notebook.cells] == ["cell-0", "cell-1"]


def test_the_zip_has_the_pages_as_they_were(html, tmp_path):
    out = publish.publish(html, tmp_path / "out", "https://example.org")
    with zipfile.ZipFile(out / publish.ZIP) as archive:
        assert archive.read("rope-turn-by-turn/book/one.html").decode() == PAGE
        assert "rope-turn-by-turn/.ropebook-built-from" not in archive.namelist()


@pytest.mark.parametrize("address", ["example.org", "ftp://example.org", "https://", "https://example.org/?a", "/book"])
def test_what_is_no_address_is_refused(html, tmp_path, address):
    with pytest.raises(publish.AddressError, match=re.escape(f"such as https://example.org/book, got {address!r}")):
        publish.publish(html, tmp_path / "out", address)
    assert not (tmp_path / "out").exists()


def test_a_page_without_a_place_for_its_policy_is_named(html, tmp_path):
    (html / "book" / "bare.html").write_text("<p>Text.</p>")
    with pytest.raises(ValueError, match=r"book/bare\.html does not begin with its character set"):
        publish.publish(html, tmp_path / "out")
