"""A fourth set of mistakes from public reports, gathered by somebody who hasn't seen the diagnosis, to judge it once.

The form is that of the third set. What counts as a mistake here: the scores of q and k, at the declared positions and
within the declared length, differ from those of every rotation that fits what is declared, or a single vector's length
does, or the function raises or gives NaN where a right one wouldn't. Scores are also those of a query from one call
with a key from another, as with cached keys; `tests/test_fresh_fourth.py` checks all of this in random worlds. None of
these is a mistake of the third set in the same place, though some have the same cause elsewhere.

The patterns are generous on purpose: a diagnosis names a mistake if an engineer who reads its text knows where to
look and what is off there, whether the text gives the cause or only describes its effect exactly. Some reports are of
a proposal, a question or a review: then what would have gone wrong is the mistake.

`SOUND` holds functions that are right, written in styles that are unusual. They're declared as the others are.
"""

import math

import numpy
import torch

from ropebook import rope
from tests.fresh_mistakes_third import (
    ALONE,
    BACKWARDS,
    BASE,
    FREQUENCY,
    IGNORED,
    INEXACT,
    LAYOUTS,
    LENGTH,
    MIXED_TABLE,
    NO_ROTATION,
    PARTIAL,
    POSITION,
    PRECISION,
    ROWS,
    SHARE,
    UNROTATED,
    apart,
    counted,
    exponents,
    full_width,
    in_layout,
    interleaved,
    kept_length,
    ladder,
    long_list,
    moved,
    near,
    number,
    separately,
    unusual,
    with_angles,
)
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
SOUND = {}
fresh = collecting(FRESH)
right = collecting_sound(SOUND)


# --- Words ---

Q = r"\bq\b|quer"
K = r"\bk\b|\bkeys?\b"
RAISES = r"raise|error|exception|fails?\b|crash|refus|throws?\b|cannot|can't|doesn.t accept|not accept"
LARGE = (
    r"large|beyond|\bpast\b|\bafter\b|from \d|\bend\b|table|cache"
    r"|above|limit|\bbound|\bover\b|thresh|\bfar\b|too short|or more|at least|≥"
)
EDGE = [
    near(
        rf"{number(64)}|{number(63)}",
        r"\b(from|beyond|after|above|past|until|to|largest|last|end|over|limit|thresh\w*|reach|at|only|or more)\b|≥|>",
        40,
    ),
]
STATE = [
    near(r"cach|remember|earlier|previous|stale|state|between|repeated|second|later|before", r"\bcalls?\b"),
    r"not (deterministic|reproducible|repeatable)|different (result|output|answer)s? (for|from) the same",
    r"\bstate(ful)?\b",
    r"order of (the )?calls|(same|identical) (call|input)s?.{0,40}(different|another|other|differs?)",
]
SCALING = r"scaling|scaled|\bfactor|interpolat|\byarn\b|\bllama ?3\b|linear"
TOO_FAST = r"too (fast|large|high|big)|larger|higher|faster|\btimes\b|multipl"
TOO_SLOW = r"too (slow|small|low)|smaller|lower|slower|divid"
OTHER_TOKENS = r"(another|other|next|previous|neighbou?r\w*|wrong|preceding|following|different) tokens?"


# --- Positions ---


@fresh(
    "both, position, 0 for a token that comes alone",
    accept=[
        near(ALONE, rf"position (used |is |of )?(0|zero)\b|(at|from|to|with|is|as) (position )?(0|zero)\b|{UNROTATED}"),
        near(ALONE, r"position.{0,40}(ignor|unused|not used|no effect|disregard|lost|dropped|reset)"),
        *IGNORED,
    ],
    refuse="that a token alone comes out wrong, without position 0 or vectors left as they are",
    seen=("one",),
)
def zero_when_alone(world):
    """A single token is rotated to position 0, so it isn't rotated at all, whatever its position is. Several
    tokens that come together are rotated to their own positions.

    Source: mlx-vlm, pull request 1993 (decoding assigns position 0 to every token), 21 August 2026.
    """
    return moved(world, lambda x, places: torch.zeros_like(places) if x.shape[2] == 1 else places)


@fresh(
    "both, position, that of the first token for all tokens of the call",
    accept=[
        near(r"first (given )?(position|one|token)|start|beginning", r"all|every|each|same|whole|constant"),
        near(
            r"all|every|each|whole|tokens",
            r"(same|one|single|constant|identical|equal) (position|angle|rotation|place)",
        ),
        near(
            POSITION, r"(not|n.t|never) (advance|grow|increas|count|change|move|proceed)|stuck|frozen|stays? the same"
        ),
        near(r"relative|distance|differences?", r"ignor|no (effect|influence)|lost|vanish|zero|none|unused"),
    ],
    refuse="that positions are wrong, without saying that all tokens of a call share one",
    seen=("small", "large", "rows"),
)
def window_at_its_start(world):
    """All tokens of a call are rotated to the position of the first token, because that position is broadcast over the
    call. Calls with one token are right.

    Source: omlx, pull request 2363 (positions don't advance over windows of several tokens), 24 July 2026.
    """
    return moved(world, lambda x, places: places[..., :1].expand(places.shape))


@fresh(
    "k, position, modulo 32",
    accept=[
        near(r"modul|\bmod\b|wrap|remainder|period|ring|start(s|ed)? again|repeat|cycl|begin(s)? again", POSITION),
        near(number(32), r"modul|wrap|period|every|repeat|ring|window|multiple|less|subtract|behind|start"),
        near(K, r"position.{0,60}(too (small|low)|behind|32)"),
    ],
    refuse="that keys or large positions are wrong, without wrapping or 32",
    seen=("large",),
)
def slot_as_position(world):
    """Keys are rotated to their slot in a ring buffer of 32, that is to their position modulo 32. Queries are rotated
    to their own positions, so scores are wrong from position 32 on.

    Source: sglang-omni, pull request 2177 (review of positions in a ring buffer), 16 September 2026.
    """
    return separately(
        lambda q, places: alone(q, places, world), lambda k, places: alone(k, torch.remainder(places, 32), world)
    )


@fresh(
    "both, position, 0 up to position 6 and 6 too small from there on",
    accept=[
        near(
            r"first|small|low|early|position(s)? (0|1|2|3|4|5|6)\b|up to|below|start|until|prefix",
            rf"{UNROTATED}|(position|at) (0|zero)\b|no rotation|identity|clamp|zero|same (position|angle)|held",
        ),
        near(
            POSITION, rf"[-−] ?{number(6)}|(by|minus|less|subtract\w*) {number(6)}|{number(6)} (too|less|behind|fewer)"
        ),
        near(POSITION, r"clamp|max\(|clip|at least"),
    ],
    refuse="that small positions are wrong, without saying that they stay unrotated or share an angle, or the 6",
    seen=("small",),
)
def prefix_without_rotation(world):
    """Positions up to 6 are all rotated as position 0, and every later position is 6 too small. The table begins with
    rows of zeros for a prefix, but reading starts at the first of these rows.

    Source: ControlAR, issue 18 (potential bug in the frequency table's first rows), 26 October 2025.
    """
    return moved(world, lambda x, places: (places - 6).clamp(min=0))


def zigzag(count):
    part = count // 4
    order = torch.arange(count)
    return torch.cat((order[:part], order[2 * part :], order[part : 2 * part]))


