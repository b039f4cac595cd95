"""Are the rows of a sweep the same with threads, executors, resumed folders and reruns?"""

from __future__ import annotations

import concurrent.futures
import errno
import multiprocessing
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import traxtent
from traxtent._run_files import RunFiles

from .conftest import Command, soak

WORKLOAD = "random,read=66%,size=8,count=300,outstanding=4"
GRID: dict[str, list[Any]] = {"queue.scheduler": ["fcfs", "sptf"], "workload.size": [8, 64]}
DRIVES = ["atlas10k2", "cheetah15k7"]

#: A workload that takes many times the length of any test.
ENDLESS = "random,size=8,count=1000000000"


def arrow(table: Any) -> pa.Table:
    """Return a result as pyarrow's table."""
    return pa.table(table)


def sweep(**options: Any) -> traxtent.SweepTable:
    """Perform the sweep that most tests need: 24 runs."""
    return traxtent.sweep(DRIVES, WORKLOAD, GRID, 3, progress=False, **options)


@pytest.fixture(scope="module")
def expected() -> pa.Table:
    """Return the table of the sweep by one thread."""
    return arrow(sweep(workers=1))


@pytest.fixture(scope="module")
def processes() -> Iterator[concurrent.futures.ProcessPoolExecutor]:
    """Return an executor with two new processes."""
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as executor:
        yield executor


def test_the_table_is_the_commands(tmp_path: Path, command: Command) -> None:
    """Does the table have the names, types and values of `traxtent sim --summary`?"""
    file = tmp_path / "rows.parquet"
    arguments = ["sim", "--drives", ",".join(DRIVES), WORKLOAD, "--seeds", "3", "--quiet"]
    for key, values in GRID.items():
        arguments += ["--set", f"{key}={','.join(map(str, values))}"]
    command(*arguments, "--summary", str(file))
    read = pyarrow.parquet.read_table(file)
    table = sweep()
    assert arrow(table).equals(read.replace_schema_metadata(None))
    own = tmp_path / "own.parquet"
    table.save(own)
    assert pyarrow.parquet.read_table(own).equals(read)
    assert table.units["response_mean_ms"] == "ms"


def test_rows_are_in_order(expected: pa.Table) -> None:
    """Do seeds vary fastest, then the last key, and drives slowest?"""
    rows = expected.select(["drive", *GRID, "seed"]).to_pylist()
    order = [
        {"drive": drive, "queue.scheduler": scheduler, "workload.size": size, "seed": seed}
        for drive in DRIVES
        for scheduler in GRID["queue.scheduler"]
        for size in GRID["workload.size"]
        for seed in (1, 2, 3)
    ]
    assert rows == order


def test_executors_and_workers_give_the_same(
    expected: pa.Table, processes: concurrent.futures.Executor
) -> None:
    """Is the table that of one thread, whatever makes the runs?"""
    assert arrow(sweep(workers=3)).equals(expected)
    assert arrow(sweep(executor=processes)).equals(expected)
    assert arrow(sweep(executor=processes, workers=1)).equals(expected)
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        assert arrow(sweep(executor=threads)).equals(expected)
    assert arrow(sweep(executor=Backwards())).equals(expected)


class Backwards(concurrent.futures.Executor):
    """An executor that ends tasks in the opposite order, and records how many it had at most."""

    def __init__(self) -> None:
        """Create an executor without tasks."""
        self.most = 0
        self.tasks: list[tuple[concurrent.futures.Future[Any], Callable[[], Any]]] = []

    def submit(
        self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any
    ) -> concurrent.futures.Future[Any]:
        """Keep a task until a timer runs all that have been submitted."""
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()
        fn, args = pickle.loads(pickle.dumps((fn, args)))
        self.tasks.append((future, lambda: fn(*args, **kwargs)))
        self.most = max(self.most, len(self.tasks))
        if len(self.tasks) == 1:
            threading.Timer(0.2, self._run).start()
        return future

    def _run(self) -> None:
        while self.tasks:
            future, work = self.tasks.pop()
            if future.set_running_or_notify_cancel():
                future.set_result(work())


def test_an_executor_gets_few_chunks_ahead() -> None:
    """Is the largest number of outstanding chunks two to four per worker?"""
    executor = Backwards()
    traxtent.sweep(
        "atlas10k2",
        "random,size=8,count=10",
        {"mechanics.rpm": range(7200, 7400)},
        executor=executor,
        workers=2,
    )
    assert 4 <= executor.most <= 8


