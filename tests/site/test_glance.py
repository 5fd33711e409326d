"""A picture never hides what its figure says: picture, readouts, sentence, question and the dial asked for are in
the window together, in the opening state and after *Set up* and *Just show me* of every step. At a zoom of 200 %, at
least picture and dial are."""

from __future__ import annotations

import pytest

from tests.site.glance import SIZES, figures_of, walk
from tests.site.pages import EXPLORED


@pytest.mark.parametrize("path", EXPLORED)
def test_all_of_a_figure_is_seen_at_one_glance(visit, path):
    # Each page opens in a window of another size, and then the window changes.
    first = EXPLORED.index(path) % len(SIZES)
    sizes = SIZES[first:] + SIZES[:first]
    width, height = sizes[0]
    page = visit(path, width=width, height=height, motion="reduce").page
    names = figures_of(page)
    assert names
    wrong = [
        (name, one)
        for name in dict.fromkeys(names)
        for one in walk(page, names.index(name), sizes)
        if one.hidden or one.small or one.height < one.least - 0.5
    ]
    assert wrong == []
