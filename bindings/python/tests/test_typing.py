"""Do the public types fit the arguments that they are for? mypy checks this file too."""

from __future__ import annotations

import doctest

import pyarrow as pa

import traxtent.typing
from traxtent import Drive, Head, Request, WaitingQueue, simulate
from traxtent.typing import ArrowTable, DriveLike, Placement, Scheduler, Workload

LINE = "random,size=8,count=20,outstanding=2"


def test_annotated_arguments() -> None:
    """Are annotated policies, drives, workloads and settings accepted?"""

    def oldest(now_ms: float, head: Head, waiting: WaitingQueue) -> int:
        return 0

    def at_start(request: Request) -> int:
        return request.lbn % 1000

    scheduler: Scheduler = oldest
    place: Placement = at_start
    drives: list[DriveLike] = ["atlas10k2", Drive("atlas10k2")]
    table: ArrowTable = pa.table({"at_ms": [0.0], "lbn": [0], "sectors": [8]})
    workloads: list[Workload] = [LINE, table, [Request(0, 8)]]
    settings: dict[str, object] = {"mechanics.rpm": 7200, "queue.scheduler": "sptf"}
    for drive in drives:
        for workload in workloads:
            result = simulate(drive, workload, set=settings, scheduler=scheduler, place=place)
            assert result.summary["requests"] == (20 if workload is LINE else 1)


def test_the_docstring() -> None:
    """Does the example of the module's docstring run?"""
    results = doctest.testmod(traxtent.typing)
    assert results.attempted >= 3 and results.failed == 0
