"""The checks of the *Implementing RoPE* chapter.

The identities are checked entry by entry for d = 4, 6 and 8 (the scores only for d = 4), with a symbol for each entry
of x and for each θ_i. No identity mixes one pair with another, so a larger d only adds more rows of the same kind.

The definitions are compared with the page's formulas, written out in plain Python. The statements are checked by measuring.
"""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import checks, efficient, precision, sinusoidal
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import Count, off, random

m, n = sympy.symbols("m n", real=True)
theta, x, g, q, k = (
    sympy.IndexedBase(name, real=True) for name in ("theta", *"xgqk")
)
DIMS = (4, 6, 8)


def pairs_of(dim: int, layout: str) -> list[tuple[int, int]]:
    """Return the indices of the entries that form each pair: (2i, 2i + 1), or (i, i + d/2)."""
    half = dim // 2
    if layout == "interleaved":
        return [(2 * i, 2 * i + 1) for i in range(half)]
    return [(i, i + half) for i in range(half)]


def column(entries: sympy.IndexedBase, dim: int) -> sympy.ImmutableMatrix:
    """Return the entries e_0 … e_{d−1} as a column."""
    return sympy.ImmutableMatrix([entries[j] for j in range(dim)])


def rotation(
    position: sympy.Expr, dim: int, layout: str = "interleaved"
) -> sympy.ImmutableMatrix:
    """Return the whole d × d matrix R at a position."""
    matrix = sympy.zeros(dim, dim)
    for i, (first, second) in enumerate(pairs_of(dim, layout)):
        cos, sin = sympy.cos(position * theta[i]), sympy.sin(position * theta[i])
        matrix[first, first], matrix[first, second] = cos, -sin
        matrix[second, first], matrix[second, second] = sin, cos
    return sympy.ImmutableMatrix(matrix)


def permutation(dim: int) -> sympy.ImmutableMatrix:
    """Return the permutation matrix P such that x_half = P x_interleaved. It puts the first entries of all pairs before
    the second entries."""
    order = [*range(0, dim, 2), *range(1, dim, 2)]
    return sympy.ImmutableMatrix(
        dim, dim, lambda row, column: int(order[row] == column)
    )


def _wave(wave: sympy.Function, dim: int, layout: str) -> sympy.ImmutableMatrix:
    """Return a column with cos mθ_i or sin mθ_i for each entry of a vector. Each value appears twice, once for each
    entry of the pair."""
    entries = [0] * dim
    for i, pair in enumerate(pairs_of(dim, layout)):
        for entry in pair:
            entries[entry] = wave(m * theta[i])
    return sympy.ImmutableMatrix(entries)


def _sparse(dim: int, layout: str, quarter: list[sympy.Expr]) -> tuple:
    """Return R_m x and x ⊗ cos + quarter ⊗ sin."""
    vector = column(x, dim)
    cos, sin = _wave(sympy.cos, dim, layout), _wave(sympy.sin, dim, layout)
    turned = sympy.ImmutableMatrix(quarter).multiply_elementwise(sin)
    return (
        rotation(m, dim, layout) * vector,
        vector.multiply_elementwise(cos) + turned,
    )


@identity(
    "eq-efficient-sparse-interleaved", "m", "x", r"\theta", twin="no minus sign"
)
def sparse_interleaved(wrong: bool = False) -> Pairs:
    """R_m x = x ⊗ cos + (−x_1, x_0, −x_3, x_2, …) ⊗ sin, where cos and sin use the frequencies (θ_0, θ_0, θ_1, θ_1,
    …)."""
    sign = 1 if wrong else -1
    return [
        _sparse(
            dim,
            "interleaved",
            [x[j - 1] if j % 2 else sign * x[j + 1] for j in range(dim)],
        )
        for dim in DIMS
    ]


