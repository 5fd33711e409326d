"""Tests of the site as it is uploaded to a host. Every page works under its Content-Security-Policy, and some pages
also work when opened from disk."""

from __future__ import annotations

import http.server
import threading
import zipfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tools import publish

ADDRESS = "https://example.org/book"
# Selects explorers that have neither started nor reported why they can't. We use a selector because waiting for a
# function would make Playwright evaluate a string, which the policy forbids.
WAITING = ".explorer:not(.explorer-alive):not(:has(.explorer-failed))"
# This is installed before any of the page's own scripts run, so it records everything that the policy refuses.
LISTEN = """window.refused = [];
document.addEventListener("securitypolicyviolation",
  (event) => window.refused.push(`${event.violatedDirective} refuses ${event.blockedURI} ${event.sample}`));"""


def headers(folder: Path) -> dict[str, str]:
    """Return the headers that `_headers` lists for every path."""
    lines = (folder / "_headers").read_text().splitlines()
    assert lines[0] == "/*"
    return dict(line.strip().split(": ", 1) for line in lines[1:])


class Host(http.server.SimpleHTTPRequestHandler):
    """A host that sends the headers from `_headers`."""

    def end_headers(self) -> None:
        for name, value in headers(Path(self.directory)).items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, *_: object) -> None: ...


@pytest.fixture(scope="module")
def published(site, tmp_path_factory) -> Path:
    return publish.publish(site, tmp_path_factory.mktemp("published") / "site", ADDRESS)


def hosted(folder: Path) -> Iterator[str]:
    served = http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Host, directory=folder))
    threading.Thread(target=served.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{served.server_port}"
    served.shutdown()
    served.server_close()


@pytest.fixture(scope="module")
def host(published) -> Iterator[str]:
    yield from hosted(published)


@pytest.fixture
def opened(chromium: Browser) -> Iterator[Callable[..., list[str]]]:
    """Open a page in a new tab, perform an action there, and return all errors."""
    context = chromium.new_context(reduced_motion="reduce")
    context.add_init_script(LISTEN)
    tab, problems = context.new_page(), []
    tab.on("console", lambda one: problems.append(one.text) if one.type in ("error", "warning") else None)
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on("requestfailed", lambda request: problems.append(f"failed: {request.url}"))

    def opened_(address: str, does: Callable[[Page], object] = lambda tab: None) -> list[str]:
        problems.clear()
        tab.goto(address, wait_until="load")
        tab.wait_for_url(lambda url: not url.endswith("/index.html"))  # this page redirects to another one
        expect(tab.locator(WAITING)).to_have_count(0, timeout=60_000)
        does(tab)
        failed = tab.locator(".explorer-failed").all_inner_texts()
        return [*problems, *tab.evaluate("window.refused"), *failed]

    yield opened_
    context.close()


@pytest.mark.timeout(1200)
def test_every_page_works_under_the_policy(published, host, opened):
    pages = sorted(path.relative_to(published).as_posix() for path in published.rglob("*.html"))
    assert len(pages) > 80
    found = {page: opened(f"{host}/{page}") for page in pages}
    assert {page: problems for page, problems in found.items() if problems} == {}


def search(tab: Page) -> None:
    tab.wait_for_selector("#search-results li")


def read_with_the_model(tab: Page) -> None:
    """Make the figure load the model, and check that it starts only one thread for the model."""
    figure = tab.locator(".explorer[data-explorer=alive]")
    figure.scroll_into_view_if_needed()
    figure.get_by_role("combobox", name="Method").select_option("ntk")
    expect(figure.locator(".rb-summary")).not_to_contain_text("has not read the text", timeout=120_000)
    assert len(tab.workers) == 1


@pytest.mark.parametrize(
    ("page", "does"),
    [("search.html?q=rotation", search), ("book/lab_reading.html", read_with_the_model)],
)
def test_what_a_page_does_later_is_allowed(host, opened, page, does):
    assert opened(f"{host}/{page}", does) == []


@pytest.mark.parametrize("page", ["book/intro.html", "book/attention.html", "search.html?q=rotation", "index.html"])
def test_pages_with_a_policy_open_from_disk(published, opened, page):
    styled = "getComputedStyle(document.body).fontFamily"
    fonts: list[str] = []
    assert opened(f"{published.as_uri()}/{page}", lambda tab: fonts.append(tab.evaluate(styled))) == []
    assert fonts[0].startswith(("Literata", '"Literata'))


def test_the_zip_opens_from_disk(published, opened, tmp_path):
    with zipfile.ZipFile(published / publish.ZIP) as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "rope-turn-by-turn"
    assert 'http-equiv="Content-Security-Policy"' in (published / "book" / "attention.html").read_text()
    assert 'http-equiv="Content-Security-Policy"' not in (folder / "book" / "attention.html").read_text()
    for page in ("index.html", "book/attention.html", "search.html?q=rotation"):
        assert opened(f"{folder.as_uri()}/{page}") == []
    assert (folder / "notebooks" / "attention.ipynb").is_file()


def test_the_policy_is_the_pages_and_the_headers(published):
    policies = [headers(published)["Content-Security-Policy"]]
    policies += [
        text.partition('Security-Policy" content="')[2].partition('"')[0]
        for text in map(Path.read_text, published.rglob("*.html"))
    ]
    for one in policies:
        scripts = one.partition("script-src ")[2].partition(";")[0]
        assert "unsafe" not in scripts
        assert one.startswith("default-src 'none'; ")
    assert "frame-ancestors 'self'" in policies[0]
    prose = (published / "book" / "glossary.html").read_text()
    assert "blob:" not in prose.partition("</head>")[0]


def test_pages_without_style_attributes_allow_style_sheets_by_hash_only(published):
    strict = [
        path.relative_to(published).as_posix()
        for path in sorted(published.rglob("*.html"))
        if "'unsafe-inline'" not in path.read_text().partition("</head>")[0]
    ]
    pages = ("api", "attention_exercises", "derivation_history", "package", "references")
    assert {"404.html", "search.html", *(f"book/{page}.html" for page in pages)} <= set(strict)


def test_without_scripts_a_style_sheet_allowed_by_its_hash_applies(host, chromium: Browser):
    context = chromium.new_context(java_script_enabled=False)
    tab, problems = context.new_page(), []
    tab.on("console", lambda one: problems.append(one.text))
    tab.goto(f"{host}/book/references.html")
    assert tab.locator("noscript style").count() == 1
    hidden = tab.locator(".pst-js-only")
    assert hidden.count()
    assert not any(one.is_visible() for one in hidden.all())
    assert problems == []
    context.close()


def test_notebooks_know_where_the_package_is(published):
    text = (published / "notebooks" / "attention.ipynb").read_text()
    (wheel,) = (published / "notebooks").glob("*.whl")
    assert f"{ADDRESS}/notebooks/{wheel.name}" in text
