"""Figures that follow the page's colours: a single inline SVG for light pages, dark pages and print.

A chapter draws with matplotlib as usual. `display_figure` then writes the drawing as SVG. In the SVG, every colour is a
CSS variable of the page, with a fallback for light pages, and text remains text. The drawing has no background, so
there is no white box on a dark page.

>>> fig, ax = figure(300, 200)
>>> _ = ax.plot([1, 2, 3], [1, 4, 9])
>>> markup = svg(fig, "A parabola through three points, rising from 1 to 9.")
>>> "stroke: var(--c1)" in markup, "--c1: var(--fig-1, " in markup
(True, True)
"""

import hashlib
import html
import io
import math
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
from cycler import cycler
from IPython.display import display
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from ropebook import checks
from ropebook.colours import HUES, PALETTE
from ropebook.show import SUPERSCRIPTS, with_apostrophes

# The drawing colours. To matplotlib they are ordinary hexadecimal colours; in the SVG they become CSS variables.
INK, MUTED, GRID, PAPER, *COLOURS = (light for light, _ in PALETTE.values())
BLUE, ORANGE, GREEN, VIOLET, CRIMSON, TEAL = COLOURS

# If our variables aren't defined, JupyterLab's are used, and the light colours only if those are missing too. So a dark
# JupyterLab gets light ink.
_IN_JUPYTER = {
    "ink": "content-font-color1",
    "muted": "content-font-color2",
    "grid": "border-color2",
    "paper": "layout-color0",
}


def _variable(name: str, light: str) -> tuple[str, str]:
    """Return the short name that a drawing uses for a colour, and the colour's value as CSS.

    >>> _variable("ink", "#000000")
    ('ink', 'var(--fig-ink, var(--jp-content-font-color1, #000000))')
    >>> _variable("1", "#000000")
    ('c1', 'var(--fig-1, #000000)')
    """
    if name in _IN_JUPYTER:
        light = f"var(--jp-{_IN_JUPYTER[name]}, {light})"
    short = f"c{name}" if name.isdigit() else name
    return short, f"var(--fig-{name}, {light})"


_VARIABLES = {light: _variable(name, light) for name, (light, _) in PALETTE.items()}

_STYLE = {
    "svg.fonttype": "none",  # text remains text: small, selectable, in the page's font
    "svg.hashsalt": "ropebook",
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "axes.facecolor": "none",
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.titlesize": 13,
    "axes.titlelocation": "left",
    "axes.labelsize": 12.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": cycler(color=COLOURS),
    "font.size": 12,
    "grid.color": GRID,
    "grid.linewidth": 0.8,
    "hatch.color": INK,
    "legend.frameon": False,
    "legend.fontsize": 12,
    "lines.linewidth": 2.0,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": INK,
    "patch.facecolor": BLUE,
    "text.color": INK,
    "xtick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.color": MUTED,
    "ytick.labelcolor": INK,
}

# Themes make captions pale and thin, but ours should be as easy to read as the body text.
_CAPTION = "color: inherit; font: inherit; font-size: 0.92em; text-align: left; margin: 0.4em 0 0; padding: 0"
UNDER_NAME = {"facecolor": PAPER, "edgecolor": "none", "pad": 0.8, "alpha": 0.85}
"""The background patch behind a name written in a picture, as a `bbox` for matplotlib."""
NARROW = 330
"""The width, in CSS pixels, of a figure's second drawing, for phones."""
TITLE = 40
"""The height, in CSS pixels, of the words above and below a panel, which doesn't depend on the panel's width."""
MOST_COLOURS = 4
"""The maximum number of colours, not counting greys, for the lines of a panel."""
_HREF = "{http://www.w3.org/1999/xlink}href"


def figure(
    width: float = 480,
    height: float = 300,
    rows: int = 1,
    columns: int = 1,
    **options,
):
    """Make an empty figure in the book's style. Returns `(fig, ax)`, or for several panels `(fig, axes)` with an array
    of axes.

    `width` and `height` are in CSS pixels; text in the drawing is 12 CSS pixels high. The page scales the drawing to
    its column, and enlarges it by at most a quarter. The function also switches matplotlib to the book's settings for
    the rest of the session. Further options are passed to `Figure.subplots`.
    """
    checks.number("width", width, minimum=50, maximum=2000)
    checks.number("height", height, minimum=50, maximum=2000)
    matplotlib.rcParams.update(_STYLE)
    # There are 72 points to an inch, so one point becomes one pixel.
    fig = Figure(figsize=(width / 72, height / 72), layout="constrained")
    FigureCanvasSVG(fig)
    return fig, fig.subplots(rows, columns, **options)


