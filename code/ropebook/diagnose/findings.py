"""The state of one diagnosis: what was declared, what was measured, and the sentences that describe it."""

from __future__ import annotations

from dataclasses import dataclass, field

from torch import Tensor

from ropebook import rope
from ropebook.diagnose.calling import Call
from ropebook.diagnose.measures import NotFinite, Turn, matrices

# Positions 0 to 47 are measured first.
NEAR = 48


@dataclass(frozen=True)
class Declared:
    """What the weights require, as far as the reader has declared it."""

    layout: str | None = None
    base: float | None = None
    length: int | None = None
    rotary_dim: int | None = None
    inv_freq: Tensor | None = None
    attention_factor: float | None = None
    in_place: bool = False

    def frequencies(self, rotary_dim: int) -> Tensor | None:
        """Return the frequencies that the weights need, or None if they are unknown."""
        if self.inv_freq is not None or self.base is None:
            return self.inv_freq
        return rope.inv_freq(rotary_dim, self.base)

    @property
    def whole(self) -> bool:
        """Whether everything that defines plain RoPE is declared. If it is, any undeclared scaling is a mistake."""
        return (
            self.layout is not None
            and self.length is not None
            and (self.base is not None or self.inv_freq is not None)
        )

    @property
    def complete(self) -> bool:
        """Whether enough is declared to compare scores with a reference."""
        return self.layout is not None and (
            self.base is not None or self.inv_freq is not None
        )


@dataclass
class Findings:
    """The measurements of one rotation, and the conclusions drawn from them, as sentences."""

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
    factor: float = 1.0  # the factor by which the slowest pairs are slowed
    # the exact frequencies, once they are recognised (measured ones would be too coarse at far positions)
    theta: Tensor | None = None
    honoured: bool = (
        False  # whether each token is rotated by the position passed for it
    )
    # whether positions are honoured in calls with a single token, but in no others
    one_by_one: bool = False
    exact: bool = False  # whether theta is exact rather than measured

    def withdraw(self, *names: str) -> None:
        """Remove mistakes that turned out not to be mistakes, because a later finding explains them."""
        for name in names:
            self.mistakes.pop(name, None)

    @property
    def both(self) -> bool:
        """Whether q and k are rotated separately. A function of a single tensor rotates them identically."""
        return self.call.vectors != ("x",)

    @property
    def rotating(self) -> dict[str, Turn]:
        """The `Turn` of q and the `Turn` of k, without those that aren't rotations."""
        return {
            role: turn
            for role, turn in self.turns.items()
            if turn.kind == "rotation" and role != "v"
        }

    @property
    def main(self) -> Turn:
        """The `Turn` that represents the function: that of q, or that of k if q is not rotated."""
        return next(
            iter(self.rotating.values()),
            next(
                (turn for turn in self.turns.values() if turn.kind != "identity"),
                self.turns["q"],
            ),
        )

    def at(self, positions: Tensor) -> dict[str, Tensor]:
        """Measure the matrices at these positions. If the function takes a single tensor, only q is measured."""
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
        """Name some roles: "q and k", or "x" for a function of one tensor."""
        return " and ".join(roles) if self.both else "x"
