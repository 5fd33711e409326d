"""The book's fonts: one for text and one for code, each with a second font for the mathematical signs that it lacks.

They are open fonts from npm, reduced to the characters below, which keeps them at about 60 kB. The build fails if a
page uses any other character. Literata and JetBrains Mono may keep their names when reduced (SIL Open Font License, no
reserved name). The signs are DejaVu's, under a different name. The licences are in the same folder.
"""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from html.parser import HTMLParser
from pathlib import Path

from fontTools import merge, subset
from fontTools.ttLib import TTFont

from tools.paths import BUILD, ROOT, write_whole

MODULES = ROOT / "node_modules"
FOLDER = BUILD / "fonts"
STYLE = "fonts.css"
FROM_DISK = "faces.css"
LETTERS = "".join(map(chr, range(32, 127))) + (
    "\u00a0©°±²³µ·¹¼½¾×áäåçèéêëíïñóöøúüčćłŁśšžæßΓΔΘΛΞΠΣΦΨΩαβγδεζηθικλμνξπρστυφχψω–—‘’“”†•…′″ℓ−"
)
SIGNS = "√ᵀᴴ→←↑↓↔↦⇐⇒⇔∂∇∈∉∑∏∞≈≠≡≤≥∝⊗⊙⊕⌈⌉⌊⌋⟨⟩‖⋅∘⁰⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₘₙᵣʲ⎡⎤⎢⎥⎣⎦│─└├┌┐┘"
# These are used until Literata has loaded. Literata is wider: by the mean advance of English text, it is 1.188 times as
# wide as Times and 1.068 times as wide as Georgia.
SUBSTITUTES = """\
@font-face { font-family: "Book Georgia"; src: local("Georgia"); size-adjust: 106.8%; }
@font-face { font-family: "Book Times"; src: local("Times New Roman"), local("Liberation Serif"); size-adjust: 118.8%; }
"""
FEATURES = ["kern", "liga", "tnum", "lnum"]


@dataclass(frozen=True)
class Face:
    """One font: its name in style sheets, and the files it is made from. A character comes from the first file that has
    it."""

    name: str
    family: str
    files: tuple[str, ...]
    licence: str
    characters: str
    weight: int = 400
    style: str = "normal"


def _fontsource(name: str, family: str, weight: int, style: str = "normal") -> Face:
    files = tuple(
        f"@fontsource/{name}/files/{name}-{part}-{weight}-{style}.woff" for part in ("latin", "greek", "latin-ext")
    )
    return Face(f"{name}-{weight}-{style}", family, files, f"@fontsource/{name}/LICENSE", LETTERS, weight, style)


def _signs(name: str, family: str, file: str) -> Face:
    return Face(name, family, (f"dejavu-fonts-ttf/ttf/{file}.ttf",), "dejavu-fonts-ttf/LICENSE", SIGNS)


FACES = (
    _fontsource("literata", "Literata", 400),
    _fontsource("literata", "Literata", 400, "italic"),
    _fontsource("literata", "Literata", 600),
    _fontsource("jetbrains-mono", "JetBrains Mono", 400),
    _signs("signs", "Book Signs", "DejaVuSerif"),
    _signs("signs-mono", "Book Signs Mono", "DejaVuSansMono"),
)


def ensure() -> Path:
    """Make the reduced fonts if necessary, and return their folder. It contains ``fonts.css``, the fonts and their
    licences."""
    sources = [Path(__file__), *(MODULES / file for face in FACES for file in face.files)]
    made_from = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = FOLDER / ".made-from"
    if not stamp.exists() or stamp.read_text() != made_from:
        shutil.rmtree(FOLDER, ignore_errors=True)
        (FOLDER / "fonts").mkdir(parents=True)
        for face in FACES:
            cut(face).save(FOLDER / "fonts" / f"{face.name}.woff2")
            shutil.copy(MODULES / face.licence, FOLDER / "fonts" / f"{face.name}.LICENCE.txt")
        write_whole(FOLDER / STYLE, style_sheet())
        write_whole(FOLDER / FROM_DISK, from_disk(FOLDER / "fonts"))
        write_whole(stamp, made_from)
    return FOLDER


