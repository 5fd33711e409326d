"""The grid of models and methods, and the script that measures it."""

import dataclasses
import importlib.util
import json
import math
import sys
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from ropebook import results
from ropebook.extrapolation import METHODS, DynamicNTK, SelfExtend, make
from ropebook.lab import evaluation as E
from ropebook.lab import first_text, training
from ropebook.lab.model import LanguageModel
from tests.lab_models import METHOD_OPTIONS, TINY, Forgetful, L, small_corpus, text_of, tiny


@pytest.fixture(scope="module")
def corpus():
    return small_corpus()


@pytest.fixture(scope="module")
def model():
    return tiny()


# --- The grid ---


def test_the_grid():
    runs = [*(f"{scheme}-0" for scheme in first_text.SCHEMES), "rope-10000-1", "alibi-1"]
    cells = E.grid(runs, ["rope-10000-0", "rope-10000-1"])
    assert len(cells) == 9 + 2 * (5 * 4 + 3 + 2)
    assert len({cell.id for cell in cells}) == len(cells)
    assert {cell.method for cell in cells if cell.run == "alibi-1"} == {"none"}
    for cell in cells:
        if cell.method != "none":
            make(cell.method, **cell.options)  # each takes its options
    by_id = {cell.id: cell for cell in cells}
    assert by_id["rope-10000-1/yarn/8"].options == {"factor": 8, "trained_length": 256}
    assert by_id["rope-10000-1/ntk/2"].options == {"factor": 2}
    assert by_id["rope-10000-0/dynamic_ntk"].options == {"trained_length": 256}
    assert by_id["rope-10000-0/dynamic_ntk/cached"].cache is True
    assert by_id["rope-10000-0/dynamic_ntk/uncached"].cache is False
    assert by_id["rope-10000-0/rerope"].options == {"window": 128}
    assert E.Cell("a-0", "none", 4, tuned=True).id == "a-0/none/4/tuned"


@pytest.mark.parametrize("factor", E.FACTORS)
def test_self_extend_has_the_least_group_that_reaches(factor):
    options = E.method_options("self_extend", factor)
    assert options["window"] == 64
    assert SelfExtend(**options).reach(256) >= factor * 256
    assert SelfExtend(64, options["group"] - 1).reach(256) < factor * 256


def test_options_of_the_others():
    assert E.method_options("none", 4) == {}
    assert E.method_options("linear", 4) == {"factor": 4}
    with pytest.raises(ValueError, match="method must be one of"):
        E.method_options("nothing", 4)
    assert set(METHODS) >= {cell.method for cell in E.grid(["a"], ["a"])} - {"none"}


@pytest.fixture
def small_grid(corpus, monkeypatch):
    """The contract's grid with L = 16 and texts of 64 bytes."""
    monkeypatch.setattr(E, "DISTANCES", (4, 8, 24))
    monkeypatch.setattr(E, "SAMPLED", 2)
    texts = {
        16: E.retrieval_texts(corpus, 16, [4, 8], 3, seed=0),
        64: E.retrieval_texts(corpus, 64, [8, 24], 2, seed=0),
    }
    _, windows = E.held_out_windows(corpus, 64)
    return {"windows": windows, "texts": texts, "bands": [(0, 16), (16, 32), (32, 64)]}


def as_list(values):
    return [None if math.isnan(v) else round(v, 5) for v in values.tolist()]


def test_a_cell(model, small_grid):
    cell = E.Cell("rope-10000-0", "yarn", 4, METHOD_OPTIONS["yarn"])
    result, curve = E.measure(cell, model, **small_grid)
    json.dumps(result, allow_nan=False)
    bits = E.position_bits(E.with_method(model, "yarn", METHOD_OPTIONS["yarn"]), small_grid["windows"])
    assert torch.equal(curve, bits.mean(0))
    assert curve.shape == (64,)
    files = torch.stack([bits[:, :16].mean(1), bits[:, 16:32].mean(1), bits[:, 32:].mean(1)], 1)
    assert result["files"] == [as_list(row) for row in files]
    assert result["bits"] == as_list(files.double().mean(0))
    assert result["error"] == as_list(files.double().std(0) / math.sqrt(len(files)))
    assert {key: result[key] for key in ("id", "run", "method", "factor", "tuned", "cache", "text")} == {
        "id": "rope-10000-0/yarn/4",
        "run": "rope-10000-0",
        "method": "yarn",
        "factor": 4,
        "tuned": False,
        "cache": None,
        "text": 64,
    }
    assert result["options"] == METHOD_OPTIONS["yarn"]
    assert "sampled" not in result
    assert result["asked"] == {"16": [3, 3, 0], "64": [0, 2, 2]}
    assert [found is None for found in result["retrieval"]["16"]] == [False, False, True]
    assert [found is None for found in result["retrieval"]["64"]] == [True, False, False]


