"""`{front}`: the picture that readers see first.

Each token of a sentence has an arrow that is rotated by the token's position.

    ```{front} the cat sat down when it got tired
    :query: it
    :key: cat
    :degrees: 30

    What one sees, in a sentence.

    - [A way in](page.md)
    ```

The drawing is complete without a script. With `front.js`, readers can also move the sentence.
"""

from __future__ import annotations

import math
from html import escape
from typing import ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

ARROW = "M0 0H19M12.5 -5L19 0L12.5 5"
RADIUS = 46


def arrow(degrees: float, name: str = "", scale: float = 1) -> str:
    """Return the SVG of an arrow from the origin, at an angle measured counter-clockwise from the right.

    >>> arrow(90, "front-query")
    '<path class="front-arrow front-query" d="M0 0H19M12.5 -5L19 0L12.5 5" style="transform: rotate(-90deg) scale(1)"/>'
    """
    look = f"front-arrow {name}".strip()
    return f'<path class="{look}" d="{ARROW}" style="transform: rotate({-degrees:g}deg) scale({scale:g})"/>'


def sector(begin: float, end: float, radius: float = 26) -> str:
    """Return the SVG path of the sector between two directions, given in degrees.

    Of the two possible sectors, it is the one that covers at most half of the circle.

    >>> sector(0, 90, 10)
    'M0 0L10.0 0.0A10 10 0 0 0 0.0 -10.0Z'
    >>> sector(90, 0, 10)
    'M0 0L0.0 -10.0A10 10 0 0 1 10.0 0.0Z'
    """
    (x1, y1), (x2, y2) = (
        (radius * math.cos(math.radians(a)), -radius * math.sin(math.radians(a))) for a in (begin, end)
    )
    counter = (end - begin) % 360 <= 180
    numbers = (f"{value + 0.0:.1f}".replace("-0.0", "0.0") for value in (x1, y1, x2, y2))
    x1, y1, x2, y2 = numbers
    return f"M0 0L{x1} {y1}A{radius:g} {radius:g} 0 0 {int(not counter)} {x2} {y2}Z"


def between(degrees: float, query: int, key: int) -> float:
    """Return the angle between the arrows at two positions, from 0 to 180 degrees.

    >>> between(30, 4, 1), between(30, 9, 1)
    (90, 120)
    """
    turned = degrees * (query - key) % 360
    return min(turned, 360 - turned)


def drawing(tokens: list[str], query: int, key: int, degrees: float, start: int = 0) -> str:
    """Return the drawing as it is when the page opens.

    It shows the sentence with its arrows, and the arrows of the two chosen words drawn from a common point.
    """
    looks = {query: "front-query", key: "front-key"}

    def token(k: int) -> str:
        return (
            f'<span class="front-token {looks.get(k, "")}"><svg viewBox="-24 -24 48 48" aria-hidden="true">'
            f'<circle r="22"/>{arrow(degrees * (start + k))}</svg><span>{escape(tokens[k])}</span>'
            f"<small>{start + k}</small></span>"
        )

    angles = [degrees * (start + k) for k in (key, query)]
    label = f"The arrows of {tokens[query]} and {tokens[key]}, {between(degrees, query, key):g} degrees apart."
    pair = (
        f'<svg class="front-pair" viewBox="-52 -52 104 104" role="img" aria-label="{escape(label)}">'
        f'<circle r="{RADIUS}"/><path class="front-sector" d="{sector(*angles)}"/>{arrow(angles[0], "front-key", 2.2)}'
        f"{arrow(angles[1], 'front-query', 2.2)}</svg>"
    )
    return (
        f'<div class="front-stage" data-degrees="{degrees:g}" data-start="{start}"'
        f' data-query="{query}" data-key="{key}">'
        f'<div class="front-line">{"".join(map(token, range(len(tokens))))}</div>'
        f'<div class="front-both">{pair}'
        f'<output class="front-angle">{between(degrees, query, key):g}°</output></div></div>'
    )


class Front(SphinxDirective):
    """The directive `{front} sentence`, described above."""

    required_arguments = 1
    final_argument_whitespace = True
    option_spec: ClassVar = {
        "query": directives.unchanged_required,
        "key": directives.unchanged_required,
        "degrees": float,
    }
    has_content = True

    def run(self) -> list[nodes.Node]:
        tokens = self.arguments[0].split()
        places = {}
        for name in ("query", "key"):
            word = self.options.get(name, "")
            if tokens.count(word) != 1:
                raise self.error(f"{name} must be a word that the sentence has once, got {word!r}")
            places[name] = tokens.index(word)
        if places["key"] >= places["query"]:
            raise self.error("the key must come before the query")
        picture = drawing(tokens, **places, degrees=self.options.get("degrees", 30.0))
        whole = nodes.container("", nodes.raw("", picture, format="html"), classes=["front"], is_div=True)
        self.state.nested_parse(self.content, self.content_offset, whole)
        return [whole]


def setup(app: Sphinx) -> dict:
    app.add_directive("front", Front)
    app.add_css_file("front.css")
    app.add_js_file("front.js", defer="defer")
    return {"parallel_read_safe": True, "parallel_write_safe": True}
