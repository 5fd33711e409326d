"""The report's sentence about a mistake is specific: it says which position, which factor or which pairs are wrong."""

import math

import pytest
import torch

from ropebook import rope
from ropebook.diagnose import diagnose
from ropebook.diagnose.names import NAMES
from tests.diagnose_world import World
from tests.fresh_world import alone, by, places_of, rotated, sound, with_frequencies
from tests.together import together

HOW = {"call": "q, k, positions", "order": "batch heads seq dim"}
WORLD = World(16, 500.0, "half", 300, 16)
PAIRS = torch.arange(8)
THETA = WORLD.frequencies


def said_of(rotation, world=WORLD, dim=16):
    """Return the report's sentences about all mistakes as one string."""
    report = diagnose(rotation, dim=dim, **HOW, **world.declared)
    assert report.verdict == "wrong", str(report)
    assert set(report.mistakes) <= set(NAMES)
    return "\n".join(f"{name}: {sentence}" for name, sentence in report.mistakes.items())


def moved(move):
    return by(lambda x, places: alone(x, move(x, places), WORLD))


def if_alone(change):
    return moved(lambda x, places: change(places) if x.shape[2] == 1 else places)


def in_rows(change):
    return moved(lambda x, places: change(places) if places.ndim == 3 else places)


POSITIONS = {
    "A token alone: it is rotated as if at position 0": if_alone(lambda p: p * 0),
    "A token alone: it is rotated as if it were one position too early": if_alone(lambda p: p - 1),
    "A token alone: positions are half as large": if_alone(lambda p: p / 2),
    "the same position, that of the first one": moved(lambda x, p: p[..., :1].expand(p.shape)),
    "the same position, that of the last one": moved(lambda x, p: p[..., -1:].expand(p.shape)),
    "the same position, the mean of them": moved(lambda x, p: p.mean(-1, keepdim=True).expand(p.shape)),
    "the start of the call (its offset) is counted twice": moved(lambda x, p: p + p[..., :1]),
    "too far by the number of tokens in the call": moved(lambda x, p: p + x.shape[2]),
    "each is the largest so far": moved(lambda x, p: p.cummax(-1)[0]),
    "Row 1 of a batch: every token is rotated as if it were 3 positions too far": in_rows(
        lambda p: torch.cat((p[:1], p[1:] + 3))
    ),
    "every row is rotated at the positions of the last row": in_rows(lambda p: p[-1:].expand(p.shape)),
    "Position 0 is rotated as if at 1": moved(lambda x, p: torch.where(p == 0, 1.0, p)),
}


@together("words", POSITIONS)
def test_it_is_said_where_tokens_are_rotated(words):
    assert words.lower() in said_of(POSITIONS[words]).lower()


FREQUENCIES = {
    "pairs 4 to 7 do not rotate at all": THETA * (PAIRS < 4),
    "pairs 1 to 7 do not rotate at all": THETA * (PAIRS < 1),
    "have the frequencies of pairs 0, 2, 4, 6, 1, 3, 5, 7": torch.cat((THETA[0::2], THETA[1::2])),
    "have the frequencies of pairs 7, 0, 1, 2, 3, 4, 5, 6": THETA.roll(1),
    "pair 2 rotates 3 times as fast as it should": THETA * torch.where(PAIRS == 2, 3.0, 1.0),
    "4 times too slowly": THETA / 4,
    "that factor is 2π": THETA / (2 * math.pi),
    "shifted by 2 pairs": THETA * 500.0 ** (-4 / 16),
    "divided by 3 times the width, 48 instead of 16": rope.inv_freq(48, 500.0)[:8],
    "both ends counted": 500.0 ** -torch.linspace(0, 1, 8, dtype=torch.float64),
    "every exponent is 0": torch.ones(8, dtype=torch.float64),
    "logarithm to base 10": rope.inv_freq(16, 500.0 ** (1 / math.log(10))),
    "each by a different factor (2 to 9)": THETA / torch.linspace(2, 9, 8),
    "rounded to few digits": torch.tensor([float(f"{one:.2g}") for one in THETA.tolist()], dtype=torch.float64),
}


@pytest.mark.parametrize("words", FREQUENCIES)
def test_it_is_said_which_pairs_have_which_frequencies(words):
    assert words in said_of(with_frequencies(WORLD, FREQUENCIES[words])).lower()


def test_it_is_said_which_of_q_and_k_has_other_frequencies():
    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places, WORLD), rotated(k, places[..., None] * THETA / 3, "half")

    assert "q: as it should be; k: pairs 0 to 7 rotate 3 times too slowly" in said_of(rotation)


