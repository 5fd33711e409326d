"""Tests of a page as a PDF. It has an outline, numbered equations and figures, and nothing is cut off."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

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


def test_what_is_printed_is_complete(site, tmp_path, chromium: Browser):
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
    tab.emulate_media(media="print")
    tab.goto(page.as_uri())
    tab.evaluate(pdf.FIT)
    assert tab.evaluate(CUT) == []
    assert tab.evaluate(MISSING) == []
    tab.close()
