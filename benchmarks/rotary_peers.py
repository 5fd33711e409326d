"""Compare our rotation with those of other libraries, both forward alone and forward plus backward, taking turns within
one run.

Run this with `benchmarks/rotary.py --only peers`. Each library is called as its users would call it, with its own
layout and order of axes, and with precomputed cosines and sines if it keeps them or takes them as arguments. Our code
is `RotaryEmbedding`, including its checks and the lookup in its table. Libraries that are not installed are left out.

We load only one file of torchtune and one of flash-attention, which avoids the dependencies of the rest. This needs
`pip install --no-deps torchtune`, and the sources of flash-attn, unpacked where Python finds packages. On the CPU,
flash-attention uses plain torch; the GPU kernel that its file imports is replaced by None.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import random
import statistics
import sys
import time
import types
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from ropebook import efficient
from ropebook.efficient import forms

Pair = tuple[Tensor, Tensor]
Rotation = Callable[[Tensor, Tensor], Pair]
OURS, RIVAL = "ours", "transformers"
LENGTH = 4096  # rows in the precomputed tables
CALLS = 20  # calls per clock reading, for one token
DTYPES = (torch.float32, torch.bfloat16)
# The goals for our code in the half-split layout: the largest allowed ratio of its time to that of transformers, for
# the forward pass alone and for forward plus backward.
GOALS = {("long", "float32"): (0.15, 0.25), ("long", "bfloat16"): (0.8, 0.9)}
GOAL_OF_ONE_TOKEN = 1.0


class Peer(NamedTuple):
    """A library's rotation of q and k, whose shape is (batch, heads, tokens, dim) or, with ``tokens_first``, (batch,
    tokens, heads, dim)."""

    name: str
    layout: str | None  # None if nothing is rotated
    rotate: Rotation
    tokens_first: bool = False


# --- The libraries ----------------------------------------------------------------------------------------------------


def peers(start: int, tokens: int, dim: int, dtype: torch.dtype) -> list[Peer]:
    """Return all installed libraries, set up to rotate tokens from position ``start`` onwards."""
    makers = (ours, of_transformers, of_rotary_embedding_torch, of_torchtune, of_flash_attention)
    return [peer for make in makers for peer in make(start, tokens, dim, dtype)]


def ours(start: int, tokens: int, dim: int, dtype: torch.dtype) -> Iterable[Peer]:
    cos, sin = efficient.RotaryEmbedding(dim, layout="half").cos_sin(torch.arange(start, start + tokens))
    for layout, suffix in (("half", ""), ("interleaved", ", neighbours")):
        rope = efficient.RotaryEmbedding(dim, layout=layout)
        yield Peer(OURS + suffix, layout, lambda q, k, rope=rope: rope(q, k, offset=start))
    given = {"layout": "half"}
    yield Peer("ours, table given", "half", lambda q, k: efficient.apply_rotary_qk(q, k, cos, sin, **given))


def of_transformers(start: int, tokens: int, dim: int, dtype: torch.dtype) -> Iterable[Peer]:
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    config = LlamaConfig(head_dim=dim, max_position_embeddings=LENGTH)
    positions = torch.arange(start, start + tokens)[None]
    cos, sin = LlamaRotaryEmbedding(config)(torch.empty(0, dtype=dtype), positions)
    compiled = torch.compile(apply_rotary_pos_emb, dynamic=False, fullgraph=True)
    yield Peer(RIVAL, "half", lambda q, k: apply_rotary_pos_emb(q, k, cos, sin))
    yield Peer(f"{RIVAL}, compiled", "half", lambda q, k: compiled(q, k, cos, sin))


def of_rotary_embedding_torch(start: int, tokens: int, dim: int, dtype: torch.dtype) -> Iterable[Peer]:
    if importlib.util.find_spec("rotary_embedding_torch") is None:
        return
    from rotary_embedding_torch import RotaryEmbedding

    turn = RotaryEmbedding(dim).rotate_queries_or_keys
    turn(torch.zeros(1, 1, LENGTH, dim, dtype=dtype))  # after the first call, it keeps the angles
    yield Peer("rotary-embedding-torch", "interleaved", lambda q, k: (turn(q, offset=start), turn(k, offset=start)))


def of_torchtune(start: int, tokens: int, dim: int, dtype: torch.dtype) -> Iterable[Peer]:
    module = file_of("torchtune", "modules/position_embeddings.py")
    if module is None:
        return
    rope = module.RotaryPositionalEmbeddings(dim, max_seq_len=LENGTH)
    places = torch.arange(start, start + tokens)[None] if start else None
    yield Peer(
        "torchtune",
        "interleaved",
        lambda q, k: (rope(q, input_pos=places), rope(k, input_pos=places)),
        tokens_first=True,
    )


def of_flash_attention(start: int, tokens: int, dim: int, dtype: torch.dtype) -> Iterable[Peer]:
    kernel = types.ModuleType("flash_attn.ops.triton.rotary")
    kernel.apply_rotary = None
    module = file_of("flash_attn", "layers/rotary.py", instead={kernel.__name__: kernel})
    if module is None:
        return
    rope = efficient.RotaryEmbedding(dim, layout="half")
    cos, sin = (table.to(dtype) for table in rope.cos_sin(torch.arange(start, start + tokens)))
    turn = module.apply_rotary_emb_torch
    yield Peer(
        "flash-attention's reference", "half", lambda q, k: (turn(q, cos, sin), turn(k, cos, sin)), tokens_first=True
    )


def steps(start: int, tokens: int, dim: int) -> Iterable[Peer]:
    """Yield the unavoidable parts of our forward pass in the half-split layout: a copy into new memory, and the first
    of the rotation's three steps."""
    cos, _ = efficient.RotaryEmbedding(dim, layout="half").cos_sin(torch.arange(start, start + tokens))

    def first(x: Tensor) -> Tensor:
        y, rows = torch.empty_like(x), torch.cat((cos, cos), -1)
        at_once = max(1, forms.CHUNK * torch.get_num_threads() * tokens // x.numel())
        for target, part, row in zip(*(t.split(at_once, -2) for t in (y, x, rows)), strict=True):
            torch.mul(part, row, out=target)
        return y

    yield Peer("a copy", None, lambda q, k: (q.clone(), k.clone()))
    yield Peer("ours, the first step alone", None, lambda q, k: (first(q), first(k)))


def file_of(package: str, path: str, instead: dict[str, types.ModuleType] | None = None) -> types.ModuleType | None:
    """Load one file of a package as a module, or return None if the package isn't installed. ``instead`` contains
    replacements, by name, for modules of the package that the file imports."""
    found = importlib.util.find_spec(package)
    if found is None:
        return None
    instead = instead or {}
    parents = {name.rsplit(".", n)[0] for name in instead for n in range(1, name.count(".") + 1)}
    stubs = {name: types.ModuleType(name) for name in parents} | instead
    before = {name: sys.modules.get(name) for name in stubs}
    where = Path(found.submodule_search_locations[0], path)
    spec = importlib.util.spec_from_file_location(f"{package}_{where.stem}", where)
    module = importlib.util.module_from_spec(spec)
    sys.modules.update(stubs)
    try:
        spec.loader.exec_module(module)
    finally:
        for name, old in before.items():
            sys.modules.pop(name) if old is None else sys.modules.update({name: old})
    return module


def versions() -> dict[str, str]:
    found = {}
    for name in ("transformers", "rotary-embedding-torch", "torchtune", "flash-attn"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


# --- Measuring --------------------------------------------------------------------------------------------------------


def once(peer: Peer, inputs: Pair, gradients: Pair, backward: bool) -> tuple[Pair, Callable[[], object]]:
    """Return q and k with the library's order of axes, and a function without arguments. That function returns (q′, k′)
    or, with ``backward``, the gradients for q and k."""
    if peer.tokens_first:  # the same memory, read in this order of axes
        inputs, gradients = (
            tuple(x.view(x.shape[0], x.shape[2], x.shape[1], x.shape[3]) for x in pair) for pair in (inputs, gradients)
        )
    if not backward:
        return inputs, lambda: peer.rotate(*inputs)
    inputs = tuple(x.detach().requires_grad_() for x in inputs)

    def call():
        with torch.enable_grad():
            return torch.autograd.grad(peer.rotate(*inputs), inputs, gradients)

    return inputs, call


def errors(peer: Peer, inputs: Pair, gradients: Pair, backward: bool, start: int) -> dict[str, float]:
    """Return the root mean square error and the largest error, compared with a rotation in which every step is computed
    in float64. A copy has no errors."""
    if peer.layout is None:
        return {"rms": None, "worst": None}
    got = once(peer, inputs, gradients, backward)[1]()
    given = gradients if backward else inputs
    squares, numbers, worst = 0.0, 0, 0.0
    for x, y in zip(given, got, strict=True):
        batch, heads, tokens, dim = x.shape
        if peer.tokens_first:
            x, y = x.view(batch, tokens, heads, dim).transpose(1, 2), y.transpose(1, 2)
        rope = efficient.RotaryEmbedding(dim, layout="half")
        cos, sin = rope.cos_sin(torch.arange(start, start + tokens), torch.float64)
        right = efficient.rotate_by_pairs(x.double(), cos, -sin if backward else sin, peer.layout)
        error = (y.double() - right).abs()
        worst = max(worst, error.max().item())
        squares, numbers = squares + error.square().sum().item(), numbers + error.numel()
    allowed = 4 * torch.finfo(given[0].dtype).eps * max(x.abs().max().item() for x in given)
    if peer.name.startswith(OURS) and not worst <= allowed:
        raise AssertionError(f"{peer.name} is off by {worst}, more than {allowed}")
    return {"rms": (squares / numbers) ** 0.5, "worst": worst}


def case(found: list[Peer], sets: list[Pair], start: int, backward: bool, rounds: int) -> list[dict]:
    """Measure each library's times, its time relative to that of transformers in the same round, and its errors."""
    calls = CALLS if sets[0][0].shape[2] == 1 else 1
    wrong = {peer.name: errors(peer, sets[0], sets[1], backward, start) for peer in found}  # this also compiles
    times = {peer.name: [] for peer in found}
    order, turn = random.Random(0), 0
    for _ in range(rounds):
        for peer in order.sample(found, len(found)):
            turn += 1
            here, there = sets[turn % len(sets)], sets[(turn + len(sets) // 2) % len(sets)]
            call = once(peer, here, there, backward)[1]
            begin = time.perf_counter_ns()
            for _ in range(calls):
                kept = call()
            times[peer.name].append((time.perf_counter_ns() - begin) / 1e6 / calls)
            del kept
    entries = []
    for peer in found:
        mine = times[peer.name]
        ratios = [one / other for one, other in zip(mine, times[RIVAL], strict=True)]
        (low, high), (least, most) = spread(mine), spread(ratios)
        numbers = {"ms": statistics.median(mine), "p10": low, "p90": high}
        numbers |= {"times": statistics.median(ratios), "times_p10": least, "times_p90": most}
        numbers = {name: round(number, 5) for name, number in numbers.items()}
        entries.append({"name": peer.name, "layout": peer.layout} | numbers | wrong[peer.name])
        print(
            "  {name:28} {ms:9.3f} ms, {times:6.3f} ({times_p10:.3f} to {times_p90:.3f}) x transformers, "
            "rms {rms}, worst {worst}".format(**entries[-1]),
            flush=True,
        )
    return entries


def spread(numbers: list[float]) -> tuple[float, float]:
    """Return the first and the last decile, interpolated within the measured range."""
    deciles = statistics.quantiles(numbers, n=10, method="inclusive")
    return deciles[0], deciles[-1]


def measure(shapes: dict[str, tuple[dict, int]], sets_of: Callable, rounds: int) -> dict:
    """Measure all shapes. ``shapes`` maps "long" and "one_token" to the shape and the first position. ``sets_of(shape,
    dtype)`` returns pairs of q and k."""
    cases = []
    for length, (shape, start) in shapes.items():
        for dtype in DTYPES:
            found, sets = peers(start, shape["tokens"], shape["head_dim"], dtype), sets_of(shape, dtype)
            for backward in (False, True):
                one = {"length": length, "tokens": shape["tokens"], "dtype": str(dtype).removeprefix("torch.")}
                one |= {"first_position": start, "direction": "forward and backward" if backward else "forward"}
                print(f"CPU, beside others: {', '.join(map(str, one.values()))}", flush=True)
                alone = (
                    ()
                    if backward or dtype != torch.float32 or length != "long"
                    else steps(start, shape["tokens"], shape["head_dim"])
                )
                cases.append(one | {"entries": case([*found, *alone], sets, start, backward, rounds)})
    return {"rounds": rounds, "calls": {"long": 1, "one_token": CALLS}, "versions": versions(), "cases": cases,
            "goals": goals(cases)}  # fmt: skip


def goals(cases: list[dict]) -> list[dict]:
    """Return the goals for our code in the half-split layout, as times relative to transformers, along with the
    measured times."""
    found = []
    for one in cases:
        (ratio,) = (entry["times"] for entry in one["entries"] if entry["name"] == OURS)
        pair = GOALS.get((one["length"], one["dtype"]), (GOAL_OF_ONE_TOKEN, GOAL_OF_ONE_TOKEN))
        described = {name: one[name] for name in ("length", "dtype", "direction")}
        found.append(described | {"measured": ratio, "at_most": pair[one["direction"] != "forward"]})
    return found
