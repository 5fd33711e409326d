"""A third set of mistakes from public reports, gathered by somebody who hasn't seen the diagnosis, to judge it once.

The form is that of the first two sets: each function takes a `World` and gives a wrong rotation f(q, k, positions);
its docstring says what is wrong and where and when that was reported, and `FRESH` adds the truth as facts and what
we'd accept as naming it. Besides "small" and "large" positions and a token that comes alone ("one"), a mistake may
show in "rows" (positions differ between the rows of a batch), in "packed" (positions start again within a row) and
"again" (a later call of the same shape, when the function remembers earlier ones). Positions that are "large" don't
start at 0, and a batch has more than one row wherever "rows" or "one" tells. Lost precision is a mistake where
the vectors themselves are in float32 or wider.

The patterns are generous on purpose: a diagnosis names a mistake if an engineer who reads its text knows where to
look and what is off there, whether the text gives the cause or only describes its effect exactly.

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
    kept,
    pairs,
    partial,
    places_of,
    plain,
    rotated,
    several,
    sound,
    turn,
    with_frequencies,
    with_turn,
)

FRESH = {}
SOUND = {}
fresh = collecting(FRESH)
right = collecting_sound(SOUND)


# --- Words ---


def near(one, other, within=90):
    """A pattern: both occur, in either order, with at most ``within`` characters in between."""
    gap = rf"[\s\S]{{0,{within}}}?"
    return rf"(?:{one}){gap}(?:{other})|(?:{other}){gap}(?:{one})"


def number(value):
    """A pattern: ``value``, unless adjacent digits make it part of another number."""
    return rf"(?<![\d.]){value}(?![\d]|\.\d)"


POSITION = r"position|offset|index|indices|place|token"
FREQUENCY = r"frequenc|inv_freq|theta|θ|exponent|speed|wavelength"
BASE = r"\bbase\b|rope_theta"
ANOTHER = r"another|other than|differs?\b|not the declared|n.t the declared|instead|whatever"
LENGTH = r"length|norm\b|magnitude|longer|attention.factor|mscale|amplitude|vectors?\b"
SHARE = r"rotary_dim|rotated|rotates|turned|share|fraction|width"
PARTIAL = r"partial|rotary_dim|rotary factor|rotary_pct"
PRECISION = (
    r"bfloat16|float16|bf16|fp16|half (type|precision)|16.bit|\brounded|\brounding|coarse"
    r"|(low|lower|lost|little|limited|reduced|lack of|less|loses?|loss of) precision"
    r"|precision (is )?(lost|too|low)"
)
INEXACT = r"slightly|approximat|inexact|small (error|deviation)|coarse|digits|inaccura|not accurate"
ALONE = r"alone|single|one token|decod|seq(uence)?.{0,12}(is )?(1|one)\b|(1|one) position|step"
UNROTATED = (
    r"(not|never|n.t|neither q nor k is) (be(en)? |being |at all )?(rotated|turned)"
    r"(?! (as|to|by|sound|correct|right|like|the way|in the way|with))"
    r"|unrotated|unturned|unchanged|left as (it|they)|stays? as|comes? back as"
)
NO_ROTATION = r"not (a |an )?rotation\b|orthogonal|determinant|singular|length.{0,20}(not kept|n.t kept|depends|vari)"
NOT_FROM_ZERO = near(
    r"position 0|at 0\b",
    r"not (the )?identity|quarter|\b90|(already|is|gets|should not be|not be) (rotated|changed|turned)",
    60,
)
BACKWARDS = (
    r"wrong (sign|direction|way|hand|sense)|revers|invert|invers|negat|opposite|backward|flip|transpos|-θ"
    r"|other (way|direction|hand|sense)"
)


# --- Positions ---


def moved(world, move):
    """Rotate q and k correctly, but by the positions that ``move(x, places)`` returns."""
    return by(lambda x, places: alone(x, move(x, places), world))


def counted(x, places):
    return torch.arange(x.shape[2], dtype=torch.float64).expand(places.shape)


IGNORED = [
    near(
        POSITION, r"ignor|unused|not used|no (effect|influence)|never (used|read)|disregard|don.t matter|play no part"
    ),
    near(
        r"count|start|number|begin|always|from", r"(from|at|with|to) (position )?(0|zero)\b|from the (start|beginning)"
    ),
    r"arange|place in the (call|sequence)|(index|order) (with)?in the (call|sequence|row|input)",
]
SHIFTED = [
    near(POSITION, r"shift|constant (offset|amount|difference)|offset (by|of)|off by|too (large|small|far|high|low)"),
    near(POSITION, r"(ahead|behind|early|late|further|earlier|later)\b"),
    r"off.by.(one|\d)",
]
ROWS = r"\brows?\b|batch"


@fresh(
    "both, position, counted from 0 in each call",
    accept=IGNORED,
    refuse="that positions are wrong or shifted, without saying that those given play no part or that 0 comes first",
    seen=("large", "one", "rows", "packed"),
)
def ids_ignored(world):
    """The positions that are given play no part: each call counts its tokens from 0.

    Source: Megatron-LM, issue 453, "RoPE ignores position IDs", 9 August 2023.
    """
    return moved(world, counted)


@fresh(
    "both, position, counted on from the first one of the row",
    accept=[
        near(
            r"document|pack|restart|start again|reset|boundar|jump",
            r"ignor|run on|continu|count|not (reset|follow)|miss",
        ),
        near(
            r"first (given )?(position|one|token)", r"count|consecutive|arange|\+ ?(1|i|j|arange)|only|on from|offset"
        ),
        near(POSITION, r"consecutive|contiguous|without gaps|one by one|run on|count(s|ed)? on|only the first"),
    ],
    refuse="that positions are ignored or start from 0",
    seen=("packed",),
)
def documents_run_on(world):
    """Only the first position of a row is used, and the others count on from it, across the row's packed documents.

    Source: OLMo-core, pull request 591 (positions reset at document boundaries), 3 February 2026.
    """
    return moved(world, lambda x, places: places[..., :1] + counted(x, places))


@fresh(
    "both, position, one too large for a token that comes alone",
    accept=[
        *SHIFTED,
        near(ALONE, r"\+ ?1\b|by (1|one)\b|one (too|more)|(1|one) position|next position|off"),
        near(POSITION, rf"\+ ?{number(1)}|plus (1|one)"),
    ],
    refuse="that a token alone comes out wrong, without a shift or offset of its position",
    seen=("one",),
)
def counted_too_early(world):
    """A token that is decoded alone is rotated to the next position, because it is counted before it is rotated.

    Source: flash-linear-attention, issue 766 (seen tokens are committed too early during decoding), 4 March 2026.
    """
    return moved(world, lambda x, places: places + 1 if x.shape[2] == 1 else places)


@fresh(
    "both, position, one too small",
    accept=[
        *SHIFTED,
        near(POSITION, r"[-−] ?1\b|minus (1|one)|by (1|one)\b|one too|(position|one) before|previous position"),
    ],
    refuse="that both are wrong at every position, without a constant shift",
)
def step_starts_at_minus_one(world):
    """Every token is rotated to the position before its own, because the step starts at -1.

    Source: CTranslate2, pull request 1572 (wrong offset when a batch is forwarded), 4 December 2023.
    """
    return moved(world, lambda x, places: places - 1)


@fresh(
    "both, position, the start of the call is counted twice",
    accept=[
        near(
            r"first (given )?(position|one|token)|start|beginning|offset",
            r"twice|doubl|added|again|two times|2 ?[x×·*]",
        ),
        near(POSITION, r"shift|too (large|far|high)|ahead|offset (by|of)|offset (that )?(grow|depend|differ|vari)"),
    ],
    refuse="that all positions are doubled, or that positions are ignored",
    seen=("large", "one"),
)
def start_counted_twice(world):
    """A chunk that starts at position s is rotated as if it started at 2s, because the start is added twice.

    Source: mlx-node, pull request 33 (chunked prefill uses wrong offsets after the first chunk), 21 March 2026.
    """
    return moved(world, lambda x, places: places + places[..., :1])


@fresh(
    "both, position, held at 32",
    accept=[
        near(POSITION, r"clamp|clip|cap(ped)?\b|held|limit|saturat|at most|stuck|stop|constant|frozen|min\("),
        near(number(32), r"from|beyond|after|above|past|until|up to|largest|last|maxim|at most"),
        near(r"all|every|large|beyond|differ", r"same (position|angle|rotation|place)"),
    ],
    refuse="that large positions are wrong, without saying that they don't grow any more",
    seen=("large",),
)
def kept_tokens_as_position(world):
    """The position is the number of tokens that a cache of 32 keeps, so it stops growing at 32.

    Source: VeloxQuant-MLX, issue 389 (offset is reset to the number of rows retained), 16 September 2026.
    """
    return moved(world, lambda x, places: places.clamp(max=32))


@fresh(
    "both, position, 24 too small if several tokens come together",
    accept=[
        *SHIFTED,
        near(POSITION, rf"[-−] ?{number(24)}|by {number(24)}|{number(24)} (too|less|behind|position|fewer)"),
    ],
    refuse="that both are wrong at every position, without a constant shift",
)
def evicted_tokens_forgotten(world):
    """If a call has several tokens, their positions are 24 too small, because 24 evicted tokens aren't counted.

    Source: hipfire, pull request 391 (the batched rotation ignores the offset after eviction), 2 June 2026.
    """
    return moved(world, lambda x, places: places - 24 if x.shape[2] > 1 else places)


def separately(of_q, of_k):
    """Make f(q, k, positions) from a function for q and a function for k, which both take (x, places)."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return of_q(q, places), of_k(k, places)

    return rotation


