"""Turn a chapter's MyST Markdown into Markdown that any notebook shows: CommonMark, GFM tables, mathematics in dollars.

The text is read by the tokenizer that the site uses. Only what a notebook could not show is rewritten, in place; all
else, code above all, stays as it was written. A directive or role that is not known here raises an error: nothing raw
may reach a student.
"""

from __future__ import annotations

import copy
import html
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token
from mdit_py_plugins.dollarmath import dollarmath_plugin
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_markdown_cell

from tools.citations import Citations
from tools.first_cell import first_cells
from tools.myst import CITE, PARSER, Directive, Index, LineError, directive_of, index_of, keys, role_target
from tools.pictures import as_images

HTML_ROLES = {"kbd": "kbd", "sub": "sub", "sup": "sup"}
CODE_HIDDEN = {"hide-input", "hide-cell", "remove-input", "remove-cell"}
OUTPUT_HIDDEN = {"hide-output", "hide-cell", "remove-output", "remove-cell"}
STATE = "application/vnd.jupyter.widget-state+json"

# Tokens whose text a notebook shows as it stands, apart from what stands inside a line.
PLAIN = re.compile(
    r"(paragraph|heading|list_item|bullet_list|ordered_list|blockquote|table|thead|tbody|tr|th|td)_(open|close)"
    r"|hr|html_block|code_block"
)
# Tokens of which nothing stays -> how each begins in the text.
DROPPED = {"footnote_reference_open": "[^", "myst_block_break": "+", "myst_line_comment": "%", "myst_target": "("}

TITLES = MarkdownIt("commonmark").use(dollarmath_plugin)
TITLES.add_render_rule("math_inline", lambda self, tokens, i, *_: f"${html.escape(tokens[i].content, quote=False)}$")

Change = tuple[int, int, list[str]]  # first line, line after the last, the lines to put there


class FlattenError(ValueError):
    """Something in a chapter that a student notebook cannot show; says in which chapter and line."""


def chapter_names(book_dir: Path) -> list[str] | None:
    """The chapters: the numbered pages of the `_toc.yml` beside `book_dir`, in its order; None without that file."""
    path = book_dir.parent / "_toc.yml"
    if not path.is_file():
        return None
    parts = yaml.safe_load(path.read_text(encoding="utf-8")).get("parts", [])
    return [Path(chapter["file"]).name for part in parts if part.get("numbered") for chapter in part["chapters"]]