@pytest.mark.parametrize("kind", [torch.bfloat16, torch.float16])
def test_it_is_said_what_is_rounded(kind):
    def angles(x, places):
        return rotated(x, (places[..., None].to(kind) * THETA.to(kind)).double(), "half")

    name = str(kind).removeprefix("torch.")
    assert f"frequencies and angles are rounded to {name}" in said_of(by(angles))

    def with_vectors(x, places):
        narrow = places.to(x.dtype)[..., None] * THETA.to(x.dtype) if x.dtype == kind else places[..., None] * THETA
        return rotated(x, narrow.double(), "half")

    far = World(16, 500.0, "half", 4096, 16)
    assert f"half_vectors: with vectors of {name}" in said_of(by(with_vectors), far)
    inside = by(lambda x, places: alone(x.to(kind).to(x.dtype), places, WORLD))
    assert f"rounded to {name} before they are rotated" in said_of(inside)


def test_tables_of_few_digits_are_told_from_angles_in_steps():
    eight = by(
        lambda x, places: rotated(
            x,
            places[..., None] * THETA,
            "half",
            turn=lambda a, b, c, s: turn_by(a, b, (c * 127).round() / 127, (s * 127).round() / 127),
        )
    )
    assert "cosines and sines are rounded" in said_of(eight)
    step = 2 * math.pi / 256
    steps = by(lambda x, places: rotated(x, (places[..., None] * THETA / step).round() * step, "half"))
    assert "angles are rounded: they come in steps" in said_of(steps)


def turn_by(first, second, cos, sin):
    return first * cos - second * sin, first * sin + second * cos


# --- What a function remembers ---


def remembering(longest):
    def one(x, places):
        longest[0] = max(longest[0], places.max().item() + 1)
        return rotated(x, places[..., None] * THETA * 300 / longest[0], "half")

    return by(one)


def test_a_call_beyond_the_length_must_not_change_the_others():
    said = said_of(remembering([300]))
    assert "stale: after a call that goes beyond the declared length of 300" in said
    grown = by(lambda x, p: rotated(x, p[..., None] * THETA * 300 / max(300, p.max().item() + 1), "half"))
    assert "depends_on_text: in a call that goes beyond the declared length" in said_of(grown)
    assert "stale" not in said_of(grown)


def test_what_is_done_to_a_position_beyond_the_length_is_no_mistake():
    for beyond in (lambda p: p.clamp(max=299), lambda p: p % 300):
        rotation = moved(lambda x, places, beyond=beyond: beyond(places))
        assert diagnose(rotation, dim=16, **HOW, **WORLD.declared).sound


def test_calls_that_alternate_are_told_at_once():
    calls = [0]

    def rotation(q, k, positions):
        calls[0] += 1
        places = places_of(q, k, positions) * (1 if calls[0] % 2 else -1)
        return alone(q, places, WORLD), alone(k, places, WORLD)

    said = said_of(rotation)
    assert said.startswith("stale: the same call gives another result each time")
    assert "they alternate. In a later call, of q, pairs 0 to 7 rotate the other way" in said


# --- Entries and lengths ---


def test_entries_that_come_back_elsewhere_are_listed():
    swapped = by(lambda x, places: torch.cat(alone(x, places, WORLD).chunk(2, -1)[::-1], -1))
    assert "at position 0 already entry 0 comes back as 8, 1 comes back as 9" in said_of(swapped)


def test_pairs_across_the_head_are_told_with_the_right_partner():
    partial = World(16, 500.0, "half", 300, 8)
    theta = torch.cat((partial.frequencies, torch.zeros(4, dtype=torch.float64)))
    said = said_of(by(lambda x, places: rotated(x, places[..., None] * theta, "half")), partial)
    assert "entry 0 is paired with entry 8 (half of 16 further), and should be with entry 4" in said


def test_nothing_is_rotated_though_vectors_are_lengthened():
    part = World(16, 500_000.0, "half", 4096, 8, "yarn", 4.0)
    said = said_of(with_frequencies(part, torch.zeros(4, dtype=torch.float64)), part)
    assert "they are not rotated at all" in said
    assert "only lengthened" in said


@pytest.mark.parametrize("times", [0, 2])
def test_the_attention_factor_is_missing_or_comes_twice(times):
    world = World(16, 500_000.0, "half", 4096, 16, "yarn", 4.0)
    said = said_of(with_frequencies(world, world.frequencies, world.lengthened**times), world)
    assert f"attention factor (mscale) is {'applied twice' if times else 'not applied'}" in said


def test_scaled_frequencies_are_wrong_once_all_else_is_declared():
    slow = with_frequencies(WORLD, THETA / 8)
    less = {name: value for name, value in WORLD.declared.items() if name != "length"}
    assert diagnose(slow, dim=16, **HOW, **less).verdict == "undetermined"
    assert "though no scaling was declared: linear, by 8" in said_of(slow)
    assert diagnose(slow, dim=16, **HOW, **WORLD.declared, inv_freq=THETA / 8).sound
    assert diagnose(sound(WORLD), dim=16, **HOW, **WORLD.declared).sound
