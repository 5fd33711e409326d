"""Tries the trained small models on long texts; writes results/evaluation.json and evaluation.safetensors.

A cell is one trained model with one method (`ropebook.lab.evaluation.Cell`). Each lies in runs/cells when it is done
and is not done again while its checkpoint, the text and the settings stay the same, so the work can be stopped and gone
on with. When all cells are there, they are brought together. Needs the checkpoints of `make train` in runs/.
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads are set just above)
from safetensors.torch import load, save  # noqa: E402

from ropebook import device, results  # noqa: E402
from ropebook.lab import data, evaluation, first_text, training, tuning  # noqa: E402
from ropebook.lab.evaluation import Cell  # noqa: E402
from ropebook.lab.model import LanguageModel  # noqa: E402

RUNS = ROOT / "runs"
EXTENDED = TUNED = ("rope-10000-0", "rope-10000-1")
TRAINED = (*(f"{scheme}-0" for scheme in first_text.SCHEMES), "rope-10000-1", "alibi-1")
SEED = 0  # of the retrieval texts


def checkpoint(cell: Cell) -> Path:
    if cell.tuned:
        return RUNS / "tuned" / f"{cell.run}-{cell.method}-{cell.factor}.pt"
    return RUNS / f"{cell.run}.pt"


def tuned_cells() -> list[Cell]:
    """The fine-tuned models, each with the method that it was tuned with."""
    return [
        Cell(run, method, factor, evaluation.method_options(method, factor), tuned=True)
        for run in TUNED
        for method in tuning.METHODS
        for factor in tuning.FACTORS
    ]


def trained(path: Path, corpus: first_text.Corpus) -> LanguageModel | None:
    """The model of a checkpoint; None if there is none, or its training is not at its end."""
    if not path.exists():
        return None
    state = training.read_checkpoint(path)
    run = state["run"]
    if state["step"] < run["steps"]:
        return None
    if state["sha256"] != corpus.sha256:
        raise SystemExit(f"{path} was trained on another text than this Python's: its files to hold out may be others")
    sizes = {key: run[key] for key in ("dim", "hidden_dim", "n_layers", "n_heads")}
    model = LanguageModel(run["scheme"], evaluation.LENGTH, **sizes)
    model.load_state_dict(state["model"])
    return model.eval()


def texts(corpus: first_text.Corpus) -> dict[int, evaluation.RetrievalTexts]:
    """The retrieval task in texts of L bytes and of 16 L, with the distances that fit, and as many records as there are
    keys, which is what the models were trained on."""
    made = {}
    for length in (evaluation.LENGTH, evaluation.TEXT):
        fit = [distance for distance in evaluation.DISTANCES if distance < length]
        asked = fit * (data.KEYS // len(fit))
        made[length] = evaluation.retrieval_texts(corpus, length, asked, evaluation.CONTEXTS, SEED)
    return made


def place(name: str, ending: str) -> Path:
    return RUNS / "cells" / f"{name.replace('/', '_')}.{ending}"


def key(name: str, path: Path, settings: dict) -> str:
    """What a cell's numbers follow from, in one number: checkpoint, text, settings."""
    digest = hashlib.sha256(path.read_bytes())
    digest.update(json.dumps([name, settings], sort_keys=True).encode())
    return digest.hexdigest()


def write_whole(path: Path, content: bytes) -> None:
    with results.writing(path) as file:
        file.write(content)


def finished(name: str, path: Path, settings: dict) -> dict | None:
    """A cell's result if it was done with the checkpoint there is now."""
    there = place(name, "json")
    if not (there.exists() and path.exists()):
        return None
    result = json.loads(there.read_text(encoding="utf-8"))
    return result if result["key"] == key(name, path, settings) else None


def everything() -> dict[str, Cell]:
    """All there is to do, by name; of each run also the windows of the last L bytes, as "<run>/windowed"."""
    cells = evaluation.grid(TRAINED, EXTENDED) + tuned_cells()
    return {cell.id: cell for cell in cells} | {f"{run}/windowed": Cell(run) for run in TRAINED}


