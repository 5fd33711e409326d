"""Tests of benchmarks/trials.py, from the first training step to the numbers that the rule reads. They use two tiny
runs."""

import dataclasses
import inspect
import json
import sys

import numpy as np
import pytest
import torch

from ropebook.lab import extensions, measured, parts, rule, scores, trials, variants
from ropebook.lab.claims import CLAIMS
from tests.scripts import benchmark

TINY = {"dim": 8, "hidden_dim": 8, "n_layers": 1, "n_heads": 2, "rows": 8, "steps": 2, "warmup": 1}
KEPT = ("linear", "yarn_chosen", "dynamic_ntk")
DRAWS = np.random.default_rng(0)
TEXT = DRAWS.integers(32, 127, 3000, np.uint8)
PARTS = parts.Parts(
    TEXT,
    {f"d{i}.py": np.roll(TEXT, i) for i in range(2)},
    {f"h{i}.py": np.roll(TEXT, 9 * i + 7) for i in range(2)},
    (),
    "a hash",
    "3",
)


@pytest.fixture(scope="module")
def module():
    return benchmark("trials")


@pytest.fixture
def script(module, tmp_path, monkeypatch):
    tiny = tuple(trials.Trial(scheme, seed, **TINY) for seed in (0, 1) for scheme in ("alibi", "rope-10000"))
    longer = tuple(trials.twice(trial) for trial in tiny if trial.scheme == "rope-10000")
    every = extensions.extensions
    for owner, name, value in (
        (module, "ROOT", tmp_path),
        (module.parts, "load", lambda: PARTS),
        (trials, "TRIALS", tiny),
        (trials, "LONGER", longer),
        (trials, "STEPS", 2),
        (scores, "LANGUAGES", 2),
        # compiling takes minutes, and doesn't change any number that we check here
        (torch, "compile", lambda model: model),
        (extensions, "CANDIDATES", {name: values[:2] for name, values in extensions.CANDIDATES.items()}),
        (extensions, "TUNED", ("none", "linear")),
        (extensions, "extensions", lambda chosen: [each for each in every(chosen) if each.name in KEPT]),
        (trials, "SEEDS", (0, 1)),
        (measured, "SEEDS", (0, 1)),
        (measured, "LONGER", "rope-10000-4"),
        (measured, "verdicts", lambda numbers, asked, able: sorted(numbers)),
        (measured, "differences", lambda numbers: {}),
    ):
        monkeypatch.setattr(owner, name, value)
    shorter = ((0, 256), (256, 512), (512, 1024), (1024, 1792))
    for function, defaults in (
        (trials.further, (2,)),
        (scores.materials, (1792, 2)),
        (scores.measure, (shorter,)),
        (scores.measure_windowed, (shorter,)),
        (scores.measure_ended, (shorter,)),
    ):
        monkeypatch.setattr(inspect.unwrap(function), "__defaults__", defaults)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["trials.py", *words])
        module.main()
        return tmp_path / "results" / "trials"

    return run