@pytest.mark.parametrize("form", ["table", "pickled row", "dict", "csv"])
def test_a_row_is_replayed_alone(form: str, tmp_path: Path) -> None:
    """Does `rerun` give the figures of the row, and its log?"""
    table = sweep()
    rows: Any = table
    if form == "pickled row":
        rows = pickle.loads(pickle.dumps(list(table)))
    elif form == "dict":
        rows = arrow(table).to_pylist()
    elif form == "csv":
        table.save(tmp_path / "rows.csv")
        rows = pyarrow.csv.read_csv(tmp_path / "rows.csv").to_pylist()
    for index in random.Random(1).sample(range(len(table)), 5):
        row = rows[index]
        again = traxtent.rerun(row, log=True)
        assert again.seed == row["seed"]
        assert again.summary["response_ms"]["mean"] == row["response_mean_ms"]
        assert again.requests is not None
        assert len(again.requests) == row["requests"]


def test_a_row_of_another_drive_is_refused() -> None:
    """Is a row refused if its name does not stand for the drive of its run?"""
    slow = traxtent.Drive("atlas10k2").replace({"mechanics.rpm": 7200})
    table = traxtent.sweep({"atlas10k2": slow}, WORKLOAD)
    plain = arrow(table).to_pylist()[0]
    assert traxtent.rerun(table[0]).summary["response_ms"]["mean"] == plain["response_mean_ms"]
    with pytest.raises(traxtent.InputError, match=r"was .* and is now"):
        traxtent.rerun(plain)
    traxtent.rerun(plain, drive=slow)


def test_workloads_of_all_kinds(tmp_path: Path) -> None:
    """Can one sweep run named traces, tables, generator functions and grammar workloads?"""
    trace = tmp_path / "small.trace"
    trace.write_text("".join(f"{i * 20}.0 0 {i * 1000} 8 1\n" for i in range(50)))
    requests = pa.table({"at_ms": [0.0, 20.0], "lbn": [0, 800], "sectors": [8, 8]})
    workloads = {"made": WORKLOAD, "trace": trace, "table": requests, "clients": client}
    table = traxtent.sweep("atlas10k2", workloads, seeds=2, progress=False)
    rows = arrow(table).select(["workload", "seed", "requests"]).to_pylist()
    assert [tuple(row.values()) for row in rows] == [
        ("made", 1, 300),
        ("made", 2, 300),
        ("trace", None, 50),
        ("table", None, 2),
        ("clients", None, 5),
    ]
    alone = traxtent.sweep("atlas10k2", trace)
    assert "seed" not in alone.columns
    assert alone[0]["workload"] == str(trace)
    assert traxtent.rerun(table[2]).summary["requests"] == 50


