"""Tests of the laboratory's training. We check the effect of a single step. An interrupted run must end with the same
bits as an uninterrupted one, two processes must do the same as one, and a small model must learn.

The models are tiny and their text is synthetic, except in the smoke test, which reads a few files from the library.
"""

import dataclasses
import json
import math
import os
import random
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from ropebook.lab import data, training
from ropebook.lab.model import SCHEMES, LanguageModel
from ropebook.lab.training import Trainer
from tests.lab_models import Text, Windows
from tests.together import together

HERE = Path(__file__).resolve().parent
TINY = {"length": 16, "dim": 16, "hidden_dim": 24, "n_layers": 1, "n_heads": 2, "rows": 4, "steps": 12, "warmup": 4}


@pytest.fixture(autouse=True)
def _one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A file that contains a few lines of code."""
    path = tmp_path_factory.mktemp("library") / "shown.py"
    path.write_text("".join(f"def f{i}(x):\n    return {i} * x + {i * i % 97}\n\n" for i in range(60)))
    return path


@pytest.fixture(scope="session")
def corpus(root):
    return Text.of(root.read_bytes())


def tiny(scheme="rope-10000", **changes):
    return Windows(scheme, **{**TINY, **changes})


def finish(trainer, every=100):
    return list(trainer.train(every))


def state_of(trainer):
    """Return everything that the next steps depend on."""
    return {
        "step": trainer.step,
        "losses": trainer.losses,
        "model": trainer.model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in trainer.optimizers],
        "random": training._random_states(),
    }


def assert_same_bits(a, b, where="state"):
    assert type(a) is type(b), where
    if isinstance(a, dict):
        assert a.keys() == b.keys(), where
        for key in a:
            assert_same_bits(a[key], b[key], f"{where}[{key!r}]")
    elif isinstance(a, list | tuple):
        assert len(a) == len(b), where
        for i, pair in enumerate(zip(a, b, strict=True)):
            assert_same_bits(*pair, f"{where}[{i}]")
    elif isinstance(a, torch.Tensor):
        assert a.dtype == b.dtype, where
        assert torch.equal(a, b), where
    elif isinstance(a, np.ndarray):
        assert np.array_equal(a, b), where
    else:
        assert a == b, where


# --- settings ---


def test_the_learning_rates_rise_and_fall():
    run = tiny(steps=20, warmup=5)
    rates = [run.rate(step) for step in range(21)]
    assert rates[:6] == pytest.approx([0.2, 0.4, 0.6, 0.8, 1.0, 1.0])
    assert rates[5:] == pytest.approx([1 - i / 15 for i in range(16)])
    assert rates[20] == 0
    assert [tiny(steps=4, warmup=4).rate(step) for step in range(4)] == [0.25, 0.5, 0.75, 1.0]
    assert tiny(steps=1, warmup=1).rate(0) == 1


def test_the_optimizers_get_them(corpus, tmp_path):
    trainer = Trainer(tiny(lr=0.003, matrix_lr=0.05), corpus, tmp_path)
    for step in range(6):
        trainer.advance()
        rates = [group["lr"] for optimizer in trainer.optimizers for group in optimizer.param_groups]
        assert rates == pytest.approx([0.05 * trainer.run.rate(step), 0.003 * trainer.run.rate(step)])


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_weight_is_trained_by_one_optimizer(scheme, corpus, tmp_path):
    trainer = Trainer(tiny(scheme), corpus, tmp_path)
    muon, adam = ([p for g in optimizer.param_groups for p in g["params"]] for optimizer in trainer.optimizers)
    names = {id(weight): name for name, weight in trainer.model.named_parameters()}
    assert sorted(names) == sorted(map(id, muon + adam))
    assert {names[id(p)].split(".")[-2] for p in muon} == {
        f"{name}_proj" for name in ("q", "k", "v", "out", "gate", "up", "down")
    }
    before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
    trainer.advance()
    assert all((weight != before[name]).any() for name, weight in trainer.model.state_dict().items())


# --- a step ---


def test_a_step_by_hand(corpus, tmp_path):
    """The first step of AdamW is the sign of the gradient times the learning rate. The loss is the mean surprise in
    bits."""
    run = tiny(warmup=1, lr=0.01)
    trainer = Trainer(run, corpus, tmp_path, dtype=torch.float64)
    fresh = LanguageModel(run.scheme, 16, dim=16, hidden_dim=24, n_layers=1, n_heads=2, dtype=torch.float64)
    rows = run.batch(corpus, 0)
    log_p = fresh(rows[:, :-1]).log_softmax(-1)
    bits = -log_p.gather(-1, rows[:, 1:, None]).mean() / math.log(2)
    assert trainer.advance() == pytest.approx(bits.item(), rel=1e-12)
    assert trainer.losses == [pytest.approx(8, abs=0.3)]  # at first, all 256 bytes are about equally likely
    assert trainer.step == 1
    assert trainer.seconds > 0
    bits.backward()
    for name in ("norm.weight", "embedding.weight"):
        old, new, grad = (
            d[name] for d in (dict(fresh.named_parameters()), trainer.model.state_dict(), grads_of(fresh))
        )
        clear = grad.abs() > 1e-5  # these gradients are far above AdamW's ε
        assert clear.sum() > 10
        assert (new - old)[clear].tolist() == pytest.approx((-0.01 * grad.sign())[clear].tolist(), rel=1e-2)


def grads_of(model):
    return {name: weight.grad for name, weight in model.named_parameters()}


def test_gradients_are_clipped(corpus, tmp_path, monkeypatch):
    norms, clip = [], nn.utils.clip_grad_norm_

    def watched(weights, limit):
        weights = list(weights)
        clip(weights, limit)
        norms.append(math.sqrt(sum(weight.grad.square().sum().item() for weight in weights)))

    monkeypatch.setattr(nn.utils, "clip_grad_norm_", watched)
    trainer = Trainer(tiny(), corpus, tmp_path)
    with torch.no_grad():
        trainer.model.norm.weight.mul_(300)
    finish(trainer)
    assert max(norms) == pytest.approx(1, rel=1e-4)
    assert len(norms) == 12


def test_a_step_follows_from_seed_and_number(corpus, tmp_path):
    losses = {}
    for name, run in {"a": tiny(), "b": tiny(), "seed": tiny(seed=1), "rows": tiny(rows=5)}.items():
        torch.manual_seed(len(losses))  # random draws outside the run must have no effect
        losses[name] = finish(Trainer(run, corpus, tmp_path / name))
    assert losses["a"] == losses["b"]
    assert losses["seed"] != losses["a"] != losses["rows"]


def test_half_computes_in_bfloat16(corpus, tmp_path):
    whole, half = (Trainer(tiny(half=half), corpus, tmp_path / str(half)) for half in (False, True))
    seen = []
    half.model.lm_head.register_forward_hook(lambda module, inputs, out: seen.append(out.dtype))
    assert finish(half) == pytest.approx(finish(whole), rel=0.02)
    assert half.losses != whole.losses
    assert set(seen) == {torch.bfloat16}
    assert {weight.dtype for weight in half.model.parameters()} == {torch.float32}


def test_every_device(device, corpus, tmp_path):
    there = finish(Trainer(tiny(), corpus, tmp_path / "there", device=device))
    assert there == pytest.approx(finish(Trainer(tiny(), corpus, tmp_path / "here")), rel=1e-2)


# --- learning ---

SHOWN, HELD_OUT = ["argparse.py", "ast.py", "bdb.py", "cmd.py", "codecs.py"], ["calendar.py", "enum.py"]


def test_a_small_model_learns(tmp_path):
    """A model that has learned nothing has a loss of 8 bits per byte. Training must lower the loss by at least four
    bits.

    On files that weren't part of the training text, the loss falls by 3.5 bits. Byte frequencies alone could not
    explain this.
    """
    library = Path(sysconfig.get_paths()["stdlib"])
    shown, held_out = (data.as_text(b"".join((library / n).read_bytes() for n in names)) for names in (SHOWN, HELD_OUT))
    corpus = Text.of(shown.tobytes())
    run = Windows("rope-10000", length=64, dim=32, hidden_dim=64, n_layers=2, n_heads=2, rows=8, steps=300)
    trainer = Trainer(run, corpus, tmp_path)
    losses = finish(trainer, every=1000)
    assert sum(losses[:3]) / 3 == pytest.approx(8, abs=0.5)
    assert sum(losses[-15:]) / 15 < 8 - 4
    held_out = torch.from_numpy(held_out[: 65 * 40].astype(np.int64)).view(40, 65)
    with torch.no_grad():
        logits = trainer.model(held_out[:, :-1])
    bits = nn.functional.cross_entropy(logits.transpose(1, 2), held_out[:, 1:]).item() / math.log(2)
    counts = np.bincount(corpus.train, minlength=256) + 1
    by_frequency = -np.log2(counts / counts.sum())[held_out[:, 1:].numpy()].mean()
    assert bits < 8 - 3.5 < by_frequency


# --- stopping and resuming ---


def worker(root, folder, run, dtype="float32", death="never", launcher=(sys.executable,)):
    settings = json.dumps(dataclasses.asdict(run))
    loopback = "lo0" if sys.platform == "darwin" else "lo"
    return subprocess.run(
        [*launcher, str(HERE / "lab_worker.py"), str(root), str(folder), settings, dtype, death],
        env={**os.environ, "PYTHONPATH": str(HERE.parent / "code"), "GLOO_SOCKET_IFNAME": loopback},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=500,
    )


@pytest.fixture(scope="module")
def uninterrupted(corpus, tmp_path_factory):
    trainer = Trainer(tiny(), corpus, tmp_path_factory.mktemp("runs"))
    finish(trainer)
    return state_of(trainer)


@pytest.mark.parametrize("death, kept, parts", [("between", 6, 0), ("saving", 3, 1)])
def test_a_killed_run_ends_with_the_bits_of_one_that_was_not(root, corpus, tmp_path, uninterrupted, death, kept, parts):
    done = worker(root, tmp_path, tiny(), death=death)
    assert done.returncode == -9, done.stderr
    assert len(list(tmp_path.glob("*.part"))) == parts
    trainer = Trainer(tiny(), corpus, tmp_path)
    assert trainer.step == kept
    assert len(finish(trainer)) == 12 - kept
    ours, theirs = state_of(trainer), dict(uninterrupted)
    del ours["random"], theirs["random"]  # the next test compares the random states
    assert_same_bits(ours, theirs)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_stopping_anywhere_changes_no_bit(scheme, corpus, tmp_path):
    run, states = tiny(scheme, steps=4, warmup=2), []
    for folder, stops in [("whole", []), ("in pieces", [1, 3])]:
        random.seed(5), np.random.seed(6), torch.manual_seed(7)
        trainer = Trainer(run, corpus, tmp_path / folder)
        for stop in stops:
            while trainer.step < stop:
                trainer.advance()
            trainer.save()
            # these draws have no effect on the run, because the checkpoint restores the earlier random state
            random.random(), np.random.rand(), torch.rand(1)
            trainer = Trainer(run, corpus, tmp_path / folder)
            assert trainer.step == stop
        finish(trainer)
        states.append(state_of(trainer))
        states[-1]["next"] = random.random(), np.random.rand(), torch.rand(1)
    assert_same_bits(*states)


def test_a_finished_run_is_not_done_again(corpus, tmp_path):
    trainer = Trainer(tiny(), corpus, tmp_path)
    losses = finish(trainer)
    seconds = trainer.seconds
    again = Trainer(tiny(), corpus, tmp_path)
    assert finish(again) == []
    assert again.losses == losses
    assert again.seconds == seconds
    with pytest.raises(ValueError, match="all 12 steps of rope-10000-0 are done"):
        again.advance()


def test_checkpoints_are_written_every_so_often_and_at_the_end(corpus, tmp_path, monkeypatch):
    trainer, saved = Trainer(tiny(), corpus, tmp_path / "new" / "folder"), []
    save = trainer.save
    monkeypatch.setattr(trainer, "save", lambda: (saved.append(trainer.step), save()))
    finish(trainer, every=5)
    assert saved == [5, 10, 12]
    assert [path.name for path in (tmp_path / "new" / "folder").iterdir()] == ["rope-10000-0.pt"]


def test_what_the_checkpoint_holds(corpus, tmp_path):
    trainer = Trainer(tiny(), corpus, tmp_path)
    finish(trainer)
    state = torch.load(trainer.path, weights_only=False)
    assert set(state) == {
        "run", "sha256", "threads", "compiled", "step", "losses", "seconds", "model", "optimizers", "random"
    }  # fmt: skip
    assert Windows(**state["run"]) == trainer.run
    assert (state["sha256"], state["threads"], state["step"]) == (corpus.sha256, 1, 12)
    assert state["model"].keys() == LanguageModel("rope-10000", 16, **{k: TINY[k] for k in SIZES}).state_dict().keys()


SIZES = ("dim", "hidden_dim", "n_layers", "n_heads")


@pytest.mark.parametrize("error", [OSError("no space left"), KeyboardInterrupt()], ids=["full disk", "Ctrl-C"])
def test_a_save_that_fails_leaves_the_old_checkpoint(corpus, tmp_path, monkeypatch, error):
    trainer = Trainer(tiny(), corpus, tmp_path)
    trainer.advance()
    trainer.save()
    before = trainer.path.read_bytes()
    trainer.advance()

    def fails(state, file):
        file.write(b"half a checkpoint")
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(torch, "save", fails)
        with pytest.raises(type(error)):
            trainer.save()
    assert trainer.path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [trainer.path]
    assert Trainer(tiny(), corpus, tmp_path).step == 1
    trainer.save()
    assert Trainer(tiny(), corpus, tmp_path).step == 2


def test_a_save_is_on_the_disk_before_it_takes_the_place(corpus, tmp_path, monkeypatch):
    order = []
    for name in ("fsync", "replace"):
        real = getattr(os, name)
        monkeypatch.setattr(os, name, lambda *args, name=name, real=real: (order.append(name), real(*args)))
    Trainer(tiny(), corpus, tmp_path).save()
    assert order == ["fsync", "replace"]


def another(corpus, tmp_path, **changes):
    """Replace this run's checkpoint with the checkpoint of another run."""
    other = Trainer(tiny(**changes), corpus, tmp_path / "other")
    other.save()
    shutil.copy(other.path, tmp_path / "rope-10000-0.pt")


