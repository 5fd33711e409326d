"""A sixth set of mistakes from public reports, gathered by somebody who hasn't seen the diagnosis, to judge it once.

What counts as a mistake, and the kinds of calls in ``seen``, are those of the fifth set. One thing is added: a call
must leave its positions as they were, just as it must leave q and k.

None of these reports is among those of the fifth set. A pattern matches the report's names and the sentences about
them. The patterns were fixed before any diagnosis was run. They are generous on purpose: a diagnosis names a mistake if
an engineer who reads it knows where to look and what is off there, whether it gives the cause or describes the effect
exactly. Some reports are of a proposal, a question or a review: then what would have gone wrong is the mistake.

`SOUND` holds functions that are right, written in styles that are unusual. They're declared as the others are.
"""

import math
import struct

import torch

from ropebook import rope
from tests.fresh_mistakes_fifth import (
    FREQUENCIES,
    LENGTHS,
    POSITIONS,
    PRECISION,
    SCALING,
    adjacent,
    at,
    called,
    counted,
    elementwise,
    every_two,
    halves,
    own_base,
    partial_halves,
    powers,
    ramp,
    rotate_half,
    scaled,
    whole,
    with_angles,
    with_tables,
)
from tests.fresh_world import (
    alone,
    by,
    collecting,
    collecting_sound,
    pairs,
    partial,
    places_of,
    plain,
    rotated,
    several,
    turn,
    with_frequencies,
    with_turn,
)

FRESH = {}
SOUND = {}
fresh = collecting(FRESH)
right = collecting_sound(SOUND)


# --- Patterns ---

ROWS = called("ignored_rows", "other_rows")
LONE = r"(single|one|lone)[ -]token"
IN_PLACE = r"(chang|modif|overwr|mutat)\w* (the |its )?(own )?(inputs?|arguments?|positions)\b|in place\b"
MIXED = called("mixed_tables", "swapped_layout", "two_layouts", "uneven_angles", "no_pairs", "own_layout", "lengths")

# --- Worlds, and parts of a rotation ---


def long(world):
    return world.length >= 1024


def padded_width(world):
    """Return the next power of two that is at least the rotary width."""
    return 1 << (world.rotary_dim - 1).bit_length()


def uneven_width(world):
    return padded_width(world) != world.rotary_dim


def ladder(world):
    return rope.inv_freq(world.rotary_dim, world.base)


def other_layout(world):
    return "half" if adjacent(world) else "interleaved"


def single(x):
    return x.shape[2] == 1


def doubled(angles):
    """Spread angles over adjacent entries: 0, 0, 1, 1, 2, 2, …"""
    return angles.repeat_interleave(2, -1)


def repeated(angles):
    """Spread angles over two halves: 0, 1, 2, …, 0, 1, 2, …"""
    return torch.cat((angles, angles), -1)


def with_quarter(world, spread, quarter):
    """Compute x·cos + quarter(x)·sin, where ``spread`` gives each entry its angle."""

    def formula(entries, places):
        angles = spread(places[..., None] * world.frequencies)
        return entries * angles.cos() + quarter(entries) * angles.sin()

    return elementwise(world, formula)


# --- Positions ---


@fresh(
    "both, positions, plus the index of the head for single tokens",
    accept=(
        called("one_token", "other_heads", "wrong_axis"),
        LONE,
        r"(index|number|axis).{0,40}\bheads?\b",
        r"\bheads?\b.{0,60}(other|different|later|own) (position|angle)",
    ),
    refuse="",
    seen=("one", "each"),
)
def head_added_to_the_position(world):
    """In calls with a single token, each head's index is added to the position, because the kernel confuses the axis of
    heads with the axis of tokens. Only head 0 is rotated correctly. Source: elixir-nx/emlx #121, 2026."""
    return at(world, lambda x, places: places + torch.arange(x.shape[1])[:, None] if single(x) else places)


@fresh(
    "both, rows, positions go on counting from row to row",
    accept=(
        called("ignored_rows", "other_rows", "other_positions", "ignored_gaps"),
        r"rows?.{0,60}(go(es)? on|continu|follow|where .{0,20}end|different position|offset)",
        r"(second|later|other) rows?\b",
    ),
    refuse="",
    seen=("rows", "packed", "one", "each"),
)
def rows_counted_one_after_another(world):
    """The kernel counts on from row to row: the second row's first token gets the position that follows the first
    row's last token. The positions of the second row are ignored. Source: turboderp/exllama #101, 2023."""

    def places_for(x, places):
        rows = torch.arange(x.shape[0])[:, None, None] * x.shape[2]
        return places.flatten()[0] + rows + counted(x)

    return at(world, places_for)


@fresh(
    "q, positions, the last position of the call in every call but the first",
    accept=(
        called("stale", "other_positions", "one_position", "drift", "shifted_key"),
        r"(earlier|previous|first|later|second) call",
        r"quer(y|ies).{0,80}(same|last|one|single) position",
    ),
    refuse="",
    seen=("large", "rows", "end", "again"),
)
def later_queries_at_the_last_position(world):
    """From the second call on, all queries are rotated for the last position of their call, because the code treats
    every call except the first as a decoding step. Source: NVIDIA/TransformerEngine #536, 2023."""
    calls = []

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        late = places[..., -1:] if calls else places
        calls.append(True)
        return alone(q, late, world), alone(k, places, world)

    return rotation


