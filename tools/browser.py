"""Find a Chromium for the browser tests: one that is already installed, one from the system's package manager, or
Playwright's own."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

# The first of these has no window at all, not even a hidden one, so it opens pages in half the time.
NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
MAC = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
# Without these arguments, the browser would not start as root, and would contact its vendor's servers for updates.
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-quic",
]
HELP = """No Chromium was found, and none could be installed. Install one (Debian, Ubuntu: apt-get install chromium;
elsewhere: `.venv/bin/playwright install chromium`, or any Chrome), or run `make test SKIP_BROWSER=1`, which leaves
out every test that opens a page."""


def find() -> str | None:
    """Return the path of an installed browser, or None if there is none."""
    for name in NAMES:
        path = shutil.which(name)
        if path:
            return path
    if os.path.exists(MAC):
        return MAC
    return _playwrights_own()


def ensure() -> str | None:
    """Return the path of a browser, or None. If no browser is installed yet, try to install one."""
    return find() or _from_system() or _from_playwright()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if os.path.exists(path) else None


def _from_system() -> str | None:
    if not shutil.which("apt-get") or not hasattr(os, "geteuid") or os.geteuid() != 0:
        return None
    print("Installing Chromium with the system's package manager …", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for rest in (["update"], *(["install", "-y", name] for name in NAMES[:2])):
        command = ["apt-get", "-qq", *rest]
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, check=False)
        if find():
            return find()
    return None


def _from_playwright() -> str | None:
    print("Asking Playwright for its own Chromium …", flush=True)
    command = [sys.executable, "-m", "playwright", "install", "chromium"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=600, check=False)
    return find() if done.returncode == 0 else None


if __name__ == "__main__":
    if os.environ.get("SKIP_BROWSER") == "1":
        print("SKIP_BROWSER=1: no page will be opened. NOT TESTED: the built site in a browser.")
        sys.exit(0)
    found = ensure()
    print(f"Browser: {found}" if found else HELP, file=sys.stdout if found else sys.stderr)
    sys.exit(0 if found else 1)
