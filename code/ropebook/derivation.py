"""The rotation: derived from what a score should know, not asserted.

Notation: position m of the query, n of the key, distance Δ = m − n, head dimension d (even), pair i = 0 … d/2 − 1, frequency
θ_i = base^(−2i/d) in radians per position. R_m turns pair i counter-clockwise by mθ_i:

    [cos mθ_i   −sin mθ_i]
    [sin mθ_i    cos mθ_i]

The score of a query at m and a key at n is ⟨R_m q, R_n k⟩ = qᵀ R_{n−m} k, as in Su et al., "RoFormer" (2021), section 3.

Which entries form pair i is the layout: "interleaved" (2i with 2i + 1, the paper's) or "half" (i with i + d/2). All
matrices and angles are float64; under mps, which has none, they are on the CPU. The symbolic steps need sympy, which is
imported where it is used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.rope import Positions

if TYPE_CHECKING:
    import sympy


# --- The rotation ----------------------------------------------------------------------------------------------------


def rotation(angle: Positions) -> Tensor:
    """The plane turned counter-clockwise by ``angle`` radians: shape angle.shape + (2, 2), float64.

    ``angle``: a tensor, array, list or number; integers, float32 or float64, at most 2^31 in size.

    >>> rotation(torch.pi / 2).round(decimals=12) + 0.0
    tensor([[ 0., -1.],
            [ 1.,  0.]], dtype=torch.float64)
    """
    angle = _float64("angle", angle)
    cos, sin = angle.cos(), angle.sin()
    return torch.stack((cos, -sin, sin, cos), dim=-1).unflatten(-1, (2, 2))


def pairs(dim: int, layout: str = "interleaved") -> Tensor:
    """Which two entries of a vector turn together: row i holds the indices of pair i. Shape (dim/2, 2), int64.

    >>> pairs(6).tolist(), pairs(6, "half").tolist()
    ([[0, 1], [2, 3], [4, 5]], [[0, 3], [1, 4], [2, 5]])
    """
    entries = torch.arange(checks.even("dim", dim))
    if checks.layout(layout) == "half":
        return entries.view(2, -1).T
    return entries.view(-1, 2)


def rotation_matrix(
    positions: Positions,
    dim: int,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """R_m, which turns pair i by mθ_i: shape positions.shape + (dim, dim), float64.

    One 2 × 2 rotation per pair and zeros elsewhere (Su et al. 2021, section 3.2.2, equation 15). ``positions`` as in
    `ropebook.sinusoidal.angles`: negative and fractional ones too.

    >>> R = rotation_matrix(range(8), dim=6)
    >>> bool((R[5].T @ R[2]).allclose(R[3].T))  # R_mᵀ R_n = R_{n−m}
    True
    """
    blocks = rotation(rope.angles(positions, dim, base))
    return _on_the_diagonal(blocks, layout)


def rotate(
    x: Tensor,
    positions: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """R_m x for every vector x of length dim and its position m: shape (…, dim), in x's dtype and on its device.

    ``x``: floating point, (…, dim), such as (batch, heads, seq, dim). ``positions``: of a shape that broadcasts with x's
    axes but the last, such as (seq,). Computed in float64; only the result is cast.

    >>> rotate(torch.tensor([1.0, 2.0, 3.0, 4.0]), 2)
    tensor([-2.2347,  0.0770,  2.9194,  4.0592])
    """
    dim = _last_axis("x", x)
    order = pairs(dim, layout)
    blocks = rotation(rope.angles(positions, dim, base))
    _broadcasting("positions", blocks.shape[:-3], x.shape[:-1])
    where = rope.float64_device(x.device)
    columns = x.to(where).double()[..., order].unsqueeze(-1)
    turned = (blocks.to(where) @ columns).flatten(-3)  # pair after pair
    return turned[..., order.flatten().argsort()].to(x.dtype).to(x.device)


def score(
    q: Tensor,
    k: Tensor,
    m: Positions,
    n: Positions,
    base: float = 10000.0,
    layout: str = "interleaved",
) -> Tensor:
    """The score ⟨R_m q, R_n k⟩, not divided by √dim: the broadcast shape of all four without the last axis, float64.

    ``q``, ``k``: (…, dim), floating point; ``m``, ``n``: positions that broadcast with the axes before.

    >>> q, k = torch.tensor([[1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 1.0, 0.0]])
    >>> score(q, k, m=[7, 107], n=[5, 105])
    tensor([2.9964, 2.9964], dtype=torch.float64)
    """
    if _last_axis("q", q) != _last_axis("k", k):
        raise ValueError(
            f"q and k must agree in their last axis, got shapes {tuple(q.shape)} and {tuple(k.shape)}"
        )
    query, key = (
        rotate(rope.in_float64(vector), at, base, layout)
        for vector, at in ((q, m), (k, n))
    )
    _broadcasting("k, rotated,", key.shape, query.shape)
    return (query * key).sum(-1)


def generator(
    dim: int, base: float = 10000.0, layout: str = "interleaved"
) -> Tensor:
    """The skew-symmetric matrix Ω with R_m = exp(mΩ): shape (dim, dim), float64.

    Its block for pair i is θ_i J, with J the quarter turn [[0, −1], [1, 0]].

    >>> generator(4)
    tensor([[ 0.0000, -1.0000,  0.0000,  0.0000],
            [ 1.0000,  0.0000,  0.0000,  0.0000],
            [ 0.0000,  0.0000,  0.0000, -0.0100],
            [ 0.0000,  0.0000,  0.0100,  0.0000]], dtype=torch.float64)
    """
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    return _on_the_diagonal(
        rope.inv_freq(dim, base)[:, None, None] * quarter, layout
    )


def _on_the_diagonal(blocks: Tensor, layout: str) -> Tensor:
    """The matrix whose 2 × 2 block for pair i is blocks[…, i, :, :], and which is zero elsewhere."""
    dim = 2 * blocks.shape[-3]
    order = pairs(dim, layout)
    result = blocks.new_zeros(*blocks.shape[:-3], dim, dim)
    result[..., order[:, :, None], order[:, None, :]] = blocks
    return result


# --- The derivation in the plane, step by step -----------------------------------------------------------------------


class Polar(NamedTuple):
    """What is asked, f(q, m)·conj f(k, n) = g(q, k, m − n), in polar form: one equation for lengths, one for angles."""

    lengths: sympy.Eq
    angles: sympy.Eq


class Phase(NamedTuple):
    """The angle φ(m) by which position m turns: the step, with all m on its left and all else on its right, the recurrence
    that it is, and the recurrence's solution."""

    step: sympy.Eq
    recurrence: sympy.Eq
    solution: sympy.Eq