@fresh(
    "q, positions, as in the longest row",
    accept=(
        called("ignored_rows", "other_rows", "shifted_key", "other_positions"),
        r"quer(y|ies).{0,80}(longest|shift|later|other rows?|largest|ahead)",
        r"rows?.{0,60}(same|largest|longest|shift|ahead)",
    ),
    refuse="",
    seen=("rows", "packed", "each"),
)
def queries_follow_the_longest_row(world):
    """All rows share one cursor: queries are rotated as if their row ended where the longest row ends, while keys have
    the positions of their own row. Source: scouzi1966/maclocal-api #92, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        last = places[..., -1:]
        return alone(q, places + last.max() - last, world), alone(k, places, world)

    return rotation


@fresh(
    "both, positions, the start counted twice",
    accept=(
        called("ignored_start", "other_positions", "positions"),
        r"twice|doubl",
        r"(starts?|offset).{0,60}(later|too (large|high|far)|added)",
    ),
    refuse="",
    seen=("large", "end"),
)
def start_of_a_chunk_counted_twice(world):
    """When a chunk of several tokens is prefilled, the position where it starts is counted twice: once by the cache and
    once by the loop over the chunks. Source: mlx-node/mlx-node #33, 2026."""
    return at(world, lambda x, places: places if single(x) else places + places[..., :1])


@fresh(
    "both, positions, the first one for all tokens of a call",
    accept=(
        called("one_position", "ignored_gaps", "other_positions", "nothing_turns"),
        r"(first|same|one|single) position|all tokens",
    ),
    refuse="",
    seen=("small", "large", "end", "rows"),
)
def window_stays_at_its_first_position(world):
    """All tokens of a call are rotated for the position where the call starts, because the position isn't incremented
    from token to token. Source: jundot/omlx #2363, 2026."""
    return at(world, lambda x, places: places[..., :1])


@fresh(
    "both, positions, rolled by one token",
    accept=(
        called("other_positions", "positions", "ignored_gaps"),
        r"(last|final) token|next token|(shift|roll|mov)\w* by one|off by one",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def table_rolled_by_one(world):
    """The table of a call is rolled by one token, so each token is rotated for the position of the next token, and the
    last token for the position of the first. Source: modelscope/ms-swift #8325, 2026."""
    return at(world, lambda x, places: places.roll(-1, -1))


@fresh(
    "both, rows, the index of the row as position",
    accept=(
        called("wrong_axis", "ignored_positions", "one_position", "nothing_turns", "other_rows"),
        r"(index|number|axis) of (the |its )?(rows?|batch)|\b(rows?|batch)\b.{0,40}(axis|instead of)",
    ),
    refuse="",
    seen=("small", "large", "end", "rows"),
)
def rows_taken_for_tokens(world):
    """The axis of the batch is confused with the axis of tokens: all tokens of a row are rotated for the index of the
    row, so nothing is rotated in the first row. Source: PaddlePaddle/PaddleFleet #91, 2025."""
    return at(world, lambda x, places: torch.arange(x.shape[0], dtype=torch.float64)[:, None, None])


@fresh(
    "both, heads, only the first one of the first row for single tokens",
    accept=(
        called("one_token", "other_heads", "other_rows"),
        LONE,
        r"(other|first|only|some|all but).{0,20}\bheads?\b",
    ),
    refuse="",
    seen=("one", "each"),
)
def single_tokens_in_one_head_only(world):
    """Rows and heads are folded into one axis. If each of them has a single token, only the very first is rotated: all
    other heads and rows stay as they were. Source: oxiglade/mlx-rs #357, 2026."""

    def one(x, places):
        result = alone(x, places, world)
        if single(x):
            result = torch.where(torch.arange(x.shape[0] * x.shape[1]).view(*x.shape[:2], 1, 1) == 0, result, x)
        return result

    return by(one)


@fresh(
    "both, rows, counted from the first position of the first row",
    accept=(
        called("ignored_rows", "other_rows", "ignored_gaps"),
        r"first row|same positions (for|in) (all|every)|rows?.{0,40}ignore|only the first position",
    ),
    refuse="",
    seen=("rows", "packed", "each"),
)
def first_position_of_the_first_row(world):
    """Of all positions, only the first position of the first row is used: every row counts its tokens from there.
    Source: microsoft/onnxruntime #29632, 2026."""
    return at(world, lambda x, places: places.flatten()[0] + counted(x))


@fresh(
    "both, rows, an error if rows have their own positions",
    accept=(called("raises"), ROWS, r"raises?\b|RuntimeError"),
    refuse="",
    seen=("rows", "packed", "each"),
)
def positions_of_all_rows_in_one_list(world):
    """The positions of all rows are flattened into one list, so the table of angles doesn't fit: if rows have positions
    of their own, the function raises an error. Source: morganmcg1/rotobart #1, 2021."""

    def rotation(q, k, positions):
        angles = positions.flatten().double()[:, None] * world.frequencies
        return tuple(rotated(x, angles, world.layout, world.lengthened) for x in (q, k))

    return rotation


@fresh(
    "both, rows, an error if rows share their positions",
    accept=(called("raises", "ignored_rows", "other_rows"), r"raises?\b|RuntimeError|refuse"),
    refuse="",
    seen=("small", "large", "end", "one", "strided"),
)
def shared_positions_refused(world):
    """The kernel wants cosines and sines for each row. If several rows share their positions, it raises an error.
    Source: vllm-project/vllm-ascend #4769, 2025."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        if positions.ndim == 1 and q.shape[0] > 1:
            raise RuntimeError("cos or sin batchSize must same as x batchSize")
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "both, rows, the positions of the last row in all rows",
    accept=(ROWS, r"last row|same positions (for|in) (all|every)|rows?.{0,40}ignore"),
    refuse="",
    seen=("rows", "packed", "each"),
)
def buffer_overwritten_by_the_last_row(world):
    """The rows share one buffer for cosines and sines. Nothing reads this buffer until the last row has filled it, so
    all rows are rotated for the positions of the last row. Source: vllm-project/vllm-ascend #16929, 2026."""
    return at(world, lambda x, places: places[-1:] if places.ndim == 3 else places)


@fresh(
    "both, positions, the first single token's position in all later ones",
    accept=(called("one_token", "stale", "ignored_positions"), LONE, r"(earlier|previous|first) (call|step)"),
    refuse="",
    seen=("each",),
)
def captured_position_replayed(world):
    """The first call with a single token is captured as a graph that contains its position. Later calls with a single
    token replay this graph, so their tokens are rotated for the position of that first call. Source: huggingface/candle
    #3728, 2026."""
    captured = []

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        if single(q):
            captured.append(places)
            places = captured[0].flatten()[:1]
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "both, positions, sometimes those of four tokens earlier",
    accept=(
        called("random"),
        r"random|(differ|chang)\w* (from|between) (call|run)|determin",
        r"positions? of.{0,30}(earlier|previous) token",
    ),
    refuse="",
    seen=("small", "large", "end", "again"),
)
def positions_read_too_early(world):
    """Positions are loaded in blocks of four tokens. From the second block on, some positions are read before they have
    been loaded, and their tokens are rotated for the position of the token four places earlier. The affected tokens
    change at random from call to call. Source: vllm-project/vllm-ascend #16674, 2026."""
    generator = torch.Generator().manual_seed(0)

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        token = torch.arange(q.shape[2])
        early = (torch.rand(len(token), generator=generator) < 0.5) & (token >= 4)
        places = places[..., token - 4 * early]
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "both, table, zeros after the eighth token of a call",
    accept=(called("zeros", "lengths", "uneven_lengths", "too_short"), r"\bzeros?\b"),
    refuse="",
    seen=("small", "large", "end", "rows"),
)
def table_sliced_to_eight_tokens(world):
    """The slice of the table has a fixed width of eight tokens, whatever the length of the call. For tokens after the
    eighth, cosine and sine are filled with zeros, so their rotated entries are all zero.
    Source: tenstorrent/tt-metal #55689, 2026."""

    def one(x, places):
        filled = (counted(x) < 8).to(x.dtype)[:, None]
        return alone(torch.cat((x[..., : world.rotary_dim] * filled, x[..., world.rotary_dim :]), -1), places, world)

    return by(one)


