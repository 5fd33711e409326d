"""What only the explorer Saturation promises on a page."""

from __future__ import annotations

import pytest

from ropebook.explorers.saturation import Saturation
from tests.explorers.oracles import expected_of


def test_saturation_shows_what_python_computes(opened):
    figure = Saturation(dim=24, n_keys=3, draw=4, scaled=False)
    expected = expected_of(figure)
    page = opened([figure])
    heights = page.locator(".explorer-live svg[role=img] rect").evaluate_all(
        "all => all.map((r) => parseFloat(r.getAttribute('height')))"
    )
    assert [height / 262 for height in heights] == pytest.approx(expected["weights"], abs=1e-4)
    largest, gradient, entropy = page.locator(".rb-stats dd").all_inner_texts()
    assert float(largest) == pytest.approx(max(expected["weights"]), rel=0.01)
    assert float(gradient.split()[0]) == pytest.approx(expected["gradient"], rel=0.01)
    assert float(entropy.split()[0]) == pytest.approx(expected["entropy"], rel=0.01)
    cursor = page.locator("svg[aria-hidden] > g:last-child > circle")
    assert (306 - float(cursor.get_attribute("cy"))) / 102 / 2 == pytest.approx(expected["gradient"], abs=1e-6)
