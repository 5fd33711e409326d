"""Convert Llama checkpoints between Meta's format and that of transformers: the weight names, and the layout of queries
and keys."""

from __future__ import annotations

import re
from collections.abc import Mapping

from torch import Tensor

from ropebook import checks
from ropebook.efficient.layouts import convert_weight

# Maps Meta's weight names to those of transformers.
_TOP = {
    "tok_embeddings.weight": "model.embed_tokens.weight",
    "norm.weight": "model.norm.weight",
    "output.weight": "lm_head.weight",
}
_IN_LAYER = {
    "attention.wq": "self_attn.q_proj",
    "attention.wk": "self_attn.k_proj",
    "attention.wv": "self_attn.v_proj",
    "attention.wo": "self_attn.o_proj",
    "feed_forward.w1": "mlp.gate_proj",
    "feed_forward.w2": "mlp.down_proj",
    "feed_forward.w3": "mlp.up_proj",
    "attention_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
_TOP_BACK = {theirs: ours for ours, theirs in _TOP.items()}
_IN_LAYER_BACK = {theirs: ours for ours, theirs in _IN_LAYER.items()}
_THEIR_LAYER = re.compile(r"model\.layers\.(\d+)\.(.+)\.(weight|bias)")
_LAYER = re.compile(r"layers\.(\d+)\.(.+)\.(weight|bias)")
# This is recomputed when a model is built, so it is not a weight.
_TABLES = {"rope.freqs"}


def meta_to_transformers(
    state_dict: Mapping[str, Tensor], params: Mapping[str, object]
) -> dict[str, Tensor]:
    """Convert Meta's Llama weights to a state dict for transformers' ``LlamaForCausalLM``.

    ``state_dict``: the weights, with all shards merged. ``params``: Meta's params.json; we read its "dim", "n_heads"
    and "n_kv_heads" (default n_heads). Meta's pairs are neighbouring rows ("interleaved"), while those of transformers
    are half-split ("half"). So the rows of the query and key projections are reordered head by head. Nothing else
    changes, and the logits stay the same. Unchanged tensors are not copied. The model's config also needs Meta's
    rope_theta and norm_eps, and if Meta's params say "use_scaled_rope", the scaling parameters of Llama 3.1.

    Raises ``ValueError`` for a name that Meta's Llama does not have, and for head counts that do not match the weights.

    >>> import torch
    >>> rows = torch.arange(8.0)[:, None].expand(8, 8)
    >>> found = meta_to_transformers({"layers.0.attention.wq.weight": rows}, {"dim": 8, "n_heads": 2})
    >>> found["model.layers.0.self_attn.q_proj.weight"][:, 0]
    tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    dim, heads, kv_heads = _heads(params)
    found = {}
    for name, weight in state_dict.items():
        if name in _TABLES:
            continue
        if name in _TOP:
            found[_TOP[name]] = weight
            continue
        parts = _LAYER.fullmatch(name)
        if parts is None or parts[2] not in _IN_LAYER:
            raise ValueError(
                f"state_dict must have the names of Meta's Llama, got {name!r}"
            )
        if parts[2] in ("attention.wq", "attention.wk"):
            n_heads = heads if parts[2] == "attention.wq" else kv_heads
            weight = _in_layout("half", name, weight, n_heads, dim // heads)
        theirs = f"model.layers.{parts[1]}.{_IN_LAYER[parts[2]]}.{parts[3]}"
        found[theirs] = weight
    return found


def transformers_to_meta(
    state_dict: Mapping[str, Tensor], params: Mapping[str, object]
) -> dict[str, Tensor]:
    """Undo `meta_to_transformers`: return Meta's names, and query and key projections whose pairs are neighbouring
    rows.

    ``params``: as in `meta_to_transformers`. "rope.freqs" is left out, because Meta's code recomputes it. Raises
    ``ValueError`` for a name that transformers' ``LlamaForCausalLM`` does not have, and for head counts that do not
    match the weights.

    >>> import torch
    >>> rows, params = torch.arange(8.0)[:, None].expand(8, 8), {"dim": 8, "n_heads": 2}
    >>> found = transformers_to_meta({"model.layers.0.self_attn.q_proj.weight": rows}, params)
    >>> found["layers.0.attention.wq.weight"][:, 0]
    tensor([0., 2., 1., 3., 4., 6., 5., 7.])
    """
    dim, heads, kv_heads = _heads(params)
    found = {}
    for name, weight in state_dict.items():
        if name in _TOP_BACK:
            found[_TOP_BACK[name]] = weight
            continue
        parts = _THEIR_LAYER.fullmatch(name)
        if parts is None or parts[2] not in _IN_LAYER_BACK:
            raise ValueError(
                f"state_dict must have the names of transformers' Llama, got {name!r}"
            )
        ours = _IN_LAYER_BACK[parts[2]]
        if ours in ("attention.wq", "attention.wk"):
            n_heads = heads if ours == "attention.wq" else kv_heads
            weight = _in_layout("interleaved", name, weight, n_heads, dim // heads)
        found[f"layers.{parts[1]}.{ours}.{parts[3]}"] = weight
    return found


def _heads(params: Mapping[str, object]) -> tuple[int, int, int]:
    dim = checks.integer("params['dim']", params.get("dim"), minimum=2)
    heads = checks.integer("params['n_heads']", params.get("n_heads"), minimum=1)
    if dim % heads:
        raise ValueError(
            f"params['n_heads'] must be a divisor of dim = {dim}, got {heads}"
        )
    kv_heads = params.get("n_kv_heads")
    kv_heads = heads if kv_heads is None else kv_heads
    return dim, heads, checks.integer("params['n_kv_heads']", kv_heads, minimum=1)


def _in_layout(
    to: str, name: str, weight: Tensor, n_heads: int, head_dim: int
) -> Tensor:
    if weight.shape[0] != n_heads * head_dim:
        raise ValueError(
            f"params must give the heads of {name}, {weight.shape[0]} rows; got {n_heads} heads of {head_dim}"
        )
    return convert_weight(weight, n_heads, head_dim, to=to)
