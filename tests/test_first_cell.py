"""What a notebook carries, what its first cell does, and that the book's notebooks run alone with the same results."""

from __future__ import annotations

import base64
import copy
import importlib
import importlib.metadata
import io
import json
import lzma
import os
import re
import shutil
import subprocess
import venv
import zipfile
from collections import Counter
from pathlib import Path

import nbformat
import pytest
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import carried, execute, first_cell
from tools.paths import ROOT

CHAPTERS = execute.chapters()

# ------------------------------------------------------------------ what the first cell carries and does


@pytest.fixture
def repository(tmp_path) -> Path:
    """Sources, results and requirements. `USE` needs some of them; the others must not be carried."""
    root = tmp_path / "repository"
    package = root / "code" / "ropebook"
    files = {
        package / "__init__.py": "",
        package / "one.py": "from ropebook import two\n\ndef f():\n    return 'from the notebook'\n",
        package / "two.py": "def g():\n    import os, ropebook.inner.three\n",
        package / "inner" / "__init__.py": "",
        package / "inner" / "three.py": 'results.load("by_code")  # and in words "other"\n',
        package / "inner" / "four.py": "",
        package / "other.py": "from ropebook import one",
        package / "notes.txt": "no",
        package / "explorers" / "__init__.py": "from ropebook.explorers.kit import dials",
        package / "explorers" / "turn.py": "from ropebook.explorers.lock import LIMIT",
        package / "explorers" / "turn.js": 'import { one } from "./turn.py";\nimport { θ } from "./kit/rope.js";\n',
        package / "explorers" / "lock.py": "LIMIT = 1",
        package / "explorers" / "lock.js": 'import { a,\n b } from "./kit/drawing.js";\n',
        package / "explorers" / "turning.py": "",
        package / "explorers" / "turning.js": 'import { θ } from "./kit/other.js";\n',
        package / "explorers" / "kit" / "__init__.py": "",
        package / "explorers" / "kit" / "dials.py": "",
        package / "explorers" / "kit" / "rope.js": 'import { e } from "./elements.js";\nexport const θ = 1;',
        package / "explorers" / "kit" / "elements.js": "",
        package / "explorers" / "kit" / "drawing.js": "",
        package / "explorers" / "kit" / "other.js": "",
        package / "explorers" / "stills" / "turn.svg": "<svg/>",
        package / "explorers" / "stills" / "lock.svg": "<svg/>",
        package / "explorers" / "stills" / "turning.svg": "<svg/>",
        package / "proofs" / "__init__.py": "",
        package / "proofs" / "one.py": 'check = definition("eq-one-turn", implements="ropebook.inner.four.f")',
        package / "proofs" / "two.py": '@identity("eq-two")\ndef two(): ...',
        package / "__pycache__" / "one.cpython-311.pyc": "no",
        package / "__pycache__" / "stray.py": "no",
        root / "results" / "measured.json": '{"value": 7}',
        root / "results" / "by_code.pt": "weights",
        root / "results" / "by_cell.json": "{}",
        root / "results" / "by_cell.pt": "weights",
        root / "results" / "other.json": "{}",
        root / "results" / ".measured.json": "no",
        root / "requirements.txt": "# a\n\nnumpy>=1 # b\nsympy\nmatplotlib\ntorch>=2.6\nanywidget<9\nsafetensors\no\n",
        root / "_config.yml": "title: The Book\n",
    }
    for path, text in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


CARRIED = {
    "import os, torch": [],
    "import ropebook": ["__init__.py"],
    "from ropebook.one import f": [
        "__init__.py",
        "_results/by_code.pt",
        "inner/__init__.py",
        "inner/three.py",
        "one.py",
    ]
    + ["two.py"],
    "import ropebook.inner\nresults.load('by_cell')": ["__init__.py", "_results/by_cell.json", "_results/by_cell.pt"]
    + ["inner/__init__.py"],
    "import ropebook\nby_cell = 'by_cell, enlarged', 'measured'": [
        "__init__.py",
        "_results/measured.json",
    ],
    "from ropebook.explorers.turn import Turn": ["__init__.py", "explorers/__init__.py", "explorers/kit/__init__.py"]
    + [f"explorers/kit/{name}" for name in ("dials.py", "drawing.js", "elements.js", "rope.js")]
    + [f"explorers/{name}" for name in ("lock.js", "lock.py", "stills/turn.svg", "turn.js", "turn.py")],
    "from ropebook.proofs import verify\nverify('eq-one-turn')": ["__init__.py", "inner/__init__.py", "inner/four.py"]
    + ["proofs/__init__.py", "proofs/one.py"],
    "from ropebook import proofs\n'eq-one'": ["__init__.py", "proofs/__init__.py"],
}


