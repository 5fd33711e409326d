"""What each explorer shows, computed again in Python from the book's modules, for comparison.

An oracle is a module of the explorer's name with two functions. ``compute(dials)``: what the figure shows, from the
dials alone, under the names that the script's ``compute`` uses. ``terms(dials)``: for each entry of numbers the sum of
the absolute values of the terms that make it, as a number or in the entry's shape; the script may differ by 1e-6 of it.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ropebook.explorers import Explorer


def oracle(kind: type[Explorer]) -> ModuleType:
    """The oracle of an explorer."""
    return importlib.import_module(f"tests.explorers.oracles.{kind.script.removesuffix('.js')}")


def computed(kind: type[Explorer], **dials: Any) -> dict[str, Any]:
    """What an explorer shows at these dials, with its other dials as they open."""
    return expected_of(kind(**dials))


def expected_of(figure: Explorer) -> dict[str, Any]:
    """What the figure shows at its current dials."""
    return oracle(type(figure)).compute(figure.dials())
