"""Measures of a method: which pairs meet new angles, how far pairs are stretched, and the error of rotated caches."""

from __future__ import annotations

import dataclasses
import math
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import Scaling
from ropebook.extrapolation.distances import Distances
from ropebook.extrapolation.frequencies import YaRN
from ropebook.extrapolation.parts import (
    check_trained,
    exact_positions,
    frequencies,
    length_factor,
    rotated,
    same_pairs,
)
from ropebook.shapes import Bool, Float, Int

# --- Why length fails -----------------------------------------------------------------------------------------------


def turned(
    inv_freq: Float[Tensor, " pairs"], trained_length: int
) -> Bool[Tensor, " pairs"]:
    """Return which pairs completed a turn in training: (L − 1)θ_i ≥ 2π. Shape (d/2,), boolean.

    Only for these pairs has the trained model seen every angle. (L − 1 is the largest distance in a sequence of L
    tokens.)

    >>> from ropebook.rope import inv_freq
    >>> turned(inv_freq(128), 4096).sum().item(), "of", 64
    (46, 'of', 64)
    """
    last = check_trained(trained_length) - 1
    return frequencies(inv_freq) * last >= 2 * math.pi


def least_ntk_factor(
    inv_freq: Float[Tensor, " pairs"], trained_length: int, target_length: int
) -> float:
    """Return the smallest factor for NTK-aware scaling that keeps every pair within its training angles.

    The factor is determined by the first pair that did not complete a turn. Of all pairs that need stretching, this
    pair is stretched least.

    >>> from ropebook.rope import inv_freq
    >>> round(least_ntk_factor(inv_freq(128), 4096, 16384), 2)
    6.68

    Raises:
        ValueError: not even the first pair has completed a turn; no factor can help, because the first pair is never
            stretched.
    """
    length_factor(trained_length, target_length)
    known = turned(inv_freq, trained_length)
    if known.all():
        return 1.0
    first = int(known.sum())
    if first == 0:
        raise ValueError(
            f"trained_length must let the first pair complete a turn, got {trained_length}"
        )
    needed = (target_length - 1) / (trained_length - 1)
    return needed ** ((len(inv_freq) - 1) / first)


def overshoot(
    inv_freq: Float[Tensor, " pairs"],
    trained_length: int,
    target_length: int,
    scaled: Float[Tensor, " pairs"],
) -> Float[Tensor, " pairs"]:
    """Return how far each pair goes beyond its training angles, in radians: at least 0, shape (d/2,).

    ``scaled`` are the frequencies in use at ``target_length``; for the plain model, pass ``inv_freq``. For a pair that
    did not complete a turn in training (`turned`), the result is max(0, (L′ − 1)θ′_i − (L − 1)θ_i). For the other pairs
    it is 0, because they have been at every angle.

    >>> from ropebook.rope import inv_freq
    >>> theta = inv_freq(8)
    >>> overshoot(theta, 512, 2048, theta)
    tensor([ 0.0000,  0.0000, 15.3600,  1.5360], dtype=torch.float64)
    """
    length_factor(trained_length, target_length)
    same_pairs(inv_freq, scaled)
    beyond = (target_length - 1) * scaled - (trained_length - 1) * inv_freq
    return beyond.clamp(min=0).masked_fill(turned(inv_freq, trained_length), 0)


def stretch(
    scaling: Scaling, inv_freq: Float[Tensor, " pairs"], length: int | None = None
) -> Float[Tensor, " pairs"]:
    """Return the factor by which a method stretches each wavelength: λ′_i/λ_i = θ_i/θ′_i, shape (d/2,).

    A value of 1 means that the pair is kept; a value of s means that it is interpolated.

    >>> from ropebook.rope import inv_freq
    >>> from ropebook.extrapolation import NTKAware
    >>> stretch(NTKAware(factor=4.0), inv_freq(8))
    tensor([1.0000, 1.5874, 2.5198, 4.0000], dtype=torch.float64)
    """
    scaled, _ = scaling(inv_freq, length)
    same_pairs(inv_freq, scaled)
    return inv_freq / scaled


# --- The paper's ramp and the code's --------------------------------------------------------------------------------


class PaperAndCode(NamedTuple):
    """The difference between the two ramps, measured by `paper_against_code`."""

    # the paper's θ′ divided by the code's, for each pair
    ratio: Tensor
    # the larger of ratio and 1/ratio, at the pair where it is largest
    largest: float
    # the index of this pair
    pair: int


