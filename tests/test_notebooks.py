"""Tests of the student notebooks. A page must become plain Markdown, its code must stay the same, and each notebook
must run by itself."""

from __future__ import annotations

import base64
import contextlib
import html
import importlib
import importlib.metadata
import io
import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import nbformat
import pytest
import yaml
from docutils import nodes
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from mdit_py_plugins.dollarmath import dollarmath_plugin
from myst_parser.config.main import MdParserConfig
from myst_parser.parsers.mdit import create_md_parser
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils

from tests.together import together
from tools import book as builder
from tools import execute, notebooks
from tools.markdown import NotebookError, Writer
from tools.notebooks import STATE
from tools.paths import HTML, ROOT
from tools.pictures import as_images

CHAPTERS = execute.chapters()

# ------------------------------------------------------------------ a small book

FRONT = "---\nfile_format: mystnb\nkernelspec: {display_name: Python 3, name: python3, language: python}\n---\n\n"
CODE = "\n\n```{code-cell} python\n1\n```\n"
BIBLIOGRAPHY = r"""
@article{one, author = {Curie, Marie}, title = {Salts}, journal = {CR}, year = {1898}, url = {https://e.org/1_(a)}}
@article{two, author = {van der Berg, A and L{\"u}, Y}, title = {Pairs}, journal = {J}, year = {2001}, doi = {10.1/x}}
@article{three, author = {Bo, A and Co, B and Do, C}, title = {Turns}, journal = {J}, year = {2021}}
"""
OTHERS = {
    "attention": "(top)=\n# Attention and $d$\n\n(masks)=\n## Masks\n\n```{math}\n:label: eq-softmax\na\n```\n" + CODE,
    "notation": "(symbols)=\n# Notation\n\n:::{glossary}\nhead\n  One of several.\n:::",
    "references": "# References\n\n:::{bibliography}\n:style: unsrt\n:::",
}


SETTINGS = {
    **yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["parse"],
    "extensions": ["myst_nb", "sphinxcontrib.bibtex", "tools.notebooks"],
    "bibtex_bibfiles": ["references.bib"],
    "bibtex_reference_style": "author_year",
    "nb_execution_mode": "off",
    "nitpicky": True,
    "numfig": True,
}


class Book:
    """A small book that Sphinx has already read. The pages that contain code are its chapters."""

    def __init__(self, folder: Path, pages: dict[str, str | nbformat.NotebookNode]) -> None:
        for name, page in pages.items():
            if isinstance(page, str):
                text = (FRONT if "{code-cell}" in page else "") + page
                (folder / f"{name}.md").write_text(text, encoding="utf-8")
            else:
                nbformat.write(page, folder / f"{name}.ipynb")
        (folder / "references.bib").write_text(BIBLIOGRAPHY, encoding="utf-8")
        (folder / "index.md").write_text("# Book\n\n```{toctree}\n:numbered:\n" + "\n".join(pages) + "\n```\n")
        self.folder, self.warnings = folder, io.StringIO()
        with patch_docutils(), docutils_namespace():
            out, read = folder / "out", folder / "read"
            self.app = Sphinx(folder, None, out, read, "notebooks", SETTINGS, status=None, warning=self.warnings)
            # this call numbers the chapters
            list(self.app.env.check_dependents(self.app, set(self.app.builder.read())))
        self.app.builder.chapter = self.chapter
        self.app.builder.prepare_writing(set())

    def chapter(self, docname: str) -> nbformat.NotebookNode:
        path = Path(self.app.env.doc2path(docname))
        return nbformat.read(path, as_version=4) if path.suffix == ".ipynb" else execute.read_chapter(path)

    def notebook(self, name: str) -> nbformat.NotebookNode:
        builder = self.app.builder
        return builder.notebook(name, self.app.env.get_and_resolve_doctree(name, builder))

    def cells(self, name: str) -> list[str]:
        """Return a notebook's cells. The first two cells, which describe the notebook, are left out, and so are cells
        that contain only "1"."""
        return [cell.source for cell in self.notebook(name).cells[2:] if cell.source != "1"]


