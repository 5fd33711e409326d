"""Tests of what the figures in the chapter on measurements draw when they are given synthetic numbers."""

import numpy as np
import pytest
from matplotlib.colors import to_rgb

from ropebook.figures import ORANGE
from ropebook.lab import measured, pictures, scores, tables
from tests.lab_worlds import change, ending, world

SEEDS = (0, 1, 2)
ALT = "What is to be seen, in words."


@pytest.fixture(scope="module")
def numbers():
    made = change(world(share=0.5, seed_spread=0.1), ("rope-10000-1-3200/yarn/8",), within=2.3, beyond=2.0, share=0.8)
    return ending(made)


@pytest.fixture(scope="module")
def whole(numbers):
    return {
        "length": 256,
        "text": 2048,
        "bands": [list(band) for band in scores.BANDS],
        "edges": scores.edges(scores.TEXT),
        "distances": list(scores.DISTANCES),
        "opened": {"cells": measured.cells(numbers), "differences": measured.differences(numbers)},
        "provenance": {"device": "a processor", "date": "2026-01-01", "torch": "2", "command": "none", "seed": None},
    }


@pytest.fixture
def drawn(monkeypatch):
    shown = []
    monkeypatch.setattr(pictures, "display_figure", lambda fig, alt, caption: shown.append((fig, alt, caption)))
    return shown


def lines(ax, thick):
    return [line for line in ax.lines if line.get_linewidth() == thick]


def row(fig, lines, id):
    """Return the two panels in the row for the line named ``id``."""
    at = list(lines).index(id) * 2
    return fig.axes[at : at + 2]


def test_every_scheme_and_method_has_a_row():
    assert list(pictures.SCHEME_LINES) == list(pictures.SCHEMES)
    for s in (2, 4, 8):
        rows = pictures.method_lines(s)
        assert len(set(rows.values())) == len(rows)
        assert set(rows) - {pictures.LONGER, pictures.LONGER + pictures.LAST} < set(tables.methods())


def test_bits_by_position_are_means_over_seeds_with_each_seed_behind(whole, numbers, drawn):
    rows = pictures.method_lines(8)
    pictures.by_position(whole, rows, ALT, "A caption.", reach=8)
    [(fig, _, caption)] = drawn
    assert caption.startswith("A caption. Measured on a processor")
    assert len(fig.axes) == 2 * len(rows)
    for column, text in enumerate(("python", "language")):
        curves = [numbers[f"rope-10000-{seed}-3200/yarn/8"]["numbers"]["curves"][text] for seed in SEEDS]
        ax = row(fig, rows, f"{pictures.LONGER}/yarn/8")[column]
        [own] = lines(ax, 1.8)
        assert own.get_ydata() == pytest.approx(np.mean(curves, 0), abs=1e-3)
        assert [list(line.get_ydata()) for line in lines(ax, 0.6)] == [
            pytest.approx(curve, abs=1e-3) for curve in curves
        ]
        assert len(lines(ax, 0.5)) == len(rows) - 1
        names = [name.get_text() for name in ax.texts]
        assert names == ([rows[f"{pictures.LONGER}/yarn/8"]] if column == 0 else [])
        [last] = lines(row(fig, rows, pictures.LONGER + pictures.LAST)[column], 1.8)
        seeing = [numbers[f"rope-10000-{seed}-3200"]["last"]["curves"][text] for seed in SEEDS]
        assert last.get_ydata() == pytest.approx(np.mean(seeing, 0), abs=1e-3)
        assert sorted(line.get_xdata()[0] for line in lines(ax, 1.0)) == [256, 2048]
        first, *_, last = own.get_xdata()
        assert first == 2  # the centre of the window of bytes 1 to 4 is here
        assert last == pytest.approx((1723 * 2048) ** 0.5)
        assert whole["edges"][-2] == 1722
    assert fig.axes[-1].get_xlabel() == "position"


