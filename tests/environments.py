"""Separate environments for tests. Their Python sees only selected packages from the environment that runs the
tests."""

from __future__ import annotations

import importlib.metadata
import os
import venv
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def closure(lines: list[str], without: Collection[str] = ()) -> dict[str, importlib.metadata.Distribution]:
    """Return the distributions that these requirements need on this machine, directly or indirectly, except for those
    in ``without``.

    The requirements must also work without the distributions that are left out.
    """
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(Requirement(line), {""}) for line in lines]
    seen = set()
    while waiting:
        wanted, extras = waiting.pop()
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key not in seen and name not in without:
            seen.add(key)
            found[name] = importlib.metadata.distribution(wanted.name)
            waiting += [(Requirement(text), {"", *wanted.extras}) for text in found[name].requires or []]
    return found


def environment(root: Path, lines: list[str], without: Collection[str] = ()) -> Path:
    """Create an environment that contains only these requirements and their dependencies. Return the path of its
    Python.

    Its files are symbolic links to those of the environment that runs the tests.
    """
    venv.create(root, with_pip=False, symlinks=os.name != "nt")
    (site,) = root.rglob("site-packages")
    owners = Counter()
    for distribution in importlib.metadata.distributions():
        owners.update({file.parts[0] for file in distribution.files or []})
    for distribution in closure(lines, without).values():
        for file in distribution.files:
            # If a folder belongs to a single distribution, link the whole folder.
            part = file.parts[0] if owners[file.parts[0]] == 1 else str(file)
            link, target = site / part, Path(distribution.locate_file(part)).resolve()
            if ".." not in file.parts and not os.path.lexists(link) and target.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)
    return root / ("Scripts" if os.name == "nt" else "bin") / "python"
