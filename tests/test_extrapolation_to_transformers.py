"""Tests of converting methods to transformers' configs and back. transformers must be able to read the configs that we
write, and reading one ourselves must give back the same method."""

from __future__ import annotations

import pytest
import torch
from transformers import Gemma3TextConfig, LlamaConfig
from transformers.models.gpt_neox.configuration_gpt_neox import GPTNeoXConfig
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from ropebook import extrapolation as X
from ropebook.efficient import RotaryEmbedding
from ropebook.rope import inv_freq
from tests.together import together

DIM, TRAINED = 16, 64
FACTORS = {"short_factors": [1.5] * 8, "long_factors": [3.0] * 8}
WRITTEN = {
    "linear": X.make("linear", factor=4.0),
    "ntk": X.make("ntk", factor=4.0),
    "base": X.make("base", base=5e5),
    "dynamic": X.make("dynamic_ntk", trained_length=TRAINED, factor=2.0),
    "yarn": X.make("yarn", factor=4.0, trained_length=TRAINED, beta=4.0, truncate=False),
    "yarn with mscale": X.make("yarn", factor=4.0, trained_length=TRAINED, mscale=1.0, mscale_all_dim=0.5),
    "yarn with a factor": X.make("yarn", factor=4.0, trained_length=TRAINED, attention_factor=1.0),
    "llama3": X.make("llama3", factor=4.0, trained_length=TRAINED),
    "longrope": X.make("longrope", factor=4.0, trained_length=TRAINED, **FACTORS),
}


def config(parameters: dict, kind: type = LlamaConfig, **more) -> LlamaConfig:
    sizes = {"hidden_size": 2 * DIM, "num_attention_heads": 2, "max_position_embeddings": TRAINED}
    return kind(**sizes, rope_parameters=parameters, **more)


@together("name", WRITTEN)
@together("length", [TRAINED, 200])
def test_what_is_written_transformers_rotates_alike(name, length):
    method = WRITTEN[name]
    theirs = LlamaRotaryEmbedding(config(X.to_transformers(method, DIM, 1e3)))
    positions = torch.arange(length)
    cos, sin = theirs(torch.zeros(1), positions[None])
    ours, factor = method(inv_freq(DIM, 1e3), length)
    angles = positions[:, None] * ours
    torch.testing.assert_close(cos[0, :, : DIM // 2].double(), angles.cos() * factor, rtol=0, atol=2e-4)
    torch.testing.assert_close(sin[0, :, : DIM // 2].double(), angles.sin() * factor, rtol=0, atol=2e-4)


@together("name", [name for name in WRITTEN if name not in ("ntk", "base")])
def test_what_is_written_comes_back(name):
    written = X.to_transformers(WRITTEN[name], base=1e3)
    assert X.from_transformers(written, TRAINED) == X.Configured(WRITTEN[name], 1e3)
    again = X.to_transformers(X.from_transformers(config(written)))
    assert again == written


def test_a_share_of_the_head_is_written():
    parameters = X.to_transformers(X.Partial(0.25))
    theirs = GPTNeoXRotaryEmbedding(config(parameters, GPTNeoXConfig))
    torch.testing.assert_close(theirs.inv_freq.double(), inv_freq(DIM // 4), rtol=1e-6, atol=0)
    both = X.Configured(X.Interpolation(4.0), 1e3, 0.25)
    parameters = X.to_transformers(both)
    assert X.from_transformers(parameters, TRAINED) == both
    theirs = GPTNeoXRotaryEmbedding(config(parameters, GPTNeoXConfig))
    torch.testing.assert_close(theirs.inv_freq.double(), inv_freq(DIM // 4, 1e3) / 4, rtol=1e-6, atol=0)
    share = X.Proportional(0.5, 2.0)
    assert X.from_transformers(X.to_transformers(share), TRAINED).method == share


def test_a_config_brings_base_and_share_along():
    asked = {"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5, "partial_rotary_factor": 0.5}
    method = X.from_transformers(config(asked, GPTNeoXConfig))
    rope = RotaryEmbedding(DIM, layout="half", **X.rotary_options(method, DIM))
    assert (rope.base, rope.rotary_dim) == (5e5, DIM // 2)


@together("name", ["rerope", "log_n", "dynamic_yarn", "ntk_by_parts"])
def test_what_transformers_has_not_is_refused(name):
    options = {"rerope": {"window": 9}, "ntk_by_parts": {"factor": 2.0}}.get(name, {})
    if name != "rerope":
        options = options | {"trained_length": TRAINED}
    with pytest.raises(ValueError, match=r"method must be one that transformers has, got .*: install it into a loaded"):
        X.to_transformers(X.make(name, **options))


def test_the_papers_ramp_is_not_transformers():
    with pytest.raises(ValueError, match="method must be one that transformers has"):
        X.to_transformers(X.make("yarn", factor=2.0, trained_length=TRAINED, ramp="turns"))


def test_ntk_aware_wants_the_dimension():
    with pytest.raises(ValueError, match="dim must be given for NTK-aware scaling"):
        X.to_transformers(X.make("ntk", factor=4.0))


@together("given", [None, 3, "linear"])
def test_what_is_no_config_is_refused(given):
    with pytest.raises(TypeError, match=f"rope_parameters must be a config of transformers or .* got {given!r}"):
        X.from_transformers(given, 64)


def test_parameters_of_several_kinds_of_layer_are_refused():
    with pytest.raises(ValueError, match="those of one kind of layer, got those of 'sliding_attention'"):
        X.from_transformers(Gemma3TextConfig())


def test_a_length_beside_a_config_is_refused():
    asked = config({"rope_type": "linear", "factor": 2.0, "rope_theta": 5e5})
    with pytest.raises(
        ValueError, match="max_position_embeddings must be left out with a config, which says it, got 7"
    ):
        X.from_transformers(asked, 7)
