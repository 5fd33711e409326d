"""The checks of the *Long-range decay and the base* chapter and its pages.

Summation by parts is proved by induction, which covers any number of pairs. The moments of random queries and keys are
computed by expanding the square and taking the expectation of each term. The definitions are compared with the page's
formulas, written out in plain Python. The statements are measured.
"""

from __future__ import annotations

import cmath
import itertools
import math

import sympy
import torch

from ropebook import decay
from ropebook.proofs import Claim, Pairs, definition, identity, statement

b, delta = sympy.symbols("b Delta", positive=True)
d = sympy.Symbol("d", integer=True, positive=True)
i, N = sympy.symbols("i N", integer=True, nonnegative=True)
theta = sympy.IndexedBase("theta", real=True)
theta_i, mu = sympy.symbols("theta_i mu", real=True)
sigma = sympy.Symbol("sigma", positive=True)


def _pair_score(q: tuple, k: tuple) -> sympy.Expr:
    """Return Re q_i conj(k_i) e^{iΔθ_i} for one pair of real entries."""
    a, b = q[0] * k[0] + q[1] * k[1], q[0] * k[1] - q[1] * k[0]
    return a * sympy.cos(delta * theta_i) + b * sympy.sin(delta * theta_i)


def _expected(
    expression: sympy.Expr, entries: tuple, mean: sympy.Expr, std: sympy.Expr
) -> sympy.Expr:
    """Compute the expectation of a polynomial of degree at most 2 in each entry. The entries are independent and all
    have this mean and standard deviation."""
    moments = {0: 1, 1: mean, 2: mean**2 + std**2}
    polynomial = sympy.Poly(sympy.expand(expression), *entries)
    return sum(
        coefficient * sympy.prod([moments[power] for power in powers])
        for powers, coefficient in polynomial.terms()
    )


@identity("eq-decay-ones", "d", r"\Delta", r"\theta", twin="once instead of twice")
def ones(wrong: bool = False) -> Pairs:
    """For q = k = (1, …, 1), the score is 2 Σ cos Δθ_i."""
    one_pair = sympy.expand(_pair_score((1, 1), (1, 1))).subs(theta_i, theta[i])
    total = sympy.Sum(one_pair, (i, 0, d / 2 - 1))
    cosines = sympy.Sum(sympy.cos(delta * theta[i]), (i, 0, d / 2 - 1))
    return [(total, (1 if wrong else 2) * cosines)]


@definition(
    "eq-decay-partial-sum",
    implements="ropebook.decay.partial_sums",
    twin="pair 0 is left out",
)
def partial_sum(wrong: bool = False) -> list[Claim]:
    """S_j = Σ_{i<j} e^{iΔθ_i}."""
    written = [
        sum(
            cmath.exp(1j * 7 * 100 ** (-2 * pair / 8))
            for pair in range(1 if wrong else 0, j)
        )
        for j in range(1, 5)
    ]
    error = max(
        abs(x - y)
        for x, y in zip(
            decay.partial_sums(7, 8, 100).tolist(), written, strict=True
        )
    )
    return [Claim("S_1 … S_4 at Δ = 7", error, 1e-14)]


@identity("eq-decay-abel", "N", "h", "S", twin="a plus before the sum")
def abel(wrong: bool = False) -> Pairs:
    """Σ_{i<N} h_i (S_{i+1} − S_i) = h_N S_N − Σ_{i<N} S_{i+1}(h_{i+1} − h_i), where S_0 = 0. We check the induction
    step from N to N + 1.

    For N = 0, both sides are 0. With h_{d/2} = 0 and N = d/2, the boundary term vanishes.
    """
    h, S = sympy.IndexedBase("h"), sympy.IndexedBase("S")
    sign = 1 if wrong else -1
    grown_left = h[N] * (S[N + 1] - S[N])
    grown_right = (
        h[N + 1] * S[N + 1] - h[N] * S[N] + sign * S[N + 1] * (h[N + 1] - h[N])
    )
    return [(grown_left, grown_right)]


