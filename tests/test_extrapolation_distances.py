"""Tests of the methods that change distances and of the method that changes queries, compared with brute force."""

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import extrapolation as X
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, random
from tests.methods import DISTANCES, example, turn
from tests.together import together

# --- Distances ---


RULES = {
    X.ReRoPE(8): lambda m, n: min(m - n, 8),
    X.LeakyReRoPE(8, 4.0): lambda m, n: m - n if m - n < 8 else 8 + (m - n - 8) / 4,
    X.SelfExtend(8, 4): lambda m, n: m - n if m - n < 8 else m // 4 - n // 4 + 8 - 8 // 4,
    X.SelfExtend(7, 3): lambda m, n: m - n if m - n < 7 else m // 3 - n // 3 + 7 - 7 // 3,  # the distances jump at 7
}


@together("method", RULES, ids=str)
def test_relative_distances_and_scores_by_brute_force(method):
    theta, length = plain(8, 100.0), 40
    place = torch.arange(length)
    relative = method.relative(place, place)
    q, k = random(2, 1, 1, length, 8)
    scores = method.scores(q, k, place, place, theta)
    assert (relative.shape, relative.dtype, scores.shape) == ((length, length), torch.float64, (1, 1, length, length))
    for m, n in itertools.product(range(length), repeat=2):
        seen = RULES[method](m, n)
        assert relative[m, n].item() == pytest.approx(seen)
        assert scores[0, 0, m, n].item() == pytest.approx((turn(q[0, 0, m], seen * theta) @ k[0, 0, n]).item())


@pytest.mark.parametrize("name", DISTANCES)
@given(trained=st.integers(9, 40))
def test_reach_by_brute_force(name, trained):
    method = example(name)
    reach = method.reach(trained)

    def furthest(length):
        place = torch.arange(length)
        return method.relative(place, place).max().item()

    if reach == math.inf:
        assert furthest(300) <= trained - 1
    else:
        assert isinstance(reach, int)
        assert furthest(reach) <= trained - 1 < furthest(reach + 1)


def test_reach_as_the_papers_say():
    assert X.SelfExtend(1024, 8).reach(4096) == (4096 - 1024) * 8 + 1024
    # The first group is larger than its window, and the other two windows aren't multiples of their groups.
    for window, group in [(3, 4), (5, 2), (7, 3)]:
        method, place = X.SelfExtend(window, group), torch.arange(200)
        furthest = method.relative(place, place).max(dim=1).values.cummax(0).values
        assert (furthest <= 15).sum().item() == method.reach(16)
    with pytest.raises(ValueError, match="trained_length must be above the window, 8, got 8"):
        X.ReRoPE(8).reach(8)


def test_the_limits_of_the_rules():
    place = torch.arange(30)
    plain_distances = (place[:, None] - place).double()
    for method in (X.LeakyReRoPE(8, 1.0), X.SelfExtend(8, 1), X.ReRoPE(30), X.SelfExtend(30, 4)):
        assert torch.allclose(method.relative(place, place), plain_distances)
    stopped = X.LeakyReRoPE(8, 1e12).relative(place, place)
    assert torch.allclose(stopped, X.ReRoPE(8).relative(place, place))


@together("layout", ["interleaved", "half"])
@together("name", DISTANCES)
def test_scores_of_batched_positions_and_half_types(name, layout):
    method, theta = example(name), plain(8, 100.0)
    q, k = random(2, 2, 3, 20, 8)
    starts = torch.tensor([0, 7])
    places = torch.arange(20) + starts[:, None]
    both = method.scores(q, k, places, places, theta, layout=layout)
    for row in range(2):
        alone = method.scores(q[row : row + 1], k[row : row + 1], places[row], places[row], theta, layout=layout)
        assert torch.allclose(both[row], alone[0])
    rounded = [x.to(torch.bfloat16) for x in (q, k)]
    low = method.scores(*rounded, places, places, theta, layout=layout)
    assert low.dtype == torch.float32
    assert largest(low - both) < 0.3


def test_positions_that_are_refused():
    method = X.ReRoPE(8)
    for positions, message in [
        ([0, 1], "positions must be a tensor, got list"),
        (torch.tensor([0.0], dtype=torch.bfloat16), "integers, float32 or float64, got dtype torch.bfloat16"),
        (torch.tensor([True]), "got dtype torch.bool"),
    ]:
        with pytest.raises(TypeError, match=message):
            method.relative(positions, torch.arange(2))
        with pytest.raises(TypeError, match=message):
            X.LogN(32).query_scale(positions)


# --- Log-n ---


@given(st.integers(2, 10**6))
def test_log_n(trained):
    positions = torch.tensor([0, trained - 2, trained - 1, trained, 2 * trained, 10**7])
    expected = [max(1.0, math.log(m + 1) / math.log(trained)) for m in positions.tolist()]
    assert X.LogN(trained).query_scale(positions).tolist() == pytest.approx(expected)
    assert X.LogN(trained).query_scale(positions[:3]).tolist() == pytest.approx([1, 1, 1])
    with pytest.raises(ValueError, match=r"positions must .* got -1"):
        X.LogN(trained).query_scale(torch.tensor([5, -1]))
