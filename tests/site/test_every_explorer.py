"""Browser tests that apply to every explorer."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import pytest
from playwright.sync_api import expect

from ropebook.explorers import Choice, Even, Numbers, Real, Switch, Text, Whole
from tests.explorers.oracles import expected_of
from tests.explorers.registry import every
from tests.site.figures import data, dials, enter, hash_of, settle
from tests.site.test_takeaway import SVG, saved, stage_size
from tests.site.work import slowest_event
from tests.together import check
from tools import assets

SIZES = {1280: "a screen", 880: "a notebook's cell", 390: "a phone", 340: "a small phone"}


def own(page, entry):
    """Return the dials' current values, without the data that comes with them."""
    return {name: value for name, value in dials(page).items() if name in entry.kind.dial_traits()}


def traits(figure):
    return {name: getattr(figure, name) for name in figure.dial_traits()}


@every
def test_it_does_what_all_explorers_do(opened, entry):
    """The page is opened from disk here; the other tests open it over HTTP."""
    page = opened([entry.kind()], over="file", folded=True)
    checks = [
        three_dials_at_most_stand_in_sight,  # and it opens the fold
        it_comes_alive_with_its_alternative_text,
        the_svg_stands_alone,
        axe_finds_nothing,
        the_picture_follows_the_theme,
        a_bad_number_is_refused_with_its_reason,
        dials_turn_by_keys,
        it_prints_its_still,
    ]
    check(checks, page, entry, entry.kind())


def it_comes_alive_with_its_alternative_text(page, entry, figure):
    expect(page.locator(".explorer-alive .rb")).to_have_count(1)
    expect(page.locator(".explorer-still")).to_be_hidden()
    assert page.get_by_role("img").first.get_attribute("aria-label") == figure.alt
    assert own(page, entry) == traits(figure)
    assert list(data(page)) == list(expected_of(figure))


def it_prints_its_still(page, entry, figure):
    page.emulate_media(media="print")
    expect(page.locator(".explorer-still svg[role=img]")).to_be_visible()
    expect(page.locator(".explorer-live")).to_be_hidden()


# The schemes come first in the Rivals figure, because only some of them have a base and a dimension. In the others, the
# steps ask for three dials that are neither.
FOLDED = {"Rivals", "Pairing", "Precision"}


def three_dials_at_most_stand_in_sight(page, entry, figure):
    seen = page.locator(".rb-dial:visible")
    assert 1 <= seen.count() <= 3
    said = " ".join(seen.all_inner_texts())
    for name in {"base", "dim"} & set(entry.kind.dial_traits()) if entry.kind.__name__ not in FOLDED else ():
        assert entry.kind.dial_traits()[name].declared()["label"] in said
    more = page.locator(".rb-more")
    if seen.count() == len(entry.kind.dial_traits()):
        expect(more).to_be_hidden()
    else:
        more.locator("summary").click()
        expect(page.locator(".rb-dial:visible")).to_have_count(len(entry.kind.dial_traits()))


def the_svg_stands_alone(page, entry, figure):
    text = saved(page, "SVG").read_text(encoding="utf-8")
    root = ElementTree.fromstring(text)
    assert root.tag == f"{SVG}svg"
    assert (int(root.get("width")), int(root.get("height"))) == stage_size(page)
    assert root.find(f"{SVG}title").text == page.locator(".rb-title").inner_text()
    written = re.sub(r'"data:image/png;base64,[^"]+"', "", text)
    for foreign in ("var(", " class=", "<foreignObject", "blob:", "undefined", "NaN"):
        assert foreign not in written
    assert "http" not in written.replace("http://www.w3.org/", "")
    seen = page.locator(".rb-stage svg text").evaluate_all(
        "all => all.filter((t) => t.checkVisibility({ checkVisibilityCSS: true }) && t.getBoundingClientRect().width)"
        ".map((t) => t.textContent)"
    )
    assert sorted(filter(str.strip, seen)) == sorted(
        "".join(node.itertext())
        for group in root.findall(f"{SVG}svg")
        for node in group.iter(f"{SVG}text")
        if "".join(node.itertext()).strip() and "visibility:hidden" not in node.get("style", "")
    )