CONSTRUCTS = {
    "plain": (
        "text *b* `c` $d$\n\n- x\n- y\n\n> z\n\n---\n\n1. e",
        "text *b* `c` $d$\n\n- x\n- y\n\n> z\n\n---\n\n1. e",
    ),
    "parts": ("## B\n\n### C\n\n## D", "## B\n\n### C\n\n## D"),
    "what looks like markup": (
        r"2\*3\*4 a\_b\_ \[c](d) \$5 and \$6 \`e\`",
        r"2\*3\*4 a\_b\_ \[c\](d) \$5 and \$6 \`e\`",
    ),
    "what looks like a list": ("a\n\\- b\n\\1. c\n\n1\\. d", "a\n\\- b\n\\\\1. c\n\n1\\. d"),
    "math": ("```{math}\na\n=b\n```", "$$\na\n=b\n$$"),
    "math with blank lines": ("```{math}\na\n\n  \nb\n```", "$$\na\nb\n$$"),
    "math with remarks": ("```{math}\na 5\\% % no\n% no\nb\\\\% no\n```", "$$\na 5\\%\nb\\\\\n$$"),
    "math with a label": ("```{math}\n:label: eq-l\n:class: identity\na\n```", "$$\na\n\\tag{N.1}\n$$"),
    "math with rows": (
        "```{math}\n:label: eq-r\n\\begin{align*}\na\n\\end{align*}\n```",
        "$$\n\\begin{aligned}\na\n\\end{aligned}\n\\tag{N.1}\n$$",
    ),
    "math of one equation": (
        "```{math}\n:label: eq-o\n\\begin{equation}\na\n\\end{equation}\n```",
        "$$\na\n\\tag{N.1}\n$$",
    ),
    "math in a list": ("- a\n\n  ```{math}\n  b\n  c\n  ```\n\n  d", "- a\n\n  $$ b c $$\n\n  d"),
    "math in a quotation": ("> a\n>\n> $$\n> b\n> c\n> $$", "> a\n>\n> $$ b c $$"),
    "inline math": ("{math}`x_1` $ y $ $a\nb$ c", "$x_1$ $y$ $a b$ c"),
    "equations": (
        "{eq}`eq-b` {eq}`eq-a`\n\n$$ 1 $$ (eq-a)\n\n$$ 2 $$ (eq-b)",
        "(N.2) (N.1)\n\n$$\n1\n\\tag{N.1}\n$$\n\n$$\n2\n\\tag{N.2}\n$$",
    ),
    "equation elsewhere": ("{eq}`eq-softmax`", "(1.1) of [Attention and $d$](attention.ipynb)"),
    "note": ("```{note}\na\n\nb\n```", "> **Note**\n>\n> a\n>\n> b"),
    "seealso": (":::{seealso}\na\n:::", "> **See also**\n>\n> a"),
    "admonition": (":::{admonition} A {term}`head` $c$\n:class: tip\nd\n:::", "> **A *head* $c$**\n>\n> d"),
    "folded": (
        ":::{admonition} Hint {math}`x<y` & `c`\n:class: tip dropdown\na\n```{math}\nb\n```\n:::",
        "<details>\n<summary>Hint $x&lt;y$ &amp; <code>c</code></summary>\n\na\n\n$$\nb\n$$\n\n</details>",
    ),
    "nested": (
        "::::{note}\na\n:::{tip}\n```{math}\nb\nc\n```\n:::\nd\n::::",
        "> **Note**\n>\n> a\n>\n> > **Tip**\n> >\n> > $$ b c $$\n>\n> d",
    ),
    "note in an item": ("- a\n\n  :::{note}\n  b\n  :::\n- c", "- a\n\n  > **Note**\n  >\n  > b\n\n- c"),
    "table": (
        ":::{table} T\n| a | b |\n|---|--:|\n| {eq}`eq-softmax` | |\n:::",
        "**T**\n\n| a | b |\n| --- | ---: |\n| (1.1) of [Attention and $d$](attention.ipynb) |  |",
    ),
    "bars in a table": (
        "| a |\n|---|\n| $\\|x\\|$ {sub}`1` `e\\|f` g\\|h |",
        "| a |\n| --- |\n| $\\vert x\\vert$ <sub>1</sub> `e\\|f` g\\|h |",
    ),
    "code-block": ("```{code-block} python\n:caption: A\nx = 1\n```", "**A**\n\n```python\nx = 1\n```"),
    "code that holds ticks": (
        "~~~text\n```\n{eq}`x` $5\n~~~\n\n`` a`b ``",
        "````text\n```\n{eq}`x` $5\n````\n\n`` a`b ``",
    ),
    "definitions": ("A {term}`head`\n: c\n  d\n\n  e\n\nF\n: g", "- **A *head***: c\n  d\n\n  e\n\n- **F**: g"),
    "remarks and targets": ("a\n% b\n\n(x)=\n## B\n\n+++\n\nc", "a\n\n## B\n\nc"),
    "term": ("{term}`head`, {term}`b <head>`", "*head*, *b*"),
    "doc": (
        "{doc}`attention`, {doc}`it <attention>`, {doc}`notation`",
        "[Attention and d](attention.ipynb), [it](attention.ipynb), Notation",
    ),
    "ref elsewhere": (
        "{ref}`masks`, {ref}`them <masks>`, {ref}`symbols`",
        "[Masks](attention.ipynb), [them](attention.ipynb), Notation",
    ),
    "ref here": ("(here)=\n## B c\n\n{ref}`here`, {ref}`d <here>`", "## B c\n\n“B c”, d"),
    "links": (
        "[a *b*](attention.md) [](attention.md) [n](notation.md) [f](references.bib) [w](https://e.org)",
        "[a *b*](attention.ipynb) [Attention and d](attention.ipynb) n f [w](<https://e.org>)",
    ),
    "web addresses": ("<https://e.org> ![a](https://e.org/x.svg)", "<https://e.org> ![a](https://e.org/x.svg)"),
    "hard line ends": ("*a*  \nb\\\nc", "*a*<br />\nb<br />\nc"),
    "html": ("a <b>c</b>\n\n<div>\nd\n</div>", "a <b>c</b>\n\n<div>\nd\n</div>"),
    "footnotes": (
        "a[^b], again[^b], more[^more]\n\n[^b]: A *note*.\n\n    ```python\n    x\n    ```\n[^more]: End.",
        "a<sup>1</sup>, again<sup>1</sup>, more<sup>2</sup>",
        "## Notes\n\n1. A *note*.\n\n   ```python\n   x\n   ```\n2. End.",
    ),
    "citations": (
        "{cite:t}`one` {cite}`two,three`\n\n:::{note}\n{cite:p}`two`\n:::",
        "Curie \\[[1898](<https://e.org/1_(a)>)\\] "
        "\\[[van der Berg and Lü, 2001](<https://doi.org/10.1/x>), Bo *et al.*, 2021\\]\n\n"
        "> **Note**\n>\n> \\[[van der Berg and Lü, 2001](<https://doi.org/10.1/x>)\\]",
        "## References\n\n- Marie Curie. Salts. *CR*, 1898. URL: <https://e.org/1_(a)>.\n"
        "- A van der Berg and Y Lü. Pairs. *J*, 2001. [doi:10.1/x](<https://doi.org/10.1/x>).\n"
        "- A Bo, B Co, and C Do. Turns. *J*, 2021.",
    ),
    "pages under it": ("a\n\n```{toctree}\n:hidden:\nhttps://e.org\n```", "a"),
    "nothing": ("% only a remark", ""),
}
ERRORS = {
    "image": ("a\n\nb ![b](c.svg)", "image 'c.svg' does not travel with a notebook"),
    "figure": ("a\n\n```{figure} c.svg\nb\n```", "a notebook cannot show figure"),
    "list-table": ("- ```{parsed-literal}\n  a\n  ```\n\n```{sidebar} b\nc\n```", "a notebook cannot show sidebar"),
    "abbreviation": ("a\n\n{abbr}`MHA (many heads)`", "a notebook cannot show abbreviation: MHA"),
    "scheme": ("a [b](ftp://e.org/x)", "a notebook cannot follow ftp://e.org/x"),
}
WARNINGS = {
    "directive": ("a\n\n```{nonsense} b\nc\n```", 10, "Unknown directive type: 'nonsense'"),
    "box": (":::{note}\n```{code-cell}\n2\n```\n:::", 9, "Found an unexpected `code-cell`"),
    "role": ("a\nb {nonsense}`c`", 8, 'Unknown interpreted text role "nonsense"'),
    "equation": ("{eq}`eq-none`", 8, "equation not found: eq-none"),
    "label": ("{ref}`none`", 8, "undefined label: 'none'"),
    "page": ("{doc}`none`", 8, "unknown document: 'none'"),
    "work": ("{cite}`nobody`", 8, 'could not find bibtex key "nobody"'),
    "footnote": ("a[^b]\n\n[^b]: c\n\n[^b]: d", "", "Multiple footnote definitions found for label: 'b'"),
    "glue": ("{glue:text}`none`", 8, "No key 'none' found"),
}


