"""Do policies in Python decide like built-in ones?"""

from __future__ import annotations

import traceback
from typing import Any

import pyarrow as pa
import pytest

import traxtent
from traxtent import Head, InputError, Request, WaitingQueue, simulate

WORKLOAD = "random,read=70%,size=8,count=1500,outstanding=16"


def sptf(now: float, head: Head, waiting: WaitingQueue) -> int:
    """Return the index of the request with the shortest positioning time, as SPTF does."""
    times = waiting.access_ms()
    return times.index(min(times))


def fcfs(now: float, head: Head, waiting: WaitingQueue) -> int:
    """Return the index of the oldest request."""
    return 0


@pytest.mark.parametrize(("pick", "name"), [(sptf, "sptf"), (fcfs, "fcfs")])
def test_a_scheduler_picks_as_the_built_in_one(pick: Any, name: str) -> None:
    """Does a scheduler in Python make the same choices as the built-in one with the same rule?"""
    expected = simulate("atlas10k2", WORKLOAD, log=True, set={"queue.scheduler": name})
    result = simulate("atlas10k2", WORKLOAD, log=True, scheduler=pick)
    assert pa.table(result.requests).equals(pa.table(expected.requests))


def test_the_view_of_the_queue() -> None:
    """Do the view's lists, items and times agree, and is it invalid after the decision?"""
    kept: list[WaitingQueue] = []
    items = []

    def pick(now: float, head: Head, waiting: WaitingQueue) -> int:
        assert len(waiting) == len(waiting.lbns()) == len(waiting.access_ms()) >= 2
        assert [item.lbn for item in waiting] == waiting.lbns()
        assert [item.sectors for item in waiting] == waiting.sectors()
        assert [item.arrived_ms for item in waiting] == waiting.arrived_ms()
        assert waiting[-1].lbn == waiting.lbns()[-1]
        assert all(item.arrived_ms <= now for item in waiting)
        assert all(time >= 0 for time in waiting.access_ms())
        assert 0 <= head.angle < 1 and head.cylinder >= 0 and head.surface >= 0
        with pytest.raises(IndexError):
            waiting[len(waiting)]
        kept.append(waiting)
        items.append(waiting[0])
        return 0

    simulate("atlas10k2", "random,size=8,count=50,outstanding=4", scheduler=pick)
    assert kept
    assert items[0].sectors == 8
    for use in (len, WaitingQueue.lbns, WaitingQueue.access_ms, lambda queue: queue[0]):
        with pytest.raises(InputError, match="until the scheduler has returned"):
            use(kept[0])


@pytest.mark.parametrize(
    ("answer", "error"),
    [(16, InputError), (-1, TypeError), ("0", TypeError), (None, TypeError), (1.5, TypeError)],
)
def test_wrong_answers_of_a_scheduler(answer: Any, error: type[Exception]) -> None:
    """Is an answer that is not an index of the queue refused?"""
    with pytest.raises(error, match="scheduler"):
        simulate("atlas10k2", WORKLOAD, scheduler=lambda now, head, waiting: answer)


def test_policies_that_raise_keep_their_tracebacks() -> None:
    """Does the exception of a policy reach the caller unchanged, with its traceback?"""

    def broken(*arguments: object) -> int:
        raise KeyError("mine")

    for policy in ("scheduler", "place"):
        with pytest.raises(KeyError, match="mine") as raised:
            simulate("atlas10k2", WORKLOAD, **{policy: broken})  # type: ignore[arg-type]
        assert any("raise KeyError" in line for line in traceback.format_exception(raised.value))


def test_a_placement_moves_requests() -> None:
    """Does each request go where the placement puts it, whether that is an LBN or a request?"""
    by_lbn = simulate("atlas10k2", WORKLOAD, log=True, place=lambda request: request.lbn % 4096)
    assert max(pa.table(by_lbn.requests).column("lbn").to_pylist()) < 4096
    whole = simulate(
        "atlas10k2",
        "random,read=100%,size=8,count=100",
        log=True,
        place=lambda request: Request(request.lbn, 16, "write"),
    )
    table = pa.table(whole.requests)
    assert set(table.column("op").to_pylist()) == {"write"}
    assert set(table.column("sectors").to_pylist()) == {16}
    same = simulate("atlas10k2", WORKLOAD, place=lambda request: request.lbn)
    assert same.to_json() == simulate("atlas10k2", WORKLOAD).to_json()
    with pytest.raises(InputError, match="ends before LBN"):
        simulate("atlas10k2", WORKLOAD, place=lambda request: 2**60)
    with pytest.raises(TypeError, match="place"):
        simulate("atlas10k2", WORKLOAD, place=lambda request: "here")  # type: ignore[arg-type, return-value]


def test_policies_in_batches() -> None:
    """Do policies work in the thread of `simulate_batches`, and do exceptions reach the caller?"""
    batches = traxtent.simulate_batches("atlas10k2", WORKLOAD, scheduler=sptf)
    parts = [pa.record_batch(batch) for batch in batches]
    expected = simulate("atlas10k2", WORKLOAD, log=True, scheduler=sptf)
    assert pa.Table.from_batches(parts).equals(pa.table(expected.requests))
    with pytest.raises(ZeroDivisionError):
        list(
            traxtent.simulate_batches(
                "atlas10k2", WORKLOAD, scheduler=lambda now, head, waiting: 1 // 0
            )
        )
