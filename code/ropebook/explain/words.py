"""The sentences of the report, as data. Each sentence has a subject and a condition.

For each subject, the report prints the sentences whose condition holds. The condition ``True`` is always met.
"""

from __future__ import annotations


def _is(fact: str, *values: str) -> list[object]:
    return ["among", fact, list(values)]


_STATIC = ["linear", "yarn", "llama3", "proportional"]

OF_FILE = [
    ("Model", ["given", "model_type"], "The model type is {model_type}."),
    ("Model", ["given", "part_name"], "The file describes a model of several parts. Read here is its language model, {part_name}."),
    ("Model", ["given", "stranger"], "Nothing rotates in this model. Its positions come from {stranger}."),
    ("Layout", _is("layout", "half"), "Pairs are half-split: entry i of the rotating part goes with entry i + half. The file does not say so. It is what transformers' code for {family} does, and the weights go with it."),
    ("Layout", _is("layout", "interleaved"), "Pairs are interleaved: entry 2i goes with entry 2i + 1. The file does not say so. It is what transformers' code for {family} does, and the weights go with it."),
    ("Layout", ["and", ["missing", "layout", "stranger"]], "Unknown. The layout belongs to the weights and their code, and the file does not name it."),
    ("Head", ["and", ["given", "head_dim"], ["not", ["given", "still_part"]]], "Each head has {head_dim} entries."),
    ("Head", ["given", "still_part", "rope_part"], "Queries and keys have {whole_head} entries per head: {rope_part} that rotate, and {still_part} that never do."),
    ("Layers", ["and", "every_layer", ["given", "layers"]], "All {layers} layers rotate."),
    ("Layers", ["and", ["not", "every_layer"], ["given", "rotating_layers"]], "{rotating_layers} of {layers} layers rotate. The other {still_layers} have no positions at all."),
    ("Layers", ["and", ["missing", "rotating_layers", "stranger"]], "Unknown: the file does not say which layers rotate."),
    ("Windows", ["and", ["given", "windowed_layers", "layers", "window"], [">", "windowed_layers", 0]], "{windowed_layers} of {layers} layers attend to a window of {window} tokens, the others to the whole text."),
    ("Windows", ["and", ["missing", "stranger"], ["or", ["missing", "window"], ["<=", "windowed_layers", 0]]], "No layer has a window, as far as the file says."),
    ("Windows", ["and", ["given", "window"], ["missing", "windowed_layers"]], "There is a window of {window} tokens. Which layers have it is unknown."),
]  # fmt: skip

