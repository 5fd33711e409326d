"""Rotary position embedding (RoPE) in a single file that you can copy. It needs only torch 2.0 or newer.

It comes from the book "RoPE, Turn by Turn", which derives RoPE and tests this file
against transformers and against the book's own package.

    rope = RoPE(dim=128, base=500000.0, layout="half", scaling=llama3)
    q, k = rope(q, k)                         # (batch, heads, seq, dim) each
    q, k = rope(q, k, offset=cached)          # after `cached` tokens in a cache
    q, k = rope(q, k, positions=positions)    # (seq,) or (batch, seq): packed sequences, left padding

layout: "half" pairs entries i and i + dim/2 (Llama in transformers, GPT-NeoX, Qwen, Gemma, Mistral); "interleaved"
pairs 2i and 2i + 1 (the paper, GPT-J, Meta's own Llama). The wrong one gives nonsense, without an error.
"""

import math

import torch


def llama3(theta, base, factor=8.0, trained=8192, low=1.0, high=4.0):
    """As in Llama 3.1: keep pairs with at least ``high`` turns in training, slow those below ``low`` by ``factor``."""
    turns = trained * theta / (2 * math.pi)
    kept = ((turns - low) / (high - low)).clamp(0, 1)
    return theta * (kept + (1 - kept) / factor), 1.0


def yarn(theta, base, factor, trained, slow=1.0, fast=32.0):
    """Scale as in transformers' YaRN. The ramp runs from ``fast`` down to ``slow`` turns in training."""
    pairs = len(theta)

    def pair(turns):
        return pairs * math.log(trained / (2 * math.pi * turns)) / math.log(base)

    first = max(math.floor(pair(fast)), 0)
    last = min(math.ceil(pair(slow)), 2 * pairs - 1)
    place = torch.arange(pairs).to(theta) - first
    slowed = (place / max(last - first, 0.001)).clamp(0, 1)
    attention = 0.1 * math.log(factor) + 1 if factor > 1 else 1.0
    return theta * (1 - slowed + slowed / factor), attention


_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)
_PLACES = (*_INTEGERS, torch.float32, torch.float64)
"""The dtypes allowed for positions. bfloat16 would round 257 to 256, and float16 would round 2049 to 2048."""


class RoPE(torch.nn.Module):
    """``scaling`` is None, `llama3`, or a similar function: ``functools.partial(yarn, factor=4.0, trained=8192)``."""

    def __init__(self, dim, base=10000.0, *, layout, scaling=None):
        super().__init__()
        if dim < 2 or dim % 2 or layout not in ("half", "interleaved"):
            raise ValueError(
                f"dim must be even and layout 'half' or 'interleaved', got {dim} and {layout!r}"
            )
        if not 1 <= base < math.inf:
            raise ValueError(f"base must be a finite number >= 1, got {base}")
        self.layout, self.factor = layout, 1.0
        # float64 and not a buffer, so casting the model to half precision does not change θ
        with torch.device("cpu"):  # also works in a model built under "meta"
            exponents = torch.arange(0, dim, 2, dtype=torch.float64) / dim
            self.theta = base**-exponents
            if scaling is not None:
                self.theta, self.factor = scaling(self.theta, base)

    def forward(self, q, k, positions=None, offset=0):
        dim, (batch, *_, seq, _) = 2 * len(self.theta), q.shape
        for name, x in (("q", q), ("k", k)):
            if not x.is_floating_point():
                raise TypeError(f"{name} must be floating-point, got {x.dtype}")
            if x.shape[-1] != dim:
                raise ValueError(f"{name} must be {dim} wide, got {x.shape[-1]}")
            if (x.shape[0], x.shape[-2]) != (batch, seq):
                raise ValueError(
                    f"{name} must have q's batch and seq, {batch} and {seq}, got shape {tuple(x.shape)}"
                )
        if positions is None:
            positions = torch.arange(offset, offset + seq, device=q.device)
        elif offset or positions.dtype not in _PLACES:
            raise ValueError(
                f"positions must be integers or float32, without offset, got {positions.dtype}, {offset}"
            )
        elif positions.shape not in ((seq,), (1, seq), (batch, seq)):
            raise ValueError(
                f"positions must have shape ({seq},) or ({batch}, {seq}), got {tuple(positions.shape)}"
            )
        places = positions.to(q.device)[..., None].double()
        angles = places * self.theta.to(q.device)
        if angles.ndim == 3:  # (batch, seq, pairs): the same for all heads
            angles = angles[:, None]
        wide = torch.promote_types(q.dtype, torch.float32)
        cos = (angles.cos() * self.factor).to(wide)
        sin = (angles.sin() * self.factor).to(wide)
        return self.rotate(q, cos, sin), self.rotate(k, cos, sin)

    def rotate(self, x, cos, sin):
        axis, sizes = (-2, (2, -1)) if self.layout == "half" else (-1, (-1, 2))
        a, b = x.unflatten(-1, sizes).unbind(axis)
        turned = torch.stack((a * cos - b * sin, b * cos + a * sin), axis)
        return turned.flatten(-2).to(x.dtype)