def polar_form() -> Polar:
    """Write f(q, m) = r(q, m)·e^{iΦ(q, m)} and g likewise; the logarithm parts lengths from angles.

    The angles are equal up to whole turns. Su et al. (2021), section 3.4.1.

    >>> polar_form().angles
    Eq(-Phi(k, n) + Phi(q, m), Phi_g(q, k, m - n))
    """
    import sympy

    k, m, n, q = _symbols("k m n q")
    demanded = _polar("r", "Phi", q, m) * sympy.conjugate(_polar("r", "Phi", k, n))
    found = _polar("r_g", "Phi_g", q, k, m - n)
    left, right = (
        sympy.expand_log(sympy.log(side), force=True) for side in (demanded, found)
    )
    return Polar(
        sympy.Eq(sympy.exp(sympy.re(left)), sympy.exp(sympy.re(right))),
        sympy.Eq(sympy.im(left), sympy.im(right)),
    )


def length_at(equation: sympy.Eq) -> sympy.Eq:
    """Put k = q and n = m into the equation of the lengths: r(q, m) is what it was at m = 0, the length of q.

    >>> length_at(polar_form().lengths)
    Eq(r(q, m), r(q, 0))
    """
    import sympy

    k, m, n, q = _symbols("k m n q")
    here = equation.subs({k: q, n: m})
    start = here.subs(m, 0)
    unknown = _length(q, m)
    roots = sympy.solve(here.subs(start.rhs, start.lhs), unknown)
    [found] = [root for root in roots if root.is_positive]  # a length
    return sympy.Eq(unknown, found)


def angle_at(equation: sympy.Eq) -> sympy.Eq:
    """Put n = m into the equation of the angles: Φ(q, m) is what it was at m = 0, and an amount without q in it.

    ``ValueError`` if the amount does depend on q.

    >>> angle_at(polar_form().angles)
    Eq(Phi(q, m), -Phi(k, 0) + Phi(k, m) + Phi(q, 0))
    """
    import sympy

    m, n, q = _symbols("m n q")
    here = equation.subs(n, m)
    start = here.subs(m, 0)
    unknown = _angle(q, m)
    [found] = sympy.solve(here.subs(start.rhs, start.lhs), unknown)
    amount = found - _angle(q, 0)
    if amount.has(q):
        raise ValueError(f"equation must turn all q by one amount, got {amount}")
    return sympy.Eq(unknown, found)


