"""Helpers for the numerical checks: pseudorandom vectors, the error of a result, and a counter for the operations that
torch runs."""

from __future__ import annotations

import types

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


def random(*shape: int, seed: int = 0) -> torch.Tensor:
    """Draw normally distributed numbers, float64. The same arguments always give the same numbers."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=generator, dtype=torch.float64)


def off(found: torch.Tensor, expected: torch.Tensor | list | float) -> float:
    """Return the largest difference between two real tensors, in float64. It is NaN if either of them contains NaN.

    ``expected`` must have the same shape as ``found``, or be a single number to compare with all entries. Raises
    ``ValueError`` otherwise.

    >>> off(torch.tensor([1.0, 2.5]), [1, 2])
    0.5
    """
    expected = torch.as_tensor(expected, dtype=torch.float64)
    if expected.ndim and found.shape != expected.shape:
        raise ValueError(
            f"found must have the shape {tuple(expected.shape)}, got {tuple(found.shape)}"
        )
    return (found.detach().double() - expected).abs().max().item()


class Count(TorchDispatchMode):
    """Context manager that counts operations, and numbers read or written, in every step that torch runs.

    A tensor of at most ``table`` numbers is assumed to contain cosines and sines. A step that works only on such
    tensors is assumed to build the table, and is not counted. Views are not counted either, because they move no data.

    >>> x, cos = torch.ones(100, 4), torch.ones(4)
    >>> with Count(table=4) as count:
    ...     _ = x * cos + x
    >>> count.flops, count.data, count.tables
    (800, 2000, 4)
    """

    EACH = types.MappingProxyType(
        {
            "mul": 1,
            "mul_": 1,
            "add": 1,
            "sub": 1,
            "neg": 1,
            "addcmul": 2,
            "addcmul_": 2,
        }
    )

    def __init__(self, table: int) -> None:
        super().__init__()
        self.table, self.flops, self.data, self.tables = table, 0, 0, 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        returns = func._schema.returns
        if any(one.alias_info and not one.alias_info.is_write for one in returns):
            return result
        name = func._schema.name.removeprefix("aten::")
        read, written = (
            [one for one in tree_leaves(tree) if isinstance(one, torch.Tensor)]
            for tree in ((args, kwargs), result)
        )
        if all(one.numel() <= self.table for one in read):
            return result
        for one in read + written:
            size = one.numel() * (2 if one.is_complex() else 1)
            if one.numel() <= self.table:
                self.tables += size
            else:
                self.data += size
        if name == "bmm":
            self.flops += 2 * read[0].numel() * read[1].shape[-1]
        else:
            each = self.EACH.get(name, 0) * (6 if written[0].is_complex() else 1)
            self.flops += each * written[0].numel()
        return result