OF_TABLE = [
    ("Share", ["and", ["given", "rotary_dim"], ["not", ["<", "rotary_dim", "head_dim"]], ["not", _is("kind", "proportional")], ["missing", "still_part"]], "All of each head rotates, in {pairs} pairs."),
    ("Share", ["and", ["<", "rotary_dim", "head_dim"]], "{rotary_dim} of {head_dim} entries rotate, in {pairs} pairs. The rest stay as they are."),
    ("Share", ["and", _is("kind", "proportional"), ["given", "pairs"]], "{rotating_pairs} of {pairs} pairs rotate, the fast ones. The others have frequency 0."),
    ("Share", ["and", ["given", "still_part", "rope_part"]], "The {rope_part} rotating entries form {pairs} pairs."),
    ("Base", ["and", ["given", "base"], "base_given"], "The base is {base}, as the file says."),
    ("Base", ["and", ["given", "base"], ["not", "base_given"]], "The file names no base. Transformers takes {base} for {family}."),
    ("Base", ["missing", "base"], "Unknown."),
    ("Scaling", _is("kind", "default"), "No scaling: the frequencies are those of the base."),
    ("Scaling", _is("kind", "linear"), "Position interpolation ({dictionary}): every wavelength is stretched by {factor}."),
    ("Scaling", _is("kind", "dynamic"), "Dynamic NTK ({dictionary}): beyond {original} tokens the base grows with the text, with factor {factor}."),
    ("Scaling", _is("kind", "yarn"), "YaRN ({dictionary}) with factor {factor}: pairs with more than {fast} turns in {original} tokens are kept, pairs with fewer than {slow} are stretched by {factor}, and those between are mixed."),
    ("Scaling", _is("kind", "llama3"), "The rule of Llama 3.1 ({dictionary}) with factor {factor}: pairs with more than {high} turns in {original} tokens are kept, pairs with fewer than {low} are stretched by {factor}, and those between are mixed."),
    ("Scaling", _is("kind", "longrope"), "LongRoPE ({dictionary}): each pair has its own factor, from one list up to {original} tokens and from another beyond."),
    ("Scaling", _is("kind", "proportional"), "Proportional rotation ({dictionary}): the fast pairs keep the frequencies of the whole head, the slow ones do not rotate."),
    ("Scaling", ["and", ["given", "on_cos"], ["not", ["near", "on_cos", 1]]], "Cosines and sines are multiplied by {on_cos}, so the rotating part of each score by its square."),
    ("Scaling", ["given", "sections"], "The pairs are shared out among several axes: {sections}."),
    ("Scaling", ["given", "query_scaling"], "Queries beyond the original length are made longer as well (llama_4_scaling_beta {query_scaling})."),
    ("Lengths", ["and", ["given", "trained", "target"], ["near", "trained", "target"]], "The file names one length, {trained} tokens. Whether all of it was seen in training is unknown."),
    ("Lengths", ["and", ["given", "trained", "target"], ["not", ["near", "trained", "target"]]], "The file names {trained} tokens as the original length, and texts of {target} tokens as the goal. Whether the model was trained further on long texts is unknown."),
    ("Lengths", ["and", ["given", "maximum"], ["missing", "trained"], _is("kind", "linear")], "Unknown. Before the scaling the length was either {maximum} tokens (then {longer} are the goal) or {shorter} (then {maximum} are): with the rope type linear, files are written both ways."),
    ("Lengths", ["and", ["missing", "trained"], ["not", _is("kind", "linear")]], "Unknown: the file does not name them."),
    ("Lengths", ["given", "asked"], "You asked for {asked} tokens."),
    ("Lengths", ["given", "reach_window"], "No query in these layers sees further than its window of {reach_window} tokens, so that is the length that counts for angles."),
    ("Pairs", ["given", "shortest"], "Wavelengths run from {shortest} to {longest} tokens."),
    ("Pairs", ["given", "turned_pairs"], "{turned_pairs} of {pairs} pairs complete a turn within {near} tokens, so they have been at every angle."),
    ("Pairs", ["and", [">", "kept_pairs", 0]], "Pairs that complete no turn, but stay within the angles of training: {kept_pairs}."),
    ("Pairs", ["and", [">", "new_pairs", 0]], "Pairs that meet angles which no text of {near} tokens contains: {new_pairs}. Pair {most_pair} goes furthest, by {most_beyond} radians."),
    ("Pairs", ["and", ["given", "new_pairs"], ["<=", "new_pairs", 0]], "None of them meets a new angle within {far} tokens."),
    ("Pairs", ["and", ["missing", "turned_pairs"], ["given", "shortest"]], "Which of them meet new angles is unknown without the trained length."),
    ("Pairs", ["and", "stopped"], "Unknown: the file has mistakes that decide the frequencies."),
    ("Short texts", ["and", _is("kind", "default"), ["not", "stopped"]], "The frequencies are the same at every length."),
    ("Short texts", ["and", _is("kind", *_STATIC), ["not", "stopped"], [">", "stretched_pairs", 0]], "The scaling is in force at every length, so short texts are read with the {stretched_pairs} stretched pairs too."),
    ("Short texts", ["and", _is("kind", *_STATIC), ["not", "stopped"], ["<=", "stretched_pairs", 0]], "The frequencies are the same at every length."),
    ("Short texts", ["and", _is("kind", "dynamic"), ["not", "stopped"]], "Nothing changes up to {original} tokens."),
    ("Short texts", ["and", _is("kind", "longrope"), ["not", "stopped"]], "Texts of up to {original} tokens take the short list."),
    ("Long texts", ["and", ["not", "stopped"], [">", "stretched_pairs", 0], ["given", "target"]], "At {target} tokens {stretched_pairs} pairs are slowed down, the most by {largest_stretch}."),
    ("Long texts", ["and", ["not", "stopped"], ["<=", "stretched_pairs", 0], ["given", "target"]], "At {target} tokens no pair is slowed down."),
    ("Long texts", ["and", ["not", "stopped"], ["missing", "target"]], "Unknown without the lengths."),
    ("Cache", ["and", _is("kind", "default", *_STATIC), ["not", "stopped"]], "Safe: the frequencies never change, so a cached key has the rotation it would get today."),
    ("Cache", ["and", _is("kind", "dynamic"), ["not", "stopped"]], "Not safe beyond {original} tokens: cached keys keep the rotation of a shorter text. Without a cache, each pass rotates all keys alike. Transformers caches rotated keys."),
    ("Cache", ["and", _is("kind", "longrope"), ["not", "stopped"]], "Not safe for a text that grows past {original} tokens: cached keys were rotated by the short list. A text that is longer from the start is read with one list."),
]  # fmt: skip
