"""Tests that compare the methods with transformers.

transformers computes its frequencies in float32. An exponent of up to ln(base) ≈ 16 has an error of 16 units of 2^−24.
Mixing two frequencies loses a few more digits, because the weight is a quotient of differences.
"""

import math
import types

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from transformers import GPTJConfig, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

from ropebook import extrapolation as X
from ropebook.efficient import RotaryEmbedding
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, seeds
from tests.methods import ROPES, assert_same, bases, bounds, factors, lengths, optional, pairs, theirs, tiny_llama
from tests.together import together

MIXED = 1e-4  # for mixed pairs; the largest error observed was 1.2e-5
kept = st.sampled_from([1.0, 0.5, 0.25])


@given(pairs, bases, factors)
def test_linear_is_that_of_transformers(n, base, factor):
    ours = X.from_transformers({"rope_type": "linear", "factor": factor}, 4096)
    assert_same(ours(plain(2 * n, base)), theirs("linear", 2 * n, base, factor=factor))


@given(pairs, bases, factors, lengths, st.integers(1, 200_000))
def test_dynamic_ntk_is_that_of_transformers(n, base, factor, trained, seq_len):
    ours = X.from_transformers({"rope_type": "dynamic", "factor": factor}, trained)
    assert_same(ours(plain(2 * n, base), seq_len), theirs("dynamic", 2 * n, base, trained, seq_len, factor=factor))


@given(pairs, bases, factors, lengths, bounds, st.booleans(), optional, optional, optional)
def test_yarn_is_that_of_transformers(n, base, factor, trained, ends, truncate, attention, mscale, all_dim):
    assume((mscale is None) == (all_dim is None))
    parameters = {
        "rope_type": "yarn",
        "factor": factor,
        "original_max_position_embeddings": trained,
        "beta_slow": ends[0],
        "beta_fast": ends[1],
        "truncate": truncate,
        "attention_factor": attention,
        "mscale": mscale,
        "mscale_all_dim": all_dim,
    }
    ours = X.from_transformers(parameters, trained)
    theta = plain(2 * n, base)
    other = theirs("yarn", 2 * n, base, **{k: v for k, v in parameters.items() if k != "rope_type"})
    at_beta, at_alpha = (2 * n * math.log(trained / (2 * math.pi * r)) / (2 * math.log(base)) for r in reversed(ends))
    low, high = (math.floor(at_beta), math.ceil(at_alpha)) if truncate else (at_beta, at_alpha)
    if max(low, 0) > min(high, 2 * n - 1):
        with pytest.raises(ValueError, match="alpha and beta must leave pairs"):
            ours(theta)
    else:
        scaled, found = ours(theta)
        assert scaled.tolist() == pytest.approx(other[0].tolist(), rel=MIXED, abs=0)
        assert found == pytest.approx(other[1], rel=1e-12)


