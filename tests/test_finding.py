"""Tests of the search: what its index contains, and which section comes first when readers search in their own
words."""

from __future__ import annotations

import importlib
import json
import re
from types import SimpleNamespace

import pytest
from docutils import nodes
from myst_nb.ext.glue.utils import PendingGlueReference
from pybtex.database import Person
from sphinx import addnodes

from tests import test_small_site
from tests.explorers import js
from tests.test_small_site import Built
from tests.together import together
from tools import assets
from tools.paths import BOOK, ROOT

PAGES = {
    **test_small_site.PAGES,
    "steps": "# Steps\n\n```{try} sweep\nDoes it fall?\nanswers: It rises | *It swings\nstart: base=1\n"
    "show: base=10\ngoal: base>=10\nwhy: Each pair has a period.\n```\n",
    "decay": "# Decay\n\nIt falls, {eq}`eq-decay-ones`, by {eq}`eq-decay-ones`, as $x^2$ does "
    "(see {eq}`eq-decay-ones`), as in {eq}`eq-decay-ones`; see {eq}`eq-decay-ones`.\n\n"
    "[Shown here](#below) ·\n[the thread](https://example.org)\n\n"
    "Explained under [Below](#below).\n\n"
    "## The *base*\n\nWhat `rope_theta` sets.\n\n### Below\n\nDeeper.\n\n```python\nrotate_half(query_states)\n```\n"
    + test_small_site.equation("eq-decay-ones", "identity")
    + test_small_site.equation("eq-decay-bound"),
}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(test_small_site, "OWN", (*test_small_site.OWN, "finding", "steps"))
        built = Built(tmp_path_factory.mktemp("finding"), PAGES, monkeypatch)
    text = (built.out / "sections.js").read_text(encoding="utf-8")
    assert not (built.out / "searchindex.js").exists(), "nobody asks for Sphinx's own"
    assert (built.out / "search.html").exists()
    return json.loads(re.fullmatch(r"globalThis\.sections = (.*);\n", text)[1])


def test_every_section_stands_in_the_index_with_its_own_prose_and_names(data):
    pages = {address: number for number, (address, *_) in enumerate(data["pages"])}
    assert data["pages"][pages["book/decay_base.html"]][1] == "2.1. Which base?"
    found = [entry[1:] for entry in data["sections"] if entry[0] == pages["book/decay.html"]]
    assert found[0][:2] == ["", "Decay"]
    assert found[0][2] == "It falls, by the equation, as x² does."
    assert found[1][:3] == [0, "The base", "What rope_theta sets."]
    assert found[2][:2] == [0, "Below"]
    assert found[2][2].startswith("Deeper. a = b Text behind the equation.")
    assert found[2][3] == "eq-decay-bound eq-decay-ones query_states rotate_half"
    ledger = [entry[1] for entry in data["sections"] if entry[0] == pages["book/ledger.html"]]
    assert ledger == [""], "it lists what stands elsewhere"


def test_a_wrong_answer_to_a_figures_question_is_not_found(data):
    [page] = [number for number, (address, *_) in enumerate(data["pages"]) if address == "book/steps.html"]
    [said] = [entry[3] for entry in data["sections"] if entry[0] == page]
    assert said == "Try this Does it fall? It swings. Each pair has a period."


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


@pytest.mark.parametrize("read", ["synonyms", "keywords"])
def test_a_line_that_is_none_is_told(finding, tmp_path, read):
    (tmp_path / "wrong.yml").write_text("base: 3\n")
    with pytest.raises(ValueError, match="got 'base': 3"):
        getattr(finding, read)(tmp_path / "wrong.yml")


def test_each_page_has_a_line_of_keywords_and_nothing_else_has(finding):
    pages = set(re.findall(r"file: (\S+)", (ROOT / "_toc.yml").read_text())) | {"book/intro"}
    assert {page for page, words in finding.keywords().items() if words} == pages


def test_keywords_stand_beside_their_page(data, finding):
    keywords = {address: words for address, _, _, words in data["pages"]}
    assert keywords["book/decay.html"] == finding.keywords()["book/decay"]


# ---- Ranking ----

SECTIONS = [
    ["", "Rotary position embedding", "Queries and keys are turned.", "rotate_half"],
    ["cache", "Does a cache need the keys again?", "Keys are kept, each turned once.", ""],
    ["masks", "Masks and padding", "Padded rows hide what is no token. A cache has none.", ""],
    ["base", "Why is the base 10,000?", "It was taken over.", ""],
    ["root", "Why √d?", "Scores grow.", ""],
]
SMALL = {
    "pages": [["book/page.html", "A page", 1, ""]],
    "sections": [[0, *section] for section in SECTIONS],
    "synonyms": [["rope_theta", "base"], ["past_key_values", "cache"], ["kv cache", "cache"]],
}
PLACES = "return input.map((query) => ranked(query, data, index).list.map(({ place }) => place));"
ASK = """
const { indexed, question, ranked, snippet, split, summary, words } = globalThis.finding;
const data = globalThis.sections;
const index = indexed(data);
"""


