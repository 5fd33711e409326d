"""Show tested source code and tables of numbers in a chapter, and print the evidence for a claim."""

import ast
import inspect
import math
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from IPython.display import display

__all__ = [
    "Forms", "Signs", "check", "difference", "glue", "scientific", "show", "table",
]  # fmt: skip

# The entries that a column of numbers may contain: 12, −0.5, 1,024, ≤ 3, 1.2 ± 0.1, 10⁵, 4k, 5 %, or nothing.
NUMBER = re.compile(
    r"(?:[<>≤≥≈±~]\s*)?[-−+]?\.?\d\S*(?:\s(?:[±%×·]|\S*\d)\S*)*|[-−–+]?∞|NaN|–|"
)
MISSING = "–"
# The first one has no width. Neither lets a line end.
JOINER, NO_BREAK = "\u2060", "\u00a0"
SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
# In a column of numbers, these words stand for a number that doesn't exist or isn't known.
NO_NUMBER = {"never", "no", "none", "?", "·"}
# A cell with more characters than this takes up several lines on a phone, so its column must not be too narrow.
SENTENCE = 24
# If the names of rows share this many words at their end, these words move into the heading.
SHARED = 3
# Text for screen readers only. Its style is inline, so that it works wherever the table is shown.
SPOKEN = (
    '<span style="position: absolute; clip-path: inset(50%); width: 1px; height: 1px; '
    'overflow: hidden; white-space: nowrap">{}</span>'
)


class Signs(str):
    """Words that a table shows as signs. A folded copy of the table shows the words.

    >>> found = Signs("1 hold, 1 undecided", [("✓", "holds"), ("?", "undecided")])
    >>> found, found.signs
    ('1 hold, 1 undecided', (('✓', 'holds'), ('?', 'undecided')))

    Args:
        words: the words.
        signs: the signs in their order, each with its meaning, for the caption of the table.
    """

    signs: tuple[tuple[str, str], ...]

    def __new__(cls, words: str, signs: Iterable[tuple[str, str]]) -> "Signs":
        found = super().__new__(cls, words)
        found.signs = tuple(signs)
        return found


class Forms:
    """The same content in several forms, by MIME type. A notebook shows the richest form that it supports; `print`
    shows the plain text."""

    def __init__(self, forms: Mapping[str, object]) -> None:
        self.forms = dict(forms)

    def _repr_mimebundle_(self, **_: object) -> dict[str, object]:
        return self.forms

    def __repr__(self) -> str:
        return self.forms["text/plain"]


def show(*objects, docstrings: bool = True) -> None:
    """Display the source of functions or classes as highlighted code. This is the same source that is run and tested.

    The output is Markdown, and notebooks and the site highlight it in their own colours.

    Args:
        objects: functions or classes whose source file is available.
        docstrings: set it to False to leave out the docstrings, for example if the chapter's text already says the
            same.

    Raises:
        TypeError: one of the objects has no Python source.
    """
    if not objects:
        raise TypeError(
            "objects must hold at least one function or class, got none"
        )
    for item in objects:
        item = inspect.unwrap(item) if callable(item) else item
        try:
            lines, first = inspect.getsourcelines(item)
        except (TypeError, OSError) as error:
            raise TypeError(
                f"objects must be functions or classes written in Python, got {item!r}"
            ) from error
        source = textwrap.dedent("".join(lines)).rstrip()
        if not docstrings:
            source = _without_docstrings(source)
        fence = "```"
        while fence in source:  # a docstring may contain a fence too
            fence += "`"
        where = f"{item.__module__.replace('.', '/')}.py, line {first}"
        held = where.replace("line ", "line\N{NO-BREAK SPACE}")
        markdown = (
            f"`{item.__qualname__}` · {held}\n\n{fence}python\n{source}\n{fence}"
        )
        display(
            Forms({"text/markdown": markdown, "text/plain": f"# {where}\n{source}"})
        )


def _without_docstrings(source: str) -> str:
    """Remove the docstrings of functions and classes from the source, and leave every other line unchanged."""
    lines = source.splitlines()
    for node in ast.walk(ast.parse(source)):
        if (
            not isinstance(node, ast.FunctionDef | ast.ClassDef)
            or ast.get_docstring(node) is None
        ):
            continue
        text = node.body[0]
        if len(node.body) > 1:  # keep the docstring if it is the whole body
            for number in range(text.lineno, text.end_lineno + 1):
                lines[number - 1] = None
            if lines[text.end_lineno] == "":
                lines[text.end_lineno] = None
    return "\n".join(line for line in lines if line is not None)


