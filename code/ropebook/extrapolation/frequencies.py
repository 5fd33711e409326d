"""Methods that change the frequencies, each with its facts and sources."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from ropebook import checks
from ropebook.extrapolation.methods import Extension, known_as
from ropebook.extrapolation.parts import (
    check_attention_factor,
    check_bounds,
    check_factor,
    check_trained,
    divide_by_powers,
    frequencies,
    grown_to,
    length_factor,
    mix,
    ramp_in_pairs,
    ramp_in_turns,
    yarn_factor,
)
from ropebook.shapes import Float

__all__ = [
    "Frequencies",
    "Interpolation",
    "Llama3",
    "LongRoPE",
    "NTKAware",
    "NTKByParts",
    "Scaled",
    "YaRN",
]

# The result of a scaling: (inv_freq, attention_factor).
Scaled = tuple[Tensor, float]


class Frequencies(Extension, abc.ABC):
    """A method that changes θ: ``method(inv_freq, length)`` returns (inv_freq, attention_factor).

    ``inv_freq``: θ_i = base^(−2i/d) as returned by `ropebook.sinusoidal.inv_freq`, (d/2,), float64 or float32; the
    result has the same dtype and device. ``length``: the current length of the sequence. Methods with
    ``follows_length`` need it, so they reject the None that `RotaryEmbedding` passes when it is given a tensor of
    positions. Other methods ignore the length. A method that needs base and d computes them from ``inv_freq``.
    """

    acts_on = "frequencies"

    @abc.abstractmethod
    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled: ...

    def rotary(self, dim: int) -> dict[str, object]:
        return {"scaling": self}


@known_as(
    "linear",
    "position interpolation",
    2023,
    "chen2023",
    "extrapolation.md#position-interpolation-what-if-all-pairs-are-stretched",
    example={"factor": 4.0},
    trains="yes",
    transformers="linear",
    explorers={
        "ladder": "Every wavelength becomes s times as long.",
        "alive": "",
    },
)
@dataclass(frozen=True)
class Interpolation(Frequencies):
    """Position interpolation: every θ is divided by s, which squeezes position L′ to where L used to be.

    Chen et al. 2023.

    >>> from ropebook import rope
    >>> Interpolation(factor=4.0)(rope.inv_freq(4))
    (tensor([0.2500, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float

    def __post_init__(self) -> None:
        check_factor(self.factor)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        return frequencies(inv_freq) / self.factor, 1.0


@known_as(
    "ntk",
    "NTK-aware",
    2023,
    "bloc97",
    "extrapolation.md#ntk-aware-can-the-first-pair-be-kept",
    example={"factor": 4.0},
    trains="no",
    explorers={
        "ladder": "The first pair is kept, and the last pair takes s times as long.",
        "alive": "",
    },
)
@dataclass(frozen=True)
class NTKAware(Frequencies):
    """NTK-aware scaling: the base is increased to b′ = b·s^(d/(d−2)) (`ntk_base`), bloc97 2023.

    This divides the θ of pair i by s^(2i/(d−2)): the first pair's θ by 1 and the last pair's θ by s. A width of d = 2
    is rejected, because the only pair would be both the first and the last.

    >>> from ropebook import rope
    >>> NTKAware(factor=4.0)(rope.inv_freq(4))
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float

    def __post_init__(self) -> None:
        check_factor(self.factor)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        return divide_by_powers(inv_freq, self.factor), 1.0


@known_as(
    "ntk_by_parts",
    "NTK-by-parts",
    2023,
    "peng2024",
    "extrapolation.md#ntk-by-parts-why-one-law-for-all-pairs",
    example={"factor": 4.0, "trained_length": 32, "beta": 4.0},
    trains="optional",
    explorers={
        "ladder": "Fast pairs are kept and slow ones interpolated, with a ramp in between.",
        "alive": "",
    },
)
@dataclass(frozen=True)
class NTKByParts(Frequencies):
    """Keeps pairs that complete many turns in L, interpolates pairs that complete none, and blends in between.

    θ′ = ((1 − γ)/s + γ)θ, where γ is `ramp_in_turns`, as in the YaRN paper: Peng et al. 2023, equations (17) to (20).

    >>> from ropebook import rope
    >>> NTKByParts(factor=4.0, trained_length=512)(rope.inv_freq(4))
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float
    trained_length: int
    alpha: float = 1.0
    beta: float = 32.0

    def __post_init__(self) -> None:
        check_factor(self.factor)
        check_trained(self.trained_length)
        check_bounds(self.alpha, self.beta)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        kept = ramp_in_turns(inv_freq, self.trained_length, self.alpha, self.beta)
        return mix(inv_freq, self.factor, kept), 1.0


@known_as(
    "yarn",
    "YaRN",
    2023,
    "peng2024",
    "extrapolation.md#yarn-what-else-does-it-do",
    example={"factor": 4.0, "trained_length": 32, "beta": 4.0},
    trains="yes",
    transformers="yarn",
    suits=("as it is, keys cached", "trained further"),
    explorers={
        "ladder": "NTK-by-parts with the ramp of YaRN’s published code.",
        "alive": "",
    },
)
@dataclass(frozen=True)
class YaRN(Frequencies):
    """NTK-by-parts plus a factor on cos and sin, Peng et al. 2023, as in the published code and in transformers.

    ``ramp``: "pairs" for the ramp of the published code, which is linear in the pair's index (`ramp_in_pairs`, with
    ``truncate``), or "turns" for the ramp of the paper (`ramp_in_turns`). `paper_against_code` compares the two.

    ``attention_factor``: by default `yarn_factor` of s. If ``mscale`` and ``mscale_all_dim`` are given (both or
    neither), it is the ratio of the two corresponding factors. If these are equal, the ratio is 1, and the factor has
    to be applied by `softmax_scale` instead. In transformers ``alpha`` and ``beta`` are called beta_slow and beta_fast.

    >>> from ropebook import rope
    >>> YaRN(factor=4.0, trained_length=512)(rope.inv_freq(6))
    (tensor([1.0000e+00, 2.9010e-02, 5.3861e-04], dtype=torch.float64), 1.138629436111989)
    """

    factor: float
    trained_length: int
    alpha: float = 1.0
    beta: float = 32.0
    truncate: bool = True
    ramp: str = "pairs"
    mscale: float | None = None
    mscale_all_dim: float | None = None
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        check_factor(self.factor)
        check_yarn(self)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        span = (inv_freq, self.trained_length, self.alpha, self.beta)
        if self.ramp == "turns":
            kept = ramp_in_turns(*span)
        else:
            kept = ramp_in_pairs(*span, truncate=self.truncate)
        return mix(inv_freq, self.factor, kept), self._factor_on_cos_and_sin()

    def _factor_on_cos_and_sin(self) -> float:
        if self.attention_factor is not None:
            return float(self.attention_factor)
        if self.mscale is None:
            return yarn_factor(self.factor)
        carried = yarn_factor(self.factor, self.mscale_all_dim)
        return yarn_factor(self.factor, self.mscale) / carried

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> YaRN:
        """Make the method with s = L′/L and the published bounds."""
        factor = length_factor(trained_length, target_length)
        return cls(factor, trained_length)


def check_yarn(method: Frequencies) -> None:
    """Raise ``TypeError`` or ``ValueError`` for invalid options of `YaRN` or of `DynamicYaRN`, which has the same
    options."""
    check_trained(method.trained_length)
    check_bounds(method.alpha, method.beta)
    checks.choice("truncate", method.truncate, (True, False))
    checks.choice("ramp", method.ramp, ("pairs", "turns"))
    check_attention_factor(method.attention_factor)
    given = [method.mscale, method.mscale_all_dim]
    if (given[0] is None) != (given[1] is None):
        raise ValueError(
            f"mscale and mscale_all_dim must be given together or not at all, got {given[0]} and {given[1]}"
        )
    if given[0] is not None:
        checks.number("mscale", given[0], above=0)
        checks.number("mscale_all_dim", given[1], above=0)


@known_as(
    "llama3",
    "Llama 3.1",
    2024,
    "meta2024",
    "extrapolation_configured.md#llama-31-is-it-a-new-rule",
    example={"factor": 4.0, "trained_length": 32},
    trains="yes",
    transformers="llama3",
    explorers={"ladder": "NTK-by-parts with α = 1 and β = 4."},
)
@dataclass(frozen=True)
class Llama3(Frequencies):
    """Llama 3.1's scaling, with three bands of pairs.

    Pairs with λ < L/4 keep their θ, and pairs with λ > L have their θ divided by 8. In between, the two are blended linearly
    in L/λ.

    This is `NTKByParts` with α = ``low_freq_factor`` and β = ``high_freq_factor``. The model's technical report does
    not describe it, but the published code does.

    >>> from ropebook import rope
    >>> Llama3()(rope.inv_freq(8, 500000.0))
    (tensor([1.0000e+00, 3.7606e-02, 5.2485e-04, 6.6479e-06], dtype=torch.float64), 1.0)
    """

    factor: float = 8.0
    trained_length: int = 8192
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        check_factor(self.factor)
        check_trained(self.trained_length)
        names = "low_freq_factor", "high_freq_factor"
        check_bounds(self.low_freq_factor, self.high_freq_factor, names)

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        bounds = self.low_freq_factor, self.high_freq_factor
        kept = ramp_in_turns(inv_freq, self.trained_length, *bounds)
        return mix(inv_freq, self.factor, kept), 1.0


@known_as(
    "longrope",
    "LongRoPE",
    2024,
    "ding2024",
    "extrapolation_trained.md#longrope-why-a-formula-at-all",
    example={
        "short_factors": [1.0] * 4,
        "long_factors": [1.0, 1.5, 3.0, 4.0],
        "trained_length": 32,
        "factor": 4.0,
    },
    trains="optional",
    cache_safe=False,
    transformers="longrope",
)
@dataclass(frozen=True)
class LongRoPE(Frequencies):
    """Divides each pair's frequency by its own factor, found by a search: θ′_i = θ_i/f_i. Ding et al. 2024.

    ``long_factors`` are used for sequences longer than L, ``short_factors`` for all others. Each contains d/2 positive
    numbers. The factor on cos and sin defaults to √(1 + ln s/ln L) and applies at every length. `search_factors` is a
    small version of the search.

    >>> from ropebook import rope
    >>> method = LongRoPE([1.0, 1.0], [1.0, 4.0], trained_length=512, factor=512.0)
    >>> method(rope.inv_freq(4), 513)
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.4142135623730951)
    """

    short_factors: Sequence[float]
    long_factors: Sequence[float]
    trained_length: int
    factor: float
    attention_factor: float | None = None
    follows_length = True

    def __post_init__(self) -> None:
        check_trained(self.trained_length)
        check_factor(self.factor)
        check_attention_factor(self.attention_factor)
        for name in ("short_factors", "long_factors"):
            object.__setattr__(self, name, pair_factors(name, getattr(self, name)))

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        grown = grown_to(length, self.trained_length)
        if isinstance(length, torch.SymInt):
            # In a graph compiled for all lengths, this is 0 up to L and 1 beyond L.
            long = torch.sym_min(torch.sym_max(length - self.trained_length, 0), 1)
            short_ones = self._divided(inv_freq, "short_factors")
            long_ones = self._divided(inv_freq, "long_factors")
            scaled = (1 - long) * short_ones + long * long_ones
        else:
            name = "long_factors" if grown > 1 else "short_factors"
            scaled = self._divided(inv_freq, name)
        if self.attention_factor is not None:
            return scaled, float(self.attention_factor)
        growth = math.log(self.factor) / math.log(self.trained_length)
        return scaled, math.sqrt(1 + growth)

    def _divided(self, inv_freq: Tensor, name: str) -> Tensor:
        factors = getattr(self, name)
        if len(factors) != len(frequencies(inv_freq)):
            raise ValueError(
                f"{name} must be one for each of {len(inv_freq)} pairs, got {len(factors)}"
            )
        return inv_freq / torch.tensor(factors, dtype=torch.float64).to(inv_freq)


def pair_factors(name: str, values: Sequence[float]) -> tuple[float, ...]:
    """Check that all factors are above 0, and return them as a tuple with one number per pair."""
    values = values.tolist() if isinstance(values, Tensor) else values
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise TypeError(f"{name} must be one number for each pair, got {values!r}")
    return tuple(
        checks.number(f"{name}[{i}]", value, above=0)
        for i, value in enumerate(values)
    )
