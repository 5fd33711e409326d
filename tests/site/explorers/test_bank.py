"""Browser tests specific to the Bank explorer."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook import decay
from ropebook.explorers.bank import Bank
from tests.explorers.oracles import expected_of
from tests.site.figures import (
    BLUE,
    GREY,
    ORANGE,
    WHITE,
    column,
    dials,
    enter,
    stage_width,
)


def colour_at(page: Page, x: float, y: float) -> np.ndarray:
    return column(page, x, y, y + 1)[0]


def test_models_and_steps(opened):
    page = opened([Bank()])
    menu = page.get_by_role("combobox", name="A published model’s settings")
    turned = {"GPT-NeoX-20B": 8, "Llama 2 7B": 46, "Mistral 7B": 46, "Llama 3 8B": 35, "Gemma 3 4B (global layers)": 80}
    settings = [(model.dim, model.base, model.context) for model in decay.MODELS]  # two models may share one setting
    for model in decay.MODELS:
        menu.select_option(model.name)
        now = dials(page)
        assert (now["dim"], now["base"], now["length"]) == (model.dim, model.base, model.context)
        first = settings.index((model.dim, model.base, model.context))
        expect(menu).to_have_value(decay.MODELS[first].name)
        if model.name in turned:
            said = f"{turned[model.name]} of {model.dim // 2} hands make a full turn within"
            expect(page.locator(".rb-summary")).to_contain_text(said)
    enter(page, "Context L", 5000)
    expect(menu).to_have_value("A model’s settings …")
    menu.select_option("A model’s settings …")
    assert dials(page)["length"] == 5000
    page.get_by_role("button", name="16 positions forward", exact=True).click()
    assert dials(page)["position"] == 1016
    page.get_by_role("button", name="1 position back", exact=True).click()
    assert dials(page)["position"] == 1015


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("position", [1000, 6000])
def test_the_hands_point_where_the_pairs_do(opened, width, position):
    figure = Bank(position=position, dim=64)
    expected = expected_of(figure)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    tall = (600 if stage >= 520 else 400) - 44 - 126
    cell, pairs = min(96, stage), 32
    while math.ceil(pairs / (stage // cell)) * cell > tall:
        cell -= 1
    columns = math.ceil(pairs / math.ceil(pairs / (stage // cell)))
    pitch, radius = min(cell * 1.25, stage / columns), 0.42 * cell
    for i in (0, 3, 17, 25, 27, 29, 31):
        x, y = (i % columns + 0.5) * pitch, 44 + (i // columns + 0.5) * cell
        last, turn = expected["last"][i], expected["turns"][i]
        fresh = last < 1 and turn % 1 > last
        wanted = BLUE if last >= 1 else WHITE if fresh else ORANGE
        hand = cmath.exp(2j * math.pi * turn)
        place = (x + 0.6 * radius * hand.real, y - 0.6 * radius * hand.imag)
        assert np.abs(colour_at(page, *place) - wanted).max() < 100, i
        rim = (x + radius * math.cos(1.1), y - radius * math.sin(1.1))
        ring = np.array(BLUE if last >= 1 else ORANGE if fresh else GREY)
        near = [colour_at(page, rim[0] + a, rim[1] + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        assert min(np.abs(one - ring).max() for one in near) < 70, i
        # the sector ends in the direction of the hand at L − 1, but the whole clock is filled if the hand is beyond it
        for share, filled in ((0.7, last < 1), (1.15, fresh)):
            edge = cmath.exp(2j * math.pi * last * share)
            seen = colour_at(page, x + 0.9 * radius * edge.real, y - 0.9 * radius * edge.imag)
            if 0.05 < last < 0.8 and abs(edge - hand) > 0.3:
                assert (np.abs(seen - 255).max() > 30) == filled, (i, share)
    said = page.locator(".rb-summary").inner_text()
    assert ("beyond the context" in said) == (position >= 4096)
    assert position < 4096 or f"{expected['unseen']} hands are at angles that no position" in said
    found = " ".join(page.locator(".rb-stage svg text").all_text_contents())
    assert ("Filled: an angle that does not occur within L." in found) == (position == 6000)


@pytest.mark.parametrize(
    "width, dials, named",
    [(1280, {"dim": 16}, True), (1280, {"dim": 34}, False), (390, {"dim": 16, "length": 10**6}, True)],
)
def test_the_numbers_under_the_hands_are_named(opened, width, dials, named):
    page = opened([Bank(**dials)], viewport={"width": width, "height": 900})
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert found[1].startswith("Turns so far.") == named


@pytest.mark.parametrize("length, base, slow", [(4096, 1e4, True), (2, 1.0, True), (10**6, 1e7, True), (64, 1, False)])
def test_the_strip_of_wavelengths(opened, length, base, slow):
    figure = Bank(length=length, base=base, dim=32)
    page = opened([figure], viewport={"width": 760, "height": 900})
    stage = stage_width(page)
    expected = expected_of(figure)["wavelengths"]
    high = 1.25 * max(expected[-1], 10**6)

    def x(value: float) -> float:
        return 12 + math.log(value / 4) / math.log(high / 4) * (stage - 24)

    line = page.locator(".rb-stage svg path[style*='--rb-ink']").first.get_attribute("d")
    assert float(re.match(r"M([\d.]+),", line)[1]) == pytest.approx(x(max(4, length - 1)), abs=0.01)
    floor = 600 - 52
    for one in expected:
        wanted = BLUE if one <= length - 1 else ORANGE
        near = [colour_at(page, x(one) + shift, floor - 20) for shift in (-1, 0)]
        assert min(np.abs(colour - wanted).max() for colour in near) < 140
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert f"L = {length:,}" in found
    assert any(text.startswith("Orange: no full turn") for text in found) == slow


def test_the_hands_glide_to_a_nearby_position(opened):
    """The pictures in between differ from both. A far position is shown at once."""
    page = opened([Bank(dim=8)], reduced_motion="no-preference")
    page.clock.install(time=0)
    page.clock.pause_at(1000)
    canvas = "document.querySelector('.rb-stage canvas').toDataURL()"
    pictures = [page.evaluate(canvas)]
    page.get_by_role("button", name="1 position forward", exact=True).click()
    for _ in range(2):
        page.clock.run_for(120)
        pictures.append(page.evaluate(canvas))
    page.clock.run_for(300)
    pictures.append(page.evaluate(canvas))
    assert len(set(pictures)) == 4
    page.clock.run_for(300)
    assert page.evaluate(canvas) == pictures[-1]
    enter(page, "Position m", 50_000)
    far = page.evaluate(canvas)
    page.clock.run_for(300)
    assert page.evaluate(canvas) == far != pictures[-1]
