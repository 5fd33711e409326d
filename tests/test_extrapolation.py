"""The methods of context extension against transformers, the formulas in plain Python, and brute force.

transformers computes its frequencies in float32: an exponent of up to ln(base) ≈ 16 carries 16 units of 2^−24, and what
is mixed from two of them by a difference over a difference loses some digits more.
"""

import dataclasses
import inspect
import itertools
import logging
import math
import re
import types
from pathlib import Path

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch._dynamo.testing import CompileCounter
from transformers import GPTJConfig, LlamaConfig, LlamaForCausalLM
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.deepseek_v3.modeling_deepseek_v3 import yarn_apply_mscale
from transformers.models.gpt_neox.modeling_gpt_neox import GPTNeoXRotaryEmbedding

from ropebook import extrapolation as X
from ropebook.decay import turned_pairs
from ropebook.efficient import RotaryEmbedding
from ropebook.rotary_attention import KVCache, LlamaModel, RotaryAttention, packed_positions
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, random

FLOAT32 = 2e-6  # relative; 8e-7 was the largest in 4000 random configurations
MIXED = 1e-4  # where pairs are mixed; 1.2e-5 was

pairs = st.integers(2, 64)
bases = st.floats(0.7, 7).map(lambda power: 10**power)
factors = st.one_of(st.sampled_from([1.0, 2.0, 8.0]), st.floats(1, 64))
lengths = st.integers(64, 32768)
bounds = st.tuples(st.floats(0.25, 4), st.floats(1.5, 64)).map(lambda ends: (ends[0], ends[0] * ends[1]))
kept = st.sampled_from([1.0, 0.5, 0.25])
optional = st.one_of(st.none(), st.floats(0.1, 2))
seeds = st.integers(0, 2**32 - 1)


def theirs(rope_type, dim, base, max_length=4096, seq_len=None, **parameters):
    """transformers' own (inv_freq, attention_factor)."""
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


EXAMPLES = {
    "linear": {"factor": 4.0},
    "ntk": {"factor": 4.0},
    "dynamic_ntk": {"trained_length": 32},
    "ntk_by_parts": {"factor": 4.0, "trained_length": 32, "beta": 4.0},
    "yarn": {"factor": 4.0, "trained_length": 32, "beta": 4.0},
    "dynamic_yarn": {"trained_length": 32, "beta": 4.0},
    "llama3": {"factor": 4.0, "trained_length": 32},
    "longrope": {"short_factors": [1.0] * 4, "long_factors": [1.0, 1.5, 3.0, 4.0], "trained_length": 32, "factor": 4.0},
    "base": {"base": 500000.0},
    "partial": {"fraction": 0.5},
    "proportional": {"fraction": 0.5},
    "rerope": {"window": 8},
    "leaky_rerope": {"window": 8, "step": 4.0},
    "self_extend": {"window": 8, "group": 4},
    "log_n": {"trained_length": 32},
}  # for d = 8 and L = 32
FREQUENCIES = [name for name, method in X.METHODS.items() if method.acts_on == "frequencies"]
DISTANCES = [name for name, method in X.METHODS.items() if method.acts_on == "distances"]


def example(name):
    return X.make(name, **EXAMPLES[name])


# --- Equal to transformers ---


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


@pytest.mark.parametrize("missing", ["beta_fast", "beta_slow", "factor", "truncate"])
def test_yarn_has_the_defaults_of_transformers(missing):
    parameters = {"factor": 4.0, "original_max_position_embeddings": 4096, "beta_fast": 32, "beta_slow": 1}
    parameters["truncate"] = True
    del parameters[missing]
    ours = X.from_transformers({"rope_type": "yarn"} | parameters, 16384)
    assert_same(ours(plain(128)), theirs("yarn", 128, 10000.0, 16384, **({"factor": None} | parameters)))


def test_yarn_in_the_settings_of_published_models():
    # DeepSeek-V3 (d = 64 of 192 turn), Qwen2.5 with YaRN, gpt-oss (base 150000, not truncated)
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
    assert X.from_transformers({"rope_type": "proportional"}, 4096) == X.Proportional(1.0)


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
    assert (config.rotary_dim, head) == (64, 256)  # GPT-J, a year before GPT-NeoX-20B
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
    for kind, missing in [("linear", "factor"), ("yarn", "original_max_position_embeddings")]:
        with pytest.raises(ValueError, match=f"must give '{missing}' for '{kind}'"):
            X.from_transformers({"rope_type": kind}, 4096)
    with pytest.raises(TypeError, match="options of 'longrope' must be"):
        X.from_transformers({"rope_type": "longrope", "original_max_position_embeddings": 64}, 128)


@pytest.mark.parametrize("key", ["mrope_section", "alpha", "beta_fast", "original_max_position_embeddings"])
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
        assert X.from_transformers(parameters, 4096) == X.Interpolation(4.0)
    with pytest.raises(ValueError, match=r"rope_parameters\['type'\] must be its 'rope_type', 'dynamic', got 'linear'"):
        X.from_transformers(older | {"rope_type": "dynamic"}, 4096)


@pytest.mark.parametrize("fraction", [None, 1.0, 0.5])
@pytest.mark.parametrize("rope_type", ["linear", "dynamic", "yarn", "llama3", "longrope"])
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
        assert largest(ours - factor * wanted) < 1e-3  # MIXED of an angle of up to 70


@pytest.mark.parametrize("rope_type", ["linear", "proportional"])
def test_a_rotation_that_is_not_the_configs_is_refused(rope_type):
    parameters = {"rope_type": rope_type, "rope_theta": 5e5, "partial_rotary_factor": 0.5, "factor": 4.0}
    method = X.from_transformers(parameters, 4096)
    rotary_dim = 8 if rope_type == "linear" else 16  # p-RoPE's fraction is the method's own
    right = {"base": 5e5, "rotary_dim": rotary_dim, "layout": "half", "scaling": method}
    assert RotaryEmbedding(16, **right).scaling is method
    assert X.rotary_options(method, 16).items() <= right.items()
    wrong = [("base", None, "base must be 500000.0, as in the config of scaling, got 10000.0")]
    wrong += [("base", 5e4, "base must be 500000.0, as in the config of scaling, got 50000.0")]
    wrong += [("layout", None, "layout must be one of 'interleaved', 'half', for the config .* got None")]
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
    # what says neither base nor share of the head asks for nothing
    assert RotaryEmbedding(8, scaling=X.from_transformers(linear, 4096)).layout == "interleaved"


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


@pytest.mark.parametrize("rope_type", ROPES)
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


# --- The formulas ---


def test_frequencies_by_hand():
    # d = 4, b = 10000: θ = 1, 1/100; λ = 2π, 200π
    theta = plain(4)
    assert X.Interpolation(8.0)(theta)[0].tolist() == pytest.approx([1 / 8, 1 / 800])
    assert X.NTKAware(8.0)(theta)[0].tolist() == pytest.approx([1, 1 / 800])
    # d = 6, b = 1000: θ = 1, 1/10, 1/100; the middle pair is divided by √s
    assert X.NTKAware(9.0)(plain(6, 1000))[0].tolist() == pytest.approx([1, 1 / 30, 1 / 900])
    # dynamic, L = 100, n = 300: n/L = 3; with factor 4: 4·3 − 3 = 9
    assert X.DynamicNTK(100)(theta, 300)[0][-1].item() == pytest.approx(1 / 300)
    assert X.DynamicNTK(100, 4.0)(theta, 300)[0][-1].item() == pytest.approx(1 / 900)
    assert X.BaseChange(16)(theta)[0].tolist() == [1, 0.25]
    assert X.Proportional(0.5, factor=2.0)(theta)[0].tolist() == [0.5, 0]
    assert X.LongRoPE([2, 4], [3, 5], 100, 10.0)(theta, 100) == (pytest.approx([0.5, 0.0025]), math.sqrt(1.5))
    assert X.LongRoPE([2, 4], torch.tensor([3, 5.0]), 100, 1.0)(theta, 101) == (pytest.approx([1 / 3, 0.002]), 1)


