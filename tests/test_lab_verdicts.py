"""Verdicts by construction: results are made up so that every claim's word is known. Errors are checked by hand."""

import math
import statistics
import zlib

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from ropebook.lab import evaluation
from ropebook.lab import verdicts as V
from ropebook.lab.model import LanguageModel
from ropebook.lab.training import RUNS
from ropebook.lab.verdicts import Bits, Claim, Difference, Expectation, Recall

FILES = 12
SHORT = 3  # files that end before the last band
ROPE = "rope-10000-{seed}"


def noise(name, size):
    """A file's numbers, the same at each call: mean 0 over the files, so that means are known exactly."""
    draws = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    values = torch.randn(FILES, generator=draws, dtype=torch.float64)
    values[:-SHORT] -= values[:-SHORT].mean()  # over those that fill the last band too
    values[-SHORT:] -= values[-SHORT:].mean()
    return size * values


def per_file(name, means, size=0.01, same=None):
    """(files, bands) as the results hold them: what a file costs, a cell's mean in each band, and a little noise."""
    common = noise("what this file costs", 0.7)
    columns = []
    for band, mean in zip(evaluation.BANDS, means, strict=True):
        columns.append((common + mean + noise(f"{same or name}{band}", size)).tolist())
    rows = [list(row) for row in zip(*columns, strict=True)]
    for row in rows[-SHORT:]:
        row[-1] = None
    return rows


def cell(name, within, beyond, size=0.01, sampled=None, recall=0.97, same=None):
    beyond = [beyond] * 4 if isinstance(beyond, float) else beyond
    found = {
        "id": name,
        "files": per_file(name, [within, *beyond], size, same),
        "retrieval": {"256": [recall] * 4 + [None] * 4},
        "asked": {"256": [64] * 4 + [0] * 4},
    }
    if sampled is not None:
        found["sampled"] = {"files": per_file(f"{name} sampled", [sampled] * 5)}
        for row in found["sampled"]["files"]:
            row[0] = None
    return found


@pytest.fixture(scope="module")
def world():
    """A world in which every claim's word is known, see `WORDS`."""
    cells, windowed = [], {}
    for seed in V.SEEDS:
        rope = f"rope-10000-{seed}"
        plain = f"{rope}/none"
        cells.append(cell(plain, 2.0, 5.0))
        for factor in evaluation.FACTORS:
            cells.append(cell(f"{rope}/linear/{factor}", 2.2, 2.4))
            cells.append(cell(f"{rope}/ntk/{factor}", 1.9, 2.4))
            cells.append(cell(f"{rope}/ntk_by_parts/{factor}", 2.02, 2.03))
            cells.append(cell(f"{rope}/yarn/{factor}", 2.3, 1.8))
            cells.append(cell(f"{rope}/self_extend/{factor}", 2.1, 4.9, size=3.0))
        cells.append(cell(f"{rope}/dynamic_ntk", 2.3, 2.2))
        cells.append(cell(f"{rope}/dynamic_ntk/cached", 2.0, 2.5, sampled=2.5, same=plain))
        cells.append(cell(f"{rope}/dynamic_ntk/uncached", 2.0, 9.9, sampled=2.2, same=plain))
        cells.append(cell(f"{rope}/log_n", 2.0, [4.8, 4.8, 4.8, 5.1]))
        cells.append(cell(f"{rope}/rerope", 1.7, 5.0 + (0.1 if seed else -0.1)))
        cells.append(cell(f"alibi-{seed}/none", 2.0, 1.95))
        windowed[rope] = {"files": per_file(f"{rope} windowed", [2.0] + [2.1] * 4)}
        windowed[f"alibi-{seed}"] = {"files": per_file(f"alibi {seed} windowed", [2.0] + [1.9] * 4)}
    cells.append(cell("sinusoidal-0/none", 3.5, 6.0))
    return {
        "bands": [list(band) for band in evaluation.BANDS],
        "distances": list(evaluation.DISTANCES),
        "cells": cells,
        "windowed": windowed,
    }


