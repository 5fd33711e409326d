"""Further types of mistakes, written to test whether the diagnosis can name bugs that it wasn't designed for.

They concern batches, blocks and padding, packed sequences, cache pages, sections of an axis, entries that are passed
through, low-precision tables, and scalings with one wrong number. Where such a bug has been reported, the mistake cites
the report as its source.
"""

import math

import torch

from ropebook import rope
from tests.diagnose_more import partial
from tests.diagnose_world import Stages, collecting, long, power, scaled

MISTAKES = {}
mistake = collecting(MISTAKES)

# --- Which token ---


@mistake("where", "depends_on_text one_token", "tenstorrent/tt-metal: a kernel's last block")
def tokens_after_the_last_whole_block(self, one, x, role):
    whole = x.shape[2] // 16 * 16
    return torch.cat((one(x, role)[:, :, :whole], x[:, :, whole:]), 2)


@mistake("where", "one_token", "oxiglade/mlx-rs/issues/359")
def first_row_alone_if_one_token(self, one, x, role):
    return torch.cat((one(x, role)[:1], x[1:])) if x.shape[2] == 1 else one(x, role)


@mistake("where", "one_token", "issue: the axis of one token squeezed away")
def heads_as_tokens_if_one_token(self, one, x, role):
    if x.shape[2] > 1:
        return one(x, role)
    out = [one(x[:, head : head + 1], role) * (1 - 2 * (head % 2)) for head in range(x.shape[1])]
    return torch.cat(out, 1)


@mistake("where", "depends_on_text", "issue: as many heads as tokens")
def axes_confused_if_equal(self, one, x, role):
    if x.shape[1] == x.shape[2]:
        return one(x.transpose(1, 2), role).transpose(1, 2)
    return one(x, role)


@mistake("where", "moved", "issue: heads read from the wrong offset")
def heads_one_further(self, one, x, role):
    return one(x, role).roll(1, 1)


@mistake("where", "moved", "issue: rows of a batch in the other order")
def rows_exchanged(self, one, x, role):
    return one(x, role).flip(0) if role == "k" else one(x, role)


@mistake("where", "other_heads", "ankan-ban/llama2.cu/issues/6")
def heads_of_q_beyond_those_of_k(self, one, x, role):
    return torch.cat((one(x, role)[:, :2], x[:, 2:]), 1) if role == "q" else one(x, role)


@mistake("where", "other_rows depends_on_text", "issue: a batch as one long text")
def later_rows_unrotated(self, one, x, role):
    return torch.cat((one(x, role)[:1], x[1:]))


# --- Which position ---


@mistake("places", "ignored_rows other_rows", "unslothai/unsloth/pull/4078")
def positions_of_the_last_row(self, positions, role, seq):
    return positions.reshape(-1, positions.shape[-1])[-1].double()


@mistake("places", "wrapped", "issue: positions of eight bits without a sign", lambda world: world.length > 257)
def positions_of_eight_bits(self, positions, role, seq):
    return (positions % 256).double()


@mistake("places", "clockwise", "issue: the distance from the query, negated")
def positions_negated(self, positions, role, seq):
    return -positions.double()


@mistake("places", "shifted_key depends_on_text ignored_start", "issue: the key counted behind the text")
def key_behind_the_text(self, positions, role, seq):
    return positions.double() + seq * (role == "k")


@mistake("places", "other_positions ignored_start", "bojone/rerope/issues/17")
def key_counted_from_the_end(self, positions, role, seq):
    return positions.amax(-1, keepdim=True).double() - positions if role == "k" else positions.double()


@mistake("places", "other_positions", "hiyouga/LlamaFactory/pull/10737")
def positions_sorted(self, positions, role, seq):
    return positions.sort(-1)[0].double()


@mistake("places", "other_positions", "tenstorrent/tt-metal/pull/36808")
def positions_that_never_go_back(self, positions, role, seq):
    return positions.cummax(-1)[0].double()


@mistake("places", "one_token", "issue: the place in a page of the cache instead of the position")
def place_in_a_page_if_alone(self, positions, role, seq):
    return (positions % 16).double() if seq == 1 else positions.double()


@mistake("places", "half_positions", "issue: positions in float16", lambda world: world.length > 4096)
def positions_in_float16(self, positions, role, seq):
    return positions.half().double()


@mistake("places", "wrapped depends_on_text ignored_gaps", "issue: a prompt in chunks")
def chunks_that_start_again(self, positions, role, seq):
    return (positions[..., :1] + torch.arange(seq) % 32).double()


