"""Hide records in a long text, ask for them further on, and see what the model recalls.

A record says "The code of the lantern is 4821." Further on, a question repeats its
words up to the code, and the model continues. Some names have two records with
different codes. Since their words are the same, only their positions can tell the
model which of the two is nearer.

One pass over a text answers all its questions, because every question is followed by
the right code, as if the model had written it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.real.reading import last_states, losses_of_states
from ropebook.rotary_attention import LlamaModel
from ropebook.shapes import Bool, Float, Int

_NOUNS = """anchor apple balloon barrel basket bridge camera candle castle chapel desert
    diamond dragon drum eagle elephant engine envelope falcon feather flute forest
    garden glacier goblet guitar hammer harbour helmet hill inn insect iron island
    jacket jewel jungle kettle kitchen kite knight ladder lantern lemon library
    lighthouse market meadow mirror needle nest novel ocean orchard oyster palace parrot
    piano queen quilt ribbon river rocket saddle shadow statue table temple tiger
    umbrella uniform upland valley vessel violin wagon whistle window yacht
    zipper"""
NAMES = tuple(_NOUNS.split())
"""What the records are about. Each name occurs in one question at most."""


class Block(NamedTuple):
    """A block of questions, which comes after ``after`` tokens of filler. It asks for
    ``single`` names that have one record, and for ``double`` names that have two.

    The records lie at random places before the block. Those that answer its questions
    lie alternately after the first ``early`` tokens of filler and within them.
    """

    after: int
    single: int
    double: int
    early: int


@dataclass(frozen=True)
class Question:
    """A question of the ``block`` with this number. Its code, ``digits``, begins at
    position ``at``. ``distance``: how many tokens earlier the code of its (nearest)
    record begins. ``rival``: the first digit of its other record, if there is one."""

    block: int
    at: int
    distance: int
    digits: tuple[int, ...]
    rival: int | None


class Document(NamedTuple):
    """A text with records and questions. ``filler`` says which tokens belong to neither."""

    tokens: Int[Tensor, " seq"]
    filler: Bool[Tensor, " seq"]
    questions: tuple[Question, ...]


class Answer(NamedTuple):
    """How the model answers a question. ``recalled``: each digit of the code is the
    likeliest token. ``nats``: its surprise at the whole code. ``prefers``: by how many
    nats it prefers the first digit of the nearest record to that of the other one;
    None if there is no other."""

    recalled: bool
    nats: float
    prefers: float | None


class Read(NamedTuple):
    """What a model makes of a document: its loss on each token but the first, in nats,
    and an answer to each question."""

    losses: Float[Tensor, " targets"]
    answers: tuple[Answer, ...]


class _Piece(NamedTuple):
    """A sentence about a name, and where it goes: after ``place`` tokens of filler."""

    place: int
    block: int
    name: str
    code: str
    asks: bool


def document(
    filler: Sequence[int],
    encode: Callable[[str], list[int]],
    blocks: Sequence[Block],
    seed: int,
) -> Document:
    """Hide records in ``filler``, which are the tokens of a long text, and add the
    questions. ``encode`` turns a string into a list of tokens.

    Raises:
        ValueError: the blocks ask for more names than there are, don't come in order,
            or come after more filler than there is.

    >>> def encode(text): return list(text.encode())
    >>> made = document([0] * 500, encode, [Block(500, 2, 1, early=200)], seed=0)
    >>> one = made.questions[0]
    >>> text = bytes(made.tokens.tolist())
    >>> text[one.at - 4 : one.at] == b" is " and len(one.digits) == 4
    True
    >>> text[one.at - one.distance :][:4] == bytes(one.digits)
    True
    """
    asked = sum(block.single + block.double for block in blocks)
    checks.integer("questions", asked, 1, len(NAMES))
    if [block.after for block in blocks] != sorted(
        {block.after for block in blocks}
    ):
        raise ValueError(f"blocks must come in order, got {list(blocks)}")
    checks.integer("filler", len(filler), minimum=blocks[-1].after)
    draws = random.Random(checks.integer("seed", seed))
    names = iter(draws.sample(NAMES, asked))
    pieces = [
        piece
        for number, block in enumerate(blocks)
        for piece in _pieces(number, block, names, draws)
    ]
    tokens: list[int] = []
    is_filler: list[bool] = []
    begins: dict[str, list[tuple[int, tuple[int, ...]]]] = {}
    questions = []
    used = 0
    for piece in sorted(
        pieces, key=lambda piece: (piece.place, piece.block, piece.asks)
    ):
        head = encode(f"\n\nThe code of the {piece.name} is ")
        digits, tail = tuple(encode(piece.code)), encode(".\n\n")
        between = filler[used : piece.place]
        used = piece.place
        tokens += [*between, *head]
        at = len(tokens)
        tokens += [*digits, *tail]
        is_filler += [True] * len(between) + [False] * (
            len(tokens) - len(is_filler) - len(between)
        )
        if not piece.asks:
            begins.setdefault(piece.name, []).append((at, digits))
            continue
        *others, (nearest, _) = begins[piece.name]
        rival = others[0][1][0] if others else None
        questions.append(Question(piece.block, at, at - nearest, digits, rival))
    return Document(torch.tensor(tokens), torch.tensor(is_filler), tuple(questions))


def _pieces(number: int, block: Block, names, draws: random.Random) -> list[_Piece]:
    """Choose random places and codes for one block's records, and a random order for its questions."""
    checks.integer("early", block.early, 2, block.after - 1)
    records, asks = [], []
    for at in range(block.single + block.double):
        name = next(names)
        first, other = draws.sample("123456789", 2)
        codes = [first + f"{draws.randrange(1000):03}" for first in (first, other)]
        spread = (2, block.early) if at % 2 else (block.early, block.after)
        place = draws.randrange(*spread)
        records.append(_Piece(place, number, name, codes[0], asks=False))
        if at >= block.single:
            records.append(
                _Piece(
                    draws.randrange(1, place), number, name, codes[1], asks=False
                )
            )
        asks.append(_Piece(block.after, number, name, codes[0], asks=True))
    draws.shuffle(asks)
    return records + asks


@torch.no_grad()
def read(model: LlamaModel, made: Document) -> Read:
    """Let the model read a document once.

    >>> model = LlamaModel(vocab_size=256, dim=8, hidden_dim=16, n_layers=1, n_heads=2, layout="half")
    >>> made = document([0] * 50, lambda text: list(text.encode()), [Block(50, 2, 1, early=20)], seed=0)
    >>> [answer.prefers is None for answer in read(model, made).answers].count(True)
    2
    """
    states = last_states(model, made.tokens[None])[0]
    answers = []
    for one in made.questions:
        here = torch.arange(len(one.digits))
        wanted = torch.tensor(one.digits, device=states.device)
        scores = model.lm_head(states[one.at - 1 + here]).double().log_softmax(-1)
        prefers = None
        if one.rival is not None:
            prefers = (scores[0, one.digits[0]] - scores[0, one.rival]).item()
        recalled = bool((scores.argmax(-1) == wanted).all())
        answers.append(
            Answer(recalled, -scores[here, wanted].sum().item(), prefers)
        )
    return Read(losses_of_states(model, states, made.tokens), tuple(answers))
