"""The benchmark of the rotation: the part that measures where a store goes, on tiny tensors."""

import copy
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from ropebook import results

NAMES = ["scaled in place", "scaled elsewhere", "added elsewhere", "copied"]
NAMES += ["rotated in place, interleaved", "rotated in place, half"]


@pytest.fixture
def rotary(monkeypatch):
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "rotary.py"
    spec = importlib.util.spec_from_file_location("rotary", path)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(script, "ON_CPU", script.ON_CPU | {"tokens": 3, "head_dim": 8})
    monkeypatch.setattr(script, "last_cache", lambda where: 4 * 40 * 3 * 8 * 5)  # five sets would be twice as large
    monkeypatch.setattr(script, "compiled_rolls", lambda *_: [])  # seconds to compile
    return script


def test_stores_are_measured_beside_each_other(rotary):
    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        part = rotary.stores(rounds=20)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(threads)
    assert [entry["name"] for entry in part["entries"]] == NAMES
    assert part["entries"][0]["times"] == 1
    assert all(0 < entry["p10"] <= entry["ms"] <= entry["p90"] for entry in part["entries"])
    assert part["bytes"] == 2 * 4 * 40 * 3 * 8
    assert part["sets"] == 10  # an even number, so that what is written is never what is read
    assert part["provenance"]["threads"] == 1


def test_the_part_alone_leaves_the_rest_of_the_file(rotary, monkeypatch):
    saved = {}
    before = results.load("rotary")
    monkeypatch.setattr(
        results, "save", lambda *arguments: saved.update(zip(("name", "data", "by"), arguments, strict=True))
    )
    monkeypatch.setattr(rotary, "ROUNDS", 3)
    monkeypatch.setattr(sys, "argv", ["rotary.py", "--only", "stores"])
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    rotary.main()
    after = copy.deepcopy(saved["data"])
    assert saved["name"] == "rotary"
    assert saved["by"] == before.pop("provenance")
    assert after["cpu"].pop("stores")["rounds"] == 3
    before["cpu"].pop("stores")
    assert after == before


def test_the_file_says_what_the_page_builds_on():
    part = results.load("rotary")["cpu"]["stores"]
    times = {entry["name"]: entry["times"] for entry in part["entries"]}
    assert list(times)[: len(NAMES)] == NAMES
    assert times["copied"] > times["scaled in place"] == 1
    assert results.caption(part).endswith("--only stores.")
