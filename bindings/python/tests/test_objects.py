"""Do drives, maps, layouts and disks behave as their docstrings say?"""

from __future__ import annotations

import pickle
from collections.abc import Generator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import traxtent
from traxtent import Disk, Drive, FileError, InputError, RaidArray, Request, TrackMap
from traxtent.pytest_plugin import marked_drive


def test_figures_have_values_and_origins() -> None:
    """Does every figure of every drive have a value, an origin and its kind?"""
    for name in traxtent.drives():
        drive = Drive(name)
        assert drive.name == name
        for key, figure in drive.profile.items():
            assert figure["kind"] in {"measured", "published", "fitted", "assumed"}, key
            assert figure["origin"].startswith(figure["kind"]), key
            assert figure["value"] is not None, key


def test_replaced_figures() -> None:
    """Does a replaced figure have its new value, and does the old drive stay unchanged?"""
    drive = Drive("atlas10k2")
    changed = drive.replace({"mechanics.rpm": 7200}).replace(**{"queue.scheduler": "sptf"})
    assert changed.profile["mechanics.rpm"]["value"] == 7200
    assert changed.profile["mechanics.rpm"]["kind"] == "assumed"
    assert changed.profile["queue.scheduler"]["value"] == "sptf"
    assert drive.profile["mechanics.rpm"]["value"] != 7200
    assert changed != drive and drive == Drive("atlas10k2")
    assert hash(drive) == hash(Drive("atlas10k2"))
    assert len({drive, changed, Drive("atlas10k2")}) == 2
    for key, value in {"mechanics.rpm": "fast", "no.such": 1, "mechanics": 3}.items():
        with pytest.raises(InputError, match=key):
            drive.replace({key: value})


def test_profiles_in_files(tmp_path: Path) -> None:
    """Does a drive that is written as TOML come back, and give the same results?"""
    drive = Drive("atlas10k2").replace({"mechanics.rpm": 9000})
    path = tmp_path / "my.toml"
    path.write_text(drive.to_toml())
    again = Drive.from_file(path)
    assert again.profile == drive.profile
    workload = "random,size=8,count=200"
    ours = traxtent.simulate(again, workload).summary
    theirs = traxtent.simulate(drive, workload).summary
    del ours["target"], theirs["target"]
    assert ours == theirs
    path.write_text("format = 1\nname = 7\n")
    with pytest.raises(InputError, match=r"my\.toml:2"):
        Drive.from_file(path)


def picklable() -> list[Any]:
    """Return drives, maps, a track and requests, which are equal after pickling."""
    drive = Drive("atlas10k2")
    maps = [drive.map, Drive("atlas10k").map]
    return [
        drive,
        drive.replace({"queue.scheduler": "sptf"}),
        drive.map,
        drive.map[5],
        traxtent.Request(5, 8, "write", at_ms=2.5, fua=True, device=1),
        traxtent.Request(op="flush", delay_ms=1.0),
        *maps,
    ]


def test_pickling() -> None:
    """Do pickled objects come back equal, those of `picklable` with every protocol from 2 on?"""
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        for thing in picklable():
            again = pickle.loads(pickle.dumps(thing, protocol))
            assert again == thing and hash(again) == hash(thing)
            assert repr(again) == repr(thing)
    result = traxtent.simulate("atlas10k2", "random,size=8,count=300", log=True)
    again = pickle.loads(pickle.dumps(result))
    assert again.to_json() == result.to_json()
    assert pa.table(again.requests).equals(pa.table(result.requests).combine_chunks())
    assert again.distribution == result.distribution
    noted = traxtent.simulate(
        "atlas10k2", "random,size=8,count=30", set={"queue.scheduler": "sptf"}
    )
    assert len(noted.notes) == 1
    assert pickle.loads(pickle.dumps(noted)).notes == noted.notes
    probed = traxtent.probe("atlas10k2", "angle", region=(0, 5_000))
    assert pickle.loads(pickle.dumps(probed)).map == probed.map
    cut = traxtent.PowerCut(1, 2, 3, 4)
    assert pickle.loads(pickle.dumps(cut)) == cut
    array = RaidArray("raid-5", [Drive("atlas10k2").map] * 4)
    boundaries = Drive("atlas10k2").map.boundaries
    assert pickle.loads(pickle.dumps(boundaries)).tolist() == boundaries.tolist()
    batch = next(traxtent.simulate_batches("atlas10k2", "random,size=8,count=30"))
    again_batch = pickle.loads(pickle.dumps(batch))
    assert pa.record_batch(again_batch).equals(pa.record_batch(batch))
    place = array.locate(5)
    assert pickle.loads(pickle.dumps(place)) == place
    assert pickle.loads(pickle.dumps(array)).capacity == array.capacity


