"""Several checks in one test, for what takes long to set up."""

from __future__ import annotations

from collections.abc import Callable

import pytest


def check(checks: list[Callable[..., None]], *arguments: object) -> None:
    """Call every check with these arguments, even after one has failed. The failure names each one that fails."""
    failed = []
    for one in checks:
        try:
            one(*arguments)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"in {one.__name__}")
            failed.append(error)
    if failed:
        raise BaseExceptionGroup(f"{len(failed)} of {len(checks)} checks fail", failed)
