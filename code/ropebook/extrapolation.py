"""Longer texts than the model was trained on: what each method keeps, what it stretches, and what it costs.

Notation: trained length L, wanted length L′, factor s = L′/L, current length n; frequencies θ_i = b^(−2i/d), i = 0 … d/2 − 1.
In training, pair i turned through (L − 1)θ_i radians. A pair that had come round by then knows every angle; a slower one
meets new angles as soon as the text is longer. The methods differ in what they do about that:

- `Frequencies` change θ: called with (inv_freq, length), they return (inv_freq, attention_factor), as the ``scaling`` of
  :class:`ropebook.efficient.RotaryEmbedding` wants it. The factor multiplies cos and sin, hence q and k both, hence the
  scores twice.
- `Distances` leave θ alone and change the distance m − n that a query and a key see.
- `LogN` changes no position at all: it lengthens the queries.

`make` builds any of them by name and options, `METHODS` is the registry, `methods_table` its table. Every option is
checked when a method is made: ``TypeError`` for one of the wrong kind, ``ValueError`` for one out of range.
"""

from __future__ import annotations

import abc
import dataclasses
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks, sinusoidal
from ropebook.attention import (
    MultiHeadAttention,
    merge_heads,
    repeat_heads,
    scaled_dot_product_attention,
    whole_mask,
)
from ropebook.efficient import Scaling, apply_rotary, check_positions, cos_sin
from ropebook.rotary_attention import KVCache, RotaryAttention

Scaled = tuple[
    Tensor, float
]  # what a scaling returns: (inv_freq, attention_factor)


# --- Why length fails -----------------------------------------------------------------------------------------------


def length_factor(trained_length: int, target_length: int) -> float:
    """s = L′/L, at least 1. ``ValueError`` if the wanted length is shorter than the trained one.

    >>> length_factor(4096, 16384)
    4.0
    """
    trained_length = _trained(trained_length)
    return (
        checks.integer("target_length", target_length, minimum=trained_length)
        / trained_length
    )


def turned(inv_freq: Tensor, trained_length: int) -> Tensor:
    """Which pairs have turned once in training: (L − 1)θ_i ≥ 2π. Shape (d/2,), boolean.

    Only those have shown a trained model all their angles. (L − 1 is the largest distance in a text of L tokens.)

    >>> turned(sinusoidal.inv_freq(128), 4096).sum().item(), "of", 64
    (46, 'of', 64)
    """
    return _frequencies(inv_freq) * (_trained(trained_length) - 1) >= 2 * math.pi


def overshoot(
    inv_freq: Tensor, trained_length: int, target_length: int, scaled: Tensor
) -> Tensor:
    """How far each pair goes beyond the angles that it has shown in training, in radians: shape (d/2,), at least 0.

    ``scaled`` are the frequencies in use at ``target_length``; ``inv_freq`` itself is the plain model. For a pair that
    has not `turned`, it is max(0, (L′ − 1)θ′_i − (L − 1)θ_i). A pair that has turned knows all angles, so for it 0.

    >>> theta = sinusoidal.inv_freq(8)
    >>> overshoot(theta, 512, 2048, theta)
    tensor([ 0.0000,  0.0000, 15.3600,  1.5360], dtype=torch.float64)
    """
    length_factor(trained_length, target_length)
    _same_pairs(inv_freq, scaled)
    beyond = (target_length - 1) * scaled - (trained_length - 1) * inv_freq
    return beyond.clamp(min=0).masked_fill(turned(inv_freq, trained_length), 0)


def stretch(
    scaling: Scaling,
    inv_freq: Tensor,
    length: int | None = None,
) -> Tensor:
    """By how much a method stretches each wavelength: λ′_i/λ_i = θ_i/θ′_i, shape (d/2,). 1 is kept, s interpolated.

    >>> stretch(NTKAware(factor=4.0), sinusoidal.inv_freq(8))
    tensor([1.0000, 1.5874, 2.5198, 4.0000], dtype=torch.float64)
    """
    scaled, _ = scaling(inv_freq, length)
    _same_pairs(inv_freq, scaled)
    return inv_freq / scaled


# --- Methods that change the frequencies ----------------------------------------------------------------------------


class Frequencies(abc.ABC):
    """A method that changes θ: ``method(inv_freq, length)`` gives (inv_freq, attention_factor).

    ``inv_freq``: θ_i = base^(−2i/d) as `ropebook.sinusoidal.inv_freq` gives it, (d/2,), float64 or float32; the result
    has its type and device. ``length``: how long the text is by now. Those with ``follows_length`` must be told, and
    refuse None, which `RotaryEmbedding` says where positions come as a tensor; the others do not look at it. Base and d
    are read off ``inv_freq`` where a method needs them.
    """

    follows_length = False

    @abc.abstractmethod
    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled: ...


@dataclass(frozen=True)
class Interpolation(Frequencies):
    """Position interpolation: every θ divided by s, so that position L′ stands where L stood. Chen et al. 2023.

    >>> Interpolation(factor=4.0)(sinusoidal.inv_freq(4))
    (tensor([0.2500, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float

    def __post_init__(self) -> None:
        _factor(self.factor)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        return _frequencies(inv_freq) / self.factor, 1.0


@dataclass(frozen=True)
class NTKAware(Frequencies):
    """NTK-aware scaling: the base is raised to b′ = b·s^(d/(d−2)) (`ntk_base`), bloc97 2023.

    In terms of θ: pair i is divided by s^(2i/(d−2)), the first by 1 and the last by s. d = 2 is refused: its one pair
    is the first and the last.

    >>> NTKAware(factor=4.0)(sinusoidal.inv_freq(4))
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float

    def __post_init__(self) -> None:
        _factor(self.factor)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        return _divide_by_powers(inv_freq, self.factor), 1.0


