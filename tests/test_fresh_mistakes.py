"""Test that the fresh mistakes really are mistakes. Each one differs from the correct rotation in the calls that its
``seen`` field lists, and no two of them are the same."""

import itertools
import math
import random
import re

import pytest
import torch

from tests.diagnose_world import Stages, World
from tests.fresh_mistakes import FRESH
from tests.fresh_world import sound
from tests.together import together

NAMES = sorted(FRESH)
WORLDS = 120
ASPECTS = {"position", "frequency", "direction", "pairing", "length", "scale", "entries", "heads", "rows", "twice"}
ASPECTS |= {"never", "precision", "other"}
BEYOND = 1e-5  # entries of size 1 to 5 in float32: twenty times their rounding error


def world(seed):
    choose = random.Random(seed).choice
    dim, scaled = choose((16, 32, 48, 64, 80, 128)), choose(("plain", "plain", "linear", "yarn", "llama3"))
    part = choose((1, 1, 0.5, 0.25))
    base = choose((500.0, 10_000.0, 10_000.0, 500_000.0, 1e6, round(math.exp(6 + seed % 10), 2)))
    factor = 1.0 if scaled == "plain" else choose((2.0, 4.0, 8.0))
    return World(dim, base, choose(("interleaved", "half")), choose((300, 1024, 4096)), int(dim * part), scaled, factor)


def calls(world, seed=0):
    """Yield the name of each call with its arguments. There are two rows, with four heads of q and two heads of k."""
    generator = torch.Generator().manual_seed(seed)
    starts = {
        "small": torch.arange(3, 10),
        "large": torch.arange(world.length - 7, world.length),
        "far": torch.arange(3 * world.length, 3 * world.length + 7),
        "one": torch.tensor([world.length // 2]),
    }
    for name, positions in starts.items():
        q, k = (torch.randn(2, heads, len(positions), world.dim, generator=generator) for heads in (4, 2))
        yield name, (q, k, positions)


def furthest(ours, theirs):
    return max((a - b).abs().max().item() for a, b in zip(ours, theirs, strict=True))


@pytest.fixture(scope="module")
def worlds():
    return [world(seed) for seed in range(WORLDS)]


@pytest.mark.parametrize("layout", ["interleaved", "half"])
def test_the_sound_rotation_is_one_by_complex_numbers(layout):
    here = World(16, 700.0, layout, 300, 16)
    for _, (q, k, positions) in calls(here):
        angles = torch.outer(positions.double(), 700.0 ** -(torch.arange(8).double() / 8))
        phases = torch.polar(torch.ones_like(angles), angles)
        for x, ours in zip((q, k), sound(here)(q, k, positions), strict=True):
            one, two = (x[..., ::2], x[..., 1::2]) if layout == "interleaved" else (x[..., :8], x[..., 8:])
            expected = torch.complex(one.double(), two.double()) * phases
            one, two = (ours[..., ::2], ours[..., 1::2]) if layout == "interleaved" else (ours[..., :8], ours[..., 8:])
            assert furthest((one, two), (expected.real, expected.imag)) < BEYOND


def test_the_sound_rotation_is_what_each_world_needs(worlds):
    for here in worlds[::3]:
        for _, call in calls(here):
            assert furthest(sound(here)(*call), Stages(here)(*call)) < BEYOND


@together("name", NAMES)
def test_differs_where_it_says(name, worlds):
    mistake = FRESH[name]
    tried = list(itertools.islice(filter(mistake.when, worlds), 5))
    assert len(tried) >= 3
    assert len({(here.dim, here.base) for here in tried}) >= 3
    for here in tried:
        wrong, right = mistake.build(here), sound(here)
        for place, (q, k, positions) in calls(here):
            kept = q.clone(), k.clone()
            out = wrong(q, k, positions)
            assert [x.shape for x in out] == [q.shape, k.shape]
            assert all(x.dtype == torch.float32 and x.isfinite().all() for x in out)
            assert furthest((q, k), kept) == 0
            if place in mistake.seen:
                assert furthest(out, right(q, k, positions)) > BEYOND, (here, place)
            for again in (wrong, mistake.build(here)):
                assert furthest(out, again(q, k, positions)) == 0
            assert furthest(out, wrong(q, k, positions.expand(2, -1))) < 1e-6


@together("name", NAMES)
def test_only_what_is_said_to_be_wrong_is(name, worlds):
    mistake = FRESH[name]
    said = {fact["which"] for fact in mistake.facts}
    here = next(here for here in worlds if mistake.when(here))
    wrong = set()
    for _, (q, k, positions) in calls(here):
        pairs = zip("qk", mistake.build(here)(q, k, positions), sound(here)(q, k, positions), strict=True)
        wrong |= {which for which, ours, right in pairs if furthest((ours,), (right,)) > BEYOND}
    assert wrong == ({"q", "k"} if "both" in said else said)


@together("name", NAMES)
def test_no_other_is_the_same_function(name, worlds):
    mistake = FRESH[name]
    for other in (other for other in NAMES if other < name):
        shared = (here for here in worlds if mistake.when(here) and FRESH[other].when(here))
        for here in itertools.islice(shared, 2):
            one, two = mistake.build(here), FRESH[other].build(here)
            assert any(furthest(one(*call), two(*call)) > BEYOND for _, call in calls(here)), (other, here)


@together("name", NAMES)
def test_its_truth_is_complete(name):
    mistake = FRESH[name]
    assert mistake.truth
    assert re.match(r"[\w.-]+/[\w.-]+/(issues|pull)/\d+", mistake.source)
    assert all(fact["which"] in ("q", "k", "both") and fact["aspect"] in ASPECTS for fact in mistake.facts)
    assert mistake.accept
    assert all(re.compile(pattern) for pattern in mistake.accept)
    assert mistake.refuse
    assert set(mistake.seen) <= {"small", "large", "far", "one"}


def test_there_are_enough():
    sources = {mistake.source.rpartition("/")[0] for mistake in FRESH.values()}
    assert len(FRESH) >= 15
    assert len(sources) >= 15
