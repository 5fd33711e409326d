"""How long does attention take with each scheme, in plain code, torch's fused function and FlexAttention?

    python benchmarks/relatives.py              writes results/relatives.json
    python benchmarks/relatives.py --rounds 2   a quick run that writes nothing

Everything runs on one CPU thread, and the implementations take turns. We measure CPU time, because other programs
affect wall-clock time, and keep the minimum over all rounds. Each implementation is checked against plain code before
it is timed.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

from ropebook import device, relatives, results  # noqa: E402  (the path must be set first)

SEED = 0
ROUNDS = 12
SHAPE = {"batch": 1, "heads": 8, "tokens": 1024, "head_dim": 64}
FLEX = ("nothing", "rope", "xpos", "alibi", "t5")


def schemes() -> dict[str, relatives.Scheme]:
    """Return an instance of each scheme that is timed, keyed by the scheme's name in `relatives.FACTS`."""
    heads, dim = SHAPE["heads"], SHAPE["head_dim"]
    return {
        "nothing": relatives.Nothing(),
        "rope": relatives.Rope(dim),
        "xpos": relatives.XPos(dim),
        "alibi": relatives.ALiBi(heads),
        "t5": relatives.T5Buckets(heads),
        "transformer_xl": relatives.TransformerXL(heads, dim, heads * dim),
        "cope": relatives.CoPE(dim, 64),
    }


def ways(compiled: Callable) -> dict[tuple[str, str], Callable]:
    """Return the functions of q, k, v to be timed, keyed by scheme and implementation."""
    found = {}
    for name, scheme in schemes().items():
        for way, attend in (("plain", relatives.attend), ("fused", relatives.attend_fused)):
            found[name, way] = lambda *qkv, s=scheme, f=attend: f(s, *qkv, causal=True)
        if name in FLEX:
            found[name, "flex"] = lambda *qkv, s=scheme: relatives.attend_flex(s, *qkv, causal=True, flex=compiled)
    return found


@torch.no_grad()
def measure(rounds: int) -> list[dict]:
    """Return the entries of the results file: CPU milliseconds, and the difference from plain code."""
    from torch.nn.attention.flex_attention import flex_attention

    shape = tuple(SHAPE.values())
    q, k, v = torch.randn(3, *shape, generator=torch.Generator().manual_seed(SEED))
    timed = ways(torch.compile(flex_attention, dynamic=False))
    plain = {name: timed[name, "plain"](q, k, v) for name in schemes()}
    apart = {key: (function(q, k, v) - plain[key[0]]).abs().max().item() for key, function in timed.items()}
    times = {key: [] for key in timed}
    order = list(timed)
    shuffle = random.Random(SEED)
    for _ in range(rounds):
        shuffle.shuffle(order)
        for key in order:
            start = time.process_time()
            timed[key](q, k, v)
            times[key].append(1000 * (time.process_time() - start))
    return [
        {"scheme": key[0], "way": key[1], "ms": round(min(found), 2), "apart": apart[key]}
        for key, found in times.items()
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="so many rounds, and nothing is written")
    asked = parser.parse_args().rounds
    torch.set_num_threads(1)
    torch.manual_seed(SEED)
    entries = measure(asked or ROUNDS)
    for entry in entries:
        print("{scheme:16}{way:8}{ms:9.2f} ms, off by {apart:.1e}".format(**entry))
    if asked is None:
        where = device.provenance(SEED, "python benchmarks/relatives.py", torch.device("cpu"))
        print(results.save("relatives", {"shape": SHAPE, "rounds": ROUNDS, "entries": entries}, where))


if __name__ == "__main__":
    main()
