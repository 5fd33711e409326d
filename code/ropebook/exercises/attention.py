"""Exercises on attention: causal weights, heads, and a layer that leaks future tokens."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from ropebook import attention
from ropebook.exercises.marking import Chosen, Written, random


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q @ k.mT / math.sqrt(q.shape[-1])


def _seen(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -math.inf).softmax(-1)


def _mask(scores: Tensor, diagonal: int = 0) -> Tensor:
    return torch.ones(scores.shape[-2:], dtype=torch.bool).tril(diagonal)


def weights(q: Tensor, k: Tensor) -> Tensor:
    """Return the right answer: the causal attention weights, (T, T)."""
    return _seen(_scores(q, k), _mask(_scores(q, k)))


WEIGHTS = Written(
    weights,
    {
        "no_mask": (
            lambda q, k: _scores(q, k).softmax(-1),
            "there is no mask, so every query sees the future.",
        ),
        "no_scale": (
            lambda q, k: _seen(q @ k.mT, _mask(q @ k.mT)),
            "scores are not divided by √d.",
        ),
        "scaled_by_d": (
            lambda q, k: _seen(q @ k.mT / q.shape[-1], _mask(q @ k.mT)),
            "scores are divided by d instead of √d.",
        ),
        "inverted_mask": (
            lambda q, k: _seen(_scores(q, k), ~_mask(_scores(q, k))),
            "the mask is the wrong way round: each query sees only the future, and the last query sees nothing.",
        ),
        "upper_mask": (
            lambda q, k: _seen(_scores(q, k), _mask(_scores(q, k)).mT),
            "the mask is the wrong way round: each query sees its own token and the future.",
        ),
        "hidden_self": (
            lambda q, k: _seen(_scores(q, k), _mask(_scores(q, k), -1)),
            "a query does not see its own token, so the first query sees nothing, and its row is NaN.",
        ),
        "mask_after": (
            lambda q, k: _scores(q, k).softmax(-1).tril(),
            "the mask comes after softmax: rows no longer sum to one, and the future still affects them.",
        ),
        "zero_before": (
            lambda q, k: _scores(q, k).tril().softmax(-1),
            "hidden scores are set to 0 instead of −∞, and a score of 0 still gets a weight.",
        ),
        "wrong_axis": (
            lambda q, k: (
                _scores(q, k)
                .masked_fill(~_mask(_scores(q, k)), -math.inf)
                .softmax(-2)
            ),
            "softmax runs along the queries, so columns sum to one, but rows do not.",
        ),
        "exchanged": (
            lambda q, k: weights(k, q),
            "q and k have changed places: your rows are keys, and your columns are queries.",
        ),
    },
    [
        (random(5, 4, seed=1), random(5, 4, seed=2)),
        (random(3, 8, seed=3), random(3, 8, seed=4)),
    ],
    "each query spreads a weight of one over its own token and the past.",
)

HEADS = Written(
    lambda x, n: attention.split_heads(x, n),
    {
        "one_view": (
            lambda x, n: x.reshape(x.shape[0], n, x.shape[1], -1),
            "one reshape gives the right shape, but it mixes tokens: split the width first, then swap two axes.",
        ),
        "no_swap": (
            lambda x, n: x.unflatten(-1, (n, -1)),
            "the heads are split, but the heads' axis comes after the tokens' axis: swap the two.",
        ),
        "strided": (
            lambda x, n: x.unflatten(-1, (-1, n)).movedim(-1, 1),
            "each of your heads takes every n-th entry, but it should take a run of neighbouring entries.",
        ),
        "unswapped_view": (
            lambda x, n: x.mT.reshape(x.shape[0], n, -1, x.shape[1]),
            "the last two axes are swapped: the tokens' axis should come before that of the entries.",
        ),
    },
    [(random(2, 5, 12), 3), (random(1, 4, 6), 2)],
    "each head gets its own slice of every token's vector.",
)


def leaky(x: Tensor, w_q: Tensor, w_k: Tensor, w_v: Tensor) -> Tensor:
    """Apply a causal attention layer to x, (T, D). One of the lines leaks future tokens."""
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    q = q / q.norm(dim=-1, keepdim=True)
    k = k - k.mean(0)
    v = v / v.std(0)
    scores = q @ k.T / math.sqrt(q.shape[-1])
    scores = scores - scores.amax(-1, keepdim=True)
    mask = torch.ones_like(scores, dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -math.inf).softmax(-1) @ v


LEAK = Chosen(
    "v",
    {
        "q": "each query is divided by its own length, which contains nothing from other tokens.",
        "k": "the mean key depends on the future, but it shifts all scores of a query equally, and softmax ignores that.",
        "v": "the standard deviation over all tokens depends on the future, and each value is divided by it.",
        "scores": "the largest score depends on the future, but it is subtracted from all scores of a row, and softmax ignores that.",
        "mask": "the mask is right. It shows each query its own token and the past.",
    },
)
