"""Looks into the trained small models: what their heads do, which frequencies they need; writes results/inside.json.

Needs the checkpoints of `make train` in runs/. A few minutes on one thread.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads are set just above)

from benchmarks.evaluate import RUNS, trained  # noqa: E402
from ropebook import device, results  # noqa: E402
from ropebook.lab import data, evaluation, inside, training  # noqa: E402

LONGER = 1024  # bytes, for what is tried beyond L


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    every = [run.name for run in training.RUNS]
    parser.add_argument("--only", nargs="+", default=every, choices=every, metavar="RUN", help="default: all")
    parser.add_argument("--files", type=int, default=32, help="held-out files for what is tried")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    corpus = data.load()
    models = {name: trained(RUNS / f"{name}.pt", corpus) for name in given.only}
    missing = [name for name, model in models.items() if model is None]
    if missing:
        raise SystemExit(f"not there, or not trained to the end (`make train`): {', '.join(missing)}")
    names, longer = evaluation.held_out_windows(corpus, LONGER, given.files)
    measured, begun = {}, time.perf_counter()
    for name, model in models.items():
        start = time.perf_counter()
        measured[name] = inside.measure(model, longer)
        print(f"{name}: {time.perf_counter() - start:.1f} s", flush=True)
    if given.dry:
        return
    found = {
        "sha256": corpus.sha256,
        "length": evaluation.LENGTH,
        "text": LONGER,
        "files": names,
        "seconds": round(time.perf_counter() - begun, 1),
        "runs": measured,
    }
    command = " ".join(["python benchmarks/inside.py", *sys.argv[1:]])
    written = results.save("inside", found, device.provenance(0, command, torch.device("cpu")))
    print(f"{written}, {found['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
