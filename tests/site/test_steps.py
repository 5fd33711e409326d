"""Tests of the suggested steps for a figure on a page: a button sets the figure up, and a check mark shows that the
goal has been met."""

from __future__ import annotations

import pytest
from docutils.frontend import get_default_settings
from docutils.utils import new_document
from docutils.writers import html5_polyglot
from playwright.sync_api import expect

from ropebook.explorers.turn import Turn
from tests.site.figures import STATIC, dials, enter, page_of, settle
from tests.test_steps import steps
from tools import assets


def listed(*asked: tuple[str, str, str]) -> str:
    """Return the page's HTML for steps of the Turn explorer, each given as (sentence, start, goal)."""
    document = new_document("page", get_default_settings(html5_polyglot.Writer))
    writer = html5_polyglot.HTMLTranslator(document)
    for sentence, start, goal in asked:
        steps.visit_item(writer, steps.Item(explorer="turn", start=start, goal=goal))
        writer.body.append(f"<p>{sentence}</p>")
        steps.depart_item(writer, None)
    return f'<div class="try"><p class="try-title"><strong>Try this</strong></p><ol>{"".join(writer.body)}</ol></div>'


@pytest.fixture
def tried(context, folder, root):
    """Open a page of figures with steps below them, or, if ``between``, with the steps after the first figure."""
    pages = []

    def open_(asked, figures=(Turn,), between=False, **options):
        text, block = page_of([kind() for kind in figures]), listed(*asked)
        text = (
            text.replace('<h2 id="part-1">', block + '<h2 id="part-1">')
            if between
            else text.replace("</main>", block + "</main>")
        )
        style = (STATIC / "steps.css").read_text()
        (folder / "steps.html").write_text(text.replace("</head>", f"<style>{style}</style></head>"), encoding="utf-8")
        page = context(viewport={"width": 1280, "height": 800}, **options).new_page()
        pages.append(page)
        page.set_default_timeout(30_000)
        page.goto(f"{root}/steps.html")
        if options.get("java_script_enabled", True):
            expect(page.locator(".try-button")).to_have_count(len(asked))
        return page

    yield open_
    for page in pages:
        page.close()


FAR = ("Guess, then turn the position.", "position=3&dim=8&pair=1", "position>=100&dim=8")


def test_a_button_sets_the_figure_up_and_the_goal_is_seen(tried):
    page = tried([FAR])
    mark = page.locator(".try-mark")
    page.get_by_role("button", name="Set up: Guess, then turn the position.").click()
    assert {name: dials(page)[name] for name in ("position", "dim", "pair")} == {"position": 3, "dim": 8, "pair": 1}
    enter(page, "Position m", 99)
    settle(page)
    expect(mark).to_be_empty()
    enter(page, "Position m", 100)
    expect(mark).to_have_text("✓ Done")
    expect(mark).to_have_attribute("role", "status")
    enter(page, "Position m", 5)  # the check mark doesn't disappear
    settle(page)
    expect(mark).to_have_text("✓ Done")
    page.get_by_role("button", name="Set up").click()
    expect(mark).to_be_empty()
    assert dials(page)["position"] == 3


def test_a_step_that_was_not_begun_is_not_done(tried):
    page = tried([FAR, ("From where it opens.", "", "position>=100")])
    enter(page, "Position m", 200)
    enter(page, "Dimension d", 8)
    settle(page)
    expect(page.locator(".try-mark")).to_have_text(["", "✓ Done"])


def test_what_a_step_leaves_out_is_as_the_figure_opens(tried):
    page = tried([("Another base.", "base=50", "base<2")])
    enter(page, "Position m", 77)
    page.get_by_role("button", name="Set up").click()
    assert dials(page) == {**Turn().dials(), "base": 50}


def test_steps_belong_to_the_figure_before_them(tried):
    page = tried([FAR], figures=(Turn, Turn), between=True)
    page.get_by_role("button", name="Set up").click()
    assert [dials(page, which)["position"] for which in (0, 1)] == [3, Turn().position]
    page = tried([FAR], figures=(Turn, Turn))
    page.get_by_role("button", name="Set up").click()
    assert [dials(page, which)["position"] for which in (0, 1)] == [Turn().position, 3]


def test_the_picture_comes_into_sight(tried):
    page = tried([FAR])
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<div style=\"height: 4000px\"></div>')")
    page.locator(".try").evaluate("e => window.scrollTo(0, e.offsetTop - 80)")
    page.get_by_role("button", name="Set up").click()
    page.wait_for_function("document.querySelector('.rb-stage').getBoundingClientRect().y >= 0")


def test_without_javascript_and_in_print_there_are_the_sentences(tried):
    page = tried([FAR], java_script_enabled=False)
    expect(page.get_by_text("Guess, then turn the position.")).to_be_visible()
    expect(page.get_by_role("button")).to_have_count(0)
    page = tried([FAR])
    page.emulate_media(media="print")
    expect(page.get_by_text("Guess, then turn the position.")).to_be_visible()
    expect(page.locator(".try-button")).to_be_hidden()


def test_axe_finds_nothing(tried):
    page = tried([FAR, FAR])
    page.add_script_tag(content=assets.axe())
    found = page.evaluate("axe.run(document.querySelector('.try'))")
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found["violations"]] == []
