"""Progress of long work: a bar of tqdm, a line of text, or the user's own function."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

Reporter = Callable[[int, "int | None", bool], object]


def reporter(progress: Any, total: int | None) -> Reporter | None:
    """Return the function that shows progress, or None if progress is not shown.

    Its arguments are the requests done, their total, and whether this is the last call.

    `progress` is a function of (done, total), True, False or None. True shows a bar, or a line of
    text if tqdm is not installed. None shows a bar if standard error is a terminal or a notebook,
    and tqdm is installed.
    """
    if progress is False:
        return None
    if callable(progress):
        function: Callable[[int, int | None], object] = progress

        def call(done: int, total: int | None, end: bool) -> object:
            return function(done, total)

        return call
    return _bar(total, always=progress is True)


def _bar(total: int | None, *, always: bool) -> Reporter | None:
    notebook = "ipykernel" in sys.modules
    if not (always or notebook or sys.stderr.isatty()):
        return None
    try:
        tqdm: Any = importlib.import_module("tqdm.auto").tqdm
    except ImportError:
        return _lines if always else None
    bar = tqdm(total=total, unit=" requests", unit_scale=True, leave=False)

    def show(done: int, total: int | None, end: bool) -> None:
        bar.update(done - bar.n)
        if end:
            bar.close()

    return show


def _lines(done: int, total: int | None, end: bool) -> None:
    of = "" if total is None else f" of {total}"
    print(f"\r{done}{of} requests", end="\n" if end else "", file=sys.stderr, flush=True)