def test_a_cell_gives_retrieval_of_the_model_with_its_method(small_grid, monkeypatch):
    monkeypatch.setattr(E, "with_method", lambda model, *rest, **more: model)
    monkeypatch.setattr(E, "position_bits", lambda model, windows: torch.zeros(len(windows), windows.shape[1] - 1))
    oracle = Forgetful(8)
    oracle.length = 16
    result, _ = E.measure(E.Cell("none-0"), oracle, **small_grid)
    assert result["retrieval"] == {"16": [1, 1, None], "64": [None, 1, 0]}


def test_a_learned_scheme_goes_as_far_as_its_length(small_grid):
    result, curve = E.measure(E.Cell("learned-0"), tiny("learned"), **small_grid)
    assert result["text"] == 16
    assert curve.shape == (16,)
    assert [found is None for found in result["bits"]] == [False, True, True]
    assert result["retrieval"]["64"] == [None] * 3
    assert result["retrieval"]["16"][0] is not None
    assert "sampled" not in result


def test_dynamic_cells_can_be_compared_on_the_same_bytes(model, small_grid):
    options, windows = METHOD_OPTIONS["dynamic_ntk"], small_grid["windows"]
    found = {
        (cell.method, cell.cache): E.measure(cell, model, **small_grid)
        for cell in [E.Cell("r-0")]
        + [E.Cell("r-0", "dynamic_ntk", None, options, cache=c) for c in (None, True, False)]
    }
    (plain, _), (whole, curve), (cached, on_arrival), (uncached, gaps) = found.values()
    lengths = E.sampled_lengths(16, 64)
    for result in (plain, whole, cached, uncached):
        json.dumps(result, allow_nan=False)
        assert result["sampled"]["lengths"] == lengths
        assert result["sampled"]["last"] == 2
        assert [value is None for value in result["sampled"]["files"][0]] == [True, False, False]
    # the first band lies within L, where nothing follows the length yet
    assert uncached["bits"][1:] == uncached["error"][1:] == [None, None]
    assert uncached["bits"][0] == pytest.approx(cached["bits"][0], abs=1e-5)
    assert uncached["retrieval"]["64"] == [None] * 3
    assert uncached["retrieval"]["16"][0] is not None
    assert cached["retrieval"]["64"][2] is not None
    # the last length is the whole text, the others are not
    assert uncached["sampled"]["bits"][-1] == pytest.approx(whole["sampled"]["bits"][-1], abs=1e-5)
    assert uncached["sampled"]["bits"][0] != pytest.approx(whole["sampled"]["bits"][0], abs=1e-3)
    # each field from what it says it is from
    ours = E.with_method(model, "dynamic_ntk", options)
    wanted = E.sampled_bits(ours, windows, lengths, 2)
    assert uncached["sampled"]["bits"] == as_list(wanted.mean(2).double().mean(0))
    middle = [at for at, n in enumerate(lengths) if 16 < n <= 32]
    assert [row[1] for row in uncached["sampled"]["files"]] == as_list(wanted[:, middle].mean((1, 2)))
    assert whole["sampled"]["bits"][3] == pytest.approx(curve[lengths[3] - 2 : lengths[3]].mean().item(), abs=1e-5)
    decoding = E.position_bits(E.with_method(model, "dynamic_ntk", options, arrival=True), windows)
    assert torch.equal(on_arrival, decoding.mean(0))
    known = [*range(16)] + [t for n in lengths for t in (n - 2, n - 1)]
    assert gaps.isfinite().nonzero()[:, 0].tolist() == sorted(set(known))
    assert gaps[lengths[3] - 1].item() == pytest.approx(wanted[:, 3, 1].mean().item(), abs=1e-5)


def test_dynamic_ntk_is_told_the_length(model, small_grid, monkeypatch):
    told = []
    original = DynamicNTK.__call__
    monkeypatch.setattr(DynamicNTK, "__call__", lambda self, f, n=None: told.append(n) or original(self, f, n))
    cell = E.Cell("r-0", "dynamic_ntk", None, METHOD_OPTIONS["dynamic_ntk"], cache=False)
    E.measure(cell, model, **small_grid)
    assert set(E.sampled_lengths(16, 64)) <= set(told) <= {*E.sampled_lengths(16, 64), 15, 16}


def test_the_windowed_reference(model, small_grid):
    found = E.measure_windowed(model, small_grid["windows"], small_grid["bands"])
    bits = E.windowed_bits(model, small_grid["windows"], L)
    assert found["bits"] == as_list(E.band_means(bits, small_grid["bands"]).double().mean(0))
    assert len(found["files"]) == len(bits)
    assert len(found["error"]) == 3


# --- The script ---


