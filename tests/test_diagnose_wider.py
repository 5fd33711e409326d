"""The diagnosis names mistakes of further kinds. It also names fresh mistakes, as judged by the patterns of their
author, and finds no mistake in a sound rotation."""

import dataclasses
import math
import random as chance
import re

import pytest
import torch

from ropebook import rope
from ropebook.diagnose import diagnose
from ropebook.diagnose.names import NAMES
from ropebook.diagnose.versus import compared
from ropebook.diagnose.warps import alike
from tests import diagnose_wider, diagnose_world
from tests.fresh_mistakes import FRESH
from tests.scripts import benchmark
from tests.together import together

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}
WORLD = diagnose_world.World(32, 10_000.0, "half", 2048, 32)
# These mistakes have an effect only if there are as many tokens as heads, or if positions decrease. `differs` tries
# neither.
UNSEEN = ("axes_confused_if_equal", "positions_sorted", "positions_that_never_go_back")


def diagnosed(world, rotation):
    return diagnose(rotation, dim=world.dim, **HOW, **world.declared)


def said_of(body, world=WORLD):
    return diagnosed(world, type("rotate", (diagnose_world.Stages,), body)(world))


@pytest.mark.parametrize("name", diagnose_wider.MISTAKES)
def test_a_mistake_of_another_kind_is_named(name):
    generator = chance.Random(name)
    mistake = diagnose_wider.MISTAKES[name]
    while True:
        world = diagnose_world.world_at_random(generator)
        if not mistake.when(world):
            continue
        rotation = diagnose_world.compose(world, (name,), diagnose_wider.MISTAKES)
        if name in UNSEEN or diagnose_world.differs(rotation, diagnose_world.compose(world, ()), world):
            break
    rotation = diagnose_world.compose(world, (name,), diagnose_wider.MISTAKES)
    report = diagnosed(world, rotation)
    assert report.verdict == "wrong", (world, str(report))
    assert set(report.mistakes) & set(mistake.called), (world, report.mistakes)
    assert set(report.mistakes) <= set(NAMES)


@pytest.mark.parametrize("name", FRESH)
def test_a_fresh_mistake_is_named_by_its_author_s_rule(name):
    generator = chance.Random(name)
    fresh = FRESH[name]
    world = diagnose_world.world_at_random(generator)
    while not fresh.when(world):
        world = diagnose_world.world_at_random(generator)
    report = diagnosed(world, fresh.build(world))
    said = [f"{one}: {sentence}" for one, sentence in report.mistakes.items()]
    assert report.verdict == "wrong"
    assert any(re.search(form, text, re.IGNORECASE) for form in fresh.accept for text in said), said


def test_rotations_in_float32_are_sound():
    generator = chance.Random(11)
    for _ in range(4):
        world = diagnose_world.world_at_random(generator)

        def single(q, k, positions, world=world):
            theta = world.frequencies.float()
            if world.scaled == "plain":
                pair = torch.arange(0, world.rotary_dim, 2).float()
                theta = torch.exp(pair * (-math.log(world.base) / world.rotary_dim))
            angles = positions.float()[..., None] * theta
            angles = angles[:, None] if angles.ndim == 3 else angles
            cos, sin = angles.cos() * world.lengthened, angles.sin() * world.lengthened

            def turned(x):
                part = x[..., : world.rotary_dim].float()
                first, second = rope.split(part, world.layout)
                pair = rope.join(first * cos - second * sin, first * sin + second * cos, world.layout)
                return torch.cat((pair, x[..., world.rotary_dim :].float()), -1).to(x.dtype)

            return turned(q), turned(k)

        report = diagnosed(world, single)
        assert report.verdict == "sound", (world, str(report))


# --- What a function refuses ---


