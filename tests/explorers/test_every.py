"""Tests that apply to every explorer."""

from __future__ import annotations

import csv
import math
import re

import pytest
import traitlets

from ropebook.explorers import Choice, Even, Numbers, Real, Switch, Text, Whole
from ropebook.explorers.kit.joining import split
from tests.explorers import js
from tests.explorers.registry import ALL, every
from tests.together import check
from tools.paths import ROOT

FOLDER = ROOT / "code" / "ropebook" / "explorers"


def test_every_explorer_is_registered():
    assert sorted(entry.name for entry in ALL) == sorted(path.stem for path in FOLDER.glob("*.js"))


# ---- JavaScript and Python ----


def javascript_agrees_with_python(entry, figures):
    cases = [figure.dials() for figure in figures]
    assert js.disagreements(entry.kind, cases, js.compute(entry.kind._esm, cases)) == []


def dials_survive_the_address(entry, figures):
    """Check that a dial's values are unchanged after they are formatted, written to the address, read back and
    parsed."""
    body = """
      return input.map((values) => {
        const entries = figure.dials.map((dial) => [dial.trait, formatDial(dial, values[dial.trait])]);
        const hash = writeAddress("#other.x=1", "key", entries);
        return readDials(figure.dials, input[0], readAddress(hash, "key"));
      });
    """
    names = entry.kind.dial_traits()
    cases = [{name: getattr(figure, name) for name in names} for figure in figures]
    assert js.inside(entry.kind, body, cases) == [{"values": values, "refusals": []} for values in cases]


@every
def test_javascript_and_python_agree(entry):
    """One test, because random figures are slow to make."""
    check([javascript_agrees_with_python, dials_survive_the_address], entry, entry.figures(20))


UNITS = {"tokens", "bytes", "turns", "radians", "bits", "nats"}


def saved_numbers_have_one_name_and_their_unit(entry):
    """Check that no two rows of the CSV file have the same name and index, and that each has the unit that was declared
    for its dial or number. No unit is declared for a number that the figure doesn't have."""
    dials, traits = entry.kind().dials(), entry.kind.dial_traits()
    body = "const data = figure.compute(input); return [tableOf(figure, input, data), Object.keys(data), figure.units];"
    text, names, units = js.inside(entry.kind, body, dials)
    head, *rows = csv.reader(text.splitlines())
    assert head == ["name", "index", "value", "unit"]
    places = [(name, index) for name, index, _, _ in rows]
    assert len(places) == len(set(places))
    assert set(units) <= set(names)
    units |= {name: unit for name, trait in traits.items() if (unit := trait.declared()["unit"])}
    assert [unit for *_, unit in rows] == [units.get(name, "") for name, *_ in rows]
    assert {re.split(" per (?:token|byte)$", unit)[0] for unit in units.values()} <= UNITS


def a_script_is_its_parts(entry):
    parts = split(entry.kind._esm)
    own, declared = list(parts)[-1], f"{entry.name}.py"
    assert own == entry.kind.script
    assert declared in parts
    others = (declared, own, f"words/{own}", "../colours.py")
    assert all(name in others or name.startswith("kit/") for name in parts)
    assert "".join(f"//# part: {name}\n{text}" for name, text in parts.items()) == entry.kind._esm
    assert [name for name, text in parts.items() if re.search(r"^export ", text, re.MULTILINE)] == [own]
    assert not re.search(r"^import |https?://(?!www\.w3\.org)", entry.kind._esm, re.MULTILINE)


def a_dial_is_declared_in_python_only(entry):
    """Check that the script has exactly the dials that Python declares, and doesn't declare any itself."""
    found = js.inside(entry.kind, "return figure.dials;")
    assert [dial["trait"] for dial in found] == list(entry.kind.dial_traits())
    own = split(entry.kind._esm)[entry.kind.script]
    for dial in found:
        assert f'trait: "{dial["trait"]}"' not in own


# ---- Dials ----


def dials_explain_themselves(entry):
    story = 0
    for name, trait in entry.kind.dial_traits().items():
        told = trait.declared()
        assert len(told["label"]) >= 4, name
        assert len(told["note"]) >= 10, name
        assert trait.metadata["sync"] is True
        if told["kind"] == "number":
            assert min(len(told["below"]), len(told["above"])) >= 10, name
        if told["kind"] == "choice" and told["names"]:
            assert len(told["names"]) == len(told["options"]), name
        story += not told["more"]
    assert 1 <= story <= 3