def heatmap(
    ax,
    values,
    *,
    limit: float | None = None,
    rows=None,
    columns=None,
    form: str | None = "{:.2f}",
):
    """Draw a table of numbers as coloured cells: blue above zero, orange below, and more opaque for larger absolute
    values.

    Args:
        ax: the axes; its grid and ticks are replaced.
        values: (rows, columns), at most 4,096 cells; NaN is written as text and gets no colour.
        limit: the absolute value that gets the full colour; by default the largest finite absolute value.
        rows, columns: labels of the rows and the columns.
        form: the format of the number in each cell; None leaves the cells without numbers.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.ndim != 2 or not 1 <= values.size <= 4096:
        raise ValueError(
            f"values must be a table of 1 to 4,096 cells, got the shape {values.shape}"
        )
    for name, labels, length in (
        ("rows", rows, values.shape[0]),
        ("columns", columns, values.shape[1]),
    ):
        if labels is not None and len(labels) != length:
            raise ValueError(f"{name} must hold {length} labels, got {len(labels)}")
    finite = np.abs(values[np.isfinite(values)])
    if limit is None:
        limit = finite.max() if finite.size and finite.max() > 0 else 1.0
    checks.number("limit", limit, above=0)
    for (row, column), value in np.ndenumerate(values):
        # At most 0.6 opaque, so that numbers in the page's text colour can be read on any cell, light or dark.
        if value > 0 or value < 0:
            alpha = 0.6 * min(abs(value) / limit, 1.0)
            colour = BLUE if value > 0 else ORANGE
            ax.add_patch(
                Rectangle(
                    (column, row), 1, 1, facecolor=colour, alpha=alpha, linewidth=0
                )
            )
        if form is not None:
            text = form.format(value).replace("-", "−")
            ax.text(
                column + 0.5,
                row + 0.5,
                text,
                ha="center",
                va="center",
                rotation_mode="anchor",
            )
    ax.set(xlim=(0, values.shape[1]), ylim=(values.shape[0], 0), aspect="equal")
    ax.grid(False)
    ax.tick_params(length=0, top=False, labeltop=True, labelbottom=False)
    ax.xaxis.set_label_position("top")
    ax.set_xticks(
        np.arange(values.shape[1]) + 0.5 if columns is not None else [], columns
    )
    ax.set_yticks(
        np.arange(values.shape[0]) + 0.5 if rows is not None else [], rows
    )
    for spine in ax.spines.values():
        spine.set_visible(True)
    return ax


def powers(axis, base: int = 10) -> None:
    """Set ticks at the powers of `base` on a logarithmic axis (`ax.xaxis`, `ax.yaxis`), in plain text such as 10⁻³."""
    checks.choice("base", base, (2, 10))

    def label(value, _position):
        return f"{base}{str(round(math.log(value, base))).translate(SUPERSCRIPTS)}"

    axis.set_major_locator(LogLocator(base=base, numticks=12))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(label))


def svg(fig, alt: str) -> str:
    """Return the figure as one `<svg>` element for a page. The element follows the theme and has no background. The
    same figure always gives exactly the same bytes.

    Args:
        fig: a matplotlib figure drawn with this module's colours only.
        alt: what the figure shows, in at least 20 characters; it becomes the element's accessible name.

    Raises:
        ValueError: `alt` is too short or is a file name; or the figure has a colour that cannot follow the theme, a
            bitmap, or a formula (the labels of a logarithmic axis are formulas unless you call `powers`).
    """
    if (
        not isinstance(alt, str)
        or len(alt.strip()) < 20
        or re.fullmatch(r"\S+\.\w{2,4}", alt.strip())
    ):
        raise ValueError(
            f"alt must say in at least 20 characters what is to be seen, got {alt!r}"
        )
    buffer = io.StringIO()
    with matplotlib.rc_context(_STYLE):
        fig.savefig(buffer, format="svg", metadata={"Date": None})
    root = ElementTree.fromstring(buffer.getvalue())
    if root.find(".//{*}image") is not None:
        raise ValueError(
            "the figure holds a bitmap, which cannot follow the theme: draw it with heatmap() or as lines"
        )
    if root.find(".//{*}tspan") is not None:
        raise ValueError(
            "the figure holds a formula, whose characters are placed for matplotlib's font and not for the page's: write "
            "plain text, and call powers() for a logarithmic axis"
        )
    used = _tidy(root)
    _name_ids(
        root,
        "f" + hashlib.sha256((alt + buffer.getvalue()).encode()).hexdigest()[:8],
    )
    _unwrap(root)
    width = float(root.get("viewBox").split()[2])
    variables = "; ".join(
        f"--{short}: {value}"
        for short, value in _VARIABLES.values()
        if short in used
    )
    root.attrib = {
        "role": "img",
        "aria-label": alt.strip(),
        "viewBox": root.get("viewBox"),
        # matplotlib leaves out `fill` for black shapes, so the default fill is the colour of the text.
        "style": f"{variables}; fill: var(--ink); stroke-linejoin: round; "
        f"display: block; width: 100%; max-width: {1.25 * width:.0f}px; height: auto",
    }
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(root) -> set[str]:
    """Remove everything that a page does not need, and replace colours with variables. Return the short names of the
    variables used."""
    used = {"ink"}

    def variable(match):
        colour = match[0].lower()
        if colour not in _VARIABLES:
            raise ValueError(
                f"the figure uses the colour {colour}, which cannot follow the theme: use this module's"
            )
        used.add(_VARIABLES[colour][0])
        return f"var(--{_VARIABLES[colour][0]})"

    for parent in list(root.iter()):
        for child in list(parent):
            # matplotlib's <style> would apply to the whole page.
            if child.tag.rpartition("}")[2] in ("metadata", "style"):
                parent.remove(child)
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if _HREF in element.attrib:
            element.set("href", element.attrib.pop(_HREF))
        if element.get("transform", "").startswith("rotate(-0 "):
            del element.attrib["transform"]
        if style := element.get("style"):
            # so that the page's font is used
            style = re.sub(r"font-family: [^;]*(; )?", "", style)
            element.set("style", re.sub("#[0-9a-fA-F]{6}", variable, style))
        for name in ("d", "x", "y", "width", "height", "transform"):
            if name in element.attrib:
                element.set(
                    name,
                    " ".join(
                        re.sub(
                            r"-?\d+\.\d+", _two_places, element.get(name)
                        ).split()
                    ),
                )
        element.text = (element.text or "").strip() or None
        element.tail = None
    return used


def _two_places(match) -> str:
    return f"{float(match[0]):.2f}".rstrip("0").rstrip(".")


def _name_ids(root, prefix: str) -> None:
    """Remove ids that nothing refers to, and give the others this figure's prefix."""
    wanted = {
        reference.get("href", "").lstrip("#") for reference in root.iter("use")
    }
    wanted |= set(
        re.findall(
            r"url\(#([^)]+)\)", ElementTree.tostring(root, encoding="unicode")
        )
    )
    for element in root.iter():
        name = element.attrib.pop("id", None)
        if name in wanted:
            element.set("id", f"{prefix}-{name}")
        if "href" in element.attrib:
            element.set("href", f"#{prefix}-{element.get('href').lstrip('#')}")
        for attribute, value in element.attrib.items():
            if "url(#" in value:
                element.set(attribute, value.replace("url(#", f"url(#{prefix}-"))


