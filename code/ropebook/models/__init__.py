"""The field guide: what published checkpoints do with positions, and where each
value comes from.

A checkpoint is a published set of weights, such as Llama-3.1-8B. A family has many
checkpoints, and they differ. The values are in ``checkpoints.json``. Each has the
key of a source, or is "?" if no source was found. Nothing there was written from
memory.

- `file` reads it and refuses what can't be right.
- `sights` shows what the values have in common.
- `guide` makes the table and the list of sources for the page.
"""

from ropebook.models.file import (
    COLUMNS,
    ENOUGH,
    UNKNOWN,
    Checkpoint,
    Difference,
    Source,
    Value,
    checkpoints,
    read,
    sources,
)
from ropebook.models.guide import Guide, Origins, explained, text
from ropebook.models.sights import (
    bases,
    counted,
    differences,
    known,
    layouts,
    stretched,
)

__all__ = [
    "COLUMNS",
    "ENOUGH",
    "UNKNOWN",
    "Checkpoint",
    "Difference",
    "Guide",
    "Origins",
    "Source",
    "Value",
    "bases",
    "checkpoints",
    "counted",
    "differences",
    "explained",
    "known",
    "layouts",
    "read",
    "sources",
    "stretched",
    "text",
]
