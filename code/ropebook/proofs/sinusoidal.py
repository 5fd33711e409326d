"""The checks of the *Sinusoidal positions* chapter.

The identities contain no numbers, so they hold for every frequency θ and every pair. The matrix M_k is
block-diagonal, so an identity for one block with a symbolic θ_i is an identity for the whole matrix. In the sums over
pairs, the dimension d and all the θ_i are symbolic too.

The definitions are compared with the page's formulas, written out in plain Python. The statements are measured.
"""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import sinusoidal
from ropebook.proofs import Claim, Pairs, definition, identity, statement
from ropebook.proofs.measuring import off

j, k, m, n, t = sympy.symbols("j k m n t", real=True)
theta_i, theta_j = sympy.symbols("theta_i theta_j", real=True)
d = sympy.Symbol("d", integer=True, positive=True)
i = sympy.Symbol("i", integer=True)
theta = sympy.IndexedBase("theta", real=True)


def encoding_pair(
    position: sympy.Expr, frequency: sympy.Expr = theta_i
) -> sympy.ImmutableMatrix:
    """Return pair i of PE at a position: the column (sin, cos)."""
    return sympy.ImmutableMatrix(
        [sympy.sin(position * frequency), sympy.cos(position * frequency)]
    )


def shift_block(
    offset: sympy.Expr, sign: int = -1, frequency: sympy.Expr = theta_i
) -> sympy.ImmutableMatrix:
    """Return block i of M at an offset. ``sign`` is the sign of the lower sine: −1 in M itself."""
    cos, sin = sympy.cos(offset * frequency), sympy.sin(offset * frequency)
    return sympy.ImmutableMatrix([[cos, sin], [sign * sin, cos]])


def _sum_over_pairs(term: sympy.Expr) -> sympy.Sum:
    return sympy.Sum(term, (i, 0, d / 2 - 1))


@identity(
    "eq-sinusoidal-shift",
    "k",
    "m",
    r"\theta_{i}",
    twin="a wrong sign before the lower sine",
)
def shift(wrong: bool = False) -> Pairs:
    """PE_{m+k} = M_k PE_m."""
    return [
        (
            encoding_pair(m + k),
            shift_block(k, sign=1 if wrong else -1) * encoding_pair(m),
        )
    ]


@identity(
    "eq-sinusoidal-rotation",
    "j",
    "k",
    r"\theta_{i}",
    twin="a wrong sign before the lower sine",
)
def rotation(wrong: bool = False) -> Pairs:
    """M_kᵀ M_k = I and M_j M_k = M_{j+k}."""
    sign = 1 if wrong else -1
    block = shift_block(k, sign)
    return [
        (
            block.T * block,
            sympy.ImmutableMatrix(sympy.eye(2)),
        ),
        (shift_block(j, sign) * block, shift_block(j + k, sign)),
    ]


@identity(
    "eq-sinusoidal-kernel", "m", "n", "d", r"\theta", twin="m + n instead of m − n"
)
def kernel(wrong: bool = False) -> Pairs:
    """PE_m · PE_n = Σ_i cos θ_i(m − n)."""
    product = encoding_pair(m, theta[i]).dot(encoding_pair(n, theta[i]))
    distance = m + n if wrong else m - n
    return [
        (_sum_over_pairs(product), _sum_over_pairs(sympy.cos(theta[i] * distance)))
    ]


@identity(
    "eq-sinusoidal-norm", "m", "d", r"\theta", twin="the sines twice, no cosines"
)
def norm(wrong: bool = False) -> Pairs:
    """‖PE_m‖² = d/2."""
    sin, cos = encoding_pair(m, theta[i])
    return [(_sum_over_pairs(sin**2 + (sin if wrong else cos) ** 2), d / 2)]


@identity(
    "eq-sinusoidal-chord", "m", "n", "d", r"\theta", twin="m + n instead of m − n"
)
def chord(wrong: bool = False) -> Pairs:
    """‖PE_m − PE_n‖² = d − 2 Σ_i cos θ_i(m − n)."""
    difference = encoding_pair(m, theta[i]) - encoding_pair(n, theta[i])
    distance = m + n if wrong else m - n
    return [
        (
            _sum_over_pairs(difference.dot(difference)),
            d - 2 * _sum_over_pairs(sympy.cos(theta[i] * distance)),
        )
    ]


