"""Test that the book's fonts contain only the characters that the book uses, that they are small, and that their
licences are included."""

from __future__ import annotations

import pytest
from fontTools.ttLib import TTFont

from tools import fonts


@pytest.fixture(scope="module")
def folder():
    return fonts.ensure()


@pytest.mark.parametrize("face", fonts.FACES, ids=lambda face: face.name)
def test_a_face_has_its_letters_and_its_licence(folder, face):
    font = TTFont(folder / "fonts" / f"{face.name}.woff2")
    assert {*map(chr, font.getBestCmap())} >= set(face.characters)
    licence = (folder / "fonts" / f"{face.name}.LICENCE.txt").read_text(encoding="utf-8")
    assert "SIL Open Font License" in licence or "Bitstream Vera" in licence
    if "Bitstream Vera" in licence:  # this licence doesn't allow a modified font to keep the original's name
        assert not any(
            "Vera" in str(record) or "DejaVu" in str(record)
            for record in font["name"].names
            if record.nameID in (1, 4, 6)
        )


def test_all_of_them_are_small(folder):
    sizes = [path.stat().st_size for path in (folder / "fonts").glob("*.woff2")]
    assert len(sizes) == len(fonts.FACES)
    assert sum(sizes) < 72_000


def test_what_the_book_needs_has_a_letter():
    assert fonts.missing(["<p>θ Δ − ′ √ → ⁻¹ ₘ ⟨q, k⟩ λᵢ ≤ ≥ · × ½ é</p>"]) == set()
    assert fonts.missing(["<p>5 € and ж</p>"]) == {"€", "ж"}


def test_formulas_drawings_and_scripts_have_letters_of_their_own():
    page = '<span class="katex"><span>∰</span></span><svg><text>∰</text></svg><script>"∰"</script><br><p>∮</p>'
    assert fonts.missing([page]) == {"∮"}


def test_a_letter_that_no_file_has_is_named():
    face = fonts.FACES[-1]
    with pytest.raises(ValueError, match="signs-mono has no letter for ж"):
        fonts.cut(
            fonts.Face(face.name, face.family, ("@fontsource/literata/files/literata-latin-400-normal.woff",), "", "aж")
        )
