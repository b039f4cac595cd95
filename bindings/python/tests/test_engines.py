"""Do Dask and Ray give the rows of the local run, even if workers are killed?"""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import traxtent

pytestmark = pytest.mark.soak

#: The number of workers that are killed.
KILLS = 20

DRIVES = ["atlas10k2", "cheetah15k7", "atlas10k"]
WORKLOAD = "random,read=66%,size=8,count=20000,outstanding=8"
GRID: dict[str, list[Any]] = {
    "queue.scheduler": ["fcfs", "look", "sstf", "sptf"],
    "workload.size": [8, 16, 32, 64],
}


def sweep(**options: Any) -> pa.Table:
    """Return the table of 96 runs."""
    return pa.table(traxtent.sweep(DRIVES, WORKLOAD, GRID, 2, progress=False, **options))


def sweeps_with_kills(executor: Any, kill: Callable[[random.Random], bool]) -> None:
    """Assert that repeated sweeps give the local table while workers are killed.

    `kill` returns whether it has killed a worker.
    """
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    expected = sweep()
    killed = 0
    failures: list[BaseException] = []
    ended = threading.Event()

    def kill_some() -> None:
        nonlocal killed
        try:
            while killed < KILLS and not ended.is_set():
                time.sleep(chance.uniform(0.1, 1.5))
                killed += kill(chance)
        except BaseException as error:
            failures.append(error)
        finally:
            ended.set()

    thread = threading.Thread(target=kill_some)
    thread.start()
    made = 0
    try:
        while not ended.is_set():
            assert sweep(executor=executor).equals(expected)
            made += 1
    finally:
        ended.set()
        thread.join()
    assert not failures
    assert killed == KILLS
    print(f"{made} sweeps of {expected.num_rows} runs, {killed} workers killed")


@contextlib.contextmanager
def other_host() -> Iterator[tuple[str, list[str]]]:
    """Make a network namespace. Return this side's address, and the words to start a program there.

    The addresses are from a block for documentation, and reach nothing but the namespace.
    """
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("needs root and `ip`")
    name = f"traxtent-{os.getpid()}"
    here, there = f"tx{os.getpid() % 10**6}a", f"tx{os.getpid() % 10**6}b"

    def ip(*words: str) -> None:
        subprocess.run(["ip", *words], check=True)

    ip("netns", "add", name)
    try:
        ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", name)
        ip("addr", "add", "198.51.100.1/30", "dev", here)
        ip("link", "set", here, "up")
        ip("-n", name, "addr", "add", "198.51.100.2/30", "dev", there)
        ip("-n", name, "link", "set", there, "up")
        ip("-n", name, "link", "set", "lo", "up")
        yield "198.51.100.1", ["ip", "netns", "exec", name]
    finally:
        # The links disappear with the namespace.
        ip("netns", "delete", name)


class DaskWorkers:
    """Four workers: two here, and two on the other host."""

    def __init__(self, scheduler: str, elsewhere: list[str], folder: Path) -> None:
        """Start the workers."""
        self.scheduler = scheduler
        self.folder = folder
        self.places: list[list[str]] = [[], [], elsewhere, elsewhere]
        self.children = [self.start(place) for place in self.places]

    def start(self, place: list[str]) -> subprocess.Popen[bytes]:
        """Start a worker."""
        command = [*place, sys.executable, "-m", "dask", "worker", self.scheduler]
        command += ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
        command += ["--local-directory", str(self.folder)]
        with (self.folder / "workers.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def kill(self, chance: random.Random) -> None:
        """Kill a worker, and start another in its place."""
        index = chance.randrange(len(self.children))
        self.children[index].kill()
        self.children[index].wait()
        self.children[index] = self.start(self.places[index])

    def stop(self) -> None:
        """Kill all workers."""
        for child in self.children:
            child.kill()
            child.wait()


def network() -> str:
    """Return the name of this process's network namespace."""
    return os.readlink("/proc/self/ns/net")


def test_dask_on_two_hosts(tmp_path: Path) -> None:
    """Are all rows those of the local run, while 20 workers on two hosts are killed?"""
    distributed = pytest.importorskip("distributed")
    with other_host() as (address, elsewhere):
        cluster = distributed.SpecCluster(
            scheduler={
                "cls": distributed.Scheduler,
                "options": {"host": address, "dashboard": False, "dashboard_address": ":0"},
            },
            workers={},
        )
        workers = DaskWorkers(cluster.scheduler_address, elsewhere, tmp_path)
        try:
            with distributed.Client(cluster) as client:
                client.wait_for_workers(4, timeout=120)
                assert len(set(client.run(network).values())) == 2

                def kill(chance: random.Random) -> bool:
                    if len(client.scheduler_info()["workers"]) < 3:
                        return False
                    workers.kill(chance)
                    return True

                sweeps_with_kills(client.get_executor(), kill)
        finally:
            workers.stop()
            cluster.close()


def ray_workers() -> list[int]:
    """Return the processes that make runs for Ray."""
    found = []
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            with contextlib.suppress(OSError):
                command = (process / "cmdline").read_bytes()
                if command.startswith(b"ray::_call") and descends(int(process.name)):
                    found.append(int(process.name))
    return found


def descends(process: int) -> bool:
    """Return whether a process descends from this one."""
    while process > 1:
        if process == os.getpid():
            return True
        status = Path(f"/proc/{process}/stat").read_text()
        process = int(status.rsplit(")", 1)[1].split()[1])
    return False


def test_ray(monkeypatch: pytest.MonkeyPatch) -> None:
    """Are all rows those of the local run, with four workers, while 20 workers are killed?"""
    ray = pytest.importorskip("ray")
    from traxtent.ray import RayExecutor

    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_raylet_start_wait_time_s", "120")
    ray.init(num_cpus=4, include_dashboard=False, log_to_driver=False)

    def kill(chance: random.Random) -> bool:
        running = ray_workers()
        if not running:
            return False
        os.kill(chance.choice(running), signal.SIGKILL)
        return True

    try:
        with RayExecutor() as executor:
            sweeps_with_kills(executor, kill)
    finally:
        ray.shutdown()
