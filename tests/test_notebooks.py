"""Student notebooks: each construct of MyST becomes plain Markdown, code stays as it is, the notebooks run alone."""

from __future__ import annotations

import base64
import copy
import importlib.metadata
import io
import json
import os
import re
import shutil
import subprocess
import venv
import zipfile
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from markdown_it import MarkdownIt
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tools import book as builder
from tools import execute, first_cell, myst, notebooks
from tools.citations import Citations
from tools.flatten import STATE, FlattenError, flatten
from tools.paths import BOOK, HTML, ROOT
from tools.pictures import as_images

CHAPTERS = execute.chapters()

# ------------------------------------------------------------------ a small book

BIBLIOGRAPHY = r"""
@article{one, author = {Curie, Marie}, title = {Salts}, journal = {CR}, year = {1898}, url = {https://e.org/1}}
@article{two, author = {van der Berg, A and L{\"u}, Y}, title = {Pairs}, journal = {J}, year = {2001}, doi = {10.1/x}}
@article{three, author = {Bo, A and Co, B and Do, C}, title = {Turns}, journal = {J}, year = {2021}, eprint = {2104.1}}
@article{twin, author = {Bo, A and Co, B and Do, C}, title = {After}, journal = {J}, year = {2021}}
@misc{page, title = {A page}}
"""
OTHER = """---
kernelspec: {display_name: Python 3, name: python3}
---
(top)=
# Attention and $d$

(masks)=
## Masks

```{math}
:label: eq-softmax
a
```
```{math}
:label: eq-scores
b
```
```{code-cell}
1
```
"""