def phase(equation: sympy.Eq) -> Phase:
    """Put Φ(q, m) as `angle_at` has it and n = m − 1 into the equation of the angles, and solve the recurrence for φ.

    The amount by which Φ(q, m) has grown since m = 0 has no q in it, and what it equals has no k: it is a function φ of m
    alone. Of the equation at n = m − 1 all that has an m comes to the left and the rest to the right. The left side then
    has neither q nor k and the right side no m, so that both are one number, θ. φ(0) = 0.

    ``ValueError`` if the amount depends on q, or if the left side is anything but φ(m) − φ(m − 1).

    >>> phase(polar_form().angles).step
    Eq(phi(m) - phi(m - 1), Phi(k, 0) - Phi(q, 0) + Phi_g(q, k, 1))
    >>> phase(polar_form().angles).solution
    Eq(phi(m), m*theta)
    """
    import sympy

    m, n, q = _symbols("m n q")
    theta = sympy.Symbol("theta", real=True)
    turned = sympy.Function("phi", real=True)
    found = angle_at(equation).rhs
    named = found.subs(found - _angle(q, 0), turned(m))  # Φ(q, 0) + φ(m)
    neighbours = equation.replace(
        sympy.Function("Phi", real=True),
        lambda vector, position: named.subs(
            {q: vector, m: position}, simultaneous=True
        ),
    ).subs(n, m - 1)
    fixed, moving = sympy.expand(neighbours.lhs - neighbours.rhs).as_independent(
        m, as_Add=True
    )
    if moving != turned(m) - turned(m - 1):
        raise ValueError(
            f"equation must have no m in a step but φ(m) − φ(m − 1), got {moving}"
        )
    recurrence = sympy.Eq(turned(m), turned(m - 1) + theta)
    solution = sympy.rsolve(recurrence, turned(m), {turned(0): 0})
    return Phase(
        sympy.Eq(moving, -fixed), recurrence, sympy.Eq(turned(m), solution)
    )


def turned_vector(solution: sympy.Eq) -> sympy.Matrix:
    """The matrix that the derivation ends with: (x + iy)·e^{iφ(m)} as a matrix acting on the column (x, y).

    >>> turned_vector(phase(polar_form().angles).solution)
    Matrix([
    [cos(m*theta), -sin(m*theta)],
    [sin(m*theta),  cos(m*theta)]])
    """
    import sympy

    x, y = sympy.symbols("x y", real=True)
    turned = sympy.expand((x + sympy.I * y) * sympy.exp(sympy.I * solution.rhs))
    return sympy.Matrix([sympy.re(turned), sympy.im(turned)]).jacobian([x, y])


