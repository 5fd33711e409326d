"""Show the guide on a page: a table that a script makes sortable, and the sources
of each row."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from html import escape
from typing import NamedTuple
from urllib.parse import quote

from ropebook.models.file import (
    COLUMNS,
    UNKNOWN,
    Checkpoint,
    Source,
    Value,
    checkpoints,
    sources,
)

EXPLAINER = "explain.html"
"""The page that explains a configuration."""
BANDS = {"low_freq_factor": 1.0, "high_freq_factor": 4.0}
"""Values that all published configurations of Llama 3 share. The guide has no
column for them."""

METHODS = {
    "linear": "linear",
    "dynamic": "dynamic NTK",
    "llama3": "Llama 3",
    "yarn": "YaRN",
    "longrope": "LongRoPE",
}
DATED = {"published": "published", "commit": "as of", "read": "read"}
# The columns that are visible at first. Readers can select more columns.
FIRST = ("layout", "base", "rotates", "shipped", "scaling")


class Column(NamedTuple):
    """A column of the table: its heading, and whether it is visible at first."""

    key: str
    head: str
    first: bool


def columns() -> list[Column]:
    """Return all columns except for the name, in order."""
    found = [Column("published", "published", True)]
    found += [Column("maker", "maker", False), Column("kind", "for", False)]
    # The column for the rotated part of a head also contains the head dimension.
    shown = [key for key in COLUMNS if key != "head_dim"]
    order = sorted(shown, key=lambda key: key not in FIRST)
    found += [Column(key, COLUMNS[key], key in FIRST) for key in order]
    return sorted(found, key=lambda column: not column.first)


def explained(row: Checkpoint) -> str:
    """Return a link that opens a row in the explainer, with its numbers written as a
    configuration. The link is "" if the numbers do not make up a configuration. This is
    the case if nothing rotates, and for LongRoPE, whose factors the guide does not
    list.

    >>> explained(checkpoints()[0])[:40]
    'explain.html#explain.config=%7B%22head_d'
    """
    base, scaling = row.of("base"), row.of("scaling")
    numbers = base, row.of("head_dim"), row.of("rotates"), row.of("shipped")
    if UNKNOWN in (*numbers, scaling) or "none" in numbers or not row.of("rotates"):
        return ""
    config: dict[str, object] = {"head_dim": row.of("head_dim"), "rope_theta": base}
    if row.share < 1:
        config["partial_rotary_factor"] = row.share
    config["max_position_embeddings"] = row.of("shipped")
    if isinstance(scaling, dict):
        if scaling["type"] == "longrope" or "factor" not in scaling:
            return ""
        config["rope_scaling"] = _scaling(scaling)
    return f"{EXPLAINER}#explain.config={quote(json.dumps(config))}"


def _scaling(scaling: dict) -> dict:
    """Return a row's scaling, with the keys that a configuration uses."""
    names = {"type": "rope_type", "original": "original_max_position_embeddings"}
    found = {names.get(key, key): value for key, value in scaling.items()}
    return found | (BANDS if scaling["type"] == "llama3" else {})


def anchor(row: Checkpoint) -> str:
    """Return the id of a row's entry in the list of sources.

    >>> anchor(checkpoints()[1])
    'from-gpt-j-6b'
    """
    return "from-" + re.sub(r"[^a-z0-9]+", "-", row.name.lower()).strip("-")


def text(column: str, value: object) -> str:
    """Format a value for readers.

    >>> text("base", 500_000), text("sinks", True), text("window", 0)
    ('500,000', 'yes', 'none')
    >>> text("scaling", {"type": "yarn", "factor": 32, "original": 4096})
    'YaRN × 32'
    """
    if column == "scaling" and isinstance(value, dict):
        factor = f" × {value['factor']:g}" if "factor" in value else ""
        return METHODS[value["type"]] + factor
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value == 0:
        return "none"
    if isinstance(value, float):
        return f"{value:,.0f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def cell(row: Checkpoint, column: str) -> tuple[str, object]:
    """Return what to display for a row in a column, and the value to sort it by.
    None is sorted last."""
    if column == "maker":
        return row.maker, row.maker.lower()
    if column == "kind":
        return row.kind, row.kind
    if column == "published":
        if row.published == UNKNOWN:
            return UNKNOWN, None
        return row.published.value, row.published.value
    value = row.of(column)
    if value == UNKNOWN:
        return UNKNOWN, None
    shown = text(column, value)
    if column == "rotates":
        share = row.share
        shown = f"{value} of {row.of('head_dim')}"
        return (shown, 0 if share == UNKNOWN else share)
    if column == "scaling":
        factor = value.get("factor", 1) if isinstance(value, dict) else 0
        return shown, factor
    if column == "unturned" and value == "all":
        return shown, 10**6
    if value == "none":
        return shown, 0
    return shown, int(value) if isinstance(value, bool) else value


def marks(row: Checkpoint, column: str) -> str:
    """Return "†" if sources disagree about the value, "*" if the value has a note,
    or both."""
    entries = [row.values.get(column, UNKNOWN)]
    if column == "rotates":
        entries.append(row.values["head_dim"])
    said = any(entry != UNKNOWN and entry.note for entry in entries)
    apart = any(other.column == column for other in row.disagreements)
    return "†" * apart + "*" * said


