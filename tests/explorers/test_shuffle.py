"""Tests specific to the Shuffle explorer."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import traitlets

from ropebook.explorers import shuffle
from ropebook.explorers.shuffle import Shuffle
from tests.explorers import draws, js
from tests.explorers.oracles import oracle


def test_the_comparison_sees_small_and_large_differences():
    dials = Shuffle(order=[1, 0, 2, 3, 4]).dials()
    right = oracle(Shuffle).compute(dials)
    largest = oracle(Shuffle).terms(dials)["outputs"]
    assert js.disagreements(Shuffle, [dials], [right]) == []
    for name, wrong in [
        ("change", right["change"] + 1.1e-6 * largest),
        ("weights", (np.array(right["weights"]) + 1.1e-6).tolist()),
        ("weights", right["weights"][:-1]),
        ("words", right["words"][::-1]),
    ]:
        assert len(js.disagreements(Shuffle, [dials], [{**right, name: wrong}])) == 1
    assert js.disagreements(Shuffle, [dials], [{**right, "change": right["change"] + 0.9e-6 * largest}]) == []
    assert len(js.disagreements(Shuffle, [dials], [{"words": right["words"]}])) == 1


def plain_attention(words, position, causal):
    """Compute the same attention head with NumPy and with torch's own function."""
    x = np.stack([draws.normals(f"word {word}", 16) for word in words])
    if position:
        angle = np.arange(len(words))[:, None] / 10000 ** (np.arange(0, 16, 2) / 16)
        x[:, 0::2] += np.sin(angle)
        x[:, 1::2] += np.cos(angle)
    q, k, v = (torch.from_numpy(x @ (draws.normals(f"weights {n}", 256) / 4).reshape(16, 16)) for n in "qkv")
    scores = (q @ k.T / 4).masked_fill(torch.ones(len(words), len(words)).triu(1).bool() & causal, -math.inf)
    out = torch.nn.functional.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=causal)[0]
    return scores.exp().div(scores.exp().sum(-1, keepdim=True)).numpy(), out.numpy()


@pytest.mark.parametrize("position", [False, True])
@pytest.mark.parametrize("causal", [False, True])
def test_shuffle_is_one_head_of_attention(position, causal):
    dials = Shuffle(words="a rose is a flower", order=[3, 1, 4, 0, 2], position=position, causal=causal).dials()
    found = oracle(Shuffle).compute(dials)
    now = ["a", "rose", "flower", "a", "is"]
    weights, outputs = plain_attention(now, position, causal)
    weights_typed, typed = plain_attention(dials["words"].split(), position, causal)
    assert found["words"] == now
    np.testing.assert_allclose(found["weights"], weights, atol=1e-14)
    np.testing.assert_allclose(found["outputs"], outputs, atol=1e-14)
    np.testing.assert_allclose(found["typedOutputs"], typed, atol=1e-14)
    np.testing.assert_allclose(found["changes"], np.abs(outputs - typed[dials["order"]]).max(1), atol=1e-14)
    assert found["change"] == max(found["changes"])
    moved = weights_typed[dials["order"]][:, dials["order"]]
    assert found["weightChange"] == pytest.approx(np.abs(weights - moved).max(), abs=1e-14)
    assert np.abs(typed).max() == pytest.approx(oracle(Shuffle).terms(dials)["outputs"], rel=1e-12)


def test_outputs_move_with_their_words_unless_something_tells_the_places():
    reversed_ = {"words": "the dog bit the man", "order": [4, 3, 2, 1, 0]}
    plain = oracle(Shuffle).compute({**reversed_, "position": False, "causal": False})
    assert 0 < plain["change"] < 1e-15
    for told in ({"position": True, "causal": False}, {"position": False, "causal": True}):
        assert oracle(Shuffle).compute({**reversed_, **told})["change"] > 0.1


def test_the_shuffle_in_words():
    cases = [
        Shuffle(words="a"),
        Shuffle(words="the the the", order=[2, 1, 0]),
        Shuffle(words="the the the", order=[2, 1, 0], causal=True),
        Shuffle(order=[4, 3, 2, 1, 0]),
    ]
    one, equal, masked, moved = js.describe(Shuffle, [case.dials() for case in cases])
    assert one == "A single word attends only to itself. Type more words, and move them."
    assert equal == "Now: “the the the”. Every output moved with its word, and nothing else changed."
    assert masked.startswith(
        "Now: “the the the”. Every output moved with its word, although attention weights changed:"
    )
    assert "Every output moved with its word, and nothing else changed: no number in any output differs by" in moved
    assert moved.endswith("which is rounding.")


