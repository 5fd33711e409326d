"""Measure how heavy and how fast every page of the site is, compared with plain Jupyter Book; writes results/site.json.

All pages are loaded over http on this machine, with an empty cache. We measure:

- Bytes, requests, and first and largest contentful paint (the median of RUNS loads).
- For explorers, the milliseconds from an input event to the end of drawing, and how many dials can be used while the
  whole picture is visible (`benchmarks.reach`), on each of two screens.
- Lighthouse's scores for the page as a host would serve it, compressed, on a desktop and on a phone with a slow
  connection.

The same chapters are also built with plain Jupyter Book. Those pages load scripts from content delivery networks. If
these networks can't be reached, the scripts are not counted, and the book's page says so.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import http.server
import json
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import nbformat
import torch
from playwright.sync_api import Browser, Response, sync_playwright

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "code")]

from benchmarks import reach  # noqa: E402  (the path is set just above)
from ropebook import device, results  # noqa: E402
from tools import assets, book, browser, execute  # noqa: E402
from tools.paths import pages  # noqa: E402

RUNS = 5
LIGHTHOUSE = Path(__file__).resolve().parent / "lighthouse"
ALIVE = "document.querySelectorAll('.explorer:not(.explorer-alive)').length === 0"
EVENTS = 200
PAINTS = """() => new Promise(done => {
  const first = performance.getEntriesByName('first-contentful-paint')[0];
  let largest = null;
  new PerformanceObserver(list => { largest = list.getEntries().at(-1); })
    .observe({type: 'largest-contentful-paint', buffered: true});
  setTimeout(() => done([first ? first.startTime : null, largest ? largest.startTime : null]), 200);
})"""


def weigh(chromium: Browser, address: str) -> dict:
    """Measure the bytes, requests and paint times of one page, loaded with an empty cache."""
    first, largest, sizes, unreached = [], [], {}, set()
    for _ in range(RUNS):
        context = chromium.new_context(viewport={"width": 1280, "height": 900})
        page = context.new_page()
        page.on("response", lambda response: sizes.update(_size(response)))
        page.on("requestfailed", lambda request: unreached.add(request.url))
        page.goto(address, wait_until="load")
        page.wait_for_timeout(300)
        paints = page.evaluate(PAINTS)
        first.append(paints[0])
        largest.append(paints[1])
        context.close()
    hosts = sorted({url.split("/")[2] for url in unreached if "127.0.0.1" not in url})
    return {
        "bytes": sum(sizes.values()),
        "requests": len(sizes) + len([url for url in unreached if url not in sizes]),
        "first_contentful_paint_ms": round(statistics.median(first), 1),
        "largest_contentful_paint_ms": round(statistics.median(largest), 1),
        "hosts_asked_outside": len(hosts),
    }


def _size(response: Response) -> dict[str, int]:
    """Map the response's address to its size in bytes. Blobs don't count as a transfer, because they are scripts inside
    the page itself."""
    if response.url.startswith(("blob:", "data:")):
        return {}
    return {response.url: len(response.body()) if response.ok else 0}


def explorer_work(chromium: Browser, address: str) -> dict:
    """Measure the 95th percentile of the work per input event, in milliseconds, for each explorer of a page."""
    page = chromium.new_page()
    page.goto(address, wait_until="load")
    page.wait_for_function(ALIVE)
    found = {}
    for index in range(page.locator(".explorer").count()):
        explorer = page.locator(".explorer").nth(index)
        name = explorer.get_attribute("data-explorer")
        work = explorer.evaluate(TURN, EVENTS)
        if work:
            found[name] = {"p95_ms": round(statistics.quantiles(work, n=20)[-1], 2), "events": len(work)}
    page.close()
    return found


def explorer_reach(chromium: Browser, address: str) -> dict:
    """Return the result of `benchmarks.reach.measure` for each explorer of a page on each screen."""
    found = {}
    for screen, (width, height) in reach.SCREENS.items():
        page = chromium.new_page(viewport={"width": width, "height": height})
        page.goto(address, wait_until="load")
        page.wait_for_function(ALIVE)
        for explorer in page.locator(".explorer").all():
            name = explorer.get_attribute("data-explorer")
            found.setdefault(name, {})[screen] = reach.measure(explorer)
        page.close()
    return found


# Move the explorer's sliders back and forth (or toggle its switches, if it has no sliders), and record how long the
# work took.
TURN = """async (explorer, events) => {
  const host = explorer.querySelector('.explorer-live') || explorer;
  const ranges = [...explorer.querySelectorAll('input[type=range]')];
  const switches = [...explorer.querySelectorAll('input[type=checkbox]')];
  const log = host.ropebook.work; log.length = 0;
  for (let k = 0; k < events; k++) {
    if (!ranges.length) {
      switches[k % switches.length].click();
      await new Promise(requestAnimationFrame);
      continue;
    }
    const dial = ranges[k % ranges.length], low = Number(dial.min), high = Number(dial.max);
    dial.value = String(low + (high - low) * ((k * 0.618034) % 1));
    dial.dispatchEvent(new Event('input', {bubbles: true}));
    await new Promise(requestAnimationFrame);
  }
  return [...log];
}"""


class Compressed(http.server.SimpleHTTPRequestHandler):
    """Request handler that serves files as hosts do, with text files compressed by gzip."""

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        kind = self.guess_type(str(path))
        body = path.read_bytes()
        is_text = kind.startswith("text/") or path.suffix in (".js", ".json", ".svg")
        self.send_response(200)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if is_text else kind)
        self.send_header("Cache-Control", "max-age=600")
        if is_text:
            body = gzip.compress(body, 6)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def lighthouse(built: Path, chromium: Browser) -> dict[str, dict]:
    """Return Lighthouse's results for the pages, measured in its own browser. They are keyed by page name, then by
    screen, and contain scores, times and failed audits."""
    subprocess.run(
        [assets.node(), str(assets.npm()), "ci", "--no-fund", "--no-audit", "--ignore-scripts"],
        cwd=LIGHTHOUSE,
        check=True,
    )
    handler = functools.partial(Compressed, directory=str(built))
    found: dict[str, dict] = {}
    with served(http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)) as start:
        command = [assets.node(), "judge.mjs", browser.ensure(), *(f"{start}/{name}.html" for name in names())]
        with subprocess.Popen(command, cwd=LIGHTHOUSE, stdout=subprocess.PIPE, text=True) as process:
            for line in process.stdout:
                told = json.loads(line)
                name = told.pop("address").removeprefix(f"{start}/").removesuffix(".html")
                screen = told.pop("screen")
                found.setdefault(name, {})[screen] = told
                print(name, screen, told["scores"], told["failed"], flush=True)
    if process.returncode:
        raise RuntimeError(f"Lighthouse ended with {process.returncode}")
    return found


def stock_build(folder: Path, chapter: Path) -> Path:
    """Build the chapter with Jupyter Book's default settings, and return the site's folder."""
    notebook = execute.executed(chapter)
    nbformat.write(notebook, folder / f"{chapter.stem}.ipynb")
    (folder / "_toc.yml").write_text(f"format: jb-book\nroot: {chapter.stem}\n")
    (folder / "_config.yml").write_text('title: Stock\nexecute:\n  execute_notebooks: "off"\n')
    command = [*book.JUPYTER_BOOK, "build", str(folder), "-q"]
    subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=300)
    return folder / "_build" / "html"


def weighed(built: Path, chromium: Browser) -> dict:
    """Measure the size and paint times of every page, and the work and reach of its explorers."""
    found = {}
    with served(book.bind(built, 0)) as start:
        for name in names():
            address = f"{start}/{name}.html"
            found[name] = weigh(chromium, address)
            work = explorer_work(chromium, address)
            if work:
                found[name]["explorers"] = work
                found[name]["reach"] = explorer_reach(chromium, address)
            print(name, found[name], flush=True)
    return found


def stock(built: Path, chromium: Browser) -> dict:
    """Measure the size and paint times of each chapter's first page, built with plain Jupyter Book."""
    found = {}
    for chapter in execute.chapters():
        if "_" in chapter.stem.replace("complex_plane", ""):
            continue
        with tempfile.TemporaryDirectory() as folder, served(book.bind(stock_build(Path(folder), chapter), 0)) as start:
            found[chapter.stem] = weigh(chromium, f"{start}/{chapter.stem}.html")
        print("stock", chapter.stem, found[chapter.stem], flush=True)
    return found


def names() -> list[str]:
    """Return the names of all pages of the book, as they appear on the site."""
    return [page.relative_to(ROOT).with_suffix("").as_posix() for page in pages()]


@contextlib.contextmanager
def served(server: http.server.HTTPServer) -> Iterator[str]:
    """Context manager that starts a server, yields its address, and stops the server on exit."""
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


PARTS = {"pages": weighed, "lighthouse": lighthouse, "stock": stock}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", choices=list(PARTS), help="measure this part, and keep the rest of the file")
    only = parser.parse_args().only
    built = book.html()
    path = browser.ensure()
    if path is None:
        sys.exit(browser.HELP)
    with sync_playwright() as playwright:
        for part in [only] if only else PARTS:
            chromium = playwright.chromium.launch(executable_path=path, args=browser.ARGUMENTS)
            where = device.provenance(command=f"python benchmarks/site.py --only {part}", on=torch.device("cpu"))
            where |= {"browser": chromium.version, "runs": RUNS}
            measured = PARTS[part](built, chromium)
            chromium.close()
            data = {name: told for name, told in results.load("site").items() if name in PARTS}
            results.save("site", data | {part: {"provenance": where, "found": measured}}, where)


if __name__ == "__main__":
    main()
