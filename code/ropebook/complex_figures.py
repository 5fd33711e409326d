"""Drawings for the chapter *RoPE in the complex plane*: products as arrows, a score as a sum of waves, and a score with
its mirror image."""

from __future__ import annotations

import math

import torch
from matplotlib.figure import Figure
from torch import Tensor

from ropebook.complex_plane import score_at, waves
from ropebook.figures import BLUE, MUTED, ORANGE, figure


def arrows(products: Tensor, without: Tensor) -> Figure:
    """Draw complex numbers as numbered arrows in two planes. On the left are the ``products``, which are all equal; on
    the right are the same products ``without`` the conjugate. Both arguments are complex tensors of shape (places,)."""
    fig, axes = figure(480, 270, columns=2, sharex=True, sharey=True)
    reach = 1.25 * max(products.abs().max().item(), without.abs().max().item())
    for ax, found, colour, title in (
        (axes[0], products, BLUE, "with the conjugate"),
        (axes[1], without, ORANGE, "without the conjugate"),
    ):
        ax.axhline(0, color=MUTED, linewidth=1)
        ax.axvline(0, color=MUTED, linewidth=1)
        for z in found.tolist():
            ax.plot(
                [0, z.real],
                [0, z.imag],
                color=colour,
                linewidth=1.5,
                marker="o",
                markevery=[1],
                markersize=6,
            )
        ax.set(
            title=title, xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal"
        )
        ax.set(xticks=[], yticks=[], xlabel="real part")
        ax.grid(False)
    tips = [(products[0], f"0 … {len(products) - 1}", BLUE, axes[0])]
    tips += [(z, str(n), ORANGE, axes[1]) for n, z in enumerate(without)]
    for z, text, colour, ax in tips:
        # in pixels from the tip, so that the names keep off the dots and the axes at any size
        away = math.copysign(7, z.real), math.copysign(9, z.imag)
        where = {"textcoords": "offset points", "va": "center", "color": colour}
        side = "left" if z.real > 0 else "right"
        ax.annotate(text, (z.real.item(), z.imag.item()), away, ha=side, **where)
    axes[0].set_ylabel("imaginary part")
    return fig


def waves_and_sum(a: Tensor, b: Tensor, base: float, reach: int = 40) -> Figure:
    """Draw each pair's wave and, below them, the sum of the waves, which is the score. Distances run from −``reach`` to
    ``reach``. ``a``, ``b``: (dim/2,)."""
    pairs = len(a)
    between, whole = (
        torch.linspace(-reach, reach, 16 * reach + 1, dtype=torch.float64),
        torch.arange(-reach, reach + 1),
    )
    cos, sin = waves(between, 2 * pairs, base).split(pairs, -1)
    fig, axes = figure(
        480, 420, rows=pairs + 1, sharex=True, height_ratios=[1] * pairs + [2.2]
    )
    top = 1.1 * torch.hypot(a, b).max().item()
    for i, ax in enumerate(axes[:-1]):
        ax.plot(
            between, a[i] * cos[:, i] + b[i] * sin[:, i], color=MUTED, linewidth=1.5
        )
        ax.set(ylim=(-top, top), yticks=[0], ylabel=f"pair {i}")
    axes[-1].plot(between, score_at(between, a, b, base), color=BLUE, linewidth=1.2)
    axes[-1].plot(whole, score_at(whole, a, b, base), ".", color=BLUE, markersize=5)
    axes[-1].set(xlabel="distance Δ = m − n", ylabel="S(Δ)", yticks=[0])
    return fig


def mirrored(curves: dict[str, tuple[Tensor, Tensor]], reach: int = 48) -> Figure:
    """Plot scores against distance, each with its mirror image as a dashed line. ``curves`` maps the name of each row
    to the amplitudes (a, b) of its score."""
    whole = torch.arange(-reach, reach + 1)
    fig, axes = figure(480, 330, rows=len(curves), sharex=True)
    for ax, (name, (a, b)) in zip(axes, curves.items(), strict=True):
        curve = score_at(whole, a, b)
        ax.plot(whole, curve.flip(0), color=MUTED, linewidth=1.2, linestyle="--")
        ax.plot(whole, curve, color=BLUE, linewidth=1.2, marker=".", markersize=5)
        ax.set(title=name, ylabel="S(Δ)")
    axes[-1].set(xlabel="distance Δ = m − n", xlim=(-reach - 1, reach + 1))
    return fig