@fresh(
    "both, memory, the index of the head as position unless contiguous",
    accept=(called("memory_layout", "wrong_axis"), r"contiguous|strides?\b|transposed"),
    refuse="",
    seen=("strided",),
)
def strided_heads_taken_for_tokens(world):
    """The kernel expects tensors that are contiguous. If q and k are transposed views, it mistakes heads for tokens,
    and rotates each head for its index instead of the position. Source: openvinotoolkit/openvino #25200, 2024."""

    def places_for(x, places):
        return places if x.is_contiguous() else torch.arange(x.shape[1], dtype=torch.float64)[:, None]

    return at(world, places_for)


@fresh(
    "both, table, nothing rotated if a position is beyond the trained length",
    accept=(
        called("too_short", "other_far", "nothing_turns"),
        r"(not|n't|never) rotated|unrotated|unchanged",
        r"(table|cache).{0,60}(short|ends?\b)|beyond",
    ),
    refuse="",
    when=scaled("linear", "yarn", "llama3"),
    seen=("end",),
)
def gives_up_beyond_the_table(world):
    """The table ends at the trained length, before scaling. If any position of a call lies beyond it, the kernel
    returns early, and q and k are not rotated at all. Source: microsoft/onnxruntime #28205, 2026."""
    rows = round(world.length / world.factor)

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        if places.max() >= rows:
            return q.clone(), k.clone()
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "both, inputs, positions changed",
    accept=(called("changed_inputs", "overwritten", "stale"), IN_PLACE),
    refuse="",
    seen=("inputs",),
)
def positions_shifted_in_place(world):
    """The rotation is right, but then the function subtracts the smallest position in place from the tensor of
    positions that it was given, so the next layer gets positions that have changed.
    Source: open-edge-platform/physical-ai-studio #589, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions).clone()
        positions -= positions.min()
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "k, positions, negative",
    accept=(
        r"opposite|reverse|mirror|\bsum of|negat|backwards|(wrong|other|different) (way|direction|hand|sign)",
        called("other_scores"),
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def keys_turned_the_other_way(world):
    """Keys are rotated in the opposite direction to queries, so the score depends on the sum of the two positions
    instead of their difference. Source: huggingface/transformers #30900, 2024."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places, world), alone(k, -places, world)

    return rotation