def rotate_exactly(q: list, position: int, base: int = 10000) -> sympy.Matrix:
    """R_m q without rounding, for the example by hand: a column of sines and cosines; interleaved.

    ``q``: whole numbers or sympy numbers, an even count of them; ``position`` and ``base``: whole numbers.

    >>> rotate_exactly([1, 2], position=2).T
    Matrix([[-2*sin(2) + cos(2), 2*cos(2) + sin(2)]])
    """
    import sympy

    dim = checks.even("the length of q", len(q))
    position = checks.integer("position", position)
    base = checks.integer("base", base, minimum=1)
    blocks = []
    for i in range(dim // 2):
        angle = position * sympy.Integer(base) ** sympy.Rational(-2 * i, dim)
        cos, sin = sympy.cos(angle), sympy.sin(angle)
        blocks.append(sympy.Matrix([[cos, -sin], [sin, cos]]))
    return sympy.diag(*blocks) * sympy.Matrix(q)


def _polar(length: str, angle: str, *arguments: sympy.Expr) -> sympy.Expr:
    import sympy

    return _length(*arguments, name=length) * sympy.exp(
        sympy.I * _angle(*arguments, name=angle)
    )


def _length(*arguments: sympy.Expr, name: str = "r") -> sympy.Expr:
    import sympy

    return sympy.Function(name, positive=True)(*arguments)


def _angle(*arguments: sympy.Expr, name: str = "Phi") -> sympy.Expr:
    import sympy

    return sympy.Function(name, real=True)(*arguments)


def _symbols(names: str) -> tuple[sympy.Symbol, ...]:
    """q and k, which stand for vectors, and the whole numbers m and n."""
    import sympy

    return tuple(
        sympy.Symbol(name, integer=True) if name in "mn" else sympy.Symbol(name)
        for name in names.split()
    )


# --- Any dimension: what else would do, and why pairs are enough -------------------------------------------------------


def reflection(angle: Positions) -> Tensor:
    """The plane mirrored in the line at angle/2 radians: F = Fᵀ, F² = I, det F = −1. Shape angle.shape + (2, 2).

    >>> reflection(0.0)
    tensor([[ 1.,  0.],
            [ 0., -1.]], dtype=torch.float64)
    """
    turn = rotation(angle)
    mirror = torch.tensor([1.0, -1.0], dtype=torch.float64, device=turn.device)
    return turn * mirror


def breach(step: Tensor, reach: int) -> float:
    """How far O_n = stepⁿ is from what is asked: the largest entry of O_mᵀ O_n − O_{n−m} for |m|, |n| ≤ reach.

    Zero but for rounding if ``step`` is orthogonal, whichever orthogonal matrix it is. ``step``: (dim, dim), invertible.

    >>> breach(reflection(0.0), reach=5), breach(torch.tensor([[1.0, 1.0], [0.0, 1.0]]), reach=1)
    (0.0, 1.0)
    """
    _square("step", step)
    reach = checks.integer("reach", reach, minimum=1)
    step = rope.in_float64(step)
    exponents = range(-2 * reach, 2 * reach + 1)
    try:
        family = torch.stack(
            [torch.linalg.matrix_power(step, n) for n in exponents]
        )
    except torch.linalg.LinAlgError:
        raise ValueError("step must be invertible, got a singular matrix") from None
    n = torch.arange(-reach, reach + 1)
    at = 2 * reach  # where O_0 is
    products = family[at + n[:, None]].mT @ family[at + n]
    return (products - family[at + n - n[:, None]]).abs().max().item()


class NormalForm(NamedTuple):
    """Ω = basis · diag(θ_0 J, θ_1 J, …) · basisᵀ, with an orthogonal basis and θ_0 ≥ θ_1 ≥ … ≥ 0."""

    basis: Tensor
    frequencies: Tensor


def normal_form(skew: Tensor) -> NormalForm:
    """The planes that a skew-symmetric matrix Ω turns, and how fast: basis (dim, dim), frequencies (dim/2,).

    Columns 2i and 2i + 1 of the basis span the plane of pair i: Ω carries the first to θ_i times the second, the second
    to −θ_i times the first. So exp(mΩ) = basis · R_m · basisᵀ with these frequencies.
    ``skew``: Ω, (dim, dim), dim even, Ωᵀ = −Ω up to rounding. From the eigenvectors of the Hermitian matrix iΩ; float64.
    (Horn and Johnson, "Matrix Analysis", 2nd edition, section 2.5.)

    >>> normal_form(torch.tensor([[0.0, 3.0], [-3.0, 0.0]])).frequencies
    tensor([3.], dtype=torch.float64)
    """
    dim = checks.even("the size of skew", _square("skew", skew).shape[0])
    skew = rope.in_float64(skew)
    size = skew.abs().max().item()
    skewness = (skew + skew.T).abs().max().item()
    if skewness > 1e-6 * size:
        raise ValueError(
            f"skew must be skew-symmetric, but its sum with its transpose has an entry of size {skewness:.3g}"
        )
    values, vectors = torch.linalg.eigh(1j * (skew - skew.T) / 2)
    turning = values.flip(0) > dim * torch.finfo(skew.dtype).eps * size
    planes = torch.view_as_real(vectors.flip(1)[:, turning]).flatten(-2)
    basis, _ = torch.linalg.qr(planes, mode="complete")  # and what does not turn
    first, second = basis[:, ::2], basis[:, 1::2]
    frequencies = (second * (skew @ first)).sum(0)
    # A basis may run through a plane the other way round: mirror those.
    sign = torch.where(frequencies < 0, -1.0, 1.0).double()
    basis = torch.stack((first, second * sign), dim=-1).flatten(-2)
    return NormalForm(basis, frequencies.abs())


# --- Checks of arguments ---------------------------------------------------------------------------------------------


def _last_axis(name: str, vectors: Tensor) -> int:
    if checks.floating(name, vectors).ndim == 0:
        raise ValueError(f"{name} must have shape (..., dim), got a single number")
    return vectors.shape[-1]


def _broadcasting(name: str, shape: torch.Size, other: torch.Size) -> None:
    try:
        torch.broadcast_shapes(shape, other)
    except RuntimeError:
        raise ValueError(
            f"{name} must broadcast with {tuple(other)}, got shape {tuple(shape)}"
        ) from None


def _square(name: str, matrix: Tensor) -> Tensor:
    checks.floating(name, matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(
            f"{name} must have shape (dim, dim), got {tuple(matrix.shape)}"
        )
    if not matrix.isfinite().all():
        raise ValueError(f"{name} must be finite, got NaN or infinity")
    return matrix


def _float64(name: str, value: Positions) -> Tensor:
    return rope.in_float64(rope.as_positions(name, value))