@identity(
    "eq-efficient-sparse-half",
    "m",
    "x",
    r"\theta",
    twin="the quarter turn of the other layout",
)
def sparse_half(wrong: bool = False) -> Pairs:
    """R_m x = x ⊗ cos + (−x_{d/2}, …, x_0, …) ⊗ sin, where cos and sin use the frequencies (θ_0, θ_1, …, θ_0, θ_1,
    …)."""
    found = []
    for dim in DIMS:
        half = dim // 2
        quarter = [x[j - half] if j >= half else -x[j + half] for j in range(dim)]
        if wrong:
            quarter = [x[j - 1] if j % 2 else -x[j + 1] for j in range(dim)]
        found.append(_sparse(dim, "half", quarter))
    return found


@identity("eq-efficient-permutation", "m", r"\theta", twin="without Pᵀ")
def permuted(wrong: bool = False) -> Pairs:
    """P R_m Pᵀ is the rotation matrix of the half-split layout if R_m is that of the interleaved layout."""
    return [
        (
            permutation(dim)
            * rotation(m, dim)
            * (sympy.eye(dim) if wrong else permutation(dim).T),
            rotation(m, dim, "half"),
        )
        for dim in DIMS
    ]


@identity(
    "eq-efficient-scores", "m", "n", "q", "k", r"\theta", twin="only q permuted"
)
def scores(wrong: bool = False) -> Pairs:
    """(R_m^half P q)·(R_n^half P k) = (R_m q)·(R_n k), for d = 4."""
    dim = 4
    query, key, order = column(q, dim), column(k, dim), permutation(dim)
    moved = rotation(n, dim, "half") * (key if wrong else order * key)
    left = (rotation(m, dim, "half") * order * query).dot(moved)
    right = (rotation(m, dim) * query).dot(rotation(n, dim) * key)
    return [(left.expand(), right.expand())]


@identity(
    "eq-efficient-backward", "g", "m", r"\theta", twin="R_m instead of R_{−m}"
)
def backward(wrong: bool = False) -> Pairs:
    """The gradient of L with respect to x is R_mᵀ g = R_{−m} g, where g is the gradient with respect to R_m x. We check
    it for L = g · R_m x."""
    found = []
    for dim in DIMS:
        for layout in checks.LAYOUTS:
            gradient = column(g, dim)
            loss = gradient.dot(rotation(m, dim, layout) * column(x, dim))
            slopes = sympy.ImmutableMatrix([loss.diff(x[j]) for j in range(dim)])
            turn = rotation(m if wrong else -m, dim, layout)
            found.append((slopes, turn * gradient))
    return found


# --- Definitions: the module against the formula on the page ---------------------------------------------------------


