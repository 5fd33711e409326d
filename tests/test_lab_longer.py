"""Tests of a trained model with a method for longer texts, compared with the attention layer and with decoding one
token at a time."""

import pytest
import torch

from ropebook.extrapolation import ExtendedAttention, SelfExtend, make
from ropebook.lab import longer
from ropebook.lab.bits import position_bits
from ropebook.lab.longer import with_method
from ropebook.rotary_attention import RotaryAttention
from tests.lab_models import METHOD_OPTIONS, L, bits_from, decoded, random_windows, slow_method, tiny
from tests.together import together

EXACT = 1e-10  # for float64 results after two layers


@pytest.fixture(scope="module")
def model():
    return tiny()


@pytest.mark.parametrize("method", METHOD_OPTIONS)
def test_a_method_in_the_model_is_that_of_the_attention_layer(model, method, monkeypatch):
    monkeypatch.setattr(longer, "_PIECE", 7)
    tokens = random_windows(2, 40)[:, :-1]
    with torch.no_grad():
        before = model(tokens)
        ours = with_method(model, method, METHOD_OPTIONS[method])
        found, wanted = ours(tokens), slow_method(model, method, METHOD_OPTIONS[method])(tokens)
        assert (found - wanted).abs().max() < EXACT
        assert (found - before).abs().max() > 1e-3  # the method has an effect
        assert torch.equal(model(tokens), before)  # the original model must stay unchanged


def test_a_method_shares_weights_and_one_rotary(model):
    ours = with_method(model, "yarn", METHOD_OPTIONS["yarn"])
    shared = dict(model.named_parameters())
    assert all(weight is shared[name] for name, weight in ours.named_parameters())
    assert len(dict(ours.named_parameters())) == len(shared)
    assert len({layer.attention.rotary for layer in ours.layers}) == 1
    assert type(model.layers[0].attention) is RotaryAttention
    assert with_method(model, "none") is model


@together("scheme", ["learned", "sinusoidal", "alibi", "none"])
def test_a_model_that_does_not_rotate_takes_no_method(scheme):
    with pytest.raises(ValueError, match=f"must rotate its queries and keys, got scheme '{scheme}'"):
        with_method(tiny(scheme), "linear", {"factor": 2.0})


def test_bad_methods(model):
    with pytest.raises(ValueError, match="method must be one of 'none', 'linear'"):
        with_method(model, "nothing")
    for method in ("none", "linear", "rerope"):
        with pytest.raises(ValueError, match=f"does not follow the length, got True for '{method}'"):
            with_method(model, method, METHOD_OPTIONS.get(method), arrival=True)
    with pytest.raises(TypeError, match="factor"):
        with_method(model, "linear")


@pytest.mark.parametrize("length", [1, 4, 7, 8, 23])
@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("method", ["rerope", "self_extend"])
def test_scores_in_pieces(method, kv_heads, length, monkeypatch):
    monkeypatch.setattr(longer, "_PIECE", 7)
    layer = RotaryAttention(16, 4, kv_heads, dtype=torch.float64, layout="interleaved")
    options = METHOD_OPTIONS[method]
    pieces, whole = (kind.of(layer, method=method, options=options) for kind in (longer._InPieces, ExtendedAttention))
    x = torch.randn(2, length, 16, dtype=torch.float64, generator=torch.Generator().manual_seed(length))
    assert (pieces(x) - whole(x)).abs().max() < 1e-13
    mask = torch.rand(length, length) < 0.7
    mask.fill_diagonal_(True)
    assert torch.equal(pieces(x, mask=mask), whole(x, mask=mask))
    assert torch.equal(pieces(x, is_causal=False), whole(x, is_causal=False))
    assert torch.equal(pieces(x, torch.arange(length) + 3), whole(x, torch.arange(length) + 3))
    assert torch.equal(pieces(x, return_weights=True)[1], whole(x, return_weights=True)[1])


def test_pieces_in_float32_are_rounded_no_worse():
    layer = RotaryAttention(16, 2, layout="interleaved")
    x = torch.randn(1, 50, 16, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        pieces, whole = (
            kind.of(layer, method="rerope", options={"window": 9})(x) for kind in (longer._InPieces, ExtendedAttention)
        )
    assert pieces.dtype == torch.float32
    assert (pieces - whole).abs().max() < 1e-6


def test_distances_decode_to_the_same(model):
    window = random_windows(1, 30)[0]
    ours = with_method(model, "self_extend", METHOD_OPTIONS["self_extend"])
    assert (position_bits(ours, window[None])[0] - bits_from(decoded(ours, window[:-1]), window)).abs().max() < 1e-5


def test_arrival_is_decoding_with_a_cache_of_rotated_keys(model):
    window, options = random_windows(1, 5 * L)[0], METHOD_OPTIONS["dynamic_ntk"]
    literal = decoded(slow_method(model, "dynamic_ntk", options, keep="rotated"), window[:-1])
    ours = with_method(model, "dynamic_ntk", options, arrival=True)
    prefill = with_method(model, "dynamic_ntk", options)
    with torch.no_grad():
        assert (ours(window[None, :-1])[0] - literal).abs().max() < EXACT
        # a shorter text must give the same rows
        assert (ours(window[None, :40])[0] - literal[:40]).abs().max() < EXACT
        assert (decoded(ours, window[:-1]) - literal).abs().max() < EXACT  # decoding uses an offset
        assert (prefill(window[None, :-1])[0] - literal)[
            :L
        ].abs().max() > 1e-3  # with the frequencies for the whole length, the result would differ
        assert (ours(window[None, :L]) - model(window[None, :L])).abs().max() < EXACT  # up to L nothing changes
        assert ours.float()(window[None, :-1]).dtype == torch.float32
    model.double()  # both models share their weights
    with pytest.raises(ValueError, match="positions must be None"):
        ours(window[None, :4], torch.arange(4))


def test_the_options_that_a_method_may_be_given():
    for method in ("linear", "ntk", "dynamic_ntk", "ntk_by_parts", "yarn", "log_n", "rerope", "self_extend"):
        for s in (2, 4, 8, 16):
            made = make(method, **longer.method_options(method, s, 64))
            if method == "self_extend":
                assert made.reach(64) >= 64 * s
                assert made.group == 1 or SelfExtend(16, made.group - 1).reach(64) < 64 * s
    assert longer.method_options("none", 4) == {}
    assert longer.method_options("yarn", 8) == {"factor": 8, "trained_length": 256}
    assert longer.method_options("ntk", 2) == {"factor": 2}
    assert longer.method_options("dynamic_ntk", None) == {"trained_length": 256}
    assert longer.method_options("rerope", 4, 64) == {"window": 32}
    with pytest.raises(ValueError, match="method must be one of"):
        longer.method_options("yarm", 4)
