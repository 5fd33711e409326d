"""Left and right: what a scheme knows of the direction, and who supplies it where the scheme does not."""

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
    v: Float[Tensor, "batch heads seq dim"],
    *,
    causal: bool = False,
) -> float:
    """How much more than the order of its rows a layer's output changes when the text is read backwards: the largest
    difference, as a share of the largest output. 0: the layer cannot tell a text from its mirror image.
    """
    forwards = attend(scheme, q, k, v, causal=causal)
    backwards = attend(scheme, *(x.flip(-2) for x in (q, k, v)), causal=causal)
    off = (backwards.flip(-2) - forwards).abs().max()
    return (off / forwards.abs().max()).item()


def future_share(
    scheme: Scheme, n_heads: int, dim: int, length: int
) -> Float[Tensor, " heads"]:
    """The weight that the query in the middle gives to what comes after it, where no key fits better than another (q = k = 0)
    and there is no mask."""
    checks.integer("length", length, minimum=3)
    nothing = torch.zeros(n_heads, length, dim, dtype=torch.float64)
    places = torch.arange(length)
    weights = scheme.score(nothing, nothing, places, places).softmax(-1)
    middle = length // 2
    return weights[:, middle, middle + 1 :].sum(-1).detach()