@definition(
    "eq-efficient-pair",
    implements="ropebook.efficient.rotate_by_pairs",
    twin="the first line's minus sign in the second",
)
def by_pairs(wrong: bool = False) -> list[Claim]:
    """x₁′ = x₁ cos mθ_i − x₂ sin mθ_i, x₂′ = x₂ cos mθ_i + x₁ sin mθ_i."""
    length, dim, base = 50, 8, 50.0
    data = random(length, dim)
    frequencies = torch.tensor(
        [base ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64
    )
    tables = efficient.cos_sin(torch.arange(length), frequencies, torch.float64)
    claims = []
    for layout in checks.LAYOUTS:
        expected = torch.empty_like(data)
        for at in range(length):
            for i, (first, second) in enumerate(pairs_of(dim, layout)):
                angle = at * base ** (-2 * i / dim)
                cos, sin = math.cos(angle), math.sin(angle)
                x1, x2 = data[at, first].item(), data[at, second].item()
                sign = -1 if wrong else 1
                expected[at, first] = x1 * cos - sign * x2 * sin
                expected[at, second] = x2 * cos + sign * x1 * sin
        ours = efficient.rotate_by_pairs(data, *tables, layout)
        claims.append(Claim(f"50 positions, {layout}", off(ours, expected), 1e-13))
    return claims


@definition(
    "eq-efficient-convert",
    implements="ropebook.efficient.convert_weight",
    twin="the inverse order",
)
def converted(wrong: bool = False) -> list[Claim]:
    """In each head, row i of W^half is row 2i of W^int, and row i + d/2 is row 2i + 1."""
    heads, dim, inputs = 3, 8, 5
    weight, bias = random(heads * dim, inputs), random(heads * dim)
    rows = [None] * (heads * dim)
    for head in range(heads):
        for i in range(dim // 2):
            for step in (0, 1):
                one, other = i + step * dim // 2, 2 * i + step
                if wrong:
                    one, other = other, one
                rows[head * dim + one] = head * dim + other
    return [
        Claim(
            name,
            off(efficient.convert_weight(tensor, heads, dim, "half"), tensor[rows]),
            0,
        )
        for name, tensor in (("a weight", weight), ("a bias", bias))
    ]


@definition(
    "eq-efficient-cost",
    implements="ropebook.efficient.rotation_cost",
    twin="one head too many",
)
def cost(wrong: bool = False) -> list[Claim]:
    """For one token, we count the operations and bytes of three forms as torch runs them. Each of the H heads has d
    numbers of β bytes.

    The matrix and the sparse form are counted step by step. For the fused form, we count the operations in the two
    lines that a compiler joins, and the data that these lines read and write: x, the table and the result.
    """
    d, heads, tokens, size = 8, 40, 3, 4
    H = heads
    said = {
        "dense": (2 * d**2 * H, size * (2 * d * H + d**2)),
        "sparse": (3.5 * d * H, size * (10 * d * H + 2 * d)),
        "compiled": (3 * d * H, size * (2 * d * H + d)),
    }
    x = random(1, heads + 1 if wrong else heads, tokens, d).float()
    tables = efficient.cos_sin(torch.arange(tokens), sinusoidal.inv_freq(d))
    claims = []
    for form, (flops, moved) in said.items():
        run = "by_pairs" if form == "compiled" else form
        with Count(table=tokens * d * (d if form == "dense" else 4)) as count:
            y = efficient.FORMS[run](x, *tables)
        numbers = count.data + count.tables
        if form == "compiled":
            numbers = sum(one.numel() for one in (x, *tables, y))
        ours = efficient.rotation_cost(form, d, heads, bytes_per_element=size)
        for whose, found in (
            ("page", (flops, moved)),
            ("module", (ours.flops, ours.bytes)),
        ):
            off_by = (
                abs(found[0] - count.flops / tokens),
                abs(found[1] - size * numbers / tokens),
            )
            claims.append(Claim(f"{form}, {whose}: operations", off_by[0], 0))
            claims.append(Claim(f"{form}, {whose}: bytes", off_by[1], 0))
    return claims


# --- Statements ------------------------------------------------------------------------------------------------------


@statement("eq-efficient-precision", twin="ε/8 instead of ε")
def angle_error(wrong: bool = False) -> list[Claim]:
    """If an angle is computed in a type with machine epsilon ε, its error is at most ε|mθ|, and so are the errors of
    its cosine and sine.

    This assumes that m is exact in this type. First θ and then mθ is rounded, each with a relative error of at most
    ε/(2 + ε), which adds up to less than ε.
    """
    dim, claims = 64, []
    for dtype, last in (
        (torch.float32, 2**24),
        (torch.bfloat16, 2**8),
        (torch.float16, 2**11),
    ):
        positions = torch.arange(1, 257) * (last // 256)
        exact = precision.rounded_cos_sin(positions, dim)
        rounded = precision.rounded_cos_sin(
            positions, dim, dtype=dtype, rounded="angles"
        )
        frequencies = sinusoidal.inv_freq(dim)
        angles = positions[:, None] * frequencies
        in_type = positions.to(dtype)[:, None] * frequencies.to(dtype)
        rounded, exact = (in_type.double(), *rounded), (angles, *exact)
        epsilon = torch.finfo(dtype).eps / (8 if wrong else 1)
        for name, one, other in zip(
            ("angle", "cos", "sin"), rounded, exact, strict=True
        ):
            share = ((one - other).abs() / (epsilon * angles)).max().item()
            claims.append(
                Claim(f"{dtype}, {name}: error as a share of ε|mθ|", share, 1)
            )
    return claims