@mistake("places", "other_far", "issue: a token that is counted twice at a border", long)
def one_further_after_a_border(self, positions, role, seq):
    return (positions + (positions >= 512)).double()


@mistake("places", "other_positions", "issue: tokens in the other order")
def positions_in_the_other_order(self, positions, role, seq):
    return positions.flip(-1).double()


@mistake("places", "one_token shifted_key depends_on_text", "issue: a beginning of the text that the key has alone")
def key_one_later_in_texts(self, positions, role, seq):
    return positions.double() + (role == "k" and seq > 1)


@mistake("places", "other_positions uneven_angles turned_start", "issue: no position 0")
def position_zero_read_as_one(self, positions, role, seq):
    return positions.clamp(min=1).double()


@mistake("places", "other_positions ignored_start ignored_gaps", "issue: half of a position lost")
def positions_by_the_mean(self, positions, role, seq):
    return (positions + positions.double().mean(-1, keepdim=True).floor()) / 2


# --- Which frequency ---


@mistake("theta", "other_base other_scaling uneven_frequencies", "vllm-project/vllm/issues/5093", scaled("linear"))
def ntk_for_linear(self):
    d = self.world.rotary_dim
    return power(d, self.world.base * self.world.factor ** (d / (d - 2)))


@mistake("theta", "other_scaling uneven_frequencies", "issue: YaRN's two borders exchanged", scaled("yarn"))
def borders_exchanged(self):
    plain = power(self.world.rotary_dim, self.world.base)
    return plain * (1 + 1 / self.world.factor) - self.world.frequencies


@mistake("theta", "other_scaling uneven_frequencies", "issue: the longer length in the ramp", scaled("yarn", "llama3"))
def ramp_of_the_longer_length(self):
    plain = power(self.world.rotary_dim, self.world.base)
    turns = self.world.length * plain / (2 * math.pi)
    kept = ((turns - 1) / 3).clamp(0, 1)
    return plain * (kept + (1 - kept) / self.world.factor)


@mistake("theta", "other_scaling unscaled", "issue: another factor", scaled("linear", "yarn", "llama3"))
def twice_the_factor(self):
    plain = power(self.world.rotary_dim, self.world.base)
    kept = (self.world.frequencies / plain - 1 / self.world.factor) / (1 - 1 / self.world.factor)
    return plain * (kept + (1 - kept) / (2 * self.world.factor))


@mistake("theta", "wider_exponent", "microsoft/onnxruntime/pull/19874", lambda w: partial(w) and w.scaled == "plain")
def width_of_the_head_in_the_exponent(self):
    return power(self.world.rotary_dim, self.world.base, width=self.world.dim)


@mistake("theta", "uneven_frequencies other_scaling", "issue: two frequencies exchanged")
def neighbours_exchanged(self):
    theta = self.world.frequencies.clone()
    theta[:2] = theta[:2].flip(0)
    return theta


