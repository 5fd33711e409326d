"""Tests of the training runs in the second experiment. They check which runs there are, what their rows contain, and
that they train and resume like the runs of the first experiment."""

import numpy as np
import pytest
import torch

from ropebook.lab import data, language, tasks, trials
from ropebook.lab.model import SCHEMES
from ropebook.lab.parts import Parts
from ropebook.lab.training import Trainer
from tests.together import together

TEXT = (np.arange(3000) % 90 + 33).astype(np.uint8)
PARTS = Parts(TEXT, {"d.py": TEXT}, {"h.py": TEXT}, (), "sha", "3")
TINY = {"length": 40, "dim": 16, "hidden_dim": 24, "n_layers": 2, "n_heads": 2, "rows": 4, "steps": 6, "warmup": 2}


def test_every_scheme_with_three_seeds():
    assert len(trials.TRIALS) == len({trial.name for trial in trials.TRIALS}) == 27
    assert {(t.scheme, t.seed) for t in trials.TRIALS} == {(s, seed) for s in SCHEMES for seed in (0, 1, 2)}
    sizes = {tuple(v for k, v in vars(t).items() if k not in ("scheme", "seed")) for t in trials.TRIALS}
    assert len(sizes) == 1
    assert trials.TRIALS[0].length == 256
    assert trials.TRIALS[0].rows % len(trials.KINDS) == 0


@together("kind", trials.KINDS)
def test_a_row_of_each_kind(kind):
    row = trials.row(kind, TEXT, 257, np.random.default_rng(0))
    assert row.shape == (257,)
    assert row.dtype == np.uint8
    records = int(((row >= data.RECORD) & (row < data.RECORD + 64)).sum())
    assert records == {"python": 0, "retrieval": 16, "order": 24, "language": 0}[kind]
    assert (row[::2] >= language.NOUN).all() == (kind == "language")
    assert ((row >= tasks.FIRST) & (row < tasks.FIRST + 8)).any() == (kind == "order")


def test_a_short_row_has_as_many_keys_as_fit():
    row = trials.row("order", TEXT, 21, np.random.default_rng(0))
    assert ((row >= data.RECORD) & (row < data.RECORD + 64)).sum() == 3 * 5


def test_a_batch_follows_from_seed_and_step_and_has_every_kind():
    trial = trials.Trial("none", 1, rows=8)
    rows = trial.batch(PARTS, 7)
    assert rows.shape == (8, 257)
    assert rows.dtype == torch.int64
    assert torch.equal(rows, trial.batch(PARTS, 7))
    for other in (trial.batch(PARTS, 8), trials.Trial("none", 2, rows=8).batch(PARTS, 7)):
        assert not torch.equal(rows, other)
    kinds = [(row >= language.NOUN).any().item() for row in rows]
    assert kinds == [False, False, False, True] * 2
    # the rows must be the same for every scheme
    assert torch.equal(rows, trials.Trial("alibi", 1, rows=8).batch(PARTS, 7))


def test_the_whole_training_text_is_read():
    short = Parts(TEXT[:41], {}, {}, (), "", "")
    assert torch.equal(trials.Trial("none", **TINY).batch(short, 0)[0], torch.from_numpy(TEXT[:41].astype(np.int64)))
    with pytest.raises(ValueError, match="corpus must have 41 bytes or more"):
        trials.Trial("none", **TINY).batch(Parts(TEXT[:40], {}, {}, (), "", ""), 0)


@pytest.mark.parametrize("scheme", ["t5", "alternate", "rope-10000"])
def test_it_trains_and_a_stopped_run_ends_with_the_same_bits(scheme, tmp_path):
    trial = trials.Trial(scheme, **TINY)
    whole = Trainer(trial, PARTS, tmp_path / "whole")
    losses = list(whole.train())
    assert losses[-1] < losses[0]
    first = Trainer(trial, PARTS, tmp_path / "parts")
    for _ in range(3):
        first.advance()
    first.save()
    second = Trainer(trial, PARTS, tmp_path / "parts")
    assert second.step == 3
    assert losses[3:] == list(second.train())
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, second.model.state_dict()[name]), name
        assert name != "buckets" or weight.any()
