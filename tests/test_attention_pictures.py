"""Test that each figure in the chapter is displayed once, shows the given data, and has alternative text."""

import pytest
import torch

from ropebook.attention import Rows, causal_mask, pictures


@pytest.fixture
def shown(monkeypatch):
    """Return what was displayed, as tuples (figure, alternative text, caption)."""
    found = []
    monkeypatch.setattr(pictures, "display_figure", lambda *arguments: found.append(arguments))
    return found


def lines(ax):
    return [line.get_ydata().tolist() for line in ax.lines]


def test_gradient_sizes(shown):
    rows = {n: [Rows(0.5, n / 1e5, 0, 0, 0), Rows(0.5, n / 1e6, 0, 0, 0)] for n in (16, 256, 4096)}
    pictures.gradient_sizes([1, 2], scaled=rows, without=rows)
    ((fig, _, _),) = shown
    assert lines(fig.axes[0])[0] == [16 / 1e5, 16 / 1e6]
    assert fig.axes[0].texts[0].get_text() == "16 keys"


def test_mask_panels(shown):
    pictures.mask_panels({"causal": causal_mask(3), "all": torch.ones(3, 3, dtype=torch.bool)})
    ((fig, alt, _),) = shown
    assert [ax.get_title(loc="left") for ax in fig.axes] == ["causal", "all"]
    assert "causal, all" in alt


@pytest.mark.parametrize(("n_kv_heads", "places"), [(4, [0, 1, 2, 3]), (2, [0.5, 0.5, 2.5, 2.5]), (1, [1.5] * 4)])
def test_shared_heads(shown, n_kv_heads, places):
    pictures.shared_heads(4, {"some": n_kv_heads, "all": 4})
    ((fig, _, _),) = shown
    ends = [line.get_xdata()[-1] for line in fig.axes[0].lines if len(line.get_xdata()) == 2]
    assert ends == places


def test_memory_and_time(shown):
    kept, took = {"a": [1, 2], "b": [3, 4]}, {"a": [5, 6], "b": [7, 8]}
    pictures.memory_and_time([8, 16], [9, 10], kept, took, "a machine")
    ((fig, _, caption),) = shown
    left, right = fig.axes
    assert lines(left) == [[9, 10], [1, 2], [3, 4]]
    assert lines(right) == [[5, 6], [7, 8]]
    assert caption.endswith("a machine.")
