"""The explorers of the chapters on the complex plane and on efficient rotation: JavaScript against Python, Python
against PyTorch and the formula, stills."""

from __future__ import annotations

import base64
import math
import random
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import traitlets

from ropebook import derivation, explorers
from ropebook.explorers import fourier, pairing, precision
from ropebook.explorers.fourier import Fourier
from ropebook.explorers.pairing import Pairing
from ropebook.explorers.precision import Precision
from ropebook.sinusoidal import encoding_all_in
from tests.explorers import js
from tests.test_explorers_sinusoidal import grey

ALL = [Fourier, Pairing, Precision]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"
HALVES = {"bfloat16": torch.bfloat16, "float16": torch.float16}
FLOATS = {"float64": torch.float64, "float32": torch.float32, **HALVES}


def run(explorer: type, body: str, value: object = None) -> object:
    return js.evaluate(explorer._esm, body, value)


def computed(explorer: type, **dials: object) -> dict:
    figure = explorer(**dials)
    return figure.compute(figure.dials())


def theta(dim: int, base: float) -> np.ndarray:
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


# ---- JavaScript and Python agree ----


def test_the_errors_agree_to_the_last_digits_of_float32():
    """A cosine of float32 is off by 3e-8, less than what the test above lets pass."""
    cases = [
        Precision(dtype="float32", rounded=rounded, first=first).dials()
        for rounded in precision.STAGES
        for first in (1, 5000)
    ]
    for dials, found in zip(cases, js.compute(Precision._esm, cases), strict=True):
        np.testing.assert_allclose(found["errors"], Precision.compute(dials)["errors"], atol=1e-11)
        assert 1e-8 < found["error"] < 1e-2


# ---- Fourier: the score, by turning vectors ----


@pytest.mark.parametrize("draw", [0, 4])
def test_the_curve_is_the_score_of_turned_vectors(draw):
    dim, base, peak, span = 12, 500.0, 30, 64
    found = computed(Fourier, dim=dim, base=base, peak=peak, span=span, distance=41, draw=draw)
    q = fourier.query(draw, dim).numpy()
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
    # the key at n, the query at n + Δ, by rotation matrices
    vectors = torch.tensor(q), derivation.rotate(torch.tensor(q), peak, base)
    for delta in (0, 17, 30, 64):
        score = derivation.score(*vectors, 5 + delta, 5, base).item()
        assert found["total"][8 * delta] == pytest.approx(score, abs=1e-10)


@pytest.mark.parametrize("peak", [0, 100, 777, 1000])
def test_the_score_is_highest_where_the_dial_puts_it(peak):
    found = computed(Fourier, peak=peak, distance=peak, span=1000, draw=7, dim=64)
    assert int(np.argmax(found["total"])) == peak * found["fine"]
    length = (fourier.query(7, 64) ** 2).sum().item()
    assert found["score"] == pytest.approx(length, rel=1e-12)
    assert found["highest"] == pytest.approx(length, rel=1e-12)
    np.testing.assert_allclose(found["products"], found["size"], rtol=1e-10)


@pytest.mark.parametrize("summed, used", [(1, 1), (5, 5), (16, 16), (17, 16), (256, 16)])
def test_the_first_pairs_are_summed(summed, used):
    found = computed(Fourier, summed=summed, draw=3)
    whole = computed(Fourier, draw=3)
    at = np.arange(401) / 2 - 100  # from the peak, which is at 100
    waves = np.array(whole["size"])[:, None] * np.cos(np.outer(theta(32, 1e4), at))
    np.testing.assert_allclose(found["total"], waves[:used].sum(0), atol=1e-12)
    assert found["score"] == pytest.approx(sum(whole["products"][:used]), abs=1e-12)
    assert found["highest"] == pytest.approx(sum(whole["size"][:used]), abs=1e-12)
    assert found["products"] == whole["products"]


