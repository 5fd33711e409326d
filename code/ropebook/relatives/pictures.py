"""Figures for the chapter's pages."""

from __future__ import annotations

import torch

from ropebook.figures import (
    BLUE,
    MUTED,
    display_figure,
    figure,
)
from ropebook.relatives.buckets import imitated
from ropebook.relatives.cost import cost
from ropebook.relatives.curves import Kerple, Sandwich
from ropebook.relatives.facts import FACTS
from ropebook.relatives.scheme import Scheme
from ropebook.relatives.slopes import ALiBi
from ropebook.relatives.turned import Rope, XPos
from ropebook.shapes import Float


def given(
    scheme: Scheme, apart: Float[torch.Tensor, " distances"], dim: int, heads: int
) -> Float[torch.Tensor, "heads distances"]:
    """Return what the distance contributes to a score: the scores at these distances m − n for q = k = (1, …, 1), minus
    the score at distance 0."""
    q, k = (torch.ones(heads, len(apart), dim, dtype=torch.float64) for _ in "qk")
    at = torch.cat((torch.zeros(1, dtype=torch.float64), -apart))
    k = torch.cat((k[:, :1], k), 1)
    scores = scheme.score(q[:, :1], k, [0], at)[:, 0].detach()
    return scores[:, 1:] - scores[:, :1]


def side_by_side(dim: int = 64, heads: int = 8, farthest: int = 256) -> None:
    """Plot what each of six schemes adds to a score against the distance, with a line for each head."""
    apart = torch.arange(farthest + 1, dtype=torch.float64)
    # If all heads of a scheme are alike, we draw only one of them.
    panels = (
        ("ALiBi", ALiBi(heads), heads, MUTED),
        ("T5 buckets, as ALiBi", imitated(ALiBi(heads)), heads, MUTED),
        ("Sandwich", Sandwich(heads, dim), heads, MUTED),
        ("KERPLE, log", Kerple(1), 1, MUTED),
        ("RoPE, q = k", Rope(dim), 1, BLUE),
        ("xPos, q = k", XPos(dim), 1, BLUE),
    )
    fig, axes = figure(480, 400, rows=3, columns=2, sharex=True, sharey=True)
    for ax, (title, scheme, lines, colour) in zip(axes.flat, panels, strict=True):
        curves = given(scheme, apart, dim, lines)
        ax.plot(apart, curves.T, color=colour, linewidth=1.2)
        ax.set(title=title, ylim=(-14, 1), xlim=(0, farthest))
        ax.set_xticks([0, 64, 128, 192, 256])
    fig.supxlabel("distance Δ", fontsize=12.5)
    fig.supylabel("added to the score", fontsize=12.5)
    display_figure(
        fig,
        f"Six panels show curves against distances up to {farthest}, with a line for each of {heads} heads or a single line for "
        "all. ALiBi's lines are straight, T5 buckets turn them into stairs that are level from about 91 on, and Sandwich's lines "
        "oscillate as they fall. KERPLE's curve falls quickly and then slowly, while those of RoPE and xPos oscillate strongly.",
        f"What each scheme adds to a score at each distance, relative to distance 0, with {heads} heads, d = {dim} and base 10,000. "
        "T5's numbers are set to follow ALiBi's lines. RoPE and xPos are drawn for q = k = (1, …, 1), and KERPLE is drawn "
        "for p = a = 1.",
    )


def cost_columns(n_heads: int, dim: int, length: int) -> dict[str, list]:
    """Return the columns of a table with the counted cost of each scheme, in the order of `FACTS`."""
    found = {name: cost(name, n_heads, dim, length) for name in FACTS}
    return {
        "scheme": [FACTS[name].title for name in found],
        "held (MiB)": [round(4 * one.held / 2**20) for one in found.values()],
        "fused (KiB)": [
            None if one.fused is None else round(4 * one.fused / 1024, 2)
            for one in found.values()
        ],
        "learned numbers": [one.learned for one in found.values()],
        "operations per score": [round(one.flops, 1) for one in found.values()],
        "operations per token and head": [
            round(one.per_token) for one in found.values()
        ],
    }


def time_columns(measured: dict) -> dict[str, list]:
    """Return the columns of a table with the times in ``results.load("relatives")``, which has a row for each
    scheme."""
    times = {
        (entry["scheme"], entry["way"]): entry["ms"]
        for entry in measured["entries"]
    }
    names = list(dict.fromkeys(name for name, _ in times))
    heads = {
        "plain": "plain code (ms)",
        "fused": "fused (ms)",
        "flex": "FlexAttention (ms)",
    }
    columns = {"scheme": [FACTS[name].title for name in names]}
    for way, head in heads.items():
        columns[head] = [times.get((name, way)) for name in names]
    return columns
