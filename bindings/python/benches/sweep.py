"""Measures a sweep of 200 configurations with one thread, and with one thread per processor.

    python benches/sweep.py [REQUESTS] [REPEATS]

Each repeat performs both in turn, by default with 100,000 requests per run. The output has the
times of each repeat in seconds, and the ratio of their medians.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

import pyarrow as pa

import traxtent

DRIVE = "atlas10k2"
GRID: dict[str, list[Any]] = {
    "queue.scheduler": ["fcfs", "look", "sstf", "sptf"],
    "workload.outstanding": [1, 2, 4, 8, 16],
    "workload.size": [8, 16, 32, 64, 128],
    "workload.read": ["0%", "100%"],
}


def main() -> None:
    """Measure, and print the results."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 3
    processors = len(os.sched_getaffinity(0))
    workload = f"random,size=8,count={requests}"
    tables = []
    seconds: dict[int, list[float]] = {1: [], processors: []}
    for _ in range(repeats):
        for workers, times in seconds.items():
            begun = time.perf_counter()
            table = traxtent.sweep(DRIVE, workload, GRID, workers=workers, progress=False)
            times.append(time.perf_counter() - begun)
            tables.append(pa.table(table))
    runs = tables[0].num_rows
    assert all(table.equals(tables[0]) for table in tables), "the tables differ"
    print(f"{runs} runs of {requests} requests on {DRIVE}; load {os.getloadavg()[0]:.1f}")
    for workers, times in seconds.items():
        middle = statistics.median(times)
        rate = runs * requests / middle
        shown = ", ".join(f"{one:.2f}" for one in times)
        print(f"{workers} threads: {shown} s; median {middle:.2f} s, {rate:,.0f} requests/s")
    ratio = statistics.median(seconds[1]) / statistics.median(seconds[processors])
    print(f"ratio: {ratio:.2f}")


if __name__ == "__main__":
    main()
