"""Recommend a method for a model, with settings that reach the length you want.

The choice depends on how far you may change the model.
"""

from __future__ import annotations

from typing import NamedTuple

from ropebook import checks
from ropebook.extrapolation.methods import Extension
from ropebook.extrapolation.registry import METHODS

WHEN = (
    "as it is, keys cached",
    "as it is, two tables of scores",
    "as it is, short texts untouched",
    "only the base can be set",
    "trained further",
)
"""What you may do to the model. Each method's class says which of these cases it suits, and how the method then reaches
L′."""


class Choice(NamedTuple):
    """A situation and our recommendation for it."""

    # which changes to the model are allowed
    when: str
    method: Extension


def choices(
    trained_length: int,
    target_length: int,
    *,
    dim: int = 128,
    base: float = 10_000.0,
) -> list[Choice]:
    """Recommend one method for each entry of `WHEN`, for a model that was trained on L tokens and is to read L′ tokens.

    >>> for choice in choices(4096, 16384):
    ...     print(f"{choice.when}: {type(choice.method).__name__}")
    as it is, keys cached: YaRN
    as it is, two tables of scores: SelfExtend
    as it is, short texts untouched: DynamicNTK
    only the base can be set: BaseChange
    trained further: YaRN

    Args:
        trained_length: L, the length of the original training.
        target_length: L′, greater than L.
        dim: d, the number of entries of a head that are rotated.
        base: b, the base with which the model was trained.

    Raises:
        ValueError: L′ is not greater than L, so no method is needed.
    """
    checks.integer("target_length", target_length, minimum=trained_length + 1)
    lengths = trained_length, target_length
    return [
        Choice(when, method.form.reaching(*lengths, dim=dim, base=base))
        for when in WHEN
        for method in METHODS.values()
        if when in method.suits
    ]
