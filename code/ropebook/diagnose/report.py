"""What was found: the mistakes by name, and what was measured, each in a sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Report:
    """The diagnosis of one rotation. Printed, it is a page of plain text.

    ``mistakes`` and ``evidence`` are sentences by name: what is wrong, and what was measured.
    """

    name: str
    mistakes: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    layout: str | None = None
    base: float | None = None
    rotary_dim: int = 0
    scaling: str | None = None
    inv_freq: Tensor | None = None

    @property
    def sound(self) -> bool:
        """Whether no mistake was found."""
        return not self.mistakes

    def __str__(self) -> str:
        """The verdict, then what was measured."""
        head = (
            f"{self.name}: sound"
            if self.sound
            else f"{self.name}: {', '.join(self.mistakes)}"
        )
        found = [("✗ " + name, said) for name, said in self.mistakes.items()]
        found += list(self.evidence.items())
        wide = max(len(name) for name, _ in found) + 2
        lines = [
            textwrap.fill(
                f"{name:<{wide}}{said}",
                width=100,
                initial_indent="  ",
                subsequent_indent=" " * (wide + 2),
                break_on_hyphens=False,
            )
            for name, said in found
        ]
        return "\n".join([head, *lines])