@pytest.fixture(scope="session")
def book(tmp_path_factory) -> Book:
    folder = tmp_path_factory.mktemp("book")
    (folder / "c.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'></svg>")
    pages = dict(OTHERS)
    for kind, found in (("right", CONSTRUCTS), ("wrong", ERRORS), ("warned", WARNINGS)):
        for name, (source, *_) in found.items():
            pages[f"{kind}-{name.replace(' ', '-')}"] = f"# Page\n\n{source}{CODE}"
    return Book(folder, pages)


@pytest.mark.parametrize("name", CONSTRUCTS)
def test_each_construct(book, name):
    page = f"right-{name.replace(' ', '-')}"
    number = ".".join(map(str, book.app.env.toc_secnumbers[page][""]))
    found = [
        cell.replace("\xa0", " ").replace(f"{{{number}.", "{N.").replace(f"({number}.", "(N.")
        for cell in book.cells(page)
    ]
    first, *others = CONSTRUCTS[name][1:]
    assert found == [f"# Page\n\n{first}".strip(), *others]
    if name != "code that holds ticks":
        assert [left for cell in found for left in leftovers(cell)] == []


def test_a_work_is_listed_once_although_its_page_was_resolved_for_the_site_too(book):
    for entry in book.app.builder.citations.values():
        entry[-1].replace_self(nodes.paragraph("", "cut short"))
    book.app.builder.prepare_writing(set())
    works = book.cells("right-citations")[1]
    assert works.count("Salts") == 1
    assert "cut short" not in works


