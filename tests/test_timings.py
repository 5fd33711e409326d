"""Test that the tables of timings agree with the stored file."""

import pytest

from ropebook import checks, results, timings
from ropebook.efficient import FORMS, rotation_cost


@pytest.fixture(scope="module")
def measured():
    return results.load("rotary")


def raw(measured, part, name, layout, writes=("fresh", "in place", "existing")):
    (found,) = [
        one
        for one in measured["cpu"][part]["entries"]
        if one["name"] == name and one["layout"] == layout and one["writes"] in writes
    ]
    return found


def rows(columns):
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def row(columns, **wanted):
    (found,) = [one for one in rows(columns) if wanted.items() <= one.items()]
    return found


def test_an_entry_with_new_memory_comes_first(measured):
    part = measured["cpu"]["bfloat16"]
    assert timings.entry(part, "compiled_rolled", "half") is raw(
        measured, "bfloat16", "compiled_rolled", "half", ("fresh",)
    )
    backwards = {"entries": part["entries"][::-1]}
    assert timings.entry(backwards, "compiled_rolled", "half")["writes"] == "fresh"
    assert timings.entry(part, "limit")["name"] == "limit"
    assert timings.entry(part, "dense", "half") is None


def test_passes_are_the_counted_bytes_by_the_least():
    for form in FORMS:
        for layout in checks.LAYOUTS:
            ours = rotation_cost(form, 128, 40, layout).data_bytes / (2 * 128 * 40 * 4)
            assert timings.passes(form, layout) == ours
    assert timings.passes("sparse", "interleaved") == 5
    assert timings.passes("eager", "half") == 2.5


@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_in_short_one_row_for_each_form(measured, layout):
    columns = timings.in_short(measured, layout)
    assert columns["form"] == ["matrix", "sparse", "two lines", "complex", "compiled", "in place", "copy"]
    sparse = row(columns, form="sparse")
    assert sparse["operations per token"] == 3.5 * 128 * 40
    assert sparse["time for 2,048 tokens (ms)"] == raw(measured, "float32", "sparse", layout)["ms"]
    assert sparse["time for 1 token (µs)"] == 1000 * raw(measured, "one_token", "sparse", layout)["ms"]
    assert sparse["passes"] == 5
    matrix, copy = row(columns, form="matrix"), row(columns, form="copy")
    assert matrix["time for 2,048 tokens (ms)"] is None
    assert (copy["operations per token"], copy["passes"]) == (0, 1)
    assert copy["time for 2,048 tokens (ms)"] == raw(measured, "float32", "limit", None)["ms"]


def test_decoding_has_a_row_for_each_form_and_both_types(measured):
    part = measured["cpu"]["decoding"]
    columns = timings.decoding(measured)
    named = {"half-split": "halves", "interleaved": "neighbours"}
    assert columns["form"] == [
        ", ".join(named.get(word, word) for word in one["name"].split(", ")) for one in part["float32"]["entries"]
    ]
    first, yarn = row(columns, form="transformers"), row(columns, form="YaRN")
    assert (first["ratio"], first["its ratio"]) == (1, 1)
    for head, dtype in (("float32 (µs)", "float32"), ("bfloat16 (µs)", "bfloat16")):
        (found,) = [one for one in part[dtype]["entries"] if one["name"] == "YaRN"]
        assert yarn[head] == found["us"]


def test_forms_that_cost_the_same_in_both_layouts_share_a_row():
    columns = timings.counts(head_dim=128, n_heads=40)
    assert len(rows(columns)) == len(FORMS) + 3
    for one in rows(columns):
        forms = {timings.titled(form, layout): (form, layout) for form in FORMS for layout in (None, *checks.LAYOUTS)}
        form, only = forms[one["form"]]
        for layout in [only] if only else checks.LAYOUTS:
            cost = rotation_cost(form, 128, 40, layout)
            assert one["operations"] == cost.flops
            assert one["moved (KiB)"] == cost.bytes / 1024
            assert one["per byte"] == cost.intensity
            assert one["passes"] == timings.passes(form, layout)
    assert [form for form in columns["form"] if "complex" in form] == ["complex, neighbours", "complex, halves"]


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_the_long_text_in_float32_and_in_bfloat16(measured, dtype):
    columns = timings.long_text(measured, dtype)
    limit = raw(measured, dtype, "limit", None)["ms"]
    assert len(rows(columns)) == 1 + 7 * 2
    for title, name, layout in (
        ("sparse, neighbours", "sparse", "interleaved"),
        ("in place, halves", "in_place", "half"),
        ("transformers, halves", "transformers", "half"),
    ):
        found, one = row(columns, form=title), raw(measured, dtype, name, layout)
        assert found["ms"] == one["ms"]
        assert found["copies"] == one["ms"] / limit
        assert found["10–90%"] == f"{one['p10']:.1f}–{one['p90']:.1f}"
        assert found["new memory (MiB)"] == one["allocated"] / 2**20
    assert row(columns, form="transformers, neighbours")["passes"] == 5
    copy = row(columns, form="copy")
    assert (copy["passes"], copy["copies"]) == (1, 1)


