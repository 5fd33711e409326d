"""Mistakes from public bug reports, gathered by somebody who hadn't seen the diagnosis, to judge it by once.

That was done: results/diagnose_fresh.json says what came of it. The diagnosis has learnt from them since, so they are
ordinary tests now (test_diagnose_wider).

Each function takes a `World` (what the weights need) and gives a wrong rotation f(q, k, positions): q and k are
(batch, heads, seq, dim), k may have fewer heads, and positions are (seq,) or (batch, seq). Its docstring says what
is wrong and where that was reported; `FRESH` adds the truth as facts, and what we'd accept as naming it.
"""

import math

import torch

from ropebook import rope
from tests.fresh_world import (
    alone,
    by,
    collecting,
    kept,
    pairs,
    partial,
    places_of,
    plain,
    rotated,
    several,
    with_frequencies,
    with_turn,
)

FRESH = {}
fresh = collecting(FRESH)


# --- Frequencies ---


@fresh(
    "both, frequency, base^(+2i/d) where it should be base^(-2i/d)",
    accept=[r"invert|reciprocal|exponent|grow|increas|positive power|base.{0,40}(0\.0|1e-|1/)", r"faster (and|with)"],
    refuse="that some frequencies differ, without saying that they rise from pair to pair",
    when=lambda world: plain(world) and pairs(world),
)
def inverted_frequencies(world):
    """The angle is the position divided by the frequency. Source: xlite-dev/LeetCUDA/issues/289."""
    return with_frequencies(world, 1 / world.frequencies)


@fresh(
    "both, frequency, 1 radian per position in every pair",
    accept=[
        r"(same|equal|one|single|identical) (frequenc|speed|rate|angle)",
        r"(all|every) pairs?",
        r"base.{0,12}\b1\b",
    ],
    refuse="that the base is another one, unless it says 1",
    when=lambda world: plain(world) and pairs(world),
)
def one_frequency(world):
    """An integer division makes every exponent 0, so all pairs have the same frequency. Source:
    xlite-dev/LeetCUDA/issues/289."""
    return with_frequencies(world, torch.ones_like(world.frequencies))


@fresh(
    "both, frequency, all too fast by base^(2/d): exponent 2(i-1)/d",
    accept=[r"exponent|factor|faster|too fast|multipl|scaled|stretch|shift|times (as|too|the)"],
    refuse="another base: no base makes the first frequency anything but 1",
    when=plain,
)
def previous_frequency(world):
    """Each pair has the frequency that belongs to the pair before it. Source: bkitano/llama-from-scratch/issues/8."""
    return with_frequencies(world, world.frequencies * world.base ** (2 / world.rotary_dim))


@fresh(
    "both, frequency, exponent i/d instead of 2i/d: as if the base were its square root",
    accept=[r"base|exponent"],
    refuse="that angles differ, without the base or the exponent",
    when=lambda world: plain(world) and pairs(world),
)
def halved_exponent(world):
    """The exponent lacks its factor of 2. Source: rasbt/LLMs-from-scratch/issues/410 (proposed there as a fix)."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, math.sqrt(world.base)))


@fresh(
    "both, frequency, base 10000 instead of the declared one",
    accept=[r"base"],
    refuse="that frequencies or angles differ, without the base",
    when=lambda world: plain(world) and pairs(world) and world.base != 10_000,
)
def usual_base(world):
    """The base is always 10000, whatever the weights were trained with. Source: huggingface/candle/pull/3746."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, 10_000.0))


@fresh(
    "both, frequency, base grows with the largest position of the call once that is beyond the length",
    accept=[
        r"depend.{0,60}(longest|largest|last|length|call|other positions)|dynamic|NTK",
        r"beyond|longer than|past the|after the (declared )?length|\bfar\b",
    ],
    refuse="another base, without saying that it is so only in calls that go beyond the length",
    when=lambda world: plain(world) and pairs(world),
    seen=["far"],
)
def base_of_the_longest(world):
    """The base grows with the largest position of a call, so cached keys have another base. Source:
    huggingface/transformers/issues/25104."""

    def one(x, places):
        reached = max((places.max().item() + 1) / world.length, 1.0)
        base = world.base * (2 * reached - 1) ** (world.rotary_dim / (world.rotary_dim - 2))
        return rotated(x, places[..., None] * rope.inv_freq(world.rotary_dim, base), world.layout)

    return by(one)


