"""The tokenizer in a GGUF file. It converts text to tokens and back, using byte-level
byte-pair encoding.

Text is split into words, and the bytes of each word are written as letters. Neighbouring
letters or parts are then merged as long as the file lists a merge for them; merges that
are listed earlier take precedence. Sources: Sennrich et al. 2016, *Neural Machine
Translation of Rare Words with Subword Units* (merges); Radford et al. 2019, *Language
Models are Unsupervised Multitask Learners*, section 2.2 (bytes). We implement the
tokenizer ourselves so that readers don't need transformers. The tests compare ours with
that of transformers.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from ropebook import checks

KIND = "gpt2"
"""The only kind of tokenizer that can be loaded, under its name in
``tokenizer.ggml.model``: byte-level byte-pair encoding."""

CUTS = ("gpt-2", "smollm")
"""The supported ways of splitting text into words, under their names in
``tokenizer.ggml.pre``. "smollm" splits off every digit first."""

_NORMAL = 1  # tokenizer.ggml.token_type of a normal token; control and user-defined tokens have other values
_SPACES = frozenset(
    "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000"
) | frozenset(map(chr, range(0x2000, 0x200B)))
"""The characters with Unicode's White_Space property. (Python's ``isspace`` accepts four
more control characters.)"""

_CONTRACTION = re.compile("'(?:s|t|re|ve|m|ll|d)")
# Classes of characters: L for letters, N for digits, the space itself, w for other white
# space, and o for all other characters.
_WORD = re.compile(r" ?L+| ?N+| ?o+|[ w]+(?![LNo])|[ w]+")


class Tokenizer:
    """Converts strings to tokens and back.

    ``tokens``: the vocabulary, with bytes written as in `byte_letters`. ``merges``:
    pairs, in the order in which they are merged. ``cut``: one of `CUTS`. ``special``:
    names of tokens that do not represent text, and that `encode` never produces.

    >>> tokens = [*byte_letters().values(), "th", "the"]
    >>> small = Tokenizer(tokens, [("t", "h"), ("th", "e")])
    >>> [tokens[i] for i in small.encode("the thing")]
    ['the', 'Ġ', 'th', 'i', 'n', 'g']
    >>> small.decode(small.encode("naïve ☃"))
    'naïve ☃'
    """

    def __init__(
        self,
        tokens: Sequence[str],
        merges: Iterable[tuple[str, str]],
        cut: str = "gpt-2",
        special: Iterable[str] = (),
    ):
        self.cut = checks.choice("cut", cut, CUTS)
        self.tokens = tuple(tokens)
        self._number = {token: i for i, token in enumerate(self.tokens)}
        if len(self._number) != len(self.tokens):
            raise ValueError("tokens must all be different, got some twice")
        self.special = {name: self._number[name] for name in special}
        self._rank = {pair: rank for rank, pair in enumerate(merges)}
        foreign = [a + b for a, b in self._rank if a + b not in self._number]
        if foreign:
            raise ValueError(
                f"merges must make tokens, got {foreign[0]!r}, which isn't one"
            )
        self._letter = byte_letters()
        self._byte = {letter: byte for byte, letter in self._letter.items()}
        self._words: dict[str, list[int]] = {}

    def __len__(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        """Convert text to tokens. The name of a special token is treated as ordinary
        text.

        Raises:
            ValueError: the vocabulary has no token for one of the bytes, such as a rare
                control character.
        """
        if not isinstance(text, str):
            raise TypeError(f"text must be a string, got {type(text).__name__}")
        return [token for word in words(text, self.cut) for token in self._of(word)]

    def decode(self, tokens: Iterable[int]) -> str:
        """Convert tokens to text. Special tokens are written as their names, and
        incomplete UTF-8 as U+FFFD."""
        names = {number: name for name, number in self.special.items()}
        found = bytearray()
        for token in tokens:
            token = checks.integer(
                "tokens", token, minimum=0, maximum=len(self) - 1
            )
            if token in names:
                found += names[token].encode()
            else:
                found += bytes(self._byte[letter] for letter in self.tokens[token])
        return found.decode(errors="replace")

    def _of(self, word: str) -> list[int]:
        if word not in self._words:
            parts = self._merged([self._letter[byte] for byte in word.encode()])
            for part in parts:
                if part not in self._number:  # only a single byte can be missing
                    raise ValueError(
                        "text must consist of bytes that the vocabulary has, "
                        f"got {self._byte[part]:#04x} in {word!r}"
                    )
            self._words[word] = [self._number[part] for part in parts]
        return self._words[word]

    def _merged(self, parts: list[str]) -> list[str]:
        while len(parts) > 1:
            best = min(
                pairwise(parts),
                key=lambda pair: self._rank.get(pair, len(self._rank)),
            )
            if best not in self._rank:
                break
            merged, at = [], 0
            while at < len(parts):
                if tuple(parts[at : at + 2]) == best:
                    merged.append(parts[at] + parts[at + 1])
                    at += 2
                else:
                    merged.append(parts[at])
                    at += 1
            parts = merged
        return parts


def words(text: str, cut: str = "gpt-2") -> list[str]:
    """Split text into words, each of which is then encoded separately. Joining the words gives back the original text.

    A word includes the space before it. With "smollm", digits are split off before
    everything else, and each digit is a word of its own.

    >>> words("It's 12  x²"), words("It's 12  x²", "smollm")
    (['It', "'s", ' 12', ' ', ' x', '²'], ['It', "'s", ' ', '1', '2', ' ', ' x', '²'])
    """
    checks.choice("cut", cut, CUTS)
    kinds = "".join(map(_kind, text))
    stretches = [(0, len(text))]
    if cut == "smollm":
        stretches = [found.span() for found in re.finditer("N|[^N]+", kinds)]
    found = []
    for start, end in stretches:
        while start < end:
            match = _CONTRACTION.match(text, start, end) or _WORD.match(
                kinds, start, end
            )
            found.append(text[start : match.end()])
            start = match.end()
    return found


def _kind(character: str) -> str:
    if character in _SPACES:
        return " " if character == " " else "w"
    kind = unicodedata.category(character)[0]
    return kind if kind in "LN" else "o"


def byte_letters() -> dict[int, str]:
    """Map each byte to a letter: the byte's own character if that is visible, otherwise a
    character from U+0100 onwards.

    >>> letters = byte_letters()
    >>> letters[ord("a")], letters[ord(" ")], letters[ord("\\n")], len(set(letters.values()))
    ('a', 'Ġ', 'Ċ', 256)
    """
    seen = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    hidden = [byte for byte in range(256) if byte not in seen]
    return {byte: chr(byte) for byte in sorted(seen)} | {
        byte: chr(0x100 + i) for i, byte in enumerate(hidden)
    }


def tokenizer(metadata: Mapping[str, object]) -> Tokenizer:
    """Build the tokenizer that a GGUF file's metadata describes.

    Raises:
        ValueError: the kind of tokenizer or its way of splitting is not supported, or the
            metadata lacks one of the lists.
    """
    key = "tokenizer.ggml.{}".format
    checks.choice(key("model"), metadata.get(key("model")), [KIND])
    cut = metadata.get(key("pre"), CUTS[0])
    checks.choice(key("pre"), cut, CUTS)
    lists = {}
    for name in ("tokens", "merges"):
        lists[name] = metadata.get(key(name))
        if not isinstance(lists[name], list):
            raise ValueError(f"{key(name)} must be a list, got {lists[name]!r}")
    tokens = lists["tokens"]
    kinds = metadata.get(key("token_type"), [_NORMAL] * len(tokens))
    if len(kinds) != len(tokens):
        raise ValueError(
            f"{key('token_type')} must have one entry for each of {len(tokens)} tokens, got {len(kinds)}"
        )
    special = [
        token for token, kind in zip(tokens, kinds, strict=True) if kind != _NORMAL
    ]
    merges = [tuple(line.split(" ")) for line in lists["merges"]]
    wrong = [pair for pair in merges if len(pair) != 2]
    if wrong:
        raise ValueError(
            f"{key('merges')} must be pairs of tokens, got {' '.join(wrong[0])!r}"
        )
    return Tokenizer(tokens, merges, cut, special)
