"""Tests specific to the Arrows explorer."""

from __future__ import annotations

from ropebook.explorers.arrows import Arrows
from tests.explorers import js


def test_the_two_tokens_in_words():
    dials = Arrows().dials()
    cases = [{**dials, "m": m, "n": n} for m, n in ((10, 5), (4, 5), (5, 5))]
    after, before, same = js.describe(Arrows, cases)
    assert after == "“it” is 5 tokens after “cat”. The angle between the arrows is 55.1°, and the score is 0.59."
    assert before.startswith("“it” is 1 token before “cat”. ")
    assert same.startswith("“it” is at the same position as “cat”. ")