@fresh(
    "both, frequency, plain ones though scaled ones are declared",
    accept=[
        r"unscaled|not scaled|plain|without.{0,30}(scal|exten|stretch)",
        r"(scal|exten|stretch)\w*.{0,60}(missing|ignored|dropped|left out|not applied|forgotten)",
    ],
    refuse="that the declared frequencies aren't used, without saying that the unscaled ones are",
    when=lambda world: not plain(world),
)
def scaling_dropped(world):
    """The frequencies are still those from before the context was extended. Source: unslothai/unsloth/pull/6197."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim, world.base))


@fresh(
    "both, scale, positions multiplied by the factor instead of divided: too fast by its square",
    accept=[r"multipl|squared|faster|too fast|times (as|too|the)|factor"],
    refuse="that the scaling is missing",
    when=lambda world: world.scaled == "linear",
)
def factor_multiplied(world):
    """Linear scaling multiplies positions by the factor instead of dividing them. Source:
    ml-explore/mlx/pull/261 (inferred from the question in its review)."""
    return with_frequencies(world, world.frequencies * world.factor**2)


def blended_backward(world):
    """llama3's frequencies with the ramp between fast and slow pairs the wrong way round."""
    plain = rope.inv_freq(world.rotary_dim, world.base)
    wavelength, short = 2 * math.pi / plain, world.length / world.factor
    ramp = (wavelength - short / 4) / (short - short / 4)
    slower = torch.where(ramp < 0, 1.0, torch.where(ramp > 1, world.factor, (1 - ramp) * world.factor + ramp))
    return plain / slower


@fresh(
    "both, frequency, only the pairs in the band that llama3 blends: its faster ones are slowed most",
    accept=[
        r"between|blend|band|interpolat|ramp|smooth",
        r"(some|middle|few|several|certain|only|these) .{0,20}(pairs|freq)",
        r"pairs? \d+",
    ],
    refuse="another base, or that all frequencies are wrong",
    when=lambda world: (
        world.scaled == "llama3" and not torch.allclose(blended_backward(world), world.frequencies, rtol=0.01, atol=0)
    ),
)
def ramp_backward(world):
    """Between fast and slow pairs, llama3's ramp runs backward: the faster a pair, the more it is slowed. Source:
    ml-explore/mlx-examples/pull/907."""
    return with_frequencies(world, blended_backward(world))


@fresh(
    "both, frequency, slow pairs get (factor*base)^(-2i/d) instead of base^(-2i/d)/factor",
    accept=[
        r"blend|band|interpolat|ramp|exponent|base",
        r"(slow|last|low|scaled|stretched|some|only).{0,30}(pairs|freq)",
    ]
    + [r"pairs? \d+"],
    refuse="that the scaling is missing altogether",
    when=lambda world: world.scaled == "yarn" and (kept(world) < 0.9).any(),
)
def factor_under_the_exponent(world):
    """YaRN's factor multiplies the base, so slow pairs are slowed by different amounts. Source:
    apache/tvm/pull/18576."""
    share = kept(world)
    slow = rope.inv_freq(world.rotary_dim, world.base * world.factor)
    return with_frequencies(world, share * rope.inv_freq(world.rotary_dim, world.base) + (1 - share) * slow)


# --- Precision ---

ROUNDED = [r"({0}).{{0,80}}({1})|({1}).{{0,80}}({0})".format("frequenc|angle|inv_freq|θ", "round|bfloat16|half|precis")]


@fresh(
    "both, precision, frequencies rounded to bfloat16",
    accept=ROUNDED,
    refuse="that positions, or cos and sin, are rounded",
    when=several,
)
def rounded_frequencies(world):
    """Frequencies are rounded to bfloat16 before they are multiplied by positions. Source:
    sgl-project/sglang-jax/issues/1472."""
    return with_frequencies(world, world.frequencies.bfloat16().double())


@fresh(
    "both, precision, angles (position times frequency) rounded to bfloat16",
    accept=ROUNDED,
    refuse="that only positions or only frequencies are rounded, if it rules the angles out",
    when=several,
)
def rounded_angles(world):
    """Position times frequency is rounded to bfloat16. Source: huggingface/transformers/pull/29285."""

    def one(x, places):
        angles = (places[..., None] * world.frequencies).bfloat16().double()
        return rotated(x, angles, world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, precision, angles reduced modulo 6.2832 instead of 2 pi: an error that grows by 1.5e-5 with each turn",
    accept=[r"2 ?π|reduc|precis|drift|round|inexact|inaccura|grow"],
    refuse="another base, or an offset of positions",
    when=lambda world: world.length >= 1024,
    seen=["large"],
)
def short_turn(world):
    """Angles are reduced by a full turn that is a little too long. Source: tenstorrent/tt-metal/issues/51845 (which
    says that a reduction fails for large angles; we assume a rounded constant)."""

    def one(x, places):
        return rotated(
            x, torch.remainder(places[..., None] * world.frequencies, 6.2832), world.layout, world.lengthened
        )

    return by(one)


