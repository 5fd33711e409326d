"""Fine-tunings: a run's bytes a step in longer texts, on a copy of its model."""

import pytest
import torch

from ropebook.lab import tuning
from ropebook.lab.model import LanguageModel
from ropebook.lab.training import Run


@pytest.mark.parametrize("factor", tuning.FACTORS)
def test_as_many_bytes_a_step_in_longer_texts(factor):
    run = Run("rope-10000", seed=1)
    piece = tuning.tuning(run, "linear", factor, steps=7)
    assert piece.length == factor * run.length
    assert piece.length * piece.rows == run.length * run.rows
    assert (piece.scheme, piece.seed, piece.method, piece.factor, piece.steps) == ("rope-10000", 1, "linear", factor, 7)
    assert piece.lr / run.lr == piece.matrix_lr / run.matrix_lr == pytest.approx(0.2)
    assert piece.name == f"rope-10000-1-linear-{factor}"


def test_a_factor_must_divide_the_rows():
    with pytest.raises(ValueError, match="factor must divide the 16 rows of a step, got 3"):
        tuning.tuning(Run("rope-10000"), "yarn", 3)
    with pytest.raises(ValueError, match="factor must be an integer >= 1, got 0"):
        tuning.tuning(Run("rope-10000"), "yarn", 0)


def test_the_copy_has_the_method_and_the_model_stays():
    model = LanguageModel("rope-10000", 16, dim=8, hidden_dim=8, n_layers=1, n_heads=1)
    tokens = torch.arange(40)[None]
    before = model(tokens)
    longer = tuning.extended(model, "linear", 4)
    assert longer.layers[0].attention.rotary.scaling.factor == 4
    assert not torch.allclose(longer(tokens), before)
    same = tuning.extended(model, "none", 4)
    assert torch.equal(same(tokens), before)
    with torch.no_grad():
        for copied in (longer, same):
            copied.layers[0].attention.q_proj.weight.zero_()
    assert torch.equal(model(tokens), before)