def _unwrap(parent) -> None:
    """Remove groups without attributes (keeping their children), empty groups, and shapes that paint nothing."""
    children = []
    for child in parent:
        _unwrap(child)
        if child.tag == "g" and not child.attrib:
            children.extend(child)
        elif (
            not (child.tag in ("g", "defs") and len(child) == 0)
            and child.get("style") != "fill: none"
        ):
            children.append(child)
    parent[:] = _joined(children)


def _joined(elements: list) -> list:
    """Join neighbouring lines into one path if they differ only in their points."""
    joined, before = [], None
    for element in elements:
        look = {**element.attrib, "d": ""}
        if element.tag == "path" and "fill: none" in element.get("style", ""):
            if look == before:
                points = f"{joined[-1].get('d')} {element.get('d')}"
                joined[-1].set("d", points)
                continue
            before = look
        else:
            before = None
        joined.append(element)
    return joined


def name_line(
    line, name: str, *, at: int = -1, offset: tuple[float, float] = (6, 0)
) -> None:
    """Write a line's name beside one of its points, in its colour.

    Args:
        line: a line of a panel, as `ax.plot` returns it.
        name: the name to write.
        at: the point's index.
        offset: where the text goes, in pixels to the right of the point and above it. Text to the right of the point
            begins there, text to the left ends there, and text directly above or below is centred.
    """
    x, y = line.get_data()
    right, _ = offset
    line.axes.annotate(
        name,
        (x[at], y[at]),
        xytext=offset,
        textcoords="offset points",
        ha="left" if right > 0 else "right" if right < 0 else "center",
        va="center",
        color=line.get_color(),
        bbox=UNDER_NAME,
        annotation_clip=False,
    )


