"""Tests of explorers on a page without a kernel: pointer, keys, address, theme, printing, and failing scripts.

The tests make their own pages, with the same widget state that MyST-NB would write, so they don't need a built book.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
import traitlets
from playwright.sync_api import expect

from ropebook.explorers import Choice, Explorer
from ropebook.explorers.bank import Bank
from ropebook.explorers.distance import Distance
from ropebook.explorers.fourier import Fourier
from ropebook.explorers.kit.dials import declare
from ropebook.explorers.kit.joining import join
from ropebook.explorers.ladder import METHODS, Ladder
from ropebook.explorers.lock import Lock
from ropebook.explorers.ramp import Ramp
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.shuffle import Shuffle
from ropebook.explorers.sweep import Sweep
from ropebook.explorers.timelapse import Timelapse
from ropebook.explorers.turn import Turn
from tests.site.figures import CSS_BLUE, CSS_INK, DARK, dials, hash_of, pixels, rest, settle, stats

# ---- Startup ----


@pytest.mark.parametrize("over", ["http", "file"])
@pytest.mark.parametrize("shared", [True, False])
def test_figures_come_alive(opened, over, shared):
    page = opened([Shuffle(), Saturation()], over=over, shared=shared)
    expect(page.locator(".explorer-alive .rb")).to_have_count(2)
    expect(page.locator(".explorer-still").first).to_be_hidden()
    expect(page.get_by_role("img")).to_have_count(2)
    for image, figure in zip(page.get_by_role("img").all(), (Shuffle(), Saturation()), strict=True):
        assert image.get_attribute("aria-label") == figure.alt


# ---- Pointer and keys ----


def test_a_number_can_be_typed_and_a_bad_one_is_refused_with_its_reason(opened):
    page = opened([Saturation()])
    field, says = page.get_by_role("textbox", name="Dimension d"), page.get_by_role("status")
    slider = page.get_by_role("slider", name="Dimension d, slider")
    for typed, reason in [
        ("700", "700 is more than 512 (wider heads show nothing new)"),
        ("0", "0 is less than 1 (a vector holds at least one number)"),
        ("6.5", "6.5 is not a whole number"),
        ("many", "“many” is not a number"),
    ]:
        field.fill(typed)
        field.press("Enter")
        expect(says).to_have_text(f"Dimension d: {reason}. Still 64.")
        expect(says).to_have_attribute("aria-live", "polite")
        expect(field).to_have_value("64")
        assert dials(page)["dim"] == 64
    field.fill("512")
    field.press("Tab")
    expect(says).to_be_empty()
    assert dials(page)["dim"] == 512
    expect(slider).to_have_value("1000")
    expect(slider).to_have_attribute("aria-valuetext", "512")
    expect(page.locator(".rb-stage")).to_contain_text("At d = 512")
    reset = page.get_by_role("button", name="Reset Dimension d to 64")
    expect(reset).to_have_attribute("aria-disabled", "false")
    reset.click()
    assert dials(page)["dim"] == 64
    expect(reset).to_have_attribute("aria-disabled", "true")
    described = page.locator(f"#{field.get_attribute('aria-describedby')}")
    expect(described).to_have_text("Whole numbers, 1 to 512. Real heads have 64 to 256.")


def test_sliders_by_mouse_and_keys(opened):
    page = opened([Saturation()])
    slider, field = (
        page.get_by_role("slider", name="Number of keys"),
        page.get_by_role("textbox", name="Number of keys"),
    )
    box = slider.bounding_box()
    page.mouse.click(box["x"] + box["width"] - 4, box["y"] + box["height"] / 2)
    assert dials(page)["n_keys"] == 32
    for key, value in [
        ("ArrowLeft", 31),
        ("PageDown", 28),
        ("ArrowUp", 29),
        ("Home", 2),
        ("ArrowDown", 2),
        ("End", 32),
    ]:
        slider.press(key)
        assert dials(page)["n_keys"] == value
        expect(field).to_have_value(str(value))
    field.press("ArrowDown")
    assert dials(page)["n_keys"] == 31
    page.get_by_role("switch", name="Divide by √d").focus()
    page.keyboard.press("Space")
    assert dials(page)["scaled"] is False
    expect(page.locator(".rb-summary")).to_contain_text("no division by √d")


class Chooser(Explorer):
    """A figure that shows only which of its texts has been chosen."""

    SCRIPT = """import { dials } from "./chooser.py";
