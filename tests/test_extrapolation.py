"""Tests of the registry, of arguments that must be refused, and of the package as a whole."""

import dataclasses
import importlib
import math
import re
from pathlib import Path

import pytest
import torch
from torch._dynamo.testing import CompileCounter
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from ropebook import extrapolation as X
from ropebook.efficient import RotaryEmbedding
from ropebook.extrapolation.choice import WHEN
from ropebook.sinusoidal import inv_freq as plain
from tests.helpers import random
from tests.links import slug, text
from tests.methods import (
    DISTANCES,
    EXAMPLES,
    FREQUENCIES,
    example,
)
from tests.together import together

REFERENCES = (Path(__file__).parents[1] / "book" / "references.bib").read_text(encoding="utf-8")

# --- The registry ---


def test_every_method_is_made_by_name():
    for name, method in X.METHODS.items():
        assert method.name == name
        assert isinstance(example(name), method.form)
        assert dataclasses.is_dataclass(method.form)
    with pytest.raises(TypeError):
        X.METHODS["linear"] = None


@together("name", FREQUENCIES)
def test_what_changes_within_the_trained_length_is_measured(name):
    method, theta = example(name), plain(8, 100.0)
    unchanged = all(
        scaled.shape == theta.shape and torch.equal(scaled, theta) and factor == 1
        for scaled, factor in (method(theta, length) for length in (1, 16, 32))
    )
    assert X.METHODS[name].changes_within == (not unchanged)


def test_what_the_other_methods_change_within_the_trained_length_is_measured():
    place = torch.arange(32)
    for name in DISTANCES:
        changed = not torch.equal(example(name).relative(place, place), (place[:, None] - place).double())
        assert X.METHODS[name].changes_within == changed
    assert (X.LogN(32).query_scale(place) == 1).all()
    assert not X.METHODS["log_n"].changes_within


def test_transformers_names_are_its_names():
    named = {method.transformers for method in X.METHODS.values()} - {None}
    assert set(ROPE_INIT_FUNCTIONS) <= named
    assert named - set(ROPE_INIT_FUNCTIONS) == {"rope_theta", "partial_rotary_factor"}


@together("name", X.METHODS)
def test_the_year_is_that_of_the_first_publication(name):
    """The year may be that of a preprint or a post. arXiv identifiers begin with the year and the month."""
    method = X.METHODS[name]
    [entry] = re.findall(rf"^@\w+\{{{method.source},\n.*?^\}}", REFERENCES, re.M | re.S)
    arxiv, year = re.search(r"eprint = \{(\d\d)\d\d\.", entry), re.search(r"year = \{(\d+)\}", entry)
    assert method.year == (2000 + int(arxiv[1]) if arxiv else int(year[1]))


@together("name", X.METHODS)
def test_a_section_explains_the_method(name):
    """A section explains a method if one of its cells shows the method's class, or if the section contains the name
    used in the registry."""
    method = X.METHODS[name]
    page, _, anchor = method.section.partition("#")
    sections = [part for part in re.split(r"^## ", text(page), flags=re.M) if slug(part) == anchor]
    assert len(sections) == 1, f"book/{page}.md must have one ## {anchor!r}, got {len(sections)}"
    [section] = sections
    assert method.title.lower() in section.lower() or re.search(rf"X\.{method.form.__name__}\b", section)


@together("name", X.METHODS)
def test_a_method_is_public_in_its_file(name):
    form = X.METHODS[name].form
    assert form.__name__ in importlib.import_module(form.__module__).__all__, form


def test_what_suits_nothing_has_no_recommended_options():
    assert {when for method in X.METHODS.values() for when in method.suits} == set(WHEN)
    for method in X.METHODS.values():
        if not method.suits:
            with pytest.raises(NotImplementedError, match=f"{method.form.__name__} is recommended for nothing"):
                method.form.reaching(32, 64, dim=8, base=100.0)


def test_the_table_and_its_sources():
    rows = X.methods_table()
    assert [row["name"] for row in rows] == list(X.METHODS)
    assert all(isinstance(cell, str) and cell for row in rows for cell in row.values())
    assert {row["trains"] for row in rows} == {"no", "yes", "optional"}
    assert {row["source"] for row in rows} <= set(re.findall(r"^@\w+\{([^,]+),", REFERENCES, re.M))
    assert {row["changes"] for row in rows} == {"frequencies", "distances", "queries"}


def test_a_kind_of_method_is_no_method():
    for kind in (X.Frequencies, X.Distances):
        with pytest.raises(TypeError, match="abstract"):
            kind()


# --- Invalid arguments raise an error and never give a curve ---