# --- Length ---


@fresh(
    "both, length, lengthened by the square of the attention factor",
    accept=[r"length|norm|magnitude|longer|squared|attention.?factor|too (long|large)"],
    refuse="that vectors are too short",
    when=lambda world: world.lengthened != 1,
)
def lengthened_twice(world):
    """The attention factor is applied twice. Source: sgl-project/sglang/pull/33558."""
    return with_frequencies(world, world.frequencies, world.lengthened**2)


@fresh(
    "both, length, not lengthened by the attention factor",
    accept=[r"length|norm|magnitude|shorter|attention.?factor|too (short|small)"],
    refuse="that vectors are too long",
    when=lambda world: world.lengthened != 1,
)
def not_lengthened(world):
    """The attention factor has become 1. Source: turboderp-org/exllamav3/issues/259."""
    return with_frequencies(world, world.frequencies, 1.0)


# --- Direction, pairs, and the formula ---


@fresh(
    "both, direction, angles negated",
    accept=[r"direction|opposite|backward|clockwise|revers|sign|negat|inverse|transpos|minus"],
    refuse="that only q or only k turns the other way",
)
def other_direction(world):
    """The rotation matrix is transposed, so every pair turns backward. Source: skyzh/tiny-llm/pull/25."""
    return with_frequencies(world, -world.frequencies)


@fresh(
    "both, pairing, the other layout",
    accept=[r"layout|interleaved|neighbou?r|adjacent|halves|pairing|other pairs|pairs (are|of)"],
    refuse="that frequencies are in another order",
    when=pairs,
)
def other_pairs(world):
    """Pairs are formed according to the other layout. Source: NeuraLegion/shainet/pull/111."""
    layout = "half" if world.layout == "interleaved" else "interleaved"
    return by(lambda x, places: rotated(x, places[..., None] * world.frequencies, layout, world.lengthened))


@fresh(
    "both, pairing, pairs are right, but cos and sin are laid out for the other layout: two angles in a pair",
    accept=[
        r"(two|different|unequal|uneven|not the same).{0,30}(angle|freq|cos)|not a rotation",
        r"(cos|sin|table|angle|freq).{0,80}(layout|laid out|order|arrang|place|interleaved|half)",
    ],
    refuse="that q and k themselves are paired by the other layout",
    when=pairs,
)
def tables_of_the_other_layout(world):
    """Entries are paired correctly, but cos and sin are repeated in the order of the other layout. Source:
    raiyanyahya/how-to-train-your-gpt/issues/6."""
    layout = "half" if world.layout == "interleaved" else "interleaved"

    def crossed(first, second, cos, sin):
        (c1, c2), (s1, s2) = (rope.split(rope.join(table, table, layout), world.layout) for table in (cos, sin))
        return first * c1 - second * s1, second * c2 + first * s2

    return with_turn(world, crossed)


@fresh(
    "both, other, each output has one of its two terms: (-b cos, a sin)",
    accept=[r"not a rotation|length|norm|missing|never add|terms?\b|stretch|cos.{0,40}sin"],
    refuse="that the direction or a position is wrong",
)
def never_added(world):
    """The rotated half is multiplied by cos and sin, and the unrotated half is never added. Source:
    NVIDIA/ngpt/issues/10."""
    return with_turn(world, lambda first, second, cos, sin: (-second * cos, first * sin))


@fresh(
    "both, other, the second entry of a pair is computed from the first one's new value",
    accept=[r"in.?place|overwrit|already (rotated|turned|changed|new)|not a rotation|shear|length|norm|new value"],
    refuse="that a position, a frequency or a layout is wrong",
)
def overwritten(world):
    """The first entry of a pair is overwritten before the second is computed. Source:
    flagos-ai/FlagGems/issues/5142."""

    def turned(first, second, cos, sin):
        new = first * cos - second * sin
        return new, new * sin + second * cos

    return with_turn(world, turned)


# --- Which of q and k ---


