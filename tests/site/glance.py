"""What of a figure a reader sees at one glance: its picture, its readouts, its sentence, its question and the dial that
the question asks for."""

from __future__ import annotations

from typing import NamedTuple

from playwright.sync_api import Page

from tests.site.figures import settle

SIZES = [(1366, 657), (1280, 800), (1024, 768), (390, 844)]

# For one figure of the page: how many pixels of each part are out of the window or behind something, and how high the
# picture is. With `seek`, this is where the page is scrolled to the best place; otherwise the page stays where it is.
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
    for (let y = Math.max(0, start), end = box.bottom + scrollY; y < end; y += 8) {
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

# The steps that the page asks with a figure, in order: the dials that they ask for.
STEPS = """(which) => {
  const { explorer } = document.querySelectorAll('.explorer')[which].dataset;
  return [...document.querySelectorAll(`.try-step[data-explorer="${explorer}"]`)].map((step) => ({
    turns: (step.dataset.show ?? '').split('&').filter(Boolean).map((one) => one.split('=')[0]),
    drags: /\\bdrag\\b/i.test(step.querySelector(':scope > p').textContent),
  }));
}"""


class Sight(NamedTuple):
    """One state of a figure: which step, after what, what is hidden by how much, the picture's height, and how low the
    picture may be."""

    step: int
    after: str
    hidden: list
    height: float
    small: list
    least: float


def figures_of(page: Page) -> list[str]:
    return page.locator(".explorer").evaluate_all("all => all.map((one) => one.dataset.explorer)")


def walk(page: Page, which: int, zoom: bool = False) -> list[Sight]:
    """Look at a figure in its opening state, and after *Set up* and after *Just show me* of each of its steps. With
    ``zoom``, also look at its picture and at the dial asked for at a zoom of 200 %, where the window is half as large.
    """
    steps = page.evaluate(STEPS, which)
    root = page.locator(".explorer").nth(which).locator(".rb")
    set_up = root.get_by_role("button", name="Set up", exact=True)
    size = page.viewport_size

    def look(at: int, after: str, seek: bool, zoomed: bool = False) -> Sight:
        settle(page)
        found = page.evaluate(SEEN, [which, steps[at] if steps else None, seek, zoomed])
        least = 140 if zoomed else max(220, 0.4 * size["height"])
        return Sight(at + 1, after, found["hidden"], found["height"], found["small"], least)

    def look_zoomed(at: int, seek: bool) -> Sight:
        page.set_viewport_size({name: length // 2 for name, length in size.items()})
        settle(page)
        if not seek:
            set_up.click()
        found = look(at, f"{'opening' if seek else 'set up'}, 200 %", seek, True)
        page.set_viewport_size(size)
        return found

    root.scroll_into_view_if_needed()
    seen = [look(0, "opening", True), *([look_zoomed(0, True)] if zoom else [])]
    for at in range(len(steps)):
        set_up.click()
        seen.append(look(at, "set up", False))
        if zoom:
            seen.append(look_zoomed(at, False))
        root.get_by_role("button", name="Just show me", exact=True).click()
        seen.append(look(at, "shown", False))
        if at + 1 < len(steps):
            root.get_by_role("button", name="Next question", exact=True).click()
    return seen
