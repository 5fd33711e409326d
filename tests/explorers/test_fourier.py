"""Tests specific to the Fourier explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from ropebook import derivation
from ropebook.explorers.fourier import Fourier
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import computed, oracle


@pytest.mark.parametrize("draw", [0, 4])
def test_the_curve_is_the_score_of_turned_vectors(draw):
    dim, base, peak, span = 12, 500.0, 30, 64
    found = computed(Fourier, dim=dim, base=base, peak=peak, span=span, distance=41, draw=draw)
    q = oracle(Fourier).query(draw, dim).numpy()
    z = q[0::2] + 1j * q[1::2]
    key = z * np.exp(1j * peak * theta(dim, base))
    at = np.arange(span * found["fine"] + 1) / found["fine"]
    products, ends = (
        np.array([(z * np.exp(1j * delta * theta(dim, base)) * key.conj()).real for delta in places])
        for places in (at, np.linspace(0, span, 721))
    )
    assert (found["fine"], found["shown"]) == (8, [0, 1, 2, 3, 4, 5])
    np.testing.assert_allclose(found["waves"], ends.T, atol=1e-11)
    np.testing.assert_allclose(found["total"], products.sum(-1), atol=1e-11)
    np.testing.assert_allclose(found["products"], products[41 * 8], atol=1e-11)
    np.testing.assert_allclose(found["size"], np.abs(z) ** 2, rtol=1e-12)
    np.testing.assert_allclose(found["wavelengths"], 2 * math.pi / theta(dim, base), rtol=1e-12)
    assert found["score"] == pytest.approx(products[41 * 8].sum(), abs=1e-11)
    # computed with rotation matrices, with the key at n and the query at n + Δ
    vectors = torch.tensor(q), derivation.rotate(torch.tensor(q), peak, base)
    for delta in (0, 17, 30, 64):
        score = derivation.score(*vectors, 5 + delta, 5, base).item()
        assert found["total"][8 * delta] == pytest.approx(score, abs=1e-10)


@pytest.mark.parametrize("peak", [0, 100, 777, 1000])
def test_the_score_is_highest_where_the_dial_puts_it(peak):
    found = computed(Fourier, peak=peak, distance=peak, span=1000, draw=7, dim=64)
    assert int(np.argmax(found["total"])) == peak * found["fine"]
    length = (oracle(Fourier).query(7, 64) ** 2).sum().item()
    assert found["score"] == pytest.approx(length, rel=1e-12)
    assert found["highest"] == pytest.approx(length, rel=1e-12)
    np.testing.assert_allclose(found["products"], found["size"], rtol=1e-10)


@pytest.mark.parametrize("summed", [1, 5, 16])
def test_the_first_pairs_are_summed(summed):
    found = computed(Fourier, summed=summed, draw=3)
    whole = computed(Fourier, draw=3)
    at = np.arange(401) / 2 - 100  # relative to the peak, whose value is 100
    waves = np.array(whole["size"])[:, None] * np.cos(np.outer(theta(32, 1e4), at))
    np.testing.assert_allclose(found["total"], waves[:summed].sum(0), atol=1e-12)
    assert found["score"] == pytest.approx(sum(whole["products"][:summed]), abs=1e-12)
    assert found["highest"] == pytest.approx(sum(whole["size"][:summed]), abs=1e-12)
    assert found["products"] == whole["products"]


def test_the_terms_of_the_sums():
    figure = Fourier(dim=6, peak=9, distance=4, span=16, draw=1, summed=2)
    terms, dials = oracle(type(figure)).terms(figure.dials()), figure.dials()
    a, b = (part.numpy() for part in oracle(Fourier).waves_of(dials))
    sizes, ends = (
        np.abs(a * np.cos(at)) + np.abs(b * np.sin(at))
        for at in (np.outer(np.linspace(0, 16, count), theta(6, 1e4)) for count in (16 * 32 + 1, 721))
    )
    np.testing.assert_allclose(terms["waves"], ends.T, atol=1e-12)
    np.testing.assert_allclose(terms["total"], sizes[:, :2].sum(-1), atol=1e-12)
    np.testing.assert_allclose(terms["products"], sizes[4 * 32], atol=1e-12)
    assert terms["score"] == pytest.approx(sizes[4 * 32, :2].sum(), abs=1e-12)


@pytest.mark.parametrize("span, fine", [(16, 32), (200, 2), (256, 2), (257, 1), (512, 1), (4096, 1)])
def test_short_ranges_are_sampled_between_whole_distances(span, fine):
    found = computed(Fourier, span=span, peak=0, distance=0)
    assert found["fine"] == fine
    assert len(found["total"]) == span * fine + 1
    assert {len(wave) for wave in found["waves"]} == {721}


@pytest.mark.parametrize(
    "pairs, shown", [(1, [0]), (16, [*range(16)]), (64, [*range(2, 64, 4)]), (256, [*range(8, 256, 16)])]
)
def test_which_pairs_are_drawn(pairs, shown):
    assert oracle(Fourier).rows(pairs) == shown == js.inside(Fourier, "return spread(input);", pairs)


@pytest.mark.parametrize("span", [16, 1000, 4096])
def test_the_outline_of_a_wave_is_the_line_or_the_band_that_it_fills(span):
    dials = Fourier(span=span, peak=round(0.3 * span), distance=0, dim=512, draw=3).dials()
    body = """
      const { waves, size, shown, wavelengths } = compute(input);
      const column = input.span / COLUMNS;
      return shown.map((i, k) => waveOutline(waves[k], size[i], input.peak / column, wavelengths[i] / column));
    """
    found = js.inside(Fourier, body, dials)
    size, period = (np.array(oracle(Fourier).compute(dials)[name]) for name in ("size", "wavelengths"))
    columns = period * 720 / span
    bands = 0
    for i, outline in zip(oracle(Fourier).rows(256), found, strict=True):
        at, low, high = (np.array(outline[name]) for name in ("at", "low", "high"))

        def wave(column, i=i):
            return size[i] * np.cos((column * span / 720 - dials["peak"]) * 2 * math.pi / period[i])

        if columns[i] < 16:
            bands += 1
            np.testing.assert_array_equal(at, np.arange(1, 720, 2))
            within = wave(at[:, None] + np.linspace(-1, 1, 4001))
            step = size[i] * math.pi * 1e-3 / columns[i]
            np.testing.assert_allclose(high, within.max(1), atol=step)
            np.testing.assert_allclose(low, within.min(1), atol=step)
            assert (high >= within.max(1) - 1e-9).all()  # no part of the wave lies outside the band
            assert (low <= within.min(1) + 1e-9).all()
        else:
            np.testing.assert_array_equal(low, high)
            np.testing.assert_allclose(high, wave(at), atol=1e-9)
            assert (at[0], at[-1]) == (0, 720)
            between = np.interp(np.arange(0, 720.1, 0.1), at, high)
            assert np.abs(between - wave(np.arange(0, 720.1, 0.1))).max() < 0.02 * size[i]
            assert len(at) <= 1 + 720 / max(1, columns[i] / 64) + 1
    assert bands == {16: 0, 1000: 2, 4096: 5}[span]


@pytest.mark.parametrize("count, pixels", [(513, 700), (700, 700), (4097, 700), (4097, 200)])
def test_the_outline_of_the_sum(count, pixels):
    values = np.random.default_rng(4).normal(size=count)
    found = js.inside(Fourier, "return outlineOf(Float64Array.from(input[0]), input[1]);", [values.tolist(), pixels])
    if count <= pixels:
        assert found == {"at": [*range(count)], "low": values.tolist(), "high": values.tolist()}
    else:
        parts = np.array_split(values, min(pixels, 360))
        assert len(found["at"]) == len(parts)
        for name, pick in (("low", np.min), ("high", np.max)):
            assert abs(np.sort(found[name]) - np.sort([pick(part) for part in parts])).mean() < 0.2
        assert (min(found["low"]), max(found["high"])) == (values.min(), values.max())
        assert np.all(np.diff(found["at"]) > 0)


def test_the_sum_in_words():
    cases = [
        Fourier(peak=1, distance=1, span=16, dim=4),
        Fourier(dim=4, peak=10, distance=13),
        Fourier(summed=1, dim=64),
        Fourier(base=1, peak=0, distance=200),
        Fourier(base=1, peak=0, distance=3),
        Fourier(dim=2, peak=0, distance=6),
        Fourier(dim=4, base=1, peak=0, distance=3),
    ]
    said = js.inside(Fourier, "return input.map((d) => describe(compute(d), d));", [case.dials() for case in cases])
    assert said[0] == "The key is the query rotated by 1 token, so every wave has a crest at Δ = 1."
    assert said[1].endswith("At Δ = 13, 1 of 2 pairs adds to the score, and 1 takes from it.")
    assert "rotated by 100 tokens" in said[2]
    assert said[2].endswith("At Δ = 60, the only pair in the sum takes from the score.")
    assert said[3].endswith("At Δ = 200, all 16 pairs add to the score.")
    assert said[4].endswith("At Δ = 3, all 16 pairs take from the score.")
    assert said[5].endswith("At Δ = 6, the only pair in the sum adds to the score.")
    assert said[6].endswith("At Δ = 3, both pairs take from the score.")
