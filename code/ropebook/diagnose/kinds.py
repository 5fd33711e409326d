"""The kind of map applied to q, k and v: a rotation, no change at all, or something written instead of a rotation."""

from __future__ import annotations

import torch
from torch import Tensor

from ropebook.diagnose import pairing
from ropebook.diagnose.findings import Findings
from ropebook.diagnose.formulas import formula
from ropebook.diagnose.guessing import guessed
from ropebook.diagnose.measures import Turn, within_half
from ropebook.diagnose.rules import known
from ropebook.diagnose.terms import terms
from ropebook.diagnose.turning import whole
from ropebook.diagnose.versus import compared
from ropebook.rope import split_pairs


def kinds(findings: Findings) -> None:
    """Record what is wrong with the maps of q, k and v: a map is not a rotation, or q and k are treated differently."""
    turns, found = findings.turns, findings.mistakes
    of = {role: turn.kind for role, turn in turns.items()}
    flaws = {role: turn.flaws or (turn.kind,) for role, turn in turns.items()}
    q, k, v = (of.get(role, of["q"]) for role in "qkv")
    if not findings.both:
        v = "identity"
        findings.evidence["not seen"] = (
            "whether q and k are turned alike and v is left alone: the function takes one tensor"
        )
    elif "v" not in findings.call.vectors:
        findings.evidence["not seen"] = "values: the function is not given any"
    _turned_or_not(findings, q, k, v)
    for kind, said in _KINDS.items():
        which = [role for role in turns if kind in flaws[role] and role != "v"]
        if which:
            names, off = findings.names(which), turns[which[0]].off
            note = turns[which[0]].note
            if kind in ("unknown", "mixed_tables"):
                note = note or _formula(findings, which[0])
            found[kind] = said.format(names=names, off=off) + (
                f" ({note})" if note else ""
            )
            found[kind] += _not_kept(findings.near[which[0]])
    if findings.both and q == k == "rotation":
        _alike(findings, turns["q"], turns["k"])
    elif findings.both and "identity" not in (q, k):
        one, other = findings.near["q"], findings.near["k"]
        if (one @ one - other).abs().max() < 1e-3:
            found["turned_twice"] = "k is turned twice, q once"
    orders = [role for role, turn in findings.rotating.items() if turn.order]
    if orders:
        order = findings.turns[orders[0]].order
        moved = [j for j, i in enumerate(order) if i != j]
        some = ", ".join(f"{j} comes back as {order[j]}" for j in moved[:4])
        found["other_order"] = (
            f"entries of {findings.names(orders)} come back permuted, in another order than they had, as if read in one "
            f"layout and written in the other: at position 0 already entry {some}"
            + (", …" if len(moved) > 4 else "")
        )


def _not_kept(matrix: Tensor) -> str:
    """If a map changes lengths, return a sentence saying that it is not a rotation. Otherwise return ""."""
    gram = matrix.mT @ matrix
    size = gram.diagonal(dim1=-2, dim2=-1).mean()
    off = (gram - size * torch.eye(gram.shape[-1])).abs().max() / size.clamp(
        min=1e-9
    )
    if off < 1e-2 or not off.isfinite():
        return ""
    return ". This is not a rotation: it does not keep lengths (norms)"


