"""Tests that `ropebook.lab.parts_file` returns a text unchanged after storing it in a file."""

import numpy as np
import pytest

from ropebook.lab import asking, parts, parts_file


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    root = tmp_path_factory.mktemp("library")
    for at in range(40):
        content = "".join(f"value_{at}_{line} = {line * (at + 3)}\n" for line in range(60))
        (root / f"file_{at}.py").write_text(content, encoding="utf-8")
    return parts.load(root)


def test_it_comes_back_as_it_was(text, tmp_path):
    parts_file.write(text, tmp_path / "text.npz")
    found = parts_file.read(tmp_path / "text.npz")
    assert found.summary() == text.summary()
    assert found.left_out == text.left_out
    assert np.array_equal(found.train, text.train)
    for part in parts.PARTS[1:]:
        assert list(found.files(part)) == list(text.files(part))
        assert all(np.array_equal(found.files(part)[name], content) for name, content in text.files(part).items())


def test_the_same_questions_are_made_of_it(text, tmp_path):
    parts_file.write(text, tmp_path / "text.npz")
    found = parts_file.read(tmp_path / "text.npz")
    layout = asking.Layout("order", 300, 200, 300, contexts=3, asked=2)
    a, b = (asking.contexts(layout, one.development).tokens for one in (text, found))
    assert a.equal(b)


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        parts_file.read(tmp_path / "nothing.npz")
