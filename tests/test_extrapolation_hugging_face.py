"""Tests of the methods in tiny random models of transformers, with caches and padding. Results are compared with
transformers' own methods and with this package's layers."""

from __future__ import annotations

import pytest
import torch
import transformers

from ropebook import rope
from ropebook.extrapolation import METHODS, BaseChange, ExtendedAttention, from_transformers, install, make, ntk_base
from ropebook.extrapolation.loaded import Turn, turned_from
from ropebook.rotary_attention import LlamaModel
from tests.together import together

TRAINED = 64
WORDS = 50
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "vocab_size": WORDS,
    "max_position_embeddings": TRAINED,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
    "initializer_range": 0.4,
}
GROUPED = SIZES | {"num_key_value_heads": 2}
# this model rotates a quarter of the 32 entries
NEOX = SIZES | {"hidden_size": 128, "hidden_act": "gelu"}
KINDS = {
    "Llama": GROUPED,
    "Qwen2": GROUPED,
    "GPTNeoX": NEOX,
    "Gemma": GROUPED | {"head_dim": 8},
    # this model rotates neighbouring entries
    "Cohere": GROUPED,
}
# Gemma 3 has two tables, with base 10,000 in the layers with a window, and base a million in the others.
GEMMA3 = GROUPED | {"head_dim": 8, "sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]}
THEIRS = {
    "linear": {"rope_type": "linear", "factor": 4.0},
    "dynamic": {"rope_type": "dynamic", "factor": 1.0},
    "yarn": {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": TRAINED},
    "llama3": {
        "rope_type": "llama3",
        "factor": 8.0,
        "low_freq_factor": 1.0,
        "high_freq_factor": 4.0,
        "original_max_position_embeddings": TRAINED,
    },
}


def built(kind: str, num_hidden_layers: int = 2, **rope) -> torch.nn.Module:
    config = getattr(transformers, f"{kind}Config")(**KINDS[kind] | {"num_hidden_layers": num_hidden_layers})
    config.rope_parameters = config.rope_parameters | rope
    config.use_cache = True
    torch.manual_seed(0)
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    return model.double()


def tokens(length: int, rows: int = 2) -> torch.Tensor:
    return torch.randint(3, WORDS, (rows, length), generator=torch.Generator().manual_seed(length))


@torch.no_grad()
def logits(model: torch.nn.Module, text: torch.Tensor, **options) -> torch.Tensor:
    return model(text, **options).logits


@pytest.fixture(scope="module", params=KINDS)
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def model(kind):
    return built(kind)


# transformers' angles are rounded to float32.
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


@pytest.mark.parametrize("name", THEIRS)
def test_what_transformers_has_gives_the_same_logits(kind, model, name):
    text = tokens(100)
    plain = logits(model, text)
    theirs = built(kind, **THEIRS[name])
    theirs.load_state_dict(model.state_dict())
    method = from_transformers(THEIRS[name] | {"rope_theta": model.config.rope_parameters["rope_theta"]}, TRAINED)
    install(model, method.method)
    found = logits(model, text)
    install(model, None)
    torch.testing.assert_close(found, logits(theirs, text), **CLOSE)
    assert (found - plain).abs().max() > 0.01


def test_ntk_aware_is_another_base(kind, model):
    text = tokens(100)
    base, dim = model.config.rope_parameters["rope_theta"], 8
    theirs = built(kind, rope_theta=ntk_base(base, dim, 4.0))
    theirs.load_state_dict(model.state_dict())
    install(model, make("ntk", factor=4.0))
    found = logits(model, text)
    install(model, BaseChange(ntk_base(base, dim, 4.0)))
    again = logits(model, text)
    install(model, None)
    torch.testing.assert_close(found, logits(theirs, text), **CLOSE)
    torch.testing.assert_close(again, found)


# Dynamic NTK as published, with a factor of 1, differs from what transformers calls "dynamic".
OURS = {name: method.example for name, method in METHODS.items() if method.transformers in (None, "dynamic")}


@together("name", OURS)
def test_what_transformers_has_not_gives_the_logits_of_this_packages_layers(name):
    """Other tests compare this package's layers with brute force."""
    model, text = built("Llama"), tokens(100)
    ours = LlamaModel.from_transformers(model.state_dict(), model.config)
    plain = logits(model, text)
    for layer in ours.layers:
        layer.attention = ExtendedAttention.of(layer.attention, method=name, options=OURS[name])
    install(model, make(name, **OURS[name]))
    found = logits(model, text)
    with torch.no_grad():
        expected = ours(text)
    torch.testing.assert_close(found, expected, **CLOSE)
    assert (found - plain).abs().max() > 0.01


@pytest.mark.parametrize("name", [name for name in OURS if not name.startswith("dynamic")])
def test_a_cache_changes_nothing(kind, model, name):
    install(model, make(name, **OURS[name]))
    text = tokens(80)
    whole = logits(model, text)
    with torch.no_grad():
        cache = model(text[:, :72], use_cache=True).past_key_values
        for at in range(72, 80):
            last = model(text[:, at : at + 1], past_key_values=cache).logits
    install(model, None)
    torch.testing.assert_close(last[:, 0], whole[:, -1], **CLOSE)


def test_keys_of_a_cache_turn_by_the_frequencies_of_now():
    """In a model with one layer, the last token attends to the same keys with and without a cache.

    In a model with two layers, it doesn't. The keys of the second layer depend on the outputs of the first layer, and
    the cached keys come from outputs that were computed with the frequencies of earlier steps.
    """
    model, text = built("Llama", num_hidden_layers=1), tokens(90)
    install(model, make("dynamic_ntk", trained_length=TRAINED))
    whole = logits(model, text)
    with torch.no_grad():
        cache = model(text[:, :70], use_cache=True).past_key_values
        last = model(text[:, 70:], past_key_values=cache).logits
    torch.testing.assert_close(last, whole[:, 70:], **CLOSE)


@pytest.mark.parametrize("name", ["rerope", "log_n", "ntk_by_parts"])
@pytest.mark.parametrize("cache", ["dynamic", "static"])
def test_padding_on_the_left_and_room_in_the_cache_change_nothing(name, cache):
    model, text = built("Llama"), tokens(70, rows=1)
    install(model, make(name, **OURS[name]))
    options = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False}
    alone = model.generate(text, attention_mask=torch.ones_like(text), use_cache=False, **options)[:, -8:]
    padded = torch.cat((torch.zeros(1, 5).long(), text), 1)
    rows = torch.cat((padded, tokens(75, rows=1)))
    found = model.generate(rows, attention_mask=(rows != 0).long(), cache_implementation=cache, **options)[:1, -8:]
    assert torch.equal(found, alone)


def test_the_model_is_as_it_was_when_the_method_is_out_again(kind, model):
    text, names = tokens(80), list(model.state_dict())
    before, attention = logits(model, text), model.config._attn_implementation
    for name in ("rerope", "log_n", "ntk_by_parts"):
        install(model, make(name, **OURS[name]))
        assert list(model.state_dict()) == names
    install(model, None)
    assert torch.equal(logits(model, text), before)
    assert model.config._attn_implementation == attention
    assert type(model.base_model.rotary_emb).__module__.startswith("transformers.")


def test_two_models_have_each_their_own_method():
    one, other, text = built("Llama"), built("Llama"), tokens(80)
    install(one, make("rerope", window=12))
    expected = logits(one, text)
    install(other, make("log_n", trained_length=16))
    assert torch.equal(logits(one, text), expected)


def test_half_types_stay_half():
    model = built("Llama").to(torch.bfloat16)
    plain = logits(model, tokens(80))
    for name in OURS:
        install(model, make(name, **OURS[name]))
        found = logits(model, tokens(80))
        assert found.dtype == torch.bfloat16
        assert (found - plain).float().abs().max() > 0.01


@together(
    ("changes", "method", "error", "message"),
    [
        ({}, "rerope", TypeError, "method must be one of ropebook.extrapolation or None, got 'rerope'"),
        ({}, make("partial", fraction=0.5), ValueError, "method must rotate the entries that the weights were"),
        (THEIRS["linear"], make("rerope", window=9), ValueError, "must be 'default' for a method .* got 'linear'"),
    ],
)  # fmt: skip
def test_what_is_refused(changes, method, error, message):
    model = built("Llama", **changes)
    before = logits(model, tokens(70))
    with pytest.raises(error, match=message):
        install(model, method)
    assert torch.equal(logits(model, tokens(70)), before)


@pytest.mark.parametrize("model", [torch.nn.Linear(2, 2), None], ids=["no rotary_emb", "two"])
def test_models_that_are_made_otherwise_are_refused(model):
    if model is None:
        model = torch.nn.ModuleList([built("Llama"), built("Llama")])
    with pytest.raises(ValueError, match="model must be one of transformers whose layers share one rotary_emb, got"):
        install(model, make("rerope", window=9))


def test_a_rotary_emb_of_another_base_than_the_config_says_is_refused():
    model = built("Llama")
    model.config.rope_parameters["rope_theta"] = 777.0
    with pytest.raises(ValueError, match=r"must have a rotary_emb that gives cosines and sines of base 777\.0 for 8"):
        install(model, make("rerope", window=9))


@together("length", [3, 4, 8])
def test_the_entries_that_do_not_turn_stay_for_any_length(length):
    """Of the 8 entries, the first 4 don't rotate and the last 4 do. Texts with exactly 4 or 8 tokens must be treated
    like all others."""
    x, positions = torch.arange(16.0 * length).reshape(1, 2, length, 8), torch.arange(length)[None]
    found = turned_from(Turn(4, "half"), x, positions, rope.inv_freq(4).float())
    assert found.shape == x.shape
    assert torch.equal(found[..., :4], x[..., :4])
    one = turned_from(Turn(4, "half"), x[:, :, 1:2], positions[:, 1:2], rope.inv_freq(4).float())
    assert torch.allclose(found[:, :, 1:2], one)
    assert not torch.equal(one, x[:, :, 1:2])


@pytest.mark.parametrize("where", ["config", "rotary_emb"])
def test_three_positions_for_each_token_are_refused(where):
    """Qwen3-VL has three positions for each token. If there is only text, its table is the usual one."""
    model = built("Llama", 1)
    if where == "config":
        model.config.rope_parameters["mrope_section"] = [2, 1, 1]
    else:
        model.model.rotary_emb.mrope_section = [2, 1, 1]
    with pytest.raises(ValueError, match="model must have a rotary_emb that gives cosines and sines of base"):
        install(model, make("linear", factor=4.0))


def test_positions_below_0_are_those_of_short_texts_to_log_n():
    model, text = built("Llama"), tokens(10)
    places = torch.arange(-3, 7)[None]
    plain = logits(model, text, position_ids=places)
    install(model, make("log_n", trained_length=16))
    torch.testing.assert_close(logits(model, text, position_ids=places), plain, **CLOSE)
    install(model, make("log_n", trained_length=2))
    assert (logits(model, text, position_ids=places) - plain).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["rerope", "dynamic_ntk"])
