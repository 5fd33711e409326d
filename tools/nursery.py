"""Start kernels without delay, as forks of a process that has already loaded the large libraries.

Executing a short page would take four seconds, three of which are spent on starting Python and loading torch,
matplotlib and sympy. So one process loads these libraries once, but nothing from the book, and each page's kernel is a
fork of that process.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from functools import cache

from jupyter_client import AsyncKernelManager
from jupyter_client.provisioning import LocalProvisioner

FORKS = sys.platform == "linux"
"""Whether kernels are forked. On systems other than Linux, forking is not safe once a process's libraries have started
threads."""


class Kernels(AsyncKernelManager):
    """Kernel manager that starts kernels by forking where that is safe, and in the usual way elsewhere."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        if FORKS:
            self.provisioner = _Forked(kernel_spec=self.kernel_spec, parent=self)


class _Forked(LocalProvisioner):
    """Provisioner that gives Jupyter a forked process to use as its kernel."""

    async def launch_kernel(self, cmd: list[str], **options: object) -> dict:
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        self.process = _Process(fork(options["env"], arguments, str(options["cwd"])))
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Process:
    """A kernel's process, with the interface that Jupyter expects. Unlike a `Popen` object, it is not a child of this
    process."""

    stdin = stdout = stderr = None

    def __init__(self, pid: int) -> None:
        self.pid = pid

    def poll(self) -> int | None:
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return 0
        return None

    def wait(self) -> int:
        while self.poll() is None:
            time.sleep(0.01)
        return 0

    def send_signal(self, number: int) -> None:
        os.kill(self.pid, number)


_ONE_AT_A_TIME = threading.Lock()


def fork(environment: dict[str, str], arguments: list[str], folder: str) -> int:
    """Start a kernel with these arguments in this folder, and return its process id."""
    with _ONE_AT_A_TIME:
        forking = process(tuple(sorted(environment.items())))
        with contextlib.suppress(BrokenPipeError):
            print(json.dumps([arguments, folder]), file=forking.stdin, flush=True)
        answer = forking.stdout.readline()
    if not answer:
        raise RuntimeError(f"no kernel was started: the process that forks them ended with {forking.wait()}")
    return int(answer)


@cache
def process(environment: tuple[tuple[str, str], ...]) -> subprocess.Popen:
    """Start the process that forks kernels, all of them with this environment. It ends when the current process
    ends."""
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C should reach only this process
    )


def _serve() -> None:
    """Fork a kernel for each line of input, and print its process id."""
    sys.path.pop(0)  # this file's folder; chapters must not import its modules
    import anywidget  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import sympy  # noqa: F401
    import torch  # noqa: F401
    from ipykernel import kernelapp

    sys.modules.pop("__mp_main__", None)  # otherwise every page would depend on this file
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # no process waits for finished kernels
    for line in sys.stdin:
        arguments, folder = json.loads(line)
        pid = os.fork()
        if pid == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setsid()
            os.chdir(folder)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nowhere, stream)
            # A kernel ends when the process that forked it ends.
            kernelapp.launch_new_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
