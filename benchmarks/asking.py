"""Ask the trained models for records at random distances, and find the pair that carries the order of tokens.

    python benchmarks/asking.py cells     every model as trained; extended ones also with every method for 8 L
    python benchmarks/asking.py map       every model with RoPE, with each pair's and each band's frequency changed
    python benchmarks/asking.py attack    the pairs that the maps name, at other distances and in other contexts
    python benchmarks/asking.py decide    everything that the second rule asks, in contexts of its own
    python benchmarks/asking.py gather    the numbers that pages show, into results/order.json and order_decided.json

All subcommands except `decide` are explorations, with contexts made from the development part or from the generated
language. Only `decide` uses the held-out part: files on which no model has been scored. It prints only names and times.
The script needs the weights in results/trials, and runs on one thread. On an idle CPU, a cell of an exploration takes
ten seconds to a minute, and a map takes some minutes; a GPU (--device cuda) takes seconds. Files in results/asking are
written atomically, and existing ones are skipped.
"""

from __future__ import annotations

import argparse
import copy
import hashlib
import itertools
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch  # noqa: E402  (paths and threads must be set first)

from ropebook import device, results  # noqa: E402
from ropebook.lab import (  # noqa: E402
    asking,
    bits,
    causal,
    decided,
    extensions,
    folding,
    heads,
    means,
    order,
    parts,
    parts_file,
    rule_two,
    scores,
    variants,
)
from ropebook.lab.asking import LAYOUTS, Layout  # noqa: E402
from ropebook.lab.longer import with_method  # noqa: E402
from ropebook.lab.model import SCHEMES, LanguageModel  # noqa: E402

DEVICE = torch.device("cpu")
"""The device that reads the texts (--device)."""
FACTOR = extensions.FACTORS[-1]
LEFT_OUT = ("yarn_unscaled", "yarn_chosen_unscaled", "dynamic_ntk_2", "dynamic_ntk_4")
"""Extensions that are left out, because they differ from others only in the factor on the scores or in another
constant."""
SLOW = ("self_extend", "rerope")
FEW = 4
"""The number of contexts of length 8 L for the `SLOW` methods, which compute two tables of scores."""
MAPPED = {
    "order": Layout("order", 512, 256, 512, 8),
    "order within": asking.fewer(LAYOUTS["order within"], 4),
}
"""Layouts for the maps. Their distances are between L and 2 L, where halving a frequency produces no new angle. An
answer counts as retrieval if it is one of the key's records, whether or not it is the right one."""
SLOWED = (2, 4, 8, 16)
"""The frequency of the pair that the map names is divided by each of these factors."""
ATTACKS = {
    "1.5 L to 3 L": Layout("order", 768, 384, 768, 6),
    "L to 8 L": asking.fewer(LAYOUTS["order"], 4),
    "two keys": Layout("order", 512, 256, 512, 16, asked=2),
    "generated text": Layout("order", 512, 256, 512, 8, text="language"),
}


def folder() -> Path:
    return ROOT / "results" / "asking"


def weights_of(name: str) -> Path:
    return ROOT / "results" / "trials" / f"{name}.safetensors"


def models() -> list[str]:
    """Return the names of all trained models that have weights, except those that were trained with a method. They are
    sorted by seed, with the extended models of each seed first."""
    names = []
    for path in sorted(weights_of("*").parent.glob("*.safetensors")):
        run = run_of(path.stem)
        if run.get("method", "none") == "none" or variants.is_further(run):
            names.append(path.stem)
    return sorted(names, key=lambda name: (order.id_of(name)[1], not order.is_extended(name)))


def run_of(name: str) -> dict:
    return json.loads(weights_of(name).with_suffix(".json").read_text(encoding="utf-8"))["run"]


def trained(name: str) -> LanguageModel:
    return variants.of_weights(weights_of(name).read_bytes(), run_of(name))


def rotating(name: str) -> bool:
    """Return whether every layer of the model rotates whole heads."""
    run = run_of(name)
    changed = run.get("rotary_dim") or variants.is_further(run)
    return SCHEMES[run["scheme"]].base is not None and run["scheme"] != "alternate" and not changed


RAISED_BASE = extensions.Extension("raised_base", "base", options={"base": variants.RAISED})
"""A larger base, without further training. The second rule doesn't ask about it."""


