"""Tests of the explorers on the built pages. Their scripts must agree with Python, and readers must be able to move the
dials with the pointer."""

from __future__ import annotations

import importlib
import json
import random
import re

import pytest

from ropebook.explorers import Explorer
from tests.explorers import js
from tests.site.figures import hash_of
from tests.site.pages import EXPLORED

# Reads the dials of all figures on a page. A model's latest result isn't a dial: it arrives when the model has
# finished.
DIALS = """[...document.querySelectorAll('.explorer-live')].map((e) => {
  const { result, ...dials } = e.ropebook.values();
  return JSON.stringify(dials);
})"""
STATE = re.compile(r'<script type="application/vnd.jupyter.widget-state\+json">(.*?)</script>', re.DOTALL)


def explorer_class(name: str) -> type[Explorer]:
    module = importlib.import_module(f"ropebook.explorers.{name}")
    found = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    return next(kind for kind in found if issubclass(kind, Explorer))


@pytest.mark.parametrize("path", EXPLORED)
def test_the_script_in_the_page_agrees_with_python(site, path):
    states = STATE.findall((site / path).read_text(encoding="utf-8"))
    assert len(states) == 1
    page = json.loads(states[0])
    scripts = [model["state"]["_esm"]["parts"] for model in page["state"].values() if "_esm" in model["state"]]
    assert scripts
    source = random.Random(path)
    for parts in scripts:
        script = "".join(f"//# part: {name}\n{page['parts'][name]}" for name in parts)
        explorer = explorer_class(parts[-1].removesuffix(".js"))
        cases = [explorer().dials()] + [js.sample_dials(explorer, source) for _ in range(20)]
        assert js.disagreements(explorer, cases, js.compute(script, cases)) == []


@pytest.mark.parametrize("path", EXPLORED)
def test_a_script_stands_once_on_a_page(site, path):
    text = (site / path).read_text(encoding="utf-8")
    parts = json.loads(STATE.findall(text)[0])["parts"]
    for name, source in parts.items():
        assert text.count(f"{json.dumps(name)}: ") == 1, name
        if name.endswith(".py"):
            continue  # this part contains constants, and two figures may have the same ones
        # This piece of code occurs only in this script. In the page, it is encoded as JSON.
        piece = max(re.findall(r"[ !#-;=-\[\]-~]+", source), key=len)
        assert text.count(piece) == 1, name


@pytest.mark.parametrize("path", EXPLORED)
def test_no_id_stands_twice_on_a_page(site, path):
    """Static pictures use ids for clip paths and gradients, and a page may contain several pictures."""
    text = (site / path).read_text(encoding="utf-8")
    stills = re.findall(r'<div class="explorer-still">(<svg .*?</svg>)', text, re.DOTALL)
    assert stills
    ids = [name for still in stills for name in re.findall(r' id="([^"]+)"', still)]
    assert len(ids) == len(set(ids))
    used = {name for still in stills for name in re.findall(r"url\(#([^)]+)\)", still)}
    assert used <= set(ids)


@pytest.mark.parametrize("path", EXPLORED)
def test_every_figure_turns_and_writes_the_address_from_disk(visit, path):
    """The page is opened from disk, where browsers allow less than over HTTP."""
    visited = visit(path, over="file")
    page = visited.page
    count = page.locator(".explorer").count()
    assert count >= 1
    for index in range(count):
        explorer = page.locator(".explorer").nth(index)
        name = explorer.get_attribute("data-explorer")
        before = page.evaluate(DIALS)[index]
        dial = explorer.locator(".rb-dial :is([type=range], [type=checkbox], select):visible").first
        dial.focus()
        page.keyboard.press({"range": "ArrowRight", "checkbox": "Space"}.get(dial.get_attribute("type"), "ArrowDown"))
        assert page.evaluate(DIALS)[index] != before, name
        assert f"{name}." in hash_of(page), name
    shared = page.url
    turned = page.evaluate(DIALS)
    page.goto("about:blank")
    visited.read(shared)
    assert page.evaluate(DIALS) == turned
    assert visited.problems == []
