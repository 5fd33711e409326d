"""Train and test the models of the second experiment, one after the other.

    python benchmarks/trials.py train                     all unfinished trainings, resumed where they stopped
    python benchmarks/trials.py train --only none-0       only one of them
    python benchmarks/trials.py train --twice             twice the steps, for models that find few records
    python benchmarks/trials.py vary                      train models with one thing changed
    python benchmarks/trials.py raise                     only raise the base of the finished models, and train no more
    python benchmarks/trials.py seed                      train more seeds
    python benchmarks/trials.py last                      let plain and further trained models read the last L bytes
    python benchmarks/trials.py choose                    choose the methods' parameters on the development part
    python benchmarks/trials.py tune                      fine-tune the models briefly on longer texts
    python benchmarks/trials.py evaluate --part held_out  test every finished model with every method
    python benchmarks/trials.py gather                    the numbers that pages show, into results/measured.json
    python benchmarks/trials.py compare                   what training can change, into results/trained.json
    python benchmarks/trials.py pack FILE                 this Python's text, for training on another machine
    python benchmarks/trials.py seed --text FILE --device cuda    train there, several processes side by side

Checkpoints are in runs/trials, which Git ignores. A finished training run leaves two files in results/trials: its
numbers on the development part, and its weights in half precision. Finished runs are not repeated, and the later steps
need only these two files, not the checkpoint. On the CPU, training is compiled, so it needs a C++ compiler. On a GPU it
isn't, because compiling takes longer there than training.

Numbers on the held-out part are written to results/trials/held_out and never printed. Once all of them exist, `gather`
applies the rule to reach verdicts; until then, it only gathers the training runs. (For runs with `--twice`, the
repository keeps only the numbers, because no page reads their weights.)
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import json
import os
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads must be set first)
from safetensors.torch import save  # noqa: E402

from ropebook import device, results  # noqa: E402
from ropebook.lab import claims, extensions, measured, parts, parts_file, rule, scores, trained, trials, variants  # noqa: E402
from ropebook.lab.bits import position_bits  # noqa: E402
from ropebook.lab.longer import with_method  # noqa: E402
from ropebook.lab.means import band_means  # noqa: E402
from ropebook.lab.model import LanguageModel, of_weights  # noqa: E402
from ropebook.lab.training import Trainer  # noqa: E402

EVERY = 40
"""Each loss in the results is the mean over this many steps."""
HELD_OUT = parts.PARTS[2]
SAVED = 25
"""Steps between checkpoints."""
CHOSEN_WITH = 4
"""The factor that is used to choose the methods' parameters."""
FIRST = (trials.EXTENDED, "none", "alibi")
"""Schemes that are trained first for each seed."""
DEVICE = torch.device("cpu")
"""The device that trains and tests (--device)."""


def folder() -> Path:
    return ROOT / "results" / "trials"


def in_order() -> list[trials.Trial]:
    """Return all training runs in order: by seed, and the most informative runs of each seed first. The models to which
    methods are applied come last."""
    return [*sorted(trials.TRIALS, key=lambda trial: (trial.seed, trial.scheme not in FIRST)), *trials.LONGER]


def extended(wanted: list[trials.Trial]) -> list[trials.Trial]:
    """Return the training runs of the models to which methods are applied."""
    return [trial for trial in wanted if trial in trials.LONGER]


def finished(trial: trials.Trial) -> dict | None:
    """Return the numbers of a training run, or None if it isn't finished."""
    path = folder() / f"{trial.name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def left_to_double() -> list[trials.Trial]:
    """Return the training runs to repeat with twice the steps: for each scheme whose models don't find records within
    L, the weakest seed."""
    told = {trial.name: finished(trial) for trial in trials.TRIALS}
    able = measured.able(measured.trainings({name: one for name, one in told.items() if one}))
    schemes = dict.fromkeys(trial.scheme for trial in trials.TRIALS if trial.scheme not in {trials.EXTENDED, *able})
    of_scheme = [[trial for trial in trials.TRIALS if trial.scheme == scheme] for scheme in schemes]
    whole = [seeds for seeds in of_scheme if all(told[trial.name] for trial in seeds)]
    return [trials.twice(min(seeds, key=lambda trial: told[trial.name]["within"]["retrieval"])) for seeds in whole]


