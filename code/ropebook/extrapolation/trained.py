"""Methods that require training: another base, or pairs that are not rotated."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.extrapolation.frequencies import Frequencies, Scaled
from ropebook.extrapolation.measures import least_ntk_factor
from ropebook.extrapolation.methods import known_as
from ropebook.extrapolation.parts import (
    check_factor,
    check_fraction,
    frequencies,
    log_base_of,
    ntk_base,
)
from ropebook.shapes import Float

__all__ = ["BaseChange", "Partial", "Proportional"]


@known_as(
    "base",
    "base change",
    2023,
    "xiong2023",
    "extrapolation_trained.md#what-if-the-base-is-changed-after-training",
    example={"base": 500000.0},
    trains="yes",
    transformers="rope_theta",
    suits=("only the base can be set",),
)
@dataclass(frozen=True)
class BaseChange(Frequencies):
    """A different base, for further training ("adjusted base frequency"): Xiong et al. 2023, b = 500,000.

    >>> BaseChange(base=1e6)(rope.inv_freq(4))
    (tensor([1.0000, 0.0010], dtype=torch.float64), 1.0)
    """

    base: float

    def __post_init__(self) -> None:
        checks.number("base", self.base, minimum=1)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        dim = 2 * len(frequencies(inv_freq))
        return rope.inv_freq(dim, self.base).to(inv_freq), 1.0

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> BaseChange:
        """Make the method with the smallest base for which no pair exceeds its training angles."""
        theta = rope.inv_freq(dim, base)
        factor = least_ntk_factor(theta, trained_length, target_length)
        return cls(ntk_base(base, dim, factor))


@known_as(
    "partial",
    "partial rotary",
    2021,
    "wang2021",
    "extrapolation_trained.md#what-is-changed-before-training",
    example={"fraction": 0.5},
    trains="yes",
    transformers="partial_rotary_factor",
)
@dataclass(frozen=True)
class Partial(Frequencies):
    """Partial rotary: only a ``fraction`` of the d entries, at the start of the head, is rotated.

    The exponent is divided by the number of rotated entries instead of d.

    The result has fewer frequencies than ``inv_freq``: base^(−2i/r) with r = ⌊fraction·d⌋, which must be even. The
    rest of each vector is left unchanged (`ropebook.efficient.apply_rotary`). Wang and Komatsuzaki 2021 (GPT-J) rotate
    64 of 256 entries; Black et al. 2022 (GPT-NeoX) also rotate a quarter.

    >>> Partial(fraction=0.5)(rope.inv_freq(8))
    (tensor([1.0000, 0.0100], dtype=torch.float64), 1.0)
    """

    fraction: float

    def __post_init__(self) -> None:
        check_fraction(self.fraction)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        dim = self.rotary_dim(2 * len(frequencies(inv_freq)))
        exponents = torch.arange(0, dim, 2).to(inv_freq) / dim
        return (-exponents * log_base_of(inv_freq)).exp(), 1.0

    def rotary_dim(self, dim: int) -> int:
        """Return r = ⌊fraction·d⌋, which `ropebook.efficient.RotaryEmbedding` calls ``rotary_dim``.

        Raises ``ValueError`` if r is odd or 0.
        """
        entries = int(dim * self.fraction)
        return checks.even("fraction * dim, rounded down,", entries)

    def rotary(self, dim: int) -> dict[str, object]:
        return {"rotary_dim": self.rotary_dim(checks.even("dim", dim))}


@known_as(
    "proportional",
    "proportional rotary (p-RoPE)",
    2024,
    "barbero2025",
    "extrapolation_trained.md#what-is-changed-before-training",
    example={"fraction": 0.5},
    trains="yes",
    transformers="proportional",
)
@dataclass(frozen=True)
class Proportional(Frequencies):
    """p-RoPE: a ``fraction`` of the pairs, the fastest ones, keep their θ.

    The slower pairs are not rotated at all (θ = 0).

    Unlike in `Partial`, the exponent is still divided by d. Barbero et al. 2024. In transformers the method is called
    "proportional", and all θ are also divided by ``factor``.

    >>> Proportional(fraction=0.5)(rope.inv_freq(8))
    (tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64), 1.0)
    """

    fraction: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_fraction(self.fraction)
        check_factor(self.factor)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        pairs = len(frequencies(inv_freq))
        turning = int(self.fraction * pairs)
        if turning == 0:
            raise ValueError(
                f"fraction must leave one of {pairs} pairs rotating, got {self.fraction}"
            )
        turning = torch.arange(pairs) < turning
        return inv_freq * turning.to(inv_freq) / self.factor, 1.0
