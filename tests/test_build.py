"""Tests of the cache of executed chapters, of the build rules, and of the commands that run before and after a
build."""

from __future__ import annotations

import os
import queue
import shutil
import subprocess
import sys
import tempfile
import tomllib
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sphinxcontrib.katex

from tests.scripts import extension
from tools import book, execute, paths

ROOT = paths.ROOT
CHAPTER = """---
jupytext:
  text_representation:
    extension: .md
    format_name: myst
kernelspec:
  display_name: Python 3
  language: python
  name: python3
---
# A chapter

```{code-cell} ipython3
import json, pathlib
from ropebook.small import ANSWER
print("the answer is", ANSWER, json.loads(pathlib.Path("results/measured.json").read_text())["value"])
```
"""


@pytest.fixture
def small_book(tmp_path: Path) -> Path:
    """A repository with one chapter, one module and one result, together with this repository's tools."""
    shutil.copytree(ROOT / "tools", tmp_path / "tools", ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("book", "code/ropebook", "results"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "_toc.yml").write_text("format: jb-book\nroot: book/one\n")
    (tmp_path / "constraints.txt").write_text("numpy==2\n")
    (tmp_path / "book" / "one.md").write_text(CHAPTER)
    (tmp_path / "code" / "ropebook" / "__init__.py").write_text("")
    (tmp_path / "code" / "ropebook" / "small.py").write_text("from ropebook.deep import ANSWER\n")
    (tmp_path / "code" / "ropebook" / "deep.py").write_text("ANSWER = 41\n")
    (tmp_path / "code" / "ropebook" / "other.py").write_text("UNUSED = 1\n")
    (tmp_path / "results" / "measured.json").write_text('{"value": 7}')
    return tmp_path


RUN = """
import sys
from tools import execute, nursery
can_fork = nursery.FORKS
for forks in sys.stdin:
    nursery.FORKS = can_fork and forks == "forks\\n"
    ran = execute.execute_all(lambda text: None)
    cells = execute.executed(execute.runnable()[0]).cells
    print(bool(ran), [o.text for c in cells if c.cell_type == "code" for o in c.outputs], flush=True)
"""


@pytest.fixture
def printed(small_book: Path) -> Iterator[Callable[..., tuple[str, bool]]]:
    """Return what the chapter prints, and whether it had to be run again, in a forked or an ordinary kernel."""
    with subprocess.Popen(
        [sys.executable, "-c", RUN], cwd=small_book, text=True, env={**os.environ, "PYTHONPATH": str(small_book)},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as running:  # fmt: skip

        def printed_(forks: bool = False) -> tuple[str, bool]:
            print("forks" if forks else "", file=running.stdin, flush=True)
            ran, _, text = running.stdout.readline().partition(" ")
            if not text:
                raise RuntimeError(running.stderr.read())
            return text, ran == "True"

        yield printed_
        running.stdin.close()


def test_the_cache_never_lies(small_book, printed):
    text, ran = printed(forks=True)
    assert ran
    assert "the answer is 41 7" in text
    assert printed() == (text, False)

    (small_book / "code/ropebook/deep.py").write_text("ANSWER = 42\n")  # the chapter imports this module indirectly
    text, ran = printed()
    assert ran
    assert "the answer is 42 7" in text

    (small_book / "results/measured.json").write_text('{"value": 8}')
    text, ran = printed()
    assert ran
    assert "the answer is 42 8" in text

    (small_book / "constraints.txt").write_text("numpy==3\n")
    assert printed()[1]

    (small_book / "code/ropebook/other.py").write_text("UNUSED = 2\n")  # the chapter doesn't import this module
    assert not printed()[1]

    chapter = small_book / "book/one.md"
    chapter.write_text(chapter.read_text().replace("# A chapter", "# A better title"))
    assert not printed()[1], "prose is not executed"
    chapter.write_text(chapter.read_text().replace("the answer is", "the number is"))
    text, ran = printed()
    assert ran
    assert "the number is 42 8" in text


def test_a_failed_build_says_why_at_its_end():
    printed = "reading\nbook/one.md:7: WARNING: equation eq-one has no seal\nbook/two.md: ERROR: no\nmuch\nmore"
    why = ["book/one.md:7: WARNING: equation eq-one has no seal", "book/two.md: ERROR: no"]
    found = book.failure(printed).splitlines()
    assert found[-2:] == why
    assert found[:5] == printed.splitlines()


def test_the_cache_key_holds_python(small_book, monkeypatch):
    notebook = execute.read_chapter(small_book / "book/one.md")
    before = execute._key(notebook, [])
    monkeypatch.setattr(execute.platform, "python_version", lambda: "3.99.0")
    assert execute._key(notebook, []) != before


def test_a_failing_cell_names_its_chapter_and_keeps_nothing(small_book, printed):
    chapter = small_book / "book/one.md"
    chapter.write_text(chapter.read_text().replace("print(", "raise ValueError('on purpose') or print("))
    with pytest.raises(RuntimeError, match=r"book/one\.md, cell 1 of 1, failed(.|\n)*on purpose"):
        printed()
    assert not (small_book / "_build/executed/one.ipynb").exists()


@pytest.fixture(scope="session")
def shell():
    return extension("shell")


@pytest.mark.parametrize(
    ("text", "uri", "problem"),
    [
        (None, "a.png", "no alternative text"),
        ("  ", "a.png", "no alternative text"),
        ("weights.png", "_images/weights.png", "file name"),
        ("0a1b2c3d4e5f60718293a4b5c6d7e8f9.png", "x/0a1b2c3d4e5f60718293a4b5c6d7e8f9.png", "file name"),
        ("a-rather-long-name-of-a-file", "x/a-rather-long-name-of-a-file.svg", "file name"),
        ("a short one", "a.png", "11 characters"),
        ("Four curves that fall from left to right", "a.png", None),
    ],
)
def test_alternative_text_must_say_something(shell, text, uri, problem):
    found = shell.alt_problem(text, uri)
    assert (found is None) if problem is None else problem in found


def test_a_signature_has_defaults_that_sphinx_can_parse(shell):
    signature = (
        "(m: Mapping[str, str], a: list[dict[str, str]] = <factory>, b: ~abc.Mapping[str, str] = <factory>, c: int = 0)"
    )
    text, result = shell.with_empty_defaults(None, "class", "C", None, None, signature, "str")
    assert text == "(m: Mapping[str, str], a: list[dict[str, str]] = [], b: ~abc.Mapping[str, str] = {}, c: int = 0)"
    assert result == "str"
    assert shell.with_empty_defaults(None, "data", "D", None, None, None, None) == (None, None)


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ('<svg role="img" aria-label="Two bars"><g><svg></svg></g></svg>', ["Two bars"]),
        ("<figure><svg><path/></svg></figure>", [None]),
        ('<svg aria-hidden="true"></svg><img src="x.png">', [None]),
        ('<img alt="A picture of it" src="x.png">', ["A picture of it"]),
    ],
)
def test_pictures_in_raw_html_are_found(shell, html, texts):
    parser = shell._Pictures()
    parser.feed(html)
    assert [text for _, text in parser.found] == texts