@fresh(
    "both, angles, multiplied by pi",
    accept=(called("faster"), FREQUENCIES, r"\b3\.14|π|\bpi\b"),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def angles_times_pi(world):
    """Every angle is multiplied by pi, as if mθ were given in half turns, so all pairs turn 3.14 times as fast.
    Source: ggml-org/llama.cpp #1234, 2023."""
    return with_frequencies(world, math.pi * world.frequencies)


@fresh(
    "both, positions, 24 too small in calls with several tokens",
    accept=(
        called("one_token", "other_positions", "positions", "other_far"),
        LONE,
        r"positions.{0,60}(shift|behind|too (small|low)|lag)",
    ),
    refuse="",
    seen=("large", "end"),
)
def evicted_tokens_forgotten(world):
    """24 tokens have been evicted from the cache. A call with a single token adds them to its position again, but a
    call with several tokens does not, so its positions are 24 too small. Calls within the first 24 positions are right.
    Source: warpfront/hipfire #391, 2026."""

    def places_for(x, places):
        return places if single(x) or places.min() < 24 else places - 24

    return at(world, places_for)


# --- Precision ---


@fresh(
    "both, angles, computed in float16",
    accept=(PRECISION, called("other_dtype", "coarse_table"), r"float16|fp16|half.precision|rounded"),
    refuse="",
    when=long,
    seen=("end",),
)
def angles_in_float16(world):
    """Positions, frequencies and their products are all computed in float16, so large angles are off by up to a
    radian. Source: EleutherAI/gpt-neox #1003, 2023."""
    return with_angles(world, lambda places: (places[..., None].half() * world.frequencies.half()).double())


@fresh(
    "both, frequencies, rounded to bfloat16",
    accept=(PRECISION, FREQUENCIES, called("other_dtype", "coarse_table"), r"bfloat16|bf16|half.precision|rounded"),
    refuse="",
    when=lambda world: whole(world) and long(world) and several(world),
    seen=("end",),
)
def frequencies_cast_to_the_models_dtype(world):
    """The frequencies are cast to bfloat16 before they are multiplied by the positions, so the angles drift off with
    growing position, although everything else is computed in float32. Source: sgl-project/sglang-jax #1473, 2026."""
    return with_frequencies(world, world.frequencies.bfloat16().double())


@fresh(
    "both, positions, rounded to bfloat16",
    accept=(PRECISION, POSITIONS, r"bfloat16|bf16|half.precision|rounded|same position"),
    refuse="",
    when=long,
    seen=("end",),
)
def positions_in_bfloat16(world):
    """Positions are rounded to bfloat16. Above 256, neighbouring tokens share the same position.
    Source: nkalyanv99/UNI-D2 #6, 2026."""
    return at(world, lambda x, places: places.bfloat16().double())


@fresh(
    "both, positions, the start of a call rounded to bfloat16",
    accept=(
        PRECISION,
        POSITIONS,
        called("ignored_start", "other_far"),
        r"bfloat16|bf16|half.precision|rounded|starts?\b.{0,60}(off|wrong|earlier|later)",
    ),
    refuse="",
    when=long,
    seen=("end",),
)
def start_in_bfloat16(world):
    """The position where a call starts is rounded to bfloat16, and all its positions are counted from the rounded one.
    Distances within a call are right, but distances to the keys of earlier calls are wrong. Source:
    keras-team/keras-hub #1544, 2024."""
    return at(world, lambda x, places: places - places[..., :1] + places[..., :1].bfloat16().double())


@fresh(
    "both, table, in bfloat16",
    accept=(PRECISION, LENGTHS, called("coarse_table", "rounded_result"), r"bfloat16|bf16|half.precision|rounded"),
    refuse="",
    when=whole,
    seen=("small", "large", "end"),
)
def cosines_kept_in_bfloat16(world):
    """The angles are exact, but the table keeps cosines and sines in bfloat16, although the range of bfloat16 isn't
    needed for them. Source: IST-DASLab/llmq #60, 2026."""
    return with_tables(world, lambda angles: (angles.cos().bfloat16().double(), angles.sin().bfloat16().double()))


@fresh(
    "both, tensors, multiplied with few bits",
    accept=(
        PRECISION,
        LENGTHS,
        called("coarse_table", "rounded_result"),
        r"bfloat16|bf16|half.precision|rounded|coarse",
    ),
    refuse="",
    when=whole,
    seen=("small", "large", "end"),
)
def multiplied_at_low_fidelity(world):
    """The unit that multiplies runs at its lowest fidelity: q, k, cosines and sines are all rounded to eight bits, as
    in bfloat16, before they're multiplied. Source: tenstorrent/tt-mlir #5786, 2025."""
    return with_turn(world, lambda *parts: turn(*(part.bfloat16().double() for part in parts)))


@fresh(
    "both, table, computed again in bfloat16 once the last position is reached",
    accept=(
        PRECISION,
        FREQUENCIES,
        called("stale", "other_far", "coarse_table", "drift", "other_dtype"),
        r"(earlier|previous|last|long\w*) call|bfloat16|bf16|half.precision|rounded",
    ),
    refuse="",
    when=lambda world: whole(world) and several(world) and long(world),
    seen=("end",),
)
def table_computed_again_in_bfloat16(world):
    """The first table is right. As soon as a call reaches the last position of the declared length, the table is
    computed again, now with frequencies in bfloat16, and all later calls use it.
    Source: huggingface/transformers #29496, 2024."""
    table = [world.frequencies]

    def one(x, places):
        if places.max() >= world.length - 1:
            table[0] = world.frequencies.bfloat16().double()
        return rotated(x, places[..., None] * table[0], world.layout, world.lengthened)

    return by(one)


# --- Scaling, frequencies ---


@fresh(
    "both, length, the logarithm applied twice",
    accept=(called("longer", "shorter"), LENGTHS, r"attention.factor|too (long|short)"),
    refuse="",
    when=scaled("yarn"),
)
def logarithm_applied_twice(world):
    """The formula for YaRN's attention factor is applied twice, the second time with that factor in it:
    0.1·factor·ln(scale) + 1. Vectors are too long. Source: NVIDIA/TensorRT-LLM #16379, 2026."""
    return with_frequencies(world, world.frequencies, 0.1 * world.lengthened * math.log(world.factor) + 1)


@fresh(
    "both, length, 1",
    accept=(called("shorter"), LENGTHS, r"attention.factor|too short"),
    refuse="",
    when=lambda world: scaled("yarn")(world) and adjacent(world),
)
def attention_factor_for_halves_only(world):
    """YaRN's attention factor is applied only if pairs lie in two halves. Adjacent pairs aren't lengthened, so they're
    too short. Source: GaijinEntertainment/daScript #3479, 2026."""
    return with_frequencies(world, world.frequencies, 1.0)


@fresh(
    "both, scaling, linear instead of YaRN",
    accept=(SCALING, called("faster", "shorter"), LENGTHS, r"linear"),
    refuse="",
    when=scaled("yarn"),
)
def linear_instead_of_yarn(world):
    """YaRN is declared, but the code takes the path for linear scaling: all frequencies are divided by the factor, and
    there is no attention factor. Source: ModelTC/LightLLM #1582, 2026."""
    return with_frequencies(world, ladder(world) / world.factor, 1.0)


@fresh(
    "both, scaling, linear in addition to YaRN",
    accept=(SCALING, r"twice|slow(s|ed|er)?\b|\blinear\b|divided"),
    refuse="",
    when=scaled("yarn"),
)
def linear_on_top_of_yarn(world):
    """Positions are divided by the scaling factor, as in linear scaling, although the frequencies are already those of
    YaRN: the scaling is applied twice. Source: NVIDIA-NeMo/Speech #7415, 2023."""
    return with_frequencies(world, world.frequencies / world.factor)


@fresh(
    "both, scaling, positions multiplied by the factor",
    accept=(SCALING, POSITIONS, called("faster", "unscaled"), r"multipl|instead of divid|invert"),
    refuse="",
    when=scaled("linear"),
)
def multiplied_by_the_factor(world):
    """Linear scaling multiplies positions by the factor instead of dividing by it.
    Source: ml-explore/mlx #261, 2023."""
    return with_frequencies(world, ladder(world) * world.factor)


@fresh(
    "both, base and scaling, NTK's base for the frequencies that YaRN keeps",
    accept=(called("other_base"), SCALING, r"(other|larger|second|different) base|base.{0,20}larger|\bNTK\b"),
    refuse="",
    when=lambda world: scaled("yarn")(world) and several(world) and float(ramp(world)[1]) > 0.3,
)
def base_of_ntk_within_yarn(world):
    """The frequencies that YaRN keeps are computed from NTK's larger base, base·scale^(d/(d − 2)), instead of the
    original base. Source: paiml/aprender #2161, 2026."""
    width = world.rotary_dim
    larger = world.base * world.factor ** (width / (width - 2))
    kept = ramp(world)
    return with_frequencies(
        world, powers(larger, torch.arange(0, width, 2) / width) * kept + ladder(world) / world.factor * (1 - kept)
    )


@fresh(
    "both, scaling, none",
    accept=(called("unscaled", "faster"), SCALING, r"unscaled|(not|n't) scaled|without.{0,20}scaling|never.{0,30}used"),
    refuse="",
    when=lambda world: scaled("llama3")(world) and bool(((ladder(world) - world.frequencies) * world.length > 1).any()),
    seen=("end",),
)
def llama_factors_loaded_but_unused(world):
    """The factors of Llama 3's scaling are loaded but never passed to the kernel, so the frequencies are not scaled.
    Source: ikawrakow/ik_llama.cpp #2291, 2026."""
    return with_frequencies(world, ladder(world))


@fresh(
    "both, base, 10000",
    accept=(called("other_base"), FREQUENCIES, r"10.?000\b|(other|different|wrong) base|base.{0,40}instead"),
    refuse="",
    when=lambda world: own_base(world) and pairs(world),
    seen=("large", "end"),
)
def base_left_at_its_default(world):
    """The base isn't copied from the configuration, so the default of 10000 is used instead.
    Source: lyogavin/airllm #369, 2026."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, 10000.0))


@fresh(
    "both, frequencies, all zero",
    accept=(
        called("nothing_turns", "ignored_positions", "one_position"),
        r"nothing.{0,20}(turn|rotate)|(not|never|n't) rotate",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def frequencies_filled_with_zeros(world):
    """Buffers are filled with zeros when the model is moved to its device, the frequencies too. So all angles are 0,
    and nothing is ever rotated. Source: pytorch/executorch #19627, 2026."""
    return with_frequencies(world, 0 * world.frequencies)


@fresh(
    "both, frequencies, the first two are garbage",
    accept=(
        FREQUENCIES,
        called("faster", "still_pairs", "half_turned"),
        r"(first|fastest|one|two|some) (two |few )?pairs?|garbage",
    ),
    refuse="",
    when=lambda world: several(world) and plain(world),
    seen=("small", "large", "end"),
)
def frequencies_from_freed_memory(world):
    """The buffer of the frequencies is never filled after loading. Its memory still holds most of the right numbers,
    but the first two frequencies have been overwritten with the halves of a pointer: the first pair turns far too fast,
    and the second pair hardly at all. Source: huggingface/transformers #48892, 2026."""
    pointer = torch.tensor(struct.unpack("<2f", (0x7F3AC4001230).to_bytes(8, "little")), dtype=torch.float64)
    return with_frequencies(world, torch.cat((pointer, world.frequencies[2:])))


@fresh(
    "both, frequencies, each used for two pairs",
    accept=(
        called("repeated_frequencies", "other_base", "halved_dim", "doubled_dim"),
        FREQUENCIES,
        r"(twice|repeated|two pairs)",
    ),
    refuse="",
    when=lambda world: adjacent(world) and several(world),
    seen=("small", "large", "end"),
)
def each_frequency_for_two_pairs(world):
    """The index into the table is halved once too often, so each frequency is used for two pairs and the lower half of
    the frequencies is never used. Source: vllm-project/vllm-ascend #11027, 2026."""
    return with_frequencies(world, world.frequencies[torch.arange(world.rotary_dim // 2) // 2])


# --- Pairs and tables ---


@fresh(
    "both, layout, the other one",
    accept=(called("other_layout", "swapped_layout"), r"other layout|(pairs|paired).{0,60}(adjacent|hal(f|ves))"),
    refuse="",
    when=pairs,
    seen=("small", "large", "end"),
)
def wrong_type_for_the_model(world):
    """The model is entered in the list with the wrong type of rotation, so it is run in the other layout: pairs lie in
    two halves where they should be adjacent, and the other way round. Source: ggml-org/llama.cpp #13260, 2025."""
    other = other_layout(world)
    return by(lambda x, places: rotated(x, places[..., None] * world.frequencies, other, world.lengthened))


@fresh(
    "both, tables, of adjacent pairs, though halves are turned",
    accept=(MIXED, r"(two|different|unequal) angles|table.{0,60}(layout|adjacent|hal(f|ves))"),
    refuse="",
    when=lambda world: halves(world) and several(world),
    seen=("small", "large", "end"),
)
def table_spread_for_adjacent_pairs(world):
    """The two halves are combined, but the table is spread for adjacent pairs, so the two entries of a pair get two
    different angles. Source: raiyanyahya/how-to-train-your-gpt #6, 2026."""
    return with_quarter(world, doubled, rotate_half)


@fresh(
    "both, tables, of two halves, though adjacent pairs are turned",
    accept=(MIXED, r"(two|different|unequal) angles|table.{0,60}(layout|adjacent|hal(f|ves))"),
    refuse="",
    when=lambda world: adjacent(world) and several(world),
    seen=("small", "large", "end"),
)
def table_repeated_for_halves(world):
    """Adjacent entries are combined, but the columns of the table are repeated in the order for two halves, so the two
    entries of a pair get two different angles. Source: xiangking/ark-nlp #47, 2022."""
    return with_quarter(world, repeated, every_two)


@fresh(
    "both, pairs, of two halves, though the table is that of adjacent pairs",
    accept=(
        MIXED,
        called("other_layout"),
        r"(two|different|unequal) angles|(pairs|entries|table).{0,60}(layout|adjacent|hal(f|ves))",
    ),
    refuse="",
    when=lambda world: adjacent(world) and several(world),
    seen=("small", "large", "end"),
)
def condition_always_true(world):
    """A stray comma makes the test for the model's name always true, so the two halves are combined although pairs are
    adjacent. The table is right for adjacent pairs. Source: TransformerLensOrg/TransformerLens #365, 2023."""
    return with_quarter(world, doubled, rotate_half)


@fresh(
    "both, tables, sines read from the wrong place",
    accept=(
        MIXED,
        called("uneven_lengths", "uncrossed"),
        r"\bsines?\b.{0,60}(other|wrong|shift|different|offset)|(two|different|unequal) angles|cos² ?\+ ?sin²",
    ),
    refuse="",
    when=lambda world: uneven_width(world) and several(world),
    seen=("small", "large", "end"),
)
def sines_read_at_a_padded_offset(world):
    """Each row of the table contains the cosines and then the sines. If the rotary width isn't a power of two, the
    sines are read at the offset for the padded width. Pairs get the sines of other pairs, and the last pairs get
    cosines of the next position. Source: vllm-project/vllm-ascend #15688, 2026."""
    start, width = padded_width(world) // 2, world.rotary_dim // 2

    def tables(angles):
        rows = [table(turned) for turned in (angles, angles + world.frequencies) for table in (torch.cos, torch.sin)]
        return angles.cos(), torch.cat(rows, -1)[..., start : start + width]

    return with_tables(world, tables)


@fresh(
    "both, part, rotated up to the next power of two",
    accept=(
        called("other_width", "other_part", "other_rest"),
        r"too (wide|many)|wider|(rest|remaining|passed).{0,60}(rotat|turn|chang)|(rotated|turned) too",
    ),
    refuse="",
    when=lambda world: partial(world) and uneven_width(world) and adjacent(world),
    seen=("small", "large", "end"),
)
def rotated_up_to_a_power_of_two(world):
    """If the rotary width isn't a power of two, it is rounded up to one, so some entries that should be passed through
    are rotated too, with the first angles of the next position.
    Source: sgl-project/sglang #35096, 2026."""
    more = (padded_width(world) - world.rotary_dim) // 2

    def angles(places):
        return torch.cat(
            [(places + step)[..., None] * world.frequencies[:end] for step, end in ((0, None), (1, more))], -1
        )

    return with_angles(world, angles)


@fresh(
    "both, rest, mixed as if by 45 degrees",
    accept=(
        called("other_rest", "other_part", "other_width", "lengths", "uneven_lengths", "longer"),
        r"(rest|remaining|passed|unrotated).{0,60}(chang|mix|rotat|unchanged|touch)",
    ),
    refuse="",
    when=partial,
    seen=("small", "large", "end"),
)
def sines_padded_with_ones(world):
    """Beyond the rotary width, the table is padded with ones, not only for the cosine but also for the sine, which
    should be 0. So the remaining entries are changed: they're mixed in pairs, and made longer.
    Source: vllm-project/vllm #55204, 2026."""

    def one(x, places):
        first, second = rope.split(x[..., world.rotary_dim :], world.layout)
        rest = rope.join(first - second, first + second, world.layout)
        return torch.cat((alone(x, places, world)[..., : world.rotary_dim], rest), -1)

    return by(one)


# --- Heads, q and k ---


@fresh(
    "both, heads, entries combined with themselves in all but the first",
    accept=(
        called("other_heads"),
        r"(other|first|only|some|all but).{0,20}\bheads?\b",
        r"\bheads?\b.{0,40}(differ|wrong)",
    ),
    refuse="",
    when=partial_halves,
    seen=("small", "large", "end"),
)
def exchange_fails_after_the_first_head(world):
    """With partial rotation, the exchange between the lanes of the processor fails in all but the first head: each
    entry is combined with itself instead of its partner. Source: vllm-project/vllm #50903, 2026."""

    def alone_too(x, places):
        return rotated(
            x,
            places[..., None] * world.frequencies,
            world.layout,
            world.lengthened,
            turn=lambda first, second, cos, sin: (first * cos - first * sin, second * sin + second * cos),
        )

    return by(lambda x, places: torch.cat((alone(x, places, world)[:, :1], alone_too(x, places)[:, 1:]), 1))


@fresh(
    "both, tensors, halves of q and k exchanged",
    accept=(
        called("crossed", "other_scores", "tensors"),
        r"(quer(y|ies)|\bq\b).{0,60}(contain|from|depend).{0,20}(keys?\b|\bk\b)",
        r"(keys?\b|\bk\b).{0,60}(contain|from|depend).{0,20}(quer(y|ies)|\bq\b)",
        r"mix(es|ed)? .{0,20}(quer|keys|\bq and k\b)",
    ),
    refuse="",
    when=halves,
    seen=("small", "large", "end", "one"),
)
def wires_crossed_between_q_and_k(world):
    """The second half of q is computed from k, and the first half of k is computed from q.
    Source: hpcaitech/ColossalAI #6444, 2026."""
    half, width = world.rotary_dim // 2, world.rotary_dim

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        group = q.shape[1] // k.shape[1]
        q, k = alone(q, places, world), alone(k, places, world)
        foreign = k.repeat_interleave(group, 1)[..., half:width]
        return (
            torch.cat((q[..., :half], foreign, q[..., width:]), -1),
            torch.cat((q[:, ::group, :, :half], k[..., half:]), -1),
        )

    return rotation


@fresh(
    "k, rotation, twice",
    accept=(called("turned_twice", "shifted_key"), r"twice|doubl|once more|squared"),
    refuse="",
    seen=("small", "large", "end"),
)
def cached_keys_rotated_again(world):
    """Keys are rotated when they're put into the cache, and once more when they're read, so they're rotated twice.
    Queries are rotated once. Source: NeuraLegion/shainet #110, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places, world), rotated(
            k, 2 * places[..., None] * world.frequencies, world.layout, world.lengthened
        )

    return rotation


@fresh(
    "both, rotation, the second entry from the new first one",
    accept=(
        called("overwritten", "no_pairs", "lengths", "uneven_lengths", "uncrossed", "mixed_tables"),
        r"overwritten|already (rotated|changed)|new first",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def partner_already_overwritten(world):
    """The rotation runs in place without a barrier, so the second entry of a pair is computed from a first entry that
    has already been overwritten. Source: flagos-ai/FlagGems #5142, 2026."""

    def hasty(first, second, cos, sin):
        first = first * cos - second * sin
        return first, first * sin + second * cos

    return with_turn(world, hasty)


@fresh(
    "both, inputs, multiplied by the attention factor",
    accept=(called("changed_inputs", "overwritten"), IN_PLACE),
    refuse="",
    when=scaled("yarn"),
    seen=("inputs",),
)
def inputs_lengthened_in_place(world):
    """The result is right, but YaRN's attention factor is multiplied into the given tensors in place, so the caller's q
    and k are changed too. Source: ml-explore/mlx-lm #1003, 2026."""

    def one(x, places):
        x[..., : world.rotary_dim] *= world.lengthened
        return rotated(x, places[..., None] * world.frequencies, world.layout)

    return by(one)


# --- Right, but unusual ---


def with_cosines(world, table):
    """Rotate with cosines and sines that ``table(places, frequencies)`` gives, in float64."""
    return by(
        lambda x, places: rotated(
            x,
            places[..., None] * world.frequencies,
            world.layout,
            world.lengthened,
            turn=lambda first, second, cos, sin: turn(first, second, *table(places, world.frequencies)),
        )
    )


@right
def in_fractions_of_a_turn(world):
    """Count turns, drop the whole ones, and only then convert to radians."""

    def table(places, frequencies):
        angles = 2 * math.pi * (places[..., None] * (frequencies / (2 * math.pi))).frac()
        return angles.cos(), angles.sin()

    return with_cosines(world, table)


@right
def tangents_of_half_the_angle(world):
    """Compute cosine and sine from the tangent of half the angle."""

    def table(places, frequencies):
        t = (places[..., None] * frequencies / 2).tan()
        return (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t)

    return with_cosines(world, table)


@right
def sines_only(world):
    """Compute the cosine as the sine of the angle plus a quarter turn."""

    def table(places, frequencies):
        angles = places[..., None] * frequencies
        return (angles + math.pi / 2).sin(), angles.sin()

    return with_cosines(world, table)


@right
def three_shears(world):
    """Rotate by three successive shears. Where the cosine is negative, rotate by half a turn less and negate the
    result."""

    def shear(first, second, cos, sin):
        sign = torch.where(cos < 0, -1.0, 1.0)
        cos, sin = sign * cos, sign * sin
        slope = -sin / (1 + cos)
        first = first + slope * second
        second = second + sin * first
        return sign * (first + slope * second), sign * second

    return with_turn(world, shear)


@right
def exponentials_of_matrices(world):
    """Take the exponential of a skew-symmetric 2 × 2 matrix for each pair."""
    generator = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)

    def table(places, frequencies):
        angles = torch.remainder(places[..., None] * frequencies, 2 * math.pi)
        matrices = torch.linalg.matrix_exp(angles[..., None, None] * generator)
        return matrices[..., 0, 0], matrices[..., 1, 0]

    return with_cosines(world, table)


@right
def token_by_token(world):
    """Rotate every token of every row on its own, and write it into an empty tensor."""

    def one(x, places):
        result = torch.empty_like(x)
        places = places.expand(x.shape[0], 1, x.shape[2])
        for row in range(x.shape[0]):
            for token in range(x.shape[2]):
                here = (slice(row, row + 1), slice(None), slice(token, token + 1))
                result[here] = alone(x[here], places[here], world)
        return result

    return by(one)


@right
def remembers_every_call(world):
    """Keep the cosines and sines of every call, under the exact positions they were computed for."""
    kept = {}

    def table(places, frequencies):
        key = (tuple(places.shape), tuple(places.flatten().tolist()))
        if key not in kept:
            angles = places[..., None] * frequencies
            kept[key] = angles.cos(), angles.sin()
        return kept[key]

    return with_cosines(world, table)


@right
def by_way_of_the_other_layout(world):
    """Reorder the entries to the other layout, rotate them there, and reorder them back."""
    other = other_layout(world)

    def one(x, places):
        moved = rope.join(*rope.split(x[..., : world.rotary_dim], world.layout), other)
        moved = rotated(moved, places[..., None] * world.frequencies, other, world.lengthened)
        back = rope.join(*rope.split(moved, other), world.layout)
        return torch.cat((back, x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def left_in_the_other_order(world):
    """Reorder the entries of q and of k to the other layout and leave them there, which doesn't change the scores."""
    other = other_layout(world)

    def one(x, places):
        result = alone(x, places, world)
        moved = rope.join(*rope.split(result[..., : world.rotary_dim], world.layout), other)
        return torch.cat((moved, x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def both_in_one_tensor(world):
    """Put q and k into one tensor, side by side as heads, and rotate that."""

    def rotation(q, k, positions):
        both = alone(torch.cat((q, k), 1), places_of(q, k, positions), world)
        return both[:, : q.shape[1]], both[:, q.shape[1] :]

    return rotation


@right
def tokens_before_heads(world):
    """Rotate with the axis of the tokens before that of the heads, and return a transposed view."""

    def one(x, places):
        x = x.transpose(1, 2).contiguous()
        places = places.transpose(-1, -2) if places.ndim == 3 else places[:, None]
        return alone(x, places, world).transpose(1, 2)

    return by(one)
