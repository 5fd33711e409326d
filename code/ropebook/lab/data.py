"""What the small models read: the sources of the reader's own Python library, byte by byte.

Nothing is downloaded. The text is the ``.py`` files of the standard library (not ``site-packages`` or ``dist-packages``, not
``_sysconfigdata*``), each followed by a zero byte. How it is divided into parts, `ropebook.lab.parts` says.

In it records are planted that the model must find again: a *record*, one byte of 128 to 191, stands for one of eight keys and one of
eight values; later a *query* for that key follows, one byte of 1 to 8, and after it the record must come again.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

VOCABULARY = 256
END = 0
"""The byte that ends a file."""
KEYS = VALUES = 8
QUERY, RECORD = 1, 128
"""QUERY + key is the byte that asks, RECORD + VALUES·key + value the one that is planted and must answer. No text uses
either: what is not printable ASCII in it is made a question mark."""

_LEFT_OUT = {"site-packages", "dist-packages"}
_TO_TEXT = bytes(
    byte if byte in b"\t\n\f\r" or 32 <= byte < 127 else ord("?")
    for byte in range(256)
)


def python_files(root: Path) -> Iterator[tuple[str, bytes]]:
    """Relative path and content of every ``.py`` file under ``root``, in the order of their names.

    Not those of ``site-packages`` or ``dist-packages``, nor ``_sysconfigdata*``. ``FileNotFoundError`` if there is no such folder.
    """
    if not root.is_dir():
        raise FileNotFoundError(
            f"root must be a folder of Python sources, got {root}"
        )
    for name in sorted(
        path.relative_to(root).as_posix() for path in root.rglob("*.py")
    ):
        *folders, file = name.split("/")
        if not _LEFT_OUT & set(folders) and not file.startswith("_sysconfigdata"):
            yield name, (root / name).read_bytes()


def as_text(content: bytes) -> np.ndarray:
    """Bytes as the models read them, uint8: what is not printable ASCII is a question mark; with `END` behind.

    >>> as_text("né".encode()).tobytes()
    b'n??\\x00'
    """
    return np.frombuffer(content.translate(_TO_TEXT) + bytes([END]), np.uint8)
