"""Tests of the parts that are folded on the site, and of how long lines are wrapped: `book/_ext/plumbing.py` and
`wrapping.py`."""

from __future__ import annotations

from bs4 import BeautifulSoup
from docutils import nodes
from docutils.utils import new_document
from nbformat.v4 import new_code_cell, new_notebook, new_output
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer, TextLexer

from tests.scripts import extension
from tests.together import together

plumbing, wrapping = extension("plumbing"), extension("wrapping")

TABLE = new_output("display_data", {"text/html": "<table><tr><td>1</td></tr></table>", "text/plain": "1"})
FIGURE = new_output("display_data", {"text/html": "<figure><svg></svg></figure>"})
CODE = new_output("display_data", {"text/markdown": "```python\npass\n```"})
RECORD = new_output("display_data", {"application/papermill.record/text/plain": "1"})
PRINTED = new_output("stream", text="a: 1 (at most 2)")
VALUE = new_output("execute_result", {"text/plain": "tensor(1)"})


@together(
    ("source", "outputs", "words"),
    [
        ("import math\n\nfrom ropebook.show import show\n\ntorch.set_num_threads(1)", [], "The imports"),
        ("from ropebook import rope\n\ndef draw(n):\n    return n", [], "The imports"),
        ("import torch\n\n\ndef rotate(x):\n    return x", [], None),
        ("table({'a': [1]}, caption='b')", [TABLE], "Code for this table"),
        ("x = 1\ntable({'a': [x]}, caption='b')\nglue(x=x)", [TABLE, RECORD], "Code for this table"),
        ("def f(x):\n    return x\n\n\ntable({'a': [f(1)]}, caption='b')", [TABLE], "Code for this table"),
        ("check('a', 1, at_most=2)\ntable({'a': [1]}, caption='b')", [PRINTED, TABLE], "Code for this table"),
        ("print(1)\ntable({'a': [1]}, caption='b')", [PRINTED, TABLE], None),
        ("pictures.sections()", [FIGURE], "Code for this figure"),
        ("show(rope.angles)\npictures.sections()", [CODE, FIGURE], "Code for this figure"),
        ("Ramp()", [FIGURE], "Code for this figure"),
        ("show(rope.angles, docstrings=False)", [CODE], ""),
        ("show(rope.angles)\nprint(1)", [CODE, PRINTED], None),
        ("x = 1\ncheck('a', x, at_most=2)", [PRINTED], "Code for this check"),
        ("x = 1\nassert x\ncheck('a', x, at_most=2)\nglue(x=x)", [PRINTED, RECORD], "Code for this check"),
        ("def f():\n    pass\n\n\ncheck('a', f(), at_most=2)", [PRINTED], None),
        ("check('a', 1, at_most=2)\nprint(x)", [PRINTED], None),
        ("check('a', 1, at_most=2)\nx", [PRINTED, VALUE], None),
        ("x = 1\nglue(x=x)", [RECORD], "Code for these numbers"),
        ("rope = RotaryEmbedding(8)", [], None),
        ("from transformers import LlamaConfig\nconfig = LlamaConfig()\nmodel = make(config)", [], None),
        ("x = rotate(q)\nx", [VALUE], None),
        ("for x in range(3):\n    print(x)", [PRINTED], None),
    ],
)
def test_cells_that_do_not_teach_are_told_from_those_that_do(source, outputs, words):
    assert plumbing.plumbing(source, outputs) == words


def test_what_a_page_decides_is_left_alone():
    tags = [["hide-cell"], ["remove-input"], ["remove-cell"], ["seal"], ["teaches"], [], ["hide-input"]]
    notebook = new_notebook(cells=[new_code_cell("import math", metadata={"tags": list(one)}) for one in tags])
    plumbing.fold(notebook)
    assert [cell.metadata.tags for cell in notebook.cells] == [*tags[:5], ["hide-input"], ["hide-input"]]
    words = [cell.metadata.get("mystnb", {}).get("code_prompt_show") for cell in notebook.cells]
    assert words == 5 * [None] + 2 * ["The imports"]


def test_a_page_may_say_itself_what_is_folded():
    own = {"tags": ["hide-input"], "mystnb": {"code_prompt_show": "The search"}}
    notebook = new_notebook(cells=[new_code_cell("print(1)", metadata=own, outputs=[PRINTED])])
    plumbing.fold(notebook)
    assert notebook.cells[0].metadata.mystnb.code_prompt_show == "The search"


# --- Long lines and wide tables ---------------------------------------------------------------------------------------


