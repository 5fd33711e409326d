"""Tests of the laboratory's text. They check which files are read, and how files used to be divided into parts by a
hash of their names.

The tests make a small folder instead of using the real library, so they don't depend on the version of Python that runs
them.
"""

import hashlib
import re
import sysconfig

import numpy as np
import pytest

from ropebook.lab import by_name, data
from tests.helpers import library

TRAIN, HELD_OUT = "a/shown.py", "a/asked_8.py"  # the SHA-256 hashes of these names begin with the bytes 114 and 2


def first_byte(name):
    return hashlib.sha256(name.encode()).digest()[0]


# --- the library ---


def test_the_two_names_stand_on_the_two_sides():
    assert (first_byte(TRAIN), first_byte(HELD_OUT)) == (114, 2)
    assert first_byte(HELD_OUT) < by_name.HELD_OUT <= first_byte(TRAIN)


def test_every_file_ends_with_a_zero_byte(tmp_path):
    train, held_out = by_name.load(
        library(tmp_path, {TRAIN: b"one\n", HELD_OUT: b"two", "b/shown.py": b"", "c/shown.py": b"\n"})
    )
    assert first_byte("b/shown.py") >= by_name.HELD_OUT <= first_byte("c/shown.py")
    assert bytes(train) == b"one\n\0\0\n\0"
    assert {name: bytes(text) for name, text in held_out.items()} == {HELD_OUT: b"two\0"}
    assert train.dtype == held_out[HELD_OUT].dtype == np.uint8


def test_only_printable_ascii_and_white_space_stay(tmp_path):
    content = bytes(range(256))
    train, held_out = by_name.load(library(tmp_path, {TRAIN: content, HELD_OUT: "Größe θ".encode()}))
    kept = "\t\n\f\r" + "".join(map(chr, range(32, 127)))
    expected = "".join(chr(byte) if chr(byte) in kept else "?" for byte in content)
    assert bytes(train).decode("ascii") == expected + "\0"
    assert bytes(held_out[HELD_OUT]) == b"Gr????e ??\0"


def test_no_byte_of_the_text_is_one_of_the_task(tmp_path):
    train, _ = by_name.load(library(tmp_path, {TRAIN: bytes(range(256)), HELD_OUT: b""}))
    task = {data.QUERY + key for key in range(data.KEYS)} | {data.RECORD + n for n in range(data.KEYS * data.VALUES)}
    assert len(task) == 8 + 64
    assert max(task) < data.VOCABULARY
    assert data.END not in task
    assert not task & set(train.tolist())


LEFT_OUT = [
    "site-packages/x.py",
    "dist-packages/x.py",
    "a/site-packages/b/x.py",
    "test/x.py",
    "tests/x.py",
    "json/tests/x.py",
    "_sysconfigdata__linux.py",
    "a/_sysconfigdata_x.py",
    "a/x.txt",
    "a/x.pyc",
    "a/x",
]
READ = ["testing.py", "test.py", "a/tests.py", "my-site-packages/x.py", "my_tests/x.py", "x_sysconfigdata.py"]


def test_some_folders_and_files_are_left_out(tmp_path):
    sides = {TRAIN: b"train", HELD_OUT: b"held"}
    others = {name: f"<{name}>".encode() for name in LEFT_OUT + READ}
    train, held_out = by_name.load(library(tmp_path, {**sides, **others}))
    text = b"".join([bytes(train), *map(bytes, held_out.values())])
    assert {name for name in others if b"<%s>" % name.encode() in text} == set(READ)


def test_the_filter_looks_at_the_relative_path_alone(tmp_path):
    here = library(tmp_path / "tests" / "site-packages", {TRAIN: b"train", HELD_OUT: b"held"})
    assert bytes(by_name.load(here)[0]) == b"train\0"


def test_the_side_follows_from_the_path_and_not_from_the_content(tmp_path):
    names = [f"folder/module_{i}.py" for i in range(200)]
    expected = {name for name in names if first_byte(name) < 26}
    assert 10 <= len(expected) <= 35  # about one in ten names
    for run, content in enumerate([b"x = 1\n", b"something else entirely\n"]):
        train, held_out = by_name.load(library(tmp_path / str(run), dict.fromkeys(names, content)))
        assert held_out.keys() == expected
        assert len(train) == (200 - len(expected)) * (len(content) + 1)


def test_files_come_in_the_order_of_their_paths(tmp_path):
    names = sorted(name for name in (f"{folder}/m{i}.py" for folder in "zBa_" for i in (10, 9)))
    content = {name: b"<%s>" % name.encode() for name in names}
    train, held_out = by_name.load(library(tmp_path, {**content, HELD_OUT: b""}))
    shown = [name for name in names if name not in held_out]
    assert len(shown) > 5
    assert bytes(train) == b"".join(content[name] + b"\0" for name in shown)


def test_by_default_it_is_the_library_of_this_python(monkeypatch, tmp_path):
    library(tmp_path, {TRAIN: b"mine", HELD_OUT: b"too"})
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    assert bytes(by_name.load()[0]) == bytes(by_name.load(str(tmp_path))[0]) == b"mine\0"


@pytest.mark.parametrize(
    "files, found",
    [({}, "0 and 0"), ({TRAIN: b"x"}, "1 and 0"), ({HELD_OUT: b"x"}, "0 and 1"), ({"test/a.py": b"x"}, "0 and 0")],
    ids=["empty", "none held out", "none to train on", "tests only"],
)
def test_a_folder_without_both_sides_is_refused(tmp_path, files, found):
    message = f"root must hold .py files to train on and others to hold out, got {found} in {tmp_path}"
    with pytest.raises(FileNotFoundError, match=re.escape(message)):
        by_name.load(library(tmp_path, files))


@pytest.mark.parametrize("what", ["missing", "a file"])
def test_what_is_no_folder_is_refused(tmp_path, what):
    path = tmp_path / "python313.zip"
    if what == "a file":
        path.write_bytes(b"PK")
    with pytest.raises(FileNotFoundError, match=re.escape(f"root must be a folder of Python sources, got {path}")):
        by_name.load(path)
