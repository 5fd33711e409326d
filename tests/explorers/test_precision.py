"""Tests specific to the Precision explorer."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
import torch

from ropebook.explorers import precision
from ropebook.explorers.precision import Precision
from ropebook.sinusoidal import encoding_all_in
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import computed, oracle


def test_the_errors_agree_to_the_last_digits_of_float32():
    """The error of a float32 cosine is 3e-8, which is less than the tolerance of the previous test."""
    cases = [
        Precision(dtype="float32", rounded=rounded, first=first).dials()
        for rounded in precision.STAGES
        for first in (1, 5000)
    ]
    for dials, found in zip(cases, js.compute(Precision._esm, cases), strict=True):
        np.testing.assert_allclose(found["errors"], oracle(Precision).compute(dials)["errors"], atol=1e-11)
        assert 1e-8 < found["error"] < 1e-2


HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


FLOATS = {"float64": torch.float64, "float32": torch.float32, **HALVES}


def awkward_numbers(dtype: torch.dtype) -> list[float]:
    """Return numbers of this type, ties between neighbouring numbers, numbers right next to these ties, the ends of the
    range, and subnormal numbers."""
    source = torch.Generator().manual_seed(3)
    bits = torch.randint(-(2**15), 2**15, (400,), generator=source).to(torch.int16)
    numbers = bits.view(dtype).double()
    numbers = numbers[numbers.isfinite()]
    above = torch.nextafter(numbers.to(dtype), torch.tensor(math.inf, dtype=dtype)).double()
    ties = ((numbers + above) / 2)[above.isfinite()]
    tiny, largest = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    ends = [largest, largest * (1 + 2**-12), largest * (1 + 2**-9), largest * (1 + 2**-8), largest * 2, 65519.9, 65520]
    small = [tiny, tiny / 3, tiny / 2**7, tiny / 2**10, tiny / 2**11, tiny / 2**11 * 1.0001, 0.0]
    spread = torch.randn(400, generator=source, dtype=torch.float64) * 10 ** torch.linspace(-9, 6, 400)
    exact = [*numbers.tolist(), *ties.tolist(), *ends, *small, *spread.tolist()]
    beside = [x * (1 + e) for x in ties.tolist() for e in (2**-20, -(2**-20), 2**-40, -(2**-40))]
    return [sign * x for sign in (1, -1) for x in [*exact, *beside]]


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_numbers_are_rounded_as_torch_rounds_them(name):
    values = awkward_numbers(HALVES.get(name, torch.bfloat16))
    found = js.inside(Precision, f"return input.map((value) => String(ROUND.{name}(value)));", values)
    expected = torch.tensor(values, dtype=torch.float64).to(FLOATS[name]).double().tolist()
    wrong = [(v, f, e) for v, f, e in zip(values, found, expected, strict=True) if float(f.replace("I", "i")) != e]
    assert wrong == []
    if name in HALVES:
        special = js.inside(
            Precision, f"return [NaN, Infinity, -Infinity].map((value) => String(ROUND.{name}(value)));"
        )
        assert special == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("name", list(FLOATS))
def test_products_are_rounded_as_torch_multiplies(name):
    source = random.Random(2)
    pairs = [(source.randrange(1, 60_000), 10 ** source.uniform(-5, 0)) for _ in range(500)]
    body = f"const round = ROUND.{name}; return input.map(([a, b]) => round(round(a) * round(b)));"
    a, b = (torch.tensor(column, dtype=torch.float64).to(FLOATS[name]) for column in zip(*pairs, strict=True))
    assert js.inside(Precision, body, pairs) == (a * b).double().tolist()


@pytest.mark.parametrize("first", [1, 300, 4090])
@pytest.mark.parametrize("name", list(FLOATS))
def test_everything_rounded_is_torch_in_that_type(name, first):
    """`encoding_all_in` computes cosine and sine in the type itself. This adds an error of at most one unit in the last
    place."""
    found = computed(Precision, dtype=name, rounded="everything", first=first, count=40, dim=16)
    expected = encoding_all_in(torch.arange(first, first + 40), 16, dtype=FLOATS[name]).double()
    cells = np.reshape(found["cells"], (40, 16))
    last = torch.finfo(FLOATS[name]).eps / 2
    np.testing.assert_allclose(cells[:, :8], expected[:, 1::2], atol=last)
    np.testing.assert_allclose(cells[:, 8:], expected[:, 0::2], atol=last)


@pytest.mark.parametrize("name", list(FLOATS))
@pytest.mark.parametrize("rounded", precision.STAGES[:3])
def test_what_is_rounded_before_the_result(name, rounded):
    first, dim, dtype = 1000, 10, FLOATS[name]
    found = computed(Precision, dtype=name, rounded=rounded, first=first, count=30, dim=dim)
    positions, frequencies = np.arange(first, first + 30.0), theta(dim, 1e4)
    if rounded == "positions":
        positions = torch.tensor(positions).to(dtype).double().numpy()
    if rounded == "frequencies":
        frequencies = torch.tensor(frequencies).to(dtype).double().numpy()
    angle = np.outer(positions, frequencies)
    cells = torch.tensor(np.concatenate([np.cos(angle), np.sin(angle)], -1)).to(dtype).double()
    np.testing.assert_allclose(np.reshape(found["cells"], (30, 10)), cells, atol=1e-12)
    true = np.outer(np.arange(first, first + 30), theta(dim, 1e4))
    exact = np.concatenate([np.cos(true), np.sin(true)], -1)
    np.testing.assert_allclose(np.reshape(found["exact"], (30, 10)), exact, atol=1e-12)
    errors = np.abs(cells.numpy() - exact)[:, :5].max(-1)
    np.testing.assert_allclose(found["errors"], errors, atol=1e-12)
    assert found["error"] == max(found["errors"])
    assert found["used"] == positions.tolist()
    changed = [any(row != before) for row, before in zip(cells[1:].numpy(), cells.numpy(), strict=False)]
    assert found["fresh"] == [1, *changed]
    assert found["different"] == 1 + sum(changed)


@pytest.mark.parametrize(
    "name, first, different", [("bfloat16", 129, 64), ("bfloat16", 256, 33), ("bfloat16", 512, 17),
                               ("float16", 1900, 64), ("float16", 2048, 33), ("float32", 10**7, 64)],
)  # fmt: skip
def test_neighbours_merge_where_the_type_runs_out_of_digits(name, first, different):
    for rounded in ("positions", "everything"):
        assert computed(Precision, dtype=name, rounded=rounded, first=first)["different"] == different
    for rounded in ("result", "frequencies"):
        assert computed(Precision, dtype=name, rounded=rounded, first=first)["different"] == 64


def test_rounding_only_the_result_is_harmless_and_flat():
    for first in (1, 1000, 10**6):
        assert computed(Precision, rounded="result", first=first)["error"] <= 2**-9 + 2**-25
        assert computed(Precision, rounded="everything", first=max(first, 300))["error"] > 0.5


def test_positions_that_float16_cannot_hold_are_lost():
    for rounded, lost in [("positions", 20), ("everything", 20), ("result", 0), ("frequencies", 0)]:
        found = computed(Precision, dtype="float16", rounded=rounded, first=65_500, count=40, dim=4)
        assert found["lost"] == lost  # every position from 65520 onwards is lost
        if lost:
            assert found["used"] == [65504.0] * 20 + [0] * 20
            assert found["cells"][80:] == [0] * 80
            assert found["errors"][20:] == [0] * 20
            assert found["fresh"] == [1] + [0] * 19 + [1] + [0] * 19
            assert found["different"] == 1  # the lost rows aren't counted
    assert computed(Precision, dtype="bfloat16", rounded="positions", first=65_500)["lost"] == 0
    gone = computed(Precision, dtype="float16", rounded="positions", first=70_000)
    assert (gone["lost"], gone["different"], gone["error"]) == (64, 0, 0)


def test_rounding_in_words():
    cases = [
        Precision(rounded="result"),
        Precision(),
        Precision(dtype="float16", first=65_500, rounded="positions"),
        Precision(dtype="float16", first=70_000, rounded="positions"),
        Precision(dtype="float32", first=3000, rounded="frequencies"),
        Precision(first=100),
        Precision(rounded="frequencies", dim=2),
        Precision(rounded="frequencies", dtype="float64"),
        Precision(first=100_000),
    ]
    said = js.inside(Precision, "return input.map((d) => describe(compute(d), d));", [case.dials() for case in cases])
    assert said[0] == ("Only the finished cosine is rounded, so the error does not grow with the position.")
    assert said[8] == (
        "Near 100,063, bfloat16 numbers are 512 apart, so positions 100,000 to 100,063 all become 99,840 and share one "
        "row."
    )
    assert said[1] == "Near 1,063, bfloat16 numbers are 8 apart, so neighbouring positions share rows."
    assert said[2] == (
        "From position 65,520 on, float16 represents the positions as infinity, which has no cosine: the result is not "
        "a number. Near 65,519, float16 numbers are 32 apart, so positions 65,500 to 65,519 all become 65,504 and "
        "share one row."
    )
    assert said[3] == (
        "From position 70,000 on, float16 represents the positions as infinity, which has no cosine: the result is not "
        "a number."
    )
    assert said[4] == "The error of θᵢ is multiplied by the position, so the angle’s error grows with it."
    assert said[5] == "Near 163, bfloat16 numbers are 1 apart."
    assert said[6] == "All frequencies θᵢ are bfloat16 numbers, so rounding does not change them."
    assert said[7] == "All frequencies θᵢ are float64 numbers, so rounding does not change them."
    body = "return input.map((d) => stats(compute(d), d)[1].slice(1));"
    near, gone = js.inside(Precision, body, [cases[k].dials() for k in (2, 3)])
    assert (near[1:], gone) == (["of at most 2"], ["–"])


def test_how_far_apart_numbers_are():
    cases = {("bfloat16", 1063): "8", ("bfloat16", 256): "2", ("bfloat16", 255): "1", ("float16", 2048): "2",
             ("float16", 2047): "1", ("float32", 10**7): "1", ("float64", 4): "8.9 × 10⁻¹⁶"}  # fmt: skip
    for (dtype, position), words in cases.items():
        assert js.inside(Precision, "return spacing(...input);", [dtype, position]) == words
        at = torch.tensor(float(position), dtype=FLOATS[dtype])
        gap = (torch.nextafter(at, torch.tensor(math.inf, dtype=at.dtype)).double() - at.double()).item()
        assert gap == pytest.approx(float(words.replace(" × 10⁻¹⁶", "e-16")), rel=0.01)
