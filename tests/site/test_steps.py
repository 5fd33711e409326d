"""Tests of the questions that a figure asks on its page. The figure's card shows one question at a time, and gives the
reason once the reader has tried to answer it."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from docutils.writers import html5_polyglot
from playwright.sync_api import expect

from ropebook.explorers.lock import Lock
from ropebook.explorers.sweep import Sweep
from ropebook.explorers.turn import Turn
from tests.site.figures import STATIC, dials, enter, page_of, settle
from tests.test_steps import steps
from tools import assets


class Asked(NamedTuple):
    """One step of a page. By default, it belongs to the Turn explorer."""

    sentence: str = "Turn the position. How far is it?"
    start: str = "position=3&dim=8&pair=1"
    show: str = "position=100"
    goal: str = "position>=100&dim=8"
    hides: str = ""
    explorer: str = "turn"
    answers: tuple[str, ...] = ("Near", "Far", "Nowhere")
    right: int = 1
    why: str = "It takes many positions."


def listed(*asked: Asked) -> str:
    """Return the page's HTML for these steps."""
    document = new_document("page", get_default_settings(html5_polyglot.Writer))
    writer = html5_polyglot.HTMLTranslator(document)
    for one in asked:
        told = {name: getattr(one, name) for name in ("explorer", "start", "show", "goal", "hides")}
        steps.visit_item(writer, steps.Item(right=str(one.right), **told))
        answers = "".join(f"<li><p>{answer}</p></li>" for answer in one.answers)
        lead = f'<strong class="try-right">{one.answers[one.right]}.</strong>'
        writer.body.append(f'<p>{one.sentence}</p><ul class="try-answers">{answers}</ul>')
        writer.body.append(f'<div class="try-why"><p>{lead} {one.why}</p></div>')
        steps.depart_item(writer, None)
    return f'<div class="try"><p class="try-title"><strong>Try this</strong></p><ol>{"".join(writer.body)}</ol></div>'


@pytest.fixture
def tried(context, folder, root):
    """Open a page of figures with steps. The steps are below all figures or, with ``between``, after the first
    figure."""
    pages = []

    def open_(asked, figures=(Turn,), between=False, width=1280, height=800, **options):
        text, block = page_of([kind() for kind in figures], room=""), listed(*asked)
        text = (
            text.replace('<h2 id="part-1">', block + '<h2 id="part-1">')
            if between
            else text.replace("</main>", block + "</main>")
        )
        style = (STATIC / "steps.css").read_text()
        (folder / "steps.html").write_text(text.replace("</head>", f"<style>{style}</style></head>"), encoding="utf-8")
        page = context(viewport={"width": width, "height": height}, **options).new_page()
        pages.append(page)
        page.set_default_timeout(30_000)
        page.goto(f"{root}/steps.html")
        if options.get("java_script_enabled", True):
            expect(page.locator(".rb-try")).to_have_count(1)
        return page

    yield open_
    for page in pages:
        page.close()


# Where the question is on the page, however far the page is scrolled.
PLACE = """() => {
  const { x, y } = document.querySelector('.rb-try').getBoundingClientRect();
  return [x, Math.round(y + scrollY)];
}"""


def button(page, name):
    return page.get_by_role("button", name=name, exact=True)


def test_it_asks_then_the_reader_does_it_and_then_it_says_why(tried):
    page = tried([Asked()])
    mark, why = page.locator(".rb-try-mark"), page.locator(".rb-try-why")
    expect(mark).to_have_text("Guess first")
    expect(why).to_be_hidden()
    button(page, "Near").click()
    expect(mark).to_have_text("Now try it")
    expect(button(page, "Near")).to_have_attribute("aria-pressed", "true")
    expect(why).to_be_hidden()
    button(page, "Set up").click()
    assert {name: dials(page)[name] for name in ("position", "dim", "pair")} == {"position": 3, "dim": 8, "pair": 1}
    enter(page, "Position m", 99)
    settle(page)
    expect(why).to_be_hidden()
    enter(page, "Position m", 100)
    expect(mark).to_have_text("✓ Done")
    expect(why).to_have_text("You said: Near. But: Far. It takes many positions.")
    enter(page, "Position m", 5)  # the step stays done
    settle(page)
    expect(mark).to_have_text("✓ Done")
    button(page, "Try it again").click()
    expect(mark).to_have_text("Guess first")
    assert dials(page)["position"] == 3
    button(page, "Far").click()
    enter(page, "Position m", 200)
    expect(why).to_have_text("You said: Far. That is right. It takes many positions.")


def test_what_is_done_without_set_up_or_a_guess_counts(tried):
    page = tried([Asked(), Asked("Now less?", "", "position=1", "position<=2")])
    enter(page, "Dimension d", 8)
    settle(page)
    expect(page.locator(".rb-try-mark")).to_have_text("Guess first")
    enter(page, "Position m", 200)
    expect(page.locator(".rb-try-mark")).to_have_text("✓ Done")
    expect(page.locator(".rb-try-why")).to_have_text("The answer: Far. It takes many positions.")
    assert dials(page)["position"] == 200