@dataclass(frozen=True)
class DynamicNTK(Frequencies):
    """NTK-aware scaling that grows with the text: b′ = b·(s·n/L − (s − 1))^(d/(d−2)) for n > L, and b up to L.

    With ``factor`` 1, the default, it is (n/L)^(d/(d−2)). With factor s it is the form that emozilla (2023) published
    and transformers has as "dynamic": there `effective_scale` is not s at n = s·L.

    >>> method = DynamicNTK(trained_length=512)
    >>> method(sinusoidal.inv_freq(4), 2048)
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    trained_length: int
    factor: float = 1.0
    follows_length = True

    def __post_init__(self) -> None:
        _trained(self.trained_length)
        _factor(self.factor)

    def effective_scale(self, length: int) -> float:
        """What the last pair is divided by at this length: s·n/L − (s − 1) beyond L, 1 up to L.

        >>> DynamicNTK(trained_length=512, factor=4.0).effective_scale(4 * 512)
        13.0
        """
        grown = _grown(length, self.trained_length)
        return 1 + self.factor * (grown - 1)  # the same, and exactly 1 up to L

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        return _divide_by_powers(inv_freq, self.effective_scale(length)), 1.0

    def fixed(self, target_length: int) -> NTKAware:
        """The scaling of ``target_length``, for texts of any length: what a cache of rotated keys can live with."""
        length_factor(self.trained_length, target_length)
        return NTKAware(self.effective_scale(target_length))


@dataclass(frozen=True)
class NTKByParts(Frequencies):
    """Pairs that turn often in L are kept, pairs that never complete a turn are interpolated, those between are mixed.

    θ′ = ((1 − γ)/s + γ)θ with γ = `ramp_in_turns`: Peng et al. 2023 (YaRN), equations (17) to (20), as in the paper.

    >>> NTKByParts(factor=4.0, trained_length=512)(sinusoidal.inv_freq(4))
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.0)
    """

    factor: float
    trained_length: int
    alpha: float = 1.0
    beta: float = 32.0

    def __post_init__(self) -> None:
        _factor(self.factor)
        _trained(self.trained_length)
        _bounds(self.alpha, self.beta)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        kept = ramp_in_turns(inv_freq, self.trained_length, self.alpha, self.beta)
        return _mix(inv_freq, self.factor, kept), 1.0


@dataclass(frozen=True)
class YaRN(Frequencies):
    """NTK-by-parts and a factor on cos and sin, Peng et al. 2023; as the published code and transformers have it.

    ``ramp``: "pairs" for the code's, linear in the pair's index (`ramp_in_pairs`, with ``truncate``), or "turns" for
    the paper's (`ramp_in_turns`). They do not agree: see `paper_against_code`.

    ``attention_factor``: given, or `yarn_factor` of s; with ``mscale`` and ``mscale_all_dim`` (both or neither) the ratio
    of two such, which is 1 where they are equal: then it is for `softmax_scale` to carry it. In transformers ``alpha``
    and ``beta`` are called beta_slow and beta_fast.

    >>> YaRN(factor=4.0, trained_length=512)(sinusoidal.inv_freq(6))
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
        _factor(self.factor)
        _check_yarn(self)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        span = (inv_freq, self.trained_length, self.alpha, self.beta)
        if self.ramp == "turns":
            kept = ramp_in_turns(*span)
        else:
            kept = ramp_in_pairs(*span, truncate=self.truncate)
        return _mix(inv_freq, self.factor, kept), self._factor_on_cos_and_sin()

    def _factor_on_cos_and_sin(self) -> float:
        if self.attention_factor is not None:
            return float(self.attention_factor)
        if self.mscale is None:
            return yarn_factor(self.factor)
        return yarn_factor(self.factor, self.mscale) / yarn_factor(
            self.factor, self.mscale_all_dim
        )