def check(
    claim: str,
    measured: float,
    *,
    at_most: float | None = None,
    at_least: float | None = None,
) -> None:
    """Print a claim with the measured number and its bound. Raises an error if the claim does not hold.

    >>> check("the rows sum to one", 1.2e-7, at_most=1e-6)
    the rows sum to one: 1.2e-07 (at most 1e-06)
    >>> check("the outputs differ", 0.31, at_least=0.1)
    the outputs differ: 0.31 (at least 0.1)

    Args:
        claim: a clause that states the claim.
        measured: the number, which may be a tensor or array with one element.
        at_most, at_least: the inclusive bounds. At least one of them must be given.

    Raises:
        AssertionError: the number is outside the bounds, or is NaN.
        ValueError: no bound was given.
    """
    if at_most is None and at_least is None:
        raise ValueError("check needs at_most or at_least, got neither")
    measured = float(_values(measured))
    given = {"at least": at_least, "at most": at_most}
    bounds = [
        f"{word} {bound:.3g}" for word, bound in given.items() if bound is not None
    ]
    holds = (at_least is None or measured >= at_least) and (
        at_most is None or measured <= at_most
    )
    line = f"{claim}: {measured:.3g} ({', '.join(bounds)})"
    if math.isnan(measured) or not holds:
        raise AssertionError(f"does not hold: {line}")
    print(line)


def table(
    columns: Mapping[str, Sequence],
    *,
    caption: str,
    best: Mapping[str, str] | None = None,
    formats: Mapping[str, str] | None = None,
) -> None:
    """Display a table, as HTML in a notebook and on the site, and as aligned text in a terminal.

    >>> loss = {"plain": 3.25, "linear": 2.06, "YaRN": 1.7}
    >>> columns = {"method": list(loss), "loss (bits)": list(loss.values())}
    >>> print(_plain(*_cells(columns, {"loss (bits)": "min"}, {"loss (bits)": ".2f"}), "Loss at 512"))
    Loss at 512
    <BLANKLINE>
    method  loss (bits)
    plain          3.25
    linear         2.06
    YaRN          *1.70
    <BLANKLINE>
    * best

    Args:
        columns: maps the heading of each column, with its unit, to its cells from top to bottom. A cell is text, a
            number, or None if it is empty. The first column contains the names of the rows. If any cell is `Signs`,
            the table with its words follows in a fold.
        caption: a description of the table.
        best: the columns whose best number is to be marked: ``{heading: "min"}`` to mark the smallest,
            ``{heading: "max"}`` to mark the largest. If the best number occurs several times, each occurrence is marked.
        formats: the number formats of columns, such as ``{heading: ".3g"}``. In all other columns, integers are written
            with thousands separators, and other numbers with three digits.

    Raises:
        ValueError: there are no columns; the columns have different lengths, or no cells; the caption is empty; a
            heading in ``best`` or ``formats`` is not a column; or a column in ``best`` contains no number.
        TypeError: a heading or the caption is not a string, or a cell is not text, a number or None.
    """
    if not isinstance(caption, str):
        raise TypeError(f"caption must be text, got {caption!r}")
    if not caption.strip():
        raise ValueError(f"caption must say what the table shows, got {caption!r}")
    texts, marked = _cells(columns, best or {}, formats or {})
    html, plain = _html(texts, marked, caption), _plain(texts, marked, caption)
    meanings = {
        sign: meaning
        for cells in texts.values()
        for cell in cells
        if isinstance(cell, Signs)
        for sign, meaning in cell.signs
    }
    if meanings:
        legend = ", ".join(f"{sign}\u00a0{word}" for sign, word in meanings.items())
        words = {head: list(map(str, cells)) for head, cells in texts.items()}
        matrix = _html(_shorter(texts), marked, f"{caption} ({legend})")
        folded = (
            f"<summary>In words</summary>{_html(words, marked, caption, ' prose')}"
        )
        html = f'{matrix}<details class="folded">{folded}</details>'
    display(Forms({"text/html": html, "text/plain": plain}))


def _cells(
    columns: Mapping, best: Mapping, formats: Mapping
) -> tuple[dict[str, list[str]], dict[str, set[int]]]:
    """Return the columns as text, and for each heading the rows with the best entries."""
    lengths = {head: len(cells) for head, cells in columns.items()}
    if not lengths or len(set(lengths.values())) != 1 or 0 in lengths.values():
        raise ValueError(
            f"columns must have one length, 1 or more, got {lengths or 'no column'}"
        )
    for head in columns:
        if not isinstance(head, str):
            raise TypeError(f"a column's head must be text, got {head!r}")
    for name, given in {"best": best, "formats": formats}.items():
        for head in given:
            if head not in columns:
                allowed = ", ".join(map(repr, columns))
                raise ValueError(
                    f"{name} must name columns of {allowed}, got {head!r}"
                )
    texts = {
        head: [_text(head, cell, formats.get(head)) for cell in cells]
        for head, cells in columns.items()
    }
    marked = {
        head: _best_rows(head, columns[head], which) for head, which in best.items()
    }
    return texts, marked


