"""Tests of questions about records at random distances, answered by readers whose behaviour is known. Every score must
be able to reveal a failing reader."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from ropebook.lab import asking, causal, data
from ropebook.lab.asking import Layout, by_context, contexts, letters, paired, share
from ropebook.lab.longer import with_method
from ropebook.lab.model import SCHEMES
from ropebook.lab.tasks import FIRST
from tests.helpers import seeds
from tests.lab_models import METHOD_OPTIONS, tiny
from tests.together import together

FILES = {"long.py": np.full(4000, ord("."), np.uint8), "short.py": np.full(30, ord(","), np.uint8)}
FAR = Layout("order", 2048, 256, 2048, contexts=12)
FINDING = Layout("retrieval", 2048, 256, 2048, contexts=12)


# --- Rule-based readers --------------------------------------------------------------------------------------------


def records(text, key):
    """Return the records of a key, starting with the farthest, as tuples (distance to the question, byte)."""
    low = data.RECORD + data.VALUES * key
    places = [at for at, byte in enumerate(text) if low <= byte < low + data.VALUES]
    return [(len(text) - at, text[at]) for at in places]


def reader(choose):
    """Return a reader that uses ``choose`` to answer.

    The arguments of ``choose`` are the key's records, and whether the question asks for the first of them.
    """

    def told(asked):
        rows = []
        for text, queries in zip(asked.tokens.tolist(), asked.queries.tolist(), strict=True):
            row = []
            for query in queries:
                first = FIRST <= query < FIRST + data.KEYS
                found = records(text, query - (FIRST if first else data.QUERY))
                row.append(choose(first, found) if found else 0)
            rows.append(row)
        return torch.tensor(rows)

    return told


def knows(first, found):
    return found[0 if first else -1][1]


def always_far(first, found):
    return found[0][1]


def folding(period):
    """Return a strategy for a reader that cannot tell a distance from its remainder modulo the period."""

    def choose(first, found):
        by_angle = sorted(found, key=lambda one: one[0] % period)
        return by_angle[-1 if first else 0][1]

    return choose


def test_who_knows_the_order_has_all_points():
    rows = asking.ask(contexts(FAR, FILES), reader(knows))
    assert by_context(rows, "order").tolist() == [1.0] * FAR.contexts
    assert share(asking.ask(contexts(FINDING, FILES), reader(knows))) == 1.0


def test_who_prefers_far_records_wins_one_kind_and_loses_the_other():
    asked = contexts(FAR, FILES)
    rows = asking.ask(asked, reader(always_far))
    of_kind = [by_context(rows, "order", asked.first == kind) for kind in (True, False)]
    assert set(of_kind[0]) == {1.0}
    assert set(of_kind[1]) == {-1.0}
    assert set(by_context(rows, "order")) == {0.0}


def test_whoever_folds_distances_is_wrong_at_chosen_ones_and_a_coin_at_random_ones():
    """The purpose of the module is to detect readers that fold distances. To such a reader, a record at distance 384
    looks as if it were 5 bytes away."""
    period, many = 379, Layout("order", 2048, 256, 2048, contexts=60)
    assert folding(period)(True, [(384, "first"), (192, "last")]) == "last"
    rows = asking.ask(contexts(many, FILES), reader(folding(period)))
    assert abs(by_context(rows, "order").mean()) < 0.25
    within = Layout("order", 255, 16, 255, contexts=20)
    assert set(by_context(asking.ask(contexts(within, FILES), reader(folding(period))), "order")) == {1.0}


def test_a_record_beyond_a_cut_text_counts_as_not_found():
    asked = contexts(FINDING, FILES)
    seen = asked.far < 256
    rows = asking.ask(asking.cut(asked), reader(knows))
    found = np.array([list(row) for row in rows]) == asking.RIGHT
    assert (found == seen.numpy()).all()
    assert not seen.all()
    assert share(asking.ask(asked, None)) == 0.0
    everything = asking.cut(asked, FINDING.length + 1)
    assert torch.equal(everything.tokens, asked.tokens)
    with pytest.raises(ValueError, match="length must be an integer >= 2 and <= 2049, got 4000"):
        asking.cut(asked, 4000)


# --- The contexts ----------------------------------------------------------------------------------------------------


@settings(max_examples=20)
@given(seed=seeds, asked=st.integers(1, 4), beside=st.integers(0, 4))
def test_records_are_where_they_are_said_to_be(seed, asked, beside):
    layout = Layout("order", 300, 40, 280, contexts=2, asked=asked, beside=beside)
    found = contexts(layout, FILES, seed)
    for text, queries, far, near, first, answers, others in zip(
        *(x.tolist() for x in (found.tokens, found.queries, found.far, found.near)),
        found.first.tolist(),
        *(x.tolist() for x in (found.answers, found.others)),
        strict=True,
    ):
        assert sum(byte >= data.RECORD for byte in text) == 2 * (asked + beside)
        assert len(queries) == 2 * asked
        for query, a, b, is_first, answer, other in zip(queries, far, near, first, answers, others, strict=True):
            key = query - (FIRST if is_first else data.QUERY)
            there = records(text, key)
            assert [distance for distance, _ in there] == [a, b]
            assert 40 <= a <= 280
            assert asking.NEAREST <= b < a
            assert [there[0][1], there[1][1]] == ([answer, other] if is_first else [other, answer])


def test_distances_are_spread_over_all_that_is_allowed():
    found = contexts(Layout("retrieval", 2048, 256, 2048, contexts=200), FILES)
    counts, _ = np.histogram(found.far.numpy(), bins=7, range=(256, 2049))
    assert counts.min() > 0.8 * counts.mean()
    assert torch.equal(found.far, found.near)
    of_two = contexts(Layout("order", 2048, 256, 2048, contexts=200), FILES)
    ratios = (of_two.near - asking.NEAREST) / (of_two.far - asking.NEAREST)
    counts, _ = np.histogram(ratios.numpy(), bins=5, range=(0, 1))
    assert counts.min() > 0.8 * counts.mean(), "the later record is anywhere, and not at a half"
    assert set(found.others.flatten().tolist()) == {-1}


def test_a_prefix_of_the_contexts_is_the_same_contexts():
    few, all_ = (contexts(layout, FILES) for layout in (asking.fewer(FAR, 3), FAR))
    for a, b in zip(few, all_, strict=True):
        assert torch.equal(a, b[:3])
    other = contexts(FAR, FILES, seed=1)
    assert not torch.equal(other.far, all_.far)


def test_places_do_not_depend_on_the_text():
    other = {"other.py": np.full(9000, ord("x"), np.uint8), "more.py": np.full(5000, ord("y"), np.uint8)}
    a, b = contexts(FAR, FILES), contexts(FAR, other)
    assert torch.equal(a.far, b.far)
    assert torch.equal(a.answers, b.answers)
    assert not torch.equal(a.tokens, b.tokens)
    generated = contexts(Layout("order", 2048, 256, 2048, 12, text="language"), {})
    assert torch.equal(generated.near, a.near)


@together(
    ("changes", "message"),
    [
        ({"high": 301}, "high must be an integer >= 16 and <= 300, got 301"),
        ({"low": 15}, "low must be an integer >= 16 and <= 300, got 15"),
        ({"asked": 9}, "asked must be an integer >= 1 and <= 8, got 9"),
        ({"beside": 1}, "beside must be an integer >= 0 and <= 0, got 1"),
        ({"task": "orders"}, "task must be one of"),
        ({"text": "prose"}, "text must be one of"),
    ],
)
def test_layouts_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=message):
        Layout(**{"task": "order", "length": 300, "low": 16, "high": 300, "contexts": 1, **changes})


def test_no_file_is_long_enough():
    with pytest.raises(ValueError, match="files must have one of more than length = 2048 bytes"):
        contexts(FAR, {"short.py": FILES["short.py"]})


def test_every_planned_share_is_sure_to_a_twentieth():
    for layout in asking.LAYOUTS.values():
        assert 0.5 / (3 * layout.contexts * layout.asked) ** 0.5 <= 0.037


# --- Models ---------------------------------------------------------------------------------------------------------


SMALL = Layout("order", 40, 16, 40, contexts=3, asked=2, beside=1)


def whole(model, asked):
    """Ask each question separately, reading the whole text each time."""
    return torch.stack(
        [model(torch.cat((asked.tokens, query[:, None]), 1))[:, -1].argmax(-1) for query in asked.queries.T], 1
    )


@torch.no_grad()
@pytest.mark.parametrize("scheme", [name for name in SCHEMES if name != "learned"])
def test_a_model_answers_as_if_it_read_all_of_it_for_each_question(scheme, monkeypatch):
    monkeypatch.setattr(asking, "_PIECE", 16)
    model, asked = tiny(scheme), contexts(SMALL, FILES)
    assert torch.equal(asking.likeliest(model, asked, batch=2), whole(model, asked))


@torch.no_grad()
@together("method", ["linear", "yarn", "log_n", "rerope", "self_extend", "dynamic_ntk"])
def test_a_model_with_a_method_too(method):
    model, asked = with_method(tiny(), method, METHOD_OPTIONS[method]), contexts(SMALL, FILES)
    fixed = causal.at_length(model, SMALL.length + 1)
    assert torch.equal(asking.likeliest(fixed, asked), whole(model, asked))


# --- Scores -----------------------------------------------------------------------------------------------------------


def test_letters_of_another_shape():
    asked = contexts(SMALL, FILES)
    with pytest.raises(ValueError, match=r"told must be of shape \(3, 4\), got \(3, 3\)"):
        letters(asked, asked.answers[:, :3])


def test_differences_are_taken_in_the_same_contexts():
    a, b = [["11", "1o"], ["1o", "oo"]], [["11", "oo"], ["11", "oo"]]
    assert paired(a, b, "order").tolist() == [[0.0, 1.0], [-1.0, 0.0]]
    only = [[True, False], [False, True]]
    assert paired(a, b, "order", only).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    with pytest.raises(ValueError, match=r"a and b must be of the same seeds and contexts, got \(2, 2\) and \(1, 2\)"):
        paired(a, b[:1], "order")
    with pytest.raises(ValueError, match=r"only must be of shape \(2, 2\), got \(2, 1\)"):
        by_context(["11", "oo"], "order", [[True], [True]])


def test_a_context_without_a_question_that_counts_is_left_out():
    scores = by_context(["1o", "11"], "retrieval", [[False, False], [True, False]])
    assert np.isnan(scores[0])
    assert scores[1] == 1.0
