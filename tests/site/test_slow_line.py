"""A page that comes in two pieces, as over a slow line: what has been read does not move when the rest arrives."""

from __future__ import annotations

import functools
import http.server
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.site.figures import Quiet

PAUSE = 0.7  # seconds between the pieces
MOVED = """new Promise((done) => {
  let sum = 0;
  new PerformanceObserver((list) => {
    for (const { value, hadRecentInput } of list.getEntries()) if (!hadRecentInput) sum += value;
  }).observe({ type: 'layout-shift', buffered: true });
  setTimeout(() => done(sum), 300);
})"""


class InPieces(Quiet):
    """Sends a page up to the middle of its text, and the rest later."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
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
        time.sleep(PAUSE)
        self.wfile.write(body[cut:])
        return None


@pytest.fixture(scope="module")
def slow(site: Path) -> Iterator[str]:
    handler = functools.partial(InPieces, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["derivation_only", "efficient", "cheatsheet", "sinusoidal_order"])
def test_what_was_read_stays_where_it_was(context, slow, name, width):
    page = context(viewport={"width": width, "height": 900}).new_page()
    page.goto(f"{slow}/book/{name}.html", wait_until="load")
    page.wait_for_function("document.fonts.status === 'loaded'")
    moved = page.evaluate(MOVED)
    page.close()
    assert moved < 0.02


@pytest.mark.parametrize("theme", ["dark", "light"])
def test_before_any_script_of_a_file_has_run_a_page_has_the_readers_look(context, slow, theme):
    page = context(color_scheme=theme).new_page()
    page.goto(f"{slow}/book/derivation_only.html", wait_until="commit")
    page.wait_for_selector("article p")
    look = page.evaluate("[document.readyState, document.documentElement.dataset.theme]")
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
