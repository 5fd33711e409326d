"""Tests of writing a formula as a single line of plain text, for the excerpts in search results."""

from __future__ import annotations

import doctest
import re

import pytest

from tests.together import together
from tools.paths import BOOK, pages

LINES = {
    r"e^{-2i/d}": "e^(−2i/d)",
    r"x_1' = x_1 \cos m\theta_i - x_2 \sin m\theta_i": "x₁′ = x₁ cos mθᵢ − x₂ sin mθᵢ",
    r"\langle R_m q,\, R_n k \rangle": "⟨Rₘ q, Rₙ k⟩",
    r"\hat q_i\, \overline{\hat k_i}": "q̂ᵢ conj(k̂ᵢ)",
    r"\tfrac12": "1/2",
    r"\sqrt{2d}": "√(2d)",
    r"\begin{aligned}a &= b \\ &\le c\end{aligned}": "a = b ≤ c",
    r"\begin{pmatrix}1 & 0\end{pmatrix}": "…",
    r"W_{UK}\, c": "W_(UK) c",
    r"\max\Bigl(0, \frac{r_i-\alpha}{\beta-\alpha}\Bigr)": "max(0, (rᵢ−α)/(β−α))",
    r"R_m^\top": "Rₘᵀ",
    r"x^{": "x^()",
}


@pytest.fixture
def formulas(monkeypatch):
    monkeypatch.syspath_prepend(str(BOOK / "_ext"))
    import formulas

    return formulas


@together("formula", LINES)
def test_a_formula_is_one_line(formulas, formula):
    assert formulas.as_text(formula) == LINES[formula]


def test_its_examples_hold(formulas):
    done = doctest.testmod(formulas)
    assert done.attempted >= 3
    assert done.failed == 0


def test_nothing_of_tex_is_left_of_any_formula_of_the_book(formulas):
    found = [
        formula
        for page in pages()
        for formula in re.findall(r"(?<![\\$\w])\$([^$\n]+)\$(?!\w)", page.read_text(encoding="utf-8"))
    ]
    assert len(found) > 500
    assert {formula: text for formula in found if "\\" in (text := formulas.as_text(formula))} == {}
