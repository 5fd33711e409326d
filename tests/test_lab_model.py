"""Compare the laboratory's model with transformers. Given the same weights, transformers' Llama must compute the same
logits for every scheme.

Learned and sinusoidal positions are passed to transformers as ``inputs_embeds``, and ALiBi is passed as a mask that is
added to the scores. If a scheme doesn't rotate, all vectors get position 0. Tolerances are relative to the largest
magnitude. Note that transformers computes norms and angles in float32.
"""

import copy
import itertools
import json
import math
import re

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.models.bloom.modeling_bloom import build_alibi_tensor

from ropebook import results
from ropebook import rotary_attention as R
from ropebook.attention import causal_mask
from ropebook.lab import model as M
from ropebook.rotary_attention import llama
from tests.rotary_attention_helpers import error
from tests.together import together

SCHEMES = ["learned", "sinusoidal", "rope-100", "rope-10000", "rope-500000", "alibi", "none"]
BASES = {"rope-100": 100.0, "rope-10000": 10000.0, "rope-500000": 500000.0}
LENGTH = 16
SIZES = {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 4}
TOKENS = torch.randint(256, (2, LENGTH), generator=torch.Generator().manual_seed(0))
TINY = 1e-13

every_scheme = pytest.mark.parametrize("scheme", SCHEMES)


pytestmark = pytest.mark.usefixtures("without_gradients")


def make(scheme, dtype=torch.float64, length=LENGTH, **options):
    """Build a tiny model with sharp attention. Initial weights of the usual size would make attention almost
    uniform."""
    model = M.LanguageModel(scheme, length, **{**SIZES, **options}, dtype=dtype)
    for name, weight in model.named_parameters():
        if weight.dim() == 2:
            weight.mul_(50 if name.startswith(("embedding", "places")) else 2)
    return model


# --- the schemes ---


def test_the_schemes():
    assert list(M.SCHEMES) == [*SCHEMES, "t5", "alternate"]  # the last two are tested in tests/test_lab_schemes.py
    assert {name: scheme.base for name, scheme in M.SCHEMES.items() if scheme.base} == {**BASES, "alternate": 10000.0}
    assert len({scheme.title for scheme in M.SCHEMES.values()}) == 9


@every_scheme
def test_the_published_size(scheme):
    model = M.LanguageModel(scheme, 256)
    layer = 4 * 128**2 + 3 * 128 * 352 + 2 * 128
    places = 256 * 128 if scheme == "learned" else 0
    assert sum(weight.numel() for weight in model.parameters()) == 256 * 128 + 4 * layer + 128 + places
    assert (model.scheme, model.length) == (scheme, 256)
    assert model.lm_head.weight is model.embedding.weight
    assert model.layers[0].attention.head_dim == 32


def test_all_begin_with_the_same_weights():
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        weights = {
            scheme: dict(M.LanguageModel(scheme, 8, **SIZES, dtype=dtype).named_parameters()) for scheme in SCHEMES
        }
        shared = weights["none"]
        assert len(shared) == 2 * 9 + 2
        for scheme, own in weights.items():
            assert own.keys() - shared.keys() == ({"places.weight"} if scheme == "learned" else set())
            for name, weight in shared.items():
                assert own[name].dtype == dtype
                assert torch.equal(own[name], weight)
        drawn = dict(M.LanguageModel("none", 8, **SIZES).named_parameters())
        assert all(torch.equal(shared[name], weight.to(dtype)) for name, weight in drawn.items())