HOLDS, MOSTLY, MIXED, AGAINST, NOT_SO, SAME, UNDECIDED = V.WORDS
WORDS = {
    "S2.9a": HOLDS,
    "S2.9a linear": HOLDS,
    "S2.9a ntk": HOLDS,
    "S2.9a ntk_by_parts": HOLDS,
    "S2.9a yarn": HOLDS,
    "S2.9a self_extend": UNDECIDED,  # 0.1 lower, but no file like another
    "S2.9a dynamic_ntk": HOLDS,
    "S2.9a log_n": MOSTLY,  # worse in the last band
    "S2.9a rerope": UNDECIDED,  # the seeds disagree
    "S2.9b": MIXED,  # NTK is better within L
    "S2.9b linear": HOLDS,
    "S2.9b ntk": NOT_SO,
    "S2.9b ntk_by_parts": HOLDS,
    "S2.9b yarn": HOLDS,
    "S2.9b self_extend": UNDECIDED,
    "S2.9b rerope": NOT_SO,
    "S2.8a": HOLDS,
    "S2.8b": NOT_SO,
    "S3.6a": NOT_SO,
    "S3.6b": MIXED,  # YaRN, not NTK
    "S3.6c": MIXED,
    "S3.6c none": NOT_SO,
    "S3.6c linear": NOT_SO,
    "S3.6c ntk": NOT_SO,
    "S3.6c ntk_by_parts": HOLDS,
    "S3.6c yarn": HOLDS,
    "S3.6c self_extend": NOT_SO,
    "S3.6c dynamic_ntk": NOT_SO,
    "S3.6c log_n": NOT_SO,
    "S3.6c rerope": NOT_SO,
    "S4.7a": HOLDS,
    "S4.7b": NOT_SO,  # 3.0 above its own against 2.5
    "ALiBi a": HOLDS,
    "ALiBi b": HOLDS,
    "ALiBi c": NOT_SO,
    "S0.12a": NOT_SO,
    "S0.12b": UNDECIDED,
    "S0.12c": NOT_SO,
}


# --- The claims -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", list(V.CLAIMS))
def test_a_claim_gets_the_word_that_the_results_were_made_for(name, world):
    assert V.judge(V.CLAIMS[name], world).word == WORDS[name]


def test_every_claim_has_a_known_word():
    assert list(WORDS) == list(V.CLAIMS)


def test_claims_ask_for_cells_and_bands_that_the_grid_has():
    runs = [run.name for run in RUNS]
    ids = {cell.id for cell in evaluation.grid(runs, ("rope-10000-0", "rope-10000-1"))}
    ids |= {f"{run}/windowed" for run in runs}
    sides = [side for claim in V.CLAIMS.values() for test in claim.expects for side in (test.a, test.b)]
    for side in sides:
        if isinstance(side, Bits):
            assert {side.cell.format(seed=seed) for seed in V.SEEDS} <= ids
            assert side.band in evaluation.BANDS
        elif isinstance(side, Recall):
            assert side.distance in evaluation.DISTANCES
            assert side.distance < side.length


def test_a_method_is_tried_up_to_its_factor_and_no_farther():
    stretched = [(test.a.cell, test.a.band) for test in V.CLAIMS["S2.9a linear"].expects]
    assert stretched[0] == (f"{ROPE}/linear/2", (256, 512))
    assert len(stretched) == 1 + 2 + 3 + 4
    for name, band in stretched:
        assert band[0] >= evaluation.LENGTH
        assert band[1] <= int(name.rpartition("/")[2]) * evaluation.LENGTH


def test_bytes_beyond_are_set_against_those_within_in_the_last_band_of_each_factor():
    bands = [test.a.band for test in V.CLAIMS["S3.6b"].expects]
    assert bands == 2 * [(256, 512), (512, 1024), (1024, 2048), (2048, 4096)]


def test_caching_is_judged_in_the_band_where_the_method_works():
    assert [test.a.band for test in V.CLAIMS["S3.6a"].expects] == [(256, 512)]


