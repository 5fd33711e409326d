"""How fast is each form of the rotation, compared with copying? Writes results/rotary.json.

    python benchmarks/rotary.py                   everything that this machine can measure
    python benchmarks/rotary.py --only stores     the cost of storing, added to the existing file
    python benchmarks/rotary.py --only decoding   one token through the layers of a model, added as well
    python benchmarks/rotary.py --only peers      our code and other libraries, backward included, added as well
    python benchmarks/rotary.py --only cuda       the fused kernel on a GPU, added as well
    python benchmarks/rotary.py --rounds 5        a quick run that writes nothing

The limit is `dst.copy_(src)` of q and k into existing memory, because any rotation must move at least this many bytes.
The forms take turns, in a new random order each round. There are several sets of q and k, which together are too large
for the caches, and each call uses the next set. Every form is compared with float64 before it is timed. Times are
medians, with p10 and p90. A form's result is not released until the clock has stopped.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import itertools
import math
import mmap
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

from benchmarks import rotary_peers  # noqa: E402  (the path is set just above)
from ropebook import checks, device, efficient, extrapolation, results, sinusoidal, triton_kernel  # noqa: E402

SEED = 0
THREADS = 2
ROUNDS = 30
ON_CPU = {"batch": 1, "q_heads": 32, "k_heads": 8, "tokens": 2048, "head_dim": 128}
SHORT = ON_CPU | {"tokens": 64}  # the largest size at which the dense matrices fit
ONE_TOKEN = ON_CPU | {"tokens": 1}
LAYERS = 32  # number of layers that the single token passes through, and its position
PLACE = 4000
ON_CUDA = (
    {"batch": 4, "q_heads": 32, "k_heads": 8, "tokens": 8192, "head_dim": 128},
    {"batch": 1, "q_heads": 32, "k_heads": 8, "tokens": 131072, "head_dim": 64},
)
LINE = (
    "{name:24} {layout!s:12} {writes:9} {direction:9} {order:13} {ms:9.3f} ms, {of_limit:6.3f} of the limit, "
    "{times_transformers!s:>6} x transformers, {page_faults:6} page faults"
)
MOST_MEMORY = 2**30  # bytes of all sets together, unless there are only the minimum of four sets


class Form(NamedTuple):
    """One implementation of rotating q and k."""

    name: str
    layout: str | None  # None for a copy, which rotates nothing
    writes: str  # the memory it writes to: "fresh", "existing" or "in place"
    prepare: Callable  # (q, k, q_out, k_out) → function without arguments to be timed, which returns (q′, k′)
    tables: tuple[Tensor, Tensor]
    direction: str = "forward"  # if "backward", q_out, k_out and the result are gradients
    order: str = "heads first"  # the order of axes in memory: "heads first" or "tokens first"

    @property
    def key(self) -> tuple:
        return self.name, self.layout, self.writes, self.direction, self.order

    def see(self, x: Tensor) -> Tensor:
        """Return a view of x with shape (batch, heads, tokens, head_dim). The memory of x is read as it is or, for
        "tokens first", as (batch, tokens, heads, head_dim)."""
        batch, heads, tokens, dim = x.shape
        return x if self.order == "heads first" else x.view(batch, tokens, heads, dim).transpose(1, 2)


# --- The forms --------------------------------------------------------------------------------------------------------


def each(form: Callable, *arguments) -> Callable:
    """Return a `prepare` function that applies a form for single tensors first to q, then to k."""
    return lambda q, k, q_out, k_out: lambda: (form(q, *arguments), form(k, *arguments))


def copies(tables: tuple[Tensor, Tensor]) -> list[Form]:
    """Return two forms that only copy q and k. The first one copies them into existing memory, which sets the limit for
    the speed. The second one copies them into freshly allocated memory, which the allocator either reuses or gets from
    the system."""
    return [
        Form("limit", None, "existing", lambda q, k, q_out, k_out: lambda: (q_out.copy_(q), k_out.copy_(k)), tables),
        Form("clone", None, "fresh", each(Tensor.clone), tables),
    ]


def new_pages(tables: tuple[Tensor, Tensor]) -> Form:
    """Return a form that makes the same copy into memory that is certainly new, so the system has to provide every
    page."""

    def prepare(q, k, q_out, k_out):
        q_new, k_new = (
            torch.frombuffer(mmap.mmap(-1, x.numel() * x.element_size()), dtype=x.dtype).view(x.shape) for x in (q, k)
        )
        return lambda: (q_new.copy_(q), k_new.copy_(k))

    return Form("new_pages", None, "fresh", prepare, tables)


def transformers_forms(tables: tuple[Tensor, Tensor], dtype: torch.dtype) -> list[Form]:
    """Return the rotations of transformers, with tables in the data's dtype, as transformers uses them. The list is
    empty if transformers isn't installed."""
    if importlib.util.find_spec("transformers") is None:
        return []
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama

    cos, sin = (table.to(dtype)[None] for table in tables)
    wide_cos, wide_sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)

    def interleaved(q, k, q_out, k_out):
        q, k = q.transpose(1, 2), k.transpose(1, 2)
        return lambda: (gptj(q, sin, cos).transpose(1, 2), gptj(k, sin, cos).transpose(1, 2))

    return [
        Form("transformers", "half", "fresh", lambda q, k, *_: lambda: llama(q, k, wide_cos, wide_sin), tables),
        Form("transformers", "interleaved", "fresh", interleaved, tables, order="tokens first"),
    ]


