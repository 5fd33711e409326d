"""The explorers of chapter *Long-range decay*: JavaScript against Python, Python against the formula, stills."""

from __future__ import annotations

import cmath
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import traitlets

from ropebook import decay
from ropebook.explorers import distance, draws, still, sweep
from ropebook.explorers.bank import Bank
from ropebook.explorers.distance import Distance
from ropebook.explorers.sweep import Sweep
from tests.explorers import js

ALL = [Distance, Sweep, Bank]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"


def inside(explorer: type, body: str, value: object = None) -> object:
    return js.evaluate(explorer._esm, body, value)


def theta(dim: int, base: float) -> np.ndarray:
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


def cosines(distances: object, dim: int, base: float) -> np.ndarray:
    """The mean of cos Δθ_i at each distance, by the formula."""
    return np.cos(np.multiply.outer(np.array(distances), theta(dim, base))).mean(-1)


# ---- JavaScript and Python agree ----


def test_the_buttons_have_the_figures_and_the_models_of_the_module():
    figures = {(figure.dim, figure.length) for figure in decay.FIGURES}
    found = [(one["dim"], one["length"]) for one in inside(Distance, "return FIGURES;")]
    assert len(found) == 6
    assert set(found) == figures
    models = [[model.name, model.dim, model.base, model.context] for model in decay.MODELS]
    assert inside(Bank, "return MODELS;") == models


# ---- The score against distance ----


def scores_by_turning(dials: dict, keys: np.ndarray) -> np.ndarray:
    """Query and key turned as complex numbers by their own positions: Re Σ q e^{imθ} conj(k e^{inθ})."""
    dim, draw = dials["dim"], dials["draw"]
    entries = {
        "ones": np.ones((2, dim)),
        "same": [draws.normals(f"distance query {draw}", dim)] * 2,
        "random": [draws.normals(f"distance {name} {draw}", dim) for name in ("query", "key")],
        "slow": np.arange(dim) >= dim // 4 * 2 + np.zeros((2, 1)),
    }[dials["vectors"]]
    q, k = (np.array(one)[0::2] + 1j * np.array(one)[1::2] for one in entries)
    turns = theta(dim, dials["base"])
    turned = k * np.exp(1j * np.multiply.outer(keys, turns))
    return (q * np.exp(1j * dials["query"] * turns) * turned.conj()).real.sum(-1)


@pytest.mark.parametrize("vectors", distance.VECTORS)
@pytest.mark.parametrize("dim, query, length", [(64, 100, 300), (6, 0, 41), (2, 3, 4)])
def test_every_score_of_a_short_text(vectors, dim, query, length):
    dials = {**Distance().dials(), "dim": dim, "query": query, "length": length, "vectors": vectors, "draw": 4}
    found = Distance.compute(dials)
    scores = scores_by_turning(dials, np.arange(length))
    np.testing.assert_allclose(found["low"], scores, atol=1e-10)
    assert found["low"] == found["high"]
    assert (found["per"], found["reach"]) == (1, length)
    assert found["home"] == pytest.approx(scores[query], abs=1e-10)
    assert found["least"] == pytest.approx(scores.min(), abs=1e-10)
    assert scores[found["leastAt"]] == pytest.approx(scores.min(), abs=1e-8)
    away = np.abs(np.arange(length) - query)
    negative = away[scores < -1e-12]
    assert (found["negativeAt"] >= 0) == bool(len(negative))
    if len(negative):
        assert away[found["negativeAt"]] == negative.min()
    maxima = [scores[n - 1] < scores[n] >= scores[n + 1] for n in range(1, length - 1)]
    assert found["maxima"] == sum(maxima)


@pytest.mark.parametrize(
    "dim, length, least, least_at, negative",
    [
        (256, 512, 49.7, 509, -1),
        (16, 512, -4.09, 286, 91),
        (8, 512, -3.88, 286, 91),
        (256, 65536, -50.8, 17815, 2653),
    ],
)
def test_the_figures_of_the_study_note(dim, length, least, least_at, negative):
    """Found by walking along the whole curve; the mirrored figure has the query at 256."""
    dials = {**Distance().dials(), "dim": dim, "query": 0, "length": length}
    found = Distance.compute(dials)
    assert found["least"] == pytest.approx(least, abs=0.05)
    assert found["negativeAt"] == negative
    assert found["leastAt"] == least_at
    assert found["home"] == dim
    mirrored = Distance.compute({**dials, "query": 256})
    assert mirrored["negativeAt"] == {-1: -1, 91: 256 - 91, 2653: 256 + 2653}[negative]


