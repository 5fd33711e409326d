"""Tests of the report on a configuration, compared with transformers: its assumptions, frequencies and snippets.
Hostile files are tested too."""

from __future__ import annotations

import importlib
import io
import json
import logging
import re
import subprocess
import sys
from collections import Counter
from random import Random

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoConfig

from ropebook import explain as E
from ropebook import extrapolation
from ropebook.explain import RULES, explain, language
from ropebook.explain.__main__ import main
from ropebook.explain.families import CHECKED
from ropebook.explain.parsing import parsed
from ropebook.explain.snippets import TRANSFORMERS
from ropebook.explorers.explain import EXAMPLES
from ropebook.rope import inv_freq
from tests import explain_cases as cases
from tests.explain_theirs import rotary_class, theirs_of
from tests.together import together

MIXED = 1e-4  # the same tolerance as in test_extrapolation_interop, because transformers computes in float32
FAMILIES = RULES["families"]


@pytest.fixture(autouse=True)
def _quiet():
    logging.disable(logging.WARNING)  # suppresses transformers' warnings about unusual configurations
    yield
    logging.disable(logging.NOTSET)


# ---- The text of the report ----


@together("name", cases.CASES)
def test_what_is_odd_is_named(name):
    config, expected = cases.CASES[name]
    for report in (explain(config), explain(json.dumps(config))):
        assert sorted(report.names()) == sorted(expected)


def test_every_doubt_has_a_case():
    """Each rule that raises a doubt must apply to at least one of the cases, except for a few rare doubts."""
    named = {name for _, names in cases.CASES.values() for name in names}
    rules = {doubt["name"] for doubt in RULES["doubts"]} | set(RULES["always"])
    rare = {"no-length", "no-maximum-for-factor", "longrope-shrinks", "one-pair", "still-proportional", "two-lengths"}
    assert rules - named == rare - named


@together(
    "config, name",
    [
        (
            cases.without(cases.scaled(cases.LLAMA, rope_type="dynamic", factor=2.0), "max_position_embeddings"),
            "no-length",
        ),
        (
            cases.without(
                cases.scaled(
                    cases.LLAMA | {"head_dim": 4}, rope_type="longrope", short_factor=[1, 1], long_factor=[1, 2],
                    original_max_position_embeddings=64,
                ),
                "max_position_embeddings",
            ),
            "no-maximum-for-factor",
        ),
        (
            cases.scaled(
                cases.LLAMA | {"head_dim": 4}, rope_type="longrope", short_factor=[1, 1], long_factor=[1, 2],
                original_max_position_embeddings=8192,
            ),
            "longrope-shrinks",
        ),
        (cases.scaled(cases.LLAMA | {"head_dim": 2}, **cases.YARN), "one-pair"),
        (cases.scaled(cases.LLAMA, rope_type="proportional", partial_rotary_factor=0.001), "still-proportional"),
        (cases.scaled(cases.PHI3, **cases.PHI3["rope_scaling"], original_max_position_embeddings=8), "two-lengths"),
    ],
)  # fmt: skip
def test_rare_doubts(config, name):
    assert name in explain(config).names()


def test_a_sentence_has_no_hole_left():
    for config, _ in cases.CASES.values():
        text = str(explain(config))
        assert not re.search(r"\{\w+(:code)?\}", text)


def test_what_stops_leaves_no_numbers():
    stopping = {doubt["name"] for doubt in RULES["doubts"] if doubt["stops"]} | {"bad-value"}
    for name, (config, expected) in cases.CASES.items():
        for table in explain(config).tables:
            assert bool(table.long) != bool(stopping & set(expected)), name


def test_llama_31_in_words():
    report = explain(cases.LLAMA31)
    told = dict(report.words) | dict(report.tables[0].words)
    assert "half-split" in told["Layout"]
    assert "35 of 64 pairs complete a turn within 8,192 tokens" in told["Pairs"]
    assert "contains: 29. Pair 35 goes furthest" in told["Pairs"]
    assert told["Cache"].startswith("Safe")


def test_a_length_can_be_asked_for():
    near, far = (explain(cases.LLAMA, length).tables[0] for length in (2048, 16384))
    assert near.facts["new_pairs"] == 0
    assert far.facts["new_pairs"] == 64 - far.facts["turned_pairs"] > 0
    assert max(far.beyond) == far.facts["most_beyond"] > 1
    lengths = dict(far.words)["Lengths"]
    assert "You asked for 16,384 tokens." in lengths
    assert "target" not in lengths, "the file doesn't name this length"


def test_a_linear_scaling_without_the_original_length_is_unknown():
    table = explain(cases.scaled(cases.LLAMA, rope_type="linear", factor=4.0)).tables[0]
    assert table.long
    assert table.turned == []
    assert "files are written both ways" in dict(table.words)["Lengths"]


