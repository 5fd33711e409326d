"""The interactive figures: JavaScript against Python, dials against traits, stills, and the arithmetic they share."""

from __future__ import annotations

import math
import re
from itertools import permutations
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import traitlets

from ropebook import sinusoidal
from ropebook.explorers import Explorer, draws, shuffle, still
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.shuffle import Shuffle
from tests.explorers import js

ALL = [Shuffle, Saturation]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"


# ---- JavaScript and Python agree ----


def test_the_comparison_sees_small_and_large_differences():
    dials = Shuffle(order=[1, 0, 2, 3, 4]).dials()
    right = Shuffle.compute(dials)
    largest = Shuffle.terms(dials)["outputs"]
    assert js.disagreements(Shuffle, [dials], [right]) == []
    for name, wrong in [
        ("change", right["change"] + 1.1e-6 * largest),
        ("weights", (np.array(right["weights"]) + 1.1e-6).tolist()),
        ("weights", right["weights"][:-1]),
        ("words", right["words"][::-1]),
    ]:
        assert len(js.disagreements(Shuffle, [dials], [{**right, name: wrong}])) == 1
    assert js.disagreements(Shuffle, [dials], [{**right, "change": right["change"] + 0.9e-6 * largest}]) == []
    assert len(js.disagreements(Shuffle, [dials], [{"words": right["words"]}])) == 1


def test_an_error_in_javascript_is_an_error_in_python():
    with pytest.raises(RuntimeError, match="ReferenceError"):
        js.evaluate("", "return nothingOfThatName;")


# ---- What the figures claim, by independent means ----


