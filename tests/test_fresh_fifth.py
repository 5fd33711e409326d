"""Test the fifth set of mistakes without the diagnosis, against a separate reference in NumPy. Each mistake has an
effect in the calls that its ``seen`` field lists, and the sound functions have no mistakes."""

import cmath
import functools
import itertools
import math
import random
import re

import numpy
import torch

from tests import diagnose_world as worlds
from tests import fresh_mistakes_fifth as fifth
from tests.together import together

WORLDS = 400
# The smallest error of a mistake, and the largest error of a sound function.
MISTAKE, SOUND = 2e-4, 1e-6
HERE, ROWS, HEADS, KEY_HEADS = 14, 2, 4, 2
KINDS = {"small", "large", "end", "rows", "packed", "one", "each", "strided", "again", "inputs"}


@functools.cache
def world_of(seed):
    return worlds.world_at_random(random.Random(seed))


@functools.cache
def frequencies_of(world):
    """Return the declared frequencies, computed one pair at a time from separate formulas."""
    found, trained, width = [], world.length / world.factor, world.rotary_dim
    for pair in range(width // 2):
        theta = math.exp(-2 * pair / width * math.log(world.base))
        turns = trained * theta / (2 * math.pi)
        keep = {"plain": 1.0, "linear": 0.0, "llama3": min(max((turns - 1) / 3, 0.0), 1.0)}.get(world.scaled)
        if keep is None:
            ends = [width * math.log(trained / (2 * math.pi * beta), world.base) / 2 for beta in (32, 1)]
            low, high = max(math.floor(ends[0]), 0), min(math.ceil(ends[1]), width - 1)
            keep = 1 - min(max((pair - low) / max(high - low, 1e-3), 0.0), 1.0)
        found.append(theta * (keep + (1 - keep) / world.factor))
    return found


def calls_of(world, seed):
    """Return the kind and the positions of each call, in order. All positions are within the declared length."""
    draw, steps = random.Random(seed), torch.arange(HERE)
    start = min(draw.randrange(90, 120), world.length - 30)
    own = torch.stack([steps + draw.randrange(min(50, world.length - HERE)) for _ in range(ROWS)])
    packed = torch.stack([torch.cat((steps[:cut], steps[: HERE - cut])) for cut in (5, 8)])
    return [
        ("small", steps),
        ("large", steps + start),
        ("rows", own),
        ("packed", packed),
        ("strided", steps),
        ("end", steps + world.length - HERE),
        ("one", torch.tensor([start + 15])),
        ("each", torch.tensor([[start + 3], [start + 12]])),
        ("again", steps),
    ]


def truth(world, x, positions, hand):
    """Rotate with complex numbers in NumPy, pair by pair."""
    places = positions.numpy().astype(float)
    places = places[:, None] if places.ndim == 2 else places[None, None]
    source = x.double().numpy()
    result, half = source.copy(), world.rotary_dim // 2
    for pair, theta in enumerate(frequencies_of(world)):
        a, b = (2 * pair, 2 * pair + 1) if world.layout == "interleaved" else (pair, pair + half)
        turned = (source[..., a] + 1j * source[..., b]) * world.lengthened * numpy.exp(1j * hand * theta * places)
        result[..., a], result[..., b] = turned.real, turned.imag
    return result


def scores(q, k):
    """Compute the scores of every query in a row with every key in that row, for q (batch, heads, seq, dim) and k with
    half as many heads."""
    return numpy.einsum("bhid,bhjd->bhij", q, k.repeat(HEADS // KEY_HEADS, 1))


def inputs_for(world, kind, count, generator):
    """Draw q and k. For "strided" calls, their axes are stored in another order."""
    found = []
    for heads in (HEADS, KEY_HEADS):
        x = torch.randn((ROWS, heads, count, world.dim), generator=generator)
        if kind == "strided":
            x = x.transpose(1, 2).contiguous().transpose(1, 2)
        found.append(x)
    return found


def errors(build, seed):
    """Return the largest error of each kind of call: in the lengths of the rotated vectors, in the scores within a
    call, or in the scores between the first call and this call. Errors of scores are relative to the vectors' lengths.

    Both directions of rotation are tried, and the smaller error counts. The error is infinite if the function raises an
    error or returns a number that isn't finite.
    """
    world, generator = world_of(seed), torch.Generator().manual_seed(seed)
    function, found, first = build(world), {"inputs": 0.0}, None
    for kind, positions in calls_of(world, seed):
        inputs = inputs_for(world, kind, positions.shape[-1], generator)
        given = [x.clone() for x in inputs]
        try:
            got = function(*inputs, passed := positions.clone())
        except (RuntimeError, IndexError):
            found[kind] = math.inf
            continue
        before, after = (*given, positions), (*inputs, passed)
        found["inputs"] += sum(not torch.equal(a, b) for a, b in zip(before, after, strict=True))
        assert [x.shape for x in got] == [x.shape for x in given]
        assert [x.dtype for x in got] == [x.dtype for x in given]
        got = [x.double().numpy() for x in got]
        right = [[truth(world, x, positions, hand) for x in given] for hand in (1, -1)]
        first = first or (got, right)
        size = world.dim * world.lengthened**2
        worst = []
        for hand in (0, 1):
            error = 0.0
            for one, other in (((got, right), (got, right)), ((got, right), first), (first, (got, right))):
                difference = scores(one[0][0], other[0][1]) - scores(one[1][hand][0], other[1][hand][1])
                error = max(error, float(numpy.nan_to_num(numpy.abs(difference) / size, nan=math.inf).max()))
            worst.append(error)
        lengths = max(
            float(numpy.nan_to_num(abs(numpy.linalg.norm(a, axis=-1) / numpy.linalg.norm(b, axis=-1) - 1), nan=9).max())
            for a, b in zip(got, right[0], strict=True)
        )
        found[kind] = max(min(worst), lengths)
    return found


def worlds_for(mistake):
    """Return the seeds of three worlds that meet the mistake's condition ``when``."""
    return list(itertools.islice((seed for seed in range(WORLDS) if mistake.when(world_of(seed))), 3))


def assert_mistake(mistake):
    """Assert that a mistake is visible in every kind of call that it lists."""
    seeds = worlds_for(mistake)
    assert len(seeds) == 3
    for seed in seeds:
        found = errors(mistake.build, seed)
        assert mistake.seen
        assert all(found[kind] > MISTAKE for kind in mistake.seen), (world_of(seed), found)


def assert_sound(build):
    """Assert that a function agrees with the reference in all kinds of calls."""
    for seed in range(0, WORLDS, 50):
        assert max(errors(build, seed).values()) < SOUND, world_of(seed)


@together("name", fifth.FRESH)
def test_is_a_mistake_wherever_it_says(name):
    assert_mistake(fifth.FRESH[name])


@together("name", fifth.SOUND)
def test_is_sound(name):
    assert_sound(fifth.SOUND[name])


def test_the_reference_has_the_declared_frequencies():
    """The frequencies are computed with separate formulas, and must agree with what the worlds declare."""
    seen = set()
    for world in map(world_of, range(WORLDS)):
        numpy.testing.assert_allclose(frequencies_of(world), world.frequencies, rtol=1e-9)
        seen.add(world.scaled)
    assert seen == {"plain", "linear", "yarn", "llama3"}


def test_the_reference_turns_counterclockwise():
    world = worlds.World(4, 100.0, "half", 64, 4)
    x = torch.tensor([[[[1.0, 0.0, 0.0, 2.0]]]])
    turned = truth(world, x, torch.tensor([3]), 1)[0, 0, 0]
    fast, slow = cmath.exp(3j), 2j * cmath.exp(0.3j)
    numpy.testing.assert_allclose(turned, [fast.real, slow.real, fast.imag, slow.imag], atol=1e-12)


def test_texts_and_patterns():
    assert len(fifth.FRESH) >= 40
    assert len(fifth.SOUND) >= 10
    sources = [mistake.source for mistake in fifth.FRESH.values()]
    assert len(set(sources)) == len(sources)
    for name, mistake in fifth.FRESH.items():
        assert len(mistake.truth) > 60, name
        assert re.fullmatch(r"[\w.-]+/[\w.-]+ #\d+, 20\d\d", mistake.source), name
        assert set(mistake.seen) <= KINDS, name
        assert all(re.compile(pattern, re.IGNORECASE) for pattern in mistake.accept), name
        assert any(re.search(pattern, mistake.truth, re.IGNORECASE) for pattern in mistake.accept), name
