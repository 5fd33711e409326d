"""Tests of how a page itself behaves: its seals, terms and tables."""

from __future__ import annotations

import re

import pytest

from tests.site.figures import rest, settle


def test_a_seal_opens_and_closes_by_keyboard_without_a_script(visit):
    page = visit("book/lab.html", javascript=False).page
    seal = page.locator(".seal").first
    text = seal.locator(".seal-text")
    assert not text.is_visible()
    seal.locator("button").focus()
    page.keyboard.press("Enter")
    assert text.is_visible()
    assert re.search(r"What is checked\n.+\nOutcome\n(.+\n)+Wrong twin, refused\n", text.inner_text())
    page.keyboard.press("Escape")
    assert not text.is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_a_seal_stands_at_the_right_under_its_equation_and_opens_beside_it(visit, width):
    page = visit("book/lab.html", width=width).page
    # when figures start and fonts arrive, everything below them moves
    page.evaluate("document.fonts.ready.then(() => null)")
    page.wait_for_load_state("networkidle")
    for label in page.evaluate("[...document.querySelectorAll('.seal-text')].map(one => one.id.slice(5))"):
        equation, button = page.locator(f"#equation-{label}"), page.locator(f"[popovertarget=seal-{label}]")
        button.scroll_into_view_if_needed()
        formula, seal = equation.locator(".katex-html").first.bounding_box(), button.bounding_box()
        assert seal["y"] >= formula["y"] + formula["height"]
        assert seal["x"] + seal["width"] <= width
        button.click()
        opened = page.locator(f"#seal-{label}").bounding_box()
        assert opened["x"] >= 0
        assert opened["x"] + opened["width"] <= width
        page.keyboard.press("Escape")


@pytest.fixture
def with_terms(visit):
    page = visit("book/attention.html").page
    link = page.locator("a[aria-describedby^=meaning-]:visible").first
    return page, link, page.locator(f"#{link.get_attribute('aria-describedby')}")


def test_a_term_says_what_it_means_under_the_pointer(with_terms):
    page, link, meaning = with_terms
    assert not meaning.is_visible()
    link.hover()
    meaning.wait_for(state="visible")
    assert len(meaning.inner_text()) > 20
    meaning.hover()
    rest(page, 400)
    assert meaning.is_visible(), "the pointer may move into the text"
    page.mouse.move(0, 0)
    meaning.wait_for(state="hidden")


def test_a_term_says_what_it_means_by_keyboard_and_escape_closes_it(with_terms):
    page, link, meaning = with_terms
    link.evaluate("link => link.focus({ focusVisible: true })")
    meaning.wait_for(state="visible")
    page.keyboard.press("Escape")
    meaning.wait_for(state="hidden")
    assert link.evaluate("link => link === document.activeElement")


def test_the_magnifier_does_not_cover_the_text(visit):
    page = visit("search.html").page
    icon = page.locator("main .bd-search i").bounding_box()
    field = page.locator("main .bd-search input")
    padding = float(field.evaluate("field => parseFloat(getComputedStyle(field).paddingLeft)"))
    assert field.bounding_box()["x"] + padding >= icon["x"] + icon["width"]


def test_a_table_that_scrolls_is_reached_by_keys_and_another_is_no_stop(visit):
    page = visit("book/glossary.html", width=390).page
    page.evaluate(
        """() => { for (const columns of [2, 40]) {
            const cells = '<td>12345</td>'.repeat(columns);
            document.querySelector('article').insertAdjacentHTML('beforeend',
                `<div class="table-box"><table class="book-table"><caption><span>Of ${columns}</span></caption>
                 <tbody><tr>${cells}</tr></tbody></table></div>`); } }"""
    )
    page.add_script_tag(url="../_static/page.js")
    page.wait_for_selector(".table-box[tabindex]")
    named = page.evaluate("[...document.querySelectorAll('.table-box')].map(one => one.getAttribute('aria-label'))")
    assert named == [None, "Of 40"]


def test_code_that_scrolls_is_reached_by_keys_and_the_theme_does_not_measure_it(visit, site):
    page = visit("book/decay_exercises.html", width=390).page
    page.evaluate("document.querySelectorAll('details').forEach((one) => { one.open = true; })")
    assert '".nboutput' not in (site / "_static" / "book.js").read_text()
    stops = """() => [...document.querySelectorAll('pre')].map(one => {
        return [one.scrollWidth > one.clientWidth + 1, one.getAttribute('tabindex')]; })"""
    for place in page.locator("pre").all():
        place.scroll_into_view_if_needed()  # on a phone, the browser lays out only the nearby sections
        settle(page)
    found = page.evaluate(stops)
    assert {scrolls for scrolls, _ in found} == {True, False}
    assert all(stop == ("0" if scrolls else None) for scrolls, stop in found)
