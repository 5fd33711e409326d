"""Tests of the text in three parts: which files are read, to which part each file belongs, and that the parts have
almost nothing in common.

Most tests apply the rules to a small folder made for the test. The last tests check, with the standard library of the
Python that runs them, whether the rules achieve their purpose.
"""

import hashlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import parts as P
from tests.helpers import library

UNITS = {part: [] for part in P.PARTS}
for number in range(60):
    UNITS[P.part_of(f"unit{number}/a.py")].append(f"unit{number}")


def prose(seed, length=400):
    return bytes(np.random.default_rng(seed).integers(32, 127, length, np.uint8))


def named(part, at=0, file="a.py"):
    return f"{UNITS[part][at]}/{file}"


@pytest.fixture
def small(tmp_path):
    return library(tmp_path, {named(part): prose(seed) for seed, part in enumerate(P.PARTS)})


# --- common strings ---


def strings(text, length):
    return {text[i : i + length] for i in range(len(text) - length + 1)}


@given(st.binary(max_size=60), st.binary(max_size=60), st.integers(1, 50))
def test_hashes_are_alike_where_strings_are(one, other, length):
    ours = [P.grams(np.frombuffer(text, np.uint8), length) for text in (one, other)]
    theirs = [strings(text, length) for text in (one, other)]
    assert [len(found) for found in ours] == [len(found) for found in theirs]
    assert len(np.intersect1d(*ours)) == len(theirs[0] & theirs[1])


@given(st.lists(st.sampled_from([b"abcabc", b"x" * 9, b"bcab", b""]), max_size=4), st.binary(min_size=5, max_size=40))
def test_the_share_of_a_files_strings(pieces, text):
    known = b"".join(pieces)
    found = P.shares({"f": np.frombuffer(text, np.uint8)}, [P.grams(np.frombuffer(known, np.uint8))])
    assert found == {"f": 0.0}  # all pieces are shorter than the strings to be compared
    text = text * 20
    mine, other = strings(text, P.GRAM), strings(known + text[:70], P.GRAM)
    found = P.shares({"f": np.frombuffer(text, np.uint8)}, [P.grams(np.frombuffer(known + text[:70], np.uint8))])
    assert found["f"] == pytest.approx(len(mine & other) / len(mine))


def test_nothing_known_is_nothing_shared():
    assert P.shares({"f": np.zeros(99, np.uint8)}, []) == {"f": 0.0}


def test_what_is_no_text_is_refused():
    for bad in (np.zeros(9), np.zeros((2, 9), np.uint8)):
        with pytest.raises(ValueError, match=r"text must be uint8 of shape"):
            P.grams(bad)
    with pytest.raises(ValueError, match=r"length must be .*got 0"):
        P.grams(np.zeros(9, np.uint8), 0)


# --- the parts ---


def test_a_folder_stays_together_and_a_lone_file_alone():
    for name in ("json/decoder.py", "json/a/b/c.py"):
        assert P.part_of(name) == P.part_of("json/x.py")
    unit = hashlib.sha256(b"parts/json").digest()[0] % 16
    assert P.part_of("json/x.py") == ("held_out" if unit < 3 else "development" if unit < 5 else "train")
    assert len({P.part_of(f"{letter}.py") for letter in "abcdefghijklmnopqrstuvwxyz"}) == 3


def test_tests_and_tables_are_left_out(small):
    first = P.load(small)
    more = {
        "tests/a.py": prose(9),
        "unittest/test/a.py": prose(9),
        "idlelib/idle_test/a.py": prose(9),
        "x/test_support/a.py": prose(9),
        "test_lone.py": prose(9),
        "encodings/cp865.py": prose(9),
        "pydoc_data/topics.py": prose(9),
        "html/entities.py": prose(9),
        "site-packages/a.py": prose(9),
        "_sysconfigdata_x.py": prose(9),
    }
    second = P.load(library(small, more))
    assert second.sha256 == first.sha256
    third = P.load(library(small, {"html/parser.py": prose(9), "contest/a.py": prose(8), "protest.py": prose(7)}))
    assert third.sha256 != first.sha256


