"""Test that figures follow the theme and are small, that their bytes are the same every time, and that their
alternative text always describes what they show."""

import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pytest

from ropebook import figures
from tests.together import together

ALT = "Two straight lines that cross in the middle."


def lines(**options):
    fig, ax = figures.figure(300, 200)
    ax.plot([0, 1], [0, 1], marker="o", **options)
    ax.plot([0, 1], [1, 0])
    ax.text(0.8, 0.7, "up")
    ax.text(0.8, 0.3, "down")
    ax.set(xlabel="length", ylabel="a & b", title="A <title>")
    return fig


def parsed(fig, alt=ALT):
    return ElementTree.fromstring(figures.svg(fig, alt))


def texts(root):
    return ["".join(element.itertext()) for element in root.iter("text")]


def test_the_figure_is_one_accessible_image_with_text_as_text():
    root = parsed(lines())
    assert root.tag == "svg"
    assert root.get("role") == "img"
    assert root.get("aria-label") == ALT
    assert root.get("viewBox") == "0 0 300 200"
    assert {"A <title>", "length", "a & b", "up", "down"} <= set(texts(root))


def test_width_follows_the_column_up_to_a_quarter_more():
    style = parsed(lines()).get("style")
    assert "width: 100%" in style
    assert "max-width: 375px" in style
    assert "height: auto" in style


def test_every_colour_is_a_variable_of_the_page_with_its_light_fallback():
    root = parsed(lines())
    for element in list(root.iter())[1:]:
        assert "#" not in element.get("style", ""), element.attrib
    style = root.get("style")
    assert f"--ink: var(--fig-ink, var(--jp-content-font-color1, {figures.INK}))" in style
    assert f"--muted: var(--fig-muted, var(--jp-content-font-color2, {figures.MUTED}))" in style
    assert f"--grid: var(--fig-grid, var(--jp-border-color2, {figures.GRID}))" in style
    assert f"--c1: var(--fig-1, {figures.BLUE})" in style
    assert f"--c2: var(--fig-2, {figures.ORANGE})" in style
    assert "; fill: var(--ink)" in style


@together(
    ("colour", "variable"),
    [
        (figures.PAPER, f"--paper: var(--fig-paper, var(--jp-layout-color0, {figures.PAPER}))"),
        (figures.BLUE, f"--c1: var(--fig-1, {figures.BLUE})"),
        (figures.ORANGE, f"--c2: var(--fig-2, {figures.ORANGE})"),
        (figures.GREEN, f"--c3: var(--fig-3, {figures.GREEN})"),
        (figures.VIOLET, f"--c4: var(--fig-4, {figures.VIOLET})"),
        (figures.CRIMSON, f"--c5: var(--fig-5, {figures.CRIMSON})"),
        (figures.TEAL, f"--c6: var(--fig-6, {figures.TEAL})"),
    ],
)
def test_each_colour_has_its_variable_and_only_those_in_use_are_defined(colour, variable):
    fig, ax = figures.figure(100, 100)
    ax.plot([0, 1], [0, 1], color=colour)
    root = parsed(fig)
    assert variable in root.get("style").split("; ")
    short = variable.split(":")[0]
    assert any(f"stroke: var({short})" in element.get("style", "") for element in root.iter("path"))
    assert root.get("style").count("var(--fig-") == 4  # ink, muted and grid from the axes, and the colour of this line


def test_a_defined_variable_stands_for_every_used_one():
    markup = figures.svg(lines(color=figures.TEAL), ALT)
    used = set(re.findall(r"var\((--\w+)\)", markup))
    assert used == set(re.findall(r"(--\w+): ", markup))
    assert "--c6" in used


def test_nothing_is_painted_behind_the_drawing():
    with matplotlib.rc_context({"figure.facecolor": "white", "axes.facecolor": "white", "savefig.facecolor": "white"}):
        root = parsed(lines())
    fills = [element.get("style", "") for element in root.iter("path")]
    assert not any("fill: var(--paper)" in style for style in fills)


