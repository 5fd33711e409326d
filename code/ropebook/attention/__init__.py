"""Scaled dot-product attention: the functions for the *Attention* chapter, and a layer for your own models.

- `dot_product`: the weights, and the weighted mean of the values.
- `masks`: causal masks, padding masks, and the finite numbers that other programs use for masking.
- `scale`: why scores are divided by √d.
- `heads`, `layer`: attention with several heads in parallel.
- `cost`: operations, bytes and time.
- `pictures`: the chapter's figures.

Tensors have shape (batch, heads, seq, head_dim), as in ``torch.nn.functional.scaled_dot_product_attention``. Arguments
are checked: a wrong type raises ``TypeError``, and a value out of range or a shape that does not fit raises
``ValueError``. The message names the argument and says what is allowed and what was passed.
"""

from ropebook.attention.cost import (
    AttentionCost,
    attention_cost,
    kept_bytes,
    milliseconds,
)
from ropebook.attention.dot_product import (
    HALF_TYPES,
    attention_weights,
    scaled_dot_product_attention,
)
from ropebook.attention.heads import merge_heads, repeat_heads, split_heads
from ropebook.attention.layer import MultiHeadAttention
from ropebook.attention.masks import (
    causal_mask,
    hidden_row,
    masked_scores,
    padding_mask,
    spacing,
    whole_mask,
)
from ropebook.attention.scale import (
    Rows,
    rows_of,
    score_rows,
    score_variance,
    softmax_gradient_norm,
    softmax_jacobian,
)

__all__ = [
    "HALF_TYPES",
    "AttentionCost",
    "MultiHeadAttention",
    "Rows",
    "attention_cost",
    "attention_weights",
    "causal_mask",
    "hidden_row",
    "kept_bytes",
    "masked_scores",
    "merge_heads",
    "milliseconds",
    "padding_mask",
    "repeat_heads",
    "rows_of",
    "scaled_dot_product_attention",
    "score_rows",
    "score_variance",
    "softmax_gradient_norm",
    "softmax_jacobian",
    "spacing",
    "split_heads",
    "whole_mask",
]
