"""Test what a notebook's first cell does and what it refuses to do. Also test that the book's notebooks run with the
wheel and give the same results."""

from __future__ import annotations

import copy
import functools
import hashlib
import http.server
import json
import os
import re
import shutil
import subprocess
import threading
import tomllib
import venv
import zipfile
from collections.abc import Iterator
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output

from tests.environments import environment
from tests.together import together
from tools import execute, first_cell, takeaway
from tools.paths import ROOT
from tools.wheel import Wheel, ensure

CHAPTERS = execute.chapters()
ALL = tuple(sorted(first_cell.NEEDED))
NAME = "ropebook-1.2.3-py3-none-any.whl"

# ------------------------------------------------------------------ output and actions of the first cell


@pytest.fixture
def wheel(tmp_path) -> Wheel:
    """A wheel that contains a single module."""
    path = tmp_path / "made" / NAME
    takeaway.zipped({"ropebook/__init__.py": b"def f(): return 'from the wheel'\n"}, path)
    return Wheel(path, hashlib.sha256(path.read_bytes()).hexdigest())


class Stubs:
    """An environment in which every package that a notebook needs is an empty module, and pip is replaced by a stub of
    a few lines.

    The first cell runs in the folder `here`.
    """

    PIP = """
import pathlib, sys, zipfile
site = pathlib.Path(__file__).parents[1]
asked = [pathlib.Path(one).name for one in sys.argv[1:]]
(site / "asked.txt").write_text(" ".join(asked))
if not (site / "works").exists():
    sys.exit("this environment is managed by somebody else")
zipfile.ZipFile(sys.argv[-1]).extractall(site)
"""

    def __init__(self, root: Path, present: tuple[str, ...] = ALL, pip_works: bool = True) -> None:
        venv.create(root / "env", with_pip=False, symlinks=os.name != "nt")
        self.python = root / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        (self.site,) = (root / "env").rglob("site-packages")
        for name in present:
            (self.site / f"{name}.py").write_text("")
        (self.site / "pip").mkdir()
        (self.site / "pip" / "__init__.py").write_text("")
        (self.site / "pip" / "__main__.py").write_text(self.PIP)
        if pip_works:
            (self.site / "works").write_text("")
        self.here = root / "here"
        self.here.mkdir()

    def asked(self) -> str | None:
        """Return what pip was asked to install, or None."""
        path = self.site / "asked.txt"
        return path.read_text() if path.exists() else None

    def run(self, wheel: Wheel, address: str = "", after: str = "") -> subprocess.CompletedProcess:
        source = first_cell.first_cells("Turns", address, wheel)[1].source
        inherited = {name: os.environ[name] for name in ("SYSTEMROOT",) if name in os.environ}
        return subprocess.run(
            [self.python, "-I", "-c", f"{source}\n{after}"],
            cwd=self.here,
            env={**inherited, "TMPDIR": str(self.here), "TEMP": str(self.here)},
            capture_output=True,
            text=True,
            check=False,
        )


ASKED = f"install --no-deps --no-index --disable-pip-version-check {NAME}"
READY = "Everything that this notebook needs can be imported."


def test_with_ropebook_installed_the_first_cell_changes_nothing(tmp_path, wheel):
    stubs = Stubs(tmp_path)
    (stubs.site / "ropebook.py").write_text("")
    shutil.copyfile(wheel.path, stubs.here / NAME)
    done = stubs.run(wheel, address="http://127.0.0.1:9/")
    assert done.stdout.splitlines() == ["ropebook is installed.", READY], done.stderr
    assert stubs.asked() is None
    assert [path.name for path in stubs.here.iterdir()] == [NAME]


def test_the_first_cell_installs_the_wheel_beside_it_and_says_so_before(tmp_path, wheel):
    stubs = Stubs(tmp_path)
    shutil.copyfile(wheel.path, stubs.here / NAME)
    done = stubs.run(wheel, after="import ropebook; print(ropebook.f())")
    assert done.stdout.splitlines() == [
        f"ropebook is not installed. Taking {stubs.here.resolve() / NAME}.",
        f"Its SHA-256 is right. Running: python -m pip {ASKED}",
        READY,
        "from the wheel",
    ], done.stderr
    assert stubs.asked() == ASKED
    assert [path.name for path in stubs.here.iterdir()] == [NAME], "nothing is left behind"
    assert stubs.run(wheel).stdout.startswith("ropebook is installed.\n")


