"""A disk for tests: the fixture `traxtent_disk`, which pytest finds by itself."""

from __future__ import annotations

import pytest

from traxtent import Disk


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker that selects the drive."""
    line = "traxtent_disk(drive): the drive of the fixture traxtent_disk"
    config.addinivalue_line("markers", line)


@pytest.fixture
def traxtent_disk(request: pytest.FixtureRequest) -> Disk:
    """Return a new disk with data in memory and a virtual clock.

    It is a `toshiba-p300`, whose write cache loses data if the power is cut before a flush, unless
    the test has the marker ``@pytest.mark.traxtent_disk("name")``.
    """
    marker = request.node.get_closest_marker("traxtent_disk")
    drive = marker.args[0] if marker is not None and marker.args else "toshiba-p300"
    return Disk(drive)
