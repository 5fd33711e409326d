"""Helpers shared by the tests of the context extension methods. The examples come from the registry of methods."""

import logging
import types

import pytest
import torch
from hypothesis import strategies as st
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ropebook import extrapolation as X
from ropebook.rotary_attention import KVCache

FLOAT32 = 2e-6  # relative; the largest error in 4000 random configurations was 8e-7
pairs = st.integers(2, 64)
bases = st.floats(0.7, 7).map(lambda power: 10**power)
factors = st.one_of(st.sampled_from([1.0, 2.0, 8.0]), st.floats(1, 64))
lengths = st.integers(64, 32768)
bounds = st.tuples(st.floats(0.25, 4), st.floats(1.5, 64)).map(lambda ends: (ends[0], ends[0] * ends[1]))
optional = st.one_of(st.none(), st.floats(0.1, 2))


def theirs(rope_type, dim, base, max_length=4096, seq_len=None, **parameters):
    """Return (inv_freq, attention_factor) as computed by transformers."""
    config = types.SimpleNamespace(
        rope_parameters={"rope_type": rope_type, "rope_theta": base} | parameters,
        head_dim=dim,
        hidden_size=dim,
        num_attention_heads=1,
        max_position_embeddings=max_length,
        standardize_rope_params=lambda: None,
    )
    return ROPE_INIT_FUNCTIONS[rope_type](config, None, seq_len=seq_len)


def assert_same(ours, other):
    assert ours[0].dtype == torch.float64
    assert ours[0].tolist() == pytest.approx(other[0].tolist(), rel=FLOAT32, abs=0)
    assert ours[1] == pytest.approx(other[1], rel=1e-12)


EXAMPLES = {name: dict(method.example) for name, method in X.METHODS.items()}  # all for d = 8 and L = 32
FREQUENCIES = [name for name, method in X.METHODS.items() if method.acts_on == "frequencies"]
DISTANCES = [name for name, method in X.METHODS.items() if method.acts_on == "distances"]


def example(name):
    return X.make(name, **EXAMPLES[name])


ROPES = {
    "linear": {"factor": 4.0},
    "dynamic": {"factor": 2.0},
    "yarn": {"factor": 4.0, "original_max_position_embeddings": 32, "beta_fast": 4.0},
    "llama3": {
        "factor": 4.0, "original_max_position_embeddings": 32, "low_freq_factor": 1.0, "high_freq_factor": 4.0
    },
    "longrope": {
        "factor": 4.0, "original_max_position_embeddings": 32,
        "short_factor": [1.0, 1.1, 1.2, 1.3], "long_factor": [1.0, 2.0, 3.0, 4.0],
    },
}  # fmt: skip


def tiny_llama(rope_type, seed=0):
    logging.getLogger("transformers").setLevel(logging.ERROR)
    config = LlamaConfig(
        vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=32, initializer_range=0.4,
        rope_parameters={"rope_type": rope_type, "rope_theta": 100.0} | ROPES[rope_type],
    )  # fmt: skip
    torch.manual_seed(seed)
    return LlamaForCausalLM(config).eval(), config


def turn(x, angles):
    """Rotate a vector pair by pair (interleaved), with plain complex numbers. ``x`` is (d,), and the angles are
    (d/2,)."""
    z = torch.view_as_complex(x.reshape(-1, 2)) * torch.exp(1j * angles)
    return torch.view_as_real(z).flatten()


def decode(layer, x, prefill):
    """Return the output for the last token after reading the first ``prefill`` tokens at once and the others one at a
    time."""
    cache = KVCache(x.shape[1])
    steps = [x[:, :prefill], *x[:, prefill:].split(1, dim=1)]
    return [layer(step, cache=cache)[:, -1] for step in steps][-1]


def extended(name, options=None, keep=None, seed=0, **rest):
    torch.manual_seed(seed)
    options = EXAMPLES[name] if options is None else options
    arguments = {"n_kv_heads": 2, "base": 100.0, "layout": "interleaved", "dtype": torch.float64} | rest
    return X.ExtendedAttention(32, 4, method=name, options=options, keep=keep, **arguments)
