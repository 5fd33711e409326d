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
           "The file has both rope_scaling and rope_parameters. Transformers reads rope_scaling and drops the other.", of="file"),
    _doubt("two-dictionaries-by-layer", "suspicious", "mixed_by_layer",
           "For {family} the dictionary rope_parameters is given for each type of layer, and rope_scaling changes it only for layers "
           "without a window. What this file's mixture becomes is not computed here.", stops=True, of="file"),
    _doubt("no-model-type", "unknown", ["missing", "model_type"],
           "The file has no model_type, so which code reads it, and with it the layout, is unknown.", of="file"),
    _doubt("unknown-model-type", "unknown", ["and", ["given", "model_type"], ["not", "known_family"], ["missing", "stranger"]],
           "The model type “{model_type}” is not in this reader's table, so its layout, and what its code assumes for missing "
           "keys, are unknown. Frequencies are computed as transformers' common functions do.", of="file"),
    _doubt("heads-do-not-divide", "wrong", [">", ["%", "width", "heads"], 0],
           "hidden_size {width} is not a multiple of {heads} heads, so the file does not fit together.", stops=True, of="file"),
    _doubt("no-head-dim", "unknown", ["and", ["missing", "head_dim", "stranger"]],
           "The file does not say how wide a head is: it needs head_dim, or hidden_size and num_attention_heads.", stops=True, of="file"),
    _doubt("head-too-wide", "wrong", [">", "head_dim", 16384],
           "A head of {head_dim} entries is wider than any that exists.", stops=True, of="file"),
    _doubt("no-maximum", "unknown", ["and", ["missing", "maximum", "stranger"]],
           "The file names no max_position_embeddings, so the lengths are unknown.", of="file"),
    _doubt("window-off", "suspicious", ["and", ["given", "given_window"], "window_off"],
           "The file gives a sliding_window of {given_window}, but use_sliding_window does not switch it on: no layer has a window.", of="file"),
    _doubt("window-too-wide", "suspicious", [">=", "window", "maximum"],
           "The attention window ({window} tokens) is no shorter than max_position_embeddings ({maximum}), so it cuts nothing off.", of="file"),
    _doubt("layer-list", "wrong", ["and", ["given", "layer_types", "layers"], ["not", ["near", ["count", "layer_types"], "layers"]]],
           "The list layer_types is not as long as the {layers} layers of num_hidden_layers.", stops=True, of="file"),
    _doubt("rope-list", "wrong", ["<", ["count", "no_rope_layers"], "layers"],
           "The list no_rope_layers is shorter than the {layers} layers of num_hidden_layers.", stops=True, of="file"),
    _doubt("two-lengths", "suspicious", ["and", ["given", "file_original", "rope_original"], ["not", ["near", "file_original", "rope_original"]]],
           "original_max_position_embeddings is {file_original} beside the dictionary and {rope_original} in it. Transformers takes the first."),
    _doubt("original-assumed", "unknown", ["and", _is("kind", *WITH_ORIGINAL), ["given", "assumed_original"], ["missing", "file_original", "rope_original"]],
           "The file gives no original length. Transformers assumes {assumed_original} for {family}; whether that is right for this model is "
           "unknown."),
    _doubt("nested-without-layers", "wrong", "stray_layers",
           "The scaling is given for each type of layer, but for “{part}” this model has no layers that transformers would look up there.", stops=True),
    _doubt("types-differ", "suspicious", "types_differ",
           "type says “{old_type}” and rope_type “{rope_type}”. Transformers reads rope_type."),
    _doubt("unknown-rope-type", "wrong", ["and", ["given", "kind"], ["not", _is("kind", *KINDS)]],
           "The rope type “{kind}” is none of those that transformers has. This reader does not know its frequencies.", stops=True),
    _doubt("type-not-taken", "wrong", "type_not_taken",
           "The code of {family} in transformers does not take the rope type “{kind}”.", stops=True),
    _doubt("scaling-assumed", "unknown", "scaling_assumed",
           "The file has no scaling, but transformers' code for {family} then assumes the one of its first checkpoint. Which one this model "
           "was made for is unknown.", stops=True),
    _doubt("no-base", "unknown", ["missing", "base"],
           "The file gives no base (rope_theta), and for this model type this reader knows no default. Transformers' is 10,000 unless "
           "the model's code has its own.", stops=True),
    _doubt("base-too-small", "wrong", ["<=", "base", 1],
           "With a base of {base} the later pairs would not be slower than the first.", stops=True),
    _doubt("unusual-base", "suspicious", "unusual_base",
           "A base of {base} is unusual for {family}. Published checkpoints have {usual}. It may be right, if the model was trained with it."),
    _doubt("rotary-dim", "wrong", ["or", [">", ["%", "rotary_dim", 2], 0], ["<", "rotary_dim", 2], [">", "rotary_dim", "head_dim"]],
           "{rotary_dim} of {head_dim} entries of each head would rotate. It must be an even number from 2 to {head_dim}, because entries rotate in pairs.", stops=True),
    _doubt("share-unread", "suspicious", "share_unread",
           "The file says that a share of {told_fraction} of each head rotates. Transformers' code for {family} does not read that without "
           "a scaling: it rotates the whole head."),
    _doubt("head-dim-asked", "wrong", ["and", "asks_head_dim", ["missing", "given_head_dim"], _is("kind", "dynamic", "yarn", "longrope")],
           "For {family} with the rope type {kind}, transformers 5.23.0 fails unless the file gives head_dim, here {head_dim}.", stops=True),
    _doubt("no-factor", "wrong", ["and", _is("kind", "linear", "dynamic", "yarn", "llama3"), ["missing", "factor"]],
           "The rope type {kind} needs a factor, and the file gives none.", stops=True),
    _doubt("factor-below-one", "wrong", ["and", _is("kind", *KINDS), ["<", "factor", 1]],
           "A factor of {factor} would shorten the context. It must be at least 1; if 1/factor was meant, it is {inverse}.", stops=True),
    _doubt("factor-without-original", "wrong",
           ["and", _is("kind", *WITH_ORIGINAL), ["missing", "original_given"]],
           "The rope type {kind} needs original_max_position_embeddings, and the file does not give it. Transformers then takes "
           "max_position_embeddings, {maximum}, for the trained length. If that is the longer length, the wrong pairs are stretched."),
    _doubt("no-length", "wrong", ["and", _is("kind", "dynamic", *WITH_ORIGINAL), ["missing", "original"]],
           "The rope type {kind} needs the trained length, and the file gives none.", stops=True),
    _doubt("no-maximum-for-factor", "wrong", ["and", _is("kind", "longrope"), ["missing", "factor", "maximum"]],
           "LongRoPE's factor follows from two lengths, and max_position_embeddings is missing.", stops=True),
    _doubt("original-above-maximum", "wrong", [">", "original_given", "maximum"],
           "The original length, {original_given}, is above the maximum, {maximum}. One of them is wrong."),
    _doubt("longrope-shrinks", "wrong", ["and", _is("kind", "longrope"), ["missing", "factor"], [">", "original", "maximum"]],
           "LongRoPE's factor would be {maximum} / {original}, below 1.", stops=True),
    _doubt("original-equals-maximum", "suspicious", ["and", _is("kind", "llama3"), ["given", "original_given"], [">=", "original_given", "maximum"], ["not", [">", "original_given", "maximum"]]],
           "The original length and the maximum are both {maximum}, so the scaling is used where no longer text is allowed."),
    _doubt("original-not-read", "suspicious", ["and", _is("kind", "default", "linear", "dynamic", "proportional"), ["or", ["given", "file_original"], ["given", "rope_original"]],
            ["not", ["near", "original_given", "maximum"]]],
           "The file gives an original length of {original_given}, but with the rope type {kind} transformers does not read it."),
    _doubt("factor-and-lengths", "suspicious",
           ["and", _is("kind", "yarn"), [">", "maximum", "original_given"], ["not", ["near", ["*", "factor", "original_given"], "maximum"]]],
           "The factor is {factor}, but {maximum} / {original_given} is {implied}. Transformers takes the factor and warns."),
    _doubt("already-scaled", "suspicious",
           ["and", _is("kind", "linear", "dynamic"), ["given", "original_given"], [">", "maximum", "original_given"]],
           "A second scaling on a scaled model: max_position_embeddings, {maximum}, is already above the original {original_given}, and "
           "the factor {factor} starts from there."),
    _doubt("llama3-replaced", "suspicious",
           ["and", _is("model_type", "llama"), _is("kind", "linear", "dynamic", "yarn"), ["near", "base", 500000], [">=", "original", 131072]],
           "A second scaling on a scaled model: Llama models with base 500,000 and {original} tokens, those from 3.1 on, are published with "
           "rope type llama3, factor 8 or 32. This scaling replaces it, so their weights get other frequencies at every length."),
    _doubt("scaled-yarn", "suspicious",
           ["and", _is("kind", "yarn"), ["given", "low"]],
           "A second scaling on a scaled model: the dictionary mixes the keys of two rules, YaRN's and Llama 3.1's."),
    _doubt("dynamic-with-cache", "suspicious", ["and", _is("kind", "dynamic"), ["not", "cache_off"]],
           "Dynamic scaling with a key/value cache: beyond {original} tokens the base grows with the text, but cached keys keep the "
           "rotation of the moment they were computed. The scores then mix two bases."),
    _doubt("longrope-with-cache", "suspicious", ["and", _is("kind", "longrope"), ["not", "cache_off"], [">", "target", "original"]],
           "LongRoPE with a key/value cache: a text that grows past {original} tokens switches to the long list, and cached keys keep the short one."),
    _doubt("no-lists", "wrong", ["and", _is("kind", "longrope"), ["or", ["missing", "short_factors"], ["missing", "long_factors"]]],
           "LongRoPE needs the lists short_factor and long_factor, one number for each pair.", stops=True),
    _doubt("short-list", "wrong", ["and", ["given", "short_factors", "pairs"], ["not", ["near", ["count", "short_factors"], "pairs"]]],
           "The list short_factor has {short_count} entries for {pairs} pairs.", stops=True),
    _doubt("long-list", "wrong", ["and", ["given", "long_factors", "pairs"], ["not", ["near", ["count", "long_factors"], "pairs"]]],
           "The list long_factor has {long_count} entries for {pairs} pairs.", stops=True),
    _doubt("list-values", "wrong", ["and", _is("kind", "longrope"), ["<=", "least_in_lists", 0]],
           "The factors of LongRoPE must be above 0, and one of them is {least_in_lists}.", stops=True),
    _doubt("sections", "wrong", ["and", ["given", "sections", "pairs"], ["not", ["near", ["sum", "sections"], "pairs"]]],
           "The sections {sections} add up to {section_sum}, but {pairs} pairs rotate: some pair has no axis, or an axis no pair."),
    _doubt("bounds", "wrong", ["and", _is("kind", "yarn"), ["<=", "fast", "slow"]],
           "beta_fast is {fast} and beta_slow {slow}. The first must be the larger one, else the ramp runs backwards.", stops=True),
    _doubt("no-bounds", "wrong", ["and", _is("kind", "llama3"), ["or", ["missing", "low"], ["missing", "high"]]],
           "The rope type llama3 needs low_freq_factor and high_freq_factor.", stops=True),
    _doubt("frequency-bounds", "wrong", ["and", _is("kind", "llama3"), ["or", ["<=", "high", "low"], ["<=", "low", 0]]],
           "low_freq_factor is {low} and high_freq_factor {high}. The first must be above 0 and below the second.", stops=True),
    _doubt("ramp-backwards", "wrong", ["and", _is("kind", "yarn"), [">", "ramp_begin", "ramp_end"]],
           "YaRN's ramp would begin at pair {ramp_begin} and end at pair {ramp_end}: with these lengths and this base it runs backwards.", stops=True),
    _doubt("one-mscale", "suspicious", ["and", _is("kind", "yarn"), "one_mscale"],
           "Only one of mscale and mscale_all_dim is given (or one is 0). Transformers then ignores both."),
    _doubt("one-pair", "wrong", ["and", _is("kind", "dynamic", "yarn"), ["<=", "rotary_dim", 2]],
           "The rope type {kind} tells slow pairs from fast ones, and here only one pair rotates.", stops=True),
    _doubt("still-proportional", "wrong", ["and", _is("kind", "proportional"), ["<", "rotating_pairs", 1]],
           "No pair would rotate with a share of {fraction} of each head.", stops=True),
]  # fmt: skip

ALWAYS = {
    "bad-value": ("wrong", "{key} must be {allowed}, got {got}."),
    "other-kind": ("suspicious", "The key {key} is read by other rope types, but not by {kind}: it has no effect."),
    "unknown-rope-key": ("unknown", "The key {key} in {dictionary} is not known: neither to transformers' code for {kind} nor to this reader."),
    "unknown-key": ("unknown", "Keys that this reader does not know, so they may or may not concern positions: {keys}."),
    "other-name": ("suspicious", "The key {key} is another model type's name for something that this one calls {proper}: it has no effect here."),
}  # fmt: skip
"""Findings about individual keys and values: the level and the sentence of each."""

KINDS_OF_VALUES = {
    "whole": "a whole number from {least} to {most}",
    "number": "a number above {least}, at most {most}",
    "switch": "true or false",
    "text": "a text",
    "texts": "a list of texts",
    "wholes": "a list of whole numbers, none below 0",
    "numbers": "a list of numbers",
    "dictionary": "a dictionary",
}
"""A description of the values that each kind of fact allows."""
