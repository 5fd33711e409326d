"""Test that the corrections are numbered, that each of them has a check, and that their numbers come from cells."""

from __future__ import annotations

import re

from tests.links import LINK, ROLE, lost, prose, typed_numbers
from tests.together import together

PAGE = "corrections.md"
PARTS = re.split(r"^### (\d+)\. (.+)\n", prose(PAGE), flags=re.MULTILINE)[1:]
ITEMS = list(zip(PARTS[::3], PARTS[1::3], PARTS[2::3], strict=True))
# Numbers that an example assumes or a claim states. They aren't our own results.
PREMISES = {
    "0",
    "1",
    "3",
    "4",
    "8",
    "16",
    "64",
    "0.1",
    "0.2",
    "0.5",
    "512",
    "1,000",
    "1,024",
    "1k",
    "4,096",
    "10,000",
    "256",
    "65,536",
    "3.5",
}


def test_they_are_numbered_and_link_to_what_is_there():
    assert [int(number) for number, _, _ in ITEMS] == list(range(1, len(ITEMS) + 1))
    assert len(ITEMS) >= 15
    assert lost(PAGE) == []


@together(("number", "title", "text"), ITEMS, ids=[title for _, title, _ in ITEMS])
def test_each_says_what_is_right_and_where_it_is_checked(number, title, text):
    text = text.split("\n## ")[0]
    assert "*Right:*" in text
    checks = {target for target in LINK.findall(text) if not target.startswith("http")}
    checks |= {label for role, label in ROLE.findall(text) if role == "eq"}
    assert checks, "no check"
    assert set(typed_numbers(re.sub(r"−?e⁹|−1e9|2,000π|no\. \d", "", text))) <= PREMISES
    assert len(re.sub(r"```.*?```", "", text, flags=re.DOTALL).split()) <= 120, "short"
