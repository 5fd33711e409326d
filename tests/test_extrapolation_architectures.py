"""Tests of `install` in models whose structure differs from Llama's. They have layers without positions, latent
attention, or norms at the end."""

from __future__ import annotations

import pytest
import torch
import transformers

from ropebook.extrapolation import from_transformers, install, make
from tests.together import together

TRAINED = 32
SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
    "max_position_embeddings": TRAINED,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
LATENT = {"q_lora_rank": 16, "kv_lora_rank": 16, "qk_rope_head_dim": 8, "qk_nope_head_dim": 16, "v_head_dim": 8}
EXPERTS = {"n_routed_experts": 4, "num_experts_per_tok": 2, "n_group": 1, "topk_group": 1, "moe_intermediate_size": 16}
KINDS = {
    # the first of the two layers has positions, and the second has none
    "SmolLM3": {"no_rope_layers": [1, 0]},
    # layers that attend to the whole text have no positions
    "Cohere2": {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"]},
    # this model rotates the last entries of each head
    "DeepseekV3": LATENT | EXPERTS | {"num_key_value_heads": 4, "first_k_dense_replace": 1},
    # this model rotates the first half of each head, and has a single matrix for all three projections
    "Persimmon": {},
}
OURS = {
    "rerope": {"window": 12},
    "self_extend": {"window": 12, "group": 4},
    "log_n": {"trained_length": 16},
    "dynamic_ntk": {"trained_length": TRAINED},
}
CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def built(kind: str, changes: dict | None = None, **rope) -> torch.nn.Module:
    """Return a model with random matrices and gains. Because the gains are random, it makes a difference whether a norm
    is applied before or after the rotation."""
    options = SIZES | KINDS.get(kind, {}) | (changes or {})
    known = getattr(transformers, f"{kind}Config").__dataclass_fields__
    config = getattr(transformers, f"{kind}Config")(**{name: one for name, one in options.items() if name in known})
    config.rope_parameters = config.rope_parameters | rope
    torch.manual_seed(0)
    form = getattr(transformers, f"{kind}ForCausalLM")
    # the other implementations of mixtures of experts don't support float64
    model = form._from_config(config, experts_implementation="eager").eval().double()
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(0.3 * torch.randn_like(weight))
    return model


def tokens(length: int) -> torch.Tensor:
    return torch.randint(3, 50, (2, length), generator=torch.Generator().manual_seed(length))


@torch.no_grad()
def logits(model: torch.nn.Module, text: torch.Tensor, **options) -> torch.Tensor:
    return model(text, **options).logits


@together("kind", KINDS)
@together("name", ["linear", "dynamic", "yarn"])
def test_what_transformers_has_gives_the_same_logits(kind, name):
    asked = {"rope_type": name, "factor": 1.0 if name == "dynamic" else 4.0}
    if name == "yarn":
        asked["original_max_position_embeddings"] = TRAINED
    model, theirs, text = built(kind), built(kind, **asked), tokens(48)
    theirs.load_state_dict(model.state_dict())
    plain = logits(model, text)
    base = model.config.rope_parameters["rope_theta"]
    install(model, from_transformers(asked | {"rope_theta": base}, TRAINED).method)
    found = logits(model, text)
    torch.testing.assert_close(found, logits(theirs, text), **CLOSE)
    assert (found - plain).abs().max() > 1e-2
    install(model, None)
    assert torch.equal(logits(model, text), plain)


@together("kind", KINDS)
def test_a_length_that_is_not_reached_changes_nothing(kind):
    model, text = built(kind), tokens(48)
    plain = logits(model, text)
    for method in (make("rerope", window=100), make("log_n", trained_length=100), make("dynamic", trained_length=100)):
        install(model, method)
        torch.testing.assert_close(logits(model, text), plain, **CLOSE)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OURS)
def test_a_cache_changes_nothing(kind, name):
    model, text = built(kind), tokens(48)
    # beyond the trained length, dynamic NTK would change its frequencies, but the cached keys of the second layer would
    # stay the same
    if name == "dynamic_ntk":
        text = text[:, :TRAINED]
    install(model, make(name, **OURS[name]))
    whole = logits(model, text)
    begun = text.shape[1] - 8
    with torch.no_grad():
        cache = model(text[:, :begun], use_cache=True).past_key_values
        for at in range(begun, text.shape[1]):
            last = model(text[:, at : at + 1], past_key_values=cache).logits
    torch.testing.assert_close(last[:, 0], whole[:, -1], **CLOSE)


def test_layers_without_positions_keep_none():
    """Without positions, a method has no effect. Only log-n scaling may still change the length of the queries."""
    model, text = built("SmolLM3", {"no_rope_layers": [0, 0]}), tokens(48)
    plain = logits(model, text)
    for name in ("rerope", "self_extend", "dynamic_ntk"):
        install(model, make(name, **OURS[name]))
        assert torch.equal(logits(model, text), plain)
    install(model, make("log_n", **OURS["log_n"]))
    found = logits(model, text)
    torch.testing.assert_close(found[:, :16], plain[:, :16], **CLOSE)
    assert (found - plain)[:, 16:].abs().max() > 1e-2


# --- Refused ---------------------------------------------------------------------------------------------------------


