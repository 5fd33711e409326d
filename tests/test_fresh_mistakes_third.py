"""Test that the third set of fresh mistakes is what it claims to be. The diagnosis plays no part here.

Every mistake is compared in random worlds with a rotation by complex numbers in float64. It must differ where it claims
to, and only there. Functions that claim to be sound must agree with the rotation.
"""

import dataclasses
import functools
import itertools
import math
import random
import re

import torch

from ropebook import rope
from tests.fresh_mistakes_third import FRESH, SOUND
from tests.together import together

WORLDS, ASPECTS = 60, {"base", "frequency", "position", "layout", "hand", "phase", "share", "angle", "value", "length"}
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-9}
# A mistake must change a result by at least ten times the float32 tolerance.
VISIBLE = 10 * TOLERANCE[torch.float32]
HEADS, KEY_HEADS, ROWS = 4, 2, 2

# Each of these sentences blames something without saying how it is wrong, so none of them names a mistake.
SAYS_NOTHING = (
    "",
    "The rotation is wrong.",
    "q and k are wrong.",
    "Both are rotated wrongly.",
    "The function is not a sound rotary embedding.",
    "This is not the rotation that was declared.",
    "The result differs from the sound rotation in q and k.",
    "Both differ from the declared rotation at every position.",
    "Neither q nor k agrees with the declared rotation.",
    "q is not rotated as declared.",
    "The keys are not rotated correctly.",
    "The queries are wrong and the keys are right.",
    "The positions are wrong.",
    "The frequencies are wrong.",
    "The base is wrong.",
    "The angles are wrong.",
    "Pairs are rotated by wrong angles.",
    "Something is wrong with the pairs.",
    "The values are wrong.",
    "The cosines and sines are wrong.",
    "The length of the vectors is wrong.",
    "The scaling is wrong.",
    "The heads are wrong.",
    "Some entries of the head are wrong.",
    "Rows of the batch are wrong.",
    "Large positions are wrong.",
    "A token that comes alone is wrong.",
    "The precision cannot be judged.",
    "We cannot tell what is wrong.",
    "Undetermined: nothing can be said about q and k.",
    "An error was raised.",
    "The function is sound.",
)


# --- Worlds ---


@dataclasses.dataclass(frozen=True)
class World:
    """The part of an author's declaration that the mistakes depend on."""

    layout: str
    dim: int
    rotary_dim: int
    base: float
    scaled: str
    factor: float
    lengthened: float
    frequencies: torch.Tensor


def keep_of(scaled, theta, draw):
    """Return the fraction of each frequency that the scaling keeps."""
    if scaled == "linear":
        return torch.zeros_like(theta)
    if scaled == "llama3":
        length = draw.choice((64, 512, 8192))
        return ((length * theta / (2 * math.pi) - 1) / 3).clamp(0, 1)
    low = draw.uniform(0, 0.4) * len(theta)
    high = low + draw.uniform(0.2, 0.5) * len(theta)
    return 1 - ((torch.arange(len(theta)) - low) / (high - low)).clamp(0, 1).double()


@functools.cache
def world_of(seed):
    draw = random.Random(seed)
    dim = draw.choice((8, 16, 32, 64))
    rotary_dim = dim // draw.choice((1, 1, 2, 4))
    base = draw.choice((100.0, 10000.0, 500000.0))
    scaled = draw.choice(("plain", "plain", "linear", "llama3", "yarn"))
    theta = base ** -(torch.arange(0, rotary_dim, 2, dtype=torch.float64) / rotary_dim)
    factor = 1.0 if scaled == "plain" else draw.choice((2.0, 4.0, 8.0, 32.0))
    if scaled != "plain":
        keep = keep_of(scaled, theta, draw)
        theta = theta * (keep + (1 - keep) / factor)
    lengthened = 0.1 * math.log(factor) + 1 if scaled == "yarn" else 1.0
    layout = draw.choice(("interleaved", "half"))
    return World(layout, dim, rotary_dim, base, scaled, factor, lengthened, theta)


def sound(x, positions, world):
    """Rotate x by complex numbers in float64."""
    places = positions.double() if positions.ndim == 1 else positions.double()[:, None]
    first, second = rope.split(x[..., : world.rotary_dim].double(), world.layout)
    turned = torch.complex(first, second) * torch.exp(1j * places[..., None] * world.frequencies)
    inner = rope.join(turned.real, turned.imag, world.layout) * world.lengthened
    return torch.cat((inner, x[..., world.rotary_dim :].double()), -1)


# --- Calls ---

CALLS = {
    "small": [torch.arange(12)],
    "large": [torch.arange(12) + 201],
    "one": [torch.tensor([77])],
    "rows": [torch.stack((torch.arange(12) + 5, torch.arange(12) + 40))],
    "packed": [torch.tensor([0, 1, 2, 3, 4, 0, 1, 2, 3, 0, 1, 2])],
    "again": [torch.arange(12) + 3, torch.arange(12) + 90],
}


