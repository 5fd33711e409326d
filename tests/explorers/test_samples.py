"""Test that random settings of dials of every type include both limits and everything in between."""

from __future__ import annotations

import random

import pytest
import traitlets

from ropebook.explorers import Choice, Even, Explorer, Real, Switch, Text, Whole
from tests.explorers import js

WHY = {"below": "reasons why not", "above": "reasons why not", "label": "Dial", "note": "What it does."}
SAYS = {"label": "Dial", "note": "What it does."}


class Probe(Explorer):
    """An explorer with one dial of every type, but without a figure."""

    whole = Whole(0, min=-3, max=9, **WHY)
    even = Even(2, min=2, max=512, **WHY)
    real = Real(0.5, min=0.0, max=1.0, **WHY)
    base = Real(1e4, min=1.0, max=1e7, **WHY)
    on = Switch(True, **SAYS)
    pairing = Choice(["interleaved", "half"], "half", **SAYS)
    alt = traitlets.Unicode("A figure that holds nothing at all.").tag(sync=True)


def test_samples_reach_both_ends_and_everything_between():
    source = random.Random(3)
    drawn = [js.sample_dials(Probe, source, even=64) for _ in range(300)]
    for name, ends in {"whole": (-3, 9), "even": (2, 64), "real": (0, 1), "base": (1, 1e7)}.items():
        values = [dials[name] for dials in drawn]
        assert (min(values), max(values)) == ends
        assert len(set(values)) >= 13
    # the values are uniformly distributed on a logarithmic scale
    assert 60 < sum(dials["base"] < 1e3 for dials in drawn) < 220
    assert {(dials["on"], dials["pairing"]) for dials in drawn} == {
        (on, layout) for on in (True, False) for layout in ("interleaved", "half")
    }
    with pytest.raises(TypeError, match="no random values are known for the dial sentence"):
        js.sample_dials(type("Odd", (Probe,), {"sentence": Text("", **SAYS)}), source)


def test_a_choice_begins_with_its_default_or_its_first_text():
    assert Probe().pairing == "half"
    assert type("First", (Probe,), {"pairing": Choice(["a", "b"], **SAYS)})().pairing == "a"


@pytest.mark.parametrize("missing", ["label", "note", "below", "above"])
def test_a_dial_without_its_words_is_an_error(missing):
    with pytest.raises(TypeError, match=f"missing 1 required keyword-only argument: '{missing}'"):
        Whole(0, min=0, max=9, **{name: text for name, text in WHY.items() if name != missing})
