"""The checks of the *Rotary position embedding* chapter.

R_m is block-diagonal, and products, transposes and powers of such matrices can be taken block by block. So an identity
for one block with a symbolic θ_i is an identity for the whole matrix, for every d. Only the score adds up the blocks;
in that sum, d is symbolic too.

The definitions are compared with the page's formulas, written out in plain Python. The statements are measured.
"""

from __future__ import annotations

import math
from itertools import product

import sympy
import torch

from ropebook import derivation, sinusoidal
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off, random

a, b, m, n = sympy.symbols("a b m n", real=True)
alpha, theta, theta_i = sympy.symbols("alpha theta theta_i", real=True)
d = sympy.Symbol("d", integer=True, positive=True)
i = sympy.Symbol("i", integer=True)
frequency = sympy.IndexedBase("theta", real=True)
query, key = (sympy.IndexedBase(name, real=True) for name in "qk")
QUERY, KEY = (
    sympy.symbols("q_0 q_1", real=True),
    sympy.symbols("k_0 k_1", real=True),
)
J = sympy.ImmutableMatrix([[0, -1], [1, 0]])
PRODUCTS = [rf"\langle {pair} \rangle" for pair in ("q, q", "q, k", "k, k")]
UNIT = sympy.ImmutableMatrix(sympy.eye(2))


def block(
    position: sympy.Expr, sign: int = -1, turn: sympy.Expr = theta_i
) -> sympy.ImmutableMatrix:
    """Return block i of R at a position.

    ``sign`` is the sign of the upper sine: −1 in R itself, and 1 in deliberately wrong versions of some proofs.
    """
    cos, sin = sympy.cos(position * turn), sympy.sin(position * turn)
    return sympy.ImmutableMatrix([[cos, sign * sin], [sin, cos]])


def mirror(angle: sympy.Expr, sign: int = -1) -> sympy.ImmutableMatrix:
    """Return the reflection F.

    ``sign`` is the sign of the lower cosine: −1 in F itself, and 1 in a deliberately wrong version of a proof.
    """
    cos, sin = sympy.cos(angle), sympy.sin(angle)
    return sympy.ImmutableMatrix([[cos, sin], [sin, sign * cos]])


# --- In the plane ----------------------------------------------------------------------------------------------------


@identity("eq-derivation-polar", "k", "m", "n", "q", twin="no conjugate")
def polar(wrong: bool = False) -> Pairs:
    """f(q, m)·conj f(k, n) is a length times e^{i·angle}. The length and the angle come from
    `derivation.polar_form`."""
    vectors = sympy.symbols("q k")
    places = sympy.symbols("m n", integer=True)
    length, angle = (
        sympy.Function("r", positive=True),
        sympy.Function("Phi", real=True),
    )
    one, other = (
        length(*pair) * sympy.exp(sympy.I * angle(*pair))
        for pair in zip(vectors, places, strict=True)
    )
    found = derivation.polar_form()
    return [
        (
            one * (other if wrong else sympy.conjugate(other)),
            found.lengths.lhs * sympy.exp(sympy.I * found.angles.lhs),
        )
    ]


@identity(
    "eq-derivation-phase",
    "m",
    r"\theta",
    twin="doubling instead of adding at each step",
)
def phase(wrong: bool = False) -> Pairs:
    """Both directions. ⇒: for any solution φ = mθ + ε, ε(m) = ε(m − 1). Both φ and mθ are 0 at m = 0, so ε is 0 at
    every m. ⇐: `rsolve` finds mθ.

    The step comes from `derivation.phase`; ε is any function.
    """
    place = sympy.Symbol("m", integer=True)
    rest = sympy.Function("epsilon", real=True)
    found = derivation.phase(derivation.polar_form().angles)
    claimed = 2**place * theta if wrong else place * theta
    step = found.step.lhs.replace(
        sympy.Function("phi", real=True),
        lambda at: claimed.subs(place, at) + rest(at),
    )
    return [
        (step - theta, rest(place) - rest(place - 1)),
        (claimed.subs(place, 0), sympy.Integer(0)),
        (found.solution.rhs, claimed),
    ]