@dataclass(frozen=True)
class DynamicYaRN(Frequencies):
    """`YaRN` with s = n/L once n > L, and the plain model before. Options as there.

    Peng et al. 2023, section 3.3 ("dynamic scaling").

    >>> DynamicYaRN(trained_length=512)(sinusoidal.inv_freq(6), 2048)
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
    follows_length = True

    def __post_init__(self) -> None:
        _check_yarn(self)

    def fixed(self, target_length: int) -> YaRN:
        """The scaling of ``target_length``, for texts of any length: what a cache of rotated keys can live with."""
        factor = length_factor(self.trained_length, target_length)
        return YaRN(factor, **vars(self))

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        grown = _grown(length, self.trained_length)
        if grown == 1:
            return _frequencies(inv_freq), 1.0
        return YaRN(grown, **vars(self))(inv_freq)


@dataclass(frozen=True)
class Llama3(Frequencies):
    """Llama 3.1: λ < L/4 is kept, λ > L is divided by 8, those between are mixed, linearly in L/λ.

    That is `NTKByParts` with α = ``low_freq_factor`` and β = ``high_freq_factor``. Not in the report on the model, but
    in its published code.

    >>> Llama3()(sinusoidal.inv_freq(8, 500000.0))
    (tensor([1.0000e+00, 3.7606e-02, 5.2485e-04, 6.6479e-06], dtype=torch.float64), 1.0)
    """

    factor: float = 8.0
    trained_length: int = 8192
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        _factor(self.factor)
        _trained(self.trained_length)
        _bounds(
            self.low_freq_factor,
            self.high_freq_factor,
            ("low_freq_factor", "high_freq_factor"),
        )

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        bounds = self.low_freq_factor, self.high_freq_factor
        kept = ramp_in_turns(inv_freq, self.trained_length, *bounds)
        return _mix(inv_freq, self.factor, kept), 1.0


@dataclass(frozen=True)
class LongRoPE(Frequencies):
    """Every pair has a factor of its own, found by a search: θ′_i = θ_i/f_i. Ding et al. 2024.

    ``long_factors`` for texts longer than L, ``short_factors`` for the others: d/2 numbers above 0 each. The factor on
    cos and sin is √(1 + ln s/ln L) if none is given, and it stands at every length. `search_factors` is a small search.

    >>> method = LongRoPE([1.0, 1.0], [1.0, 4.0], trained_length=512, factor=512.0)
    >>> method(sinusoidal.inv_freq(4), 513)
    (tensor([1.0000, 0.0025], dtype=torch.float64), 1.4142135623730951)
    """

    short_factors: Sequence[float]
    long_factors: Sequence[float]
    trained_length: int
    factor: float
    attention_factor: float | None = None
    follows_length = True

    def __post_init__(self) -> None:
        _trained(self.trained_length)
        _factor(self.factor)
        _attention_factor(self.attention_factor)
        for name in ("short_factors", "long_factors"):
            object.__setattr__(self, name, _pair_factors(name, getattr(self, name)))

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        long = _grown(length, self.trained_length) > 1
        name = "long_factors" if long else "short_factors"
        factors = getattr(self, name)
        if len(factors) != len(_frequencies(inv_freq)):
            raise ValueError(
                f"{name} must be one for each of {len(inv_freq)} pairs, got {len(factors)}"
            )
        scaled = inv_freq / torch.tensor(factors, dtype=torch.float64).to(inv_freq)
        if self.attention_factor is not None:
            return scaled, float(self.attention_factor)
        growth = math.log(self.factor) / math.log(self.trained_length)
        return scaled, math.sqrt(1 + growth)


@dataclass(frozen=True)
class BaseChange(Frequencies):
    """Another base, with which the model is then trained on ("adjusted base frequency"): Xiong et al. 2023, b = 500000.

    >>> BaseChange(base=1e6)(sinusoidal.inv_freq(4))
    (tensor([1.0000, 0.0010], dtype=torch.float64), 1.0)
    """

    base: float

    def __post_init__(self) -> None:
        checks.number("base", self.base, minimum=1)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        dim = 2 * len(_frequencies(inv_freq))
        return sinusoidal.inv_freq(dim, self.base).to(inv_freq), 1.0


@dataclass(frozen=True)
class Partial(Frequencies):
    """Partial rotary: only the first ``fraction`` of the d entries turns, with the exponent taken over their number.

    Fewer frequencies come out than go in: base^(−2i/r) with r = ⌊fraction·d⌋, which must be even. The rest of each
    vector passes unchanged (`ropebook.efficient.apply_rotary`). Wang and Komatsuzaki 2021 (GPT-J): 64 entries of 256;
    Black et al. 2022 (GPT-NeoX): a quarter as well.

    >>> Partial(fraction=0.5)(sinusoidal.inv_freq(8))
    (tensor([1.0000, 0.0100], dtype=torch.float64), 1.0)
    """

    fraction: float

    def __post_init__(self) -> None:
        _fraction(self.fraction)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        dim = self.rotary_dim(2 * len(_frequencies(inv_freq)))
        exponents = torch.arange(0, dim, 2).to(inv_freq) / dim
        return (-exponents * _log_base(inv_freq)).exp(), 1.0

    def rotary_dim(self, dim: int) -> int:
        """r = ⌊fraction·d⌋: what `ropebook.efficient.RotaryEmbedding` calls ``rotary_dim``. ``ValueError`` if odd or 0."""
        return checks.even(
            "fraction * dim, rounded down,", int(dim * self.fraction)
        )


@dataclass(frozen=True)
class Proportional(Frequencies):
    """p-RoPE: the first ``fraction`` of the pairs keep their θ, the slow rest do not turn at all (θ = 0).

    The exponent is still taken over d, unlike `Partial`'s. Barbero et al. 2024; transformers' "proportional", where all θ are divided by ``factor`` as well.

    >>> Proportional(fraction=0.5)(sinusoidal.inv_freq(8))
    (tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64), 1.0)
    """

    fraction: float
    factor: float = 1.0

    def __post_init__(self) -> None:
        _fraction(self.fraction)
        _factor(self.factor)

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        pairs = len(_frequencies(inv_freq))
        turning = int(self.fraction * pairs)
        if turning == 0:
            raise ValueError(
                f"fraction must leave one of {pairs} pairs turning, got {self.fraction}"
            )
        turning = torch.arange(pairs) < turning
        return inv_freq * turning.to(inv_freq) / self.factor, 1.0


@dataclass(frozen=True)
class Configured(Frequencies):
    """A method, and what the config that it was read from says beside it; `from_transformers` makes these.

    ``base``: b, there called rope_theta; ``fraction``: the share of each head that turns, partial_rotary_factor; None
    where the config does not say. A `ropebook.efficient.RotaryEmbedding` with other ones is refused, as are frequencies
    of another base (``ValueError``); `rotary_options` gives the right ones.

    >>> method = Configured(NTKAware(factor=4.0), base=500000.0)
    >>> method(sinusoidal.inv_freq(4))
    Traceback (most recent call last):
        ...
    ValueError: inv_freq must be of base 500000.0, as in the config, got [1.0, 0.01]
    """

    method: Frequencies
    base: float | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        if self.base is not None:
            checks.number("base", self.base, minimum=1)
        if self.fraction is not None:
            _fraction(self.fraction)

    @property
    def follows_length(self) -> bool:
        return self.method.follows_length

    def __call__(self, inv_freq: Tensor, length: int | None = None) -> Scaled:
        dim = 2 * len(_frequencies(inv_freq))
        if self.base is not None and checks.readable(inv_freq):
            expected = sinusoidal.inv_freq(dim, self.base).to(inv_freq)
            if not torch.allclose(inv_freq, expected, rtol=1e-4, atol=0):
                raise ValueError(
                    f"inv_freq must be of base {self.base}, as in the config, got {inv_freq.tolist()}"
                )
        return self.method(inv_freq, length)

    def asked_of_rotary(self, dim: int) -> dict[str, object]:
        """``base`` and ``rotary_dim`` of a RotaryEmbedding for heads of width ``dim``, as far as the config says."""
        asked = {}
        if self.base is not None:
            asked["base"] = float(self.base)
        if self.fraction is not None:
            asked["rotary_dim"] = Partial(self.fraction).rotary_dim(dim)
        return asked


# --- What they are made of ------------------------------------------------------------------------------------------


def ntk_base(base: float, dim: int, factor: float) -> float:
    """The base of NTK-aware scaling, b′ = b·s^(d/(d−2)). ``ValueError`` for d = 2, where the exponent has no value.

    >>> round(ntk_base(10000.0, 128, 4.0))
    40890
    """
    base = checks.number("base", base, minimum=1)
    if checks.even("dim", dim) == 2:
        raise ValueError(
            "dim must be at least 4, for d/(d - 2) has no value, got 2"
        )
    return base * _factor(factor) ** (dim / (dim - 2))


def ntk_exponent():
    """d/(d − 2), solved for by sympy: the x for which base b·s^x divides the last pair by exactly s.

    The first pair, b′^0 = 1, is divided by 1 whatever x is. Returns a sympy expression in the symbol d.

    >>> ntk_exponent()
    d/(d - 2)
    """
    import sympy

    b, d, s, x = sympy.symbols("b d s x", positive=True)
    last = -(d - 2) / d  # the last pair's exponent, -2i/d at i = d/2 - 1
    equation = sympy.log(b * s**x) * last - (sympy.log(b) * last - sympy.log(s))
    (solution,) = sympy.solve(sympy.expand_log(equation), x)
    return sympy.factor(solution)


def yarn_factor(factor: float, weight: float = 1.0) -> float:
    """YaRN's factor on cos and sin, 0.1·w·ln s + 1; 1 at s = 1. What the rotated entries
    add to a score grows by its square. Peng et al. 2023, section 3.4.

    >>> round(yarn_factor(16.0), 4), round(yarn_factor(16.0) ** 2, 4)
    (1.2773, 1.6314)
    """
    weight = checks.number("weight", weight, minimum=0)
    return 0.1 * weight * math.log(_factor(factor)) + 1


def softmax_scale(head_dim: int, factor: float, mscale_all_dim: float) -> float:
    """yarn_factor(s, mscale_all_dim)²/√d: what multiplies q·k where cos and sin carry no factor, as in DeepSeek-V3.

    This reaches the entries that do not turn, too; a factor on cos and sin reaches only those that do.

    >>> round(softmax_scale(64, 1.0, 1.0), 4)
    0.125
    """
    head_dim = checks.integer("head_dim", head_dim, minimum=1)
    return yarn_factor(factor, mscale_all_dim) ** 2 / math.sqrt(head_dim)


def ramp_in_turns(
    inv_freq: Tensor, trained_length: int, alpha: float = 1.0, beta: float = 32.0
) -> Tensor:
    """γ = clip((r − α)/(β − α), 0, 1), r = L/λ: how much of each pair is kept; linear in its **turns** r. (d/2,)

    The YaRN paper's, equation (18).

    >>> ramp_in_turns(sinusoidal.inv_freq(8), 512)
    tensor([1.0000, 0.2306, 0.0000, 0.0000], dtype=torch.float64)
    """
    _bounds(alpha, beta)
    turns = _frequencies(inv_freq) * (_trained(trained_length) / (2 * math.pi))
    return ((turns - alpha) / (beta - alpha)).clamp(0, 1)


def ramp_in_pairs(
    inv_freq: Tensor,
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> Tensor:
    """How much of each pair is kept, linear in its **index** i from low to high (`ramp_range`): the YaRN code's. (d/2,)

    >>> ramp_in_pairs(sinusoidal.inv_freq(8), 512)
    tensor([1.0000, 0.5000, 0.0000, 0.0000], dtype=torch.float64)
    """
    low, high = ramp_range(inv_freq, trained_length, alpha, beta, truncate)
    index = torch.arange(len(inv_freq)).to(inv_freq)
    return 1 - ((index - low) / (high - low)).clamp(0, 1)


def ramp_range(
    inv_freq: Tensor,
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> tuple[Tensor, Tensor]:
    """The pair indices (low, high) between which the YaRN code mixes: c(β) and c(α), c(r) = d·ln(L/2πr)/(2 ln b).

    At index c(r) a pair turns r times in L. ``truncate`` rounds low down and high up; both are kept within 0 … d − 1,
    as published (the last pair is d/2 − 1). Where that leaves no range, because low (c(β), rounded down) is above d − 1 or
    high (c(α), rounded up) below 0, the published ramp would run backwards: here it is a ``ValueError``. Two 0-dimensional
    tensors.

    >>> [end.item() for end in ramp_range(sinusoidal.inv_freq(128), 4096)]
    [20.0, 46.0]
    """
    _bounds(alpha, beta)
    _trained(trained_length)
    log_base = _log_base(inv_freq)
    if checks.readable(inv_freq) and log_base <= 0:
        raise ValueError(
            "inv_freq must fall, for with base 1 no pair is slower than another, "
            f"got {inv_freq.tolist()}"
        )
    dim = 2 * len(inv_freq)
    low, high = (
        dim * math.log(trained_length / (2 * math.pi * turns)) / (2 * log_base)
        for turns in (beta, alpha)
    )
    if truncate:
        low, high = low.floor(), high.ceil()
    low, high = low.clamp(min=0), high.clamp(max=dim - 1)
    if checks.readable(inv_freq) and low > high:
        raise ValueError(
            f"alpha and beta must leave pairs to mix, got {alpha} and {beta}, "
            f"which put the ramp from pair {low.item():g} down to pair {high.item():g}"
        )
    return low, torch.where(low == high, high + 0.001, high)  # as published: no 0/0


class PaperAndCode(NamedTuple):
    """How the two ramps differ, as `paper_against_code` measures it."""

    ratio: Tensor  # the paper's θ′ over the code's, for each pair
    largest: float  # the largest factor between them, either way
    pair: int  # where


def paper_against_code(
    inv_freq: Tensor,
    factor: float,
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> PaperAndCode:
    """YaRN's frequencies as its paper writes them against those of its code.

    >>> difference = paper_against_code(sinusoidal.inv_freq(128), 16.0, 4096)
    >>> round(difference.largest, 2), difference.pair
    (3.04, 38)
    """
    ours = YaRN(factor, trained_length, alpha, beta, truncate)
    paper, _ = dataclasses.replace(ours, ramp="turns")(inv_freq)
    code, _ = ours(inv_freq)
    apart = (paper / code).log().abs()
    return PaperAndCode(
        paper / code, apart.max().exp().item(), apart.argmax().item()
    )


# --- LongRoPE's search ----------------------------------------------------------------------------------------------


class Search(NamedTuple):
    """What `search_factors` found."""

    factors: Tensor  # (d/2,), float64
    value: float  # the objective there
    history: list[
        float
    ]  # the best value so far: of the start, then after each generation


def search_factors(
    objective: Callable[[Tensor], float],
    inv_freq: Tensor,
    factor: float,
    trained_length: int,
    *,
    generations: int = 30,
    population: int = 32,
    generator: torch.Generator | None = None,
) -> Search:
    """Factors f_i that make ``objective(factors)`` small, found by evolution: a small form of Ding et al. 2024, section 3.

    As there, the start holds what is known (interpolation, NTK-aware, YaRN) and variants of it, factors stay within
    1 … 1.25·s and never fall from one pair to the next; a quarter survives each generation, and the rest are children of
    two survivors or variants of one. Never worse than the best of the three. Costs population·(1 + generations) calls
    at most. Which objective to use is the caller's: there it is a model's perplexity on long texts.

    >>> def far_from_two(factors): return (factors - 2).square().sum().item()
    >>> draws = torch.Generator().manual_seed(0)
    >>> found = search_factors(far_from_two, sinusoidal.inv_freq(8), 4.0, 512, generator=draws)
    >>> found.history[0] > 10 * found.value
    True
    """
    generations = checks.integer("generations", generations, minimum=1)
    population = checks.integer("population", population, minimum=8)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, got {generator!r}"
        )
    inv_freq = _frequencies(inv_freq).cpu().double()
    known = [
        stretch(method, inv_freq)
        for method in (
            Interpolation(factor),
            NTKAware(factor),
            YaRN(factor, trained_length),
        )
    ]
    most = 1.25 * factor

    def variant(factors: Tensor) -> Tensor:
        """Some entries moved, by up to a few per cent or by a multiple; then in order and within bounds again."""
        draws = torch.rand(
            2, len(factors), generator=generator, dtype=torch.float64
        )
        size = 10 ** (-2 * torch.rand(1, generator=generator, dtype=torch.float64))
        moved = factors * (size * (2 * draws[0] - 1)).exp()
        return (
            torch.where(draws[1] < 0.3, moved, factors).clamp(1, most).sort().values
        )

    def child(first: Tensor, second: Tensor) -> Tensor:
        """Each entry from one parent or the other; then in order again."""
        coin = torch.rand(len(first), generator=generator) < 0.5
        return torch.where(coin, first, second).sort().values

    def one_of(parents: list[Tensor]) -> Tensor:
        return parents[int(torch.randint(len(parents), (), generator=generator))]

    def ranked(pool: list[Tensor]) -> list[tuple[float, Tensor]]:
        values = [
            checks.number("the objective's value", objective(f)) for f in pool
        ]
        return sorted(zip(values, pool, strict=True), key=lambda scored: scored[0])

    pool = ranked(
        known + [variant(one_of(known)) for _ in range(population - len(known))]
    )
    history = [pool[0][0]]
    for _ in range(generations):
        parents = [factors for _, factors in pool[: population // 4]]
        fresh = [
            variant(one_of(parents))
            if turn % 2
            else variant(child(one_of(parents), one_of(parents)))
            for turn in range(population - len(parents))
        ]
        pool = sorted(
            pool[: len(parents)] + ranked(fresh), key=lambda scored: scored[0]
        )
        history.append(pool[0][0])
    return Search(pool[0][1], pool[0][0], history)


# --- Methods that change the distances ------------------------------------------------------------------------------


class Distances(abc.ABC):
    """A method that leaves θ alone and lets a far key seem nearer: one rule for Δ = m − n < window, another from there on.

    Near, a query sees the key at its true distance. Far, both are given other positions (`far_positions`), and the
    distance is theirs. So there are two tables of scores, each made by rotation as always, and one is taken from each
    (`scores`). Every key is rotated twice, both times by what depends on its own position alone. Made for causal
    attention: keys after the query (Δ < 0) are near.
    """

    window: int

    @abc.abstractmethod
    def far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        """The positions that queries and keys take on for each other where they are far apart; shapes as given."""

    @abc.abstractmethod
    def reach(self, trained_length: int) -> float:
        """The longest text in which no distance seen exceeds L − 1; infinite if there is none."""

    def relative(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """The distance that each query sees of each key: (…, T_q) and (…, T_k) to (…, T_q, T_k), float64.

        >>> place = torch.arange(5)
        >>> ReRoPE(window=2).relative(place, place).tril()
        tensor([[0., 0., 0., 0., 0.],
                [1., 0., 0., 0., 0.],
                [2., 1., 0., 0., 0.],
                [2., 2., 1., 0., 0.],
                [2., 2., 2., 1., 0.]], dtype=torch.float64)
        """
        m, n = _positions(query_positions), _positions(key_positions)
        near, far = (
            at_q[..., :, None] - at_k[..., None, :]
            for at_q, at_k in ((m, n), self.far_positions(m, n))
        )
        return torch.where(near < self.window, near, far)

    def scores(
        self,
        q: Tensor,
        k: Tensor,
        query_positions: Tensor,
        key_positions: Tensor,
        inv_freq: Tensor,
        *,
        layout: str = "interleaved",
    ) -> Tensor:
        """q·k of every query with every key, each pair rotated by the distance in `relative`; not yet divided by √d.

        ``q`` (batch, heads, T_q, d), ``k`` (batch, heads, T_k, d), **not rotated**; positions (T_q,) and (T_k,), or
        (batch, T_q) and (batch, T_k). (batch, heads, T_q, T_k), in float32 at least.
        """
        m, n = _positions(query_positions), _positions(key_positions)
        near, far = (
            _wide(_rotated(q, at_q, inv_freq, layout=layout))
            @ _wide(_rotated(k, at_k, inv_freq, layout=layout)).transpose(-2, -1)
            for at_q, at_k in ((m, n), self.far_positions(m, n))
        )
        is_near = m[..., :, None] - n[..., None, :] < self.window
        if is_near.ndim > 2:  # the same for all heads of a row
            is_near = is_near.unsqueeze(-3)
        return torch.where(is_near, near, far)


@dataclass(frozen=True)
class ReRoPE(Distances):
    """Distances stop growing at the window: min(Δ, w). Su 2023.

    Far, the query stands at w and every key at 0. Any text is within reach.

    >>> ReRoPE(window=512).reach(4096)
    inf
    """

    window: int

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)

    def far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        return torch.full_like(query_positions, self.window), torch.zeros_like(
            key_positions
        )

    def reach(self, trained_length: int) -> float:
        _window_within(self.window, trained_length)
        return math.inf


@dataclass(frozen=True)
class LeakyReRoPE(Distances):
    """From the window on, distances grow by 1/k a step: w + (Δ − w)/k. Su 2023.

    k is ``step``, at least 1: at 1 it is the plain model, and for k → ∞ it is `ReRoPE`. Far, the query stands at
    m/k + w(1 − 1/k) and the key at n/k.

    >>> LeakyReRoPE(window=512, step=16.0).reach(4096)
    57841
    """

    window: int
    step: float

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)
        checks.number("step", self.step, minimum=1)

    def far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        moved = self.window * (1 - 1 / self.step)
        return query_positions / self.step + moved, key_positions / self.step

    def reach(self, trained_length: int) -> int:
        _window_within(self.window, trained_length)
        furthest = self.window + (trained_length - 1 - self.window) * self.step
        return math.floor(furthest) + 1


@dataclass(frozen=True)
class SelfExtend(Distances):
    """From the window on, positions are counted in groups: ⌊m/G⌋ − ⌊n/G⌋ + W − ⌊W/G⌋. Jin et al. 2024.

    With G a divisor of W the longest text within reach has (L − W)·G + W tokens, as the paper says.

    >>> SelfExtend(window=1024, group=8).reach(4096)
    25600
    """

    window: int
    group: int

    def __post_init__(self) -> None:
        checks.integer("window", self.window, minimum=1)
        checks.integer("group", self.group, minimum=1)

    def far_positions(
        self, query_positions: Tensor, key_positions: Tensor
    ) -> tuple[Tensor, Tensor]:
        moved = self.window - self.window // self.group
        return (
            query_positions.div(self.group, rounding_mode="floor") + moved,
            key_positions.div(self.group, rounding_mode="floor"),
        )

    def reach(self, trained_length: int) -> int:
        _window_within(self.window, trained_length)
        moved = self.window - self.window // self.group
        return max(self.window, self.group * (trained_length - moved))


# --- A method that changes the queries ------------------------------------------------------------------------------


@dataclass(frozen=True)
class LogN:
    """Queries at position m are multiplied by max(1, ln(m + 1)/ln L), so that attention stays as sharp over more keys.

    Su 2021; with the maximum, as Su's code of ReRoPE has it, nothing changes up to L. It moves no position and goes
    together with any other method.

    >>> LogN(trained_length=512).query_scale(torch.tensor([0, 511, 512**2 - 1]))
    tensor([1., 1., 2.], dtype=torch.float64)
    """

    trained_length: int

    def __post_init__(self) -> None:
        _trained(self.trained_length)

    def query_scale(self, positions: Tensor) -> Tensor:
        """The factor at each position, 0 and above: float64, of the shape of ``positions``."""
        grown = (_positions(positions) + 1).log() / math.log(self.trained_length)
        return grown.clamp(min=1)


# --- A cache of rotated keys under frequencies that change ----------------------------------------------------------


class CacheError(NamedTuple):
    """What `cache_error` measures, for the last query of a text of T tokens."""

    lengths: Tensor  # (T,): how long the text was when each key was rotated
    exact: Tensor  # (…, T): scores if all keys are rotated with the frequencies of length T
    cached: Tensor  # (…, T): scores with every key as it was rotated when it came
    largest: float  # the largest difference of the two


def arrival_lengths(length: int, prefill: int = 1) -> Tensor:
    """How long the text was when each key came: ``prefill`` for the first keys, then one more each. (length,), int64.

    >>> arrival_lengths(6, prefill=3)
    tensor([3, 3, 3, 4, 5, 6])
    """
    length = checks.integer("length", length, minimum=1)
    prefill = checks.integer("prefill", prefill, minimum=1, maximum=length)
    return torch.arange(1, length + 1).clamp(min=prefill)


def cache_error(
    scaling: Scaling,
    q: Tensor,
    k: Tensor,
    inv_freq: Tensor,
    prefill: int = 1,
) -> CacheError:
    """How far the last query's scores are off when keys stay as they were rotated on arrival.

    ``q`` (…, d): the query at position T − 1; ``k`` (…, T, d): keys 0 … T − 1; both not rotated, interleaved; float64 or
    float32. The query always has the frequencies of length T. Zero for a scaling that does not follow the length, such as
    what ``fixed`` gives, and for a cache that keeps its keys unrotated, which is ``exact``.

    >>> q, k = torch.ones(8), torch.ones(600, 8)
    >>> theta = sinusoidal.inv_freq(8)
    >>> cache_error(DynamicNTK(trained_length=512), q, k[:512], theta).largest
    0.0
    >>> cache_error(DynamicNTK(trained_length=512), q, k, theta).largest > 1
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
    scaled = {n: scaling(inv_freq, n) for n in lengths.unique().tolist()}
    last = torch.tensor([length - 1])
    query = _rotated(q[..., None, :], last, *scaled[length])
    positions = torch.arange(length)
    exact = _rotated(k, positions, *scaled[length])
    cached = torch.cat(
        [
            _rotated(k[..., lengths == n, :], positions[lengths == n], *scaled[n])
            for n in scaled
        ],
        dim=-2,
    )
    exact, cached = ((keys * query).sum(-1) for keys in (exact, cached))
    return CacheError(lengths, exact, cached, (cached - exact).abs().max().item())