def test_layers_and_windows():
    told = dict(explain(cases.CASES["SmolLM3"][0]).words)
    assert "27 of 36 layers rotate" in told["Layers"]
    told = dict(explain(cases.GPT_OSS).words)
    assert "12 of 24 layers attend to a window of 128 tokens" in told["Windows"]
    tables = explain(cases.GEMMA3).tables
    assert [table.facts["base"] for table in tables] == [1e6, 1e4]
    assert tables[1].facts["near"] == 1024
    told = dict(explain(cases.CASES["a window that is on"][0]).words)
    assert "14 of 28 layers attend to a window of 4,096 tokens" in told["Windows"]


def test_arguments_are_checked():
    with pytest.raises(TypeError, match="config must be a text or a dictionary, got int"):
        explain(3)
    with pytest.raises(ValueError, match="length must be an integer >= 2 and <= 1000000000, got 1"):
        explain({}, 1)


# ---- The rules are data ----


def test_rules_are_json():
    text = json.dumps(RULES)
    assert json.dumps(json.loads(text)) == text


def test_rules_name_facts_that_exist():
    """A condition on a fact that nothing computes could never be true."""
    known = {"stopped", "asked", "on_cos", "reach_window"}
    for config, _ in cases.CASES.values():
        for table in explain(config).tables:
            known |= set(table.facts)
    known |= set(E.snippets.numbers({}))
    conditions = [doubt["when"] for doubt in RULES["doubts"]] + [one["when"] for one in RULES["snippets"]]
    conditions += [when for _, when, _ in RULES["ofFile"] + RULES["ofTable"]]
    named = {fact for condition in conditions for fact in facts_in(condition)}
    said = [doubt["says"] for doubt in RULES["doubts"]] + [one["code"] + one["note"] for one in RULES["snippets"]]
    said += [sentence for _, _, sentence in RULES["ofFile"] + RULES["ofTable"]]
    named |= {hole for sentence in said for hole in re.findall(r"\{(\w+)(?::code)?\}", sentence)}
    assert named - known == set()


def facts_in(condition):
    if isinstance(condition, str):
        return {condition}
    if not isinstance(condition, list):
        return set()
    word, *rest = condition
    if word == "among":
        return {rest[0]}
    return {fact for one in rest for fact in facts_in(one)}


@pytest.mark.parametrize("digits", [4, 6])
def test_numbers_are_near_what_they_say(digits):
    random = Random(1)
    for _ in range(300):
        found = random.choice([-1, 1]) * 10 ** random.uniform(-9, 20)
        assert float(language.number(found, digits)) == pytest.approx(found, rel=10.0 ** (1 - digits))


# ---- Comparison with transformers ----


@together("kind", FAMILIES)
def test_a_family_is_what_transformers_has(kind):
    """Compare what we assume for a family of models with transformers: base, share, width, window, and the layout in
    which the code rotates."""
    family, config = FAMILIES[kind], CONFIG_MAPPING[kind]()
    parameters = config.rope_parameters
    if "local_base" in family:
        assert parameters["sliding_attention"]["rope_theta"] == family["local_base"]
        parameters = parameters["full_attention"]
    if family.get("scaling"):
        parameters = CONFIG_MAPPING[kind](rope_scaling={"rope_type": "default"}).rope_parameters
        assert config.rope_parameters["rope_type"] != "default"
    assert parameters["rope_theta"] == family["base"]
    assert parameters.get("partial_rotary_factor", 1.0) == family.get("fraction", 1.0)
    assert parameters["rope_type"] == "default"
    if "head_dim" in family:
        assert config.head_dim == family["head_dim"]
    if not family.get("switched"):
        assert getattr(config, "sliding_window", None) == family.get("window")
    assert (getattr(config, "original_max_position_embeddings", None)) == family.get("original")
    if "full_every" in family:
        every = family["full_every"]
        assert [one == "full_attention" for one in config.layer_types] == [
            (i + 1) % every == 0 for i in range(config.num_hidden_layers)
        ]
    if "still_every" in family:
        every = family["still_every"]
        assert config.no_rope_layers == [int((i + 1) % every != 0) for i in range(config.num_hidden_layers)]
    assert layout(kind, config) == family["layout"]


