"""LongRoPE's search: an evolutionary algorithm that finds a factor for each pair."""

from __future__ import annotations

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import checks
from ropebook.extrapolation.frequencies import Interpolation, NTKAware, YaRN
from ropebook.extrapolation.measures import stretch
from ropebook.extrapolation.parts import frequencies


class Search(NamedTuple):
    """The result of `search_factors`."""

    # (d/2,), float64
    factors: Tensor
    # the objective for these factors
    value: float
    # the best value found so far: at the start, and after each generation
    history: list[float]


def search_factors(
    objective: Callable[[Tensor], float],
    inv_freq: Tensor,
    factor: float,
    trained_length: int,
    *,
    generations: int = 30,
    population: int = 32,
    generator: torch.Generator | None = None,
) -> Search:
    """Search for factors f_i that make ``objective(factors)`` small, with an evolutionary algorithm.

    This is a small version of the search in Ding et al. 2024, section 3.

    Like the paper's search, it starts from known methods (interpolation, NTK-aware, YaRN) and variants of them. Factors
    stay within 1 … 1.25·s and never decrease from one pair to the next. A quarter of the population survives each
    generation; the rest is replaced by children of two survivors and variants of single survivors. The result is never
    worse than the best of the three methods. The search calls the objective at most population·(1 + generations) times.
    You choose the objective; in the paper it is a model's perplexity on long texts.

    >>> from ropebook.rope import inv_freq
    >>> def far_from_two(factors): return (factors - 2).square().sum().item()
    >>> draws = torch.Generator().manual_seed(0)
    >>> found = search_factors(far_from_two, inv_freq(8), 4.0, 512, generator=draws)
    >>> found.history[0] > 10 * found.value
    True
    """
    generations = checks.integer("generations", generations, minimum=1)
    population = checks.integer("population", population, minimum=8)
    if generator is not None and not isinstance(generator, torch.Generator):
        raise TypeError(
            f"generator must be a torch.Generator or None, got {generator!r}"
        )
    inv_freq = frequencies(inv_freq).cpu().double()
    published = (
        Interpolation(factor),
        NTKAware(factor),
        YaRN(factor, trained_length),
    )
    known = [stretch(method, inv_freq) for method in published]
    most = 1.25 * factor

    def variant(factors: Tensor) -> Tensor:
        """Multiply some entries by random factors, then restore order and bounds.

        The factors lie in a range around 1 that is itself random: at least ±1 per cent, and at most from 1/e to e.
        """
        like = {"generator": generator, "dtype": torch.float64}
        draws = torch.rand(2, len(factors), **like)
        size = 10 ** (-2 * torch.rand(1, **like))
        moved = factors * (size * (2 * draws[0] - 1)).exp()
        changed = torch.where(draws[1] < 0.3, moved, factors)
        return changed.clamp(1, most).sort().values

    def child(first: Tensor, second: Tensor) -> Tensor:
        """Take each entry from one parent or the other, then restore the order."""
        coin = torch.rand(len(first), generator=generator) < 0.5
        return torch.where(coin, first, second).sort().values

    def one_of(parents: list[Tensor]) -> Tensor:
        return parents[int(torch.randint(len(parents), (), generator=generator))]

    def ranked(pool: list[Tensor]) -> list[tuple[float, Tensor]]:
        name = "the objective's value"
        values = [checks.number(name, objective(factors)) for factors in pool]
        return sorted(zip(values, pool, strict=True), key=itemgetter(0))

    variants = [variant(one_of(known)) for _ in range(population - len(known))]
    pool = ranked(known + variants)
    history = [pool[0][0]]
    for _ in range(generations):
        parents = [factors for _, factors in pool[: population // 4]]
        fresh = [
            variant(one_of(parents))
            if turn % 2
            else variant(child(one_of(parents), one_of(parents)))
            for turn in range(population - len(parents))
        ]
        pool = sorted(pool[: len(parents)] + ranked(fresh), key=itemgetter(0))
        history.append(pool[0][0])
    return Search(pool[0][1], pool[0][0], history)