class _Chapter:
    """The chapter that is being rewritten, and what its references mean."""

    def __init__(self, name: str, book_dir: Path) -> None:
        self.name, self.book_dir, self.index = name, book_dir, Index()
        self.chapters = chapter_names(book_dir)
        self.notes: list[str] = []  # labels, in the order in which they are referred to
        self.has_bibliography = False

    @cached_property
    def citations(self) -> Citations:
        """To be used when all of the chapter is in the index."""
        try:
            return Citations(self.book_dir / "references.bib", self.index.cited)
        except KeyError as error:
            raise FlattenError(f"{self.name}: {error.args[0]}") from error

    # ------------------------------------------------------------------ blocks

    def text(self, source: str, line: int, quoted: bool = False) -> str:
        """Rewrite a piece of Markdown that begins on `line`.

        `quoted`: it will stand in a quotation, where Jupyter would take each line's `>` for a part of the formula.
        """
        lines = source.split("\n")
        tokens = PARSER.parse(source, self.index.env)
        changes: list[Change] = []
        i = 0
        while i < len(tokens):
            token = tokens[i]
            kind, at = token.type, line + (token.map or [0])[0]
            end = _closing(tokens, i) if token.nesting == 1 else i
            if kind in ("fence", "colon_fence"):
                changes += self._fence(token, lines, at, quoted)
            elif kind in ("math_block", "math_block_label"):
                before = _before(lines, token, "$$")
                label = token.info if kind == "math_block_label" else None
                changes.append(
                    _block(lines, token, before, self._display(token.content, label, quoted or before != ""))
                )
            elif kind in DROPPED:
                changes.append(_block(lines, token, _before(lines, token, DROPPED[kind]), ""))
                i = end
            elif kind == "dl_open":
                before = _before(lines, token, tokens[i + 2].content)
                changes.append(_block(lines, token, before, self._definitions(tokens[i:end], lines, line, len(before))))
                i = end
            elif kind == "table_open":
                changes += self._table(tokens[i:end], lines, line)
                i = end
            elif kind == "inline":
                changes += self._line(token, lines, at)
            elif not PLAIN.fullmatch(kind):
                raise LineError(at, f"a notebook cannot show {kind}")
            i += 1
        for first, last, new in reversed(changes):
            lines[first:last] = new
        return "\n".join(lines).strip("\n")

    def _fence(self, token: Token, lines: list[str], line: int, quoted: bool) -> list[Change]:
        directive = directive_of(token, line)
        if directive is None:
            return []
        end = lines[token.map[1] - 1].strip(" >")
        if set(end) != {token.markup[0]} or len(end) < len(token.markup):
            raise LineError(line, f"{{{directive.name}}} is not closed by {token.markup}")
        before = _before(lines, token, token.markup)
        return [_block(lines, token, before, self._rewritten(directive, line, quoted or before != ""))]

    def _rewritten(self, directive: Directive, line: int, quoted: bool) -> str:
        name = directive.name
        if name == "math":
            content = f"{directive.argument}\n{directive.body}"
            return self._display(content, directive.options.get("label"), quoted)
        if name in ("code-block", "code"):
            longest = max((len(run) for run in re.findall("`+", directive.body)), default=0)
            fence = "`" * max(3, longest + 1)
            caption = directive.options.get("caption", "")
            title = f"**{self.inline(caption, line)}**\n\n" if caption else ""
            return f"{title}{fence}{directive.argument}\n{directive.body}\n{fence}"
        if name == "bibliography":
            self.has_bibliography = True
            return self.citations.references()
        if directive.markdown is None:
            raise LineError(line, f"unknown directive {{{name}}}")
        if name in ("admonition", "dropdown", "table") and not directive.title:
            raise LineError(line, f"{{{name}}} needs a title on its first line")
        title = self.inline(directive.title, line)
        if directive.folded:
            body = self.text(directive.markdown, directive.markdown_line, quoted)
            opened = " open" if "open" in directive.options else ""
            summary = TITLES.renderInline(title)
            return f"<details{opened}>\n<summary>{summary}</summary>\n\n{body}\n\n</details>"
        heading = f"**{title}**\n\n" if title else ""
        if name == "table":
            return heading + self.text(directive.markdown, directive.markdown_line, quoted)
        body = heading + self.text(directive.markdown, directive.markdown_line, quoted=True)
        return "> " + _indented("> ", body)

    def _display(self, content: str, label: str | None, one_line: bool) -> str:
        """A displayed formula. Jupyter takes a blank line for the formula's end, so none may stay."""
        rows = [re.sub(r"(?<!\\)((?:\\\\)*)%.*", r"\1", row).strip() for row in content.split("\n")]
        rows = [row for row in rows if row]
        if label is not None:
            # A tag belongs to the whole formula; environments that number their own rows cannot stand inside one.
            rows = [re.sub(r"\\(begin|end)\{(align|gather)\*?\}", r"\\\1{\2ed}", row) for row in rows]
            rows = [row for row in (re.sub(r"\\(begin|end)\{equation\*?\}", "", row).strip() for row in rows) if row]
            rows.append(rf"\tag{{{self._number(label, self.name, self.index)}}}")
        return f"$$ {' '.join(rows)} $$" if one_line else "\n".join(["$$", *rows, "$$"])

    def _definitions(self, tokens: list[Token], lines: list[str], line: int, indent: int) -> str:
        """A definition list as a list whose items begin with the term."""
        items, terms = [], []
        for i, token in enumerate(tokens):
            if token.level != tokens[0].level + 1:
                continue
            if token.type == "dt_open":
                terms.append(self.inline(tokens[i + 1].content, line + token.map[0]))
            elif token.type == "dd_open":
                first, last = token.map
                while not (found := re.match(r"\s*[:~]\s*", lines[first][indent:])):
                    first += 1  # the tokenizer may count the term's line as well
                block, mark = [text[indent:] for text in lines[first:last]], found.end()
                rest = [re.sub(rf"^ {{1,{mark}}}", "", text) for text in block[1:]]
                body = self.text("\n".join([block[0][mark:], *rest]), line + first, quoted=True)
                items.append((f"**{', '.join(terms)}**: " if terms else "") + body)
                terms = []
        return "\n".join("- " + _indented("  ", item) for item in items)

    def _table(self, tokens: list[Token], lines: list[str], line: int) -> list[Change]:
        rows: dict[int, tuple[str, int]] = {}  # line -> new text so far, column up to which the old one is used
        for token in tokens:
            if token.type == "inline" and token.content:
                row = token.map[0]
                old = token.content.replace("|", r"\|")
                new = self._edited(token.content, token.children, line + row, in_table=True).replace("|", r"\|")
                text, column = rows.get(row, ("", 0))
                start = lines[row].index(old, column)
                rows[row] = (text + lines[row][column:start] + new, start + len(old))
        return [(row, row + 1, [text + lines[row][column:]]) for row, (text, column) in rows.items()]

    def _line(self, token: Token, lines: list[str], line: int) -> list[Change]:
        """The lines of a paragraph or a heading, if anything in them has to change."""
        new = self._edited(token.content, token.children, line)
        if new == token.content:
            return []
        first, result = token.map[0], []
        old = token.content.split("\n")
        # A formula or role may have run over a line's end: then there are fewer lines than before.
        for i, text in enumerate(new.split("\n")):
            whole, part = lines[first + i], old[i].strip()
            start = whole.rindex(part)
            after = whole[start + len(part) :]
            result.append(whole[:start] + text.lstrip() + (after if after.strip() else ""))  # a heading's closing marks
        return [(first, first + len(old), result)]

    # ------------------------------------------------------------------ inside a line

    def inline(self, source: str, line: int) -> str:
        """Rewrite one line of Markdown, as a title is."""
        token = PARSER.parseInline(source, self.index.env)[0]
        return self._edited(token.content, token.children, line)

    def _edited(self, content: str, children: list[Token], line: int, in_table: bool = False) -> str:
        edits: list[tuple[int, int, str]] = []
        for child in children:
            start, end = child.meta.get("span", (0, 0))
            at = line + content[:start].count("\n")
            if child.type == "myst_role":
                name = child.meta["name"]
                is_math = name == "math"
                new = _formula(child.content, in_table) if is_math else self._role(name, child.content, at)
                edits.append((start, end, new))
            elif child.type == "math_inline":
                edits.append((start, end, _formula(child.content, in_table)))
            elif child.type == "footnote_ref":
                edits.append((start, end, self._footnote(child.meta["label"])))
            elif child.type == "link_open":
                edits += self._link(child, content, at)
            elif child.type == "image":
                if not re.match(r"https?:|data:", child.attrs["src"]):
                    raise LineError(at, f"image {child.attrs['src']!r} does not travel with a notebook")
                if any(part.type == "myst_role" for part in child.children):
                    raise LineError(at, f"a role cannot stand in the text of image {child.attrs['src']!r}")
            elif child.type == "text" and (match := re.search(r"\[\^[^\]\s]+\]", child.content)):
                raise LineError(at, f"footnote {match[0]} is not defined")
        # The site shows a dollar that closes nothing; notebooks would pair it with another.
        if sum(child.content.count("$") for child in children if child.type == "text") > content.count(r"\$"):
            raise LineError(line, r"a dollar sign that begins no formula: write \$, or a blank line before $$")
        for start, end, new in sorted(edits, reverse=True):
            content = content[:start] + new + content[end:]
        return content

    def _role(self, name: str, content: str, line: int) -> str:
        text, target = role_target(content)
        if name == "eq":
            return self._equation(target, line)
        if name in CITE:
            works = keys(content)
            return self.citations.textual(works) if name == "cite:t" else self.citations.parenthetical(works)
        if name == "term":
            return f"*{text or target}*"
        if name == "doc":
            return self._page(text, target, line)
        if name == "ref":
            return self._target(text, target, line)
        if name == "code":
            return f"`` {content.strip()} ``" if "`" in content else f"`{content}`"
        if name in HTML_ROLES:
            return f"<{HTML_ROLES[name]}>{html.escape(content)}</{HTML_ROLES[name]}>"
        if name == "abbr" and (match := re.fullmatch(r"(.+?)\s*\((.+)\)", content)):
            return f'<abbr title="{html.escape(match[2])}">{html.escape(match[1])}</abbr>'
        raise LineError(line, f"unknown role {{{name}}}`{content}`")

    def _equation(self, label: str, line: int) -> str:
        if label in self.index.equations:
            return f"({self._number(label, self.name, self.index)})"
        for page, index in self._others():
            if label in index.equations:
                name = self._linked(self._heading(page, index, line), page, index)
                return f"({self._number(label, page, index)}) of {name}"
        raise LineError(line, f"no equation has the label {label!r}")

    def _number(self, label: str, page: str, index: Index) -> str:
        """An equation's number as the site counts: within its chapter, after the chapter's number."""
        before = f"{self.chapters.index(page) + 1}." if self.chapters and page in self.chapters else ""
        return f"{before}{index.equations[label]}"

    def _target(self, text: str | None, label: str, line: int) -> str:
        if label in self.index.equations:
            return text or self._equation(label, line)
        if label in self.index.targets:
            return text or f"“{self._title(self.index.targets[label], label, line)}”"
        for page, index in self._others():
            if label in index.targets:
                return self._linked(text or self._title(index.targets[label], label, line), page, index)
            if label in index.equations:
                return text or self._equation(label, line)
        raise LineError(line, f"nothing in the book has the label {label!r}")

    def _title(self, title: str, label: str, line: int) -> str:
        if not title:
            raise LineError(line, f"{label!r} stands before nothing that has a title: give the reference a text")
        return self.inline(title, line)

    def _page(self, text: str | None, target: str, line: int) -> str:
        page = Path(target).name.removesuffix(".md")
        if not (self.book_dir / f"{page}.md").is_file():
            raise LineError(line, f"the book has no page {target!r}")
        index = self._index(page)
        return self._linked(text or self._heading(page, index, line), page, index)

    def _heading(self, page: str, index: Index, line: int) -> str:
        return self.inline(index.title or page, line)

    def _linked(self, text: str, page: str, index: Index) -> str:
        """A link to the page's notebook, if it has one."""
        has_notebook = index.has_code and (self.chapters is None or page in self.chapters)
        return f"[{text}]({page}.ipynb)" if has_notebook else text

    def _others(self) -> Iterator[tuple[str, Index]]:
        for path in sorted(self.book_dir.glob("*.md")):
            if path.stem != self.name:
                yield path.stem, self._index(path.stem)

    def _index(self, page: str) -> Index:
        try:
            return index_of((self.book_dir / f"{page}.md").read_text(encoding="utf-8"))
        except LineError as error:
            raise FlattenError(f"{page}, {error}") from error

    def _link(self, token: Token, content: str, line: int) -> list[tuple[int, int, str]]:
        """The changes that a link needs: an address on the web stays, a page of the book becomes its notebook."""
        (start, end), address = token.meta["span"], token.attrs["href"]
        outside = re.match(r"https?:|mailto:", address)
        if token.markup == "autolink":
            if outside:
                return []
            raise LineError(line, f"a notebook cannot follow <{address}>")
        label_end = token.meta["label_end"]
        text = content[start + 1 : label_end]
        if outside:
            if content[end - 1] == ")":
                return []
            title = f' "{token.attrs["title"]}"' if "title" in token.attrs else ""
            return [(label_end, end, f"](<{address}>{title})")]  # its definition may stand in another cell
        path, _, label = address.partition("#")
        if re.match(r"[a-z]+:", path):
            raise LineError(line, f"a notebook cannot follow [{text}]({address})")
        if not path:
            return _retext(start, label_end, end, text, self._target(text or None, label, line))
        page = Path(path).name.removesuffix(".md")
        if (self.book_dir / f"{page}.md").is_file():
            return _retext(start, label_end, end, text, self._page(text or None, page, line))
        if not text:
            raise LineError(line, f"[]({address}) has no text, and the book has no such page")
        return _retext(start, label_end, end, text, text)  # a file that does not travel with the notebook

    def _footnote(self, label: str) -> str:
        if label not in self.notes:
            self.notes.append(label)
        return f"<sup>{self.notes.index(label) + 1}</sup>"

    def appendix(self) -> str:
        """Footnotes and references, if there are any that do not stand in the text already."""
        parts, items, count = [], [], 0
        while count < len(self.notes):  # a note may refer to another
            text, line = self.index.footnotes[self.notes[count]]
            count += 1
            items.append(f"{count}. " + _indented(" " * len(f"{count}. "), self.text(text, line, quoted=True)))
        if items:
            parts.append("## Notes\n\n" + "\n".join(items))
        if self.index.cited and not self.has_bibliography:
            parts.append("## References\n\n" + self.citations.references())
        return "\n\n".join(parts)


