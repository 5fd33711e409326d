"""Helpers shared by the tests of the sinusoidal chapter: exact values to 40 digits, and random draws."""

from __future__ import annotations

import mpmath
import torch
from hypothesis import strategies as st

mpmath.mp.dps = 40

HALVES = [torch.bfloat16, torch.float16]
EPS = 2.0**-52

dims = st.integers(1, 32).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000, 10000.0, 1e7]), st.floats(0, 7).map(lambda power: 10**power))
positions_up_to_a_million = st.integers(-(10**6), 10**6)


def exact_frequency(i, dim, base):
    return mpmath.power(mpmath.mpf(base), -mpmath.mpf(2 * i) / dim)


def exact_kernel(distance, dim, base):
    return sum(mpmath.cos(exact_frequency(i, dim, base) * distance) for i in range(dim // 2))


def exact_encoding(position, dim, base):
    angles = [exact_frequency(i, dim, base) * position for i in range(dim // 2)]
    return torch.tensor([float(f(a)) for a in angles for f in (mpmath.sin, mpmath.cos)], dtype=torch.float64)
