"""A picture never hides what its figure says. In the opening state, and after *Set up* and *Just show me* of every
step, the window shows all of these at the same time: the picture, the readouts, the sentence, the question, and the
dial that the question is about. At a zoom of 200%, it shows at least the picture and the dial."""

from __future__ import annotations

import pytest

from tests.site.glance import SIZES, figures_of, walk
from tests.site.pages import EXPLORED


@pytest.mark.parametrize("path", EXPLORED)
def test_all_of_a_figure_is_seen_at_one_glance(visit, path):
    # The pages open in windows of different sizes, and each window is then resized.
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