def _closing(tokens: list[Token], i: int) -> int:
    """Where the token stands that closes the one at `i`."""
    depth = 0
    for j in range(i, len(tokens)):
        depth += tokens[j].nesting
        if depth == 0:
            return j
    raise AssertionError(f"{tokens[i].type} is not closed")


def _before(lines: list[str], token: Token, mark: str) -> str:
    """What stands before a block on its first line: a list's mark, a quotation's, spaces."""
    line = lines[token.map[0]]
    return line[: line.index(mark)]


def _block(lines: list[str], token: Token, before: str, new: str) -> Change:
    """The change that puts `new` in a block's place, within the list or quotation, set apart by blank lines."""
    first, last = token.map
    following = re.sub(r"[^>\s]", " ", before)  # a list's mark is not repeated
    blank = following.rstrip()
    opens_item = before != following
    above = first > 0 and not opens_item and lines[first - 1].strip(" >") != ""
    below = last < len(lines) and lines[last].strip(" >") != ""
    if not new:
        return first, last, [blank] if above and below else [before.rstrip()] if opens_item else []
    text = before + _indented(following, new)
    return first, last, [blank] * above + text.split("\n") + [blank] * below


def _indented(indent: str, text: str) -> str:
    """Put something before every line but the first; an empty line gets no spaces, any other stays as it is."""
    first, *rest = text.split("\n")
    return "\n".join([first, *(indent + row if row else indent.rstrip() for row in rest)])


