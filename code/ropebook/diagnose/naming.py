"""From measurements to names: report each mistake by its name in the gallery (`ropebook.mistakes`), with evidence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import torch
from torch import Tensor

from ropebook import checks
from ropebook.diagnose import pairing, trials
from ropebook.diagnose.alone import changed, one_by_one
from ropebook.diagnose.bent import added
from ropebook.diagnose.beyond import beyond
from ropebook.diagnose.broken import (
    answered,
    error_of,
    not_finite,
    raised,
    untouched,
)
from ropebook.diagnose.calling import SIZES, Returned
from ropebook.diagnose.findings import NEAR, Declared, Findings
from ropebook.diagnose.halves import halves, precise
from ropebook.diagnose.kinds import apart, guess, kinds
from ropebook.diagnose.measures import NotFinite, Turn, measured
from ropebook.diagnose.places import positions
from ropebook.diagnose.recognising import NotCalled, recognised
from ropebook.diagnose.report import Report
from ropebook.diagnose.strides import strides
from ropebook.diagnose.turning import by_declared, turning
from ropebook.diagnose.untangling import untangled
from ropebook.diagnose.warps import alike, warp
from ropebook.diagnose.witness import witness


def diagnose(
    function: Callable,
    *,
    layout: str | None = None,
    base: float | None = None,
    length: int | None = None,
    rotary_dim: int | None = None,
    inv_freq: Tensor | None = None,
    attention_factor: float | None = None,
    in_place: bool = False,
    dim: int | None = None,
    call: str | None = None,
    order: str | None = None,
) -> Report:
    """Find out what a function that rotates q and k does, and which mistakes it makes.

    Declare what you know about how the weights were trained: their ``layout`` and ``base``, the ``length`` of the
    longest sequence, and ``rotary_dim``, the number of entries at the start of each head that are rotated. If the
    context was extended, also declare ``inv_freq``, and ``attention_factor``, the factor by which q and k are each
    multiplied. A function is wrong if it differs from every rotation that fits these declarations. Declaring layout,
    base and length makes the diagnosis stricter. Scaled frequencies are then accepted only if they are declared as
    ``inv_freq``. The function must also accept positions that decrease within a call, as in packed sequences, and
    positions that differ from row to row. Set ``in_place`` if the function is meant to write its results into q and k.
    Otherwise that is a mistake.

    ``dim`` is the head width, by default the first of 64, 128, 32, … that the function accepts. Unless you specify how
    to call the function, different ways are tried. ``call`` lists the roles of its arguments, as in "q, k, positions"
    or "x, cos, sin" (`ropebook.diagnose.calling.ROLES`). ``order`` names the axes of its tensors, as in "batch seq
    heads dim" (`ropebook.diagnose.calling.ORDERS`).

    Raises ``TypeError`` if ``function`` is a class or not callable, and ``ValueError`` if no way of calling it works,
    unless both ``call`` and ``order`` are given. Failures of the function itself don't raise: if it raises an error, or
    returns NaN or another shape, the report lists that as a mistake.

    >>> from ropebook import mistakes
    >>> report = diagnose(mistakes.degrees)
    >>> list(report.mistakes)
    ['degrees']
    >>> diagnose(mistakes.correct, layout="interleaved", base=10000.0).verdict
    'sound'
    """
    declared = _declared(
        layout, base, length, rotary_dim, inv_freq, attention_factor, in_place
    )
    name = getattr(function, "__qualname__", type(function).__name__)
    if hasattr(function, "func"):
        name = getattr(function.func, "__qualname__", name)
    try:
        found = recognised(
            function, call=call, order=order, dim=dim, base=declared.base or 10000.0
        )
    except NotCalled as error:
        if call is None or order is None:
            raise
        return _refused(name, error.first)
    if rotary_dim is not None and declared.rotary_dim > found.dim:
        raise ValueError(
            f"rotary_dim must be at most dim = {found.dim}, got {rotary_dim}"
        )
    findings = Findings(name, found, declared)
    try:
        return _report(findings)
    except NotFinite as error:
        findings.mistakes.setdefault("not_finite", str(error))
    except Exception as error:
        # a function that can't be measured can't be called sound
        findings.undetermined["not_asked"] = (
            f"a measurement could not be finished: {error_of(error)}"
        )
    return _reported(findings)


def _refused(name: str, error: Exception) -> Report:
    """Report on a function that fails however it is called, by raising an error or by not returning vectors."""
    if isinstance(error, Returned):
        return Report(name, {error.named: f"in every call that was tried, {error}"})
    said = f"every call that was tried, of {SIZES['seq']} tokens each, raises {error_of(error)}"
    return Report(name, {"raises": said})


def _declared(
    layout: str | None,
    base: float | None,
    length: int | None,
    rotary_dim: int | None,
    inv_freq: Tensor | None,
    attention_factor: float | None,
    in_place: bool,
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
    return Declared(
        layout, base, length, rotary_dim, inv_freq, attention_factor, in_place
    )


def _report(findings: Findings) -> Report:
    """Run all measurements and trials, in the order in which a person would look for mistakes."""
    call = findings.call
    if call.along == "heads":
        said = (
            f"it turns along the {call.along}, not along the sequence (positions run along the wrong axis, as if two axes "
            "were transposed): one vector in every place comes back alike along the sequence"
        )
        findings.mistakes["wrong_axis"] = said
        # everything else is measured with the two axes swapped
        names = {"heads": "seq", "seq": "heads"}
        order = " ".join(names.get(name, name) for name in call.order.split())
        findings.call = replace(call, order=order, along="seq")
        try:
            findings.at(torch.arange(5))
        except ValueError:
            # the function checks the shapes of its inputs, so nothing more can be measured
            findings.evidence["call"] = f"{call.words}, d = {call.dim}"
            return Report(findings.name, findings.mistakes, findings.evidence)
    elif call.along != "seq":
        findings.mistakes["wrong_axis"] = (
            f"it turns along the {call.along}, not along the sequence: the wrong axis"
        )
        findings.evidence["call"] = f"{call.words}, d = {call.dim}"
        return Report(findings.name, findings.mistakes, findings.evidence)
    findings.evidence["call"] = f"{call.words}, d = {call.dim}"
    untouched(findings)
    trials.steady(findings)
    trials.first_call(findings)
    if "random" in findings.mistakes:
        # no measurement would be meaningful
        return _reported(findings)
    if trials.overwritten(findings):
        # measurements are kept exactly as they are returned
        return _reported(findings)
    if added(findings):
        # what the function adds would distort every other measurement
        return _reported(findings)
    trials.crossed(findings)
    trials.moved(findings)
    trials.alike(findings)
    trials.batched(findings)
    near = answered(findings, min(NEAR, findings.declared.length or NEAR))
    if near < 5 or not _measured(findings, near):
        return _reported(findings)
    _unless_still(findings, near)
    findings.turns = {
        role: _turn(findings, matrix) for role, matrix in findings.near.items()
    }
    kinds(findings)
    guess(findings)
    main = findings.main
    if main.first and (main.layout or main.kind == "rotation"):
        pairing.pairs(findings, main)
    for role, turn in findings.rotating.items():
        pairing.rest(findings, role, turn)
    if findings.rotating:
        turning(findings)
        strides(findings)
    if "stale" in findings.mistakes:
        findings.mistakes["stale"] += changed(findings)
    for turn in findings.turns.values():
        if turn.places and turn.kind != "rotation":
            found = warp(turn.places)
            findings.mistakes[found.name] = found.said
    if "each time" in findings.mistakes.get("stale", ""):
        # comparing calls would be meaningless
        return _reported(findings)
    for trial in (
        trials.linear,
        precise,
        positions,
        trials.properties,
        trials.reference,
        halves,
        witness,
        trials.steady_when_long,
        trials.still_the_same,
        beyond,
    ):
        try:
            trial(findings)
        except NotFinite as error:
            findings.mistakes.setdefault("not_finite", str(error))
        except Exception as error:
            # a function can't be called sound if a trial can't be finished
            said = f"{trial.__name__}: {type(error).__name__}: {error}"
            findings.undetermined["not_asked"] = (
                f"a trial could not be finished, {said}"
            )
    return _reported(findings)


def _measured(findings: Findings, near: int) -> bool:
    """Measure the first positions. Returns False, and records the reason, if that fails."""
    text = torch.arange(near)
    try:
        findings.near = findings.at(text)
        return True
    except NotFinite as error:
        found = not_finite(findings, text)
        findings.mistakes["not_finite"] = found or str(error)
    except ValueError as error:
        if isinstance(error.__cause__, Returned):
            raised(findings, error, "unit vectors")
        else:
            # the function accepts other vectors
            findings.undetermined["not_asked"] = (
                f"unit vectors are refused: {error}"
            )
    return False


def _reported(findings: Findings) -> Report:
    if not findings.turns:
        return Report(
            findings.name,
            findings.mistakes,
            findings.evidence,
            findings.undetermined,
        )
    main = findings.main
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


def _unless_still(findings: Findings, near: int) -> None:
    """If all tokens of a sequence are rotated identically, also measure each token in a call of its own.

    Use those measurements instead if they show that the rotation depends on the position.
    """
    if not findings.call.places:
        return

    def still(matrix: Tensor) -> bool:
        return bool((matrix - matrix[:1]).abs().max() < 1e-9)

    role = next(
        (one for one in "qk" if still(findings.near.get(one, findings.near["q"]))),
        None,
    )
    role = role if role in findings.near else None
    if role is None:
        return
    try:
        each = one_by_one(findings, near)
    except ValueError:
        # the function needs more than one token, so only whole sequences can be measured
        return
    if not still(each[role]):
        findings.near, findings.one_by_one = each, True


def _turn(findings: Findings, matrix: Tensor) -> Turn:
    """Describe the map of one tensor. If several positions are rotated identically, only distinct matrices are used."""
    declared = findings.declared

    def read(some: Tensor) -> Turn:
        known = declared.layout, declared.rotary_dim
        return untangled(some, measured(some), *known)

    places = alike(matrix)
    if places is None:
        return by_declared(matrix, read(matrix), declared)
    said = tuple(places.tolist())
    turn = read(apart(matrix, said))
    return turn if turn.places else replace(turn, places=said)
