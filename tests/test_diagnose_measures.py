"""Test what is read off matrices that are built by hand, without a function that rotates."""

import math

import pytest
import torch

from ropebook import rope
from ropebook.diagnose.measures import measured

THETA = rope.inv_freq(8, 100.0)
NEAR = torch.arange(24, dtype=torch.float64)


def blocks(upper_left, upper_right, lower_left, lower_right):
    """Return matrices whose 2 × 2 blocks on the diagonal contain these numbers. Each argument is (seq, pairs)."""
    rows = torch.stack((torch.stack((upper_left, upper_right), -1), torch.stack((lower_left, lower_right), -1)), -2)
    return torch.stack([torch.block_diag(*at) for at in rows])


def at(places):
    angles = places[:, None] * THETA
    return blocks(angles.cos(), -angles.sin(), angles.sin(), angles.cos())


def test_nothing_is_off_in_a_rotation_or_the_identity():
    found = measured(at(NEAR))
    assert (found.kind, found.layout, found.places) == ("rotation", "interleaved", ())
    assert found.theta == pytest.approx(THETA, rel=1e-12)
    assert measured(at(NEAR * 0)).off == 0
    assert measured(at(NEAR * 0)).kind == "identity"


@pytest.mark.parametrize(
    "places", [NEAR.clamp(max=10), NEAR % 7, NEAR // 2], ids=["clamped", "wrapped", "each position twice"]
)
def test_frequencies_are_read_at_the_positions_that_are_really_used(places):
    found = measured(at(places))
    assert found.kind == "rotation"
    assert torch.tensor(found.places) == pytest.approx(places - places[0])
    assert found.theta == pytest.approx(THETA, rel=1e-9)
    assert found.uneven < 1e-9


def test_without_the_minus_both_sines_are_equal():
    cos, sin = (NEAR[:, None] * THETA).cos(), (NEAR[:, None] * THETA).sin()
    assert measured(blocks(cos, sin, sin, cos)).kind == "missing_minus"
    assert measured(blocks(cos, sin, sin, -cos)).kind != "missing_minus"


def test_without_sines_only_the_diagonal_changes():
    cos = (NEAR[:, None] * THETA).cos()
    none = torch.zeros_like(cos)
    found = measured(blocks(cos, none, none, cos))
    assert found.kind == "missing_sin"
    assert found.off == pytest.approx((cos - 1).abs().max().item(), rel=1e-12)


def test_a_fixed_angle_is_a_rotation_and_no_missing_sine():
    cos, sin = torch.full((24, 4), math.cos(1.0)), torch.full((24, 4), math.sin(1.0))
    found = measured(blocks(cos, -sin, sin, cos).double())
    assert found.kind == "rotation"
    assert found.phase == pytest.approx(torch.ones(4), abs=1e-6)
    # If the cosines change while the sines are constant, they can't belong to the same angle.
    assert (
        measured(blocks((NEAR[:, None] * THETA).cos(), -sin.double(), sin.double(), (NEAR[:, None] * THETA).cos())).kind
        == "missing_sin"
    )