def methods() -> Iterator[extensions.Extension]:
    chosen = json.loads((weights_of("x").parent / "chosen.json").read_text(encoding="utf-8"))["chosen"]
    for one in extensions.extensions(chosen):
        if one.factor in (None, FACTOR) and one.name not in LEFT_OUT:
            yield one


def store(name: str, identity: dict, measured: dict, start: float, seed: int = asking.EXPLORATION) -> None:
    command = " ".join(["python benchmarks/asking.py", *sys.argv[1:2]])
    told = {
        **identity,
        **measured,
        "seconds": round(time.perf_counter() - start, 1),
        "provenance": device.provenance(seed, command, DEVICE),
    }
    with results.writing(folder() / f"{name}.json") as file:
        file.write((json.dumps(told, ensure_ascii=False, allow_nan=False) + "\n").encode())
    print(f"{name}: {told['seconds']:.0f} s", flush=True)


def done(name: str, identity: dict) -> bool:
    """Return whether the result file exists. Exit with an error if it was made from other weights, options, contexts or
    text."""
    path = folder() / f"{name}.json"
    if not path.exists():
        return False
    stored = json.loads(path.read_text(encoding="utf-8"))
    if any(stored[key] != value for key, value in identity.items()):
        raise SystemExit(f"{path} is of other weights, options, contexts or text: remove it")
    return True


def identity_of(
    name: str, text: parts.Parts, layouts: dict[str, Layout], extension: extensions.Extension | None = None
) -> dict:
    return {
        "model": name,
        "extension": extension.id if extension else "",
        "weights": hashlib.sha256(weights_of(name).read_bytes()).hexdigest(),
        "corpus": text.summary(),
        "options": dict(extension.options) if extension else {},
        "layouts": {key: dict(vars(layout)) for key, layout in layouts.items()},
    }


def answers(model: LanguageModel, asked: dict[str, asking.Asked]) -> dict[str, list[str]]:
    """Return the answer letters for each layout. Layouts that are longer than a learned scheme allows are left out."""
    return {
        key: asking.ask(one, reader(model, one.tokens.shape[1] + 1))
        for key, one in asked.items()
        if model.scheme != "learned" or one.tokens.shape[1] < model.length
    }


def reader(model: LanguageModel, length: int):
    """Return the object that answers questions after texts of this length: the model itself or, on another device, a
    function that takes the texts there."""
    fixed = causal.at_length(model, length)
    if DEVICE.type == "cpu":
        return fixed
    there = copy.deepcopy(fixed).to(DEVICE)
    return lambda asked: asking.likeliest(there, asking.Asked(*(one.to(DEVICE) for one in asked))).cpu()


def made(layouts: dict[str, Layout], text: parts.Parts) -> dict[str, asking.Asked]:
    """Return the contexts of an exploration."""
    return {key: asking.contexts(layout, text.development) for key, layout in layouts.items()}


def cells(names: list[str], text: parts.Parts) -> None:
    store_contexts(text)
    for name in names:
        model = trained(name)
        given = [None, *methods(), RAISED_BASE] if order.is_extended(name) else [None]
        for extension in given:
            slow = extension and extension.method in SLOW
            layouts = {
                key: asking.fewer(one, FEW) if slow and one.length > scores.LENGTH else one
                for key, one in LAYOUTS.items()
            }
            cell = order.cell_name(name, extension.id if extension else "")
            identity = identity_of(name, text, layouts, extension)
            if done(cell, identity):
                continue
            start = time.perf_counter()
            tried = with_method(model, extension.method, extension.options) if extension else model
            store(cell, identity, {"answers": answers(tried, made(layouts, text))}, start)


def store_contexts(text: parts.Parts) -> None:
    """Store the distances and kinds of all questions. They are the same for all cells."""
    told = {}
    for key, layout in (LAYOUTS | ATTACKS).items():
        asked = asking.contexts(layout, text.development)
        told[key] = {side: getattr(asked, side).tolist() for side in ("far", "near")}
        told[key]["first"] = asked.first[0].tolist()
    path = folder() / "contexts.json"
    content = json.dumps(told)
    if not path.exists() or path.read_text(encoding="utf-8") != content:
        with results.writing(path) as file:
            file.write(content.encode())


