"""The sentences of the report, as data. Each sentence has a subject and a condition.

For each subject, the report prints the sentences whose condition holds. The condition ``True`` is always met.
"""

from __future__ import annotations


def _is(fact: str, *values: str) -> list[object]:
    return ["among", fact, list(values)]


_STATIC = ["linear", "yarn", "llama3", "proportional"]

OF_FILE = [
    ("Model", ["given", "model_type"], "The model type is {model_type}."),
    ("Model", ["given", "part_name"], "The file describes a model with several parts. This report is about its language model, {part_name}."),
    ("Model", ["given", "stranger"], "Nothing rotates in this model. Its positions come from {stranger}."),
    ("Layout", _is("layout", "half"), "Pairs are half-split: entry i of the rotating part is paired with entry i + half. The file does not say so, but transformers' code for {family} works this way, and the weights match it."),
    ("Layout", _is("layout", "interleaved"), "Pairs are interleaved: entry 2i is paired with entry 2i + 1. The file does not say so, but transformers' code for {family} works this way, and the weights match it."),
    ("Layout", ["and", ["missing", "layout", "stranger"]], "Unknown. The layout depends on the weights and their code, and the file does not specify it."),
    ("Head", ["and", ["given", "head_dim"], ["not", ["given", "still_part"]]], "Each head has {head_dim} entries."),
    ("Head", ["given", "still_part", "rope_part"], "Queries and keys have {whole_head} entries per head: {rope_part} that rotate, and {still_part} that never do."),
    ("Layers", ["and", "every_layer", ["given", "layers"]], "All {layers} layers rotate."),
    ("Layers", ["and", ["not", "every_layer"], ["given", "rotating_layers"]], "{rotating_layers} of {layers} layers rotate. The other {still_layers} do not use positions at all."),
    ("Layers", ["and", ["missing", "rotating_layers", "stranger"]], "Unknown: the file does not say which layers rotate."),
    ("Windows", ["and", ["given", "windowed_layers", "layers", "window"], [">", "windowed_layers", 0]], "{windowed_layers} of {layers} layers attend to a window of {window} tokens, and the others to the whole text."),
    ("Windows", ["and", ["missing", "stranger"], ["or", ["missing", "window"], ["<=", "windowed_layers", 0]]], "According to the file, no layer has a window."),
    ("Windows", ["and", ["given", "window"], ["missing", "windowed_layers"]], "There is a window of {window} tokens. Which layers have it is unknown."),
]  # fmt: skip

