"""Read a rotation off its matrices: the entries it pairs, the angles of rotation, and the angle at which it starts."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from ropebook.diagnose.calling import Call
from ropebook.shapes import Float, Int

# Matrix entries below this count as zero. The threshold is far below rounding errors, because with a large base the
# slowest pair hardly moves.
NOTHING = 1e-14
# The error allowed in float32, and the larger one allowed in a half-precision type.
SINGLE = 1e-4
HALF = 2.0**-7
HALVES = (torch.bfloat16, torch.float16)


class NotFinite(ValueError):
    """Raised if a rotation of finite vectors returns NaN or infinity."""


def within_half(angles: Tensor) -> Tensor:
    """Reduce angles by whole turns to the range −π to π.

    >>> within_half(torch.tensor([3.5])).item() < 0
    True
    """
    turn = 2 * torch.pi
    return angles - turn * (angles / turn).round()


Matrices = Float[Tensor, "seq dim dim"]
Angles = Float[Tensor, "seq pairs"]


@dataclass(frozen=True)
class Turn:
    """The map of one tensor: its kind, its pairs, and the frequency and phase of each pair."""

    # identity, rotation, missing_sin, missing_minus, mixed_tables, lengths, no_pairs or unknown
    kind: str
    dim: int
    first: tuple[int, ...] = ()
    second: tuple[int, ...] = ()
    theta: Float[Tensor, " pairs"] | None = None  # radians per position
    phase: Float[Tensor, " pairs"] | None = None  # radians, at position 0
    uneven: float = 0.0  # the largest deviation of an angle from phase + mθ
    factor: float = 1.0  # the factor by which lengths change
    table: torch.dtype | None = None  # half-precision type of its tables
    off: float = 0.0  # the largest deviation of its matrices from rotation matrices
    order: tuple[int, ...] = ()  # rows that undo a permutation of entries
    flaws: tuple[str, ...] = ()  # flaws undone before reading it
    trembles: bool = False  # whether lengths vary slightly
    note: str = ""  # a remark on its flaws
    # the positions by which tokens at 0, 1, 2, … are really rotated, relative to the first one; empty if positions
    # are right
    places: tuple[int, ...] = ()
    # computes cosines and sines from the matrices of a map that has flaws
    reader: Callable[[Matrices], tuple[Angles, Angles]] | None = None

    @property
    def layout(self) -> str | None:
        """The layout: "interleaved" or "half". None if the pairs fit neither, or if a single pair fits both."""
        apart = {b - a for a, b in zip(self.first, self.second, strict=True)}
        if len(self.first) < 2 or len(apart) != 1:
            return None
        (apart,) = apart
        if apart == 1:
            return "interleaved"
        return "half" if max(self.first) - min(self.first) < apart else None

    @property
    def rotary_dim(self) -> int:
        """The width of the rotated part, including pairs within it that don't rotate."""
        if self.layout == "half":
            return 2 * (self.second[0] - self.first[0])
        return 2 * len(self.first)

    def begins(self, width: int | None) -> int:
        """Return the index of the first entry of the rotated part.

        ``width`` is the width of that part, if known. Without it, pairs at the edge that don't rotate can be missed.
        """
        if width and max(self.second) < width:
            return 0
        start = min(self.first)
        if self.layout == "half":
            return max(min(start, self.dim - self.rotary_dim), 0)
        return start

    @property
    def tolerance(self) -> float:
        """The error to expect in the angles, in radians."""
        return SINGLE if self.table is None else HALF


def matrices(
    call: Call, positions: Int[Tensor, " seq"], finite: bool = True
) -> dict[str, Matrices]:
    """Measure the matrices of q, k and v at each position, by passing the unit vectors through the function.

    Raises `NotFinite` if an entry is NaN or infinite, unless ``finite`` is false.
    """
    dim = call.dim
    unit = torch.eye(dim, dtype=torch.float64)[:, None].expand(
        dim, len(positions), dim
    )
    turned = call(unit, unit, unit, positions)
    found = {
        role: x.permute(1, 2, 0) for role, x in zip("qkv", turned, strict=True)
    }
    for role, matrix in found.items():
        if finite and not matrix.isfinite().all():
            at = positions[~matrix.isfinite().all(-1).all(-1)][0].item()
            raise NotFinite(
                f"the rotation of {role} is not finite: NaN or infinity at position {at}, for finite vectors"
            )
    return found