@together("name", ERRORS)
def test_what_a_notebook_cannot_show_is_an_error_that_names_the_page(book, name):
    page = f"wrong-{name.replace(' ', '-')}"
    with pytest.raises(NotebookError, match=f"^{page}.*: {re.escape(ERRORS[name][1])}"):
        book.cells(page)


@together("name", WARNINGS)
def test_what_means_nothing_is_a_warning_that_names_the_line(book, name):
    """The book is built with warnings as errors, so each of these warnings stops the build."""
    _, line, message = WARNINGS[name]
    page = f"warned-{name}"
    with contextlib.suppress(NotebookError):
        book.notebook(page)
    assert re.search(rf"{page}\.md:{line}: .*{re.escape(message)}", book.warnings.getvalue())


def test_nothing_else_is_warned_of(book):
    for name in CONSTRUCTS:
        book.cells(f"right-{name.replace(' ', '-')}")
    assert [line for line in book.warnings.getvalue().splitlines() if "right-" in line] == []


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("{glue:text}`share:.1f`", "2.2"),
        ("{glue:}`share`", "2.25"),
        ("{glue:text}`glued.ipynb::share:.2f`", "2.25"),
    ],
)
def test_numbers_that_a_cell_computed_stand_in_the_prose(tmp_path, form, shown):
    data = {"application/papermill.record/text/plain": "2.25"}
    metadata = {"scrapbook": {"name": "share", "mime_prefix": "application/papermill.record/"}}
    cell = new_code_cell("glue('share', 2.25)", outputs=[new_output("display_data", data=data, metadata=metadata)])
    prose = new_markdown_cell(f"# A\n\nThat is {form} of all.")
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    book = Book(tmp_path, {"glued": new_notebook(cells=[cell, prose], metadata=metadata)})
    code, text = book.notebook("glued").cells[2:]
    assert text.source == f"# A\n\nThat is {shown} of all."
    assert code.outputs == []  # the record of the number is for the site
    assert book.warnings.getvalue() == ""


def test_cells_that_the_page_leaves_out_stay(tmp_path):
    gone, folded = ":tags: [remove-input, remove-output]", ":tags: [hide-input]"
    cells = [f"\n```{{code-cell}}\n{tags}\n{k}0\n```\n\nafter {k}\n" for k, tags in enumerate([gone, folded, gone])]
    book = Book(tmp_path, {"one": "# A\n" + "".join(cells)})
    assert book.cells("one") == ["# A\n\nafter 0", "00", "10", "after 1\n\nafter 2", "20"]