@given(pairs.filter(lambda n: n > 1), bases, factors)
def test_ntk_is_a_change_of_base_and_keeps_the_ends(n, base, factor):
    theta = plain(2 * n, base)
    scaled, attention = X.NTKAware(factor)(theta)
    assert attention == 1
    assert scaled.tolist() == pytest.approx(plain(2 * n, X.ntk_base(base, 2 * n, factor)).tolist(), rel=1e-12)
    assert scaled[0] == 1
    assert scaled[-1].item() == pytest.approx(theta[-1].item() / factor, rel=1e-12)


def test_the_ntk_exponent_is_solved_for_and_not_typed():
    import sympy

    d = sympy.Symbol("d", positive=True)
    solution = X.ntk_exponent()
    assert sympy.simplify(solution - d / (d - 2)) == 0
    assert solution.subs(d, 128) == sympy.Rational(64, 63)
    assert solution.subs(d, 2) is sympy.zoo  # no value


@given(st.integers(2, 10**6), st.integers(1, 64))
def test_effective_scale_at_the_wanted_length_is_not_the_factor(trained, factor):
    shipped = X.DynamicNTK(trained, float(factor)).effective_scale(factor * trained)
    assert shipped == pytest.approx(factor**2 - factor + 1)
    assert X.DynamicNTK(trained).effective_scale(factor * trained) == pytest.approx(factor)
    assert X.DynamicNTK(trained, float(factor)).effective_scale(trained - 1) == 1


def test_defaults_are_those_of_the_paper_and_of_transformers():
    found = {}
    for form in (X.NTKByParts, X.YaRN, X.DynamicYaRN, X.ramp_in_turns, X.ramp_in_pairs, X.ramp_range,
                 X.paper_against_code):  # fmt: skip
        for name, parameter in inspect.signature(form).parameters.items():
            if parameter.default is not parameter.empty:
                found.setdefault(name, set()).add(parameter.default)
    none = {"mscale": {None}, "mscale_all_dim": {None}, "attention_factor": {None}}
    assert found == {"alpha": {1.0}, "beta": {32.0}, "truncate": {True}, "ramp": {"pairs"}} | none
    search = inspect.signature(X.search_factors).parameters
    assert (search["generations"].default, search["population"].default) == (30, 32)
    assert X.Llama3() == X.Llama3(8, 8192, 1, 4)
    assert X.DynamicNTK(32) == X.DynamicNTK(32, 1)
    assert X.Proportional(0.5) == X.Proportional(0.5, 1)
    assert X.yarn_factor(math.e) == X.yarn_factor(math.e, 1) == pytest.approx(1.1)
    theta = plain(128)
    for method in (X.NTKByParts(16.0, 4096), X.YaRN(16.0, 4096, ramp="turns")):
        assert method(theta)[0].tolist() == pytest.approx(by_parts(theta.tolist(), 16, 4096, 1, 32), rel=1e-9)


def test_options_at_the_edge_of_what_is_allowed():
    theta = plain(4)
    for form in (X.Interpolation, X.NTKAware, lambda factor: X.DynamicNTK(2, factor)):
        form(1)  # a factor of 1 changes nothing
    assert torch.equal(X.Interpolation(1)(theta)[0], theta)
    assert torch.equal(X.Proportional(1)(theta)[0], theta)
    assert X.Partial(1)(theta)[0].tolist() == pytest.approx(theta.tolist())
    assert X.BaseChange(1)(theta) == (pytest.approx([1, 1]), 1)
    assert X.ntk_base(1, 4, 4.0) == 16
    assert X.length_factor(2, 2) == 1
    assert X.softmax_scale(1, 1.0, 0) == 1
    assert X.yarn_factor(4.0, 0) == 1
    with pytest.raises(ValueError, match=r"weight must be a finite number >= 0, got -0\.5"):
        X.yarn_factor(4.0, -0.5)
    with pytest.raises(ValueError, match="head_dim must be an integer >= 1, got 0"):
        X.softmax_scale(0, 1.0, 1.0)
    for small in (1e-3, 0.5):  # above 0, and below 1 as well
        assert X.ramp_in_turns(theta, 2, small, 1.0).shape == (2,)
        assert X.YaRN(4.0, 2, attention_factor=small)(plain(8))[1] == small
        assert X.YaRN(4.0, 2, mscale=small, mscale_all_dim=small)(plain(8))[1] == 1
        assert X.LongRoPE([small, small], [small, small], 2, 1)(theta, 1)[0].tolist() == pytest.approx(
            (theta / small).tolist()
        )
    for window, method in ((1, X.ReRoPE(1)), (1, X.LeakyReRoPE(1, 1)), (1, X.SelfExtend(1, 1))):
        assert method.reach(window + 1) >= 2
    assert X.SelfExtend(1, 1).reach(9) == X.LeakyReRoPE(8, 1).reach(9) == 9  # the plain model
    assert X.arrival_lengths(1).tolist() == [1]
    assert X.LogN(2).query_scale(torch.tensor([3])).item() == 2  # ln 4/ln 2


def test_frequencies_may_be_nought_and_one_dimension_is_enough():
    still = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert X.Interpolation(2.0)(still)[0].tolist() == [0.5, 0]
    assert X.turned(still, 8).tolist() == [True, False]
    assert X.overshoot(still, 8, 16, still).tolist() == [0, 0]
    one = plain(2)
    assert X.Interpolation(2.0)(one)[0].tolist() == [0.5]
    # Exactly one turn is a turn.
    assert X.turned(torch.tensor([2 * math.pi], dtype=torch.float64), 2).tolist() == [True]


def by_parts(theta, factor, trained, alpha, beta):
    """The paper's equations (17) to (20), pair by pair."""
    result = []
    for t in theta:
        wavelength = 2 * math.pi / t
        r = trained / wavelength
        gamma = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        result.append((1 - gamma) * t / factor + gamma * t)
    return result


@given(pairs, bases, factors, lengths, bounds)
def test_by_parts_is_the_papers_formula(n, base, factor, trained, ends):
    theta = plain(2 * n, base)
    expected = by_parts(theta.tolist(), factor, trained, *ends)
    scaled, attention = X.NTKByParts(factor, trained, *ends)(theta)
    assert attention == 1
    assert scaled.tolist() == pytest.approx(expected, rel=1e-9)
    yarn = X.YaRN(factor, trained, *ends, ramp="turns")(theta)
    assert torch.equal(yarn[0], scaled)
    assert yarn[1] == pytest.approx(0.1 * math.log(factor) + 1)
    llama = X.Llama3(factor, trained, *ends)(theta)
    assert torch.equal(llama[0], scaled)


def test_paper_and_code_of_yarn_differ_by_a_factor():
    # Llama 2: d = 128, b = 10000, L = 4096; s = 16
    theta = plain(128)
    found = X.paper_against_code(theta, 16.0, 4096)
    paper = torch.tensor(by_parts(theta.tolist(), 16.0, 4096, 1, 32))
    code = theirs("yarn", 128, 10000.0, factor=16.0, original_max_position_embeddings=4096)[0]
    ratio = paper / code
    assert found.ratio.tolist() == pytest.approx(ratio.tolist(), rel=FLOAT32)
    assert found.pair == (ratio.log().abs()).argmax().item()
    assert found.largest == pytest.approx(max(ratio.max().item(), 1 / ratio.min().item()), rel=FLOAT32)
    assert found.largest > 3
    # They agree where a pair is kept or interpolated by both
    assert found.ratio[:20].tolist() == pytest.approx([1] * 20)
    assert found.ratio[46:].tolist() == pytest.approx([1] * 18)


def test_ramps_start_and_end_where_they_say():
    theta = plain(128)
    turns = theta * 4096 / (2 * math.pi)
    ramp = X.ramp_in_turns(theta, 4096)
    assert (ramp[turns >= 32] == 1).all()
    assert (ramp[turns <= 1] == 0).all()
    low, high = X.ramp_range(theta, 4096, truncate=False)
    # the index at which a pair turns r times, base**(-2i/d)·L/2π = r
    for index, r in ((low, 32), (high, 1)):
        assert 10000 ** (-2 * index / 128) * 4096 / (2 * math.pi) == pytest.approx(r)
    code = X.ramp_in_pairs(theta, 4096)
    assert code.diff()[20:46].tolist() == pytest.approx([-1 / 26] * 26)
    assert (code.diff()[:20] == 0).all()
    assert (code.diff()[46:] == 0).all()


