"""The laboratory's text: which files are read, on which side they stand, and the retrieval task planted in them.

The library is a small folder made here, never the real one, so that nothing depends on the Python that runs the tests.
"""

import hashlib
import platform
import re
import sysconfig
from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import data
from ropebook.lab import first_text as D

TRAIN, HELD_OUT = "a/shown.py", "a/asked_8.py"  # the first bytes of their SHA-256 are 114 and 2
seeds = st.integers(0, 2**32 - 1)


def library(root, files):
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    return root


def corpus_of(text):
    return D.Corpus(np.frombuffer(text, np.uint8), {}, "", "")


def first_byte(name):
    return hashlib.sha256(name.encode()).digest()[0]


# --- the library ---


def test_the_two_names_stand_on_the_two_sides():
    assert (first_byte(TRAIN), first_byte(HELD_OUT)) == (114, 2)
    assert first_byte(HELD_OUT) < D.HELD_OUT <= first_byte(TRAIN)


def test_every_file_ends_with_a_zero_byte(tmp_path):
    corpus = D.load(library(tmp_path, {TRAIN: b"one\n", HELD_OUT: b"two", "b/shown.py": b"", "c/shown.py": b"\n"}))
    assert first_byte("b/shown.py") >= D.HELD_OUT <= first_byte("c/shown.py")
    assert bytes(corpus.train) == b"one\n\0\0\n\0"
    assert {name: bytes(text) for name, text in corpus.held_out.items()} == {HELD_OUT: b"two\0"}
    assert corpus.train.dtype == corpus.held_out[HELD_OUT].dtype == np.uint8
    assert corpus.python == platform.python_version()


def test_only_printable_ascii_and_white_space_stay(tmp_path):
    content = bytes(range(256))
    corpus = D.load(library(tmp_path, {TRAIN: content, HELD_OUT: "Größe θ".encode()}))
    kept = "\t\n\f\r" + "".join(map(chr, range(32, 127)))
    expected = "".join(chr(byte) if chr(byte) in kept else "?" for byte in content)
    assert bytes(corpus.train).decode("ascii") == expected + "\0"
    assert bytes(corpus.held_out[HELD_OUT]) == b"Gr????e ??\0"


def test_no_byte_of_the_text_is_one_of_the_task(tmp_path):
    corpus = D.load(library(tmp_path, {TRAIN: bytes(range(256)), HELD_OUT: b""}))
    task = {data.QUERY + key for key in range(data.KEYS)} | {data.RECORD + n for n in range(data.KEYS * data.VALUES)}
    assert len(task) == 8 + 64
    assert max(task) < data.VOCABULARY
    assert data.END not in task
    assert not task & set(corpus.train.tolist())


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
    corpus = D.load(library(tmp_path, {**sides, **others}))
    text = b"".join([bytes(corpus.train), *map(bytes, corpus.held_out.values())])
    assert {name for name in others if b"<%s>" % name.encode() in text} == set(READ)


def test_the_filter_looks_at_the_relative_path_alone(tmp_path):
    here = library(tmp_path / "tests" / "site-packages", {TRAIN: b"train", HELD_OUT: b"held"})
    assert D.load(here).sha256 == D.load(library(tmp_path / "x", {TRAIN: b"train", HELD_OUT: b"held"})).sha256


def test_the_side_follows_from_the_path_and_not_from_the_content(tmp_path):
    names = [f"folder/module_{i}.py" for i in range(200)]
    expected = {name for name in names if first_byte(name) < 26}
    assert 10 <= len(expected) <= 35  # one in ten
    for run, content in enumerate([b"x = 1\n", b"something else entirely\n"]):
        corpus = D.load(library(tmp_path / str(run), dict.fromkeys(names, content)))
        assert corpus.held_out.keys() == expected
        assert len(corpus.train) == (200 - len(expected)) * (len(content) + 1)


def test_files_come_in_the_order_of_their_paths(tmp_path):
    names = sorted(name for name in (f"{folder}/m{i}.py" for folder in "zBa_" for i in (10, 9)))
    content = {name: b"<%s>" % name.encode() for name in names}
    corpus = D.load(library(tmp_path, {**content, HELD_OUT: b""}))
    shown = [name for name in names if name not in corpus.held_out]
    assert len(shown) > 5
    assert bytes(corpus.train) == b"".join(content[name] + b"\0" for name in shown)


