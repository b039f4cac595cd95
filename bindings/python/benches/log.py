"""Compares a simulation with a log (an Arrow table), one without, and the command `traxtent sim`.

    python benches/log.py [REQUESTS] [REPEATS]

Each repeat performs all three in turn, by default with 1,000,000 requests. The output has the times
of each repeat in seconds, and the rate with a log as a share of each of the other two, by medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa

import traxtent

DRIVE = "atlas10k2"


def main() -> None:
    """Measure, and print the results."""
    requests = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    workload = f"random,size=8,count={requests}"
    program = Path(sys.executable).with_name("traxtent")
    command = [os.environ.get("TRAXTENT", str(program)), "sim", DRIVE, workload, "--json"]

    def by_command() -> None:
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def without_log() -> None:
        traxtent.simulate(DRIVE, workload)

    def with_log() -> None:
        table = pa.table(traxtent.simulate(DRIVE, workload, log=True).requests)
        assert table.num_rows == requests

    works = {"command": by_command, "without a log": without_log, "with a log": with_log}
    seconds: dict[str, list[float]] = {name: [] for name in works}
    for _ in range(repeats):
        for name, work in works.items():
            begun = time.perf_counter()
            work()
            seconds[name].append(time.perf_counter() - begun)
    print(f"{requests} requests on {DRIVE}; load {os.getloadavg()[0]:.1f}")
    medians = {name: statistics.median(times) for name, times in seconds.items()}
    for name, times in seconds.items():
        shown = ", ".join(f"{one:.3f}" for one in times)
        rate = requests / medians[name]
        print(f"{name}: {shown} s; median {medians[name]:.3f} s, {rate:,.0f} requests/s")
    for name in ("command", "without a log"):
        print(f"with a log / {name}: {medians[name] / medians['with a log']:.2f} of the rate")


if __name__ == "__main__":
    main()