def test_the_seed_draws_them():
    first, same, other = (M.LanguageModel("learned", 8, **SIZES, seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(same[name], weight) for name, weight in first.items())
    assert {name for name, weight in first.items() if torch.equal(other[name], weight)} == {
        name for name in first if "norm" in name
    }


def test_the_size_of_the_first_weights():
    model = M.LanguageModel("learned", 256, n_layers=8)
    for name, weight in model.named_parameters():
        if "norm" in name:
            assert (weight == 1).all()
            continue
        expected = 0.02 if name.startswith(("embedding", "places")) else weight.shape[1] ** -0.5
        if "out_proj" in name or "down_proj" in name:
            expected /= 4  # √(2 · 8), because sixteen outputs are added to the residual stream
        assert abs(weight.std().item() / expected - 1) < 0.03
        assert abs(weight.mean().item()) < 0.05 * expected
    uniform = model(TOKENS.expand(2, -1)).log_softmax(-1)
    assert (uniform + math.log(256)).abs().mean() < 0.5  # every byte must be about equally likely


# --- the same logits as transformers ---


def theirs_of(model, base):
    config = LlamaConfig(
        vocab_size=256,
        hidden_size=SIZES["dim"],
        intermediate_size=SIZES["hidden_dim"],
        num_hidden_layers=SIZES["n_layers"],
        num_attention_heads=SIZES["n_heads"],
        rms_norm_eps=1e-6,
        tie_word_embeddings=True,
        rope_parameters={"rope_type": "default", "rope_theta": base},
        bos_token_id=None,
        eos_token_id=None,
        attn_implementation="eager",
    )
    theirs = LlamaForCausalLM(config).eval()
    ours = model.state_dict()
    theirs.load_state_dict({name: ours[llama._our_name(name)] for name in theirs.state_dict()})
    return theirs


def added_places(model):
    """Compute what the scheme adds to the bytes' vectors, using the formula of the scheme."""
    if model.scheme == "learned":
        return model.places.weight
    angles = np.arange(LENGTH)[:, None] / 10000.0 ** (np.arange(0, 16, 2) / 16)
    encoding = np.stack((np.sin(angles), np.cos(angles)), -1).reshape(LENGTH, 16)
    return torch.from_numpy(0.02 * math.sqrt(2) * encoding).float()


@every_scheme
def test_the_same_logits_as_transformers(scheme):
    model = make(scheme, torch.float32)
    theirs = theirs_of(model, BASES.get(scheme, 10000.0))
    vectors = model.embedding(TOKENS)
    if scheme in ("learned", "sinusoidal"):
        vectors = vectors + added_places(model)
    mask = torch.where(causal_mask(LENGTH), 0.0, -math.inf).expand(2, 4, LENGTH, LENGTH).clone()
    if scheme == "alibi":
        mask += build_alibi_tensor(torch.ones(1, LENGTH), 4, torch.float32)
    positions = torch.arange(LENGTH) if scheme in BASES else torch.zeros(LENGTH, dtype=torch.long)
    expected = theirs(inputs_embeds=vectors, attention_mask=mask, position_ids=positions[None]).logits
    assert error(model(TOKENS), expected) < 1e-5
    other = theirs(inputs_embeds=vectors, attention_mask=mask, position_ids=positions[None] * 2).logits
    assert (error(other, expected) > 1e-2) == (scheme in BASES)


@together("scheme", BASES)
def test_a_rope_scheme_is_a_llama_model(scheme):
    model = make(scheme)
    llama = R.LlamaModel(256, 16, 24, 2, 4, tied=True, base=BASES[scheme], layout="half", dtype=torch.float64)
    llama.load_state_dict(model.state_dict())
    long = TOKENS.repeat(1, 3)  # this must also hold beyond the trained length
    assert torch.equal(model(long), llama(long))
    positions = torch.arange(LENGTH) * 3 + 5
    assert torch.equal(model(TOKENS, positions), llama(TOKENS, positions))
    assert error(model(TOKENS, torch.arange(LENGTH) * 3), model(TOKENS)) > 1e-2


def test_the_places_are_as_large_as_the_words():
    sizes = {}
    for scheme in ("learned", "sinusoidal"):
        model = M.LanguageModel(scheme, 256)
        tokens = torch.arange(256)[None]
        words = model.embedding(tokens)
        places = model.embed(tokens, None, 0) - words
        sizes[scheme] = (places.square().mean() / words.square().mean()).sqrt().item()
        assert error(model.embed(tokens[:, :9], torch.arange(9) + 7, 0) - words[:, :9], places[:, 7:16]) < 1e-6
        assert error(model.embed(tokens[:, :9], None, 7) - words[:, :9], places[:, 7:16]) < 1e-6
    assert sizes == pytest.approx({"learned": 1.0, "sinusoidal": 1.0}, rel=0.02)


# --- what they can infer about positions ---


@every_scheme
def test_no_byte_sees_those_after_it(scheme):
    model = make(scheme)
    changed = TOKENS.clone()
    changed[:, 9:] = 255 - changed[:, 9:]
    before, after = model(TOKENS), model(changed)
    assert error(after[:, :9], before[:, :9]) < TINY
    assert error(after[:, 9:], before[:, 9:]) > 1e-2


@every_scheme
def test_only_without_a_scheme_is_the_order_of_the_bytes_before_lost(scheme):
    model = make(scheme, n_layers=1)
    order = torch.tensor([*range(LENGTH - 2, -1, -1), LENGTH - 1])
    change = error(model(TOKENS[:, order])[:, -1], model(TOKENS)[:, -1])
    assert (change < TINY) == (scheme == "none")
    assert change < TINY or change > 1e-3
    # A second layer does notice the order. Under the causal mask, each output of the first layer has attended to a
    # different number of bytes.
    deep = make(scheme)
    assert error(deep(TOKENS[:, order])[:, -1], deep(TOKENS)[:, -1]) > 1e-3


def test_without_the_mask_an_unrotated_layer_knows_no_order_at_all():
    x, order = make("none").embedding(TOKENS), torch.randperm(LENGTH, generator=torch.Generator().manual_seed(1))
    for scheme in ("none", "rope-10000"):
        layer = make(scheme).layers[0].attention
        change = error(layer(x[:, order], is_causal=False), layer(x, is_causal=False)[:, order])
        assert (change < TINY) == (scheme == "none")


def test_without_a_scheme_positions_say_nothing():
    model = make("none")
    assert torch.equal(model(TOKENS, torch.arange(LENGTH) ** 2), model(TOKENS))


# --- ALiBi ---


@together("n_heads", [1, 2, 3, 4, 8, 12, 16])
def test_alibi_is_that_of_bloom(n_heads):
    """Bloom's bias is the slope times the key's position. The query's position would only shift a whole row of scores,
    and softmax ignores such a shift."""
    by_key = build_alibi_tensor(torch.ones(1, 9), n_heads, torch.float32)[:, 0]
    expected = by_key[:, None, :] - by_key[:, :, None]
    assert error(M.alibi_bias(n_heads, 9), expected) < 1e-6
    assert torch.equal(M.alibi_bias(n_heads, 9).diagonal(dim1=1, dim2=2), torch.zeros(n_heads, 9))


def test_alibi_by_hand():
    bias = M.alibi_bias(8, 3, offset=2)
    assert bias.shape == (8, 3, 5)
    assert bias.dtype == torch.float32
    for h in range(8):
        for t in range(3):
            assert bias[h, t].tolist() == [(n - (t + 2)) / 2 ** (h + 1) for n in range(5)]
    assert torch.equal(M.alibi_bias(8, 5)[:, 2:], bias)


def test_alibi_is_to_the_bit_what_the_trained_models_had():
    """The expected bias is written in the same form as in the experiment, and must agree to the last bit."""
    for n_heads, q_len, offset in ((4, 256, 0), (4, 3, 4093), (2, 16, 5)):
        slopes = 2.0 ** (-8 * torch.arange(1, n_heads + 1) / n_heads)
        keys = torch.arange(offset + q_len)
        before = slopes[:, None, None] * (keys - keys[offset:, None])
        assert torch.equal(M.alibi_bias(n_heads, q_len, offset), before)


def alone(model, tokens, segments):
    """Run the model on each text separately, and join the outputs. A row may contain several texts."""
    out = torch.zeros(*tokens.shape, 256, dtype=torch.float64)
    for row, ids in enumerate(segments.tolist()):
        starts = [0, *(t for t in range(1, len(ids)) if ids[t] != ids[t - 1]), len(ids)]
        for start, stop in itertools.pairwise(starts):
            out[row, start:stop] = model(tokens[row : row + 1, start:stop])[0]
    return out


@every_scheme
def test_texts_packed_in_one_row_are_as_if_alone(scheme):
    model = make(scheme)
    segments = torch.tensor([[0] * 5 + [1] * 8 + [2] * 3, [0] * 16])
    positions, mask = R.packed_positions(segments), R.packed_mask(segments)
    expected = alone(model, TOKENS, segments)
    assert error(expected, model(TOKENS)) > 1e-2
    assert error(model(TOKENS, positions, mask), expected) < TINY
    added = torch.where(mask, 0.0, -math.inf).double()
    assert error(model(TOKENS, positions, added), expected) < TINY
    assert error(model(TOKENS[:1], positions[0], mask[0, 0]), expected[:1]) < TINY


def test_what_a_mask_adds_is_added_to_the_bias():
    extra = torch.randn(4, LENGTH, LENGTH, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    alibi, none = make("alibi"), make("none")
    bias = M.alibi_bias(4, LENGTH).double()
    assert error(alibi(TOKENS, mask=extra), none(TOKENS, mask=extra + bias)) < TINY
    assert error(alibi(TOKENS), none(TOKENS, mask=bias)) < TINY
    assert error(alibi(TOKENS, mask=extra), alibi(TOKENS)) > 1e-2


def test_alibi_takes_positions_that_count():
    model = make("alibi")
    whole = model(TOKENS)
    assert torch.equal(model(TOKENS, torch.arange(LENGTH)), whole)
    assert torch.equal(model(TOKENS, torch.arange(LENGTH).expand(2, -1)), whole)
    caches = model.new_caches(LENGTH)
    model(TOKENS[:, :9], caches=caches)
    assert error(model(TOKENS[:, 9:], torch.arange(9, 16), caches=caches), whole[:, 9:]) < TINY


# --- with a cache ---


@every_scheme
@together("chunks", [[16], [1] * 16, [9, 1, 1, 5]], ids=str)
def test_chunks_with_caches_give_what_all_at_once_gives(scheme, chunks):
    model = make(scheme)
    caches = model.new_caches(LENGTH)
    out = torch.cat([model(piece, caches=caches) for piece in TOKENS.split(chunks, 1)], 1)
    assert error(out, model(TOKENS)) < TINY


@every_scheme
def test_generates_what_all_at_once_would(scheme):
    model = make(scheme, length=24)
    found = model.generate(TOKENS[:, :12], 12)
    step = TOKENS[:, :12]
    for _ in range(12):
        step = torch.cat((step, model(step)[:, -1:].argmax(-1)), 1)
    assert torch.equal(found, step)
    assert len(found[:, 12:].unique()) > 5


@every_scheme
def test_generates_from_prompts_of_unequal_length(scheme):
    model = make(scheme, length=24)
    prompts, lengths = TOKENS[:, :8], [8, 3]
    found = model.generate(prompts, 10, lengths)
    for row, length in enumerate(lengths):
        expected = model.generate(prompts[row : row + 1, 8 - length :], 10)
        assert torch.equal(found[row, 8 - length :], expected[0])
    assert not torch.equal(found, model.generate(prompts, 10))


@every_scheme
def test_only_the_learned_scheme_ends_at_its_length(scheme):
    model = make(scheme)
    long = TOKENS.repeat(1, 2)
    if scheme != "learned":
        assert not model(long).isnan().any()
        assert model.generate(TOKENS, 2).shape == (2, 18)
        return
    message = "positions must lie between 0 and 15 (max_length=16 vectors were learned, no more), got 16"
    with pytest.raises(ValueError, match=re.escape(message)):
        model(long)
    caches = model.new_caches(17)
    model(TOKENS, caches=caches)
    with pytest.raises(ValueError, match=re.escape(message)):
        model(TOKENS[:, :1], caches=caches)
    assert model.generate(TOKENS, 1).shape == (2, 17)  # the last byte is only predicted, and never read
    with pytest.raises(ValueError, match=re.escape(message)):
        model.generate(TOKENS, 2)


# --- types, devices, gradients ---


@every_scheme
def test_every_device(device, scheme):
    there = make(scheme, torch.float32, device=device)
    assert error(there(TOKENS.to(device)).cpu(), make(scheme, torch.float32)(TOKENS)) < 2e-5
    assert torch.equal(there.generate(TOKENS[:, :14].to(device), 2).cpu()[:, :14], TOKENS[:, :14])


@every_scheme
@together("dtype, close", [(torch.float32, 1e-5), (torch.bfloat16, 0.2)], ids=str)
def test_every_dtype(scheme, dtype, close):
    out = make(scheme, dtype)(TOKENS)
    assert out.dtype == dtype
    assert error(out, make(scheme)(TOKENS)) < close


@every_scheme
def test_gradients_reach_every_weight(scheme):
    model = make(scheme)
    with torch.enable_grad():
        model(TOKENS).square().sum().backward()
    assert all(weight.grad.abs().max() > 0 for weight in model.parameters())


@every_scheme
def test_a_copy_is_as_the_original(scheme):
    model = make(scheme)
    assert torch.equal(copy.deepcopy(model)(TOKENS), model(TOKENS))
    again = M.LanguageModel(scheme, LENGTH, **SIZES, dtype=torch.float64)
    again.load_state_dict(model.state_dict())
    assert torch.equal(again(TOKENS), model(TOKENS))


# --- trained models ---


@pytest.fixture
def trained(tmp_path, monkeypatch):
    """Add two models to the results, in the format in which they are stored after training."""
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path / "none")
    (tmp_path / "trials").mkdir()
    models = {M.SHIPPED: make("rope-10000", torch.float32), "learned-2": make("learned", torch.float32)}
    for name, model in models.items():
        run = {"scheme": model.scheme, "length": LENGTH, **SIZES, "rows": 3}
        (tmp_path / "trials" / f"{name}.json").write_text(json.dumps({"run": run}))
        state = {key: weight.half() for key, weight in model.state_dict().items() if key != "lm_head.weight"}
        model.load_state_dict({key: weight.half().float() for key, weight in model.state_dict().items()})
        save_file(state, tmp_path / "trials" / f"{name}.safetensors")
    return models


def test_trained_weights_lie_among_the_results(trained):
    for name, model in trained.items():
        found = M.pretrained(name)
        assert torch.equal(found(TOKENS), model(TOKENS))
        assert (found.scheme, found.length, found.training) == (model.scheme, LENGTH, False)
        assert found.lm_head.weight is found.embedding.weight
        assert found.embedding.weight.dtype == torch.float32
    assert M.pretrained().scheme == "rope-10000"
    with pytest.raises(FileNotFoundError, match="no result named 'alibi'; there are: learned-2, rope-10000-0-3200"):
        M.pretrained("alibi")


# --- bad input ---

ALIBI = M.LanguageModel("alibi", LENGTH, **SIZES)
COUNT = torch.arange(LENGTH)
ALL = torch.ones(LENGTH, LENGTH, dtype=torch.bool)


def cached(positions, mask=None):
    caches = ALIBI.new_caches(LENGTH)
    ALIBI(TOKENS[:, :9], caches=caches)
    return ALIBI(TOKENS[:, 9:], positions, mask, caches)


COUNTING = "positions must count the row's bytes from 0 on, or with a mask those of each text, got "
BAD = [
    # each case consists of a call, the error's type, and its message
    (lambda: M.LanguageModel("rope", 8), ValueError, "scheme must be one of 'learned', 'sinusoidal', 'rope-100'"),
    (lambda: M.LanguageModel("none", 0), ValueError, "length must be an integer >= 1, got 0"),
    (lambda: M.LanguageModel("none", 8.0), TypeError, "length must be an integer >= 1, got 8.0"),
    (lambda: M.LanguageModel("none", 8, seed=0.5), TypeError, "seed must be an integer, got 0.5"),
    (lambda: M.LanguageModel("none", 8, dim=20), ValueError, "head_dim must be an even integer >= 2, got 5"),
    (lambda: M.LanguageModel("none", 8, n_layers=0), ValueError, "n_layers must be an integer >= 1, got 0"),
    (lambda: M.alibi_bias(0, 4), ValueError, "n_heads must be an integer >= 1, got 0"),
    (lambda: M.alibi_bias(2, 0), ValueError, "q_len must be an integer >= 1, got 0"),
    (lambda: M.alibi_bias(2, 1, -1), ValueError, "offset must be an integer >= 0, got -1"),
    (lambda: ALIBI([[1]]), TypeError, "tokens must be a tensor of int64 or int32, got list"),
    (lambda: ALIBI(TOKENS[0]), ValueError, "tokens must be (batch, seq), neither of them 0, got (16,)"),
    (lambda: ALIBI(TOKENS + 256), ValueError, "tokens must lie between 0 and 255, got"),
    (lambda: ALIBI(TOKENS, caches=[]), ValueError, "caches must be one for each of 2 layers, got 0"),
    (lambda: ALIBI(TOKENS, mask=ALL[1:]), ValueError, "mask must broadcast to the scores' shape, (2, 4, 16, 16), got"),
    (lambda: ALIBI(TOKENS, mask=ALL.int()), TypeError, "mask must be a tensor, boolean (True = may attend)"),
    (lambda: ALIBI(TOKENS, COUNT + 1), ValueError, COUNTING),
    (lambda: ALIBI(TOKENS, COUNT * 2), ValueError, COUNTING),
    (lambda: ALIBI(TOKENS, COUNT % 8), ValueError, COUNTING),  # no separator divides these texts
    (lambda: ALIBI(TOKENS, COUNT[1:]), ValueError, COUNTING),
    (lambda: ALIBI(TOKENS, list(range(LENGTH))), ValueError, COUNTING),
    (lambda: ALIBI(TOKENS, COUNT * 2, ALL), ValueError, COUNTING),
    (lambda: ALIBI(TOKENS, COUNT.flip(0), ALL), ValueError, COUNTING),
    (lambda: cached(COUNT[:7]), ValueError, COUNTING.replace("from 0", "from 9")),
    (lambda: cached(COUNT[9:] * 2, ALL[9:]), ValueError, COUNTING.replace("from 0", "from 9")),
]


@together("call, kind, message", BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call()
