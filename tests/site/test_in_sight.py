"""Tests that a picture never hides its text: beside the dials both stay in place together; on a phone, where the text
passes under the picture, it can be read in full first."""

from __future__ import annotations

from tests.explorers.registry import every
from tests.site.figures import settle

LAPTOPS_AND_PHONES = [(1366, 657), (1280, 800), (1024, 768), (390, 844)]
# For every scroll position of the page, in steps of 40 px: how much of the text the picture covers, and how much of it
# is out of sight; of both, the most, or, if `best`, the least. (Dials below the picture pass behind it and come out
# again.)
COVERED = """(best) => {
  const stage = document.querySelector('.rb-stage');
  const others = [...document.querySelectorAll('.rb-words-all, .rb-body > :is(.rb-title, .rb-note)')];
  let [most, least] = [0, Infinity];
  for (let y = 0; y < document.documentElement.scrollHeight; y += 40) {
    scrollTo(0, y);
    const a = stage.getBoundingClientRect();
    for (const other of others) {
      const b = other.getBoundingClientRect();
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (width > 1) most = Math.max(most, height);
      if (other === others.at(-1)) least = Math.min(least, Math.max(height, b.bottom - innerHeight, -a.top));
    }
  }
  return best ? least : most;
}"""


@every
def test_the_picture_covers_no_words(opened, entry):
    page = opened([entry.kind()], room="")
    # A page has text above and below the figure; with its dials open the figure is as tall as it can be.
    page.add_style_tag(content="main { padding-block: 100vh; }")
    for width, height in LAPTOPS_AND_PHONES:
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        assert page.evaluate(COVERED, width < 800) <= 1, (width, height)
