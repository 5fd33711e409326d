"""Check answers to exercises.

The feedback says that an answer is right, names a known mistake, or shows where the answer first goes wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from ropebook.diagnose import diagnose

# These tolerances also accept answers computed in float32.
_CLOSE = {"rtol": 1e-4, "atol": 1e-4, "equal_nan": True}


HALF_EXPONENT = "the exponent is −i/d: it should be −2i/d, from 0 to nearly −1, because there are d/2 pairs."


@dataclass(frozen=True)
class Feedback:
    """Feedback on an answer. ``mistake`` is the name of the mistake, or None if the answer is right."""

    mistake: str | None
    said: str

    @property
    def right(self) -> bool:
        """Whether the answer is right."""
        return self.mistake is None

    def __str__(self) -> str:
        """Return the verdict and the feedback."""
        return f"{'Right' if self.right else 'Not yet'}: {self.said}"

    __repr__ = __str__


@dataclass(frozen=True)
class Written:
    """An exercise whose answer is a function.

    ``mistakes`` maps names to wrong answers, each with its feedback. ``cases`` contains arguments for which the right
    answer and all the wrong ones return different results.
    """

    right: Callable
    mistakes: Mapping[str, tuple[Callable, str]]
    cases: Sequence[tuple]
    praise: str

    def check(self, answer: object) -> Feedback:
        """Return the feedback on the known answer, right or wrong, whose results match those of ``answer``.

        If no known answer matches, show where ``answer`` goes wrong.
        """
        found = []
        for case in self.cases:
            about = f"The arguments were {_short(case)}."
            result = _returned(answer, _copied(case), about)
            if isinstance(result, Feedback):
                return result
            try:
                found.append(_tensors(result))
            except (TypeError, ValueError, RuntimeError):
                said = f"it should return {_shapes(_tensors(self.right(*case)))}, and returned {type(result).__name__}."
                return Feedback("no_numbers", said)
        expected = [_tensors(self.right(*case)) for case in self.cases]
        if _same(found, expected):
            return Feedback(None, self.praise)
        for name, (wrong, said) in self.mistakes.items():
            if _same(found, [_tensors(wrong(*case)) for case in self.cases]):
                return Feedback(name, said)
        return self._shown(found, expected)

    def _shown(self, found: list, expected: list) -> Feedback:
        """Return feedback on the first case in which the answer's shape or numbers are wrong."""
        for case, ours, theirs in zip(self.cases, found, expected, strict=True):
            if [x.shape for x in ours] != [x.shape for x in theirs]:
                said = f"it should return {_shapes(theirs)}, and returned {_shapes(ours)}, for {_short(case)}."
                return Feedback("shape", said)
            if not _same([ours], [theirs]):
                break
        if any(x.isnan().any() for x in ours):
            return Feedback(
                "nan", f"there is NaN in what it returns for {_short(case)}."
            )
        off = max(
            (x - y).abs().max().item() for x, y in zip(ours, theirs, strict=True)
        )
        said = (
            f"none of the usual mistakes, but numbers are off by up to {off:.2g} for {_short(case)}. "
            f"{_first_that_differs(ours, theirs)}."
        )
        return Feedback("other", said)


@dataclass(frozen=True)
class Rotation:
    """An exercise whose answer is a function f(q, k, positions) that rotates q and k.

    The rotation must suit weights with the given layout and base.
    """

    layout: str
    base: float
    praise: str
    dim: int = 16
    hints: Mapping[str, str] = field(default_factory=dict)

    def check(self, answer: object) -> Feedback:
        """Return feedback on the first mistake that the diagnosis finds."""
        x = torch.ones(1, 1, 3, self.dim, dtype=torch.float64)
        about = f"q and k were (1, 1, 3, {self.dim}), positions (3,)."
        result = _returned(answer, [x.clone(), x.clone(), torch.arange(3)], about)
        if isinstance(result, Feedback):
            return result
        report = diagnose(
            answer,
            layout=self.layout,
            base=self.base,
            dim=self.dim,
            call="q, k, positions",
            order="batch heads seq dim",
        )
        for name, said in report.mistakes.items():
            return Feedback(name, f"{said}. {self.hints.get(name, '')}".strip())
        if report.scaling:
            return Feedback("scaled", f"{report.evidence['scaling']}.")
        for said in report.undetermined.values():
            return Feedback("undetermined", f"{said}.")
        if report.rotary_dim != self.dim:
            return Feedback("partial", f"{report.evidence['part']}.")
        return Feedback(None, self.praise)


