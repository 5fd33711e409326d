"""Tests specific to the Penalty explorer."""

from __future__ import annotations

import pytest
import torch

from ropebook.explorers import penalty
from ropebook.explorers.penalty import Penalty
from ropebook.real import rule, stored
from tests.explorers import js
from tests.explorers.oracles import computed


def test_the_page_carries_the_mean_over_all_heads():
    found, bias = penalty.load(), stored.bias()
    distances = torch.tensor([0.0, 700.0, 12_288.0], dtype=torch.float64)
    expected = bias.mean(distances)
    z = torch.complex(*(torch.tensor(found[part], dtype=torch.float64) for part in ("real", "imag")))
    angles = torch.tensor(found["theta"], dtype=torch.float64) * distances[:, None]
    torch.testing.assert_close(
        (z * torch.polar(torch.ones_like(angles), angles)).real.sum(1), expected, atol=2e-3, rtol=0
    )
    assert found["losses"]["22-26"] == pytest.approx(
        [stored.loss_in("code", "slow-22-26", band) for band in (rule.WITHIN, rule.BEYOND)], abs=6e-4
    )


def test_bands_that_were_measured_show_their_loss_and_others_do_not():
    for first, last in penalty.MEASURED:
        assert computed(Penalty, first=first, last=last)["loss"] is not None
        assert computed(Penalty, first=last, last=first)["loss"] is not None
    assert computed(Penalty, first=21, last=26)["loss"] is None
    assert computed(Penalty, factor=3.0)["loss"] is None
    assert computed(Penalty, factor=1.0)["loss"] == computed(Penalty)["plainLoss"]


def test_the_penalty_in_words():
    opening, same, far = js.describe(
        Penalty, [Penalty().dials(), Penalty(factor=1.0).dials(), Penalty(first=20, last=31, factor=8.0).dials()]
    )
    assert opening.startswith("At distance 12288 the mean score is ")
    assert "with pairs 22–26 slowed" in opening
    assert "No pair is slowed" in same
    assert "with pairs 20–31 slowed" in far
