"""Tests of a small book with one depth page, which is built like the site. They check its numbers, seals and terms, and
pages that have moved."""

from __future__ import annotations

import gc
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from docutils import nodes
from myst_nb.core.read import read_myst_markdown_notebook
from nbformat.v4 import new_output
from sphinx.application import Sphinx
from sphinx.util.docutils import docutils_namespace, patch_docutils
from sphinx_external_toc import collectors

from ropebook import proofs
from tools.paths import ROOT

OWN = ("ledger", "seals", "depth", "terms")
EXTENSIONS = ROOT / "book" / "_ext"
HEAD = "---\nfile_format: mystnb\nkernelspec: {display_name: Python 3, name: python3, language: python}\n---\n\n"
TOC = """
format: jb-book
root: book/intro
parts:
  - caption: One
    numbered: 1
    chapters:
      - file: book/attention
  - caption: Two
    numbered: 1
    chapters:
      - file: book/decay
        sections:
          - file: book/decay_base
          - file: book/decay_bound
  - caption: Reference
    chapters:
      - file: book/glossary
      - file: book/ledger
"""


def equation(label: str, kind: str = "statement", sealed: bool = True) -> str:
    cell = f'\n```{{code-cell}} python\n:tags: [seal]\nverify("{label}")\n```\n' if sealed else ""
    return f"\n```{{math}}\n:label: {label}\n:class: {kind}\na = b\n```\n{cell}\nText behind {{eq}}`{label}`.\n"


PAGES = {
    "intro": "# A book\n\nWords.\n",
    "attention": "# Attention\n\n## One\n" + equation("eq-attention-gap", "statement"),
    "decay": "# Decay\n\n## First\n\n### Below\n"
    + equation("eq-decay-ones", "identity")
    + "\n## Second\n\nA {term}`head`, the {term}`head` again and the {term}`keys <key>`.\n"
    + equation("eq-decay-bound")
    + "\n## Exercises\n\n### Exercise 1\n\nHow far?\n",
    "decay_base": "# Which base?\n\n## First\n"
    + equation("eq-decay-floor")
    + "\n## Second\n"
    + equation("eq-decay-walk"),
    "decay_bound": "# Is it tight?\n" + equation("eq-decay-crossing"),
    "glossary": "# Glossary\n\n:::{glossary}\nhead\n  One of several *heads*; see {term}`key`.\n\n"
    "key\n  What a query meets.\n:::\n",
    "ledger": "# Ledger\n\n```{ledger}\n```\n",
}


def read(text: str):
    """Read a page, and add what its tagged cells would display. To save time, the outcomes of the checks are invented
    here."""
    import seals

    env = read.env
    notebook = read_myst_markdown_notebook(
        text, env.myst_config, add_source_map=True, path=str(env.doc2path(env.docname))
    )
    for cell in notebook.cells:
        labels = re.findall(r'"(eq-[\w-]+)"', cell.source) if cell.source.startswith("verify") else []
        outcomes = [outcome(label) for label in labels]
        if labels:
            cell.outputs = [new_output("display_data", {"text/plain": "in words", proofs.OUTCOMES: outcomes})]
    seals.take(env, notebook)
    return notebook


def outcome(label: str) -> dict:
    kind = "identity" if label == "eq-decay-ones" else "statement"
    seal = "proved by sympy" if kind == "identity" else "tested"
    told = {"held": [f"run of {label}: 1e-9 (at most 1)"], "twin": "a `<slip>`", "refused": ["2 (at most 1)"]}
    return {"label": label, "kind": kind, "seal": seal, "says": "Says `x`.", **told}


def toc_collectors() -> list[object]:
    return [one for one in gc.get_objects() if issubclass(type(one), collectors.TocTreeCollector)]


