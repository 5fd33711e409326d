"""The explorers of chapter *Sinusoidal positions*: JavaScript against Python, Python against the formula, stills."""

from __future__ import annotations

import base64
import math
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest
import traitlets

from ropebook import explorers
from ropebook.explorers import clocks
from ropebook.explorers.clocks import Clocks
from ropebook.explorers.heatmap import Heatmap
from tests.explorers import js

ALL = [Heatmap, Clocks]
every_explorer = pytest.mark.parametrize("explorer", ALL, ids=lambda explorer: explorer.__name__)
SVG = "{http://www.w3.org/2000/svg}"


def in_heatmap(body: str, value: object = None) -> object:
    return js.evaluate(Heatmap._esm, body, value)


def in_clocks(body: str, value: object = None) -> object:
    return js.evaluate(Clocks._esm, body, value)


def theta(dim: int, base: float) -> np.ndarray:
    return np.array([base ** (-2 * i / dim) for i in range(dim // 2)])


# ---- JavaScript and Python agree ----


# ---- What the heatmap claims, by the formula ----


@pytest.mark.parametrize("interleaved", [True, False])
def test_cells_are_the_encoding(interleaved):
    dials = {"base": 300.0, "dim": 6, "length": 9, "reference": 4, "interleaved": interleaved}
    found = Heatmap.compute(dials)
    angle = np.outer(theta(6, 300.0), np.arange(9))
    rows = [np.sin(angle), np.cos(angle)]
    expected = np.stack(rows, axis=1).reshape(6, 9) if interleaved else np.concatenate(rows)
    assert (found["rows"], found["columns"], found["per"]) == (6, 9, 1)
    np.testing.assert_allclose(np.reshape(found["cells"], (6, 9)), expected, atol=1e-15)
    np.testing.assert_allclose(np.reshape(Heatmap.terms(dials)["cells"], (6, 9)), np.abs(expected), atol=1e-15)


@pytest.mark.parametrize("length, per, columns", [(641, 2, 321), (1280, 2, 640), (1281, 3, 427), (4096, 7, 586)])
def test_more_positions_than_columns_are_blended(length, per, columns):
    dials = {"base": 100.0, "dim": 4, "length": length, "reference": 0, "interleaved": True}
    found, terms = Heatmap.compute(dials), Heatmap.terms(dials)
    assert (found["rows"], found["columns"], found["per"]) == (4, columns, per)
    cells, sizes = np.reshape(found["cells"], (4, columns)), np.reshape(terms["cells"], (4, columns))
    for column in (0, 1, columns // 2, columns - 1):
        middle = column * per + (per - 1) / 2
        near = [m for m in range(-100, length + 100) if abs(m - middle) < 2 * per]
        weights = [math.cos(math.pi * (m - middle) / (4 * per)) ** 2 for m in near]
        for row, (wave, one) in enumerate([(math.sin, 1), (math.cos, 1), (math.sin, 0.1), (math.cos, 0.1)]):
            terms_ = [weight * wave(m * one) / sum(weights) for weight, m in zip(weights, near, strict=True)]
            assert cells[row, column] == pytest.approx(math.fsum(terms_), abs=1e-13)
            assert sizes[row, column] == pytest.approx(math.fsum(map(abs, terms_)), abs=1e-13)


def test_waves_too_short_for_the_columns_vanish():
    """A wave of 7.2 positions, seven to a column: sampled, or averaged over each column, it would be a slow wave."""
    dials = {"base": 1.0, "dim": 2, "length": 4096, "reference": 0, "interleaved": True}
    cells = np.reshape(Heatmap.compute(dials)["cells"], (2, -1))
    assert np.abs(cells).max() < 0.03
    gains = in_heatmap("return input.map(([theta, per]) => meanGain(theta, per));", [[0.8727, 7], [0.4, 7], [0.01, 7]])
    assert abs(gains[0]) < 0.03
    assert 0.04 < gains[1] < 0.06
    assert 0.998 < gains[2] < 0.999
    shorter = [[x, per] for per in (4, 5, 6, 7) for x in np.linspace(math.pi / per, 1, 40) if x >= math.pi / per]
    assert np.abs(in_heatmap("return input.map(([theta, per]) => meanGain(theta, per));", shorter)).max() < 0.03


def test_the_kernel_is_the_mean_cosine_of_the_distance():
    dials = {"base": 77.0, "dim": 8, "length": 30, "reference": 11, "interleaved": False}
    found, terms = Heatmap.compute(dials), Heatmap.terms(dials)
    cosines = np.cos(np.outer(np.arange(30) - 11, theta(8, 77.0)))
    np.testing.assert_allclose(found["kernel"], cosines.mean(-1), atol=1e-15)
    np.testing.assert_allclose(terms["kernel"], np.abs(cosines).mean(-1), atol=1e-15)
    assert found["kernel"][11] == 1
    np.testing.assert_allclose(found["kernel"][:11], found["kernel"][22:11:-1], atol=1e-15)
    np.testing.assert_allclose(found["wavelengths"], 2 * math.pi / theta(8, 77.0), rtol=1e-14)
    assert terms["wavelengths"] == found["wavelengths"]
    assert [terms[name] for name in ("rows", "columns", "per", "turned")] == [0, 0, 0, 0]


@pytest.mark.parametrize("length, turned", [(1, 0), (7, 0), (8, 1), (63, 1), (64, 2), (629, 2), (630, 3)])
def test_how_many_pairs_have_turned(length, turned):
    """Wavelengths 6.28, 62.8, 628 and 6283; the last position is length − 1."""
    dials = {"base": 1e4, "dim": 8, "length": length, "reference": 0, "interleaved": False}
    assert Heatmap.compute(dials)["turned"] == turned


# ---- What the clocks claim ----


def test_digits_and_hands_of_a_position():
    dials = {"position": 1234, "base": 8192.0, "dim": 26, "span": 20}
    found, terms = Clocks.compute(dials), Clocks.terms(dials)
    assert found["digits"] == [int(digit) for digit in reversed(f"{1234:013b}")]
    angle = 1234 * theta(26, 8192.0)
    np.testing.assert_allclose(found["turns"], angle / (2 * math.pi), rtol=1e-14)
    np.testing.assert_allclose(found["encoding"], np.stack([np.sin(angle), np.cos(angle)], -1).ravel(), atol=1e-12)
    np.testing.assert_allclose(found["wavelengths"][1:], 2 * np.array(found["wavelengths"][:-1]), rtol=1e-12)
    assert found["wavelengths"][0] == 2 * math.pi
    assert found["young"] == sum(length > 1234 for length in found["wavelengths"]) == 5
    for name in ("start", "fine", "shown", "digits", "squares", "young"):
        assert terms[name] == 0
    for name in ("bitWaves", "waves", "turns", "encoding", "wavelengths"):
        np.testing.assert_array_equal(terms[name], np.abs(found[name]))


@pytest.mark.parametrize(
    "position, span, start, fine",
    [(100, 64, 68, 8), (100, 9, 96, 32), (3, 64, 0, 8), (2000, 300, 1850, 1), (0, 512, 0, 1), (9, 256, 0, 2)],
)
def test_the_window_around_a_position(position, span, start, fine):
    found = Clocks.compute({"position": position, "base": 100.0, "dim": 4, "span": span})
    assert (found["start"], found["fine"]) == (start, fine)
    whole = np.arange(start, start + span)
    assert found["squares"] == [[m >> j & 1 for m in whole.tolist()] for j in range(13)]
    at = np.array([start - 0.5 + (k + 0.5) / fine for k in range(span * fine)])
    np.testing.assert_allclose(found["waves"], np.sin(np.outer([1, 0.1], at)), atol=1e-12)
    inside = [-np.sin(2 * math.pi * (at + 0.5) / 2 ** (j + 1)) for j in range(13)]
    np.testing.assert_allclose(found["bitWaves"], inside, atol=1e-11)
    # the wave is positive where the digit is 1
    centres = np.array(found["bitWaves"])[:, fine // 2 :: fine]
    assert ((centres > 0) == (np.array(found["squares"]) == 1)).all()


@pytest.mark.parametrize(
    "dim, shown",
    [
        (2, [0]),
        (26, list(range(13))),
        (28, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13]),
        (512, [0, 21, 42, 63, 85, 106, 127, 148, 170, 191, 212, 233, 255]),
    ],
)
def test_which_pairs_are_drawn_as_waves(dim, shown):
    dials = {"position": 5, "base": 1e4, "dim": dim, "span": 10}
    found = Clocks.compute(dials)
    assert found["shown"] == shown
    assert len(found["waves"]) == len(shown)
    k = len(shown) - 1
    assert found["waves"][k][found["fine"] // 2] == pytest.approx(
        math.sin(theta(dim, 1e4)[shown[k]] * (0.5 / 32)), rel=1e-9
    )
    assert len(found["turns"]) == dim // 2


# ---- Traits ----

BAD = [
    (Heatmap, {"base": 0.99}, r"base must be a finite number >= 1\.0 and <= 10000000\.0, got 0\.99"),
    (Heatmap, {"base": 1.1e7}, "base must be a finite number >= 1.0 and <= 10000000.0, got 11000000.0"),
    (Heatmap, {"base": float("nan")}, "base must be a finite number .*, got nan"),
    (Heatmap, {"base": True}, "base must be a finite number .*, got True"),
    (Heatmap, {"base": "10"}, "base must be a finite number .*, got '10'"),
    (Heatmap, {"dim": 0}, "dim must be an integer >= 2 and <= 512, got 0"),
    (Heatmap, {"dim": 514}, "dim must be an integer >= 2 and <= 512, got 514"),
    (Heatmap, {"dim": 7}, "dim must be an even integer >= 2 and <= 512, got 7"),
    (Heatmap, {"dim": 8.0}, r"dim must be an integer >= 2 and <= 512, got 8\.0"),
    (Heatmap, {"length": 0}, "length must be an integer >= 1 and <= 4096, got 0"),
    (Heatmap, {"length": 4097}, "length must be an integer >= 1 and <= 4096, got 4097"),
    (Heatmap, {"reference": -1}, "reference must be an integer >= 0 and <= 4095, got -1"),
    (Heatmap, {"reference": 4096}, "reference must be an integer >= 0 and <= 4095, got 4096"),
    (Heatmap, {"reference": 256}, "reference must be an integer >= 0 and <= 255, for length is 256, got 256"),
    (Heatmap, {"interleaved": 1}, "interleaved must be True or False, got 1"),
    (Clocks, {"position": -1}, "position must be an integer >= 0 and <= 4096, got -1"),
    (Clocks, {"position": 4097}, "position must be an integer >= 0 and <= 4096, got 4097"),
    (Clocks, {"base": 0}, "base must be a finite number >= 1.0 and <= 10000000.0, got 0"),
    (Clocks, {"base": 10**8}, "base must be a finite number >= 1.0 and <= 10000000.0, got 100000000"),
    (Clocks, {"dim": 3}, "dim must be an even integer >= 2 and <= 512, got 3"),
    (Clocks, {"dim": 1}, "dim must be an integer >= 2 and <= 512, got 1"),
    (Clocks, {"dim": 514}, "dim must be an integer >= 2 and <= 512, got 514"),
    (Clocks, {"span": 7}, "span must be an integer >= 8 and <= 4096, got 7"),
    (Clocks, {"span": 4097}, "span must be an integer >= 8 and <= 4096, got 4097"),
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


def test_defaults():
    expected = {"base": 1e4, "dim": 64, "length": 256, "reference": 128, "interleaved": False}
    assert Heatmap().dials() == expected
    assert Clocks().dials() == {"position": 100, "base": 1e4, "dim": 16, "span": 64}
    for figure in (Heatmap(), Clocks()):
        assert len(figure.alt) > 100


def test_the_reference_stays_within_the_length():
    figure = Heatmap(length=300, reference=299)
    figure.length = 300
    assert figure.reference == 299
    figure.length = 299
    assert figure.reference == 298
    figure.length = 1
    assert figure.reference == 0
    figure.set_state({"length": 50, "reference": 49})  # what arrives from the page, in either order
    figure.set_state({"reference": 99, "length": 100})
    assert (figure.length, figure.reference) == (100, 99)
    figure.length = 200
    assert figure.reference == 99
    assert Heatmap(length=100).reference == 99
    settle = "import e from './e.mjs'; const { settle } = globalThis.spec; console.log(JSON.stringify("
    spied = Heatmap._esm.replace("export default explorer(", "export default ((spec) => (globalThis.spec = spec))(")
    for before, after in [((100, 100), 99), ((100, 99), 99), ((1, 5), 0), ((4096, 7), 7)]:
        values = f"{{ length: {before[0]}, reference: {before[1]}, dim: 4 }}"
        found = js._run({"e.mjs": spied, "main.mjs": f"{settle}settle({values})));"}, None)
        assert found == {"length": before[0], "reference": after, "dim": 4}


# ---- Words and places in JavaScript ----


def test_rows_and_entries():
    body = """
      const entries = (order) => Array.from({ length: 8 }, (_, row) => entryOfRow(row, 8, order));
      const rows = (order) => Array.from({ length: 8 }, (_, entry) => rowOfEntry(entry, 8, order));
      return [entries(true), rows(true), entries(false), rows(false)];
    """
    assert in_heatmap(body) == [[*range(8)], [*range(8)], [0, 2, 4, 6, 1, 3, 5, 7], [0, 4, 1, 5, 2, 6, 3, 7]]


def test_what_stands_at_the_cursor():
    dials = {"base": 1e4, "dim": 8, "length": 40, "reference": 12, "interleaved": False}
    body = "return input.cursors.map((cursor) => readOut(cursor, compute(input.dials), input.dials));"
    cursors = [{"position": 10, "entry": 2}, {"position": 11, "entry": 7}]
    kernel = Heatmap.compute(dials)["kernel"]
    assert in_heatmap(body, {"dials": dials, "cursors": cursors}) == [
        f"Position 10, entry 2: sin 10θ₁ = {math.sin(1):.3f}. "
        f"Similarity to position 12, 2 places away: {kernel[10]:.3f}.",
        f"Position 11, entry 7: cos 11θ₃ = {math.cos(0.011):.2f}. "
        f"Similarity to position 12, 1 place away: {kernel[11]:.3f}.",
    ]


def test_the_heatmap_in_words():
    describe = "return input.map((values) => describe(compute(values), values));"
    dials = {"base": 1e4, "dim": 8, "length": 100, "reference": 0, "interleaved": False}
    cases = [dials, {**dials, "dim": 2}, {**dials, "length": 1}, {**dials, "base": 1.0, "reference": 99}]
    many, one_pair, alone, alike = in_heatmap(describe, cases)
    kernel = Heatmap.compute(dials)["kernel"]
    lowest = int(np.argmin(kernel))
    assert many == (
        "The first pair turns once in 6.28 positions, the last once in 6283. 2 of 4 pairs do not make a full turn "
        f"here. Similarity to position 0 is {kernel[1]:.3f} one place away and lowest, −{-kernel[lowest]:.4f}, "
        f"at position {lowest}."
    )
    assert one_pair.startswith("The only pair turns once in 6.28 positions. Every pair makes at least one full turn")
    assert alone.endswith("6283. One position alone has no distance to measure.")
    assert "Similarity to position 99 is 0.540 one place away and lowest, −1.00, at position 77" in alike


def test_the_clocks_in_words():
    dials = {"position": 100, "base": 1e4, "dim": 16, "span": 64}
    cases = [dials, {**dials, "dim": 2}, {**dials, "position": 0}, {**dials, "dim": 4, "position": 100}]
    some, single, none, one = in_clocks("return input.map((values) => describe(compute(values), values));", cases)
    assert some == (
        "The second hand, pair 0, turns once in 6.28 positions, the hour hand, pair 7, once in 19869. At position 100, "
        "1100100 in binary, the slowest 5 of 8 hands have not made a full turn."
    )
    assert single == (
        "The only hand turns once in 6.28 positions. "
        "At position 100, 1100100 in binary, every hand has made a full turn."
    )
    assert none.endswith("At position 0, 0 in binary, no hand has made a full turn.")
    assert one.endswith("the slowest hand has not made a full turn.")
    assert in_clocks("return [0, 0.004, 0.006, 1, 15.918].map(turnText);") == [
        "0.00",
        "< 0.01",
        "0.01",
        "1.00",
        "15.92",
    ]


# ---- Stills ----


def drawing(figure: explorers.Explorer) -> ElementTree.Element:
    root = ElementTree.fromstring(figure.still())
    assert root.tag == f"{SVG}svg"
    assert (root.get("role"), root.get("aria-label")) == ("img", figure.alt)
    return root


def texts(root: ElementTree.Element) -> list[str]:
    return [mark.text for mark in root.iter(f"{SVG}text")]


def numbers(path: str) -> np.ndarray:
    """The points of a path made of M and L."""
    return np.array([[float(n) for n in point.split(",")] for point in re.split("[ML]", path)[1:]])


@pytest.mark.parametrize(
    "figure", [Heatmap(), Heatmap(dim=512, length=4096), Clocks(), Clocks(position=0, dim=2, span=8)], ids=repr
)
def test_a_still_is_one_small_drawing_in_the_pages_colours(figure):
    root = drawing(figure)
    for mark in root:
        assert re.search(r"(fill|stroke):var\(--fig-\w+, #[0-9a-f]{6}\)", mark.get("style"))
    assert "\n" not in figure.still()
    assert len(figure.still()) < 40_000
    data, _ = figure._repr_mimebundle_()
    assert data["text/html"] == figure.still()


def test_the_still_of_many_clocks_stays_small():
    assert len(Clocks(dim=512, span=4096, position=4096).still()) < 70_000


def test_the_size_of_the_stills_and_their_words():
    for figure, size in [(Heatmap(), ["750", "476"]), (Clocks(), ["740", "530"])]:
        root = drawing(figure)
        assert [root.get("width"), root.get("height")] == size
    place = {mark.text: (mark.get("x"), mark.get("y"), mark.get("text-anchor")) for mark in root.iter(f"{SVG}text")}
    assert place["Binary digits: 1100100"] == ("0", "14", "start")
    assert place["Square waves, and the sinusoid inside each"] == ("0", "33", "start")
    assert place["Sinusoids: sin mθᵢ"] == ("390", "14", "start")
    assert place["4096"] == ("46", f"{66 + 11.5 * 254 / 13:.6g}", "end")
    assert place["−0.02"] == ("688", f"{66 + 3.5 * 254 / 8:.6g}", "start")
    assert place["Clock hands: tips at (sin, cos)"] == ("0", "380", "start")
    assert place["Orange: less than one turn since position 0 (5 of 8)"] == ("0", "399", "start")
    place = {mark.text: (mark.get("x"), mark.get("y")) for mark in drawing(Heatmap()).iter(f"{SVG}text")}
    assert place["The encoding"] == ("0", "14")
    assert place["Columns: positions. Rows: sines, then cosines. Blue above 0, orange below."] == ("0", "34")
    assert place["Similarity to position 128"] == ("0", "302")
    assert place["Σ cos θᵢΔ over d/2 = 32, where Δ = m − 128"] == ("0", "322")
    digits = [mark for mark in root.iter(f"{SVG}text") if mark.text in ("0", "1")]
    assert ["--fig-ink" in mark.get("style") for mark in digits] == [mark.text == "1" for mark in digits]


def grey(png: bytes) -> np.ndarray:
    """The grey levels 0 … 15 of a PNG, read chunk by chunk, each with its checksum."""
    assert png[:8] == b"\x89PNG\r\n\x1a\n"
    chunks, at = {}, 8
    while at < len(png):
        (size,) = struct.unpack(">I", png[at : at + 4])
        kind, data = png[at + 4 : at + 8], png[at + 8 : at + 8 + size]
        assert struct.unpack(">I", png[at + 8 + size : at + 12 + size]) == (zlib.crc32(kind + data),)
        chunks[kind] = data
        at += 12 + size
    assert list(chunks) == [b"IHDR", b"IDAT", b"IEND"]
    columns, rows, *kind = struct.unpack(">IIBBBBB", chunks[b"IHDR"])
    assert kind == [4, 0, 0, 0, 0]  # four bits of grey, nothing interlaced
    lines = np.frombuffer(zlib.decompress(chunks[b"IDAT"]), np.uint8).reshape(rows, -1)
    assert (lines[:, 0] == 0).all()
    return np.stack([lines[:, 1:] >> 4, lines[:, 1:] & 15], axis=-1).reshape(rows, -1)[:, :columns]


def layers(root: ElementTree.Element) -> np.ndarray:
    """What the two masked layers show together: −15 … 15."""
    found = {}
    for group in root.iter(f"{SVG}g"):
        mask, rect = group
        image = mask[0]
        assert rect.get("mask") == f"url(#{mask.get('id')})"
        assert (
            len({tuple(node.get(name) for name in ("x", "y", "width", "height")) for node in (mask, image, rect)}) == 1
        )
        colour = re.search(r"--fig-(\w+)", group.get("style"))[1]
        found[colour] = grey(base64.b64decode(image.get("href").removeprefix("data:image/png;base64,"))).astype(int)
        assert [rect.get(name) for name in ("x", "y", "width", "height")] == ["46", "52", "680", "224"]
    assert set(found) == {"pos", "neg"}
    assert not (found["pos"] * found["neg"]).any()
    return found["pos"] - found["neg"]


@pytest.mark.parametrize("dim, length, interleaved", [(8, 21, True), (128, 320, False), (2, 1, False)])
def test_the_stills_picture_is_the_encoding(dim, length, interleaved):
    figure = Heatmap(dim=dim, length=length, interleaved=interleaved, base=500)
    data = figure.compute(figure.dials())
    shown = layers(drawing(figure))
    np.testing.assert_array_equal(shown, np.rint(15 * np.reshape(data["cells"], (dim, length))))


def test_large_pictures_are_reduced_by_means():
    figure = Heatmap(dim=130, length=323)
    cells = np.reshape(figure.compute(figure.dials())["cells"], (130, 323))
    rows = [cells[2 * k : 2 * k + 2].mean(0) for k in range(65)]
    expected = np.array([[row[2 * k : 2 * k + 2].mean() for k in range(162)] for row in rows])
    shown = layers(drawing(figure))
    assert shown.shape == (65, 162)
    assert np.abs(shown / 15 - expected).max() <= 0.5 / 15 + 1e-12


def test_two_pictures_on_a_page_have_masks_of_their_own():
    ids = re.findall(r'<mask id="([^"]+)"', Heatmap().still() + Heatmap(base=9999).still())
    assert len(set(ids)) == 4
    assert Heatmap().still() == Heatmap().still()


def test_the_stills_curve_is_the_kernel():
    figure = Heatmap(dim=16, length=50, reference=20, interleaved=True)
    root = drawing(figure)
    kernel = figure.compute(figure.dials())["kernel"]
    [band] = [path for path in root.iter(f"{SVG}path") if "--fig-1" in path.get("style")]
    points = numbers(band.get("d"))
    there, back = points[:50], points[:49:-1]
    np.testing.assert_array_equal(there, back)  # one position to a bucket: the band is a line
    np.testing.assert_allclose((448 - there[:, 1]) / 55 - 1, kernel, atol=1e-4)
    np.testing.assert_allclose(there[:, 0], 46 + (np.arange(50) + 0.5) * 13.6, atol=1e-3)
    found = texts(root)
    for text in (
        "Similarity to position 20",
        "Σ cos θᵢΔ over d/2 = 8, where Δ = m − 20",
        "entry",
        "0",
        "20",
        "49",
    ):
        assert text in found
    assert "Columns: positions. Rows: entries in turn. Blue above 0, orange below." in found
    places = {mark.text: float(mark.get("x")) for mark in root.iter(f"{SVG}text") if mark.get("y") == "468"}
    assert "stroke-width:1.5" in band.get("style")
    assert places == pytest.approx({"20": 46 + 20.5 * 13.6, "0": 46 + 6.8, "49": 726 - 6.8}, abs=1e-3)
    levels = {path.get("d"): path.get("style") for path in root.iter(f"{SVG}path") if path is not band}
    assert {d: re.search(r"--fig-(\w+)", style)[1] for d, style in levels.items()} == {
        "M46,448L726,448": "grid",
        "M46,393L726,393": "muted",
        "M46,338L726,338": "grid",
    }
    ticks = {mark.text: mark.get("y") for mark in root.iter(f"{SVG}text") if mark.get("x") == "38"}
    assert ticks == {"−1": "452", "0": "397", "1": "342"}


def test_the_stills_curve_of_many_positions_is_a_band():
    figure = Heatmap(length=4096, dim=6, reference=2)
    root = drawing(figure)
    kernel = np.array(figure.compute(figure.dials())["kernel"])
    [band] = [path for path in root.iter(f"{SVG}path") if "--fig-1" in path.get("style")]
    points = numbers(band.get("d"))
    assert len(points) == 680
    values = (448 - points[:, 1]) / 55 - 1
    buckets = np.array_split(kernel, 340)
    np.testing.assert_allclose(values[:340], [bucket.max() for bucket in buckets], atol=1e-4)
    np.testing.assert_allclose(values[:339:-1], [bucket.min() for bucket in buckets], atol=1e-4)
    assert (values[:340] - values[:339:-1]).min() > 0.1
    assert "Columns: blends of 27 positions. Rows: sines, then cosines. Blue above 0, orange below." in texts(root)
    assert "0" in texts(root)  # the level; position 0 would overlap with the reference
    assert [mark.text for mark in root.iter(f"{SVG}text") if mark.get("y") == "468"] == ["2", "4095"]
    assert "Columns: blends of 8 positions." in Heatmap(length=1280).still()
    halves = {mark.text: mark for mark in root.iter(f"{SVG}text") if mark.text in ("sines", "cosines")}
    assert {name: (mark.get("x"), mark.get("y")) for name, mark in halves.items()} == {
        "sines": ("32", "108"),
        "cosines": ("32", "220"),
    }


def paths(root: ElementTree.Element) -> list[tuple[str, str]]:
    """Colour and path of every path that is a line, and of the areas too."""
    return [(re.search(r"--fig-(\w+)", p.get("style"))[1], p.get("d")) for p in root.iter(f"{SVG}path")]


def test_the_still_of_the_clocks_says_what_it_shows():
    figure = Clocks(position=100, dim=16, span=64)
    data = figure.compute(figure.dials())
    found = texts(drawing(figure))
    for j, digit in enumerate(data["digits"]):
        at = found.index(str(2 ** (j + 1)))
        assert found[at + 1] == str(digit)
    names = ["6.28", "19.9", "62.8", "199", "628", "1987", "6283", "19869"]
    for k, name in enumerate(names):
        assert float(found[found.index(name) + 1].replace("−", "-")) == pytest.approx(
            data["encoding"][2 * k], abs=0.005
        )
    for text in ("Binary digits: 1100100", "Sinusoids: sin mθᵢ", "Every pair; orange: no full turn yet"):
        assert text in found
    assert found.count("position 100") == 2
    assert "Orange: less than one turn since position 0 (5 of 8)" in found
    assert "13 of 20 pairs; orange: no full turn yet" in texts(drawing(Clocks(dim=40)))
    assert "Every hand has made a full turn since position 0" in texts(drawing(Clocks(dim=2)))


def test_the_still_draws_digits_and_waves():
    figure = Clocks(position=100, dim=4, base=100, span=64)  # wavelengths 6.28 and 62.8; positions 68 to 131
    root = drawing(figure)
    found = paths(root)
    blocks = [d for colour, d in found if colour == "muted"]
    assert len(blocks) == 8  # digits 8 to 12 are 0 throughout, digit 7 begins at 128
    for j, d in enumerate(blocks):
        assert len(re.findall("M", d)) == {0: 32, 1: 16, 2: 8, 3: 4, 4: 2, 5: 1, 6: 1, 7: 1}[j]
    low, high = 62 + 5.5 * 254 / 13 + (254 / 13 / 2 - 2.5), 62 + 5.5 * 254 / 13 - (254 / 13 / 2 - 2.5)
    pitch = 236 / 64
    start, end = 54 + (96 - 68) * pitch, 54 + (128 - 68) * pitch  # digit 5 is 1 from 96 to 127
    assert [mark.get("style") for mark in root.iter(f"{SVG}path") if "--fig-muted" in mark.get("style")] == [
        "fill:var(--fig-muted, #59636e);fill-opacity:0.3"
    ] * 8
    assert blocks[5] == f"M{start:.1f},{low:.1f}V{high:.1f}H{end:.1f}V{low:.1f}Z"
    curves = [numbers(d) for colour, d in found if colour in "12" and "a" not in d and "l" not in d]
    assert [len(points) for points in curves[:6]] == [321, 161, 81, 41, 21, 11]
    assert [len(points) for points in curves[13:]] == [103, 12]
    for j, points in enumerate(curves[:13]):
        at = 68 + (points[:, 0] - 54) / pitch - 0.5
        wave = -np.sin(2 * math.pi * (at + 0.5) / 2 ** (j + 1))
        drawn = (62 + (j + 0.5) * 254 / 13 - points[:, 1]) / (254 / 13 / 2 - 2.5)
        # places are rounded to a tenth: a steep wave may be off by half of that times its slope
        assert np.abs(drawn - wave).max() < 0.05 / 7.2 + 0.05 / pitch * 2 * math.pi / 2 ** (j + 1) + 1e-6
    for k, points in enumerate(curves[13:]):
        at = 68 + (points[:, 0] - 444) / pitch - 0.5
        drawn = (62 + (k + 0.5) * 127 - points[:, 1]) / 12.5
        assert np.abs(drawn - np.sin(at * [1, 0.1][k])).max() < 0.02
        assert (points[0, 0], points[-1, 0]) == (444, 680)
    colours = [colour for colour, d in found if colour in "12" and "a" not in d and "l" not in d]
    assert colours == ["1"] * 15
    lines = [d for colour, d in found if colour == "ink"]
    x = 54 + (100.5 - 68) * pitch
    assert np.allclose(numbers(lines[0]), [[x, 58], [x, 320]], atol=1e-3)
    assert np.allclose(numbers(lines[1]), [[x + 390, 58], [x + 390, 320]], atol=1e-3)
    labels = [mark for mark in root.iter(f"{SVG}text") if mark.text == "position 100"]
    assert [(float(mark.get("x")), mark.get("y")) for mark in labels] == [
        (pytest.approx(x, abs=1e-3), "338"),
        (pytest.approx(x + 390, abs=1e-3), "338"),
    ]
    styles = {mark.get("style") for mark in root.iter(f"{SVG}path") if "--fig-1" in mark.get("style")}
    assert {float(re.search(r"stroke-width:([\d.]+)", style)[1]) for style in styles} == {1.5, 2.52}


def test_too_many_waves_for_a_line_are_a_band():
    figure = Clocks(position=500, dim=2, span=400)
    root = drawing(figure)
    found = paths(root)
    blocks = [d for colour, d in found if colour == "muted"]
    assert [len(re.findall("M", d)) for d in blocks[:3]] == [1, 100, 50]
    assert re.fullmatch(r"M54\.0,[\d.]+V[\d.]+H290\.0V[\d.]+Z", blocks[0])  # one block for all, paler
    styles = [mark.get("style") for mark in root.iter(f"{SVG}path") if "--fig-muted" in mark.get("style")]
    assert [style.split("opacity:")[1] for style in styles[:3]] == ["0.15", "0.3", "0.3"]
    band = numbers(next(d for colour, d in found if colour == "1"))
    assert len(band) == 120
    assert set(np.round((62 + 0.5 * 254 / 13 - band[:60, 1]) / (254 / 13 / 2 - 2.5), 2)) <= {1.0, 0.99, 1.01}
    assert set(np.round((62 + 0.5 * 254 / 13 - band[60:, 1]) / (254 / 13 / 2 - 2.5), 2)) <= {-1.0, -0.99, -1.01}
    assert (np.diff(band[:60, 0]) > 0).all()
    assert (band[60:, 0] == band[59::-1, 0]).all()
    sine = numbers([d for colour, d in found if colour == "1"][13])
    at = np.array_split(np.arange(300, 700), 60)
    np.testing.assert_allclose((189 - sine[:60, 1]) / 12.5, [np.sin(m).max() for m in at], atol=0.005)
    np.testing.assert_allclose((189 - sine[119:59:-1, 1]) / 12.5, [np.sin(m).min() for m in at], atol=0.005)
    np.testing.assert_allclose(sine[:60, 0], [444 + (m.mean() - 300 + 0.5) / 400 * 236 for m in at], atol=0.051)


def test_the_hands_of_the_still_point_at_sine_and_cosine():
    figure = Clocks(position=100, dim=16)
    data = figure.compute(figure.dials())
    found = paths(drawing(figure))
    hands = {colour: re.findall(r"M([^l]+)l([^M]+)", d) for colour, d in found if re.match(r"M[^a-z]+l", d)}
    rings = {colour: d for colour, d in found if "a" in d}
    assert {colour: len(all_) for colour, all_ in hands.items()} == {"1": 3, "2": 5}
    size, radius = 91, 0.42 * 91
    for i, (centre, tip) in enumerate(hands["1"] + hands["2"]):
        expected = [(i + 0.5) * size, 412 + size / 2]
        np.testing.assert_allclose([float(n) for n in centre.split(",")], expected, atol=0.06)
        sin, cos = data["encoding"][2 * i : 2 * i + 2]
        np.testing.assert_allclose(
            [float(n) for n in tip.split(",")], [0.84 * radius * sin, -0.84 * radius * cos], atol=0.06
        )
    assert rings["1"].count("M") == 3
    assert rings["grid"].count("M") == 5
    whole = f"a38.2,38.2 0 1 1 0,{2 * radius:.1f}a38.2,38.2 0 1 1 0,{-2 * radius:.1f}"
    assert rings["1"].count(whole) == 3
    assert rings["grid"].count(whole) == 5
    arcs = re.findall(r"M([-\d.]+),([-\d.]+)a38\.2,38\.2 0 (\d) 1 ([-\d.]+),([-\d.]+)", rings["2"])
    assert len(arcs) == rings["2"].count("M") == 5
    for k, (x, y, large, dx, dy) in enumerate(arcs):
        sin, cos = data["encoding"][2 * (k + 3) : 2 * (k + 3) + 2]
        assert (float(x), float(y)) == pytest.approx(((k + 3.5) * size, 412 + size / 2 - radius), abs=0.06)
        assert int(large) == (data["turns"][k + 3] > 0.5)
        assert (float(dx), float(dy)) == pytest.approx((radius * sin, radius * (1 - cos)), abs=0.06)
    assert [large for _, _, large, _, _ in arcs] == ["1", "0", "0", "0", "0"]


@pytest.mark.parametrize("dim, columns, size", [(2, 1, 96), (64, 16, 45), (512, 45, 16)])
def test_clocks_are_as_large_as_fit(dim, columns, size):
    """730 × 110: so many columns of this size, and rows that fit."""
    faces = clocks.clock_faces([(1.0, 0.0, 1.0, "1")] * (dim // 2), 0, 412, 730, 110)
    centres = np.array([[float(n) for n in c.split(",")] for c in re.findall(r"M([^l]+)l", faces[1])])
    assert len(centres) == dim // 2
    np.testing.assert_allclose(np.diff(centres[:columns, 0]), size, atol=1e-9)
    rows = math.ceil(dim / 2 / (730 // size))
    np.testing.assert_allclose(centres[-1, 1], 412 + (rows - 0.5) * size)
    assert rows * size <= 110
    assert math.ceil(dim / 2 / (730 // (size + 1))) * (size + 1) > 110 or size == 96
    assert centres[0].tolist() == [size / 2, 412 + size / 2]
    widths = [float(re.search(r"stroke-width:([\d.]+)", face)[1]) for face in faces]
    assert widths == [1.5, pytest.approx(max(1, 0.42 * size / 16), abs=1e-5)]
