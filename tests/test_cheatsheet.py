"""Test that the cheat sheet agrees with the chapters: it must use their code and the registry's table."""

from __future__ import annotations

import re

import torch
from transformers.models.gpt_neox.modeling_gpt_neox import apply_rotary_pos_emb as neox
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb as gptj
from transformers.models.llama.modeling_llama import apply_rotary_pos_emb as llama

from ropebook import efficient
from ropebook import extrapolation as X
from tests.helpers import random
from tests.links import LINK, lost, prose, text, typed_numbers
from tests.together import together

PAGE = "cheatsheet.md"


def function(page: str, name: str) -> str:
    """Return the source of a function that one of the page's cells defines."""
    [source] = re.findall(rf"^def {name}\(.*?(?=\n```|\n\n\n)", text(page), re.MULTILINE | re.DOTALL)
    return source


def test_every_link_lands_and_every_number_is_glued():
    assert lost(PAGE) == []


def test_the_code_is_that_of_the_chapter():
    assert function(PAGE, "rope") == function("efficient.md", "rope")


def test_each_model_is_under_its_own_layout():
    """The layout depends on the model, not on the library, because transformers uses both layouts."""
    x, angles = random(1, 1, 3, 8), torch.arange(3)[:, None] * 10_000.0 ** (-torch.arange(0, 8, 2) / 8)
    cos, sin = angles.cos().double(), angles.sin().double()
    wide = [torch.cat([one, one], -1)[None] for one in (cos, sin)]
    turned = {
        "GPT-J": gptj(x.transpose(1, 2), sin[None], cos[None]).transpose(1, 2),
        "GPT-NeoX": neox(x, x, *wide)[0],
        "Llama in transformers": llama(x, x, *wide)[0],
    }
    [heads] = [line.split("|") for line in prose(PAGE).splitlines() if line.startswith("| | interleaved")]
    for name, found in turned.items():
        [head] = [one for one in heads if name in one]
        layout = "half" if "half-split" in head else "interleaved"
        assert torch.allclose(found, efficient.apply_rotary(x, cos, sin, layout=layout)), name


@together("n_heads", [1, 2, 6])
def test_the_line_that_converts_weights_does_what_the_package_does(n_heads):
    names: dict = {}
    exec(function(PAGE, "to_half"), names)
    weight = random(n_heads * 8, 5)
    theirs = efficient.convert_weight(weight, n_heads, 8, to="half")
    assert torch.equal(names["to_half"](weight, n_heads), theirs)


def rows(section: str) -> list[list[str]]:
    part = prose(PAGE).split(f"## {section}\n")[1].split("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("|")][2:]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip("|"))] for line in table]


def test_the_table_of_methods_says_what_the_registry_says():
    facts = {row["method"]: row for row in X.methods_table()}
    found = rows("Longer texts")
    assert len(found) >= 10
    for method, does in found:
        row = facts[re.sub(r" \{eq\}.*", "", method)]
        holds = re.search(r"; \*([^*]*)\*$", does)
        said = holds[1].split(", ") if holds else []
        true = {
            "unchanged to L": row["changes within L"] == "no",
            "cache-safe": row["cache-safe"] == "yes",
            "trained": row["trains"] == "yes",
            "may be trained": row["trains"] == "optional",
        }
        assert said == [word for word, holds_here in true.items() if holds_here], method


def test_each_symptom_leads_to_the_section_that_shows_it():
    found = rows("Mistakes by symptom")
    assert len(found) >= 10
    for symptom, cause, fix in found:
        assert LINK.search(symptom), symptom
        assert cause
        assert fix


def test_what_was_measured_stands_in_no_text_of_its_own():
    [rounded] = [part for part in prose(PAGE).split("\n## ") if part.startswith("What may be rounded")]
    assert set(typed_numbers(rounded)) <= {"0", "10,000", "128k", "128"}
