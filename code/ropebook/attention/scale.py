"""What the scale 1/√d does: how large scores are without it, and what a softmax lets through of a gradient."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention.dot_product import HALF_TYPES


def score_variance(
    dim: int, samples: int = 10_000, generator: torch.Generator | None = None
) -> float:
    """The variance of q·k, measured over ``samples`` pairs of independent standard normal vectors of length ``dim``.

    In theory it is ``dim``: a sum of ``dim`` independent products, each of variance 1. The sample variance has itself a
    relative standard deviation of about √((2 + 6/dim) / samples). Computed in float64 on the CPU, whose
    random numbers do not depend on the accelerator. Needs 24·dim·samples bytes at its peak.

    >>> 60 < score_variance(64, 100_000, torch.Generator().manual_seed(0)) < 68
    True
    """
    checks.integer("dim", dim, minimum=1)
    checks.integer("samples", samples, minimum=2)
    generator = _cpu_generator(generator)
    q, k = torch.randn(2, samples, dim, dtype=torch.float64, generator=generator)
    return (q * k).sum(-1).var().item()


def score_rows(
    dim: int,
    n_keys: int,
    rows: int = 1000,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Scores q·k, not divided by anything, of ``rows`` random queries, each with ``n_keys`` keys of its own.

    Queries and keys are independent standard normal vectors of length ``dim``. Given the query, its scores are then
    independent normal numbers of standard deviation |q|; those are drawn, and no keys. Shape (rows, n_keys), float64, on
    the CPU.

    >>> score_rows(64, 4096, 10, torch.Generator().manual_seed(0)).shape
    torch.Size([10, 4096])
    """
    checks.integer("dim", dim, minimum=1)
    checks.integer("n_keys", n_keys, minimum=1)
    checks.integer("rows", rows, minimum=1)
    like = {"dtype": torch.float64, "generator": _cpu_generator(generator)}
    lengths = torch.randn(rows, dim, **like).norm(dim=-1, keepdim=True)
    return lengths * torch.randn(rows, n_keys, **like)


@dataclasses.dataclass(frozen=True)
class Rows:
    """What softmax makes of many rows of scores; made by :func:`rows_of`. All are shares, or sizes at most 1/2."""

    largest: float
    """The largest weight of the typical row: the median."""
    gradient: float
    """The size of the softmax gradient in the typical row: the median of :func:`softmax_gradient_norm`."""
    mean_gradient: float
    """The same size, its mean over all rows."""
    close: float
    """The share of rows whose two largest scores are less than 1 apart."""
    lead: float
    """How far the largest score is above the next, in the mean."""


def rows_of(
    dim: int,
    n_keys: int,
    divisor: float,
    rows: int = 1000,
    seed: int = 0,
) -> Rows:
    """Draw scores by :func:`score_rows`, divide them by ``divisor``, and measure their softmax.

    The same ``seed`` draws the same scores, whatever they are divided by. ``n_keys`` is at least 2.

    >>> without, scaled = rows_of(512, 16, 1), rows_of(512, 16, 512**0.5)
    >>> without.gradient < 0.01 < 0.2 < scaled.gradient
    True
    """
    checks.number("divisor", divisor, above=0)
    checks.integer("n_keys", n_keys, minimum=2)
    generator = torch.Generator().manual_seed(
        checks.integer("seed", seed, minimum=0)
    )
    scores = score_rows(dim, n_keys, rows, generator) / divisor
    weights = scores.softmax(-1)
    sizes = softmax_gradient_norm(weights)
    first, second = scores.topk(2).values.T
    return Rows(
        largest=weights.amax(-1).median().item(),
        gradient=sizes.median().item(),
        mean_gradient=sizes.mean().item(),
        close=(first - second < 1).double().mean().item(),
        lead=(first - second).mean().item(),
    )


def softmax_jacobian(p: Tensor) -> Tensor:
    """∂softmax(z)/∂z at the probabilities ``p`` = softmax(z): diag(p) − p pᵀ; (…, n) in, (…, n, n) out.

    ``p`` must be float32 or float64, ≥ 0, and sum to 1 along the last axis.

    >>> softmax_jacobian(torch.tensor([0.5, 0.5]))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    _check_probabilities(p)
    outer = p.unsqueeze(-1) * p.unsqueeze(-2)
    others = outer - torch.diag_embed(outer.diagonal(dim1=-2, dim2=-1))
    # On the diagonal p(1 − p) is written as the sum of p times every other p: 1 − p loses all its digits as p nears 1,
    # and that is where one looks.
    return torch.diag_embed(others.sum(-1)) - others


def softmax_gradient_norm(p: Tensor) -> Tensor:
    """The Frobenius norm of :func:`softmax_jacobian`: how much of a gradient a softmax lets through; (…, n) to (…).

    With s = Σ p² it is at most √(s(1 − s)), hence at most 1/2 (two entries that share all the weight reach it), and it
    falls to 0 as ``p`` nears one-hot. Computed without the matrix, so that rows of thousands of keys are cheap.

    >>> softmax_gradient_norm(torch.tensor([0.5, 0.5]))
    tensor(0.5000)
    """
    _check_probabilities(p)
    # Column j is p_j times a vector of 1 − p_j and the other p. Beside the largest p that difference loses its digits,
    # so there it is summed up, as in the matrix.
    largest, at = p.max(-1, keepdim=True)
    rest = p.scatter(-1, at, 0.0)
    missing = (1 - p).scatter(-1, at, rest.sum(-1, keepdim=True))
    squares = rest.square().sum(-1, keepdim=True)
    others = (squares - rest.square() + largest.square()).scatter(-1, at, squares)
    return torch.linalg.vector_norm(p * torch.hypot(missing, others.sqrt()), dim=-1)


def _cpu_generator(generator: torch.Generator | None) -> torch.Generator | None:
    if generator is not None and (
        not isinstance(generator, torch.Generator) or generator.device.type != "cpu"
    ):
        raise TypeError(
            f"generator must be a torch.Generator on the CPU or None, got {generator!r}"
        )
    return generator


def _check_probabilities(p: Tensor) -> None:
    if checks.floating("p", p).dtype in HALF_TYPES:
        raise TypeError(f"p must be float32 or float64, got {p.dtype}")
    if p.dim() == 0 or p.shape[-1] == 0:
        raise ValueError(f"p must be (…, n) with n >= 1, got {tuple(p.shape)}")
    if not (
        (p >= 0).all()
        and ((p.sum(-1) - 1).abs() <= 64 * torch.finfo(p.dtype).eps).all()
    ):
        raise ValueError(
            f"p must be probabilities, >= 0 and summing to 1 along the last axis, got {p!r}"
        )
