"""Tests of importing the package. The main names must be available at the top level, nothing may be loaded before it is
used, and type checkers must see the types."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import ropebook
from tests.together import together


def loaded(code: str) -> set[str]:
    """Return the modules that a fresh Python process has loaded after running this code."""
    env = {"PYTHONPATH": str(Path(ropebook.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"],
        env=env, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


def test_the_package_alone_loads_nothing_else():
    assert not loaded("import ropebook; ropebook.__version__, dir(ropebook)") & {
        "torch",
        "numpy",
        "matplotlib",
        "sympy",
    }


def test_a_module_is_there_when_it_is_asked_for():
    found = loaded(
        "import ropebook; ropebook.efficient.RotaryEmbedding(4, layout='half'); ropebook.checks.even('dim', 4)"
    )
    assert {"torch", "ropebook.efficient"} <= found
    assert not {name.split(".")[0] for name in found} & {"matplotlib", "sympy", "transformers", "IPython"}


@together("name", sorted(ropebook._HOMES))
def test_a_main_name_is_that_of_its_module(name):
    module = importlib.import_module(f"ropebook.{ropebook._HOMES[name]}")
    assert getattr(ropebook, name) is getattr(module, name)
    assert name in module.__all__
    assert name in dir(ropebook)


def test_what_is_not_there_is_said_as_python_says_it():
    for name in ("rotary", "RotaryEmbeding", "_home"):
        with pytest.raises(AttributeError, match=f"module 'ropebook' has no attribute '{name}'"):
            getattr(ropebook, name)
    with pytest.raises(ImportError, match="cannot import name 'nothing' from 'ropebook'"):
        from ropebook import nothing  # noqa: F401


def test_type_checkers_know_the_same_names():
    text = Path(ropebook.__file__).with_suffix(".pyi").read_text(encoding="utf-8")
    for name, home in ropebook._HOMES.items():
        assert f"from ropebook.{home} import {name} as {name}\n" in text
    assert text.count(" as ") == len(ropebook._HOMES)
    assert (Path(ropebook.__file__).parent / "py.typed").exists()
