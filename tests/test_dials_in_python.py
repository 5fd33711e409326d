"""Tests of cells that use a figure's dials, and of what these cells do in a notebook when a dial is moved."""

from __future__ import annotations

import re

import torch

from ropebook import attention, derivation
from ropebook.explorers.bank import Bank
from ropebook.explorers.saturation import Saturation
from ropebook.explorers.sweep import Sweep
from ropebook.explorers.turn import Turn
from tests.together import together
from tools.paths import BOOK, ROOT


def cell(page: str, word: str) -> str:
    """Return the page's only visible code cell that contains this word."""
    found = re.findall(r"^```\{code-cell\} python\n(?!:tags:)(.*?)^```", (BOOK / page).read_text("utf-8"), re.M | re.S)
    [text] = [one for one in found if word in one]
    return text


def test_a_cell_reads_the_dials(capsys):
    cells = {"torch": torch, "attention": attention, "saturation": Saturation(dim=64, n_keys=16)}
    text = cell("attention_scale.md", "saturation.dim")
    exec(text, cells)
    opening = capsys.readouterr().out
    cells["saturation"].set_trait("dim", 2)
    exec(text, cells)
    turned = capsys.readouterr().out
    assert opening.startswith("d = 64, 16 keys:")
    assert turned.startswith("d = 2, 16 keys:")
    weight = [float(re.search(r"than (0\.\d+)", said)[1]) for said in (opening, turned)]
    assert weight[0] > 0.8 > 0.5 > weight[1]


def test_a_cell_listens_to_the_dials():
    class Shown(list):
        update = list.append

    shown, dials = Shown(), Turn(dim=4, position=2)
    cells = {"torch": torch, "derivation": derivation, "dials": dials}
    cells["display"] = lambda value, display_id: shown.append(value) or shown
    exec(cell("derivation_laws.md", "dials.observe"), cells)
    q = torch.arange(1, 5, dtype=torch.float64)

    def is_shown(turned):
        return shown[-1].tolist() == turned.view(-1, 2).numpy().round(3).tolist()

    assert len(shown) == 1
    assert is_shown(derivation.rotate(q, 2))
    assert "dtype" not in repr(shown[0])  # a phone has no room for it
    dials.position = 7
    assert is_shown(derivation.rotate(q, 7))
    dials.set_state({"dim": 2, "base": 50.0})  # the page sends the values of several dials like this
    assert is_shown(derivation.rotate(q[:2], 7, 50.0))


def test_a_cell_links_two_figures():
    import ipywidgets

    cells = {"ipywidgets": ipywidgets, "one_curve": Sweep(), "hands": Bank()}
    exec(cell("decay.md", "ipywidgets.link"), cells)
    cells["hands"].base = 500.0
    cells["one_curve"].dim = 64
    assert [(cells[name].base, cells[name].dim) for name in ("one_curve", "hands")] == [(500.0, 64)] * 2


@together("part", range(1, 4))  # the first part is a single page, which has no such cell
def test_each_part_of_the_book_has_such_a_cell(part):
    import yaml

    chapters = yaml.safe_load((ROOT / "_toc.yml").read_text())["parts"][part]["chapters"]
    files = [page["file"] for chapter in chapters for page in (chapter, *chapter.get("sections", []))]
    texts = [" ".join((ROOT / f"{file}.md").read_text("utf-8").split()) for file in files]
    assert any("In a notebook" in text and "On this page" in text for text in texts)
