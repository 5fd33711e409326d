"""Tests that what the pages show about the second experiment follows from its stored numbers."""

import json

import numpy as np
import pytest

from ropebook.lab import claims, intervals, measured, rule, scores
from tests.lab_worlds import ABLE, WINDOWS, change, ending, world

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def numbers():
    made = ending(world(seed_spread=0.1))
    for seed in SEEDS:
        for extension in ("yarn/4", "none/2/tuned"):
            del made[f"rope-10000-{seed}-3200/{extension}"]["last"]
    return made


def test_a_cell_has_a_row_for_each_seed(numbers):
    cells = measured.cells(numbers)
    for id in ("none", "rope-10000-3200/yarn/4", "rope-10000-3200/none/2/tuned"):
        scheme, _, extension = id.partition("/")
        names = [rule.cell_name(scheme, seed, extension) for seed in SEEDS]
        assert [measured.id_of(name) for name in names] == [(id, seed) for seed in SEEDS]
        for text in rule.TEXTS:
            raw = [np.mean(numbers[name]["numbers"][text], 0) for name in names]
            assert np.allclose(cells[id]["bits"][text], raw, atol=1e-4)
            assert np.shape(cells[id]["curves"][text]) == (3, WINDOWS)
        for seed, name in enumerate(names):
            for length, distances in (("256", scores.DISTANCES[:4]), ("2048", scores.DISTANCES)):
                letters = numbers[name]["numbers"]["order"][length]
                shares = [letters[str(d)].count("1") / len(letters[str(d)]) for d in distances]
                assert cells[id]["order"][length][seed] == pytest.approx(shares, abs=1e-4)
                others = [letters[str(d)].count("o") / len(letters[str(d)]) for d in distances]
                assert sum(others) > 0
                assert cells[id]["other"][length][seed] == pytest.approx(others, abs=1e-4)
    assert cells["alibi"]["last"]["bits"]["python"][2] == pytest.approx(
        np.mean(numbers["alibi-2"]["last"]["python"], 0), abs=1e-4
    )
    assert "last" not in cells["rope-10000-3200/yarn/4"]
    ended = numbers["rope-10000-1-3200/dynamic_ntk"]["ended"]["python"]
    assert cells["rope-10000-3200/dynamic_ntk"]["ended"]["python"][1] == pytest.approx(np.mean(ended, 0), abs=1e-4)


def test_what_a_model_does_not_reach_is_none(numbers):
    cells = measured.cells(numbers)
    assert cells["learned"]["bits"]["python"][1][1:] == [None, None, None]
    assert cells["learned"]["bits"]["python"][1][0] is not None
    assert cells["learned"]["retrieval"]["2048"] == cells["learned"]["other"]["2048"] == [None] * 3
    last = measured.differences(numbers)["last"]["learned"]["python"]
    assert last[0] is not None
    assert last[1:] == [None] * 3


def test_every_seed_has_to_be_there_but_of_a_longer_training(numbers):
    longer = numbers | {"rope-100-0-3200": numbers["rope-100-0"]}
    cells = measured.cells(longer)
    assert len(cells["rope-100-3200"]["bits"]["python"]) == 1
    assert "rope-100-3200" not in measured.differences(longer)["last"]
    few = {name: cell for name, cell in numbers.items() if name != "t5-1"}
    with pytest.raises(ValueError, match=r"numbers must have t5 with the seeds \(0, 1, 2\), got \(0, 2\)"):
        measured.cells(few)
    with pytest.raises(ValueError, match="name must be a cell's"):
        measured.id_of("rope")