def every_limit_is_allowed(entry):
    for end in ("min", "max"):
        limits = {name: getattr(trait, end, None) for name, trait in entry.kind.dial_traits().items()}
        dials = {name: limit for name, limit in limits.items() if limit is not None}
        figure = entry.kind(**dials)
        assert {name: getattr(figure, name) for name in dials} == dials


def wrong_values(name, trait):
    """Return values that the dial must refuse, each with its error message."""
    if isinstance(trait, Whole):
        allowed = rf"{name} must be an (even )?integer >= {trait.min} and <= {trait.max}.*, got "
        wrong = [trait.min - 1, trait.max + 1, trait.min + 0.5, True, None, str(trait.min), math.nan]
        return allowed, wrong + ([trait.min + 1] if isinstance(trait, Even) else [])
    if isinstance(trait, Real):
        allowed = rf"{name} must be a finite number >= {trait.min} and <= {trait.max}, got ".replace("+", r"\+")
        return allowed, [trait.min - 0.01, trait.max * 1.01, math.nan, math.inf, True, None, str(trait.min)]
    if isinstance(trait, Choice):
        return rf"{name} must be one of .*, got ", [trait.values[0].upper() + "x", "", None, 1, [trait.values[0]]]
    if isinstance(trait, Switch):
        return rf"{name} must be True or False, got ", [1, 0, None, "on"]
    assert isinstance(trait, (Text, Numbers))
    return rf"({name} must|'{name}' trait|{name}' trait)", [3, None, [[]]]


def bad_values_are_refused_and_change_nothing(entry):
    figure = entry.kind()
    before = figure.dials()
    for name, trait in entry.kind.dial_traits().items():
        message, wrong = wrong_values(name, trait)
        for value in wrong:
            with pytest.raises(traitlets.TraitError, match=message):
                setattr(figure, name, value)
            assert figure.dials() == before, (name, value)
        with pytest.raises(traitlets.TraitError, match=message):
            entry.kind(**{name: wrong[0]})


def an_unknown_dial_is_refused(entry):
    allowed = ", ".join([*entry.kind.dial_traits(), "alt"])
    with pytest.raises(TypeError, match=f"{entry.kind.__name__} takes {allowed}; got feet"):
        entry.kind(feet=3)


def alt_says_what_is_to_be_seen(entry):
    figure = entry.kind()
    assert len(figure.alt) > 100
    for alt in ("", "figure.png", " " * 30, "x" * 19):
        with pytest.raises(traitlets.TraitError, match="alt must be at least 20 characters that say what is to be"):
            entry.kind(alt=alt)
        with pytest.raises(traitlets.TraitError, match="alt must be"):
            figure.alt = alt
    assert entry.kind(alt="x" * 20).alt == "x" * 20


def dials_go_to_the_page_and_come_back(entry):
    figure, seen = entry.kind(), []
    name, trait = next((n, t) for n, t in entry.kind.dial_traits().items() if not isinstance(t, (Text, Numbers)))
    now = getattr(figure, name)
    other = {Choice: lambda: trait.values[trait.values.index(now) - 1], Switch: lambda: not now}.get(
        type(trait), lambda: trait.min if now != trait.min else trait.max
    )()
    figure.observe(lambda change: seen.append(change["new"]), name)
    figure.set_state({name: other})  # the page sends values in this form
    assert seen == [other]
    state = figure.get_state()
    assert {n: state[n] for n in figure.dial_traits()} == {n: getattr(figure, n) for n in figure.dial_traits()}
    assert (state["_esm"], state["alt"]) == (entry.kind._esm, figure.alt)


@every
def test_it_is_what_all_explorers_are(entry):
    checks = [
        saved_numbers_have_one_name_and_their_unit,
        a_script_is_its_parts,
        a_dial_is_declared_in_python_only,
        dials_explain_themselves,
        every_limit_is_allowed,
        bad_values_are_refused_and_change_nothing,
        an_unknown_dial_is_refused,
        alt_says_what_is_to_be_seen,
        dials_go_to_the_page_and_come_back,
    ]
    check(checks, entry)