@fresh(
    "q, position, counted from 0 in each call",
    accept=[
        *(rf"(?=[\s\S]*(?:\bq\b|quer))(?:{pattern})" for pattern in IGNORED),
        near(
            r"\bq\b|quer",
            r"position 0|at 0\b|at zero|offset (is )?(miss|lost|ignor|left out)|without (the |its )?offset",
        ),
        near(r"\bq\b|quer", r"differs? from (k|keys?) by|other positions than|not at the positions of (k|the keys)"),
    ],
    refuse="the same of both, or of k alone",
    seen=("large", "one"),
)
def queries_from_zero(world):
    """Queries are rotated as if each call began at position 0, while keys are rotated to their own positions.

    Source: moeut, pull request 6 (the offset of queries is computed before cached keys are joined), 5 April 2026.
    """
    return separately(lambda q, places: alone(q, counted(q, places), world), lambda k, places: alone(k, places, world))


def but_in_later_rows(x, places, other):
    """Return the places of each row (batch, 1, seq): ``places`` in the first row, ``other(places)`` in later rows."""
    wide = places.expand(x.shape[0], 1, x.shape[2])
    return torch.cat((wide[:1], other(wide)[1:]))


@fresh(
    "q, position, the last one of the call for every query of a later row",
    accept=[
        near(
            r"last (position|one|token|given)|largest position|end of the (call|row|sequence)",
            r"all|every|each|same|quer|\bq\b",
        ),
        near(
            r"\bq\b|quer",
            r"(one|same|single) (and the same )?(position|angle|rotation)|constant (position|angle|rotation)",
        ),
        near(ROWS, r"(one|same|single) (position|angle)|broadcast"),
    ],
    refuse="that rows after the first come out wrong, without saying how",
    seen=("rows",),
)
def later_queries_at_the_end(world):
    """In rows after the first, every query is rotated to its row's last position, because one angle is broadcast.

    Source: TransformerEngine, pull request 536 (micro-batched inference with rotary embeddings), 23 November 2023.
    """
    return separately(
        lambda q, places: alone(q, but_in_later_rows(q, places, lambda wide: wide[..., -1:].expand(wide.shape)), world),
        lambda k, places: alone(k, places, world),
    )


@fresh(
    "both, position, counted on from row to row of the batch",
    accept=[
        near(ROWS, r"continu|count(s|ed)? on|run on|carr|accumul|shift|offset|added|ahead|too (large|far|high)"),
        near(ROWS, r"(position|offset).{0,40}(grow|depend|\+|plus|differ by)"),
    ],
    refuse="that rows after the first come out wrong, or that they get the first row's positions",
    seen=("rows",),
)
def rows_run_on(world):
    """Positions count on from row to row of the batch: row b is ahead by b times the number of tokens in a row.

    Source: exllama, pull request 101 (batching led to faulty results), 23 June 2023.
    """

    def move(x, places):
        rows = torch.arange(x.shape[0], dtype=torch.float64)[:, None, None]
        return places + rows * x.shape[2]

    return moved(world, move)


@fresh(
    "both, position, those of the first row in every row",
    accept=[
        near(
            r"first (row|sequence|entry|element)|row 0|batch (row |index |entry )?0|positions\[0\]",
            r"all|every|each|other|share|same",
        ),
        near(ROWS, r"(same|one set of|shared?|common) (the )?position|share|not (its|their) own|ignor"),
    ],
    refuse="that rows come out wrong, without saying that they share positions",
    seen=("rows",),
)
def rows_share_positions(world):
    """All rows of a batch are rotated to the positions of the first row, whatever their own positions are.

    Source: Unsloth, pull request 3803 (positions of left-padded batches in generation), 29 December 2025.
    """
    return moved(world, lambda x, places: places[:1].expand(x.shape[0], 1, x.shape[2]) if places.ndim == 3 else places)


@fresh(
    "both, position, the number of the head instead of the token's position",
    accept=[
        near(r"\bheads?\b", r"index|number|count|axis|dimension|order|instead|position|angle|token"),
        near(r"\b(axis|axes|dimensions?)\b", r"wrong (axis|dimension)|swap|exchang|mix|confus|transpos"),
    ],
    refuse="that heads differ, without the axis or the head's number",
)
def along_the_heads(world):
    """The rotation runs along the axis of heads: head h is at position h, whatever the token's position is.

    Source: open_lm, issue 4 (rotary embedding is applied on the head dimension), 31 August 2023.
    """
    return moved(world, lambda x, places: torch.arange(x.shape[1], dtype=torch.float64)[None, :, None])


@fresh(
    "both, position, the number of the head is added for a token that comes alone",
    accept=[
        near(r"\bheads?\b", r"add|plus|\+|index|number|shift|offset|differ|position|angle|only the first|first head")
    ],
    refuse="that a token alone comes out wrong, without heads",
    seen=("one",),
)
def head_number_added(world):
    """If a call has a single token, each head adds its own number to the token's position, so only head 0 is right.

    Source: emlx, issue 121 (fast rope miscomputes rotations for several heads), 4 July 2026.
    """

    def move(x, places):
        heads = torch.arange(x.shape[1], dtype=torch.float64)[None, :, None]
        return places + heads if x.shape[2] == 1 else places

    return moved(world, move)