def ladder(tables: tuple[Tensor, Tensor], names: list[str]) -> list[Form]:
    """Return the book's forms with these names in `efficient.FORMS`, in both layouts."""
    return [
        Form(
            name,
            layout,
            "in place" if name == "in_place" else "fresh",
            each(efficient.FORMS[name], *tables, layout),
            tables,
        )
        for name in names
        for layout in checks.LAYOUTS
    ]


def compiled_rolls(tables: tuple[Tensor, Tensor], name: str, places: tuple[str, ...]) -> list[Form]:
    """Return x cos + swapped(x) (±sin), compiled for q and k together. This formula compiles to a single loop, which
    can write to any memory. If the rotation were written pair by pair with a given output, the compiler would make two
    loops, or a temporary as large as x.
    """
    cos, sin = tables

    def swapped(x, layout):
        return (
            x.unflatten(-1, (-1, 2)).flip(-1).flatten(-2) if layout == "interleaved" else x.roll(x.shape[-1] // 2, -1)
        )

    forms = []
    for layout in checks.LAYOUTS:
        join = efficient.join_pairs
        wide_cos, signed_sin = join(cos, cos, layout).contiguous(), join(-sin, sin, layout).contiguous()

        def rotated(x, layout=layout, cos=wide_cos, sin=signed_sin):
            return (x.float() * cos + swapped(x, layout).float() * sin).to(x.dtype)

        def fresh(q, k, q_out, k_out, rotated=rotated):
            return rotated(q), rotated(k)

        def existing(q, k, q_out, k_out, rotated=rotated):
            return q_out.copy_(rotated(q)), k_out.copy_(rotated(k))

        def in_place(q, k, q_out, k_out, rotated=rotated):
            return q.copy_(rotated(q)), k.copy_(rotated(k))

        for writes, function in (("fresh", fresh), ("existing", existing), ("in place", in_place)):
            if writes in places:
                compiled = torch.compile(function, dynamic=False, fullgraph=True)
                forms.append(Form(name, layout, writes, lambda *xs, c=compiled: lambda: c(*xs), tables))
    return forms


def one_row(tables: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Return tables that have the same row for every token, so that reading them causes hardly any memory traffic."""
    return tuple(table[-1:].expand_as(table) for table in tables)


def backward(rotate: Callable) -> Callable:
    """Return a `prepare` function for the gradient of rotate(q, k), without timing the forward pass."""

    def prepare(q, k, q_out, k_out):
        q, k = q.detach().requires_grad_(), k.detach().requires_grad_()
        with torch.enable_grad():
            turned = rotate(q, k)
        return lambda: torch.autograd.grad(turned, (q, k), (q_out, k_out))

    return prepare


def cuda_forms(tables: tuple[Tensor, Tensor], dtype: torch.dtype, compiled: bool = True) -> list[Form]:
    """Return the forms on CUDA: the limit, the fused kernel, the compiled two-line formula, transformers, and Liger if
    it is installed."""
    forms = [*copies(tables), *transformers_forms(tables, dtype)]
    for layout, order in itertools.product(checks.LAYOUTS, ("heads first", "tokens first")):

        def rotate(q, k, layout=layout, in_place=False):
            return triton_kernel.rotary(q, k, *tables, layout=layout, in_place=in_place)

        for writes in ("fresh", "in place"):
            there = writes == "in place"
            forms.append(
                Form("triton", layout, writes, lambda q, k, *_, f=rotate, t=there: lambda: f(q, k, in_place=t), tables,
                     order=order)
            )  # fmt: skip
        forms.append(Form("triton", layout, "fresh", backward(rotate), tables, "backward", order))
    for layout in checks.LAYOUTS if compiled else ():

        def both(q, k, layout=layout):
            return tuple(efficient.rotate_by_pairs(x, *tables, layout) for x in (q, k))

        both = torch.compile(both, dynamic=False, fullgraph=True)
        forms += [
            Form("compiled", layout, "fresh", lambda q, k, *_, f=both: lambda: f(q, k), tables),
            Form("compiled", layout, "fresh", backward(both), tables, "backward"),
        ]
    if importlib.util.find_spec("liger_kernel") is not None:
        from liger_kernel.ops.rope import LigerRopeFunction

        cos, sin = (torch.cat((table, table), -1)[None] for table in tables)

        def liger(q, k):
            return LigerRopeFunction.apply(q, k, cos, sin)

        forms += [
            Form("liger", "half", "in place", lambda q, k, *_: lambda: liger(q, k), tables, order="tokens first"),
            Form("liger", "half", "in place", backward(liger), tables, "backward", "tokens first"),
        ]
    return forms


# --- Measuring --------------------------------------------------------------------------------------------------------


def exact(x: Tensor, cos: Tensor, sin: Tensor, layout: str | None) -> Tensor:
    """Rotate x in float64, pair by pair."""
    if layout is None:
        return x.double()
    first, second = efficient.split_pairs(x.double(), layout)
    return efficient.join_pairs(first * cos - second * sin, second * cos + first * sin, layout)


def deciles_of(times: list[float]) -> list[float]:
    """Return the nine deciles, interpolated within the measured range. An extrapolating estimate could leave that
    range: after three rounds on a busy machine, p10 might be negative."""
    return statistics.quantiles(times, n=10, method="inclusive")


def make_sets(shape: dict, dtype: torch.dtype, where: torch.device) -> list[tuple[Tensor, Tensor]]:
    """Return enough sets of random q and k to fill the last-level cache twice, and at least four sets."""
    size = (shape["q_heads"] + shape["k_heads"]) * shape["batch"] * shape["tokens"] * shape["head_dim"] * dtype.itemsize
    number = max(4, min(math.ceil(2 * last_cache(where) / size), MOST_MEMORY // size, 64))
    generator = torch.Generator(where).manual_seed(SEED)

    def draw(heads):
        size = shape["batch"], shape[heads], shape["tokens"], shape["head_dim"]
        return torch.randn(size, generator=generator, dtype=dtype, device=where)

    return [(draw("q_heads"), draw("k_heads")) for _ in range(number)]


def last_cache(where: torch.device) -> int:
    """Return the size of the largest cache in bytes, or 32 MiB if the system doesn't report it."""
    if where.type == "cuda":
        return torch.cuda.get_device_properties(where).L2_cache_size
    sizes = [path.read_text().strip() for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size.rstrip("K")) * 1024 for size in sizes if size.endswith("K")), default=2**25)


