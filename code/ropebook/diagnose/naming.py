"""From measurements to names: each mistake as the gallery calls it (`ropebook.mistakes`), with what shows it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from ropebook import checks, mistakes
from ropebook.diagnose import frequencies
from ropebook.diagnose.calling import Call, recognised
from ropebook.diagnose.measures import NotFinite, Turn, matrices, measured
from ropebook.diagnose.report import Report

# Positions 0 … 47 are looked at first, then gaps, a shift and places far away.
NEAR = 48
SHIFT = 16
FAR = (257, 1003, 2049)


def diagnose(
    function: Callable,
    *,
    layout: str | None = None,
    base: float | None = None,
    dim: int | None = None,
    call: str | None = None,
    order: str | None = None,
) -> Report:
    """Tell what a function that rotates q and k does, and which mistakes it makes.

    ``layout`` and ``base`` are those that the weights were trained with; without them any is sound. ``dim`` is the width of a
    head, by default the first of 64, 128, 32, … that the function takes. How it is called is recognised, or told:
    ``call`` by the roles of its arguments, as "q, k, positions" or "x, cos, sin" (`ropebook.diagnose.calling.ROLES`),
    and ``order`` by the axes of its tensors, as "batch seq heads dim" (`ropebook.diagnose.calling.ORDERS`).

    ``TypeError`` if ``function`` cannot be called at all, ``ValueError`` if no way to call it works, or if it returns NaN.

    >>> report = diagnose(mistakes.degrees)
    >>> list(report.mistakes)
    ['degrees']
    >>> diagnose(mistakes.correct, layout="interleaved", base=10000.0).sound
    True
    """
    if layout is not None:
        checks.layout(layout)
    if base is not None:
        base = checks.number("base", base, minimum=1)
    found = recognised(
        function, call=call, order=order, dim=dim, base=base or 10000.0
    )
    return _Diagnosis(function, found, layout, base).report()


class _Diagnosis:
    """The measurements of one rotation, and the sentences that they lead to."""

    def __init__(
        self, function: Callable, call: Call, layout: str | None, base: float | None
    ):
        self.name = getattr(function, "__qualname__", type(function).__name__)
        if hasattr(function, "func"):
            self.name = getattr(function.func, "__qualname__", self.name)
        self.call, self.layout, self.base = call, layout, base
        self.mistakes: dict[str, str] = {}
        self.evidence: dict[str, str] = {}
        self.near = self._at(torch.arange(NEAR))
        self.turns = {role: measured(matrix) for role, matrix in self.near.items()}
        self.frequencies: frequencies.Frequencies | None = None

    def _at(self, positions: Tensor) -> dict[str, Tensor]:
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

    @property
    def both(self) -> bool:
        """Whether q and k are told apart: a function of one tensor turns them alike."""
        return self.call.vectors != ("x",)

    @property
    def main(self) -> Turn:
        """The turn that speaks for the rotation: that of q, or of k if q is none."""
        turns = list(self.turns.values())
        return next((turn for turn in turns if turn.kind == "rotation"), turns[0])

    def report(self) -> Report:
        """All of it, in the order in which one would look."""
        self.evidence["call"] = f"{self.call.words}, d = {self.call.dim}"
        if self.call.along != "seq":
            self.mistakes["wrong_axis"] = (
                f"it turns along the {self.call.along}: one vector in every place comes back alike along the sequence"
            )
            return Report(self.name, self.mistakes, self.evidence)
        self._kinds()
        main = self.main
        if main.kind == "rotation":
            self._pairs(main)
            self._direction(main)
            self._angles(main)
            self._table(main)
            self._start(main)
            self._length(main)
            self._positions(main)
        elif main.first:
            self._pairs(main)
        self._linear()
        self._properties(main)
        found = self.frequencies
        return Report(
            self.name,
            self.mistakes,
            self.evidence,
            layout=main.layout,
            base=found.base if found else None,
            rotary_dim=main.rotary_dim,
            scaling=found.kind
            if found and found.kind in ("linear", "by parts", "uneven")
            else None,
            inv_freq=main.theta,
        )

    # --- What is turned ---

    def _kinds(self) -> None:
        kinds = {role: turn.kind for role, turn in self.turns.items()}
        q, k, v = (kinds.get(role, kinds["q"]) for role in "qkv")
        if not self.both:
            v = "identity"
            self.evidence["not seen"] = (
                "whether q and k are turned alike and v is left alone: the function takes one tensor"
            )
        elif "v" not in self.call.vectors:
            self.evidence["not seen"] = "values: the function is not given any"
        self._turned_or_not(q, k, v)
        for kind, said in _KINDS.items():
            which = [
                role for role in self.turns if kinds[role] == kind and role != "v"
            ]
            if which:
                turn = self.turns[which[0]]
                names = " and ".join(which) if self.both else "x"
                self.mistakes[kind] = said.format(names=names, off=turn.off)
        if self.both and q == k == "rotation":
            self._alike(self.turns["q"], self.turns["k"])

    def _turned_or_not(self, q: str, k: str, v: str) -> None:
        if v != "identity" and q == "identity" and k != "identity":
            self.mistakes["key_value"] = (
                f"k and v are turned and q is not: |v′ − v| is up to {self._moved('v'):.2g}, |q′ − q| is 0"
            )
        elif v != "identity":
            self.mistakes["rotated_values"] = (
                f"v is turned as well: entries change by up to {self._moved('v'):.2g}"
            )
        if q == k == "identity":
            self.mistakes["nothing_turns"] = (
                "q and k come back as they went in, at every position"
            )
        elif k == "identity":
            self.mistakes["query_only"] = (
                "q is turned, and k comes back as it went in"
            )
        elif q == "identity" and v == "identity":
            self.mistakes["key_only"] = (
                "k is turned, and q comes back as it went in"
            )

    def _moved(self, role: str) -> float:
        unit = torch.eye(self.call.dim, dtype=torch.float64)
        return (self.near[role] - unit).abs().max().item()

    def _alike(self, q: Turn, k: Turn) -> None:
        if q.first != k.first or q.second != k.second:
            self.mistakes["two_layouts"] = (
                f"q is paired as {_pairs_said(q)}, k as {_pairs_said(k)}"
            )
            return
        close = max(q.tolerance, k.tolerance)
        if (q.theta + k.theta).abs().max() < close:
            self.mistakes["opposite_signs"] = (
                f"pair 0 of q turns by {q.theta[0]:+.4f} a position, that of k by {k.theta[0]:+.4f}: "
                "the score knows m + n, not m − n"
            )
        elif (q.theta - k.theta).abs().max() > close:
            off = (q.theta - k.theta).abs().max()
            self.mistakes["two_bases"] = (
                f"the frequencies of q and k differ by up to {off:.2g}"
            )
        else:
            off = (self.near["q"] - self.near["k"]).abs().max()
            self.evidence["q and k"] = f"turned alike, up to {off:.1g}"

    # --- How it is turned ---

    def _pairs(self, turn: Turn) -> None:
        dim, n = turn.dim, len(turn.first)
        self.evidence["layout"] = _pairs_said(turn)
        part = turn.rotary_dim
        if turn.layout is None and n > 1:
            self.mistakes["own_layout"] = (
                f"the pairs are neither neighbours nor half a head apart: {_pairs_said(turn)}"
            )
        elif (
            self.layout
            and turn.layout
            and turn.layout != self.layout
            and turn.kind == "rotation"
        ):
            self.mistakes["other_layout"] = (
                f"a proper rotation, in the layout {turn.layout!r}: entry {turn.first[0]} turns with entry "
                f"{turn.second[0]}, and in {self.layout!r} it turns with "
                f"{turn.first[0] + (1 if self.layout == 'interleaved' else part // 2)}"
            )
        if 2 * n == dim:
            self.evidence["part"] = f"all {dim} entries turn"
        elif part == 2 * n:
            where = f"entries {turn.first[0]} to {turn.second[-1]}"
            self.evidence["part"] = (
                f"{part} of {dim} entries turn, {where}; the others come back as they went in"
            )
        else:
            self.evidence["part"] = (
                f"{n} of {part // 2} pairs turn, the slowest {part // 2 - n} stand still"
            )

    def _direction(self, turn: Turn) -> None:
        first = turn.theta[0].item()
        if abs(first) < 1e-12:
            return
        way = "counter-clockwise" if first > 0 else "clockwise"
        said = f"{way}: pair 0 turns by {first:+.6f} radians a position"
        if first > 0 or "opposite_signs" in self.mistakes:
            self.evidence["direction"] = said
            return
        self.mistakes["clockwise"] = (
            f"{said}. Scores still depend on m − n alone, but they are those of −Δ in place of Δ"
        )

    def _angles(self, turn: Turn) -> None:
        if turn.uneven > max(10 * turn.tolerance, 1e-2):
            self.mistakes["uneven_angles"] = (
                f"angles are not proportional to the position: they miss a straight line by up to {turn.uneven:.2g} radians"
            )
        if self.call.tables:
            self.evidence["base"] = (
                "not seen: angles come from the tables that it is given"
            )
            return
        found = frequencies.read(
            turn.theta.abs(), turn.rotary_dim, turn.tolerance, self.base
        )
        self.frequencies = found
        said = [] if found.base is None else [f"{found.base:,.6g}"]
        # what scaling does is said where scaling is
        said += [found.said] if found.kind not in ("by parts", "uneven") else []
        self.evidence["base"] = ": ".join(said)
        if found.kind == "degrees":
            self.mistakes["degrees"] = f"angles are taken for degrees: {found.said}"
            return
        self.evidence["unit"] = "radians"
        if found.kind == "half":
            self.mistakes["half_frequencies"] = found.said
        self._scaling(found)
        self._base(found, turn)

    def _scaling(self, found: frequencies.Frequencies) -> None:
        if found.kind == "linear" and found.factor < 1:
            self.evidence["scaling"] = (
                f"all pairs turn {1 / found.factor:.4g} times as fast"
            )
        elif found.kind == "linear":
            self.evidence["scaling"] = (
                f"linear, by {found.factor:.4g}: positions count 1/{found.factor:.4g} each (position interpolation)"
            )
        elif found.kind == "by parts":
            self.evidence["scaling"] = (
                f"by parts, by {found.factor:.4g}, as YaRN or Llama 3 do: {found.said}"
            )
        elif found.kind == "uneven":
            self.evidence["scaling"] = f"of no known kind: {found.said}"

    def _base(self, found: frequencies.Frequencies, turn: Turn) -> None:
        if self.base is None or found.base is None:
            return
        close = 50 * turn.tolerance if turn.table is not None else 1e-3
        if abs(found.base / self.base - 1) < close * max(1.0, math.log(self.base)):
            return
        if abs(found.base / self.base**2 - 1) < close * max(
            1.0, 2 * math.log(self.base)
        ):
            self.mistakes["halved_dim"] = (
                f"the base is {found.base:,.6g} = {self.base:,.6g}²: half of d stands in the exponent"
            )
            return
        said = f"the base is {found.base:,.6g}, not {self.base:,.6g}"
        r = turn.rotary_dim
        if found.base > self.base and r > 2:
            s = (found.base / self.base) ** ((r - 2) / r)
            said += f". NTK-aware scaling by {s:.4g} would do that"
        self.mistakes["other_base"] = said

    def _table(self, turn: Turn) -> None:
        if turn.table is None:
            self.evidence["table"] = "wider than a half type"
            return
        name = str(turn.table).removeprefix("torch.")
        generator = torch.Generator().manual_seed(0)
        x = torch.randn(
            1, 4, self.call.dim, dtype=torch.float64, generator=generator
        )
        turned = self.call(x, x, x, torch.arange(4))[0]
        if torch.equal(turned.to(turn.table).double(), turned):
            self.evidence["table"] = (
                f"not seen: what it returns is rounded to {name}"
            )
            return
        short = {"bfloat16": "bf16", "float16": "fp16"}[name]
        off = self._off_rotation(turn)
        self.mistakes[f"{short}_table"] = (
            f"every cosine and sine is a number of {name}, and the vectors are wider: tables off by up to {off:.2g}"
        )

    def _off_rotation(self, turn: Turn) -> float:
        if self.frequencies is None or self.frequencies.base is None:
            return 2.0**-9
        angles = torch.arange(NEAR)[:, None] * turn.theta
        role = next(role for role in self.turns if self.turns[role] is turn)
        cos = self.near[role][:, turn.first, turn.first]
        return (cos - angles.cos()).abs().max().item()

    def _start(self, turn: Turn) -> None:
        phase = turn.phase
        if phase.abs().max() < 10 * turn.tolerance:
            self.evidence["start"] = "nothing is turned at position 0"
            return
        quarter = (phase.abs() - math.pi / 2).abs().max()
        if quarter < 10 * turn.tolerance:
            self.mistakes["swapped_cos_sin"] = (
                "cosine and sine have changed places: at position 0 every pair is turned by a quarter already"
            )
            return
        begins = (phase / turn.theta)[turn.theta.abs() > 1e-3]
        if len(begins) and (begins - begins[0]).abs().max() < 0.05:
            self.evidence["start"] = (
                f"positions count from {begins[0]:.3g}: scores do not see it, if all queries and keys do"
            )
            return
        self.mistakes["turned_start"] = (
            f"at position 0 pairs are turned already, by up to {phase.abs().max():.2g} radians"
        )

    def _length(self, turn: Turn) -> None:
        factor = turn.factor
        if abs(factor - 1) < turn.tolerance:
            self.evidence["lengths"] = (
                f"kept, up to {max(abs(factor - 1), 1e-16):.0g}"
            )
            return
        said = f"q and k come back {factor:.4f} times as long, scores {factor**2:.4f} times as large"
        s = math.exp((factor - 1) / 0.1)
        if (
            factor > 1
            and self.frequencies is not None
            and self.frequencies.kind == "by parts"
        ):
            close = abs(s / self.frequencies.factor - 1) < 1e-2
            said += f": YaRN's factor for s = {s:.3g}" if close else ""
            self.evidence["lengths"] = said
        else:
            self.mistakes["longer"] = said

    # --- Where it is turned ---

    def _positions(self, turn: Turn) -> None:
        call = self.call
        if call.places:
            steps = 3 * torch.arange(NEAR // 3)
            gaps = self._at(steps)
            moved = self._at(torch.arange(SHIFT) + SHIFT)
            wanted = self._agree(gaps, steps)
            ahead = self._agree(moved, torch.arange(SHIFT) + SHIFT)
            if wanted and ahead:
                self.evidence["positions"] = (
                    "honoured, with gaps between them and from a later start"
                )
                self._far(turn)
            elif (
                not wanted
                and self._agree(gaps, torch.arange(len(steps)))
                and not ahead
            ):
                self.mistakes["ignored_positions"] = (
                    "positions 0, 3, 6, … and 16, 17, 18, … are turned like 0, 1, 2, …: the argument is not read"
                )
            elif ahead:
                self.mistakes["ignored_gaps"] = (
                    "of the positions only the first is read: 0, 3, 6, … are turned like 0, 1, 2, …"
                )
            else:
                self.evidence["positions"] = (
                    "counted from the first one that it is given: with a cache each new token is at 0"
                    if wanted
                    else "not those that it is given"
                )
                self.mistakes["ignored_start"] = (
                    "positions 16, 17, 18, … are turned like 0, 1, 2, …"
                )
        elif "offset" in call.given:
            ahead = self._agree(
                self._at(torch.arange(SHIFT) + SHIFT),
                torch.arange(SHIFT) + SHIFT,
            )
            if ahead:
                self.evidence["positions"] = (
                    "counted from the offset that it is given; gaps cannot be asked for"
                )
            else:
                self.mistakes["ignored_positions"] = (
                    "the offset is not read: every text starts at 0"
                )
        else:
            self.evidence["positions"] = (
                "none are asked for: every text starts at 0, so with a cache each new token would be at 0"
            )

    def _agree(self, found: dict[str, Tensor], places: Tensor) -> bool:
        """Whether matrices are those that were seen at ``places`` before."""
        return all(
            (matrix - self.near[role][places]).abs().max() < 1e-3
            for role, matrix in found.items()
        )

    def _far(self, turn: Turn) -> None:
        """Positions that a half type cannot tell from their neighbours."""
        for place in FAR:
            try:
                found = self._at(torch.arange(place - 1, place + 1))
            except NotFinite:
                raise
            except ValueError as error:
                self.evidence["far"] = str(error)
                return
            role = next(role for role in self.turns if self.turns[role] is turn)
            matrix = found[role]
            angles = torch.atan2(
                matrix[:, turn.second, turn.first],
                matrix[:, turn.first, turn.first],
            )
            step, wanted = _within_half((angles[1] - angles[0], turn.theta))
            off = (step - wanted).abs().max().item()
            if off > 0.05:
                self.mistakes["half_positions"] = (
                    f"from position {place - 1} to {place} pair 0 turns by {step[0]:.2f} radians, and near 0 by "
                    f"{wanted[0]:.2f}: positions or angles are rounded to a half type"
                )
                return

    # --- All in all ---

    def _linear(self) -> None:
        """A rotation is linear: what it does to unit vectors it does to all."""
        generator = torch.Generator().manual_seed(1)
        x = torch.randn(
            3, 4, self.call.dim, dtype=torch.float64, generator=generator
        )
        turned = self.call(*(x[i : i + 1] for i in range(3)), torch.arange(4))
        for row, role in enumerate(self.near):
            wanted = torch.einsum("tij,tj->ti", self.near[role][:4], x[row])
            off = (turned[row][0] - wanted).abs().max().item()
            if off > 0.05:
                self.mistakes["not_linear"] = (
                    f"of the sum of two vectors it does not make the sum of what it makes of each: off by {off:.2g}"
                )

    def _properties(self, turn: Turn) -> None:
        """The measurements of the gallery, where positions can be asked for."""
        if not self.call.places or turn.dim % 2:
            return

        def rotation(q, k, v, positions, *, base, layout):
            found = self.call(q[None], k[None], v[None], positions)
            return tuple(x[0] for x in found)

        found = mistakes.diagnose(
            rotation,
            dim=turn.dim,
            shift=SHIFT,
            generator=torch.Generator().manual_seed(0),
        )
        same = "stay" if found.shift < 1e-4 else "change"
        self.evidence["scores"] = (
            f"{same} when all positions move on by {SHIFT}: by {found.shift:.1g} at most; "
            f"lengths change by {found.lengths:.1g} at most"
        )


def _within_half(angles: tuple[Tensor, Tensor]) -> list[Tensor]:
    """Sizes of angles, less whole turns: 0 to π."""
    turn = 2 * math.pi
    return [(one - turn * (one / turn).round()).abs() for one in angles]


# Kinds of maps that are a mistake by themselves.
_KINDS = {
    "missing_sin": "the sine is missing: {names} · cos + rotate_half({names}), whatever the position",
    "missing_minus": "a minus is missing in the quarter turn of {names}: (a, b) goes to (b, a) and not to (−b, a), "
    "and lengths change",
    "swapped_layout": "cosines spread for one layout, the quarter turn of the other: the two rows of a pair of {names} have "
    "different angles",
    "lengths": "lengths of {names} change with the position, by up to {off:.2g}, as xPos has them on purpose",
    "no_pairs": "an entry of {names} mixes with {off:.0f} others: no pairs",
    "unknown": "pairs of {names} are not turned: their matrices are off a rotation by {off:.2g}",
}


def _pairs_said(turn: Turn) -> str:
    if len(turn.first) == 1:
        return "one pair alone: both layouts are the same"
    a, b = turn.first[0], turn.second[0]
    if turn.layout == "interleaved":
        return f"interleaved: entry {a} turns with entry {b}, {turn.first[1]} with {turn.second[1]}"
    if turn.layout == "half":
        return f"half: entry {a} turns with entry {b}, {turn.first[1]} with {turn.second[1]}"
    some = list(zip(turn.first, turn.second, strict=True))[:4]
    return ", ".join(f"{a} with {b}" for a, b in some) + ", …"
