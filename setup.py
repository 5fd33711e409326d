"""Puts what cannot be declared into the wheel: the results that the notebooks read, as listed in pyproject.toml."""

import shutil
import tomllib
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

HERE = Path(__file__).resolve().parent


class WithResults(build_py):
    """Copies the listed results to `ropebook/_results`, where `ropebook.results` looks for them."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:  # it uses those of the repository
            return
        target = Path(self.build_lib, "ropebook", "_results")
        target.mkdir(parents=True, exist_ok=True)
        for name in tomllib.loads((HERE / "pyproject.toml").read_text())["tool"]["ropebook"]["results"]:
            shutil.copyfile(HERE / "results" / name, target / Path(name).name)


setup(cmdclass={"build_py": WithResults})
