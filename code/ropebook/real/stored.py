"""What results/real contains, as arrays: the page about the published model draws them.

Each file was written by ``benchmarks/real.py``; `ropebook.results.load` raises ``FileNotFoundError`` for one that is
missing.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, results
from ropebook.real.bias import at
from ropebook.real.heads import pair_shares
from ropebook.real.rule import LENGTH, band_mean
from ropebook.shapes import Float


def losses(text: str, change: str) -> Float[Tensor, " thousands"]:
    """The loss in nats of a text's tokens, as means over 1,024 tokens at a time, float64.

    >>> losses("code", "as-is").shape
    torch.Size([12])
    """
    found = torch.tensor(_stretches(text, change), dtype=torch.float64)
    return found.view(LENGTH // 1024, -1).mean(1)


def loss_in(text: str, change: str, band: tuple[int, int]) -> float:
    """The mean loss in nats of the tokens in a band of positions, as in `ropebook.real.rule.band_mean`.

    >>> round(loss_in("code", "as-is", (8192, 9216)), 2)
    0.81
    """
    return band_mean(_stretches(text, change), band)


def _stretches(text: str, change: str) -> list[float]:
    return results.load(f"loss-{text}-{change}")["loss"]


def shares(text: str) -> Float[Tensor, "layers heads pairs"]:
    """Each pair's share of the sum of |q_i||k_i| over the pairs of its head, float64, on short pieces of a text.

    >>> shares("code").shape
    torch.Size([30, 9, 32])
    """
    found = results.load(f"heads-{text}")
    return pair_shares(
        *(torch.tensor(found[name], dtype=torch.float64) for name in "qk")
    )


class Concentrated(NamedTuple):
    """How many heads there are, in how many of them one pair has more than a certain share, and how many of these pairs
    belong to a band."""

    heads: int
    found: int
    in_band: int


def concentrated(
    share: Float[Tensor, "layers heads pairs"], above: float, band: tuple[int, ...]
) -> Concentrated:
    """Counts the heads in which the largest share is above a number.

    >>> concentrated(torch.tensor([[[0.9, 0.1], [0.45, 0.55], [0.5, 0.5]]]), 0.5, (0,))
    Concentrated(heads=3, found=2, in_band=1)
    """
    largest, pair = share.flatten(0, -2).max(-1)
    many = pair[largest > checks.number("above", above, minimum=0, maximum=1)]
    return Concentrated(
        len(largest), len(many), sum(one in band for one in many.tolist())
    )


class Bias(NamedTuple):
    """What distance alone adds to the scores of all heads, and the frequencies, as `benchmarks/real.py` stored them."""

    # with the keys of ordinary tokens, complex128
    amplitudes: Tensor
    inv_freq: Float[Tensor, " pairs"]

    def mean(
        self,
        distances: Float[Tensor, " distances"],
        pairs: slice | list[int] = slice(None),
    ) -> Float[Tensor, " distances"]:
        """The mean score over all heads at each distance, of some of the pairs (by default all), float64."""
        return at(self.amplitudes, self.inv_freq, distances, pairs).mean((0, 1))


def bias() -> Bias:
    """Measured on texts of 1,024 tokens.

    >>> bias().mean(torch.tensor([0.0])).shape
    torch.Size([1])
    """
    found = results.load("bias")
    parts = (
        torch.tensor(found[f"others_{part}"], dtype=torch.float64)
        for part in ("real", "imag")
    )
    return Bias(
        torch.complex(*parts), torch.tensor(found["inv_freq"], dtype=torch.float64)
    )


class Looked(NamedTuple):
    """Means over all heads, by the distance between query and key, in one long text; float64."""

    # where the bins of distances begin and end
    edges: list[int]
    # the share of the weight in each bin, without the first token's
    weights: Float[Tensor, " bins"]
    # the mean score in each bin, NaN where no key is so far away
    scores: Float[Tensor, " bins"]


def looked(text: str, change: str, where: str) -> Looked:
    """Where the queries look that stand ``where``: "within" the trained length, at its end, or "beyond" it.

    >>> looked("code", "as-is", "within").weights.shape
    torch.Size([30])
    """
    found = results.load(f"lookback-{text}-{change}")
    part = found[checks.choice("where", where, ("within", "beyond"))]
    weights, scores = (
        torch.tensor(part[name], dtype=torch.float64).mean((0, 1))
        for name in ("weights", "scores")
    )
    empty = torch.tensor(found["edges"][:-1]) >= max(part["queries"])
    return Looked(found["edges"], weights, scores.masked_fill(empty, torch.nan))
