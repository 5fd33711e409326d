"""The book's fonts: one for text and one for code, each complemented by a second font for mathematical signs that it
lacks.

They are open fonts from npm. They are reduced to the characters below, which keeps them at about 60 kB; the build fails
if a page uses any other character. Literata and JetBrains Mono may keep their names when reduced, because they are
under the SIL Open Font License without a reserved name. The signs come from DejaVu and are given another name. The
licences are in the same folder.
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
SIGNS = "√ᵀᴴ→←↑↓↔↦⇐⇒⇔∂∇∈∉∑∏∞≈≠≡≤≥∝⊗⊙⊕⌈⌉⌊⌋⟨⟩‖⋅∘⁰⁴⁵⁶⁷⁸⁹⁺⁻ⁿ₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₘₙᵣʲ⎡⎤⎢⎥⎣⎦│─└├┌┐┘✓✗○"
# These system fonts are used until Literata has loaded. Literata is wider: measured by the mean advance in English
# text, it is 1.188 times as wide as Times and 1.068 times as wide as Georgia.
SUBSTITUTES = """\
@font-face { font-family: "Book Georgia"; src: local("Georgia"); size-adjust: 106.8%; }
@font-face { font-family: "Book Times"; src: local("Times New Roman"), local("Liberation Serif"); size-adjust: 118.8%; }
"""
FEATURES = ["kern", "liga", "tnum", "lnum"]


@dataclass(frozen=True)
class Face:
    """One of the book's fonts: its name in style sheets, and the files from which it is made. Each character is taken
    from the first file that has it."""

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


def _signs(name: str, family: str, *fonts: str) -> Face:
    files = tuple(f"dejavu-fonts-ttf/ttf/{font}.ttf" for font in fonts)
    return Face(name, family, files, "dejavu-fonts-ttf/LICENSE", SIGNS)


FACES = (
    _fontsource("literata", "Literata", 400),
    _fontsource("literata", "Literata", 400, "italic"),
    _fontsource("literata", "Literata", 600),
    _fontsource("jetbrains-mono", "JetBrains Mono", 400),
    _signs("signs", "Book Signs", "DejaVuSerif", "DejaVuSans"),  # only the second has a tick and a cross
    _signs("signs-mono", "Book Signs Mono", "DejaVuSansMono"),
)


def ensure() -> Path:
    """Create the reduced fonts if they are missing or outdated, and return their folder. It contains ``fonts.css``, the
    fonts and their licences."""
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
    """Return the font reduced to its `characters`. Raises ``ValueError`` if its files lack one of them."""
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
    """Return a style sheet with one ``@font-face`` per font, and with system fonts scaled to the size of Literata.

    If a font arrives late, the page keeps the system font, because a swap would change the line breaks and move the
    text while it is being read. The next page then uses the book's font.
    """
    return SUBSTITUTES + "".join(
        f'@font-face {{ font-family: "{face.family}"; font-style: {face.style}; font-weight: {face.weight}; '
        f'font-display: optional; src: url("fonts/{face.name}.woff2") format("woff2"); }}\n'
        for face in FACES
    )


def from_disk(folder: Path) -> str:
    """Return a style sheet that contains the fonts themselves, for pages that are opened from disk.

    When a page is opened from disk, font files always arrive after its first paint, so no page would ever use them.
    Fonts inside a style sheet arrive in time. The variables override the font families that `theme.css` names.
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
    """Parser that collects the characters in a page's text. It skips formulas and drawings, which use other fonts, and
    scripts, which aren't shown."""

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
    """Return the characters in these pages that none of the fonts has. White space and invisible characters don't
    count.

    >>> sorted(missing(["<p>θ and Δ, m − n, x′, ж</p>", "<script>ы</script>"]))
    ['ж']
    """
    said: set[str] = set()
    for page in pages:
        parser = _Texts()
        parser.feed(page)
        said |= parser.said
    return {one for one in said if not one.isspace() and one.isprintable()} - set(LETTERS) - set(SIGNS)
