"""Convert a page to Markdown that every notebook program can show. Sphinx has already read the page and resolved its
references.

Unknown nodes raise an error. As a result, no content is lost, and students never see raw markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Callable
from pathlib import PurePosixPath

from docutils import nodes
from docutils.utils import get_source_line
from markdown_it import MarkdownIt
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode
from nbformat.v4 import new_markdown_cell
from sphinx import addnodes
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError
from sphinx.locale import admonitionlabels

# Markdown would interpret all of these as markup: some characters anywhere, other characters only at the start of a
# line, a number followed by a dot or bracket at the start of a line, and character references.
SPECIAL = re.compile(r"[\\`*_\[\]<$~]|^[ \t]*(?:[#+=>-]|\d{1,9}[.)](?=\s|$))|&(?=#?\w+;)", re.MULTILINE)
TITLES = MarkdownIt("commonmark").use(dollarmath_plugin)
TITLES.add_render_rule("math_inline", lambda self, tokens, i, *_: f"${html.escape(tokens[i].content, quote=False)}$")
ALIGNED = {"text-left": ":---", "text-center": ":---:", "text-right": "---:"}


class NotebookError(SphinxError):
    """Raised if a page contains something that a notebook cannot show. The message names the page and the line."""

    category = "Notebook error"


def fenced(text: str, language: str) -> str:
    """Return a block of code, in a fence longer than any in the code."""
    text = text.rstrip("\n")
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def folded(title: str, text: str) -> str:
    """Return a closed box. The title and the text are Markdown."""
    return f"<details>\n<summary>{TITLES.renderInline(title)}</summary>\n\n{text}\n\n</details>"


class Writer:
    """Converts one page to notebook cells.

    Args:
        env: Sphinx's environment, with data on all pages.
        docname: the name of the page.
        code_cells: function that returns the remaining code cells up to an index. It is called with the index, and with
            the cell's source if the page shows it (otherwise None).
        has_notebook: function that says whether a page has a notebook that links can lead to.
        citations: the entries of the bibliography, keyed by the names that references use.
    """

    def __init__(
        self,
        env: BuildEnvironment,
        docname: str,
        code_cells: Callable[[int, str | None], list[NotebookNode]],
        has_notebook: Callable[[str], bool],
        citations: dict[str, nodes.citation],
    ) -> None:
        self.env, self.docname, self.code_cells = env, docname, code_cells
        self.has_notebook, self.citations = has_notebook, citations
        self.cells: list[NotebookNode] = []
        self.pending: list[str] = []
        self.notes: list[str] = []
        self.cited: dict[str, nodes.citation] = {}
        self.headings: dict[str, str] = {}  # a section's names -> its title
        # In a list or a quotation, Jupyter would read the mark before each line as part of the formula, so formulas
        # there are written on a single line.
        self.in_one_line = False
        self.in_table = False
        self.depth = 0  # depth of the current section

    def page(self, doctree: nodes.document) -> list[NotebookNode]:
        """Return all cells of the page. Raises NotebookError."""
        for section in doctree.findall(nodes.section):
            self.headings.update(dict.fromkeys(section["ids"], section[0].astext()))
        for node in doctree.children:
            self.emit(self.block(node))
        self.flush()
        if self.notes:
            self.emit("## Notes\n\n" + "\n".join(self.notes))
        if self.cited and not any(doctree.findall(nodes.citation)):
            entries = [entry for name, entry in self.citations.items() if name in self.cited]  # in the page's order
            self.emit("## References\n\n" + "\n".join(map(self.block, entries)))
        self.flush()
        return self.cells

    def emit(self, text: str) -> None:
        if text:
            self.pending.append(text)

    def flush(self) -> None:
        if self.pending:
            self.cells.append(new_markdown_cell("\n\n".join(self.pending)))
        self.pending = []

    def fail(self, node: nodes.Node, problem: str = "") -> None:
        line = get_source_line(node)[1]
        what = problem or f"a notebook cannot show {node.tagname}: {node.astext()[:60]}"
        raise NotebookError(f"{self.docname}{f', line {line}' if line else ''}: {what}")

    # ------------------------------------------------------------------ inside a line

    def line(self, node: nodes.Node) -> str:
        return "".join(self.inline(child) for child in node.children)

    def inline(self, node: nodes.Node) -> str:
        match node:
            case nodes.Text():
                text = SPECIAL.sub(lambda found: found[0][:-1] + "\\" + found[0][-1], str(node))
                return text.replace("|", r"\|") if self.in_table else text
            case nodes.emphasis():
                return f"*{self.line(node)}*"
            case nodes.strong():
                return f"**{self.line(node)}**"
            case nodes.literal():
                return self.code(node.astext())
            case nodes.math():
                return self.formula(node.astext())
            case nodes.reference():
                return self.reference(node)
            case nodes.image():
                if not re.match(r"https?:|data:", node["uri"]):
                    self.fail(node, f"image {node['uri']!r} does not travel with a notebook")
                return f"![{node.get('alt', '')}]({node['uri']})"
            case nodes.subscript() | nodes.superscript():
                tag = "sub" if isinstance(node, nodes.subscript) else "sup"
                return f"<{tag}>{self.line(node)}</{tag}>"
            case nodes.raw() if node["format"] == "html":
                return node.astext()
            case nodes.raw():  # each format has its own line break
                return ""
            case nodes.footnote_reference():
                return f"<sup>{node.astext()}</sup>"
            case nodes.inline() | nodes.generated() | addnodes.download_reference():
                return self.line(node)
            case nodes.target() | nodes.comment():
                return ""
        self.fail(node)

    def code(self, text: str) -> str:
        ticks = "`" * (max(map(len, re.findall("`+", text)), default=0) + 1)
        space = " " * (len(ticks) > 1)
        return ticks + space + (text.replace("|", r"\|") if self.in_table else text) + space + ticks

    def formula(self, latex: str) -> str:
        latex = " ".join(latex.split())
        if self.in_table:  # Jupyter extracts formulas before parsing tables, so a bar's backslash would remain
            latex = latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        return f"${latex.strip()}$"

    def reference(self, node: nodes.reference) -> str:
        text, address = self.line(node), node.get("refuri") or f"#{node.get('refid', '')}"
        page, _, name = address.partition("#")
        if not node.get("internal") and page:
            if not re.match(r"https?:|mailto:", address):
                self.fail(node, f"a notebook cannot follow {address}")
            return f"<{address}>" if node.astext() == address else f"[{text}](<{address}>)"
        if name in self.citations:
            citation = self.cited.setdefault(name, self.citations[name])
            links = [link["refuri"] for link in citation.findall(nodes.reference) if "refuri" in link]
            return f"[{text}](<{links[0]}>)" if links else text
        if name.startswith("term-"):
            return f"*{text}*"
        docname = str(PurePosixPath(self.docname).with_name(PurePosixPath(page).stem)) if page else self.docname
        if docname == self.docname:
            return f"“{text}”" if self.headings.get(name) == node.astext() else text
        title = self.line(self.env.titles[docname]) if name.startswith("equation-") else ""
        before = f"{text} of " if title else ""
        shown = title or text
        return before + (f"[{shown}]({page})" if self.has_notebook(docname) else shown)

    # ------------------------------------------------------------------ blocks

    def blocks(self, children: list[nodes.Node]) -> str:
        return "\n\n".join(filter(None, map(self.block, children)))

    def within(self, children: list[nodes.Node], mark: str) -> str:
        """Convert blocks inside a list or a quotation. The first line is prefixed with `mark`. The other lines are
        prefixed with the same mark in a quotation, or with as many spaces in a list."""
        return mark + self.indented(self.quoted(children), mark if mark == "> " else " " * len(mark))

    def quoted(self, children: list[nodes.Node]) -> str:
        outside, self.in_one_line = self.in_one_line, True
        text = self.blocks(children)
        self.in_one_line = outside
        return text

    @staticmethod
    def indented(text: str, mark: str) -> str:
        """Put `mark` before every line except the first. Empty lines get no trailing spaces."""
        return re.sub(r"\n(.?)", lambda found: f"\n{mark if found[1] else mark.rstrip()}{found[1]}", text)

    def block(self, node: nodes.Node) -> str:
        match node:
            case nodes.section():
                self.depth += 1
                self.emit(f"{'#' * self.depth} {self.line(node[0])}")
                for child in node.children[1:]:
                    self.emit(self.block(child))
                self.depth -= 1
                return ""
            case nodes.container() if node.get("nb_element") == "cell_code":
                self.flush()
                shown = [part for part in node.children if part.get("nb_element") == "cell_code_source"]
                self.cells += self.code_cells(node["cell_index"], shown[0].astext() if shown else None)
                return ""
            case nodes.container() if "front" in node["classes"]:
                return ""  # there is nothing to drag in a notebook
            case nodes.container() | nodes.compound():  # a compound contains the list of a chapter's depth pages
                return self.blocks(node.children)
            case nodes.paragraph():
                return self.line(node)
            case nodes.title() | nodes.caption():
                return f"**{self.line(node)}**"
            case nodes.math_block():
                return self.display(node)
            case nodes.literal_block():
                language = node.get("language", "")
                return fenced(node.astext(), "" if language in ("none", "default") else language)
            case nodes.bullet_list() | nodes.enumerated_list():
                numbers = isinstance(node, nodes.enumerated_list)
                marks = (f"{k}. " if numbers else "- " for k in range(node.get("start", 1), len(node) + 9))
                return self.items([self.within(item.children, mark) for item, mark in zip(node, marks, strict=False)])
            case nodes.definition_list():
                return self.items([self.definition(item) for item in node])
            case nodes.block_quote():
                return self.within(node.children, "> ")
            case nodes.Admonition():
                return self.admonition(node)
            case nodes.table():
                return self.table(node)
            case nodes.image():
                return self.inline(node)
            case nodes.raw() if node["format"] == "html":
                return "" if "<script" in node.astext() else node.astext()  # the theme's scripts don't run in notebooks
            case nodes.transition():
                return "" if "footnotes" in node["classes"] else "---"
            case nodes.footnote():
                self.notes.append(self.within(node.children[1:], f"{node[0].astext()}. "))
                return ""
            case nodes.citation():
                # The children are labels and texts. Each time the page is resolved, the entry gets another copy of
                # both. The last text is the one for notebooks. The texts for the site contain shortened addresses.
                return self.within(node.children[-1:], "- ")
            case nodes.target() | nodes.comment():
                return ""
        self.fail(node)

    def display(self, node: nodes.math_block) -> str:
        """Convert a displayed formula. Blank lines are removed, because Jupyter would end the formula there."""
        rows = [re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", row).strip() for row in node.astext().split("\n")]
        if node.get("number"):
            # A tag numbers the whole formula, so environments in the formula must not number their own rows.
            rows = [re.sub(r"\\(begin|end)\{(align|gather)\*?\}", r"\\\1{\2ed}", row) for row in rows]
            rows = [re.sub(r"\\(begin|end)\{equation\*?\}", "", row).strip() for row in rows]
            numbers = self.env.toc_fignumbers.get(self.docname, {}).get("displaymath", {})
            number = next((numbers[name] for name in node["ids"] if name in numbers), (node["number"],))
            rows.append(rf"\tag{{{'.'.join(map(str, number))}}}")
        rows = list(filter(None, rows))
        return f"$$ {' '.join(rows)} $$" if self.in_one_line else "\n".join(["$$", *rows, "$$"])

    @staticmethod
    def items(texts: list[str]) -> str:
        return ("\n\n" if any("\n\n" in text for text in texts) else "\n").join(texts)

    def definition(self, item: nodes.definition_list_item) -> str:
        terms = ", ".join(self.line(term) for term in item if isinstance(term, nodes.term))
        bodies = [child for part in item if isinstance(part, nodes.definition) for child in part]
        return f"- **{terms}**: " + self.within(bodies, "  ").removeprefix("  ")

    def admonition(self, node: nodes.Element) -> str:
        has_title = isinstance(node.next_node(), nodes.title)
        title = self.line(node[0]) if has_title else admonitionlabels[node.tagname]
        children = node.children[has_title:]
        if "dropdown" not in node["classes"]:
            return "> " + self.indented(f"**{title}**\n\n{self.quoted(children)}", "> ")
        return folded(title, self.blocks(children))

    def table(self, node: nodes.table) -> str:
        self.in_table = True
        rows = [[self.blocks(entry.children).replace("\n", " ") for entry in row] for row in node.findall(nodes.row)]
        self.in_table = False
        first = next(iter(node.findall(nodes.row)))
        marks = [next((ALIGNED[name] for name in entry["classes"] if name in ALIGNED), "---") for entry in first]
        caption = [self.block(child) for child in node if isinstance(child, nodes.title)]
        return "\n\n".join([*caption, "\n".join(f"| {' | '.join(row)} |" for row in [rows[0], marks, *rows[1:]])])