def test_equal_results_decide_nothing_but_what_should_be_the_same(world):
    equal = {**world, "windowed": {}, "cells": []}
    files = per_file("all", [2.0] * 5)
    found = {**cell("all", 2.0, 2.0, recall=0.5), "files": files, "sampled": {"files": files}}
    equal["cells"] = [found | {"id": each["id"]} for each in world["cells"]]
    equal["windowed"] = {run: {"files": files} for run in world["windowed"]}
    same = {"S2.8a", "S2.8b", "S3.6a"}
    within = {"S3.6b", "ALiBi b"}  # band against band of one cell: noise, not nothing
    for name, claim in V.CLAIMS.items():
        if name not in within:
            bits = isinstance(claim.expects[0].a, Bits)
            expected = HOLDS if name in same else SAME if bits else UNDECIDED
            assert V.judge(claim, equal).word == expected, name


# --- The rule -------------------------------------------------------------------------------------------------------


def made(a, b, seeds=2):
    """Results with the cells x-<seed>/none and y-<seed>/none, of the given numbers for each seed's files."""
    cells = []
    for seed in range(seeds):
        for name, values in (("x", a[seed]), ("y", b[seed])):
            cells.append({"id": f"{name}-{seed}/none", "files": [[value] for value in values]})
    return {"bands": [[0, 256]], "cells": cells, "windowed": {}}


X, Y = Bits("x-{seed}/none", (0, 256)), Bits("y-{seed}/none", (0, 256))


def outcome(a, b, expected):
    return V.compare(made(a, b), Expectation(X, Y, expected)).outcome


def test_differences_are_a_less_b_file_by_file():
    found = V.compare(made([[3.0, 5.0], [1.0, 1.0]], [[1.0, 1.0], [1.0, 2.0]]), Expectation(X, Y, "lower"))
    assert found.seeds == (Difference(3.0, 1.0, 2), Difference(-0.5, 0.5, 2))
    assert found.sign == 0
    assert str(found) == "x/none, 0–256 against y/none, 0–256: +3.000 ± 1.000, -0.500 ± 0.500: undecided"


LOW, HIGH, WIDE = [1.0, 2.0, 3.0], [1.5, 2.5, 3.6], [1.0, 4.0, 0.5]


@pytest.mark.parametrize(
    ("seeds", "word"),
    [
        ((LOW, LOW), "holds"),
        ((HIGH, HIGH), "no difference"),  # against itself
        ((LOW, HIGH), "undecided"),  # one seed says nothing
        ((LOW, WIDE), "undecided"),  # one seed is within its errors
        ((LOW, [9.0, 9.5, 9.9]), "undecided"),  # the seeds contradict each other
        (([9.0, 9.5, 9.9], [9.0, 9.5, 9.9]), "fails"),
    ],
)
def test_both_seeds_must_say_so(seeds, word):
    assert outcome(seeds, (HIGH, HIGH), "lower") == word
    assert outcome((HIGH, HIGH), seeds, "higher") == word


def test_two_standard_errors_are_the_bound():
    # differences 1 ± e, 1: the mean is 1, the standard error e/√3
    for e, sign in ((math.sqrt(3) / 2 - 1e-6, 1), (math.sqrt(3) / 2 + 1e-6, 0)):
        assert V.difference(torch.tensor([1 + e, 1.0, 1 - e]).double(), torch.zeros(3).double()).sign == sign


def test_the_same_is_the_same_but_for_rounding():
    off = [value + 1e-5 * (i == 1) for i, value in enumerate(LOW)]
    assert outcome((LOW, off), (LOW, LOW), "same") == "holds"
    more = [value + 2e-5 for value in LOW]
    assert outcome((more, more), (LOW, LOW), "same") == "fails"
    assert outcome((more, LOW), (LOW, LOW), "same") == "no difference"
    # as much up as down is not the same, and says nothing either
    swung = [1.5, 2.0, 2.5]
    assert outcome((swung, swung), (LOW, LOW), "same") == "undecided"


def test_less_than_the_rounding_is_no_difference():
    off = [value - 5e-6 for value in LOW]
    assert outcome((off, off), (LOW, LOW), "lower") == "no difference"