import { html, setText } from "./kit/elements.js";
import { explorer } from "./kit/mount.js";
      export default explorer({
        title: "Chooser", note: "A note.", compute: (values) => values, dials,
        build: (stage) => {
          const said = stage.appendChild(html("p"));
          return ({ values }) => setText(said, values.kind);
        },
        stats: () => [],
        describe: ({ kind }) => `It is ${kind}.`,
      });
    """
    kind = Choice(
        {"float64": "float64", "bfloat16": "bfloat16", "half": "Half"},
        label="Kind of number",
        note="Three of them.",
    )
    _esm = join("chooser.js", {"dials": declare({"kind": kind})}, SCRIPT)
    alt = traitlets.Unicode("A figure that shows a single word.").tag(sync=True)


def test_a_choice_by_mouse_keys_and_address(opened):
    page = opened([Chooser(), Chooser(kind="half")], fragment="#chooser.kind=bfloat16&chooser-2.kind=float16")
    group = page.get_by_role("radiogroup", name="Kind of number").first
    assert [dials(page, which) for which in range(2)] == [{"kind": "bfloat16"}, {"kind": "half"}]
    expect(page.get_by_role("status").nth(1)).to_have_text(
        "Kind of number in the address: “float16” is not one of float64, bfloat16, half."
    )
    expect(group.get_by_role("radio", name="bfloat16")).to_be_checked()
    group.get_by_role("radio", name="Half").click()
    assert dials(page)["kind"] == "half"
    expect(page.locator(".rb-stage").first).to_have_text("half")
    expect(group.get_by_role("radio", checked=True)).to_have_count(1)
    for key, kind in [
        ("ArrowRight", "float64"),
        ("ArrowDown", "bfloat16"),
        ("ArrowLeft", "float64"),
        ("ArrowUp", "half"),
    ]:
        page.keyboard.press(key)
        assert dials(page)["kind"] == kind
    assert dials(page, 1)["kind"] == "half"  # the other figure has a separate group of buttons
    assert hash_of(page) == "#chooser.kind=half"
    described = page.locator(f"#{group.get_attribute('aria-describedby')}")
    expect(described).to_have_text("Three of them.")
    reset = page.get_by_role("button", name="Reset Kind of number to float64")
    reset.click()
    assert dials(page)["kind"] == "float64"
    expect(group.get_by_role("radio", name="float64")).to_be_checked()
    expect(reset).to_have_attribute("aria-disabled", "true")
    for box in page.locator(".rb-option").evaluate_all(
        "all => all.map((e) => { const b = e.getBoundingClientRect(); return [b.width, b.height]; })"
    ):
        assert min(box) >= 24
    chosen, other = (
        page.locator(".rb-option").nth(which).evaluate("e => getComputedStyle(e).backgroundColor") for which in (0, 1)
    )
    assert (chosen, other) == (CSS_BLUE, "rgba(0, 0, 0, 0)")


def test_readouts_and_summary_are_spoken_once_the_hand_rests(opened):
    page = opened([Saturation()])
    spoken = page.locator(".rb-hidden[aria-live=polite]")
    rest(page, 600)
    expect(spoken).to_be_empty()  # the reader hasn't done anything yet
    pressed = """(slider) => {
      for (let k = 0; k < 5; k += 1) slider.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
      return document.querySelector(".rb-hidden[aria-live=polite]").textContent;
    }"""
    assert page.get_by_role("slider", name="Dimension d").evaluate(pressed) == ""
    expect(spoken).to_contain_text("d = 87")
    words = spoken.inner_text()
    assert words.endswith(page.locator(".rb-summary").inner_text())
    for name, value in stats(page).items():
        assert f"{name}: {value.strip()}." in words


def test_a_pair_beyond_the_last_is_refused_and_gives_way(opened):
    page = opened([Turn(), Lock()])
    for which in range(2):
        field = page.get_by_role("textbox", name="Pair i").nth(which)
        field.fill("100")
        field.press("Enter")
        why = page.locator(".rb").nth(which).locator(".rb-why:visible")
        expect(why).to_contain_text("100 is more than 7 (Dimension d is 16).")
        field.fill("7")
        field.press("Enter")
        assert dials(page, which)["pair"] == 7
        dim = page.get_by_role("textbox", name="Dimension d").nth(which)
        dim.fill("4")
        dim.press("Enter")
        assert dials(page, which)["pair"] == 1
        dim.fill("9")
        dim.press("Enter")
        expect(page.get_by_role("status").nth(which)).to_contain_text(
            "9 is not one of 2, 4, 6, … (entries come in pairs). Still 4."
        )


# ---- Address ----


@pytest.mark.parametrize("over", ["http", "file"])
def test_a_setting_can_be_shared(opened, over):
    page = opened([Shuffle(), Saturation(dim=32), Saturation()], over=over, fragment="#part-1")
    assert hash_of(page) == "#part-1"  # no dial was moved, so the reader's own address is unchanged
    page.get_by_role("textbox", name="Sentence").fill("a & b=c 100% naïve")
    page.get_by_role("button", name="Move the picked word right").click()
    page.get_by_role("switch", name="Position signal").check()
    page.get_by_role("textbox", name="Dimension d").nth(0).fill("100")
    page.get_by_role("switch", name="Divide by √d").nth(1).uncheck()
    hash_ = hash_of(page)
    assert "shuffle.order=4,0,2,3,1&shuffle.position=on" in hash_
    assert hash_.endswith("&saturation.dim=100&saturation-2.scaled=off")
    settings = [dials(page, which) for which in range(3)]
    again = opened([Shuffle(), Saturation(dim=32), Saturation()], over=over, fragment=hash_)
    assert [dials(again, which) for which in range(3)] == settings
    assert again.evaluate("scrollY") > 0  # the page has scrolled to the figure named in the address
    assert again.evaluate("document.querySelectorAll('.rb-dial').length") == 12
    for button in again.locator(".rb-reset[aria-disabled=false]").all():
        again.locator(".rb-reset[aria-disabled=false]").first.click()
        assert button is not None
    assert hash_of(again) == ""
    assert [dials(again, which) for which in range(3)] == [
        f.dials() for f in (Shuffle(), Saturation(dim=32), Saturation())
    ]


@pytest.mark.parametrize(
    "explorer, fragment, expected",
    [
        (Distance, "#distance.query=30000&distance.length=65536", {"query": 30000, "length": 65536}),
        (
            Fourier,
            "#fourier.peak=2000&fourier.distance=3000&fourier.span=4096",
            {"peak": 2000, "distance": 3000, "span": 4096},
        ),
        (Timelapse, "#timelapse.length=2000&timelapse.room=4096", {"length": 2000, "room": 4096}),
        # If the values of two dials are incompatible, the page adjusts the same dial as it would if a reader moved
        # them.
        (Timelapse, "#timelapse.length=4000&timelapse.room=1024", {"length": 1024, "room": 1024}),
        # The chosen text is checked against the words in the address, in whatever order the settings are given.
        (Shuffle, "#shuffle.order=2,0,1&shuffle.words=a+b+c", {"words": "a b c", "order": [2, 0, 1]}),
    ],
    ids=["distance", "fourier", "timelapse", "beyond", "shuffle"],
)
@pytest.mark.parametrize("backwards", [False, True])
def test_dials_that_depend_on_one_another_come_back_from_the_address(opened, explorer, fragment, expected, backwards):
    entries = fragment[1:].split("&")[:: -1 if backwards else 1]
    page = opened([explorer()], fragment=f"#{'&'.join(entries)}")
    assert dials(page) == {**explorer().dials(), **expected}
    expect(page.get_by_role("status")).to_be_empty()


def test_an_address_of_two_figures_lands_on_the_last_one_that_it_names(opened):
    figures = [Shuffle(), Saturation(dim=32), Saturation()]
    away = """[...document.querySelectorAll('.explorer')].map((e) => {
      return Math.abs(e.getBoundingClientRect().top - parseFloat(getComputedStyle(e).scrollMarginTop));
    })"""
    for fragment, landed in [
        ("#saturation.dim=9&saturation-2.dim=7", 2),
        ("#saturation-2.dim=7&saturation.dim=9", 1),
        ("#saturation-2.dim=7&absent.dim=9&part-0&shuffle.x", 2),
    ]:
        page = opened(figures, fragment=fragment, viewport={"width": 1280, "height": 400})
        page.wait_for_function("scrollY > 0")
        found = page.evaluate(away)
        assert found.index(min(found)) == landed, fragment
        assert min(found) < 2


def test_a_bad_address_is_refused_entry_by_entry(opened):
    page = opened(
        [Saturation()], fragment="#saturation.dim=9999&saturation.n_keys=16&saturation.size=3&saturation.draw=x"
    )
    says = page.get_by_role("status")
    expect(says).to_contain_text("This figure has no dial “size”.")
    expect(says).to_contain_text("Dimension d in the address: 9999 is more than 512")
    expect(says).to_contain_text("Random draw in the address: “x” is not a number.")
    assert dials(page) == {"dim": 64, "n_keys": 16, "draw": 0, "scaled": True}
    assert hash_of(page) == "#saturation.n_keys=16"


def test_following_a_link_turns_the_dials(opened):
    page = opened([Saturation()])
    page.evaluate("location.hash = '#saturation.dim=7&saturation.scaled=off'")
    page.wait_for_function("document.querySelector('.explorer-live').ropebook.values().dim === 7")
    assert dials(page) == {"dim": 7, "n_keys": 8, "draw": 0, "scaled": False}
    page.evaluate("location.hash = '#saturation.draw=3'")
    page.wait_for_function("document.querySelector('.explorer-live').ropebook.values().draw === 3")
    assert dials(page) == {"dim": 64, "n_keys": 8, "draw": 3, "scaled": True}
    assert hash_of(page) == "#saturation.draw=3"
    page.evaluate("location.hash = '#part-0'")  # this address names a heading, so the dials don't change
    assert hash_of(page) == "#part-0"
    assert dials(page)["draw"] == 3


# ---- Appearance ----


def test_colours_follow_the_theme(opened):
    page = opened([Shuffle(), Sweep()])
    fills = "[...document.querySelectorAll('.rb-moves rect')].map((r) => r.getAttribute('fill'))"
    picture = "document.querySelector('canvas').toDataURL()"
    light = page.evaluate(f"[{fills}, {picture}]")
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => {picture} !== light", arg=light[1])
    dark = page.evaluate(f"[{fills}, {picture}]")
    assert all(a != b for a, b in zip(light[0], dark[0], strict=True))
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    page.wait_for_function(f"(dark) => {picture} !== dark", arg=dark[1])
    assert page.evaluate(f"[{fills}, {picture}]") == light


def test_canvases_follow_the_theme(opened):
    page = opened([Distance(), Sweep(), Bank()])
    sums = """[...document.querySelectorAll('.rb-stage canvas')].map((canvas) => {
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      copy.drawImage(canvas, 0, 0);
      const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
      let [blue, all] = [0, 0];
      for (let k = 0; k < data.length; k += 4) {
        if (data[k + 3] === 255) { all += 1; blue += data[k] === 108 && data[k + 1] === 176; }
      }
      return all > 0 && blue > 100;
    })"""
    assert page.evaluate(sums) == [False] * 3
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"{sums}.every(Boolean)")


def test_lines_follow_the_theme(opened):
    page = opened([Ladder(), Ramp(), Timelapse()])
    colours = """[...document.querySelectorAll('.rb-stage svg :is(path, circle, text)')].map((e) => {
      const { stroke, fill } = getComputedStyle(e);
      return `${stroke} ${fill}`;
    })"""
    light, tokens = page.evaluate(colours), pixels(page, [(5, 55)])
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => {colours}.join() !== light.join()", arg=light)
    dark = page.evaluate(colours)
    inks = {(a, b) for a, b in zip(light, dark, strict=True) if CSS_INK in a or CSS_BLUE in a}
    assert inks
    assert all(a != b for a, b in inks)
    settle(page)
    assert np.abs(pixels(page, [(5, 55)]) - tokens).max() > 20


def test_colours_follow_the_system(opened):
    page = opened([Sweep()])
    page.add_style_tag(content=f"@media (prefers-color-scheme: dark) {{ html {{ {DARK} }} }}")
    light = page.evaluate("document.querySelector('canvas').toDataURL()")
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("(light) => document.querySelector('canvas').toDataURL() !== light", arg=light)


@pytest.mark.parametrize("width", [340, 390, 700, 1280])
def test_no_sideways_scrolling_and_targets_for_fingers(opened, width):
    long = Shuffle(words="embeddings " * 8)
    page = opened([long, Saturation(n_keys=32)], viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    cards = page.locator(".rb").evaluate_all("all => all.map((e) => [e.scrollWidth, e.clientWidth])")
    assert all(inner <= outer for inner, outer in cards)
    for box in page.locator(".rb :is(button, input)").evaluate_all(
        "all => all.filter((e) => e.checkVisibility()).map((e) =>"
        " { const b = e.getBoundingClientRect(); return [b.width, b.height]; })"
    ):
        assert min(box) >= 24
    edges = page.locator(".rb-stage").evaluate_all(
        """all => all.map((stage) => [...stage.querySelectorAll('text')].filter((t) => t.checkVisibility())
            .map((t) => [t.getBoundingClientRect().right - stage.getBoundingClientRect().right, t.textContent]))"""
    )
    assert [found for figure in edges for found in figure if found[0] > 2] == []


def test_a_new_width_makes_a_new_layout(opened):
    page = opened([Shuffle()])
    expect(page.locator(".rb-panels")).to_be_hidden()
    before = page.locator(".rb-word").evaluate_all("all => all.map((e) => e.getBoundingClientRect().top)")
    assert len(set(before)) == 1
    page.set_viewport_size({"width": 390, "height": 844})
    expect(page.locator(".rb-panels")).to_be_visible()
    after = page.locator(".rb-word").evaluate_all("all => all.map((e) => e.getBoundingClientRect().top)")
    assert after == sorted(set(after))  # each word has a line of its own


def test_canvases_are_sharp(opened):
    page = opened([Sweep()], device_scale_factor=2)
    size = page.evaluate("(({ width, style }) => [width, parseFloat(style.width)])(document.querySelector('canvas'))")
    assert size[0] == pytest.approx(2 * size[1], abs=1)


def test_motion_only_for_those_who_want_it(opened):
    moving = "document.getAnimations().length"
    still = opened([Shuffle()])
    still.get_by_role("button", name="Shuffle", exact=True).click()
    settle(still)
    assert still.evaluate(moving) == 0
    lively = opened([Shuffle()], reduced_motion="no-preference")
    pressed = """async (button) => {
      button.click();
      for (let k = 0; k < 3; k += 1) await new Promise(requestAnimationFrame);
      return document.getAnimations().length;
    }"""
    assert lively.get_by_role("button", name="Shuffle", exact=True).evaluate(pressed) > 10


def test_print_and_pages_without_javascript_show_the_still(opened):
    page = opened([Shuffle(), Saturation()])
    page.emulate_media(media="print")
    for which in range(2):
        expect(page.locator(".explorer-still").nth(which)).to_be_visible()
        expect(page.locator(".explorer-live").nth(which)).to_be_hidden()
    dead = opened([Shuffle(), Saturation()], java_script_enabled=False)
    for which in range(2):
        expect(dead.locator(".explorer-still svg").nth(which)).to_be_visible()
    expect(dead.locator(".explorer-live")).to_have_count(0)


def test_a_figure_that_is_drawn_before_it_comes_into_the_page(opened):
    """JupyterLab draws the figures of cells that aren't visible yet."""
    page = opened([Timelapse()])
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    settle(page)
    page.evaluate(
        """async () => {
          const { state, parts } = JSON.parse(document.querySelector("script[type$='widget-state+json']").textContent);
          const { _esm, ...values } = Object.values(state).map((one) => one.state).find((one) => one._esm);
          const source = _esm.parts.map((name) => parts[name]).join("\\n");
          const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
          const { default: script } = await import(address);
          const el = document.createElement("div");
          const model = { get: (name) => values[name], set() {}, on() {}, off() {}, save_changes() {} };
          script.render({ model, el });
          document.querySelector(".explorer-live").after(el);
        }"""
    )
    expect(page.locator(".rb-summary")).to_have_count(2)
    settle(page)
    looks = page.locator(".rb-stage canvas").evaluate_all("all => all.map((c) => [c.width, c.height, c.toDataURL()])")
    assert looks[0] == looks[1]


