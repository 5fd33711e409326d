"""Test that benchmarks/real.py takes every measurement only once, stores it either completely or not at all, and
reports what it measured."""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import inspect
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from benchmarks import real as script
from ropebook import results
from ropebook.real import bias, published, rule, stored, texts
from ropebook.rotary_attention import LlamaModel
from tests import tiny_gguf


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


@pytest.fixture
def tiny(folder, monkeypatch):
    """Replace the texts by short ones, and the published model by a tiny random GGUF model that also has 32 pairs per
    head. Return the path of the model's file."""
    path = tiny_gguf.write(folder / "tiny.gguf", tiny_gguf.llama(heads=2, kv_heads=1, dim=128, layers=1))
    monkeypatch.setattr(published, "FOLDER", folder / "runs")
    monkeypatch.setattr(published, "file", lambda: path)
    monkeypatch.setattr(script, "LENGTH", 480)
    monkeypatch.setattr(script, "STRETCH", 10)
    monkeypatch.setattr(script, "SHORT", 64)
    short = tuple(dataclasses.replace(text, read=lambda: tiny_gguf.TEXT * 3) for text in texts.EXPLORATION)
    monkeypatch.setattr(texts, "EXPLORATION", short)
    for cached in (script.loaded, script.tokens_of):
        cached.cache_clear()
    yield path
    for cached in (script.loaded, script.tokens_of):
        cached.cache_clear()


def test_the_conversion_is_compared_with_leaving_it_out(tiny, folder, run):
    run("convert")
    found = results.load("conversion")
    tokens = torch.tensor(script.loaded().tokenizer.encode(tiny_gguf.TEXT * 3))[:65]
    file = script.real.read(tiny)
    models = {
        "converted": script.real.load(tiny, "interleaved").model,  # which needs no conversion
        "unconverted": script.real.model(file, script.loaded().configuration, "half", convert=False),
    }
    expected = {name: script.real.losses(model, tokens).mean().item() for name, model in models.items()}
    assert found["loss"] == pytest.approx(expected, abs=2e-5)
    assert abs(expected["converted"] - expected["unconverted"]) > 0.01
    assert found["tokens"] == 64
    assert found["text_sha256"] == hashlib.sha256((tiny_gguf.TEXT * 3).encode()).hexdigest()


@pytest.fixture
def again(tiny, folder, monkeypatch, run):
    """Store what `core` and `heads` measure. Return a function that runs the script without naming a stage, and returns
    the exit status."""
    monkeypatch.setattr(script, "fetch", lambda: None)
    monkeypatch.setattr(script, "CORE", (script.AS_IS, script.slow(22, 26), script.YARN))
    script.CHOSEN[:] = ["code", "story"]
    run("core", "heads")

    def without_a_stage():
        try:
            run()
        except SystemExit as left:
            return left.code
        return 0

    return without_a_stage


def stored_in(folder):
    """The content of every stored file, and when it was written."""
    return {path: (path.read_bytes(), path.stat().st_mtime_ns) for path in (folder / "real").iterdir()}


ROWS = ["loss-code-as-is", "loss-code-slow-22-26", "loss-code-yarn"]
MAPS = ["heads-code", "heads-story"]


def test_without_a_stage_everything_is_measured_again_and_nothing_stored_is_touched(again, folder, capsys):
    before = stored_in(folder)
    capsys.readouterr()
    assert again() == 0
    assert stored_in(folder) == before
    made = folder / "runs" / "real"
    assert {path.name for path in made.iterdir()} == {f"{name}.json" for name in (*ROWS, *MAPS)}
    for name in (*ROWS, *MAPS):
        there, here = (json.loads((at / f"{name}.json").read_text()) for at in (folder / "real", made))
        assert here["provenance"]["command"] == "python benchmarks/real.py"
        changing = {"provenance", "seconds", "peak_gigabytes"}
        assert {key: one for key, one in here.items() if key not in changing} == {
            key: one for key, one in there.items() if key not in changing
        }
    lines = capsys.readouterr().out.splitlines()
    stored = results.load("loss-code-yarn")["loss"]
    told = f"loss-code-yarn: stored {sum(stored[36:]) / 12:.4f}, new {sum(stored[36:]) / 12:.4f}, "
    assert f"{told}largest difference 0.00000" in lines
    assert [line.split()[0] for line in lines if line.endswith("           0.00000")] == [*ROWS, *MAPS]
    assert any(line.startswith("The core table was reproduced: no number differs") for line in lines)
    assert any(line.startswith("The map of heads was reproduced: no number differs") for line in lines)


