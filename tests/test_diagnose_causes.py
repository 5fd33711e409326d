"""The report's sentence about a mistake names its cause: the tensor, head, row, position, frequency or entry of a pair
that is wrong."""

import random as chance

import pytest
import torch

from ropebook import rope
from ropebook.diagnose import diagnose
from ropebook.diagnose.frequencies import read
from ropebook.diagnose.names import NAMES, PARTS, part
from ropebook.diagnose.warps import warp
from tests import diagnose_held_back, diagnose_more
from tests import diagnose_world as worlds
from tests.together import together

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}
LATER = {**diagnose_held_back.MISTAKES, **diagnose_more.MISTAKES}
WORLD = worlds.World(32, 10_000.0, "half", 2048, 32)


def said_of(body, world=WORLD, **options):
    """The report on a rotation whose stages are replaced by these functions."""
    rotation = type("rotate", (worlds.Stages,), body)(world)
    return diagnose(rotation, dim=world.dim, **HOW, **(options or world.declared))


@pytest.mark.parametrize("name", LATER)
def test_a_later_mistake_alone_is_named(name):
    generator = chance.Random(name)
    mistake = LATER[name]
    while True:
        world = worlds.world_at_random(generator)
        rotation = worlds.compose(world, (name,), LATER)
        if mistake.when(world) and worlds.differs(rotation, worlds.compose(world, ()), world):
            break
    report = diagnose(rotation, dim=world.dim, **HOW, **world.declared)
    assert set(report.mistakes) & set(mistake.called), (world, report.mistakes)
    assert set(report.mistakes) <= set(NAMES)


def test_every_name_belongs_to_one_part():
    assert all(part(name) in PARTS for name in NAMES)
    known = {**worlds.MISTAKES, **LATER}
    assert {name for one in known.values() for name in one.called} <= set(NAMES)


# --- Heads, rows and tokens ---


def test_it_is_said_how_other_heads_are_turned():
    def still(self, one, x, role):
        return torch.cat((x[:, :1], one(x, role)[:, 1:]), 1)

    report = said_of({"where": still})
    assert list(report.mistakes) == ["other_heads"]
    assert report.mistakes["other_heads"].startswith("heads 0 are not turned as head 1 is")
    assert "head 0 comes back as it went in" in report.mistakes["other_heads"]

    def zero(self, one, x, role):
        return torch.cat((one(x, role)[:, :2], 0 * x[:, 2:]), 1)

    assert "heads 2 are not" in said_of({"where": zero}).mistakes["other_heads"]
    assert "head 2 comes back as zeros" in said_of({"where": zero}).mistakes["other_heads"]

    def later(self, positions, role, seq):
        return positions.double()[..., None, :] + 2 * torch.arange(3)[:, None]

    assert "head 1 is turned by positions that are +2 off" in said_of({"places": later}).mistakes["other_heads"]


def test_tokens_that_change_places_are_seen():
    def reshaped(self, one, x, role):
        return one(x, role).transpose(1, 2).reshape(x.shape)

    assert "moved" in said_of({"where": reshaped}).mistakes

    def rolled(self, one, x, role):
        return one(x, role).roll(1, 2)

    moved = said_of({"where": rolled}).mistakes["moved"]
    assert "row 1, head 2, token 3 as q comes back at row 1, head 2, token 4" in moved


def test_query_and_key_are_told_apart():
    exchanged = said_of({"who": lambda self, one, q, k, v: (one(k, "k"), one(q, "q"), v)})
    assert exchanged.mistakes == {"crossed": "q and k come back in each other's place"}
    mixed = said_of({"who": lambda self, one, q, k, v: (one(q + 0.5 * k, "q"), one(k, "k"), v)})
    assert "is made of k as well" in mixed.mistakes["crossed"]
    # other mistakes are still seen
    both = {"who": lambda self, one, q, k, v: (one(k, "q"), one(q, "k"), v)}
    both["places"] = lambda self, positions, role, seq: positions.double() + (role == "k")
    assert set(said_of(both).mistakes) == {"crossed", "shifted_key"}


# --- Positions ---


