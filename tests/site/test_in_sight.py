"""Tests that a picture never hides text. It stays in place while the dials scroll past, but it never covers the
text."""

from __future__ import annotations

from tests.explorers.registry import every
from tests.site.figures import settle

LAPTOPS_AND_PHONES = [(1366, 657), (1280, 800), (1024, 768), (390, 844)]
# Scrolls through the page in steps of 40 px, and returns the largest height of text that the picture covers. (Dials
# below the picture pass behind it and reappear. On a phone, the picture passes under the words at the end.)
COVERED = """() => {
  const stage = document.querySelector('.rb-stage');
  const others = [...document.querySelectorAll('.rb-words-all, .rb-body > :is(.rb-title, .rb-note)')];
  let most = 0;
  for (let y = 0; y < document.documentElement.scrollHeight; y += 40) {
    scrollTo(0, y);
    const a = stage.getBoundingClientRect();
    for (const other of others) {
      const b = other.getBoundingClientRect();
      const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const [top, bottom] = [Math.max(a.top, b.top, 0), Math.min(a.bottom, b.bottom, innerHeight)];
      const height = bottom - top;
      if (width <= 1 || height <= 1) continue;
      const middle = (Math.max(a.left, b.left) + Math.min(a.right, b.right)) / 2;
      const above = document.elementFromPoint(middle, (top + bottom) / 2);
      if (!other.contains(above)) most = Math.max(most, height);
    }
  }
  return most;
}"""


@every
def test_the_picture_covers_no_words(opened, entry):
    page = opened([entry.kind()], room="")
    # A page has text above and below the figure. With its dials open, the figure is as tall as it can be.
    page.add_style_tag(content="main { padding-block: 100vh; }")
    for width, height in LAPTOPS_AND_PHONES:
        page.set_viewport_size({"width": width, "height": height})
        settle(page)
        assert page.evaluate(COVERED) <= 1, (width, height)
