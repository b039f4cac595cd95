"""Do workloads made in Python behave like the grammar's?"""

from __future__ import annotations

import json
import time
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from traxtent import Completion, Drive, Request, simulate

from .conftest import Command

Client = Generator[Request, Completion, None]


def rows_of(result: Any) -> list[dict[str, Any]]:
    """Return the requests of a result in order of issue."""
    rows: list[dict[str, Any]] = pa.table(result.requests).sort_by("request").to_pylist()
    return rows


def test_a_closed_loop_equals_the_grammars() -> None:
    """Does a generator that waits for each completion give the times of the grammar's loop?"""
    workload = "random,read=66%,size=8,count=500,think=2ms"
    expected = simulate("atlas10k2", workload, log=True)
    rows = rows_of(expected)

    def client() -> Client:
        for row in rows:
            done = yield Request(row["lbn"], row["sectors"], row["op"], delay_ms=2.0)
            assert done.lbn == row["lbn"]
            assert done.response_ms == row["response_ms"]
            assert done.issued_ms == row["issued_ms"]
            assert sum(done.breakdown_ms.values()) == pytest.approx(done.response_ms)

    def first_at_once() -> Client:
        # The grammar's first request is issued at 0, without the think time.
        requests = client()
        request = next(requests)
        completion = yield Request(request.lbn, request.sectors, request.op)
        while True:
            try:
                request = requests.send(completion)
            except StopIteration:
                return
            completion = yield request

    result = simulate("atlas10k2", first_at_once, log=True)
    assert pa.table(result.requests).equals(pa.table(expected.requests))
    ours, theirs = result.summary, expected.summary
    for key in ("workload", "seed"):
        ours.pop(key, None), theirs.pop(key, None)
    assert ours == theirs


def test_several_clients_equal_the_grammars_outstanding_requests() -> None:
    """Do four generators that take the same requests in turn give the log of outstanding=4?"""
    expected = simulate("atlas10k2", "random,size=8,count=400,outstanding=4", log=True)
    requests = iter([(row["lbn"], row["sectors"]) for row in rows_of(expected)])

    def client() -> Client:
        for lbn, sectors in requests:
            yield Request(lbn, sectors)

    result = simulate("atlas10k2", [client(), client(), client(), client()], log=True)
    assert pa.table(result.requests).equals(pa.table(expected.requests))


def test_an_iterable_with_times_equals_a_table() -> None:
    """Do a table and requests with times of issue give the log of the run that they are from?

    Is a log itself a workload?
    """
    source = simulate("atlas10k2", "random,size=8,count=300,arrive=exp:6ms", log=True)
    rows = rows_of(source)
    log = pa.table(source.requests).sort_by("request")
    table = log.select(["issued_ms", "op", "lbn", "sectors"]).rename_columns(
        ["at_ms", "op", "lbn", "sectors"]
    )
    expected = pa.table(source.requests)
    replayed = simulate("atlas10k2", table, log=True)
    assert pa.table(replayed.requests).equals(expected)
    requests = (Request(row["lbn"], row["sectors"], at_ms=row["issued_ms"]) for row in rows)
    listed = simulate("atlas10k2", list(requests), log=True)
    assert pa.table(listed.requests).equals(expected)
    assert simulate("atlas10k2", log).summary["requests"] == 300


def test_an_iterable_that_arrives_too_fast() -> None:
    """Does the time for requests that all arrive at once grow in proportion to their number?"""

    def seconds(count: int) -> float:
        requests = [Request(lbn * 8, 8, at_ms=0.0) for lbn in range(count)]
        begun = time.process_time()
        simulate("atlas10k2", requests)
        return time.process_time() - begun

    few = seconds(20_000)
    assert seconds(80_000) < 10 * few


def test_kinds_of_tables() -> None:
    """Are tables with equal values, but other types or chunks, read alike?"""
    usual = pa.table(
        {
            "at_ms": [float(i) * 5 for i in range(40)],
            "op": ["read", "write"] * 20,
            "lbn": [i * 1000 for i in range(40)],
            "sectors": [8] * 40,
        }
    )
    expected = simulate("atlas10k2", usual).to_json()
    padded = pa.concat_tables([usual, usual]).slice(40, 40)
    narrow = usual.cast(
        pa.schema(
            [
                ("at_ms", pa.float32()),
                ("op", pa.large_string()),
                ("lbn", pa.int32()),
                ("sectors", pa.uint8()),
            ]
        )
    )
    words = usual.set_column(1, "op", usual.column("op").dictionary_encode())
    views = usual.set_column(1, "op", usual.column("op").cast(pa.string_view()))
    chunked = pa.concat_tables([usual.slice(0, 7), usual.slice(7, 0), usual.slice(7)])
    whole_times = usual.set_column(0, "at_ms", usual.column("at_ms").cast(pa.int64()))
    reader = chunked.to_reader(max_chunksize=3)
    for kind in (padded, narrow, words, views, chunked, whole_times, reader):
        assert simulate("atlas10k2", kind).to_json() == expected


def test_tables_without_times() -> None:
    """Is a table without times replayed as fast as completions allow, if that is requested?"""
    table = pa.table({"lbn": [0, 5000, 9000], "sectors": [8, 8, 8]})
    result = simulate("atlas10k2", table, replay="closed:2", log=True)
    rows = rows_of(result)
    assert [row["issued_ms"] for row in rows[:2]] == [0.0, 0.0]
    assert rows[2]["issued_ms"] == min(row["completed_ms"] for row in rows[:2])


def test_several_drives(command: Command, tmp_path: Path) -> None:
    """Do requests for device 1, in a trace, a table or a list, go to the drive in `more`?"""
    path = tmp_path / "two.trace"
    path.write_text("".join(f"{i * 7}.0 {i % 2} {i * 100} 8 1\n" for i in range(60)))
    printed = command("sim", "atlas10k2", str(path), "--drive", "atlas10k", "--json")
    for more in (["atlas10k"], [Drive("atlas10k")]):
        assert simulate("atlas10k2", path, more=more).to_json() == printed
    table = pa.table(
        {
            "at_ms": [i * 7.0 for i in range(60)],
            "device": [i % 2 for i in range(60)],
            "lbn": [i * 100 for i in range(60)],
            "sectors": [8] * 60,
        }
    )
    figures = simulate("atlas10k2", table, more=["atlas10k"]).summary
    requests = [Request(i * 100, 8, at_ms=i * 7.0, device=i % 2) for i in range(60)]
    assert (
        simulate("atlas10k2", requests, more=["atlas10k"]).summary["response_ms"]
        == (figures["response_ms"])
    )
    expected = json.loads(printed)
    assert figures["response_ms"] == expected["response_ms"]


def test_flushes_and_writes() -> None:
    """Do flushes and writes with force unit access arrive as such?"""

    def client() -> Client:
        yield Request(0, 8, "write")
        done = yield Request(op="flush")
        assert done.op == "flush" and done.sectors == 0
        yield Request(64, 8, "write", fua=True)

    rows = rows_of(simulate("atlas10k2", client, log=True))
    assert [row["op"] for row in rows] == ["write", "flush", "write"]
    assert [row["fua"] for row in rows] == [0, 0, 1]


def test_generators_are_closed_when_the_run_fails() -> None:
    """Is a generator closed if the run fails, so that its `finally` runs?"""
    ended = []

    def client() -> Iterator[Request]:
        try:
            yield Request(0, 8)
            yield Request(2**50, 8)
            yield Request(0, 8)
        finally:
            ended.append(True)

    with pytest.raises(ValueError, match="ends before"):
        simulate("atlas10k2", client)
    assert ended == [True]
