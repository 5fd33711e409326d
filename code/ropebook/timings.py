"""Tables and a roofline plot that compare the rotation's measured times (`results/rotary.json`) with costs counted by
hand.

In every function, ``measured`` is ``results.load("rotary")``. The functions return columns for `ropebook.show.table`,
as a dictionary that maps headings to lists. A *pass* reads and writes all heads once. A *copy* is the time of one pass,
measured in the same run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ropebook import checks
from ropebook.efficient import FORMS, rotation_cost

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Columns = dict[str, list]

# Maps the names of the forms in the benchmark to their names in tables.
TITLES = {
    "limit": "copy",
    "dense": "matrix",
    "blocks": "2 × 2 blocks",
    "transformers": "transformers",
    "sparse": "sparse",
    "by_pairs": "two lines",
    "complex": "complex",
    "eager": "eager",
    "in_place": "in place",
    "compiled": "compiled",
    "compiled_rolled": "compiled, rolled",
    "triton": "our kernel",
}
SHORT = {"interleaved": "neighbours", "half": "halves"}


def titled(form: str, layout: str | None = None) -> str:
    """Return the name of a form in tables, with its layout if one is given.

    >>> titled("in_place", "half"), titled("limit")
    ('in place, halves', 'copy')
    """
    return TITLES[form] + (f", {SHORT[layout]}" if layout else "")


def entry(part: dict, name: str, layout: str | None = None) -> dict | None:
    """Return one form's entry in one part of the file, such as ``measured["cpu"]["float32"]``, or None if there is no
    such entry.

    A form may have been timed with several kinds of memory for its result. In that case, return the entry for newly
    allocated memory, which is the common case.
    """
    found = [
        one
        for one in part["entries"]
        if one["name"] == name and one["layout"] == layout
    ]
    found.sort(key=lambda one: one.get("writes") != "fresh")
    return found[0] if found else None


def passes(form: str, layout: str) -> float:
    """Return how many times a form reads and writes all heads, counted by hand. The minimum is 1.

    >>> passes("sparse", "half"), passes("compiled", "half")
    (5.0, 1.0)
    """
    least = rotation_cost("compiled", 2, 1)
    return rotation_cost(form, 2, 1, layout).data_bytes / least.data_bytes


def in_short(measured: dict, layout: str = "interleaved") -> Columns:
    """Tabulate one layout, with a row for each form: its costs as counted by hand, and its times for a long text and
    for a single token."""
    checks.layout(layout)
    long, one = measured["cpu"]["float32"], measured["cpu"]["one_token"]
    shape = long["shape"]
    heads, dim = shape["q_heads"] + shape["k_heads"], shape["head_dim"]
    rows = []
    for form in ("dense", "sparse", "by_pairs", "complex", "compiled", "in_place"):
        many = entry(long, form, layout)
        rows.append(
            (
                TITLES[form],
                rotation_cost(form, dim, heads, layout).flops,
                passes(form, layout),
                many["ms"] if many else None,
                1000 * entry(one, form, layout)["ms"],
            )
        )
    rows.append(
        (
            "copy",
            0,
            1.0,
            entry(long, "limit")["ms"],
            1000 * entry(one, "limit")["ms"],
        )
    )
    long_head = f"time for {shape['tokens']:,} tokens (ms)"
    heads = ("form", "operations per token", "passes", long_head)
    return _columns((*heads, "time for 1 token (µs)"), rows)


def counts(head_dim: int, n_heads: int) -> Columns:
    """Tabulate the cost of each form for one token in float32, as counted by `rotation_cost`. Layouts with equal costs
    share a row."""
    rows = []
    for form in FORMS:
        found = {
            layout: rotation_cost(form, head_dim, n_heads, layout)
            for layout in checks.LAYOUTS
        }
        same = found["interleaved"] == found["half"]
        for layout, cost in (
            [(None, found["interleaved"])] if same else found.items()
        ):
            rows.append(
                (
                    titled(form, layout),
                    passes(form, layout or "half"),
                    cost.bytes / 1024,
                    cost.flops,
                    cost.intensity,
                )
            )
    heads = ("form", "passes", "moved (KiB)", "operations", "per byte")
    return _columns(heads, rows)


def long_text(measured: dict, dtype: str = "float32") -> Columns:
    """Tabulate how long each form takes for a long text in float32 or bfloat16, and how many passes it makes."""
    checks.choice("dtype", dtype, ("float32", "bfloat16"))
    part = measured["cpu"][dtype]
    limit = entry(part, "limit")["ms"]
    rows = []
    for name in (
        "limit",
        "transformers",
        "sparse",
        "by_pairs",
        "complex",
        "eager",
        "compiled",
        "in_place",
    ):
        for layout in (None,) if name == "limit" else checks.LAYOUTS:
            one = entry(part, name, layout)
            form = {"limit": "compiled", "transformers": "sparse"}.get(name, name)
            rows.append(
                (
                    titled(name, layout),
                    passes(form, layout or "half"),
                    one["ms"],
                    f"{one['p10']:.1f}–{one['p90']:.1f}",
                    one["ms"] / limit,
                    one["allocated"] / 2**20,
                )
            )
    heads = ("form", "passes", "ms", "10–90%", "copies", "new memory (MiB)")
    return _columns(heads, rows)


def few_tokens(measured: dict, layout: str) -> Columns:
    """Tabulate the time in microseconds for one token and for 64 tokens, in one layout."""
    checks.layout(layout)
    parts = [measured["cpu"][name] for name in ("one_token", "short")]
    rows = []
    for name in ("limit", "transformers", *FORMS):
        times = [
            1000 * entry(part, name, None if name == "limit" else layout)["ms"]
            for part in parts
        ]
        rows.append((TITLES[name], *times))
    return _columns(["form", *(f"{_tokens(part)} (µs)" for part in parts)], rows)


def on_cuda(measured: dict) -> Columns:
    """Tabulate the times on a GPU, as multiples of a copy, for each of the measured shapes, forward and backward. If a
    form was timed with several kinds of memory or orders of axes, only the fastest time is shown."""
    parts = measured["cuda"]["parts"]
    rows = []
    for name in ("transformers", "compiled", "triton"):
        for layout in checks.LAYOUTS:
            cells = []
            for part in parts:
                copy = entry(part, "limit")["ms"]
                for direction in ("forward", "backward"):
                    found = [
                        one["ms"]
                        for one in part["entries"]
                        if (one["name"], one["layout"], one["direction"])
                        == (name, layout, direction)
                    ]
                    cells.append(min(found) / copy if found else None)
            rows.append((titled(name, layout), *cells))
    heads = [
        f"{part['shape']['tokens']:,}{direction}"
        for part in parts
        for direction in ("", " back")
    ]
    return _columns(("form", *heads), rows)


def decoding(measured: dict) -> Columns:
    """Tabulate the time per layer, in microseconds, when one token goes through a model, in float32 and bfloat16. The
    time is also given relative to that of transformers."""
    part = measured["cpu"]["decoding"]
    pairs = zip(
        part["float32"]["entries"], part["bfloat16"]["entries"], strict=True
    )
    heads = ("form", "float32 (µs)", "ratio", "bfloat16 (µs)", "its ratio")
    return _columns(
        heads,
        [
            (
                _in_words(wide["name"]),
                wide["us"],
                wide["times"],
                narrow["us"],
                narrow["times"],
            )
            for wide, narrow in pairs
        ],
    )


def peers(measured: dict, length: str = "long", dtype: str = "float32") -> Columns:
    """Tabulate the time of our code and of each other library as a multiple of transformers' time. Each row has the
    median, followed by the first and last decile of the ratios within a round. A name without a layout is that of a
    rotation of halves."""
    checks.choice("dtype", dtype, ("float32", "bfloat16"))
    cases = [case for case in _cases(measured, length) if case["dtype"] == dtype]
    rows = [
        (library, *(_ratio(_of(case, name)) for case in cases))
        for library, name in _rotating(cases)
    ]
    return _columns(("library", *(case["direction"] for case in cases)), rows)


def peer_errors(measured: dict) -> Columns:
    """Tabulate the errors of our code and of the other libraries for the long text, compared with float64: the root
    mean square and the largest error."""
    cases = [c for c in _cases(measured, "long") if c["direction"] == "forward"]
    kinds = ("rms", "worst")
    rows = [
        (library, *(_of(case, name)[kind] for case in cases for kind in kinds))
        for library, name in _rotating(cases)
    ]
    heads = [f"{case['dtype']}: {kind}" for case in cases for kind in kinds]
    return _columns(("library", *heads), rows)


def _of(case: dict, name: str) -> dict:
    (found,) = (entry for entry in case["entries"] if entry["name"] == name)
    return found


def _cases(measured: dict, length: str) -> list[dict]:
    checks.choice("length", length, ("long", "one_token"))
    cases = measured["cpu"]["peers"]["cases"]
    return [case for case in cases if case["length"] == length]


def _rotating(cases: list[dict]) -> list[tuple[str, str]]:
    """Return the names of all implementations in tables and in the file, starting with ours."""
    found = []
    for one in cases[0]["entries"]:
        name, layout = one["name"], SHORT.get(one["layout"])
        if layout == "neighbours" and layout not in name:
            found.append((f"{name}, {layout}", name))
        elif layout:
            found.append((name, name))
    return found


def _in_words(name: str) -> str:
    """Return a name from the file with the page's words for the layouts.

    >>> _in_words("rotated in place, half"), _in_words("half-split, in place")
    ('rotated in place, halves', 'halves, in place')
    """
    for layout, word in {"half-split": SHORT["half"], **SHORT}.items():
        if layout in name:
            return name.replace(layout, word)
    return name


def _ratio(entry: dict) -> str:
    digits = 2 if entry["times"] < 10 else 0
    low, high = (f"{entry[key]:.{digits}f}" for key in ("times_p10", "times_p90"))
    return f"{entry['times']:.{digits}f} ({low}–{high})"


def stores(measured: dict) -> Columns:
    """Tabulate how long products, sums and copies take on a single thread, depending on where their result is
    written."""
    found = measured["cpu"]["stores"]["entries"]
    return _columns(
        ("what", "ms", "relative to the first"),
        [(_in_words(one["name"]), one["ms"], one["times"]) for one in found],
    )


def shares(measured: dict) -> Columns:
    """Tabulate how the compiled form's time is divided among a copy, new memory pages, and the rest of the loop."""
    rows = []
    for layout, share in measured["cpu"]["float32"]["shares_ms"].items():
        loop = share["arithmetic"] + share["tables"]
        rows.append(
            (
                SHORT[layout],
                share["copy"],
                share["new_pages"],
                loop,
                share["arithmetic"],
            )
        )
    heads = (
        "layout",
        "a copy (ms)",
        "new pages (ms)",
        "the loop, beyond the copy (ms)",
        "with one row of table (ms)",
    )
    return _columns(heads, rows)


