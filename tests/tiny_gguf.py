"""Tiny random Llamas and their vocabulary as GGUF files. The models are built by transformers, and the files are
written by the gguf library."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from ropebook.real import byte_letters

TEXT = (
    "The cat sat on the mat because it was tired. It's 12,288 tokens; they'll fit, we'd say.\n"
    "def rotate(x, cos, sin):\n    return x * cos - x.flip(-1) * sin  # 0 1 22 333\n" * 3
)
NAMES = {
    "model.embed_tokens": "token_embd",
    "model.norm": "output_norm",
    "lm_head": "output",
    "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "post_attention_layernorm": "ffn_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "model.layers.": "blk.",
}


def llama(*, tied=True, heads=4, kv_heads=2, dim=64, layers=2, vocab=300, base=5e5, seed=0) -> LlamaForCausalLM:
    """Return a Llama from transformers with random weights. With the default ``dim`` its rows have 64 or 96 numbers, so
    they can be quantised in blocks of 32."""
    config = LlamaConfig(
        hidden_size=dim,
        intermediate_size=96,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=kv_heads,
        vocab_size=vocab,
        rms_norm_eps=1e-5,
        max_position_embeddings=128,
        tie_word_embeddings=tied,
        rope_parameters={"rope_type": "default", "rope_theta": base},
    )
    model = LlamaForCausalLM(config).eval().requires_grad_(False)
    draws = torch.Generator().manual_seed(seed)
    for name, p in model.named_parameters():
        noise = torch.randn(p.shape, generator=draws)
        p.copy_(1 + 0.3 * noise if "norm" in name else 1.5 * noise / p.shape[-1] ** 0.5)
    return model


def for_llama_cpp(weight: np.ndarray, heads: int) -> np.ndarray:
    """Reorder the rows of a query or key projection as llama.cpp's converter does: the two rows of each pair become
    neighbours."""
    return weight.reshape(heads, 2, -1, weight.shape[-1]).swapaxes(1, 2).reshape(weight.shape)


def stored(model: LlamaForCausalLM) -> dict[str, np.ndarray]:
    """Return the tensors to be stored in a GGUF file, in float32, by name."""
    found = {}
    for name, p in model.named_parameters():
        weight = p.detach().numpy()
        if "q_proj" in name:
            weight = for_llama_cpp(weight, model.config.num_attention_heads)
        if "k_proj" in name:
            weight = for_llama_cpp(weight, model.config.num_key_value_heads)
        for theirs, short in NAMES.items():
            name = name.replace(theirs, short)
        found[name] = np.ascontiguousarray(weight)
    return found


def metadata(model: LlamaForCausalLM) -> dict[str, object]:
    """Return the metadata that a GGUF file contains about the model, but not the metadata about its tokenizer."""
    config = model.config
    return {
        "llama.block_count": config.num_hidden_layers,
        "llama.context_length": config.max_position_embeddings,
        "llama.embedding_length": config.hidden_size,
        "llama.feed_forward_length": config.intermediate_size,
        "llama.attention.head_count": config.num_attention_heads,
        "llama.attention.head_count_kv": config.num_key_value_heads,
        "llama.attention.layer_norm_rms_epsilon": float(config.rms_norm_eps),
        "llama.rope.dimension_count": config.head_dim,
        "llama.rope.freq_base": float(config.rope_parameters["rope_theta"]),
        "general.name": "tiny",
    }


def vocabulary(size: int = 300) -> dict[str, list]:
    """Return a tokenizer's vocabulary and merges: every byte, 44 merges learned from TEXT, and one special token."""
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    cut = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(False)])
    learned = Tokenizer(models.BPE())
    learned.pre_tokenizer = cut
    letters = sorted(byte_letters().values())
    special = ["<|endoftext|>"]
    learned.train_from_iterator(
        [TEXT],
        trainers.BpeTrainer(vocab_size=size, special_tokens=special, initial_alphabet=letters, show_progress=False),
    )
    numbers = learned.get_vocab()
    tokens = sorted(numbers, key=numbers.get)
    merges = [" ".join(pair) for pair in json.loads(learned.to_str())["model"]["merges"]]
    assert len(tokens) == size
    return {"tokens": tokens, "merges": merges, "types": [3] + [1] * (size - 1)}


def write(
    path: Path,
    model: LlamaForCausalLM,
    *,
    quantised: str = "F32",
    architecture: str = "llama",
    tensors: dict[str, np.ndarray] | None = None,
    words: dict[str, list] | None = None,
    kind: str = "gpt2",
    cut: str = "smollm",
    **changed: object,
) -> Path:
    """Write the model as a GGUF file.

    ``changed`` replaces metadata: "__" in a keyword becomes "." in the key, and None removes the key. Weights with two
    axes are stored in the type ``quantised``, norms in float32. ``tensors`` replaces the model's own tensors.
    """
    import gguf

    writer = gguf.GGUFWriter(path, architecture)
    given = metadata(model) | {key.replace("__", "."): value for key, value in changed.items()}
    for key, value in given.items():
        add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
        if value is not None:
            add[type(value)](key, value)
    words = vocabulary() if words is None else words
    if words:
        writer.add_tokenizer_model(kind)
        writer.add_tokenizer_pre(cut)
        writer.add_token_list(words["tokens"])
        writer.add_token_merges(words["merges"])
        writer.add_token_types(words["types"])
    how = gguf.GGMLQuantizationType[quantised]
    for name, weight in (stored(model) if tensors is None else tensors).items():
        if weight.ndim == 1 or quantised == "F32":
            writer.add_tensor(name, weight)
        else:
            writer.add_tensor(name, gguf.quants.quantize(weight, how), raw_dtype=how)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
