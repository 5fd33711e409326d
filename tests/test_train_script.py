"""benchmarks/train.py, from the first step to the results, with two tiny runs."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

from ropebook import results
from ropebook.lab import first_text, training, tuning

TINY = {"length": 48, "dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2, "rows": 2, "steps": 4, "warmup": 1}


@pytest.fixture
def script(tmp_path, monkeypatch):
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "train.py"
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("train", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text = np.frombuffer(b"for i in range(9):\n    print(i)\n" * 9, np.uint8)
    corpus = first_text.Corpus(text, {"a.py": text[:99], "b.py": text[5:120]}, "a hash", "3")
    for owner, name, value in (
        (module, "ROOT", tmp_path),
        (module.first_text, "load", lambda: corpus),
        (module.evaluation, "DISTANCES", (8, 12)),
        (module.evaluation, "CONTEXTS", 2),
        (training, "RUNS", (training.Run("rope-10000", **TINY), training.Run("alibi", **TINY))),
        (tuning, "METHODS", ("none", "linear")),
        (tuning, "FACTORS", (2,)),
        (results, "_BESIDE_THE_CODE", tmp_path / "results"),
    ):
        monkeypatch.setattr(owner, name, value)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["train.py", "--settings", "small", *words])
        module.main()

    return run


def test_it_trains_what_is_left_and_then_writes(script, tmp_path):
    script("--only", "rope-10000-0", "rope-10000-0-linear-2")
    assert not (tmp_path / "results").exists()
    before = (tmp_path / "runs" / "rope-10000-0.pt").read_bytes()
    tuned = [path.name for path in (tmp_path / "runs" / "tuned").iterdir()]
    assert tuned == ["rope-10000-0-linear-2.pt"]  # where evaluate.py looks for it
    script()
    assert (tmp_path / "runs" / "rope-10000-0.pt").read_bytes() == before
    found = results.load("training")
    assert set(found["runs"]) == {"rope-10000-0", "alibi-0"}
    assert set(found["tuned"]) == {"rope-10000-0/none/2", "rope-10000-0/linear/2"}
    tuned = found["tuned"]["rope-10000-0/linear/2"]
    assert (tuned["length"], tuned["steps"], len(tuned["losses"])) == (96, 40, 2)
    assert found["runs"]["alibi-0"]["bytes"] == 4 * 2 * 48
    assert 0 <= found["runs"]["alibi-0"]["seconds_alone"] < 60
    assert 6 < found["runs"]["alibi-0"]["held_out"] < 9
    assert 0 <= found["runs"]["alibi-0"]["retrieval"] <= 1
    assert "scheme" not in found["settings"]
    assert json.dumps(found["corpus"]).count("a hash") == 1


def test_it_names_the_runs_there_are(script, capsys):
    with pytest.raises(SystemExit):
        script("--only", "rope-7-0")
    assert "must name some of rope-10000-0, alibi-0, rope-10000-0-none-2" in capsys.readouterr().err
