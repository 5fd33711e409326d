"""Tests of the texts that are used to explore the published model. These texts must exist, be long enough, be the same
each time, and name their source."""

from __future__ import annotations

import io
import tarfile

import pytest

from ropebook.real import published, texts


@pytest.mark.parametrize("text", texts.EXPLORATION, ids=lambda text: text.name)
def test_texts_are_there_and_long_enough_and_say_their_licence(text):
    if text.kind == "literature" and not (published.FOLDER / texts.ARCHIVE).is_file():
        pytest.skip("literature has not been fetched (make real)")
    read = text.read()
    assert read == text.read()
    assert len(read) > 100_000  # 12,289 tokens correspond to about 40,000 characters
    assert text.license in ("PSF-2.0", "BSD-3-Clause", "public domain")
    assert text.source
    assert texts.exploration(text.name) is text


def test_a_digest_tells_texts_apart():
    assert texts.digest("a") != texts.digest("b")
    assert texts.digest("é") == texts.digest("\u00e9")


def test_what_is_not_there_is_named(tmp_path, monkeypatch):
    with pytest.raises(ModuleNotFoundError, match="needs the package nothing_of_this_name"):
        texts.package("nothing_of_this_name", "a.py")()
    with pytest.raises(ModuleNotFoundError, match="needs the package this"):
        texts.docstrings("this")()
    with pytest.raises(ValueError, match="name must be one of 'code', 'manual', 'headers', 'story', got 'novel'"):
        texts.exploration("novel")
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    with pytest.raises(FileNotFoundError, match="is not there yet"):
        texts.literature("alice29.txt")()


def made(folder, monkeypatch, files):
    """Create an importable package that contains these files."""
    package = folder / "a_package_for_texts"
    package.mkdir()
    (package / "__init__.py").write_text('"""First."""', encoding="utf-8")
    for name, content in files.items():
        path = package / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content, encoding="utf-8")
    monkeypatch.syspath_prepend(folder)


def test_files_of_a_package_come_in_the_order_of_their_names(tmp_path, monkeypatch):
    made(tmp_path, monkeypatch, {"b.md": "b", "a.md": "a", "c.txt": "ü"})
    assert texts.package("a_package_for_texts", "c.txt", "*.md")() == "ü\na\nb"


def test_docstrings_come_in_the_order_of_files_and_lines(tmp_path, monkeypatch):
    code = 'class A:\n    """Two."""\n    def f(self):\n        """Three."""\n\ndef g():\n    """Four."""\n'
    files = {
        "a.py": code,
        "b.py": '"""Five."""\ndef h(): pass',
        "tests/t.py": '"""Never."""',
        "z.py": 'async def f(): "Six."',
    }
    made(tmp_path, monkeypatch, files)
    assert texts.docstrings("a_package_for_texts")().split("\n\n") == [
        "First.",
        "Two.",
        "Three.",
        "Four.",
        "Five.",
        "Six.",
    ]


def test_literature_comes_out_of_the_archive_and_out_of_no_other(tmp_path, monkeypatch):
    path = tmp_path / texts.ARCHIVE
    with tarfile.open(path, "w:gz") as archive:
        info = tarfile.TarInfo("Brotli-1.1.0/tests/testdata/a.txt")
        info.size = 5
        archive.addfile(info, io.BytesIO(b"Alice"))
    monkeypatch.setattr(published, "FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"must be Brotli-1\.1\.0\.tar\.gz from PyPI, SHA-256 81de08ac"):
        texts.literature("a.txt")()
    monkeypatch.setattr(texts, "ARCHIVE_SHA256", published.sha256(path))
    assert texts.literature("a.txt")() == "Alice"
