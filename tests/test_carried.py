"""Heavy results are carried in a lighter form that the same code can read."""

from __future__ import annotations

import pytest
import torch
from safetensors.torch import load as load_tensors

from ropebook import results
from ropebook.lab.model import pretrained
from tools import carried
from tools.paths import ROOT


@pytest.fixture
def travelled(tmp_path, monkeypatch):
    """The results as a notebook has them."""
    found = carried.contents(code_text='import ropebook.lab.model\nresults.load("rope-10000-0-3200")')
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


def test_of_the_models_with_t5_only_the_table_travels():
    found = carried.contents(code_text='from ropebook import results\nresults.find("t5-1", "safetensors")')
    here = load_tensors((ROOT / "results" / "trials" / "t5-1.safetensors").read_bytes())
    there = load_tensors(found["ropebook/_results/t5-1.safetensors"])
    assert there.keys() == {"buckets"}
    assert torch.equal(there["buckets"], here["buckets"])


def test_what_the_explorer_of_the_grid_opens_travels_as_it_is():
    found = carried.contents(code_text="from ropebook.explorers.measured import Measured")
    there = ROOT / "results" / "measured.json"
    assert found["ropebook/_results/measured.json"] == there.read_bytes()