@mistake("theta", "still_pairs", "HabanaAI/vllm-fork/pull/2133")
def sections_of_other_axes_at_zero(self):
    pairs = self.world.rotary_dim // 2
    return self.world.frequencies * (torch.arange(pairs) < pairs - pairs // 3)


@mistake("theta", "uneven_frequencies other_scaling", "issue: a section that counts twice")
def middle_section_twice_as_fast(self):
    pairs = self.world.rotary_dim // 2
    middle = (torch.arange(pairs) >= pairs // 3) & (torch.arange(pairs) < 2 * pairs // 3 + 1)
    return self.world.frequencies * (1 + middle.double())


@mistake("theta", "uneven_frequencies still_pairs other_scaling other_base", "issue: frequencies with three digits")
def frequencies_of_three_digits(self):
    return self.world.frequencies.mul(1000).round() / 1000


@mistake("theta", "half_frequencies", "issue: frequencies in float16", lambda world: world.base < 1e6)
def frequencies_in_float16(self):
    return self.world.frequencies.half().double()


@mistake("theta", "faster", "issue: π too much")
def frequencies_times_pi(self):
    return self.world.frequencies * math.pi


@mistake("theta", "two_bases", "issue: a frequency for the key", lambda world: world.rotary_dim > 4)
def counted_calls_of_theta(self):
    self.memory["calls"] = self.memory.get("calls", 0) + 1
    return self.world.frequencies if self.memory["calls"] % 2 else self.world.frequencies * 0.9


# --- Which table ---


@mistake("tables", "opposite_signs", "issue: the key's sine with a minus")
def sine_of_the_key_negated(self, angles, role):
    return angles.cos(), -angles.sin() if role == "k" else angles.sin()


@mistake("tables", "bf16_table mixed_tables", "issue: the sine alone in bfloat16")
def sine_in_bfloat16(self, angles, role):
    return angles.cos(), angles.sin().bfloat16().double()


@mistake("tables", "coarse_table mixed_tables uneven_angles bf16_table fp16_table", "issue: tables of eight bits")
def tables_of_eight_bits(self, angles, role):
    return (angles.cos() * 127).round() / 127, (angles.sin() * 127).round() / 127


@mistake("angles", "uneven_angles half_angles other_far drift", "issue: a table of one turn")
def turn_in_256_steps(self, places, theta, role):
    step = 2 * math.pi / 256
    return (places[..., None] * theta / step).round() * step


@mistake("angles", "clamped other_far uneven_angles", "issue: large angles clipped", lambda w: w.length > 257)
def angles_clipped(self, places, theta, role):
    return (places[..., None] * theta).clamp(max=50)


@mistake("angles", "two_bases", "issue: the key's frequencies in the other order", lambda w: w.rotary_dim > 4)
def frequencies_of_the_key_reversed(self, places, theta, role):
    return places[..., None] * (theta.flip(0) if role == "k" else theta)


@mistake("angles", "drift", "tenstorrent/tt-metal/issues/51845", long)
def turn_of_three_digits(self, places, theta, role):
    return torch.remainder(places[..., None] * theta, 6.2832)


@mistake("angles", "stale depends_on_text", "huggingface/transformers/issues/25306", long)
def slower_after_a_long_text(self, places, theta, role):
    reached = max(self.memory.get("longest", 0), places.max().item())
    self.memory["longest"] = reached
    return places[..., None] * theta / (2.0 if reached > self.world.length // 2 else 1.0)


# --- How pairs are mixed ---


@mistake("turn", "half_turned unknown missing_minus clockwise", "issue: the whole second row negated")
def second_row_negated(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * cos - second * sin, -first * sin - second * cos, self.world.layout)


@mistake("turn", "other_order unknown swapped_cos_sin", "issue: the entries of a pair come back exchanged")
def entries_of_a_pair_exchanged(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(first * sin + second * cos, first * cos - second * sin, self.world.layout)


@mistake("turn", "still_pairs other_width", "vllm-project/vllm/pull/41185", lambda w: w.rotary_dim % 4 == 0)
def half_of_the_pairs(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    one, two = rope.split(Stages.turn(self, x, cos, sin, role), self.world.layout)
    keep = torch.arange(first.shape[-1]) >= first.shape[-1] // 2
    return rope.join(torch.where(keep, first, one), torch.where(keep, second, two), self.world.layout)


@mistake("turn", "missing_cos unknown half_turned", "NVIDIA/ngpt/issues/10")
def products_never_added(self, x, cos, sin, role):
    first, second = rope.split(x, self.world.layout)
    return rope.join(-second * sin, first * sin, self.world.layout)


@mistake("where", "other_rest", "issue: what passes through is lost", partial)
def rest_left_zero(self, one, x, role):
    r = self.world.rotary_dim
    return torch.cat((one(x, role)[..., :r], torch.zeros_like(x[..., r:])), -1)


@mistake("where", "other_order other_part no_pairs", "issue: what passes through comes first", partial)
def rest_returned_first(self, one, x, role):
    return one(x, role).roll(x.shape[-1] - self.world.rotary_dim, -1)


# --- Which length ---


@mistake("lengths", "longer shorter", "issue: both scaled by the width")
def both_scaled(self, x, role):
    return x / math.sqrt(self.world.dim)


@mistake("lengths", "not_linear", "issue: clipped to the range of a quantised type")
def entries_clipped(self, x, role):
    return (x * self.world.lengthened).clamp(-1.5, 1.5)


@mistake("lengths", "lengths mixed_tables uneven_lengths", "issue: a temperature that grows with the position")
def query_grows_with_its_position(self, x, role):
    return x * self.world.lengthened * (1 + 0.05 * torch.log1p(self.memory["places"])[..., None] * (role == "q"))


@mistake("lengths", "longer", "issue: the attention factor without its logarithm", scaled("yarn"))
def factor_without_its_logarithm(self, x, role):
    return x * (1 + 0.1 * self.world.factor)


@mistake("who", "crossed", "vllm-project/vllm-omni/pull/3828")
def query_returned_as_key(self, one, q, k, v):
    return one(q, "q"), one(q, "q"), v


@mistake("who", "crossed", "issue: the key added to the query")
def key_added_to_the_query(self, one, q, k, v):
    return one(q, "q") + one(k, "k"), one(k, "k"), v