def _check_grammar(fig) -> None:
    """Raise ValueError if a figure breaks the book's rules for telling lines apart."""
    if fig.legends or any(ax.get_legend() is not None for ax in fig.axes):
        raise ValueError(
            "a figure has no legend: name each line beside it, with name_line"
        )
    for ax in fig.axes:
        curves = [line for line in ax.lines if len(line.get_xdata()) > 2]
        colours = {line.get_color() for line in curves} - {INK, MUTED, GRID}
        if len(colours) > MOST_COLOURS:
            raise ValueError(
                f"the lines of a panel have at most {MOST_COLOURS} colours, got {len(colours)}: draw a panel for "
                "each, or all but one in grey"
            )


def _check_meaning(drawing: str, words: str) -> None:
    """Raise ValueError if the drawing uses green but the words don't mention a query, or if it uses violet but the
    words don't mention a key."""
    for name, meaning in (("green", "quer"), ("violet", "key")):
        if f"var(--fig-{HUES[name]}," in drawing and meaning not in words.lower():
            raise ValueError(
                f"{name} is for {'queries' if name == 'green' else 'keys'} only, and alt and caption speak of none"
            )


def display_figure(fig, alt: str, caption: str | None = None) -> None:
    """Show the figure in a notebook and on the site, with its accessible name and a caption below it.

    A wide figure is drawn twice. The second drawing is narrower, with letters of the same size. It is hidden, and only
    the book's style sheet shows it on phones, instead of the first.

    Args:
        fig: a matplotlib figure drawn with this module's colours only.
        alt: what the figure shows, in at least 20 characters.
        caption: plain text under the figure. It says what to look at, or where and when the data were measured.

    Raises:
        ValueError: as for `svg`; also for a legend, more than `MOST_COLOURS` colours in one panel, green without a
            query, or violet without a key.
    """
    _check_grammar(fig)
    text = (
        f'<figcaption style="{_CAPTION}">{html.escape(with_apostrophes(caption))}</figcaption>'
        if caption
        else ""
    )
    drawing = svg(fig, alt)
    _check_meaning(drawing, f"{alt} {caption}")
    if 72 * fig.get_figwidth() > NARROW + 1:
        drawing += _narrow(fig, alt)
    markup = f'<figure class="fig" style="margin: 1em 0">{drawing}{text}</figure>'
    plain = f"Figure: {alt}" + (f"\n{caption}" if caption else "")
    display({"text/html": markup, "text/plain": plain}, raw=True)


def _narrow(fig, alt: str) -> str:
    """Return the drawing for phones, which is hidden.

    If all panels have equal scales on both axes, they become lower as they become narrower, and so does the drawing.
    """
    width, height = fig.get_size_inches()
    kind = "fig-narrow fig-sooner" if 72 * width > 500 else "fig-narrow"
    lower = height
    if all(
        ax.get_aspect() == 1 and ax.get_adjustable() == "box" for ax in fig.axes
    ):
        lower = min(height, height * NARROW / (72 * width) + TITLE / 72)
    fig.set_size_inches(NARROW / 72, lower)
    try:
        drawing = svg(fig, alt)
    finally:
        fig.set_size_inches(width, height)
    drawing = drawing.replace("<svg", f'<svg class="{kind}"', 1)
    # A tenth of a pixel is precise enough, and some figures have thousands of points.
    drawing = re.sub(
        r'(?<= d=")[^"]*',
        lambda path: re.sub(
            r"-?\d+\.\d\d", lambda one: f"{float(one[0]):.1f}", path[0]
        ),
        drawing,
    )
    return drawing.replace("display: block", "display: none", 1)
