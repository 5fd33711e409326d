"""Test that each departure gives the same results as transformers' module, and that its scores depend on distance alone
if and only if the page says so."""

from __future__ import annotations

import pytest
import torch
from transformers import (
    DINOv3ViTConfig,
    Gemma3nTextConfig,
    Gemma3TextConfig,
    HunYuanDenseV1Config,
    Llama4TextConfig,
    LlamaConfig,
    MoonshineConfig,
    Qwen3Config,
    SmolLM3Config,
    Wav2Vec2ConformerConfig,
)
from transformers.cache_utils import DynamicSlidingWindowLayer
from transformers.models.dinov3_vit import modeling_dinov3_vit as dino
from transformers.models.gemma3 import modeling_gemma3 as gemma3
from transformers.models.gemma3n import modeling_gemma3n as gemma3n
from transformers.models.gpt_neox import modeling_gpt_neox as neox
from transformers.models.hunyuan_v1_dense import modeling_hunyuan_v1_dense as hunyuan
from transformers.models.llama import modeling_llama as llama
from transformers.models.llama4 import modeling_llama4 as llama4
from transformers.models.moonshine import modeling_moonshine as moonshine
from transformers.models.qwen3 import modeling_qwen3 as qwen3
from transformers.models.sam2_video import modeling_sam2_video as sam2
from transformers.models.wav2vec2_conformer import modeling_wav2vec2_conformer as conformer

from ropebook import beyond as B
from ropebook import rope
from ropebook.beyond import departures as D
from ropebook.efficient import apply_rotary
from tests.helpers import largest, random
from tests.together import together

SEQ, HEADS, DIM = 7, 2, 8
WIDTH = HEADS * DIM
PLACES = torch.arange(SEQ)
SIZES = {
    "hidden_size": WIDTH,
    "num_attention_heads": HEADS,
    "num_key_value_heads": HEADS,
    "head_dim": DIM,
    "attn_implementation": "eager",
}


def tokens() -> torch.Tensor:
    return random(1, SEQ, WIDTH, dtype=torch.float32)


def heads(layer: torch.nn.Linear) -> torch.Tensor:
    return layer(tokens()).unflatten(-1, (HEADS, DIM)).transpose(1, 2)


