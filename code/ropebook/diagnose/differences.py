"""Where two results differ (in which rows, heads, tokens and entries), and how they differ."""

from __future__ import annotations

from torch import Tensor

# Numbers count as equal if they differ by less than this.
SAME = 1e-3


def several(values: Tensor) -> str:
    """List the first few of these numbers.

    >>> import torch
    >>> several(torch.tensor([[3, 4], [5, 6]])), several(torch.arange(9.0))
    ('3, 4, 5, 6', '0, 1, 2, 3, 4, …')
    """
    numbers = values.flatten().tolist()
    return ", ".join(f"{one:g}" for one in numbers[:5]) + (
        ", …" if len(numbers) > 5 else ""
    )


def different(
    found: Tensor, right: Tensor, sent: Tensor, close: float
) -> str | None:
    """Describe where and how ``found`` differs from ``right`` by more than ``close``. Returns None if they agree.

    ``sent`` is the function's input. All three have shape (rows, heads, tokens, entries).

    >>> import torch
    >>> x = torch.ones(2, 3, 1, 4)
    >>> turned = -x
    >>> turned[:, 1:] = x[:, 1:]
    >>> different(turned, -x, x, 1e-3)
    'in heads 1 and 2, it comes back as it went in (unchanged, not rotated)'
    """
    off = (found - right).abs().nan_to_num(nan=1e9)
    wrong = off > close
    if not wrong.any():
        return None
    where = []
    for axis, name in enumerate(("rows", "heads", "tokens")):
        there = wrong.movedim(axis, 0).flatten(1).any(1)
        if not there.all():
            where.append(numbered(name, there))
    place = wrong.any(-1)
    came, went = found[place], sent[place]
    ratio = _factor(came, right[place])
    if not came.isfinite().all():
        how = "it comes back as NaN or infinity (not a number)"
    elif (came - went).abs().max() < SAME:
        how = "it comes back as it went in (unchanged, not rotated)"
    elif came.abs().max() < SAME:
        how = "it comes back as zeros"
    elif ratio is not None:
        how = f"it comes back {ratio:.4g} times as long"
    else:
        how = f"it is off by up to {off.max():.2g}"
        entries = wrong.flatten(0, 2).any(0)
        if 2 * int(entries.sum()) <= len(entries):
            how += f" in {numbered('entries', entries)}"
    return f"in {', '.join(where)}, {how}" if where else how


def further(said: str | None) -> str:
    """Format a remark as a sentence to append to another. Returns "" if there is no remark.

    >>> further("pair 0 is right"), further(None)
    ('. Pair 0 is right', '')
    """
    return f". {said[0].upper()}{said[1:]}" if said else ""


def _factor(came: Tensor, right: Tensor) -> float | None:
    """Find the one factor by which all vectors are too long or too short. Returns None if no single factor fits."""
    size = right.square().sum()
    if size < SAME:
        return None
    factor = ((came * right).sum() / size).item()
    off = (came - factor * right).abs().max().item()
    return factor if off < SAME * max(1.0, abs(factor)) else None


def numbered(name: str, where: Tensor) -> str:
    """Name the items that a mask selects: "head 1", "heads 0 and 2", "tokens 3 to 7".

    >>> import torch
    >>> numbered("entries", torch.tensor([False, True, True, True]))
    'entries 1 to 3'
    """
    at = where.nonzero().flatten().tolist()
    if len(at) == 1:
        return f"{'entry' if name == 'entries' else name[:-1]} {at[0]}"
    if len(at) == 2:
        return f"{name} {at[0]} and {at[1]}"
    if at == list(range(at[0], at[-1] + 1)):
        return f"{name} {at[0]} to {at[-1]}"
    return f"{name} {', '.join(map(str, at[:6]))}" + (", …" if len(at) > 6 else "")