def _text(head: str, cell: object, form: str | None) -> str:
    if cell is None:
        return MISSING
    if isinstance(cell, str):
        return cell
    number = _number(cell)
    if number is None:
        raise TypeError(
            f"a cell must be text, a number or None, got {cell!r} in the column {head!r}"
        )
    if form is None:
        form = ",d" if isinstance(number, int) else ".3g"
    try:
        # A number that is rounded to zero isn't negative.
        sign = "+" if form.startswith("+") else ""
        return re.sub(r"^-(?=[0.,]+%?$)", sign, format(number, form))
    except ValueError as error:
        raise ValueError(
            f"formats[{head!r}] must be a format of numbers, as '.3g', got {form!r}"
        ) from error


def _number(cell: object) -> int | float | None:
    """Return the number in a cell, or None if there is no number. The cell may also be a tensor or array with one
    element, or a string such as '1,024'."""
    if hasattr(cell, "item"):
        try:
            cell = cell.item()
        except (ValueError, RuntimeError):
            return None
    if isinstance(cell, str):
        try:
            return float(cell.replace(",", "").replace("−", "-"))
        except ValueError:
            return None
    return (
        cell
        if isinstance(cell, int | float) and not isinstance(cell, bool)
        else None
    )


def _best_rows(head: str, cells: Sequence, which: str) -> set[int]:
    if which not in ("min", "max"):
        raise ValueError(f"best[{head!r}] must be 'min' or 'max', got {which!r}")
    numbers = [_number(cell) for cell in cells]
    known = [
        number for number in numbers if number is not None and number == number
    ]
    if not known:
        raise ValueError(f"best names the column {head!r}, which holds no number")
    winner = min(known) if which == "min" else max(known)
    return {row for row, number in enumerate(numbers) if number == winner}


def _numeric(cells: list[str]) -> bool:
    """Return whether a column contains numbers. Where there is no number, a cell may say so.

    >>> _numeric(["12", "never"]), _numeric(["never", "no"]), _numeric(["12", "twelve"])
    (True, False, False)
    """
    stated = [cell for cell in cells if cell not in NO_NUMBER]
    return bool(stated) and all(NUMBER.fullmatch(cell) for cell in stated)


def _kind(cells: list[str]) -> str:
    """Return the HTML attributes of a column's cells. Numbers are aligned to the right, and sentences get a wider
    column."""
    if _numeric(cells):
        return ' class="number" style="text-align: right"'
    long = any(
        len(cell) > SENTENCE for cell in cells if not isinstance(cell, Signs)
    )
    sentences = ' class="sentence"' if long else ""
    return f'{sentences} style="text-align: left"'


def _html(
    texts: dict[str, list[str]],
    marked: dict[str, set[int]],
    caption: str,
    kind: str = "",
) -> str:
    """Return the table as HTML, in a box that scrolls if the page is too narrow. ``kind`` is a further class."""
    kinds = {head: _kind(cells) for head, cells in texts.items()}
    heads = "".join(
        f'<th scope="col"{kinds[head]}>{escape(_heading(head))}</th>'
        if head.strip()
        else "<td></td>"
        for head in texts
    )
    rows = []
    for row in range(len(next(iter(texts.values())))):
        cells = []
        for column, head in enumerate(texts):
            tag = '<th scope="row"' if column == 0 else "<td"
            text = _marked_up(texts[head][row])
            if row in marked.get(head, ()):
                text = f"<strong>{text}{SPOKEN.format(' (best)')}</strong>"
            cells.append(f"{tag}{kinds[head]}>{text}</{tag[1:3]}>")
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="table-box"><table class="book-table{kind}">'
        f"<caption><span>{escape(with_apostrophes(caption))}</span></caption>"
        f"<thead><tr>{heads}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _heading(head: str) -> str:
    """Return a heading in which L stays with the word before it."""
    return re.sub(r" (?=L\b)", NO_BREAK, with_apostrophes(head))


def _marked_up(cell: str) -> str:
    if isinstance(cell, Signs):
        # Many signs may go on in the next line, in groups of three.
        signs = escape(JOINER.join(sign for sign, _ in cell.signs))
        signs = re.sub(
            f"(?:.{JOINER}){{3}}", lambda three: f"{three[0][:-1]}<wbr>", signs
        )
        return (
            f'<span aria-hidden="true">{signs}</span>{SPOKEN.format(escape(cell))}'
        )
    # A hyphen is lower and narrower than a minus sign.
    cell = re.sub(r"(?:^|(?<=\s))-(?=[\d.∞])", "−", cell)
    return escape(with_apostrophes(cell))


