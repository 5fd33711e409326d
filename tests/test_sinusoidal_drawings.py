"""Test that the drawings on the chapter's pages show what the module computes."""

import pytest
import torch

from ropebook import figures
from ropebook import sinusoidal as S


@pytest.fixture
def drawn(monkeypatch):
    """Return the displayed figures as tuples (figure, alternative text, caption). Each figure is also written as
    SVG."""
    shown = []

    def show(fig, alt, caption):
        figures.svg(fig, alt)  # this raises an error if a colour can't follow the page's theme
        shown.append((fig, alt, caption))

    monkeypatch.setattr(figures, "display_figure", show)
    return shown


def test_each_digit_has_its_wave(drawn):
    S.draw_binary_waves(3)
    [(fig, alt, _)] = drawn
    assert len(fig.axes) == 3
    for j, ax in enumerate(reversed(fig.axes)):
        heights = torch.tensor(ax.lines[1].get_ydata())
        assert torch.equal(heights > 0, S.binary_digits(range(8), 3)[:, j] == 1)
    assert "0 to 7" in alt


def test_wavelengths_of_three_bases(drawn):
    S.draw_wavelengths(16, 100)
    [(fig, *_)] = drawn
    *curves, across = fig.axes[0].lines
    for curve, base in zip(curves, (1000, 10_000, 1_000_000), strict=True):
        assert curve.get_ydata() == pytest.approx(S.wavelengths(16, base).tolist())
    assert list(across.get_ydata()) == [100, 100]


def test_the_kernel_with_its_closest_values(drawn):
    S.draw_kernel(64, 20)
    [(fig, _, caption)] = drawn
    line, _, _, twins = fig.axes[0].lines
    assert line.get_ydata() == pytest.approx(S.distance_kernel(range(-20, 21), 64).tolist())
    found = S.closest_values(20, 64)
    assert sorted(twins.get_xdata()) == sorted([-found.first, found.first, -found.second, found.second])
    assert "d = 64" in caption


def test_the_terms_and_their_sum(drawn):
    x, y = torch.randn(2, 8, generator=torch.Generator().manual_seed(0))
    terms = S.slide(x, y, m=4, n=0, shifts=range(100))
    S.draw_terms(terms)
    [(fig, *_)] = drawn
    score, *parts = (torch.tensor(line.get_ydata()) for line in fig.axes[0].lines)
    assert torch.allclose(score, sum(parts))
    assert torch.equal(score, terms.total)


def test_the_turns_within_a_text(drawn):
    S.draw_turns(64, 256)
    [(fig, _, caption)] = drawn
    whole, part, _ = fig.axes[0].lines
    assert min(whole.get_ydata()) >= 1 > max(part.get_ydata())
    assert len(whole.get_ydata()) + len(part.get_ydata()) == 32
    assert "256 tokens" in caption
