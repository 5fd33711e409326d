"""Split a score into four terms when positions are added to words, and show why the order of the entries makes no
difference to trained weights."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.rope import (
    LARGEST_POSITION,
    Positions,
    as_positions,
    dim_and_base,
    float64_device,
)
from ropebook.sinusoidal.vectors import encoding

HALVES = (torch.bfloat16, torch.float16)


class FourTerms(NamedTuple):
    """The terms of (x + p)·(y + q): word with word, word with position, position with word, position with position."""

    content: Tensor | float
    content_position: Tensor | float
    position_content: Tensor | float
    position: Tensor | float

    @property
    def total(self) -> Tensor | float:
        """The score itself, which is the sum of the four terms."""
        return (
            self.content
            + self.content_position
            + self.position_content
            + self.position
        )


def four_terms(x: Tensor, y: Tensor, p: Tensor, q: Tensor) -> FourTerms:
    """Split the score (x + p)·(y + q) into its four terms x·y, x·q, p·y, p·q.

    ``x`` is the query's word and ``p`` its position; ``y`` is the key's word and ``q`` its position. All are floating
    point, with the same d and shapes (…, d) that broadcast. Each term has the broadcast shape without d. Half-precision
    types are multiplied in float32. If there are weights, project first: the terms of (W_q(x + p))·(W_k(y + q)) are
    ``four_terms(x @ W_q.T, y @ W_k.T, p @ W_q.T, q @ W_k.T)``.

    >>> terms = four_terms(*torch.tensor([[1.0, 2.0], [3.0, 0.0], [0.0, 1.0], [0.5, 0.5]]))
    >>> [term.item() for term in terms], terms.total.item()
    ([3.0, 1.5, 0.0, 0.5], 5.0)
    """
    named = {"x": x, "y": y, "p": p, "q": q}
    for name, vector in named.items():
        checks.floating(name, vector)
        if vector.ndim == 0 or vector.shape[-1] != x.shape[-1]:
            raise ValueError(
                f"x, y, p, q must agree in their last axis, got shapes {_shapes(named)}"
            )
    try:
        torch.broadcast_shapes(*(vector.shape for vector in named.values()))
    except RuntimeError:
        raise ValueError(
            f"x, y, p, q must broadcast, got shapes {_shapes(named)}"
        ) from None
    x, y, p, q = (
        vector.float() if vector.dtype in HALVES else vector
        for vector in (x, y, p, q)
    )
    return FourTerms(
        *torch.broadcast_tensors(
            *((a * b).sum(-1) for a, b in ((x, y), (x, q), (p, y), (p, q)))
        )
    )


def slide(
    x: Tensor,
    y: Tensor,
    m: float,
    n: float,
    shifts: Positions,
    base: float = 10000.0,
) -> FourTerms:
    """Return the four terms for two words that slide along the text together: for every shift t, their positions are m
    + t and n + t.

    ``x``, ``y``: word vectors (…, d); ``shifts``: shape (shifts,). Each term: (…, shifts), float64. The distance stays
    m − n, so the term position·position does not change. The two cross terms do change, because they depend on where in
    the text the words are.

    >>> terms = slide(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), m=3, n=1, shifts=[0, 1, 2])
    >>> terms.position
    tensor([-0.4161, -0.4161, -0.4161], dtype=torch.float64)
    >>> terms.content_position
    tensor([0.8415, 0.9093, 0.1411], dtype=torch.float64)
    """
    m, n = _position_number("m", m), _position_number("n", n)
    for name, word in (("x", x), ("y", y)):
        if checks.floating(name, word).ndim == 0:
            raise ValueError(
                f"{name} must have a last axis of dimension d, got a single number"
            )
    shifts = as_positions("shifts", shifts)
    if shifts.ndim != 1:
        raise ValueError(
            f"shifts must have one axis, got shape {tuple(shifts.shape)}"
        )
    where = float64_device(x.device)
    shifts = shifts.to(device=where, dtype=torch.float64)
    p, q = (
        encoding(shifts + start, x.shape[-1], base, torch.float64)
        for start in (m, n)
    )
    x, y = (word.to(where).double().unsqueeze(-2) for word in (x, y))
    return four_terms(x, y, p, q)


def term_sizes(
    m: float,
    n: float,
    dim: int,
    base: float = 10000.0,
    std: float = 1.0,
    samples: int = 4096,
    generator: torch.Generator | None = None,
) -> FourTerms:
    """Measure the size (root mean square) of each of the four terms over random words at positions m and n.

    Words have independent normal entries with standard deviation ``std``. We expect std²·√d for word·word and
    std·√(d/2) for each cross term, at every m and n. The size of position·position is exactly |K(m − n)| for any words.

    >>> sizes = term_sizes(9, 4, dim=128, generator=torch.Generator().manual_seed(0))
    >>> [round(size, 1) for size in sizes]
    [11.4, 8.1, 8.1, 47.2]
    """
    m, n = _position_number("m", m), _position_number("n", n)
    dim, base = dim_and_base(dim, base)
    std = checks.number("std", std, minimum=0)
    samples = checks.integer("samples", samples, minimum=1)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, got {generator!r}"
        )
    where = "cpu" if generator is None else generator.device
    x, y = std * torch.randn(
        2, samples, dim, dtype=torch.float64, device=where, generator=generator
    )
    p, q = (
        encoding(position, dim, base, torch.float64).to(where)
        for position in (m, n)
    )
    return FourTerms(
        *(term.square().mean().sqrt().item() for term in four_terms(x, y, p, q))
    )


def pair_order(order: Positions) -> Tensor:
    """Return the order in which the dim entries end up when the dim/2 pairs (frequencies) are put in the given order.

    >>> pair_order([2, 0, 1])
    tensor([4, 5, 0, 1, 2, 3])
    """
    order = _permutation("order", order)
    return torch.stack((2 * order, 2 * order + 1), dim=-1).flatten()


def absorb_order(weight: Tensor, order: Positions) -> Tensor:
    """Reorder weights to compensate for a new order of the inputs: ``absorb_order(W, order) @ z[order]`` is ``W @ z``.

    ``weight``: (outputs, inputs), as in torch.nn.Linear. ``order``: a permutation of the inputs. This is why the order
    of the frequencies does not matter before training: anything that W_q and W_k can do with one order, other W_q and
    W_k can do with another, provided that words and positions are reordered in the same way.

    >>> absorb_order(torch.tensor([[1.0, 2.0, 3.0]]), [2, 0, 1])
    tensor([[3., 1., 2.]])
    """
    checks.floating("weight", weight)
    if weight.ndim != 2:
        raise ValueError(
            f"weight must have shape (outputs, inputs), got {tuple(weight.shape)}"
        )
    order = _permutation("order", order)
    if len(order) != weight.shape[1]:
        raise ValueError(
            f"order must permute the {weight.shape[1]} inputs of weight, got {len(order)} entries"
        )
    return weight[:, order.to(weight.device)]


def _position_number(name: str, value: float) -> float:
    return checks.number(
        name, value, minimum=-LARGEST_POSITION, maximum=LARGEST_POSITION
    )


def _permutation(name: str, order: Positions) -> Tensor:
    order = as_positions(name, order)
    if (
        order.is_floating_point()
        or order.ndim != 1
        or order.sort().values.tolist() != list(range(len(order)))
    ):
        raise ValueError(
            f"{name} must hold each of 0 ... n - 1 once, got {order.tolist()}"
        )
    return order


def _shapes(named: dict[str, Tensor]) -> str:
    return ", ".join(
        f"{name} {tuple(tensor.shape)}" for name, tensor in named.items()
    )
