"""Tests of parsing the numbers that readers type into a field."""

from __future__ import annotations

import math

import pytest

from ropebook import decay
from tests.explorers import js

READ = """
  return input.map(([text, whole]) => {
    try { return readNumber(text, whole); } catch (refusal) { return refusal.message; }
  });
"""

MEANT = {
    "64": 64,
    " +2 ": 2,
    "-3": -3,
    "−3": -3,
    ".5": 0.5,
    "2.": 2,
    "1e4": 1e4,
    "1E-2": 0.01,
    "10^4": 1e4,
    "10⁴": 1e4,
    "10⁻⁴": 1e-4,
    "2^0.5": math.sqrt(2),
    "5·10^5": 5e5,
    "5 × 10⁵": 5e5,
    "10,000": 10_000,
    "1,048,576": 1_048_576,
    "1,234.5": 1234.5,
    "pi": math.pi,
    "π": math.pi,
    "pi/4": math.pi / 4,
    "2π": 2 * math.pi,
    "2 pi": 2 * math.pi,
    "-3π/4": -3 * math.pi / 4,
    "16/π²": 16 / math.pi**2,
    "1/2*pi": math.pi / 2,
}


def test_what_is_clear_is_read():
    found = js.kit(READ, [[text, False] for text in MEANT])
    assert dict(zip(MEANT, found, strict=True)) == pytest.approx(MEANT, rel=1e-15)


@pytest.mark.parametrize("label", ["4k", "8k", "32k", "128k", "1M"])
def test_a_k_of_tokens_is_that_of_the_book(label):
    assert js.kit(READ, [[label, True]]) == [decay.tokens(label)]


def test_what_is_unclear_is_refused_with_the_reason():
    cases = {
        ("", False): "Write a number",
        ("  ", False): "Write a number",
        ("many", False): "“many” is not a number",
        ("12 34", False): "“12 34” is not a number",
        ("0x10", False): "“0x10” is not a number",
        ("Infinity", False): "“Infinity” is not a number",
        ("1e999", False): "“1e999” is not a number",
        ("10^", False): "“10^” is not a number",
        ("2*", False): "“2*” is not a number",
        ("1/0", False): "“1/0” is not a number",
        ("2+2", False): "“2+2” is not a number",
        ("1,5", False): "“1,5” is unclear: a comma must come before three digits",
        ("1,0000", True): "“1,0000” is unclear: a comma must come before three digits",
        ("10.000", True): "“10.000” is unclear: write thousands with a comma or no separator",
        ("500k", False): "“500k” is unclear: is k a thousand or 1,024? Write the number out",
        ("128K", True): "“128K” is unclear: write k for 1,024 and M for 1,024²",
        ("1/2π", False): "“1/2π” is unclear: does the slash end before π?",
    }
    assert dict(zip(cases, js.kit(READ, list(cases)), strict=True)) == cases
