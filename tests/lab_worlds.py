"""Synthetic numbers for the second experiment, constructed so that the correct verdicts are known."""

import numpy as np

from ropebook.lab import extensions, scores, trials
from ropebook.lab.model import SCHEMES

FILES, CONTEXTS, TEXTS = 30, 96, 20
WINDOWS = len(scores.edges(scores.TEXT)) - 1
CHOSEN = {"ntk_by_parts": 4, "yarn": 4, "self_extend": 64, "rerope": 128}
NAMES = [extension.id for extension in extensions.extensions(CHOSEN)]
NAMES += [f"{name}/{s}/tuned" for name in extensions.TUNED for s in extensions.FACTORS]


def cell(draws, files, within=2.0, beyond=5.0, seed_spread=0.0, share=0.9, last=2.0):
    """Return the numbers of one cell. Each number is the sum of the file's own cost, the band's mean, the seed's
    contribution and a little noise."""
    shift = seed_spread * draws.normal()

    def bits(size, beyond):
        means = np.array([within, beyond, beyond, beyond]) + shift
        return (files[:size, None] + means + 0.01 * draws.normal(size=(size, 4))).round(4).tolist()

    def letters():
        return "".join(draws.choice(["1", "0"], CONTEXTS, p=[share, 1 - share])).replace("0", "o", 3)

    def curves():
        found = {"python": within, "language": within + 1}
        return {text: [round(x + shift, 4) for x in np.linspace(mean, beyond, WINDOWS)] for text, mean in found.items()}

    told = {
        task: {
            "256": {str(d): letters() for d in scores.DISTANCES[:4]},
            "2048": {str(d): letters() for d in scores.DISTANCES},
        }
        for task in ("retrieval", "order")
    }
    return {
        "numbers": {"python": bits(FILES, beyond), "language": bits(TEXTS, beyond), "curves": curves(), **told},
        "ended": {"python": bits(FILES, beyond), "language": bits(TEXTS, beyond)},
        "last": {"python": bits(FILES, last), "language": bits(TEXTS, last), "curves": curves()},
        "sampled": {
            "anew": (files[:FILES] + 0.01 * draws.normal(size=FILES)).tolist(),
            "cached": (files[:FILES] + 0.1 + 0.01 * draws.normal(size=FILES)).tolist(),
        },
    }


ABLE = {*SCHEMES, "rope-10000-3200"}
"""The schemes whose record scores may be compared (here, all of them)."""


def world(seed=0, **options):
    """Return all cells. By default, all methods and schemes have the same means, and all of them break beyond L."""
    draws = np.random.default_rng(seed)
    files = draws.normal(scale=0.7, size=FILES)
    names = [f"{scheme}-{seed}" for scheme in SCHEMES for seed in trials.SEEDS]
    longer = [trial.name for trial in trials.LONGER]
    names += [*longer, *(f"{run}/{name}" for run in longer for name in NAMES)]
    return {name: cell(draws, files, **options) for name in names}


def change(numbers, names, **options):
    """Return a copy of ``numbers`` in which some cells are regenerated, for the same files but with other means. These
    are the cells whose id begins with one of ``names``."""
    draws = np.random.default_rng(99)
    files = np.random.default_rng(0).normal(scale=0.7, size=FILES)
    return {
        name: cell(draws, files, **options) if name.startswith(names) else numbers for name, numbers in numbers.items()
    }


def ending(numbers):
    """Remove, in place, the numbers beyond L from the cells of the learned scheme, because it has no vectors there."""
    for seed in trials.SEEDS:
        told = numbers[f"learned-{seed}"]["numbers"]
        for text in ("python", "language"):
            told[text] = [[row[0], None, None, None] for row in told[text]]
            told["curves"][text] = told["curves"][text][: len(scores.edges(scores.LENGTH)) - 1]
        for task in ("retrieval", "order"):
            told[task]["2048"] = None
    return numbers
