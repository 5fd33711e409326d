"""Paths of the repository's folders and pages, and a function that writes files atomically."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
BOOK = ROOT / "book"
BUILD = ROOT / "_build"
HTML = BUILD / "html"
EXECUTED = BUILD / "executed"
NOTEBOOKS = BUILD / "notebooks"


def pages(reference: bool = True) -> list[Path]:
    """Return all pages of the book in the order of `_toc.yml`, with depth pages after their chapter. With
    ``reference=False``, the reference part is left out."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text())
    names = [toc["root"]]
    for part in toc.get("parts", []):
        if reference or part["caption"] != "Reference":
            for chapter in part["chapters"]:
                names += [page["file"] for page in (chapter, *chapter.get("sections", []))]
    return [ROOT / f"{name}.md" for name in names]


def write_whole(path: Path, text: str) -> None:
    """Write `text` to `path` atomically: other processes see either the old content or the new content, never a part of
    it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, 0o644)  # temporary files are private, but built files are for everyone
    os.replace(temporary, path)
