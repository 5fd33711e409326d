"""A brief fine-tuning on longer texts: a trained model goes on, with a method in its layers, at s times its length."""

from __future__ import annotations

import copy
import dataclasses
from dataclasses import dataclass

from ropebook import checks
from ropebook.lab.evaluation import method_options, with_method
from ropebook.lab.model import LanguageModel
from ropebook.lab.training import Run


@dataclass(frozen=True)
class Tuning(Run):
    """A `Run` that begins with another's weights; ``length`` is the new one, ``method`` and ``factor`` what is in the layers.

    >>> tuning(Run("rope-10000"), "yarn", 4).name
    'rope-10000-0-yarn-4'
    """

    method: str = "none"
    factor: int = 1

    @property
    def name(self) -> str:
        """The run's it goes on from, the method, the factor."""
        return f"{super().name}-{self.method}-{self.factor}"


def tuning(run: Run, method: str, factor: int, steps: int = 40) -> Tuning:
    """The fine-tuning of a run: as many bytes a step, in texts ``factor`` times as long, at a fifth of its learning rates.

    ``ValueError`` if ``factor`` does not divide the rows of a step.
    """
    checks.integer("factor", factor, minimum=1)
    if run.rows % factor:
        raise ValueError(
            f"factor must divide the {run.rows} rows of a step, got {factor}"
        )
    return Tuning(
        **dataclasses.asdict(run)
        | {
            "length": run.length * factor,
            "rows": run.rows // factor,
            "steps": steps,
            "warmup": 5,
            "lr": run.lr / 5,
            "matrix_lr": run.matrix_lr / 5,
        },
        method=method,
        factor=factor,
    )


def extended(model: LanguageModel, method: str, factor: int) -> LanguageModel:
    """A copy of the model with the method in its layers, by the options of `ropebook.lab.evaluation.method_options`.

    "none" leaves the layers as they are.
    """
    model = copy.deepcopy(model)
    return with_method(model, method, method_options(method, factor, model.length))


METHODS = ("none", "linear", "yarn")
FACTORS = (2, 4, 8, 16)
"""What is fine-tuned: each of the methods at each of the factors."""