def test_a_goal_that_is_met_already_has_to_be_met_anew(tried):
    page = tried([Asked(start="position=1", show="position=3", goal="position>=3")])  # the figure opens at 5
    mark = page.locator(".rb-try-mark")
    enter(page, "Position m", 4)
    settle(page)
    expect(mark).to_have_text("Guess first")
    enter(page, "Position m", 2)
    enter(page, "Position m", 3)
    expect(mark).to_have_text("✓ Done")


def test_a_goal_that_is_only_passed_does_not_count(tried):
    page = tried([Asked(goal="position>=6")])  # the figure opens at 5
    slider, mark = page.get_by_role("slider", name=" m, slider"), page.locator(".rb-try-mark")
    passing = """(slider) => new Promise((done) => {
      const press = (key) => slider.dispatchEvent(new KeyboardEvent("keydown", { key }));
      press("ArrowRight");
      setTimeout(() => { press("ArrowLeft"); setTimeout(done, 600); }, 100);
    })"""
    slider.evaluate(passing)
    assert dials(page)["position"] == 5
    expect(mark).to_have_text("Guess first")
    slider.press("ArrowRight")
    expect(mark).to_have_text("✓ Done")


def test_the_longest_answer_has_room_from_the_start(tried):
    longest = "Near, and then so near that no longer answer has ever been given here"
    page = tried([Asked(answers=(longest, "Far", "No"), why="It takes many positions. " * 10)])
    height = "document.querySelector('.rb-try').getBoundingClientRect().height"
    before = page.evaluate(height)
    button(page, longest).click()
    enter(page, "Dimension d", 8)
    enter(page, "Position m", 100)
    expect(page.locator(".rb-try-mark")).to_have_text("✓ Done")
    assert page.evaluate(height) == before
    button(page, "Try it again").click()
    button(page, "Just show me").click()  # its words are shorter than those of any guess
    expect(page.locator(".rb-try-mark")).to_have_text("Shown")
    assert page.evaluate(height) == before


def test_just_show_me_shows_it(tried):
    page = tried([Asked()])
    button(page, "Just show me").click()
    expect(page.locator(".rb-try-mark")).to_have_text("Shown")
    expect(page.locator(".rb-try-why")).to_have_text("The answer: Far. It takes many positions.")
    assert {name: dials(page)[name] for name in ("position", "dim", "pair")} == {"position": 100, "dim": 8, "pair": 1}
    expect(button(page, "Try it again")).to_be_focused()


def test_the_next_question_comes_in_the_same_place_and_the_page_keeps_the_last(tried):
    page = tried([Asked(), Asked("And back?", "position=50", "position=1", "position<=2")])
    expect(page.locator(".try")).to_be_hidden()  # this text would give the answer away
    expect(page.locator(".rb-try-place")).to_have_text("Try this, 1 of 2")
    expect(button(page, "Next question")).to_be_hidden()
    button(page, "Near").click()
    enter(page, "Dimension d", 8)
    enter(page, "Position m", 100)
    place = page.evaluate(PLACE)
    kept = page.locator(".try-told")
    expect(kept).to_have_count(1)
    expect(kept).to_contain_text("You said: Near")
    expect(kept).to_contain_text("Far. It takes many positions.")
    button(page, "Next question").click()
    expect(page.locator(".rb-try-place")).to_have_text("Try this, 2 of 2")
    expect(page.locator(".rb-try-question")).to_have_text("And back?")
    expect(button(page, "Near")).to_be_focused()
    assert dials(page)["position"] == 50
    assert page.evaluate(PLACE) == place
    expect(kept).to_be_visible()  # the first figure stays open


def test_nothing_moves_when_a_goal_is_met_or_shown(tried):
    # The reason needs more room than the question's buttons, and more after a long guess.
    answers, why = ("Near", "Far", "Nowhere, since it can't move at all"), "It takes many positions. " * 10
    page = tried([Asked(answers=answers, why=why), Asked()])
    button(page, "Set up").click()
    before = page.locator(".rb-dials").first.bounding_box()
    for change in (
        lambda: button(page, "Near").click(),
        lambda: enter(page, "Position m", 100),
        lambda: button(page, "Try it again").click(),
        lambda: button(page, "Just show me").click(),
    ):
        change()
        settle(page)
        assert page.locator(".rb-dials").first.bounding_box() == before


def test_what_would_tell_is_hidden_until_the_reader_turns_a_dial(tried):
    asked = Asked("Which moves?", "m=20&n=4&shift=0", "shift=50", "shift>=50", "curves", "lock")
    page = tried([asked], figures=(Lock,))
    words, curves = page.locator(".rb-summary"), page.locator(".rb-stage path.rb-tells").first
    for prepare in (lambda: None, button(page, "Near").click, button(page, "Set up").click):
        prepare()
        expect(words).to_be_hidden()
        expect(curves).to_be_hidden()
    page.get_by_role("slider", name="Shift t, slider").press("ArrowRight")
    expect(words).to_be_visible()
    expect(curves).to_be_visible()
    page.reload()
    expect(words).to_be_hidden()
    button(page, "Just show me").click()
    expect(words).to_be_visible()
    expect(curves).to_be_visible()


