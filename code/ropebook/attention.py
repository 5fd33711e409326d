r"""Scaled dot-product attention: the functions of chapter *Attention*, and a module to use.

Tensors are (batch, heads, seq, head_dim), as ``torch.nn.functional.scaled_dot_product_attention`` takes them. A boolean
mask says **True where a query may attend to a key**, as that function has it; ``torch.nn.MultiheadAttention`` has it
the other way round.

Half types (float16, bfloat16) are computed in float32 and only the result is cast down.

Arguments are checked: ``TypeError`` for one of the wrong kind, ``ValueError`` for one out of range or of a shape that
does not fit; the message names the argument, what is allowed and what came.

Source: Vaswani et al. 2017, *Attention Is All You Need*, section 3.2 and equation (1). Heads that share keys and
values: Shazeer 2019, *Fast Transformer Decoding* (one key head for all), and Ainslie et al. 2023, *GQA* (groups).
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from ropebook import checks

HALF_TYPES = (torch.float16, torch.bfloat16)


def scaled_dot_product_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
    return_weights: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    r"""softmax(q kᵀ · scale + mask) v: for every query a mean of the values, weighted by how well the keys fit.

    Shapes: ``q`` (…, Hq, Tq, d), ``k`` (…, Hkv, Tk, d), ``v`` (…, Hkv, Tk, dv); the result is (…, Hq, Tq, dv). Without
    heads, (Tq, d), (Tk, d) and (Tk, dv) do. ``Hq`` is a multiple of ``Hkv``: query head h reads key head
    h // (Hq / Hkv), so Hkv = 1 is multi-query attention and 1 < Hkv < Hq is grouped-query attention.

    ``mask``, ``is_causal`` and ``scale`` are those of :func:`attention_weights`. With ``return_weights`` the result is
    the pair (output, weights). The output has ``q``'s dtype; a query that may attend to nothing gets zeros.

    >>> q = torch.tensor([[1.0, 0.0]])
    >>> k = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    >>> v = torch.tensor([[10.0], [20.0]])
    >>> scaled_dot_product_attention(q, k, v, scale=0.0)  # no key is preferred: the plain mean
    tensor([[15.]])
    """
    _check_values(q, k, v)
    weights = attention_weights(q, k, mask, is_causal=is_causal, scale=scale)
    if q.dim() > 2:
        v = repeat_heads(v, q.shape[-3])
    out = (weights @ v.to(weights.dtype)).to(q.dtype)
    return (out, weights) if return_weights else out


def attention_weights(
    q: Tensor,
    k: Tensor,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    r"""softmax(q kᵀ · scale + mask): how much each query takes from each key; (…, Hq, Tq, Tk).

    Each row is ≥ 0 and sums to 1, except the row of a query that may attend to nothing: that row is all zeros. (The
    bare formula divides zero by zero there and gives NaN.) The dtype is the one they are computed in: ``q``'s, but
    float32 for half types.

    ``mask`` is broadcast to (…, Hq, Tq, Tk). Boolean: True = may attend. Floating point: added to the scores after
    scaling, −inf = may not attend. ``is_causal`` applies :func:`causal_mask` as well. ``scale`` is 1/√d if not given.

    >>> x = torch.eye(2)
    >>> attention_weights(x, x, is_causal=True, scale=math.log(3))
    tensor([[1.0000, 0.0000],
            [0.2500, 0.7500]])
    """
    _check_queries_and_keys(q, k)
    scale = (
        1 / math.sqrt(q.shape[-1])
        if scale is None
        else checks.number("scale", scale)
    )
    if q.dim() > 2:
        k = repeat_heads(k, q.shape[-3])
    dtype = torch.float32 if q.dtype in HALF_TYPES else q.dtype
    scores = q.to(dtype) @ k.to(dtype).transpose(-2, -1) * scale
    mask = whole_mask(mask, is_causal, scores.shape, scores.device)
    if mask is None:
        return scores.softmax(-1)
    scores = (
        scores.masked_fill(~mask, -math.inf)
        if mask.dtype == torch.bool
        else scores + mask.to(dtype)
    )
    # Softmax of a row of −inf is 0/0. Such rows get harmless scores before it and zeros after it: zeros after it alone
    # would leave NaN in the gradient.
    closed = (scores == -math.inf).all(-1, keepdim=True)
    return scores.masked_fill(closed, 0.0).softmax(-1).masked_fill(closed, 0.0)


def whole_mask(
    mask: Tensor | None, is_causal: bool, shape: Sequence[int], device: torch.device
) -> Tensor | None:
    """``mask``, checked against the ``shape`` of the scores, and the causal mask in one; None if there is neither."""
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


def repeat_heads(x: Tensor, n_heads: int) -> Tensor:
    """Keys or values (…, Hkv, seq, d) for ``n_heads`` query heads, (…, n_heads, seq, d): each head stands
    n_heads / Hkv times in a row, once for every query head of the group that shares it.

    >>> repeat_heads(torch.tensor([[[1.0]], [[2.0]]]), 6).flatten()
    tensor([1., 1., 1., 2., 2., 2.])
    """
    checks.floating("x", x)
    checks.integer("n_heads", n_heads, minimum=1)
    if x.dim() < 3:
        raise ValueError(
            f"x must be (…, heads, seq, head_dim), got {tuple(x.shape)}"
        )
    if x.shape[-3] == 0 or n_heads % x.shape[-3]:
        raise ValueError(
            f"n_heads must be a multiple of x's number of heads, {x.shape[-3]}, got {n_heads}"
        )
    return x.repeat_interleave(n_heads // x.shape[-3], dim=-3)


def causal_mask(
    q_len: int, k_len: int | None = None, device: torch.device | str | None = None
) -> Tensor:
    """Boolean (q_len, k_len): True where a query may attend, to itself and to everything before it.

    The **last** query stands at the last key, so with cached keys (``k_len`` > ``q_len``) the queries are the newest
    tokens: query t sees keys 0 … t + k_len − q_len. (``is_causal=True`` of torch's function puts the *first* query at
    the first key instead; for ``k_len`` = ``q_len``, the default, there is no difference.) ``k_len`` < ``q_len`` would
    leave queries with nothing to see and is refused.

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
    """Boolean (batch, 1, 1, max_len): True for the first ``lengths[b]`` keys of sequence b, False for its padding.

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


def masked_scores(
    scores: Tensor, mask: Tensor, fill: float, *, form: str = "replace"
) -> Tensor:
    """Scores masked with a *number* instead of a mask, the way that many programs do it: here to be compared.

    ``scores`` (…, Tq, Tk), ``mask`` boolean (True = may attend), ``fill`` −inf or a finite number such as −1e9.
    ``form="replace"`` writes ``fill`` over the scores that are masked; ``form="add"`` adds it to them. Computed in the
    scores' own dtype, which is the point: a finite ``fill`` that this dtype cannot hold raises ``ValueError``
    (−1e9 in float16, whose least number is −65504).

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


