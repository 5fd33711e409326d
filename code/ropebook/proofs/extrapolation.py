"""The checks of the *Context extension* chapter.

The identities are written for a single pair and hold for every pair; b, d, s, L and the positions are symbols. The
definitions compare the module with the page's formulas, written out in plain Python. The statement compares two of the
module's methods.
"""

from __future__ import annotations

import math

import sympy
import torch

from ropebook import extrapolation, sinusoidal
from ropebook.proofs import Claim, Pairs, definition, identity, statement

b, d, s, L, r, f = sympy.symbols("b d s L r f", positive=True)
theta, changed = sympy.symbols(r"theta_i \theta'_{i}", positive=True)
i, m, n = sympy.symbols("i m n", real=True)
query, key = (
    sympy.ImmutableMatrix(sympy.symbols(names, real=True))
    for names in ("q_1 q_2", "k_1 k_2")
)


def rotation(angle: sympy.Expr) -> sympy.ImmutableMatrix:
    """Return the 2 × 2 block of one pair, a counter-clockwise rotation."""
    cos, sin = sympy.cos(angle), sympy.sin(angle)
    return sympy.ImmutableMatrix([[cos, -sin], [sin, cos]])


# --- Identities -------------------------------------------------------------------------------------------------------


@identity(
    "eq-extrapolation-ntk-pairs", "b", "d", "s", "i", twin="the exponent d/(d + 2)"
)
def ntk_pairs(wrong: bool = False) -> Pairs:
    """(b s^(d/(d−2)))^(−2i/d) = b^(−2i/d) s^(−2i/(d−2)). We compare the logarithms of both sides."""
    base = b * s ** (d / (d + 2 if wrong else d - 2))
    sides = base ** (-2 * i / d), b ** (-2 * i / d) * s ** (-2 * i / (d - 2))
    left, right = (sympy.expand_log(sympy.log(side), force=True) for side in sides)
    return [(left, right)]


@identity("eq-extrapolation-effective", "s", twin="T = 2sL instead of sL")
def effective(wrong: bool = False) -> Pairs:
    """s·T/L − (s − 1) at T = sL is s + (s − 1)²."""
    length = (2 if wrong else 1) * s * L
    return [(s * length / L - (s - 1), s + (s - 1) ** 2)]


@identity("eq-extrapolation-index", "b", "d", "L", "r", twin="d instead of d/2")
def index(wrong: bool = False) -> Pairs:
    """The pair at index c completes r turns in L, L b^(−2c/d)/2π = r, if and only if c = d ln(L/2πr)/(2 ln b)."""
    c = sympy.Symbol("c", real=True)
    log_turns = sympy.log(L / (2 * sympy.pi)) - 2 * c / d * sympy.log(b)
    (solution,) = sympy.solve(log_turns - sympy.log(r), c)
    width = d if wrong else d / 2
    return [(solution, width * sympy.log(L / (2 * sympy.pi * r)) / sympy.log(b))]


@identity(
    "eq-extrapolation-square",
    "f",
    "m",
    "n",
    r"\theta_{i}",
    "q_{1}",
    "q_{2}",
    "k_{1}",
    "k_{2}",
    twin="the factor once",
)
def square(wrong: bool = False) -> Pairs:
    """⟨f R_m q, f R_n k⟩ = f² ⟨R_m q, R_n k⟩."""
    turned = rotation(m * theta) * query, rotation(n * theta) * key
    left = (f * turned[0]).dot(f * turned[1])
    return [(left, (f if wrong else f**2) * turned[0].dot(turned[1]))]


@identity(
    "eq-extrapolation-cache",
    "m",
    "n",
    r"\theta_{i}",
    r"\theta'_{i}",
    "q_{1}",
    "q_{2}",
    "k_{1}",
    "k_{2}",
    twin="m instead of n in the error",
)
def cache(wrong: bool = False) -> Pairs:
    """⟨R(mθ′) q, R(nθ) k⟩ = qᵀ R((n − m)θ′ + n(θ − θ′)) k."""
    left = (rotation(m * changed) * query).dot(rotation(n * theta) * key)
    error = (m if wrong else n) * (theta - changed)
    return [(left, query.dot(rotation((n - m) * changed + error) * key))]