@pytest.mark.parametrize("changes", [{"seed": 1}, {"scheme": "rope-100"}, {"steps": 13}, {"lr": 0.1}])
def test_another_runs_checkpoint_is_refused(corpus, tmp_path, changes):
    another(corpus, tmp_path, **changes)
    (name, value), *_ = changes.items()
    message = (
        f"rope-10000-0.pt must have run {{.*}}, got {{.*'{name}': {value!r}.*}}: go on as it was begun, or remove it"
    )
    with pytest.raises(ValueError, match=message):
        Trainer(tiny(), corpus, tmp_path)


def test_another_text_is_refused(corpus, tmp_path):
    another(corpus, tmp_path)
    changed = corpus._replace(sha256="0" * 64)
    message = f"rope-10000-0.pt must have sha256 {'0' * 64}, got {corpus.sha256}: go on as it was begun, or remove it"
    with pytest.raises(ValueError, match=message):
        Trainer(tiny(), changed, tmp_path)


def test_another_number_of_threads_is_refused(corpus, tmp_path):
    another(corpus, tmp_path)
    torch.set_num_threads(2)
    with pytest.raises(ValueError, match="must have threads 2, got 1: go on as it was begun"):
        Trainer(tiny(), corpus, tmp_path)


def test_a_compiled_run_takes_the_same_steps_with_coarser_products(corpus, tmp_path, monkeypatch):
    """``torch.compile`` itself would take a minute and need a C++ compiler. The test therefore replaces it, and checks
    how it is used."""
    seen = []

    def compiles(model):
        def runs(*args):
            seen.append(torch.get_float32_matmul_precision())
            return model(*args)

        return runs

    monkeypatch.setattr(torch, "compile", compiles)
    losses = {flag: finish(Trainer(tiny(), corpus, tmp_path / str(flag), compiled=flag)) for flag in (False, True)}
    assert seen == ["medium"] * 12
    assert torch.get_float32_matmul_precision() == "highest"
    assert losses[True] == pytest.approx(losses[False], rel=1e-2)


