"""Tests of two measurements, compared with brute force: why models fail on longer texts, and how a cache affects
methods whose frequencies depend on the length."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook import extrapolation as X
from ropebook.decay import turned_pairs
from ropebook.rotary_attention import KVCache, LlamaModel, RotaryAttention
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, random
from tests.methods import DISTANCES, EXAMPLES, FREQUENCIES, bases, decode, example, extended, pairs, tiny_llama, turn

# --- Why length fails ---


def test_which_pairs_have_turned():
    for dim, base, trained in [(128, 10000.0, 2048), (128, 10000.0, 4096), (128, 500000.0, 8192), (64, 1e6, 100)]:
        expected = [(trained - 1) * base ** (-2 * i / dim) / (2 * math.pi) >= 1 for i in range(dim // 2)]
        assert X.turned(plain(dim, base), trained).tolist() == expected
        assert sum(expected) == turned_pairs(trained, dim, base)
    # 6 steps of one radian are less than a turn, and 7 steps are more
    assert X.turned(plain(2), 7).tolist() == [False]
    assert X.turned(plain(2), 8).tolist() == [True]


@given(pairs, bases, st.integers(2, 500), st.integers(0, 500))
def test_overshoot_is_the_largest_new_angle(n, base, trained, more):
    theta = plain(2 * n, base)
    for scaled in (theta, X.NTKAware(2.0)(theta)[0]):
        found = X.overshoot(theta, trained, trained + more, scaled)
        for i in range(n):
            seen = (trained - 1) * theta[i].item()
            new = (trained + more - 1) * scaled[i].item() - seen
            expected = 0 if seen >= 2 * math.pi else max(new, 0)
            assert found[i].item() == pytest.approx(expected, abs=1e-9)


def test_interpolation_goes_less_than_one_step_beyond_what_was_trained():
    theta, trained, target = plain(128), 4096, 16384
    for scaled in (
        X.Interpolation(4.0)(theta)[0],
        X.NTKByParts(4.0, trained)(theta)[0],
        X.YaRN(4.0, trained)(theta)[0],
    ):
        beyond = X.overshoot(theta, trained, target, scaled)
        assert (beyond <= theta * (1 - 1 / 4) + 1e-9).all()
    ntk = X.overshoot(theta, trained, target, X.NTKAware(4.0)(theta)[0])
    # pairs between those that are kept and those that are interpolated exceed the range by a radian or more
    assert ntk.max() > 1
    assert X.overshoot(theta, trained, target, theta).max() > ntk.max()


def test_stretch():
    theta = plain(128)
    assert X.stretch(X.Interpolation(4.0), theta).tolist() == pytest.approx([4] * 64)
    assert X.stretch(X.DynamicNTK(512), theta, 2048)[-1].item() == pytest.approx(4)
    for method in (X.YaRN(4.0, 4096), X.NTKByParts(4.0, 4096), X.Llama3()):
        found = X.stretch(method, theta)
        assert found[0] == 1
        assert found[-1].item() == pytest.approx(method.factor)
        assert (found.diff() > -1e-12).all()
    with pytest.raises(ValueError, match="as many as inv_freq, 64, got 32"):
        X.stretch(X.Partial(0.5), theta)


# --- The cache ---


def test_arrival_lengths():
    assert X.arrival_lengths(4).tolist() == [1, 2, 3, 4]
    assert X.arrival_lengths(4, 4).tolist() == [4] * 4
    with pytest.raises(ValueError, match="prefill must be an integer >= 1 and <= 4, got 5"):
        X.arrival_lengths(4, 5)
    with pytest.raises(ValueError, match="length must be an integer >= 1, got 0"):
        X.arrival_lengths(0)


@pytest.mark.parametrize("method", [X.DynamicNTK(16, 2.0), X.DynamicYaRN(16, beta=2.0)])
def test_cache_error_by_brute_force(method):
    theta, length = plain(8, 100.0), 40
    q, k = random(8, seed=1), random(length, 8)
    found = X.cache_error(method, q, k, theta, prefill=20)
    now, factor = method(theta, length)
    query = turn(q, now * (length - 1)) * factor
    for n in range(length):
        assert (turn(k[n], now * n) * factor @ query).item() == pytest.approx(found.exact[n].item())
        then, factor_then = method(theta, max(20, n + 1))
        assert (turn(k[n], then * n) * factor_then @ query).item() == pytest.approx(found.cached[n].item())
    assert found.lengths.tolist() == [20] * 20 + list(range(21, 41))
    assert found.largest == largest(found.exact - found.cached) > 0.5
    one_by_one = X.cache_error(method, q, k, theta)
    assert one_by_one.lengths.tolist() == list(range(1, 41))
    rows = X.cache_error(method, q.expand(2, 3, 8), k.expand(2, 3, 40, 8), theta)
    assert torch.allclose(rows.cached, one_by_one.cached.expand(2, 3, 40))


def test_the_history_of_the_search_begins_with_the_best_of_the_first_generation():
    values = []

    def objective(factors):
        values.append((factors - 2).square().sum().item())
        return values[-1]

    draws = torch.Generator().manual_seed(3)
    found = X.search_factors(objective, plain(8), 4.0, 512, generations=2, population=12, generator=draws)
    assert len(values) == 12 + 2 * 9  # the best quarter of each generation survives
    assert found.history == [min(values[:n]) for n in (12, 21, 30)]


def test_the_error_of_a_distance_method_by_hand():
    # There is one pair with θ = 1, the query is at position 5, and the window is 2. The query sees key 1 at distance 2,
    # but the cached key is still rotated by position 1.
    q, k = torch.tensor([1.0, 0.0]).double(), torch.tensor([[1.0, 0.0]] * 6).double()
    found = X.cache_error(X.ReRoPE(2), q, k, torch.ones(1, dtype=torch.float64))
    assert found.exact[1].item() == pytest.approx(math.cos(2))
    assert found.cached[1].item() == pytest.approx(math.cos(2 - 1))
    assert found.exact[4:].tolist() == pytest.approx([math.cos(1), 1])
    assert found.cached[4:].tolist() == pytest.approx([math.cos(1), 1])


def test_an_extended_layer_needs_a_head():
    with pytest.raises(ValueError, match="n_heads must be an integer >= 1, got 0"):
        X.ExtendedAttention(8, 0, method="linear", options={"factor": 2.0}, layout="interleaved")


def test_an_extended_layer_projects_from_position_0():
    layer = X.ExtendedAttention(8, 2, method="linear", options={"factor": 2.0}, keep="rotated", layout="interleaved")
    x = torch.ones(1, 3, 8)
    for ours, expected in zip(layer.project(x), layer.project(x, torch.arange(3)), strict=True):
        assert torch.equal(ours, expected)


@pytest.mark.parametrize("name", X.METHODS)
def test_cache_safety_is_as_the_table_says(name):
    method, theta = example(name), plain(8, 100.0)
    q, k = random(2, 3, 8, seed=1), random(2, 3, 60, 8)
    turning = method.rotary(8).get("rotary_dim", 8)  # entries that don't rotate are the same with and without a cache
    q, k = q[..., :turning], k[..., :turning]
    if method.acts_on == "queries":
        q, method = method.query_scale(torch.tensor(59)) * q, X.Interpolation(1.0)
    error = X.cache_error(method, q, k, theta).largest
    assert (error < 1e-12) == X.METHODS[name].cache_safe
    assert X.METHODS[name].cache_safe == (not method.follows_length and name not in DISTANCES)
    if name in DISTANCES:
        return
    assert X.cache_error(method, q, k[:, :, :20], theta, prefill=20).largest < 1e-12
    if hasattr(method, "fixed"):
        assert X.cache_error(method.fixed(128), q, k, theta).largest == 0


def test_cache_error_refuses():
    theta = plain(8)
    with pytest.raises(ValueError, match=r"q must be \(…, d\) and k \(…, T, d\).*got \(7,\) and \(5, 8\)"):
        X.cache_error(X.DynamicNTK(16), random(7), random(5, 8), theta)
    with pytest.raises(ValueError, match="q must be"):
        X.cache_error(X.DynamicNTK(16), random(1)[0], random(8), theta)
    with pytest.raises(ValueError, match=r"with the same d, got \(8,\) and \(8,\)"):
        X.cache_error(X.DynamicNTK(16), random(8), random(8), theta)
    with pytest.raises(TypeError, match="k must be a floating-point tensor"):
        X.cache_error(X.DynamicNTK(16), random(8), torch.ones(5, 8).long(), theta)


@pytest.mark.parametrize("name", ["dynamic_ntk", "dynamic_yarn", "longrope"])
@torch.no_grad()
def test_the_two_remedies(name):
    x = 3 * random(2, 48, 32)
    rotated, unrotated = extended(name, keep="rotated"), extended(name)
    exact = rotated(x)[:, -1]
    assert largest(decode(rotated, x, 20) - exact) > 1e-3
    assert largest(decode(rotated, x[:, :30], 20) - rotated(x[:, :30])[:, -1]) < 1e-12  # the whole text is within L
    assert largest(decode(unrotated, x, 20) - exact) < 1e-12
    assert largest(decode(unrotated, x, 1) - exact) < 1e-12
    if name == "longrope":
        return
    method = rotated.method.fixed(64)
    torch.manual_seed(0)
    fixed = RotaryAttention(32, 4, 2, base=100.0, dtype=torch.float64, scaling=method, layout="interleaved")
    assert largest(decode(fixed, x, 20) - fixed(x)[:, -1]) < 1e-12
    assert largest(fixed(x)[:, -1] - exact) > 1e-3  # because the base of ``fixed`` is the one for 64 tokens
    assert largest(fixed(torch.cat((x, x), 1)[:, :64])[:, -1] - rotated(torch.cat((x, x), 1)[:, :64])[:, -1]) < 1e-12


@pytest.mark.parametrize("name", X.METHODS)
@torch.no_grad()
def test_by_default_a_cache_changes_nothing(name):
    layer, x = extended(name), 3 * random(2, 40, 32)
    once = layer(x)
    for prefill in (1, 36):  # within the trained length of 32, and beyond it
        assert largest(decode(layer, x, prefill) - once[:, -1]) < 1e-12
    assert layer.keep == ("rotated" if X.METHODS[name].cache_safe else "unrotated")
    assert X.ExtendedAttention.of(layer, method=name, options=EXAMPLES[name]).keep == layer.keep


@pytest.mark.parametrize("name", FREQUENCIES)
@torch.no_grad()
def test_rotated_keys_are_refused_where_frequencies_follow_the_length(name):
    if "scaling" not in example(name).rotary(8):
        return
    torch.manual_seed(0)
    like = {"base": 100.0, "layout": "interleaved", "dtype": torch.float64, "scaling": example(name)}
    layer, model = RotaryAttention(32, 4, 2, **like), LlamaModel(32, 32, 48, 2, 4, **like)
    tokens = torch.randint(32, (1, 40))
    x = model.embedding(tokens)
    if X.METHODS[name].cache_safe:
        assert largest(decode(layer, x, 20) - layer(x)[:, -1]) < 1e-12
        caches = model.new_caches(40)
        parts = [model(piece, caches=caches) for piece in tokens.split([36, 1, 3], 1)]
        assert largest(torch.cat(parts, 1) - model(tokens)) < 1e-12
        return
    cache, caches = KVCache(40), model.new_caches(40)
    for call in (
        lambda: layer(x, cache=cache),
        lambda: model(tokens, caches=caches),
    ):
        with pytest.raises(ValueError, match=r"cache must be None .* got a cache with \w+\(.*trained_length=32"):
            call()
    assert cache.length == caches[0].length == 0
    assert layer(x).isfinite().all()


@torch.no_grad()
def test_a_function_of_ones_own_is_told_no_length_beside_a_cache():
    x, told = random(1, 9, 32), []

    def halved(theta, length):
        told.append(length)
        return theta / 2, 1.5

    layer = RotaryAttention(32, 4, dtype=torch.float64, scaling=halved, layout="interleaved")
    assert largest(decode(layer, x, 5) - layer(x)[:, -1]) < 1e-12
    assert told == [None] * 5 + [9]
    following = RotaryAttention(
        32,
        4,
        dtype=torch.float64,
        scaling=lambda theta, length: X.DynamicNTK(32)(theta, length),
        layout="interleaved",
    )
    with pytest.raises(ValueError, match="length must be known where the frequencies follow it, got None"):
        following(x, cache=KVCache(9))


@pytest.mark.parametrize("rope_type", ["linear", "dynamic"])
@torch.no_grad()
def test_transformers_itself_makes_the_error(rope_type):
    model, _ = tiny_llama(rope_type)
    tokens = torch.randint(32, (1, 60), generator=torch.Generator().manual_seed(1))
    whole = model(tokens).logits[:, -1]
    model, _ = tiny_llama(rope_type)  # we need a new model, because the frequencies of the first one have grown
    out = model(tokens[:, :32], use_cache=True)
    for step in tokens[:, 32:].split(1, dim=1):
        out = model(step, past_key_values=out.past_key_values, use_cache=True)
    error = largest(out.logits[:, -1] - whole)
    assert error > 0.1 if rope_type == "dynamic" else error < 1e-4
