"""Tests of the code that all explorers share."""

from __future__ import annotations

import json
import math
import re
from itertools import permutations

import numpy as np
import pytest
import torch
import traitlets

from ropebook import sinusoidal
from ropebook.explorers import Explorer
from tests.explorers import draws, js


def test_an_error_in_javascript_is_an_error_in_python():
    with pytest.raises(RuntimeError, match="ReferenceError"):
        js.evaluate("", "return nothingOfThatName;")


# these values are from the authors' test vectors
FNV_PUBLISHED = {"": 0x811C9DC5, "a": 0xE40C292C, "foobar": 0xBF9CF968}


@pytest.mark.parametrize("text, value", FNV_PUBLISHED.items())
def test_fnv1a(text, value):
    assert draws.fnv1a(text) == value
    assert js.kit("return fnv1a(input);", text) == value


def mulberry32(seed, count):
    """Implement the generator in its usual form. Python's integers are truncated to 32 bits after every operation."""
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


@pytest.mark.parametrize("dim, base", [(2, 10000), (8, 10000), (64, 500), (512, 1e7), (6, 1)])
def test_frequencies_and_encoding(dim, base):
    frequencies, encoded = js.kit("return [invFreq(...input), sinusoidalEncoding(37, ...input)];", [dim, base])
    np.testing.assert_allclose(frequencies, sinusoidal.inv_freq(dim, base), rtol=1e-14)
    expected = sinusoidal.encoding(37, dim, base, dtype=torch.float64)
    np.testing.assert_allclose(encoded, expected, atol=1e-13)


EPSILON = 2.0**-52


@pytest.mark.parametrize("start, step", [(0, 1), (-200.5, 1), (3, 0.37)])
def test_recurrence_against_float64(start, step):
    """Compare all 4096 samples. The errors of 64 successive rotations can add up, and each angle is itself rounded
    twice."""
    for theta in (1.0, 0.1, 3.0, 1e-4, 1e-7, 0.0):
        found = js.kit("return cosSinGrid(...input, 4096);", [theta, start, step])
        angles = theta * (start + np.arange(4096) * step)
        allowed = 64 * EPSILON + 2 * EPSILON * np.abs(angles)
        assert (np.abs(np.array(found["cos"]) - np.cos(angles)) <= allowed).all()
        assert (np.abs(np.array(found["sin"]) - np.sin(angles)) <= allowed).all()


@pytest.mark.parametrize("theta", [1.0, 1e-4])
def test_recurrence_does_not_drift_over_a_million(theta):
    """If the recurrence didn't restart at every 64th angle, its error would grow beyond 1e-11."""
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


def test_the_gradient_norm_in_javascript():
    scores = torch.randn(40, 6, dtype=torch.float64, generator=torch.Generator().manual_seed(2)) * 12
    rows = torch.cat([scores.softmax(-1), torch.tensor([[1, 0, 0, 0, 0, 0], [0.5, 0.5, 0, 0, 0, 0]])])
    found = js.kit("return input.map(softmaxGradientNorm);", rows.tolist())
    for p, norm in zip(rows.numpy(), found, strict=True):
        terms = [p[i] * p[j] if i != j else p[i] * sum(np.delete(p, i)) for i in range(6) for j in range(6)]
        assert norm == pytest.approx(math.sqrt(sum(term**2 for term in terms)), rel=1e-12, abs=1e-300)


def test_last_call_computes_once_per_argument_list():
    body = """
      let calls = 0;
      const twice = lastCall((a, b) => { calls += 1; return [2 * a, b]; });
      return [twice(1, "x"), twice(1, "x"), calls, twice(2, "x"), twice(2, "y"), twice(2, true), calls];
    """
    assert js.kit(body) == [[2, "x"], [2, "x"], 1, [4, "x"], [4, "y"], [4, True], 4]


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
    """Sampled at every 16th position, cos(2πk/16) is always 1. The band must extend from −1 to 1."""
    band = js.kit("""
      const { cos } = cosSinGrid((2 * Math.PI) / 16, 0, 1, 4096);
      return minMaxBand(cos, evenEdges(4096, 256));
    """)
    np.testing.assert_allclose(band["low"], -1, atol=1e-12)
    np.testing.assert_allclose(band["high"], 1, atol=1e-12)


NUMBER = {"kind": "number", "label": "d", "min": 2, "max": 512, "whole": True, "step": 2, "log": True}


NUMBER |= {"below": "too few", "above": "too many", "between": "pairs"}


REAL = {"kind": "number", "label": "base", "min": 1, "max": 1e7, "log": True}