def test_the_hash_is_of_all_names_and_bytes(tmp_path):
    files = {TRAIN: b"one", HELD_OUT: b"tw\xc3\xb6", "b/shown.py": b"three"}
    whole = D.load(library(tmp_path / "0", files)).sha256
    named = b"".join(name.encode() + b"\0" + files[name] + b"\0" for name in sorted(files))
    assert whole == hashlib.sha256(named.replace(b"\xc3\xb6", b"??")).hexdigest()
    others = [
        {**files, TRAIN: b"onE"},
        {**files, HELD_OUT: b"twO??"},
        {TRAIN: b"one", HELD_OUT: b"tw\xc3\xb6", "b/shewn.py": b"three"},
        {**files, "b/new.py": b""},
        {TRAIN: b"one", HELD_OUT: b"tw\xc3\xb6"},
        {TRAIN: b"three", HELD_OUT: b"tw\xc3\xb6", "b/shown.py": b"one"},
    ]
    found = {D.load(library(tmp_path / f"{i + 1}", other)).sha256 for i, other in enumerate(others)}
    assert len(found | {whole}) == len(others) + 1
    left_out = {**files, "test/new.py": b"not read", "README": b"nor this"}
    assert D.load(library(tmp_path / "same", left_out)).sha256 == whole


def test_by_default_it_is_the_library_of_this_python(monkeypatch, tmp_path):
    library(tmp_path, {TRAIN: b"mine", HELD_OUT: b"too"})
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    assert bytes(D.load().train) == b"mine\0"
    assert D.load().sha256 == D.load(str(tmp_path)).sha256


# --- the retrieval task ---

texts = st.binary(max_size=80).map(lambda raw: np.array([32 + byte % 95 for byte in raw], np.uint8))


@given(texts, seeds, st.data())
def test_planted_text(text, seed, draw):
    records = draw.draw(st.integers(0, D.most_records(len(text))))
    before = text.copy()
    planted, answers = D.plant(text, records, np.random.default_rng(seed))
    assert planted.dtype == np.uint8
    assert planted.shape == text.shape
    assert np.array_equal(text, before)
    assert len(answers) == len(set(answers)) == records
    of_task = (planted < 9) | (planted >= 128)
    assert np.array_equal(planted[~of_task], text[: len(text) - 3 * records])  # the end makes room, the rest stands
    keys = set()
    for answer in answers:
        record = int(planted[answer])
        key, value = divmod(record - 128, 8)
        assert 0 <= key < 8
        assert 0 <= value < 8
        assert planted[answer - 1] == 1 + key  # the query is right before it
        at = np.flatnonzero(planted == record).tolist()
        assert at == [at[0], answer]  # it stands twice: planted, and later as the answer
        assert at[0] < answer - 1
        assert np.count_nonzero(planted == 1 + key) == 1
        keys.add(key)
    assert len(keys) == records
    assert of_task.sum() == 3 * records
    again, there = D.plant(text, records, np.random.default_rng(seed))
    assert np.array_equal(again, planted)
    assert np.array_equal(there, answers)


def test_records_and_queries_stand_anywhere():
    dots, draws = np.full(24, ord("."), np.uint8), np.random.default_rng(0)
    found = [D.plant(dots, 2, draws) for _ in range(400)]
    places = Counter(place for text, _ in found for place in np.flatnonzero(text != ord(".")).tolist())
    assert set(places) == set(range(24))
    gaps = {answer - int(np.flatnonzero(text == text[answer])[0]) for text, answers in found for answer in answers}
    assert min(gaps) == 2  # the query right after its record
    assert max(gaps) == 23  # from end to end
    seen = Counter(int(text[answer]) for text, answers in found for answer in answers)
    assert len(seen) == 64  # every key with every value
    assert max(seen.values()) < 4 * 800 / 64


@pytest.mark.parametrize(
    ("length", "records"), [(0, 0), (2, 0), (3, 1), (5, 1), (6, 2), (23, 7), (24, 8), (26, 8), (9999, 8)]
)
def test_most_records_fit_and_one_more_does_not(length, records):
    assert D.most_records(length) == records
    text, draws = np.full(length, 32, np.uint8), np.random.default_rng(1)
    assert len(D.plant(text, records, draws)[1]) == records
    with pytest.raises(ValueError, match=f"records must be an integer >= 0 and <= {records}, got {records + 1}"):
        D.plant(text, records + 1, draws)


# --- batches ---

