"""Browser tests specific to the Shuffle explorer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from ropebook.explorers.shuffle import Shuffle
from tests.explorers.oracles import expected_of
from tests.site.figures import dials, words


def test_the_figure_shows_what_python_computes(opened):
    figure = Shuffle(words="dog bites man", order=[2, 0, 1], position=True, causal=True)
    expected = expected_of(figure)
    page = opened([figure])
    cells = page.locator(".rb-cell > text")
    texts = [cell.text_content() for cell in cells.all()]
    shown = [
        f"{weight:.2f}" if c <= r else "–" for r, row in enumerate(expected["weights"]) for c, weight in enumerate(row)
    ]
    assert sorted(texts) == sorted(shown)
    assert words(page) == ["man", "dog", "bites"]
    stats = page.locator(".rb-stats dd").all_inner_texts()
    assert [float(text) for text in stats] == pytest.approx([expected["change"], expected["weightChange"]], rel=0.01)
    expect(page.locator(".rb-summary")).to_contain_text("“man dog bites”. The outputs did more than move")
    # each cell is in the row of its query and the column of its key
    places = page.locator(".rb-cell").evaluate_all(
        "all => all.map((g) => [...g.style.transform.matchAll(/-?[\\d.]+px/g)].map((m) => parseFloat(m[0])))"
    )
    by_place = dict(zip(map(tuple, places), texts, strict=True))
    assert [by_place[place] for place in sorted(by_place, key=lambda place: (place[1], place[0]))] == shown


def test_dragging_moves_a_word_and_its_output(opened):
    page = opened([Shuffle(order=[0, 1, 2, 3, 4])])
    first, last = page.locator(".rb-word").first.bounding_box(), page.locator(".rb-word").last.bounding_box()
    y = first["y"] + first["height"] / 2
    page.mouse.move(first["x"] + 20, y)
    page.mouse.down()
    page.mouse.move(last["x"] + last["width"], y, steps=12)
    expect(page.locator(".rb-held")).to_have_text(re.compile("^the"))
    page.mouse.up()
    assert words(page) == ["dog", "bit", "the", "man", "the"]
    assert dials(page)["order"] == [1, 2, 3, 4, 0]
    expect(page.locator(".rb-held")).to_have_count(0)
    expect(page.locator(".rb-stats dd").first).to_have_text(re.compile(r"× 10⁻¹[⁶⁷]"))
    expect(page.locator(".rb-summary")).to_contain_text("Every output moved with its word, and nothing else changed")
    page.mouse.move(first["x"], y)  # no mouse button is pressed, so nothing moves any more
    assert dials(page)["order"] == [1, 2, 3, 4, 0]


def test_dragging_by_touch_over_several_lines(opened):
    figure = Shuffle(words="rotary position embeddings are surprisingly simple once understood")
    page = opened([figure], viewport={"width": 390, "height": 844}, has_touch=True)
    chips = page.locator(".rb-word")
    chips.first.scroll_into_view_if_needed()
    start, end = chips.nth(0).bounding_box(), chips.nth(5).bounding_box()
    assert end["y"] > start["y"] + start["height"]
    session = page.context.new_cdp_session(page)

    def touch(kind: str, *points: dict) -> None:
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": list(points)})

    touch("touchStart", {"x": start["x"] + 15, "y": start["y"] + 15})
    for share in (0.2, 0.5, 0.8, 1.0):
        x = start["x"] + 15 + share * (end["x"] + 10 - start["x"])
        touch("touchMove", {"x": x, "y": start["y"] + 15 + share * (end["y"] - start["y"])})
    touch("touchEnd")
    order = dials(page)["order"]
    assert order.index(0) in (4, 5, 6)
    assert [place for place in order if place] == list(range(1, 8))


def test_keys_move_the_word_that_has_the_focus(opened):
    page = opened([Shuffle(order=[0, 1, 2, 3, 4])])
    page.locator(".rb-word").nth(1).focus()
    for key, order in [
        ("ArrowRight", [0, 2, 1, 3, 4]),
        ("ArrowRight", [0, 2, 3, 1, 4]),
        ("ArrowLeft", [0, 2, 1, 3, 4]),
        ("End", [0, 2, 3, 4, 1]),
        ("ArrowRight", [0, 2, 3, 4, 1]),
        ("Home", [1, 0, 2, 3, 4]),
        ("ArrowLeft", [1, 0, 2, 3, 4]),
    ]:
        page.keyboard.press(key)
        assert dials(page)["order"] == order
        expect(page.locator(":focus")).to_have_text(re.compile("^dog"))
    page.keyboard.press("a")
    assert dials(page)["order"] == [1, 0, 2, 3, 4]


def test_buttons_move_the_picked_word(opened):
    page = opened([Shuffle(order=[0, 1, 2, 3, 4])])
    left, right = (page.get_by_role("button", name=f"Move the picked word {side}") for side in ("left", "right"))
    shuffle_, home = (page.get_by_role("button", name=name, exact=True) for name in ("Shuffle", "As typed"))
    page.locator(".rb-word").nth(3).click()
    expect(page.locator(".rb-word[aria-pressed=true]")).to_have_text(re.compile("^the.*3$"))
    right.click()
    assert dials(page)["order"] == [0, 1, 2, 4, 3]
    expect(right).to_have_attribute("aria-disabled", "true")
    left.click()
    left.click()
    assert dials(page)["order"] == [0, 1, 3, 2, 4]
    expect(right).to_have_attribute("aria-disabled", "false")
    seen = set()
    for _ in range(6):
        before = dials(page)["order"]
        shuffle_.click()
        after = dials(page)["order"]
        assert after != before
        assert sorted(after) == [0, 1, 2, 3, 4]
        seen.add(tuple(after))
    assert len(seen) > 3
    home.click()
    assert dials(page)["order"] == [0, 1, 2, 3, 4]
    expect(home).to_have_attribute("aria-disabled", "true")
    expect(page.locator(".rb-summary")).to_contain_text("The words are in the order you typed")


def test_words_are_taken_as_they_are_typed(opened):
    page = opened([Shuffle(order=[1, 0, 2, 3, 4])])
    field, says = page.get_by_role("textbox", name="Sentence"), page.get_by_role("status")
    field.fill("one word more here too")
    assert dials(page)["order"] == [1, 0, 2, 3, 4]
    field.fill("  two   words ")
    assert dials(page) == {"words": "two words", "order": [0, 1], "position": False, "causal": False}
    expect(field).to_have_value("  two   words ")  # the text cursor is still in the field
    expect(page.locator(".rb-cell")).to_have_count(4)
    field.fill("1 2 3 4 5 6 7 8 9")
    expect(says).to_have_text("Sentence: 9 words are more than 8. Still two words.")
    expect(field).to_have_attribute("aria-invalid", "true")
    assert dials(page)["words"] == "two words"
    field.blur()
    expect(field).to_have_value("two words")
    expect(field).to_have_attribute("aria-invalid", "false")
    page.get_by_role("textbox", name="Order").fill("1 0")
    expect(says).to_be_empty()
    assert words(page) == ["words", "two"]
    page.get_by_role("switch", name="Causal mask").check()
    expect(page.locator(".rb-summary")).to_contain_text("Some words now see other words before them.")
    page.get_by_role("switch", name="Position signal").check()
    expect(page.locator(".rb-summary")).to_contain_text(
        "Each word carries the signal of its new place, and some words now see other words before them."
    )


@pytest.mark.parametrize("sentence", ["a", "a b", "abcdefghijkl " * 8])
def test_titles_and_columns_keep_apart_and_numbers_within_the_figure(opened, sentence):
    count = len(sentence.split())
    room = ".rb .rb-height.rb-height { height: 400px }"
    page = opened([Shuffle(words=sentence, order=[*range(count)][::-1])], room=room)
    boxes = page.locator(".rb-stage svg text:visible").evaluate_all(
        "all => all.map((t) => [t, t.getBoundingClientRect()]).map(([t, box]) => [t.textContent, box.left, box.right])"
    )
    [weights] = [right for text, _, right in boxes if text == "Who attends to whom"]
    [outputs] = [left for text, left, _ in boxes if text == "The output of each word"]
    assert outputs - weights > 8
    stage = page.locator(".rb-stage").bounding_box()
    assert max(right for *_, right in boxes) <= stage["x"] + stage["width"]
    # Eight slanted words would lie across one another, so only the rows have words.
    assert sum(len(text) == 13 for text, *_ in boxes) == (8 if count == 8 else 0)