def measured(matrix: Matrices) -> Turn:
    """Describe one tensor's map, given the map's matrices at positions 0, 1, 2, …. The map may permute the entries."""
    turn = _in_place(matrix)
    if turn.kind not in ("no_pairs", "unknown"):
        return turn
    permuted = _permuted(matrix)
    if permuted is not None:
        return permuted
    unit = torch.eye(turn.dim, dtype=torch.float64)
    changed = ((matrix - unit).abs().amax(0) > NOTHING).any(-1).nonzero().flatten()
    start, stop = changed[0].item(), changed[-1].item() + 1
    # the second row of a pair that doesn't rotate may look unchanged, so make the number of rows even
    stop += (stop - start) % 2
    order = torch.arange(start, stop)
    if stop <= turn.dim:
        halves = order.unflatten(0, (2, -1)).T.flatten()
        neighbours = order.unflatten(0, (-1, 2)).T.flatten()
        for rows in (halves, neighbours):
            whole = torch.cat(
                (torch.arange(start), rows, torch.arange(stop, turn.dim))
            )
            other = _in_place(matrix[:, whole])
            if other.kind == "rotation":
                return replace(other, order=tuple(whole.tolist()))
    return turn


def _permuted(matrix: Matrices) -> Turn | None:
    """Describe a rotation with permuted entries. Returns None if the matrix at position 0 is not a permutation."""
    start = matrix[0]
    places = start.abs().argmax(0)
    size = start.abs().amax(0)
    if len(places.unique()) < len(places) or (size - size[0]).abs().max() > SINGLE:
        return None
    straight = start[places]
    unit = size[0] * torch.eye(len(places), dtype=torch.float64)
    if (straight - unit).abs().max() > SINGLE or not size[0]:
        return None
    if torch.equal(places, torch.arange(len(places))):
        return None
    turn = _in_place(matrix[:, places])
    if turn.kind != "rotation":
        return None
    return replace(turn, order=tuple(places.tolist()))


def turned(
    dim: int,
    first: tuple[int, ...],
    second: tuple[int, ...],
    cos: Angles,
    sin: Angles,
) -> Turn | None:
    """Build the rotation that uses these cosines and sines. Returns None if they don't form a rotation."""
    matrix = torch.eye(dim, dtype=torch.float64).repeat(len(cos), 1, 1)
    first, second = list(first), list(second)
    matrix[:, first, first] = matrix[:, second, second] = cos
    matrix[:, second, first], matrix[:, first, second] = sin, -sin
    turn = _of_pairs(matrix, first, second)
    return turn if turn.kind == "rotation" and not turn.flaws else None


def _in_place(matrix: Matrices) -> Turn:
    """Describe the map, given that every entry is returned in its own place."""
    dim = matrix.shape[-1]
    largest = matrix.abs().amax(0)
    coupled = (largest > NOTHING) & ~torch.eye(dim, dtype=torch.bool)
    coupled = coupled | coupled.T
    partners = coupled.sum(-1)
    if not coupled.any():
        diagonal = matrix.diagonal(dim1=-2, dim2=-1)
        factor = diagonal[0, 0].item()
        if (diagonal - factor).abs().max() < SINGLE:
            return Turn("identity", dim, factor=factor)
        if (diagonal - diagonal[:1]).abs().max() < SINGLE:
            # some entries are scaled, but nothing depends on the position
            return Turn("identity", dim, factor=factor)
        return Turn("missing_sin", dim, off=_off(diagonal - 1))
    if partners.max() > 1:
        return Turn("no_pairs", dim, off=float(partners.max()))
    first = [j for j in range(dim) if partners[j] and coupled[j].int().argmax() > j]
    second = [int(coupled[j].int().argmax()) for j in first]
    return _of_pairs(matrix, first, second)


def _of_pairs(matrix: Matrices, first: list[int], second: list[int]) -> Turn:
    """Describe the map by the block (a b; c e) of each pair."""
    dim = matrix.shape[-1]
    a, b = matrix[:, first, first], matrix[:, first, second]
    c, e = matrix[:, second, first], matrix[:, second, second]
    table = _table(matrix)
    if table is None and not (a[0] - a[0, 0]).any() and a[0, 0]:
        # cosines are 1 at position 0, so any other number there is a factor applied after the tables are used
        table = _table(torch.stack((a, c)) / a[0, 0], 1e-7)
    at = {
        "dim": dim,
        "first": tuple(first),
        "second": tuple(second),
        "table": table,
    }
    close = SINGLE if table is None else HALF
    off = max(_off(a - e), _off(b + c))
    still = max(_off(b - b[0]), _off(c - c[0]))
    if (
        still < SINGLE
        and _off(a - e) < close
        and _off(torch.hypot(a, c) - torch.hypot(a, c)[0]) > SINGLE
        and min(b.abs().min(), c.abs().min()) > 0.5
    ):
        return Turn("missing_sin", **at, off=still)
    if off < close:
        lengths = torch.hypot(a, c)
        theta, phase, uneven = _rates(torch.atan2(c, a))
        factor = lengths.mean().item()
        spread = _off(lengths - factor)
        if spread > close and _off(lengths - lengths[:1]) < SINGLE:
            # each pair is scaled by its own factor, which is the same at all positions
            at["flaws"] = ("uneven_lengths",)
            a, c = a / lengths[:1] * factor, c / lengths[:1] * factor
            lengths, spread = torch.hypot(a, c), 0.0
        if spread > max(close, 1e-3):
            logs = lengths.log()
            rates, _, bent = _rates(logs)
            trend = _off(rates) * len(logs)
            straight = spread > 0.05 and uneven < max(10 * close, 1e-2)
            if straight or (trend > 1e-3 and bent < 0.3 * trend):
                factor, off = lengths[0].mean().item(), spread
                at |= {
                    "flaws": ("lengths",),
                    "reader": _of_length(factor, first, second),
                }
            elif spread > 0.05:
                return Turn("mixed_tables", **at, off=spread)
            else:
                # lengths vary slightly: half-precision tables followed by a factor or a second rotation
                at |= {"table": torch.bfloat16, "trembles": True}
        if uneven > max(10 * close, 1e-2):
            angles = torch.atan2(c, a)
            places = _places(angles, close)
            if places is not None:
                theta, uneven = _by_places(angles, places)
                if not torch.equal(places, torch.arange(len(places)).double()):
                    at["places"] = tuple(places.int().tolist())
        return Turn(
            "rotation",
            theta=theta,
            phase=phase,
            uneven=uneven,
            factor=factor,
            off=off,
            **at,
        )
    if _off(a - e) < close and _off(b - c) < close:
        return Turn("missing_minus", **at, off=off)
    return Turn("unknown", **at, off=off)


