"""Test that the displayed source is the source that runs. If a claim holds, its evidence must be printed; if it
doesn't, an error must be raised."""

import functools
import inspect
import re

import numpy as np
import pytest
import torch

from ropebook import checks, show
from tests.together import together


def shown(monkeypatch, *objects, **options):
    return displayed(monkeypatch, lambda: show.show(*objects, **options))


def displayed(monkeypatch, call):
    """Return the output that a call displays. Each item is returned in all its formats."""
    things = []
    monkeypatch.setattr(show, "display", things.append)
    call()
    return [thing._repr_mimebundle_() for thing in things]


def code(bundle):
    pattern = r"`[^`]+` · [\w/]+\.py, line\u00a0\d+\n\n(```+)python\n(.*)\n\1"
    return re.fullmatch(pattern, bundle["text/markdown"], re.DOTALL)[2]


def test_the_source_is_shown_whole_with_where_it_stands(monkeypatch):
    (bundle,) = shown(monkeypatch, checks.even)
    source, line = inspect.getsourcelines(checks.even)
    assert code(bundle) == "".join(source).rstrip()
    assert bundle["text/markdown"].startswith(f"`even` · ropebook/checks.py, line\u00a0{line}\n")
    assert bundle["text/plain"] == f"# ropebook/checks.py, line {line}\n" + "".join(source).rstrip()


def test_one_display_for_each_object_in_order(monkeypatch):
    bundles = shown(monkeypatch, checks.even, checks.integer)
    assert ["def even" in code(bundles[0]), "def integer" in code(bundles[1])] == [True, True]


class Outer:
    """A class."""

    def method(self, x):
        """Says
        nothing much."""

        # a comment that stays
        text = "a string that stays"
        return x, text

    def empty(self):
        """A docstring that is the whole body."""

    def short(self):
        """A docstring right above the code."""
        return self


@functools.wraps(Outer.method)
def wrapper(*arguments):
    return Outer.method(*arguments)


def fenced():
    return "```"


def test_a_method_is_dedented_and_a_wrapper_unwrapped(monkeypatch):
    bundle, other = shown(monkeypatch, Outer.method, wrapper)
    assert code(bundle).startswith("def method(self, x):\n    ")
    assert "`Outer.method` · " in bundle["text/markdown"]
    assert other == bundle


def test_docstrings_can_be_left_out_and_nothing_else(monkeypatch):
    (bundle,) = shown(monkeypatch, Outer, docstrings=False)
    assert code(bundle) == (
        "class Outer:\n"
        "    def method(self, x):\n"
        "        # a comment that stays\n"
        '        text = "a string that stays"\n'
        "        return x, text\n"
        "\n"
        "    def empty(self):\n"
        '        """A docstring that is the whole body."""\n'
        "\n"
        "    def short(self):\n"
        "        return self"
    )
    (whole,) = shown(monkeypatch, Outer)
    assert '"""A class."""' in code(whole)


def test_a_fence_in_the_source_gets_a_longer_fence_around_it(monkeypatch):
    (bundle,) = shown(monkeypatch, fenced)
    assert "\n\n````python\n" in bundle["text/markdown"]
    assert bundle["text/markdown"].endswith("\n````")
    assert code(bundle) == 'def fenced():\n    return "```"'


@together("thing", [len, 3, "text", functools.partial(print)])
def test_what_has_no_source_is_refused(thing):
    with pytest.raises(TypeError, match=r"objects must be functions or classes written in Python, got "):
        show.show(thing)


def test_nothing_to_show_is_refused():
    with pytest.raises(TypeError, match="at least one"):
        show.show()


@pytest.mark.parametrize(
    ("measured", "bounds", "line"),
    [
        (1e-7, {"at_most": 1e-6}, "claim: 1e-07 (at most 1e-06)"),
        (1e-6, {"at_most": 1e-6}, "claim: 1e-06 (at most 1e-06)"),
        (0.3, {"at_least": 0.1}, "claim: 0.3 (at least 0.1)"),
        (0.1, {"at_least": 0.1}, "claim: 0.1 (at least 0.1)"),
        (2, {"at_least": 1, "at_most": 3}, "claim: 2 (at least 1, at most 3)"),
        (0, {"at_most": 0}, "claim: 0 (at most 0)"),
        (torch.tensor(0.25), {"at_most": 1}, "claim: 0.25 (at most 1)"),
    ],
)
def test_evidence_is_printed(capsys, measured, bounds, line):
    show.check("claim", measured, **bounds)
    assert capsys.readouterr().out == line + "\n"


