"""Tests of the schemes that the second experiment adds: T5's buckets, and RoPE in every other layer. They are compared
with transformers."""

import copy
import math

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, SmolLM3Config, SmolLM3ForCausalLM
from transformers.models.t5.modeling_t5 import T5Attention

from ropebook.attention import causal_mask
from ropebook.lab import model as M
from ropebook.lab.bits import logits
from ropebook.relatives import t5_bucket
from ropebook.rotary_attention import llama

LENGTH = 40
SIZES = {"dim": 16, "hidden_dim": 24, "n_layers": 3, "n_heads": 4}
TOKENS = torch.randint(256, (2, LENGTH), generator=torch.Generator().manual_seed(0))
CONFIG = {
    "vocab_size": 256,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "rms_norm_eps": 1e-6,
    "tie_word_embeddings": True,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
    "bos_token_id": None,
    "eos_token_id": None,
    "pad_token_id": None,
    "attn_implementation": "eager",
}


pytestmark = pytest.mark.usefixtures("without_gradients")


def make(scheme, **options):
    """Build a tiny model with sharp attention whose biases all differ."""
    model = M.LanguageModel(scheme, LENGTH, **{**SIZES, **options})
    for name, weight in model.named_parameters():
        if name == "buckets":
            weight.copy_(torch.randn(weight.shape, generator=torch.Generator().manual_seed(1)))
        elif weight.dim() == 2:
            weight.mul_(50 if name.startswith("embedding") else 2)
    return model


def error(ours, theirs):
    return ((ours - theirs).abs().max() / theirs.abs().max()).item()


def with_our_weights(theirs, model):
    ours = model.state_dict()
    theirs.load_state_dict({name: ours[llama._our_name(name)] for name in theirs.state_dict()})
    return theirs.eval()


def their_bias(model, length):
    buckets = T5Attention._relative_position_bucket(
        torch.arange(length) - torch.arange(length)[:, None], bidirectional=False, num_buckets=32, max_distance=128
    )
    return model.buckets[:, buckets]


def test_t5_is_to_the_bit_what_the_trained_models_had():
    """The expected bias is written in the same form as in the experiment, and must agree to the last bit."""
    weight = torch.randn(4, 32, generator=torch.Generator().manual_seed(0))
    for q_len, offset in ((300, 0), (3, 4093)):
        keys = torch.arange(offset + q_len)
        distances = (keys[offset:, None] - keys).clamp(min=0)
        wide = 16 + ((distances.clamp(min=16).double() / 16).log() / math.log(8) * 16).long()
        before = weight[:, torch.where(distances < 16, distances, wide.clamp(max=31))]
        assert torch.equal(M.t5_bias(weight, q_len, offset), before)


def test_the_buckets_are_those_of_transformers():
    distances = torch.arange(5000)
    theirs = T5Attention._relative_position_bucket(-distances, bidirectional=False, num_buckets=32, max_distance=128)
    ours = t5_bucket(distances)
    # at a boundary between two ranges, float32 rounding decides to which of them a distance belongs
    apart = (ours != theirs).nonzero().flatten().tolist()
    assert apart in ([], [32], [64], [32, 64])
    assert ours.diff().min() == 0
    assert ours.max() == 31
    assert ours.dtype == torch.int64


def test_t5_is_a_llama_with_its_bias_as_a_mask():
    model = make("t5")
    theirs = with_our_weights(LlamaForCausalLM(LlamaConfig(**CONFIG)), model)
    mask = torch.where(causal_mask(LENGTH), 0.0, -math.inf) + their_bias(model, LENGTH)
    places = torch.zeros(1, LENGTH, dtype=torch.long)
    expected = theirs(TOKENS, attention_mask=mask.expand(2, -1, -1, -1).clone(), position_ids=places).logits
    assert error(model(TOKENS), expected) < 1e-5
    assert error(model(TOKENS, mask=causal_mask(LENGTH)), expected) < 1e-5
    without = torch.where(causal_mask(LENGTH), 0.0, -math.inf).expand(2, 4, -1, -1).clone()
    assert error(theirs(TOKENS, attention_mask=without, position_ids=places).logits, expected) > 1e-2


def test_t5_in_pieces_is_t5():
    model = make("t5")
    long = torch.randint(256, (1, 600), generator=torch.Generator().manual_seed(2))
    assert error(logits(model, long), model(long)) < 1e-5


def test_t5_begins_as_a_model_without_positions():
    t5, none = (M.LanguageModel(scheme, LENGTH, **SIZES) for scheme in ("t5", "none"))
    assert t5.buckets.shape == (4, 32)
    assert not t5.buckets.any()
    assert error(t5(TOKENS), none(TOKENS)) < 1e-5


def test_t5_counts_in_the_row():
    model = make("t5")
    with pytest.raises(ValueError, match="positions must count the row's bytes"):
        model(TOKENS, torch.arange(LENGTH) * 2)


def test_alternate_layers_are_those_of_smollm3():
    model = make("alternate")
    theirs = with_our_weights(SmolLM3ForCausalLM(SmolLM3Config(**CONFIG, no_rope_layers=[1, 0, 1])), model)
    expected = theirs(TOKENS).logits
    assert error(model(TOKENS), expected) < 1e-5
    for scheme in ("rope-10000", "none"):
        other = M.LanguageModel(scheme, LENGTH, **SIZES)
        other.load_state_dict(model.state_dict())
        assert error(other(TOKENS), expected) > 1e-2


@pytest.mark.parametrize("scheme", ["t5", "alternate"])
def test_they_begin_with_the_same_weights(scheme):
    own = dict(M.LanguageModel(scheme, 8, **SIZES).named_parameters())
    shared = dict(M.LanguageModel("none", 8, **SIZES).named_parameters())
    assert own.keys() - shared.keys() == ({"buckets"} if scheme == "t5" else set())
    assert all(torch.equal(own[name], weight) for name, weight in shared.items())


@pytest.mark.parametrize("scheme", ["t5", "alternate"])
def test_a_cache_changes_nothing(scheme):
    model = make(scheme)
    caches = model.new_caches(LENGTH)
    pieces = [model(piece, caches=caches) for piece in TOKENS.split([7, 1, 32], 1)]
    assert error(torch.cat(pieces, 1), model(TOKENS)) < 1e-5


def test_what_is_not_rotated_has_no_scaling_to_take():
    with pytest.raises(ValueError, match="scheme must be one of"):
        M.LanguageModel("t6", LENGTH)
    assert copy.deepcopy(make("alternate")).layers[1].attention.rotary(1, 2) == (1, 2)


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match=r"buckets must be .*got 1"):
        t5_bucket(torch.arange(3), 1)
    with pytest.raises(ValueError, match=r"q_len must be .*got 0"):
        M.t5_bias(torch.zeros(1, 32), 0)
    with pytest.raises(ValueError, match=r"offset must be .*got -1"):
        M.t5_bias(torch.zeros(1, 32), 1, -1)
    assert np.array_equal(M.t5_bias(torch.arange(32.0)[None], 2, 3)[0], [[3, 2, 1, 0, 0], [4, 3, 2, 1, 0]])
