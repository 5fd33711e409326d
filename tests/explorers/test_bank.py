"""Tests specific to the Bank explorer."""

from __future__ import annotations

import cmath
import math

import numpy as np
import pytest

from ropebook import decay
from ropebook.explorers.bank import Bank
from tests.explorers import js
from tests.explorers.helpers import theta
from tests.explorers.oracles import oracle


def test_the_models_of_the_table():
    found = [
        oracle(Bank).compute(
            {**Bank().dials(), "position": 0, "base": model.base, "dim": model.dim, "length": model.context}
        )
        for model in decay.MODELS
    ]
    assert [(one["turned"], len(one["last"])) for one in found] == [
        (8, 12), (41, 64), (46, 64), (46, 64), (100, 128), (35, 64), (40, 64), (80, 128)]  # fmt: skip
    assert found[5]["wavelengths"][-1] == pytest.approx(2_559_196, abs=1)


@pytest.mark.parametrize("position, base, dim, length", [(6000, 1e4, 16, 4096), (70, 3.5, 6, 7), (20, 1e4, 8, 50)])
def test_the_hands(position, base, dim, length):
    found = oracle(Bank).compute({**Bank().dials(), "position": position, "base": base, "dim": dim, "length": length})
    hands = [cmath.exp(1j * position * one) for one in theta(dim, base)]
    tips = np.array(found["tips"])
    np.testing.assert_allclose(tips[0::2] + 1j * tips[1::2], hands, atol=1e-9)
    np.testing.assert_allclose(found["turns"], position * theta(dim, base) / (2 * math.pi), rtol=1e-12)
    np.testing.assert_allclose(found["last"], (length - 1) * theta(dim, base) / (2 * math.pi), rtol=1e-12)
    np.testing.assert_allclose(found["wavelengths"], 2 * math.pi / theta(dim, base), rtol=1e-12)
    assert found["turned"] == sum(one * (length - 1) >= 2 * math.pi for one in theta(dim, base))
    angles = [cmath.phase(hand) % (2 * math.pi) for hand in hands]
    new = [angle > (length - 1) * one and (length - 1) * one < 2 * math.pi
           for angle, one in zip(angles, theta(dim, base), strict=True)]  # fmt: skip
    assert found["unseen"] == sum(new)


def test_no_angle_within_the_context_is_new():
    for position in (0, 100, 4095):
        assert oracle(Bank).compute({**Bank().dials(), "position": position})["unseen"] == 0
    beyond = oracle(Bank).compute({**Bank().dials(), "position": 4096})
    assert beyond["unseen"] == 64 - beyond["turned"] == 18


def test_the_bank_in_words():
    dials = Bank().dials()
    cases = [
        {**dials, "position": 6000},
        {**dials, "dim": 2},
        {**dials, "length": 2},
        {**dials, "dim": 2, "position": 5000},
        {**dials, "dim": 4, "length": 50, "position": 50},
    ]
    beyond, every, none, old, one = js.describe(Bank, cases)
    assert beyond == (
        "46 of 64 hands make a full turn within 4,096 positions. The position is beyond the context: 16 hands "
        "are at angles that no position within the context has."
    )
    assert every == "Every hand makes a full turn within 4,096 positions."
    assert none.startswith("No hand makes a full turn within 2 positions.")
    assert old.endswith("The position is beyond the context, but no hand is at a new angle.")
    assert one.endswith("1 hand is at an angle that no position within the context has.")
    assert js.inside(Bank, "return input.map(turnText);", [0, 0.001, 0.25, 12.345, 1234.5]) == [
        "0.00", "≈ 0", "0.25", "12.3", "1235"]  # fmt: skip
    assert js.inside(Bank, "return input.map(tickText);", [10, 100, 1000, 1e7]) == ["10", "100", "10³", "10⁷"]


def test_the_buttons_have_the_models_of_the_module():
    models = [[model.name, model.dim, model.base, model.context] for model in decay.MODELS]
    assert js.inside(Bank, "return MODELS;") == models


def test_turns_have_one_decimal_up_to_a_hundred():
    assert js.inside(Bank, "return input.map(turnText);", [9.994, 10, 99.5, 100, 100.4]) == [
        "9.99",
        "10.0",
        "99.5",
        "100",
        "100",
    ]