def test_the_first_cell_refuses_another_file_of_that_name(tmp_path, wheel):
    stubs = Stubs(tmp_path)
    (stubs.here / NAME).write_bytes(wheel.path.read_bytes() + b"x")
    done = stubs.run(wheel)
    assert "ValueError: ropebook-1.2.3-py3-none-any.whl is not the file this notebook was made for" in done.stderr
    assert f"expected {wheel.sha256}." in done.stderr
    assert stubs.asked() is None


def test_without_a_wheel_the_first_cell_says_where_it_is(tmp_path, wheel):
    stubs = Stubs(tmp_path)
    done = stubs.run(wheel)
    assert done.stdout == ""
    assert f"FileNotFoundError: ropebook is not installed, and {NAME} is not in {stubs.here.resolve()}." in done.stderr
    assert "it is in the zip of all notebooks" in done.stderr
    assert stubs.asked() is None


@pytest.fixture
def address(wheel) -> Iterator[str]:
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=wheel.path.parent)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


def test_the_first_cell_downloads_the_wheel_from_the_site_if_it_has_an_address(tmp_path, wheel, address):
    stubs = Stubs(tmp_path)
    done = stubs.run(wheel, address=f"{address}/", after="import ropebook; print(ropebook.f())")
    lines = done.stdout.splitlines()
    assert lines[0].endswith(f"is not in {stubs.here.resolve()}. Downloading {address}/{NAME}."), done.stderr
    assert lines[1:] == [f"Its SHA-256 is right. Running: python -m pip {ASKED}", READY, "from the wheel"]


def test_what_was_downloaded_is_checked_too(tmp_path, wheel, address):
    stubs = Stubs(tmp_path)
    done = stubs.run(Wheel(wheel.path, "0" * 64), address=address)
    assert f"SHA-256 is {wheel.sha256}, expected {'0' * 64}." in done.stderr
    assert stubs.asked() is None


def test_the_first_cell_installs_no_other_package(tmp_path, wheel):
    stubs = Stubs(tmp_path, ("torch", "numpy", "matplotlib", "safetensors"))
    shutil.copyfile(wheel.path, stubs.here / NAME)
    done = stubs.run(wheel)
    assert done.returncode != 0
    assert stubs.asked() == ASKED
    asked = first_cell.requirements()
    command = f"%pip install '{asked['anywidget']}' '{asked['sympy']}'"
    assert "The notebook also needs anywidget, sympy, which this cell does not install." in done.stderr
    assert command in done.stderr


def test_the_first_cell_says_what_pip_said_when_it_fails(tmp_path, wheel):
    stubs = Stubs(tmp_path, pip_works=False)
    shutil.copyfile(wheel.path, stubs.here / NAME)
    done = stubs.run(wheel)
    assert f"RuntimeError: pip did not install {NAME}. It said:\nthis environment is managed by somebody" in done.stderr


def test_the_first_cells_can_be_read(wheel):
    """The first cell's lines must be short enough for a reader who unfolds it to see what it does."""
    note, code = first_cell.first_cells("Turns", "", wheel)
    assert len(code.source) < 5_000
    assert max(map(len, code.source.splitlines())) < 200
    assert "0.0 MB" in note.source
    assert f"`{NAME}`" in note.source
    assert "downloads" not in note.source
    note, code = first_cell.first_cells("Turns", "https://example.org/book/notebooks/", wheel)
    assert f"or downloads it from https://example.org/book/notebooks/{NAME}" in note.source
    assert f'address="https://example.org/book/notebooks/{NAME}"' in code.source


def test_pip_would_be_asked_for_what_the_requirements_say(tmp_path):
    text = "# a\n\nnumpy>=1 # b\nsympy\nmatplotlib\ntorch>=2.6\nanywidget<9\nsafetensors\no\n"
    (tmp_path / "requirements.txt").write_text(text)
    asked = first_cell.requirements(tmp_path)
    assert asked["torch"] == "torch>=2.6"
    assert list(asked) == list(first_cell.NEEDED)
    (tmp_path / "requirements.txt").write_text("numpy\n")
    with pytest.raises(KeyError, match="does not mention 'torch'"):
        first_cell.requirements(tmp_path)


