"""Tests of the parts that are folded on the site, and of how long lines are wrapped: `book/_ext/plumbing.py` and
`wrapping.py`."""

from __future__ import annotations

import re

from nbformat.v4 import new_code_cell, new_notebook, new_output

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


def wrapped(lines, before=""):
    text = f'{before}<div class="highlight"><pre><span></span>{lines}\n</pre></div>'
    return wrapping.BLOCK.sub(wrapping.wrap, text)


def test_only_long_lines_become_elements_and_no_letter_changes():
    short, long = "x = 1", f'    <span class="n">y</span> = &quot;{50 * "z"}&quot;'
    found = wrapped(f"{short}\n{long}\n{short}")
    assert f'{short}\n<span class="long in-4">{long}\n</span>{short}\n' in found
    assert re.sub("<[^>]*>", "", found) == re.sub("<[^>]*>", "", f"{short}\n{long}\n{short}\n")


def test_a_line_is_as_long_as_it_is_seen():
    assert 'class="long ' not in wrapped("".join(f'<span class="n">{letter}</span>&lt;' for letter in "abcdefghij"))


def test_what_was_printed_in_columns_scrolls_and_other_output_wraps():
    printed = '<div class="output stream highlight-myst-ansi notranslate">'
    assert '<pre class="in-columns">' in wrapped("name        10\nother       11\nthird       12", printed)
    assert 'class="long ' in wrapped(f"name        10\nother       {50 * 'z'}", printed)
    assert 'class="long ' in wrapped(f"a sentence {50 * 'z'}", printed)
    assert "in-columns" not in wrapped("x = 1    # a comment", '<div class="cell_input docutils container">')


def test_a_table_is_wide_if_its_words_are():
    def box(count):
        cells = "".join(f"<th>{'number' * 2}</th>" for _ in range(count))
        table = f'<table class="book-table"><thead><tr>{cells}</tr></thead><tbody></tbody></table>'
        return wrapping.TABLE.sub(wrapping.widen, f'<div class="table-box">{table}</div>')

    assert "full-width" not in box(5)
    assert box(6).startswith('<div class="table-box full-width">')


def test_a_head_breaks_between_its_words_and_a_number_does_not():
    head = '<table><thead><tr><th class="number">a b c d e f</th></tr></thead><tbody>{}</tbody></table>'
    assert wrapping.least_width(head.format("")) < wrapping.least_width(
        head.format('<tr><td class="number">10 – 20</td></tr>')
    )
