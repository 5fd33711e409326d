"""Still figures: a few SVG elements as text, in the page's colours."""

from __future__ import annotations

import math
from html import escape

LIGHT = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "grid": "#d1d9e0",
    "pos": "#0b62c4",
    "neg": "#b3470a",
    "1": "#0b62c4",
    "2": "#b3470a",
    "3": "#14733c",
    "4": "#8a2fa3",
}
"""The page's colours where the page defines none."""

BOLD = "font-weight:600"
"""The style of a title."""


def colour(name: str) -> str:
    """The CSS value of a colour of the page.

    >>> colour("ink")
    'var(--fig-ink, #1f2328)'
    """
    return f"var(--fig-{name}, {LIGHT[name]})"


def exact(value: float, decimals: int = 3) -> str:
    """So many decimals, with a minus sign that is as wide as a plus.

    >>> exact(-0.25, 2)
    '−0.25'
    """
    return f"{value:.{decimals}f}".replace("-", "−")


def lowered(number: int) -> str:
    """A number as an index.

    >>> lowered(12)
    '₁₂'
    """
    return str(number).translate(str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉"))


def picture(width: float, height: float, elements: list[str], alt: str) -> str:
    """One inline SVG, shrinking with its column; ``alt`` is what it is called."""
    style = (
        "display:block;max-width:100%;height:auto;"
        "font:400 13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;font-variant-numeric:tabular-nums"
    )
    # No line ends and no indentation: Markdown would take them for paragraphs and code.
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(alt)}" width="{width:g}" '
        f'height="{height:g}" viewBox="0 0 {width:g} {height:g}" style="{style}">{"".join(elements)}</svg>'
    )


def rect(
    x: float,
    y: float,
    width: float,
    height: float,
    fill: str,
    opacity: float = 1.0,
    radius: float = 3,
) -> str:
    """A filled rectangle. Opacities up to 0.55 leave the page's ink readable on it, in light and dark alike."""
    box = f'x="{x:.6g}" y="{y:.6g}" width="{width:.6g}" height="{height:.6g}" rx="{radius:g}"'
    return f'<rect {box} style="fill:{colour(fill)};fill-opacity:{opacity:.3f}"/>'


def text(
    x: float,
    y: float,
    words: str,
    anchor: str = "start",
    fill: str = "ink",
    style: str = "",
) -> str:
    """A line of text; ``anchor`` is start, middle or end."""
    where = f'x="{x:.6g}" y="{y:.6g}" text-anchor="{anchor}"'
    return (
        f'<text {where} style="fill:{colour(fill)};{style}">{escape(words)}</text>'
    )


def line(points: list[tuple[float, float]], stroke: str, width: float = 1.0) -> str:
    """A line through the points."""
    return path(
        "M" + "L".join(f"{x:.6g},{y:.6g}" for x, y in points), stroke, width
    )


def arrow(
    tail: tuple[float, float],
    tip: tuple[float, float],
    stroke: str,
    width: float,
    head: float = 10,
) -> str:
    """A line from ``tail`` to ``tip`` with an open head, which is shorter on short arrows."""
    dx, dy = tip[0] - tail[0], tip[1] - tail[1]
    length = math.hypot(dx, dy)
    size = min(head / length, 0.5) if length else 0.0
    sides = []
    for turn in (0.45, -0.45):
        cos, sin = math.cos(turn), math.sin(turn)
        sides.append(
            (
                tip[0] - size * (cos * dx - sin * dy),
                tip[1] - size * (sin * dx + cos * dy),
            )
        )
    ends = [f"{x:.2f},{y:.2f}" for x, y in (tail, tip, *sides)]
    return path(
        f"M{ends[0]}L{ends[1]}M{ends[2]}L{ends[1]}L{ends[3]}", stroke, width
    )


def ring(centre: tuple[float, float], radius: float) -> str:
    """A whole circle as the ``d`` of a path.

    >>> ring((5, 6), 2)
    'M3.00,6.00a2.00,2.00 0 1 0 4.00,0a2.00,2.00 0 1 0 -4.00,0'
    """
    arc = f"a{radius:.2f},{radius:.2f} 0 1 0"
    return f"M{centre[0] - radius:.2f},{centre[1]:.2f}{arc} {2 * radius:.2f},0{arc} -{2 * radius:.2f},0"


def path(d: str, name: str, width: float = 0.0, opacity: float = 1.0) -> str:
    """A path ``d`` in the colour ``name``: a line of this width, or an area if it is 0."""
    if width:
        return f'<path d="{d}" style="fill:none;stroke:{colour(name)};stroke-width:{width:g}"/>'
    return f'<path d="{d}" style="fill:{colour(name)};fill-opacity:{opacity:g}"/>'


def dot(x: float, y: float, radius: float, fill: str) -> str:
    """A filled circle."""
    return f'<circle cx="{x:.6g}" cy="{y:.6g}" r="{radius:g}" style="fill:{colour(fill)}"/>'
