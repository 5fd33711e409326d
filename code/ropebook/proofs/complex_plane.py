"""The checks of the *RoPE in the complex plane* chapter.

The identities contain no numbers, so they hold for every frequency and every pair. A score is a sum over pairs. So an
identity for one pair, (x, y) of the query with (u, v) of the key, holds for each term of the sum, and for every d.
sympy takes the real and imaginary parts.

The definitions are compared with the page's formulas, written out in plain Python. The statements are measured.
"""

from __future__ import annotations

import sympy
import torch

from ropebook import complex_plane, derivation
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off, random

m, n, p, Delta = sympy.symbols("m n p Delta", real=True)
x, y, u, v = sympy.symbols("x y u v", real=True)
theta = sympy.Symbol("theta", real=True)
d = sympy.Symbol("d", integer=True, positive=True)
i = sympy.Symbol("i", integer=True)
frequency = sympy.IndexedBase("theta", real=True)
I = sympy.I  # noqa: E741 (the imaginary unit, as sympy calls it)


def turn(angle: sympy.Expr) -> sympy.Expr:
    """Return e^{i·angle}."""
    return sympy.exp(I * angle)


def turned(pair: tuple[sympy.Expr, sympy.Expr], angle: sympy.Expr) -> sympy.Matrix:
    """Rotate a pair of entries with the rotation matrix, without using complex numbers."""
    cos, sin = sympy.cos(angle), sympy.sin(angle)
    return sympy.Matrix([[cos, -sin], [sin, cos]]) * sympy.Matrix(pair)


def number(pair: tuple[sympy.Expr, sympy.Expr]) -> sympy.Expr:
    """Return the complex number for a pair."""
    return pair[0] + I * pair[1]


def real(z: sympy.Expr) -> sympy.Expr:
    """Return the real part of z."""
    return z.as_real_imag()[0]


def amplitudes(
    one: tuple[sympy.Expr, sympy.Expr], other: tuple[sympy.Expr, sympy.Expr]
) -> tuple[sympy.Expr, sympy.Expr]:
    """Return the amplitudes a and b for a pair of q and a pair of k."""
    return (
        one[0] * other[0] + one[1] * other[1],
        one[0] * other[1] - one[1] * other[0],
    )


def _sum_over_pairs(term: sympy.Expr) -> sympy.Sum:
    return sympy.Sum(term, (i, 0, d / 2 - 1))


# --- The map ---------------------------------------------------------------------------------------------------------


@definition(
    "eq-complex-plane-map",
    implements="ropebook.complex_plane.to_complex",
    twin="real and imaginary parts swapped",
)
def mapped(wrong: bool = False) -> list[Claim]:
    """z_j = x_{2j} + i x_{2j+1}, where i is the imaginary unit."""
    x = random(3, 8)
    parts = (1, 0) if wrong else (0, 1)
    expected = [
        [
            complex(row[2 * pair + parts[0]], row[2 * pair + parts[1]])
            for pair in range(4)
        ]
        for row in x.tolist()
    ]
    off = complex_plane.to_complex(x) - torch.tensor(
        expected, dtype=torch.complex128
    )
    return [Claim("three vectors of four pairs", off.abs().max().item(), 0)]


@identity("eq-complex-plane-dot", "u", "v", "x", "y", twin="no conjugate")
def dot(wrong: bool = False) -> Pairs:
    """(x, y)·(u, v) = Re[z conj w], with z = x + iy and w = u + iv."""
    w = number((u, v))
    return [
        (
            x * u + y * v,
            real(number((x, y)) * (w if wrong else sympy.conjugate(w))),
        )
    ]


@identity(
    "eq-complex-plane-turn", "m", "x", "y", r"\theta", twin="rotated the other way"
)
def turning(wrong: bool = False) -> Pairs:
    """The complex number for R_m(x, y) is (x + iy)·e^{imθ}."""
    angle = -m * theta if wrong else m * theta
    # We compare the real and imaginary parts of both sides, written with cosines and sines.
    left = number(turned((x, y), m * theta))
    right = number((x, y)) * turn(angle)
    return list(zip(left.as_real_imag(), right.as_real_imag(), strict=True))