@identity(
    "eq-derivation-isometry",
    "a",
    "b",
    *PRODUCTS,
    twin="+ a f(q) instead of − a f(q)",
)
def isometry(wrong: bool = False) -> Pairs:
    """If ⟨f(u), f(v)⟩ = ⟨u, v⟩ for all vectors, then |f(aq + bk) − a f(q) − b f(k)|² is 0. We multiply it out to
    check."""
    qq, qk, kk = (sympy.Symbol(name, real=True) for name in PRODUCTS)
    gram = sympy.Matrix([[qq, qk], [qk, kk]])
    # Each term is c·f(a·q + b·k), and is listed as the coefficients (a, b) and the factor c.
    terms = [
        (sympy.Matrix([a, b]), 1),
        (sympy.Matrix([1, 0]), a if wrong else -a),
        (sympy.Matrix([0, 1]), -b),
    ]
    squared = sum(
        first * second * (u.T * gram * v)[0]
        for (u, first), (v, second) in product(terms, terms)
    )
    return [(squared, sympy.Integer(0))]


@identity("eq-derivation-reflection", r"\alpha", twin="no minus sign: not a mirror")
def reflection(wrong: bool = False) -> Pairs:
    """F mirrors the plane: FᵀF = I, F² = I, det F = −1."""
    F = mirror(alpha, 1 if wrong else -1)
    return [
        (F.T * F, UNIT),
        (F * F, UNIT),
        (F.det(), sympy.Integer(-1)),
    ]


# --- The rotation ----------------------------------------------------------------------------------------------------


@identity(
    "eq-derivation-relative", "m", "n", r"\theta_{i}", twin="m − n instead of n − m"
)
def relative(wrong: bool = False) -> Pairs:
    """R_mᵀ R_n = R_{n−m}."""
    return [
        (
            block(m).T * block(n),
            block(m - n if wrong else n - m),
        )
    ]


@identity(
    "eq-derivation-forward",
    "m",
    "n",
    r"\theta_{i}",
    *(f"{name}_{{{entry}}}" for name in "qk" for entry in (0, 1)),
    twin="the transpose forgotten",
)
def forward(wrong: bool = False) -> Pairs:
    """⟨R_m q, R_n k⟩ equals each of the three lines that follow it. We check them for one pair of q and k."""
    q, k = (sympy.Matrix(entries) for entries in (QUERY, KEY))
    R_m, R_n = block(m), block(n)
    middle = (
        [R_m * R_n, R_m * R_n, block(m + n)]
        if wrong
        else [R_m.T * R_n, block(-m) * R_n, block(n - m)]
    )
    first = (R_m * q).dot(R_n * k)
    return [(first, (q.T * matrix * k)[0]) for matrix in middle]


@identity(
    "eq-derivation-orthogonal",
    "m",
    r"\theta_{i}",
    twin="a wrong sign before the upper sine",
)
def orthogonal(wrong: bool = False) -> Pairs:
    """R_mᵀ R_m = I and det R_m = 1, block by block."""
    turned = block(m, sign=1 if wrong else -1)
    return [(turned.T * turned, UNIT), (turned.det(), sympy.Integer(1))]


@identity(
    "eq-derivation-group",
    "m",
    "n",
    r"\theta_{i}",
    twin="a wrong sign before the upper sine",
)
def group(wrong: bool = False) -> Pairs:
    """R_m R_n = R_{m+n}."""
    sign = 1 if wrong else -1
    return [(block(m, sign) * block(n, sign), block(m + n, sign))]


@identity(
    "eq-derivation-exponential", "m", r"\theta_{i}", twin="J without its minus sign"
)
def exponential(wrong: bool = False) -> Pairs:
    """R_m = exp(mθ_i J), block by block."""
    quarter = sympy.Matrix([[0, 1], [1, 0]]) if wrong else sympy.Matrix(J)
    power = (m * theta_i * quarter).exp()
    return [(block(m), sympy.ImmutableMatrix(power))]


@identity(
    "eq-derivation-direction",
    "m",
    "n",
    r"\theta_{i}",
    twin="a cosine instead of the sine",
)
def direction(wrong: bool = False) -> Pairs:
    """R_{n−m} − R_{m−n} = 2 sin((n − m)θ_i) J, so R_{n−m} is not symmetric."""
    wave = sympy.cos if wrong else sympy.sin
    return [(block(n - m) - block(m - n), 2 * wave((n - m) * theta_i) * J)]


