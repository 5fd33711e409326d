"""The explorers of the chapter on decay in a page without a kernel: curves, marks, buttons, hands, work."""

from __future__ import annotations

import cmath
import math
import re

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook import decay
from ropebook.explorers.bank import Bank
from ropebook.explorers.distance import Distance
from ropebook.explorers.sweep import Sweep
from tests.explorers.oracles import expected_of
from tests.site.figures import data, dials, enter, hash_of, show_panel, stage_width

BLUE, ORANGE, GREY, VIOLET = (11, 98, 196), (179, 71, 10), (209, 217, 224), (138, 47, 163)


def column(page: Page, x: float, top: float, bottom: float) -> np.ndarray:
    """The colours (rows, 3) of one column of the canvas, on white paper, from top to bottom in CSS pixels."""
    return np.array(
        page.evaluate(
            """([x, top, bottom]) => {
              const canvas = document.querySelector('.rb-stage canvas');
              const density = canvas.width / canvas.clientWidth;
              const height = Math.round((bottom - top) * density);
              const copy = new OffscreenCanvas(1, height).getContext('2d', { willReadFrequently: true });
              copy.fillStyle = 'white';
              copy.fillRect(0, 0, 1, height);
              copy.drawImage(canvas, -Math.round(x * density), -Math.round(top * density));
              const { data } = copy.getImageData(0, 0, 1, height);
              return Array.from({ length: height }, (_, k) => [...data.slice(4 * k, 4 * k + 3)]);
            }""",
            [x, top, bottom],
        )
    )


def rows_of(colours: np.ndarray, wanted: tuple[int, int, int], near: float = 40) -> np.ndarray:
    return np.flatnonzero(np.abs(colours - wanted).max(-1) < near)


def colour_at(page: Page, x: float, y: float) -> np.ndarray:
    return column(page, x, y, y + 1)[0]


def stats(page: Page, which: int = 0) -> dict[str, str]:
    box = page.locator(".rb-stats").nth(which)
    return dict(zip(box.locator("dt").all_inner_texts(), box.locator("dd").all_inner_texts(), strict=True))


# ---- The score against distance ----


def upright(found: dict) -> tuple[float, float]:
    """The ends of the axis of scores: whole steps around what is shown, and 0."""
    low, high = min(0, *found["low"]), max(0, *found["high"])
    power_ = 10 ** math.floor(math.log10((high - low) / 5))
    step = max(1, next(f for f in (1, 2, 5, 10) if f * power_ * 5 >= high - low) * power_)
    return math.floor(low / step) * step, max(1, math.ceil(high / step)) * step


@pytest.mark.parametrize("width", [390, 760])
@pytest.mark.parametrize("length, query, vectors", [(512, 256, "ones"), (65536, 0, "ones"), (300, 100, "random")])
def test_the_curve_is_where_it_belongs(opened, width, length, query, vectors):
    figure = Distance(length=length, query=query, vectors=vectors, dim=64)
    page = opened([figure], viewport={"width": width, "height": 900})
    expected = expected_of(figure)
    right = stage_width(page) - 8
    floor = (500 if right > 520 else 400) - 42
    bottom, top = upright(expected)

    def x(key: float) -> float:
        return 46 + key / (length - 1) * (right - 46)

    def y(score: float) -> float:
        return floor - (score - bottom) / (top - bottom) * (floor - 74)

    ring = page.locator(".rb-stage svg circle")
    assert float(ring.get_attribute("cx")) == pytest.approx(x(expected["leastAt"]), abs=0.01)
    assert float(ring.get_attribute("cy")) == pytest.approx(y(expected["least"]), abs=0.01)
    triangle = page.locator(".rb-first")
    if expected["negativeAt"] < 0:
        expect(triangle).to_have_count(0)
    else:
        tip = [float(n) for n in re.match(r"M([-\d.]+),([-\d.]+)", triangle.get_attribute("d")).groups()]
        assert tip == pytest.approx([x(expected["negativeAt"]), y(0) + 2], abs=0.01)
    query_line = page.locator(".rb-stage svg path[style*='dasharray']").get_attribute("d")
    assert float(re.match(r"M([-\d.]+),", query_line)[1]) == pytest.approx(x(query), abs=0.01)
    per, low, high = expected["per"], np.array(expected["low"]), np.array(expected["high"])
    for share in (0.13, 0.41, 0.66, 0.9):
        at = round(46 + share * (right - 46))
        keys = (np.array([at - 2, at + 3]) - 46) / (right - 46) * (length - 1) / per
        near = slice(max(0, math.floor(keys[0])), math.ceil(keys[1]) + 1)
        colours = column(page, at, 68, floor + 6)
        ends = {"pos": (y(max(0, high[near].max())), y(0)), "neg": (y(0), y(min(0, low[near].min())))}
        for rows, (upper, lower) in ((rows_of(colours, BLUE), ends["pos"]), (rows_of(colours, ORANGE), ends["neg"])):
            if len(rows):
                assert rows.min() + 68 >= upper - 2.5
                assert rows.max() + 68 <= lower + 2.5
        assert len(rows_of(colours, BLUE)) + len(rows_of(colours, ORANGE)) > 0
    found = stats(page)
    first = expected["negativeAt"]
    assert found["First below 0"].startswith("nowhere" if first < 0 else f"Δ = {abs(query - first)}")
    assert f"at Δ = {abs(query - expected['leastAt'])}" in found["Least score"]
    assert found["Local maxima"].startswith("—" if length > 4096 else str(expected["maxima"]))


