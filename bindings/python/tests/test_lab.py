"""Are the experiments of `traxtent.lab` those of the command?"""

from __future__ import annotations

import concurrent.futures
import json

import pyarrow as pa
import pytest

import traxtent
from traxtent import lab

from .conftest import Command


def test_claims_are_the_commands(command: Command) -> None:
    """Are the claims and findings those of `traxtent lab run --json`?"""
    expected = json.loads(command("lab", "run", "T9a", "T2", "--quick", "--json"))
    with concurrent.futures.ThreadPoolExecutor(2) as threads:
        for executor in (None, threads):
            claims = lab.run("T9a", "T2", quick=True, executor=executor)
            assert list(claims) == expected
    table = pa.table(claims)
    assert table.column("id").to_pylist() == [claim["id"] for claim in expected]
    assert table.column("measured").to_pylist() == [claim["measured"] for claim in expected]
    assert table.column_names == claims.columns


def test_wrong_arguments() -> None:
    """Do an unknown claim, no claim and an unknown setting raise clear exceptions?"""
    with pytest.raises(traxtent.InputError, match="X9"):
        lab.run("X9")
    with pytest.raises(traxtent.InputError, match="no claim is named"):
        lab.run()
    with pytest.raises(traxtent.InputError, match=r"mechanics\.rmp"):
        lab.run("T9a", set={"mechanics.rmp": 7200})
