"""Random columns of every type that tables hold: types by the schema alone, and no value lost."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bamquery
from bamquery.errors import ExecutionError
from tests.selection.effort import effort
from tests.strategies import arrays

KINDS = [
    pa.bool_(),
    *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()),
    *(pa.float32(), pa.float64(), pa.decimal128(5, 2), pa.decimal128(38, 10), pa.decimal128(38, 0)),
    *(pa.large_string(), pa.large_binary(), pa.date32(), pa.time64("us"), pa.time64("ns")),
    *(pa.timestamp("s"), pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns")),
    pa.timestamp("us", "UTC"),
]

NUMBERS = [kind for kind in KINDS if pa.types.is_integer(kind) or pa.types.is_floating(kind)]


@pytest.fixture(scope="module")
def con():
    with bamquery.connect(device="cpu") as connection:
        yield connection


def shapes(relation: bamquery.Relation) -> list[Any]:
    """The types of all frames."""
    frame = relation.to_pandas()
    exact = relation.to_pandas(hugeint="object", decimals="arrow")
    return [
        frame["x"].dtype,
        exact["x"].dtype,
        relation.to_numpy()["x"].dtype,
        relation.to_arrow().schema,
    ]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@given(data=st.data())
@pytest.mark.long
@settings(max_examples=effort(8, 300))
def test_types_follow_from_the_schema_and_nulls_stay(con, kind, data):
    values = data.draw(arrays(kind))
    cut = data.draw(st.integers(0, len(values)))
    chunked = pa.chunked_array([values.slice(0, cut), values.slice(cut)], kind)
    con.register("random", pa.table({"x": chunked}))
    relation = con.sql("SELECT x FROM random")
    if pa.types.is_date32(kind) and is_far(values):
        with pytest.raises(ExecutionError, match="too far away for microseconds"):
            relation.to_pandas()
        return
    assert shapes(relation) == shapes(relation.limit(0))
    array = relation.to_numpy()["x"]
    assert np.ma.getmaskarray(array).tolist() == values.is_null().to_pylist()
    if not pa.types.is_floating(kind):
        assert relation.to_pandas()["x"].isna().tolist() == values.is_null().to_pylist()


@pytest.mark.parametrize(
    "kind", [k for k in KINDS if pa.types.is_integer(k) or pa.types.is_floating(k)], ids=str
)
@given(data=st.data())
@pytest.mark.long
@settings(max_examples=effort(8, 300))
def test_numbers_are_the_same_everywhere(con, kind, data):
    con.register("random", pa.table({"x": data.draw(arrays(kind))}))
    relation = con.sql("SELECT x FROM random")
    wanted = [row[0] for row in relation.fetchall()]
    masked = relation.to_numpy()["x"].tolist()
    frame = [None if pd_null(value) else value for value in relation.to_pandas()["x"].astype(object)]
    assert list(map(comparable, masked)) == list(map(comparable, wanted))
    lost = {None} if pa.types.is_floating(kind) else set()  # NaN and null are one in pandas' floats
    for value, other in zip(frame, wanted, strict=True):
        assert comparable(value) == comparable(other) or (value in lost and comparable(other) == "nan")


def is_far(days: pa.Array) -> bool:
    return any(abs(day) > 106_751_991 for day in days.view(pa.int32()).to_pylist() if day is not None)


def pd_null(value: Any) -> bool:
    return value is None or type(value).__name__ == "NAType" or comparable(value) == "nan"


def comparable(value: Any) -> Any:
    return "nan" if isinstance(value, float) and math.isnan(value) else value
