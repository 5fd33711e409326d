"""Tests of the page's numbers on order, compared with the stored letters from which they were computed."""

import json
from pathlib import Path

import numpy as np
import pytest

from ropebook import results
from ropebook.lab import order
from tests.together import together

FOLDER = Path(__file__).resolve().parent.parent / "results" / "asking"


def a_map(halved, shares=None):
    """Return a map for one context and four questions. For each pair, ``halved`` says how many of the four questions
    are answered correctly when the pair's frequency is halved."""
    rows = [{"order": ["1" * right + "o" * (4 - right)]} for right in halved]
    return {"pairs": {"halved": rows}, "shares": shares}


def test_the_pair_is_the_one_whose_halved_frequency_helps_most():
    assert order.named(a_map([0, 3, 4, 2])) == 2
    assert order.named(a_map([3, 3, 0, 0])) == 0


def test_a_twin_has_the_most_similar_share():
    told = a_map([0] * 4, [0.1, 0.4, 0.3, 0.2])
    assert [order.twin(told, pair) for pair in range(4)] == [3, 2, 3, 2] or order.twin(told, 1) == 2
    assert order.twin(told, 1) != 1


@together("name", ["none", "none-", "none-10", ""])
def test_names_that_are_no_models(name):
    with pytest.raises(ValueError, match="name must be a model's, as 'none-0', got"):
        order.id_of(name)


def test_scores_by_distance_count_each_question_once():
    contexts = {
        "order": {"far": [[300, 2048], [600, 700]], "near": [[200, 256], [300, 100]], "first": [True, False]},
    }
    cell = order._cell({"order": ["1o", "01"]}, contexts)["order"]
    assert cell["octaves"] == [1.0, 0.5, -1.0]
    assert cell["both"] == -0.5
    assert cell["one"] == 1.0
    assert cell["kinds"] == {"first": [0.5, 0.0], "last": [0.5, 0.5]}
    assert cell["score"] == 0.25


def test_the_stored_summary_is_that_of_the_stored_letters():
    told = results.load("order")
    found = json.loads(json.dumps(order.gathered(FOLDER)))
    assert {key: value for key, value in told.items() if key != "provenance"} == found


def test_means_of_maps_are_differences_to_the_model_as_it_is():
    maps = {
        f"rope-100-{seed}": {"plain": {"order": 0.1}, "pairs": {way: {"order": [0.3, 0.1]} for way in order.KEPT}}
        for seed in range(2)
    } | {"rope-10000-0": {}}
    found = order.means(maps, "rope-100")
    assert np.allclose(found["still order"], [[0.2, 0.0]] * 2)