def test_the_same_bytes_every_time_and_ids_that_differ_between_figures():
    first, again = figures.svg(lines(), ALT), figures.svg(lines(), ALT)
    assert first == again
    other = figures.svg(lines(), "The same two lines on another page.")

    def ids(markup):
        return set(re.findall(r' id="([^"]+)"', markup))

    assert ids(first)
    assert not ids(first) & ids(other)
    for markup in (first, other):
        assert set(re.findall(r"url\(#([^)]+)\)", markup)) | set(re.findall(r'href="#([^"]+)"', markup)) == ids(markup)


def test_no_style_element_no_metadata_no_empty_groups():
    root = parsed(lines())
    tags = {element.tag for element in root.iter()}
    assert not tags & {"style", "metadata", "image"}
    for element in root.iter():
        assert element.tag in ("g", "defs", "svg") or element.attrib
        if element.tag in ("g", "defs"):
            assert len(element) > 0
        if element.tag == "g":
            assert element.attrib
        assert element.get("style") != "fill: none"
        assert "font-family" not in element.get("style", "")
        assert "rotate(-0" not in element.get("transform", "")
    # only the label of the y axis may be rotated
    assert [element.text for element in root.iter("text") if "rotate(-90" in element.get("transform", "")] == ["a & b"]


def test_sizes_of_text_and_lines_and_what_stands_around_a_panel():
    fig = lines()
    root = parsed(fig)
    styles = {element.text: element.get("style") for element in root.iter("text")}
    sizes = {text: re.search(r"font-size: ([\d.]+)px", style)[1] for text, style in styles.items()}
    assert [sizes[text] for text in ("A <title>", "length", "up", "0.0")] == ["13", "12.5", "12", "12"]
    (ax,) = fig.axes
    assert {name: spine.get_visible() for name, spine in ax.spines.items()} == {
        "left": True, "bottom": True, "top": False, "right": False
    }  # fmt: skip
    assert ax.get_axisbelow() is True
    assert ax.lines[0].get_linewidth() == 2.0
    assert ax.get_xgridlines()[0].get_visible()
    assert ax.get_xgridlines()[0].get_linewidth() == 0.8
    figures.heatmap(ax, np.ones((2, 2)), columns=["a", "b"])
    assert all(spine.get_visible() for spine in ax.spines.values())
    assert not ax.get_xgridlines()[0].get_visible()


def test_coordinates_are_written_to_two_places():
    fig, ax = figures.figure(300, 200)
    ax.set_axis_off()
    ax.plot([0, 1], [0, 1])
    ax.set(xlim=(0, 3), ylim=(0, 1))
    markup = figures.svg(fig, ALT)
    assert not re.search(r"\.\d{3}", markup)
    (path,) = [element.get("d") for element in ElementTree.fromstring(markup).iter("path")]
    x = [float(number) for number in path.split() if number not in "ML"][::2]
    box = ax.get_position()
    expected = [300 * box.x0, 300 * (box.x0 + box.width / 3)]
    assert x == pytest.approx(expected, abs=0.0051)


@together(("text", "short"), [("1.234567", "1.23"), ("-0.500", "-0.5"), ("3.000", "3"), ("10.0", "10")])
def test_two_places(text, short):
    assert re.sub(r".+", figures._two_places, text) == short


@together("alt", ["", "a plot", " " * 30, "attention_figure_number_one.svg", None, 19 * "x"])
def test_a_text_that_says_nothing_is_refused(alt):
    with pytest.raises(ValueError, match="alt must say in at least 20 characters"):
        figures.svg(lines(), alt)


def test_twenty_characters_are_enough():
    assert parsed(lines(), 20 * "x").get("aria-label") == 20 * "x"


def test_a_colour_of_ones_own_is_refused_by_name():
    with pytest.raises(ValueError, match=r"#ff0000.*cannot follow the theme"):
        figures.svg(lines(color="#FF0000"), ALT)


def test_a_bitmap_is_refused():
    fig, ax = figures.figure(100, 100)
    ax.imshow(np.eye(3))
    with pytest.raises(ValueError, match="bitmap"):
        figures.svg(fig, ALT)