def score_variance(
    dim: int, samples: int = 10_000, generator: torch.Generator | None = None
) -> float:
    """The variance of q·k, measured over ``samples`` pairs of independent standard normal vectors of length ``dim``.

    In theory it is ``dim``: a sum of ``dim`` independent products, each of variance 1. The sample variance has itself a
    relative standard deviation of about √((2 + 6/dim) / samples). Computed in float64 on the CPU, whose
    random numbers do not depend on the accelerator. Needs 24·dim·samples bytes at its peak.

    >>> 60 < score_variance(64, 100_000, torch.Generator().manual_seed(0)) < 68
    True
    """
    checks.integer("dim", dim, minimum=1)
    checks.integer("samples", samples, minimum=2)
    generator = _cpu_generator(generator)
    q, k = torch.randn(2, samples, dim, dtype=torch.float64, generator=generator)
    return (q * k).sum(-1).var().item()


def score_rows(
    dim: int,
    n_keys: int,
    rows: int = 1000,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Scores q·k, not divided by anything, of ``rows`` random queries, each with ``n_keys`` keys of its own.

    Queries and keys are independent standard normal vectors of length ``dim``. Given the query, its scores are then
    independent normal numbers of standard deviation |q|; those are drawn, and no keys. Shape (rows, n_keys), float64, on
    the CPU.

    >>> score_rows(64, 4096, 10, torch.Generator().manual_seed(0)).shape
    torch.Size([10, 4096])
    """
    checks.integer("dim", dim, minimum=1)
    checks.integer("n_keys", n_keys, minimum=1)
    checks.integer("rows", rows, minimum=1)
    like = {"dtype": torch.float64, "generator": _cpu_generator(generator)}
    lengths = torch.randn(rows, dim, **like).norm(dim=-1, keepdim=True)
    return lengths * torch.randn(rows, n_keys, **like)


def softmax_jacobian(p: Tensor) -> Tensor:
    """∂softmax(z)/∂z at the probabilities ``p`` = softmax(z): diag(p) − p pᵀ; (…, n) in, (…, n, n) out.

    ``p`` must be float32 or float64, ≥ 0, and sum to 1 along the last axis.

    >>> softmax_jacobian(torch.tensor([0.5, 0.5]))
    tensor([[ 0.2500, -0.2500],
            [-0.2500,  0.2500]])
    """
    _check_probabilities(p)
    outer = p.unsqueeze(-1) * p.unsqueeze(-2)
    others = outer - torch.diag_embed(outer.diagonal(dim1=-2, dim2=-1))
    # On the diagonal p(1 − p) is written as the sum of p times every other p: 1 − p loses all its digits as p nears 1,
    # and that is where one looks.
    return torch.diag_embed(others.sum(-1)) - others


def softmax_gradient_norm(p: Tensor) -> Tensor:
    """The Frobenius norm of :func:`softmax_jacobian`: how much of a gradient a softmax lets through; (…, n) to (…).

    With s = Σ p² it is at most √(s(1 − s)), hence at most 1/2 (two entries that share all the weight reach it), and it
    falls to 0 as ``p`` nears one-hot. Computed without the matrix, so that rows of thousands of keys are cheap.

    >>> softmax_gradient_norm(torch.tensor([0.5, 0.5]))
    tensor(0.5000)
    """
    _check_probabilities(p)
    # Column j is p_j times a vector of 1 − p_j and the other p. Beside the largest p that difference loses its digits,
    # so there it is summed up, as in the matrix.
    largest, at = p.max(-1, keepdim=True)
    rest = p.scatter(-1, at, 0.0)
    missing = (1 - p).scatter(-1, at, rest.sum(-1, keepdim=True))
    squares = rest.square().sum(-1, keepdim=True)
    others = (squares - rest.square() + largest.square()).scatter(-1, at, squares)
    return torch.linalg.vector_norm(p * torch.hypot(missing, others.sqrt()), dim=-1)


@dataclasses.dataclass(frozen=True)
class AttentionCost:
    """What one attention layer costs for one sequence; made by :func:`attention_cost`.

    Operations are floating-point additions and multiplications of the matrix products (softmax, which has no product,
    is left out, as is usual). Bytes are 8 bits each.
    """

    projection_flops: int
    score_flops: int
    value_flops: int
    score_bytes: int
    kv_cache_bytes: int

    @property
    def attention_flops(self) -> int:
        """``score_flops + value_flops``: the part that grows with the square of the length."""
        return self.score_flops + self.value_flops

    @property
    def flops(self) -> int:
        """All of them: ``projection_flops + attention_flops``."""
        return self.projection_flops + self.attention_flops


def attention_cost(
    seq_len: int,
    head_dim: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    bytes_per_element: int = 2,
) -> AttentionCost:
    """Count what attention costs for a sequence of T = ``seq_len`` tokens that attends to itself, without a mask.

    With d = ``head_dim``, H = ``n_heads`` and G = ``n_kv_heads`` (default H), a layer H·d wide:

    - ``projection_flops`` = 2·T·(H·d)·(2·H·d + 2·G·d): queries and output, keys and values
    - ``score_flops`` = ``value_flops`` = 2·H·T²·d: q kᵀ, and weights times v
    - ``score_bytes`` = H·T²·``bytes_per_element``: the matrix of scores, if it is written out whole
    - ``kv_cache_bytes`` = 2·G·T·d·``bytes_per_element``: the keys and values kept for the next token

    A product of (a, b) and (b, c) counts 2abc: a multiplication and an addition per step.

    >>> cost = attention_cost(seq_len=4096, head_dim=128, n_heads=32, n_kv_heads=8)
    >>> cost.kv_cache_bytes == 2 * 8 * 4096 * 128 * 2
    True
    """
    checks.integer("seq_len", seq_len, minimum=1)
    checks.integer("head_dim", head_dim, minimum=1)
    checks.integer("bytes_per_element", bytes_per_element, minimum=1)
    n_heads, n_kv_heads = _check_heads(n_heads, n_kv_heads)
    product = 2 * n_heads * seq_len**2 * head_dim
    return AttentionCost(
        projection_flops=2
        * seq_len
        * (n_heads * head_dim)
        * (2 * n_heads * head_dim + 2 * n_kv_heads * head_dim),
        score_flops=product,
        value_flops=product,
        score_bytes=n_heads * seq_len**2 * bytes_per_element,
        kv_cache_bytes=2 * n_kv_heads * seq_len * head_dim * bytes_per_element,
    )


def split_heads(x: Tensor, n_heads: int) -> Tensor:
    """(…, seq, n_heads · head_dim) to (…, n_heads, seq, head_dim): head h takes the h-th run of ``head_dim`` features.

    >>> split_heads(torch.zeros(5, 7, 12), 3).shape
    torch.Size([5, 3, 7, 4])
    """
    checks.floating("x", x)
    checks.integer("n_heads", n_heads, minimum=1)
    if x.dim() < 2 or x.shape[-1] % n_heads:
        raise ValueError(
            f"x must be (…, seq, n_heads · head_dim) with n_heads = {n_heads}, got {tuple(x.shape)}"
        )
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def merge_heads(x: Tensor) -> Tensor:
    """(…, n_heads, seq, head_dim) to (…, seq, n_heads · head_dim): the inverse of :func:`split_heads`.

    >>> merge_heads(torch.zeros(5, 3, 7, 4)).shape
    torch.Size([5, 7, 12])
    """
    checks.floating("x", x)
    if x.dim() < 3:
        raise ValueError(
            f"x must be (…, n_heads, seq, head_dim), got {tuple(x.shape)}"
        )
    return x.transpose(-3, -2).flatten(-2)


class MultiHeadAttention(nn.Module):
    """Self-attention with several heads: project, split into heads, attend in each, merge, project.

    ``dim`` is the width of the model; ``head_dim`` that of a head, by default dim / n_heads, which must then be whole.
    ``n_kv_heads`` (default ``n_heads``, of which it must be a divisor) is the number of heads that keys and values have.
    ``bias`` is for all four projections. ``fused=True`` hands the middle to
    ``torch.nn.functional.scaled_dot_product_attention``, which gives the same numbers faster and without writing the
    scores out; then there are no weights to return.

    Source: Vaswani et al. 2017, section 3.2.2.

    >>> layer = MultiHeadAttention(dim=16, n_heads=4, n_kv_heads=2)
    >>> layer(torch.zeros(1, 5, 16), is_causal=True).shape
    torch.Size([1, 5, 16])
    """

    def __init__(
        self,
        dim: int,
        n_heads: int,
        n_kv_heads: int | None = None,
        *,
        head_dim: int | None = None,
        bias: bool = True,
        fused: bool = False,
        device: torch.device | str | None = None,
        dtype: torch.dtype | None = None,
    ):
        super().__init__()
        self.dim = checks.integer("dim", dim, minimum=1)
        self.n_heads, self.n_kv_heads = _check_heads(n_heads, n_kv_heads)
        if head_dim is None:
            if dim % n_heads:
                raise ValueError(
                    f"dim must be a multiple of n_heads = {n_heads}, got {dim}"
                )
            head_dim = dim // n_heads
        self.head_dim = checks.integer("head_dim", head_dim, minimum=1)
        self.fused = fused
        q_dim, kv_dim = n_heads * head_dim, self.n_kv_heads * head_dim
        like = {"bias": bias, "device": device, "dtype": dtype}
        self.q_proj = nn.Linear(dim, q_dim, **like)
        self.k_proj = nn.Linear(dim, kv_dim, **like)
        self.v_proj = nn.Linear(dim, kv_dim, **like)
        self.out_proj = nn.Linear(q_dim, dim, **like)

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values of ``x``, split into heads: (batch, heads, seq, head_dim) each.

        A subclass that does something to queries and keys before they meet does it here.
        """
        q = split_heads(self.q_proj(x), self.n_heads)
        k = split_heads(self.k_proj(x), self.n_kv_heads)
        v = split_heads(self.v_proj(x), self.n_kv_heads)
        return q, k, v

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
        return_weights: bool = False,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """(batch, seq, dim) to (batch, seq, dim), or with ``return_weights`` the pair (output, weights), the weights
        (batch, n_heads, seq, seq). ``mask`` and ``is_causal`` are those of :func:`attention_weights`."""
        checks.floating("x", x)
        if x.dim() != 3 or x.shape[-1] != self.dim:
            raise ValueError(
                f"x must be (batch, seq, {self.dim}), got {tuple(x.shape)}"
            )
        if self.fused and return_weights:
            raise ValueError(
                "return_weights must be False with fused=True, which never has the weights, got True"
            )
        q, k, v = self.project(x)
        if self.fused:
            return self.out_proj(merge_heads(self._fused(q, k, v, mask, is_causal)))
        heads, weights = scaled_dot_product_attention(
            q, k, v, mask, is_causal=is_causal, return_weights=True
        )
        out = self.out_proj(merge_heads(heads))
        return (out, weights) if return_weights else out

    def _fused(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, is_causal: bool
    ) -> Tensor:
        if mask is not None:  # torch's function takes a mask or is_causal, not both
            mask = whole_mask(
                mask, is_causal, (*q.shape[:-1], k.shape[-2]), q.device
            )
            mask = mask if mask.dtype == torch.bool else mask.to(q.dtype)
            is_causal = False
        grouped = self.n_kv_heads != self.n_heads
        return nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, is_causal=is_causal, enable_gqa=grouped
        )

    @classmethod
    def from_torch(
        cls, other: nn.MultiheadAttention, *, fused: bool = False
    ) -> MultiHeadAttention:
        """The same layer with ``other``'s weights, copied.

        ``other`` must attend with queries, keys and values of one width, without dropout, ``add_bias_kv`` and
        ``add_zero_attn`` (``ValueError`` otherwise). Ours is batch-first whatever ``other`` is.
        """
        if not isinstance(other, nn.MultiheadAttention):
            raise TypeError(
                f"other must be a torch.nn.MultiheadAttention, got {type(other).__name__}"
            )
        if other.in_proj_weight is None:
            widths = f"{other.kdim}, {other.vdim} and {other.embed_dim}"
            raise ValueError(
                f"other must have kdim, vdim and embed_dim equal, got {widths}"
            )
        if other.dropout or other.bias_k is not None or other.add_zero_attn:
            raise ValueError(
                "other must have dropout=0, add_bias_kv=False and add_zero_attn=False, "
                f"got {other.dropout}, {other.bias_k is not None} and {other.add_zero_attn}"
            )
        weight, bias = other.in_proj_weight, other.in_proj_bias
        like = {"device": weight.device, "dtype": weight.dtype}
        layer = cls(
            other.embed_dim,
            other.num_heads,
            bias=bias is not None,
            fused=fused,
            **like,
        )
        with torch.no_grad():
            ours = (layer.q_proj, layer.k_proj, layer.v_proj)
            for linear, rows in zip(ours, weight.chunk(3), strict=True):
                linear.weight.copy_(rows)
            layer.out_proj.weight.copy_(other.out_proj.weight)
            if bias is not None:
                for linear, rows in zip(ours, bias.chunk(3), strict=True):
                    linear.bias.copy_(rows)
                layer.out_proj.bias.copy_(other.out_proj.bias)
        return layer


