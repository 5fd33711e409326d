"""Tests of dials whose limit depends on another dial. Such a dial can be set to its limit, but not beyond it, and it is
lowered when the limit drops."""

from __future__ import annotations

import pytest
import traitlets

from tests.explorers import js
from tests.explorers.registry import ALL

# Explorer, dial, the dial on which its limit depends, and the limit as a function of that dial's value.
DEPENDING = [
    ("turn", "pair", "dim", lambda dim: dim // 2 - 1),
    ("lock", "pair", "dim", lambda dim: dim // 2 - 1),
    ("distance", "query", "length", lambda length: length - 1),
    ("heatmap", "reference", "length", lambda length: length - 1),
    ("fourier", "peak", "span", lambda span: span),
    ("fourier", "distance", "span", lambda span: span),
    ("fourier", "summed", "dim", lambda dim: dim // 2),
    ("timelapse", "length", "room", lambda room: room),
]
KINDS = {entry.name: entry.kind for entry in ALL}


@pytest.mark.parametrize("name, dial, other, most", DEPENDING, ids=lambda one: one if isinstance(one, str) else "")
def test_a_dial_stays_within_what_another_allows(name, dial, other, most):
    kind = KINDS[name]
    low, large = (getattr(kind, other).min, 400)
    figure = kind(**{other: large, dial: most(large)})
    assert getattr(figure, dial) == most(large)
    with pytest.raises(traitlets.TraitError, match=rf"{dial} must be .* for {other} is {large}, got {most(large) + 1}"):
        setattr(figure, dial, most(large) + 1)
    with pytest.raises(traitlets.TraitError, match=f"for {other} is {large}"):
        kind(**{other: large, dial: most(large) + 1})
    assert getattr(figure, dial) == most(large)
    setattr(figure, other, large)
    setattr(figure, other, low)
    assert getattr(figure, dial) == most(low)
    figure.set_state({dial: most(300), other: 300})  # the page sends these two values in either order
    assert (getattr(figure, dial), getattr(figure, other)) == (most(300), 300)
    figure.set_state({other: 500, dial: most(500)})
    assert (getattr(figure, dial), getattr(figure, other)) == (most(500), 500)
    # A dial that the reader hasn't set is lowered to its limit from the start.
    assert getattr(kind(**{other: low}), dial) == most(low)
    # The script adjusts such a dial in the same way.
    cases = [{dial: most(300), other: large}, {dial: most(large), other: large}, {dial: most(large), other: 200}]
    cases = [{**kind().dials(), **case} for case in cases]
    settled = js.inside(kind, "return input.map(figure.settle);", cases)
    assert settled == [
        {**case, dial: expected} for case, expected in zip(cases, map(most, (300, 400, 200)), strict=True)
    ]