def test_pickled_completions() -> None:
    """Does a completion come back with all of its figures?"""
    completions: list[traxtent.Completion] = []

    def client() -> Generator[Request, traxtent.Completion, None]:
        for op in ("read", "write", "read", "verify"):
            completions.append((yield Request(1000, 8, op, fua=op == "write")))
        completions.append((yield Request(op="flush")))

    traxtent.simulate("atlas10k2", [client])
    assert len(completions) == 5 == len(set(completions))
    for done in completions:
        again = pickle.loads(pickle.dumps(done))
        assert again == done and hash(again) == hash(done) and repr(again) == repr(done)
        for name in ("number", "device", "issued_ms", "completed_ms", "breakdown_ms", "served"):
            assert getattr(again, name) == getattr(done, name)
    assert completions[0].breakdown_ms != completions[2].breakdown_ms


def test_disks_are_not_pickled() -> None:
    """Does the exception for pickling a disk say what to do instead?"""
    with pytest.raises(TypeError, match="pickle its Drive"):
        pickle.dumps(Disk("atlas10k2"))


def test_pickled_drives_need_no_files(tmp_path: Path) -> None:
    """Does a drive that was read from a file come back after the file is gone?"""
    path = tmp_path / "my.toml"
    path.write_text(Drive("atlas10k2").to_toml())
    drive = Drive(path)
    data = pickle.dumps(drive)
    path.unlink()
    assert pickle.loads(data) == drive