CHOICE = {"kind": "choice", "options": ["interleaved", "half"], "names": ["Interleaved", "Halves"]}


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
        (0, ""): "Write a number",
        (0, "abc"): "“abc” is not a number",
        (0, "0x10"): "“0x10” is not a number",
        (0, "Infinity"): "“Infinity” is not a number",
        (0, "12 34"): "“12 34” is not a number",
        (1, "2.5"): 2.5,
        (1, ".5"): ".5 is less than 1",
        (1, "-3"): "-3 is less than 1",
        (1, "1e8"): "1e8 is more than 10,000,000",
        (2, "on"): True,
        (2, "off"): False,
        (2, "maybe"): "“maybe” is neither on nor off",
        (3, "half"): "half",
        (3, "Half"): "“Half” is not one of interleaved, half",
    }
    dials = [NUMBER, REAL, {"kind": "switch"}, CHOICE]
    found = js.kit(PARSE, [[dials[dial], text] for dial, text in cases])
    assert dict(zip(cases, found, strict=True)) == cases


PAIR = {"kind": "number", "trait": "pair", "label": "Pair i", "min": 0, "max": 255, "whole": True, "step": 1}


PAIR |= {"within": {"dial": "dim", "times": 0.5, "plus": -1, "label": "Dimension d"}, "above": "no more pairs"}


def test_a_dial_goes_as_far_as_another_one_lets_it():
    """The limit applies to the dial's slider, its field and its description. When the dial reaches the limit, a message
    explains why it can't go further."""
    body = """
      return input.dims.map((dim) => {
        const now = present(input.pair, { dim });
        let why;
        try { parseDial(now, "300", {}); } catch (refusal) { why = refusal.message; }
        const end = fromSlider(now, 1000);
        return [end, toSlider(now, end), nudge(now, end, "ArrowRight"), why, limitsOf(now),
          keepWithin([input.pair], { pair: 40, dim }).pair];
      });
    """
    assert js.kit(body, {"pair": PAIR, "dims": [2, 16, 512]}) == [
        [0, 0, 0, "300 is more than 0 (Dimension d is 2)", "Whole numbers, 0 to 0. ", 0],
        [7, 1000, 7, "300 is more than 7 (Dimension d is 16)", "Whole numbers, 0 to 7. ", 7],
        [255, 1000, 255, "300 is more than 255 (no more pairs)", "Whole numbers, 0 to 255. ", 40],
    ]


def test_limits_in_words():
    dials = [NUMBER, {**REAL, "note": "Usually 10⁴."}, {"kind": "switch", "note": "A note."}, CHOICE]
    expected = ["Whole numbers, 2 to 512. ", "1 to 10,000,000. Usually 10⁴.", "A note.", ""]
    assert js.kit("return input.map(limitsOf);", dials) == expected


FROM_ZERO = {"kind": "number", "label": "m", "min": 0, "max": 4095, "whole": True, "log": True}


EVEN_SLIDER = {"kind": "number", "label": "n", "min": -10, "max": 30, "whole": True}


def test_a_slider_takes_a_stop_that_is_near():
    dial = {**NUMBER, "min": 1, "max": 8, "log": True, "whole": False, "stops": [1.5, 3]}
    body = """
      const [low, high] = input.stops.map((stop) => toSlider(input, stop));
      return [fromSlider(input, low - 9, 10), fromSlider(input, high + 9, 10), fromSlider(input, low - 11, 10),
        fromSlider(input, low - 9), fromSlider(input, high), nudge(input, 1.5, "ArrowRight")];
    """
    low, high, far, exact, at, pressed = js.kit(body, dial)
    assert (low, high, at) == (1.5, 3, 3)
    assert max(far, exact) < 1.5 < pressed < 1.6


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
        # if the minimum is 0, the slider is logarithmic in value + 1
        more = 1 if dial["min"] == 0 else 0
        low, high = dial["min"] + more, dial["max"] + more
        expected = math.sqrt(low * high) - more if dial.get("log") else (dial["min"] + dial["max"]) / 2
        assert middle == pytest.approx(expected, rel=0.02)
        if dial.get("step"):
            assert all(value % 2 == 0 for value, _ in round_trip)