def _formula(content: str, in_table: bool) -> str:
    formula = " ".join(content.split())
    if in_table:  # Jupyter takes the formula out before it reads the table: the bar's backslash would still be there
        formula = formula.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
    return f"${formula.strip()}$"


def _retext(start: int, label_end: int, end: int, text: str, new: str) -> list[tuple[int, int, str]]:
    """Change what stands around a link's text, so that roles inside the text can be changed on their own."""
    if not text:
        return [(start, end, new)]
    before, after = new.split(text, 1)
    return [(start, start + 1, before), (label_end, end, after)]


def flatten(notebook: NotebookNode, chapter_name: str, book_dir: Path, *, standalone: bool = True) -> NotebookNode:
    """A copy of a chapter that plain Jupyter, VS Code and Colab show as it is meant.

    Args:
        notebook: the chapter; Markdown cells hold MyST Markdown, code cells may have outputs, which are kept, with
            drawings as images (`tools.pictures` says why).
        chapter_name: the chapter's file name without its ending.
        book_dir: where the chapters and `references.bib` are; references to other chapters are looked up there.
        standalone: begin with a cell that makes `ropebook` importable and one that says what the notebook is.

    Raises:
        FlattenError: for a directive or role not known here, a reference to nothing, a work not in `references.bib`,
            an image that would not travel; it names the chapter, the line and what is wrong. Lines are those of the
            chapter's file, or of the cell where the cell is not found in it.
    """
    chapter, flat = _Chapter(chapter_name, Path(book_dir)), copy.deepcopy(notebook)
    places = _places(notebook, chapter.book_dir / f"{chapter_name}.md")
    texts = [(cell, *place) for cell, place in zip(flat.cells, places, strict=True) if cell.cell_type == "markdown"]
    for cell, line, where in texts:
        with _named(f"{chapter_name}, {where}"):
            chapter.index.add(cell.source, line)
    for cell, line, where in texts:
        with _named(f"{chapter_name}, {where}"):
            cell.source, cell.metadata = chapter.text(cell.source, line), NotebookNode()
    cells = [cell for cell in flat.cells if cell.cell_type != "markdown" or cell.source]
    with _named(f"{chapter_name}, "):
        appendix = chapter.appendix()
        title = chapter.inline(chapter.index.title or chapter_name, 1)
    if appendix:
        cells.append(new_markdown_cell(appendix))
    for number, cell in enumerate((cell for cell in cells if cell.cell_type == "code"), start=1):
        _fold(cell)
        try:
            _draw(cell)
        except ValueError as error:
            raise FlattenError(f"{chapter_name}, code cell {number}: {error}") from error
    if standalone:
        code_text = "\n".join(cell.source for cell in cells if cell.cell_type == "code")
        cells = first_cells(title, code_text=code_text) + cells
    flat.cells = cells
    for i, cell in enumerate(flat.cells):
        cell.id = f"cell-{i}"  # those that nbformat makes are random
    flat.nbformat, flat.nbformat_minor = 4, 5
    flat.metadata = _metadata(notebook.metadata)
    return flat