OF_TABLE = [
    ("Share", ["and", ["given", "rotary_dim"], ["not", ["<", "rotary_dim", "head_dim"]], ["not", _is("kind", "proportional")], ["missing", "still_part"]], "The whole of each head rotates, in {pairs} pairs."),
    ("Share", ["and", ["<", "rotary_dim", "head_dim"]], "{rotary_dim} of {head_dim} entries rotate, in {pairs} pairs. The others are left unchanged."),
    ("Share", ["and", _is("kind", "proportional"), ["given", "pairs"]], "{rotating_pairs} of {pairs} pairs rotate: the fast ones. The others have frequency 0."),
    ("Share", ["and", ["given", "still_part", "rope_part"]], "The {rope_part} rotating entries form {pairs} pairs."),
    ("Base", ["and", ["given", "base"], "base_given"], "The base is {base}, as the file says."),
    ("Base", ["and", ["given", "base"], ["not", "base_given"]], "The file gives no base. Transformers uses {base} for {family}."),
    ("Base", ["missing", "base"], "Unknown."),
    ("Scaling", _is("kind", "default"), "No scaling: the frequencies are those of the base."),
    ("Scaling", _is("kind", "linear"), "Position interpolation ({dictionary}): every wavelength is stretched by {factor}."),
    ("Scaling", _is("kind", "dynamic"), "Dynamic NTK ({dictionary}): beyond {original} tokens the base grows with the length of the text. The factor is {factor}."),
    ("Scaling", _is("kind", "yarn"), "YaRN ({dictionary}) with factor {factor}: pairs with more than {fast} turns in {original} tokens are kept, pairs with fewer than {slow} are stretched by {factor}, and those in between are blended."),
    ("Scaling", _is("kind", "llama3"), "The rule of Llama 3.1 ({dictionary}) with factor {factor}: pairs with more than {high} turns in {original} tokens are kept, pairs with fewer than {low} are stretched by {factor}, and those in between are blended."),
    ("Scaling", _is("kind", "longrope"), "LongRoPE ({dictionary}): each pair has its own factor. One list is used up to {original} tokens, and another beyond that."),
    ("Scaling", _is("kind", "proportional"), "Proportional rotation ({dictionary}): the fast pairs keep their frequencies, and the slow ones do not rotate."),
    ("Scaling", ["and", ["given", "on_cos"], ["not", ["near", "on_cos", 1]]], "Cosines and sines are multiplied by {on_cos}, so the rotating part of each score is multiplied by its square."),
    ("Scaling", ["given", "sections"], "The pairs are divided among several axes: {sections}."),
    ("Scaling", ["given", "query_scaling"], "Queries beyond the original length are also scaled up (llama_4_scaling_beta is {query_scaling})."),
    ("Lengths", ["and", ["given", "trained", "target"], ["missing", "asked"], ["near", "trained", "target"]], "The file gives a single length, {trained} tokens. Whether the model was trained on texts of that length is unknown."),
    ("Lengths", ["and", ["given", "trained", "target"], ["missing", "asked"], ["not", ["near", "trained", "target"]]], "According to the file, the original length is {trained} tokens and the target length {target} tokens. Whether the model was trained further on long texts is unknown."),
    ("Lengths", ["and", ["given", "maximum"], ["missing", "trained"], _is("kind", "linear")], "Unknown. The trained length is either {maximum} tokens (and the target {longer}) or {shorter} tokens (and the target {maximum}): with the rope type linear, files are written both ways."),
    ("Lengths", ["and", ["missing", "trained"], ["not", _is("kind", "linear")]], "Unknown: the file does not give them."),
    ("Lengths", ["given", "trained", "asked"], "According to the file, the original length is {trained} tokens. Whether the model was trained further on long texts is unknown."),
    ("Lengths", ["given", "asked"], "You asked for {asked} tokens."),
    ("Lengths", ["given", "reach_window"], "No query in these layers sees further than the window of {reach_window} tokens, so that is the length that matters for angles."),
    ("Pairs", ["given", "shortest"], "Wavelengths run from {shortest} to {longest} tokens."),
    ("Pairs", ["given", "turned_pairs"], "{turned_pairs} of {pairs} pairs complete a turn within {near} tokens, so they have been at every angle."),
    ("Pairs", ["and", [">", "kept_pairs", 0]], "Pairs that complete no turn but stay within their training angles: {kept_pairs}."),
    ("Pairs", ["and", [">", "new_pairs", 0]], "Pairs that meet angles which no text of {near} tokens contains: {new_pairs}. Pair {most_pair} goes furthest, by {most_beyond} radians."),
    ("Pairs", ["and", ["given", "new_pairs"], ["<=", "new_pairs", 0]], "None of them meets a new angle within {far} tokens."),
    ("Pairs", ["and", ["missing", "turned_pairs"], ["given", "shortest"]], "Without the trained length, it is unknown which pairs meet new angles."),
    ("Pairs", ["and", "stopped"], "Unknown: mistakes in the file affect the frequencies."),
    ("Short texts", ["and", _is("kind", "default"), ["not", "stopped"]], "The frequencies are the same at every length."),
    ("Short texts", ["and", _is("kind", *_STATIC), ["not", "stopped"], [">", "stretched_pairs", 0]], "The scaling applies at every length, so {stretched_pairs} pairs are stretched for short texts too."),
    ("Short texts", ["and", _is("kind", *_STATIC), ["not", "stopped"], ["<=", "stretched_pairs", 0]], "The frequencies are the same at every length."),
    ("Short texts", ["and", _is("kind", "dynamic"), ["not", "stopped"]], "Nothing changes up to {original} tokens."),
    ("Short texts", ["and", _is("kind", "longrope"), ["not", "stopped"]], "For texts of up to {original} tokens, the short list is used."),
    ("Long texts", ["and", ["not", "stopped"], [">", "stretched_pairs", 0], ["given", "target"]], "At {target} tokens, {stretched_pairs} pairs are slowed down, by a factor of up to {largest_stretch}."),
    ("Long texts", ["and", ["not", "stopped"], ["<=", "stretched_pairs", 0], ["given", "target"]], "At {target} tokens, no pair is slowed down."),
    ("Long texts", ["and", ["not", "stopped"], ["missing", "target"]], "Unknown without the lengths."),
    ("Cache", ["and", _is("kind", "default", *_STATIC), ["not", "stopped"]], "Safe: the frequencies never change, so a cached key has the same rotation as one computed now."),
    ("Cache", ["and", _is("kind", "dynamic"), ["not", "stopped"]], "Not safe beyond {original} tokens: cached keys keep the rotation for a shorter text. Without a cache, each pass rotates all keys with the same frequencies. Transformers caches rotated keys."),
    ("Cache", ["and", _is("kind", "longrope"), ["not", "stopped"]], "Not safe for a text that grows past {original} tokens: cached keys were rotated with the short list. If the first pass is already longer, only the long list is used."),
]  # fmt: skip