def test_a_formula_is_refused_also_as_the_label_of_a_logarithmic_axis():
    fig, ax = figures.figure(200, 200)
    ax.set_title("$10^{-3}$")
    with pytest.raises(ValueError, match="formula"):
        figures.svg(fig, ALT)
    fig, ax = figures.figure(200, 200)
    ax.set(xscale="log", xlim=(1, 1000))
    with pytest.raises(ValueError, match=r"call powers\(\) for a logarithmic axis"):
        figures.svg(fig, ALT)
    figures.powers(ax.xaxis)
    figures.svg(fig, ALT)


def test_black_which_matplotlib_leaves_out_becomes_ink():
    fig, ax = figures.figure(100, 100)
    ax.set_axis_off()
    ax.fill([0, 1, 1], [0, 0, 1], facecolor="#000000", linewidth=0)
    root = parsed(fig)
    assert all("fill: none" not in element.get("style", "") for element in root.iter("path"))
    assert "fill: var(--ink)" in root.get("style")


def test_figure_gives_axes_in_the_books_style():
    fig, axes = figures.figure(400, 300, 2, 3, sharex=True)
    assert axes.shape == (2, 3)
    assert fig.get_size_inches() == pytest.approx([400 / 72, 300 / 72])
    assert matplotlib.rcParams["text.color"] == figures.INK
    assert axes[0, 0].get_shared_x_axes().joined(axes[0, 0], axes[1, 2])
    assert figures.figure()[0].get_size_inches() == pytest.approx([480 / 72, 300 / 72])
    # a figure with one panel returns a single Axes instead of an array
    assert figures.figure()[1].xaxis.get_gridlines()


@together("name", ["width", "height"])
@together("value", [49, 2001, float("nan"), -1])
def test_a_size_out_of_range_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} must be"):
        figures.figure(**{name: value})


@pytest.mark.parametrize("value", [50, 2000])
def test_sizes_at_the_limits(value):
    figures.figure(value, value)


def cells(root):
    """Return the (colour, opacity) of each filled cell, in order."""
    styles = [element.get("style") for element in root.iter("path")]
    found = [re.match(r"fill: var\(--(\w+)\); opacity: ([\d.]+)", style) for style in styles]
    return [(match[1], float(match[2])) for match in found if match]


def test_heatmap_colours_by_sign_and_opacity_by_size():
    fig, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[1.0, -2.0], [0.0, float("nan")]], rows=["r0", "r1"], columns=["c0", "c1"])
    root = parsed(fig)
    assert cells(root) == [("c1", pytest.approx(0.3)), ("c2", pytest.approx(0.6))]
    assert {"1.00", "−2.00", "0.00", "nan", "r0", "r1", "c0", "c1"} == set(texts(root))


def test_heatmap_puts_rows_downwards_and_columns_to_the_right():
    fig, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[1, 2, 3], [4, 5, 6]], form="{:.0f}", rows=["first", "second"], columns=list("abc"))
    places = {"".join(t.itertext()): (float(t.get("x")), float(t.get("y"))) for t in parsed(fig).iter("text")}
    assert places["1"][0] < places["2"][0] < places["3"][0]
    assert places["1"][1] == places["2"][1] < places["4"][1] == places["6"][1]
    assert places["first"][1] < places["second"][1]
    assert places["first"][0] < places["1"][0]
    assert places["a"][0] == pytest.approx(places["1"][0], abs=0.02)
    assert places["c"][0] == pytest.approx(places["6"][0], abs=0.02)
    assert places["a"][1] < places["1"][1]
    boxes = [patch.get_bbox().bounds for patch in ax.patches]
    assert boxes == [(column, row, 1, 1) for row in range(2) for column in range(3)]
    assert ax.get_xlim() == (0, 3)
    assert ax.get_ylim() == (2, 0)
    assert list(ax.get_xticks()) == [0.5, 1.5, 2.5]
    assert list(ax.get_yticks()) == [0.5, 1.5]


def test_heatmap_of_one_cell_without_labels_has_no_ticks():
    _, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[1.0]])
    assert len(ax.patches) == 1
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert ax.get_aspect() == 1