def test_the_published_ramp_would_run_backwards_where_we_refuse():
    # base 10, L = 10⁶: every pair turns more than 32 times, so all should be kept
    theta = plain(128, 10.0)
    assert X.NTKByParts(4.0, 10**6)(theta)[0].tolist() == theta.tolist()
    shipped, _ = theirs("yarn", 128, 10.0, factor=4.0, original_max_position_embeddings=10**6)
    assert shipped.tolist() == pytest.approx((theta / 4).tolist(), rel=FLOAT32)  # all are interpolated
    with pytest.raises(ValueError, match=r"got 1.0 and 32.0, which put the ramp from pair 236 down to pair 127"):
        X.YaRN(4.0, 10**6)(theta)
    # L = 4: none turns once, so all should be interpolated
    theta = plain(8)
    assert X.NTKByParts(4.0, 4)(theta)[0].tolist() == (theta / 4).tolist()
    shipped, _ = theirs("yarn", 8, 1.5, factor=4.0, original_max_position_embeddings=4)
    assert shipped.tolist() == pytest.approx(plain(8, 1.5).tolist(), rel=FLOAT32)  # all are kept
    with pytest.raises(ValueError, match="alpha and beta must leave pairs to mix"):
        X.YaRN(4.0, 4)(plain(8, 1.5))


def test_the_ramp_is_refused_from_where_its_ends_cross_and_not_before():
    # base 10, d = 128: c(32) = 128 at L = 2·32·100π = 20106.2, and 127 at 2·32·10^(127/64)·π = 19395.6
    fast = plain(128, 10.0)
    for length, truncate, refused in [(20_106, True, False), (20_107, True, True), (19_395, False, False),
                                      (19_396, False, True)]:  # fmt: skip
        if refused:
            with pytest.raises(ValueError, match=r"put the ramp from pair 12[78][.0-9]* down to pair 127"):
                X.ramp_range(fast, length, truncate=truncate)
        else:
            assert (X.ramp_in_pairs(fast, length, truncate=truncate) == 1).all()
    # Each pair turns 165 times and more in L = 10000, which is not enough to be refused: c(32) is 108.6.
    assert X.YaRN(4.0, 10_000)(fast)[0].tolist() == fast.tolist()
    # base 1.5, d = 8: c(1) = −1 at L = 2π·1.5^(−1/4) = 5.68, and 0 at 2π
    slow = plain(8, 1.5)
    for length, truncate, refused in [(5, True, True), (6, True, False), (6, False, True), (7, False, False)]:
        if refused:
            with pytest.raises(ValueError, match="put the ramp from pair 0 down to pair -"):
                X.ramp_range(slow, length, truncate=truncate)
        else:
            assert X.ramp_range(slow, length, truncate=truncate)[0] == 0
    # Ends that coincide are moved apart by a thousandth, as published, so that nothing is divided by 0.
    for theta, length, ends in ((fast, 20_106, (127, 127.001)), (slow, 6, (0, 0.001))):
        assert [end.item() for end in X.ramp_range(theta, length)] == pytest.approx(ends, abs=1e-12)
    assert X.ramp_in_pairs(slow, 6).tolist() == [1, 0, 0, 0]


@given(pairs, factors, st.floats(0, 2), st.floats(0, 2))
def test_yarns_factor_is_the_papers(n, factor, weight, other):
    assert X.yarn_factor(factor) == pytest.approx(0.1 * math.log(factor) + 1)  # √(1/t), equation (22)
    scale = yarn_apply_mscale({"rope_type": "yarn", "factor": factor, "mscale_all_dim": weight}, (2 * n) ** -0.5)
    assert X.softmax_scale(2 * n, factor, weight) == pytest.approx(scale)


@given(seeds, factors)
def test_scores_scale_by_the_square_of_the_factor(seed, factor):
    q, k = random(2, 1, 1, 6, 8, seed=seed)
    plain_q, plain_k = RotaryEmbedding(8, scaling=X.YaRN(factor, 512, attention_factor=1.0))(q, k)
    scaled_q, scaled_k = RotaryEmbedding(8, scaling=X.YaRN(factor, 512))(q, k)
    scores = scaled_q @ scaled_k.mT
    assert torch.allclose(scores, X.yarn_factor(factor) ** 2 * (plain_q @ plain_k.mT), atol=1e-12)


def test_with_partial_rotary_the_entries_that_do_not_turn_miss_the_factor():
    q, k = random(2, 1, 1, 6, 8)
    scaling = X.YaRN(16.0, 512)
    f = X.yarn_factor(16.0)
    unscaled = RotaryEmbedding(8, rotary_dim=4, scaling=dataclasses.replace(scaling, attention_factor=1.0))(q, k)
    found = (lambda a, b: a @ b.mT)(*RotaryEmbedding(8, rotary_dim=4, scaling=scaling)(q, k))
    turned, still = (a @ b.mT for a, b in [(unscaled[0][..., :4], unscaled[1][..., :4]), (q[..., 4:], k[..., 4:])])
    assert torch.allclose(found, f**2 * turned + still)
    assert largest(found - f**2 * (turned + still)) > 0.1


@given(pairs, lengths, st.integers(1, 10**6))
def test_dynamic_yarn_is_yarn_of_the_length_so_far(n, trained, length):
    theta = plain(2 * n, 10000.0)
    scaled, attention = X.DynamicYaRN(trained, beta=16.0)(theta, length)
    if length <= trained:
        assert attention == 1
        assert torch.equal(scaled, theta)
    else:
        other = theirs(
            "yarn", 2 * n, 10000.0, factor=length / trained, original_max_position_embeddings=trained, beta_fast=16.0
        )
        assert_same((scaled, attention), other)


def test_fixing_a_dynamic_method():
    theta = plain(8)
    for method in (X.DynamicNTK(32, 2.0), X.DynamicYaRN(32, beta=4.0, truncate=False)):
        fixed = method.fixed(80)
        assert not fixed.follows_length
        for length in (None, 10, 80, 500):
            assert torch.equal(fixed(theta, length)[0], method(theta, 80)[0])
            assert fixed(theta, length)[1] == method(theta, 80)[1]
        with pytest.raises(ValueError, match="target_length must be an integer >= 32, got 31"):
            method.fixed(31)


@pytest.mark.parametrize("name", FREQUENCIES)
def test_types_devices_and_what_was_given(name, device):
    wide = plain(8)
    method = example(name)
    scaled, _ = method(wide, 40)
    narrow = plain(8, dtype=torch.float32, device=device)
    before = narrow.clone()
    found, factor = method(narrow, 40)
    assert (found.dtype, found.device.type) == (torch.float32, device.type)
    assert isinstance(factor, float)
    assert torch.equal(narrow, before)
    assert found.tolist() == pytest.approx(scaled.tolist(), rel=1e-5)


