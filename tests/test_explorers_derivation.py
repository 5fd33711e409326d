"""The explorers of chapter *The rotation*: JavaScript against Python, Python against the formula, stills."""

from __future__ import annotations

import cmath
import math
import re
from xml.etree import ElementTree

import numpy as np
import pytest
import traitlets

from ropebook.explorers import draws, still
from ropebook.explorers.lock import Lock
from ropebook.explorers.turn import Turn
from tests.explorers import js

ALL = [Turn, Lock]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"
EIGHTH = {"dim": 4, "base": 1.62114, "pair": 1}  # base 16/π²: pair 1 turns by π/4 per position


def in_turn(body: str, value: object = None) -> object:
    return js.evaluate(Turn._esm, body, value)


def in_lock(body: str, value: object = None) -> object:
    return js.evaluate(Lock._esm, body, value)


def as_complex(flat: np.ndarray | list) -> np.ndarray:
    """x, y, x, y, … as x + iy: an independent way to turn, by multiplication with e^{iα}."""
    return np.array(flat)[..., 0::2] + 1j * np.array(flat)[..., 1::2]


def theta(dim: int, base: float) -> np.ndarray:
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


# ---- JavaScript and Python agree ----


# ---- What the turned vector claims, by complex numbers ----


@pytest.mark.parametrize("position, base, dim, pair", [(2, 1e4, 4, 0), (37, 500.0, 10, 3), (3000, 1e4, 64, 1)])
def test_every_pair_turns_counter_clockwise_by_its_angle(position, base, dim, pair):
    dials = {"position": position, "base": base, "dim": dim, "pair": pair}
    found = Turn.compute(dials)
    z = as_complex(range(1, dim + 1))
    angles = position * theta(dim, base)
    assert found["start"] == [*range(1, dim + 1)]
    np.testing.assert_allclose(found["angles"], angles, rtol=1e-14)
    np.testing.assert_allclose(as_complex(found["turned"]), z * np.exp(1j * angles), rtol=1e-11)
    turn_ = cmath.exp(1j * angles[pair])
    np.testing.assert_allclose(found["matrix"], [turn_.real, -turn_.imag, turn_.imag, turn_.real], atol=1e-12)
    assert found["before"] == pytest.approx(abs(z[pair]), rel=1e-14)
    assert found["after"] == pytest.approx(abs(z[pair]), rel=1e-14)
    assert found["young"] == sum(angles < 2 * math.pi)
    first = max(0, position - 15)
    assert found["trailStart"] == first
    past = np.arange(first, position + 1) * theta(dim, base)[pair]
    np.testing.assert_allclose(as_complex(found["trail"]), z[pair] * np.exp(1j * past), rtol=1e-11)
    start = max(0, position - 24)
    assert found["first"] == start
    at = start + np.arange(48 * 8 + 1) / 8
    x, y = np.array(found["waves"])
    np.testing.assert_allclose(x + 1j * y, z[pair] * np.exp(1j * at * theta(dim, base)[pair]), rtol=1e-11)


def test_an_eighth_of_a_turn_per_position():
    """The drawing by which the subject is usually introduced: π/4."""
    for position in range(9):
        found = Turn.compute({"position": position, **EIGHTH})
        assert found["angles"][1] == pytest.approx(position * math.pi / 4, rel=1e-6)
        corner = (3 + 4j) * cmath.exp(1j * position * math.pi / 4)
        assert found["turned"][2:] == pytest.approx([corner.real, corner.imag], abs=1e-4)


def test_the_example_by_hand():
    """R₂(1, 2, 3, 4) with angles 2 and 0.02: (cos 2 − 2 sin 2, sin 2 + 2 cos 2, 3 cos 0.02 − 4 sin 0.02, …)."""
    c, s, c2, s2 = math.cos(2), math.sin(2), math.cos(0.02), math.sin(0.02)
    by_hand = [c - 2 * s, s + 2 * c, 3 * c2 - 4 * s2, 3 * s2 + 4 * c2]
    found = Turn.compute({"position": 2, "base": 1e4, "dim": 4, "pair": 0})["turned"]
    assert found == pytest.approx(by_hand, rel=1e-14)


