"""The checks of the *Beyond the line* chapter and its pages.

The identities hold for every position and frequency. Definitions are compared with the page's formulas, written out.
"""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import beyond, rope
from ropebook.derivation import rotation_matrix
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off, random

m_1, m_2, m_3, n_1, n_2, n_3 = sympy.symbols("m_1 m_2 m_3 n_1 n_2 n_3", real=True)
theta_j = sympy.Symbol("theta_j", real=True)


# --- More axes ------------------------------------------------------------------------------------------------------


def _turn(angle: sympy.Expr) -> sympy.Matrix:
    return sympy.Matrix(
        [
            [sympy.cos(angle), -sympy.sin(angle)],
            [sympy.sin(angle), sympy.cos(angle)],
        ]
    )


def _block(*place: sympy.Expr) -> sympy.Matrix:
    return sympy.diag(*(_turn(theta_j * one) for one in place))


@identity(
    "eq-beyond-four",
    "m_{1}",
    "m_{2}",
    "n_{1}",
    "n_{2}",
    r"\theta_{j}",
    twin="the first matrix is not transposed",
)
def four(wrong: bool = False) -> Pairs:
    """For the block of size four, R_{m_1,m_2}ᵀ R_{n_1,n_2} = R_{n_1−m_1,n_2−m_2}."""
    first = _block(m_1, m_2)
    product = (first if wrong else first.T) * _block(n_1, n_2)
    return [(product, _block(n_1 - m_1, n_2 - m_2))]


@identity(
    "eq-beyond-six",
    "m_{1}",
    "m_{2}",
    "m_{3}",
    "n_{1}",
    "n_{2}",
    "n_{3}",
    r"\theta_{j}",
    twin="two axes are swapped in the result",
)
def six(wrong: bool = False) -> Pairs:
    """Show that the equation for two coordinates also holds for three, where a block has six rows."""
    product = _block(m_1, m_2, m_3).T * _block(n_1, n_2, n_3)
    apart = [n_1 - m_1, n_2 - m_2, n_3 - m_3]
    if wrong:
        apart[0], apart[1] = apart[1], apart[0]
    return [(product, _block(*apart))]


@definition(
    "eq-beyond-wave",
    implements="ropebook.beyond.angles",
    twin="the two numbers of w_i are swapped",
)
def wave(wrong: bool = False) -> list[Claim]:
    """The angle of pair i at a position m is w_i · m."""
    waves, place = random(2, 3), torch.tensor([5.0, -2.0]).double()
    found = beyond.angles(place, waves)
    claims = []
    for i in range(3):
        one, two = waves[:, i].tolist()
        written = 5 * two - 2 * one if wrong else 5 * one - 2 * two
        claims.append(Claim(f"pair {i}", abs(found[i].item() - written), 1e-12))
    return claims


@statement("eq-beyond-commute", twin="rotations of space about different axes")
def commute(wrong: bool = False) -> list[Claim]:
    """The direction ⇒: if A B = B A, then exp(m_1 A + m_2 B)ᵀ exp(n_1 A + n_2 B) = exp((n_1 − m_1) A + (n_2 − m_2)
    B)."""
    turn = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    basis = torch.linalg.qr(random(6, 6))[0]
    claims = []
    for seed, (m, n) in enumerate((((2, -3), (5, 1)), ((1, 0), (0, 1)))):
        waves = random(2, 3, seed=seed)
        generators = torch.stack(
            [
                basis @ torch.block_diag(*(w * turn for w in row)) @ basis.T
                for row in waves
            ]
        )
        if wrong:
            generators = beyond.spins()
        error = beyond.shift_error(
            generators, torch.tensor(m).double(), torch.tensor(n).double()
        )
        claims.append(Claim(f"m = {m}, n = {n}", error, 1e-12))
    return claims


@definition(
    "eq-beyond-mrope",
    implements="ropebook.beyond.mrope",
    twin="each section starts again with the fastest pair",
)
def mrope(wrong: bool = False) -> list[Claim]:
    """Pair i rotates by θ_i times one coordinate, and the section to which the pair belongs determines which one."""
    base, place = 500.0, [7, 3, 11]
    claims = []
    for sections in ((1, 2, 3), (2, 3, 1)):
        found = beyond.angles(torch.tensor(place), beyond.mrope(sections, base))
        written, pair = [], 0
        for axis, section in enumerate(sections):
            for inside in range(section):
                i = inside if wrong else pair
                written.append(place[axis] * base ** (-i / 6))
                pair += 1
        error = off(found, torch.tensor(written, dtype=torch.float64))
        claims.append(Claim(f"sections {sections}", error, 1e-12))
    return claims


@statement("eq-beyond-equal", twin="the column number is one too large")
def equal(wrong: bool = False) -> list[Claim]:
    """The direction ⇒: at a position whose three coordinates are equal, (9, 9, 9), every pair rotates as in plain
    RoPE."""
    claims = []
    for interleaved in (False, True):
        waves = beyond.mrope([4, 2, 2], interleaved=interleaved)
        place = torch.tensor([9, 9, 10 if wrong else 9])
        error = off(beyond.angles(place, waves), rope.angles(9, 16))
        claims.append(Claim("in turn" if interleaved else "in sections", error, 0))
    return claims


# --- Values ---------------------------------------------------------------------------------------------------------