def heads_like(other, x):
    """Return ``other`` with as many heads as x: its heads are repeated, or the last ones are left out."""
    return other[:, torch.arange(x.shape[1], device=x.device) % other.shape[1]]


@fresh(
    "q, entries, second entries of the pairs come from k",
    "k, entries, first entries of the pairs come from q",
    accept=[r"mix|cross|swap|exchang|depends? on (the other|k|q)|q.{0,60}(from|of|with) k|k.{0,60}(from|of|with) q"],
    refuse="that q and k are rotated differently, without saying that one gets into the other",
)
def halves_crossed(world):
    """The first half of q's rotation is also stored in k, and the second half of k's in q. Source:
    hpcaitech/ColossalAI/pull/6429."""

    def rotation(q, k, positions):
        places, size, out = places_of(q, k, positions), world.rotary_dim, []
        q, k = alone(q, places, world), alone(k, places, world)
        for x in (q, k):
            first = rope.split(heads_like(q, x)[..., :size], world.layout)[0]
            second = rope.split(heads_like(k, x)[..., :size], world.layout)[1]
            out.append(torch.cat((rope.join(first, second, world.layout), x[..., size:]), -1))
        return tuple(out)

    return rotation


@fresh(
    "q, never, not rotated",
    "k, entries, its rotated entries are q's, rotated twice",
    accept=[
        r"(\bq\b|quer).{0,60}(not|un|never).{0,10}(rotat|turn|chang)|only k",
        r"k.{0,60}(from|of|depends? on|contains|is made of) q|mix|swap|\bk\b.{0,60}twice",
    ],
    refuse="that both are wrong, without either half of it",
)
def key_from_query(world):
    """q stays unrotated, and k is replaced by the query, rotated twice. Source:
    vllm-project/vllm-omni/pull/3828."""

    def rotation(q, k, positions):
        places, size = places_of(q, k, positions), world.rotary_dim
        twice = alone(alone(heads_like(q, k), places, world), places, world)
        return q, torch.cat((twice[..., :size], k[..., size:]), -1)

    return rotation


