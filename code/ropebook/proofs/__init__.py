"""Checks of the book's equations, one module per chapter, and the registry from which the ledger of equations is built.

There are three kinds of check. For an *identity*, the check builds both sides, and sympy decides whether they are
equal. For a *definition*, the check names the function that implements it, and compares that function with the formula
written out. For a *statement*, the check measures whether it is true. Every check has a wrong twin: the same check with
one mistake in it, such as a flipped sign, or a sine instead of a cosine. The twin must fail, because a check that
accepts its twin would accept anything.

    @identity("eq-double-angle", "t", twin="a cosine instead of the sine")
    def double_angle(wrong=False):
        t = sympy.Symbol("t", real=True)
        return [(sympy.sin(2 * t), 2 * sympy.sin(t) * (sympy.cos(t) if not wrong else sympy.sin(t)))]

    @statement("eq-unit-norm", twin="the sine is counted twice")
    def unit_norm(wrong=False):
        t = torch.linspace(0, 6, 100, dtype=torch.float64)
        norm = t.sin() ** 2 + (t.sin() if wrong else t.cos()) ** 2
        return [Claim("sin² + cos² = 1", (norm - 1).abs().max().item(), 1e-15)]
"""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import sympy
from IPython.display import display
from sympy.core.function import AppliedUndef

from ropebook.show import Forms

Pairs = list[tuple[sympy.Basic, sympy.Basic]]
OUTCOMES = "application/vnd.ropebook.outcomes+json"
"""The MIME type of the output that `verify` displays on the site: a list with the `outcome` of each equation."""


@dataclass(frozen=True)
class Claim:
    """One measured comparison: its description, the error, and the largest error allowed."""

    what: str
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        return self.error <= self.allowed  # False if the error is NaN


@dataclass(frozen=True)
class Proof:
    """A registered check."""

    label: str
    """The equation's label on the page, "eq-…"."""
    kind: str
    """The kind of check: "definition", "identity" or "statement"."""
    function: Callable[..., Pairs | list[Claim]]
    """The check itself: function(wrong=False) -> [(left, right), …] or [Claim, …]."""
    symbols: tuple[str, ...]
    """For an identity, its free symbols as LaTeX prints them."""
    twin: str
    """A description of the twin's mistake."""
    source: str
    """The file and line of the check, such as "ropebook/proofs/sinusoidal.py:40"."""
    implements: str = ""
    """For a definition, the name of the function that implements it, such as "ropebook.rope.inv_freq"."""

    @property
    def says(self) -> str:
        """The first paragraph of the function's docstring, which describes the check in plain text."""
        return " ".join((self.function.__doc__ or "").split("\n\n")[0].split())


_REGISTRY: dict[str, Proof] = {}


def identity(
    label: str, *symbols: str, twin: str
) -> Callable[[Callable[..., Pairs]], Callable[..., Pairs]]:
    """Register the decorated function as the proof of the equation ``label``.

    With ``wrong=False``, the function returns pairs (left, right) of sympy expressions, scalars or matrices, that must
    be equal. With ``wrong=True``, it returns the pairs of its twin, which must differ. ``symbols`` lists the free
    symbols as LaTeX prints them, so that `pairs` can detect a proof whose letters differ from those on the page.
    ``twin`` describes the twin's mistake. Raises ``ValueError`` for a malformed label or a label that is already taken.
    """
    return _register(label, "identity", twin, symbols=symbols)


