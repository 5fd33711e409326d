"""Convert between the two layouts by reordering a head's entries or a projection's rows."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook import checks, rope
from ropebook.shapes import Int, Shaped


def interleaved_to_half(
    dim: int, rotary_dim: int | None = None
) -> Int[Tensor, " dim"]:
    """Return the order such that x_half = x_interleaved[..., order]: the first entries of all pairs, followed by all
    the second entries. Shape (dim,), int64.

    Entries from index ``rotary_dim`` (default ``dim``) on are not moved.

    >>> interleaved_to_half(6)
    tensor([0, 2, 4, 1, 3, 5])
    """
    dim = checks.even("dim", dim)
    rotary_dim = checks.rotary_dim(dim, rotary_dim)
    rest = torch.arange(rotary_dim, dim)
    return torch.cat((rope.concatenated_order(rotary_dim), rest))


def half_to_interleaved(
    dim: int, rotary_dim: int | None = None
) -> Int[Tensor, " dim"]:
    """Return the inverse order, such that x_interleaved = x_half[..., order]. Shape (dim,), int64.

    >>> half_to_interleaved(6)
    tensor([0, 3, 1, 4, 2, 5])
    """
    return interleaved_to_half(dim, rotary_dim).argsort()


def convert_weight(
    weight: Shaped[Tensor, "rows ..."],
    n_heads: int,
    head_dim: int,
    to: str,
    rotary_dim: int | None = None,
) -> Shaped[Tensor, "rows ..."]:
    """Convert a query or key projection to the other layout by reordering its outputs, given its weight or bias.

    ``weight``: (n_heads·head_dim, inputs), as in torch.nn.Linear, or a bias (n_heads·head_dim,). ``n_heads`` is the
    number of heads in this projection; with grouped heads, keys have fewer than queries. ``to`` is the layout you want;
    the weight must be in the other one. Scores stay the same only if queries *and* keys are converted. The projections
    of values and outputs are never converted.

    >>> convert_weight(torch.arange(8.0), n_heads=2, head_dim=4, to="half")
    tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    checks.floating("weight", weight)
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    head_dim = checks.even("head_dim", head_dim)
    if weight.ndim not in (1, 2) or weight.shape[0] != n_heads * head_dim:
        raise ValueError(
            f"weight must have n_heads·head_dim = {n_heads * head_dim} rows, got shape {tuple(weight.shape)}"
        )
    checks.choice("to", to, checks.LAYOUTS)
    order = interleaved_to_half if to == "half" else half_to_interleaved
    rows = order(head_dim, rotary_dim).to(weight.device)
    return weight.unflatten(0, (n_heads, head_dim))[:, rows].flatten(0, 1)
