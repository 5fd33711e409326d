"""The explorers of chapter *Longer texts*: JavaScript against Python, Python against the papers' formulas, stills."""

from __future__ import annotations

import itertools
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
import traitlets

from ropebook import explorers, extrapolation
from ropebook.explorers import ladder, ramp, still
from ropebook.explorers.ladder import Ladder
from ropebook.explorers.ramp import Ramp
from ropebook.explorers.timelapse import Timelapse
from ropebook.sinusoidal import inv_freq
from tests.explorers import js

ALL = [Ladder, Ramp, Timelapse]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"
METHODS = ("linear", "ntk", "ntk_by_parts", "yarn", "llama3")
ON = dict.fromkeys(METHODS, True)
RAMP_ENDS = ("alpha", "beta", "trained_length", "base", "dim", "factor", "truncate")
DESCRIBE = "return input.map((values) => describe(compute(values), values));"


def theta(dim: int, base: float) -> list[float]:
    return [base ** (-2 * i / dim) for i in range(dim // 2)]


def clip(value: float) -> float:
    return min(1.0, max(0.0, value))


def ends_of_all_dials(explorer: type, *names: str) -> list[dict]:
    """Every combination of the limits of these dials, the others as they are."""
    traits = explorer.dial_traits()
    limits = [
        (False, True) if isinstance(traits[n], explorers.Switch) else (traits[n].min, traits[n].max) for n in names
    ]
    return [explorer().dials() | dict(zip(names, values, strict=True)) for values in itertools.product(*limits)]


# ---- JavaScript and Python agree ----


# ---- What the ladder claims, by the papers' formulas ----


def stretched(name: str, dials: dict) -> list[float]:
    """λ′/λ of each pair, one at a time."""
    dim, base, length, s = (dials[name] for name in ("dim", "base", "trained_length", "factor"))
    alpha, beta = (1, 4) if name == "llama3" else (dials["alpha"], dials["beta"])
    found = []
    for i, one in enumerate(theta(dim, base)):
        turns = length * one / (2 * math.pi)
        if name == "linear":
            new = one / s
        elif name == "ntk":
            new = (base * s ** (dim / (dim - 2))) ** (-2 * i / dim)
        else:
            kept = clip((turns - alpha) / (beta - alpha))
            if name == "yarn":
                low, high = (dim * math.log(length / (2 * math.pi * r)) / (2 * math.log(base)) for r in (beta, alpha))
                low, high = max(0, math.floor(low)), min(dim - 1, math.ceil(high))
                kept = 1 - clip((i - low) / (high - low))
            new = (1 - kept) * one / s + kept * one
        found.append(one / new)
    return found


@pytest.mark.parametrize(
    "dials",
    [
        {},
        {"dim": 8, "base": 500.0, "trained_length": 100, "factor": 3.5, "alpha": 0.5, "beta": 2.5},
        {"dim": 34, "base": 1e6, "trained_length": 20000, "factor": 64.0, "alpha": 2.0, "beta": 64.0},
        {"dim": 4, "base": 1e7, "trained_length": 16, "factor": 1.0},
    ],
)
def test_the_ladder_shows_what_the_papers_say(dials):
    dials = Ladder(**dials, **ON).dials()
    found, terms = Ladder.compute(dials), Ladder.terms(dials)
    length, rungs = dials["trained_length"], theta(dials["dim"], dials["base"])
    target = int(length * dials["factor"])
    assert found["target"] == target
    assert found["shown"] == list(METHODS)
    np.testing.assert_allclose(found["wavelengths"], [2 * math.pi / one for one in rungs], rtol=1e-14)
    slow = [i for i, one in enumerate(rungs) if (length - 1) * one < 2 * math.pi]
    assert found["turned"] == len(rungs) - len(slow)

    def beyond(stretch: list[float]) -> float:
        return max([0.0, *((target - 1) * rungs[i] / stretch[i] - (length - 1) * rungs[i] for i in slow)])

    assert found["beyond"] == pytest.approx(beyond([1.0] * len(rungs)), abs=1e-9)
    for name, stretch, left in zip(METHODS, found["stretch"], found["left"], strict=True):
        np.testing.assert_allclose(stretch, stretched(name, dials), rtol=1e-12)
        assert left == pytest.approx(beyond(stretched(name, dials)), abs=1e-9)
    assert set(terms) == set(found) - {"shown"}
    assert max([found["beyond"], *found["left"]]) <= terms["beyond"]
    assert terms["left"] == [terms["beyond"]] * 5


def test_llama_2_four_times_as_long():
    """The numbers of the chapter: 18 pairs have not turned; NTK-aware with s itself leaves 2.48 radians over."""
    found = Ladder.compute(Ladder().dials())
    assert found["shown"] == ["linear", "ntk", "yarn"]
    assert (len(found["wavelengths"]) - found["turned"], found["target"]) == (18, 16384)
    assert found["beyond"] == pytest.approx(16.386, abs=1e-3)
    assert found["left"] == pytest.approx([0.000763, 2.479, 0.000763], abs=2e-3)


def test_where_every_pair_turns_nothing_is_new():
    found = Ladder.compute(Ladder(base=500, trained_length=8192).dials())
    assert found["turned"] == 64
    assert [found["beyond"], *found["left"]] == [0, 0, 0, 0]
    assert Ladder.terms(Ladder(base=500, trained_length=8192).dials())["beyond"] == 0


@pytest.mark.parametrize(
    "model, turned, pairs", [("Llama 2", 46, 64), ("Llama 3", 35, 64), ("Qwen2.5", 40, 64), ("GPT-NeoX", 8, 12)]
)
def test_the_models_of_the_ladder(model, turned, pairs):
    """Pairs that turn within L, counted by hand in the chapter's notes."""
    [(_, base, dim, length)] = [one for one in js.evaluate(Ladder._esm, "return MODELS;") if one[0] == model]
    found = Ladder.compute(Ladder(base=base, dim=dim, trained_length=length).dials())
    assert (found["turned"], len(found["wavelengths"])) == (turned, pairs)


# ---- What the ramp claims ----


def test_no_setting_of_the_dials_leaves_the_codes_ramp_without_a_value():
    """What base 500 is the limit for: at every end of every dial the ramp runs forwards, a little below it does not."""
    for dials in ends_of_all_dials(Ramp, *RAMP_ENDS):
        found = Ramp.compute(dials)
        assert found["low"] < found["high"]
        assert np.isfinite([*found["paper"], *found["code"], *found["ratio"]]).all()
    with pytest.raises(ValueError, match="must leave pairs to mix"):
        extrapolation.ramp_range(inv_freq(4, 400), 131072, 2.0, 2.5, truncate=False)


@pytest.mark.parametrize(
    "dials",
    [
        {},
        {"truncate": False},
        {"dim": 10, "base": 500.0, "trained_length": 300, "factor": 64.0, "alpha": 0.5, "beta": 2.5},
        {"dim": 64, "base": 1e6, "trained_length": 16, "factor": 2.0},
    ],
)
def test_both_ramps(dials):
    dials = Ramp(**dials).dials()
    found, terms = Ramp.compute(dials), Ramp.terms(dials)
    alpha, beta, s, dim = (dials[name] for name in ("alpha", "beta", "factor", "dim"))
    rungs, length = theta(dim, dials["base"]), dials["trained_length"]
    paper = [1 - clip((length * one / (2 * math.pi) - alpha) / (beta - alpha)) for one in rungs]
    ends = [dim * math.log(length / (2 * math.pi * r)) / (2 * math.log(dials["base"])) for r in (beta, alpha)]
    if dials["truncate"]:
        ends = [math.floor(ends[0]), math.ceil(ends[1])]
    low, high = max(0, ends[0]), min(dim - 1, ends[1])
    code = [clip((i - low) / (high - low)) for i in range(dim // 2)]
    assert (found["low"], found["high"]) == pytest.approx((low, high), rel=1e-12)
    np.testing.assert_allclose(found["paper"], paper, atol=1e-12)
    np.testing.assert_allclose(found["code"], code, atol=1e-12)
    by_paper, by_code = ([g / s + 1 - g for g in shares] for shares in (paper, code))
    ratio = [c / p for c, p in zip(by_code, by_paper, strict=True)]
    np.testing.assert_allclose(found["ratio"], ratio, rtol=1e-12)
    apart = [max(one, 1 / one) for one in ratio]
    assert found["largest"] == pytest.approx(max(apart), rel=1e-12)
    assert apart[found["pair"]] == pytest.approx(max(apart), rel=1e-8)
    assert found["paperMixes"] == sum(0 < share < 1 for share in paper)
    assert found["codeMixes"] == sum(0 < share < 1 for share in code)
    assert set(terms) == set(found)
    assert [terms[name] for name in ("paperMixes", "codeMixes", "pair")] == [0, 0, 0]


def test_paper_and_code_on_llama_2s_numbers():
    """3.04 times the frequency at pair 38, and 2.92 times without rounding: rounding is not the reason."""
    found = Ramp.compute(Ramp().dials())
    assert (round(found["largest"], 2), found["pair"], round(found["ratio"][38], 2)) == (3.04, 38, 3.04)
    assert round(Ramp.compute(Ramp(truncate=False).dials())["largest"], 2) == 2.92
    same = Ramp.compute(Ramp(factor=1).dials())
    assert (same["largest"], same["pair"]) == (pytest.approx(1), 0)


# ---- What the time lapse claims ----


def test_bases_grow_beyond_the_trained_length():
    figure = Timelapse(length=100, trained_length=64, factor=3.0, dim=16)
    found, terms = figure.compute(figure.dials()), figure.terms(figure.dials())
    expected = [1e4 * max(1, 3 * n / 64 - 2) ** (16 / 14) for n in range(1, 101)]
    np.testing.assert_allclose(found["bases"], expected, rtol=1e-12)
    assert found["bases"][:64] == [1e4] * 64
    assert found["scale"] == pytest.approx(3 * 100 / 64 - 2, rel=1e-14)
    assert found["keys"] == list(range(100))
    assert set(terms) == set(found)
    assert terms["errors"] == [1.0] * 100


def test_the_error_of_a_score_is_what_random_queries_and_keys_find():
    """Against rotated keys: the measured error of 20000 draws, in units of the measured spread."""
    figure = Timelapse(length=40, trained_length=16, factor=2.0, dim=8)
    found = figure.compute(figure.dials())
    draws = torch.Generator().manual_seed(0)
    q = torch.randn(20000, 8, generator=draws, dtype=torch.float64)
    k = torch.randn(20000, 40, 8, generator=draws, dtype=torch.float64)
    measured = extrapolation.cache_error(extrapolation.DynamicNTK(16, 2.0), q, k, inv_freq(8))
    off = (measured.cached - measured.exact).square().mean(0).sqrt() / measured.exact.square().mean(0).sqrt()
    np.testing.assert_allclose(found["errors"], off, atol=0.02)
    assert found["errors"][0] == found["errors"][-1] == 0
    assert max(found["errors"]) > 0.2
    assert found["error"] == pytest.approx(math.sqrt(sum(e * e for e in found["errors"]) / 40), rel=1e-12)


def test_up_to_the_trained_length_no_score_is_off():
    found = Timelapse.compute(Timelapse(length=64).dials())
    assert max(found["errors"]) == found["error"] == 0
    assert Timelapse.compute(Timelapse(length=65).dials())["error"] > 0


def test_of_a_long_text_256_keys_are_looked_at():
    figure = Timelapse(room=4096, length=4096, trained_length=1024, dim=4)
    found = figure.compute(figure.dials())
    assert len(found["bases"]) == 4096
    assert [len(found["keys"]), found["keys"][0], found["keys"][-1]] == [256, 0, 4095]
    steps = np.diff(found["keys"])
    assert set(steps.tolist()) == {16, 17}
    short = figure.compute({**figure.dials(), "length": 1})
    assert (short["keys"], short["errors"]) == ([0], [0.0])


# ---- Bad dials ----


@pytest.mark.parametrize(
    "explorer, name, value, message",
    [
        *(
            (explorer, *bad)
            for explorer in ALL
            for bad in [
                ("factor", 0.5, r"factor must be .*>= 1"),  # L′ < L
                ("factor", math.nan, r"factor must be .*nan"),
                ("dim", 2, r"dim must be .*>= 4.*got 2"),  # d/(d − 2) has no value
                ("dim", 15, r"dim must be an even integer"),
                ("dim", 514, r"dim must be .*<= 512"),
                ("base", 1.0, r"base must be .*>= 500"),  # YaRN's ramp has no value
                ("base", -5.0, r"base must be .*>= 500"),
                ("base", math.inf, r"base must be .*inf"),
                ("trained_length", 15, r"trained_length must be .*>= 16"),
                ("trained_length", 64.5, r"trained_length must be .*64.5"),
            ]
        ),
        *(
            (explorer, *bad)
            for explorer in (Ladder, Ramp)
            for bad in [
                ("alpha", 2.5, r"alpha must be .*<= 2"),  # α ≥ β
                ("alpha", 0.0, r"alpha must be .*>= 0.25"),
                ("beta", 2.0, r"beta must be .*>= 2.5"),
                ("beta", math.nan, r"beta must be .*nan"),
            ]
        ),
        (Ladder, "yarn", 1, r"yarn must be True or False"),
        (Ramp, "truncate", None, r"truncate must be True or False"),
        (Timelapse, "length", 257, r"length must be .*<= 256, for room is 256, got 257"),
        (Timelapse, "length", 0, r"length must be .*>= 1"),
        (Timelapse, "room", 5000, r"room must be .*<= 4096"),
    ],
)
def test_bad_values_are_refused_and_change_nothing(explorer, name, value, message):
    with pytest.raises(traitlets.TraitError, match=message):
        explorer(**{name: value})
    figure = explorer()
    before = figure.dials()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(figure, name, value)
    assert figure.dials() == before


def test_the_length_stays_within_the_room():
    figure = Timelapse(room=512, length=400)
    figure.room = 300
    assert figure.length == 300
    figure.room = 4096
    assert figure.length == 300
    figure.set_state({"room": 64, "length": 5})  # what arrives from the page, in either order
    figure.set_state({"length": 900, "room": 1000})
    assert (figure.room, figure.length) == (1000, 900)
    spied = Timelapse._esm.replace("export default explorer(", "export default ((spec) => (globalThis.spec = spec))(")
    main = "import e from './e.mjs'; console.log(JSON.stringify([[300, 9], [64, 90]].map(([room, length]) => "
    settled = js._run({"e.mjs": spied, "main.mjs": main + "globalThis.spec.settle({ room, length }))));"}, None)
    assert settled == [{"room": 300, "length": 9}, {"room": 64, "length": 64}]


# ---- Words in JavaScript ----


def test_the_ladder_in_words():
    off = dict.fromkeys(METHODS, False)
    cases = [
        Ladder().dials(),
        Ladder(**{**off, "llama3": True}).dials(),
        Ladder(**off).dials(),
        Ladder(factor=1).dials(),
        Ladder(base=500, trained_length=8192).dials(),
        Ladder(dim=24, trained_length=16384, factor=1.5, **off).dials(),
    ]
    full, one, none, same, known, single = js.evaluate(Ladder._esm, DESCRIBE, cases)
    start = "18 of 64 pairs have not completed a turn within L = 4096. At L′ = "
    now = start + "16384 the angles go 16.4 radians beyond those of training as the model is"
    assert full == f"{now}; 0.001 with position interpolation, 2.48 with NTK-aware and 0.001 with YaRN."
    assert one == f"{now}; 0.001 with Llama 3.1."
    assert none == f"{now}."
    assert same == start + "4096 no angle is new, for L′ is L."
    assert known.startswith("Each of 64 pairs completes a turn within L = 8192: it has shown all its angles")
    assert single.startswith("1 of 12 pairs has not completed a turn")
    angles = [0, 1e-5, 0.0123, 2.4789, 16.38, 400000]
    texts = ["0", "< 0.001", "0.012", "2.48", "16.4", "4.0 × 10⁵"]
    assert js.evaluate(Ladder._esm, "return input.map(radians);", angles) == texts


def test_the_ramp_in_words():
    cases = [Ramp().dials(), Ramp(truncate=False).dials(), Ramp(factor=1).dials()]
    rounded, exact, same = js.evaluate(Ramp._esm, DESCRIBE, cases)
    assert rounded == (
        "The code’s ramp rises from pair 20 to pair 46. The two are furthest apart at pair 38, where the code’s "
        "frequency is 3.04 times the paper’s."
    )
    assert exact.startswith("The code’s ramp rises from pair 20.94 to pair 45.03.")
    assert same.endswith("Its frequencies and the paper’s are the same to within half a per cent.")


def test_the_cache_in_words():
    cases = [Timelapse(length=n).dials() for n in (1, 64, 65, 160)]
    alone, trained, first, later = js.evaluate(Timelapse._esm, DESCRIBE, cases)
    assert alone == "The only token is rotated with the trained base, 10000: no score is off."
    assert trained == "All 64 tokens, the query too, are rotated with the trained base, 10000: no score is off."
    assert "The 64 keys before it keep 1 older base." in first
    error = Timelapse.compute(cases[-1])["error"]
    assert later == (
        f"The query, token 160, is rotated with base 25750. The 159 keys before it keep 96 older bases. For random q "
        f"and k its scores are off by {error:.2f} of their own spread; unrelated scores would be off by 1.41."
    )


# ---- Stills ----


def drawing(figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.still())


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def strokes(root: ElementTree.Element, colour: str, width: float, dashes: str = "") -> list[np.ndarray]:
    """The points of the lines of this colour, width and dashes, path by path."""
    wanted = re.compile(rf"stroke:var\(--fig-{colour}, [^;]*;stroke-width:{width:g}(;|$)")
    return [
        np.array([[float(n) for n in point.split(",")] for point in re.findall(r"-?[\d.]+,-?[\d.]+", path.get("d"))])
        for path in root.iter(f"{SVG}path")
        if wanted.search(path.get("style"))
        and (f"stroke-dasharray:{dashes}" in path.get("style") if dashes else "dasharray" not in path.get("style"))
    ]


@every_explorer
@pytest.mark.parametrize("end", ["min", "max", "default"])
def test_stills_are_one_picture_with_everything_inside(explorer, end):
    traits = explorer.dial_traits()
    ends = {
        n: end == "max" if isinstance(t, explorers.Switch) else getattr(t, end)
        for n, t in traits.items()
        if end != "default"
    }
    figure = explorer(**ends)
    text = figure.still()
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == figure.alt
    assert len(text) < 60_000
    assert "\n" not in text
    assert "nan" not in text
    width, height = float(root.get("width")), float(root.get("height"))
    boxes = []
    for mark in root.iter(f"{SVG}text"):
        length = 0.5 * 13 * len(mark.text)
        left = float(mark.get("x")) - {"start": 0, "middle": length / 2, "end": length}[mark.get("text-anchor")]
        boxes.append((left, left + length, float(mark.get("y")), mark.text))
        assert left >= 0, mark.text
        assert left + length <= width + 8, mark.text
        assert 0 < float(mark.get("y")) <= height
    for (a, b, y, one), (c, d, z, other) in itertools.combinations(boxes, 2):
        assert min(b, d) <= max(a, c) or abs(y - z) >= 12, (one, other)
    for path in root.iter(f"{SVG}path"):
        absolute = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path.get("d"))
        assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in absolute)


@pytest.mark.parametrize(
    "dials", [{}, {"dim": 16, "factor": 8.0, **ON}, {"base": 500, "trained_length": 16, "factor": 1.0}]
)
def test_the_still_of_the_ladder(dials):
    figure = Ladder(**dials)
    root, data = drawing(figure), figure.compute(figure.dials())
    waves, turned, pairs = np.array(data["wavelengths"]), data["turned"], len(data["wavelengths"])
    longest = 1.5 * max(data["target"], waves[-1] * figure.factor)
    x = 56 + (np.arange(pairs) + 0.5) / pairs * 674

    def y(wave: np.ndarray | float) -> np.ndarray | float:
        return 344 - np.log(np.array(wave) / 5) / math.log(longest / 5) * 270

    size = max(3, min(8, 450 / pairs))
    for colour, some in (("1", slice(0, turned)), ("2", slice(turned, None))):
        if waves[some].size:
            [found] = strokes(root, colour, size)
            np.testing.assert_allclose(found, np.stack([x[some], y(waves[some])], -1), atol=0.051)
    bottom = math.log(max(figure.factor, 1.25))
    for name, stretch in zip(data["shown"], data["stretch"], strict=True):
        title = extrapolation.METHODS[name].title
        assert title in texts(root)
        colour, width, dashes = ladder.METHODS[name]["look"]
        lines = [line for line in strokes(root, colour, width, dashes) if len(line) == pairs]
        expected = [y(waves * stretch), 510 - np.log(stretch) / bottom * 90]
        for heights in expected:
            assert any(np.abs(line - np.stack([x, heights], -1)).max() < 0.06 for line in lines), name
    [dashed] = strokes(root, "muted", 1.5, "6 4")
    assert dashed[:, 1] == pytest.approx(y(data["target"]), abs=0.06)
    assert any(abs(line[0, 1] - y(figure.trained_length)) < 0.06 for line in strokes(root, "muted", 1.5))
    assert f"L = {figure.trained_length}" in texts(root)
    assert (f"L′ = {data['target']}" in texts(root)) == (figure.factor > 1)
    note = f"Orange: no full turn within L, {pairs - turned} of {pairs} pairs"
    assert note in texts(root)
    shaded = [float(mark.get("x")) for mark in root.iter(f"{SVG}rect")]
    assert shaded == pytest.approx([56 + turned / pairs * 674] * 2, abs=0.01)


def test_the_still_of_a_ladder_without_slow_pairs():
    root = drawing(Ladder(base=500, trained_length=8192))
    assert "Every one of 64 pairs completes a turn within L" in texts(root)
    assert not list(root.iter(f"{SVG}rect"))
    assert len(strokes(root, "2", 450 / 64)) == 0


@pytest.mark.parametrize("dials", [{}, {"dim": 8, "beta": 8.0}, {"factor": 1.0, "truncate": False}])
def test_the_still_of_the_ramp(dials):
    figure = Ramp(**dials)
    root, data = drawing(figure), figure.compute(figure.dials())
    pairs = figure.dim // 2
    x = 56 + (np.arange(pairs) + 0.5) / pairs * 674
    for colour, name in (("1", "paper"), ("2", "code")):
        [line] = strokes(root, colour, 2)
        np.testing.assert_allclose(line, np.stack([x, 284 - 200 * np.array(data[name])], -1), atol=0.051)
    ratio = np.array(data["ratio"])
    most, least = (
        ramp.largest_tick(ratio.max()),
        min(0.9, *(1 / ramp.largest_tick(1 / r) for r in ratio if r < 0.9), 0.9),
    )
    [line] = strokes(root, "ink", 2)
    heights = 486 - np.log(ratio / least) / math.log(most / least) * 120
    np.testing.assert_allclose(line, np.stack([x, heights], -1), atol=0.051)
    [dot] = root.iter(f"{SVG}circle")
    assert [float(dot.get(name)) for name in ("cx", "cy")] == pytest.approx(
        [x[data["pair"]], heights[data["pair"]]], abs=0.01
    )
    turns = strokes(root, "muted", 1.25, "2 4")
    for line, r in zip(turns, (figure.beta, figure.alpha), strict=True):
        at = figure.dim * math.log(figure.trained_length / (2 * math.pi * r)) / (2 * math.log(figure.base))
        assert line[0, 0] == pytest.approx(56 + (min(max(at, -0.5), pairs - 0.5) + 0.5) / pairs * 674, abs=0.06)
    found = texts(root)
    assert {f"β = {figure.beta:g}", f"α = {figure.alpha:g}"} <= set(found)
    assert f"largest: {data['largest']:.2f}, at pair {data['pair']}" in found
    assert f"{most:g}" in found


@pytest.mark.parametrize("dials", [{}, {"length": 10}, {"room": 1000, "length": 700, "trained_length": 200}])
def test_the_still_of_the_cache(dials):
    figure = Timelapse(**dials)
    root, data = drawing(figure), figure.compute(figure.dials())
    areas = {}
    columns = 32 if figure.room <= 512 else 128
    pitch = 730 / columns
    for path in root.iter(f"{SVG}path"):
        look = re.match(r"fill:var\(--fig-(\w+),[^;]*;fill-opacity:([\d.]+)$", path.get("style"))
        for left, top, wide in re.findall(r"M([\d.]+),([\d.]+)h([\d.]+)v", path.get("d")) if look else ():
            first = round((float(top) - 48) / pitch) * columns + round(float(left) / pitch)
            for n in range(first, first + round((float(wide) + pitch / 6) / pitch)):
                areas[n] = (look[1], float(look[2]))
    assert sorted(areas) == list(range(figure.room))
    method = extrapolation.DynamicNTK(figure.trained_length, figure.factor)
    highest = math.log(method.effective_scale(figure.room))
    for n, (colour, opacity) in areas.items():
        if n >= figure.length:
            assert (colour, opacity) == ("grid", 0.35)
        elif n < figure.trained_length:
            assert (colour, opacity) == ("1", 0.7)
        else:
            assert colour == "2"
            assert opacity == pytest.approx(0.3 + 0.7 * math.log(method.effective_scale(n + 1)) / highest, abs=0.018)
    [box] = strokes(root, "ink", 2)
    last = figure.length - 1
    assert box[0] == pytest.approx([last % columns * pitch, 48 + last // columns * pitch], abs=0.06)
    floor = 48 + math.ceil(figure.room / columns) * pitch + 26 + 140
    [curve] = strokes(root, "2", 2)
    np.testing.assert_allclose(curve[:, 0], 56 + np.array(data["keys"]) / (figure.room - 1) * 674, atol=0.06)
    np.testing.assert_allclose((floor - curve[:, 1]) / 96 * 1.7, data["errors"], atol=0.002)
    found = texts(root)
    assert f"Cached keys of a text of {figure.length} tokens" in found
    new = f"{data['bases'][-1]:,.0f}".replace(",", " ")
    assert f"The query, outlined, has base {new}" in found
    assert f"L = {figure.trained_length}" in found


def test_shades_and_names_of_the_stills():
    assert still.colour("1") != still.colour("2")
    assert ladder.power_of_ten(6) == "10⁶"
    assert "L = 63" not in texts(drawing(Timelapse(room=64, length=64, trained_length=2048)))
