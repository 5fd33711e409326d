"""Methods that change distances: they make far keys seem nearer, while the frequencies stay the same."""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass

import torch
from torch import Tensor

from ropebook import checks
from ropebook.extrapolation.methods import Extension, known_as
from ropebook.extrapolation.parts import (
    at_least_float32,
    check_trained,
    exact_positions,
    length_factor,
    rotated,
)
from ropebook.shapes import Float, Real

__all__ = ["Distances", "LeakyReRoPE", "ReRoPE", "SelfExtend", "least_group"]


class Distances(Extension, abc.ABC):
    """A method that leaves θ alone and makes far keys (those with Δ = m − n ≥ window) seem nearer.

    A query sees near keys at their true distance. For far keys, the query and the key are given other positions
    (`far_positions`), and these determine their distance. The scores are therefore computed twice, each time with
    rotations as usual, and every score is taken from one of the two tables (`scores`). Every key is rotated twice, each
    time by an angle that depends only on its own position. The method is designed for causal attention; keys after the
    query (Δ < 0) count as near.
    """

    acts_on = "distances"
    window: int

    @property
    def distances(self) -> Distances:
        return self

    @abc.abstractmethod
    def far_positions(
        self,
        query_positions: Real[Tensor, " *queries"],
        key_positions: Real[Tensor, " *keys"],
    ) -> tuple[Float[Tensor, " *queries"], Float[Tensor, " *keys"]]:
        """Return the positions that queries and keys get if they are far apart. Shapes are unchanged."""

    @abc.abstractmethod
    def reach(self, trained_length: int) -> float:
        """Return the length of the longest sequence in which no query sees a key at a distance above L − 1, or infinity
        if no sequence is too long."""

    def relative(
        self,
        query_positions: Real[Tensor, "... q_len"],
        key_positions: Real[Tensor, "... k_len"],
    ) -> Float[Tensor, "... q_len k_len"]:
        """Return the distance at which each query sees each key: (…, T_q) and (…, T_k) to (…, T_q, T_k), float64.

        >>> place = torch.arange(5)
        >>> ReRoPE(window=2).relative(place, place).tril()
        tensor([[0., 0., 0., 0., 0.],
                [1., 0., 0., 0., 0.],
                [2., 1., 0., 0., 0.],
                [2., 2., 1., 0., 0.],
                [2., 2., 2., 1., 0.]], dtype=torch.float64)
        """
        m, n = exact_positions(query_positions), exact_positions(key_positions)
        near, far = (
            at_q[..., :, None] - at_k[..., None, :]
            for at_q, at_k in ((m, n), self.far_positions(m, n))
        )
        return torch.where(near < self.window, near, far)

    def scores(
        self,
        q: Float[Tensor, "*q_batch q_len dim"],
        k: Float[Tensor, "*k_batch k_len dim"],
        query_positions: Real[Tensor, "... q_len"],
        key_positions: Real[Tensor, "... k_len"],
        inv_freq: Float[Tensor, " pairs"],
        *,
        layout: str = "interleaved",
    ) -> Float[Tensor, "... q_len k_len"]:
        """Compute q·k for every query and key at the distances given by `relative`. The result is not divided by √d.

        ``q`` (batch, heads, T_q, d) and ``k`` (batch, heads, T_k, d) must **not be rotated**. Positions are (T_q,) and
        (T_k,), or (batch, T_q) and (batch, T_k). The result is (batch, heads, T_q, T_k), float32 or float64.
        """
        given = q, k, query_positions, key_positions, inv_freq, layout
        near, far, is_near = self._near_and_far(*given)
        return torch.where(is_near, near, far)

    def correction(
        self,
        q: Float[Tensor, "*q_batch q_len dim"],
        k: Float[Tensor, "*k_batch k_len dim"],
        query_positions: Real[Tensor, "... q_len"],
        key_positions: Real[Tensor, "... k_len"],
        inv_freq: Float[Tensor, " pairs"],
        *,
        layout: str = "interleaved",
    ) -> Float[Tensor, "... q_len k_len"]:
        """Return the difference between `scores` and the scores at true distances.

        It is 0 where query and key are near.

        The arguments are those of `scores`.
        """
        given = q, k, query_positions, key_positions, inv_freq, layout
        near, far, is_near = self._near_and_far(*given)
        return (far - near).masked_fill(is_near, 0)

    def _near_and_far(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
        inv_freq: Tensor,
        layout: str,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return the scores at true distances, the scores at changed distances, and a mask.

        The mask is True where the true distance is used.
        """
        m, n = exact_positions(query_positions), exact_positions(key_positions)

        def scores(at_q: Tensor, at_k: Tensor) -> Tensor:
            turned_q = rotated(q, at_q, inv_freq, layout=layout)
            turned_k = rotated(k, at_k, inv_freq, layout=layout)
            return at_least_float32(turned_q) @ at_least_float32(turned_k).mT

        is_near = m[..., :, None] - n[..., None, :] < self.window
        if is_near.ndim > 2:
            # The mask is the same for all heads of a batch row.
            is_near = is_near.unsqueeze(-3)
        return scores(m, n), scores(*self.far_positions(m, n)), is_near


@known_as(
    "rerope",
    "ReRoPE",
    2023,
    "su2023rerope",
    "extrapolation_distances.md#rerope-and-self-extend-what-if-far-tokens-are-just-far",
    example={"window": 8},
    trains="no",
    cache_safe=False,
    explorers={"alive": ""},
)
@dataclass(frozen=True)
class ReRoPE(Distances):
    """Distances stop growing at the window w, so the distance becomes min(Δ, w). Su 2023.

    For far keys, the query is at position w and every key at position 0. Sequences of any length are within reach.

    >>> ReRoPE(window=512).reach(4096)
    inf
    """

    window: int

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)

    def far_positions(
        self,
        query_positions: Real[Tensor, " *queries"],
        key_positions: Real[Tensor, " *keys"],
    ) -> tuple[Float[Tensor, " *queries"], Float[Tensor, " *keys"]]:
        at_window = torch.full_like(query_positions, self.window)
        return at_window, torch.zeros_like(key_positions)

    def reach(self, trained_length: int) -> float:
        check_window(self.window, trained_length)
        return math.inf


@known_as(
    "leaky_rerope",
    "leaky ReRoPE",
    2023,
    "su2023rerope",
    "extrapolation_distances.md#rerope-and-self-extend-what-if-far-tokens-are-just-far",
    example={"window": 8, "step": 4.0},
    trains="no",
    cache_safe=False,
)
@dataclass(frozen=True)
class LeakyReRoPE(Distances):
    """Beyond the window w, distances grow by only 1/k per step: w + (Δ − w)/k. Su 2023.

    k is ``step``, at least 1. With k = 1 this is the plain model, and with k → ∞ it becomes `ReRoPE`. For far keys, the
    query is at position m/k + w(1 − 1/k) and the key at position n/k.

    >>> LeakyReRoPE(window=512, step=16.0).reach(4096)
    57841
    """

    window: int
    step: float

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)
        checks.number("step", self.step, minimum=1)

    def far_positions(
        self,
        query_positions: Real[Tensor, " *queries"],
        key_positions: Real[Tensor, " *keys"],
    ) -> tuple[Float[Tensor, " *queries"], Float[Tensor, " *keys"]]:
        moved = self.window * (1 - 1 / self.step)
        return query_positions / self.step + moved, key_positions / self.step

    def reach(self, trained_length: int) -> int:
        check_window(self.window, trained_length)
        furthest = self.window + (trained_length - 1 - self.window) * self.step
        return math.floor(furthest) + 1


@known_as(
    "self_extend",
    "Self-Extend",
    2024,
    "jin2024",
    "extrapolation_distances.md#rerope-and-self-extend-what-if-far-tokens-are-just-far",
    example={"window": 8, "group": 4},
    trains="no",
    cache_safe=False,
    suits=("as it is, two tables of scores",),
    explorers={"alive": ""},
)
@dataclass(frozen=True)
class SelfExtend(Distances):
    """Beyond the window W, positions are counted in groups of G: ⌊m/G⌋ − ⌊n/G⌋ + W − ⌊W/G⌋. Jin et al. 2024.

    If G divides W, the longest sequence within reach has (L − W)·G + W tokens, as the paper says.

    >>> SelfExtend(window=1024, group=8).reach(4096)
    25600
    """

    window: int
    group: int

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)
        checks.integer("group", self.group, minimum=1)

    def far_positions(
        self,
        query_positions: Real[Tensor, " *queries"],
        key_positions: Real[Tensor, " *keys"],
    ) -> tuple[Float[Tensor, " *queries"], Float[Tensor, " *keys"]]:
        moved = self.window - self.window // self.group
        return (
            query_positions.div(self.group, rounding_mode="floor") + moved,
            key_positions.div(self.group, rounding_mode="floor"),
        )

    def reach(self, trained_length: int) -> int:
        check_window(self.window, trained_length)
        moved = self.window - self.window // self.group
        return max(self.window, self.group * (trained_length - moved))

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> SelfExtend:
        """Make the method with a window of L/2, as in the book's measurements, and the smallest group reaching L′."""
        window = max(1, trained_length // 2)
        return cls(window, least_group(trained_length, target_length, window))


def least_group(trained_length: int, target_length: int, window: int) -> int:
    """Return the smallest group size with which Self-Extend takes a model from L tokens to L′.

    >>> least_group(4096, 16384, window=1024)
    6
    """
    length_factor(trained_length, target_length)
    group = 1
    while SelfExtend(window, group).reach(trained_length) < target_length:
        group += 1
    return group


def check_window(window: int, trained_length: int) -> None:
    """Raise ``ValueError`` unless the window is smaller than L."""
    if window >= check_trained(trained_length):
        raise ValueError(
            f"trained_length must be above the window, {window}, got {trained_length}"
        )