def _places(notebook: NotebookNode, path: Path) -> list[tuple[int, str]]:
    """For each cell the line of the chapter's file that it begins on; failing that 1, and the cell's number."""
    text, start, places = path.read_text(encoding="utf-8") if path.is_file() else "", 0, []
    for number, cell in enumerate(notebook.cells, start=1):
        at = text.find(cell.source, start)
        if at < 0:
            places.append((1, f"cell {number}, "))
        else:
            places.append((text.count("\n", 0, at) + 1, ""))
            start = at + len(cell.source)
    return places


@contextmanager
def _named(where: str) -> Iterator[None]:
    try:
        yield
    except LineError as error:
        raise FlattenError(f"{where}{error}") from error


def _fold(cell: NotebookNode) -> None:
    """What the page hides, notebooks fold. What only the site's builder understands is left out."""
    tags = cell.metadata.get("tags", [])
    metadata = {"tags": tags} if tags else {}
    folds = {}
    if CODE_HIDDEN & set(tags):
        folds["source_hidden"] = True
        metadata["cellView"] = "form"  # the same in Colab's words
    if OUTPUT_HIDDEN & set(tags):
        folds["outputs_hidden"] = True
    if folds:
        metadata["jupyter"] = folds
    cell.metadata = from_dict(metadata)


def _draw(cell: NotebookNode) -> None:
    for output in cell.outputs:
        if "text/html" in output.get("data", {}):
            output.data["text/html"] = as_images(output.data["text/html"])


def _metadata(metadata: NotebookNode) -> NotebookNode:
    kept = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    kept["language_info"] = metadata.get("language_info", {"name": "python"})
    widgets = metadata.get("widgets", {}).get(STATE)
    if widgets is not None:
        # Without the key `state` GitHub refuses to show the notebook at all.
        state = widgets if "state" in widgets else {"version_major": 2, "version_minor": 0, "state": widgets}
        kept["widgets"] = {STATE: copy.deepcopy(state)}
    return from_dict(kept)
