"""Tests of training runs in which one thing is changed. They check what each run changes, and that the change reaches
the model."""

import numpy as np
import pytest
import torch

from ropebook.lab import scores, trials, variants
from ropebook.lab.model import SCHEMES
from ropebook.lab.parts import Parts
from ropebook.lab.training import Trainer
from ropebook.lab.variants import Variant
from tests.together import together

TEXT = (np.arange(3000) % 90 + 33).astype(np.uint8)
PARTS = Parts(TEXT, {"d.py": TEXT}, {"h.py": TEXT}, (), "sha", "3")
TINY = {"length": 40, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "rows": 4, "steps": 6, "warmup": 2}


def test_every_training_has_a_name_of_its_own():
    rates = [one for rate in variants.BIAS_RATES for one in variants.t5(rate)]
    parents = [trial for trial in (*trials.LONGER, *variants.MORE) if trial in trials.LONGER or trial.steps > 1600]
    further = [
        of(parent, steps)
        for of in (variants.raised, variants.kept)
        for parent in parents
        for steps in variants.RAISED_STEPS
    ]
    every = [*trials.TRIALS, *trials.LONGER, *variants.MORE, *rates, *variants.VARIANTS, *further]
    assert len({one.name for one in every}) == len(every)
    assert set(variants.T5_CANDIDATES) < set(rates)
    assert {one.scheme for one in (*variants.MORE, *rates)} == set(SCHEMES)
    assert all(one.length * one.rows == 16 * 256 for one in every)  # every step must have the same number of bytes
    assert {one.length for one in variants.CEILING} == {variants.REACH} == {scores.TEXT}


def test_an_entry_of_the_table_can_travel_ten_with_every_candidate():
    for trial in variants.T5_CANDIDATES:
        assert sum(trial.rate(step) for step in range(trial.steps)) * trial.bias_lr > 10
    shipped = trials.Trial("t5")
    assert sum(shipped.rate(step) for step in range(shipped.steps)) * shipped.lr < 2


def test_the_table_has_its_own_rate_and_nothing_else_has(tmp_path):
    trainer = Trainer(Variant("t5", **TINY, variant="x", bias_lr=0.3), PARTS, tmp_path)
    trainer.advance()
    trainer.advance()
    groups = trainer.optimizers[1].param_groups
    (table,) = [group for group in groups if any(w is trainer.model.buckets for w in group["params"])]
    assert len(table["params"]) == 1
    assert [group["lr"] for group in groups if group is not table] == [trainer.run.lr]
    assert table["lr"] == 0.3
    # Adam's first steps are about as large as the learning rate, which is 0.15 at step 0 and 0.3 at step 1
    assert 0.3 < trainer.model.buckets.abs().max() <= 0.4501
    plain = Trainer(Variant("t5", **TINY, variant="y"), PARTS, tmp_path)
    assert len(plain.optimizers[1].param_groups) == 1


def test_gaps_spread_positions_and_leave_the_rows():
    run = Variant("rope-10000", 1, variant="gaps", reach=2048)
    drawn = [run.positions(step) for step in range(300)]
    places = torch.cat(drawn)
    steps = places.diff()
    assert (places[:, 0] == 0).all()
    assert (steps >= 1).all()
    assert ((steps > 1).sum(1) <= 1).all()
    assert places.max() <= 2047
    assert places[:, -1].min() < 400
    assert places[:, -1].max() > 1900
    assert len((steps > 1).int().argmax(1).unique()) > 200  # gaps must occur everywhere in the row
    assert torch.equal(run.positions(7), drawn[7])
    assert not torch.equal(run.positions(8), drawn[7])
    assert torch.equal(run.batch(PARTS, 7), trials.Trial("rope-10000", 1).batch(PARTS, 7))
    assert Variant("rope-10000", variant="x").positions(0) is None


def test_positions_reach_the_model(tmp_path):
    with_gaps = Trainer(Variant("rope-10000", **TINY, variant="x", reach=2000), PARTS, tmp_path)
    without = Trainer(Variant("rope-10000", **TINY, variant="y"), PARTS, tmp_path)
    assert with_gaps.advance() != without.advance()
    small = Variant("rope-10000", **TINY, variant="z", reach=TINY["length"])  # there is no room for a gap in this row
    assert Trainer(small, PARTS, tmp_path).advance() == pytest.approx(without.losses[0], rel=1e-6)


def test_partial_rotation_is_trained_stored_and_read(tmp_path):
    from safetensors.torch import save

    run = Variant("rope-10000", **TINY, variant="half", rotary_dim=4)
    trainer = Trainer(run, PARTS, tmp_path)
    assert trainer.model.layers[0].attention.rotary.rotary_dim == 4
    list(trainer.train())
    model = trainer.model.eval()
    state = {name: w.contiguous() for name, w in model.state_dict().items() if name != "lm_head.weight"}
    again = variants.of_weights(save(state), vars(run))
    tokens = torch.from_numpy(TEXT[None, :40].astype(np.int64))
    assert torch.equal(again(tokens), model(tokens))
    whole = variants.of_weights(save(state), vars(run) | {"rotary_dim": None})
    assert not torch.allclose(whole(tokens), model(tokens), atol=1e-3)


@together(
    ("changes", "message"),
    [
        ({"scheme": "alibi", "bias_lr": 0.1}, "scheme of a bias_lr must be one of"),
        ({"scheme": "t5", "bias_lr": 0.0}, "bias_lr must be"),
        ({"scheme": "none", "reach": 2048}, "scheme of a reach must be one of"),
        ({"scheme": "rope-10000", "reach": 255}, "reach must be an integer >= 256"),
    ],
)
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        Variant(**changes, variant="x")


def test_what_rotates_nothing_has_no_share_that_rotates(tmp_path):
    with pytest.raises(ValueError, match="rotary_dim must be None for the scheme 'none'"):
        Trainer(Variant("none", **TINY, variant="x", rotary_dim=4), PARTS, tmp_path)


def test_the_rate_is_chosen_among_the_candidates_only():
    losses = dict.fromkeys(variants.BIAS_RATES, 2.0)
    assert variants.choose_rate(losses | {0.05: 1.9}) == 0.05
    with pytest.raises(ValueError, match="losses must be of"):
        variants.choose_rate({0.05: 1.9})
    with pytest.raises(ValueError, match="rate must be one of"):
        variants.t5(0.3)
