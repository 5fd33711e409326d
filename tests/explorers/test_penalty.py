"""Tests specific to the Penalty explorer."""

from __future__ import annotations

import json
import re
import tomllib

import pytest
import torch

from ropebook import results
from ropebook.explorers import penalty
from ropebook.explorers.penalty import Penalty
from ropebook.real import rule, stored
from tests.explorers import js
from tests.explorers.oracles import computed
from tools.paths import ROOT


def test_the_page_carries_the_mean_over_all_heads():
    found, bias = penalty.load(), stored.bias()
    distances = torch.tensor([0.0, 700.0, 12_288.0], dtype=torch.float64)
    expected = bias.mean(distances)
    z = torch.complex(*(torch.tensor(found[part], dtype=torch.float64) for part in ("real", "imag")))
    angles = torch.tensor(found["theta"], dtype=torch.float64) * distances[:, None]
    torch.testing.assert_close(
        (z * torch.polar(torch.ones_like(angles), angles)).real.sum(1), expected, atol=2e-3, rtol=0
    )


def test_the_page_carries_every_loss_that_was_measured():
    losses = penalty.load()["losses"]
    folder = ROOT / "results" / "real"
    expected = {"as-is": ""}
    for path in folder.glob("loss-code-slow-*.json"):
        change = path.stem.removeprefix("loss-code-")
        pairs, by = re.fullmatch(r"slow-([\d-]+?)(?:-by-([\d_]+))?", change).groups()
        first, _, last = pairs.partition("-")
        expected[change] = f"{first}-{last or first}/{(by or '2').replace('_', '.')}"
    assert set(losses) == set(expected.values())
    assert {"", "12-21/2", "17-21/2", "22-26/2", "23-24/2", "27-31/2"} <= set(losses)
    for change, key in expected.items():
        assert losses[key] == pytest.approx(stored.losses("code", change).tolist(), abs=6e-4)
        assert len(losses[key]) * penalty.BLOCK == rule.LENGTH
    assert {float(key.split("/")[1]) for key in losses if key} == set(penalty.FACTORS)
    assert Penalty.factor.declared()["stops"] == list(penalty.FACTORS)
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ropebook"]["results"]
    assert {f"real/loss-code-{change}.json" for change in expected} <= set(listed), "notebooks need them in the wheel"


def test_pairs_that_are_no_band_and_other_methods_are_left_out(tmp_path, monkeypatch):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "bias.json").write_text("{}")
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", tmp_path)
    changes = {
        "as-is": ([], 1.0),
        "slow-random": ([3, 4, 9], 2.0),
        "slow-24": ([24], 2.0),
        "slow-9": ([9], 2.0),
        "slow-22-26-by-1_5": ([22, 23, 24, 25, 26], 1.5),
    }
    for name, (pairs, factor) in changes.items():
        data = {"change": {"pairs": pairs, "factor": factor}, "loss": [float(len(pairs))] * 48}
        (tmp_path / "real" / f"loss-code-{name}.json").write_text(json.dumps(data))
    found = penalty.measured()
    assert list(found) == ["", "9-9/2", "22-26/1.5", "24-24/2"]
    assert found["22-26/1.5"] == [5.0] * 12


def test_bands_that_were_measured_show_their_loss_and_others_do_not():
    keys = [key for key in penalty.load()["losses"] if key]
    expected, cases = [], []
    for key in keys:
        first, last, factor = (float(part) for part in re.split("[-/]", key))
        for a, b in ((int(first), int(last)), (int(last), int(first))):
            cases.append(Penalty(first=a, last=b, factor=factor).dials())
            expected.append(penalty.load()["losses"][key])
    cases.append(Penalty(factor=1.0).dials())
    expected.append(stored_losses("as-is"))
    for dials in ({"first": 21}, {"last": 25}, {"factor": 2.5}, {"factor": 8.0}):
        cases.append(Penalty(**dials).dials())
        expected.append(None)
    for found, losses in zip(js.compute(Penalty._esm, cases), expected, strict=True):
        assert found["losses"] == losses
        assert (found["loss"] is None) == (losses is None)
        assert found["plainLosses"] == stored_losses("as-is")
    [band] = js.compute(Penalty._esm, [Penalty(first=22, last=26, factor=2.0).dials()])
    for name, change in (("loss", "slow-22-26"), ("plainLoss", "as-is")):
        bands = [stored.loss_in("code", change, band) for band in (rule.WITHIN, rule.BEYOND)]
        assert band[name] == pytest.approx(bands, abs=6e-4)


def stored_losses(change):
    return [round(loss, 3) for loss in stored.losses("code", change).tolist()]


def test_the_figure_says_which_losses_were_measured():
    keys = ["", "12-21/2", "22-26/2", "20-20/2", "21-21/2", "22-22/2", "25-25/2", "22-26/1.5", "22-26/3"]
    many, one = ({key: [1.0] for key in some} for some in (keys, ["", "24-24/2"]))
    body = "return input.map(([losses, factor]) => unmeasured(losses, factor));"
    start = "The loss with these pairs slowed was not measured. "
    assert js.inside(Penalty, body, [[many, 2], [many, 3], [many, 2.5], [one, 2], [one, 3]]) == [
        start + "With a factor of 2, it was measured for pairs 12–21, 22–26 and for each of 20–22, 25 alone.",
        start + "With a factor of 3, it was measured for pairs 22–26.",
        start + "It was measured with factors of 1.5, 2 and 3.",
        start + "With a factor of 2, it was measured for pair 24 alone.",
        start + "It was measured with a factor of 2.",
    ]


def test_the_penalty_in_words():
    opening, same, far = js.describe(
        Penalty, [Penalty().dials(), Penalty(factor=1.0).dials(), Penalty(first=20, last=31, factor=8.0).dials()]
    )
    lowest = re.match(
        r"Originally, the mean score is lowest at ([\d,]+) tokens, then rises by [\d.]+ up to 16,384\.", same
    )
    assert same == lowest[0]
    assert int(lowest[1].replace(",", "")) == computed(Penalty)["plainLowest"]
    assert opening.startswith(f"{same} With pairs 22 to 26 slowed, it is lowest at ")
    assert far.startswith(f"{same} With pairs 20 to 31 slowed, it ")