def test_another_cell_than_on_the_page_is_an_error(book, monkeypatch):
    other = new_notebook(cells=[new_markdown_cell("a"), new_code_cell("2")])
    monkeypatch.setattr(book.app.builder, "chapter", lambda docname: other)
    with pytest.raises(NotebookError, match=r"^attention: its cell 1 is another one than on the page: 1$"):
        book.notebook("attention")


def test_chapters_are_the_numbered_pages_with_code(tmp_path):
    book = Book(tmp_path, {**OTHERS, "second": "# B\n\n$$ b $$ (eq-b)" + CODE})
    (tmp_path / "loose.md").write_text(FRONT + "# C" + CODE)
    book.app.builder.read()
    assert book.app.builder.get_outdated_docs() == ["attention", "second"]


# ------------------------------------------------------------------ words and code are unchanged

MARKS = r"a B 12 . ) * ** _ ` `` $ $$ \ [ ] (x) <b> </b> # ## + - --- = > ~~ | & &amp; &#35; ! {eq} :// <!-- |-|"
NASTY = [*re.split(" ", MARKS), " ", "\n"]
PLAIN = MarkdownIt("commonmark").enable("table").enable("strikethrough").use(dollarmath_plugin)


def written(*blocks: nodes.Node) -> str:
    """Return the text that the writer produces from these blocks."""
    return Writer(None, "page", None, None, {}).blocks(list(blocks))


@given(st.lists(st.sampled_from(NASTY), min_size=1, max_size=12), st.booleans())
@example(["$", "a", "$"], False)
@example(["12", ".", " ", "a"], False)
@example(["a", "\n", "---"], True)
@example(["&amp;"], False)
def test_words_stay_as_they_are(parts, in_list):
    words = "\n".join(line.strip() for line in "".join(parts).split("\n") if line.strip())
    paragraph = nodes.paragraph("", words)
    block = nodes.bullet_list("", nodes.list_item("", paragraph)) if in_list else paragraph
    shown = re.sub(r"</?(p|ul|li)>", "", PLAIN.render(written(block)))
    assert html.unescape(shown).strip().split("\n") == (words.split("\n") if words else [""])


@given(
    st.lists(st.sampled_from([*NASTY, ":::{note}", "{eq}`x`"]), min_size=1, max_size=12),
    st.sampled_from(["", "> ", "- "]),
)
def test_code_stays_as_it_is(parts, frame):
    code = "x" + "".join(parts) + "x"
    literal, block = nodes.paragraph("", "", nodes.literal("", code.replace("\n", " "))), nodes.literal_block("", code)
    children = [literal, block]
    if frame == "> ":
        children = [nodes.block_quote("", *children)]
    elif frame == "- ":
        children = [nodes.bullet_list("", nodes.list_item("", *children))]
    tokens = PLAIN.parse(written(*children))
    assert [token.content for token in tokens if token.type == "fence"] == [code + "\n"]
    inline = [child for token in tokens for child in token.children or []]
    assert [(child.type, child.content) for child in inline] == [("code_inline", code.replace("\n", " "))]


# ------------------------------------------------------------------ no raw markup is left

RAW = re.compile(r"^\s*(:::|%|\+\+\+|\([\w-]+\)=)|\[\^[^\]]+\]|^: ", re.MULTILINE)


MYST = create_md_parser(MdParserConfig(enable_extensions=("colon_fence", "dollarmath", "deflist")), RendererHTML)


def leftovers(markdown: str) -> list[str]:
    """Return any MyST markup that is left over. One tokenizer looks for MyST markup, and a second one supports only
    CommonMark."""
    found = []
    for token in MYST.parse(markdown):
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


@together(
    "raw",
    ["{eq}`x`", "a {cite:t}`b`", "```{note}\na\n```", ":::{note}\na\n:::", "::: a", "% a", "+++", "(x)=", "A\n: b"]
    + ["a[^b]\n\n[^b]: c", "a[^b]", "- ```{math}\n  a\n  ```", "> (x)=", "$$ a $$ (b)", "| a |\n|---|\n| {eq}`x` |"],
)
def test_leftovers_are_seen(raw):
    assert leftovers(raw)