@pytest.mark.parametrize(
    ("outcomes", "word"),
    [
        ("h", HOLDS),
        ("hh", HOLDS),
        ("hf", MIXED),
        ("hu", MIXED),
        ("hhu", MOSTLY),
        ("hhf", MOSTLY),
        ("hfu", MIXED),
        ("hffffuuuuu", MIXED),
        ("hffffffffu", AGAINST),
        ("hfff", AGAINST),
        ("f", NOT_SO),
        ("fu", NOT_SO),
        ("fn", NOT_SO),
        ("hn", MIXED),
        ("n", SAME),
        ("nn", SAME),
        ("nu", UNDECIDED),
        ("u", UNDECIDED),
        ("uu", UNDECIDED),
    ],
)
def test_from_outcomes_to_the_word(outcomes, word):
    results = made([LOW, LOW], [HIGH, HIGH])
    results["cells"] += made([WIDE, WIDE], [LOW, LOW])["cells"]
    for each in results["cells"][4:]:
        each["id"] = each["id"].replace("x", "wide").replace("y", "flat")
    wide, flat = Bits("wide-{seed}/none", (0, 256)), Bits("flat-{seed}/none", (0, 256))
    tests = {"h": (X, Y, "lower"), "f": (X, Y, "higher"), "n": (X, X, "lower"), "u": (wide, flat, "lower")}
    claim = Claim("id", "text", "popular", tuple(Expectation(*tests[letter]) for letter in outcomes))
    verdict = V.judge(claim, results)
    assert verdict.word == word
    assert [verdict.count(each) for each in V.OUTCOMES] == [outcomes.count(o) for o in "hfnu"]


@pytest.mark.parametrize(
    ("apart", "spread", "word"),
    [
        (0.0, 0.0, "no difference"),
        (0.001, 0.01, "no difference"),
        (0.01, 0.01, "undecided"),  # the interval ends beyond the margin
        (0.0, 0.1, "undecided"),  # nothing, but not precisely
        (0.015, 0.001, "fails"),  # small, and surely so: it counts by the rule
    ],
)
def test_a_precise_null_is_no_difference(apart, spread, word):
    # differences apart ± spread: the standard error is spread/√3
    off = [value + apart + spread * sign for value, sign in zip(LOW, (-1, 0, 1), strict=True)]
    assert outcome((off, off), (LOW, LOW), "lower") == word
    assert outcome((LOW, LOW), (off, off), "higher") == word


def test_one_imprecise_seed_is_enough_to_leave_it_undecided():
    assert outcome((LOW, WIDE), (LOW, LOW), "lower") == "undecided"


def test_shares_have_no_margin_of_bits():
    recall = Recall("x-{seed}/none", 256, 24)
    same = Difference(0.0, 0.001, 100_000)
    found = V.Comparison(Expectation(recall, recall, "lower"), (same, same))
    assert found.outcome == "undecided"


values = st.floats(0, 8)
rows = st.lists(st.tuples(st.one_of(st.none(), values), st.one_of(st.none(), values)), min_size=2, max_size=20)


@given(rows)
def test_mean_and_error_are_those_of_the_standard_library(pairs):
    there = [a - b for a, b in pairs if a is not None and b is not None]
    a, b = (
        torch.tensor([math.nan if x is None else x for x in column]).double() for column in zip(*pairs, strict=True)
    )
    if len(there) < 2:
        with pytest.raises(ValueError, match="two files"):
            V.difference(a, b)
        return
    found = V.difference(a, b)
    assert found.count == len(there)
    assert found.mean == pytest.approx(statistics.mean(there), abs=1e-6)
    assert found.error == pytest.approx(statistics.stdev(there) / math.sqrt(len(there)), abs=1e-6)


def test_files_too_short_for_the_band_are_left_out(world):
    found = V.compare(world, Expectation(Bits(f"{ROPE}/none", (2048, 4096)), Bits(f"{ROPE}/none", (0, 256)), "lower"))
    assert [each.count for each in found.seeds] == [FILES - SHORT] * 2
    assert found.seeds[0].mean == pytest.approx(3.0, abs=1e-9)


def test_bits_over_another_band(world):
    plain, rise = Bits("sinusoidal-0/none", (256, 512)), Bits("sinusoidal-0/none", (256, 512), over=(0, 256))
    inner = Bits("sinusoidal-0/none", (0, 256))
    assert torch.equal(rise.of(world, 0), plain.of(world, 0) - inner.of(world, 0))
    assert str(rise) == "sinusoidal-0/none, 256–512, over 0–256"
    assert str(Bits(f"{ROPE}/dynamic_ntk/cached", (256, 512), sampled=True)).endswith("cached, 256–512, sampled")


