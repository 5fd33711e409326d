"""Diagnose a rotation: hand over a function that rotates q and k, and be told what it does and which mistakes it makes.

- `naming`: `diagnose`, from measurements to names.
- `calling`: how the function is called.
- `measures`: what it does, read off its matrices.
- `frequencies`: which base and which scaling.
- `report`: what is handed back.

From a shell: ``python -m ropebook.diagnose module:function``.
"""

from ropebook.diagnose.naming import diagnose
from ropebook.diagnose.report import Report

__all__ = ["Report", "diagnose"]
