"""Convert inline drawings to images, which a notebook shows even before it has been run.

Jupyter does not trust notebooks from elsewhere: it removes `<svg>` elements from HTML outputs and leaves only the text
inside them. It does show an `<img>` with the same drawing.
"""

from __future__ import annotations

import base64
import html
import re
from xml.etree import ElementTree

SVG = "http://www.w3.org/2000/svg"
# An image can't use the page's font or colours, so it gets its own font, and a white background for dark pages.
ALONE = {"background": "#fff", "font-family": "system-ui, sans-serif"}
SIZES = ("display", "width", "max-width", "height")


def as_images(markup: str) -> str:
    """Return the HTML with each outermost `<svg>` replaced by an `<img>`. The drawing's `aria-label` becomes the `alt`
    text. Drawings for phones, which only the book's style sheet shows, are left out.

    Raises:
        ValueError: a drawing is not well-formed XML, or has neither a `viewBox` nor a width and height.
    """
    done, start, depth, parts = 0, 0, 0, []
    for tag in re.finditer(r"<svg\b[^>]*>|</svg>", markup):
        if tag[0] == "</svg>":
            depth -= 1
            if depth == 0:
                svg = markup[start : tag.end()]
                parts += [markup[done:start], "" if svg.startswith('<svg class="fig-narrow') else _image(svg)]
                done = tag.end()
        else:
            if depth == 0:
                start = tag.start()
            depth += 1
    return "".join([*parts, markup[done:]])


def _image(svg: str) -> str:
    ElementTree.register_namespace("", SVG)
    if "xmlns=" not in svg.partition(">")[0]:  # optional inside a page, but required in a file
        svg = svg.replace("<svg", f'<svg xmlns="{SVG}"', 1)
    try:
        root = ElementTree.fromstring(svg)
    except ElementTree.ParseError as error:
        raise ValueError(f"a drawing is not well-formed XML: {error}") from error
    style = dict(re.findall(r"\s*([\w-]+)\s*:\s*([^;]+)", root.get("style", "")))
    box = root.get("viewBox", f"0 0 {root.get('width')} {root.get('height')}").split()
    wanted = (root.get("width", ""), style.get("max-width", ""), box[2])
    try:
        width = round(next(float(size.removesuffix("px")) for size in wanted if re.fullmatch(r"[\d.]+(px)?", size)))
        height = round(width * float(box[3]) / float(box[2]))
    except (StopIteration, ValueError) as error:
        raise ValueError("a drawing has neither a viewBox nor a width and a height") from error
    shown = {**ALONE, **{name: value for name, value in style.items() if name not in SIZES}}
    root.set("style", "; ".join(f"{name}: {value}" for name, value in shown.items()))
    root.set("width", str(width))
    root.set("height", str(height))
    data = base64.b64encode(ElementTree.tostring(root, encoding="unicode").encode()).decode()
    alt = html.escape(root.get("aria-label", ""))
    return f'<img alt="{alt}" width="{width}" src="data:image/svg+xml;base64,{data}">'
