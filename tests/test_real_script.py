"""Tests that benchmarks/real.py does every measurement once, stores it completely or not at all, and reports what was
measured."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from benchmarks import real as script
from ropebook import results
from ropebook.real import published, rule, texts
from ropebook.rotary_attention import LlamaModel


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    return tmp_path


def test_a_measurement_is_done_once_and_names_the_model(folder, capsys):
    done = []

    def found():
        done.append(1)
        return {"loss": [1.0]}

    script.measure("loss-one", found)
    script.measure("loss-one", found)
    assert len(done) == 1
    assert "loss-one: there already" in capsys.readouterr().out
    stored = results.load("loss-one")
    assert (folder / "real" / "loss-one.json").is_file()
    assert stored["exploration"] is True
    assert stored["model"] == published.REQUIREMENT
    assert stored["weights"] == "4-bit weights (Q4_1; the embedding Q8_0), dequantised to float32"
    assert 0.01 < stored["peak_gigabytes"] < 100
    assert stored["provenance"]["command"].startswith("python benchmarks/real.py")


def test_what_was_interrupted_is_not_there(folder):
    with pytest.raises(KeyboardInterrupt):
        script.measure("loss-one", lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert not (folder / "real").exists()
    script.measure("loss-one", dict)
    assert results.load("loss-one")["model"]


def test_names_of_changes_are_those_that_the_rule_compares():
    changes = (script.AS_IS, script.YARN, script.LINEAR, *script.BANDS, *script.CORE, *script.SINKS, *script.HELD)
    names = {change.name for change in changes}
    assert {name for claim in rule.CLAIMS for one in claim.comparisons for name in (one.a, one.b)} <= names
    for name in names:  # a result is stored under this name
        described = [change.describe() for change in changes if change.name == name]
        assert all(one == described[0] for one in described)
    assert sorted(change.name for change in script.SINGLES) == sorted(f"slow-{pair}" for pair in range(32))


def test_nothing_here_reads_a_text_that_decides():
    explored = {text.name for text in texts.EXPLORATION}
    assert set(script.CHOSEN) == explored
    assert not explored & {text.name for text in rule.HELD_OUT}


def test_the_last_losses_of_rows(monkeypatch):
    torch.manual_seed(0)
    model = LlamaModel(20, 16, 24, 1, 2, layout="interleaved").requires_grad_(False)
    rows = torch.randint(20, (2, 11))
    logits = model(rows[:, :10])[:, 6:].log_softmax(-1)
    expected = -logits.gather(2, rows[:, 7:, None]).mean((1, 2))
    assert script.last_losses(model, rows, torch.arange(10), 4) == pytest.approx(expected.tolist(), abs=1e-4)


def test_another_stage_is_refused_and_those_there_are_named():
    told = subprocess.run([sys.executable, script.__file__, "novel"], capture_output=True, text=True)
    assert told.returncode == 2
    assert "STAGE must be among fetch, core, heads, " in told.stderr
    assert "got novel" in told.stderr
