"""Performs the runs of a sweep in threads or with an executor, and shows their progress."""

from __future__ import annotations

import importlib
import os
import pickle
import queue
import socket
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from traxtent import _traxtent
from traxtent._run_files import file_digest
from traxtent._sweep_plan import Figures, SweepPlan, SweepRun
from traxtent._traxtent import FileError, InputError, StopFlag, TraxtentError

SweepProgress = bool | Callable[[int, int], object] | None
"""Whether progress is shown, or a function of the runs done and their total."""

Submit = Callable[[list[SweepRun]], Future[Any]]
"""Gives runs to a thread or to an executor's worker."""

_CHUNKS_PER_WORKER = 4
"""The largest number of outstanding chunks per worker. With several, no worker waits."""

_CHUNKS_UNKNOWN = 256
"""The largest number of outstanding chunks if the number of workers is not known."""

_WORKERS_ASSUMED = 16
"""The number of workers among which few runs are divided if the actual number is not known."""

_CHUNK_REQUESTS = 500_000
"""The number of requests aimed at in an executor's chunk.

They take about half a second, which is more than the cost of sending the chunk.
"""

_CHUNK_REQUESTS_THREADS = 50_000
"""The number of requests aimed at in a thread's chunk.

It is smaller because nothing is sent, and because all threads should end at about the same time.
"""

_CHUNK_RUNS = 256
"""The largest number of runs in a chunk."""

_POLL_S = 0.1
"""The interval at which Python may handle Ctrl-C while the runs are in other threads."""

_PROGRESS_AFTER_S = 1.0
"""The time after which a sweep is long enough to show its progress."""


def run_chunk(
    runs: Sequence[SweepRun], version: str, stop: StopFlag | None = None
) -> tuple[list[Figures], Exception | None]:
    """Simulate runs until one fails. Return the figures of those before it, and its exception.

    If none fails, the exception is None. Threads call this with `stop`, and an executor's workers
    without it. `version` is that of the package that performs the sweep. If this package has
    another version, nothing is simulated, and the exception is an InputError.
    """
    if version != _traxtent.__version__:
        text = f"{socket.gethostname()} has traxtent {_traxtent.__version__}, not {version}"
        return [], InputError(text)
    done: list[Figures] = []
    for run in runs:
        try:
            if run.content is not None:
                _check_content(run)
            done.append(_run_figures(run, stop))
        except Exception as error:
            return done, error if stop is not None else _portable(error)
    return done, None


def _run_figures(run: SweepRun, stop: StopFlag | None) -> Figures:
    return _traxtent.run_figures(
        run.drive, run.workload, run.seed, run.warmup, dict(run.set), dict(run.trace), stop
    )


def _check_content(run: SweepRun) -> None:
    path = os.fspath(run.workload)  # type: ignore[arg-type]
    if file_digest(path) != run.content:
        raise InputError(f"{path} has different content on {socket.gethostname()}")


