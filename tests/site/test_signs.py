"""Signs as they are set, on all finished pages."""

from __future__ import annotations

import re

from bs4 import BeautifulSoup

AS_TYPED = "pre, code, script, svg, nav, dt.sig, .math, .katex, .explorer"
HYPHEN = re.compile(r"(?<![\w)\].…/−-])-\.?\d")


def test_numbers_below_zero_have_a_minus_sign(site):
    found = {}
    for path in sorted((site / "book").glob("*.html")):
        text = path.read_text(encoding="utf-8")
        if not HYPHEN.search(re.sub(r"<[^>]*>", " ", text)):
            continue
        article = BeautifulSoup(text, "html.parser").article
        for typed in article.select(AS_TYPED):
            typed.decompose()
        wrong = list(map(str, article.find_all(string=HYPHEN)))
        if wrong:
            found[path.name] = wrong
    assert not found
