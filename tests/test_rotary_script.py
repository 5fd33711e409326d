"""Tests of the benchmark of rotations. Each part that can be run separately is run on tiny tensors."""

import copy
import sys
import types

import pytest
import torch

from ropebook import results
from tests.scripts import benchmark

NAMES = ["scaled in place", "scaled elsewhere", "added elsewhere", "copied"]
NAMES += ["rotated in place, interleaved", "rotated in place, half", "sheared in place, half"]
ONE_TOKEN = ["transformers", "half-split", "half-split, a table in each layer", "half-split, in place", "interleaved"]
ONE_TOKEN += ["YaRN, transformers", "YaRN", "YaRN, a table in each layer"]
PEERS = ["ours", "ours, neighbours", "ours, table given", "transformers", "transformers, compiled"]
PEERS += ["rotary-embedding-torch"]  # other libraries are also measured if they are installed


@pytest.fixture
def rotary(monkeypatch):
    script = benchmark("rotary")
    monkeypatch.setattr(script, "ON_CPU", script.ON_CPU | {"tokens": 3, "head_dim": 8})
    # five sets of tensors are twice as large as this cache
    monkeypatch.setattr(script, "last_cache", lambda where: 4 * 40 * 3 * 8 * 5)
    monkeypatch.setattr(script, "ONE_TOKEN", script.ON_CPU | {"tokens": 1})
    monkeypatch.setattr(script, "compiled_rolls", lambda *_: [])  # these forms would take seconds to compile
    monkeypatch.setattr(torch, "compile", lambda function, **_: function)
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
    assert part["sets"] == 10  # the number is even, so no call writes into the set that it reads
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


@pytest.mark.parametrize("wrong", [False, True])
def test_other_libraries_are_measured_beside_ours(rotary, wrong, monkeypatch):
    if wrong:  # the forward pass is still correct, but gradients aren't rotated back
        monkeypatch.setattr(rotary.efficient.forms.Turn, "backward", lambda ctx, grad: (grad, None, None, None))
        monkeypatch.setattr(rotary.efficient.forms, "SMALL", 0)
        monkeypatch.setattr(rotary.efficient.rotary, "SMALL", 0)
        with pytest.raises(AssertionError, match=r"ours is off"):
            rotary.peers(rounds=2)
        return
    part = rotary.peers(rounds=3)
    assert [(one["length"], one["dtype"], one["direction"]) for one in part["cases"]] == [
        (length, dtype, direction)
        for length in ("long", "one_token")
        for dtype in ("float32", "bfloat16")
        for direction in ("forward", "forward and backward")
    ]
    for one, goal in zip(part["cases"], part["goals"], strict=True):
        found = {entry["name"]: entry for entry in one["entries"]}
        assert list(found)[: len(PEERS)] == PEERS
        assert found["transformers"]["times"] == 1
        assert goal["measured"] == found["ours"]["times"]
        eps = torch.finfo(getattr(torch, one["dtype"])).eps
        for entry in found.values():
            assert 0 < entry["p10"] <= entry["ms"] <= entry["p90"]
            assert 0 < entry["times_p10"] <= entry["times"] <= entry["times_p90"]
            # rotary-embedding-torch represents positions in bfloat16
            if entry["layout"] and entry["name"] != "rotary-embedding-torch":
                assert 0 < entry["rms"] < entry["worst"] < max(8 * eps, 2e-3)  # the angles are in float32
    alone = [entry["name"] for entry in part["cases"][0]["entries"] if entry["layout"] is None]
    assert alone == ["a copy", "ours, the first step alone"]
    assert all(entry["layout"] for one in part["cases"][1:] for entry in one["entries"])
    assert [goal["at_most"] for goal in part["goals"]] == [0.15, 0.25, 0.8, 0.9, 1, 1, 1, 1]
    assert {"transformers", "rotary-embedding-torch"} <= part["versions"].keys()


def test_a_file_of_a_package_leaves_no_modules_behind(rotary, tmp_path, monkeypatch):
    (tmp_path / "a_peer" / "layers").mkdir(parents=True)
    (tmp_path / "a_peer" / "__init__.py").write_text("raise ImportError('no GPU')")
    (tmp_path / "a_peer" / "layers" / "rotary.py").write_text("from a_peer.ops.kernel import apply\nfound = apply")
    monkeypatch.syspath_prepend(tmp_path)
    kernel = types.ModuleType("a_peer.ops.kernel")
    kernel.apply = 3
    read = rotary.rotary_peers.file_of
    assert read("a_peer", "layers/rotary.py", instead={kernel.__name__: kernel}).found == 3
    assert not [name for name in sys.modules if name.startswith("a_peer.") or name == "a_peer"]
    assert read("no_such_peer", "layers/rotary.py") is None


@pytest.mark.parametrize("only", ["stores", "decoding", "peers"])
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
    before["cpu"].pop(only, None)
    assert after == before


@pytest.mark.parametrize("words", [[], ["--only", "cuda"]])
def test_without_a_gpu_what_one_has_measured_is_kept(rotary, words, monkeypatch):
    saved = []
    before = results.load("rotary")["cuda"]
    assert before["parts"]
    monkeypatch.setattr(results, "save", lambda name, data, by: saved.append(data))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: None)
    monkeypatch.setattr(rotary, "cpu", lambda rounds: {"float32": {"targets": []}})
    monkeypatch.setattr(sys, "argv", ["rotary.py", *words])
    rotary.main()
    assert [data["cuda"] for data in saved] == ([] if words else [before])


def test_the_file_says_what_the_page_builds_on():
    part = results.load("rotary")["cpu"]["stores"]
    times = {entry["name"]: entry["times"] for entry in part["entries"]}
    assert list(times)[: len(NAMES)] == NAMES
    assert times["copied"] > times["scaled in place"] == 1
    assert results.caption(part).endswith("--only stores.")