# --- In an attention layer ------------------------------------------------------------------------------------------


class ExtendedAttention(RotaryAttention):
    """`RotaryAttention` with a method from `METHODS`, by name and options.

    ``keep``: what a cache holds, "rotated" or "unrotated" keys. Rotated ones are cheaper, and wrong as soon as a method
    that follows the length changes its frequencies. Unrotated ones are rotated anew for every query, with the
    frequencies of now: what this layer gives in one pass, for every method, and what methods that change distances need.
    By default "rotated" where `METHODS` calls that ``cache_safe`` and the method changes no distances, else "unrotated".
    The other arguments are those of `RotaryAttention`.

    >>> method = {"method": "self_extend", "options": {"window": 4, "group": 2}}
    >>> ExtendedAttention(dim=16, n_heads=2, **method)(torch.zeros(1, 9, 16)).shape
    torch.Size([1, 9, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        method: str,
        options: Mapping[str, object],
        keep: str | None = None,
        head_dim: int | None = None,
        **rest,
    ):
        built = make(method, **options)
        ways = ("rotated", "unrotated")
        if isinstance(built, Distances):
            ways = ("unrotated",)
        if keep is not None:
            checks.choice("keep", keep, ways)
        else:
            keep = ways[0] if METHODS[method].cache_safe else "unrotated"
        rotary = {}
        if isinstance(built, Frequencies):
            width = checks.integer("dim", dim, minimum=1)
            width //= checks.integer("n_heads", n_heads, minimum=1)
            rotary = rotary_options(built, head_dim or width)
        super().__init__(
            dim, n_heads, n_kv_heads, head_dim=head_dim, **rotary, **rest
        )
        self.method = built
        self.keep = keep

    @classmethod
    def of(
        cls,
        layer: RotaryAttention,
        *,
        method: str,
        options: Mapping[str, object],
        keep: str | None = None,
    ) -> ExtendedAttention:
        """``layer`` with a method: a new layer that shares its projections, and has its base, layout and rotary_dim.

        ``layer.rotary.scaling``, if it has one, is left behind: methods do not add up.

        >>> layer = RotaryAttention(dim=16, n_heads=2)
        >>> longer = ExtendedAttention.of(layer, method="rerope", options={"window": 4})
        >>> longer.q_proj is layer.q_proj
        True
        """
        rotary = layer.rotary
        rest = {} if method == "partial" else {"rotary_dim": rotary.rotary_dim}
        extended = cls(
            layer.dim,
            layer.n_heads,
            layer.n_kv_heads,
            head_dim=layer.head_dim,
            method=method,
            options=options,
            keep=keep,
            base=rotary.base,
            layout=rotary.layout,
            backend=rotary.backend,
            device="meta",  # the projections are the other layer's
            **rest,
        )
        for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
            setattr(extended, name, getattr(layer, name))
        extended.rotary.to(rotary.inv_freq.device)
        return extended.train(layer.training)

    def project(
        self, x: Tensor, positions: Tensor | None = None, offset: int = 0
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values, (batch, heads, seq, head_dim); rotated unless ``keep`` is "unrotated"."""
        if self.keep == "rotated":
            q, k, v = super().project(x, positions, offset)
        else:
            q, k, v = MultiHeadAttention.project(self, x)
        if isinstance(self.method, LogN):
            if positions is None:
                positions = torch.arange(offset, offset + q.shape[-2])
            scale = self.method.query_scale(positions.to(q.device))
            q = q * scale[..., None, :, None].to(q.dtype)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        positions: Tensor | None = None,
        mask: Tensor | None = None,
        *,
        is_causal: bool = True,
        cache: KVCache | None = None,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """As `RotaryAttention.forward`. With unrotated keys, ``positions`` and ``cache`` do not go together."""
        if self.keep == "rotated":
            return super().forward(
                x,
                positions,
                mask,
                is_causal=is_causal,
                cache=cache,
                return_weights=return_weights,
            )
        if checks.floating("x", x).dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        if positions is not None and cache is not None:
            raise ValueError(
                "positions must be None with a cache of unrotated keys, which does not keep theirs"
            )
        cached = 0 if cache is None else cache.length
        q, k, v = self.project(x, positions, offset=cached)
        if cache is not None:
            k, v = cache.append(k, v)
        length = None if positions is not None else k.shape[-2]
        if positions is None:
            positions = torch.arange(length, device=x.device)
        shape = (*q.shape[:-1], k.shape[-2])
        mask = whole_mask(mask, is_causal, shape, x.device)
        q, k, mask = self._rotate_late(q, k, positions, length, mask)
        if not return_weights and not isinstance(self.method, Distances):
            return self.out_proj(merge_heads(self._fused(q, k, v, mask, False)))
        heads, weights = scaled_dot_product_attention(
            q, k, v, mask, return_weights=True
        )
        out = self.out_proj(merge_heads(heads))
        return (out, weights) if return_weights else out

    def _rotate_late(
        self,
        q: Tensor,
        k: Tensor,
        positions: Tensor,
        length: int | None,
        mask: Tensor | None,
    ) -> tuple[Tensor, Tensor, Tensor | None]:
        """q and k rotated as near ones, and a mask that adds, where they are far, what the score differs by."""
        here = positions[..., positions.shape[-1] - q.shape[-2] :]
        wide = torch.float64 if q.dtype == torch.float64 else torch.float32
        layout = self.rotary.layout
        near_q, near_k = (
            apply_rotary(
                x, *self.rotary.cos_sin(at, wide, length=length), layout=layout
            )
            for x, at in ((q, here), (k, positions))
        )
        if not isinstance(self.method, Distances):
            return near_q, near_k, mask
        seen = self.method.scores(
            q,
            repeat_heads(k, self.n_heads),
            here,
            positions,
            self.rotary.inv_freq,
            layout=layout,
        )
        near = _wide(near_q) @ _wide(repeat_heads(near_k, self.n_heads)).mT
        bias = (seen - near) / math.sqrt(self.head_dim)
        if mask is None:
            return near_q, near_k, bias
        if mask.dtype == torch.bool:
            return near_q, near_k, bias.masked_fill(~mask, -math.inf)
        return near_q, near_k, bias + mask