def test_from_training_to_numbers_that_the_rule_reads(module, script, tmp_path, capsys):
    folder = script("train", "--only", "rope-10000-1")
    assert {path.name for path in folder.iterdir()} == {"rope-10000-1.json", "rope-10000-1.safetensors"}
    with pytest.raises(SystemExit, match="not trained yet: rope-10000-0-4, rope-10000-1-4"):
        script("choose")
    capsys.readouterr()
    script("train")
    assert "rope-10000-1:" not in capsys.readouterr().out  # the run isn't trained a second time
    script("gather")
    assert "has not been tried with everything; missing: alibi-0" in capsys.readouterr().out
    gathered = json.loads((tmp_path / "results" / "measured.json").read_text())
    assert [one["name"] for one in gathered["trainings"]] == [
        *("alibi-0", "alibi-1", "rope-10000-0", "rope-10000-0-4", "rope-10000-1", "rope-10000-1-4"),
    ]
    assert gathered["opened"] is None
    told = json.loads((folder / "rope-10000-0.json").read_text())
    assert told["epochs"] == pytest.approx(2 * 8 * 0.75 * 256 / 3000, abs=1e-3)
    assert set(told["within"]) == {"retrieval", "order"}
    assert set(told["headroom"]) == {"python", "language", "language_floor"}
    assert (folder / "rope-10000-0.safetensors").stat().st_size < 2.5 * told["parameters"] + 2000
    state = torch.load(tmp_path / "runs" / "trials" / "rope-10000-0.pt", weights_only=False)["model"]
    model = module.model_of(trials.TRIALS[1])
    assert all(torch.equal(model.state_dict()[name], weight.half().float()) for name, weight in state.items())

    with pytest.raises(SystemExit, match="parameters have to be chosen first"):
        script("evaluate", "--part", "held_out")
    script("choose")
    chosen = json.loads((folder / "chosen.json").read_text())
    assert set(chosen["chosen"]) == set(extensions.CANDIDATES)
    assert all(len(seeds) == 2 for by in chosen["found"].values() for seeds in by.values())

    capsys.readouterr()
    script("evaluate", "--part", "held_out")
    script("tune")
    printed = capsys.readouterr().out
    numbers = scores.stored(folder / "held_out")
    assert not [word for word in printed.split() if "." in word]  # the script may print only names and whole seconds
    script("gather")
    opened = json.loads((tmp_path / "results" / "measured.json").read_text())["opened"]
    assert capsys.readouterr().out == ""
    assert opened["files"] == ["h0.py", "h1.py"]
    assert "rope-10000-4/linear/8/tuned" in opened["cells"]
    assert len(opened["cells"]) == 2 + 1 + 7 + 2 * 3
    (folder / "held_out" / "rope-10000-1-4_linear_4.json").rename(folder / "away")
    script("gather")
    assert "missing: rope-10000-1-4/linear/4" in capsys.readouterr().out
    assert json.loads((tmp_path / "results" / "measured.json").read_text())["opened"] is None
    (folder / "away").rename(folder / "held_out" / "rope-10000-1-4_linear_4.json")
    assert len(numbers) == 2 * 2 + 2 * (1 + 7) + 2 * 2 * 3
    as_named = {name.replace("-4", "-3200"): cell for name, cell in numbers.items()}
    for name in ("S2.9a linear", "S3.6a", "S3.6c yarn_chosen", "tuned linear last"):
        for comparison in CLAIMS[name].comparisons:
            assert comparison.table(as_named, seeds=(0, 1)).shape[0] == 2
    cell = folder / "held_out" / "alibi-1.json"
    whole = cell.read_text()
    cell.write_text(whole.replace('"weights": "', '"weights": "0'))
    with pytest.raises(SystemExit, match=r"alibi-1.json is of other weights, options or text: remove it"):
        script("evaluate", "--part", "held_out")
    cell.write_text(whole)
    script("evaluate", "--part", "held_out")  # everything has already been evaluated
    share = rule.Share("rope-10000-4", "linear/8", "order", 2048, 384)
    with pytest.raises(KeyError):
        share.of(numbers, 0)  # the texts in this test are shorter
    assert not (folder / "development").exists()
    assert numbers["rope-10000-0-4/linear/8/tuned"]["last"]["python"] != numbers["rope-10000-0-4"]["last"]["python"]
    assert "last" in numbers["alibi-0"]
    assert "last" not in numbers["rope-10000-0"]
    plain = numbers["rope-10000-0-4"]["numbers"]["python"]
    assert numbers["rope-10000-0"]["numbers"]["python"] != plain
    assert numbers["rope-10000-0-4/linear/8"]["numbers"]["python"] != plain
    assert numbers["rope-10000-0-4/none/8/tuned"]["numbers"]["python"] != plain


