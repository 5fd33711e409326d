"""Start kernels at once, as forks of one process that has already loaded the large libraries.

Of the four seconds that a short page takes, three go into starting Python and loading torch, matplotlib and sympy. One
process loads these once, but nothing from the book, and each page's kernel is a fork of that process.
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
"""On other systems, a process cannot be forked safely once its libraries have started threads."""


class Kernels(AsyncKernelManager):
    """Start kernels by forking where that is safe, and in the usual way elsewhere."""

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        if FORKS:
            self.provisioner = _Forked(kernel_spec=self.kernel_spec, parent=self)


class _Forked(LocalProvisioner):
    """Provides Jupyter with the process of its kernel."""

    async def launch_kernel(self, cmd: list[str], **options: object) -> dict:
        arguments = cmd[cmd.index("ipykernel_launcher") + 1 :]
        self.process = _Process(fork(options["env"], arguments, str(options["cwd"])))
        self.pid = self.pgid = self.process.pid
        return self.connection_info


class _Process:
    """The process of a kernel, which is not our child, with the interface that Jupyter needs."""

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
    """The process that forks kernels, all with this environment. It ends when our process does."""
    return subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=dict(environment),
        start_new_session=True,  # Ctrl-C is only for our process
    )


def _serve() -> None:
    """Fork a kernel for each line of input, and answer with its process id."""
    sys.path.pop(0)  # this file's folder, whose modules chapters must not import
    import anywidget  # noqa: F401
    import matplotlib.pyplot  # noqa: F401
    import sympy  # noqa: F401
    import torch  # noqa: F401
    from ipykernel import kernelapp

    sys.modules.pop("__mp_main__", None)  # so that pages don't depend on this file
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for finished kernels
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
            # A kernel ends when the process that forked it does.
            kernelapp.launch_new_instance([*arguments, f"--IPKernelApp.parent_handle={os.getppid()}"])
            os._exit(0)
        print(pid, flush=True)


if __name__ == "__main__":
    _serve()