def _table(numbers: Tensor, close: float = 0.0) -> torch.dtype | None:
    """Return the half-precision type that can represent all of these numbers, or None."""
    for half in HALVES:
        if ((numbers.to(half).double() - numbers).abs() <= close).all():
            return half
    return None


def _of_length(
    factor: float, first: list[int], second: list[int]
) -> Callable[[Matrices], tuple[Angles, Angles]]:
    """Return a function that reads off cosines and sines when lengths change with the position."""

    def read(matrix: Matrices) -> tuple[Angles, Angles]:
        cos, sin = matrix[:, first, first], matrix[:, second, first]
        lengths = torch.hypot(cos, sin).clamp(min=1e-300) / factor
        return cos / lengths, sin / lengths

    return read


def _rates(angles: Angles) -> tuple[Tensor, Tensor, float]:
    """Fit lines to angles at positions 0, 1, 2, …. The angles are known only up to whole turns.

    Returns the slopes of the lines, the angles at position 0, and the largest deviation from a line.
    """
    steps = angles.diff(dim=0)
    # reduce to at most half a turn; remainder(steps + π, 2π) − π would lose digits of slow pairs
    steps = steps - 2 * math.pi * (steps / (2 * math.pi)).round()
    wound = torch.cat((angles[:1], angles[:1] + steps.cumsum(0)))
    m = torch.arange(len(angles), dtype=torch.float64)
    centred = m - m.mean()
    slope = (centred[:, None] * wound).sum(0) / centred.square().sum()
    # if the first angle is 0, fit a line through the origin, so that slow pairs keep all their digits
    through = (m[:, None] * wound).sum(0) / m.square().sum()
    slope = torch.where(angles[0] == 0, through, slope)
    return slope, angles[0], _off(wound - angles[0] - m[:, None] * slope)


def _places(angles: Angles, close: float) -> Tensor | None:
    """Find the integer positions by which tokens at 0, 1, 2, … are really rotated, relative to the first one.

    Returns None if no integers explain the angles of the slow pairs.
    """
    apart = within_half(angles - angles[:1])
    span = apart.amax(0) - apart.amin(0)
    # pairs that don't complete a turn here, but move enough to be measured
    slow = (apart.abs().amax(0) < 2.5) & (span > 0.02) & (span > 20 * close)
    if not slow.any():
        return None
    found = None
    for pair in slow.nonzero().flatten()[-3:]:
        one = apart[:, pair]
        steps = one.diff()
        moved = steps[steps.abs() > 0.02 * steps.abs().max()]
        unit = moved[moved.abs().argmin()].abs()
        unit = unit if (moved > 0).sum() * 2 >= len(moved) else -unit
        places = (one / unit).round()
        if (one / unit - places).abs().max() > 0.1:
            return None
        if found is not None and not torch.equal(found, places):
            return None
        found = places
    return found


def _by_places(angles: Angles, places: Tensor) -> tuple[Tensor, float]:
    """Fit lines to angles at these positions. Returns the slopes and the largest deviation."""
    steps, far = within_half(angles.diff(dim=0)), places.diff()
    theta = steps[far.abs() == 1] * far[far.abs() == 1][:, None]
    theta = torch.atan2(theta.sin().mean(0), theta.cos().mean(0))
    rest = within_half(angles - angles[:1] - places[:, None] * theta)
    centred = places - places.mean()
    theta = theta + (centred[:, None] * rest).sum(0) / centred.square().sum()
    return theta, _off(within_half(angles - angles[:1] - places[:, None] * theta))


def _off(tensor: Tensor) -> float:
    return tensor.abs().max().item()
