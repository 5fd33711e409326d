"""Tests of the map of the book in a browser. It is small, is laid out before its pictures arrive, works in both themes,
and prints as words."""

from __future__ import annotations

import re

import pytest
from bs4 import BeautifulSoup
from playwright.sync_api import expect

from tests.site.figures import settle
from tools.execute import chapters
from tools.paths import HTML

WIDTHS = [1280, 390]
STORY = ["intro", "lab_reading", "attention", "sinusoidal", "derivation", "efficient", "decay", "extrapolation"]


def parsed(name: str) -> BeautifulSoup:
    return BeautifulSoup((HTML / "book" / f"{name}.html").read_text(encoding="utf-8"), "html.parser")


def minutes(name: str) -> float:
    """Compute a page's reading time with another parser: 200 words, 3 formulas, 3/2 figures or 4 cells take a
    minute."""
    page = parsed(name).article
    for part in page.select("section#exercises, nav"):
        part.decompose()
    figures, formulas = len(page.select(".explorer, figure")), len(page.select("div.math"))
    for part in page.select("details, .seal, .tag_hide-input .cell_input, .tag_hide-cell"):
        part.decompose()
    cells = len(page.select(".cell_input"))
    for part in page.select("pre, .cell_input, .cell_output, .headerlink, div.math"):
        part.decompose()
    return len(page.get_text(" ").split()) / 200 + formulas / 3 + figures / 1.5 + cells / 4


@pytest.fixture(scope="module")
def first(site) -> BeautifulSoup:
    return parsed("intro")


def test_minutes_are_those_of_the_finished_page(first):
    for name in ("intro", "attention", "lab_reading", "extrapolation", "extend"):
        said = first.select_one(f'.way .minutes[data-of="{name}"]').text
        assert abs(int(said) - minutes(name)) < 1, name
        if name not in ("extend",):
            assert parsed(name).select_one(".chapter-line .minutes").text == said, name


def test_a_total_is_the_sum_of_what_one_sees(first):
    each = [int(first.select_one(f'.way ol .minutes[data-of="{name}"]').text) for name in STORY]
    assert first.select_one(".way-total .minutes").text == str(sum(each))
    assert 80 <= sum(each) <= 120


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["intro", "derivation"])
def test_pictures_come_late_and_nothing_moves(visit, name, width):
    visited = visit(f"book/{name}.html", width=width)
    page = visited.page
    early = [address for address in visited.requests if "/_static/way/" in address and f"/{name}.svg" not in address]
    assert not early or width != 1280
    whole = page.locator(".way ol")
    whole.scroll_into_view_if_needed()
    settle(page)
    before = whole.bounding_box()["height"]
    for picture in page.locator(".way img").all():
        picture.scroll_into_view_if_needed()
        handle = picture.element_handle()
        page.wait_for_function("(one) => one.complete && one.naturalWidth > 0", arg=handle)
    assert whole.bounding_box()["height"] == pytest.approx(before, abs=0.5)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    loaded = {address: size for address, size in visited.requests.items() if "/_static/way/" in address}
    assert len(loaded) == 13
    assert sum(loaded.values()) < 250_000
    assert visited.problems == []


def test_words_on_the_map_fit_their_places(visit):
    for width in WIDTHS:
        page = visit("book/derivation.html", width=width).page
        wide = page.locator(".way-name, .way-told").evaluate_all(
            "all => all.filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent)"
        )
        assert wide == []


def test_on_paper_the_map_is_words(visit):
    page = visit("book/derivation.html").page
    page.emulate_media(media="print")
    assert page.locator(".way img").evaluate_all("all => all.every((one) => !one.getClientRects().length)")
    expect(page.locator(".way-first")).to_be_visible()
    expect(page.locator(".way-here")).to_contain_text("you are here")


def test_the_contents_mark_the_story(site):
    contents = parsed("efficient").select_one(".bd-links")
    marked = [link.text for link in contents.select("li.way-story > a")]
    assert len(marked) == 7  # the first page isn't counted, because it comes above the list
    assert marked[0].startswith("See it break")
    optional = [link.text.strip() for link in contents.select("li.way-optional > a")]
    assert len(optional) == 5
    assert all(re.search(r"\boptional$", text) for text in optional)


def test_the_next_page_after_the_first_is_where_it_breaks(first):
    assert first.select_one(".prev-next-area .right-next")["href"] == "lab_reading.html"


def test_the_first_page_has_a_notebook():
    assert {"intro", "lab_reading"} <= {path.stem for path in chapters()}
    text = (HTML / "notebooks" / "intro.ipynb").read_text(encoding="utf-8")
    assert "front-stage" not in text
    assert "What does attention compute" in text
