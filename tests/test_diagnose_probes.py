"""Test the probes on nonlinear maps, on swapped tokens and heads, on misread tables, and on calls that keep state."""

import re

import pytest
import torch

from ropebook.diagnose import diagnose
from tests import diagnose_world
from tests.fresh_world import alone, by, places_of, rotated

WORLD = diagnose_world.World(dim=32, base=10000.0, layout="half", length=300, rotary_dim=32)
PROBES = {}


def said_of(rotation):
    how = {"dim": WORLD.dim, "call": "q, k, positions", "order": "batch heads seq dim"}
    return diagnose(rotation, **how, **WORLD.declared)


def right(x, places):
    return alone(x, places, WORLD)


def probe(name, says):
    """Collect a function that builds a wrong rotation. The report must give the mistake this name, and its sentence
    about the mistake must match the pattern ``says``."""

    def add(build):
        PROBES[build.__name__] = build, name, says
        return build

    return add


# --- Maps that are not linear ---


@probe("not_linear", "normalized, their root mean square is 1")
def rms_afterwards():
    return by(lambda x, places: torch.nn.functional.rms_norm(right(x, places), (WORLD.dim,)))


@probe("not_linear", "normalized, the length 1")
def unit_length():
    return by(lambda x, places: torch.nn.functional.normalize(right(x, places), dim=-1))


@probe("not_linear", "clipped .* above 1.5 or below -1.5, and smaller ones are right")
def clipped():
    return by(lambda x, places: right(x, places).clamp(-1.5, 1.5))


@probe("not_linear", "squashed .* above 3")
def squashed():
    return by(lambda x, places: 3 * torch.tanh(right(x, places) / 3))


@probe("not_linear", "shortened to the length 5")
def norm_clipped():
    def one(x, places):
        turned = right(x, places)
        return turned * (5 / turned.norm(dim=-1, keepdim=True).clamp(min=5))

    return by(one)


@probe("not_linear", "Q and k: vectors of the opposite sign .* no entry is below 0")
def without_negatives():
    return by(lambda x, places: right(x, places).relu())


@probe("not_linear", "zeros don't come back as zeros.* the same at every position")
def bias_added():
    return by(lambda x, places: right(x, places) + 0.1)


@probe("not_linear", "zeros don't come back as zeros.* another number at each position")
def positions_added():
    return by(lambda x, places: right(x, places) + places[..., None])


# --- Orders ---


@probe("other_positions", "in another order .*: even ones come first")
def striped():
    return by(lambda x, places: right(x, torch.cat((places[..., ::2], places[..., 1::2]), -1)))


@probe("other_positions", "within every 2 tokens the order is reversed")
def neighbours_exchanged():
    def one(x, places):
        order = torch.arange(x.shape[2])
        even = len(order) // 2 * 2
        order[:even] = order[:even].unflatten(0, (-1, 2)).flip(1).flatten()
        return right(x, places[..., order])

    return by(one)


@probe("other_positions", "tokens 1 to 46 of a call of 48 are not rotated at all")
def ends_alone():
    def one(x, places):
        turned = x.clone()
        turned[:, :, [0, -1]] = right(x, places)[:, :, [0, -1]]
        return turned

    return by(one)


@probe("other_heads", "heads and tokens came in the other order")
def reshaped_without_transposing():
    def one(x, places):
        rows, heads, seq, dim = x.shape
        turned = right(x.reshape(rows, seq, heads, dim).transpose(1, 2), places)
        return turned.transpose(1, 2).reshape(x.shape)

    return by(one)


@probe("other_heads", "head 1: position m is rotated like −m")
def odd_heads_backward():
    def one(x, places):
        turned = right(x, places)
        turned[:, 1::2] = right(x, -places)[:, 1::2]
        return turned

    return by(one)


@probe("other_heads", "Head 1 of q: its frequencies differ .* 1.1 times as fast")
def frequencies_of_each_head():
    def one(x, places):
        times = 1 + torch.arange(x.shape[1])[:, None] / 10
        return right(x, places * times.double())

    return by(one)


