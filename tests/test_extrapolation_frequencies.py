"""Tests of the methods that change frequencies. The formulas are compared with plain Python and with the
implementations in transformers."""

import dataclasses
import inspect
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers.models.deepseek_v3.modeling_deepseek_v3 import yarn_apply_mscale

from ropebook import extrapolation as X
from ropebook.efficient import RotaryEmbedding
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import largest, random, seeds
from tests.methods import FLOAT32, FREQUENCIES, assert_same, bases, bounds, example, factors, lengths, pairs, theirs
from tests.together import together


def test_frequencies_by_hand():
    # d = 4 and b = 10000, so θ = 1, 1/100 and λ = 2π, 200π
    theta = plain(4)
    assert X.Interpolation(8.0)(theta)[0].tolist() == pytest.approx([1 / 8, 1 / 800])
    assert X.NTKAware(8.0)(theta)[0].tolist() == pytest.approx([1, 1 / 800])
    # d = 6 and b = 1000, so θ = 1, 1/10, 1/100; the middle pair is divided by √s
    assert X.NTKAware(9.0)(plain(6, 1000))[0].tolist() == pytest.approx([1, 1 / 30, 1 / 900])
    # dynamic NTK with L = 100 and n = 300, so n/L = 3; with factor 4, the scale is 4·3 − 3 = 9
    assert X.DynamicNTK(100)(theta, 300)[0][-1].item() == pytest.approx(1 / 300)
    assert X.DynamicNTK(100, 4.0)(theta, 300)[0][-1].item() == pytest.approx(1 / 900)
    assert X.BaseChange(16)(theta)[0].tolist() == [1, 0.25]
    assert X.Proportional(0.5, factor=2.0)(theta)[0].tolist() == [0.5, 0]
    assert X.LongRoPE([2, 4], [3, 5], 100, 10.0)(theta, 100) == (pytest.approx([0.5, 0.0025]), math.sqrt(1.5))
    assert X.LongRoPE([2, 4], torch.tensor([3, 5.0]), 100, 1.0)(theta, 101) == (pytest.approx([1 / 3, 0.002]), 1)


@given(pairs.filter(lambda n: n > 1), bases, factors)
def test_ntk_is_a_change_of_base_and_keeps_the_ends(n, base, factor):
    theta = plain(2 * n, base)
    scaled, attention = X.NTKAware(factor)(theta)
    assert attention == 1
    assert scaled.tolist() == pytest.approx(plain(2 * n, X.ntk_base(base, 2 * n, factor)).tolist(), rel=1e-12, abs=0)
    assert scaled[0] == 1
    assert scaled[-1].item() == pytest.approx(theta[-1].item() / factor, rel=1e-12, abs=0)


def test_the_ntk_exponent_is_solved_for_and_not_typed():
    import sympy

    d = sympy.Symbol("d", positive=True)
    solution = X.ntk_exponent()
    assert sympy.simplify(solution - d / (d - 2)) == 0
    assert solution.subs(d, 128) == sympy.Rational(64, 63)
    assert solution.subs(d, 2) is sympy.zoo  # sympy's complex infinity means that there is no value


@given(st.integers(2, 10**6), st.integers(1, 64))
def test_effective_scale_at_the_wanted_length_is_not_the_factor(trained, factor):
    shipped = X.DynamicNTK(trained, float(factor)).effective_scale(factor * trained)
    assert shipped == pytest.approx(factor**2 - factor + 1)
    assert X.DynamicNTK(trained).effective_scale(factor * trained) == pytest.approx(factor)
    assert X.DynamicNTK(trained, float(factor)).effective_scale(trained - 1) == 1


def test_defaults_are_those_of_the_paper_and_of_transformers():
    found = {}
    for form in (X.NTKByParts, X.YaRN, X.DynamicYaRN, X.ramp_in_turns, X.ramp_in_pairs, X.ramp_range,
                 X.paper_against_code):  # fmt: skip
        for name, parameter in inspect.signature(form).parameters.items():
            if parameter.default is not parameter.empty:
                found.setdefault(name, set()).add(parameter.default)
    none = {"mscale": {None}, "mscale_all_dim": {None}, "attention_factor": {None}}
    assert found == {"alpha": {1.0}, "beta": {32.0}, "truncate": {True}, "ramp": {"pairs"}} | none
    search = inspect.signature(X.search_factors).parameters
    assert (search["generations"].default, search["population"].default) == (30, 32)
    assert X.Llama3() == X.Llama3(8, 8192, 1, 4)
    assert X.DynamicNTK(32) == X.DynamicNTK(32, 1)
    assert X.Proportional(0.5) == X.Proportional(0.5, 1)
    assert X.yarn_factor(math.e) == X.yarn_factor(math.e, 1) == pytest.approx(1.1)
    theta = plain(128)
    for method in (X.NTKByParts(16.0, 4096), X.YaRN(16.0, 4096, ramp="turns")):
        assert method(theta)[0].tolist() == pytest.approx(by_parts(theta.tolist(), 16, 4096, 1, 32), rel=1e-9, abs=0)


