"""T5's scheme, which learns one number per head for each range of distances.

Source: Raffel et al. 2020, *Exploring the Limits of Transfer Learning*, section 2.1. The ranges follow the paper's
code.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from ropebook import checks
from ropebook.relatives.scheme import Bias
from ropebook.rope import Positions, as_positions
from ropebook.shapes import Float, Int, Real
from ropebook.sinusoidal import relative_positions

BUCKETS, FARTHEST = 32, 128
"""T5's settings: the number of ranges, and a distance in tokens that is certain to fall into the last range."""


def t5_bucket(
    apart: Real[Tensor, " *shape"],
    buckets: int = BUCKETS,
    farthest: int = FARTHEST,
    *,
    bidirectional: bool = False,
) -> Int[Tensor, " *shape"]:
    """Return the index of each distance's range: int64, counted from 0.

    Half of the ranges contain a single distance each. The others grow logarithmically up to ``farthest``, and the last
    range contains all larger distances. Keys after the query (m − n < 0) are in range 0. With ``bidirectional``, they
    have the second half of the ranges to themselves, and ``buckets`` must be even. A fractional distance is rounded
    towards 0. Raises ``ValueError`` for NaN.

    >>> t5_bucket(torch.tensor([0, 1, 15, 16, 32, 127, 128, 5000]))
    tensor([ 0,  1, 15, 16, 21, 31, 31, 31])
    >>> t5_bucket(torch.tensor([3, 0, -3, -5000]), bidirectional=True)
    tensor([ 3,  0, 19, 31])
    """
    checks.integer("buckets", buckets, minimum=4 if bidirectional else 2)
    apart = as_positions("apart", apart)
    if bidirectional:
        side = checks.even("buckets", buckets) // 2
        return (apart < 0) * side + _one_sided(apart.abs(), side, farthest)
    return _one_sided(apart.clamp(min=0), buckets, farthest)


def _one_sided(apart: Tensor, buckets: int, farthest: int) -> Tensor:
    own = buckets // 2
    checks.integer("farthest", farthest, minimum=own + 1)
    scale = (apart.clamp(min=own).double() / own).log() / math.log(farthest / own)
    wide = own + (scale * (buckets - own)).long()
    return torch.where(apart < own, apart.long(), wide.clamp(max=buckets - 1))


class T5Buckets(Bias):
    """A bias looked up in a learned table, ``weight`` (heads, buckets), by the range of m − n. The table is initialised
    to zero, so the model has no positions at first.

    ``bidirectional`` is meant for encoders, whose queries may attend to both sides.
    """

    def __init__(
        self,
        n_heads: int,
        buckets: int = BUCKETS,
        farthest: int = FARTHEST,
        *,
        bidirectional: bool = False,
    ):
        super().__init__()
        checks.integer("n_heads", n_heads, minimum=1)
        self.farthest, self.bidirectional = farthest, bidirectional
        # Check the arguments here, so that an unsuitable one raises an error now rather than later.
        t5_bucket(torch.zeros(1), buckets, farthest, bidirectional=bidirectional)
        self.weight = nn.Parameter(torch.zeros(n_heads, buckets))

    def bias(
        self, m: Positions, n: Positions
    ) -> Float[Tensor, "heads queries keys"]:
        return t5_bias(
            self.weight,
            relative_positions(m, n),
            self.farthest,
            bidirectional=self.bidirectional,
        )


def t5_bias(
    weight: Float[Tensor, "heads buckets"],
    apart: Real[Tensor, "queries keys"],
    farthest: int = FARTHEST,
    *,
    bidirectional: bool = False,
) -> Float[Tensor, "heads queries keys"]:
    """For each distance m − n, look up each head's weight for the range that contains the distance."""
    buckets = t5_bucket(
        apart, weight.shape[1], farthest, bidirectional=bidirectional
    )
    return weight[:, buckets.to(weight.device)]


def imitated(
    bias: Bias, buckets: int = BUCKETS, farthest: int = FARTHEST
) -> T5Buckets:
    """Make T5's buckets imitate another bias that depends on the distance. On both sides, each range gets the mean of
    the biases at its two ends, except that the last range gets the bias at its first distance. Nothing is learned here.

    >>> from ropebook.relatives import ALiBi
    >>> imitated(ALiBi(1)).bias([300], [299, 0]).detach()
    tensor([[[-0.0039, -0.3555]]])
    """
    apart = torch.arange(-farthest, farthest + 1)
    values = bias.bias([0], -apart)[:, 0]
    found = T5Buckets(len(values), buckets, farthest, bidirectional=True)
    at = t5_bucket(apart, buckets, farthest, bidirectional=True)
    last = buckets // 2 - 1
    with torch.no_grad():
        for bucket in at.unique().tolist():
            inside = apart[at == bucket]
            ends = [inside.abs().min(), inside.abs().max()]
            if bucket % (buckets // 2) == last:
                ends[1] = ends[0]
            sign = -1 if bucket >= buckets // 2 else 1
            here = [sign * int(end) + farthest for end in ends]
            found.weight[:, bucket] = values[:, here].mean(1)
    return found