def guess(findings: Findings) -> None:
    """Find a combination of known mistakes that explains pairs mixed in an unknown way."""
    declared, found = findings.declared, findings.mistakes
    later, guesses = {}, []
    for role, turn in findings.turns.items():
        # if no entry is mixed with another, use the pairs of the declared layout
        bare = turn.kind == "missing_sin" and not turn.first
        if role == "v" or not (bare or turn.kind in ("unknown", "mixed_tables")):
            continue
        width = declared.rotary_dim or turn.rotary_dim
        right = declared.frequencies(width)
        if right is None or (bare and declared.layout is None):
            return
        pairs = turn.first, turn.second
        if bare:
            entries = torch.arange(2 * len(right))
            pairs = tuple(
                tuple(one.tolist()) for one in split_pairs(entries, declared.layout)
            )
        tried = known(right, dim=turn.dim, base=declared.base)
        seen = apart(findings.near[role], turn.places)
        found_out = guessed(seen, *pairs, tried)
        if found_out is None:
            said = (
                terms(seen, *pairs, right) if len(right) == len(pairs[0]) else None
            )
            if said is not None:
                findings.withdraw("unknown", "missing_sin", "mixed_tables")
                alike = [
                    one
                    for one in findings.turns
                    if one != "v"
                    and torch.equal(findings.near[one], findings.near[role])
                ]
                found["mixed_tables"] = (
                    f"{findings.names(alike)}: {said}{_not_kept(findings.near[role])}"
                )
            return
        later[role] = found_out.later
        guesses.append(found_out.names)
        for name in found_out.names:
            said = f"pairs of {role} are mixed as {', '.join(found_out.names)} would mix them together"
            found.setdefault(name, said)
    if later:
        for name in ("unknown", "mixed_tables", "missing_sin"):
            if not any(name in names for names in guesses):
                found.pop(name, None)
        if len(set(later.values())) > 1:
            found["shifted_key"] = (
                f"k is turned by positions that are {later['k'] - later['q']:+d} off those of q"
            )


def _formula(findings: Findings, role: str) -> str | None:
    """Find the formula that was written instead of a rotation, assuming the frequencies that the weights need."""
    turn = findings.turns[role]
    width = findings.declared.rotary_dim or turn.rotary_dim
    theta = findings.declared.frequencies(width)
    if theta is None or len(theta) != len(turn.first):
        return None
    seen = apart(findings.near[role], turn.places)
    return formula(seen, turn.first, turn.second, theta)


def _turned_or_not(findings: Findings, q: str, k: str, v: str) -> None:
    found = findings.mistakes
    unit = torch.eye(findings.call.dim, dtype=torch.float64)

    def moved(role: str) -> float:
        return (findings.near[role] - unit).abs().max().item()

    if v != "identity" and q == "identity" and k != "identity":
        found["key_value"] = (
            f"k and v are turned and q is not: |v′ − v| is up to {moved('v'):.2g}, |q′ − q| is 0"
        )
    elif v != "identity":
        found["rotated_values"] = (
            f"v is turned as well: entries change by up to {moved('v'):.2g}"
        )
    if q == k == "identity":
        found["nothing_turns"] = (
            "q and k come back unchanged, as they went in, at every position: they are not rotated at all (the rotation is "
            "not applied, or all frequencies are 0)"
            + (", only lengthened" if max(moved("q"), moved("k")) > 1e-3 else "")
        )
    elif k == "identity":
        found["query_only"] = "q is rotated, but k is not: k comes back unchanged"
    elif q == "identity" and v == "identity":
        found["key_only"] = "k is rotated, but q is not: q comes back unchanged"


