"""The formula behind a map that is not a rotation: a pair's matrix entries as polynomials in cos φ and sin φ."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.measures import SINGLE, Matrices

TERMS = ("", "·cos φ", "·sin φ", "·cos² φ", "·cos φ·sin φ")
# (a, b) should be mapped to (a·cos φ − b·sin φ, a·sin φ + b·cos φ). For each of the four coefficients: the index of
# its term, and its sign.
RIGHT = ((1, 1.0), (2, -1.0), (2, 1.0), (1, 1.0))


def formula(
    matrix: Matrices,
    first: tuple[int, ...],
    second: tuple[int, ...],
    theta: Tensor,
) -> str | None:
    """Write the map of a pair (a, b) as a formula, given the frequencies ``theta`` (pairs,).

    Returns None if no formula fits.

    >>> m = torch.arange(12.0, dtype=torch.float64)
    >>> matrix = torch.zeros(12, 2, 2, dtype=torch.float64)
    >>> matrix[:, 0, 1], matrix[:, 1, 0] = -m.cos(), m.sin()
    >>> formula(matrix, (0,), (1,), torch.ones(1)).partition(": ")[0]
    '(a, b) goes to (−b·cos φ, a·sin φ)'
    """
    numbers = [
        matrix[:, list(row), list(column)]
        for row in (first, second)
        for column in (first, second)
    ]
    angles = torch.arange(len(matrix), dtype=torch.float64)[:, None] * theta
    cos, sin = angles.cos().flatten(), angles.sin().flatten()
    basis = torch.stack(
        (torch.ones_like(cos), cos, sin, cos.square(), cos * sin), -1
    )
    weights = []
    for one in numbers:
        found = torch.linalg.lstsq(
            basis, one.flatten()[:, None], driver="gelsd"
        ).solution[:, 0]
        if (basis @ found - one.flatten()).abs().max() > 10 * SINGLE:
            return None
        found = torch.where(found.abs() < 1e-3, 0.0, found)
        weights.append(found.tolist())
    rows = [_row(weights[at], weights[at + 1]) for at in (0, 2)]
    missing = [
        name + TERMS[term]
        for name, one, (term, _) in zip("abab", weights, RIGHT, strict=True)
        if not one[term]
    ]
    said = f"(a, b) goes to ({rows[0]}, {rows[1]})"
    if missing:
        there = "is" if len(missing) == 1 else "are"
        return f"{said}: of a rotation's terms, {' and '.join(missing)} {there} missing"
    return f"{said}: a rotation has (a·cos φ − b·sin φ, a·sin φ + b·cos φ)"


def _row(a: list[float], b: list[float]) -> str:
    """Format one output as a sum, such as "a·cos φ − b·sin φ"."""
    said = ""
    for name, weights in (("a", a), ("b", b)):
        for weight, term in zip(weights, TERMS, strict=True):
            if weight:
                size = "" if abs(abs(weight) - 1) < 1e-3 else f"{abs(weight):.3g}·"
                sign = " − " if weight < 0 else " + "
                said += f"{sign}{size}{name}{term}"
    if not said:
        return "0"
    return said[3:] if said.startswith(" + ") else f"−{said[3:]}"