# --- The score -------------------------------------------------------------------------------------------------------


@identity(
    "eq-complex-plane-score",
    "m",
    "n",
    "u",
    "v",
    "x",
    "y",
    r"\theta",
    twin="no conjugate",
)
def score(wrong: bool = False) -> Pairs:
    """⟨R_m (x, y), R_n (u, v)⟩ = Re[z conj(w) e^{i(m−n)θ}]."""
    z, w = number((x, y)), number((u, v))
    product = z * (w if wrong else sympy.conjugate(w))
    return [
        (
            turned((x, y), m * theta).dot(turned((u, v), n * theta)),
            real(product * turn((m - n) * theta)),
        )
    ]


@identity(
    "eq-complex-plane-dropped",
    "m",
    "n",
    "u",
    "v",
    "x",
    "y",
    r"\theta",
    twin="m − n instead of m + n",
)
def dropped(wrong: bool = False) -> Pairs:
    """Re[z e^{imθ} w e^{inθ}] = ⟨R_{m+n} (x, y), (u, −v)⟩."""
    z, w = number((x, y)), number((u, v))
    both = m - n if wrong else m + n
    return [
        (
            real(z * turn(m * theta) * w * turn(n * theta)),
            turned((x, y), both * theta).dot(sympy.Matrix([u, -v])),
        )
    ]


@definition(
    "eq-complex-plane-amplitudes",
    implements="ropebook.complex_plane.amplitudes",
    twin="a minus inside a_i, and b_i with its sign flipped",
)
def amplitudes_of(wrong: bool = False) -> list[Claim]:
    """a_i = q_{2i} k_{2i} + q_{2i+1} k_{2i+1} and b_i = q_{2i} k_{2i+1} − q_{2i+1} k_{2i}."""
    q, k = random(2, 8)
    sign = -1 if wrong else 1
    a = [q[j] * k[j] + sign * q[j + 1] * k[j + 1] for j in range(0, 8, 2)]
    b = [sign * (q[j] * k[j + 1] - q[j + 1] * k[j]) for j in range(0, 8, 2)]
    found = complex_plane.amplitudes(q, k)
    return [
        Claim(f"four of {name}", off(ours, theirs), 1e-15)
        for name, ours, theirs in zip("ab", found, (a, b), strict=True)
    ]


@identity(
    "eq-complex-plane-fourier",
    "n",
    "u",
    "v",
    "x",
    "y",
    r"\Delta",
    r"\theta",
    twin="b with its sign flipped",
)
def fourier(wrong: bool = False) -> Pairs:
    """⟨R_{n+Δ} (x, y), R_n (u, v)⟩ = a cos Δθ + b sin Δθ."""
    a, b = amplitudes((x, y), (u, v))
    cos, sin = sympy.cos(Delta * theta), sympy.sin(Delta * theta)
    return [
        (
            turned((x, y), (n + Delta) * theta).dot(turned((u, v), n * theta)),
            a * cos + (-b if wrong else b) * sin,
        )
    ]


@identity(
    "eq-complex-plane-phase",
    r"\Delta",
    r"\alpha",
    r"\beta",
    r"\theta",
    "r",
    "s",
    twin="the phase with its sign flipped",
)
def phase(wrong: bool = False) -> Pairs:
    """a cos Δθ + b sin Δθ = r s cos(Δθ + φ), with q = r e^{iα}, k = s e^{iβ} and φ = α − β."""
    r, s = sympy.symbols("r s", positive=True)
    alpha, beta = sympy.symbols("alpha beta", real=True)
    one, other = (
        (size * sympy.cos(angle), size * sympy.sin(angle))
        for size, angle in ((r, alpha), (s, beta))
    )
    a, b = amplitudes(one, other)
    angle = Delta * theta
    phi = beta - alpha if wrong else alpha - beta
    return [
        (
            a * sympy.cos(angle) + b * sympy.sin(angle),
            r * s * sympy.cos(angle + phi),
        )
    ]