def test_options_at_the_edge_of_what_is_allowed():
    theta = plain(4)
    for form in (X.Interpolation, X.NTKAware, lambda factor: X.DynamicNTK(2, factor)):
        form(1)  # a factor of 1 must not change anything
    assert torch.equal(X.Interpolation(1)(theta)[0], theta)
    assert torch.equal(X.Proportional(1)(theta)[0], theta)
    assert X.Partial(1)(theta)[0].tolist() == pytest.approx(theta.tolist())
    assert X.BaseChange(1)(theta) == (pytest.approx([1, 1]), 1)
    assert X.ntk_base(1, 4, 4.0) == 16
    assert X.length_factor(2, 2) == 1
    assert X.softmax_scale(1, 1.0, 0) == 1
    assert X.yarn_factor(4.0, 0) == 1
    with pytest.raises(ValueError, match=r"weight must be a finite number >= 0, got -0\.5"):
        X.yarn_factor(4.0, -0.5)
    with pytest.raises(ValueError, match="head_dim must be an integer >= 1, got 0"):
        X.softmax_scale(0, 1.0, 1.0)
    for small in (1e-3, 0.5):  # values between 0 and 1 are allowed
        assert X.ramp_in_turns(theta, 2, small, 1.0).shape == (2,)
        assert X.YaRN(4.0, 2, attention_factor=small)(plain(8))[1] == small
        assert X.YaRN(4.0, 2, mscale=small, mscale_all_dim=small)(plain(8))[1] == 1
        assert X.LongRoPE([small, small], [small, small], 2, 1)(theta, 1)[0].tolist() == pytest.approx(
            (theta / small).tolist()
        )
    for window, method in ((1, X.ReRoPE(1)), (1, X.LeakyReRoPE(1, 1)), (1, X.SelfExtend(1, 1))):
        assert method.reach(window + 1) >= 2
    # both methods are the same as the plain model here
    assert X.SelfExtend(1, 1).reach(9) == X.LeakyReRoPE(8, 1).reach(9) == 9
    assert X.arrival_lengths(1).tolist() == [1]
    assert X.LogN(2).query_scale(torch.tensor([3])).item() == 2  # the result is ln 4/ln 2


def test_frequencies_may_be_nought_and_one_dimension_is_enough():
    still = torch.tensor([1.0, 0.0], dtype=torch.float64)
    assert X.Interpolation(2.0)(still)[0].tolist() == [0.5, 0]
    assert X.turned(still, 8).tolist() == [True, False]
    assert X.overshoot(still, 8, 16, still).tolist() == [0, 0]
    one = plain(2)
    assert X.Interpolation(2.0)(one)[0].tolist() == [0.5]
    # A pair that rotates by exactly 2π has completed a turn.
    assert X.turned(torch.tensor([2 * math.pi], dtype=torch.float64), 2).tolist() == [True]


def by_parts(theta, factor, trained, alpha, beta):
    """Compute equations (17) to (20) of the paper, one pair at a time."""
    result = []
    for t in theta:
        wavelength = 2 * math.pi / t
        r = trained / wavelength
        gamma = 0 if r < alpha else 1 if r > beta else (r - alpha) / (beta - alpha)
        result.append((1 - gamma) * t / factor + gamma * t)
    return result


@given(pairs, bases, factors, lengths, bounds)
def test_by_parts_is_the_papers_formula(n, base, factor, trained, ends):
    theta = plain(2 * n, base)
    expected = by_parts(theta.tolist(), factor, trained, *ends)
    scaled, attention = X.NTKByParts(factor, trained, *ends)(theta)
    assert attention == 1
    assert scaled.tolist() == pytest.approx(expected, rel=1e-9, abs=0)
    yarn = X.YaRN(factor, trained, *ends, ramp="turns")(theta)
    assert torch.equal(yarn[0], scaled)
    assert yarn[1] == pytest.approx(0.1 * math.log(factor) + 1)
    llama = X.Llama3(factor, trained, *ends)(theta)
    assert torch.equal(llama[0], scaled)