class Guide:
    """The table of checkpoints, as HTML on the site and as aligned text in a
    terminal.

    >>> print(Guide(checkpoints()[1:2]))
    name      published  pairs        base    rotates    shipped length  scaling
    GPT-J-6B  2021-05    interleaved  10,000  64 of 256  2,048           none
    """

    def __init__(self, rows: Sequence[Checkpoint] | None = None, caption: str = ""):
        self.rows = list(checkpoints() if rows is None else rows)
        self.caption = caption or "Checkpoints and their positions"

    def __repr__(self) -> str:
        shown = [column for column in columns() if column.first]
        lines = [["name", *(column.head for column in shown)]]
        for row in self.rows:
            cells = [cell(row, column.key)[0] for column in shown]
            lines.append([row.name, *cells])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join(
                one.ljust(width) for one, width in zip(line, widths, strict=True)
            ).rstrip()
            for line in lines
        )

    def _repr_html_(self) -> str:
        # On a phone, each row becomes a card. In that layout, screen readers
        # recognise the table only if it has roles.
        heads = '<th scope="col" role="columnheader">checkpoint</th>' + "".join(
            f'<th scope="col" role="columnheader"{_more(column)}>{escape(column.head)}</th>'
            for column in columns()
        )
        rows = "".join(self._row(row) for row in self.rows)
        return (
            '<div class="guide"><p class="guide-all"><label><input type="checkbox"> '
            "Show all columns</label></p>"
            '<div class="table-box"><table class="book-table guide-table" role="table">'
            f"<caption><span>{escape(self.caption)}</span></caption>"
            f'<thead role="rowgroup"><tr role="row">{heads}</tr></thead>'
            f'<tbody role="rowgroup">{rows}</tbody></table></div></div>'
        )

    def _row(self, row: Checkpoint) -> str:
        address = explained(row)
        link = (
            f' <a href="{escape(address)}" aria-label="Explain {escape(row.name)}">explain</a>'
            if address
            else ""
        )
        name = f'<a href="#{anchor(row)}">{escape(row.name)}</a>{link}'
        cells = [f'<th scope="row" role="rowheader">{name}</th>']
        for column in columns():
            shown, key = cell(row, column.key)
            sort = "" if key is None else f' data-sort="{escape(str(key))}"'
            shown = escape(shown) + marks(row, column.key)
            label = escape(column.head)
            cells.append(
                f'<td role="cell" data-label="{label}"{sort}{_more(column)}>{shown}</td>'
            )
        kept = "" if row.counts else ' class="guide-thin"'
        return f'<tr role="row"{kept}>{"".join(cells)}</tr>'


def _more(column: Column) -> str:
    return "" if column.first else ' class="guide-more"'


class Origins:
    """The source of every value, as a list with one entry for each row. The list
    is collapsed at first and is meant to be read one row at a time."""

    def __init__(self, rows: Sequence[Checkpoint] | None = None):
        self.rows = list(checkpoints() if rows is None else rows)

    def __repr__(self) -> str:
        return "\n".join(
            f"{row.name}: {row.sourced} of {len(COLUMNS)} values have a source"
            for row in self.rows
        )

    def _repr_html_(self) -> str:
        return (
            f'<div class="guide-origins">{"".join(map(_origin, self.rows))}</div>'
        )


def _origin(row: Checkpoint) -> str:
    known = sources()
    parts = []
    for key, own in row.origins.items():
        values = "; ".join(_with_note(row, column) for column in own)
        parts.append(f"<dt>{_cited(known[key])}</dt><dd>{values}</dd>")
    for other in row.disagreements:
        said = f"{COLUMNS[other.column]} {text(other.column, other.value)}"
        parts.append(
            f"<dt>† {_cited(known[other.source])}</dt>"
            f"<dd>{escape(said)}: {escape(other.says)}</dd>"
        )
    if row.published != UNKNOWN:
        day = known[row.published.source]
        parts.append(
            f"<dt>{_cited(day)}</dt><dd>published {row.published.value}</dd>"
        )
    missing = [
        COLUMNS[key] for key, entry in row.values.items() if entry == UNKNOWN
    ]
    if missing:
        parts.append(
            f"<dt>No source found</dt><dd>{escape(', '.join(missing))}</dd>"
        )
    note = f"<p>{escape(row.note)}</p>" if row.note else ""
    count = f"{row.sourced} of {len(COLUMNS)}"
    return (
        f"<details><summary>{escape(row.name)} ({count})</summary>"
        f'<div id="{anchor(row)}">{note}<dl>{"".join(parts)}</dl></div></details>'
    )


def _with_note(row: Checkpoint, column: str) -> str:
    entry = row.values[column]
    assert isinstance(entry, Value)
    said = f"{COLUMNS[column]}: {text(column, entry.value)}"
    if (
        column == "scaling"
        and isinstance(entry.value, dict)
        and "original" in entry.value
    ):
        said += f" of {entry.value['original']:,}"
    return escape(said + (f" ({entry.note})" if entry.note else ""))


def _cited(source: Source) -> str:
    when = f"{DATED[source.dated]} {source.date}"
    return f'<a href="{escape(source.address)}">{escape(source.title)}</a>, {when}'
