"""Convert transformers' configs to methods and vice versa, and methods to options of `RotaryEmbedding`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from ropebook import checks, rope
from ropebook.extrapolation.dynamic import DynamicNTK
from ropebook.extrapolation.frequencies import (
    Frequencies,
    Interpolation,
    Llama3,
    LongRoPE,
    NTKAware,
    Scaled,
    YaRN,
)
from ropebook.extrapolation.parts import (
    about_equal,
    check_fraction,
    frequencies,
    length_factor,
    ntk_base,
)
from ropebook.extrapolation.registry import make
from ropebook.extrapolation.trained import BaseChange, Partial, Proportional
from ropebook.shapes import Float

# The names of each rope_type's options, in transformers and in this package.
_OUR_OPTIONS = {
    "yarn": {
        "beta_slow": "alpha",
        "beta_fast": "beta",
        "truncate": "truncate",
        "mscale": "mscale",
        "mscale_all_dim": "mscale_all_dim",
        "attention_factor": "attention_factor",
    },
    "longrope": {
        "short_factor": "short_factors",
        "long_factor": "long_factors",
        "attention_factor": "attention_factor",
    },
    "llama3": {
        "low_freq_factor": "low_freq_factor",
        "high_freq_factor": "high_freq_factor",
    },
}

# The keys that rope_parameters may have, for each rope_type.
_KEYS = {
    "linear": ("factor",),
    "dynamic": ("factor",),
    **{
        kind: ("factor", "original_max_position_embeddings", *options)
        for kind, options in _OUR_OPTIONS.items()
    },
    "proportional": ("factor",),
}

_KINDS = {
    Interpolation: "linear",
    DynamicNTK: "dynamic",
    YaRN: "yarn",
    LongRoPE: "longrope",
    Llama3: "llama3",
    Proportional: "proportional",
}


@dataclass(frozen=True)
class Configured(Frequencies):
    """A method, together with everything else that its config says about the rotation. Created by `from_transformers`.

    ``base``: b, which the config calls rope_theta. ``fraction``: the share of each head that is rotated, which the
    config calls partial_rotary_factor. Both are None if the config does not give them. Frequencies with another base
    are rejected (``ValueError``). So is a `ropebook.efficient.RotaryEmbedding` with other values, or without an
    explicit layout; `rotary_options` returns the right options.

    >>> from ropebook.extrapolation import NTKAware
    >>> method = Configured(NTKAware(factor=4.0), base=500000.0)
    >>> method(rope.inv_freq(4))
    Traceback (most recent call last):
        ...
    ValueError: inv_freq must be of base 500000.0, as in the config, got [1.0, 0.01]
    """

    method: Frequencies
    base: float | None = None
    fraction: float | None = None

    def __post_init__(self) -> None:
        if self.base is not None:
            checks.number("base", self.base, minimum=1)
        if self.fraction is not None:
            check_fraction(self.fraction)

    @property
    def follows_length(self) -> bool:
        return self.method.follows_length

    def __call__(
        self, inv_freq: Float[Tensor, " pairs"], length: int | None = None
    ) -> Scaled:
        dim = 2 * len(frequencies(inv_freq))
        if self.base is not None and checks.readable(inv_freq):
            expected = rope.inv_freq(dim, self.base).to(inv_freq)
            if not about_equal(inv_freq, expected):
                raise ValueError(
                    f"inv_freq must be of base {self.base}, as in the config, got {inv_freq.tolist()}"
                )
        return self.method(inv_freq, length)

    def rotary(self, dim: int) -> dict[str, object]:
        return {"scaling": self} | self.asked_of_rotary(dim)

    def asked_of_rotary(self, dim: int) -> dict[str, object]:
        """Return the ``base`` and ``rotary_dim`` that a RotaryEmbedding for heads of width ``dim`` must have.

        Values that the config does not give are left out.
        """
        asked = {}
        if self.base is not None:
            asked["base"] = float(self.base)
        if self.fraction is not None:
            asked["rotary_dim"] = Partial(self.fraction).rotary_dim(dim)
        return asked


def rotary_options(method: Frequencies, dim: int) -> dict[str, object]:
    """Return the options that make `ropebook.efficient.RotaryEmbedding` use a method: ``scaling``, or ``rotary_dim``
    for `Partial`.

    For a `Configured` method, they include the ``base`` and ``rotary_dim`` of its config.

    >>> from ropebook.efficient import RotaryEmbedding
    >>> from ropebook.extrapolation import make
    >>> options = rotary_options(make("partial", fraction=0.5), 8)
    >>> RotaryEmbedding(dim=8, layout="half", **options).rotary_dim
    4
    """
    if not isinstance(method, Frequencies):
        raise TypeError(
            f"method must be one that changes frequencies, got {method!r}"
        )
    return method.rotary(dim)


def from_transformers(
    rope_parameters: Mapping[str, object] | object,
    max_position_embeddings: int | None = None,
) -> Configured:
    """Make the method that a transformers config describes.

    Pass the config itself, or its ``rope_parameters`` and ``max_position_embeddings``.

    This covers all of transformers' scaling methods, with their options and defaults. "default" means no method and is
    rejected. A missing "factor" is ``max_position_embeddings`` divided by the trained length, as in transformers. If
    "original_max_position_embeddings" is missing, the trained length is ``max_position_embeddings``.

    The base (rope_theta) and, except for "proportional", the partial_rotary_factor are not part of a method. If the
    config has them, the result is a `Configured` method, and `rotary_options` returns the options that
    :class:`ropebook.efficient.RotaryEmbedding` needs. A config does not say which layout its weights have, so you have
    to name the layout: "half" for transformers' Llama. A key that transformers does not have for the method, such as
    mrope_section, is rejected (``ValueError``).

    >>> method = from_transformers({"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5}, 4096)
    >>> method
    Configured(method=Interpolation(factor=4.0), base=500000.0, fraction=None)
    >>> from ropebook.efficient import RotaryEmbedding
    >>> RotaryEmbedding(8, layout="half", **rotary_options(method, 8)).base
    500000.0
    >>> from transformers import LlamaConfig
    >>> from_transformers(LlamaConfig(rope_parameters={"rope_type": "linear", "factor": 4.0, "rope_theta": 5e5})) == method
    True
    """
    trained_length = None
    if hasattr(rope_parameters, "max_position_embeddings"):
        if max_position_embeddings is not None:
            raise ValueError(
                f"max_position_embeddings must be left out with a config, which says it, got {max_position_embeddings}"
            )
        config, rope_parameters = rope_parameters, rope_parameters.rope_parameters
        max_position_embeddings = config.max_position_embeddings
        # Phi-3's config has this attribute, which overrides the dictionary.
        trained_length = getattr(config, "original_max_position_embeddings", None)
    if not isinstance(rope_parameters, Mapping):
        raise TypeError(
            f"rope_parameters must be a config of transformers or its rope_parameters, got {rope_parameters!r}"
        )
    if any(isinstance(value, Mapping) for value in rope_parameters.values()):
        raise ValueError(
            "rope_parameters must be those of one kind of layer, "
            f"got those of {', '.join(map(repr, rope_parameters))}: read each by itself"
        )
    given = {key: one for key, one in rope_parameters.items() if one is not None}
    legacy = given.pop("type", None)
    asked = given.get("rope_type", legacy)
    kind = checks.choice("rope_parameters['rope_type']", asked, _KEYS)
    if legacy not in (None, kind):
        raise ValueError(
            f"rope_parameters['type'] must be its 'rope_type', {kind!r}, got {legacy!r}"
        )
    allowed = ("rope_type", "rope_theta", "partial_rotary_factor", *_KEYS[kind])
    unknown = [key for key in given if key not in allowed]
    if unknown:
        raise ValueError(
            f"the keys of rope_parameters must be among {', '.join(map(repr, allowed))} "
            f"for {kind!r}, got {', '.join(map(repr, unknown))}"
        )
    if trained_length is not None and kind in _OUR_OPTIONS:
        given["original_max_position_embeddings"] = trained_length
    method = _method_of(kind, given, max_position_embeddings)
    fraction = given.get("partial_rotary_factor")
    if kind == "proportional":
        fraction = None
    return Configured(method, given.get("rope_theta"), fraction)


def to_transformers(
    method: Frequencies, dim: int | None = None, base: float = 10000.0
) -> dict[str, object]:
    """Return the ``rope_parameters`` that make transformers use ``method``, for a model with this ``base``.

    ``dim``: the width of a head. `NTKAware` needs it, because in transformers that method is just another base, which
    depends on d. For "dynamic", transformers reads the trained length from the config's max_position_embeddings, so
    that setting must equal the method's ``trained_length``. Raises ``ValueError`` for a method that transformers does
    not have; `ropebook.extrapolation.install` can install such a method in a loaded model.

    >>> from ropebook.extrapolation import make
    >>> to_transformers(make("linear", factor=4.0))
    {'rope_type': 'linear', 'rope_theta': 10000.0, 'factor': 4.0}
    >>> round(to_transformers(make("ntk", factor=4.0), dim=128)["rope_theta"])
    40890
    """
    base = checks.number("base", base, minimum=1)
    if isinstance(method, Configured):
        return _of_configured(method, dim, base)
    if isinstance(method, NTKAware):
        if dim is None:
            raise ValueError(
                "dim must be given for NTK-aware scaling, whose base depends on it, got None"
            )
        base = ntk_base(base, dim, method.factor)
        return {"rope_type": "default", "rope_theta": base}
    if isinstance(method, BaseChange):
        return {"rope_type": "default", "rope_theta": float(method.base)}
    plain = {"rope_theta": base}
    if isinstance(method, Partial):
        return plain | {
            "rope_type": "default",
            "partial_rotary_factor": method.fraction,
        }
    kind = _KINDS.get(type(method))
    if kind is None or getattr(method, "ramp", "pairs") != "pairs":
        raise ValueError(
            f"method must be one that transformers has, got {method!r}: install it into a loaded model"
        )
    parameters = {"rope_type": kind, **plain, "factor": float(method.factor)}
    if kind == "proportional":
        parameters["partial_rotary_factor"] = method.fraction
    if kind not in _OUR_OPTIONS:
        return parameters
    parameters["original_max_position_embeddings"] = method.trained_length
    for theirs, ours in _OUR_OPTIONS[kind].items():
        value = getattr(method, ours)
        if value is not None:
            parameters[theirs] = list(value) if isinstance(value, tuple) else value
    return parameters


def _of_configured(
    method: Configured, dim: int | None, base: float
) -> dict[str, object]:
    base = base if method.base is None else method.base
    parameters = to_transformers(method.method, dim, base)
    if method.fraction is not None:
        parameters["partial_rotary_factor"] = method.fraction
    return parameters


def _method_of(
    kind: str, given: Mapping[str, object], max_position_embeddings: int
) -> Frequencies:

    def needed(key: str) -> object:
        if key not in given:
            raise ValueError(
                f"rope_parameters must give {key!r} for {kind!r}, got {sorted(given)}"
            )
        return given[key]

    if kind == "linear":
        return Interpolation(needed("factor"))
    if kind == "dynamic":
        return DynamicNTK(max_position_embeddings, needed("factor"))
    if kind == "proportional":
        return Proportional(
            given.get("partial_rotary_factor", 1.0), given.get("factor", 1.0)
        )
    if max_position_embeddings is None:
        needed("original_max_position_embeddings")
    # transformers uses the same default.
    trained_length = given.get(
        "original_max_position_embeddings", max_position_embeddings
    )
    if "original_max_position_embeddings" not in given and kind != "longrope":
        # Without a factor, s would be 1, the ratio of two equal lengths.
        needed("factor")
    factor = given.get("factor")
    if factor is None:
        factor = length_factor(trained_length, max_position_embeddings)
    options = {
        ours: given[theirs]
        for theirs, ours in _OUR_OPTIONS[kind].items()
        if theirs in given
    }
    return make(kind, trained_length=trained_length, factor=factor, **options)