def evaluate(names: dict[str, Cell], corpus: first_text.Corpus, settings: dict, files: int | None) -> None:
    """Every named cell that is not done yet; SystemExit that names the checkpoints that were not ready."""
    _, windows = evaluation.held_out_windows(corpus, files=files)
    asked = texts(corpus)
    begun = time.perf_counter()
    missing = []
    for at, (name, cell) in enumerate(names.items(), 1):
        path = checkpoint(cell)
        note = f"{at}/{len(names)} {time.perf_counter() - begun:6.0f} s  {name}"
        if finished(name, path, settings):
            print(note, "done before", flush=True)
            continue
        model = trained(path, corpus)
        if model is None:
            print(note, "not trained yet", flush=True)
            missing.append(str(path))
            continue
        stamp = key(name, path, settings)
        start = time.perf_counter()
        if name.endswith("/windowed"):
            result = evaluation.measure_windowed(model, windows)
        else:
            result, bits = evaluation.measure(cell, model, windows, asked)
            write_whole(place(name, "safetensors"), save({name: bits.half().contiguous()}))
        result["seconds"] = round(time.perf_counter() - start, 2)
        write_whole(place(name, "json"), json.dumps({"key": stamp, **result}, allow_nan=False).encode())
        print(note, result["bits"], f"{result['seconds']:.1f} s", flush=True)
    if missing:
        raise SystemExit(f"not there, or not trained to the end (`make train`): {', '.join(dict.fromkeys(missing))}")


def collate(corpus: first_text.Corpus, settings: dict, files: int | None, command: str) -> None:
    """All cells into results/; SystemExit that names what is missing."""
    cells, windowed, curves, missing, seconds = [], {}, {}, [], 0.0
    for name, cell in everything().items():
        result = finished(name, checkpoint(cell), settings)
        if result is None:
            missing.append(name)
            continue
        del result["key"]
        seconds += result["seconds"]
        if name.endswith("/windowed"):
            windowed[cell.run] = result
        else:
            cells.append(result)
            curves.update(load(place(name, "safetensors").read_bytes()))
    if missing:
        raise SystemExit(f"{len(missing)} cells are not done, so nothing is written: {', '.join(missing)}")
    names, _ = evaluation.held_out_windows(corpus, files=files)
    result = {
        "corpus": settings["corpus"],
        "length": evaluation.LENGTH,
        "text": evaluation.TEXT,
        "files": names,
        "bands": evaluation.BANDS,
        "distances": evaluation.DISTANCES,
        "cells": cells,
        "windowed": windowed,
        "seconds": round(seconds, 1),
    }
    write_whole(ROOT / "results" / "evaluation.safetensors", save(curves))
    written = results.save("evaluation", result, device.provenance(SEED, command, torch.device("cpu")))
    print(f"{len(cells)} cells in {written}, {seconds:.0f} s of work", flush=True)


def share(given: argparse.Namespace) -> None:
    """The same command in ``jobs`` processes, each with its part of the cells."""
    words = [sys.executable, __file__, "--only", given.only]
    words += ["--files", str(given.files)] if given.files else []
    processes = [subprocess.Popen([*words, "--part", f"{i + 1}/{given.jobs}"]) for i in range(given.jobs)]
    if any([process.wait() for process in processes]):
        raise SystemExit("a process ended early, see above")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", default="*", metavar="PATTERN", help="cells whose id fits, such as 'rope-10000-0/*'")
    parser.add_argument("--part", default="1/1", metavar="I/N", help="of the cells every Nth, from the Ith on")
    parser.add_argument("--jobs", type=int, default=1, help="processes that share the work, one thread each")
    parser.add_argument("--files", type=int, help="held-out files, by default all that are long enough")
    parser.add_argument("--collate", action="store_true", help="only bring together what is done")
    given = parser.parse_args()
    torch.set_num_threads(1)
    command = "python benchmarks/evaluate.py" + (f" --files {given.files}" if given.files else "")
    corpus = first_text.load()
    settings = {
        "corpus": corpus.summary(),
        "files": given.files,
        "bands": evaluation.BANDS,
        "distances": evaluation.DISTANCES,
        "contexts": evaluation.CONTEXTS,
        "sampled": evaluation.SAMPLED,
        "seed": SEED,
    }
    todo = everything()
    if given.jobs > 1:
        share(given)
    elif not given.collate:
        part, parts = map(int, given.part.split("/"))
        mine = [name for name in todo if fnmatch.fnmatch(name, given.only)]
        if not mine:
            raise SystemExit(f"no cell fits --only {given.only!r}; there are: {', '.join(todo)}")
        evaluate({name: todo[name] for name in mine[part - 1 :: parts]}, corpus, settings, given.files)
    left = [name for name, cell in todo.items() if finished(name, checkpoint(cell), settings) is None]
    if left and not given.collate:
        print(f"{len(left)} cells are left", flush=True)
        return
    collate(corpus, settings, given.files, command)


if __name__ == "__main__":
    main()
