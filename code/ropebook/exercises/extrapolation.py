"""Exercises on longer sequences: raising the base, and scaling the frequencies by parts."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import extrapolation, rope
from ropebook.exercises.marking import Chosen, Written

BASE = Written(
    lambda base, d, s: extrapolation.ntk_base(base, d, s),
    {
        "times_s": (
            lambda base, d, s: base * s,
            "base · s stretches the last pair by less than s: the exponent d/(d − 2) is missing.",
        ),
        "inverse": (
            lambda base, d, s: base * s ** ((d - 2) / d),
            "the exponent is upside down: it should be d/(d − 2), a little more than 1.",
        ),
        "power_d": (
            lambda base, d, s: base * float(s) ** d,
            "s^d is far too much: the exponent is d/(d − 2).",
        ),
        "shorter": (
            lambda base, d, s: base / s ** (d / (d - 2)),
            "the base has become smaller, so pairs rotate faster, but they should rotate more slowly.",
        ),
        "pairs": (
            lambda base, d, s: base * s ** (d / (d - 1)),
            "the last exponent is (d − 2)/d, not (d − 1)/d: pairs count in steps of two.",
        ),
        "unchanged": (lambda base, d, s: base, "this is the base that there was."),
    },
    [(10000.0, 8, 4.0), (500000.0, 128, 2.0)],
    "the last pair is stretched by s, and the first pair isn't stretched.",
)


def _by_parts(theta: Tensor, length: int, s: float) -> Tensor:
    kept = extrapolation.ramp_in_turns(theta, length)
    return extrapolation.mix(theta, s, kept)


def _with(kept):
    return lambda theta, length, s: extrapolation.mix(theta, s, kept(theta, length))


def _ramp(turns: Tensor) -> Tensor:
    return (turns - 1) / 31


PARTS = Written(
    _by_parts,
    {
        "turned_round": (
            _with(lambda theta, length: 1 - extrapolation.ramp_in_turns(theta, length)),
            "the ramp is the wrong way round: it stretches fast pairs and keeps slow ones.",
        ),
        "not_clipped": (
            _with(lambda theta, length: _ramp(length * theta / (2 * math.pi))),
            "the ramp is not clipped, so pairs beyond its ends are sped up or reversed.",
        ),
        "radians": (
            _with(lambda theta, length: _ramp(length * theta).clamp(0, 1)),
            "radians are treated as turns: a factor of 2π is missing.",
        ),
        "wavelengths": (
            lambda theta, length, s: theta / (
                extrapolation.ramp_in_turns(theta, length) + s * (1 - extrapolation.ramp_in_turns(theta, length))
            ),
            "this mixes wavelengths, but NTK-by-parts mixes frequencies.",
        ),
        "all_stretched": (lambda theta, length, s: theta / s, "all pairs are stretched: that is interpolation."),
        "all_kept": (lambda theta, length, s: theta, "nothing is stretched."),
        "step": (
            _with(lambda theta, length: (length * theta >= 2 * math.pi).double()),
            "there is no ramp: the factor jumps from one pair to the next.",
        ),
    },
    [(rope.inv_freq(32), 2048, 4.0), (rope.inv_freq(16, 500.0), 512, 8.0)],
    "pairs with more than 32 turns are kept, and pairs with less than one turn are stretched by s.",
)  # fmt: skip


def planted(
    q: Tensor,
    keys: list[Tensor],
    new: Tensor,
    length: int = 4096,
    base: float = 10000.0,
) -> Tensor:
    """Compute the scores of the newest token with dynamic NTK. One of the lines contains a mistake.

    q and new are (1, d). The keys in ``keys`` have already been rotated.
    """
    d, n = q.shape[-1], len(keys)
    s = max(1.0, (n + 1) / length)
    theta = (base * s ** (d / (d - 2))) ** (-torch.arange(0, d, 2) / d)
    turn = torch.polar(torch.ones(()).double(), n * theta.double())
    q, new = (
        torch.view_as_real(
            torch.view_as_complex(x.unflatten(-1, (-1, 2))) * turn
        ).flatten(-2)
        for x in (q, new)
    )
    keys.append(new)
    return q @ torch.cat(keys).mT / math.sqrt(d)


BUG = Chosen(
    "keys",
    {
        "s": "this line is right. It is 1 up to the trained length, and then the factor.",
        "theta": "this line is right. It has the base of NTK-aware scaling for this length.",
        "turn": "this line is right. The newest token is at n, counted from 0.",
        "keys": "keys are stored after they are rotated, but the next step has different frequencies, so the cache is wrong beyond L. "
        "Store unrotated keys, or fix s.",
        "return": "this line is right. It divides the products by √d.",
    },
)
