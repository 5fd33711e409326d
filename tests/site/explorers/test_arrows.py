"""Browser tests specific to the Arrows explorer."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from ropebook.explorers.arrows import Arrows
from tests.site.figures import data, dials, number

# Presses the right arrow key and records the angle and the score in the picture, until they have been the same for 20
# frames.
RECORD = """(handle) => new Promise((done) => {
  const seen = [];
  const look = () => {
    const texts = [...document.querySelectorAll('.rb-stage svg text')].map((t) => t.textContent);
    seen.push([texts[texts.indexOf('Angle between') + 1], texts[texts.indexOf('Score') + 1]].join());
    const last = seen.slice(-20);
    if (last.length === 20 && new Set(last).size === 1) done([...new Set(seen)]);
    else requestAnimationFrame(look);
  };
  handle.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight' }));
  look();
})"""


@pytest.mark.parametrize("motion", ["no-preference", "reduce"])
def test_a_word_takes_its_arrow_along_smoothly(opened, motion):
    page = opened([Arrows(m=10, n=5)], reduced_motion=motion)
    seen = page.get_by_role("slider", name="“it”, the query").evaluate(RECORD)
    angles = [number(one.split("°")[0]) for one in seen]
    assert angles == sorted(angles)
    assert (len(set(angles)) > 3) == (motion == "no-preference")
    assert angles[-1] == pytest.approx(data(page)["between"] * 57.29578, abs=0.051)
    expect(page.locator(".rb-stage")).to_contain_text("before: 55.1°")


def test_the_score_stays_the_same_on_the_way_if_both_words_move(opened):
    page = opened([Arrows(m=10, n=5)], reduced_motion="no-preference")
    assert page.get_by_role("slider", name="Both words").evaluate(RECORD) == ["55.1°,0.59"]
    assert (dials(page)["m"], dials(page)["n"]) == (11, 6)
    assert page.locator(".rb-stage").get_by_text("as before", exact=True).count() == 2
