"""Tests of relative positions: the step, the kernel, and the distance between two encodings. The results are compared
with 40-digit arithmetic."""

import math

import mpmath
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import sinusoidal as S
from tests.helpers import LargestTensor, largest
from tests.sinusoidal_helpers import EPS, bases, dims, exact_encoding, exact_kernel, positions_up_to_a_million


def test_relative_positions():
    assert S.relative_positions([5, 6], [4, 6, 9]).tolist() == [[1, -1, -4], [2, 0, -3]]
    batch = S.relative_positions(torch.tensor([[0, 1], [7, 8]]), torch.tensor([[0, 1, 2], [7, 8, 9]]))
    assert batch.shape == (2, 2, 3)
    assert torch.equal(batch[0], batch[1])  # the same sentence begins seven words later
    assert S.relative_positions([0.5], [0]).item() == 0.5


@given(st.integers(-5000, 5000), st.integers(-5000, 5000), dims, bases)
def test_shift_matrix_shifts_every_encoding(position, offset, dim, base):
    shifted = S.shift_matrix(offset, dim, base) @ S.encoding(position, dim, base, torch.float64)
    assert largest(shifted - exact_encoding(position + offset, dim, base)) <= 16 * EPS * 10_000


@given(st.integers(-5000, 5000), st.integers(-5000, 5000), dims, bases)
def test_shift_matrices_are_orthogonal_and_add(first, second, dim, base):
    one, other, both = S.shift_matrix(torch.tensor([first, second, first + second]), dim, base)
    assert largest(one.T @ one - torch.eye(dim, dtype=torch.float64)) <= 8 * EPS
    assert largest(one @ other - both) <= 16 * EPS * 10_000
    assert torch.equal(one.T, S.shift_matrix(-first, dim, base))
    assert one.trace().item() == pytest.approx(2 * S.distance_kernel(first, dim, base).item(), abs=1e-12)


def test_shift_matrix_by_hand(device):
    cos, sin = math.cos, math.sin
    expected = [
        [cos(3), sin(3), 0, 0],
        [-sin(3), cos(3), 0, 0],
        [0, 0, cos(0.75), sin(0.75)],
        [0, 0, -sin(0.75), cos(0.75)],
    ]
    ours = S.shift_matrix(torch.tensor([[3]], device=device), 4, base=16)
    assert ours.shape == (1, 1, 4, 4)
    assert ours.dtype == torch.float64
    assert ours[0, 0].tolist() == [pytest.approx(row, abs=1e-15) for row in expected]
    assert S.shift_matrix(0, 6).tolist() == torch.eye(6).tolist()


@given(positions_up_to_a_million, dims, bases)
def test_kernel_against_forty_digits(distance, dim, base):
    ours = S.distance_kernel(distance, dim, base)
    assert ours.shape == ()
    assert abs(ours.item() - exact_kernel(distance, dim, base)) <= dim * 4 * EPS * (abs(distance) + 1)
    assert S.distance_kernel(-distance, dim, base) == ours


@given(st.integers(0, 4096), st.integers(0, 4096), dims, bases)
def test_kernel_and_chord_are_product_and_distance_of_encodings(m, n, dim, base):
    one, other = S.encoding([m, n], dim, base, torch.float64)
    assert S.distance_kernel(m - n, dim, base).item() == pytest.approx((one @ other).item(), abs=1e-9)
    assert S.chord(m - n, dim, base).item() == pytest.approx((one - other).norm().item(), abs=1e-9)


def test_kernel_and_chord_shapes_and_ends(device):
    distances = torch.arange(-3, 3, device=device).reshape(2, 3)
    kernel, chord = S.distance_kernel(distances, 10), S.chord(distances, 10)
    assert kernel.shape == chord.shape == (2, 3)
    assert kernel.dtype == chord.dtype == torch.float64
    assert kernel[1, 0] == 5
    assert chord[1, 0] == 0
    assert torch.equal(S.distance_kernel(distances, 2, 7.0).cpu(), distances.cpu().double().cos())
    assert torch.equal(distances.cpu(), torch.arange(-3, 3).reshape(2, 3))


def test_chord_keeps_its_digits_where_the_encodings_nearly_coincide():
    # √(d − 2K) would be 0 here, because K equals d/2 in all float64 digits
    assert S.chord(1e-9, 2).item() == pytest.approx(1e-9, rel=1e-12, abs=0)
    assert S.chord(710, 2).item() == pytest.approx(float(2 * abs(mpmath.sin(355))), rel=1e-9, abs=0)


def test_kernel_never_holds_more_than_one_pair_of_all_distances():
    distances = torch.arange(10_000)
    with LargestTensor() as seen:
        S.distance_kernel(distances, 512)
    assert seen.numel == len(distances)


def test_kernel_reaches_a_million_distances():
    kernel = S.distance_kernel(torch.arange(10**6), 16)
    assert abs(kernel[-1].item() - exact_kernel(10**6 - 1, 16, 10000)) < 1e-8