@statement("eq-decay-bound", twin="h_{d/2} is not set to 0: its step is left out")
def bound(wrong: bool = False) -> list[Claim]:
    """|score| ≤ Σ |S_{i+1}||h_{i+1} − h_i| ≤ max |h_{i+1} − h_i| Σ |S_{i+1}|. We check that no score exceeds either
    bound. A bound that is too large would pass this check, so at one distance we also compute both bounds
    directly from the formula and compare them.
    """
    # k = q is nearly constant, so all steps of h are small except for the last one.
    generator = torch.Generator().manual_seed(0)
    q = torch.ones(64, dtype=torch.float64)
    q += 0.01 * torch.randn(64, generator=generator)
    distances = torch.arange(2000)
    found = decay.bounds(q, q, distances)
    steps, largest = found.steps, found.abel
    h = q[0::2] ** 2 + q[1::2] ** 2
    if wrong:
        jumps = h.diff().abs()
        lengths = decay.partial_sums(distances, 64).abs()[:, :-1]
        steps, largest = lengths @ jumps, lengths.sum(-1) * jumps.max()
    turns = (
        cmath.exp(1j * 1000 * 10_000 ** (-2 * pair / 64)) for pair in range(32)
    )
    lengths = [abs(partial_sum) for partial_sum in itertools.accumulate(turns)]
    jumps = [abs(b - a) for a, b in itertools.pairwise([*h.tolist(), 0])]
    first = sum(length * jump for length, jump in zip(lengths, jumps, strict=True))
    second = max(jumps) * sum(lengths)
    return [
        Claim("the sum of steps", (found.score.abs() - steps).max().item(), 0),
        Claim("the largest step", (found.score.abs() - largest).max().item(), 0),
        Claim(
            "the first line at Δ = 1,000", abs(steps[1000].item() - first), 1e-10
        ),
        Claim(
            "the second line at Δ = 1,000",
            abs(largest[1000].item() - second),
            1e-10,
        ),
    ]


@statement("eq-decay-floor", twin="a floor of 1")
def floor(wrong: bool = False) -> list[Claim]:
    """The mean of |S_j| never falls below (1 + ⌊(d/2 − 1)/2⌋)/(d/2) ≥ 1/2. We check its smallest value over 20,000
    distances."""
    claims = []
    for dim in (4, 6, 8):
        least = decay.summarize(
            lambda distances, dim=dim: decay.mean_partial_sum(distances, dim),
            20_000,
        ).least
        claims.append(
            Claim(
                f"d = {dim}",
                (1 if wrong else decay.partial_sum_floor(dim)) - least,
                0,
            )
        )
    return claims


@statement("eq-decay-walk", twin="√(πj/2) instead of √(πj)/2")
def walk(wrong: bool = False) -> list[Claim]:
    """At large distances, the mean of |S_j| is the same as for random walks, (2/d) Σ_j √(πj)/2."""
    far = decay.windows(
        lambda distances: decay.mean_partial_sum(distances, 128),
        [10**7, 10**7 + 20_000],
    ).mean.item()
    terms = (
        math.sqrt(math.pi * j / 2) if wrong else math.sqrt(math.pi * j) / 2
        for j in range(1, 65)
    )
    return [
        Claim(
            "relative to the mean over 20,000 distances",
            abs(far / (sum(terms) / 64) - 1),
            0.03,
        )
    ]