def test_paper_and_code_of_yarn_differ_by_a_factor():
    # The values of Llama 2: d = 128, b = 10000, L = 4096. The factor s is 16.
    theta = plain(128)
    found = X.paper_against_code(theta, 16.0, 4096)
    paper = torch.tensor(by_parts(theta.tolist(), 16.0, 4096, 1, 32))
    code = theirs("yarn", 128, 10000.0, factor=16.0, original_max_position_embeddings=4096)[0]
    ratio = paper / code
    assert found.ratio.tolist() == pytest.approx(ratio.tolist(), rel=FLOAT32)
    assert found.pair == (ratio.log().abs()).argmax().item()
    assert found.largest == pytest.approx(max(ratio.max().item(), 1 / ratio.min().item()), rel=FLOAT32)
    assert found.largest > 3
    # The two ramps agree on pairs that both ramps keep, and on pairs that both interpolate.
    assert found.ratio[:20].tolist() == pytest.approx([1] * 20)
    assert found.ratio[46:].tolist() == pytest.approx([1] * 18)


def test_ramps_start_and_end_where_they_say():
    theta = plain(128)
    turns = theta * 4096 / (2 * math.pi)
    ramp = X.ramp_in_turns(theta, 4096)
    assert (ramp[turns >= 32] == 1).all()
    assert (ramp[turns <= 1] == 0).all()
    low, high = X.ramp_range(theta, 4096, truncate=False)
    # the index i of a pair that completes r turns is the solution of base**(-2i/d)·L/2π = r
    for index, r in ((low, 32), (high, 1)):
        assert 10000 ** (-2 * index / 128) * 4096 / (2 * math.pi) == pytest.approx(r)
    code = X.ramp_in_pairs(theta, 4096)
    assert code.diff()[20:46].tolist() == pytest.approx([-1 / 26] * 26)
    assert (code.diff()[:20] == 0).all()
    assert (code.diff()[46:] == 0).all()


def test_the_published_ramp_would_run_backwards_where_we_refuse():
    # base 10, L = 10⁶: every pair completes more than 32 turns, so the ramp should keep all of them
    theta = plain(128, 10.0)
    assert X.NTKByParts(4.0, 10**6)(theta)[0].tolist() == theta.tolist()
    shipped, _ = theirs("yarn", 128, 10.0, factor=4.0, original_max_position_embeddings=10**6)
    # but transformers interpolates all of them
    assert shipped.tolist() == pytest.approx((theta / 4).tolist(), rel=FLOAT32)
    with pytest.raises(ValueError, match=r"got 1.0 and 32.0, which put the ramp from pair 236 down to pair 127"):
        X.YaRN(4.0, 10**6)(theta)
    # L = 4: no pair completes a turn, so the ramp should interpolate all of them
    theta = plain(8)
    assert X.NTKByParts(4.0, 4)(theta)[0].tolist() == (theta / 4).tolist()
    shipped, _ = theirs("yarn", 8, 1.5, factor=4.0, original_max_position_embeddings=4)
    assert shipped.tolist() == pytest.approx(plain(8, 1.5).tolist(), rel=FLOAT32)  # but transformers keeps all of them
    with pytest.raises(ValueError, match="alpha and beta must leave pairs to mix"):
        X.YaRN(4.0, 4)(plain(8, 1.5))


def test_the_ramp_is_refused_from_where_its_ends_cross_and_not_before():
    # base 10, d = 128: c(32) is 128 at L = 2·32·100π = 20106.2, and 127 at L = 2·32·10^(127/64)·π = 19395.6
    fast = plain(128, 10.0)
    for length, truncate, refused in [(20_106, True, False), (20_107, True, True), (19_395, False, False),
                                      (19_396, False, True)]:  # fmt: skip
        if refused:
            with pytest.raises(ValueError, match=r"put the ramp from pair 12[78][.0-9]* down to pair 127"):
                X.ramp_range(fast, length, truncate=truncate)
        else:
            assert (X.ramp_in_pairs(fast, length, truncate=truncate) == 1).all()
    # L = 10000 isn't refused, because c(32) is only 108.6. All pairs are kept: each completes at least 165 turns.
    assert X.YaRN(4.0, 10_000)(fast)[0].tolist() == fast.tolist()
    # base 1.5, d = 8: c(1) is −1 at L = 2π·1.5^(−1/4) = 5.68, and 0 at L = 2π
    slow = plain(8, 1.5)
    for length, truncate, refused in [(5, True, True), (6, True, False), (6, False, True), (7, False, False)]:
        if refused:
            with pytest.raises(ValueError, match="put the ramp from pair 0 down to pair -"):
                X.ramp_range(slow, length, truncate=truncate)
        else:
            assert X.ramp_range(slow, length, truncate=truncate)[0] == 0
    # If the two ends coincide, they are moved apart by a thousandth, as in the published code, to avoid dividing by 0.
    for theta, length, ends in ((fast, 20_106, (127, 127.001)), (slow, 6, (0, 0.001))):
        assert [end.item() for end in X.ramp_range(theta, length)] == pytest.approx(ends, abs=1e-12)
    assert X.ramp_in_pairs(slow, 6).tolist() == [1, 0, 0, 0]


