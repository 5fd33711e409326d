"""Tests of what the page about the published model reads from the stored results."""

import json
import math
from collections import Counter

import pytest
import torch

from ropebook import results
from ropebook.real import stored


@pytest.fixture
def put(monkeypatch, tmp_path):
    """Create an empty results folder; return a function that writes a result into it."""
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", tmp_path / "none")
    (tmp_path / "real").mkdir()

    def write(name, **data):
        (tmp_path / "real" / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")

    return write


def test_the_loss_by_position_and_in_a_band(put):
    put("loss-code-as-is", loss=[float(at) for at in range(48)])
    assert stored.losses("code", "as-is").tolist() == [1.5 + 4 * at for at in range(12)]
    assert stored.loss_in("code", "as-is", (256, 768)) == 1.5


def test_rows_of_one_device_and_one_day_are_described_in_words():
    told = stored.told({"devices": {"a GPU": 2}, "dates": ["2026-11-26", "2026-11-26"]})
    assert told.endswith(" python benchmarks/real.py on 2026-11-26: 2 rows on a GPU.")
    assert stored.devices({"devices": {"b": 1, "c": 1, "a": 3}}) == "3 rows on a, 1 on b and 1 on c"


def test_a_missing_result_is_named(put):
    with pytest.raises(FileNotFoundError, match="loss-code-as-is"):
        stored.losses("code", "as-is")


# The map of one layer with four heads. Each key head is shared by two query heads.
MAP = {
    "first": [[0.5, 0.0, 0.0, 0.0]],
    "own": [[0.1, 0.0, 0.0, 0.0]],
    "previous": [[0.3, 0.0, 0.0, 0.0]],
    "entropy": [[1.0, 0.0, 0.0, 0.0]],
    "by_distance": [[[0.1, 0.4], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]]],
    "edges": [0, 1, 4],
    "q": [[[1, 1], [3, 1], [1, 1], [1, 2]]],
    "k": [[[1, 1], [1, 3]]],
}


def test_shares_pair_each_query_head_with_its_key_head(put):
    put("heads-code", **MAP)
    expected = [[[0.5, 0.5], [0.75, 0.25], [0.25, 0.75], [1 / 7, 6 / 7]]]
    torch.testing.assert_close(stored.shares("code"), torch.tensor(expected, dtype=torch.float64))


def test_a_map_of_the_heads_is_that_of_a_text_and_a_change(put):
    put("heads-code", **MAP)
    put("heads-code-stop-0-15", **{**MAP, "previous": [[0.01, 0.0, 0.0, 0.0]]})
    found = stored.heads("code")
    assert {name: value if name == "edges" else value.tolist() for name, value in found._asdict().items()} == MAP
    assert found.first.dtype == torch.float64
    assert stored.heads("code", "stop-0-15").previous.tolist() == [[0.01, 0.0, 0.0, 0.0]]
    with pytest.raises(FileNotFoundError, match="heads-code-stop-0-31"):
        stored.heads("code", "stop-0-31")


@pytest.mark.parametrize("above", [-0.1, 1.5])
def test_a_share_above_which_heads_count_is_a_share(above):
    with pytest.raises(ValueError, match="above"):
        stored.concentrated(torch.ones(1, 1, 2), above, (0,))


def test_the_mean_score_is_a_mean_over_heads_of_cosines(put):
    # one head's result is 2·cos(Δπ), and the other's is 1 at every distance
    put("bias", others_real=[[[2.0, 0.0], [0.0, 1.0]]], others_imag=[[[0.0, 0.0], [0.0, 0.0]]], inv_freq=[math.pi, 0.0])
    found = stored.bias()
    distances = torch.tensor([0.0, 1.0])
    torch.testing.assert_close(found.mean(distances), torch.tensor([1.5, -0.5], dtype=torch.float64))
    torch.testing.assert_close(found.mean(distances, [1]), torch.tensor([0.5, 0.5], dtype=torch.float64))


def test_bins_that_no_key_can_be_in_have_no_score(put):
    part = {"queries": [5, 7], "weights": [[[0.5, 0.25, 0.0]]], "scores": [[[1.0, -2.0, 0.0]]]}
    put("lookback-code-as-is", edges=[0, 2, 7, 9], within=part, beyond=part)
    found = stored.looked("code", "as-is", "within")
    assert found.edges == [0, 2, 7, 9]
    assert found.weights.tolist() == [0.5, 0.25, 0.0]
    assert found.scores[:2].tolist() == [1.0, -2.0]
    assert found.scores[2].isnan()
    with pytest.raises(ValueError, match="where must be one of"):
        stored.looked("code", "as-is", "far")


def test_what_was_recalled_is_counted_by_group(put):
    questions = {
        "block": [0, 0, 1, 1, 1],
        "distance": [10, 8193, 8192, 8193, 9000],
        "double": [True, False] * 2 + [True],
    }
    found = {
        "recalled": [True, False, True, False, False],
        "nats": [1.0, 3.0, 2.0, 9.0, 11.0],
        "prefers": [-1.0, None, 0.5, None, 2.0],
        "within": 3.0,
        "beyond": 4.0,
    }
    other = {**found, "recalled": [True] * 5, "nats": [0.0] * 5, "within": 2.0}
    put("recall", questions={"a": questions, "b": questions}, found={"a": {"yarn": found}, "b": {"yarn": other}})
    both = stored.recalled("yarn", ("a", "b"))
    assert (both.within, both.beyond) == (2.5, 4.0)
    assert both.asked == {"within": 4, "near": 2, "far": 4}
    assert both.answered == {"within": 3, "near": 2, "far": 2}
    assert both.nats == {"within": 1.0, "near": 1.0, "far": 5.0}
    assert both.doubled == {"within": 2, "near": 2, "far": 2}
    assert both.nearest == {"within": 0, "near": 2, "far": 2}
    assert stored.recalled("yarn", ["b"]).answered == {"within": 2, "near": 1, "far": 2}
    with pytest.raises(KeyError, match="ntk"):
        stored.recalled("ntk", ["b"])


@pytest.mark.parametrize(("name", "key"), [("recall", "found"), ("four", "losses")])
def test_what_joins_rows_counts_their_devices(name, key):
    joint = results.load(name)
    rows = [f"{name}-{text}-{change}" for text, changes in joint[key].items() for change in changes]
    made = [results.load(row)["provenance"] for row in rows]
    assert joint["devices"] == Counter(one["device"] for one in made)
    assert joint["dates"] == [min(one["date"] for one in made)[:10], max(one["date"] for one in made)[:10]]