def test_heatmap_limit_is_the_largest_absolute_value_and_saturates():
    fig, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[1.0, -4.0, 9.0]], limit=4.0, form=None)
    full = pytest.approx(0.6)
    assert cells(parsed(fig)) == [("c1", pytest.approx(0.15)), ("c2", full), ("c1", full)]
    assert texts(parsed(fig)) == []


def test_heatmap_of_zeros_and_of_infinities():
    fig, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[0.0, 0.0]])
    assert len(ax.patches) == 0
    fig, ax = figures.figure(200, 200)
    figures.heatmap(ax, [[float("-inf"), 1.0]])
    root = parsed(fig)
    assert cells(root) == [("c2", pytest.approx(0.6)), ("c1", pytest.approx(0.6))]
    assert "−inf" in texts(root)


def test_heatmap_takes_up_to_4096_cells():
    _, ax = figures.figure(200, 200)
    figures.heatmap(ax, np.ones((64, 64)), form=None)
    assert len(ax.patches) == 4096


@together(
    ("options", "message"),
    [
        ({"values": np.ones(3)}, "values must be a table"),
        ({"values": np.ones((0, 3))}, "values must be a table"),
        ({"values": np.ones((1, 4097))}, "values must be a table"),
        ({"values": np.ones((2, 3)), "rows": ["a"]}, "rows must hold 2 labels, got 1"),
        ({"values": np.ones((2, 3)), "columns": ["a", "b"]}, "columns must hold 3 labels, got 2"),
        ({"values": np.ones((2, 3)), "limit": 0}, "limit must be"),
        ({"values": np.ones((2, 3)), "limit": float("inf")}, "limit must be"),
    ],
)
def test_heatmap_refuses(options, message):
    _, ax = figures.figure(200, 200)
    with pytest.raises(ValueError, match=message):
        figures.heatmap(ax, **options)


@pytest.mark.parametrize(
    ("base", "limits", "expected"),
    [(10, (0.001, 100), ["10⁻³", "10⁻²", "10⁻¹", "10⁰", "10¹", "10²"]), (2, (1, 8), ["2⁰", "2¹", "2²", "2³"])],
)
def test_powers_writes_exponents_in_plain_text(base, limits, expected):
    fig, ax = figures.figure(300, 100)
    ax.set_xscale("log", base=base)
    ax.set_xlim(*limits)
    ax.set_yticks([])
    figures.powers(ax.xaxis, base)
    assert texts(parsed(fig)) == expected
    assert not ax.xaxis.get_minorticklocs().size


def test_powers_refuses_other_bases():
    _, ax = figures.figure()
    with pytest.raises(ValueError, match="base must be one of 2, 10, got 3"):
        figures.powers(ax.xaxis, 3)


def shown(monkeypatch, *arguments, **options):
    bundles = []
    monkeypatch.setattr(figures, "display", lambda bundle, raw: bundles.append((bundle, raw)))
    figures.display_figure(*arguments, **options)
    ((bundle, raw),) = bundles
    assert raw is True
    return bundle


def test_display_figure_shows_the_svg_and_the_caption(monkeypatch):
    bundle = shown(monkeypatch, lines(), ALT, "Where a < b & c.")
    assert bundle["text/plain"] == f"Figure: {ALT}\nWhere a < b & c."
    root = ElementTree.fromstring(bundle["text/html"])
    assert (root.tag, root.get("class")) == ("figure", "fig")
    assert [child.tag for child in root] == ["svg", "figcaption"]
    assert root[1].text == "Where a < b & c."


def test_lines_of_one_look_become_one_path():
    def drawn(*colours):
        fig, ax = figures.figure(300, 200)
        ax.axis("off")
        for k, colour in enumerate(colours):
            ax.plot([0, 1], [k, k + 1], color=colour)
        return [path.get("d") for path in parsed(fig).iter("path") if "fill: none" in path.get("style", "")]

    [whole] = drawn(figures.BLUE, figures.BLUE, figures.BLUE)
    assert whole.count("M") == whole.count("L") == 3
    assert [d.count("M") for d in drawn(figures.BLUE, figures.ORANGE, figures.BLUE)] == [1, 1, 1]


