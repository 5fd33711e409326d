"""More mistakes, written to extend the list of mistakes that the diagnosis can name. Each is of a type that
`diagnose_world` lacks.

The list covers everything that can go wrong: the choice of tensors, heads and rows; positions; angles; tables; the
mixing of a pair; and the steps after the rotation. Where such a bug has been reported, the mistake cites the report as
its source.
"""

import dataclasses
import math

import torch

from ropebook import rope
from tests.diagnose_world import Stages, collecting, long, power, scaled

MISTAKES = {}
mistake = collecting(MISTAKES)


def partial(world):
    return world.rotary_dim < world.dim


# --- Which tensor ---


@mistake("who", "crossed", "hpcaitech/ColossalAI/pull/6429")
def halves_of_query_and_key_crossed(self, one, q, k, v):
    q, k = one(q, "q"), one(k, "k")
    (q1, q2), (k1, k2) = q.chunk(2, -1), k.chunk(2, -1)
    return torch.cat((q1, k2), -1), torch.cat((k1, q2), -1), v


@mistake("who", "crossed", "issue: query and key in each other's place")
def query_and_key_returned_the_other_way_round(self, one, q, k, v):
    return one(k, "k"), one(q, "q"), v


@mistake("who", "key_only", "issue: a query that is not written back")
def query_not_written_back(self, one, q, k, v):
    return q, one(k, "k"), v


@mistake("angles", "opposite_signs", "issue: the key turned backwards")
def key_turned_backwards(self, places, theta, role):
    return places[..., None] * theta * (-1 if role == "k" else 1)


@mistake("who", "added", "issue: what is turned is added to what went in")
def rotation_added_to_the_vector(self, one, q, k, v):
    return q + one(q, "q"), k + one(k, "k"), v


# --- Which heads and rows ---


@mistake("where", "other_heads", "paiml/aprender/pull/2079")
def other_heads_left_zero(self, one, x, role):
    return torch.cat((one(x, role)[:, :1], torch.zeros_like(x[:, 1:])), 1)


@mistake("where", "other_heads wrong_axis", "amd/IRON/pull/191")
def heads_read_as_tokens(self, one, x, role):
    batch, heads, seq, dim = x.shape
    mixed = x.transpose(1, 2).reshape(batch, heads, seq, dim)
    return one(mixed, role).reshape(batch, seq, heads, dim).transpose(1, 2)


@mistake("where", "other_rows", "issue: rows in the other order")
def positions_of_the_other_row(self, one, x, role):
    return one(x.flip(0), role).flip(0) if x.shape[0] == 2 and role == "k" else one(x, role)


# --- Which position ---