# Binds a Unix socket, but doesn't listen on it yet.
BOUND = "import socket, sys, time; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); time.sleep(0.5); "


@pytest.fixture
def renderer_that(monkeypatch):
    """Use another program as the formula renderer. The program receives the address of the socket."""

    def renderer_that_(does: str) -> None:
        build = staticmethod(lambda socket: [sys.executable, "-c", BOUND + does, str(socket)])
        monkeypatch.setattr(sphinxcontrib.katex.KaTeXServer, "build_command", build)

    return renderer_that_


def test_a_renderer_that_listens_late_is_waited_for(shell, renderer_that):
    renderer_that("s.listen(); s.accept()[0].sendall(b'here'); time.sleep(60)")
    with tempfile.TemporaryDirectory() as folder:  # the paths of pytest's temporary folders are too long for a socket
        process, connection = shell.start_renderer(Path(folder), timeout=30)
        with connection:
            assert connection.recv(4) == b"here"
        process.kill()
        process.wait()


def test_a_renderer_that_never_listens_is_ended(shell, renderer_that, monkeypatch):
    started = []
    popen = subprocess.Popen
    monkeypatch.setattr(subprocess, "Popen", lambda *a, **options: started.append(popen(*a, **options)) or started[-1])
    renderer_that("time.sleep(60)")
    with tempfile.TemporaryDirectory() as folder, pytest.raises(sphinxcontrib.katex.KaTeXError):
        shell.start_renderer(Path(folder), timeout=1)
    assert started[0].wait(timeout=10) < 0


def test_the_server_takes_the_next_free_port(tmp_path):
    (tmp_path / "index.html").write_text("here")
    first = book.bind(tmp_path, 8123)
    second = book.bind(tmp_path, 8123)
    try:
        assert second.server_port > first.server_port
        assert second.server_address[0] == "127.0.0.1"
    finally:
        first.server_close()
        second.server_close()