@given(pairs, factors, st.floats(0, 2), st.floats(0, 2))
def test_yarns_factor_is_the_papers(n, factor, weight, other):
    assert X.yarn_factor(factor) == pytest.approx(0.1 * math.log(factor) + 1)  # √(1/t) from equation (22)
    scale = yarn_apply_mscale({"rope_type": "yarn", "factor": factor, "mscale_all_dim": weight}, (2 * n) ** -0.5)
    assert X.softmax_scale(2 * n, factor, weight) == pytest.approx(scale)


@given(seeds, factors)
def test_scores_scale_by_the_square_of_the_factor(seed, factor):
    q, k = random(2, 1, 1, 6, 8, seed=seed)
    plain_q, plain_k = RotaryEmbedding(8, scaling=X.YaRN(factor, 512, attention_factor=1.0), layout="interleaved")(q, k)
    scaled_q, scaled_k = RotaryEmbedding(8, scaling=X.YaRN(factor, 512), layout="interleaved")(q, k)
    scores = scaled_q @ scaled_k.mT
    assert torch.allclose(scores, X.yarn_factor(factor) ** 2 * (plain_q @ plain_k.mT), atol=1e-12)


def test_with_partial_rotary_the_entries_that_do_not_turn_miss_the_factor():
    q, k = random(2, 1, 1, 6, 8)
    scaling = X.YaRN(16.0, 512)
    f = X.yarn_factor(16.0)
    unscaled = RotaryEmbedding(
        8, rotary_dim=4, scaling=dataclasses.replace(scaling, attention_factor=1.0), layout="interleaved"
    )(q, k)
    found = (lambda a, b: a @ b.mT)(*RotaryEmbedding(8, rotary_dim=4, scaling=scaling, layout="interleaved")(q, k))
    turned, still = (a @ b.mT for a, b in [(unscaled[0][..., :4], unscaled[1][..., :4]), (q[..., 4:], k[..., 4:])])
    assert torch.allclose(found, f**2 * turned + still)
    assert largest(found - f**2 * (turned + still)) > 0.1


@given(pairs, lengths, st.integers(1, 10**6))
def test_dynamic_yarn_is_yarn_of_the_length_so_far(n, trained, length):
    theta = plain(2 * n, 10000.0)
    scaled, attention = X.DynamicYaRN(trained, beta=16.0)(theta, length)
    if length <= trained:
        assert attention == 1
        assert torch.equal(scaled, theta)
    else:
        other = theirs(
            "yarn", 2 * n, 10000.0, factor=length / trained, original_max_position_embeddings=trained, beta_fast=16.0
        )
        assert_same((scaled, attention), other)


def test_fixing_a_dynamic_method():
    theta = plain(8)
    for method in (X.DynamicNTK(32, 2.0), X.DynamicYaRN(32, beta=4.0, truncate=False)):
        fixed = method.fixed(80)
        assert not fixed.follows_length
        for length in (None, 10, 80, 500):
            assert torch.equal(fixed(theta, length)[0], method(theta, 80)[0])
            assert fixed(theta, length)[1] == method(theta, 80)[1]
        with pytest.raises(ValueError, match="target_length must be an integer >= 32, got 31"):
            method.fixed(31)


@together("name", FREQUENCIES)
def test_types_devices_and_what_was_given(name, device):
    wide = plain(8)
    method = example(name)
    scaled, _ = method(wide, 40)
    narrow = plain(8, dtype=torch.float32, device=device)
    before = narrow.clone()
    found, factor = method(narrow, 40)
    assert (found.dtype, found.device.type) == (torch.float32, device.type)
    assert isinstance(factor, float)
    assert torch.equal(narrow, before)
    assert found.tolist() == pytest.approx(scaled.tolist(), rel=1e-5)


@together("name", FREQUENCIES)
def test_a_method_can_be_compared_and_hashed(name):
    method = example(name)
    assert method == example(name)
    assert hash(method) == hash(example(name))
    with pytest.raises(dataclasses.FrozenInstanceError):
        method.factor = 2.0
