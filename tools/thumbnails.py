"""Small pictures of the explorers for the map of the book. Each picture is a section of the explorer's opening picture,
without its words."""

from __future__ import annotations

import re
from pathlib import Path

from tools.paths import BUILD, ROOT, write_whole

STILLS = ROOT / "code" / "ropebook" / "explorers" / "stills"
FOLDER = BUILD / "thumbnails"
WIDTH, HEIGHT = 160, 100
WORDS = re.compile(r"<text\b.*?</text>", re.DOTALL)
ROOT_TAG = re.compile(r"<svg\b[^>]*>")
LONG = re.compile(r"(\d+\.\d)\d+")


def cut(still: str, left: float, top: float, width: float, height: float) -> str:
    """Cut a rectangle out of a still picture, and return it as a separate SVG with rounded coordinates.

    Raises ValueError if the rectangle doesn't have the aspect ratio of the thumbnails.

    >>> cut('<svg width="740" role="img"><text>words</text><path d="M0.123,4"/></svg>', 0, 0, 16, 10)
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 16 10" width="160" height="100"><path d="M0.1,4"/></svg>'
    """
    if abs(width * HEIGHT - height * WIDTH) > 1e-6 * width * HEIGHT:
        raise ValueError(f"a thumbnail is {WIDTH} to {HEIGHT}, got {width:g} to {height:g}")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{left:g} {top:g} {width:g} {height:g}"'
        f' width="{WIDTH}" height="{HEIGHT}">'
    )
    return ROOT_TAG.sub(head, LONG.sub(r"\1", WORDS.sub("", still)), count=1)


def ensure(pictures: dict[str, str]) -> Path:
    """Create a thumbnail for each name, in the subfolder `way/`, and return the folder. Each thumbnail is specified by
    an explorer and a rectangle, as in "arrows 45 170 400 250"."""
    for old in (FOLDER / "way").glob("*.svg"):
        if old.stem not in pictures:
            old.unlink()
    for name, told in pictures.items():
        explorer, *rectangle = told.split()
        still = (STILLS / f"{explorer}.svg").read_text(encoding="utf-8")
        write_whole(FOLDER / "way" / f"{name}.svg", cut(still, *map(float, rectangle)))
    return FOLDER
