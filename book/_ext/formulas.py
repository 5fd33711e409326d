"""Convert formulas to one line of plain text, because the excerpts on the search page can't show KaTeX.

>>> as_text(r"\\lambda_i = 2\\pi/\\theta_i")
'λᵢ = 2π/θᵢ'
>>> as_text(r"\\frac{q_m \\cdot k_n}{\\sqrt d} + M_{mn}")
'(qₘ · kₙ)/√d + Mₘₙ'
>>> as_text(r"e^{-\\mathrm{i}\\Delta\\theta_i}")
'e^(−iΔθᵢ)'
"""

from __future__ import annotations

import re
import unicodedata

TOKEN = re.compile(r"(\\[a-zA-Z]+)\s*|(\\.|\s+|.)", re.DOTALL)  # a space after a command only marks the end of its name
NAMES = "alpha beta gamma delta epsilon zeta eta theta kappa lambda mu pi rho sigma tau phi psi omega"
GREEK = dict(zip(re.findall(r"\w+", f"{NAMES} {NAMES.title()}"), "αβγδεζηθκλμπρστφψωΑΒΓΔΕΖΗΘΚΛΜΠΡΣΤΦΨΩ", strict=True))
SYMBOLS = {
    **GREEK,
    **{"varphi": "φ", "varepsilon": "ε", "ell": "ℓ", "top": "ᵀ", "partial": "∂", "infty": "∞"},
    **{"cdot": " · ", "times": " × ", "otimes": " ⊗ ", "pm": "±", "le": " ≤ ", "ge": " ≥ ", "neq": " ≠ "},
    **{"approx": " ≈ ", "in": " ∈ ", "to": " → ", "mapsto": " ↦ ", "longmapsto": " ↦ ", "Rightarrow": " ⇒ "},
    **{"Longrightarrow": " ⇒ ", "iff": " ⇔ ", "bmod": " mod ", "sum": "∑", "dots": "…", "ldots": "…"},
    **{"vdots": "…", "ddots": "…", "langle": "⟨", "rangle": "⟩", "lVert": "‖", "rVert": "‖", "lvert": "|"},
    **{"rvert": "|", "lfloor": "⌊", "rfloor": "⌋", "lceil": "⌈", "rceil": "⌉", "{": "{", "}": "}", "#": "#"},
    **{",": " ", ";": " ", "!": "", " ": " ", "quad": " ", "qquad": " ", "\\": " "},
    # In a single line, the size of brackets doesn't matter.
    **dict.fromkeys(("left", "right", "bigl", "bigr", "Bigl", "Bigr"), ""),
}
FUNCTIONS = {"sin", "cos", "ln", "log", "max", "min", "arg", "det"}
AS_THEY_ARE = {"mathrm", "mathbf", "text", "operatorname", "underbrace"}
ABOVE = {"hat": "\u0302", "bar": "\u0304", "overline": "\u0304"}
RAISED = dict(zip("0123456789+−nᵀᴴ′", "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻ⁿᵀᴴ′", strict=True))
LOWERED = dict(zip("0123456789ijkmnr", "₀₁₂₃₄₅₆₇₈₉ᵢⱼₖₘₙᵣ", strict=True))
HYPHEN = re.compile(r"(?<![\w)\].…/−-])-(?=\.?\d)")  # before a number, but not between two numbers
LAID_OUT = re.compile(r"\\(?:begin|end)\{(?:aligned|gathered)\}|(?<!\\)&|\[[\d.]+(?:em|pt)\]")
BLANKS = re.compile(r"(?<=[(⟨{]) | (?=[)⟩},ᵢⱼₖₘₙᵣ₀-₉])|(?<=[a-z]{3}) (?=\()|(?<=\bln) (?=\()")


def as_text(formula: str) -> str:
    """Return the formula as one line of text, or "…" if it can't be written on one line (as with matrices)."""
    formula = LAID_OUT.sub(" ", formula)
    if r"\begin" in formula:
        return "…"
    text = "".join(_parts([command or other for command, other in TOKEN.findall(formula)]))
    text = re.sub(r"\s*([=<>])\s*|(?<=[^\s(^_⟨])([+−])\s", lambda sign: f" {sign[1] or sign[2]} ", text)
    return BLANKS.sub("", " ".join(text.split()))


def with_minus(text: str) -> str:
    """Replace the hyphen that Python writes before a negative number with a minus sign.

    >>> with_minus("-1.3 to 6.8, or 3-4 of float-16")
    '−1.3 to 6.8, or 3-4 of float-16'
    """
    return HYPHEN.sub("−", text)


def _parts(tokens: list[str]) -> list[str]:
    rest = tokens[::-1]  # reversed, so the next token can be popped from the end
    found = []
    while rest:
        found.append(_part(rest))
    return found


def _part(rest: list[str]) -> str:
    token = rest.pop()
    if token == "{":
        return "".join(_parts(_group(rest)))
    if token in "^_":
        return _moved(_argument(rest), *((RAISED, "^") if token == "^" else (LOWERED, "_")))
    name = token[1:] if token[0] == "\\" else ""
    if name in SYMBOLS:
        return SYMBOLS[name]
    if name in FUNCTIONS:
        return f" {name} "
    if name in ABOVE:
        inner = _argument(rest)
        return unicodedata.normalize("NFC", inner + ABOVE[name]) if len(inner) == 1 else f"conj{_in_brackets(inner)}"
    if name == "sqrt":
        return f"√{_bracketed(_argument(rest))}"
    if name in {"frac", "tfrac", "dfrac"}:
        return f"{_bracketed(_argument(rest))}/{_bracketed(_argument(rest))}"
    if name in AS_THEY_ARE:
        return _argument(rest)
    return " " if token.isspace() else {"-": "−", "'": "′", "~": " "}.get(token, name or token)


def _argument(rest: list[str]) -> str:
    while rest and rest[-1].isspace():
        rest.pop()
    return _part(rest).strip() if rest else ""


def _group(rest: list[str]) -> list[str]:
    """Return the tokens up to the closing brace of the current group. The opening brace has just been read."""
    found, depth = [], 1
    while rest:
        token = rest.pop()
        depth += {"{": 1, "}": -1}.get(token, 0)
        if depth == 0:
            break
        found.append(token)
    return found


def _bracketed(text: str) -> str:
    """Put the text in brackets, unless it is a single number, or a single letter with or without an index."""
    return text if re.fullmatch(r"\d+|√?[^\W\d_][\u0300-\u036fᵢⱼₖₘₙᵣ₀-₉]*", text) else f"({text})"


def _in_brackets(text: str) -> str:
    return text if text.startswith("(") and text.endswith(")") else f"({text})"


def _moved(text: str, letters: dict[str, str], sign: str) -> str:
    tight = text.replace(" ", "")
    if tight and all(letter in letters for letter in tight):
        return "".join(letters[letter] for letter in tight)
    return sign + (text if len(text) == 1 else _in_brackets(text))