def test_of_a_scheme_without_retrieval_the_weakest_seed_is_trained_twice_as_long(module, script, monkeypatch):
    folder = script("train", "--only", "alibi-0")
    assert module.left_to_double() == []  # other seeds may still find more records
    script("train", "--only", "alibi-1")
    for seed, share in enumerate((0.2, 0.1)):
        told = json.loads((folder / f"alibi-{seed}.json").read_text())
        told["within"]["retrieval"] = share
        (folder / f"alibi-{seed}.json").write_text(json.dumps(told))
    assert [trial.name for trial in module.left_to_double()] == ["alibi-1-4"]
    script("train", "--twice")
    assert json.loads((folder / "alibi-1-4.json").read_text())["run"]["steps"] == 4
    assert [trial.name for trial in module.left_to_double()] == ["alibi-1-4"]
    monkeypatch.setattr(measured, "able", lambda rows: {"alibi"})
    assert module.left_to_double() == []


def test_variants_are_trained_and_the_rate_of_the_table_is_chosen(module, script, monkeypatch, capsys):
    def tiny(scheme, seed, name, **changes):
        return variants.Variant(scheme, seed, variant=name, **{**TINY, **changes})

    def t5(rate):
        return tuple(tiny("t5", seed, f"bias-{rate}", bias_lr=rate) for seed in (0, 1))

    for name, value in (
        ("BIAS_RATES", (0.05, 0.5)),
        ("T5_CANDIDATES", (t5(0.05)[0], t5(0.5)[0])),
        ("t5", t5),
        ("CEILING", (tiny("rope-10000", 0, "long", length=1792, rows=4),)),
        ("VARIANTS", (tiny("rope-10000", 0, "gaps", reach=900),)),
        ("RAISED_STEPS", (2,)),
        ("MORE", (trials.Trial("none", 3, **TINY),)),
    ):
        monkeypatch.setattr(variants, name, value)
    folder = script("train", "--only", "rope-10000-0-4")
    script("vary")
    found = {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}
    rates = {
        rate: sum(
            sum(row[0] for row in rows) / len(rows)
            for rows in (found[f"t5-0-bias-{rate}"]["development"][text] for text in ("python", "language"))
        )
        for rate in (0.05, 0.5)
    }
    chosen = min(rates, key=rates.get)
    assert f"T5's table: a rate of {chosen}" in capsys.readouterr().out
    assert set(found) == {
        *("rope-10000-0-4", "rope-10000-0-long", "rope-10000-0-gaps"),
        *("rope-10000-0-4-raised_base_2-8", "rope-10000-0-4-kept_base_2-8"),
        *(f"t5-0-bias-{rate}" for rate in rates),
        f"t5-1-bias-{chosen}",
    }
    assert found["rope-10000-0-long"]["headroom"] is None
    assert found["rope-10000-0-gaps"]["headroom"]
    assert found["rope-10000-0-gaps"]["run"]["reach"] == 900
    assert found["t5-1-bias-" + str(chosen)]["provenance"]["command"] == "python benchmarks/trials.py vary"
    # these runs start from the parent's weights, and only one of them has the larger base
    bits = [
        found[f"rope-10000-0-4{end}"]["development"]["python"] for end in ("", "-raised_base_2-8", "-kept_base_2-8")
    ]
    assert bits[0] != bits[1] != bits[2] != bits[0]
    losses = [found[f"rope-10000-0-4-{of}_base_2-8"]["losses"] for of in ("raised", "kept")]
    assert losses[0] != losses[1]
    script("raise")
    only = json.loads((folder / "rope-10000-0-4-raised_base_0-8.json").read_text())
    assert (only["parent"], only["base"]) == ("rope-10000-0-4", 500_000)
    assert only["development"]["python"] not in bits
    script("last")
    last = json.loads((folder / "rope-10000-0-4-raised_base_2-8-last.json").read_text())
    whole = found[last["run"]]["development"]["python"]
    assert last["window"] == 256
    for short, long in zip(last["development"]["python"], whole, strict=True):
        assert short[0] == pytest.approx(long[0], abs=1e-4)  # within L both read the same bytes, with the same base
        assert short[-1] != long[-1]
    script("vary")
    assert "done" not in capsys.readouterr().out  # there is nothing left to do
    script("seed")
    more = json.loads((folder / "none-3.json").read_text())
    assert more["run"]["seed"] == 3
    assert more["provenance"]["command"] == "python benchmarks/trials.py seed"


