"""What pages say about one model in results/inside.json: each function takes one run, made by
`ropebook.lab.inside.measure`."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor

from ropebook import checks
from ropebook.shapes import Float


def shares(run: Mapping) -> Float[Tensor, "layers heads pairs"]:
    """What each pair can add to a head's scores, as a share of all pairs: the product of the mean lengths of its query
    and key, which rotation does not change. Sums to 1 over the pairs; float64."""
    q, k = (torch.tensor(run["pair_norms"][name]).double() for name in "qk")
    return q * k / (q * k).sum(-1, keepdim=True)


def falling(run: Mapping) -> tuple[int, int]:
    """In how many heads the mean score before the softmax falls with distance, and how many there are."""
    slopes = [head["slope"] for head in run["heads"]]
    return sum(slope < 0 for slope in slopes), len(slopes)


def near(run: Mapping) -> float:
    """The share of all weight within 32 bytes, mean over the heads."""
    return sum(head["near_32"] for head in run["heads"]) / len(run["heads"])


def broken(run: Mapping) -> float:
    """How much more a byte costs beyond L than within, in bits: the damage that a method can
    repair."""
    part = run["proportional"]
    return part["beyond"]["plain"] - part["plain"]


def cured(run: Mapping, fraction: float) -> float:
    """The share of `broken` that disappears if only this fraction of the pairs rotates, the fastest ones; below 0 if
    more breaks.

    ``ValueError`` for a fraction that was not tried.
    """
    part = run["proportional"]
    checks.choice("fraction", fraction, part["fractions"])
    at = part["fractions"].index(fraction)
    return -part["beyond"]["change"][at] / broken(run)