def plain_attention(words, position, causal):
    """The same head, by NumPy and torch's own function."""
    x = np.stack([draws.normals(f"word {word}", 16) for word in words])
    if position:
        angle = np.arange(len(words))[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
        x[:, 0::2] += np.sin(angle)
        x[:, 1::2] += np.cos(angle)
    q, k, v = (torch.from_numpy(x @ (draws.normals(f"weights {n}", 256) / 4).reshape(16, 16)) for n in "qkv")
    scores = (q @ k.T / 4).masked_fill(torch.ones(len(words), len(words)).triu(1).bool() & causal, -math.inf)
    out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    return scores.exp().div(scores.exp().sum(-1, keepdim=True)).numpy(), out.numpy()


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_shuffle_is_one_head_of_attention(position, causal):
    dials = {"words": "a rose is a flower", "order": [3, 1, 4, 0, 2], "position": position, "causal": causal}
    found = Shuffle.compute(dials)
    now = ["a", "rose", "flower", "a", "is"]
    weights, outputs = plain_attention(now, position, causal)
    weights_typed, typed = plain_attention(dials["words"].split(), position, causal)
    assert found["words"] == now
    np.testing.assert_allclose(found["weights"], weights, atol=1e-14)
    np.testing.assert_allclose(found["outputs"], outputs, atol=1e-14)
    np.testing.assert_allclose(found["typedOutputs"], typed, atol=1e-14)
    np.testing.assert_allclose(found["changes"], np.abs(outputs - typed[dials["order"]]).max(1), atol=1e-14)
    assert found["change"] == max(found["changes"])
    moved = weights_typed[dials["order"]][:, dials["order"]]
    assert found["weightChange"] == pytest.approx(np.abs(weights - moved).max(), abs=1e-14)
    assert np.abs(typed).max() == Shuffle.terms(dials)["outputs"]


def test_outputs_move_with_their_words_unless_something_tells_the_places():
    reversed_ = {"words": "the dog bit the man", "order": [4, 3, 2, 1, 0]}
    plain = Shuffle.compute({**reversed_, "position": False, "causal": False})
    assert 0 < plain["change"] < 1e-15
    for told in ({"position": True, "causal": False}, {"position": False, "causal": True}):
        assert Shuffle.compute({**reversed_, **told})["change"] > 0.1


@pytest.mark.parametrize("scaled", [False, True])
def test_saturation_is_a_softmax_and_its_jacobian(scaled):
    found = Saturation.compute({"dim": 48, "n_keys": 5, "draw": 3, "scaled": scaled})
    query = draws.normals("query 3", 512)[:48]
    keys = np.stack([draws.normals(f"key 3 {n}", 512)[:48] for n in range(5)])
    scores = torch.from_numpy(keys @ query / (math.sqrt(48) if scaled else 1))
    weights = scores.exp() / scores.exp().sum()
    jacobian = torch.autograd.functional.jacobian(lambda s: s.softmax(-1), scores)
    np.testing.assert_allclose(found["scores"], scores, atol=1e-13)
    np.testing.assert_allclose(found["weights"], weights, atol=1e-14)
    assert found["everyDim"][47] == found["weights"]
    assert found["gradient"] == pytest.approx(jacobian.square().sum().sqrt().item(), rel=1e-10)
    assert found["everyGradient"][47] == found["gradient"]
    assert found["entropy"] == pytest.approx(-(weights * weights.log()).sum().item(), rel=1e-12)
    assert (len(found["everyDim"]), len(found["everyGradient"])) == (512, 512)


def test_the_mean_over_all_draws():
    found = Saturation.compute({"dim": 1, "n_keys": 7, "draw": 0, "scaled": True})
    assert found["meanDims"][:8] == [1, 2, 3, 4, 5, 6, 8, 10]
    assert found["meanDims"][-1] == 512
    at = found["meanDims"].index(64)
    for name, scaled in (("meanScaled", True), ("meanRaw", False)):
        dials = {"dim": 64, "n_keys": 7, "scaled": scaled}
        total = sum(Saturation.compute({**dials, "draw": draw})["gradient"] for draw in range(16))
        assert found[name][at] == pytest.approx(total / 16, rel=1e-12)


def test_terms_of_saturation():
    dials = {"dim": 3, "n_keys": 2, "draw": 1, "scaled": False}
    query = draws.normals("query 1", 3)
    expected = [np.abs(query * draws.normals(f"key 1 {n}", 3)).sum() for n in range(2)]
    np.testing.assert_allclose(Saturation.terms(dials)["scores"], expected)
    np.testing.assert_allclose(Saturation.terms({**dials, "scaled": True})["scores"], np.array(expected) / math.sqrt(3))
    assert Saturation.terms(dials)["entropy"] == math.log(2)


# ---- Draws ----

FNV_PUBLISHED = {"": 0x811C9DC5, "a": 0xE40C292C, "foobar": 0xBF9CF968}  # from the authors' test vectors


@pytest.mark.parametrize("text, value", FNV_PUBLISHED.items())
def test_fnv1a(text, value):
    assert draws.fnv1a(text) == value
    assert js.kit("return fnv1a(input);", text) == value


def mulberry32(seed, count):
    """With Python's integers, cut to 32 bits after every operation, as the generator is usually written."""
    a, out = seed, []
    for _ in range(count):
        a = (a + 0x6D2B79F5) % 2**32
        t = (a ^ (a >> 15)) * (a | 1) % 2**32
        t ^= (t + (t ^ (t >> 7)) * (t | 61)) % 2**32
        out.append((t ^ (t >> 14)) / 2**32)
    return out


@pytest.mark.parametrize("seed", [0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_uniforms(seed):
    assert draws.uniforms(seed, 50).tolist() == mulberry32(seed, 50)
    assert js.kit("return uniforms(input, 50);", seed) == mulberry32(seed, 50)


def test_normals_are_box_muller_in_both_languages():
    labels = ["word dog", "naïve 🐕", ""]
    from_js = js.kit("return input.map((label) => normals(label, 9));", labels)
    for label, found in zip(labels, from_js, strict=True):
        u = np.array(mulberry32(draws.fnv1a(label), 10))
        radius, angle = np.sqrt(-2 * np.log(1 - u[::2])), 2 * math.pi * u[1::2]
        expected = np.ravel([radius * np.cos(angle), radius * np.sin(angle)], order="F")[:9]
        np.testing.assert_allclose(draws.normals(label, 9), expected, rtol=1e-14)
        np.testing.assert_allclose(found, expected, rtol=1e-13)


def test_normals_look_normal():
    many = draws.normals("many", 100_000)
    assert abs(many.mean()) < 0.015
    assert abs(many.var() - 1) < 0.02
    assert abs((np.abs(many) < 1).mean() - 0.6827) < 0.006
    assert draws.normals("other", 4).tolist() != draws.normals("many", 4).tolist()
    assert draws.normals("many", 0).shape == (0,)


def test_word_vectors_and_weight_matrices():
    from_js = js.kit('return [wordVector("dog", 5), weightMatrix("q", 3)];')
    np.testing.assert_array_equal(draws.word_vector("dog", 5), draws.normals("word dog", 5))
    np.testing.assert_allclose(from_js[0], draws.word_vector("dog", 5), rtol=1e-13)
    np.testing.assert_allclose(np.reshape(from_js[1], (3, 3)), draws.weight_matrix("q", 3), rtol=1e-13)
    assert draws.weight_matrix("q", 64).var() * 64 == pytest.approx(1, abs=0.05)
    assert draws.weight_matrix("q", 3)[1, 2] == draws.normals("weights q", 9)[5] / math.sqrt(3)


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda: draws.uniforms(-1, 3), "seed must be an integer >= 0 and <= 4294967295, got -1"),
        (lambda: draws.uniforms(2**32, 3), "seed must be an integer >= 0 and <= 4294967295, got 4294967296"),
        (lambda: draws.uniforms(0, -1), "count must be an integer >= 0, got -1"),
        (lambda: draws.normals("a", -2), "count must be an integer >= 0, got -2"),
    ],
)
def test_draws_refuse_bad_arguments(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_permutations_are_all_equally_likely():
    found = js.kit("return Array.from({ length: 6000 }, (_, seed) => permutation(3, seed).join());")
    counts = {"".join(map(str, order)): found.count(",".join(map(str, order))) for order in permutations(range(3))}
    assert sum(counts.values()) == 6000
    assert all(abs(count - 1000) < 150 for count in counts.values()), counts
    assert js.kit("return [permutation(1, 5), permutation(8, 3)];")[0] == [0]


# ---- Positions and attention in JavaScript ----


@pytest.mark.parametrize("dim, base", [(2, 10000), (8, 10000), (64, 500), (512, 1e7), (6, 1)])
def test_frequencies_and_encoding(dim, base):
    frequencies, encoded = js.kit("return [invFreq(...input), sinusoidalEncoding(37, ...input)];", [dim, base])
    np.testing.assert_allclose(frequencies, sinusoidal.inv_freq(dim, base), rtol=1e-14)
    expected = sinusoidal.encoding(37, dim, base, dtype=torch.float64)
    np.testing.assert_allclose(encoded, expected, atol=1e-13)


EPSILON = 2.0**-52


@pytest.mark.parametrize("start, step", [(0, 1), (-200.5, 1), (3, 0.37)])
def test_recurrence_against_float64(start, step):
    """4096 samples, every one. 64 turns may add as many errors; and angles are rounded themselves, twice each."""
    for theta in (1.0, 0.1, 3.0, 1e-4, 1e-7, 0.0):
        found = js.kit("return cosSinGrid(...input, 4096);", [theta, start, step])
        angles = theta * (start + np.arange(4096) * step)
        allowed = 64 * EPSILON + 2 * EPSILON * np.abs(angles)
        assert (np.abs(np.array(found["cos"]) - np.cos(angles)) <= allowed).all()
        assert (np.abs(np.array(found["sin"]) - np.sin(angles)) <= allowed).all()


@pytest.mark.parametrize("theta", [1.0, 1e-4])
def test_recurrence_does_not_drift_over_a_million(theta):
    """Without the fresh start at every 64th angle the error grows to 1e-11 and beyond."""
    body = """
      const { cos, sin } = cosSinGrid(input, 0, 1, 1e6);
      const picked = Array.from({ length: 2000 }, (_, i) => 1e6 - 1 - 499 * i);
      return picked.map((k) => [k, cos[k], sin[k]]);
    """
    position, cos, sin = np.array(js.kit(body, theta)).T
    allowed = 64 * EPSILON + EPSILON * theta * position
    assert (np.abs(cos - np.cos(theta * position)) <= allowed).all()
    assert (np.abs(sin - np.sin(theta * position)) <= allowed).all()


@pytest.mark.parametrize("dim, base, start, count", [(8, 10000, 0, 4096), (128, 500, -64, 200), (64, 1e6, 3, 1)])
def test_fourier_sum(dim, base, start, count):
    a, b = np.random.default_rng(3).normal(size=(2, dim // 2))
    body = "return fourierSum(invFreq(input.dim, input.base), input.a, input.b, input.start, input.count);"
    given = {"dim": dim, "base": base, "start": start, "count": count}
    found = js.kit(body, {**given, "a": a.tolist(), "b": b.tolist()})
    distances = np.arange(start, start + count)
    angles = np.outer(distances, sinusoidal.inv_freq(dim, base))
    np.testing.assert_allclose(found, np.cos(angles) @ a + np.sin(angles) @ b, atol=1e-10 * dim / 2)
    kernel = js.kit(body, {**given, "a": [1] * len(a), "b": [0] * len(b)})
    np.testing.assert_allclose(kernel, sinusoidal.distance_kernel(distances, dim, base), atol=1e-10 * dim / 2)


def test_attention_in_javascript():
    body = """
      const weights = attentionWeights(input.q, input.k, input.causal, input.scale);
      return [weights, attentionOutputs(weights, input.v)];
    """
    for causal in (False, True):
        q, k, v = torch.randn(3, 6, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1)) * 3
        value = {"q": q.tolist(), "k": k.tolist(), "v": v[:, :3].tolist(), "causal": causal, "scale": 0.7}
        weights, outputs = js.kit(body, value)
        expected = torch.nn.functional.scaled_dot_product_attention(
            q[None], k[None], v[None, :, :3], is_causal=causal, scale=0.7
        )[0]
        np.testing.assert_allclose(outputs, expected, atol=1e-14)
        np.testing.assert_allclose(np.sum(weights, axis=-1), 1, atol=1e-15)
        assert (np.triu(weights, 1) == 0).all() == causal


def test_softmax_does_not_overflow_and_hides_what_is_masked():
    found = js.kit("return [softmax([1000, 1000]), softmax([-1000, -Infinity, -1001]), softmax([0, -5000])];")
    np.testing.assert_allclose(found[0], [0.5, 0.5])
    np.testing.assert_allclose(found[1], [1 / (1 + math.exp(-1)), 0, 1 / (1 + math.e)])
    assert found[2] == [1, 0]


def test_entropy_and_gradient_norm_in_javascript():
    scores = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * 12
    rows = torch.cat([scores.softmax(-1), torch.tensor([[1, 0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0, 0]])])
    found = js.kit("return input.map((p) => [entropy(p), softmaxGradientNorm(p)]);", rows.tolist())
    np.testing.assert_allclose([entropy for entropy, _ in found], torch.special.entr(rows).sum(-1), atol=1e-14)
    for p, (_, norm) in zip(rows.numpy(), found, strict=True):
        terms = [p[i] * p[j] if i != j else p[i] * sum(np.delete(p, i)) for i in range(6) for j in range(6)]
        assert norm == pytest.approx(math.sqrt(sum(term**2 for term in terms)), rel=1e-12, abs=1e-300)


def test_last_call_computes_once_per_argument_list():
    body = """
      let calls = 0;
      const twice = lastCall((a, b) => { calls += 1; return [2 * a, b]; });
      return [twice(1, "x"), twice(1, "x"), calls, twice(2, "x"), twice(2, "y"), twice(2, true), calls];
    """
    assert js.kit(body) == [[2, "x"], [2, "x"], 1, [4, "x"], [4, "y"], [4, True], 4]


# ---- Fewer samples than positions ----


def test_min_max_band_of_random_values():
    source = np.random.default_rng(0)
    for count, buckets in [(4096, 350), (100, 100), (7, 3), (1000, 1)]:
        values = source.normal(size=count)
        body = "const edges = evenEdges(input[0].length, input[1]); return [edges, minMaxBand(input[0], edges)];"
        edges, band = js.kit(body, [values.tolist(), buckets])
        assert (edges[0], edges[-1], len(edges)) == (0, count, buckets + 1)
        assert set(np.diff(edges)) <= {count // buckets, -(-count // buckets)}
        np.testing.assert_array_equal(band["low"], np.minimum.reduceat(values, edges[:-1]))
        np.testing.assert_array_equal(band["high"], np.maximum.reduceat(values, edges[:-1]))


def test_a_band_shows_the_wave_that_strided_samples_miss():
    """cos(2πk/16) sampled at every 16th position is the constant 1; the band reaches from −1 to 1."""
    band = js.kit("""
      const { cos } = cosSinGrid((2 * Math.PI) / 16, 0, 1, 4096);
      return minMaxBand(cos, evenEdges(4096, 256));
    """)
    np.testing.assert_allclose(band["low"], -1, atol=1e-12)
    np.testing.assert_allclose(band["high"], 1, atol=1e-12)


# ---- Dials as text ----

NUMBER = {"kind": "number", "label": "d", "min": 2, "max": 512, "whole": True, "step": 2, "log": True}
NUMBER |= {"below": "too few", "above": "too many", "between": "pairs"}
REAL = {"kind": "number", "label": "base", "min": 1, "max": 1e7, "log": True}
CHOICE = {"kind": "choice", "options": ["interleaved", "half"], "names": ["Interleaved", "Halves"]}
FROM_ZERO = {"kind": "number", "label": "m", "min": 0, "max": 4095, "whole": True, "log": True}
EVEN_SLIDER = {"kind": "number", "label": "n", "min": -10, "max": 30, "whole": True}

PARSE = """
  return input.map(([dial, text]) => {
    try { return parseDial(dial, text, {}); } catch (refusal) { return refusal.message; }
  });
"""


def test_what_a_dial_takes_and_why_it_refuses():
    cases = {
        (0, "64"): 64,
        (0, " +2 "): 2,
        (0, "512"): 512,
        (0, "1e2"): 100,
        (0, "7"): "7 is not one of 2, 4, 6, … (pairs)",
        (0, "0"): "0 is less than 2 (too few)",
        (0, "514"): "514 is more than 512 (too many)",
        (0, "6.5"): "6.5 is not a whole number",
        (0, ""): "“” is not a number",
        (0, "abc"): "“abc” is not a number",
        (0, "0x10"): "“0x10” is not a number",
        (0, "Infinity"): "“Infinity” is not a number",
        (0, "12 34"): "“12 34” is not a number",
        (1, "2.5"): 2.5,
        (1, ".5"): ".5 is less than 1",
        (1, "-3"): "-3 is less than 1",
        (1, "1e8"): "1e8 is more than 10000000",
        (2, "on"): True,
        (2, "off"): False,
        (2, "maybe"): "“maybe” is neither on nor off",
        (3, "half"): "half",
        (3, "Half"): "“Half” is none of interleaved, half",
    }
    dials = [NUMBER, REAL, {"kind": "switch"}, CHOICE]
    found = js.kit(PARSE, [[dials[dial], text] for dial, text in cases])
    assert dict(zip(cases, found, strict=True)) == cases


def test_limits_in_words():
    dials = [NUMBER, {**REAL, "note": "Usually 10000."}, {"kind": "switch", "note": "A note."}, CHOICE]
    expected = ["Whole numbers, 2 to 512. ", "1 to 10000000. Usually 10000.", "A note.", ""]
    assert js.kit("return input.map(limitsOf);", dials) == expected


def test_sliders_reach_every_end_and_come_back():
    for dial in (NUMBER, REAL, EVEN_SLIDER, FROM_ZERO):
        ends, middle, round_trip = js.kit(
            """
            const values = Array.from({ length: 51 }, (_, i) => fromSlider(input, 20 * i));
            return [[values[0], values[50]], values[25], values.map((v) => [v, fromSlider(input, toSlider(input, v))])];
            """,
            dial,
        )
        assert ends == [dial["min"], dial["max"]]
        assert all(back == pytest.approx(value, rel=1e-9) for value, back in round_trip)
        more = 1 if dial["min"] == 0 else 0  # the ratios are those of the value plus one
        low, high = dial["min"] + more, dial["max"] + more
        expected = math.sqrt(low * high) - more if dial.get("log") else (dial["min"] + dial["max"]) / 2
        assert middle == pytest.approx(expected, rel=0.02)
        if dial.get("step"):
            assert all(value % 2 == 0 for value, _ in round_trip)


def test_keys_step_and_stop_at_the_limits():
    cases = [
        (NUMBER, 64, "ArrowRight", 66),
        (NUMBER, 64, "ArrowUp", 66),
        (NUMBER, 64, "ArrowLeft", 62),
        (NUMBER, 64, "ArrowDown", 62),
        (NUMBER, 64, "PageUp", 128),
        (NUMBER, 64, "PageDown", 32),
        (NUMBER, 512, "ArrowRight", 512),
        (NUMBER, 2, "ArrowLeft", 2),
        (NUMBER, 400, "PageUp", 512),
        (EVEN_SLIDER, 0, "ArrowRight", 1),
        (EVEN_SLIDER, 0, "PageUp", 4),
        (EVEN_SLIDER, 0, "PageDown", -4),
        (REAL, 100, "PageUp", 200),
        (FROM_ZERO, 0, "PageUp", 1),
        (FROM_ZERO, 1, "PageUp", 2),
        (FROM_ZERO, 1000, "PageDown", 500),
        (FROM_ZERO, 1, "PageDown", 1),  # half of it, rounded
        (FROM_ZERO, 1, "ArrowLeft", 0),
        (FROM_ZERO, 0, "PageDown", 0),
        (REAL, 100, "ArrowRight", 117),  # a hundredth of the slider: 10^(7/100)
        (REAL, 1e7, "ArrowUp", 1e7),
    ]
    found = js.kit("return input.map(([dial, value, key]) => nudge(dial, value, key));", [c[:3] for c in cases])
    assert found == pytest.approx([case[3] for case in cases], rel=1e-12)


# ---- The address ----

NASTY = ["plain", "the dog", "a&b=c", "50% of #1", "a+b", "naïve 🐕", "x=1&shuffle.words=y", "", "%zz", "2,0,1"]


def test_the_address_keeps_what_was_written():
    body = """
      let hash = "";
      for (const [key, entries] of Object.entries(input)) hash = writeAddress(hash, key, entries);
      return [hash, Object.keys(input).map((key) => readAddress(hash, key))];
    """
    wanted = {
        "shuffle": [["words", text] for text in NASTY],
        "shuffle-2": [["order", "1,0"]],
        "saturation": [["dim", "64"], ["scaled", "off"]],
    }
    hash_, found = js.kit(body, wanted)
    assert found == list(wanted.values())
    assert hash_.startswith("#shuffle.words=plain&shuffle.words=the+dog&")
    assert hash_.endswith("&shuffle-2.order=1,0&saturation.dim=64&saturation.scaled=off")


def test_writing_replaces_own_entries_and_keeps_the_others():
    write = "return input.map((given) => writeAddress(...given));"
    assert js.kit(
        write,
        [
            ["#a.x=1&b.y=2", "a", [["x", "3"]]],
            ["#a.x=1&b.y=2", "a", []],
            ["#a.x=1", "a", []],
            ["#a-heading", "a", [["x", "3"]]],
            ["", "a", []],
        ],
    ) == ["#b.y=2&a.x=3", "#b.y=2", "", "#a.x=3", ""]
    read = "return input.map((given) => readAddress(...given));"
    assert js.kit(read, [["#a-heading", "a"], ["", "a"], ["#a.x", "a"], ["#ab.x=1", "a"], ["#a.x=%zz+y", "a"]]) == [
        [],
        [],
        [],
        [],
        [["x", "%zz y"]],
    ]


def test_shuffle_refuses_what_its_traits_refuse():
    body = """
      return input.map(([at, text]) => {
        try {
          return parseDial(figure.dials[at], text, { words: "a b c" });
        } catch (refusal) { return refusal.message; }
      });
    """
    cases = {
        (0, "  the   dog "): "the dog",
        (0, "  "): "a sentence needs at least one word",
        (0, "1 2 3 4 5 6 7 8"): "1 2 3 4 5 6 7 8",
        (0, "1 2 3 4 5 6 7 8 9"): "9 words are more than 8",
        (0, "123456789012"): "123456789012",
        (0, "1234567890123 a"): "“1234567890123” is longer than 12 characters",
        (1, "2, 0 1"): [2, 0, 1],
        (1, "0,1"): "it must hold each of 0 to 2 once",
        (1, "0,1,1"): "it must hold each of 0 to 2 once",
        (1, "0,1,3"): "it must hold each of 0 to 2 once",
        (1, "0,1,-2"): "it must hold each of 0 to 2 once",
        (1, "a"): "it must hold each of 0 to 2 once",
    }
    found = js.inside(Shuffle, body, list(cases))
    assert dict(zip(cases, found, strict=True)) == cases


# ---- Drawing helpers that need no page ----


def test_numbers_for_readers():
    cases = {
        0: "0",
        1: "1.00",
        0.34567: "0.346",
        -2.5: "−2.50",
        99.94: "99.9",
        100: "100",
        123.4: "123",
        99999: "99999",
        123456: "1.2 × 10⁵",
        0.001: "0.00100",
        0.00099: "9.9 × 10⁻⁴",
        -2.220446e-16: "−2.2 × 10⁻¹⁶",
        5e-324: "4.9 × 10⁻³²⁴",
    }
    assert dict(zip(cases, js.kit("return input.map(tidy);", list(cases)), strict=True)) == cases


def test_ticks_stand_at_round_numbers():
    cases = {(4096, 7): 1000, (256, 7): 50, (64, 4): 20, (40, 7): 10, (10, 7): 2, (3, 7): 1, (5000, 10): 500}
    found = js.kit("return input.map(([range, most]) => niceStep(range, most));", list(cases))
    assert dict(zip(cases, found, strict=True)) == cases


def test_scales_and_bands():
    assert js.kit("""
      const even = scale([10, 20], [0, 100]), ratio = scale([1, 100], [50, 0], true);
      return [even(10), even(15), even(20), ratio(1), ratio(10), ratio(100), bandPath([0, 1], [5, 6], [7, 8])];
    """) == [0, 50, 100, 50, 25, 0, "M0.00,7.00L1.00,8.00L1.00,6.00L0.00,5.00Z"]


def luminance(colour):
    c = np.array(colour) / 255
    return np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722]


def test_text_is_readable_on_every_colour():
    greys = [[level] * 3 for level in (0, 117, 118, 255)]
    colours = np.random.default_rng(3).integers(0, 256, (500, 3)).tolist() + greys
    for colour, text in zip(colours, js.kit("return input.map(readableOn);", colours), strict=True):
        light, dark = sorted([luminance(colour), {"#000000": 0.0, "#ffffff": 1.0}[text]], reverse=True)
        assert (light + 0.05) / (dark + 0.05) >= 4.5, colour


def test_colours_between_others():
    theme = {"zero": [255, 255, 255], "pos": [0, 0, 200], "neg": [200, 100, 0]}
    body = "return [...[-2, -1, 0, 0.5, 1, 9].map((v) => css(diverging(input, v))), mix([0, 0, 0], [10, 20, 30], 0.5)];"
    assert js.kit(body, theme) == [
        "rgb(200,100,0)",
        "rgb(200,100,0)",
        "rgb(255,255,255)",
        "rgb(128,128,228)",
        "rgb(0,0,200)",
        "rgb(0,0,200)",
        [5, 10, 15],
    ]


# ---- Parts ----


# ---- Traits ----


def test_defaults_and_dials():
    assert Shuffle().dials() == {
        "words": "the dog bit the man",
        "order": [0, 1, 2, 3, 4],
        "position": False,
        "causal": False,
    }
    assert Saturation().dials() == {"dim": 64, "n_keys": 8, "draw": 0, "scaled": True}
    assert Shuffle(words="a b", order=[1, 0]).order == [1, 0]
    assert Shuffle(order=[1, 0], words="a b").order == [1, 0]
    assert Shuffle(words="a b").order == [0, 1]


def test_traits_are_observed_from_both_sides():
    figure, seen = Saturation(), []
    figure.observe(lambda change: seen.append((change["name"], change["new"])), ["dim", "scaled"])
    figure.dim = 128
    figure.set_state({"dim": 256, "scaled": False})  # what arrives from the page
    figure.dim = np.int64(256)
    assert seen == [("dim", 128), ("dim", 256), ("scaled", False)]
    assert type(figure.dim) is int
    assert {name: figure.get_state()[name] for name in figure.dial_traits()} == figure.dials()
    assert figure.get_state()["_esm"] == Saturation._esm
    assert figure.get_state()["alt"] == figure.alt


def test_new_words_keep_the_order_only_if_it_fits():
    figure = Shuffle(order=[4, 3, 2, 1, 0])
    figure.words = "five words are here too"
    assert figure.order == [4, 3, 2, 1, 0]
    figure.words = "  now\tthree  words "
    assert (figure.words, figure.order) == ("now three words", [0, 1, 2])
    figure.set_state({"words": "a b", "order": [1, 0]})
    assert (figure.words, figure.order) == ("a b", [1, 0])


BAD = [
    (Saturation, {"dim": 0}, "dim must be an integer >= 1 and <= 512, got 0"),
    (Saturation, {"dim": 513}, "dim must be an integer >= 1 and <= 512, got 513"),
    (Saturation, {"dim": 6.5}, r"dim must be an integer >= 1 and <= 512, got 6\.5"),
    (Saturation, {"dim": "8"}, "dim must be an integer >= 1 and <= 512, got '8'"),
    (Saturation, {"dim": True}, "dim must be an integer >= 1 and <= 512, got True"),
    (Saturation, {"n_keys": 1}, "n_keys must be an integer >= 2 and <= 32, got 1"),
    (Saturation, {"n_keys": 33}, "n_keys must be an integer >= 2 and <= 32, got 33"),
    (Saturation, {"draw": -1}, "draw must be an integer >= 0 and <= 15, got -1"),
    (Saturation, {"draw": 16}, "draw must be an integer >= 0 and <= 15, got 16"),
    (Saturation, {"scaled": 1}, "scaled must be True or False, got 1"),
    (Shuffle, {"words": " "}, "words must be 1 to 8 words of at most 12 characters, got ' '"),
    (Shuffle, {"words": "1 2 3 4 5 6 7 8 9"}, "words must be 1 to 8 words"),
    (Shuffle, {"words": "abcdefghijklm"}, "words must be 1 to 8 words of at most 12 characters, got 'abcdefghijklm'"),
    (Shuffle, {"words": 3}, "'words' trait .* expected a unicode string, not the int 3"),
    (Shuffle, {"order": [0, 1, 2, 3]}, r"order must hold each of 0 to 4 once, got \[0, 1, 2, 3\]"),
    (Shuffle, {"order": [0, 1, 2, 3, 5]}, "order must hold each of 0 to 4 once"),
    (Shuffle, {"order": [0, True, 2, 3, 4]}, "order must hold each of 0 to 4 once"),
    (Shuffle, {"order": "abc"}, "'order' trait .* expected an int, not the str 'abc'"),
    (Shuffle, {"position": None}, "position must be True or False, got None"),
]


@pytest.mark.parametrize("explorer, bad, message", BAD, ids=[str(bad) for _, bad, _ in BAD])
def test_bad_dials_are_refused_and_the_last_good_value_stays(explorer, bad, message):
    with pytest.raises(traitlets.TraitError, match=message):
        explorer(**bad)
    figure = explorer()
    before = figure.dials()
    [(name, value)] = bad.items()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(figure, name, value)
    assert figure.dials() == before


def test_the_longest_allowed_words():
    assert Shuffle(words="abcdefghijkl " * 8).words == " ".join(["abcdefghijkl"] * 8)


@pytest.mark.parametrize("alt", ["", "figure.png", " " * 30, "x" * 19])
def test_alt_must_say_something(alt):
    with pytest.raises(
        traitlets.TraitError, match="alt must be at least 20 characters that say what is to be seen, got"
    ):
        Saturation(alt=alt)
    figure = Saturation()
    with pytest.raises(traitlets.TraitError, match="alt must be"):
        figure.alt = alt
    assert Saturation(alt="x" * 20).alt == "x" * 20


def test_an_explorer_must_have_an_alt_of_its_own():
    class Mute(Explorer):
        pass

    with pytest.raises(traitlets.TraitError, match="alt must be"):
        Mute()
    for method in (Mute.compute, Mute.terms):
        with pytest.raises(NotImplementedError):
            method({})
    with pytest.raises(NotImplementedError):
        Mute(alt="x" * 20).draw_still()


# ---- Stills ----


@every_explorer
def test_a_still_is_one_drawing_in_the_pages_colours(explorer):
    figure = explorer(alt='Twenty characters & more, "quoted" <so>')
    root = ElementTree.fromstring(figure.still())
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == figure.alt
    assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
    marks = list(root)
    assert len(marks) > 20
    for mark in marks:
        # every colour is a variable of the page with a fallback
        assert re.search(r"(fill|stroke):var\(--fig-\w+, #[0-9a-f]{6}\)", mark.get("style"))
    assert "\n" not in figure.still()
    assert len(figure.still()) < 40_000


@every_explorer
def test_front_ends_without_widgets_get_the_still(explorer):
    figure = explorer()
    data, _ = figure._repr_mimebundle_()
    assert data["text/html"] == figure.still()
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert "text/plain" in data


def texts(root):
    return [mark.text for mark in root.iter(f"{SVG}text")]


def test_the_still_of_shuffle_shows_its_numbers():
    figure = Shuffle(words="dog bites man", order=[2, 0, 1], position=True, causal=True)
    data = figure.compute(figure.dials())
    root = ElementTree.fromstring(figure.still())
    found = texts(root)
    assert found.count("man") == found.count("dog") == 2
    for row in range(3):
        for column in range(3):
            number = f"{data['weights'][row][column]:.2f}"
            assert (number in found) or column > row
    assert found.count("–") == 3
    for change in data["changes"]:
        assert (f"{change:.1e}" if change else "0") in found
    boxes = list(root.iter(f"{SVG}rect"))
    assert len(boxes) == 9 + 3 * 2 * 16
    cells = [box for box in boxes if box.get("width") == "50"]
    assert [round(float(cell.get("x"))) for cell in cells] == [104, 156, 208] * 3
    assert [round(float(cell.get("y"))) for cell in cells] == [52] * 3 + [104] * 3 + [156] * 3
    opacity = [float(re.search(r"fill-opacity:([\d.]+)", cell.get("style"))[1]) for cell in cells]
    expected = 0.55 * np.tril(data["weights"]) + 0.3 * np.triu(np.ones((3, 3)), 1)
    np.testing.assert_allclose(opacity, expected.ravel(), atol=6e-4)


def test_long_words_lean_over_the_columns_of_the_still():
    for words, leaning in (("dog bites man", 0), ("dog remembers man", 3)):
        root = ElementTree.fromstring(Shuffle(words=words).still())
        leant = [mark.text for mark in root.iter(f"{SVG}text") if "rotate(-30deg)" in mark.get("style", "")]
        assert leant == words.split()[:leaning]


def test_the_strips_of_the_still():
    figure = Shuffle(words="dog bites man", order=[2, 0, 1], position=True)
    data = figure.compute(figure.dials())
    strips = [b for b in ElementTree.fromstring(figure.still()).iter(f"{SVG}rect") if b.get("width") == "14"]
    now, typed = np.array(data["outputs"]), np.array(data["typedOutputs"])[figure.order]
    expected = np.stack([now, typed], axis=-1).ravel()
    strongest = np.abs(data["typedOutputs"]).max()
    for strip, value in zip(strips, expected, strict=True):
        style = strip.get("style")
        assert ("--fig-pos" if value > 0 else "--fig-neg") in style
        share = float(re.search(r"fill-opacity:([\d.]+)", style)[1])
        assert share == pytest.approx(min(1, abs(value) / strongest), abs=6e-4)


def test_the_still_of_saturation_shows_its_numbers():
    figure = Saturation(dim=32, n_keys=4, scaled=False)
    data = figure.compute(figure.dials())
    root = ElementTree.fromstring(figure.still())
    assert "Softmax weights of 4 keys, d = 32" in texts(root)
    bars = list(root.iter(f"{SVG}rect"))
    np.testing.assert_allclose([float(bar.get("height")) / 220 for bar in bars], data["weights"], atol=1e-4)
    np.testing.assert_allclose([float(bar.get("y")) + float(bar.get("height")) for bar in bars], 270, atol=1e-3)
    assert all("--fig-2" in bar.get("style") for bar in bars)
    dots = list(root.iter(f"{SVG}circle"))
    heights = [(270 - float(dot.get("cy"))) / 440 for dot in dots]
    expected = [*data["meanScaled"], *data["meanRaw"], data["gradient"]]
    np.testing.assert_allclose(heights, expected, atol=1e-4)
    across = [390 + math.log(d) / math.log(512) * 340 for d in data["meanDims"]]
    np.testing.assert_allclose([float(dot.get("cx")) for dot in dots], [*across, *across, 390 + 340 * 5 / 9], atol=1e-3)
    assert all("--fig-1" in bar.get("style") for bar in ElementTree.fromstring(Saturation().still()).iter(f"{SVG}rect"))


def test_elements_of_a_still():
    assert still.text(1, 2, "a < b & c", anchor="end", fill="muted", style="color:red") == (
        '<text x="1" y="2" text-anchor="end" style="fill:var(--fig-muted, #59636e);color:red">a &lt; b &amp; c</text>'
    )
    assert still.line([(0, 1), (2, 3.5)], "ink", 2) == (
        '<path d="M0,1L2,3.5" style="fill:none;stroke:var(--fig-ink, #1f2328);stroke-width:2"/>'
    )
    assert still.dot(1, 2, 3, "1") == '<circle cx="1" cy="2" r="3" style="fill:var(--fig-1, #0b62c4)"/>'
    assert still.rect(1, 2, 3, 4, "neg").startswith('<rect x="1" y="2" width="3" height="4" rx="3" style=')
    assert still.rect(1, 2, 3, 4, "neg").endswith('fill-opacity:1.000"/>')
    assert still.rect(1, 2, 3, 4, "neg", 0.5, 2) == (
        '<rect x="1" y="2" width="3" height="4" rx="2" style="fill:var(--fig-neg, #b3470a);fill-opacity:0.500"/>'
    )


def test_words_are_cut_alike_in_both_languages():
    cases = ["the dog", " a\tb\r\nc ", "a\u00a0b c", "a\u2003b", ""]
    found = js.evaluate(Shuffle._esm, "return input.map(splitWords);", cases)
    assert found == [shuffle.split_words(text) for text in cases]
    assert shuffle.split_words("a\u00a0b c") == ["a\u00a0b", "c"]


def test_arrows_and_rings_are_the_same_in_both_languages():
    cases = [[[0, 0], [30, 40], 10], [[5, -3], [5, 1], 10], [[200, 100], [80.5, 120.25], 13]]
    found = js.kit("return input.map((given) => arrowPath(...given));", cases)
    for (tail, tip, head), d in zip(cases, found, strict=True):
        assert f'd="{d}"' in still.arrow(tail, tip, "1", 3, head)
        points = np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", d)[1:]])
        np.testing.assert_allclose(points[[0, 1, 3]], [tail, tip, tip], atol=0.006)
        for end in points[[2, 4]]:  # both ends of the head, as long as it and 0.45 radians off the line
            back = complex(*(end - tip)) / complex(*np.subtract(tail, tip))
            assert abs(back) * math.dist(tail, tip) == pytest.approx(min(head, math.dist(tail, tip) / 2), abs=0.02)
            assert abs(math.atan2(back.imag, back.real)) == pytest.approx(0.45, abs=0.01)
    assert js.kit("return arrowPath([3, 3], [3, 3]);") == ""
    assert 'd="M3.00,3.00L3.00,3.00M' in still.arrow((3, 3), (3, 3), "1", 3)
    assert js.kit("return circlePath([5.5, 6], 2);") == still.ring((5.5, 6), 2)
    numbers = [0, -0.25, 1.23456, -1234.5]
    assert js.kit("return input.map((value) => exact(value));", numbers) == [still.exact(value) for value in numbers]
    assert js.kit("return input.map((value) => exact(value, 0));", [-2, 7]) == [still.exact(-2, 0), "7"]
    assert js.kit("return [lowered(1234567890), count(1, 'place'), count(0, 'place')];") == [
        still.lowered(1234567890),
        "1 place",
        "0 places",
    ]
    assert js.kit("return lined('2', 1.5, 'opacity: 0.5').style;").endswith("; opacity: 0.5")


@pytest.mark.parametrize(
    "count, area, gap", [(8, (0, 10, 700, 128), 16), (256, (5, 0, 350, 196), 0), (1, (0, 0, 90, 96), 0)]
)
def test_squares_are_as_large_as_fit(count, area, gap):
    body = """
      const { cell, centre } = packCells(...input);
      return [cell, Array.from({ length: input[0] }, (_, i) => centre(i))];
    """
    cell, centres = js.kit(body, [count, area, gap])
    left, top, width, height = area
    centres = np.array(centres)
    assert (centres[:, 0] >= left + cell / 2 - 1e-9).all()
    assert (centres[:, 0] <= left + width - cell / 2 + 1e-9).all()
    assert (centres[:, 1] >= top + cell / 2).all()
    rows = len(set(centres[:, 1]))
    assert rows * (cell + gap) <= height
    larger = math.floor(width / (cell + 1))
    assert cell == min(96, width) or math.ceil(count / larger) * (cell + 1 + gap) > height
    for one in range(min(count, 40)):
        others = np.delete(centres, one, axis=0)
        assert (np.abs(others - centres[one]).max(axis=1) >= cell - 1e-9).all()


def test_a_path_is_a_line_or_an_area():
    assert still.path("M0,0", "1", width=2) == (
        '<path d="M0,0" style="fill:none;stroke:var(--fig-1, #0b62c4);stroke-width:2"/>'
    )
    assert still.path("M0,0", "1") == '<path d="M0,0" style="fill:var(--fig-1, #0b62c4);fill-opacity:1"/>'