# ------------------------------------------------------------------ the zip


def test_the_zip_has_the_notebooks_the_wheel_and_where_to_start(tmp_path):
    (tmp_path / "one.ipynb").write_text("{}")
    (tmp_path / "ropebook-0.0.1-py3-none-any.whl").write_text("an older one")
    packed, wheel = takeaway.pack(tmp_path), ensure()
    with zipfile.ZipFile(packed) as archive:
        found = {name: archive.read(name) for name in archive.namelist()}
        assert {member.date_time[0] for member in archive.infolist()} == {1980}
    folder = "ropebook-notebooks"
    assert set(found) == {f"{folder}/{name}" for name in ("one.ipynb", wheel.name, "START-HERE.md")}
    assert hashlib.sha256(found[f"{folder}/{wheel.name}"]).hexdigest() == wheel.sha256
    start = found[f"{folder}/START-HERE.md"].decode()
    assert f'install "./{wheel.name}[notebooks]"' in start
    assert wheel.sha256 in start
    before = packed.read_bytes()
    assert takeaway.pack(tmp_path).read_bytes() == before


# ------------------------------------------------------------------ running the notebooks by themselves


@pytest.fixture(scope="session")
def public(tmp_path_factory) -> Path:
    """Create an environment that contains everything in the wheel's optional "notebooks" dependencies, but not ropebook
    itself. Return the environment's Python."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["figures"], *extras["notebooks"][1:], "pip"]
    assert extras["notebooks"][0] == "ropebook[figures]"
    return environment(tmp_path_factory.mktemp("public"), wanted)


def run_alone(notebook: nbformat.NotebookNode, python: Path, folder: Path, wheel: Path) -> nbformat.NotebookNode:
    """Run a notebook next to the wheel. The kernel runs in another environment, with none of our modules on its
    path."""
    spec, empty, temporary = folder / "kernels" / "public", folder / "empty", folder / "temporary"
    for place in (spec, empty, temporary):
        place.mkdir(parents=True)
    shutil.copyfile(wheel, empty / wheel.name)
    (site,) = python.parents[1].rglob("site-packages")
    for old in [*site.glob("ropebook*"), *site.glob("rope_single*")]:  # an earlier notebook may have installed these
        old.unlink() if old.is_file() else shutil.rmtree(old)
    argv = [str(python), "-I", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "p", "language": "python"}))
    manager = AsyncKernelManager(
        kernel_name="public",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False),
    )
    result = copy.deepcopy(notebook)
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    result.metadata.pop("widgets", None)
    mine = {
        "TMPDIR": str(temporary),
        "TEMP": str(temporary),
        "HOME": str(empty),
        "IPYTHONDIR": str(temporary / "ipython"),
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPL", "COV"))}
    client = NotebookClient(result, km=manager, timeout=300, resources={"metadata": {"path": str(empty)}})
    # by default, the client doesn't shut down a kernel manager that was passed to it
    client.execute(env={**inherited, **mine}, cleanup_kc=True)
    return result


TIMES = re.compile(r"\b\d[\d.,]*(e[-+]?\d+)?\s*(ns|µs|μs|us|ms|s|min|seconds?)\b|0x[0-9a-f]+")


def texts(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """Return the output that a cell printed or displayed, as (kind, text), without times and memory addresses.

    If the cell calls `perf_counter` or has the tag `timing`, it measures time, and its output is returned without any
    numbers.
    """
    takes_time = "perf_counter" in cell.source or "timing" in cell.metadata.get("tags", [])
    hidden = NUMBERS if takes_time else TIMES
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        assert output.output_type != "error"
        data = {output.name: output.text} if output.output_type == "stream" else output.data
        for kind, text in sorted(data.items()):
            if kind in KINDS and found and found[-1][0] == kind == output.get("name"):
                found[-1] = (kind, found[-1][1] + text)  # the kernel splits a stream at random positions
            elif kind in KINDS:
                found.append((kind, text))
    return [(kind, hidden.sub("…", text)) for kind, text in found]


NUMBERS = re.compile(r"\s*\d[\d.,]*(e[-+]?\d+)?\b")
KINDS = {"stdout", "stderr", "text/plain", "text/markdown", "text/latex"}


def test_the_public_environment_holds_what_the_wheel_asks_for_only(public):
    program = "import sys, importlib.util as u; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    absent = ["pytest", "hypothesis", "playwright", "ropebook", "tools", "transformers", "sphinx"]
    present = ["torch", "numpy", "matplotlib", "sympy", "anywidget", "ipywidgets", "jupyterlab", "ipykernel", "pip"]
    done = subprocess.run([public, "-I", "-c", program, *absent, *present], capture_output=True, text=True, check=True)
    assert done.stdout == f"{present}\n"


def test_a_small_notebook_installs_the_wheel_and_runs(public, tmp_path):
    cells = [
        new_code_cell("import ropebook; print(ropebook.__file__)"),
        new_code_cell("import os; print([name for name in os.listdir() if name[0] != '.'])"),
    ]
    result = run_alone(new_notebook(cells=first_cell.first_cells("Small") + cells), public, tmp_path, ensure().path)
    said = ["".join(output.text for output in cell.outputs) for cell in result.cells if cell.cell_type == "code"]
    name = ensure().name
    assert said[0].splitlines()[-1] == READY
    assert f"Taking {tmp_path.resolve() / 'empty' / name}." in said[0]
    assert said[1].startswith(str(public.parents[1]))
    assert said[2] == f"['{name}']\n"


# Between them, these notebooks contain sympy's proofs, figures with dials, results, and a library that may be missing.
# ALL_NOTEBOOKS=1 runs all of the notebooks, which takes a quarter of an hour.
FEW = ("derivation_only", "complex_plane", "lab", "intro")
ALONE = [path for path in CHAPTERS if path.stem in FEW or os.environ.get("ALL_NOTEBOOKS") == "1"]


@pytest.mark.parametrize("chapter", ALONE, ids=lambda path: path.stem)
def test_a_chapters_notebook_runs_on_the_wheel_and_says_the_same(public, chapter, written_notebooks, tmp_path):
    notebook = nbformat.read(written_notebooks / f"{chapter.stem}.ipynb", as_version=4)
    where = new_code_cell("import ropebook; print(ropebook.__file__)", id="where")
    notebook.cells.append(where)
    (wheel,) = written_notebooks.glob("*.whl")
    result = run_alone(notebook, public, tmp_path, wheel)
    assert "".join(output.text for output in result.cells[1].outputs).splitlines()[-1] == READY
    assert result.cells[-1].outputs[0].text.startswith(str(public.parents[1]))
    for book, alone in zip(notebook.cells[2:-1], result.cells[2:-1], strict=True):
        # If a library is missing, the page uses the book's own function instead, and that function rounds differently.
        if book.cell_type == "code" and "how_to_fetch()" in book.source:
            # How to fetch the model depends on whether the repository is there.
            assert [text.partition(". ")[0] for _, text in texts(alone)] == ["The model isn't on this machine yet"]
        elif book.cell_type == "code" and "except ImportError" not in book.source:
            assert texts(alone) == texts(book), book.source


@together(
    ("text", "left"),
    [
        ("took 3.2 ms, 41 µs and 5s", "took …, … and …"),
        ("1.5e-3 s", "…"),
        ("<f at 0x7f12>", "<f at …>"),
        ("3 sums", "3 sums"),
    ],
)
def test_times_are_left_out_of_the_comparison(text, left):
    half = len(text) // 2
    pieces = [new_output("stream", text=text[:half]), new_output("stream", text=text[half:])]
    assert texts(new_code_cell("", outputs=pieces)) == [("stdout", left)]
    slow = new_output("stream", text="a    1.5 \n   10")
    for cell in (new_code_cell("time.perf_counter()"), new_code_cell("t()", metadata={"tags": ["timing"]})):
        cell.outputs = [slow]
        assert texts(cell) == [("stdout", "a……")], "neither numbers nor the width that they take"
    assert texts(new_code_cell("", outputs=[slow])) == [("stdout", slow.text)]
    data = new_output("display_data", data={"text/plain": "a 1 s", "text/html": "b"})
    error = new_output("stream", name="stderr", text="c")
    found = texts(new_code_cell("", outputs=[pieces[0], data, data, error]))
    assert found[1:] == [("text/plain", "a …"), ("text/plain", "a …"), ("stderr", "c")]
