"""Calls beyond the declared length, made last: do they change how positions within that length are rotated?"""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose.alone import changed
from ropebook.diagnose.differences import different
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.repeated import asked, near_enough, vectors

# The far position to try, as a multiple of the declared length.
FAR = 3
TOKENS = 6


def beyond(findings: Findings) -> None:
    """Check whether a position beyond the length changes how other positions are rotated, in the same call or later.

    The rotation at the far position itself is not judged, because no weights were trained for it.
    """
    call, length = findings.call, findings.declared.length
    if length is None or not call.places or call.tables or not findings.honoured:
        return
    if {"stale", "depends_on_text", "not_linear"} & set(findings.mistakes):
        return
    text = torch.arange(TOKENS) + 3
    given = vectors(findings, TOKENS)
    before = asked(findings, "a call again", given, text)
    if before is None:
        return
    mixed = torch.cat((text[:-1], torch.tensor([FAR * length])))
    for said, places in (
        ("in a call", mixed),
        ("after a call", text),
    ):
        try:
            found = call.apart(given, places)
        except Exception:
            # a table that ends at the length is right to refuse a position beyond it
            return
        if _said(findings, said, before, found, given):
            return


def _said(
    findings: Findings,
    when: str,
    before: dict[str, Tensor],
    found: dict[str, Tensor],
    given: dict[str, Tensor],
) -> bool:
    """Record a mistake if tokens within the length are rotated differently than before.

    Returns whether one was recorded.
    """
    seen = slice(0, TOKENS - 1)
    length = findings.declared.length
    for role, turned in found.items():
        right = before[role][:, :, seen]
        off = different(
            turned[:, :, seen],
            right,
            given[role][:, :, seen],
            near_enough(findings, role),
        )
        if off is None:
            continue
        who = f"{role}, " if findings.both else ""
        where = f"that goes beyond the declared length of {length:,}"
        if when == "in a call":
            findings.mistakes["depends_on_text"] = (
                f"{when} {where}, tokens within it are rotated otherwise too: frequencies (or the base, as dynamic NTK "
                f"scaling has it) depend on the largest position of a call, so cached keys don't fit: {who}{off}"
            )
            return _remembered(findings, before, given) or True
        findings.mistakes["stale"] = (
            f"{when} {where}, earlier positions are rotated otherwise than before: a long call is remembered (its table "
            f"or base is kept for shorter calls): {who}{off}{changed(findings)}"
        )
        return True
    return False


def _remembered(
    findings: Findings, before: dict[str, Tensor], given: dict[str, Tensor]
) -> bool:
    """Check whether a long call that changed the frequencies also affects shorter calls made after it."""
    found = findings.call.apart(given, torch.arange(TOKENS) + 3)
    return _said(findings, "after a call", before, found, given)