def test_the_terms_of_the_sums():
    figure = Fourier(dim=6, peak=9, distance=4, span=16, draw=1, summed=2)
    terms, dials = figure.terms(figure.dials()), figure.dials()
    a, b = (part.numpy() for part in fourier.waves_of(dials))
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
    assert fourier.rows(pairs) == shown == run(Fourier, "return spread(input);", pairs)


@pytest.mark.parametrize("span", [16, 1000, 4096])
def test_the_outline_of_a_wave_is_the_line_or_the_band_that_it_fills(span):
    dials = Fourier(span=span, peak=round(0.3 * span), distance=0, dim=512, draw=3).dials()
    body = """
      const { waves, size, shown, wavelengths } = compute(input);
      const column = input.span / COLUMNS;
      return shown.map((i, k) => waveOutline(waves[k], size[i], input.peak / column, wavelengths[i] / column));
    """
    found = run(Fourier, body, dials)
    size, period = (np.array(Fourier.compute(dials)[name]) for name in ("size", "wavelengths"))
    columns = period * 720 / span
    bands = 0
    for i, outline in zip(fourier.rows(256), found, strict=True):
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
            assert (high >= within.max(1) - 1e-9).all()  # nothing of the wave is outside
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
    found = run(Fourier, "return sumOutline(Float64Array.from(input[0]), input[1]);", [values.tolist(), pixels])
    if count <= pixels:
        assert found == {"at": [*range(count)], "low": values.tolist(), "high": values.tolist()}
    else:
        parts = np.array_split(values, min(pixels, 360))
        assert len(found["at"]) == len(parts)
        for name, pick in (("low", np.min), ("high", np.max)):
            assert abs(np.sort(found[name]) - np.sort([pick(part) for part in parts])).mean() < 0.2
        assert (min(found["low"]), max(found["high"])) == (values.min(), values.max())
        assert np.all(np.diff(found["at"]) > 0)


def test_peak_and_distance_stay_within_the_span():
    figure = Fourier(span=300, peak=300, distance=299)
    figure.span = 300
    assert (figure.peak, figure.distance) == (300, 299)
    figure.span = 299
    assert (figure.peak, figure.distance) == (299, 299)
    figure.span = 20
    assert (figure.peak, figure.distance) == (20, 20)
    for name in ("peak", "distance"):
        with pytest.raises(traitlets.TraitError, match=f"{name} must be .* <= 20, for span is 20, got 21"):
            setattr(figure, name, 21)
    figure.set_state({"peak": 99, "span": 100})  # what arrives from the page, in either order
    assert (figure.span, figure.peak) == (100, 99)
    spied = Fourier._esm.replace("export default explorer(", "export default ((spec) => (globalThis.spec = spec))(")
    main = "import e from './e.mjs'; console.log(JSON.stringify(spec.settle({ span: 20, peak: 21, distance: 30 })));"
    assert js._run({"e.mjs": spied, "main.mjs": main}, None) == {"span": 20, "peak": 20, "distance": 20}


# ---- Pairing: against the rotation in PyTorch itself ----