def with_search(data: dict, body: str, value: object) -> object:
    """Run the statements `body` with the search page's script and index, and return their value. The statements can
    read `value` as `input`."""
    return js.evaluate(f"globalThis.sections = {json.dumps(data)};\n{assets.search_script()}", ASK + body, value)


def pages_for(*asked: str, data: dict) -> list[list[list[str]]]:
    """Return the pages found for each question, best first. Each page is given as a list of its sections' titles, best
    first."""
    places = "return input.map((query) => ranked(query, data, index).list.map(({ place, more }) => [place, ...more]));"
    found = with_search(data, places, asked)
    return [[[data["sections"][place][2] for place in page] for page in pages] for pages in found]


def ask(*asked: str, data: dict | None = None) -> list[list[str]]:
    """Return the titles of the sections found for each question, page by page."""
    return [[title for page in pages for title in page] for pages in pages_for(*asked, data=data or SMALL)]


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


def small(
    *sections: tuple[str, str, str],
    pages: tuple[int, ...] = (),
    synonyms: dict | None = None,
    keywords: tuple[str, ...] = (),
) -> dict:
    """Return an index of the sections (title, prose, names). All of them are on one page, unless ``pages`` gives a page
    number for each section. ``keywords`` belong to pages."""
    pages = pages or (0,) * len(sections)
    keywords = keywords or ("",) * (max(pages) + 1)
    return {
        "pages": [[f"book/page{number}.html", "", 1, keywords[number]] for number in range(max(pages) + 1)],
        "sections": [
            [page, title, *section] for page, section in zip(pages, sections, strict=True) for title in section[:1]
        ],
        "synonyms": list((synonyms or {}).items()),
    }


# Readers' own words, and the book's words for the same things.
FORMS = {
    "plurals": "One plural.",
    "frequency": "Frequencies.",
    "monotone": "It falls monotonically.",
    "uniqueness": "A unique code.",
    "extrapolate": "Extrapolation.",
    "scales": "Scaling.",
    "normalise": "Normalised.",
    "3d": "In 3D.",
    "10000": "A base of 10,000.",
    "10,000": "A base of 10000.",
    "naive": "Naïve.",
    "symmetry": "Symmetric.",
    "multiply": "Multiplication.",
    "normalize": "Normalised.",
    "normalization": "Normalisation.",
    "neighbour": "Neighbors.",
    "behavior": "Behaviour.",
    "center": "Centred.",
    "self extend": "SelfExtend.",
    "hugging face": "Huggingface.",
    "finetuning": "Fine-tuning.",
    "kvcache": "The KV cache.",
}


@pytest.mark.parametrize("written", FORMS)
def test_plurals_and_other_forms_of_a_word_are_found(written):
    data = small(("This", FORMS[written], ""), ("Another", "Something else.", ""))
    assert ask(written, data=data) == [["This"]]


@together("name", ["rope_freq_scale", "inv_freq", "torch.compile", "eq-decay-ones"])
def test_a_name_that_the_book_has_comes_before_what_is_meant_by_it(name):
    other = ("Linear scaling of the factor", "Linear scaling: the factor, the scaling and the factor again.", "")
    data = small(
        *(other, other, other, ("Somewhere", "Long prose. " * 50, name)),
        pages=(0, 1, 2, 3),
        synonyms={name: "linear scaling factor"},
    )
    assert ask(name, data=data)[0][0] == "Somewhere"
    assert len(ask(name, data=data)[0]) == 4, "and what is meant is found too"


def test_a_page_is_found_once_with_its_further_sections_below():
    same = ("A long decay", "Decay and decay.", "")
    data = small(*(same,) * 5, ("Elsewhere decay", "It falls.", ""), pages=(0, 0, 0, 0, 0, 1))
    assert pages_for("decay", data=data) == [[["A long decay"] * 4, ["Elsewhere decay"]]]


def test_a_section_that_has_little_of_a_question_is_not_shown_below_one_that_has_all():
    data = small(("A long decay", "Decay and decay.", ""), ("Else", "A word, and at last decay.", ""))
    assert pages_for("long decay", data=data) == [[["A long decay"]]]


def test_a_page_is_found_by_the_words_of_the_field():
    said = ("Why fast?", "Speed.", "")
    data = small(said, said, pages=(0, 1), keywords=("", "latency, kernel fusion"))
    assert with_search(data, PLACES, ["latency", "fusion of kernels", "speed latency"]) == [[1], [1], [1, 0]]


