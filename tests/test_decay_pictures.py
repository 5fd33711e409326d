"""Test that the figures in the chapter on decay draw what the package computes, and that their alternative texts
describe what is shown."""

from functools import partial

import pytest
import torch

from ropebook import decay as D
from ropebook import figures
from ropebook.decay import pictures


@pytest.fixture
def drawn(monkeypatch):
    """Return the displayed figures as tuples (fig, alt, caption). Each figure is also written as SVG, as on a page."""
    found = []

    def display_figure(fig, alt, caption):
        assert "<svg" in figures.svg(fig, alt)
        found.append((fig, alt, caption))

    monkeypatch.setattr(pictures, "display_figure", display_figure)
    return found


def line(ax, k=0):
    return [torch.tensor(values, dtype=torch.float64) for values in ax.lines[k].get_data()]


def test_trends_are_the_means_of_windows(drawn):
    pictures.trends(10**4)
    [(fig, _, _)] = drawn
    for ax, dim in zip(fig.axes, (8, 256), strict=True):
        middles, found = D.trend(partial(D.share, dim=dim), 10**4)
        assert ax.get_title(loc="left") == f"d = {dim}"
        assert all(map(torch.allclose, line(ax), (middles, found.mean)))


def test_the_band_of_random_scores_is_level(drawn):
    pictures.random_band(16, samples=400)
    [(fig, alt, caption)] = drawn
    distances, mean = line(fig.axes[0])
    assert mean.abs().max() < 5 * 4 / 400**0.5
    assert torch.allclose(line(fig.axes[0], 1)[1], 2 * D.distance_kernel(distances.long(), 16))
    assert "about 4 to each side" in alt
    assert "for d = 16 and" in caption


def test_the_grid_has_a_panel_for_each_base_and_dimension(drawn):
    pictures.sweep_grid(64)
    [(fig, alt, caption)] = drawn
    assert len(fig.axes) == 60
    for number, base, dim in ((0, 1.0, 8), (8, 2.0, 32), (59, 1e7, 256)):
        expected = D.trend(partial(D.share, dim=dim, base=base), 64)[1].mean
        assert torch.allclose(line(fig.axes[number])[1], expected)
    assert [fig.axes[k].get_ylabel() for k in (0, 24, 36, 54)] == ["1", "500", "10⁴", "10⁷"]
    assert "ten bases from 1 to ten million and six dimensions from 8 to 256" in alt
    assert "from 1 to 64" in caption


def test_walks_end_at_the_last_partial_sum(drawn):
    pictures.walks(32)
    [(fig, alt, _)] = drawn
    for ax, distance in zip(fig.axes, (3, 300, 30_000), strict=True):
        x, y = line(ax)
        assert len(x) == 17
        end = D.partial_sums(distance, 32)[-1]
        assert torch.allclose(torch.stack((x[-1], y[-1])), torch.view_as_real(end), atol=1e-6)
    assert alt.startswith("Three walks of 16 steps")


def test_the_falling_mean_and_its_levels(drawn):
    pictures.falling_mean(128, 10**4)
    [(fig, _, caption)] = drawn
    expected = D.trend(partial(D.mean_partial_sum, dim=128), 10**4)[1].mean
    ax = fig.axes[0]
    assert torch.allclose(line(ax)[1], expected)
    assert [line(ax, k)[1][0].item() for k in (1, 2)] == [D.random_walk_level(128), D.partial_sum_floor(128)]
    assert "At Δ = 0 it is 32.5, and it falls to about 4.8" in caption


def test_bounds_are_drawn_as_shares_of_the_triangle_inequality(drawn):
    vectors = {"ones": torch.ones(16), "first": torch.eye(16)[0]}
    pictures.bounds_beside_scores(vectors)
    [(fig, _, caption)] = drawn
    for ax, (name, vector) in zip(fig.axes, vectors.items(), strict=True):
        places, shares = line(ax, 1)
        found = D.bounds(vector, vector, places.long())
        assert ax.get_title(loc="left") == name
        assert torch.allclose(shares, found.abel / found.triangle)
        assert torch.allclose(line(ax)[1], found.score.abs() / found.triangle)
    assert "d = 16" in caption


def test_islands_are_where_the_runs_are(drawn):
    runs = {"1k": [(4300.0, 4330.0, 4), (6020.0, 1e8, 9)], "2k": [(2e4, 2e4, 1)]}
    pictures.islands(runs, {"1k": 4.3e3, "2k": 1.6e4}, {"1k": 4.3e3, "2k": 2e4}, "Measured somewhere.")
    [(fig, _, caption)] = drawn
    bars = [(bar.get_y() + 0.25, bar.get_x(), bar.get_width()) for bar in fig.axes[0].patches]
    assert bars[0] == (0, 4300, pytest.approx(4300 * 0.012))  # if its width were 30, it would be invisible
    assert bars[1] == (0, 6020, 1e8 - 6020)
    assert bars[2] == (1, 2e4, pytest.approx(240))
    assert [text.get_text() for text in fig.axes[0].get_yticklabels()] == ["1k", "2k"]
    assert caption.endswith("Measured somewhere.")
