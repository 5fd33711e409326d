"""Test that the mistakes of the second set are mistakes, using a separate float64 reference.

No mistake equals the declared rotation, in either direction. The sound functions in the set do equal it. The diagnosis
is not tested here.
"""

import itertools
import math
import random
import re

import numpy
import pytest
import torch

from tests.diagnose_world import World
from tests.fresh_mistakes import FRESH
from tests.fresh_mistakes_second import FRESH as SECOND
from tests.fresh_mistakes_second import SOUND, ramp
from tests.together import together

NAMES = sorted(SECOND)
ASPECTS = {"position", "frequency", "direction", "pairing", "length", "scale", "entries", "heads", "rows", "twice"}
ASPECTS |= {"never", "precision", "other"}
PLACES = {"small", "large", "far", "one", "rows", "packed", "again"}


def world(seed):
    choose = random.Random(f"second {seed}").choice
    dim, scaled = choose((16, 32, 48, 64, 80, 96, 128)), choose(("plain", "plain", "linear", "yarn", "llama3"))
    base = choose((500.0, 10_000.0, 10_000.0, 150_000.0, 500_000.0, 1e6, round(math.exp(7 + seed % 9), 2)))
    factor = 1.0 if scaled == "plain" else choose((2.0, 4.0, 8.0))
    length, part = choose((320, 1024, 2048, 4096)), choose((1, 1, 0.5, 0.25))
    return World(dim, base, choose(("interleaved", "half")), length, int(dim * part), scaled, factor)


WORLDS = [world(seed) for seed in range(160)]


