"""Tests of the table in the field guide: sorting and filtering with the pointer and the keyboard, cards on a phone, and
a plain table without scripts."""

from __future__ import annotations

import pytest

from ropebook import models as M

ROWS = "[...document.querySelectorAll('.guide-table tbody tr')].filter((row) => !row.hidden)"
NAMES = f"{ROWS}.map((row) => row.cells[0].textContent)"


def column(head: str) -> str:
    """Return a column's entries in the visible rows."""
    return f"""(() => {{
      const heads = [...document.querySelectorAll('.guide-table thead th')].map((cell) => cell.textContent);
      return {ROWS}.map((row) => row.cells[heads.indexOf('{head}')].textContent);
    }})()"""


def numbers(cells: list[str]) -> list[float]:
    return [float(cell.rstrip("†*").replace(",", "")) for cell in cells if cell[0].isdigit()]


@pytest.mark.parametrize("over", ["http", "file"])
def test_rows_are_sorted_by_keys_and_what_is_unknown_comes_last(visit, over):
    page = visit("book/models.html", over=over).page
    head = page.locator(".guide-table").get_by_role("columnheader", name="base")
    head.get_by_role("button").focus()
    page.keyboard.press("Enter")
    rising = page.evaluate(column("base"))
    assert head.get_attribute("aria-sort") == "ascending"
    assert numbers(rising) == sorted(numbers(rising))
    page.keyboard.press("Enter")
    falling = page.evaluate(column("base"))
    assert numbers(falling) == sorted(numbers(falling), reverse=True)
    for cells in (rising, falling):
        unknown = [cell.startswith("?") for cell in cells]
        assert unknown == sorted(unknown)


def test_words_and_lists_choose_rows(visit):
    page = visit("book/models.html").page
    every = len(M.checkpoints())
    assert page.locator(".guide-count").inner_text() == f"{every} of {every} checkpoints"
    page.get_by_role("searchbox", name="find").fill("deepseek yarn")
    names = page.evaluate(NAMES)
    assert names
    assert all(name.startswith("DeepSeek") for name in names)
    page.get_by_role("searchbox", name="find").fill("")
    page.get_by_role("combobox", name="pairs").select_option("interleaved")
    assert set(page.evaluate(column("pairs"))) <= {"interleaved", "interleaved†"}
    page.get_by_role("searchbox", name="find").fill("no such model")
    assert page.evaluate(NAMES) == []


def test_a_name_opens_its_sources(visit):
    page = visit("book/models.html").page
    page.get_by_role("link", name="DeepSeek-V3", exact=True).click()
    opened = page.locator("#from-deepseek-v3")
    opened.wait_for(state="visible")
    assert "config.json" in opened.inner_text()
    assert "128K" in opened.inner_text()


def test_a_phone_shows_cards_and_all_columns_on_demand(visit):
    page = visit("book/models.html", width=390).page
    wide = "document.documentElement.scrollWidth > innerWidth"
    assert not page.evaluate(wide)
    sinks = page.locator(".guide-table tbody td[data-label='sinks']").first
    assert not sinks.is_visible()
    page.get_by_label("Show all columns").check()
    assert sinks.is_visible()
    assert not page.evaluate(wide)
    page.get_by_label("sort by").select_option("shipped length")
    rising = numbers(page.evaluate(column("shipped length")))
    assert rising == sorted(rising)


def test_a_phone_shows_the_first_cards_and_the_others_on_demand(visit):
    page = visit("book/models.html", width=390).page
    seen = "[...document.querySelectorAll('.guide-table tbody tr')].filter((row) => row.offsetHeight > 0).length"
    every = len(M.checkpoints())
    assert page.evaluate(seen) == 15
    more = page.get_by_role("button", name="Show all")
    page.get_by_role("searchbox", name="find").fill("deepseek yarn")
    assert not more.is_visible()  # all that were found are shown
    page.get_by_role("searchbox", name="find").fill("")
    assert more.inner_text() == f"Show all {every}"
    following = page.evaluate("document.querySelectorAll('.guide-table tbody tr')[15].cells[0].textContent")
    more.click()
    assert page.evaluate(seen) == every
    assert page.evaluate("document.activeElement.closest('th').textContent") == following
    assert not more.is_visible()


def test_paper_and_a_wide_window_show_all_rows(visit):
    page = visit("book/models.html", width=1280).page
    assert page.evaluate(f"{ROWS}.filter((row) => row.offsetHeight > 0).length") == len(M.checkpoints())
    assert not page.get_by_role("button", name="Show all").is_visible()
    page.set_viewport_size({"width": 390, "height": 844})
    page.emulate_media(media="print")
    assert page.evaluate(f"{ROWS}.filter((row) => row.offsetHeight > 0).length") == len(M.checkpoints())