# --- Shares ---------------------------------------------------------------------------------------------------------


def test_shares_with_a_right_and_a_wrong_answer_more():
    found = V.difference_of_shares((48, 64), (16, 32))
    p, q = 49 / 66, 17 / 34
    assert found == pytest.approx((p - q, math.sqrt(p * (1 - p) / 66 + q * (1 - q) / 34), 32))
    assert V.difference_of_shares((16, 32), (48, 64)).mean == -found.mean


def test_a_share_against_a_level():
    p = 66 / 68
    assert V.difference_of_shares((64, 64), 0.5) == pytest.approx((p - 0.5, math.sqrt(p * (1 - p) / 68), 64))
    assert V.difference_of_shares((0, 64), 0.5).sign == -1
    assert V.difference_of_shares((36, 64), 0.5).sign == 0


def test_all_right_on_both_sides_is_no_certainty():
    assert V.difference_of_shares((64, 64), (64, 64)).sign == 0
    assert V.difference_of_shares((3, 3), (2, 3)).sign == 0
    assert V.difference_of_shares((64, 64), (32, 64)).sign == 1


@given(st.integers(1, 400), st.data())
def test_the_error_of_a_share_is_that_of_draws(n, data):
    """Against the variance of a list of rights and wrongs, with the two of each in it."""
    right = data.draw(st.integers(0, n))
    draws = [1] * (right + 2) + [0] * (n - right + 2)
    found = V.difference_of_shares((right, n), 0.25)
    assert found.mean == pytest.approx(statistics.mean(draws) - 0.25)
    assert found.error == pytest.approx(statistics.pstdev(draws) / math.sqrt(len(draws)))


def test_recall_counts_what_was_found(world):
    assert Recall(f"{ROPE}/none", 256, 192).of(world, 1) == (62, 64)
    low = {**world, "cells": [cell(f"rope-10000-{seed}/none", 2.0, 5.0, recall=0.2) for seed in V.SEEDS]}
    assert V.judge(V.CLAIMS["S0.12a"], low).word == HOLDS
    for each in low["cells"]:
        each["retrieval"]["256"] = [1.0, 0.9, 0.6, 0.3]
    assert V.judge(V.CLAIMS["S0.12b"], low).word == HOLDS
    assert str(V.CLAIMS["S0.12a"].expects[0].a) == "rope-10000/none, retrieval at 128 of 256"


# --- Rows -----------------------------------------------------------------------------------------------------------


def test_table_has_a_row_of_text_for_each_claim(world):
    rows = V.table(world)
    assert [row["id"] for row in rows] == list(V.CLAIMS)
    assert {row["id"]: row["verdict"] for row in rows} == WORDS
    assert all(isinstance(text, str) for row in rows for text in row.values())


def test_a_row_says_how_many_and_by_how_much(world):
    (row,) = V.table(world, [V.CLAIMS["S2.9a log_n"]])
    assert row["comparisons"] == "3 for, 1 against of 4"
    assert row["differences"] == "-0.200 to +0.100, errors up to 0.005"
    assert row["source"] == "su2021entropy"


# --- What is refused ------------------------------------------------------------------------------------------------


def without(world, name):
    return {**world, "cells": [each for each in world["cells"] if each["id"] != name]}


def test_a_missing_cell_is_named(world):
    with pytest.raises(ValueError, match="must have the cell 'rope-10000-1/linear/8'"):
        V.table(without(world, "rope-10000-1/linear/8"))
    with pytest.raises(ValueError, match="must have the cell 'alibi-1/windowed'"):
        V.table({**world, "windowed": {run: c for run, c in world["windowed"].items() if run != "alibi-1"}})


