"""Change the published model's frequencies, either by slowing down some of its pairs or
by applying a method that extends its context.

Nothing is trained. Pairs are numbered from the fastest, i = 0, like their frequencies
θ_i.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from torch import Tensor

from ropebook import checks
from ropebook.lab.frequencies import with_frequencies
from ropebook.lab.longer import with_method
from ropebook.rotary_attention import LlamaModel
from ropebook.shapes import Float


@dataclass(frozen=True)
class Change:
    """A change to the frequencies of every layer. Either the frequencies of ``pairs``
    are divided by ``factor``, or a ``method`` from the registry is applied.

    With no pairs and the method "none", the model stays as it is. ``name`` consists of
    letters, digits and hyphens.

    >>> Change("slow-22-26", pairs=(22, 23, 24, 25, 26), factor=2.0).describe()
    {'pairs': [22, 23, 24, 25, 26], 'factor': 2.0, 'method': 'none', 'options': {}}
    """

    name: str
    pairs: tuple[int, ...] = ()
    factor: float = 1.0
    method: str = "none"
    options: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checks.number("factor", self.factor, above=0)
        if self.pairs and self.method != "none":
            raise ValueError(
                f"pairs must be none where a method is given, got {self.pairs} with {self.method!r}"
            )

    def of(self, model: LlamaModel) -> LlamaModel:
        """Return a new model with the changed frequencies. It shares its weights with
        ``model``."""
        if self.method != "none":
            return with_method(model, self.method, dict(self.options))
        inv_freq = model.layers[0].attention.rotary.inv_freq
        return with_frequencies(model, slowed(inv_freq, self.pairs, self.factor))

    def describe(self) -> dict[str, object]:
        """Return the change as a dictionary that can be stored in a JSON file along
        with a result."""
        return {
            "pairs": list(self.pairs),
            "factor": self.factor,
            "method": self.method,
            "options": dict(self.options),
        }


def slow(first: int, last: int | None = None, factor: float = 2.0) -> Change:
    """Return a `Change` that divides the frequencies of the pairs from ``first`` to
    ``last`` (inclusive) by ``factor``.

    >>> slow(23, 24).name, slow(23).pairs
    ('slow-23-24', (23,))
    """
    last = first if last is None else last
    name = f"slow-{first}" if last == first else f"slow-{first}-{last}"
    if factor != 2:
        name += f"-by-{factor:g}".replace(".", "_")
    pairs = tuple(
        range(
            checks.integer("first", first, minimum=0),
            checks.integer("last", last, minimum=first) + 1,
        )
    )
    return Change(name, pairs, factor)


def slowed(
    inv_freq: Float[Tensor, " pairs"], pairs: tuple[int, ...], factor: float
) -> Float[Tensor, " pairs"]:
    """Return a copy of θ in which the frequencies of some pairs are divided by a
    factor.

    >>> import torch
    >>> slowed(torch.tensor([1.0, 0.5, 0.25]), (1,), 2.0)
    tensor([1.0000, 0.2500, 0.2500])
    """
    changed = inv_freq.clone()
    for pair in pairs:
        changed[checks.integer("pairs", pair, 0, len(inv_freq) - 1)] /= factor
    return changed
