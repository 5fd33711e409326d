"""What each explorer shows, computed once more in Python with the book's modules, for comparison.

An oracle is a module with the explorer's name and two functions. ``compute(dials)`` returns what the figure shows,
computed from the dials alone, under the same names as in the script's ``compute``. ``terms(dials)`` gives, for each
numeric entry, the sum of the absolute values of its terms, either as one number or in the entry's shape; the script may
differ by 1e-6 of that.
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
    """What an explorer shows at these dials; all other dials keep their opening values."""
    return expected_of(kind(**dials))


def expected_of(figure: Explorer) -> dict[str, Any]:
    """What the figure shows at its current dials."""
    return oracle(type(figure)).compute(figure.dials())