def weights(q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    return (q @ k.mT / DIM**0.5).softmax(-1)


@torch.no_grad()
def test_qwen3_normalises_and_then_turns():
    config = Qwen3Config(**SIZES)
    layer = qwen3.Qwen3Attention(config, 0)
    for norm in (layer.q_norm, layer.k_norm):
        torch.nn.init.normal_(norm.weight)
    x = tokens()
    theirs = layer(x, qwen3.Qwen3RotaryEmbedding(config)(x, PLACES[None]), None)[1]
    q = D.normed_before(heads(layer.q_proj), PLACES, layer.q_norm.weight)
    k = D.normed_before(heads(layer.k_proj), PLACES, layer.k_norm.weight)
    assert largest(weights(q, k) - theirs) < 1e-5


@torch.no_grad()
def test_hunyuan_turns_and_then_normalises_with_weights():
    config = HunYuanDenseV1Config(**SIZES)
    layer = hunyuan.HunYuanDenseV1Attention(config, 0)
    for norm in (layer.query_layernorm, layer.key_layernorm):
        torch.nn.init.normal_(norm.weight)
    x = tokens()
    theirs = layer(x, hunyuan.HunYuanDenseV1RotaryEmbedding(config)(x, PLACES[None]), None)[1]
    norms = (layer.query_layernorm, layer.key_layernorm)
    q, k = (
        torch.nn.functional.rms_norm(D.turned(heads(linear), PLACES), (DIM,), norm.weight, norm.variance_epsilon)
        for linear, norm in zip((layer.q_proj, layer.k_proj), norms, strict=True)
    )
    assert largest(weights(q, k) - theirs) < 1e-5
    ours = D.normed_after(heads(layer.q_proj), PLACES, layer.query_layernorm.weight)
    assert largest(ours - q) < 1e-3  # our epsilon under the square root is smaller


@pytest.mark.parametrize("turns", [True, False])
@torch.no_grad()
def test_llama_4_normalises_without_weights_or_tempers(turns):
    config = Llama4TextConfig(
        **SIZES,
        no_rope_layers=[int(turns)],
        num_hidden_layers=1,
        floor_scale=2,
        attn_scale=0.3,
        attn_temperature_tuning=True,
    )
    layer = llama4.Llama4TextAttention(config, 0)
    x = tokens()
    position = llama4.Llama4TextRotaryEmbedding(config)(x, PLACES[None])
    theirs = layer(x, position, None)[1]
    q, k = heads(layer.q_proj), heads(layer.k_proj)
    # transformers rotates interleaved pairs here; after a rotation and a norm without weights, the scores are the same
    # as if the entries were merely reordered
    if turns:
        base = config.rope_parameters["rope_theta"]
        q, k = (D.rms(B.turned_by(one, PLACES, base)) for one in (q, k))
    else:
        q = D.tempered(q, PLACES, every=2, scale=0.3)
    assert largest(weights(q, k) - theirs) < 1e-4


@torch.no_grad()
def test_a_conformer_turns_before_it_projects():
    config = Wav2Vec2ConformerConfig(
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        position_embeddings_type="rotary",
        attention_dropout=0.0,
        attn_implementation="eager",
    )
    layer = conformer.Wav2Vec2ConformerSelfAttention(config)
    for linear in (layer.linear_q, layer.linear_k):
        torch.nn.init.zeros_(linear.bias)
    x = tokens()
    position = conformer.Wav2Vec2ConformerRotaryPositionalEmbedding(config)
    theirs = layer(x, relative_position_embeddings=position(x))[1]
    q, k = (D.projected_after(x, PLACES, linear.weight, HEADS) for linear in (layer.linear_q, layer.linear_k))
    assert largest(weights(q, k) - theirs) < 1e-5


@together("exempt", [0, 2, SEQ - 1])
def test_sam_2_exempts_keys_from_the_end(exempt):
    q, k = random(2, 1, HEADS, SEQ, DIM, dtype=torch.float32)
    # transformers' pairs are interleaved, and ours are half-split
    cos, sin = (one.repeat_interleave(2, -1) for one in rope.cos_sin(PLACES, rope.inv_freq(DIM)))
    turning = SEQ - exempt
    _, theirs = sam2.apply_rotary_pos_emb_2d(
        q[..., :turning, :], k, cos[:turning], sin[:turning], num_k_exclude_rope=exempt
    )
    order = rope.concatenated_order(DIM)
    assert largest(D.partly_exempt(k[..., order], PLACES, exempt) - theirs[..., order]) < 1e-6


@together(("n_layers", "every"), [(8, 4), (7, 3), (5, 1)])
def test_the_layers_that_turn_are_those_of_smollm3(n_layers, every):
    config = SmolLM3Config(num_hidden_layers=n_layers, no_rope_layer_interval=every)
    assert D.layers_that_turn(n_layers, every) == [bool(one) for one in config.no_rope_layers]


def test_gemma_3_has_two_bases():
    module = gemma3.Gemma3RotaryEmbedding(Gemma3TextConfig(head_dim=DIM))
    bases = {kind: one["rope_theta"] for kind, one in module.config.rope_parameters.items()}
    assert bases == {"sliding_attention": 10000.0, "full_attention": 1e6}
    x = random(1, HEADS, SEQ, DIM, dtype=torch.float32)
    for kind, base in bases.items():
        theirs, _ = llama.apply_rotary_pos_emb(x, x, *module(x, PLACES[None], kind))
        assert largest(D.turned(x, PLACES, base) - theirs) < 1e-5


@together("share", [0.25, 0.5, 1.0])
def test_the_part_that_turns_is_that_of_gpt_neox(share):
    rope_parameters = {"rope_type": "default", "rope_theta": 500.0, "partial_rotary_factor": share}
    config = neox.GPTNeoXConfig(hidden_size=64, num_attention_heads=2, rope_parameters=rope_parameters)
    x = random(1, HEADS, SEQ, 32, dtype=torch.float32)
    theirs, _ = neox.apply_rotary_pos_emb(x, x, *neox.GPTNeoXRotaryEmbedding(config)(x, PLACES[None]))
    assert largest(D.partly(x, PLACES, int(32 * share), base=500.0) - theirs) < 1e-5
    # this model rotates a quarter of each head, with base 10,000
    usual = neox.GPTNeoXConfig(hidden_size=64, num_attention_heads=2)
    theirs, _ = neox.apply_rotary_pos_emb(x, x, *neox.GPTNeoXRotaryEmbedding(usual)(x, PLACES[None]))
    assert largest(D.partly(x, PLACES, 8) - theirs) < 1e-5


@torch.no_grad()
def test_moonshine_does_not_turn_in_cross_attention():
    config = MoonshineConfig(hidden_size=WIDTH, pad_head_dim_to_multiple_of=None, attn_implementation="eager")
    layer = moonshine.MoonshineAttention(config, 0, False, HEADS, HEADS)
    x, sound = tokens(), random(1, 5, WIDTH, seed=1, dtype=torch.float32)
    theirs = layer(x, key_value_states=sound)[1]
    k = layer.k_proj(sound).unflatten(-1, (HEADS, DIM)).transpose(1, 2)
    assert largest(weights(heads(layer.q_proj), k) - theirs) < 1e-6


def test_the_keys_that_gemma_3n_shares():
    kinds = ["sliding_attention", "sliding_attention", "full_attention"] * 3
    config = Gemma3nTextConfig(num_hidden_layers=9, layer_types=kinds, num_kv_shared_layers=4, intermediate_size=64)
    found = D.donors(kinds, 4)
    for layer, mode in enumerate(config.kv_sharing_modes):
        assert (mode == "reuse") == (found[layer] != layer)
        assert kinds[found[layer]] == kinds[layer]
    assert found[5:] == [2, 4, 4, 2]
    assert [layer for layer, mode in enumerate(config.kv_sharing_modes) if mode == "store"] == [2, 4]
    assert gemma3n.Gemma3nTextAttention(config, 8).is_kv_shared_layer


def test_a_window_keeps_what_transformers_keeps():
    k = random(1, HEADS, SEQ, DIM)
    theirs = DynamicSlidingWindowLayer(sliding_window=4)
    theirs.update(k, k)
    assert torch.equal(D.trimmed(k, 4), theirs.keys)
    assert theirs.get_seq_length() == SEQ  # positions continue to increase, although fewer keys are kept


def test_keys_that_are_moved_are_keys_of_the_later_places():
    k = random(1, HEADS, SEQ, DIM, dtype=torch.float32)
    module = llama.LlamaRotaryEmbedding(LlamaConfig(**SIZES))
    _, theirs = llama.apply_rotary_pos_emb(k, k, *module(k, PLACES[None] + 50))
    assert largest(D.moved(D.turned(k, PLACES), 50) - theirs) < 2e-5


@together(("start", "stop"), [(2, 4), (0, 3), (5, SEQ), (3, 3), (1, SEQ)])
def test_a_gap_is_closed(start, stop):
    k = random(1, HEADS, SEQ, DIM)
    left = [place for place in range(SEQ) if not start <= place < stop]
    expected = D.turned(k[..., left, :], torch.arange(len(left)), 500.0)
    assert largest(D.evicted(D.turned(k, PLACES, 500.0), start, stop, 500.0) - expected) < 1e-12


def test_what_comes_after_the_turn_has_to_commute_as_a_product():
    q, k = random(2, 1, SEQ, DIM)
    w = 1 + random(DIM).abs()

    def moves(of_q, of_k):
        there, here = ((D.turned(q, m) * of_q) @ (D.turned(k, m) * of_k).mT for m in (PLACES + 100, PLACES))
        return B.change(there, here)

    alike = w[: DIM // 2].repeat(2)
    assert moves(w, 1 / w) < 1e-12
    assert moves(w, alike / w) < 1e-12
    assert moves(alike, 1) < 1e-12
    for of_q, of_k in ((w, 1), (w, w), (1, w), (w, alike)):
        assert moves(of_q, of_k) > 0.01


@pytest.mark.parametrize("sizes", [(2, 3), (5, 4)])
def test_places_of_dino_are_shares_of_the_image(sizes):
    theirs = dino.get_patches_center_coordinates(*sizes, dtype=torch.float64, device="cpu")
    assert largest(D.centred(*sizes) - 2 * torch.pi * theirs) < 1e-12
    rows, columns = sizes
    config = DINOv3ViTConfig(hidden_size=WIDTH, num_attention_heads=HEADS, patch_size=4, image_size=16)
    module = dino.DINOv3ViTRopePositionEmbedding(config).eval()
    cos, sin = module(torch.zeros(1, 3, 4 * rows, 4 * columns))
    waves = B.axial([DIM // 2] * 2, config.rope_theta)
    x = random(HEADS, rows * columns, DIM)
    expected = apply_rotary(x, cos[:, : DIM // 2].double(), sin[:, : DIM // 2].double(), layout="half")
    assert largest(B.turned(x, D.centred(*sizes), waves, layout="half") - expected) < 1e-5


def test_what_a_checkpoint_holds_of_the_frequencies():
    assert not llama.LlamaRotaryEmbedding(LlamaConfig(**SIZES)).state_dict()
    position = conformer.Wav2Vec2ConformerRotaryPositionalEmbedding(Wav2Vec2ConformerConfig())
    assert list(position.state_dict()) == ["inv_freq"]
    cast = llama.LlamaRotaryEmbedding(LlamaConfig(**SIZES)).bfloat16()
    assert cast.inv_freq.dtype == torch.bfloat16


RELATIVE = (
    "plain RoPE",
    "normalised, then rotated",
    "rotated, then normalised",
    "no rotation",
    "a quarter of the entries rotate",
)


def test_who_stays_relative():
    found = D.kept(1000)
    assert [title for title, changed in found.items() if changed < 1e-3] == list(RELATIVE)
    # the epsilon under the square root makes a small difference, because lengths are preserved only up to rounding
    assert max(found[title] for title in RELATIVE) < 1e-9


@together(
    ("call", "message"),
    [
        (lambda: D.partly_exempt(random(1, 2, 4), [0, 1], 3), "exempt must be an integer >= 0 and <= 2, got 3"),
        (lambda: D.partly(random(2, 4), [0, 1], 6), "rotary_dim must be at most dim = 4, got 6"),
        (lambda: D.donors(["near", "far"], 1), "shared must leave a layer of each kind, got 1, which leaves none of"),
        (lambda: D.trimmed(random(1, 2, 4), 1), "window must be an integer >= 2, got 1"),
        (lambda: D.evicted(random(1, 4, 2), 1, 5), "stop must be an integer >= 0 and <= 4, got 5"),
        (lambda: D.evicted(random(1, 4, 2), 3, 2), "start must be an integer >= 0 and <= 2, got 3"),
        (lambda: D.centred(0, 2), "rows must be an integer >= 1, got 0"),
        (lambda: D.layers_that_turn(3, 0), "every must be an integer >= 1, got 0"),
        (lambda: D.layers_that_turn(-3), "n_layers must be an integer >= 1, got -3"),
        (lambda: D.rms(random(2, 4), eps=-1), "eps must be a finite number >= 0, got -1"),
        (lambda: D.tempered(random(2, 4), [0, 1], every=0), "every must be a finite number > 0, got 0"),
        (lambda: D.tempered(random(2, 4), [-2, 1]), "places must lie between 0 and 2147483648, got -2"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