def layout(kind, config):
    """Find the layout by running the code. A query has a single nonzero entry, and the layout follows from the entry to
    which the rotation moves it."""
    module = importlib.import_module(rotary_class(kind).__module__)
    if kind == "llama4_text":
        q = torch.zeros(1, 1, 1, 8)
        q[..., 0] = 1
        turned, _ = module.apply_rotary_emb(q, q, torch.polar(torch.ones(1, 1, 4), torch.ones(1, 1, 4)))
        return "interleaved" if turned[..., 1].abs().sum() > 0 else "half"
    if kind == "gpt_oss":
        q = torch.zeros(1, 1, 1, 8)
        q[..., 0] = 1
        cos = torch.ones(1, 1, 4)
        turned, _ = module.apply_rotary_pos_emb(q, q, cos, cos)
        return "interleaved" if turned[..., 1].abs().sum() > 0 else "half"
    if getattr(config, "rope_interleave", False):
        return "interleaved"
    swapped = module.rotate_half(torch.arange(4.0)).abs().tolist()
    return {(2.0, 3.0, 0.0, 1.0): "half", (1.0, 0.0, 3.0, 2.0): "interleaved"}[tuple(swapped)]


@together("name", cases.CASES)
def test_frequencies_are_those_of_transformers(name):
    config, _ = cases.CASES[name]
    for table in explain(config).tables:
        if table.long:
            compare(config, table)


@together("name", EXAMPLES)
def test_examples_of_the_page_are_those_of_transformers(name):
    (table,) = explain(EXAMPLES[name]).tables
    compare(json.loads(EXAMPLES[name]), table)


@pytest.mark.parametrize("kind", FAMILIES)
@pytest.mark.parametrize("scaling", [None, {"rope_type": "linear", "factor": 4.0}, cases.YARN])
def test_every_family_computes_what_transformers_does(kind, scaling):
    family = FAMILIES[kind]
    if scaling and "only" in family:
        pytest.skip("its code takes no such rope type")
    config = {
        "model_type": kind, "hidden_size": 512, "num_attention_heads": 8, "num_hidden_layers": 8,
        "max_position_embeddings": 16384, "qk_rope_head_dim": 64, "head_dim": 64, "rope_scaling": scaling,
    }  # fmt: skip
    tables = explain(config).tables
    assert [bool(table.long) for table in tables] == [not (family.get("scaling") and not scaling)] * len(tables)
    for table in tables:
        if table.long:
            compare(config, table)


def compare(config, table):
    for ours, theirs in theirs_of(config, table):
        assert ours == pytest.approx(theirs, rel=MIXED, abs=1e-35)


def test_what_was_checked_is_what_is_installed():
    from importlib.metadata import version

    assert CHECKED.split(",")[0] == TRANSFORMERS.split(",")[0] == f"transformers {version('transformers')}"


# ---- Snippets ----


def test_the_snippet_for_transformers_runs(tmp_path):
    small = {
        "vocab_size": 16,
        "intermediate_size": 16,
        "num_hidden_layers": 1,
        "hidden_size": 32,
        "num_attention_heads": 4,
    }
    config = cases.LLAMA | small
    CONFIG_MAPPING["llama"](**{key: one for key, one in config.items() if key != "model_type"}).save_pretrained(
        tmp_path
    )
    report = explain((tmp_path / "config.json").read_text())
    code = next(one["code"] for one in report.snippets if one["title"] == "Extend, in transformers")
    lines = [line for line in code.replace("path/to/model", str(tmp_path)).splitlines() if "AutoModel" not in line]
    space = {"AutoConfig": AutoConfig}
    exec("\n".join(lines), space)
    found = space["config"]
    assert found.max_position_embeddings == 16384
    rotary = rotary_class("llama")(found)
    again = explain(json.loads(found.to_json_string()))
    assert again.names() == []
    assert again.tables[0].long == pytest.approx(rotary.inv_freq.tolist(), rel=MIXED)
    assert again.tables[0].facts["factor"] == 4


def test_the_snippet_for_vllm_is_a_dictionary_that_we_read():
    report = explain(cases.QWEN, 131072)
    code = next(one["code"] for one in report.snippets if one["title"] == "Extend, in vLLM")
    override = json.loads(re.search(r"'(.*)'", code)[1])
    config = cases.without(cases.QWEN, "rope_theta") | override | {"max_position_embeddings": 131072}
    again = explain(config)
    assert again.names() == []
    assert again.tables[0].facts["kind"] == "yarn"
    assert again.tables[0].facts["target"] == 131072


def test_the_snippet_for_llama_cpp_divides_where_the_factor_multiplies():
    report = explain(cases.QWEN, 65536)
    one = next(one for one in report.snippets if one["title"] == "Extend, in llama.cpp, with YaRN")
    assert "-c 65536" in one["code"]
    assert "--rope-scale 2 --yarn-orig-ctx 32768" in one["code"]
    assert "--rope-freq-scale 0.5" in one["note"]