def test_a_trial_that_raises_is_said_to_be_unasked():
    sound = diagnose_world.compose(WORLD, ())

    def particular(q, k, positions):
        if not (q.any() and k.any()):
            raise RuntimeError("no zeros, please")
        if (q[..., 0] == 0).any():
            raise RuntimeError("no zeros, please")
        return sound(q, k, positions)

    report = diagnosed(WORLD, particular)
    assert report.verdict == "undetermined"
    assert "no zeros, please" in report.undetermined["not_asked"]

    def only_many(q, k, positions):
        if q.shape[1] != k.shape[1]:
            raise RuntimeError("as many heads")
        return sound(q, k, positions)

    report = diagnosed(WORLD, only_many)
    assert report.sound
    assert "with fewer heads of k" in report.evidence["not asked"]


def test_a_rotation_along_the_heads_that_looks_at_shapes_is_named():
    def along(q, k, positions):
        if positions.shape[-1] != q.shape[2]:
            raise ValueError("a position for each token")
        angles = torch.arange(q.shape[1]).double()[:, None, None] * WORLD.frequencies

        def turned(x):
            first, second = rope.split(x, "half")
            cos, sin = angles.cos(), angles.sin()
            return rope.join(first * cos - second * sin, first * sin + second * cos, "half")

        return turned(q), turned(k)

    assert list(diagnosed(WORLD, along).mistakes) == ["wrong_axis"]


# --- Where two results differ ---


def test_it_is_said_which_of_q_and_k_forgets_where_a_text_starts():
    def since_the_first(self, positions, role, seq):
        return positions.double() - (positions[..., :1] if role == "q" else 0)

    said = said_of({"places": since_the_first}).mistakes["ignored_start"]
    assert said.startswith("of q alone, ")
    assert "each text starts at 0" in said


def test_a_token_alone_is_told_by_heads_and_rows():
    def first_head(self, one, x, role):
        return torch.cat((one(x, role)[:, :1], x[:, 1:]), 1) if x.shape[2] == 1 else one(x, role)

    assert "in heads 1 and 2, it comes back as it went in" in said_of({"where": first_head}).mistakes["one_token"]

    def first_row(self, one, x, role):
        return torch.cat((one(x, role)[:1], 0 * x[1:])) if x.shape[2] == 1 else one(x, role)

    assert "in row 1, it comes back as zeros" in said_of({"where": first_row}).mistakes["one_token"]


def test_fewer_heads_of_the_key_and_one_row_are_asked_for():
    def fewer(self, one, x, role):
        return one(x, role) * (1 if x.shape[1] == 3 else 2)

    said = said_of({"where": fewer}).mistakes
    assert list(said) == ["other_heads"]
    assert "k, it comes back 2 times as long" in said["other_heads"]

    def alone(self, one, x, role):
        return one(x, role) * (1 if x.shape[0] == 2 else 2)

    assert "a batch of one row" in said_of({"where": alone}).mistakes["other_rows"]


def test_a_call_that_changes_later_ones_is_seen():
    def tired(self, places, theta, role):
        self.memory["calls"] = self.memory.get("calls", 0) + 1
        return places[..., None] * theta * (1 if self.memory["calls"] < 60 else 1.5)

    assert said_of({"angles": tired}).verdict == "wrong"


def test_far_tokens_of_a_long_text_are_looked_at():
    def block(self, one, x, role):
        return torch.cat((one(x, role)[:, :, :1500], x[:, :, 1500:]), 2)

    said = said_of({"where": block}).mistakes
    assert "in tokens 1500 to 2047, it comes back as it went in" in said["depends_on_text"]


def test_errors_that_float32_does_not_make_are_seen_far_away():
    short = {"angles": lambda self, places, theta, role: torch.remainder(places[..., None] * theta, 6.2832)}
    assert list(said_of(short).mistakes) == ["drift"]
    near = {"theta": lambda self: self.world.frequencies * (1 + 1e-5)}
    assert said_of(near).verdict == "wrong"


# --- Frequencies, pairs and entries ---


def test_pairs_with_other_frequencies_are_counted():
    right = rope.inv_freq(16)
    changed = right * torch.tensor([1, 1, 1, 0.5, 0.25, 1, 1, 1])
    said = "pairs 3 and 4 rotate too slowly, each by a different factor (2 to 4), and the other pairs are right"
    assert compared(changed, right, 1e-3) == said
    world = dataclasses.replace(WORLD, length=8192, scaled="llama3", factor=4.0)
    some = {"theta": lambda self: self.world.frequencies * (1 + (torch.arange(16) == 5))}
    assert "pair 5 rotates 2 times as fast as it should" in said_of(some, world).mistakes["other_scaling"].lower()


