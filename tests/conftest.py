"""Configuration shared by all tests: Hypothesis profiles, and fixtures for the devices that tests run on.

A test with the argument ``device`` runs once on every kind of device that this machine has. A test with the argument
``float64_device`` runs only on those that support float64.
"""

import gc
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests import shapes

# The tests' tensors are tiny, so starting a second thread costs more than it saves and makes the suite take four times
# as long. This must be set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Imported modules and collected tests stay in memory until the end. Scanning them for garbage again and again takes a
# fifth of the time that pytest needs to collect the tests. From here on, Python scans only objects created later, and
# does so less often.
gc.disable()

# This must come before anything that imports ropebook.
shapes.install()

# CI uses the same examples every time, so that failures can be reproduced. Everywhere else, each run draws fewer
# examples, but fresh ones.
settings.register_profile("ci", derandomize=True, deadline=None, max_examples=50)
settings.register_profile("dev", deadline=None, max_examples=20)
settings.load_profile("ci" if os.environ.get("CI") else "dev")


def pytest_collection_finish() -> None:
    gc.freeze()
    gc.set_threshold(10_000, 20, 50)
    gc.enable()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    wanted = {"device", "float64_device"}.intersection(metafunc.fixturenames)
    if not wanted:
        return
    from ropebook.device import devices  # imported here because the tests of the built site don't need torch

    present = devices()
    if "device" in wanted:
        metafunc.parametrize("device", present, ids=str)
    if "float64_device" in wanted:
        metafunc.parametrize("float64_device", [d for d in present if d.type != "mps"], ids=str)


@pytest.fixture(scope="session")
def written_notebooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with the book's notebooks and the wheel. If those next to the site are out of date, build new
    ones."""
    # imported here because most tests don't need the book
    from tools import book, takeaway
    from tools.paths import HTML

    with book.one_build():
        if book.is_built(book.fingerprint()):
            return HTML / "notebooks"
    out = tmp_path_factory.mktemp("notebooks")
    book.build("notebooks", out)
    takeaway.pack(out)
    return out


@pytest.fixture
def without_gradients() -> Iterator[None]:
    """Turn off gradient recording during the test."""
    import torch

    with torch.no_grad():
        yield
