"""Models of hard disks: simulate workloads, find tracks, test programs on a disk with faults.

>>> import traxtent
>>> result = traxtent.simulate("atlas10k2", "random,read=66%,size=8,count=10000")
>>> result.summary["requests"]
10000

Times are in milliseconds of simulated time, sizes in logical sectors, and positions are LBNs
(logical block numbers), unless a name says otherwise. Invalid input raises a `TraxtentError`, and
an argument of the wrong Python type a `TypeError`.
"""

from traxtent._analysis import Finding, Verdict, calibrate, check, validate
from traxtent._plot import SvgPicture
from traxtent._simulate import simulate, simulate_batches
from traxtent._sweep import SweepRow, SweepTable, rerun, sweep
from traxtent._sweep_plan import SweepRun
from traxtent._traxtent import (
    ArrayLocation,
    BatchIterator,
    Boundaries,
    Calibration,
    Completion,
    Disk,
    Drive,
    FileError,
    Head,
    InputError,
    PowerCut,
    ProbeResult,
    RaidArray,
    Request,
    RequestBatch,
    RequestLog,
    Result,
    StoppedError,
    Table,
    Track,
    TrackMap,
    TraxtentError,
    WaitingQueue,
    WaitingRequest,
    __version__,
    drives,
    excluded_blocks,
    probe,
)

__all__ = [
    "ArrayLocation",
    "BatchIterator",
    "Boundaries",
    "Calibration",
    "Completion",
    "Disk",
    "Drive",
    "FileError",
    "Finding",
    "Head",
    "InputError",
    "PowerCut",
    "ProbeResult",
    "RaidArray",
    "Request",
    "RequestBatch",
    "RequestLog",
    "Result",
    "StoppedError",
    "SvgPicture",
    "SweepRow",
    "SweepRun",
    "SweepTable",
    "Table",
    "Track",
    "TrackMap",
    "TraxtentError",
    "Verdict",
    "WaitingQueue",
    "WaitingRequest",
    "__version__",
    "calibrate",
    "check",
    "drives",
    "excluded_blocks",
    "probe",
    "rerun",
    "simulate",
    "simulate_batches",
    "sweep",
    "validate",
]
