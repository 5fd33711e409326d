"""A fifth set of mistakes from public reports, gathered by somebody who hasn't seen the diagnosis, to judge it once.

What counts as a mistake here: within the declared length, the scores of q and k differ from those of every rotation
that fits what is declared, or a single vector's length does, or the function changes its inputs, raises, or gives NaN
where a right one wouldn't. Scores are also those of a query from one call with a key from another, as with cached
keys. `tests/test_fresh_fifth.py` checks all of this in random worlds, for the kinds of calls listed in ``seen``:

- "small", "large" and "end": a run of tokens at the start, further on, and at the end of the declared length
- "rows" and "packed": rows with positions of their own, and rows that hold two texts each
- "one" and "each": a single token, and rows with a single token each at positions of their own
- "strided": tensors that aren't contiguous; "again": the first call once more; "inputs": whether q or k changed

The author read no mistake of an earlier set, so some may be there too. A pattern matches the report's names and the
sentences about them. The patterns were fixed before any diagnosis was run. They are generous on purpose: a diagnosis
names a mistake if an engineer who reads it knows where to look and what is off there, whether it gives the cause or
describes the effect exactly. Some reports are of a proposal, a question or a review: then what would have gone wrong
is the mistake.

`SOUND` holds functions that are right, written in styles that are unusual. They're declared as the others are.
"""

import math

import numpy
import torch

from ropebook import rope
from tests.fresh_world import (
    alone,
    by,
    collecting,
    collecting_sound,
    partial,
    places_of,
    plain,
    rotated,
    sound,
    turn,
    with_frequencies,
    with_turn,
)

FRESH = {}
SOUND = {}
fresh = collecting(FRESH)
right = collecting_sound(SOUND)


# --- Patterns ---


def called(*names):
    """Return a pattern that matches a report of a mistake with one of these names."""
    return rf"^(?:{'|'.join(names)}):"


FREQUENCIES = called("frequencies", "uneven_frequencies")
SCALING = called("other_scaling", "frequencies", "uneven_frequencies")
POSITIONS = called("positions", "other_positions")
PRECISION = called("half_angles", "half_frequencies", "half_positions", "half_vectors", "bf16_table", "fp16_table")
LENGTHS = called("lengths", "uneven_lengths")

# --- Worlds, and parts of a rotation ---


def scaled(*kinds):
    return lambda world: world.scaled in kinds


def halves(world):
    return world.layout == "half"


def adjacent(world):
    return world.layout == "interleaved"


def partial_halves(world):
    return partial(world) and halves(world)


def whole(world):
    return plain(world) and world.rotary_dim == world.dim


def own_base(world):
    return plain(world) and not 3000 < world.base < 30000


def bent(world):
    """Return whether the scaling leaves some frequencies between the unchanged and the divided ones."""
    kept = keeps(world)
    return world.scaled == "llama3" and bool(((kept > 0.1) & (kept < 0.9)).any())


def keeps(world):
    """Return how much of each frequency is kept: 1 for an unchanged frequency, 0 for one divided by the factor."""
    ratio = world.frequencies / rope.inv_freq(world.rotary_dim, world.base)
    return (ratio - 1 / world.factor) / (1 - 1 / world.factor)


def mixed(world, kept):
    ladder = rope.inv_freq(world.rotary_dim, world.base)
    return ladder * (kept + (1 - kept) / world.factor)


def ramp(world, betas=(32, 1), length=None, whole_numbers=True):
    """Return what YaRN keeps of each frequency, for these numbers of turns and this trained length."""
    length = world.length / world.factor if length is None else length
    low, high = (
        world.rotary_dim * math.log(length / (beta * 2 * math.pi)) / (2 * math.log(world.base)) for beta in betas
    )
    if whole_numbers:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, world.rotary_dim - 1)
    step = high - low
    pair = torch.arange(world.rotary_dim // 2, dtype=torch.float64)
    return 1 - ((pair - low) / (step if abs(step) > 1e-3 else 1e-3)).clamp(0, 1)


def steep(world):
    """Return whether YaRN's ramps for the extended and for the trained length lead to different frequencies."""
    if world.scaled != "yarn":
        return False
    moved = mixed(world, ramp(world, length=world.length)) - world.frequencies
    return bool(moved.abs().max() * world.length > 0.1)


def powers(base, exponents):
    return torch.as_tensor(base, dtype=torch.float64) ** -exponents.double()


def counted(x):
    """Return 0, 1, 2, … along the sequence."""
    return torch.arange(x.shape[2], dtype=torch.float64)


def at(world, positions_of):
    """Return a correct rotation, but with the positions ``positions_of(x, places)`` instead of the true ones."""
    return by(lambda x, places: alone(x, positions_of(x, places), world))


def with_angles(world, angles_of):
    return by(lambda x, places: rotated(x, angles_of(places), world.layout, world.lengthened))


def with_tables(world, tables):
    """Rotate with the cosines and sines that ``tables(angles)`` gives."""

    def one(x, places):
        inner, rest = x[..., : world.rotary_dim].double(), x[..., world.rotary_dim :]
        pair = turn(*rope.split(inner, world.layout), *tables(places[..., None] * world.frequencies))
        return torch.cat(((rope.join(*pair, world.layout) * world.lengthened).to(x.dtype), rest), -1)

    return by(one)


def elementwise(world, formula, width=None):
    """Replace the first ``width`` entries by ``formula(entries, places)``."""
    width = width or world.rotary_dim

    def one(x, places):
        inner = formula(x[..., :width].double(), places) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., width:]), -1)

    return by(one)


def rotate_half(x):
    first, second = rope.split(x, "half")
    return torch.cat((-second, first), -1)


def every_two(x):
    first, second = rope.split(x, "interleaved")
    return torch.stack((-second, first), -1).flatten(-2)


# --- Positions ---


@fresh(
    "both, positions, index of the head",
    accept=(called("wrong_axis"), r"(index|number|axis).{0,40}\bheads?\b", r"\bheads?\b.{0,40}(axis|instead of)"),
    refuse="",
    seen=("small", "large", "end"),
)
def rotated_along_the_heads(world):
    """The rotation runs along the axis of the heads instead of that of the tokens, so each head's index is taken for
    the position. Source: mlfoundations/open_lm #4, 2023."""
    return by(
        lambda x, places: rotated(
            x,
            torch.arange(x.shape[1], dtype=torch.float64)[:, None, None] * world.frequencies,
            world.layout,
            world.lengthened,
        )
    )


