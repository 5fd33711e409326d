"""Test that the figures in the chapter on relatives show what the package computes."""

from __future__ import annotations

import torch

from ropebook import relatives as R
from ropebook.relatives import pictures


def test_what_a_distance_gives_is_the_bias_or_the_turn():
    apart = torch.tensor([0.0, 3.0, -5.0], dtype=torch.float64)
    assert torch.equal(pictures.given(R.ALiBi(2), apart, 4, 2), R.ALiBi(2).bias([0], -apart)[:, 0])
    turned = pictures.given(R.Rope(2), apart, 2, 1)[0]
    assert torch.allclose(turned, (2 * apart.cos() - 2) / 2**0.5)
    faded = pictures.given(R.XPos(2), apart, 2, 1)[0]
    assert torch.allclose(faded, (2 * (0.4 / 1.4) ** (apart / 512) * apart.cos() - 2) / 2**0.5)


def test_six_panels_side_by_side(monkeypatch):
    shown = []
    monkeypatch.setattr(pictures, "display_figure", lambda *given: shown.append(given))
    pictures.side_by_side(dim=8, heads=3, farthest=150)
    [(fig, alt, caption)] = shown
    assert [len(ax.lines) for ax in fig.axes] == [3, 3, 3, 1, 1, 1]
    line = fig.axes[2].lines[1].get_ydata()
    assert torch.allclose(torch.as_tensor(line), R.Sandwich(3, 8).bias([0], torch.arange(151))[1, 0])
    assert "3 heads, d = 8" in caption
    assert "up to 150" in alt


def test_costs_and_times_are_columns_of_tables():
    columns = pictures.cost_columns(4, 8, 16)
    assert columns["scheme"] == [facts.title for facts in R.FACTS.values()]
    row = columns["scheme"].index("ALiBi")
    assert [column[row] for column in columns.values()][3:] == [0, 2, 0]
    assert pictures.cost_columns(32, 128, 4096)["held (MiB)"][row] == 2048
    entries = [
        {"scheme": "rope", "way": "plain", "ms": 3.0},
        {"scheme": "cope", "way": "plain", "ms": 9.0},
        {"scheme": "rope", "way": "flex", "ms": 2.0},
    ]
    found = pictures.time_columns({"entries": entries})
    assert list(found.values()) == [["RoPE", "CoPE"], [3.0, 9.0], [None, None], [2.0, None]]