@fresh(
    "both, position, quarters of the call are in another order",
    accept=[
        near(POSITION, r"order|permut|shuffl|swap|exchang|zig.?zag|rearrang|mixed|jumbl|reorder|\bchunk|quarter"),
        near(r"tokens?", rf"(other|another|each other.s|different|wrong) (token|position)|{OTHER_TOKENS}"),
    ],
    refuse="that positions are wrong, without their order or another token's position",
    seen=("small", "large", "rows"),
)
def zigzag_order(world):
    """Tokens get each other's positions: the second quarter of the call's positions is moved to the end, as if the
    tokens had been laid out in zigzag for context parallelism.

    Source: ms-swift, pull request 10071 (contiguous shards are put together in zigzag order), 9 September 2026.
    """
    return moved(world, lambda x, places: places[..., zigzag(x.shape[2])])


@fresh(
    "both, position, heads and tokens are counted in the wrong order",
    accept=[
        near(
            r"\bheads?\b",
            r"axis|order|layout|transpos|mix|depend|differ|position|angle|index|swap|exchang|stride|token",
        ),
        near(r"\b(axis|axes|dimensions?)\b", r"wrong (axis|dimension)|swap|exchang|mix|confus|transpos|order"),
    ],
    refuse="that heads come out wrong, without the axis, the order or positions",
    seen=("small", "large"),
)
def tokens_before_heads(world):
    """Positions depend on the head: the index of a token is found as if heads came after tokens in memory, so the entry
    at head h and token s is rotated as token (h·n + s) // heads.

    Source: DeepSpeed, pull request 2782 (the rotation was written for queries before transposing), 2 February 2023.
    """

    def move(x, places):
        heads, count = x.shape[1:3]
        order = torch.arange(heads * count).view(heads, count) // heads
        return (places if places.ndim == 1 else places[:, 0])[..., order]

    return moved(world, move)


@fresh(
    "both, position, modulo 64",
    accept=[
        near(r"modul|\bmod\b|wrap|remainder|period|start(s|ed)? again|repeat|cycl|begin(s)? again", POSITION),
        near(number(64), r"modul|wrap|period|every|repeat|multiple|less|subtract|behind|start"),
        *EDGE,
        near(r"table|cache", r"\bends?\b|too short|too small|wrap|repeat"),
    ],
    refuse="that large positions are wrong, without wrapping, 64 or the table's end",
    seen=("large",),
)
def table_wraps(world):
    """From position 64 on, positions start again at 0, because a table of 64 rows is read modulo its length. Smaller
    positions are right.

    Source: PC-Transformers, pull request 142 (encodings out of bounds or misaligned past the table), 7 June 2026.
    """
    return moved(world, lambda x, places: torch.remainder(places, 64))


@fresh(
    "both, share, none in a call with a position from 64 on",
    accept=[near(UNROTATED, LARGE), near(r"identity|does nothing|no rotation|no effect", LARGE), *EDGE],
    refuse="that large positions are wrong, without saying that they stay unrotated or from where on",
    seen=("large",),
)
def silently_returned(world):
    """If any position of a call is 64 or more, the function returns q and k unchanged, without an error. Calls within
    the table of 64 positions are right.

    Source: ONNX Runtime, issue 28205 (RotaryEmbedding returns if position ids are out of bounds), April 2026.
    """
    return by(lambda x, places: x.clone() if bool((places >= 64).any()) else alone(x, places, world))


@fresh(
    "both, value, raises from position 64 on",
    accept=[near(RAISES, rf"{LARGE}|position|index|{number(64)}"), r"out of (range|bounds)|IndexError"],
    refuse="that large positions are wrong, without an error or the bound",
    seen=("large",),
)
def table_raises(world):
    """Positions from 64 on raise an IndexError, because the table was built for 64 positions, though more are declared.

    Source: hyprstream, issue 1546 (the table is hard-coded to 8192 positions), 27 August 2026.
    """
    usual = with_frequencies(world, world.frequencies)

    def rotation(q, k, positions):
        if bool((positions >= 64).any()):
            raise IndexError(f"index {int(positions.max())} is out of bounds for dimension 0 with size 64")
        return usual(q, k, positions)

    return rotation


@fresh(
    "both, value, raises if rows have positions of their own",
    accept=[
        near(RAISES, rf"{ROWS}|2.?d|two.dimension|\(batch|own positions|per row|positions"),
        near(ROWS, r"(not|n.t|un)\s?(support|accept|possible|allowed|work)"),
    ],
    refuse="that rows are wrong, without an error",
    seen=("rows",),
)
def own_positions_raise(world):
    """Positions for each row, of shape (batch, seq), raise a RuntimeError: they're flattened before tokens are counted,
    so the view of q doesn't fit. One set of positions for all rows works.

    Source: vLLM, pull request 52973 (the number of tokens is inflated for positions with two axes), 19 August 2026.
    """
    usual = with_frequencies(world, world.frequencies)

    def rotation(q, k, positions):
        if positions.ndim == 2:
            shape = positions.numel() * q.shape[0], -1, q.shape[-1]
            raise RuntimeError(f"shape '{shape}' is invalid for input of size {q.numel()}")
        return usual(q, k, positions)

    return rotation


@fresh(
    "both, position, one per row is read as if it were one per token",
    accept=[
        near(
            r"position (0|zero)\b|at (0|zero)\b|zeros?\b|unrotated|not rotated",
            r"most|many|after the|later tokens|other tokens|but the first|except|several|together|behind",
        ),
        near(r"first (given )?(position|one|token|row)", r"only|except|but|all others|rest"),
        *IGNORED,
        near(r"all|every|each|most|later", r"(same|one|single) (position|angle|rotation)"),
    ],
    refuse="that positions are wrong, without position 0 or which tokens are affected",
    seen=("large", "rows"),
)
def buffer_of_firsts(world):
    """In calls with several tokens, most tokens are rotated to position 0: the buffer contains only the first position
    of each row of the batch, and tokens beyond the buffer's end read zeros. Calls with one token are right.

    Source: rtp-llm, pull request 1163 (position ids sized for one token per stream), 7 July 2026.
    """

    def move(x, places):
        batch, count = x.shape[0], x.shape[2]
        ids = torch.zeros(batch * count, dtype=torch.float64)
        ids[:batch] = places.expand(batch, 1, count)[:, 0, 0]
        return ids.view(batch, 1, count)

    return moved(world, move)


