"""Results that change from call to call: by chance, or because the function remembers how often it was called."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.calling import Call

# Numbers count as equal if they differ by less than this.
SAME = 1e-3
# How often a call is repeated before its results are judged.
CALLS = 24
# At most this many of the tokens that change are compared.
TOKENS = 32


def unsteady(
    call: Call, given: dict[str, Tensor], at: Tensor, calls: int = 3
) -> str | None:
    """Describe how the results of a repeated call vary at random. Returns None if they don't."""
    seen = []
    for _ in range(calls):
        try:
            seen.append(call.apart(given, at))
        except Exception:
            # errors are reported by other trials
            return None
    for role, first in seen[0].items():
        off = sum((one[role] - first).abs().nan_to_num() for one in seen[1:])
        changed = (off.amax((0, 1, 3)) > SAME).nonzero().flatten()[:TOKENS]
        if not len(changed):
            continue
        found = [one[role][:, :, changed] for one in seen]
        while len(found) < CALLS:
            found.append(call.apart(given, at)[role][:, :, changed])
        said = irregular(torch.stack(found), given[role][:, :, changed])
        if said is not None:
            who = "" if call.vectors == ("x",) else f"{role}, "
            return (
                f"the same call gives another result each time, by chance (it is not deterministic): {who}{said}, as with "
                "threads that race for the same memory, or with random numbers"
            )
    return None


def irregular(found: Tensor, sent: Tensor) -> str | None:
    """Describe results (calls, rows, heads, tokens, entries) that change by chance from one call to the next.

    ``sent`` contains the vectors that were passed in each call. Returns None if the results change in a regular way:
    if they repeat after some calls, settle, or drift. Functions that count their calls behave in this way.

    >>> sent = torch.ones(1, 1, 1, 2)
    >>> irregular(torch.stack([sent * (-1) ** i for i in range(24)]), sent) is None
    True
    >>> tossed = [1, 1, -1, 1, -1, -1, -1, 1, 1, -1, 1, 1]
    >>> irregular(torch.stack([sent * one for one in tossed]), sent)
    'tokens differ at random: in some calls they come back as they went in (unchanged, not rotated), in others not'
    """
    flat = found.nan_to_num(nan=1e9).flatten(1)
    apart = (flat[:, None] - flat).abs().amax(-1)
    calls = len(found)
    settled = bool((apart[calls // 2 :, calls // 2 :] < SAME).all())
    periodic = any(
        bool((apart.diagonal(step)[1:] < SAME).all())
        for step in range(1, calls // 2 + 1)
    )
    if settled or periodic:
        return None
    # if each call rotates further by a fixed angle, the product of two results depends only on the number of calls
    # between them
    products = (flat @ flat.T) / flat.square().sum(-1).mean()
    lags = [products.diagonal(step) for step in range(calls - 1)]
    if all(bool((lag - lag[0]).abs().max() < 1e-4) for lag in lags):
        return None
    cells = (found - found[:1]).abs().nan_to_num(nan=1e9).amax(-1) > SAME
    partial = [bool(one.any() and not one.all()) for one in cells[1:]]
    drifting = apart.diagonal(2).mean() > 1.25 * apart.diagonal(1).mean()
    if drifting and sum(partial) < 2:
        return None
    unchanged = (found - sent).abs().amax(-1) < SAME
    if unchanged.any() and not unchanged.all():
        how = "in some calls they come back as they went in (unchanged, not rotated), in others not"
    else:
        how = "they come back otherwise in each call, and by no rule"
    return f"tokens differ at random: {how}"
