"""Diagnose a function that rotates q and k: report what it does and which mistakes it makes.

- `naming`: `diagnose` itself, which turns measurements into the names of mistakes.
- `calling`: how to call the function.
- `broken`: functions that raise an error, return NaN, infinity or random results, or overwrite their inputs.
- `measures`, `kinds`, `blocks`, `untangling`: what the function does, read off its matrices. If it is not a rotation,
  these modules find the formula that was written instead.
- `pairing`: which entries form pairs, and what happens to the others.
- `guessing`, `formulas`: the combination of mistakes that explains the measurements, and the resulting formula.
- `rules`, `frequencies`, `scaling`, `bands`, `versus`: which mistake, base and scaling explain the frequencies, pair by
  pair.
- `rounding`, `halves`: which intermediate values are rounded to a half-precision type.
- `places`, `warps`, `far`, `whereabouts`: the position by which each token is really rotated, near the start and far
  away.
- `bent`: nonlinear maps, which normalize, clip or round vectors, or add something to them.
- `terms`: which pair's cosine or sine each entry is multiplied by, if tables are read at the wrong places.
- `memory`, `chance`: whether a call is affected by an earlier one, or changes at random.
- `strides`: tables that are read with a wrong stride, or in the wrong order of rows and columns.
- `repeated`, `differences`, `alone`, `beyond`: whether the same tokens are rotated differently in other calls, and how.
- `trials`: comparisons of rows, heads and tokens with one another, and of scores with those of the reference.
- `witness`: the final trial, which calls the function with inputs of many shapes and compares every vector with the
  reference.
- `names`: the names of all mistakes, and their meanings.
- `report`: the report that `diagnose` returns.

From a shell: ``python -m ropebook.diagnose module:function``.
"""

from ropebook.diagnose.naming import diagnose
from ropebook.diagnose.report import Report

__all__ = ["Report", "diagnose"]
