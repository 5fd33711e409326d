"""Add the results that the notebooks read to the wheel. pyproject.toml lists them, but setuptools can't include them on
its own."""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


def results() -> list[str]:
    project = tomllib.loads((HERE / "pyproject.toml").read_text(encoding="utf-8"))
    return [f"results/{name}" for name in project["tool"]["ropebook"]["results"]]


class WithResults(build_py):
    """Build step that also copies the listed results to `ropebook/_results`, where `ropebook.results` looks for
    them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # an editable install uses the repository's results
            return
        target = Path(self.build_lib, "ropebook", "_results")
        target.mkdir(parents=True, exist_ok=True)
        for name in results():
            shutil.copyfile(HERE / name, target / Path(name).name)

    def get_source_files(self) -> list[str]:
        """Return the files that a source distribution has to contain."""
        return [*super().get_source_files(), *results()]


setup(cmdclass={"build_py": WithResults})