@together(("width", "phone"), [(480, "fig-narrow"), (640, "fig-narrow fig-sooner"), (figures.NARROW, None)])
def test_a_wide_figure_is_drawn_again_for_phones(monkeypatch, width, phone):
    fig, ax = figures.figure(width, 200)
    ax.plot([1, 2, 3], [2, 1, 3])
    before = fig.get_size_inches().tolist()
    wide, *narrow = ElementTree.fromstring(shown(monkeypatch, fig, ALT)["text/html"]).iter("svg")
    assert fig.get_size_inches().tolist() == before
    assert float(wide.get("viewBox").split()[2]) == width
    assert "display: block" in wide.get("style")
    assert [one.get("class") for one in narrow] == ([phone] if phone else [])
    for one in narrow:
        assert one.get("viewBox").split()[2:] == [str(figures.NARROW), "200"]
        assert "display: none" in one.get("style")
        sizes = [
            sorted(re.findall(r"font-size: (\d+)", ElementTree.tostring(each, encoding="unicode")))
            for each in (wide, one)
        ]
        assert set(sizes[0]) == set(sizes[1]) == {"12"}


def test_panels_with_equal_scales_get_lower_on_phones(monkeypatch):
    for equal, height in ((2, 400 * figures.NARROW / 600 + figures.TITLE), (1, 400)):
        fig, axes = figures.figure(600, 400, columns=2)
        for ax in axes[:equal]:
            ax.set(aspect="equal")
        _, narrow = ElementTree.fromstring(shown(monkeypatch, fig, ALT)["text/html"]).iter("svg")
        assert float(narrow.get("viewBox").split()[3]) == pytest.approx(height, abs=0.5)


def test_display_figure_without_a_caption(monkeypatch):
    bundle = shown(monkeypatch, lines(), ALT)
    assert bundle["text/plain"] == f"Figure: {ALT}"
    assert [child.tag for child in ElementTree.fromstring(bundle["text/html"])] == ["svg"]


def test_a_figure_with_a_legend_is_refused(monkeypatch):
    for place in ("panel", "figure"):
        fig, ax = figures.figure()
        ax.plot([1, 2, 3], label="a")
        (ax if place == "panel" else fig).legend()
        with pytest.raises(ValueError, match="a figure has no legend: name each line beside it, with name_line"):
            shown(monkeypatch, fig, ALT)


def test_a_panel_has_few_colours_and_as_many_greys_as_it_likes(monkeypatch):
    fig, ax = figures.figure()
    for k, colour in enumerate([*figures.COLOURS[:4], figures.MUTED, figures.MUTED, figures.INK]):
        ax.plot([k, k + 1, k + 2], color=colour)
    ax.axvline(1, color=figures.TEAL)  # this line is a mark, not a curve
    alt = f"{ALT} One is the query's and one the key's."
    shown(monkeypatch, fig, alt)
    ax.plot([3, 2, 1], color=figures.COLOURS[4])
    with pytest.raises(ValueError, match="at most 4 colours, got 5: draw a panel for each, or all but one in grey"):
        shown(monkeypatch, fig, alt)


@pytest.mark.parametrize(
    ("colour", "name", "word"), [(figures.GREEN, "green", "queries"), (figures.VIOLET, "violet", "keys")]
)
def test_green_is_the_query_and_violet_the_key(monkeypatch, colour, name, word):
    fig, ax = figures.figure()
    ax.plot([1, 2, 3], color=colour)
    with pytest.raises(ValueError, match=f"{name} is for {word} only, and alt and caption speak of none"):
        shown(monkeypatch, fig, ALT)
    shown(monkeypatch, fig, ALT, f"The score of all {word}.")


@together(("offset", "side"), [((6, 0), "left"), ((-6, 2), "right"), ((0, 9), "center")])
def test_a_lines_name_is_beside_it_in_its_colour(offset, side):
    _, ax = figures.figure()
    figures.name_line(*ax.plot([1, 2, 4], color=figures.VIOLET), "growth", at=1, offset=offset)
    [name] = ax.texts
    assert (name.get_text(), name.xy, name.get_color()) == ("growth", (1, 2), figures.VIOLET)
    assert name.get_horizontalalignment() == side