@identity(
    "eq-derivation-sign", "m", "n", r"\theta_{i}", twin="the sign left as it is"
)
def other_sign(wrong: bool = False) -> Pairs:
    """If we rotate the other way, then R_{−m}ᵀ R_{−n} = R_{m−n} = F R_{n−m} F, with F = diag(1, −1)."""
    sign, F = 1 if wrong else -1, mirror(sympy.Integer(0))
    return [
        (block(sign * m).T * block(sign * n), block(m - n)),
        (block(m - n), F * block(sign * (m - n)) * F),
    ]


@identity(
    "eq-derivation-score",
    "m",
    "n",
    "d",
    "q",
    "k",
    r"\theta",
    twin="m − n instead of n − m",
)
def score(wrong: bool = False) -> Pairs:
    """⟨R_m q, R_n k⟩ = Σ_i (q_2i, q_2i+1) R_{n−m} (k_2i, k_2i+1), where d is symbolic and each i has its own θ_i."""
    q, k = (
        sympy.Matrix([vector[2 * i], vector[2 * i + 1]]) for vector in (query, key)
    )
    turned = (block(m, turn=frequency[i]) * q).dot(block(n, turn=frequency[i]) * k)
    between = block(m - n if wrong else n - m, turn=frequency[i])
    left, right = turned, (q.T * between * k)[0]
    pairs = (i, 0, d / 2 - 1)
    return [
        (
            sympy.Sum(sympy.expand(left), pairs),
            sympy.Sum(sympy.expand(right), pairs),
        )
    ]


# --- Definitions: the module against the formula on the page ---------------------------------------------------------


@definition(
    "eq-derivation-rotation",
    implements="ropebook.derivation.rotation",
    twin="clockwise",
)
def rotation(wrong: bool = False) -> list[Claim]:
    """The matrix rotates the plane counter-clockwise by mθ."""
    angles = [0.3 * position for position in range(-50, 51) if position]
    sign = -1 if wrong else 1
    expected = [
        [
            [math.cos(angle), -sign * math.sin(angle)],
            [sign * math.sin(angle), math.cos(angle)],
        ]
        for angle in angles
    ]
    return [Claim("100 angles", off(derivation.rotation(angles), expected), 1e-15)]


