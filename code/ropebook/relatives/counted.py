"""CoPE, which counts positions with gates. A query can then attend to the last sentence, for example, or to the third
mention.

Source: Golovneva et al. 2024, *Contextual Position Encoding*, section 4.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.relatives.scheme import Parts, Scheme
from ropebook.shapes import Float


class CoPE(Scheme):
    """CoPE computes the score (q·k + q·e[p])/√d. The position p is the sum of the gates σ(q·k/√d) over the keys from n
    up to the query.

    p can be fractional, so e[p] interpolates between the vectors of the two nearest integers. ``table`` (places, dim)
    is learned and shared by all heads. If p lies beyond the table, the last row is used. Keys after the query have a
    gate of 0, so they are excluded *before* the gates are summed, not after.
    """

    def __init__(self, dim: int, places: int):
        super().__init__()
        checks.integer("dim", dim, minimum=1)
        checks.integer("places", places, minimum=2)
        self.table = nn.Parameter(torch.zeros(places, dim))

    def places(
        self, q: Tensor, k: Tensor, m: Tensor, n: Tensor
    ) -> Float[Tensor, "... heads queries keys"]:
        """Compute p for each query and key. Keys must be in the order of their positions; otherwise ``ValueError`` is
        raised."""
        if (n.diff() < 0).any():
            raise ValueError(f"n must be in order, got {n.tolist()}")
        gates = (q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])).sigmoid()
        gates = gates.masked_fill(n > m[:, None], 0.0)
        return gates.flip(-1).cumsum(-1).flip(-1)

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        last = len(self.table) - 1
        places = self.places(q, k, m, n).clamp(max=last)
        of_place = q @ self.table.to(q).T
        below = places.floor().long()
        above = places.ceil().long()
        share = places - below
        added = (1 - share) * of_place.gather(-1, below)
        added = added + share * of_place.gather(-1, above)
        return Parts(q, k, added / math.sqrt(q.shape[-1]))
