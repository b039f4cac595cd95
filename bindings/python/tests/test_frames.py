"""Do polars and pandas take results, and are their frames workloads?"""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from traxtent import Drive, simulate

WORKLOAD = "random,read=50%,size=8,count=400"


def log() -> Any:
    """Return a log of requests."""
    return simulate("atlas10k2", WORKLOAD, log=True).requests


def test_polars() -> None:
    """Does polars take a log and boundaries, and is a frame of its own a workload?"""
    polars = pytest.importorskip("polars", reason="polars is installed for the soak only")
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
    pandas = pytest.importorskip("pandas", reason="pandas is installed for the soak only")
    frame = pa.table(log()).to_pandas()
    again = simulate("atlas10k2", frame.sort_values("request"), log=True)
    assert pa.table(again.requests).equals(pa.table(log()))
    if hasattr(pandas.DataFrame, "from_arrow"):
        assert len(pandas.DataFrame.from_arrow(log())) == 400
