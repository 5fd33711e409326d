"""Tests of the lock file that tests and builds install from. It must be complete, contain hashes, and agree with the
versions in constraints.txt."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import imports, lock
from tools.paths import ROOT

LOCKED = lock.entries(lock.LOCK.read_text())
NEW = """torch==2.1 \\
    --hash=sha256:{a}
triton==3.1 ; sys_platform == 'linux' \\
    --hash=sha256:{b}
nvidia-cublas==1 \\
    --hash=sha256:{b}
cuda-toolkit==1 \\
    --hash=sha256:{b}
""".format(a="a" * 64, b="b" * 64)


def test_everything_that_is_locked_has_hashes_and_the_constraints_version():
    pinned = [line.split("==") for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    versions = {canonicalize_name(name): version for name, version in pinned}
    locked = {}
    for name, (asked, hashes) in LOCKED.items():
        version = re.fullmatch(r"[\w.-]+(?:\[\w+\])?==([\w.+]+)(?: ; .+)?", asked)[1]
        locked[canonicalize_name(name.partition("[")[0])] = version
        assert hashes, name
        assert all(re.fullmatch("[0-9a-f]{64}", one) for one in hashes), name
    assert locked == versions
    assert not re.search(r"https?:|--(extra-)?index|--find", lock.LOCK.read_text()), "hosts stay out of it"


def test_what_the_book_and_its_tests_need_is_locked():
    lines = [line for line in (ROOT / "requirements.txt").read_text().splitlines() if line and line[0] != "#"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {Requirement(line).name for line in [*lines, *project["optional-dependencies"]["test"]]}
    assert {canonicalize_name(name) for name in wanted} - {name.partition("[")[0] for name in LOCKED} == set()


def not_locked(sources: dict[str, str]) -> dict[str, str]:
    """Return the imported modules that no locked package provides, each with a file that imports it."""
    owners = packages_distributions()
    locked = {canonicalize_name(name.partition("[")[0]) for name in LOCKED}
    found = {}
    for name, source in sources.items():
        for _, imported in imports.statements(ast.parse(source)):
            module = imported.split(".")[0]
            if not {canonicalize_name(owner) for owner in owners.get(module, ())} & locked:
                found[module] = name
    ours = {path.stem for folder in ("code", "book/_ext", "tests") for path in (ROOT / folder).glob("*")}
    ours |= {"benchmarks", "tests", "tools"}
    return {module: found[module] for module in found.keys() - sys.stdlib_module_names - ours}


def test_everything_that_is_imported_is_locked():
    """Otherwise a package that happens to be installed would be missing in a fresh environment."""
    folders = ("code", "tests", "tools", "book/_ext", "benchmarks")
    paths = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    sources = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}
    # Liger's kernels need a GPU. The benchmark measures them only where they are installed.
    assert not_locked(sources) == {"liger_kernel": "benchmarks/rotary.py"}
    assert not_locked({"a": "import torch\nimport pandas", "b": "from pandas.x import y"}) == {"pandas": "b"}


def test_cuda_is_left_out_and_torch_may_be_another_build():
    text = lock.joined(NEW, added=("c" * 64,))
    assert lock.entries(text) == {
        "torch": ("torch==2.1", ["a" * 64, "c" * 64]),
        "triton": ("triton==3.1 ; sys_platform == 'linux'", ["b" * 64]),
    }
    assert lock.joined(NEW, text) == text, "what was added stays"
    assert lock.entries(lock.joined(NEW.replace("2.1", "2.2"), text))["torch"][1] == ["a" * 64]
