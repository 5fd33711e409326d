"""Draw the picture that represents the book in shared links and in the README. It shows the front page's sentence with
its arrows.

    python -m tools.preview

The picture shows the `{front}` block of `book/intro.md`. It is redrawn only when that block, the colours or this file
change, because another version of matplotlib would produce a slightly different file.
"""

from __future__ import annotations

import hashlib
import math
import re
import tempfile
from dataclasses import dataclass
from pathlib import Path

from PIL import Image

from ropebook import colours
from tools import fonts
from tools.paths import BOOK, ROOT

PICTURE = ROOT / "docs" / "book.png"
SIZE = (1200, 630)  # pixels: the size that sites ask for to preview a link
STAMP = "made-from"
BLOCK = re.compile(r"```\{front\} (.+)\n:query: (.+)\n:key: (.+)\n:degrees: (.+)\n")
TITLE = "RoPE, Turn by Turn"
ALT = "A sentence of eight tokens, each with an arrow turned by its position; it and cat are in colour."
LINE = "How a language model knows where a token is, and why that breaks"


@dataclass(frozen=True)
class Sentence:
    tokens: list[str]
    query: int
    key: int
    degrees: float


def sentence(page: str) -> Sentence:
    """Return the contents of the front page's block. Raises ValueError if the page has none.

    >>> sentence("```{front} the cat\\n:query: cat\\n:key: the\\n:degrees: 30\\n```")
    Sentence(tokens=['the', 'cat'], query=1, key=0, degrees=30.0)
    """
    found = BLOCK.search(page)
    if found is None:
        raise ValueError("the front page has no {front} block with query, key and degrees, in this order")
    tokens = found[1].split()
    return Sentence(tokens, tokens.index(found[2]), tokens.index(found[3]), float(found[4]))


def made_from() -> str:
    block = BLOCK.search((BOOK / "intro.md").read_text(encoding="utf-8"))
    text = (block[0] if block else "") + repr(colours.PALETTE)
    return hashlib.sha256(text.encode() + Path(__file__).read_bytes()).hexdigest()


def is_current() -> bool:
    if not PICTURE.exists():
        return False
    with Image.open(PICTURE) as picture:
        return picture.info.get(STAMP) == made_from()


def write() -> bool:
    """Draw the picture if it is out of date, and return whether it was drawn."""
    if is_current():
        return False
    told = sentence((BOOK / "intro.md").read_text(encoding="utf-8"))
    draw(told, PICTURE, {STAMP: made_from()})
    return True


def draw(told: Sentence, place: Path, metadata: dict[str, str]) -> None:
    """Draw the sentence below the book's title, and save it as a file with this metadata."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib.figure import Figure

    paper = colours.PALETTE["paper"][colours.LIGHT]
    figure = Figure(figsize=(SIZE[0] / 100, SIZE[1] / 100), dpi=100, facecolor=paper)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, SIZE[0]), ylim=(SIZE[1], 0))
    axes.axis("off")
    with tempfile.TemporaryDirectory() as folder:
        regular, bold = (_face(Path(folder), weight) for weight in (400, 600))
        ink, muted = (colours.PALETTE[name][colours.LIGHT] for name in ("ink", "muted"))
        axes.text(70, 130, TITLE, font=bold, fontsize=52, color=ink, va="baseline")
        axes.text(72, 200, LINE, font=regular, fontsize=23, color=muted, va="baseline")
        step = (SIZE[0] - 140) / len(told.tokens)
        for k, token in enumerate(told.tokens):
            name = {told.query: "3", told.key: "4"}.get(k)
            colour = colours.PALETTE[name or "muted"][colours.LIGHT]
            x = 70 + step * (k + 0.5)
            _dial(axes, x, 355, told.degrees * k, colour, thick=bool(name))
            face = bold if name else regular
            axes.text(x, 468, token, font=face, fontsize=25, color=colour if name else ink, ha="center")
            axes.text(x, 508, str(k), font=regular, fontsize=17, color=muted, ha="center")
        axes.plot([70, SIZE[0] - 70], [535, 535], color=colours.PALETTE["muted"][colours.LIGHT], linewidth=1)
        figure.savefig(place, dpi=100, metadata={"Software": None, **metadata})


def _face(folder: Path, weight: int) -> Path:
    """Save the text font as a file that matplotlib can read, and return its path."""
    face = next(one for one in fonts.FACES if (one.family, one.weight, one.style) == ("Literata", weight, "normal"))
    font = fonts.cut(face)
    font.flavor = None
    font.save(folder / f"{weight}.ttf")
    return folder / f"{weight}.ttf"


def _dial(axes: object, x: float, y: float, degrees: float, colour: str, thick: bool) -> None:
    """Draw a circle and, inside it, an arrow that points `degrees` counter-clockwise from the right."""
    from matplotlib.patches import Circle, FancyArrowPatch

    grid, radius = colours.PALETTE["grid"][colours.LIGHT], 52
    axes.add_patch(Circle((x, y), radius, fill=False, edgecolor=grid, linewidth=1.5))
    turn = math.radians(degrees)
    tip = (x + radius * 0.92 * math.cos(turn), y - radius * 0.92 * math.sin(turn))
    axes.add_patch(
        FancyArrowPatch((x, y), tip, arrowstyle="->,head_length=8,head_width=5.5", shrinkA=0, shrinkB=0,
                        color=colour, linewidth=4.4 if thick else 3, capstyle="round")
    )  # fmt: skip


if __name__ == "__main__":
    print(f"{PICTURE.relative_to(ROOT)} {'was drawn' if write() else 'is current'}.")
