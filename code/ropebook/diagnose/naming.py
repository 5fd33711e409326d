"""From measurements to names: each mistake as the gallery calls it (`ropebook.mistakes`), with what shows it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ropebook import checks
from ropebook.diagnose import pairing, trials
from ropebook.diagnose.findings import NEAR, Declared, Findings
from ropebook.diagnose.formulas import formula
from ropebook.diagnose.guessing import guessed
from ropebook.diagnose.measures import NotFinite, Turn, measured, within_half
from ropebook.diagnose.places import positions
from ropebook.diagnose.recognising import recognised
from ropebook.diagnose.report import Report
from ropebook.diagnose.rules import known
from ropebook.diagnose.turning import turning
from ropebook.diagnose.untangling import untangled
from ropebook.diagnose.warps import alike, warp
from ropebook.rope import split_pairs


def diagnose(
    function: Callable,
    *,
    layout: str | None = None,
    base: float | None = None,
    length: int | None = None,
    rotary_dim: int | None = None,
    inv_freq: Tensor | None = None,
    attention_factor: float | None = None,
    dim: int | None = None,
    call: str | None = None,
    order: str | None = None,
) -> Report:
    """Tell what a function that rotates q and k does, and which mistakes it makes.

    What the weights were trained with is declared, as far as it is known: their ``layout`` and ``base``, the ``length`` of
    texts, the ``rotary_dim`` first entries that turn, and if contexts were extended ``inv_freq`` and ``attention_factor``
    (by which q and k are lengthened each). A rotation is wrong if it differs from all that fit what was declared.

    ``dim`` is the width of a head, by default the first of 64, 128, 32, … that the function takes. How it is called is
    recognised, or told: ``call`` by the roles of its arguments, as "q, k, positions" or "x, cos, sin"
    (`ropebook.diagnose.calling.ROLES`), and ``order`` by the axes of its tensors, as "batch seq heads dim"
    (`ropebook.diagnose.calling.ORDERS`).

    ``TypeError`` if ``function`` cannot be called at all, ``ValueError`` if no way to call it works, or if it returns NaN.

    >>> from ropebook import mistakes
    >>> report = diagnose(mistakes.degrees)
    >>> list(report.mistakes)
    ['degrees']
    >>> diagnose(mistakes.correct, layout="interleaved", base=10000.0).verdict
    'sound'
    """
    declared = _declared(
        layout, base, length, rotary_dim, inv_freq, attention_factor
    )
    found = recognised(
        function, call=call, order=order, dim=dim, base=declared.base or 10000.0
    )
    if rotary_dim is not None and declared.rotary_dim > found.dim:
        raise ValueError(
            f"rotary_dim must be at most dim = {found.dim}, got {rotary_dim}"
        )
    name = getattr(function, "__qualname__", type(function).__name__)
    if hasattr(function, "func"):
        name = getattr(function.func, "__qualname__", name)
    return _report(Findings(name, found, declared))


def _declared(
    layout: str | None,
    base: float | None,
    length: int | None,
    rotary_dim: int | None,
    inv_freq: Tensor | None,
    attention_factor: float | None,
) -> Declared:
    if layout is not None:
        checks.layout(layout)
    if base is not None:
        base = checks.number("base", base, minimum=1)
    if length is not None:
        length = checks.integer("length", length, minimum=16)
    if rotary_dim is not None:
        rotary_dim = checks.even("rotary_dim", rotary_dim)
    if inv_freq is not None:
        inv_freq = torch.as_tensor(inv_freq).detach().cpu().double()
        if inv_freq.ndim != 1 or not inv_freq.isfinite().all():
            raise ValueError(
                f"inv_freq must be finite, of shape (pairs,), got shape {tuple(inv_freq.shape)}"
            )
        rotary_dim = rotary_dim or 2 * len(inv_freq)
    if attention_factor is not None:
        attention_factor = checks.number(
            "attention_factor", attention_factor, minimum=0
        )
    return Declared(layout, base, length, rotary_dim, inv_freq, attention_factor)


def _report(findings: Findings) -> Report:
    """All of it, in the order in which one would look."""
    call = findings.call
    if call.along == "heads":
        said = f"it turns along the {call.along}: one vector in every place comes back alike along the sequence"
        findings.mistakes["wrong_axis"] = said
        # the rest is looked at with the two axes in each other's place
        names = {"heads": "seq", "seq": "heads"}
        order = " ".join(names.get(name, name) for name in call.order.split())
        findings.call = replace(call, order=order, along="seq")
        try:
            findings.at(torch.arange(5))
        except ValueError:
            # it looks at the shapes that it is given: then nothing more can be asked
            findings.evidence["call"] = f"{call.words}, d = {call.dim}"
            return Report(findings.name, findings.mistakes, findings.evidence)
    elif call.along != "seq":
        findings.mistakes["wrong_axis"] = f"it turns along the {call.along}"
        findings.evidence["call"] = f"{call.words}, d = {call.dim}"
        return Report(findings.name, findings.mistakes, findings.evidence)
    findings.evidence["call"] = f"{call.words}, d = {call.dim}"
    trials.crossed(findings)
    trials.moved(findings)
    trials.alike(findings)
    near = min(NEAR, findings.declared.length or NEAR)
    findings.near = findings.at(torch.arange(near))
    findings.turns = {
        role: _turn(findings, matrix) for role, matrix in findings.near.items()
    }
    _kinds(findings)
    _guess(findings)
    main = findings.main
    if main.first and (main.layout or main.kind == "rotation"):
        pairing.pairs(findings, main)
    for role, turn in findings.rotating.items():
        pairing.rest(findings, role, turn)
    if findings.rotating:
        turning(findings)
    for turn in findings.turns.values():
        if turn.places and turn.kind != "rotation":
            found = warp(turn.places)
            findings.mistakes[found.name] = found.said
    for trial in (
        trials.linear,
        positions,
        trials.properties,
        trials.reference,
    ):
        try:
            trial(findings)
        except NotFinite:
            raise
        except Exception as error:
            # a trial that cannot be finished acquits nobody
            said = f"{trial.__name__}: {type(error).__name__}: {error}"
            findings.undetermined["not_asked"] = (
                f"a trial could not be finished, {said}"
            )
    return Report(
        findings.name,
        findings.mistakes,
        findings.evidence,
        findings.undetermined,
        layout=main.layout,
        base=findings.base,
        rotary_dim=main.rotary_dim,
        scaling=findings.scaling,
        inv_freq=main.theta,
    )


def _turn(findings: Findings, matrix: Tensor) -> Turn:
    """What the matrices of one tensor do, by those that differ if positions are read as others."""
    declared = findings.declared

    def read(some: Tensor) -> Turn:
        known = declared.layout, declared.rotary_dim
        return untangled(some, measured(some), *known)

    places = alike(matrix)
    if places is None:
        return read(matrix)
    said = tuple(places.tolist())
    turn = read(_apart(matrix, said))
    return turn if turn.places else replace(turn, places=said)


def _apart(matrix: Tensor, places: tuple[int, ...]) -> Tensor:
    """The matrices that differ, where some positions are turned like others."""
    if not places or set(places) != set(range(max(places) + 1)):
        return matrix
    return matrix[[places.index(place) for place in range(max(places) + 1)]]


# --- What is turned ---


def _kinds(findings: Findings) -> None:
    turns, found = findings.turns, findings.mistakes
    kinds = {role: turn.kind for role, turn in turns.items()}
    flaws = {role: turn.flaws or (turn.kind,) for role, turn in turns.items()}
    q, k, v = (kinds.get(role, kinds["q"]) for role in "qkv")
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
    if findings.both and q == k == "rotation":
        _alike(findings, turns["q"], turns["k"])
    elif findings.both and "identity" not in (q, k):
        one, other = findings.near["q"], findings.near["k"]
        if (one @ one - other).abs().max() < 1e-3:
            found["turned_twice"] = "k is turned twice, q once"
    orders = [role for role, turn in findings.rotating.items() if turn.order]
    if orders:
        found["other_order"] = (
            f"entries of {findings.names(orders)} come back in another order than they had, as if read in one layout "
            "and written in the other"
        )


def _guess(findings: Findings) -> None:
    """Where pairs are mixed in a way that has no name: the mistakes that would do so together."""
    declared, found = findings.declared, findings.mistakes
    later, guesses = {}, []
    for role, turn in findings.turns.items():
        # where no two entries mix, pairs are those that should
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
        seen = _apart(findings.near[role], turn.places)
        guess = guessed(seen, *pairs, tried)
        if guess is None:
            return
        later[role] = guess.later
        guesses.append(guess.names)
        for name in guess.names:
            said = f"pairs of {role} are mixed as {', '.join(guess.names)} would mix them together"
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
    """What is written instead of a rotation, by the frequencies that the weights need."""
    turn = findings.turns[role]
    width = findings.declared.rotary_dim or turn.rotary_dim
    theta = findings.declared.frequencies(width)
    if theta is None or len(theta) != len(turn.first):
        return None
    seen = _apart(findings.near[role], turn.places)
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
            "q and k come back as they went in, at every position"
        )
    elif k == "identity":
        found["query_only"] = "q is turned, and k comes back as it went in"
    elif q == "identity" and v == "identity":
        found["key_only"] = "k is turned, and q comes back as it went in"


def _alike(findings: Findings, q: Turn, k: Turn) -> None:
    found = findings.mistakes
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
            "the score knows m + n, not m − n"
        )
    elif same(-2 * q.theta, k.theta) or same(q.theta, -2 * k.theta):
        twice = "k" if same(-2 * q.theta, k.theta) else "q"
        found["turned_twice"] = f"{twice} is turned twice, the other one once"
        found["opposite_signs"] = "q turns one way, and k the other"
    elif same(2 * q.theta, k.theta) or same(q.theta, 2 * k.theta):
        twice = "k" if same(2 * q.theta, k.theta) else "q"
        found["turned_twice"] = f"{twice} is turned twice, the other one once"
    else:
        off = (q.theta - k.theta).abs().max()
        found["two_bases"] = f"the frequencies of q and k differ by up to {off:.2g}"


# Kinds of maps that are a mistake by themselves.
_KINDS = {
    "missing_sin": "the sine is missing: beside {names} · cos nothing depends on the position",
    "missing_minus": "a minus is missing in the quarter turn of {names}: (a, b) goes to (b, a) and not to (−b, a), "
    "and lengths change",
    "missing_cos": "the cosine is missing: {names} + rotate_half({names}) · sin, and lengths grow",
    "overwritten": "the second entry of a pair of {names} is made of the first one after that has been turned: it was "
    "overwritten too early",
    "half_turned": "only one entry of each pair of {names} is turned as it should be",
    "uncrossed": "the quarter turn of {names} changes signs and leaves entries in their places: no two of them mix",
    "uneven_lengths": "pairs of {names} come back longer or shorter, each by a factor of its own",
    "added": "{names} comes back with what went in added to it",
    "swapped_layout": "cosines spread for one layout, the quarter turn of the other: the two rows of a pair of {names} have "
    "different angles",
    "mixed_tables": "the cosine and the sine of a pair of {names} are not those of one angle: cos² + sin² is off 1, the "
    "lengths of pairs by up to {off:.2g}",
    "lengths": "lengths of {names} change with the position, by up to {off:.2g}, as xPos has them on purpose",
    "no_pairs": "an entry of {names} mixes with {off:.0f} others: no pairs",
    "unknown": "pairs of {names} are not turned: their matrices are off a rotation by {off:.2g}",
}