def test_what_no_name_fits_is_written_as_a_formula():
    def own(self, x, cos, sin, role):
        first, second = rope.split(x, self.world.layout)
        return rope.join(2 * first * cos - second, first * sin * cos + second, self.world.layout)

    said = said_of({"turn": own}).mistakes["unknown"]
    assert "(a, b) goes to (2·a·cos φ − b, a·cos φ·sin φ + b)" in said
    assert "b·sin φ" in said


def test_mistakes_that_hide_each_other_are_guessed():
    def half(self, x, cos, sin, role):
        first, second = rope.split(x, self.world.layout)
        return rope.join(first * cos - second * sin, second, self.world.layout)

    added = {"turn": half, "who": lambda self, one, q, k, v: (q + one(q, "q"), k + one(k, "k"), v)}
    assert {"half_turned", "added"} <= set(said_of(added).mistakes)
    added["theta"] = lambda self: self.world.frequencies.flip(0)
    assert {"half_turned", "added", "reversed_frequencies"} <= set(said_of(added).mistakes)


def test_entries_that_should_pass_through_are_looked_at():
    world = dataclasses.replace(WORLD, rotary_dim=16)

    def lost(self, one, x, role):
        return torch.cat((one(x, role)[..., :16], 0 * x[..., 16:]), -1)

    said = said_of({"where": lost}, world).mistakes
    assert list(said) == ["other_rest"]
    assert "entries 16 to 31" in said["other_rest"]
    assert "zeros" in said["other_rest"]


@together(
    ("places", "found"),
    [
        ([m // 3 for m in range(24)], [m // 3 for m in range(24)]),
        ([m % 7 for m in range(24)], [m % 7 for m in range(24)]),
        ([min(m, 9) for m in range(24)], [min(m, 9) for m in range(24)]),
        ([0] * 24, None),
        (list(range(24)), None),
        ([m * (m % 2) for m in range(24)], None),
    ],
)
def test_positions_that_are_alike_are_found_whatever_is_done_there(places, found):
    seen = alike(torch.tensor(places, dtype=torch.float64)[:, None].square())
    assert (seen if seen is None else seen.tolist()) == found


# --- The benchmark ---


def test_an_unfinished_run_goes_on_where_it_stopped(tmp_path):
    tried, journal = benchmark("diagnose"), tmp_path / "journal.jsonl"

    def reports(rest):
        return ((("name",), "wrong", [str(draw)]) for draw in rest)

    unfinished = tried.resumed(iter(range(5)), journal, reports)
    seen = [next(unfinished) for _ in range(3)]
    unfinished.close()
    with journal.open("a") as file:
        file.write('[["name"], "wro')

    def others(rest):
        return ((("name",), "sound", []) for _ in rest)

    whole = list(tried.resumed(iter(range(5)), journal, others))
    assert whole == [*seen, (("name",), "sound", []), (("name",), "sound", [])]
    assert not journal.exists()
    journal.write_text('of another day\n[["name"], "wrong", []]\n')
    assert [verdict for _, verdict, _ in tried.resumed(iter(range(2)), journal, others)] == ["sound", "sound"]


# --- The benchmark of fresh sets ---


def test_a_fresh_set_is_counted_by_its_author_s_rule():
    tried = benchmark("diagnose")
    some = {name: FRESH[name] for name in ("doubled_positions", "base_of_the_longest")}
    tried.TRIED.update(some)
    draws = list(tried.fresh_at_random(some, 1, 1))
    assert [name for name, _ in draws] == list(some)
    found = tried.tried_fresh(map(tried.told_fresh, draws), some)
    assert [row["named"] for row in found["each"]] == [1, 1]
    assert found["verdicts"] == {"wrong": 2}
