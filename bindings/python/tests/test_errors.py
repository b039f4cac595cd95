"""Is bad input of every kind one clear exception?"""

from __future__ import annotations

import errno
import os
import pickle
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import traxtent
from traxtent import FileError, InputError, Request, TraxtentError, _traxtent, simulate

WORKLOAD = "random,size=8,count=100"

#: The groups of figures that a calibration fits.
KEEP_ALL = ("access", "bus", "cache", "mechanics", "overheads")


def table(**columns: Any) -> pa.Table:
    """Return a table of two requests, with some columns replaced or, if None, left out."""
    usual = {"at_ms": [0.0, 1.0], "op": ["read", "write"], "lbn": [0, 8], "sectors": [8, 8]}
    merged = {**usual, **columns}
    return pa.table({key: value for key, value in merged.items() if value is not None})


def test_the_hierarchy() -> None:
    """Are all errors TraxtentErrors, and do they fit Python's own classes?"""
    assert issubclass(InputError, TraxtentError) and issubclass(InputError, ValueError)
    assert issubclass(FileError, TraxtentError) and issubclass(FileError, OSError)
    assert issubclass(traxtent.StoppedError, TraxtentError)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("atlas10k3x", WORKLOAD), "no built-in drive is called"),
        (("atlas10k2", "random,count=-1"), "count"),
        (("atlas10k2", "random,size=0"), "size"),
        (("atlas10k2", "nothing"), "no such file"),
        (("atlas10k2",), "contains no workload"),
        (("disksim:", WORKLOAD), "no file after"),
    ],
)
def test_wrong_targets_and_workloads(arguments: tuple[str, ...], message: str) -> None:
    """Is a wrong target or workload refused with the command's message, without its prefix?"""
    with pytest.raises(InputError, match=message) as raised:
        simulate(*arguments)
    assert not str(raised.value).startswith("traxtent: ")


def test_warnings_point_to_the_caller(tmp_path: Path) -> None:
    """Does a warning name the line of the user's code, whichever function it comes from?"""
    path = tmp_path / "slow.csv"
    rows = "".join(f"{number * 20},read,{number * 800},8,5000000\n" for number in range(600))
    path.write_text("at,op,lbn,sectors,ms\n" + rows)
    columns: dict[str, Any] = {
        "columns": "time=at,op=op,lbn=lbn,sectors=sectors,response=ms",
        "units": "ms",
    }
    for act in (
        lambda: traxtent.validate(path, drive="atlas10k2", **columns),
        lambda: simulate("atlas10k2", path, **columns),
        lambda: traxtent.calibrate("atlas10k2", path, keep=KEEP_ALL, **columns),
    ):
        with pytest.warns(UserWarning, match="long for a disk") as caught:
            act()
        (warning,) = caught
        assert warning.filename == __file__
        assert warning.lineno == act.__code__.co_firstlineno


def test_missing_files(tmp_path: Path) -> None:
    """Is a missing file an OSError that names the file?"""
    for act in (
        lambda: simulate("atlas10k2", tmp_path / "none.trace"),
        lambda: traxtent.Drive(tmp_path / "none.toml"),
        lambda: traxtent.Drive.from_file(tmp_path / "none.toml"),
        lambda: traxtent.TrackMap.open(tmp_path / "none.map"),
        lambda: traxtent.check(tmp_path / "none.img"),
        lambda: traxtent.validate(tmp_path / "none.trace", drive="atlas10k2"),
    ):
        with pytest.raises(FileError, match="none") as raised:
            act()
        assert raised.value.errno == errno.ENOENT
        assert raised.value.strerror == os.strerror(errno.ENOENT)
        assert str(raised.value.filename).startswith(str(tmp_path / "none."))
        assert str(raised.value) == f"{raised.value.filename}: No such file or directory"


