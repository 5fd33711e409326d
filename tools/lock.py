"""Write requirements.lock, which pins the exact files that tests and builds install: python -m tools.lock [a wheel of
torch …].

The script asks uv, which must be on the path, to resolve the versions in constraints.txt and to list the hashes of all
their files. PyTorch publishes several builds of each version, and the Linux build in the index needs CUDA. Tests and
builds don't need CUDA, so packages that only the CUDA build requires are left out. The script takes wheels of other
builds, such as the CPU build, as arguments and adds their hashes to those from the index. Added hashes are kept until
the version changes.
"""

from __future__ import annotations

import hashlib
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from tools.paths import ROOT, write_whole

LOCK = ROOT / "requirements.lock"
PYTHON = "3.11.9"
CUDA = re.compile(r"(nvidia|cuda)-")
HEAD = """\
# The packages that tests and builds install, with their files' hashes. Written by python -m tools.lock. To install:
# pip install --require-hashes --no-deps -r requirements.lock
# For torch, make pip find the CPU build, as docs/publishing.md describes.
"""


def entries(text: str) -> dict[str, tuple[str, list[str]]]:
    """Parse a lock file. Returns, for each package name, its requirement and the hashes of the files that are allowed.

    >>> entries("a==1 ; python_version > '3' \\\\\\n    --hash=sha256:0f \\\\\\n    --hash=sha256:1e\\n")
    {'a': ("a==1 ; python_version > '3'", ['0f', '1e'])}
    """
    found = {}
    for block in re.findall(r"^[a-z0-9][^\\\n]*(?:\\\n[^\\\n]*)*", text, re.MULTILINE):
        asked, *hashes = re.split(r"\s*\\\n\s*", block)
        found[asked.partition("==")[0]] = (asked, [one.removeprefix("--hash=sha256:") for one in hashes])
    return found


def joined(new: str, old: str = "", added: tuple[str, ...] = ()) -> str:
    """Return the new lock without the CUDA packages. For torch, it includes the added hashes, and any hashes that the
    old lock had for the same version."""
    found = {name: entry for name, entry in entries(new).items() if not CUDA.match(name)}
    asked, hashes = found["torch"]
    before = entries(old).get("torch", ("", []))
    kept = before[1] if before[0] == asked else []
    found["torch"] = (asked, sorted({*hashes, *kept, *added}))
    blocks = [
        " \\\n    ".join([asked, *(f"--hash=sha256:{one}" for one in hashes)]) for asked, hashes in found.values()
    ]
    return HEAD + "\n".join([*blocks, ""])


def main(wheels: list[str]) -> int:
    added = tuple(hashlib.sha256(Path(wheel).read_bytes()).hexdigest() for wheel in wheels)
    with tempfile.TemporaryDirectory() as folder:
        new = Path(folder, "lock.txt")
        command = ["uv", "pip", "compile", "requirements.txt", "pyproject.toml", "--extra", "test", "-q"]
        command += ["-c", "constraints.txt", "--python-version", PYTHON, "--generate-hashes", "--no-header"]
        command += ["--no-annotate", "-o", str(new)]
        done = subprocess.run(command, cwd=ROOT, check=False)
        if done.returncode:
            return done.returncode
        write_whole(LOCK, joined(new.read_text(), LOCK.read_text() if LOCK.exists() else "", added))
    print(f"{LOCK.name}: {len(entries(LOCK.read_text()))} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
