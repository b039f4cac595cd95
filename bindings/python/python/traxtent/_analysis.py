"""Comparisons with measured traces, calibration, and checks of alignment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

from traxtent import _traxtent
from traxtent._simulate import _TRACE_OPTIONS, _options, _refuse_unknown
from traxtent._traxtent import Calibration
from traxtent.typing import DriveLike, PathLikes

_READING_OPTIONS = _TRACE_OPTIONS - {"more"}
"""The options for reading traces that describe requests to one drive."""


@dataclass(frozen=True)
class Verdict:
    """The agreement of a model with the measured times of one trace.

    Attributes:
        trace: The name of the trace.
        requests: The number of requests that were compared.
        rms_ms: The demerit: the root mean square horizontal distance between the distributions of
            simulated and measured response times, in milliseconds.
        rms_binned_ms: The same from histograms, like DiskSim's tool ``rms``.
        rms_share: The demerit as a share of the measured mean.
        mean_ms: The mean of the simulated response times.
        measured_mean_ms: The mean of the measured response times.
        noise_p95_ms: The demerit that a perfect model would stay below in 19 cases of 20, or
            None for 100 requests or fewer.
        noise_median_ms: The median of the demerits of perfect models, or None as above.
        hits: The agreement on reads from the buffer, or None if it cannot be determined.
        classes: The agreement for each class of requests.

    Source: Ruemmler and Wilkes, "An introduction to disk drive modeling", IEEE Computer, 1994.

    """

    trace: str
    requests: int
    rms_ms: float
    rms_binned_ms: float
    rms_share: float
    mean_ms: float
    measured_mean_ms: float
    noise_p95_ms: float | None
    noise_median_ms: float | None
    hits: Mapping[str, Any] | None = field(repr=False)
    classes: tuple[Mapping[str, Any], ...] = field(repr=False)


def validate(
    paths: PathLikes,
    *more: PathLikes,
    drive: DriveLike | None = None,
    set: Mapping[str, object] | None = None,
    **options: Any,
) -> list[Verdict]:
    """Compare simulated response times with measured ones, as ``traxtent validate`` does.

    Args:
        paths: A trace with measured times, the DiskSim parameters beside one, or a directory of
            traces and parameters; or a sequence of these. Parts of a directory that are omitted
            cause a warning.
        more: Further paths, or sequences of paths.
        drive: Replay every trace on this drive. Without it, ``NAME.trace`` needs ``NAME.parv``.
        set: Figures to replace in every drive.
        options: The options for reading traces, as for `simulate`.

    Raises:
        InputError: An argument is invalid, a trace cannot be compared, or there is none.
        FileError: A file cannot be read.

    """
    _refuse_unknown("validate", options, _READING_OPTIONS)
    changes = None if set is None else dict(set)
    found = _traxtent.validate_traces(_flat(paths, *more), drive, changes, _options(**options))
    return [Verdict(**{**verdict, "classes": tuple(verdict["classes"])}) for verdict in found]


def calibrate(
    drive: DriveLike,
    traces: PathLikes,
    *,
    holdout: float = 0.5,
    keep: Iterable[str] = (),
    **options: Any,
) -> Calibration:
    """Fit a drive to the first part of each measured trace, and judge the fit on the rest.

    Args:
        drive: The drive to begin with.
        traces: A trace with measured times, or several.
        holdout: The share of each trace, at its end, on which the fit is judged, from 0.1 to 0.9.
        keep: The keys of figures, or of groups of figures, that are not changed.
        options: The options for reading traces, as for `simulate`.

    Raises:
        InputError: An argument is invalid, or a trace has too few measured requests or does not
            fit the drive.
        FileError: A file cannot be read.

    """
    _refuse_unknown("calibrate", options, _READING_OPTIONS)
    return _traxtent.calibrate_drive(drive, traces, holdout, list(keep), _options(**options))


@dataclass(frozen=True)
class Finding:
    """An alignment problem.

    Attributes:
        rule: The name of the rule, such as ``partition-start``.
        severity: ``info``, ``warning`` or ``fault``.
        layer: The layer that has to be changed.
        what: One sentence that describes the problem.
        fix: The commands that fix it, as a dict of ``note`` and ``commands``, or None.
        cost: Its cost on the model of the drive, as a dict, or None.
        details: The other keys of ``traxtent check --json``.

    """

    rule: str
    severity: str
    layer: Mapping[str, Any]
    what: str
    fix: Mapping[str, Any] | None
    cost: Mapping[str, Any] | None
    details: Mapping[str, Any]


def _flat(*paths: PathLikes) -> list[str | PathLike[str]]:
    """Return the paths of arguments that are each a path or several."""
    flat: list[str | PathLike[str]] = []
    for path in paths:
        flat += [path] if isinstance(path, str | PathLike) else path
    return flat


def check(*paths: PathLikes, drive: DriveLike | None = None) -> list[Finding]:
    """Check the alignment of images and block devices, as ``traxtent check`` does.

    Args:
        paths: Images or devices, or sequences of these. Without any, the drives of this machine are
            checked.
        drive: The drive that holds them. If it is given, alignment to its tracks is checked too.

    Returns:
        The findings, the worst first. A file that cannot be understood is a finding too.

    Raises:
        InputError: ``drive`` is invalid, or stands for several drives.
        FileError: A file does not exist or cannot be read.

    """
    layers, rows = _traxtent.check_targets(_flat(*paths), drive)
    known = {"rule", "severity", "layer", "what", "fix", "cost"}
    return [
        Finding(
            rule=row["rule"],
            severity=row["severity"],
            layer=layers[row["layer"]],
            what=row["what"],
            fix=row.get("fix"),
            cost=row.get("cost"),
            details={key: value for key, value in row.items() if key not in known},
        )
        for row in rows
    ]
