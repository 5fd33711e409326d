"""Tests of the first page. Its code must run on its own and agree with transformers, and the integers in its text must
be correct."""

from __future__ import annotations

import re

import pytest
import torch
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

from ropebook import efficient
from tests.helpers import largest, random
from tests.links import ROLE, lost, prose, typed_numbers
from tests.together import together
from tools.paths import BOOK

PAGE = (BOOK / "intro.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def rope():
    """Return the page's function, by running the page's cell unchanged and with nothing else defined."""
    [cell] = re.findall(r"^```\{code-cell\} python\n((?:(?!^```).)*?^def rope\(.*?)^```", PAGE, re.M | re.S)
    names = {}
    exec(cell, names)
    assert "ropebook" not in cell
    return names["rope"]


@together("dim", [2, 8, 64])
@together("base", [10000.0, 5e5])
def test_the_code_to_copy_is_that_of_transformers(rope, dim, base):
    q, positions = random(2, 3, 5, dim), torch.arange(7, 12)
    angles = positions[:, None] * base ** (-torch.arange(0, dim, 2, dtype=torch.float64) / dim)
    angles = torch.cat([angles, angles], dim=-1)[None]
    theirs, _ = apply_rotary_pos_emb(q, q, angles.cos(), angles.sin())
    assert largest(rope(q, positions, base) - theirs) < 1e-14


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_the_code_to_copy_is_that_of_the_book(rope, dtype):
    q, positions = random(1, 2, 6, 16, dtype=dtype), torch.arange(6)
    ours, _ = efficient.RotaryEmbedding(16, layout="half")(q, q)
    assert rope(q, positions).dtype == dtype
    assert largest(rope(q, positions) - ours) < 4 * torch.finfo(dtype).eps * largest(q)


def rows() -> list[list[str]]:
    """Return the cells of each row: two positions, the two rotated vectors and the score."""
    table = PAGE[PAGE.index("| rotated query |") :].split("\n\n")[0].splitlines()[2:]
    cells = re.compile(r"\| at (\d): (.*) \| at (\d): (.*) \| (.*) \|")
    found = [cells.fullmatch(row.replace("−", "-").replace("\N{NO-BREAK SPACE}", " ")).groups() for row in table]
    return [(m, n, q, k, score) for m, q, n, k, score in found]


def turned(arrow: tuple[int, int], quarters: int) -> tuple[int, int]:
    for _ in range(quarters):
        arrow = -arrow[1], arrow[0]
    return arrow


@together("row", rows(), ids=lambda row: f"{row[0]} and {row[1]}")
def test_the_quarter_turns_are_right(row):
    m, n = int(row[0]), int(row[1])
    q, k = turned((3, 1), m), turned((2, 1), n)
    assert (row[2], row[3]) == (str(q), str(k))
    said, score = row[4].replace("·", "*").split(" = ")
    assert eval(said) == int(score) == q[0] * k[0] + q[1] * k[1]


def test_distance_five_looks_like_distance_one():
    scores = [q[0] * 2 + q[1] for q in (turned((3, 1), m) for m in range(6))]
    assert scores[1] == scores[5] == 1
    assert len(rows()) == 3


def test_every_link_lands_and_every_number_is_glued():
    assert lost("intro.md") == []


def test_what_breaks_is_said_in_measured_numbers():
    """New angles are only part of the cause. How large a part they are can be determined only by measuring."""
    [section] = [part for part in prose("intro.md").split("\n## ") if part.startswith("What breaks")]
    assert set(typed_numbers(section)) <= {"4,096", "16,384", "64", "256"}
    measured = {
        key.split(":")[0] for role, name in ROLE.findall(section) for page, _, key in [name.rpartition("::")] if page
    }
    assert {"harm_low", "cured_least", "cured_most"} <= measured
