"""The effect of the scale 1/√d: how large scores are without it, and how sensitive weights are to dot products."""

from __future__ import annotations

import dataclasses

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention.dot_product import HALF_TYPES


def score_variance(
    dim: int, samples: int = 10_000, generator: torch.Generator | None = None
) -> float:
    """Measure the variance of q·k over ``samples`` pairs of independent standard normal vectors of length ``dim``.

    In theory it is ``dim``, because q·k is a sum of ``dim`` independent products, each of variance 1. The sample
    variance itself has a relative standard deviation of about √((2 + 6/dim) / samples). Everything is computed in
    float64 on the CPU, so the random numbers do not depend on the accelerator. Peak memory is 24·dim·samples bytes.

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
    """Draw unscaled scores q·k for ``rows`` random queries, each with its own ``n_keys`` keys.

    Queries and keys are independent standard normal vectors with ``dim`` entries. For a given query, the scores are
    then independent normal numbers with a standard deviation equal to the length of q. We therefore draw the scores
    instead of the keys. The result has shape (rows, n_keys) and is float64, on the CPU.

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
    """Statistics of the softmax over many rows of dot products, as returned by :func:`rows_of`.

    Here, *gradient* means the size of ∂p/∂(q·k), the derivative of a row's weights with respect to its dot products
    (:func:`softmax_gradient_norm`).
    """

    largest: float
    """The median, over all rows, of the largest weight in the row."""
    gradient: float
    """The median gradient over all rows."""
    mean_gradient: float
    """The mean gradient over all rows."""
    close: float
    """The share of rows whose two largest scores are less than 1 apart."""
    lead: float
    """The mean gap between the two largest scores of a row."""


def rows_of(
    dim: int,
    n_keys: int,
    divisor: float,
    rows: int = 1000,
    seed: int = 0,
) -> Rows:
    """Draw dot products with :func:`score_rows`, divide them by ``divisor``, and measure their softmax.

    The same ``seed`` draws the same dot products for every ``divisor``. ``n_keys`` must be at least 2.

    >>> without, scaled = rows_of(512, 16, 1), rows_of(512, 16, 512**0.5)
    >>> without.gradient < scaled.gradient / 5
    True
    """
    checks.integer("n_keys", n_keys, minimum=2)
    generator = torch.Generator().manual_seed(
        checks.integer("seed", seed, minimum=0)
    )
    scores = score_rows(dim, n_keys, rows, generator) / _divisor(divisor)
    weights = scores.softmax(-1)
    sizes = softmax_gradient_norm(weights, divisor)
    first, second = scores.topk(2).values.T
    return Rows(
        largest=weights.amax(-1).median().item(),
        gradient=sizes.median().item(),
        mean_gradient=sizes.mean().item(),
        close=(first - second < 1).double().mean().item(),
        lead=(first - second).mean().item(),
    )


def softmax_jacobian(p: Tensor, divisor: float = 1.0) -> Tensor:
    """Return the derivative ∂p/∂a of the weights ``p`` = softmax(a / ``divisor``), which is (diag(p) − p pᵀ) / divisor.

    The result for ``p`` (…, n) is (…, n, n). In attention, a is a row of unscaled dot products q·k, and ``divisor`` is
    √d. By the chain rule, dividing a by ``divisor`` divides the derivative by the same number. ``p`` must be float32 or
    float64, ≥ 0, and sum to 1 along the last axis.

    >>> softmax_jacobian(torch.tensor([0.5, 0.5]))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    _check_probabilities(p)
    outer = p.unsqueeze(-1) * p.unsqueeze(-2)
    others = outer - torch.diag_embed(outer.diagonal(dim1=-2, dim2=-1))
    # The diagonal is p(1 − p). We compute it as p times the sum of all other p, because 1 − p loses its digits when p
    # is near 1, which is the interesting case.
    return (torch.diag_embed(others.sum(-1)) - others) / _divisor(divisor)


def softmax_gradient_norm(p: Tensor, divisor: float = 1.0) -> Tensor:
    """Return the Frobenius norm of :func:`softmax_jacobian`: (…, n) to (…).

    It measures how much the weights change when the dot products change.

    With s = Σ p² it is at most √(s(1 − s)) / divisor, and so at most 1/(2 · divisor). It reaches that maximum when two
    entries have half the weight each, and falls to 0 as ``p`` approaches a one-hot row. The matrix itself is never
    computed, so rows of thousands of keys are cheap.

    >>> softmax_gradient_norm(torch.tensor([0.5, 0.5]))
    tensor(0.5000)
    >>> softmax_gradient_norm(torch.tensor([0.5, 0.5]), divisor=8)
    tensor(0.0625)
    """
    _check_probabilities(p)
    # Column j is p_j times a vector that contains 1 − p_j and the other p. For the largest p_j, computing 1 − p_j would
    # lose digits, so there we sum the other p instead, as `softmax_jacobian` does.
    largest, at = p.max(-1, keepdim=True)
    rest = p.scatter(-1, at, 0.0)
    missing = (1 - p).scatter(-1, at, rest.sum(-1, keepdim=True))
    squares = rest.square().sum(-1, keepdim=True)
    others = (squares - rest.square() + largest.square()).scatter(-1, at, squares)
    columns = p * torch.hypot(missing, others.sqrt())
    return torch.linalg.vector_norm(columns, dim=-1) / _divisor(divisor)


def _divisor(divisor: float) -> float:
    return checks.number("divisor", divisor, above=0)


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
