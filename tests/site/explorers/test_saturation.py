"""Browser tests specific to the Saturation explorer."""

from __future__ import annotations

import math
from xml.etree import ElementTree

import numpy as np
import pytest

from ropebook.explorers.saturation import Saturation
from tests.explorers.oracles import expected_of
from tests.site.figures import stage_width, texts
from tests.site.test_takeaway import saved

SMALL = ".rb-stage svg circle[r='3']"
LARGE = ".rb-stage svg circle[r='6.5']"


@pytest.mark.parametrize("width", [390, 1280])
def test_saturation_shows_what_python_computes(opened, width):
    figure = Saturation(dim=24, n_keys=3, draw=4, scaled=False)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    bars = page.locator(".rb-weight").evaluate_all(
        "all => all.map((r) => ['x', 'width', 'y'].map((name) => +r.getAttribute(name)))"
    )
    whole = (stage - 14 if width == 390 else round(0.54 * stage)) - 8
    assert [wide / whole for _, wide, _ in bars] == pytest.approx(expected["weights"], abs=1e-4)
    assert [x for x, *_ in bars] == [8] * 3
    assert [y for *_, y in bars] == sorted({y for *_, y in bars})
    assert f"{max(expected['weights']):.3f}" in texts(page)
    [gradient] = page.locator(".rb-stats dd").all_inner_texts()
    assert float(gradient.split()[0]) == pytest.approx(expected["gradient"], rel=0.01)

    # The dots have one scale: a logarithmic axis of d, and a logarithmic axis of sizes that ends at 10⁻⁴.
    dots = page.locator(SMALL).evaluate_all("all => all.map((c) => [+c.getAttribute('cx'), +c.getAttribute('cy')])")
    [large] = page.locator(LARGE).evaluate_all("all => all.map((c) => [+c.getAttribute('cx'), +c.getAttribute('cy')])")
    dims = [*expected["medianDims"] * 2, 24]
    sizes = [*expected["medianRaw"], *expected["medianScaled"], expected["gradient"]]
    places = np.array([*dots, large])
    left = 50 if width == 390 else round(0.54 * stage) + 88
    across = left + np.log(dims) / math.log(512) * (stage - 8 - left)
    np.testing.assert_allclose(places[:, 0], across, atol=0.01)
    levels = np.log(np.maximum(sizes, 1e-4))
    slope, start = np.polyfit(levels, places[:, 1], 1)
    assert slope < 0
    np.testing.assert_allclose(slope * levels + start, places[:, 1], atol=0.01)


def test_bars_glide_when_the_switch_is_flipped_but_not_when_d_grows(opened):
    page = opened([Saturation(scaled=False)], reduced_motion="no-preference")
    pressed = """async (node) => {
      node.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
      if (node.type === 'checkbox') node.click();
      return document.getAnimations().filter((one) => one.effect.target.matches('.rb-weight')).length;
    }"""
    assert page.get_by_role("slider", name="Dimension d, slider").evaluate(pressed) == 0
    assert page.get_by_role("switch", name="Divide by √d").evaluate(pressed) == 8
    still = opened([Saturation(scaled=False)])
    assert still.get_by_role("switch", name="Divide by √d").evaluate(pressed) == 0


def test_the_saved_picture_shows_the_highest_weight(opened):
    """The outline of the number must not cover the number."""
    figure = Saturation(dim=24, n_keys=16, scaled=True)
    root = ElementTree.parse(saved(opened([figure]), "SVG")).getroot()
    name = f"{max(expected_of(figure)['weights']):.3f}"
    [word] = [node for node in root.iter("{http://www.w3.org/2000/svg}text") if node.text == name]
    assert word.get("paint-order") == "stroke"


def test_smaller_gradients_are_said_to_be_at_the_lower_edge(opened):
    assert "≤ 10⁻⁴" in texts(opened([Saturation(dim=512, scaled=False)]))
