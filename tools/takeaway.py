"""Pack the notebooks for readers to take away: a zip with all notebooks, the package as a wheel, and a short "start
here" file."""

from __future__ import annotations

import shutil
import zipfile
from collections.abc import Mapping
from pathlib import Path

from tools.first_cell import book_title
from tools.wheel import Wheel, ensure

ZIP = "ropebook-notebooks.zip"
FOLDER = "ropebook-notebooks"
START = "START-HERE.md"


def start_here(wheel: Wheel) -> str:
    """Return the text of the "start here" file, which should be read first."""
    return f"""# {book_title()}: the notebooks

Each chapter of the book is a notebook here, with its outputs. You need Python 3.11 or newer to run them. In this
folder:

```
python -m venv .venv
.venv/bin/pip install "./{wheel.name}[notebooks]"
.venv/bin/jupyter lab
```

On Windows, write `.venv\\Scripts` instead of `.venv/bin`. On a machine without a GPU, PyTorch's CPU build is a much
smaller download; see PyTorch's own page for the command.

- **VS Code**: open this folder and trust it, or figures and tables stay blank ("Restricted Mode"). Choose `.venv` as
  the kernel. VS Code doesn't fold code, so the cells that set up a chapter are open.
- **Colab**: open a notebook, upload `{wheel.name}` to the files on the left, and run the first cell.

The first cell of each notebook uses the package `ropebook` if it is installed. If not, it installs the wheel from this
folder, provided that the file has the right SHA-256:

```
{wheel.sha256}
```

It installs nothing else.
"""


def zipped(files: Mapping[str, bytes], target: Path) -> None:
    """Write a zip file from a mapping of names to contents. Equal contents always give identical files."""
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f".{target.name}.part")
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name in sorted(files):
            member = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(member, files[name])
    part.replace(target)


def pack(folder: Path) -> Path:
    """Put the wheel and the "start here" file next to the notebooks in `folder`, zip all of them, and return the path
    of the zip."""
    wheel = ensure()
    for old in folder.glob("*.whl"):
        old.unlink()
    shutil.copyfile(wheel.path, folder / wheel.name)
    (folder / START).write_text(start_here(wheel), encoding="utf-8")
    names = [*(path.name for path in folder.glob("*.ipynb")), wheel.name, START]
    zipped({f"{FOLDER}/{name}": (folder / name).read_bytes() for name in names}, folder / ZIP)
    return folder / ZIP