@definition(
    "eq-derivation-matrix",
    implements="ropebook.derivation.rotation_matrix",
    twin="half of d in the frequencies",
)
def matrix(wrong: bool = False) -> list[Claim]:
    """Block i on the diagonal of R_m is the rotation by mθ_i, and all other entries are zero."""
    dim, base = 6, 50.0
    expected = torch.zeros(20, dim, dim, dtype=torch.float64)
    for position, pair in product(range(20), range(dim // 2)):
        turn = base ** (-2 * pair / (dim / 2 if wrong else dim))
        cos, sin = math.cos(position * turn), math.sin(position * turn)
        first, second = 2 * pair, 2 * pair + 1
        expected[position, first, first] = cos
        expected[position, first, second] = -sin
        expected[position, second, first] = sin
        expected[position, second, second] = cos
    found = derivation.rotation_matrix(range(20), dim, base)
    return [Claim("R_0 … R_19", off(found, expected), 1e-14)]


# --- Statements ------------------------------------------------------------------------------------------------------


@statement(
    "eq-derivation-demand",
    twin="positions added as sinusoids, as in the previous chapter",
)
def demand(wrong: bool = False) -> list[Claim]:
    """The rotation meets both requirements: ⟨f(q, m), f(k, n)⟩ stays the same when m and n both move by 0 … 99, and
    f(q, 0) = q."""
    q, k = random(2, 8)
    m, n = 7, 3

    def f(x: torch.Tensor, place: int) -> torch.Tensor:
        if wrong:
            return x + sinusoidal.encoding(place, 8, dtype=torch.float64)
        return derivation.rotate(x, place)

    scores = torch.stack([f(q, m + t) @ f(k, n + t) for t in range(100)])
    return [
        Claim("the score, m and n moved alike", off(scores, scores[0]), 1e-12),
        Claim("f(q, 0) and q", off(f(q, 0), q), 0),
    ]


@statement("eq-derivation-powers", twin="a step that is not orthogonal")
def powers(wrong: bool = False) -> list[Claim]:
    """Both directions. ⇐: powers of random orthogonal matrices, with determinants 1 and −1, satisfy the first line of
    the equation. ⇒: we search all families of 2 × 2 matrices in which O_1 and O_−1 have entries −1, 0 and 1. Only
    powers of orthogonal matrices satisfy the first line for |m|, |n| ≤ 1.

    The search for ⇒ covers only a small finite set; the proof is on the page.
    """
    claims = []
    for dim in (2, 3, 8):
        orthogonal_matrix, _ = torch.linalg.qr(random(dim, dim))
        for sign in (1, -1):
            step = orthogonal_matrix.clone()
            step[0] *= sign  # for one of the two signs, the determinant is −1
            if wrong:
                step[0] *= 2
            claims.append(
                Claim(f"⇐, d = {dim}", derivation.breach(step, reach=4), 1e-13)
            )
    small = (
        torch.tensor(list(product((-1, 0, 1), repeat=4))).double().view(-1, 2, 2)
    )
    unit = torch.eye(2, dtype=torch.float64)
    before, after = (
        small[pairs] for pairs in torch.cartesian_prod(*[torch.arange(81)] * 2).T
    )
    # The first line determines O_−2 and O_2.
    families = torch.stack(
        (
            after.mT @ before,
            before,
            unit.expand_as(after),
            after,
            before.mT @ after,
        ),
        dim=1,
    )
    m, n = torch.cartesian_prod(*[torch.arange(-1, 2)] * 2).T
    products = families[:, m + 2].mT @ families[:, n + 2]
    kept = (products == families[:, n - m + 2]).flatten(1).all(1)
    steps = [
        step
        for step in small
        if (step.det().abs() == 1 if wrong else torch.equal(step.T @ step, unit))
    ]
    of_powers = [
        torch.stack([torch.linalg.matrix_power(step, n) for n in range(-2, 3)])
        for step in steps
    ]
    solutions, expected = (
        {tuple(family.round().flatten().tolist()) for family in all_of_them}
        for all_of_them in (families[kept], of_powers)
    )
    claims.append(
        Claim(
            f"⇒, of {len(solutions)} solutions and {len(expected)} families of powers, in one list only",
            len(solutions ^ expected),
            0,
        )
    )
    return claims


@statement("eq-derivation-normal-form", twin="each pair rotates the other way")
def normal_form(wrong: bool = False) -> list[Claim]:
    """Every random skew-symmetric Ω that we test equals U diag(θ_i J) Uᵀ. ⇒: exp(mΩ) = U R_m Uᵀ, which we check at m =
    3."""
    found = []
    for dim in (2, 4, 6, 8):
        skew = random(dim, dim)
        skew = skew - skew.T
        basis, turns = derivation.normal_form(skew)
        sign = -1 if wrong else 1
        quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
        inside = torch.block_diag(*(sign * turn * quarter for turn in turns))
        turned = torch.block_diag(
            *(derivation.rotation(sign * 3 * turn) for turn in turns)
        )
        found += [
            Claim(f"Ω, d = {dim}", off(basis @ inside @ basis.T, skew), 1e-13),
            Claim(
                f"exp(3Ω), d = {dim}",
                off(basis @ turned @ basis.T, torch.matrix_exp(3 * skew)),
                1e-12,
            ),
        ]
    return found


@statement("eq-derivation-absorb", twin="U instead of Uᵀ in the weights")
def absorb(wrong: bool = False) -> list[Claim]:
    """The weights can absorb the change of basis: UᵀW_Q and UᵀW_K with RoPE's pairs give the same scores as W_Q and W_K
    with exp(mΩ)."""
    dim, m, n = 6, 5, 2
    skew, W_Q, W_K = random(3 * dim, dim).view(3, dim, dim)
    skew = skew - skew.T
    x, y = random(2, dim)
    basis, turns = derivation.normal_form(skew)
    expected = (torch.matrix_exp(m * skew) @ W_Q @ x) @ (
        torch.matrix_exp(n * skew) @ W_K @ y
    )
    into = basis if wrong else basis.T
    turned = (
        torch.block_diag(*(derivation.rotation(place * turn) for turn in turns))
        @ into
        @ weight
        @ word
        for place, weight, word in ((m, W_Q, x), (n, W_K, y))
    )
    query, key = turned
    return [Claim("the score", abs(query @ key - expected).item(), 1e-11)]
