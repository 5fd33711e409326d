"""Tests of the static figures: the drawings of every explorer at its extreme settings, and the initial pictures in the
package."""

from __future__ import annotations

import base64
import re
from collections import Counter
from xml.etree import ElementTree

import nbformat
import pytest

from ropebook.explorers.fourier import Fourier
from ropebook.explorers.heatmap import Heatmap
from ropebook.explorers.kit.stills import with_ids
from ropebook.explorers.shuffle import Shuffle
from ropebook.explorers.sweep import Sweep
from tests.explorers.registry import every
from tools import stills

SVG = "{http://www.w3.org/2000/svg}"
COLOUR = re.compile(r"#[0-9a-fA-F]{6}|rgb\([^)]*\)")
LARGEST = 100_000


@every
def test_a_still_is_one_small_drawing(entry):
    figures = entry.figures(3)
    pictures = stills.draw([figure.get_state() for figure in figures])
    assert len(pictures) == len(figures)
    for figure, picture in zip(figures, pictures, strict=True):
        root = ElementTree.fromstring(picture)
        assert root.tag == f"{SVG}svg"
        assert (root.get("role"), root.get("aria-label")) == ("img", figure.alt)
        assert root.get("viewBox") == f"0 0 {root.get('width')} {root.get('height')}"
        assert float(root.get("height")) > 100
        assert len(list(root.iter())) > 15
        assert "NaN" not in re.sub(r'base64,[^"]*', "", picture.replace(figure.alt, ""))
        assert "undefined" not in picture
        assert "\n" not in picture
        assert len(picture.encode()) <= LARGEST, figure.dials()
        ids = [node.get("id") for node in root.iter() if node.get("id")]
        assert Counter(ids).most_common(1) == [] or Counter(ids).most_common(1)[0][1] == 1
        assert {name for name in re.findall(r"url\(#([^)]+)\)", picture)} <= set(ids)


@every
def test_colours_are_the_pages(entry):
    """Every colour is either one of the page's variables or a pair of colours for light and dark pages. For this
    reason, each raster image comes in two versions."""
    [picture] = stills.draw([entry.kind().get_state()])
    own = re.sub(r"var\(--fig-[\w-]+,#[0-9a-f]{6}\)", "", picture)
    own = re.sub(r"light-dark\(#[0-9a-f]{6},#[0-9a-f]{6}\)", "", own)
    assert set(COLOUR.findall(own)) <= {"#000000", "#ffffff"}
    assert "--rb-" not in picture
    for kind in ('class="on-light"', 'class="on-dark" display="none"'):
        assert picture.count(kind) == own.count("<image") / 2


def test_pixels_are_the_pages_own_in_the_dark():
    [picture] = stills.draw([Heatmap().get_state()])
    light, dark = (
        base64.b64decode(re.search(rf'class="{name}"[^>]*base64,([^"]+)"', picture)[1])
        for name in ("on-light", "on-dark")
    )
    assert light[:8] == dark[:8] == b"\x89PNG\r\n\x1a\n"
    assert light != dark


@every
def test_the_packages_still_is_fresh(entry):
    """If the static picture is out of date, run `python -m tools.stills` to redraw it."""
    if entry.name == "measured":  # Measured's static picture shows the real results, not synthetic ones
        states = {name: state for name, state in stills.opening_states().items() if name == "measured"}
        if not states:
            pytest.skip("results/measured.json has nothing of the held-out part yet")
    else:
        states = {entry.name: entry.kind().get_state()}
    [picture] = stills.draw(list(states.values()))
    assert (stills.OPENING / f"{entry.name}.svg").read_text(encoding="utf-8") == picture


@every
def test_front_ends_without_widgets_get_the_opening_still(entry):
    figure = entry.kind()
    data, _ = figure._repr_mimebundle_()
    assert data["text/html"] == with_ids((stills.OPENING / f"{entry.name}.svg").read_text("utf-8"), figure.model_id)
    assert data["application/vnd.jupyter.widget-view+json"]["model_id"] == figure.model_id
    assert "text/plain" in data


def test_without_a_still_there_are_words(monkeypatch):
    figure = Shuffle(alt='Twenty characters & more, "quoted" <so>')
    monkeypatch.setattr(Shuffle, "script", "absent.js")
    assert figure.still() == "<p>Twenty characters &amp; more, &quot;quoted&quot; &lt;so&gt;</p>"


def notebook_of(*figures):
    view, state = stills.VIEW, {figure.model_id: {"state": figure.get_state()} for figure in figures}
    outputs = [
        nbformat.v4.new_output("display_data", {view: {"model_id": figure.model_id}, "text/html": figure.still()})
        for figure in figures
    ]
    cells = [nbformat.v4.new_code_cell("figure", outputs=[output]) for output in outputs]
    cells.append(nbformat.v4.new_code_cell("1", outputs=[nbformat.v4.new_output("stream", text="1")]))
    return nbformat.v4.new_notebook(cells=cells, metadata={"widgets": {stills.STATE: {"state": state}}})


def test_a_page_gets_each_figure_at_its_own_state_with_ids_of_its_own(monkeypatch, tmp_path):
    monkeypatch.setattr(stills, "KEPT", tmp_path)
    runs = []
    monkeypatch.setattr(stills, "draw", lambda states, draw=stills.draw: (runs.append(len(states)), draw(states))[1])
    figures = [Fourier(dim=64), Fourier(dim=64), Fourier()]
    notebook = notebook_of(*figures)
    stills.ensure([notebook])
    assert runs == [2]  # a single run drew both states
    stills.put_into(notebook)
    assert runs == [2]
    pictures = [cell.outputs[0].data["text/html"] for cell in notebook.cells[:3]]
    assert "the score of all 32 pairs" in pictures[0]
    assert "the score of all 16 pairs" in pictures[2]
    ids = re.findall(r' id="([^"]+)"', "".join(pictures))
    assert len(ids) >= 3
    assert len(set(ids)) == len(ids)
    assert pictures[0].replace(figures[0].model_id, "") == pictures[1].replace(figures[1].model_id, "")


@pytest.mark.parametrize(
    "line, complaint",
    [
        ("    context.bezierCurveTo(1, 2, 3, 4, 5, 6);\n", "bezierCurveTo is not a function"),
        ("    document.createTreeWalker();\n", "createTreeWalker is not a function"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(line, complaint):
    state = Sweep().get_state()
    place = "fitCanvas(canvas,"
    assert place in state["_esm"]
    state["_esm"] = re.sub(rf"^(.*\bcontext = {re.escape(place)}.*\n)", rf"\1{line}", state["_esm"], flags=re.M)
    with pytest.raises(stills.StillError, match=complaint):
        stills.draw([state])
