"""Diagnose a function that rotates q and k: report what it does and which mistakes it makes.

- `naming`: `diagnose` itself, which turns measurements into the names of mistakes.
- `calling`: how to call the function.
- `broken`: functions that raise, return NaN or infinity, return random results, or overwrite their inputs.
- `measures`, `kinds`, `blocks`, `untangling`: what the function does, read off its matrices. If that is not a rotation,
  what was written instead.
- `pairing`: which entries form pairs, and what happens to the others.
- `guessing`, `formulas`: which combination of mistakes explains the measurements, and the formula that it amounts to.
- `rules`, `frequencies`, `scaling`, `bands`, `versus`: which mistake, base and scaling explain the frequencies, pair by
  pair.
- `rounding`, `halves`: which intermediate values are rounded to a half-precision type.
- `places`, `warps`, `far`, `whereabouts`: which position each token is really rotated by, near the start and far away.
- `bent`: maps that are not linear: vectors are normalized, clipped or rounded, or something is added to them.
- `strides`: tables that are read with a wrong stride, or in the wrong order of rows and columns.
- `repeated`, `differences`, `alone`, `beyond`: whether other calls rotate the same tokens differently, and how.
- `trials`: comparisons between rows, heads and tokens, and of scores with the reference.
- `witness`: the final trial, which makes calls of many shapes and compares every vector with the reference.
- `names`: the names of all mistakes, and their meanings.
- `report`: the report that `diagnose` returns.

From a shell: ``python -m ropebook.diagnose module:function``.
"""

from ropebook.diagnose.naming import diagnose
from ropebook.diagnose.report import Report

__all__ = ["Report", "diagnose"]
