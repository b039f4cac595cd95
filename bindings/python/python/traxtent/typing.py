"""The types of arguments, for annotations.

>>> from traxtent import Head, WaitingQueue
>>> from traxtent.typing import Scheduler
>>> def newest(now_ms: float, head: Head, waiting: WaitingQueue) -> int:
...     return len(waiting) - 1
>>> schedulers: dict[str, Scheduler] = {"newest": newest}
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from os import PathLike
from typing import Any, Protocol, runtime_checkable

from traxtent._traxtent import Drive, Head, Request, WaitingQueue

__all__ = [
    "ArrowTable",
    "DriveLike",
    "PathLikes",
    "Placement",
    "Progress",
    "Scheduler",
    "Setting",
    "Workload",
]

DriveLike = Drive | str | PathLike[str]
"""A drive, or the target that names it."""

PathLikes = str | PathLike[str] | Iterable[str | PathLike[str]]
"""A path, or several."""

Setting = str | int | float | bool | Sequence[object]
"""The value of a figure, as the command's ``--set`` accepts it."""

Progress = bool | Callable[[int, "int | None"], object] | None
"""Whether progress is shown, or a function of the requests done and their total, if known."""

Scheduler = Callable[[float, Head, WaitingQueue], int]
"""A queue scheduler: a function of the time in milliseconds, the head and the queue.

It returns the index of the next request in the queue.
"""

Placement = Callable[[Request], "int | Request"]
"""A placement of requests: a function that returns an LBN, or the request to issue instead."""


@runtime_checkable
class ArrowTable(Protocol):
    """A table with the Arrow PyCapsule interface, such as one of polars, pyarrow or pandas."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream."""


Workload = str | PathLike[str] | ArrowTable | Iterable[Any] | Callable[[], Iterable[Request]] | None
"""The requests to simulate; see `traxtent.simulate`."""