def axe_finds_nothing(page, entry, figure):
    page.add_script_tag(content=assets.axe())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'], preload: false })")
    assert [(one["id"], [node["html"][:160] for node in one["nodes"]]) for one in found["violations"]] == []


@every
def test_nothing_is_cut_off_overlaps_or_moves_what_is_below(opened, entry):
    figures = [entry.kind(**setting) for setting in [{}, *entry.extremes]]
    page = opened(figures)
    for width in SIZES:
        page.set_viewport_size({"width": width, "height": 844})
        settle(page)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        edges = page.locator(".rb-stage").evaluate_all(
            """all => all.flatMap((stage) => [...stage.querySelectorAll('text')].filter((t) => t.textContent
                && t.checkVisibility() && t.getBoundingClientRect().width).map((t) => {
              const [a, b] = [t.getBoundingClientRect(), stage.getBoundingClientRect()];
              return [b.left - a.left, a.right - b.right, t.textContent];
            }))"""
        )
        assert [found for found in edges if max(found[:2]) > entry.over_the_edge] == []
        overlaps = page.locator(".rb-stage").evaluate_all(
            """all => all.flatMap((stage, which) => {
              const texts = [...stage.querySelectorAll('text')].filter((t) => t.textContent
                && t.checkVisibility({ checkVisibilityCSS: true }));
              const boxes = texts.map((t) => t.getBoundingClientRect());
              const found = [];
              boxes.forEach((a, i) => boxes.slice(i + 1).forEach((b, j) => {
                const across = Math.min(a.right, b.right) - Math.max(a.left, b.left);
                const down = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
                if (across > 1 && down > 5) found.push([which, texts[i].textContent, texts[i + 1 + j].textContent]);
              }));
              return found;
            })"""
        )
        assert entry.texts_touch or overlaps == []
        heights = page.locator(".rb-stage").evaluate_all("all => all.map((stage) => stage.clientHeight)")
        assert entry.grows or len(set(heights)) == 1


def other_value(name, trait, figure):
    """Return a value of the dial that differs from its current one, and that value as readers type it."""
    now = getattr(figure, name)
    if isinstance(trait, Switch):
        return not now, "off" if now else "on"
    if isinstance(trait, Choice):
        value = next(value for value in trait.values if value != now)
        return value, value
    if isinstance(trait, (Text, Numbers)):
        return None, None
    step = 2 if isinstance(trait, Even) else 1 if isinstance(trait, Whole) else trait.min / 8 or 0.125
    value = now - step if now - step >= trait.min else now + step
    return value, f"{value:.12g}"


@every
def test_a_link_sets_every_dial_and_the_dials_write_the_link(opened, entry):
    figure = entry.kind()
    wanted = {name: other_value(name, trait, figure) for name, trait in entry.kind.dial_traits().items()}
    wanted = {name: found for name, found in wanted.items() if found[0] is not None}
    entries = [f"{entry.kind.__name__.lower()}.{name}={text}" for name, (_, text) in wanted.items()]
    page = opened([figure], fragment="#" + "&".join(entries))
    expect(page.get_by_role("status").first).to_be_empty()
    expected = {**traits(figure), **{name: value for name, (value, _) in wanted.items()}}
    assert own(page, entry) == expected
    assert sorted(hash_of(page)[1:].split("&")) == sorted(entries)
    while page.locator(".rb-reset[aria-disabled=false]").count():
        page.locator(".rb-reset[aria-disabled=false]").first.click()
    assert hash_of(page) == ""
    assert own(page, entry) == traits(figure)