def test_what_the_page_says_itself_counts_more_than_a_single_keyword():
    data = small(("Latency", "Latency.", ""), ("Speed", "Speed.", ""), pages=(0, 1), keywords=("", "latency"))
    assert with_search(data, PLACES, ["latency"]) == [[0, 1]]


def test_neighbouring_words_are_looked_for_side_by_side():
    apart = ("One", "Linear, and then something else: attention.", "")
    data = small(apart, ("Two", "Something else, and then: linear attention.", ""), pages=(0, 1))
    assert with_search(data, PLACES, ["linear attention", "attention linear"]) == [[1, 0], [0, 1]]


def test_words_that_say_nothing_are_not_looked_for():
    data = small(("One", "What this was and does.", ""), ("Two", "A cache.", ""), pages=(0, 1))
    assert with_search(data, PLACES, ["what does this cache do", "does this"]) == [[1], [0]]


SUMMARY = """return input.map((query) => summary(ranked(query, data, index)));"""


def test_the_page_says_when_it_has_little():
    asked = [
        "cache",
        "10000",
        "cache shampoo conditioner",
        "rotate_half sqrt padding 10000",
        "padding_shampoo",
        "qqzzqq",
    ]
    apart_too = {**SMALL, "pages": SMALL["pages"] * 5, "sections": [[i, *one] for i, one in enumerate(SECTIONS)]}
    good, one, half, apart, other, none = with_search(apart_too, SUMMARY, asked)
    assert good == "2 pages"
    assert one == "1 page"
    assert half.startswith("Few good matches.")
    assert apart.startswith("Few good matches.")
    assert other.startswith("Few good matches.")
    assert none.startswith("Nothing was found.")


def test_an_excerpt_keeps_numbers_and_formulas_and_marks_what_was_asked():
    said = "The frequency θᵢ = b^(−2i/d) falls to 0.0001 for a base of 10,000 there."
    text = "Nothing yet. " * 40 + said + " And on." * 40
    body = """const { terms } = ranked("frequencies base 10000", data, index);
    const said = snippet(data.sections[0][3], terms);
    return [said, split(said, terms).filter(({ hit }) => hit).map(({ piece }) => piece)];"""
    shown, marked = with_search(small(("A title", text, "")), body, None)
    assert said in shown
    assert shown.startswith("… ")
    assert shown.endswith(" …")
    assert len(shown) < 300
    assert marked == ["frequency", "base", "10,000"]


# ---- Numbers, papers ----


@pytest.mark.parametrize(("kept", "said"), [({"share": 0.4183}, "Kept 0.42 of 64."), ({}, "Kept … of 64.")])
def test_a_number_of_another_page_is_read_where_its_cells_left_it(finding, tmp_path, kept, said):
    data = {key: {"data": {"text/plain": str(value)}, "metadata": {}} for key, value in kept.items()}
    (tmp_path / "decay.glue.json").write_text(json.dumps(data))
    glued = PendingGlueReference(refdoc="decay", key="share", gtype="text", inline=True, fmt_spec=".2f")
    text = nodes.paragraph("", "", nodes.Text("Kept "), glued, nodes.Text(" of 64."))
    assert finding._prose([text], finding.numbers(str(tmp_path)), {}) == said


def test_a_paper_is_found_on_the_page_that_lists_it(finding):
    def cited(page: str) -> SimpleNamespace:
        fields = {"title": "{RoFormer}: rotary position", "year": "2021"}
        whole = "Su. RoFormer: Rotary Position. 2021. URL: https://a.test/b. arXiv:2104.09864."
        text = SimpleNamespace(render_as={"text": whole}.get)
        return SimpleNamespace(
            key=page[-3:],
            citation_id="id3",
            bibliography_key=SimpleNamespace(docname=page),
            entry=SimpleNamespace(fields=fields, persons={"author": [Person("Jianlin, Su"), Person("Lu, Yu")]}),
            formatted_entry=SimpleNamespace(text=text),
        )

    env = SimpleNamespace(domaindata={"cite": {"citations": [cited("book/references"), cited("book/other")]}})
    found = list(finding.papers(env, "book/references"))
    assert found == [("id3", "RoFormer: rotary position", "Su. 2021. arXiv:2104.09864.", "")]
    assert finding.authors(env) == {"ces": "Jianlin et al., 2021", "her": "Jianlin et al., 2021"}


def test_a_paper_is_cited_by_its_authors_and_a_source_is_not_prose(finding):
    cite = addnodes.pending_xref("", nodes.inline("", "su2021,x"), ids=["id1"], refdomain="cite", reftarget="su2021, x")
    said = nodes.paragraph("", "", nodes.Text("As in "), cite, nodes.Text("."))
    source = nodes.paragraph("", "", nodes.literal("", "YaRN.__call__"), nodes.Text(" · ropebook/yarn.py, line\u00a03"))
    assert finding._prose([said, source], None, {"su2021": "Su et al., 2021"}) == "As in Su et al., 2021; x."
