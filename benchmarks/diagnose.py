"""How often does the diagnosis name a mistake? Try random functions with mistakes; writes results/diagnose.json.

    python benchmarks/diagnose.py                  2,000 functions with mistakes that the diagnosis was improved on
    python benchmarks/diagnose.py --held-back tests.diagnose_held_back
                                                   400 functions with mistakes that it was not improved on
    python benchmarks/diagnose.py --fresh          single mistakes by an author who had not seen the diagnosis
    python benchmarks/diagnose.py --fresh MODULE --set second
                                                   another such set, into results/diagnose_fresh_second.json
    python benchmarks/diagnose.py --fresh --set later
                                                   the first set again, after the diagnosis was improved on it
    python benchmarks/diagnose.py --count 100      a quick run that writes nothing

Most mistakes come from bug reports (tests/diagnose_world.py, tests/diagnose_more.py). A random function contains up to
three of them, or none. Held-back mistakes are tried once, and the diagnosis is not improved afterwards; their results
are in results/diagnose_held_back.json. A module of held-back mistakes lists them in MISTAKES, as
tests/diagnose_held_back.py does, and names their author in WHO. A fresh set lists its mistakes in FRESH, as
tests/fresh_mistakes.py does.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import importlib
import itertools
import json
import multiprocessing
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

import torch  # noqa: E402  (the path must be set first)

from ropebook import device, results  # noqa: E402
from ropebook.diagnose import diagnose  # noqa: E402
from ropebook.diagnose.names import NAMES, part  # noqa: E402
from tests import diagnose_held_back, diagnose_more  # noqa: E402
from tests import diagnose_world as worlds  # noqa: E402

SEED = 2026
# The number of random worlds for each fresh mistake.
WORLDS = 12
FIRST_SET = "tests.fresh_mistakes"
# Every fifth function has no mistake.
SOUND = 5
KNOWN = {**worlds.MISTAKES, **diagnose_held_back.MISTAKES, **diagnose_more.MISTAKES}

# The mistakes being tried. They are stored here before the workers are forked, because functions can't be sent to
# workers.
TRIED = {}


def drawn(count: int, seed: int, mistakes: dict) -> Iterator[tuple[worlds.World, tuple[str, ...]]]:
    """Yield random worlds, each with the names of the mistakes made in it."""
    generator = random.Random(seed)
    for i in range(count):
        if i % SOUND == 0:
            yield worlds.sound_at_random(generator)[:2]
        else:
            yield worlds.wrong_at_random(generator, mistakes=mistakes)[:2]


def told(one: tuple[worlds.World, tuple[str, ...]]) -> tuple[tuple[str, ...], str, list[str]]:
    """Diagnose one function. Return the mistakes in it, the verdict, and the mistakes that the diagnosis named."""
    torch.set_num_threads(1)
    world, names = one
    rotation = worlds.compose(world, names, TRIED)
    how = {"dim": world.dim, "call": "q, k, positions", "order": "batch heads seq dim", **world.declared}
    try:
        report = diagnose(rotation, **how)
    except Exception as error:
        # Functions that raise are counted separately from the three verdicts.
        print(f"{names} in {world}: {type(error).__name__}: {error}", flush=True)
        return names, "raised", []
    return names, report.verdict, list(report.mistakes)


def code_of_today() -> str:
    """Return a digest of the code of the diagnosis and the mistakes. An unfinished run is resumed only if the code is
    still the same."""
    files = sorted([*(ROOT / "code/ropebook/diagnose").glob("*.py"), *(ROOT / "tests").glob("diagnose_*.py")])
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def resumed(draws: Iterator, journal: Path, run: Callable[[Iterator], Iterable]) -> Iterator[tuple]:
    """Yield the reports on all draws: first those that an unfinished run left in ``journal``, then the new ones from
    ``run``."""
    today = code_of_today()
    # A run that was killed may have left an incomplete line at the end.
    lines = journal.read_text(encoding="utf-8").split("\n")[:-1] if journal.exists() else []
    done = [json.loads(line) for line in lines[1:]] if lines[:1] == [today] else []
    journal.parent.mkdir(parents=True, exist_ok=True)
    journal.write_text("\n".join([today, *map(json.dumps, done)]) + "\n", encoding="utf-8")
    for (names, verdict, called), _ in zip(done, itertools.islice(draws, len(done)), strict=True):
        yield tuple(names), verdict, called
    with journal.open("a", encoding="utf-8") as file:
        for report in run(draws):
            print(json.dumps(report), file=file, flush=True)
            yield report
    journal.unlink()


def tried(reports: Iterable, mistakes: dict) -> dict:
    """Count the verdicts by the number of mistakes. Also count how often each mistake was named, and which names were
    given to mistakes that occur alone."""
    verdicts = collections.defaultdict(collections.Counter)
    named, seen = collections.Counter(), collections.Counter()
    alone, missed = collections.defaultdict(collections.Counter), collections.defaultdict(collections.Counter)
    for names, verdict, called in reports:
        row = verdicts[str(len(names))]
        row["functions"] += 1
        row[verdict] += 1
        found = [bool(set(called) & set(mistakes[name].called)) for name in names]
        row["all named"] += all(found)
        row["mistakes"] += len(names)
        row["named"] += sum(found)
        for name, right in zip(names, found, strict=True):
            seen[name] += 1
            named[name] += right
            missed[name].update([] if right else called)
        if len(names) == 1:
            about = part(mistakes[names[0]].called[0])
            alone[about]["functions"] += 1
            alone[about].update({part(one) for one in called})
    each = [
        {
            "mistake": name,
            "source": mistakes[name].source,
            "seen": seen[name],
            "named": named[name],
            "called instead": [one for one, _ in missed[name].most_common(2)],
        }
        for name in seen
    ]
    return {
        "verdicts": {key: dict(verdicts[key]) for key in sorted(verdicts)},
        "alone": {key: dict(row) for key, row in alone.items()},
        "each": each,
    }


def fresh_at_random(mistakes: dict, worlds_each: int, seed: int) -> Iterator[tuple[str, worlds.World]]:
    """Yield each fresh mistake's name ``worlds_each`` times, each time with a random world in which it really is a
    mistake."""
    generator = random.Random(seed)
    for name, fresh in mistakes.items():
        for _ in range(worlds_each):
            world = worlds.world_at_random(generator)
            while not fresh.when(world):
                world = worlds.world_at_random(generator)
            yield name, world


def told_fresh(one: tuple[str, worlds.World]) -> tuple[str, str, bool, list[str]]:
    """Diagnose one fresh mistake. Return its name, the verdict, whether it was named, and the names that the diagnosis
    gave.

    The author of the mistakes fixed the rule before any of them was tried. A mistake counts as named if the verdict is
    "wrong" and one of the mistake's patterns matches a name in the report or the sentence about that name. Other
    measurements in the report don't count.
    """
    torch.set_num_threads(1)
    name, world = one
    fresh = TRIED[name]
    how = {"dim": world.dim, "call": "q, k, positions", "order": "batch heads seq dim"}
    try:
        report = diagnose(fresh.build(world), **how, **world.declared)
    except Exception as error:
        return name, "raised", False, [type(error).__name__]
    said = [f"{one}: {sentence}" for one, sentence in report.mistakes.items()]
    matched = any(re.search(form, text, re.IGNORECASE) for form in fresh.accept for text in said)
    return name, report.verdict, matched and report.verdict == "wrong", list(report.mistakes) or [report.verdict]


def tried_fresh(reports: Iterable, mistakes: dict) -> dict:
    """Count the verdicts, and how often each fresh mistake was described in words that the mistake's author accepts."""
    verdicts, named, seen = collections.Counter(), collections.Counter(), collections.Counter()
    told_of = collections.defaultdict(collections.Counter)
    for name, verdict, right, called in reports:
        verdicts[verdict] += 1
        seen[name] += 1
        named[name] += right
        told_of[name].update(called)
    each = []
    for name, fresh in mistakes.items():
        called = [one for one, _ in told_of[name].most_common(3)]
        row = {"mistake": name, "source": fresh.source, "seen": seen[name], "named": named[name], "called": called}
        each.append(row | {"truth": fresh.truth})
        print(f"{named[name]:4} of {seen[name]} {name}: {', '.join(called)}", flush=True)
    return {"verdicts": dict(verdicts), "each": each}