@fresh(
    "both, position, doubled",
    accept=[
        near(
            rf"{POSITION}|{FREQUENCY}|angle|fast|scale",
            r"doubl|twice|two times|factor (of )?2\b|2(\.0+)? ?[x×·*]|[x×·*] ?2\b|2(\.0+)? times",
        ),
        near(POSITION, r"(multipl|scal|stretch).{0,30}(2|two)"),
    ],
    refuse="that angles are too large, without a factor",
)
def positions_doubled(world):
    """Every angle is twice what it should be: positions are multiplied by 2 where no scaling is asked for.

    Source: mlx-lm, pull request 1553 (internlm3's position scale is 2.0 by default), 11 July 2026.
    """
    return moved(world, lambda x, places: 2 * places)


@fresh(
    "both, position, divided by 8",
    accept=[
        near(rf"{POSITION}|{FREQUENCY}|angle|slow|scal|interpolat", rf"{number(8)}|{number('0.125')}|1/8|eighth|eight"),
        near(r"linear|position", r"interpolat|squeez|compress|scaling"),
    ],
    refuse="that frequencies are wrong, without a common factor and without the name of the scaling",
    when=plain,
)
def squeezed_without_being_asked(world):
    """Positions are divided by 8, a linear scaling meant for other layers, though this layer is declared unscaled.

    Source: ferrox, issue 39 (Gemma 3's sliding-window layers get the linear scaling too), 2 September 2026.
    """
    return moved(world, lambda x, places: places / 8)


@fresh(
    "both, value, zeros from position 64 on",
    accept=[
        near(r"zeros?\b|vanish|empty|all 0\b", r"large|beyond|past|after|from \d|end|table|cache|above"),
        near(r"table|cache", r"\bends?\b|too short|too small|beyond|past|covers? only|only covers?"),
        near(number(64), r"from|beyond|after|above|past|until|up to|largest|last|end"),
    ],
    refuse="that large positions are wrong, without zeros, a bound or the table's end",
    seen=("large",),
)
def table_too_short(world):
    """The table of cosines and sines ends at position 64, and what is read past its end is zero, so vectors vanish.

    Source: pegainfer, issue 220 (the cache covers 4096 positions but 40960 tokens are admitted), 4 June 2026.
    """

    def one(x, places):
        inner = alone(x, places, world)
        beyond = (places >= 64)[..., None]
        zeroed = torch.where(beyond, torch.zeros_like(inner), inner)
        return torch.cat((zeroed[..., : world.rotary_dim], inner[..., world.rotary_dim :]), -1)

    return by(one)


@fresh(
    "both, position, those of an earlier call of the same shape",
    accept=[
        near(r"cach|remember|earlier|previous|stale|state|between|repeated|second", r"\bcalls?\b"),
        near(r"cach", r"\bkey|stale|\bold\b|by (the )?(length|shape)|reus"),
        r"not (deterministic|reproducible|repeatable)|different (result|output)s? (for|from) the same",
    ],
    refuse="that positions are wrong, without an earlier call or a cache",
    seen=("again",),
)
def cached_by_length(world):
    """Angles are cached by the call's length alone, so a later call of that length gets an earlier call's positions.

    Source: rotary-embedding-torch, issue 11 (the offset isn't part of the cache's key), 8 August 2023.
    """
    cache = {}

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        places = cache.setdefault(tuple(places.shape), places.clone())
        return alone(q, places, world), alone(k, places, world)

    return rotation


# --- Rows and heads ---


@fresh(
    "both, share, only the first head of the first row for a token that comes alone",
    accept=[
        near(r"\bheads?\b|\brows?\b|batch|matri", rf"{UNROTATED}|only the first|only rotat|rotated only|first one"),
        near(ALONE, UNROTATED),
    ],
    refuse="that a token alone comes out wrong, without heads, rows or vectors left as they are",
    seen=("one",),
)
def only_the_first_matrix(world):
    """If a call has a single token, only the first head of the first row is rotated, and all other heads are unchanged.

    Source: mlx-rs, issue 359 (values are corrupted for sequences of length 1), 28 July 2026.
    """

    def one(x, places):
        right = alone(x, places, world)
        if x.shape[2] > 1:
            return right
        wrong = x.clone()
        wrong[:1, :1] = right[:1, :1]
        return wrong

    return by(one)


@fresh(
    "both, value, zeros in rows after the first for a token that comes alone",
    accept=[
        near(ROWS, r"zeros?\b|vanish|empty|not written|unwritten|only the first (row|one)|garbage|uninitiali"),
        near(r"zeros?\b|vanish|empty|not written", r"alone|single|one token|decod"),
    ],
    refuse="that a token alone comes out wrong, without rows or zeros",
    seen=("one",),
)
def later_rows_empty(world):
    """If a call has a single token, only the first row of the batch is written, and the other rows are zero.

    Source: MLX, issue 3949 (fast rope writes only the first batch row when the sequence length is 1), 30 July 2026.
    """

    def one(x, places):
        right = alone(x, places, world)
        if x.shape[2] > 1:
            return right
        return torch.cat((right[:1], torch.zeros_like(right[1:])))

    return by(one)


# --- Base and frequencies ---


def apart(world, theta, least=1e-3):
    """Whether these frequencies differ enough from the declared ones to be noticed within a few positions."""
    return bool((theta - world.frequencies).abs().max() >= least)


def ladder(world, base=None):
    return rope.inv_freq(world.rotary_dim, world.base if base is None else base)


def exponents(world):
    """2i/d, from 0 upwards."""
    return torch.arange(0, world.rotary_dim, 2, dtype=torch.float64) / world.rotary_dim


def hard_coded(world):
    return ladder(world, 10000.0)


@fresh(
    "both, base, 10000",
    accept=[near(BASE, rf"10[ ,]?000(?!\d)|1e\+?0?4\b|10\^4|hard.coded|default|{ANOTHER}")],
    refuse="that frequencies are wrong, without the base",
    when=lambda world: plain(world) and pairs(world) and apart(world, hard_coded(world)),
)
def base_hard_coded(world):
    """The base is 10000, hard-coded, whatever base is declared.

    Source: candle, pull request 3746 (Yi ignores rope_theta), 16 July 2026.
    """
    return with_frequencies(world, hard_coded(world))


@fresh(
    "both, frequency, 1 for all pairs",
    accept=[
        near(
            r"all|every|each|same|equal",
            r"frequenc.{0,60}(same|equal|1\b|one)|same (frequenc|speed)|equal (frequenc|speed)",
        ),
        near(
            FREQUENCY,
            r"same|equal|identical|all (are )?(1|one)\b|no (decay|ladder)|integer|don.t (fall|decrease|differ)",
        ),
        near(r"exponent", r"\b0\b|zero|integer"),
        near(BASE, r"(is|of|=|were|equal to|looks like|seems) ?(1|one)\b(?!\d)"),
    ],
    refuse="that frequencies or the base are wrong, without saying that all pairs have one frequency",
    when=lambda world: plain(world) and pairs(world),
)
def exponent_divided_as_integers(world):
    """All pairs are rotated with frequency 1, because the exponent is divided as an integer and comes out as 0.

    Source: LeetCUDA, issue 289 (fixed in pull request 290), 15 April 2025.
    """
    return with_frequencies(world, torch.ones_like(world.frequencies))


