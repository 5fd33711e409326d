"""The names of all mistakes that a diagnosis can report, their meanings, and the part of a rotation they concern."""

from __future__ import annotations

# Grouped by the part of the rotation that is wrong.
_NAMES = {
    "tensors": {
        "nothing_turns": "q and k come back as they went in, or are turned alike everywhere",
        "query_only": "q is turned, k is not",
        "key_only": "k is turned, q is not",
        "key_value": "k and v are turned, q is not",
        "rotated_values": "v is turned as well",
        "turned_twice": "q, k or both are turned twice",
        "opposite_signs": "q turns one way, k the other",
        "two_bases": "q and k have frequencies of their own",
        "two_layouts": "q and k have pairs of their own",
        "crossed": "q and k are exchanged, or one is made of the other",
        "raises": "a call that a rotation has to answer raises an error",
        "other_shape": "what comes back has another shape, or is no vector",
        "other_type": "what comes back is no real number",
        "not_finite": "finite vectors come back as NaN or infinity",
        "random": "the same call gives another result each time, by chance",
        "changed_inputs": "vectors or positions that are given are written over",
        "other_dtype": "vectors of another type are turned otherwise",
        "memory_layout": "vectors that lie otherwise in memory are turned otherwise",
    },
    "heads and rows": {
        "other_heads": "heads are not turned alike",
        "other_rows": "rows of a batch are not turned alike, or not by their positions",
        "ignored_rows": "every row is turned by the positions of the first",
        "moved": "what goes in at one row, head and token comes back at another",
        "wrong_axis": "positions run along the heads, or along another axis",
    },
    "positions": {
        "ignored_positions": "positions are not read",
        "ignored_start": "a text that starts later is not turned as it is in a longer one",
        "ignored_gaps": "of the positions only the first is read",
        "stale": "a table of an earlier call is used again, or a call changes later ones",
        "one_token": "a token that comes alone is turned otherwise",
        "one_position": "tokens that come together are turned by other positions than alone",
        "shifted_key": "k counts positions from another one than q",
        "clamped": "from some position on all are turned alike",
        "wrapped": "positions begin again",
        "half_positions": "positions are rounded to a half type",
        "other_positions": "positions are read as others: in steps, from the end, …",
        "depends_on_text": "a token is turned otherwise in a text of another length",
        "too_short": "positions within the length raise an error",
        "other_far": "far positions are wrong in some other way",
    },
    "frequencies": {
        "other_base": "the base is another one",
        "halved_dim": "half the width is in the exponent",
        "doubled_dim": "the factor 2 is missing in the exponent",
        "wider_exponent": "the width of the head is in the exponent, not that of the part that turns",
        "shifted_exponent": "the exponent begins too early or too late",
        "growing_frequencies": "the exponent has no minus",
        "reversed_frequencies": "the slowest pair is the first",
        "repeated_frequencies": "frequencies come twice, and half of them not at all",
        "uneven_frequencies": "frequencies are those of no rule",
        "half_frequencies": "frequencies are rounded to a half type",
        "still_pairs": "pairs stand still that should turn",
        "unscaled": "the declared scaling is missing",
        "other_scaling": "the scaling is another one",
        "faster": "every pair turns too fast, by one factor",
        "degrees": "angles are taken for degrees",
        "clockwise": "pairs turn the other way",
    },
    "angles and tables": {
        "half_angles": "angles are rounded to a half type",
        "half_vectors": "with vectors of a half type, positions or angles are rounded as well",
        "drift": "angles drift from the right ones as positions grow",
        "rounded_result": "what comes back is rounded to a half type",
        "coarse_table": "cosines and sines are rounded to few digits",
        "bf16_table": "cosines and sines are rounded to bfloat16",
        "fp16_table": "cosines and sines are rounded to float16",
        "turned_start": "pairs are turned at position 0",
        "uneven_angles": "angles are not proportional to the position",
        "swapped_cos_sin": "cosine and sine are exchanged",
        "mixed_tables": "the cosine and the sine of a pair are not those of one angle",
        "missing_sin": "the sine is missing",
        "missing_cos": "the cosine is missing",
    },
    "pairs": {
        "other_layout": "the pairs are those of the other layout",
        "own_layout": "the pairs are those of no layout",
        "swapped_layout": "tables are spread for one layout, the quarter turn is that of the other",
        "other_order": "entries come back in another order",
        "missing_minus": "the quarter turn has no minus",
        "no_pairs": "an entry mixes with several others, or with a wrong one",
        "overwritten": "the second entry of a pair is made of the turned first one",
        "half_turned": "only one entry of each pair is turned as it should be",
        "uncrossed": "the quarter turn changes signs and exchanges nothing",
        "other_part": "another part of the head turns",
        "other_width": "more or fewer entries turn than were declared",
        "other_rest": "entries that should pass through come back changed",
        "unknown": "pairs are mixed in a way that has no name",
    },
    "lengths": {
        "longer": "vectors come back longer",
        "shorter": "vectors come back shorter",
        "lengths": "lengths change with the position",
        "uneven_lengths": "pairs are lengthened by factors of their own",
        "zeros": "vectors come back as zeros",
        "added": "what went in is added to what is turned",
        "not_linear": "vectors are not turned one by one alike: normalised, clipped, …",
        "other_scores": "scores are off the reference's, and nothing else was found",
    },
}

NAMES = {
    name: meaning for names in _NAMES.values() for name, meaning in names.items()
}
PARTS = tuple(_NAMES)


def part(name: str) -> str:
    """Return the part of a rotation that a mistake concerns.

    >>> part("degrees")
    'frequencies'
    """
    return next(one for one, names in _NAMES.items() if name in names)
