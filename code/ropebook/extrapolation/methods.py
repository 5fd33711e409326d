"""The facts about a method, and the base class of all methods, which defines what a method may change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

if TYPE_CHECKING:
    from ropebook.extrapolation.distances import Distances


@dataclass(frozen=True)
class Method:
    """The facts about a method.

    Pages, explorers and tests all read them from here, so this is the only list of methods.
    """

    # the name for `make`
    name: str
    title: str
    # the class that implements it
    form: type[Extension]
    year: int
    # bibliography key of the source
    source: str
    # the page and heading that explain it
    section: str
    # example options for heads of 8 entries and a trained length of 32
    example: Mapping[str, object] = field(hash=False)
    # "no": works with a trained model; "yes": needs further training; "optional": published with and without training
    trains: str
    # whether the method changes anything for sequences of at most L tokens
    changes_within: bool
    # whether a cache may keep keys that were rotated when they arrived; measured by `cache_error`
    cache_safe: bool
    # its rope_type in transformers, or the equivalent option
    transformers: str | None = None
    # the situations in which `choices` recommends it
    suits: tuple[str, ...] = ()
    # the explorers that offer the method, each with a note about it
    explorers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def acts_on(self) -> str:
        """The part that the method changes: "frequencies", "distances" or "queries"."""
        return self.form.acts_on


class Extension:
    """The base class of all methods. It defines what a method may change in an attention layer, and changes nothing
    itself."""

    acts_on: ClassVar[str]
    facts: ClassVar[Method]
    # whether the frequencies depend on the current length of the sequence
    follows_length: ClassVar[bool] = False

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> Extension:
        """Make the method with the options that extend a model from L tokens to L′.

        Only methods that `choices` recommends implement this.
        """
        raise NotImplementedError(f"{cls.__name__} is recommended for nothing")

    def rotary(self, dim: int) -> dict[str, object]:
        """Return the options for a `ropebook.efficient.RotaryEmbedding` for heads of width ``dim``."""
        return {}

    @property
    def distances(self) -> Distances | None:
        """The method's rule for distances, or None if it uses the true distance m − n."""
        return None

    @property
    def query_scale(self) -> Callable[[Tensor], Tensor] | None:
        """The function that maps positions to the factors on their queries, or None."""
        return None


def known_as(
    name: str,
    title: str,
    year: int,
    source: str,
    section: str,
    *,
    example: Mapping[str, object],
    trains: str,
    changes_within: bool = True,
    cache_safe: bool = True,
    transformers: str | None = None,
    suits: tuple[str, ...] = (),
    explorers: Mapping[str, str] = MappingProxyType({}),
) -> Callable[[type[Extension]], type[Extension]]:
    """Return a class decorator that attaches a `Method` with these facts as the attribute ``facts``."""

    def put(form: type[Extension]) -> type[Extension]:
        form.facts = Method(
            name,
            title,
            form,
            year,
            source,
            section,
            MappingProxyType(dict(example)),
            trains,
            changes_within,
            cache_safe,
            transformers,
            suits,
            MappingProxyType(dict(explorers)),
        )
        return form

    return put