@pytest.mark.parametrize("cells", CARRIED)
def test_a_notebook_carries_what_its_cells_need_and_no_more(repository, cells):
    assert list(carried.contents(repository, cells)) == [f"ropebook/{name}" for name in CARRIED[cells]]


def test_what_is_carried_is_the_files_themselves(repository):
    files = carried.contents(repository, "from ropebook.explorers.turn import Turn")
    assert files["ropebook/explorers/kit/rope.js"].decode().endswith("export const θ = 1;")


def test_notebooks_with_other_needs_have_other_first_cells(repository):
    sources = [
        "".join(cell.source for cell in first_cell.first_cells("Turns", repository, text))
        for text in (USE, USE + "results.load('by_cell')")
    ]
    assert sources[0] != sources[1]


def needs(chapter: Path) -> dict[str, bytes]:
    """What a chapter's notebook carries."""
    cells = execute.read_chapter(chapter).cells
    return carried.contents(code_text="\n".join(cell.source for cell in cells if cell.cell_type == "code"))


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_the_code_that_a_notebook_carries_is_light(chapter):
    code = {name: data for name, data in needs(chapter).items() if "/_results/" not in name}
    assert 20_000 < len(first_cell.archive(code)[1]) < 226_000


def test_the_archive_depends_on_contents_only(repository):
    files = carried.contents(repository, USE)
    name, text = first_cell.archive(files)
    for path in repository.rglob("*.py"):
        os.utime(path, (1, 1))
    assert first_cell.archive(dict(reversed(carried.contents(repository, USE).items()))) == (name, text)
    assert re.fullmatch(r"ropebook-[0-9a-f]{12}", name)
    assert max(map(len, text.split("\n"))) <= first_cell.LINE
    packed = lzma.decompress(base64.b85decode(text.replace("\n", "")))
    with zipfile.ZipFile(io.BytesIO(packed)) as archive:
        assert {member: archive.read(member) for member in archive.namelist()} == files
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    for changed in ({**files, "ropebook/one.py": b"x"}, {**files, "ropebook/new.py": b""}, {"a": b"bc"}, {"ab": b"c"}):
        assert first_cell.archive(changed)[0] != name
    assert first_cell.archive({"a": b"bc"})[0] != first_cell.archive({"ab": b"c"})[0]


def test_the_archive_takes_less_than_a_third_of_its_contents():
    package = ROOT / "code" / "ropebook"
    files = {str(path): path.read_bytes() for kind in ("py", "js") for path in package.rglob(f"*.{kind}")}
    assert len(first_cell.archive(files)[1]) < sum(map(len, files.values())) * 0.3


def test_pip_is_asked_for_what_the_requirements_say(repository):
    asked = first_cell.requirements(repository)
    assert asked == {
        "torch": "torch>=2.6",
        "numpy": "numpy>=1",
        "matplotlib": "matplotlib",
        "anywidget": "anywidget<9",
        "sympy": "sympy",
        "safetensors": "safetensors",
    }
    (repository / "requirements.txt").write_text("numpy\n")
    with pytest.raises(KeyError, match="does not mention 'torch'"):
        first_cell.requirements(repository)
    assert list(first_cell.requirements()) == list(first_cell.NEEDED)


class Stubs:
    """An environment in which everything that a notebook needs is an empty module, and pip is a few lines of ours."""

    PIP = """
import pathlib, sys
site = pathlib.Path(__file__).parents[1]
(site / "asked.txt").write_text(" ".join(sys.argv[1:]))
if (site / "works").exists():
    (site / "anywidget.py").write_text("")
    (site / "sympy.py").write_text("")
"""

    def __init__(self, root: Path, source: str, present: tuple[str, ...], pip_works: bool = True) -> None:
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
        self.source, self.temporary = source, root / "temporary"
        self.temporary.mkdir()

    def run(self, before: str = "", after: str = "", check: bool = True) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.python, "-I", "-c", f"{before}\n{self.source}\n{after}"],
            cwd=self.temporary,
            env={
                "TMPDIR": str(self.temporary),
                "TEMP": str(self.temporary),
                "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),
            },
            capture_output=True,
            text=True,
            check=check,
        )


ALL = tuple(sorted(first_cell.NEEDED))
USE = """
import json, pathlib, ropebook.one
package = pathlib.Path(ropebook.one.__file__).parent
print(ropebook.one.f(), json.loads((package / "_results" / "measured.json").read_text())["value"], package)
"""


@pytest.fixture
def source(repository) -> str:
    return first_cell.first_cells("Turns", repository, USE)[0].source


