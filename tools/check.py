"""Lint everything and run the tests that your changes affect, in about a minute: python -m tools.check [BASE].

BASE is a commit (default: HEAD). Files that differ from it, or that Git does not track yet, count as changed. Tests
that need the built site are left to `make test`.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tools import imports
from tools.paths import ROOT

SCRIPTS = {".js", ".mjs", ".ts"}
SITE = Path("tests/site")
# Tests that no import connects with these files and folders.
ALSO = {
    "pyproject.toml": ("test_build", "test_lock"),
    "requirements.txt": ("test_build", "test_lock"),
    "requirements.lock": ("test_lock",),
    "constraints.txt": ("test_build", "test_lock"),
    "_toc.yml": ("test_finding",),
    "book": ("test_finding",),
    "code": ("test_api", "test_house"),
    "code/ropebook/colours.py": ("explorers/test_stills", "test_colours", "test_preview"),
}


def changed(base: str, root: Path = ROOT) -> set[Path]:
    """Return the files that differ from `base`, with paths relative to the repository. Deleted files are not
    included."""
    ask = [["diff", "--name-only", base, "--"], ["ls-files", "--others", "--exclude-standard"]]
    told = [subprocess.run(["git", *one], cwd=root, capture_output=True, text=True, check=True).stdout for one in ask]
    return {Path(name) for name in "".join(told).splitlines() if (root / name).is_file()}


def wanted_by(files: set[Path], root: Path = ROOT) -> tuple[list[str], list[str]]:
    """Return the files to run with pytest, and the names of the explorers that changed. The name "kit" means the code
    that explorers share, which every explorer's test covers.

    Changed modules of the package are included for their doctests. A test file is included if it changed, if it imports
    a changed module by name, if it is named after a changed module or page, or if `ALSO` lists it.
    """
    explorers = {_explorer(path) for path in files} - {""}
    modules = {_module(path) for path in files if path.suffix == ".py"}
    titles = {path.stem for path in files if path.parts[0] == "book"}
    titles |= {module.removeprefix("ropebook.").replace(".", "_") for module in modules}
    modules |= {_module(path.parent) for path in files if _is_handed_on(path, root)}
    wanted = sorted(str(path) for path in files if path.suffix == ".py" and path.parts[0] == "code")
    also = {name for place, names in ALSO.items() if any(_is_in(path, place) for path in files) for name in names}
    for path in sorted((root / "tests").rglob("test_*.py")):
        relative = path.relative_to(root)
        if relative.is_relative_to(SITE):
            continue
        known = set(imports.names(path.read_text(encoding="utf-8")))
        known |= {name.rpartition(".")[0] for name in known}
        known.add(_module(relative))
        listed = str(relative.relative_to("tests").with_suffix("")) in also
        if modules & known or path.stem.removeprefix("test_") in titles or listed:
            wanted.append(str(relative))
    return wanted, sorted(explorers)


def _is_in(path: Path, place: str) -> bool:
    return path.is_relative_to(place) and path.suffix in {"", ".py", ".md", ".toml", ".txt", ".lock", ".yml"}


def _module(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(part for part in parts[parts[0] == "code" :] if part != "__init__")


def _is_handed_on(path: Path, root: Path) -> bool:
    """Return whether a module's names are re-exported by its package, or the module is discovered automatically. In
    both cases, tests can use it without importing it by name."""
    whole = root / path.parent / "__init__.py"
    if path.suffix != ".py" or path.parts[:2] != ("code", "ropebook") or len(path.parts) < 4 or not whole.is_file():
        return False
    known = imports.names(whole.read_text(encoding="utf-8"))
    return path.parts[2] == "proofs" or any(name.startswith(f"{_module(path)}.") for name in known)


def _explorer(path: Path) -> str:
    parts = path.parts
    if "explorers" not in parts or parts[0] != "code":
        return ""
    name = parts[parts.index("explorers") + 1 :][0]
    return {"stills": "", "kit": "kit or every"}.get(name, name.partition(".")[0].strip("_"))


def main(base: str = "HEAD") -> int:
    files = changed(base)
    python = [sys.executable, "-m"]
    commands = [[*python, "ruff", "check", "."], [*python, "ruff", "format", "--check", "--quiet", "."]]
    if any(path.suffix in SCRIPTS for path in files):
        commands.append([*python, "tools.scripts"])
    tests, explorers = wanted_by(files)
    if tests:
        commands.append([*python, "pytest", "-q", "-x", *tests])
    if explorers:
        commands.append([*python, "pytest", "-q", "-x", "tests/explorers", "-k", " or ".join(explorers)])
    for command in commands:
        print("$", " ".join(["python", *command[1:]]), flush=True)
        done = subprocess.run(command, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
        if done.returncode:
            return done.returncode
    left = sorted(str(path) for path in files if path.parts[0] == "book" or path.is_relative_to(SITE))
    if left:
        print(f"Only `make test` looks at {', '.join(left)}.")
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
