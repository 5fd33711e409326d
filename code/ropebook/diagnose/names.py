"""The names and meanings of all mistakes that a diagnosis can report, and the part of a rotation each one concerns."""

from __future__ import annotations

# Grouped by the part of the rotation that is wrong.
_NAMES = {
    "tensors": {
        "nothing_turns": "q and k are returned unchanged, or every token is rotated identically",
        "query_only": "q is rotated, but k is not",
        "key_only": "k is rotated, but q is not",
        "key_value": "k and v are rotated, but q is not",
        "rotated_values": "v is turned as well",
        "turned_twice": "q, k or both are rotated twice",
        "opposite_signs": "q and k are rotated in opposite directions",
        "two_bases": "q and k have different frequencies",
        "two_layouts": "q and k are paired differently",
        "crossed": "q and k are swapped, or one is computed from the other",
        "raises": "a call that every rotation must support raises an error",
        "other_shape": "the result has the wrong shape, or is not a vector",
        "other_type": "the result contains something other than real numbers",
        "not_finite": "finite vectors are turned into NaN or infinity",
        "random": "the same call returns different results by chance",
        "changed_inputs": "the function overwrites the vectors or positions passed to it",
        "other_dtype": "vectors of another type are rotated differently",
        "memory_layout": "vectors with another memory layout are rotated differently",
    },
    "heads and rows": {
        "other_heads": "heads are rotated differently",
        "other_rows": "rows of a batch are rotated differently, or not by their own positions",
        "ignored_rows": "every row is turned by the positions of the first",
        "moved": "a vector passed at one row, head and token is returned at another",
        "wrong_axis": "positions run along the heads, or along another axis",
    },
    "positions": {
        "ignored_positions": "positions are ignored",
        "ignored_start": "a sequence with a later start is not rotated as it would be within a longer one",
        "ignored_gaps": "only the first of the positions is used",
        "stale": "a table from an earlier call is reused, or a call changes later ones",
        "one_token": "a token passed on its own is rotated differently",
        "one_position": "tokens passed together are rotated by other positions than on their own",
        "shifted_key": "k and q count positions from different starts",
        "clamped": "from some position on, all tokens are rotated identically",
        "wrapped": "positions begin again",
        "half_positions": "positions are rounded to a half-precision type",
        "other_positions": "positions are misread: in steps, from the end, …",
        "depends_on_text": "a token is rotated differently in a longer or shorter sequence",
        "too_short": "positions within the declared length raise an error",
        "other_far": "far positions are wrong in some other way",
    },
    "frequencies": {
        "other_base": "the base is wrong",
        "halved_dim": "the exponent is computed with half the width",
        "doubled_dim": "the factor 2 is missing in the exponent",
        "wider_exponent": "the exponent uses the width of the head, not that of the rotated part",
        "shifted_exponent": "the exponent starts too early or too late",
        "growing_frequencies": "the exponent lacks its minus sign",
        "reversed_frequencies": "the slowest pair comes first",
        "repeated_frequencies": "half of the frequencies occur twice, and the other half not at all",
        "uneven_frequencies": "the frequencies follow no known rule",
        "half_frequencies": "frequencies are rounded to a half-precision type",
        "still_pairs": "pairs that should rotate do not",
        "unscaled": "the declared scaling is missing",
        "other_scaling": "the scaling is wrong",
        "faster": "every pair rotates too fast, all by the same factor",
        "degrees": "angles are taken for degrees",
        "clockwise": "pairs rotate in the wrong direction",
    },
    "angles and tables": {
        "half_angles": "angles are rounded to a half-precision type",
        "half_vectors": "for half-precision vectors, positions or angles are rounded as well",
        "drift": "angles drift from the right ones as positions grow",
        "rounded_result": "the result is rounded to a half-precision type",
        "coarse_table": "cosines and sines are rounded to a few digits",
        "bf16_table": "cosines and sines are rounded to bfloat16",
        "fp16_table": "cosines and sines are rounded to float16",
        "turned_start": "pairs are already rotated at position 0",
        "uneven_angles": "angles are not proportional to the position",
        "swapped_cos_sin": "cosine and sine are swapped",
        "mixed_tables": "the cosine and sine of a pair belong to different angles",
        "missing_sin": "the sine is missing",
        "missing_cos": "the cosine is missing",
    },
    "pairs": {
        "other_layout": "the pairs belong to the other layout",
        "own_layout": "the pairs belong to no known layout",
        "swapped_layout": "tables are spread for one layout, and the quarter turn is that of the other",
        "other_order": "entries are returned in another order",
        "missing_minus": "the quarter turn lacks its minus sign",
        "no_pairs": "an entry mixes with several others, or with a wrong one",
        "overwritten": "the second entry of a pair is computed from the first one after that was rotated",
        "half_turned": "only one entry of each pair is rotated correctly",
        "uncrossed": "the quarter turn changes signs but swaps no entries",
        "other_part": "the wrong part of the head is rotated",
        "other_width": "more or fewer entries are rotated than declared",
        "other_rest": "entries that should be left alone are changed",
        "unknown": "the entries of pairs are mixed in an unknown way",
    },
    "lengths": {
        "longer": "vectors are returned longer than they were",
        "shorter": "vectors are returned shorter than they were",
        "lengths": "lengths change with the position",
        "uneven_lengths": "each pair is lengthened by a different factor",
        "zeros": "vectors are returned as zeros",
        "added": "the input is added to the rotated vector",
        "not_linear": "the map is not linear or not applied to each vector alike: normalised, clipped, …",
        "other_scores": "scores differ from the reference, and nothing else was found",
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