def results_of(name: str) -> bool:
    """Return whether there are results with this name."""
    return (ROOT / "results" / f"{name}.json").exists()


def fresh_set(module: str, name: str | None, workers: int) -> None:
    """Run the diagnosis on each mistake of a fresh set, and write the results."""
    mistakes = importlib.import_module(module).FRESH
    TRIED.update(mistakes)
    draws = fresh_at_random(mistakes, WORLDS, SEED + 2)
    with multiprocessing.get_context("fork").Pool(workers) as pool:
        found = tried_fresh(pool.imap(told_fresh, draws, chunksize=4), mistakes)
    command = "python benchmarks/diagnose.py --fresh"
    command += "" if module == FIRST_SET else f" {module}"
    command += f" --set {name}" if name else ""
    file = "_".join(("diagnose_fresh", *([name] if name else [])))
    print(found["verdicts"], results.save(file, found, device.provenance(SEED + 2, command)))


def main() -> None:
    """Try the functions and print the results. The results are written to a file only if all functions were tried."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int)
    parser.add_argument("--held-back", help="the module of mistakes to try instead, as tests.diagnose_held_back")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument(
        "--fresh",
        nargs="?",
        const=FIRST_SET,
        metavar="MODULE",
        help="the fresh mistakes of a module instead, each alone",
    )
    parser.add_argument("--set", help="what a fresh set is called in its results' name, as second")
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.fresh:
        if not given.set and (given.fresh != FIRST_SET or results_of("diagnose_fresh")):
            parser.error("--set must name the results: those of the first set, tried once, are kept")
        fresh_set(given.fresh, given.set, given.workers)
        return
    if given.held_back:
        module = importlib.import_module(given.held_back)
        mistakes, count, seed, name = module.MISTAKES, 400, SEED + 1, "diagnose_held_back"
        said = {"who": module.WHO}
        command = f"python benchmarks/diagnose.py --held-back {given.held_back}"
    else:
        mistakes, count, seed, name = KNOWN, 2000, SEED, "diagnose"
        said, command = {}, "python benchmarks/diagnose.py"
    unknown = {name for one in mistakes.values() for name in one.called} - set(NAMES)
    if unknown:
        sys.exit(
            f"ropebook.diagnose.names has no {', '.join(sorted(unknown))}: say what these mistakes are called there"
        )
    draws = drawn(given.count or count, seed, mistakes)
    TRIED.update(mistakes)
    with multiprocessing.get_context("fork").Pool(given.workers) as pool:
        journal = ROOT / "_build" / f"{name}.jsonl"

        def run(rest: Iterator) -> Iterable:
            return pool.imap(told, rest, chunksize=4)

        reports = run(draws) if given.count else resumed(draws, journal, run)
        found = {**said, **tried(reports, mistakes)}
    print(found["verdicts"])
    for row in sorted(found["each"], key=lambda row: row["named"] / row["seen"]):
        if row["named"] < row["seen"]:
            print(f"{row['named']:4} of {row['seen']:4} {row['mistake']}: {', '.join(row['called instead'])}")
    if given.count is None:
        print(results.save(name, found, device.provenance(seed, command)))


if __name__ == "__main__":
    main()