def test_other_errors_of_files(tmp_path: Path) -> None:
    """Is the number of any error of the system that of Python's own, and None if there is none?"""
    tracks = traxtent.TrackMap.from_boundaries([0, 400, 800])
    with pytest.raises(FileError, match="there is no directory") as raised:
        tracks.save(tmp_path / "none" / "drive.map")
    assert raised.value.errno == errno.ENOENT
    assert raised.value.filename == str(tmp_path / "none" / "drive.map")
    with pytest.raises(FileError, match="is a directory") as raised:
        simulate("atlas10k2", tmp_path)
    assert (raised.value.errno, raised.value.filename) == (errno.EISDIR, str(tmp_path))
    disk = traxtent.Disk("toshiba-p300")
    disk.fault("latent-error", lbn=100, sectors=8)
    with pytest.raises(FileError) as raised:
        disk.read(100)
    assert (raised.value.errno, raised.value.filename) == (errno.EIO, None)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"at_ms": [0.0, float("nan")]}, "row 1: at_ms: NaN"),
        ({"at_ms": [0.0, float("inf")]}, "row 1: at_ms"),
        ({"at_ms": [-1.0, 0.0]}, "row 0: at_ms: -1"),
        ({"at_ms": [0.0, 1e300]}, "row 1: at_ms"),
        ({"at_ms": [5.0, 1.0]}, "row 1: at_ms: is below"),
        ({"at_ms": ["a", "b"]}, "at_ms: expected numbers"),
        ({"at_ms": pa.array([0, 1], pa.timestamp("us"))}, "at_ms: its type is a timestamp"),
        ({"at_ms": None}, "no column at_ms"),
        ({"lbn": None}, "no column lbn"),
        ({"sectors": None}, "no column sectors"),
        ({"lbn": [0, -8]}, "row 1: lbn: -8"),
        ({"lbn": [0, None]}, "row 1: lbn: is null"),
        ({"lbn": [0.5, 1.0]}, "row 0: lbn: 0.5"),
        ({"lbn": pa.array([0, 2**64 - 1], pa.uint64())}, "row 1: lbn"),
        ({"lbn": [[0], [1]]}, "lbn: its type is a list"),
        ({"sectors": [0, 8]}, "row 0: sectors: 0"),
        ({"sectors": [8, 2**40]}, "row 1: sectors"),
        ({"op": ["read", "erase"]}, 'row 1: op: "erase"'),
        ({"op": [1, 2]}, "op: expected texts"),
        ({"lbn": [0, 10**12]}, "drive ends before LBN"),
        ({"device": [0, 1]}, "device 1 does not exist"),
    ],
)
def test_wrong_tables(columns: dict[str, Any], message: str) -> None:
    """Is a missing column, a wrong type or a wrong value in a table refused with the reason?"""
    with pytest.raises(InputError, match=message):
        simulate("atlas10k2", table(**columns))


def test_empty_tables() -> None:
    """Is an empty table refused?"""
    empty = table().slice(0, 0)
    with pytest.raises(InputError, match="no request was served"):
        simulate("atlas10k2", empty)
    with pytest.raises(InputError, match="no column lbn"):
        simulate("atlas10k2", pa.table({}))


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"seed": -1}, InputError, "seed: -1: expected 0 to 18446744073709551615"),
        ({"seed": 2**64}, InputError, "seed: 18446744073709551616: expected 0 to"),
        ({"seed": 10**5000}, InputError, "seed: .* expected 0 to"),
        ({"seed": "x"}, TypeError, "integer"),
        ({"warmup": -1}, InputError, "warmup: -1: expected 0 to"),
        ({"device": -1}, InputError, "device: -1: expected 0 to 4294967295"),
        ({"warmup": 100}, InputError, "warmup 100 excludes all requests"),
        ({"set": {"queue.schedular": "sptf"}}, InputError, "queue.scheduler"),
        ({"set": {"mechanics.rpm": float("nan")}}, InputError, "mechanics.rpm"),
        ({"set": {"mechanics.rpm": -5}}, InputError, "mechanics.rpm"),
        ({"set": {"mechanics.rpm": object()}}, TypeError, "mechanics.rpm"),
        ({"set": {"workload.colour": 1}}, InputError, "colour"),
        ({"replay": "closed:0"}, InputError, "closed:N"),
        ({"replay": "recorded"}, InputError, "applies only to traces"),
        ({"speed": float("inf")}, InputError, "speed"),
        ({"format": "word"}, InputError, "word"),
        ({"units": "ms"}, InputError, "units needs columns"),
        ({"scheduler": 3}, TypeError, "scheduler"),
        ({"place": "x"}, TypeError, "place"),
    ],
)
def test_wrong_arguments(arguments: dict[str, Any], error: type[Exception], message: str) -> None:
    """Is each wrong argument refused, with the reason?"""
    with pytest.raises(error, match=message):
        simulate("atlas10k2", WORKLOAD, **arguments)


