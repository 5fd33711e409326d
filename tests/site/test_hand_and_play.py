"""Tests of dragging inside a picture, and of the button that starts an animation. Both use a figure with one mark on a
line."""

from __future__ import annotations

import pytest
import traitlets
from playwright.sync_api import Page, expect

from ropebook.explorers import Explorer, Whole
from ropebook.explorers.kit.dials import declare
from ropebook.explorers.kit.joining import join
from ropebook.explorers.saturation import Saturation
from tests.site.figures import dials, settle


class Line(Explorer):
    """A mark that moves from 0 to 100 on a line of 200 pixels. The mark has a small handle, and there is a wide area
    below the line."""

    SCRIPT = """import { dials } from "./line.py";
import { html, put } from "./kit/elements.js";
import { hand, ofDial } from "./kit/hand.js";
import { play } from "./kit/play.js";
import { explorer } from "./kit/mount.js";
      export default explorer({
        title: "Line", note: "A note.", compute: (values) => values, dials,
        build: (stage, app) => {
          const box = stage.appendChild(html("div", { style: "position: relative; height: 300px" }));
          const [knob, wide] = [html("div"), html("div")];
          box.append(knob, wide);
          const at = (x) => (x < 0 ? null : { place: Math.min(100, Math.round(x / 2)) });
          const same = { at, ...ofDial(app, dials[0], { limits: ({ end }) => [0, end] }) };
          const showKnob = hand(app, knob, { ...same, label: "Mark", place: ({ place }) => [2 * place, 20] });
          const showWide = hand(app, wide, { ...same, label: ({ end }) => `Area to ${end}`, area: true });
          play(app, {
            advance: ({ place, end }, seconds) => {
              return place >= end ? null : { place: Math.min(end, Math.round(place + 10 * seconds)) };
            },
            again: { place: 0 },
            step: 2.5,
          });
          return ({ values }) => {
            showKnob([2 * values.place - 15, 5, 30, 30]);
            showWide([0, 100, 200, 200]);
          };
        },
        stats: () => [],
        describe: ({ place }) => `It is at ${place}.`,
      });
    """
    place = Whole(40, min=0, max=100, label="Place", note="Of the mark.", below="it begins", above="it ends")
    end = Whole(100, min=0, max=100, label="End", note="Of the line.", below="it begins", above="it ends")
    _esm = join("line.js", {"dials": declare({"place": place, "end": end})}, SCRIPT)
    alt = traitlets.Unicode("A mark on a line, which can be moved.").tag(sync=True)


def place(page: Page) -> int:
    return dials(page)["place"]


# ---- Hand ----


def test_a_pointer_takes_the_handle_along(opened):
    page = opened([Line()])
    knob = page.get_by_role("slider", name="Mark")
    box = knob.bounding_box()
    page.mouse.move(box["x"] + 22, box["y"] + 10)  # the pointer isn't exactly at the mark's centre
    page.mouse.down()
    assert place(page) == 40
    page.mouse.move(box["x"] + 42, box["y"] + 200)  # the pointer remains captured, even far below the area
    assert place(page) == 50
    page.mouse.move(box["x"] - 500, box["y"])  # the pointer is over empty space
    assert place(page) == 50
    page.mouse.up()
    page.mouse.move(box["x"] + 62, box["y"])
    assert place(page) == 50
    expect(knob).to_be_focused()


def test_an_area_takes_the_mark_where_it_is_pressed(opened):
    page = opened([Line()])
    box = page.get_by_role("slider", name="Area to 100").bounding_box()
    page.mouse.move(box["x"] + 120, box["y"] + 50)
    page.mouse.down(button="right")
    page.mouse.up(button="right")
    assert place(page) == 40
    page.mouse.down()
    assert place(page) == 60
    page.mouse.move(box["x"] + 20, box["y"] + 50)
    assert place(page) == 10


def test_keys_do_the_same_within_the_limits_that_hold_now(opened):
    page = opened([Line(end=60)])
    knob = page.get_by_role("slider", name="Mark")
    knob.focus()
    for key, goal in [
        ("ArrowRight", 41),
        ("ArrowDown", 40),
        ("PageUp", 46),  # a tenth of what is allowed, as on a slider
        ("PageUp", 52),
        ("PageUp", 58),
        ("PageUp", 60),
        ("PageUp", 60),
        ("Home", 0),
        ("ArrowLeft", 0),
        ("a", 0),
        ("End", 60),
    ]:
        page.keyboard.press(key)
        assert place(page) == goal, key
    page.keyboard.press("Control+ArrowLeft")
    assert place(page) == 60
    for name, value in {"aria-valuenow": "60", "aria-valuemax": "60", "aria-valuetext": "Place: 60"}.items():
        expect(knob).to_have_attribute(name, value)


def thumb(page: Page, points: list[tuple[float, float]]) -> None:
    """Move a thumb along these points on a touch screen."""
    session = page.context.new_cdp_session(page)
    for k, (x, y) in enumerate(points):
        kind = "touchMove" if k else "touchStart"
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [{"x": x, "y": y}]})
        settle(page)
    session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    come_to_rest(page)