@pytest.mark.parametrize("name", FREQUENCIES)
def test_a_method_can_be_compared_and_hashed(name):
    method = example(name)
    assert method == example(name)
    assert hash(method) == hash(example(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.factor = 2.0


# --- Why length fails ---


def test_which_pairs_have_turned():
    for dim, base, trained in [(128, 10000.0, 2048), (128, 10000.0, 4096), (128, 500000.0, 8192), (64, 1e6, 100)]:
        expected = [(trained - 1) * base ** (-2 * i / dim) / (2 * math.pi) >= 1 for i in range(dim // 2)]
        assert X.turned(plain(dim, base), trained).tolist() == expected
        assert sum(expected) == turned_pairs(trained, dim, base)
    # 6 steps of one radian are less than a turn, 7 are more
    assert X.turned(plain(2), 7).tolist() == [False]
    assert X.turned(plain(2), 8).tolist() == [True]


@given(pairs, bases, st.integers(2, 500), st.integers(0, 500))
def test_overshoot_is_the_largest_new_angle(n, base, trained, more):
    theta = plain(2 * n, base)
    for scaled in (theta, X.NTKAware(2.0)(theta)[0]):
        found = X.overshoot(theta, trained, trained + more, scaled)
        for i in range(n):
            seen = (trained - 1) * theta[i].item()
            new = (trained + more - 1) * scaled[i].item() - seen
            expected = 0 if seen >= 2 * math.pi else max(new, 0)
            assert found[i].item() == pytest.approx(expected, abs=1e-9)


def test_interpolation_goes_less_than_one_step_beyond_what_was_trained():
    theta, trained, target = plain(128), 4096, 16384
    for scaled in (
        X.Interpolation(4.0)(theta)[0],
        X.NTKByParts(4.0, trained)(theta)[0],
        X.YaRN(4.0, trained)(theta)[0],
    ):
        beyond = X.overshoot(theta, trained, target, scaled)
        assert (beyond <= theta * (1 - 1 / 4) + 1e-9).all()
    ntk = X.overshoot(theta, trained, target, X.NTKAware(4.0)(theta)[0])
    assert ntk.max() > 1  # those between the kept and the interpolated end go further, by a radian and more
    assert X.overshoot(theta, trained, target, theta).max() > ntk.max()


def test_stretch():
    theta = plain(128)
    assert X.stretch(X.Interpolation(4.0), theta).tolist() == pytest.approx([4] * 64)
    assert X.stretch(X.DynamicNTK(512), theta, 2048)[-1].item() == pytest.approx(4)
    for method in (X.YaRN(4.0, 4096), X.NTKByParts(4.0, 4096), X.Llama3()):
        found = X.stretch(method, theta)
        assert found[0] == 1
        assert found[-1].item() == pytest.approx(method.factor)
        assert (found.diff() > -1e-12).all()
    with pytest.raises(ValueError, match="as many as inv_freq, 64, got 32"):
        X.stretch(X.Partial(0.5), theta)


# --- LongRoPE's search ---


def test_the_search_finds_factors_that_are_known():
    theta = plain(16)
    target = torch.tensor([1.0, 1.0, 1.2, 1.5, 2.0, 3.0, 4.0, 4.5], dtype=torch.float64)
    calls = []

    def objective(factors):
        calls.append(factors)
        return (factors.log() - target.log()).square().sum().item()

    def search():
        generator = torch.Generator().manual_seed(0)
        return X.search_factors(objective, theta, 4.0, 512, generations=40, generator=generator)

    found = search()
    known = [X.stretch(m, theta) for m in (X.Interpolation(4.0), X.NTKAware(4.0), X.YaRN(4.0, 512))]
    assert found.value < min(objective(factors) for factors in known) / 20
    assert found.value == objective(found.factors) == found.history[-1]
    assert len(found.history) == 41
    assert found.history == sorted(found.history, reverse=True)
    assert found.history[0] <= min(objective(factors) for factors in known)
    for factors in calls:
        assert factors.dtype == torch.float64
        assert (factors >= 1).all()
        assert (factors <= 5).all()
        assert (factors.diff() >= 0).all()
    assert len(calls) < 32 * 41 + 10
    assert torch.equal(search().factors, found.factors)
    method = X.LongRoPE([1.0] * 8, found.factors, 512, 4.0)
    assert method(theta, 2048)[0].tolist() == pytest.approx((theta / found.factors).tolist())


def test_the_search_is_never_worse_than_what_it_starts_from():
    theta = plain(8)

    def objective(factors):  # best exactly at NTK-aware
        return largest(factors - X.stretch(X.NTKAware(4.0), theta))

    found = X.search_factors(objective, theta, 4.0, 512, generations=1, population=8)
    assert found.value == 0
    assert X.search_factors(lambda f: 1, theta, 1.0, 512, generations=1, population=8).factors.tolist() == [1] * 4


def test_what_the_search_tries_first():
    # s = 1: all three known methods are ones, so each of the others is a variant of ones, kept within 1 … 1.25.
    tried = []

    def objective(factors):
        tried.append(factors)
        return 0.0

    X.search_factors(objective, plain(128), 1.0, 512, generations=1, population=1000,
                     generator=torch.Generator().manual_seed(0))  # fmt: skip
    first = torch.stack(tried[:1000])
    assert (first[:3] == 1).all()
    assert len(tried) == 1000 + 750  # a quarter survives
    assert first.max() == 1.25
    # Three entries in ten are moved, one half of them downwards, where they are set to 1 again.
    moved = (first[3:] > 1).double().mean().item()
    assert moved == pytest.approx(0.15, abs=0.01)
    # By up to a hundredth or up to a factor of e, and all between, evenly in the logarithm.
    most = first[3:].amax(1).log()
    assert (most > 0.0075).double().mean() > 0.9
    for low, high, share in ((0.01, 0.0316, 0.25), (0.0316, 0.1, 0.25)):
        inside = ((most > 0.95 * low) & (most <= 0.95 * high)).double().mean().item()
        assert inside == pytest.approx(share, abs=0.06)
    # Each is in order.
    assert (first.diff() >= 0).all()


def test_the_search_works_with_the_least_population():
    found = X.search_factors(lambda f: f.sum().item(), plain(8), 2.0, 512, generations=1, population=8)
    assert len(found.history) == 2


def test_the_search_refuses():
    theta = plain(8)
    for options, error, message in [
        ({"generations": 0}, ValueError, "generations must be an integer >= 1"),
        ({"population": 7}, ValueError, "population must be an integer >= 8"),
        ({"generator": 0}, TypeError, "generator must be a torch.Generator or None, got 0"),
        ({"objective": lambda f: math.nan}, ValueError, "the objective's value must be a finite number"),
        ({"objective": lambda f: f}, TypeError, "the objective's value must be a finite number"),
        ({"factor": 0.5}, ValueError, "factor must be a finite number >= 1"),
    ]:
        arguments = {"objective": lambda f: 0.0, "inv_freq": theta, "factor": 4.0, "trained_length": 512} | options
        with pytest.raises(error, match=message):
            X.search_factors(**arguments)


# --- Distances ---

RULES = {
    X.ReRoPE(8): lambda m, n: min(m - n, 8),
    X.LeakyReRoPE(8, 4.0): lambda m, n: m - n if m - n < 8 else 8 + (m - n - 8) / 4,
    X.SelfExtend(8, 4): lambda m, n: m - n if m - n < 8 else m // 4 - n // 4 + 8 - 8 // 4,
    X.SelfExtend(7, 3): lambda m, n: m - n if m - n < 7 else m // 3 - n // 3 + 7 - 7 // 3,  # there is a step at 7
}


def turn(x, angles):
    """Pair by pair, interleaved, in plain complex numbers; x (d,), angles (d/2,)."""
    z = torch.view_as_complex(x.reshape(-1, 2)) * torch.exp(1j * angles)
    return torch.view_as_real(z).flatten()


@pytest.mark.parametrize("method", RULES, ids=str)
def test_relative_distances_and_scores_by_brute_force(method):
    theta, length = plain(8, 100.0), 40
    place = torch.arange(length)
    relative = method.relative(place, place)
    q, k = random(2, 1, 1, length, 8)
    scores = method.scores(q, k, place, place, theta)
    assert (relative.shape, relative.dtype, scores.shape) == ((length, length), torch.float64, (1, 1, length, length))
    for m, n in itertools.product(range(length), repeat=2):
        seen = RULES[method](m, n)
        assert relative[m, n].item() == pytest.approx(seen)
        assert scores[0, 0, m, n].item() == pytest.approx((turn(q[0, 0, m], seen * theta) @ k[0, 0, n]).item())


@pytest.mark.parametrize("name", DISTANCES)
@given(trained=st.integers(9, 40))
def test_reach_by_brute_force(name, trained):
    method = example(name)
    reach = method.reach(trained)

    def furthest(length):
        place = torch.arange(length)
        return method.relative(place, place).max().item()

    if reach == math.inf:
        assert furthest(300) <= trained - 1
    else:
        assert isinstance(reach, int)
        assert furthest(reach) <= trained - 1 < furthest(reach + 1)


def test_reach_as_the_papers_say():
    assert X.SelfExtend(1024, 8).reach(4096) == (4096 - 1024) * 8 + 1024
    # a group that is larger than the window, and a window that is no multiple of it
    for window, group in [(3, 4), (5, 2), (7, 3)]:
        method, place = X.SelfExtend(window, group), torch.arange(200)
        furthest = method.relative(place, place).max(dim=1).values.cummax(0).values
        assert (furthest <= 15).sum().item() == method.reach(16)
    with pytest.raises(ValueError, match="trained_length must be above the window, 8, got 8"):
        X.ReRoPE(8).reach(8)


def test_the_limits_of_the_rules():
    place = torch.arange(30)
    plain_distances = (place[:, None] - place).double()
    for method in (X.LeakyReRoPE(8, 1.0), X.SelfExtend(8, 1), X.ReRoPE(30), X.SelfExtend(30, 4)):
        assert torch.allclose(method.relative(place, place), plain_distances)
    stopped = X.LeakyReRoPE(8, 1e12).relative(place, place)
    assert torch.allclose(stopped, X.ReRoPE(8).relative(place, place))


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("name", DISTANCES)
def test_scores_of_batched_positions_and_half_types(name, layout):
    method, theta = example(name), plain(8, 100.0)
    q, k = random(2, 2, 3, 20, 8)
    starts = torch.tensor([0, 7])
    places = torch.arange(20) + starts[:, None]
    both = method.scores(q, k, places, places, theta, layout=layout)
    for row in range(2):
        alone = method.scores(q[row : row + 1], k[row : row + 1], places[row], places[row], theta, layout=layout)
        assert torch.allclose(both[row], alone[0])
    rounded = [x.to(torch.bfloat16) for x in (q, k)]
    low = method.scores(*rounded, places, places, theta, layout=layout)
    assert low.dtype == torch.float32
    assert largest(low - both) < 0.3


def test_positions_that_are_refused():
    method = X.ReRoPE(8)
    for positions, message in [
        ([0, 1], "positions must be a tensor, got list"),
        (torch.tensor([0.0], dtype=torch.bfloat16), "integers, float32 or float64, got dtype torch.bfloat16"),
        (torch.tensor([True]), "got dtype torch.bool"),
    ]:
        with pytest.raises(TypeError, match=message):
            method.relative(positions, torch.arange(2))
        with pytest.raises(TypeError, match=message):
            X.LogN(32).query_scale(positions)


# --- Log-n ---


@given(st.integers(2, 10**6))
def test_log_n(trained):
    positions = torch.tensor([0, trained - 2, trained - 1, trained, 2 * trained, 10**7])
    expected = [max(1.0, math.log(m + 1) / math.log(trained)) for m in positions.tolist()]
    assert X.LogN(trained).query_scale(positions).tolist() == pytest.approx(expected)
    assert X.LogN(trained).query_scale(positions[:3]).tolist() == pytest.approx([1, 1, 1])


# --- The cache ---


def test_arrival_lengths():
    assert X.arrival_lengths(4).tolist() == [1, 2, 3, 4]
    assert X.arrival_lengths(4, 4).tolist() == [4] * 4
    with pytest.raises(ValueError, match="prefill must be an integer >= 1 and <= 4, got 5"):
        X.arrival_lengths(4, 5)


@pytest.mark.parametrize("method", [X.DynamicNTK(16, 2.0), X.DynamicYaRN(16, beta=2.0)])
def test_cache_error_by_brute_force(method):
    theta, length = plain(8, 100.0), 40
    q, k = random(8, seed=1), random(length, 8)
    found = X.cache_error(method, q, k, theta, prefill=20)
    now, factor = method(theta, length)
    query = turn(q, now * (length - 1)) * factor
    for n in range(length):
        assert (turn(k[n], now * n) * factor @ query).item() == pytest.approx(found.exact[n].item())
        then, factor_then = method(theta, max(20, n + 1))
        assert (turn(k[n], then * n) * factor_then @ query).item() == pytest.approx(found.cached[n].item())
    assert found.lengths.tolist() == [20] * 20 + list(range(21, 41))
    assert found.largest == largest(found.exact - found.cached) > 0.5


def test_the_history_of_the_search_begins_with_the_best_of_the_first_generation():
    values = []

    def objective(factors):
        values.append((factors - 2).square().sum().item())
        return values[-1]

    draws = torch.Generator().manual_seed(3)
    found = X.search_factors(objective, plain(8), 4.0, 512, generations=2, population=12, generator=draws)
    assert len(values) == 12 + 2 * 9  # a quarter survives
    assert found.history == [min(values[:n]) for n in (12, 21, 30)]


def test_only_what_follows_the_length_makes_kept_keys_wrong():
    unsafe = {name for name, method in X.METHODS.items() if not method.cache_safe}
    assert unsafe == {"dynamic_ntk", "dynamic_yarn", "longrope"}


def test_an_extended_layer_needs_a_head():
    with pytest.raises(ValueError, match="n_heads must be an integer >= 1, got 0"):
        X.ExtendedAttention(8, 0, method="linear", options={"factor": 2.0})


def test_an_extended_layer_projects_from_position_0():
    layer = X.ExtendedAttention(8, 2, method="linear", options={"factor": 2.0}, keep="rotated")
    x = torch.ones(1, 3, 8)
    for ours, expected in zip(layer.project(x), layer.project(x, torch.arange(3)), strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize("name", FREQUENCIES)
def test_cache_safety_is_as_the_table_says(name):
    method, theta = example(name), plain(8, 100.0)
    if name == "partial":
        return  # its frequencies are fixed, and fewer than the pairs of a key
    q, k = random(2, 3, 8, seed=1), random(2, 3, 60, 8)
    error = X.cache_error(method, q, k, theta).largest
    assert (error == 0) == X.METHODS[name].cache_safe == (not method.follows_length)
    assert X.cache_error(method, q[:, :, :], k[:, :, :20], theta, prefill=20).largest == 0
    if hasattr(method, "fixed"):
        assert X.cache_error(method.fixed(128), q, k, theta).largest == 0


def test_cache_error_refuses():
    theta = plain(8)
    with pytest.raises(ValueError, match=r"q must be \(…, d\) and k \(…, T, d\).*got \(7,\) and \(5, 8\)"):
        X.cache_error(X.DynamicNTK(16), random(7), random(5, 8), theta)
    with pytest.raises(ValueError, match="q must be"):
        X.cache_error(X.DynamicNTK(16), random(1)[0], random(8), theta)
    with pytest.raises(ValueError, match=r"with the same d, got \(8,\) and \(8,\)"):
        X.cache_error(X.DynamicNTK(16), random(8), random(8), theta)
    with pytest.raises(TypeError, match="k must be a floating-point tensor"):
        X.cache_error(X.DynamicNTK(16), random(8), torch.ones(5, 8).long(), theta)


def decode(layer, x, prefill):
    """The output for the last token, the first ``prefill`` tokens at once and then one at a time."""
    cache = KVCache(x.shape[1])
    steps = [x[:, :prefill], *x[:, prefill:].split(1, dim=1)]
    return [layer(step, cache=cache)[:, -1] for step in steps][-1]


def extended(name, options=None, keep=None, seed=0, **rest):
    torch.manual_seed(seed)
    options = EXAMPLES[name] if options is None else options
    arguments = {"n_kv_heads": 2, "base": 100.0, "dtype": torch.float64} | rest
    return X.ExtendedAttention(32, 4, method=name, options=options, keep=keep, **arguments)


@pytest.mark.parametrize("name", ["dynamic_ntk", "dynamic_yarn", "longrope"])
@torch.no_grad()
def test_the_two_remedies(name):
    x = 3 * random(2, 48, 32)
    rotated, unrotated = extended(name, keep="rotated"), extended(name)
    exact = rotated(x)[:, -1]
    assert largest(decode(rotated, x, 20) - exact) > 1e-3
    assert largest(decode(rotated, x[:, :30], 20) - rotated(x[:, :30])[:, -1]) < 1e-12  # all within L
    assert largest(decode(unrotated, x, 20) - exact) < 1e-12
    assert largest(decode(unrotated, x, 1) - exact) < 1e-12
    if name == "longrope":
        return
    method = rotated.method.fixed(64)
    torch.manual_seed(0)
    fixed = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, scaling=method)
    assert largest(decode(fixed, x, 20) - fixed(x)[:, -1]) < 1e-12
    assert largest(fixed(x)[:, -1] - exact) > 1e-3  # another model than the dynamic one: its base is that of 64 tokens
    assert largest(fixed(torch.cat((x, x), 1)[:, :64])[:, -1] - rotated(torch.cat((x, x), 1)[:, :64])[:, -1]) < 1e-12


@pytest.mark.parametrize("name", X.METHODS)
@torch.no_grad()
def test_by_default_a_cache_changes_nothing(name):
    layer, x = extended(name), 3 * random(2, 48, 32)
    once = layer(x)
    for prefill in (1, 20, 40):
        assert largest(decode(layer, x, prefill) - once[:, -1]) < 1e-12
    safe = X.METHODS[name].cache_safe and name not in DISTANCES
    assert layer.keep == ("rotated" if safe else "unrotated")
    assert X.ExtendedAttention.of(layer, method=name, options=EXAMPLES[name]).keep == layer.keep


@pytest.mark.parametrize("name", FREQUENCIES)
@torch.no_grad()
def test_rotated_keys_are_refused_where_frequencies_follow_the_length(name):
    if name == "partial":
        return  # no scaling
    torch.manual_seed(0)
    like = {"base": 100.0, "dtype": torch.float64, "scaling": example(name)}
    layer, model = RotaryAttention(32, 4, 2, **like), LlamaModel(32, 32, 48, 2, 4, **like)
    tokens = torch.randint(32, (1, 40))
    x = model.embedding(tokens)
    if X.METHODS[name].cache_safe:
        assert largest(decode(layer, x, 20) - layer(x)[:, -1]) < 1e-12
        caches = model.new_caches(40)
        parts = [model(piece, caches=caches) for piece in tokens.split([36, 1, 3], 1)]
        assert largest(torch.cat(parts, 1) - model(tokens)) < 1e-12
        return
    cache, caches = KVCache(40), model.new_caches(40)
    for call in (
        lambda: layer(x, cache=cache),
        lambda: model(tokens, caches=caches),
        lambda: model.generate(tokens, 2),
    ):
        with pytest.raises(ValueError, match=r"cache must be None .* got a cache with \w+\(.*trained_length=32"):
            call()
    assert cache.length == caches[0].length == 0
    assert layer(x).isfinite().all()


@torch.no_grad()
def test_a_function_of_ones_own_is_told_no_length_beside_a_cache():
    x, told = random(1, 9, 32), []

    def halved(theta, length):
        told.append(length)
        return theta / 2, 1.5

    layer = RotaryAttention(32, 4, dtype=torch.float64, scaling=halved)
    assert largest(decode(layer, x, 5) - layer(x)[:, -1]) < 1e-12
    assert told == [None] * 5 + [9]
    following = RotaryAttention(
        32, 4, dtype=torch.float64, scaling=lambda theta, length: X.DynamicNTK(32)(theta, length)
    )
    with pytest.raises(ValueError, match="length must be known where the frequencies follow it, got None"):
        following(x, cache=KVCache(9))


@pytest.mark.parametrize("rope_type", ["linear", "dynamic"])
@torch.no_grad()
def test_transformers_itself_makes_the_error(rope_type):
    model, _ = tiny_llama(rope_type)
    tokens = torch.randint(32, (1, 60), generator=torch.Generator().manual_seed(1))
    whole = model(tokens).logits[:, -1]
    model, _ = tiny_llama(rope_type)  # the other has grown its frequencies
    out = model(tokens[:, :32], use_cache=True)
    for step in tokens[:, 32:].split(1, dim=1):
        out = model(step, past_key_values=out.past_key_values, use_cache=True)
    error = largest(out.logits[:, -1] - whole)
    assert error > 0.1 if rope_type == "dynamic" else error < 1e-4


# --- In an attention layer ---


@pytest.mark.parametrize("name", [name for name in FREQUENCIES if name != "partial"])
@torch.no_grad()
def test_a_frequency_method_by_name_is_the_scaling_of_the_layer(name):
    x = random(2, 48, 32)
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, scaling=example(name))
    layer = extended(name)
    assert torch.equal(layer(x), other(x))
    late = extended(name, keep="unrotated")
    assert torch.allclose(late(x), other(x))
    assert torch.allclose(late(x, is_causal=False), other(x, is_causal=False))
    assert torch.allclose(
        late(x, is_causal=False, return_weights=True)[1], other(x, is_causal=False, return_weights=True)[1]
    )


@torch.no_grad()
def test_partial_rotary_by_name_is_the_rotary_dim_of_the_layer():
    x = random(2, 10, 32)
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, rotary_dim=4)
    assert torch.equal(extended("partial")(x), other(x))
    torch.manual_seed(0)
    other = RotaryAttention(32, 4, 2, head_dim=16, base=100.0, dtype=torch.float64, rotary_dim=8)
    assert torch.equal(extended("partial", head_dim=16)(x), other(x))
    frequencies = X.Partial(0.5)(plain(8, 100.0))[0]
    assert torch.allclose(extended("partial").rotary.inv_freq, frequencies, atol=1e-15)
    with pytest.raises(TypeError, match="method must be one that changes frequencies"):
        X.rotary_options(X.ReRoPE(8), 8)


def reference(layer, x, relative, is_causal=True, mask=None, layout="interleaved"):
    """Attention written out: every score by one rotation through the distance that is seen."""
    q, k, v = (
        linear(x).unflatten(-1, (-1, 8)).transpose(1, 2) for linear in (layer.q_proj, layer.k_proj, layer.v_proj)
    )
    if layout == "half":
        q, k = (h.unflatten(-1, (2, 4)).transpose(-1, -2).flatten(-2) for h in (q, k))
    k, v = (h.repeat_interleave(q.shape[1] // h.shape[1], 1) for h in (k, v))
    angles = relative[..., None] * plain(8, 100.0)
    angles = angles if angles.ndim == 3 else angles[:, None]
    z = torch.view_as_complex(q.unflatten(-1, (4, 2)).contiguous())[..., :, None, :] * torch.exp(1j * angles)
    scores = (z * torch.view_as_complex(k.unflatten(-1, (4, 2)).contiguous()).conj()[..., None, :, :]).real.sum(-1)
    scores = scores / math.sqrt(8)
    if is_causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1), -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    weights = scores.softmax(-1)
    return layer.out_proj((weights @ v).transpose(1, 2).flatten(-2)), weights


@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("name", DISTANCES)
@torch.no_grad()
def test_a_distance_method_in_the_layer(name, layout):
    layer, x, place = extended(name, layout=layout), random(2, 30, 32), torch.arange(30)
    assert layer.keep == "unrotated"
    relative = layer.method.relative(place, place)
    out, weights = layer(x, return_weights=True)
    expected = reference(layer, x, relative, layout=layout)
    assert torch.allclose(out, expected[0])
    assert torch.allclose(weights, expected[1])
    assert torch.allclose(layer(x, is_causal=False), reference(layer, x, relative, False, layout=layout)[0])
    window = (place[:, None] - place) < 20
    assert torch.allclose(layer(x, mask=window), reference(layer, x, relative, mask=window, layout=layout)[0])
    bias = random(30, 30)
    found = layer(x, mask=bias, is_causal=False)
    assert torch.allclose(found, reference(layer, x, relative, False, bias, layout)[0])
    assert largest(out - RotaryAttention.forward(extended("linear", {"factor": 1.0}, layout=layout), x)) > 1e-3
    assert largest(decode(layer, x, 12) - out[:, -1]) < 1e-12
    packed = packed_positions(torch.tensor([[0] * 13 + [1] * 17, [0] * 30]))
    relative = layer.method.relative(packed, packed)
    assert torch.allclose(layer(x, packed), reference(layer, x, relative, layout=layout)[0])


@pytest.mark.parametrize("name", DISTANCES)
def test_gradients_flow_through_a_distance_method(name):
    layer, x = extended(name), random(1, 12, 32).requires_grad_()
    layer(x).sum().backward()
    assert x.grad.isfinite().all()
    step = 1e-6 * random(1, 12, 32, seed=5)
    with torch.no_grad():
        change = (layer(x + step) - layer(x - step)).sum() / 2
    assert change.item() == pytest.approx((x.grad * step).sum().item(), rel=1e-4)


@torch.no_grad()
def test_log_n_in_the_layer():
    layer, x = extended("log_n"), random(2, 48, 32)
    other = extended("linear", {"factor": 1.0})
    assert torch.allclose(layer(x[:, :32]), other(x[:, :32]), atol=1e-14)
    out, weights = layer(x, return_weights=True)
    place = torch.arange(48)
    q, k, _ = RotaryAttention.project(other, x)
    scores = q @ k.repeat_interleave(2, 1).mT / math.sqrt(8) * X.LogN(32).query_scale(place)[:, None]
    scores = scores.masked_fill(torch.ones(48, 48, dtype=torch.bool).triu(1), -math.inf)
    assert torch.allclose(weights, scores.softmax(-1))
    assert largest(decode(layer, x, 20) - out[:, -1]) < 1e-12
    assert torch.allclose(layer(x, place.expand(2, -1)), out)
    assert torch.allclose(extended("log_n", keep="unrotated")(x), out)


@pytest.mark.parametrize("name", X.METHODS)
@pytest.mark.parametrize("layout", ["interleaved", "half"])
@torch.no_grad()
def test_a_layer_that_is_there_already_takes_a_method(name, layout):
    x, like = random(2, 40, 24), {"base": 100.0, "layout": layout, "bias": True, "dtype": torch.float64}
    layer = RotaryAttention(24, 4, 2, head_dim=8, **like).eval()
    other = X.ExtendedAttention(24, 4, 2, head_dim=8, method=name, options=EXAMPLES[name], **like)
    other.load_state_dict(layer.state_dict())
    longer = X.ExtendedAttention.of(layer, method=name, options=EXAMPLES[name])
    assert torch.equal(longer(x), other(x))
    assert [id(p) for p in longer.parameters()] == [id(p) for p in layer.parameters()]
    assert not longer.training
    assert X.ExtendedAttention.of(layer.train(), method=name, options=EXAMPLES[name], keep="unrotated").training


@torch.no_grad()
def test_a_layer_that_turns_in_part_takes_a_method():
    x = random(2, 40, 32)
    layer = RotaryAttention(32, 4, base=100.0, rotary_dim=4, dtype=torch.float64)
    longer = X.ExtendedAttention.of(layer, method="ntk", options={"factor": 2.0})
    assert longer.rotary.rotary_dim == 4
    layer.rotary.scaling = X.NTKAware(2.0)
    assert torch.equal(longer(x), layer(x))


@pytest.mark.parametrize("name", ["dynamic_yarn", "self_extend", "log_n"])
@torch.no_grad()
def test_half_types_in_the_layer(name, device):
    x = random(2, 40, 32, dtype=torch.float32)
    exact = extended(name, dtype=torch.float32, keep="unrotated")
    half = extended(name, dtype=torch.float32, keep="unrotated").to(device, torch.bfloat16)
    out = half(x.to(device, torch.bfloat16))
    assert (out.dtype, out.device.type) == (torch.bfloat16, device.type)
    assert largest(out.cpu().float() - exact(x)) < 0.05 * largest(exact(x))


def test_layers_that_are_refused():
    with pytest.raises(ValueError, match=r"name must be one of .*got 'alibi'"):
        extended("alibi", {})
    with pytest.raises(ValueError, match="keep must be one of 'rotated', 'unrotated', got 'both'"):
        extended("linear", keep="both")
    with pytest.raises(ValueError, match="keep must be one of 'unrotated', got 'rotated'"):
        extended("rerope", keep="rotated")
    layer = extended("rerope")
    with pytest.raises(ValueError, match=r"x must be \(batch, seq, 32\), got \(2, 5, 31\)"):
        layer(random(2, 5, 31))
    with pytest.raises(ValueError, match="positions must be None with a cache of unrotated keys"), torch.no_grad():
        layer(random(2, 5, 32), torch.arange(5), cache=KVCache(8))
    # a tensor of positions does not say how long the text is
    for keep in ("rotated", "unrotated"):
        with pytest.raises(ValueError, match="length must be known where the frequencies follow it, got None"):
            extended("dynamic_ntk", keep=keep)(random(2, 5, 32), torch.arange(5))


# --- The registry ---


def test_every_method_is_made_by_name():
    assert set(EXAMPLES) == set(X.METHODS)
    for name, method in X.METHODS.items():
        assert method.name == name
        assert isinstance(example(name), method.form)
        assert dataclasses.is_dataclass(method.form)
    with pytest.raises(TypeError):
        X.METHODS["linear"] = None


@pytest.mark.parametrize("name", FREQUENCIES)
def test_what_changes_within_the_trained_length_is_measured(name):
    method, theta = example(name), plain(8, 100.0)
    unchanged = all(
        scaled.shape == theta.shape and torch.equal(scaled, theta) and factor == 1
        for scaled, factor in (method(theta, length) for length in (1, 16, 32))
    )
    assert X.METHODS[name].changes_within == (not unchanged)


def test_what_the_other_methods_change_within_the_trained_length_is_measured():
    place = torch.arange(32)
    for name in DISTANCES:
        changed = not torch.equal(example(name).relative(place, place), (place[:, None] - place).double())
        assert X.METHODS[name].changes_within == changed
    assert (X.LogN(32).query_scale(place) == 1).all()
    assert not X.METHODS["log_n"].changes_within


def test_transformers_names_are_its_names():
    named = {method.transformers for method in X.METHODS.values()} - {None}
    assert set(ROPE_INIT_FUNCTIONS) <= named
    assert named - set(ROPE_INIT_FUNCTIONS) == {"rope_theta", "partial_rotary_factor"}


def test_the_years_are_those_of_the_first_publication():
    # Of preprints and posts; arXiv numbers begin with the year and the month.
    assert {name: method.year for name, method in X.METHODS.items()} == {
        "linear": 2023, "ntk": 2023, "dynamic_ntk": 2023, "ntk_by_parts": 2023, "yarn": 2023, "dynamic_yarn": 2023,
        "llama3": 2024, "longrope": 2024, "base": 2023, "partial": 2021, "proportional": 2024, "rerope": 2023,
        "leaky_rerope": 2023, "self_extend": 2024, "log_n": 2021,
    }  # fmt: skip


def test_the_table_and_its_sources():
    rows = X.methods_table()
    assert [row["name"] for row in rows] == list(X.METHODS)
    assert all(isinstance(cell, str) and cell for row in rows for cell in row.values())
    assert {row["trains"] for row in rows} == {"no", "yes", "optional"}
    references = (Path(__file__).parents[1] / "book" / "references.bib").read_text(encoding="utf-8")
    assert {row["source"] for row in rows} <= set(re.findall(r"^@\w+\{([^,]+),", references, re.M))
    assert {row["changes"] for row in rows} == {"frequencies", "distances", "queries"}


def test_a_kind_of_method_is_no_method():
    for kind in (X.Frequencies, X.Distances):
        with pytest.raises(TypeError, match="abstract"):
            kind()


# --- Bad arguments: an error, never a curve ---


@pytest.mark.parametrize(
    "name, options, error, message",
    [
        ("linear", {"factor": 0.5}, ValueError, "factor must be a finite number >= 1, got 0.5"),
        ("linear", {"factor": math.nan}, ValueError, "factor must be a finite number >= 1, got nan"),
        ("linear", {"factor": "4"}, TypeError, "factor must be a finite number >= 1, got '4'"),
        ("linear", {}, TypeError, r"options of 'linear' must be \(factor\), got \(\)"),
        ("linear", {"scale": 4.0}, TypeError, r"options of 'linear' must be \(factor\), got \(scale\)"),
        ("ntk", {"factor": 0.99}, ValueError, "factor must be"),
        ("dynamic_ntk", {"trained_length": 1}, ValueError, "trained_length must be an integer >= 2, got 1"),
        ("dynamic_ntk", {"trained_length": 32.0}, TypeError, "trained_length must be an integer"),
        ("dynamic_ntk", {"trained_length": 32, "factor": 0}, ValueError, "factor must be"),
        ("ntk_by_parts", {"alpha": 4.0}, ValueError, "alpha must be less than beta, got 4.0 and 4.0"),
        ("ntk_by_parts", {"alpha": 0}, ValueError, "alpha must be a finite number > 0"),
        ("ntk_by_parts", {"beta": math.nan}, ValueError, "beta must be a finite number, got nan"),
        ("ntk_by_parts", {"factor": 0.0}, ValueError, "factor must be"),
        ("ntk_by_parts", {"trained_length": 0}, ValueError, "trained_length must be"),
        ("yarn", {"alpha": 5.0}, ValueError, "alpha must be less than beta, got 5.0 and 4.0"),
        ("yarn", {"factor": 0.5}, ValueError, "factor must be"),
        ("yarn", {"truncate": "no"}, ValueError, "truncate must be one of True, False"),
        ("yarn", {"ramp": "linear"}, ValueError, "ramp must be one of 'pairs', 'turns'"),
        ("yarn", {"mscale": 1.0}, ValueError, "must be given together or not at all, got 1.0 and None"),
        ("yarn", {"mscale": 0, "mscale_all_dim": 1}, ValueError, "mscale must be a finite number > 0"),
        ("yarn", {"mscale": 1, "mscale_all_dim": 0}, ValueError, "mscale_all_dim must be a finite number > 0"),
        ("yarn", {"attention_factor": 0}, ValueError, "attention_factor must be a finite number > 0"),
        ("yarn", {"trained_length": 1}, ValueError, "trained_length must be"),
        ("dynamic_yarn", {"beta": 1.0}, ValueError, "alpha must be less than beta"),
        ("llama3", {"low_freq_factor": 4.0}, ValueError, "low_freq_factor must be less than high_freq_factor, got 4.0"),
        ("llama3", {"factor": 0.1}, ValueError, "factor must be"),
        ("llama3", {"trained_length": -1}, ValueError, "trained_length must be"),
        ("longrope", {"long_factors": [1, 2, 3, 0]}, ValueError, r"long_factors\[3\] must be a finite number > 0"),
        ("longrope", {"short_factors": []}, TypeError, r"short_factors must be one number for each pair, got \[\]"),
        ("longrope", {"short_factors": "1234"}, TypeError, "short_factors must be one number for each pair"),
        ("longrope", {"short_factors": 1.0}, TypeError, "short_factors must be one number for each pair"),
        ("longrope", {"factor": 0.5}, ValueError, "factor must be"),
        ("longrope", {"trained_length": 1}, ValueError, "trained_length must be"),
        ("longrope", {"attention_factor": math.inf}, ValueError, "attention_factor must be"),
        ("base", {"base": 0.5}, ValueError, "base must be a finite number >= 1"),
        ("partial", {"fraction": 0.0}, ValueError, "fraction must be a finite number > 0 and <= 1"),
        ("proportional", {"fraction": 1.5}, ValueError, "fraction must be"),
        ("proportional", {"factor": 0.5}, ValueError, "factor must be"),
        ("rerope", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("leaky_rerope", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("leaky_rerope", {"step": 0.5}, ValueError, "step must be a finite number >= 1"),
        ("self_extend", {"group": 0}, ValueError, "group must be an integer >= 1"),
        ("self_extend", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("log_n", {"trained_length": 1}, ValueError, "trained_length must be an integer >= 2"),
    ],
)  # fmt: skip
def test_bad_options(name, options, error, message):
    complete = options if name == "linear" or not options else EXAMPLES[name] | options
    with pytest.raises(error, match=message):
        X.make(name, **complete)


@pytest.mark.parametrize("name", FREQUENCIES)
@pytest.mark.parametrize(
    "theta, error, message",
    [
        (torch.tensor([1.0, math.nan]), ValueError, r"finite numbers >= 0.*got \[1.0, nan\]"),
        (torch.tensor([1.0, math.inf]), ValueError, "finite numbers >= 0"),
        (torch.tensor([1.0, -0.1]), ValueError, "finite numbers >= 0"),
        (torch.ones(2, 2), ValueError, r"got shape \(2, 2\)"),
        (torch.ones(0), ValueError, r"got shape \(0,\)"),
        (torch.ones(4, dtype=torch.bfloat16), TypeError, "float64 or float32, got dtype torch.bfloat16"),
        (torch.ones(4).long(), TypeError, "inv_freq must be a floating-point tensor"),
        ([1.0, 0.1], TypeError, "inv_freq must be a floating-point tensor, got list"),
    ],
)
def test_bad_frequencies(name, theta, error, message):
    with pytest.raises(error, match=message):
        example(name)(theta, 40)


def test_frequencies_from_which_no_base_can_be_read():
    for name in ("ntk", "dynamic_ntk", "yarn", "dynamic_yarn", "partial"):
        options = {"fraction": 1.0} if name == "partial" else EXAMPLES[name]
        with pytest.raises(ValueError, match=r"at least 2 pairs.*nor a value of d/\(d - 2\)"):
            X.make(name, **options)(plain(2), 40)
    twice = X.YaRN(4.0, 32, beta=4.0)(plain(8, 100.0))[0]
    for name in ("yarn", "partial"):
        with pytest.raises(ValueError, match=r"inv_freq must be base\*\*\(-2i/d\), as it is before any scaling"):
            example(name)(twice)
    with pytest.raises(ValueError, match=r"inv_freq must fall, for with base 1 no pair is slower.*got \[1.0, 1.0"):
        example("yarn")(plain(8, 1))
    with pytest.raises(ValueError, match="long_factors must be one for each of 3 pairs, got 4"):
        example("longrope")(plain(6), 40)
    with pytest.raises(ValueError, match=r"fraction must leave one of 4 pairs turning, got 0\.2"):
        X.Proportional(0.2)(plain(8))
    with pytest.raises(ValueError, match=r"fraction \* dim, rounded down, must be an even integer >= 2, got 3"):
        X.Partial(0.4)(plain(8))


@pytest.mark.parametrize("name", ["dynamic_ntk", "dynamic_yarn", "longrope"])
def test_bad_lengths(name):
    method, theta = example(name), plain(8)
    assert method.follows_length
    for length, error, message in [
        (None, ValueError, "length must be known where the frequencies follow it, got None"),
        (0, ValueError, "length must be an integer >= 1, got 0"),
        (40.0, TypeError, "length must be an integer >= 1, got 40.0"),
    ]:
        with pytest.raises(error, match=message):
            method(theta, length)


def test_other_bad_arguments():
    theta = plain(8)
    with pytest.raises(ValueError, match="target_length must be an integer >= 64, got 63"):
        X.length_factor(64, 63)
    with pytest.raises(ValueError, match="target_length must be an integer >= 64, got 63"):
        X.overshoot(theta, 64, 63, theta)
    with pytest.raises(ValueError, match="trained_length must be an integer >= 2, got 1"):
        X.turned(theta, 1)
    with pytest.raises(ValueError, match=r"dim must be at least 4, for d/\(d - 2\) has no value, got 2"):
        X.ntk_base(10000.0, 2, 4.0)
    with pytest.raises(ValueError, match="factor must be a finite number >= 1"):
        X.ntk_base(10000.0, 4, 0.5)
    with pytest.raises(ValueError, match="weight must be a finite number >= 0"):
        X.yarn_factor(4.0, -1.0)
    with pytest.raises(ValueError, match="head_dim must be an integer >= 1"):
        X.softmax_scale(0, 4.0, 1.0)
    for ramp in (X.ramp_in_turns, X.ramp_in_pairs):
        with pytest.raises(ValueError, match="alpha must be less than beta"):
            ramp(theta, 64, 4.0, 2.0)
        with pytest.raises(ValueError, match="trained_length must be an integer >= 2"):
            ramp(theta, 0)


# --- The module ---


def test_methods_compile_without_a_break_and_dynamic_ones_without_recompiling():
    torch._dynamo.reset()
    q, k = random(1, 2, 16, 8), random(1, 1, 16, 8)
    for name in ("yarn", "llama3", "longrope", "dynamic_ntk"):
        torch._dynamo.reset()
        counter = CompileCounter()
        rope = RotaryEmbedding(8, 100.0, scaling=example(name))
        compiled = torch.compile(rope, backend=counter, fullgraph=True)
        for offset in range(0, 64, 7):
            ours, eager = compiled(q, k, offset=offset), rope(q, k, offset=offset)
            assert torch.allclose(ours[0], eager[0])
            assert torch.allclose(ours[1], eager[1])
        assert counter.frame_count <= 4
    torch._dynamo.reset()