def test_a_part_of_the_picture_that_would_tell_is_covered_until_the_reader_tries(tried):
    asked = Asked("What is the curve like?", "base=10000", "base=1", "base=1", "curves", "sweep")
    page = tried([asked], figures=(Sweep,))
    covers = page.locator(".rb-covers")
    expect(covers).to_have_count(10)
    expect(covers.first).to_be_visible()
    button(page, "Near").click()
    expect(covers.first).to_be_visible()
    page.get_by_role("slider", name="Base b, slider").press("ArrowLeft")
    expect(covers.first).to_be_hidden()


def dial_of(page):
    return page.get_by_role("slider", name="Query position m, slider")


def test_the_dial_that_is_asked_for_stands_next_to_the_question(tried):
    page = tried([Asked("Move m.", "m=20&n=4&shift=50", "m=30", "m!=20", "", "lock")], figures=(Lock,))
    expect(page.locator(".rb-asked").get_by_role("slider", name="Query position m, slider")).to_be_visible()
    expect(page.locator(".rb-more .rb-dial").filter(has_text="Query position m")).to_have_count(0)
    page = tried([Asked("Drag m.", "m=25&n=4&shift=50", "m=30", "m!=20", "", "lock")], figures=(Lock,))
    button(page, "Set up").click()
    assert dials(page)["m"] == 25
    expect(dial_of(page)).to_be_hidden()  # the reader moves the hand in the picture instead


@pytest.mark.parametrize("height, seen", [(800, True), (420, False)])
def test_the_page_scrolls_to_the_tabs_if_all_below_them_fits_the_window(tried, height, seen):
    page = tried([Asked()], width=860, height=height)
    page.add_style_tag(content="main { padding-block-end: 100vh }")  # so that the page can scroll this far
    tabs, stage, edge = page.locator(".rb-panels"), page.locator(".rb-stage"), 56
    for name in ("Set up", "Just show me"):
        stage.evaluate("e => scrollBy(0, e.getBoundingClientRect().top - 70)")
        settle(page)
        assert tabs.bounding_box()["y"] < edge
        button(page, name).evaluate("e => e.click()")
        settle(page)
        assert tabs.bounding_box()["y"] == pytest.approx(edge, abs=1) if seen else tabs.bounding_box()["y"] < edge
        assert stage.bounding_box()["y"] >= edge


def test_what_a_step_leaves_out_is_as_the_figure_opens(tried):
    page = tried([Asked("Another base?", "base=50", "base=1", "base<2")])
    enter(page, "Position m", 77)
    button(page, "Set up").click()
    assert dials(page) == {**Turn().dials(), "base": 50}


def test_steps_belong_to_the_figure_before_them(tried):
    page = tried([Asked()], figures=(Turn, Turn), between=True)
    button(page, "Set up").click()
    assert [dials(page, which)["position"] for which in (0, 1)] == [3, Turn().position]
    page = tried([Asked()], figures=(Turn, Turn))
    button(page, "Set up").click()
    assert [dials(page, which)["position"] for which in (0, 1)] == [Turn().position, 3]


def test_without_javascript_and_in_print_all_of_it_is_text(tried):
    page = tried([Asked()], java_script_enabled=False)
    block = page.locator(".try")
    for text in ("Turn the position. How far is it?", "Nowhere", "Far. It takes many positions."):
        expect(block.get_by_text(text)).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    page = tried([Asked()])
    page.emulate_media(media="print")
    expect(page.locator(".try").get_by_text("Far. It takes many positions.")).to_be_visible()
    expect(button(page, "Set up")).to_be_hidden()


@pytest.mark.parametrize("width, least", [(1280, 24), (390, 44)])
def test_what_is_clicked_is_large_enough(tried, width, least):
    page = tried([Asked(), Asked()], width=width)
    for name in ("Near", "Far", "Nowhere", "Set up", "Just show me"):
        assert button(page, name).bounding_box()["height"] >= least, name
    button(page, "Just show me").click()
    for name in ("Next question", "Try it again"):
        assert button(page, name).bounding_box()["height"] >= least, name


def test_it_works_by_keys_alone(tried):
    page = tried([Asked()])
    button(page, "Near").focus()
    page.keyboard.press("Enter")
    expect(button(page, "Near")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(button(page, "Set up")).to_be_focused()
    page.keyboard.press("Enter")
    assert dials(page)["position"] == 3
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".rb-try-why")).to_be_visible()


def test_axe_finds_nothing(tried):
    page = tried([Asked(), Asked()])
    page.add_script_tag(content=assets.axe())
    for name in ("Near", "Just show me", "Next question"):
        button(page, name).click()
        found = page.evaluate("axe.run(document.querySelector('.rb-try'))")
        assert [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found["violations"]] == []