def test_a_scheme_that_ends_at_L_has_a_line_that_ends_there(whole, drawn):
    pictures.by_position(whole, pictures.SCHEME_LINES, ALT, "", ("python",))
    [(fig, *_)] = drawn
    [learned], [other] = (lines(ax, 1.8) for ax in fig.axes[:2])
    assert learned.get_xdata()[-1] < 256 < other.get_xdata()[-1]
    with pytest.raises(ValueError, match="text must be one of"):
        pictures.by_position(whole, pictures.SCHEME_LINES, ALT, "", ("prose",))


def test_last_bytes_are_not_asked_for_records(whole, drawn):
    pictures.by_distance(whole, pictures.method_lines(8), ALT, "")
    [(fig, *_)] = drawn
    assert [ax.texts[0].get_text() for ax in fig.axes[::2]] == [
        title for id, title in pictures.method_lines(8).items() if not id.endswith(pictures.LAST)
    ]


def test_answers_by_distance_and_a_dot_for_each_seed(whole, numbers, drawn):
    pictures.by_distance(whole, pictures.SCHEME_LINES, ALT, "")
    [(fig, *_)] = drawn
    # a model with learned positions can't read texts of 2048 bytes
    names = [name for name in pictures.SCHEME_LINES if name != "learned"]
    assert len(fig.axes) == 2 * len(names)
    for column, task in enumerate(("retrieval", "order")):
        assert fig.axes[column].get_title(loc="left") == task
        ax = row(fig, names, "alibi")[column]
        shown = [line for line in ax.lines if len(line.get_xdata()) == 7]
        assert len(shown) == len(names) + 3
        letters = [numbers[f"alibi-{seed}"]["numbers"][task]["2048"] for seed in SEEDS]
        shares = np.array([[one[str(d)].count("1") / 96 for d in scores.DISTANCES] for one in letters])
        [own] = lines(ax, 1.8)
        assert own.get_ydata() == pytest.approx(shares.mean(0), abs=1e-4)
        dots = [line for line in shown if line.get_marker() == "o"]
        assert [line.get_ydata() for line in dots] == [pytest.approx(s, abs=1e-4) for s in shares]


@pytest.mark.parametrize("text", ["python", "language"])
def test_a_map_has_a_colour_where_the_interval_leaves_0_out(whole, drawn, text):
    rows = tables.methods()
    pictures.differences(whole, "plain", text, rows, ALT, "that is it.")
    [(fig, _, caption)] = drawn
    assert caption.startswith({"python": "Python: that", "language": "Generated language: that"}[text])
    [ax] = fig.axes
    grid = tables.grid(whole["opened"], "plain", text, rows)
    coloured = {(round(p.get_y()), round(p.get_x())) for p in ax.patches if p.get_width() == 1}
    assert coloured == set(zip(*map(np.ndarray.tolist, np.nonzero(grid.sure)), strict=True))
    costs = {(round(p.get_y()), round(p.get_x())) for p in ax.patches if p.get_facecolor()[:3] == to_rgb(ORANGE)}
    assert costs == {at for at in coloured if grid.values[at] > 0}
    written = {(t.get_position()[1] - 0.5, t.get_position()[0] - 0.5): t for t in ax.texts}
    assert len(written) == grid.values.size
    for (row, column), value in np.ndenumerate(grid.values):
        mark = written[row, column]
        assert mark.get_text() == f"{value:+.2f}".replace("-", "−")
        assert (mark.get_color() == pictures.INK) == grid.sure[row, column]
    bars = {(line.get_ydata()[0], line.get_xdata()[0]) for line in lines(ax, 2)}
    names = list(rows)
    assert bars == {(names.index(id), 1 + {"2": 1, "4": 2, "8": 3}[id[-1]]) for id in names if id[-1] in "248"}
    assert [tick.get_text() for tick in ax.get_yticklabels()] == list(rows.values())
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["to L", "to 2 L", "to 4 L", "to 8 L"]
