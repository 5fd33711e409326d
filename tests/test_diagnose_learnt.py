"""The diagnosis has since been improved with these fresh mistakes. It must name each of them, as judged by the rule of
that mistake's author, and it must report all sound functions as sound."""

import random as chance
import re

import pytest
import torch

from ropebook.diagnose import diagnose
from tests import diagnose_world
from tests import fresh_mistakes_fifth as fifth
from tests import fresh_mistakes_fourth as fourth
from tests import fresh_mistakes_second as second
from tests import fresh_mistakes_third as third
from tests.fresh_world import alone, by, places_of

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}
SETS = {"second": second, "third": third, "fourth": fourth, "fifth": fifth}
# From the fifth set, we try only the mistakes that were not always named the first time.
AGAIN = (
    "read_past_the_table",
    "cached_without_the_offset",
    "base_of_each_call",
    "table_cut_and_never_added",
    "keys_race_with_their_copy",
    "scaled_only_in_long_texts",
    "decay_scales_in_the_other_layout",
)
MISTAKES = [(of, name) for of in SETS for name in (AGAIN if of == "fifth" else SETS[of].FRESH)]
SOUND = {**second.SOUND, **third.SOUND, **fourth.SOUND, **fifth.SOUND}
# Its author calls it sound, because a model can be trained with it. But once layout and base are declared, only one
# direction of rotation is right, so it has a test of its own.
CLOCKWISE = SOUND.pop("clockwise")
# This mistake changes no score. Only the user can say whether it matters, so the verdict is "undetermined".
UNSEEN = ("step_starts_at_minus_one",)
# Most heads are at most this wide, because the diagnosis of wider heads takes longer. Every eighth mistake is tried
# with heads of any width.
WIDEST = 64
# These mistakes have an effect only from position 64 on.
LONGER = ("table_too_short", "table_wraps", "table_raises")


def diagnosed(world, rotation):
    return diagnose(rotation, dim=world.dim, **HOW, **world.declared)


@pytest.mark.parametrize(("of", "name"), MISTAKES)
def test_a_mistake_is_named_by_its_author_s_rule(of, name):
    generator = chance.Random(name)
    fresh = SETS[of].FRESH[name]
    world = diagnose_world.world_at_random(generator)
    widest = 128 if MISTAKES.index((of, name)) % 8 == 0 else WIDEST
    while not fresh.when(world) or world.dim > widest or (name in LONGER and world.length <= 64):
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


# --- Neighbours of what the fifth set taught ---

WORLD = diagnose_world.World(dim=32, base=10000.0, layout="half", length=300, rotary_dim=32)
NEIGHBOURS = {}


def neighbour(name, says):
    def add(build):
        NEIGHBOURS[build.__name__] = build, name, says
        return build

    return add


@neighbour("stale", "gets the tensor of positions again, though its numbers have changed")
def cached_by_the_tensor_of_positions():
    kept = {}

    def function(q, k, positions):
        if kept.get("of") is not positions:
            kept.update(of=positions, places=places_of(q, k, positions).clone())
        return alone(q, kept["places"], WORLD), alone(k, kept["places"], WORLD)

    return function


@neighbour("random", "not deterministic.* in some calls they come back as they went in")
def a_race_in_long_calls():
    generator = torch.Generator().manual_seed(0)

    def one(x, places):
        lost = torch.rand(*x.shape[:3], 1, generator=generator) < 0.05 * (x.shape[2] > 100)
        return torch.where(lost, x, alone(x, places, WORLD))

    return by(one)


@neighbour("uneven_lengths", "factors of their own, before it is rotated")
def weights_for_each_entry_before():
    weights = torch.linspace(0.8, 1.3, WORLD.dim, dtype=torch.float64)
    return by(lambda x, places: alone((x * weights).to(x.dtype), places, WORLD))


@neighbour("changed_inputs", "if a token comes alone, q and k are rotated in place")
def in_place_if_alone():
    def one(x, places):
        found = alone(x, places, WORLD)
        return x.copy_(found) if x.shape[2] == 1 else found

    return by(one)


@pytest.mark.parametrize("name", NEIGHBOURS)
def test_a_neighbour_of_a_learnt_mistake_is_named(name):
    build, called, says = NEIGHBOURS[name]
    report = diagnosed(WORLD, build())
    assert re.search(says, report.mistakes.get(called, "")), str(report)
