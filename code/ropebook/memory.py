"""Find out whether entries of strided tensors share memory. If they do, an in-place rotation would rotate them more
than once.

Entry (i, j, …) of a tensor with strides s₁, s₂, … is at the address start + i·s₁ + j·s₂ + … Two entries share memory if
these sums are equal for both. This depends only on the strides and sizes, so no values are read.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

Terms = list[tuple[int, int, int]]  # (stride, smallest factor, largest factor)


def repeats(x: Tensor) -> bool:
    """Return whether two entries of x share memory, as in an expanded view.

    Inside ``torch.compile``, only expanded axes are detected, because sizes are symbolic there and cannot be sorted.

    >>> repeats(torch.zeros(3, 4).T), repeats(torch.zeros(1, 4).expand(3, 4))
    (False, True)
    """
    if x.is_contiguous():  # this is also true of an empty tensor
        return False
    axes = [(s, n - 1) for s, n in zip(x.stride(), x.shape, strict=True) if n > 1]
    if any(step == 0 for step, _ in axes):
        return True
    if torch.compiler.is_compiling():
        return False
    axes.sort()
    reach = 0
    for step, most in axes:
        if step <= reach:
            break
        reach += step * most
    else:  # Each stride exceeds the distance that all smaller strides can span together, as in slices and transposes.
        return False
    # Consider the largest stride along which two entries differ. Along it, their indices differ by at least 1; along
    # the smaller strides, they may differ by any amount.
    return any(
        _reach([(step, 1, most), *((s, -n, n) for s, n in reversed(axes[:at]))], 0)
        for at, (step, most) in enumerate(axes)
    )


def check_writable(name: str, x: Tensor) -> None:
    """Raise ``ValueError`` if entries of x share memory (see `repeats`), because an in-place operation would change the
    shared memory more than once."""
    if repeats(x):
        raise ValueError(
            f"{name} must hold each number once to be rotated in place, got shape {tuple(x.shape)} with strides "
            f"{x.stride()}, where entries share memory; rotate it before it is expanded, or a copy of it"
        )


def check_apart(q: Tensor, k: Tensor) -> None:
    """Raise ``ValueError`` if q and k share memory, because in-place operations on both would change the shared memory
    twice. Inside ``torch.compile``, where there are no addresses, this detects only a tensor that is passed as both q
    and k.
    """
    compiling = torch.compiler.is_compiling()
    if q is k or (not compiling and share(q, k)):
        raise ValueError(
            "q and k must not share memory to be rotated in place, got views that have numbers in common; "
            "rotate a copy of one of them"
        )


def share(x: Tensor, y: Tensor) -> bool:
    """Return whether some entry of x overlaps an entry of y in memory. Two slices of the same tensor may or may not
    overlap.

    >>> both = torch.zeros(4, 6)
    >>> share(both[:, :3], both[:, 3:]), share(both[:, :3], both[:, 2:])
    (False, True)
    """
    if x.device != y.device or x.is_meta or x.numel() == 0 or y.numel() == 0:
        return False
    # We count in bytes. The tensors overlap if a byte of some entry of x has the same address as a byte of some entry
    # of y.
    limits = {1: [1 - y.element_size(), x.element_size() - 1]}
    for tensor, side in ((y, 0), (x, 1)):
        for stride, size in zip(tensor.stride(), tensor.shape, strict=True):
            if stride and size > 1:
                limit = limits.setdefault(stride * tensor.element_size(), [0, 0])
                limit[side] += (size - 1) * (1 if side else -1)
    terms = sorted(((step, *limit) for step, limit in limits.items()), reverse=True)
    return _reach(terms, y.data_ptr() - x.data_ptr())


def _reach(terms: Terms, target: int) -> bool:
    """Return whether Σ factor·stride = target for some integer factors within their limits. ``terms`` must be sorted
    from the largest stride to the smallest."""
    if not terms:
        return target == 0
    if target % math.gcd(*(step for step, _, _ in terms)):
        return False
    (step, least, most), *rest = terms
    low = sum(s * lo for s, lo, _ in rest)
    high = sum(s * hi for s, _, hi in rest)
    first = max(least, -((high - target) // step))
    last = min(most, (target - low) // step)
    return any(
        _reach(rest, target - factor * step) for factor in range(first, last + 1)
    )
