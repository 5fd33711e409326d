"""The interface of all schemes, which compute a score from a query, a key, and the positions of both."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.rope import Positions, as_positions, in_float64
from ropebook.shapes import Float
from ropebook.sinusoidal import relative_positions


class Parts(NamedTuple):
    """The parts of a score q·k/√d + bias: the vectors q and k, and the bias (None if there is no bias)."""

    q: Tensor
    k: Tensor
    added: Tensor | None


class Scheme(nn.Module):
    """A way to encode position. A subclass defines `parts`, from which `score` and attention follow."""

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        """Return the score's parts. The arguments are those of `score`, which has already checked them."""
        raise NotImplementedError

    def score(
        self,
        q: Float[Tensor, "... heads queries dim"],
        k: Float[Tensor, "... heads keys dim"],
        m: Positions,
        n: Positions,
    ) -> Float[Tensor, "... heads queries keys"]:
        """Compute the scores of queries at the positions ``m`` (queries,) with keys at ``n`` (keys,), before the mask
        and the softmax are applied.

        Raises ``TypeError`` or ``ValueError`` for vectors or positions that do not fit together.
        """
        q, k, added = self.parts(q, k, *fit(q, k, m, n))
        scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
        return scores if added is None else scores + added.to(scores)

    def size(self) -> int:
        """Count the numbers that the scheme learns."""
        return sum(weight.numel() for weight in self.parameters())


class Bias(Scheme):
    """A scheme that adds a bias to the score. The bias depends only on the head and the positions."""

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        """Return the bias for queries at ``m`` and keys at ``n``. It is float64 if it is computed rather than
        learned."""
        raise NotImplementedError

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        bias = self.bias(m, n)
        if bias.shape[0] != q.shape[-3]:
            raise ValueError(
                f"q must have {bias.shape[0]} heads, as the scheme has, got {q.shape[-3]}"
            )
        return Parts(q, k, bias)


class Nothing(Scheme):
    """A scheme without positions, whose score is q·k/√d. Only a causal mask can give the model information about the
    order (Haviv et al. 2022)."""

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        return Parts(q, k, None)


def distances(m: Positions, n: Positions) -> Float[Tensor, "queries keys"]:
    """Return the distance Δ = m − n between each query and each key, float64.

    >>> distances([0, 5], [0, 1, 2])
    tensor([[ 0., -1., -2.],
            [ 5.,  4.,  3.]], dtype=torch.float64)
    """
    return in_float64(relative_positions(m, n))


def fit(q: Tensor, k: Tensor, m: Positions, n: Positions) -> tuple[Tensor, Tensor]:
    """Convert the positions to tensors. Raises ``TypeError`` or ``ValueError`` if they do not fit the vectors."""
    for name, x in (("q", q), ("k", k)):
        if checks.floating(name, x).ndim < 3:
            raise ValueError(
                f"{name} must be (…, heads, seq, dim), got {tuple(x.shape)}"
            )
    if q.shape[:-2] != k.shape[:-2] or q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"k must have q's shape except for its length; q's is {tuple(q.shape)}, got {tuple(k.shape)}"
        )
    found = []
    for name, places, x in (("m", m, q), ("n", n, k)):
        places = as_positions(name, places).to(x.device)
        if places.shape != (x.shape[-2],):
            raise ValueError(
                f"{name} must have shape ({x.shape[-2]},), one position for each vector, got {tuple(places.shape)}"
            )
        found.append(places)
    return found[0], found[1]


def first_share(length: int) -> Float[Tensor, " length"]:
    """Return the weight that each query gives to the first key under a causal mask if all scores are equal, which is
    1/(m + 1).

    This is how a layer without positions can find out where a token is. If the value of the first token carries a mark,
    the mean of the values shows 1/(m + 1), and therefore m.

    >>> first_share(4)
    tensor([1.0000, 0.5000, 0.3333, 0.2500], dtype=torch.float64)
    """
    seen = torch.ones(checks.integer("length", length, minimum=1), length).tril()
    scores = torch.zeros(length, length, dtype=torch.float64)
    return scores.masked_fill(seen == 0, -math.inf).softmax(-1)[:, 0]
