"""Browser tests specific to the Alive explorer. The model is loaded on demand and computes the same numbers as in
PyTorch, and the figure stays responsive meanwhile."""

from __future__ import annotations

import numpy as np
import pytest
from playwright.sync_api import Page, expect

from ropebook.explorers.alive import READ, Alive
from ropebook.lab import reading
from tests.explorers.oracles import expected_of
from tests.site.figures import data, dials, enter, marks, stage_width, stats

FOUND = "() => document.querySelector('.explorer-live').ropebook.values().result"
READ_WHOLE = """([name, value]) => {
  const { result } = document.querySelector('.explorer-live').ropebook.values();
  return result.at[name] === value && result.plain.length > 0;
}"""

LOOKED = """([layer, head, byte]) => {
  const { at } = document.querySelector('.explorer-live').ropebook.values().result;
  return at.layer === layer && at.head === head && at.byte === byte;
}"""


def choose(page: Page, method: str) -> None:
    page.get_by_role("combobox", name="Method").select_option(method)


def wait_for(page: Page, name: str, value: object) -> dict:
    page.wait_for_function(READ_WHOLE, arg=[name, value])
    return page.evaluate(FOUND)


@pytest.mark.parametrize("over", ["http", "file"])
def test_on_the_built_page_the_model_reads_as_pytorch_does(visit, over):
    visited = visit("book/lab_reading.html", over=over)
    page = visited.page
    assert not any("model.js" in address for address in visited.requests)
    figure = page.locator(".explorer[data-explorer=alive]")
    figure.scroll_into_view_if_needed()
    figure.get_by_role("combobox", name="Method").select_option("ntk")
    found = wait_for(page, "method", "ntk")
    text = READ["classes"].encode()[:769]
    want = reading.read(text, reading.reader(method="ntk", factor=4.0))
    np.testing.assert_allclose(found["bits"], want.bits, atol=1e-3)
    assert np.mean(np.array(found["top"]) == want.top.numpy()) >= 0.99
    sizes = [size for address, size in visited.requests.items() if "model.js" in address]
    assert len(sizes) == 1
    assert over == "file" or 0.5e6 < sizes[0] < 0.95e6
    assert visited.problems == []


def test_a_text_of_ones_own_and_its_attention(opened):
    page = opened([Alive()])
    own = "total = 0\nfor one in values:\n    total += one\n" * 8
    page.get_by_role("textbox", name="Your own text").fill(own)
    found = wait_for(page, "own", own)
    want = Alive(own=own)
    np.testing.assert_allclose(found["bits"], want.start["bits"], atol=1e-3)
    np.testing.assert_allclose(found["plain"], want.start["plain"], atol=1e-3)
    enter(page, "Layer", 3)
    enter(page, "Head", 3)
    enter(page, "Chosen byte", 300)
    page.wait_for_function(LOOKED, arg=[3, 3, 300])
    want = Alive(own=own, layer=3, head=3, byte=300)
    np.testing.assert_allclose(page.evaluate(FOUND)["row"], want.start["row"], atol=1e-3)
    expected = expected_of(want)
    assert data(page)["chosen"] == 300
    assert stats(page)["Beyond L"].startswith(f"{expected['means'][0][1]:.2f} bits;")


def test_the_last_turn_is_what_is_read(opened):
    page = opened([Alive()])
    for method in ("linear", "ntk", "rerope", "none"):
        choose(page, method)
    found = wait_for(page, "method", "none")
    assert found["bits"] == found["plain"]
    np.testing.assert_allclose(found["bits"], Alive(method="none").start["bits"], atol=1e-3)
    expect(page.locator(".rb-tools .rb-note")).to_have_text("")


def test_the_page_answers_while_the_model_reads(opened):
    page = opened([Alive()])
    enter(page, "Bytes", 1024)
    wait_for(page, "length", 1024)
    note, summary, longest, whole = page.get_by_role("combobox", name="Method").evaluate(
        """async (select) => {
          const text = (name) => document.querySelector(name).textContent;
          select.value = 'self_extend';
          for (const event of ['input', 'change']) select.dispatchEvent(new Event(event, { bubbles: true }));
          const start = performance.now();
          const said = [text('.rb-tools .rb-note'), text('.rb-summary')];
          let [longest, last] = [0, start];
          while (text('.rb-tools .rb-note')) {
            await new Promise((done) => requestAnimationFrame(done));
            longest = Math.max(longest, performance.now() - last);
            last = performance.now();
          }
          return [...said, longest, last - start];
        }"""
    )
    assert note.startswith("Reading …")
    assert "The model has not read the text at these settings yet." in summary
    assert longest < whole / 3  # a ratio, because a busy machine slows both down
    expect(page.locator(".rb-summary")).not_to_contain_text("has not read the text")


