"""The pages of the site. They are listed without building it, so that each page can have its own test."""

from tools.execute import chapters
from tools.paths import ROOT, pages

CHAPTERS = [f"{path.relative_to(ROOT).with_suffix('')}.html" for path in chapters()]
# The first page of each chapter, without the depth pages.
FIRST = [path for path in CHAPTERS if not any(path.startswith(f"{one[:-5]}_") for one in CHAPTERS)]
# Pages with a figure that has dials.
EXPLORED = [
    f"{path.relative_to(ROOT).with_suffix('')}.html"
    for path in pages()
    if "from ropebook.explorers" in path.read_text(encoding="utf-8")
]
PAGES = [f"{path.relative_to(ROOT).with_suffix('')}.html" for path in pages()]
GENERATED = ["search.html", "genindex.html", "index.html"]
