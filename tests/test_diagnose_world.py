"""Tests with random functions. Some are sound, and others have mistakes from bug reports, which the diagnosis must
notice and name."""

import random as chance

import pytest
import torch

from ropebook.diagnose import diagnose
from tests import diagnose_world as worlds

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}


def diagnosed(world, rotation):
    return diagnose(rotation, dim=world.dim, **HOW, **world.declared)


def named(report, name):
    return bool(set(report.mistakes) & set(worlds.MISTAKES[name].called))


@pytest.mark.parametrize("name", worlds.MISTAKES)
def test_a_mistake_alone_is_named(name):
    """Draw two random worlds in which the mistake has an effect, and diagnose it in the one with the narrower heads."""
    generator = chance.Random(name)
    mistake = worlds.MISTAKES[name]
    shown = []
    while len(shown) < 2:
        world = worlds.world_at_random(generator)
        rotation = worlds.compose(world, (name,))
        if mistake.when(world) and worlds.differs(rotation, worlds.compose(world, ()), world):
            shown.append(world)
    world = min(shown, key=lambda world: world.dim)
    report = diagnosed(world, worlds.compose(world, (name,)))
    assert report.verdict == "wrong"
    assert named(report, name), (world, report.mistakes)


def test_mistakes_together_are_never_acquitted_and_mostly_named():
    generator = chance.Random(3)
    found = [(names, diagnosed(world, rotation)) for world, names, rotation in wrong(generator, 90)]
    assert [names for names, report in found if report.verdict != "wrong"] == []
    told = [named(report, name) for names, report in found for name in names]
    assert sum(told) >= 0.9 * len(told)


def wrong(generator, count):
    return (worlds.wrong_at_random(generator) for _ in range(count))


def test_no_sound_rotation_is_accused():
    generator = chance.Random(4)
    for _ in range(20):
        world, _, rotation = worlds.sound_at_random(generator)
        report = diagnosed(world, rotation)
        assert report.verdict == "sound", (world, str(report))


def test_single_precision_is_no_mistake_but_a_result_of_half_the_digits_is():
    generator = chance.Random(5)
    for _ in range(4):
        world, _, rotation = worlds.sound_at_random(generator)

        def single(q, k, positions, rotation=rotation):
            return tuple(x.double() for x in rotation(q.float(), k.float(), positions))

        def rounded(q, k, positions, rotation=rotation):
            return tuple(x.bfloat16().to(x.dtype) for x in rotation(q, k, positions))

        assert diagnosed(world, single).verdict == "sound", world
        assert list(diagnosed(world, rounded).mistakes) == ["rounded_result"], world


def test_what_is_wrong_is_never_called_sound_with_nothing_declared_but_the_length():
    """If layout and base aren't declared, some mistakes look just like rotations that other weights need. The mistakes
    in this test don't."""
    seen = "positions_in_bfloat16 positions_from_zero table_that_is_clamped table_that_wraps key_one_position_later "
    seen += "first_head_alone rows_counted_on query_scaled frequencies_in_equal_steps both_turned_twice "
    seen += "positions_of_the_first_row angles_in_degrees tables_in_bfloat16 turned_along_the_heads"
    generator = chance.Random(6)
    for name in seen.split():
        world = worlds.World(32, 10_000.0, generator.choice(("half", "interleaved")), 2048, 32)
        report = diagnose(worlds.compose(world, (name,)), dim=32, length=2048, **HOW)
        assert report.verdict == "wrong", name
        assert named(report, name) or "faster" in report.mistakes, (name, report.mistakes)


def test_a_world_needs_what_it_declares():
    world = worlds.World(32, 10_000.0, "half", 4096, 16, "yarn", 4.0)
    assert torch.equal(world.declared["inv_freq"], world.frequencies)
    assert not worlds.differs(worlds.compose(world, ()), worlds.compose(world, ()), world)