@identity(
    "eq-sinusoidal-four-terms",
    "x",
    "y",
    r"\mathrm{PE}_{m}",
    r"\mathrm{PE}_{n}",
    twin="minus x·PE_n",
)
def four_terms(wrong: bool = False) -> Pairs:
    """(x + PE_m)·(y + PE_n) = x·y + x·PE_n + PE_m·y + PE_m·PE_n, for vectors of any dimension d."""
    x, y, p, q = (
        sympy.MatrixSymbol(name, d, 1)
        for name in ("x", "y", r"\mathrm{PE}_{m}", r"\mathrm{PE}_{n}")
    )
    cross = -x.T * q if wrong else x.T * q
    return [((x + p).T * (y + q), x.T * y + cross + p.T * y + p.T * q)]


@identity(
    "eq-sinusoidal-weights",
    "m",
    "n",
    "t",
    "B",
    r"\theta_{i}",
    r"\theta_{j}",
    twin="M_t and M_tᵀ swapped",
)
def weights(wrong: bool = False) -> Pairs:
    """PE_{m+t}ᵀ B PE_{n+t} = PE_mᵀ (M_tᵀ B M_t) PE_n, for the block of B that links pair i to pair j.

    The whole product is the sum of these products over i and j.
    """
    block = sympy.ImmutableMatrix(sympy.MatrixSymbol("B", 2, 2))
    left, right = (
        shift_block(t, frequency=theta_i).T,
        shift_block(t, frequency=theta_j),
    )
    if wrong:
        left, right = left.T, right.T
    return [
        (
            encoding_pair(m + t, theta_i).T * block * encoding_pair(n + t, theta_j),
            encoding_pair(m, theta_i).T
            * left
            * block
            * right
            * encoding_pair(n, theta_j),
        )
    ]


@identity(
    "eq-sinusoidal-head",
    "m",
    "n",
    "a_{i}",
    "b_{i}",
    r"\theta_{i}",
    twin="b_i with the same sign in both places",
)
def head(wrong: bool = False) -> Pairs:
    """With the block (a_i, b_i; −b_i, a_i), pair i adds a_i cos θ_i(m − n) + b_i sin θ_i(m − n) to PE_mᵀ B PE_n.

    The whole product is the sum of these terms over i.
    """
    a, b = sympy.symbols("a_i b_i", real=True)
    block = sympy.ImmutableMatrix([[a, b], [b if wrong else -b, a]])
    angle = theta_i * (m - n)
    pair = (encoding_pair(m).T * block * encoding_pair(n))[0]
    return [(pair, a * sympy.cos(angle) + b * sympy.sin(angle))]


# --- Definitions: the module against the formula on the page ---------------------------------------------------------


@definition(
    "eq-sinusoidal-input",
    implements="ropebook.sinusoidal.SinusoidalEncoding",
    twin="counted from 1 instead of 0",
)
def added(wrong: bool = False) -> list[Claim]:
    """The word at position m becomes x_m + PE_m."""
    x = torch.randn(
        5, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(0)
    )
    first = 1 if wrong else 0
    expected = x + sinusoidal.encoding(
        range(first, first + 5), 8, dtype=torch.float64
    )
    return [
        Claim(
            "what the module adds to five words",
            off(sinusoidal.SinusoidalEncoding(8)(x), expected),
            1e-15,
        )
    ]


@definition(
    "eq-sinusoidal-binary",
    implements="ropebook.sinusoidal.binary_digits",
    twin="every digit one place too high",
)
def binary(wrong: bool = False) -> list[Claim]:
    """Digit j of m is ⌊m/2^j⌋ mod 2."""
    expected = [
        [math.floor(position / 2 ** (digit + wrong)) % 2 for digit in range(6)]
        for position in range(64)
    ]
    return [
        Claim(
            "the digits of 0 … 63",
            off(sinusoidal.binary_digits(range(64), 6), expected),
            0,
        )
    ]


