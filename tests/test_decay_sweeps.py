"""Tests of the effects of base and dimension, compared with plain Python and with closed forms at base 1."""

import math

import pytest
import torch

from ropebook import decay as D
from tests.decay_helpers import (
    plain_summary,
)


def test_the_sweep_has_the_bases_and_dimensions_of_the_claim():
    # S2.3 mentions the bases 1, 10, 100, 500 and larger ones, and S0.9 draws d = 8, 16 and 256.
    assert D.BASES == (1, 2, 10, 100, 500, 1000, 10**4, 10**5, 10**6, 10**7)
    assert D.DIMS == (8, 16, 32, 64, 128, 256)
    rows = D.sweep(4)
    assert [(row.dim, row.base) for row in rows] == [(dim, base) for dim in D.DIMS for base in D.BASES]
    # cos 1 = 0.54 and cos 2 = −0.42, so the curve is first below a half at 2
    assert D.sweep(3, [1], [2])[0].below_half == 2
    assert D.sweep(2, [1], [2])[0].below_half is None


def test_the_sweep_has_a_row_for_each_base_and_dimension():
    rows = D.sweep(64, [1, 10.0], iter([8, 16]))
    assert [(row.dim, row.base) for row in rows] == [(8, 1.0), (8, 10.0), (16, 1.0), (16, 10.0)]
    for row in rows:
        values = (D.distance_kernel(torch.arange(64), row.dim, row.base) / (row.dim / 2)).tolist()
        assert row.summary._replace(mean=0) == plain_summary(values)._replace(mean=0)
        assert row.below_half == next(i for i, value in enumerate(values) if value < 0.5)


def test_at_base_one_there_is_no_decay_but_one_cosine():
    for row in D.sweep(10_000, [1], D.DIMS):
        assert row.below_half == 2
        assert row.summary.first_negative == 2
        assert row.summary.least == pytest.approx(math.cos(355), abs=1e-12)
        assert row.summary.least_at % 355 == 0
        assert row.summary.local_maxima == 1591  # there is one maximum for each whole turn in 10000 radians
    assert 10_000 // (2 * math.pi) == 1591


def test_what_the_sweep_says_of_the_base():
    """Check S2.3 numerically. From base 500 upwards, a larger base means a slower decrease. The curves for bases 10 and
    100 soon become negative."""
    by_base = {row.base: row for row in D.sweep(4096, dims=[128])}
    halves = [by_base[base].below_half for base in D.BASES if base >= 500]
    assert halves == sorted(halves)
    means = [by_base[base].summary.mean for base in D.BASES if base >= 1000]
    assert means == sorted(means)
    assert by_base[10.0].summary.first_negative < by_base[100.0].summary.first_negative < 60
    assert by_base[1e6].summary.first_negative is None
