"""Reference implementations of the explorers: the data that each one shows, recomputed in Python with the book's
modules.

An oracle is a module named after its explorer, with two functions. ``compute(dials)`` computes everything the figure
shows from the dials alone, and returns it under the same names as the script's ``compute``. ``terms(dials)`` returns a
scale for each numeric entry: the sum of the absolute values of its terms, either as one number or with the entry's
shape. The script's result may differ from the oracle's by at most 1e-6 times that scale.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from ropebook.explorers import Explorer


def oracle(kind: type[Explorer]) -> ModuleType:
    """Return the oracle of an explorer."""
    return importlib.import_module(f"tests.explorers.oracles.{kind.script.removesuffix('.js')}")


def computed(kind: type[Explorer], **dials: Any) -> dict[str, Any]:
    """Return the data that an explorer shows at these dial settings. All other dials keep their initial values."""
    return expected_of(kind(**dials))


def expected_of(figure: Explorer) -> dict[str, Any]:
    """Return the data that the figure shows at its current dial settings."""
    return oracle(type(figure)).compute(figure.dials())