# ---- Failures ----


def spoil_script(text):
    def spoil(state):
        for model in state["state"].values():
            if "_esm" in model["state"]:
                model["state"]["_esm"] = text

    return spoil


@pytest.mark.parametrize(
    "spoil, reason",
    [
        (spoil_script("export default { render() { throw new Error('no luck'); } }"), "no luck"),
        (spoil_script("this is no JavaScript"), "Unexpected"),
        (spoil_script({"parts": ["kit/text.js", "absent.js"]}), "the page lacks absent.js"),
        (lambda state: state["state"].clear(), "the page lacks its state"),
        (lambda state: state.pop("state"), "Cannot convert undefined"),
    ],
    ids=["throws", "syntax", "part", "model", "state"],
)
def test_a_figure_that_fails_stays_still_and_says_why(opened, spoil, reason):
    page = opened([Saturation()], spoil=spoil)
    note = page.get_by_role("status")
    expect(note).to_contain_text("This figure is not interactive: its script did not start")
    expect(note).to_contain_text(reason)
    expect(page.locator(".explorer-still")).to_be_visible()
    expect(page.locator(".explorer-live")).to_have_count(0)


def test_one_failure_leaves_the_others_alone(opened):
    figures = [Shuffle(), Saturation()]

    def spoil(state):
        state["state"][figures[0].model_id]["state"]["_esm"] = "export default {}"

    page = opened(figures, spoil=spoil)
    expect(page.locator(".explorer-failed")).to_have_count(1)
    expect(page.locator(".explorer-alive")).to_have_count(1)
    expect(page.locator(".rb-title")).to_have_text("Why attention divides by √d")


