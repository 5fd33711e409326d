"""Tests of the ways to call `RotaryEmbedding` (with q alone, with tokens first, or in-place), and of how often a model
computes its tables."""

from __future__ import annotations

import pytest
import torch

from ropebook import efficient as E
from ropebook import memory, rope, triton_kernel
from ropebook.checks import LAYOUTS
from ropebook.efficient import RotaryEmbedding, apply_rotary, apply_rotary_qk
from ropebook.extrapolation import ExtendedAttention, make
from ropebook.rotary_attention import LlamaModel, RotaryAttention
from tests.helpers import largest, random
from tests.rotations import qk, tables
from tests.together import together

Q, K = random(2, 4, 5, 8), random(2, 2, 5, 8, seed=1)
PLACES = [{}, {"offset": 7}, {"positions": torch.tensor([3, 1, 4, 1, 5])}, {"positions": torch.arange(10).view(2, 5)}]


@pytest.fixture(params=[(layout, rotary_dim) for layout in LAYOUTS for rotary_dim in (8, 4)], ids=str)
def embedding(request):
    layout, rotary_dim = request.param
    return RotaryEmbedding(8, layout=layout, rotary_dim=rotary_dim)


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
def test_q_alone(embedding, place):
    assert torch.equal(embedding(Q, **place), embedding(Q, K, **place)[0])


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
def test_tokens_first(embedding, place):
    by_tokens = embedding(Q.transpose(1, 2).contiguous(), K.transpose(1, 2).contiguous(), tokens_first=True, **place)
    for found, expected in zip(by_tokens, embedding(Q, K, **place), strict=True):
        assert torch.equal(found, expected.transpose(1, 2))
    assert torch.equal(embedding(Q.transpose(1, 2), tokens_first=True, **place), by_tokens[0])


@pytest.mark.parametrize("place", PLACES, ids=lambda place: " ".join(place))
@pytest.mark.parametrize("tokens_first", [False, True])
def test_in_place(embedding, place, tokens_first):
    expected = embedding(Q, K, **place)
    given = [x.transpose(1, 2).contiguous() if tokens_first else x.clone() for x in (Q, K)]
    found = embedding(*given, **place, tokens_first=tokens_first, in_place=True)
    for x, turned, wanted in zip(given, found, expected, strict=True):
        assert turned.data_ptr() == x.data_ptr()
        torch.testing.assert_close(x, wanted.transpose(1, 2) if tokens_first else wanted)


@together("pairs", [4, 3])
@together("layout", LAYOUTS)
def test_the_functions_in_place(layout, pairs):
    q, k = random(2, 4, 5, 8), random(2, 2, 5, 8, seed=1)
    cos, sin = rope.cos_sin(torch.arange(5), rope.inv_freq(2 * pairs))
    expected = apply_rotary_qk(q, k, cos, sin, layout=layout)
    alone = q.clone()
    assert apply_rotary(alone, cos, sin, layout=layout, in_place=True) is alone
    turned = apply_rotary_qk(q, k, cos, sin, layout=layout, in_place=True)
    assert turned[0] is q
    assert turned[1] is k
    for ours, wanted in zip((alone, *turned), (expected[0], *expected), strict=True):
        assert largest(ours - wanted) < 1e-6
    with pytest.raises(ValueError, match="x must hold each number once"):
        apply_rotary(q[:, :1].expand(2, 4, 5, 8), cos, sin, in_place=True, layout="interleaved")


def test_in_place_has_the_gradient_of_the_rotation():
    embedding, gradients = RotaryEmbedding(8, rotary_dim=4, layout="interleaved"), []
    for in_place in (False, True):
        q = Q.clone().requires_grad_()
        (embedding(q * 1, in_place=in_place) * K.repeat(1, 2, 1, 1)).sum().backward()
        gradients.append(q.grad)
    torch.testing.assert_close(*gradients)


def test_shared_memory_is_not_rotated_in_place():
    with pytest.raises(ValueError, match="x must"):
        RotaryEmbedding(8, layout="interleaved")(Q, K[:, :1].expand(2, 4, 5, 8), in_place=True)


BOTH = random(2, 4, 5, 12, seed=2)


@together(
    ("q", "k"),
    [
        (BOTH[..., :8], BOTH[..., :8]),
        (BOTH[..., :8], BOTH[..., 4:]),
        (BOTH[:, :3, :, :8], BOTH[:, 2:, :, :8]),
        (BOTH[..., :8], BOTH[:1, ..., :8].expand(2, 4, 5, 8)),
    ],
    ids=["the same numbers", "overlapping entries", "a head in common", "expanded"],
)
def test_q_and_k_with_numbers_in_common_are_not_rotated_in_place(q, k):
    before = BOTH.clone()
    embedding = RotaryEmbedding(
        8, rotary_dim=4, layout="interleaved"
    )  # entries that are passed through must not change either
    cos, sin = embedding.cos_sin(torch.arange(5))
    for call in (
        lambda: embedding(q, k, in_place=True),
        lambda: apply_rotary_qk(q, k, cos, sin, in_place=True, layout="interleaved"),
        lambda: embedding(q.transpose(1, 2), k.transpose(1, 2), in_place=True, tokens_first=True),
    ):
        with pytest.raises(ValueError, match=r"q and k must not share memory|x must hold each number once"):
            call()
    with pytest.raises(ValueError, match="q and k must not share memory to be rotated in place"):
        embedding(q, q, in_place=True)
    assert torch.equal(BOTH, before)


