"""Trains the small models of chapter *Measured*, or goes on where it stopped; writes results/training.json.

Nine runs: each position scheme once, RoPE with base 10⁴ and ALiBi with a second seed. Then brief fine-tunings of RoPE
10⁴ on longer texts: as it is, interpolated, and with YaRN. With a CUDA device the larger setting is trained as well,
into results/training-large.json. Checkpoints lie in runs/, which Git ignores. What is finished is not done again, so
that several processes can share the work, each with its own ``--only``; the one that finds all finished writes the
results. Under torchrun every run is spread over the processes, each with its share of the rows.
"""

from __future__ import annotations

import argparse
import itertools
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import torch
import torch.distributed as dist
from tqdm import tqdm

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

from ropebook import device, results  # noqa: E402  (the path is set just above)
from ropebook.lab import data, evaluation, first_text, training, tuning  # noqa: E402

GATES = {"held_out": 2.2, "retrieval": 0.9}
"""What RoPE 10⁴ must reach within its length before anything is claimed: at most these bits, at least this share."""
EVERY = 20
"""Steps to one loss in the results."""
TIMED = 12
"""Steps of each run that are timed again at the end, when nothing else runs."""


class Work:
    """One setting's runs and fine-tunings, in the order in which they are done."""

    def __init__(self, setting: str, corpus: first_text.Corpus, where: torch.device) -> None:
        self.corpus, self.where = corpus, where
        self.folder = ROOT / "runs" / ("" if setting == "small" else setting)
        self.runs = training.RUNS if setting == "small" else training.LARGE
        self.result = "training" if setting == "small" else f"training-{setting}"

    def names(self) -> list[str]:
        return [run.name for run in self.runs] + [piece.name for piece in self.tunings()]

    def tunings(self) -> Iterator[tuning.Tuning]:
        for run in self.runs:
            if run.scheme == "rope-10000":
                yield from (tuning.tuning(run, method, s) for method in tuning.METHODS for s in tuning.FACTORS)

    def trainer(self, run: training.Run) -> training.Trainer:
        """Of a run, or of a fine-tuning, which begins with its run's weights."""
        if not isinstance(run, tuning.Tuning):
            return training.Trainer(run, self.corpus, self.folder_of(run), device=self.where)
        first = self.trainer(next(r for r in self.runs if (r.scheme, r.seed) == (run.scheme, run.seed)))
        model = tuning.extended(first.model, run.method, run.factor)
        return training.Trainer(run, self.corpus, self.folder_of(run), model=model, device=self.where)

    def folder_of(self, run: training.Run) -> Path:
        return self.folder / "tuned" if isinstance(run, tuning.Tuning) else self.folder

    def checkpoint(self, run: training.Run) -> dict[str, object] | None:
        path = self.folder_of(run) / f"{run.name}.pt"
        return training.read_checkpoint(path) if path.exists() else None

    def do(self, only: list[str] | None) -> bool:
        """Whether all is finished when what was asked for is."""
        finished = True
        for run in (*self.runs, *self.tunings()):
            if only and run.name not in only:
                finished = finished and self.is_finished(run)
                continue
            trainer = self.trainer(run)
            with tqdm(
                total=run.steps, initial=trainer.step, desc=run.name, mininterval=5, disable=trainer.rank > 0
            ) as bar:
                for loss in trainer.train():
                    bar.set_postfix_str(f"{loss:.3f} bits per byte", refresh=False)
                    bar.update()
        return finished

    def is_finished(self, run: training.Run) -> bool:
        state = self.checkpoint(run)
        return state is not None and state["step"] == run.steps

    def write(self) -> None:
        """The results."""
        runs = {run.name: self.measured(self.trainer(run)) for run in self.runs}
        tuned = {}
        for piece in self.tunings():
            name = f"{piece.scheme}-{piece.seed}"
            tuned[f"{name}/{piece.method}/{piece.factor}"] = {
                "run": name,
                "method": piece.method,
                "factor": piece.factor,
                "steps": piece.steps,
                "length": piece.length,
                **course(self.checkpoint(piece)),
            }
        settings = {key: value for key, value in vars(self.runs[0]).items() if key not in ("scheme", "seed")}
        found = {
            "corpus": self.corpus.summary(),
            "settings": settings,
            "gates": GATES,
            "runs": runs,
            "tuned": tuned,
            "seconds": round(sum(run["seconds"] for run in (*runs.values(), *tuned.values())), 1),
        }
        results.save(self.result, found, device.provenance(0, "make train", self.where))

    def measured(self, trainer: training.Trainer) -> dict[str, object]:
        """What a run reaches within its length, on every held-out file that is long enough."""
        run, model = trainer.run, trainer.model.eval()
        _, windows = evaluation.held_out_windows(self.corpus, run.length)
        distances = [d for d in evaluation.DISTANCES if d < run.length - first_text.PLANTED * data.KEYS]
        texts = evaluation.retrieval_texts(self.corpus, run.length, distances, 4 * evaluation.CONTEXTS, seed=0)
        shares = evaluation.retrieval(model, texts, batch=8)
        row = {
            "scheme": run.scheme,
            "seed": run.seed,
            "parameters": sum(weight.numel() for weight in model.parameters()),
            "bytes": run.steps * run.rows * run.length,
            "held_out": round(evaluation.position_bits(model, windows, batch=8).mean().item(), 4),
            "retrieval": round(sum(shares.values()) / len(shares), 4),
            "seconds_alone": round(self.seconds_alone(run), 1),
            **course(self.checkpoint(run)),
        }
        print(run.name, row["held_out"], "bits per byte,", row["retrieval"], "retrieved", flush=True)
        return row

    def seconds_alone(self, run: training.Run) -> float:
        """What the run takes by the median of a few steps; its own clock ran while others may have worked too."""
        with tempfile.TemporaryDirectory() as folder:
            trainer = training.Trainer(run, self.corpus, folder, device=self.where)
            ends = [0.0]
            for _ in range(min(TIMED, run.steps)):
                trainer.advance()
                ends.append(trainer.seconds)
        return run.steps * statistics.median(end - start for start, end in itertools.pairwise(ends))