def test_without_a_mask_the_last_key_is_that_of_the_last_query(name):
    """The result must be the same as with a mask that allows all keys."""
    model = built("Llama")
    install(model, make(name, **OURS[name]))
    attend = transformers.AttentionInterface()[model.config._attn_implementation]
    layer = model.model.layers[0].self_attn
    q, k, v = (torch.randn(1, heads, 90, 8, generator=torch.Generator().manual_seed(heads)) for heads in (4, 2, 3))
    v, here = v[:, :2], {"position_ids": torch.tensor([[87, 88, 89]])}
    seen = attend(layer, q[:, :, :3], k, v, torch.zeros(1, 1, 3, 90), **here)[0]
    torch.testing.assert_close(attend(layer, q[:, :, :3], k, v, None, **here, is_causal=False)[0], seen)
    # the default scale is 1/√d, with d = 8 here
    scaled = attend(layer, q[:, :, :3], k, v, None, **here, is_causal=False, scaling=8**-0.5)[0]
    torch.testing.assert_close(scaled, seen)


# --- Two kinds of layers ---------------------------------------------------------------------------------------------


def gemma3(full: dict[str, object] | None = None, **sizes) -> torch.nn.Module:
    """Return a model with two layers, one of which has a window of 16 tokens.

    ``full`` changes the rope_parameters of the other layer, except its base.
    """
    config = transformers.Gemma3TextConfig(**GEMMA3 | {"num_hidden_layers": 2} | sizes)
    asked = config.rope_parameters["full_attention"]
    config.rope_parameters["full_attention"] = asked | (full or {})
    torch.manual_seed(0)
    return transformers.Gemma3ForCausalLM(config).eval().double()