def test_one_tensor_in_both_places_is_refused_without_addresses_too(monkeypatch):
    """While a graph is being traced, there are no memory addresses that could be compared."""
    monkeypatch.setattr(torch.compiler, "is_compiling", lambda: True)
    x = Q.clone()
    with pytest.raises(ValueError, match="q and k must not share memory"):
        memory.check_apart(x, x)
    memory.check_apart(x, x.clone())


@together(
    ("q", "k"),
    [
        (lambda x: x[..., :8], lambda x: x[..., 8:16]),
        (lambda x: x[:, :3, :, 8:16], lambda x: x[:, 3:, :, 8:16]),
        (lambda x: x[:, ::2, :, :8], lambda x: x[:, 1::2, :, :8]),
    ],
    ids=["entries", "heads", "every other head"],
)
def test_slices_of_one_tensor_without_a_number_in_common_are_rotated_in_place(q, k):
    """q, k and v are slices of a single product, and the gradient must reach that product."""
    embedding, weights = RotaryEmbedding(8, layout="interleaved"), random(2, 4, 5, 24, seed=4)
    seen = []
    for in_place in (False, True):
        leaf = random(2, 4, 5, 24, seed=3).requires_grad_()
        fused = leaf * 1
        given = q(fused), k(fused)
        turned = embedding(*given, in_place=in_place)
        ((turned[0] * q(weights)).sum() + (turned[1] * k(weights)).sum()).backward()
        seen.append([*turned, leaf.grad])
    for copied, overwritten in zip(*seen, strict=True):
        torch.testing.assert_close(overwritten, copied)
    assert [one.data_ptr() for one in turned] == [one.data_ptr() for one in given]
    with torch.no_grad():
        fused = random(2, 4, 5, 24, seed=3)
        for one, wanted in zip(embedding(q(fused), k(fused), in_place=True), turned, strict=True):
            torch.testing.assert_close(one, wanted)


@together(
    ("given", "message"),
    [
        ((Q[0],), r"q must have shape \(batch, seq, heads, 8\), got \(4, 5, 8\)"),
        ((Q[..., :6],), r"q must have shape \(batch, seq, heads, 8\), got \(2, 4, 5, 6\)"),
        ((Q, K), r"q and k must agree in batch and seq, got \(2, 4, 5, 8\) and \(2, 2, 5, 8\)"),
    ],
)
def test_shapes_with_tokens_first(given, message):
    with pytest.raises(ValueError, match=message):
        RotaryEmbedding(8, layout="interleaved")(*given, tokens_first=True)


def counted(monkeypatch, model, *given, **options) -> int:
    calls, compute = [], rope.tables
    monkeypatch.setattr(rope, "tables", lambda *args: calls.append(0) or compute(*args))
    with torch.no_grad():
        model(*given, **options)
    monkeypatch.undo()
    return len(calls)


TOKENS = torch.arange(12).view(2, 6)


@pytest.mark.parametrize("scaling", [None, make("yarn", factor=4.0, trained_length=64)], ids=["plain", "yarn"])
def test_a_model_computes_its_tables_once_a_call(monkeypatch, scaling):
    model = LlamaModel(20, 16, 24, n_layers=4, n_heads=2, scaling=scaling, layout="interleaved")
    assert counted(monkeypatch, model, TOKENS, positions=torch.arange(6) + 3) == 1
    assert counted(monkeypatch, model, TOKENS) == 1
    # after the call, only a model without scaling keeps its table
    assert counted(monkeypatch, model, TOKENS) == (scaling is not None)
    assert model.layers[0].attention.rotary._kept is None


def test_kept_tables_are_those_of_their_positions():
    embedding = RotaryEmbedding(8, layout="interleaved")
    with embedding.keeping_tables():
        for place in PLACES:
            for x in (Q, Q.float(), Q[:1], Q):
                if x.shape[0] == 1 and "positions" in place and place["positions"].ndim == 2:
                    continue
                assert torch.equal(embedding(x, **place), RotaryEmbedding(8, layout="interleaved")(x, **place))


def test_tables_are_let_go_after_an_error():
    model = LlamaModel(20, 16, 24, n_layers=2, n_heads=2, layout="interleaved")
    with pytest.raises(ValueError, match="positions must have shape"):
        model(TOKENS, positions=torch.arange(5))
    assert model.layers[0].attention.rotary._kept is None


def greedy(model: LlamaModel, tokens: torch.Tensor, new: int) -> torch.Tensor:
    """Decode greedily without using a cache."""
    for _ in range(new):
        with torch.no_grad():
            tokens = torch.cat((tokens, model(tokens)[:, -1:].argmax(-1)), 1)
    return tokens


