"""Multi-head attention with RoPE, and a language model that uses it.

- `layer`: the attention layer, and a test of whether its output depends on absolute positions.
- `cache`: the keys and values of all tokens so far.
- `packing`: several sequences in one row, and padding.
- `llama`: a complete language model.

Tensors are (batch, heads, seq, head_dim). Masks are boolean, with **True where a query may attend to a key**, as in the
*Attention* chapter. Positions are integers counted from 0. Their shape is (seq,) if all rows have the same positions,
otherwise (batch, seq).
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
