"""Functions that raise an error, return NaN, infinity or random results, or overwrite their inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ropebook.diagnose.calling import Call, Returned
from ropebook.diagnose.differences import numbered, several
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.measures import matrices

# Numbers count as equal if they differ by less than this.
SAME = 1e-6


def last_good(good: Callable[[int], bool], low: int, high: int) -> int:
    """Find the last good number by bisection, given that ``low`` is good and ``high`` is not.

    Every number after the last good one must be bad.

    >>> last_good(lambda n: n < 64, 0, 1000)
    63
    """
    while high - low > 1:
        middle = (low + high) // 2
        if good(middle):
            low = middle
        else:
            high = middle
    return low


def error_of(error: Exception) -> str:
    """Format an error as one line: its type and the first line of its message."""
    said = str(error).partition("\n")[0]
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def raised(findings: Findings, error: Exception, what: str) -> None:
    """Record that the function raises an error, or returns no vectors, in a call that every rotation must support."""
    cause = error.__cause__ if isinstance(error.__cause__, Returned) else error
    if isinstance(cause, Returned):
        findings.mistakes.setdefault(cause.named, f"{what}: {cause}")
    else:
        findings.mistakes.setdefault("raises", f"{what}: raises {error_of(error)}")


def answered(findings: Findings, near: int) -> int:
    """Count how many tokens, starting at position 0, the function accepts in one call. At most ``near`` are tried.

    Returns 0 if it accepts none. If it accepts fewer than ``near``, the findings record that.
    """
    call = findings.call
    rows, heads = call.rows_and_heads

    def error(tokens: int) -> Exception | None:
        generator = torch.Generator().manual_seed(8)
        x = torch.randn(
            rows, heads, tokens, call.dim, dtype=torch.float64, generator=generator
        )
        try:
            call.apart(dict.fromkeys("qkv", x), torch.arange(tokens))
        except Exception as one:
            return one
        return None

    found = error(near)
    if found is None:
        return near
    if error(1) is not None:
        first = next(
            (n for n in (5, 8, 16, 32) if n < near and error(n) is None), 0
        )
        raised(findings, found, f"{near} tokens at positions 0 to {near - 1}")
        return first
    last = last_good(lambda tokens: error(tokens) is None, 1, near)
    said = (
        f"{last + 1} tokens, at positions 0 to {last}, raise {error_of(error(last + 1))}; up to position {last - 1} it "
        "answers, as with a table that ends there"
    )
    length = findings.declared.length
    if length is not None:
        findings.mistakes["too_short"] = (
            f"{said}, and texts have {length:,} positions"
        )
    elif last < 16:
        findings.mistakes["raises"] = said
    else:
        findings.evidence["far"] = said
    return last


def not_finite(findings: Findings, positions: Tensor) -> str | None:
    """Describe at which positions and in which entries q or k is NaN or infinite. Returns None if both are finite."""
    said = []
    for role, matrix in matrices(findings.call, positions, finite=False).items():
        bad = ~matrix.isfinite()
        if not bad.any():
            continue
        at, entries = bad.any(-1).any(-1), bad.any(-1).any(0)
        infinite = bool(matrix.isinf().any())
        which = (
            "infinity"
            if infinite and not matrix.isnan().any()
            else "NaN or infinity"
        )
        some = positions[at]
        first = f"at position {some[0]}"
        if at.all() and len(some) > 1:
            where = f"at position {some[0]}, and at every other"
        elif at[int(at.nonzero()[0]) :].all() and len(some) > 1:
            where = f"at position {some[0]}, and from there on"
        else:
            where = first if len(some) == 1 else f"{first}, and at some others"
        part = "" if entries.all() else f", in {numbered('entries', entries)}"
        said.append(
            f"the rotation of {role if findings.both else 'x'} is not finite: {which} (not a number) {where}, for finite "
            f"vectors{part}{_why(findings, at, entries)}"
        )
        if not findings.both:
            break
    return "; ".join(said) or None


def _why(findings: Findings, at: Tensor, entries: Tensor) -> str:
    """Explain why these entries are not finite. Returns "" if no known cause fits."""
    width = findings.declared.rotary_dim or len(entries)
    turning = entries[:width]
    layouts = (
        (findings.declared.layout,)
        if findings.declared.layout
        else ("half", "interleaved")
    )
    for layout in layouts:
        first = (0, width // 2) if layout == "half" else (0, 1)
        rest = torch.ones(width, dtype=torch.bool)
        rest[list(first)] = False
        if at.all() and width > 2 and torch.equal(turning, rest):
            return (
                ": every pair but the first, at all positions, so their frequencies are no numbers, as the fractional powers "
                "of a negative base (or of one that is NaN) are: only the power 0 is 1"
            )
    if at.all():
        return ": at all positions, so frequencies or tables are no numbers"
    if at[0] and not at[1:].any():
        return ": only where the angle is 0, as a division by the position or the angle gives"
    return ""


def by_chance(
    findings: Findings, again: Callable[[], dict[str, Tensor]]
) -> str | None:
    """Check whether a call returns different results because it draws random numbers.

    ``again()`` must repeat the call. Returns a sentence, or None if the call draws no random numbers.
    """
    with torch.random.fork_rng(devices=[]):
        seen = []
        for seed in (0, 0, 1):
            torch.manual_seed(seed)
            seen.append(again())
    role = "q"
    first, same, other = (one[role].nan_to_num() for one in seen)
    if not torch.equal(first, same) or torch.equal(first, other):
        return None
    zeros = (first == 0).double().mean().item()
    drop = (
        f": {zeros:.0%} of entries come back as zeros, as dropout makes them"
        if zeros > 0.02
        else ": noise is added, or random numbers are drawn in each call"
    )
    return (
        f"the same call gives another result each time, by chance (randomly){drop}"
    )


def untouched(findings: Findings) -> None:
    """Check that the function leaves its input vectors and positions unchanged, in calls of several sizes and types."""
    call = findings.call
    five, one = torch.arange(5) + 1, torch.arange(1) + 3
    calls = [(call, five, ""), (call, one, "if a token comes alone, ")]
    for kind in (torch.float32, torch.bfloat16):
        name = str(kind).removeprefix("torch.")
        calls.append((replace(call, dtype=kind), five, f"with vectors of {name}, "))
    for one, positions, when in calls:
        if _written(findings, one, positions, when):
            return


def _written(findings: Findings, call: Call, positions: Tensor, when: str) -> bool:
    """Record a mistake if a call writes into its vectors or positions. Returns whether it does."""
    rows, heads = call.rows_and_heads
    generator = torch.Generator().manual_seed(9)
    names = call.order.split()
    sizes = {"batch": rows, "heads": heads, "seq": len(positions), "dim": call.dim}
    sent = {
        role: torch.randn([sizes[name] for name in names], generator=generator).to(
            call.dtype
        )
        for role in call.vectors
    }
    kept = {role: x.clone() for role, x in sent.items()}
    written = []

    class Watched(type(call)):
        """The same kind of call, but every tensor of positions that is passed is recorded."""

        def beside(self, role: str, positions: Tensor, batch: int) -> Tensor | int:
            found = super().beside(role, positions, batch)
            if role == "positions":
                written.append((found, found.clone()))
            return found

    watched = Watched(**vars(call))
    try:
        found = watched.raw(sent, positions, rows)
    except Exception:
        # errors are reported by other trials
        return False
    for at, before in written:
        if at.shape != before.shape or not torch.equal(at, before):
            findings.mistakes["changed_inputs"] = (
                f"{when}the positions that it is given are written over (changed in place), so that the next layer is given "
                f"others: {several(before)} have become {several(at)}"
            )
            return True
    in_place = []
    for (role, x), came in zip(sent.items(), found, strict=False):
        off = (x - kept[role]).abs().nan_to_num(nan=1e9).max().item()
        if off < SAME:
            continue
        if (came - x).abs().nan_to_num(nan=1e9).max().item() < SAME:
            in_place.append(role)
            continue
        who = role if findings.both else "x"
        findings.mistakes["changed_inputs"] = (
            f"{when}{who} that it is given is written over (changed in place, by up to {off:.2g}), and what comes back is "
            "another"
        )
        return True
    if not in_place:
        return False
    who = findings.names(in_place)
    said = f"{when}{who} {'are' if len(in_place) > 1 else 'is'} rotated in place: what is given is written over with what comes back"
    if findings.declared.in_place:
        findings.evidence["in place"] = said
    elif when:
        findings.mistakes["changed_inputs"] = (
            f"{said}, so only some calls change the inputs"
        )
    else:
        findings.undetermined["in_place"] = (
            f"{said}, so the inputs are changed. Whatever else reads them afterwards (a backward pass, a layer that is computed "
            "again) gets rotated vectors. Declare in_place=True if it is meant to do so"
        )
    return True
