"""The checks of the book's first page: RoPE in four lines, and the frequencies of its pairs."""

from __future__ import annotations

import math

import sympy

from ropebook import rope
from ropebook.proofs import Claim, Pairs, definition, identity

m, n, theta_0, theta_1 = sympy.symbols("m n theta_0 theta_1", real=True)


def rotation(position: sympy.Expr) -> sympy.Matrix:
    """Return R at a position, for two pairs with different frequencies. Each further pair would add a block of the
    same kind."""
    blocks = []
    for theta in (theta_0, theta_1):
        cos, sin = sympy.cos(position * theta), sympy.sin(position * theta)
        blocks.append(sympy.Matrix([[cos, -sin], [sin, cos]]))
    return sympy.diag(*blocks)


@identity(
    "eq-intro-distance",
    *("m", "n", r"\theta_{0}", r"\theta_{1}"),
    *(f"{name}_{{{i}}}" for name in "qk" for i in range(4)),
    twin="R_{m−n} in the last line, which rotates the wrong way",
)
def distance(wrong: bool = False) -> Pairs:
    """⟨R_m q, R_n k⟩ = qᵀ R_{n−m} k, for two pairs with any frequencies."""
    q, k = (sympy.Matrix(sympy.symbols(f"{name}_:4", real=True)) for name in "qk")
    score = (rotation(m) * q).dot(rotation(n) * k)
    last = q.T * rotation(m - n if wrong else n - m) * k
    return [(score, last[0])]


@definition(
    "eq-intro-frequencies",
    implements="ropebook.rope.angles",
    twin="half the head dimension instead of d, as if d counted pairs",
)
def frequencies(wrong: bool = False) -> list[Claim]:
    """Pair i rotates by m b^(−2i/d). We check this for several head dimensions."""
    claims = []
    for dim in (4, 64, 128):
        d = dim // 2 if wrong else dim
        by_hand = [7 * math.pow(10000.0, -2 * i / d) for i in range(dim // 2)]
        found = rope.angles(7, dim).tolist()
        off = max(abs(a - b) for a, b in zip(found, by_hand, strict=True))
        claims.append(Claim(f"angles at position 7, d = {dim}", off, 1e-14))
    return claims
