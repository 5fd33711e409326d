"""Test that every dial fits on one screen together with its picture, and that nothing moves under the pointer. See
benchmarks/reach.py."""

from __future__ import annotations

import pytest

from benchmarks import reach
from tests.explorers.registry import every
from tests.site.figures import settle


@every
def test_every_dial_is_in_reach_and_stays_under_the_hand(opened, entry):
    page = opened([entry.kind()], folded=True)
    # A real page has text above and below the figure.
    page.add_style_tag(content="main { padding-block: 100vh; }")
    for width, height in reach.SCREENS.values():
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        found = reach.measure(page.locator(".explorer"))
        assert found == {"dials": len(entry.kind.dial_traits()), "away": [], "moves_px": 0}, (width, height)


@pytest.mark.parametrize("path", [f"book/{page}.html" for page in ("intro", "derivation", "extrapolation", "choose")])
def test_on_its_page_it_is_too(visit, path):
    """The lists beside the text fold up and follow the reader, but neither effect may move the page."""
    page = visit(path).page
    page.wait_for_function("document.querySelectorAll('.explorer:not(.explorer-alive)').length === 0")
    for width, height in reach.SCREENS.values():
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        for figure in page.locator(".explorer").all():
            found = reach.measure(figure)
            assert (found["away"], found["moves_px"]) == ([], 0), (figure.get_attribute("data-explorer"), width)