@pytest.fixture
def script(corpus, tmp_path, monkeypatch):
    """benchmarks/evaluate.py with two tiny runs, one of them extended with three cells, in a folder of its own."""
    path = Path(__file__).resolve().parent.parent / "benchmarks" / "evaluate.py"
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("evaluate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    many = {f"{n}.py": text_of(4200 + n, n) for n in range(3)}
    long = first_text.Corpus(corpus.train, many, "a hash", "3")
    for owner, name, value in (
        (module, "ROOT", tmp_path),
        (module, "RUNS", tmp_path / "runs"),
        (module, "TRAINED", ("rope-10000-0", "learned-0")),
        (module, "EXTENDED", ()),
        (module, "TUNED", ("rope-10000-0",)),
        (module.tuning, "METHODS", ("linear",)),
        (module.tuning, "FACTORS", (4,)),
        (module.first_text, "load", lambda: long),
        (E, "CONTEXTS", 1),
        (results, "_BESIDE_THE_CODE", tmp_path / "results"),
    ):
        monkeypatch.setattr(owner, name, value)

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["evaluate.py", *words])
        module.main()

    def train(name, step=5, sha256="a hash", tuned=None, seed=0):
        settings = training.Run(name.rsplit("-", 1)[0], seed, steps=5, warmup=1, **TINY | {"n_layers": 1})
        built = LanguageModel(settings.scheme, 256, **TINY | {"n_layers": 1}, seed=seed)
        state = {"run": dataclasses.asdict(settings), "sha256": sha256, "step": step, "model": built.state_dict()}
        place = module.RUNS / (f"tuned/{name}-{tuned['method']}-{tuned['factor']}.pt" if tuned else f"{name}.pt")
        place.parent.mkdir(parents=True, exist_ok=True)
        torch.save(state | (tuned or {}), place)

    return module, run, train


def test_the_script_goes_on_where_it_stopped(script, capsys, tmp_path):
    _, run, train = script
    train("rope-10000-0")
    train("rope-10000-0", tuned={"method": "linear", "factor": 4})
    train("learned-0", step=4)
    with pytest.raises(SystemExit, match=r"not trained to the end.*runs/learned-0.pt$"):
        run()
    out = capsys.readouterr().out
    assert "2/5" in out
    assert "rope-10000-0/linear/4/tuned [" in out
    with pytest.raises(SystemExit, match="2 cells are not done, so nothing is written: learned-0/none, learned-0/win"):
        run("--collate")
    assert not (tmp_path / "results").exists()
    train("learned-0")
    run("--part", "2/2")
    assert "cells are left" in capsys.readouterr().out
    run("--only", "*")
    out = capsys.readouterr().out
    assert "rope-10000-0/none done before" in out
    result = results.load("evaluation")
    assert [cell["id"] for cell in result["cells"]] == [
        "rope-10000-0/none",
        "learned-0/none",
        "rope-10000-0/linear/4/tuned",
    ]
    assert set(result["windowed"]) == {"rope-10000-0", "learned-0"}
    assert result["files"] == ["0.py", "1.py", "2.py"]
    assert "key" not in result["cells"][0]
    assert result["cells"][0]["asked"] == {"256": [2] * 4 + [0] * 4, "4096": [1] * 8}
    curves = load_file(tmp_path / "results" / "evaluation.safetensors")
    assert {name: (tuple(curve.shape), curve.dtype) for name, curve in curves.items()} == {
        "rope-10000-0/none": ((4096,), torch.float16),
        "learned-0/none": ((256,), torch.float16),
        "rope-10000-0/linear/4/tuned": ((4096,), torch.float16),
    }
    assert curves["rope-10000-0/none"][:256].mean().item() == pytest.approx(result["cells"][0]["bits"][0], abs=0.01)
    train("learned-0", seed=1)  # another model under the same name
    run()
    out = capsys.readouterr().out
    assert out.count("done before") == 3
    assert "learned-0/none [" in out
    assert results.load("evaluation")["cells"][1]["bits"] != result["cells"][1]["bits"]


def test_the_script_refuses(script):
    _, run, train = script
    with pytest.raises(SystemExit, match="no cell fits --only 'nothing'; there are: rope-10000-0/none"):
        run("--only", "nothing")
    train("rope-10000-0", sha256="another")
    with pytest.raises(SystemExit, match="was trained on another text"):
        run("--only", "rope*")


def test_several_processes_share_the_cells(script, monkeypatch):
    module, run, _ = script
    begun = []

    class Process:
        def __init__(self, words):
            begun.append(words[2:])

        def wait(self):
            return 0

    monkeypatch.setattr(module.subprocess, "Popen", Process)
    run("--jobs", "2", "--files", "3", "--only", "rope*")
    assert begun == [["--only", "rope*", "--files", "3", "--part", f"{i}/2"] for i in (1, 2)]
    monkeypatch.setattr(Process, "wait", lambda self: 1)
    with pytest.raises(SystemExit, match="ended early"):
        run("--jobs", "2")
