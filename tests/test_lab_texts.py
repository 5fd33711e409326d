"""Held-out texts: windows of files, and texts with records to find."""

import hashlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import data, first_text
from ropebook.lab import evaluation as E
from tests.lab_models import small_corpus, text_of


@pytest.fixture(scope="module")
def corpus():
    return small_corpus()


def test_windows_are_one_slice_of_every_file_that_is_long_enough(corpus):
    names, windows = E.held_out_windows(corpus, 96)
    assert names == ["a.py", "b/c.py", "e.py", "f.py", "g.py"]  # b/d.py has 96 bytes, one too few
    assert windows.shape == (5, 97)
    assert windows.dtype == torch.int64
    for name, window in zip(names, windows, strict=True):
        start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % (len(corpus.held_out[name]) - 96)
        assert window.tolist() == corpus.held_out[name][start : start + 97].tolist()
    assert torch.equal(E.held_out_windows(corpus, 96)[1], windows)


def test_fewer_files_are_the_same_windows(corpus):
    names, windows = E.held_out_windows(corpus, 96)
    some, fewer = E.held_out_windows(corpus, 96, files=3)
    assert len(some) == 3
    assert set(some) < set(names)
    assert some == sorted(some)
    assert some != names[:3]  # by hash, not by alphabet
    assert torch.equal(fewer, windows[[names.index(name) for name in some]])


def test_windows_say_what_is_missing(corpus):
    with pytest.raises(ValueError, match="files must be an integer >= 1 and <= 5, got 6"):
        E.held_out_windows(corpus, 96, files=6)
    with pytest.raises(ValueError, match="more than length = 5000 bytes"):
        E.held_out_windows(corpus, 5000)
    with pytest.raises(ValueError, match="length"):
        E.held_out_windows(corpus, 0)


@given(
    st.integers(48, 200), st.lists(st.integers(16, 32), min_size=1, max_size=8), st.integers(1, 3), st.integers(0, 99)
)
def test_a_retrieval_text_is_what_it_says(corpus_length, distances, contexts, seed):
    held_out = {"a.py": text_of(210, 1), "b.py": text_of(300, 2)}
    corpus = first_text.Corpus(text_of(10), held_out, "", "")
    texts = E.retrieval_texts(corpus, corpus_length, distances, contexts, seed)
    n = len(distances)
    assert texts.tokens.shape == (contexts, corpus_length)
    assert texts.tokens.dtype == torch.int64
    assert texts.answers.shape == texts.distances.shape == (contexts, n)
    for tokens, answers, asked in zip(*texts, strict=True):
        assert sorted(asked.tolist()) == sorted(distances)
        assert answers.tolist() == list(range(corpus_length - 2 * n + 1, corpus_length, 2))  # at the very end
        records, keys = tokens[answers], (tokens[answers] - data.RECORD) // data.VALUES
        assert (records >= data.RECORD).all()
        assert len(keys.unique()) == n
        assert torch.equal(tokens[answers - 1], data.QUERY + keys)
        assert torch.equal(tokens[answers - 1 - asked], records)  # exactly the distance before the query
        assert (tokens >= data.RECORD).sum() == 2 * n
        assert (tokens < 32).sum() == n
        rest = bytes(tokens[(tokens >= 32) & (tokens < data.RECORD)].tolist())
        assert len(rest) == corpus_length - 3 * n
        assert any(rest in text.tobytes() for text in held_out.values())


def test_retrieval_texts_differ_and_come_again(corpus):
    distances = [16, 20, 24, 28, 32, 36, 40, 44]
    texts = E.retrieval_texts(corpus, 90, distances, 20, seed=3)
    assert len({row.tobytes() for row in texts.tokens.numpy()}) == 20
    assert len({tuple(row) for row in texts.distances.tolist()}) > 10  # the order of the queries tells nothing
    values = (texts.tokens.gather(1, texts.answers) - data.RECORD) % data.VALUES
    assert len(values.unique()) == data.VALUES
    again, other = (E.retrieval_texts(corpus, 90, distances, 20, seed) for seed in (3, 4))
    assert all(torch.equal(a, b) for a, b in zip(texts, again, strict=True))
    assert not torch.equal(texts.tokens, other.tokens)


@pytest.mark.parametrize(
    "length, distances, contexts, message",
    [
        (90, [], 1, "number of distances must be an integer >= 1 and <= 8, got 0"),
        (90, [20] * 9, 1, "number of distances"),
        (90, [15] + [20] * 7, 1, "distances must be an integer >= 16 and <= 74, got 15"),
        (90, [75] + [20] * 7, 1, "distances must be an integer >= 16 and <= 74, got 75"),
        (90, [20], 0, "contexts"),
        (5000, [20], 1, "length = 5000"),
        (0, [20], 1, "length"),
    ],
)
def test_retrieval_texts_that_cannot_be(corpus, length, distances, contexts, message):
    with pytest.raises(ValueError, match=message):
        E.retrieval_texts(corpus, length, distances, contexts, seed=0)
