"""Fresh mistakes that the diagnosis learnt from are named by their authors' rules, and no sound function is accused."""

import random as chance
import re

import pytest

from ropebook.diagnose import diagnose
from tests import diagnose_world
from tests import fresh_mistakes_fifth as fifth
from tests import fresh_mistakes_fourth as fourth
from tests import fresh_mistakes_second as second
from tests import fresh_mistakes_third as third

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}
SETS = {"second": second, "third": third, "fourth": fourth}
MISTAKES = [(of, name) for of in SETS for name in SETS[of].FRESH]
SOUND = {**second.SOUND, **third.SOUND, **fourth.SOUND, **fifth.SOUND}
# Its author calls it sound, because a model can be trained with it. A declared layout and base say which way to rotate.
CLOCKWISE = SOUND.pop("clockwise")
# No score sees it, so the verdict waits for what only its user can say.
UNSEEN = ("step_starts_at_minus_one",)
# The widest heads that are tried, because a diagnosis takes longer the wider they are.
WIDEST = 64
# They show from position 64 on.
LONGER = ("table_too_short", "table_wraps", "table_raises")


def diagnosed(world, rotation):
    return diagnose(rotation, dim=world.dim, **HOW, **world.declared)


@pytest.mark.parametrize(("of", "name"), MISTAKES)
def test_a_mistake_is_named_by_its_author_s_rule(of, name):
    generator = chance.Random(name)
    fresh = SETS[of].FRESH[name]
    world = diagnose_world.world_at_random(generator)
    while not fresh.when(world) or world.dim > WIDEST or (name in LONGER and world.length <= 64):
        world = diagnose_world.world_at_random(generator)
    report = diagnosed(world, fresh.build(world))
    said = report.undetermined if name in UNSEEN else report.mistakes
    said = [f"{one}: {sentence}" for one, sentence in said.items()]
    assert report.verdict == ("undetermined" if name in UNSEEN else "wrong"), str(report)
    assert any(re.search(form, text, re.IGNORECASE) for form in fresh.accept for text in said), (world, said)


@pytest.mark.parametrize("name", SOUND)
def test_a_sound_function_in_an_unusual_style_is_not_accused(name):
    generator = chance.Random(name)
    world = diagnose_world.world_at_random(generator)
    # some of these styles are slow
    while world.length > 300 or world.dim > 48:
        world = diagnose_world.world_at_random(generator)
    report = diagnosed(world, SOUND[name](world))
    assert report.verdict == "sound", (world, str(report))


def test_the_other_direction_is_named_once_layout_and_base_are_declared():
    world = diagnose_world.world_at_random(chance.Random("clockwise"))
    report = diagnosed(world, CLOCKWISE(world))
    assert (report.verdict, "clockwise" in report.mistakes) == ("wrong", True), str(report)