def a_bad_number_is_refused_with_its_reason(page, entry, figure):
    for name, trait in entry.kind.dial_traits().items():
        if not isinstance(trait, (Whole, Real)):
            continue
        told, now = trait.declared(), page.evaluate("n => String(n)", getattr(figure, name))
        most, above = trait.max, told["above"]
        if trait.within:
            other, value = entry.kind.dial_traits()[trait.within.dial], getattr(figure, trait.within.dial)
            most, above = trait.within.most(value), f"{other.declared()['label']} is {value:,}"
        for typed, why in [
            (f"{trait.max + 2:.12g}", f"is more than {most:,.12g} ({above})"),
            (f"{trait.min - 2:.12g}", f"is less than {trait.min:,.12g} ({told['below']})".replace("than -", "than −")),
            ("many", "“many” is not a number"),
        ]:
            field = page.get_by_role("textbox", name=told["label"], exact=True)
            field.fill(typed)
            field.press("Enter")
            expect(page.get_by_role("status").first).to_contain_text(f"{told['label']}: ")
            expect(page.get_by_role("status").first).to_contain_text(f"{why}. Still {now}.")
    assert own(page, entry) == traits(figure)


def dials_turn_by_keys(page, entry, figure):
    for name, trait in entry.kind.dial_traits().items():
        if isinstance(trait, Whole):
            slider = page.get_by_role("slider", name=f"{trait.declared()['label']}, slider", exact=True)
            values, at = own(page, entry), float(slider.input_value())
            now, most = values[name], trait.max
            if trait.within:
                most = min(most, trait.within.most(values[trait.within.dial]))
            key, sign = ("ArrowRight", 1) if now < most else ("ArrowLeft", -1)
            slider.press(key)
            then, moved = own(page, entry)[name], sign * (float(slider.input_value()) - at)
            many = (trait.max - trait.min) / trait.step >= 10_000
            if trait.declared()["log"] or many:  # by one step or, if that is more, by about a hundredth of the slider
                assert sign * (then - now) >= trait.step, name
                assert moved > 5 or then in (trait.min, most), name
            else:
                assert then == now + sign * trait.step, name
            expect(slider).to_have_attribute("aria-valuetext", str(then))
            field = page.get_by_role("textbox", name=trait.declared()["label"], exact=True)
            field.press("ArrowDown" if sign > 0 else "ArrowUp")
            assert own(page, entry)[name] == then - sign * trait.step, name
            enter(page, trait.declared()["label"], now)
        elif isinstance(trait, Switch):
            page.get_by_role("switch", name=trait.declared()["label"], exact=True).focus()
            page.keyboard.press("Space")
            assert own(page, entry)[name] is not getattr(figure, name), name


def the_picture_follows_the_theme(page, entry, figure):
    looks = """[...document.querySelectorAll('.rb-stage canvas')].map((c) => c.toDataURL()).concat(
      [...document.querySelectorAll('.rb-stage svg :is(path, circle, text, rect)')].map((e) => {
        const { stroke, fill } = getComputedStyle(e);
        return `${stroke} ${fill}`;
      }))"""
    light = page.evaluate(looks)
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
    page.wait_for_function(f"(light) => {looks}.join() !== light.join()", arg=light)
    settle(page)
    dark = page.evaluate(looks)
    marked = [(a, b) for a, b in zip(light, dark, strict=True) if "31, 35, 40" in a or a.startswith("data:")]
    assert marked
    assert all(a != b for a, b in marked)
    page.evaluate("document.documentElement.dataset.theme = 'light'")
    settle(page)


@pytest.mark.timing
@every
def test_work_per_event_is_small(opened, entry):
    """Check the work per event at the heaviest settings. The target is 8 ms (`make bench` records it), and the test
    fails above 50 ms."""
    page = opened([entry.kind(**entry.heaviest)])
    if page.locator("input[type=range]").count():
        assert 0 < slowest_event(page, 0, alarm=50) <= 50
    else:
        assert entry.name == "shuffle"  # its work has a separate test


def test_enter_is_what_a_hand_does(opened):
    """Check that the helper used by other tests sets a dial exactly as typing does."""
    from ropebook.explorers.turn import Turn

    page = opened([Turn()])
    enter(page, "Position m", 7)
    assert dials(page)["position"] == 7