def definition(
    label: str, *, implements: str, twin: str
) -> Callable[[Callable], Callable]:
    """Register the check of a definition: function(wrong=False) -> list[Claim].

    ``implements`` is the full name of the function or class that implements the definition. Raises ``ValueError`` if
    there is no such function or class, if the label is malformed or already taken, or if ``twin`` is empty.
    """
    module, _, name = implements.rpartition(".")
    try:
        target = getattr(importlib.import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise ValueError(
            f"implements must name a function or class that exists, got {implements!r}"
        ) from error
    if not callable(target):
        raise ValueError(
            f"implements must name a function or class, got {implements!r}"
        )
    return _register(label, "definition", twin, implements=implements)


def statement(label: str, *, twin: str) -> Callable[[Callable], Callable]:
    """Register the check of a statement: function(wrong=False) -> list[Claim]. Raises the same errors as `identity`."""
    return _register(label, "statement", twin)


def _register(
    label: str,
    kind: str,
    twin: str,
    symbols: tuple[str, ...] = (),
    implements: str = "",
) -> Callable[[Callable], Callable]:
    if not isinstance(label, str) or not re.fullmatch(r"eq(-[a-z0-9]+)+", label):
        raise ValueError(
            f"label must look like 'eq-sinusoidal-shift', got {label!r}"
        )
    if not isinstance(twin, str) or not twin.strip():
        raise ValueError(
            f"twin must say what is wrong with the wrong twin, got {twin!r}"
        )

    def register(function: Callable) -> Callable:
        if label in _REGISTRY:
            raise ValueError(
                f"label {label!r} is taken by {_REGISTRY[label].source}"
            )
        _REGISTRY[label] = Proof(
            label, kind, function, symbols, twin, _source(function), implements
        )
        return function

    return register


def registry() -> MappingProxyType[str, Proof]:
    """Return all proofs by label, from every module in this package, as a read-only mapping."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return MappingProxyType(_REGISTRY)


def find(label: str) -> Proof:
    """Find the proof of an equation. The label starts with the name of a chapter, and only that chapter's module is
    imported, so a page depends only on the proofs that it shows. Raises ``KeyError`` if no check has this label."""
    for module in pkgutil.iter_modules(__path__):
        if f"{label}-".startswith(f"eq-{module.name.replace('_', '-')}-"):
            importlib.import_module(f"{__name__}.{module.name}")
    return _REGISTRY[label]


def pairs(proof: Proof, wrong: bool = False) -> Pairs:
    """Return the two sides of each equality of an identity, or of its wrong twin, after checking their form.

    Raises ``ValueError`` if there are no equalities, so that nothing would be proved, or if the free symbols differ
    from the declared ones. Raises ``TypeError`` if a side is not a sympy expression or matrix.
    """
    found = list(proof.function(wrong=wrong))
    if not found:
        raise ValueError(
            f"{proof.label}: nothing to prove, the function gave no pairs"
        )
    for left, right in found:
        for side in (left, right):
            if not isinstance(side, (sympy.Expr, sympy.MatrixBase)):
                raise TypeError(
                    f"{proof.label}: a side must be a sympy expression or matrix, got {side!r}"
                )
    used = {
        name
        for left, right in found
        for side in (left, right)
        for name in _free_symbols(side)
    }
    if not wrong and used != set(proof.symbols):
        raise ValueError(
            f"{proof.label}: declared for {sorted(proof.symbols)}, but its symbols are {sorted(used)}"
        )
    return found


def claims(proof: Proof, wrong: bool = False) -> list[Claim]:
    """Return the measurements of a definition's or statement's check, or of its wrong twin. Raises ``ValueError`` if
    the check measured nothing."""
    found = list(proof.function(wrong=wrong))
    if not found:
        raise ValueError(
            f"{proof.label}: nothing to check, the function gave no claims"
        )
    return found


def holds(proof: Proof) -> bool:
    """Return whether the check holds. An identity holds if sympy simplifies every left − right to zero; numerical
    values are used only to refute it. Any other check holds if the error of every claim is within the allowed limit."""
    return all(one.holds for one in _evidence(proof))


def refused(proof: Proof) -> bool:
    """Return whether the wrong twin fails completely, which means that its mistake breaks every equality and every
    claim."""
    return not any(one.holds for one in _evidence(proof, wrong=True))


def verify(*labels: str) -> None:
    """Check each equation and its wrong twin, and show how they were checked. On a page, this appears behind the
    equation's seal.

    Raises ``AssertionError``, naming the equation, if an equation does not hold or its twin is accepted. Raises
    ``KeyError`` if a label has no check.
    """
    outcomes = [outcome(find(label)) for label in labels]
    text = "\n".join(
        f"{one['label']}: {one['seal']}\n  {one['says']}\n  {'; '.join(one['held'])}\n"
        f"  wrong twin, refused: {one['twin']}"
        for one in outcomes
    )
    display(Forms({"text/plain": text, OUTCOMES: outcomes}))


def outcome(proof: Proof) -> dict[str, str | list[str]]:
    """Describe in words the outcome of the check and of its wrong twin. Raises ``AssertionError`` as `verify` does."""
    right, wrong = _evidence(proof), _evidence(proof, wrong=True)
    if not all(one.holds for one in right):
        raise AssertionError(f"{proof.label} does not hold")
    if any(one.holds for one in wrong):
        raise AssertionError(f"{proof.label}: the twin was accepted")
    return {
        "label": proof.label,
        "kind": proof.kind,
        "seal": "proved by sympy" if proof.kind == "identity" else "tested",
        "says": proof.says,
        "held": _counted(one.words for one in right),
        "twin": proof.twin,
        "refused": _counted(one.words for one in wrong),
    }


class _Evidence(NamedTuple):
    """The outcome of one equality or claim, and whether it holds."""

    words: str
    holds: bool


def _evidence(proof: Proof, wrong: bool = False) -> list[_Evidence]:
    if proof.kind != "identity":
        return [
            _Evidence(
                f"{one.what}: {one.error:.3g} (at most {one.allowed:.3g})",
                one.holds,
            )
            for one in claims(proof, wrong)
        ]
    found = [_vanishes(left, right) for left, right in pairs(proof, wrong)]
    words = {True: "left − right is 0", False: "left − right is not 0"}
    return [_Evidence(words[vanishes], vanishes) for vanishes in found]


def _counted(words: Iterable[str]) -> list[str]:
    """List each distinct sentence once, with the number of times it occurs."""
    counts = Counter(words)
    return [f"{one}, {n} times" if n > 1 else one for one, n in counts.items()]


def _vanishes(left: sympy.Basic, right: sympy.Basic) -> bool:
    if left.is_Matrix != right.is_Matrix or (
        left.is_Matrix and left.shape != right.shape
    ):
        return False
    difference = left.doit() - right.doit()
    if isinstance(difference, sympy.MatrixBase):  # entry by entry
        return all(_is_zero(entry) for entry in difference)
    if difference.is_Matrix:  # a matrix of symbolic size: multiply it out
        return difference.expand().is_ZeroMatrix is True
    return _is_zero(difference)


def _is_zero(expression: sympy.Expr) -> bool:
    # Most true equalities cancel as soon as functions of sums are expanded, and numbers refute most false ones. Both
    # checks are about fifty times as fast as simplifying.
    if sympy.expand(expression, trig=True) == 0:
        return True
    return not _counterexample(expression) and sympy.simplify(expression) == 0


# Expressions that take a long time to evaluate, or that have no value even when all their free symbols have one.
_NOT_FOR_NUMBERS = (
    AppliedUndef,
    sympy.Indexed,
    sympy.MatrixSymbol,
    sympy.Product,
    sympy.Sum,
)


def _counterexample(expression: sympy.Expr) -> bool:
    """Return whether the expression is certainly nonzero at one chosen point. There, integer symbols are different
    primes, and all other symbols are sevenths of primes. A result of False proves nothing."""
    if expression.has(*_NOT_FOR_NUMBERS):
        return False
    place = {}
    for count, symbol in enumerate(
        sorted(expression.free_symbols, key=sympy.latex), start=4
    ):
        prime = sympy.Integer(sympy.prime(count))
        place[symbol] = prime if symbol.is_integer else prime / 7
        if any(
            getattr(place[symbol], f"is_{name}") is not fact
            for name, fact in symbol.assumptions0.items()
        ):
            return False
    # sympy computes with as many digits as it needs to get these 30 right.
    value = expression.subs(place).evalf(30)
    return bool(value.is_finite and abs(value) > 1e-9)


def _free_symbols(side: sympy.Basic) -> set[str]:
    # For an indexed symbol we count only the base: θ_0, θ_1, … are all θ.
    return {
        sympy.latex(symbol)
        for symbol in side.free_symbols
        if not isinstance(symbol, sympy.Indexed)
    }


def _source(function: Callable) -> str:
    path = Path(function.__code__.co_filename)
    package = Path(__file__).parents[2]  # the folder that contains ropebook
    shown = (
        path.relative_to(package)
        if path.is_relative_to(package)
        else Path(path.name)
    )
    return f"{shown.as_posix()}:{function.__code__.co_firstlineno}"
