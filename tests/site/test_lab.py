"""Test that a notebook's figures come to life in JupyterLab, as the note in its first cell says."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Error, expect

from tools.paths import ROOT

NAME = "intro.ipynb"  # has few cells, and a figure in the first of them
OFF = dict.fromkeys(["jupyter_lsp", "jupyter_server_terminals", "jupyterlab_jupytext", "notebook"], False)


@pytest.fixture
def lab(site: Path, tmp_path: Path) -> Iterator[str]:
    """Start JupyterLab in a folder that has only the notebook, and return the notebook's address in it."""
    shutil.copy(site / "notebooks" / NAME, tmp_path)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    own += ("JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR")
    settings = {name: str(tmp_path / f".{name}") for name in own}  # otherwise those of whoever runs the tests apply
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", f"--ServerApp.root_dir={tmp_path}"]
    command += [f"--ServerApp.port={port}", "--ServerApp.port_retries=0", "--IdentityProvider.token=for-the-test"]
    command += [f"--ServerApp.jpserver_extensions={OFF}"]
    environment = {**os.environ, **settings, "PYTHONPATH": str(ROOT / "code")}
    with open(tmp_path / "log", "w") as log:
        server = subprocess.Popen(command, env=environment, cwd=tmp_path, stdout=log, stderr=log)
    try:
        yield f"http://127.0.0.1:{port}/lab/tree/{NAME}?token=for-the-test"
    finally:
        server.terminate()  # stops its kernels, too
        server.wait(60)


@pytest.mark.timeout(600)
def test_a_figure_comes_to_life_in_jupyterlab(lab: str, chromium: Browser):
    context = chromium.new_context(viewport={"width": 1280, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(120_000)
    for _ in range(600):
        try:
            page.goto(lab)
            break
        except Error:  # the server is still starting
            page.wait_for_timeout(200)
    note = page.locator(".jp-MarkdownCell").first
    expect(note).to_contain_text("We have tried both in JupyterLab", timeout=120_000)
    said = page.locator(".jp-OutputArea-output .rb-summary")
    assert said.count() == 0, "before its cell runs, there is only a still picture"
    page.get_by_text("Python 3 (ipykernel) | Idle").wait_for()
    page.get_by_role("menuitem", name="Run", exact=True).click()
    page.locator(".lm-Menu-itemLabel").get_by_text("Run All Cells", exact=True).click()
    expect(said).to_contain_text("5 tokens after “cat”", timeout=120_000)
    before = said.text_content()
    expect(page.locator(".jp-OutputArea-output .rb-stage svg[role=img]").first).to_be_visible()
    page.get_by_role("slider", name="Dimension d, slider").press("ArrowRight")
    expect(said).not_to_have_text(before)
    context.close()