@pytest.fixture(scope="session")
def book_dir(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("book")
    (folder / "references.bib").write_text(BIBLIOGRAPHY, encoding="utf-8")
    (folder / "attention.md").write_text(OTHER, encoding="utf-8")
    (folder / "notation.md").write_text("(symbols)=\n# Notation\n", encoding="utf-8")
    return folder


def flat(book_dir: Path, *sources: str) -> list[str]:
    """The cells that some Markdown cells become."""
    notebook = new_notebook(cells=[new_markdown_cell(source) for source in sources])
    return [cell.source for cell in flatten(notebook, "chapter", book_dir, standalone=False).cells]


CONSTRUCTS = {
    "plain": ("# A\n\ntext *b* `c` $d$\n\n- x\n- y\n\n> z", "# A\n\ntext *b* `c` $d$\n\n- x\n- y\n\n> z"),
    "math": ("```{math}\na\n=b\n```", "$$\na\n=b\n$$"),
    "math on the first line": ("```{math} a\nb\n```", "$$\na\nb\n$$"),
    "math in colons": (":::{math}\na\n:::", "$$\na\n$$"),
    "math in tildes": ("~~~{math}\na\n~~~", "$$\na\n$$"),
    "math with blank lines": ("```{math}\na\n\n  \nb\n```", "$$\na\nb\n$$"),
    "math with remarks": ("```{math}\na 5\\% % no\n% no\nb\\\\% no\n```", "$$\na 5\\%\nb\\\\\n$$"),
    "math with a label": ("```{math}\n:label: eq-x\n:class: identity\na\n```", "$$\na\n\\tag{1}\n$$"),
    "math with yaml": ("```{math}\n---\nlabel: eq-x\n---\na\n```", "$$\na\n\\tag{1}\n$$"),
    "math with rows": (
        "```{math}\n:label: eq-x\n\\begin{align*}\na\n\\end{align*}\n```",
        "$$\n\\begin{aligned}\na\n\\end{aligned}\n\\tag{1}\n$$",
    ),
    "math of one equation": (
        "```{math}\n:label: eq-x\n\\begin{equation}\na\n\\end{equation}\n```",
        "$$\na\n\\tag{1}\n$$",
    ),
    "math in a list": ("- a\n  ```{math}\n  b\n  c\n  ```\n  d", "- a\n\n  $$ b c $$\n\n  d"),
    "math that opens an item": ("1. ```{math}\n   b\n   ```\n2. c", "1. $$ b $$\n\n2. c"),
    "math in a quotation": ("> a\n>\n> $$\n> b\n> c\n> $$", "> a\n>\n> $$ b c $$"),
    "dollars": ("$$\na\n\nb\n$$", "$$\na\nb\n$$"),
    "dollars with a label": ("$$ a $$ (eq-x)\n\n{eq}`eq-x`", "$$\na\n\\tag{1}\n$$\n\n(1)"),
    "inline math": ("{math}`x_1` $ y $ $a\nb$ c", "$x_1$ $y$ $a b$ c"),
    "role over two lines": ("a {term}`b\nc` d\ne", "a *b c* d\ne"),
    "equations": (
        "{eq}`eq-b` {eq}`eq-a`\n\n$$ 1 $$ (eq-a)\n\n$$ 2 $$ (eq-b)",
        "(2) (1)\n\n$$\n1\n\\tag{1}\n$$\n\n$$\n2\n\\tag{2}\n$$",
    ),
    "equation elsewhere": ("{eq}`eq-scores`", "(2) of [Attention and $d$](attention.ipynb)"),
    "note": ("```{note}\na\n\nb\n```", "> **Note**\n>\n> a\n>\n> b"),
    "note on its first line": ("```{tip} a\nb\n```", "> **Tip**\n>\n> a\n> b"),
    "note without spaces": ("a\n```{note}\nb\n```\nc", "a\n\n> **Note**\n>\n> b\n\nc"),
    "seealso": (":::{seealso}\na\n:::", "> **See also**\n>\n> a"),
    "admonition": (":::{admonition} A {term}`b` $c$\n:class: tip\nd\n:::", "> **A *b* $c$**\n>\n> d"),
    "margin": (":::{margin}\na\n:::", "> a"),
    "dropdown class": (
        ":::{admonition} Hint {math}`x<y` & `c`\n:class: tip dropdown\na\n```{math}\nb\n```\n:::",
        "<details>\n<summary>Hint $x&lt;y$ &amp; <code>c</code></summary>\n\na\n\n$$\nb\n$$\n\n</details>",
    ),
    "dropdown": (":::{dropdown} T\n:open:\na\n:::", "<details open>\n<summary>T</summary>\n\na\n\n</details>"),
    "nested": (
        "::::{note}\na\n:::{dropdown} T\n```{math}\nb\nc\n```\n:::\nd\n::::",
        "> **Note**\n>\n> a\n>\n> <details>\n> <summary>T</summary>\n>\n> $$ b c $$\n>\n> </details>\n>\n> d",
    ),
    "nested in ticks": ("````{note}\n```{tip}\na\n```\n````", "> **Note**\n>\n> > **Tip**\n> >\n> > a"),
    "starts nested": ("::::{note}\n:::{tip}\na\n:::\n::::", "> **Note**\n>\n> > **Tip**\n> >\n> > a"),
    "note in an item": ("- a\n\n  :::{note}\n  b\n  :::\n- c", "- a\n\n  > **Note**\n  >\n  > b\n\n- c"),
    "note in a quotation": ("> a\n> ```{note}\n> b\n> ```\n> c", "> a\n>\n> > **Note**\n> >\n> > b\n>\n> c"),
    "table": (
        ":::{table} T\n| a |\n|---|\n| {eq}`eq-softmax` |\n:::",
        "**T**\n\n| a |\n|---|\n| (1) of [Attention and $d$](attention.ipynb) |",
    ),
    "cells": (
        "| {term}`a` | b `{c}` |\n|---|---|\n| {term}`d` | $\\|x\\|$ {sub}`1` `e\\|f` |",
        "| *a* | b `{c}` |\n|---|---|\n| *d* | $\\vert x\\vert$ <sub>1</sub> `e\\|f` |",
    ),
    "code-block": ("```{code-block} python\n:caption: A\nx = 1\n```", "**A**\n\n```python\nx = 1\n```"),
    "code-block with ticks": ("~~~{code-block} text\n```\n~~~", "````text\n```\n````"),
    "definitions": ("A {term}`b`\n: c\n  d\n\n  e\n\nF\n: g", "- **A *b***: c\n  d\n\n  e\n- **F**: g"),
    "definitions in an item": ("- A\n  : c\n    d", "- - **A**: c\n    d"),
    "remarks": ("a\n% b\nc\n\n% d\n% e\n\nf", "a\n\nc\n\n\nf"),
    "target": ("a\n\n(x)=\n## B", "a\n\n## B"),
    "block break": ("a\n\n+++\n\nb", "a\n\n\nb"),
    "term": ("{term}`a`, {term}`b <c>`", "*a*, *b*"),
    "doc": (
        "{doc}`attention`, {doc}`it </book/attention>`, {doc}`notation`",
        "[Attention and $d$](attention.ipynb), [it](attention.ipynb), Notation",
    ),
    "ref elsewhere": (
        "{ref}`masks`, {ref}`them <masks>`, {ref}`symbols`",
        "[Masks](attention.ipynb), [them](attention.ipynb), Notation",
    ),
    "ref here": ("(x)=\n## B $c$\n\n{ref}`x`, {ref}`d <x>`", "## B $c$\n\n“B $c$”, d"),
    "ref to an equation": ("{ref}`eq-softmax`", "(1) of [Attention and $d$](attention.ipynb)"),
    "ref to a note": (":::{note}\n:name: n\na\n:::\n\n{ref}`n`", "> **Note**\n>\n> a\n\n“Note”"),
    "links": (
        "[a {term}`b`](attention.md#masks) [](attention.md) [n](notation.md) [f](../code/x.py) [w](https://e.org)",
        "[a *b*](attention.ipynb) [Attention and $d$](attention.ipynb) n f [w](https://e.org)",
    ),
    "links to labels": (
        "[](#masks) [t](#masks) [](#eq-scores)",
        "[Masks](attention.ipynb) [t](attention.ipynb) (2) of [Attention and $d$](attention.ipynb)",
    ),
    "link to here": ("(x)=\n# B\n\n[c](#x) [](#x)", "# B\n\nc “B”"),
    "web addresses": ("<https://e.org> ![a](https://e.org/x.svg)", "<https://e.org> ![a](https://e.org/x.svg)"),
    "roles of one word": (
        "{sub}`2` {sup}`<n>` {kbd}`Tab` {code}`x` {abbr}`MHA (many heads)`",
        '<sub>2</sub> <sup>&lt;n&gt;</sup> <kbd>Tab</kbd> `x` <abbr title="many heads">MHA</abbr>',
    ),
    "code that holds ticks": ("{code}`` a`b ``", "`` a`b ``"),
    "escapes": (r"\{eq}`x` \$5 \{term\}", r"\{eq}`x` \$5 \{term\}"),
    "heading that closes": ("## {term}`a` ##", "## *a* ##"),
    "underlined heading": ("{term}`a`\n===", "*a*\n==="),
    "hard line ends": ("{term}`a`  \nb\\\nc", "*a*  \nb\\\nc"),
    "nothing": ("% only a remark", None),
}


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct(book_dir, name):
    source, expected = CONSTRUCTS[name]
    assert flat(book_dir, source) == ([] if expected is None else [expected])


ERRORS = {
    "directive": ("a\n\n```{nonsense} b\nc\n```", "line 3: unknown directive {nonsense}"),
    "directive in colons": ("a\n\n:::{figure} x.svg\n:::", "line 3: unknown directive {figure}"),
    "directive in a note": ("````{note}\n:class: tip\n\na\n```{code-cell}\n1\n```\n````", "line 5: unknown directive"),
    "directive in a note's first lines": ("````{note} a\n```{raw} html\n```\n````", "line 2: unknown directive {raw}"),
    "directive in an item": ("- a\n  - ```{list-table}\n    ```", "line 2: unknown directive {list-table}"),
    "role": ("a\nb {nonsense}`c`", "line 2: unknown role {nonsense}`c`"),
    "role in a title": ("\n:::{tip}\n:::\n:::{admonition} {numref}`x`\n:::", "line 4: unknown role {numref}`x`"),
    "role in a cell": ("| a |\n|---|\n| {index}`b` |", "line 3: unknown role {index}"),
    "role in a definition": ("A\n: b\n\n  {index}`b`", "line 4: unknown role {index}"),
    "role in a footnote": ("a[^b]\n\n[^b]: c {index}`d`", "line 3: unknown role {index}"),
    "abbreviation": ("{abbr}`MHA`", "unknown role {abbr}`MHA`"),
    "no name": ("::: note\na\n:::", "line 1: ::: note is no directive: its name must stand in braces"),
    "options": ("```{note}\n:a: 'b\nc\n```", "line 1: the options of {note} cannot be read"),
    "options without end": ("```{note}\n---\na: b\n```", "line 1: the options of {note} begin with ---"),
    "not closed at the end": ("a\n\n```{note}", "line 3: {note} is not closed by ```"),
    "not closed": ("a\n\n:::{note}\nb", "line 3: {note} is not closed by :::"),
    "closed too short": ("````{note}\nb\n```", "line 1: {note} is not closed by ````"),
    "closed too short in colons": ("::::{note}\nb\n:::", "line 3: ::: is no directive"),
    "no title": (":::{admonition}\na\n:::", "line 1: {admonition} needs a title on its first line"),
    "equation": ("{eq}`eq-x`", "line 1: no equation has the label 'eq-x'"),
    "equation twice": ("$$ a $$ (x)\n\n$$ a $$ (x)", "line 3: two equations have the label 'x'"),
    "label": ("{ref}`x`", "line 1: nothing in the book has the label 'x'"),
    "label of no heading": ("(x)=\na\n\n{ref}`x`", "line 4: 'x' stands before nothing that has a title"),
    "page": ("{doc}`x`", "line 1: the book has no page 'x'"),
    "link": ("[a](project:x.md)", "line 1: a notebook cannot follow [a](project:x.md)"),
    "link in brackets": ("a\n<path:x>", "line 2: a notebook cannot follow <path:x>"),
    "link without text": ("[](x.md)", "line 1: [](x.md) has no text"),
    "image": ("a\n![b](c.svg)", "line 2: image 'c.svg' does not travel"),
    "role in an image": ("![{term}`b`](https://e.org)", "line 1: a role cannot stand in the text of image"),
    "footnote": ("a[^b]", "line 1: footnote [^b] is not defined"),
    "dollar": ("a\n\n5 $", r"line 3: a dollar sign that begins no formula"),
    "dollars in a paragraph": ("a\n$$\nb\n$$", "a dollar sign that begins no formula"),
    "front matter": ("---\na: b\n---", "a notebook cannot show front_matter"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_is_not_known_is_an_error_that_says_where(book_dir, name):
    source, message = ERRORS[name]
    with pytest.raises(FlattenError) as caught:
        flat(book_dir, "before", source)
    assert str(caught.value).startswith("chapter, cell 2, ") or "footnote" in name
    assert message in str(caught.value)


def test_errors_count_lines_in_the_chapters_file(book_dir, tmp_path):
    shutil.copytree(book_dir, tmp_path / "b")
    text = OTHER + "\n## More\n\ntext\n\n- a {nonsense}`b`\n"
    (tmp_path / "b" / "late.md").write_text(text)
    line = text.split("\n").index("- a {nonsense}`b`") + 1
    with pytest.raises(FlattenError, match=rf"^late, line {line}: unknown role"):
        flatten(execute.read_chapter(tmp_path / "b" / "late.md"), "late", tmp_path / "b")


def test_errors_count_lines_although_a_cell_is_not_in_the_file(tmp_path):
    (tmp_path / "chapter.md").write_text("a\n\nb {x}`y`\n\nb {x}`y`\n")
    with pytest.raises(FlattenError, match=r"^chapter, line 3: unknown role"):
        flat(tmp_path, "this stands in no file " * 9, "b {x}`y`")
    notebook = new_notebook(cells=[new_code_cell("b {x}`y`"), new_markdown_cell("b {x}`y`")])
    with pytest.raises(FlattenError, match=r"^chapter, line 5: unknown role"):
        flatten(notebook, "chapter", tmp_path)


def test_an_error_in_another_chapter_names_that_chapter(tmp_path):
    (tmp_path / "other.md").write_text("# A\n\n$$ a $$ (x)\n\n$$ a $$ (x)\n")
    with pytest.raises(FlattenError, match=r"^other, line 5: two equations"):
        flat(tmp_path, "{eq}`y`")


def test_a_work_that_is_not_in_the_bibliography(book_dir, tmp_path):
    for folder in (book_dir, tmp_path):
        with pytest.raises(FlattenError, match=r"chapter: references\.bib has no entry 'nobody'"):
            flat(folder, "{cite}`nobody`")


def test_chapters_are_the_numbered_pages(tmp_path):
    book = tmp_path / "book"
    book.mkdir()
    parts = [
        {"numbered": 1, "chapters": [{"file": "book/one"}, {"file": "book/two"}]},
        {"numbered": False, "chapters": [{"file": "book/three"}]},
        {"numbered": 1, "chapters": [{"file": "book/four"}]},
    ]
    (tmp_path / "_toc.yml").write_text(yaml.safe_dump({"root": "book/intro", "parts": parts}))
    for page in ("intro", "one", "two", "three", "four"):
        (book / f"{page}.md").write_text(f"# {page}\n\n$$ a $$ (eq-{page})\n")
    cell = "\n```{code-cell}\n1\n```\n"
    for page in ("one", "three"):
        (book / f"{page}.md").write_text((book / f"{page}.md").read_text() + cell)
    found = {}
    for page in ("intro", "one", "two", "three", "four"):
        notebook = new_notebook(cells=[new_markdown_cell("$$ b $$ (eq-b)\n\n{eq}`eq-b` {eq}`eq-four`")])
        found[page] = flatten(notebook, page, book, standalone=False).cells[0].source if page != "four" else ""
    assert found["intro"] == "$$\nb\n\\tag{1}\n$$\n\n(1) (3.1) of four"
    assert found["one"] == "$$\nb\n\\tag{1.1}\n$$\n\n(1.1) (3.1) of four"
    assert found["two"] == "$$\nb\n\\tag{2.1}\n$$\n\n(2.1) (3.1) of four"
    assert found["three"] == "$$\nb\n\\tag{1}\n$$\n\n(1) (3.1) of four"
    # A page with code that is no chapter has no notebook.
    assert flat(book, "{doc}`one` {doc}`two` {doc}`three`") == ["[one](one.ipynb) two three"]
    assert lab(book, tmp_path / "lab") == ["one.ipynb"]


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_equations_have_the_built_pages_numbers(chapter):
    if not builder.STAMP.exists() or builder.STAMP.read_text() != builder.fingerprint():
        pytest.skip("the site was not built from these files; make html builds it")
    page = (HTML / "book" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    notebook = flatten(execute.read_chapter(chapter), chapter.stem, BOOK, standalone=False)
    tags = [tag for cell in notebook.cells for tag in re.findall(r"\\tag\{([\d.]+)\}", cell.source)]
    assert tags == re.findall(r'class="eqno">\(([\d.]+)\)', page)


# ------------------------------------------------------------------ what refers from cell to cell


def test_numbers_run_on_and_references_reach_over_cells(book_dir):
    found = flat(
        book_dir,
        "{eq}`eq-b`[^note] and [link][ref]",
        "% gone",
        "$$ a $$ (eq-a)\n\n[ref]: https://e.org 'Title'\n[^note]: A *note*.\n\n    ```python\n    {eq}`a`\n    ```",
        "$$ b $$ (eq-b)\n\nagain[^note], more[^more]\n\n[^more]: See[^last].\n[^last]: End.",
    )
    assert found == [
        '(2)<sup>1</sup> and [link](<https://e.org> "Title")',
        "$$\na\n\\tag{1}\n$$\n\n[ref]: https://e.org 'Title'",
        "$$\nb\n\\tag{2}\n$$\n\nagain<sup>1</sup>, more<sup>2</sup>",
        "## Notes\n\n1. A *note*.\n\n   ```python\n   {eq}`a`\n   ```\n2. See<sup>3</sup>.\n3. End.",
    ]


def test_citations_and_references(book_dir):
    text, references = flat(
        book_dir,
        "{cite:t}`one` {cite:t}`two,page` {cite}`three, twin`\n\n:::{note}\n{cite:p}`two`\n:::",
    )
    assert text == (
        "[Curie (1898)](<https://e.org/1>) [van der Berg and Lü (2001)](<https://doi.org/10.1/x>); A page (n.d.) "
        "([Bo et al., 2021a](<https://arxiv.org/abs/2104.1>); Bo et al., 2021b)\n\n"
        "> **Note**\n>\n> ([van der Berg and Lü, 2001](<https://doi.org/10.1/x>))"
    )
    lines = references.split("\n")
    assert lines[:2] == ["## References", ""]
    order = ["A page", "Turns", "After", "Salts", "Pairs"]
    assert [title for line in lines[2:] for title in order if title in line] == order
    assert len(lines) == 2 + len(order)
    assert lines[3].endswith("(cited as 2021a)")
    assert lines[4].endswith("(cited as 2021b)")
    assert "cited as" not in lines[2] + lines[5] + lines[6]
    assert "Marie Curie" in lines[5]
    assert "*CR*" in lines[5]


def test_references_stand_where_the_chapter_wants_them(book_dir):
    found = flat(book_dir, "{cite}`one`", "## Reading\n\n```{bibliography}\n:style: unsrt\n```\n\nend")
    assert len(found) == 2
    assert re.fullmatch(r"## Reading\n\n- Marie Curie.*Salts.*\n\nend", found[1])


def test_nothing_is_cited_without_need_of_a_file(tmp_path):
    assert Citations(tmp_path / "none.bib", []).references() == ""
    assert flat(tmp_path, "text") == ["text"]


# ------------------------------------------------------------------ code is never altered

NASTY = st.lists(
    st.sampled_from(
        ["{eq}`x`", ":::{note}", ":::", "$$", "$a", "$", "% a", "(x)=", "+++", "[^a]", "[^a]: b", "[b](c.md)", "{a}`b`"]
        + ["{math}", "A", ": b", "", "  ", "~~~{tip}", "---", ":label: x", "![](x.png)", "\\", "|a|", "|-|"]
    ),
    min_size=1,
    max_size=8,
)


@given(
    lines=NASTY,
    frame=st.sampled_from(["%s", "a\n\n%s\n\nb", "- a\n\n%s", "> %s", "````{note}\n%s\n````", "::::{tip}\n%s\n::::"]),
    fence=st.sampled_from([("```python", "```"), ("```", "```"), ("~~~~ text", "~~~~")]),
)
def test_fenced_code_stays_as_it_is(book_dir, lines, frame, fence):
    code = [line.replace("~~~", "~~") for line in lines]
    block = "\n".join([fence[0], *code, fence[1]])
    prefix = {"- ": "  ", "> ": "> "}.get(frame[:2], "")
    source = frame.replace("%s", block.replace("\n", "\n" + (prefix if frame[0] == ">" else "")))
    if frame[0] == "-":
        source = "- a\n\n" + "\n".join("  " + line for line in block.split("\n"))
    tokens = MarkdownIt("commonmark").parse("\n".join(flat(book_dir, source)))
    assert [token.content for token in tokens if token.type == "fence"] == ["\n".join(code) + "\n"]


@given(lines=NASTY)
def test_code_in_a_line_stays_as_it_is(book_dir, lines):
    code = " ".join(["x", *lines, "x"])
    source = f"{{term}}`a` ``{code}`` {{term}}`b`"
    assert flat(book_dir, source) == [f"*a* ``{code}`` *b*"]


def test_indented_code_stays_as_it_is(book_dir):
    assert flat(book_dir, "a\n\n    :::{note}\n    {eq}`x`\n\nb") == ["a\n\n    :::{note}\n    {eq}`x`\n\nb"]


PLAIN = ["# A\n", "text *b* `c`", "- a\n- b\n  - c", "> a\n> b", "1. a\n\n   b", "| a |\n|---|\n| `b` |", "$$\na\n$$"]
PLAIN += ["a  \nb", "<b>a</b>", "<!-- a -->", "```\na\n```", "---", "[a](https://e.org)", "a $b$ c", "A\n==="]


@given(st.lists(st.sampled_from(PLAIN), min_size=1, max_size=6))
def test_plain_markdown_stays_as_it_is(book_dir, parts):
    source = "\n\n".join(["first", *parts])
    assert flat(book_dir, source) == [source.strip("\n")]


# ------------------------------------------------------------------ nothing raw leaks

RAW = re.compile(r"^\s*(:::|%|\+\+\+|\([\w-]+\)=)|\[\^[^\]]+\]|^: ", re.MULTILINE)


def leftovers(markdown: str) -> list[str]:
    """What is still MyST, both for a tokenizer that knows MyST and for one that knows CommonMark only."""
    found = []
    for token in myst.PARSER.parse(markdown):
        children = {child.type for child in token.children or []}
        if token.type.startswith(("myst", "colon", "footnote", "dl_", "math_block_label")):
            found.append(token.type)
        found += sorted(children & {"myst_role", "footnote_ref"})
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.type == "fence" and token.info.startswith("{"):
            found.append(token.info)
        for before, after in zip(token.children or [], (token.children or [])[1:], strict=False):
            if before.type == "text" and re.search(r"\{[\w:+-]+\}$", before.content) and after.type == "code_inline":
                found.append(before.content)
        if token.type == "inline":
            text = "".join(c.content if c.type == "text" else "\n" * ("break" in c.type) for c in token.children)
            found += [match[0] for match in RAW.finditer(text)]
    return found


@pytest.mark.parametrize(
    "raw",
    ["{eq}`x`", "a {cite:t}`b`", "```{note}\na\n```", ":::{note}\na\n:::", "::: a", "% a", "+++", "(x)=", "A\n: b"]
    + ["a[^b]\n\n[^b]: c", "a[^b]", "- ```{math}\n  a\n  ```", "> (x)=", "$$ a $$ (b)", "| a |\n|---|\n| {eq}`x` |"],
)
def test_leftovers_are_seen(raw):
    assert leftovers(raw)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_no_construct_leaves_myst(book_dir, name):
    for cell in flat(book_dir, CONSTRUCTS[name][0]):
        if name != "escapes":
            assert leftovers(cell) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_no_myst_is_left_in_a_chapter(chapter):
    notebook = flatten(execute.read_chapter(chapter), chapter.stem, BOOK)
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            assert leftovers(cell.source) == [], cell.source


def test_the_tokenizer_knows_what_the_site_knows():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    assert sorted(config["parse"]["myst_enable_extensions"]) == sorted(myst.EXTENSIONS)


# ------------------------------------------------------------------ the notebook around the text


@pytest.fixture
def ran() -> nbformat.NotebookNode:
    """A chapter as it is after it has run, with an explorer, a picture and what the site's builder adds."""
    view = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "m", "version_major": 2, "version_minor": 0},
        "text/html": '<svg viewBox="0 0 2 1"></svg>',
        "text/plain": "Shuffle()",
    }
    cells = [
        new_markdown_cell("# Turns\n\n```{math}\n:label: eq-x\na\n```"),
        new_markdown_cell("% nothing to be seen"),
        new_code_cell("1", execution_count=1, outputs=[new_output("display_data", data=view)]),
        new_code_cell("2", metadata={"tags": ["hide-input"], "mystnb": {"image": {"alt": "a"}}}, execution_count=2),
        new_code_cell("3", metadata={"tags": ["remove-output"]}),
        new_code_cell("4", metadata={"tags": ["hide-cell", "other"], "execution": {}}),
        new_code_cell("5", metadata={"tags": ["remove-input"]}),
        new_code_cell("6", metadata={"tags": ["remove-cell"]}),
        new_code_cell("7", metadata={"tags": ["hide-output"]}),
    ]
    state = {"version_major": 2, "version_minor": 0, "state": {"m": {"model_name": "AnyModel", "state": {"_esm": "x"}}}}
    metadata = {
        "kernelspec": {"name": "python3", "display_name": "Python 3"},
        "language_info": {"name": "python", "version": "3.11"},
        "jupytext": {},
        "ropebook_key": {},
        "widgets": {STATE: state},
    }
    return new_notebook(cells=cells, metadata=metadata)


def test_outputs_and_widgets_are_kept(book_dir, ran):
    before = copy.deepcopy(ran)
    result = flatten(ran, "turns", book_dir)
    assert ran == before, "the chapter itself was changed"
    nbformat.validate(result)
    assert [cell.cell_type for cell in result.cells] == ["code", *["markdown"] * 2, *["code"] * 7]
    assert [cell.id for cell in result.cells] == [f"cell-{i}" for i in range(10)]
    (kept,), (output,) = result.cells[3].outputs, ran.cells[2].outputs
    assert kept.data.pop("text/html") == as_images(output.data.pop("text/html"))
    assert kept == output
    assert result.cells[3].execution_count == 1
    assert sorted(result.metadata) == ["kernelspec", "language_info", "widgets"]
    assert result.metadata.language_info == ran.metadata.language_info
    assert result.metadata.widgets == ran.metadata.widgets
    assert result.metadata.kernelspec.name == "python3"


def drawing(markup: str) -> ElementTree.Element:
    """The drawing that an image holds."""
    return ElementTree.fromstring(base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', markup)[1]))


@pytest.mark.parametrize(
    ("attributes", "size"),
    [
        ('viewBox="0 0 300 150"', ("300", "150")),
        ('viewBox="0 0 300 150" width="100%" style="max-width: 450px"', ("450", "225")),
        ('viewBox="10 20 300 150" width="600px" style="max-width:100%"', ("600", "300")),
        ('width="80" height="40"', ("80", "40")),
        ('xmlns="http://www.w3.org/2000/svg" viewBox="0 0 3.4 2"', ("3", "2")),
    ],
)
def test_drawings_become_images(attributes, size):
    inner = '<svg x="1"><g><text style="fill: var(--a, #123456)">θ &lt;</text></g></svg>'
    outer = f'<svg {attributes} aria-label="Two &quot;curves&quot; that cross">{inner}</svg>'
    markup = as_images(f"<figure>{outer}<figcaption>caption</figcaption></figure> and {outer}.")
    image = (
        rf'<img alt="Two &quot;curves&quot; that cross" width="{size[0]}" src="data:image/svg\+xml;base64,[\w+/=]+">'
    )
    assert re.fullmatch(f"<figure>{image}<figcaption>caption</figcaption></figure> and {image}\\.", markup)
    root = drawing(markup)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    assert (root.get("width"), root.get("height")) == size
    (text,) = root.iter("{http://www.w3.org/2000/svg}text")
    assert (text.text, text.get("style")) == ("θ <", "fill: var(--a, #123456)")
    assert drawing(markup[markup.index("and") :]).get("width") == size[0]


def test_an_image_stands_on_its_own_paper_in_its_own_font():
    style = "--ink: var(--fig-ink, #000); fill: var(--ink); display: block; width: 100%; max-width: 9px; height: auto"
    root = drawing(as_images(f'<svg viewBox="0 0 2 1" style="{style}"></svg>'))
    expected = "background: #fff; font-family: system-ui, sans-serif; --ink: var(--fig-ink, #000); fill: var(--ink)"
    assert root.get("style") == expected
    root = drawing(as_images('<svg viewBox="0 0 2 1" style="font-family:serif;background:red"></svg>'))
    assert root.get("style") == "background: red; font-family: serif"


def test_other_html_stays_as_it_is():
    assert as_images("<table><tr><td>svg</td></tr></table>") == "<table><tr><td>svg</td></tr></table>"


@pytest.mark.parametrize(
    ("svg", "message"),
    [
        ('<svg viewBox="0 0 2 1"><g></svg>', "not well-formed XML"),
        ('<svg viewBox="0 0 2 1">&nbsp;</svg>', "not well-formed XML"),
        ("<svg></svg>", "neither a viewBox nor a width and a height"),
        ('<svg width="3"></svg>', "neither a viewBox nor a width and a height"),
    ],
)
def test_a_drawing_that_cannot_stand_alone_is_an_error(book_dir, ran, svg, message):
    ran.cells[3].outputs = [new_output("display_data", data={"text/html": svg})]
    with pytest.raises(FlattenError, match=f"^turns, code cell 2: a drawing .*{message}"):
        flatten(ran, "turns", book_dir)


def test_widgets_get_the_key_that_github_wants(book_dir, ran):
    ran.metadata.widgets = {STATE: {"m": {"state": {}}}}
    widgets = flatten(ran, "turns", book_dir).metadata.widgets
    assert widgets == {STATE: {"version_major": 2, "version_minor": 0, "state": {"m": {"state": {}}}}}
    del ran.metadata["widgets"]
    del ran.metadata["language_info"]
    metadata = flatten(ran, "turns", book_dir).metadata
    assert "widgets" not in metadata
    assert metadata.language_info == {"name": "python"}


def test_what_the_page_hides_is_folded(book_dir, ran):
    folds = [cell.metadata for cell in flatten(ran, "turns", book_dir).cells[3:]]
    source, outputs, form = {"source_hidden": True}, {"outputs_hidden": True}, {"cellView": "form"}
    assert folds == [
        {},
        {"tags": ["hide-input"], "jupyter": source, **form},
        {"tags": ["remove-output"], "jupyter": outputs},
        {"tags": ["hide-cell", "other"], "jupyter": source | outputs, **form},
        {"tags": ["remove-input"], "jupyter": source, **form},
        {"tags": ["remove-cell"], "jupyter": source | outputs, **form},
        {"tags": ["hide-output"], "jupyter": outputs},
    ]


def test_a_notebook_begins_by_saying_what_it_is(book_dir, ran):
    code, note, title = flatten(ran, "turns", book_dir).cells[:3]
    assert code.source.startswith("# @title ")
    assert code.metadata.jupyter.source_hidden
    assert code.metadata.cellView == "form"
    assert note.source.startswith("This is the chapter “Turns” of the book “RoPE, Turn by Turn” as a notebook")
    assert note.source.endswith("run that cell first.")
    assert title.source.startswith("# Turns")
    assert flatten(ran, "turns", book_dir, standalone=False).cells[0].source == title.source


def test_the_same_chapter_makes_the_same_notebook(book_dir, ran, tmp_path):
    other = nbformat.from_dict(copy.deepcopy(ran))
    for cell in other.cells:
        cell.id = f"x{cell.id}"
    (first,) = notebooks.write({"turns": ran}, tmp_path / "a", book_dir)
    (second,) = notebooks.write({"turns": other}, tmp_path / "b", book_dir)
    assert first == tmp_path / "a" / "turns.ipynb"
    assert first.read_bytes() == second.read_bytes()
    nbformat.validate(nbformat.read(first, as_version=4))
    assert json.loads(first.read_text())["nbformat_minor"] == 5


def test_nothing_is_written_when_one_notebook_is_wrong(book_dir, ran, tmp_path):
    for wrong, error in (("{nonsense}`a`", FlattenError), (None, nbformat.ValidationError)):
        bad = new_notebook(cells=[new_markdown_cell(wrong or "a"), new_code_cell("1")])
        if wrong is None:
            bad.cells[1].outputs = [{"output_type": "nothing"}]
        with pytest.raises(error):
            notebooks.write({"turns": ran, "bad": bad}, tmp_path / "out", book_dir)
        assert not (tmp_path / "out").exists()


# ------------------------------------------------------------------ what the first cell carries and does


@pytest.fixture
def repository(tmp_path) -> Path:
    """Sources, results and requirements, with some files that have to stay at home."""
    root = tmp_path / "repository"
    package = root / "code" / "ropebook"
    for folder in (package / "explorers", package / "__pycache__", root / "results"):
        folder.mkdir(parents=True)
    files = {
        package / "__init__.py": "",
        package / "one.py": "def f():\n    return 'from the notebook'\n",
        package / "explorers" / "rope.js": "export const θ = 1;",
        package / "notes.txt": "no",
        package / "__pycache__" / "one.cpython-311.pyc": "no",
        package / "__pycache__" / "stray.py": "no",
        root / "results" / "measured.json": '{"value": 7}',
        root / "results" / "small.pt": "weights",
        root / "results" / ".hidden.json": "no",
        root / "results" / "large.pt": "x" * (first_cell.SMALL + 1),
        root / "requirements.txt": "# a\n\nnumpy>=1 # b\nsympy\nmatplotlib\ntorch>=2.6\nanywidget<9\nsafetensors\no\n",
        root / "_config.yml": "title: The Book\n",
    }
    for path, text in files.items():
        path.write_text(text, encoding="utf-8")
    return root


def test_what_travels(repository):
    files = first_cell.contents(repository)
    names = ["__init__.py", "explorers/rope.js", "one.py", "_results/measured.json", "_results/small.pt"]
    assert sorted(files) == sorted(f"ropebook/{name}" for name in names)
    assert files["ropebook/explorers/rope.js"].decode() == "export const θ = 1;"
    (repository / "results" / "large.pt").write_text("x" * first_cell.SMALL)
    assert "ropebook/_results/large.pt" in first_cell.contents(repository)


def test_a_large_result_travels_with_a_notebook_that_names_it(repository):
    large = "ropebook/_results/large.pt"
    assert large in first_cell.contents(repository, 'results.load("large")')
    assert large not in first_cell.contents(repository, "a large result, enlarged")
    sources = [
        "".join(cell.source for cell in first_cell.first_cells("Turns", repository, text))
        for text in ('results.load("large")', "pass")
    ]
    assert sources[0] != sources[1]


def test_stills_travel_with_a_notebook_that_imports_their_explorer(repository):
    stills = repository / "code" / "ropebook" / "explorers" / "stills"
    stills.mkdir()
    for name in ("turn", "turning"):
        (stills / f"{name}.svg").write_text("<svg/>")
    text = "from ropebook.explorers.turn import Turn"
    found = {name for name in first_cell.contents(repository, text) if name.endswith(".svg")}
    assert found == {"ropebook/explorers/stills/turn.svg"}
    assert not [name for name in first_cell.contents(repository) if name.endswith(".svg")]


def test_the_archive_depends_on_contents_only(repository):
    files = first_cell.contents(repository)
    name, text = first_cell.archive(files)
    for path in repository.rglob("*.py"):
        os.utime(path, (1, 1))
    assert first_cell.archive(dict(reversed(first_cell.contents(repository).items()))) == (name, text)
    assert re.fullmatch(r"ropebook-[0-9a-f]{12}", name)
    assert max(map(len, text.split("\n"))) <= 120
    with zipfile.ZipFile(io.BytesIO(base64.b64decode(text))) as archive:
        assert {member: archive.read(member) for member in archive.namelist()} == files
        assert {member.date_time for member in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    for changed in ({**files, "ropebook/one.py": b"x"}, {**files, "ropebook/new.py": b""}, {"a": b"bc"}, {"ab": b"c"}):
        assert first_cell.archive(changed)[0] != name
    assert first_cell.archive({"a": b"bc"})[0] != first_cell.archive({"ab": b"c"})[0]


def test_pip_is_asked_for_what_the_requirements_say(repository):
    asked = first_cell.requirements(repository)
    assert asked == {
        "torch": "torch>=2.6",
        "numpy": "numpy>=1",
        "matplotlib": "matplotlib",
        "anywidget": "anywidget<9",
        "sympy": "sympy",
        "safetensors": "safetensors",
    }
    (repository / "requirements.txt").write_text("numpy\n")
    with pytest.raises(KeyError, match="does not mention 'torch'"):
        first_cell.requirements(repository)
    assert list(first_cell.requirements()) == list(first_cell.NEEDED)


class Stubs:
    """An environment in which everything that a notebook needs is an empty module, and pip a few lines of ours."""

    PIP = """
import pathlib, sys
site = pathlib.Path(__file__).parents[1]
(site / "asked.txt").write_text(" ".join(sys.argv[1:]))
if (site / "works").exists():
    (site / "anywidget.py").write_text("")
    (site / "sympy.py").write_text("")
"""

    def __init__(self, root: Path, source: str, present: tuple[str, ...], pip_works: bool = True) -> None:
        venv.create(root / "env", with_pip=False, symlinks=os.name != "nt")
        self.python = root / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
        (self.site,) = (root / "env").rglob("site-packages")
        for name in present:
            (self.site / f"{name}.py").write_text("")
        (self.site / "pip").mkdir()
        (self.site / "pip" / "__init__.py").write_text("")
        (self.site / "pip" / "__main__.py").write_text(self.PIP)
        if pip_works:
            (self.site / "works").write_text("")
        self.source, self.temporary = source, root / "temporary"
        self.temporary.mkdir()

    def run(self, before: str = "", after: str = "", check: bool = True) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.python, "-I", "-c", f"{before}\n{self.source}\n{after}"],
            cwd=self.temporary,
            env={
                "TMPDIR": str(self.temporary),
                "TEMP": str(self.temporary),
                "SYSTEMROOT": os.environ.get("SYSTEMROOT", ""),
            },
            capture_output=True,
            text=True,
            check=check,
        )


ALL = tuple(sorted(first_cell.NEEDED))
USE = """
import json, pathlib, ropebook.one
package = pathlib.Path(ropebook.one.__file__).parent
print(ropebook.one.f(), json.loads((package / "_results" / "measured.json").read_text())["value"], package)
"""


@pytest.fixture
def source(repository) -> str:
    return first_cell.first_cells("Turns", repository)[0].source


def test_the_first_cell_unpacks_and_says_so(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    once = stubs.run(after=USE + stubs_again(source)).stdout.splitlines()
    (folder,) = stubs.temporary.iterdir()
    place = folder / "code" / "ropebook"
    assert re.fullmatch(r"ropebook-[0-9a-f]{12}", folder.name)
    assert folder.stat().st_mode & 0o077 == 0 or os.name == "nt"
    assert once == [
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors",
        f"unpacked: 5 files of ropebook into {folder}",
        f"ropebook can be imported: {place}",
        f"from the notebook 7 {place}",
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors",
        f"already unpacked: {folder}",
        f"ropebook can be imported: {place}",
        "on the path 1 times",
    ]
    assert not (stubs.site / "asked.txt").exists()
    (place / "one.py").write_text("damaged")
    again = stubs.run(after=USE).stdout.splitlines()
    assert again[1] == f"unpacked: 1 files of ropebook into {folder}"
    assert again[3].startswith("from the notebook 7")


def stubs_again(source: str) -> str:
    """The first cell once more in the same kernel; and how often its folder is on the path then."""
    count = "import sys; print('on the path', sum('ropebook-' in entry for entry in sys.path), 'times')"
    return f"{source}\n{count}"


def test_the_first_cell_installs_what_is_missing(tmp_path, source):
    stubs = Stubs(tmp_path, source, ("torch", "numpy", "matplotlib", "safetensors"))
    lines = stubs.run(after=USE).stdout.splitlines()
    assert lines[:3] == [
        "found: torch, numpy, matplotlib, safetensors",
        "missing: anywidget, sympy; pip installs them now",
        "installed: anywidget<9, sympy",
    ]
    assert (stubs.site / "asked.txt").read_text() == "install --quiet anywidget<9 sympy"
    assert stubs.run().stdout.startswith(
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors\nalready unpacked"
    )


def test_the_first_cell_says_what_to_do_when_pip_fails(tmp_path, source):
    stubs = Stubs(tmp_path, source, (), pip_works=False)
    done = stubs.run(check=False)
    assert done.returncode != 0
    assert done.stdout.startswith("found: nothing\nmissing: torch, numpy")
    expected = (
        "RuntimeError: pip could not install torch, numpy, matplotlib, anywidget, sympy, safetensors: try `pip install "
    )
    assert expected + "'torch>=2.6' 'numpy>=1' matplotlib 'anywidget<9' sympy safetensors`" in done.stderr
    assert list(stubs.temporary.iterdir()) == []


def test_the_first_cell_notices_another_ropebook(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    other = tmp_path / "other" / "ropebook"
    other.mkdir(parents=True)
    (other / "__init__.py").write_text("")
    done = stubs.run(before=f"import sys; sys.path.append({str(other.parent)!r}); import ropebook")
    assert done.stdout.splitlines()[-1].startswith(f"ropebook was loaded before, from {other}: restart the kernel")
    done = stubs.run(before=f"import sys; sys.path.insert(0, {str(other.parent)!r})", after=USE)
    assert done.stdout.splitlines()[-1].startswith("from the notebook 7")


def test_the_first_cell_keeps_out_of_another_persons_folder(tmp_path, source):
    stubs = Stubs(tmp_path, source, ALL)
    (stubs.temporary / re.search(r"ropebook-[0-9a-f]{12}", source)[0]).write_text("a file is in the way")
    done = stubs.run(after=USE)
    assert done.stdout.splitlines()[-1].startswith("from the notebook 7")
    assert len(list(stubs.temporary.iterdir())) == 2
    if hasattr(os, "getuid"):
        shutil.rmtree(stubs.temporary)
        stubs.temporary.mkdir()
        strange = "import os; mine = os.getuid(); os.getuid = lambda: mine + 1"
        for _ in range(2):
            done = stubs.run(before=strange, after=USE)
            assert done.stdout.splitlines()[-1].startswith("from the notebook 7")
        assert len(list(stubs.temporary.iterdir())) == 3, "the folder that was there, and a new one each time"


# ------------------------------------------------------------------ copies for JupyterLab


def lab(book: Path, out: Path) -> list[str]:
    return [path.name for path in notebooks.lab_copies(book, out)]


def test_copies_for_the_lab(tmp_path, capsys):
    book, out = tmp_path / "book", tmp_path / "lab"
    book.mkdir()
    (book / "attention.md").write_text(OTHER)
    (book / "notation.md").write_text("# Notation\n")
    assert lab(book, out) == ["attention.ipynb"]
    copy_ = nbformat.read(out / "attention.ipynb", as_version=4)
    nbformat.validate(copy_)
    assert [cell.cell_type for cell in copy_.cells] == ["markdown", "code"]
    assert copy_.cells[1].source == "1"
    assert copy_.cells[1].outputs == []
    assert leftovers(copy_.cells[0].source) == []

    (book / "attention.md").write_text(OTHER.replace("# Attention", "# Much attention"))
    assert lab(book, out) == ["attention.ipynb"]
    assert "# Much attention" in (out / "attention.ipynb").read_text(), "a copy that nobody touched is renewed"
    assert capsys.readouterr().out == ""


def test_a_readers_changes_are_kept(tmp_path, capsys):
    book, out = tmp_path / "book", tmp_path / "lab"
    book.mkdir()
    chapter, first, second = book / "attention.md", out / "attention.ipynb", out / "attention-2.ipynb"
    chapter.write_text(OTHER)
    lab(book, out)
    mine = first.read_text().replace('"1"', '"my own"')
    first.write_text(mine)

    assert lab(book, out) == ["attention.ipynb"], "the chapter has not changed: nothing to add"
    assert capsys.readouterr().out == ""

    chapter.write_text(OTHER.replace("# Attention", "# Much attention"))
    assert lab(book, out) == ["attention-2.ipynb"]
    said = "attention.ipynb holds changes of yours and is left alone; the chapter's new text is in attention-2.ipynb\n"
    assert capsys.readouterr().out == said
    assert lab(book, out) == ["attention-2.ipynb"]
    assert capsys.readouterr().out == ""

    chapter.write_text(OTHER.replace("# Attention", "# No attention"))
    assert lab(book, out) == ["attention-2.ipynb"]
    assert "# No attention" in second.read_text()
    second.write_text(mine)
    assert lab(book, out) == ["attention-2.ipynb"], "what the reader changed holds the chapter's present text"
    chapter.write_text(OTHER.replace("# Attention", "# New attention"))
    assert lab(book, out) == ["attention-3.ipynb"]
    assert first.read_text() == second.read_text() == mine

    (out / notebooks.WRITTEN).unlink()  # without a record every copy may be the reader's
    chapter.write_text(OTHER + "\nMore.\n")
    assert lab(book, out) == ["attention-4.ipynb"]
    assert first.read_text() == second.read_text() == mine
    assert lab(book, out) == ["attention-4.ipynb"]
    assert sorted(path.name for path in out.glob("*.ipynb"))[-1] == "attention.ipynb"
    assert len(list(out.glob("*.ipynb"))) == 4


# ------------------------------------------------------------------ they run alone


def closure(lines: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """The distributions that requirements ask for here and now, and those that these ask for, and so on."""
    found: dict[str, importlib.metadata.Distribution] = {}
    waiting = [(Requirement(line), {""}) for line in lines]
    seen = set()
    while waiting:
        wanted, extras = waiting.pop()
        if wanted.marker and not any(wanted.marker.evaluate({"extra": extra}) for extra in extras):
            continue
        name = canonicalize_name(wanted.name)
        key = (name, frozenset(wanted.extras))
        if key not in seen:
            seen.add(key)
            found[name] = importlib.metadata.distribution(wanted.name)
            waiting += [(Requirement(text), {"", *wanted.extras}) for text in found[name].requires or []]
    return found


@pytest.fixture(scope="session")
def public(tmp_path_factory) -> Path:
    """An environment that holds what requirements.txt asks for and nothing else; returns its Python.

    Its files are links to those of the environment that runs the tests.
    """
    root = tmp_path_factory.mktemp("public")
    venv.create(root, with_pip=False, symlinks=os.name != "nt")
    (site,) = root.rglob("site-packages")
    text = (ROOT / "requirements.txt").read_text()
    wanted = closure([line for line in (row.partition("#")[0].strip() for row in text.splitlines()) if line])
    owners = Counter()
    for distribution in importlib.metadata.distributions():
        owners.update({file.parts[0] for file in distribution.files or []})
    for distribution in wanted.values():
        for file in distribution.files:
            # A folder that one distribution has for itself is linked whole.
            part = file.parts[0] if owners[file.parts[0]] == 1 else str(file)
            link, target = site / part, Path(distribution.locate_file(part)).resolve()
            if ".." not in file.parts and not os.path.lexists(link) and target.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(target)
    return root / ("Scripts" if os.name == "nt" else "bin") / "python"


def run_alone(notebook: nbformat.NotebookNode, python: Path, folder: Path) -> nbformat.NotebookNode:
    """Run a notebook in an empty folder, in a kernel of another environment, with nothing of ours on the path."""
    spec, empty, temporary = folder / "kernels" / "public", folder / "empty", folder / "temporary"
    for place in (spec, empty, temporary):
        place.mkdir(parents=True)
    argv = [str(python), "-I", "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(json.dumps({"argv": argv, "display_name": "p", "language": "python"}))
    manager = AsyncKernelManager(
        kernel_name="public",
        kernel_spec_manager=KernelSpecManager(kernel_dirs=[str(folder / "kernels")], ensure_native_kernel=False),
    )
    result = copy.deepcopy(notebook)
    for cell in result.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    result.metadata.pop("widgets", None)
    mine = {
        "TMPDIR": str(temporary),
        "TEMP": str(temporary),
        "HOME": str(empty),
        "IPYTHONDIR": str(temporary / "ipython"),
    }
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "MPL", "COV"))}
    client = NotebookClient(result, km=manager, timeout=300, resources={"metadata": {"path": str(empty)}})
    client.execute(env={**inherited, **mine})
    return result


TIMES = re.compile(r"\b\d[\d.,]*(e[-+]?\d+)?\s*(ns|µs|μs|us|ms|s|min|seconds?)\b|0x[0-9a-f]+")


def texts(cell: nbformat.NotebookNode) -> list[tuple[str, str]]:
    """What a cell printed or displayed as text, kind and text, with times and addresses in memory left out.

    Where a cell measures time, by `perf_counter` or because its tag `timing` says so, every number is left out.
    """
    takes_time = "perf_counter" in cell.source or "timing" in cell.metadata.get("tags", [])
    hidden = NUMBERS if takes_time else TIMES
    found: list[tuple[str, str]] = []
    for output in cell.outputs:
        assert output.output_type != "error"
        data = {output.name: output.text} if output.output_type == "stream" else output.data
        for kind, text in sorted(data.items()):
            if kind in KINDS and found and found[-1][0] == kind == output.get("name"):
                found[-1] = (kind, found[-1][1] + text)  # where one piece of a stream ends is chance
            elif kind in KINDS:
                found.append((kind, text))
    return [(kind, hidden.sub("…", text)) for kind, text in found]


NUMBERS = re.compile(r"\s*\d[\d.,]*(e[-+]?\d+)?\b")
KINDS = {"stdout", "stderr", "text/plain", "text/markdown", "text/latex"}


def test_the_public_environment_holds_the_requirements_only(public):
    program = "import sys, importlib.util as u; print([n for n in sys.argv[1:] if u.find_spec(n)])"
    absent = ["pytest", "hypothesis", "transformers", "playwright", "ropebook", "tools", "pip"]
    present = ["torch", "numpy", "matplotlib", "sympy", "anywidget", "ipywidgets", "jupyterlab", "ipykernel", "yaml"]
    done = subprocess.run([public, "-I", "-c", program, *absent, *present], capture_output=True, text=True, check=True)
    assert done.stdout == f"{present}\n"


def test_a_small_notebook_runs_alone(public, repository, tmp_path):
    cells = [new_code_cell(USE), new_code_cell("import os; print(os.listdir())")]
    notebook = new_notebook(cells=first_cell.first_cells("Small", repository) + cells)
    result = run_alone(notebook, public, tmp_path)
    said = [output.text for cell in result.cells if cell.cell_type == "code" for output in cell.outputs]
    assert said[0].startswith(
        "found: torch, numpy, matplotlib, anywidget, sympy, safetensors\nunpacked: 5 files of ropebook into "
    )
    assert f"ropebook can be imported: {tmp_path / 'temporary'}" in said[0]
    assert said[1].startswith("from the notebook 7")
    assert said[2] == "[]\n"


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapters_notebook_runs_alone_and_says_the_same(public, chapter, tmp_path):
    (path,) = notebooks.write({chapter.stem: execute.executed(chapter)}, tmp_path / "notebooks")
    notebook = nbformat.read(path, as_version=4)
    where = new_code_cell("import ropebook; print(ropebook.__file__)", id="where")
    notebook.cells.append(where)
    result = run_alone(notebook, public, tmp_path)
    said = "".join(output.text for output in result.cells[0].outputs)
    assert "ropebook can be imported" in said
    assert result.cells[-1].outputs[0].text.startswith(str(tmp_path / "temporary"))
    for book, alone in zip(notebook.cells[1:-1], result.cells[1:-1], strict=True):
        if book.cell_type == "code":
            assert texts(alone) == texts(book), book.source


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("took 3.2 ms, 41 µs and 5s", "took …, … and …"),
        ("1.5e-3 s", "…"),
        ("<f at 0x7f12>", "<f at …>"),
        ("3 sums", "3 sums"),
    ],
)
def test_times_are_left_out_of_the_comparison(text, left):
    half = len(text) // 2
    pieces = [new_output("stream", text=text[:half]), new_output("stream", text=text[half:])]
    assert texts(new_code_cell("", outputs=pieces)) == [("stdout", left)]
    slow = new_output("stream", text="a    1.5 \n   10")
    for cell in (new_code_cell("time.perf_counter()"), new_code_cell("t()", metadata={"tags": ["timing"]})):
        cell.outputs = [slow]
        assert texts(cell) == [("stdout", "a……")], "neither numbers nor the width that they take"
    assert texts(new_code_cell("", outputs=[slow])) == [("stdout", slow.text)]
    data = new_output("display_data", data={"text/plain": "a 1 s", "text/html": "b"})
    error = new_output("stream", name="stderr", text="c")
    found = texts(new_code_cell("", outputs=[pieces[0], data, data, error]))
    assert found[1:] == [("text/plain", "a …"), ("text/plain", "a …"), ("stderr", "c")]
