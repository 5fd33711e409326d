"""Build the package as a wheel and as a source distribution: python -m tools.wheel [a folder for both].

Both are built from a copy of the necessary files. setuptools leaves folders behind where it builds, and these might
otherwise end up in the next wheel.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tools.paths import BUILD, ROOT, write_whole

FOLDER = BUILD / "wheel"
SINGLE = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff")
# The oldest date that a zip file can have. With a fixed date, equal sources make equal wheels.
EPOCH = "315532800"


@dataclass(frozen=True)
class Wheel:
    """The path of a wheel file and the SHA-256 of its bytes."""

    path: Path
    sha256: str

    @property
    def name(self) -> str:
        return self.path.name


def results(root: Path = ROOT) -> list[str]:
    """Return the names of the results that go into the wheel, relative to `results/`."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["ropebook"]["results"]


def sources(root: Path = ROOT) -> list[Path]:
    """Return all files that the wheel is built from."""
    code = root / "code"
    found = [*code.glob("*.py"), *(path for path in (code / "ropebook").rglob("*") if path.is_file())]
    found = [path for path in found if not {"__pycache__", ".ruff_cache"} & set(path.parts)]
    return sorted([*found, *(root / name for name in SINGLE), *(root / "results" / name for name in results(root))])


def build(kind: str, out: Path, root: Path = ROOT) -> Path:
    """Build a "wheel" or an "sdist" into `out`, and return its path.

    Raises:
        RuntimeError: setuptools failed.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        for path in sources(root):
            copy = Path(folder, path.relative_to(root))
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
        # setuptools has no option for a better compression than zlib's default.
        program = (
            "import sys, zlib; zlib.Z_DEFAULT_COMPRESSION = 9; from setuptools import build_meta as b; "
            f"print(b.build_{kind}(sys.argv[1]))"
        )
        done = subprocess.run(
            [sys.executable, "-c", program, str(out.resolve())],
            cwd=folder,
            env={**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "PYTHONPATH": ""},
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode != 0:
        raise RuntimeError(f"setuptools could not build the {kind}:\n{done.stdout}{done.stderr}")
    return out / done.stdout.splitlines()[-1]


@cache
def ensure() -> Wheel:
    """Return the wheel for the current sources, building it if necessary. Within one process, the result never changes.
    So all notebooks of a build contain the hash of the wheel next to them, even if a source file changes during the
    build."""
    digest = hashlib.sha256()
    for path in sources():
        digest.update(f"{path.relative_to(ROOT).as_posix()}\0".encode() + path.read_bytes())
    stamp = FOLDER / ".made-from"
    if not stamp.exists() or stamp.read_text() != digest.hexdigest():
        shutil.rmtree(FOLDER, ignore_errors=True)
        build("wheel", FOLDER)
        write_whole(stamp, digest.hexdigest())
    (path,) = FOLDER.glob("*.whl")
    return Wheel(path, hashlib.sha256(path.read_bytes()).hexdigest())


def main(folder: str = "") -> None:
    paths = [build(kind, Path(folder)) for kind in ("wheel", "sdist")] if folder else [ensure().path]
    for path in paths:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        print(f"{path}  {path.stat().st_size / 1e6:.2f} MB  sha256 {digest}")


if __name__ == "__main__":
    main(*sys.argv[1:])
