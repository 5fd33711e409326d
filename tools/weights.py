"""Write the small model's weights to a file for the site. The file is a script, because a page opened from disk can't
load any other kind of data."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path

from tools.paths import BUILD, ROOT, write_whole

FOLDER = BUILD / "weights"
NAME = "model.js"
SOURCES = (
    "results/trials/rope-10000-0-3200.safetensors",
    "results/trials/rope-10000-0-3200.json",
    "code/ropebook/lab/int8.py",
    "code/ropebook/lab/reading.py",
)


def ensure() -> Path:
    """Write the file if it is missing or out of date, and return its folder."""
    made_from = hashlib.sha256(b"".join((ROOT / name).read_bytes() for name in SOURCES)).hexdigest()
    stamp = BUILD / ".weights"
    if not stamp.exists() or stamp.read_text() != made_from or not (FOLDER / NAME).exists():
        write_whole(FOLDER / NAME, script())
        write_whole(stamp, made_from)
    return FOLDER


def script() -> str:
    """Return the text of the file."""
    from ropebook.lab.reading import packed  # imported here because it needs torch, which takes seconds

    text = base64.b64encode(packed()).decode()
    return f'(window.ropebookFiles ??= {{}}).model = "{text}";\n'