@pytest.mark.parametrize("name", ["dynamic_ntk", "dynamic_yarn"])
def test_a_method_that_follows_the_length_generates(name):
    torch.manual_seed(0)
    model = LlamaModel(
        20,
        16,
        24,
        n_layers=2,
        n_heads=2,
        scaling=make(name, trained_length=4),
        dtype=torch.float64,
        layout="interleaved",
    )
    assert torch.equal(model.generate(TOKENS, 8), greedy(model, TOKENS, 8))
    with pytest.raises(ValueError, match="length must be known where the frequencies follow it, got None"):
        model.generate(TOKENS, 2, lengths=[6, 3])


@together(
    ("name", "options"),
    [("rerope", {"window": 4}), ("dynamic_ntk", {"trained_length": 4}), ("log_n", {"trained_length": 4})],
)
def test_a_model_of_extended_layers_generates(name, options):
    torch.manual_seed(0)
    layers = 1 if name == "dynamic_ntk" else 2
    model = LlamaModel(20, 16, 24, n_layers=layers, n_heads=2, dtype=torch.float64, layout="interleaved")
    for layer in model.layers:
        layer.attention = ExtendedAttention.of(layer.attention, method=name, options=options)
    assert torch.equal(model.generate(TOKENS, 8), greedy(model, TOKENS, 8))


@pytest.mark.parametrize("layout", LAYOUTS)
def test_what_is_wrong_is_called_by_its_name(layout):
    """The error must be one of ours, because torch's own error doesn't name the argument that is wrong."""
    q, k = qk(dtype=torch.float32)
    cos, sin = tables(range(5), 8, dtype=torch.float32)
    rope, away, small = E.RotaryEmbedding(8, layout=layout), torch.device("meta"), torch.float8_e4m3fn
    for given, message in (
        ((q, k.to(away)), "k must be on the device of q, cpu, got meta"),
        ((q.to(small), k), r"q must have at least two bytes per number to be rotated, got dtype torch\.float8_e4m3fn"),
        ((q, k.to(small)), "k must have at least two bytes"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            rope(*given)
    for call, message in (
        (lambda: E.apply_rotary(q.to(small), cos, sin, layout=layout), "x must have at least two bytes"),
        (
            lambda: E.apply_rotary(q, cos.to(away), sin.to(away), layout=layout),
            "x must be on the device of cos and sin, m",
        ),
        (
            lambda: E.apply_rotary(q, cos, sin.to(away), layout=layout),
            "cos and sin must be on one device, got cpu and m",
        ),
        (
            lambda: E.apply_rotary_qk(q, k.to(away), cos, sin, layout=layout),
            "k must be on the device of cos and sin, cpu",
        ),
        (lambda: E.apply_rotary_qk(q, k[..., :7], cos, sin, layout=layout), "k must have an even last axis"),
        (
            lambda: E.apply_rotary_qk(q, k[:, :, :3], cos, sin, layout=layout),
            r"cos and sin must have .* for \(2, .*\) of k",
        ),
        (lambda: E.join_pairs([1], q, layout), "first must be a tensor, got list"),
        (lambda: E.join_pairs(q, [1], layout), "second must be a tensor, got list"),
        (lambda: E.join_pairs(q, q[:1], layout), r"second must have shape \(…, d/2\), the same as the other, got \(1,"),
        (lambda: E.join_pairs(cos[0, 0], sin[0, 0], layout), r"first must have shape .* got \(\)"),
    ):
        with pytest.raises((TypeError, ValueError), match=message):
            call()
    if not triton_kernel.INTERPRETED:
        with pytest.raises(RuntimeError, match=r"\(backend 'triton'\) runs on CUDA, got tensors on cpu"):
            E.apply_rotary(q, cos, sin, backend="triton", layout="interleaved")


# --- The layout ------------------------------------------------------------------------------------------------------


@together(
    "call",
    [
        lambda: RotaryEmbedding(8),
        lambda: apply_rotary(Q, *tables(range(5), 8)),
        lambda: apply_rotary_qk(Q, K, *tables(range(5), 8)),
    ],
    ids=["the module", "apply_rotary", "apply_rotary_qk"],
)
def test_a_layout_that_is_left_out_is_said(call):
    """Without this warning, Llama weights from transformers would be rotated in the wrong layout without anybody
    noticing."""
    with pytest.warns(FutureWarning, match="now it is 'interleaved', .* Llama, .* in transformers want layout='half'"):
        call()


def test_until_then_it_is_interleaved():
    places = tables(range(5), 8)
    with pytest.warns(FutureWarning, match="layout will have to be given"):
        found = RotaryEmbedding(8)(Q, K), apply_rotary_qk(Q, K, *places), (apply_rotary(Q, *places), K)
    expected = apply_rotary_qk(Q, K, *places, layout="interleaved")
    assert all(torch.equal(q, expected[0]) for q, _ in found)
    assert all(torch.equal(k, expected[1]) for _, k in found[:2])


def test_a_layer_and_a_model_that_leave_it_out_say_so_too():
    for build in (lambda: RotaryAttention(8, 2), lambda: LlamaModel(9, 8, 12, 1, 2)):
        with pytest.warns(FutureWarning, match="layout will have to be given"):
            build()