@pytest.mark.parametrize("more", [{"colour": 1}, {"more": ["atlas10k"]}])
def test_unknown_options_of_comparisons(more: dict[str, Any]) -> None:
    """Are options refused that comparisons with traces do not have, also beside columns?"""
    for options in ({}, {"columns": "time=1,op=2,lbn=3,sectors=4"}):
        merged: dict[str, Any] = {**options, **more}
        (name,) = more
        with pytest.raises(TypeError, match=f"validate.*{name}"):
            traxtent.validate("none.trace", drive="atlas10k2", **merged)
        with pytest.raises(TypeError, match=f"calibrate.*{name}"):
            traxtent.calibrate("atlas10k2", "none.trace", **merged)


def test_requests_check_themselves() -> None:
    """Are requests that are invalid for every drive refused when they are made?"""
    wrong: list[dict[str, Any]] = [
        {"lbn": 0, "sectors": 0},
        {"lbn": 0, "sectors": 8, "op": "erase"},
        {"lbn": 0, "sectors": 8, "op": "flush"},
        {"lbn": 0, "sectors": 8, "at_ms": float("nan")},
        {"lbn": 0, "sectors": 8, "at_ms": -1.0},
        {"lbn": 0, "sectors": 8, "delay_ms": 1e300},
        {"lbn": 0, "sectors": 8, "at_ms": 1.0, "delay_ms": 1.0},
    ]
    for arguments in wrong:
        with pytest.raises(InputError):
            Request(**arguments)


@pytest.mark.parametrize("number", [-1, 2**64])
def test_integers_that_do_not_fit(number: int) -> None:
    """Is an integer that is negative or too large refused with the name of the argument?"""
    tracks = traxtent.TrackMap.from_boundaries([0, 8, 16])
    array = traxtent.RaidArray("raid-0", [tracks] * 2)
    disk = traxtent.Disk("atlas10k2")
    line = "random,size=8,count=10"
    calls: dict[str, list[Callable[[], object]]] = {
        "lbn": [
            lambda: Request(number, 8),
            lambda: disk.read(number),
            lambda: disk.write(number, bytes(512)),
            lambda: disk.trim(number, 1),
            lambda: tracks.track_of(number),
            lambda: traxtent.ArrayLocation(0, number, 0),
        ],
        "sectors": [
            lambda: Request(0, number),
            lambda: disk.read(0, number),
            lambda: disk.write_zeroes(0, number),
            lambda: traxtent.Track(0, 0, number),
        ],
        "device": [lambda: Request(0, 8, device=number)],
        "seed": [lambda: disk.power_cut(number), lambda: traxtent.PowerCut(number, 0, 0, 0)],
        "region": [lambda: traxtent.probe("atlas10k2", region=(number, 5))],
        "noise": [lambda: traxtent.probe("atlas10k2", noise=number)],
        "rows": [lambda: traxtent.simulate_batches("atlas10k2", line, rows=number)],
        "chunks": [lambda: traxtent.RaidArray("raid-0", [tracks] * 2, chunks=number)],
        "granule": [lambda: traxtent.RaidArray("raid-0", [tracks] * 2, granule=number)],
        "sector": [lambda: array.locate(number)],
        "sector_bytes": [lambda: traxtent.TrackMap.from_boundaries([0, 8], sector_bytes=number)],
        "block_sectors": [lambda: traxtent.excluded_blocks(tracks, number)],
        "atlas10k2: warmup": [lambda: traxtent.sweep("atlas10k2", line, warmup=number)],
    }
    for name, acts in calls.items():
        for act in acts:
            with pytest.raises(InputError) as raised:
                act()
            assert str(raised.value).startswith(f"{name}: {number}: expected 0 to "), name
    assert number not in tracks[0]


@pytest.mark.parametrize("what", ["csv", "parquet", "map", "list", "picture"])
def test_foreign_files_are_not_replaced(what: str, tmp_path: Path) -> None:
    """Is a file of another kind kept, and is an older output of the same kind replaced?"""
    tracks = traxtent.TrackMap.from_boundaries([0, 8, 16])
    save: Callable[[Path], object]
    if what == "map":
        path, save, kind = tmp_path / "my.map", tracks.save, "a track map"
    elif what == "list":
        path, save, kind = tmp_path / "my.csv", tracks.save, "a list of tracks"
    elif what == "picture":
        path, kind = tmp_path / "my.svg", "an SVG or PNG picture"
        save = traxtent.SvgPicture(simulate("atlas10k2", WORKLOAD).to_svg()).save
    else:
        path, kind = tmp_path / f"my.{what}", "a summary of runs"
        save = traxtent.sweep("atlas10k2", WORKLOAD).save
    save(path)
    first = path.read_bytes()
    path.write_bytes(first + b" ")
    save(path)
    assert path.read_bytes() == first
    path.write_bytes(b"")
    save(path)
    path.write_bytes(b"time,value\n1,2\n")
    with pytest.raises(InputError, match=f"exists and is not {kind}; name another file"):
        save(path)
    assert path.read_bytes() == b"time,value\n1,2\n"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["m.csv.gz", "m.map.zst"])
