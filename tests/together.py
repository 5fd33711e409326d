"""Run several cases, or several checks, as one test. This helps if each of them takes only a moment, or if they share a
slow set-up."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable

import pytest


def together(names: str | tuple[str, ...], values: Iterable, ids: object = None) -> Callable:
    """Run a test with each of the values, like ``pytest.mark.parametrize``, but as a single test case.

    All values are tried, and the failure names each value that fails. If none fails but at least one is skipped, the
    whole test is skipped. The cases share the test's fixtures, so no case may change a fixture. Long cases are better
    spread over workers by ``pytest.mark.parametrize``.
    """
    names = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    rows = [row if len(names) > 1 else (row,) for row in values]
    if not rows or {len(row) for row in rows} != {len(names)}:
        raise ValueError(f"values must hold at least one case, each with a value for {', '.join(names)}")
    labels = _labels(names, rows, ids)

    def decorate(test: Callable) -> Callable:
        @functools.wraps(test)
        def whole(**fixtures: object) -> None:
            tried = (functools.partial(test, **fixtures, **dict(zip(names, row, strict=True))) for row in rows)
            _try_all([f"with {label}" for label in labels], tried, "cases")

        # pytest takes the names of the fixtures from the signature
        parameters = inspect.signature(test).parameters
        missing = set(names) - set(parameters)
        if missing:
            raise TypeError(f"{test.__name__} has no argument {', '.join(sorted(missing))}")
        whole.__signature__ = inspect.Signature([one for name, one in parameters.items() if name not in names])
        return whole

    return decorate


def pairwise(*columns: Iterable) -> list[tuple]:
    """Return rows with a value from each column, such that any two values from different columns share a row.

    There are far fewer such rows than combinations, and few mistakes need three particular values at once.

    >>> pairwise("ab", "cd", "ef")
    [('a', 'c', 'e'), ('a', 'd', 'f'), ('b', 'c', 'f'), ('b', 'd', 'e')]
    """
    columns = [list(column) for column in columns]
    rows = list(itertools.product(*(range(len(column)) for column in columns)))
    pairs = [set(itertools.combinations(enumerate(row), 2)) for row in rows]
    missing, chosen = set().union(*pairs), []
    while missing:
        best = max(range(len(rows)), key=lambda k: len(pairs[k] & missing))
        chosen.append(tuple(column[k] for column, k in zip(columns, rows[best], strict=True)))
        missing -= pairs[best]
    return chosen


def check(checks: list[Callable[..., None]], *arguments: object) -> None:
    """Call every check with these arguments, even after one has failed. If any fail, the error names each of them."""
    tried = (functools.partial(one, *arguments) for one in checks)
    _try_all([f"in {one.__name__}" for one in checks], tried, "checks")


def _try_all(notes: list[str], calls: Iterable[Callable[[], None]], kind: str) -> None:
    """Make all calls. If any fail, raise their errors, each with its note. Otherwise, if any are skipped, skip the
    test."""
    failed, skipped = [], []
    for note, call in zip(notes, calls, strict=True):
        try:
            call()
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(note)
            failed.append(error)
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(notes)} {kind} fail", failed)
    if skipped:
        raise skipped[0]


def _labels(names: list[str], rows: list[tuple], ids: object) -> list[str]:
    if callable(ids):
        ids = [" ".join(str(ids(one)) for one in row) for row in rows]
    if ids is not None:
        return [str(one) for one in ids]
    return [", ".join(f"{name}={one!r}"[:200] for name, one in zip(names, row, strict=True)) for row in rows]
