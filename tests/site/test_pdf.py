"""Tests of a page as a PDF. It has an outline, numbered equations and figures, and nothing is cut off or too
small to read."""

from __future__ import annotations

import re
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tools import pdf
from tools.paths import ROOT

# Lists formulas and pictures that are wider than the paper, even after they have been shrunk to fit.
CUT = """() => [...document.querySelectorAll(".katex-display .base, article svg, article img")].filter((one) => {
  const box = one.getBoundingClientRect();
  return box.width && box.right > document.documentElement.clientWidth + 1;
}).map((one) => one.textContent.slice(0, 80) || one.outerHTML.slice(0, 80))"""

MISSING = """() => [...document.querySelectorAll("article img")]
  .filter((one) => one.getBoundingClientRect().width && !one.naturalWidth).map((one) => one.src)"""

# The smallest letters in points. They are indices of indices; newspapers set their smallest print in 5.5.
LEAST = 6.0
INVISIBLE = 0.75  # KaTeX puts spaces without a width, one pixel high, into its columns of symbols
STREAM = re.compile(rb"\n(\d+) 0 obj\n<<((?:(?!endobj).)*?)>>\s*stream\n", re.DOTALL)
STEP = re.compile(rb" ([\d.]+) Tf\b|((?:[-\d.]+\s+){6})(cm|Tm)\b|/X(\d+) Do\b|\b(q|Q|BT|Tj|TJ)\b")


def letters(data: bytes) -> dict[float, set[int]]:
    """Return the sizes of the letters in a PDF written by Chromium, in points, with the pages that have them."""
    streams = {}
    for found in STREAM.finditer(data):
        if b"/Form" in found[2] or b"/Subtype" not in found[2]:
            length = int(re.search(rb"/Length (\d+)", found[2])[1])
            packed = data[found.end() : found.end() + length]
            streams[int(found[1])] = zlib.decompress(packed) if b"/FlateDecode" in found[2] else packed
    sizes: dict[float, set[int]] = {}

    def walk(content: bytes, scale: float, page: int) -> None:
        """Follow the drawing instructions. ``scale`` is the factor by which the content is already enlarged."""
        size, line, outer = 0.0, 1.0, []
        for tf, numbers, matrix, form, word in (found.groups() for found in STEP.finditer(content)):
            if tf:
                size = float(tf)
            elif matrix:
                a, b, c, d = map(float, numbers.split()[:4])
                larger = abs(a * d - b * c) ** 0.5
                scale, line = (scale * larger, line) if matrix == b"cm" else (scale, larger)
            elif form:
                walk(streams.get(int(form), b""), scale, page)  # a picture is not among the streams
            elif word == b"q":
                outer.append((scale, size))
            elif word == b"Q":
                scale, size = outer.pop()
            elif word == b"BT":
                line = 1.0
            else:
                sizes.setdefault(round(size * line * scale, 2), set()).add(page)

    for page, number in enumerate(re.findall(rb"/Contents (\d+) 0 R", data), start=1):
        walk(streams[int(number)], 1.0, page)
    return sizes


def test_a_page_prints_with_its_outline(site, tmp_path):
    (tmp_path / "html").symlink_to(site)
    # This runs in a separate process, because the tests' browser already runs an event loop in this one.
    print_it = "import sys; from pathlib import Path; from tools import pdf; "
    print_it += "print(pdf.write(Path(sys.argv[1]), Path(sys.argv[2]), ['derivation']))"
    command = [sys.executable, "-c", print_it, str(site), str(tmp_path / "pdf")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    data = Path(done.stdout.strip().splitlines()[-1]).read_bytes()
    assert data.startswith(b"%PDF-")
    assert 5 < len(re.findall(rb"/Type /Page\b", data)) < 40
    assert b"/Title (3. Rotary position embedding)" in data
    numbers = [int(one) for one in re.findall(r"<span>(\d+)</span></a>", (tmp_path / "pdf" / "pages.html").read_text())]
    assert numbers == sorted(numbers)
    assert numbers[0] == 3 < numbers[-1]
    assert len(numbers) == len(pdf.headings(data)) - 2
    assert data.count(b"/FontFile2") + data.count(b"/FontFile3") > 5, "the fonts are in it"


def test_what_is_printed_is_complete_and_legible(site, tmp_path, chromium: Browser):
    (tmp_path / "html").symlink_to(site)
    page = tmp_path / "pdf" / "pages.html"
    pdf.write_whole(page, pdf.document(site, [*pdf.core(), pdf.REFERENCES]))
    text = page.read_text()
    built = [(site / "book" / f"{name}.html").read_text() for name in pdf.core()]
    for what in ('class="eqno"', 'class="explorer-still"', 'class="katex-display"'):
        assert text.count(what) == sum(one.count(what) for one in built) > 10
    names = re.findall(r'\sid="([^"]+)"', text)
    assert len(names) == len(set(names))
    links = set(re.findall(r'href="#([^"]+)"', text))
    assert links - set(names) == set()
    assert len([link for link in links if link.startswith("references--")]) > 50, "what the chapters cite is in it"
    tab = chromium.new_page(viewport={"width": 658, "height": 1000})
    tab.set_default_timeout(300_000)
    tab.emulate_media(media="print")
    tab.goto(page.as_uri())
    tab.evaluate(pdf.FIT)
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(MISSING) == []
    sizes = letters(tab.pdf(prefer_css_page_size=True))
    tab.close()
    assert max(sizes, key=lambda size: len(sizes[size])) == pytest.approx(11, abs=0.1), "the text itself has 11 points"
    assert {size: pages for size, pages in sizes.items() if size < LEAST and size != INVISIBLE} == {}
