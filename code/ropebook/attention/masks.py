"""Masks, which decide which scores count.

A boolean mask is **True where a query may attend to a key**, as in
``torch.nn.functional.scaled_dot_product_attention``. In ``torch.nn.MultiheadAttention``, True means the opposite.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from ropebook import checks


def causal_mask(
    q_len: int, k_len: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Return a boolean mask (q_len, k_len) that lets each query attend to its own token and to all earlier ones.

    The **last** query is at the position of the last key. With cached keys (``k_len`` > ``q_len``), the queries are
    therefore the newest tokens: query t sees keys 0 … t + k_len − q_len. (With ``is_causal=True``, torch's function
    aligns the *first* query with the first key instead; for ``k_len`` = ``q_len``, the default, there is no
    difference.) A ``k_len`` smaller than ``q_len`` is rejected, because it would leave some queries without any key.

    >>> causal_mask(2, 3).int()
    tensor([[1, 1, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    checks.integer("q_len", q_len, minimum=1)
    k_len = (
        q_len if k_len is None else checks.integer("k_len", k_len, minimum=q_len)
    )
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(
        k_len - q_len
    )


def padding_mask(
    lengths: Sequence[int] | Tensor,
    max_len: int,
    device: torch.device | str | None = None,
) -> Tensor:
    """Return a boolean mask (batch, 1, 1, max_len) that is False for padding.

    It is True for the first ``lengths[b]`` keys of sequence b.

    The two axes of size 1 are broadcast over heads and queries. ``lengths``: integers from 0 to ``max_len``.

    >>> padding_mask([1, 3], 3).int().squeeze()
    tensor([[1, 0, 0],
            [1, 1, 1]], dtype=torch.int32)
    """
    checks.integer("max_len", max_len, minimum=1)
    values = lengths.tolist() if isinstance(lengths, Tensor) else lengths
    if not isinstance(values, Sequence) or isinstance(values, str):
        raise TypeError(f"lengths must be a sequence of integers, got {lengths!r}")
    values = [
        checks.integer(f"lengths[{i}]", n, minimum=0, maximum=max_len)
        for i, n in enumerate(values)
    ]
    ends = torch.tensor(values, dtype=torch.long, device=device)
    return torch.arange(max_len, device=device) < ends[:, None, None, None]


def whole_mask(
    mask: Tensor | None, is_causal: bool, shape: Sequence[int], device: torch.device
) -> Tensor | None:
    """Check ``mask`` against the ``shape`` of the scores, and combine it with the causal mask if ``is_causal``.

    Returns None if there is no mask at all.
    """
    if mask is not None:
        _check_mask(mask, shape, device)
    if not is_causal:
        return mask
    causal = causal_mask(shape[-2], shape[-1], device=device)
    if mask is None:
        return causal
    return (
        mask & causal
        if mask.dtype == torch.bool
        else mask.masked_fill(~causal, -math.inf)
    )


def masked_scores(
    scores: Tensor, mask: Tensor, fill: float, *, form: str = "replace"
) -> Tensor:
    """Mask scores by replacing them with a *number* or by adding a number to them, as many programs do.

    Used only for comparison.

    ``scores``: (…, Tq, Tk). ``mask``: boolean, True = may attend. ``fill``: −inf or a finite number such as −1e9.
    ``form="replace"`` replaces the masked scores with ``fill``; ``form="add"`` adds ``fill`` to them. The arithmetic is
    done in the scores' own dtype, in order to show the effect of that dtype. A finite ``fill`` that the dtype cannot
    represent raises ``ValueError``. An example is −1e9 in float16, whose lowest number is −65,504.

    >>> masked_scores(torch.tensor([1.0, 2.0]), torch.tensor([True, False]), -1e9)
    tensor([ 1.0000e+00, -1.0000e+09])
    """
    checks.floating("scores", scores)
    _check_mask(mask, scores.shape, scores.device)
    if mask.dtype != torch.bool:
        raise TypeError(f"mask must be a boolean tensor, got dtype {mask.dtype}")
    checks.choice("form", form, ("replace", "add"))
    if fill != -math.inf:
        limits = torch.finfo(scores.dtype)
        fill = checks.number("fill", fill, minimum=limits.min, maximum=limits.max)
    return (
        scores.masked_fill(~mask, fill)
        if form == "replace"
        else torch.where(mask, scores, scores + fill)
    )


def hidden_row(
    fill: float, dtype: torch.dtype, *, form: str = "replace"
) -> Tensor | None:
    """Return the weights for the scores 1, 2, 3 in ``dtype`` when all are masked with ``fill`` (:func:`masked_scores`).

    The correct weights would all be zero. The result is None if ``dtype`` cannot represent ``fill``.

    >>> hidden_row(-1e9, torch.float32)
    tensor([0.3333, 0.3333, 0.3333])
    """
    scores = torch.tensor([1.0, 2.0, 3.0], dtype=dtype)
    if fill != -math.inf and fill < torch.finfo(dtype).min:
        return None
    nothing = torch.zeros(3, dtype=torch.bool)
    return masked_scores(scores, nothing, fill, form=form).softmax(-1)


def spacing(x: float, dtype: torch.dtype) -> float:
    """Return the gap between neighbouring numbers of ``dtype`` at ``x``.

    Adding less than half of this gap leaves x unchanged.

    >>> spacing(-8103.0, torch.bfloat16)
    32.0
    """
    limits = torch.finfo(dtype)
    x = abs(checks.number("x", x, minimum=limits.min, maximum=limits.max))
    return 2.0 ** math.floor(math.log2(max(x, limits.tiny))) * limits.eps


def _check_mask(mask: Tensor, shape: Sequence[int], device: torch.device) -> None:
    if not isinstance(mask, Tensor) or not (
        mask.dtype == torch.bool or mask.is_floating_point()
    ):
        found = (
            f"dtype {mask.dtype}"
            if isinstance(mask, Tensor)
            else type(mask).__name__
        )
        raise TypeError(
            f"mask must be a tensor, boolean (True = may attend) or floating point (added), got {found}"
        )
    if mask.device != device:
        raise ValueError(
            f"mask must be on the scores' device, {device}, got {mask.device}"
        )
    sizes = zip(reversed(mask.shape), reversed(shape), strict=False)
    if mask.dim() > len(shape) or any(
        have not in (1, want) for have, want in sizes
    ):
        raise ValueError(
            f"mask must broadcast to the scores' shape, {tuple(shape)}, got {tuple(mask.shape)}"
        )