@together("name", THEIRS)
def test_in_gemma_3_the_layers_that_see_everything_get_the_method(name):
    text, model = tokens(100), gemma3()
    theirs, plain = gemma3(THEIRS[name]), logits(model, text)
    theirs.load_state_dict(model.state_dict())
    base = model.config.rope_parameters["full_attention"]["rope_theta"]
    install(model, from_transformers(THEIRS[name] | {"rope_theta": base}, TRAINED).method)
    found = logits(model, text)
    torch.testing.assert_close(found, logits(theirs, text), **CLOSE)
    assert (found - plain).abs().max() > 1e-3
    install(model, None)
    assert torch.equal(logits(model, text), plain)


@together("name", ["rerope", "ntk_by_parts", "log_n", "dynamic_ntk"])
def test_in_gemma_3_a_window_layer_is_as_it_was(name):
    model, text, seen = gemma3(), tokens(100), []
    model.model.layers[0].register_forward_hook(lambda layer, given, out: seen.append(out))
    plain = logits(model, text)
    install(model, make(name, **OURS[name]))
    found = logits(model, text)
    # install has also run the model, on a few tokens
    torch.testing.assert_close(seen[-1], seen[0], rtol=0, atol=1e-12)
    assert (found - plain).abs().max() > 1e-3


