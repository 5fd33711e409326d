"""Every picture fits its room, whole: as wide as the stage, and no higher than that leaves room for the dials."""

from __future__ import annotations

from tests.explorers.registry import every
from tests.site.figures import settle

# The narrowest and the widest stage, both sides of the border between panels and the whole, a desk's.
MOST = {320: 400, 519: 400, 520: 600, 620: 600, 900: 600}

# What reaches beyond the stage or is written too small: of texts where they end, of all else its box.
MISFITS = """([which, most]) => {
  const stage = document.querySelectorAll('.rb-stage')[which];
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
}"""


@every
def test_the_picture_fits_its_room(opened, entry):
    figures = [entry.kind(**setting) for setting in [{}, *entry.extremes, *entry.corners]]
    page = opened(figures, viewport={"width": 1280, "height": 900})
    misfits = []
    for width, most in MOST.items():
        page.add_style_tag(content=f".rb-stage {{ width: {width}px !important; }}")
        settle(page)
        for which, figure in enumerate(figures):
            panels = page.locator(".rb").nth(which).locator(".rb-panels:not([hidden]) button").all()
            assert bool(panels) <= (width < 520)
            for panel in panels or [None]:
                if panel:
                    panel.click()
                for found in page.evaluate(MISFITS, [which, most]):
                    misfits.append(f"{width} px, {panel.inner_text() if panel else 'all'}: {found} at {figure.dials()}")
    assert not misfits, "\n".join(misfits)