def test_a_run_goes_on_compiled_only_if_it_was_begun_so(corpus, tmp_path):
    another(corpus, tmp_path)
    with pytest.raises(ValueError, match="must have compiled True, got False: go on as it was begun"):
        Trainer(tiny(), corpus, tmp_path, compiled=True)


def test_a_checkpoint_from_before_there_was_a_choice_is_not_compiled(corpus, tmp_path):
    trainer = Trainer(tiny(), corpus, tmp_path)
    trainer.save()
    state = training.read_checkpoint(trainer.path)
    del state["compiled"]
    torch.save(state, trainer.path)
    assert Trainer(tiny(), corpus, tmp_path).step == 0
    with pytest.raises(ValueError, match="must have compiled True, got False: go on as it was begun"):
        Trainer(tiny(), corpus, tmp_path, compiled=True)


class Harmful:
    def __reduce__(self):
        return os.getpid, ()


def test_a_checkpoint_that_would_run_code_is_refused(corpus, tmp_path):
    another(corpus, tmp_path)
    path = tmp_path / "rope-10000-0.pt"
    torch.save(torch.load(path, weights_only=False) | {"seconds": Harmful()}, path)
    with pytest.raises(Exception, match="Weights only load failed"):
        Trainer(tiny(), corpus, tmp_path)
    assert not {name for name in torch.serialization.get_safe_globals() if name in training._NUMPY}


