"""Do the notebooks run from top to bottom, with the output that the book shows?

The pages of the book are made from the notebooks, which have no output themselves:
``TRAXTENT_RENEW=1 TRAXTENT_SOAK=1 pytest tests/test_notebooks.py`` writes them.
"""

from __future__ import annotations

import base64
import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).parent.parent / "notebooks"
ROOT = Path(__file__).parents[3]
PAGES = ROOT / "docs" / "guides" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))
PACKAGES = ["ipykernel", "matplotlib", "nbclient", "pandas", "polars"]

SOURCE = "bindings/python/notebooks"
TO_BOOK = "](../../../docs/"
"""The start of a notebook's link into the book. A page links relative to its own folder."""


def needs_packages() -> None:
    """Skip the test if a package that the notebooks need is not installed."""
    for package in PACKAGES:
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")


def test_there_are_four() -> None:
    """Are all notebooks there, each with a page of the book and without output?"""
    assert len(NAMES) == 4
    for name in NAMES:
        text = (FOLDER / f"{name}.ipynb").read_text()
        assert '"outputs": []' in text and '"output_type"' not in text
        assert (PAGES / f"{name}.md").is_file()


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Does a notebook run, and does its page in the book show its output?"""
    needs_packages()
    shared = Path(os.environ.get("TRAXTENT_SHARED", ROOT.parent / "shared"))
    has_traces = (shared / "data" / "disksim").is_dir()
    if has_traces:
        monkeypatch.setenv("TRAXTENT_SHARED", str(shared))
    else:
        monkeypatch.delenv("TRAXTENT_SHARED", raising=False)
    notebook = executed(name, tmp_path)
    page, pictures = rendered(name, notebook)
    path = PAGES / f"{name}.md"
    if os.environ.get("TRAXTENT_RENEW") == "1":
        path.parent.mkdir(exist_ok=True)
        path.write_text(page)
        for picture, data in pictures.items():
            path.with_name(picture).write_bytes(data)
    assert all(path.with_name(picture).is_file() for picture in pictures)
    if not has_traces:
        pytest.skip("the output is not compared: TRAXTENT_SHARED has no data/disksim")
    assert page == path.read_text(), "renew the page with TRAXTENT_RENEW=1"


@pytest.mark.soak
def test_the_types_of_the_notebooks(tmp_path: Path) -> None:
    """Does mypy accept the code of all notebooks?"""
    needs_packages()
    scripts = []
    for name in NAMES:
        cells = [cell["source"] for cell in read(name)["cells"] if cell["cell_type"] == "code"]
        scripts.append(tmp_path / f"{name.replace('-', '_')}.py")
        scripts[-1].write_text("\n".join(cells))
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--ignore-missing-imports",
        *map(str, scripts),
    ]
    environment = {**os.environ, "MYPYPATH": str(FOLDER.parent / "python")}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def read(name: str) -> Any:
    """Return a notebook."""
    nbformat = importlib.import_module("nbformat")
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)


def executed(name: str, folder: Path) -> Any:
    """Return a notebook after all of its cells have run in a folder."""
    nbclient = importlib.import_module("nbclient")
    notebook = read(name)
    resources = {"metadata": {"path": str(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    return notebook


def rendered(name: str, notebook: Any) -> tuple[str, dict[str, bytes]]:
    """Return a notebook as a page of the book, and the pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in notebook["cells"]:
        if cell["cell_type"] == "markdown":
            parts.append(cell["source"].replace(TO_BOOK, "](../../"))
            continue
        parts.append(f"```python\n{cell['source']}\n```")
        for kind, content in outputs(cell):
            if kind == "text":
                parts.append(f"```text\n{content}\n```")
            else:
                picture = f"{name}-{len(pictures) + 1}.png"
                pictures[picture] = base64.b64decode(content)
                parts.append(f"![{cell['metadata']['alt']}]({picture})")
    source = f"This page is the notebook `{SOURCE}/{name}.ipynb` with its output."
    imported = re.findall(r"^import (matplotlib|pandas|polars)\b", "\n".join(parts), re.MULTILINE)
    packages = ["[the package](../python.md#install)", "`jupyter`"]
    packages += [f"`{package}`" for package in imported]
    if "pandas" in imported:
        packages.append("`pyarrow`")  # DataFrame.from_arrow imports it.
    parts.insert(1, f"{source}\nTo run it, install {', '.join(packages[:-1])} and {packages[-1]}.")
    return "\n\n".join(parts) + "\n", pictures


def outputs(cell: Any) -> Iterator[tuple[str, str]]:
    """Yield the kinds and contents of a cell's outputs; kinds are ``text`` and ``png``.

    Warnings are left out, since they depend on the installed packages.
    """
    for output in cell["outputs"]:
        if output["output_type"] == "stream" and output["name"] == "stderr":
            continue
        if output["output_type"] == "stream":
            yield "text", re.sub(r"[ \t]+$", "", output["text"], flags=re.MULTILINE).rstrip("\n")
        elif "image/png" in output["data"]:
            yield "png", output["data"]["image/png"]
        else:
            yield "text", output["data"]["text/plain"]
