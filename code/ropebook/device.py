"""Choose the device to compute on, and record where a number was measured."""

from __future__ import annotations

import datetime
import platform
from pathlib import Path

import numpy
import torch

from ropebook import checks


def devices() -> list[torch.device]:
    """Return the types of device that this machine has, best first: cuda, then mps, then cpu, which every machine has.

    Tests run on each of them.
    """
    present = {
        "cuda": torch.cuda.is_available(),
        "mps": torch.backends.mps.is_available(),
        "cpu": True,
    }
    return [torch.device(kind) for kind, there in present.items() if there]


def device(float64: bool = False) -> torch.device:
    """Return the device to compute on: cuda if there is one, otherwise mps, otherwise cpu.

    ``float64=True`` asks for a device with float64. mps has no float64, so the CPU is used instead.

    >>> torch.ones(2, dtype=torch.float64, device=device(float64=True)).dtype
    torch.float64
    """
    if not isinstance(float64, bool):
        raise TypeError(f"float64 must be True or False, got {float64!r}")
    return next(
        candidate
        for candidate in devices()
        if not (float64 and candidate.type == "mps")
    )


def provenance(
    seed: int | None = None,
    command: str | None = None,
    on: torch.device | None = None,
) -> dict[str, str | int | None]:
    """Return a record of where and how a number was measured, to be stored with the number.

    ``seed`` and ``command`` are needed to repeat the measurement; ``on`` is the device that did the work (default:
    ``device()``). The record's keys are ``device`` and ``cpu`` (names of the hardware), ``threads`` (the number of CPU
    threads that torch uses), ``torch``, ``numpy``, ``python`` (versions), ``date`` (ISO 8601, UTC, to the second),
    ``seed`` and ``command``.
    """
    if seed is not None:
        checks.integer("seed", seed)
    if command is not None and not isinstance(command, str):
        raise TypeError(f"command must be a string or None, got {command!r}")
    if on is not None and not isinstance(on, torch.device):
        raise TypeError(f"on must be a torch.device or None, got {on!r}")
    return {
        "device": _hardware_name(on or device()),
        "cpu": _cpu_name(),
        "threads": torch.get_num_threads(),
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "seed": seed,
        "command": command,
    }


def _hardware_name(where: torch.device) -> str:
    if where.type == "cuda":
        return torch.cuda.get_device_name(where)
    if where.type == "mps":
        return f"{_cpu_name()} (mps)"
    return _cpu_name()


def _cpu_name() -> str:
    # Under Linux platform.processor() is empty or only "x86_64", so we ask the kernel for the model.
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text(errors="replace").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name" and value.strip():
                return value.strip()
    return platform.processor() or platform.machine()
