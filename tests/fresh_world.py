"""Building blocks of the fresh mistakes: a record of what is wrong, conditions on the world, and a correct rotation
with its parts."""

import dataclasses

import torch

from ropebook import rope

ALWAYS = ("small", "large")


@dataclasses.dataclass(frozen=True)
class Fresh:
    """A mistake, together with the correct diagnosis.

    ``truth`` says in words what is wrong, and ``source`` names a report of such a bug. ``facts`` say which of q and k
    is wrong, in which aspect and how. A diagnosis names the mistake if its text matches one of the case-insensitive
    regular expressions in ``accept``, unless it says nothing beyond ``refuse``. The mistake counts only in worlds for
    which ``when`` returns true. ``seen`` lists the kinds of calls in which it is visible: those with "small" or "large"
    positions within the trained length, those with positions beyond that length ("far"), and those with a single token
    ("one").
    """

    build: object
    facts: tuple
    accept: tuple
    refuse: str
    when: object
    seen: tuple

    @property
    def truth(self):
        return " ".join(self.build.__doc__.split()).partition(" Source: ")[0]

    @property
    def source(self):
        return " ".join(self.build.__doc__.split()).partition(" Source: ")[2].rstrip(".")


def collecting(found):
    """Return a decorator that records a mistake in ``found``. Each fact passed to it is a string of the form "which,
    aspect, how"."""

    def fresh(*facts, accept, refuse, when=lambda world: True, seen=ALWAYS):
        table = tuple(dict(zip(("which", "aspect", "how"), fact.split(", ", 2), strict=True)) for fact in facts)

        def add(build):
            found[build.__name__] = Fresh(build, table, tuple(accept), refuse, when, tuple(seen))
            return build

        return add

    return fresh


def collecting_sound(found):
    """Return a decorator that records a sound function in ``found``."""

    def right(build):
        found[build.__name__] = build
        return build

    return right


# --- Worlds in which a mistake counts ---


def plain(world):
    return world.scaled == "plain"


def partial(world):
    return plain(world) and world.rotary_dim < world.dim


def pairs(world):
    return world.rotary_dim > 2


def several(world):
    return world.rotary_dim >= 8


def kept(world):
    """Return how much of each frequency the scaling keeps: 1 for an unchanged frequency, 0 for one that is divided by
    the factor."""
    ratio = world.frequencies / rope.inv_freq(world.rotary_dim, world.base)
    return (ratio - 1 / world.factor) / (1 - 1 / world.factor)


# --- A correct rotation, and its parts ---


def places_of(q, k, positions):
    """Return the positions in float64, with a shape that broadcasts to (batch, heads, seq)."""
    if q.ndim != 4 or k.ndim != 4:
        raise ValueError(f"q and k must be (batch, heads, seq, dim), got {tuple(q.shape)} and {tuple(k.shape)}")
    if positions.ndim not in (1, 2) or positions.shape[-1] != q.shape[2] or k.shape[2] != q.shape[2]:
        raise ValueError(
            f"positions must be (seq,) or (batch, seq) with seq {q.shape[2]}, got {tuple(positions.shape)}"
        )
    return positions.double()[:, None] if positions.ndim == 2 else positions.double()


def turn(first, second, cos, sin):
    return first * cos - second * sin, first * sin + second * cos


def rotated(x, angles, layout, length=1.0, start=0, turn=turn):
    """Rotate the entries of x from ``start`` on, as far as there are angles for them, and multiply these entries by
    ``length``.

    All other entries are passed through.
    """
    stop = start + 2 * angles.shape[-1]
    both = turn(*rope.split(x[..., start:stop].double(), layout), angles.cos(), angles.sin())
    inner = rope.join(*both, layout) * length
    return torch.cat((x[..., :start], inner.to(x.dtype), x[..., stop:]), -1)


def by(one):
    """Return a rotation f(q, k, positions) that applies ``one(x, places)`` first to q, then to k."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return one(q, places), one(k, places)

    return rotation


def with_frequencies(world, theta, length=None):
    length = world.lengthened if length is None else length
    return by(lambda x, places: rotated(x, places[..., None] * theta, world.layout, length))


def with_turn(world, turn):
    return by(
        lambda x, places: rotated(x, places[..., None] * world.frequencies, world.layout, world.lengthened, turn=turn)
    )


def sound(world):
    return with_frequencies(world, world.frequencies)


def alone(x, places, world):
    """Apply the correct rotation to a single tensor x."""
    return rotated(x, places[..., None] * world.frequencies, world.layout, world.lengthened)
