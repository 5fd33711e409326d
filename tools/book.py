"""Build the book, serve it, or pack its notebooks: python -m tools.book read | html | execute | notebooks | lab."""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import http.server
import os
import re
import subprocess
import sys
import time
import webbrowser
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

from tools import assets, execute, preview, stills, takeaway
from tools.paths import BUILD, HTML, NOTEBOOKS, ROOT, write_whole

SOURCES = ("book", "code/ropebook", "results", "tools")
SINGLE = (
    "_config.yml",
    "_toc.yml",
    "requirements.txt",
    "constraints.txt",
    "pyproject.toml",
    "package-lock.json",
    # other files that go into the wheel, which is packed with the notebooks
    "README.md",
    "LICENSE",
    "setup.py",
    "MANIFEST.in",
    "code/rope_single.py",
)
# jupyter-book can't be run with -m. This command runs the one in the current environment, whatever PATH says. Because
# the pages' trees are large and long-lived, garbage is collected less often. This saves a fifth of the time and takes 5
# % more memory.
JUPYTER_BOOK = (
    sys.executable,
    "-c",
    "import gc, tools; gc.set_threshold(50_000, 20, 50); from jupyter_book.cli.main import main; main()",
)
STAMP = HTML / ".ropebook-built-from"
LOCK = BUILD / ".building"


class BuildError(Exception):
    """Raised if the strict build fails."""


def say(text: str) -> None:
    print(text, flush=True)


def fingerprint() -> str:
    """Return a hash of everything that the site is built from."""
    digest = hashlib.sha256(f"{sys.version} {sys.prefix}".encode())
    files = [ROOT / name for name in SINGLE]
    for folder in SOURCES:
        found = (path for path in (ROOT / folder).rglob("*") if path.is_file())
        files += sorted(path for path in found if "__pycache__" not in path.parts)
    for path in files:
        digest.update(f"{path.relative_to(ROOT)}\0".encode())
        digest.update(path.read_bytes() if path.exists() else b"missing")
    return digest.hexdigest()


def progress(text: str) -> None:
    """Show progress. On a terminal, a single line is updated; in a log, there is one line per chapter rather than one
    per cell."""
    if sys.stdout.isatty():
        print(f"\r\033[K  executing {text}", end="", flush=True)
    elif "starting" in text:
        say(f"  executing {text}")


def execute_stale() -> None:
    """Run the chapters whose outputs are stale, and print their names."""
    start = time.monotonic()
    ran = execute.execute_all(progress)
    if sys.stdout.isatty() and ran:
        print("\r\033[K", end="")
    seconds = time.monotonic() - start
    say(f"Executed {', '.join(ran)} in {seconds:.0f} s." if ran else "Every chapter's outputs are current.")


@contextlib.contextmanager
def one_build() -> Iterator[None]:
    """Context manager that holds a lock while the site is built. A second process waits until the lock is released."""
    LOCK.parent.mkdir(exist_ok=True)
    lock = FileLock(LOCK)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        say("Another build is under way; waiting for it …")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def is_built(wanted: str) -> bool:
    """Return whether the site was built from the sources with this `fingerprint`."""
    return STAMP.exists() and STAMP.read_text() == wanted


