import datetime
import json
import platform
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from ropebook import device as module
from tests.together import together

ROOT = Path(__file__).resolve().parents[1]


def pretend(monkeypatch, cuda, mps):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize("cuda", [True, False])
@pytest.mark.parametrize("mps", [True, False])
def test_the_best_device_comes_first(monkeypatch, cuda, mps):
    pretend(monkeypatch, cuda, mps)
    expected = ["cuda"] * cuda + ["mps"] * mps + ["cpu"]
    assert [d.type for d in module.devices()] == expected
    assert module.device() == torch.device(expected[0])
    assert module.device(float64=True).type == ("cuda" if cuda else "cpu")


def test_every_device_computes(device):
    assert torch.ones(3, device=device).sum().item() == 3.0


def test_every_float64_device_computes(float64_device):
    assert torch.ones(3, dtype=torch.float64, device=float64_device).sum().item() == 3.0


@together("value", ["yes", 1, None])
def test_bad_float64(value):
    with pytest.raises(TypeError, match=re.escape(f"float64 must be True or False, got {value!r}")):
        module.device(value)


def test_provenance_says_with_what_a_number_was_measured():
    before = datetime.datetime.now(datetime.UTC).replace(microsecond=0)
    record = module.provenance(seed=7, command="make bench", on=torch.device("cpu"))
    assert list(record) == ["device", "cpu", "threads", "torch", "numpy", "python", "date", "seed", "command"]
    assert record["torch"] == torch.__version__
    assert record["numpy"] == np.__version__
    assert record["python"] == platform.python_version()
    assert record["threads"] == torch.get_num_threads()
    assert (record["seed"], record["command"]) == (7, "make bench")
    assert record["device"] == record["cpu"]
    assert len(record["cpu"]) > 2
    assert record["cpu"] == record["cpu"].strip()
    date = datetime.datetime.fromisoformat(record["date"])
    assert date.utcoffset() == datetime.timedelta(0)
    assert before <= date <= datetime.datetime.now(datetime.UTC)
    assert json.loads(json.dumps(record)) == record


def test_provenance_names_the_device_that_did_the_work(monkeypatch):
    pretend(monkeypatch, cuda=True, mps=True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda where: f"some {where.type} card")
    cpu = module.provenance()["cpu"]
    assert module.provenance()["device"] == "some cuda card"
    assert module.provenance(on=torch.device("mps"))["device"] == f"{cpu} (mps)"
    assert module.provenance(on=torch.device("cpu"))["device"] == cpu
    assert module.provenance()["seed"] is None
    assert module.provenance()["command"] is None


@pytest.mark.parametrize(
    "listing, name",
    [
        ("processor\t: 0\nmodel name\t: Some CPU 3000\nflags\t: a b\n", "Some CPU 3000"),
        ("model name\t:\nflags\t: a b\n", "fallback"),
        ("", "fallback"),
    ],
)
def test_the_processors_name(monkeypatch, tmp_path, listing, name):
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(listing)
    monkeypatch.setattr(module, "Path", lambda _: cpuinfo)
    monkeypatch.setattr(platform, "processor", lambda: "fallback")
    assert module.provenance(on=torch.device("cpu"))["cpu"] == name
    cpuinfo.unlink()
    monkeypatch.setattr(platform, "processor", lambda: "")
    monkeypatch.setattr(platform, "machine", lambda: "some machine")
    assert module.provenance(on=torch.device("cpu"))["cpu"] == "some machine"


@together(
    "argument, value, allowed",
    [
        ("seed", 1.5, "an integer"),
        ("seed", True, "an integer"),
        ("command", ["make"], "a string or None"),
        ("on", "cpu", "a torch.device or None"),
    ],
)
def test_bad_provenance(argument, value, allowed):
    with pytest.raises(TypeError, match=f"^{re.escape(f'{argument} must be {allowed}, got {value!r}')}$"):
        module.provenance(**{argument: value})


def test_the_folder_code_does_not_hide_the_standard_librarys_module():
    # pdb and IPython import the standard module `code`. If code/__init__.py existed, they would import our folder
    # instead.
    found = subprocess.run(
        [sys.executable, "-c", "import code; print(hasattr(code, 'InteractiveConsole'), code.__file__)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    has_console, _, file = found.stdout.strip().partition(" ")
    assert has_console == "True"
    assert not Path(file).is_relative_to(ROOT / "code")
    assert not (ROOT / "code" / "__init__.py").exists()


def modules_after(statement):
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, 'code'); {statement}; print(*sys.modules)"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return {name.partition(".")[0] for name in found.stdout.split()}


def test_imports_stay_light():
    assert not modules_after("import ropebook, ropebook.checks") & {"torch", "numpy"}
    loaded = modules_after("import ropebook.attention, ropebook.device")
    assert not loaded & {"matplotlib", "anywidget", "ipywidgets", "IPython", "transformers"}
    assert "sympy" not in loaded - modules_after("import torch")  # some releases of torch load sympy themselves
