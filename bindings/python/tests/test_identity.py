"""Are the results those of the command, to the last byte?"""

from __future__ import annotations

import random
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import traxtent
from traxtent import _command, _traxtent

from .conftest import Command

#: Configurations: the target, the workload, and further arguments of both sides.
CONFIGURATIONS: list[tuple[str, str, list[str], dict[str, Any]]] = [
    ("atlas10k2", "random,read=66%,size=8,count=2000", [], {}),
    ("atlas10k", "random,size=8,count=2000", ["--seed", "7"], {"seed": 7}),
    ("atlas10k2", "sequential,size=64,count=1000", [], {}),
    ("atlas10k2", "random,size=8,count=1000,outstanding=16", [], {}),
    ("atlas10k2", "random,size=track,count=300", [], {}),
    ("atlas10k2", "random,size=8,count=1000,arrive=exp:10ms", ["--warmup", "100"], {"warmup": 100}),
    (
        "atlas10k2",
        "random,size=8,count=1000,outstanding=32",
        ["--set", "queue.scheduler=sptf"],
        {"set": {"queue.scheduler": "sptf"}},
    ),
    (
        "atlas10k2",
        "random,size=8,count=1000",
        ["--set", "mechanics.rpm=7200", "--set", "workload.count=500"],
        {"set": {"mechanics.rpm": 7200, "workload.count": 500}},
    ),
    (
        "atlas10k2",
        "random,read=0%,size=8,count=1000",
        ["--set", "cache.write_back=full"],
        {"set": {"cache.write_back": "full"}},
    ),
]


@pytest.mark.parametrize(("target", "workload", "options", "arguments"), CONFIGURATIONS)
def test_json_of_synthetic_workloads(
    target: str,
    workload: str,
    options: list[str],
    arguments: dict[str, Any],
    command: Command,
) -> None:
    """Does a synthetic workload give the bytes that the command prints?"""
    printed = command("sim", target, workload, "--json", *options)
    assert traxtent.simulate(target, workload, **arguments).to_json() == printed


def test_json_of_built_in_drives(command: Command) -> None:
    """Do six built-in drives give the command's bytes?"""
    rng = random.Random(37)
    names = traxtent.drives()
    assert len(names) > 5
    for name in rng.sample(names, 6):
        workload = f"random,read=70%,size=8,count=300,seed={rng.randrange(1000)}"
        printed = command("sim", name, workload, "--json")
        assert traxtent.simulate(traxtent.Drive(name), workload).to_json() == printed, name


def rows() -> list[tuple[float, int, int, bool]]:
    """Return the requests of a trace.

    Each has its time in milliseconds, its LBN, its sectors, and whether it is a read.
    """
    rng = random.Random(1)
    at = 0.0
    trace = []
    for _ in range(200):
        at += rng.choice([0.5, 4.0, 12.0])
        trace.append(
            (at, rng.randrange(1_000_000) * 8, rng.choice([8, 16, 64]), rng.random() < 0.7)
        )
    return trace


def disksim_ascii() -> str:
    """Return the trace in DiskSim's default format."""
    return "".join(f"{at:.3f} 0 {lbn} {n} {int(read)}\n" for at, lbn, n, read in rows())


def disksim_validate() -> str:
    """Return the trace in DiskSim's validate format."""
    lines = (f"{'R' if read else 'W'} 0 {lbn} {n} 5000 1000\n" for _, lbn, n, read in rows())
    return "".join(lines)


def spc() -> str:
    """Return the trace in the format of the Storage Performance Council."""
    lines = (
        f"0,{lbn},{n * 512},{'R' if read else 'W'},{at / 1000:.6f}\n" for at, lbn, n, read in rows()
    )
    return "".join(lines)


def msr() -> str:
    """Return the trace in the format of MSR Cambridge."""
    lines = (
        f"{128166372000000000 + int(at * 10000)},host,0,{'Read' if read else 'Write'},"
        f"{lbn * 512},{n * 512},50000\n"
        for at, lbn, n, read in rows()
    )
    return "".join(lines)


def fio_v2() -> str:
    """Return the trace as fio's iolog, version 2."""
    head = "fio version 2 iolog\n/dev/sda add\n/dev/sda open\n"
    lines = (
        f"/dev/sda {'read' if read else 'write'} {lbn * 512} {n * 512}\n"
        for _, lbn, n, read in rows()
    )
    return head + "".join(lines) + "/dev/sda close\n"