def with_apostrophes(text: str) -> str:
    """Return a text with apostrophes as they are printed. Quotation marks stay as they are.

    >>> with_apostrophes("the query's 'first' pair isn't turned")
    "the query’s 'first' pair isn’t turned"
    """
    return re.sub(r"(?<=[A-Za-z])'(?=[A-Za-z])", "’", text)


def _shorter(texts: dict[str, list[str]]) -> dict[str, list[str]]:
    """If all names of rows end with the same words, and these are more than a few, move them into the heading.

    >>> _shorter({"model": ["ALiBi: it reads far beyond L", "RoPE: it reads far beyond L"]})
    {'model … it reads far beyond L': ['ALiBi', 'RoPE']}
    >>> _shorter({"person": ["she reads", "he reads"]})
    {'person': ['she reads', 'he reads']}
    """
    (head, names), *rest = texts.items()
    split = [name.split() for name in names]
    shared = 0
    while (
        shared + 1 < min(map(len, split))
        and len({words[-shared - 1] for words in split}) == 1
    ):
        shared += 1
    if len(names) > 1 and shared >= SHARED:
        head += " … " + " ".join(split[0][-shared:])
        names = [" ".join(words[:-shared]).rstrip(":,") for words in split]
    return {head: names, **dict(rest)}


def _plain(
    texts: dict[str, list[str]], marked: dict[str, set[int]], caption: str
) -> str:
    lines = [""] * (1 + len(next(iter(texts.values()))))
    for head, cells in texts.items():
        rows = marked.get(head, ())
        starred = [
            f"*{cell}" if k in rows else cell for k, cell in enumerate(cells)
        ]
        whole = [head, *starred]
        width = max(map(len, whole))
        right = _numeric(cells)
        for k, cell in enumerate(whole):
            lines[k] += (cell.rjust(width) if right else cell.ljust(width)) + "  "
    legend = ["", "* best"] if any(marked.values()) else []
    return "\n".join([caption, "", *(line.rstrip() for line in lines), *legend])


def difference(a, b) -> float:
    """Return the largest absolute difference between the entries of two tensors or arrays of the same shape. It is NaN
    if any difference is NaN.

    >>> import torch
    >>> difference(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.5]))
    0.5

    Raises:
        ValueError: the shapes differ, or there is nothing to compare.
    """
    if tuple(a.shape) != tuple(b.shape):
        raise ValueError(
            f"a and b must have one shape, got {tuple(a.shape)} and {tuple(b.shape)}"
        )
    if 0 in a.shape:
        raise ValueError(
            f"a and b must have entries to compare, got the shape {tuple(a.shape)}"
        )
    return float(abs(_values(a) - _values(b)).max())


def scientific(number: float, digits: int = 1) -> str:
    """Write a number as a multiple of a power of ten, for the prose and for tables.

    >>> scientific(4_870_000, digits=3), scientific(2e-7)
    ('4.87\xa0·\xa010⁶', '2\xa0·\xa010⁻⁷')

    Args:
        number: the number, which may be a tensor or array with one element.
        digits: how many digits the factor has at most. Zeros at its end are left out.
    """
    factor, power = f"{float(_values(number)):.{digits - 1}e}".split("e")
    return (
        f"{float(factor):g}\u00a0·\u00a010{str(int(power)).translate(SUPERSCRIPTS)}"
    )


def glue(**numbers) -> None:
    """Store numbers so that the page's prose can show them by name: ``{glue:text}`name:.2f```. Nothing is printed.

    In a notebook, this needs only IPython; the output is the same as that of MyST-NB's ``glue``.

    >>> glue(largest=0.25)  # doctest: +SKIP

    Args:
        numbers: the numbers, by name. Strings are accepted too, and so are tensors and arrays with one element.

    Raises:
        ValueError: a tensor or array has more than one element.
    """
    for name, value in numbers.items():
        if hasattr(value, "item"):
            if math.prod(value.shape) != 1:
                raise ValueError(
                    f"{name} must be one number, got the shape {tuple(value.shape)}"
                )
            value = value.item()
        prefix = "application/papermill.record/"
        text = value if isinstance(value, str) else repr(value)
        display(
            {f"{prefix}text/plain": text},
            metadata={"scrapbook": {"name": name, "mime_prefix": prefix}},
            raw=True,
        )


def _values(x):
    """Detach a tensor from its graph. Anything else is returned unchanged."""
    return x.detach() if hasattr(x, "detach") else x
