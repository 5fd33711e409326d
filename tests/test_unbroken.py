"""Tests of what is kept in one line of running text: `book/_ext/unbroken.py`."""

from __future__ import annotations

import doctest

from docutils import nodes
from docutils.utils import new_document

from tests.scripts import extension
from tests.together import together
from tools.paths import BOOK

unbroken = extension("unbroken")


def test_only_a_long_name_may_break_in_running_text():
    def whole(text, in_table=False):
        code = nodes.literal(text=text)
        document = new_document("page")
        document += nodes.table("", nodes.paragraph("", "", code)) if in_table else nodes.paragraph("", "", code)
        unbroken.WholeNames(document).run()
        return code["classes"] == ["whole"]

    assert whole("rope_theta")
    assert whole("--use-deterministic-algorithms")
    assert not whole("torch.nn.functional.scaled_dot_product_attention")
    assert not whole("rope_theta = 10_000")
    assert not whole("rope_theta", in_table=True)


def test_a_small_number_from_a_cell_is_kept_whole():
    numbers = [nodes.inline(text=text, classes=["pasted-text"]) for text in ("1.5e-16", "16")]
    document = new_document("page")
    document += nodes.paragraph("", "", *numbers)
    unbroken.WholeNames(document).run()
    assert [number["classes"] for number in numbers] == [["pasted-text", "whole"], ["pasted-text"]]


def test_a_formula_stays_in_one_line_with_the_sign_beside_it():
    formulas = [nodes.math(text="x") for _ in range(3)]
    inside = nodes.emphasis("", "", nodes.Text("of "), formulas[2])
    document = new_document("page")
    document += nodes.paragraph(
        "", "", nodes.Text("A ("), formulas[0], nodes.Text("; "), formulas[1], nodes.Text("; "), inside
    )
    document += nodes.paragraph("", "", nodes.Text(", a sign without a formula ("))
    long = nodes.math(text="x" * (unbroken.FORMULA + 1))
    document += nodes.paragraph("", "", nodes.Text("("), long, nodes.Text(")"))
    unbroken.HeldSigns(document).run()
    assert [held.astext() for held in document.findall(nodes.inline)] == ["(x;", "x;"]
    assert [part.astext() for part in document[:2]] == ["A (x; x; of x", ", a sign without a formula ("]
    assert document[-1].astext() == f"(\u2060{long.astext()}\u2060)"


def test_short_formulas_in_running_text_stay_in_one_line():
    letter, code = nodes.emphasis("", "", nodes.Text("d")), nodes.literal("", "", nodes.Text("a = 1"))
    caption = '<figcaption class="a">(d = 8)</figcaption><p>d = 8</p>'
    document = new_document("page")
    document += nodes.paragraph("", "", nodes.Text("At "), letter, nodes.Text(" =\n8, "), code, nodes.Text(" is x + y"))
    document[0] += nodes.Text(" on 2026-11-27, pairs 22–26")
    document += nodes.raw(caption, caption, format="html")
    document += nodes.table("", nodes.paragraph("", "", nodes.Text("d = 5 · 10⁵")))
    cells = '<td title="1e-8">by 1e-08 at most<br>x: 1e-08 (fine)</td><td class="number">2e-16</td><path d="M1e-3,0"/>'
    document += nodes.raw(cells, cells, format="html")
    unbroken.HeldFormulas(document).run()
    paragraph, raw, cell, small = document.children
    assert small.astext() == cells.replace("1e-08", '<span class="whole">1e-08</span>')
    assert (
        paragraph.astext().replace("\u00a0", "~")
        == "At d~=~8, a = 1 is x~+~y on 2026-\u206011-\u206027, pairs 22–\u206026"
    )
    assert raw.astext().replace("\u00a0", "~") == caption.replace("(d = 8)", "(d~=~8)")
    assert cell.astext().replace("\u00a0", "~") == "d = 5~·~10⁵"


@together(
    ("text", "expected"),
    [
        ("q = k = (1, 1)", "q~=~k~=~(1,~1)"),
        ("41 of 64 of the pairs", "41~of~64 of the pairs"),
        ("one = of the longest words", "one~=~of the longest words"),
        ("interpolation = scaling", "interpolation = scaling"),
        ("a = b = c = d = e = f = g = h", "a~=~b~=~c~=~d~=~e~=~f = g~=~h"),
        ("(see the table, or not)", "(see the table, or not)"),
        ("in 15 µs, 48 MiB and 3 steps", "in 15~µs, 48~MiB and 3 steps"),
        ("within 3.5 d or L", "within 3.5~d or L"),
        ("one head of 32. A query", "one head of 32. A query"),
        ("(batch, heads, tokens, dim, more)", "(batch, heads, tokens, dim, more)"),
        ("= 8 or", "= 8 or"),
        ("8 =", "8 ="),
        ("", ""),
    ],
)
def test_what_is_held(text, expected):
    assert unbroken.held(text).replace("\u00a0", "~") == expected


def test_the_examples_are_right(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    import unbroken

    done = doctest.testmod(unbroken)
    assert (done.failed, done.attempted) == (0, 2)