# --- When it is symmetric --------------------------------------------------------------------------------------------


@identity(
    "eq-complex-plane-odd",
    "a",
    "b",
    "d",
    r"\Delta",
    r"\theta",
    twin="a instead of b",
)
def odd(wrong: bool = False) -> Pairs:
    """S(Δ) − S(−Δ) = 2 Σ_i b_i sin Δθ_i."""
    a, b = (sympy.IndexedBase(name, real=True) for name in "ab")

    def wave(distance: sympy.Expr) -> sympy.Expr:
        angle = distance * frequency[i]
        return a[i] * sympy.cos(angle) + b[i] * sympy.sin(angle)

    return [
        (
            _sum_over_pairs(wave(Delta)) - _sum_over_pairs(wave(-Delta)),
            2
            * _sum_over_pairs(
                (a if wrong else b)[i] * sympy.sin(Delta * frequency[i])
            ),
        )
    ]


@statement(
    "eq-complex-plane-symmetric",
    twin="base 1, so only one frequency; and b_i = 1, not 0",
)
def symmetric(wrong: bool = False) -> list[Claim]:
    """Both directions. ⇒: for every b of length 1, S has an odd part. ⇐: with b = 0, S is even. The odd part is Σ_i b_i
    sin Δθ_i at Δ = 1, 2, 3, … Over all b of length 1, its smallest norm is the smallest singular value of the matrix
    of these sines. We check that this value is not 0.
    """
    claims = []
    for dim, base, reach in ((8, 10_000.0, 10_000), (16, 100.0, 1000)):
        table = complex_plane.waves(
            torch.arange(1, reach + 1), dim, 1.0 if wrong else base
        )[:, dim // 2 :]
        least = torch.linalg.svdvals(table)[-1].item()
        claims.append(
            Claim(
                f"⇒, 1 / the least odd part, d = {dim}", 1 / max(least, 1e-300), 1.0
            )
        )
        a, b = random(dim // 2), torch.full((dim // 2,), float(wrong)).double()
        ahead, behind = (
            complex_plane.score_at(sign * torch.arange(100), a, b, base)
            for sign in (1, -1)
        )
        claims.append(Claim(f"⇐, d = {dim}", off(ahead, behind), 0))
    return claims


# --- A peak wherever you like
# ------------------------------------------------------------------------------------------


@definition(
    "eq-complex-plane-key",
    implements="ropebook.complex_plane.key_for",
    twin="rotated the other way",
)
def key_at(wrong: bool = False) -> list[Claim]:
    """k = R_p q."""
    q = random(8)
    expected = derivation.rotation_matrix(-777 if wrong else 777, 8) @ q
    return [Claim("R_777 q", off(complex_plane.key_for(q, 777), expected), 1e-12)]


@identity(
    "eq-complex-plane-peak",
    "p",
    "x",
    "y",
    r"\Delta",
    r"\theta",
    twin="Δ + p instead of Δ − p",
)
def peak(wrong: bool = False) -> Pairs:
    """⟨R_Δ (x, y), R_p (x, y)⟩ = (x² + y²) cos (Δ − p)θ."""
    distance = Delta + p if wrong else Delta - p
    return [
        (
            turned((x, y), Delta * theta).dot(turned((x, y), p * theta)),
            (x**2 + y**2) * sympy.cos(distance * theta),
        )
    ]


@statement("eq-complex-plane-highest", twin="the key rotated the other way")
def highest(wrong: bool = False) -> list[Claim]:
    """With k = R_p q and p = 777, S(p) = |q|², and S is smaller at every other distance up to 5,000."""
    q, place = random(64), 777
    k = complex_plane.key_for(q, -place if wrong else place)
    distances = torch.arange(-5000, 5001)
    scores = complex_plane.score_at(distances, *complex_plane.amplitudes(q, k))
    others = scores[distances != place].max() - scores[distances == place]
    return [
        Claim(
            "S(777) and |q|²", abs(scores[distances == place] - q @ q).item(), 1e-9
        ),
        Claim("another score, above S(777)", others.item(), -0.1),
    ]
