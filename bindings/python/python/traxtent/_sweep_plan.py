"""The runs of a sweep, in their order."""

from __future__ import annotations

import bisect
import os
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Any

from traxtent import _traxtent
from traxtent._run_files import file_digest
from traxtent._simulate import _TRACE_OPTIONS, drives_of
from traxtent._traxtent import Drive, FileError, InputError, Table
from traxtent.typing import ArrowTable, DriveLike, Setting, Workload

Figures = list[Any]
"""The figures of a run, one for each of `figure_names()`."""


@dataclass(frozen=True)
class SweepRun:
    """Everything that determines the figures of a run. It can be pickled.

    Attributes:
        name: The drive's name in the table.
        drive: The drive, without the changes of `set`.
        workload: The workload, without the changes of `set`.
        set: The values of the grid's keys, as `traxtent sim --set` accepts them.
        seed: The seed of a synthetic workload; None if the requests do not depend on one.
        warmup: The number of requests excluded from all figures: the first to complete.
        trace: The options for replaying a trace.
        content: The SHA-256 digest of a trace or TOML file, if the sweep has an executor or
            `resume`.

    """

    name: str
    drive: Drive
    workload: Workload
    set: tuple[tuple[str, str], ...]
    seed: int | None
    warmup: int
    trace: tuple[tuple[str, Any], ...]
    content: str | None = None

    @property
    def label(self) -> str:
        """The drive's name, settings and seed: ``atlas10k2, queue.scheduler=sptf, seed=1``."""
        parts = [self.name, *(f"{key}={value}" for key, value in self.set)]
        if self.seed is not None:
            parts.append(f"seed={self.seed}")
        return ", ".join(parts)


@dataclass(frozen=True)
class Block:
    """The runs of a workload on a drive.

    `labels` maps the values of the grid's workload keys to the changed workload in one line, or to
    the workload's name if it has one.
    """

    name: str
    drive: Drive
    workload: Workload
    labels: dict[tuple[str, ...], str]
    seeds: tuple[int | None, ...]
    content: str | None


class SweepPlan:
    """The runs of a sweep in the order drives, workloads, grid, seeds; seeds vary fastest."""

    def __init__(
        self, keys: Sequence[tuple[str, list[str]]], warmup: int, trace: Mapping[str, Any]
    ) -> None:
        """Create a plan without drives."""
        self.keys = list(keys)
        self.warmup = warmup
        self.trace = tuple(sorted(trace.items()))
        self.blocks: list[Block] = []
        self.ends: list[int] = []
        self.points = 1
        for _, values in self.keys:
            self.points *= len(values)
        self.requests: int | None = 0
        """The largest number of requests of a run, if it is known."""

    def add(self, block: Block) -> None:
        """Append the runs of a workload on a drive."""
        self.ends.append(len(self) + self.points * len(block.seeds))
        self.blocks.append(block)

    def __len__(self) -> int:
        """Return the number of runs."""
        return self.ends[-1] if self.ends else 0

    def point(self, index: int) -> tuple[tuple[str, str], ...]:
        """Return the values at a point of the grid."""
        values = []
        for key, choices in reversed(self.keys):
            index, choice = divmod(index, len(choices))
            values.append((key, choices[choice]))
        return tuple(reversed(values))

    def run(self, index: int) -> SweepRun:
        """Return a run."""
        block, offset = self._block(index)
        point, seed = divmod(offset, len(block.seeds))
        return SweepRun(
            name=block.name,
            drive=block.drive,
            workload=block.workload,
            set=self.point(point),
            seed=block.seeds[seed],
            warmup=self.warmup,
            trace=self.trace,
            content=block.content,
        )

    def table(
        self, rows: Sequence[tuple[int, Figures]], digests: Sequence[str] | None = None
    ) -> Table:
        """Return the table of some runs, given by index and figures, with their digests, if any."""
        cells = []
        for index, figures in rows:
            run = self.run(index)
            label = self._block(index)[0].labels[workload_values(run.set)]
            cells.append((run.name, [value for _, value in run.set], run.seed, label, figures))
        return _traxtent.sweep_table(self.keys, cells, digests)

    def _block(self, index: int) -> tuple[Block, int]:
        block = bisect.bisect_right(self.ends, index)
        return self.blocks[block], index - (self.ends[block - 1] if block else 0)