def cut(face: Face) -> TTFont:
    """The font with only its `characters`. Raises ``ValueError`` if its files lack one."""
    options = subset.Options(layout_features=FEATURES, hinting=False, notdef_outline=True, glyph_names=False)
    options.drop_tables += ["FFTM"]
    wanted, parts = set(map(ord, face.characters)), []
    with tempfile.TemporaryDirectory() as folder:
        for file in face.files:
            font = subset.load_font(str(MODULES / file), options)
            found = wanted & set(font.getBestCmap())
            wanted -= found
            if found:
                cutter = subset.Subsetter(options)
                cutter.populate(unicodes=found)
                cutter.subset(font)
                font.flavor = None
                parts.append(Path(folder) / f"{len(parts)}.ttf")
                font.save(parts[-1])
        if wanted:
            raise ValueError(f"{face.name} has no letter for {' '.join(map(chr, sorted(wanted)))}")
        whole = merge.Merger().merge([str(part) for part in parts]) if len(parts) > 1 else TTFont(parts[0])
        if face.family.startswith("Book"):
            for record in whole["name"].names:
                if record.nameID in (1, 4, 6):
                    record.string = face.family.replace(" ", "") if record.nameID == 6 else face.family
        whole.flavor = "woff2"
        return whole


def style_sheet() -> str:
    """A style sheet with one ``@font-face`` for each file, and with system fonts scaled to its size.

    If a font arrives late, the page keeps the system's font, because swapping it would change the line breaks and move
    the text that is being read. The next page uses the book's font.
    """
    return SUBSTITUTES + "".join(
        f'@font-face {{ font-family: "{face.family}"; font-style: {face.style}; font-weight: {face.weight}; '
        f'font-display: optional; src: url("fonts/{face.name}.woff2") format("woff2"); }}\n'
        for face in FACES
    )


def from_disk(folder: Path) -> str:
    """A style sheet that contains the fonts themselves, for pages that are opened from disk.

    From disk, a font's file arrives after the first paint on every page, so no page would ever use it. Fonts in a style
    sheet arrive in time. The variables replace the families that `theme.css` names otherwise.
    """
    rules = [
        f'@font-face {{ font-family: "{face.family} on disk"; font-style: {face.style}; font-weight: {face.weight}; '
        f'font-display: block; src: url("data:font/woff2;base64,{_encoded(folder / face.name)}") format("woff2"); }}'
        for face in FACES
    ]
    return "\n".join([*rules, f":root {{ {VARIABLES} }}\n"])


VARIABLES = (
    '--book-faces: "Literata on disk", "Book Signs on disk"; '
    '--book-faces-mono: "JetBrains Mono on disk", "Book Signs Mono on disk"'
)


def _encoded(path: Path) -> str:
    return base64.b64encode(path.with_suffix(".woff2").read_bytes()).decode()


class _Texts(HTMLParser):
    """The text of a page, without formulas, drawings and scripts, which have other fonts."""

    SILENT = frozenset({"script", "style", "svg", "template", "title"})
    VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr", "source", "col"})

    def __init__(self) -> None:
        super().__init__()
        self.open: list[bool] = []
        self.said: set[str] = set()

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag not in self.VOID:
            look = dict(attributes).get("class") or ""
            self.open.append(tag in self.SILENT or "katex" in re.split(r"\s+", look))

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.VOID and self.open:
            self.open.pop()

    def handle_data(self, text: str) -> None:
        if not any(self.open):
            self.said |= set(text)


def missing(pages: Iterable[str]) -> set[str]:
    """The characters in these pages that no font has. White space and invisible characters don't count.

    >>> sorted(missing(["<p>θ and Δ, m − n, x′, ж</p>", "<script>ы</script>"]))
    ['ж']
    """
    said: set[str] = set()
    for page in pages:
        parser = _Texts()
        parser.feed(page)
        said |= parser.said
    return {one for one in said if not one.isspace() and one.isprintable()} - set(LETTERS) - set(SIGNS)
