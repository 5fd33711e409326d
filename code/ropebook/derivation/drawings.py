"""The drawing for the chapter's in-depth pages: one vector at successive positions, either rotated or mirrored."""

from __future__ import annotations

import math

import torch

from ropebook import checks
from ropebook.derivation.families import reflection
from ropebook.derivation.matrices import rotation


def draw_families(positions: int = 10, angle: float = 1.2) -> None:
    """Draw one vector at positions 0 … positions − 1, under rotations and under the powers of a reflection.

    ``positions``: at least 2. ``angle``: the reflection's angle in radians; its mirror is the line at angle/2.
    """
    from ropebook.figures import BLUE, INK, MUTED, display_figure, figure

    positions = checks.integer("positions", positions, minimum=2, maximum=20)
    start = torch.tensor([1.0, 0.4], dtype=torch.float64)
    mirror = reflection(angle)
    spun = torch.stack([rotation(n / 2) @ start for n in range(positions)])
    mirrored = torch.stack(
        [torch.linalg.matrix_power(mirror, n) @ start for n in range(positions)]
    )
    around = rotation(torch.linspace(0, 2 * math.pi, 121).double()) @ start
    fig, axes = figure(480, 250, columns=2, sharey=True)
    titles = ("rotations by n/2", "powers of a reflection")
    for ax, points, title in zip(axes, (spun, mirrored), titles, strict=True):
        ax.plot(*around.T, color=MUTED, linewidth=1)
        ax.plot(*points.T, "o", color=BLUE, markersize=7)
        ax.set(title=title, aspect="equal", xlim=(-1.6, 1.6), ylim=(-1.6, 1.6))
        ax.set(xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        ax.grid(False)  # its lines would run through the numbers
    for n, point in enumerate(spun):
        axes[0].text(*(1.28 * point), str(n), ha="center", va="center", color=INK)
    end = 1.5 * rotation(angle / 2)[:, 0]
    axes[1].plot(*torch.stack((-end, end)).T, "--", color=MUTED)
    # in pixels from the points, so that the names keep off the circle and the dashed line at any size
    for n, name, away in ((0, "even n", (7, -8)), (1, "odd n", (3, 14))):
        where = {"textcoords": "offset points", "va": "center"}
        axes[1].annotate(name, mirrored[n], away, color=INK, **where)
    display_figure(
        fig,
        f"Two circles. On the left, {positions} dots, numbered from 0, go around the circle in equal steps. On the "
        "right, there are only two dots, on either side of a dashed line: one for all even positions and one for all "
        "odd ones.",
        f"One vector at positions 0 to {positions - 1}, moved by rotations (left) or by the powers of a reflection in "
        "the dashed line (right). Both families give scores that depend only on the distance.",
    )