@one_build()
def html() -> Path:
    """Execute stale chapters, then build the site, treating every warning as an error. Returns the site's folder.

    `tools.execute` tracks the dependencies of each chapter's outputs, and Sphinx tracks those of each page. The stamp
    is only a short cut: if nothing at all has changed, neither of the two has to check. If another process is building,
    we wait for it first.
    """
    stills.write_opening()
    preview.write()
    wanted = fingerprint()
    if is_built(wanted):
        say("The book is up to date.")
        return HTML
    execute_stale()
    start = time.monotonic()
    say("Building the pages …")
    STAMP.unlink(missing_ok=True)
    done = subprocess.run(
        [*JUPYTER_BOOK, "build", str(ROOT), "-W", "-n", "--keep-going", "-q"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "PYTHONWARNINGS": "ignore", "NO_COLOR": "1"},
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(failure(done.stdout))
    write_whole(STAMP, wanted)
    say(f"Built in {time.monotonic() - start:.0f} s: {HTML.relative_to(ROOT)}/index.html opens from disk as well.")
    return HTML


def failure(printed: str) -> str:
    """Return the output of a failed build. The lines that explain the failure are repeated at the end, where they are
    easy to see."""
    why = [line for line in printed.splitlines() if re.search(r"\b(WARNING|ERROR)\b", line)]
    return "\n".join([printed.rstrip(), "", "The build failed; every warning is an error.", *why])


def serve(folder: Path, port: int) -> None:
    """Serve the site on 127.0.0.1 until interrupted, at `port` or at the next free port after it."""
    server = bind(folder, port)
    address = f"http://127.0.0.1:{server.server_port}/"
    say(f"Read it at {address}   (Ctrl-C ends)")
    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(address)
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        say("")
    finally:
        server.server_close()


class _Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because one line per request would bury the address."""

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """Send the site's own "not found" page, as hosts do."""
        page = Path(self.directory) / "404.html"
        if code != http.HTTPStatus.NOT_FOUND or not page.exists():
            super().send_error(code, message, explain)
            return
        text = page.read_bytes()
        self.send_response(code)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(text)


def bind(folder: Path, port: int) -> http.server.ThreadingHTTPServer:
    """Return a server for `folder` on the first free port from `port` on (0 means any free port)."""
    handler = functools.partial(_Quiet, directory=str(folder))
    for candidate in range(port, port + 100):
        try:
            return _Server(("127.0.0.1", candidate), handler)
        except OSError:
            continue
    raise BuildError(f"no free port between {port} and {port + 99}; name another with PORT=…")


class _Server(http.server.ThreadingHTTPServer):
    allow_reuse_address = False  # otherwise two servers could share a port, and the second would get no requests
    daemon_threads = True


def build(builder: str, out: Path) -> None:
    """Run a builder other than the site's. The pages that it has read are cached next to its output. It can't share the
    site's cache, because glued values are looked up in the builder's own folder."""
    from jupyter_book.sphinx import build_sphinx  # imported here because it takes a second

    failed = build_sphinx(
        ROOT,
        out,
        noconfig=True,
        path_config=ROOT / "_config.yml",
        confoverrides={"nitpicky": True, "latex_individualpages": False},
        doctreedir=out.parent / f".doctrees-{out.name}",
        builder=builder,
        warningiserror=True,
        keep_going=True,
        quiet=True,
    )
    if failed:
        raise BuildError(f"No {builder} written; every warning is an error.")


def write_notebooks() -> None:
    """Write the student notebooks with their outputs, and a zip that contains them and the package."""
    execute_stale()
    build("notebooks", NOTEBOOKS)
    packed = takeaway.pack(NOTEBOOKS)
    size = packed.stat().st_size / 1e6
    say(f"Notebooks, outputs included: {NOTEBOOKS.relative_to(ROOT)}/, and all in {packed.name} ({size:.1f} MB)")


def lab() -> None:
    """Start JupyterLab with copies of the chapters. Nothing is executed, and no pages are built."""
    folder = BUILD / "lab"
    build("lab", folder)
    say(f"Copies of the chapters: {folder.relative_to(ROOT)}/. What you change there stays there.")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "code")}
    command = [sys.executable, "-m", "jupyter", "lab", str(folder)]
    if getattr(os, "geteuid", lambda: 1)() == 0:  # as root, for example in containers, Jupyter needs this
        command.append("--allow-root")
    subprocess.run(command, env=environment, check=False)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.book", description=__doc__)
    parser.add_argument("what", choices=["read", "html", "execute", "notebooks", "lab"])
    parser.add_argument("--port", type=int, default=int(os.environ.get("PORT", "8000")), help="first port to try")
    arguments = parser.parse_args()
    try:
        if arguments.what == "notebooks":
            write_notebooks()
        elif arguments.what == "lab":
            lab()
        elif arguments.what == "execute":
            with one_build():
                stills.write_opening()
                execute_stale()
        else:
            folder = html()
            if arguments.what == "read":
                serve(folder, arguments.port)
    except (BuildError, execute.ChapterError, stills.StillError, assets.AssetError) as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
