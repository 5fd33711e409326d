"""The second experiment: trains its models, one after the other, and tries them.

    python benchmarks/trials.py train                     all that is not done yet; goes on where it was stopped
    python benchmarks/trials.py train --only none-0       one of them
    python benchmarks/trials.py evaluate --part held_out  every finished model as it was trained

Checkpoints lie in runs/trials, which Git ignores. A finished training leaves its numbers on the development part and
its weights in half precision in results/trials, and is not done again; whoever has these two files can go on without
the checkpoint. Numbers of the held-out part are written to results/trials/held_out and never printed.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads are set just above)
from safetensors.torch import load, save  # noqa: E402

from ropebook import device, results  # noqa: E402
from ropebook.lab import parts, scores, trials  # noqa: E402
from ropebook.lab.model import LanguageModel  # noqa: E402
from ropebook.lab.training import Trainer  # noqa: E402

EVERY = 40
"""Steps to one loss in the results."""
SAVED = 25
"""Steps from checkpoint to checkpoint."""
FIRST = ("rope-10000", "none", "alibi")
"""Schemes that are trained first of each seed."""


def folder() -> Path:
    return ROOT / "results" / "trials"


def in_order() -> list[trials.Trial]:
    """All trainings: by seed, and of a seed those that tell most come first."""
    return sorted(trials.TRIALS, key=lambda trial: (trial.seed, trial.scheme not in FIRST))


def finished(trial: trials.Trial) -> dict | None:
    """A training's numbers, if it is at its end."""
    path = folder() / f"{trial.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def left_to_double() -> list[trials.Trial]:
    """Trainings that have to be tried with twice the steps: those at whose end retrieval within L had not emerged."""
    done = [(trial, finished(trial)) for trial in in_order()]
    return [trials.twice(trial) for trial, found in done if found and found["within"]["retrieval"] < trials.EMERGED]


def train(wanted: list[trials.Trial], text: parts.Parts) -> None:
    given = None
    for trial in wanted:
        if finished(trial):
            continue
        trainer = Trainer(trial, text, ROOT / "runs" / "trials")
        print(f"{trial.name}: from step {trainer.step} of {trial.steps}", flush=True)
        for _ in trainer.train(SAVED):
            if trainer.step % 200 == 0:
                last = trainer.losses[-200:]
                print(
                    f"{trial.name}: step {trainer.step}, {trainer.seconds:.0f} s, "
                    f"{sum(last) / len(last):.3f} bits per byte",
                    flush=True,
                )
        given = given or scores.materials(text, "development")
        write(trainer, given)


def write(trainer: Trainer, given: scores.Materials) -> None:
    """Weights first, numbers last: where the numbers are, the training is finished."""
    model, trial = trainer.model.eval(), trainer.run
    state = {name: w.half().contiguous() for name, w in model.state_dict().items() if name != "lm_head.weight"}
    with results.writing(folder() / f"{trial.name}.safetensors") as file:
        file.write(save(state))
    model = trained(trial)  # as whoever reads the weights will have it, rounded
    start = time.perf_counter()
    found = scores.measure(model, given)
    within = {
        task: sum(map(scores.share, found[task][str(scores.LENGTH)].values())) / len(found[task][str(scores.LENGTH)])
        for task in ("retrieval", "order")
    }
    steps = range(0, len(trainer.losses), EVERY)
    rows_of_text = sum(kind != "language" for kind in trials.KINDS) / len(trials.KINDS)
    told = {
        "run": {key: value for key, value in vars(trial).items() if key != "share"},
        "corpus": trainer.corpus.summary(),
        "epochs": round(trial.steps * trial.rows * rows_of_text * trial.length / len(trainer.corpus.train), 3),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": round(trainer.seconds, 1),
        "losses": [round(sum(p) / len(p), 4) for p in (trainer.losses[at : at + EVERY] for at in steps)],
        "within": {task: round(share, 4) for task, share in within.items()},
        "development": found,
        "headroom": scores.headroom(model, given),
        "files": given.names,
        "provenance": device.provenance(trial.seed, "python benchmarks/trials.py train", torch.device("cpu")),
    }
    store(folder() / f"{trial.name}.json", told)
    print(f"{trial.name}: done, {within}, {time.perf_counter() - start:.0f} s of trying", flush=True)


def store(path: Path, told: dict) -> None:
    with results.writing(path) as file:
        file.write((json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n").encode())


def trained(trial: trials.Trial) -> LanguageModel:
    """The model of the weights in results/trials, in float32."""
    sizes = {key: getattr(trial, key) for key in ("dim", "hidden_dim", "n_layers", "n_heads")}
    model = LanguageModel(trial.scheme, trial.length, **sizes)
    weights = load((folder() / f"{trial.name}.safetensors").read_bytes())
    weights = {name: weight.float() for name, weight in weights.items()}
    model.load_state_dict(weights | {"lm_head.weight": weights["embedding.weight"]})
    return model.eval()


def evaluate(wanted: list[trials.Trial], text: parts.Parts, part: str) -> None:
    """Every finished model as it was trained, and with its last L bytes only. Prints names and times only."""
    given = scores.materials(text, part)
    command = f"python benchmarks/trials.py evaluate --part {part}"
    for trial in wanted:
        path = folder() / part / f"{trial.name}.json"
        if path.exists() or not finished(trial):
            continue
        start = time.perf_counter()
        model = trained(trial)
        told = {
            "cell": trial.name,
            "corpus": text.summary(),
            "files": given.names,
            "numbers": scores.measure(model, given),
            "last": scores.measure_windowed(model, given, trial.length),
            "provenance": device.provenance(None, command, torch.device("cpu")),
        }
        store(path, told)
        print(f"{trial.name} on {part}: {time.perf_counter() - start:.0f} s", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["train", "evaluate"])
    parser.add_argument("--only", nargs="+", metavar="RUN", help="names such as rope-10000-0")
    parser.add_argument("--twice", action="store_true", help="with twice the steps, those without retrieval")
    parser.add_argument("--part", choices=parts.PARTS[1:], default="development")
    given = parser.parse_args()
    torch.set_num_threads(1)
    wanted = left_to_double() if given.twice else in_order()
    unknown = set(given.only or ()) - {trial.name for trial in wanted}
    if unknown:
        parser.error(f"--only must name some of {', '.join(t.name for t in wanted)}, got {', '.join(sorted(unknown))}")
    wanted = [trial for trial in wanted if not given.only or trial.name in given.only]
    text = parts.load()
    if given.what == "train":
        train(wanted, text)
    else:
        evaluate(wanted, text, given.part)


if __name__ == "__main__":
    main()
