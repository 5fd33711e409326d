"""Tests of two tasks that are planted inside a text: what is planted where, whether the content alone could reveal the
order, and which answers count as correct."""

from collections import Counter

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from ropebook.lab import data
from ropebook.lab import tasks as T
from tests.helpers import seeds

both = pytest.mark.parametrize("task", T.TASKS)
FILES = {"long.py": np.full(400, ord("."), np.uint8), "short.py": np.full(30, ord(","), np.uint8)}


def is_record(byte):
    return data.RECORD <= byte < data.RECORD + data.KEYS * data.VALUES


def solved(text, before):
    """Return the answer to the query at ``before`` − 1, found by reading the text."""
    query = text[before - 1]
    first = T.FIRST <= query < T.FIRST + data.KEYS
    key = query - (T.FIRST if first else data.QUERY)
    found = []
    for at, byte in enumerate(text[: before - 1]):
        asked = at > 0 and not is_record(text[at - 1]) and text[at - 1] < 32 and text[at - 1] != data.END
        if is_record(byte) and (byte - data.RECORD) // data.VALUES == key and not asked:
            found.append(byte)
    return found[0 if first else -1], found


def test_no_two_kinds_of_bytes_are_one():
    kinds = [
        range(data.QUERY, data.QUERY + data.KEYS),
        range(T.FIRST, T.FIRST + data.KEYS),
        range(data.RECORD, data.RECORD + data.KEYS * data.VALUES),
        {data.END, *data.as_text(bytes(range(256))).tolist()},
    ]
    everything = [byte for kind in kinds for byte in kind]
    assert len(set(everything)) == len(everything)


@both
@given(seed=seeds, keys=st.integers(1, data.KEYS), length=st.integers(32, 120))
def test_planted_for_training(task, seed, keys, length):
    plain = (np.arange(length) % 26 + 97).astype(np.uint8)
    text, answers = T.plant(plain, task, np.random.default_rng(seed), keys)
    assert text.shape == plain.shape
    assert text.dtype == np.uint8
    kept = length - keys * T.planted_bytes(task)
    assert [byte for byte in text.tolist() if 97 <= byte < 123] == plain[:kept].tolist()
    assert len(answers) == keys
    for at in answers:
        wanted, found = solved(text.tolist(), at)
        assert text[at] == wanted
        assert len(found) == len(set(found)) == T.planted_bytes(task) - 2


@given(seeds)
def test_first_and_last_are_asked_alike_often_and_values_are_evenly_spread(seed):
    draws = np.random.default_rng(seed)
    asked = Counter()
    for _ in range(60):
        text, answers = T.plant(np.full(200, 46, np.uint8), "order", draws)
        asked.update(bool(text[at - 1] >= T.FIRST) for at in answers)
    assert 0.4 < asked[True] / (60 * 8) < 0.6
    text, answers = T.plant(np.full(200, 46, np.uint8), "retrieval", draws)
    assert all(text[at - 1] < T.FIRST for at in answers)


@both
@given(seed=seeds, n=st.integers(1, 7))
def test_questions_stand_exactly_so_far_back(task, seed, n):
    distances = [32, 40, 64, 100, 120, 64, 33][:n]
    asked = T.questions(FILES, task, 160, distances, 2, seed)
    assert asked.tokens.shape == (2, 160)
    assert asked.tokens.dtype == torch.int64
    for row in range(2):
        text = asked.tokens[row].tolist()
        assert sorted(asked.distances[row].tolist()) == sorted(distances)
        assert asked.answers[row].tolist() == [160 - 2 * n + 2 * i + 1 for i in range(n)]
        seen = set()
        for at, distance, other in zip(*(column[row].tolist() for column in asked[1:]), strict=True):
            wanted, found = solved(text, at)
            assert text[at] == wanted
            places = [text.index(byte) for byte in found]
            assert places[0] == at - 1 - distance
            if task == "order":
                assert places == [at - 1 - distance, at - 1 - distance // 2]
                assert {wanted, other} == set(found)
            else:
                assert other == -1
                assert len(found) == 1
            seen.add((wanted - data.RECORD) // data.VALUES)
        assert len(seen) == n
        # keys that no question asks for have records as well
        records = [byte for byte in text[: 160 - 2 * n] if is_record(byte)]
        assert len(records) == len(set(records)) == data.KEYS * (T.planted_bytes(task) - 2)


@both
def test_questions_follow_from_the_seed(task):
    one, same, other = (T.questions(FILES, task, 160, [64, 64], 3, seed) for seed in (1, 1, 2))
    assert all(torch.equal(a, b) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one.tokens, other.tokens)


class Reader(nn.Module):
    """A model that answers by reading the text. It may answer with the requested record, with the key's first record,
    or with no record."""

    has_bias = False

    def __init__(self, order):
        super().__init__()
        self.order, self.embedding = order, nn.Embedding(1, 1)

    def forward(self, tokens):
        told = torch.full_like(tokens, 46)
        for row, text in enumerate(tokens.tolist()):
            for at, byte in enumerate(text):
                if 0 < byte < 32:
                    wanted, found = solved(text, at + 1)
                    told[row, at] = wanted if self.order else found[0]
        return nn.functional.one_hot(told, 256).float()


@pytest.mark.parametrize("batch", [1, 8])
def test_who_knows_the_order_answers_all_and_who_does_not_every_other(batch):
    for task in T.TASKS:
        asked = T.questions(FILES, task, 160, [32, 64, 128], 40, 0)
        right, other = T.answered(Reader(True), asked, batch)
        assert right.shape == (40, 3)
        assert right.all()
        assert not other.any()
    right, other = T.answered(Reader(False), asked, batch)
    assert (right ^ other).all()
    assert 0.35 < right.float().mean() < 0.65
    alone = T.questions(FILES, "retrieval", 160, [32, 64, 128], 40, 0)
    assert T.answered(Reader(False), alone, batch)[0].all()


def test_what_does_not_fit_is_refused():
    for task, distance in (("retrieval", 1), ("order", 3), ("order", 159)):
        with pytest.raises(ValueError, match="distances must be"):
            T.questions(FILES, task, 160, [distance], 1, 0)
    with pytest.raises(ValueError, match=r"files must have one of more than length = 500"):
        T.questions(FILES, "order", 500, [64], 1, 0)
    with pytest.raises(ValueError, match=r"number of distances must be .*got 9"):
        T.questions(FILES, "order", 160, [64] * 9, 1, 0)
    with pytest.raises(ValueError, match="task must be one of 'retrieval', 'order', got 'find'"):
        T.questions(FILES, "find", 160, [64], 1, 0)
    with pytest.raises(ValueError, match=r"keys must be .*got 3"):
        T.plant(np.zeros(8, np.uint8), "retrieval", np.random.default_rng(0), 3)
    with pytest.raises(ValueError, match=r"text must be uint8"):
        T.plant(np.zeros(80), "retrieval", np.random.default_rng(0))
