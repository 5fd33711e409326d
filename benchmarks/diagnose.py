"""How often does the diagnosis name a mistake? Random functions with one, two or three; writes results/diagnose.json.

    python benchmarks/diagnose.py              2,000 functions, and the mistakes that were held back
    python benchmarks/diagnose.py --count 100  a short look, written nowhere

Most mistakes come from bug reports (tests/diagnose_world.py). Those that were held back (tests/diagnose_held_back.py)
were written when the diagnosis was finished, by its author, who did not change it after they had been tried.
"""

from __future__ import annotations

import argparse
import collections
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

import torch  # noqa: E402  (the path is set just above)

from ropebook import device, results  # noqa: E402
from ropebook.diagnose import diagnose  # noqa: E402
from tests import diagnose_held_back  # noqa: E402
from tests import diagnose_world as worlds  # noqa: E402

SEED = 2026
# Every fifth function is sound.
SOUND = 5


def tried(count: int, seed: int, mistakes: dict) -> dict:
    """Verdicts by the number of mistakes, and how often each mistake was named."""
    generator = random.Random(seed)
    verdicts = collections.defaultdict(collections.Counter)
    named, seen = collections.Counter(), collections.Counter()
    for i in range(count):
        draw = worlds.sound_at_random if i % SOUND == 0 else worlds.wrong_at_random
        options = {} if i % SOUND == 0 else {"mistakes": mistakes}
        world, names, rotation = draw(generator, **options)
        report = diagnose(
            rotation, dim=world.dim, call="q, k, positions", order="batch heads seq dim", **world.declared
        )
        row = verdicts[str(len(names))]
        row["functions"] += 1
        row[report.verdict] += 1
        found = [bool(set(report.mistakes) & set(mistakes[name].called)) for name in names]
        row["all named"] += all(found)
        row["mistakes"] += len(names)
        row["named"] += sum(found)
        for name, told in zip(names, found, strict=True):
            seen[name] += 1
            named[name] += told
    each = [
        {"mistake": name, "source": mistakes[name].source, "seen": seen[name], "named": named[name]} for name in seen
    ]
    return {"verdicts": {key: dict(verdicts[key]) for key in sorted(verdicts)}, "each": each}


def main() -> None:
    """Try them, print, and write what was found if all were tried."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--count", type=int, default=2000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    found = {
        "known": tried(given.count, SEED, worlds.MISTAKES),
        "held_back": tried(given.count // 5, SEED + 1, diagnose_held_back.MISTAKES),
    }
    for name, one in found.items():
        print(name, one["verdicts"])
        print([(row["mistake"], row["named"], row["seen"]) for row in one["each"] if row["named"] < row["seen"]])
    if given.count == parser.get_default("count"):
        print(results.save("diagnose", found, device.provenance(SEED, "python benchmarks/diagnose.py")))


if __name__ == "__main__":
    main()
