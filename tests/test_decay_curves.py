"""Test that processing a curve in chunks gives the same result for every chunk size. The reference is plain Python."""

import itertools
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import decay as D
from tests.decay_helpers import (
    kernel,
    looked_up,
    plain_summary,
)
from tests.helpers import LargestTensor
from tests.together import together


@pytest.fixture(params=[16, 64, 2**16])
def chunk(request, monkeypatch):
    """Set CHUNK. With a value of 16, the chunks contain 1, 2, 4, 8, 16, 16, … distances."""
    monkeypatch.setattr(D.curves, "CHUNK", request.param)


@pytest.mark.usefixtures("chunk")
@together(("dim", "base"), [(2, 1), (8, 10000.0), (32, 100.0), (128, 5e5)])
@together("length", [1, 2, 3, 100, 500])
def test_summary_against_plain_python_however_it_is_cut(dim, base, length):
    values = D.distance_kernel(torch.arange(length), dim, base).tolist()
    expected = plain_summary(values)
    found = D.summarize(kernel(dim, base), length)
    assert found._replace(mean=0) == expected._replace(mean=0)
    assert found.mean == pytest.approx(expected.mean, abs=1e-9)


@pytest.mark.usefixtures("chunk")
@together("values", [[1, 1, 1], [0, 1, 1, 0], [0, 1, 0, 1, 0, -1, -1, 3], [3, 2, 1], list(range(50))])
def test_summary_of_steps_and_plateaus(values):
    assert D.summarize(looked_up(values), len(values)) == plain_summary(values)


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=80))
def test_summary_of_any_values(values):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(D.curves, "CHUNK", 16)
        found = D.summarize(looked_up(values), len(values))
        edges = sorted({0, len(values) // 3, len(values)})
        windows = D.windows(looked_up(values), edges)
        below = D.first_below(looked_up(values), -1, len(values))
    expected = plain_summary(values)
    assert found._replace(mean=0) == expected._replace(mean=0)
    assert found.mean == pytest.approx(expected.mean)
    pieces = [values[start:stop] for start, stop in itertools.pairwise(edges)]
    assert windows.mean.tolist() == pytest.approx([sum(piece) / len(piece) for piece in pieces])
    assert windows.least.tolist() == [min(piece) for piece in pieces]
    assert windows.greatest.tolist() == [max(piece) for piece in pieces]
    assert below == next((i for i, value in enumerate(values) if value < -1), None)


def test_walks_on_the_device(device):
    assert D.summarize(kernel(8), 500, device) == pytest.approx(D.summarize(kernel(8), 500))
    assert D.first_below(kernel(8), 0, 500, device) == D.first_below(kernel(8), 0, 500)
    assert torch.allclose(D.windows(kernel(8), [0, 9], device).mean, D.windows(kernel(8), [0, 9]).mean)
    assert D.reach(500, 8, 500, device) == D.reach(500, 8, 500)
    assert D.first_return(0.99, 10_000, 8, device=device) == 6283
    assert D.sweep(100, [10], [8], device)[0].below_half == D.sweep(100, [10], [8])[0].below_half


def test_a_curve_is_asked_no_further_than_it_must():
    asked = []

    def curve(distances):
        asked.append(len(distances))
        return D.distance_kernel(distances, 128)

    assert D.first_below(curve, 0, 10**9) == 1707
    assert sum(asked) < D.CHUNK // 8


def test_pieces_double_up_to_the_size_that_the_chapter_states(monkeypatch):
    assert D.CHUNK == 65_536
    monkeypatch.setattr(D.curves, "CHUNK", 240)
    asked = []

    def curve(distances):
        asked.append(distances.tolist())
        return torch.ones(len(distances))

    assert D.first_below(curve, 0, 800) is None
    assert [len(piece) for piece in asked] == [15, 30, 60, 120, 240, 240, 95]
    assert list(itertools.chain.from_iterable(asked)) == list(range(800))


def test_memory_does_not_grow_with_the_length():
    for walk in (
        lambda: D.summarize(kernel(4), 300_000),
        lambda: D.windows(kernel(4), [0, 5, 300_000]),
        lambda: D.first_below(kernel(4), -2, 300_000),
        lambda: D.reach(1e12, 4, 300_000),
        lambda: D.summarize(partial(D.mean_partial_sum, dim=4), 300_000),
    ):
        with LargestTensor() as seen:
            walk()
        assert seen.numel <= D.CHUNK + 2  # a summary carries two values over from one chunk to the next


def test_the_trend_is_that_of_windows_a_third_longer_each():
    middles, found = D.trend(kernel(8), 1000)
    edges = sorted({round(10 ** (step / 8)) for step in range(25)})
    values = D.distance_kernel(torch.arange(1000), 8)
    pieces = [values[start:stop] for start, stop in itertools.pairwise(edges)]
    assert edges[-1] == 1000
    assert middles.tolist() == [sum(range(start, stop)) / (stop - start) for start, stop in itertools.pairwise(edges)]
    assert torch.allclose(found.mean, torch.stack([piece.mean() for piece in pieces]))
    assert found.least.tolist() == [piece.min().item() for piece in pieces]
    assert found.greatest.tolist() == [piece.max().item() for piece in pieces]
