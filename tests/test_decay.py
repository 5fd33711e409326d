"""Test that every public function of the decay package has a docstring and raises errors that name the argument."""

import inspect
import math

import pytest
import torch

from ropebook import decay as D
from tests.helpers import public
from tests.together import together

ONES = torch.ones(8)
BATCH = torch.ones(2, 3, 4)
COS = lambda distances: distances.double().cos()  # noqa: E731  (a curve for the calls below)
BAD = [
    ("partial_sums(0, 7)", ValueError, r"dim must be .* got 7"),
    ("mean_partial_sum(0, 8, 0.5)", ValueError, r"base must be .* got 0.5"),
    ("mean_partial_sum(math.nan, 8)", ValueError, r"distances must lie .* got nan"),
    ("running_sums(math.nan, [1.0]).__next__()", ValueError, r"distances must lie .* got nan"),
    ("partial_sum_floor(0)", ValueError, r"dim must be .* got 0"),
    ("random_walk_level(8.0)", TypeError, r"dim must be .* got 8.0"),
    ("bounds(ONES, ONES[:6], 0)", ValueError, "q and k must agree"),
    ("bounds(ONES, ONES, [2**31 + 1])", ValueError, "distances must lie"),
    ("bounds(ONES, ONES, 0, math.nan)", ValueError, r"base must be .* got nan"),
    ('bounds(ONES, ONES, 0, layout="split")', ValueError, "layout must be one of .* got 'split'"),
    ("summarize(COS, 0)", ValueError, "length must be .* got 0"),
    (
        "summarize(lambda distances: COS(distances)[:1], 2)",
        ValueError,
        r"curve must give one value .* \(2,\), got \(1,",
    ),
    ("summarize(lambda distances: COS(distances) / 0 * 0, 2)", ValueError, "curve must give numbers, got NaN"),
    ("summarize(lambda distances: distances, 2)", TypeError, "what curve gives must be a floating-point tensor"),
    ("windows(COS, [3])", ValueError, r"edges must be two or more, and increase, got \[3\]"),
    ("windows(COS, [0, 5, 5])", ValueError, "edges must be two or more, and increase"),
    ("windows(COS, [-1, 5])", ValueError, "edges must be .* got -1"),
    ("windows(COS, [0, 5.0])", TypeError, "edges must be .* got 5.0"),
    ("trend(COS, 1)", ValueError, r"edges must be two or more, and increase, got \[1\]"),
    ("trend(COS, 0)", ValueError, "length must be .* got 0"),
    ("first_below(COS, math.nan, 5)", ValueError, "level must be .* got nan"),
    ("first_below(COS, 0, 2**31 + 1)", ValueError, "length must be .* got 2147483649"),
    ("first_return(0, 5, 8)", ValueError, "share must be .* got 0"),
    ("first_return(1.5, 5, 8)", ValueError, "share must be .* got 1.5"),
    ("first_return(0.5, 5, 9)", ValueError, "dim must be .* got 9"),
    ("score_curve(-1, 5, ONES, ONES)", ValueError, "query_position must be .* got -1"),
    ("score_curve(0, 0, ONES, ONES)", ValueError, "length must be .* got 0"),
    ("score_curve(0, 5, [1.0], ONES)", TypeError, "q must be a floating-point tensor, got list"),
    ("random_scores(0, 7)", ValueError, "dim must be .* got 7"),
    ("random_scores(0, 8, samples=1)", ValueError, "samples must be .* got 1"),
    ("random_scores(0, 8, seed=0.5)", TypeError, "seed must be .* got 0.5"),
    ("random_scores('far', 8)", TypeError, "distances must be .* got 'far'"),
    ("diagonal_weight(ONES, ONES)", ValueError, r"q must have shape \(trials >= 2, .* got \(8,\)"),
    ("diagonal_weight(BATCH[:1], BATCH)", ValueError, r"q must have .* got \(1, 3, 4\)"),
    ("diagonal_weight(BATCH, BATCH[:, :0])", ValueError, r"k must have .* got \(2, 0, 4\)"),
    ("diagonal_weight(BATCH, BATCH[:, :2])", ValueError, "q and k must have one shape"),
    ("diagonal_weight(BATCH, BATCH, 0.0)", ValueError, "base must be .* got 0.0"),
    ("share(0, 7)", ValueError, "dim must be .* got 7"),
    ("share(math.nan, 8)", ValueError, "must lie .* got nan"),
    ("sweep(10, bases=[0.5])", ValueError, "base must be .* got 0.5"),
    ("sweep(10, dims=[3])", ValueError, "dim must be .* got 3"),
    ("sweep(0)", ValueError, "length must be .* got 0"),
    ("turned_pairs(0, 8)", ValueError, "context must be .* got 0"),
    ("turned_pairs(10, 8, math.inf)", ValueError, "base must be .* got inf"),
    ("tokens('4G')", ValueError, "label must be a whole number, with k or M or without, .* got '4G'"),
    ("tokens('13,1072')", ValueError, "label must be a whole number, with k or M or without, .* got '13,1072'"),
    ("tokens(0)", ValueError, "label must be an integer >= 1, got 0"),
    ("tokens(4.5)", TypeError, "label must be an integer >= 1, got 4.5"),
    ("tokens('4k', 1001)", ValueError, "thousand must be one of 1000, 1024, got 1001"),
    ("reach(math.nan, 128, 10)", ValueError, "base must be .* got nan"),
    ("reach(1e4, 127, 10)", ValueError, "dim must be .* got 127"),
    ("reach(1e4, 128, 0)", ValueError, "limit must be .* got 0"),
    ("significant_grid(0, 1, 2)", ValueError, "digits must be .* got 0"),
    ("significant_grid(2, 0.5, 2)", ValueError, "low must be .* got 0.5"),
    ("significant_grid(2, 10, 9)", ValueError, "high must be .* got 9"),
    ("smallest_base(0, [1.0])", ValueError, "length must be .* got 0"),
    ("smallest_base(10, [2.0, 1.0])", ValueError, "bases must rise"),
    ("smallest_base(10, [0.5])", ValueError, "bases must be .* got 0.5"),
    ("runs([1.0, 1.0], [1, 1], 5)", ValueError, "bases must rise"),
    ("runs([1.0, 2.0], [1], 5)", ValueError, "bases and reaches must be equally many, got 2 and 1"),
    ("compare(0, 1e4, [1e4])", ValueError, "length must be .* got 0"),
    ("compare(10, 0.5, [1e4])", ValueError, "base must be .* got 0.5"),
]


@together(("call", "error", "message"), BAD, ids=[call for call, *_ in BAD])
def test_bad_input_is_named(call, error, message):
    with pytest.raises(error, match=message):
        eval(call, {**vars(D), "math": math, "ONES": ONES, "BATCH": BATCH, "COS": COS})


def functions():
    return {name: value for name in public(D) if inspect.isroutine(value := getattr(D, name))}


def test_every_public_function_has_bad_input_and_a_description():
    assert {*functions()} - {"distance_kernel"} == {call.partition("(")[0] for call, *_ in BAD}
    assert all(inspect.getdoc(getattr(D, name)) for name in public(D))


def test_by_default_the_base_is_that_of_the_paper():
    defaults = [inspect.signature(value).parameters.get("base") for value in functions().values()]
    found = {base.default for base in defaults if base is not None}
    assert found == {10000, inspect.Parameter.empty}


def test_the_package_gives_what_its_parts_are_there_for():
    parts = [D.bases, D.bound, D.curves, D.models, D.scores, D.sweeps]
    assert public(D) - {"distance_kernel"} == set().union(*map(public, parts)) - {"whole_length"}
