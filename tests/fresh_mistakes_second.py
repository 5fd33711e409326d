"""A second set of mistakes from public reports, gathered by somebody who hasn't seen the diagnosis, to judge it once.

As in the first set, each function takes a `World` and gives a wrong rotation f(q, k, positions); its docstring says
what is wrong and where and when that was reported. `FRESH` adds the truth as facts, and what we'd accept as naming
it. Besides the calls of the first set, a mistake may show in "rows" (positions differ between the rows of a batch),
in "packed" (positions start again within a row) and "again" (a later call, when the function remembers earlier ones).

`SOUND` holds functions that are right, written in styles that are unusual. They're declared as the others are.
"""

import math

import torch

from ropebook import rope
from tests.fresh_world import (
    alone,
    by,
    collecting,
    collecting_sound,
    kept,
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
fresh = collecting(FRESH)


# --- Positions ---


def moved(world, move):
    """Rotate q and k correctly, but by the positions that ``move(x, places)`` returns."""
    return by(lambda x, places: alone(x, move(x, places), world))


def counted(x, places):
    return torch.arange(x.shape[2], dtype=torch.float64).expand(places.shape)


IGNORED = [
    r"position.{0,60}(ignor|not used|unused|no (effect|influence)|never (used|read)|disregard)",
    r"ignor.{0,60}position",
    r"(count|start|number|begin).{0,60}(from|at|with) (0|zero)|from (0|zero)|from the (start|beginning|first)",
    r"arange|always (0|zero)|place in the (call|sequence)|index (of|in|within)",
]


@fresh(
    "both, position, counted from 0 in each call",
    accept=IGNORED,
    refuse="that positions are wrong or offset by a number, without saying that those given play no part",
)
def positions_ignored(world):
    """Positions that are given are ignored: each call counts from 0. Source: NVIDIA/Megatron-LM/issues/453
    (2023-08-09)."""
    return moved(world, counted)


@fresh(
    "both, rows, all rows have the positions of the first",
    accept=[r"\brows?\b|batch|first sequence|other sequences|left.?padd"],
    refuse="that positions are wrong, without the rows",
    seen=["rows"],
)
def rows_like_the_first(world):
    """If rows have different positions, as with left padding, every row gets the first row's positions. Source:
    unslothai/unsloth/pull/3803 (2025-12-29)."""
    return moved(world, lambda x, places: places[:1] if places.ndim == 3 else places)


@fresh(
    "both, position, counted on by 1 from the first one of the row",
    accept=[
        r"consecutive|contiguous|\bgaps?\b|pack|restart|reset|jump|start again|increas",
        r"(count|run)\w* on|one after (another|the other)|only the first|first (position|token|one|entry)",
    ],
    refuse="that positions are ignored altogether, or an offset of every call",
    seen=["packed"],
)
def packed_counted_on(world):
    """If sequences are packed into a row, positions count on from the start of the row instead of restarting. Source:
    allenai/OLMo-core/pull/591 (2026-02-03)."""
    return moved(world, lambda x, places: places[..., :1] + counted(x, places))


@fresh(
    "both, rows, positions go on from the row before instead of starting as given",
    accept=[r"\brows?\b|batch|next sequence|other sequences"],
    refuse="that positions are offset, without the rows",
    when=lambda world: world.rotary_dim > 2,
    seen=["small", "large", "one", "rows"],
)
def rows_counted_on(world):
    """The kernel treats the rows of a batch as one long row, so each row's positions continue the previous row's.
    Source: turboderp/exllama/pull/101 (2023-06-23)."""

    def on(x, places):
        row = torch.arange(x.shape[0], dtype=torch.float64)[:, None, None]
        return places + row * x.shape[2]

    return moved(world, on)


@fresh(
    "both, heads, the number of the head is added to the position of a token that comes alone",
    accept=[r"head"],
    refuse="that a token alone is rotated too far, without the heads",
    seen=["one"],
)
def head_added_alone(world):
    """If a call has a single token, each head adds its own number to the position. Source: elixir-nx/emlx/issues/121
    (2026-07-04)."""

    def added(x, places):
        return places + torch.arange(x.shape[1], dtype=torch.float64)[:, None] if x.shape[2] == 1 else places

    return moved(world, added)


@fresh(
    "both, position, 0 if a token comes alone",
    accept=[
        r"(one|single|alone|lone|decod).{0,80}(\b0\b|zero|not rotated|n't rotated|unrotated|unchanged|ignor)",
        r"(\b0\b|zero|not rotated|n't rotated|unrotated|unchanged|ignor).{0,80}(one|single|alone|lone|decod)",
    ],
    refuse="that positions are ignored in all calls",
    seen=["one"],
)
def alone_at_zero(world):
    """If a call has a single token, it is rotated by position 0, however long the cache is. Source:
    Blaizzy/mlx-vlm/issues/1983 (2026-08-20)."""
    return moved(world, lambda x, places: places * 0 if x.shape[2] == 1 else places)


@fresh(
    "both, position, all tokens of a call are at its first one",
    accept=[
        r"(same|one|single|equal|constant|identical|shared) (position|angle|rotation|place)",
        r"(all|every|each) tokens?.{0,80}(first|start|same)",
        r"first (position|token).{0,60}(all|every|each|whole|others?)",
        r"(don't|do not|doesn't|does not|never|not) (advance|move|grow|count|increase)|broadcast",
    ],
    refuse="that positions are ignored, without saying that they're the same for all tokens",
    seen=["small", "large"],
)
def window_at_its_start(world):
    """All tokens of a call are rotated by the position of its first token. Source: jundot/omlx/pull/2363
    (2026-07-24)."""
    return moved(world, lambda x, places: places[..., :1].expand(places.shape))


@fresh(
    "both, position, the start of a call never goes beyond half of the length",
    accept=[
        r"clamp|capp?ed|\bcap\b|limit|saturat|at most|no (further|farther|larger|more)|held|stays?\b|stuck|clip",
        r"(beyond|past|after|above|from|up to|until|until about) (position )?\d+|stops? (at|grow|ris|count|increas)",
        r"retain|evict|window|table|never .{0,30}beyond|larger (position|one)s",
    ],
    refuse="an offset of all positions, or another base",
    seen=["large"],
)
def held_at_the_budget(world):
    """Once the cache has evicted tokens, calls start at the number of tokens it retains, not at their own position.
    Source: rajveer43/VeloxQuant-MLX/issues/389 (2026-09-16)."""

    def held(x, places):
        start = places[..., :1]
        return places - start + start.clamp(max=world.length // 2)

    return moved(world, held)


@fresh(
    "both, position, the position of the first token is added once more to all",
    accept=[
        r"(start|first|offset|cache).{0,80}(twice|doubl|again|once more|two times|added)",
        r"(twice|doubl|two times|add|plus).{0,80}(start|first|offset|cache|beginning)",
        r"shift.{0,60}(start|first)|offset.{0,60}(depends|grows|equal|same as)",
    ],
    refuse="that positions are doubled, or an offset without its cause",
    seen=["small", "large", "one"],
)
def start_counted_twice(world):
    """A later chunk of a prompt adds its start to positions that already include it. Source:
    mlx-node/mlx-node/pull/33 (2026-03-21)."""
    return moved(world, lambda x, places: places + places[..., :1])


@fresh(
    "q, position, all tokens of a call are at its last one",
    accept=[
        r"(\bq\b|quer).{0,120}(last|same|one|single|end|constant|max|largest)",
        r"(last|same|constant|largest).{0,120}(\bq\b|quer)",
    ],
    refuse="the same of both, or of k",
    seen=["small", "large"],
)
def query_at_the_last(world):
    """All queries of a call get the angles of its last token. Source: NVIDIA/TransformerEngine/pull/536
    (2023-11-23)."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places[..., -1:].expand(places.shape), world), alone(k, places, world)

    return rotation


@fresh(
    "k, twice, rotated twice",
    accept=[
        r"(\bk\b|\bkeys?\b).{0,120}(twice|doubl|two times|again|once more|× ?2|2 ?×)",
        r"(twice|doubl|two times|again|once more).{0,120}(\bk\b|\bkeys?\b)",
    ],
    refuse="the same of both, or that q and k differ without saying how",
)
def key_twice(world):
    """Keys are rotated when they're cached and once more when they're read. Source: NeuraLegion/shainet/pull/110
    (2026-06-10)."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places, world), alone(alone(k, places, world), places, world)

    return rotation


@fresh(
    "both, twice, rotated twice, so lengthened by the square of the attention factor",
    accept=[r"twice|two times|\bagain\b|once more|doubl", r"(squar).{0,80}(angle|position|rotat|turn)"],
    refuse="only the length, or only another base",
    when=lambda world: world.scaled == "yarn",
)
def both_twice(world):
    """With YaRN, q and k are rotated before the kernel and once more in it. Source: NVIDIA/TensorRT-LLM/pull/16378
    (2026-07-14)."""
    return by(lambda x, places: alone(alone(x, places, world), places, world))


@fresh(
    "both, position, tokens from half of the length on aren't rotated",
    accept=[
        r"(beyond|past|after|above|from|large|later|further).{0,120}(not|n't|un|never|stop|no).{0,20}(rotat|turn|chang)",
        r"(not|n't|un|never|stop).{0,20}(rotat|turn|chang).{0,120}(beyond|past|after|above|from|large|later|length|\d)",
        r"(beyond|past|after|above|from|large|later).{0,120}(as they (are|were)|identity|come back)",
        r"table (ends|is too short)|end of the table|out of (range|bounds?)",
    ],
    refuse="that nothing is rotated, or that positions are clamped",
    seen=["large"],
)
def beyond_the_table(world):
    """The tables are too short, and tokens beyond their end are left as they are. Source:
    microsoft/onnxruntime/pull/27597 (2026-03-09)."""

    def one(x, places):
        inside = (places < world.length // 2)[..., None]
        return torch.where(inside, alone(x, places, world), x)

    return by(one)


# --- What a function remembers ---


@fresh(
    "both, position, that of an earlier call with as many tokens",
    accept=[
        r"earlier|previous|remember|cach|stale|first call|call(ed)? before|depends? on (the )?(order|history|earlier)",
        r"(differ|chang|same).{0,60}(call|twice|again)|state",
    ],
    refuse="that positions are ignored or counted from 0",
    seen=["again"],
)
def first_offset_kept(world):
    """Angles are cached by the number of tokens alone, so a call may get those of an earlier call. Source:
    lucidrains/rotary-embedding-torch/issues/11 (2023-08-08)."""
    known = {}

    def kept_angles(x, places):
        return known.setdefault(x.shape[2], places.reshape(-1, x.shape[2])[0])

    return moved(world, kept_angles)


@fresh(
    "both, frequency, the base stays larger once a call has gone beyond the length",
    accept=[
        r"earlier|previous|remember|cach|stale|call(ed)? before|depends? on (the )?(order|history|earlier)|state",
        r"(longest|largest|long).{0,80}(call|seen|so far|stay|kept|remain)|dynamic|NTK",
        r"beyond|past the (declared )?length",
    ],
    refuse="another base in all calls",
    when=lambda world: plain(world) and pairs(world),
    seen=["far", "again"],
)
def long_call_remembered(world):
    """A call beyond the trained length enlarges the base, and shorter calls after it still use the larger base. Source:
    huggingface/transformers/issues/25306 (2023-08-04)."""
    longest = [world.length]

    def one(x, places):
        longest[0] = max(longest[0], places.max().item() + 1)
        grown = (2 * longest[0] / world.length - 1) ** (world.rotary_dim / (world.rotary_dim - 2))
        return rotated(x, places[..., None] * rope.inv_freq(world.rotary_dim, world.base * grown), world.layout)

    return by(one)


# --- Precision ---


@fresh(
    "both, precision, positions rounded to bfloat16",
    accept=[r"position.{0,100}(round|bfloat16|half|precis|8 bits)|(round|bfloat16|half|precis).{0,100}position"],
    refuse="that frequencies, or cos and sin, are rounded",
    when=several,
    seen=["large"],
)
def rounded_positions(world):
    """Positions are rounded to bfloat16, which has no odd numbers beyond 256. Source: Nerogar/OneTrainer/issues/1177
    (2025-11-30)."""
    return moved(world, lambda x, places: places.bfloat16().double())


@fresh(
    "both, precision, frequencies and angles in float16",
    accept=[
        r"({0}).{{0,100}}({1})|({1}).{{0,100}}({0})".format("frequenc|angle|inv_freq|θ", "round|float16|half|precis")
    ],
    refuse="that only positions are rounded, or another base",
    when=several,
    seen=["large"],
)
def half_precision_angles(world):
    """Frequencies, and their product with positions, are float16. Source: EleutherAI/gpt-neox/issues/1003
    (2023-07-27)."""

    def one(x, places):
        angles = places[..., None].half() * world.frequencies.half()
        return rotated(x, angles.double(), world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, precision, cos and sin rounded to bfloat16",
    accept=[
        r"({0}).{{0,100}}({1})|({1}).{{0,100}}({0})".format(
            r"\bcos|\bsin|table|result|output|value|entries", "round|bfloat16|half|precis"
        )
    ],
    refuse="that positions, frequencies or angles are rounded",
)
def rounded_tables(world):
    """The tables of cos and sin are cast to bfloat16 with the weights. Source: InternLM/InternLM/issues/237
    (2023-08-25)."""
    return with_turn(world, lambda a, b, cos, sin: turn(a, b, cos.bfloat16().double(), sin.bfloat16().double()))


# --- Frequencies ---


@fresh(
    "both, never, not rotated: all frequencies are 0",
    accept=[
        r"(not|n't|never|nothing|no) (is |are |be )?(rotat|turned|chang)|unrotated|unchanged|identity",
        r"as (they|it) (was|were|is|are)\b",
        r"frequenc.{0,40}(\b0\b|zero)|(\b0\b|zero).{0,40}frequenc",
    ],
    refuse="another base",
)
def frequencies_zeroed(world):
    """Loading leaves all frequencies at 0, so nothing is rotated. Source: pytorch/executorch/pull/19627
    (2026-05-18)."""
    return with_frequencies(world, torch.zeros_like(world.frequencies))


@fresh(
    "both, frequency, all too slow by base^(1/d): exponent (2i+1)/d instead of 2i/d",
    accept=[r"exponent|factor|slower|too slow|multipl|scaled|shift|half a (pair|step)|times (as|too|the)|2i ?\+ ?1"],
    refuse="another base: no base makes the first frequency anything but 1",
    when=plain,
)
def handout_exponent(world):
    """The exponent is (2k-1)/d with k from 1, and should be 2(k-1)/d. Source:
    stanford-cs336/assignment1-basics/issues/22 (2025-08-28)."""
    return with_frequencies(world, world.frequencies * world.base ** (-1 / world.rotary_dim))


@fresh(
    "both, frequency, a larger base: base*(f^2-f+1)^(d/(d-2)), in calls of any length",
    accept=[r"\bbase\b|NTK"],
    refuse="that frequencies or angles differ, without the base",
    when=lambda world: plain(world) and pairs(world),
)
def base_always_grown(world):
    """Dynamic NTK's base is a constant that doesn't depend on the length of a call. Source:
    vllm-project/vllm/issues/41236 (2026-04-29)."""
    factor = 2.0 if world.layout == "half" else 4.0
    grown = (factor**2 - factor + 1) ** (world.rotary_dim / (world.rotary_dim - 2))
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, world.base * grown))


@fresh(
    "both, frequency, each too slow by its own factor, from 1 for the first pair to 64 for the last",
    accept=[
        r"(each|every|differ|per|own|individual|list).{0,60}(factor|scal)|factors|longrope",
        r"(slow|last|low|some|only|most|more).{0,40}(pairs|freq)|pairs? \d+",
    ],
    refuse="another base or a single factor, without saying that pairs differ",
    when=lambda world: plain(world) and several(world),
)
def long_factors_always(world):
    """LongRoPE's factors for long texts also slow the pairs in short texts. Source: lablup/mlxcel/issues/1358
    (2026-08-22)."""
    factors = 1 + 63 * torch.linspace(0, 1, world.rotary_dim // 2, dtype=torch.float64) ** 2
    return with_frequencies(world, world.frequencies / factors)


@fresh(
    "both, scale, positions divided by a factor though no scaling is declared",
    accept=[
        r"slower|too slow|divid|interpol|stretch|compress|fraction|1/\d|linear",
        r"(scaled|multipl|times|factor).{0,60}\d|\d.{0,60}(scaled|multipl|times|factor)",
    ],
    refuse="another base: no base makes the first frequency anything but 1",
    when=plain,
)
def scaled_unasked(world):
    """Layers that should have no scaling get the linear scaling of other layers. Source: antonellof/ferrox/issues/39
    (2026-09-02)."""
    return with_frequencies(world, world.frequencies / (8.0 if world.layout == "half" else 4.0))


@fresh(
    "both, frequency, pair i has that of pair i//2, so the slow half of them is missing",
    accept=[
        r"(repeat|duplicat|shared?|neighbou?r|same).{0,80}(frequenc|pair|angle)",
        r"(frequenc|pair|angle).{0,80}(repeat|duplicat|shared?|order|neighbou?r|of another|of other|index)",
        r"frequenc\w* .{0,30}twice|twice .{0,10}frequenc|two pairs|exponent|i ?// ?2|half of the (table|frequenc)",
    ],
    refuse="another base: the first two frequencies are the same",
    when=lambda world: several(world) and world.layout == "interleaved",
)
def half_of_the_table_twice(world):
    """The index into the table is halved, so each frequency serves two pairs. Source:
    vllm-project/vllm-ascend/pull/11027 (2026-06-27, in review)."""
    return with_frequencies(world, world.frequencies[torch.arange(len(world.frequencies)) // 2])


@fresh(
    "both, heads, frequencies run on from head to head, over the width of all heads",
    accept=[r"heads?\b"],
    refuse="another base or exponent, without the heads",
    when=lambda world: plain(world) and world.rotary_dim == world.dim,
)
def frequencies_across_heads(world):
    """Rotation comes before the split into heads, so one series of frequencies runs over all heads. Source:
    Lightricks/LTX-Video/issues/224 (2025-07-13)."""

    def one(x, places):
        heads = x.shape[1]
        theta = rope.inv_freq(heads * world.dim, world.base).view(heads, 1, world.dim // 2)
        return rotated(x, places[..., None] * theta, world.layout)

    return by(one)


@fresh(
    "both, frequency, the fast half goes from 1 to 1/base in equal steps of the exponent",
    "both, entries, the slow half of the pairs isn't rotated",
    accept=[
        r"(half|some|slow|last|second|other|only).{0,60}(not|n't|un|never|no).{0,20}(rotat|turn|chang|move)",
        r"(not|n't|un|never|no).{0,20}(rotat|turn|chang|move).{0,60}(half|some|slow|last|second|pair)",
        r"frequenc.{0,60}(\b0\b|zero)|(\b0\b|zero).{0,60}frequenc|pairs? \d+|only (the first |half|\d+)",
        r"(slow|last|second) half|still|as they (are|were)",
    ],
    refuse="another base, without the pairs that stay as they are",
    when=lambda world: plain(world) and several(world),
)
def slow_half_still(world):
    """The slow half of the pairs has frequency 0, and the frequencies of the fast half fall from 1 to 1/base. Source:
    KellerJordan/modded-nanogpt (train_gpt.py, undated; intended there, but a mistake for weights of the usual kind)."""
    fast = world.rotary_dim // 4
    theta = torch.zeros_like(world.frequencies)
    theta[:fast] = world.base ** -torch.linspace(0, 1, fast, dtype=torch.float64)
    return with_frequencies(world, theta)


@fresh(
    "both, frequency, exponent 2i/dim instead of 2i/rotary_dim",
    accept=[
        r"exponent|rotary_dim|head_dim|(whole|entire|full) head|width|dimension|wider|\bdim\b",
        r"base.{0,80}(root|\^|power)",
    ],
    refuse="another base, without the width or the exponent",
    when=lambda world: partial(world) and pairs(world),
)
def exponent_of_the_whole_head(world):
    """The declared part of each head is rotated, but with the frequencies of the whole head. Source:
    aws-neuron/neuronx-distributed-inference/pull/106 (2026-07-01; there, the whole head's frequencies are right, and
    the part's are the mistake)."""
    return with_frequencies(world, rope.inv_freq(world.dim, world.base)[: world.rotary_dim // 2])


# --- Scaling of frequencies ---


def unscaled(world):
    return rope.inv_freq(world.rotary_dim, world.base)


def ramp(world, length, betas=(32, 1), rounded=True):
    """YaRN's frequencies for an original ``length``. The ramp ends at the pairs that complete ``betas`` turns in it."""
    low, high = (
        world.rotary_dim * math.log(length / (beta * 2 * math.pi)) / (2 * math.log(world.base)) for beta in betas
    )
    if rounded:
        low, high = math.floor(low), math.ceil(high)
    low, high = max(low, 0), min(high, world.rotary_dim - 1)
    width = high - low or 1e-3
    slowed = ((torch.arange(world.rotary_dim // 2, dtype=torch.float64) - low) / width).clamp(0, 1)
    return unscaled(world) * (1 - slowed + slowed / world.factor)


def changes(world, theta):
    """Whether at least one frequency differs by more than one per cent from the declared one."""
    return not torch.allclose(theta, world.frequencies, rtol=0.01, atol=0)


def swapped(world):
    return ramp(world, world.length / world.factor, betas=(1, 32))


def extended(world):
    return ramp(world, world.length)


def unrounded(world):
    return ramp(world, world.length / world.factor, rounded=False)


BLEND = [
    r"between|blend|band|interpolat|ramp|smooth|transition|correction|\bbeta",
    r"(some|middle|few|several|certain|only|these|slow|fast|low|high).{0,30}(pairs|freq)|pairs? \d+",
]


ALL_SLOWED = [
    r"linear|uniform|position.{0,60}(divid|scaled|factor)",
    r"(fast|high|first|every|\ball\b).{0,80}(slow|divid|scaled|stretch|factor|interpol)",
    r"(slow|divid|scaled|stretch|factor|interpol).{0,80}(fast|high|first|every|\ball\b)|pairs? \d+",
]


@fresh(
    "both, frequency, slow pairs are divided by 8 instead of the declared factor",
    accept=[
        r"factor.{0,60}(8|other|wrong|another|instead)|(other|wrong|another|larger) factor|divid|slower|too slow|1/8",
        r"(some|slow|last|low|only).{0,30}(pairs|freq)|pairs? \d+",
    ],
    refuse="that the scaling is missing, or another base",
    when=lambda world: world.scaled == "llama3" and world.factor != 8 and (kept(world) < 0.9).any(),
)
def usual_factor(world):
    """llama3's factor is always 8, as it was in Llama 3.1. Source: meta-llama/llama-models/issues/241
    (2024-12-10)."""
    share = kept(world)
    return with_frequencies(world, unscaled(world) * (share + (1 - share) / 8))


@fresh(
    "both, scale, all pairs are divided by the factor, the fast ones too",
    accept=ALL_SLOWED,
    refuse="that the scaling is missing, or another base",
    when=lambda world: world.scaled == "llama3" and (kept(world) > 0.1).any(),
)
def llama3_as_linear(world):
    """llama3's scaling is replaced by linear scaling, so all pairs are slowed by the same factor. Source:
    lablup/mlxcel/issues/1688 (2026-09-08)."""
    return with_frequencies(world, unscaled(world) / world.factor)


@fresh(
    "both, scale, llama3's frequencies in calls with one token, plain ones in longer calls",
    accept=[
        r"(one|single|alone|lone|several|longer|prefill|number of tokens).{0,120}(scal|freq|plain|exten)",
        r"unscaled|not scaled|plain|without.{0,30}(scal|exten|stretch)",
        r"(scal|exten|stretch)\w*.{0,60}(missing|ignored|dropped|left out|not applied|forgotten)",
    ],
    refuse="another base",
    when=lambda world: world.scaled == "llama3" and changes(world, unscaled(world)),
    seen=["large"],
)
def prefill_unscaled(world):
    """A prompt is rotated with unscaled frequencies, and each new token with scaled ones. Source:
    Xilinx/mlir-air/pull/1948 (2026-08-29)."""

    def one(x, places):
        theta = world.frequencies if x.shape[2] == 1 else unscaled(world)
        return rotated(x, places[..., None] * theta, world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, frequency, YaRN's ramp the wrong way round: fast pairs are slowed and slow ones kept",
    accept=BLEND + [r"wrong way|revers|swap|exchang|other way"],
    refuse="another base, or that the scaling is missing",
    when=lambda world: world.scaled == "yarn" and changes(world, swapped(world)),
)
def betas_exchanged(world):
    """YaRN's beta_fast and beta_slow have changed places. Source: pytorch/torchtitan/pull/3787 (2026-07-01, in
    review)."""
    return with_frequencies(world, swapped(world))


@fresh(
    "both, scale, all pairs are divided by the factor, the fast ones too",
    accept=ALL_SLOWED,
    refuse="that the scaling is missing, or another base",
    when=lambda world: world.scaled == "yarn" and (kept(world) > 0.1).any(),
)
def yarn_as_linear(world):
    """With YaRN, positions are divided by the factor and clamped to the original length. Source:
    rasbt/LLMs-from-scratch/pull/940 (2026-01-03)."""

    def one(x, places):
        places = (places / world.factor).clamp(max=world.length / world.factor - 1)
        return rotated(x, places[..., None] * unscaled(world), world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, frequency, YaRN's ramp is where the extended length puts it: too few pairs are slowed",
    accept=BLEND + [r"original (length|max)|(fewer|too few|less)"],
    refuse="another base, or that the scaling is missing",
    when=lambda world: world.scaled == "yarn" and changes(world, extended(world)),
)
def ramp_of_the_extended_length(world):
    """YaRN's ramp is computed from the extended length instead of the original one. Source:
    NVIDIA/Megatron-LM/issues/1418 (2025-05-02)."""
    return with_frequencies(world, extended(world))


@fresh(
    "both, frequency, the ends of YaRN's ramp aren't rounded to whole pairs",
    accept=BLEND + [r"(not|n't|un|without).{0,20}(round|trunc|floor|ceil)|whole pairs|fraction"],
    refuse="another base, or that the scaling is missing",
    when=lambda world: world.scaled == "yarn" and changes(world, unrounded(world)),
    seen=["large"],
)
def ramp_not_rounded(world):
    """The ends of YaRN's ramp are left as fractions of a pair. Source: keras-team/keras-hub/pull/2981 (2026-08-24)."""
    return with_frequencies(world, unrounded(world))


# --- Length ---

LONGER = [r"length|norm|magnitude|longer|attention.?factor|mscale|too (long|large)|temperature|scaled by|amplif"]


@fresh(
    "both, length, lengthened by 0.1*m*ln(factor)+1 where m is the attention factor already",
    accept=LONGER,
    refuse="that vectors are too short",
    when=lambda world: world.lengthened != 1,
)
def logarithm_twice(world):
    """The formula for the attention factor is applied a second time, to its own result. Source:
    NVIDIA/TensorRT-LLM/pull/16379 (2026-07-14)."""
    return with_frequencies(world, world.frequencies, 0.1 * world.lengthened * math.log(world.factor) + 1)


@fresh(
    "both, length, lengthened by 0.1*ln(factor)+1 though the attention factor is 1",
    accept=LONGER,
    refuse="that vectors are too short, or that frequencies are wrong",
    when=lambda world: world.factor != 1 and world.lengthened == 1,
)
def lengthened_unasked(world):
    """The given attention factor is 1, but the value from the formula is used. Source: vllm-project/vllm/pull/46280
    (2026-06-21; there with YaRN, here with scalings that have no attention factor)."""
    return with_frequencies(world, world.frequencies, 0.1 * math.log(world.factor) + 1)


# --- The formula, tables and pairs ---

NO_ROTATION = [r"not a rotation|length|norm|magnitude|shrink|stretch|distort|determinant|orthogonal"]


def padded(width):
    return 1 << (width - 1).bit_length()


@fresh(
    "both, other, sin is read too far on in the table: that of a slower pair, or cos of the next position",
    accept=NO_ROTATION + [r"\bsin|table|two angles|different angle"],
    refuse="that positions, the base or the layout are wrong",
    when=lambda world: several(world) and padded(world.rotary_dim) != world.rotary_dim,
)
def sine_from_a_padded_offset(world):
    """Each row of the table contains cos and then sin, but sin is read from where it would begin if the width were
    rounded up to a power of two. Source: vllm-project/vllm-ascend/pull/12963 (2026-07-28)."""
    shift = (padded(world.rotary_dim) - world.rotary_dim) // 2

    def one(x, places):
        here, after = (
            torch.cat((angles.cos(), angles.sin()), -1)
            for angles in ((places + step)[..., None] * world.frequencies for step in (0, 1))
        )
        start, width = world.rotary_dim // 2 + shift, world.rotary_dim // 2
        sin = torch.cat((here, after), -1)[..., start : start + width]
        angles = places[..., None] * world.frequencies
        return rotated(x, angles, world.layout, world.lengthened, turn=lambda a, b, cos, _: turn(a, b, cos, sin))

    return by(one)


def written(world, made):
    """Replace the entries of q and k that rotate by the tensor that ``made(first, second, cos, sin)`` returns."""

    def one(x, places):
        angles = places[..., None] * world.frequencies
        first, second = rope.split(x[..., : world.rotary_dim].double(), world.layout)
        inner = made(first, second, angles.cos(), angles.sin()) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@fresh(
    "both, pairing, rotated rightly, but written in the order of the other layout",
    accept=[
        r"(\bout(put)?\b|result|return|written|join|back).{0,80}(order|layout|interleaved|halves|place)",
        r"(order|layout|interleaved|halves).{0,80}(\bout(put)?\b|result|return|written|join|back)",
        r"permut|shuffl|rearrang|reorder|concat|position 0",
    ],
    refuse="that frequencies are wrong, or that q and k are paired by the other layout if that's said of their input",
    when=pairs,
)
def joined_the_other_way(world):
    """Pairs are read in the right layout, but the result is written in the other layout. Source:
    vllm-project/vllm-metal/pull/44 (2026-01-02)."""
    other = "half" if world.layout == "interleaved" else "interleaved"
    return written(world, lambda a, b, cos, sin: rope.join(*turn(a, b, cos, sin), other))


@fresh(
    "both, pairing, x stays interleaved; its quarter turn, cos and sin are laid out in halves",
    accept=NO_ROTATION
    + [
        r"(two|both|part|some|cos|sin|table|quarter).{0,80}(layout|order|interleaved|halves)",
        r"(layout|order|interleaved|halves).{0,80}(part|cos|sin|table|quarter)|mix|repeat",
    ],
    refuse="that frequencies or positions are wrong, or that all is by the other layout",
    when=lambda world: pairs(world) and world.layout == "interleaved",
)
def quarter_turn_in_halves(world):
    """Pairs are neighbours, but their quarter turn, cosines and sines are arranged in halves.
    Source: Tongjilibo/bert4torch/issues/1 (2022-04-07)."""

    def made(a, b, cos, sin):
        x, quarter = rope.join(a, b, "interleaved"), torch.cat((-b, a), -1)
        return x * torch.cat((cos, cos), -1) + quarter * torch.cat((sin, sin), -1)

    return written(world, made)


@fresh(
    "both, other, halves of a table in which sin and cos alternate are taken for sin and cos",
    accept=NO_ROTATION + [r"\bcos|\bsin\b|table|alternat"],
    refuse="that positions, the base or the layout are wrong",
    when=pairs,
)
def halves_of_an_alternating_table(world):
    """Sines and cosines alternate in the table, but its first half is used as sines and its second as cosines. Source:
    NVIDIA/ngpt/issues/10 (2025-03-05, the first of its two points)."""

    def mixed(a, b, cos, sin):
        sines, cosines = rope.join(sin, cos, "interleaved").chunk(2, -1)
        return turn(a, b, cosines, sines)

    return with_turn(world, mixed)


@fresh(
    "both, other, cos and sin have changed places",
    accept=[
        r"(cos|sin).{0,60}(swap|exchang|interchang|chang\w* places|instead|mixed up|the other|reverse)",
        r"(swap|exchang|interchang|mixed up).{0,60}(cos|sin)|cos.{0,20} is .{0,10}sin|sin.{0,20} is .{0,10}cos",
        r"\b90\b|π ?/ ?2|quarter|reflect|mirror|position 0|complement",
    ],
    refuse="that the direction, a position or the base is wrong",
)
def cosine_and_sine_exchanged(world):
    """Cosine and sine are exchanged. Source: JuliaMath/openlibm/pull/175 (2018-01-29: sincos returns its two results in
    the wrong order; we assume that a rotation uses it)."""
    return with_turn(world, lambda a, b, cos, sin: turn(a, b, sin, cos))


@fresh(
    "both, other, no minus: (a cos + b sin, a sin + b cos)",
    accept=NO_ROTATION + [r"minus|sign|negat|symmetric|reflect|mirror"],
    refuse="that all pairs are rotated the other way",
)
def minus_left_out(world):
    """The matrix has sin twice, without a minus. Source: ndvanforeest/fit_ellipse/issues/4 (2020-09-03; a rotation in
    two dimensions)."""
    return with_turn(world, lambda a, b, cos, sin: (a * cos + b * sin, a * sin + b * cos))


@fresh(
    "both, other, the second entry is a sin + b sin instead of a sin + b cos",
    accept=NO_ROTATION
    + [r"(second|odd|half|one|some).{0,60}(entr|cos|sin|term|output)|(cos|sin).{0,60}(instead|missing|for)"],
    refuse="that a position, the base or the layout is wrong",
)
def sine_for_a_cosine(world):
    """One of the four terms has sin where cos belongs. Source: sampepose/flownet2-tf/issues/20 (2018-01-04; a rotation
    in two dimensions)."""
    return with_turn(world, lambda a, b, cos, sin: (a * cos - b * sin, a * sin + b * sin))


@fresh(
    "both, pairing, entry i is paired with i + dim/2 instead of i + rotary_dim/2",
    accept=[
        r"rotary_dim|partial|part of (the|a) head|(whole|entire|full) head|wider|half of the head",
        r"pair(ed|ing).{0,80}(with|across|half)|(other|wrong) (pairs|entries|dimensions|partner)",
    ],
    refuse="another base or exponent: the frequencies are right",
    when=lambda world: partial(world) and world.layout == "half" and pairs(world),
)
def pairs_of_the_whole_head(world):
    """Frequencies are right, but pairs are formed over the whole head. Source: apple/coreai-models/issues/66
    (2026-06-27; there, pairs over the whole head are right, and pairs within the part are the mistake)."""

    def one(x, places):
        theta = torch.zeros(world.dim // 2, dtype=torch.float64)
        theta[: world.rotary_dim // 2] = world.frequencies
        return rotated(x, places[..., None] * theta, "half")

    return by(one)


@fresh(
    "q, heads, only as many heads are rotated as k has",
    accept=[r"heads?\b|group"],
    refuse="that q isn't rotated, without the heads",
)
def queries_of_some_heads(world):
    """The loop over heads ends at k's number of heads, so the other heads of q stay as they are. Source:
    cisco-ai-defense/defenseclaw/pull/679 (2026-08-07; there, q's number of heads is used for both)."""

    def rotation(q, k, positions):
        places, heads = places_of(q, k, positions), k.shape[1]
        return torch.cat((alone(q, places, world)[:, :heads], q[:, heads:]), 1), alone(k, places, world)

    return rotation


# --- Sound ones, in unusual styles ---

SOUND = {}
sound = collecting_sound(SOUND)


@sound
def complex_numbers(world):
    """Pairs are complex numbers, multiplied by exp(i angle)."""

    def one(x, places):
        inner = x[..., : world.rotary_dim].double()
        if world.layout == "interleaved":
            numbers = torch.view_as_complex(inner.unflatten(-1, (-1, 2)).contiguous())
        else:
            numbers = torch.complex(*inner.chunk(2, -1))
        numbers = numbers * world.lengthened * torch.exp(1j * places[..., None] * world.frequencies)
        if world.layout == "interleaved":
            inner = torch.view_as_real(numbers).flatten(-2)
        else:
            inner = torch.cat((numbers.real, numbers.imag), -1)
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@sound
def matrices(world):
    """A (dim, dim) matrix for each position, and one einsum."""
    pair = torch.arange(world.rotary_dim // 2)
    if world.layout == "interleaved":
        first, second = 2 * pair, 2 * pair + 1
    else:
        first, second = pair, pair + world.rotary_dim // 2

    def one(x, places):
        angles = places[..., None] * world.frequencies
        matrix = torch.eye(world.dim, dtype=torch.float64).repeat(*places.shape, 1, 1)
        matrix[..., first, first] = matrix[..., second, second] = world.lengthened * angles.cos()
        matrix[..., second, first] = world.lengthened * angles.sin()
        matrix[..., first, second] = -world.lengthened * angles.sin()
        if places.ndim == 1:
            return torch.einsum("sij,bhsj->bhsi", matrix, x.double()).to(x.dtype)
        return torch.einsum("bsij,bhsj->bhsi", matrix[:, 0], x.double()).to(x.dtype)

    return by(one)


@sound
def gathered_table(world):
    """Rows are looked up by position in a table of the declared length. Later positions raise an IndexError."""
    angles = torch.arange(world.length, dtype=torch.float64)[:, None] * world.frequencies
    table = torch.stack((angles.cos(), angles.sin())) * world.lengthened

    def one(x, places):
        cos, sin = table[:, places.long()]
        inner = rope.join(*turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), cos, sin), world.layout)
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@sound
def token_by_token(world):
    """A loop over tokens and pairs, with cos and sin of Python's own numbers."""
    half, theta = world.rotary_dim // 2, world.frequencies.tolist()
    ends = [(2 * i, 2 * i + 1) if world.layout == "interleaved" else (i, i + half) for i in range(half)]

    def one(x, places):
        out, places = x.clone(), places.expand(x.shape[0], 1, -1)
        for row in range(x.shape[0]):
            for token in range(x.shape[2]):
                for (a, b), frequency in zip(ends, theta, strict=True):
                    angle = places[row, 0, token].item() * frequency
                    cos, sin = world.lengthened * math.cos(angle), world.lengthened * math.sin(angle)
                    first, second = x[row, :, token, a].double(), x[row, :, token, b].double()
                    out[row, :, token, a] = (first * cos - second * sin).to(x.dtype)
                    out[row, :, token, b] = (first * sin + second * cos).to(x.dtype)
        return out

    return by(one)


@sound
def growing_table(world):
    """A table that starts empty. If a position is beyond its end, the table grows to that position and 64 more."""
    table = [torch.empty(2, 0, world.rotary_dim // 2, dtype=torch.float64)]

    def grown(needed):
        old = table[0].shape[1]
        if needed > old:
            angles = torch.arange(old, needed + 64, dtype=torch.float64)[:, None] * world.frequencies
            table[0] = torch.cat((table[0], torch.stack((angles.cos(), angles.sin()))), 1)
        return table[0]

    def one(x, places):
        cos, sin = grown(int(places.max()) + 1)[:, places.long()]
        both = turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), cos, sin)
        inner = rope.join(*both, world.layout) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@sound
def float32_inside(world):
    """Frequencies, angles and the rotation are in float32, as in most models. The result has q's type, such as
    bfloat16."""
    theta = world.frequencies.float()

    def one(x, places):
        angles = places.float()[..., None] * theta
        cos, sin = angles.cos() * world.lengthened, angles.sin() * world.lengthened
        if world.layout == "interleaved":
            cos, sin = cos.repeat_interleave(2, -1), sin.repeat_interleave(2, -1)
        else:
            cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
        inner = x[..., : world.rotary_dim].float()
        first, second = rope.split(inner, world.layout)
        inner = inner * cos + rope.join(-second, first, world.layout) * sin
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)