def test_missing_numbers_of_a_cell_are_named(world):
    bare = without(world, "rope-10000-0/dynamic_ntk/uncached")
    bare["cells"] = bare["cells"] + [cell("rope-10000-0/dynamic_ntk/uncached", 2.0, 2.0)]
    with pytest.raises(ValueError, match="sampled bytes of the cell 'rope-10000-0/dynamic_ntk/uncached'"):
        V.judge(V.CLAIMS["S3.6a"], bare)
    for length, distance in ((256, 384), (4096, 24)):
        with pytest.raises(ValueError, match=f"'rope-10000-0/none' at distance {distance} in texts of {length} bytes"):
            Recall(f"{ROPE}/none", length, distance).of(world, 0)
    with pytest.raises(ValueError, match=r"distance must be one of 24, .*got 25"):
        Recall(f"{ROPE}/none", 256, 25).of(world, 0)
    with pytest.raises(ValueError, match=r"band must be one of .*got \(0, 255\)"):
        Bits(f"{ROPE}/none", (0, 255)).of(world, 0)


def test_no_common_files_is_said_with_the_cells():
    results = made([[1.0, None], LOW], [[None, 1.0], LOW])
    with pytest.raises(ValueError, match="x/none, 0–256 and y/none, 0–256 must have two files or more in common"):
        V.compare(results, Expectation(X, Y, "lower"))


def test_expectations_that_make_no_sense():
    with pytest.raises(ValueError, match="expected must be one of 'lower', 'higher', 'same', got 'better'"):
        Expectation(X, Y, "better")
    recall = Recall("x-{seed}/none", 256, 24)
    for a, b in ((X, recall), (X, 0.5), (recall, X), (recall, None)):
        with pytest.raises(TypeError, match="b must be of a's kind"):
            Expectation(a, b, "lower")


def test_shares_that_make_no_sense():
    with pytest.raises(ValueError, match=r"right must be .* <= 3, got 4"):
        V.difference_of_shares((4, 3), 0.5)
    with pytest.raises(ValueError, match=r"asked must be .*got 0"):
        V.difference_of_shares((1, 2), (0, 0))
    with pytest.raises(ValueError, match=r"level must be .*got 1\.5"):
        V.difference_of_shares((1, 2), 1.5)


# --- With what the evaluation writes --------------------------------------------------------------------------------


def test_reads_what_the_evaluation_writes(monkeypatch):
    monkeypatch.setattr(evaluation, "SAMPLED", 2)  # the first sampled length is 18: none of its bytes is within L
    model = LanguageModel("rope-10000", length=16, dim=16, hidden_dim=24, n_layers=1, n_heads=2)
    draws = torch.Generator().manual_seed(0)
    windows = torch.randint(0, 128, (3, 65), generator=draws)
    places = torch.tensor([[40, 50], [40, 50]])
    texts = evaluation.RetrievalTexts(windows[:2, :64], places, torch.full((2, 2), evaluation.DISTANCES[0]))
    bands = ((0, 16), (16, 32), (32, 64))
    options = {"trained_length": 16}
    cells = [
        evaluation.Cell("rope-10000-0"),
        evaluation.Cell("rope-10000-0", "dynamic_ntk", options=options, cache=False),
        evaluation.Cell("rope-10000-0", "dynamic_ntk", options=options, cache=True),
    ]
    results = {
        "bands": [list(band) for band in bands],
        "distances": list(evaluation.DISTANCES),
        "cells": [evaluation.measure(each, model, windows, {64: texts}, bands)[0] for each in cells],
        "windowed": {"rope-10000-0": evaluation.measure_windowed(model, windows, bands)},
    }
    plain, uncached, cached, last = (
        f"{ROPE}/{end}" for end in ("none", "dynamic_ntk/uncached", "dynamic_ntk/cached", "windowed")
    )
    expected = evaluation.position_bits(model, windows)[:, 16:32].double().mean(1)
    assert Bits(plain, (16, 32)).of(results, 0).tolist() == pytest.approx(expected.tolist(), abs=1e-5)
    assert Bits(last, (16, 32)).of(results, 0).isfinite().all()
    assert Recall(plain, 64, 24).of(results, 0)[1] == 4
    for within in (uncached, cached):
        test = Expectation(Bits(within, (0, 16)), Bits(plain, (0, 16)), "same")
        assert V.compare(results, test, seeds=[0]).outcome == "holds"
    sampled = [Bits(name, (32, 64), sampled=True) for name in (cached, uncached)]
    assert V.compare(results, Expectation(*sampled, "same"), seeds=[0]).outcome != "holds"
