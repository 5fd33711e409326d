"""Helpers shared by the tests of `ropebook.rotary_attention`: random layers, transformers' Llama, and a reference
implementation with loops.

Each test says whether its tolerance is absolute or relative to the largest magnitude. transformers computes norms and
angles in float32, whatever the model's dtype is. `in_float64` replaces the norms and the angles, so that everything can
be compared in float64.
"""

import math

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM

from ropebook import rotary_attention as R
from tests.attention_helpers import draw

DIM, HEADS = 24, 4


LAYOUTS = ["interleaved", "half"]


DEFAULT = {"rope_type": "default", "rope_theta": 10000.0}
CLOSE = {torch.float64: 2e-14, torch.float32: 1e-5}


def error(ours, theirs):
    """Return the largest difference, relative to the largest magnitude in ``theirs``."""
    assert ours.shape == theirs.shape
    assert not ours.isnan().any()
    return ((ours.double() - theirs.double()).abs().max() / theirs.double().abs().max()).item()


def spread(module, seed=0, size=1.0):
    """Fill weights, biases and norms with random numbers that are large enough to make the attention sharp."""
    for i, (name, p) in enumerate(module.named_parameters()):
        noise = draw(*p.shape, seed=seed + i, dtype=p.dtype, device=p.device)
        p.data.copy_(1 + 0.3 * noise if "norm" in name else size * noise / math.sqrt(p.shape[-1]))
    return module


def make(kv_heads=2, *, seed=0, dtype=torch.float64, dim=DIM, heads=HEADS, kind=R.RotaryAttention, **options):
    options = {"layout": "interleaved"} | options
    return spread(kind(dim, heads, kv_heads, dtype=dtype, **options), seed, size=2.0)


def by_hand(layer, x, positions, base=10000.0):
    """Compute causal attention with loops over heads and pairs of tokens. The rotation is interleaved and uses complex
    numbers."""
    batch, seq_len, _ = x.shape
    d, group = layer.head_dim, layer.n_heads // layer.n_kv_heads
    theta = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def turned(vector, position):
        z = torch.complex(vector[0::2], vector[1::2]) * torch.exp(1j * position * theta)
        return torch.stack((z.real, z.imag), -1).flatten()

    out = torch.zeros(batch, seq_len, layer.n_heads * d, dtype=x.dtype)
    for b in range(batch):
        q, k, v = (projection(x[b]) for projection in (layer.q_proj, layer.k_proj, layer.v_proj))
        for h in range(layer.n_heads):
            own, shared = slice(h * d, (h + 1) * d), slice(h // group * d, (h // group + 1) * d)
            for t in range(seq_len):
                query = turned(q[t, own], positions[b][t])
                scores = torch.stack([query @ turned(k[s, shared], positions[b][s]) for s in range(t + 1)])
                out[b, t, own] = (scores / math.sqrt(d)).softmax(0) @ v[: t + 1, shared]
    return layer.out_proj(out)


def llama(kv_heads=2, dtype=torch.float64, head_dim=None, base=10000.0, **options):
    """Return a transformers config for a tiny Llama. It has no special tokens, so generation never stops early."""
    sizes = {"hidden_size": DIM, "intermediate_size": 40, "num_hidden_layers": 2, "vocab_size": 61}
    tokens = {"bos_token_id": None, "eos_token_id": None, "pad_token_id": None}
    rope = {"rope_parameters": {"rope_type": "default", "rope_theta": base}}
    return LlamaConfig(
        **{**sizes, **tokens, **rope, **options},
        num_attention_heads=HEADS,
        num_key_value_heads=kv_heads,
        head_dim=head_dim,
        attn_implementation="eager" if dtype == torch.float32 else "sdpa",  # eager's softmax is always float32
    )


class Float64Tables(nn.Module):
    """Replacement for transformers' half-split tables, with float64 angles."""

    def __init__(self, config):
        super().__init__()
        d, base = config.head_dim, config.rope_parameters["rope_theta"]
        self.inv_freq = base ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)

    def forward(self, x, position_ids):
        angles = (position_ids[..., None] * self.inv_freq).repeat(1, 1, 2)
        return angles.cos(), angles.sin()


def in_chunks(layer, x, chunks, positions=None, **options):
    cache, outs, start = R.KVCache(x.shape[1]), [], 0
    for n in chunks:
        at = slice(start, start + n)
        where = None if positions is None else positions[..., at]
        outs.append(layer(x[:, at], where, cache=cache, **options))
        start += n
    assert cache.length == start == x.shape[1]
    return torch.cat(outs, 1)


CHUNKS = [[9], [1] * 9, [6, 1, 1, 1], [4, 5], [1, 3, 2, 3]]


CONFIGS = {
    "plain": {"kv_heads": 4},
    "grouped": {"kv_heads": 2, "base": 500000.0},
    "one key head, wide heads": {"kv_heads": 1, "head_dim": 16},
    "tied": {"kv_heads": 2, "tie_word_embeddings": True},
    "biases": {"kv_heads": 2, "attention_bias": True, "mlp_bias": True, "rms_norm_eps": 0.1},
}


def theirs_of(case, dtype=torch.float32, seed=0):
    model = LlamaForCausalLM(llama(dtype=dtype, **CONFIGS[case])).eval().to(dtype)
    spread(model, seed, size=1.5)
    if dtype == torch.float64:
        in_float64(model)
    return model


def in_float64(model):
    """Replace the norms and angles of transformers, which stay in float32 even in a float64 model, with exact ones."""
    config = model.config
    model.model.rotary_emb = Float64Tables(config)
    for parent in [model.model, *model.model.layers]:
        for name, child in list(parent.named_children()):
            if "norm" in name:
                norm = nn.RMSNorm(config.hidden_size, eps=config.rms_norm_eps, dtype=torch.float64)
                norm.weight = child.weight
                setattr(parent, name, norm)


def tokens_of(*shape, seed=0):
    return torch.randint(61, shape, generator=torch.Generator().manual_seed(seed))
