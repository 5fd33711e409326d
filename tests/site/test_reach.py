"""Every dial with its picture on one screen, and nothing moves under the hand: see benchmarks/reach.py."""

from __future__ import annotations

import pytest

from benchmarks import reach
from tests.explorers.registry import every


@pytest.mark.parametrize("screen", reach.SCREENS)
@every
def test_every_dial_is_in_reach_and_stays_under_the_hand(opened, entry, screen):
    width, height = reach.SCREENS[screen]
    page = opened([entry.kind()], viewport={"width": width, "height": height}, folded=True)
    # A figure stands in a text, which goes on above and below it.
    page.add_style_tag(content="main { padding-block: 100vh; }")
    found = reach.measure(page.locator(".explorer"))
    assert found == {"dials": len(entry.kind.dial_traits()), "away": [], "moves_px": 0}