def come_to_rest(page: Page) -> None:
    """Wait until the page hasn't scrolled for 15 frames. After a thumb is lifted, scrolling continues for some
    frames."""
    page.evaluate("""new Promise((done) => {
      let [last, still] = [scrollY, 0];
      const look = () => {
        still = scrollY === last ? still + 1 : 0;
        last = scrollY;
        if (still < 15) requestAnimationFrame(look);
        else done();
      };
      look();
    })""")


def test_a_thumb_that_scrolls_from_a_slider_leaves_the_dial_as_it_was(opened):
    # In a window as low as this, the picture doesn't stay in place over the slider.
    page = opened([Saturation(), Saturation()], viewport={"width": 390, "height": 560}, has_touch=True)
    node = page.get_by_role("slider", name="Dimension d, slider").last
    box = node.evaluate("e => { e.scrollIntoView({ block: 'center' }); return e.getBoundingClientRect().toJSON(); }")
    start = page.evaluate("scrollY")
    # upwards, far from where the slider's thumb is
    thumb(page, [(box["x"] + 0.9 * box["width"], box["y"] + box["height"] / 2 - 10 * k) for k in range(12)])
    page.wait_for_function("(start) => scrollY > start + 30", arg=start)
    assert dials(page, 1)["dim"] == 64


@pytest.mark.parametrize(("where", "scrolls"), [("Mark", False), ("Area to 100", True)])
def test_a_thumb_scrolls_the_page_but_on_the_handle(opened, where, scrolls):
    page = opened([Line(), Line()], viewport={"width": 390, "height": 400}, has_touch=True)
    node = page.get_by_role("slider", name=where).first
    box = node.evaluate("e => { e.scrollIntoView({ block: 'center' }); return e.getBoundingClientRect().toJSON(); }")
    start = page.evaluate("scrollY")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    thumb(page, [(x, y - 10 * k) for k in range(12)])
    if scrolls:
        page.wait_for_function("(start) => scrollY > start + 30", arg=start)
    assert (page.evaluate("scrollY") > start + 30) == scrolls
    assert place(page) == 40
    page.evaluate("y => scrollTo(0, y)", start)
    come_to_rest(page)
    assert page.evaluate("scrollY") == start
    thumb(page, [(x + 4 * k, y) for k in range(12)])
    assert place(page) > 55
    assert page.evaluate("scrollY") == start


def test_a_tap_moves_the_mark(opened):
    page = opened([Line()], has_touch=True)
    box = page.get_by_role("slider", name="Area to 100").bounding_box()
    page.touchscreen.tap(box["x"] + 120, box["y"] + 50)
    assert place(page) == 60


# ---- Play ----


# Returns whether the mark moves within 30 frames. We count frames instead of measuring time, because a busy machine
# draws fewer frames.
MOVING = """async () => {
  const place = () => document.querySelector('.explorer-live').ropebook.values().place;
  const before = place();
  for (let k = 0; k < 30 && place() === before; k += 1) await new Promise(requestAnimationFrame);
  return place() !== before;
}"""


def moving(page: Page) -> bool:
    return page.evaluate(MOVING)


def playing(opened, start: int = 0, **options) -> Page:
    """Return a page on which Play has been pressed and the mark is moving."""
    page = opened([Line(place=start), Line()], reduced_motion="no-preference", **options)
    assert not moving(page)
    page.get_by_role("button", name="Play").first.click()
    assert moving(page)
    return page


def stopped(page: Page, end: bool = False) -> None:
    """Check that the mark has stopped: at the end of the line if ``end`` is true, and otherwise before it."""
    expect(page.get_by_role("button", name="Play")).to_have_count(2)
    assert (place(page) == 100) == end
    assert not moving(page)


def test_it_plays_from_press_to_press_and_to_the_end(opened):
    page = playing(opened, start=60)
    page.get_by_role("button", name="Pause").click()
    stopped(page)
    page.get_by_role("button", name="Play").first.click()
    page.wait_for_function("document.querySelector('.explorer-live').ropebook.values().place === 100")
    stopped(page, end=True)
    page.get_by_role("button", name="Play").first.click()
    assert place(page) < 100
    work = page.evaluate("document.querySelector('.explorer-live').ropebook.work.length")
    assert work > 5  # the work per frame is measured in the same way as the work per event


def test_a_turned_dial_stops_it(opened):
    page = playing(opened)
    page.get_by_role("slider", name="End, slider").first.press("ArrowLeft")
    stopped(page)


def test_it_stops_out_of_sight(opened):
    page = playing(opened, viewport={"width": 1280, "height": 400})
    page.mouse.wheel(0, 900)
    stopped(page)


def test_it_stops_in_a_hidden_tab(opened):
    page = playing(opened)
    page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    stopped(page)


def test_with_less_motion_a_press_is_a_step(opened):
    page = opened([Line(place=0)])
    button = page.get_by_role("button", name="Step")
    for goal in (25, 50, 75, 100, 25):
        button.click()
        assert place(page) == goal
        assert not moving(page)
    page.emulate_media(reduced_motion="no-preference")
    expect(page.get_by_role("button", name="Play")).to_be_visible()