def test_what_was_interrupted_is_resumed(again, folder, monkeypatch, capsys):
    measured, losses = [], script.real.losses

    def interrupted(model, tokens):
        measured.append(1)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return losses(model, tokens)

    monkeypatch.setattr(script.real, "losses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        again()
    made = folder / "runs" / "real"
    assert [path.name for path in made.iterdir()] == ["loss-code-as-is.json"]
    first = (made / "loss-code-as-is.json").stat().st_mtime_ns
    capsys.readouterr()
    assert again() == 0
    assert len(measured) == 4
    assert (made / "loss-code-as-is.json").stat().st_mtime_ns == first
    told = capsys.readouterr().out
    assert told.count("there already") == 1
    assert f"{made / 'loss-code-as-is.json'}: there already" in told
    assert "The core table was reproduced" in told
    assert again() == 0
    assert len(measured) == 4


def change_stored(folder, name, **changed):
    path = folder / "real" / f"{name}.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changed))


def test_a_row_that_differs_is_reported(again, folder, capsys):
    loss = results.load("loss-code-yarn")["loss"]
    change_stored(folder, "loss-code-yarn", loss=[*loss[:5], loss[5] + 0.0125, *loss[6:]])
    change_stored(folder, "loss-code-as-is", loss=[one - 0.0075 for one in results.load("loss-code-as-is")["loss"]])
    assert again() == 1
    told = capsys.readouterr().out
    assert (
        "The core table was NOT reproduced: 1 of 3 measurements differ from the stored ones by more than 0.01 nats: "
        "loss-code-yarn." in told
    )
    mean = sum(loss[36:]) / 12
    assert f"loss-code-yarn: stored {mean:.4f}, new {mean:.4f}, largest difference 0.01250" in told
    assert re.search(r"\nloss-code-as-is +\d\.\d{4} +\d\.\d{4} +0\.00750\n", told)
    assert "The map of heads was reproduced" in told


@pytest.mark.parametrize("key", ["q", "k", "first", "own", "previous", "by_distance"])
def test_a_map_that_differs_is_reported(again, folder, capsys, key):
    inner = found = results.load("heads-story")[key]
    while isinstance(inner[0], list):
        inner = inner[0]
    inner[0] += 5
    change_stored(folder, "heads-story", **{key: found})
    assert again() == 1
    told = capsys.readouterr().out
    assert "The core table was reproduced" in told
    assert "The map of heads was NOT reproduced: 1 of 2" in told
    assert told.splitlines()[-2].endswith("heads-story.")


def test_another_version_of_the_text_is_no_failure_but_said_before_and_after(again, folder, capsys):
    loss = {name: results.load(name)["loss"] for name in ROWS}
    for name in ROWS:
        change_stored(folder, name, text_sha256="another version", loss=[one + 1 for one in loss[name]])
    capsys.readouterr()
    assert again() == 0
    told = capsys.readouterr().out
    assert told.startswith("The text of the core table is source code of Python 3")
    assert (
        f"The core table can't be checked completely, because these read another version of the text: {ROWS[0]}" in told
    )
    saved = sum(a - b for a, b in zip(loss[ROWS[0]][36:], loss[ROWS[2]][36:], strict=True)) / 12
    assert f"{ROWS[2]} {saved:.2f} (stored: {saved:.2f})." in told
    assert "The map of heads was reproduced" in told


@pytest.mark.parametrize("content", ["half a fi", "[]", '{"loss": [1.0]}', '{"text_sha256": "one"}'])
def test_a_file_that_is_no_result_of_the_measurement_is_refused(again, folder, content):
    made = folder / "runs" / "real"
    made.mkdir(parents=True)
    (made / "loss-code-as-is.json").write_text(content)
    with pytest.raises(ValueError, match=r"loss-code-as-is\.json must have the same numbers .* delete it"):
        again()


def test_names_of_changes_are_those_that_the_rule_compares():
    changes = (script.AS_IS, script.YARN, script.LINEAR, *script.BANDS, *script.CORE, *script.SINKS, *script.HELD)
    names = {change.name for change in changes}
    assert {name for claim in rule.CLAIMS for one in claim.comparisons for name in (one.a, one.b)} <= names
    for name in names:  # the result for a change is stored under the change's name
        described = [change.describe() for change in changes if change.name == name]
        assert all(one == described[0] for one in described)
    assert sorted(change.name for change in script.SINGLES) == sorted(f"slow-{pair}" for pair in range(32))


def test_only_decide_and_pack_open_a_text_that_decides():
    explored = {text.name for text in texts.EXPLORATION}
    assert set(script.CHOSEN) == explored
    assert not explored & {text.name for text in rule.HELD_OUT}
    source = Path(script.__file__).read_text(encoding="utf-8")
    uses = [inspect.getsource(stage).count("held_out") for stage in (script.decide, script.pack)]
    assert uses == [1, 1]
    assert source.count("held_out") == sum(uses)


# Mean losses that the fake measurement returns, first within and then beyond the trained length.
LOSSES = {
    "as-is": (2.654, 3.654),
    "slow-22-26": (2.674, 2.854),
    "slow-27-31": (2.654, 3.664),
    "yarn": (2.654, 2.754),
    "held-22-26": (2.654, 2.764),
}


NAMES = {change: change.upper() for change in LOSSES}
# The provenance of a fake measurement.
PROVENANCE = {"device": "a GPU", "cpu": "a CPU", "threads": 1, "torch": "2", "numpy": "2", "python": "3"} | {
    "date": "2026-12-01T00:00:00+00:00",
    "seed": None,
    "command": "python benchmarks/real.py",
}


@pytest.fixture
def deciding(folder, monkeypatch):
    """Replace the texts by fake ones, and the model by a fake model whose losses are those in LOSSES, varied a little
    from text to text. Return two lists: the changes that were measured and the names of the texts that were read, both
    in order."""
    measured, read = [], []

    def fake(text):
        def words():
            read.append(text.name)
            return f"the words of {text.name}"

        return dataclasses.replace(text, read=words)

    def losses(change, tokens):
        measured.append(change)
        within, beyond = LOSSES[change]
        values = torch.full((len(tokens) - 1,), within + 0.001 * (len(measured) % 3))
        values[8192:] += beyond - within
        return values

    (folder / "real").mkdir()
    shutil.copy(Path(script.ROOT) / "results/real/bias.json", folder / "real")
    (folder / "model").write_bytes(b"weights")
    tokenizer = SimpleNamespace(encode=lambda text: list(range(rule.LENGTH + 9)))
    monkeypatch.setattr(script, "loaded", lambda: SimpleNamespace(tokenizer=tokenizer, model=None))
    monkeypatch.setattr(script.Change, "of", lambda self, model: self.name)
    monkeypatch.setattr(script.Held, "of", lambda self, model: self.name)
    monkeypatch.setattr(script.real, "losses", losses)
    monkeypatch.setattr(published, "file", lambda: folder / "model")
    monkeypatch.setattr(published, "FILE_SHA256", hashlib.sha256(b"weights").hexdigest())
    monkeypatch.setattr(rule, "OPENED", "2026-12-01")
    monkeypatch.setattr(rule, "HELD_OUT", tuple(fake(text) for text in rule.HELD_OUT))
    script.tokens_of.cache_clear()
    yield measured, read
    script.tokens_of.cache_clear()


def rows_in(folder):
    return {path.stem for path in (folder / "real").glob("decide-*.json")}


def test_nothing_is_read_before_the_rule_is_final(deciding, folder, monkeypatch):
    monkeypatch.setattr(rule, "OPENED", None)
    with pytest.raises(ValueError, match="must stay closed"):
        script.decide()
    assert deciding == ([], [])
    assert not rows_in(folder)


def test_rows_that_decide_are_measured_in_order_and_no_loss_is_shown(deciding, folder, capsys):
    script.decide()
    measured, read = deciding
    assert measured == [change for _, change in rule.ROWS]
    assert list(dict.fromkeys(read)) == [text.name for text in rule.HELD_OUT]
    assert rows_in(folder) == {rule.row(*one) for one in rule.ROWS}
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 40
    for line, one in zip(lines, rule.ROWS, strict=True):
        assert re.fullmatch(rf"\S+/{rule.row(*one)}\.json \d+ s", line)
    row = results.load("decide-play-held-22-26")
    assert row["exploration"] is False
    assert row["rule"] == rule.digest()
    assert row["text_sha256"] == hashlib.sha256(b"the words of play").hexdigest()
    assert row["change"] == {"held": [22, 23, 24, 25, 26], "from": 8192}
    assert len(row["loss"]) == 48
    assert row["loss"][32] == pytest.approx(2.764, abs=0.003)


def test_rows_that_decide_resume_and_are_judged_only_when_all_are_there(deciding, folder, monkeypatch, capsys):
    measured, _ = deciding
    losses = script.real.losses

    def interrupted(change, tokens):
        if len(measured) == 39:
            raise KeyboardInterrupt
        return losses(change, tokens)

    monkeypatch.setattr(script.real, "losses", interrupted)
    with pytest.raises(KeyboardInterrupt):
        script.decide()
    assert len(stored.checked_rows()) == len(rows_in(folder)) == 39
    assert stored.verdicts() is None
    assert stored.decided(NAMES) == (39, 40, {})
    part = results.load("decided")
    assert {"rule", "rows", "measured", "devices", "losses", "claims", "provenance"} == set(part)
    assert part["losses"] == part["claims"] == {}
    assert list(part["devices"].values()) == [39]
    monkeypatch.setattr(script.real, "losses", losses)
    script.decide()
    assert len(measured) == 40
    assert len(rows_in(folder)) == 40
    found = {name: [one.outcome for one in all_of] for name, all_of in stored.verdicts().items()}
    assert found == {
        "band": ["holds"],
        "cost": ["holds"],
        "which": ["holds"],
        "slowest": ["holds"],
        "yarn": ["fails"],
        "penalty": ["holds", "holds"],
    }
    assert list(results.load("decided")["devices"].values()) == [40]
    better = stored.difference("held-22-26", "slow-22-26", rule.BEYOND)
    assert better == pytest.approx([-0.09] * 8, abs=0.003)
    assert stored.over_texts("yarn").tolist() == pytest.approx([2.655] * 8 + [2.755] * 4, abs=0.002)
    shown = stored.decided(NAMES)
    assert shown[:2] == (40, 40)
    assert shown.columns["found"] == [outcome for all_of in found.values() for outcome in all_of]
    compared = "SLOW-22-26, against AS-IS"
    assert shown.columns["compared"][:2] == [compared, f"{compared}, within L"]
    assert [row.endswith(", within L") for row in shown.columns["compared"]].count(True) == 1
    assert shown.columns["claim"][-2:] == ["lower", "not higher"]
    assert shown.columns["mean"][0] == "−0.80 (−0.80 to −0.80)"
    assert shown.columns["by kind"][4] == "+0.10 to +0.10"
    assert not re.search(r"\d\.\d", capsys.readouterr().out)


def test_rows_that_cannot_be_judged_together_stop_the_run(deciding, folder):
    script.decide()
    path = folder / "real" / "decide-uv-as-is.json"
    right = results.load("decide-uv-as-is")
    wrong = {"text_sha256": "0" * 64, "rule": "0" * 64, "row": "decide-uv-yarn", "exploration": True, "tokens": 9}
    for key, value in wrong.items():
        path.write_text(json.dumps(right | {key: value}), encoding="utf-8")
        for call in (script.decide, stored.verdicts):
            with pytest.raises(ValueError, match=f"^{key} in the result 'decide-uv-"):
                call()


def test_a_text_that_changes_between_two_rows_stops_the_run(deciding, folder, monkeypatch):
    measured, _ = deciding
    versions = tuple(dataclasses.replace(text, read=lambda: f"version {len(measured) // 3}") for text in rule.HELD_OUT)
    monkeypatch.setattr(rule, "HELD_OUT", versions)
    with pytest.raises(ValueError, match="text_sha256 in the result 'decide-tarfile-slow-27-31'"):
        script.decide()
    assert len(measured) == 3


@pytest.mark.parametrize("name", ["model", "bias.json"])
def test_another_model_or_other_mean_scores_are_refused(deciding, folder, name):
    next(folder.rglob(name)).write_bytes(b"others")
    with pytest.raises(ValueError, match=f"{re.escape(name)} must have the SHA-256 "):
        script.decide()
    assert deciding == ([], [])


def test_a_text_that_is_too_short_is_refused(deciding, folder, monkeypatch):
    monkeypatch.setattr(script, "LENGTH", script.LENGTH + 9)
    with pytest.raises(ValueError, match="the text 'tarfile' must have more than 12297 tokens, got 12297"):
        script.decide()
    assert not rows_in(folder)


def test_rows_stored_so_far_can_be_judged_together():
    there = {path.stem for path in (Path(script.ROOT) / "results/real").glob("decide-*.json")}
    assert {rule.row(*one) for one in stored.checked_rows()} == there


def test_what_the_page_reads_comes_from_the_rows_stored():
    """More rows may have been measured since then, but all rows that were counted must still be there."""
    found = results.load("decided")
    assert found["rule"] == rule.digest()
    assert found["rows"] == len(rule.ROWS)
    assert found["measured"] <= len(stored.checked_rows())
    assert bool(found["claims"]) == (found["measured"] == found["rows"])
    if found["claims"]:
        again = {name: [script.of_found(one) for one in all_of] for name, all_of in stored.verdicts().items()}
        assert found["claims"] == json.loads(json.dumps(again))
        assert found["losses"] == stored.numbers()
        assert sum(found["devices"].values()) == found["rows"]


@pytest.fixture
def run(monkeypatch):
    """Return a function that runs the script with the given words. Afterwards, undo what the script's options
    changed."""
    for name in ("DEVICE", "CHOSEN", "PACKED"):
        monkeypatch.setattr(script, name, copy.copy(getattr(script, name)))
    monkeypatch.setattr(torch, "set_num_threads", lambda threads: None)

    def with_words(*words):
        monkeypatch.setattr(sys, "argv", ["benchmarks/real.py", *words])
        script.main()

    with torch.set_grad_enabled(torch.is_grad_enabled()):  # the script turns gradients off
        yield with_words


def test_pack_stores_every_text_and_decide_reads_those_instead(deciding, folder, monkeypatch, run):
    measured, read = deciding
    monkeypatch.setattr(published, "FOLDER", folder)
    explored = tuple(dataclasses.replace(text, read=lambda: "explored, é") for text in texts.EXPLORATION)
    fresh = tuple(dataclasses.replace(text, read=lambda: "fresh") for text in texts.FRESH)
    monkeypatch.setattr(texts, "EXPLORATION", explored)
    monkeypatch.setattr(texts, "FRESH", fresh)
    run("pack")
    packed = json.loads((folder / "texts.json").read_text(encoding="utf-8"))
    decides = {text.name: f"the words of {text.name}" for text in rule.HELD_OUT}
    assert packed == {text.name: "explored, é" for text in explored} | {text.name: "fresh" for text in fresh} | decides
    assert measured == []

    read.clear()
    elsewhere = {name: f"another machine's {name}" for name in packed}
    (folder / "theirs.json").write_text(json.dumps(elsewhere), encoding="utf-8")
    run("decide", "--packed", str(folder / "theirs.json"))
    assert read == []
    assert len(measured) == 40
    for text, change in rule.ROWS:
        row = results.load(rule.row(text, change))
        assert row["text_sha256"] == hashlib.sha256(elsewhere[text].encode()).hexdigest()
        assert row["provenance"]["command"].endswith(f"decide --packed {folder / 'theirs.json'}")


def test_nothing_is_packed_before_the_rule_is_final(deciding, folder, monkeypatch, run):
    monkeypatch.setattr(rule, "OPENED", None)
    monkeypatch.setattr(published, "FOLDER", folder)
    with pytest.raises(ValueError, match="must stay closed"):
        run("pack")
    assert not (folder / "texts.json").exists()


def test_the_device_has_the_model_and_the_tokens_and_is_stored(folder, monkeypatch, run):
    (folder / "model").write_bytes(b"weights")
    tokenizer = SimpleNamespace(encode=lambda text: [1, 2, 3])
    model = torch.nn.Linear(2, 2)
    monkeypatch.setattr(published, "file", lambda: folder / "model")
    monkeypatch.setattr(script.real, "load", lambda path: SimpleNamespace(model=model, tokenizer=tokenizer))
    asked = []
    monkeypatch.setattr(script.device, "provenance", lambda seed, command, on: asked.append(on) or PROVENANCE)
    text = dataclasses.replace(rule.HELD_OUT[0], read=lambda: "words")
    found = {}

    def stage():
        found["model"], found["tokens"] = script.loaded().model.weight, script.tokens_of(text)
        script.measure("loss-one", dict)

    monkeypatch.setitem(script.STAGES, "core", stage)
    for cached in (script.loaded, script.tokens_of):
        cached.cache_clear()
    try:
        run("core", "--device", "meta")
    finally:
        for cached in (script.loaded, script.tokens_of):
            cached.cache_clear()
    assert {name: tensor.device.type for name, tensor in found.items()} == {"model": "meta", "tokens": "meta"}
    assert asked == [torch.device("meta")]
    assert results.load("loss-one")["provenance"] == PROVENANCE


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


def test_a_rival_band_is_drawn_for_each_text_and_stays_the_same():
    bands = {text.name: script.random_pairs(text.name).pairs for text in texts.FRESH}
    assert bands == {text.name: script.random_pairs(text.name).pairs for text in texts.FRESH}
    assert len(set(bands.values())) == len(bands)
    for pairs in bands.values():
        assert len(set(pairs)) == 5
        assert not set(pairs) & set(rule.BAND)
    names = {text.name for text in (*texts.FRESH, *rule.HELD_OUT, *texts.EXPLORATION)}
    assert len(names) == 4 + 8 + 4
    assert {text.name for text in texts.FRESH} == set(rule.CLOSED)


@pytest.fixture
def small(monkeypatch):
    """Return a model with one layer. The stored mean scores are replaced with random ones that fit this model."""
    torch.manual_seed(0)
    model = LlamaModel(20, 16, 24, 1, 4, layout="half", dtype=torch.float64).requires_grad_(False)
    amplitudes = torch.randn(1, 4, 2, dtype=torch.complex128)
    bias = stored.Bias(amplitudes, torch.tensor([1.0, 0.1], dtype=torch.float64))
    monkeypatch.setattr(stored, "bias", lambda: bias)
    monkeypatch.setattr(script, "LENGTH", 12)
    monkeypatch.setattr(script, "TRAINED", 4)
    return model


def test_hidden_tokens_do_not_matter_but_the_first_one_does(small):
    tokens = torch.arange(12)[None]
    hidden = script.Hidden("hidden", 4).of(small)
    told = hidden(tokens)
    assert told[:, :4].allclose(small(tokens)[:, :4])
    assert not told[:, 5:].allclose(small(tokens)[:, 5:])
    for place, matters in ((0, True), (7, False), (8, True)):
        other = tokens.clone()
        other[0, place] = 15
        assert hidden(other)[0, 11].allclose(told[0, 11]) is not matters


def test_shuffled_heads_get_the_biases_of_other_heads(small):
    own, shuffled = (
        script.Held("held", (0, 1), shuffle).of(small).layers[0].attention.reversed for shuffle in (None, 0)
    )
    assert not own.equal(shuffled)
    heads = range(4)
    order = [next(other for other in heads if own[other].equal(shuffled[head])) for head in heads]
    assert sorted(order) == list(heads)


def test_the_attack_gathers_only_changes_that_all_texts_have(folder):
    for place, change in enumerate((script.AS_IS, None, script.HIDDEN)):
        for text in texts.FRESH[: 4 if change != script.HIDDEN else 3]:
            loss = [float(place)] * 36 + [place + 0.5] * 12
            name = (change or script.random_pairs(text.name)).name
            script.measure(f"attack-{text.name}-{name}", lambda loss=loss: {"loss": loss})
    script.gather_attack()
    found = results.load("attack")["texts"]
    assert set(found) == {text.name for text in texts.FRESH}
    for row in found.values():
        assert row["within"] == {"as-is": 0.0, "others": 1.0}
        assert row["beyond"] == {"as-is": 0.5, "others": 1.5}


def test_the_maps_with_stopped_positions_are_gathered_for_the_page(folder):
    read = texts.EXPLORATION[:2]
    for at, text in enumerate(read):
        for stop, change in enumerate(script.STOPS):
            first = [[0.25, 0.75], [0.5 + at / 10, 0.5 + stop / 10]]
            same = {name: [[0.0, 0.0], [0.0, 0.0]] for name in ("own", "entropy")}
            pairs = {name: [[[1.0], [1.0]], [[1.0], [1.0]]] for name in ("by_distance", "q", "k")}
            data = {"first": first, "previous": [[0.0, 1.0], [at / 10, stop / 10]], **same, **pairs, "edges": [0, 1]}
            script.measure(f"heads-{text.name}-{change.name}", lambda data=data: data)
    script.gather_stopped(read)
    found = results.load("stopped")
    assert [one["text"] for one in found["texts"]] == [text.name for text in read]
    assert found["changes"]["stop-0-15"]["pairs"] == list(range(16))
    for at, text in enumerate(read):
        for stop, change in enumerate(script.STOPS):
            assert found["previous"][text.name][change.name] == [[0.0, 1.0], [at / 10, stop / 10]]
            assert found["first"][text.name][change.name] == [0.5, pytest.approx(0.5 + at / 20 + stop / 20)]


def test_attention_with_repeated_heads_gives_the_same_numbers(monkeypatch):
    torch.manual_seed(0)
    q, k, v = torch.randn(2, 6, 5, 8), torch.randn(2, 2, 7, 8), torch.randn(2, 2, 7, 8)
    mask = torch.randn(5, 7)
    told = torch.nn.functional.scaled_dot_product_attention(q, k, v, mask, enable_gqa=True, scale=0.2)
    found = script.repeated_attention(q, k, v, mask, enable_gqa=True, scale=0.2)
    torch.testing.assert_close(found, told)
    assert not found.allclose(script.ATTENTION(q, k.repeat(1, 3, 1, 1), v.repeat(1, 3, 1, 1), mask, scale=0.2))

    model = LlamaModel(20, 16, 24, 1, 4, n_kv_heads=2, layout="half", dtype=torch.float64).requires_grad_(False)
    tokens, calls = torch.arange(12)[None], []
    expected = model(tokens)

    def attention(q, k, v, *given, **named):
        calls.append((q.shape[1], k.shape[1]))
        return script.ATTENTION(q, k, v, *given, **named)

    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", attention)
    model(tokens)
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", script.repeated_attention)
    assert calls == [(4, 2)]  # the heads of this model are grouped
    torch.testing.assert_close(model(tokens), expected)


@pytest.mark.parametrize(("where", "repeats"), [("cuda", True), ("meta", False)])
def test_only_a_gpu_reads_with_repeated_heads(monkeypatch, run, where, repeats):
    monkeypatch.setattr(torch.nn.functional, "scaled_dot_product_attention", script.ATTENTION)
    monkeypatch.setitem(script.STAGES, "core", lambda: None)
    run("core", "--device", where)
    used = torch.nn.functional.scaled_dot_product_attention
    assert used is (script.repeated_attention if repeats else script.ATTENTION)


@pytest.fixture
def layered(tiny, monkeypatch):
    """Like `tiny`, but with three layers of two heads, and trained on shorter texts than it reads."""
    tiny_gguf.write(tiny, tiny_gguf.llama(heads=2, kv_heads=1, dim=128, layers=3))
    monkeypatch.setattr(script, "TRAINED", 240)
    monkeypatch.setattr(script, "MANY", 2)


def test_the_mean_score_is_held_in_groups_of_heads_and_in_single_heads(layered, folder, run):
    run("hold_some")
    groups = script.groups_of_heads()
    assert {name: len(heads) for name, heads in groups.items()} == {"top": 2, "random": 2, "rest": 4}
    assert set(groups["rest"]) == set(range(6)) - set(groups["top"])
    assert set(groups["random"]) <= set(groups["rest"])
    distances = torch.arange(240.0, 481, dtype=torch.float64)
    scores = bias.at(*stored.bias(), distances, [22, 23, 24, 25, 26]).flatten(0, 1)
    risen = (scores - scores[:, :1]).mean(1).tolist()
    assert min(risen[head] for head in groups["top"]) >= max(risen[head] for head in groups["rest"])
    assert risen[groups["top"][0]] == max(risen)

    names = {path.stem for path in (folder / "real").glob("loss-*.json")}
    changes = ["as-is", "held-22-26", *(f"held-{group}-heads" for group in groups)]
    expected = {f"loss-{text}-{change}" for text in ("code", "story", "manual") for change in changes}
    alone = (*groups["top"], *groups["random"])
    assert names == expected | {f"loss-code-held-head-{head}" for head in alone}
    for group, heads in groups.items():
        assert results.load(f"loss-story-held-{group}-heads")["change"]["heads"] == list(heads)
    row = results.load(f"loss-code-held-head-{alone[1]}")
    assert row["change"] == {"held": [22, 23, 24, 25, 26], "from": 240, "heads": [alone[1]]}

    found = results.load("some_heads")
    assert found["groups"] == {name: list(groups[name]) for name in ("top", "random")}
    assert found["rise"] == pytest.approx(risen, abs=6e-5)
    assert sum(found["devices"].values()) == len(names)
    assert set(found["loss"]) == {"code", "story", "manual"}
    assert found["loss"]["story"] == {
        name: pytest.approx(stored.loss_in("story", change, rule.BEYOND), abs=6e-6)
        for name, change in zip(("none", "all", *groups), changes, strict=True)
    }
    assert found["alone"] == {
        str(head): pytest.approx(stored.loss_in("code", f"held-head-{head}", rule.BEYOND), abs=6e-6) for head in alone
    }


def test_only_the_chosen_heads_get_their_bias(small):
    every, some = (
        script.Held("held", (0, 1), heads=heads).of(small).layers[0].attention.reversed for heads in (None, (1, 3))
    )
    for head in range(4):
        assert some[head].equal(every[head]) is (head in (1, 3))
        kept = some[head, : script.LENGTH + 1]
        assert kept.any() if head in (1, 3) else not kept.any()


def test_one_pair_at_a_time_is_stopped_and_gathered(tiny, folder, run):
    run("stop_each")
    found = results.load("explored")
    assert set(found["stopped"]) == {f"stop-{pair}" for pair in range(32)}
    model, tokens = script.loaded().model, script.tokens_of(texts.exploration("code"))[:481]
    for pair in (0, 5):
        change = results.load(f"loss-code-stop-{pair}")["change"]
        assert (change["pairs"], change["factor"]) == ([pair], script.STILL)
        frequencies = model.layers[0].attention.rotary.inv_freq.clone()
        frequencies[pair] = 0
        still = script.real.losses(script.with_frequencies(model, frequencies), tokens)
        assert found["stopped"][f"stop-{pair}"] == pytest.approx(still.view(12, 40).mean(1).tolist(), abs=1e-4)
    assert found["loss"] == {}
    assert list(found["devices"].values()) == [32]
    [read] = found["texts"]
    assert read["text"] == "code"


def test_what_was_explored_is_gathered_by_text_and_change(folder):
    def put(text, change, loss, version="one", **where):
        row = {"text": text, "kind": "a kind", "source": "a source", "license": "a licence", "text_sha256": version}
        results.save(f"loss-{text}-{change}", row | {"file_sha256": "f", "loss": loss}, PROVENANCE | where, "real")

    early, late = {"device": "a CPU", "date": "2026-11-24T01:00:00+00:00"}, {"date": "2026-11-26T01:00:00+00:00"}
    loss = [1.0] * 16 + [2.0] * 20 + [3.5] * 12
    put("story", "as-is", loss, **early)
    put("story", "slow-19", [2 * one for one in loss], **late)
    put("story", "slow-3-9", loss)  # which nothing reads
    put("manual", "first-near", loss, **late)
    script.gather_explored()
    found = results.load("explored")
    assert found["loss"] == {
        "manual": {"first-near": {"within": 2.0, "beyond": 3.5}},
        "story": {"as-is": {"within": 2.0, "beyond": 3.5}, "slow-19": {"within": 4.0, "beyond": 7.0}},
    }
    assert found["stopped"] == {}
    assert found["devices"] == {"a CPU": 1, "a GPU": 2}
    assert found["dates"] == ["2026-11-24", "2026-11-26"]
    assert [one["text"] for one in found["texts"]] == ["manual", "story"]
    put("story", "slow-20", loss, version="two")
    with pytest.raises(
        ValueError, match="all rows of 'story' must come from one text and model, but 'slow-20' doesn't"
    ):
        script.gather_explored()


def test_the_gathered_files_say_what_the_rows_say():
    explored = results.load("explored")
    rows = [f"loss-code-{change}" for change in explored["stopped"]]
    for text, changes in explored["loss"].items():
        for change, loss in changes.items():
            rows.append(f"loss-{text}-{change}")
            assert loss["within"] == pytest.approx(stored.loss_in(text, change, rule.WITHIN), abs=6e-6), rows[-1]
            assert loss["beyond"] == pytest.approx(stored.loss_in(text, change, rule.BEYOND), abs=6e-6), rows[-1]
    for change, thousands in explored["stopped"].items():
        assert thousands == pytest.approx(stored.losses("code", change).tolist(), abs=6e-5)
    there = {path.stem for path in (Path(script.ROOT) / "results/real").glob("loss-*.json")}
    wanted = re.compile(r"loss-\w+-(as-is|slow-[\d-]+|slow-22-26-by-(1_5|3)|first-near|first-slow|others-slow)")
    assert {name for name in there if wanted.fullmatch(name) or "-stop-" in name} == set(rows)
    assert len(rows) == sum(explored["devices"].values())

    some, groups = results.load("some_heads"), script.groups_of_heads()
    assert some["groups"] == {name: list(groups[name]) for name in ("top", "random")}
    assert some["rise"] == pytest.approx(script.rise().tolist(), abs=6e-5)
    for text, losses in some["loss"].items():
        for name, loss in losses.items():
            change = {"none": "as-is", "all": "held-22-26"}.get(name, f"held-{name}-heads")
            assert loss == pytest.approx(stored.loss_in(text, change, rule.BEYOND), abs=6e-6)
            if name in groups:
                assert results.load(f"loss-{text}-{change}")["change"]["heads"] == list(groups[name])
    assert set(some["alone"]) == {str(head) for head in (*groups["top"], *groups["random"])}
    for head, loss in some["alone"].items():
        assert loss == pytest.approx(stored.loss_in("code", f"held-head-{head}", rule.BEYOND), abs=6e-6)
        assert results.load(f"loss-code-held-head-{head}")["change"]["heads"] == [int(head)]
    for gathered in (explored, some):
        last = max(gathered["dates"])
        assert {name["text"] for name in gathered["texts"]} <= {"code", "story", "manual", "headers"}
        assert gathered["provenance"]["date"][:10] >= last
