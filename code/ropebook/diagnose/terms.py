"""Find the cosine or sine behind each entry of a pair's matrix. A misread table may give those of another pair."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.measures import SINGLE, Angles, Matrices

NOTHING = 1e-12
# The tables from which a correct rotation takes the four entries of a pair's matrix, row by row.
RIGHT = ("cos", "sin", "sin", "cos")


def terms(
    matrix: Matrices,
    first: tuple[int, ...],
    second: tuple[int, ...],
    theta: Tensor,
) -> str | None:
    """Say which table each entry of a pair is multiplied by, given the frequencies (pairs,).

    Returns None unless every entry of each pair's matrix is 0, or a cosine or sine of some pair's angle, and at least
    one of them is another than a rotation has there.

    >>> theta = torch.tensor([1.0, 0.1], dtype=torch.float64)
    >>> angles = torch.arange(12.0, dtype=torch.float64)[:, None] * theta
    >>> matrix = torch.zeros(12, 4, 4, dtype=torch.float64)
    >>> for i in (0, 1):
    ...     matrix[:, i, 2 + i], matrix[:, 2 + i, i] = -angles[:, 1 - i].cos(), angles[:, i].sin()
    >>> terms(matrix, (0, 1), (2, 3), theta).partition(":")[0]
    'pair 0 goes from (a, b) to (−b·cos φ1, a·sin φ0), pair 1 to (−b·cos φ0, a·sin φ1)'
    """
    numbers = torch.stack(
        [
            matrix[:, list(row), list(column)]
            for row in (first, second)
            for column in (first, second)
        ]
    )
    angles = torch.arange(len(matrix), dtype=torch.float64)[:, None] * theta
    found = [_tables(one, angles) for one in numbers]
    if any(one is None for one in found):
        return None
    sizes = [abs(size) for one in found for _, _, size in one if size]
    if not sizes or max(sizes) > (1 + 1e-3) * min(sizes):
        return None
    pairs = range(len(first))
    elsewhere = any(
        one[i][2] and one[i][:2] != (right, i)
        for one, right in zip(found, RIGHT, strict=True)
        for i in pairs
    )
    if not elsewhere:
        return None
    each = [
        f"pair {i} {'goes from (a, b) ' if i == 0 else ''}to ({_row(found[:2], i)}, {_row(found[2:], i)})"
        for i in pairs
    ]
    said = f"{', '.join(each[:2])}: cosines and sines are those of other pairs, or exchanged, as if one table of both were cut in "
    said += "the wrong halves or read in another order"
    if all(_alone(found[row : row + 2], i) for row in (0, 2) for i in pairs):
        said += ". Besides, each result is a single product, and the two terms (one with the cosine, one with the sine) are never added"
    return said


def _tables(numbers: Angles, angles: Angles) -> list[tuple[str, int, float]] | None:
    """Describe each column of ``numbers`` (positions, pairs) as a factor times a column of cosines or sines.

    An item contains "cos" or "sin", the pair whose angles these are, and the factor. A column of zeros gets the factor
    0. Returns None if a column is not such a multiple.
    """
    pairs = angles.shape[1]
    tables = torch.cat((angles.cos(), angles.sin()), 1)
    sizes = tables.square().sum(0)
    found = []
    for i, one in enumerate(numbers.T):
        most = one.abs().max()
        if most < NOTHING:
            found.append(("", i, 0.0))
            continue
        times = (tables.T @ one) / sizes.clamp(min=1e-30)
        off = (one[:, None] - times * tables).abs().amax(0) / most
        # of equally good fits, prefer those with a factor of about ±1, then one with the pair's own cosines or sines
        own = torch.arange(2 * pairs) % pairs != i
        rank = off.clamp(min=SINGLE) + 1e-6 * own + 1e-3 * (times.abs() - 1).abs()
        best = int(rank.argmin())
        if off[best] > 2 * SINGLE:
            return None
        name = "cos" if best < pairs else "sin"
        found.append((name, best % pairs, times[best].item()))
    return found


def _row(two: list, i: int) -> str:
    """Format one result of pair i as a sum, such as "a·cos φ1 − b·sin φ0"."""
    said = ""
    for name, one in zip("ab", two, strict=True):
        table, pair, size = one[i]
        if size:
            said += f"{' − ' if size < 0 else ' + '}{name}·{table} φ{pair}"
    if not said:
        return "0"
    return said[3:] if said.startswith(" + ") else f"−{said[3:]}"


def _alone(two: list, i: int) -> bool:
    return sum(1 for one in two if one[i][2]) == 1