def train(wanted: list[trials.Trial], text: parts.Parts, command: str = "train") -> None:
    given = None
    for trial in wanted:
        if finished(trial):
            continue
        trainer = Trainer(trial, text, ROOT / "runs" / "trials", device=DEVICE, compiled=DEVICE.type == "cpu")
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
        write(trainer, given, command)


def vary(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Carry out the training runs in `ropebook.lab.variants`, or only some of them. If all are wanted, the learning
    rate of T5's table is chosen as soon as all its candidates are trained."""
    if wanted != varied():
        train([one for one in wanted if not isinstance(one, trials.Further)], text, "vary")
        train_further([one for one in wanted if isinstance(one, trials.Further)], text)
        return
    train([*variants.CEILING[:1], *variants.T5_CANDIDATES], text, "vary")
    train([*variants.t5(chosen_rate()), *variants.VARIANTS], text, "vary")
    train_further([one for one in wanted if isinstance(one, trials.Further)], text)


def varied() -> list[trials.Trial]:
    """Return all training runs with one thing changed, in the order in which they are started."""
    tables = dict.fromkeys(run for rate in variants.BIAS_RATES for run in variants.t5(rate))
    further = variants.every_further(trials.LONGER)
    return list(dict.fromkeys([*variants.T5_CANDIDATES, *tables, *variants.VARIANTS, *further]))


def chosen_rate() -> float:
    """Choose the learning rate of T5's table from its finished candidates."""
    rate = variants.choose_rate(
        {one.bias_lr: variants.within_bits(finished(one)["development"]) for one in variants.T5_CANDIDATES}
    )
    print(f"T5's table: a rate of {rate}", flush=True)
    return rate


def seed(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Train more seeds of every scheme."""
    train(wanted, text, "seed")


def train_further(wanted: list[trials.Further], text: parts.Parts) -> None:
    """Train finished models further on longer sequences, with a larger base or with their own. Weights and numbers are
    stored as for any other training run."""
    parents = {trial.name: trial for trial in trials.LONGER}
    for run in wanted:
        if finished(run) or not finished(parents[run.parent]):
            continue
        parent = model_of(parents[run.parent])
        if variants.is_raised(vars(run)):
            parent = variants.with_raised_base(parent)
        trainer = Trainer(run, text, ROOT / "runs" / "trials", model=parent.train(), device=DEVICE)
        for _ in trainer.train(SAVED):
            pass
        write(trainer, scores.materials(text, "development"), "vary")


def raise_only(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Measure finished models with a larger base and no further training."""
    given = None
    for trial in extended(wanted):
        path = folder() / f"{variants.untrained(trial)}.json"
        if path.exists() or not finished(trial):
            continue
        given = given or scores.materials(text, "development")
        told = {
            "parent": trial.name,
            "base": variants.RAISED,
            "corpus": text.summary(),
            "development": scores.measure(variants.with_raised_base(model_of(trial)), given),
            "files": given.names,
            "provenance": device.provenance(trial.seed, "python benchmarks/trials.py raise", DEVICE),
        }
        store(path, told)


def read_last(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Measure plain models, and those that were trained further most with the larger base, while they read only the
    last L bytes. The difference from reading everything is what the longer text is worth to them."""
    given = None
    for run in variants.read_last(trials.LONGER):
        path = folder() / f"{variants.last(run)}.json"
        if path.exists() or not finished(run):
            continue
        given = given or scores.materials(text, "development")
        weights = (folder() / f"{run.name}.safetensors").read_bytes()
        model = ready(variants.of_weights(weights, vars(run)))
        told = {
            "run": run.name,
            "window": scores.LENGTH,
            "corpus": text.summary(),
            "development": scores.measure_windowed(model, given, scores.LENGTH),
            "files": given.names,
            "provenance": device.provenance(run.seed, "python benchmarks/trials.py last", DEVICE),
        }
        store(path, told)


def write(trainer: Trainer, given: scores.Materials, command: str) -> None:
    """Write a training run's weights first and its numbers last, so that the numbers exist only if the run is
    finished."""
    model, trial = trainer.model.eval(), trainer.run
    state = {name: w.half().contiguous() for name, w in model.state_dict().items() if name != "lm_head.weight"}
    with results.writing(folder() / f"{trial.name}.safetensors") as file:
        file.write(save(state))
    model = rounded(trainer)
    start = time.perf_counter()
    found = scores.measure(model, given)
    within = {
        task: sum(map(scores.share, found[task][str(scores.LENGTH)].values())) / len(found[task][str(scores.LENGTH)])
        for task in ("retrieval", "order")
    }
    steps = range(0, len(trainer.losses), EVERY)
    rows_of_text = sum(kind != "language" for kind in trials.KINDS) / len(trials.KINDS)
    told = {
        "run": dict(vars(trial)),
        "corpus": trainer.corpus.summary(),
        "epochs": round(trial.steps * trial.rows * rows_of_text * trial.length / len(trainer.corpus.train), 3),
        "parameters": sum(weight.numel() for weight in model.parameters()),
        "seconds": round(trainer.seconds, 1),
        "compiled": trainer.compiled,
        "losses": [round(sum(p) / len(p), 4) for p in (trainer.losses[at : at + EVERY] for at in steps)],
        "within": {task: round(share, 4) for task, share in within.items()},
        "development": found,
        # For a model trained on longer texts, this value would come from different bytes.
        "headroom": scores.headroom(model, given) if trial.length == scores.LENGTH else None,
        "files": given.names,
        "provenance": device.provenance(trial.seed, f"python benchmarks/trials.py {command}", DEVICE),
    }
    store(folder() / f"{trial.name}.json", told)
    print(f"{trial.name}: done, {within}, {time.perf_counter() - start:.0f} s of trying", flush=True)


def file_of(cell: str) -> str:
    return f"{cell.replace('/', '_')}.json"


def store(path: Path, told: dict) -> None:
    with results.writing(path) as file:
        file.write((json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n").encode())


def rounded(trainer: Trainer) -> LanguageModel:
    """Return the trained model with its weights rounded to the precision in which they are stored."""
    model = copy.deepcopy(trainer.model)
    model.load_state_dict({name: weight.half().float() for name, weight in model.state_dict().items()})
    return ready(model)


def model_of(trial: trials.Trial) -> LanguageModel:
    """Return the model with its weights from results/trials, in float32."""
    return ready(of_weights((folder() / f"{trial.name}.safetensors").read_bytes(), vars(trial)))


def ready(model: LanguageModel) -> LanguageModel:
    """Return the model on the chosen device, where it also accepts texts that are on the CPU."""
    model = model.to(DEVICE).eval()
    if DEVICE.type != "cpu":
        model.register_forward_pre_hook(lambda _, given: (given[0].to(DEVICE), *given[1:]))
    return model


def cells_of(trial: trials.Trial) -> list[extensions.Extension | None]:
    """Return the forms in which a model is tested: as trained (None) and, if methods are applied to it, with every
    extension."""
    if not extended([trial]):
        return [None]
    chosen = folder() / "chosen.json"
    if not chosen.exists():
        raise SystemExit("parameters have to be chosen first: python benchmarks/trials.py choose")
    return [None, *extensions.extensions(json.loads(chosen.read_text(encoding="utf-8"))["chosen"])]


def has_last(trial: trials.Trial) -> bool:
    """Return whether any claim compares the model with the same model restricted to the last L bytes."""
    return trial.scheme == "alibi" or bool(extended([trial]))


def evaluate(wanted: list[trials.Trial], text: parts.Parts, part: str) -> None:
    """Test every finished model in all its forms, printing only names and times."""
    given = scores.materials(text, part)
    for trial in wanted:
        if not finished(trial):
            continue
        model = model_of(trial)
        for extension in cells_of(trial):
            try_one(model, trial, extension, given, text, part)


def try_one(
    model: LanguageModel,
    trial: trials.Trial,
    extension: extensions.Extension | None,
    given: scores.Materials,
    text: parts.Parts,
    part: str,
    ending: str = "",
) -> None:
    name = trial.name + (f"/{extension.id}" if extension else "") + ending
    path = folder() / part / file_of(name)
    identity = {
        "cell": name,
        "corpus": text.summary(),
        "weights": hashlib.sha256((folder() / f"{trial.name}.safetensors").read_bytes()).hexdigest(),
        "options": dict(extension.options) if extension else {},
    }
    if path.exists():
        stored = json.loads(path.read_text(encoding="utf-8"))
        if any(stored[key] != value for key, value in identity.items()):
            raise SystemExit(f"{path} is of other weights, options or text: remove it")
        return
    start = time.perf_counter()
    as_tried = model
    if extension and not ending:
        as_tried = with_method(model, extension.method, extension.options)
    told = {
        **identity,
        "files": given.names,
        "numbers": scores.measure(as_tried, given),
        "provenance": device.provenance(None, "python benchmarks/trials.py", DEVICE),
    }
    if ending or (extension is None and has_last(trial)):
        told["last"] = scores.measure_windowed(as_tried, given, trial.length)
    if extension and extension.name.startswith(rule.FOLLOWING):
        told["ended"] = scores.measure_ended(as_tried, given)
        told["sampled"] = scores.measure_cached(model, given, extension.options, 2 * trial.length)
    store(path, told)
    print(f"{name} on {part}: {time.perf_counter() - start:.0f} s", flush=True)


def choose(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Choose the methods' parameters on the development part, using all seeds, and write them to
    results/trials/chosen.json."""
    wanted = extended(wanted)
    missing = [trial.name for trial in wanted if not finished(trial)]
    if missing:
        raise SystemExit(f"not trained yet: {', '.join(missing)}")
    given = scores.materials(text, "development")
    reach = CHOSEN_WITH * scores.LENGTH
    bands = [band for band in scores.BANDS if band[1] <= reach]
    found: dict[str, dict[int, list[float]]] = {}
    for trial in wanted:
        model = model_of(trial)
        for method, parameters in extensions.CANDIDATES.items():
            for parameter in parameters:
                extension = extensions.candidate(method, parameter, CHOSEN_WITH)
                longer = with_method(model, extension.method, extension.options)
                means = [
                    band_means(position_bits(longer, rows[:, : reach + 1]), bands).mean().item()
                    for rows in (given.python, given.language)
                ]
                found.setdefault(method, {}).setdefault(parameter, []).append(round(sum(means) / 2, 5))
                print(trial.name, method, parameter, found[method][parameter][-1], flush=True)
    told = {
        "criterion": extensions.CRITERION,
        "corpus": text.summary(),
        "found": found,
        "chosen": extensions.choose(found),
        "provenance": device.provenance(None, "python benchmarks/trials.py choose", DEVICE),
    }
    store(folder() / "chosen.json", told)
    print(told["chosen"], flush=True)


def tune(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Fine-tune models for a few steps, test them on the held-out part, and keep only the numbers."""
    given = scores.materials(text, HELD_OUT)
    for trial in extended(wanted):
        if not finished(trial):
            continue
        by_id = {extension.id: extension for extension in cells_of(trial) if extension}
        for name in extensions.TUNED:
            for s in extensions.FACTORS:
                extension = by_id.get(f"{name}/{s}", extensions.Extension(name, "none", s))
                if (folder() / HELD_OUT / f"{trial.name}_{name}_{s}_tuned.json").exists():
                    continue
                model = with_method(model_of(trial), extension.method, extension.options)
                run = trials.further(trial, name, s)
                trainer = Trainer(run, text, ROOT / "runs" / "trials" / "tuned", model=model, device=DEVICE)
                for _ in trainer.train(SAVED):
                    pass
                try_one(ready(trainer.model), trial, extension, given, text, HELD_OUT, "/tuned")


def gather(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Write results/measured.json. It contains the training runs and, once everything has been tested, the results and
    verdicts."""
    every = dict.fromkeys([*wanted, *map(trials.twice, trials.TRIALS)])
    told = {trial.name: one for trial in every if (one := finished(trial))}
    if not told:
        raise SystemExit("nothing has been trained yet: python benchmarks/trials.py train")
    chosen = folder() / "chosen.json"
    data = {
        "corpus": text.summary(),
        "rule": {"date": rule.DATE, "changed": rule.CHANGED, "sha256": rule.digest()},
        "length": scores.LENGTH,
        "text": scores.TEXT,
        "bands": [list(band) for band in scores.BANDS],
        "edges": scores.edges(scores.TEXT),
        "distances": list(scores.DISTANCES),
        "contexts": scores.CONTEXTS,
        "emerged": trials.EMERGED,
        "trainings": measured.trainings(told),
        "chosen": json.loads(chosen.read_text(encoding="utf-8"))["chosen"] if chosen.exists() else None,
        "opened": None,
    }
    missing = [name for name in every_cell(wanted) if not (folder() / HELD_OUT / file_of(name)).exists()]
    if missing or not chosen.exists():
        print(f"the held-out part has not been tried with everything; missing: {', '.join(missing[:3])}", flush=True)
    else:
        numbers = scores.stored(folder() / HELD_OUT)
        data["opened"] = {
            "files": numbers[wanted[0].name]["files"],
            "cells": measured.cells(numbers, trials.SEEDS),
            "differences": measured.differences(numbers),
            "caching": measured.caching(numbers),
            "able": sorted(able := measured.able(data["trainings"])),
            "verdicts": measured.verdicts(numbers, claims.asked(data["chosen"]), able),
        }
    data["provenance"] = device.provenance(None, "python benchmarks/trials.py gather", torch.device("cpu"))
    store(ROOT / "results" / "measured.json", data)


def compare(wanted: list[trials.Trial], text: parts.Parts) -> None:
    """Write results/trained.json, which contains the finished training runs that the page about training shows."""
    where = device.provenance(None, "python benchmarks/trials.py compare", torch.device("cpu"))
    results.save("trained", trained.gathered(folder()), where)


def every_cell(wanted: list[trials.Trial]) -> list[str]:
    """Return the names of all cells that the rule requires."""
    names = []
    for trial in wanted:
        names.append(trial.name)
        if extended([trial]) and (folder() / "chosen.json").exists():
            names += [f"{trial.name}/{extension.id}" for extension in cells_of(trial) if extension]
            names += [f"{trial.name}/{name}/{s}/tuned" for name in extensions.TUNED for s in extensions.FACTORS]
    return names


def main() -> None:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = {
        "train": train,
        "vary": vary,
        "seed": seed,
        "choose": choose,
        "tune": tune,
        "gather": gather,
        "compare": compare,
        "raise": raise_only,
        "last": read_last,
    }
    parser.add_argument("what", choices=[*what, "evaluate", "pack"])
    parser.add_argument("file", nargs="?", metavar="FILE", help="where pack writes to")
    parser.add_argument("--only", nargs="+", metavar="RUN", help="names such as rope-10000-0")
    parser.add_argument("--twice", action="store_true", help="with twice the steps, those without retrieval")
    parser.add_argument("--part", choices=parts.PARTS[1:], default="development")
    parser.add_argument("--text", metavar="FILE", help="the text that pack wrote (default: this Python's own)")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    given = parser.parse_args()
    if (given.what == "pack") != bool(given.file):
        parser.error(f"FILE must be given with pack, and only then, got {given.file} with {given.what}")
    torch.set_num_threads(1)
    DEVICE = torch.device(given.device)
    known = {"seed": list(variants.MORE), "vary": varied()}.get(given.what) or in_order()
    wanted = left_to_double() if given.twice else known
    unknown = set(given.only or ()) - {trial.name for trial in wanted}
    if unknown:
        parser.error(f"--only must name some of {', '.join(t.name for t in wanted)}, got {', '.join(sorted(unknown))}")
    wanted = [trial for trial in wanted if not given.only or trial.name in given.only]
    text = parts_file.read(given.text) if given.text else parts.load()
    if given.what == "pack":
        parts_file.write(text, given.file)
    elif given.what == "evaluate":
        longer = [] if given.only or given.twice else left_to_double()
        evaluate([*wanted, *longer], text, given.part)
    else:
        what[given.what](wanted, text)


if __name__ == "__main__":
    main()