def test_the_first_cell_unpacks_and_says_so(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    once = stubs.run(after=USE + stubs_again(source)).stdout.splitlines()
    (folder,) = stubs.temporary.iterdir()
    place = folder / "code" / "ropebook"
    assert re.fullmatch(r"ropebook-[0-9a-f]{12}", folder.name)
    assert folder.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert once == [
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors",
        f"unpacked: 7 files of ropebook into {folder}",
        f"ropebook can be imported: {place}",
        f"from the notebook 7 {place}",
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors",
        f"already unpacked: {folder}",
        f"ropebook can be imported: {place}",
        "on the path 1 times",
    ]
    assert not (stubs.site / "asked.txt").exists()
    (place / "one.py").write_text("damaged")
    again = stubs.run(after=USE).stdout.splitlines()
    assert again[1] == f"unpacked: 1 files of ropebook into {folder}"
    assert again[3].startswith("from the notebook 7")


def stubs_again(source: str) -> str:
    """Run the first cell again in the same kernel, and count how often its folder is on the path."""
    count = "import sys; print('on the path', sum('ropebook-' in entry for entry in sys.path), 'times')"
    return f"{source}\n{count}"


def test_the_first_cell_installs_what_is_missing(tmp_path, source):
    stubs = Stubs(tmp_path, source, ("torch", "numpy", "matplotlib", "safetensors"))
    lines = stubs.run(after=USE).stdout.splitlines()
    assert lines[:3] == [
        "found: torch, numpy, matplotlib, safetensors",
        "missing: anywidget, sympy; pip installs them now",
        "installed: anywidget<9, sympy",
    ]
    assert (stubs.site / "asked.txt").read_text() == "install --quiet anywidget<9 sympy"
    assert stubs.run().stdout.startswith(
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors\nalready unpacked"
    )


def test_the_first_cell_says_what_to_do_when_pip_fails(tmp_path, source):
    stubs = Stubs(tmp_path, source, (), pip_works=False)
    done = stubs.run(check=False)
    assert done.returncode != 0
    assert done.stdout.startswith("found: nothing\nmissing: torch, numpy")
    expected = (
        "RuntimeError: pip could not install torch, numpy, matplotlib, anywidget, sympy, safetensors: try `pip install "
    )
    assert expected + "'torch>=2.6' 'numpy>=1' matplotlib 'anywidget<9' sympy safetensors`" in done.stderr
    assert list(stubs.temporary.iterdir()) == []


def test_the_first_cell_notices_another_ropebook(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    other = tmp_path / "other" / "ropebook"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    done = stubs.run(before=f"import sys; sys.path.append({str(other.parent)!r}); import ropebook")
    assert done.stdout.splitlines()[-1].startswith(f"ropebook was loaded before, from {other}: restart the kernel")
    done = stubs.run(before=f"import sys; sys.path.insert(0, {str(other.parent)!r})", after=USE)
    assert done.stdout.splitlines()[-1].startswith("from the notebook 7")


def test_the_first_cell_keeps_out_of_another_persons_folder(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    (stubs.temporary / re.search(r"ropebook-[0-9a-f]{12}", source)[0]).write_text("a file is in the way")
    done = stubs.run(after=USE)
    assert done.stdout.splitlines()[-1].startswith("from the notebook 7")
    assert len(list(stubs.temporary.iterdir())) == 2
    if hasattr(os, "getuid"):
        shutil.rmtree(stubs.temporary)
        stubs.temporary.mkdir()
        strange = "import os; mine = os.getuid(); os.getuid = lambda: mine + 1"
        for _ in range(2):
            done = stubs.run(before=strange, after=USE)
            assert done.stdout.splitlines()[-1].startswith("from the notebook 7")
        assert len(list(stubs.temporary.iterdir())) == 3, "the folder that was there, and a new one each time"


# ------------------------------------------------------------------ they run alone


def closure(lines: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The distributions that requirements ask for here and now, and those that these ask for, and so on."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(Requirement(line), {""}) for line in lines]
    seen = set()
    while waiting:
        wanted, extras = waiting.pop()
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key not in seen:
            seen.add(key)
            found[name] = importlib.metadata.distribution(wanted.name)
            waiting += [(Requirement(text), {"", *wanted.extras}) for text in found[name].requires or []]
    return found


@pytest.fixture(scope="session")
def public(tmp_path_factory) -> Path:
    """An environment with what requirements.txt asks for and nothing else; returns its Python.

    Its files are links to those of the environment that runs the tests.
    """
    root = tmp_path_factory.mktemp("public")
    venv.create(root, with_pip=False, symlinks=os.name != "nt")
    (site,) = root.rglob("site-packages")
    text = (ROOT / "requirements.txt").read_text()
    wanted = closure([line for line in (row.partition("#")[0].strip() for row in text.splitlines()) if line])
    owners = Counter()
    for distribution in importlib.metadata.distributions():
        owners.update({file.parts[0] for file in distribution.files or []})
    for distribution in wanted.values():
        for file in distribution.files:
            # A folder that belongs to a single distribution is linked as a whole.
            part = file.parts[0] if owners[file.parts[0]] == 1 else str(file)
            link, target = site / part, Path(distribution.locate_file(part)).resolve()
            if ".." not in file.parts and not os.path.lexists(link) and target.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)
    return root / ("Scripts" if os.name == "nt" else "bin") / "python"


def run_alone(notebook: nbformat.NotebookNode, python: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in an empty folder, in a kernel of another environment, with nothing of ours on the path."""
    spec, empty, temporary = folder / "kernels" / "public", folder / "empty", folder / "temporary"
    for place in (spec, empty, temporary):
        place.mkdir(parents=True)
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
    # a manager that was given to it, the client would leave running
    client.execute(env={**inherited, **mine}, cleanup_kc=True)
    return result


TIMES = re.compile(r"\b\d[\d.,]*(e[-+]?\d+)?\s*(ns|µs|μs|us|ms|s|min|seconds?)\b|0x[0-9a-f]+")


def texts(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """What a cell printed or displayed as text, kind and text, with times and addresses in memory left out.

    Where a cell measures time, by `perf_counter` or because its tag `timing` says so, every number is left out.
    """
    takes_time = "perf_counter" in cell.source or "timing" in cell.metadata.get("tags", [])
    hidden = NUMBERS if takes_time else TIMES
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        assert output.output_type != "error"
        data = {output.name: output.text} if output.output_type == "stream" else output.data
        for kind, text in sorted(data.items()):
            if kind in KINDS and found and found[-1][0] == kind == output.get("name"):
                found[-1] = (kind, found[-1][1] + text)  # where a piece of a stream ends is random
            elif kind in KINDS:
                found.append((kind, text))
    return [(kind, hidden.sub("…", text)) for kind, text in found]


NUMBERS = re.compile(r"\s*\d[\d.,]*(e[-+]?\d+)?\b")
KINDS = {"stdout", "stderr", "text/plain", "text/markdown", "text/latex"}


def test_the_public_environment_holds_the_requirements_only(public):
    program = "import sys, importlib.util as u; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    absent = ["pytest", "hypothesis", "playwright", "ropebook", "tools", "pip"]
    present = ["torch", "numpy", "matplotlib", "sympy", "anywidget", "ipywidgets", "jupyterlab", "ipykernel", "yaml"]
    present += ["transformers"]
    done = subprocess.run([public, "-I", "-c", program, *absent, *present], capture_output=True, text=True, check=True)
    assert done.stdout == f"{present}\n"


def test_a_small_notebook_runs_alone(public, repository, tmp_path):
    cells = [new_code_cell(USE), new_code_cell("import os; print(os.listdir())")]
    notebook = new_notebook(cells=first_cell.first_cells("Small", repository, USE) + cells)
    result = run_alone(notebook, public, tmp_path)
    said = [output.text for cell in result.cells if cell.cell_type == "code" for output in cell.outputs]
    assert said[0].startswith(
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors\nunpacked: 7 files of ropebook into "
    )
    assert f"ropebook can be imported: {tmp_path / 'temporary'}" in said[0]
    assert said[1].startswith("from the notebook 7")
    assert said[2] == "[]\n"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_carries_every_file_that_its_page_opened(chapter):
    """The kernel that executed the page has written down what it opened."""
    opened = execute.executed(chapter).metadata[execute.KEY]["files"]
    names = {re.sub("^results/(trials/)?", "ropebook/_results/", name.removeprefix("code/")) for name in opened}
    assert names - set(needs(chapter)) == set()


# These have things that the others lack: sympy's proofs, figures with dials, a result that is carried in part,
# trained weights.
ALONE = [path for path in CHAPTERS if path.stem in ("derivation_only", "complex_plane", "lab")]


@pytest.mark.parametrize("chapter", ALONE, ids=lambda path: path.stem)
def test_a_chapters_notebook_runs_alone_and_says_the_same(public, chapter, written_notebooks, tmp_path):
    notebook = nbformat.read(written_notebooks / f"{chapter.stem}.ipynb", as_version=4)
    where = new_code_cell("import ropebook; print(ropebook.__file__)", id="where")
    notebook.cells.append(where)
    result = run_alone(notebook, public, tmp_path)
    said = "".join(output.text for output in result.cells[0].outputs)
    assert "ropebook can be imported" in said
    assert result.cells[-1].outputs[0].text.startswith(str(tmp_path / "temporary"))
    for book, alone in zip(notebook.cells[1:-1], result.cells[1:-1], strict=True):
        if book.cell_type == "code":
            assert texts(alone) == texts(book), book.source


@pytest.mark.parametrize(
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