# --- Definitions: the module against the formula on the page ---------------------------------------------------------


def _frequencies(dim: int, base: float) -> list[float]:
    return [base ** (-2 * pair / dim) for pair in range(dim // 2)]


def _off(method: extrapolation.Frequencies, dim: int, base: float, expected):
    """Return the largest relative difference between a method's θ′ and a list of expected frequencies. Methods that
    adapt to the length are called with a length of 3,000."""
    scaled, _ = method(sinusoidal.inv_freq(dim, base), 3000)
    return max(
        abs(ours / other - 1)
        for ours, other in zip(scaled.tolist(), expected, strict=True)
    )


@definition(
    "eq-extrapolation-turned",
    implements="ropebook.extrapolation.turned",
    twin="half a turn",
)
def turned(wrong: bool = False) -> list[Claim]:
    """Pair i completes a turn if (L − 1)θ_i ≥ 2π. We check this for the settings of Llama 1, 2 and 3."""
    enough = math.pi if wrong else 2 * math.pi
    claims = []
    for base, length in ((1e4, 2048), (1e4, 4096), (5e5, 8192)):
        ours = extrapolation.turned(sinusoidal.inv_freq(128, base), length)
        expected = [(length - 1) * t >= enough for t in _frequencies(128, base)]
        differ = sum(x != y for x, y in zip(ours.tolist(), expected, strict=True))
        claims.append(Claim(f"pairs that differ, L = {length:,}", differ, 0))
    return claims


@definition(
    "eq-extrapolation-interpolation",
    implements="ropebook.extrapolation.Interpolation",
    twin="θ multiplied by s",
)
def interpolation(wrong: bool = False) -> list[Claim]:
    """θ′_i = θ_i/s."""
    expected = [t * 4 if wrong else t / 4 for t in _frequencies(16, 50.0)]
    error = _off(extrapolation.Interpolation(4.0), 16, 50.0, expected)
    return [Claim("d = 16, s = 4", error, 1e-14)]


@definition(
    "eq-extrapolation-ntk",
    implements="ropebook.extrapolation.ntk_base",
    twin="the exponent d/(d + 2)",
)
def ntk(wrong: bool = False) -> list[Claim]:
    """b′ = b s^(d/(d−2)). We check both the base itself and the frequencies of NTKAware, which does not compute the
    base."""
    claims = []
    for dim in (4, 64, 128):
        base = 1e4 * 4 ** (dim / (dim + 2 if wrong else dim - 2))
        error = abs(extrapolation.ntk_base(1e4, dim, 4.0) / base - 1)
        claims.append(Claim(f"b′, d = {dim}", error, 1e-14))
        error = _off(extrapolation.NTKAware(4.0), dim, 1e4, _frequencies(dim, base))
        claims.append(Claim(f"θ′, d = {dim}", error, 1e-13))
    return claims


@definition(
    "eq-extrapolation-dynamic",
    implements="ropebook.extrapolation.DynamicNTK",
    twin="without − (s − 1)",
)
def dynamic(wrong: bool = False) -> list[Claim]:
    """b′ = b(sT/L − (s − 1))^(d/(d−2)) for T > L, and b′ = b up to L. We check the last pair at six lengths."""
    dim, base, trained, factor = 64, 1e4, 512, 4
    method = extrapolation.DynamicNTK(trained, factor)
    theta = sinusoidal.inv_freq(dim, base)
    worst = 0.0
    for length in (100, 512, 513, 1000, 2048, 100_000):
        scale = 1.0
        if length > trained:
            scale = factor * length / trained - (0 if wrong else factor - 1)
        changed = base * scale ** (dim / (dim - 2))
        ours, _ = method(theta, length)
        worst = max(
            worst, abs(ours[-1].item() / _frequencies(dim, changed)[-1] - 1)
        )
    return [Claim("the last pair at six lengths", worst, 1e-13)]


def _share(turns: float, alpha: float = 1, beta: float = 32) -> float:
    return min(1, max(0, (turns - alpha) / (beta - alpha)))


@definition(
    "eq-extrapolation-ramp",
    implements="ropebook.extrapolation.ramp_in_turns",
    twin="λ/L instead of L/λ",
)
def ramp(wrong: bool = False) -> list[Claim]:
    """γ_i = clip((r_i − α)/(β − α)), r_i = L/λ_i."""
    length = 4096
    ours = extrapolation.ramp_in_turns(sinusoidal.inv_freq(128), length)
    turns = [length * t / (2 * math.pi) for t in _frequencies(128, 1e4)]
    expected = [_share(1 / turn if wrong else turn) for turn in turns]
    error = max(abs(x - y) for x, y in zip(ours.tolist(), expected, strict=True))
    return [Claim("64 pairs", error, 1e-12)]


@definition(
    "eq-extrapolation-by-parts",
    implements="ropebook.extrapolation.NTKByParts",
    twin="γ and 1 − γ swapped",
)
def by_parts(wrong: bool = False) -> list[Claim]:
    """θ′_i = ((1 − γ_i)/s + γ_i)θ_i."""
    length, factor, expected = 4096, 16, []
    for frequency in _frequencies(128, 1e4):
        kept = _share(length * frequency / (2 * math.pi))
        kept = 1 - kept if wrong else kept
        expected.append(((1 - kept) / factor + kept) * frequency)
    error = _off(extrapolation.NTKByParts(factor, length), 128, 1e4, expected)
    return [Claim("64 pairs", error, 1e-12)]


@definition(
    "eq-extrapolation-code-ramp",
    implements="ropebook.extrapolation.ramp_in_pairs",
    twin="without floor and ceiling",
)
def code_ramp(wrong: bool = False) -> list[Claim]:
    """γ_i falls linearly from i = ⌊c(β)⌋ to i = ⌈c(α)⌉, both within 0 … d − 1."""
    claims = []
    for dim, base, length in ((128, 1e4, 4096), (64, 1e6, 32768), (16, 1e4, 512)):
        low, high = (
            dim * math.log(length / (2 * math.pi * turns)) / (2 * math.log(base))
            for turns in (32, 1)
        )
        if not wrong:
            low, high = math.floor(low), math.ceil(high)
        low, high = max(low, 0), min(high, dim - 1)
        ours = extrapolation.ramp_in_pairs(sinusoidal.inv_freq(dim, base), length)
        expected = [
            1 - min(1, max(0, (pair - low) / (high - low)))
            for pair in range(dim // 2)
        ]
        error = max(
            abs(x - y) for x, y in zip(ours.tolist(), expected, strict=True)
        )
        claims.append(Claim(f"d = {dim}, L = {length:,}", error, 1e-12))
    return claims


@definition(
    "eq-extrapolation-factor",
    implements="ropebook.extrapolation.yarn_factor",
    twin="the logarithm to base 10",
)
def factor(wrong: bool = False) -> list[Claim]:
    """f = 0.1 ln s + 1."""
    log = math.log10 if wrong else math.log
    return [
        Claim(
            f"s = {scale}",
            abs(extrapolation.yarn_factor(scale) - (0.1 * log(scale) + 1)),
            1e-15,
        )
        for scale in (2, 16, 100)
    ]


@definition(
    "eq-extrapolation-longrope",
    implements="ropebook.extrapolation.LongRoPE",
    twin="short and long factors swapped",
)
def longrope(wrong: bool = False) -> list[Claim]:
    """θ′_i = θ_i/f_i, with one list of factors for T ≤ L and another for T > L, and f = √(1 + ln s/ln L)."""
    short, long = [1.0, 1.0, 1.1, 1.2], [1.0, 1.5, 3.0, 4.5]
    method = extrapolation.LongRoPE(short, long, trained_length=512, factor=4.0)
    theta = sinusoidal.inv_freq(8)
    claims = []
    for length in (512, 513):
        factors = long if (length > 512) != wrong else short
        ours, on_cos_and_sin = method(theta, length)
        pairs = zip(ours.tolist(), _frequencies(8, 1e4), factors, strict=True)
        error = max(abs(x * by / t - 1) for x, t, by in pairs)
        wanted = math.sqrt(1 + math.log(4) / math.log(512))
        error = max(error, abs(on_cos_and_sin - wanted))
        claims.append(Claim(f"T = {length}", error, 1e-14))
    return claims


def _distances(method: extrapolation.Distances, length: int, rule) -> float:
    """Return the largest difference between a method's distances for keys beyond its window and ``rule(m, n)``."""
    positions = torch.arange(length)
    ours = method.relative(positions, positions).tolist()
    return max(
        abs(ours[m][n] - rule(m, n))
        for m in range(length)
        for n in range(m - method.window + 1)
    )


@definition(
    "eq-extrapolation-leaky",
    implements="ropebook.extrapolation.LeakyReRoPE",
    twin="Δ/κ",
)
def leaky(wrong: bool = False) -> list[Claim]:
    """Δ′ = w + (Δ − w)/κ from Δ = w onwards. As κ → ∞, this becomes w, as in ReRoPE."""
    window, claims = 5, []
    for step in (3.0, math.inf):
        if step == math.inf:
            method = extrapolation.ReRoPE(window)
        else:
            method = extrapolation.LeakyReRoPE(window, step)

        def rule(m: int, n: int, step: float = step) -> float:
            if wrong:
                return (m - n) / step
            return window + (m - n - window) / step

        claims.append(Claim(f"κ = {step}", _distances(method, 40, rule), 1e-12))
    return claims


@definition(
    "eq-extrapolation-self-extend",
    implements="ropebook.extrapolation.SelfExtend",
    twin="without the shift W − ⌊W/G⌋",
)
def self_extend(wrong: bool = False) -> list[Claim]:
    """Δ′ = ⌊m/G⌋ − ⌊n/G⌋ + W − ⌊W/G⌋ from Δ = W onwards."""
    claims = []
    for window, group in ((6, 3), (5, 4)):
        moved = 0 if wrong else window - window // group

        def rule(m: int, n: int, group: int = group, moved: int = moved) -> int:
            return m // group - n // group + moved

        method = extrapolation.SelfExtend(window, group)
        error = _distances(method, 40, rule)
        claims.append(Claim(f"W = {window}, G = {group}", error, 0))
    return claims


# --- A statement ------------------------------------------------------------------------------------------------------


@statement("eq-extrapolation-llama", twin="β = 8 instead of 4")
def llama(wrong: bool = False) -> list[Claim]:
    """The three cases of Llama 3.1, written out, are the same as NTK-by-parts with s = 8, L = 8,192, α = 1, β = 4."""
    length, factor, expected = 8192, 8, []
    for frequency in _frequencies(128, 5e5):
        wavelength = 2 * math.pi / frequency
        if wavelength < length / 4:
            expected.append(frequency)
        elif wavelength > length:
            expected.append(frequency / factor)
        else:
            smooth = (length / wavelength - 1) / (4 - 1)
            mixed = (1 - smooth) * frequency / factor + smooth * frequency
            expected.append(mixed)
    beta = 8.0 if wrong else 4.0
    return [
        Claim(
            "64 pairs",
            _off(
                extrapolation.NTKByParts(factor, length, 1.0, beta),
                128,
                5e5,
                expected,
            ),
            1e-12,
        )
    ]
