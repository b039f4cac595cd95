"""Do the examples of the package's page run?"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import traxtent

PAGE = Path(__file__).parent.parent / "README.md"


def test_examples(capsys: pytest.CaptureFixture[str]) -> None:
    """Do all blocks of the page run in order, and does its test pass?"""
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) >= 4
    names: dict[str, object] = {"__name__": "readme"}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    test = names["test_a_power_cut"]
    assert callable(test)
    test(traxtent.Disk("atlas10k2"))
    mean, count = capsys.readouterr().out.split()
    assert 5 < float(mean) < 15 and count == "10"


def test_the_number_of_drives() -> None:
    """Are there as many drives as the page says?"""
    assert f"{len(traxtent.drives())} built-in drives" in PAGE.read_text().replace("\n", " ")