class Built:
    """The small book's pages as HTML, and the warnings from its build."""

    def __init__(self, folder: Path, pages: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.syspath_prepend(str(EXTENSIONS))
        monkeypatch.syspath_prepend(str(Path(__file__).parent))
        monkeypatch.setitem(sys.modules, "small_site", sys.modules[__name__])
        # The patched module checks the class of every live object, and some objects left over from other tests would
        # raise an error.
        monkeypatch.setattr(collectors, "gc", SimpleNamespace(get_objects=toc_collectors))
        (folder / "book").mkdir(parents=True, exist_ok=True)
        files = {"_toc.yml": TOC} | {f"book/{name}.md": HEAD + text for name, text in pages.items()}
        for name, text in files.items():
            # Don't write the file if its text is the same, because Sphinx would then read it again.
            if not (folder / name).exists() or (folder / name).read_text() != text:
                (folder / name).write_text(text)
        settings = {
            "extensions": ["myst_nb", "sphinx_external_toc", "sphinx_multitoc_numbering", *OWN],
            "master_doc": "book/intro",
            "external_toc_path": "_toc.yml",
            "use_multitoc_numbering": True,
            "numfig": True,
            "math_numfig": True,
            "numfig_secnum_depth": 2,
            "nb_execution_mode": "off",
            "nb_custom_formats": {".md": "small_site.read"},
            "myst_enable_extensions": ["colon_fence", "dollarmath"],
            "html_theme": "basic",
            "exclude_patterns": ["_build", "jupyter_execute"],
            "nitpicky": True,
        }
        self.warnings = folder / "warnings.txt"
        with patch_docutils(), docutils_namespace(), self.warnings.open("w") as warnings:
            out = folder / "_build"
            app = Sphinx(folder, None, out, folder / "_doctrees", "html", settings, status=None, warning=warnings)
            app.connect("env-before-read-docs", lambda app, env, names: setattr(read, "env", env))
            app.build()
            self.env = app.env
        self.out = out

    def page(self, name: str) -> str:
        return (self.out / "book" / f"{name}.html").read_text(encoding="utf-8")

    def complaints(self, words: str) -> list[str]:
        text = re.sub(r"\x1b\[[\d;]*m", "", self.warnings.read_text())
        return [line for line in text.splitlines() if words in line]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Built(tmp_path_factory.mktemp("small"), PAGES, monkeypatch)


def numbers(page: str) -> list[str]:
    return re.findall(r'<span class="eqno">\(([\d.]+)\)', page)


def headings(page: str) -> list[str]:
    return [
        re.sub("<[^>]+>|¶", "", text) for text in re.findall(r"<h[1-6]>(.*?)</h[1-6]>", page.split('role="main"')[1])
    ]


def test_equations_are_numbered_page_by_page_and_no_number_comes_twice(small):
    found = {name: numbers(small.page(name)) for name in ("attention", "decay", "decay_base", "decay_bound")}
    assert found == {
        "attention": ["1.1"],
        "decay": ["2.1", "2.2"],
        "decay_base": ["2.1.1", "2.1.2"],
        "decay_bound": ["2.2.1"],
    }
    assert re.findall(r'href="#equation-eq-decay-walk">\(([\d.]+)\)', small.page("decay_base")) == ["2.1.2"]


def test_depth_pages_have_numbers_under_their_chapter_and_headings_have_none(small):
    assert headings(small.page("decay_base"))[:3] == ["2.1. Which base?", "First", "Second"]
    assert headings(small.page("decay_bound"))[0] == "2.2. Is it tight?"
    assert headings(small.page("decay"))[:6] == ["2. Decay", "First", "Below", "Second", "Exercises", "Exercise 1"]


def test_the_list_of_sections_has_one_entry_for_the_exercises(small):
    entries = [entry.astext() for entry in small.env.tocs["book/decay"].findall(nodes.reference)]
    assert entries == ["Decay", "First", "Below", "Second", "Exercises"]


@pytest.mark.parametrize("changed", ["decay", "decay_base", "attention", "glossary"])
def test_the_numbers_survive_a_change_of_one_page(tmp_path, monkeypatch, changed):
    """Sphinx stores the titles with their numbers, and only reads pages again if they have changed."""
    Built(tmp_path, PAGES, monkeypatch)
    again = Built(tmp_path, PAGES | {changed: PAGES[changed] + "\nOne sentence more.\n"}, monkeypatch)
    assert "One sentence more." in again.page(changed)
    assert headings(again.page("decay"))[0] == "2. Decay"
    assert headings(again.page("decay_base"))[:3] == ["2.1. Which base?", "First", "Second"]
    assert numbers(again.page("decay_bound")) == ["2.2.1"]


def test_each_equation_has_its_seal_right_behind_it_and_the_cell_is_gone(small):
    page = small.page("decay")
    behind = re.findall(r'id="equation-([\w-]+)">.*?</div>\s*(<div class="seal">.*?</div></div>)', page, re.DOTALL)
    assert [label for label, _ in behind] == ["eq-decay-ones", "eq-decay-bound"]
    for (label, seal), number, word in zip(behind, ("2.1", "2.2"), ("proved by sympy", "tested"), strict=True):
        assert f'popovertarget="seal-{label}"' in seal
        assert f'id="seal-{label}" popover' in seal
        assert f"Equation ({number}): </span>{word}</button>" in seal
        for text in (
            "Says <code>x</code>.",
            f"run of {label}: 1e-9 (at most 1)",
            "a <code>&lt;slip&gt;</code>",
            "2 (at most 1)",
        ):
            assert text in seal
        assert f'href="ledger.html#ledger-{label}"' in seal
        assert f'id="ledger-{label}"' in small.page("ledger")
    assert "verify(" not in page.split('role="main"')[1]
    assert "in words" not in page


def test_the_ledger_follows_the_book_and_leads_to_the_page_that_holds_an_equation(small):
    page = small.page("ledger")
    links = re.findall(r'href="(\w+\.html#equation-[\w-]+)">Equation \(([\d.]+)\)', page)
    assert links == [
        ("attention.html#equation-eq-attention-gap", "1.1"),
        ("decay.html#equation-eq-decay-ones", "2.1"),
        ("decay.html#equation-eq-decay-bound", "2.2"),
        ("decay_base.html#equation-eq-decay-floor", "2.1.1"),
        ("decay_base.html#equation-eq-decay-walk", "2.1.2"),
        ("decay_bound.html#equation-eq-decay-crossing", "2.2.1"),
    ]


def test_the_ledger_shows_an_equation_if_the_words_do_not_contain_it(small):
    entries = small.page("ledger").split('class="ledger-entry')[1:]
    found = {re.search('id="ledger-([^"]+)', entry)[1]: r"\begin{aligned}a = b\end" in entry for entry in entries}
    assert found == {label: not re.search("[=≈<>≤≥]", proofs.registry()[label].says) for label in found}
    assert found["eq-decay-walk"]
    assert not found["eq-decay-ones"]


def test_a_page_carries_the_meaning_of_each_of_its_terms_once(small):
    meanings = re.findall(
        r'<div class="meaning" id="meaning-([\w-]+)" popover>(.*?)</div>', small.page("decay"), re.DOTALL
    )
    assert [(name, text.strip()) for name, text in meanings] == [
        ("term-head", "<p>One of several <em>heads</em>; see <span>key</span>.</p>"),
        ("term-key", "<p>What a query meets.</p>"),
    ]
    assert 'href="glossary.html#term-head"' in small.page("decay")
    assert "meaning-" not in small.page("glossary")


def test_nothing_is_complained_of_but_checks_of_other_pages(small):
    text = re.sub(r"\x1b\[[\d;]*m", "", small.warnings.read_text())
    assert [line for line in text.splitlines() if line and "which no page shows" not in line] == []


def test_an_equation_without_a_seal_is_named(tmp_path, monkeypatch):
    bare = {**PAGES, "decay_base": "# Which base?\n" + equation("eq-decay-floor", sealed=False)}
    built = Built(tmp_path, bare, monkeypatch)
    assert len(built.complaints("equation eq-decay-floor has no seal")) == 1
    assert "decay_base.md:" in built.complaints("has no seal")[0]