def test_a_tensor_with_a_gradient_raises_no_warning(recwarn):
    show.check("claim", torch.ones((), requires_grad=True), at_most=1)
    assert not recwarn.list


@pytest.mark.parametrize(
    ("measured", "bounds"),
    [
        (2e-6, {"at_most": 1e-6}),
        (0.09, {"at_least": 0.1}),
        (4, {"at_least": 1, "at_most": 3}),
        (0, {"at_least": 1, "at_most": 3}),
        (float("nan"), {"at_most": 1}),
        (float("nan"), {"at_least": 1}),
        (float("inf"), {"at_most": 1}),
    ],
)
def test_a_claim_that_does_not_hold_raises_and_prints_nothing(capsys, measured, bounds):
    with pytest.raises(AssertionError, match=r"^does not hold: claim: .* \(at "):
        show.check("claim", measured, **bounds)
    assert capsys.readouterr().out == ""


def test_a_check_without_a_bound_is_refused():
    with pytest.raises(ValueError, match="check needs at_most or at_least"):
        show.check("claim", 1.0)


@pytest.mark.parametrize("kind", [torch.tensor, np.array])
def test_difference_is_the_largest_absolute_one(kind):
    a, b = kind([[1.0, 2.0], [3.0, 4.0]]), kind([[1.0, 2.5], [0.0, 4.0]])
    assert show.difference(a, b) == 3.0
    assert show.difference(b, a) == 3.0
    assert show.difference(a, a) == 0.0
    assert isinstance(show.difference(a, b), float)


def test_difference_of_integers_with_floats_scalars_and_gradients(recwarn):
    assert show.difference(torch.tensor([1, 2]), torch.tensor([1.0, 2.25])) == 0.25
    assert show.difference(torch.tensor(2.0, requires_grad=True), torch.tensor(5.0)) == 3.0
    assert not recwarn.list


def test_a_nan_makes_the_difference_nan():
    nan = show.difference(torch.tensor([1.0, float("nan")]), torch.tensor([1.0, 1.0]))
    assert nan != nan


def test_difference_refuses_what_would_be_broadcast_or_is_empty():
    with pytest.raises(ValueError, match=r"a and b must have one shape, got \(2,\) and \(1,\)"):
        show.difference(torch.zeros(2), torch.zeros(1))
    with pytest.raises(ValueError, match=r"entries to compare, got the shape \(0, 2\)"):
        show.difference(torch.zeros(0, 2), torch.zeros(0, 2))


# ---- Numbers for the prose ----


def test_glued_numbers_are_kept_under_their_names(monkeypatch):
    shown = []
    monkeypatch.setattr(show, "display", lambda bundle, metadata, raw: shown.append((bundle, metadata, raw)))
    show.glue(one=0.5, two=torch.tensor([[3]]), three="a quarter")
    bundles, metadata, raw = zip(*shown, strict=True)
    prefix = "application/papermill.record/"  # MyST-NB's own glue writes this prefix, and its roles read it
    key = f"{prefix}text/plain"
    assert bundles == ({key: "0.5"}, {key: "3"}, {key: "a quarter"})
    assert metadata == tuple({"scrapbook": {"name": one, "mime_prefix": prefix}} for one in ("one", "two", "three"))
    assert all(raw)


def test_a_glued_number_is_one():
    with pytest.raises(ValueError, match=r"^share must be one number, got the shape \(2,\)"):
        show.glue(share=torch.zeros(2))


# ---- Tables ----


def tabled(monkeypatch, columns, **options):
    (bundle,) = displayed(monkeypatch, lambda: show.table(columns, **{"caption": "What it shows"} | options))
    return bundle


def rows_of(bundle):
    """Return the cells in each row of the HTML table, as (tag, text). The text includes what only screen readers
    announce."""
    rows = re.findall(r"<tr>(.*?)</tr>", bundle["text/html"])
    cells = [re.findall(r"<(t[hd])[^>]*>(.*?)</t[hd]>", row) for row in rows]
    return [[(tag, re.sub(r"<[^>]+>", "", text)) for tag, text in row] for row in cells]