def map_(names: list[str], text: parts.Parts) -> None:
    for name in filter(rotating, names):
        identity = identity_of(name, text, MAPPED)
        if done(f"map-{name}", identity):
            continue
        start = time.perf_counter()
        model = trained(name)
        theta = causal.rotary_of(model).inv_freq
        asked = made(MAPPED, text)
        within = asked["order within"]
        found = folding.products(model, within)
        told = {
            "theta": theta.tolist(),
            "bands": causal.bands(theta),
            "plain": answers(model, asked),
            "pairs": {},
            "of_bands": {},
            "shares": shares(model, within.tokens),
            "products": {
                kind: torch.view_as_real(getattr(found, kind)).mul(1e4).round().div(1e4).tolist()
                for kind in asking.KINDS
            },
        }
        for way, factor in causal.WAYS.items():
            told["pairs"][way] = [answers(causal.changed(model, [pair], factor), asked) for pair in range(len(theta))]
            told["of_bands"][way] = {
                band: answers(causal.changed(model, pairs, factor), asked)
                for band, pairs in told["bands"].items()
                if pairs
            }
        store(f"map-{name}", identity, told, start)


def shares(model: LanguageModel, tokens: torch.Tensor) -> list[float]:
    """Return each pair's share of the product of query and key lengths, as a mean over all heads."""
    norms = heads.pair_norms(model, tokens)
    lengths = norms.q * norms.k
    return means.for_json((lengths / lengths.sum(-1, keepdim=True)).mean((0, 1)))


def attack(names: list[str], text: parts.Parts) -> None:
    """Test the pair that a model's own map names, the pairs next to it, and its twin: the pair whose share of the query
    and key lengths is closest to that of the named pair. Models that were trained further are tested as they are."""
    for name in filter(rotating, names):
        path = folder() / f"map-{name}.json"
        identity = identity_of(name, text, ATTACKS)
        if not path.exists() or done(f"attack-{name}", identity):
            continue
        start = time.perf_counter()
        told = json.loads(path.read_text(encoding="utf-8"))
        pair = order.named(told)
        tried = [at for at in range(pair - 2, pair + 3) if 0 <= at < len(told["theta"])]
        tried = list(dict.fromkeys([*tried, order.twin(told, pair)]))
        model = trained(name)
        every = itertools.product(range(len(model.layers)), range(model.n_heads))
        attacks = made(ATTACKS, text)
        one_layout = made({"order": MAPPED["order"]}, text)
        longest = made({"order": asking.fewer(LAYOUTS["order"], FEW)}, text)
        measured = {
            "pair": pair,
            "twin": order.twin(told, pair),
            "plain": answers(model, attacks),
            "pairs": {
                "halved": {str(at): answers(causal.changed(model, [at], 0.5), attacks) for at in tried},
                "still": {str(pair): answers(causal.changed(model, [pair], 0.0), attacks)},
            },
            "slowed": {
                str(divisor): answers(causal.changed(model, [pair], 1 / divisor), longest) for divisor in SLOWED
            },
            "heads": {
                f"{layer}.{head}": answers(causal.changed(model, [pair], 0.5, (layer, head)), one_layout)
                for layer, head in every
            },
        }
        store(f"attack-{name}", identity, measured, start)
    for name in names:
        identity = identity_of(name, text, ATTACKS)
        if variants.is_further(run_of(name)) and not done(f"attack-{name}", identity):
            start = time.perf_counter()
            store(f"attack-{name}", identity, {"further": answers(trained(name), made(ATTACKS, text))}, start)


# --- The second rule --------------------------------------------------------------------------------------------------


