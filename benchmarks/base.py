"""Search for the base that each context length needs (Men et al. 2024); writes results/base.json.

For each length in the paper's table, we find the smallest base on the paper's grid that meets the criterion. We list it
next to the published base, with the time that the search took. "k" is read both as 1024 and as 1000 tokens. Then we
find the runs of admissible bases on a finer grid. Finally, we measure how the time and peak memory of checking the
criterion grow with the length, for a base that meets it at every length.
"""

from __future__ import annotations

import math
import statistics
import sys
import time
import weakref
from functools import partial
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

from ropebook import decay, device, results  # noqa: E402  (the path must be set first)
from ropebook.sinusoidal import distance_kernel  # noqa: E402

DIM = 128
GRID = {"digits": 2, "low": 1e3, "high": 1e9}  # the paper's grid
FINE = {"digits": 3, "low": 1e3, "high": 1e8}
FINE_LIMIT = decay.tokens("128k")
PASSES = 1e9  # a base that meets the criterion at all lengths used here
RUNS = 5


class LiveBytes(TorchDispatchMode):
    """Dispatch mode that counts the bytes of live tensors and records their peak."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0
        self.known: set[int] = set()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        out = function(*args, **(kwargs or {}))
        for leaf in tree_leaves(out):
            if isinstance(leaf, torch.Tensor):
                self._count(leaf.untyped_storage())
        return out

    def _count(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key not in self.known:
            self.known.add(key)
            self.live += storage.nbytes()
            self.peak = max(self.peak, self.live)
            weakref.finalize(storage, self._forget, key, storage.nbytes())

    def _forget(self, key: int, size: int) -> None:
        self.known.discard(key)
        self.live -= size


def search(where: torch.device, thousand: int) -> list[dict]:
    """Compare the published bases with the ones we find on the paper's grid."""
    grid = decay.significant_grid(**GRID)
    rows = []
    for label, published in decay.PUBLISHED_BASES.items():
        length = decay.tokens(label, thousand)
        start = time.perf_counter()
        found = decay.compare(length, published, grid, DIM, where)
        row = {"label": label, **found._asdict(), "search_seconds": round(time.perf_counter() - start, 3)}
        # The signs of two sums decide, so record how far these sums are from 0. Float64 rounds by far less than 1e-6.
        row["least_sum_of_ours"] = least_sum(found.ours, length, where)
        row["first_negative_sum"] = kernel_at(found.first_negative, published)
        rows.append(row)
        print(row, flush=True)
    return rows


def least_sum(base: float, length: int, where: torch.device) -> float:
    return decay.summarize(partial(distance_kernel, dim=DIM, base=base), length, where).least


def kernel_at(distance: int | None, base: float) -> float | None:
    return None if distance is None else distance_kernel(distance, DIM, base).item()


def fine_runs(where: torch.device) -> dict:
    """Return the runs of admissible bases on the finer grid, for each length up to FINE_LIMIT."""
    start = time.perf_counter()
    grid = decay.significant_grid(**FINE)
    reaches = [decay.reach(base, DIM, FINE_LIMIT, where) for base in grid]
    seconds = time.perf_counter() - start
    lengths = {label: decay.tokens(label) for label in decay.PUBLISHED_BASES}
    runs = {label: decay.runs(grid, reaches, n) for label, n in lengths.items() if n <= FINE_LIMIT}
    for label, found in runs.items():
        print(label, len(found), "runs, the first at", found[0].first, "the last from", found[-1].first, flush=True)
    return {**FINE, "bases": len(grid), "seconds": round(seconds, 1), "runs": runs}


def walks(where: torch.device) -> dict:
    """For each length, measure one test of the criterion at all distances: seconds (the median of RUNS runs) and peak
    bytes. Return these numbers, and the exponents of their growth."""
    rows = []
    for label in decay.PUBLISHED_BASES:
        length = decay.tokens(label)
        seconds = [timed_walk(length, where) for _ in range(RUNS)]
        rows.append({"label": label, "length": length, "seconds": statistics.median(seconds)})
        rows[-1]["peak_bytes"] = peak_bytes(length, where)
        print(rows[-1], flush=True)
    long = [row for row in rows if row["length"] >= 2 * decay.CHUNK]  # from here on, all chunks are full
    growth = {key: exponent(long, key) for key in ("seconds", "peak_bytes")}
    return {"base": PASSES, "rows": rows, "exponent_from": long[0]["label"], "exponent": growth}


def exponent(rows: list[dict], key: str) -> float:
    """Return the exponent p of the power law length^p that fits best."""
    lengths = [math.log(row["length"]) for row in rows]
    return round(statistics.linear_regression(lengths, [math.log(row[key]) for row in rows]).slope, 3)


def timed_walk(length: int, where: torch.device) -> float:
    start = time.perf_counter()
    if decay.reach(PASSES, DIM, length, where) != length:
        raise RuntimeError(f"the walk over {length} positions ended early")
    return time.perf_counter() - start


def peak_bytes(length: int, where: torch.device) -> int:
    if where.type == "cuda":
        torch.cuda.reset_peak_memory_stats(where)
        before = torch.cuda.memory_allocated(where)
        decay.reach(PASSES, DIM, length, where)
        return torch.cuda.max_memory_allocated(where) - before
    with LiveBytes() as seen:
        decay.reach(PASSES, DIM, length, where)
    return seen.peak


def main() -> None:
    torch.set_num_threads(1)
    where = device.device(float64=True)
    start = time.perf_counter()
    data = {
        "dim": DIM,
        "grid": GRID,
        "search_1024": search(where, 1024),
        "search_1000": search(where, 1000),
        "fine": fine_runs(where),
        "walks": walks(where),
    }
    data["seconds"] = round(time.perf_counter() - start, 1)
    results.save("base", data, device.provenance(command="python benchmarks/base.py", on=where))


if __name__ == "__main__":
    main()