def client() -> Iterator[traxtent.Request]:
    """Read five times."""
    for lbn in range(5):
        yield traxtent.Request(lbn * 1000, 8)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (([], WORKLOAD), {}, "drives: none is given"),
        (("atlas10k2", []), {}, "workloads: none is given"),
        (("atlas10k2", WORKLOAD, {"mechanics.rpm": []}), {}, "grid: mechanics.rpm has no value"),
        (("atlas10k2", WORKLOAD, {"mechanics.rmp": [1]}), {}, "mechanics.rmp"),
        (("atlas10k2", WORKLOAD, {"mechanics.rpm": [7200, -1]}), {}, "mechanics.rpm"),
        (("atlas10k2", WORKLOAD, {"workload.size": ["x"]}), {}, "size"),
        (("atlas10k2", WORKLOAD, {"mechanics.rpm": [object()]}), {}, "mechanics.rpm"),
        (("atlas10k3", WORKLOAD), {}, "atlas10k3"),
        (("atlas10k2", WORKLOAD, None, 0), {}, "seeds: 0"),
        (("atlas10k2", WORKLOAD, None, []), {}, "seeds: none is given"),
        (("atlas10k2", WORKLOAD, None, [1, 2]), {"seed": 1}, "seed: omit it"),
        (("atlas10k2", WORKLOAD), {"seed": -1}, "seed: -1: expected 0 to 18446744073709551615"),
        (("atlas10k2", WORKLOAD), {"seed": 2**64}, "seed: 18446744073709551616: expected 0 to"),
        (("atlas10k2", WORKLOAD, None, [1, -1]), {}, "seeds: -1: expected 0 to"),
        (("atlas10k2", WORKLOAD), {"trace": {"pace": 1}}, "trace: no option is called 'pace'"),
        (("atlas10k2", WORKLOAD), {"trace": {"speed": 2}}, "speed applies only to traces"),
        (("atlas10k2", WORKLOAD), {"workers": 0}, "workers: 0"),
        ((["atlas10k2", "atlas10k2"], WORKLOAD), {}, "atlas10k2 is given twice"),
        (("atlas10k2", client()), {}, "a generator can be read only once"),
        (("atlas10k2", "-"), {}, "standard input"),
        (("atlas10k2", client, None, 2), {}, "only to synthetic workloads"),
        (("atlas10k2", client), {"resume": "folder"}, "resume: only workload lines and files"),
    ],
)
def test_bad_arguments(
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    text: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Is a wrong argument refused with the reason?"""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(traxtent.InputError) as raised:
        traxtent.sweep(*arguments, **options)
    assert text in str(raised.value)


def test_one_point_without_a_grid() -> None:
    """Is a sweep without a grid, or with an empty one, a single run?"""
    empty: dict[str, list[Any]] = {}
    for grid in (None, empty):
        assert len(traxtent.sweep("atlas10k2", WORKLOAD, grid)) == 1


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    """Does the error of a file keep its number and the file's name?"""
    path = tmp_path / "none.trace"
    with pytest.raises(traxtent.FileError, match=r"^atlas10k2: .*none\.trace: No") as raised:
        traxtent.sweep("atlas10k2", path)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, str(path))


def test_one_further_drive(tmp_path: Path) -> None:
    """Is a further drive that is given alone the same as a list of one, also in a kept run?"""
    trace = tmp_path / "two.trace"
    trace.write_text("".join(f"{i * 20}.0 {i % 2} {i * 1000} 8 1\n" for i in range(50)))
    expected = arrow(traxtent.sweep("atlas10k2", trace, trace={"more": ["atlas10k"]}))
    for _ in range(2):
        table = traxtent.sweep(
            "atlas10k2", trace, trace={"more": "atlas10k"}, resume=tmp_path / "runs"
        )
        assert arrow(table).equals(expected)
    alone = traxtent.simulate("atlas10k2", trace, more="atlas10k")
    assert alone.summary["response_ms"]["mean"] == table[0]["response_mean_ms"]


@pytest.mark.parametrize("kind", ["threads", "processes"])
def test_a_failing_run_is_named(kind: str, processes: concurrent.futures.Executor) -> None:
    """Does the error name the first run that fails, whatever made it?"""
    executor = processes if kind == "processes" else None
    beyond = "random,size=8,count=100,lbns=0..100000000"
    grid = {"workload.count": [100, 101, 102]}
    with pytest.raises(traxtent.InputError) as raised:
        traxtent.sweep(["st2000dm006", "atlas10k"], beyond, grid, executor=executor)
    assert str(raised.value).startswith("atlas10k, workload.count=100, seed=1: ")


def failing() -> Iterator[traxtent.Request]:
    """Raise an exception after a request."""
    yield traxtent.Request(0, 8)
    raise ZeroDivisionError("of the user")


def test_an_exception_of_a_generator_function(processes: concurrent.futures.Executor) -> None:
    """Is an exception of the user's code named and kept?"""
    for executor in (None, processes):
        with pytest.raises(
            traxtent.TraxtentError, match="ZeroDivisionError: of the user"
        ) as raised:
            traxtent.sweep("atlas10k2", failing, executor=executor)
        assert isinstance(raised.value.__cause__, ZeroDivisionError)


def dying() -> Iterator[traxtent.Request]:
    """End the process."""
    yield traxtent.Request(0, 8)
    os._exit(1)


def test_an_executor_that_dies() -> None:
    """Does an executor that has died or shut down cause one clear exception?"""
    context = multiprocessing.get_context("spawn")
    with (
        concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor,
        pytest.raises(traxtent.TraxtentError, match="atlas10k2: the executor: BrokenProcessPool"),
    ):
        traxtent.sweep("atlas10k2", dying, executor=executor)
    ended = concurrent.futures.ThreadPoolExecutor(1)
    ended.shutdown()
    with pytest.raises(traxtent.TraxtentError, match="seed=1: the executor: RuntimeError"):
        traxtent.sweep("atlas10k2", WORKLOAD, executor=ended)


