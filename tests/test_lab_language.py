"""Tests of the generated language. The cost of a byte is compared with an explicit calculation by Bayes' rule, and with
counts."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import data
from ropebook.lab import language as L
from tests.helpers import seeds
from tests.together import together


@given(seeds, st.integers(1, 300))
def test_a_text_is_pairs_of_a_noun_and_its_verb(seed, length):
    written = L.text(length, np.random.default_rng(seed))
    assert written.shape == (length,)
    assert written.dtype == np.uint8
    nouns, verbs = written[::2], written[1::2]
    assert (nouns >= L.NOUN).all()
    assert ((verbs >= L.VERB) & (verbs < L.VERB + L.VERBS)).all()
    known = {}
    for noun, verb in zip(nouns.tolist(), verbs.tolist(), strict=False):
        assert known.setdefault(noun, verb) == verb


def test_its_nouns_stand_in_no_other_text():
    everything = data.as_text(bytes(range(256)))
    assert everything.max() < 128
    assert L.NOUN >= data.RECORD + data.KEYS * data.VALUES
    assert L.NOUN + L.NOUNS == 256


def test_nouns_and_verbs_come_as_often_as_they_should():
    draws = np.random.default_rng(0)
    texts = np.stack([L.text(256, draws) for _ in range(2000)])
    often = np.bincount(texts[:, ::2].ravel() - L.NOUN, minlength=64) / texts[:, ::2].size
    weights = [1 / (i + 1) for i in range(64)]
    assert often == pytest.approx(np.array(weights) / sum(weights), abs=0.003)
    first = np.bincount(texts[:, 1] - L.VERB, minlength=16) / 2000
    assert first == pytest.approx(np.full(16, 1 / 16), abs=0.03)


def test_a_byte_costs_what_bayes_says(monkeypatch):
    """Compute the probability of each next byte, given the previous bytes, as a weighted sum over all languages that
    consist of two nouns and three verbs."""
    monkeypatch.setattr(L, "NOUNS", 2)
    monkeypatch.setattr(L, "VERBS", 3)
    monkeypatch.setattr(L, "SHARE", np.array([2 / 3, 1 / 3]))
    languages = list(product(range(3), repeat=2))

    def chance(pairs, told):
        """Return the probability of a sequence in one language. The sequence consists of complete pairs and possibly a
        final noun."""
        p = 1.0
        for noun, verb in pairs:
            p *= L.SHARE[noun] * (verb is None or told[noun] == verb)
        return p

    for seed in range(20):
        written = L.text(12, np.random.default_rng(seed))
        pairs = [(n - L.NOUN, v - L.VERB) for n, v in zip(written[::2].tolist(), written[1::2].tolist(), strict=True)]
        for seen_pairs in (0, 1, 2, 6):
            context = 2 * seen_pairs + 1
            found = L.bits(written, context)
            for at, (noun, verb) in enumerate(pairs):
                seen = pairs[max(0, at - seen_pairs) : at]
                before = sum(chance([*seen, (noun, None)], told) for told in languages)
                after = sum(chance([*seen, (noun, verb)], told) for told in languages)
                assert found[2 * at + 1] == pytest.approx(-math.log2(after / before))
                assert found[2 * at] == pytest.approx(-math.log2(L.SHARE[noun]))


@given(seeds, st.integers(1, 80), st.integers(1, 200))
def test_more_context_never_costs_more(seed, length, context):
    written = L.text(length, np.random.default_rng(seed))
    little, more, everything = (L.bits(written, c) for c in (context, context + 1, None))
    assert (little >= more).all()
    assert (more >= everything).all()
    assert (L.bits(written, 10**6) == everything).all()


@together("context", [1, 33, 129, 257])
def test_the_expected_cost_is_the_mean_over_many_texts(context):
    draws = np.random.default_rng(1)
    costs = [L.bits(L.text(400, draws), context)[301::2] for _ in range(800)]
    error = np.std([c.mean() for c in costs]) / math.sqrt(len(costs))
    assert abs(np.mean(costs) - L.expected_verb_bits(context)) < 4 * error + 1e-12


def test_a_longer_context_is_worth_something_within_and_beyond_the_trained_length():
    half, full, far = (L.expected_verb_bits(c) for c in (128, 256, 2048))
    assert half - full > 0.4
    assert full - far > 0.5


def test_what_is_no_text_of_it_is_refused():
    for bad in (np.array([97, 192], np.uint8), np.zeros((2, 2), np.uint8)):
        with pytest.raises(ValueError, match=r"written must be a text of this language"):
            L.bits(bad)
    with pytest.raises(ValueError, match=r"context must be .*got 0"):
        L.bits(L.text(4, np.random.default_rng(0)), 0)
    with pytest.raises(ValueError, match=r"length must be .*got 0"):
        L.text(0, np.random.default_rng(0))
