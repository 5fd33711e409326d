"""The building blocks of the methods: NTK's base, the ramps, YaRN's factor, and option checks."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import checks
from ropebook.efficient import apply_rotary
from ropebook.rope import check_positions, cos_sin, wide
from ropebook.shapes import Float, Real

# --- Lengths --------------------------------------------------------------------------------------------------------


def length_factor(trained_length: int, target_length: int) -> float:
    """Return the factor s = L′/L, at least 1.

    Raises ``ValueError`` if the target length is less than the trained length.

    >>> length_factor(4096, 16384)
    4.0
    """
    trained_length = check_trained(trained_length)
    longer = checks.integer("target_length", target_length, minimum=trained_length)
    return longer / trained_length


def grown_to(length: int | None, trained_length: int) -> float:
    """Return max(1, n/L): a float for an int, and an expression for a symbolic length in torch.export."""
    if length is None:
        raise ValueError(
            "length must be known where the frequencies follow it, got None: "
            "give an offset instead of positions, or fix the frequencies (fixed(target_length))"
        )
    length = checks.integer("length", length, minimum=1)
    if isinstance(length, torch.SymInt):
        return torch.sym_max(length, trained_length) / trained_length
    return max(1.0, length / trained_length)


# --- Frequencies ----------------------------------------------------------------------------------------------------


def ntk_base(base: float, dim: int, factor: float) -> float:
    """Return the base of NTK-aware scaling, b′ = b·s^(d/(d−2)).

    Raises ``ValueError`` for d = 2, because the exponent is then undefined.

    >>> round(ntk_base(10000.0, 128, 4.0))
    40890
    """
    base = checks.number("base", base, minimum=1)
    if checks.even("dim", dim) == 2:
        raise ValueError(
            "dim must be at least 4, because d/(d - 2) has no value, got 2"
        )
    return base * check_factor(factor) ** (dim / (dim - 2))


def ntk_exponent():
    """Let sympy find the exponent d/(d − 2), for which the base b·s^x divides the last pair's frequency by exactly s.

    For any x the first pair's frequency is divided by 1, because b′^0 = 1. Returns a sympy expression in the symbol d.

    >>> ntk_exponent()
    d/(d - 2)
    """
    import sympy

    b, d, s, x = sympy.symbols("b d s x", positive=True)
    # the last pair's exponent, -2i/d at i = d/2 - 1
    last = -(d - 2) / d
    equation = sympy.log(b * s**x) * last - (sympy.log(b) * last - sympy.log(s))
    (solution,) = sympy.solve(sympy.expand_log(equation), x)
    return sympy.factor(solution)


def divide_by_powers(
    inv_freq: Float[Tensor, " pairs"], factor: float
) -> Float[Tensor, " pairs"]:
    """Divide θ_i by s^(i/(d/2 − 1)): the first pair by 1, the last by s."""
    pairs = len(several_pairs(frequencies(inv_freq)))
    share = torch.arange(pairs).to(inv_freq) / (pairs - 1)
    return inv_freq * factor**-share


def log_base_of(inv_freq: Float[Tensor, " pairs"]) -> Float[Tensor, ""]:
    """Find ln b for frequencies θ_i = b^(−2i/d), as a 0-dimensional tensor.

    Raises ``ValueError`` if the frequencies do not have this form.
    """
    pairs = len(several_pairs(frequencies(inv_freq)))
    log_base = -inv_freq[-1].log() * (pairs / (pairs - 1))
    expected = (-log_base * torch.arange(pairs).to(inv_freq) / pairs).exp()
    if checks.readable(inv_freq) and not about_equal(inv_freq, expected):
        raise ValueError(
            "inv_freq must be base**(-2i/d), as it is before any scaling, "
            f"got {inv_freq.tolist()}"
        )
    return log_base


def about_equal(
    inv_freq: Float[Tensor, " pairs"], expected: Float[Tensor, " pairs"]
) -> bool:
    """Return whether frequencies are equal to the expected ones to within one part in 10,000."""
    return torch.allclose(inv_freq, expected, rtol=1e-4, atol=0)


def mix(
    inv_freq: Float[Tensor, " pairs"], factor: float, kept: Float[Tensor, " pairs"]
) -> Float[Tensor, " pairs"]:
    """Compute ((1 − γ)/s + γ)θ, where γ is ``kept``: γ = 1 keeps a pair, γ = 0 interpolates it."""
    return ((1 - kept) / factor + kept) * inv_freq


# --- Ramps ----------------------------------------------------------------------------------------------------------


def ramp_in_turns(
    inv_freq: Float[Tensor, " pairs"],
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
) -> Float[Tensor, " pairs"]:
    """Return how much of each pair is kept, as in the YaRN paper, equation (18): γ = clip((r − α)/(β − α), 0, 1), shape
    (d/2,).

    γ is linear in the pair's number of **turns**, r = L/λ.

    >>> from ropebook.rope import inv_freq
    >>> ramp_in_turns(inv_freq(8), 512)
    tensor([1.0000, 0.2306, 0.0000, 0.0000], dtype=torch.float64)
    """
    check_bounds(alpha, beta)
    turns = frequencies(inv_freq) * (check_trained(trained_length) / (2 * math.pi))
    return ((turns - alpha) / (beta - alpha)).clamp(0, 1)


def ramp_in_pairs(
    inv_freq: Float[Tensor, " pairs"],
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> Float[Tensor, " pairs"]:
    """Return how much of each pair is kept, as in YaRN's code: γ, shape (d/2,).

    γ is linear in the pair's **index** i, from low to high (`ramp_range`).

    >>> from ropebook.rope import inv_freq
    >>> ramp_in_pairs(inv_freq(8), 512)
    tensor([1.0000, 0.5000, 0.0000, 0.0000], dtype=torch.float64)
    """
    low, high = ramp_range(inv_freq, trained_length, alpha, beta, truncate)
    index = torch.arange(len(inv_freq)).to(inv_freq)
    return 1 - ((index - low) / (high - low)).clamp(0, 1)


def ramp_range(
    inv_freq: Float[Tensor, " pairs"],
    trained_length: int,
    alpha: float = 1.0,
    beta: float = 32.0,
    truncate: bool = True,
) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
    """Return the pair indices (low, high) between which YaRN's code blends: c(β) and c(α), where c(r) = d·ln(L/2πr)/(2
    ln b).

    A pair at index c(r) completes r turns in L. ``truncate`` rounds low down and high up. Both are clamped to 0 … d −
    1, as in the published code (although the last pair is d/2 − 1). If low (c(β), rounded down) is above d − 1 or high
    (c(α), rounded up) is below 0, no range is left, and the published ramp would run backwards; this function raises
    ``ValueError`` instead. The result is two 0-dimensional tensors.

    >>> from ropebook.rope import inv_freq
    >>> [end.item() for end in ramp_range(inv_freq(128), 4096)]
    [20.0, 46.0]
    """
    check_bounds(alpha, beta)
    check_trained(trained_length)
    log_base = log_base_of(inv_freq)
    if checks.readable(inv_freq) and log_base <= 0:
        raise ValueError(
            "inv_freq must fall, because with base 1 no pair is slower than another, "
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
    # This avoids 0/0, as the published code does.
    return low, torch.where(low == high, high + 0.001, high)


# --- The factor on cosines and sines --------------------------------------------------------------------------------


def yarn_factor(factor: float, weight: float = 1.0) -> float:
    """Return YaRN's factor on cos and sin, 0.1·w·ln s + 1, which is 1 for s = 1.

    The rotated entries' contribution to a score is multiplied by its square. Peng et al. 2023, section 3.4.

    >>> round(yarn_factor(16.0), 4), round(yarn_factor(16.0) ** 2, 4)
    (1.2773, 1.6314)
    """
    weight = checks.number("weight", weight, minimum=0)
    return 0.1 * weight * math.log(check_factor(factor)) + 1


def softmax_scale(head_dim: int, factor: float, mscale_all_dim: float) -> float:
    """Return the scale of q·k for a model without a factor on cos and sin, as in DeepSeek-V3.

    The scale is yarn_factor(s, mscale_all_dim)²/√d. It also applies to the part of q·k that comes from unrotated entries,
    while a factor on cos and sin applies only to the rotated part.

    >>> round(softmax_scale(64, 1.0, 1.0), 4)
    0.125
    """
    head_dim = checks.integer("head_dim", head_dim, minimum=1)
    return yarn_factor(factor, mscale_all_dim) ** 2 / math.sqrt(head_dim)


# --- Rotated vectors ------------------------------------------------------------------------------------------------


def exact_positions(positions: Real[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Convert positions to float64, so that whole numbers remain exact (or to float32 on mps, which has no float64)."""
    check_positions(positions)
    on_mps = positions.device.type == "mps"
    return positions.to(torch.float32 if on_mps else torch.float64)