def fio_v3() -> str:
    """Return the trace as fio's iolog, version 3."""
    head = "fio version 3 iolog\n0 /dev/sda add\n0 /dev/sda open\n"
    lines = (
        f"{int(at * 1e6)} /dev/sda {'read' if read else 'write'} {lbn * 512} {n * 512}\n"
        for at, lbn, n, read in rows()
    )
    return head + "".join(lines) + "99999999999 /dev/sda close\n"


def blkparse() -> str:
    """Return the trace as text output of blkparse."""
    lines = (
        f"  8,0 0 {i + 1:8} {at / 1000:14.9f}  1234  D   {'R' if read else 'W'} {lbn} + {n} [fio]\n"
        for i, (at, lbn, n, read) in enumerate(rows())
    )
    return "".join(lines)


def fio_latency() -> str:
    """Return the trace as fio's latency log with offsets."""
    lines = (
        f"{int(at) + 6}, 5000000, {0 if read else 1}, {n * 512}, {lbn * 512}, 0\n"
        for at, lbn, n, read in rows()
    )
    return "".join(lines)


def hp_srt() -> bytes:
    """Return the trace in HP Labs' binary format, without a header."""
    records = (
        struct.pack(
            ">13I",
            *(52, 1 << 16 | 1, int(at / 1000), int(at * 1000) % 1_000_000, 0, 5000),
            *(n * 512, lbn, 0, 0, 0, int(read), 0),
        )
        for at, lbn, n, read in rows()
    )
    return b"".join(records)


def columns() -> str:
    """Return the trace as columns of text."""
    return "".join(f"{at};{'r' if read else 'w'};{lbn};{n}\n" for at, lbn, n, read in rows())


COLUMNS = "time=1,op=2,lbn=3,sectors=4"

TRACES: dict[str, tuple[Callable[[], str | bytes], list[str], dict[str, Any]]] = {
    "disksim-ascii": (disksim_ascii, [], {}),
    "disksim-validate": (disksim_validate, [], {}),
    "spc": (spc, [], {}),
    "msr": (msr, [], {}),
    "fio-v2": (fio_v2, ["--replay", "closed:2"], {"replay": "closed:2"}),
    "fio-v3": (fio_v3, [], {}),
    "blkparse": (blkparse, ["--speed", "0.5"], {"speed": 0.5}),
    "fio-latency": (fio_latency, [], {}),
    "hp-srt": (hp_srt, [], {}),
    "columns": (
        columns,
        [
            "--columns",
            COLUMNS,
            "--units",
            "ms",
            "--delimiter",
            ";",
            "--reads",
            "r",
            "--writes",
            "w",
        ],
        {
            "columns": COLUMNS,
            "units": "ms",
            "delimiter": ";",
            "reads": "r",
            "writes": "w",
        },
    ),
}


@pytest.mark.parametrize("name", TRACES)
def test_json_of_traces(name: str, command: Command, tmp_path: Path) -> None:
    """Does a trace of each format give the bytes that the command prints?"""
    content, options, arguments = TRACES[name]
    path = tmp_path / f"{name}.trace"
    trace = content()
    path.write_bytes(trace if isinstance(trace, bytes) else trace.encode())
    printed = command("sim", "atlas10k2", str(path), "--json", *options)
    assert traxtent.simulate("atlas10k2", str(path), **arguments).to_json() == printed
    assert traxtent.simulate("atlas10k2", path, **arguments).to_json() == printed


def test_request_log(command: Command, tmp_path: Path) -> None:
    """Does the log have the columns and values of the command's CSV and Parquet logs?"""
    workload = "random,read=66%,size=8,count=3000,outstanding=4"
    command("sim", "atlas10k2", workload, "--log", "log.csv")
    command("sim", "atlas10k2", workload, "--log", "log.parquet")
    result = traxtent.simulate("atlas10k2", workload, log=True)
    table = pa.table(result.requests)
    parquet = pyarrow.parquet.read_table(tmp_path / "log.parquet").replace_schema_metadata(None)
    assert table.cast(parquet.schema).equals(parquet)
    assert table.column_names == parquet.column_names
    types = {"measured_ms": pa.float64()}
    options = pyarrow.csv.ConvertOptions(column_types=types)
    csv = pyarrow.csv.read_csv(tmp_path / "log.csv", convert_options=options)
    assert table.cast(csv.schema).equals(csv)


