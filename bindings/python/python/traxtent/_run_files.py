"""The files in which a sweep keeps its finished runs."""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from traxtent import _traxtent
from traxtent._simulate import drives_of
from traxtent._traxtent import Drive, FileError, InputError, Table, TraxtentError
from traxtent._warnings import warn

if TYPE_CHECKING:
    from traxtent._sweep_plan import SweepRun

_NAME = re.compile(r"runs-[0-9a-f]{16}-(?P<content>[0-9a-f]{16})(-[0-9]+)?\.parquet")
"""The names of the files, with a digest of the runs and one of the content."""

_TEMPORARY = re.compile(r"\.runs-[0-9a-f]{16}\.parquet|\.traxtent-.*")
"""The names of files that are being written."""

_NAMES_SHOWN = 3
"""The number of unusable files that a warning names."""

_BLOCK_BYTES = 1 << 20
"""The number of bytes that are read at a time."""

_DIGESTS_KEPT = 64
"""The largest number of file digests that a process keeps."""


class RunFiles:
    """A folder with the runs that a sweep has finished, several in each file.

    A file appears whole or not at all: it is written under another name, synchronized to the disk,
    and then linked. Its name has a digest of its content, which is checked before runs are read.
    """

    def __init__(self, folder: str) -> None:
        """Create the folder, if there is none."""
        self.folder = folder
        try:
            os.makedirs(folder, exist_ok=True)
        except OSError as error:
            raise _failure(folder, error) from None

    def read(self) -> dict[str, list[Any]]:
        """Return the figures of all kept runs, by run digest. Warn once about unusable files."""
        runs: dict[str, list[Any]] = {}
        unused = []
        try:
            names = sorted(os.listdir(self.folder))
        except OSError as error:
            raise _failure(self.folder, error) from None
        for name in names:
            if _TEMPORARY.fullmatch(name):
                continue
            problem = self._read(name, runs)
            if problem is not None:
                unused.append(f"{name} {problem}")
        if unused:
            more = len(unused) - _NAMES_SHOWN
            shown = unused[:_NAMES_SHOWN] + ([f"and {more} more"] if more > 0 else [])
            warn(f"{self.folder}: not used: {'; '.join(shown)}")
        return runs

    def _read(self, name: str, runs: dict[str, list[Any]]) -> str | None:
        """Read a file into `runs`. Return its problem, or None if it was read."""
        path = os.path.join(self.folder, name)
        match = _NAME.fullmatch(name)
        if match is None or not os.path.isfile(path):
            return "is not a file of a sweep"
        try:
            if file_digest(path)[:16] != match["content"]:
                return "is damaged"
            runs.update(_traxtent.read_figures(path))
        except (TraxtentError, OSError):
            return "cannot be read"
        return None

    def write(self, table: Table, digests: Sequence[str]) -> None:
        """Keep the runs of a table, one for each of the digests."""
        own = hashlib.sha256("".join(digests).encode()).hexdigest()[:16]
        temporary = os.path.join(self.folder, f".runs-{secrets.token_hex(8)}.parquet")
        try:
            table.save(temporary)
            try:
                _synchronize(temporary)
                content = file_digest(temporary)[:16]
                self._name(temporary, f"runs-{own}-{content}")
            finally:
                os.unlink(temporary)
            _synchronize(self.folder)
        except OSError as error:
            if isinstance(error, FileError):
                raise
            raise _failure(self.folder, error) from None

    def _name(self, temporary: str, stem: str) -> None:
        """Give a file its name. Unlike a rename, a link does not replace an existing file."""
        for attempt in range(1, 1000):
            suffix = "" if attempt == 1 else f"-{attempt}"
            try:
                os.link(temporary, os.path.join(self.folder, f"{stem}{suffix}.parquet"))
                return
            except FileExistsError:
                # The existing file is damaged, or another sweep has made the same runs meanwhile.
                continue
        raise FileError(f"{self.folder}: too many files {stem}-N.parquet; remove damaged ones")


def _failure(path: str, error: OSError) -> FileError:
    return FileError(f"{path}: {error.strerror or error}", error.errno, path)


def _synchronize(path: str) -> None:
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def run_digest(run: SweepRun, drive: str) -> str:
    """Return a digest of everything that determines a run's figures, and of this build.

    Raises:
        InputError: The workload is a table, or consists of requests made in Python.
        FileError: A file cannot be read.

    """
    workload: object = run.content
    if workload is None:
        if not (run.workload is None or isinstance(run.workload, str)):
            raise InputError("resume: only workload lines and files can be resumed")
        workload = [run.workload]
    more = [drive_digest(Drive(target)) for target in drives_of(dict(run.trace).get("more", ()))]
    parts = [build_id(), drive, workload, run.set, run.seed, run.warmup, run.trace, more]
    return hashlib.sha256(json.dumps(parts, default=str).encode()).hexdigest()


def drive_digest(drive: Drive) -> str:
    """Return a digest of a drive's figures."""
    parts: dict[str, Any] = drive.__reduce__()[1][0]
    if parts["toml"] is not None:
        return hashlib.sha256(parts["toml"].encode()).hexdigest()
    # A DiskSim target has no TOML: digest its files and the changes.
    digest = hashlib.sha256(json.dumps([parts["target"], parts["changes"]]).encode())
    for path, content in parts["sources"]:
        digest.update(f"{path} {len(content)} ".encode())
        digest.update(content)
    return digest.hexdigest()


def build_id() -> str:
    """Return the version of this package and a digest of its library."""
    return f"{_traxtent.__version__} {file_digest(_traxtent.__file__)}"


def file_digest(path: str) -> str:
    """Return the SHA-256 digest of a file.

    Raises:
        FileError: The file cannot be read.

    """
    try:
        state = os.stat(path)
        known = os.path.abspath(path), state.st_mtime_ns, state.st_size, state.st_ino
        if known not in _digests:
            if len(_digests) == _DIGESTS_KEPT:
                _digests.clear()
            _digests[known] = _file_digest(path)
    except OSError as error:
        raise _failure(path, error) from None
    return _digests[known]


_digests: dict[tuple[str, int, int, int], str] = {}
"""Digests of files, by path, modification time, size and inode."""


def _file_digest(path: str) -> str:
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while block := file.read(_BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
