"""Tests of int8 weights. They check how much rounding changes each entry, and how much it changes the results of the
model that comes with the notebooks."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import int8, parts, scores
from ropebook.lab.bits import position_bits
from ropebook.lab.model import LanguageModel, pretrained

STORED = {"wide", "wide" + int8.SCALES, "norm"}


@given(st.integers(0, 10**6), st.floats(1e-6, 1e6))
def test_no_entry_moves_by_more_than_half_a_step_of_its_row(seed, size):
    draws = torch.Generator().manual_seed(seed)
    sizes = size * torch.tensor([[1.0], [1e-3], [0.0]])
    weights = {"wide": torch.randn(3, 9, generator=draws) * sizes, "norm": torch.randn(4, generator=draws)}
    stored = int8.rounded(weights)
    assert set(stored) == STORED
    assert (stored["wide"].dtype, stored["wide" + int8.SCALES].shape) == (torch.int8, (3,))
    assert stored["wide"].abs().amax(1).tolist() == [int8.LARGEST, int8.LARGEST, 0]
    back = int8.restored(stored)
    assert set(back) == set(weights)
    assert torch.equal(back["norm"], weights["norm"])
    half = weights["wide"].abs().amax(1, keepdim=True) / int8.LARGEST / 2
    assert ((back["wide"] - weights["wide"]).abs() <= half * 1.0001).all()


def test_what_is_rounded_is_not_rounded_again():
    stored = int8.rounded({"wide": torch.randn(5, 7)})
    again = int8.rounded(stored)
    assert set(again) == set(stored)
    assert all(again[name] is value for name, value in stored.items())
    plain = {"wide": torch.randn(5, 7)}
    assert int8.restored(plain)["wide"] is plain["wide"]


def test_rounding_costs_what_is_said():
    """The cost is measured on files of this machine's Python that weren't part of the training text. Because the
    version of Python may differ, the tolerance is generous."""
    _, windows = scores.windows(parts.load().development, 256)
    exact, rounded = (mean_bits(pretrained(int8=wanted), windows) for wanted in (False, True))
    assert exact != rounded
    assert rounded - exact == pytest.approx(int8.COST, abs=0.001)


def mean_bits(model: LanguageModel, windows: torch.Tensor) -> float:
    return position_bits(model, windows, 16).mean().item()
