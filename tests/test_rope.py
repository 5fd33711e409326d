"""Tests of cosines and sines, compared with Python's own. Positions of every accepted type must work, and all other
positions must be refused."""

import math
import re

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import efficient as E
from ropebook import rope, sinusoidal
from tests.helpers import random
from tests.rotations import layouts, tables
from tests.together import together


def test_cos_sin_against_python():
    cos, sin = tables([[0, 1, 77], [5, 123456, -3]], 6, 50.0)
    assert cos.shape == sin.shape == (2, 3, 3)
    for row, positions in enumerate([[0, 1, 77], [5, 123456, -3]]):
        for column, m in enumerate(positions):
            for i in range(3):
                angle = m * 50.0 ** (-2 * i / 6)
                assert cos[row, column, i].item() == pytest.approx(math.cos(angle), abs=1e-10)
                assert sin[row, column, i].item() == pytest.approx(math.sin(angle), abs=1e-10)


@together("position", [2**24 + 1, 10**7 + 1, 2**31])
def test_positions_that_float32_has_not(position):
    cos, sin = tables([position], 2, dtype=torch.float32)
    assert cos.dtype == sin.dtype == torch.float32
    assert cos.item() == pytest.approx(math.cos(position), abs=2**-24)
    assert sin.item() == pytest.approx(math.sin(position), abs=2**-24)


@together("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.float32])
def test_positions_of_any_type(dtype, device):
    ours = tables(torch.tensor([3, 7], dtype=dtype, device=device), 8, dtype=torch.float32)
    assert ours[0].device.type == device.type
    for one, other in zip(ours, tables([3, 7], 8, dtype=torch.float32), strict=True):
        assert torch.equal(one.cpu(), other)


@together("position", [2**31 + 1, -(2**31) - 1, 2**63 - 1, -(2**63), 2.0**31 + 1, *map(float, ("nan", "inf"))])
def test_positions_whose_angles_would_be_wrong_are_refused(position):
    positions = torch.tensor([0, 1, position, 3], dtype=torch.float64 if isinstance(position, float) else None)
    q, message = random(1, 2, 4, 8), f"positions must lie between -2147483648 and 2147483648, got {position}"
    rope = E.RotaryEmbedding(8, layout="interleaved")
    for call in (
        lambda: E.cos_sin(positions, sinusoidal.inv_freq(8)),
        lambda: rope.cos_sin(positions),
        lambda: rope(q, q, positions),
        lambda: rope(q, q, positions[None]),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            call()


def test_the_largest_positions_pass():
    for dtype in (torch.int64, torch.float64, torch.float32):
        E.check_positions(torch.tensor([-(2**31), 2**31], dtype=dtype))
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32):
        E.check_positions(torch.tensor([torch.iinfo(dtype).min, torch.iinfo(dtype).max], dtype=dtype))
    E.check_positions(torch.zeros(0, dtype=torch.int64))


@given(st.integers(1, 9), layouts)
def test_pairs_split_and_join(pairs, layout):
    x = torch.arange(3 * 2 * pairs).reshape(3, 2 * pairs)
    first, second = E.split_pairs(x, layout)
    assert first.data_ptr() == x.data_ptr()
    step = 1 if layout == "interleaved" else pairs
    assert torch.equal(second - first, torch.full_like(first, step))
    assert torch.equal(E.join_pairs(first, second, layout), x)


def test_the_operator_for_compilers_has_the_gradients_of_differences():
    """The gradients of m and of θ are compared with finite differences, one at a time and together."""
    m, theta = random(3, 2), random(4)

    def kept(m, theta):
        return rope.tables_kept(m, theta, torch.float64)

    for wanted in [(True, False), (False, True), (True, True)]:
        given = [x.clone().requires_grad_(one) for x, one in zip((m, theta), wanted, strict=True)]
        assert torch.autograd.gradcheck(kept, given)
