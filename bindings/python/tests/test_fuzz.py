"""Does every call with odd arguments give a result or an expected exception?"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

import traxtent

from .conftest import soak

#: The exceptions that odd arguments may cause.
EXPECTED = (traxtent.TraxtentError, TypeError, ValueError, OverflowError)

ODD: list[Any] = [
    None, True, 0, 1, -1, 7, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**40,
    0.0, -0.5, 1e300, float("nan"), float("inf"), 1j,
    "", "x", "atlas10k2", "random", "random,count=3", "random,size=8,count=2,seed=9", "é" * 40,
    "closed:1", "recorded", "raid-5", "tracks", "read", "flush", "\0", "a\nb", "/", "-1", "1e9",
    b"", b"abc", [], [0], [0, 8], [0, 8, 4], ["a"], [None], (), (0, 16), {}, {"a": 1},
    {"mechanics.rpm": 1}, {"workload.count": 5}, set(), object(), range(5), print, len,
    lambda *a: 0, lambda *a: 10**30, iter([]), traxtent.Request(0, 8),
    pa.array([0, 5, 9]), pa.array(["a"]), pa.array([None]), pa.table({}),
    pa.table({"lbn": [1], "sectors": [8], "at_ms": [0.0]}),
    pa.table({"lbn": ["a"], "sectors": [None], "at_ms": [1]}),
]  # fmt: skip


def objects() -> list[Any]:
    """Return objects of the package, whose methods are called too."""
    drive = traxtent.Drive("atlas10k2")
    result = traxtent.simulate(drive, "random,size=8,count=5", log=True)
    small = traxtent.TrackMap.from_boundaries([0, 10, 20, 32])
    return [
        drive,
        small,
        small[0],
        small.boundaries,
        result,
        result.requests,
        traxtent.Request(0, 8),
        traxtent.RaidArray("raid-0", [small, small]),
        traxtent.Disk(drive),
    ]


FUNCTIONS: list[Callable[..., Any]] = [
    traxtent.Drive,
    traxtent.Drive.from_file,
    traxtent.Request,
    traxtent.Track,
    traxtent.TrackMap.from_boundaries,
    traxtent.TrackMap.open,
    traxtent.RaidArray,
    traxtent.Disk,
    traxtent.simulate,
    traxtent.simulate_batches,
    traxtent.excluded_blocks,
    traxtent.probe,
    traxtent.validate,
    traxtent.calibrate,
    traxtent.Drive._from_parts,
    traxtent.Result._from_parts,
    traxtent.RequestLog._from_bytes,
    traxtent.TrackMap._from_text,
]

KEYWORDS = [
    "seed", "log", "warmup", "set", "more", "device", "format", "columns", "units", "replay",
    "speed", "scheduler", "place", "rows", "chunks", "spares", "granule", "sector_bytes", "verify",
    "region", "op", "at_ms", "delay_ms", "holdout", "keep", "drive",
]  # fmt: skip


def methods(thing: Any) -> list[Callable[..., Any]]:
    """Return `__repr__` and all methods that are not special, except `save`, which writes files."""
    names = [name for name in dir(thing) if not name.startswith("__") and name not in {"save"}]
    found = [getattr(thing, name) for name in names]
    found += [thing.__repr__]
    return [method for method in found if callable(method)]


def test_odd_arguments(capfd: pytest.CaptureFixture[str], tmp_path: Any) -> None:
    """Do odd arguments give a result or an expected exception, never a panic or a crash?"""
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    known = objects()
    calls = FUNCTIONS + [method for thing in known for method in methods(thing)]
    values = ODD + known
    for turn in range(1500 * soak()):
        call = rng.choice(calls)
        arguments = [rng.choice(values) for _ in range(rng.choice([0, 1, 1, 2, 2, 3]))]
        keywords = {
            rng.choice(KEYWORDS): rng.choice(values) for _ in range(rng.choice([0, 0, 1, 2]))
        }
        place = f"seed {seed}, turn {turn}: {call} {arguments} {keywords}"
        try:
            result = call(*arguments, **keywords)
            if isinstance(result, traxtent.BatchIterator):
                list(result)
        except EXPECTED as error:
            assert "internal error" not in str(error), place
        except (KeyError, AttributeError, IndexError, StopIteration):
            # Functions of Python that stand for the user's, such as `print`, raise these.
            pass
        except BaseException as error:
            pytest.fail(f"{place}: {type(error)} {error}")
    assert "panicked" not in capfd.readouterr().err


def test_a_panic_becomes_an_exception(capfd: pytest.CaptureFixture[str]) -> None:
    """Does a panic in Rust become a TraxtentError with its message, without output on stderr?"""
    with pytest.raises(traxtent.TraxtentError, match=r"internal error: a planted panic \(.*rs:"):
        traxtent._traxtent._panic()
    assert capfd.readouterr().err == ""
