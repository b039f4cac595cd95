"""Sweeps: many runs, in threads or by an executor, as one table."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor
from os import PathLike
from typing import Any, overload

from traxtent import _traxtent
from traxtent._run_files import RunFiles, drive_digest, run_digest
from traxtent._simulate import simulate
from traxtent._sweep_plan import Figures, Planner, SweepPlan, SweepRun, as_drive
from traxtent._sweep_runner import Runner, RunProgress, SweepProgress
from traxtent._traxtent import InputError, Result, Table
from traxtent.typing import DriveLike, Setting, Workload


class SweepRow(dict[str, Any]):
    """A row of a sweep: its cells by column, and in `run` what is needed to simulate it again."""

    run: SweepRun

    def __init__(self, cells: Mapping[str, Any], run: SweepRun) -> None:
        """Create a row of these cells."""
        super().__init__(cells)
        self.run = run

    def __reduce__(self) -> tuple[type[SweepRow], tuple[dict[str, Any], SweepRun]]:
        """Return the parts for pickle."""
        return SweepRow, (dict(self), self.run)


class SweepTable(Sequence[SweepRow]):
    """The results of a sweep: a row per run.

    The columns are those of ``traxtent sim --summary``: ``drive``, one for each key of the grid,
    ``seed`` if a workload has one, ``workload``, and all figures. Columns that end in ``_ms`` are
    in milliseconds of simulated time; ``units`` has the unit of each column that has one.

    It has ``__arrow_c_stream__``: ``polars.DataFrame(table)`` and ``pyarrow.table(table)`` take it
    without a copy; ``pandas.DataFrame.from_arrow(table)`` converts it. ``table[index]`` is a row,
    which `rerun` accepts. It can be pickled.
    """

    def __init__(self, table: Table, plan: SweepPlan) -> None:
        """Create the table of a plan."""
        self._table = table
        self._plan = plan

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream."""
        return self._table.__arrow_c_stream__(requested_schema)

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return self._table.columns

    @property
    def units(self) -> dict[str, str]:
        """The unit of each column that has one."""
        return self._table.units

    def save(self, path: str | PathLike[str]) -> None:
        """Write the table to a file, which gets its name once it is complete.

        The extension selects the format: ``.parquet``; or ``.csv``, also with ``.gz`` or ``.zst``.

        Raises:
            InputError: The name has another extension, or the file exists and is not such a table.
            FileError: The file cannot be written.

        """
        self._table.save(path)

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self._table)

    @overload
    def __getitem__(self, index: int) -> SweepRow: ...

    @overload
    def __getitem__(self, index: slice) -> list[SweepRow]: ...

    def __getitem__(self, index: int | slice) -> SweepRow | list[SweepRow]:
        """Return a row, or a list of rows for a slice."""
        if isinstance(index, slice):
            return [self[item] for item in range(*index.indices(len(self)))]
        row = self._table[index]
        return SweepRow(row, self._plan.run(index % len(self)))

    def __repr__(self) -> str:
        """Return the size of the table."""
        return f"<SweepTable: {len(self)} rows, {len(self.columns)} columns>"


def sweep(
    drives: DriveLike | Sequence[DriveLike] | Mapping[str, DriveLike],
    workloads: Workload | Sequence[Workload] | Mapping[str, Workload] = None,
    grid: Mapping[str, Setting | Iterable[Setting]] | None = None,
    seeds: int | Iterable[int] = 1,
    *,
    seed: int | None = None,
    executor: Executor | None = None,
    workers: int | None = None,
    resume: str | PathLike[str] | None = None,
    warmup: int = 0,
    trace: Mapping[str, Any] | None = None,
    progress: SweepProgress = None,
) -> SweepTable:
    """Simulate each workload on each drive, with each combination of the grid's values.

    The table has a row per run, in the order of drives, workloads, grid and seeds; seeds vary
    fastest. It does not depend on the executor, on the number of workers, or on the order in which
    runs end. It equals that of ``traxtent sim --summary`` for the same arguments.

    Without an executor, threads perform the runs without the GIL, by default one per processor.

    Args:
        drives: A drive, several, or a mapping of names to drives.
        workloads: A workload as for `simulate`, several, or a mapping of names to workloads. A
            sequence is several workloads. A generator is refused because it can be read only once;
            a generator function is called for each run.
        grid: Keys, each with a value or several. Keys are those of ``traxtent sim --set``, such as
            ``"queue.scheduler"`` or ``"workload.size"``.
        seeds: The number of seeds with which each synthetic workload is run, or the seeds
            themselves.
        seed: The first seed, if ``seeds`` is a number. By default, it is that of the workload: 1,
            unless the workload states another. Each following seed is the next number. Every
            combination has the same seeds, so that differences between combinations are not due to
            chance.
        executor: Any `concurrent.futures.Executor`, such as `ProcessPoolExecutor`,
            ``client.get_executor()`` of Dask, ``MPIPoolExecutor`` of mpi4py, or
            `traxtent.ray.RayExecutor`. Runs are sent to it in chunks that can be pickled; trace
            files must exist under the same path, with the same content, where its workers are.
            Tables and generator functions must be picklable.
        workers: The number of threads, or of the executor's workers; by default, the number that
            the executor states. At most four chunks per worker are outstanding, or 256 in all if
            the number is not known.
        resume: A folder in which finished runs are kept as Parquet files, and from which a later
            call takes them. A run is taken only if its drive, workload, settings, seed, `warmup`,
            `trace` and this package are the same. Other files are neither used nor changed.
        warmup: The number of requests, the first to complete, that all results exclude.
        trace: The options for replaying a trace, as for `simulate`: ``{"replay": "closed:4"}``.
        progress: True prints a line to standard error whenever runs are finished, with the last of
            them and its seed; False prints nothing; a function is called with the runs done and
            their total. By default, a bar of tqdm is shown after a second if tqdm is installed and
            standard error is a terminal or a notebook.

    Raises:
        InputError: An argument is invalid, or a run has failed because of one. The text names the
            run; if several fail, the first of them.
        FileError: A file cannot be read or written.
        TraxtentError: The executor has failed, or a generator function has raised an exception.
        KeyboardInterrupt: Ctrl-C. Runs that have not begun are cancelled.

    """
    plan = Planner(seeds, seed, warmup, trace, executor is not None or resume is not None).plan(
        drives, workloads, grid
    )
    results: dict[int, Figures] = {}
    files = None if resume is None else RunFiles(os.fspath(resume))
    digests = [] if files is None else _digests(plan)
    if files is not None:
        known = files.read()
        results = {index: known[digest] for index, digest in enumerate(digests) if digest in known}
    shown = RunProgress(progress, len(plan), len(results))

    def finished(rows: list[tuple[int, Figures]]) -> None:
        results.update(rows)
        if files is not None:
            own = [digests[index] for index, _ in rows]
            files.write(plan.table(rows, own), own)
        shown.advance(len(rows), plan.run(rows[-1][0]).label)

    pending = [index for index in range(len(plan)) if index not in results]
    try:
        Runner(plan, executor, workers, finished).run(pending)
    finally:
        shown.close()
    return SweepTable(plan.table(sorted(results.items())), plan)