def test_differences_are_those_of_the_rule(numbers):
    better = change(numbers, tuple(f"rope-10000-{seed}-3200/linear/4" for seed in SEEDS), beyond=4.0)
    found = measured.differences(better)
    look = rule.Comparison(
        rule.Bits(claims.LONGER, "linear/4", "language", (512, 1024)),
        rule.Bits(claims.LONGER, "", "language", (512, 1024)),
        "lower",
    )
    interval = intervals.crossed(look.table(better))
    assert found["plain"]["rope-10000-3200/linear/4"]["language"][2] == pytest.approx(interval[:3], abs=1e-4)
    assert found["plain"]["rope-10000-3200/linear/4"]["language"][2][2] < -0.5
    assert found["plain"]["rope-10000-3200/linear/4"]["language"][0][0] == pytest.approx(0, abs=0.3)
    # beyond L, a byte costs 2 bits if only the last bytes are kept, and 5 bits in the unchanged model
    assert found["last"]["none"]["python"][3][0] == pytest.approx(3, abs=0.3)
    assert found["none"].keys() == {
        f"rope-10000-3200/{name}/{s}/tuned" for name in ("linear", "yarn_chosen") for s in (2, 4, 8)
    }
    assert "none" not in found["plain"]


def test_verdicts_and_caching_as_the_rule_has_them(numbers):
    found = {row["id"]: row for row in measured.verdicts(numbers, claims.CLAIMS.values(), ABLE)}
    assert found.keys() == claims.CLAIMS.keys()
    for verdict in rule.judge(claims.CLAIMS.values(), numbers, ABLE):
        row = found[verdict.claim.id]
        assert (row["word"], row["counts"]) == (verdict.word, verdict.counts)
        assert [one[3] for one in row["found"]] == [one.outcome for one in verdict.found]
        assert row["found"][0][0] == pytest.approx(verdict.found[0].interval.mean, abs=1e-4)
    caching = measured.caching(numbers)
    raw = [np.mean(numbers[f"rope-10000-{seed}-3200"]["sampled"]["cached"]) for seed in SEEDS]
    by_method = [np.mean(numbers[f"rope-10000-{seed}-3200/dynamic_ntk"]["sampled"]["cached"]) for seed in SEEDS]
    assert caching["cached"] == pytest.approx(by_method, abs=1e-4)
    assert caching["cached"] != pytest.approx(raw, abs=1e-4)
    json.dumps([found, caching, measured.cells(numbers), measured.differences(numbers)], allow_nan=False)


def test_a_training_in_a_few_numbers():
    told = {
        "none-2": {
            "run": {"scheme": "none", "seed": 2, "steps": 1600},
            "epochs": 0.9,
            "seconds": 400.0,
            "parameters": 7,
            "losses": [7.0, 3.0],
            "within": {"retrieval": 1.0, "order": 0.5},
            "development": {"python": [[1.0, 9.0], [2.0, 9.0]], "language": [[3.0, 9.0], [3.5, None]]},
            "headroom": {"python": [[1.0, 1.5], [2.0, 2.5]], "language": [[3.0, 3.5]], "language_floor": [[2.0, 2.25]]},
            "provenance": {"device": "a CPU", "date": "2026-11-23"},
        }
    }
    (row,) = measured.trainings(told)
    assert (row["name"], row["scheme"], row["seed"], row["steps"]) == ("none-2", "none", 2, 1600)
    assert row["bits"] == {"python": 1.5, "language": 3.25}
    assert row["headroom"] == {"python": [1.5, 2.0], "language": [3.0, 3.5]}
    assert row["floor"] == [2.0, 2.25]
    assert (row["retrieval"], row["order"], row["device"]) == (1.0, 0.5, "a CPU")


def test_who_is_able_to_be_asked_for_records():
    found = {
        "none": (1.0, 0.9, 0.75),
        "t5": (1.0, 0.49, 1.0),
        "alibi": (1.0, 1.0),
        "sinusoidal": (0.8, 0.8, 0.64),
        "rope-10000-3200": (0.8, 0.9, 0.56),
    }
    rows = [
        {"name": rule.cell_name(id, seed), "retrieval": share}
        for id, shares in found.items()
        for seed, share in enumerate(shares)
    ]
    assert measured.able(rows) == {"none", "rope-10000-3200"}
