"""The second experiment's methods: what is put into the trained models, and which of their parameters are chosen.

A method is put into the models with RoPE and base 10⁴, in each of the factors s = 2, 4, 8 where it has one. Some have a parameter that
no formula gives for so short an L. It has a published value, and a value that is chosen on the development part by `CRITERION`; both are
tried on the held-out part.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ropebook import checks
from ropebook.extrapolation import SelfExtend
from ropebook.lab.scores import LENGTH

FACTORS = (2, 4, 8)
CRITERION = (
    "the lowest mean over seeds, over the Python and the generated text, and over the bands from 0 to 4 L, "
    "all bands alike, with s = 4"
)
CANDIDATES: Mapping[str, tuple[int, ...]] = {
    "ntk_by_parts": (2, 4, 8, 16, 32),  # β
    "yarn": (2, 4, 8, 16, 32),
    "self_extend": (32, 64, 128, 192),  # the window
    "rerope": (64, 128, 192, 224),
}
PUBLISHED_BETA = 32.0
TUNED = ("none", "linear", "yarn_chosen")
"""What is trained a little further, on texts of s·L bytes."""


@dataclass(frozen=True)
class Extension:
    """One method with its options, as `ropebook.lab.longer.with_method` takes them."""

    name: str
    method: str
    factor: int | None = None
    options: Mapping[str, object] = field(default_factory=dict)

    @property
    def id(self) -> str:
        """
        >>> Extension("yarn_chosen", "yarn", 4).id
        'yarn_chosen/4'
        """
        return self.name + (f"/{self.factor}" if self.factor else "")


def candidate(method: str, parameter: int, factor: int | None) -> Extension:
    """A method with one value of its parameter.

    >>> candidate("self_extend", 64, 4).options
    {'window': 64, 'group': 6}
    """
    checks.choice("method", method, CANDIDATES)
    if method == "rerope":
        return Extension(method, method, None, {"window": parameter})
    if method == "self_extend":
        group = 1
        while SelfExtend(parameter, group).reach(LENGTH) < factor * LENGTH:
            group += 1
        return Extension(
            method, method, factor, {"window": parameter, "group": group}
        )
    options = {"trained_length": LENGTH, "factor": factor, "beta": float(parameter)}
    return Extension(method, method, factor, options)


def choose(found: Mapping[str, Mapping[int, Sequence[float]]]) -> dict[str, int]:
    """By method the parameter with the lowest mean; ``found``: by method and parameter, a number for each seed.

    ``ValueError`` if a candidate is missing, or not all have as many seeds.

    >>> choose({"rerope": {64: [2.0, 2.1], 128: [1.9, 2.0], 192: [2.0, 2.0], 224: [3.0, 3.0]}})
    {'rerope': 128}
    """
    chosen = {}
    for method, by_parameter in found.items():
        checks.choice("method", method, CANDIDATES)
        if set(by_parameter) != set(CANDIDATES[method]):
            raise ValueError(
                f"found must have {method} with {CANDIDATES[method]}, got {tuple(by_parameter)}"
            )
        if len({len(numbers) for numbers in by_parameter.values()}) != 1:
            raise ValueError(f"found must have as many seeds of every {method}")
        chosen[method] = min(by_parameter, key=lambda at: sum(by_parameter[at]))
    return chosen


def extensions(chosen: Mapping[str, int]) -> list[Extension]:
    """All that is tried without further training, with the parameters that `choose` chose."""
    missing = set(CANDIDATES) - set(chosen)
    if missing:
        raise ValueError(
            f"chosen must have {', '.join(sorted(missing))}, got {dict(chosen)}"
        )
    every = []
    for s in FACTORS:
        of_length = {"trained_length": LENGTH, "factor": s}
        every += [
            Extension("linear", "linear", s, {"factor": s}),
            Extension("ntk", "ntk", s, {"factor": s}),
            Extension("ntk_by_parts", "ntk_by_parts", s, of_length),
            Extension("yarn", "yarn", s, of_length),
            Extension(
                "yarn_unscaled", "yarn", s, {**of_length, "attention_factor": 1.0}
            ),
            candidate("self_extend", chosen["self_extend"], s),
        ]
        for method in ("ntk_by_parts", "yarn"):
            options = candidate(method, chosen[method], s).options
            every.append(Extension(f"{method}_chosen", method, s, options))
        unscaled = {**options, "attention_factor": 1.0}
        every.append(Extension("yarn_chosen_unscaled", "yarn", s, unscaled))
    # as published, and as shipped with a factor in the configuration
    for s in (1, 2, 4):
        name = "dynamic_ntk" if s == 1 else f"dynamic_ntk_{s}"
        options = {"trained_length": LENGTH, "factor": float(s)}
        every.append(Extension(name, "dynamic_ntk", None, options))
    every.append(Extension("log_n", "log_n", None, {"trained_length": LENGTH}))
    every.append(candidate("rerope", chosen["rerope"], None))
    return every
