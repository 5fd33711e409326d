"""Tests specific to the Ladder explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropebook.explorers.ladder import Ladder
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle

METHODS = ("linear", "ntk", "ntk_by_parts", "yarn", "llama3")


ON = dict.fromkeys(METHODS, True)
THREE = dict.fromkeys(("linear", "ntk", "yarn"), True)


def clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def stretched(name: str, dials: dict) -> list[float]:
    """Compute λ′/λ for each pair, one pair at a time."""
    dim, base, length, s = (dials[name] for name in ("dim", "base", "trained_length", "factor"))
    alpha, beta = (1, 4) if name == "llama3" else (dials["alpha"], dials["beta"])
    found = []
    for i, one in enumerate(theta(dim, base)):
        turns = length * one / (2 * math.pi)
        if name == "linear":
            new = one / s
        elif name == "ntk":
            new = (base * s ** (dim / (dim - 2))) ** (-2 * i / dim)
        else:
            kept = clip((turns - alpha) / (beta - alpha))
            if name == "yarn":
                low, high = (dim * math.log(length / (2 * math.pi * r)) / (2 * math.log(base)) for r in (beta, alpha))
                low, high = max(0, math.floor(low)), min(dim - 1, math.ceil(high))
                kept = 1 - clip((i - low) / (high - low))
            new = (1 - kept) * one / s + kept * one
        found.append(one / new)
    return found


@pytest.mark.parametrize(
    "dials",
    [
        {},
        {"dim": 8, "base": 500.0, "trained_length": 100, "factor": 3.5, "alpha": 0.5, "beta": 2.5},
        {"dim": 34, "base": 1e6, "trained_length": 20000, "factor": 64.0, "alpha": 2.0, "beta": 64.0},
        {"dim": 4, "base": 1e7, "trained_length": 16, "factor": 1.0},
    ],
)
def test_the_ladder_shows_what_the_papers_say(dials):
    dials = Ladder(**dials, **ON).dials()
    found, terms = oracle(Ladder).compute(dials), oracle(Ladder).terms(dials)
    length, rungs = dials["trained_length"], theta(dials["dim"], dials["base"])
    target = int(length * dials["factor"])
    assert found["target"] == target
    assert found["shown"] == list(METHODS)
    np.testing.assert_allclose(found["wavelengths"], [2 * math.pi / one for one in rungs], rtol=1e-14)
    slow = [i for i, one in enumerate(rungs) if (length - 1) * one < 2 * math.pi]
    assert found["turned"] == len(rungs) - len(slow)

    def beyond(stretch: list[float]) -> float:
        return max([0.0, *((target - 1) * rungs[i] / stretch[i] - (length - 1) * rungs[i] for i in slow)])

    assert found["beyond"] == pytest.approx(beyond([1.0] * len(rungs)), abs=1e-9)
    for name, stretch, left in zip(METHODS, found["stretch"], found["left"], strict=True):
        np.testing.assert_allclose(stretch, stretched(name, dials), rtol=1e-12)
        assert left == pytest.approx(beyond(stretched(name, dials)), abs=1e-9)
    assert set(terms) == set(found) - {"shown"}
    assert max([found["beyond"], *found["left"]]) <= terms["beyond"]
    assert terms["left"] == [terms["beyond"]] * 5


def test_llama_2_four_times_as_long():
    """Check the chapter's numbers: 18 pairs don't complete a turn, and NTK-aware scaling with the factor s itself
    leaves an overshoot of 2.48 radians."""
    found = oracle(Ladder).compute(Ladder(**THREE).dials())
    assert found["shown"] == ["linear", "ntk", "yarn"]
    assert (len(found["wavelengths"]) - found["turned"], found["target"]) == (18, 16384)
    assert found["beyond"] == pytest.approx(16.386, abs=1e-3)
    assert found["left"] == pytest.approx([0.000763, 2.479, 0.000763], abs=2e-3)


def test_where_every_pair_turns_nothing_is_new():
    found = oracle(Ladder).compute(Ladder(base=500, trained_length=8192, **THREE).dials())
    assert found["turned"] == 64
    assert [found["beyond"], *found["left"]] == [0, 0, 0, 0]
    assert oracle(Ladder).terms(Ladder(base=500, trained_length=8192).dials())["beyond"] == 0


@pytest.mark.parametrize(
    "model, turned, pairs", [("Llama 2", 46, 64), ("Llama 3", 35, 64), ("Qwen2.5", 40, 64), ("GPT-NeoX", 8, 12)]
)
def test_the_models_of_the_ladder(model, turned, pairs):
    """Check how many pairs complete a turn within L. The chapter's notes count them by hand."""
    [(_, base, dim, length)] = [one for one in js.inside(Ladder, "return MODELS;") if one[0] == model]
    found = oracle(Ladder).compute(Ladder(base=base, dim=dim, trained_length=length).dials())
    assert (found["turned"], len(found["wavelengths"])) == (turned, pairs)


def test_the_ladder_in_words():
    cases = [
        Ladder(**THREE).dials(),
        Ladder(llama3=True).dials(),
        Ladder().dials(),
        Ladder(factor=1).dials(),
        Ladder(base=500, trained_length=8192).dials(),
        Ladder(dim=24, trained_length=16384, factor=1.5).dials(),
        Ladder(dim=4).dials(),
    ]
    full, one, none, same, known, single, both = js.describe(Ladder, cases)
    start = "18 of 64 pairs have not completed a turn within L = 4,096. At L′ = "
    now = start + "16,384 the angles go up to 16.4 radians beyond those in training if no method is used"
    assert full == f"{now}, 0.001 radians with position interpolation, 2.48 with NTK-aware and 0.001 with YaRN."
    assert one == f"{now}, and 0.001 radians with Llama 3.1."
    assert none == f"{now}."
    assert same == start + "4,096 no angle is new, because L′ equals L."
    assert known.startswith("All 64 pairs complete a turn within L = 8,192: they have been at every angle")
    assert both.startswith("Both pairs complete a turn within L = 4,096: they have been at every angle")
    assert single.startswith("1 of 12 pairs has not completed a turn")
    angles = [0, 1e-5, 0.0123, 2.4789, 16.38, 400000]
    texts = ["0", "under 0.001", "0.012", "2.48", "16.4", "4.0 × 10⁵"]
    assert js.inside(Ladder, "return input.map(radians);", angles) == texts