@together("missing", ["beta_fast", "beta_slow", "factor", "truncate"])
def test_yarn_has_the_defaults_of_transformers(missing):
    parameters = {"factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
    parameters["truncate"] = True
    del parameters[missing]
    ours = X.from_transformers({"rope_type": "yarn"} | parameters, 16384)
    assert_same(ours(plain(128)), theirs("yarn", 128, 10000.0, 16384, **({"factor": None} | parameters)))


def test_yarn_in_the_settings_of_published_models():
    # DeepSeek-V3 (which rotates 64 of 192 entries), Qwen2.5 with YaRN, gpt-oss (base 150000, not truncated)
    for dim, base, options in [
        (64, 10000.0, {"factor": 40.0, "trained_length": 4096, "mscale": 1.0, "mscale_all_dim": 1.0}),
        (128, 1e6, {"factor": 4.0, "trained_length": 32768}),
        (64, 150000.0, {"factor": 32.0, "trained_length": 4096, "truncate": False}),
    ]:
        parameters = {k: v for k, v in options.items() if k != "trained_length"}
        parameters["original_max_position_embeddings"] = options["trained_length"]
        assert_same(X.YaRN(**options)(plain(dim, base)), theirs("yarn", dim, base, **parameters))


@given(pairs, bases, factors, lengths, bounds)
def test_llama3_is_that_of_transformers(n, base, factor, trained, ends):
    parameters = {
        "factor": factor,
        "low_freq_factor": ends[0],
        "high_freq_factor": ends[1],
        "original_max_position_embeddings": trained,
    }
    ours = X.from_transformers({"rope_type": "llama3"} | parameters, trained)
    scaled, _ = ours(plain(2 * n, base))
    other, _ = theirs("llama3", 2 * n, base, **parameters)
    assert scaled.tolist() == pytest.approx(other.tolist(), rel=MIXED, abs=0)


def test_llama3_with_its_own_numbers():
    parameters = {"factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
    parameters["original_max_position_embeddings"] = 8192
    assert_same(X.Llama3()(plain(128, 500000.0)), theirs("llama3", 128, 500000.0, **parameters))


@given(pairs, bases, factors, lengths, st.integers(1, 200_000), optional, st.booleans(), seeds)
def test_longrope_is_that_of_transformers(n, base, factor, trained, seq_len, attention, ratio, seed):
    draws = torch.Generator().manual_seed(seed)
    short, long = (1 + 63 * torch.rand(2, n, generator=draws, dtype=torch.float64)).tolist()
    parameters = {
        "short_factor": short,
        "long_factor": long,
        "factor": None if ratio else factor,
        "original_max_position_embeddings": trained,
        "attention_factor": attention,
    }
    wanted = round(trained * factor)
    ours = X.from_transformers({"rope_type": "longrope"} | parameters, wanted)
    assert_same(ours(plain(2 * n, base), seq_len), theirs("longrope", 2 * n, base, wanted, seq_len, **parameters))


@given(pairs, bases, factors, st.floats(0.01, 1))
def test_proportional_is_that_of_transformers(n, base, factor, fraction):
    assume(int(fraction * n) >= 1)
    parameters = {"factor": factor, "partial_rotary_factor": fraction}
    ours = X.from_transformers({"rope_type": "proportional"} | parameters, 4096)
    assert_same(ours(plain(2 * n, base)), theirs("proportional", 2 * n, base, **parameters))
    assert X.from_transformers({"rope_type": "proportional"}, 4096).method == X.Proportional(1.0)


@given(st.integers(2, 32), bases, kept)
def test_partial_takes_the_exponent_as_gpt_neox_does(quarter, base, fraction):
    dim = 8 * quarter
    config = types.SimpleNamespace(
        rope_parameters={"rope_theta": base, "partial_rotary_factor": fraction},
        hidden_size=dim,
        num_attention_heads=1,
        head_dim=dim,
    )
    other = GPTNeoXRotaryEmbedding.compute_default_rope_parameters(config)
    assert_same(X.Partial(fraction)(plain(dim, base)), other)


def test_partial_rotary_is_dated_by_the_first_model_that_has_it():
    config = GPTJConfig()
    head = config.n_embd // config.n_head
    assert (config.rotary_dim, head) == (64, 256)  # GPT-J was published a year before GPT-NeoX-20B
    assert X.Partial(0.25).rotary_dim(head) == config.rotary_dim
    partial = X.METHODS["partial"]
    assert (partial.year, partial.source) == (2021, "wang2021")


@given(st.integers(2, 32), bases, kept, factors)
def test_a_method_on_part_of_the_head(quarter, base, fraction, factor):
    dim = 8 * quarter
    turning = X.Partial(fraction).rotary_dim(dim)
    ours = X.Interpolation(factor)(plain(turning, base))
    assert_same(ours, theirs("linear", dim, base, factor=factor, partial_rotary_factor=fraction))


def test_an_unknown_config_is_refused():
    with pytest.raises(ValueError, match=r"rope_parameters\['rope_type'\] must be one of .*got 'default'"):
        X.from_transformers({"rope_type": "default"}, 4096)
    with pytest.raises(ValueError, match=r"rope_type.*got None"):
        X.from_transformers({}, 4096)
    for kind in ("linear", "yarn", "llama3"):
        with pytest.raises(ValueError, match=f"must give 'factor' for '{kind}'"):
            X.from_transformers({"rope_type": kind}, 4096)
    for kind in ("yarn", "llama3", "longrope"):
        with pytest.raises(ValueError, match=f"must give 'original_max_position_embeddings' for '{kind}'"):
            X.from_transformers({"rope_type": kind, "factor": 4.0})
    with pytest.raises(TypeError, match="options of 'longrope' must be"):
        X.from_transformers({"rope_type": "longrope", "original_max_position_embeddings": 64}, 128)


@together("where", ["nowhere", "None", "beside the dictionary"])
@together("rope_type", ["yarn", "llama3", "longrope"])
def test_without_a_trained_length_it_is_the_longest_text_of_the_config(rope_type, where):
    """`standardize_rope_params` does the same, and transformers applies it to every config."""
    key = "original_max_position_embeddings"
    parameters = {"rope_type": rope_type, "rope_theta": 100.0} | ROPES[rope_type]
    del parameters[key]
    config = LlamaConfig(head_dim=8, max_position_embeddings=48, rope_parameters=dict(parameters))
    if where == "None":
        parameters[key] = None
    if where == "beside the dictionary":
        config.original_max_position_embeddings = 16  # Phi-3's configs are like this
        config.rope_parameters[key] = 48
        given = (config,)
    else:
        # pass the parameters as a file stores them, because a transformers config would fill in the missing key
        del config.rope_parameters[key]
        given = (parameters, 48)
        assert X.from_transformers(config) == X.from_transformers(*given)
    method = X.from_transformers(*given)
    assert method.method.trained_length == (16 if where == "beside the dictionary" else 48)
    for length in (10, 40, 60):
        other = ROPE_INIT_FUNCTIONS[rope_type](config, None, seq_len=length)
        assert_same(method(plain(8, 100.0), length), other)


@together("key", ["mrope_section", "alpha", "beta_fast", "original_max_position_embeddings"])
def test_keys_that_a_method_has_not_are_refused(key):
    parameters = {"rope_type": "dynamic", "factor": 2.0, "rope_theta": 100.0, "partial_rotary_factor": 1.0}
    with pytest.raises(
        ValueError, match=f"keys of rope_parameters must be among .*'factor' for 'dynamic', got '{key}'"
    ):
        X.from_transformers(parameters | {key: 4}, 4096)
    assert X.from_transformers(parameters | {key: None}, 4096) == X.from_transformers(parameters, 4096)


def test_the_older_name_of_rope_type():
    older = {"type": "linear", "factor": 4.0}
    for parameters in (older, older | {"rope_type": "linear"}):
        assert X.from_transformers(parameters, 4096).method == X.Interpolation(4.0)
    with pytest.raises(ValueError, match=r"rope_parameters\['type'\] must be its 'rope_type', 'dynamic', got 'linear'"):
        X.from_transformers(older | {"rope_type": "dynamic"}, 4096)


@together("fraction", [None, 1.0, 0.5])
@together("rope_type", ["linear", "dynamic", "yarn", "llama3", "longrope"])
def test_a_rotation_read_from_a_config_is_that_of_transformers(rope_type, fraction):
    turning = int(32 * (fraction or 1.0))
    parameters = {"rope_theta": 5e5} | ROPES[rope_type]
    if fraction:
        parameters["partial_rotary_factor"] = fraction
    if rope_type == "longrope":
        parameters |= {"short_factor": [1.5] * (turning // 2), "long_factor": [3.0] * (turning // 2)}
    method = X.from_transformers({"rope_type": rope_type} | parameters, 32)
    rope = RotaryEmbedding(32, layout="half", **X.rotary_options(method, 32))
    assert (rope.base, rope.rotary_dim) == (5e5, turning)
    assert rope.scaling.follows_length == (rope_type in ("dynamic", "longrope"))
    other, factor = theirs(rope_type, 32, 5e5, 32, 70, **parameters)
    angles = torch.arange(70)[:, None] * other.double()
    for ours, wanted in zip(rope.cos_sin(torch.arange(70), length=70), (angles.cos(), angles.sin()), strict=True):
        assert ours.shape == (70, turning // 2)
        assert largest(ours - factor * wanted) < 1e-3  # MIXED is multiplied by an angle of up to 70


@pytest.mark.parametrize("rope_type", ["linear", "proportional"])
def test_a_rotation_that_is_not_the_configs_is_refused(rope_type):
    parameters = {"rope_type": rope_type, "rope_theta": 5e5, "partial_rotary_factor": 0.5, "factor": 4.0}
    method = X.from_transformers(parameters, 4096)
    rotary_dim = 8 if rope_type == "linear" else 16  # p-RoPE applies the fraction itself
    right = {"base": 5e5, "rotary_dim": rotary_dim, "layout": "half", "scaling": method}
    assert RotaryEmbedding(16, **right).scaling is method
    assert X.rotary_options(method, 16).items() <= right.items()
    wrong = [("base", None, "base must be 500000.0, as in the config of scaling, got 10000.0")]
    wrong += [("base", 5e4, "base must be 500000.0, as in the config of scaling, got 50000.0")]
    wrong += [("layout", None, "layout must be one of 'interleaved', 'half', because the config .* got None")]
    if rope_type == "linear":
        wrong += [("rotary_dim", None, "rotary_dim must be 8, as in the config of scaling, got 16")]
        wrong += [("rotary_dim", 4, "rotary_dim must be 8, as in the config of scaling, got 4")]
    for name, value, message in wrong:
        options = {k: v for k, v in right.items() if k != name} | ({} if value is None else {name: value})
        with pytest.raises(ValueError, match=message):
            RotaryEmbedding(16, **options)
    with pytest.raises(ValueError, match=r"inv_freq must be of base 500000.0, as in the config, got \[1.0, 0.1"):
        method(plain(8))
    assert torch.equal(method(plain(8, 5e5))[0], method.method(plain(8, 5e5))[0])


def test_configs_of_no_rotation_are_refused():
    linear = {"rope_type": "linear", "factor": 4.0}
    with pytest.raises(ValueError, match=r"base must be a finite number >= 1, got 0\.5"):
        X.from_transformers(linear | {"rope_theta": 0.5}, 4096)
    with pytest.raises(ValueError, match="fraction must be a finite number > 0 and <= 1, got 2"):
        X.from_transformers(linear | {"partial_rotary_factor": 2}, 4096)
    method = X.from_transformers(linear | {"partial_rotary_factor": 0.3}, 4096)
    with pytest.raises(ValueError, match="must be an even integer >= 2, got 3"):
        RotaryEmbedding(10, layout="half", scaling=method)


@together("beside", [{}, {"rope_theta": 10000.0}, {"partial_rotary_factor": 1.0}], ids=str)
def test_weights_that_come_with_a_config_have_a_layout_that_is_named(beside):
    """The layout must be named even if the config contains neither the base nor the share, as in older configs with
    rope_scaling."""
    method = X.from_transformers({"type": "linear", "factor": 4.0} | beside, 4096)
    options = X.rotary_options(method, 8)
    for make in (RotaryEmbedding, lambda dim, **rest: RotaryAttention(dim, n_heads=1, **rest)):
        with pytest.raises(
            ValueError, match=r"layout must be one of 'interleaved', 'half', because the config .* got None"
        ):
            make(8, **options)
        make(8, layout="half", **options)
    # if there is no config, the layout keeps its default for one more release
    with pytest.warns(FutureWarning, match="layout will have to be given"):
        assert RotaryEmbedding(8, scaling=X.Interpolation(4.0)).layout == "interleaved"


@together("rope_type", ROPES)
@torch.no_grad()
def test_a_whole_llama_with_a_method_is_that_of_transformers(rope_type):
    other, config = tiny_llama(rope_type)
    scaling = X.from_transformers(config.rope_parameters, config.max_position_embeddings)
    ours = LlamaModel.from_transformers(other.state_dict(), config, scaling=scaling)
    unscaled = LlamaModel.from_transformers(other.state_dict(), config, scaling=X.Interpolation(1.0))
    tokens = torch.randint(32, (2, 50), generator=torch.Generator().manual_seed(1))
    expected = other(tokens).logits
    assert largest(ours(tokens) - expected) < 1e-4
    assert largest(unscaled(tokens) - expected) > 0.1
    within = tokens[:, :24]
    assert largest(ours(within) - other(within).logits) < 1e-4