def test_without_a_layer_that_sees_everything_there_is_nothing_to_put_a_method_into():
    model = gemma3()
    del model.config.rope_parameters["full_attention"]
    with pytest.raises(ValueError, match=r"must have 'full_attention' for a method .* got \['sliding_attention'\]"):
        install(model, make("rerope", window=12))


@together("name", [name for name in OURS if not name.startswith("dynamic")])
def test_in_gemma_3_a_cache_changes_nothing(name):
    model, text = gemma3(), tokens(60)
    install(model, make(name, **OURS[name]))
    whole = logits(model, text)
    with torch.no_grad():
        cache = model(text[:, :50], use_cache=True).past_key_values
        for at in range(50, 60):
            last = model(text[:, at : at + 1], past_key_values=cache).logits
    torch.testing.assert_close(last[:, 0], whole[:, -1], **CLOSE)


def test_in_gemma_3_another_rope_type_is_refused_by_the_name_of_its_layers():
    with pytest.raises(ValueError, match=r"rope_parameters\['full_attention'\]\['rope_type'\] must be .* got 'linear'"):
        install(gemma3(THEIRS["linear"]), make("rerope", window=9))


def test_attention_sinks_are_refused():
    """Sinks are passed as an extra argument, which the attention function would ignore."""
    model = built("Llama")
    install(model, make("rerope", window=9))
    attend = transformers.AttentionInterface()[model.config._attn_implementation]
    x = torch.ones(1, 4, 2, 8)
    with pytest.raises(ValueError, match=r"must have no attention sinks .* got LlamaAttention with s_aux"):
        attend(model.model.layers[0].self_attn, x, x, x, None, s_aux=torch.ones(4))


