"""Test that one head can use the positions to compute sums of waves of the distance, and no other functions of the
distance."""

import torch
from hypothesis import given

from ropebook import sinusoidal as S
from tests.helpers import largest, random, seeds
from tests.sinusoidal_helpers import dims, positions_up_to_a_million


@given(dims, seeds, positions_up_to_a_million, positions_up_to_a_million)
def test_a_head_reads_a_sum_of_waves_of_the_distance(dim, seed, m, n):
    a, b = random(2, dim // 2, seed=seed)
    PE_m, PE_n = S.encoding([m, n], dim, dtype=torch.float64)
    angles = S.angles(m - n, dim)
    waves = (a * angles.cos() + b * angles.sin()).sum()
    assert abs(PE_m @ S.head_matrix(a, b) @ PE_n - waves) < 1e-8 * dim


@given(dims, seeds)
def test_it_commutes_with_every_step(dim, seed):
    B, M = S.head_matrix(*random(2, dim // 2, seed=seed)), S.shift_matrix(7, dim)
    assert largest(B @ M - M @ B) < 1e-12


def test_a_head_that_looks_k_back_is_a_step():
    angles = S.angles(3, 8)
    assert largest(S.head_matrix(angles.cos(), angles.sin()) - S.shift_matrix(-3, 8).T) < 1e-15
    assert torch.equal(S.head_matrix(torch.ones(4), torch.zeros(4)), torch.eye(8))