@fresh(
    "both, position, those of the first half of the call again in the second half",
    accept=[
        near(
            r"second half|half|middle|later tokens|document|sequence|restart|start(s)? again|begin(s)? again", POSITION
        ),
        near(POSITION, r"repeat|reset|twice|again|reus"),
    ],
    refuse="that positions are wrong, without a restart, a repetition or the half",
    seen=("small", "large"),
)
def second_half_restarts(world):
    """The second half of a call is rotated to the positions of the first half, as if it were a second packed sequence
    that reuses the positions of sequence 0. Calls with one token are right.

    Source: Megatron-LM, pull request 5243 (later packed sequences reuse the positions of sequence 0), 9 June 2026.
    """
    return moved(world, lambda x, places: places[..., torch.arange(x.shape[2]) % -(-x.shape[2] // 2)])


@fresh(
    "both, position, normalized to -1 to 1 within the call",
    accept=[
        near(POSITION, r"normali[sz]|rescal|between|relative to|fraction|divided by|scaled (by|to)|[-−]1\b"),
        near(
            r"length of the (call|sequence)|number of tokens|call.s length|how many tokens|seq(uence)?[ _]len",
            r"depend|divi|scal|change",
        ),
        *IGNORED,
        near(rf"{POSITION}|angle", r"too (slow|small|low)|hardly|barely|less than"),
    ],
    refuse="that positions are wrong, without a normalization, the call's length or that they play no part",
    seen=("small", "large", "one"),
)
def normalized_coordinates(world):
    """Tokens are rotated to coordinates between -1 and 1 that depend on their place in the call and its length, as for
    the patches of an image. The positions that are given play no part.

    Source: VGGT-Omega, issue 35 (a base meant for integer indices with coordinates in -1 to 1), 25 May 2026.
    """
    return moved(world, lambda x, places: (2 * counted(x, places) + 1) / x.shape[2] - 1)


@fresh(
    "both, position, the number of tokens in earlier calls is added",
    accept=[
        *STATE,
        near(
            POSITION,
            r"accumul|count(s|ed)? on|running|adds? up|grow(s|ing)? (with|from) (each|every|call)|number of calls",
        ),
    ],
    refuse="that positions are wrong or shifted, without earlier calls",
    seen=("again",),
)
def keeps_counting(world):
    """The number of tokens in all earlier calls is added to the given positions, so only the first call is right, and
    repeating it gives a different result.

    Source: tiny-llm, pull request 46 (the offset grows by the wrong number of tokens), 18 August 2025.
    """
    seen = [0]

    def rotation(q, k, positions):
        places = places_of(q, k, positions) + seen[0]
        seen[0] += q.shape[2]
        return alone(q, places, world), alone(k, places, world)

    return rotation


@fresh(
    "both, frequency, rows of the table are read with the wrong stride",
    accept=[
        near(
            r"table|cache|\brows?\b|cos|sin",
            r"strid|offset|address|layout|misread|wrong (row|place|width|entr)|reshap|shifted",
        ),
        near(PARTIAL, r"strid|table|offset|row"),
        near(r"first token|later tokens?|earlier tokens?|each token|of token \d", r"angle|frequenc|cos|sin"),
        near(
            r"frequenc|angle",
            r"(depend|change|differ|vari).{0,40}(position|token)|(not|n.t) (proportional|linear)|(an)?other pair",
        ),
    ],
    refuse="that angles are wrong, without the table, its rows or how angles depend on the token",
    when=lambda world: partial(world) and pairs(world),
)
def rows_with_wrong_stride(world):
    """Only the call's first token gets its own angles. The table has rows for the whole head, but it is read with a
    stride for rows of only the rotary part, so every later token reads angles from the row of an earlier token.

    Source: mojo_opset, pull request 241 (review of the stride of cosines and sines), 18 April 2026.
    """
    count, wide = world.rotary_dim // 2, world.dim // 2

    def one(x, places):
        angles = places[..., None] * torch.cat((world.frequencies, torch.zeros(wide - count, dtype=torch.float64)))
        flat = angles.flatten(-2)
        at = torch.arange(x.shape[2])[:, None] * count + torch.arange(count)
        return rotated(x, flat[..., at], world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, frequency, divided by long factors if the call has a position from 64 on",
    accept=[
        r"longrope|long.?(factor|list)|short.?factor",
        *EDGE,
        near(FREQUENCY, r"(large|high) positions|longer|depend|change|\bcalls?\b|length of|beyond"),
        r"\bdynamic\b|\bntk\b",
    ],
    refuse="that large positions are wrong, without frequencies, factors or from where on",
    when=lambda world: plain(world) and pairs(world),
    seen=("large",),
)
def factors_by_call(world):
    """If any position of a call is 64 or more, all frequencies are divided by long factors, from 1.08 to 64.8; other
    calls use the plain frequencies. Chunks of one text may therefore be rotated differently.

    Source: uzu, pull request 604 (chunked prefill gets short factors first and long ones later), 14 July 2026.
    """
    slow = world.frequencies / long_list(world)

    def one(x, places):
        theta = slow if bool((places >= 64).any()) else world.frequencies
        return rotated(x, places[..., None] * theta, world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, base, 8 times larger from the first call with a position from 64 on",
    accept=[
        *STATE,
        near(BASE, r"large|enlarg|increas|grow|change|multipl|\btimes\b"),
        near(FREQUENCY, r"(large|high) positions|longer|depend|change|\bcalls?\b|length of|beyond"),
        *EDGE,
        r"\bdynamic\b|\bntk\b",
    ],
    refuse="that large positions are wrong, without the base, frequencies or an earlier call",
    when=lambda world: plain(world) and pairs(world),
    seen=("large", "again"),
)
def base_stays_enlarged(world):
    """A call with a position of 64 or more multiplies the base by 8. The base is never reset, so later calls with small
    positions are also rotated with the enlarged base.

    Source: Transformers, pull request 27227 (the base isn't scaled back after a long sequence), 2 November 2023.
    """
    base = [world.base]

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        if bool((places >= 64).any()):
            base[0] = 8 * world.base
        angles = places[..., None] * ladder(world, base[0])
        return tuple(rotated(x, angles, world.layout, world.lengthened) for x in (q, k))

    return rotation


# --- Queries and keys, heads ---


@fresh(
    "k, share, none",
    accept=[
        near(K, UNROTATED),
        near(Q, r"only|but not (k|the keys)"),
        near(K, r"identity|does nothing|no rotation|position (0|zero)"),
    ],
    refuse="that keys or both are wrong, without saying that keys stay as they are",
)
def keys_left_behind(world):
    """Only queries are rotated. Keys are returned unchanged: the rotated keys are written to a cache, but not to the
    returned tensor.

    Source: SGLang (fork of kvcache-ai), pull request 66 (restore the write-back of rotated keys), 15 July 2026.
    """
    return separately(lambda q, places: alone(q, places, world), lambda k, places: k.clone())


@fresh(
    "q, share, none",
    accept=[
        near(Q, UNROTATED),
        near(K, r"only|but not (q|the quer)"),
        near(Q, r"identity|does nothing|no rotation|position (0|zero)"),
    ],
    refuse="that queries or both are wrong, without saying that queries stay as they are",
)
def queries_left_behind(world):
    """Only keys are rotated. Queries are returned unchanged, because one branch of the code doesn't rotate q.

    Source: PaddleFleet, pull request 1210 (q wasn't rotated in compressed attention), 11 June 2026.
    """
    return separately(lambda q, places: q.clone(), lambda k, places: alone(k, places, world))


@fresh(
    "k, hand, reversed",
    accept=[
        near(K, BACKWARDS),
        near(Q, r"opposite|(other|different) (way|direction|hand|sense)"),
        r"sum of (the |their )?positions|m ?\+ ?n",
    ],
    refuse="that keys are wrong or that both are reversed, without that only keys are",
)
def keys_backward(world):
    """Keys are rotated the other way: the term with the sine has a minus for k, so scores depend on the sum of the two
    positions instead of their difference. Queries are right.

    Source: Transformers, issue 30900 (the change proposed for k), 20 May 2024.
    """
    return separately(lambda q, places: alone(q, places, world), lambda k, places: alone(k, -places, world))


@fresh(
    "k, position, rotated twice",
    accept=[
        near(K, r"twice|two times|doubl|2 ?[x×·*]|again|once more|already rotated|factor (of )?2"),
        near(rf"{K}", rf"(position|angle|frequenc).{{0,60}}({TOO_FAST})"),
        near(r"(position|angle|frequenc)\w*", rf"(of |for )?({K}).{{0,40}}({TOO_FAST})"),
    ],
    refuse="that keys are wrong, without the second rotation or a factor of 2",
)
def keys_turned_twice(world):
    """Keys are rotated twice, once when they're stored and once more when they're read, so their angles are doubled.
    Queries are right.

    Source: shainet, pull request 110 (review of keys that are cached after their rotation), 10 June 2026.
    """
    return separately(
        lambda q, places: alone(q, places, world), lambda k, places: alone(alone(k, places, world), places, world)
    )


@fresh(
    "k, layout, the other one",
    accept=[
        *(rf"(?=[\s\S]*(?:{K}))(?:{pattern})" for pattern in LAYOUTS),
        near(K, r"permut|order|layout|pair|partner|interleav|half"),
    ],
    refuse="that keys are wrong, or both layouts, without keys' pairs or order",
    when=pairs,
)
def keys_permuted(world):
    """Queries are paired in the declared layout, but keys in the opposite layout (halves instead of neighbours, or the
    reverse): the order of the entries was converted for q only.

    Source: Transformers, pull request 31788 (incorrect permutation of k in GGUF files), 4 July 2024.
    """
    other = "half" if world.layout == "interleaved" else "interleaved"
    return separately(
        lambda q, places: alone(q, places, world),
        lambda k, places: rotated(k, places[..., None] * world.frequencies, other, world.lengthened),
    )


@fresh(
    "k, value, second entries of pairs are those of the token before",
    accept=[
        near(K, rf"{OTHER_TOKENS}|neighbou?r|mix|leak|depend|shift|strid|address|roll"),
        near(K, r"second (entries|half|halves|element|part)"),
        OTHER_TOKENS,
    ],
    refuse="that keys are wrong, without other tokens or the second entries",
    seen=("small", "large"),
)
def keys_with_wrong_stride(world):
    """In each pair of a key, the second entry is taken from the previous token, because its address is computed with
    the stride of q. Queries are right.

    Source: ColossalAI, pull request 6444 (the offset of k's second half uses the stride of q), 21 September 2026.
    """

    def of_k(k, places):
        first, second = rope.split(k[..., : world.rotary_dim], world.layout)
        inner = rope.join(first, second.roll(1, 2), world.layout)
        return alone(torch.cat((inner, k[..., world.rotary_dim :]), -1), places, world)

    return separately(lambda q, places: alone(q, places, world), of_k)


@fresh(
    "both, share, only the first half of the heads",
    accept=[near(r"\bheads?\b", rf"{UNROTATED}|only|first|half|some|other|differ|last|later")],
    refuse="that values are wrong, without heads",
)
def second_block_of_heads(world):
    """Only the first half of the heads is rotated, in both q and k, because the kernel uses each head's index within
    its block. The other heads are unchanged.

    Source: Megatron-LM (fork of radixark), pull request 5 (absolute head index in the fused kernel), 18 February 2026.
    """

    def one(x, places):
        count = (x.shape[1] + 1) // 2
        head = alone(x, places, world)
        return torch.cat((head[:, :count], x[:, count:]), 1)

    return by(one)


@fresh(
    "both, layout, halves for a token that comes alone",
    accept=[near(ALONE, r"layout|pair|partner|halves|\bhalf\b|interleav|neox|neighbo|convention"), *LAYOUTS],
    refuse="that a token alone comes out wrong, without pairs or the layout",
    when=interleaved,
    seen=("one",),
)
def alone_in_halves(world):
    """In calls with one token, pairs lie in halves although the declared layout pairs neighbours: halves are hard-coded
    in one of two code paths. Calls with several tokens are right.

    Source: vLLM, issue 49290 (the Triton kernel hard-codes one layout and the native path doesn't), July 2026.
    """
    usual, halves = in_layout(world, world.layout), in_layout(world, "half")
    return lambda q, k, positions: (halves if q.shape[2] == 1 else usual)(q, k, positions)


# --- Frequencies ---


def endpoints(world):
    steps = torch.arange(world.rotary_dim // 2, dtype=torch.float64) / max(world.rotary_dim // 2 - 1, 1)
    return world.base**-steps


@fresh(
    "both, frequency, exponents run to 1 instead of 1 - 2/d",
    accept=[
        near(
            r"exponent|power|linspace|denominator",
            r"d/2|- ?1\b|last|end|endpoint|too (large|big|high)|d ?[-−] ?2|includ|divi|differ|wrong",
        ),
        near(BASE, rf"{TOO_FAST}|too|larger|differ|another|instead|not the declared|\^|\*\*|\d{{3,}}"),
        near(FREQUENCY, TOO_SLOW),
    ],
    refuse="that frequencies are wrong, without exponents, the base or that they're too low",
    when=lambda world: plain(world) and pairs(world) and apart(world, endpoints(world)),
)
def exponents_to_the_end(world):
    """Exponents are spread evenly from 0 to 1 inclusive, i/(d/2 - 1) instead of 2i/d, so all frequencies but the first
    are too low and the last is 1/base. It's as if the base were larger, base^(d/(d - 2)).

    Source: UniLM, issue 1554 (linspace in YOCO's rotary embedding), 19 May 2024.
    """
    return with_frequencies(world, endpoints(world))


def of_width(world):
    return world.base ** -(exponents(world) / 1.25)


@fresh(
    "both, frequency, exponents divided by 5/4 of the width",
    accept=[
        near(r"exponent|power|denominator", r"width|\bhead|\bdim|divi|wrong|too (small|low)|differ|0\.8|1\.25|scal"),
        near(BASE, r"too|smaller|lower|differ|another|instead|not the declared|\^|\*\*|\d{2,}"),
        near(FREQUENCY, TOO_FAST),
    ],
    refuse="that frequencies are wrong, without exponents, the base or that they're too high",
    when=lambda world: plain(world) and pairs(world) and apart(world, of_width(world)),
)
def width_from_hidden_size(world):
    """Exponents are divided by 5/4 of the declared width, because the width is computed from the hidden size and the
    number of heads. Frequencies fall too slowly, as if the base were smaller, base^0.8.

    Source: Transformers, pull request 32495 (use head_dim from the configuration for RoPE), 7 August 2024.
    """
    return with_frequencies(world, of_width(world))


def scaled_by(world, factor):
    """Return frequencies that are multiplied by ``factor`` where the scaling should divide them by its own factor."""
    keep = kept(world)
    return ladder(world) * (keep + (1 - keep) * factor)


@fresh(
    "both, frequency, scaled twice",
    accept=[
        near(SCALING, r"twice|two times|again|doubl|squar|²|\^ ?2|too (large|much|strong)|once more"),
        near(FREQUENCY, TOO_SLOW),
        near(r"\bfactor", r"\d.{0,30}(instead|declared|not)|(instead|declared).{0,30}\d|wrong|differ"),
    ],
    refuse="that frequencies are wrong, without the second scaling or that they're too low",
    when=lambda world: not plain(world) and apart(world, scaled_by(world, world.factor**-2.0)),
)
def scaled_once_more(world):
    """The scaling is applied twice, so frequencies that should be divided by the factor are divided by its square.

    Source: Transformers, issue 29765 (extra linear scaling in the base class, as reported), 20 March 2024.
    """
    return with_frequencies(world, scaled_by(world, world.factor**-2.0))


def upwards(world):
    keep = kept(world)
    return ladder(world) / (keep + (1 - keep) / world.factor)


@fresh(
    "both, frequency, multiplied by the factor instead of divided",
    accept=[
        near(rf"{SCALING}", r"multipl|invert|inverse|reciprocal|instead of divid|wrong (way|direction)|opposite|1/"),
        near(FREQUENCY, TOO_FAST),
    ],
    refuse="that frequencies are wrong, without multiplication, the inverse or that they're too high",
    when=lambda world: not plain(world) and apart(world, upwards(world)),
)
def scaled_upwards(world):
    """Frequencies that should be divided by the factor are multiplied by it, because the scale is inverted twice over.

    Source: InfiniCore, pull request 1200 (the computed scale has to be inverted), 4 June 2026.
    """
    return with_frequencies(world, upwards(world))


def when_alone(world, theta):
    """Rotate q and k with the frequencies ``theta`` in calls with one token, and correctly in all others."""

    def one(x, places):
        return rotated(
            x, places[..., None] * (theta if x.shape[2] == 1 else world.frequencies), world.layout, world.lengthened
        )

    return by(one)


@fresh(
    "both, frequency, multiplied by the factor for a token that comes alone",
    accept=[
        near(ALONE, rf"{SCALING}|{FREQUENCY}|multipl|invert|inverse|{TOO_FAST}"),
        near(SCALING, r"multipl|invert|inverse|reciprocal|instead of divid"),
    ],
    refuse="that a token alone comes out wrong, without the scaling or frequencies",
    when=lambda world: not plain(world) and apart(world, scaled_by(world, world.factor)),
    seen=("one",),
)
def raw_factor_when_alone(world):
    """In calls with one token, frequencies are multiplied by the scaling factor instead of divided by it, because the
    kernel for decoding receives the raw factor. Calls with several tokens are right.

    Source: llm-awq, pull request 315 (decoding passes the raw factor instead of 1/factor), 16 April 2026.
    """
    return when_alone(world, scaled_by(world, world.factor))


@fresh(
    "both, frequency, not scaled for a token that comes alone",
    accept=[
        near(ALONE, rf"{SCALING}|{FREQUENCY}|unscaled|{TOO_FAST}"),
        near(SCALING, r"ignor|not applied|n.t applied|missing|lost|left out|absent|dropped"),
    ],
    refuse="that a token alone comes out wrong, without the scaling or frequencies",
    when=lambda world: not plain(world) and apart(world, ladder(world)),
    seen=("one",),
)
def unscaled_when_alone(world):
    """A single token is rotated with unscaled frequencies: the code for prompts applies the scaling, but the code for
    decoding doesn't.

    Source: LMDeploy, issue 571 (dynamic NTK in prefill but not in decoding, as asked), 17 October 2023.
    """
    return when_alone(world, ladder(world))


def fast_from_ntk(world):
    keep = kept(world)
    enlarged = ladder(world, world.base * world.factor ** (world.rotary_dim / max(world.rotary_dim - 2, 1)))
    return enlarged * keep + ladder(world) / world.factor * (1 - keep)


@fresh(
    "both, frequency, kept ones come from an enlarged base",
    accept=[
        r"\bntk\b",
        near(BASE, rf"{TOO_FAST}|enlarg|increas|differ|another|too"),
        near(
            r"\bfast|\bhigh\b|\bfirst\b|\bkept\b|unscaled|extrapolat|pairs? \d|some",
            rf"{TOO_SLOW}|scaled|not kept|wrong freq",
        ),
        near(FREQUENCY, TOO_SLOW),
    ],
    refuse="that frequencies are wrong, without the base, NTK or that fast ones are too low",
    when=lambda world: not plain(world) and several(world) and apart(world, fast_from_ntk(world)),
)
def kept_from_ntk_base(world):
    """Frequencies that the scaling should keep are computed from a base enlarged by NTK, so they're too low; those that
    are divided by the factor are right.

    Source: aprender, pull request 2161 (YaRN's extrapolated dimensions use the NTK base), 20 June 2026.
    """
    return with_frequencies(world, fast_from_ntk(world))


def later_ramp(world):
    keep = kept(world)
    keep = torch.cat((keep[:1], keep[:-1]))
    return ladder(world) * (keep + (1 - keep) / world.factor)


@fresh(
    "both, frequency, the blend is one pair late",
    accept=[
        near(
            r"ramp|blend|bound|band|corr|transition|smooth|boundar|low|high|middle|between",
            r"late|shift|off|one pair|pair (later|too)|later|moved|differ|wrong|next|previous|instead",
        ),
        near(r"pairs? \d+|some pairs|pairs between|middle pairs", rf"frequenc|{TOO_FAST}"),
        near(SCALING, r"too (few|little|weak)|fewer|not all|some pairs|less"),
    ],
    refuse="that frequencies are wrong or that the scaling isn't applied",
    when=lambda world: not plain(world) and several(world) and apart(world, later_ramp(world)),
)
def ramp_one_pair_late(world):
    """The blend from kept to divided frequencies is shifted by one pair. Each pair is scaled by the amount meant for
    the previous pair, so pairs in the blend are too fast.

    Source: ggml, pull request 913 (the ramp's lower end is one dimension off, as reported), 5 August 2024.
    """
    return with_frequencies(world, later_ramp(world))


@fresh(
    "both, frequency, times pi",
    accept=[
        r"\bpi\b|π|3\.14",
        near(rf"{FREQUENCY}|angle|{POSITION}", rf"{TOO_FAST}|factor|\b3\.\d"),
    ],
    refuse="that frequencies are wrong, without pi or a common factor",
)
def times_pi(world):
    """Every angle is multiplied by pi, so all frequencies are 3.14 times too high.

    Source: llama.cpp, issue 1234 (a factor pi for theta, as proposed), 29 April 2023.
    """
    return with_frequencies(world, world.frequencies * math.pi)


@fresh(
    "both, frequency, fall over all heads instead of within each",
    accept=[
        near(r"\bheads?\b", rf"{FREQUENCY}|angle|fall|differ|depend|whole|all|inner|hidden|across|split|own"),
        near(r"hidden|inner dim|model dim|embedding dim|whole width|full width", FREQUENCY),
    ],
    refuse="that frequencies are wrong, without heads or the hidden width",
    when=lambda world: plain(world) and several(world),
)
def over_all_heads(world):
    """Frequencies fall over all heads together instead of within each head, because the rotation is applied before the
    split into heads. Each head therefore has different frequencies, and head 0 has only the fastest.

    Source: LTX-Video, issue 224 (the rotation deliberately runs over the inner dimension), 13 July 2025.
    """

    def one(x, places):
        heads = x.shape[1]
        entry = torch.arange(0, heads * world.rotary_dim, 2, dtype=torch.float64).view(heads, 1, -1)
        theta = world.base ** -(entry / (heads * world.rotary_dim))
        places = places if places.ndim == 3 else places[None]
        return rotated(x, places[..., None] * theta, world.layout, world.lengthened)

    return by(one)


@fresh(
    "both, share, pairs after the first quarter stay at position 0",
    accept=[
        near(
            r"pairs?\b|entries|dimensions|section|rest",
            rf"{UNROTATED}|frequenc.{{0,30}}(0|zero)\b|position (0|zero)\b|no rotation|not turn",
        ),
        near(r"frequenc", r"(are |is |of |equal |be )(0|zero)\b|vanish|zeros"),
        near(rf"{SHARE}|rotate\b|turn\b", r"only|too (few|little|narrow)|quarter|fewer|half|part"),
        r"mrope|m-rope|\b(axis|axes|height|width|temporal|spatial)\b",
    ],
    refuse="that frequencies are wrong, without pairs that stay as they are",
    when=lambda world: plain(world) and several(world),
)
def text_without_axes(world):
    """Only the first quarter of the pairs is rotated. The other pairs are meant for the height and width of an image,
    so in text they are always at position 0.

    Source: vLLM, pull request 18456 (M-RoPE positions of pure text, reverting a fix), 21 May 2025.
    """
    theta = world.frequencies.clone()
    theta[world.rotary_dim // 8 :] = 0
    return with_frequencies(world, theta)


@fresh(
    "both, share, two of every four pairs stay as they are",
    accept=[
        near(
            r"pairs?\b|entries|dimensions|every|some|half",
            rf"{UNROTATED}|frequenc.{{0,30}}(0|zero)\b|no rotation|skip|not turn|position (0|zero)",
        ),
        near(r"frequenc", r"(are |is |of |equal |be )(0|zero)\b|vanish|zeros"),
        near(rf"{SHARE}|rotate\b|turn\b", r"only|too (few|little|narrow)|fewer|half|part"),
    ],
    refuse="that frequencies are wrong, without pairs that stay as they are",
    when=lambda world: plain(world) and several(world),
)
def lanes_skipped(world):
    """The last two of every four pairs are not rotated, because the step of the loop over pairs is larger than the
    number of threads.

    Source: llama.cpp, pull request 3024 (review of a hard-coded step over pairs), 5 September 2023.
    """
    theta = world.frequencies.clone()
    theta[torch.arange(len(theta)) % 4 >= 2] = 0
    return with_frequencies(world, theta)


# --- Precision ---


def in_tf32(x):
    mantissa, exponent = torch.frexp(x)
    return torch.ldexp(torch.round(mantissa * 2**11), exponent - 11)


@fresh(
    "both, frequency, rounded to TF32",
    accept=[
        PRECISION,
        r"tf32|tensor.?core|mantissa|\b10 bits|\b11 bits",
        near(
            FREQUENCY,
            r"slightly|a little|\d ?%|per ?cent|small (relative )?(error|deviation)|relative|approximat|inexact|0\.0\d",
        ),
        near(r"angle|phase|error|deviation", r"grow|increas|proportional|drift"),
    ],
    refuse="that frequencies or large positions are wrong, without precision or how little it is",
    when=lambda world: pairs(world) and apart(world, in_tf32(world.frequencies), 2e-4),
    seen=("large",),
)
def product_in_tf32(world):
    """Frequencies and positions are rounded to 11 binary digits before they're multiplied, as TF32 does, so angles of
    large positions are slightly off.

    Source: Transformers, issue 48428 (corruption due to TF32 in the matrix product), 31 August 2026.
    """
    return with_angles(world, lambda places: in_tf32(places)[..., None] * in_tf32(world.frequencies))


def in_fixed_point(world):
    return torch.round(world.frequencies * 2**10) / 2**10


@fresh(
    "both, frequency, rounded to multiples of 1/1024",
    accept=[
        PRECISION,
        r"fixed.?point|quanti[sz]|multiples? of|1/1024|2\^-?10|0\.00097|0\.00098",
        near(
            FREQUENCY,
            r"slightly|a little|\d ?%|small (error|deviation)|approximat|inexact|0\.000|\b(is|are) (0|zero)\b"
            r"|differ by",
        ),
        near(r"slow|last|pairs? \d+", UNROTATED),
    ],
    refuse="that frequencies are wrong, without precision, rounding or how little it is",
    when=lambda world: pairs(world) and apart(world, in_fixed_point(world), 5e-5),
    seen=("large",),
)
def fixed_point(world):
    """Frequencies are rounded to fixed-point numbers with 10 binary places, that is, to multiples of 1/1024. The
    relative error is largest for slow pairs, and the slowest pairs may not rotate at all.

    Source: ReaLLM-Forge, pull request 115 (16-bit fixed point for the rotation's angles), 13 March 2024.
    """
    return with_frequencies(world, in_fixed_point(world))


@fresh(
    "k, value, rounded to bfloat16 eight times",
    accept=[PRECISION, near(K, rf"{INEXACT}|accumul|error|deviat|drift|noise|slight")],
    refuse="that keys are wrong, without precision or how little it is",
)
def keys_in_steps(world):
    """Keys are moved to their positions in eight steps and rounded to bfloat16 after each, so errors add up, as when a
    cache of 16 bits is shifted again and again. Queries keep their precision.

    Source: llama.cpp, issue 4097 (results break down after repeated shifts of cached keys), 16 November 2023.
    """

    def of_k(k, places):
        plain_k = k
        for _ in range(8):
            plain_k = rotated(plain_k, places[..., None] / 8 * world.frequencies, world.layout).bfloat16().to(k.dtype)
        lengthened = plain_k[..., : world.rotary_dim] * world.lengthened
        return torch.cat((lengthened, k[..., world.rotary_dim :]), -1)

    return separately(lambda q, places: alone(q, places, world), of_k)


@fresh(
    "k, value, rounded to float8",
    accept=[PRECISION, r"\bfp8\b|float8|8.bit|e4m3|e5m2|quanti[sz]", near(K, rf"{INEXACT}|error|deviat|noise|slight")],
    refuse="that keys are wrong, without precision, rounding or quantization",
)
def keys_in_float8(world):
    """Keys are rounded to float8 (e4m3), the type of the cache, so only one or two of their digits are right. Queries
    keep their precision.

    Source: verl, pull request 4435 (accuracy collapses with an FP8 cache of keys), 29 March 2026.
    """
    narrow = torch.float8_e4m3fn
    return separately(
        lambda q, places: alone(q, places, world), lambda k, places: alone(k, places, world).to(narrow).to(k.dtype)
    )


# --- Length and value ---


@fresh(
    "q, length, 1.1456 times too long",
    accept=[
        near(
            rf"{LENGTH}|scale|scaling|{Q}",
            r"1\.14|1\.15|too (long|large|big)|longer|larger|(not|n.t) (kept|preserved)|grow|multipl|stretch|scaled",
        )
    ],
    refuse="that queries are wrong, without their length or a factor",
)
def queries_too_long(world):
    """Queries are too long by a factor of √(168/128) = 1.1456, because a different attention scale is folded into them.
    Keys keep their length.

    Source: ferrox, pull request 65 (the attention scale of Gemma's 27B models), 2 September 2026.
    """
    return separately(
        lambda q, places: (alone(q, places, world).double() * math.sqrt(168 / 128)).to(q.dtype),
        lambda k, places: alone(k, places, world),
    )


@fresh(
    "q, length, grows with the position",
    accept=[
        near(LENGTH, rf"{Q}|position|grow|increas|depend|vari|not (kept|preserved)|longer|scaled"),
        r"temperature|log.?n\b|logarithm",
        near(Q, r"scale|scaled|multipl|longer|larger|grow"),
    ],
    refuse="that queries are wrong, without their length or a scale",
    seen=("large",),
)
def queries_with_temperature(world):
    """A query's length is multiplied by 1 + 0.1 log(1 + (position + 1) // 16), which grows with its position. This
    temperature is meant for layers without rotation. Keys keep their length.

    Source: MaxText, pull request 1611 (temperature tuning is for layers without RoPE), 21 April 2025.
    """

    def of_q(q, places):
        scale = 1 + 0.1 * torch.log(1 + torch.floor((places + 1) / 16))
        return (alone(q, places, world).double() * scale[..., None]).to(q.dtype)

    return separately(of_q, lambda k, places: alone(k, places, world))


@fresh(
    "both, length, normalized",
    accept=[
        r"normali[sz]|\bnorms?\b|unit (length|vector)|rms",
        near(LENGTH, r"(not|n.t) (kept|preserved)|chang|equal|same|constant|all|differ|lost|independent|ignor|should"),
    ],
    refuse="that values are wrong, without length or a norm",
)
def normalized_after(world):
    """After the rotation, q and k are divided by their root mean square, so every vector has the same length, whatever
    it was before. Angles are right.

    Source: nanochat, issue 743 (the norm of q and k comes after the rotation), 3 May 2026.
    """

    def one(x, places):
        turned = alone(x, places, world).double()
        return (turned / turned.square().mean(-1, keepdim=True).sqrt()).to(x.dtype)

    return by(one)


@fresh(
    "both, length, the attention factor is applied twice",
    accept=[
        near(
            LENGTH,
            r"twice|two times|squar|²|\^ ?2|doubl|again|too (long|large|big)|longer|larger|multipl|wrong|instead|\d\.",
        )
    ],
    refuse="that values are wrong, without the length or the factor",
    when=lambda world: not kept_length(world),
)
def lengthened_twice(world):
    """Rotated entries are lengthened by the square of the declared attention factor, because both the table and the
    kernel apply this factor.

    Source: Ollama, pull request 13432 (the scale was already computed by the rotation itself), 11 December 2025.
    """
    return with_frequencies(world, world.frequencies, world.lengthened**2)


@fresh(
    "both, value, clipped at 1.5",
    accept=[
        r"clip|clamp|cap(ped)?\b|saturat|limit|truncat|bounded|cut off|at most|nonlinear|(not|n.t) linear",
        near(number(r"1\.50?"), r"value|entr|largest|max|more|above|beyond"),
        near(LENGTH, r"(not|n.t) (kept|preserved)|shorter|too short|smaller|shrink|chang|lost"),
        near(NO_ROTATION, r"value|entr|length|vector"),
    ],
    refuse="that values are wrong, without clipping, the length or linearity",
)
def clipped_after(world):
    """After the rotation, entries of q and k are clipped at 1.5 and -1.5, so long vectors get shorter and turn a bit.

    Source: OLMo, issue 806 (values are clipped to a range after the rotation), 7 March 2025.
    """
    return by(lambda x, places: alone(x, places, world).clamp(-1.5, 1.5))


@fresh(
    "both, value, the minus is missing",
    accept=[
        near(r"\bsign\b|minus|negat|[-−]", r"miss|lost|lack|without|wrong|left out|plus|forgot|absent|twice|both"),
        near(NO_ROTATION, r"pair|cos|sin|entries|entry|length|rotat|result|matrix|vector"),
        r"reflect|mirror|symmetric|hyperbol|not a rotation|orthogonal",
        near(LENGTH, r"(not|n.t) (kept|preserved)|chang|depend|vari|wrong"),
    ],
    refuse="that the result is wrong, without the sign, the length or that it's no rotation",
)
def minus_forgotten(world):
    """Both entries of a pair add the term with the sine: x cos + y sin and x sin + y cos. The rotation's minus sign is
    missing, so lengths change.

    Source: LittleJS, issue 147 (the formula for rotating a vector in a game), 19 July 2025.
    """
    return with_turn(world, lambda first, second, cos, sin: (first * cos + second * sin, first * sin + second * cos))


def rounded_up(count):
    return 1 << (count - 1).bit_length()


@fresh(
    "both, value, sines are read too far to the right",
    accept=[
        near(
            r"sin",
            r"offset|shift|wrong|misread|another|other pair|elsewhere|place|start|too far|beyond|missing|zero|read"
            r"|mismatch|don.t (match|belong)",
        ),
        *MIXED_TABLE,
        near(r"\bsines?\b|\bsin\b", r"of pair|of (an)?other|later|of a|pair \d"),
        near(NO_ROTATION, r"pair|cos|sin|table|length|matrix"),
        near(LENGTH, r"(not|n.t) (kept|preserved)|chang|depend|vari"),
        r"power of (two|2)|padd",
    ],
    refuse="that values are wrong, without sines, the table or lengths",
    when=lambda world: pairs(world) and rounded_up(world.rotary_dim) != world.rotary_dim,
)
def sines_in_padded_table(world):
    """A row of the table contains all cosines and then all sines, but the sines are read at their offset in a row
    padded to a power of two. Pairs get the sine of a later pair, and the last pairs get 0.

    Source: vLLM Ascend, pull request 15688 (incorrect offsets of sines for 96 dimensions), 3 September 2026.
    """
    count = world.rotary_dim // 2
    start = rounded_up(world.rotary_dim) // 2

    def shifted(first, second, cos, sin):
        row = torch.cat((cos, sin, torch.zeros_like(sin)), -1)
        return turn(first, second, cos, row[..., start : start + count])

    return with_turn(world, shifted)


# --- The rest of the head ---

REST = (
    r"\brest\b|remaining|tail|last|other (entries|dimension)|unrotated|pass|beyond|from \d+|not rotate|outside|end of"
)


@fresh(
    "both, value, zeros in the entries that aren't rotated",
    accept=[
        near(
            REST,
            r"zeros?\b|vanish|lost|dropped|empty|not (copied|written|kept)|n.t (copied|kept)|chang|missing|overwritten",
        ),
        near(r"entries|dimension|\bpart\b|share|width", r"zeros?\b|vanish|(are|is|be|to|with|of) 0\b|.re 0\b"),
        near(PARTIAL, r"zeros?\b|lost|dropped|not copied|rest|tail"),
    ],
    refuse="that values are wrong, without which entries are",
    when=partial,
)
def rest_is_zero(world):
    """Entries that shouldn't be rotated come back as zeros, because only the rotated part is written to the result.

    Source: Paddle, pull request 78976 (the rest of the head has to be copied if rotation is partial), 13 May 2026.
    """

    def one(x, places):
        inner = alone(x, places, world)[..., : world.rotary_dim]
        return torch.cat((inner, torch.zeros_like(x[..., world.rotary_dim :])), -1)

    return by(one)


@fresh(
    "both, value, not a number in the entries that aren't rotated",
    accept=[r"\bnan\b|not a number|not finite|non-?finite|infinit|\binf\b"],
    refuse="that values are wrong",
    when=partial,
)
def rest_is_nan(world):
    """Entries that shouldn't be rotated become NaN. They're rotated too, with cosines and sines read beyond the end of
    a table that covers only the declared part of the head.

    Source: Megatron-LM, pull request 5412 (reads out of bounds if rotary_percent is below 1), 21 June 2026.
    """

    def one(x, places):
        inner = alone(x, places, world)[..., : world.rotary_dim]
        return torch.cat((inner, torch.full_like(x[..., world.rotary_dim :], math.nan)), -1)

    return by(one)


@fresh(
    "both, share, the last part of the head instead of the first",
    accept=[
        near(r"last|end|tail|second part|rear|back|behind|from \d+", r"rotat|turn|chang|instead|part|entries|share"),
        near(r"first (entries|part|dimension|\d+)", rf"{UNROTATED}|not the first|instead"),
        near(PARTIAL, r"wrong (part|entries|end)|other (part|entries|end)|order"),
        near(SHARE, r"wrong (entries|part)|other (entries|part)|outside"),
    ],
    refuse="that entries are wrong, without which part of the head rotates",
    when=partial,
)
def last_part_rotated(world):
    """The declared number of entries is rotated, but at the end of each head instead of the beginning: the kernel
    expects heads to begin with the unrotated entries.

    Source: aiter, pull request 136 (support for the rotated part before the other one), 2025.
    """
    start = world.dim - world.rotary_dim
    return by(
        lambda x, places: rotated(x, places[..., None] * world.frequencies, world.layout, world.lengthened, start)
    )


@fresh(
    "both, value, raises if only a part of the head is rotated",
    accept=[
        near(RAISES, rf"{PARTIAL}|{SHARE}|size|shape|dimension|width|expand|\bdim\b"),
        r"RuntimeError|expanded size",
    ],
    refuse="that values are wrong, without an error",
    when=partial,
)
def partial_raises(world):
    """Every call raises a RuntimeError about sizes that don't match, because a table for the rotary part is applied to
    the whole head.

    Source: vLLM Ascend, pull request 6581 (rotary_dim isn't read from the configuration), 5 February 2026.
    """

    def rotation(q, k, positions):
        raise RuntimeError(f"The expanded size of the tensor ({world.dim}) must match the size ({world.rotary_dim})")

    return rotation


@fresh(
    "both, value, raises",
    accept=[near(RAISES, r"size|shape|dimension|width|broadcast|every|all|call|match"), r"RuntimeError|must match"],
    refuse="that values are wrong, without an error",
    when=pairs,
)
def half_times_whole(world):
    """Every call raises a RuntimeError about sizes: one half of the entries is multiplied by a table for all of them.

    Source: OpenArch, issue 13 (invalid forward pass of the rotation for Llama 3), 16 September 2026.
    """

    def one(x, angles):
        first, second = rope.split(x, world.layout)
        wide = torch.cat((angles, angles), -1)
        return first * wide.cos() + torch.cat((-second, first), -1) * wide.sin()

    return full_width(world, one)


# --- Sound functions in unusual styles ---


def part(world, x, turned):
    """Apply ``turned`` to the rotary entries in float64, and scale them by ``world.lengthened``. Keep all other
    entries."""
    inner = turned(x[..., : world.rotary_dim].double()) * world.lengthened
    return torch.cat((inner.to(x.dtype), x[..., world.rotary_dim :]), -1)


@right
def three_products(world):
    """The product of two complex numbers with three multiplications instead of four."""

    def turned(first, second, angles):
        cos, sin = angles.cos(), angles.sin()
        common = cos * (first + second)
        return common - second * (cos + sin), common + first * (sin - cos)

    return unusual(world, turned)


@right
def powers_by_squaring(world):
    """Compute the rotation by a position as a power of the rotation by one position, by repeated squaring."""

    def one(x, places):
        whole = torch.floor(places.abs())
        angles = (places - torch.sign(places) * whole)[..., None] * world.frequencies
        result = torch.polar(torch.ones_like(angles), angles)
        step = torch.polar(torch.ones_like(world.frequencies), world.frequencies)
        side, left = torch.sign(places)[..., None], whole
        while bool((left > 0).any()):
            power = torch.where(side < 0, step.conj(), step)
            result = torch.where(torch.remainder(left, 2)[..., None] > 0, result * power, result)
            step, left = step * step, torch.floor(left / 2)

        def turned(inner):
            product = torch.complex(*rope.split(inner, world.layout)) * result
            return rope.join(product.real, product.imag, world.layout)

        return part(world, x, turned)

    return by(one)


@right
def table_of_distinct_positions(world):
    """A table with one row for each distinct position of the call, from which every token gathers its row."""

    def one(x, places):
        distinct, row = torch.unique(places, return_inverse=True)
        cos, sin = (
            torch.stack([f(position * world.frequencies) for position in distinct])[row] for f in (torch.cos, torch.sin)
        )
        return part(world, x, lambda inner: rope.join(*turn(*rope.split(inner, world.layout), cos, sin), world.layout))

    return by(one)


@right
def half_angle_tangent(world):
    """Cosine and sine from the tangent of half the angle."""

    def turned(first, second, angles):
        t = torch.tan(angles / 2)
        return turn(first, second, (1 - t * t) / (1 + t * t), 2 * t / (1 + t * t))

    return unusual(world, turned)


@right
def one_skew_matrix(world):
    """x cos + xJ sin, with a constant skew matrix J as wide as the head, and angle 0 where nothing rotates."""
    dim, width = world.dim, world.rotary_dim
    first, second = rope.split(torch.arange(width), world.layout)
    skew = torch.zeros(dim, dim, dtype=torch.float64)
    skew[second, first], skew[first, second] = -1, 1

    def one(x, places):
        angles = torch.zeros(*places.shape, dim, dtype=torch.float64)
        angles[..., first] = angles[..., second] = places[..., None] * world.frequencies
        scale = torch.ones(dim, dtype=torch.float64)
        scale[:width] = world.lengthened
        x64 = x.double()
        return ((x64 * angles.cos() + x64 @ skew * angles.sin()) * scale).to(x.dtype)

    return by(one)


@right
def head_by_head(world):
    """Complex numbers in torch, one head after another, with the heads stacked at the end."""

    def one(x, places):
        places = places[:, 0] if places.ndim == 3 else places
        unit = torch.polar(
            torch.full_like(places[..., None], world.lengthened).expand(*places.shape, world.rotary_dim // 2).clone(),
            places[..., None] * world.frequencies,
        )
        heads = []
        for head in x.unbind(1):
            product = torch.complex(*rope.split(head[..., : world.rotary_dim].double(), world.layout)) * unit
            inner = rope.join(product.real, product.imag, world.layout)
            heads.append(torch.cat((inner.to(x.dtype), head[..., world.rotary_dim :]), -1))
        return torch.stack(heads, 1)

    return by(one)


@right
def pair_by_pair(world):
    """A loop over pairs in NumPy that writes each rotated pair into a copy of the vectors."""
    first, second = (part.tolist() for part in rope.split(torch.arange(world.rotary_dim), world.layout))

    def one(x, places):
        source, result = x.double().numpy(), x.clone().numpy()
        for a, b, theta in zip(first, second, world.frequencies.tolist(), strict=True):
            angle = numpy.asarray(places * theta)
            cos, sin = world.lengthened * numpy.cos(angle), world.lengthened * numpy.sin(angle)
            result[..., a] = source[..., a] * cos - source[..., b] * sin
            result[..., b] = source[..., a] * sin + source[..., b] * cos
        return torch.from_numpy(result)

    return by(one)


@right
def phase_in_turns(world):
    """Compute angles in turns, drop the whole turns, and compute the sine as the cosine of a quarter turn less."""

    def turned(first, second, angles):
        turns = angles / (2 * math.pi)
        fraction = turns - torch.round(turns)
        cos, sin = torch.cos(2 * math.pi * fraction), torch.cos(2 * math.pi * (fraction - 0.25))
        return turn(first, second, cos, sin)

    return unusual(world, turned)


@right
def steps_added_up(world):
    """Compute each token's angle from the previous token's angle, by adding the angle between the two positions."""

    def one(x, places):
        steps = torch.diff(places, prepend=torch.zeros_like(places[..., :1]))
        return rotated(x, torch.cumsum(steps[..., None] * world.frequencies, -2), world.layout, world.lengthened)

    return by(one)


@right
def row_by_row(world):
    """Every row of the batch is rotated on its own, from the last to the first, with q and k in one list of heads."""

    def rotation(q, k, positions):
        places = places_of(q, k, positions)
        rows = [None] * q.shape[0]
        for row in reversed(range(q.shape[0])):
            own = places[row, 0] if places.ndim == 3 else places
            flat = [*q[row], *k[row]]
            turned = [alone(head[None, None], own, world)[0, 0] for head in flat]
            rows[row] = torch.stack(turned[: q.shape[1]]), torch.stack(turned[q.shape[1] :])
        return torch.stack([row[0] for row in rows]), torch.stack([row[1] for row in rows])

    return rotation