def test_track_maps() -> None:
    """Do lookups, boundaries, sizes and iteration agree?"""
    tracks = Drive("atlas10k2").map
    boundaries = tracks.boundaries.tolist()
    assert len(boundaries) == len(tracks) + 1
    assert boundaries[0] == tracks.first_lbn == 0 and boundaries[-1] == tracks.end
    for index in (0, 1, len(tracks) // 2, len(tracks) - 1):
        track = tracks[index]
        assert (track.index, track.first_lbn, track.end) == (
            index,
            boundaries[index],
            boundaries[index + 1],
        )
        assert track.first_lbn in track and track.end not in track
        for lbn in (track.first_lbn, track.end - 1):
            assert tracks.track_of(lbn) == track
    assert tracks.track_of(tracks.end) is None
    assert tracks[-1] == tracks[len(tracks) - 1]
    with pytest.raises(IndexError):
        tracks[len(tracks)]
    array = pa.array(tracks.boundaries)
    assert array.type == pa.int64() and array.to_pylist() == boundaries
    assert pa.array(tracks.sizes).to_pylist() == [
        end - first for first, end in pairwise(boundaries)
    ]
    assert [track.index for track in tracks] == list(range(len(tracks)))


def test_maps_from_arrays_and_files(tmp_path: Path) -> None:
    """Do maps made of arrays, lists and files equal the drive's own?"""
    tracks = Drive("atlas10k2").map
    for boundaries in (
        tracks.boundaries,
        tracks.boundaries.tolist(),
        pa.array(tracks.boundaries),
        pa.chunked_array([pa.array(tracks.boundaries)]),
        pa.table({"lbn": pa.array(tracks.boundaries)}),
        iter(tracks.boundaries),
    ):
        assert TrackMap.from_boundaries(boundaries) == tracks
    for name in ("drive.map", "drive.csv"):
        tracks.save(tmp_path / name)
        assert TrackMap.open(tmp_path / name) == tracks
    (tmp_path / "drive.map").write_bytes(b"nonsense")
    with pytest.raises(InputError, match="is not a track map"):
        TrackMap.open(tmp_path / "drive.map")
    with pytest.raises(FileError):
        tracks.save(tmp_path / "no" / "folder.map")


@pytest.mark.parametrize(
    ("boundaries", "error"),
    [
        ([], InputError),
        ([0], InputError),
        ([0, 0], InputError),
        ([5, 3], InputError),
        ([-1, 3], InputError),
        ([0, 2**40], InputError),
        ([0, 2**70], InputError),
        ([0, 1.5], TypeError),
        (["a", "b"], TypeError),
        (5, TypeError),
        (pa.array([0.5, 1.5]), InputError),
        (pa.array([0, None]), InputError),
        (pa.table({"a": [1], "b": [2]}), InputError),
    ],
)
def test_wrong_boundaries(boundaries: Any, error: type[Exception]) -> None:
    """Is anything but two or more ascending whole numbers within the limits refused?"""
    with pytest.raises(error):
        TrackMap.from_boundaries(boundaries)


def test_a_probe_finds_the_map() -> None:
    """Does a probe of a drive find its tracks, by translation and by timing?"""
    drive = Drive("atlas10k2")
    found = traxtent.probe(drive)
    assert found.map == drive.map and found.algorithm == "tree" and found.doubtful == 0
    assert found.translations > 0 and found.seconds > 0
    part = traxtent.probe(drive, "angle", region=(0, 20_000))
    boundaries = drive.map.boundaries.tolist()
    assert part.map.boundaries.tolist() == boundaries[: len(part.map) + 1]
    assert part.reads > 0 and len(part.map) > 10
    for arguments in (
        {"algorithm": "guess"},
        {"verify": "some"},
        {"region": (5, 5)},
        {"region": (0, 2**60)},
    ):
        with pytest.raises(InputError):
            traxtent.probe(drive, **arguments)


def test_excluded_blocks() -> None:
    """Are the excluded blocks those that span a boundary?"""
    tracks = TrackMap.from_boundaries([0, 10, 16, 30])
    assert traxtent.excluded_blocks(tracks, 4).tolist() == [2]
    assert traxtent.excluded_blocks(tracks, 3).tolist() == [3, 5]
    assert pa.array(traxtent.excluded_blocks(tracks, 4)).to_pylist() == [2]
    for sectors in (0, 1000):
        with pytest.raises(InputError):
            traxtent.excluded_blocks(tracks, sectors)


def test_arrays() -> None:
    """Does every sector of an array have a place of its own, not on its stripe's parity member?"""
    tracks = TrackMap.from_boundaries([0, 10, 20, 32, 44, 50])
    array = RaidArray("raid-5", [tracks] * 3)
    places = set()
    for sector in range(array.capacity):
        place = array.locate(sector)
        assert place is not None and 0 <= place.member < 3
        assert place.parity_member != place.member
        assert 0 <= place.stripe < array.stripes
        places.add((place.member, place.lbn))
    assert len(places) == array.capacity
    assert array.locate(array.capacity) is None
    assert array.stripe_map.end == array.capacity == array.chunk_map.end
    assert len(array.usage) == 3 and 0 <= array.waste < 1
    fixed = RaidArray("RAID0", [tracks] * 2, chunks=8)
    assert fixed.level == "raid-0" and fixed.capacity == 100 - 100 % 16 + 4
    for arguments in (
        ("raid-9", [tracks]),
        ("raid-5", [tracks]),
        ("raid-0", []),
    ):
        with pytest.raises(InputError):
            RaidArray(*arguments)
    with pytest.raises(InputError):
        RaidArray("raid-0", [tracks] * 2, chunks=0)
    with pytest.raises(InputError):
        RaidArray("raid-0", [tracks] * 2, granule=0)


def test_disks() -> None:
    """Does a power cut keep flushed data, and does its seed determine what else is left?"""

    def run(seed: int) -> tuple[bytes, Any]:
        disk = Disk(Drive("atlas10k2").replace({"cache.write_back": "full"}))
        size = disk.sector_bytes
        assert disk.write(0, b"a" * size) > 0
        assert disk.flush() > 0
        for lbn in range(1, 30):
            disk.write(lbn * 100, b"b" * size)
        assert disk.unflushed_bytes > 0
        cut = disk.power_cut(seed)
        assert cut.kept + cut.lost + cut.torn == 29
        assert disk.read(0) == b"a" * size
        return b"".join(disk.read(lbn * 100) for lbn in range(1, 30)), cut

    assert run(1) == run(1)
    cut = Disk("atlas10k2").power_cut()
    assert cut.seed == 1
    assert len({run(seed)[0] for seed in range(8)}) > 1


def test_data_in_other_buffers() -> None:
    """Can data be in any object with the buffer protocol, and is anything else refused?"""
    disk = Disk("atlas10k2")
    data = bytes(range(256)) * 4
    buffers: list[Any] = [data, bytearray(data), memoryview(data)]
    for lbn, buffer in enumerate(buffers):
        disk.write(8 * lbn, buffer)
        assert disk.read(8 * lbn, 2) == data
    wrong: list[Any] = [512, "text", [0] * 512, None]
    for other in wrong:
        with pytest.raises(TypeError, match="data: expected bytes"):
            disk.write(0, other)


def test_times_without_power() -> None:
    """Do commands fail until the power is back?"""
    disk = Disk("toshiba-p300")
    disk.power_cut(off_ms=5)
    with pytest.raises(FileError):
        disk.read(0)
    disk.sleep(5)
    assert disk.read(0) == bytes(disk.sector_bytes)


def test_faults_of_disks() -> None:
    """Do faults have their effects, and are wrong ones refused?"""
    disk = Disk("atlas10k2")
    disk.fault("latent-error", lbn=100, sectors=8)
    with pytest.raises(FileError, match="LBN 100 cannot be read"):
        disk.read(100, 8)
    disk.write(100, b"x" * 8 * disk.sector_bytes)
    assert disk.read(100, 8) == b"x" * 8 * disk.sector_bytes
    before = disk.now_ms
    disk.fault("stall", for_="50ms")
    disk.read(5)
    assert disk.now_ms - before >= 50
    disk.sleep(10)
    assert disk.now_ms - before >= 60
    wrong: dict[str, dict[str, Any]] = {
        "latent-error": {"lbn": 2**60},
        "explode": {},
        "stall": {"for": "long"},
    }
    for name, fields in wrong.items():
        with pytest.raises(InputError):
            disk.fault(name, **fields)
    for fields in ({"for_": 10}, {}):
        with pytest.raises(InputError, match=r"^for_: "):
            disk.fault("stall", **fields)
    for act in (
        lambda: disk.write(0, b"abc"),
        lambda: disk.read(disk.capacity, 1),
        lambda: disk.read(0, 0),
        lambda: disk.read(0, 2**32 - 1),
        lambda: disk.sleep(float("nan")),
        lambda: disk.sleep(-1),
        lambda: disk.power_cut(tearing="all"),  # type: ignore[arg-type]
        lambda: disk.schedule_faults("nonsense"),
    ):
        with pytest.raises(InputError):
            act()


@pytest.mark.traxtent_disk("atlas10k")
def test_the_fixture(traxtent_disk: Disk) -> None:
    """Does the fixture give a new disk of the drive that the marker names?"""
    assert traxtent_disk.capacity == Drive("atlas10k").capacity
    assert traxtent_disk.now_ms == 0


@pytest.mark.traxtent_disk(drive="cheetah15k7")
def test_the_fixture_with_a_keyword(traxtent_disk: Disk) -> None:
    """Does the marker accept the drive by its name?"""
    assert traxtent_disk.capacity == Drive("cheetah15k7").capacity


@pytest.mark.parametrize(
    "marker",
    [
        pytest.mark.traxtent_disk(),
        pytest.mark.traxtent_disk(name="cheetah15k7"),
        pytest.mark.traxtent_disk("cheetah15k7", drive="atlas10k"),
        pytest.mark.traxtent_disk("cheetah15k7", 5),
    ],
)
def test_wrong_markers(marker: pytest.MarkDecorator) -> None:
    """Is a marker without a drive, or with anything else, refused?"""
    with pytest.raises(InputError, match="expected only the drive"):
        marked_drive(marker.mark)


def test_the_fixture_can_lose_writes(traxtent_disk: Disk) -> None:
    """Does a power cut lose writes of the fixture's own drive that were not flushed?"""
    lost = 0
    for seed in range(8):
        traxtent_disk.write(8 * seed, b"new" + bytes(509))
        lost += traxtent_disk.power_cut(seed=seed).lost
    assert lost > 0


def test_pictures_and_tables() -> None:
    """Does a result draw itself, and show its figures in a notebook?"""
    result = traxtent.simulate("atlas10k2", "random,size=8,count=200")
    assert result.to_svg().startswith("<svg")
    text = result._repr_html_()
    assert "<table>" in text and "requests_per_s" in text and "<svg" in text
    shares = [share for _, share in result.distribution]
    assert shares == sorted(shares) and shares[-1] == 1.0
    assert "200 requests" in repr(result)
    assert result.plot() is not None


def measured_trace(path: Path) -> None:
    """Write a trace whose measured times are those of a drive that is a little slower."""
    slow = Drive("atlas10k2").replace({"overheads.read_hit_after_read_ms": 0.9})
    workload = "random,read=100%,size=8,count=1200,seed=3"
    rows = pa.table(traxtent.simulate(slow, workload, log=True).requests).to_pylist()
    lines = (
        f"R Miss {row['lbn']} {row['sectors']} {round(row['response_ms'] * 1000)} 2000\n"
        for row in rows
    )
    path.write_text("".join(lines))


def test_validation_and_calibration(tmp_path: Path) -> None:
    """Does a validation give a verdict? Does it, like a calibration, refuse wrong arguments?"""
    path = tmp_path / "slow.trace"
    measured_trace(path)
    (verdict,) = traxtent.validate(path, drive="atlas10k2")
    assert verdict.trace == "slow" and verdict.requests == 1200
    assert verdict.mean_ms > 0 and verdict.rms_ms >= 0
    assert traxtent.validate([path], drive=Drive("atlas10k2")) == [verdict]
    with pytest.raises(InputError, match="is named twice"):
        traxtent.validate([path], str(path), drive="atlas10k2")
    plain = tmp_path / "folder"
    plain.mkdir()
    path.rename(plain / path.name)
    (plain / "plain.trace").write_text("0.0 0 1000 8 1\n")
    with pytest.warns(UserWarning, match="plain.trace: omitted, because it has no measured times"):
        assert traxtent.validate(plain, drive="atlas10k2") == [verdict]
    path = plain / path.name
    with pytest.raises(InputError, match="holdout"):
        traxtent.calibrate("atlas10k2", path, holdout=2.0)
    with pytest.raises(InputError, match="keep"):
        traxtent.calibrate("atlas10k2", path, keep=["no.such"])
    with pytest.raises(InputError, match="parv"):
        traxtent.validate(path)


def test_checks(tmp_path: Path) -> None:
    """Can an image be checked, and is the severity of each finding a known one?"""
    image = tmp_path / "empty.img"
    image.write_bytes(bytes(1 << 20))
    for finding in traxtent.check(image):
        assert finding.severity in {"info", "warning", "fault"}
    found = traxtent.check(image, drive="atlas10k2")
    assert traxtent.check([image], drive="atlas10k2") == found
    twice = traxtent.check([image], str(image), drive="atlas10k2")
    assert len(twice) >= len(found)


def test_notes() -> None:
    """Do results have the notes of the command: about settings, and about the run itself?"""
    fast = "random,size=8,count=3000,arrive=exp:1ms"
    for workload, changes, text in (
        ("random,size=8,count=100", {"queue.scheduler": "sptf"}, "queue.scheduler has no effect"),
        (fast, {}, "requests arrive faster than they are served"),
    ):
        changed: dict[str, object] = dict(changes)
        (note,) = traxtent.simulate("atlas10k2", workload, set=changed).notes
        assert text in note
        batches = traxtent.simulate_batches("atlas10k2", workload, set=changed)
        assert sum(len(batch) for batch in batches) > 0
        assert batches.result is not None and batches.result.notes == [note]
    assert traxtent.simulate("atlas10k2", "random,size=8,count=100").notes == []


def test_a_scheduler_without_effect_is_noted() -> None:
    """Does a note say that a scheduler is never called, because no queue holds several requests?"""
    calls: list[float] = []

    def first(now_ms: float, head: traxtent.Head, waiting: traxtent.WaitingQueue) -> int:
        calls.append(now_ms)
        return 0

    result = traxtent.simulate("atlas10k2", "random,size=8,count=100", scheduler=first)
    assert calls == []
    assert any("queue.scheduler has no effect" in note for note in result.notes)
