"""What pages say about one model in results/inside.json. Each function takes one
run that was made by `ropebook.lab.inside.measure`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float


def shares(run: Mapping) -> Float[Tensor, "layers heads pairs"]:
    """How much each pair can add to a head's scores, as a share of what all pairs
    can add; float64. This is the product of the mean lengths of the pair's query
    and key, which a rotation does not change. The shares sum to 1 over the pairs.
    """
    q, k = (torch.tensor(run["pair_norms"][name]).double() for name in "qk")
    return q * k / (q * k).sum(-1, keepdim=True)


def falling(run: Mapping) -> tuple[int, int]:
    """The number of heads in which the mean score before the softmax falls with
    distance, and the number of all heads."""
    slopes = [head["slope"] for head in run["heads"]]
    return sum(slope < 0 for slope in slopes), len(slopes)


def near(run: Mapping) -> float:
    """The share of the total weight within 32 bytes, averaged over the heads."""
    return sum(head["near_32"] for head in run["heads"]) / len(run["heads"])


def broken(run: Mapping) -> float:
    """How many more bits a byte costs beyond L than within it. This is the damage
    that a method can repair."""
    part = run["proportional"]
    return part["beyond"]["plain"] - part["plain"]


def cured(run: Mapping, fraction: float) -> float:
    """The share of `broken` that disappears if only this fraction of the pairs, the
    fastest ones, rotates. It is below 0 if the damage grows.

    Raises ``ValueError`` for a fraction that was not tried.
    """
    part = run["proportional"]
    checks.choice("fraction", fraction, part["fractions"])
    at = part["fractions"].index(fraction)
    return -part["beyond"]["change"][at] / broken(run)
