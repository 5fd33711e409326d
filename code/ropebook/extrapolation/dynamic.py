"""Methods whose frequencies depend on the length of the sequence: their factor grows as the sequence grows."""

from __future__ import annotations

import abc
from dataclasses import dataclass

import torch
from torch import Tensor

from ropebook.extrapolation.frequencies import (
    Frequencies,
    NTKAware,
    Scaled,
    YaRN,
    check_yarn,
)
from ropebook.extrapolation.methods import known_as
from ropebook.extrapolation.parts import (
    check_factor,
    check_trained,
    divide_by_powers,
    frequencies,
    grown_to,
    length_factor,
)
from ropebook.shapes import Float

__all__ = ["Dynamic", "DynamicNTK", "DynamicYaRN"]


class Dynamic(Frequencies):
    """A method whose factor depends on the current length.

    At each length it uses the frequencies for the factor at that length.
    """

    trained_length: int
    follows_length = True

    @abc.abstractmethod
    def at(self, scale: float) -> Frequencies:
        """Return the method with this fixed factor, for sequences of any length."""

    def effective_scale(self, length: int) -> float:
        """Return the factor at length n: 1 up to L, and n/L beyond."""
        return grown_to(length, self.trained_length)

    def fixed(self, target_length: int) -> Frequencies:
        """Return a scaling that always uses the frequencies for ``target_length``, so cached keys stay valid."""
        length_factor(self.trained_length, target_length)
        return self.at(self.effective_scale(target_length))


@known_as(
    "dynamic_ntk",
    "dynamic NTK",
    2023,
    "emozilla",
    "extrapolation.md#dynamic-ntk-must-short-texts-change",
    example={"trained_length": 32},
    trains="no",
    changes_within=False,
    cache_safe=False,
    transformers="dynamic",
    suits=("as it is, short texts untouched",),
    explorers={"alive": ""},
)
@dataclass(frozen=True)
class DynamicNTK(Dynamic):
    """NTK-aware scaling that grows with the sequence: b′ = b·(s·n/L − (s − 1))^(d/(d−2)) for n > L, and b up to L.

    With the default ``factor`` of 1, the base is multiplied by (n/L)^(d/(d−2)). With a factor s, this is the form that
    emozilla (2023) published and that transformers calls "dynamic". In that form, `effective_scale` does not equal s at
    n = s·L.

    >>> from ropebook import rope
    >>> method = DynamicNTK(trained_length=512)
    >>> method(rope.inv_freq(4), 2048)
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    trained_length: int
    factor: float = 1.0

    def __post_init__(self) -> None:
        check_trained(self.trained_length)
        check_factor(self.factor)

    def effective_scale(self, length: int) -> float:
        """Return the number by which the last pair's θ is divided at length n: 1 up to L, and s·n/L − (s − 1) beyond.

        >>> DynamicNTK(trained_length=512, factor=4.0).effective_scale(4 * 512)
        13.0
        """
        grown = grown_to(length, self.trained_length)
        # This is the same formula, but its value is exactly 1 up to L.
        return 1 + self.factor * (grown - 1)

    def at(self, scale: float) -> NTKAware:
        return NTKAware(scale)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        # We don't call `at`, because its check of the factor would make compilation fail.
        return divide_by_powers(inv_freq, self.effective_scale(length)), 1.0

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> DynamicNTK:
        """Make the method from L alone, because its factor is computed from the current length."""
        return cls(trained_length)


@known_as(
    "dynamic_yarn",
    "dynamic YaRN",
    2023,
    "peng2024",
    "extrapolation_configured.md#yarn-where-does-its-factor-go",
    example={"trained_length": 32, "beta": 4.0},
    trains="no",
    changes_within=False,
    cache_safe=False,
)
@dataclass(frozen=True)
class DynamicYaRN(Dynamic):
    """`YaRN` with s = n/L for n > L. Up to L the model is unchanged. The options are those of `YaRN`.

    Peng et al. 2023, section 3.3 ("dynamic scaling").

    >>> from ropebook import rope
    >>> DynamicYaRN(trained_length=512)(rope.inv_freq(6), 2048)
    (tensor([1.0000e+00, 2.9010e-02, 5.3861e-04], dtype=torch.float64), 1.138629436111989)
    """

    trained_length: int
    alpha: float = 1.0
    beta: float = 32.0
    truncate: bool = True
    ramp: str = "pairs"
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        check_yarn(self)

    def at(self, scale: float) -> YaRN:
        return YaRN(scale, **vars(self))

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        if isinstance(length, torch.SymInt):
            raise ValueError(
                "length must be a number for dynamic YaRN, which has no single formula for all lengths to export, "
                f"got {length}: fix the frequencies (fixed(target_length))"
            )
        scale = self.effective_scale(length)
        if scale == 1:
            return frequencies(inv_freq), 1.0
        return self.at(scale)(inv_freq)