def test_a_second_build_with_nothing_changed_does_not_start_sphinx(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(book, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(book, "LOCK", tmp_path / "lock")
    (tmp_path / "stamp").write_text(book.fingerprint())
    monkeypatch.setattr(book.stills, "write_opening", lambda: None)
    monkeypatch.setattr(book.subprocess, "run", lambda *_, **__: pytest.fail("Sphinx was started"))
    monkeypatch.setattr(book.execute, "execute_all", lambda _: pytest.fail("a chapter was executed"))
    book.html()
    assert "up to date" in capsys.readouterr().out


def test_the_site_is_made_anew_for_what_it_is_made_from_and_not_for_a_test(monkeypatch, tmp_path):
    monkeypatch.setattr(book, "ROOT", tmp_path)
    for folder in ("book", "code/ropebook", "results", "tools", "tests"):
        (tmp_path / folder).mkdir(parents=True)
    seen = {book.fingerprint()}
    for name in ("book/one.md", "code/ropebook/rope.py", "results/one.json", "tools/book.py", "_config.yml"):
        (tmp_path / name).write_text("changed")
        assert book.fingerprint() not in seen, name
        seen.add(book.fingerprint())
    (tmp_path / "tests/test_one.py").write_text("# a comment")
    assert book.fingerprint() in seen


def test_who_wants_the_site_waits_while_it_is_built(monkeypatch, tmp_path):
    monkeypatch.setattr(book, "STAMP", tmp_path / "stamp")
    monkeypatch.setattr(book, "LOCK", tmp_path / "lock")
    (tmp_path / "stamp").write_text("of older sources")
    monkeypatch.setattr(book.stills, "write_opening", lambda: None)
    monkeypatch.setattr(book.execute, "execute_all", lambda _: pytest.fail("a chapter was executed"))
    said = queue.Queue()
    monkeypatch.setattr(book, "say", said.put)
    with ThreadPoolExecutor(1) as pool:
        with book.one_build():
            waiting = pool.submit(book.html)
            assert "waiting for it" in said.get(timeout=60)
            assert not waiting.done()
            (tmp_path / "stamp").write_text(book.fingerprint())
        assert waiting.result(60) == paths.HTML
    assert "up to date" in said.get_nowait()


def test_what_one_folder_was_built_from_is_not_taken_for_another(monkeypatch, tmp_path):
    kept = []
    monkeypatch.setattr("jupyter_book.sphinx.build_sphinx", lambda *_, doctreedir, **__: kept.append(doctreedir))
    for out in (paths.NOTEBOOKS, paths.BUILD / "lab", tmp_path / "one", tmp_path / "other"):
        book.build("notebooks", out)
    assert len(set(kept)) == 4
    assert book.BUILD / ".doctrees" not in kept  # `.doctrees` belongs to the site build


def test_a_page_has_code_where_jupytext_finds_a_cell():
    found = {path: execute.has_code(path) for path in paths.pages()}
    assert set(found.values()) == {True, False}
    for path, has in found.items():
        cells = execute.read_chapter(path).cells if path.read_text(encoding="utf-8").startswith("---") else []
        assert has == any(cell.cell_type == "code" for cell in cells), path


def test_a_change_of_the_machinery_is_a_change_of_settings(shell, monkeypatch, tmp_path):
    for folder in ("_ext", "tools"):
        (tmp_path / folder / "deep").mkdir(parents=True)
    monkeypatch.setattr(shell, "ROOT", tmp_path)
    monkeypatch.setattr(shell, "MACHINERY", (tmp_path / "_ext", tmp_path / "tools"))
    seen = {shell.machinery()}
    for name, text in [("_ext/a.py", "1"), ("_ext/a.py", "2"), ("tools/deep/b.mjs", "2"), ("_ext/c.html", "")]:
        (tmp_path / name).write_text(text)
        assert shell.machinery() not in seen
        seen.add(shell.machinery())
    (tmp_path / "_ext/a.pyc").write_text("compiled")
    assert shell.machinery() in seen


def test_import_code_is_the_standard_library():
    program = "import code; print(code.__file__)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).is_relative_to(ROOT)


def test_requirements_are_pinned():
    """Check that constraints.txt has an exact version for every requirement and for every package that the tests
    use."""
    from packaging.requirements import Requirement

    pinned = {
        line.split("==")[0].lower().replace("_", "-") for line in (ROOT / "constraints.txt").read_text().split("\n")
    }
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    tests = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]["test"]
    wanted = {Requirement(line).name for line in [*lines, *tests] if line and not line.startswith("#")}
    assert {"numpy", "pytest"} <= {name.lower() for name in wanted}
    assert {name.lower() for name in wanted} - pinned == set()


def test_what_measures_time_is_a_browser_test():
    """`make test` looks for timing tests only in tests/site, and runs them after all other tests."""
    mark = "mark." + "timing"
    marked = [path for path in (ROOT / "tests").rglob("*.py") if mark in path.read_text(encoding="utf-8")]
    assert marked
    assert [path for path in marked if not path.is_relative_to(ROOT / "tests" / "site")] == []


def test_urls_of_package_hosts_stay_out_of_the_lockfile():
    assert "resolved" not in (ROOT / "package-lock.json").read_text()


def test_the_site_is_served(tmp_path):
    import threading

    (tmp_path / "index.html").write_text("here it is")
    served = book.bind(tmp_path, 0)
    threading.Thread(target=served.serve_forever, daemon=True).start()
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served.server_port}/index.html") as answer:
            assert answer.read() == b"here it is"
    finally:
        served.shutdown()
        served.server_close()