def paper_against_code(
    inv_freq: Float[Tensor, " pairs"],
    factor: float,
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> PaperAndCode:
    """Compare YaRN's frequencies as defined in the paper with those of the published code.

    >>> from ropebook.rope import inv_freq
    >>> difference = paper_against_code(inv_freq(128), 16.0, 4096)
    >>> round(difference.largest, 2), difference.pair
    (3.04, 38)
    """
    ours = YaRN(factor, trained_length, alpha, beta, truncate)
    paper, _ = dataclasses.replace(ours, ramp="turns")(inv_freq)
    code, _ = ours(inv_freq)
    apart = (paper / code).log().abs()
    largest, pair = apart.max().exp().item(), apart.argmax().item()
    return PaperAndCode(paper / code, largest, pair)


# --- A cache of rotated keys ----------------------------------------------------------------------------------------


class CacheError(NamedTuple):
    """The result of `cache_error`, for the last query of a sequence of T tokens."""

    # (T,): the length of the sequence when each key was rotated
    lengths: Tensor
    # (…, T): the method's scores in one pass over the whole sequence
    exact: Tensor
    # (…, T): scores in which each key keeps the rotation it received on arrival
    cached: Tensor
    # the largest difference between exact and cached
    largest: float


def arrival_lengths(length: int, prefill: int = 1) -> Int[Tensor, " length"]:
    """Return the length of the sequence when each key arrived: shape (length,), int64.

    The length is ``prefill`` for the first ``prefill`` keys, and one more for each key after them.

    >>> arrival_lengths(6, prefill=3)
    tensor([3, 3, 3, 4, 5, 6])
    """
    length = checks.integer("length", length, minimum=1)
    prefill = checks.integer("prefill", prefill, minimum=1, maximum=length)
    return torch.arange(1, length + 1).clamp(min=prefill)


def cache_error(
    method: Scaling | Distances,
    q: Float[Tensor, "*shape dim"],
    k: Float[Tensor, "... dim"],
    inv_freq: Float[Tensor, " pairs"],
    prefill: int = 1,
) -> CacheError:
    """Return the error of the last query's scores if keys are rotated when they arrive and never again.

    A method is cache-safe if this error is zero for every sequence. ``q`` (…, d): the query at position T − 1. ``k``
    (…, T, d): keys 0 … T − 1. Both must be unrotated, interleaved, float64 or float32.

    The query is always rotated with the frequencies for length T. A method that changes distances rotates it twice: by
    its own position, and by the position it is given for far keys. The error is zero if the frequencies do not depend
    on the current length, as with ``fixed``. A cache of unrotated keys has no error either; its scores are ``exact``.

    >>> from ropebook.rope import inv_freq
    >>> from ropebook.extrapolation import DynamicNTK
    >>> q, k = torch.ones(8), torch.ones(600, 8)
    >>> theta = inv_freq(8)
    >>> cache_error(DynamicNTK(trained_length=512), q, k[:512], theta).largest
    0.0
    >>> cache_error(DynamicNTK(trained_length=512), q, k, theta).largest > 1
    True
    >>> from ropebook.extrapolation import ReRoPE
    >>> cache_error(ReRoPE(window=64), q, k, theta).largest > 1
    True
    """
    for name, x in (("q", q), ("k", k)):
        checks.floating(name, x)
    if k.ndim < 2 or q.shape != (*k.shape[:-2], k.shape[-1]):
        raise ValueError(
            "q must be (…, d) and k (…, T, d) with the same d, "
            f"got {tuple(q.shape)} and {tuple(k.shape)}"
        )
    length = k.shape[-2]
    lengths = arrival_lengths(length, prefill)
    positions, query = exact_positions(torch.arange(length)), q[..., None, :]
    last = positions[-1:]
    if isinstance(method, Distances):
        keys = rotated(k, positions, inv_freq)
        far_at, _ = method.far_positions(last, positions)
        near, far = (
            (rotated(query, at, inv_freq) * keys).sum(-1) for at in (last, far_at)
        )
        cached = torch.where(last - positions < method.window, near, far)
        exact = method.scores(query, k, last, positions, inv_freq).squeeze(-2)
    else:
        scaled = {n: method(inv_freq, n) for n in lengths.unique().tolist()}
        query = rotated(query, last, *scaled[length])
        keys = [
            rotated(k[..., lengths == n, :], positions[lengths == n], *scaled[n])
            for n in scaled
        ]
        cached = (torch.cat(keys, dim=-2) * query).sum(-1)
        exact = (rotated(k, positions, *scaled[length]) * query).sum(-1)
    return CacheError(lengths, exact, cached, (cached - exact).abs().max().item())