def test_the_states_of_cuda_are_kept_where_there_is_one(monkeypatch):
    kept = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: [torch.tensor([1, 2])])
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", kept.extend)
    states = training._random_states()
    training._set_random_states(states)
    assert_same_bits(kept, [torch.tensor([1, 2])])
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)  # a machine without CUDA must also be able to resume
    training._set_random_states(states)
    assert len(kept) == 1
    assert "cuda" not in training._random_states()


def test_a_model_is_trained_further(corpus, tmp_path):
    model = Trainer(tiny(), corpus, tmp_path / "first").model
    trainer = Trainer(tiny(lr=0.001), corpus, tmp_path / "then", model=model)
    assert trainer.model is model
    finish(trainer)
    again = Trainer(tiny(lr=0.001), corpus, tmp_path / "then", model=LanguageModel("rope-10000", 16, **sizes_of(TINY)))
    assert_same_bits(again.model.state_dict(), model.state_dict())


def sizes_of(settings):
    return {key: settings[key] for key in SIZES}


# --- several processes ---


def test_two_processes_do_what_one_does(root, corpus, tmp_path):
    run = tiny("alibi", steps=50)
    alone = Trainer(run, corpus, tmp_path / "alone", dtype=torch.float64)
    finish(alone)
    torchrun = (sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone")
    done = worker(root, tmp_path / "together", run, "float64", launcher=torchrun)
    assert done.returncode == 0, done.stderr
    together = Trainer(run, corpus, tmp_path / "together", dtype=torch.float64)
    assert together.step == len(together.losses) == 50
    assert max(abs(a - b) for a, b in zip(alone.losses, together.losses, strict=True)) < 1e-10
    assert alone.losses[-1] < alone.losses[0] - 0.5  # the model does learn something in this run
    for name, weight in alone.model.state_dict().items():
        assert (together.model.state_dict()[name] - weight).abs().max() < 1e-9
    assert [path.name for path in (tmp_path / "together").iterdir()] == ["alibi-0.pt"]


def pretend(monkeypatch, rank, world):
    monkeypatch.setattr(training.dist, "is_initialized", lambda: True)
    monkeypatch.setattr(training.dist, "get_rank", lambda: rank)
    monkeypatch.setattr(training.dist, "get_world_size", lambda: world)
    monkeypatch.setattr(training.dist, "all_reduce", lambda loss: loss.add_(3.0))
    monkeypatch.setattr(training, "DistributedDataParallel", lambda model: model)


@pytest.mark.parametrize("rank", [0, 1])
def test_each_process_takes_its_share_of_the_rows_and_the_first_saves(monkeypatch, rank, corpus, tmp_path):
    pretend(monkeypatch, rank, 2)
    trainer = Trainer(tiny(), corpus, tmp_path)
    rows = tiny().batch(corpus, 0)[[rank, rank + 2]]
    with torch.no_grad():
        own = nn.functional.cross_entropy(trainer.model(rows[:, :-1]).transpose(1, 2), rows[:, 1:]).item()
    assert trainer.advance() == pytest.approx((own + 3) / 2 / math.log(2), rel=1e-6)
    waited = []
    monkeypatch.setattr(training.dist, "barrier", lambda: waited.append(trainer.path.exists()))
    trainer.save()
    assert trainer.path.exists() == (rank == 0)
    assert waited == [rank == 0]  # the other processes wait until this one has saved the checkpoint


def test_rows_that_do_not_divide_are_refused(monkeypatch, corpus, tmp_path):
    pretend(monkeypatch, 0, 3)
    with pytest.raises(ValueError, match="rows must be a multiple of the 3 processes, got 4"):
        Trainer(tiny(), corpus, tmp_path)


# --- bad input ---

BAD = [
    # each case consists of settings, the error's type, and its message
    ({"scheme": "rope"}, ValueError, "scheme must be one of 'learned', 'sinusoidal'"),
    ({"seed": -1}, ValueError, "seed must be an integer >= 0, got -1"),
    ({"length": 0}, ValueError, "length must be an integer >= 1, got 0"),
    ({"dim": 16.0}, TypeError, "dim must be an integer >= 1, got 16.0"),
    ({"hidden_dim": 0}, ValueError, "hidden_dim must be an integer >= 1, got 0"),
    ({"n_layers": 0}, ValueError, "n_layers must be an integer >= 1, got 0"),
    ({"n_heads": 0}, ValueError, "n_heads must be an integer >= 1, got 0"),
    ({"rows": 0}, ValueError, "rows must be an integer >= 1, got 0"),
    ({"steps": 0}, ValueError, "steps must be an integer >= 1, got 0"),
    ({"warmup": 0}, ValueError, "warmup must be an integer >= 1 and <= 12, got 0"),
    ({"warmup": 13}, ValueError, "warmup must be an integer >= 1 and <= 12, got 13"),
    ({"lr": 0.0}, ValueError, "lr must be a finite number > 0, got 0.0"),
    ({"matrix_lr": float("nan")}, ValueError, "matrix_lr must be a finite number > 0, got nan"),
    ({"half": "no"}, TypeError, "half must be True or False, got 'no'"),
]


@together("settings, kind, message", BAD, ids=range(len(BAD)))
def test_bad_settings_are_refused(settings, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        tiny(**settings)


def test_checkpoints_must_be_some_steps_apart(corpus, tmp_path):
    with pytest.raises(ValueError, match="every must be an integer >= 1, got 0"):
        finish(Trainer(tiny(), corpus, tmp_path), every=0)