@dataclass(frozen=True)
class Chosen:
    """An exercise whose answer is one of a few strings. ``options`` maps each string to the feedback on it."""

    right: str
    options: Mapping[str, str]

    def check(self, answer: object) -> Feedback:
        """Return the feedback on the chosen string."""
        if answer is None or answer is ...:
            names = ", ".join(map(repr, self.options))
            return Feedback("nothing", f"choose one of {names}.")
        if not isinstance(answer, str) or answer not in self.options:
            names = ", ".join(map(repr, self.options))
            return Feedback("no_option", f"{answer!r} is none of {names}.")
        return Feedback(
            None if answer == self.right else answer, self.options[answer]
        )


def _returned(answer: object, arguments: Sequence, about: str) -> object:
    """Call the answer and return its result. If there is no usable result, return a `Feedback` instead."""
    if not callable(answer):
        return Feedback(
            "no_function", f"the answer is a function, this is {answer!r}."
        )
    try:
        result = answer(*arguments)
    except Exception as error:
        said = f"it raised {type(error).__name__}: {error}. {about}"
        return Feedback("raises", said)
    if result is None or result is ...:
        return Feedback("nothing", "the function returns nothing.")
    return result


def _copied(case: tuple) -> list:
    return [x.clone() if isinstance(x, Tensor) else x for x in case]


def _tensors(result: object) -> list[Tensor]:
    """Convert a result (a tensor, an array, a number, or a tuple of these) to a list of tensors in float64."""
    if isinstance(result, tuple):
        return [tensor for one in result for tensor in _tensors(one)]
    if isinstance(result, (str, dict, set)):
        raise TypeError("no numbers")
    tensor = torch.as_tensor(result)
    if tensor.is_complex():
        raise TypeError("complex numbers")
    return [tensor.detach().double()]


def _same(found: list, expected: list) -> bool:
    return all(
        len(ours) == len(theirs)
        and all(
            x.shape == y.shape and torch.allclose(x, y, **_CLOSE)
            for x, y in zip(ours, theirs, strict=True)
        )
        for ours, theirs in zip(found, expected, strict=True)
    )


def _first_that_differs(ours: list[Tensor], theirs: list[Tensor]) -> str:
    """Describe the first wrong entry: its index, the right value, and the value found."""
    wrong = [
        ~torch.isclose(x, y, **_CLOSE) for x, y in zip(ours, theirs, strict=True)
    ]
    number = next(i for i, one in enumerate(wrong) if one.any())
    x, y = ours[number], theirs[number]
    place = tuple(wrong[number].nonzero()[0].tolist())
    of = ""
    if len(ours) > 1:
        of = f" of the {('first', 'second', 'third')[number]} result"
    what = f"The number{of}"
    if place:
        what = f"The first entry that differs, {list(place)}{of},"
    return f"{what} should be {y[place]:.4g}, and is {x[place]:.4g}"


def _shapes(tensors: list[Tensor]) -> str:
    shapes = [str(tuple(x.shape)) if x.ndim else "a number" for x in tensors]
    return " and ".join(f"shape {one}" if one[0] == "(" else one for one in shapes)


def _short(case: tuple) -> str:
    return ", ".join(
        f"a tensor of shape {tuple(x.shape)}" if isinstance(x, Tensor) and x.numel() > 8
        else str(x.tolist()) if isinstance(x, Tensor) else getattr(x, "__name__", repr(x))
        for x in case
    )  # fmt: skip


def random(*shape: int, seed: int = 0) -> Tensor:
    """Draw normally distributed float64 numbers. The same seed always gives the same numbers.

    >>> random(2, 3).shape
    torch.Size([2, 3])
    """
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(shape, dtype=torch.float64, generator=generator)
