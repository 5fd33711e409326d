"""Test that the rule for the published model reaches the right verdict on synthetic numbers, and that the texts for the
final verdict aren't opened early."""

from __future__ import annotations

import math
import re

import pytest

from ropebook import results
from ropebook.real import published, rule, texts
from ropebook.real.rule import BEYOND, HELD_OUT, WITHIN, Claim, Comparison, judge
from tests.together import together

STRETCHES = 48
CODE = ("tarfile", "datetime")


def numbers(**by_change):
    """Return made-up losses for each change. ``by_change`` gives two functions per change, for losses within and beyond
    the trained length. Their argument is the text's index in `HELD_OUT`."""
    found = {}
    for place, text in enumerate(HELD_OUT):
        found[text.name] = {}
        for change, (within, beyond) in by_change.items():
            stretch = rule.LENGTH // STRETCHES
            starts = [i * stretch for i in range(STRETCHES)]
            found[text.name][change] = [beyond(place) if start >= BEYOND[0] else within(place) for start in starts]
    return found


def claim(expected, band=BEYOND):
    return [Claim("it", "It is so.", "a test", (Comparison("a", "b", band, expected),))]


def noise(place):
    return 0.01 * math.sin(5 * place)


LOW = (lambda p: 1 + p, lambda p: 2 + p + noise(p))
HIGH = (lambda p: 1 + p + noise(p), lambda p: 3 + p)


@together(
    ("a", "b", "expected", "band", "outcome"),
    [
        (LOW, HIGH, "lower", BEYOND, "holds"),
        (LOW, HIGH, "higher", BEYOND, "fails"),
        (LOW, HIGH, "same", BEYOND, "fails"),
        (HIGH, LOW, "higher", BEYOND, "holds"),
        (HIGH, LOW, "not higher", BEYOND, "fails"),
        (LOW, HIGH, "lower", WITHIN, "no difference"),
        (LOW, HIGH, "same", WITHIN, "holds"),
        (LOW, HIGH, "not higher", WITHIN, "holds"),
        (LOW, (LOW[0], lambda p: 2 + p + math.sin(5 * p)), "lower", BEYOND, "undecided"),
    ],
)
def test_a_difference_is_judged_as_the_rule_says(a, b, expected, band, outcome):
    (found,) = judge(claim(expected, band), numbers(a=a, b=b))["it"]
    assert found.outcome == outcome
    assert found.interval.freedom == 7
    assert set(found.kinds) == {text.kind for text in HELD_OUT}
    assert sum(found.kinds.values()) / 4 == pytest.approx(found.interval.mean)
    of_code = [rule.band_mean(numbers(a=a, b=b)[name][change], band) for change in "ab" for name in CODE]
    assert found.kinds["source code in Python"] == pytest.approx((sum(of_code[:2]) - sum(of_code[2:])) / 2)


def test_a_difference_is_that_of_the_band_alone():
    (found,) = judge(claim("lower"), numbers(a=LOW, b=HIGH))["it"]
    mean = sum(noise(place) for place in range(8)) / 8
    assert found.interval.mean == pytest.approx(-1 + mean)
    stretches = [float(i) for i in range(12)]
    assert rule.band_mean(stretches, WITHIN) == pytest.approx((4 + 5 + 6 + 7) / 4)
    assert rule.band_mean(stretches, BEYOND) == pytest.approx((9 + 10 + 11) / 3)


def test_the_correction_is_over_all_comparisons():
    """A difference that is just large enough to pass by itself must not pass among many comparisons that show no
    difference."""
    weak = (LOW[0], lambda p: 2 + p + 0.2 * math.sin(5 * p) + 0.19)
    changes = {"a": weak, "b": (LOW[0], lambda p: 2 + p)}
    for i in range(20):
        changes[f"c{i}"] = (LOW[0], lambda p, i=i: 2 + p + 0.2 * math.sin(7 * p + i))
    many = [Claim("all", "", "", tuple(Comparison(f"c{i}", "b", BEYOND, "lower") for i in range(20)))]
    assert judge(claim("higher"), numbers(**changes))["it"][0].outcome == "holds"
    assert judge(claim("higher") + many, numbers(**changes))["it"][0].outcome == "undecided"


