"""Test that the figure in the chapter on longer texts shows what the methods compute."""

import torch

from ropebook import extrapolation as X
from ropebook import figures
from ropebook.extrapolation import pictures
from ropebook.rope import inv_freq


def test_stretches_are_those_of_the_methods(monkeypatch):
    drawn = []
    monkeypatch.setattr(pictures, "display_figure", lambda *given: drawn.append(given))
    pictures.stretches(inv_freq(128), 4096, 16384)
    [(fig, alt, caption)] = drawn
    assert "<svg" in figures.svg(fig, alt)
    ax = fig.axes[0]
    found = {line.get_label(): torch.tensor(line.get_ydata()) for line in ax.lines[:6]}
    for name, method in (
        ("dynamic NTK, s = 4", X.DynamicNTK(4096, 4.0)),
        ("interpolation", X.Interpolation(4.0)),
        ("NTK-aware", X.NTKAware(4.0)),
        ("by parts", X.NTKByParts(4.0, 4096)),
        ("YaRN's code", X.YaRN(4.0, 4096)),
        ("Llama 3.1", X.NTKByParts(4.0, 4096, beta=4.0)),
    ):
        assert torch.equal(found[name], X.stretch(method, inv_freq(128), 16384))
    assert ax.lines[6].get_xdata()[0] == 45.5  # 46 of the 64 pairs complete a turn
    assert caption.startswith("How much each pair is stretched, for d = 128, L = 4,096 and a text 4 times that long. ")
