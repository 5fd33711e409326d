"""Test that `make check` finds the tests for the files that have changed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tools import check


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A small repository with one commit."""
    for name, text in {
        "code/ropebook/__init__.py": "",
        "code/ropebook/decay.py": "",
        "code/ropebook/lab/model.py": "",
        "code/ropebook/explorers/lock.js": "",
        "book/attention.md": "",
        "tools/pack.py": "",
        "tests/test_decay.py": "from ropebook import decay",
        "tests/test_longest.py": "from ropebook.decay import longest",
        "tests/test_model.py": "import ropebook.lab.model",
        "tests/test_attention.py": "def test():\n    from tools import pack",
        "tests/test_house.py": "",
        "tests/test_api.py": "",
        "tests/test_finding.py": "",
        "tests/test_lock.py": "",
        "tests/explorers/test_stills.py": "",
        "code/ropebook/efficient/__init__.py": "from ropebook.efficient.forms import rotate",
        "code/ropebook/efficient/forms.py": "",
        "code/ropebook/efficient/layouts.py": "",
        "code/ropebook/proofs/__init__.py": "",
        "code/ropebook/proofs/decay.py": "",
        "tests/test_efficient.py": "from ropebook import efficient",
        "tests/test_lab_model.py": "",
        "tests/test_proofs.py": "from ropebook import proofs",
        "tests/site/test_pages.py": "from ropebook import decay",
        ".gitignore": "_build",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    git = ["git", "-c", "user.name=N", "-c", "user.email=e@e"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], cwd=tmp_path, check=True)
    return tmp_path


def test_what_changed(repository):
    assert check.changed("HEAD", repository) == set()
    (repository / "tests/test_model.py").unlink()
    (repository / "tools/pack.py").write_text("x = 1")
    (repository / "new.py").write_text("")
    (repository / "_build").write_text("")
    assert check.changed("HEAD", repository) == {Path("tools/pack.py"), Path("new.py")}


@pytest.mark.parametrize(
    ("files", "tests", "explorers"),
    [
        (["code/ropebook/decay.py"], ["code/ropebook/decay.py", "api", "decay", "house", "longest"], []),
        (["code/ropebook/lab/model.py"], ["code/ropebook/lab/model.py", "api", "house", "lab_model", "model"], []),
        (["code/ropebook/efficient/forms.py"], ["code/ropebook/efficient/forms.py", "api", "efficient", "house"], []),
        (["code/ropebook/efficient/layouts.py"], ["code/ropebook/efficient/layouts.py", "api", "house"], []),
        (["code/ropebook/proofs/decay.py"], ["code/ropebook/proofs/decay.py", "api", "house", "proofs"], []),
        (["tools/pack.py"], ["attention"], []),
        (["book/attention.md"], ["attention", "finding"], []),
        (["_toc.yml"], ["finding"], []),
        (["pyproject.toml", "README.md"], ["lock"], []),
        (
            ["code/ropebook/colours.py"],
            ["code/ropebook/colours.py", "tests/explorers/test_stills.py", "api", "house"],
            [],
        ),
        (["tests/test_longest.py", "README.md"], ["longest"], []),
        (["tests/site/test_pages.py"], [], []),
        (["code/ropebook/explorers/lock.js", "code/ropebook/explorers/stills/lock.svg"], [], ["lock"]),
        (["code/ropebook/explorers/kit/mount.js"], [], ["kit or every"]),
        ([], [], []),
    ],
)
def test_the_tests_of_what_changed(repository, files, tests, explorers):
    expected = [name if "/" in name else f"tests/test_{name}.py" for name in tests]
    assert check.wanted_by({Path(name) for name in files}, repository) == (expected, explorers)


def test_the_first_failure_ends_it(monkeypatch, capsys):
    ran = []
    monkeypatch.setattr(check, "changed", lambda base: {Path("tools/check.py"), Path("book/decay.md")})
    codes = iter([0, 0, 1])

    def run(command, **_):
        ran.append(command[2])
        return subprocess.CompletedProcess(command, next(codes))

    monkeypatch.setattr(check.subprocess, "run", run)
    assert check.main() == 1
    assert ran == ["ruff", "ruff", "pytest"]
    codes = iter([0, 0, 0])
    assert check.main() == 0
    assert "make test` looks at book/decay.md" in capsys.readouterr().out
