"""Diagnose a rotation: hand over a function that rotates q and k, and be told what it does and which mistakes it makes.

- `naming`: `diagnose`, from measurements to names.
- `calling`: how the function is called.
- `broken`: functions that raise, return no numbers, draw random ones, or write over what they are given.
- `measures`, `kinds`, `blocks`, `untangling`: what it does, read off its matrices; what was written instead of a rotation.
- `pairing`: which entries are pairs, and what happens to the others.
- `guessing`, `formulas`: which mistakes together would do that, and the formula that it comes to.
- `rules`, `frequencies`, `scaling`, `bands`, `versus`: which mistake, base and scaling explain the frequencies, pair by
  pair.
- `rounding`, `halves`: what is rounded to a half type on its way.
- `places`, `warps`, `far`, `whereabouts`: which positions are read, near and far away, and at which tokens are rotated.
- `repeated`, `differences`, `alone`, `beyond`: the same tokens in other calls, and what differs there.
- `trials`: rows, heads and tokens against each other, and scores against the reference.
- `witness`: at the end, calls of many shapes, vector by vector against the reference.
- `names`: every name that a mistake can be given, and what it means.
- `report`: what is handed back.

From a shell: ``python -m ropebook.diagnose module:function``.
"""

from ropebook.diagnose.naming import diagnose
from ropebook.diagnose.report import Report

__all__ = ["Report", "diagnose"]
