"""Linear attention with rotations.

The weights are φ(q)·φ(k) instead of e^{q·k}, so the sums can be updated token by token.

Sources: Katharopoulos et al. 2020, *Transformers are RNNs*; Su et al. 2021, *RoFormer*, section 3.3. Rotated features
are used only in the numerator, because their products may be negative.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from ropebook import checks
from ropebook.attention import causal_mask
from ropebook.beyond.values import Vectors, turned_by
from ropebook.rope import Positions
from ropebook.shapes import Float

TURNS = ("after", "before", "none")
NORMALISERS = ("still", "turned", "none")

Weights = Float[Tensor, "*heads queries keys"]


def feature(x: Float[Tensor, " *shape"]) -> Float[Tensor, " *shape"]:
    """Compute φ(x) = elu(x) + 1, which is always positive: it is e^x below 0, and x + 1 above 0.

    >>> feature(torch.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3679, 1.0000, 3.0000])
    """
    return functional.elu(x) + 1


def features(
    x: Vectors, places: Positions, turn: str = "after", base: float = 10000.0
) -> Vectors:
    """Apply φ to each vector. ``turn`` says whether the vector is rotated "after" φ, "before" φ, or not at all.

    If vectors are rotated after φ, their products depend only on the distance, and may be negative. If they are rotated
    before φ, the products are positive but depend on both positions.
    """
    checks.choice("turn", turn, TURNS)
    if turn == "before":
        return feature(turned_by(x, places, base))
    return turned_by(feature(x), places, base) if turn == "after" else feature(x)


def linear_weights(
    q: Vectors,
    k: Vectors,
    places: Positions,
    *,
    turn: str = "after",
    normaliser: str = "still",
    base: float = 10000.0,
) -> Weights:
    """Compute the whole matrix of weights, one for each query and key: (…, T, T).

    The weights are zero for keys after the query.

    ``normaliser`` says what each row is divided by: the sum of the unrotated products ("still"), the sum of the rotated
    products ("turned"), or nothing ("none").
    """
    checks.choice("normaliser", normaliser, NORMALISERS)
    seen = causal_mask(q.shape[-2])
    found = features(q, places, turn, base) @ features(k, places, turn, base).mT
    found = found * seen
    if normaliser == "none":
        return found
    over = found
    if normaliser == "still":
        over = (feature(q) @ feature(k).mT) * seen
    return found / over.sum(-1, keepdim=True)


def linear_attention(
    q: Vectors,
    k: Vectors,
    v: Float[Tensor, "*heads seq width"],
    places: Positions,
    *,
    base: float = 10000.0,
) -> Float[Tensor, "*heads seq width"]:
    """Compute RoFormer's linear attention as a recurrence.

    Features are rotated after φ, and the output is normalised by the unrotated products.

    However long the sequence is, only two sums are kept: S (dim, width), the sum of R_n φ(k_n) v_n^T, and z (dim,), the
    sum of φ(k_n). Raises ``ValueError`` unless q, k and v have the same number of rows.
    """
    _check_of_one_text(q, k, v)
    turned_q, turned_k = (features(x, places, base=base) for x in (q, k))
    still_q, still_k = feature(q), feature(k)
    S = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype)
    z = torch.zeros_like(k[..., 0, :])
    found = []
    for n in range(q.shape[-2]):
        S = S + turned_k[..., n, :, None] * v[..., n, None, :]
        z = z + still_k[..., n, :]
        over = (still_q[..., n, :] * z).sum(-1, keepdim=True)
        found.append((turned_q[..., n, None, :] @ S)[..., 0, :] / over)
    return torch.stack(found, -2)


def turning_state(
    q: Vectors, k: Vectors, v: Vectors, step: Float[Tensor, "dim dim"]
) -> Vectors:
    """Compute Σ_{n ≤ m} (q_m·k_n)

    R_{n−m} v_n as a recurrence with a rotating state: S_m = S_{m−1} R_1 + k_m v_m^T. Each v_n is a row.

    ``step`` (dim, dim) is R_1. Multiplying a row v by it on the right gives R_{−1} v, so each new token rotates every
    value back by one step. In linear attention, this is the same as rotating the values by RoPE and then rotating the
    output back. Raises ``ValueError`` unless q, k and v have the same number of rows.
    """
    _check_of_one_text(q, k, v)
    S = torch.zeros(*k.shape[:-2], k.shape[-1], v.shape[-1], dtype=v.dtype)
    found = []
    for n in range(q.shape[-2]):
        S = S @ step + k[..., n, :, None] * v[..., n, None, :]
        found.append((q[..., n, None, :] @ S)[..., 0, :])
    return torch.stack(found, -2)


def _check_of_one_text(q: Tensor, k: Tensor, v: Tensor) -> None:
    for name, x in (("k", k), ("v", v)):
        if x.shape[:-1] != q.shape[:-1]:
            raise ValueError(
                f"{name} must have as many rows as q, {tuple(q.shape[:-1])}, got {tuple(x.shape[:-1])}"
            )
