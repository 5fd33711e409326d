"""The first cells of a student notebook: they carry the parts of the package that it needs, importable anywhere.

The sources travel inside the notebook, packed by xz and written in base85, so that one downloaded file is enough.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import io
import lzma
import textwrap
import zipfile
from functools import cache
from pathlib import Path

import yaml
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell
from packaging.requirements import Requirement

from tools.carried import contents
from tools.paths import ROOT

NEEDED = ("torch", "numpy", "matplotlib", "anywidget", "sympy", "safetensors")
# Characters of the archive per line; each line costs a notebook eight more.
LINE = 1000


def prepare_ropebook(name: str, archive: str, needed: dict[str, str]) -> None:
    """Install what is missing, unpack the book's package, put it on the path; say what was done.

    Harmless when it runs again. The text of this function is in every notebook's first cell.

    Args:
        name: name of the folder to make in the system's temporary folder; changes with the sources.
        archive: zip file, packed by xz, in base85; white space does not matter.
        needed: module name -> what to ask pip for if it cannot be imported.

    Raises:
        RuntimeError: if pip cannot install what is missing.
    """
    import base64
    import importlib.util
    import io
    import lzma
    import os
    import shlex
    import subprocess
    import sys
    import tempfile
    import zipfile
    from pathlib import Path

    def missing() -> list[str]:
        importlib.invalidate_caches()
        return [module for module in needed if importlib.util.find_spec(module) is None]

    absent = missing()
    print("found:", ", ".join(module for module in needed if module not in absent) or "nothing")
    if absent:
        print(f"missing: {', '.join(absent)}; pip installs them now")
        wanted = [needed[module] for module in absent]
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *wanted])
        absent = missing()
        if absent:
            command = shlex.join(["pip", "install", *wanted])
            raise RuntimeError(f"pip could not install {', '.join(absent)}: try `{command}`, then run this cell again")
        print("installed:", ", ".join(wanted))

    folder = Path(tempfile.gettempdir(), name)
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        mine = not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    except OSError:
        mine = False
    if not mine:  # on a shared machine another person may own a folder of this name
        folder = Path(tempfile.mkdtemp(prefix=name))
    code = folder / "code"  # one level down, as in the repository: what lies beside the folder is never read
    written = 0
    unpacked = lzma.decompress(base64.b85decode("".join(archive.split())))
    with zipfile.ZipFile(io.BytesIO(unpacked)) as sources:
        for member in sources.namelist():
            path, data = code / member, sources.read(member)
            if not path.is_file() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                part = path.with_name(f"{path.name}.{os.getpid()}")
                part.write_bytes(data)
                part.replace(path)
                written += 1
    print(f"unpacked: {written} files of ropebook into {folder}" if written else f"already unpacked: {folder}")

    if str(code) not in sys.path:
        sys.path.insert(0, str(code))
    importlib.invalidate_caches()
    place = Path(next(iter(importlib.util.find_spec("ropebook").submodule_search_locations)))
    if place.resolve() == (code / "ropebook").resolve():
        print(f"ropebook can be imported: {place}")
    else:
        print(f"ropebook was loaded before, from {place}: restart the kernel to use the copy that travels here")


def archive(files: dict[str, bytes]) -> tuple[str, str]:
    """The folder's name, which depends only on names and contents, and the packed files, which are
    reproducible. The zip file itself is not compressed, so that xz can exploit what its members have in
    common.
    """
    return _archive(tuple(sorted(files.items())))


# Packing takes a second.
@cache
def _archive(files: tuple[tuple[str, bytes], ...]) -> tuple[str, str]:
    digest, buffer = hashlib.sha256(), io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        for name, data in files:
            digest.update(f"{name}\0{len(data)}\0".encode() + data)
            member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            member.create_system = 3  # the same on every system
            zipped.writestr(member, data)
    text = base64.b85encode(lzma.compress(buffer.getvalue())).decode()
    return f"ropebook-{digest.hexdigest()[:12]}", "\n".join(textwrap.wrap(text, LINE))


def requirements(root: Path = ROOT) -> dict[str, str]:
    """What to ask pip for, for each module that a notebook needs, as in `requirements.txt`.

    Raises:
        KeyError: if `requirements.txt` does not mention one of them.
    """
    lines = (line.partition("#")[0].strip() for line in (root / "requirements.txt").read_text().splitlines())
    asked = {Requirement(line).name: line for line in lines if line}
    for name in NEEDED:
        if name not in asked:
            raise KeyError(f"requirements.txt does not mention {name!r}, which the notebooks need")
    return {name: asked[name] for name in NEEDED}


@cache
def book_title(root: Path = ROOT) -> str:
    """What `_config.yml` calls the book."""
    return yaml.safe_load((root / "_config.yml").read_text(encoding="utf-8"))["title"]


def first_cells(title: str, root: Path = ROOT, code_text: str = "") -> list[NotebookNode]:
    """The cell that makes `ropebook` importable, folded, and a line that says what the notebook is.

    ``code_text``: what the notebook's own cells say, which decides what travels (`tools.carried`).
    """
    name, text = archive(contents(root, code_text))
    source = (
        f"# @title Make ropebook importable (run this cell first)\n{inspect.getsource(prepare_ropebook)}\n\n"
        f'prepare_ropebook(\n    "{name}",\n    """\n{text}\n""",\n    {requirements(root)},\n)'
    )
    folded = {"jupyter": {"source_hidden": True}, "cellView": "form", "tags": ["hide-input"]}
    note = (
        f"This is the chapter “{title}” of the book “{book_title(root)}” as a notebook that runs. The folded cell "
        "above makes the book’s package `ropebook`, which travels inside it, importable: run that cell first."
    )
    return [new_code_cell(source, metadata=folded), new_markdown_cell(note)]