@together(
    "name, options, error, message",
    [
        ("linear", {"factor": 0.5}, ValueError, "factor must be a finite number >= 1, got 0.5"),
        ("linear", {"factor": math.nan}, ValueError, "factor must be a finite number >= 1, got nan"),
        ("linear", {"factor": "4"}, TypeError, "factor must be a finite number >= 1, got '4'"),
        ("linear", {}, TypeError, r"options of 'linear' must be \(factor\), got \(\)"),
        ("linear", {"scale": 4.0}, TypeError, r"options of 'linear' must be \(factor\), got \(scale\)"),
        ("ntk", {"factor": 0.99}, ValueError, "factor must be"),
        ("dynamic_ntk", {"trained_length": 1}, ValueError, "trained_length must be an integer >= 2, got 1"),
        ("dynamic_ntk", {"trained_length": 32.0}, TypeError, "trained_length must be an integer"),
        ("dynamic_ntk", {"trained_length": 32, "factor": 0}, ValueError, "factor must be"),
        ("ntk_by_parts", {"alpha": 4.0}, ValueError, "alpha must be less than beta, got 4.0 and 4.0"),
        ("ntk_by_parts", {"alpha": 0}, ValueError, "alpha must be a finite number > 0"),
        ("ntk_by_parts", {"beta": math.nan}, ValueError, "beta must be a finite number, got nan"),
        ("ntk_by_parts", {"factor": 0.0}, ValueError, "factor must be"),
        ("ntk_by_parts", {"trained_length": 0}, ValueError, "trained_length must be"),
        ("yarn", {"alpha": 5.0}, ValueError, "alpha must be less than beta, got 5.0 and 4.0"),
        ("yarn", {"factor": 0.5}, ValueError, "factor must be"),
        ("yarn", {"truncate": "no"}, ValueError, "truncate must be one of True, False"),
        ("yarn", {"ramp": "linear"}, ValueError, "ramp must be one of 'pairs', 'turns'"),
        ("yarn", {"mscale": 1.0}, ValueError, "must be given together or not at all, got 1.0 and None"),
        ("yarn", {"mscale": 0, "mscale_all_dim": 1}, ValueError, "mscale must be a finite number > 0"),
        ("yarn", {"mscale": 1, "mscale_all_dim": 0}, ValueError, "mscale_all_dim must be a finite number > 0"),
        ("yarn", {"attention_factor": 0}, ValueError, "attention_factor must be a finite number > 0"),
        ("yarn", {"trained_length": 1}, ValueError, "trained_length must be"),
        ("dynamic_yarn", {"beta": 1.0}, ValueError, "alpha must be less than beta"),
        ("llama3", {"low_freq_factor": 4.0}, ValueError, "low_freq_factor must be less than high_freq_factor, got 4.0"),
        ("llama3", {"factor": 0.1}, ValueError, "factor must be"),
        ("llama3", {"trained_length": -1}, ValueError, "trained_length must be"),
        ("longrope", {"long_factors": [1, 2, 3, 0]}, ValueError, r"long_factors\[3\] must be a finite number > 0"),
        ("longrope", {"short_factors": []}, TypeError, r"short_factors must be one number for each pair, got \[\]"),
        ("longrope", {"short_factors": "1234"}, TypeError, "short_factors must be one number for each pair"),
        ("longrope", {"short_factors": 1.0}, TypeError, "short_factors must be one number for each pair"),
        ("longrope", {"factor": 0.5}, ValueError, "factor must be"),
        ("longrope", {"trained_length": 1}, ValueError, "trained_length must be"),
        ("longrope", {"attention_factor": math.inf}, ValueError, "attention_factor must be"),
        ("base", {"base": 0.5}, ValueError, "base must be a finite number >= 1"),
        ("partial", {"fraction": 0.0}, ValueError, "fraction must be a finite number > 0 and <= 1"),
        ("proportional", {"fraction": 1.5}, ValueError, "fraction must be"),
        ("proportional", {"factor": 0.5}, ValueError, "factor must be"),
        ("rerope", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("leaky_rerope", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("leaky_rerope", {"step": 0.5}, ValueError, "step must be a finite number >= 1"),
        ("self_extend", {"group": 0}, ValueError, "group must be an integer >= 1"),
        ("self_extend", {"window": 0}, ValueError, "window must be an integer >= 1"),
        ("log_n", {"trained_length": 1}, ValueError, "trained_length must be an integer >= 2"),
    ],
)  # fmt: skip
def test_bad_options(name, options, error, message):
    complete = options if name == "linear" or not options else EXAMPLES[name] | options
    with pytest.raises(error, match=message):
        X.make(name, **complete)


def test_make_knows_the_names_that_transformers_has():
    """`make` must accept all of transformers' rope_types, and it must be possible to create an attention layer with
    each of these names."""
    options = {"dynamic": EXAMPLES["dynamic_ntk"]} | EXAMPLES
    for kind in ROPE_INIT_FUNCTIONS:
        method = X.make(kind, **options[kind])
        assert method.facts.transformers == kind
    layers = [
        X.ExtendedAttention(8, 1, method=name, options=options[name], layout="interleaved")
        for name in ("dynamic", "dynamic_ntk", "yarn")
    ]
    assert [layer.keep for layer in layers] == ["unrotated", "unrotated", "rotated"]


@together("name", FREQUENCIES)
@together(
    "theta, error, message",
    [
        (torch.tensor([1.0, math.nan]), ValueError, r"finite numbers >= 0.*got \[1.0, nan\]"),
        (torch.tensor([1.0, math.inf]), ValueError, "finite numbers >= 0"),
        (torch.tensor([1.0, -0.1]), ValueError, "finite numbers >= 0"),
        (torch.ones(2, 2), ValueError, r"got shape \(2, 2\)"),
        (torch.ones(0), ValueError, r"got shape \(0,\)"),
        (torch.ones(4, dtype=torch.bfloat16), TypeError, "float64 or float32, got dtype torch.bfloat16"),
        (torch.ones(4).long(), TypeError, "inv_freq must be a floating-point tensor"),
        ([1.0, 0.1], TypeError, "inv_freq must be a floating-point tensor, got list"),
    ],
)
def test_bad_frequencies(name, theta, error, message):
    with pytest.raises(error, match=message):
        example(name)(theta, 40)


def test_frequencies_from_which_no_base_can_be_read():
    for name in ("ntk", "dynamic_ntk", "yarn", "dynamic_yarn", "partial"):
        options = {"fraction": 1.0} if name == "partial" else EXAMPLES[name]
        with pytest.raises(ValueError, match=r"at least 2 pairs.*d/\(d - 2\) has no value"):
            X.make(name, **options)(plain(2), 40)
    twice = X.YaRN(4.0, 32, beta=4.0)(plain(8, 100.0))[0]
    for name in ("yarn", "partial"):
        with pytest.raises(ValueError, match=r"inv_freq must be base\*\*\(-2i/d\), as it is before any scaling"):
            example(name)(twice)
    with pytest.raises(ValueError, match=r"inv_freq must fall, because with base 1 no pair is slower.*got \[1.0, 1.0"):
        example("yarn")(plain(8, 1))
    with pytest.raises(ValueError, match="long_factors must be one for each of 3 pairs, got 4"):
        example("longrope")(plain(6), 40)
    with pytest.raises(ValueError, match=r"fraction must leave one of 4 pairs rotating, got 0\.2"):
        X.Proportional(0.2)(plain(8))
    with pytest.raises(ValueError, match=r"fraction \* dim, rounded down, must be an even integer >= 2, got 3"):
        X.Partial(0.4)(plain(8))


@together("name", ["dynamic_ntk", "dynamic_yarn", "longrope"])
def test_bad_lengths(name):
    method, theta = example(name), plain(8)
    assert method.follows_length
    for length, error, message in [
        (None, ValueError, "length must be known where the frequencies follow it, got None"),
        (0, ValueError, "length must be an integer >= 1, got 0"),
        (40.0, TypeError, "length must be an integer >= 1, got 40.0"),
    ]:
        with pytest.raises(error, match=message):
            method(theta, length)


def test_other_bad_arguments():
    theta = plain(8)
    with pytest.raises(ValueError, match="target_length must be an integer >= 64, got 63"):
        X.length_factor(64, 63)
    with pytest.raises(ValueError, match="target_length must be an integer >= 64, got 63"):
        X.overshoot(theta, 64, 63, theta)
    with pytest.raises(ValueError, match="trained_length must be an integer >= 2, got 1"):
        X.turned(theta, 1)
    with pytest.raises(ValueError, match=r"dim must be at least 4, because d/\(d - 2\) has no value, got 2"):
        X.ntk_base(10000.0, 2, 4.0)
    with pytest.raises(ValueError, match="factor must be a finite number >= 1"):
        X.ntk_base(10000.0, 4, 0.5)
    with pytest.raises(ValueError, match=r"base must .* 0.5"):
        X.ntk_base(0.5, 4, 2.0)
    with pytest.raises(ValueError, match="weight must be a finite number >= 0"):
        X.yarn_factor(4.0, -1.0)
    with pytest.raises(ValueError, match="head_dim must be an integer >= 1"):
        X.softmax_scale(0, 4.0, 1.0)
    for ramp in (X.ramp_in_turns, X.ramp_in_pairs):
        with pytest.raises(ValueError, match="alpha must be less than beta"):
            ramp(theta, 64, 4.0, 2.0)
        with pytest.raises(ValueError, match="trained_length must be an integer >= 2"):
            ramp(theta, 0)


# --- The module ---


def test_methods_compile_without_a_break_and_dynamic_ones_without_recompiling():
    torch._dynamo.reset()
    q, k = random(1, 2, 16, 8), random(1, 1, 16, 8)
    for name in ("yarn", "llama3", "longrope", "dynamic_ntk"):
        torch._dynamo.reset()
        counter = CompileCounter()
        rope = RotaryEmbedding(8, 100.0, scaling=example(name), layout="interleaved")
        compiled = torch.compile(rope, backend=counter, fullgraph=True)
        for offset in range(0, 64, 7):
            ours, eager = compiled(q, k, offset=offset), rope(q, k, offset=offset)
            assert torch.allclose(ours[0], eager[0])
            assert torch.allclose(ours[1], eager[1])
        assert counter.frame_count <= 4
    torch._dynamo.reset()
