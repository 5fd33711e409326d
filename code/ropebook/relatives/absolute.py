"""Positions that are added to the tokens, from a learned or computed table. They affect queries and keys through
the projections."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.relatives.scheme import Parts, Scheme
from ropebook.shapes import Float
from ropebook.sinusoidal.codes import whole_positions


class Absolute(Scheme):
    """Adds a learned table p to the tokens, so that the score becomes (q + W_Q p_m)·(k + W_K p_n)/√d.

    The first ``length`` positions each have a vector of ``width`` entries. Any other position raises
    ``ValueError``. The projections ``w_q`` and ``w_k`` (heads, dim, width) would be those of the layer; here they
    are initialised randomly.
    """

    def __init__(self, n_heads: int, dim: int, length: int, width: int):
        super().__init__()
        for name, size in (
            ("n_heads", n_heads),
            ("dim", dim),
            ("length", length),
            ("width", width),
        ):
            checks.integer(name, size, minimum=1)
        self.table = nn.Parameter(0.02 * torch.randn(length, width))
        projections = torch.randn(2, n_heads, dim, width) * width**-0.5
        self.register_buffer("w_q", projections[0])
        self.register_buffer("w_k", projections[1])

    def places(
        self, name: str, positions: Tensor, projection: Tensor
    ) -> Float[Tensor, "heads seq dim"]:
        """Return the projected vectors of these positions. Raises ``TypeError`` for positions that are not
        integers."""
        last = len(self.table) - 1
        note = f" ({last + 1} vectors were learned, no more)"
        whole = whole_positions(name, positions, 0, last, note)
        return torch.einsum("hdw,sw->hsd", projection, self.table[whole])

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        if q.shape[-3::2] != self.w_q.shape[:2]:
            raise ValueError(
                f"q must have (heads, dim) {tuple(self.w_q.shape[:2])}, as the scheme has, got {tuple(q.shape[-3::2])}"
            )
        of_q, of_k = (
            self.places("m", m, self.w_q),
            self.places("n", n, self.w_k),
        )
        return Parts(q + of_q.to(q), k + of_k.to(k), None)
