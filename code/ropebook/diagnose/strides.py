"""Tables of angles that are read with a wrong stride, or in the wrong order of rows and columns."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import Turn, within_half
from ropebook.diagnose.turning import numbers_of

# Mistakes that are suggested when a token uses the angles of another token or pair.
_APPARENT = (
    "uneven_angles",
    "uneven_frequencies",
    "other_scaling",
    "other_base",
    "other_positions",
    "still_pairs",
    "turned_start",
    "turned_twice",
    "wrapped",
    "clamped",
    "faster",
    "clockwise",
)


def strides(findings: Findings) -> None:
    """Check whether each token uses angles from elsewhere in the table, as with a wrong stride."""
    declared = findings.declared
    for role, turn in findings.rotating.items():
        expected = declared.frequencies(declared.rotary_dim or turn.rotary_dim)
        regular = not turn.places and turn.uneven <= max(10 * turn.tolerance, 1e-2)
        if expected is None or turn.flaws or turn.order or regular:
            continue
        numbers = numbers_of(turn, 2 * len(expected))
        if numbers is None or int(numbers.max()) >= len(expected):
            continue
        matrix = findings.near[role]
        first, second = list(turn.first), list(turn.second)
        angles = torch.atan2(matrix[:, second, first], matrix[:, first, first])
        said = _read(angles, numbers, expected, turn)
        if said is None:
            continue
        findings.withdraw(*_APPARENT)
        findings.mistakes["uneven_angles"] = said
        return


def _read(angles: Tensor, numbers: Tensor, theta: Tensor, turn: Turn) -> str | None:
    """Find where in the table the angles (tokens, pairs) come from.

    Returns None if that is the right place, or unknown.
    """
    seq, close = len(angles), max(1e-3, 2 * turn.tolerance)
    token = torch.arange(seq)[:, None]
    for said, row, column in _places(token, numbers, seq, len(theta), turn.dim):
        padded = torch.cat((theta, torch.zeros(1, dtype=torch.float64)))
        right = row * padded[column.clamp(max=len(theta))]
        if (within_half(angles - right).abs() < close).all():
            return said
    return None


def _places(
    token: Tensor, pair: Tensor, seq: int, pairs: int, dim: int
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """Yield wrong ways of reading a table: a sentence, and the row and column that each token and pair reads."""
    widths = sorted({pairs, 2 * pairs, dim // 2, dim})
    for stride in widths:
        for wide in widths:
            if stride == wide:
                continue
            at = token * stride + pair
            said = (
                f"rows of the table of angles (cosines and sines) are read with the wrong stride: a row has {wide} entries, and "
                f"the next one is looked for {stride} entries further. Only the first token gets its own angles, and those of "
                "each later token are from another place in the table, of another row (position) or pair"
            )
            # reading past the end of the table continues at its start
            yield said, at // wide % seq, at % wide
    at = token * pairs + pair
    said = (
        "rows and columns of the table of angles are exchanged (transposed, or reshaped in the wrong order): a token gets the "
        "angles of other positions and of other pairs"
    )
    yield said, at % seq, at // seq
    yield (
        "the tokens of a call and the pairs of a head are exchanged: angles run along the wrong axis",
        pair.expand(seq, -1),
        token.expand(-1, len(pair)) % pairs,
    )