def rotated(
    x: Float[Tensor, "*batch seq dim"],
    positions: Real[Tensor, "... seq"],
    inv_freq: Float[Tensor, " pairs"],
    factor: float = 1.0,
    layout: str = "interleaved",
) -> Float[Tensor, "*batch seq dim"]:
    """Rotate x (…, T, d) by its positions, with cos and sin multiplied by ``factor``."""
    cos, sin = cos_sin(positions.to(x.device), inv_freq, wide(x.dtype))
    return apply_rotary(x, cos * factor, sin * factor, layout=layout)


def at_least_float32(x: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Convert x to float32, unless it is float64."""
    return x if x.dtype == torch.float64 else x.float()


# --- Checks ---------------------------------------------------------------------------------------------------------


def frequencies(inv_freq: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
    """Return ``inv_freq`` after checking it: d/2 finite numbers, at least 0, float64 or float32."""
    allowed = "inv_freq must be d/2 finite numbers >= 0, float64 or float32"
    wide_ones = (torch.float64, torch.float32)
    if checks.floating("inv_freq", inv_freq).dtype not in wide_ones:
        raise TypeError(f"{allowed}, got dtype {inv_freq.dtype}")
    if inv_freq.ndim != 1 or len(inv_freq) == 0:
        raise ValueError(f"{allowed}, got shape {tuple(inv_freq.shape)}")
    if checks.readable(inv_freq) and not _finite_from_0(inv_freq):
        raise ValueError(f"{allowed}, got {inv_freq.tolist()}")
    return inv_freq


def _finite_from_0(x: Tensor) -> bool:
    return bool(x.isfinite().all()) and bool(x.min() >= 0)


def several_pairs(inv_freq: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
    """Return ``inv_freq`` if it has at least two pairs; otherwise raise ``ValueError``."""
    if len(inv_freq) < 2:
        raise ValueError(
            "inv_freq must hold at least 2 pairs, because a single one is both the fastest "
            "and the slowest, and d/(d - 2) has no value, got 1"
        )
    return inv_freq


def same_pairs(
    inv_freq: Float[Tensor, " pairs"], scaled: Float[Tensor, " pairs"]
) -> None:
    """Raise ``ValueError`` unless both tensors contain frequencies for the same number of pairs."""
    if frequencies(scaled).shape != frequencies(inv_freq).shape:
        raise ValueError(
            f"the scaled frequencies must be as many as inv_freq, {len(inv_freq)}, got {len(scaled)}"
        )


def check_factor(factor: float) -> float:
    """Check s, which must be at least 1."""
    return checks.number("factor", factor, minimum=1)


def check_fraction(fraction: float) -> float:
    """Check a share of the entries or pairs, which must be above 0 and at most 1."""
    return checks.number("fraction", fraction, above=0, maximum=1)


def check_trained(trained_length: int) -> int:
    """Check L, which must be at least 2."""
    return checks.integer("trained_length", trained_length, minimum=2)


def check_bounds(
    low: float, high: float, names: tuple[str, str] = ("alpha", "beta")
) -> None:
    """Check two numbers of turns: ``low`` must be above 0 and below ``high``."""
    low = checks.number(names[0], low, above=0)
    checks.number(names[1], high)
    if low >= high:
        raise ValueError(
            f"{names[0]} must be less than {names[1]}, got {low} and {high}"
        )


def check_attention_factor(value: float | None) -> None:
    """Check an attention factor, which must be above 0, or None."""
    if value is not None:
        checks.number("attention_factor", value, above=0)