def test_shuffle_refuses_what_its_traits_refuse():
    body = """
      return input.map(([at, text]) => {
        try {
          return parseDial(figure.dials[at], text, { words: "a b c" });
        } catch (refusal) { return refusal.message; }
      });
    """
    cases = {
        (0, "  the   dog "): "the dog",
        (0, "  "): "a sentence needs at least one word",
        (0, "1 2 3 4 5 6 7 8"): "1 2 3 4 5 6 7 8",
        (0, "1 2 3 4 5 6 7 8 9"): "9 words are more than 8",
        (0, "123456789012"): "123456789012",
        (0, "1234567890123 a"): "“1234567890123” is longer than 12 characters",
        (1, "2, 0 1"): [2, 0, 1],
        (1, "0,1"): "it must contain each of 0 to 2 once",
        (1, "0,1,1"): "it must contain each of 0 to 2 once",
        (1, "0,1,3"): "it must contain each of 0 to 2 once",
        (1, "0,1,-2"): "it must contain each of 0 to 2 once",
        (1, "a"): "it must contain each of 0 to 2 once",
    }
    found = js.inside(Shuffle, body, list(cases))
    assert dict(zip(cases, found, strict=True)) == cases


def test_new_words_keep_the_order_only_if_it_fits():
    figure = Shuffle(order=[4, 3, 2, 1, 0])
    figure.words = "five words are here too"
    assert figure.order == [4, 3, 2, 1, 0]
    figure.words = "  now\tthree  words "
    assert (figure.words, figure.order) == ("now three words", [0, 1, 2])
    figure.set_state({"words": "a b", "order": [1, 0]})
    assert (figure.words, figure.order) == ("a b", [1, 0])


def test_the_longest_allowed_words():
    assert Shuffle(words="abcdefghijkl " * 8).words == " ".join(["abcdefghijkl"] * 8)


def test_words_are_cut_alike_in_both_languages():
    cases = ["the dog", " a\tb\r\nc ", "a\u00a0b c", "a\u2003b", ""]
    found = js.inside(Shuffle, "return input.map(splitWords);", cases)
    assert found == [shuffle.split_words(text) for text in cases]
    assert shuffle.split_words("a\u00a0b c") == ["a\u00a0b", "c"]


def test_defaults():
    assert Shuffle().dials() == {
        "words": "the dog bit the man",
        "order": [0, 4, 2, 3, 1],  # "the man bit the dog"
        "position": False,
        "causal": False,
    }
    assert Shuffle(words="a b", order=[1, 0]).order == [1, 0]
    assert Shuffle(order=[1, 0], words="a b").order == [1, 0]
    assert Shuffle(words="a b").order == [0, 1]


BAD = [
    ({"words": " "}, "words must be 1 to 8 words of at most 12 characters, got ' '"),
    ({"words": "1 2 3 4 5 6 7 8 9"}, "words must be 1 to 8 words"),
    ({"words": "abcdefghijklm"}, "words must be 1 to 8 words of at most 12 characters, got 'abcdefghijklm'"),
    ({"words": 3}, "'words' trait .* expected a unicode string, not the int 3"),
    ({"order": [0, 1, 2, 3]}, r"order must hold each of 0 to 4 once, got \[0, 1, 2, 3\]"),
    ({"order": [0, 1, 2, 3, 5]}, "order must hold each of 0 to 4 once"),
    ({"order": [0, True, 2, 3, 4]}, "order must hold each of 0 to 4 once"),
    ({"order": "abc"}, "'order' trait .* expected an int, not the str 'abc'"),
]


@pytest.mark.parametrize("bad, message", BAD, ids=[str(bad) for bad, _ in BAD])
def test_bad_words_and_orders_are_refused_and_change_nothing(bad, message):
    with pytest.raises(traitlets.TraitError, match=message):
        Shuffle(**bad)
    figure = Shuffle()
    before = figure.dials()
    [(name, value)] = bad.items()
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(figure, name, value)
    assert figure.dials() == before