# --- Saving ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [*KINDS, "Gemma3"])
@pytest.mark.parametrize("part", ["model", "its base"])
def test_a_saved_model_has_the_method_when_it_is_loaded(build, part, tmp_path):
    model, text = gemma3() if build == "Gemma3" else built(build), tokens(100)
    asked = model.config.to_dict()["rope_parameters"]
    methods = {
        "yarn": {"factor": 4.0, "trained_length": TRAINED},
        "ntk": {"factor": 4.0},
        "dynamic": {"trained_length": TRAINED},
    }
    for name, options in methods.items():
        install(model, make(name, **options))
        found = logits(model, text)
        (model if part == "model" else model.base_model).save_pretrained(tmp_path)
        loaded = type(model).from_pretrained(tmp_path, dtype=torch.float64)
        loaded.load_state_dict(model.state_dict())  # this includes the weights of the head
        torch.testing.assert_close(logits(loaded.eval(), text), found, **CLOSE)
        assert torch.equal(logits(model, text), found)
        assert model.config.to_dict()["rope_parameters"] == asked
    install(model, None)
    plain = logits(model, text)
    assert (plain - found).abs().max() > 1e-3
    model.save_pretrained(tmp_path)
    loaded = type(model).from_pretrained(tmp_path, dtype=torch.float64).eval()
    torch.testing.assert_close(logits(loaded, text), plain, **CLOSE)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        (
            make("rerope", window=12),
            r"method must be one that transformers has .* got ReRoPE\(window=12\): install\(mo",
        ),
        (make("log_n", trained_length=16), "method must be one that transformers has"),
        (make("ntk_by_parts", factor=4.0, trained_length=64), "method must be one that transformers has"),
        (make("dynamic", trained_length=16), "trained_length must be config.max_position_embeddings .* got 16 and 64"),
    ],
)
def test_what_a_saved_model_would_lack_is_refused(method, message, tmp_path):
    model = built("Llama")
    install(model, method)
    for part in (model, model.model):
        with pytest.raises(ValueError, match=message):
            part.save_pretrained(tmp_path)
    assert list(tmp_path.iterdir()) == []
    install(model, None)
    model.save_pretrained(tmp_path)


# --- Training --------------------------------------------------------------------------------------------------------


def gradients(model: torch.nn.Module, calls: list[dict]) -> torch.Tensor:
    """Return the gradients of the total loss over all calls: first all the forward passes, then a single backward
    pass."""
    model.zero_grad()
    torch.stack([model(**call, labels=call["input_ids"]).loss for call in calls]).sum().backward()
    return torch.cat([weight.grad.flatten() for weight in model.parameters() if weight.grad is not None])


def stretched(step: int) -> dict:
    """Return a text whose positions are ``step`` apart, and a mask that nevertheless treats it as a single text."""
    text = tokens(50)
    return {"input_ids": text, "position_ids": torch.arange(0, 50 * step, step)[None], "attention_mask": text * 0 + 1}


CALLS = {
    "lengths": [{"input_ids": tokens(length)} for length in (80, 30, 50)],
    "positions": [stretched(step) for step in (1, 3, 2)],
}


@pytest.mark.parametrize("what", CALLS)
@pytest.mark.filterwarnings("ignore:.gradient_checkpointing:FutureWarning")  # some 5.x releases don't have the new name
def test_gradients_are_those_without_checkpoints(kind, what):
    """When a layer runs again in the backward pass, it must use the positions of its own text, not those of the most
    recent forward pass. The two kinds of checkpoints take turns."""
    model, calls = built(kind).train(), CALLS[what]
    reentrant = (list(KINDS).index(kind) + list(CALLS).index(what)) % 2 == 0
    for name in OURS if kind == "Llama" else ("rerope", "log_n"):
        model.gradient_checkpointing_disable()
        install(model, make(name, **OURS[name]))
        plain = gradients(model, calls)
        one_by_one = sum(gradients(model, [call]) for call in calls)
        model.gradient_checkpointing_enable({"use_reentrant": reentrant})
        assert all(layer.gradient_checkpointing for layer in model.base_model.layers)
        checkpointed = gradients(model, calls)
        assert plain.norm() > 1e-3
        for other in (one_by_one, checkpointed):
            assert (other - plain).norm() <= 1e-9 * plain.norm(), name


@pytest.mark.filterwarnings("ignore:.gradient_checkpointing:FutureWarning")
def test_a_model_that_keeps_positions_from_its_attention_is_not_trained_with_checkpoints(monkeypatch):
    """A layer runs again with the arguments of its first call. If the positions weren't among these arguments, the
    layer would use the wrong ones."""
    model = built("Llama").train()
    install(model, make("rerope", window=12))
    for layer in model.model.layers:
        call = layer.self_attn.forward
        monkeypatch.setattr(
            layer.self_attn, "forward", lambda *given, position_ids=None, call=call, **more: call(*given, **more)
        )
    plain = logits(model.eval(), tokens(30))  # outside training, nothing is recomputed
    assert plain.isfinite().all()
    model.train().gradient_checkpointing_enable({"use_reentrant": False})
    with pytest.raises(ValueError, match="gradient checkpointing must be off for a model whose layers do not hand"):
        model(tokens(30))
