"""Tests of the drawing on the front page. Python draws it for pages without a script, and JavaScript redraws it when a
reader drags."""

from __future__ import annotations

import json
import subprocess
import sys

from tools import assets
from tools.paths import BOOK

sys.path.insert(0, str(BOOK / "_ext"))
import front

from tests.together import together


def in_script(expression: str) -> object:
    script = (BOOK / "_static" / "front.js").read_text(encoding="utf-8")
    program = f"{script}\nconsole.log(JSON.stringify({expression}));"
    return json.loads(subprocess.run([assets.node(), "-e", program], capture_output=True, text=True, check=True).stdout)


def test_both_draw_the_same_sector_and_say_the_same_angle():
    cases = [(begin, end) for begin in (0, 30, 350, 720) for end in (0, 90, 200, 340, 1000)]
    listed = json.dumps(cases)
    assert in_script(f"{listed}.map(([a, b]) => front.sector(a, b).replaceAll('-0.0', '0.0'))") == [
        front.sector(*case) for case in cases
    ]
    assert in_script(f"{listed}.map(([a, b]) => front.between(b - a))") == [
        front.between(1, end, begin) for begin, end in cases
    ]


@together(("at", "query", "key"), [(5, 5, 1), (1, 5, 1), (7, 7, 1), (0, 5, 0), (2, 5, 2), (4, 4, 1), (3, 3, 1)])
def test_the_nearer_word_gives_way(at, query, key):
    assert in_script(f"front.chosen({{ query: 5, key: 1 }}, {at})") == {"query": query, "key": key}


def test_the_drawing_names_the_words_and_their_angle():
    drawn = front.drawing(["a", "<b>", "c"], 2, 0, 100.0, start=3)
    assert "The arrows of c and a, 160 degrees apart." in drawn
    assert "&lt;b&gt;" in drawn
    assert [f"rotate(-{k}deg)" in drawn for k in (300, 400, 500)] == [True] * 3
