"""Transformer-XL, whose score has four terms. In two of them, a learned vector replaces the query.

Source: Dai et al. 2019, *Transformer-XL*, section 3.3 and appendix B.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.relatives.scheme import Parts, Scheme, distances, fit
from ropebook.rope import Positions, concatenated_order, dim_and_base
from ropebook.shapes import Float, Shaped
from ropebook.sinusoidal import FourTerms, encoding


class TransformerXL(Scheme):
    """Transformer-XL's score is [(q + u)·k + (q + v)·W_R R_Δ]/√d. R_Δ is the sinusoid of the distance, with all sines
    before all cosines.

    ``u`` and ``v`` (heads, dim) replace the query's position. W_R, ``w_r`` (heads, dim, width), turns a distance into
    something like a key. All three are learned.
    """

    def __init__(self, n_heads: int, dim: int, width: int, base: float = 10000.0):
        super().__init__()
        checks.integer("n_heads", n_heads, minimum=1)
        checks.integer("dim", dim, minimum=1)
        self.width, self.base = dim_and_base(width, base)
        self.u = nn.Parameter(torch.zeros(n_heads, dim))
        self.v = nn.Parameter(torch.zeros(n_heads, dim))
        self.w_r = nn.Parameter(torch.randn(n_heads, dim, width) * width**-0.5)

    def keys_of(
        self, apart: Float[Tensor, " *shape"]
    ) -> Float[Tensor, "heads *shape dim"]:
        """Compute W_R R_Δ for each distance."""
        waves = encoding(apart, self.width, self.base, torch.float64)
        waves = waves[..., concatenated_order(self.width)].to(self.w_r)
        return torch.einsum("hdw,...w->h...d", self.w_r, waves)

    def parts(self, q: Tensor, k: Tensor, m: Tensor, n: Tensor) -> Parts:
        if q.shape[-3::2] != self.u.shape:
            raise ValueError(
                f"q must have (heads, dim) {tuple(self.u.shape)}, as the scheme has, got {tuple(q.shape[-3::2])}"
            )
        # Compute each distance only once, even if it occurs several times.
        every, which = distances(m, n).unique(return_inverse=True)
        asking = q + self.v[:, None].to(q)
        by_each = asking @ self.keys_of(every).to(q).transpose(-2, -1)
        by_distance = by_each.gather(-1, which.expand(*q.shape[:-1], len(n)))
        added = by_distance / math.sqrt(q.shape[-1])
        return Parts(q + self.u[:, None].to(q), k, added)

    def terms(self, q: Tensor, k: Tensor, m: Positions, n: Positions) -> FourTerms:
        """Return the score's four terms q·k, q·W_R R_Δ, u·k and v·W_R R_Δ, each divided by √d: (…, heads, queries,
        keys)."""
        m, n = fit(q, k, m, n)
        of_distance = self.keys_of(distances(m, n)).to(q)
        u, v = (one[:, None].to(q).expand(q.shape) for one in (self.u, self.v))
        by_content = [one @ k.transpose(-2, -1) for one in (q, u)]
        by_distance = [
            torch.einsum("...hmd,hmnd->...hmn", one, of_distance) for one in (q, v)
        ]
        root = math.sqrt(q.shape[-1])
        return FourTerms(
            by_content[0] / root,
            by_distance[0] / root,
            by_content[1] / root,
            by_distance[1] / root,
        )

    def score_by_shift(
        self,
        q: Float[Tensor, "... heads seq dim"],
        k: Float[Tensor, "... heads seq dim"],
    ) -> Float[Tensor, "... heads seq seq"]:
        """Compute the scores of a text with itself using only 2T − 1 distances instead of T². Every query is multiplied
        by every distance's projection, and then each row is shifted into place by `shifted`."""
        length = q.shape[-2]
        apart = torch.arange(length - 1, -length, -1).double()
        of_distance = self.keys_of(apart).to(q)
        asking = q + self.v[:, None].to(q)
        by_distance = shifted(asking @ of_distance.transpose(-2, -1))
        by_content = (q + self.u[:, None].to(q)) @ k.transpose(-2, -1)
        return (by_content + by_distance) / math.sqrt(q.shape[-1])


def shifted(
    x: Shaped[Tensor, "*batch seq both"],
) -> Shaped[Tensor, "*batch seq seq"]:
    """Shift the rows of x (T, 2T − 1) so that in the result (T, T), column n of row m has distance m − n. The columns
    of x belong to the distances T − 1 … −(T − 1).

    We prepend a column of zeros, skip the first T numbers, and read the others in rows that are one entry shorter. Each
    row then starts one entry earlier in its list than the one before, so no lookups are needed.

    >>> shifted(torch.tensor([[1, 0, -1], [1, 0, -1]]))
    tensor([[ 0, -1],
            [ 1,  0]])
    """
    *batch, rows, both = x.shape
    if both != 2 * rows - 1:
        raise ValueError(f"x must be (…, T, 2T - 1), got {tuple(x.shape)}")
    padded = torch.cat((x.new_zeros(*batch, rows, 1), x), -1)
    moved = padded.flatten(-2)[..., rows:].unflatten(-1, (rows, both))
    return moved[..., :rows]