def workload_values(point: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the values of the keys that change the workload."""
    return tuple(value for key, value in point if key.startswith("workload."))


class Planner:
    """Makes a plan from the arguments of `sweep`, and checks every combination with one seed."""

    def __init__(
        self,
        seeds: int | Iterable[int],
        seed: int | None,
        warmup: int,
        trace: Mapping[str, Any] | None,
        content: bool,
    ) -> None:
        if isinstance(seeds, int) and seeds < 1:
            raise InputError(f"seeds: {seeds}: expected at least 1")
        self.seeds: int | list[int] = seeds if isinstance(seeds, int) else list(seeds)
        if self.seeds == []:
            raise InputError("seeds: none is given")
        if seed is not None and not isinstance(self.seeds, int):
            raise InputError("seed: omit it, because seeds lists all seeds")
        _check_seeds("seed", [] if seed is None else [seed])
        _check_seeds("seeds", [] if isinstance(self.seeds, int) else self.seeds)
        self.seed = seed
        self.warmup = warmup
        self.trace = dict(trace or {})
        if self.trace.get("more") is not None:
            self.trace["more"] = drives_of(self.trace["more"])
        self.content = content
        unknown = sorted(self.trace.keys() - _TRACE_OPTIONS)
        if unknown:
            known = ", ".join(sorted(_TRACE_OPTIONS))
            raise InputError(f"trace: no option is called {unknown[0]!r}; the options are {known}")

    def plan(
        self,
        drives: DriveLike | Sequence[DriveLike] | Mapping[str, DriveLike],
        workloads: Workload | Sequence[Workload] | Mapping[str, Workload],
        grid: Mapping[str, Setting | Iterable[Setting]] | None,
    ) -> SweepPlan:
        named = _drives(drives)
        chosen = _workloads(workloads)
        plan = SweepPlan(_keys(grid or {}), self.warmup, self.trace)
        for name, drive in named:
            for label, workload in chosen:
                plan.add(self._block(plan, name, drive, label, workload))
        given = self.seed is not None or self.seeds != 1
        if given and all(block.seeds == (None,) for block in plan.blocks):
            raise InputError("seed and seeds apply only to synthetic workloads")
        return plan

    def _block(
        self, plan: SweepPlan, name: str, drive: Drive, label: str | None, workload: Workload
    ) -> Block:
        workload, content = self._source(workload)
        _, own, _ = self._check(drive, workload, None, {}, name)
        seeds: tuple[int | None, ...] = (None,)
        if own is not None:
            seeds = tuple(self._seeds(own))
        labels: dict[tuple[str, ...], str] = {}
        for index in range(plan.points):
            point = plan.point(index)
            described, _, requests = self._check(drive, workload, seeds[0], dict(point), name)
            labels[workload_values(point)] = described if label is None else label
            if requests is None or plan.requests is None:
                plan.requests = None
            else:
                plan.requests = max(plan.requests, requests)
        return Block(name, drive, workload, labels, seeds, content)

    def _source(self, workload: Workload) -> tuple[Workload, str | None]:
        """Return the workload and None; or its file's absolute path and digest, if needed."""
        if isinstance(workload, str):
            path = _traxtent.workload_file(workload)
        else:
            path = os.fspath(workload) if isinstance(workload, PathLike) else None
        if path is None or not self.content or not os.path.exists(path):
            return workload, None
        return os.path.abspath(path), file_digest(path)

    def _seeds(self, own: int) -> list[int]:
        if not isinstance(self.seeds, int):
            return self.seeds
        first = own if self.seed is None else self.seed
        return [(first + index) % 2**64 for index in range(self.seeds)]

    def _check(
        self, drive: Drive, workload: Workload, seed: int | None, set: dict[str, str], name: str
    ) -> tuple[str, int | None, int | None]:
        try:
            return _traxtent.check_run(drive, workload, seed, self.warmup, set, self.trace)
        except FileError as error:
            raise FileError(f"{name}: {error}", error.errno, error.filename) from None
        except InputError as error:
            raise InputError(f"{name}: {error}") from None


def _check_seeds(name: str, seeds: Iterable[int]) -> None:
    for seed in seeds:
        if not 0 <= seed < 2**64:
            raise InputError(f"{name}: {seed}: expected 0 to {2**64 - 1}")


def _drives(
    drives: DriveLike | Sequence[DriveLike] | Mapping[str, DriveLike],
) -> list[tuple[str, Drive]]:
    if isinstance(drives, Mapping):
        named = [(name, as_drive(drive)) for name, drive in drives.items()]
    else:
        named = [(drive.target, drive) for drive in map(as_drive, drives_of(drives))]
    if not named:
        raise InputError("drives: none is given")
    seen = set()
    for name, _ in named:
        if name in seen:
            raise InputError(
                f"drives: {name} is given twice; give a mapping of names to drives instead"
            )
        seen.add(name)
    return named


def as_drive(drive: DriveLike) -> Drive:
    return drive if isinstance(drive, Drive) else Drive(drive)


def _workloads(
    workloads: Workload | Sequence[Workload] | Mapping[str, Workload],
) -> list[tuple[str | None, Workload]]:
    named: list[tuple[str | None, Workload]]
    if isinstance(workloads, Mapping):
        named = list(workloads.items())
    elif isinstance(workloads, (str, PathLike, ArrowTable)) or callable(workloads):
        named = [(None, workloads)]
    elif isinstance(workloads, Sequence):
        named = [(None, workload) for workload in workloads]
    else:
        named = [(None, workloads)]
    if not named:
        raise InputError("workloads: none is given")
    for _, workload in named:
        if isinstance(workload, str) and workload == "-":
            raise InputError("workloads: standard input can be read only once")
        if isinstance(workload, Generator | Iterator):
            raise InputError(
                "workloads: a generator can be read only once; give the generator function, which "
                "is called for each run"
            )
    return named


def _keys(grid: Mapping[str, Setting | Iterable[Setting]]) -> list[tuple[str, list[str]]]:
    keys = []
    for key, values in grid.items():
        single = isinstance(values, str) or not isinstance(values, Iterable)
        several = [values] if single else list(values)  # type: ignore[arg-type]
        if not several:
            raise InputError(f"grid: {key} has no value")
        keys.append((key, [_traxtent.setting_value(key, value) for value in several]))
    return keys