def test_the_maxima_are_those_of_the_curve():
    dials = {**Distance().dials(), "dim": 8, "query": 0, "length": 4096}
    found = Distance.compute(dials)["maxima"]
    assert found == decay.summarize(lambda at: decay.distance_kernel(at, 8), 4096).local_maxima


@pytest.mark.parametrize("length", [4097, 65536, 1_000_000])
@pytest.mark.parametrize("share", [0, 0.3, 1])
def test_which_keys_of_a_long_text_are_looked_at(length, share):
    query = round(share * (length - 1))
    keys, per, reach = (np.asarray(one) for one in distance.sampled_keys(query, length))
    assert len(keys) <= 3072 + 4096
    assert keys.min() == 0
    assert keys.max() < length
    columns = math.ceil(length / per)
    assert columns <= 512
    assert set(keys // per) == set(range(columns))
    looked_at = set(keys.tolist())
    near = {key for key in range(max(0, query - reach + 1), min(length, query + reach))}
    assert near <= looked_at
    edge = {query - int(reach), query + int(reach)} & set(range(length))
    assert edge
    assert not edge <= set(keys[:3072].tolist())
    gaps = np.diff(np.sort(keys[3072:][keys[3072:] < per]))
    assert len(set(gaps.tolist())) > 1  # uneven: a wave of the samples' period does not look flat


def test_the_band_of_samples_is_within_the_band_of_all_scores():
    dials = {**Distance().dials(), "dim": 32, "query": 9000, "length": 20_000, "vectors": "random"}
    found = Distance.compute(dials)
    per = found["per"]
    assert (per, len(found["low"]), found["maxima"]) == (40, 500, -1)
    scores = scores_by_turning(dials, np.arange(20_000)).reshape(500, 40)
    low, high = np.array(found["low"]), np.array(found["high"])
    assert (low >= scores.min(1) - 1e-9).all()
    assert (high <= scores.max(1) + 1e-9).all()
    whole = slice(9000 // per - 30, 9000 // per + 30)  # near the query nothing is left out
    np.testing.assert_allclose(low[whole], scores.min(1)[whole], atol=1e-9)
    np.testing.assert_allclose(high[whole], scores.max(1)[whole], atol=1e-9)
    assert ((high - low) / np.ptp(scores, axis=1)).mean() > 0.6
    assert found["least"] == min(found["low"])


def test_a_single_fast_wave_fills_the_band_to_both_edges():
    """What a line through evenly spaced samples would not do: every column has crests and troughs."""
    found = Distance.compute({**Distance().dials(), "dim": 2, "query": 0, "length": 1_000_000})
    assert np.mean(np.multiply(found["low"], found["high"]) < 0) > 0.995
    assert np.mean(found["high"]) > 1.7
    assert np.mean(found["low"]) < -1.7


def test_equal_vectors_are_alike_on_both_sides_and_random_ones_are_not():
    for vectors, alike in (("ones", True), ("same", True), ("slow", True), ("random", False)):
        found = Distance.compute({**Distance().dials(), "query": 200, "length": 401, "vectors": vectors})["low"]
        difference = np.abs(np.array(found) - found[::-1]).max()
        assert difference < 1e-9 if alike else difference > 10, vectors


def test_of_equals_the_nearest_and_of_two_as_near_the_earlier():
    alike = {**Distance().dials(), "dim": 16, "query": 256, "length": 513}
    both = [Distance.compute(alike), *js.compute(Distance._esm, [alike])]
    for found in both:
        assert found["leastAt"] < 256
        assert found["negativeAt"] == 256 - 91
    assert distance.nearest(distance.torch.tensor([]), 3) == -1


@pytest.mark.parametrize("vectors, swing", [("ones", 8.0), ("slow", 32**0.5)])
def test_the_swing_is_the_root_mean_square_far_away(vectors, swing):
    dials = {**Distance().dials(), "dim": 64, "base": 100.0, "query": 0, "length": 2, "vectors": vectors}
    assert Distance.compute(dials)["swing"] == pytest.approx(swing)
    far = scores_by_turning(dials, np.arange(50_000, 250_000, 7))
    assert np.sqrt(np.mean(far**2)) == pytest.approx(swing, rel=0.05)


# ---- One base after the other ----


def test_the_recorded_sweep():
    """Half-distance and first negative distance of ten bases at dim 128, found by walking along the curves."""
    halves = [2, 2, 3, 5, 12, 16, 46, 102, 197, 449]
    negative = [2, 3, 5, 59, 171, 361, 1707, -1, -1, -1]
    means = [0, 0, 0, 0, 0, -0.006, 0.136, 0.307, 0.419, 0.503]
    found = [Sweep.compute({"base": base, "dim": 128, "length": 4096}) for base in decay.BASES]
    assert [one["belowHalf"] for one in found] == halves
    assert [one["firstNegative"] for one in found] == negative
    assert [one["mean"] for one in found] == pytest.approx(means, abs=5e-3)
    assert all(one["halves"] == halves for one in found)


@pytest.mark.parametrize("base, dim, length", [(37.5, 6, 700), (1.0, 2, 16), (1e4, 64, 130)])
def test_the_curves_of_the_sweep(base, dim, length):
    found = Sweep.compute({"base": base, "dim": dim, "length": length})
    values = cosines(range(length), dim, base)
    np.testing.assert_allclose(found["values"], values, atol=1e-12)
    assert found["least"] == pytest.approx(values.min(), abs=1e-12)
    assert found["leastAt"] == values.argmin()
    assert found["mean"] == pytest.approx(values.mean(), abs=1e-12)
    assert found["maxima"] == sum(values[k - 1] < values[k] >= values[k + 1] for k in range(1, length - 1))
    for other, curve, half in zip(decay.BASES, found["curves"], found["halves"], strict=True):
        expected = cosines(found["distances"], dim, other)
        np.testing.assert_allclose(curve, expected, atol=1e-12)
        below = np.flatnonzero(cosines(range(length), dim, other) < 0.5)
        assert half == (below[0] if len(below) else -1)
    assert found["distances"] == sweep.sampled_distances(length).tolist()


@pytest.mark.parametrize("pairs", [1, 2, 7])
def test_sums_of_several_waves_at_even_steps(pairs):
    """What the explorers' curves are made of: any number of pairs, any step, any number of waves."""
    a, b = np.random.default_rng(pairs).normal(size=(2, 3, pairs))
    waves = [{"a": one.tolist(), "b": other.tolist()} for one, other in zip(a, b, strict=True)]
    for start, step, count in [(0, 1, 1), (500, -1, 130), (-70.5, 0.25, 64), (10**6, -1954, 512)]:
        body = "return fourierSums(invFreq(input.dim, 500), input.waves, ...input.at);"
        found = inside(Sweep, body, {"dim": 2 * pairs, "waves": waves, "at": [start, step, count]})
        angles = np.multiply.outer(start + step * np.arange(count), theta(2 * pairs, 500))
        expected = a @ np.cos(angles).T + b @ np.sin(angles).T
        np.testing.assert_allclose(found, expected, atol=1e-12 + 1e-15 * pairs * (abs(start) + abs(count * step)))


def test_where_the_pixels_of_a_panel_begin():
    for sampled, length in [(False, 4096), (True, 4096), (True, 130), (False, 16)]:
        found = inside(Sweep, "return pixelsOf(...input);", [sampled, 140.5, length])
        distances = sweep.sampled_distances(length).numpy() if sampled else np.arange(length)
        places = np.log(distances[1:]) / math.log(length - 1) * 140.5
        first = np.flatnonzero(np.diff(np.floor(places + 1e-12), prepend=-1))
        assert found["edges"] == [*(first + 1).tolist(), len(distances)]
        np.testing.assert_allclose(found["at"], places[first], atol=1e-9)


def test_distances_are_all_there_at_first_and_then_sixty_four_to_an_octave():
    found = sweep.sampled_distances(4096).tolist()
    assert found[:128] == [*range(128)]
    for low in (128, 256, 512, 1024, 2048):
        octave = [at for at in found if low <= at < 2 * low]
        assert octave == [*range(low, 2 * low, low // 64)]
    assert max(found) < 4096
    assert sweep.sampled_distances(50).tolist() == [*range(50)]


# ---- The bank ----


def test_the_models_of_the_table():
    found = [
        Bank.compute({"position": 0, "base": model.base, "dim": model.dim, "length": model.context})
        for model in decay.MODELS
    ]
    assert [(one["turned"], len(one["last"])) for one in found] == [
        (8, 12), (41, 64), (46, 64), (50, 64), (100, 128), (35, 64), (40, 64), (80, 128)]  # fmt: skip
    assert found[5]["wavelengths"][-1] == pytest.approx(2_559_196, abs=1)


@pytest.mark.parametrize("position, base, dim, length", [(6000, 1e4, 16, 4096), (70, 3.5, 6, 7), (20, 1e4, 8, 50)])
def test_the_hands(position, base, dim, length):
    found = Bank.compute({"position": position, "base": base, "dim": dim, "length": length})
    hands = [cmath.exp(1j * position * one) for one in theta(dim, base)]
    tips = np.array(found["tips"])
    np.testing.assert_allclose(tips[0::2] + 1j * tips[1::2], hands, atol=1e-9)
    np.testing.assert_allclose(found["turns"], position * theta(dim, base) / (2 * math.pi), rtol=1e-12)
    np.testing.assert_allclose(found["last"], (length - 1) * theta(dim, base) / (2 * math.pi), rtol=1e-12)
    np.testing.assert_allclose(found["wavelengths"], 2 * math.pi / theta(dim, base), rtol=1e-12)
    assert found["turned"] == sum(one * (length - 1) >= 2 * math.pi for one in theta(dim, base))
    angles = [cmath.phase(hand) % (2 * math.pi) for hand in hands]
    new = [angle > (length - 1) * one and (length - 1) * one < 2 * math.pi
           for angle, one in zip(angles, theta(dim, base), strict=True)]  # fmt: skip
    assert found["unseen"] == sum(new)


def test_no_angle_within_the_context_is_new():
    for position in (0, 100, 4095):
        assert Bank.compute({**Bank().dials(), "position": position})["unseen"] == 0
    beyond = Bank.compute({**Bank().dials(), "position": 4096})
    assert beyond["unseen"] == 64 - beyond["turned"] == 18


# ---- Terms ----


@every_explorer
def test_terms_have_the_entries_of_the_result(explorer):
    dials = explorer().dials()
    data, terms = explorer.compute(dials), explorer.terms(dials)
    assert set(terms) == set(data)
    for name in ("per", "reach", "leastAt", "negativeAt", "maxima", "halves", "belowHalf", "turned", "unseen"):
        assert terms.get(name, 0) == 0


def test_terms_are_the_sizes_of_what_is_added():
    assert Distance.terms({**Distance().dials(), "dim": 16})["home"] == pytest.approx(16)
    found = Sweep.terms({"base": 10.0, "dim": 6, "length": 20})
    sizes = np.abs(np.cos(np.multiply.outer(np.arange(20), theta(6, 10.0)))).mean(-1)
    np.testing.assert_allclose(found["values"], sizes)
    assert found["mean"] == pytest.approx(sizes.mean())
    assert found["least"] in sizes
    assert np.shape(found["curves"]) == (10, 20)
    assert set(Bank.terms(Bank().dials())["tips"]) == {1.0}


# ---- Traits ----

BAD = [
    (Distance, {"base": 0.5}, r"base must be a finite number >= 1\.0 and <= 10000000\.0, got 0\.5"),
    (Distance, {"base": float("nan")}, "base must be a finite number .*, got nan"),
    (Distance, {"dim": 7}, "dim must be an even integer >= 2 and <= 512, got 7"),
    (Distance, {"query": -1}, "query must be an integer >= 0 and <= 999999, got -1"),
    (Distance, {"query": 512}, "query must be an integer >= 0 and <= 511, for length is 512, got 512"),
    (Distance, {"length": 1}, "length must be an integer >= 2 and <= 1000000, got 1"),
    (Distance, {"length": 1_000_001}, "length must be an integer >= 2 and <= 1000000, got 1000001"),
    (Distance, {"vectors": "twos"}, "vectors must be .*ones.*, got 'twos'"),
    (Distance, {"draw": 0}, "draw must be an integer >= 1 and <= 20, got 0"),
    (Sweep, {"base": 1e8}, "base must be a finite number .*, got 100000000.0"),
    (Sweep, {"dim": 514}, "dim must be an integer >= 2 and <= 512, got 514"),
    (Sweep, {"length": 15}, "length must be an integer >= 16 and <= 4096, got 15"),
    (Sweep, {"length": 4097}, "length must be an integer >= 16 and <= 4096, got 4097"),
    (Bank, {"position": 1.5}, r"position must be an integer >= 0 and <= 1000000, got 1\.5"),
    (Bank, {"base": "many"}, "base must be .*, got 'many'"),
    (Bank, {"dim": 0}, "dim must be an integer >= 2 and <= 512, got 0"),
    (Bank, {"length": True}, "length must be an integer >= 2 and <= 1000000, got True"),
]


@pytest.mark.parametrize("explorer, bad, message", BAD, ids=[f"{e.__name__} {bad}" for e, bad, _ in BAD])
def test_bad_dials_are_refused_and_the_last_good_value_stays(explorer, bad, message):
    with pytest.raises(traitlets.TraitError, match=message):
        explorer(**bad)
    figure = explorer()
    before = figure.dials()
    [(name, value)] = bad.items()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(figure, name, value)
    assert figure.dials() == before


def test_the_query_stays_within_the_text():
    figure = Distance(query=400, length=500)
    figure.length = 401
    assert figure.query == 400
    figure.length = 100
    assert figure.query == 99
    figure.set_state({"query": 5000, "length": 9000})  # what arrives from the page, in either order
    figure.set_state({"length": 90_000, "query": 50_000})
    assert (figure.query, figure.length) == (50_000, 90_000)
    assert Distance(length=2, query=0).query == 0
    spied = Distance._esm.replace("export default explorer(", "export default ((spec) => (globalThis.spec = spec))(")
    main = "import e from './e.mjs'; console.log(JSON.stringify([[3, 9], [9, 9], [10, 9]].map(([query, length]) => "
    settled = js._run({"e.mjs": spied, "main.mjs": main + "globalThis.spec.settle({ query, length }).query)));"}, None)
    assert settled == [3, 8, 8]


# ---- Words in JavaScript ----

DESCRIBE = "return input.map((values) => describe(compute(values), values));"


def test_the_score_in_words():
    dials = Distance().dials()
    cases = [
        {**dials, "query": 0},
        {**dials, "query": 0, "length": 65536},
        {**dials, "vectors": "random", "dim": 64, "query": 400, "length": 1000},
        {**dials, "dim": 256, "query": 0, "length": 8000, "base": 1e7},
        {**dials, "dim": 2, "query": 0, "length": 4},
    ]
    short, long_, unlike, smooth, tiny = inside(Distance, DESCRIBE, cases)
    assert short.startswith(
        "At the query’s own position the score is 256. It is nowhere negative, and least, 49.7, 509 "
    )
    assert short.endswith("local maxima. Both sides of the query are alike, for q\u00a0=\u00a0k.")
    assert "It is first negative 2653 places away, and least among the samples, −50.8, 17815 places away." in long_
    assert "local maxi" not in long_
    assert "It is first negative at the query itself" in unlike
    assert unlike.endswith("The two sides of the query differ, for q is not k.")
    assert "Among the samples it is nowhere negative" in smooth
    assert "There are 0 local maxima." in tiny


def test_the_sweep_in_words():
    at = {"dim": 128, "length": 4096}
    cases = [{**at, "base": 1e4}, {**at, "base": 1e7}, {"base": 1, "dim": 2, "length": 16}]
    usual, large, one = (text.replace("\u00a0", " ") for text in inside(Sweep, DESCRIBE, cases))
    assert usual == (
        "With base 10000 and 64 pairs, at distances up to 4095, the score falls below half of its peak at Δ = 46 and "
        "below 0 at Δ = 1707. On the way it has 501 local maxima."
    )
    assert "falls below half of its peak at Δ = 449 and is never negative." in large
    assert "With base 1 and 1 pair," in one
    assert one.endswith("All pairs turn alike: one cosine, which does not fall at all.")
    assert "has 2 local maxima" in one
    bare = {"belowHalf": -1, "firstNegative": -1, "maxima": 1}
    words = inside(Sweep, "return describe(input, { base: 9, dim: 4, length: 20 });", bare)
    assert "the score stays above half of its peak and is never negative. On the way it has 1 local maximum." in words
    names = inside(Sweep, "return input.map(baseName);", [1, 100, 500, 1000, 1e7, 1234.5])
    assert names == ["b = 1", "b = 100", "b = 500", "b = 10³", "b = 10⁷", "b = 1234.5"]
    assert names == [sweep.power(base) for base in [1, 100, 500, 1000, 1e7, 1234.5]]


def test_the_bank_in_words():
    dials = Bank().dials()
    cases = [
        {**dials, "position": 6000},
        {**dials, "dim": 2},
        {**dials, "length": 2},
        {**dials, "dim": 2, "position": 5000},
        {**dials, "dim": 4, "length": 50, "position": 50},
    ]
    beyond, every, none, old, one = inside(Bank, DESCRIBE, cases)
    assert beyond == (
        "46 of 64 hands make a full turn within 4096 positions. The slowest needs 54410 positions for one. The "
        "position lies beyond the context: 16 hands are at an angle that no position within it has."
    )
    assert every == "Every hand makes a full turn within 4096 positions. The slowest needs 6.28 positions for one."
    assert none.startswith("No hand makes a full turn within 2 positions.")
    assert old.endswith("The position lies beyond the context, but no hand is at an angle that is new.")
    assert one.endswith("1 hand is at an angle that no position within it has.")
    assert inside(Bank, "return input.map(turnText);", [0, 0.001, 0.25, 12.345, 1234.5]) == [
        "0.00", "< 0.01", "0.25", "12.35", "1235"]  # fmt: skip
    assert inside(Bank, "return input.map(tickText);", [10, 100, 1000, 1e7]) == ["10", "100", "10³", "10⁷"]


# ---- Stills ----


def drawing(figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.still())


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def strokes(root: ElementTree.Element, colour: str, width: float) -> list[np.ndarray]:
    """The points of the lines of this colour and width."""
    wanted = re.compile(rf"stroke:var\(--fig-{colour}, [^)]*\);stroke-width:{width:g}\b")
    return [points(path.get("d")) for path in root.iter(f"{SVG}path") if wanted.search(path.get("style"))]


def points(d: str) -> np.ndarray:
    return np.array([[float(n) for n in point.split(",")] for point in re.findall(r"-?[\d.]+,-?[\d.]+", d)])


@every_explorer
@pytest.mark.parametrize("end", ["min", "max", "default"])
def test_stills_are_one_picture_with_everything_inside(explorer, end):
    traits = explorer.dial_traits().items() if end != "default" else []
    figure = explorer(**{name: getattr(trait, end) for name, trait in traits if hasattr(trait, end)})
    text = figure.still()
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == figure.alt
    assert len(text) < 60_000
    assert "\n" not in text
    assert "nan" not in text
    width, height = float(root.get("width")), float(root.get("height"))
    for mark in root.iter(f"{SVG}text"):
        length = 0.62 * 13 * len(mark.text)
        left = float(mark.get("x")) - {"start": 0, "middle": length / 2, "end": length}[mark.get("text-anchor")]
        assert left >= 0, mark.text
        assert left + length <= width + 8, mark.text
        assert 0 < float(mark.get("y")) <= height
    for path in root.iter(f"{SVG}path"):
        absolute = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path.get("d"))
        assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in absolute)


@pytest.mark.parametrize("length, query", [(512, 256), (1300, 0), (65536, 30_000)])
def test_the_still_of_the_score(length, query):
    figure = Distance(length=length, query=query, dim=16, vectors="random")
    data, root = figure.compute(figure.dials()), drawing(figure)
    low, high = min(0, *data["low"]), max(0, *data["high"])
    [drawn] = strokes(root, "1", 1.25)
    there, back = drawn[: len(drawn) // 2], drawn[: len(drawn) // 2 - 1 : -1]
    np.testing.assert_allclose(there[:, 0], back[:, 0])
    per = data["per"] if length > 4096 else math.ceil(length / 648)
    np.testing.assert_allclose(there[:, 0] - 58, (np.arange(len(there)) * per + (per - 1) / 2)
                               .clip(max=length - 1) / (length - 1) * 648, atol=0.06)  # fmt: skip
    for side, name, pick in ((there, "high", max), (back, "low", min)):
        size = math.ceil(len(data[name]) / 648)
        expected = [pick(data[name][k : k + size]) for k in range(0, len(data[name]), size)]
        np.testing.assert_allclose((330 - side[:, 1]) / 264 * (high - low) + low, expected, atol=0.01 * (high - low))
    [dot] = [mark for mark in root.iter(f"{SVG}circle")]
    assert float(dot.get("cx")) == pytest.approx(58 + data["leastAt"] / (length - 1) * 648, abs=0.01)
    assert float(dot.get("cy")) == pytest.approx(330 - (data["least"] - low) / (high - low) * 264, abs=0.01)
    muted = strokes(root, "muted", 1)
    assert muted[0][:, 0].tolist() == pytest.approx([58 + query / (length - 1) * 648] * 2, abs=0.01)
    assert muted[1][0, 1] == pytest.approx(330 + low / (high - low) * 264, abs=0.01)
    grid = [line[0, 1] for line in strokes(root, "grid", 1)]
    levels = [level for level in (-data["swing"], data["swing"]) if low <= level <= high]
    assert grid == pytest.approx([330 - (level - low) / (high - low) * 264 for level in levels], abs=0.01)


def test_the_still_of_the_score_in_words():
    found = texts(drawing(Distance()))
    assert "A query at 256, keys at 0 to 511: q = k = (1, …, 1)" in found
    assert "The score with every key. Grey: ± the swing of pairs out of step" in found
    assert {"0", "256", "511", "Nowhere below 0; least 72.00 at distance 247"} <= set(found)
    found = texts(drawing(Distance(query=0, length=65536)))
    assert "Sampled: 8 of every 128 keys. Grey: ± the swing of pairs out of step" in found
    assert "Below 0 first at distance 2653; least −50.76 at distance 17815 (of the samples)" in found
    assert texts(drawing(Distance(base=1e7, length=9000)))[-1].startswith("Nowhere below 0 (of the samples); least ")
    late = texts(drawing(Distance(base=1e5, length=1_000_000, query=0)))[-1]
    assert re.match(r"Below 0 first at distance \d+ \(of the samples\); least", late)
    assert texts(drawing(Distance(vectors="same", draw=3)))[0].endswith(": q = k random, draw 3")
    assert texts(drawing(Distance(vectors="random", draw=3)))[0].endswith(": q and k random, draw 3")
    assert texts(drawing(Distance(vectors="slow")))[0].endswith(": q = k = 1 in the slower half of the pairs")
    numbers = [mark.text for mark in drawing(Distance(query=20)).iter(f"{SVG}text") if mark.get("y") == "350"]
    assert numbers == ["20", "511"]  # 0 would overlap


@pytest.mark.parametrize("base, dim, length", [(1e4, 128, 4096), (37.0, 8, 500), (1e7, 256, 100)])
def test_the_still_of_the_sweep(base, dim, length):
    figure = Sweep(base=base, dim=dim, length=length)
    data, root = figure.compute(figure.dials()), drawing(figure)
    curves = strokes(root, "1", 1.25)
    assert len(curves) == 11
    assert len(strokes(root, "grid", 1.25)) == 10 - (base in decay.BASES)
    panels = [(46, 60, 684, 190)] + [(146 * (k % 5) + 2, 362 + 122 * (k // 5), 138, 84) for k in range(10)]
    wholes = [(np.arange(length), np.array(data["values"]))]
    wholes += [(np.array(data["distances"]), np.array(curve)) for curve in data["curves"]]
    for drawn, (left, top, width, height), (at, values) in zip(curves, panels, wholes, strict=True):
        there, back = drawn[: len(drawn) // 2], drawn[: len(drawn) // 2 - 1 : -1]
        places = left + np.log(np.maximum(1, at)) / math.log(length - 1) * width
        upper = 1 - (there[:, 1] - top) / height * 2
        lower = 1 - (back[:, 1] - top) / height * 2
        assert upper.max() == pytest.approx(values[1:].max(), abs=0.003)
        assert lower.min() == pytest.approx(values[1:].min(), abs=0.003)
        for k in (1, 5, len(at) // 2, len(at) - 1):  # every value lies within the band at its place
            near = np.abs(there[:, 0] - places[k]).argmin()
            assert lower[near] - 0.003 <= values[k] <= upper[near] + 0.003
    halves = [line[0, 0] for line in strokes(root, "2", 1.5)]
    shown = [(panels[0], data["belowHalf"]), *zip(panels[1:], data["halves"], strict=True)]
    expected = [left + math.log(half) / math.log(length - 1) * width
                for (left, _, width, _), half in shown if half > 0]  # fmt: skip
    assert halves == pytest.approx(expected, abs=0.01)
    negative = strokes(root, "4", 1.5)
    assert len(negative) == (data["firstNegative"] > 0)
    found = texts(root)
    assert found[0] == f"The chosen base: {sweep.power(base)}"
    assert {"b = 1", "b = 500", "b = 10³", "b = 10⁷", "½", "−1"} <= set(found)
    bold = [mark.text for mark in root.iter(f"{SVG}text") if "font-weight" in mark.get("style")]
    assert bold[2:] == ([sweep.power(base)] if base in decay.BASES else [])
    assert ("1000" in found) == (length > 1000)


@pytest.mark.parametrize("dials", [{}, {"position": 6000}, {"dim": 2}, {"dim": 512, "length": 1_000_000, "base": 5e5}])
def test_the_still_of_the_bank(dials):
    figure = Bank(**dials)
    data, root = figure.compute(figure.dials()), drawing(figure)
    pairs = figure.dim // 2
    thick = max(0.42 * 96 / 12 if pairs == 1 else 0, 1.25)
    hands = {}
    for colour in "124":
        wanted = re.compile(rf"stroke:var\(--fig-{colour}, ")
        for path in root.iter(f"{SVG}path"):
            if wanted.search(path.get("style")) and "l" in path.get("d") and "a" not in path.get("d"):
                for x, y, dx, dy in re.findall(r"M([-\d.]+),([-\d.]+)l([-\d.]+),([-\d.]+)", path.get("d")):
                    hands[float(y), float(x)] = (colour, complex(float(dx), -float(dy)))
    assert len(hands) == pairs
    assert thick > 0
    for i, place in enumerate(sorted(hands)):
        colour, hand = hands[place]
        angle = figure.position * theta(figure.dim, figure.base)[i]
        assert abs(hand / abs(hand) - cmath.exp(1j * angle)) < 0.02
        last = data["last"][i]
        new = last < 1 and data["turns"][i] % 1 > last
        assert colour == ("1" if last >= 1 else "4" if new else "2")
    sectors = [path.get("d") for path in root.iter(f"{SVG}path") if "fill-opacity:0.3" in path.get("style")]
    slow = pairs - data["turned"]
    assert sum(d.count("A") for d in sectors) == slow
    found = texts(root)
    assert f"The hands at position {figure.position}" in found
    assert f"L = {figure.length}" in found
    note = found[1]
    if not slow:
        assert note == f"Every hand makes a full turn within L = {figure.length}"
    else:
        end = "; violet: now at a new angle" if data["unseen"] else "; sectors: as far as they come"
        assert note == f"Orange: no full turn within L = {figure.length} ({slow} of {pairs}){end}"


@pytest.mark.parametrize("length", [2048, 5000])
def test_the_sectors_of_the_still_end_where_the_context_does(length):
    figure = Bank(dim=8, length=length, position=100)
    data = figure.compute(figure.dials())
    [d] = [path.get("d") for path in drawing(figure).iter(f"{SVG}path") if "fill-opacity:0.3" in path.get("style")]
    [last] = [turn for turn in data["last"] if turn < 1]
    x, y, radius, large, ex, ey = map(
        float, re.fullmatch(r"M([\d.]+),([\d.]+)h([\d.]+)A[\d.]+,[\d.]+ 0 (\d) 0 ([\d.]+),([\d.]+)Z", d).groups()
    )
    end = cmath.rect(radius, 2 * math.pi * last)
    assert (ex, ey) == pytest.approx((x + end.real, y - end.imag), abs=0.11)
    assert large == (last > 0.5)


def test_the_strip_of_the_still():
    figure = Bank()
    root, data = drawing(figure), Bank.compute(figure.dials())
    high = 1.25 * data["wavelengths"][-1]
    expected = [20 + math.log(one / 4) / math.log(high / 4) * 690 for one in data["wavelengths"]]
    marks = {}
    for path in root.iter(f"{SVG}path"):
        for x in re.findall(r"M([\d.]+),[\d.]+v24", path.get("d")):
            marks[float(x)] = re.search(r"fig-(\d)", path.get("style"))[1]
    np.testing.assert_allclose(sorted(marks), expected, atol=0.051)
    assert [marks[x] for x in sorted(marks)] == ["1"] * 46 + ["2"] * 18
    [line] = strokes(root, "ink", 2)
    assert line[0, 0] == pytest.approx(20 + math.log(4095 / 4) / math.log(high / 4) * 690, abs=0.01)
    assert {"10", "100", "10³", "10⁴"} <= set(texts(root))
    assert "10⁵" not in texts(root)
    assert still.LIGHT["4"] == "#8a2fa3"
