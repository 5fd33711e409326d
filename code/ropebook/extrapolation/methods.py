"""What a method of extension consists of: its effects in an attention layer, and the facts about it."""

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
    """What is known about a method. Pages, explorers and tests take it from here, so that no list of methods has to be
    kept elsewhere."""

    # for `make`
    name: str
    title: str
    # the class that implements it
    form: type[Extension]
    year: int
    # the source's key in the bibliography
    source: str
    # the page and heading that explain it
    section: str
    # options for heads of 8 entries and a trained length of 32, with which every method is tried
    example: Mapping[str, object] = field(hash=False)
    # "no": for a trained model as it is; "yes": needs training; "optional": published both ways
    trains: str
    # whether it changes anything for texts no longer than L
    changes_within: bool
    # whether a cache may hold keys as they were rotated on arrival; measured by `cache_error`
    cache_safe: bool
    # its rope_type in transformers, or the option that does it
    transformers: str | None = None
    # the situations in which `choices` recommends it
    suits: tuple[str, ...] = ()
    # the explorers that offer it, each with its note there
    explorers: Mapping[str, str] = field(default_factory=dict, hash=False)

    @property
    def acts_on(self) -> str:
        """ "frequencies", "distances" or "queries"."""
        return self.form.acts_on


class Extension:
    """The base class of all methods: what each may change in an attention layer. By itself it changes
    nothing."""

    acts_on: ClassVar[str]
    facts: ClassVar[Method]
    # whether it has other frequencies for each length of the text
    follows_length: ClassVar[bool] = False

    @classmethod
    def reaching(
        cls, trained_length: int, target_length: int, *, dim: int, base: float
    ) -> Extension:
        """The method with the options that take a model of L tokens to L′; only methods that `choices` recommends have
        it."""
        raise NotImplementedError(f"{cls.__name__} is recommended for nothing")

    def rotary(self, dim: int) -> dict[str, object]:
        """Options of the `ropebook.efficient.RotaryEmbedding` for heads of width ``dim``."""
        return {}

    @property
    def distances(self) -> Distances | None:
        """The rule of distances, if it isn't m − n."""
        return None

    @property
    def query_scale(self) -> Callable[[Tensor], Tensor] | None:
        """The function that gives the factor on queries at their positions, if there is one."""
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
    """Class decorator: attaches a `Method` with these facts as ``facts``."""

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
