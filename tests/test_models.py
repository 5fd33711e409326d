"""Tests of the field guide. Its rows and sources must be consistent, impossible values must be refused, and the table
must show what the file says."""

from __future__ import annotations

import copy
import json
import re
from html.parser import HTMLParser
from urllib.parse import unquote

import pytest

from ropebook import models as M
from ropebook.explain import explain
from ropebook.models import file, guide
from tests.explorers import js
from tests.links import lost
from tests.together import together
from tools.paths import BOOK

PAGE = "models.md"
ROWS = M.checkpoints()
KINDS = {row.kind for row in ROWS}
# Prefixes that the names of all checkpoints mentioned in the book begin with.
TALKED_OF = (
    "GPT-J", "GPT-NeoX", "LLaMA-", "Llama-2", "Llama-3", "Llama-4", "CodeLlama", "Mistral-", "Qwen2-", "Qwen3-Next",
    "Gemma-2B", "Gemma-2-", "Gemma-3-", "Gemma-4-", "Phi-", "DeepSeek-V2", "DeepSeek-V3", "DeepSeek-V4", "gpt-oss",
    "SmolLM2", "SmolLM3", "OLMo-", "Kimi-", "Command", "ModernBERT", "Qwen2-VL", "Qwen3-VL", "Pixtral", "DINOv3",
)  # fmt: skip


@pytest.fixture
def data() -> dict:
    return json.loads(file.FILE.read_text(encoding="utf-8"))


def row_of(data: dict, name: str) -> dict:
    return next(one for one in data["checkpoints"] if one["name"] == name)


def test_enough_rows_count_and_they_are_of_many_kinds():
    assert len(M.counted()) >= 40
    assert {"text", "vision", "video", "audio and text", "encoder"} <= KINDS
    years = {row.published.value[:4] for row in M.counted() if row.published != M.UNKNOWN}
    assert {"2021", "2026"} <= years <= {f"202{digit}" for digit in range(1, 7)}


@together("beginning", TALKED_OF)
def test_the_models_that_the_book_talks_of_are_there_and_count(beginning):
    assert any(row.name.startswith(beginning) and row.counts for row in ROWS)


def test_two_thirds_is_what_counts():
    values = dict.fromkeys(M.COLUMNS, M.UNKNOWN)
    names = list(values)
    for known in range(len(names) + 1):
        filled = values | dict.fromkeys(names[:known], M.Value(1, "key"))
        one = M.Checkpoint("name", "maker", "text", M.UNKNOWN, filled)
        assert one.sourced == known
        assert one.counts == (3 * known >= 2 * len(names))


def test_every_source_is_used_and_every_one_that_is_named_exists(data):
    text = json.dumps(data["checkpoints"])
    named = set(re.findall(r'"source": "([^"]+)"', text))
    assert named == data["sources"].keys() == M.sources().keys()


def test_no_source_stands_twice():
    # One file may be the source for several models, but it counts only once.
    addresses = [source.address for source in M.sources().values()]
    assert sorted(set(addresses)) == sorted(addresses)


def test_shares_and_stretched_lengths_are_consistent():
    yarn = [row for row in ROWS if row in M.stretched()["yarn"]]
    assert len(yarn) > 10
    for row in yarn:
        scaling = row.of("scaling")
        assert scaling["factor"] * scaling["original"] == row.of("shipped"), row.name
    for row in M.known("rotates", "head_dim"):
        turned = row.share * row.of("head_dim")
        assert turned % 2 == 0
        assert 0 < row.share <= 1 or row.of("layout") == "none"
        assert row.of("head_dim") % 2 == 0


def test_models_agree_with_those_of_the_chapter_on_decay():
    from ropebook import decay

    guide_of = {row.name: row for row in ROWS}
    pairs = {
        "GPT-NeoX-20B": "GPT-NeoX-20B", "LLaMA 7B": "LLaMA-7B", "Llama 2 7B": "Llama-2-7B", "Llama 3 8B": "Llama-3-8B",
        "Mistral 7B": "Mistral-7B-v0.1", "Gemma 7B": "Gemma-7B", "Gemma 3 4B (global layers)": "Gemma-3-4B",
    }  # fmt: skip
    models = {model.name: model for model in decay.MODELS}
    for ours, theirs in pairs.items():
        model, row = models[ours], guide_of[theirs]
        assert (model.dim, model.head_dim, model.base) == (row.of("rotates"), row.of("head_dim"), row.of("base"))
    long = {model.name: model for model in decay.LONG_MODELS}
    pairs = {"Llama 3.1 8B": "Llama-3.1-8B", "Gemma 3 4B": "Gemma-3-4B", "gpt-oss-20b": "gpt-oss-20b"}
    for ours, theirs in pairs.items():
        model, row = long[ours], guide_of[theirs]
        assert (model.base, model.context) == (row.of("base"), row.of("shipped"))
        assert model.scaling["factor"] == row.of("scaling")["factor"]


