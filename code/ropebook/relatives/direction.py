"""Measure whether a scheme can tell on which side of the query a key lies, and what a causal mask adds."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks
from ropebook.relatives.attending import attend
from ropebook.relatives.scheme import Scheme
from ropebook.shapes import Float


def reversal(
    scheme: Scheme,
    q: Float[Tensor, "batch heads seq dim"],
    k: Float[Tensor, "batch heads seq dim"],
    v: Float[Tensor, "batch heads seq width"],
    *,
    causal: bool = False,
) -> float:
    """Measure how much the rows of a layer's output change, apart from their order, when the text is read backwards.
    Returns the largest difference as a fraction of the largest output. 0 means that the layer cannot tell a text from
    its mirror image.
    """
    forwards = attend(scheme, q, k, v, causal=causal)
    backwards = attend(scheme, *(x.flip(-2) for x in (q, k, v)), causal=causal)
    off = (backwards.flip(-2) - forwards).abs().max()
    return (off / forwards.abs().max()).item()


def future_share(
    scheme: Scheme, n_heads: int, dim: int, length: int
) -> Float[Tensor, " heads"]:
    """For the query in the middle of a text, return the share of the weight that later keys get if all keys fit equally
    well (q = k = 0) and there is no mask."""
    checks.integer("length", length, minimum=3)
    nothing = torch.zeros(n_heads, length, dim, dtype=torch.float64)
    places = torch.arange(length)
    weights = scheme.score(nothing, nothing, places, places).softmax(-1)
    middle = length // 2
    return weights[:, middle, middle + 1 :].sum(-1).detach()