def _alike(findings: Findings, q: Turn, k: Turn) -> None:
    found = findings.mistakes
    pairs = [set(zip(turn.first, turn.second, strict=True)) for turn in (q, k)]
    if pairs[0] != pairs[1] and (pairs[0] < pairs[1] or pairs[1] < pairs[0]):
        less, more = ("q", "k") if pairs[0] < pairs[1] else ("k", "q")
        found["still_pairs"] = (
            f"{len(pairs[0] ^ pairs[1])} pairs of {less} stand still, and those of {more} rotate (in {less} their frequency is "
            "0, or their angles are rounded to 0)"
        )
        return
    if q.first != k.first or q.second != k.second:
        found["two_layouts"] = (
            f"q is paired as {pairing.pairs_said(q)}, k as {pairing.pairs_said(k)}"
        )
        return
    close = max(q.tolerance, k.tolerance)

    def same(one: Tensor, other: Tensor) -> bool:
        return bool(within_half(one - other).abs().max() < close)

    if same(q.theta, k.theta):
        off = within_half(q.theta - k.theta).abs().max()
        findings.evidence["q and k"] = (
            f"turned by the same angles, up to {off:.1g} a position"
        )
    elif same(q.theta, -k.theta):
        found["opposite_signs"] = (
            f"pair 0 of q turns by {q.theta[0]:+.4f} a position, that of k by {k.theta[0]:+.4f}: "
            f"{_backward(q)} rotates in the opposite direction (its sign is reversed). The score knows m + n, not m − n"
        )
    elif same(-2 * q.theta, k.theta) or same(q.theta, -2 * k.theta):
        twice = "k" if same(-2 * q.theta, k.theta) else "q"
        found["turned_twice"] = f"{twice} is turned twice, the other one once"
        found["opposite_signs"] = "q turns one way, and k the other"
    elif same(2 * q.theta, k.theta) or same(q.theta, 2 * k.theta):
        twice = "k" if same(2 * q.theta, k.theta) else "q"
        found["turned_twice"] = f"{twice} is turned twice, the other one once"
    else:
        found["two_bases"] = _two_bases(findings, q, k)


def _backward(q: Turn) -> str:
    """Say which of q and k rotates clockwise, judging by the slow pairs of q."""
    slow = q.theta[len(q.theta) // 2 :]
    return "q" if bool((slow < 0).double().mean() > 0.5) else "k"


def _two_bases(findings: Findings, q: Turn, k: Turn) -> str:
    """Describe which of q and k has the right frequencies, and how those of the other differ."""
    off = (q.theta - k.theta).abs().max()
    said = f"the frequencies of q and k differ by up to {off:.2g}"
    declared = findings.declared
    each = {}
    for role, turn in (("q", q), ("k", k)):
        theta = whole(turn, declared.rotary_dim or turn.rotary_dim)
        expected = declared.frequencies(2 * len(theta))
        if expected is None or len(expected) != len(theta):
            return said
        each[role] = compared(theta, expected, 1e-3) or "as it should be"
    return f"{said}. " + "; ".join(f"{role}: {one}" for role, one in each.items())


# Kinds of map that are mistakes in themselves.
_KINDS = {
    "missing_sin": "the sine is missing: apart from {names} · cos, nothing depends on the position",
    "missing_minus": "a minus is missing in the quarter turn of {names}: (a, b) goes to (b, a) and not to (−b, a), "
    "and lengths change",
    "missing_cos": "the cosine is missing: {names} + rotate_half({names}) · sin, and lengths grow",
    "overwritten": "the second entry of a pair of {names} is made of the first one after that has been turned: it was "
    "overwritten too early",
    "half_turned": "only one entry of each pair of {names} is turned as it should be",
    "uncrossed": "the quarter turn of {names} changes signs and leaves entries in their places: no two of them mix",
    "uneven_lengths": "pairs of {names} come back longer or shorter, each by a different factor",
    "added": "{names} comes back with what went in added to it",
    "swapped_layout": "cosines spread for one layout, the quarter turn of the other: the two rows of a pair of {names} have "
    "different angles",
    "mixed_tables": "the cosine and the sine of a pair of {names} are not those of one angle: cos² + sin² is off 1, the "
    "lengths of pairs by up to {off:.2g}",
    "lengths": "lengths of {names} change with the position, by up to {off:.2g}, as those of xPos or of a "
    "logarithm of the position do on purpose",
    "no_pairs": "an entry of {names} mixes with {off:.0f} others: no pairs",
    "unknown": "pairs of {names} are not turned: their matrices are off a rotation by {off:.2g}",
}


def apart(matrix: Tensor, places: tuple[int, ...]) -> Tensor:
    """Return one matrix per distinct position if several tokens are rotated as if they were at the same position."""
    if not places or set(places) != set(range(max(places) + 1)):
        return matrix
    return matrix[[places.index(place) for place in range(max(places) + 1)]]
