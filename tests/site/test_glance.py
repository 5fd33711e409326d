"""A picture never hides what its figure says: picture, readouts, sentence, question and the dial asked for are in
the window together, in the opening state and after *Set up* and *Just show me* of every step. At a zoom of 200 %, at
least picture and dial are."""

from __future__ import annotations

import re

import pytest

from tests.site.glance import SIZES, figures_of, walk
from tests.site.pages import EXPLORED
from tools.paths import ROOT

SEEN = {
    path: re.findall(r"^from ropebook\.explorers\.(\w+) import [A-Z]", (ROOT / f"{path[:-5]}.md").read_text(), re.M)
    for path in EXPLORED
}
FIGURES = [(path, name) for path, names in SEEN.items() for name in dict.fromkeys(names)]


@pytest.mark.parametrize("width, height", SIZES)
@pytest.mark.parametrize("path, name", FIGURES)
def test_all_of_a_figure_is_seen_at_one_glance(visit, path, name, width, height):
    page = visit(path, width=width, height=height, motion="reduce").page
    names = figures_of(page)
    if name not in names:
        pytest.skip("the page uses this figure's class without showing it")
    seen = walk(page, names.index(name), zoom=width == 1280)
    assert [(one.step, one.after, one.hidden) for one in seen if one.hidden] == []
    assert [one for one in seen if one.height < one.least - 0.5] == []
    assert [one.small for one in seen if one.small] == []
