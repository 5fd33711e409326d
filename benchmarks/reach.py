"""How much of a figure can the reader reach? Find the dials that can't be used while the whole picture is visible, and
measure how far things move while the reader drags a slider."""

from __future__ import annotations

from playwright.sync_api import Locator

SCREENS = {"1280x800": (1280, 800), "390x844": (390, 844)}
BAR = 64
"""The height in pixels that the page's own bar may cover at the top of the window."""
STOPS = 13
"""The number of positions to which a slider is dragged, from one end to the other."""

MEASURE = """async (figure, { bar, stops }) => {
  for (const more of figure.querySelectorAll('.rb-more')) more.open = true;
  const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  await frame();
  const stage = figure.querySelector('.rb-stage');
  const drawings = [...stage.querySelectorAll('svg, canvas')].filter((one) => {
    return one.checkVisibility() && !one.parentElement.closest('svg') && one.getBoundingClientRect().height > 60;
  });
  const clips = (one) => {
    const found = [];
    for (let up = one.parentElement; up && up !== document.body; up = up.parentElement) {
      if (getComputedStyle(up).overflowY !== 'visible') found.push(up);
    }
    return found;
  };
  const inside = ({ top, bottom }, from, to) => top >= from - 1 && bottom <= to + 1;
  const whole = () => drawings.every((one) => {
    const box = one.getBoundingClientRect();
    return inside(box, bar, innerHeight) && clips(one).every((by) => {
      const { top, bottom } = by.getBoundingClientRect();
      return inside(box, top, bottom);
    });
  });
  const hit = (knob) => {
    const box = knob.getBoundingClientRect();
    if (!inside(box, bar, innerHeight)) return false;
    const at = document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2);
    return !!at && (knob.contains(at) || at.contains(knob));
  };
  const dials = [...figure.querySelectorAll('.rb-dial')].map((dial) => {
    const knob = dial.querySelector('[type=range], .rb-switch, .rb-options, .rb-text, select');
    return [dial.querySelector('label, .rb-label').textContent, knob];
  });
  const behaviour = document.documentElement.style.scrollBehavior;
  document.documentElement.style.scrollBehavior = 'auto';
  // The list of sections folds when the figure comes beside it. From then on nothing changes, and no frame need pass.
  stage.scrollIntoView({ block: 'center' });
  await frame();
  await new Promise((done) => setTimeout(done, 300));
  const away = dials.filter(([, knob]) => {
    const top = scrollY + knob.getBoundingClientRect().top;
    for (let at = top - innerHeight; at < top; at += 16) {
      scrollTo(0, at);
      if (hit(knob) && whole()) return false;
    }
    return true;
  }).map(([name]) => name);
  let most = 0;
  for (const slider of figure.querySelectorAll('.rb-dial [type=range]')) {
    slider.scrollIntoView({ block: 'center' });
    await frame();
    const home = slider.value;
    const places = () => [slider, stage].map((one) => one.getBoundingClientRect().top);
    const from = places();
    const put = (value, event) => {
      slider.value = value;
      slider.dispatchEvent(new Event(event, { bubbles: true }));
    };
    // Under way the picture is drawn, at rest the words are too; both at once, so no frame need pass.
    for (let stop = 0; stop < stops; stop += 1) {
      for (const event of ['input', 'change']) {
        put((1000 * stop) / (stops - 1), event);
        places().forEach((place, i) => { most = Math.max(most, Math.abs(place - from[i])); });
      }
    }
    put(home, 'input');
    put(home, 'change');
    await frame();
  }
  document.documentElement.style.scrollBehavior = behaviour;
  return { dials: dials.length, away, moves_px: Math.round(10 * most) / 10 };
}"""


def measure(figure: Locator) -> dict:
    """Measure a running explorer with all folds open. In the result, ``dials`` is the number of dials, and ``away``
    lists the labels of the dials that can't be used while the whole picture is visible. ``moves_px`` is the largest
    distance that a slider or the picture moves while the slider is dragged from one end to the other."""
    return figure.evaluate(MEASURE, {"bar": BAR, "stops": STOPS})
