"""Packs a wheel from a library that cargo has built, with the metadata that maturin gives it.

`maturin build` makes the wheels of releases. It builds the package on its own, with features
that differ from those of the workspace. This script spares the tests that second build.
"""

from __future__ import annotations

import base64
import hashlib
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PACKAGE = Path(__file__).parent


def main(library: Path, folder: Path) -> None:
    """Pack `library` and the Python files into a wheel in `folder`, and print its path."""
    metadata = folder / "metadata"
    shutil.rmtree(metadata, ignore_errors=True)
    metadata.mkdir(parents=True)
    command = ["maturin", "pep517", "write-dist-info", "--metadata-directory", str(metadata)]
    command += ["--interpreter", sys.executable]
    subprocess.run(command, check=True, cwd=PACKAGE, stdout=subprocess.PIPE)
    (info,) = metadata.glob("*.dist-info")
    tags = [
        line.removeprefix("Tag: ")
        for line in (info / "WHEEL").read_text().splitlines()
        if line.startswith("Tag: ")
    ]
    wheel = folder / f"{info.name.removesuffix('.dist-info')}-{tags[0]}.whl"
    files = {"traxtent/_traxtent.abi3.so": library.read_bytes()}
    for path in sorted((PACKAGE / "python").rglob("*")):
        if path.is_file() and path.suffix in {".py", ".pyi", ".typed"} | {""}:
            files[path.relative_to(PACKAGE / "python").as_posix()] = path.read_bytes()
    for path in sorted(info.rglob("*")):
        if path.is_file() and path.name != "RECORD":
            files[path.relative_to(metadata).as_posix()] = path.read_bytes()
    record = "".join(
        f"{name},{digest(content)},{len(content)}\n" for name, content in files.items()
    )
    files[f"{info.name}/RECORD"] = (record + f"{info.name}/RECORD,,\n").encode()
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_STORED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    print(wheel)


def digest(content: bytes) -> str:
    """Return the hash of a file in the form that a wheel's RECORD has."""
    hashed = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + hashed.rstrip(b"=").decode()


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
