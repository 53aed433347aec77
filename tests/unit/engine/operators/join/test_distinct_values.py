"""Different values of columns: the same by flags as by hashes."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from bamquery.engine.operators.join.distinct_values import distinct_values

DAY = datetime.date(2024, 5, 1)
COLUMNS: list[pa.Array[Any]] = [
    pa.array([3, None, -128, 127, 3, 0], pa.int8()),
    pa.array([2**64 - 1, 2**64 - 3, None, 2**64 - 1], pa.uint64()),
    pa.array([0, 2**64 - 1], pa.uint64()),
    pa.array([-(2**63), 2**63 - 1, 0, 0], pa.int64()),
    pa.array([-(2**63), -(2**63) + 5, None], pa.int64()),
    pa.array([DAY, None, DAY + datetime.timedelta(400), DAY], pa.date32()),
    pa.array([5, 7, 5, None], pa.timestamp("us")),
    pa.array(["b", None, "a", "b"], pa.large_string()),
    pa.array([Decimal("1.50"), None, Decimal("1.50")], pa.decimal128(9, 2)),
    pa.array([None, None], pa.int32()),
    pa.array([], pa.int32()),
]


@pytest.mark.parametrize("column", COLUMNS, ids=lambda column: str(column.type))
def test_as_hashes_find_them(column: pa.Array[Any]) -> None:
    wanted = pc.unique(pc.drop_null(column))
    for columns in ([column], [column.slice(1), column]):
        found = distinct_values(columns)
        assert found.type == column.type
        assert sorted(found.to_pylist()) == sorted(wanted.to_pylist())