@definition(
    "eq-sinusoidal-frequency",
    implements="ropebook.sinusoidal.inv_freq",
    twin="the exponent −i/d instead of −2i/d",
)
def frequency(wrong: bool = False) -> list[Claim]:
    """θ_i = b^(−2i/d) and λ_i = 2π/θ_i."""
    dim, base = 8, 50.0
    expected = [
        base ** (-(1 if wrong else 2) * pair / dim) for pair in range(dim // 2)
    ]
    turn = [2 * math.pi / theta for theta in expected]
    return [
        Claim(
            "the frequencies", off(sinusoidal.inv_freq(dim, base), expected), 1e-15
        ),
        Claim(
            "the wavelengths", off(sinusoidal.wavelengths(dim, base), turn), 1e-12
        ),
    ]


@definition(
    "eq-sinusoidal-encoding",
    implements="ropebook.sinusoidal.encoding",
    twin="sine and cosine swapped",
)
def encoded(wrong: bool = False) -> list[Claim]:
    """Entry 2i of PE_m is sin mθ_i, entry 2i + 1 is cos mθ_i."""
    dim, base = 8, 50.0
    waves = (math.cos, math.sin) if wrong else (math.sin, math.cos)
    expected = [
        [
            wave(position * base ** (-2 * pair / dim))
            for pair in range(dim // 2)
            for wave in waves
        ]
        for position in range(100)
    ]
    return [
        Claim(
            "PE_0 … PE_99",
            off(
                sinusoidal.encoding(range(100), dim, base, torch.float64), expected
            ),
            1e-13,
        )
    ]


# --- Statements ------------------------------------------------------------------------------------------------------


@statement("eq-sinusoidal-wave", twin="the sine without its minus sign")
def wave(wrong: bool = False) -> list[Claim]:
    """Digit j of m is 1 exactly when −sin(2π(m + ½)/2^(j+1)) > 0."""
    positions, bits = torch.arange(4096), 12
    waves = sinusoidal.binary_waves(positions, bits)
    differ = (sinusoidal.binary_digits(positions, bits) == 1) != (
        (-waves if wrong else waves) > 0
    )
    return [
        Claim(
            "digits of 0 … 4,095 that differ from their wave's sign",
            int(differ.sum()),
            0,
        )
    ]


@statement("eq-sinusoidal-unique", twin="positions a whole turn apart")
def unique(wrong: bool = False) -> list[Claim]:
    """The direction ⇒: for integers m and n, PE_m = PE_n only if m = n. We check this for d = 2, where only the first
    pair can tell positions apart."""
    distances = torch.arange(1, 100_001, dtype=torch.float64)
    returns = (
        sinusoidal.chord(2 * math.pi * distances if wrong else distances, 2) < 1e-6
    )
    return [
        Claim(
            "distances, of 100,000, after which the encoding is back to within 1e-6",
            int(returns.sum()),
            0,
        )
    ]


@statement("eq-sinusoidal-sizes", twin="d and d/2 swapped, m + n instead of m − n")
def sizes(wrong: bool = False) -> list[Claim]:
    """For random words, the sizes of the four terms are σ²√d, σ√(d/2), σ√(d/2) and |K(m − n)|."""
    dim, std, at, to = 128, 0.5, 9, 4
    found = sinusoidal.term_sizes(
        at, to, dim, std=std, generator=torch.Generator().manual_seed(0)
    )
    content, cross = std**2 * math.sqrt(dim), std * math.sqrt(dim / 2)
    if wrong:
        content, cross = std**2 * math.sqrt(dim / 2), std * math.sqrt(dim)
    position = abs(
        sinusoidal.distance_kernel(at + to if wrong else at - to, dim).item()
    )
    expected = sinusoidal.FourTerms(content, cross, cross, position)
    return [
        Claim(
            name.replace("_", " × "),
            abs(ours / theirs - 1),
            1e-9 if name == "position" else 0.05,
        )
        for name, ours, theirs in zip(found._fields, found, expected, strict=True)
    ]


@statement("eq-sinusoidal-order", twin="the inverse order in the weights")
def order(wrong: bool = False) -> list[Claim]:
    """(W Pᵀ)(P z) = W z for a permutation P."""
    generator = torch.Generator().manual_seed(0)
    weight, z = (
        torch.randn(5, 12, generator=generator).double(),
        torch.randn(12, generator=generator).double(),
    )
    new = sinusoidal.pair_order([2, 0, 1, 5, 3, 4])
    moved = sinusoidal.absorb_order(weight, new.argsort() if wrong else new)
    return [
        Claim(
            "W z before and after",
            (moved @ z[new] - weight @ z).abs().max().item(),
            1e-14,
        )
    ]
