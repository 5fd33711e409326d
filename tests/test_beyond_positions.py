"""Tests of the page on what a position can be. Its links must lead somewhere, and the book's functions must do what the
page says."""

from __future__ import annotations

import re

import pytest

from ropebook import beyond
from tests.cells import cells
from tests.links import lost, prose, text, typed_numbers

PAGE = "beyond_positions.md"
# Numbers in the questions, and numbers that an example merely assumes.
GIVEN = {"0", "1", "2", "3", "4", "5", "13", "14", "20", "24", "27", "28", "32", "64", "100", "1,024", "1970", "0.01"}


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_each_question_has_its_number():
    """Check that each section contains a cell that computes something."""
    sections = re.split(r"^## ", text(PAGE), flags=re.MULTILINE)[1:-1]
    assert len(sections) == 11
    for section in sections:
        assert section.splitlines()[0].endswith("?")
        assert re.search(r"^(?:table|print|    print)\(", section, re.MULTILINE), section.splitlines()[0]


def test_no_result_is_typed():
    assert set(typed_numbers(prose(PAGE))) - GIVEN == set()


@pytest.fixture(scope="module")
def ran():
    names: dict = {}
    for cell in cells(PAGE):
        exec(cell, names)
    return names


def test_moving_is_free_and_turning_is_not(ran):
    assert ran["change"][0] < 1e-12 < 0.1 < ran["change"][1]


def test_an_image_takes_its_longer_side(ran):
    ids = beyond.position_ids([10, beyond.Grid(frames=1, rows=32, columns=32), 10])
    assert (ids[-10, 0] - ids[9, 0]).item() == 33 == ran["after"] - ran["before"]
