"""Does the code of the guide run, with the output that the page shows?"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import traxtent

PAGE = Path(__file__).parents[3] / "docs" / "guides" / "python.md"

BLOCK = re.compile(
    r"(?:<!-- needs (?P<needs>\w+) -->\n)?"
    r"```python\n(?P<code>.*?)```\n"
    r"(?:\n```text\n(?P<text>.*?)```\n)?",
    re.DOTALL,
)
"""A block of code, the package that it needs besides pyarrow, and its output."""


def test_the_guide(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Do all blocks run in order in one namespace, and print what the page shows?"""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    page = PAGE.read_text()
    names: dict[str, object] = {"__name__": "guide"}
    count = 0
    for block in BLOCK.finditer(page):
        count += 1
        needs = block["needs"]
        if needs is not None and importlib.util.find_spec(needs) is None:
            continue
        line = page.count("\n", 0, block.start("code"))
        code = "\n" * line + block["code"]
        exec(compile(code, str(PAGE), "exec"), names)
        assert capsys.readouterr().out == (block["text"] or ""), f"{PAGE}:{line + 1}"
    assert count == page.count("```python\n") >= 10


@pytest.mark.soak
def test_mypy_and_ruff_accept_the_guide(tmp_path: Path) -> None:
    """Do mypy and ruff accept the code of the guide?"""
    script = tmp_path / "guide.py"
    blocks = [block["code"] for block in BLOCK.finditer(PAGE.read_text())]
    script.write_text("\n".join(blocks))
    package = Path(__file__).parent.parent
    environment = {**os.environ, "MYPYPATH": str(package / "python")}
    ruff = [
        "ruff",
        "check",
        "--config",
        str(package / "pyproject.toml"),
        "--ignore",
        "D100,E402,I001",
    ]
    for tool in (["mypy", "--strict", "--ignore-missing-imports"], ruff):
        command = [sys.executable, "-m", *tool, str(script)]
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def test_the_docstring_of_the_package() -> None:
    """Does the example of the package's docstring run?"""
    results = doctest.testmod(traxtent)
    assert results.attempted >= 3 and results.failed == 0
