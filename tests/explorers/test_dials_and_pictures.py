"""Test that every dial has a visible effect. If a dial changes the numbers, it must also change the picture. The
changed picture must be one that the figure could have opened with."""

from __future__ import annotations

import re
from contextlib import suppress
from random import Random
from typing import Any
from xml.etree import ElementTree

import traitlets

from ropebook.explorers import Choice, Even, Explorer, Real, Switch, Whole
from tests.explorers import js
from tests.explorers.registry import Entry, every
from tools import stills


def other_values(entry: Entry, figure: Explorer, name: str) -> list[Any]:
    """Return another value for a dial, or several values in case one of them has no effect."""
    now, trait = getattr(figure, name), entry.kind.dial_traits()[name]
    if isinstance(trait, Switch):
        return [not now]
    if isinstance(trait, Choice):
        return [value for value in trait.values if value != now]
    if isinstance(trait, (Whole, Real)):
        step = 2 if isinstance(trait, Even) else 1 if isinstance(trait, Whole) else now / 4
        return [value for value in (now + step, now - step, trait.min) if value != now]
    source = Random(3)
    return [js.sample_dials(entry.kind, source)[name] for _ in range(4)]


def turned(entry: Entry, figure: Explorer, names: list[str]) -> list[tuple[str, Explorer]]:
    """Return copies of the figure, each with a different value for one of these dials. Skip values that other dials
    forbid."""
    own, found = {name: getattr(figure, name) for name in entry.kind.dial_traits()}, []
    for name in names:
        for value in other_values(entry, figure, name):
            with suppress(traitlets.TraitError):
                found.append((name, entry.kind(**{**own, name: value})))
    return found


def comparable(picture: str) -> str:
    """Normalise a drawing. Drawings that differ only in the order of attributes and in the names of ids become
    equal."""
    names: dict[str, str] = {}
    return re.sub(
        r"still-\d+", lambda found: names.setdefault(found[0], f"id-{len(names)}"), ElementTree.canonicalize(picture)
    )


# The Alive explorer waits for the model's answer, and the other two are animated. Right after a dial is changed, none
# of them shows its final picture yet.
LATE = ("alive", "heatmap", "timelapse")


@every
def test_a_dial_that_changes_the_numbers_changes_the_picture(entry):
    """Every dial is changed in the opening state and in the heaviest state. At the corners, we change only dials that
    have had no effect so far."""
    idle = list(entry.kind.dial_traits())
    for k, setting in enumerate(({}, entry.heaviest, *entry.corners)):
        if not idle:
            return
        figure = entry.kind(**setting)
        cases, before = turned(entry, figure, idle if k > 1 else list(entry.kind.dial_traits())), figure.get_state()
        states = [other.get_state() for _, other in cases]
        numbers = js.compute(entry.kind._esm, [figure.dials(), *(other.dials() for _, other in cases)])
        pictures = [comparable(one) for one in stills.draw([before, *states])]
        assert [
            name
            for (name, _), data, picture in zip(cases, numbers[1:], pictures[1:], strict=True)
            if data != numbers[0] and picture == pictures[0]
        ] == []
        changed = {name for (name, _), picture in zip(cases, pictures[1:], strict=True) if picture != pictures[0]}
        idle = [name for name in idle if name not in changed]
        if entry.name in LATE:
            continue
        dials = [{name: state[name]} for (name, _), state in zip(cases, states, strict=True)]
        afterwards = [comparable(one) for one in stills.draw([before] * len(states), dials)]
        assert [
            name for (name, _), there, then in zip(cases, pictures[1:], afterwards, strict=True) if there != then
        ] == []
    assert idle == [], "these dials change nothing that is seen"