def test_terms_of_a_turned_vector():
    dials = {"position": 5, "base": 100.0, "dim": 4, "pair": 1}
    terms, data = Turn.terms(dials), Turn.compute(dials)
    assert set(terms) == set(data)
    assert [terms[name] for name in ("young", "trailStart", "first")] == [0, 0, 0]
    np.testing.assert_allclose(terms["turned"], [5**0.5, 5**0.5, 5, 5])
    assert [terms[name] for name in ("before", "after", "trail", "waves")] == [5, 5, 5, 5]
    assert terms["angles"] == data["angles"]


# ---- What the lock claims ----


def by_complex_numbers(dials: dict, shift: int) -> tuple[complex, complex, complex, complex]:
    """Query and key of every pair, turned and with the encoding added, as complex numbers."""
    dim, base = dials["dim"], dials["base"]
    q, k = (as_complex(draws.normals(f"lock {name} {dials['draw']}", dim)) for name in ("query", "key"))
    at = [(dials[name] + shift) * theta(dim, base) for name in "mn"]
    code = [np.sin(angle) + 1j * np.cos(angle) for angle in at]
    return q * np.exp(1j * at[0]), k * np.exp(1j * at[1]), q + code[0], k + code[1]


@pytest.mark.parametrize("m, n, shift, base, dim, pair", [(9, 4, 7, 1e4, 8, 2), (0, 300, 255, 50.0, 34, 16)])
def test_scores_and_arrows_of_the_lock(m, n, shift, base, dim, pair):
    dials = {"m": m, "n": n, "shift": shift, "base": base, "dim": dim, "pair": pair, "draw": 3}
    found, terms = Lock.compute(dials), Lock.terms(dials)
    assert set(terms) == set(found)
    for t in (0, 1, shift):
        turned_q, turned_k, summed_q, summed_k = by_complex_numbers(dials, t)
        assert found["ropeCurve"][t] == pytest.approx((turned_q * turned_k.conj()).real.sum(), abs=1e-11)
        assert found["addedCurve"][t] == pytest.approx((summed_q * summed_k.conj()).real.sum(), abs=1e-11)
    np.testing.assert_allclose(as_complex(found["turned"]), [turned_q[pair], turned_k[pair]], atol=1e-12)
    np.testing.assert_allclose(as_complex(found["summed"]), [summed_q[pair], summed_k[pair]], atol=1e-12)
    turn_q = np.exp(1j * (m + shift) * theta(dim, base))
    assert complex(*found["bare"][:2]) == pytest.approx(turned_q[pair] / turn_q[pair], rel=1e-11)
    assert found["turnedProduct"] == pytest.approx((turned_q * turned_k.conj()).real[pair], abs=1e-12)
    assert found["summedProduct"] == pytest.approx((summed_q * summed_k.conj()).real[pair], abs=1e-12)
    assert [len(found["ropeCurve"]), len(found["addedCurve"])] == [256, 256]
    home = [found["ropeCurve"][0], found["addedCurve"][0], found["ropeCurve"][shift], found["addedCurve"][shift]]
    assert [found[name] for name in ("ropeHome", "addedHome", "rope", "added")] == home
    assert terms["rope"] == pytest.approx((np.abs(turned_q) * np.abs(turned_k)).sum())
    assert terms["turnedProduct"] == pytest.approx(np.abs(turned_q * turned_k)[pair])
    assert terms["added"] >= (np.abs(summed_q) * np.abs(summed_k)).sum() - 1e-9
    assert terms["summedProduct"] >= np.abs(summed_q * summed_k)[pair] - 1e-9


