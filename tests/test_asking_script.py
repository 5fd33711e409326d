"""Tests of benchmarks/asking.py, from the weights to the file that the page reads. They use two tiny rotary models and
one model without rotation."""

import dataclasses
import json
import re
import sys

import numpy as np
import pytest
import torch
from safetensors.torch import save

from ropebook.lab import asking, order, parts, rule_two
from ropebook.lab.asking import Layout, by_context
from ropebook.lab.model import LanguageModel
from tests.scripts import benchmark

SIZES = {"dim": 16, "hidden_dim": 16, "n_layers": 2, "n_heads": 2}
MODELS = ("rope-10000-0-3200", "rope-10000-1-3200", "learned-0")
TEXT = np.random.default_rng(0).integers(32, 127, 4000, np.uint8)
PARTS = parts.Parts(TEXT, {"d.py": TEXT}, {"h.py": TEXT}, (), "a hash", "3")
FAR = {"length": 600, "low": 256, "high": 600, "contexts": 4, "asked": 2}
NEAR = {"length": 255, "low": 16, "high": 255, "contexts": 4, "asked": 2}
LAYOUTS = {
    "retrieval": Layout("retrieval", **FAR),
    "order": Layout("order", **FAR),
    "retrieval within": Layout("retrieval", **NEAR),
    "order within": Layout("order", **NEAR),
    "order short": Layout("order", **NEAR | {"high": 48}),
}


@pytest.fixture(scope="module")
def module():
    return benchmark("asking")


@pytest.fixture
def script(module, tmp_path, monkeypatch):
    trials = tmp_path / "results" / "trials"
    trials.mkdir(parents=True)
    for name in MODELS:
        scheme, seed = order.id_of(name)
        scheme = scheme.removesuffix("-3200")
        run = {"scheme": scheme, "length": 256, **SIZES}
        state = LanguageModel(scheme, 256, **SIZES, seed=seed).state_dict()
        state = {key: weight.half().contiguous() for key, weight in state.items() if key != "lm_head.weight"}
        (trials / f"{name}.safetensors").write_bytes(save(state))
        (trials / f"{name}.json").write_text(json.dumps({"run": run}))
    chosen = {"ntk_by_parts": 2, "yarn": 4, "self_extend": 128, "rerope": 192}
    (trials / "chosen.json").write_text(json.dumps({"chosen": chosen}))
    saved = {}
    for owner, name, value in (
        (module, "ROOT", tmp_path),
        (module.parts, "load", lambda: PARTS),
        (module, "LAYOUTS", LAYOUTS),
        (module, "FEW", 2),
        (module, "MAPPED", {name: LAYOUTS[name] for name in ("order", "order within")}),
        (module, "ATTACKS", {"two keys": Layout("order", **FAR | {"asked": 1})}),
        (module.results, "save", lambda name, data, where: saved.update({name: data})),
    ):
        monkeypatch.setattr(owner, name, value)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["asking.py", *words])
        module.main()
        return tmp_path / "results" / "asking"

    return run, saved


def test_from_weights_to_what_the_page_reads(module, script, capsys):
    run, saved = script
    folder = run("cells")
    names = {path.stem for path in folder.glob("cell-*")}
    methods = {
        "linear-8",
        "ntk-8",
        "ntk_by_parts-8",
        "ntk_by_parts_chosen-8",
        "yarn-8",
        "yarn_chosen-8",
        "self_extend-8",
    }
    methods |= {"dynamic_ntk", "log_n", "rerope", "raised_base"}
    of_extended = {f"cell-{name}-{method}" for name in MODELS[:2] for method in methods}
    assert names == {f"cell-{name}" for name in MODELS} | of_extended
    slow = json.loads((folder / "cell-rope-10000-0-3200-rerope.json").read_text())
    assert len(slow["answers"]["order"]) == 2
    assert len(slow["answers"]["order within"]) == 4
    learned = json.loads((folder / "cell-learned-0.json").read_text())
    assert set(learned["answers"]) == {"retrieval within", "order within", "order short"}

    run("map")
    assert {path.stem for path in folder.glob("map-*")} == {f"map-{name}" for name in MODELS[:2]}
    run("attack")
    capsys.readouterr()
    for words in ("cells", "map", "attack"):
        run(words)  # the results already exist, so nothing is measured or printed
    assert capsys.readouterr().out == ""

    run("gather")
    found = json.loads(json.dumps(saved["order"]))
    cell = found["cells"]["rope-10000-3200/linear/8"]
    assert cell["seeds"] == [0, 1]
    told = [json.loads((folder / f"cell-rope-10000-{seed}-3200-linear-8.json").read_text()) for seed in (0, 1)]
    plain = [json.loads((folder / f"cell-rope-10000-{seed}-3200.json").read_text()) for seed in (0, 1)]
    gain = asking.paired(*([one["answers"]["order"] for one in some] for some in (told, plain)), "order").mean()
    assert cell["less plain"]["order"][0] == pytest.approx(gain.item(), abs=1e-4)
    assert cell["each"][1]["order"]["score"] == pytest.approx(
        by_context(told[1]["answers"]["order"], "order").mean(), abs=1e-4
    )
    mapped = found["maps"][MODELS[0]]
    assert len(mapped["pairs"]["still"]["order"]) == 4
    assert mapped["plain"]["found order"] >= abs(mapped["plain"]["order"])
    assert mapped["pair"] == int(np.argmax(mapped["pairs"]["halved"]["order"]))
    attacked = found["attacks"][MODELS[0]]
    assert attacked["twin"] != attacked["pair"]
    assert set(attacked["heads"]) == {"0.0", "0.1", "1.0", "1.1"}

    cell = folder / "cell-learned-0.json"
    cell.write_text(cell.read_text().replace('"weights": "', '"weights": "0'))
    with pytest.raises(SystemExit, match=r"cell-learned-0.json is of other weights, options, contexts or text: remove"):
        run("cells", "--only", "learned-0")


