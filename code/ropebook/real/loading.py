"""Load a Llama from a GGUF file as the book's own model. This involves renaming the
weights, changing the layout of queries and keys, and handling tied embeddings."""

from __future__ import annotations

import os
from typing import NamedTuple

from torch import Tensor

from ropebook import checks
from ropebook.efficient import convert_weight
from ropebook.real.container import Container, read
from ropebook.real.sizes import Configuration, configuration
from ropebook.real.tokens import Tokenizer, tokenizer
from ropebook.rotary_attention import LlamaModel

STORED_LAYOUT = "interleaved"
"""The order of the rows of W_q and W_k in a Llama's GGUF file. llama.cpp rotates
neighbouring entries, so its converter reorders the rows of a checkpoint from
transformers."""

_TOP = {
    "embedding.weight": "token_embd.weight",
    "norm.weight": "output_norm.weight",
    "lm_head.weight": "output.weight",
}
_IN_LAYER = {
    "attention_norm": "attn_norm",
    "attention.q_proj": "attn_q",
    "attention.k_proj": "attn_k",
    "attention.v_proj": "attn_v",
    "attention.out_proj": "attn_output",
    "mlp_norm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}
_LISTED = 3  # maximum number of names in an error message; an unrelated file may lack hundreds


class Loaded(NamedTuple):
    """A model, its tokenizer, and its configuration."""

    model: LlamaModel
    tokenizer: Tokenizer
    configuration: Configuration


def load(path: str | os.PathLike[str], layout: str = "half") -> Loaded:
    """Load the Llama in a GGUF file. The weights are dequantised to float32, and
    the model is on the CPU.

    ``layout`` is the layout that the loaded model uses. Both layouts give the same
    logits. No parameter requires a gradient. Errors from `read`, `configuration`,
    `weights` and `tokenizer` are passed on, and they say what is wrong with a damaged
    or unrelated file.
    """
    file = read(path)
    config = configuration(file)
    return Loaded(model(file, config, layout), tokenizer(file.metadata), config)


def model(
    file: Container,
    config: Configuration,
    layout: str = "half",
    *,
    convert: bool = True,
) -> LlamaModel:
    """Load only the model and put it in evaluation mode.

    ``convert=False`` leaves the rows of W_q and W_k in the file's order, whatever
    the layout is. With the layout "half", this is the mistake that the book warns
    about: the rotation then mixes numbers that were never a pair.
    """
    checks.layout(layout)
    state = weights(file, config, layout if convert else STORED_LAYOUT)
    # On the "meta" device, no time is spent on drawing random weights that would be
    # replaced anyway.
    made = LlamaModel(**config.model_options(), layout=layout, device="meta")
    made.load_state_dict(state, assign=True)
    if config.tied:  # assigned separately, so now two parameters
        made.lm_head.weight = made.embedding.weight
    return made.requires_grad_(False).eval()


def weights(
    file: Container, config: Configuration, layout: str = "half"
) -> dict[str, Tensor]:
    """Return all weights as float32, under the names that `LlamaModel` uses for
    them. The rows of W_q and W_k are in the order that ``layout`` requires.

    Raises:
        ValueError: a tensor is missing or unknown, its shape does not match the
            configuration, or gguf cannot dequantise its type.
    """
    checks.layout(layout)
    names = stored_names(config)
    _check_tensors(file, config, names)
    state = {ours: file.tensor(theirs) for ours, theirs in names.items()}
    if layout != STORED_LAYOUT:
        for ours, weight in state.items():
            heads = {"q_proj": config.n_heads, "k_proj": config.n_kv_heads}
            for projection, n_heads in heads.items():
                if f".{projection}." in ours:
                    state[ours] = convert_weight(
                        weight, n_heads, config.head_dim, to=layout
                    )
    if config.tied:
        state["lm_head.weight"] = state["embedding.weight"]
    return state


def stored_names(config: Configuration) -> dict[str, str]:
    """Map each weight name of `LlamaModel` to the name in a GGUF file. Each tensor
    of the file appears once.

    Source: gguf's own table, ``gguf.constants.TENSOR_NAMES``.
    """
    names = dict(_TOP)
    if config.tied:
        del names["lm_head.weight"]
    for layer in range(config.n_layers):
        for ours, theirs in _IN_LAYER.items():
            names[f"layers.{layer}.{ours}.weight"] = f"blk.{layer}.{theirs}.weight"
    return names


def _check_tensors(
    file: Container, config: Configuration, names: dict[str, str]
) -> None:
    missing = sorted(set(names.values()) - set(file.tensors))
    if missing:
        raise ValueError(
            f"{file.path} must have {len(names)} tensors of a Llama, {len(missing)} are missing: {_listed(missing)}"
        )
    unknown = sorted(set(file.tensors) - set(names.values()))
    if unknown:
        raise ValueError(
            f"{file.path} must have the tensors of a Llama without biases and no others, got {_listed(unknown)}"
        )
    made = LlamaModel(
        **config.model_options(), layout=STORED_LAYOUT, device="meta"
    ).state_dict()
    for ours, theirs in names.items():
        wanted, found = tuple(made[ours].shape), file.shape(theirs)
        if found != wanted:
            raise ValueError(
                f"{file.path}: {theirs} must have shape {wanted}, got {found}"
            )


def _listed(names: list[str]) -> str:
    more = len(names) - _LISTED
    return ", ".join(names[:_LISTED]) + (f" and {more} more" if more > 0 else "")