@together(
    ("places", "name", "said", "far"),
    [
        ([m % 7 for m in range(48)], "wrapped", "position 7 is turned like 0", 100 % 7),
        ([min(m, 20) for m in range(48)], "clamped", "from position 20 on", 20),
        ([m * (m < 30) for m in range(48)], "clamped", "from position 30 on nothing", 0),
        ([m // 4 for m in range(48)], "other_positions", "steps of 4", 25),
        ([*range(47), 0], "other_positions", "the last token of a text is turned like position 0", None),
        ([m * (m % 2) for m in range(48)], "other_positions", "as if they were 0, 1, 0, 3", None),
    ],
)
def test_the_rule_behind_positions_is_found(places, name, said, far):
    found = warp(tuple(places))
    assert found.name == name
    assert said in found.said
    assert (found.at and found.at(torch.tensor(100)).item()) == far


def test_positions_that_are_read_as_others_keep_their_frequencies():
    for change, name in ((lambda m: m // 3, "other_positions"), (lambda m: m % 16, "wrapped")):
        report = said_of({"places": lambda self, positions, role, seq, change=change: change(positions).double()})
        assert list(report.mistakes) == [name]
        assert report.base == 10_000.0


def test_a_number_of_eight_bits_runs_over():
    report = said_of({"places": lambda self, positions, role, seq: positions.to(torch.int8).double()})
    assert list(report.mistakes) == ["wrapped"]
    assert "position 257 is turned like 1" in report.mistakes["wrapped"]


def test_far_positions_that_follow_no_rule_are_not_called_wrapped():
    def back(self, positions, role, seq):
        return torch.where(positions < 700, positions, 2047 - positions).double()

    assert list(said_of({"places": back}).mistakes) == ["other_far"]

    def none(self, positions, role, seq):
        return (positions * (positions < 1000)).double()

    beyond = said_of({"places": none}).mistakes
    assert list(beyond) == ["clamped"]
    assert "position 1003 is not turned at all" in beyond["clamped"]


# --- Pairs and tables ---


def test_what_is_written_instead_of_a_rotation_is_read_off_its_numbers():
    def turn(first_row, second_row):
        def turned(self, x, cos, sin, role):
            first, second = rope.split(x, self.world.layout)
            numbers = (first, second, cos, sin)
            return rope.join(first_row(*numbers), second_row(*numbers), self.world.layout)

        return {"turn": turned}

    def upper(x, y, c, s):
        return x * c - y * s

    def lower(x, y, c, s):
        return x * s + y * c

    known = {
        "overwritten": [
            (upper, lambda x, y, c, s: upper(x, y, c, s) * s + y * c),
            (lambda x, y, c, s: x * c - lower(x, y, c, s) * s, lower),
        ],
        "half_turned": [
            (upper, lambda x, y, c, s: y),
            (lambda x, y, c, s: 0 * x, lower),
            (upper, lambda x, y, c, s: x * c + y * s),
        ],
        "uncrossed": [(lambda x, y, c, s: x * c - x * s, lambda x, y, c, s: y * c + y * s)],
        "missing_cos": [(lambda x, y, c, s: x - y * s, lambda x, y, c, s: y + x * s)],
        "missing_minus": [(lambda x, y, c, s: x * c + y * s, lower)],
        "added": [(lambda x, y, c, s: x + upper(x, y, c, s), lambda x, y, c, s: y + lower(x, y, c, s))],
        "mixed_tables": [
            (lambda x, y, c, s: (x - y) * c, lambda x, y, c, s: (x + y) * c),
            (lambda x, y, c, s: (x - y) * s, lambda x, y, c, s: (x + y) * s),
            (lambda x, y, c, s: 1.5 * x * c - y * s, lambda x, y, c, s: x * s + 1.5 * y * c),
        ],
    }
    tried = ((name, both) for name, rows in known.items() for both in rows)
    for at, (name, both) in enumerate(tried):
        layout = ("half", "interleaved")[at % 2]
        world = worlds.World(32, 500.0, layout, 300, 32)
        report = said_of(turn(*both), world)
        assert list(report.mistakes) == [name] or set(report.mistakes) == {name, "longer"}
        # another mistake is still reported alongside this one
        fast = {"theta": lambda self: self.world.frequencies * 3} | turn(*both)
        if name not in ("missing_cos", "mixed_tables"):
            assert "faster" in said_of(fast, world).mistakes, (name, layout)


def test_a_sine_of_another_position_is_told_by_how_many():
    late = {"tables": lambda self, angles, role: (angles.cos(), (angles - 2 * self.world.frequencies).sin())}
    assert "the sine is that of -2 positions" in said_of(late).mistakes["mixed_tables"]


def test_pairs_with_lengths_or_directions_of_their_own_are_named():
    def lengths(self, x, role):
        factors = torch.linspace(0.5, 1.0, 16, dtype=x.dtype)
        return x * torch.cat((factors, factors))

    assert "uneven_lengths" in said_of({"lengths": lengths}).mistakes
    signs = torch.tensor([1.0, -1.0]).repeat(8).double()
    some = said_of({"angles": lambda self, places, theta, role: places[..., None] * theta * signs})
    assert list(some.mistakes) == ["clockwise"]


def test_pairs_that_stand_still_are_wrong_once_the_width_is_declared():
    def half(self):
        return self.world.frequencies * (torch.arange(16) < 8)

    assert list(said_of({"theta": half}).mistakes) == ["still_pairs"]
    assert said_of({"theta": half}, layout="half", base=10_000.0).verdict == "undetermined"
    first = said_of({"theta": lambda self: self.world.frequencies * (torch.arange(16) > 0)})
    assert list(first.mistakes) == ["still_pairs"]


# --- Longer texts ---


def test_frequencies_that_change_with_the_text_are_no_wrapped_positions():
    def grown(self, places, theta, role):
        return places[..., None] * theta / max(1.0, places.max().item() / 500)

    report = said_of({"angles": grown})
    assert list(report.mistakes) == ["depends_on_text"]
    assert "goes on to 511" in report.mistakes["depends_on_text"]
    by_count = {"places": lambda self, positions, role, seq: positions.double() * (1 + (seq > 1000))}
    assert list(said_of(by_count).mistakes) == ["depends_on_text"]


# --- Edges that a mutation would move ---


def test_two_pairs_are_enough_to_have_no_layout():
    def crosswise(self, x, cos, sin, role):
        x0, x1, x2, x3 = x.unbind(-1)
        (c0, c1), (s0, s1) = cos.unbind(-1), sin.unbind(-1)
        return torch.stack((x0 * c0 - x3 * s0, x1 * c1 - x2 * s1, x1 * s1 + x2 * c1, x0 * s0 + x3 * c0), -1)

    world = worlds.World(4, 100.0, "half", 300, 4)
    assert list(said_of({"turn": crosswise}, world).mistakes) == ["own_layout"]


def test_how_much_too_fast_is_said_without_a_base_as_well():
    fast = {"theta": lambda self: 3 * self.world.frequencies}
    said = said_of(fast, layout="half").mistakes
    assert list(said) == ["faster"]
    assert "3 times as fast" in said["faster"]


@together(("slow", "kind"), [(1, "uneven"), (2, "by parts"), (3, "by parts")])
def test_one_slow_pair_is_no_scaling_by_parts(slow, kind):
    theta = rope.inv_freq(16)
    kept = (torch.arange(8) < 8 - slow).double()
    assert read(theta * (kept + (1 - kept) / 4), 16, 1e-4, 10_000.0).kind == kind


def test_frequencies_that_a_half_type_holds_exactly_are_plain():
    assert read(rope.inv_freq(8, 16.0), 8, 1e-4, 16.0).kind == "plain"
    assert read(rope.inv_freq(8, 17.0).bfloat16().double(), 8, 1e-4, 17.0).kind == "half"


def test_frequencies_that_grow_fast_are_measured_without_an_error():
    theta = torch.tensor([1e-6, 3.0, 1e-6, 2.0, 1e-6, 1.0, 0.5, 1e-6], dtype=torch.float64)
    assert read(theta, 16, 1e-4, None).kind == "uneven"
    assert read(theta.flip(0), 16, 1e-4, None).kind == "uneven"