def test_signs_are_explained_and_their_words_follow_in_a_fold(monkeypatch):
    surely, hardly = ("✓", "holds"), ("?", "undecided")
    claims = {
        "claim": ["ALiBi: it reads beyond L", "RoPE as it is: it reads beyond L"],
        "Python": [show.Signs("2 hold", [surely, surely]), show.Signs("1 hold, 1 undecided", [hardly, surely])],
        "records": [None, show.Signs("1 undecided", [hardly])],
    }
    bundle = tabled(monkeypatch, claims)
    signs, words = (part + "</table>" for part in bundle["text/html"].split("</table>")[:2])
    assert "<details" in words
    assert " open" not in words
    assert ">What it shows (✓\u00a0holds, ?\u00a0undecided)<" in signs
    assert ">What it shows<" in words
    assert rows_of({"text/html": signs}) == [
        [("th", "claim … it reads beyond\u00a0L"), ("th", "Python"), ("th", "records")],
        [("th", "ALiBi"), ("td", "✓\u2060✓2 hold"), ("td", "–")],
        [("th", "RoPE as it is"), ("td", "?\u2060✓1 hold, 1 undecided"), ("td", "?1 undecided")],
    ]
    assert '<span aria-hidden="true">✓\u2060✓</span><span style="position: absolute' in signs
    assert '<table class="book-table">' in signs
    assert '<table class="book-table prose">' in words
    assert rows_of({"text/html": words}) == [
        [("th", "claim"), ("th", "Python"), ("th", "records")],
        [("th", claims["claim"][0]), ("td", "2 hold"), ("td", "–")],
        [("th", claims["claim"][1]), ("td", "1 hold, 1 undecided"), ("td", "1 undecided")],
    ]
    assert "1 hold, 1 undecided" in bundle["text/plain"]
    assert "✓" not in bundle["text/plain"]


def test_many_signs_go_on_in_the_next_line(monkeypatch):
    cells = [show.Signs("7 hold", 7 * [("✓", "holds")]), show.Signs("3 hold", 3 * [("✓", "holds")])]
    signs = tabled(monkeypatch, {"claim": ["a", "b"], "Python": cells})["text/html"]
    assert '"true">✓\u2060✓\u2060✓<wbr>✓\u2060✓\u2060✓<wbr>✓</span>' in signs
    assert '"true">✓\u2060✓\u2060✓</span>' in signs


METHODS = {"method": ["plain", "linear", "YaRN"], "loss (bits)": [3.25, 2.0625, 1.7], "dials": [0, 1, 12]}


def test_a_table_has_a_caption_heads_and_named_rows(monkeypatch):
    bundle = tabled(monkeypatch, METHODS, formats={"loss (bits)": ".2f"})
    assert rows_of(bundle) == [
        [("th", "method"), ("th", "loss (bits)"), ("th", "dials")],
        [("th", "plain"), ("td", "3.25"), ("td", "0")],
        [("th", "linear"), ("td", "2.06"), ("td", "1")],
        [("th", "YaRN"), ("td", "1.70"), ("td", "12")],
    ]
    assert "<caption><span>What it shows</span></caption>" in bundle["text/html"]
    assert bundle["text/html"].count('scope="col"') == 3
    assert bundle["text/html"].count('scope="row"') == 3


def test_a_number_that_is_rounded_to_zero_is_not_negative(monkeypatch):
    small = [-0.004, 0.004, -0.0, -0.006, float("-inf")]
    formats = {"fixed": ".2f", "share": ",.0%", "signed": "+.2f"}
    bundle = tabled(monkeypatch, {"": list("abcde")} | dict.fromkeys(("any", *formats), small), formats=formats)
    assert [[text for _, text in row] for row in rows_of(bundle)[1:]] == [
        ["a", "−0.004", "0.00", "0%", "+0.00"],
        ["b", "0.004", "0.00", "0%", "+0.00"],
        ["c", "0", "0.00", "0%", "+0.00"],
        ["d", "−0.006", "−0.01", "−1%", "−0.01"],
        ["e", "-inf", "-inf", "-inf%", "-inf"],
    ]


def test_a_column_without_a_name_has_no_head(monkeypatch):
    bundle = tabled(monkeypatch, {"": ["plain", "linear"], "dials": [0, 1]})
    assert rows_of(bundle)[:2] == [[("td", ""), ("th", "dials")], [("th", "plain"), ("td", "0")]]


def test_outside_of_a_notebook_the_text_is_printed(capsys):
    show.table(METHODS, caption="Three methods")
    assert capsys.readouterr().out.startswith("Three methods\n\nmethod  loss (bits)  dials\n")