def test_without_the_file_it_says_so_and_stays_as_it_was(opened):
    page = opened([Alive()])
    page.route("**/model.js", lambda route: route.fulfill(body="", content_type="text/javascript"))
    before = page.evaluate(FOUND)
    choose(page, "linear")
    expect(page.locator(".rb-tools .rb-note")).to_contain_text("can’t read: model.js did not load")
    assert page.evaluate(FOUND) == before
    assert dials(page)["method"] == "linear"
    page.unroute("**/model.js")
    choose(page, "ntk")
    wait_for(page, "method", "ntk")


def test_the_byte_in_question_is_taken_in_the_text_and_on_the_curve(opened):
    page = opened([Alive()])
    pads = page.locator(".rb-hand")
    pads.nth(1).click(position={"x": 6.8 * 8.5, "y": 14 * 0.5})
    assert dials(page)["byte"] == 8
    frame = page.locator(".rb-stage svg > rect").last
    assert [float(frame.get_attribute(name)) for name in ("x", "width")] == pytest.approx([6.8 * 8, 6.8])
    curve = pads.nth(0).bounding_box()
    pads.nth(0).click(position={"x": curve["width"] / 2, "y": 20})
    assert dials(page)["byte"] == pytest.approx(384, abs=2)
    pads.nth(1).press("ArrowRight")
    assert dials(page)["byte"] == pytest.approx(385, abs=2)


def test_the_text_has_its_own_line_breaks_and_whole_words(opened):
    page = opened([Alive(length=500)])
    letters = page.locator(".rb-stage svg text[style*='monospace'] tspan").evaluate_all(
        """all => all.flatMap((one) => {
          const xs = one.getAttribute('x').split(' ').map(Number);
          return [...one.textContent].map((letter, k) => [letter, xs[k], Number(one.parentNode.getAttribute('y'))]);
        })"""
    )
    half = stage_width(page) / 2
    rows: dict[tuple, str] = {}
    for letter, x, y in sorted(letters, key=lambda one: (one[1] > half, one[2], one[1])):
        column = round((x - (half + 12 if x > half else 0)) / 6.8 - 0.5)
        rows[x > half, y] = rows.get((x > half, y), "").ljust(column) + letter
    text = READ["classes"][:501]
    assert " ".join(rows.values()).split() == text.split()
    short = [line for line in text.split("\n") if line.strip() and len(line) < 40]
    assert len(short) > 10
    assert set(short) <= set(rows.values())


@pytest.mark.parametrize("setting", [{}, {"method": "linear"}, {"base": 500.0}, {"length": 256}, {"length": 64}])
def test_the_curves_names_are_clear_of_the_plot_and_short_texts_do_not_reach_l(opened, setting):
    found = marks(opened([Alive(**setting)]))
    assert ("L = 256" in found) == (setting.get("length") != 64)
    top = min(y for text, (_, y) in found.items() if text in ("L = 256", "4", "8"))
    named = [y for text, (_, y) in found.items() if text.startswith(("as trained", "YaRN", "position"))]
    assert len(named) == 2
    assert "L = 256" not in found or max(named) < top - 12


def test_play_reads_the_text_from_its_beginning(opened):
    page = opened([Alive(length=150)], reduced_motion="no-preference")
    assert dials(page)["byte"] == 150
    page.get_by_role("button", name="Play", exact=True).click()
    page.wait_for_function(
        """() => {
          const { byte } = document.querySelector('.explorer-live').ropebook.values();
          const ahead = [...document.querySelectorAll('.rb-stage .rb-ahead')];
          return byte > 1 && byte < 150 && ahead.some((one) => one.tagName === 'tspan')
            && ahead.every((one) => getComputedStyle(one).visibility === 'hidden');
        }"""
    )
    page.wait_for_function(LOOKED, arg=[2, 1, 150])
    expect(page.get_by_role("button", name="Play", exact=True)).to_be_visible()
    assert dials(page)["byte"] == 150
    expect(page.locator(".rb-stage .rb-ahead").first).not_to_have_css("visibility", "hidden")


def test_what_was_read_grows_from_the_beginning(opened):
    page = opened([Alive(length=150)], reduced_motion="no-preference")
    paths = ".rb-stage svg path[style*='--rb-1'][style*='stroke-width: 2']"
    whole = "(all) => all.map((one) => one.getAttribute('d').split(/[ML]/).length).reduce((a, b) => a + b)"
    before = page.locator(paths).evaluate_all(whole)
    page.evaluate(
        """() => {
          const [stage] = document.getElementsByClassName('rb-stage');
          const paths = () => [...stage.querySelectorAll("path[style*='--rb-1'][style*='stroke-width: 2']")];
          window.lengths = [];
          new MutationObserver(() => window.lengths.push(
            paths().reduce((sum, one) => sum + one.getAttribute('d').split(/[ML]/).length, 0)
          )).observe(stage, { subtree: true, attributes: true, childList: true });
        }"""
    )
    choose(page, "linear")
    wait_for(page, "method", "linear")
    page.wait_for_function("before => window.lengths.at(-1) === before", arg=before)
    assert min(page.evaluate("window.lengths")) < before / 2
    assert dials(page)["byte"] == 150
