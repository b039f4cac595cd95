"""Helpers for the tests."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Command = Callable[..., str]

#: Tests with large packages run in the soak only.
collect_ignore = [] if "TRAXTENT_SOAK" in os.environ else ["test_frames.py"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests with the marker ``soak``, except in the soak."""
    if "TRAXTENT_SOAK" in os.environ:
        return
    left_out = [item for item in items if item.get_closest_marker("soak")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Return a function that runs the installed command, and returns its standard output."""

    def run(*arguments: str, status: int = 0) -> str:
        program = Path(sys.executable).with_name("traxtent")
        done = subprocess.run(
            [program, *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stderr
        return done.stdout

    return run


def soak() -> int:
    """Return the factor by which randomized tests are longer; 1 outside the soak."""
    return int(os.environ.get("TRAXTENT_SOAK", "1"))
