"""The cost of attention: operations and bytes from formulas, and memory and time from measurements."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable

import torch
from torch import Tensor

from ropebook import checks
from ropebook.attention.heads import check_heads


@dataclasses.dataclass(frozen=True)
class AttentionCost:
    """The cost of one attention layer for one sequence, as returned by :func:`attention_cost`.

    Operations are the floating-point additions and multiplications in the matrix products. Softmax is not a matrix
    product, so it is not counted, as is customary.
    """

    projection_flops: int
    score_flops: int
    value_flops: int
    score_bytes: int
    kv_cache_bytes: int

    @property
    def attention_flops(self) -> int:
        """The operations that grow with the square of the length: ``score_flops + value_flops``."""
        return self.score_flops + self.value_flops

    @property
    def flops(self) -> int:
        """The total number of operations: ``projection_flops + attention_flops``."""
        return self.projection_flops + self.attention_flops


def attention_cost(
    seq_len: int,
    head_dim: int,
    n_heads: int,
    n_kv_heads: int | None = None,
    bytes_per_element: int = 2,
) -> AttentionCost:
    """Count the operations and bytes of unmasked self-attention for a sequence of T = ``seq_len`` tokens.

    The layer is H·d wide, where d = ``head_dim``, H = ``n_heads`` and G = ``n_kv_heads`` (default H):

    - ``projection_flops`` = 2·T·(H·d)·(2·H·d + 2·G·d): queries and output, keys and values
    - ``score_flops`` = ``value_flops`` = 2·H·T²·d: q kᵀ, and weights times v
    - ``score_bytes`` = H·T²·``bytes_per_element``: the score matrix, if it is stored in full
    - ``kv_cache_bytes`` = 2·G·T·d·``bytes_per_element``: the keys and values cached for the next token

    The product of an (a, b) and a (b, c) matrix counts as 2abc operations: a multiplication and an addition per step.

    >>> cost = attention_cost(seq_len=4096, head_dim=128, n_heads=32, n_kv_heads=8)
    >>> cost.kv_cache_bytes == 2 * 8 * 4096 * 128 * 2
    True
    """
    checks.integer("seq_len", seq_len, minimum=1)
    checks.integer("head_dim", head_dim, minimum=1)
    checks.integer("bytes_per_element", bytes_per_element, minimum=1)
    n_heads, n_kv_heads = check_heads(n_heads, n_kv_heads)
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


def kept_bytes(function: Callable, *tensors: Tensor) -> int:
    """Count the bytes that autograd keeps for the backward pass of ``function(*tensors)``.

    Shared memory is counted only once.

    >>> x = torch.ones(1000, requires_grad=True)
    >>> kept_bytes(torch.exp, x)  # its result, which is its derivative
    4000
    """
    kept = {}

    def note(t: Tensor) -> Tensor:
        kept[t.untyped_storage().data_ptr()] = t.untyped_storage().nbytes()
        return t

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        result = function(*tensors)
    del result
    return sum(kept.values())


@torch.no_grad()
def milliseconds(function: Callable, *tensors: Tensor, runs: int = 3) -> float:
    """Run ``function(*tensors)`` several times and return the shortest time, in milliseconds.

    The fastest run is the one least affected by other work on the machine.

    >>> milliseconds(torch.sin, torch.zeros(3)) > 0
    True
    """
    checks.integer("runs", runs, minimum=1)
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        function(*tensors)
        if tensors[0].is_cuda:
            torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return 1000 * min(times)
