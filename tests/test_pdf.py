"""Tests of the pages as a single printable document: ids that are unique on a page stay unique, and links lead to
targets inside the document."""

from __future__ import annotations

import re

import pytest

from tools import pdf

ONE = """<html><main><article class="bd-article">
<section id="one"><h1><span class="section-number">1. </span>One<a class="headerlink" href="#one">#</a></h1>
<script type="application/json">{"a": 1}</script>
<section id="why"><h2>Why?<a class="headerlink" href="#why">#</a></h2>
<p>See <a href="two.html#how">how</a>, <a href="two.html">two</a>, <a href="#why">here</a>,
<a href="deep.html#x">deep</a>, <a href="../search.html">search</a>, <a href="https://example.com/a#b">there</a>.</p>
<img src="../_images/a.png" loading="lazy">
<svg><g id="g"/><use xlink:href="#g"/><path fill="url(#g)"/></svg></section></section>
</article></main></html>"""


def test_ids_and_links_of_a_page_are_its_own():
    text = pdf.part("one", ONE, ["one", "two"])
    assert 'id="one--why"' in text
    assert '<a href="#two--how">how</a>, <a href="#two">two</a>, <a href="#one--why">here</a>' in text
    assert '<a>deep</a>, <a>search</a>, <a href="https://example.com/a#b">there</a>' in text
    assert '<use xlink:href="#one--g"/><path fill="url(#one--g)"/>' in text
    assert '<img src="../html/_images/a.png">' in text, "a printer does not scroll, so a lazy picture would be missing"
    assert "<script" not in text


def test_with_an_address_other_pages_are_linked():
    text = pdf.part("one", ONE, ["one"], "https://example.org/b")
    assert '<a href="https://example.org/b/book/two.html#how">how</a>' in text
    assert '<a href="https://example.org/b/search.html">search</a>' in text


def test_the_contents_lead_to_chapters_and_sections():
    found = pdf.contents([pdf.part("one", ONE, ["one"])], [3, 14])
    rows = re.findall('href="#([^"]+)"><span>(.*?)</span><span>([0-9]+)</span></a>', found)
    assert rows == [("one--one", '<span class="section-number">1. </span>One', "3"), ("one--why", "Why?", "14")]


OUTLINE = b"""
1 0 obj
<</Type /Page
>>
endobj
2 0 obj
<</Type /Page
>>
endobj
5 0 obj
<</Title (Two)
/Dest [2 0 R /XYZ 0 0 0]
/Parent 9 0 R>>
endobj
6 0 obj
<</Title (One)
/Dest [1 0 R /XYZ 0 0 0]
/Next 5 0 R
/First 7 0 R>>
endobj
7 0 obj
<</Title (Below)
/Dest [2 0 R /XYZ 0 0 0]
/First 8 0 R>>
endobj
8 0 obj
<</Title (Too deep)
/Dest [2 0 R /XYZ 0 0 0]>>
endobj
9 0 obj
<</Type /Outlines
/First 6 0 R
/Last 5 0 R>>
endobj
"""


def test_an_outline_tells_the_pages_of_headings_in_their_order():
    assert pdf.headings(OUTLINE) == [1, 2, 2], "One, Below, Two"


def test_a_page_without_an_article_is_named():
    with pytest.raises(ValueError, match=r"one\.html has no article"):
        pdf.part("one", "<main></main>", ["one"])


def test_the_core_pages_are_the_first_page_and_the_chapters():
    names = pdf.core()
    assert names[0] == "intro"
    assert "derivation" in names
    assert not [name for name in names if "_" in name and name != "complex_plane"]