def test_keys_step_and_stop_at_the_limits():
    cases = [
        (NUMBER, 64, "ArrowRight", 68),  # a hundredth of the slider multiplies the value by 256^(1/100)
        (NUMBER, 64, "ArrowUp", 68),
        (NUMBER, 64, "ArrowLeft", 60),
        (NUMBER, 64, "ArrowDown", 60),
        (NUMBER, 16, "ArrowRight", 18),  # but at least by one step
        (NUMBER, 16, "ArrowLeft", 14),
        (FROM_ZERO, 4095, "ArrowLeft", 3768),
        (EVEN_SLIDER, 4, "ArrowRight", 5),
        ({**FROM_ZERO, "log": False, "max": 16384}, 4000, "ArrowRight", 4164),  # a slider with very many steps
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
        (FROM_ZERO, 1, "PageDown", 1),  # half of 1 is rounded to 1 again
        (FROM_ZERO, 1, "ArrowLeft", 0),
        (FROM_ZERO, 0, "PageDown", 0),
        (REAL, 100, "ArrowRight", 117),  # moving by a hundredth of the slider multiplies the value by 10^(7/100)
        (REAL, 1e7, "ArrowUp", 1e7),
    ]
    found = js.kit("return input.map(([dial, value, key]) => nudge(dial, value, key));", [c[:3] for c in cases])
    assert found == pytest.approx([case[3] for case in cases], rel=1e-12)
    finely = [(NUMBER, 64, "ArrowUp", 66), (NUMBER, 2, "ArrowDown", 2), (FROM_ZERO, 4095, "ArrowDown", 4094)]
    found = js.kit("return input.map(([dial, value, key]) => nudge(dial, value, key, true));", [c[:3] for c in finely])
    assert found == [case[3] for case in finely]


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


def test_numbers_for_readers():
    cases = {
        0: "0",
        1: "1.00",
        0.34567: "0.346",
        -2.5: "−2.50",
        99.94: "99.9",
        100: "100",
        123.4: "123",
        999.4: "999.4",
        1000: "1,000",
        -99999: "−99,999",
        123456: "1.2 × 10⁵",
        0.001: "0.00100",
        0.00099: "9.9 × 10⁻⁴",
        -2.220446e-16: "−2.2 × 10⁻¹⁶",
        5e-324: "4.9 × 10⁻³²⁴",
    }
    assert dict(zip(cases, js.kit("return input.map(tidy);", list(cases)), strict=True)) == cases
    cases = {0: "0", 1.62114: "1.62114", 999: "999", 1000: "1,000", -4096: "−4,096", 10_000_000: "10,000,000"}
    assert dict(zip(cases, js.kit("return input.map(grouped);", list(cases)), strict=True)) == cases
    assert js.kit('return [1, 2653].map((number) => count(number, "token"));') == ["1 token", "2,653 tokens"]


def test_ticks_stand_at_round_numbers():
    cases = {(4096, 7): 1000, (256, 7): 50, (64, 4): 20, (40, 7): 10, (10, 7): 2, (3, 7): 1, (5000, 10): 500}
    found = js.kit("return input.map(([range, most]) => niceStep(range, most));", list(cases))
    assert dict(zip(cases, found, strict=True)) == cases


def test_scales_and_bands():
    assert js.kit("""
      const even = scale([10, 20], [0, 100]), ratio = scale([1, 100], [50, 0], true);
      return [even(10), even(15), even(20), ratio(1), ratio(10), ratio(100), bandPath([0, 1], [5, 6], [7, 8])];
    """) == [0, 50, 100, 50, 25, 0, "M0,7L1,8L1,6L0,5Z"]


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
    theme = {"paper": [255, 255, 255], "1": [0, 0, 200], "2": [200, 100, 0]}
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


def test_an_explorer_must_have_an_alt_of_its_own():
    class Mute(Explorer):
        pass

    with pytest.raises(traitlets.TraitError, match="alt must be"):
        Mute()


def test_arrows_and_rings():
    cases = [[[0, 0], [30, 40], 10], [[5, -3], [5, 1], 10], [[200, 100], [80.5, 120.25], 13]]
    found = js.kit("return input.map((given) => arrowPath(...given));", cases)
    for (tail, tip, head), d in zip(cases, found, strict=True):
        points = np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", d)[1:]])
        np.testing.assert_allclose(points[[0, 1, 3]], [tail, tip, tip], atol=0.006)
        # both strokes of the arrowhead have the expected length, and form an angle of 0.45 radians with the line
        for end in points[[2, 4]]:
            back = complex(*(end - tip)) / complex(*np.subtract(tail, tip))
            assert abs(back) * math.dist(tail, tip) == pytest.approx(min(head, math.dist(tail, tip) / 2), abs=0.02)
            assert abs(math.atan2(back.imag, back.real)) == pytest.approx(0.45, abs=0.01)
    assert js.kit("return arrowPath([3, 3], [3, 3]);") == ""
    assert js.kit("return circlePath([5.5, 6], 2);") == "M3.5,6a2,2 0 1 0 4,0a2,2 0 1 0 -4,0"
    numbers = js.kit("return [-0.0004, -0.25, 1.23456, -1234.5].map((value) => exact(value));")
    assert numbers == ["0.000", "−0.250", "1.235", "−1234.500"]
    assert js.kit("return [exact(-2, 0), exact(7, 0)];") == ["−2", "7"]
    assert js.kit("return [lowered(1234567890), count(1, 'place'), count(0, 'place')];") == [
        "₁₂₃₄₅₆₇₈₉₀",
        "1 place",
        "0 places",
    ]
    assert js.kit("return lined('2', 1.5, 'opacity: 0.5').style;").endswith("; opacity: 0.5")


