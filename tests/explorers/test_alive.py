"""Tests specific to the Alive explorer. The JavaScript model must agree with the PyTorch model."""

from __future__ import annotations

import base64
import json
import zlib

import numpy as np
import pytest
import traitlets

from ropebook import extrapolation, results
from ropebook.explorers import alive
from ropebook.explorers.alive import METHODS, Alive
from ropebook.lab import model, reading
from tests.explorers import js

RUN = """
  const packed = Buffer.from(input.stored, "base64");
  const make = new Function(`${MODEL.join("\\n")} return ${MODEL[0].name};`)(); // from its text alone, as in a worker
  const made = make(packed.buffer.slice(packed.byteOffset, packed.byteOffset + packed.length));
  return input.cases.map((values) => {
    const { bytes, theta, scale, window, farQuery, farKey } = compute(values);
    const far = window ? { window, query: farQuery, key: farKey } : null;
    const work = made.run({ bytes, theta, scale, far });
    const shares = [];
    let step = work.next();
    for (; !step.done; step = work.next()) shares.push(step.value);
    const { bits, top, share, scores } = step.value;
    return { bits, top, share, shares, row: made.attention(scores, 2, 1, bytes.length - 2) };
  });
"""
TEXT = alive.READ["classes"]
PIECE = TEXT[:301]  # the text is longer than the trained length, and its length isn't a multiple of four


def in_script(cases: list[dict]) -> list[dict]:
    stored = base64.b64encode(zlib.decompress(reading.packed())).decode()
    return js.inside(Alive, RUN, {"stored": stored, "cases": cases})


@pytest.fixture(scope="module")
def found() -> dict[str, dict]:
    cases = [Alive(own=PIECE, method=method, factor=3.0).dials() for method in METHODS]
    cases.append(Alive(own=PIECE, base=70_000.0).dials())
    return dict(zip([*METHODS, "base"], in_script(cases), strict=True))


@pytest.mark.parametrize("method", [*METHODS, "base"])
def test_the_script_reads_as_pytorch_does(found, method):
    how = {"method": "yarn", "base": 70_000.0} if method == "base" else {"method": method, "factor": 3.0}
    torchs = reading.reader(**how)
    want, got = reading.read(PIECE.encode(), torchs), found[method]
    assert len(got["bits"]) == 300
    np.testing.assert_allclose(got["bits"], want.bits, atol=1e-3)
    np.testing.assert_allclose(got["share"], want.share, atol=1e-3)
    assert np.mean(np.array(got["top"]) == want.top.numpy()) >= 0.99
    np.testing.assert_allclose(got["row"], reading.attention(PIECE.encode(), torchs, 2, 1, 300), atol=1e-4)
    assert sum(got["row"]) == pytest.approx(1, abs=1e-5)


def test_no_two_methods_read_alike(found):
    far = [found[method]["bits"][-1] for method in (*METHODS, "base")]
    assert len({round(one, 4) for one in far}) == len(far)


def test_progress_goes_from_nothing_to_all_in_small_steps(found):
    shares = found["rerope"]["shares"]
    assert shares == sorted(shares)
    assert shares[0] < 0.1
    assert 0.8 < shares[-1] <= 1
    assert max(np.diff(shares)) < 0.2


def test_the_figures_model_is_the_shipped_one():
    settings = results.load(model.SHIPPED)["run"]
    of_model = (settings["length"], settings["n_layers"], settings["n_heads"])
    assert of_model == (alive.TRAINED, alive.LAYERS, alive.HEADS)
    assert settings["dim"] // settings["n_heads"] == alive.HEAD_DIM
    assert model.SCHEMES["rope-10000"].base == Alive().base
    megabytes = len(base64.b64encode(reading.packed())) / 1e6
    assert f"loads the model ({megabytes:.1f} MB)" in Alive._esm


def test_a_text_is_long_enough_and_told_in_ascii():
    for text in alive.READ.values():
        assert text.isascii()
        assert len(text) == alive.LONGEST_TEXT + 1


def test_what_was_found_for_other_dials_is_not_fresh():
    dials = Alive(own=PIECE, method="none").dials()
    ways = [{"method": "yarn"}, {"base": 9_999.0}, {"own": PIECE[1:]}, {"length": 64}]
    same = [{}, {"factor": 2.0}, {"text": "prose"}, {"layer": 3}, {"byte": 2}]
    cases = [{**dials, **way} for way in (*ways, *same)]
    fresh = [one["fresh"] for one in js.compute(Alive._esm, cases)]
    assert fresh == [False] * len(ways) + [True] * len(same)


def test_the_words_say_what_was_found():
    figure = Alive(own=PIECE, byte=280, layer=3, head=2)
    said, stats = js.inside(
        Alive,
        "return input.map((values) => [describe(compute(values), values), stats(compute(values), values)]);",
        [figure.dials()],
    )[0]
    start = figure.start
    within, beyond = np.mean(start["bits"][:256]), np.mean(start["bits"][256:])
    most = int(np.argmax(start["row"]))
    assert f"Layer 3, head 2 attends most to {'a space' if PIECE[most] == ' ' else ''}" in said
    assert f"{280 - most} byte" in said
    assert "has not read the text" not in said
    for (_, _, remark), part in zip(stats, (slice(256), slice(256, None)), strict=False):
        assert remark == f"bits; as trained {np.mean(start['plain'][part]):.2f}"
    assert [name for name, *_ in stats[:2]] == [
        "Within L",
        "Beyond L",
    ]  # short, so that a phone has room for the number
    assert [value for _, value, _ in stats] == [f"{within:.2f}", f"{beyond:.2f}", f"{start['bits'][279]:.2f}"]
    other = js.describe(Alive, [{**figure.dials(), "method": "linear"}])[0]
    assert other == "The model has not read the text at these settings yet."
    for short in js.describe(Alive, [Alive(own="def f").dials(), Alive(length=256).dials()]):
        assert short.startswith("The text doesn’t go beyond the trained length.")


def test_too_long_a_text_is_refused():
    assert Alive(own="é" * 512 + "x").own.endswith("x")
    with pytest.raises(traitlets.TraitError, match=r"own must be at most 1025 bytes of UTF-8, got 1026"):
        Alive(own="é" * 513)
    with pytest.raises(RuntimeError, match="this has 1,026 bytes, more than 1,025"):
        js.inside(Alive, 'return parseOwn("é".repeat(513));')


def test_a_kernel_sends_the_weights_when_asked(monkeypatch):
    sent = []
    figure = Alive(own="ab")
    monkeypatch.setattr(figure, "send", lambda content, buffers: sent.append((content, buffers)))
    figure._handle_custom_msg("something else", [])
    assert sent == []
    figure._handle_custom_msg("weights", [])
    assert sent == [("weights", [reading.packed()])]


def test_what_a_page_carries_holds_no_weights():
    state = Alive().get_state()
    assert len(json.dumps({name: value for name, value in state.items() if name != "_esm"})) < 60_000


def test_extended_methods_are_those_of_the_book():
    assert set(METHODS) - {"none"} <= set(extrapolation.METHODS)
