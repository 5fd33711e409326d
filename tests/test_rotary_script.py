"""The benchmark of the rotation: the part that measures where a store goes, on tiny tensors."""

import copy
import importlib.util
import sys
from pathlib import Path

import pytest
import torch

from ropebook import results

NAMES = ["scaled in place", "scaled elsewhere", "added elsewhere", "copied"]
NAMES += ["rotated in place, interleaved", "rotated in place, half", "sheared in place, half"]
ONE_TOKEN = ["transformers", "half-split", "half-split, a table in each layer", "half-split, in place", "interleaved"]
ONE_TOKEN += ["YaRN, transformers", "YaRN", "YaRN, a table in each layer"]


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


def test_no_decile_lies_outside_of_what_was_measured(rotary):
    deciles = rotary.deciles_of([1.0, 30.0, 32.0])
    assert 1 <= deciles[0] <= deciles[4] == 30 <= deciles[-1] <= 32


@pytest.mark.parametrize("wrong", [False, True])
def test_one_token_is_measured_beside_transformers(rotary, wrong, monkeypatch):
    monkeypatch.setattr(rotary, "LAYERS", 2)
    if wrong:
        monkeypatch.setattr(rotary.efficient.RotaryEmbedding, "forward", lambda rope, q, k, **rest: (q, k))
        with pytest.raises(AssertionError, match=r"half-split, torch.float32, is off"):
            rotary.decoding(rounds=3)
        return
    threads = torch.get_num_threads()
    part = rotary.decoding(rounds=3)
    assert torch.get_num_threads() == threads
    assert part["layers"] == 2
    for dtype in ("float32", "bfloat16"):
        entries = part[dtype]["entries"]
        assert [entry["name"] for entry in entries] == ONE_TOKEN
        assert entries[0]["times"] == 1
        assert all(0 < entry["p10"] <= entry["us"] <= entry["p90"] for entry in entries)


@pytest.mark.parametrize("only", ["stores", "decoding"])
def test_the_part_alone_leaves_the_rest_of_the_file(rotary, only, monkeypatch):
    saved = {}
    before = results.load("rotary")
    monkeypatch.setattr(
        results, "save", lambda *arguments: saved.update(zip(("name", "data", "by"), arguments, strict=True))
    )
    monkeypatch.setattr(rotary, "PARTS", {name: (measure, 3) for name, (measure, _) in rotary.PARTS.items()})
    monkeypatch.setattr(rotary, "LAYERS", 2)
    monkeypatch.setattr(sys, "argv", ["rotary.py", "--only", only])
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    rotary.main()
    after = copy.deepcopy(saved["data"])
    assert saved["name"] == "rotary"
    assert saved["by"] == before.pop("provenance")
    assert after["cpu"].pop(only)["rounds"] == 3
    before["cpu"].pop(only)
    assert after == before


def test_the_file_says_what_the_page_builds_on():
    part = results.load("rotary")["cpu"]["stores"]
    times = {entry["name"]: entry["times"] for entry in part["entries"]}
    assert list(times)[: len(NAMES)] == NAMES
    assert times["copied"] > times["scaled in place"] == 1
    assert results.caption(part).endswith("--only stores.")
