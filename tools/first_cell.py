"""The first cells of a notebook: a note that introduces the notebook, and a cell that makes the book's package
importable.

The package is distributed as a wheel. The wheel is in the same folder as the notebook or, if the book's site has an
address, can be downloaded from the site. The cell contains the wheel's SHA-256, and refuses to install any other file.
"""

from __future__ import annotations

import inspect
from functools import cache
from pathlib import Path

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from packaging.requirements import Requirement

from tools.paths import ROOT
from tools.wheel import Wheel, ensure

NEEDED = ("torch", "numpy", "matplotlib", "anywidget", "sympy", "safetensors")


def use_ropebook(wheel: str, sha256: str, address: str, needed: dict[str, str]) -> None:
    """Make the book's package importable. If it is installed, this changes nothing.

    Otherwise, take the wheel from the notebook's folder, or download it if there is an address, and install it with pip
    if its SHA-256 is right. No other package is installed.

    Args:
        wheel: the name of the wheel file.
        sha256: the SHA-256 of the wheel file.
        address: the address to download it from, or "" if there is none.
        needed: module name -> requirement to give to pip if the module can't be imported.
    """
    import hashlib
    import importlib.util
    import shlex
    import subprocess
    import sys
    import tempfile
    import urllib.request
    from pathlib import Path

    def missing(names: list[str]) -> list[str]:
        importlib.invalidate_caches()
        return [name for name in names if importlib.util.find_spec(name) is None]

    if missing(["ropebook"]):
        beside = Path(wheel).resolve()
        if beside.is_file():
            print(f"ropebook is not installed. Taking {beside}.")
            data = beside.read_bytes()
        elif address:
            print(f"ropebook is not installed, and {wheel} is not in {beside.parent}. Downloading {address}.")
            with urllib.request.urlopen(address, timeout=60) as answer:
                data = answer.read()
        else:
            raise FileNotFoundError(
                f"ropebook is not installed, and {wheel} is not in {beside.parent}. Put it there: it is in the zip of "
                "all notebooks, which each chapter's page links to. Then run this cell again."
            )
        found = hashlib.sha256(data).hexdigest()
        if found != sha256:
            raise ValueError(f"{wheel} is not the file this notebook was made for, so it was not installed: its "
                             f"SHA-256 is {found}, expected {sha256}.")  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            checked = Path(folder, wheel)
            checked.write_bytes(data)
            command = ["-m", "pip", "install", "--no-deps", "--no-index", "--disable-pip-version-check"]
            print(f"Its SHA-256 is right. Running: python {shlex.join([*command, wheel])}")
            done = subprocess.run([sys.executable, *command, str(checked)], capture_output=True, text=True)
        if done.returncode or missing(["ropebook"]):
            raise RuntimeError(f"pip did not install {wheel}. It said:\n{done.stdout}{done.stderr}")
    else:
        print("ropebook is installed.")
    absent = missing(list(needed))
    if absent:
        command = shlex.join(["pip", "install", *(needed[name] for name in absent)])
        raise ModuleNotFoundError(
            f"The notebook also needs {', '.join(absent)}, which this cell does not install. Run %{command} in a new "
            "cell, then this cell again."
        )
    print("Everything that this notebook needs can be imported.")


def requirements(root: Path = ROOT) -> dict[str, str]:
    """Return the pip requirement from `requirements.txt` for each module that the notebooks need.

    Raises:
        KeyError: `requirements.txt` does not mention one of the modules.
    """
    lines = (line.partition("#")[0].strip() for line in (root / "requirements.txt").read_text().splitlines())
    asked = {Requirement(line).name: line for line in lines if line}
    for name in NEEDED:
        if name not in asked:
            raise KeyError(f"requirements.txt does not mention {name!r}, which the notebooks need")
    return {name: asked[name] for name in NEEDED}


@cache
def book_title(root: Path = ROOT) -> str:
    """Return the book's title from `_config.yml`."""
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"]


def first_cells(title: str, address: str = "", wheel: Wheel | None = None) -> list[NotebookNode]:
    """Return two cells. The first is a note that introduces the notebook and explains the second; the second is code,
    and is folded.

    ``address`` is the address of the folder from which the wheel can be downloaded, if there is one. ``wheel`` defaults
    to the wheel built from the current sources.
    """
    wheel = wheel or ensure()
    download = f"{address.rstrip('/')}/{wheel.name}" if address else ""
    source = (
        f"# @title Make the package ropebook importable (run this cell first)\n{inspect.getsource(use_ropebook)}\n\n"
        f'use_ropebook(\n    wheel="{wheel.name}",\n    sha256="{wheel.sha256}",\n    address="{download}",\n'
        f"    needed={requirements()},\n)"
    )
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form", "tags": ["hide-input"]}
    else_from = f", or downloads it from {download}" if address else ""
    note = (
        f"This is the chapter “{title}” of the book “{book_title()}” as a notebook. It uses the book’s package, "
        "`ropebook`. If the package is installed, the next cell changes nothing. Otherwise it takes "
        f"`{wheel.name}` ({wheel.path.stat().st_size / 1e6:.1f} MB) from the notebook’s folder{else_from}, checks "
        "its SHA-256, and installs it with pip. It installs nothing else; if another package is missing, it says how "
        "to get it.\n\n"
        "The figures with dials come to life when their cells run. Until then you see a still picture of each. We have "
        "tried both in JupyterLab, and the saved notebook in VS Code, which shows pictures and tables only if you "
        "trust the folder, and doesn’t fold code. There and in Colab, we haven’t run the cells. Both run widgets of "
        "the same kind (anywidget)."
    )
    return [new_markdown_cell(note), new_code_cell(source, metadata=folded)]
