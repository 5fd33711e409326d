"""Fixtures: the built site, a browser, and a page that records every error and failed request."""

from __future__ import annotations

import contextlib
import functools
import http.server
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.site.figures import ROOM, STATIC, Quiet, page_of
from tools import book, browser, weights
from tools.paths import HTML

# This becomes true once every explorer has either started or reported why it can't.
SETTLED = "document.querySelectorAll('.explorer:not(.explorer-alive):not(:has(.explorer-failed))').length === 0"
# in milliseconds; the limit is generous because other tests may keep the processor busy
expect.set_options(timeout=30_000)
SKIPPED = os.environ.get("SKIP_BROWSER") == "1"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Retry a test if it fails in a browser. On a busy machine, any of these tests may run out of time.

    The summary lists such a test under "RERUN". Even then, the test may have found a real bug.
    """
    mark = pytest.mark.flaky(reruns=1)
    if SKIPPED:
        mark = pytest.mark.skip(reason="SKIP_BROWSER=1: NOT TESTED in a browser")
    for item in items:
        if "/site/" in item.path.as_posix():
            item.add_marker(mark)


@pytest.fixture(scope="session")
def site() -> Path:
    """Return the site, built from the sources in this repository.

    The first process that needs the site builds it, while the other processes wait.
    """
    return book.html()


@pytest.fixture(scope="session")
def server(site: Path) -> Iterator[str]:
    served = book.bind(site, 0)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()


@pytest.fixture(scope="session")
def chromium() -> Iterator[Browser]:
    path = browser.ensure()
    if path is None:
        pytest.fail(browser.HELP)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=browser.ARGUMENTS)
        yield launched
        launched.close()


@dataclass
class Visit:
    """An opened page, together with its requests and errors."""

    page: Page
    requests: dict[str, int] = field(default_factory=dict)  # address -> bytes
    problems: list[str] = field(default_factory=list)

    def read(self, address: str) -> None:
        self.page.goto(address, wait_until="load")
        self.page.wait_for_function("document.fonts.status === 'loaded'")
        self.page.wait_for_function(SETTLED)


@contextlib.contextmanager
def visiting(chromium: Browser, server: str) -> Iterator[Callable[..., Visit]]:
    """Context manager that yields a function for opening pages, and closes all of the pages at the end."""
    contexts = []

    def opened(
        path: str,
        *,
        theme: str = "light",
        width: int = 1280,
        height: int = 900,
        motion: str = "no-preference",
        over: str = "http",
        javascript: bool = True,
        touch: bool = False,
    ) -> Visit:
        context = chromium.new_context(
            viewport={"width": width, "height": height},
            color_scheme=theme,
            reduced_motion=motion,
            java_script_enabled=javascript,
            has_touch=touch,
        )
        contexts.append(context)
        context.set_default_timeout(60_000)
        found = Visit(context.new_page())
        root = server if over == "http" else HTML.as_uri()

        def note_response(response) -> None:
            if response.url.startswith(("blob:", "data:")):
                return  # the content of these URLs is part of the page itself
            # we read the header, because a page that redirects immediately would be gone before we could read its body
            found.requests[response.url] = int(response.headers.get("content-length", 0)) if response.ok else 0
            if over == "http" and response.status >= 400:
                found.problems.append(f"{response.status} for {response.url}")

        def note_request(request) -> None:
            if not request.url.startswith((root, "blob:", "data:")):
                found.problems.append(f"a request leaves the site: {request.url}")

        def note_console(message) -> None:
            if message.type in ("error", "warning"):
                found.problems.append(f"console {message.type}: {message.text}")

        found.page.on("request", note_request)
        found.page.on("response", note_response)
        found.page.on("requestfailed", lambda request: found.problems.append(f"failed: {request.url}"))
        found.page.on("console", note_console)
        found.page.on("pageerror", lambda error: found.problems.append(f"page error: {error}"))
        address = f"{root}/{path}"
        if javascript:
            found.read(address)
        else:
            found.page.goto(address, wait_until="load")
        return found

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def visit(chromium: Browser, server: str) -> Iterator[Callable[..., Visit]]:
    """Open a page: visit("book/intro.html", theme="dark", width=390, over="file", javascript=True)."""
    with visiting(chromium, server) as opened:
        yield opened


# ---- Explorers on a page made for the test ----


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("explorers")
    (folder / "_static").mkdir()
    for name, place in (("explorer-host.js", folder / "_static"), ("explorers.css", folder)):
        (place / name).write_text((STATIC / name).read_text())
    (folder / weights.NAME).write_bytes((weights.ensure() / weights.NAME).read_bytes())
    return folder


@pytest.fixture(scope="session")
def root(folder: Path) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture(scope="session")
def context(chromium: Browser) -> Iterator[Callable[..., BrowserContext]]:
    """Return a browser context with these options. All tests share the context, because creating one costs as much as
    opening four pages."""
    made = {}

    def context_(**options) -> BrowserContext:
        key = repr(sorted(options.items()))
        if key not in made:
            made[key] = chromium.new_context(**options)
        return made[key]

    yield context_
    for one in made.values():
        one.close()


@pytest.fixture
def opened(chromium: Browser, context, folder: Path, root: str) -> Iterator:
    """Open a page of widgets with all dials visible, or hidden in their folds if ``folded``.

    When the test ends, it fails if the console or the network has reported any error.
    """
    pages, own, complaints = [], [], []

    def open_(
        widgets: list,
        over: str = "http",
        fragment: str = "",
        shared: bool = True,
        spoil=None,
        folded: bool = False,
        room: str = ROOM,
        **options,
    ) -> Page:
        options = {"viewport": {"width": 1280, "height": 1000}, "reduced_motion": "reduce", **options}
        # After a page that moved was closed, later pages of its context sometimes got no frames.
        moves = options["reduced_motion"] == "no-preference"
        page = (chromium.new_context(**options) if moves else context(**options)).new_page()
        pages.append(page)
        own.extend([page.context] if moves else [])
        page.set_default_timeout(30_000)
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", lambda request: complaints.append(request.url))
        text = page_of(widgets, shared, spoil or (lambda state: None), room)
        (folder / "page.html").write_text(text, encoding="utf-8")
        page.goto(f"{root if over == 'http' else folder.as_uri()}/page.html{fragment}")
        if options.get("java_script_enabled", True) and not spoil:
            drawn = "n => document.querySelectorAll('.rb-summary').length === n"
            # the slowest explorers in the registry take a while
            page.wait_for_function(drawn, arg=len(widgets), timeout=60_000)
            if not folded:
                page.evaluate("document.querySelectorAll('.rb-more').forEach((more) => { more.open = true; })")
        return page

    yield open_
    for one in [*pages, *own]:
        one.close()
    assert complaints == []