def rotary_options(method: Frequencies, dim: int) -> dict[str, object]:
    """How a method enters `ropebook.efficient.RotaryEmbedding`: as ``scaling``, or `Partial` as ``rotary_dim``.

    A `Configured` one brings the ``base`` and ``rotary_dim`` of its config with it.

    >>> from ropebook.efficient import RotaryEmbedding
    >>> RotaryEmbedding(dim=8, **rotary_options(make("partial", fraction=0.5), 8)).rotary_dim
    4
    """
    if not isinstance(method, Frequencies):
        raise TypeError(
            f"method must be one that changes frequencies, got {method!r}"
        )
    if isinstance(method, Partial):
        return {"rotary_dim": method.rotary_dim(checks.even("dim", dim))}
    if isinstance(method, Configured):
        return {"scaling": method} | method.asked_of_rotary(dim)
    return {"scaling": method}


# --- The registry ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Method:
    """What is known about a method."""

    name: str  # for `make`
    title: str
    form: type  # the class that does it
    year: int
    source: str  # its key in the book's list of references
    trains: str  # "no": made for a model as it is; "yes": made to be trained with; "optional": published both ways
    changes_within: bool  # whether it changes anything for texts no longer than L
    cache_safe: bool  # whether keys that were rotated on arrival stay right as the text grows
    transformers: str | None = (
        None  # its rope_type there, or the option that does it
    )

    @property
    def acts_on(self) -> str:
        """ "frequencies", "distances" or "queries"."""
        if issubclass(self.form, Frequencies):
            return "frequencies"
        return "distances" if issubclass(self.form, Distances) else "queries"