WRONG = [
    ("base", 1, "a number > 1 or 'none'"),
    ("base", True, "a number > 1 or 'none'"),
    ("layout", "neox", "must be one of 'interleaved', 'half', 'none'"),
    ("head_dim", 127, "an even integer >= 2"),
    ("rotates", 63, "even, and 0 where nothing rotates"),
    ("rotates", 0, "even, and 0 where nothing rotates"),
    ("rotates", 130, "at most head_dim = 128"),
    ("trained", 1, "an integer >= 2"),
    ("window", -1, "an integer >= 0"),
    ("axes", 4, "an integer >= 1 and <= 3"),
    ("unturned", "some", "an integer >= 0"),
    ("sinks", 1, "True or False"),
    ("scaling", "yarn", "'none' or a type"),
    ("scaling", {"type": "ntk"}, "must be one of 'linear'"),
    ("scaling", {"type": "yarn", "factor": 0.5}, "a number >= 1"),
    ("scaling", {"type": "yarn", "factor": 2, "beta": 1}, "type, factor and original"),
    ("scaling", {"type": "yarn", "factor": 4, "original": 8192}, "factor · original = 32768"),
]


@together(("column", "value", "message"), WRONG)
def test_values_that_cannot_be_are_refused(data, column, value, message):
    data = copy.deepcopy(data)
    row_of(data, "Llama-3-8B")["values"][column]["value"] = value
    with pytest.raises((ValueError, TypeError), match=re.escape(message)) as refused:
        M.read(data)
    assert "Llama-3-8B" in str(refused.value)
    assert column.split("_")[0] in str(refused.value) or column == "scaling"


def test_a_note_may_say_why_a_length_is_not_what_yarn_reaches(data):
    scaling = row_of(data, "Llama-3-8B")["values"]["scaling"]
    scaling |= {"value": {"type": "yarn", "factor": 4, "original": 8192}, "note": "the rest is extrapolated"}
    assert len(M.read(data)[0]) == len(ROWS)


def refused(data: dict, message: str) -> None:
    with pytest.raises((ValueError, TypeError, KeyError), match=message):
        M.read(data)


def test_rows_and_sources_that_do_not_fit_are_refused(data):
    def changed(change) -> dict:
        other = copy.deepcopy(data)
        change(other, row_of(other, "GPT-J-6B"))
        return other

    refused(changed(lambda all, row: row["values"].pop("base")), "GPT-J-6B: values must be")
    refused(
        changed(lambda all, row: row["values"]["base"].update(source="memory")), "must be a known key, got 'memory'"
    )
    refused(changed(lambda all, row: row.update(name="GPT-NeoX-20B")), "must differ in name, got 'GPT-NeoX-20B'")
    refused(changed(lambda all, row: row.update(kind="speech")), "kind must be one of")
    refused(changed(lambda all, row: row["published"].update(value="2020-05")), "2021 to 2026, got '2020-05'")
    refused(changed(lambda all, row: all["sources"]["llama3-paper"].update(date="July")), "YYYY-MM or YYYY-MM-DD")
    refused(changed(lambda all, row: all["sources"]["llama3-paper"].update(address="a book")), "must be https")
    refused(changed(lambda all, row: all["sources"]["llama3-paper"].update(dated="seen")), "must be one of 'published'")
    spare = {"title": "t", "address": "https://example.org", "date": "2024-01", "dated": "read"}
    refused(changed(lambda all, row: all["sources"].update(spare=spare)), r"got \['spare'\] unused")
    same = {"column": "base", "value": 10000, "source": "gpt-j-layers", "says": "the same"}
    refused(changed(lambda all, row: row.update(disagreements=[same])), "must be other than 10000")


def test_counts_are_of_known_values_only():
    few = [row for row in ROWS if row.name in ("GPT-J-6B", "Llama-3-8B", "Qwen-1.8B")]
    assert M.layouts(few) == {"interleaved": 1, "half": 1}  # the third row isn't counted
    (group,) = M.bases((1, 9000), few)
    assert group[2:] == (2, 10_000, 255_000, 500_000)
    short, long = M.bases((1, 2048, 8192), few)  # a limit belongs to the range below it
    assert (short[1:4], long[1:4]) == ((2048, 1, 10_000), (8192, 1, 500_000))
    assert M.known("base", "trained", rows=few) == few[:2]
    assert {name: len(found) for name, found in M.stretched(few).items()} == {"none": 2}
    with pytest.raises(ValueError, match="column must be one of"):
        M.known("theta")
    with pytest.raises(ValueError, match="two or more that rise"):
        M.bases((4096, 4096))


