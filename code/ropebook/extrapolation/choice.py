"""Which method suits which model: settings that reach the length you want, depending on how far the model may be
changed."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from ropebook import checks
from ropebook.extrapolation.distances import SelfExtend
from ropebook.extrapolation.measures import turned
from ropebook.extrapolation.methods import Extension
from ropebook.extrapolation.parts import length_factor, ntk_base
from ropebook.extrapolation.registry import make
from ropebook.rope import inv_freq as frequencies_of
from ropebook.shapes import Float


def least_ntk_factor(
    inv_freq: Float[Tensor, " pairs"], trained_length: int, target_length: int
) -> float:
    """The smallest factor for NTK-aware scaling that keeps every pair within its angles in training.

    The first pair without a full turn decides: of the pairs that need stretching, it is
    stretched least.

    >>> round(least_ntk_factor(frequencies_of(128), 4096, 16384), 2)
    6.68

    Raises:
        ValueError: not even the first pair has turned, which no factor stretches.
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


def least_group(trained_length: int, target_length: int, window: int) -> int:
    """The smallest group size with which Self-Extend takes a model from L tokens to L′.

    >>> least_group(4096, 16384, window=1024)
    6
    """
    length_factor(trained_length, target_length)
    group = 1
    while SelfExtend(window, group).reach(trained_length) < target_length:
        group += 1
    return group


class Choice(NamedTuple):
    """A situation, and what we recommend for it."""

    # what may be done to the model
    when: str
    method: Extension


def choices(
    trained_length: int,
    target_length: int,
    *,
    dim: int = 128,
    base: float = 10_000.0,
) -> list[Choice]:
    """What to use when a model of L tokens should read L′, depending on what may be done to it.

    >>> for choice in choices(4096, 16384):
    ...     print(f"{choice.when}: {type(choice.method).__name__}")
    as it is, keys cached: YaRN
    as it is, two tables of scores: SelfExtend
    as it is, short texts untouched: DynamicNTK
    only the base can be set: BaseChange
    trained on: YaRN

    Args:
        trained_length: L, of the first training.
        target_length: L′, above L.
        dim: d, the entries of a head that turn.
        base: b, as the model was trained.

    Raises:
        ValueError: L′ is not above L: nothing is needed then.
    """
    checks.integer("target_length", target_length, minimum=trained_length + 1)
    factor = length_factor(trained_length, target_length)
    window = max(1, trained_length // 2)  # the book has measured half of L
    ntk = least_ntk_factor(frequencies_of(dim, base), trained_length, target_length)
    yarn = make("yarn", factor=factor, trained_length=trained_length)
    group = least_group(trained_length, target_length, window)
    return [
        Choice("as it is, keys cached", yarn),
        Choice(
            "as it is, two tables of scores",
            make("self_extend", window=window, group=group),
        ),
        Choice(
            "as it is, short texts untouched",
            make("dynamic_ntk", trained_length=trained_length),
        ),
        Choice(
            "only the base can be set", make("base", base=ntk_base(base, dim, ntk))
        ),
        Choice("trained on", yarn),
    ]