def test_the_list_sets_the_six_figures(opened):
    page = opened([Distance(base=77, vectors="same", query=10)])
    menu = page.get_by_role("combobox", name="The six figures of the text")
    prompt, *names = menu.locator("option").all_inner_texts()
    assert len(names) == 6
    expect(menu).to_have_value(prompt)
    for name in names:
        menu.select_option(name)
        dim, length = map(int, re.findall(r"\d+", name))
        now = dials(page)
        assert (now["dim"], now["length"], now["base"], now["vectors"]) == (dim, length, 1e4, "ones")
        expect(menu).to_have_value(name)
        assert now["query"] == 10
    assert stats(page)["First below 0"].strip() == "Δ = 91"
    assert "of the samples" in stats(page)["Least score"]
    enter(page, "Base b", 500)
    expect(menu).to_have_value(prompt)


def test_the_query_follows_hand_and_keys(opened):
    page = opened([Distance(length=1001, query=100, dim=16)])
    pad = page.get_by_role("slider", name="Query position in the picture")
    box = pad.bounding_box()
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 50)
    page.mouse.down()
    assert dials(page)["query"] == 250
    page.mouse.move(box["x"] + 0.75 * box["width"], box["y"] + 60)
    assert dials(page)["query"] == 750
    page.mouse.up()
    page.mouse.move(box["x"] + 0.1 * box["width"], box["y"] + 60)
    assert dials(page)["query"] == 750
    for key, query in [
        ("ArrowLeft", 749), ("ArrowUp", 750), ("PageDown", 375), ("Home", 0), ("ArrowLeft", 0), ("End", 1000),
        ("ArrowRight", 1000), ("PageUp", 1000), ("ArrowDown", 999), ("a", 999)]:  # fmt: skip
        pad.press(key)
        assert dials(page)["query"] == query
    expect(pad).to_have_attribute("aria-valuetext", "m = 999")
    enter(page, "Length L", 500)
    assert dials(page)["query"] == 499
    expect(pad).to_have_attribute("aria-valuemax", "499")


def test_choices_of_vectors(opened):
    page = opened([Distance()])
    for name, option in [("q and k", "random"), ("slow pairs", "slow"), ("q = k", "same")]:
        page.get_by_role("radio", name=name, exact=True).check()
        assert dials(page)["vectors"] == option
    page.get_by_role("radio", name="q = k", exact=True).press("ArrowRight")
    assert dials(page)["vectors"] == "random"
    assert "q, k random, draw 1; every key" in page.locator(".rb-stage svg text").all_text_contents()


# ---- One base after the other ----


