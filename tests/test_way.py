"""Tests of the map of the book. It must contain every chapter and know which chapter comes next, and its reading times
must be counted as readers would count them."""

from __future__ import annotations

import re
import sys

import pytest
import yaml
from bs4 import BeautifulSoup

from tools import minutes, thumbnails
from tools.paths import BOOK, ROOT, pages

sys.path.insert(0, str(BOOK / "_ext"))
import way

from tests.together import together

WAY = way.read()


def test_it_has_every_chapter_in_the_books_order():
    parts = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))["parts"]
    listed = [chapter["file"] for part in parts if part["caption"] != "Reference" for chapter in part["chapters"]]
    assert ["book/intro", *listed] == [f"book/{one.page}" for one in WAY.chapters]
    for one in (*WAY.chapters, *WAY.practice):
        assert (BOOK / f"{one.page}.md").exists(), one
    assert len({one.page for one in WAY.practice}) == 6


def test_every_page_ends_in_the_same_order():
    """Exercises come first, then the summary, then further reading. Other sections come before them."""
    end = ["Exercises", "Summary", "Further reading"]
    for path in pages():
        titles = re.findall(r"^## (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        last = [title for title in end if title in titles]
        assert titles[len(titles) - len(last) :] == last, path.name


def test_the_story_breaks_right_after_the_first_page_and_leads_to_the_practitioners():
    page, read = "intro", []
    while (following := WAY.after(page)) is not None:
        read.append(page := following.page)
    assert read[0] == "lab_reading"
    assert read[-1] == way.LAST
    assert read == [one.page for one in WAY.story][1:]


def test_a_weekend_is_the_story_and_then_a_model_of_ones_own():
    read = [page for day in WAY.weekend for page in day["pages"]]
    assert read == [*(one.page for one in WAY.story), "extend"]


def parsed(html: str) -> BeautifulSoup:
    return BeautifulSoup(html, "html.parser")


def test_a_chapter_ends_with_where_one_is_and_what_comes_next():
    page = parsed(way.end_map(WAY, "derivation"))
    assert page.select_one("[aria-current=page]")["href"] == "derivation.html"
    assert page.select_one(".way-here .way-mark").text == "you are here"
    assert page.select_one(".way-next a")["href"] == page.select_one(".way-first a")["href"] == "efficient.html"
    optional = [
        item.a["href"] for item in page.select("ol > li") if item.select_one(".way-mark:-soup-contains(optional)")
    ]
    assert optional == [f"{one.page}.html" for one in WAY.chapters if one.optional]


@together(
    ("here", "said"),
    [
        ("attention", "Next chapter: Sinusoidal positions"),
        ("complex_plane", "Back to the story: Implementing RoPE"),
        ("relatives", "Next chapter: Beyond the line"),
        ("extrapolation", "That was the story. The rest is optional."),
    ],
)
def test_what_comes_first_at_a_chapters_end(here, said):
    assert parsed(way.end_map(WAY, here)).select_one(".way-first").text.startswith(said)


def test_the_pages_for_practitioners_are_one_click_away():
    wanted = {f"{one.page}.html" for one in WAY.practice}
    for map_ in (way.front_map(WAY), way.end_map(WAY, "extrapolation")):
        assert {link["href"] for link in parsed(map_).select(".way-practice a")} == wanted
    assert not parsed(way.end_map(WAY, "attention")).select(".way-practice")


def test_the_contents_mark_the_story_once_however_often_they_are_asked():
    links = {"lab": ("l1", "10. Measured"), "#": ("l1", "1"), "glossary": ("l1", "Glossary"), "decay": ("l2", "x")}
    listed = parsed(
        "".join(f'<li class="toctree-{k}"><a href="{to}">{text}</a></li>' for to, (k, text) in links.items())
    )
    for _ in range(2):
        way.mark(listed, WAY, "attention")
    looks = [" ".join(item["class"]) for item in listed.select("li")]
    assert looks == ["toctree-l1 way-optional", "toctree-l1 way-story", "toctree-l1", "toctree-l2"]
    assert [link.text for link in listed.select("a")] == ["10. Measured optional", "1", "Glossary", "x"]


# -- minutes ----------------------------------------------------------------------------------------------------------

WORDS = "word " * 200
COUNTED = {
    f"<p>{WORDS}</p>": 1,
    f"<table><tr><td>{WORDS}</td></tr></table>": 1,
    '<div class="math notranslate">x</div>': 1 / 3,
    '<figure><svg><path d=""/></svg></figure>': 2 / 3,
    f'<div class="cell"><div class="cell_input"><pre>{WORDS}</pre></div></div>': 1 / 4,
    f'<div class="cell tag_hide-input"><div class="cell_input"><pre>{WORDS}</pre></div></div>': 0,
    f'<div class="cell tag_hide-input"><div class="cell_output"><div class="explorer">{WORDS}</div></div></div>': 2 / 3,
    f'<details><summary>a</summary>{WORDS}<div class="cell_input"></div></details>': 0,
    f'<section id="exercises">{WORDS}<div class="math">x</div></section>': 0,
    f'<nav class="way">{WORDS}<img src="x"/></nav>': 0,
    f"<pre>{WORDS}</pre><script>{WORDS}</script>": 0,
}


@together("part", COUNTED, ids=range(len(COUNTED)))
def test_what_a_reader_reads_is_counted(part):
    assert minutes.of(f"<body>{WORDS}<article>{part}</article>{WORDS}</body>") == pytest.approx(COUNTED[part])


def test_minutes_are_filled_in_and_again_when_they_change(tmp_path):
    (tmp_path / "a.html").write_text(f"<article>{WORDS * 3}</article><p>{minutes.place('a', 'b')} min</p>")
    (tmp_path / "b.html").write_text(f"<article>{WORDS * 2}</article>")
    minutes.fill(tmp_path)
    assert ">5</span> min" in (tmp_path / "a.html").read_text()
    (tmp_path / "b.html").write_text(f"<article>{WORDS * 4}</article>")
    minutes.fill(tmp_path)
    assert ">7</span> min" in (tmp_path / "a.html").read_text()


# -- thumbnails -------------------------------------------------------------------------------------------------------


def test_each_chapter_has_a_light_picture_without_words():
    folder = thumbnails.ensure({one.page: one.picture for one in WAY.chapters}) / way.FOLDER
    pictures = {path.stem: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert set(pictures) == {one.page for one in WAY.chapters}
    for name, picture in pictures.items():
        assert "<text" not in picture, name
        assert len(picture) < 40_000, name
    assert sum(map(len, pictures.values())) < 250_000


def test_a_picture_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="a thumbnail is 160 to 100, got 300 to 100"):
        thumbnails.cut("<svg></svg>", 0, 0, 300, 100)