@fresh(
    "both, frequency, grow with the pair's number instead of falling",
    accept=[
        near(
            rf"exponent|power|{FREQUENCY}",
            r"\bsign|positive|minus|negative|invert|inverse|reciprocal|grow|increas|rising",
        ),
        near(BASE, r"(less|smaller|below) than (1|one)|1/|reciprocal|invert|inverse"),
        near(r"divi", r"multipl"),
    ],
    refuse="that frequencies are wrong or too large, without saying that they grow or are the reciprocals",
    when=lambda world: plain(world) and pairs(world),
)
def exponent_without_its_minus(world):
    """Frequencies grow from pair to pair instead of falling: the exponent of the base has lost its minus sign.

    Source: labml's annotated implementations, issue 313 (missing negative sign on the exponent), 10 September 2026.
    """
    return with_frequencies(world, 1 / ladder(world))


@fresh(
    "both, frequency, each pair has that of the pair before",
    accept=[
        near(
            rf"{FREQUENCY}|exponent|pair",
            r"shift|off.by.one|by one (pair|step|place)|i ?[-−] ?1\b"
            r"|(of|by|from|to) the (pair before|previous|next|neighbour)",
        ),
        near(rf"{FREQUENCY}|exponent|index", r"starts? (at|from|with) (1|one)\b"),
        near(
            rf"{FREQUENCY}|angle",
            r"(common|constant|same|one) factor|(all|every|each).{0,30}(multiplied|times|too (large|high))",
        ),
        near(r"first (pair|frequency)", r"not 1|instead of 1|larger than 1|above 1|should be 1"),
    ],
    refuse="that frequencies are wrong, without a shift by a pair or a common factor",
    when=plain,
)
def index_from_minus_one(world):
    """Each pair is rotated with the frequency of the pair before it: the exponent is -2(i-1)/d, though i starts at 0.

    Source: llama-from-scratch, issue 8, "get_rotary_matrix", 14 May 2024.
    """
    return with_frequencies(world, ladder(world) * world.base ** (2 / world.rotary_dim))


@fresh(
    "both, frequency, exponents are half of what they should be",
    accept=[
        near(r"exponent|power", r"half|halv|twice|doubl|\bi/d\b"),
        near(BASE, rf"square root|sqrt|√|too (small|low)|smaller|{ANOTHER}|\d{{2,}}"),
    ],
    refuse="that frequencies are wrong, without the exponent or the base",
    when=lambda world: plain(world) and pairs(world) and apart(world, ladder(world) ** 0.5),
)
def exponents_halved(world):
    """Frequencies are base^(-i/d) instead of base^(-2i/d), as if the base were its square root.

    Source: LLMs-from-scratch, issue 410 (the change proposed for inv_freq), 23 October 2024.
    """
    return with_frequencies(world, ladder(world) ** 0.5)


def ntk(world):
    return ladder(world, world.base * 3 ** (world.rotary_dim / (world.rotary_dim - 2)))


@fresh(
    "both, base, enlarged by NTK scaling within the length",
    accept=[
        r"\bntk\b|dynamic",
        near(BASE, rf"too (large|high|big)|larger|enlarg|increas|multipl|times|{ANOTHER}"),
    ],
    refuse="that frequencies are wrong, without the base or the scaling",
    when=lambda world: plain(world) and pairs(world) and apart(world, ntk(world)),
)
def ntk_at_every_length(world):
    """The base is enlarged by 3^(d/(d-2)) even within the trained length: dynamic NTK scaling ignores the length.

    Source: vLLM, issue 41236, "Dynamic NTK RoPE scaling is wrong", 29 April 2026.
    """
    return with_frequencies(world, ntk(world))