def onnx_scores(q: torch.Tensor, k: torch.Tensor, m: int, interleaved: bool) -> np.ndarray:
    angles = torch.outer(torch.arange(65.0), torch.tensor(theta(len(q), 1e4), dtype=torch.float32))

    def turned(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        x = x.float().expand(1, 1, len(positions), -1)
        places = positions[None]
        return torch.onnx.ops.rotary_embedding(x, angles.cos(), angles.sin(), places, interleaved=interleaved)[0, 0]

    return (turned(k, torch.arange(65)) @ turned(q, torch.tensor([m]))[0]).numpy()


@pytest.mark.parametrize("dim", [4, 10, 32])
@pytest.mark.parametrize("layout", ["interleaved", "half"])
@pytest.mark.parametrize("permute_q", [False, True])
@pytest.mark.parametrize("permute_k", [False, True])
def test_scores_agree_only_if_q_k_and_the_rotation_do(dim, layout, permute_q, permute_k):
    m, n = 23, 8
    found = computed(Pairing, dim=dim, pairing=layout, permute_q=permute_q, permute_k=permute_k, m=m, n=n)
    halves = [*range(0, dim, 2), *range(1, dim, 2)]
    orders = [halves if permute else list(range(dim)) for permute in (permute_q, permute_k)]
    assert [found["qChannels"], found["kChannels"]] == orders
    q, k = pairing.vectors(dim)
    stored = [vector[order] for vector, order in zip((q, k), orders, strict=True)]
    assert [found["q"], found["k"]] == [vector.tolist() for vector in stored]
    expected = onnx_scores(*stored, m, layout == "interleaved")
    np.testing.assert_allclose(found["scores"], expected, atol=1e-4)
    np.testing.assert_allclose(found["references"], onnx_scores(q, k, m, True), atol=1e-4)
    assert (found["score"], found["reference"]) == (found["scores"][n], found["references"][n])
    gaps = np.abs(np.subtract(found["scores"], found["references"]))
    assert found["difference"] == gaps.max()
    agree = permute_q == permute_k == (layout == "half")
    assert (gaps.max() < 1e-12) == agree
    if not agree:
        assert gaps.max() > 1
    # at n = m the rotations cancel: only what is multiplied with what counts
    assert (gaps[m] < 1e-12) == (permute_q == permute_k)


def test_the_terms_of_a_score():
    figure = Pairing(dim=6)
    terms = figure.terms(figure.dials())
    q, k = pairing.vectors(6)
    assert terms["score"] == terms["difference"] == pytest.approx((q.norm() * k.norm()).item())
    assert terms["q"] == q[[0, 2, 4, 1, 3, 5]].abs().tolist()
    assert [terms[name] for name in ("qChannels", "kChannels", "links")] == [0, 0, 0]


# ---- Precision: bit by bit as PyTorch rounds ----


def awkward_numbers(dtype: torch.dtype) -> list[float]:
    """Numbers of the type, the ties between neighbours, what lies just beside them, the ends of the range, and less."""
    source = torch.Generator().manual_seed(3)
    bits = torch.randint(-(2**15), 2**15, (400,), generator=source).to(torch.int16)
    numbers = bits.view(dtype).double()
    numbers = numbers[numbers.isfinite()]
    above = torch.nextafter(numbers.to(dtype), torch.tensor(math.inf, dtype=dtype)).double()
    ties = ((numbers + above) / 2)[above.isfinite()]
    tiny, largest = torch.finfo(dtype).smallest_normal, torch.finfo(dtype).max
    ends = [largest, largest * (1 + 2**-12), largest * (1 + 2**-9), largest * (1 + 2**-8), largest * 2, 65519.9, 65520]
    small = [tiny, tiny / 3, tiny / 2**7, tiny / 2**10, tiny / 2**11, tiny / 2**11 * 1.0001, 0.0]
    spread = torch.randn(400, generator=source, dtype=torch.float64) * 10 ** torch.linspace(-9, 6, 400)
    exact = [*numbers.tolist(), *ties.tolist(), *ends, *small, *spread.tolist()]
    beside = [x * (1 + e) for x in ties.tolist() for e in (2**-20, -(2**-20), 2**-40, -(2**-40))]
    return [sign * x for sign in (1, -1) for x in [*exact, *beside]]


@pytest.mark.parametrize("name", ["bfloat16", "float16", "float32"])
def test_numbers_are_rounded_as_torch_rounds_them(name):
    values = awkward_numbers(HALVES.get(name, torch.bfloat16))
    found = run(Precision, f"return input.map((value) => String(ROUND.{name}(value)));", values)
    expected = torch.tensor(values, dtype=torch.float64).to(FLOATS[name]).double().tolist()
    wrong = [(v, f, e) for v, f, e in zip(values, found, expected, strict=True) if float(f.replace("I", "i")) != e]
    assert wrong == []
    if name in HALVES:
        special = run(Precision, f"return [NaN, Infinity, -Infinity].map((value) => String(ROUND.{name}(value)));")
        assert special == ["NaN", "Infinity", "-Infinity"]


@pytest.mark.parametrize("name", list(FLOATS))
def test_products_are_rounded_as_torch_multiplies(name):
    source = random.Random(2)
    pairs = [(source.randrange(1, 60_000), 10 ** source.uniform(-5, 0)) for _ in range(500)]
    body = f"const round = ROUND.{name}; return input.map(([a, b]) => round(round(a) * round(b)));"
    a, b = (torch.tensor(column, dtype=torch.float64).to(FLOATS[name]) for column in zip(*pairs, strict=True))
    assert run(Precision, body, pairs) == (a * b).double().tolist()


@pytest.mark.parametrize("first", [1, 300, 4090])
@pytest.mark.parametrize("name", list(FLOATS))
def test_everything_rounded_is_torch_in_that_type(name, first):
    """`encoding_all_in` takes cosine and sine in the type itself: one unit in the last place more, at most."""
    found = computed(Precision, dtype=name, rounded="everything", first=first, count=40, dim=16)
    expected = encoding_all_in(torch.arange(first, first + 40), 16, dtype=FLOATS[name]).double()
    cells = np.reshape(found["cells"], (40, 16))
    last = torch.finfo(FLOATS[name]).eps / 2
    np.testing.assert_allclose(cells[:, :8], expected[:, 1::2], atol=last)
    np.testing.assert_allclose(cells[:, 8:], expected[:, 0::2], atol=last)


@pytest.mark.parametrize("name", list(FLOATS))
@pytest.mark.parametrize("rounded", precision.STAGES[:3])
def test_what_is_rounded_before_the_result(name, rounded):
    first, dim, dtype = 1000, 10, FLOATS[name]
    found = computed(Precision, dtype=name, rounded=rounded, first=first, count=30, dim=dim)
    positions, frequencies = np.arange(first, first + 30.0), theta(dim, 1e4)
    if rounded == "positions":
        positions = torch.tensor(positions).to(dtype).double().numpy()
    if rounded == "frequencies":
        frequencies = torch.tensor(frequencies).to(dtype).double().numpy()
    angle = np.outer(positions, frequencies)
    cells = torch.tensor(np.concatenate([np.cos(angle), np.sin(angle)], -1)).to(dtype).double()
    np.testing.assert_allclose(np.reshape(found["cells"], (30, 10)), cells, atol=1e-12)
    true = np.outer(np.arange(first, first + 30), theta(dim, 1e4))
    exact = np.concatenate([np.cos(true), np.sin(true)], -1)
    np.testing.assert_allclose(np.reshape(found["exact"], (30, 10)), exact, atol=1e-12)
    errors = np.abs(cells.numpy() - exact)[:, :5].max(-1)
    np.testing.assert_allclose(found["errors"], errors, atol=1e-12)
    assert found["error"] == max(found["errors"])
    assert found["used"] == positions.tolist()
    changed = [any(row != before) for row, before in zip(cells[1:].numpy(), cells.numpy(), strict=False)]
    assert found["fresh"] == [1, *changed]
    assert found["different"] == 1 + sum(changed)


@pytest.mark.parametrize(
    "name, first, different", [("bfloat16", 129, 64), ("bfloat16", 256, 33), ("bfloat16", 512, 17),
                               ("float16", 1900, 64), ("float16", 2048, 33), ("float32", 10**7, 64)],
)  # fmt: skip
def test_neighbours_merge_where_the_type_runs_out_of_digits(name, first, different):
    for rounded in ("positions", "everything"):
        assert computed(Precision, dtype=name, rounded=rounded, first=first)["different"] == different
    for rounded in ("result", "frequencies"):
        assert computed(Precision, dtype=name, rounded=rounded, first=first)["different"] == 64


def test_rounding_only_the_result_is_harmless_and_flat():
    for first in (1, 1000, 10**6):
        assert computed(Precision, rounded="result", first=first)["error"] <= 2**-9 + 2**-25
        assert computed(Precision, rounded="everything", first=max(first, 300))["error"] > 0.5


def test_positions_that_float16_cannot_hold_are_lost():
    for rounded, lost in [("positions", 20), ("everything", 20), ("result", 0), ("frequencies", 0)]:
        found = computed(Precision, dtype="float16", rounded=rounded, first=65_500, count=40, dim=4)
        assert found["lost"] == lost  # from 65520 on
        if lost:
            assert found["used"] == [65504.0] * 20 + [0] * 20
            assert found["cells"][80:] == [0] * 80
            assert found["errors"][20:] == [0] * 20
            assert found["fresh"] == [1] + [0] * 19 + [1] + [0] * 19
            assert found["different"] == 2
    assert computed(Precision, dtype="bfloat16", rounded="positions", first=65_500)["lost"] == 0
    gone = computed(Precision, dtype="float16", rounded="positions", first=70_000)
    assert (gone["lost"], gone["different"], gone["error"]) == (64, 1, 0)


# ---- Traits ----

BAD = [
    (Fourier, {"peak": -1}, "peak must be an integer >= 0 and <= 4096, got -1"),
    (Fourier, {"peak": 201}, "peak must be an integer >= 0 and <= 200, for span is 200, got 201"),
    (Fourier, {"distance": 4097}, "distance must be an integer >= 0 and <= 4096, got 4097"),
    (Fourier, {"span": 15}, "span must be an integer >= 16 and <= 4096, got 15"),
    (Fourier, {"base": 0.5}, "base must be a finite number >= 1.0 and <= 10000000.0, got 0.5"),
    (Fourier, {"dim": 7}, "dim must be an even integer >= 2 and <= 512, got 7"),
    (Fourier, {"summed": 0}, "summed must be an integer >= 1 and <= 256, got 0"),
    (Fourier, {"draw": 21}, "draw must be an integer >= 0 and <= 20, got 21"),
    (Pairing, {"dim": 2}, "dim must be an integer >= 4 and <= 32, got 2"),
    (Pairing, {"dim": 9}, "dim must be an even integer >= 4 and <= 32, got 9"),
    (Pairing, {"pairing": "split"}, "pairing must be one of 'interleaved', 'half', got 'split'"),
    (Pairing, {"permute_q": 1}, "permute_q must be True or False, got 1"),
    (Pairing, {"m": 65}, "m must be an integer >= 0 and <= 64, got 65"),
    (Pairing, {"n": 1.5}, "n must be an integer >= 0 and <= 64, got 1.5"),
    (Precision, {"dtype": "float8"}, "dtype must be one of .*'bfloat16', 'float16', got 'float8'"),
    (Precision, {"rounded": "angles"}, "rounded must be one of 'result', .*, got 'angles'"),
    (Precision, {"first": -1}, "first must be an integer >= 0 and <= 10000000, got -1"),
    (Precision, {"count": 129}, "count must be an integer >= 8 and <= 128, got 129"),
    (Precision, {"base": float("nan")}, "base must be a finite number .*, got nan"),
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


# ---- In words ----


def test_the_sum_in_words():
    cases = [
        Fourier(peak=1, distance=1, span=16, dim=4),
        Fourier(dim=4, peak=10, distance=13),
        Fourier(summed=1, dim=64),
    ]
    said = run(Fourier, "return input.map((d) => describe(compute(d), d));", [case.dials() for case in cases])
    assert said[0] == (
        "The key is the query turned by 1 place: at Δ = 1 every wave has its crest, and the score is as high as it can "
        "be, 4.00. Here nothing is taken away: every pair adds all it has."
    )
    assert said[1].endswith("At Δ = 13, 1 of 2 pairs adds 2.00, 1 takes 1.98 away, and 0.0191 is left.")
    assert "turned by 100 places" in said[2]
    assert "At Δ = 60, 0 of 1 pairs add 0, 1 takes 1.33 away, and −1.33 is left." in said[2]


def test_the_orders_in_words():
    kinds = [(q, k, layout) for q in (False, True) for k in (False, True) for layout in ("interleaved", "half")]
    cases = [Pairing(permute_q=q, permute_k=k, pairing=layout).dials() for q, k, layout in kinds]
    said = dict(zip(kinds, run(Pairing, "return input.map((d) => describe(compute(d), d));", cases), strict=True))
    for (q, k, layout), text in said.items():
        if q != k:
            assert text.startswith(f"Only {'q' if q else 'k'} is permuted")
        elif q == (layout == "half"):
            stored = "half-split" if q else "interleaved"
            assert text.startswith(f"q and k are both stored {stored}, and the rotation takes its pairs so")
        else:
            stored, taken = ("half-split", "interleaved") if q else ("interleaved", "half-split")
            assert text.startswith(f"q and k are both stored {stored}, but the rotation takes {taken} pairs")


def test_rounding_in_words():
    cases = [
        Precision(rounded="result"),
        Precision(),
        Precision(dtype="float16", first=65_500, rounded="positions"),
        Precision(dtype="float16", first=70_000, rounded="positions"),
        Precision(dtype="float32", first=3000, rounded="frequencies"),
    ]
    said = run(Precision, "return input.map((d) => describe(compute(d), d));", [case.dials() for case in cases])
    assert said[0] == (
        "Every position has a row of its own. The largest error of a cosine is 0.00195. Only the finished cosine is "
        "rounded, and so it is the same at every position."
    )
    assert said[1].startswith("64 neighbouring positions share 12 rows. The largest error of a cosine is 1.9")
    assert said[1].endswith(", nearly as much as can be. Near 1063 the numbers of bfloat16 are 8 apart.")
    assert said[2].startswith(
        "20 neighbouring positions share 1 row. From position 65520 on, float16 has no number but"
    )
    assert said[3].startswith(
        "From position 70000 on, float16 has no number but infinity, and a cosine of that is not a"
    )
    assert "error of a cosine is" not in said[3]
    assert said[4].startswith("Every position has a row of its own.")
    assert said[4].endswith("The error of θᵢ is multiplied by the position: it grows with it.")


def test_how_far_apart_numbers_are():
    cases = {("bfloat16", 1063): "8", ("bfloat16", 256): "2", ("bfloat16", 255): "1", ("float16", 2048): "2",
             ("float16", 2047): "1", ("float32", 10**7): "1", ("float64", 4): "8.9 × 10⁻¹⁶"}  # fmt: skip
    for (dtype, position), words in cases.items():
        assert run(Precision, "return spacing(...input);", [dtype, position]) == words
        at = torch.tensor(float(position), dtype=FLOATS[dtype])
        gap = (torch.nextafter(at, torch.tensor(math.inf, dtype=at.dtype)).double() - at.double()).item()
        assert gap == pytest.approx(float(words.replace(" × 10⁻¹⁶", "e-16")), rel=0.01)


# ---- Stills ----


def drawing(figure: explorers.Explorer) -> ElementTree.Element:
    root = ElementTree.fromstring(figure.still())
    assert (root.get("role"), root.get("aria-label")) == ("img", figure.alt)
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def colour_of(mark: ElementTree.Element) -> str:
    return re.search(r"--fig-(\w+)", mark.get("style"))[1]


def numbers(path: str) -> np.ndarray:
    return np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", path)[1:]])


@pytest.mark.parametrize(
    "figure",
    [
        Fourier(),
        Fourier(dim=512, span=4096, draw=5),
        Pairing(),
        Pairing(dim=32, permute_k=True),
        Precision(),
        Precision(dim=512, count=128),
    ],
    ids=repr,
)
def test_a_still_is_one_small_drawing_in_the_pages_colours(figure):
    root = drawing(figure)
    for mark in root:
        assert re.search(r"(fill|stroke):var\(--fig-\w+, #[0-9a-f]{6}\)", mark.get("style"))
    assert "\n" not in figure.still()
    assert len(figure.still()) < 80_000
    width = float(root.get("width"))
    for mark in root.iter(f"{SVG}text"):  # a letter is about 7 wide
        x, long = float(mark.get("x")), 6.2 * len(mark.text)
        start = {"start": x, "middle": x - long / 2, "end": x - long}[mark.get("text-anchor")]
        assert start >= -12
        assert start + long <= width + 12, mark.text


def test_the_still_of_the_sum():
    figure = Fourier(peak=50, distance=20, span=80, dim=8, base=50, draw=2)
    data, root = figure.compute(figure.dials()), drawing(figure)
    rects = list(root.iter(f"{SVG}rect"))
    assert [colour_of(bar) for bar in rects] == ["neg" if one < 0 else "pos" for one in data["products"]]
    unit = 220 / (sum(data["size"]) - min([*data["total"], *np.cumsum(data["products"]), -sum(data["size"]) / 4]))
    widths = [float(bar.get("width")) for bar in rects]
    assert widths == pytest.approx([unit * abs(one) for one in data["products"]], rel=1e-4)
    edge = 0.0  # each bar begins where the one before it ended
    first = float(rects[0].get("x")) + (widths[0] if data["products"][0] < 0 else 0)
    for bar, product in zip(rects, data["products"], strict=True):
        assert float(bar.get("x")) == pytest.approx(first + unit * (edge + min(0, product)), abs=1e-2)
        edge += product
    lines = [mark for mark in root.iter(f"{SVG}path") if colour_of(mark) == "1" and "fill:none" in mark.get("style")]
    assert len(lines) == 5
    pitch, tallest = 288 / 4, max(data["size"])
    for k, line in enumerate(lines[:4]):
        points = numbers(line.get("d"))
        at = (points[:, 0] - 54) / 416 * 80
        wave = data["size"][k] * np.cos((at - 50) * theta(8, 50)[k])
        drawn = (64 + (k + 0.5) * pitch - points[:, 1]) / (pitch / 2 - 2) * tallest
        np.testing.assert_allclose(drawn, wave, atol=0.05 * tallest)
    assert f"= {data['score']:.2f}".replace("-", "−") in texts(root)
    assert f"of {data['highest']:.2f} at the peak" in texts(root)
    assert "Every crest at Δ = 50" in texts(root)
    assert [text for text in texts(root) if text.isdigit() and int(text) in (0, 20, 50, 80)] == ["20", "50", "0", "80"]
    few = drawing(Fourier(summed=2, dim=8, peak=100, distance=101))
    grey_lines = [mark for mark in few.iter(f"{SVG}path") if colour_of(mark) == "grid" and "L" in mark.get("d")]
    assert sum("stroke-width:1.5" in mark.get("style") for mark in grey_lines) == 2
    assert len(list(few.iter(f"{SVG}rect"))) == 2
    assert len(list(few.iter(f"{SVG}circle"))) == 3
    assert "The score: the sum of 2 of 4" in texts(few)
    assert "100" not in texts(few)  # it would stand on 101
    assert "16 of 64 pairs. Every crest at Δ = 100" in texts(drawing(Fourier(dim=128)))


def test_too_many_waves_for_a_line_are_a_band():
    values = np.cos(np.arange(1200.0))
    points, closed = fourier.outline(values, 2 * math.pi)
    assert closed
    parts = np.array_split(values, 60)
    assert [value for _, value in points[:60]] == [part.max() for part in parts]
    assert [value for _, value in points[:59:-1]] == [part.min() for part in parts]
    assert [place for place, _ in points[:60]] == [9.5 + 20 * k for k in range(60)]
    area, line = fourier.drawn(points, closed, "1")
    assert "fill-opacity:0.4" in area
    assert "stroke-width:1.5" in line
    points, closed = fourier.outline(values[:200], 2 * math.pi)
    assert not closed
    assert points[0] == (0, 1)
    assert points[-1][0] == 199
    assert len(points) == 200
    assert len(fourier.drawn(points, closed, "1")) == 1


def test_the_still_of_the_pairs():
    figure = Pairing(dim=8)  # q permuted, k not, the rotation in halves
    root = drawing(figure)
    curved = [mark for mark in root.iter(f"{SVG}path") if "C" in mark.get("d")]
    assert [colour_of(mark) for mark in curved] == ["1", "2", "3", "4"] + ["muted"] * 4
    ends = [[float(n) for n in re.findall(r"[\d.]+(?=,)", mark.get("d"))] for mark in curved]
    assert [(x[0], x[-1]) for x in ends] == [(48 + 44 * i, 48 + 44 * (i + 4)) for i in range(4)] * 2
    upright = [mark for mark in root.iter(f"{SVG}path") if re.fullmatch(r"M[\d.]+,134V184", mark.get("d"))]
    assert [colour_of(mark) for mark in upright] == ["1"] + ["muted"] * 6 + ["4"]
    cells = [text for text in texts(root) if text.isdigit()][:16]
    assert cells == [*"02461357", *"01234567"]
    fills = [colour_of(mark) for mark in root.iter(f"{SVG}rect")]
    assert fills == ["1", "2", "3", "4"] * 2 + ["1", "1", "2", "2", "3", "3", "4", "4"]
    data = figure.compute(figure.dials())
    [now] = [mark for mark in root.iter(f"{SVG}path") if colour_of(mark) == "1" and mark.get("d").count("L") == 64]
    reach = max(map(abs, data["scores"] + data["references"]))
    points = numbers(now.get("d"))
    np.testing.assert_allclose(points[:, 0], 470 + np.arange(65) / 64 * 250, atol=0.051)
    np.testing.assert_allclose((170 - points[:, 1]) / 90 * reach, data["scores"], atol=0.01)
    wide = drawing(Pairing(dim=32))
    assert [text for text in texts(wide) if text.isdigit()] == ["0", "16", "32", "48", "64"]  # no room in the cells
    assert len(re.findall("Arcs: pairs of the interleaved", Pairing(pairing="interleaved").still())) == 1


def shown_cells(root: ElementTree.Element) -> list[np.ndarray]:
    """The pictures, from their two masked layers: −15 … 15."""
    levels = []
    for group in root.iter(f"{SVG}g"):
        png = base64.b64decode(group[0][0].get("href").removeprefix("data:image/png;base64,"))
        levels.append((1 if colour_of(group) == "pos" else -1) * grey(png).astype(int))
    return [sum(levels[k : k + 2]) for k in range(0, len(levels), 2)]


def test_the_still_of_the_tables():
    figure = Precision(first=1000, count=32, dim=8)
    data, root = figure.compute(figure.dials()), drawing(figure)
    for cells, name in zip(shown_cells(root), ("exact", "cells"), strict=True):
        np.testing.assert_array_equal(cells, np.rint(15 * np.reshape(data[name], (32, 8))))
    found = texts(root)
    assert f"{data['different']} different rows of 32" in found
    assert "bfloat16" in found
    assert "rounded: everything" in found
    starts = [1000 + row for row, fresh in enumerate(data["fresh"]) if fresh]
    pairs = [text for text in found if text.isdigit() and int(text) > 900]
    assert pairs[0::2] == [str(start) for start in starts if str(start) in pairs[0::2]]
    assert [int(used) for used in pairs[1::2]] == [data["used"][int(start) - 1000] for start in pairs[0::2]]
    [edge] = [mark.get("d") for mark in root.iter(f"{SVG}path") if colour_of(mark) == "neg"]
    ends = [float(n) for n in re.findall(r"H([\d.]+)V", edge)]
    expected = [622 + math.log(error / 1e-9) / math.log(2e9) * 108 for error in data["errors"]]
    assert ends == pytest.approx(expected, abs=0.06)
    lost = drawing(Precision(dtype="float16", rounded="positions", first=65_510, count=16, dim=8))
    assert "not a number" in texts(lost)
    assert [cells.shape for cells in shown_cells(lost)] == [(16, 8), (10, 8)]
    gone = drawing(Precision(dtype="float16", rounded="positions", first=70_000))
    assert len(shown_cells(gone)) == 1
    exact = drawing(Precision(dtype="float64", rounded="result"))
    assert {float(n) for n in re.findall(r"H([\d.]+)V", next(
        mark.get("d") for mark in exact.iter(f"{SVG}path") if colour_of(mark) == "neg"))} == {622.0}  # fmt: skip