def errors(build, world, call, dtype=torch.float32, seed=0):
    """Return the largest differences of q and of k from the correct rotation, for the last of the call's positions."""
    function, generator = build(world), torch.Generator().manual_seed(seed)
    for positions in CALLS[call]:
        q, k = (
            torch.randn(ROWS, heads, positions.shape[-1], world.dim, generator=generator, dtype=torch.float64).to(dtype)
            for heads in (HEADS, KEY_HEADS)
        )
        before = q.clone(), k.clone()
        answer = function(q, k, positions)
        assert all(torch.equal(x, kept) for x, kept in zip((q, k), before, strict=True)), "the input is overwritten"
        assert all(x.shape == y.shape and x.dtype == y.dtype for x, y in zip(answer, (q, k), strict=True))
    # NaN counts as a difference, too
    return tuple(
        (x.double() - sound(before, positions, world)).abs().nan_to_num(nan=math.inf).max().item()
        for x, before in zip(answer, (q, k), strict=True)
    )


def worlds_of(fresh, count=3):
    return list(itertools.islice(filter(fresh.when, map(world_of, range(WORLDS))), count))


# --- Mistakes ---


def test_there_are_enough_and_no_two_have_the_same_source():
    assert len(FRESH) >= 40
    assert len(SOUND) >= 8
    sources = [fresh.source for fresh in FRESH.values()]
    assert len(set(sources)) == len(sources)


@together("name", FRESH)
def test_a_mistake_tells_its_truth_and_names_a_source_with_a_date(name):
    fresh = FRESH[name]
    assert re.fullmatch(r"[A-Z][^.]*(\.\d[^.]*)*(\b[\w.]+\.\w[^.]*)*\.", fresh.truth), (
        f"not one sentence: {fresh.truth}"
    )
    months = "January|February|March|April|May|June|July|August|September|October|November|December"
    assert re.search(rf"\b\d{{1,2}} ({months}) 20[12]\d$", fresh.source), fresh.source
    assert re.search(r"(issue|pull request) \d+", fresh.source), fresh.source
    assert fresh.refuse.startswith(("that ", "the same "))


@together("name", FRESH)
def test_facts_and_calls_are_known(name):
    fresh = FRESH[name]
    assert {fact["which"] for fact in fresh.facts} in ({"both"}, {"q"}, {"k"}, {"q", "k"})
    assert {fact["aspect"] for fact in fresh.facts} <= ASPECTS
    assert all(fact["how"].strip() for fact in fresh.facts)
    assert set(fresh.seen) <= CALLS.keys()
    assert fresh.seen
    assert fresh.accept


@together("name", FRESH)
def test_a_mistake_differs_from_the_sound_rotation_in_what_it_claims_and_nowhere_else(name):
    fresh = FRESH[name]
    claimed = {fact["which"] for fact in fresh.facts}
    worlds = worlds_of(fresh)
    assert len(worlds) >= 2, "in too few worlds this is a mistake"
    for world, call, dtype in itertools.product(worlds, fresh.seen, TOLERANCE):
        for which, error in zip("qk", errors(fresh.build, world, call, dtype), strict=True):
            if claimed & {which, "both"}:
                assert error > VISIBLE, f"{which} isn't wrong in call {call}, {dtype}, {world}"
            else:
                assert error < TOLERANCE[dtype] * 10, f"{which} is wrong in call {call}, {dtype}, {world}"


@together("name", FRESH)
def test_a_mistake_answers_every_call_and_leaves_its_input_alone(name):
    fresh = FRESH[name]
    for world, call in itertools.product(worlds_of(fresh, 4), CALLS):
        errors(fresh.build, world, call)


# --- Patterns ---


def matching(fresh, text):
    return [pattern for pattern in fresh.accept if re.search(pattern, text, re.IGNORECASE)]


@together("name", FRESH)
def test_patterns_accept_the_truth(name):
    assert matching(FRESH[name], FRESH[name].truth)


@together("name", FRESH)
def test_patterns_accept_nothing_that_says_nothing(name):
    found = {text: matching(FRESH[name], text) for text in SAYS_NOTHING}
    assert not any(found.values()), {text: patterns for text, patterns in found.items() if patterns}


@together("name", FRESH)
def test_patterns_tell_mistakes_apart(name):
    """The patterns of one mistake may match the descriptions of related mistakes, but of at most a tenth of all
    mistakes."""
    others = [other for other, fresh in FRESH.items() if other != name and matching(FRESH[name], fresh.truth)]
    assert len(others) <= len(FRESH) / 10, others


# --- Sound functions ---


@together("name", SOUND)
def test_a_sound_function_is_sound(name):
    for seed, call, dtype in itertools.product(range(6), CALLS, TOLERANCE):
        for which, error in zip("qk", errors(SOUND[name], world_of(seed), call, dtype), strict=True):
            assert error < TOLERANCE[dtype], f"{which} is wrong by {error} in call {call}, {dtype}, {world_of(seed)}"
