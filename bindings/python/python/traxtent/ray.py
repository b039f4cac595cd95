"""An executor for Ray, which has none of its own: ``traxtent.ray.RayExecutor()``."""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any, ParamSpec, TypeVar

__all__ = ["RayExecutor"]

P = ParamSpec("P")
T = TypeVar("T")


class RayExecutor(Executor):
    """Runs each call as a Ray task.

    Ray is started on this machine, unless ``ray.init`` has connected to a cluster. A task whose
    worker dies is retried by Ray. Workers need this package.

    Args:
        max_workers: The number of concurrent tasks for which callers should plan; by default, the
            number of processors in the cluster when the executor is created.
        options: The options of the tasks, such as ``num_cpus`` or ``max_retries`` (by default, 20),
            as for ``ray.remote``.

    Raises:
        ImportError: The package ``ray`` is not installed.

    """

    def __init__(self, max_workers: int | None = None, **options: Any) -> None:
        """Connect to Ray."""
        ray: Any = importlib.import_module("ray")
        if not ray.is_initialized():
            ray.init(log_to_driver=False, include_dashboard=False)
        cpus = int(ray.cluster_resources().get("CPU", 1))
        self._max_workers = max_workers or max(1, cpus)
        self._remote: Any = ray.remote(_call).options(**{"max_retries": 20, **options})
        self._cancel: Callable[[Any], None] = ray.cancel
        self._futures: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Start a task, and return its future. The future's `cancel` cancels the task."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the executor was shut down")
            task = self._remote.remote(fn, args, kwargs)
            future: Future[T] = _TaskFuture(task, self._cancel)
            self._futures.add(future)
        future.add_done_callback(self._forget)
        task.future().add_done_callback(lambda done: _settle(future, done))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Accept no more tasks. Ray itself keeps running; ``ray.shutdown()`` ends it."""
        with self._lock:
            self._closed = True
            futures = list(self._futures)
        for future in futures:
            if cancel_futures:
                future.cancel()
        for future in futures:
            if wait and not future.cancelled():
                future.exception()

    def _forget(self, future: Future[Any]) -> None:
        with self._lock:
            self._futures.discard(future)


class _TaskFuture(Future[T]):
    """The future of a task."""

    def __init__(self, task: Any, cancel: Callable[[Any], None]) -> None:
        super().__init__()
        self._task = task
        self._cancel = cancel

    def cancel(self) -> bool:
        """Cancel the task, even if it is running."""
        cancelled = super().cancel()
        if cancelled:
            self._cancel(self._task)
        return cancelled


def _call(fn: Callable[..., T], args: tuple[Any, ...], kwargs: dict[str, Any]) -> T:
    return fn(*args, **kwargs)


def _settle(future: Future[T], task: Future[T]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    error = task.exception()
    if error is not None:
        future.set_exception(getattr(error, "cause", None) or error)
    else:
        future.set_result(task.result())