def roofline(measured: dict) -> Figure:
    """Plot each form's measured speed against its counted operations per byte, with a line for the limit set by the
    memory bandwidth."""
    from ropebook.figures import BLUE, INK, MUTED, figure

    part = measured["cpu"]["float32"]
    shape = part["shape"]
    tokens, heads = shape["tokens"], shape["q_heads"] + shape["k_heads"]
    # bandwidth in GB/s, measured with a copy
    bandwidth = part["bytes"] / entry(part, "limit")["ms"] / 1e6
    # position of each label relative to its point
    labels = {
        ("transformers", "half"): (6, -4, "left"),
        ("by_pairs", "half"): (6, 4, "left"),
        ("eager", "half"): (7, -3, "left"),
        ("compiled", "half"): (7, 2, "left"),
        ("in_place", "half"): (0, 11, "center"),
        ("eager", "interleaved"): (7, 1, "left"),
        ("compiled", "interleaved"): (7, -7, "left"),
        ("in_place", "interleaved"): (9, 0, "left"),
    }
    fig, ax = figure(480, 330)
    ends = [0.05, 1.2]
    ax.plot(ends, [end * bandwidth for end in ends], color=MUTED, linewidth=1.5)
    ax.text(0.48, 11.7, "what memory allows", color=MUTED, ha="right")
    for (name, layout), (dx, dy, side) in labels.items():
        form = "sparse" if name == "transformers" else name
        cost = rotation_cost(form, shape["head_dim"], heads, layout)
        speed = cost.flops * tokens / entry(part, name, layout)["ms"] / 1e6
        colour = BLUE if layout == "half" else INK
        ax.plot(cost.intensity, speed, "o", color=colour, markersize=6)
        where = {"textcoords": "offset points", "ha": side, "va": "center"}
        ax.annotate(
            TITLES[name], (cost.intensity, speed), (dx, dy), color=colour, **where
        )
    ax.text(1.15, 0.62, "halves", color=BLUE, ha="right")
    ax.text(1.15, 0.5, "neighbours", color=INK, ha="right")
    ax.set(xscale="log", yscale="log", xlim=(0.05, 1.2), ylim=(0.4, 30))
    ax.set_xlabel("operations per byte moved, counted")
    ax.set_ylabel("billion operations per second")
    ax.set_xticks([0.05, 0.1, 0.2, 0.5, 1], ["0.05", "0.1", "0.2", "0.5", "1"])
    ax.set_yticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
    ax.minorticks_off()
    return fig


def _tokens(part: dict) -> str:
    count = part["shape"]["tokens"]
    return "1 token" if count == 1 else f"{count:,} tokens"


def _columns(heads: list[str] | tuple[str, ...], rows: list[tuple]) -> Columns:
    return {
        head: list(column)
        for head, column in zip(heads, zip(*rows, strict=True), strict=True)
    }
