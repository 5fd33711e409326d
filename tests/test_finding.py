"""The search: what its index holds, and which section a reader's words lead to first."""

from __future__ import annotations

import importlib
import json
import re
import subprocess

import pytest
from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference

from tests import test_small_site
from tests.test_small_site import Built
from tools import assets
from tools.paths import BOOK, ROOT

SCRIPT = BOOK / "_static" / "search.js"
PAGES = {
    **test_small_site.PAGES,
    "decay": "# Decay\n\nIt falls, {eq}`eq-decay-ones`, by {eq}`eq-decay-ones`, as $x^2$ does.\n\n"
    "## The *base*\n\nWhat `rope_theta` sets.\n\n### Below\n\nDeeper.\n\n```python\nrotate_half(query_states)\n```\n"
    + test_small_site.equation("eq-decay-ones", "identity")
    + test_small_site.equation("eq-decay-bound"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(test_small_site, "OWN", (*test_small_site.OWN, "finding"))
        built = Built(tmp_path_factory.mktemp("finding"), PAGES, monkeypatch)
    text = (built.out / "sections.js").read_text(encoding="utf-8")
    assert not (built.out / "searchindex.js").exists(), "nobody asks for Sphinx's own"
    assert (built.out / "search.html").exists()
    return json.loads(re.fullmatch(r"globalThis\.sections = (.*);\n", text)[1])


def test_every_section_stands_in_the_index_with_its_own_prose_and_names(data):
    pages = {address: number for number, (address, _, _) in enumerate(data["pages"])}
    assert data["pages"][pages["book/decay_base.html"]][1] == "2.1. Which base?"
    found = [entry[1:] for entry in data["sections"] if entry[0] == pages["book/decay.html"]]
    assert found[0] == ["", "Decay", "It falls, by the equation, as … does.", ""]
    assert found[1][:3] == ["the-base", "The base", "What rope_theta sets."]
    assert found[2][:2] == ["below", "Below"]
    assert "query_states rotate_half" in found[2][3]
    assert "book/ledger.html" not in pages, "it lists what stands elsewhere"


def test_a_term_is_found_by_its_name(data):
    [term] = [entry for entry in data["sections"] if entry[1] == "term-head"]
    assert term[2:4] == ["head", "One of several heads; see key."]


@pytest.fixture
def finding(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    return importlib.import_module("finding")


def test_each_synonym_means_something_that_the_book_says(finding):
    text = "\n".join(path.read_text(encoding="utf-8") for path in BOOK.glob("*.md")).lower()
    for written, meant in finding.synonyms():
        assert written != meant
        for word in meant.split():
            assert word.rstrip("s") in text, f"{written}: {word}"


def test_a_line_of_synonyms_that_is_none_is_told(finding, tmp_path):
    (tmp_path / "wrong.yml").write_text("base: 3\n")
    with pytest.raises(ValueError, match="got 'base': 3"):
        finding.synonyms(tmp_path / "wrong.yml")


# ---- Which comes first ----

SECTIONS = [
    ["", "Rotary position embedding", "Queries and keys are turned.", "rotate_half"],
    ["cache", "Does a cache need the keys again?", "Keys are kept, each turned once.", ""],
    ["masks", "Masks and padding", "Padded rows hide what is no token. A cache has none.", ""],
    ["base", "Why is the base 10,000?", "It was taken over.", ""],
    ["root", "Why √d?", "Scores grow.", ""],
]
SMALL = {
    "pages": [["book/page.html", "A page", 1]],
    "sections": [[0, *section] for section in SECTIONS],
    "synonyms": [["rope_theta", "base"], ["past_key_values", "cache"], ["kv cache", "cache"]],
}
ASK = """
globalThis.sections = DATA;
SCRIPT
const { indexed, ranked } = globalThis.finding;
const index = indexed(globalThis.sections);
const found = ASKED.map((query) => ranked(query, globalThis.sections, index).map(([place]) => place));
process.stdout.write(JSON.stringify(found));
"""


def ask(*asked: str) -> list[list[str]]:
    """The titles of the sections that are found, best first, for each of the questions."""
    code = ASK.replace("SCRIPT", SCRIPT.read_text(encoding="utf-8"), 1)
    code = code.replace("DATA", json.dumps(SMALL), 1).replace("ASKED", json.dumps(asked), 1)
    done = subprocess.run([assets.node(), "-"], input=code, capture_output=True, text=True, cwd=ROOT, check=True)
    return [[SECTIONS[place][1] for place in places] for places in json.loads(done.stdout)]


QUERIES = {
    "cache": "Does a cache need the keys again?",
    "cahce": "Does a cache need the keys again?",
    "paddding": "Masks and padding",
    "padded": "Masks and padding",
    "rotate_half": "Rotary position embedding",
    "rotate half": "Rotary position embedding",
    "rotray embeding": "Rotary position embedding",
    "posit": "Rotary position embedding",
    "rope_theta": "Why is the base 10,000?",
    "10000": "Why is the base 10,000?",
    "past_key_values": "Does a cache need the keys again?",
    "KV cache padding": "Masks and padding",
    "sqrt d": "Why √d?",
    "why is the base so": "Why is the base 10,000?",
}


def test_words_lead_to_the_section_that_is_meant():
    found = ask(*QUERIES)
    assert {query: titles[0] if titles else None for query, titles in zip(QUERIES, found, strict=True)} == QUERIES


def test_what_is_nowhere_is_not_found_and_a_title_counts_more_than_a_mention():
    nothing, cache, empty = ask("qqzzqq", "cache", "")
    assert nothing == empty == []
    assert cache == ["Does a cache need the keys again?", "Masks and padding"]


def test_a_number_of_another_page_is_not_known_here(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "_ext"))
    finding = importlib.import_module("finding")
    text = nodes.paragraph("", "", nodes.Text("Kept "), PendingGlueReference(), nodes.Text(" of 64."))
    assert finding._prose([text]) == "Kept … of 64."
