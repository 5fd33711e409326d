"""Test that forked kernels start like ordinary ones, are independent of one another, and terminate."""

from __future__ import annotations

import asyncio
import os
import subprocess
import time

import nbformat
import pytest
from nbclient import NotebookClient

from tools import nursery
from tools.paths import ROOT

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT / "code"), "PYTHONHASHSEED": "0", "MPLBACKEND": "agg"}
forks = pytest.mark.skipif(not nursery.FORKS, reason="kernels are forked on Linux only")


def printed(code: str, **options) -> str:
    """Run ``code`` in a kernel, and return what it prints."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(code)])
    client = NotebookClient(
        notebook,
        kernel_name="python3",
        kernel_manager_class=nursery.Kernels,
        timeout=100,
        resources={"metadata": {"path": str(ROOT / "results")}},
    )
    client.execute(env={**ENVIRONMENT, **options}, stderr=subprocess.DEVNULL)
    return "".join(output.text for output in notebook.cells[0].outputs)


STATE = """
import matplotlib, os, subprocess, sys
own = [name for name, module in sys.modules.items() if str(getattr(module, "__file__", "")).startswith(OURS)]
print(os.path.basename(os.getcwd()), own, hash("a"), matplotlib.get_backend(), sys.path, __name__)
print(subprocess.run(["sh", "-c", "exit 3"]).returncode, os.getpid() == os.getsid(0))
print("to stderr", file=sys.stderr)
"""


@forks
def test_a_forked_kernel_finds_what_any_other_finds(monkeypatch):
    state = f"OURS = ({str(ROOT / 'tools')!r}, {str(ROOT / 'code')!r})\n{STATE}"
    forked = printed(state)
    monkeypatch.setattr(nursery, "FORKS", False)
    assert printed(state) == forked
    assert forked.startswith("results []")


@forks
def test_it_has_the_libraries_and_nothing_of_the_last_kernel():
    assert printed("import sys, builtins; builtins.left = 1; print('torch' in sys.modules)") == "True\n"
    assert printed("import builtins; print(hasattr(builtins, 'left'))") == "False\n"


def ends(pid: int) -> bool:
    for _ in range(300):
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.1)
    return False


@forks
def test_a_kernel_ends_with_its_page():
    assert ends(int(printed("import os; print(os.getpid())")))


@forks
def test_a_kernel_ends_with_the_process_that_forked_it():
    environment = {**ENVIRONMENT, "OF_ITS_OWN": "1"}
    kernels = nursery.Kernels(kernel_name="python3")
    asyncio.run(kernels.start_kernel(env=environment, cwd=str(ROOT)))
    pid = kernels.provisioner.process.pid
    os.kill(pid, 0)  # this call raises an error if the process doesn't exist
    nursery.process(tuple(sorted(environment.items()))).kill()
    assert ends(pid)


def test_a_nursery_that_has_ended_is_said(monkeypatch):
    monkeypatch.setattr(nursery.sys, "executable", "/bin/false")
    monkeypatch.setattr(nursery, "FORKS", True)
    with pytest.raises(RuntimeError, match="no kernel was started"):
        printed("1", ANOTHER="environment")
