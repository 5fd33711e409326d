"""Tests of what readers can take away from a figure: its picture as SVG or PNG, its numbers, and a link to its
settings."""

from __future__ import annotations

import csv
import io
import struct
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from ropebook import colours as palette
from ropebook.explorers.arrows import Arrows
from ropebook.explorers.heatmap import Heatmap
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.shuffle import Shuffle
from ropebook.explorers.turn import Turn
from tests.site.figures import channels, data, dials, enter, hash_of, settle

SVG = "{http://www.w3.org/2000/svg}"
MARGIN = 16


def saved(page, kind: str) -> Path:
    with page.expect_download() as found:
        page.get_by_role("button", name=kind, exact=True).click()
    return Path(found.value.path())


def stage_size(page) -> tuple[int, int]:
    box = page.locator(".rb-stage").bounding_box()
    return tuple(int(np.ceil(box[side])) + 2 * MARGIN for side in ("width", "height"))


def coarse(image) -> np.ndarray:
    """Reduce the picture to a few pixels, because on the page it may be shifted by half a pixel."""
    return np.asarray(image.convert("RGB").resize((120, 80), Image.Resampling.BOX), dtype=float)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("figure", [Arrows, Heatmap, Saturation, Shuffle], ids=lambda kind: kind.__name__)
def test_what_is_saved_looks_as_it_did(opened, chromium, figure, theme):
    """Compare the PNG, and the SVG opened by itself, with a screenshot of the stage."""
    page = opened([figure()], viewport={"width": 1280, "height": 1600})
    page.evaluate("theme => (document.documentElement.dataset.theme = theme)", theme)
    if theme == "dark":
        paper = palette.PALETTE["paper"][palette.DARK]
        page.add_style_tag(content=f"body {{ background: {paper} }} html {{ --fig-paper: transparent }}")
    settle(page)
    shot = Image.open(io.BytesIO(page.locator(".rb-stage").screenshot()))
    width, height = stage_size(page)
    image = Image.open(saved(page, "PNG"))
    assert image.size == (2 * width, 2 * height)
    alone = chromium.new_page(viewport={"width": width, "height": height})
    alone.goto(saved(page, "SVG").rename(Path(saved(page, "SVG")).with_suffix(".svg")).as_uri())
    drawn = Image.open(io.BytesIO(alone.screenshot()))
    alone.close()
    for one in (image, drawn):
        scale = one.width // width
        inner = one.crop([MARGIN * scale, MARGIN * scale, one.width - MARGIN * scale, one.height - MARGIN * scale])
        assert np.abs(coarse(inner) - coarse(shot)).mean() < 3.5
        assert tuple(np.asarray(one.convert("RGB"))[2, 2]) == channels("paper", ["light", "dark"].index(theme))


def test_a_png_is_twice_as_fine_as_the_page(opened):
    page = opened([Turn()])
    head = saved(page, "PNG").read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", head[16:]) == tuple(2 * side for side in stage_size(page))


def test_the_link_opens_the_same_setting(opened):
    page = opened(
        [Turn(), Saturation(alt="Bars, and curves over the head dimension.")],
        permissions=["clipboard-read", "clipboard-write"],
    )
    enter(page, "Position m", 77)
    page.get_by_role("slider", name="Pair i, slider").press("ArrowRight")
    button = page.get_by_role("button", name="Copy link", exact=True).first
    button.click()
    page.get_by_role("button", name="Copied").wait_for()
    link, turned = page.evaluate("navigator.clipboard.readText()"), dials(page)
    assert link.split("#")[1] == "turn.position=77&turn.pair=2"
    page.goto("about:blank")
    page.goto(link)
    page.wait_for_function("document.querySelectorAll('.rb-summary').length === 2")
    assert dials(page) == turned


def test_without_a_clipboard_the_link_is_in_the_address(opened):
    page = opened([Turn()])
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")
    enter(page, "Position m", 7)
    page.get_by_role("button", name="Copy link").click()
    page.get_by_role("button", name="See the address bar").wait_for()
    assert hash_of(page) == "#turn.position=7"


def test_reset_all_brings_every_dial_back(opened):
    page = opened([Turn(position=9)], fragment="#turn.position=100&turn.dim=8&turn.pair=3")
    assert dials(page)["dim"] == 8
    page.get_by_role("button", name="Reset all").click()
    assert dials(page) == Turn(position=9).dials()


def test_the_numbers_are_what_is_drawn(opened):
    page = opened([Turn(position=3, dim=4)])
    head, *rows = csv.reader(io.StringIO(saved(page, "CSV").read_text(encoding="utf-8")))
    assert head == ["name", "index", "value", "unit"]
    found = {(name, index): value for name, index, value, _ in rows}
    assert len(found) == len(rows)
    assert {name: unit for name, _, _, unit in rows if unit} == {
        "position": "tokens", "angles": "radians", "trailStart": "tokens", "first": "tokens",
    }  # fmt: skip
    assert (found["position", ""], found["dim", ""]) == ("3", "4")
    shown = data(page)
    assert [float(found["turned", str(k)]) for k in range(4)] == shown["turned"]
    assert float(found["waves", "1.7"]) == shown["waves"][1][7]
    assert float(found["after", ""]) == shown["after"]


def test_in_a_notebook_there_is_no_link(opened):
    """A notebook front end passes a model and an element to the script, but it has no page to link to."""
    page = opened([Turn()])
    names = page.evaluate(
        """async () => {
          const { state, parts } = JSON.parse(document.querySelector("script[type$='widget-state+json']").textContent);
          const { _esm, ...values } = Object.values(state).map((one) => one.state).find((one) => one._esm);
          const source = _esm.parts.map((name) => parts[name]).join("\\n");
          const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const { default: script } = await import(address);
          const el = document.body.appendChild(document.createElement("div"));
          const model = { get: (name) => values[name], set() {}, on() {}, off() {}, save_changes() {} };
          script.render({ model, el });
          return [...el.querySelectorAll(".rb-takeaway button")].map((button) => button.textContent);
        }"""
    )
    assert names == ["SVG", "PNG", "CSV", "Reset all"]
