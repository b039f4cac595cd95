"""Simulations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from os import PathLike
from typing import Any

from traxtent import _traxtent
from traxtent._traxtent import BatchIterator, Drive, Result
from traxtent.typing import DriveLike, Placement, Progress, Scheduler, Workload


def simulate(
    drive: DriveLike,
    workload: Workload = None,
    *,
    seed: int | None = None,
    log: bool = False,
    warmup: int = 0,
    set: Mapping[str, object] | None = None,
    more: DriveLike | Sequence[DriveLike] = (),
    device: int | None = None,
    format: str | None = None,
    columns: str | None = None,
    units: str | Sequence[str] | None = None,
    delimiter: str | None = None,
    where: str | Sequence[str] | None = None,
    reads: str | Sequence[str] | None = None,
    writes: str | Sequence[str] | None = None,
    arrival: str | None = None,
    replay: str | None = None,
    speed: float | None = None,
    scheduler: Scheduler | None = None,
    place: Placement | None = None,
    progress: Progress = None,
) -> Result:
    """Simulate a workload on a drive.

    The results are those of the command `traxtent sim` with the same arguments, to the last bit.
    The GIL is released meanwhile, and Ctrl-C ends the simulation.

    Args:
        drive: A `Drive`, or the target that names it.
        workload: The requests, in one of these forms:

            - A line of the workload grammar, such as ``"random,read=66%,size=8,count=10000"``.
            - The path of a trace, plain or compressed with gzip or zstd, or of a TOML file with a
              workload.
            - A table with ``__arrow_c_stream__`` (pyarrow, polars, pandas) and the columns ``lbn``
              and ``sectors``; ``at_ms`` (or ``issued_ms``), the times of issue in milliseconds in
              ascending order, unless ``replay`` is ``closed:N``; and optionally ``op`` (``read``,
              ``write``, ``flush`` or ``verify``), ``device`` and ``fua``.
            - A generator function or generator that yields a `Request` and receives its
              `Completion`: ``done = yield Request(lbn, sectors)``. It has one request outstanding.
              A list of generators stands for several clients, each with one request outstanding.
            - Any other iterable of `Request`. A request with ``at_ms`` is issued at that time, and
              one without it once all earlier ones are complete.
            - None: the workload in the drive's DiskSim parameters.
        seed: The seed of a synthetic workload, instead of the one that it states.
        log: Whether the result keeps one row per request, about 150 bytes each.
        warmup: The number of requests, the first to complete, that all results exclude.
        set: Figures to replace in the drive and, as ``workload.KEY``, in the workload.
        more: The drives of further devices, or the only one, if a trace, a table or requests use
            several.
        device: Replay only the requests of this device of a trace.
        format: The trace's format, if it is not detected automatically.
        columns: Read the trace as text with these columns, such as ``time=1,op=2,lbn=3,sectors=4``.
        units: The units of times and addresses, with ``columns``.
        delimiter: The separator of columns: one character, ``tab`` or ``blanks``.
        where: A column and values, such as ``"2=usr"``. Lines with other values are skipped.
        reads: Values of ``op=`` that mean a read.
        writes: Values of ``op=`` that mean a write.
        arrival: The event of blkparse output that counts as arrival: ``dispatch`` or ``queue``.
        replay: ``recorded``, ``semi-closed`` or ``closed:N``.
        speed: The factor by which recorded arrivals are accelerated.
        scheduler: A queue scheduler, ``pick(now_ms, head, waiting) -> index``, that replaces the
            drive's. It is called whenever the arm is free and at least two requests wait; see
            `Head` and `WaitingQueue`.
        place: A placement of requests, ``place(request) -> lbn`` or ``Request``, called for each
            request before the drive receives it.
        progress: True shows progress after a second, and False does not show it. A function is
            called with the requests done and their total, if known, every 40 ms or less often, and
            at the end; an exception that it raises ends the simulation. By default, a bar of tqdm
            is shown after a second if tqdm is installed and standard error is a terminal or a
            notebook.

    Raises:
        InputError: An argument, the content of a file or a row of a table is invalid, or a request
            extends beyond the drive.
        FileError: A file cannot be read.
        Exception: Whatever a generator, a scheduler or a placement raises, with its traceback.

    """
    options = _options(
        more=more,
        device=device,
        format=format,
        columns=columns,
        units=units,
        delimiter=delimiter,
        where=where,
        reads=reads,
        writes=writes,
        arrival=arrival,
        replay=replay,
        speed=speed,
    )
    changes = None if set is None else dict(set)
    return _traxtent.simulate_run(
        drive, workload, seed, log, warmup, changes, progress, options, scheduler, place
    )


def simulate_batches(
    drive: DriveLike,
    workload: Workload = None,
    *,
    rows: int = 65_536,
    seed: int | None = None,
    warmup: int = 0,
    set: Mapping[str, object] | None = None,
    scheduler: Scheduler | None = None,
    place: Placement | None = None,
    progress: Progress = None,
    **options: Any,
) -> BatchIterator:
    """Simulate a workload, and return its requests in batches, in bounded memory.

    The simulation runs in another thread, a few batches ahead, and ends when the iterator is
    deleted.

    Args:
        drive: As for `simulate`.
        workload: As for `simulate`.
        rows: The number of requests in a batch, from 1 to 2**24. The last batch may have fewer.
        seed: As for `simulate`.
        warmup: As for `simulate`.
        set: As for `simulate`.
        scheduler: As for `simulate`.
        place: As for `simulate`.
        progress: As for `simulate`.
        options: The other arguments of `simulate`, except ``log``.

    Returns:
        An iterator of `RequestBatch`. After the last one, the iterator's ``result`` is the
        `Result`.

    Raises:
        Exception: As for `simulate`; errors during the simulation are raised by the iterator.

    """
    _refuse_unknown("simulate_batches", options, _TRACE_OPTIONS)
    changes = None if set is None else dict(set)
    return _traxtent.simulate_in_batches(
        drive,
        workload,
        seed,
        rows,
        warmup,
        changes,
        progress,
        _options(**options),
        scheduler,
        place,
    )


_TRACE_OPTIONS = frozenset(
    "more device format columns units delimiter where reads writes arrival replay speed".split()
)


def _refuse_unknown(function: str, options: Mapping[str, object], known: Set[str]) -> None:
    unknown = options.keys() - known
    if unknown:
        raise TypeError(f"{function}() got an unexpected argument {min(unknown)!r}")


def _options(**options: Any) -> dict[str, object]:
    """Return the options that are given. Further drives become a list."""
    given = {
        key: value
        for key, value in options.items()
        if value is not None and not (isinstance(value, list) and not value)
    }
    more = drives_of(given.pop("more", ()))
    return {**given, "more": more} if more else given


def drives_of(drives: DriveLike | Iterable[DriveLike]) -> list[DriveLike]:
    """Return the drives of an argument that is one drive or several."""
    return [drives] if isinstance(drives, str | Drive | PathLike) else list(drives)
