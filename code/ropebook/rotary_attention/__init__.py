"""Multi-head attention with RoPE, and what is built on it.

- `layer`: the attention, and what its output reveals about positions.
- `cache`: the keys and values of all tokens so far.
- `packing`: several texts in one row, and padding.
- `llama`: a whole language model.

Tensors are (batch, heads, seq, head_dim), masks are boolean with **True where a query may attend to a key**, as in
chapter *Attention*. Positions are integers counted from 0: of shape (seq,) if all rows share them, or (batch,
seq).
"""

from ropebook.rotary_attention.cache import KVCache
from ropebook.rotary_attention.layer import (
    RotaryAttention,
    RotatedValueAttention,
    shift_change,
)
from ropebook.rotary_attention.llama import LlamaLayer, LlamaModel, SwiGLU
from ropebook.rotary_attention.packing import (
    left_padded,
    packed_mask,
    packed_positions,
)

__all__ = [
    "KVCache",
    "LlamaLayer",
    "LlamaModel",
    "RotaryAttention",
    "RotatedValueAttention",
    "SwiGLU",
    "left_padded",
    "packed_mask",
    "packed_positions",
    "shift_change",
]
