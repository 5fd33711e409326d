"""Registry of all methods by name. The facts about each method are attached to its class."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType

from ropebook import checks
from ropebook.extrapolation import distances, dynamic, frequencies, queries, trained
from ropebook.extrapolation.methods import Extension, Method

# The methods, in the order in which their modules define them.
METHODS: Mapping[str, Method] = MappingProxyType(
    {
        value.facts.name: value.facts
        for file in (frequencies, dynamic, trained, distances, queries)
        for value in vars(file).values()
        if hasattr(value, "facts")
    }
)

# Hugging Face transformers' rope_types whose names differ from ours.
_THEIRS = {"dynamic": "dynamic_ntk"}


def make(name: str, **options: object) -> Extension:
    """Make the method called ``name`` in `METHODS`. Its options are the fields of its class.

    You can also use transformers' names (its rope_types, such as "dynamic").

    >>> make("yarn", factor=4.0, trained_length=4096, beta=16.0).beta
    16.0
    >>> make("dynamic", trained_length=4096)
    DynamicNTK(trained_length=4096, factor=1.0)
    >>> make("ntk", scale=4.0)
    Traceback (most recent call last):
        ...
    TypeError: options of 'ntk' must be (factor), got (scale)
    """
    if isinstance(name, str):
        name = _THEIRS.get(name, name)
    built = METHODS[checks.choice("name", name, METHODS)].form
    signature = inspect.signature(built)
    try:
        signature.bind(**options)
    except TypeError:
        allowed = ", ".join(
            key if value.default is value.empty else f"{key}={value.default}"
            for key, value in signature.parameters.items()
        )
        raise TypeError(
            f"options of {name!r} must be ({allowed}), got ({', '.join(options)})"
        ) from None
    return built(**options)


def methods_table() -> list[dict[str, str]]:
    """Return the registry as rows of strings, one per method. A page shows them as a table.

    >>> methods_table()[0]["method"], methods_table()[0]["in transformers"]
    ('position interpolation', 'linear')
    """
    return [
        {
            "name": method.name,
            "method": method.title,
            "year": str(method.year),
            "source": method.source,
            "changes": method.acts_on,
            "trains": method.trains,
            "changes within L": "yes" if method.changes_within else "no",
            "cache-safe": "yes" if method.cache_safe else "no",
            "in transformers": method.transformers or "–",
        }
        for method in METHODS.values()
    ]
