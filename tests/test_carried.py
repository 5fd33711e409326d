"""Heavy results travel lighter, in a form that the same code reads."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from safetensors.numpy import load, save
from safetensors.torch import load as load_tensors

from ropebook import results
from ropebook.explorers import measured
from ropebook.lab.model import pretrained
from tools import carried
from tools.paths import ROOT


@pytest.fixture
def travelled(tmp_path, monkeypatch):
    """The results as a notebook has them."""
    found = carried.contents(code_text="import ropebook.lab.model\n'evaluation'; results.load(\"rope-10000-0-3200\")")
    for name, data in found.items():
        if "/_results/" in name:
            (tmp_path / name.rpartition("/")[2]).write_bytes(data)
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path / "none")
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path)
    return tmp_path


def test_the_weights_that_travel_are_the_rounded_ones(travelled, monkeypatch):
    assert (travelled / "rope-10000-0-3200.safetensors").stat().st_size < 700_000
    there = pretrained()
    monkeypatch.undo()
    here = pretrained(int8=True)
    assert all(torch.equal(there.state_dict()[name], weight) for name, weight in here.state_dict().items())
    exact = load_tensors((ROOT / "results" / "trials" / "rope-10000-0-3200.safetensors").read_bytes())
    assert all(torch.equal(pretrained().state_dict()[name], weight.float()) for name, weight in exact.items())


def test_the_curves_that_travel_draw_the_same_figure(travelled, monkeypatch):
    there = measured.load()
    monkeypatch.undo()
    here = measured.load()
    assert measured.compact(*there) == measured.compact(*here)
    assert set(there[1]) == set(here[1])


def test_a_curve_in_steps_keeps_its_length_and_its_gaps():
    curve = np.arange(20, dtype=np.float16)
    curve[8] = np.nan
    curve[13:16] = np.nan
    (found,) = load(carried.in_steps(save({"a": curve}))).values()
    assert found[:8].tolist() == list(range(8))
    assert found[8:13].tolist() == [9, 9, 10, 11.5, 11.5]
    assert np.isnan(found[13:16]).all()
    assert found[16:].tolist() == [17, 17, 17, 19]
