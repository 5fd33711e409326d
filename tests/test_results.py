"""Test that results are written completely and with their provenance, and that they are unchanged when they are read
back."""

import json

import pytest

from ropebook import results
from ropebook.device import provenance
from tests.together import together

WHERE = {"device": "CPU", "torch": "2.6.0", "date": "2026-01-31T12:00:00+00:00", "seed": 7, "command": "make bench"}


@pytest.fixture
def folders(monkeypatch, tmp_path):
    beside, inside = tmp_path / "results", tmp_path / "_results"
    monkeypatch.setattr(results, "_BESIDE_THE_CODE", beside)
    monkeypatch.setattr(results, "_INSIDE_THE_PACKAGE", inside)
    return beside, inside


def test_the_folders_are_the_repositorys_and_the_packages():
    package = results.Path(results.__file__).parent
    assert package / "_results" == results._INSIDE_THE_PACKAGE
    assert package.parent.parent / "results" == results._BESIDE_THE_CODE


def test_what_is_saved_is_loaded(folders):
    path = results.save("some-Result_1", {"times": [1.5, 2.5], "θ": "ü"}, WHERE)
    assert path == folders[0] / "some-Result_1.json"
    assert results.load("some-Result_1") == {"provenance": WHERE, "times": [1.5, 2.5], "θ": "ü"}
    assert list(folders[0].iterdir()) == [path]
    text = path.read_text(encoding="utf-8")
    assert "θ" in text
    assert text.startswith('{\n "provenance": {')
    assert text.endswith("}\n")


def test_a_result_in_a_folder_is_found_by_its_name(folders):
    path = results.save("one", {"x": 1}, WHERE, folder="real")
    assert path == folders[0] / "real" / "one.json"
    assert results.load("one")["x"] == 1
    with pytest.raises(ValueError, match="folder must be one of '', 'trials', 'real', got 'reel'"):
        results.save("one", {"x": 1}, WHERE, folder="reel")


def test_saving_again_replaces(folders):
    results.save("a", {"x": 1}, WHERE)
    results.save("a", {"x": 2}, WHERE)
    assert results.load("a")["x"] == 2
    assert [path.name for path in folders[0].iterdir()] == ["a.json"]


def test_a_result_inside_the_package_is_found_but_the_one_beside_the_code_comes_first(folders):
    folders[1].mkdir()
    (folders[1] / "a.json").write_text('{"x": 3}', encoding="utf-8")
    assert results.load("a") == {"x": 3}
    results.save("a", {"x": 4}, WHERE)
    assert results.load("a")["x"] == 4


def test_a_result_of_another_kind_is_found(folders):
    folders[1].mkdir()
    (folders[1] / "a.safetensors").write_bytes(b"x")
    assert results.find("a", "safetensors") == folders[1] / "a.safetensors"
    with pytest.raises(FileNotFoundError, match=r"no result named 'b'; there are: a$"):
        results.find("b", "safetensors")
    with pytest.raises(FileNotFoundError, match="there are: none"):
        results.find("a")


def test_a_missing_result_names_those_there_are(folders):
    with pytest.raises(FileNotFoundError, match="no result named 'c'; there are: none"):
        results.load("c")
    results.save("b", {}, WHERE)
    folders[1].mkdir()
    (folders[1] / "a.json").write_text("{}", encoding="utf-8")
    with pytest.raises(FileNotFoundError, match="no result named 'c'; there are: a, b"):
        results.load("c")


@pytest.mark.parametrize("name", ["", "../secret", "a.json", "a b", 3, None])
def test_a_bad_name_is_refused(folders, name):
    with pytest.raises(ValueError, match="name must be"):
        results.load(name)
    with pytest.raises(ValueError, match="name must be"):
        results.save(name, {}, WHERE)


def test_bad_data_leave_no_file_behind(folders):
    results.save("a", {"x": 1}, WHERE)
    with pytest.raises(ValueError, match="not JSON compliant"):
        results.save("a", {"x": float("nan")}, WHERE)
    with pytest.raises(ValueError, match="provenance"):
        results.save("a", {"provenance": {}}, WHERE)
    assert results.load("a")["x"] == 1
    assert [path.name for path in folders[0].iterdir()] == ["a.json"]


def test_a_failed_replacement_leaves_the_old_file_and_no_other(folders, monkeypatch):
    results.save("a", {"x": 1}, WHERE)

    def refuse(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(results.os, "replace", refuse)
    with pytest.raises(OSError, match="the disk is full"):
        results.save("a", {"x": 2}, WHERE)
    assert [path.name for path in folders[0].iterdir()] == ["a.json"]
    assert json.loads((folders[0] / "a.json").read_text(encoding="utf-8"))["x"] == 1


@pytest.mark.parametrize("key", ["device", "torch", "date", "seed", "command"])
def test_an_incomplete_provenance_is_refused(folders, key):
    part = {name: value for name, value in WHERE.items() if name != key}
    with pytest.raises(ValueError, match=f"provenance must hold .*; missing: {key}$"):
        results.save("a", {}, part)
    with pytest.raises(ValueError, match=f"provenance must hold .*; missing: {key}$"):
        results.caption({"provenance": part})


def test_the_provenance_that_device_gives_is_complete(folders):
    results.save("a", {}, provenance(seed=1, command="make bench"))
    line = results.caption(results.load("a"))
    assert line.endswith(", seed 1, by: make bench.")


@together(
    ("change", "line"),
    [
        ({}, "Measured on CPU with torch 2.6.0 on 2026-01-31, seed 7, by: make bench."),
        ({"seed": 0}, "Measured on CPU with torch 2.6.0 on 2026-01-31, seed 0, by: make bench."),
        ({"seed": None}, "Measured on CPU with torch 2.6.0 on 2026-01-31, by: make bench."),
        ({"command": None}, "Measured on CPU with torch 2.6.0 on 2026-01-31, seed 7."),
        ({"threads": 1}, "Measured on CPU, 1 thread, with torch 2.6.0 on 2026-01-31, seed 7, by: make bench."),
        ({"threads": 2}, "Measured on CPU, 2 threads, with torch 2.6.0 on 2026-01-31, seed 7, by: make bench."),
    ],
)
def test_caption(change, line):
    assert results.caption({"provenance": WHERE | change}) == line


def test_a_result_without_provenance_has_no_caption():
    with pytest.raises(ValueError, match="provenance must hold"):
        results.caption({"x": 1})
