"""Tests of simpler codes for positions (counting, fractions, binary digits), and of how a code is measured."""

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import sinusoidal as S
from tests.sinusoidal_helpers import HALVES, exact_kernel
from tests.together import together


@together("dtype", [torch.float64, torch.float32, *HALVES])
@together("length", [1, 2, 7, 300])
def test_counting(dtype, length):
    ours = S.counting(length, dtype)
    assert ours.shape == (length, 1)
    assert ours.dtype == dtype
    assert torch.equal(ours.flatten(), torch.tensor([float(m) for m in range(length)]).to(dtype))
    assert S.counting(1).dtype == torch.float32


@given(st.integers(2, 5000))
def test_fractions_run_from_0_to_1_in_even_steps(length):
    ours = S.fractions(length, torch.float64)
    assert ours.shape == (length, 1)
    assert ours.flatten().tolist() == [m / (length - 1) for m in range(length)]
    assert torch.equal(S.fractions(length), ours.float())


@pytest.mark.parametrize(("dtype", "last"), [(torch.bfloat16, 256), (torch.float16, 2048)])
def test_half_types_run_out_of_integers(dtype, last):
    assert len(S.collisions(S.counting(last + 1, dtype))) == 0
    assert S.collisions(S.counting(last + 2, dtype)).tolist() == [[last, last + 1]]


@given(st.integers(1, 31).flatmap(lambda bits: st.tuples(st.just(bits), st.integers(0, 2**bits - 1))))
def test_binary_digits_and_the_waves_inside(bits_and_position):
    bits, position = bits_and_position
    digits = [int(character) for character in reversed(format(position, f"0{bits}b"))]
    ours = S.binary_digits(position, bits)
    assert ours.dtype == torch.int64
    assert ours.tolist() == digits
    waves = S.binary_waves(position, bits)
    assert waves.dtype == torch.float64
    assert (waves > 0).long().tolist() == digits
    exact = [-mpmath.sinpi((2 * position + 1) / mpmath.mpf(2 ** (j + 1))) for j in range(bits)]
    assert waves.tolist() == pytest.approx([float(w) for w in exact], abs=1e-5)
    if position < 2**16:
        assert waves.tolist() == pytest.approx([float(w) for w in exact], abs=1e-10)


def test_binary_periods_are_the_smallest_periods_of_the_digits(device):
    digits = S.binary_digits(torch.arange(32, device=device), 5).cpu()
    periods = S.binary_periods(5)
    assert periods.tolist() == [2, 4, 8, 16, 32]
    for digit, period in zip(digits.T, periods.tolist(), strict=True):
        assert torch.equal(digit[period:], digit[:-period])
        assert not torch.equal(digit[period // 2 :], digit[: -(period // 2)])


def test_binary_shapes():
    assert S.binary_digits(torch.zeros(2, 3, dtype=torch.int64), 4).shape == (2, 3, 4)
    assert S.binary_digits([], 4).shape == (0, 4)
    assert S.binary_waves(torch.zeros(2, 3), 4).shape == (2, 3, 4)
    assert S.binary_waves(0.5, 2).tolist() == pytest.approx([0, -1], abs=1e-15)
    assert len(S.binary_periods(31)) == 31


def test_describe_codes_by_hand(device):
    codes = torch.tensor([[3.0, 4.0], [0.0, 0.0], [0.0, 1.0], [3.0, 4.0]], device=device)
    assert S.describe_codes(codes) == pytest.approx((5, 1, 5, 3))


def test_describe_codes_of_the_four_codes():
    length = 4096
    counting, fractions = S.describe_codes(S.counting(length)), S.describe_codes(S.fractions(length, torch.float64))
    assert counting == (length - 1, 1, 1, length)
    assert fractions == pytest.approx((1, 1 / (length - 1), 1 / (length - 1), length))
    digits = S.describe_codes(S.binary_digits(range(length), 12).double())
    assert digits == pytest.approx((math.sqrt(12), 1, math.sqrt(12), length))
    sinusoids = S.describe_codes(S.encoding(range(length), 64, dtype=torch.float64))
    step = math.sqrt(64 - 2 * float(exact_kernel(1, 64, 10000)))
    assert sinusoids == pytest.approx((math.sqrt(32), step, step, length))


def test_describe_codes_measures_half_types_without_more_rounding():
    assert S.describe_codes(torch.tensor([[256.0], [1.0]], dtype=torch.bfloat16)) == (256, 255, 255, 2)
    assert S.describe_codes(torch.full((2, 1), 300.0, dtype=torch.float16).expand(2, 100000)).largest_norm > 65504


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), max_size=12))
def test_collisions_against_a_search(rows):
    codes = torch.tensor(rows, dtype=torch.float32).reshape(-1, 2)
    expected = [[rows.index(row), m] for m, row in enumerate(rows) if rows.index(row) < m]
    assert S.collisions(codes).tolist() == expected
    first = [row[0] for row in rows]
    expected = [[first.index(value), m] for m, value in enumerate(first) if first.index(value) < m]
    found = S.collisions(codes[:, 0])
    assert found.tolist() == expected
    assert found.shape == (len(expected), 2)
    assert found.dtype == torch.int64