def _portable(error: Exception) -> Exception:
    """Return an exception that can be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return TraxtentError(f"{type(error).__name__}: {error}")
    return error


class Runner:
    """Performs runs in threads or with an executor."""

    def __init__(
        self,
        plan: SweepPlan,
        executor: Executor | None,
        workers: int | None,
        finished: Callable[[list[tuple[int, Figures]]], None],
    ) -> None:
        if workers is not None and workers < 1:
            raise InputError(f"workers: {workers}: expected at least 1")
        self.plan = plan
        self.executor = executor
        self.finished = finished
        if executor is None:
            workers = workers or _processors()
        for name in ("_max_workers", "num_workers"):
            workers = workers or getattr(executor, name, None)
        self.workers = workers
        self.waiting: dict[Future[Any], list[int]] = {}
        self.failure: tuple[int, Exception] | None = None

    def run(self, pending: list[int]) -> None:
        """Perform the runs with these indices."""
        if not pending:
            return
        version = _traxtent.__version__
        if self.executor is not None:
            submit = self.executor.submit
            self._run(pending, lambda runs: submit(run_chunk, runs, version))
            return
        stop = StopFlag()
        threads = ThreadPoolExecutor(self.workers, "traxtent-sweep")
        try:
            self._run(pending, lambda runs: threads.submit(run_chunk, runs, version, stop))
        finally:
            # After success, no run is left to stop.
            stop.set()
            threads.shutdown(cancel_futures=True)

    def _run(self, pending: list[int], submit: Submit) -> None:
        chunks = iter(self._chunks(pending))
        ahead = _CHUNKS_UNKNOWN if self.workers is None else _CHUNKS_PER_WORKER * self.workers
        ended: queue.SimpleQueue[Future[Any]] = queue.SimpleQueue()
        try:
            while True:
                while self.failure is None and len(self.waiting) < ahead:
                    chunk = next(chunks, None)
                    if chunk is None or not self._submit(chunk, submit, ended):
                        break
                # A run before the failed one may fail too, and is then the one to report.
                first = min((chunk[0] for chunk in self.waiting.values()), default=None)
                if first is None or (self.failure is not None and first > self.failure[0]):
                    break
                try:
                    future = ended.get(timeout=_POLL_S)
                except queue.Empty:
                    continue
                self._accept(future)
        finally:
            for future in self.waiting:
                future.cancel()
        if self.failure is not None:
            raise self.failure[1]

    def _submit(
        self,
        chunk: list[int],
        submit: Submit,
        ended: queue.SimpleQueue[Future[Any]],
    ) -> bool:
        runs = [self.plan.run(index) for index in chunk]
        try:
            future = submit(runs)
        except Exception as error:
            self._executor_failed(chunk, error)
            return False
        self.waiting[future] = chunk
        future.add_done_callback(ended.put)
        return True

    def _accept(self, future: Future[Any]) -> None:
        chunk = self.waiting.pop(future)
        if future.cancelled():
            self._executor_failed(chunk, TraxtentError("the runs were cancelled"))
            return
        error = future.exception()
        if isinstance(error, Exception):
            self._executor_failed(chunk, error)
            return
        if error is not None:
            raise error
        figures, error = future.result()
        if figures:
            self.finished(list(zip(chunk, figures, strict=False)))
        if error is not None:
            index = chunk[len(figures)]
            self._fail(index, _named(self.plan.run(index), error))

    def _executor_failed(self, chunk: list[int], error: Exception) -> None:
        others = f" and {len(chunk) - 1} more" if len(chunk) > 1 else ""
        label = self.plan.run(chunk[0]).label
        failed = TraxtentError(f"{label}{others}: the executor: {type(error).__name__}: {error}")
        failed.__cause__ = error
        self._fail(chunk[0], failed)

    def _fail(self, index: int, error: Exception) -> None:
        if self.failure is None or index < self.failure[0]:
            self.failure = (index, error)

    def _chunks(self, pending: list[int]) -> Iterator[list[int]]:
        """Divide the runs into chunks that are worth sending, with some for every worker."""
        goal = _CHUNK_REQUESTS_THREADS if self.executor is None else _CHUNK_REQUESTS
        requests = self.plan.requests or goal
        runs = max(1, min(goal // max(requests, 1), _CHUNK_RUNS))
        shares = _CHUNKS_PER_WORKER * (self.workers or _WORKERS_ASSUMED)
        runs = min(runs, -(-len(pending) // shares))
        for start in range(0, len(pending), runs):
            yield pending[start : start + runs]


def _processors() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:
        return os.cpu_count() or 1


def _named(run: SweepRun, error: Exception) -> Exception:
    """Return the exception with the name of its run."""
    if isinstance(error, FileError):
        return FileError(f"{run.label}: {error}", error.errno, error.filename)
    if isinstance(error, InputError):
        return InputError(f"{run.label}: {error}")
    if isinstance(error, TraxtentError):
        return TraxtentError(f"{run.label}: {error}")
    named = TraxtentError(f"{run.label}: {type(error).__name__}: {error}")
    named.__cause__ = error
    return named


class RunProgress:
    """Progress in runs: a bar of tqdm, lines, or the user's own function."""

    def __init__(self, wanted: SweepProgress, total: int, done: int) -> None:
        self.wanted = wanted
        self.total = total
        self.done = done
        self.begun = time.monotonic()
        self.bar: Any = None

    def advance(self, runs: int, label: str) -> None:
        """Count finished runs, and show the progress. `label` names the last of them."""
        self.done += runs
        if callable(self.wanted):
            self.wanted(self.done, self.total)
            return
        if self.wanted is False:
            return
        if self.wanted:
            print(f"{self.done} of {self.total} runs: {label}", file=sys.stderr, flush=True)
            return
        late = time.monotonic() - self.begun >= _PROGRESS_AFTER_S
        if not late or not (sys.stderr.isatty() or "ipykernel" in sys.modules):
            return
        if self.bar is None:
            self.bar = self._new_bar()
        if self.bar is not None:
            self.bar.set_postfix_str(label, refresh=False)
            self.bar.update(self.done - self.bar.n)

    def close(self) -> None:
        """Remove the bar."""
        if self.bar is not None:
            self.bar.close()

    def _new_bar(self) -> Any:
        try:
            tqdm: Any = importlib.import_module("tqdm.auto").tqdm
        except ImportError:
            return None
        return tqdm(total=self.total, unit=" runs", leave=False)