PROBE = """
export default { render({ model, el, page }) {
  const heard = [];
  const listen = (value) => heard.push([model.get("dim"), value === model]);
  model.on("change:dim", listen);
  model.on("change", () => heard.push("any"));
  model.set("dim", 64); // as it was: nobody hears
  model.set("dim", 65);
  model.off("change:dim", listen);
  model.set("dim", 66);
  model.off("change");
  model.set("dim", 67);
  model.save_changes();
  model.send({});
  el.textContent = JSON.stringify([heard, model.get("dim"), page.key]);
} };
"""


def test_the_model_speaks_like_a_notebooks(opened):
    page = opened([Saturation(), Saturation()], spoil=spoil_script(PROBE))
    expect(page.locator(".explorer-live").nth(1)).to_have_text(
        '[[[65,true],"any","any"],67,"saturation-2"]', use_inner_text=True
    )


def test_two_views_of_one_model_show_the_same(opened):
    figure = Saturation()
    page = opened([figure, figure])
    page.get_by_role("textbox", name="Dimension d").first.fill("9")
    page.get_by_role("textbox", name="Dimension d").first.press("Enter")
    expect(page.get_by_role("textbox", name="Dimension d").nth(1)).to_have_value("9")
    expect(page.locator(".rb-summary").nth(1)).to_contain_text("d = 9")