def test_workers_with_another_trace(tmp_path: Path) -> None:
    """Is a trace refused if its content differs on a worker's machine?"""
    trace = tmp_path / "small.trace"
    trace.write_text("0.0 0 1000 8 1\n")

    class Elsewhere(Backwards):
        def submit(self, *arguments: Any) -> Any:  # type: ignore[override]
            trace.write_text("0.0 0 2000 8 1\n")
            return super().submit(*arguments)

    with pytest.raises(traxtent.InputError, match="has different content on"):
        traxtent.sweep("atlas10k2", trace, executor=Elsewhere())


def test_finished_runs_are_kept(expected: pa.Table, tmp_path: Path) -> None:
    """Are kept runs reused, and does a changed sweep give the same table with them as without?"""
    folder = tmp_path / "runs"
    made: list[int] = []
    first = sweep(resume=folder)
    again = traxtent.sweep(
        DRIVES, WORKLOAD, GRID, 3, resume=folder, progress=lambda done, total: made.append(done)
    )
    assert made == []
    assert arrow(first).equals(expected)
    assert arrow(again).equals(expected)
    files = sorted(folder.iterdir())
    assert all(file.name.startswith("runs-") for file in files)
    kept = pyarrow.parquet.read_table(folder)
    assert kept.num_rows == len(expected)
    assert set(expected.column_names) < set(kept.column_names)
    # Three of four seeds are known.
    more = traxtent.sweep(
        DRIVES, WORKLOAD, GRID, 4, resume=folder, progress=lambda done, total: made.append(done)
    )
    assert made[-1] == 32
    assert arrow(more).equals(arrow(traxtent.sweep(DRIVES, WORKLOAD, GRID, 4)))
    for changed in (
        {"drives": {"atlas10k2": "atlas10k"}},
        {"warmup": 10},
        {"seed": 7},
        {"workloads": "random,size=8,count=299"},
    ):
        arguments: dict[str, Any] = {"drives": "atlas10k2", "workloads": WORKLOAD, **changed}
        resumed = traxtent.sweep(**arguments, resume=folder, progress=False)
        assert arrow(resumed).equals(arrow(traxtent.sweep(**arguments)))


def test_a_changed_trace_is_run_again(tmp_path: Path) -> None:
    """Is a trace identified by its content, not by its name?"""
    trace = tmp_path / "small.trace"
    tables = []
    for lbn in (1000, 2000):
        trace.write_text(f"0.0 0 {lbn} 8 1\n50.0 0 {lbn * 100} 8 1\n")
        tables.append(arrow(traxtent.sweep("atlas10k2", trace, resume=tmp_path / "runs")))
    assert not tables[0].equals(tables[1])