def test_every_file_ends_with_a_zero_byte_and_the_three_parts_have_theirs(small):
    found = P.load(small)
    assert found.train.tobytes() == prose(0) + b"\0"
    assert {name: text.tobytes() for name, text in found.development.items()} == {
        named("development"): prose(1) + b"\0"
    }
    assert found.files("held_out").keys() == {named("held_out")}
    assert found.summary()["train_bytes"] == 401
    with pytest.raises(ValueError, match="part must be one of 'development', 'held_out', got 'train'"):
        found.files("train")


@pytest.mark.parametrize(
    ("copied", "into", "gone"),
    [
        ("train", "development", True),
        ("train", "held_out", True),
        ("development", "held_out", True),
        ("held_out", "held_out", False),  # files in the same part may be similar
        ("development", "development", False),
        ("train", "train", False),
    ],
)
def test_a_file_that_shares_too_much_is_left_out(small, copied, into, gone):
    name = named(into, 1)
    text = prose(P.PARTS.index(copied))[:120] + prose(50, 300)  # 72 of this file's 374 strings of 48 bytes are known
    found = P.load(library(small, {name: text}))
    assert (name in found.left_out) == gone
    if into != "train":
        assert (name in found.files(into)) != gone


def test_a_little_may_be_shared(small):
    name = named("held_out", 1)
    for borrowed, gone in ((66, False), (69, True)):  # 20 and 23 of the file's 420 strings are known
        text = prose(0)[:borrowed] + prose(50, 466 - borrowed)
        assert (name in P.load(library(small, {name: text})).left_out) == gone


def test_the_hash_is_of_names_bytes_and_sides(small, tmp_path_factory):
    first = P.load(small).sha256
    other = tmp_path_factory.mktemp("other")
    assert P.load(library(other, {named(part): prose(seed) for seed, part in enumerate(P.PARTS)})).sha256 == first
    moved = {named(part, file="b.py"): prose(seed) for seed, part in enumerate(P.PARTS)}
    assert P.load(library(tmp_path_factory.mktemp("moved"), moved)).sha256 != first


def test_an_empty_part_is_said(tmp_path):
    with pytest.raises(FileNotFoundError, match="root must be a folder"):
        P.load(tmp_path / "nowhere")
    library(tmp_path, {named("train"): prose(0), named("held_out"): prose(1)})
    with pytest.raises(FileNotFoundError, match="got none for development"):
        P.load(tmp_path)


# --- the library of this Python ---


@pytest.fixture(scope="module")
def real():
    return P.load()


@pytest.fixture(scope="module")
def trained_on(real):
    return P.grams(real.train)


def test_what_is_said_to_be_shared_is_there_by_brute_force(real, trained_on):
    """Take samples of the other parts, and search for them in the training text itself instead of comparing hashes."""
    train = real.train.tobytes()
    files = {**real.development, **real.held_out}
    pieces = [
        text[at : at + P.GRAM]
        for text in list(files.values())[::60]
        for at in list(range(0, len(text) - P.GRAM, 97))[:8]
    ] + [real.train[1000 : 1000 + P.GRAM]]
    found = [piece.tobytes() in train for piece in pieces]
    assert [bool((trained_on == P.grams(piece)[0]).any()) for piece in pieces] == found
    assert len(found) > 20
    assert found[-1]
    assert sum(found[:-1]) <= 0.05 * len(found)


def test_no_file_of_this_python_shares_more_than_a_twentieth(real, trained_on):
    known = [trained_on]
    for part in P.PARTS[1:]:
        assert max(P.shares(real.files(part), known).values()) <= P.SHARED
        known += [P.grams(text) for text in real.files(part).values()]


def test_there_is_enough_of_each_part(real):
    assert len(real.train) > 4_000_000
    for part in P.PARTS[1:]:
        assert sum(len(text) > 2048 for text in real.files(part).values()) >= 30
    names = [*real.development, *real.held_out]
    assert not [name for name in names if "test" in name.split("/")[:-1] or "idle_test" in name]