CORPUS = corpus_of(bytes(32 + (7 * i + i // 95) % 95 for i in range(4000)))


def windows_of(corpus, length):
    return {bytes(corpus.train[i : i + length + 1]) for i in range(len(corpus.train) - length)}


def as_bytes(row):
    return bytes(row.tolist())


def test_a_batch_is_of_windows_of_the_text():
    rows = D.batch(CORPUS, 0, 0, 50, 40, share=0.0)
    assert rows.dtype == torch.int64
    assert rows.shape == (50, 41)
    assert set(map(as_bytes, rows)) <= windows_of(CORPUS, 40)
    assert len(set(map(as_bytes, rows))) > 40


def test_every_window_is_shown_sometimes_the_first_and_the_last_too():
    corpus = corpus_of(b"abcdefgh")
    rows = D.batch(corpus, 0, 0, 200, 5, share=0.0)
    assert set(map(as_bytes, rows)) == {b"abcdef", b"bcdefg", b"cdefgh"}
    assert set(map(as_bytes, D.batch(corpus, 0, 0, 4, 7, share=0.0))) == {b"abcdefgh"}


def test_a_share_of_the_rows_has_all_records_that_fit():
    for length, records in [(40, 8), (10, 3)]:
        rows = D.batch(CORPUS, 0, 0, 300, length, share=1.0)
        assert ((rows >= 128).sum(1) == 2 * records).all()
    assert not (D.batch(CORPUS, 0, 0, 300, 40, share=0.0) >= 128).any()
    for share in (0.5, 0.2):
        with_task = (D.batch(CORPUS, 0, 0, 1000, 40, share) >= 128).any(1).sum().item()
        assert abs(with_task / 1000 - share) < 0.06  # four standard deviations and more
    assert torch.equal(D.batch(CORPUS, 0, 0, 8, 40), D.batch(CORPUS, 0, 0, 8, 40, 0.5))


@given(seeds, st.integers(0, 10**6))
def test_a_batch_follows_from_seed_and_step(seed, step):
    first = D.batch(CORPUS, seed, step, 4, 40)
    np.random.seed(seed)  # what others draw changes nothing
    torch.manual_seed(seed)
    assert torch.equal(D.batch(CORPUS, seed, step, 4, 40), first)
    assert not torch.equal(D.batch(CORPUS, seed, step + 1, 4, 40), first)
    assert not torch.equal(D.batch(CORPUS, seed + 1, step, 4, 40), first)
    assert not torch.equal(D.batch(CORPUS, seed + 1, step - 1 if step else 1, 4, 40), first)


# --- bad input ---

TEN = corpus_of(b"0123456789")
DRAWS = np.random.default_rng(0)
DOTS = np.full(20, ord("."), np.uint8)

BAD = [
    # call, error, message
    (lambda: D.most_records(-1), ValueError, "length must be an integer >= 0, got -1"),
    (lambda: D.most_records(9.0), TypeError, "length must be an integer >= 0, got 9.0"),
    (lambda: D.plant(DOTS, -1, DRAWS), ValueError, "records must be an integer >= 0 and <= 6, got -1"),
    (lambda: D.plant(DOTS, 1.0, DRAWS), TypeError, "records must be an integer"),
    (lambda: D.plant(DOTS[None], 1, DRAWS), ValueError, "text must be uint8 of shape (length,), got uint8 of shape"),
    (lambda: D.plant(DOTS.astype(float), 1, DRAWS), ValueError, "text must be uint8 of shape (length,), got float64"),
    (lambda: D.batch(TEN, 0, 0, 1, 10), ValueError, "corpus must have more than length = 10 bytes to train on, got 10"),
    (lambda: D.batch(TEN, -1, 0, 1, 4), ValueError, "seed must be an integer >= 0, got -1"),
    (lambda: D.batch(TEN, 0, -1, 1, 4), ValueError, "step must be an integer >= 0, got -1"),
    (lambda: D.batch(TEN, 0, 0, 0, 4), ValueError, "rows must be an integer >= 1, got 0"),
    (lambda: D.batch(TEN, 0, 0, 1, 0), ValueError, "length must be an integer >= 1, got 0"),
    (lambda: D.batch(TEN, 0, 0.5, 1, 4), TypeError, "step must be an integer >= 0, got 0.5"),
    (lambda: D.batch(TEN, 0, 0, 1, 4, 1.5), ValueError, "share must be a finite number >= 0 and <= 1, got 1.5"),
    (lambda: D.batch(TEN, 0, 0, 1, 4, float("nan")), ValueError, "share must be a finite number"),
]


@pytest.mark.parametrize("call, kind, message", BAD, ids=range(len(BAD)))
def test_bad_input_is_refused(call, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    "files, found",
    [({}, "0 and 0"), ({TRAIN: b"x"}, "1 and 0"), ({HELD_OUT: b"x"}, "0 and 1"), ({"test/a.py": b"x"}, "0 and 0")],
    ids=["empty", "none held out", "none to train on", "tests only"],
)
def test_a_folder_without_both_sides_is_refused(tmp_path, files, found):
    message = f"root must hold .py files to train on and others to hold out, got {found} in {tmp_path}"
    with pytest.raises(FileNotFoundError, match=re.escape(message)):
        D.load(library(tmp_path, files))


@pytest.mark.parametrize("what", ["missing", "a file"])
def test_what_is_no_folder_is_refused(tmp_path, what):
    path = tmp_path / "python313.zip"
    if what == "a file":
        path.write_bytes(b"PK")
    with pytest.raises(FileNotFoundError, match=re.escape(f"root must be a folder of Python sources, got {path}")):
        D.load(path)
