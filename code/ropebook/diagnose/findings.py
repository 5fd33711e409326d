"""What the diagnosis of one rotation knows so far: what was declared, what was measured, and the sentences about both."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ropebook import rope
from ropebook.diagnose.calling import Call
from ropebook.diagnose.measures import NotFinite, Turn, matrices

# Positions 0 … 47 are looked at first.
NEAR = 48


@dataclass(frozen=True)
class Declared:
    """What the weights need, as far as the reader said it."""

    layout: str | None = None
    base: float | None = None
    length: int | None = None
    rotary_dim: int | None = None
    inv_freq: Tensor | None = None
    attention_factor: float | None = None

    def frequencies(self, rotary_dim: int) -> Tensor | None:
        """The frequencies that the weights need, if they are known."""
        if self.inv_freq is not None or self.base is None:
            return self.inv_freq
        return rope.inv_freq(rotary_dim, self.base)

    @property
    def whole(self) -> bool:
        """Whether all is declared that there is to plain RoPE, so that frequencies that are scaled are wrong."""
        return (
            self.layout is not None
            and self.length is not None
            and (self.base is not None or self.inv_freq is not None)
        )

    @property
    def complete(self) -> bool:
        """Whether scores can be compared with a reference."""
        return self.layout is not None and (
            self.base is not None or self.inv_freq is not None
        )


@dataclass
class Findings:
    """The measurements of one rotation, and the sentences that they lead to."""

    name: str
    call: Call
    declared: Declared
    near: dict[str, Tensor] = field(default_factory=dict)
    turns: dict[str, Turn] = field(default_factory=dict)
    mistakes: dict[str, str] = field(default_factory=dict)
    undetermined: dict[str, str] = field(default_factory=dict)
    evidence: dict[str, str] = field(default_factory=dict)
    layout: str | None = None
    base: float | None = None
    scaling: str | None = None
    factor: float = 1.0  # by which the slowest pairs are slowed
    # the exact frequencies, once they are recognised; far away a measured one would be too coarse
    theta: Tensor | None = None
    honoured: bool = (
        False  # whether it turns each token by the position that it is given
    )
    # whether tokens are rotated by the positions they are given only where each comes alone
    one_by_one: bool = False
    exact: bool = False  # whether these are known beyond what was measured

    @property
    def both(self) -> bool:
        """Whether q and k are treated separately; a function of a single tensor rotates both alike."""
        return self.call.vectors != ("x",)

    @property
    def rotating(self) -> dict[str, Turn]:
        """The turns of q and k that are rotations."""
        return {
            role: turn
            for role, turn in self.turns.items()
            if turn.kind == "rotation" and role != "v"
        }

    @property
    def main(self) -> Turn:
        """The turn that speaks for the rotation: that of q, or of k if q is none."""
        return next(
            iter(self.rotating.values()),
            next(
                (turn for turn in self.turns.values() if turn.kind != "identity"),
                self.turns["q"],
            ),
        )

    def at(self, positions: Tensor) -> dict[str, Tensor]:
        """The matrices of what is told apart, at these positions."""
        try:
            found = matrices(self.call, positions)
        except NotFinite:
            raise
        except Exception as error:
            where = f"positions {positions[0]} to {positions[-1]}"
            said = f"{self.name} raised {type(error).__name__} at {where}: {error}"
            raise ValueError(said) from error
        return found if self.both else {"q": found["q"]}

    def names(self, roles: list[str]) -> str:
        """Roles in words: "q and k", or "x" for a function of one tensor."""
        return " and ".join(roles) if self.both else "x"
