"""Find combinations of mistakes that explain pairs for which no single mistake is enough.

A pair's matrix is computed in four stages: frequencies, tables, the mixing of the two entries, and any later step.
Each stage has a list of known mistakes. Every combination of these mistakes is compared with the measurements at a few
positions.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook.diagnose.measures import SINGLE, Matrices

# Positions at which combinations are compared: 0, where nothing is rotated, and several positions with different
# angles.
TRIED = (0, 1, 2, 5, 11, 17, 23)


class Guess(NamedTuple):
    """A combination of mistakes that explains the measurements, and the corresponding frequencies."""

    names: tuple[str, ...]
    theta: Tensor
    later: int = 0  # the number of positions by which everything is rotated too far


def guessed(
    matrix: Matrices,
    first: tuple[int, ...],
    second: tuple[int, ...],
    rules: list[tuple[tuple[str, ...], Tensor]],
) -> Guess | None:
    """Find the smallest combination of mistakes that explains the pairs of ``matrix``. Returns None if none does.

    ``rules`` lists the vectors of frequencies to try, each with the names of the mistakes that lead to it. A vector
    contains one frequency per pair.

    >>> m = torch.arange(24.0, dtype=torch.float64)
    >>> matrix = torch.zeros(24, 2, 2, dtype=torch.float64)
    >>> matrix[:, 0, 0], matrix[:, 0, 1], matrix[:, 1, 1] = 1 + m.cos(), -m.sin(), 2.0
    >>> guessed(matrix, (0,), (1,), [((), torch.ones(1, dtype=torch.float64))]).names
    ('half_turned', 'added')
    """
    rules = [(names, theta) for names, theta in rules if len(theta) == len(first)]
    if not rules:
        return None
    at = torch.tensor([place for place in TRIED if place < len(matrix)])
    some = torch.linspace(0, len(first) - 1, min(6, len(first))).long()
    rows, columns = (first, second), (first, second)
    seen = torch.stack(
        [matrix[at][:, list(r), list(c)] for r in rows for c in columns]
    )[:, None, :, some]
    theta = torch.stack([one for _, one in rules])
    found = []
    for later in (0, 1, -1):
        angles = (at + later).double()[:, None] * theta[:, None]
        for more, numbers in _combined(angles, theta[:, None], some):
            size = numbers.square().sum((0, 2, 3)).clamp(min=1e-9)
            factor = (seen * numbers).sum((0, 2, 3)) / size
            off = (seen - factor[:, None, None] * numbers).abs().amax((0, 2, 3))
            for one in ((off < 10 * SINGLE) & (factor.abs() > 1e-2)).nonzero():
                rule, times = int(one), factor[one].item()
                said = (*rules[rule][0], *more)
                if abs(times - 1) > 10 * SINGLE:
                    said += ("longer" if abs(times) > 1 else "shorter",)
                rank = len(said) + bool(later), off[one].item()
                found.append((rank, said, rule, later))
    if not found:
        return None
    _, said, rule, later = min(found, key=lambda one: one[0])
    return Guess(said, theta[rule], later)


def _combined(
    angles: Tensor, theta: Tensor, some: Tensor
) -> Iterator[tuple[tuple[str, ...], Tensor]]:
    """Yield every combination of mistakes in the tables, in the mixing and after the mixing.

    Each item contains the names of the mistakes, and the matrix entries of the pairs in ``some``: (4, rules, positions,
    pairs).
    """
    for (tables, c, s), after in itertools.product(
        _tables(angles, theta), ("", "added", "turned_twice")
    ):
        for mixing, numbers in _mixed(c[..., some], s[..., some]):
            more = tuple(name for name in (tables, mixing, after) if name)
            one = torch.stack(torch.broadcast_tensors(*numbers))
            if after == "added":
                one = one + torch.tensor([1.0, 0, 0, 1])[:, None, None, None]
            elif after:
                a, b, x, y = one
                one = torch.stack(
                    (a * a + b * x, a * b + b * y, x * a + y * x, x * b + y * y)
                )
            yield more, one


def _tables(angles: Tensor, theta: Tensor) -> Iterator[tuple[str, Tensor, Tensor]]:
    c, s = angles.cos(), angles.sin()
    yield "", c, s
    yield "swapped_cos_sin", s, c
    both = torch.stack((c, s), -1).flatten(-2)
    yield "mixed_tables", *both.chunk(2, -1)
    both = torch.cat((c, s), -1)
    yield "mixed_tables", both[..., 0::2], both[..., 1::2]
    yield "mixed_tables", c, c
    yield "mixed_tables", s, s
    yield "mixed_tables", c, (angles - theta).sin()
    yield "mixed_tables", c, (angles + theta).sin()
    yield "missing_sin", c, torch.ones_like(c)
    yield "missing_cos", torch.ones_like(s), s
    yield "bf16_table", c.bfloat16().double(), s.bfloat16().double()


def _mixed(c: Tensor, s: Tensor) -> Iterator[tuple[str, tuple[Tensor, ...]]]:
    none, one = torch.zeros_like(c), torch.ones_like(c)
    yield "", (c, -s, s, c)
    yield "missing_minus", (c, s, s, c)
    yield "overwritten", (c, -s, c * s, c - s * s)
    yield "overwritten", (c - s * s, -s * c, s, c)
    for x, y in ((none, one), (none, none), (none, c), (s, none)):
        yield "half_turned", (c, -s, x, y)
        yield "half_turned", (y, x, s, c)
    yield "missing_cos", (none, -s, s, none)
    yield "missing_sin", (c, none, none, c)
    yield "uncrossed", (c - s, none, none, c + s)