def arguments(form: Form, sets: list, here: int) -> tuple[Tensor, ...]:
    """Return a form's arguments: q and k from one set, and q_out and k_out from another."""
    return tuple(form.see(x) for x in (*sets[here], *sets[here - len(sets) // 2]))


def largest_error(form: Form, sets: list) -> float:
    """Return a form's largest absolute error, compared with float64 on the same values. Raises ``AssertionError`` if
    the form is wrong."""
    worst = 0.0
    q, k, q_out, k_out = (x.clone() for x in arguments(form, sets, 0))
    cos, sin = (table.double() for table in form.tables)
    if form.direction == "forward":
        expected = exact(q, cos, sin, form.layout), exact(k, cos, sin, form.layout)
    else:
        expected = exact(q_out, cos, -sin, form.layout), exact(k_out, cos, -sin, form.layout)
    got = form.prepare(q, k, q_out, k_out)()
    for result, right in zip(got, expected, strict=True):
        error = (result.double() - right).abs().max().item()
        # The tolerance allows for rounding of the result. In half precision, transformers also rounds the tables and
        # the products.
        allowed = 4 * torch.finfo(result.dtype).eps * right.abs().max().item()
        if not error <= allowed:
            raise AssertionError(f"{form.key} is off by {error}, more than {allowed}")
        worst = max(worst, error)
    return worst


def allocated(call: Callable, where: torch.device) -> int:
    """Return the peak of additional memory, in bytes, that is allocated during a call."""
    if where.type == "cuda":
        torch.cuda.synchronize(where)
        torch.cuda.reset_peak_memory_stats(where)
        before = torch.cuda.memory_allocated(where)
        kept = call()
        torch.cuda.synchronize(where)
        del kept
        return torch.cuda.max_memory_allocated(where) - before
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as found:
        kept = call()
    del kept
    events = [event for event in found.profiler.kineto_results.events() if event.name() == "[memory]"]
    live = [event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())]
    return max(itertools.accumulate(live), default=0)


def timed(call: Callable, where: torch.device) -> tuple[float, int]:
    """Return the milliseconds and page faults of one call."""
    if where.type != "cuda":
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        start = time.perf_counter_ns()
        kept = call()
        stop = time.perf_counter_ns()
        faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
        del kept
        return (stop - start) / 1e6, faults
    start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    torch.cuda.synchronize(where)
    torch.cuda._sleep(
        2_000_000
    )  # takes about a millisecond, in which Python gets ahead, so the device never waits for it
    start.record()
    kept = call()
    stop.record()
    torch.cuda.synchronize(where)
    del kept
    return start.elapsed_time(stop), 0


def measure(forms: list[Form], shape: dict, dtype: torch.dtype, where: torch.device, rounds: int) -> dict:
    """Check each form, then time all forms in turn."""
    sets = make_sets(shape, dtype, where)
    turn = itertools.cycle(range(len(sets)))
    errors, memory = {}, {}
    times = {form.key: [] for form in forms}
    if len(times) < len(forms):
        raise ValueError("two forms have one key")
    for form in forms:
        errors[form.key] = largest_error(form, sets)  # this also compiles the form
        form.prepare(*arguments(form, sets, next(turn)))()
        memory[form.key] = allocated(form.prepare(*arguments(form, sets, next(turn))), where)
    order = random.Random(SEED)
    for _ in range(rounds):
        for form in order.sample(forms, len(forms)):
            times[form.key].append(timed(form.prepare(*arguments(form, sets, next(turn))), where))
    numbers = sum(x.numel() for x in sets[0])
    least = 2 * numbers * dtype.itemsize
    medians = {key: statistics.median(ms for ms, _ in pairs) for key, pairs in times.items()}
    limit = next(ms for key, ms in medians.items() if key[0] == "limit")
    rivals = {key[1]: ms for key, ms in medians.items() if key[0] == "transformers"}
    entries = []
    for form in forms:
        ms = medians[form.key]
        deciles = deciles_of([each for each, _ in times[form.key]])
        entries.append(
            {
                "name": form.name,
                "layout": form.layout,
                "writes": form.writes,
                "direction": form.direction,
                "order": form.order,
                "ms": round(ms, 4),
                "p10": round(deciles[0], 4),
                "p90": round(deciles[-1], 4),
                "gb_per_s": round(least / ms / 1e6, 2),
                "of_limit": round(limit / ms, 3),
                "times_transformers": round(rivals[form.layout] / ms, 2) if form.layout in rivals else None,
                "allocated": memory[form.key],
                "page_faults": round(statistics.median(faults for _, faults in times[form.key])),
                "largest_error": errors[form.key],
            }
        )
        print("  " + LINE.format(**entries[-1]), flush=True)
    return {
        "shape": shape,
        "dtype": str(dtype).removeprefix("torch."),
        "bytes": least,  # read and written once
        "table_bytes": shape["tokens"] * shape["head_dim"] * 4,  # cos and sin in float32, read once
        "operations": 3 * numbers,  # four products and two sums a pair
        "outputs_bytes": numbers * dtype.itemsize,
        "sets": len(sets),
        "rounds": rounds,
        "entries": entries,
    }


def stores(rounds: int) -> dict:
    """Measure the cost of writing to memory that has not been read. The forms work on a tensor x and a second tensor y
    of the same size.

    "scaled in place" reads x and writes x. "scaled elsewhere" reads x and writes y. "added elsewhere" reads x and y and
    writes y. Everything runs on one thread and is measured in CPU time, which other programs hardly affect. "times"
    compares each form with "scaled in place" in the same round, and is the median of that ratio over all rounds.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    shape = {"batch": 1, "heads": ON_CPU["q_heads"] + ON_CPU["k_heads"]}
    shape |= {name: ON_CPU[name] for name in ("tokens", "head_dim")}
    where = torch.device("cpu")
    tables = cos_and_sin(ON_CPU, where)
    forms = {
        "scaled in place": lambda x, y: x.mul_(-1),
        "scaled elsewhere": lambda x, y: torch.mul(x, -1, out=y),
        "added elsewhere": lambda x, y: torch.add(x, y, out=y),
        "copied": lambda x, y: y.copy_(x),
    }
    for layout in checks.LAYOUTS:
        forms[f"rotated in place, {layout}"] = lambda x, y, to=layout: efficient.rotate_in_place(x, *tables, to)
    # A rotation in place takes at least three shears. They are inaccurate where the tangent is large.
    tangent, sine = -tables[1] / (1 + tables[0]), tables[1]

    def shear(x, y):
        for head in x.unbind(1):
            x1, x2 = head.chunk(2, -1)
            x1.addcmul_(x2, tangent)
            x2.addcmul_(x1, sine)
            x1.addcmul_(x2, tangent)

    forms["sheared in place, half"] = shear
    for form in compiled_rolls(tables, "rolled", ("existing",)):
        # The form expects q and k, so pass x and an empty second tensor.
        forms[f"rotated elsewhere, {form.layout}"] = lambda x, y, f=form: f.prepare(x, x[:, :0], y, y[:, :0])()
    size = math.prod(shape.values()) * torch.float32.itemsize
    number = 2 * math.ceil(max(4, min(2 * last_cache(where) / size, MOST_MEMORY / size)) / 2)
    generator = torch.Generator().manual_seed(SEED)
    sets = [torch.randn(*shape.values(), generator=generator) for _ in range(number)]
    for form in forms.values():
        form(sets[0], sets[1])  # this also compiles the form
    times = {name: [] for name in forms}
    turn, order = itertools.count(), random.Random(SEED)
    for _ in range(rounds):
        for name in order.sample(list(forms), len(forms)):
            here = next(turn)
            x, y = sets[here % number], sets[(here + number // 2) % number]
            start = time.thread_time_ns()
            forms[name](x, y)
            times[name].append((time.thread_time_ns() - start) / 1e6)
    entries = []
    for name, found in times.items():
        deciles = deciles_of(found)
        ratios = [one / other for one, other in zip(found, times["scaled in place"], strict=True)]
        numbers = {"ms": statistics.median(found), "p10": deciles[0], "p90": deciles[-1]}
        numbers["times"] = statistics.median(ratios)
        entries.append({"name": name} | {key: round(value, 4) for key, value in numbers.items()})
        print("  {name:30} {ms:8.3f} ms, {times:6.3f} x scaled in place".format(**entries[-1]), flush=True)
    command = "python benchmarks/rotary.py --only stores"
    provenance = device.provenance(seed=SEED, command=command, on=where)
    torch.set_num_threads(threads)
    clock = "CPU time of one thread"
    return {"shape": shape, "dtype": "float32", "bytes": 2 * size, "sets": number, "rounds": rounds, "clock": clock,
            "entries": entries, "provenance": provenance}  # fmt: skip


def decoding(rounds: int) -> dict:
    """Measure one token passing through the layers of a model: the rotation in each layer, and the table of cosines and
    sines.

    Our code is compared with transformers, both plain and with YaRN, for which we keep no table between calls. The
    results of each form are checked against those of transformers before it is timed. Everything runs on one thread and
    is measured in CPU time. "times" compares each form with transformers in the same round, and is the median of that
    ratio over all rounds.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    from transformers import LlamaConfig
    from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

    shape, where = ONE_TOKEN, torch.device("cpu")
    yarn = extrapolation.make("yarn", factor=4.0, trained_length=4096)
    sizes = {"head_dim": shape["head_dim"], "max_position_embeddings": 16384}

    def theirs(**parameters):
        return LlamaRotaryEmbedding(LlamaConfig(**sizes, rope_parameters={"rope_theta": 10000.0} | parameters))

    def by_transformers(table, layers):
        cos, sin = table(layers[0][0], torch.tensor([[PLACE]]))
        return [apply_rotary_pos_emb(q, k, cos, sin) for q, k in layers]

    def by_us(rope, layers, one_table=True, in_place=False):
        with rope.keeping_tables() if one_table else contextlib.nullcontext():
            return [rope(q, k, offset=PLACE, in_place=in_place) for q, k in layers]

    plain, scaled = theirs(rope_type="default"), theirs(**extrapolation.to_transformers(yarn))
    ours, turned = (efficient.RotaryEmbedding(shape["head_dim"], layout=layout) for layout in ("half", "interleaved"))
    longer = efficient.RotaryEmbedding(shape["head_dim"], layout="half", scaling=yarn)
    forms = {
        "transformers": lambda layers: by_transformers(plain, layers),
        "half-split": lambda layers: by_us(ours, layers),
        "half-split, a table in each layer": lambda layers: by_us(ours, layers, one_table=False),
        "half-split, in place": lambda layers: by_us(ours, layers, in_place=True),
        "interleaved": lambda layers: by_us(turned, layers),
        "YaRN, transformers": lambda layers: by_transformers(scaled, layers),
        "YaRN": lambda layers: by_us(longer, layers),
        "YaRN, a table in each layer": lambda layers: by_us(longer, layers, one_table=False),
    }
    found = {"shape": shape, "layers": LAYERS, "position": PLACE, "rounds": rounds}
    for dtype in (torch.float32, torch.bfloat16):
        generator = torch.Generator().manual_seed(SEED)
        layers = [
            tuple(
                torch.randn(shape["batch"], shape[heads], 1, shape["head_dim"], generator=generator).to(dtype)
                for heads in ("q_heads", "k_heads")
            )
            for _ in range(LAYERS)
        ]
        for name, form in forms.items():
            rival = forms["YaRN, transformers" if name.startswith("YaRN") else "transformers"](layers)
            got = form([(q.clone(), k.clone()) for q, k in layers])
            # In float32, the angle at such a late position has an error of about 1e-4.
            allowed = 2e-3 if dtype == torch.float32 else 0.1
            error = max((x - y).abs().max().item() for x, y in zip(got[0], rival[0], strict=True))
            if name != "interleaved" and not error <= allowed:
                raise AssertionError(f"{name}, {dtype}, is off by {error}, more than {allowed}")
        times = {name: [] for name in forms}
        order = random.Random(SEED)
        for _ in range(rounds):
            for name in order.sample(list(forms), len(forms)):
                start = time.thread_time_ns()
                forms[name](layers)
                times[name].append((time.thread_time_ns() - start) / 1000 / LAYERS)
        entries = []
        for name, one in times.items():
            deciles = deciles_of(one)
            ratios = [a / b for a, b in zip(one, times["transformers"], strict=True)]
            numbers = {"us": statistics.median(one), "p10": deciles[0], "p90": deciles[-1]}
            numbers["times"] = statistics.median(ratios)
            entries.append({"name": name} | {key: round(value, 3) for key, value in numbers.items()})
            print("  {name:36} {us:8.1f} us a layer, {times:6.2f} x transformers".format(**entries[-1]), flush=True)
        found[str(dtype).removeprefix("torch.")] = {"entries": entries}
    command = "python benchmarks/rotary.py --only decoding"
    provenance = device.provenance(seed=SEED, command=command, on=where)
    torch.set_num_threads(threads)
    return found | {"clock": "CPU time of one thread", "provenance": provenance}


def peers(rounds: int) -> dict:
    """Measure our code and other libraries, each call in wall-clock time. "times" are ratios within the same round."""
    where = torch.device("cpu")
    shapes = {"long": (ON_CPU, 0), "one_token": (ONE_TOKEN, PLACE)}
    found = rotary_peers.measure(shapes, lambda shape, dtype: make_sets(shape, dtype, where), rounds)
    command = "python benchmarks/rotary.py --only peers"
    return found | {"provenance": device.provenance(seed=SEED, command=command, on=where)}


def cuda(rounds: int) -> dict | None:
    """Measure the fused kernel and its rivals. Returns None if there is no GPU."""
    if not torch.cuda.is_available():
        print("NO CUDA DEVICE: the fused kernel's speed has NOT been measured here.")
        return None
    where = torch.device("cuda")
    parts = [part | {"targets": cuda_targets(part)} for part in gpu(where, ON_CUDA, rounds)]
    provenance = device.provenance(seed=SEED, command="python benchmarks/rotary.py --only cuda", on=where)
    return {"device": torch.cuda.get_device_name(where), "parts": parts, "provenance": provenance}


# Parts that can be measured separately, each with its number of rounds.
PARTS = {
    "stores": (stores, ROUNDS),
    "decoding": (decoding, 5 * ROUNDS),
    "peers": (peers, ROUNDS),
    "cuda": (cuda, ROUNDS),
}


def find(part: dict, name: str, layout: str | None, writes: str | None = None, direction: str = "forward") -> dict:
    """Return the fastest entry that matches the description."""
    found = [
        entry
        for entry in part["entries"]
        if (entry["name"], entry["layout"], entry["direction"]) == (name, layout, direction)
        and writes in (None, entry["writes"])
    ]
    return min(found, key=lambda entry: entry["ms"])


def shares(part: dict) -> dict:
    """Divide up the compiled loop's time, in milliseconds for each layout, and add the time that new memory pages would
    take."""
    copy = find(part, "limit", None)["ms"]
    parts = {}
    for layout in checks.LAYOUTS:
        existing = find(part, "compiled_rolled", layout, "existing")["ms"]
        row = find(part, "compiled_rolled_one_row", layout)["ms"]
        new = find(part, "new_pages", None)["ms"] - copy
        found = {"copy": copy, "arithmetic": row - copy, "tables": existing - row, "new_pages": new}
        parts[layout] = {name: round(ms, 4) for name, ms in found.items()}
    return parts


def targets(part: dict) -> list[dict]:
    """Return the performance required of float32 on the CPU, with the measured values."""
    best = min((e for e in part["entries"] if e["layout"] and e["writes"] == "in place"), key=lambda e: e["ms"])
    claims = [
        ("half-split, compiled: times transformers", find(part, "compiled", "half")["times_transformers"], 3.0),
        ("interleaved, compiled: times transformers", find(part, "compiled", "interleaved")["times_transformers"], 2.5),
        ("interleaved, eager: times transformers", find(part, "eager", "interleaved")["times_transformers"], 2.5),
        (f"in place ({best['name']}, {best['layout']}): of the limit", best["of_limit"], 0.5),
    ]
    return [{"claim": claim, "measured": number, "at_least": bound} for claim, number, bound in claims]


def cuda_targets(part: dict) -> list[dict]:
    """Return the performance required of the fused kernel on CUDA, with the measured values. The kernel must be nearly
    as fast as a copy, and faster than the other implementations."""
    claims = []
    for layout, direction in itertools.product(checks.LAYOUTS, ("forward", "backward")):
        ours = find(part, "triton", layout, None, direction)
        where = f"{layout}, {direction}"
        claims.append((f"{where}: of the limit", ours["of_limit"], 0.9))
        for rival in ("compiled", "liger"):
            if any((e["name"], e["layout"]) == (rival, layout) for e in part["entries"]):
                times = round(find(part, rival, layout, None, direction)["ms"] / ours["ms"], 3)
                claims.append((f"{where}: times {rival}", times, 1.0))
    return [{"claim": claim, "measured": number, "at_least": bound} for claim, number, bound in claims]


def cpu(rounds: int) -> dict:
    where = torch.device("cpu")
    found = {}
    for dtype in (torch.float32, torch.bfloat16):
        tables = cos_and_sin(ON_CPU, where)
        forms = [
            *copies(tables),
            new_pages(tables),
            *transformers_forms(tables, dtype),
            *ladder(tables, [name for name in efficient.FORMS if name not in ("dense", "blocks")]),
            *compiled_rolls(tables, "compiled_rolled", ("fresh", "existing", "in place")),
            *compiled_rolls(one_row(tables), "compiled_rolled_one_row", ("existing",)),
        ]
        print(f"CPU, {dtype}, {ON_CPU}", flush=True)
        part = measure(forms, ON_CPU, dtype, where, rounds)
        found[part["dtype"]] = part | {"shares_ms": shares(part)}
    found["float32"]["targets"] = targets(found["float32"])
    for name, shape in (("short", SHORT), ("one_token", ONE_TOKEN)):
        tables = cos_and_sin(shape, where)
        forms = [*copies(tables), *transformers_forms(tables, torch.float32), *ladder(tables, list(efficient.FORMS))]
        print(f"CPU, float32, {shape}", flush=True)
        found[name] = measure(forms, shape, torch.float32, where, rounds)
    found["peers"] = peers(rounds)
    # These two are measured in CPU time, which other programs hardly affect.
    print("CPU, one token through the layers of a model", flush=True)
    found["decoding"] = decoding(5 * rounds)
    print("CPU, float32, one thread: where a store goes", flush=True)
    return found | {"stores": stores(rounds)}


def gpu(
    where: torch.device, shapes: tuple, rounds: int, dtype: torch.dtype = torch.bfloat16, compiled: bool = True
) -> list:
    found = []
    for shape in shapes:
        print(f"{where}, {dtype}, {shape}", flush=True)
        forms = cuda_forms(cos_and_sin(shape, where), dtype, compiled)
        found.append(measure(forms, shape, dtype, where, rounds))
    return found


def cos_and_sin(shape: dict, where: torch.device) -> tuple[Tensor, Tensor]:
    positions = torch.arange(shape["tokens"], device=where)
    return efficient.cos_sin(positions, sinusoidal.inv_freq(shape["head_dim"], device=where))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, help="so many rounds, and write nothing")
    parser.add_argument("--only", choices=list(PARTS), help="measure this part, and keep the rest of the file")
    arguments = parser.parse_args()
    rounds = arguments.rounds
    torch.set_num_threads(THREADS)
    torch._dynamo.config.recompile_limit = 64  # one function is compiled for several layouts and shapes
    if arguments.only:
        measured, usual = PARTS[arguments.only]
        with torch.no_grad():
            part = measured(rounds or usual)
        if rounds is None and part is not None:
            data = results.load("rotary")
            (data if arguments.only == "cuda" else data["cpu"])[arguments.only] = part
            results.save("rotary", data, data.pop("provenance"))
        return
    with torch.no_grad():
        data = {"cpu": cpu(rounds or ROUNDS), "cuda": cuda(rounds or ROUNDS)}
    parts = [data["cpu"]["float32"], *(data["cuda"]["parts"] if data["cuda"] else ())]
    for target in itertools.chain.from_iterable(part["targets"] for part in parts):
        reached = "reached" if target["measured"] >= target["at_least"] else "MISSED"
        print(f"{target['claim']}: {target['measured']}, at least {target['at_least']}: {reached}")
    if rounds is None:
        # Without a GPU, keep the stored results for CUDA.
        data["cuda"] = data["cuda"] or results.load("rotary")["cuda"]
        where = device.provenance(seed=SEED, command="python benchmarks/rotary.py", on=torch.device("cpu"))
        results.save("rotary", data, where)


if __name__ == "__main__":
    main()
