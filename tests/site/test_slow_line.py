"""Tests of a slow connection, over which a page arrives in two pieces and its fonts even later. Text that is already
visible must not move when the rest arrives."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.site.conftest import SETTLED
from tests.site.figures import Quiet, settle

# Adds up the layout shifts since the page was first painted, including entries that the browser hasn't reported yet.
WATCH = """
  window.moved = () => { note(watcher.takeRecords()); return sum; };
  let sum = 0;
  const note = (entries) => { for (const { value, hadRecentInput } of entries) if (!hadRecentInput) sum += value; };
  const watcher = new PerformanceObserver((list) => note(list.getEntries()));
  watcher.observe({ type: 'layout-shift', buffered: true });
"""


@dataclass
class Line:
    """The address of the site, and the event that allows the rest of a page to be sent."""

    address: str
    rest: threading.Event = field(default_factory=threading.Event)


class InPieces(Quiet):
    """Request handler that sends the first half of a page's text at once, and the rest when the test allows it. Fonts
    arrive a second late."""

    def __init__(self, *given, line: Line, **more) -> None:
        self.line = line
        super().__init__(*given, **more)

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if path.parent.name == "fonts" and path.parent.parent.name == "_static":
            time.sleep(1)
        if path.suffix != ".html":
            return super().do_GET()
        body = path.read_bytes()
        start = body.index(b"<article")
        cut = body.index(b"</p>", start + (len(body) - start) // 3)
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[:cut])
        self.wfile.flush()
        self.line.rest.wait(60)
        self.wfile.write(body[cut:])
        return None


@pytest.fixture
def slow(site: Path) -> Iterator[Line]:
    line = Line("")
    handler = functools.partial(InPieces, directory=str(site), line=line)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    line.address = f"http://127.0.0.1:{server.server_port}"
    yield line
    line.rest.set()
    server.shutdown()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["derivation_only", "efficient", "cheatsheet", "sinusoidal_order"])
def test_what_was_read_stays_where_it_was(context, slow, name, width):
    page = context(viewport={"width": width, "height": 900}).new_page()
    page.add_init_script(WATCH)
    page.goto(f"{slow.address}/book/{name}.html", wait_until="commit")
    page.wait_for_selector("article p")
    settle(page)  # by now the first piece is visible
    assert page.evaluate("document.readyState") == "loading"
    slow.rest.set()
    page.wait_for_load_state("load")
    page.wait_for_function("document.fonts.status === 'loaded'")
    page.wait_for_function(SETTLED)
    settle(page)
    moved = page.evaluate("moved()")
    page.close()
    assert moved < 0.02


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_before_any_script_of_a_file_has_run_a_page_has_the_readers_look(context, slow, theme):
    page = context(color_scheme=theme).new_page()
    page.goto(f"{slow.address}/book/derivation_only.html", wait_until="commit")
    page.wait_for_selector("article p")
    look = page.evaluate("[document.readyState, document.documentElement.dataset.theme]")
    slow.rest.set()
    page.wait_for_load_state("load")
    page.close()
    assert look == ["loading", theme]


def test_a_reader_who_has_chosen_gets_what_was_chosen(visit):
    page = visit("book/derivation_only.html", theme="dark").page
    page.evaluate("localStorage.setItem('mode', 'light')")
    page.add_init_script(
        "document.addEventListener('readystatechange', () => (window.first ??= document.documentElement.dataset.theme))"
    )
    page.reload(wait_until="load")
    assert page.evaluate("[window.first, document.documentElement.dataset.theme]") == ["light", "light"]
