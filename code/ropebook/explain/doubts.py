"""Doubts about a configuration, as data.

Each doubt has a condition and a sentence. The report prints the sentence if the condition holds.

``of`` says whether the doubt is about the whole "file" or about each "table" of
frequencies. ``level`` is "wrong", "suspicious" or "unknown". If a doubt ``stops`` the
computation, the report says that the frequencies are unknown.
"""

from __future__ import annotations

from ropebook.explain.facts import KINDS

SCALED = [kind for kind in KINDS if kind not in ("default", "proportional")]
"""Rope types that require a factor. LongRoPE can derive it from the two lengths
instead."""
WITH_ORIGINAL = ["yarn", "llama3", "longrope"]
"""Rope types that use the original length."""


def _doubt(
    name: str,
    level: str,
    when: object,
    says: str,
    stops: bool = False,
    of: str = "table",
) -> dict[str, object]:
    return {
        "name": name,
        "level": level,
        "when": when,
        "says": says,
        "stops": stops,
        "of": of,
    }


def _is(fact: str, *values: str) -> list[object]:
    return ["among", fact, list(values)]


DOUBTS = [
    _doubt("two-dictionaries", "suspicious", "two_dictionaries",
           "The file has both rope_scaling and rope_parameters. Transformers reads rope_scaling and ignores the other.", of="file"),
    _doubt("two-dictionaries-by-layer", "suspicious", "mixed_by_layer",
           "For {family}, rope_parameters contains a dictionary for each type of layer, and rope_scaling changes only the one for layers "
           "without a window. The result of mixing the two, as in this file, is not computed here.", stops=True, of="file"),
    _doubt("no-model-type", "unknown", ["missing", "model_type"],
           "The file has no model_type, so it is unknown which code reads it, and which layout that code uses.", of="file"),
    _doubt("unknown-model-type", "unknown", ["and", ["given", "model_type"], ["not", "known_family"], ["missing", "stranger"]],
           "The model type “{model_type}” is not in this program's table, so its layout and its defaults for missing keys are "
           "unknown. Frequencies are computed as by transformers' common functions.", of="file"),
    _doubt("heads-do-not-divide", "wrong", [">", ["%", "width", "heads"], 0],
           "hidden_size is {width}, which is not a multiple of the number of heads, {heads}. The file contradicts itself.", stops=True, of="file"),
    _doubt("no-head-dim", "unknown", ["and", ["missing", "head_dim", "stranger"]],
           "The file does not say how wide a head is. It needs head_dim, or hidden_size and num_attention_heads.", stops=True, of="file"),
    _doubt("head-too-wide", "wrong", [">", "head_dim", 16384],
           "A head of {head_dim} entries would be wider than in any existing model.", stops=True, of="file"),
    _doubt("no-maximum", "unknown", ["and", ["missing", "maximum", "stranger"]],
           "The file gives no max_position_embeddings, so the lengths are unknown.", of="file"),
    _doubt("window-off", "suspicious", ["and", ["given", "given_window"], "window_off"],
           "The file gives a sliding_window of {given_window}, but use_sliding_window does not switch it on: no layer has a window.", of="file"),
    _doubt("window-too-wide", "suspicious", [">=", "window", "maximum"],
           "The attention window ({window} tokens) is no shorter than max_position_embeddings ({maximum}), so it has no effect.", of="file"),
    _doubt("layer-list", "wrong", ["and", ["given", "layer_types", "layers"], ["not", ["near", ["count", "layer_types"], "layers"]]],
           "The list layer_types must have one entry for each of the {layers} layers in num_hidden_layers, but its length differs.", stops=True, of="file"),
    _doubt("rope-list", "wrong", ["<", ["count", "no_rope_layers"], "layers"],
           "The list no_rope_layers has fewer entries than there are layers: num_hidden_layers is {layers}.", stops=True, of="file"),
    _doubt("two-lengths", "suspicious", ["and", ["given", "file_original", "rope_original"], ["not", ["near", "file_original", "rope_original"]]],
           "original_max_position_embeddings is {file_original} outside the dictionary and {rope_original} inside it. Transformers uses the former."),
    _doubt("original-assumed", "unknown", ["and", _is("kind", *WITH_ORIGINAL), ["given", "assumed_original"], ["missing", "file_original", "rope_original"]],
           "The file gives no original length. Transformers assumes {assumed_original} for {family}; whether that is right for this model is "
           "unknown."),
    _doubt("nested-without-layers", "wrong", "stray_layers",
           "The scaling is given for each type of layer, but transformers looks up no layers of this model under “{part}”.", stops=True),
    _doubt("types-differ", "suspicious", "types_differ",
           "type says “{old_type}” and rope_type “{rope_type}”. Transformers reads rope_type."),
    _doubt("unknown-rope-type", "wrong", ["and", ["given", "kind"], ["not", _is("kind", *KINDS)]],
           "Transformers has no rope type “{kind}”, so its frequencies are unknown.", stops=True),
    _doubt("type-not-taken", "wrong", "type_not_taken",
           "In transformers, the code of {family} does not accept the rope type “{kind}”.", stops=True),
    _doubt("scaling-assumed", "unknown", "scaling_assumed",
           "The file has no scaling. In that case, transformers' code for {family} assumes the scaling of its first checkpoint. Which "
           "scaling this model was made for is unknown.", stops=True),
    _doubt("no-base", "unknown", ["missing", "base"],
           "The file gives no base (rope_theta), and the default for this model type is unknown. In transformers it is 10,000 unless "
           "the model's code has its own.", stops=True),
    _doubt("base-too-small", "wrong", ["<=", "base", 1],
           "With a base of {base}, the later pairs would not be slower than the first one.", stops=True),
    _doubt("unusual-base", "suspicious", "unusual_base",
           "A base of {base} is unusual for {family}, but may be right if the model was trained with it. Published bases: {usual}."),
    _doubt("rotary-dim", "wrong", ["or", [">", ["%", "rotary_dim", 2], 0], ["<", "rotary_dim", 2], [">", "rotary_dim", "head_dim"]],
           "Of the {head_dim} entries of each head, {rotary_dim} would rotate. The number must be even and from 2 to {head_dim}, because entries rotate in pairs.", stops=True),
    _doubt("share-unread", "suspicious", "share_unread",
           "The file says that a share of {told_fraction} of each head rotates. Without a scaling, transformers' code for {family} ignores "
           "that and rotates the whole head."),
    _doubt("head-dim-asked", "wrong", ["and", "asks_head_dim", ["missing", "given_head_dim"], _is("kind", "dynamic", "yarn", "longrope")],
           "For {family} with the rope type {kind}, transformers 5.23.0 fails unless the file gives head_dim, which is {head_dim} here.", stops=True),
    _doubt("no-factor", "wrong", ["and", _is("kind", "linear", "dynamic", "yarn", "llama3"), ["missing", "factor"]],
           "The rope type {kind} needs a factor, but the file gives none.", stops=True),
    _doubt("factor-below-one", "wrong", ["and", _is("kind", *KINDS), ["<", "factor", 1]],
           "A factor of {factor} would shorten the context. It must be at least 1; if 1/factor was meant, it is {inverse}.", stops=True),
    _doubt("factor-without-original", "wrong",
           ["and", _is("kind", *WITH_ORIGINAL), ["missing", "original_given"]],
           "The rope type {kind} needs original_max_position_embeddings, but the file does not give it. Transformers then uses "
           "max_position_embeddings, {maximum}, as the trained length. If that is actually the target length, the wrong pairs are stretched."),
    _doubt("no-length", "wrong", ["and", _is("kind", "dynamic", *WITH_ORIGINAL), ["missing", "original"]],
           "The rope type {kind} needs the trained length, but the file gives none.", stops=True),
    _doubt("no-maximum-for-factor", "wrong", ["and", _is("kind", "longrope"), ["missing", "factor", "maximum"]],
           "LongRoPE's factor is computed from two lengths, but max_position_embeddings is missing.", stops=True),
    _doubt("original-above-maximum", "wrong", [">", "original_given", "maximum"],
           "The original length, {original_given}, is above the maximum, {maximum}. One of them is wrong."),
    _doubt("longrope-shrinks", "wrong", ["and", _is("kind", "longrope"), ["missing", "factor"], [">", "original", "maximum"]],
           "LongRoPE's factor would be {maximum} / {original}, below 1.", stops=True),
    _doubt("original-equals-maximum", "suspicious", ["and", _is("kind", "llama3"), ["given", "original_given"], [">=", "original_given", "maximum"], ["not", [">", "original_given", "maximum"]]],
           "The original length and the maximum are both {maximum}, so the model is scaled although no longer text is allowed."),
    _doubt("original-not-read", "suspicious", ["and", _is("kind", "default", "linear", "dynamic", "proportional"), ["or", ["given", "file_original"], ["given", "rope_original"]],
            ["not", ["near", "original_given", "maximum"]]],
           "The file gives an original length of {original_given}, but with the rope type {kind} transformers does not read it."),
    _doubt("factor-and-lengths", "suspicious",
           ["and", _is("kind", "yarn"), [">", "maximum", "original_given"], ["not", ["near", ["*", "factor", "original_given"], "maximum"]]],
           "The factor is {factor}, but {maximum} / {original_given} is {implied}. Transformers uses the factor and shows a warning."),
    _doubt("already-scaled", "suspicious",
           ["and", _is("kind", "linear", "dynamic"), ["given", "original_given"], [">", "maximum", "original_given"]],
           "A second scaling on a scaled model: max_position_embeddings, {maximum}, is already above the original {original_given}, and "
           "the factor {factor} starts from there."),
    _doubt("llama3-replaced", "suspicious",
           ["and", _is("model_type", "llama"), _is("kind", "linear", "dynamic", "yarn"), ["near", "base", 500000], [">=", "original", 131072]],
           "A second scaling on a scaled model: Llama models with base 500,000 and {original} tokens (3.1 and later) are published with "
           "rope type llama3 and factor 8 or 32. This scaling replaces theirs, so their weights get other frequencies at every length."),
    _doubt("scaled-yarn", "suspicious",
           ["and", _is("kind", "yarn"), ["given", "low"]],
           "A second scaling on a scaled model: the dictionary mixes the keys of two rules, YaRN's and Llama 3.1's."),
    _doubt("dynamic-with-cache", "suspicious", ["and", _is("kind", "dynamic"), ["not", "cache_off"]],
           "Dynamic scaling with a key/value cache: beyond {original} tokens the base grows with the text, but cached keys keep the "
           "rotation with which they were stored. The scores then mix different bases."),
    _doubt("longrope-with-cache", "suspicious", ["and", _is("kind", "longrope"), ["not", "cache_off"], [">", "target", "original"]],
           "LongRoPE with a key/value cache: when a text grows past {original} tokens, the long list is used, but cached keys were rotated with the short one."),
    _doubt("no-lists", "wrong", ["and", _is("kind", "longrope"), ["or", ["missing", "short_factors"], ["missing", "long_factors"]]],
           "LongRoPE needs the lists short_factor and long_factor, one number for each pair.", stops=True),
    _doubt("short-list", "wrong", ["and", ["given", "short_factors", "pairs"], ["not", ["near", ["count", "short_factors"], "pairs"]]],
           "The list short_factor has {short_count} entries for {pairs} pairs.", stops=True),
    _doubt("long-list", "wrong", ["and", ["given", "long_factors", "pairs"], ["not", ["near", ["count", "long_factors"], "pairs"]]],
           "The list long_factor has {long_count} entries for {pairs} pairs.", stops=True),
    _doubt("list-values", "wrong", ["and", _is("kind", "longrope"), ["<=", "least_in_lists", 0]],
           "The factors of LongRoPE must be above 0, but one of them is {least_in_lists}.", stops=True),
    _doubt("sections", "wrong", ["and", ["given", "sections", "pairs"], ["not", ["near", ["sum", "sections"], "pairs"]]],
           "The sections {sections} add up to {section_sum}, but {pairs} pairs rotate: some pairs have no axis, or some axes lack pairs."),
    _doubt("bounds", "wrong", ["and", _is("kind", "yarn"), ["<=", "fast", "slow"]],
           "beta_fast is {fast} and beta_slow {slow}. The first must be larger, because otherwise the ramp runs backwards.", stops=True),
    _doubt("no-bounds", "wrong", ["and", _is("kind", "llama3"), ["or", ["missing", "low"], ["missing", "high"]]],
           "The rope type llama3 needs low_freq_factor and high_freq_factor.", stops=True),
    _doubt("frequency-bounds", "wrong", ["and", _is("kind", "llama3"), ["or", ["<=", "high", "low"], ["<=", "low", 0]]],
           "low_freq_factor is {low} and high_freq_factor {high}. The first must be above 0 and below the second.", stops=True),
    _doubt("ramp-backwards", "wrong", ["and", _is("kind", "yarn"), [">", "ramp_begin", "ramp_end"]],
           "With these lengths and this base, YaRN's ramp would run backwards, from pair {ramp_begin} to pair {ramp_end}.", stops=True),
    _doubt("one-mscale", "suspicious", ["and", _is("kind", "yarn"), "one_mscale"],
           "Only one of mscale and mscale_all_dim is given, or one of them is 0. In that case, transformers ignores both."),
    _doubt("one-pair", "wrong", ["and", _is("kind", "dynamic", "yarn"), ["<=", "rotary_dim", 2]],
           "The rope type {kind} distinguishes slow pairs from fast ones, but here only one pair rotates.", stops=True),
    _doubt("still-proportional", "wrong", ["and", _is("kind", "proportional"), ["<", "rotating_pairs", 1]],
           "With a share of {fraction} of each head, no pair would rotate.", stops=True),
]  # fmt: skip

ALWAYS = {
    "bad-value": ("wrong", "{key} must be {allowed}, got {got}."),
    "other-kind": ("suspicious", "The key {key} is read by other rope types, but not by {kind}: it has no effect."),
    "unknown-rope-key": ("unknown", "Neither transformers' code for {kind} nor this program uses the key {key} in {dictionary}."),
    "unknown-key": ("unknown", "This program does not know the following keys, which may or may not concern positions: {keys}."),
    "other-name": ("suspicious", "The key {key} is another model type's name for {proper}, so it has no effect here."),
}  # fmt: skip
"""Findings about individual keys and values: the level and the sentence of each."""

KINDS_OF_VALUES = {
    "whole": "a whole number from {least} to {most}",
    "number": "a number above {least} and at most {most}",
    "switch": "true or false",
    "text": "a string",
    "texts": "a list of strings",
    "wholes": "a list of non-negative whole numbers",
    "numbers": "a list of numbers",
    "dictionary": "a dictionary",
}
"""A description of the values that each kind of fact allows."""
