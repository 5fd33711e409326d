"""Tests of the tokenizer in a GGUF file. It is compared with transformers and with the tokenizers library, which here
splits texts as llama.cpp does."""

from __future__ import annotations

import inspect
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, pre_tokenizers

from ropebook import real
from tests import tiny_gguf
from tests.together import together

TEXTS = {
    "prose": "It's 12,288 tokens, isn't it? They'll say we'd've known — “naïve” café, Straße, 2024's 1st.",
    "code": inspect.getsource(tiny_gguf),
    "white space": " a  b   c\n\n  d\t\te \n f\r\n  \u00a0g\u2003h\u3000 i\x85j\u2028k   ",
    "no white space": "a\x1cb\x1d \x1e c\x1f\u200b d\u180e e\ufeff",
    "digits": "0 1  22   333 x²  ½ Ⅷ ٣٤ 五 1.5e-3 a1b2",
    "apostrophes": "'s 's''t  're'VE can't'll 'd'm ' 'x",
    "other scripts": "ελληνικά русский 中文字符 日本語 한국어 עברית العربية हिन्दी ไทย 👩‍👩‍👧 e\u0301 Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́Ǫ̵̹̻̝̳͂̌̌͘!",
    "names of special tokens": "a <|endoftext|> b",
    "nothing": "",
}


@pytest.fixture(scope="module")
def words():
    return tiny_gguf.vocabulary()


def ours(words, cut):
    merges = [tuple(line.split(" ")) for line in words["merges"]]
    return real.Tokenizer(words["tokens"], merges, cut, words["tokens"][:1])


def theirs(words, cut):
    """Return the tokenizers library's tokenizer, configured to split texts as llama.cpp does for this name."""
    numbers = {token: i for i, token in enumerate(words["tokens"])}
    made = Tokenizer(models.BPE(numbers, [tuple(line.split(" ")) for line in words["merges"]]))
    level = pre_tokenizers.ByteLevel(add_prefix_space=False)
    digits = pre_tokenizers.Digits(individual_digits=True)
    made.pre_tokenizer = pre_tokenizers.Sequence([digits, level]) if cut == "smollm" else level
    return made


@together("cut", ["gpt-2", "smollm"])
@together("text", TEXTS.values(), ids=TEXTS)
def test_the_same_tokens_as_the_library(words, cut, text):
    mine = ours(words, cut)
    found = mine.encode(text)
    assert found == theirs(words, cut).encode(text).ids
    assert mine.decode(found) == text
    assert "".join(real.words(text, cut)) == text


# without characters that exist only in newer versions of Unicode
KNOWN = st.characters(exclude_categories=["Cs", "Cn"])


@pytest.mark.parametrize("cut", ["gpt-2", "smollm"])
@given(text=st.text(KNOWN | st.sampled_from(" \n\t'strevmlldx01²")))
def test_the_same_tokens_of_any_text(words, cut, text):
    assert ours(words, cut).encode(text) == theirs(words, cut).encode(text).ids


def test_white_space_is_unicodes(words):
    """Python's own isspace also accepts four control characters that aren't white space in Unicode."""
    every = [chr(code) for code in range(0x3001) if unicodedata.category(chr(code)) not in ("Cs", "Cn")]
    library = pre_tokenizers.ByteLevel(add_prefix_space=False)
    for character in every:
        text = f"a{character}{character}b"
        cut = [text[slice(*span)] for _, span in library.pre_tokenize_str(text)]
        assert real.words(text) == cut, hex(ord(character))


def test_the_digits_are_set_apart_before_the_rest_is_cut(words):
    assert real.words("x  12") == ["x", " ", " 12"]
    assert real.words("x  12", "smollm") == ["x", "  ", "1", "2"]


def test_what_transformers_makes_of_the_file_differs_where_digits_follow_spaces(words, tmp_path):
    """transformers reads every GGUF file of type gpt2 as if its model split texts in the same way as GPT-2."""
    pytest.importorskip("gguf", reason="gguf is not installed")
    from transformers import AutoTokenizer

    tiny_gguf.write(tmp_path / "tiny.gguf", tiny_gguf.llama(), words=words)
    library = AutoTokenizer.from_pretrained(tmp_path, gguf_file="tiny.gguf")
    mine = real.load(tmp_path / "tiny.gguf").tokenizer
    assert mine.cut == "smollm"
    text = tiny_gguf.TEXT
    assert mine.encode(text) == library(text).input_ids
    assert mine.encode("    return 1\n    22") != library("    return 1\n    22").input_ids
    assert ours(words, "gpt-2").encode("    return 1\n    22") == library("    return 1\n    22").input_ids


def test_special_tokens_are_never_made_of_a_text_and_are_named_when_decoded(words):
    mine = ours(words, "smollm")
    assert mine.special == {"<|endoftext|>": 0}
    assert 0 not in mine.encode("<|endoftext|>")
    assert mine.decode([0, *mine.encode("cat")]) == "<|endoftext|>cat"
    assert mine.decode(mine.encode("é")[:1]) == "\N{REPLACEMENT CHARACTER}"
    assert len(mine) == 300
    named = facts(tokens=["a", "<end>", "b", "<mine>"], token_type=[1, 3, 1, 4])
    assert real.tokenizer(named).special == {"<end>": 1, "<mine>": 3}


def test_a_byte_without_a_token_is_named():
    letters = [letter for byte, letter in real.byte_letters().items() if byte != 4]
    mine = real.Tokenizer(letters, [])
    assert mine.decode(mine.encode("a\x03")) == "a\x03"
    with pytest.raises(ValueError, match=r"bytes that the vocabulary has, got 0x04 in '\\x04'"):
        mine.encode("a\x04")


@together(
    ("call", "kind", "sentence"),
    [
        (lambda: real.Tokenizer(["a", "a"], []), ValueError, "tokens must all be different"),
        (lambda: real.Tokenizer(["a", "b"], [("a", "b")]), ValueError, "merges must make tokens, got 'ab'"),
        (lambda: real.Tokenizer(["a"], [], "llama"), ValueError, "cut must be one of 'gpt-2', 'smollm', got 'llama'"),
        (lambda: real.Tokenizer(["a"], []).encode(b"a"), TypeError, "text must be a string, got bytes"),
        (lambda: real.Tokenizer(["a"], []).decode([1]), ValueError, "tokens must be an integer >= 0 and <= 0, got 1"),
        (lambda: real.words("a", "llama"), ValueError, "cut must be one of"),
        (lambda: real.tokenizer(facts(tokens=None)), ValueError, "tokenizer.ggml.tokens must be a list, got None"),
        (
            lambda: real.tokenizer(facts(merges=["a b c"])),
            ValueError,
            "tokenizer.ggml.merges must be pairs of tokens, got 'a b c'",
        ),
        (
            lambda: real.tokenizer(facts(token_type=[1, 1])),
            ValueError,
            "tokenizer.ggml.token_type must have one entry for each of 1 tokens, got 2",
        ),
    ],
)  # fmt: skip
def test_what_makes_no_tokenizer_is_refused(call, kind, sentence):
    with pytest.raises(kind, match=sentence.replace(".", r"\.")):
        call()


def facts(**changed):
    given = {"model": "gpt2", "tokens": ["a"], "merges": [], **changed}
    return {f"tokenizer.ggml.{key}": value for key, value in given.items()}
