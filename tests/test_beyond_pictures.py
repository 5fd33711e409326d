"""Test that the chapter's figures show what the package computes, and that S(m + s, n + s) equals S(m, n)."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ropebook import beyond as B
from ropebook.beyond import pictures


@pytest.fixture
def shown(monkeypatch):
    found = []
    monkeypatch.setattr(pictures, "display_figure", lambda *given: found.append(given))
    return found


def test_the_middle_patch_is_most_like_itself():
    waves = B.axial([4, 4], 100.0)
    found = pictures.similarity(3, 5, waves)
    assert found.shape == (3, 5)
    assert found[1, 2] == 1
    assert found[0, 2].item() == pytest.approx((math.cos(1) + math.cos(0.1) + 2) / 4)
    assert found[1, 0].item() == pytest.approx((math.cos(2) + math.cos(0.2) + 2) / 4)


def test_three_maps(shown):
    pictures.patches(side=5, dim=8)
    [(fig, alt, caption)] = shown
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["in a line", "axial", "mixed"]
    assert "5 by 5" in alt
    assert "d = 8" in caption


def test_sections_have_a_bar_for_each_pair(shown):
    splits = {
        "old": {"sections": (2, 3, 3), "interleaved": False},
        "new": {"sections": (4, 2, 2), "interleaved": True},
    }
    pictures.sections(splits)
    [(fig, alt, _)] = shown
    colours = [patch.get_facecolor() for patch in fig.axes[0].patches]
    assert len(colours) == 16
    time, row, column = colours[0], colours[2], colours[5]
    assert colours == [time] * 2 + [row] * 3 + [column] * 3 + [time, row, column] * 2 + [time] * 2
    assert [label.get_text() for label in fig.axes[0].get_yticklabels()] == ["old", "new"]
    assert "old: 2 for time, 3 for the row, 3 for the column, one after the other." in alt
    assert "new: 4 for time, 2 for the row, 2 for the column, in turn, the last ones for time." in alt


def test_the_sections_shown_are_those_of_the_models(shown):
    pictures.sections()
    [(_, alt, _)] = shown
    assert "Qwen2-VL: 16 for time" in alt
    assert "Qwen3-VL: 24 for time" in alt


def test_shifts_have_two_lines_for_each_type(shown):
    pictures.shifts(dim=8, trials=3)
    [(fig, _, caption)] = shown
    assert len(fig.axes[0].lines) == 2 * len(pictures.LINES)
    expected = B.shift_errors(1, dim=8, dtype=torch.float64, trials=3).median()
    assert fig.axes[0].lines[0].get_ydata()[0] == expected
    assert "over 3 random pairs" in caption


LIMITS = {torch.float64: 1e-9, torch.float32: 5e-7, torch.bfloat16: 0.02, torch.float16: 0.003}


@given(
    by=st.integers(0, 10**6),
    dim=st.sampled_from([2, 8, 64, 128]),
    dtype=st.sampled_from(list(LIMITS)),
    seed=st.integers(0, 10**6),
)
@settings(max_examples=20, deadline=None)
def test_a_score_stays_when_both_places_move(by, dim, dtype, seed):
    assert B.shift_errors(by, dim=dim, dtype=dtype, seed=seed).max() < LIMITS[dtype]


def test_angles_in_float32_drift():
    near, far = (B.shift_errors(by, angles="float32").max() for by in (1, 10**6))
    assert near < 1e-3
    assert far > 1e-3
    assert B.shift_errors(10**6).max() < 5e-7
    with pytest.raises(ValueError, match="angles must be one of 'float64', 'float32', got 'half'"):
        B.shift_errors(1, angles="half")