def test_a_view_that_is_closed_stops_listening(opened):
    def keep_the_cleanup(state):
        last = "saturation.js"
        state["parts"][last] = state["parts"][last].replace("export default explorer(", "const figure = explorer(") + (
            "export default { async render(context) { window.model = context.model;"
            " window.stopFigure = await figure.render(context); } };"
        )

    page = opened([Saturation()], spoil=keep_the_cleanup)
    page.wait_for_function("!!window.stopFigure")
    summary = page.locator(".rb-summary")
    page.evaluate("window.model.set('dim', 5)")
    expect(summary).to_contain_text("d = 5 and")
    page.evaluate("() => { window.stopFigure(); window.model.set('dim', 6); }")
    expect(summary).to_contain_text("d = 5 and")
    page.get_by_role("slider", name="Dimension d").press("ArrowRight")
    assert page.evaluate("window.model.get('dim')") == 6
    assert hash_of(page) in ("", "#saturation.dim=5")  # on a busy machine the address may already contain d = 5


# ---- Amount of work ----


@pytest.mark.timing
def test_work_per_key_is_small(opened):
    """Check the work per key press for 512 entries and 4096 tokens. The target is 8 ms, and the test fails above 50 ms.

    Other processes may slow the test down. We therefore take the best of five rounds, or the first round that meets the
    target.
    """
    longest = Timelapse(room=4096, length=4000, trained_length=512, factor=2.0, dim=512)
    page = opened([Ladder(dim=512, **dict.fromkeys(METHODS, True)), Ramp(dim=512), longest])
    for which, name in enumerate(["Base b, slider", "Base b, slider", "Length T, slider"]):
        slider = page.get_by_role("slider", name=name).nth(which if which < 2 else 0)
        best = math.inf
        for _ in range(5):
            page.evaluate("n => { document.querySelectorAll('.explorer-live')[n].ropebook.work.length = 0; }", which)
            for key in ["ArrowLeft", "ArrowRight"] * 10:
                slider.press(key)
            work = page.evaluate("n => document.querySelectorAll('.explorer-live')[n].ropebook.work", which)
            assert len(work) == 20
            best = min(best, sorted(work)[18])
            if best < 50:
                break
        print(f"95th percentile: {best:.1f} ms")
        assert best < 50


@pytest.mark.timing
def test_work_per_event_is_small(opened):
    """Check how long the script and the drawing take, from the event until the picture is finished. The target is 8 ms
    (`make bench` records the time), and the test fails above 50 ms."""
    long = Shuffle(words="rotary position embeddings are surprisingly simple once understood")
    page = opened([long, Saturation(n_keys=32)], reduced_motion="no-preference")
    turn = """async (which) => {
      const el = document.querySelectorAll('.explorer-live')[which];
      el.ropebook.work.length = 0;
      const sliders = el.querySelectorAll('input[type=range]');
      for (let k = 0; k < 200; k += 1) {
        if (sliders.length) {
          const slider = sliders[k % sliders.length];
          slider.value = (k * 377) % 1001;
          slider.dispatchEvent(new Event('input', { bubbles: true }));
        } else {
          const key = k % 2 ? 'ArrowLeft' : 'ArrowRight';
          el.querySelectorAll('.rb-word')[k % 8].dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true }));
        }
        await new Promise(requestAnimationFrame);
      }
      return el.ropebook.work;
    }"""
    for which in range(2):
        work = sorted(page.evaluate(turn, which))
        assert len(work) == 200
        assert 0 < work[189] <= 50