_ALL = (
    Method(
        "linear",
        "position interpolation",
        Interpolation,
        2023,
        "chen2023",
        "yes",
        True,
        True,
        "linear",
    ),
    Method("ntk", "NTK-aware", NTKAware, 2023, "bloc97", "no", True, True),
    Method(
        "dynamic_ntk",
        "dynamic NTK",
        DynamicNTK,
        2023,
        "emozilla",
        "no",
        False,
        False,
        "dynamic",
    ),
    Method(
        "ntk_by_parts",
        "NTK-by-parts",
        NTKByParts,
        2023,
        "peng2024",
        "optional",
        True,
        True,
    ),
    Method("yarn", "YaRN", YaRN, 2023, "peng2024", "yes", True, True, "yarn"),
    Method(
        "dynamic_yarn",
        "dynamic YaRN",
        DynamicYaRN,
        2023,
        "peng2024",
        "no",
        False,
        False,
    ),
    Method(
        "llama3", "Llama 3.1", Llama3, 2024, "meta2024", "yes", True, True, "llama3"
    ),
    Method(
        "longrope",
        "LongRoPE",
        LongRoPE,
        2024,
        "ding2024",
        "optional",
        True,
        False,
        "longrope",
    ),
    Method(
        "base",
        "base change",
        BaseChange,
        2023,
        "xiong2023",
        "yes",
        True,
        True,
        "rope_theta",
    ),
    Method(
        "partial",
        "partial rotary",
        Partial,
        2021,
        "wang2021",
        "yes",
        True,
        True,
        "partial_rotary_factor",
    ),
    Method(
        "proportional",
        "proportional rotary (p-RoPE)",
        Proportional,
        2024,
        "barbero2025",
        "yes",
        True,
        True,
        "proportional",
    ),
    Method("rerope", "ReRoPE", ReRoPE, 2023, "su2023rerope", "no", True, True),
    Method(
        "leaky_rerope",
        "leaky ReRoPE",
        LeakyReRoPE,
        2023,
        "su2023rerope",
        "no",
        True,
        True,
    ),
    Method(
        "self_extend", "Self-Extend", SelfExtend, 2024, "jin2024", "no", True, True
    ),
    Method(
        "log_n",
        "log-n scaling",
        LogN,
        2021,
        "su2021entropy",
        "optional",
        False,
        True,
    ),
)

