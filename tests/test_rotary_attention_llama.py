"""Tests of a complete Llama, compared with transformers' Llama: its logits, and greedy generation."""

import re

import pytest
import torch
from transformers import LlamaForCausalLM

from ropebook import rotary_attention as R
from tests.rotary_attention_helpers import (
    CLOSE,
    CONFIGS,
    DEFAULT,
    DIM,
    HEADS,
    LAYOUTS,
    draw,
    error,
    llama,
    make,
    spread,
    theirs_of,
    tokens_of,
)
from tests.together import together

pytestmark = pytest.mark.usefixtures("without_gradients")


@together("layout", LAYOUTS)
@together("case", CONFIGS)
@together("dtype", CLOSE, ids=str)
def test_the_same_logits_as_transformers(case, layout, dtype):
    theirs = theirs_of(case, dtype)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, layout)
    assert ours.embedding.weight.dtype == dtype
    tokens = tokens_of(2, 11)
    expected = theirs(tokens).logits
    assert error(ours(tokens), expected) < CLOSE[dtype]
    positions = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5]])
    moved = theirs(tokens, position_ids=positions).logits
    assert error(moved, expected) > 1e-2
    assert error(ours(tokens, positions.expand(2, 11)), moved) < CLOSE[dtype]


def test_the_layouts_of_the_weights_are_not_the_same():
    theirs = theirs_of("biases", torch.float64)
    half, interleaved = (
        R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, name) for name in LAYOUTS[::-1]
    )
    tokens = tokens_of(2, 11)
    assert error(interleaved(tokens), half(tokens)) < 1e-12
    for name, p in half.state_dict().items():
        reordered = re.search(r"[qk]_proj", name) is not None
        assert torch.equal(interleaved.state_dict()[name], p) != reordered
    interleaved.load_state_dict(half.state_dict())
    assert error(interleaved(tokens), half(tokens)) > 1e-2
    few = [
        R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, name, rotary_dim=4)(tokens)
        for name in LAYOUTS
    ]
    assert error(*few) < 1e-12
    assert error(few[0], half(tokens)) > 1e-2


def test_the_weights_are_copies():
    theirs = theirs_of("tied")
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    tokens = tokens_of(1, 5)
    before = ours(tokens)
    for p in theirs.parameters():
        p.zero_()
    assert torch.equal(ours(tokens), before)
    assert ours.lm_head.weight is ours.embedding.weight
    untied = R.LlamaModel(7, 8, 12, 1, 2, layout="interleaved")
    assert untied.lm_head.weight is not untied.embedding.weight


def test_tied_weights_need_be_stored_once():
    theirs = theirs_of("tied")
    state = theirs.state_dict()
    del state["lm_head.weight"]
    ours = R.LlamaModel.from_transformers(state, theirs.config)
    assert error(ours(tokens_of(1, 5)), theirs(tokens_of(1, 5)).logits) < 2e-5
    state = theirs_of("plain").state_dict()
    del state["lm_head.weight"]
    with pytest.raises(RuntimeError, match="lm_head"):
        R.LlamaModel.from_transformers(state, theirs_of("plain").config)


def test_scaled_frequencies_come_from_the_hook():
    rope = {"rope_type": "linear", "rope_theta": 10000.0, "factor": 4.0}
    theirs = spread(LlamaForCausalLM(llama(dtype=torch.float32, rope_parameters=rope)).eval(), size=1.5)
    expected = theirs(tokens_of(2, 9)).logits

    def linear(theta, length):
        return theta / 4, 1.0

    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, scaling=linear)
    assert error(ours(tokens_of(2, 9)), expected) < 2e-5
    theirs.config.rope_parameters = DEFAULT | {"partial_rotary_factor": 1.0}
    unscaled = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    assert error(unscaled(tokens_of(2, 9)), expected) > 1e-2


def test_beside_a_cache_a_scaling_has_no_length_to_follow_and_positions_stay_as_given():
    told = []

    def scaling(theta, length):
        told.append(length)
        return theta / 2, 1.0

    layer, x = make(scaling=scaling), draw(2, 3, DIM)
    plain = layer(x)
    assert told == [3]
    assert error(layer(x, cache=R.KVCache(3)), plain) < CLOSE[torch.float64]
    assert told == [3, None]
    apart = torch.tensor([0, 5, 6])
    spaced = layer(x, apart)
    assert error(spaced, plain) > 1e-2
    assert error(layer(x, apart, cache=R.KVCache(3)), spaced) < CLOSE[torch.float64]


def test_frequencies_that_follow_the_length_are_refused_beside_a_cache():
    def scaling(theta, length):
        return theta, 1.0

    scaling.follows_length = True
    layer, x, cache = make(scaling=scaling), draw(2, 3, DIM), R.KVCache(3)
    assert layer(x).shape == x.shape
    with pytest.raises(ValueError, match="cache must be None if the frequencies follow the length"):
        layer(x, cache=cache)
    assert cache.length == 0


def test_a_model_has_no_biases_unless_asked_for_and_knows_its_first_token():
    model = R.LlamaModel(61, DIM, 40, 1, HEADS, layout="interleaved")
    assert not [name for name in (*model.state_dict(), *R.SwiGLU(8, 16).state_dict()) if "bias" in name]
    assert model.norm.eps == 1e-6
    named = [
        name for name, _ in R.LlamaModel(61, DIM, 40, 1, HEADS, mlp_bias=True, layout="interleaved").named_parameters()
    ]
    assert [name.split(".")[-2] for name in named if "bias" in name] == ["gate_proj", "up_proj", "down_proj"]
    asked = R.LlamaModel(61, DIM, 40, 1, HEADS, attention_bias=True, layout="interleaved").state_dict()
    assert sum("bias" in name for name in asked) == 4
    assert model(torch.tensor([[0, 60]])).isfinite().all()