class Rows(HTMLParser):
    """Parser that collects the cells in the rows of a table, and the ids and fragments on a page."""

    def __init__(self, text: str):
        super().__init__()
        self.rows, self.ids, self.links, self.keys = [], [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "tr":
            self.rows.append([])
            self.keys.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.keys[-1].append(attrs.get("data-sort"))
        if "id" in attrs:
            self.ids.append(attrs["id"])
        if tag == "a":
            self.links.append(attrs["href"])

    def handle_data(self, data):
        if self.rows and self.rows[-1]:
            self.rows[-1][-1] += data


def test_the_table_shows_every_row_and_says_what_it_is_sorted_by():
    table = Rows(M.Guide()._repr_html_())
    heads, *rows = table.rows
    assert len(rows) == len(ROWS)
    assert {len(row) for row in table.rows} == {len(heads)} == {len(guide.columns()) + 1}
    row = dict(zip(heads, rows[[one.name for one in ROWS].index("DeepSeek-V3")], strict=True))
    assert row["rotates"] == "64 of 192*"
    assert row["shipped length"] == "163,840†"
    assert row["scaling"] == "YaRN × 40"
    for row, shown, keys in zip(ROWS, rows, table.keys[1:], strict=True):
        for cell, key in zip(shown[1:], keys[1:], strict=True):
            assert cell.startswith(M.UNKNOWN) == (key is None), row.name


def test_every_row_leads_to_its_sources():
    origins = Rows(M.Origins()._repr_html_())
    assert len(set(origins.ids)) == len(origins.ids) == len(ROWS)
    table = Rows(M.Guide()._repr_html_())
    inside = [link.removeprefix("#") for link in table.links if link.startswith("#")]
    assert inside == origins.ids
    assert set(origins.links) == {source.address for source in M.sources().values()}


def test_names_are_text_in_the_page():
    values = dict.fromkeys(M.COLUMNS, M.UNKNOWN)
    evil = M.Checkpoint("<b>&", "<i>", "text", M.UNKNOWN, values)
    html = M.Guide([evil])._repr_html_() + M.Origins([evil])._repr_html_()
    assert "<b>" not in html
    assert "&lt;b&gt;&amp;" in html
    assert "<i>" not in html


def test_rows_lead_to_the_explainer_with_their_numbers():
    led = {row.name: M.explained(row) for row in ROWS}
    assert "Explain Llama-3.1-8B" in M.Guide()._repr_html_()
    assert sum(map(bool, led.values())) > 70
    for row in ROWS:
        if not led[row.name]:
            continue
        start, config = led[row.name].split("=", 1)
        assert start == "explain.html#explain.config"
        report = explain(unquote(config))
        found = report.tables[0].facts
        facts = {"base": row.of("base"), "head_dim": row.of("head_dim"), "rotary_dim": row.of("rotates")}
        assert {name: found[name] for name in facts} == facts
        assert found["maximum"] == row.of("shipped")
        # the explainer may lack only those facts for which the guide has no column
        assert set(report.names()) <= {"no-model-type"}, row.name


@together("name", ["Kimi-K3", "Phi-3-mini-128k-instruct", "Qwen-1.8B"])
def test_rows_whose_numbers_make_no_configuration_lead_nowhere(name):
    assert M.explained(next(row for row in ROWS if row.name == name)) == ""


def test_the_script_sorts_numbers_as_numbers_and_the_unknown_last():
    script = (BOOK / "_static" / "guide.js").read_text(encoding="utf-8")
    sort = """const { compared } = globalThis.guide;
    const keys = input.keys.map((key) => key ?? undefined);
    return keys.map((_, k) => k).sort((a, b) => compared(keys[a], keys[b], input.falling));"""
    for keys, rising, falling in (
        (["10000", None, "9000", "1e6"], [2, 0, 3, 1], [3, 0, 2, 1]),
        (["half", "interleaved", None], [0, 1, 2], [1, 0, 2]),
        (["2024-07", "2023", "2025-01"], [1, 0, 2], [2, 0, 1]),
    ):
        assert js.evaluate(script, sort, {"keys": keys, "falling": False}) == rising
        assert js.evaluate(script, sort, {"keys": keys, "falling": True}) == falling


def test_the_script_finds_rows_that_hold_every_word():
    script = (BOOK / "_static" / "guide.js").read_text(encoding="utf-8")
    ask = "return input.map((asked) => globalThis.guide.holds('DeepSeek-V3 2024-12 YaRN × 40', asked));"
    assert js.evaluate(script, ask, ["", "yarn deepseek", " 40 ", "yarn llama"]) == [True, True, True, False]


def test_words_of_values():
    assert guide.text("scaling", {"type": "longrope", "original": 4096}) == "LongRoPE"
    assert guide.text("scaling", "none") == guide.text("window", 0) == "none"
    assert guide.text("base", 999_999.4420358813) == "999,999"
    assert guide.text("unturned", "all") == "all"


def test_links_of_the_page_land():
    assert lost(PAGE) == []