@fresh(
    "q, position, counted from the first token of the call instead of from where the cache ends",
    accept=[
        r"(\bq\b|quer).{0,100}(start|zero|\b0\b|offset|first|relative|beginning|ignor)",
        r"(start|zero|offset|first|ignor).{0,100}(\bq\b|quer)",
    ],
    refuse="the same of both, or of k",
)
def query_from_zero(world):
    """With a cache, the queries' positions start from 0 in each call, while the keys' positions continue. Source:
    RobertCsordas/moeut/pull/6."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return alone(q, places - places[..., :1], world), alone(k, places, world)

    return rotation


# --- Positions, heads and rows ---


@fresh(
    "both, position, doubled (the same as being rotated twice)",
    accept=[r"twice|doubl|factor (of )?2|× ?2|\b2(\.0*)? ?(times|×)|times 2|two times|too fast|faster"],
    refuse="another base, or an offset",
    when=plain,
)
def doubled_positions(world):
    """Positions are doubled when no scaling is declared. Source: lablup/mlxcel/issues/1324."""
    return with_frequencies(world, 2 * world.frequencies)


@fresh(
    "both, position, one too far if a token comes alone",
    accept=[
        r"(one|single|alone|lone).{0,80}(token|position|call)",
        r"\+ ?1|one (position )?(later|ahead|too far|further)|off by one|next position",
    ],
    refuse="that positions are ignored",
    seen=["one"],
)
def one_too_far_alone(world):
    """If a call has a single token, the token is added to the cache's length before it is rotated. Source:
    fla-org/flash-linear-attention/issues/766."""
    return by(lambda x, places: alone(x, places + (x.shape[2] == 1), world))


@fresh(
    "both, heads, the angle comes from the number of the head; positions are ignored",
    accept=[r"head|wrong axis|other axis|transpos"],
    refuse="that positions are ignored, without the heads or the axis",
)
def along_the_heads(world):
    """The tables are indexed by the head's number instead of the token's position. Source:
    mlfoundations/open_lm/issues/4."""
    return by(lambda x, places: alone(x, torch.arange(x.shape[1]).double()[:, None], world))


@fresh(
    "both, rows, the angle comes from the number of the row in the batch; positions are ignored",
    accept=[r"\brows?\b|batch|wrong axis|other axis|transpos"],
    refuse="that positions are ignored or nothing is rotated, without the rows or the axis",
)
def along_the_batch(world):
    """The tables are indexed by the row's number in the batch instead of the token's position. Source:
    kroggen/tokenformer-minimal/issues/1."""
    return by(lambda x, places: alone(x, torch.arange(x.shape[0]).double()[:, None, None], world))


@fresh(
    "both, rows, zeros in all rows but the first if a token comes alone",
    accept=[r"\brows?\b|batch|zeros?\b"],
    refuse="that a token alone is rotated wrongly, without the rows or the zeros",
    seen=["one"],
)
def zeros_in_other_rows(world):
    """If a call has a single token, only the first row of the batch is written. Source: ml-explore/mlx/issues/3949."""

    def one(x, places):
        out = alone(x, places, world)
        return torch.cat((out[:1], torch.zeros_like(out[1:]))) if x.shape[2] == 1 else out

    return by(one)


@fresh(
    "both, heads, all heads but the first stay unrotated if a token comes alone",
    accept=[r"heads?\b"],
    refuse="that a token alone isn't rotated, without the heads",
    seen=["one"],
)
def other_heads_unrotated(world):
    """If a call has a single token, only the first head is rotated. Source: oxiglade/mlx-rs/pull/357."""

    def one(x, places):
        out = alone(x, places, world)
        return torch.cat((out[:, :1], x[:, 1:]), 1) if x.shape[2] == 1 else out

    return by(one)


@fresh(
    "both, heads, zeros in all heads but the first",
    accept=[r"heads?\b|zeros?\b"],
    refuse="that lengths change, without the heads or the zeros",
)
def zeros_in_other_heads(world):
    """Only the first head is written. Source: paiml/aprender/pull/2079."""

    def one(x, places):
        out = alone(x, places, world)
        return torch.cat((out[:, :1], torch.zeros_like(out[:, 1:])), 1)

    return by(one)


# --- Which entries of a head ---

ENTRIES = r"rotary_dim|partial|entr(y|ies)|part of (the|a) head|whole head|dimensions"


@fresh(
    "both, entries, the whole head is rotated, with the frequencies of the whole head",
    accept=[ENTRIES, r"too many|wider|exponent"],
    refuse="another base, without saying that more entries are rotated or that the exponent is of a wider head",
    when=partial,
)
def whole_head(world):
    """The whole head is rotated though only a part should be. Source: AI-Hypercomputer/maxtext/issues/4616."""

    def one(x, places):
        return rotated(x, places[..., None] * rope.inv_freq(x.shape[-1], world.base), world.layout)

    return by(one)


@fresh(
    "both, entries, only half of the entries that should be are rotated, with the frequencies of that half",
    accept=[ENTRIES, r"too few|fewer|narrower|exponent|only (half|the first|\d+)"],
    refuse="another base, without saying that fewer entries are rotated or that the exponent is of a narrower part",
    when=lambda world: plain(world) and world.rotary_dim % 4 == 0,
)
def half_of_the_part(world):
    """The rotated share is applied twice, so only half of the right entries are rotated. Source:
    vllm-project/vllm/pull/41185."""
    return with_frequencies(world, rope.inv_freq(world.rotary_dim // 2, world.base))


@fresh(
    "both, pairing, entry i is paired with i + dim/2 instead of i + rotary_dim/2",
    "both, frequency, exponent 2i/dim instead of 2i/rotary_dim",
    accept=[ENTRIES, r"pair|wider|exponent|layout"],
    refuse="another base, without the pairs, the entries or the width",
    when=lambda world: partial(world) and world.layout == "half" and pairs(world),
)
def pairs_across_the_head(world):
    """Pairs and frequencies are those of the whole head, and only the first pairs are rotated. Source:
    pie-project/pie/pull/603."""

    def one(x, places):
        theta = rope.inv_freq(x.shape[-1], world.base)
        theta[world.rotary_dim // 2 :] = 0
        return rotated(x, places[..., None] * theta, "half")

    return by(one)


@fresh(
    "both, entries, the last rotary_dim entries of the head instead of the first",
    accept=[ENTRIES, r"\blast\b|wrong (end|part|slice)|end of"],
    refuse="another layout, without saying that other entries are rotated",
    when=lambda world: world.rotary_dim < world.dim,
)
def last_entries(world):
    """The end of each head is rotated instead of its beginning. Source: NVIDIA/Megatron-LM/issues/2733."""

    def one(x, places):
        start = x.shape[-1] - world.rotary_dim
        return rotated(x, places[..., None] * world.frequencies, world.layout, world.lengthened, start)

    return by(one)