def long_list(world):
    """Factors as in a long list of LongRoPE: from 1.08 to 64.8."""
    return torch.logspace(math.log10(1.08), math.log10(64.8), world.rotary_dim // 2, dtype=torch.float64)


@fresh(
    "both, frequency, each divided by its own factor from 1.08 to 64.8",
    accept=[
        r"longrope|long.?(factor|list)|short.?factor",
        near(
            FREQUENCY, r"too (small|low|slow)|(lower|smaller) than|slower|divided by (its|their|an?|factors?|some|\d)"
        ),
        near(r"pair", r"own factor|different factor|factor.{0,30}(grow|rises|rising|increas|vari|differ)"),
    ],
    refuse="that frequencies are wrong, without saying that they're too low or divided",
    when=lambda world: plain(world) and pairs(world),
)
def long_factors_in_short_texts(world):
    """In short texts, each frequency is divided by its own factor from LongRoPE's list for long texts, 1.08 to 64.8.

    Source: llama.cpp, issue 24823 (short sequences use the long factors), 19 June 2026.
    """
    return with_frequencies(world, world.frequencies / long_list(world))


@fresh(
    "both, frequency, not scaled",
    accept=[
        near(
            r"scaling|scaled",
            r"ignor|n.t applied|not applied|missing|lost|left out|absent|dropped|never|without|no effect|is not",
        ),
        near(FREQUENCY, r"unscaled|plain|original|not scaled|without scal|too (large|high|fast)|base alone"),
    ],
    refuse="that frequencies are wrong, without the scaling",
    when=lambda world: not plain(world) and apart(world, ladder(world)),
)
def scaling_computed_but_not_returned(world):
    """The declared scaling isn't applied: scaled frequencies are computed, but those of the base alone are used.

    Source: Transformers, pull request 32330 (incorrect inv_freq assignment for Llama 3.1), 30 July 2024.
    """
    return with_frequencies(world, ladder(world))


def mended(world, keep):
    """Return frequencies that keep the share ``keep`` of the unscaled ones and divide the rest by the factor."""
    return ladder(world) * (keep + (1 - keep) / world.factor)


def middle(world):
    keep = kept(world)
    return torch.where((keep > 1e-6) & (keep < 1 - 1e-6), 1 - keep, keep)


@fresh(
    "both, frequency, the blend of the middle band is reversed",
    accept=[
        near(
            r"middle|medium|\bmid\b|mid.band|between|transition|blend|smooth|ramp",
            r"revers|invert|wrong|other way|swap|flip|mirror|exchang|differ|1 ?[-−]",
        ),
        near(r"pairs? \d+|some pairs|pairs between|middle pairs", r"frequenc|too (fast|slow|high|low|large|small)"),
    ],
    refuse="that frequencies are wrong or that the scaling isn't applied",
    when=lambda world: not plain(world) and several(world) and apart(world, mended(world, middle(world)), 1e-4),
)
def blend_reversed(world):
    """In the middle band, where frequencies blend from kept to divided, the blend runs the wrong way round.

    Source: mlx-examples, pull request 907 (reviewed code for Llama 3.1's frequencies), 23 July 2024.
    """
    return with_frequencies(world, mended(world, middle(world)))


def exchanged(world):
    """Whether some frequencies are kept and some divided, so that exchanging them makes a difference."""
    if plain(world):
        return False
    keep = kept(world)
    return bool((keep > 0.99).any()) and bool((keep < 0.01).any())


@fresh(
    "both, frequency, the fast ones are divided and the slow ones kept",
    accept=[
        near(
            r"beta|bound|ramp|\bfast|\bslow|\bhigh\b|\blow\b|\bkept\b|\bkeeps?\b|\bband",
            r"swap|exchang|revers|invert|other way|flip|wrong way|opposite",
        ),
        near(r"\bfast|\bhigh\b|\bfirst\b|short", r"divid|\bscaled|too (slow|small|low)|slowed"),
        near(r"\bslow\b|\blow\b|\blast\b|long", r"\bkept|not divided|unscaled|not scaled|too (fast|large|high)"),
    ],
    refuse="that frequencies are wrong or that the scaling isn't applied",
    when=exchanged,
)
def fast_and_slow_exchanged(world):
    """Fast frequencies are divided by the factor and slow ones kept, because beta_fast and beta_slow are exchanged.

    Source: torchtitan, pull request 3787 (two computations of YaRN with opposite bounds), 1 July 2026.
    """
    return with_frequencies(world, mended(world, 1 - kept(world)))


def factor_in_base(world):
    keep = kept(world)
    return ladder(world) * keep + ladder(world, world.base * world.factor) * (1 - keep)


@fresh(
    "both, frequency, the factor multiplies the base instead of dividing the frequencies",
    accept=[
        near(r"factor|scal", rf"{BASE}|exponent|\bpower"),
        near(BASE, rf"too (large|high|big)|larger|enlarg|multipl|{ANOTHER}"),
        near(r"ntk", r"instead|scal|like|base"),
        near(FREQUENCY, r"(divided|scaled).{0,60}(uneven|not uniform|different|less|too little|by pair|not all)"),
    ],
    refuse="that frequencies are wrong, without how the factor enters",
    when=lambda world: not plain(world) and pairs(world) and apart(world, factor_in_base(world), 1e-4),
)
def factor_inside_the_power(world):
    """The factor multiplies the base inside the power instead of dividing the frequencies: pairs are scaled unevenly.

    Source: Apache TVM, pull request 18576 (correct YaRN's frequency formula), 10 December 2025.
    """
    return with_frequencies(world, factor_in_base(world))


# --- Precision ---


def rounded(x, dtype):
    return x.to(dtype).double()


def in_bfloat16(world):
    return rounded(world.frequencies, torch.bfloat16)


@fresh(
    "both, frequency, rounded to bfloat16",
    accept=[
        PRECISION,
        near(FREQUENCY, r"slightly|a little|\d ?%|per ?cent|small (relative )?(error|deviation)|relative"),
    ],
    refuse="that frequencies are wrong, without precision or how little it is",
    when=lambda world: pairs(world) and apart(world, in_bfloat16(world), 5e-5),
    seen=("large",),
)
def frequencies_rounded(world):
    """Frequencies are rounded to bfloat16 before they're multiplied by positions, which stay exact.

    Source: sglang-jax, issue 1472 (inverse frequencies are quantized before the phase is computed), 22 July 2026.
    """
    return with_frequencies(world, in_bfloat16(world))


def with_angles(world, angles):
    """Both are rotated by ``angles(places)`` and lengthened as declared."""
    return by(lambda x, places: rotated(x, angles(places), world.layout, world.lengthened))


@fresh(
    "both, position, rounded to bfloat16, and so are frequencies and angles",
    accept=[
        PRECISION,
        near(POSITION, r"collid|coincide|same angle|not told apart|steps? of|neighbo.{0,30}same|indistinguish"),
    ],
    refuse="that large positions are wrong, without precision or rounding",
    seen=("large",),
)
def table_in_bfloat16(world):
    """Positions, frequencies and angles are all in bfloat16, so that positions from 256 on are rounded.

    Source: candle, pull request 3520 (qwen2's tables are built in bfloat16), 7 May 2026.
    """
    narrow = torch.bfloat16

    def angles(places):
        return rounded(rounded(places, narrow)[..., None] * in_bfloat16(world), narrow)

    return with_angles(world, angles)


@fresh(
    "both, angle, rounded to float16",
    accept=[PRECISION, near(r"angle|phase", r"error.{0,40}(grow|increas|proportional)|slightly|approximat|inexact")],
    refuse="that large positions are wrong, without precision or rounding",
    when=pairs,
    seen=("large",),
)
def angles_in_float16(world):
    """Angles, the products of position and frequency, are computed in float16, which is too coarse for large ones.

    Source: cactus, pull request 688 (long-context fixes), 4 June 2026.
    """
    narrow = torch.float16

    def angles(places):
        product = rounded(places, narrow)[..., None] * rounded(world.frequencies, narrow)
        return rounded(product, narrow)

    return with_angles(world, angles)


@fresh(
    "both, value, cosines and sines are rounded to bfloat16",
    accept=[PRECISION, near(r"cos|sin|table|value|result|output", INEXACT)],
    refuse="that values are wrong, without precision or how little it is",
)
def table_stored_in_bfloat16(world):
    """Cosines and sines are stored in bfloat16, which leaves them two or three digits.

    Source: modded-nanogpt, issue 39 (precision errors with bfloat16), 29 November 2024.
    """
    narrow = torch.bfloat16
    return with_turn(
        world, lambda first, second, cos, sin: turn(first, second, rounded(cos, narrow), rounded(sin, narrow))
    )


@fresh(
    "both, value, products are rounded to float16",
    accept=[PRECISION, near(r"value|result|output|product|comput", INEXACT)],
    refuse="that values are wrong, without precision or how little it is",
)
def turned_in_float16(world):
    """Products and sums of the rotation are computed in float16, though the vectors are wider.

    Source: MLC-LLM, pull request 2449 (use float32 for the calculation), 28 May 2024.
    """

    def narrow(first, second, cos, sin):
        first, second, cos, sin = (part.half() for part in (first, second, cos, sin))
        return tuple(part.double() for part in turn(first, second, cos, sin))

    return with_turn(world, narrow)


@fresh(
    "both, angle, reduced by 6.283 instead of 2 pi per turn",
    accept=[
        PRECISION,
        r"range reduction|reduc(ed|es|ing) (angle|by|modulo|mod)|fast.?(math|sin)|6\.28|inexact (sin|cos|for)",
        near(r"error|deviation|phase", r"grow|increas|proportional|accumul|drift|large angle"),
        near(r"sin|cos|angle|phase", INEXACT),
        near(FREQUENCY, r"slightly|a little|by 0\.0|relative|\d ?%"),
    ],
    refuse="that large positions are wrong, without precision or a drift",
    when=lambda world: bool(world.frequencies.max() > 0.5),
    seen=("large",),
)
def sine_of_large_angles(world):
    """Cosine and sine are inexact for large angles: each turn is subtracted as 6.283, so the error grows with position.

    Source: mlxcel, pull request 1055 (the fused kernel's fast sine and cosine), 6 August 2026.
    """

    def angles(places):
        angle = places[..., None] * world.frequencies
        return angle - torch.floor(angle / (2 * math.pi)) * 6.283

    return with_angles(world, angles)


# --- Pairs ---

LAYOUTS = [
    near(r"layout|pairing|convention", rf"wrong|\bother|swap|exchang|mix|mismatch|confus|expected|{ANOTHER}"),
    near(r"interleav|neighbo|adjacent|even and odd", r"halves|\bhalf\b|rotate_half|neox|d/2"),
    near(
        r"partner|paired|pairs?\b",
        r"\(?0, ?1\)?|i \+ |(other|wrong) entr|not (its|their) (own|partner)|half a head|across",
    ),
]
MIXED_TABLE = [
    near(
        r"cos|sin|table|frequenc|angle",
        r"repeat|tiled?\b|interleav|layout|arrang|mismatch|don.t match|not match|belong",
    ),
    near(r"pairs?\b|partner", r"(different|two|own|unequal|unlike) (angle|frequenc|cos|sin|speed)"),
]


def interleaved(world):
    return world.layout == "interleaved" and pairs(world)


def halved(world):
    return world.layout == "half" and pairs(world)


def in_layout(world, layout):
    return by(lambda x, places: rotated(x, places[..., None] * world.frequencies, layout, world.lengthened))


@fresh(
    "both, layout, halves instead of interleaved",
    accept=LAYOUTS,
    refuse="that entries or frequencies come out wrong, without pairs or the layout",
    when=interleaved,
)
def halves_for_neighbours(world):
    """Entries i and i + d/2 form the pairs, though the declared layout pairs neighbours.

    Source: TransformerLens, pull request 365 (wrong rotary embedding in GPT-J), 30 July 2023.
    """
    return in_layout(world, "half")


@fresh(
    "both, layout, interleaved instead of halves",
    accept=LAYOUTS,
    refuse="that entries or frequencies come out wrong, without pairs or the layout",
    when=halved,
)
def neighbours_for_halves(world):
    """Neighbours form the pairs, though the declared layout pairs entries i and i + d/2.

    Source: shainet, pull request 111 (half-split convention), 10 June 2026.
    """
    return in_layout(world, "interleaved")


def full_width(world, one):
    """Rotate q and k by ``one(inner, angles)``. ``inner`` contains the entries that rotate, in float64, and
    ``angles`` the angles of their pairs."""

    def apply(x, places):
        inner, outer = x[..., : world.rotary_dim].double(), x[..., world.rotary_dim :]
        angles = places[..., None] * world.frequencies
        return torch.cat(((one(inner, angles) * world.lengthened).to(x.dtype), outer), -1)

    return by(apply)


def crossed(x, layout):
    """Swap the two entries of each pair, and then negate the new first entry."""
    first, second = rope.split(x, layout)
    return rope.join(-second, first, layout)


@fresh(
    "both, frequency, neighbouring entries share one though pairs are halves",
    accept=[*MIXED_TABLE, *LAYOUTS],
    refuse="that frequencies are wrong, without the table's order or the pairs",
    when=halved,
)
def table_of_neighbours(world):
    """The layout is half-split, but the table repeats each frequency for two neighbours, so a pair gets two angles.

    Source: how-to-train-your-gpt, issue 6 (rotate_half and the table disagree), 15 June 2026.
    """

    def one(x, angles):
        wide = angles.repeat_interleave(2, -1)
        return x * wide.cos() + crossed(x, "half") * wide.sin()

    return full_width(world, one)


@fresh(
    "both, frequency, the two halves share them though pairs are neighbours",
    accept=[*MIXED_TABLE, *LAYOUTS],
    refuse="that frequencies are wrong, without the table's order or the pairs",
    when=interleaved,
)
def table_of_halves(world):
    """Pairs are neighbours, but the table lists all frequencies and then repeats the list, so a pair gets two angles.

    Source: ark-nlp, issue 47 (details of the rotation), 7 April 2022.
    """

    def one(x, angles):
        wide = torch.cat((angles, angles), -1)
        return x * wide.cos() + crossed(x, "interleaved") * wide.sin()

    return full_width(world, one)


@fresh(
    "both, layout, the crossed entries are put in halves and the others stay in place",
    accept=[
        *MIXED_TABLE,
        *LAYOUTS,
        near(r"partner|other entry|sine term", r"wrong|another|isn.t|not its|elsewhere|misplac"),
    ],
    refuse="that frequencies are wrong, without the table's order, the pairs or the partner",
    when=interleaved,
)
def partners_misplaced(world):
    """Pairs are neighbours, but the entries that the sine multiplies are in halves, so they aren't the partners.

    Source: bert4torch, issue 1 (details of the rotation), 7 April 2022.
    """

    def one(x, angles):
        wide = torch.cat((angles, angles), -1)
        first, second = rope.split(x, "interleaved")
        return x * wide.cos() + torch.cat((-second, first), -1) * wide.sin()

    return full_width(world, one)


@fresh(
    "both, value, cosines and sines are joined and read as pairs",
    accept=[
        near(
            r"cos", r"sin.{0,80}(mix|swap|exchang|order|layout|read|joined|arrang|mismatch|belong|wrong (place|order))"
        ),
        near(NO_ROTATION, r"pair|cos|sin|table"),
        near(r"table|cache", r"order|layout|reshap|arrang|mismatch|read as"),
        NOT_FROM_ZERO,
    ],
    refuse="that the result is wrong, without the table, the length, the angle or position 0",
    when=pairs,
)
def table_read_as_pairs(world):
    """The table holds all cosines and then all sines, but is read as pairs of a cosine and a sine.

    Source: torchtune, issue 2904 (cosines and sines joined before the view as pairs), 5 August 2025.
    """

    def one(x, angles):
        cos, sin = torch.cat((angles.cos(), angles.sin()), -1).unflatten(-1, (-1, 2)).unbind(-1)
        return rope.join(*turn(*rope.split(x, world.layout), cos, sin), world.layout)

    return full_width(world, one)


@fresh(
    "both, value, products with cosine and sine are never added",
    accept=[
        near(r"\badd(ed|s|ing)?\b|\bsums?\b|\bterms?\b|product", r"never|not|miss|only|without|lost|left out|absent"),
        near(NO_ROTATION, r"pair|cos|sin|entries|entry"),
        near(r"cos|sin", r"missing|only (a|one|the other|times)|alone|never|each entry|wrong (entry|place)|lost"),
        NOT_FROM_ZERO,
    ],
    refuse="that the result is wrong, without the missing terms, the length or position 0",
)
def products_never_added(world):
    """Each entry is replaced by its partner times a cosine or sine from a mixed table, and products are never added.

    Source: nGPT, issue 10, "Bug in RoPE", 5 March 2025.
    """

    def one(x, angles):
        sin, cos = torch.stack((angles.sin(), angles.cos()), -1).flatten(-2).chunk(2, -1)
        first, second = rope.split(x, world.layout)
        return rope.join(-second * cos, first * sin, world.layout)

    return full_width(world, one)


@fresh(
    "both, value, the second entry of a pair is computed from the first one's result",
    accept=[
        near(
            r"second|other (entry|one)|\bone entry",
            r"overwrit|already|updated|rotated first|first one.s result|sequential",
        ),
        r"in.place|overwrit|alias|\brace\b|shear",
        near(NO_ROTATION, r"pair|entries|entry|second|cos|sin"),
        near(r"sin", r"second.{0,60}(cos|extra|term)|sin²|sin\^2|squared"),
    ],
    refuse="that the result is wrong, without the second entries, the length or the missing rotation",
)
def second_from_new_first(world):
    """The second entry of each pair is computed from the first one's result instead of its input: written in place.

    Source: FlagGems, issue 5142 (hazard in the in-place rotary embedding), 3 August 2026.
    """

    def in_place(first, second, cos, sin):
        first = first * cos - second * sin
        return first, first * sin + second * cos

    return with_turn(world, in_place)


@fresh(
    "both, hand, reversed",
    accept=[
        near(r"\bsign\b|direction|\bhand|sense|clockwise|\bsin|angle|rotat", BACKWARDS),
    ],
    refuse="that angles are wrong, without the direction or the sign",
)
def sine_subtracted(world):
    """The rotation runs backwards: the term with the sine has the wrong sign.

    Source: lalamo, pull request 268, "Restore RoPE sine term sign", 21 May 2026.
    """
    return with_turn(world, lambda first, second, cos, sin: turn(first, second, cos, -sin))


@fresh(
    "both, phase, cosine and sine are exchanged",
    accept=[
        near(r"cos", r"sin.{0,80}(swap|exchang|interchang|mixed up|switch)|(swap|exchang|interchang|switch).{0,60}sin"),
        near(r"phase|angle|quarter|shift|offset|turn", r"\b90|π ?/ ?2|pi ?/ ?2|quarter|1\.57|right angle"),
        NOT_FROM_ZERO,
    ],
    refuse="that angles are wrong or the direction is reversed",
)
def cosine_and_sine_exchanged(world):
    """Cosine and sine are exchanged, so that position 0 is already rotated by a quarter turn.

    Source: LLMs-from-scratch, pull request 381, "Cos-sin fix in Llama 2 bonus notebook", 3 October 2024.
    """
    return with_turn(world, lambda first, second, cos, sin: turn(first, second, sin, cos))


# --- The share that rotates ---


@fresh(
    "both, share, the whole head",
    accept=[
        near(
            SHARE,
            r"whole head|all (entries|dimensions|of the head|\d+)|too (many|much|wide)"
            r"|full (head|width|dim)|more than|entire",
        ),
        near(PARTIAL, r"ignor|not (used|applied|respect)|lost|wrong|differ|unused"),
        near(r"(should|must) (stay|be left|pass|not)", r"entries|dimension|rotat|chang|tail|rest"),
    ],
    refuse="that frequencies or pairs are wrong, without how much of the head rotates",
    when=partial,
)
def whole_head(world):
    """The whole head is rotated, though only its first part should be.

    Source: MaxText, pull request 4615 (partial_rotary_factor on the MRoPE path), 26 July 2026.
    """
    theta = rope.inv_freq(world.dim, world.base)
    return by(lambda x, places: rotated(x, places[..., None] * theta, world.layout, world.lengthened))


def divides(world):
    return plain(world) and several(world) and world.rotary_dim % 4 == 0


@fresh(
    "both, share, half of what is declared",
    accept=[
        near(
            r"rotat|turn|rotary_dim|share|width",
            r"only (half|the first|\d+|a part|part)|too (few|little|narrow)|fewer|half (of )?(the|what|as)",
        ),
        near(r"entries|pairs|dimensions|\brest\b|from \d+", UNROTATED),
        near(PARTIAL, r"twice|wrong|differ|halv|half|too"),
    ],
    refuse="that frequencies or pairs are wrong, without how much of the head rotates",
    when=divides,
)
def share_taken_twice(world):
    """The rotated share is applied twice, so only half of the right entries are rotated.

    Source: vLLM, pull request 41185 (rotate all of qk_rope_head_dim in BailingMoeV2.5), 29 April 2026.
    """
    theta = rope.inv_freq(world.rotary_dim // 2, world.base)
    return by(lambda x, places: rotated(x, places[..., None] * theta, world.layout, world.lengthened))


@fresh(
    "both, layout, partners half a head apart, with frequencies of the head's width",
    accept=[
        near(
            r"pair|partner|layout",
            r"half a head|\bhead|whole width|full width|across|apart|other entries|not the declared",
        ),
        near(r"frequenc|exponent|denominator", r"\bhead|\bdim\b|full width|whole width|instead of rotary"),
        near(SHARE, r"wrong entries|other entries|outside|not the (first|declared)"),
    ],
    refuse="that the result is wrong, without pairs, frequencies or which entries rotate",
    when=lambda world: partial(world) and halved(world),
)
def width_of_the_head(world):
    """Partners are half a head apart, and exponents are divided by the head's width, not by the rotated width.

    Source: pie, issue 602 (rope_partial uses head_dim instead of rotary_dim), 16 September 2026.
    """
    count = world.rotary_dim // 2
    theta = rope.inv_freq(world.dim, world.base).clone()
    theta[count:] = 0
    return by(lambda x, places: rotated(x, places[..., None] * theta, "half", world.lengthened))


@fresh(
    "both, share, none",
    accept=[UNROTATED, r"identity|does nothing|no rotation|no effect"],
    refuse="that frequencies are wrong or too low",
)
def never_rotated(world):
    """Neither q nor k is rotated at all: both come back as they are.

    Source: waste, pull request 27 (apply rotary to the rope dimensions of MLA), 5 August 2026.
    """
    return by(lambda x, places: x.clone())


# --- Queries and keys ---


def like(x, other):
    """Return x with as many heads as ``other``: the first heads of x, or all of them with repetitions."""
    count = other.shape[1]
    wide = x.repeat_interleave(-(-count // x.shape[1]), 1) if x.shape[1] < count else x
    return wide[:, :count]


@fresh(
    "q, share, none",
    "k, value, made of q instead of k and rotated twice",
    accept=[
        near(
            r"\bk\b|\bkeys?\b",
            r"(from|made of|depends? on|contains?|carr(y|ies)|copy|copied|replaced|overwritten|is|are)"
            r" .{0,12}(\bq\b|quer)",
        ),
        near(r"\bk\b|\bkeys?\b", r"rotated (twice|two times|doubl)|twice (rotated|its|the)|double"),
        near(r"\bq\b|quer", UNROTATED),
        near(r"\bq\b|quer", r"(\bk\b|keys?\b).{0,60}(mix|swap|exchang|cross|confus|leak)"),
    ],
    refuse="that both are wrong, without q left as it is or k that depends on q",
)
def keys_from_queries(world):
    """Queries aren't rotated, and keys are lost: what comes back as k is q, rotated twice.

    Source: vllm-omni, pull request 3828 (query loss and double rotation in HiDreamAttention), 23 May 2026.
    """

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        return q.clone(), like(alone(alone(q, places, world), places, world), k)

    return rotation


@fresh(
    "q, value, its second halves are those of k",
    "k, value, its first halves are those of q",
    accept=[
        near(
            r"\bq\b|quer",
            r"(\bk\b|key)[\s\S]{0,60}?(mix|swap|exchang|cross|depend|confus|leak|contain|come|taken|made|comput|from|influenc)",
        ),
        near(
            r"\bq\b|quer",
            r"(mix|swap|exchang|cross|depend|confus|leak|contain|come|taken|made|comput|from|influenc)[\s\S]{0,60}?(\bk\b|key)",
        ),
    ],
    refuse="that both are wrong, without saying that q and k get into each other",
)
def halves_crossed(world):
    """The second entries of q's pairs are computed from k, and the first entries of k's pairs from q.

    Source: ColossalAI, issue 6428 (crossed halves in the fused rotary kernel), with pull request 6429 of 20 July 2026.
    """

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        right_q, right_k = alone(q, places, world), alone(k, places, world)
        inner = slice(0, world.rotary_dim)

        def mixed(first, second):
            parts = (
                rope.split(first[..., inner], world.layout)[0],
                rope.split(second[..., inner], world.layout)[1],
            )
            return rope.join(*parts, world.layout)

        new_q = torch.cat((mixed(right_q, like(right_k, q)), right_q[..., world.rotary_dim :]), -1)
        new_k = torch.cat((mixed(like(right_q, k), right_k), right_k[..., world.rotary_dim :]), -1)
        return new_q, new_k

    return rotation


# --- Length ---


def kept_length(world):
    return abs(world.lengthened - 1) < 1e-9


@fresh(
    "both, length, 1.2773 times too long",
    accept=[
        near(
            LENGTH,
            r"1\.2[78]|too (long|large|big)|longer|larger|(not|n.t) (kept|preserved)|grow|multipl|stretch|not declared",
        ),
    ],
    refuse="that values are wrong, without the length or a factor",
    when=kept_length,
)
def lengthened_unasked(world):
    """Rotated vectors are multiplied by 1.2773, YaRN's attention factor for s = 16, though a factor of 1 is declared.

    Source: vLLM, pull request 48623 (YaRN ignores mscale and mscale_all_dim), 14 July 2026.
    """
    return with_frequencies(world, world.frequencies, 0.1 * math.log(16) + 1)


@fresh(
    "both, length, the declared attention factor is missing",
    accept=[
        near(
            LENGTH,
            r"miss|(not|n.t) applied|left out|ignor|lost|dropped|absent|too short|shorter|smaller|1(\.0)? instead"
            r"|keep|\bkept|should (get|be|come)|without",
        ),
    ],
    refuse="that values are wrong, without the length or a factor",
    when=lambda world: not kept_length(world),
)
def length_lost(world):
    """Vectors keep their length, though they should be multiplied by the declared attention factor.

    Source: exllamav3, issue 259 (YaRN's attn_factor collapses to 1.0), 28 July 2026.
    """
    return with_frequencies(world, world.frequencies, 1.0)


# --- Not a number ---


@fresh(
    "both, value, not a number in all pairs but the first",
    accept=[r"\bnan\b|not a number|not finite|non-?finite|infinit|\binf\b|complex|negative base|undefined"],
    refuse="that values are wrong",
    when=lambda world: plain(world) and pairs(world),
)
def base_below_zero(world):
    """The base falls below zero, so its powers aren't real numbers: every pair but the first comes out as NaN.

    Source: vLLM, issue 52665 (dynamic NTK corrupts the cache if the served length is short), 17 August 2026.
    """
    base = torch.tensor(-0.5 * world.base, dtype=torch.float64)
    powers = torch.where(exponents(world) > 0, torch.pow(base, exponents(world)), 1.0)
    return with_frequencies(world, 1 / powers)


# --- Sound functions in unusual styles ---


def unusual(world, turned):
    """f(q, k, positions): ``turned(first, second, angles)`` rotates the pairs, and everything else is as declared."""

    def one(x, places):
        inner = x[..., : world.rotary_dim].double()
        angles = (places[..., None] * world.frequencies).expand(*x.shape[:-1], -1)
        both = turned(*rope.split(inner, world.layout), angles)
        inner = rope.join(*both, world.layout) * world.lengthened
        return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def one_large_matrix(world):
    """Each token is multiplied by a (dim, dim) matrix, which contains the declared attention factor."""
    dim, width = world.dim, world.rotary_dim
    first, second = rope.split(torch.arange(width), world.layout)

    def one(x, places):
        angles = places[..., None] * world.frequencies
        matrix = torch.zeros(*angles.shape[:-1], dim, dim, dtype=torch.float64)
        matrix[..., torch.arange(width, dim), torch.arange(width, dim)] = 1
        cos, sin = angles.cos() * world.lengthened, angles.sin() * world.lengthened
        matrix[..., first, first], matrix[..., second, second] = cos, cos
        matrix[..., first, second], matrix[..., second, first] = -sin, sin
        return torch.einsum("...ij,...j->...i", matrix, x.double()).to(x.dtype)

    return by(one)


@right
def two_mirrors(world):
    """A rotation as two reflections: in the first axis, and in the line at half the angle."""

    def turned(first, second, angles):
        mirrored = first, -second
        along_x, along_y = (angles / 2).cos(), (angles / 2).sin()
        along = mirrored[0] * along_x + mirrored[1] * along_y
        return 2 * along * along_x - mirrored[0], 2 * along * along_y - mirrored[1]

    return unusual(world, turned)


@right
def three_shears(world):
    """A rotation as three shears. Before that, half turns are removed from the angle and become signs."""

    def turned(first, second, angles):
        halves = torch.round(angles / math.pi)
        rest, sign = angles - halves * math.pi, 1 - 2 * torch.remainder(halves, 2)
        slope = torch.tan(rest / 2)
        first = first - slope * second
        second = second + rest.sin() * first
        first = first - slope * second
        return first * sign, second * sign

    return unusual(world, turned)


@right
def digits_of_the_position(world):
    """The angle is put together from the position's hundreds and the rest, with the addition theorem."""

    def one(x, places):
        hundreds = torch.floor(places / 100)
        coarse, fine = (
            hundreds[..., None] * (100 * world.frequencies),
            (places - 100 * hundreds)[..., None] * world.frequencies,
        )
        cos = coarse.cos() * fine.cos() - coarse.sin() * fine.sin()
        sin = coarse.sin() * fine.cos() + coarse.cos() * fine.sin()
        inner = rope.join(*turn(*rope.split(x[..., : world.rotary_dim].double(), world.layout), cos, sin), world.layout)
        return torch.cat(((inner * world.lengthened).to(x.dtype), x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def exponential_of_a_generator(world):
    """The matrix exponential of the angle times a quarter turn."""
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)

    def turned(first, second, angles):
        rest = torch.remainder(angles, 2 * math.pi)
        matrix = torch.linalg.matrix_exp(rest[..., None, None] * quarter)
        return torch.einsum("...ij,...j->...i", matrix, torch.stack((first, second), -1)).unbind(-1)

    return unusual(world, turned)


@right
def complex_in_numpy(world):
    """Complex numbers in NumPy, multiplied by the exponential of i times the angle, with q and k in one array."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        both = torch.cat((q, k), 1)
        first, second = (part.numpy() for part in rope.split(both[..., : world.rotary_dim].double(), world.layout))
        angles = places.numpy()[..., None] * world.frequencies.numpy()
        product = (first + 1j * second) * (world.lengthened * numpy.exp(1j * angles))
        parts = torch.from_numpy(product.real.copy()), torch.from_numpy(product.imag.copy())
        inner = rope.join(*parts, world.layout)
        whole = torch.cat((inner.to(q.dtype), both[..., world.rotary_dim :]), -1)
        return whole[:, : q.shape[1]].clone(), whole[:, q.shape[1] :].to(k.dtype)

    return rotation


@right
def in_polar_coordinates(world):
    """Each pair is a radius and an angle. The angle grows, and the radius is multiplied by the declared factor."""

    def turned(first, second, angles):
        radius, direction = torch.hypot(first, second), torch.atan2(second, first)
        return radius * torch.cos(direction + angles), radius * torch.sin(direction + angles)

    return unusual(world, turned)


@right
def through_the_other_layout(world):
    """Entries are sorted into the other layout, rotated there pair by pair, and sorted back, token by token."""
    other = "half" if world.layout == "interleaved" else "interleaved"

    def one(x, places):
        there = rope.join(*rope.split(x[..., : world.rotary_dim], world.layout), other)
        places = places.expand(x.shape[:-1]) if places.ndim == 3 else places
        tokens = [
            rotated(there[:, :, token], places[..., token, None] * world.frequencies, other, world.lengthened)
            for token in range(x.shape[2])
        ]
        back = rope.join(*rope.split(torch.stack(tokens, 2), other), world.layout)
        return torch.cat((back, x[..., world.rotary_dim :]), -1)

    return by(one)


@right
def as_declared(world):
    """The plain formula, to compare the others with."""
    return sound(world)