@probe("uneven_angles", "a row has 16 entries, and the next one is looked for 32 entries further")
def table_with_wrong_stride():
    def one(x, places):
        flat = (places[..., None] * WORLD.frequencies).flatten(-2)
        count = len(WORLD.frequencies)
        at = (torch.arange(x.shape[2])[:, None] * 2 * count + torch.arange(count)) % flat.shape[-1]
        return rotated(x, flat[..., at], WORLD.layout)

    return by(one)


@probe("uneven_angles", "rows and columns of the table of angles are exchanged")
def table_transposed():
    def one(x, places):
        angles = places[..., None] * WORLD.frequencies
        return rotated(x, angles.mT.reshape(angles.shape), WORLD.layout)

    return by(one)


# --- Calls that change others, or raise ---


@probe(
    "depends_on_text", "position of 64 or more; with positions up to 63 alone they are right. .* comes back unchanged"
)
def nothing_in_long_calls():
    return by(lambda x, places: x.clone() if bool((places > 63).any()) else right(x, places))


@probe("depends_on_text", "position of 101 or more; .*paired in another layout")
def other_layout_in_long_calls():
    def one(x, places):
        layout = "interleaved" if bool((places > 100).any()) else WORLD.layout
        return rotated(x, places[..., None] * WORLD.frequencies, layout)

    return by(one)


@probe("stale", "goes on to position 64, later calls .* never set back")
def base_never_set_back():
    long = []

    def one(x, places):
        if bool((places > 63).any()):
            long.append(True)
        return right(x, places / 2 if long else places)

    return by(one)


@probe("other_far", "angles advance by 0.125 positions .* Up to position 100 angles are right")
def far_positions_squeezed():
    return by(lambda x, places: right(x, torch.where(places > 100, 100 + (places - 100) / 8, places)))


@probe("stale", "very first call .* not rotated")
def first_call_without_rotation():
    calls = []

    def rotation(q, k, positions):
        calls.append(True)
        if len(calls) == 1:
            return q.clone(), k.clone()
        places = places_of(q, k, positions)
        return right(q, places), right(k, places)

    return rotation


@probe("stale", "written over by the next call")
def buffer_used_again():
    kept = {}

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        found = []
        for role, x in (("q", q), ("k", k)):
            turned = right(x, places)
            found.append(kept.setdefault((role, x.shape), turned).copy_(turned))
        return tuple(found)

    return rotation


@probe("stale", "after other calls .* type of the last vectors")
def table_kept_in_bfloat16():
    kind = [torch.float64]

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        if q.dtype == torch.float16:
            kind[0] = q.dtype

        def turn(first, second, cos, sin):
            cos, sin = cos.to(kind[0]).double(), sin.to(kind[0]).double()
            return first * cos - second * sin, first * sin + second * cos

        return tuple(rotated(x, places[..., None] * WORLD.frequencies, WORLD.layout, turn=turn) for x in (q, k))

    return rotation


def refusing(refused):
    def rotation(q, k, positions):
        if refused(positions):
            raise RuntimeError("sizes don't match")
        places = places_of(q, k, positions)
        return right(q, places), right(k, places)

    return rotation


@probe("raises", r"rows at positions of their own, of shape \(batch, seq\).*sizes don't match")
def own_rows_refused():
    return refusing(lambda positions: positions.ndim == 2)


@probe("raises", "positions that go back, as in packed texts")
def packed_texts_refused():
    return refusing(lambda positions: bool((positions.diff() < 0).any()))


@pytest.mark.parametrize("name", PROBES)
def test_it_is_said_what_is_wrong(name):
    build, mistake, says = PROBES[name]
    report = said_of(build())
    assert mistake in report.mistakes, str(report)
    assert re.search(says, report.mistakes[mistake]), str(report)


def test_whatever_is_refused_counts_only_once_all_is_declared():
    report = diagnose(own_rows_refused(), layout="half", base=10000.0, dim=32)
    assert report.sound, str(report)