def course(state: dict[str, object]) -> dict[str, object]:
    """Of a checkpoint: how long the run took, and its losses, ``EVERY`` steps in one."""
    losses = state["losses"]
    means = [sum(piece) / len(piece) for piece in (losses[i : i + EVERY] for i in range(0, len(losses), EVERY))]
    return {"seconds": round(state["seconds"], 1), "losses": [round(mean, 4) for mean in means]}


def main() -> None:
    settings = ["small", "large"] if torch.cuda.is_available() else ["small"]
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--only", nargs="+", metavar="RUN", help="names such as rope-10000-0 or rope-10000-0-yarn-4")
    parser.add_argument("--settings", nargs="+", choices=["small", "large"], default=settings)
    parser.add_argument(
        "--threads", type=int, default=1, help="of the CPU; a run goes on with as many as it began with"
    )
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    where = device.device()
    if "RANK" in os.environ:
        dist.init_process_group("nccl" if where.type == "cuda" else "gloo")
    if where.type == "cuda":
        where = torch.device("cuda", int(os.environ.get("LOCAL_RANK", 0)))
        torch.cuda.set_device(where)
    corpus = first_text.load()
    finished = []
    for setting in options.settings:
        work = Work(setting, corpus, where)
        unknown = set(options.only or ()) - set(work.names())
        if unknown:
            parser.error(f"--only must name some of {', '.join(work.names())}, got {', '.join(sorted(unknown))}")
        if work.do(options.only):
            finished.append(work)
    if dist.is_initialized():
        dist.destroy_process_group()  # what is left is for one process
    if int(os.environ.get("RANK", 0)) == 0:
        for work in finished:
            work.write()


if __name__ == "__main__":
    main()
