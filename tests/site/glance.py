"""Find out which parts of a figure a reader sees at one glance: its picture, its readouts, its sentence, its question,
and the dial that the question asks for."""

from __future__ import annotations

from typing import NamedTuple

from playwright.sync_api import Page

ZOOMED = (640, 400)  # at a zoom of 200%, a window of 1280 × 800 is half as large
SIZES = [(1366, 657), (1280, 800), ZOOMED, (1024, 768), (390, 844)]

# Measures one figure of the page: how many pixels of each part are outside the window or behind something, how tall the
# picture is, and which of its labels are too small. With `seek`, the page is scrolled to where the
# least is hidden; otherwise the page isn't scrolled. With `only`, the words are left out.
SEEN = """([which, step, seek, only]) => {
  const place = document.querySelectorAll('.explorer')[which];
  const root = place.querySelector('.rb');
  const [stage, said] = ['.rb-stage', '.rb-words-all'].map((one) => root.querySelector(one));
  const bars = [...document.querySelectorAll('body *')].filter((node) => {
    return !root.contains(node) && ['sticky', 'fixed'].includes(getComputedStyle(node).position)
      && node.checkVisibility();
  });
  const asked = !step || step.drags ? [] : step.turns.flatMap((trait) => {
    return [[`dial ${trait}`, root.querySelector(`[id$="-${trait}-limits"]`).closest('.rb-dial')]];
  });
  const words = [['readouts', root.querySelector('.rb-stats')], ['sentence', root.querySelector('.rb-summary')],
    ['step', root.querySelector('.rb-try')]];
  const parts = [['picture', stage], ...(only ? [] : words), ...asked].filter(([, node]) => node);
  const look = () => {
    const picture = stage.getBoundingClientRect();
    const bottoms = bars.map((node) => node.getBoundingClientRect()).filter((box) => {
      return box.top < 4 && box.bottom < innerHeight / 2 && box.right > picture.left + 4
        && box.left < picture.right - 4;
    }).map((box) => box.bottom);
    const top = Math.max(0, ...bottoms);
    return parts.map(([name, node]) => {
      const box = node.getBoundingClientRect();
      if (!node.checkVisibility()) return [name, 9999];
      if (!box.height) return [name, 0];
      let hidden = Math.max(0, top - box.top) + Math.max(0, box.bottom - innerHeight);
      for (const over of [stage, said].filter((one) => !one.contains(node) && node !== one)) {
        const by = over.getBoundingClientRect();
        const across = Math.min(box.right, by.right) - Math.max(box.left, by.left);
        const down = Math.min(box.bottom, by.bottom) - Math.max(box.top, by.top);
        if (across > 1 && down > 1) hidden += down;
      }
      return [name, Math.round(Math.min(hidden, box.height))];
    });
  };
  const sum = (found) => found.reduce((all, [, hidden]) => all + hidden, 0);
  let best = look();
  if (seek) {
    const box = root.getBoundingClientRect();
    const start = box.top + scrollY - innerHeight;
    for (let y = Math.max(0, start), end = box.bottom + scrollY; y < end; y += 2) {
      scrollTo({ top: y, behavior: 'instant' });
      const now = look();
      if (sum(now) < sum(best)) best = now;
      if (sum(best) === 0) break;
    }
  }
  const small = [...stage.querySelectorAll('text')].filter((node) => node.textContent && node.checkVisibility()
    && parseFloat(getComputedStyle(node).fontSize) < 11).map((node) => node.textContent);
  return { hidden: best.filter(([, hidden]) => hidden > 1), height: stage.getBoundingClientRect().height, small };
}"""

# Waits until a figure has been drawn for a window of this width and its size hasn't changed for eight frames in a row.
STEADY = """([which, width]) => new Promise((done) => {
  const root = document.querySelectorAll('.explorer')[which].querySelector('.rb');
  const stage = root.querySelector('.rb-stage');
  let before = '';
  let same = 0;
  (function look() {
    const now = [stage.clientWidth, stage.clientHeight, root.clientHeight].join();
    same = now === before && innerWidth === width ? same + 1 : 0;
    before = now;
    if (same < 8) requestAnimationFrame(look);
    else done();
  })();
})"""

# The steps of a figure, in order: which dials the reader must move in each step, and whether the reader must drag.
STEPS = """(which) => {
  const { explorer } = document.querySelectorAll('.explorer')[which].dataset;
  return [...document.querySelectorAll(`.try-step[data-explorer="${explorer}"]`)].map((step) => ({
    turns: (step.dataset.show ?? '').split('&').filter(Boolean).map((one) => one.split('=')[0]),
    drags: /\\bdrag\\b/i.test(step.querySelector(':scope > p').textContent),
  }));
}"""


class Sight(NamedTuple):
    """What is seen of a figure in a window of one size, at one step and after one action. ``hidden`` lists the hidden
    parts, each with its number of hidden pixels. ``height`` is the picture's height, and ``least`` the smallest height
    allowed. ``small`` lists the labels that are too small to read."""

    size: tuple[int, int]
    step: int
    after: str
    hidden: list
    height: float
    small: list
    least: float


def figures_of(page: Page) -> list[str]:
    return page.locator(".explorer").evaluate_all("all => all.map((one) => one.dataset.explorer)")


def walk(page: Page, which: int, sizes: list[tuple[int, int]]) -> list[Sight]:
    """Look at a figure in windows of all sizes: in its opening state, and after *Set up* and after *Just show me* of
    each of its steps. In the zoomed window, it is enough if the picture and the dial that a step asks for are
    visible together until the answer is shown."""
    steps = page.evaluate(STEPS, which)
    root = page.locator(".explorer").nth(which).locator(".rb")
    seen = []

    def look(size: tuple[int, int], at: int, after: str, seek: bool = False) -> None:
        page.evaluate(STEADY, [which, size[0]])
        zoomed = size == ZOOMED
        found = page.evaluate(SEEN, [which, steps[at] if steps else None, seek, zoomed])
        least = 140 if zoomed else max(220, 0.4 * size[1])
        seen.append(Sight(size, at + 1, after, found["hidden"], found["height"], found["small"], least))

    def resize(size: tuple[int, int]) -> None:
        if page.viewport_size != {"width": size[0], "height": size[1]}:
            page.set_viewport_size({"width": size[0], "height": size[1]})
            page.evaluate(STEADY, [which, size[0]])

    def press(name: str) -> None:
        root.get_by_role("button", name=name, exact=True).click()

    for size in sizes:
        resize(size)
        root.scroll_into_view_if_needed()
        look(size, 0, "opening", seek=True)
    for at in range(len(steps)):
        for k, size in enumerate(sizes):
            resize(size)
            if k:
                press("Try it again")
            press("Set up")
            look(size, at, "set up")
            press("Just show me")
            if size != ZOOMED:
                look(size, at, "shown")
        if at + 1 < len(steps):
            resize(sizes[0])
            press("Next question")
    return seen