@pytest.mark.parametrize("width", [390, 760])
def test_the_panels_of_the_sweep(opened, width):
    figure = Sweep(base=1e4)
    page = opened([figure], viewport={"width": width, "height": 900})
    stage = stage_width(page)
    expected = expected_of(figure)
    floor = 240 if stage >= 520 else 358
    panels = [(46, 56, stage - 54, floor - 56, expected["values"], expected["belowHalf"])]
    check_panels(page, panels)
    show_panel(page, "Ten bases")
    buttons = page.locator(".rb-stage .rb-button")
    expect(buttons).to_have_count(10)
    names = page.locator(".rb-stage svg text").all_text_contents()
    assert [name for name in names if name.startswith("b = ")] == [
        "b = 1", "b = 2", "b = 10", "b = 100", "b = 500", "b = 10³", "b = 10⁴", "b = 10⁵", "b = 10⁶", "b = 10⁷",
    ]  # fmt: skip
    assert f"½ at {expected['halves'][6]}" in names
    canvas = page.locator(".rb-stage canvas").bounding_box()
    boxes = [button.bounding_box() for button in buttons.all()]
    assert len({round(box["y"]) for box in boxes}) == (2 if stage >= 620 else 5)
    panels = []
    for box, curve, half in zip(boxes, expected["curves"], expected["halves"], strict=True):
        left, top = box["x"] - canvas["x"], box["y"] - canvas["y"]
        panels.append((left + 8, top + 22, box["width"] - 16, box["height"] - 27, curve, half))
    check_panels(page, panels)


def check_panels(page: Page, panels: list[tuple]) -> None:
    """Mark and curve of each, (left, top, width, height, values, where they fall below ½)."""
    for k, (left, top, tall_width, height, curve, half) in enumerate(panels):
        place = left + math.log(half) / math.log(4095) * tall_width
        colours = [column(page, place + shift, top + height * 0.4, top + height) for shift in (-1, 0)]
        assert max(len(rows_of(one, ORANGE, 60)) for one in colours) > 0.2 * height, k
        at = 1 if k < 2 and len(panels) > 1 else 2  # a distance where the curve is a line
        x = left + math.log(at) / math.log(4095) * tall_width
        y = top + (1 - curve[at]) / 2 * height
        near = np.concatenate([column(page, x + shift, y - 3, y + 4) for shift in (-1, 0, 1)])
        assert len(rows_of(near, BLUE, 60)), k


def test_the_fall_of_a_base_is_dragged(opened):
    page = opened([Sweep()])
    handle = page.get_by_role("slider", name="The base, by where its score falls below half")
    expect(handle).to_have_attribute("aria-valuenow", "10000")
    box, stage = handle.bounding_box(), page.locator(".rb-stage").bounding_box()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    decade = (stage["width"] - 54) / math.log10(4095)
    page.mouse.move(x, y)
    page.mouse.down()
    for share, base, half in ((math.log10(197 / 46), 1e6, 197), (-3, 1, 2), (3, 1e7, 449)):
        page.mouse.move(x + share * decade, y + 30, steps=5)
        assert dials(page)["base"] == pytest.approx(base, rel=0.05)
        assert data(page)["belowHalf"] == pytest.approx(half, rel=0.05)
    page.mouse.up()
    handle.press("ArrowLeft")
    assert 1e6 < dials(page)["base"] < 1e7


def test_a_panel_chooses_its_base(opened):
    page = opened([Sweep(base=50)])
    expect(page.locator(".rb-stage [aria-pressed=true]")).to_have_count(0)
    page.get_by_role("button", name="Choose base 500", exact=True).click()
    assert dials(page)["base"] == 500
    expect(page.locator(".rb-stage [aria-pressed=true]")).to_have_count(1)
    page.get_by_role("button", name="Choose base 10000000").focus()
    page.keyboard.press("Enter")
    assert dials(page)["base"] == 1e7
    assert hash_of(page) == "#sweep.base=10000000"
    assert stats(page)["First below ½"].strip() == "Δ = 449"
    assert stats(page)["First below 0"].strip() == "nowhere"
    assert "The chosen base: b = 10⁷" in page.locator(".rb-stage svg text").all_text_contents()
    assert data(page)["halves"] == expected_of(Sweep())["halves"]


