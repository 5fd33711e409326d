"""Helpers shared by the tests of `ropebook.attention`: comparisons in units of the rounding error, and a reference
implementation with loops.

One unit of tolerance is the dtype's machine epsilon times the largest magnitude in the reference. We allow 64 units in
float64 and float32, where the order of summation may differ, and 4 units in bfloat16 and float16, where only the final
rounding matters. A complete layer also rounds after every projection; see ``LAYER_UNITS``.
"""

import math

import pytest
import torch
from hypothesis import strategies as st

UNITS = {torch.float64: 64, torch.float32: 64, torch.bfloat16: 4, torch.float16: 4}
LAYER_UNITS = {torch.float64: 64, torch.float32: 64, torch.bfloat16: 8}
DTYPES = [torch.float64, torch.float32, torch.bfloat16]
HALVES = [torch.bfloat16, torch.float16]
INF = math.inf

lengths = st.integers(1, 9)


def distance(ours, theirs):
    """Return the largest difference, in units of machine epsilon times the largest magnitude in ``theirs``."""
    assert ours.shape == theirs.shape
    assert not ours.isnan().any()
    assert not theirs.isnan().any()
    scale = max(theirs.abs().max().item(), 1e-30) * torch.finfo(theirs.dtype).eps
    return (ours.double() - theirs.double()).abs().max().item() / scale


def assert_close(ours, theirs, units=None):
    assert ours.dtype == theirs.dtype
    assert distance(ours, theirs) <= (UNITS[theirs.dtype] if units is None else units)


def draw(*shape, seed=0, dtype=torch.float64, device="cpu"):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(device, dtype)


def needs(device, dtype):
    if device.type == "mps" and dtype == torch.float64:
        pytest.skip("mps has no float64")


def with_gradients(function, *tensors):
    """Return a function's value, and the gradients of the inner product of that value with a fixed random tensor."""
    leaves = [x.detach().clone().requires_grad_() for x in tensors]
    out = function(*leaves)
    out.backward(draw(*out.shape, seed=99, dtype=out.dtype, device=out.device))
    return [out.detach(), *(x.grad for x in leaves)]


def by_hand(q, k, v, allowed=lambda t, s: True, scale=None):
    """Compute one attention head straight from its definition, with lists and loops."""
    scale = 1 / math.sqrt(len(q[0])) if scale is None else scale
    rows = []
    for t, query in enumerate(q):
        keys = [s for s in range(len(k)) if allowed(t, s)]
        powers = {s: math.exp(scale * sum(a * b for a, b in zip(query, k[s], strict=True))) for s in keys}
        rows.append([sum(powers[s] / sum(powers.values()) * v[s][j] for s in keys) for j in range(len(v[0]))])
    return torch.tensor(rows, dtype=torch.float64)