def _cpu_generator(generator: torch.Generator | None) -> torch.Generator | None:
    if generator is not None and (
        not isinstance(generator, torch.Generator) or generator.device.type != "cpu"
    ):
        raise TypeError(
            f"generator must be a torch.Generator on the CPU or None, got {generator!r}"
        )
    return generator


def _check_heads(n_heads: int, n_kv_heads: int | None) -> tuple[int, int]:
    n_heads = checks.integer("n_heads", n_heads, minimum=1)
    n_kv_heads = (
        n_heads
        if n_kv_heads is None
        else checks.integer("n_kv_heads", n_kv_heads, minimum=1)
    )
    if n_heads % n_kv_heads:
        raise ValueError(
            f"n_kv_heads must divide n_heads = {n_heads}, got {n_kv_heads}"
        )
    return n_heads, n_kv_heads


def _check_queries_and_keys(q: Tensor, k: Tensor) -> None:
    checks.floating("q", q)
    _check_like("k", checks.floating("k", k), q=q)
    if q.dim() < 2 or q.shape[-1] == 0:
        raise ValueError(
            f"q must be (…, heads, seq, head_dim) or (seq, head_dim), got {tuple(q.shape)}"
        )
    if (
        k.dim() != q.dim()
        or k.shape[-1] != q.shape[-1]
        or k.shape[:-3] != q.shape[:-3]
    ):
        raise ValueError(
            f"k must have q's shape but for heads and length, q's being {tuple(q.shape)}, got {tuple(k.shape)}"
        )
    if q.dim() > 2 and (k.shape[-3] == 0 or q.shape[-3] % k.shape[-3]):
        raise ValueError(
            f"k must have a number of heads that divides q's, {q.shape[-3]}, got {k.shape[-3]}"
        )