@fresh(
    "both, positions, doubled",
    accept=(called("faster"), FREQUENCIES, POSITIONS, r"twice|doubl|factor of 2\b|\b2(\.0+)? times"),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def position_scale_of_two(world):
    """The scale of positions is 2 unless the scaling is linear, so every position is doubled and all pairs turn twice
    as fast. Source: ml-explore/mlx-lm #1553, 2026."""
    return with_frequencies(world, 2 * world.frequencies)


@fresh(
    "both, positions, always from 0",
    accept=(
        called("ignored_positions", "ignored_start"),
        r"ignore[sd]?.{0,30}positions|positions.{0,30}ignore|from 0|from zero",
    ),
    refuse="",
    seen=("large", "rows", "packed", "one"),
)
def positions_never_read(world):
    """The positions that are passed are ignored: every call counts its tokens from 0.
    Source: NVIDIA/Megatron-LM #453, 2023."""
    return at(world, lambda x, places: counted(x))


@fresh(
    "both, positions, 0 for single tokens",
    accept=(called("one_token", "ignored_start", "ignored_positions"), r"(single|one|lone) token"),
    refuse="",
    seen=("one", "each"),
)
def single_tokens_at_zero(world):
    """A call with a single token, as in decoding, rotates it for position 0 whatever its position, because the offset
    of the cache isn't added. Source: Blaizzy/mlx-vlm #1983, 2026."""
    return at(world, lambda x, places: 0 * places if x.shape[2] == 1 else places)


@fresh(
    "q, positions, without the offset",
    accept=(
        called("shifted_key", "ignored_start", "other_positions"),
        r"quer(y|ies).{0,60}(offset|shift|from 0|position 0|later|earlier)",
    ),
    refuse="",
    seen=("large", "one"),
)
def query_without_its_offset(world):
    """The offset is taken before the cached keys are added, so queries are rotated as if each call started at position
    0, while the keys have their true positions. Source: RobertCsordas/moeut #6, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places - places[..., :1], world), alone(k, places, world)

    return rotation


@fresh(
    "both, positions, single tokens one too far",
    accept=(
        called("one_token"),
        r"(single|one|lone) token",
        r"(one|1) (position|step|place)s? (too )?(far|later|ahead)",
    ),
    refuse="",
    seen=("one", "each"),
)
def single_tokens_one_ahead(world):
    """A call with a single token raises its position by one before the rotation, so the token is one position too far,
    unlike the tokens of longer calls. Source: sgl-project/sglang #25015, 2026."""
    return at(world, lambda x, places: places + (x.shape[2] == 1))


@fresh(
    "both, positions, prompt counted twice",
    accept=(called("one_token", "stale", "drift"), r"(single|one|lone) token", r"(earlier|previous|last|other) call"),
    refuse="",
    seen=("one", "each"),
)
def prompt_counted_twice(world):
    """The prompt's size is added to the offset twice, so the single tokens that follow are too far by the number of
    tokens in the last longer call. Source: skyzh/tiny-llm #46, 2025."""
    prompt = [0]

    def function(q, k, positions):
        places = places_of(q, k, positions)
        if q.shape[2] > 1:
            prompt[0] = q.shape[2]
        else:
            places = places + prompt[0]
        return alone(q, places, world), alone(k, places, world)

    return function


@fresh(
    "both, positions, of the first row",
    accept=(called("ignored_rows", "other_rows"), r"first row|same positions (for|in) (all|every)|rows?.{0,40}ignore"),
    refuse="",
    seen=("rows", "each"),
)
def offset_of_the_first_row(world):
    """There is a single offset for the whole batch, so every row gets the positions of the first row.
    Source: ml-explore/mlx #2564, 2025."""
    return at(world, lambda x, places: places[:1] if places.ndim == 3 else places)


@fresh(
    "both, rows, zeros for single tokens",
    accept=(called("zeros", "other_rows", "one_token", "lengths", "uneven_lengths"), r"first row|rows?.{0,40}zero"),
    refuse="",
    seen=("one", "each"),
)
def only_first_row_written(world):
    """With a single token only the first row of the batch is written; the other rows come back as zeros.
    Source: ml-explore/mlx #3949, 2026."""

    def one(x, places):
        result = alone(x, places, world).clone()
        if x.shape[2] == 1:
            result[1:] = 0
        return result

    return by(one)


@fresh(
    "both, positions, not reset between packed texts",
    accept=(
        called("ignored_gaps", "ignored_positions"),
        r"gaps?|consecutive|count(s|ed|ing)? on|one after (the other|another)|not (reset|restart)|packed",
    ),
    refuse="",
    seen=("packed",),
)
def packed_texts_counted_on(world):
    """Positions are counted from the first token of a row, so they aren't reset where the next packed text begins, and
    jumps in the given positions are ignored. Source: allenai/OLMo-core #591, 2026."""
    return at(world, lambda x, places: places[..., :1] + counted(x))


@fresh(
    "both, positions, of the longest row",
    accept=(called("ignored_rows", "other_rows"), r"longest|rows?.{0,60}(same|largest) position"),
    refuse="",
    seen=("each",),
)
def single_tokens_at_the_padded_width(world):
    """When single tokens follow prompts of different lengths, all rows get the padded width as their position: the one
    after the longest prompt instead of after their own. Source: Comfy-Org/ComfyUI #15698, 2026."""
    return at(world, lambda x, places: places.amax(0, keepdim=True) if x.shape[2] == 1 and places.ndim == 3 else places)


@fresh(
    "both, positions, no further than the budget",
    accept=(called("clamped", "too_short"), r"clamp|stays? at|same position"),
    refuse="",
    seen=("end",),
)
def offset_stays_at_the_budget(world):
    """The offset is the number of cached tokens that eviction has kept, so positions stop growing at the cache's
    budget, here a quarter of the length: all later tokens stay at the same position.
    Source: rajveer43/VeloxQuant-MLX #389, 2026."""
    return at(world, lambda x, places: places.clamp(max=world.length // 4))


@fresh(
    "both, positions, of a transposed layout",
    accept=(
        called("wrong_axis", "memory_layout", "other_positions", "positions"),
        r"transpos|(axis|order|index).{0,40}head|heads?.{0,60}(position|order|axis)",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def positions_as_if_not_transposed(world):
    """The kernel computes each token's position from its place in memory as if heads came after tokens, but q and k
    are already transposed, so positions depend on the head and repeat. Source: deepspeedai/DeepSpeed #2782, 2023."""

    def one(x, places):
        heads, seq = x.shape[1:3]
        index = (torch.arange(heads)[:, None] * seq + torch.arange(seq)) // heads
        own = places if places.ndim == 3 else places[None, None]
        own = own.expand(own.shape[0], heads, seq).gather(2, index.expand(own.shape[0], heads, seq))
        return alone(x, own, world)

    return by(one)


# --- Tables that end too early ---


@fresh(
    "both, table, read past its end",
    accept=(
        called("too_short", "other_far", "lengths", "uneven_lengths"),
        r"past the end|(table|cache).{0,60}(short|\bend)",
    ),
    refuse="",
    seen=("end",),
)
def read_past_the_table(world):
    """The tables cover half of the declared positions and nothing checks the index: past the end, the kernel reads
    the table of sines, which follows in memory, as cosines, and zeros as sines.
    Source: pegainfer-project/pegainfer #220, 2026."""
    end = world.length // 2

    def one(x, places):
        past = (places >= end)[..., None]
        angles = places[..., None] * world.frequencies
        beyond = (places - end)[..., None] * world.frequencies
        cos, sin = torch.where(past, beyond.sin(), angles.cos()), torch.where(past, 0.0, angles.sin())
        inner = rope.join(*turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), cos, sin), world.layout)
        return torch.cat(((inner * world.lengthened).to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@fresh(
    "both, table, raises past its end",
    accept=(called("too_short", "raises"), r"raise|(table|cache).{0,60}(short|end)|IndexError|RuntimeError"),
    refuse="",
    seen=("end",),
)
def raises_past_the_table(world):
    """The tables cover half of the declared length, and a call with an offset beyond it raises an error: only the
    number of tokens is checked, not the offset. Source: karpathy/nanochat #520, 2026."""
    angles = torch.arange(world.length // 2, dtype=torch.float64)[:, None] * world.frequencies
    return by(lambda x, places: rotated(x, angles[places.long()], world.layout, world.lengthened))


@fresh(
    "both, table, tokens past its end not rotated",
    accept=(
        called("too_short", "other_far"),
        r"(un|not |n't )(rotate|turn)|pass(es|ed)? through|(table|cache).{0,60}end",
    ),
    refuse="",
    seen=("end",),
)
def not_rotated_past_the_table(world):
    """Tokens at positions past the end of the tables, which cover half of the declared length, are passed through
    unrotated. Source: microsoft/onnxruntime #27597, 2026."""
    return at(world, lambda x, places: torch.where(places < world.length // 2, places, 0.0))


# --- Precision ---


@fresh(
    "both, angles, in float16",
    accept=(PRECISION, called("coarse_table", "other_dtype"), r"float16|fp16|half.precision|rounded"),
    refuse="",
    seen=("end",),
)
def angles_all_in_float16(world):
    """Positions and frequencies are both cast to float16 and multiplied there, so large angles are coarsely rounded.
    Source: NVIDIA/Megatron-LM #535, 2023."""
    low = world.frequencies.half()
    return with_angles(world, lambda places: (places.half()[..., None] * low).double())


@fresh(
    "both, frequencies, rounded to bfloat16",
    accept=(PRECISION, FREQUENCIES, r"bfloat16|bf16|half.precision|rounded"),
    refuse="",
    seen=("end",),
)
def frequencies_rounded_to_bfloat16(world):
    """The frequencies are rounded to bfloat16 before they're multiplied by positions in float32, so the error of each
    angle grows with the position. Source: sgl-project/sglang-jax #1472, 2026."""
    return with_frequencies(world, world.frequencies.bfloat16().double())


@fresh(
    "both, angles, in bfloat16",
    accept=(PRECISION, called("coarse_table", "other_dtype"), r"bfloat16|bf16|half.precision|rounded"),
    refuse="",
    seen=("large", "end"),
)
def angle_table_in_the_models_dtype(world):
    """The whole table of angles is built in the model's dtype: positions, frequencies and their products are all
    rounded to bfloat16. Source: huggingface/candle #3698, 2026."""
    low = world.frequencies.bfloat16()
    return with_angles(world, lambda places: (places.bfloat16()[..., None] * low).double())


@fresh(
    "both, tables, in bfloat16",
    accept=(called("bf16_table", "fp16_table", "half_vectors", "rounded_result"), r"bfloat16|bf16|rounded"),
    refuse="",
    seen=("end",),
)
def cos_and_sin_in_bfloat16(world):
    """Cosines and sines are rounded to bfloat16 before the vectors are multiplied by them.
    Source: KellerJordan/modded-nanogpt #39, 2024."""
    return with_tables(world, lambda angles: (angles.cos().bfloat16().double(), angles.sin().bfloat16().double()))


@fresh(
    "both, positions, rounded after a large offset",
    accept=(
        PRECISION,
        called("nothing_turns", "one_position", "ignored_positions"),
        r"bfloat16|rounded|same position|no position|does ?n.t depend on.{0,20}position",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def collapsed_after_a_large_offset(world):
    """Positions get an offset of 65536 and are then rounded to bfloat16, where neighbours are 512 apart, so all nearby
    tokens collapse to the same position. Source: huggingface/diffusers #13922, 2026."""
    return at(world, lambda x, places: (places + 65536).bfloat16().double())


# --- What earlier calls leave behind ---


@fresh(
    "both, positions, of an earlier call",
    accept=(called("stale"), r"(earlier|previous|first|other) call"),
    refuse="",
    seen=("large", "end"),
)
def cached_without_the_offset(world):
    """Angles are cached by the number of tokens alone, so a call gets the angles of the first call with the same number
    of tokens, even if the offsets differ. Source: lucidrains/rotary-embedding-torch #11, 2023."""
    starts = {}

    def one(x, places):
        start = starts.setdefault(x.shape[2], places.flatten()[0])
        return alone(x, places - places.flatten()[0] + start, world)

    return by(one)


def longer_base(world, longest):
    """Return dynamic NTK's base for a factor of 2, half the length in training, and a text that ends at ``longest``."""
    ratio = max(1.0, 2 * (longest + 1) / (world.length / 2) - 1)
    return world.base * ratio ** (world.rotary_dim / (world.rotary_dim - 2))


@fresh(
    "both, base, kept after a long call",
    accept=(
        called("stale", "other_base", "other_far", "other_scaling", "two_bases"),
        r"larger base|(earlier|previous|other) call",
    ),
    refuse="",
    when=plain,
    seen=("end", "again"),
)
def base_never_scaled_back(world):
    """The base grows dynamically with texts beyond half of the declared length, and is never scaled back: after a long
    call, shorter texts are rotated with the larger base too. Source: huggingface/transformers #27033, 2023."""
    longest = [0.0]

    def function(q, k, positions):
        places = places_of(q, k, positions)
        longest[0] = max(longest[0], float(places.max()))
        theta = rope.inv_freq(world.rotary_dim, longer_base(world, longest[0]))
        return with_frequencies(world, theta)(q, k, positions)

    return function


@fresh(
    "both, base, depends on the call's last position",
    accept=(
        called("other_base", "other_far", "other_scaling", "two_bases", "not_linear", "uneven_angles"),
        r"(other|another|larger) base|depends on.{0,40}(length|last|longest|call)",
    ),
    refuse="",
    when=plain,
    seen=("end",),
)
def base_of_each_call(world):
    """The base depends dynamically on the last position of each call beyond half of the declared length, so keys that
    were cached by a shorter call were rotated with another base. Source: huggingface/transformers #25104, 2023."""

    def function(q, k, positions):
        longest = float(places_of(q, k, positions).max())
        return with_frequencies(world, rope.inv_freq(world.rotary_dim, longer_base(world, longest)))(q, k, positions)

    return function


@fresh(
    "both, base, scaled at every length",
    accept=(called("other_base"), FREQUENCIES, SCALING, r"(larger|other|different|wrong|another) base|base is larger"),
    refuse="",
    when=plain,
    seen=("large", "end"),
)
def dynamic_base_that_is_static(world):
    """Dynamic NTK scaling puts the scaled length into its own formula, so the base is larger by a constant factor at
    every length instead of only for long texts. Source: vllm-project/vllm #41236, 2026."""
    base = world.base * (2 * 2 - 1) ** (world.rotary_dim / (world.rotary_dim - 2))
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, base))


@fresh(
    "both, base, negative",
    accept=(called("not_finite"), r"\bnan\b|finite"),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def negative_base(world):
    """The formula of dynamic NTK scaling is used for a length below the trained one, where the base becomes negative;
    its fractional powers give NaN in all pairs but the first. Source: vllm-project/vllm #52675, 2026."""
    pairs = torch.arange(0, world.rotary_dim, 2)
    return with_frequencies(world, powers(-0.5 * world.base, pairs / world.rotary_dim))


# --- Pairs ---


@fresh(
    "both, tables, repeated for the other layout",
    accept=(
        called("mixed_tables", "two_layouts", "uneven_angles", "lengths", "no_pairs"),
        r"(cos|sin|table|angle).{0,80}(layout|interleave|repeat|different angles)",
    ),
    refuse="",
    when=halves,
    seen=("small", "large", "end"),
)
def repeated_angles_with_halves(world):
    """The table repeats each angle twice in a row, as for adjacent pairs, but the quarter turn swaps the halves, so the
    two entries of a pair are rotated by different angles. Source: baidu/ERNIE-Image #6, 2026."""

    def formula(x, places):
        angles = (places[..., None] * world.frequencies).repeat_interleave(2, -1)
        return x * angles.cos() + rotate_half(x) * angles.sin()

    return elementwise(world, formula)


@fresh(
    "both, tables, repeated for the other layout",
    accept=(
        called("mixed_tables", "two_layouts", "uneven_angles", "lengths", "no_pairs"),
        r"(cos|sin|table|angle).{0,80}(layout|interleave|repeat|wrong entries)",
    ),
    refuse="",
    when=adjacent,
    seen=("small", "large", "end"),
)
def halved_angles_with_adjacent_pairs(world):
    """The table contains the list of angles twice, one copy after the other, but the quarter turn swaps adjacent
    entries, so cosines and sines are applied to the wrong entries. Source: NVIDIA/Megatron-LM #3900, 2026."""

    def formula(x, places):
        angles = (places[..., None] * world.frequencies).repeat(*[1] * places.ndim, 2)
        return x * angles.cos() + every_two(x) * angles.sin()

    return elementwise(world, formula)


@fresh(
    "both, layout, the other one",
    accept=(called("other_layout", "swapped_layout"), r"other layout|(pairs|paired).{0,40}(adjacent|hal(f|ves))"),
    refuse="",
    seen=("small", "large", "end"),
)
def checkpoint_not_permuted(world):
    """The weights are loaded without the permutation that the kernel expects, so the kernel uses the other layout, for
    which the weights were not trained. Source: nurl-lang/nurl #584, 2026."""
    other = "half" if adjacent(world) else "interleaved"
    return by(lambda x, places: rotated(x, places[..., None] * world.frequencies, other, world.lengthened))


@fresh(
    "both, pairs, quarter turn left in halves",
    accept=(
        called("uncrossed", "crossed", "no_pairs", "mixed_tables", "two_layouts", "own_layout", "pairs", "lengths"),
        r"quarter turn|\bno pairs?\b",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def quarter_turn_not_interleaved(world):
    """The quarter turn takes the odd entries with a minus and then the even ones, without interleaving them again, so
    entries that form no pair are combined. Source: Tongjilibo/bert4torch #1, 2022."""

    def formula(x, places):
        angles = (places[..., None] * world.frequencies).repeat(*[1] * places.ndim, 2)
        return x * angles.cos() + torch.cat((-x[..., 1::2], x[..., ::2]), -1) * angles.sin()

    return elementwise(world, formula)


@fresh(
    "both, pairs, across the whole head",
    accept=(
        called("other_width", "pairs", "other_part", "own_layout", "other_layout"),
        r"width|whole head|half a head",
    ),
    refuse="",
    when=partial_halves,
    seen=("small", "large", "end"),
)
def pairs_across_the_whole_head(world):
    """The frequencies are padded with zeros to the whole head, so the two entries of a pair are half a head apart
    instead of half the rotary part. Source: labscommunity/cascadia #69, 2026."""
    theta = torch.cat((world.frequencies, torch.zeros((world.dim - world.rotary_dim) // 2, dtype=torch.float64)))
    return with_frequencies(world, theta)


@fresh(
    "both, pairs and frequencies, of the whole head",
    accept=(
        called("other_width", "pairs", "other_part", "own_layout", "wider_exponent", "frequencies", "other_base"),
        r"width|whole head|half a head",
    ),
    refuse="",
    when=partial_halves,
    seen=("small", "large", "end"),
)
def head_width_for_pairs_and_frequencies(world):
    """Both the exponents of the frequencies and the distance within pairs are computed from the width of the head
    instead of the rotary part's width. Source: pie-project/pie #602, 2026."""
    theta = powers(world.base, torch.arange(0, world.rotary_dim, 2) / world.dim)
    return with_frequencies(
        world, torch.cat((theta, torch.zeros((world.dim - world.rotary_dim) // 2, dtype=torch.float64)))
    )


@fresh(
    "both, exponents, over the width of the head",
    accept=(
        called("wider_exponent", "other_base", "halved_dim", "doubled_dim"),
        FREQUENCIES,
        r"width of the head|exponent",
    ),
    refuse="",
    when=partial,
    seen=("small", "large", "end"),
)
def exponents_over_the_head_width(world):
    """The exponents of the frequencies are divided by the width of the head instead of the rotary part's width, so all
    pairs but the first turn too fast. Source: pegainfer-project/pegainfer #820, 2026."""
    return with_frequencies(world, powers(world.base, torch.arange(0, world.rotary_dim, 2) / world.dim))


@fresh(
    "both, part, all of the head",
    accept=(
        called("other_width", "other_part", "other_rest"),
        r"whole (head|vector)|all .{0,20}(entries|dim)",
    ),
    refuse="",
    when=partial,
    seen=("small", "large", "end"),
)
def partial_factor_dropped(world):
    """The factor for partial rotation is dropped, so the whole head is rotated instead of only its first part.
    Source: AI-Hypercomputer/maxtext #4616, 2026."""
    return with_frequencies(world, rope.inv_freq(world.dim, world.base))


@fresh(
    "both, part, half of the rotary part",
    accept=(
        called("half_turned", "other_width", "other_part", "still_pairs"),
        r"only half|half of (that|the) (part|pairs|rotary)|(pairs|entries).{0,40}(un|not |n't )(rotate|turn)",
    ),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def partial_factor_applied_twice(world):
    """The factor for partial rotation is applied to the width of the rotary part instead of the head's, so only half of
    that part is rotated, with frequencies for half the width. Source: vllm-project/vllm #41185, 2026."""
    return with_frequencies(world, rope.inv_freq(2 * (world.rotary_dim // 4), world.base))


@fresh(
    "both, tables, rows read too wide",
    accept=(
        called("other_width", "other_part", "lengths", "uneven_lengths", "other_rest", "no_pairs"),
        r"width|whole head",
    ),
    refuse="",
    when=partial_halves,
    seen=("small", "large", "end"),
)
def rows_of_the_table_read_too_wide(world):
    """The kernel uses the head's width as the rotary width: it rotates the whole head, and for each token reads more
    cosines and sines than a row of the table contains, past the end of the row.
    Source: vllm-project/vllm #43676, 2026."""
    half = world.rotary_dim // 2

    def memory(index):
        row, column = index // world.rotary_dim, index % world.rotary_dim
        angles = row * world.frequencies[column.long() % half]
        return torch.where(column < half, angles.cos(), angles.sin())

    def formula(x, places):
        start = places[..., None] * world.rotary_dim + torch.arange(world.dim // 2)
        cos, sin = memory(start), memory(start + world.dim // 2)
        return rope.join(*turn(*rope.split(x, "half"), cos, sin), "half")

    return elementwise(world, formula, world.dim)


@fresh(
    "both, pairs, second entry from the overwritten first",
    accept=(
        called("overwritten", "lengths", "uneven_lengths", "no_pairs", "pairs", "uneven_angles"),
        r"overw|already (rotated|changed|turned)",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def overwritten_before_it_is_read(world):
    """The operator works in place and overwrites the first entry of a pair before the second one is computed from it,
    so the result isn't a rotation. Source: ggml-org/llama.cpp #20274, 2026."""

    def turned(first, second, cos, sin):
        first = first * cos - second * sin
        return first, first * sin + second * cos

    return with_turn(world, turned)


@fresh(
    "both, tables, cut in halves and never added",
    accept=(
        called(
            "mixed_tables", "swapped_cos_sin", "missing_cos", "missing_sin", "lengths", "uneven_lengths", "no_pairs"
        ),
        r"never added|single product|(cos|sin)\w*.{0,60}(missing|swapped|halves)",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def table_cut_and_never_added(world):
    """Sines and cosines alternate in the table, but the table is cut in two halves as if all sines came first, and each
    result is a single product, because cosine and sine terms are never added. Source: NVIDIA/ngpt #10, 2025."""

    def formula(x, places):
        angles = places[..., None] * world.frequencies
        sin, cos = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).chunk(2, -1)
        first, second = rope.split(x, world.layout)
        return rope.join(-second * cos, first * sin, world.layout)

    return elementwise(world, formula)


# --- Heads, q and k ---


@fresh(
    "both, heads, zeros but for the first",
    accept=(
        called("other_heads", "zeros", "uneven_lengths", "lengths"),
        r"(other|first|only|some|all but).{0,20}\bheads?\b",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def only_head_zero_written(world):
    """The grid of the kernel is flat, so only the first head is rotated and written; all other heads stay at zero.
    Source: paiml/aprender #2079, 2026."""

    def one(x, places):
        result = alone(x, places, world).clone()
        result[:, 1:] = 0
        return result

    return by(one)


@fresh(
    "both, heads, only the first rotated",
    accept=(called("other_heads"), r"(other|first|only|some|all but).{0,20}\bheads?\b"),
    refuse="",
    seen=("small", "large", "end"),
)
def heads_taken_for_one(world):
    """The size of a head is taken from the flat vector of all heads, so only the first entries of that vector are
    rotated: those of the first head. The other heads pass unrotated. Source: XPU-Forces/mojo_opset #279, 2026."""
    return by(lambda x, places: torch.cat((alone(x[:, :1], places, world), x[:, 1:]), 1))


@fresh(
    "both, frequencies, over all heads",
    accept=(called("other_heads"), FREQUENCIES, r"across all heads|heads?.{0,40}(other|different|own)"),
    refuse="",
    when=whole,
    seen=("small", "large", "end"),
)
def frequencies_over_all_heads(world):
    """The rotation is applied to the vector of all heads before it is split, so the frequencies fall across all heads,
    and each head rotates at different ones. Source: Lightricks/LTX-Video #224, 2025."""

    def one(x, places):
        theta = rope.inv_freq(x.shape[1] * world.dim, world.base).unflatten(0, (x.shape[1], -1))
        return rotated(x, places[..., None] * theta[:, None], world.layout)

    return by(one)


@fresh(
    "both, tensors, halves exchanged",
    accept=(
        called(
            "tensors", "crossed", "uncrossed", "key_value", "other_scores", "lengths", "depends_on_text", "not_linear"
        ),
        r"(from|into|with) the (keys?|quer)",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def halves_of_q_and_k_crossed(world):
    """The second entries of the rotated queries are computed from the keys, and the first entries of the rotated keys
    from the queries. Source: hpcaitech/ColossalAI #6429, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        right_q, right_k = alone(q, places, world), alone(k, places, world)
        group = q.shape[1] // k.shape[1]
        q_parts = rope.split(right_q[..., : world.rotary_dim], world.layout)
        k_parts = rope.split(right_k[..., : world.rotary_dim], world.layout)
        crossed_q = rope.join(q_parts[0], k_parts[1].repeat_interleave(group, 1), world.layout)
        crossed_k = rope.join(q_parts[0][:, ::group], k_parts[1], world.layout)
        return (
            torch.cat((crossed_q, q[..., world.rotary_dim :]), -1),
            torch.cat((crossed_k, k[..., world.rotary_dim :]), -1),
        )

    return rotation


@fresh(
    "both, tensors, rotated query written to the key",
    accept=(
        called("tensors", "key_only", "turned_twice", "crossed", "other_scores", "depends_on_text", "not_linear"),
        r"rotated twice|(query|queries).{0,30}((not|n't) (be )?(rotated|turned)|unrotated)",
    ),
    refuse="",
    seen=("small", "large", "end"),
)
def rotated_query_written_to_the_key(world):
    """The rotated query is assigned to the key's variable and then rotated again as the key, so the query stays
    unrotated and the key is the query rotated twice. Source: vllm-project/vllm-omni #3828, 2026."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        wrong = alone(alone(q, places, world), places, world)[:, :: q.shape[1] // k.shape[1]]
        return q.clone(), torch.cat((wrong[..., : world.rotary_dim], k[..., world.rotary_dim :]), -1)

    return rotation


@fresh(
    "k, rotation, missing",
    accept=(called("query_only"), r"keys?.{0,60}(not|n't|un)\W?(rotate|turn)|only (the )?quer"),
    refuse="",
    seen=("small", "large", "end"),
)
def rotated_key_not_written_back(world):
    """The fused kernel writes the rotated key only to the cache, so the call returns it unrotated while the query is
    rotated. Source: kvcache-ai/sglang #31, 2026."""
    return lambda q, k, positions: (alone(q, places_of(q, k, positions), world), k.clone())


@fresh(
    "both, rotation, twice with the length factor",
    accept=(called("turned_twice", "faster", "longer"), r"twice|doubl|squared"),
    refuse="",
    when=scaled("yarn"),
    seen=("small", "large", "end"),
)
def yarn_rotated_twice(world):
    """YaRN is missing from a list of rotary kinds, so vectors are rotated once in Python and once more by the kernel:
    by twice the angle, with the attention factor squared. Source: NVIDIA/TensorRT-LLM #16378, 2026."""
    return by(lambda x, places: alone(alone(x, places, world), places, world))


@fresh(
    "both, inputs, changed",
    accept=(
        called("changed_inputs", "overwritten"),
        r"in.?place|(change|overwrit|modif)\w* (the |its |their )?(input|argument|q\b)",
    ),
    refuse="",
    seen=("inputs",),
)
def written_into_the_inputs(world):
    """The kernel writes the rotated vectors into q and k themselves, so the inputs are changed in place.
    Source: unslothai/unsloth #5001, 2026."""
    return by(lambda x, places: x.copy_(alone(x, places, world)))


@fresh(
    "k, rotation, missing at random",
    accept=(called("random"), r"random|(differ|chang)\w* (from|between) (call|run)|determin"),
    refuse="",
    seen=("small", "large", "end"),
)
def keys_race_with_their_copy(world):
    """The kernel writes the unrotated key and the rotated part to the same output in no fixed order, so the keys of
    random tokens stay unrotated. Source: vllm-project/vllm #46685, 2026."""

    generator = torch.Generator().manual_seed(0)

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        won = torch.rand(*k.shape[:3], 1, generator=generator) < 0.5
        return alone(q, places, world), torch.where(won, alone(k, places, world), k)

    return rotation


@fresh(
    "both, tables, zero for single tokens",
    accept=(called("zeros", "one_token", "lengths", "uneven_lengths"), r"all zeros?|(single|one|lone) token"),
    refuse="",
    seen=("one", "each"),
)
def single_tokens_become_zero(world):
    """When a single token is decoded, the offsets for copying from the tables are exchanged, nothing is copied, and
    cosines and sines stay zero, so the rotated part is all zeros. Source: nntile/nntile #360, 2026."""

    def one(x, places):
        result = alone(x, places, world).clone()
        if x.shape[2] == 1:
            result[..., : world.rotary_dim] = 0
        return result

    return by(one)


def as_if_contiguous(x):
    """Return what a kernel reads if it assumes that x is contiguous in memory."""
    steps = [math.prod(x.shape[axis + 1 :]) for axis in range(x.ndim)]
    needed = x.storage_offset() + x.numel()
    return x if x.untyped_storage().nbytes() // x.element_size() < needed else x.as_strided(x.shape, steps)


@fresh(
    "both, memory, strides ignored",
    accept=(called("memory_layout"), r"contiguous|stride|transposed"),
    refuse="",
    seen=("strided",),
)
def strides_ignored(world):
    """The kernel ignores the strides of its inputs, so a slice or a transposed view that isn't contiguous is read from
    the wrong places in memory. Source: vllm-project/vllm #17091, 2025."""
    return by(lambda x, places: alone(as_if_contiguous(x), places, world))


@fresh(
    "both, rest, strides ignored",
    accept=(called("memory_layout", "other_rest"), r"contiguous|stride|transposed"),
    refuse="",
    when=lambda world: world.rotary_dim < world.dim,
    seen=("strided",),
)
def strides_ignored_in_the_rest(world):
    """With partial rotation of inputs that aren't contiguous, the part that passes through is copied from the wrong
    places in memory, because strides are ignored there. Source: ggml-org/llama.cpp #14580, 2025."""

    def one(x, places):
        rest = as_if_contiguous(x)[..., world.rotary_dim :]
        return torch.cat((alone(x, places, world)[..., : world.rotary_dim], rest), -1)

    return by(one)


# --- Frequencies ---


@fresh(
    "both, base, written into the code",
    accept=(called("other_base"), FREQUENCIES, r"10.?000|other base|base.{0,40}instead"),
    refuse="",
    when=own_base,
    seen=("large", "end"),
)
def base_hardcoded(world):
    """The base is read from the configuration, but the code always uses 10000.
    Source: huggingface/candle #3746, 2026."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, 10000.0))


@fresh(
    "both, exponents, without their minus",
    accept=(
        called("growing_frequencies", "reversed_frequencies"),
        FREQUENCIES,
        r"frequencies grow|growing|minus|increas",
    ),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def exponent_without_its_sign(world):
    """The exponent of the frequencies lacks its minus sign, so frequencies grow from pair to pair instead of falling.
    Source: labmlai/annotated_deep_learning_paper_implementations #313, 2026."""
    return with_frequencies(world, powers(1 / world.base, torch.arange(0, world.rotary_dim, 2) / world.rotary_dim))


@fresh(
    "both, exponents, half as large",
    accept=(
        called("doubled_dim", "halved_dim", "wider_exponent", "other_base"),
        FREQUENCIES,
        r"exponent|square root",
    ),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def exponent_i_over_width(world):
    """The exponents are i, instead of 2i, divided by the full width, so they are only half as large as they should be.
    Source: rasbt/LLMs-from-scratch #410, 2024."""
    return with_frequencies(world, powers(world.base, torch.arange(world.rotary_dim // 2) / world.rotary_dim))


@fresh(
    "both, exponents, shifted by half a step",
    accept=(called("shifted_exponent"), FREQUENCIES, r"shifted"),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def exponent_two_k_minus_one(world):
    """The exponent is (2k - 1)/d for the pair k = 1, 2, …, so all exponents are shifted by 1/d and already the first
    pair turns too slowly. Source: stanford-cs336/assignment1-basics #22, 2025."""
    return with_frequencies(world, powers(world.base, (torch.arange(0, world.rotary_dim, 2) + 1) / world.rotary_dim))


@fresh(
    "both, exponents, all zero",
    accept=(
        called("repeated_frequencies", "other_base"),
        FREQUENCIES,
        r"same frequenc|all (pairs|frequencies)",
    ),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def exponent_by_integer_division(world):
    """The exponent is computed by integer division and is always 0, so all pairs turn at the same frequency of 1.
    Source: xlite-dev/LeetCUDA #290, 2025."""
    return with_frequencies(world, torch.ones_like(world.frequencies))


# --- Context extension ---


@fresh(
    "both, scaling, missing",
    accept=(called("unscaled"), SCALING, r"unscaled|not scaled|without.{0,20}scaling"),
    refuse="",
    when=scaled("llama3"),
    seen=("end",),
)
def unscaled_frequencies_returned(world):
    """The function computes the scaled frequencies of Llama 3.1 but returns the unscaled ones it started from.
    Source: huggingface/transformers #32330, 2024."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, world.base))


@fresh(
    "both, scaling, bounds without parentheses",
    accept=(called("unscaled"), SCALING, r"\bbands?\b|parenthes"),
    refuse="",
    when=scaled("llama3"),
    seen=("end",),
)
def turns_without_parentheses(world):
    """The number of turns in the trained length is divided by 2 and multiplied by π because parentheses around 2π are
    missing, so Llama 3.1's scaling keeps frequencies that it should divide. Source: InternLM/lmdeploy #2155, 2024."""
    turns = world.length / world.factor / 2 * math.pi * rope.inv_freq(world.rotary_dim, world.base)
    return with_frequencies(world, mixed(world, ((turns - 1) / 3).clamp(0, 1)))


@fresh(
    "both, scaling, middle band backwards",
    accept=(SCALING, r"\bbands?\b|backwards"),
    refuse="",
    when=bent,
    seen=("end",),
)
def middle_band_backwards(world):
    """In the middle band of Llama 3.1's scaling, the share is interpolated in wavelengths and used backwards, so
    frequencies are divided at the band's fast edge and kept at its slow edge.
    Source: ml-explore/mlx-examples #907, 2024."""
    ladder, trained = rope.inv_freq(world.rotary_dim, world.base), world.length / world.factor
    waves = 2 * math.pi / ladder
    share = (waves - trained / 4) / (trained - trained / 4)
    middle = ladder / ((1 - share) * world.factor + share)
    theta = torch.where(waves < trained / 4, ladder, torch.where(waves > trained, ladder / world.factor, middle))
    return with_frequencies(world, theta)


@fresh(
    "both, scaling, ramp not rounded",
    accept=(SCALING, r"\bramp\b"),
    refuse="",
    when=scaled("yarn"),
    seen=("end",),
)
def ramp_not_rounded(world):
    """The bounds of YaRN's ramp aren't rounded to whole pairs, so the frequencies on the ramp are slightly off.
    Source: keras-team/keras-hub #2981, 2026."""
    return with_frequencies(world, mixed(world, ramp(world, whole_numbers=False)))


@fresh(
    "both, scaling, ramp backwards",
    accept=(SCALING, r"\bramp\b"),
    refuse="",
    when=scaled("yarn"),
    seen=("large", "end"),
)
def ramp_bounds_swapped(world):
    """The two bounds of YaRN's ramp are swapped, so the fast pairs are slowed down and the slow ones are kept.
    Source: pytorch/torchtitan #3787, 2026."""
    return with_frequencies(world, mixed(world, ramp(world, betas=(1, 32))))


@fresh(
    "both, scaling, factor under the exponent",
    accept=(called("other_base"), SCALING, r"exponent|(other|larger) base"),
    refuse="",
    when=scaled("yarn"),
    seen=("end",),
)
def factor_under_the_exponent(world):
    """YaRN's slow frequencies are computed from the base multiplied by the factor, so the factor is raised to the
    exponent too, and each pair is slowed down by a different amount. Source: apache/tvm #18576, 2025."""
    kept = ramp(world)
    slow = rope.inv_freq(world.rotary_dim, world.factor * world.base)
    return with_frequencies(world, kept * rope.inv_freq(world.rotary_dim, world.base) + (1 - kept) * slow)


@fresh(
    "both, scaling, bounds from the extended length",
    accept=(SCALING, r"\bramp\b|extended length"),
    refuse="",
    when=steep,
    seen=("end",),
)
def ramp_from_the_extended_length(world):
    """The bounds of YaRN's ramp are computed from the extended length instead of the length of the original training,
    so too many pairs are kept. Source: NVIDIA/Megatron-LM #1418, 2025."""
    return with_frequencies(world, mixed(world, ramp(world, length=world.length)))


@fresh(
    "both, length, factor squared",
    accept=(called("longer"), LENGTHS, r"attention.factor|too long"),
    refuse="",
    when=scaled("yarn"),
    seen=("small", "large", "end"),
)
def attention_factor_squared(world):
    """The attention factor that the configuration gives is multiplied by the one from YaRN's formula, so vectors are
    too long: the factor is squared. Source: sgl-project/sglang #33558, 2026."""
    return with_frequencies(world, world.frequencies, world.lengthened**2)


@fresh(
    "both, length, factor missing",
    accept=(called("shorter"), LENGTHS, r"attention.factor|too short"),
    refuse="",
    when=scaled("yarn"),
    seen=("small", "large", "end"),
)
def attention_factor_cancelled(world):
    """The attention factor is divided by itself and becomes 1, so vectors are too short.
    Source: turboderp-org/exllamav3 #259, 2026."""
    return with_frequencies(world, world.frequencies, 1.0)


@fresh(
    "both, scaling, missing in short texts",
    accept=(
        called("unscaled", "other_far", "other_scaling", "two_bases", "not_linear", "uneven_angles"),
        r"depends on.{0,40}(length|last|longest|call)|(short|long)(er)? (text|call|sequence|one)",
    ),
    refuse="",
    when=scaled("linear", "yarn", "llama3"),
    seen=("end",),
)
def scaled_only_in_long_texts(world):
    """Only calls beyond the original length use the scaled frequencies, so keys that were cached by shorter calls don't
    fit the queries of longer calls. Source: vllm-project/vllm #27431, 2025."""

    def function(q, k, positions):
        short = float(places_of(q, k, positions).max()) < world.length / world.factor
        return (
            with_frequencies(world, rope.inv_freq(world.rotary_dim, world.base))(q, k, positions)
            if short
            else (sound(world)(q, k, positions))
        )

    return function


@fresh(
    "both, scaling, missing",
    accept=(called("unscaled", "faster"), SCALING, r"unscaled|not scaled|without.{0,20}scaling"),
    refuse="",
    when=scaled("linear"),
    seen=("small", "large", "end"),
)
def linear_factor_never_read(world):
    """The factor of linear scaling is parsed but never used, so positions are not scaled down by it.
    Source: lablup/mlxcel #1340, 2026."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, world.base))


@fresh(
    "both, scaling, where none belongs",
    accept=(SCALING, POSITIONS, called("half_positions", "faster"), r"8(\.0+)? times|factor of 8|slow(s|ed|er)?\b"),
    refuse="",
    when=plain,
    seen=("small", "large", "end"),
)
def linear_factor_in_the_wrong_layers(world):
    """The linear factor of 8 is stored for the whole model, so it also slows down the layers that must not be scaled.
    Source: antonellof/ferrox #39, 2026."""
    return with_frequencies(world, world.frequencies / 8)


@fresh(
    "both, base and scaling, of other layers",
    accept=(called("other_base"), SCALING, r"(other|larger) base|base.{0,20}larger|\bramp\b"),
    refuse="",
    when=lambda world: plain(world) and world.length >= 1024,
    seen=("large", "end"),
)
def base_and_ramp_of_other_layers(world):
    """All layers share one table with a base 16 times larger and YaRN's ramp for a factor of 16, but these layers need
    their own base without scaling. Source: Avarok-Cybersecurity/atlas #276, 2026."""
    ladder = rope.inv_freq(world.rotary_dim, 16 * world.base)
    kept = ((world.length * ladder / (2 * math.pi) - 1) / 31).clamp(0, 1)
    return with_frequencies(world, ladder * (kept + (1 - kept) / 16))


@fresh(
    "both, length, changes with the position",
    accept=(
        called("uneven_lengths", "lengths", "other_scores", "drift", "not_linear", "no_pairs"),
        r"lengths? (change|differ|grow|shrink|depend|var)",
    ),
    refuse="",
    when=plain,
    seen=("large", "end"),
)
def decay_scales_in_the_other_layout(world):
    """xPos is switched on, so queries grow and keys shrink with the position, and its scales are arranged for the other
    layout, so lengths change differently within a pair. Source: lucidrains/rotary-embedding-torch #34, 2024."""
    width = world.rotary_dim

    def one(x, places, sign):
        scale = (torch.arange(0, width, 2).double() + 0.4 * width) / (1.4 * width)
        scale = scale ** (sign * places[..., None] / 512)
        scale = torch.cat((scale, scale), -1) if adjacent(world) else scale.repeat_interleave(2, -1)
        result = alone(x, places, world)
        return torch.cat(((result[..., :width].double() * scale).to(x.dtype), result[..., width:]), -1)

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return one(q, places, 1), one(k, places, -1)

    return rotation


# --- Right, but unusual ---


@right
def clockwise(world):
    """q and k are both rotated clockwise, as in karpathy/nanochat #489: scores depend only on position differences."""
    return with_turn(world, lambda first, second, cos, sin: turn(first, second, cos, -sin))


@right
def complex_powers(world):
    """Each pair is a complex number, multiplied by the power of a unit number whose exponent is the position."""
    unit = torch.polar(torch.ones_like(world.frequencies), world.frequencies)

    def one(x, places):
        first, second = rope.split(x[..., : world.rotary_dim].double(), world.layout)
        turned = torch.complex(first, second) * unit ** places[..., None]
        inner = rope.join(turned.real, turned.imag, world.layout) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def two_reflections(world):
    """A rotation is two reflections, one after the other: at the first axis, and at the line of half the angle."""

    def one(x, places):
        angles = places[..., None] * world.frequencies
        first, second = rope.split(x[..., : world.rotary_dim].double(), world.layout)
        second = -second
        normal = -(angles / 2).sin(), (angles / 2).cos()
        along = 2 * (first * normal[0] + second * normal[1])
        pair = first - along * normal[0], second - along * normal[1]
        inner = rope.join(*pair, world.layout) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def polar_coordinates(world):
    """Every pair is turned into its length and its direction, and the angle is added to the direction."""

    def one(x, places):
        first, second = rope.split(x[..., : world.rotary_dim].double(), world.layout)
        size = torch.hypot(first, second) * world.lengthened
        direction = torch.atan2(second, first) + places[..., None] * world.frequencies
        inner = rope.join(size * direction.cos(), size * direction.sin(), world.layout)
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def whole_matrices(world):
    """Each position has one matrix for the whole head, with ones on the diagonal for entries that aren't rotated."""
    first, second = rope.split(torch.arange(world.rotary_dim), world.layout)

    def one(x, places):
        angles = places[..., None] * world.frequencies
        matrix = torch.eye(world.dim, dtype=torch.float64).repeat(*places.shape, 1, 1)
        matrix[..., first, first] = matrix[..., second, second] = world.lengthened * angles.cos()
        matrix[..., second, first] = world.lengthened * angles.sin()
        matrix[..., first, second] = -world.lengthened * angles.sin()
        return (matrix @ x.double()[..., None])[..., 0].to(x.dtype)

    return by(one)


@right
def coarse_and_fine_steps(world):
    """The angle is that of the last multiple of 64 plus the rest, from two small tables and the addition theorem."""

    def tables(places):
        coarse, fine = (part[..., None] * world.frequencies for part in (64 * (places // 64), places % 64))
        cos = coarse.cos() * fine.cos() - coarse.sin() * fine.sin()
        return cos, coarse.sin() * fine.cos() + coarse.cos() * fine.sin()

    def one(x, places):
        inner = rope.join(
            *turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), *tables(places)), world.layout
        )
        return torch.cat(((inner * world.lengthened).to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def padded_with_still_pairs(world):
    """The formula with a quarter turn runs over the whole head: where nothing is rotated, the sine is 0, the cosine is
    1, and lengths don't change."""
    first, second = rope.split(torch.arange(world.rotary_dim), world.layout)
    partner, sign = torch.arange(world.dim), torch.zeros(world.dim, dtype=torch.float64)
    partner[first], partner[second], sign[first], sign[second] = second, first, -1.0, 1.0

    def one(x, places):
        angles = torch.zeros(*places.shape, world.dim, dtype=torch.float64)
        angles[..., first] = angles[..., second] = places[..., None] * world.frequencies
        scale = torch.where(sign == 0, 1.0, world.lengthened)
        return (scale * (x * angles.cos() + sign * x[..., partner] * angles.sin())).to(x.dtype)

    return by(one)


@right
def table_that_grows(world):
    """A table of cosines and sines is built for as many positions as needed, and is rebuilt for more."""
    tables = {}

    def one(x, places):
        needed = int(places.max()) + 1
        if len(tables.get("cos", ())) < needed:
            angles = torch.arange(2 * needed, dtype=torch.float64)[:, None] * world.frequencies
            tables.update(cos=angles.cos(), sin=angles.sin())
        cos, sin = tables["cos"][places.long()], tables["sin"][places.long()]
        inner = rope.join(*turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), cos, sin), world.layout)
        return torch.cat(((inner * world.lengthened).to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def one_long_list_of_heads(world):
    """q and k are concatenated along the heads, rotated together in NumPy, with tokens as the first axis, and split."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        both = numpy.moveaxis(torch.cat((q, k), 1).double().numpy(), 2, 0)
        own = places.expand(q.shape[0], 1, q.shape[2])
        turned = torch.from_numpy(numpy.moveaxis(both, 0, 2).copy())
        result = rotated(turned, own[..., None] * world.frequencies, world.layout, world.lengthened).to(q.dtype)
        return result[:, : q.shape[1]], result[:, q.shape[1] :]

    return rotation


@right
def slowest_pair_first(world):
    """Pairs are rotated one at a time from the slowest to the fastest, each with a 2 × 2 matrix."""
    first, second = rope.split(torch.arange(world.rotary_dim), world.layout)

    def one(x, places):
        result = x.clone()
        for pair in reversed(range(world.rotary_dim // 2)):
            where = [int(first[pair]), int(second[pair])]
            angle = places * world.frequencies[pair]
            rows = torch.stack((angle.cos(), -angle.sin(), angle.sin(), angle.cos()), -1).unflatten(-1, (2, 2))
            turned = (rows @ x[..., where].double()[..., None])[..., 0]
            result[..., where] = (turned * world.lengthened).to(x.dtype)
        return result

    return by(one)