def rerun(
    row: Mapping[str, Any],
    *,
    drive: DriveLike | None = None,
    workload: Workload = None,
    log: bool = False,
    warmup: int = 0,
    trace: Mapping[str, Any] | None = None,
    progress: bool | Callable[[int, int | None], object] | None = None,
) -> Result:
    """Simulate one run of a sweep again, with the same figures.

    Args:
        row: A row of a `SweepTable`; or a mapping with the same columns, such as a row of a
            DataFrame or of a saved table.
        drive: The drive, if the name in the row is not a target. Not for rows of a `SweepTable`.
        workload: The workload, if the row has only its name. Not for rows of a `SweepTable`.
        log: Whether the result keeps one row per request.
        warmup: The sweep's `warmup`. Not for rows of a `SweepTable`.
        trace: The sweep's `trace`. Not for rows of a `SweepTable`.
        progress: As for `simulate`.

    Raises:
        InputError: The row lacks a column; the row is one of a `SweepTable`, but an argument is not
            for such rows; or the row's figures are not those of the run, because the sweep had
            another drive, workload, `warmup` or `trace`, or another version of this package.
        FileError: A file cannot be read.

    """
    if isinstance(row, SweepRow):
        if drive is not None or workload is not None or warmup or trace is not None:
            raise InputError("a row of a sweep has its own drive, workload, warmup and trace")
        run = row.run
    else:
        run = _run_of(row, drive, workload, warmup, trace or {})
    options = dict(run.trace)
    result = simulate(
        run.drive,
        run.workload,
        seed=run.seed,
        log=log,
        warmup=run.warmup,
        set=dict(run.set),
        progress=progress,
        **options,
    )
    figures = _figures_of(result.summary)
    for name in _traxtent.figure_names():
        stated, found = row.get(name), figures.get(name)
        if stated is not None and stated == stated and stated != found:
            raise InputError(
                f"{run.label}: {name} was {stated} and is now {found}; state the drive, workload, "
                "warmup and trace of the sweep, and use the same version of traxtent"
            )
    return result


def _run_of(
    row: Mapping[str, Any],
    drive: DriveLike | None,
    workload: Workload,
    warmup: int,
    trace: Mapping[str, Any],
) -> SweepRun:
    for name in ("drive", "workload"):
        if name not in row:
            raise InputError(f"the row has no column {name}")
    known = {"drive", "seed", "workload", "run", *_traxtent.figure_names()}
    # pandas has NaN where a row has no value.
    present = {name: value for name, value in row.items() if value == value and value is not None}
    seed = present.get("seed")
    settings = [(key, value) for key, value in present.items() if key not in known]
    return SweepRun(
        name=row["drive"],
        drive=as_drive(row["drive"] if drive is None else drive),
        workload=row["workload"] if workload is None else workload,
        set=tuple((key, _traxtent.setting_value(key, value)) for key, value in settings),
        seed=None if seed is None else int(seed),
        warmup=warmup,
        trace=tuple(sorted(trace.items())),
    )


def _figures_of(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Return the figures of a summary, by column name."""
    figures: dict[str, Any] = {}
    for key, value in summary.items():
        if isinstance(value, Mapping):
            group = key.removesuffix("_ms")
            figures.update({f"{group}_{name}_ms": item for name, item in value.items()})
        else:
            figures[key] = value
    return figures


def _digests(plan: SweepPlan) -> list[str]:
    drives = {id(block.drive): drive_digest(block.drive) for block in plan.blocks}
    runs = (plan.run(index) for index in range(len(plan)))
    return [run_digest(run, drives[id(run.drive)]) for run in runs]
