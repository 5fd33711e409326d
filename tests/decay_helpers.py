"""Helpers shared by the tests of `ropebook.decay`: plain loops, 40-digit arithmetic, and a memory counter."""

import itertools
from functools import partial

import mpmath
import numpy as np
import torch
from hypothesis import strategies as st

from ropebook import decay as D

mpmath.mp.dps = 40


dims = st.integers(1, 16).map(lambda pairs: 2 * pairs)
bases = st.one_of(st.sampled_from([1, 10000.0]), st.floats(0, 7).map(lambda power: 10**power))


def kernel(dim, base=10000.0):
    return partial(D.distance_kernel, dim=dim, base=base)


def plain_sums(distance, dim, base):
    """Compute the partial sums S_1 … S_{d/2} by adding one complex number at a time."""
    steps = (np.exp(1j * distance * base ** (-2 * i / dim)) for i in range(dim // 2))
    return list(itertools.accumulate(steps))


def plain_summary(values):
    """Compute in plain Python the summary that `summarize` returns."""
    inner = range(1, len(values) - 1)
    return D.Summary(
        mean=sum(values) / len(values),
        least=min(values),
        least_at=values.index(min(values)),
        first_negative=next((i for i, value in enumerate(values) if value < 0), None),
        local_maxima=sum(values[i - 1] < values[i] >= values[i + 1] for i in inner),
        rises=sum(after > before for before, after in itertools.pairwise(values)),
    )


def looked_up(values):
    """Return a curve, as a function of distance, that looks up its values in a list."""
    table = torch.tensor(values, dtype=torch.float64)
    return lambda distances: table[distances.cpu()].to(distances.device)