def wrapped(code, **options):
    return highlight(code, PythonLexer(), wrapping.Wrapping(**options))


def test_only_long_lines_become_elements_and_no_letter_changes():
    code = f'x = 1\n    y = "<{50 * "z"}"\n\n\nx = 1\n'
    plain = highlight(code, PythonLexer(), HtmlFormatter())
    lines = plain.splitlines(keepends=True)
    lines[1] = f'<span class="long in-4">{lines[1]}</span>'
    assert wrapped(code) == "".join(lines)


def test_a_line_is_as_long_as_it_is_seen():
    code = "<".join("abcdefghijklmnop")
    assert len(highlight(code, PythonLexer(), HtmlFormatter())) > 10 * len(code)
    assert 'class="long ' not in wrapped(code)


def test_only_a_long_run_of_code_may_break_at_its_dots_and_brackets():
    short, long = "import_module.function(1, 2)", "import_module.function_with_a_long_name(1, 2)"
    assert "<wbr>" not in wrapped(f"print(1, {short}, {short})")
    assert wrapped(f"print(1, {long})").count("<wbr>") == 3


def test_a_small_number_is_kept_whole():
    text = f"the largest error, {20 * 'x'}: 7.1e-16 (at most 1e-15)"
    for number in ("7.1e-16", "1e-15"):
        assert f'<span class="whole">{number}</span>' in highlight(text, TextLexer(), wrapping.Wrapping())


def test_an_option_is_kept_whole():
    line = f"./server {30 * 'x'} --rope-scaling yarn --yarn-orig-ctx 4096"
    shown = highlight(line, TextLexer(), wrapping.Wrapping())
    assert shown.count('<span class="whole">') == 2
    assert '<span class="whole">--yarn-orig-ctx</span>' in shown


def printed(text, *classes):
    document = new_document("page")
    document += nodes.literal_block(text, text, classes=list(classes))
    wrapping.PrintedColumns(document).run()
    return wrapped(text, **document[0].get("highlight_args", {}))


def test_what_was_printed_in_columns_scrolls_and_other_output_wraps():
    columns = f"name        10\nother       11\nthird       {50 * 'z'}"
    assert '<pre class="in-columns">' in printed(columns, "output", "stream")
    assert 'class="long ' not in printed(columns, "output", "stream")
    for text in (f"name        10\nother       {50 * 'z'}", f"a sentence {50 * 'z'}"):
        assert 'class="long ' in printed(text, "output", "stream")
    assert "in-columns" not in printed(3 * "x = 1    # a comment\n")


def test_a_table_is_wide_if_its_words_are():
    def box(count, kind="book-table"):
        cells = "".join(f"<th>{'number' * 2}</th>" for _ in range(count))
        table = f'<table class="{kind}"><thead><tr>{cells}</tr></thead><tbody></tbody></table>'
        document = new_document("page")
        html = f'<div class="table-box">{table}</div>'
        document += nodes.raw(html, html, format="html")
        wrapping.WideTables(document).run()
        return document.astext()

    assert "full-width" not in box(5)
    assert box(6).startswith('<div class="table-box full-width"><table class="book-table">')
    assert "full-width" not in box(6, "book-table guide-table")


def test_only_sentences_in_many_columns_become_paragraphs():
    def classes(*cells):
        body = nodes.tbody("", *(nodes.row("", *(nodes.entry("", nodes.paragraph(text=one)) for one in cells)),) * 2)
        document = new_document("page")
        document += nodes.table("", nodes.tgroup("", body))
        wrapping.ProseTables(document).run()
        return document[0]["classes"]

    sentence = "frequencies stay fixed"
    assert classes(*4 * [sentence]) == ["prose"]
    assert classes(*3 * [sentence]) == []
    assert classes(*3 * [sentence], "no") == []


def least_width(table):
    return wrapping.least_width(BeautifulSoup(table, "html.parser"))


def test_a_head_breaks_between_its_words_and_a_number_does_not():
    head = '<table><thead><tr><th class="number">a b c d e f</th></tr></thead><tbody>{}</tbody></table>'
    assert least_width(head.format("")) < least_width(head.format('<tr><td class="number">10 – 20</td></tr>'))


def test_what_is_only_spoken_takes_no_room():
    row = "<tr><td class='number'>{}</td></tr>"
    spoken = "<strong>10<span class='visually-hidden'> (best)</span></strong>"
    assert least_width(row.format(spoken)) == least_width(row.format("10"))