def test_the_shift_moves_the_added_score_only_and_m_moves_both():
    """In both languages, for every draw: RoPE's score is level to rounding, the other one wanders."""
    cases = [{**Lock().dials(), "draw": draw, "dim": 64} for draw in range(16)]
    for dials, from_js in zip(cases, js.compute(Lock._esm, cases), strict=True):
        further = Lock.compute({**dials, "m": dials["m"] + 1})
        for found in (Lock.compute(dials), from_js):
            assert np.ptp(found["ropeCurve"]) < 1e-14 * Lock.terms(dials)["rope"] * 4
            assert np.ptp(found["addedCurve"]) > 5
            assert abs(further["rope"] - found["rope"]) > 1e-3
            assert abs(further["added"] - found["added"]) > 1e-3
    apart = [Lock.compute({**cases[0], "m": m, "n": n, "shift": shift})["rope"] for m, n, shift in
             [(5, 2, 0), (1005, 1002, 0), (5, 2, 200), (105, 102, 99)]]  # fmt: skip
    assert np.ptp(apart) < 1e-11
    swapped = Lock.compute({**cases[0], "m": 2, "n": 5, "shift": 0})["rope"]
    assert abs(swapped - apart[0]) > 0.1  # not the same in the other direction


# ---- Traits ----