def test_the_snippet_with_a_higher_base_says_that_its_factor_falls_short():
    one = next(one for one in explain(cases.LLAMA).snippets if one["title"] == "Extend, in llama.cpp, by the base")
    base = float(re.search(r"--rope-freq-base (\S+)", one["code"])[1])
    theta = inv_freq(128)
    assert extrapolation.overshoot(theta, 4096, 16384, inv_freq(128, base)).max() > 1
    assert extrapolation.overshoot(theta, 4096, 16384, extrapolation.YaRN(4.0, 4096)(theta)[0]).max() < 1
    assert "with a factor of 4. " in one["note"]
    assert "doesn't reach 16,384 tokens: use the base for a larger factor, or YaRN" in one["note"]


def test_a_scaled_model_gets_no_snippet_that_scales_it_again():
    titles = {one["title"] for one in explain(cases.LLAMA31).snippets}
    assert "Extend further?" in titles
    assert not any(title.startswith("Extend, in") for title in titles)


def test_every_snippet_says_what_it_was_checked_against():
    for one in RULES["snippets"]:
        assert re.search(r"(20\d\d)", one["checked"])
        assert re.search(r"\d+\.\d+|docs\.|commit \w{8}|\d{5}", one["checked"])


# ---- Command line ----


def test_the_command_prints_the_report(tmp_path, capsys):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(cases.LLAMA31))
    assert main([str(file)]) == 0
    assert "The rule of Llama 3.1" in capsys.readouterr().out
    assert main([str(file), "--length", "200000"]) == 0
    assert "You asked for 200,000 tokens." in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    "text, name",
    [("", "empty"), ("<html>", "not-json"), ("[1]", "not-json"), ("{", "not-json"), ('{"a":' * 50, "too-deep")],
)
def test_the_command_names_what_it_cannot_read(text, name, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.StringIO(text))
    assert main(["-"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"{name}: ")
    assert told.err.count("\n") == 1


def test_the_command_names_what_is_no_file(tmp_path, capsys):
    (tmp_path / "bytes").write_bytes(b"\xff\xfe{")
    for path in (tmp_path / "none", tmp_path, tmp_path / "bytes"):
        assert main([str(path)]) == 2
        assert capsys.readouterr().err.startswith("unreadable: ")
    (tmp_path / "config.json").write_text("{}")
    assert main([str(tmp_path / "config.json"), "--length", "0"]) == 2
    assert capsys.readouterr().err.startswith("bad-argument: length must be")


def test_the_module_can_be_run(tmp_path):
    file = tmp_path / "config.json"
    file.write_text("no")
    done = subprocess.run(
        [sys.executable, "-m", "ropebook.explain", str(file)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "not-json: the text is not JSON, which begins with {\n"


# ---- Hostile files ----


def test_ten_thousand_mutated_files():
    """Each file must lead to a named error, to "unknown", or to numbers. Every eighth set of numbers is compared with
    the numbers from transformers."""
    random, ends = Random(2026), Counter()
    errors = {"not-json", "too-deep", "too-long", "empty"}
    for _ in range(10_000):
        text = cases.mutated(random)
        report = explain(text)
        if report.error:
            name, _, said = report.error.partition(": ")
            assert name in errors, text
            assert said
            ends[name] += 1
            continue
        known = [table for table in report.tables if table.long]
        ends["numbers" if known else "unknown"] += 1
        if not known:
            assert report.findings or dict(report.words).get("Model"), text
        elif ends["numbers"] % 8 == 0:
            for table in known:
                compare(json.loads(text), table)
    assert min(ends[name] for name in ("numbers", "unknown", "not-json")) > 500
    assert ends["too-deep"] > 20


@together(
    "text, error",
    [
        ("[" * 1_000_000, "not-json"),
        ('{"a": ' + "[" * 999_000, "too-deep"),
        ("{" + " " * 1_000_001, "too-long"),
        ('{"rope_theta": NaN}', "not-json"),
        ('{"rope_theta": 1e5} trailing', "not-json"),
        ("\ufeff", "empty"),
        ("<script>alert(1)</script>", "not-json"),
    ],
)
def test_what_is_no_configuration_is_named(text, error):
    assert explain(text).error.partition(":")[0] == error


def test_numbers_of_any_size_are_read():
    for number in ("1" * 5000, "1e999", "-0", "1E-400", "123456789012345678901234567890"):
        report = explain('{"model_type": "llama", "rope_theta": %s}' % number)  # noqa: UP031
        assert report.names("wrong")[0] in ("bad-value", "base-too-small")


def test_brackets_in_texts_do_not_nest():
    assert parsed(json.dumps({"a": "[" * 100 + '\\"' + "{" * 100})) == {"a": "[" * 100 + '\\"' + "{" * 100}


def test_texts_of_the_file_are_cut_and_printable():
    report = explain({"model_type": "a\x00\n" + "b" * 500, "rope_\x1b[31m": 1})
    told = " ".join(said for _, _, said in report.findings)
    assert "\x00" not in told
    assert "\x1b" not in told
    assert "b" * 100 not in told
