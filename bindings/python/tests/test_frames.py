"""Do polars and pandas take results, and are their frames workloads?"""

from __future__ import annotations

import time
from typing import Any

import pyarrow as pa
import pytest

from traxtent import Drive, rerun, simulate, sweep

WORKLOAD = "random,read=50%,size=8,count=400"


def log() -> Any:
    """Return a log of requests."""
    return simulate("atlas10k2", WORKLOAD, log=True).requests


def test_polars() -> None:
    """Does polars take a log and boundaries, and is a frame of its own a workload?"""
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame(log())
    assert frame.height == 400 and frame["served"].dtype == polars.String
    assert frame["measured_ms"].null_count() == 400
    boundaries = Drive("atlas10k2").map.boundaries
    assert polars.Series(boundaries).to_list() == boundaries.tolist()
    again = simulate("atlas10k2", frame.sort("request"), log=True)
    assert pa.table(again.requests).equals(pa.table(log()))
    words = frame.sort("request").with_columns(polars.col("op").cast(polars.Categorical))
    assert simulate("atlas10k2", words).to_json() == again.to_json()


def test_pandas() -> None:
    """Does pandas take a log, and is a frame of its own a workload?"""
    pandas = pytest.importorskip("pandas")
    frame = pa.table(log()).to_pandas()
    again = simulate("atlas10k2", frame.sort_values("request"), log=True)
    assert pa.table(again.requests).equals(pa.table(log()))
    assert len(pandas.DataFrame.from_arrow(log())) == 400


def test_matplotlib() -> None:
    """Does matplotlib draw all of the distribution, on axes of its own or given ones?"""
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("svg")
    result = simulate("atlas10k2", WORKLOAD)
    axes = result.plot()
    shares = axes.get_lines()[0].get_ydata()
    assert (shares[0], shares[-1]) == (0, 1)
    assert result.plot(axes, log_x=True, log_y=True) is axes
    assert len(axes.get_lines()) == 2


def test_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    """Is progress shown on standard error if that is requested and tqdm is installed?"""
    pytest.importorskip("tqdm")

    def slow(now: float, head: object, waiting: object) -> int:
        time.sleep(0.001)
        return 0

    simulate(
        "atlas10k2",
        "random,size=8,count=8500,outstanding=4",
        scheduler=slow,
        progress=True,
    )
    assert "requests" in capsys.readouterr().err


def test_sweeps_take_frames() -> None:
    """Does a sweep take requests as a frame of pandas or polars, as simulations do?"""
    requests = {"at_ms": [0.0, 10.0], "op": ["read", "write"], "lbn": [0, 1000], "sectors": [8, 8]}
    polars = pytest.importorskip("polars")
    pandas = pytest.importorskip("pandas")
    for frame in [polars.DataFrame(requests), pandas.DataFrame(requests)]:
        table = sweep(["atlas10k2", "atlas10k"], frame, progress=False)
        assert [row["requests"] for row in table] == [2, 2]


def test_rows_of_pandas_are_replayed() -> None:
    """Does `rerun` take a row of a frame, whose numbers are NumPy's?"""
    pandas = pytest.importorskip("pandas")
    table = sweep("atlas10k2", WORKLOAD, {"mechanics.rpm": [7200, 9000.5]}, progress=False)
    frame = pandas.DataFrame.from_arrow(table)
    for index in range(len(table)):
        mean = rerun(frame.iloc[index]).summary["response_ms"]["mean"]
        assert mean == table[index]["response_mean_ms"]
    numpy = pytest.importorskip("numpy")
    trace = numpy.float64(9000.5)
    changed = Drive("atlas10k2").replace({"mechanics.rpm": trace})
    assert changed == Drive("atlas10k2").replace({"mechanics.rpm": 9000.5})


def test_logarithmic_plots_and_legends() -> None:
    """Does a logarithmic plot have only shares that occur, and do two results get a legend?"""
    pyplot = pytest.importorskip("matplotlib.pyplot")
    result = simulate("atlas10k2", "random,size=8,count=1000")
    axes = result.plot(pyplot.subplots()[1], log_y=True)
    assert min(axes.lines[0].get_ydata()) >= 0.9 / 1000
    result.plot(axes)
    assert len(axes.get_legend().get_texts()) == 2