def test_logs_are_traces(command: Command, tmp_path: Path) -> None:
    """Does the replay of a command's log, plain or compressed, give the bytes that it prints?"""
    for name in ("log.csv", "log.csv.gz", "log.csv.zst"):
        command("sim", "atlas10k2", "random,size=8,count=500,arrive=exp:8ms", "--log", name)
        printed = command("sim", "atlas10k2", str(tmp_path / name), "--json", "--speed", "2")
        assert traxtent.simulate("atlas10k2", tmp_path / name, speed=2).to_json() == printed


def test_log_of_a_trace_has_measured_times(command: Command, tmp_path: Path) -> None:
    """Does the log of a trace with measured times have them?"""
    path = tmp_path / "validate.trace"
    path.write_text(disksim_validate())
    command("sim", "atlas10k2", str(path), "--log", "log.parquet")
    parquet = pyarrow.parquet.read_table(tmp_path / "log.parquet").replace_schema_metadata(None)
    table = pa.table(traxtent.simulate("atlas10k2", path, log=True).requests)
    assert table.column("measured_ms").null_count == 0
    assert table.cast(parquet.schema).equals(parquet)


def test_logs_of_several_batches() -> None:
    """Does a log of more than one batch have the rows of small batches?"""
    workload = "random,read=50%,size=8,count=70000"
    batches = traxtent.simulate_batches("atlas10k2", workload, rows=1000)
    parts = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
    whole = pa.table(traxtent.simulate("atlas10k2", workload, log=True).requests)
    assert whole.num_rows == 70_000 and whole.column("op").num_chunks > 1
    assert whole.equals(parts)


def test_logs_with_some_measured_times(command: Command, tmp_path: Path) -> None:
    """Is the log that of the command if only some requests have a measured time?"""
    path = tmp_path / "some.csv"
    lines = ["at,op,lbn,sectors,ms\n"]
    for number in range(1000):
        measured = "" if number < 300 or number % 7 == 0 else f"{1 + number / 1000}"
        lines.append(f"{number * 20},read,{number * 800},8,{measured}\n")
    path.write_text("".join(lines))
    columns = "time=at,op=op,lbn=lbn,sectors=sectors,response=ms"
    options = ["--columns", columns, "--units", "ms", "--log", "log.parquet"]
    command("sim", "atlas10k2", str(path), *options)
    parquet = pyarrow.parquet.read_table(tmp_path / "log.parquet").replace_schema_metadata(None)
    result = traxtent.simulate("atlas10k2", path, columns=columns, units="ms", log=True)
    table = pa.table(result.requests)
    assert table.column("measured_ms").null_count == 300 + 100
    assert table.cast(parquet.schema).equals(parquet)


def test_batches_are_the_log(command: Command) -> None:
    """Do all batches but the last have the given number of rows, and are they together the log?

    Is their result that of the command?
    """
    workload = "random,size=8,count=1000"
    batches = traxtent.simulate_batches("atlas10k2", workload, rows=128)
    parts = [pa.record_batch(batch) for batch in batches]
    assert [part.num_rows for part in parts] == [128] * 7 + [104]
    for rows in (1, 7, 999, 1000, 1001, 4096):
        again = traxtent.simulate_batches("atlas10k2", workload, rows=rows)
        sizes = [len(batch) for batch in again]
        assert sum(sizes) == 1000 and all(size == rows for size in sizes[:-1])
    whole = pa.table(traxtent.simulate("atlas10k2", workload, log=True).requests)
    assert pa.Table.from_batches(parts).equals(whole.combine_chunks())
    assert batches.result is not None
    assert batches.result.to_json() == command("sim", "atlas10k2", workload, "--json")


@pytest.mark.parametrize("started", ["script", "module"])
def test_the_command_can_start_itself_again(
    started: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Do the words with which `traxtent volume serve` starts its guardian run the command?"""
    scripts = {
        "script": Path(sys.executable).with_name("traxtent"),
        "module": Path(traxtent.__file__).with_name("__main__.py"),
    }
    monkeypatch.setattr(sys, "argv", [str(scripts[started]), "--version"])
    program: list[str] = []

    def run(words: list[str], arguments: list[str]) -> int:
        program.extend(words)
        return 0

    monkeypatch.setattr(_traxtent, "run_command", run)
    with pytest.raises(SystemExit):
        _command.main()
    done = subprocess.run(
        [*program, "--version"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, f"traxtent {traxtent.__version__}\n"), done.stderr
