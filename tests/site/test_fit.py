"""Tests that every picture fits: it is as wide as the stage, and low enough to leave room for the dials."""

from __future__ import annotations

import pytest

from ropebook.explorers.bank import Bank
from ropebook.explorers.heatmap import Heatmap
from ropebook.explorers.turn import Turn
from tests.explorers.registry import every
from tests.site.figures import settle

# Stage widths, each with the height allowed for the picture. The widths include the narrowest stage, one width on each
# side of the limit between panels and the whole picture, a desktop's stage, and the widest stage. The heights include
# those in the windows of a phone, a laptop and a desktop.
ROOMS = [(320, 400), (358, 339), (519, 400), (520, 484), (620, 600), (710, 417), (900, 600)]

# For every figure and each of its panels, this finds what extends beyond the stage or is too small to read. Texts may
# extend 4 px beyond the stage, and everything else 2 px. All figures change panels at the same time, because each
# change takes a frame.
MISFITS = """async (most) => {
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const misfits = (stage) => {
    const { left, top, right, bottom } = stage.getBoundingClientRect();
    const found = [];
    if (bottom - top > most) found.push(['height', bottom - top]);
    for (const node of stage.querySelectorAll(':not(g, tspan, .rb-hand)')) {
      const box = node.getBoundingClientRect();
      if (box.width + box.height === 0) continue; // not shown
      const over = Math.max(left - box.left, box.right - right, top - box.top, box.bottom - bottom);
      const text = node.localName === 'text' ? node.textContent : '';
      if (over > (text ? 4 : 2)) found.push([node.localName, text, Math.round(over)]);
      if (text && parseFloat(getComputedStyle(node).fontSize) < 11) found.push(['small', text]);
    }
    return found;
  };
  const figures = [...document.querySelectorAll('.rb')];
  const panels = figures.map((figure) => [...figure.querySelectorAll('.rb-panels:not([hidden]) button')]);
  const found = [];
  for (let k = 0; k < Math.max(1, ...panels.map((some) => some.length)); k += 1) {
    panels.forEach((some) => some[k]?.click());
    await frame();
    figures.forEach((figure, which) => {
      if (k && !panels[which][k]) return;
      const panel = panels[which][k]?.innerText ?? 'all';
      for (const one of misfits(figure.querySelector('.rb-stage'))) found.push([which, panel, one]);
    });
  }
  return { panels: panels.map((some) => some.length), found };
}"""


@every
def test_the_picture_fits_its_room(opened, entry):
    figures = [entry.kind(**setting) for setting in [{}, *entry.extremes, *entry.corners]]
    page = opened(figures, viewport={"width": 1280, "height": 900})
    misfits = []
    for width, most in ROOMS:
        room = f".rb-height {{ height: {most}px !important; }}"
        page.add_style_tag(content=f".rb-stage {{ width: {width}px !important; }} {room}")
        settle(page)
        seen = page.evaluate(MISFITS, most)
        assert len(seen["panels"]) == len(figures)
        assert width < 600 or most < 600 or not any(seen["panels"])
        misfits += [f"{width} px, {panel}: {one} at {figures[which].dials()}" for which, panel, one in seen["found"]]
    assert not misfits, "\n".join(misfits)


# The texts that overlap in the picture.
OVERLAPS = """(stage) => {
  const texts = [...stage.querySelectorAll('text')].filter((t) => t.textContent
    && t.checkVisibility({ checkVisibilityCSS: true }));
  const boxes = texts.map((t) => t.getBoundingClientRect());
  return boxes.flatMap((a, i) => boxes.slice(i + 1).flatMap((b, j) => {
    const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    return across > 0.5 && down > 5 ? [[texts[i].textContent, texts[i + 1 + j].textContent]] : [];
  }));
}"""


@pytest.mark.parametrize(
    "width, most, figure",
    [
        (358, 339, Bank(dim=32, base=1.0, position=1_000_000)),
        (358, 339, Heatmap(dim=512)),
        (710, 417, Turn(position=1, base=1e7, pair=7)),
    ],
)
def test_labels_do_not_touch_in_a_low_room(opened, width, most, figure):
    page = opened([figure])
    room = f".rb-height {{ height: {most}px !important; }}"
    page.add_style_tag(content=f".rb-stage {{ width: {width}px !important; }} {room}")
    settle(page)
    assert page.locator(".rb-stage").evaluate(OVERLAPS) == []
