"""Numbers that pages quote about one model in results/inside.json. Each function
takes one run, in the form that `ropebook.lab.inside.measure` returns."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float


def shares(run: Mapping) -> Float[Tensor, "layers heads pairs"]:
    """Return how much each pair can contribute to a head's scores, as a share of what all pairs can contribute.

    The measure is the product of the mean lengths of the pair's query and key, which rotation does not change. For each
    head, the shares sum to 1. The result is float64.
    """
    q, k = (torch.tensor(run["pair_norms"][name]).double() for name in "qk")
    return q * k / (q * k).sum(-1, keepdim=True)


def falling(run: Mapping) -> tuple[int, int]:
    """Count the heads in which the mean score before the softmax falls with distance.

    Returns that count and the total number of heads.
    """
    slopes = [head["slope"] for head in run["heads"]]
    return sum(slope < 0 for slope in slopes), len(slopes)


def near(run: Mapping) -> float:
    """Return the share of the weight that lies within 32 bytes, averaged over the
    heads."""
    return sum(head["near_32"] for head in run["heads"]) / len(run["heads"])


def broken(run: Mapping) -> float:
    """Return how many more bits a byte costs beyond L than within L.

    This is the damage that a method can repair.
    """
    part = run["proportional"]
    return part["beyond"]["plain"] - part["plain"]


def cured(run: Mapping, fraction: float) -> float:
    """Return the share of `broken` that disappears if only this fraction of the pairs rotates, starting with the fastest.

    The result is negative if the damage grows.

    Raises ``ValueError`` for a fraction that was not tried.
    """
    part = run["proportional"]
    checks.choice("fraction", fraction, part["fractions"])
    at = part["fractions"].index(fraction)
    return -part["beyond"]["change"][at] / broken(run)