# ---- The bank ----


def test_models_and_steps(opened):
    page = opened([Bank()])
    menu = page.get_by_role("combobox", name="A published model’s setting")
    turned = {"GPT-NeoX-20B": 8, "Llama 2 7B": 46, "Mistral 7B": 46, "Llama 3 8B": 35, "Gemma 3 4B (global layers)": 80}
    settings = [(model.dim, model.base, model.context) for model in decay.MODELS]  # two models may share one
    for model in decay.MODELS:
        menu.select_option(model.name)
        now = dials(page)
        assert (now["dim"], now["base"], now["length"]) == (model.dim, model.base, model.context)
        first = settings.index((model.dim, model.base, model.context))
        expect(menu).to_have_value(decay.MODELS[first].name)
        if model.name in turned:
            assert stats(page)["Full turn within L"].split() == [str(turned[model.name]), "of", str(model.dim // 2)]
    enter(page, "Context L", 5000)
    expect(menu).to_have_value("A model’s setting …")
    menu.select_option("A model’s setting …")
    assert dials(page)["length"] == 5000
    page.get_by_role("button", name="16 positions on", exact=True).click()
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
    tall = (516 if stage >= 520 else 400) - 62 - 178
    cell, pairs = min(96, stage), 32
    while math.ceil(pairs / (stage // cell)) * cell > tall:
        cell -= 1
    columns = math.ceil(pairs / math.ceil(pairs / (stage // cell)))
    pitch, radius = min(cell * 1.25, stage / columns), 0.42 * cell
    for i in (0, 3, 17, 25, 27, 29, 31):
        x, y = (i % columns + 0.5) * pitch, 62 + (i // columns + 0.5) * cell
        last, turn = expected["last"][i], expected["turns"][i]
        wanted = BLUE if last >= 1 else VIOLET if turn % 1 > last else ORANGE
        hand = cmath.exp(2j * math.pi * turn)
        place = (x + 0.6 * radius * hand.real, y - 0.6 * radius * hand.imag)
        assert np.abs(colour_at(page, *place) - wanted).max() < 70, i
        rim = (x + radius * math.cos(1.1), y - radius * math.sin(1.1))
        ring = np.array(BLUE if last >= 1 else GREY)
        near = [colour_at(page, rim[0] + a, rim[1] + b) for a in (-1, 0, 1) for b in (-1, 0, 1)]
        assert min(np.abs(one - ring).max() for one in near) < 70, i
        for share, filled in ((0.7, last < 1), (1.15, False)):  # the sector ends where the hand stands at L − 1
            edge = cmath.exp(2j * math.pi * last * share)
            seen = colour_at(page, x + 0.9 * radius * edge.real, y - 0.9 * radius * edge.imag)
            if 0.05 < last < 0.8 and abs(edge - hand) > 0.3:
                assert (np.abs(seen - 255).max() > 30) == filled, (i, share)
    assert stats(page)["New angles"].split()[0] == str(expected["unseen"])
    found = " ".join(page.locator(".rb-stage svg text").all_text_contents())
    assert ("Violet: at an angle that no position within L has" in found) == (position == 6000)


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
    floor = 516 - 52
    for one in expected:
        wanted = BLUE if one <= length - 1 else ORANGE
        near = [colour_at(page, x(one) + shift, floor - 20) for shift in (-1, 0)]
        assert min(np.abs(colour - wanted).max() for colour in near) < 140
    found = page.locator(".rb-stage svg text").all_text_contents()
    assert f"L = {length}" in found
    assert any(text.startswith("Orange: no full turn") for text in found) == slow


# ---- All ----


def test_pictures_follow_the_theme(opened):
    page = opened([Distance(), Sweep(), Bank()])
    sums = """[...document.querySelectorAll('.rb-stage canvas')].map((canvas) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let [blue, all] = [0, 0];
      for (let k = 0; k < data.length; k += 4) {
        if (data[k + 3] === 255) { all += 1; blue += data[k] === 108 && data[k + 1] === 176; }
      }
      return all > 0 && blue > 100;
    })"""
    assert page.evaluate(sums) == [False] * 3
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"{sums}.every(Boolean)")
