"""The field guide: how published checkpoints encode position, and where each value
comes from.

A checkpoint is a published set of weights, such as Llama-3.1-8B. A family of models has many checkpoints, and they
differ. The values are in ``checkpoints.json``. Each value names the key of its source, or is "?" if we found no source.
No value was written from memory.

- `file` reads the values and rejects anything that cannot be right.
- `sights` summarises what the checkpoints have in common.
- `guide` builds the page's table and its list of sources.
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