BAD = [
    (Turn, {"position": -1}, "position must be an integer >= 0 and <= 4096, got -1"),
    (Turn, {"position": 4097}, "position must be an integer >= 0 and <= 4096, got 4097"),
    (Turn, {"position": 1.5}, r"position must be an integer >= 0 and <= 4096, got 1\.5"),
    (Turn, {"base": 0.99}, r"base must be a finite number >= 1\.0 and <= 10000000\.0, got 0\.99"),
    (Turn, {"base": float("nan")}, "base must be a finite number .*, got nan"),
    (Turn, {"dim": 7}, "dim must be an even integer >= 2 and <= 512, got 7"),
    (Turn, {"dim": 514}, "dim must be an integer >= 2 and <= 512, got 514"),
    (Turn, {"pair": -1}, "pair must be an integer >= 0 and <= 255, got -1"),
    (Turn, {"pair": 8}, "pair must be an integer >= 0 and <= 7, for dim is 16, got 8"),
    (Lock, {"m": 4097}, "m must be an integer >= 0 and <= 4096, got 4097"),
    (Lock, {"n": -1}, "n must be an integer >= 0 and <= 4096, got -1"),
    (Lock, {"n": True}, "n must be an integer >= 0 and <= 4096, got True"),
    (Lock, {"shift": 256}, "shift must be an integer >= 0 and <= 255, got 256"),
    (Lock, {"shift": -1}, "shift must be an integer >= 0 and <= 255, got -1"),
    (Lock, {"base": 1.1e7}, "base must be a finite number >= 1.0 and <= 10000000.0, got 11000000.0"),
    (Lock, {"dim": 0}, "dim must be an integer >= 2 and <= 512, got 0"),
    (Lock, {"pair": 8}, "pair must be an integer >= 0 and <= 7, for dim is 16, got 8"),
    (Lock, {"draw": 16}, "draw must be an integer >= 0 and <= 15, got 16"),
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


@every_explorer
def test_every_limit_is_allowed_and_the_pair_stays_within_the_dimension(explorer):
    for end in ("min", "max"):
        dials = {name: getattr(trait, end) for name, trait in explorer.dial_traits().items()}
        dials["pair"] = dials["dim"] // 2 - 1
        assert explorer(**dials).dials() == dials
    figure = explorer(dim=64, pair=31)
    figure.dim = 64
    assert figure.pair == 31
    figure.dim = 62
    assert figure.pair == 30
    figure.dim = 2
    assert figure.pair == 0
    figure.set_state({"dim": 20, "pair": 9})  # what arrives from the page, in either order
    figure.set_state({"pair": 49, "dim": 100})
    assert (figure.dim, figure.pair) == (100, 49)
    assert explorer(dim=2).pair == 0
    spied = explorer._esm.replace("export default explorer(", "export default ((spec) => (globalThis.spec = spec))(")
    main = "import e from './e.mjs'; console.log(JSON.stringify([[4, 9], [4, 1], [512, 255]].map(([dim, pair]) => "
    settled = js._run({"e.mjs": spied, "main.mjs": main + "globalThis.spec.settle({ dim, pair, x: 1 }))));"}, None)
    assert settled == [{"dim": 4, "pair": 1, "x": 1}, {"dim": 4, "pair": 1, "x": 1}, {"dim": 512, "pair": 255, "x": 1}]


# ---- Words in JavaScript ----

DESCRIBE = "return input.map((values) => describe(compute(values), values));"


def test_the_turned_vector_in_words():
    cases = [
        {"position": 1, **EIGHTH},
        {"position": 7, "base": 1e4, "dim": 2, "pair": 0},
        {"position": 63, "base": 1e4, "dim": 8, "pair": 0},
        {"position": 0, "base": 1.0, "dim": 6, "pair": 2},
    ]
    eighth, alone, far, home = in_turn(DESCRIBE, cases)
    assert eighth == (
        "At position 1 pair 1 has turned counter-clockwise by 0.785 radians: 45.0°. Its length is what it was. "
        "2 of 2 pairs have not made a full turn yet."
    )
    assert "by 7.00 radians: 1 full turn and 41.1° more." in alone
    assert alone.endswith("Every pair has made at least one full turn.")
    assert f"10 full turns and {math.degrees(63) - 3600:.3f}° more" in far
    assert far.endswith("2 of 4 pairs have not made a full turn yet.")
    assert "by 0 radians: 0°." in home
    angles = [0, 2e-7, 0.005, 0.1, 1, 100]
    assert in_turn("return input.map(degrees);", angles) == [
        "0°",
        "1.1 × 10⁻⁵°",
        "0.286°",
        "5.730°",
        "57.3°",
        "5729.6°",
    ]
    assert in_turn("return input.map(shortAngle);", [0, 1e-5, 0.006, 1.234, 123.4]) == [
        "0",
        "< 0.01",
        "0.01",
        "1.23",
        "123",
    ]


def test_the_lock_in_words():
    dials = {**Lock().dials(), "m": 3, "n": 9, "shift": 100}
    found = Lock.compute(dials)
    least, most = (still.exact(bound(found["addedCurve"]), 2) for bound in (min, max))
    assert in_lock(DESCRIBE, [dials]) == [
        f"Query at 103, key at 109: distance −6. RoPE’s score is {still.exact(found['rope'], 4)} at every shift. With "
        f"the encoding added it goes from {least} to {most} as both slide by 0 to 255 positions."
    ]


def test_angles_between_arrows():
    pairs = [[[1, 0], [1, 0]], [[0, 2], [3, 0]], [[3, 0], [0, 2]], [[-1, -1e-9], [1, 0]], [[-1, 1e-9], [1, 0]]]
    found = in_lock("return input.map(([q, k]) => angleBetween(q, k));", pairs)
    assert found == pytest.approx([0, math.pi / 2, -math.pi / 2, -math.pi, math.pi], abs=1e-8)


@pytest.mark.parametrize(
    "values, levels",
    [([3, 12], [0, 5, 10, 15]), ([-2.71, 9.37], [-5, 0, 5, 10]), ([-30, -2], [-30, -20, -10, 0]), ([0], [0, 1])],
)
def test_levels_of_the_scores(values, levels):
    assert in_lock("return reach(input);", values) == levels


# ---- Stills ----


def drawing(figure) -> ElementTree.Element:
    return ElementTree.fromstring(figure.still())


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def strokes(root: ElementTree.Element, colour: str, width: float) -> list[str]:
    """The paths that are lines of this colour and width."""
    wanted = re.compile(rf"stroke:var\(--fig-{colour}, .*stroke-width:{width:g}$")
    return [path.get("d") for path in root.iter(f"{SVG}path") if wanted.search(path.get("style"))]


def points(d: str) -> np.ndarray:
    return np.array([[float(n) for n in point.split(",")] for point in re.findall(r"-?[\d.]+,-?[\d.]+", d)])


@every_explorer
@pytest.mark.parametrize("end", ["min", "max", "default"])
def test_stills_are_one_picture_with_everything_inside(explorer, end):
    dials = {} if end == "default" else {n: getattr(t, end) for n, t in explorer.dial_traits().items() if n != "pair"}
    figure = explorer(**dials)
    text = figure.still()
    root = ElementTree.fromstring(text)
    assert root.get("aria-label") == figure.alt
    assert len(text) < 60_000
    assert "\n" not in text
    width, height = float(root.get("width")), float(root.get("height"))
    for mark in root.iter(f"{SVG}text"):
        size = 16 if "font-size:16px" in mark.get("style") else 13
        length = 0.62 * size * len(mark.text)
        left = float(mark.get("x")) - {"start": 0, "middle": length / 2, "end": length}[mark.get("text-anchor")]
        assert left >= 0, mark.text
        assert left + length <= width + 8, mark.text
        assert 0 < float(mark.get("y")) <= height
    for path in root.iter(f"{SVG}path"):
        absolute = re.findall(r"[ML]([-\d.]+),([-\d.]+)", path.get("d"))
        assert all(0 <= float(x) <= width and 0 <= float(y) <= height for x, y in absolute)
    assert "nan" not in text


@pytest.mark.parametrize("position, base, dim, pair", [(5, 1e4, 16, 1), (23, 100.0, 4, 0), (0, 1e4, 2, 0)])
def test_the_still_turns_the_pair(position, base, dim, pair):
    figure = Turn(position=position, base=base, dim=dim, pair=pair)
    root, angle = drawing(figure), position * base ** (-2 * pair / dim)
    start = complex(2 * pair + 1, 2 * pair + 2)
    direction = start / abs(start)

    def place(z: complex, radius: float = 128) -> list[float]:
        return [160 + radius * z.real, 204 - radius * z.imag]

    before, now = strokes(root, "muted", 2), strokes(root, "1", 3)
    np.testing.assert_allclose(points(before[0])[:2], [[160, 204], place(direction)], atol=0.006)
    tip = direction * cmath.exp(1j * angle)
    np.testing.assert_allclose(points(now[0])[:2], [[160, 204], place(tip)], atol=0.006)
    [arc] = [d for d in strokes(root, "1", 1.5) if "46.08" in d and d.count("M") <= 2]
    full = angle >= 2 * math.pi
    assert arc.count("M") == 1 + full
    found = re.search(r"M([-\d.]+),([-\d.]+)A46\.08,46\.08 0 (\d) 0 ([-\d.]+),([-\d.]+)$", arc).groups()
    assert [float(n) for n in found[:2]] == pytest.approx(place(direction, 46.08), abs=0.006)
    assert [float(n) for n in found[3:]] == pytest.approx(place(tip, 46.08), abs=0.006)
    assert int(found[2]) == (angle % (2 * math.pi) > math.pi)
    trail = [mark for mark in root.iter(f"{SVG}circle") if mark.get("r") == "4"]
    at = np.arange(max(0, position - 15), position + 1) * base ** (-2 * pair / dim)
    expected = [place(direction * cmath.exp(1j * one)) for one in at]
    np.testing.assert_allclose([[float(m.get("cx")), float(m.get("cy"))] for m in trail], expected, atol=1e-3)
    found = texts(root)
    assert f"Pair {pair}: entries {2 * pair} and {2 * pair + 1}" in found
    assert f"Turned by {position}θ{still.lowered(pair)} = {angle:.4g} rad = {math.degrees(angle):.1f}°" in found
    c, s = math.cos(angle), math.sin(angle)
    turned = start * cmath.exp(1j * angle)
    for value in (c, s, -s, turned.real, turned.imag):
        assert still.exact(value) in found


def test_the_still_names_the_newest_positions_where_there_is_room():
    found = texts(drawing(Turn(position=5, dim=16, pair=1)))
    assert [name for name in found if re.fullmatch(r"\d", name)][:6] == ["5", "4", "3", "2", "1", "0"]
    slow = [mark for mark in drawing(Turn(position=5, dim=16, pair=7)).iter(f"{SVG}text") if mark.text in "012345"]
    inside = [mark.text for mark in slow if float(mark.get("x")) < 330 and mark.get("text-anchor") == "middle"]
    assert inside == ["5"]
    bold = [mark.text for mark in slow if "font-weight" in mark.get("style")]
    assert bold == ["5"]


def test_the_still_draws_both_coordinates():
    figure = Turn(position=100, dim=4, base=50, pair=0)
    root = drawing(figure)
    low, high, left, right = 316, 206, 430, 720
    for colour, shift in (("3", 0), ("4", -math.pi / 2)):
        [curve] = strokes(root, colour, 2)
        drawn = points(curve)
        at = 76 + (drawn[:, 0] - left) / (right - left) * 48
        wave = np.cos(at + math.atan2(2, 1) + shift)
        assert len(drawn) == 193
        assert np.abs(((low + high) / 2 - drawn[:, 1]) / (low - high) * 2 - wave).max() < 0.02
    found = texts(root)
    for text in ("entry 0", "entry 1", "2.24", "−2.24", "0", "76", "100", "124"):
        assert text in found
    [marker] = strokes(root, "ink", 1.5)
    assert points(marker).tolist() == [[575, 202], [575, 320]]
    assert "0" in texts(drawing(Turn(position=3)))
    shown = [mark.text for mark in drawing(Turn(position=3)).iter(f"{SVG}text") if mark.get("y") == "336"]
    assert shown == ["3", "48"]  # 0 would overlap with 3
    assert {"285", "−285"} <= set(texts(drawing(Turn(dim=512, pair=100))))
    assert {"5", "−5"} <= set(texts(drawing(Turn(pair=1))))


@pytest.mark.parametrize("dim, position, columns, size", [(16, 20, 8, 90), (2, 3, 8, 90), (512, 20, 45, 16)])
def test_small_dials_of_the_still(dim, position, columns, size):
    figure = Turn(dim=dim, position=position, pair=dim // 2 - 1)
    root, angles = drawing(figure), position * theta(dim, 1e4)
    wide = max(1.25, 0.42 * size / 12)
    hands = [re.findall(r"M([-\d.]+),([-\d.]+)l([-\d.]+),([-\d.]+)", d) for c in "12" for d in strokes(root, c, wide)]
    hands = [[float(n) for n in hand] for part in hands for hand in part]
    z = as_complex(range(1, dim + 1))
    expected = z / np.abs(z) * np.exp(1j * angles) * 0.84 * 0.42 * size
    order = [*np.flatnonzero(angles >= 2 * math.pi), *np.flatnonzero(angles < 2 * math.pi)]
    assert len(hands) == dim // 2
    for (x, y, dx, dy), i in zip(hands, order, strict=True):
        assert (x, y) == pytest.approx(((i % columns + 0.5) * size, 414 + (i // columns + 0.5) * size), abs=0.051)
        assert (dx, -dy) == pytest.approx((expected[i].real, expected[i].imag), abs=0.051)
    [chosen] = [d for d in strokes(root, "ink", 2) if "a" in d]
    last = dim // 2 - 1
    centre = ((last % columns + 0.5) * size, 414 + (last // columns + 0.5) * size)
    assert chosen == still.ring(centre, 0.42 * size + 3)
    young = int((angles < 2 * math.pi).sum())
    title = "The only pair" if dim == 2 else f"All {dim // 2} pairs"
    assert f"{title} at position {position}" in texts(root)
    assert f"Orange: no full turn yet ({young} of {dim // 2})" in texts(root)
    rings = sum(d.count("a") for c in ("grid", "1") for d in strokes(root, c, 1.5) if "M" in d) // 2
    assert rings >= dim // 2


def test_titles_of_the_small_dials():
    assert "Both pairs at position 2" in texts(drawing(Turn(dim=4, position=2, pair=0)))
    assert "Every pair has made a full turn" in texts(drawing(Turn(dim=2, position=7)))


@pytest.mark.parametrize("dials", [{}, {"dim": 2, "shift": 255}, {"dim": 64, "m": 300, "pair": 20, "draw": 4}])
def test_the_still_of_the_lock(dials):
    figure = Lock(**dials)
    root, data = drawing(figure), figure.compute(figure.dials())
    bare, found = np.reshape(data["bare"], (2, 2)), texts(root)
    unit = 118 / (np.linalg.norm(bare, axis=1).max() + 1)
    for colour, row in (("3", 0), ("4", 1)):
        arrows = strokes(root, colour, 3)
        for left, name, arrow in zip((0, 390), ("turned", "summed"), arrows, strict=True):
            tip = np.reshape(data[name], (2, 2))[row] * unit * [1, -1] + [left + 150, 170]
            np.testing.assert_allclose(points(arrow)[:2], [[left + 150, 170], tip], atol=0.006)
        for left, arrow in zip((0, 390), strokes(root, colour, 1), strict=True):
            tip = bare[row] * unit * [1, -1] + [left + 150, 170]
            np.testing.assert_allclose(points(arrow)[:2], [[left + 150, 170], tip], atol=0.006)
    rings = [d for d in strokes(root, "grid", 1.5) if "a" in d]
    lengths = np.linalg.norm(np.reshape(data["turned"], (2, 2)), axis=1)
    assert rings[0] == "".join(still.ring((150, 170), length * unit) for length in lengths)
    assert rings[1].count(f"a{unit:.2f}") == 4
    assert f"R{still.lowered(figure.m + figure.shift)}q and R{still.lowered(figure.n + figure.shift)}k" in found
    for text in (data["turnedProduct"], data["summedProduct"]):
        assert f"product {still.exact(text, 4)}" in found
    for name in ("rope", "added"):
        word = "RoPE" if name == "rope" else "sinusoidal"
        assert f"{word} {still.exact(data[name], 4)}" in found
    assert ("Score over the only pair" if figure.dim == 2 else f"Score over all {figure.dim // 2} pairs") in found
    values = [*data["ropeCurve"], *data["addedCurve"], 0]
    low, high = min(values), max(values)
    for colour, width, name in (("1", 2.5, "ropeCurve"), ("2", 1.5, "addedCurve")):
        [curve] = strokes(root, colour, width)
        drawn = points(curve)
        np.testing.assert_allclose(drawn[:, 0], 52 + np.arange(256) / 255 * 664, atol=0.051)
        np.testing.assert_allclose(
            high - (drawn[:, 1] - 390) / 150 * (high - low), data[name], atol=0.001 * (high - low)
        )
    assert len({y for _, y in points(strokes(root, "1", 2.5)[0]).tolist()}) == 1  # level
    dots = [(mark.get("cx"), mark.get("r")) for mark in root.iter(f"{SVG}circle")]
    x = f"{round(52 + figure.shift / 255 * 664, 1):.6g}"
    assert dots == [(x, "5"), (x, "5")]
    ticks = [mark.text for mark in root.iter(f"{SVG}text") if mark.get("y") == "564"]
    assert ticks == [f"shift {t}" if t == figure.shift else str(t) for t in sorted({0, 255, figure.shift})
                     if t == figure.shift or abs(t - figure.shift) > 20]  # fmt: skip