@statement("eq-decay-crossing", twin="|S_1| is left out of the mean")
def crossing(wrong: bool = False) -> list[Claim]:
    """Both directions, ⇔, for q = k = (1, …, 1). We check every Δ up to the first one at which the mean of |S_j| is
    below 1."""
    claims = []
    for dim, until in ((8, 20), (16, 400), (32, 2000), (64, 22_000)):
        theta = [10_000 ** (-2 * pair / dim) for pair in range(dim // 2)]

        def lengths(distance: int, theta: list[float] = theta) -> list[float]:
            turns = (cmath.exp(1j * distance * t) for t in theta)
            return [abs(partial_sum) for partial_sum in itertools.accumulate(turns)]

        written = next(
            distance
            for distance in range(until)
            if sum(lengths(distance)[1 if wrong else 0 :]) < dim // 2
        )
        vector = torch.ones(dim)
        found = decay.bounds(vector, vector, torch.arange(until))
        better = (found.abel < found.triangle).int().argmax().item()
        claims.append(
            Claim(f"d = {dim}, Δ = {written:,}", abs(better - written), 0)
        )
    return claims


@identity("eq-decay-random", r"\Delta", r"\theta_{i}", twin="entries of mean 1")
def random_scores(wrong: bool = False) -> Pairs:
    """If the entries of q and k are random with mean 0 and variance 1, then at every Δ each pair's share of the score
    has mean 0 and variance 2, and the whole score has mean 0 and variance d."""
    entries = sympy.symbols("q_1 q_2 k_1 k_2", real=True)
    share = _pair_score(entries[:2], entries[2:])
    entry_mean = sympy.Integer(1 if wrong else 0)
    mean = _expected(share, entries, entry_mean, sympy.Integer(1))
    square = _expected(share**2, entries, entry_mean, sympy.Integer(1))
    return [(mean, sympy.Integer(0)), (square - mean**2, sympy.Integer(2))]


@identity(
    "eq-decay-similar",
    r"\Delta",
    r"\theta_{i}",
    r"\sigma",
    twin="σ² instead of 2σ²",
)
def similar(wrong: bool = False) -> Pairs:
    """Let k = q + ε with E ε = 0. Then the expectation of a pair's share exceeds its expectation for an independent k
    by 2σ² cos Δθ_i (Men et al., theorem 1)."""
    entries = sympy.symbols("q_1 q_2 k_1 k_2", real=True)
    q, k = entries[:2], entries[2:]
    # ε is independent of q, so the contribution of ε has mean 0 and we can leave it out.
    alike = _expected(_pair_score(q, q), q, mu, sigma)
    other = _expected(_pair_score(q, k), entries, mu, sigma)
    return [
        (
            sympy.expand(alike - other),
            (1 if wrong else 2) * sigma**2 * sympy.cos(delta * theta_i),
        )
    ]


@definition(
    "eq-decay-criterion",
    implements="ropebook.decay.reach",
    twin="θ_i = b^(−i/d): d halved",
)
def criterion(wrong: bool = False) -> list[Claim]:
    """L_b is the first m at which Σ_i cos mθ_i is negative."""
    claims = []
    for base, dim in ((4300, 128), (500, 64), (10, 16)):
        step = 1 if wrong else 2
        written = next(
            m
            for m in range(5000)
            if sum(
                math.cos(m * base ** (-step * pair / dim))
                for pair in range(dim // 2)
            )
            < 0
        )
        claims.append(
            Claim(
                f"b = {base:,}, d = {dim}",
                abs(decay.reach(base, dim, 5000) - written),
                0,
            )
        )
    return claims


@definition(
    "eq-decay-turned",
    implements="ropebook.decay.turned_pairs",
    twin="half a turn instead of a whole one",
)
def turned(wrong: bool = False) -> list[Claim]:
    """We count the pairs for which (L − 1)θ_i ≥ 2π."""
    turn = math.pi if wrong else 2 * math.pi
    claims = []
    for model in decay.MODELS:
        angles = (
            (model.context - 1) * model.base ** (-2 * pair / model.dim)
            for pair in range(model.dim // 2)
        )
        written = sum(angle >= turn for angle in angles)
        claims.append(
            Claim(
                model.name,
                abs(
                    decay.turned_pairs(model.context, model.dim, model.base)
                    - written
                ),
                0,
            )
        )
    return claims


@identity("eq-decay-longest", "b", "d", twin="2πb")
def longest(wrong: bool = False) -> Pairs:
    """The longest wavelength is λ_{d/2−1} = 2π b^{(d−2)/d}."""
    last = (2 * sympy.pi / b ** (-2 * i / d)).subs(i, d / 2 - 1)
    return [(last, 2 * sympy.pi * (b if wrong else b ** ((d - 2) / d)))]