def test_everything_that_the_second_rule_asks_is_measured_once(module, script, monkeypatch, tmp_path, capsys):
    run, saved = script
    model = "rope-10000-3200"
    sides = [
        rule_two.Answers(model, "order"),
        rule_two.Answers(model, "order", "linear/8"),
        rule_two.Answers(model, "order", pair=1, factor=2.0),
        rule_two.Bits(model, "python", "within", "dynamic_ntk"),
        rule_two.Bits(model, "python", "beyond", rule_two.LAST),
        rule_two.Bits(model, "python", "beyond"),
    ]
    cells = {}
    for side in sides:
        cells.setdefault(side.cell, []).append(side)
    held_out = {f"{name}.py": np.roll(TEXT, at) for at, name in enumerate("abc")}
    for owner, name, value in (
        (rule_two, "cells", lambda: cells),
        (rule_two, "LAYOUTS", LAYOUTS),
        (rule_two, "GENERATED", 2),
        (module.parts, "load", lambda: dataclasses.replace(PARTS, held_out=held_out)),
        (module.results, "load", lambda name: {"opened": {"files": ["b.py"]}}),
        (module.decided, "provenance", lambda folder: {}),
        (module.decided, "gathered", lambda folder: {"cells": len(list(folder.glob("*-[01].json")))}),
    ):
        monkeypatch.setattr(owner, name, value)
    folder = run("decide") / "decide"
    printed = capsys.readouterr().out
    assert not re.search(r"\d\.\d", printed.replace("times_2.0", ""))  # only names and whole seconds
    told = {path.stem: json.loads(path.read_text())["told"] for path in folder.glob(f"{model}*.json")}
    names = ("", "_linear_8", "_pair_1_times_2.0", "_dynamic_ntk", "_last")
    assert set(told) == {f"{model}{name}-{seed}" for name in names for seed in (0, 1)}
    files = {name: text for name, text in held_out.items() if name != "b.py"}
    asked = asking.contexts(LAYOUTS["order"], files, rule_two.STREAM)
    trained = module.trained("rope-10000-1-3200")
    assert told[f"{model}-1"]["order"] == asking.ask(asked, trained)
    assert told[f"{model}_pair_1_times_2.0-1"]["order"] == asking.ask(asked, module.causal.changed(trained, [1], 2.0))
    rows = rule_two.texts(files, 6)["python"]
    within = module.bits.position_bits(trained, rows[:, :257])  # dynamic NTK changes nothing up to L
    assert told[f"{model}_dynamic_ntk-1"]["python within"] == pytest.approx(within.mean(1).tolist(), abs=2e-5)
    last = module.bits.windowed_bits(trained, rows, 256, 32)[:, 256:]
    assert told[f"{model}_last-1"]["python beyond"] == pytest.approx(last.mean(1).tolist(), abs=2e-5)
    assert told[f"{model}-1"]["python beyond"] != told[f"{model}_last-1"]["python beyond"]
    assert json.loads((folder / "contexts.json").read_text())["order"] == asked.far.tolist()
    run("decide")
    assert capsys.readouterr().out == ""
    run("cells", "--only", "learned-0")
    run("gather")
    assert saved["order_decided"] == {"cells": 10}


def test_models_have_the_names_that_the_rule_gives_them(module, monkeypatch):
    monkeypatch.setattr(module, "t5_rate", lambda: 0.05)
    assert [module.model_of(id, 4) for id in ("none", "rope-10000", "rope-10000-3200", "t5")] == [
        *("none-4", "rope-10000-4", "rope-10000-4-3200", "t5-4-bias-0.05"),
    ]


def test_the_rate_of_t5_is_the_one_with_the_lowest_mean(module, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "weights_of", lambda name: tmp_path / f"{name}.safetensors")
    assert np.isnan(module.t5_rate())
    for at, one in enumerate(module.variants.T5_CANDIDATES):
        found = {"python": [[2.0 + (at != 2)], [4.0]], "language": [[1.0]]}
        (tmp_path / f"{one.name}.json").write_text(json.dumps({"development": found}))
    assert module.t5_rate() == module.variants.BIAS_RATES[2]


def test_one_pair_at_a_time_is_that_pair(module, script):
    run, _ = script
    folder = run("map", "--only", MODELS[0])
    told = json.loads((folder / f"map-{MODELS[0]}.json").read_text())
    model = module.trained(MODELS[0])
    asked = asking.contexts(LAYOUTS["order"], PARTS.development)
    for way, factor in module.causal.WAYS.items():
        for pair in range(4):
            expected = asking.ask(asked, module.causal.changed(model, [pair], factor))
            assert told["pairs"][way][pair]["order"] == expected
    still = asking.ask(asked, module.causal.changed(model, told["bands"]["middle"], 0.0))
    assert told["of_bands"]["still"]["middle"]["order"] == still
    assert torch.allclose(torch.tensor(told["shares"]).sum(), torch.tensor(1.0), atol=1e-3)
