"""Exercises whose answers are looked at: hand in a function or a word, and be told which mistake was made.

`check` takes the name of an exercise and an answer. One module for each chapter holds its exercises; `marking` says how an
answer is looked at.
"""

from __future__ import annotations

import types
from collections.abc import Mapping

from ropebook import checks
from ropebook.exercises import (
    attention,
    complex_plane,
    decay,
    derivation,
    efficient,
    extrapolation,
    sinusoidal,
)
from ropebook.exercises.marking import Chosen, Feedback, Rotation, Written

EXERCISES: Mapping[str, Written | Rotation | Chosen] = types.MappingProxyType(
    {
        "attention: weights": attention.WEIGHTS,
        "attention: heads": attention.HEADS,
        "attention: leak": attention.LEAK,
        "sinusoidal: encoding": sinusoidal.ENCODING,
        "sinusoidal: step": sinusoidal.STEP,
        "sinusoidal: bug": sinusoidal.BUG,
        "derivation: matrix": derivation.MATRIX,
        "derivation: score": derivation.SCORE,
        "derivation: bug": derivation.BUG,
        "complex plane: rotation": complex_plane.TURN,
        "complex plane: amplitudes": complex_plane.AMPLITUDES,
        "complex plane: bug": complex_plane.BUG,
        "efficient: rotation": efficient.ROTATION,
        "efficient: conversion": efficient.CONVERSION,
        "efficient: bug": efficient.BUG,
        "decay: share": decay.SHARE,
        "decay: turned": decay.TURNED,
        "decay: leak": decay.LEAK,
        "extrapolation: base": extrapolation.BASE,
        "extrapolation: parts": extrapolation.PARTS,
        "extrapolation: bug": extrapolation.BUG,
    }
)


def check(name: str, answer: object) -> Feedback:
    """Look at an answer to the exercise ``name``, one of `EXERCISES`.

    >>> check("extrapolation: base", lambda base, dim, s: base * s)
    Not yet: base · s stretches the last pair by less than s: the exponent d/(d − 2) is missing.
    """
    return EXERCISES[checks.choice("name", name, EXERCISES)].check(answer)


__all__ = ["EXERCISES", "Chosen", "Feedback", "Rotation", "Written", "check"]
