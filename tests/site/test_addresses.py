"""Test that every address a reader may have bookmarked still works. `addresses.txt` lists all addresses that were ever
published."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scripts import extension
from tests.site.addresses import Names, addresses, leads_nowhere
from tools.paths import ROOT

PUBLISHED = Path(__file__).with_name("addresses.txt").read_text(encoding="utf-8").split()
PAGES: dict[str, Names] = {}


@pytest.fixture(scope="module")
def moved():
    return extension("moved")


def test_every_published_address_leads_somewhere(site, moved):
    table = moved.read()
    assert list(filter(None, (leads_nowhere(address, site, table, PAGES) for address in PUBLISHED))) == []


def test_every_page_and_every_name_of_the_package_is_listed(site):
    found = [address for address in addresses(site) if "#" not in address or "#ropebook." in address]
    assert len(found) > 150
    assert [address for address in found if address not in PUBLISHED] == [], "add them to addresses.txt"


def test_what_has_moved_is_gone_where_it_was(site, moved):
    table = moved.read()
    assert [old for old in table if "#" in old and leads_nowhere(old, site, {}, PAGES) is None] == []
    assert [leads_nowhere(new, site, {}, PAGES) for new in table.values()] == [None] * len(table)


@pytest.mark.parametrize("text", ["decay.html#x: elsewhere", "decay#x: decay.html", "decay.html#x: 3"])
def test_what_is_no_address_is_refused(moved, tmp_path, text):
    (tmp_path / "_moved.yml").write_text(text)
    with pytest.raises(ValueError, match=r"an address is page\.html or page\.html#name, got "):
        moved.read(tmp_path / "_moved.yml")


def test_an_address_that_has_moved_is_followed(visit):
    page = visit("book/ledger.html#ledger-distance").page
    page.wait_for_url("**/book/ledger.html#ledger-decay")


@pytest.fixture
def pages_with(chromium, tmp_path):
    """Open a browser page at an address. The page has the site's script and a table of addresses that have moved."""
    contexts = []

    def opened(table: str, fragment: str):
        script = (ROOT / "book" / "_static" / "page.js").read_text(encoding="utf-8")
        for name in ("old", "new"):
            moved = f'<script type="application/json" id="moved">{table}</script>' if name == "old" else ""
            (tmp_path / f"{name}.html").write_text(f"{moved}<p id=here>Text</p><script>{script}</script>")
        contexts.append(chromium.new_context())
        page = contexts[-1].new_page()
        page.goto(f"{tmp_path.as_uri()}/old.html#{fragment}")
        return page

    yield opened
    for context in contexts:
        context.close()


TABLE = """{"a-heading": "new.html#another", "distance": "new.html#distance", "lock": "old.html#compass",
    "gone": "new.html#arrived"}"""


@pytest.mark.parametrize(
    ("fragment", "where"),
    [
        ("a-heading", "new.html#another"),
        ("distance", "new.html#distance"),
        ("distance.query=5&distance.length=64", "new.html#distance.query=5&distance.length=64"),
        ("lock", "old.html#compass"),
        ("lock.m=3&lock.n=0", "old.html#compass.m=3&compass.n=0"),
        ("bank.position=3&lock.m=3", "old.html#bank.position=3&compass.m=3"),
        ("gone.m=3&bank.position=3", "new.html#arrived.m=3&bank.position=3"),
        ("here", "old.html#here"),
        ("bank.position=3&distance.query=5", "old.html#bank.position=3&distance.query=5"),
    ],
)
def test_the_script_takes_explorers_with_their_dials(pages_with, fragment, where):
    page = pages_with(TABLE, fragment)
    page.wait_for_url(f"**/{where}")
    page.goto("about:blank")
    page = pages_with(TABLE, "here")
    page.evaluate("fragment => { location.hash = fragment; }", fragment)
    page.wait_for_url(f"**/{where}")