def test_maps_are_not_compressed(name: str, tmp_path: Path) -> None:
    """Is the name of a compressed map refused?"""
    with pytest.raises(InputError, match="maps are not compressed; omit"):
        traxtent.TrackMap.from_boundaries([0, 8]).save(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


class Scalar:
    """A scalar like those of NumPy that are not numbers of Python."""

    def __init__(self, value: float, kind: str) -> None:
        """Keep the value and the kind of its type."""
        self.value = value
        self.kind = kind

    @property
    def dtype(self) -> Scalar:
        """The type, whose `kind` is ``b`` for booleans."""
        return self

    def __bool__(self) -> bool:
        """Return whether the value is not 0."""
        return bool(self.value)

    def __float__(self) -> float:
        """Return the value."""
        return float(self.value)


class NamedFloat(float):
    """A float that writes its own name, like ``numpy.float64``."""

    def __repr__(self) -> str:
        """Return the name and the value."""
        return f"np.float64({float(self)})"

    def __eq__(self, other: object) -> Any:
        """Compare elements with those of a list, like NumPy."""
        if isinstance(other, list):
            raise ValueError("The truth value of an empty array is ambiguous")
        return float(self) == other

    __hash__ = float.__hash__


def test_scalars_of_numpy(tmp_path: Path) -> None:
    """Are floats and booleans of NumPy, whose types differ from Python's, read as settings?"""
    rpm = "mechanics.rpm"
    for value in (NamedFloat(7200.5), Scalar(7200.5, "f")):
        assert traxtent.Drive("atlas10k2").replace({rpm: value}).profile[rpm]["value"] == 7200.5
    for flag in (True, False):
        assert _traxtent.setting_value("host.one_at_a_time", Scalar(flag, "b")) == (
            str(flag).lower()
        )
    path = tmp_path / "small.trace"
    path.write_text("0.0 0 1000 8 1\n10.0 0 2000 8 1\n")
    expected = simulate("atlas10k2", path, speed=2).to_json()
    assert simulate("atlas10k2", path, speed=NamedFloat(2)).to_json() == expected


def test_a_generator_that_raises_keeps_its_traceback() -> None:
    """Does a generator's exception reach the caller unchanged, with the line that raised it?"""

    class MyError(Exception):
        pass

    def requests() -> Iterator[Request]:
        yield Request(0, 8)
        raise MyError("mine")

    with pytest.raises(MyError, match="mine") as raised:
        simulate("atlas10k2", requests)
    lines = traceback.format_exception(raised.value)
    assert any("raise MyError" in line for line in lines)


@pytest.mark.parametrize("item", [None, 5, "read", (0, 8), object()])
def test_iterables_of_other_things(item: object) -> None:
    """Is anything but a Request refused?"""
    with pytest.raises(TypeError, match="expected a Request"):
        simulate("atlas10k2", iter([item]))


def test_workloads_of_other_types() -> None:
    """Is an object that is not a workload, or an empty one, refused?"""
    for workload in (5, object(), 1.5):
        with pytest.raises(TypeError, match="workload"):
            simulate("atlas10k2", workload)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="no request was served"):
        simulate("atlas10k2", iter([]))


def test_a_request_beyond_the_drive() -> None:
    """Is a request beyond the end of the drive refused, with its number?"""
    with pytest.raises(InputError, match=r"request 2.*ends before LBN"):
        simulate("atlas10k2", iter([Request(0, 8), Request(2**40, 8)]))


def test_errors_can_be_pickled() -> None:
    """Do exceptions survive pickling, as executors require?"""
    for error in (InputError("a"), FileError("b"), TraxtentError("c")):
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and str(copy) == str(error)
    file_error = pickle.loads(pickle.dumps(FileError("a: no", errno.EACCES, "a")))
    assert (file_error.errno, file_error.filename, str(file_error)) == (errno.EACCES, "a", "a: no")


def test_damaged_pickles() -> None:
    """Is a damaged pickle refused?"""
    with pytest.raises(InputError):
        traxtent.RequestLog._from_bytes([b"\x05" + b"\0" * 20])
    with pytest.raises(InputError):
        traxtent.Drive._from_parts({})
    with pytest.raises(InputError):
        traxtent.TrackMap._from_text(b"nonsense")
