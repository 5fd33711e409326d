"""Test the fourth set of mistakes without the diagnosis. Each mistake has an effect in the calls that its ``seen``
field lists, and the sound functions are right."""

import dataclasses
import functools
import itertools
import math
import random
import re

import torch

from ropebook import rope
from tests import fresh_mistakes_fourth as fourth
from tests.fresh_world import kept
from tests.together import together

WORLDS = 60
HERE, ROWS = 14, 2


@dataclasses.dataclass(frozen=True)
class World:
    dim: int
    rotary_dim: int
    base: float
    layout: str
    scaled: str
    factor: float
    frequencies: torch.Tensor
    lengthened: float


def scaling(kind, ladder, factor, length):
    """Return the declared frequencies and the factor by which vectors are lengthened, by this file's own formulas."""
    if kind == "plain":
        return ladder, 1.0
    if kind == "linear":
        return ladder / factor, 1.0
    turns = length * ladder / (2 * math.pi)
    low, high = (1, 4) if kind == "llama3" else (1, 32)
    keep = ((turns - low) / (high - low)).clamp(0, 1)
    return ladder * (keep + (1 - keep) / factor), 1.0 if kind == "llama3" else 0.1 * math.log(factor) + 1


@functools.cache
def world_of(seed):
    draw = random.Random(seed)
    dim = draw.choice((16, 24, 32, 48, 64, 96, 128))
    rotary_dim = draw.choice((dim, dim, 2 * (dim // 4), 2 * (dim // 8)))
    base = draw.choice((100.0, 500.0, 10000.0, 500000.0, 1e6))
    kind = draw.choice(("plain", "plain", "linear", "llama3", "yarn"))
    factor = draw.choice((2.0, 4.0, 8.0))
    ladder = rope.inv_freq(rotary_dim, base)
    frequencies, lengthened = scaling(kind, ladder, factor, draw.choice((256, 2048)))
    layout = draw.choice(("interleaved", "half"))
    return World(dim, rotary_dim, base, layout, kind, factor, frequencies, lengthened)


def calls_of(seed):
    """Return the kind and the positions of each call, in order."""
    draw = random.Random(seed)
    steps, start = torch.arange(HERE), draw.randrange(90, 120)
    own = torch.stack([steps + draw.randrange(50) for _ in range(ROWS)])
    packed = torch.stack([torch.cat((steps[:cut], steps[: HERE - cut])) for cut in (5, 8)])
    small = ("small", steps)
    return [small, ("large", steps + start), ("rows", own), ("packed", packed), ("one", steps[:1] + start + 20), small]


def truth(world, x, positions, hand):
    places = positions.double()[:, None] if positions.ndim == 2 else positions.double()
    angles = hand * places[..., None] * world.frequencies
    inner = x[..., : world.rotary_dim].double()
    first, second = rope.split(inner, world.layout)
    pair = first * angles.cos() - second * angles.sin(), first * angles.sin() + second * angles.cos()
    return torch.cat((rope.join(*pair, world.layout) * world.lengthened, x[..., world.rotary_dim :].double()), -1)


def scores(q, k):
    """Compute the scores of every query in a row with every key in that row, for q (batch, heads, seq, dim) and k with
    half as many heads."""
    return torch.einsum("bhid,bhjd->bhij", q.double(), k.double().repeat_interleave(2, 1))


def errors(build, seed):
    """Return the largest error of each kind of call: in the lengths of the rotated vectors, in the scores within a
    call, or in the scores between the first call and this call. Errors of scores are relative to the vectors' lengths.

    Both directions of rotation are tried, and the smaller error counts. The error is infinite if the function raises an
    error or returns a number that isn't finite.
    """
    world, generator = world_of(seed), torch.Generator().manual_seed(seed)
    function, found, first = build(world), {}, None
    for number, (kind, positions) in enumerate(calls_of(seed)):
        kind = "again" if number == len(calls_of(seed)) - 1 else kind
        shape = ROWS, 4, positions.shape[-1], world.dim
        q = torch.randn(shape, generator=generator)
        k = torch.randn((ROWS, 2, *shape[2:]), generator=generator)
        try:
            got = function(q.clone(), k.clone(), positions)
        except (RuntimeError, IndexError):
            found[kind] = math.inf
            continue
        assert (got[0].shape, got[1].shape) == (q.shape, k.shape)
        right = [tuple(truth(world, x, positions, hand) for x in (q, k)) for hand in (1, -1)]
        first = first or (got, right)
        sizes = [part[0].double().norm(dim=-1).clamp(min=1e-3) for part in (right[0], first[1][0])]
        worst = []
        for hand in (0, 1):
            error = 0.0
            for one, other in (
                ((got, right), (got, right)),
                ((got, right), first),
                (first, (got, right)),
            ):
                difference = scores(one[0][0], other[0][1]) - scores(one[1][hand][0], other[1][hand][1])
                difference = difference.abs() / (sizes[0].mean() * sizes[1].mean())
                error = max(error, float(torch.nan_to_num(difference, nan=math.inf).max()))
            worst.append(error)
        lengths = max(
            float(torch.nan_to_num((a.double().norm(dim=-1) / b.norm(dim=-1) - 1).abs(), nan=math.inf).max())
            for a, b in zip(got, right[0], strict=True)
        )
        found[kind] = max(min(worst), lengths)
    return found


def worlds_for(mistake):
    """Return the seeds of three worlds that meet the mistake's condition ``when``."""
    return list(itertools.islice((seed for seed in range(WORLDS) if mistake.when(world_of(seed))), 3))


@together("name", fourth.FRESH)
def test_is_a_mistake_wherever_it_says(name):
    mistake = fourth.FRESH[name]
    seeds = worlds_for(mistake)
    assert len(seeds) == 3
    for seed in seeds[:2]:
        found = errors(mistake.build, seed)
        assert all(found[kind] > 5e-4 for kind in mistake.seen), (world_of(seed), found)


@together("name", fourth.SOUND)
def test_is_sound(name):
    for seed in range(0, WORLDS, 12):
        assert max(errors(fourth.SOUND[name], seed).values()) < 1e-6, world_of(seed)


def test_a_world_keeps_what_it_should():
    world = next(world for seed in range(WORLDS) if (world := world_of(seed)).scaled == "yarn")
    assert kept(world).min() > -1e-9
    assert kept(world).max() < 1 + 1e-9


def test_numbers_texts_and_patterns():
    assert 50 <= len(fourth.FRESH) <= 55
    assert len(fourth.SOUND) >= 8
    for name, mistake in fourth.FRESH.items():
        assert len(mistake.truth) > 60, name
        assert re.search(r"20\d\d$", mistake.source), name
        assert all(re.compile(pattern, re.IGNORECASE) for pattern in mistake.accept), name
        assert any(re.search(pattern, mistake.truth, re.IGNORECASE) for pattern in mistake.accept), name
