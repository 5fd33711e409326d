"""Exercises with feedback.

Hand in a function, a word or numbers, and find out if your answer is right or which mistake you made.

`check` takes the name of an exercise and an answer. Each chapter has a module of exercises, which is imported only when
needed, so a page depends only on its own chapter. `by_hand` contains the exercises that are worked out on paper.
`marking` checks answers in general, and `answers` checks numerical ones.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping

from ropebook import checks
from ropebook.exercises.answers import Numbers
from ropebook.exercises.by_hand import BY_HAND
from ropebook.exercises.marking import Chosen, Feedback, Rotation, Written

TASKS = {
    "attention": ("weights", "heads", "leak"),
    "sinusoidal": ("encoding", "step", "bug"),
    "derivation": ("matrix", "score", "bug"),
    "complex plane": ("rotation", "amplitudes", "bug"),
    "efficient": ("rotation", "conversion", "bug"),
    "decay": ("share", "turned", "leak"),
    "extrapolation": ("base", "parts", "bug"),
}
"""The tasks of each chapter. In the chapter's module, each task is a constant with the same name in capitals."""


class _Exercises(Mapping[str, Written | Rotation | Chosen | Numbers]):
    """Mapping from names of the form "chapter: task" to exercises."""

    def __getitem__(self, name: str) -> Written | Rotation | Chosen | Numbers:
        if name in BY_HAND:
            return BY_HAND[name]
        chapter, _, task = name.partition(": ")
        if task not in TASKS.get(chapter, ()):
            raise KeyError(name)
        name_of_module = f"{__name__}.{chapter.replace(' ', '_')}"
        return getattr(importlib.import_module(name_of_module), task.upper())

    def __iter__(self) -> Iterator[str]:
        for chapter, tasks in TASKS.items():
            yield from (f"{chapter}: {task}" for task in tasks)
        yield from BY_HAND

    def __len__(self) -> int:
        return sum(map(len, TASKS.values())) + len(BY_HAND)


EXERCISES = _Exercises()


def check(name: str, answer: object) -> Feedback:
    """Check an answer to the exercise ``name``, one of `EXERCISES`.

    >>> check("extrapolation: base", lambda base, dim, s: base * s)
    Not yet: base · s stretches the last pair by less than s: the exponent d/(d − 2) is missing.
    """
    return EXERCISES[checks.choice("name", name, EXERCISES)].check(answer)


__all__ = [
    "EXERCISES",
    "Chosen",
    "Feedback",
    "Numbers",
    "Rotation",
    "Written",
    "check",
]
