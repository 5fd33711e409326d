"""The report: the verdict, the named mistakes, and the measurements, each described in a sentence."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor


@dataclass(frozen=True)
class Report:
    """The diagnosis of one rotation. It prints as a page of plain text.

    Three mappings go from names to sentences: ``mistakes`` says what is wrong, ``undetermined`` what can't be judged
    until more is declared, and ``evidence`` what was measured.
    """

    name: str
    mistakes: Mapping[str, str] = field(default_factory=dict)
    evidence: Mapping[str, str] = field(default_factory=dict)
    undetermined: Mapping[str, str] = field(default_factory=dict)
    layout: str | None = None
    base: float | None = None
    rotary_dim: int = 0
    scaling: str | None = None
    inv_freq: Tensor | None = None

    @property
    def verdict(self) -> str:
        """The first of "wrong", "undetermined" and "sound" that applies."""
        if self.mistakes:
            return "wrong"
        return "undetermined" if self.undetermined else "sound"

    @property
    def sound(self) -> bool:
        """Whether the verdict is "sound"."""
        return self.verdict == "sound"

    def __str__(self) -> str:
        """Format the verdict, followed by the mistakes and the measurements."""
        said = {
            "sound": "sound",
            "undetermined": f"undetermined ({', '.join(self.undetermined)})",
            "wrong": ", ".join(self.mistakes),
        }
        found = [("✗ " + name, said) for name, said in self.mistakes.items()]
        found += [("? " + name, said) for name, said in self.undetermined.items()]
        found += list(self.evidence.items())
        wide = max((len(name) for name, _ in found), default=0) + 2
        lines = [
            textwrap.fill(
                f"{name:<{wide}}{said}",
                width=78,
                initial_indent="  ",
                subsequent_indent=" " * (wide + 2),
                break_on_hyphens=False,
            )
            for name, said in found
        ]
        return "\n".join([f"{self.name}: {said[self.verdict]}", *lines])
