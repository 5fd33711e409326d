"""A method that lengthens the queries, so that attention stays sharp when there are more keys."""

from __future__ import annotations

import math
from dataclasses import dataclass

from torch import Tensor

from ropebook import checks
from ropebook.extrapolation.methods import Extension, known_as
from ropebook.extrapolation.parts import check_trained, exact_positions
from ropebook.rope import LARGEST_POSITION
from ropebook.shapes import Float, Real

__all__ = ["LogN"]


@known_as(
    "log_n",
    "log-n scaling",
    2021,
    "su2021entropy",
    "extrapolation_distances.md#log-n-do-more-keys-need-sharper-queries",
    example={"trained_length": 32},
    trains="optional",
    changes_within=False,
    explorers={"alive": ""},
)
@dataclass(frozen=True)
class LogN(Extension):
    """Multiplies the query at position m by max(1, ln(m + 1)/ln L), so that attention stays sharp when there are more
    keys.

    Su 2021. The maximum with 1 comes from Su's code for ReRoPE, and ensures that nothing changes up to L. The method
    does not change positions, so it can be combined with any other method.

    >>> import torch
    >>> LogN(trained_length=512).query_scale(torch.tensor([0, 511, 512**2 - 1]))
    tensor([1., 1., 2.], dtype=torch.float64)
    """

    acts_on = "queries"
    trained_length: int

    def __post_init__(self) -> None:
        check_trained(self.trained_length)

    def query_scale(
        self, positions: Real[Tensor, " *shape"]
    ) -> Float[Tensor, " *shape"]:
        """Return the factor at each position, in float64 and with the shape of ``positions``.

        Raises ``ValueError`` for a position below 0, if the values may be read.
        """
        seen = exact_positions(positions) + 1
        if checks.readable(positions):
            checks.entries("positions", positions, 0, LARGEST_POSITION)
        return (seen.log() / math.log(self.trained_length)).clamp(min=1)
