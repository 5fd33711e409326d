"""Test that the picture for shared links and for the README shows the front page's sentence and is up to date."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image

from ropebook import colours
from tools import preview
from tools.paths import BOOK, ROOT


def colour(name: str) -> list[int]:
    return list(bytes.fromhex(colours.PALETTE[name][colours.LIGHT][1:]))


def test_it_is_made_from_the_front_page_as_it_is():
    assert preview.is_current(), "python -m tools.preview draws it"
    with Image.open(preview.PICTURE) as picture:
        assert picture.size == preview.SIZE
    assert preview.PICTURE.stat().st_size < 120_000
    assert f"]({preview.PICTURE.relative_to(ROOT)})" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_two_words_have_their_colours_and_nothing_is_cut_off(tmp_path):
    told = preview.sentence((BOOK / "intro.md").read_text(encoding="utf-8"))
    preview.draw(told, tmp_path / "drawn.png", {})
    with Image.open(tmp_path / "drawn.png") as picture:
        drawn = np.asarray(picture.convert("RGB"))
    step = (preview.SIZE[0] - 140) / len(told.tokens)
    for k, name in ((told.query, "3"), (told.key, "4")):
        column = drawn[300:480, int(70 + step * k) : int(70 + step * (k + 1))]
        assert (column == colour(name)).all(-1).sum() > 200, name
    assert (drawn[:, :40] == colour("paper")).all()
    assert (drawn[:, -40:] == colour("paper")).all()


@pytest.mark.parametrize("page", ["", "```{front} the cat\n:key: the\n:query: cat\n:degrees: 30\n```"])
def test_a_page_without_the_sentence_is_refused(page):
    with pytest.raises(ValueError, match=r"no \{front\} block with query, key and degrees, in this order"):
        preview.sentence(page)
