"""Measure what the heads of the trained models do and which frequencies they need; writes results/inside.json.

The models come from the second experiment (benchmarks/trials.py). They are the models that methods are applied to and,
as controls, those with ALiBi and those without positions. All seeds are measured on the development part, so the
held-out part stays unseen. The script needs the models' weights in results/trials, and takes a few minutes on one
thread.
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

import torch  # noqa: E402  (paths and threads must be set first)

from benchmarks.trials import finished, trained  # noqa: E402
from ropebook import device, results  # noqa: E402
from ropebook.lab import inside, parts, scores, trials  # noqa: E402

LONGER = 1024  # the length in bytes of a text for measurements beyond L
CONTROLS = ("none", "alibi")
LOOKED_AT = [*trials.LONGER, *(trial for trial in trials.TRIALS if trial.scheme in CONTROLS)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    every = [trial.name for trial in LOOKED_AT]
    parser.add_argument("--only", nargs="+", default=every, choices=every, metavar="RUN", help="default: all")
    parser.add_argument("--dry", action="store_true", help="write nothing")
    given = parser.parse_args()
    torch.set_num_threads(1)
    wanted = [trial for trial in LOOKED_AT if trial.name in given.only]
    missing = [trial.name for trial in wanted if not finished(trial)]
    if missing:
        raise SystemExit(f"not trained yet (python benchmarks/trials.py train): {', '.join(missing)}")
    text = parts.load()
    names, longer = scores.windows(text.development, LONGER)
    measured, begun = {}, time.perf_counter()
    for trial in wanted:
        start = time.perf_counter()
        measured[trial.name] = inside.measure(trained(trial), longer)
        print(f"{trial.name}: {time.perf_counter() - start:.1f} s", flush=True)
    if given.dry:
        return
    found = {
        "sha256": text.sha256,
        "length": scores.LENGTH,
        "text": LONGER,
        "files": names,
        "seconds": round(time.perf_counter() - begun, 1),
        "runs": measured,
    }
    command = " ".join(["python benchmarks/inside.py", *sys.argv[1:]])
    written = results.save("inside", found, device.provenance(None, command, torch.device("cpu")))
    print(f"{written}, {found['seconds']:.0f} s", flush=True)


if __name__ == "__main__":
    main()
