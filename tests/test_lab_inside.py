"""Tests of measurements inside a model. Sums over distances are compared with loops, norms with those of the bare
projections, and permuted models with the original model."""

import json
import math
import statistics

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.attention import MultiHeadAttention
from ropebook.efficient import apply_rotary
from ropebook.lab import inside
from ropebook.lab.bits import position_bits
from ropebook.lab.inside import Attention
from ropebook.lab.longer import with_method
from ropebook.lab.model import LanguageModel, alibi_bias
from ropebook.rotary_attention import LlamaModel
from tests.together import together

L = 16


def model_of(scheme="rope-10000", dtype=torch.float64, device=None, **sizes):
    sizes = {"dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2} | sizes
    return LanguageModel(scheme, L, dtype=dtype, device=device, **sizes)


def texts(rows=3, length=L, seed=0):
    return torch.randint(0, 128, (rows, length), generator=torch.Generator().manual_seed(seed))


def same(a, b, within=1e-12):
    torch.testing.assert_close(a, b, rtol=within, atol=within)


# --- Queries and keys -----------------------------------------------------------------------------------------------


def walked(model, tokens):
    """Compute the model step by step. For each layer, yield its attention together with the layer's input and the
    attention weights."""
    bias = None
    if model.scheme == "alibi":
        bias = alibi_bias(model.n_heads, tokens.shape[1], device=tokens.device).to(model.embedding.weight.dtype)
    x = model.embed(tokens, None, 0)
    for layer in model.layers:
        normed = layer.attention_norm(x)
        _, weights = layer.attention(normed, None, bias, return_weights=True)
        yield layer.attention, normed, weights
        x = layer(x, None, bias)


SCHEMES = ["rope-10000", "alibi", "none", "learned", "sinusoidal"]


@together("scheme", SCHEMES)
def test_queries_and_keys_are_those_of_the_layers(scheme):
    model, tokens = model_of(scheme), texts()
    found = inside.queries_and_keys(model, tokens)
    for (layer, x, _), (q, k) in zip(walked(model, tokens), found, strict=True):
        expected = layer.project(x)
        same(q, expected[0])
        same(k, expected[1])
        assert not q.requires_grad


def test_no_hook_is_left_behind_even_after_an_error():
    model = model_of()
    inside.queries_and_keys(model, texts())
    with pytest.raises(ValueError, match="tokens must lie between 0 and 255"):
        inside.queries_and_keys(model, texts() + 1000)
    assert all(not layer.attention._forward_pre_hooks for layer in model.layers)


def test_methods_that_rotate_before_are_seen_and_those_that_do_not_are_refused():
    model, tokens = model_of(), texts()
    log_n = with_method(model, "log_n", {"trained_length": 4})
    (q, _), (plain, _) = inside.queries_and_keys(log_n, tokens)[0], inside.queries_and_keys(model, tokens)[0]
    same(q[0, 0, -1], plain[0, 0, -1] * math.log(L, 4))
    far = with_method(model, "rerope", {"window": 4})
    with pytest.raises(ValueError, match=r"must rotate queries and keys before they meet, got the method ReRoPE"):
        inside.attention_by_distance(far, tokens)


# --- Norms ----------------------------------------------------------------------------------------------------------


def test_pair_norms_are_those_before_the_rotation(float64_device):
    model, tokens = model_of(device=float64_device), texts(rows=5, length=7)
    found = inside.pair_norms(model, tokens)
    assert found.q.dtype == found.k.dtype == torch.float64
    for at, (layer, x, _) in enumerate(walked(model, tokens.to(float64_device))):
        unrotated = MultiHeadAttention.project(layer, x)[:2]
        for kind, heads in zip((found.q, found.k), unrotated, strict=True):
            first, second = heads[..., :4].cpu(), heads[..., 4:].cpu()
            same(kind[at], (first**2 + second**2).sqrt().mean((0, 2)).detach())


def test_pair_norms_of_the_interleaved_layout_and_grouped_heads():
    model = LlamaModel(
        256, 16, 24, 1, 4, 2, head_dim=4, dtype=torch.float64, layout="interleaved"
    )  # the pairs are (2i, 2i + 1)
    found = inside.pair_norms(model, texts())
    assert found.q.shape == (1, 4, 2)
    assert found.k.shape == (1, 2, 2)
    layer, x = model.layers[0].attention, model.layers[0].attention_norm(model.embedding(texts()))
    q = MultiHeadAttention.project(layer, x)[0].detach()
    same(found.q[0, 3, 1], (q[:, 3, :, 2] ** 2 + q[:, 3, :, 3] ** 2).sqrt().mean())


def test_many_texts_are_streamed():
    model, tokens = model_of(), texts(rows=35, length=6)
    pieces = [inside.pair_norms(model, tokens[i : i + 1]).k for i in range(35)]
    same(inside.pair_norms(model, tokens).k, torch.stack(pieces).mean(0))
    pieces = [inside.attention_by_distance(model, tokens[i : i + 1]) for i in range(35)]
    for whole, single in zip(inside.attention_by_distance(model, tokens), zip(*pieces, strict=True), strict=True):
        same(whole, torch.stack(single).mean(0))


# --- Attention by distance ------------------------------------------------------------------------------------------


@together("scheme", SCHEMES)
@together("start", [None, 0, 6])
def test_attention_by_distance_against_loops(scheme, start):
    model, tokens = model_of(scheme), texts(rows=2, length=7)
    found = inside.attention_by_distance(model, tokens, start)
    begin = 3 if start is None else start
    for at, (layer, x, weights) in enumerate(walked(model, tokens)):
        q, k, _ = layer.project(x)
        for head in range(2):
            slope = 2.0 ** (-4 * (head + 1)) if scheme == "alibi" else 0.0
            first = 0.0
            for distance in range(7):
                seen, scores = [], []
                for text in range(2):
                    for m in range(max(begin, distance), 7):
                        n = m - distance
                        seen.append(weights[text, head, m, n].item())
                        product = sum(q[text, head, m, i].item() * k[text, head, n, i].item() for i in range(8))
                        scores.append(product / math.sqrt(8) - slope * distance)
                        first += seen[-1] * (n == 0)
                row = at, head, distance
                assert found.weights[row].item() == pytest.approx(statistics.mean(seen), abs=1e-12)
                assert found.scores[row].item() == pytest.approx(statistics.mean(scores), abs=1e-12)
                assert found.share[row].item() == pytest.approx(sum(seen) / (2 * (7 - begin)), abs=1e-12)
            assert found.first[at, head].item() == pytest.approx(first / (2 * (7 - begin)), abs=1e-12)
    same(found.share.sum(-1), torch.ones(2, 2).double())


@torch.no_grad()
def test_without_queries_attention_is_even_and_alibi_alone_decays(device):
    plain, alibi = (model_of(scheme, torch.float32, device) for scheme in ("rope-10000", "alibi"))
    for model in (plain, alibi):
        for layer in model.layers:
            layer.attention.q_proj.weight.zero_()
    even = inside.attention_by_distance(plain, texts(length=8))
    for distance in range(8):
        expected = statistics.mean(1 / (m + 1) for m in range(max(4, distance), 8))
        assert even.weights[1, 1, distance].item() == pytest.approx(expected, abs=1e-6)
    assert even.scores.abs().max() == 0
    falling = inside.attention_by_distance(alibi, texts(length=8))
    same(falling.scores[0, 0], -torch.arange(8).double() / 16, 1e-6)
    assert all(head.slope == pytest.approx(-1, abs=1e-6) for head in inside.heads(falling))


def test_start_must_leave_a_query():
    with pytest.raises(ValueError, match=r"start must be an integer >= 0 and <= 6, got 7"):
        inside.attention_by_distance(model_of(), texts(length=7), 7)


# --- Heads ----------------------------------------------------------------------------------------------------------


def made(share, scores):
    """Return attention with one layer and one head. All queries are at the end of the text, so the weights equal the
    shares."""
    share, scores = (torch.tensor(x, dtype=torch.float64)[None, None] for x in (share, scores))
    return Attention(share, scores, share, share[..., -1])


def test_a_head_that_looks_at_the_byte_before():
    (head,) = inside.heads(made([0.1, 0.7, 0.1, 0.0, 0.0, 0.1], [9.0, 1.0, 1.0, 4.0, 9.0, 9.0]))
    assert (head.layer, head.head, head.peak, head.median) == (0, 0, 1, 1)
    assert (head.at_peak, head.first) == (0.7, 0.1)
    assert head.slope == pytest.approx(math.sqrt(3) / 2)  # the correlation of 1, 1, 4 with 1, 2, 3 is (1.5·2)/√(2·6)


def test_a_head_that_looks_far():
    share = [0.0] * 40
    share[7], share[8], share[31], share[32], share[39] = 0.1, 0.2, 0.1, 0.05, 0.55
    (head,) = inside.heads(made(share, [-0.5 * i for i in range(40)]))
    assert head.near_8 == pytest.approx(0.1)
    assert head.near_32 == pytest.approx(0.4)
    assert (head.peak, head.median) == (39, 39)
    assert head.slope == pytest.approx(-1)


def test_near_is_everything_in_a_short_text():
    (head,) = inside.heads(made([0.25] * 4, [0.0, 1.0, 3.0, 2.0]))
    assert (head.near_8, head.near_32, head.median) == (1.0, 1.0, 1)
    with pytest.raises(ValueError, match=r"T must be an integer >= 4, got 3"):
        inside.heads(made([0.5, 0.25, 0.25], [0.0, 1.0, 2.0]))


def test_heads_are_in_order():
    model = model_of(n_layers=3)
    rows = inside.heads(inside.attention_by_distance(model, texts()))
    assert [(row.layer, row.head) for row in rows] == [(i, j) for i in range(3) for j in range(2)]


# --- Frequencies ----------------------------------------------------------------------------------------------------


@torch.no_grad()
def test_given_frequencies_are_used(float64_device):
    model, tokens = model_of(device=float64_device), texts().to(float64_device)
    before = model(tokens)
    theta = model.layers[0].attention.rotary.inv_freq
    other = inside.with_frequencies(model, theta / 4)
    linear = with_method(model, "linear", {"factor": 4.0})
    same(other(tokens), linear(tokens))
    assert (other(tokens) - before).abs().max() > 1e-3
    same(inside.with_frequencies(model, theta)(tokens), before)
    assert torch.equal(model(tokens), before)
    assert [w.data_ptr() for w in other.parameters()] == [w.data_ptr() for w in model.parameters()]


def test_frequencies_that_do_not_fit_are_refused():
    model = model_of()
    with pytest.raises(ValueError, match=r"inv_freq must be of shape \(4,\), got \(5,\)"):
        inside.with_frequencies(model, torch.ones(5))
    with pytest.raises(TypeError, match="inv_freq must be a floating-point tensor"):
        inside.with_frequencies(model, torch.ones(4, dtype=torch.int64))
    with pytest.raises(ValueError, match="inv_freq must be finite numbers, got nan"):
        inside.with_frequencies(model, torch.full((4,), torch.nan))
    for order in ([0, 0, 1, 2], [-1, 0, 1, 2], [0, 1, 2]):
        with pytest.raises(ValueError, match="order must have each of 0 … 3 once, got"):
            inside.reordered(model, torch.tensor(order))
    for act in (inside.pair_norms, inside.with_frequencies, inside.permuted, inside.reordered, inside.without_pair):
        with pytest.raises(ValueError, match="model must rotate its queries and keys, got scheme 'alibi'"):
            act(model_of("alibi"), torch.zeros(1, 1, dtype=torch.int64))
    longer = with_method(model, "linear", {"factor": 4.0})
    with pytest.raises(ValueError, match="model must have its own frequencies, got one with a method"):
        inside.without_pair(longer, 0)


@given(st.integers(2, 64), st.integers(0, 2**32))
def test_a_permutation_is_one_and_moves_something(pairs, seed):
    order = inside.permutation(pairs, seed)
    assert sorted(order.tolist()) == list(range(pairs))
    assert order.tolist() != list(range(pairs))
    assert torch.equal(order, inside.permutation(pairs, seed))


def test_permutations_differ_by_seed_and_need_two_pairs():
    assert len({tuple(inside.permutation(16, seed).tolist()) for seed in inside.SEEDS}) == len(inside.SEEDS)
    with pytest.raises(ValueError, match=r"pairs must be an integer >= 2, got 1"):
        inside.permutation(1, 0)


@pytest.mark.parametrize("layout", ["half", "interleaved"])
@torch.no_grad()
def test_frequencies_permuted_with_the_rows_change_nothing(layout):
    """This is also true for grouped heads. If no rows are permuted, or only the rows of one projection, the model does
    change."""
    model = LlamaModel(256, 16, 24, 2, 4, 2, head_dim=8, layout=layout, dtype=torch.float64)
    tokens = texts()
    order = inside.permutation(4, seed=1)
    plain = model(tokens)
    other = inside.reordered(model, order)
    same(other(tokens), plain, 1e-11)
    assert (inside.permuted(model, order)(tokens) - plain).abs().max() > 1e-3
    theta = model.layers[0].attention.rotary.inv_freq
    # up to the projection's rounding error, each rotated query is the old one with its pairs in the new order
    (q, k), (old_q, old_k) = inside.queries_and_keys(other, tokens)[0], inside.queries_and_keys(model, tokens)[0]
    for new, old in ((q, old_q), (k, old_k)):
        pairs = old.unflatten(-1, (2, 4)) if layout == "half" else old.unflatten(-1, (4, 2)).mT
        moved = pairs[..., order]
        same(new, moved.flatten(-2) if layout == "half" else moved.mT.flatten(-2))
    cos, sin = other.layers[0].attention.rotary.cos_sin(torch.tensor([3]), torch.float64)
    assert torch.equal(cos, (3 * theta[order]).cos()[None])
    assert torch.equal(sin, (3 * theta[order]).sin()[None])
    for layer, twin in zip(model.layers, other.layers, strict=True):
        assert layer.attention.q_proj.weight.data_ptr() != twin.attention.q_proj.weight.data_ptr()
        assert layer.attention.v_proj.weight is twin.attention.v_proj.weight
        twin.attention.k_proj = layer.attention.k_proj
    assert (other(tokens) - plain).abs().max() > 1e-3


@torch.no_grad()
def test_scores_are_exactly_the_same_where_sums_have_no_rounding():
    """Integers and quarter turns cause no rounding errors. If the pairs of q and k are permuted together with their
    angles, the score must stay exactly the same."""
    draws = torch.Generator().manual_seed(0)
    q, k = torch.randint(-9, 9, (2, 1, 1, 6, 8), generator=draws).double()
    turns = torch.randint(0, 4, (6, 4), generator=draws)
    cos, sin = (torch.tensor(table).double()[turns] for table in ([1, 0, -1, 0], [0, 1, 0, -1]))
    order = inside.permutation(4, seed=3)
    entries = torch.cat((order, order + 4))
    scores, moved = (
        apply_rotary(a, c, s, layout="half") @ apply_rotary(b, c, s, layout="half").mT
        for a, b, c, s in ((q, k, cos, sin), (q[..., entries], k[..., entries], cos[:, order], sin[:, order]))
    )
    assert torch.equal(scores, moved)


@torch.no_grad()
def test_a_pair_switched_off_and_proportional_rotary():
    model, tokens = model_of(), texts()
    cos, sin = inside.without_pair(model, 2).layers[1].attention.rotary.cos_sin(torch.tensor([7]), torch.float64)
    theta = model.layers[0].attention.rotary.inv_freq
    kept = torch.tensor([0, 1, 3])
    assert (cos[0, 2], sin[0, 2]) == (1, 0)
    same(cos[0, kept], (7 * theta[kept]).cos())
    slow_off = inside.with_frequencies(model, theta * torch.tensor([1, 1, 0, 0]))
    same(slow_off(tokens), with_method(model, "proportional", {"fraction": 0.5})(tokens))
    assert torch.equal(theta, model.layers[0].attention.rotary.inv_freq)
    with pytest.raises(ValueError, match=r"pair must be an integer >= 0 and <= 3, got 4"):
        inside.without_pair(model, 4)


# --- Decoding -------------------------------------------------------------------------------------------------------


@together("scheme", ["rope-10000", "alibi"])
@together("prefill", [1, 9, 19])
def test_decoding_with_a_cache_is_reading_the_whole(scheme, prefill):
    model, windows = model_of(scheme), texts(length=21)
    found = inside.decoded_bits(model, windows, prefill)
    assert found.shape == (3, 20 - prefill)
    same(found, position_bits(model, windows)[:, prefill:], 1e-6)


def test_with_dynamic_frequencies_it_is_not():
    model = with_method(model_of(), "dynamic_ntk", {"trained_length": L})
    windows = texts(length=2 * L + 1)
    whole = position_bits(model, windows)[:, L:]
    assert (inside.decoded_bits(model, windows, L) - whole).abs().max() > 1e-4


@pytest.mark.parametrize("prefill", [0, 20])
def test_prefill_must_leave_a_byte_to_decode(prefill):
    with pytest.raises(ValueError, match=rf"prefill must be an integer >= 1 and <= 19, got {prefill}"):
        inside.decoded_bits(model_of(), texts(length=21), prefill)


# --- Bins -----------------------------------------------------------------------------------------------------------


@given(st.integers(1, 3000), st.integers(1, 40), st.integers(1, 9))
def test_bins_cover_every_distance_once(length, single, per_octave):
    edges = inside.bin_edges(length, single, per_octave)
    assert (edges[0], edges[-1]) == (0, length)
    assert edges == sorted(set(edges))
    assert edges[: min(single, length) + 1] == list(range(min(single, length) + 1))


def test_means_over_bins():
    values = torch.tensor([[1.0, 2.0, 4.0, 6.0]])
    assert inside.binned(values, [0, 1, 2, 4]).tolist() == [[1.0, 2.0, 5.0]]
    for edges in ([0, 1, 5], [-1, 1], [1, 1]):
        with pytest.raises(ValueError, match="edges must rise from 0 or more to 4 or less, got"):
            inside.binned(values, edges)


# --- Complete evaluation --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def measured():
    model, longer = model_of(), texts(rows=5, length=4 * L + 1)
    return model, longer, inside.measure(model, longer)


def expected_change(model, other, windows, start=0):
    a, b = (position_bits(m, windows)[:, start:].double().mean(1).tolist() for m in (other, model))
    differences = [x - y for x, y in zip(a, b, strict=True)]
    return statistics.mean(a), statistics.mean(differences), statistics.stdev(differences) / math.sqrt(len(a))


def test_measure_is_json_and_of_the_model(measured):
    model, _, found = measured
    assert json.loads(json.dumps(found, allow_nan=False)) == found
    assert len(found["heads"]) == 4
    bins = len(found["attention"]["edges"]) - 1
    for kind in ("weights", "scores"):
        assert torch.tensor(found["attention"][kind]).shape == (2, 2, bins)
    assert torch.tensor(found["pair_norms"]["q"]).shape == (2, 2, 4)
    assert found["inv_freq"] == model.layers[0].attention.rotary.inv_freq.tolist()


def test_measure_tells_each_change_with_its_error_over_files(measured):
    model, longer, found = measured
    windows = longer[:, : L + 1]
    theta = model.layers[0].attention.rotary.inv_freq
    orders = [inside.permutation(4, seed) for seed in found["permuted"]["seeds"]]
    assert found["proportional"]["fractions"] == [
        1.0,
        0.875,
        0.75,
        0.625,
        0.5,
        0.375,
        0.25,
    ]  # the smallest possible share is one of four pairs
    slow = theta * torch.tensor([1, 1, 0, 0])
    cases = [
        (found["switched_off"], 3, inside.without_pair(model, 3), windows, 0),
        (found["switched_off"]["beyond"], 1, inside.without_pair(model, 1), longer, L),
        (found["permuted"], 4, inside.with_frequencies(model, theta[orders[4]]), windows, 0),
        (found["reordered"], 2, model, windows, 0),
        (found["proportional"], 4, inside.with_frequencies(model, slow), windows, 0),
        (found["proportional"]["beyond"], 4, inside.with_frequencies(model, slow), longer, L),
    ]
    for part, at, other, rows, start in cases:
        assert len(part["bits"]) == len(part["change"]) == len(part["error"])
        bits, change, error = expected_change(model, other, rows, start)
        assert part["bits"][at] == pytest.approx(bits, abs=1e-5)
        assert part["change"][at] == pytest.approx(change, abs=1e-5)
        assert part["error"][at] == pytest.approx(error, abs=1e-5)
        assert part["plain"] == pytest.approx(bits - change, abs=2e-5)
        if start:
            assert (part["from"], part["to"]) == (L, 4 * L)
    assert found["switched_off"]["bits"] != found["permuted"]["bits"]
    assert max(map(abs, found["reordered"]["change"])) == 0


def test_measure_decodes_with_fixed_frequencies_and_with_those_that_follow_the_length(measured):
    *_, found = measured
    gaps = dict(zip(found["cache"]["methods"], found["cache"]["difference"], strict=True))
    assert list(gaps) == list(inside.CACHED)
    moving = gaps.pop("dynamic_ntk")
    assert max(gaps.values()) < 1e-5
    assert moving > 100 * max(gaps.values())


def test_a_model_that_does_not_rotate_has_attention_alone():
    found = inside.measure(model_of("learned"), texts(length=2 * L + 1))
    assert set(found) == {"attention", "heads"}


def test_measure_needs_texts_of_twice_the_trained_length():
    with pytest.raises(ValueError, match=r"longer must be \(files, 33 or more\), got \(3, 32\)"):
        inside.measure(model_of(), texts(length=2 * L))