SOLUTION = re.compile(r"<details>\n<summary>[^<]*</summary>\n\n```python\n(.*?)\n```\n.*\n</details>", re.DOTALL)


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_chapter_says_all_that_its_page_says_and_no_myst(chapter, written_notebooks):
    notebook = nbformat.read(written_notebooks / f"{chapter.stem}.ipynb", as_version=4)
    solutions = [cell.cell_type == "markdown" and SOLUTION.fullmatch(cell.source) for cell in notebook.cells]
    both = list(zip(notebook.cells, solutions, strict=True))
    prose = [cell.source for cell, solution in both if cell.cell_type == "markdown" and not solution]
    assert [left for source in prose for left in leftovers(source)] == []
    ran = execute.executed(chapter)
    code = [cell.source for cell in ran.cells if cell.cell_type == "code"]
    programs = [solution[1] if solution else cell.source for cell, solution in both if cell.source not in prose]
    assert programs[1:] == code
    sources = "\n".join(cell.source for cell in ran.cells if cell.cell_type == "markdown")
    headings = [line.lstrip("#") for line in sources.split("\n") if re.match("#+ ", line)]
    found = [line.lstrip("#") for line in "\n".join(prose).split("\n") if re.match("#+ ", line)]
    plain = str.maketrans("’“”", '\'""', "\\")
    assert [line.translate(plain) for line in found][: len(headings)] == [line.translate(plain) for line in headings]
    labels = re.findall(r":label: (\S+)", sources)
    assert len(re.findall(r"\\tag\{[\d.]+\}", "\n".join(prose))) == len(labels)


@together("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_a_notebook_is_light(chapter, written_notebooks):
    assert (written_notebooks / f"{chapter.stem}.ipynb").stat().st_size < 2_000_000


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda path: path.stem)
def test_equations_have_the_built_pages_numbers(chapter, written_notebooks):
    if written_notebooks != HTML / "notebooks":
        pytest.skip("the site was not built from these files; make html builds it")
    page = (HTML / "book" / f"{chapter.stem}.html").read_text(encoding="utf-8")
    notebook = nbformat.read(written_notebooks / f"{chapter.stem}.ipynb", as_version=4)
    tags = [tag for cell in notebook.cells for tag in re.findall(r"\\tag\{([\d.]+)\}", cell.source)]
    assert tags == re.findall(r'class="eqno">\(([\d.]+)\)', page)


# ------------------------------------------------------------------ the notebook around the text