@together(
    ("kind", "message"),
    [
        # in this model, norms with a gain are applied to vectors that are already rotated
        ("HunYuanDenseV1", "got HunYuanDenseV1Model, whose HunYuanDenseV1Attention does not"),
        ("Flint", "must have no attention sinks .* got FlintAttention with s_aux"),
        ("Gemma2", "must have no softcap .* got Gemma2Attention with softcap"),
    ],
)
@together("training", [True, False])
def test_what_cannot_be_done_in_the_attention_is_refused_at_once(kind, message, training):
    sizes = {"sliding_window": 16, "layer_types": ["sliding_attention", "full_attention"], "head_dim": 8}
    model, text = built(kind, sizes), tokens(48)
    model.train(training)
    model.model.norm.train(not training)
    before, attention = model.model.rotary_emb, model.config._attn_implementation
    for name in ("rerope", "log_n", "dynamic_ntk"):
        with pytest.raises(ValueError, match=message):
            install(model, make(name, **OURS[name]))
    assert model.model.rotary_emb is before
    assert model.config._attn_implementation == attention
    assert (model.training, model.model.norm.training) == (training, not training)
    model.eval()
    plain = logits(model, text)
    install(model, make("linear", factor=4.0))
    assert (logits(model, text) - plain).abs().max() > 1e-3


def test_a_table_that_the_layers_do_not_read_is_refused():
    """Granite with windows makes one table for each base. Its original rotary_emb is still part of the model, but no
    layer uses it."""
    model = built("GraniteSWA", {"sliding_window": 16})
    for method in (make("linear", factor=4.0), make("rerope", window=12)):
        with pytest.raises(ValueError, match="share one rotary_emb, got GraniteSWAForCausalLM with 1 more Granite"):
            install(model, method)


def test_a_factor_that_latent_attention_has_in_its_scale_is_refused():
    """When transformers builds the model, it includes the factor from mscale_all_dim in the scale of every q·k. It
    multiplies the table by the factor from mscale, divided by the one from mscale_all_dim."""
    model = built("DeepseekV3")
    with pytest.raises(ValueError, match="method must have no mscale_all_dim for a model with latent attention"):
        install(model, make("yarn", factor=4.0, trained_length=TRAINED, mscale=1.0, mscale_all_dim=1.0))


@pytest.mark.parametrize("kind", ["Olmo2", "Llama"])
def test_cosines_and_sines_are_of_the_type_that_the_model_has_them_in(kind):
    """OLMo rotates in float32, whatever the model's type is. Llama casts cosines and sines to the model's type."""
    model, positions = built(kind).to(torch.bfloat16), torch.arange(9)[None]
    theirs = model.model.rotary_emb
    install(model, make("ntk", factor=2.0))
    x = torch.zeros(1, 9, 32, dtype=torch.bfloat16)
    assert model.model.rotary_emb(x, positions)[0].dtype == theirs(x, positions)[0].dtype
    assert model.model.rotary_emb(x.double(), positions)[0].dtype == torch.float64
    plain = logits(model, tokens(48))
    install(model, make("rerope", window=12))
    assert (logits(model, tokens(48)) - plain).float().abs().max() > 1e-2


# --- Persimmon, with hand-written weights ----------------------------------------------------------------------------


def test_persimmon_with_weights_written_by_hand():
    """Each head has 8 entries, and the first four of them rotate.

    The matrix contains all rows of one head (for queries, keys and values), followed by all rows of the next head.
    """
    sizes = {"num_hidden_layers": 1, "num_attention_heads": 2, "hidden_size": 16}
    model = built("Persimmon", sizes | {"qk_layernorm": False})
    attention, x = model.model.layers[0].self_attn, torch.randn(1, 10, 16, dtype=torch.float64)
    state = attention.state_dict()
    whole = state["query_key_value.weight"].view(2, 3, 8, 16)
    bias = state["query_key_value.bias"].view(2, 3, 8)
    q, k, v = (torch.einsum("hdi,bti->bhtd", whole[:, i], x) + bias[:, i, None] for i in range(3))
    m = torch.arange(10, dtype=torch.float64)
    base = model.config.rope_parameters["rope_theta"]
    distance = (m[:, None] - m).clamp(max=3)  # the distances of ReRoPE with window 3
    phi = distance[..., None] * base ** (-torch.arange(2, dtype=torch.float64) / 2)
    a, b = (torch.complex(z[..., :2], z[..., 2:4]) for z in (q, k))
    turned = (a[:, :, :, None] * b[:, :, None].conj() * torch.polar(torch.ones_like(phi), phi)).sum(-1).real
    scores = (turned + q[..., 4:] @ k[..., 4:].mT) / 8**0.5
    scores = scores.masked_fill(m[:, None] < m, -torch.inf)
    heads = (scores.softmax(-1) @ v).transpose(1, 2).flatten(2)
    expected = heads @ state["dense.weight"].mT + state["dense.bias"]

    install(model, make("rerope", window=3))
    seen = []
    attention.register_forward_hook(lambda part, given, out: seen.append(out[0]))
    model.model.layers[0].input_layernorm = torch.nn.Identity()
    with torch.no_grad():
        model(inputs_embeds=x)
    torch.testing.assert_close(seen[0], expected, **CLOSE)