def decide(names: list[str], text: parts.Parts) -> None:
    """Measure everything that the second rule asks for, with one file per cell and seed, for all trained models."""
    opened = results.load("measured")["opened"]["files"]
    files = rule_two.closed(text.held_out, opened)
    read = rule_two.texts(files, scores.PER_FOLDER)
    asked = {key: asking.contexts(one, files, rule_two.STREAM) for key, one in rule_two.LAYOUTS.items()}
    distances = json.dumps({key: one.far.tolist() for key, one in asked.items()}).encode()
    with results.writing(folder() / "decide" / "contexts.json") as file:
        file.write(distances)
    for (cell, sides), seed in itertools.product(rule_two.cells().items(), rule_two.SEEDS):
        name = model_of(cell.partition("/")[0], seed)
        if name not in names:
            continue
        identity = {
            "rule": rule_two.digest(),
            "cell": cell,
            "seed": seed,
            "model": name,
            "weights": hashlib.sha256(weights_of(name).read_bytes()).hexdigest(),
            "corpus": text.summary(),
        }
        path = f"decide/{cell.replace('/', '_').replace(' ', '_')}-{seed}"
        if done(path, identity):
            continue
        start = time.perf_counter()
        model = as_asked(trained(name), cell)
        letters = {side.layout: asked[side.layout] for side in sides if isinstance(side, rule_two.Answers)}
        told = answers(model, letters) | {
            side.layout: losses(model, read[side.task], side) for side in sides if isinstance(side, rule_two.Bits)
        }
        store(path, identity, {"told": told}, start, rule_two.STREAM)


def model_of(id: str, seed: int) -> str:
    """Return the name of the trained model with this id and seed. For T5, it is the model with the chosen learning
    rate."""
    if id == "t5":
        return f"t5-{seed}-bias-{t5_rate()}"
    steps = "-3200" if id.endswith("-3200") else ""
    return f"{id.removesuffix(steps)}-{seed}{steps}"


def t5_rate() -> float:
    """Return the learning rate selected for T5's table on the development part, or NaN while any candidate is still
    untrained."""
    losses = {}
    for one in variants.T5_CANDIDATES:
        path = weights_of(one.name).with_suffix(".json")
        if not path.exists():
            return float("nan")
        told = json.loads(path.read_text(encoding="utf-8"))
        losses[one.bias_lr] = variants.within_bits(told["development"])
    return variants.choose_rate(losses)


def as_asked(model: LanguageModel, cell: str) -> LanguageModel:
    """Apply the change specified by a cell of the second rule, and return the changed model."""
    change = cell.partition("/")[2]
    if pair := re.fullmatch(r"pair (\d+) times ([\d.]+)", change):
        return causal.changed(model, [int(pair[1])], float(pair[2]))
    if change in ("", rule_two.LAST):
        return model
    one = next(one for one in methods() if one.id == change)
    return with_method(model, one.method, one.options)


@torch.no_grad()
def losses(model: LanguageModel, rows: torch.Tensor, side: rule_two.Bits) -> list[float]:
    """Return the loss of each text in a band, in bits per byte. The text ends where the band ends, because the
    frequencies of some methods depend on the text's length."""
    start, stop = rule_two.BANDS[side.band]
    there = copy.deepcopy(model).to(DEVICE)
    if side.extension == rule_two.LAST:
        found = bits.windowed_bits(there, rows[:, : stop + 1], scores.LENGTH, scores.STEP)
    else:
        found = bits.position_bits(there, rows[:, : stop + 1])
    return [round(one, 5) for one in found[:, start:].double().mean(1).tolist()]


def gather(names: list[str], text: parts.Parts) -> None:
    found = order.gathered(folder())
    where = device.provenance(asking.EXPLORATION, "python benchmarks/asking.py gather", torch.device("cpu"))
    print(results.save("order", found, where), flush=True)
    if (folder() / "decide").exists():
        cells = folder() / "decide"
        print(results.save("order_decided", decided.gathered(cells), decided.provenance(cells)), flush=True)


def main() -> None:
    global DEVICE
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    what = {"cells": cells, "map": map_, "attack": attack, "decide": decide, "gather": gather}
    parser.add_argument("what", choices=what)
    parser.add_argument("--only", metavar="PATTERN", default="", help="a regular expression of models' names")
    parser.add_argument("--text", metavar="FILE", help="the text that trials.py pack wrote, instead of this Python's")
    parser.add_argument("--device", default="cpu", help="cpu or cuda (default: cpu)")
    given = parser.parse_args()
    torch.set_num_threads(1)
    DEVICE = torch.device(given.device)
    text = parts_file.read(given.text) if given.text else parts.load()
    what[given.what]([name for name in models() if re.fullmatch(given.only or ".*", name)], text)


if __name__ == "__main__":
    main()