def calls(world, seed=0):
    """Yield the name of each call with its arguments: two rows, with four heads of q and two heads of k. "again" comes
    last, and has as many tokens as the first call."""
    last, generator = world.length - 7, torch.Generator().manual_seed(seed)
    starts = {
        "small": torch.arange(3, 10),
        "large": torch.arange(last, world.length),
        "one": torch.tensor([world.length // 2 - 1]),
        "rows": torch.stack((torch.arange(2, 9), torch.arange(40, 47))),
        "packed": torch.tensor([5, 6, 7, 0, 1, 2, 3]),
        "far": torch.arange(3 * world.length, 3 * world.length + 7),
        "again": torch.arange(last - 90, last - 83),
    }
    for name, positions in starts.items():
        q, k = (torch.randn(2, heads, positions.shape[-1], world.dim, generator=generator) for heads in (4, 2))
        yield name, (q, k, positions)


def frequency(world, i):
    """Compute θ of pair i from the papers' definitions."""
    theta = world.base ** (-2 * i / world.rotary_dim)
    original = world.length / world.factor
    if world.scaled == "linear":
        return theta / world.factor
    if world.scaled == "llama3":
        turns = original * theta / (2 * math.pi)
        smooth = min(max((turns - 1) / (4 - 1), 0), 1)
        return (1 - smooth) * theta / world.factor + smooth * theta
    if world.scaled == "yarn":

        def where(turns):
            return world.rotary_dim * math.log(original / (turns * 2 * math.pi)) / (2 * math.log(world.base))

        low, high = max(math.floor(where(32)), 0), min(math.ceil(where(1)), world.rotary_dim - 1)
        slowed = min(max((i - low) / ((high - low) or 0.001), 0), 1)
        return slowed * theta / world.factor + (1 - slowed) * theta
    return theta


def reference(world, x, positions, way=1):
    """Rotate x pair by pair in float64. A ``way`` of -1 rotates in the other direction."""
    out, half = x.double().numpy().copy(), world.rotary_dim // 2
    place = positions.double().numpy()
    place = place[:, None] if place.ndim == 2 else place[None, None]
    length = 0.1 * math.log(world.factor) + 1 if world.scaled == "yarn" else 1.0
    for i in range(half):
        a, b = (2 * i, 2 * i + 1) if world.layout == "interleaved" else (i, i + half)
        angle = way * place * frequency(world, i)
        cos, sin = length * numpy.cos(angle), length * numpy.sin(angle)
        first, second = out[..., a].copy(), out[..., b].copy()
        out[..., a], out[..., b] = first * cos - second * sin, first * sin + second * cos
    return torch.from_numpy(out)


def furthest(ours, theirs):
    return (ours.double() - theirs).abs().max().item()


def allowed(positions):
    """Return the error that float32 angles may cause in entries of size 5. A larger error isn't due to float32
    rounding."""
    return 1e-5 + 5 * positions.max().item() * 2**-23


def settings(mistake):
    return list(itertools.islice(filter(mistake.when, WORLDS), 3))


def one_of_each():
    """Return the narrowest world for each combination of scaling and layout."""
    found = {}
    for here in sorted(WORLDS, key=lambda here: here.dim):
        found.setdefault((here.scaled, here.layout), here)
    return list(found.values())


@together("name", NAMES)
def test_is_no_rotation_that_was_declared(name):
    mistake = SECOND[name]
    tried = settings(mistake)
    assert len({(here.dim, here.base, here.length) for here in tried}) >= 3
    for here in tried:
        wrong, seen = mistake.build(here), set()
        for place, (q, k, positions) in calls(here):
            copies = q.clone(), k.clone()
            out = wrong(q, k, positions)
            assert [x.shape for x in out] == [q.shape, k.shape]
            assert all(x.dtype == torch.float32 and x.isfinite().all() for x in out)
            assert torch.equal(q, copies[0])
            assert torch.equal(k, copies[1])
            for which, x, ours in zip("qk", (q, k), out, strict=True):
                if all(furthest(ours, reference(here, x, positions, way)) > allowed(positions) for way in (1, -1)):
                    seen.add((which, place))
        said = {which for fact in mistake.facts for which in ("qk" if fact["which"] == "both" else fact["which"])}
        assert {which for which, _ in seen} == said, here
        assert set(mistake.seen) <= {place for _, place in seen}, (here, seen)


@together("name", NAMES)
def test_no_other_is_the_same_function(name):
    others = {**FRESH, **SECOND}
    for other in (other for other in others if other not in NAMES or other < name):
        shared = (here for here in WORLDS if SECOND[name].when(here) and others[other].when(here))
        for here in itertools.islice(shared, 1):
            one, two = SECOND[name].build(here), others[other].build(here)
            pairs = ((a, b) for _, call in calls(here) for a, b in zip(one(*call), two(*call), strict=True))
            assert any(furthest(a, b.double()) > 1e-5 for a, b in pairs), (other, here)


@together("name", sorted(SOUND))
@together("dtype", [torch.float32, torch.bfloat16])
def test_sound_ones_are_the_rotation_that_was_declared(name, dtype):
    for here in one_of_each():
        right = SOUND[name](here)
        for place, (q, k, positions) in calls(here):
            if place == "far":
                continue
            for x, ours in zip((q, k), right(q.to(dtype), k.to(dtype), positions), strict=True):
                theirs = reference(here, x.to(dtype), positions)
                assert (ours.dtype, ours.shape) == (dtype, x.shape)
                rounding = 2**-8 * theirs.abs().max().item() if dtype == torch.bfloat16 else 0
                assert furthest(ours, theirs) <= allowed(positions) + rounding, (here, place)


def test_the_ramp_is_yarns_where_nothing_is_wrong():
    for here in (here for here in WORLDS if here.scaled == "yarn"):
        theirs = [frequency(here, i) for i in range(here.rotary_dim // 2)]
        assert ramp(here, here.length / here.factor).tolist() == pytest.approx(theirs, rel=1e-12)


def named(mistake, text):
    return any(re.search(pattern, text, re.IGNORECASE) for pattern in mistake.accept)


@together("name", NAMES)
def test_its_own_truth_names_it_and_no_empty_words_do(name):
    mistake = SECOND[name]
    assert named(mistake, mistake.truth)
    assert named(mistake, " and ".join(f"{fact['which']}: {fact['how']}" for fact in mistake.facts))
    for words in ("", "this isn't the declared rotation", "q and k are wrong, and we can't say how", "only k is wrong"):
        assert not named(mistake, words)


@together("name", NAMES)
def test_its_truth_is_complete(name):
    mistake = SECOND[name]
    assert all((mistake.truth, mistake.refuse, mistake.accept))
    assert re.match(r"[\w.-]+/[\w.-]+(/(issues|pull)/\d+)? \(.*(20\d\d|undated)", mistake.source)
    assert all(fact["which"] in ("q", "k", "both") and fact["aspect"] in ASPECTS for fact in mistake.facts)
    assert all(re.compile(pattern) for pattern in mistake.accept)
    assert set(mistake.seen) <= PLACES


def test_there_are_enough():
    sources = {mistake.source.partition(" ")[0] for mistake in SECOND.values()}
    assert len(SECOND) >= 36
    assert len(SOUND) >= 6
    assert len(sources) >= 36
    assert not set(SECOND) & set(FRESH)
