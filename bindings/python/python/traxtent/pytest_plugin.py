"""A disk for tests: the fixture `traxtent_disk`, which pytest finds by itself."""

from __future__ import annotations

from typing import Any

import pytest

from traxtent import Disk, InputError


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
    return Disk("toshiba-p300" if marker is None else marked_drive(marker))


def marked_drive(marker: pytest.Mark) -> Any:
    """Return the drive that a marker names.

    Raises:
        InputError: The marker has other arguments than the drive.

    """
    arguments = [*marker.args, *marker.kwargs.values()]
    if len(arguments) != 1 or not marker.kwargs.keys() <= {"drive"}:
        shown = [repr(value) for value in marker.args]
        shown += [f"{name}={value!r}" for name, value in marker.kwargs.items()]
        raise InputError(
            f"@pytest.mark.traxtent_disk({', '.join(shown)}): expected only the drive, such as "
            '@pytest.mark.traxtent_disk("cheetah15k7")'
        )
    return arguments[0]