NAMED = """
  const measureText = (text) => ({ width: 7 * text.length });
  globalThis.document = { createElement: () => ({ getContext: () => ({ measureText }) }) };
  return namePlaces(input, [0, 0, 400, 200], taken, uprights);
"""
FREE = f"const [taken, uprights] = [[], []]; {NAMED}"


def test_a_name_is_beside_its_own_curve_and_hides_no_other():
    level = [[0, 100], [400, 100]]
    crowded = [[0, 100], [200, 100], [400, 20]]
    high, low, hidden = js.kit(
        FREE, [{"name": n, "points": p} for n, p in (("a", level), ("bb", crowded), ("", level))]
    )
    assert hidden is None, "a curve without a name only has to be kept clear"
    assert high["y"] in (100 - 4, 100 + 4 + 12)
    assert high["x"] > 200, "where the curves are apart"
    place = 100 - 80 * (low["x"] - 200) / 200
    assert low["x"] > 200
    assert low["y"] > place or low["y"] < place - 80 * low["width"] / 200


def test_a_name_avoids_other_curves_and_other_names():
    level, other = [[0, 100], [400, 100]], [[0, 20], [250, 95], [400, 99]]
    one, two, three = js.kit(
        FREE, [{"name": 6 * n, "points": p} for n, p in (("a", level), ("b", other), ("c", level))]
    )
    assert one["y"] == 100 + 4 + 12, "the other curve comes down on it from above"
    assert two["y"] < 100 - 4
    assert one["y"] != three["y"] or abs(one["x"] - three["x"]) > 42 + 8


def test_a_name_avoids_other_texts():
    level = [{"name": "level", "points": [[0, 100], [400, 100]]}]
    [free] = js.kit(FREE, level)
    text = {"x": free["x"] + 20, "y": 100, "width": 60}
    [aside] = js.kit(f"const [taken, uprights] = [[{json.dumps(text)}], []]; {NAMED}", level)
    assert aside["x"] + aside["width"] + 8 <= text["x"]
    assert abs(aside["y"] - 100) < 20, "it is still beside its curve"


def test_a_name_avoids_upright_lines():
    level = [{"name": "level", "points": [[0, 100], [400, 100]]}]
    [free] = js.kit(FREE, level)
    at = free["x"] + 20
    [aside] = js.kit(f"const [taken, uprights] = [[], [{at}]]; {NAMED}", level)
    assert aside["x"] + aside["width"] + 4 <= at
    assert abs(aside["y"] - 100) < 20, "it is still beside its curve"


def test_a_name_without_room_is_left_out():
    edge = [[0, 9], [400, 9]]
    long, below = js.kit(FREE, [{"name": name, "points": edge} for name in (60 * "m", "below")])
    assert long is None
    assert below["y"] == 9 + 4 + 12, "there is no room above"


def test_a_name_is_beside_a_steep_curve():
    [steep] = js.kit(FREE, [{"name": "steep", "points": [[0, 200], [200, 190], [240, 10], [400, 10]]}])
    assert steep["y"] <= 10 + 4 + 12
    [steep] = js.kit(FREE, [{"name": "steep", "points": [[0, 200], [100, 190], [140, 0]]}])
    across = 100 + 40 * (190 - steep["y"] + 4) / 190
    assert min(abs(steep["x"] - across), abs(steep["x"] + 35 - across)) < 16


def test_an_axis_has_the_finest_round_step_that_fits():
    sizes = [0.02, 0.07, 0.3, 1, 1.9, 4, 7, 12, 37, 90, 250]
    round_steps = sorted(factor * 10.0**power for factor in (1, 2, 5) for power in range(-4, 4))
    expected = [next(step for step in round_steps if 4 * step >= size * (1 - 1e-9)) for size in sizes]
    assert js.kit("return input.map((size) => stepOf(size, 4));", sizes) == pytest.approx(expected)
