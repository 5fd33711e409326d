"""The checks of the *Measured* chapter.

Definitions are compared with the page's formulas in plain Python. We use a model of width 16 with large random weights,
so that the probabilities it predicts are far from equal. The page's formula for the variance of a paired difference is
proved for any number of files.
"""

from __future__ import annotations

import math

import sympy
import torch
from torch import Tensor

from ropebook.lab.bits import position_bits, windowed_bits
from ropebook.lab.means import paired
from ropebook.lab.model import LanguageModel
from ropebook.proofs import Claim, Pairs, definition, identity

LENGTH = 8  # L of the small model


def _small() -> tuple[LanguageModel, Tensor]:
    """Return a model whose random weights are large enough to give different bytes different probabilities, and a text
    of 25 bytes."""
    model = LanguageModel(
        "rope-100", LENGTH, dim=16, hidden_dim=16, n_layers=1, n_heads=2
    )
    model.requires_grad_(False)
    model.embedding.weight.mul_(50)
    draws = torch.Generator().manual_seed(0)
    return model, torch.randint(256, (1, 3 * LENGTH + 1), generator=draws)


@definition(
    "eq-lab-bits",
    implements="ropebook.lab.bits.position_bits",
    twin="natural logarithms",
)
def bits(wrong: bool = False) -> list[Claim]:
    """We check the mean of −log₂ p_m, and each term of that mean. Here p_m is the probability that the model gave to
    the byte at m + 1."""
    model, text = _small()
    logarithm = math.log if wrong else math.log2
    written = []
    for row, byte in zip(
        model(text[:, :-1])[0].tolist(), text[0, 1:].tolist(), strict=True
    ):
        weights = [math.exp(logit) for logit in row]
        written.append(-logarithm(weights[byte] / sum(weights)))
    found = position_bits(model, text)[0]
    mean = sum(written) / len(written)
    return [Claim("the mean", abs(found.mean().item() - mean), 1e-4)] + [
        Claim(f"m = {m}", abs(found[m].item() - written[m]), 1e-4)
        for m in (0, 11, 23)
    ]


@definition(
    "eq-lab-error",
    implements="ropebook.lab.means.paired",
    twin="N instead of N − 1",
)
def error(wrong: bool = False) -> list[Claim]:
    """We check the mean of D_j = ℓ_j − ℓ′_j, and its standard error √(Σ (D_j − mean)²/(N(N − 1)))."""
    claims = []
    for one, other in (
        ([1.3, 1.9, 2.6, 3.2], [1.2, 1.8, 2.4, 3.0]),
        ([2.0, 5.0, -1.0], [1.0, 1.0, 1.0]),
        ([4.0, 0.0], [0.5, 0.25]),
    ):
        differences = [a - b for a, b in zip(one, other, strict=True)]
        count = len(differences)
        mean = sum(differences) / count
        squares = sum((difference - mean) ** 2 for difference in differences)
        written = math.sqrt(squares / (count * (count if wrong else count - 1)))
        found = paired(
            torch.tensor(one, dtype=torch.float64),
            torch.tensor(other, dtype=torch.float64),
        )
        off = abs(found.mean.item() - mean) + abs(found.error.item() - written)
        claims.append(Claim(f"{count} files", off, 1e-12))
    return claims


@identity(
    "eq-lab-pairing",
    "N",
    r"\ell",
    r"\ell'",
    r"\bar\ell",
    r"\bar\ell'",
    twin="a plus instead of the minus",
)
def pairing(wrong: bool = False) -> Pairs:
    """Var(ℓ − ℓ′) = Var ℓ + Var ℓ′ − 2 Cov(ℓ, ℓ′), for any number of files N.

    We first show that the mean of the differences equals the difference of the means. After that, each mean is a
    symbol.
    """
    N = sympy.Symbol("N", integer=True, positive=True)
    j = sympy.Symbol("j", integer=True)
    sign = 1 if wrong else -1
    one, other = (sympy.IndexedBase(name)[j] for name in (r"\ell", r"\ell'"))
    mean_one, mean_other = sympy.symbols(r"\bar\ell \bar\ell'")

    def over_files(term: sympy.Expr) -> sympy.Expr:
        return sympy.Sum(term, (j, 1, N))

    mean = over_files(one - other) / N
    means = over_files(one) / N + sign * over_files(other) / N
    a, b = one - mean_one, other - mean_other
    apart = (one - other) - (mean_one - mean_other)
    parts = over_files(a**2) + over_files(b**2) + 2 * sign * over_files(a * b)
    return [(mean, means), (over_files(apart**2) / (N - 1), parts / (N - 1))]


@identity(
    "eq-lab-crossed",
    "N_{s}",
    "N",
    r"\sigma_{a}",
    r"\sigma_{b}",
    r"\sigma_{e}",
    twin="the third mean square is added",
)
def crossed(wrong: bool = False) -> Pairs:
    """(E M_a + E M_b − E M_e)/(N_s N) = σ_a²/N_s + σ_b²/N + σ_e²/(N_s N), for any N_s and N.

    The parts are independent and have mean 0. So the expected square of a mean is a sum over the parts, in which each
    part's variance is divided by the number of its values in that mean. Each sum of squares is a sum of squared means,
    and in every term the square of the overall mean is subtracted.
    """
    S, N = sympy.symbols("N_s N", integer=True, positive=True)
    a, b, e = sympy.symbols(r"\sigma_a \sigma_b \sigma_e", positive=True)

    def square(seeds: sympy.Expr, files: sympy.Expr) -> sympy.Expr:
        """Return the expected square of a mean over this many seeds and files."""
        return a**2 / seeds + b**2 / files + e**2 / (seeds * files)

    of_seeds = S * N * (square(1, N) - square(S, N))
    of_files = S * N * (square(S, 1) - square(S, N))
    of_rest = S * N * (square(1, 1) - square(S, N)) - of_seeds - of_files
    sign = 1 if wrong else -1
    estimate = (
        of_seeds / (S - 1)
        + of_files / (N - 1)
        + sign * of_rest / ((S - 1) * (N - 1))
    ) / (S * N)
    written = a**2 / S + b**2 / N + e**2 / (S * N)
    return [(estimate, written)]


@definition(
    "eq-lab-context",
    implements="ropebook.lab.bits.windowed_bits",
    twin="one byte fewer",
)
def context(wrong: bool = False) -> list[Claim]:
    """The byte after position m is predicted from the last c_m bytes. Up to L, c_m is m + 1; after that, it is L − r +
    1 + (m mod r), where r is the number of bytes by which the window moves."""
    model, text = _small()
    claims = []
    for step in (2, 4):
        found = windowed_bits(model, text, LENGTH, step)[0]
        for m in (3, 7, 8, 10, 15, 17):
            seen = m + 1 if m < LENGTH else LENGTH - step + 1 + m % step
            seen -= wrong
            alone = position_bits(model, text[:, m + 1 - seen : m + 2])
            off = abs(found[m].item() - alone[0, -1].item())
            claims.append(Claim(f"r = {step}, m = {m}", off, 1e-4))
    return claims