METHODS: Mapping[str, Method] = MappingProxyType(
    {method.name: method for method in _ALL}
)


def make(name: str, **options: object) -> Frequencies | Distances | LogN:
    """The method of this name from `METHODS`, with its options, which are the fields of its class.

    >>> make("yarn", factor=4.0, trained_length=4096, beta=16.0).beta
    16.0
    >>> make("ntk", scale=4.0)
    Traceback (most recent call last):
        ...
    TypeError: options of 'ntk' must be (factor), got (scale)
    """
    built = METHODS[checks.choice("name", name, METHODS)].form
    signature = inspect.signature(built)
    try:
        signature.bind(**options)
    except TypeError:
        allowed = ", ".join(
            key if value.default is value.empty else f"{key}={value.default}"
            for key, value in signature.parameters.items()
        )
        raise TypeError(
            f"options of {name!r} must be ({allowed}), got ({', '.join(options)})"
        ) from None
    return built(**options)


def from_transformers(
    rope_parameters: Mapping[str, object], max_position_embeddings: int
) -> Frequencies:
    """The method that a config of transformers asks for with its ``rope_parameters``.

    All of transformers' scaling methods, with their options and defaults; "default" is none, and refused. Where "factor"
    is missing it is ``max_position_embeddings`` over the trained length, as there. The base (rope_theta), and a
    partial_rotary_factor for any but "proportional", are not the method's: with them it comes as `Configured`, and
    `rotary_options` gives what :class:`ropebook.efficient.RotaryEmbedding` needs. The layout is not in a config: it has
    to be named, "half" for transformers' Llama. A key that transformers does not have for the method, such as
    mrope_section, is refused (``ValueError``).

    >>> from_transformers({"rope_type": "linear", "factor": 4.0}, 4096)
    Interpolation(factor=4.0)
    >>> method = from_transformers({"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}, 4096)
    >>> method
    Configured(method=Interpolation(factor=4.0), base=500000.0, fraction=None)
    >>> from ropebook.efficient import RotaryEmbedding
    >>> RotaryEmbedding(8, layout="half", **rotary_options(method, 8)).base
    500000.0
    """
    given = {
        key: value for key, value in rope_parameters.items() if value is not None
    }
    legacy = given.pop("type", None)
    kind = checks.choice(
        "rope_parameters['rope_type']", given.get("rope_type", legacy), _KEYS
    )
    if legacy not in (None, kind):
        raise ValueError(
            f"rope_parameters['type'] must be its 'rope_type', {kind!r}, got {legacy!r}"
        )
    allowed = ("rope_type", "rope_theta", "partial_rotary_factor", *_KEYS[kind])
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise ValueError(
            f"the keys of rope_parameters must be among {', '.join(map(repr, allowed))} "
            f"for {kind!r}, got {', '.join(map(repr, unknown))}"
        )
    method = _method_of(kind, given, max_position_embeddings)
    fraction = (
        None if kind == "proportional" else given.get("partial_rotary_factor")
    )
    if fraction is None and "rope_theta" not in given:
        return method
    return Configured(method, given.get("rope_theta"), fraction)


def _method_of(
    kind: str, given: Mapping[str, object], max_position_embeddings: int
) -> Frequencies:

    def needed(key: str) -> object:
        if key not in given:
            raise ValueError(
                f"rope_parameters must give {key!r} for {kind!r}, got {sorted(given)}"
            )
        return given[key]

    if kind == "linear":
        return Interpolation(needed("factor"))
    if kind == "dynamic":
        return DynamicNTK(max_position_embeddings, needed("factor"))
    if kind == "proportional":
        return Proportional(
            given.get("partial_rotary_factor", 1.0), given.get("factor", 1.0)
        )
    trained_length = needed("original_max_position_embeddings")
    factor = given.get("factor")
    if factor is None:
        factor = length_factor(trained_length, max_position_embeddings)
    options = {
        ours: given[theirs]
        for theirs, ours in _OUR_OPTIONS[kind].items()
        if theirs in given
    }
    return make(kind, trained_length=trained_length, factor=factor, **options)


