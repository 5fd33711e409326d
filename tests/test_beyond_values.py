"""Tests of rotated values, linear attention and latent attention, compared with transformers, float64 arithmetic and
explicit sums."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import DeepseekV3Config, RoFormerConfig
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.roformer import modeling_roformer as roformer

from ropebook import beyond as B
from ropebook.complex_plane import to_complex
from ropebook.derivation import rotation_matrix
from tests.helpers import largest, random
from tests.together import together

SEQ, DIM = 6, 8
PLACES = torch.arange(SEQ)


def vectors(**options: object) -> torch.Tensor:
    return random(3, 2, SEQ, DIM, **options)


# --- Values ---------------------------------------------------------------------------------------------------------


def test_values_are_turned_as_roformer_turns_them():
    config = RoFormerConfig(
        hidden_size=2 * DIM, num_attention_heads=2, rotary_value=True, attention_probs_dropout_prob=0.0
    )
    layer = roformer.RoFormerSelfAttention(config)
    x = random(1, SEQ, 2 * DIM, dtype=torch.float32)
    position = roformer.RoFormerSinusoidalPositionalEmbedding(64, DIM)
    position.weight.data = position.create_weight()
    with torch.no_grad():
        q, k, v = (
            linear(x).unflatten(-1, (2, DIM)).transpose(1, 2) for linear in (layer.query, layer.key, layer.value)
        )
        found = B.attend(q, k, v, PLACES, values="turned").transpose(1, 2).flatten(2)
        theirs = layer(x, sinusoidal_pos=position((1, SEQ))[None, None])[0]
    assert largest(found - theirs) < 1e-5


@together("values", B.WAYS)
def test_only_turned_values_see_the_place(values):
    moved = B.shift_change(*vectors(), 1000, values=values)
    assert (moved > 0.1) == (values == "turned")
    assert values == "turned" or moved < 1e-10


def test_the_output_is_the_sum_that_the_page_writes():
    q, k, v = vectors()
    weights = (B.turned_by(q, PLACES) @ B.turned_by(k, PLACES).mT / math.sqrt(DIM)).softmax(-1)
    back = torch.stack(
        [
            sum(weights[:, m, n, None] * B.turned_by(v[:, n : n + 1], [n - m])[:, 0] for n in range(SEQ))
            for m in range(SEQ)
        ],
        1,
    )
    assert largest(B.attend(q, k, v, PLACES, values="turned back") - back) < 1e-12


def test_still_values_are_weighted_as_torch_weights_them():
    q, k, v = vectors()
    turned = (B.turned_by(x, PLACES) for x in (q, k))
    expected = torch.nn.functional.scaled_dot_product_attention(*turned, v)
    assert largest(B.attend(q, k, v, PLACES) - expected) < 1e-12


@together("values", B.WAYS)
def test_a_causal_mask_hides_what_comes(values):
    q, k, v = vectors()
    whole = B.attend(q, k, v, PLACES, values=values, causal=True)
    part = B.attend(q[:, :3], k[:, :3], v[:, :3], PLACES[:3], values=values, causal=True)
    assert largest(whole[:, :3] - part) < 1e-12


# --- Linear attention -----------------------------------------------------------------------------------------------


def test_the_recurrence_is_the_sum():
    q, k, v = vectors()
    found = B.linear_attention(q, k, v, PLACES)
    assert largest(found - B.linear_weights(q, k, PLACES) @ v) < 1e-12


def test_without_a_turn_it_is_linear_attention_by_hand():
    q, k = vectors()[:2, 0]
    found = B.linear_weights(q, k, PLACES, turn="none")
    phi_q, phi_k = (torch.where(x < 0, x.exp(), x + 1) for x in (q, k))
    products = [float(phi_q[3] @ phi_k[n]) for n in range(4)]
    assert found[3, :4].tolist() == pytest.approx([one / sum(products) for one in products])
    assert torch.equal(found, B.linear_weights(q, k, PLACES, turn="none", normaliser="turned"))
    assert largest(found.triu(1)) == 0


@together(("turn", "relative", "positive"), [("after", True, False), ("before", False, True), ("none", True, True)])
@together("normaliser", ["none", "turned"])
def test_relative_or_positive(turn, relative, positive, normaliser):
    q, k, _ = 3 * vectors()
    here, there = (B.linear_weights(q, k, PLACES + by, turn=turn, normaliser=normaliser) for by in (0, 500))
    assert (B.change(there, here) < 1e-9) == relative
    assert bool((B.linear_weights(q, k, PLACES, turn=turn, normaliser="none") >= 0).all()) == positive


def test_the_normaliser_that_stands_still_is_relative_and_does_not_sum_to_one():
    q, k, _ = vectors()
    here, there = (B.linear_weights(q, k, PLACES + by) for by in (0, 500))
    assert B.change(there, here) < 1e-12
    sums = here.sum(-1)
    assert largest(sums[:, 0] - 1) < 1e-12  # the first token can attend only to itself
    assert (sums[:, 1:] < 1).all()
    # By the Cauchy–Schwarz inequality, pair i adds at most |x_i| |y_i| to the dot product of x and y, however the two
    # vectors are rotated.
    turned = B.linear_weights(q, k, PLACES, normaliser="turned").sum(-1)
    assert largest(turned - 1) < 1e-12


def test_a_state_that_turns_is_values_turned_and_turned_back():
    q, k, v = vectors()
    found = B.turning_state(q, k, v, rotation_matrix(1, DIM))
    plain = (q @ k.mT).tril() @ B.turned_by(v, PLACES)
    assert largest(found - B.turned_by(plain, PLACES, back=True)) < 1e-12
    # each pair is one complex number, and each step multiplies the stored value by e^{−iθ}
    state = torch.zeros(2, DIM, DIM // 2, dtype=torch.complex128)
    theta = torch.tensor([10000.0 ** (-2 * i / DIM) for i in range(DIM // 2)], dtype=torch.float64)
    for n in range(SEQ):
        state = state * torch.polar(torch.ones_like(theta), -theta) + k[:, n, :, None] * to_complex(v)[:, n, None, :]
    last = (q[:, -1, None, :].to(state) @ state)[:, 0]
    assert largest(to_complex(found)[:, -1] - last) < 1e-12


# --- Latent attention -----------------------------------------------------------------------------------------------

CASES = [(2, 8, 4, 6, 4), (3, 5, 7, 2, 9), (4, 16, 8, 8, 8)]


def pair(n_heads: int, rank: int, dim: int, rotary_dim: int, v_dim: int):
    torch.manual_seed(rank)
    config = DeepseekV3Config(
        hidden_size=24,
        num_attention_heads=n_heads,
        num_key_value_heads=n_heads,
        q_lora_rank=None,
        kv_lora_rank=rank,
        qk_nope_head_dim=dim,
        qk_rope_head_dim=rotary_dim,
        v_head_dim=v_dim,
        rope_interleave=True,
        attn_implementation="eager",
    )
    theirs = deepseek.DeepseekV3Attention(config, 0)
    torch.nn.init.normal_(theirs.kv_a_layernorm.weight)
    ours = B.LatentAttention(24, n_heads, rank=rank, dim=dim, rotary_dim=rotary_dim, v_dim=v_dim)
    names = {
        "w_q.weight": "q_proj",
        "w_down.weight": "kv_a_proj_with_mqa",
        "norm.weight": "kv_a_layernorm",
        "w_up.weight": "kv_b_proj",
        "w_o.weight": "o_proj",
    }
    ours.load_state_dict({name: getattr(theirs, other).weight.detach() for name, other in names.items()})
    return ours, theirs, deepseek.DeepseekV3RotaryEmbedding(config)


@together("sizes", CASES)
@torch.no_grad()
def test_latent_attention_is_that_of_transformers(sizes):
    ours, theirs, rotary = pair(*sizes)
    x = random(2, SEQ, 24, dtype=torch.float32)
    mask = torch.full((SEQ, SEQ), -torch.inf).triu(1)[None, None]
    expected, _ = theirs(x, rotary(x, PLACES[None]), mask)
    assert largest(ours(x, PLACES) - expected) < 1e-5


@together("sizes", CASES)
@torch.no_grad()
def test_keys_need_not_be_made(sizes):
    ours = pair(*sizes)[0].double()
    x = random(2, SEQ, 24)
    assert largest(ours.absorbed(x, PLACES) - ours(x, PLACES)) < 1e-12
    assert largest(ours(x, PLACES + 700) - ours(x, PLACES)) < 1e-10


@torch.no_grad()
def test_the_cache_is_as_small_as_is_said():
    ours = pair(2, 8, 4, 6, 4)[0]
    held = ours.cached(random(1, SEQ, 24, dtype=torch.float32), PLACES)
    counted = B.numbers_cached(n_heads=2, dim=4, rank=8, rotary_dim=6)["latent"]
    assert held.latent.shape[-1] + held.key.shape[-1] == counted == 14


def test_a_rotation_between_two_matrices_cannot_be_multiplied_in_beforehand():
    w_q, w_uk = random(2, 4, 3)
    still = B.between(w_q, w_uk, torch.eye(4, dtype=torch.float64))
    assert largest(still - w_q.T @ w_uk) < 1e-12
    one, two = (B.between(w_q, w_uk, rotation_matrix(apart, 4)) for apart in (1, 2))
    assert largest(one - two) > 0.1


@together(
    ("call", "message"),
    [
        (lambda: B.attend(*vectors(), PLACES, values="back"), "values must be one of 'still', 'turned', 'turned back'"),
        (lambda: B.features(vectors()[0], PLACES, "twice"), "turn must be one of 'after', 'before', 'none'"),
        (
            lambda: B.linear_weights(*vectors()[:2], PLACES, normaliser="sum"),
            "normaliser must be one of 'still', 'turned'",
        ),
        (lambda: B.linear_attention(*vectors()[:2], torch.ones(5, 2), PLACES), "v must have as many rows as q"),
        (lambda: B.turning_state(torch.ones(3, 2), torch.ones(4, 2), torch.ones(3, 2), torch.eye(2)), "k must have as"),
        (lambda: B.change(torch.ones(3), torch.ones(2, 1)), r"found must have the shape of expected, \(2, 1\), got"),
        (lambda: B.numbers_cached(-1, 2, 2, 2), "n_heads must be an integer >= 1, got -1"),
        (lambda: B.numbers_cached(1, 2, 2, 63), "rotary_dim must be an even integer >= 2, got 63"),
        (lambda: B.LatentAttention(8, 2, rank=0, dim=2, rotary_dim=2, v_dim=2), "rank must be an integer >= 1, got 0"),
        (lambda: B.LatentAttention(8, 2, rank=2, dim=2, rotary_dim=3, v_dim=2), "rotary_dim must be an even integer"),
    ],
)
def test_what_does_not_fit_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
