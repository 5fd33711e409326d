"""Texts to explore with: long ones that every installation of Python or of the book brings along.

What is read here may shape a hypothesis, so it decides none: the texts that decide are named in `rule` and are others.
All of them are public, and the model has very likely seen some of them, or earlier versions, in its training, which
included source code and web pages (Allal et al. 2025, arXiv 2502.02737): losses are compared on one text, and never
read as a measure of what the model can do.
"""

from __future__ import annotations

import hashlib
import importlib.util
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ropebook import checks


@dataclass(frozen=True)
class Text:
    """A text with its source and its licence; ``read`` gives the text, which depends on the versions installed."""

    name: str
    kind: str
    source: str
    license: str
    read: Callable[[], str]


def library(*files: str) -> Callable[[], str]:
    """Reads modules of Python's standard library, one after the other.

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
    """Reads files of an installed package, one after the other; ``ModuleNotFoundError`` where it is not installed."""

    def read() -> str:
        found = importlib.util.find_spec(name)
        if found is None or not found.submodule_search_locations:
            raise ModuleNotFoundError(
                f"the text needs the package {name}, which is not installed",
                name=name,
            )
        folder = Path(found.submodule_search_locations[0])
        return "\n".join(
            (folder / one).read_text(encoding="utf-8") for one in files
        )

    return read


def topics() -> str:
    """The reference manual of Python as its help() has it: the topics in the order of their names."""
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
)
"""The texts that may be looked at as often as one likes."""


def exploration(name: str) -> Text:
    """The text of this name from `EXPLORATION`.

    >>> exploration("code").license
    'PSF-2.0'
    """
    known = {text.name: text for text in EXPLORATION}
    return known[checks.choice("name", name, known)]


def digest(text: str) -> str:
    """The SHA-256 of a text: results name it, since another version of a package has another text."""
    return hashlib.sha256(text.encode()).hexdigest()