_OUR_OPTIONS = {
    "yarn": {
        "beta_slow": "alpha",
        "beta_fast": "beta",
        "truncate": "truncate",
        "mscale": "mscale",
        "mscale_all_dim": "mscale_all_dim",
        "attention_factor": "attention_factor",
    },
    "longrope": {
        "short_factor": "short_factors",
        "long_factor": "long_factors",
        "attention_factor": "attention_factor",
    },
    "llama3": {
        "low_freq_factor": "low_freq_factor",
        "high_freq_factor": "high_freq_factor",
    },
}

_KEYS = {  # of rope_parameters, for each rope_type
    "linear": ("factor",),
    "dynamic": ("factor",),
    **{
        kind: ("factor", "original_max_position_embeddings", *options)
        for kind, options in _OUR_OPTIONS.items()
    },
    "proportional": ("factor",),
}


def methods_table() -> list[dict[str, str]]:
    """The registry as rows of text, one per method: what a page prints as a table.

    >>> methods_table()[0]["method"], methods_table()[0]["in transformers"]
    ('position interpolation', 'linear')
    """
    return [
        {
            "name": method.name,
            "method": method.title,
            "year": str(method.year),
            "source": method.source,
            "changes": method.acts_on,
            "trains": method.trains,
            "changes within L": "yes" if method.changes_within else "no",
            "cache-safe": "yes" if method.cache_safe else "no",
            "in transformers": method.transformers or "–",
        }
        for method in METHODS.values()
    ]


# --- Checks of arguments, and small parts ---------------------------------------------------------------------------


def _frequencies(inv_freq: Tensor) -> Tensor:
    allowed = "inv_freq must be d/2 finite numbers >= 0, float64 or float32"
    if checks.floating("inv_freq", inv_freq).dtype not in (
        torch.float64,
        torch.float32,
    ):
        raise TypeError(f"{allowed}, got dtype {inv_freq.dtype}")
    if inv_freq.ndim != 1 or len(inv_freq) == 0:
        raise ValueError(f"{allowed}, got shape {tuple(inv_freq.shape)}")
    if checks.readable(inv_freq) and not (
        inv_freq.isfinite().all() and inv_freq.min() >= 0
    ):
        raise ValueError(f"{allowed}, got {inv_freq.tolist()}")
    return inv_freq


def _several_pairs(inv_freq: Tensor) -> Tensor:
    if len(inv_freq) < 2:
        raise ValueError(
            "inv_freq must hold at least 2 pairs, for at d = 2 there is neither a slowest "
            "beside the fastest nor a value of d/(d - 2), got 1"
        )
    return inv_freq


def _log_base(inv_freq: Tensor) -> Tensor:
    """ln b of frequencies θ_i = b^(−2i/d), 0-dimensional; ``ValueError`` if they are not of this form."""
    pairs = len(_several_pairs(_frequencies(inv_freq)))
    log_base = -inv_freq[-1].log() * (pairs / (pairs - 1))
    expected = (-log_base * torch.arange(pairs).to(inv_freq) / pairs).exp()
    if checks.readable(inv_freq) and not torch.allclose(
        inv_freq, expected, rtol=1e-4, atol=0
    ):
        raise ValueError(
            "inv_freq must be base**(-2i/d), as it is before any scaling, "
            f"got {inv_freq.tolist()}"
        )
    return log_base


def _same_pairs(inv_freq: Tensor, scaled: Tensor) -> None:
    if _frequencies(scaled).shape != _frequencies(inv_freq).shape:
        raise ValueError(
            f"the scaled frequencies must be as many as inv_freq, {len(inv_freq)}, got {len(scaled)}"
        )


def _divide_by_powers(inv_freq: Tensor, factor: float) -> Tensor:
    """θ_i divided by s^(i/(d/2 − 1)): the first pair by 1, the last by s."""
    pairs = len(_several_pairs(_frequencies(inv_freq)))
    share = torch.arange(pairs).to(inv_freq) / (pairs - 1)
    return inv_freq * factor**-share


def _mix(inv_freq: Tensor, factor: float, kept: Tensor) -> Tensor:
    """((1 − γ)/s + γ)θ: γ = 1 keeps, γ = 0 interpolates."""
    return ((1 - kept) / factor + kept) * inv_freq


def _grown(length: int | None, trained_length: int) -> float:
    """max(1, n/L)."""
    if length is None:
        raise ValueError(
            "length must be known where the frequencies follow it, got None: "
            "give an offset in place of positions, or fix the frequencies (fixed(target_length))"
        )
    return max(1.0, checks.integer("length", length, minimum=1) / trained_length)


def _factor(factor: float) -> float:
    return checks.number("factor", factor, minimum=1)


def _fraction(fraction: float) -> float:
    return checks.number("fraction", fraction, above=0, maximum=1)


def _trained(trained_length: int) -> int:
    return checks.integer("trained_length", trained_length, minimum=2)


def _bounds(
    low: float, high: float, names: tuple[str, str] = ("alpha", "beta")
) -> None:
    low = checks.number(names[0], low, above=0)
    checks.number(names[1], high)
    if low >= high:
        raise ValueError(
            f"{names[0]} must be less than {names[1]}, got {low} and {high}"
        )


def _attention_factor(value: float | None) -> None:
    if value is not None:
        checks.number("attention_factor", value, above=0)


def _check_yarn(method: YaRN | DynamicYaRN) -> None:
    _trained(method.trained_length)
    _bounds(method.alpha, method.beta)
    checks.choice("truncate", method.truncate, (True, False))
    checks.choice("ramp", method.ramp, ("pairs", "turns"))
    _attention_factor(method.attention_factor)
    given = [method.mscale, method.mscale_all_dim]
    if (given[0] is None) != (given[1] is None):
        raise ValueError(
            f"mscale and mscale_all_dim must be given together or not at all, got {given[0]} and {given[1]}"
        )
    if given[0] is not None:
        checks.number("mscale", given[0], above=0)
        checks.number("mscale_all_dim", given[1], above=0)


def _pair_factors(name: str, values: Sequence[float]) -> tuple[float, ...]:
    values = values.tolist() if isinstance(values, Tensor) else values
    if not isinstance(values, Sequence) or isinstance(values, str) or not values:
        raise TypeError(f"{name} must be one number for each pair, got {values!r}")
    return tuple(
        checks.number(f"{name}[{i}]", value, above=0)
        for i, value in enumerate(values)
    )


def _window_within(window: int, trained_length: int) -> None:
    if window >= _trained(trained_length):
        raise ValueError(
            f"trained_length must be above the window, {window}, got {trained_length}"
        )


def _positions(positions: Tensor) -> Tensor:
    """Positions as float64, in which whole ones stay exact (float32 on mps, which has no more)."""
    check_positions(positions)
    return positions.to(
        torch.float32 if positions.device.type == "mps" else torch.float64
    )


def _rotated(
    x: Tensor,
    positions: Tensor,
    inv_freq: Tensor,
    factor: float = 1.0,
    layout: str = "interleaved",
) -> Tensor:
    """x (…, T, d) turned by its positions, cos and sin multiplied by ``factor``."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    cos, sin = cos_sin(positions.to(x.device), inv_freq, wide)
    return apply_rotary(x, cos * factor, sin * factor, layout=layout)


def _wide(x: Tensor) -> Tensor:
    return x if x.dtype == torch.float64 else x.float()