@mistake("places", "other_positions", "ggml-org/llama.cpp/pull/3897", scaled("linear"))
def positions_divided_without_remainder(self, positions, role, seq):
    return (positions // self.world.factor * self.world.factor).double()


@mistake("places", "ignored_start", "mlx-node/mlx-node/pull/33")
def start_counted_twice(self, positions, role, seq):
    return (positions + positions[..., :1]).double()


@mistake("places", "one_token", "fla-org/flash-linear-attention/issues/766")
def a_single_token_one_later(self, positions, role, seq):
    return positions.double() + (seq == 1)


@mistake("places", "other_positions", "issue: positions counted from the end")
def positions_counted_from_the_end(self, positions, role, seq):
    return positions.amax(-1, keepdim=True).double() - positions


@mistake("places", "clamped ignored_start other_positions", "issue: a table as long as the text")
def positions_clamped_to_the_text(self, positions, role, seq):
    return positions.clamp(max=max(seq - 1, 1)).double()


@mistake("places", "other_positions", "issue: each position twice")
def every_position_twice(self, positions, role, seq):
    return (positions // 2).double()


# --- Which angle ---


@mistake("theta", "shifted_exponent", "bkitano/llama-from-scratch/issues/8", scaled("plain"))
def exponent_that_begins_one_pair_early(self):
    return power(self.world.rotary_dim, self.world.base, shift=-2)


@mistake("theta", "other_base", "issue: exp without the logarithm of the base", scaled("plain"))
def exponent_of_e(self):
    return power(self.world.rotary_dim, math.e)


@mistake("theta", "other_base", "issue: whole numbers divided", scaled("plain"))
def exponent_divided_without_remainder(self):
    return torch.ones(self.world.rotary_dim // 2, dtype=torch.float64)


@mistake("theta", "other_base", "issue: both ends of the exponent counted", scaled("plain"))
def exponent_that_reaches_one(self):
    pairs = self.world.rotary_dim // 2
    return self.world.base ** -torch.linspace(0, 1, pairs, dtype=torch.float64)


@mistake("theta", "repeated_frequencies", "issue: a spread table cut as if it were none")
def spread_frequencies_cut_in_half(self):
    return self.world.frequencies.repeat_interleave(2)[: self.world.rotary_dim // 2]


@mistake("theta", "repeated_frequencies", "issue: half of the frequencies, twice")
def first_frequencies_used_twice(self):
    half = self.world.frequencies[: (self.world.rotary_dim // 2 + 1) // 2]
    return torch.cat((half, half))[: self.world.rotary_dim // 2]


@mistake("theta", "other_scaling unscaled", "issue: positions divided twice", scaled("linear"))
def scaling_applied_twice(self):
    return self.world.frequencies / self.world.factor


@mistake("theta", "other_scaling", "issue: the ramp left out", scaled("llama3", "yarn"))
def ramp_left_out(self):
    plain = power(self.world.rotary_dim, self.world.base)
    return torch.where(self.world.frequencies < 0.9 * plain, plain / self.world.factor, plain)


@mistake("theta", "reversed_frequencies", "issue: pairs counted from the end")
def frequencies_reversed(self):
    return self.world.frequencies.flip(0)


@mistake("angles", "faster", "issue: angles in whole turns")
def angles_in_turns(self, places, theta, role):
    return places[..., None] * theta * 2 * math.pi


@mistake("angles", "depends_on_text", "issue: frequencies that change with the length of the text", long)
def base_that_grows_with_the_text(self, places, theta, role):
    slower = 1 + max(places.max().item() / (self.world.length / 4) - 1, 0)
    return places[..., None] * theta / slower


# --- Which tables ---


@mistake("tables", "mixed_tables", "issue: the cosine in the place of the sine")
def cosine_used_twice(self, angles, role):
    return angles.cos(), angles.cos()


@mistake("tables", "mixed_tables longer", "issue: YaRN's factor on the cosine alone", scaled("yarn"))
def cosine_scaled_alone(self, angles, role):
    return angles.cos() * self.world.lengthened, angles.sin()


@mistake("tables", "mixed_tables", "issue: a sine that is one position late")
def sine_one_position_late(self, angles, role):
    return angles.cos(), (angles - self.world.frequencies).sin()


# --- How a pair is mixed ---


@mistake("turn", "overwritten", "flagos-ai/FlagGems/issues/5142")
def first_entry_overwritten(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    first = first * cos - second * sin
    return rope.join(first, first * sin + second * cos, self.world.layout)


@mistake("turn", "missing_cos", "issue: the cosine left out")
def cosine_left_out(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first - second * sin, second + first * sin, self.world.layout)


@mistake("turn", "uncrossed", "issue: a quarter turn that changes signs alone")
def quarter_turn_without_its_exchange(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * cos - first * sin, second * cos + second * sin, self.world.layout)


@mistake("turn", "half_turned", "issue: the second half is returned as it went in")
def second_entries_not_written_back(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * cos - second * sin, second, self.world.layout)


@mistake("turn", "own_layout", "issue: the first entry with the last")
def first_entry_with_the_last(self, x, cos, sin, role):
    first, second = x.chunk(2, -1)
    second = second.flip(-1)
    return torch.cat((first * cos - second * sin, (first * sin + second * cos).flip(-1)), -1)


# --- How wide ---


@mistake("where", "other_width", "vllm-project/vllm/pull/43770", partial)
def whole_head_turned(self, one, x, role):
    self.world = dataclasses.replace(self.world, rotary_dim=self.world.dim, scaled="plain")
    return one(x, role)


@mistake("turn", "still_pairs", "issue: a loop that begins too late")
def first_pair_left_out(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    turned = Stages.turn(self, x, cos, sin, role)
    one, two = rope.split(turned, self.world.layout)
    keep = torch.arange(first.shape[-1]) == 0
    return rope.join(torch.where(keep, first, one), torch.where(keep, second, two), self.world.layout)


# --- What comes after ---


@mistake("lengths", "not_linear", "issue: normalised after the rotation")
def normalised_afterwards(self, x, role):
    return x / x.norm(dim=-1, keepdim=True).clamp(min=1e-9) * self.world.lengthened


@mistake("lengths", "lengths", "issue: xPos where none is wanted")
def lengths_that_grow_with_the_position(self, x, role):
    places = self.memory["places"][..., None]
    return x * self.world.lengthened * 1.002 ** (places if role == "q" else -places)
