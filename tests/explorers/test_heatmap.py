"""Tests specific to the Heatmap explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ropebook.explorers.heatmap import Heatmap
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle


@pytest.mark.parametrize("interleaved", [True, False])
def test_cells_are_the_encoding(interleaved):
    dials = Heatmap(base=300.0, dim=6, length=9, reference=4, interleaved=interleaved).dials()
    found = oracle(Heatmap).compute(dials)
    angle = np.outer(theta(6, 300.0), np.arange(9))
    rows = [np.sin(angle), np.cos(angle)]
    expected = np.stack(rows, axis=1).reshape(6, 9) if interleaved else np.concatenate(rows)
    assert (found["rows"], found["columns"], found["per"]) == (6, 9, 1)
    np.testing.assert_allclose(np.reshape(found["cells"], (6, 9)), expected, atol=1e-15)
    np.testing.assert_allclose(np.reshape(oracle(Heatmap).terms(dials)["cells"], (6, 9)), np.abs(expected), atol=1e-15)


@pytest.mark.parametrize("length, per, columns", [(641, 2, 321), (1280, 2, 640), (1281, 3, 427), (4096, 7, 586)])
def test_more_positions_than_columns_are_blended(length, per, columns):
    dials = Heatmap(base=100.0, dim=4, length=length, reference=0, interleaved=True).dials()
    found, terms = oracle(Heatmap).compute(dials), oracle(Heatmap).terms(dials)
    assert (found["rows"], found["columns"], found["per"]) == (4, columns, per)
    cells, sizes = np.reshape(found["cells"], (4, columns)), np.reshape(terms["cells"], (4, columns))
    for column in (0, 1, columns // 2, columns - 1):
        middle = column * per + (per - 1) / 2
        near = [m for m in range(-100, length + 100) if abs(m - middle) < 2 * per]
        weights = [math.cos(math.pi * (m - middle) / (4 * per)) ** 2 for m in near]
        for row, (wave, one) in enumerate([(math.sin, 1), (math.cos, 1), (math.sin, 0.1), (math.cos, 0.1)]):
            terms_ = [weight * wave(m * one) / sum(weights) for weight, m in zip(weights, near, strict=True)]
            assert cells[row, column] == pytest.approx(math.fsum(terms_), abs=1e-13)
            assert sizes[row, column] == pytest.approx(math.fsum(map(abs, terms_)), abs=1e-13)


def test_waves_too_short_for_the_columns_vanish():
    """Check a wavelength of 7.2 positions, with seven positions per column. Sampling one position per column, or
    averaging over each column, would show a slow wave."""
    dials = Heatmap(base=1.0, dim=2, length=4096, reference=0, interleaved=True).dials()
    cells = np.reshape(oracle(Heatmap).compute(dials)["cells"], (2, -1))
    assert np.abs(cells).max() < 0.03
    gains = js.inside(
        Heatmap, "return input.map(([theta, per]) => meanGain(theta, per));", [[0.8727, 7], [0.4, 7], [0.01, 7]]
    )
    assert abs(gains[0]) < 0.03
    assert 0.04 < gains[1] < 0.06
    assert 0.998 < gains[2] < 0.999
    shorter = [[x, per] for per in (4, 5, 6, 7) for x in np.linspace(math.pi / per, 1, 40) if x >= math.pi / per]
    assert np.abs(js.inside(Heatmap, "return input.map(([theta, per]) => meanGain(theta, per));", shorter)).max() < 0.03


def test_the_kernel_is_the_mean_cosine_of_the_distance():
    dials = Heatmap(base=77.0, dim=8, length=30, reference=11, interleaved=False).dials()
    found, terms = oracle(Heatmap).compute(dials), oracle(Heatmap).terms(dials)
    cosines = np.cos(np.outer(np.arange(30) - 11, theta(8, 77.0)))
    np.testing.assert_allclose(found["kernel"], cosines.mean(-1), atol=1e-15)
    np.testing.assert_allclose(terms["kernel"], np.abs(cosines).mean(-1), atol=1e-15)
    assert found["kernel"][11] == 1
    np.testing.assert_allclose(found["kernel"][:11], found["kernel"][22:11:-1], atol=1e-15)
    np.testing.assert_allclose(found["wavelengths"], 2 * math.pi / theta(8, 77.0), rtol=1e-14)
    assert terms["wavelengths"] == found["wavelengths"]
    assert [terms[name] for name in ("rows", "columns", "per", "turned")] == [0, 0, 0, 0]


@pytest.mark.parametrize("length, turned", [(1, 0), (7, 0), (8, 1), (63, 1), (64, 2), (629, 2), (630, 3)])
def test_how_many_pairs_have_turned(length, turned):
    """The wavelengths are 6.28, 62.8, 628 and 6283, and the last position is length − 1."""
    dials = Heatmap(base=1e4, dim=8, length=length, reference=0, interleaved=False).dials()
    assert oracle(Heatmap).compute(dials)["turned"] == turned


def test_rows_and_entries():
    body = """
      const entries = (order) => Array.from({ length: 8 }, (_, row) => entryOfRow(row, 8, order));
      const rows = (order) => Array.from({ length: 8 }, (_, entry) => rowOfEntry(entry, 8, order));
      return [entries(true), rows(true), entries(false), rows(false)];
    """
    assert js.inside(Heatmap, body) == [[*range(8)], [*range(8)], [0, 2, 4, 6, 1, 3, 5, 7], [0, 4, 1, 5, 2, 6, 3, 7]]


def test_what_stands_at_the_cursor():
    dials = Heatmap(base=1e4, dim=8, length=40, reference=12, interleaved=False).dials()
    body = "return input.cursors.map((cursor) => readOut(cursor, compute(input.dials), input.dials));"
    cursors = [{"position": 10, "entry": 2}, {"position": 11, "entry": 7}]
    kernel = oracle(Heatmap).compute(dials)["kernel"]
    assert js.inside(Heatmap, body, {"dials": dials, "cursors": cursors}) == [
        f"Position 10, entry 2: sin 10θ₁ = {math.sin(1):.3f}. Similarity to 12 (2 away):\u00a0{kernel[10]:.3f}.",
        f"Position 11, entry 7: cos 11θ₃ = {math.cos(0.011):.2f}. Similarity to 12 (1 away):\u00a0{kernel[11]:.3f}.",
    ]


def test_the_heatmap_in_words():
    describe = "return input.map((values) => describe(compute(values), values));"
    dials = Heatmap(base=1e4, dim=8, length=100, reference=0, interleaved=False).dials()
    cases = [
        dials,
        {**dials, "length": 1},
        {**dials, "base": 1.0, "reference": 99},
        {**dials, "length": 2},
        {**dials, "length": 7, "reference": 3},
    ]
    many, alone, alike, both, between = js.inside(Heatmap, describe, cases)
    kernel = oracle(Heatmap).compute(dials)["kernel"]
    lowest = int(np.argmin(kernel))
    assert many == (
        f"The similarity to position 0 is {kernel[1]:.3f} one position away. It is lowest "
        f"{lowest} positions away, at −{-kernel[lowest]:.4f}."
    )
    assert alone == "With a single position there is no distance to measure."
    assert "similarity to position 99 is 0.540 one position away. It is lowest 22 positions away, at −1.00." in alike
    assert both == f"The similarity to position 0 is {kernel[1]:.3f} one position away."
    assert between.endswith(f" 3 positions away, at {kernel[3]:.3f}.")  # on both sides