@statement("eq-beyond-values", twin="the output does not move")
def values(wrong: bool = False) -> list[Claim]:
    """The direction ⇒: with rotated values, moving a text by s rotates its output by R_s."""
    q, k, v = random(3, 1, 5, 8)
    places = torch.arange(5)
    here = beyond.attend(q, k, v, places, values="turned")
    claims = []
    for by in (1, 40, 1000):
        there = beyond.attend(q, k, v, places + by, values="turned")
        written = here if wrong else here @ rotation_matrix(by, 8).mT
        claims.append(Claim(f"s = {by:,}", off(there, written), 1e-10))
    return claims


@definition(
    "eq-beyond-back",
    implements="ropebook.beyond.attend",
    twin="the values are rotated by m − n",
)
def back(wrong: bool = False) -> list[Claim]:
    """If the output is rotated back, each value is rotated by n − m."""
    q, k, v = random(3, 5, 8)
    places = torch.arange(5)
    found = beyond.attend(q, k, v, places, values="turned back")
    turned_q, turned_k = (beyond.turned_by(x, places) for x in (q, k))
    weights = (turned_q @ turned_k.mT / math.sqrt(8)).softmax(-1)
    claims = []
    for m in (0, 2, 4):
        written = sum(
            weights[m, n] * rotation_matrix(m - n if wrong else n - m, 8) @ v[n]
            for n in range(5)
        )
        claims.append(Claim(f"m = {m}", off(found[m], written), 1e-12))
    return claims


# --- Linear attention -----------------------------------------------------------------------------------------------


@definition(
    "eq-beyond-linear",
    implements="ropebook.beyond.linear_attention",
    twin="the divisor of each row is rotated as well",
)
def linear(wrong: bool = False) -> list[Claim]:
    """The numerator uses rotated features and the denominator uses unrotated ones. Both are sums over n ≤ m."""
    q, k, v = random(3, 5, 4)
    found = beyond.linear_attention(q, k, v, torch.arange(5))
    phi_q, phi_k = beyond.feature(q), beyond.feature(k)
    claims = []
    for m in (1, 3, 4):
        above, below = torch.zeros(4).double(), 0.0
        for n in range(m + 1):
            turned = phi_q[m] @ rotation_matrix(n - m, 4) @ phi_k[n]
            above = above + turned * v[n]
            below = below + (turned if wrong else phi_q[m] @ phi_k[n])
        claims.append(Claim(f"m = {m}", off(found[m], above / below), 1e-12))
    return claims


@definition(
    "eq-beyond-state",
    implements="ropebook.beyond.turning_state",
    twin="the state is rotated the other way",
)
def state(wrong: bool = False) -> list[Claim]:
    """If a state rotates by one step at each token, the values are rotated by n − m."""
    q, k, v = random(3, 5, 4)
    found = beyond.turning_state(q, k, v, rotation_matrix(1, 4))
    claims = []
    for m in (1, 3, 4):
        written = sum(
            (q[m] @ k[n]) * rotation_matrix(m - n if wrong else n - m, 4) @ v[n]
            for n in range(m + 1)
        )
        claims.append(Claim(f"m = {m}", off(found[m], written), 1e-12))
    return claims


# --- Latent attention -----------------------------------------------------------------------------------------------


@definition(
    "eq-beyond-between",
    implements="ropebook.beyond.between",
    twin="the rotation is left out",
)
def between(wrong: bool = False) -> list[Claim]:
    """The score between a token x and a latent c is xᵀ W_Qᵀ R_{n−m} W_UK c."""
    w_q, w_uk = random(4, 6), random(4, 3, seed=1)
    x, c = random(6, seed=2), random(3, seed=3)
    claims = []
    for m, n in ((5, 1), (9, 2)):
        query, key = w_q @ x, w_uk @ c
        if not wrong:
            query, key = rotation_matrix(m, 4) @ query, rotation_matrix(n, 4) @ key
        found = x @ beyond.between(w_q, w_uk, rotation_matrix(n - m, 4)) @ c
        claims.append(Claim(f"m = {m}, n = {n}", off(found, query @ key), 1e-12))
    return claims


@definition(
    "eq-beyond-latent",
    implements="ropebook.beyond.LatentAttention",
    twin="the rotated part is left out",
)
def latent(wrong: bool = False) -> list[Claim]:
    """A score is the sum of two dot products. One is between the query's unrotated part and W_UK times the latent, and
    the other is between the query's rotated part and the shared rotated key."""
    torch.manual_seed(0)
    layer = beyond.LatentAttention(
        8, 1, rank=3, dim=4, rotary_dim=2, v_dim=5
    ).double()
    layer.requires_grad_(False)
    x = random(1, 4, 8)
    latents, key = layer.w_down(x[0]).split([3, 2], -1)
    c = layer.norm(latents)
    still, turning = layer.w_q(x[0]).split([4, 2], -1)
    w_uk, w_uv = layer.w_up.weight.split([4, 5])
    claims = []
    for m in (1, 3):
        scores = []
        for n in range(m + 1):
            one = still[m] @ w_uk @ c[n]
            if not wrong:
                one = one + turning[m] @ rotation_matrix(n - m, 2) @ key[n]
            scores.append(one / math.sqrt(6))
        weights = torch.stack(scores).softmax(-1)
        written = layer.w_o(weights @ c[: m + 1] @ w_uv.mT)
        found = layer(x, torch.arange(4))[0, m]
        claims.append(Claim(f"m = {m}", off(found, written), 1e-12))
    return claims
