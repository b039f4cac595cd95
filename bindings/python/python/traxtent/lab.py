"""The papers' experiments as tasks: ``traxtent.lab.run("T")``.

`traxtent lab list` lists the experiments and their claims.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor, as_completed
from os import PathLike
from typing import Any

from traxtent import _traxtent
from traxtent._traxtent import FileError, InputError, Table, TraxtentError
from traxtent._warnings import warn

__all__ = ["Claims", "run"]

_COLUMNS = [
    ("id", "text", None, False),
    ("says", "text", None, False),
    ("unit", "text", None, False),
    ("published", "number", None, False),
    ("published_to", "number", None, True),
    ("measured", "number", None, True),
    ("tolerance", "text", None, True),
    ("verdict", "text", None, False),
    ("reason", "text", None, True),
]

_NOTHING = "nothing can be measured here"
"""The command's error if no experiment can be run."""


class Claims(Sequence[dict[str, Any]]):
    """Claims with their results, a row per claim, in the order of the experiments.

    An item is the object that ``traxtent lab run --json`` prints for the claim. As an Arrow table
    (``polars.DataFrame(claims)``, ``pyarrow.table(claims)``), the columns are:

    - ``id`` and ``says``; and ``unit``, such as ``ms`` or ``share``.
    - ``published``, in this unit. If it is a range, ``published_to`` is its end.
    - ``measured``, in this unit; null if there is no such value.
    - ``tolerance``, as JSON; null for a range.
    - ``verdict``: ``met``, ``missed`` or ``reported``; and ``reason`` if it is not met.
    """

    def __init__(self, claims: Sequence[dict[str, Any]]) -> None:
        """Create the table of these claims."""
        self._claims = list(claims)

    @property
    def columns(self) -> list[str]:
        """The names of the columns of the Arrow table."""
        return [column[0] for column in _COLUMNS]

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table as an Arrow stream."""
        rows = [_cells(claim) for claim in self._claims]
        return Table._from_parts(_COLUMNS, rows).__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        """Return the number of claims."""
        return len(self._claims)

    def __getitem__(self, index: Any) -> Any:
        """Return a claim, or a list of claims for a slice."""
        return self._claims[index]

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Return an iterator over the claims."""
        return iter(self._claims)

    def __repr__(self) -> str:
        """Return the number of claims by verdict."""
        verdicts = [claim["verdict"] for claim in self._claims]
        counts = [f"{verdicts.count(verdict)} {verdict}" for verdict in dict.fromkeys(verdicts)]
        return f"<Claims: {', '.join(counts)}>"


def run(
    *ids: str,
    executor: Executor | None = None,
    seeds: int = 1,
    seed: int | None = None,
    quick: bool = False,
    set: dict[str, str | float] | None = None,
    traces: str | PathLike[str] | None = None,
    progress: Callable[[int, int], object] | None = None,
) -> Claims:
    """Run the experiments of claims, each as a task of its own.

    The claims and results are those of ``traxtent lab run IDS --json``. They do not depend on the
    executor.

    Args:
        ids: Claims, groups of claims or papers, such as ``"T9a"``, ``"T9"``, ``"T"``, or ``"all"``.
        executor: Any `concurrent.futures.Executor`. Its workers start the installed command. By
            default, one experiment runs at a time, on all processors.
        seeds: The number of seeds; a verdict must hold with each.
        seed: The only seed.
        quick: Whether to run only a tenth of the requests, for an approximate result.
        set: Figures to replace in the drives, as for ``--set``.
        traces: The directory of the traces that come with DiskSim, which some experiments replay.
            Experiments that cannot be run are omitted with a warning.
        progress: A function that is called with the number of finished experiments and the total.

    Raises:
        InputError: There is no such claim, or an argument is invalid.
        FileError: No experiment can be run, or a file cannot be read.
        TraxtentError: The executor or the command has failed.
        KeyboardInterrupt: Ctrl-C. Experiments that have not begun are cancelled.

    """
    if not ids:
        raise InputError('no claim is named; "all" names all')
    if seed is not None and seeds != 1:
        raise InputError("seed and seeds exclude each other")
    experiments = _traxtent.lab_experiments(ids)
    options = ["--seeds", str(seeds)] if seed is None else ["--seed", str(seed)]
    options += ["--quick"] if quick else []
    for key, value in (set or {}).items():
        options += ["--set", f"{key}={_traxtent.setting_value(key, value)}"]
    if traces is not None:
        options += ["--traces", os.path.abspath(traces)]
    own = None if executor is not None else ThreadPoolExecutor(1, "traxtent-lab")
    workers = own or executor
    assert workers is not None
    futures: dict[Future[tuple[int, str, str]], int] = {}
    results: dict[int, list[dict[str, Any]]] = {}
    skipped: list[str] = []
    try:
        for index, (_, claims) in enumerate(experiments):
            futures[workers.submit(run_experiment, claims, options)] = index
        for done, future in enumerate(as_completed(futures), 1):
            found, notes = _result(future, *experiments[futures[future]])
            results[futures[future]] = found
            skipped += notes
            if progress is not None:
                progress(done, len(futures))
    except BaseException:
        _stop_children()
        raise
    finally:
        for future in futures:
            future.cancel()
        if own is not None:
            own.shutdown(cancel_futures=True)
    for note in skipped:
        warn(note)
    table = [claim for index in sorted(results) for claim in results[index]]
    if not table:
        raise FileError(_NOTHING)
    return Claims(table)


def run_experiment(claims: Sequence[str], options: Sequence[str]) -> tuple[int, str, str]:
    """Run the command for an experiment. Return its status, output and messages.

    An executor's workers call this.
    """
    command = [sys.executable, "-m", "traxtent", "lab", "run", *claims, "--json", *options]
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        _children.append(child)
        try:
            output, messages = child.communicate()
        except BaseException:
            child.kill()
            raise
        finally:
            _children.remove(child)
    return child.returncode, output, messages


_children: list[subprocess.Popen[str]] = []
"""The running commands that this process has started."""


def _stop_children() -> None:
    for child in list(_children):
        child.kill()


def _result(
    future: Future[tuple[int, str, str]], number: str, chosen: Sequence[str]
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the claims of a finished experiment, or none and the reasons why it was skipped."""
    try:
        status, output, messages = future.result()
    except Exception as error:
        raise TraxtentError(f"{number}: the executor: {type(error).__name__}: {error}") from error
    lines = [line.removeprefix("traxtent: ") for line in messages.splitlines()]
    if status in (0, 1) and output:
        claims = json.loads(output)
        # The ID of a claim may also be that of a group.
        return [claim for claim in claims if claim["id"] in chosen], []
    if any(_NOTHING in line for line in lines):
        return [], [line for line in lines if _NOTHING not in line]
    kinds = {2: InputError, 3: FileError}
    last = lines[-1] if lines else f"the command ended with status {status}"
    raise kinds.get(status, TraxtentError)(f"{number}: {last}")


def _cells(claim: dict[str, Any]) -> list[Any]:
    published = claim["published"]
    first, last = published if isinstance(published, list) else (published, None)
    tolerance = claim["tolerance"]
    return [
        claim["id"],
        claim["says"],
        claim["unit"],
        first,
        last,
        claim["measured"],
        None if tolerance is None else json.dumps(tolerance),
        claim["verdict"],
        claim["reason"],
    ]