@pytest.fixture
def ran() -> nbformat.NotebookNode:
    """A chapter that has been run. It contains an explorer, a picture, and everything that the site's builder adds."""
    view = {
        "application/vnd.jupyter.widget-view+json": {"model_id": "m", "version_major": 2, "version_minor": 0},
        "text/html": '<svg viewBox="0 0 2 1"></svg>',
        "text/plain": "Shuffle()",
    }
    cells = [
        new_markdown_cell("# Turns\n\n```{math}\n:label: eq-x\na\n```"),
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


@pytest.fixture
def flat(tmp_path, ran) -> Callable:
    """Return a function that writes a notebook of the chapter in its current state."""

    def make() -> nbformat.NotebookNode:
        folder = tmp_path / str(len(list(tmp_path.iterdir())))
        folder.mkdir()
        return Book(folder, {"turns": ran}).notebook("turns")

    return make


def test_outputs_and_widgets_are_kept(flat, ran):
    result = flat()
    nbformat.validate(result)
    assert [cell.cell_type for cell in result.cells] == ["markdown", "code", "markdown", *["code"] * 7]
    assert [cell.id for cell in result.cells] == [f"cell-{i}" for i in range(10)]
    (kept,), (output,) = result.cells[3].outputs, ran.cells[1].outputs
    assert kept.data.pop("text/html") == as_images(output.data.pop("text/html"))
    assert kept == output
    assert result.cells[3].execution_count == 1
    assert sorted(result.metadata) == ["kernelspec", "language_info", "title", "widgets"]
    assert result.metadata.title == "Turns"
    assert result.metadata.language_info == ran.metadata.language_info
    assert result.metadata.widgets == ran.metadata.widgets
    assert result.metadata.kernelspec.name == "python3"


def drawing(markup: str) -> ElementTree.Element:
    """Return the SVG drawing that an image contains."""
    return ElementTree.fromstring(base64.b64decode(re.search(r'src="data:image/svg\+xml;base64,([^"]+)"', markup)[1]))


@together(
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


def test_a_drawing_for_phones_becomes_no_image():
    drawings = '<svg viewBox="0 0 4 2"></svg><svg class="fig-narrow fig-sooner" viewBox="0 0 2 2"><g></g></svg>'
    assert as_images(f"<figure>{drawings}</figure>").count("<img") == 1


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
def test_a_drawing_that_cannot_stand_alone_is_an_error(flat, ran, svg, message):
    ran.cells[2].outputs = [new_output("display_data", data={"text/html": svg})]
    with pytest.raises(NotebookError, match=f"^turns, code cell 2: a drawing .*{message}"):
        flat()


def test_widgets_get_the_key_that_github_wants(flat, ran):
    ran.metadata.widgets = {STATE: {"m": {"state": {}}}}
    widgets = flat().metadata.widgets
    assert widgets == {STATE: {"version_major": 2, "version_minor": 0, "state": {"m": {"state": {}}}}}
    del ran.metadata["widgets"]
    del ran.metadata["language_info"]
    metadata = flat().metadata
    assert "widgets" not in metadata
    assert metadata.language_info == {"name": "python"}


def test_what_the_page_hides_is_folded(flat, ran):
    folds = [cell.metadata for cell in flat().cells[3:]]
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


def test_a_solution_is_text_in_a_closed_box(flat, ran):
    ran.cells[4] = new_code_cell(
        "def f():\n    return 2\n\n\nf()",
        metadata={"tags": ["hide-cell"], "mystnb": {"code_prompt_show": "Exercise 1: the solution, executed"}},
        outputs=[new_output("stream", text="a\nb\n"), new_output("execute_result", data={"text/plain": "2"})],
    )
    cell = flat().cells[6]
    assert cell.cell_type == "markdown"
    assert cell.source == (
        "<details>\n<summary>Exercise 1: the solution, executed</summary>\n\n"
        "```python\ndef f():\n    return 2\n\n\nf()\n```\n\n```text\na\nb\n```\n\n```text\n2\n```\n\n</details>"
    )
    ran.cells[4].metadata.mystnb.code_prompt_show = "Interpolation, as a program"
    assert flat().cells[6].cell_type == "code"


def test_a_notebook_begins_by_saying_what_it_is(flat, ran):
    note, code, title = flat().cells[:3]
    assert code.source.startswith("# @title ")
    assert code.metadata.jupyter.source_hidden
    assert code.metadata.cellView == "form"
    assert note.source.startswith("This is the chapter “Turns” of the book “RoPE, Turn by Turn” as a notebook")
    assert "If the package is installed, the next cell changes nothing." in note.source
    assert "Until then you see a still picture of each." in note.source
    assert "only if you trust the folder" in note.source  # otherwise VS Code shows nothing, and doesn't say why
    assert title.source.startswith("# Turns")


def test_the_same_chapter_makes_the_same_notebook(flat, ran):
    first = nbformat.writes(flat())
    for cell in ran.cells:
        cell.id = f"x{cell.id}"
    assert nbformat.writes(flat()) == first
    nbformat.validate(nbformat.reads(first, as_version=4))
    assert json.loads(first)["nbformat_minor"] == 5


def test_notebooks_are_written_beside_another_build_or_none_at_all(tmp_path, ran, monkeypatch):
    pages = {"turns": ran, "bad": "# B\n\nx" + CODE}
    book = Book(tmp_path, pages)
    monkeypatch.setattr(notebooks.NotebookBuilder, "chapter", lambda self, docname: book.chapter(docname))
    out, before = tmp_path / "beside", book.app.builder
    out.mkdir()
    (out / "a_page_that_is_gone.ipynb").write_text("{}")
    notebooks.write_beside(book.app, out)
    assert sorted(path.name for path in out.iterdir()) == ["bad.ipynb", "turns.ipynb"]
    assert (out / "turns.ipynb").read_text() == nbformat.writes(book.notebook("turns")) + "\n"
    assert book.app.builder is before
    wrong = book.chapter("bad")
    wrong.cells[-1].outputs = [{"output_type": "nothing"}]
    monkeypatch.setattr(notebooks.NotebookBuilder, "chapter", lambda self, docname: wrong if docname == "bad" else ran)
    with pytest.raises(NotebookError, match=r"^bad: .*'nothing'"):
        notebooks.write_beside(book.app, tmp_path / "none")
    assert not (tmp_path / "none").exists()
    assert book.app.builder is before


# ------------------------------------------------------------------ copies for JupyterLab


def lab(text: str, out: Path) -> list[str]:
    return [path.name for path in notebooks.put_copies({"attention": text}, out)]


def test_copies_for_the_lab_hold_no_outputs_and_nothing_runs(tmp_path, monkeypatch):
    solution = "---\nmystnb: {code_prompt_show: One solution}\ntags: [hide-cell]\n---\n2"
    Book(tmp_path, {**OTHERS, "attention": OTHERS["attention"] + CODE.replace("1", solution)})
    monkeypatch.setattr(execute, "executed", lambda path: pytest.fail("a chapter was executed"))
    with patch_docutils(), docutils_namespace():
        app = Sphinx(tmp_path, None, tmp_path / "lab", tmp_path / "l", "lab", SETTINGS, status=None, warning=None)
        app.build()
    assert [path.name for path in (tmp_path / "lab").glob("*.ipynb")] == ["attention.ipynb"]
    copy_ = nbformat.read(tmp_path / "lab" / "attention.ipynb", as_version=4)
    nbformat.validate(copy_)
    assert [cell.cell_type for cell in copy_.cells] == ["markdown", "code", "code"]
    assert copy_.cells[1].source == "1"
    assert copy_.cells[2].metadata.jupyter.source_hidden
    assert copy_.cells[1].outputs == []
    assert leftovers(copy_.cells[0].source) == []


@pytest.mark.parametrize("current", [True, False])
def test_reading_a_page_for_a_copy_runs_nothing(tmp_path, monkeypatch, current):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    executed = importlib.import_module("executed")
    path = tmp_path / "a.md"
    path.write_text(FRONT + "That is {glue:text}`share:.1f` of all." + CODE)
    ran = execute.read_chapter(path)
    ran.cells[1].outputs = [new_output("stream", text="1")]
    config = MdParserConfig(enable_extensions=SETTINGS["myst_enable_extensions"])
    env = SimpleNamespace(docname="a", doc2path=lambda name: str(path), myst_config=config, note_dependency=print)
    monkeypatch.setattr(executed, "_app", SimpleNamespace(env=env, builder=SimpleNamespace(name="lab", format="")))
    monkeypatch.setattr(execute, "is_current", lambda path: current)
    monkeypatch.setattr(execute, "executed", lambda path, _: ran if current else pytest.fail("a chapter was executed"))
    prose, code = executed.read_page(path.read_text()).cells
    assert prose.source == f"That is {'{glue:text}`share:.1f`' if current else '…'} of all."
    assert bool(code.outputs) == current


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="there is no root here")
@pytest.mark.parametrize("user", [0, 1000])
def test_root_is_let_into_the_lab(monkeypatch, user):
    commands = []
    monkeypatch.setattr(builder, "build", lambda name, folder: None)
    monkeypatch.setattr(builder.subprocess, "run", lambda command, **_: commands.append(command))
    monkeypatch.setattr(os, "geteuid", lambda: user)
    builder.lab()
    assert [("--allow-root" in command) for command in commands] == [user == 0]


def test_a_readers_changes_are_kept(tmp_path, capsys):
    out = tmp_path / "lab"
    first, second, mine = out / "attention.ipynb", out / "attention-2.ipynb", "my own"
    lab("one", out)
    assert lab("two", out) == ["attention.ipynb"]
    assert first.read_text() == "two", "a copy that nobody touched is renewed"
    first.write_text(mine)

    assert lab("two", out) == ["attention.ipynb"], "the chapter has not changed: nothing to add"
    assert capsys.readouterr().out == ""

    assert lab("three", out) == ["attention-2.ipynb"]
    said = "attention.ipynb holds changes of yours and is left alone; the chapter's new text is in attention-2.ipynb\n"
    assert capsys.readouterr().out == said
    assert lab("three", out) == ["attention-2.ipynb"]
    assert capsys.readouterr().out == ""

    assert lab("four", out) == ["attention-2.ipynb"]
    assert second.read_text() == "four"
    second.write_text(mine)
    assert lab("four", out) == ["attention-2.ipynb"], "what the reader changed holds the chapter's present text"
    assert lab("five", out) == ["attention-3.ipynb"]
    assert first.read_text() == second.read_text() == mine

    (out / notebooks.WRITTEN).unlink()  # without this record, any of the copies might be the reader's own
    assert lab("six", out) == ["attention-4.ipynb"]
    assert first.read_text() == second.read_text() == mine
    assert lab("six", out) == ["attention-4.ipynb"]
    assert len(list(out.glob("*.ipynb"))) == 4