@together(
    ("call", "sentence"),
    [
        (lambda: judge(claim("lower"), numbers(a=LOW)), "numbers must have the change 'b' of the text 'tarfile'"),
        (lambda: judge(claim("lower"), {}), "numbers must have the change 'a' of the text 'tarfile', which is missing"),
        (lambda: rule.band_mean([1.0] * 5, WITHIN), "must end where the band (4096, 8192) does, got 5 of them"),
        (lambda: rule.band_mean([1.0] * 3, BEYOND), "must end where the band (9216, 12288) does, got 3 of them"),
        (lambda: Comparison("a", "b", (0, 1), "lower"), "band must be one of (4096, 8192), (9216, 12288)"),
        (lambda: Comparison("a", "b", WITHIN, "better"), "expected must be one of 'lower', 'higher', 'same', "),
        (lambda: rule.held_out("novel"), "name must be one of 'tarfile', "),
        (lambda: rule.of_texts([1.0]), "values must be of two files at least"),
    ],
)
def test_what_cannot_be_judged_is_named(call, sentence):
    with pytest.raises(ValueError, match=re.escape(sentence)):
        call()


def test_no_text_that_decides_is_given_away_before_the_rule_is_final(monkeypatch):
    monkeypatch.setattr(rule, "OPENED", None)
    for text in HELD_OUT:
        with pytest.raises(ValueError, match="must stay closed as long as"):
            rule.held_out(text.name)
    monkeypatch.setattr(rule, "OPENED", "2026-12-01")
    assert rule.held_out("play") is next(text for text in HELD_OUT if text.name == "play")
    for name in rule.CLOSED:
        with pytest.raises(ValueError, match="name must be one of"):
            rule.held_out(name)


def test_texts_that_decide_are_others_than_those_explored_and_two_of_each_kind():
    names = [text.name for text in HELD_OUT]
    assert len({*names, *rule.CLOSED}) == len(names) + len(rule.CLOSED) == 12
    assert not {*names, *rule.CLOSED} & {text.name for text in texts.EXPLORATION}
    explored = {text.source for text in texts.EXPLORATION}
    assert not {*(text.source for text in HELD_OUT), *rule.CLOSED.values()} & explored
    kinds = [text.kind for text in HELD_OUT]
    assert {kind: kinds.count(kind) for kind in kinds} == dict.fromkeys(kinds, 2)
    assert all(text.license and text.source for text in HELD_OUT)


def test_rows_are_those_that_the_claims_need_text_by_text_and_kinds_alternate():
    needed = {change for claim in rule.CLAIMS for one in claim.comparisons for change in (one.a, one.b)}
    assert set(rule.CHANGES) == needed
    assert len(set(rule.ROWS)) == len(rule.ROWS) == 40
    for at, text in enumerate(HELD_OUT):
        assert rule.ROWS[5 * at : 5 * at + 5] == tuple((text.name, change) for change in rule.CHANGES)
    kinds = [text.kind for text in HELD_OUT]
    assert len(set(kinds[:4])) == 4
    assert kinds[:4] == kinds[4:]
    assert len({rule.row(*one) for one in rule.ROWS}) == 40


def test_the_mean_scores_from_which_one_change_is_made_are_those_the_rule_names():
    assert published.sha256(results.find("bias")) == rule.BIAS_SHA256


def test_a_result_can_name_the_rule_it_was_judged_by():
    assert re.fullmatch("[0-9a-f]{64}", rule.digest())
    assert rule.DATE == "2026-11-25"
    assert rule.OPENED is None or rule.OPENED >= rule.DATE