def _check_values(q: Tensor, k: Tensor, v: Tensor) -> None:
    _check_queries_and_keys(q, k)
    _check_like("v", checks.floating("v", v), q=q)
    if v.shape[:-1] != k.shape[:-1]:
        raise ValueError(
            f"v must have k's shape but for the last axis, {tuple(k.shape)}, got {tuple(v.shape)}"
        )


def _check_like(name: str, x: Tensor, q: Tensor) -> None:
    if x.dtype != q.dtype:
        raise TypeError(f"{name} must have q's dtype, {q.dtype}, got {x.dtype}")
    if x.device != q.device:
        raise ValueError(
            f"{name} must be on q's device, {q.device}, got {x.device}"
        )


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


def _check_probabilities(p: Tensor) -> None:
    if checks.floating("p", p).dtype in HALF_TYPES:
        raise TypeError(f"p must be float32 or float64, got {p.dtype}")
    if p.dim() == 0 or p.shape[-1] == 0:
        raise ValueError(f"p must be (…, n) with n >= 1, got {tuple(p.shape)}")
    if not (
        (p >= 0).all()
        and ((p.sum(-1) - 1).abs() <= 64 * torch.finfo(p.dtype).eps).all()
    ):
        raise ValueError(
            f"p must be probabilities, >= 0 and summing to 1 along the last axis, got {p!r}"
        )
