"""Tests of redrawing figures. The script updates the existing nodes of a picture instead of creating new ones, and the
result must look like a new picture."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import expect

from ropebook.explorers.bank import Bank
from ropebook.explorers.fourier import Fourier
from ropebook.explorers.timelapse import Timelapse
from tests.site.figures import enter

PICTURE = """() => {
  const stage = document.querySelector('.rb-stage');
  const copy = stage.cloneNode(true);
  for (const node of copy.querySelectorAll('.rb-hand')) node.remove();
  const pixels = [...stage.querySelectorAll('canvas')].map((canvas) => {
    const small = new OffscreenCanvas(64, 64).getContext('2d', { willReadFrequently: true });
    small.drawImage(canvas, 0, 0, 64, 64);
    return [...small.getImageData(0, 0, 64, 64).data];
  });
  return [copy.innerHTML, pixels.flat()];
}"""


def test_nodes_are_kept(opened):
    page = opened([Bank(dim=32)])
    page.evaluate("window.before = [...document.querySelectorAll('.rb-stage svg *, .rb-stats *')]")
    before = page.locator(".rb-stage").inner_text()
    enter(page, "Position m", 900)
    assert page.locator(".rb-stage").inner_text() != before
    had, kept, made = page.evaluate(
        """[before.length, before.filter((node) => node.isConnected).length,
            [...document.querySelectorAll('.rb-stage svg *, .rb-stats *')].filter((n) => !before.includes(n)).length]"""
    )
    assert had > 30
    assert kept >= had - 2
    assert made <= 2


@pytest.mark.parametrize(
    "figure, name, values",
    [(Bank(dim=32), "Position m", [5000, 70, 4000]), (Fourier(), "Pairs summed", [4, 16])],
    ids=["bank", "fourier-sum"],
)
def test_a_picture_that_was_changed_is_the_one_that_is_made(opened, figure, name, values):
    """This test needs a browser, because it checks canvases. test_dials_and_pictures.py moves every dial of every
    explorer."""
    page = opened([figure])
    for value in values:
        enter(page, name, value)
    changed = page.evaluate(PICTURE)
    trait = next(n for n, t in type(figure).dial_traits().items() if t.declared()["label"] == name)
    fresh = opened([type(figure)(**{**figure.dials(), trait: values[-1]})])
    picture, pixels = fresh.evaluate(PICTURE)
    assert picture == changed[0]
    # on the changed canvas, edges between pixels were painted twice
    assert np.abs(np.subtract(pixels, changed[1])).max(initial=0) <= 8


def test_a_playing_figure_says_at_its_end_what_it_shows(opened):
    page = opened([Timelapse(length=250)], reduced_motion="no-preference")
    page.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.explorer-live').ropebook.values().length === 256")
    expect(page.locator(".rb-stats dd").last).to_have_text("193 for 256 tokens")
    expect(page.locator(".rb-summary")).to_contain_text("The query, token 256,")
    expect(page.get_by_role("textbox", name="Length T")).to_have_value("256")