def test_some_variants_and_more_seeds_are_trained_alone(script, monkeypatch):
    def gaps(seed):
        return variants.Variant("rope-10000", seed, variant="gaps", reach=900, **TINY)

    for name, value in (
        ("VARIANTS", (gaps(0), gaps(1))),
        ("T5_CANDIDATES", ()),
        ("BIAS_RATES", ()),
        ("RAISED_STEPS", (2,)),
        ("MORE", (trials.Trial("none", 3, **TINY), trials.Trial("none", 4, **TINY))),
    ):
        monkeypatch.setattr(variants, name, value)
    folder = script("vary", "--only", "rope-10000-1-gaps")
    script("seed", "--only", "none-4")
    assert {path.stem for path in folder.glob("*.json")} == {"rope-10000-1-gaps", "none-4"}
    script("train", "--only", "rope-10000-0-4")
    script("vary", "--only", "rope-10000-0-4-raised_base_2-8")
    assert (folder / "rope-10000-0-4-raised_base_2-8.json").exists()


def test_a_packed_text_gives_the_same_training(module, script, tmp_path, monkeypatch):
    file = tmp_path / "text.npz"
    script("pack", str(file))
    monkeypatch.setattr(module.parts, "load", lambda: pytest.fail("this Python's own text was read"))
    folder = script("train", "--only", "alibi-0", "--text", str(file))
    packed = json.loads((folder / "alibi-0.json").read_text())
    (folder / "alibi-0.json").unlink()
    (tmp_path / "runs" / "trials" / "alibi-0.pt").unlink()
    monkeypatch.setattr(module.parts, "load", lambda: PARTS)
    script("train", "--only", "alibi-0")
    own = json.loads((folder / "alibi-0.json").read_text())
    for key in ("losses", "development", "corpus"):
        assert packed[key] == own[key]


def test_pack_needs_a_file_and_nothing_else_does(script, capsys):
    for words in (("pack",), ("train", "text.npz")):
        with pytest.raises(SystemExit):
            script(*words)
        assert "FILE must be given with pack, and only then" in capsys.readouterr().err


def test_it_names_the_runs_there_are(script, capsys):
    with pytest.raises(SystemExit):
        script("train", "--only", "rope-7-0")
    assert "must name some of alibi-0, rope-10000-0, alibi-1, rope-10000-1, rope-10000-0-4" in capsys.readouterr().err


def test_numbers_of_two_texts_are_not_put_together(tmp_path):
    for at in range(2):
        (tmp_path / f"{at}.json").write_text(json.dumps({"cell": str(at), "corpus": {"sha256": f"text {at}"}}))
    with pytest.raises(ValueError, match="folder must have numbers of one text, got 2"):
        scores.stored(tmp_path)


def test_a_further_training_reads_as_much_in_longer_texts():
    trial = trials.Trial("rope-10000", 1, rows=16)
    run = trials.further(trial, "yarn_chosen", 8)
    assert (run.length, run.rows, run.steps) == (2048, 2, 60)
    assert (run.lr, run.matrix_lr) == (trial.lr / 5, trial.matrix_lr / 5)
    long = dataclasses.replace(PARTS, train=TEXT)
    kinds = set()
    for step in (0, 1):
        for row in run.batch(long, step):
            kinds.add((bool((row >= 192).any()), int(((row >= 128) & (row < 192)).sum())))
    assert kinds == {(False, 0), (False, 16), (False, 24), (True, 0)}
    with pytest.raises(ValueError, match="factor must divide the 16 rows"):
        trials.further(trial, "linear", 3)
