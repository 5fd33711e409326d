"""Reference rotations, and Hypothesis strategies for testing the different forms of the rotation."""

from collections.abc import Callable

import torch
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as interleaved_by_transformers
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as half_by_transformers

from ropebook import efficient as E
from ropebook import sinusoidal
from tests.helpers import largest, random

LAYOUTS = ["interleaved", "half"]
EAGER = ["dense", "blocks", "sparse", "by_pairs", "complex", "eager", "in_place"]
layouts = st.sampled_from(LAYOUTS)
bases = st.sampled_from([1.0, 100.0, 10000.0, 5e5])


def tables(positions, dim, base=10000.0, dtype=torch.float64):
    return E.cos_sin(torch.as_tensor(positions), sinusoidal.inv_freq(dim, base), dtype)


def exact(x, positions, layout, base=10000.0):
    """Rotate every pair as z e^{imθ}, in double-precision complex numbers. ``x`` is (B, H, T, d), and positions are
    (T,) or (B, T)."""
    x = x.double()
    dim = x.shape[-1]
    x1, x2 = (x[..., 0::2], x[..., 1::2]) if layout == "interleaved" else (x[..., : dim // 2], x[..., dim // 2 :])
    theta = torch.tensor([base ** (-2 * i / dim) for i in range(dim // 2)], dtype=torch.float64)
    angles = torch.as_tensor(positions).double()[..., None] * theta
    angles = angles[:, None] if angles.ndim == 3 else angles
    y = torch.complex(x1, x2) * torch.polar(torch.ones_like(angles), angles)
    result = torch.empty_like(x)
    if layout == "interleaved":
        result[..., 0::2], result[..., 1::2] = y.real, y.imag
    else:
        result[..., : dim // 2], result[..., dim // 2 :] = y.real, y.imag
    return result


def from_onnx(rotate: Callable, layout: str) -> float:
    """Return the largest difference between rotate(x, positions, layout=…) and the ONNX operator, whose results are
    rounded to float32."""
    x, places = random(2, 3, 50, 16, dtype=torch.float32), torch.arange(1000, 1050)
    angles = sinusoidal.angles(places, 16)
    cos, sin = (table.float().expand(2, -1, -1) for table in (angles.cos(), angles.sin()))
    theirs = torch.onnx.ops.rotary_embedding(x, cos, sin, interleaved=layout == "interleaved")
    return largest(rotate(x, places, layout=layout) - theirs)


def from_transformers(rotate: Callable, layout: str) -> float:
    """Return the largest difference between rotate(x, positions, layout=…) and the rotation of Llama or GPT-J.

    GPT-J's rotation expects its axes in the order batch, seq, heads.
    """
    x, places = random(2, 3, 50, 16), torch.arange(1000, 1050)
    angles = sinusoidal.angles(places, 16)[None]
    if layout == "half":
        doubled = torch.cat((angles, angles), -1)
        theirs, _ = half_by_transformers(x, x, doubled.cos(), doubled.sin())
    else:
        theirs = interleaved_by_transformers(x.transpose(1, 2), angles.sin(), angles.cos()).transpose(1, 2)
    return largest(rotate(x, places, layout=layout) - theirs)


def largest_allocation(function):
    """Return the number of entries in the largest new tensor that any single operation allocated while the function
    ran."""

    class Watch(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            result = func(*args, **(kwargs or {}))
            known.update(t.untyped_storage().data_ptr() for t in tree_leaves(args) if isinstance(t, torch.Tensor))
            for t in tree_leaves(result):
                if isinstance(t, torch.Tensor) and t.untyped_storage().data_ptr() not in known:
                    made.append(t.numel())
            return result

    known, made = set(), [0]
    with Watch():
        function()
    return max(made)


def qk(batch=2, tokens=5, dim=8, dtype=torch.float64, seed=0):
    return random(batch, 4, tokens, dim, seed=seed, dtype=dtype), random(
        batch, 2, tokens, dim, seed=seed + 1, dtype=dtype
    )