@pytest.mark.parametrize("layout", checks.LAYOUTS)
def test_few_tokens_in_microseconds(measured, layout):
    columns = timings.few_tokens(measured, layout)
    assert columns["form"] == ["copy", "transformers", *(timings.TITLES[form] for form in FORMS)]
    assert list(columns) == ["form", "1 token (µs)", "64 tokens (µs)"]
    sparse, copy = row(columns, form="sparse"), row(columns, form="copy")
    for part, tokens in (("one_token", "1 token"), ("short", "64 tokens")):
        assert sparse[f"{tokens} (µs)"] == 1000 * raw(measured, part, "sparse", layout)["ms"]
    assert copy["1 token (µs)"] == 1000 * raw(measured, "one_token", "limit", None)["ms"]


@pytest.mark.parametrize(
    "tabulate", [timings.long_text, lambda measured, dtype: timings.peers(measured, "long", dtype)]
)
def test_times_are_known_in_two_types(measured, tabulate):
    with pytest.raises(ValueError, match=r"^dtype must be one of 'float32', 'bfloat16', got 'float16'$"):
        tabulate(measured, "float16")


def test_stores_and_shares_are_the_files(measured):
    columns = timings.stores(measured)
    assert columns["what"][0] == "scaled in place"
    assert columns["relative to the first"] == [one["times"] for one in measured["cpu"]["stores"]["entries"]]
    assert columns["ms"] == [one["ms"] for one in measured["cpu"]["stores"]["entries"]]
    assert {"rotated in place, neighbours", "sheared in place, halves"} < set(columns["what"])
    half = row(timings.shares(measured), layout="halves")
    share = measured["cpu"]["float32"]["shares_ms"]["half"]
    assert half == {
        "layout": "halves",
        "a copy (ms)": share["copy"],
        "new pages (ms)": share["new_pages"],
        "the loop, beyond the copy (ms)": share["arithmetic"] + share["tables"],
        "with one row of table (ms)": share["arithmetic"],
    }


def test_the_roofline_has_a_point_at_each_forms_count_and_speed(measured):
    (ax,) = timings.roofline(measured).axes
    line, *points = ax.lines
    places = [(point.get_xdata()[0], point.get_ydata()[0]) for point in points]
    for name, form, layout in (("transformers", "sparse", "half"), ("in_place", "in_place", "interleaved")):
        cost = rotation_cost(form, 128, 40, layout)
        speed = cost.flops * 2048 / (raw(measured, "float32", name, layout)["ms"] / 1000) / 1e9
        assert any(x == cost.intensity and y == pytest.approx(speed) for x, y in places)
    assert len(places) == len(ax.texts) - 3 == 8
    # the limit set by memory is the number of bytes per second that a copy moves, times the number of operations per
    # byte
    limit = raw(measured, "float32", "limit", None)
    moved = measured["cpu"]["float32"]["bytes"] / (limit["ms"] / 1000) / 1e9
    x, y = line.get_data()
    assert list(y) == pytest.approx([moved * one for one in x])


def test_on_a_gpu_the_fastest_is_shown_in_copies(measured):
    columns = timings.on_cuda(measured)
    assert list(columns)[1:] == ["8,192", "8,192 back", "131,072", "131,072 back"]
    part = measured["cuda"]["parts"][1]
    copy = next(one["ms"] for one in part["entries"] if one["name"] == "limit")
    times = [
        one["ms"]
        for one in part["entries"]
        if (one["name"], one["layout"], one["direction"]) == ("triton", "half", "backward")
    ]
    assert len(times) == 2  # heads first and tokens first
    ours = row(columns, form="our kernel, halves")
    assert ours["131,072 back"] == min(times) / copy
    assert row(columns, form="transformers, neighbours")["8,192 back"] is None


def peers_raw(measured, length, dtype, direction, name):
    (case,) = [
        case
        for case in measured["cpu"]["peers"]["cases"]
        if (case["length"], case["dtype"], case["direction"]) == (length, dtype, direction)
    ]
    (found,) = [entry for entry in case["entries"] if entry["name"] == name]
    return found


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("length", ["long", "one_token"])
def test_peers_stand_beside_transformers_in_all_cases(measured, length, dtype):
    columns = timings.peers(measured, length, dtype)
    assert list(columns)[1:] == ["forward", "forward and backward"]
    assert columns["library"][:2] == ["ours", "ours, neighbours"]
    assert "torchtune, neighbours" in columns["library"]
    assert "a copy" not in columns["library"]
    theirs = row(columns, library="transformers")
    assert {theirs[head] for head in list(columns)[1:]} == {"1.00 (1.00–1.00)"}
    found = peers_raw(measured, length, dtype, "forward and backward", "ours")
    right = f"{found['times']:.2f} ({found['times_p10']:.2f}–{found['times_p90']:.2f})"
    assert row(columns, library="ours")["forward and backward"] == right


def test_peers_know_two_lengths(measured):
    with pytest.raises(ValueError, match=r"^length must be one of 'long', 'one_token', got 'short'$"):
        timings.peers(measured, "short")


def test_errors_of_peers_are_those_of_the_long_text_forward(measured):
    columns = timings.peer_errors(measured)
    assert columns["library"] == timings.peers(measured)["library"]
    for dtype in ("float32", "bfloat16"):
        found = peers_raw(measured, "long", dtype, "forward", "torchtune")
        ours = row(columns, library="torchtune, neighbours")
        assert (ours[f"{dtype}: rms"], ours[f"{dtype}: worst"]) == (found["rms"], found["worst"])