def test_a_folder_without_a_free_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is it an error if runs cannot be kept because every name is taken?"""

    class Saved:
        def save(self, path: str) -> None:
            Path(path).write_bytes(b"")

    def taken(source: str, target: str) -> None:
        raise FileExistsError(target)

    monkeypatch.setattr(os, "link", taken)
    table: Any = Saved()
    with pytest.raises(traxtent.FileError, match="too many files"):
        RunFiles(str(tmp_path)).write(table, ["digest"])
    assert list(tmp_path.iterdir()) == []


def test_other_files_in_the_folder(expected: pa.Table, tmp_path: Path) -> None:
    """Does one line warn of damaged and foreign files, which are neither used nor changed?"""
    sweep(resume=tmp_path, workers=1)
    files = sorted(tmp_path.iterdir())
    damaged = files[0].read_bytes()[:-20] + bytes(20)
    files[0].write_bytes(damaged)
    files[1].write_bytes(b"")
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "folder.parquet").mkdir()
    (tmp_path / "other.parquet").write_bytes(files[2].read_bytes())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        again = sweep(resume=tmp_path)
    assert arrow(again).equals(expected)
    (line,) = [str(warning.message) for warning in caught]
    assert "\n" not in line
    assert "not used: " in line and "and 2 more" in line
    assert files[0].read_bytes() == damaged
    assert files[1].read_bytes() == b""
    assert (tmp_path / "notes.txt").read_text() == "mine"
    # The runs of the damaged files are kept again, under other names.
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        made: list[int] = []
        traxtent.sweep(
            DRIVES, WORKLOAD, GRID, 3, resume=tmp_path, progress=lambda done, _: made.append(done)
        )
    assert made == []


def test_folders_that_cannot_be_used(tmp_path: Path) -> None:
    """Does a file in the place of the folder raise a clear exception?"""
    (tmp_path / "file").write_text("")
    with pytest.raises(traxtent.FileError, match="file"):
        sweep(resume=tmp_path / "file")


def test_a_killed_sweep_is_resumed(expected: pa.Table, tmp_path: Path) -> None:
    """Does a sweep that is killed at any moment leave only whole files?"""
    program = textwrap.dedent(f"""
        import traxtent
        print("ready", flush=True)
        traxtent.sweep({DRIVES}, {WORKLOAD!r}, {GRID}, 3, resume={str(tmp_path)!r}, workers=1)
    """)
    chance = random.Random(1)
    for _ in range(3 * min(soak(), 10)):
        child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.15))
        child.kill()
        child.wait()
        child.stdout.close()
    with warnings.catch_warnings():
        # A file that is not whole would cause a warning.
        warnings.simplefilter("error")
        assert arrow(sweep(resume=tmp_path)).equals(expected)


@pytest.mark.parametrize("executor", ["None", "concurrent.futures.ThreadPoolExecutor(1)"])
def test_ctrl_c_ends_a_sweep(executor: str) -> None:
    """Does Ctrl-C end a sweep, and cancel the runs that have not begun?"""
    workload = ENDLESS if executor == "None" else "random,size=8,count=100000"
    program = f"""
        import concurrent.futures, signal, time, traxtent
        # A shell starts jobs in the background with Ctrl-C ignored.
        signal.signal(signal.SIGINT, signal.default_int_handler)
        print("ready", flush=True)
        try:
            traxtent.sweep("atlas10k2", {workload!r}, {{"mechanics.rpm": range(7200, 8200)}},
                executor={executor})
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """
    child = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(1.0)
    child.send_signal(signal.SIGINT)
    try:
        output, _ = child.communicate(timeout=60)
    finally:
        child.kill()
    assert output == "stopped\n"


def test_progress_counts_runs(capsys: pytest.CaptureFixture[str]) -> None:
    """Is a function told of the runs, and are the seeds printed?"""
    seen: list[tuple[int, int]] = []
    traxtent.sweep(
        "atlas10k2", WORKLOAD, seeds=5, progress=lambda done, total: seen.append((done, total))
    )
    assert seen[-1] == (5, 5)
    traxtent.sweep("atlas10k2", WORKLOAD, seeds=2, seed=40, progress=True)
    lines = capsys.readouterr().err.splitlines()
    counts, settings = zip(*(line.split(": ") for line in lines), strict=True)
    assert counts == ("1 of 2 runs", "2 of 2 runs")
    # Either run may be the first to end.
    assert sorted(settings) == ["atlas10k2, seed=40", "atlas10k2, seed=41"]


def test_tables_are_sequences(tmp_path: Path) -> None:
    """Can a table be indexed, iterated and pickled?"""
    table = traxtent.sweep("atlas10k2", WORKLOAD, seeds=3)
    assert [row["seed"] for row in table] == [1, 2, 3]
    assert table[-1] == table[2]
    assert table[-1].run.seed == 3
    assert [row["seed"] for row in table[1:]] == [2, 3]
    with pytest.raises(IndexError):
        table[3]
    again = pickle.loads(pickle.dumps(table))
    assert arrow(again).equals(arrow(table))
    assert traxtent.rerun(again[1]).seed == 2
    with pytest.raises(traxtent.InputError, match="expected a name such as"):
        table.save(tmp_path / "rows.txt")


def test_seeds_beyond_signed_numbers() -> None:
    """Do seeds wrap at 2^64, and is their column text if one exceeds 63 bits?"""
    table = traxtent.sweep("atlas10k2", WORKLOAD, seeds=2, seed=2**64 - 1)
    assert [row["seed"] for row in table] == [str(2**64 - 1), "0"]