def test_in_a_terminal_columns_are_aligned_and_numbers_end_together(monkeypatch):
    bundle = tabled(monkeypatch, METHODS, formats={"loss (bits)": ".2f"}, best={"loss (bits)": "min", "dials": "max"})
    assert bundle["text/plain"] == (
        "What it shows\n\n"
        "method  loss (bits)  dials\n"
        "plain          3.25      0\n"
        "linear         2.06      1\n"
        "YaRN          *1.70    *12\n"
        "\n* best"
    )


@pytest.mark.parametrize(("which", "winners"), [("min", [1, 2]), ("max", [0])])
def test_the_best_are_marked_by_weight_and_by_a_word(monkeypatch, which, winners):
    bundle = tabled(monkeypatch, {"row": ["a", "b", "c", "d"], "x": ["3", 1, "1.0", None]}, best={"x": which})
    texts = [row[1][1] for row in rows_of(bundle)[1:]]
    assert [k for k, text in enumerate(texts) if text.endswith(" (best)")] == winners
    assert bundle["text/html"].count("<strong>") == len(winners)


@pytest.mark.parametrize(
    ("cell", "text"),
    [(21596, "21,596"), (0.123456, "0.123"), (-2.5, "−2.5"), ("a < b", "a &lt; b"), (None, "–"),
     (torch.tensor(0.5), "0.5"), (np.float32(0.25), "0.25"), (np.int64(7), "7"),
     ("-1e-05", "−1e-05"), (float("nan"), "nan")],
)  # fmt: skip
def test_cells_are_text_or_numbers(monkeypatch, cell, text):
    bundle = tabled(monkeypatch, {"row": ["a"], "x": [cell]})
    assert rows_of(bundle)[1][1] == ("td", text)


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        ([1, 2.5], True),
        (["12", "1,024", "−0.5", "≤ 3", "1.2 ± 0.1", "10⁵", "4k", "5 %", "1.5·10⁻³", "∞", None], True),
        (["3 tokens", "4 tokens"], False),
        (["yes", 3], False),
    ],
)
def test_a_column_of_numbers_is_aligned_right_with_its_head(monkeypatch, cells, numbers):
    bundle = tabled(monkeypatch, {"row": ["a"] * len(cells), "x": cells})
    assert bundle["text/html"].count('class="number"') == (1 + len(cells) if numbers else 0)


@pytest.mark.parametrize(("longest", "sentences"), [("x" * 24, 0), ("x" * 25, 3)])
def test_a_column_of_sentences_is_told_from_one_of_words(monkeypatch, longest, sentences):
    bundle = tabled(monkeypatch, {"row": ["a", "b"], "claim": ["x", longest]})
    assert bundle["text/html"].count('class="sentence"') == sentences


@together(
    ("columns", "options", "error", "message"),
    [
        ({}, {}, ValueError, "columns must have one length, 1 or more, got no column"),
        ({"a": [], "b": []}, {}, ValueError, r"columns must have one length, 1 or more, got {'a': 0, 'b': 0}"),
        ({"a": [1], "b": [1, 2]}, {}, ValueError, r"one length, 1 or more, got {'a': 1, 'b': 2}"),
        ({3: [1]}, {}, TypeError, "a column's head must be text, got 3"),
        ({"a": [1]}, {"caption": " "}, ValueError, "caption must say what the table shows, got ' '"),
        ({"a": [1]}, {"caption": None}, TypeError, "caption must be text, got None"),
        ({"a": [1]}, {"best": {"b": "min"}}, ValueError, "best must name columns of 'a', got 'b'"),
        ({"a": [1]}, {"best": {"a": "least"}}, ValueError, r"best\['a'\] must be 'min' or 'max', got 'least'"),
        ({"a": ["x", None]}, {"best": {"a": "min"}}, ValueError, "best names the column 'a', which holds no number"),
        ({"a": [1]}, {"formats": {"b": ".3g"}}, ValueError, "formats must name columns of 'a', got 'b'"),
        ({"a": [1.5]}, {"formats": {"a": "d"}}, ValueError, r"formats\['a'\] must be a format of numbers"),
        ({"a": [[1]]}, {}, TypeError, r"a cell must be text, a number or None, got \[1\] in the column 'a'"),
        ({"a": [True]}, {}, TypeError, "a cell must be text, a number or None, got True in the column 'a'"),
        ({"a": [torch.zeros(2)]}, {}, TypeError, "a cell must be text, a number or None"),
    ],
)
def test_a_table_that_cannot_be_is_refused(columns, options, error, message):
    with pytest.raises(error, match=message):
        show.table(columns, **{"caption": "What it shows"} | options)


# ---- Numbers for the prose ----