@together("dtype", CLOSE, ids=str)
@together("chunks", [[9], [1] * 9, [5, 1, 3]], ids=str)
def test_a_model_with_caches_gives_what_all_at_once_gives(chunks, dtype):
    model = spread(R.LlamaModel(61, DIM, 40, 3, HEADS, 2, dtype=dtype, layout="interleaved"), size=1.5)
    tokens, caches, start, outs = tokens_of(2, 9), model.new_caches(9), 0, []
    for n in chunks:
        outs.append(model(tokens[:, start : start + n], caches=caches))
        start += n
    assert [cache.length for cache in caches] == [9] * 3
    assert error(torch.cat(outs, 1), model(tokens)) < CLOSE[dtype]


def test_a_subclass_may_embed_words_with_their_places():
    seen = []

    class Placed(R.LlamaModel):
        def embed(self, tokens, positions, offset):
            seen.append((positions, offset))
            places = torch.arange(offset, offset + tokens.shape[1]) if positions is None else positions
            return super().embed(tokens, positions, offset) + places[..., None] / 7

    model = spread(Placed(61, DIM, 40, 2, HEADS, dtype=torch.float64, layout="interleaved"), size=1.5)
    plain = R.LlamaModel(61, DIM, 40, 2, HEADS, dtype=torch.float64, layout="interleaved")
    plain.load_state_dict(model.state_dict())
    tokens, caches = tokens_of(2, 9), model.new_caches(9)
    whole = model(tokens)
    by_hand = model.embedding(tokens) + torch.arange(9)[:, None] / 7
    for layer in plain.layers:
        by_hand = layer(by_hand)
    assert error(whole, plain.lm_head(plain.norm(by_hand))) < 1e-14
    assert error(plain(tokens), whole) > 1e-2
    parts = [model(piece, caches=caches) for piece in tokens.split([5, 1, 3], 1)]
    assert error(torch.cat(parts, 1), whole) < CLOSE[torch.float64]
    assert seen == [(None, 0), (None, 0), (None, 5), (None, 6)]
    positions = torch.arange(9) + 4
    model(tokens, positions)
    assert seen[-1][0] is positions
    found = model.generate(tokens, 4, [9, 2])
    assert [offset for _, offset in seen[-4:]] == [0, 9, 10, 11]
    assert torch.equal(found[1, 7:], model.generate(tokens[1:, 7:], 4)[0])


def test_caches_of_a_model_belong_to_one_layer_each():
    model, tokens = R.LlamaModel(61, DIM, 40, 3, HEADS, layout="interleaved"), tokens_of(1, 5)
    one, other = model.new_caches(9)[:2]
    for caches, again in (([one] * 3, (0, 1)), ([one, other, other], (1, 2)), ([one, other, one], (0, 2))):
        message = "caches must be different ones, as new_caches makes them, got caches[{}] as caches[{}] again"
        with pytest.raises(ValueError, match=re.escape(message.format(*again))):
            model(tokens, caches=caches)
    for caches, found in (([None] * 3, "0] must be a KVCache, got NoneType"), ([one, other, 5], "2] must .* got int")):
        with pytest.raises(TypeError, match=re.escape("caches[") + found):
            model(tokens, caches=caches)
    assert one.length == other.length == 0
    used = model.new_caches(9)
    model(tokens, caches=used)
    with pytest.raises(ValueError, match=re.escape("caches must hold equally many tokens, got [5, 5, 0]")):
        model(tokens, caches=[*used[:2], one])


@together("layout", LAYOUTS)
@together("case", ["plain", "grouped", "tied"])
def test_generates_the_tokens_that_transformers_generates(case, layout):
    theirs = theirs_of(case, torch.float64, seed=3)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config, layout)
    prompts = tokens_of(3, 6)
    expected = theirs.generate(prompts, max_new_tokens=12, do_sample=False)
    found = ours.generate(prompts, 12)
    assert found.shape == (3, 18)
    assert len(found[:, 6:].unique()) > 5  # the model must not repeat the same word over and over
    assert torch.equal(found, expected)
    step = prompts
    for _ in range(12):  # without a cache, the result must be the same
        step = torch.cat((step, ours(step)[:, -1:].argmax(-1)), 1)
    assert torch.equal(found, step)


def test_generates_from_prompts_of_unequal_length():
    theirs = theirs_of("grouped", torch.float64, seed=3)
    ours = R.LlamaModel.from_transformers(theirs.state_dict(), theirs.config)
    prompts, lengths = tokens_of(4, 6), [6, 2, 4, 1]
    found = ours.generate(prompts, 8, lengths)
    seen = R.left_padded(lengths, 6)
    assert torch.equal(found, theirs.generate(prompts, attention_mask=seen, max_new_tokens=8, do_sample=False))
    for row, length in enumerate(lengths):
        alone = ours.generate(prompts[row : row + 1, 6 - length :], 8)
        assert torch.equal(found[row, 6 - length :], alone[0])
    assert not torch.equal(found, ours.generate(prompts, 8))
